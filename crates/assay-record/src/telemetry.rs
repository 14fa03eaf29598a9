//! Telemetry of servers and machines: raw readings, one per sample.
//!
//! Instants are those of the generator's own monotonic clock, since the start of the run. Rates, shares and values per
//! transaction are computed in `assay-report`.

use serde::{Deserialize, Serialize};

use crate::cases::QueryPlan;

/// All readings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Telemetry {
    /// Whether reports show all metrics, not only the most important ones.
    #[serde(default)]
    pub full: bool,
    /// Planned time between two samples.
    pub every_ns: u64,
    /// One per server and machine that was sampled.
    pub scopes: Vec<Scope>,
    /// The cost of sampling.
    pub cost: Cost,
    /// Changes made to servers for sampling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interventions: Vec<Intervention>,
    /// Plans of the load's statements, as far as servers tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<StatementPlans>,
}

/// A statement of the load, and how a server would execute it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementPlans {
    /// Index into `Manifest::targets`.
    pub target: u32,
    /// Its text, with `?` in place of values.
    pub statement: String,
    /// Whether the plan is one for all values, because the statement is prepared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_generic: bool,
    /// The plans of a few executions; those that differ in estimates and values only are one.
    pub plans: Vec<QueryPlan>,
}

/// A change to a server during sampling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervention {
    /// Index into `Manifest::targets`.
    pub target: u32,
    /// The statement.
    pub statement: String,
    /// The statement that undid it; `None`: it could not be undone.
    #[serde(default)]
    pub undone: Option<String>,
}

/// Readings of one server or machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The servers and machines sampled.
    pub kind: ScopeKind,
    /// Index into `Manifest::targets`: the server; for a machine, the first server on it.
    pub target: u32,
    /// Start of each sample, ascending.
    pub began_ns: Vec<u64>,
    /// End of each sample; the same number. `began_ns[i] <= ended_ns[i]`
    pub ended_ns: Vec<u64>,
    /// By metric.
    pub series: Vec<Series>,
    /// Unavailable metrics, and why.
    #[serde(default)]
    pub absent: Vec<Absent>,
    /// Wait events of active sessions; `None`: not sampled.
    #[serde(default)]
    pub waits: Option<Waits>,
    /// Lines of the server's log, as they were seen there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogLine>,
    /// Number of lines that are not in `log`, because there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub log_left_out: u64,
    /// What the server counted for its statements from the first to the last sample, those with the most time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementUse>,
}

impl Scope {
    /// Leaves out what new series have before the first sample that is here.
    pub fn align(&mut self) {
        let length = self.began_ns.len();
        fn keep_last<T>(values: &mut Vec<T>, number: usize) {
            values.drain(..values.len().saturating_sub(number));
        }
        for series in &mut self.series {
            keep_last(&mut series.values, length);
            keep_last(&mut series.own, length);
        }
        if let Some(waits) = &mut self.waits {
            keep_last(&mut waits.looks, length);
            waits.events.iter_mut().for_each(|event| keep_last(&mut event.sessions, length));
        }
    }

    /// Leaves out the first samples, for those who watch for days.
    pub fn forget(&mut self, samples: usize) {
        fn drop_first<T>(values: &mut Vec<T>, number: usize) {
            values.drain(..number.min(values.len()));
        }
        drop_first(&mut self.began_ns, samples);
        drop_first(&mut self.ended_ns, samples);
        for series in &mut self.series {
            drop_first(&mut series.values, samples);
            drop_first(&mut series.own, samples);
        }
        if let Some(waits) = &mut self.waits {
            drop_first(&mut waits.looks, samples);
            waits.events.iter_mut().for_each(|event| drop_first(&mut event.sessions, samples));
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A line of a server's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it was seen, up to a second after it was written; since the start of the run.
    pub at_ns: u64,
    /// Without passwords, and cut to a few hundred characters.
    pub text: String,
}

/// What a server counted for the executions of one statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementUse {
    /// Its text as the server shows it, with placeholders for values.
    pub text: String,
    /// Number of executions.
    pub calls: u64,
    /// Time that they took together, in microseconds.
    pub time_us: u64,
    /// Rows that were sent or changed.
    pub rows: u64,
    /// Pages that were read because they were not in the cache; `None`: the server does not count them by statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_reads: Option<u64>,
    /// Rows that were read to answer; `None`: likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_rows: Option<u64>,
    /// The size of these rows before compression, without columns that were not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// The most memory that one execution had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
    /// Executions that failed, and are not among `calls`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<u64>,
}

/// Kinds of scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeKind {
    /// A server: its own statistics, and the kernel's for its processes.
    Server,
    /// The machine shared by a local server and the generator.
    Machine,
}

/// One metric over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Its name, the same for every product: `log_bytes`.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Whether differences count, or values.
    pub reading: Reading,
    /// Its source: a column, a status variable, a file.
    pub source: String,
    /// One per sample of the scope; null if it could not be read.
    pub values: Vec<Option<u64>>,
    /// How much of each of these values was the work of sampling; empty if none of it was, or if that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<Option<u64>>,
    /// The values include the work of sampling, and how much that is, is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub includes_own: bool,
}

/// Units of values.
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

/// How values are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// It grows; differences count. A decrease means that it was reset.
    Counter,
    /// The value at that instant.
    Gauge,
}

/// A metric that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// Its name.
    pub metric: String,
    /// The reason.
    pub reason: String,
}

/// Wait events of active sessions, observed several times within each sample of the scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Observations since the previous sample, per sample of the scope.
    pub looks: Vec<u32>,
    /// By wait event.
    pub events: Vec<WaitEvent>,
}

/// A wait event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitEvent {
    /// The server's name for it; `CPU` for sessions that wait for nothing.
    pub name: String,
    /// Sessions seen in it, summed over the observations, per sample of the scope.
    pub sessions: Vec<u32>,
}

/// The cost of sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of the generator's sampling threads.
    pub cpu_ns: u64,
    /// CPU time that local servers spent on those threads' connections, without logging in; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_ns: Option<u64>,
    /// Statements sent to servers.
    pub statements: u64,
    /// Total time until they were answered.
    pub statements_ns: u64,
}
