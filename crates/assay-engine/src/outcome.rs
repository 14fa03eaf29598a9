//! What a run measured, in memory. Files have their own types (assay-record).

use std::collections::BTreeMap;

use assay_script::{Declaration, Key};
use assay_seam::{Class, Code, Nanos, Origin, ServerFacts, StatementError};

use crate::latencies::{Latencies, SparseLatencies};

/// Everything that a run returns.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended.
    pub end: End,
    /// One per stage started, in order.
    pub stages: Vec<StageOutcome>,
    /// Names of the transaction types, the workload's own first. Indexes `Tally::transactions`.
    pub types: Vec<String>,
    /// Names of the counters scripts used. Indexes `Tally::counters`.
    pub counters: Vec<String>,
    /// What the script declared about its transactions: each rule and named rate once.
    pub declarations: Vec<Declaration>,
    /// Keys that the server acknowledged (`assay.acknowledge`), including warm-up, in no particular order.
    pub acknowledged: Vec<Key>,
    /// What each target's server reported about itself, in the order of `Plan::targets`.
    pub servers: Vec<ServerFacts>,
    /// Rows loaded by `Operation::Load` (commands), and the time from the first connect to the end.
    pub loaded: u64,
    /// What sessions did after the last interval and outside transactions, such as the statements of `thread_done`.
    pub outside: Outside,
    /// What `init` did.
    pub before: Outside,
    /// From the start of the run to its end, including connects.
    pub elapsed: Nanos,
    /// Whether all sessions of a command returned success.
    pub success: bool,
}

impl Outcome {
    /// The outcome of a run with this many targets that has just started.
    pub fn nothing_yet(targets: usize) -> Outcome {
        Outcome {
            end: End::Interrupted,
            stages: Vec::new(),
            types: Vec::new(),
            counters: Vec::new(),
            declarations: Vec::new(),
            acknowledged: Vec::new(),
            servers: vec![ServerFacts::default(); targets],
            loaded: 0,
            outside: Outside::default(),
            before: Outside::default(),
            elapsed: Nanos::ZERO,
            success: true,
        }
    }

    /// Whether the run completed its plan and no session returned failure.
    pub fn is_success(&self) -> bool {
        matches!(self.end, End::Complete) && self.success
    }
}

/// A line of the journal: a transaction that succeeded (including warm-up), with the values its script noted.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// When it was due, since the start of the run.
    pub due: Nanos,
    /// When it was begun. due <= sent <= done
    pub sent: Nanos,
    /// When its last answer arrived.
    pub done: Nanos,
    /// By column (`assay.journal`); NaN where there is no value.
    pub values: Vec<f64>,
}

/// Why a run ended.
#[derive(Debug)]
pub enum End {
    /// The plan was completed.
    Complete,
    /// By the user; the outcome has what was done until then.
    Interrupted,
    /// By an error; the outcome has what was done until then.
    Failed(RunError),
}

/// What ended a run early.
#[derive(Debug, Clone)]
pub enum RunError {
    /// A connection could not be opened or reopened.
    Connect {
        /// Index into `Plan::targets`.
        target: usize,
        /// Number of sessions connected by then.
        connected: u32,
        /// Number of sessions in the plan.
        wanted: u32,
        /// The error of the server or the system.
        error: Box<StatementError>,
        /// Position in the script, if the script asked for the connection.
        failure: assay_script::Failure,
    },
    /// A statement failed for good inside a transaction or a command.
    Statement {
        /// Index into `Plan::targets`.
        target: usize,
        /// The transaction type, or the command.
        transaction: String,
        /// How often the transaction had been retried.
        retries: u32,
        /// The server's error.
        error: Box<StatementError>,
        /// Position in the script: Lua's message and traceback.
        failure: assay_script::Failure,
    },
    /// An error in the script.
    Script(assay_script::ScriptError),
    /// Workers did not respond when the run was over and their scripts were interrupted: a C function does not return.
    Held {
        /// Number of workers that are not waited for.
        workers: usize,
        /// Their sessions.
        sessions: u32,
        /// How long they were waited for after the end of the grace period.
        waited: Nanos,
        /// Whether that was in the measured part: then what they measured since their last interval is missing.
        is_measured: bool,
    },
    /// An error of the machine: no event loop, no thread, no descriptor.
    Environment(String),
}

impl RunError {
    /// The cause of `RunError::Held` in words.
    pub fn held(workers: usize, sessions: u32, waited: Nanos, is_measured: bool) -> String {
        let count = |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        format!(
            "{} with {} did not respond within {:.1} s after the end of the grace period{}",
            count(workers as u64, "worker"),
            count(sessions.into(), "session"),
            waited.as_secs_f64(),
            if is_measured { ": results since the last interval are missing" } else { "" }
        )
    }
}

