//! The frame of a record: what was requested, where it ran, how it ended.
//!
//! Fields a reader may do without have defaults, so that records stay readable while fields are added; a field
//! is never given another meaning under the same format number.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use crate::cases::Cases;
use crate::measurements::Stage;
use crate::telemetry::Telemetry;
use crate::time::Time;

/// Version of the format written and read here.
pub const FORMAT: u32 = 1;

/// One trial, complete or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// `FORMAT` of the assay that wrote it.
    pub format: u32,
    /// Who wrote it.
    pub tool: Tool,
    /// How the run ended, or that it has not.
    pub status: Status,
    /// Why it failed, in the words the user was shown; only with `Status::Failed`.
    #[serde(default)]
    pub failure: Option<String>,
    /// Start of the run.
    pub started: Time,
    /// From the start of the run to its end (or to the moment a partial record was written), connects included.
    pub elapsed_ns: u64,
    /// What was asked for.
    pub manifest: Manifest,
    /// Where it ran.
    pub environment: Environment,
    /// Names of the transaction types, the workload's own first. Indexes `Interval::transactions`.
    pub types: Vec<String>,
    /// What the workload promises about its transactions (`assay.audit`), in the order declared.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Throughputs with a name of their own (`assay.rate`), in the order declared.
    #[serde(default)]
    pub rates: Vec<Rate>,
    /// What was measured: one per stage begun, in order.
    pub stages: Vec<Stage>,
    /// What was read of servers and machines beside the load; `None` when nothing was.
    #[serde(default)]
    pub telemetry: Option<Telemetry>,
    /// What the user says of the run, by key; may be added to later.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Statements that were timed one by one, which are then also the transaction types; `None`: it was a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Cases>,
}

/// The program that wrote a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `assay`.
    pub name: String,
    /// Its version, such as `0.1.0`.
    pub version: String,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It has not: the record is partial. Found on disk, it means the run was killed.
    #[default]
    Running,
    /// It did all it was to do.
    Complete,
    /// By the user; everything until then is in the record.
    Interrupted,
    /// By an error; everything until then is in the record.
    Failed,
}

/// What was asked for: enough to run it again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The command line, program name first, after `without_secrets`.
    pub command: Vec<String>,
    /// The workload's name.
    pub workload: String,
    /// What was done with it; empty: it ran; `prepare`, where transactions are rows that were loaded; `check`, where
    /// the only transaction is the check; `machine`, where they are the events of a test of the machine itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// Its options with the values in effect, defaults included.
    #[serde(default)]
    pub options: BTreeMap<String, OptionValue>,
    /// Random numbers were drawn from this seed. Full 64-bit range: parse it as an integer.
    pub seed: u64,
    /// Distribution of the row numbers drawn (`uniform`, `special`, …); `None` when the workload draws none.
    #[serde(default)]
    pub distribution: Option<String>,
    /// Sessions of every stage planned, in order.
    pub sessions: Vec<u32>,
    /// When transactions were due.
    pub load: Load,
    /// How the rate changed during every stage, in straight lines from point to point; empty: it did not. Then the
    /// load's own is the mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<RatePoint>,
    /// The file whose instants transactions were due at; `None`: they were spaced as the load says. Then its rate is
    /// the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// What stages were a search for: each was decided by those before. `None`: they were planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// Users who shared the sessions, thinking between their transactions; `None`: each session was a user.
    #[serde(default)]
    pub terminals: Option<Terminals>,
    /// When a stage was to end.
    pub limit: Limit,
    /// Transactions run but not measured at the start of every stage.
    pub warmup_ns: u64,
    /// Length of an interval. 100 ms <= interval
    pub interval_ns: u64,
    /// What was to be done about errors.
    pub policy: Policy,
    /// Worker threads.
    pub workers: u32,
    /// How they talked to the kernel; `None` where there were no sockets, or not known.
    #[serde(default)]
    pub event_loop: Option<EventLoop>,
    /// Protocol-level prepared statements were used.
    #[serde(default)]
    pub prepared: bool,
    /// Statements run on every new connection.
    #[serde(default)]
    pub session_sql: Vec<String>,
    /// URLs of the servers, without passwords.
    pub targets: Vec<String>,
}

