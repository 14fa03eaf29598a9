//! Measurements: stages, tallies, intervals, and the load generator's own use of resources.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::latencies::Latencies;
use crate::time::Time;

/// One step of a ladder; a plain run has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Active sessions.
    pub sessions: u32,
    /// In a search for the highest rate: the stage's own rate, transactions due per second.
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
    /// The same for each target, in the order of `Manifest::targets`; empty if there is only one.
    #[serde(default)]
    pub targets: Vec<Tally>,
    /// Fewest successful transactions of one session.
    pub session_transactions_min: u64,
    /// Most successful transactions of one session.
    pub session_transactions_max: u64,
    /// The load generator's own use of resources.
    pub generator: Generator,
    /// One per interval of the measured part, in order; the last may be shorter.
    pub intervals: Vec<Interval>,
}

/// Counts and latencies of a stage, or of one target in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// By transaction type, in the order of `Record::types`.
    pub transactions: Vec<TransactionTally>,
    /// Workload counters in successful transactions.
    #[serde(default)]
    pub counters: Vec<CounterTally>,
    /// By statement class.
    pub statements: ByClass<StatementTally>,
    /// Errors of statements and connections, one entry per origin, class and code, in this order.
    pub errors: Vec<ErrorTally>,
    /// Connections reopened after they were lost.
    pub reconnects: u64,
    /// Transactions that became due; in a closed loop, those started (0 in records of 0.1.0). due = done + rolled back
    /// + failed + stopped + dropped + unstarted + unfinished
    pub due: u64,
    /// Open loop: due, but dropped because of `Load::Open::backlog_max`.
    pub dropped: u64,
    /// Open loop and terminals: due, but not started when the stage ended; in the last stage of a partial record, at
    /// its end.
    pub unstarted: u64,
    /// Started, but not finished when the grace period was over; in the last stage of a partial record, at its end.
    pub unfinished: u64,
    /// Ended together with their session because the script wanted that, without being counted.
    #[serde(default)]
    pub stopped: u64,
    /// Open loop and terminals: how long due transactions waited for a free session.
    #[serde(default)]
    pub wait: Latencies,
    /// sent − due of every transaction: how late the generator was, without waiting for a free session.
    pub lag: Latencies,
}

/// One type of transaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionTally {
    /// Its name, as in `Record::types`.
    pub name: String,
    /// Successful: what throughput counts.
    pub count: u64,
    /// Rolled back on purpose: not in `count`, but in the latencies.
    #[serde(default)]
    pub rolled_back: u64,
    /// Given up.
    pub failed: u64,
    /// Number of retries.
    pub retries: u64,
    /// Retries after the answer to a commit was lost: the server may have committed that attempt, too.
    #[serde(default)]
    pub retries_in_doubt: u64,
    /// Failed after the answer to a commit was lost: the server may have committed the last attempt.
    #[serde(default)]
    pub failed_in_doubt: u64,
    /// done − due, including retries; only of transactions that succeeded or were rolled back on purpose.
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
    /// Sum over these transactions.
    pub sum: u64,
    /// Sum of the squares of each transaction's count.
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
    /// Answered without an error.
    pub count: u64,
    /// Answer received − request sent.
    pub service: Latencies,
}

/// One kind of error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorTally {
    /// Where it was raised: `server`, `network`, `client`, `script`.
    pub origin: String,
    /// Class of the error: `deadlock`, `serialization`, `timeout`, `constraint`, `connection`, …
    pub class: String,
    /// The server's errno or extended result code; 0 if there is none.
    pub number: u32,
    /// SQLSTATE; empty if there is none.
    pub state: String,
    /// Occurrences, whatever happened afterwards.
    pub count: u64,
    /// The message of the first occurrence.
    pub message: String,
}

/// One interval: everything that finished in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Since the start of the measured part.
    pub start_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// Successful transactions, by type, in the order of `Record::types`.
    pub transactions: Vec<u64>,
    /// Successful statements.
    pub statements: ByClass<u64>,
    /// Errors.
    pub errors: u64,
    /// Retries of transactions.
    pub retries: u64,
    /// Failed transactions.
    pub failed: u64,
    /// Reconnects.
    pub reconnects: u64,
    /// Transactions that became due; in a closed loop, those started. `None`: not known.
    #[serde(default)]
    pub due: Option<u64>,
    /// Open loop and terminals: due and waiting for a session at its end.
    pub backlog: u64,
    /// The maximum at any instant in it; `None`: not known.
    #[serde(default)]
    pub backlog_max: Option<u64>,
    /// When its first successful transaction ended, since the start of the measured part; `None`: there was none, or
    /// not known.
    #[serde(default)]
    pub first_done_ns: Option<u64>,
    /// The same for its last.
    #[serde(default)]
    pub last_done_ns: Option<u64>,
    /// Errors, including those outside transactions, by the name of their class; empty in records of 0.1.0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_by_class: BTreeMap<String, u64>,
    /// Each server, in the order of `Manifest::targets`; empty if there is only one, and in records of 0.1.0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetInterval>,
    /// Sessions connected and taking transactions at its end.
    pub sessions: u32,
    /// CPU time of this process in the interval.
    pub cpu_ns: u64,
    /// How long its workers were ready to run but waited for a CPU, in total; `None`: not known.
    #[serde(default)]
    pub cpu_wait_ns: Option<u64>,
    /// Response times of all types together.
    pub response: Latencies,
}

/// One of several servers in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInterval {
    /// Successful transactions.
    pub transactions: u64,
    /// When the first of them ended, since the start of the measured part; `None`: there was none.
    pub first_done_ns: Option<u64>,
    /// The same for the last.
    pub last_done_ns: Option<u64>,
    /// Errors, by the name of their class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_by_class: BTreeMap<String, u64>,
}

/// The load generator's own use of resources during a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generator {
    /// CPU time of the process outside the kernel.
    pub cpu_user_ns: u64,
    /// CPU time of the process in the kernel.
    pub cpu_system_ns: u64,
    /// Involuntary context switches: the kernel took the CPU away.
    pub switches_involuntary: u64,
    /// Voluntary ones: we waited.
    pub switches_voluntary: u64,
    /// Turns of the workers' event loops.
    pub turns: u64,
    /// Events handled in them.
    pub events: u64,
    /// How long the workers were ready to run but waited for a CPU, in total; `None`: not known.
    #[serde(default)]
    pub cpu_wait_ns: Option<u64>,
    /// Share of the measured time, in millionths, that the worker with the longest wait waited for a CPU. <= 1,000,000
    #[serde(default)]
    pub longest_wait_ppm: Option<u32>,
    /// Share of the measured time, in millionths, that the busiest worker was not asleep. <= 1,000,000
    pub busiest_worker_ppm: u32,
    /// Worker threads.
    pub workers: u32,
    /// Largest resident set of the process so far.
    pub memory_max_bytes: u64,
}
