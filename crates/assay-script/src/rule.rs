//! Declarations of a script about its work: audit rules, named rates, columns of a journal, actual table sizes,
//! queries.
//!
//! Data only. The engine passes them on unchanged; `assay-report` decides whether a rule holds, from what was measured.

use assay_options::OptionValue;
use assay_seam::Nanos;

/// Something a script declared about its transactions.
#[derive(Clone, Debug, PartialEq)]
pub enum Declaration {
    /// `assay.audit{…}`
    Rule(Rule),
    /// `assay.rate{…}`
    Rate(NamedRate),
    /// `assay.journal{…}`: names of the columns.
    Journal(Vec<String>),
    /// `assay.history{…}`: the isolation level to check, and the most megabytes of history to keep.
    History(String, f64),
    /// `assay.found(…)`: the name of an option, and its actual value in the tables, a number or a text.
    Found(String, OptionValue),
    /// `assay.total(…)`: a name, and what the tables contain now.
    Total(String, f64),
    /// `assay.query{…}`, in `queries()`.
    Query(NamedQuery),
    /// `assay.loaded(…)`, in `queries()`.
    Loaded(LoadedTables),
    /// `assay.scale(…)`, in `queries()`: the scale factor of the data.
    Scale(f64),
}

/// Where an analytical workload has written what it loaded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadedTables {
    /// The table that says how many rows each table has.
    pub table: String,
    /// What else to ask about them: a name, and a query of one value.
    pub questions: Vec<(String, String)>,
}

/// A query of an analytical workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedQuery {
    /// Unique in the workload.
    pub name: String,
    /// What it asks, in words.
    pub question: String,
    /// In the language of the database.
    pub text: String,
}

/// How often something must happen, or how long it may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Name for the report; unique among the rules of a script.
    pub name: String,
    /// The clause of the specification; may be empty.
    pub clause: String,
    /// What the rule measures.
    pub measure: Measure,
    /// Smallest allowed value: a share of one, a mean, or nanoseconds. `None`: no limit.
    pub low: Option<f64>,
    /// Largest allowed value. `low <= high`
    pub high: Option<f64>,
}

/// What a rule measures. Names are those of counters (`assay.count`) and of transaction types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The share of `part` in `whole`, each decided independently of the others. Either names a counter, or else a
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
    /// The share of this type among all transactions.
    Mix {
        /// The type.
        of: String,
    },
    /// The share of transactions of this type that were rolled back on purpose.
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
    /// The share of `part` in `whole`, two totals of the tables (`assay.total`), each as much as it grew during the
    /// run.
    TableShare {
        /// Of rows with a property.
        part: String,
        /// Of all such rows.
        whole: String,
    },
    /// How much a total of the tables grew during the run, which must be what was reported. The rule has no bounds.
    Growth {
        /// The total (`assay.total`).
        total: String,
        /// What was reported: a counter, or a type whose successful transactions count.
        of: String,
        /// The most that a transaction of unknown outcome may add.
        most: u64,
    },
    /// A named rate.
    Rate {
        /// Its name.
        of: String,
    },
}

/// A throughput with a name of its own, such as tpmC.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedRate {
    /// Name for the report; unique among the rates of a script.
    pub name: String,
    /// The transaction type counted; `None`: all of them.
    pub of: Option<String>,
    /// Whether transactions rolled back on purpose count, too.
    pub rolled_back: bool,
    /// The time unit of the rate.
    pub per: Nanos,
    /// The highest rate that the rules allow; efficiency is the rate divided by it.
    pub nominal: Option<f64>,
}
