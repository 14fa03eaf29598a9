//! Measurements: stages, tallies, intervals, and the load generator's own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::latencies::Latencies;
use crate::time::Time;

/// One step of a ladder; a plain run has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Active sessions.
    pub sessions: u32,
    /// In a search for a rate: the stage's own, transactions due per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Start of the measured part.
    pub started: Time,
    /// The same since the start of the run, on the clock of `Telemetry`; `None`: not known.
    #[serde(default)]
    pub start_ns: Option<u64>,
    /// Length of the measured part: the divisor of every rate.
    pub measured_ns: u64,
    /// Everything measured, over all targets.
    pub total: Tally,
    /// The same for each target alone, in the order of `Manifest::targets`; empty when there is only one.
    #[serde(default)]
    pub targets: Vec<Tally>,
    /// Fewest transactions finished by one session.
    pub session_transactions_min: u64,
    /// Most transactions finished by one session.
    pub session_transactions_max: u64,
    /// What the generator did to itself.
    pub generator: Generator,
    /// One per interval of the measured part, in order; the last may be shorter.
    pub intervals: Vec<Interval>,
}

/// Counts and latencies of a stage, or of one target in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// By transaction type, in the order of `Record::types`.
    pub transactions: Vec<TransactionTally>,
    /// Workload counters in transactions that ended well.
    #[serde(default)]
    pub counters: Vec<CounterTally>,
    /// By statement class.
    pub statements: ByClass<StatementTally>,
    /// Errors of statements and connections, one entry per origin, class and code, in this order.
    pub errors: Vec<ErrorTally>,
    /// Connections made again after they were lost.
    pub reconnects: u64,
    /// Transactions that became due; in a closed loop those begun (0 in records of 0.1.0).
    /// due = done + rolled back + failed + stopped + dropped + unstarted + unfinished
    pub due: u64,
    /// Open loop: due, but dropped because of `Load::Open::backlog_max`.
    pub dropped: u64,
    /// Open loop and terminals: due, but not begun when the stage ended.
    pub unstarted: u64,
    /// Begun, but not finished when the grace period was over.
    pub unfinished: u64,
    /// Ended with their session, by the script's wish, without being counted.
    #[serde(default)]
    pub stopped: u64,
    /// Open loop and terminals: how long due transactions waited for a session to be free.
    #[serde(default)]
    pub wait: Latencies,
    /// sent − due of every transaction: how late we were ourselves, waiting for a free session not included.
    pub lag: Latencies,
}

/// One type of transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionTally {
    /// Its name, as in `Record::types`.
    pub name: String,
    /// Finished well: what throughput counts.
    pub count: u64,
    /// Ended rolled back by design: not in `count`, but in the latencies.
    #[serde(default)]
    pub rolled_back: u64,
    /// Given up.
    pub failed: u64,
    /// Runs of it that were started over.
    pub retries: u64,
    /// Those of them after the answer to a commit was lost: the server may have done that run's work too.
    #[serde(default)]
    pub retries_in_doubt: u64,
    /// done − due, retries included; only of those that finished well or rolled back by design.
    pub response: Latencies,
    /// done − sent.
    pub service: Latencies,
}

/// What a workload counted under one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterTally {
    /// Its name.
    pub name: String,
    /// Transactions that counted anything.
    pub transactions: u64,
    /// Sum over them.
    pub sum: u64,
    /// Sum of the squares of what each counted.
    pub squares: u128,
}

/// One value per class of statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByClass<T> {
    /// Statements that return rows.
    pub read: T,
    /// Statements that change rows.
    pub write: T,
    /// BEGIN, COMMIT and everything else.
    pub other: T,
}

/// One class of statements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementTally {
    /// Answered without error.
    pub count: u64,
    /// Answer received − request sent.
    pub service: Latencies,
}

/// One kind of error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorTally {
    /// Who refused: `server`, `network`, `client`, `script`.
    pub origin: String,
    /// What kind of trouble: `deadlock`, `serialization`, `timeout`, `constraint`, `connection`, …
    pub class: String,
    /// The server's errno or extended result code; 0 when there is none.
    pub number: u32,
    /// SQLSTATE; empty when there is none.
    pub state: String,
    /// Times met, whatever became of it.
    pub count: u64,
    /// The first one's words.
    pub message: String,
}

/// One interval: what finished within it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Since the start of the measured part.
    pub start_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// Transactions finished well, by type, in the order of `Record::types`.
    pub transactions: Vec<u64>,
    /// Successful statements.
    pub statements: ByClass<u64>,
    /// Errors met.
    pub errors: u64,
    /// Retries of transactions.
    pub retries: u64,
    /// Failed transactions.
    pub failed: u64,
    /// Reconnects.
    pub reconnects: u64,
    /// Transactions that became due; in a closed loop those begun. `None`: not known.
    #[serde(default)]
    pub due: Option<u64>,
    /// Open loop and terminals: due and waiting for a session at its end.
    pub backlog: u64,
    /// The same at most, at any instant in it; `None`: not known.
    #[serde(default)]
    pub backlog_max: Option<u64>,
    /// When the first transaction in it ended well, since the start of the measured part; `None`: none did, or not
    /// known.
    #[serde(default)]
    pub first_done_ns: Option<u64>,
    /// And the last.
    #[serde(default)]
    pub last_done_ns: Option<u64>,
    /// Errors met, those outside of transactions among them, by the name of their class; empty in records of 0.1.0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_by_class: BTreeMap<String, u64>,
    /// Each server alone, in the order of `Manifest::targets`; empty when there is only one, and in records of 0.1.0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetInterval>,
    /// Sessions connected and taking transactions at its end.
    pub sessions: u32,
    /// CPU time of this process spent in it.
    pub cpu_ns: u64,
    /// How long its workers were ready to run and waited for a CPU, all together; `None`: not known.
    #[serde(default)]
    pub cpu_wait_ns: Option<u64>,
    /// Response times of all types together.
    pub response: Latencies,
}

/// What one of several servers did in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInterval {
    /// Transactions finished well.
    pub transactions: u64,
    /// When the first of them ended, since the start of the measured part; `None`: none did.
    pub first_done_ns: Option<u64>,
    /// And the last.
    pub last_done_ns: Option<u64>,
    /// Errors met, by the name of their class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_by_class: BTreeMap<String, u64>,
}

/// What the generator did to itself during a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generator {
    /// CPU time of the process outside the kernel.
    pub cpu_user_ns: u64,
    /// CPU time of the process in the kernel.
    pub cpu_system_ns: u64,
    /// Context switches: the kernel took the CPU away.
    pub switches_involuntary: u64,
    /// Context switches: we gave it up to wait.
    pub switches_voluntary: u64,
    /// Turns of the workers' event loops.
    pub turns: u64,
    /// Events taken in them.
    pub events: u64,
    /// How long the workers were ready to run and waited for a CPU, all together; `None`: not known.
    #[serde(default)]
    pub cpu_wait_ns: Option<u64>,
    /// Share of the measured time that the worker waited which waited longest, in millionths. <= 1,000,000
    #[serde(default)]
    pub longest_wait_ppm: Option<u32>,
    /// Share of the measured time the busiest worker was not asleep, in millionths. <= 1,000,000
    pub busiest_worker_ppm: u32,
    /// Worker threads.
    pub workers: u32,
    /// Largest resident set of the process so far.
    pub memory_max_bytes: u64,
}