/// The value of a workload option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OptionValue {
    /// `true`, `false`.
    Bool(bool),
    /// A whole number, sizes included.
    Int(i64),
    /// Any other number. JSON has no infinity: one that is not finite is written as text.
    Number(#[serde(serialize_with = "number_or_text")] f64),
    /// Text.
    Text(String),
    /// Texts.
    List(Vec<String>),
}

fn number_or_text<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() { serializer.serialize_f64(*value) } else { serializer.collect_str(value) }
}

/// When transactions were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Load {
    /// The next one when the one before it was done.
    #[default]
    Closed,
    /// At a rate, whatever the server did.
    Open {
        /// Transactions per second over all sessions. 0 < rate, finite.
        rate_per_s: f64,
        /// How due instants were spaced.
        arrival: Arrival,
        /// Due transactions that could wait for a session; more were dropped. `None`: no bound.
        #[serde(default)]
        backlog_max: Option<u64>,
    },
}

/// A rate at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RatePoint {
    /// Since the start of the measured part.
    pub at_ns: u64,
    /// Transactions per second over all sessions. Finite, 0 <= per_s
    pub per_s: f64,
}

/// Instants at which transactions were due.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Where they were read from.
    pub file: String,
    /// How many there are.
    pub arrivals: u64,
}

/// What stages were a search for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Search {
    /// The highest rate that keeps these promises, such as `p99 < 10ms`.
    Rate {
        /// As they were written.
        promises: Vec<String>,
    },
    /// The number of sessions after which throughput stops growing.
    Sessions {
        /// No more were tried.
        max: u32,
    },
}

/// Users who shared sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Terminals {
    /// How many.
    pub number: u32,
    /// Their times to think were multiplied by this. Finite.
    pub think_scale: f64,
}

/// How due instants of an open loop were spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Evenly.
    Constant,
    /// Exponentially distributed gaps.
    Poisson,
}

/// When a stage was to end, at whichever came first. Both `None`: when interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Measured time, warm-up not included.
    #[serde(default)]
    pub time_ns: Option<u64>,
    /// Measured transactions begun, over all sessions.
    #[serde(default)]
    pub transactions: Option<u64>,
}

/// What was to be done about errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Codes (errno or SQLSTATE) that failed their transaction but not the run; the single entry `all`: every error.
    pub ignore: Vec<String>,
    /// How often a transaction was run again after a deadlock, serialization failure or lost connection.
    pub retries: u32,
    /// Transactions with an ignored error were restarted, without limit, instead of being counted as failed.
    #[serde(default)]
    pub restart_ignored: bool,
    /// What any other error did.
    pub on_error: OnError,
    /// How long a lost connection was tried again.
    #[serde(default)]
    pub reconnect_ns: u64,
}

/// What an error did that was neither retried nor ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// Ended the run.
    #[default]
    Stop,
    /// Failed its transaction.
    Continue,
}

/// How the workers talked to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLoop {
    /// `epoll` or `io_uring`.
    pub backend: String,
    /// Why it was not io_uring, where that was wanted.
    #[serde(default)]
    pub fallback: Option<String>,
    /// Replies handled between two calls of the kernel, at most.
    pub batch_max: u64,
}

/// How often something has to happen in the transactions of a workload, or how long it may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// What people call it.
    pub name: String,
    /// Where the workload's specification says so; may be empty.
    #[serde(default)]
    pub clause: String,
    /// What is looked at.
    pub measure: Measure,
    /// Smallest value allowed: a share of one, a mean, or nanoseconds. Finite.
    #[serde(default)]
    pub low: Option<f64>,
    /// Largest value allowed. Finite.
    #[serde(default)]
    pub high: Option<f64>,
}