/// One stage's measurements.
#[derive(Debug, Default)]
pub struct StageOutcome {
    /// Active sessions.
    pub sessions: u32,
    /// The stage's own rate (`Stage::rate`).
    pub rate: Option<f64>,
    /// Start of the measured part, since the start of the run.
    pub started: Nanos,
    /// Length of the measured part.
    pub measured: Nanos,
    /// Everything measured, over all targets.
    pub total: Tally,
    /// The same for each target, in the order of `Plan::targets`; empty if there is only one.
    pub targets: Vec<Tally>,
    /// One per interval of the measured part, in order; the last may be shorter.
    pub intervals: Vec<Interval>,
    /// Fewest and most transactions of one session: how evenly sessions were served.
    pub session_transactions: (u64, u64),
    /// Per session, by its number.
    pub by_session: Vec<SessionTally>,
    /// The load generator's own use of resources.
    pub generator: Generator,
}

/// What sessions did outside transactions (in `thread_init`, or in a script's own loop without transactions), and what
/// scripts counted with `sb_counter_inc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// Read, write, other. Not included in `Tally::statements`.
    pub statements: [u64; 3],
    /// Counted by scripts only.
    pub transactions: u64,
    /// Errors: those that scripts count and, with a host, those of statements outside transactions. Not included in
    /// `Tally::errors`.
    pub errors: u64,
    /// Reconnects, counted by scripts only.
    pub reconnects: u64,
}

impl Outside {
    /// Adds those of `other`.
    pub(crate) fn add(&mut self, other: &Outside) {
        for (ours, theirs) in self.statements.iter_mut().zip(other.statements) {
            *ours += theirs;
        }
        self.transactions += other.transactions;
        self.errors += other.errors;
        self.reconnects += other.reconnects;
    }

    /// Adds what scripts counted, in the order of `SB_CNT_*`.
    pub(crate) fn add_counters(&mut self, counters: [u64; 8]) {
        let [other, read, write, transactions, errors, reconnects, ..] = counters;
        self.add(&Outside { statements: [read, write, other], transactions, errors, reconnects });
    }
}

/// One session's successful transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionTally {
    /// How many.
    pub transactions: u64,
    /// The sum of their response times.
    pub response: Nanos,
    /// The shortest; zero without transactions.
    pub response_min: Nanos,
    /// The longest.
    pub response_max: Nanos,
}

impl SessionTally {
    /// Adds one transaction.
    pub(crate) fn record(&mut self, response: Nanos) {
        self.add(&SessionTally { transactions: 1, response, response_min: response, response_max: response });
    }

    /// Adds those of `other`.
    pub(crate) fn add(&mut self, other: &SessionTally) {
        if other.transactions == 0 {
            return;
        }
        self.response_min =
            if self.transactions == 0 { other.response_min } else { self.response_min.min(other.response_min) };
        self.response_max = self.response_max.max(other.response_max);
        self.transactions += other.transactions;
        self.response += other.response;
    }
}

/// Counts and latencies of a period.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By transaction type; may be shorter than `Outcome::types`.
    pub transactions: Vec<TransactionTally>,
    /// What scripts counted (`assay.count`) in successful transactions; may be shorter than `Outcome::counters`.
    pub counters: Vec<CounterTally>,
    /// By statement class: read, write, other.
    pub statements: [StatementTally; 3],
    /// Errors of statements and connections, by kind. One entry per error, whatever happened afterwards.
    pub errors: BTreeMap<ErrorKey, ErrorTally>,
    /// When the first and the last successful transaction ended, on the clock of the run.
    pub done: Option<[Nanos; 2]>,
    /// Connections reopened after they were lost.
    pub reconnects: u64,
    /// Transactions that became due; in a closed loop, those started. due = done + rolled back + failed + stopped +
    /// dropped + unstarted + unfinished
    pub due: u64,
    /// Open loop: due, but dropped because of `Load::Open::backlog_max`.
    pub dropped: u64,
    /// Open loop and terminals: due, but not started when the stage ended.
    pub unstarted: u64,
    /// Started, but not finished when the grace period was over.
    pub unfinished: u64,
    /// Ended together with their session because the script wanted that, without being counted: `event` returned
    /// something true.
    pub stopped: u64,
    /// Open loop and terminals: how long a due transaction waited for a free session.
    pub wait: Latencies,
    /// sent − due of every transaction: how late the generator was, without waiting for a free session.
    pub lag: Latencies,
}

