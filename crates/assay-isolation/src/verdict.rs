//! The result of a check.

use serde::{Deserialize, Serialize};

use crate::level::IsolationLevel;
use crate::phenomenon::{Form, Phenomenon};

/// What a history shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationVerdict {
    /// Committed transactions.
    pub committed: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those whose outcome is unknown.
    pub unknown: u64,
    /// Sessions with transactions.
    pub sessions: u64,
    /// Reads of committed transactions.
    pub reads: u64,
    /// Writes of committed transactions.
    pub writes: u64,
    /// Keys that were read or written.
    pub keys: u64,
    /// The limit of the history was reached, and later transactions were not checked.
    #[serde(default)]
    pub partial: bool,
    /// Committed transactions during which one of another session was running: only these can show most anomalies.
    /// Absent in records of earlier versions.
    #[serde(default)]
    pub concurrent: Option<u64>,
    /// Reads that found a value of another run. What such a history shows is not the database's doing.
    #[serde(default)]
    pub foreign: u64,
    /// What is wrong, the worst first.
    #[serde(default)]
    pub anomalies: Vec<Anomaly>,
}

impl IsolationVerdict {
    /// Anomalies that a level forbids.
    pub fn violations(&self, level: IsolationLevel) -> impl Iterator<Item = &Anomaly> {
        self.anomalies.iter().filter(move |anomaly| level.forbids(anomaly.phenomenon, anomaly.form))
    }

    /// Whether only sums were read: no level can be told from them.
    pub fn has_only_totals(&self) -> bool {
        self.keys == 0 && self.reads > 0
    }

    /// Whether transactions of several sessions met, and left more than sums: then the absence of anomalies says
    /// something about levels.
    pub fn is_telling(&self) -> bool {
        !self.has_only_totals() && self.concurrent != Some(0)
    }

    /// Whether nothing was found that the level forbids.
    pub fn holds(&self, level: IsolationLevel) -> bool {
        self.violations(level).next().is_none()
    }
}

/// A phenomenon, with the shortest example that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anomaly {
    /// What is wrong.
    pub phenomenon: Phenomenon,
    /// What its cycle needs.
    pub form: Form,
    /// How many were found. There may be more: long cycles are counted once for all transactions that they connect.
    pub count: u64,
    /// A counterexample.
    pub example: Example,
}

/// Transactions that cannot have happened as the level promises.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// In the order of the cycle, if there is one.
    pub steps: Vec<ExampleStep>,
    /// Why each transaction must be before another. Empty if the transactions alone show it.
    pub links: Vec<ExampleLink>,
}

/// A transaction of an example.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExampleStep {
    /// Its place in the history.
    pub transaction: u64,
    /// Its session.
    pub session: u32,
    /// When it was started, in nanoseconds of the history's clock.
    pub begin: u64,
    /// When its end was known; absent: never.
    #[serde(default)]
    pub end: Option<u64>,
    /// `ok`, `failed` or `unknown`.
    pub outcome: String,
    /// What it did, such as `append(3, 7)` or `read(3): 5 7`. Long lists are shortened at their start.
    pub operations: Vec<String>,
}

/// Why a transaction of an example is before another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExampleLink {
    /// Index of a step.
    pub from: usize,
    /// Index of a step.
    pub to: usize,
    /// The reason.
    pub relation: Relation,
    /// The key that both accessed, if that is the reason.
    #[serde(default)]
    pub key: Option<u32>,
}

/// Why a transaction is before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// `ww`: the other one wrote a later version.
    WriteWrite,
    /// `wr`: the other one read its version.
    WriteRead,
    /// `rw`: the other one wrote the version after the one that it read.
    ReadWrite,
    /// Both are of one session, in this order.
    Session,
    /// It ended before the other one began.
    RealTime,
}
