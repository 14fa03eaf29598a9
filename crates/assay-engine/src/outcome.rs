//! The measurements of a run in memory. Files have their own types (assay-record).

use std::collections::BTreeMap;

use assay_script::{Declaration, Key};
use assay_seam::{Class, Code, Nanos, Origin, ServerFacts, StatementError};

use crate::latencies::{Latencies, SparseLatencies};

/// Everything a run has to say.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended.
    pub end: End,
    /// One per stage begun, in order.
    pub stages: Vec<StageOutcome>,
    /// Names of the transaction types, the workload's own first. Indexes `Tally::transactions`.
    pub types: Vec<String>,
    /// Names of the counters scripts used. Indexes `Tally::counters`.
    pub counters: Vec<String>,
    /// What the script declared about its transactions: each rule and rate once.
    pub declarations: Vec<Declaration>,
    /// Keys of what the server acknowledged (`assay.acknowledge`), warm-up included, in no order.
    pub acknowledged: Vec<Key>,
    /// What each target's server said of itself, in the order of `Plan::targets`.
    pub servers: Vec<ServerFacts>,
    /// Rows loaded by `Operation::Load` (commands), and the time from the first connect to the end.
    pub loaded: u64,
    /// What sessions did after the last interval and outside of transactions, such as the statements of `thread_done`.
    pub outside: Outside,
    /// What `init` did.
    pub before: Outside,
    /// From the start of the run to its end, connects included.
    pub elapsed: Nanos,
    /// A command's sessions all returned success.
    pub success: bool,
}

impl Outcome {
    /// The outcome of a run with this many targets that has just started.
    pub(crate) fn nothing_yet(targets: usize) -> Outcome {
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

    /// Whether the run did all it was to do and no session returned failure.
    pub fn is_success(&self) -> bool {
        matches!(self.end, End::Complete) && self.success
    }
}

/// A line of the journal: a transaction that ended well, warm-up included, and what its script says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// When it was due, since the start of the run.
    pub due: Nanos,
    /// When it was begun. due <= sent <= done
    pub sent: Nanos,
    /// When its last answer arrived.
    pub done: Nanos,
    /// By column (`assay.journal`); NaN where there is nothing to say.
    pub values: Vec<f64>,
}

/// Why a run ended.
#[derive(Debug)]
pub enum End {
    /// It did all it was to do.
    Complete,
    /// By the user; the outcome holds what was done until then.
    Interrupted,
    /// By an error; the outcome holds what was done until then.
    Failed(RunError),
}

/// What ended a run early.
#[derive(Debug, Clone)]
pub enum RunError {
    /// A connection could not be made, or not be made again.
    Connect {
        /// Index into `Plan::targets`.
        target: usize,
        /// Sessions that were connected by then, and wanted.
        connected: u32,
        /// How many the plan wants.
        wanted: u32,
        /// What the server or the system said.
        error: Box<StatementError>,
        /// Where in the script, when it asked for the connection.
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
        /// What the server said.
        error: Box<StatementError>,
        /// Where in the script: Lua's message and traceback.
        failure: assay_script::Failure,
    },
    /// The script is wrong.
    Script(assay_script::ScriptError),
    /// The machine is in the way: no event loop, no thread, no descriptor.
    Environment(String),
}

/// One stage's measurements.
#[derive(Debug)]
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
    /// The same for each target alone, in the order of `Plan::targets`; empty when there is only one.
    pub targets: Vec<Tally>,
    /// One per interval of the measured part, in order; the last may be shorter.
    pub intervals: Vec<Interval>,
    /// Fewest and most transactions of one session: how evenly sessions were served.
    pub session_transactions: (u64, u64),
    /// What each session did, by its number.
    pub by_session: Vec<SessionTally>,
    /// What the generator did to itself.
    pub generator: Generator,
}

/// What sessions did outside of transactions (in `thread_init`, or in a script's own loop that takes none), and what
/// scripts counted themselves with `sb_counter_inc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// Read, write, other. Not in `Tally::statements`.
    pub statements: [u64; 3],
    /// Counted by scripts alone.
    pub transactions: u64,
    /// Errors: those that scripts count, and with a host those of statements outside of transactions. Not in
    /// `Tally::errors`.
    pub errors: u64,
    /// Connections made again, counted by scripts alone.
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

/// One session's transactions: those that finished well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionTally {
    /// How many.
    pub transactions: u64,
    /// Their response times together.
    pub response: Nanos,
    /// The shortest; zero when there is none.
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

/// Counts and latencies of some span of time.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By transaction type; may be shorter than `Outcome::types`.
    pub transactions: Vec<TransactionTally>,
    /// What scripts counted (`assay.count`) in transactions that ended well; may be shorter than `Outcome::counters`.
    pub counters: Vec<CounterTally>,
    /// By statement class: read, write, other.
    pub statements: [StatementTally; 3],
    /// Errors of statements and connections, by what they were. One entry per error met, whatever became of it.
    pub errors: BTreeMap<ErrorKey, ErrorTally>,
    /// When the first and the last transaction ended well, on the clock of the run.
    pub done: Option<[Nanos; 2]>,
    /// Connections made again after they were lost.
    pub reconnects: u64,
    /// Transactions that became due; in a closed loop, those begun.
    /// due = done + rolled back + failed + stopped + dropped + unstarted + unfinished
    pub due: u64,
    /// Open loop: due, but dropped because of `Load::Open::backlog_max`.
    pub dropped: u64,
    /// Open loop and terminals: due, but not begun when the stage ended.
    pub unstarted: u64,
    /// Begun, but not finished when the grace period was over.
    pub unfinished: u64,
    /// Ended with their session, by the script's wish, without being counted: `event` returned something true.
    pub stopped: u64,
    /// Open loop and terminals: how long a due transaction waited for a session to be free.
    pub wait: Latencies,
    /// sent − due of every transaction: how late we were ourselves, waiting for a free session not included.
    pub lag: Latencies,
}

