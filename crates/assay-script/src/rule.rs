//! Declarations of a script about its work: audit rules, named rates, columns of a journal, actual table sizes.
//!
//! Data only. The engine passes them on as they are; whether a rule holds is decided in `assay-report`, from what was
//! measured.

use assay_seam::Nanos;

/// Something a script declared about its transactions.
#[derive(Clone, Debug, PartialEq)]
pub enum Declaration {
    /// `assay.audit{…}`
    Rule(Rule),
    /// `assay.rate{…}`
    Rate(Rate),
    /// `assay.journal{…}`: names of the columns.
    Journal(Vec<String>),
    /// `assay.found(…)`: the name of an option, and the value that its tables have.
    Found(String, f64),
}

/// How often something has to happen, or how long it may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// What people call it; unique among the rules of a script.
    pub name: String,
    /// Where the specification says so; may be empty.
    pub clause: String,
    /// What is looked at.
    pub measure: Measure,
    /// Smallest value allowed: a share of one, a mean, or nanoseconds. `None`: no bound.
    pub low: Option<f64>,
    /// Largest value allowed. `low <= high`
    pub high: Option<f64>,
}

/// What a rule looks at. Names are those of counters (`assay.count`) and of transaction types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// How many of `whole` were `part`, each decided apart from the others. Either names a counter, or else a
    /// transaction type.
    Share {
        /// Counted when it happened.
        part: String,
        /// Counted when it could have happened.
        whole: String,
    },
    /// A counter's mean over the transactions that counted it.
    Mean {
        /// The counter.
        of: String,
    },
    /// How many of all transactions were of this type.
    Mix {
        /// The type.
        of: String,
    },
    /// How many transactions of this type were rolled back by design.
    RolledBack {
        /// The type.
        of: String,
    },
    /// A percentile of the response time of this type.
    Percentile {
        /// The type.
        of: String,
        /// In millionths: 900,000 is the 90th percentile. 0 < ppm < 1,000,000
        ppm: u32,
    },
}

/// A throughput with a name of its own, such as tpmC.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// What people call it; unique among the rates of a script.
    pub name: String,
    /// The transaction type counted; `None`: all of them.
    pub of: Option<String>,
    /// Transactions rolled back by design count too.
    pub rolled_back: bool,
    /// The time unit of the rate.
    pub per: Nanos,
    /// The most that is possible by the rules; efficiency is the rate's share of it.
    pub nominal: Option<f64>,
}
