//! The frame of a record: what was requested, where it ran, how it ended.
//!
//! Fields that a reader can do without have defaults, so that records stay readable when fields are added; a field
//! never changes its meaning under the same format number.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use assay_measure::Work;
use serde::{Deserialize, Serialize, Serializer};

use crate::agents::AgentPart;
use crate::attribute::Attribute;
use crate::cases::Cases;
use crate::experiment::RecordedTrial;
use crate::host::Host;
use crate::isolation::Isolation;
use crate::note::Note;
use crate::stage::Stage;
use crate::started::StartedServer;
use crate::status::Status;
use crate::telemetry::Telemetry;
use crate::time::Time;

/// Version of the format written here. Earlier ones are read, too.
pub const FORMAT: u32 = 2;

/// One trial, complete or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format of its file.
    pub format: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// How the run ended, or that it has not ended.
    pub status: Status,
    /// Why it failed, as shown to the user; only with `Status::Failed`.
    #[serde(default)]
    pub failure: Option<String>,
    /// Start of the run.
    pub started: Time,
    /// From the start of the run to its end (or to the moment a partial record was written), including connects.
    pub elapsed_ns: u64,
    /// The request.
    pub manifest: Manifest,
    /// The machine and the servers.
    pub environment: Environment,
    /// Names of the transaction types, the workload's own first. Indexes `Interval::transactions`.
    pub types: Vec<String>,
    /// The workload's rules about its transactions (`assay.audit`), in the order declared.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Named rates (`assay.rate`), in the order declared.
    #[serde(default)]
    pub rates: Vec<Rate>,
    /// Measurements: one for each stage that started, in order.
    pub stages: Vec<Stage>,
    /// Samples from servers and machines; `None`: none were taken.
    #[serde(default)]
    pub telemetry: Option<Telemetry>,
    /// What distinguishes the run from others, as far as it was written down: `attributes` adds what follows from the
    /// other fields. Records of earlier versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identity: Vec<Attribute>,
    /// The user's tags, by key; more may be added later.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Statements compared by `assay sql`, which are then also the transaction types; `None` for a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Cases>,
    /// What all transactions did, to be compared with the tables; `None` if no rule does that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// The check of the history of a workload that has one (`assay.history`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The agents of a fleet, in the order of their numbers, whose measurements are added up in `stages`; empty: one
    /// process did everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPart>,
    /// Notes that the user wrote during the run (`assay note`), in the order of their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Lines of its file that are not events, counted from 1: what they said is missing.
    #[serde(skip)]
    pub damaged_lines: Vec<u64>,
}

/// The program that wrote a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `assay`.
    pub name: String,
    /// Its version, such as `0.1.0`.
    pub version: String,
}

/// The request: enough to run it again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The command line, program name first, after `without_secrets`.
    pub command: Vec<String>,
    /// The whole request as a value that assay can execute again, without passwords; its format has a version of its
    /// own. `None`: a machine test, or a record of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<serde_json::Value>,
    /// The workload's name.
    pub workload: String,
    /// The task; empty: a run; `prepare`: transactions are the rows loaded; `check`: the only transaction
    /// is the check; `machine`: transactions are the events of a machine test.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// Its options with the values in effect, including defaults.
    #[serde(default)]
    pub options: BTreeMap<String, OptionValue>,
    /// Requested values of options that the tables do not match, by option; `options` has the actual ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked: BTreeMap<String, OptionValue>,
    /// Options about the tables that the workload compared with them; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<BTreeSet<String>>,
    /// Seed of the random numbers. Full 64-bit range: parse it as an integer.
    pub seed: u64,
    /// Distribution of the row numbers drawn (`uniform`, `special`, …); `None` if the workload draws none.
    #[serde(default)]
    pub distribution: Option<String>,
    /// Sessions of every planned stage, in order.
    pub sessions: Vec<u32>,
    /// When transactions were due.
    pub load: Load,
    /// How the rate changed during every stage, linear between points; empty: it was constant. Then the load's own rate
    /// is the mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<RatePoint>,
    /// The file with the due instants of transactions; `None`: they were spaced as the load says. Then its rate is the
    /// mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// The goal of a search, in which each stage depends on those before; `None`: the stages were planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// Users who shared the sessions, with think times between their transactions; `None`: each session was a user.
    #[serde(default)]
    pub terminals: Option<Terminals>,
    /// When a stage was to end.
    pub limit: Limit,
    /// Transactions run but not measured at the start of every stage.
    pub warmup_ns: u64,
    /// Length of an interval. 100 ms <= interval
    pub interval_ns: u64,
    /// Reaction to errors.
    pub policy: Policy,
    /// Worker threads.
    pub workers: u32,
    /// How they talked to the kernel; `None` if there were no sockets, or not known.
    #[serde(default)]
    pub event_loop: Option<EventLoop>,
    /// Whether protocol-level prepared statements were used.
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
    /// A list of texts.
    List(Vec<String>),
}

/// As on the command line.
impl fmt::Display for OptionValue {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Bool(value) => value.fmt(to),
            OptionValue::Int(value) => value.fmt(to),
            OptionValue::Number(value) => value.fmt(to),
            OptionValue::Text(value) => to.write_str(value),
            OptionValue::List(values) => to.write_str(&values.join(",")),
        }
    }
}

fn number_or_text<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() { serializer.serialize_f64(*value) } else { serializer.collect_str(value) }
}