/// One type of transaction.
#[derive(Clone, Debug, Default)]
pub struct TransactionTally {
    /// Finished well: what throughput counts.
    pub count: u64,
    /// Ended rolled back by design (`assay.rolled_back`): not in `count`, but in the latencies.
    pub rolled_back: u64,
    /// Given up: after an ignored error, too many retries, or an error passed over (`OnError::Continue`).
    pub failed: u64,
    /// Runs of it that were started over.
    pub retries: u64,
    /// Those of them after the answer to a commit was lost: the server may have done that run's work too.
    pub retries_in_doubt: u64,
    /// done − due, retries included; only of those that finished well or rolled back by design.
    pub response: Latencies,
    /// done − sent.
    pub service: Latencies,
}

impl TransactionTally {
    /// Whether none of it has ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0 && self.rolled_back == 0 && self.failed == 0
    }
}

/// What a script counted under one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterTally {
    /// Transactions that counted anything.
    pub transactions: u64,
    /// Sum over them.
    pub sum: u64,
    /// Sum of the squares of what each counted.
    pub squares: u128,
}

/// One class of statements.
#[derive(Clone, Debug, Default)]
pub struct StatementTally {
    /// Answered without error.
    pub count: u64,
    /// Answer received − request sent.
    pub service: Latencies,
}

/// What an error was.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorKey {
    /// Who refused.
    pub origin: Origin,
    /// What kind of trouble.
    pub class: Class,
    /// The server's code.
    pub code: Code,
}

/// How often, and in what words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorTally {
    /// Times met.
    pub count: u64,
    /// The first one's words.
    pub message: String,
}

/// What one target did in an interval.
#[derive(Clone, Debug, Default)]
pub struct TargetInterval {
    /// Transactions finished well.
    pub transactions: u64,
    /// When the first and the last of them ended.
    pub done: Option<[Nanos; 2]>,
    /// Errors met.
    pub errors_by_class: BTreeMap<Class, u64>,
}

/// One reporting interval. Holds what finished within it.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Since the start of the measured part.
    pub start: Nanos,
    /// Its length.
    pub length: Nanos,
    /// Transactions finished well, by type.
    pub transactions: Vec<u64>,
    /// Statements: read, write, other.
    pub statements: [u64; 3],
    /// Errors met.
    pub errors: u64,
    /// Those of them that were lost connections.
    pub lost: u64,
    /// Retries.
    pub retries: u64,
    /// Failed transactions.
    pub failed: u64,
    /// Reconnects.
    pub reconnects: u64,
    /// What is not in the tallies.
    pub outside: Outside,
    /// Transactions that became due; in a closed loop those begun.
    pub due: u64,
    /// Open loop and terminals: due and waiting for a session at its end.
    pub backlog: u64,
    /// The same at most. With several workers the sum of what each had at most within the interval: never too low.
    pub backlog_max: u64,
    /// When the first and the last transaction in it ended well, since the start of the measured part.
    pub done: Option<[Nanos; 2]>,
    /// Errors met, those outside of transactions among them.
    pub errors_by_class: BTreeMap<Class, u64>,
    /// Each target alone, in the order of the plan; empty when there is only one.
    pub targets: Vec<TargetInterval>,
    /// Transactions under way at its end.
    pub in_flight: u64,
    /// Sessions connected and taking transactions at its end.
    pub sessions: u32,
    /// Response times of all types together.
    pub response: SparseLatencies,
    /// CPU time of this process spent in it.
    pub cpu: Nanos,
    /// How long its workers were ready to run in it and waited for a CPU, all together; `None`: the kernel does not
    /// tell.
    pub cpu_wait: Option<Nanos>,
}

/// What the generator did to itself during a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Generator {
    /// CPU time of the process, user and system.
    pub cpu_user: Nanos,
    /// In the kernel.
    pub cpu_system: Nanos,
    /// Context switches: the kernel took the CPU away, or we gave it up.
    pub switches_involuntary: u64,
    /// Gave the CPU up (slept).
    pub switches_voluntary: u64,
    /// Workers' event loop turns, and the events taken in them.
    pub turns: u64,
    /// Events taken.
    pub events: u64,
    /// How long the workers were ready to run and waited for a CPU, all together; `None`: the kernel does not tell.
    pub cpu_wait: Option<Nanos>,
    /// Share of the measured time that the worker waited which waited longest, 0 … 1.
    pub longest_wait: Option<f64>,
    /// Share of the measured time the busiest worker was not asleep, 0 … 1: on a CPU, or waiting for one.
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

    /// Forgets everything counted, keeps the memory of the histograms.
    pub(crate) fn clear(&mut self) {
        for transaction in &mut self.transactions {
            (transaction.count, transaction.rolled_back) = (0, 0);
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

    /// Transactions ended well between these instants, the first and the last of some.
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