/// One type of transaction.
#[derive(Clone, Debug, Default)]
pub struct TransactionTally {
    /// Successful: what throughput counts.
    pub count: u64,
    /// Rolled back on purpose (`assay.rolled_back`): not in `count`, but in the latencies.
    pub rolled_back: u64,
    /// Given up: after an ignored error, too many retries, or an error that was skipped (`OnError::Continue`).
    pub failed: u64,
    /// Number of retries.
    pub retries: u64,
    /// Retries after the answer to a commit was lost: the server may have committed that attempt, too.
    pub retries_in_doubt: u64,
    /// Failed after the answer to a commit was lost: the server may have committed the last attempt.
    pub failed_in_doubt: u64,
    /// done − due, including retries; only of transactions that succeeded or were rolled back on purpose.
    pub response: Latencies,
    /// done − sent.
    pub service: Latencies,
}

impl TransactionTally {
    /// Whether no transaction of this type has ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0 && self.rolled_back == 0 && self.failed == 0
    }
}

/// What a script counted under one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterTally {
    /// Transactions that counted anything.
    pub transactions: u64,
    /// Sum over these transactions.
    pub sum: u64,
    /// Sum of the squares of each transaction's count.
    pub squares: u128,
}

/// One class of statements.
#[derive(Clone, Debug, Default)]
pub struct StatementTally {
    /// Answered without an error.
    pub count: u64,
    /// Answer received − request sent.
    pub service: Latencies,
}

/// The kind of an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorKey {
    /// Where it was raised.
    pub origin: Origin,
    /// Its class.
    pub class: Class,
    /// The server's code.
    pub code: Code,
}

/// How often an error occurred, with its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorTally {
    /// Number of occurrences.
    pub count: u64,
    /// The message of the first occurrence.
    pub message: String,
}

/// What one target did in an interval.
#[derive(Clone, Debug, Default)]
pub struct TargetInterval {
    /// Successful transactions.
    pub transactions: u64,
    /// When the first and the last of them ended.
    pub done: Option<[Nanos; 2]>,
    /// Errors.
    pub errors_by_class: BTreeMap<Class, u64>,
}

/// One reporting interval: everything that finished in it.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Since the start of the measured part.
    pub start: Nanos,
    /// Length of the interval.
    pub length: Nanos,
    /// Successful transactions, by type.
    pub transactions: Vec<u64>,
    /// Statements: read, write, other.
    pub statements: [u64; 3],
    /// Errors.
    pub errors: u64,
    /// Of these, lost connections.
    pub lost: u64,
    /// Retries.
    pub retries: u64,
    /// Failed transactions.
    pub failed: u64,
    /// Reconnects.
    pub reconnects: u64,
    /// What is not in the tallies.
    pub outside: Outside,
    /// Transactions that became due; in a closed loop, those started.
    pub due: u64,
    /// Open loop and terminals: due and waiting for a session at its end.
    pub backlog: u64,
    /// The maximum within the interval. With several workers it is the sum of each worker's maximum: never too low.
    pub backlog_max: u64,
    /// When its first and last successful transaction ended, since the start of the measured part.
    pub done: Option<[Nanos; 2]>,
    /// Errors, including those outside transactions.
    pub errors_by_class: BTreeMap<Class, u64>,
    /// Each target, in the order of the plan; empty if there is only one.
    pub targets: Vec<TargetInterval>,
    /// Transactions in flight at its end.
    pub in_flight: u64,
    /// Of a closed loop: started in the warm-up, and measured if they end in the stage, when they count as `due`.
    pub carried: u64,
    /// Sessions connected and taking transactions at its end.
    pub sessions: u32,
    /// Response times of all types together.
    pub response: SparseLatencies,
    /// CPU time of this process in the interval.
    pub cpu: Nanos,
    /// How long its workers were ready to run but waited for a CPU, in total; `None` if the kernel does not report it.
    pub cpu_wait: Option<Nanos>,
}

/// The load generator's own use of resources during a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Generator {
    /// CPU time of the process in user space.
    pub cpu_user: Nanos,
    /// CPU time of the process in the kernel.
    pub cpu_system: Nanos,
    /// Involuntary context switches: the kernel took the CPU away.
    pub switches_involuntary: u64,
    /// Voluntary ones: we slept.
    pub switches_voluntary: u64,
    /// Turns of the workers' event loops.
    pub turns: u64,
    /// Events handled in them.
    pub events: u64,
    /// How long the workers were ready to run but waited for a CPU, in total; `None` if the kernel does not report it.
    pub cpu_wait: Option<Nanos>,
    /// Share of the measured time, 0 … 1, that the worker with the longest wait waited for a CPU.
    pub longest_wait: Option<f64>,
    /// Share of the measured time, 0 … 1, that the busiest worker was not asleep: on a CPU, or waiting for one.
    pub busiest_worker: f64,
    /// Worker threads.
    pub workers: u32,
    /// Largest resident set of the process so far, bytes.
    pub memory_max: u64,
}