/// What a rule looks at. Names are those of counters and of transaction types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Measure {
    /// How many of `whole` were `part`. Either names a counter, or else a transaction type.
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
        /// In millionths: 900,000 is the 90th percentile.
        ppm: u32,
    },
}

/// A throughput with a name of its own, such as tpmC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// What people call it.
    pub name: String,
    /// The transaction type counted; `None`: all of them.
    #[serde(default)]
    pub of: Option<String>,
    /// Transactions rolled back by design counted too.
    #[serde(default)]
    pub rolled_back: bool,
    /// The time unit of the rate.
    pub per_ns: u64,
    /// The most that is possible by the workload's rules. Finite.
    #[serde(default)]
    pub nominal: Option<f64>,
}

/// Where a trial ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Host name of the machine that made the load.
    pub host: String,
    /// Its kernel's name and release, such as `Linux 6.1.0-18-amd64`.
    pub kernel: String,
    /// Its CPU's name.
    pub cpu_model: String,
    /// CPUs this process was allowed to use. 1 <= cpus
    pub cpus: u32,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// More of that machine, by name: how its kernel is set, what this process was allowed to use.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
    /// What the servers said of themselves, in the order of `Manifest::targets`.
    pub servers: Vec<Server>,
    /// The server that was started for this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<StartedServer>,
}

/// A server that was started for a run, and removed afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedServer {
    /// As `assay server` names it: `postgres`.
    pub product: String,
    /// Its version.
    pub version: String,
    /// The program's path.
    pub program: String,
    /// What was asked for, and what the server made of it.
    pub settings: Vec<AskedSetting>,
    /// Its configuration as it was written, by file; those of replicas and fronts with their names in front.
    pub configuration: BTreeMap<String, String>,
    /// The CPUs that it was kept on: `0-3,8`; `None`: all.
    #[serde(default)]
    pub cpus: Option<String>,
    /// The most memory that it could use, its page cache included; `None`: no limit.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// What stood before it, the nearest first.
    #[serde(default)]
    pub fronts: Vec<String>,
    /// How its data directory came from an image: `copy`, or `reflink`, which changes what writes cost.
    #[serde(default)]
    pub restored_by: Option<String>,
    /// How far it was brought to rest before the measured run, by step; empty: it was not.
    #[serde(default)]
    pub settled: Vec<SettledStep>,
    /// How long each part of the start took.
    #[serde(default)]
    pub timings_ns: BTreeMap<String, u64>,
}

/// A step that brought a server to rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettledStep {
    /// The step's name.
    pub step: String,
    /// What was reached, such as `12 dirty pages`.
    pub reached: Vec<String>,
    /// Whether that is all there was to do; `false`: the time was over.
    pub complete: bool,
}

/// A setting of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedSetting {
    /// As written.
    pub name: String,
    /// As written; `None`: only named.
    pub asked: Option<String>,
    /// As the server shows it; `None`: it has no variable of this name.
    pub in_effect: Option<String>,
    /// Whether the two mean the same.
    pub same: bool,
}

/// One server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Product name: `PostgreSQL`, `MySQL`, `MariaDB`, `SQLite`.
    pub product: String,
    /// Its version, verbatim.
    pub version: String,
    /// TLS version and cipher; `None` when not encrypted.
    #[serde(default)]
    pub tls: Option<String>,
    /// Where it ran, seen from the generator.
    #[serde(default)]
    pub place: Place,
    /// Settings that matter for performance or differ from their defaults, as the server spells them.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Where the values of those that differ came from, by name, as the server spells it: `configuration file`,
    /// `COMMAND_LINE`.
    #[serde(default)]
    pub origins: BTreeMap<String, String>,
    /// Of a local server's process, data directory and drive, by name.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
}

/// Where a server ran, seen from the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Elsewhere, or not known.
    #[default]
    Remote,
    /// On the same machine (loopback address or unix socket): it shared the CPUs with us.
    Local,
    /// Inside our own process: its CPU time is counted as ours.
    Embedded,
}