/// When transactions were due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Load {
    /// The next one when the previous one was done.
    #[default]
    Closed,
    /// At a rate, whatever the server did.
    Open {
        /// Transactions per second over all sessions. 0 < rate, finite.
        rate_per_s: f64,
        /// Spacing of due instants.
        arrival: Arrival,
        /// Due transactions that could wait for a session; more were dropped. `None`: no limit.
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
    /// The file.
    pub file: String,
    /// Their number.
    pub arrivals: u64,
}

/// The goal of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Search {
    /// The highest rate that keeps these promises, such as `p99 < 10ms`.
    Rate {
        /// As written.
        promises: Vec<String>,
    },
    /// The number of sessions after which throughput stops growing.
    Sessions {
        /// The largest number tried.
        max: u32,
    },
}

/// Users who shared sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Terminals {
    /// Their number.
    pub number: u32,
    /// Factor for think times. Finite.
    pub think_scale: f64,
}

/// Spacing of an open loop's due instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Evenly spaced.
    Constant,
    /// Exponentially distributed gaps.
    Poisson,
}

/// When a stage ended: whichever came first. Both `None`: when interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Measured time, without warm-up.
    #[serde(default)]
    pub time_ns: Option<u64>,
    /// Measured transactions started, over all sessions.
    #[serde(default)]
    pub transactions: Option<u64>,
}

/// Reaction to errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Codes (errno or SQLSTATE) that failed their transaction but not the run; the single entry `all`: every error.
    pub ignore: Vec<String>,
    /// How often a transaction was retried after a deadlock, serialization failure or lost connection.
    pub retries: u32,
    /// Whether transactions with an ignored error were restarted, without limit, instead of being counted as failed.
    #[serde(default)]
    pub restart_ignored: bool,
    /// Effect of any other error.
    pub on_error: OnError,
    /// How long to keep trying to reconnect.
    #[serde(default)]
    pub reconnect_ns: u64,
}

/// Effect of an error that was neither retried nor ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// It ended the run.
    #[default]
    Stop,
    /// It failed its transaction.
    Continue,
}

/// How the workers talked to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLoop {
    /// `epoll` or `io_uring`.
    pub backend: String,
    /// Why not io_uring, if that was wanted.
    #[serde(default)]
    pub fallback: Option<String>,
    /// Most replies handled between two system calls.
    pub batch_max: u64,
    /// How long a worker looked for replies before it slept.
    #[serde(default)]
    pub polls_ns: u64,
}

/// A rule: how often something must happen in the transactions of a workload, or how long it may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Name for the report.
    pub name: String,
    /// The clause of the workload's specification; may be empty.
    #[serde(default)]
    pub clause: String,
    /// The measured value.
    pub measure: Measure,
    /// Smallest allowed value: a share of one, a mean, or nanoseconds. Finite.
    #[serde(default)]
    pub low: Option<f64>,
    /// Largest allowed value. Finite.
    #[serde(default)]
    pub high: Option<f64>,
}

/// The value that a rule is about. Names are those of counters and of transaction types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Measure {
    /// The share of `part` in `whole`. Either names a counter, or else a transaction type.
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
        /// In millionths: 900,000 is the 90th percentile.
        ppm: u32,
    },
    /// The share of `part` in `whole`, two totals of the tables (`TableTotal`), each as much as it grew during the run.
    TableShare {
        /// Of rows with a property.
        part: String,
        /// Of all such rows.
        whole: String,
    },
    /// How much a total of the tables grew during the run, which must be what was reported. Such a rule has no bounds
    /// of its own.
    Growth {
        /// The total (`TableTotal`).
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Name for the report.
    pub name: String,
    /// The transaction type counted; `None`: all of them.
    #[serde(default)]
    pub of: Option<String>,
    /// Whether transactions rolled back on purpose count, too.
    #[serde(default)]
    pub rolled_back: bool,
    /// The time unit of the rate.
    pub per_ns: u64,
    /// The highest rate that the workload's rules allow. Finite.
    #[serde(default)]
    pub nominal: Option<f64>,
}

/// Where a trial ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The machine of the load generator.
    #[serde(flatten)]
    pub host: Host,
    /// More facts about that machine, by name: kernel settings, limits of this process.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
    /// What the servers reported about themselves, in the order of `Manifest::targets`.
    pub servers: Vec<RecordedServer>,
    /// The server that was started for this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<StartedServer>,
    /// The trial of an experiment that this run was; `None`: it belongs to no experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<RecordedTrial>,
}

/// One server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedServer {
    /// Product name: `PostgreSQL`, `MySQL`, `MariaDB`, `SQLite`.
    pub product: String,
    /// Its version, verbatim.
    pub version: String,
    /// TLS version and cipher; `None` if not encrypted.
    #[serde(default)]
    pub tls: Option<String>,
    /// Where it ran, seen from the generator.
    #[serde(default)]
    pub place: Place,
    /// Settings that affect performance or differ from their defaults, as the server spells them.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Origin of the values that differ, by name, in the server's words: `configuration file`, `COMMAND_LINE`.
    #[serde(default)]
    pub origins: BTreeMap<String, String>,
    /// Facts about a local server's process, data directory and drive, by name.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
}

/// Where a server ran, seen from the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// On another machine, or not known.
    #[default]
    Remote,
    /// On the same machine (loopback address or unix socket): it shared the CPUs with the generator.
    Local,
    /// Inside this process: its CPU time is included in the generator's.
    Embedded,
}
