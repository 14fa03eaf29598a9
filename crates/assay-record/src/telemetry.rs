//! Telemetry of servers and machines: raw readings, one per sample.
//!
//! Instants are those of the generator's own monotonic clock, since the start of the run. Rates, shares and figures per
//! transaction are made in `assay-report`.

use serde::{Deserialize, Serialize};

/// All readings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Telemetry {
    /// Reports show all of it, where they would show what tells most.
    #[serde(default)]
    pub full: bool,
    /// Planned time between two samples.
    pub every_ns: u64,
    /// One per server and machine that was asked.
    pub scopes: Vec<Scope>,
    /// What the readings took.
    pub cost: Cost,
    /// What was changed on servers for the sake of readings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interventions: Vec<Intervention>,
}

/// A change of a server that lasted as long as the readings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervention {
    /// Index into `Manifest::targets`.
    pub target: u32,
    /// The statement.
    pub statement: String,
    /// The statement that took it back; `None`: it could not be taken back.
    #[serde(default)]
    pub undone: Option<String>,
}

/// Readings of one server or machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// What was asked.
    pub kind: ScopeKind,
    /// Index into `Manifest::targets`: which server; of a machine, the first server on it.
    pub target: u32,
    /// When each sample began, ascending.
    pub began_ns: Vec<u64>,
    /// When it had been read; as many. `began_ns[i] <= ended_ns[i]`
    pub ended_ns: Vec<u64>,
    /// By metric.
    pub series: Vec<Series>,
    /// Unavailable metrics, and why.
    #[serde(default)]
    pub absent: Vec<Absent>,
    /// What active sessions waited for; `None`: not sampled.
    #[serde(default)]
    pub waits: Option<Waits>,
}

/// What a scope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeKind {
    /// A server: what it says of itself, and what the kernel says of its processes.
    Server,
    /// The machine that a local server and the generator share.
    Machine,
}

/// One metric over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Its name, the same for every product: `log_bytes`.
    pub metric: String,
    /// What its values are in.
    pub unit: Unit,
    /// Whether differences count, or values.
    pub reading: Reading,
    /// Where it was read: a column, a status variable, a file.
    pub source: String,
    /// One per sample of the scope; null where it could not be read.
    pub values: Vec<Option<u64>>,
}

/// What values are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Microseconds.
    Us,
}

/// How values are to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// It grows; differences count. One that went down began anew.
    Counter,
    /// The value at that instant.
    Gauge,
}

/// A metric that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// Its name.
    pub metric: String,
    /// Why, in words.
    pub reason: String,
}

/// What active sessions waited for, looked at several times within each sample of the scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Looks since the sample before, per sample of the scope.
    pub looks: Vec<u32>,
    /// By what was waited for.
    pub events: Vec<WaitEvent>,
}

/// Something sessions wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitEvent {
    /// As the server calls it; `CPU` for sessions that wait for nothing.
    pub name: String,
    /// Sessions seen in it, summed over the looks, per sample of the scope.
    pub sessions: Vec<u32>,
}

/// What the readings of a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of the generator's threads that read.
    pub cpu_ns: u64,
    /// Statements sent to servers.
    pub statements: u64,
    /// Time until they were answered, all together.
    pub statements_ns: u64,
}