impl Tally {
    /// Adds everything of `other`.
    pub fn add(&mut self, other: &Tally) {
        if self.transactions.len() < other.transactions.len() {
            self.transactions.resize_with(other.transactions.len(), TransactionTally::default);
        }
        for (ours, theirs) in self.transactions.iter_mut().zip(&other.transactions) {
            ours.count += theirs.count;
            ours.rolled_back += theirs.rolled_back;
            ours.failed += theirs.failed;
            ours.retries += theirs.retries;
            ours.retries_in_doubt += theirs.retries_in_doubt;
            ours.failed_in_doubt += theirs.failed_in_doubt;
            ours.response.add(&theirs.response);
            ours.service.add(&theirs.service);
        }
        if self.counters.len() < other.counters.len() {
            self.counters.resize(other.counters.len(), CounterTally::default());
        }
        for (ours, theirs) in self.counters.iter_mut().zip(&other.counters) {
            ours.transactions += theirs.transactions;
            ours.sum = ours.sum.saturating_add(theirs.sum);
            ours.squares = ours.squares.saturating_add(theirs.squares);
        }
        for (ours, theirs) in self.statements.iter_mut().zip(&other.statements) {
            ours.count += theirs.count;
            ours.service.add(&theirs.service);
        }
        for (key, theirs) in &other.errors {
            let ours = self.errors.entry(key.clone()).or_default();
            ours.count += theirs.count;
            if ours.message.is_empty() {
                ours.message.clone_from(&theirs.message);
            }
        }
        if let Some([first, last]) = other.done {
            self.note_done(first, last);
        }
        self.reconnects += other.reconnects;
        self.due += other.due;
        self.dropped += other.dropped;
        self.unstarted += other.unstarted;
        self.unfinished += other.unfinished;
        self.stopped += other.stopped;
        self.wait.add(&other.wait);
        self.lag.add(&other.lag);
    }

    /// Clears all counts, keeps the memory of the histograms.
    pub(crate) fn clear(&mut self) {
        for transaction in &mut self.transactions {
            (transaction.count, transaction.rolled_back, transaction.failed_in_doubt) = (0, 0, 0);
            (transaction.failed, transaction.retries, transaction.retries_in_doubt) = (0, 0, 0);
            transaction.response.clear();
            transaction.service.clear();
        }
        self.counters.fill(CounterTally::default());
        for statement in &mut self.statements {
            statement.count = 0;
            statement.service.clear();
        }
        self.errors.clear();
        self.done = None;
        (self.reconnects, self.due, self.dropped) = (0, 0, 0);
        (self.unstarted, self.unfinished, self.stopped) = (0, 0, 0);
        self.wait.clear();
        self.lag.clear();
    }

    /// Successful transactions ended between these instants, the first and the last of some.
    pub(crate) fn note_done(&mut self, first: Nanos, last: Nanos) {
        let [earliest, latest] = self.done.unwrap_or([first, last]);
        self.done = Some([earliest.min(first), latest.max(last)]);
    }

    /// The tally of transaction type `index`.
    pub(crate) fn transaction(&mut self, index: usize) -> &mut TransactionTally {
        if self.transactions.len() <= index {
            self.transactions.resize_with(index + 1, TransactionTally::default);
        }
        &mut self.transactions[index]
    }

    /// Counts what one transaction counted under counter `index`.
    pub(crate) fn counted(&mut self, index: usize, amount: u64) {
        if self.counters.len() <= index {
            self.counters.resize(index + 1, CounterTally::default());
        }
        let counter = &mut self.counters[index];
        counter.transactions += 1;
        counter.sum = counter.sum.saturating_add(amount);
        counter.squares = counter.squares.saturating_add(u128::from(amount) * u128::from(amount));
    }

    /// Counts an error.
    pub(crate) fn error(&mut self, error: &StatementError) {
        let key = ErrorKey { origin: error.origin, class: error.class, code: error.code.clone() };
        let tally = self.errors.entry(key).or_default();
        tally.count += 1;
        if tally.message.is_empty() {
            tally.message.clone_from(&error.message);
        }
    }
}
