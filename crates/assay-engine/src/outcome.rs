//! What a run returns: how it ended, and what it measured, in the types of assay-measure.

use assay_isolation::History;
use assay_measure::{ByClass, Generator, Tally, Work};
use assay_script::{Declaration, Key};
use assay_seam::{Nanos, ServerFacts, StatementError};

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
    /// What all transactions did, with the totals that `init` and `done` read; by the indices of `types` and
    /// `counters`.
    pub work: Work,
    /// Keys that the server acknowledged (`assay.acknowledge`), including warm-up, in no particular order.
    pub acknowledged: Vec<Key>,
    /// The history of transactions whose operations were noted (`assay.history`), including warm-up. Instants count
    /// from the start of the run.
    pub history: History,
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
            work: Work::default(),
            acknowledged: Vec::new(),
            history: History::new(),
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
    /// Measurements of each target, in the order of `Plan::targets`; empty if there is only one.
    pub targets: Vec<Tally>,
    /// One per interval of the measured part, in order; the last may be shorter.
    pub intervals: Vec<Interval>,
    /// Fewest and most transactions of one session: how evenly sessions were served.
    pub session_transactions: (u64, u64),
    /// Per session, by its number.
    pub by_session: Vec<SessionTally>,
    /// The load generator's own use of resources.
    pub generator: Generator,
    /// When the process did not run, since the start of the run, from and to, ascending; `None`: unknown.
    pub halts: Option<Vec<(Nanos, Nanos)>>,
}

/// What sessions did outside transactions (in `thread_init`, or in a script's own loop without transactions), and what
/// scripts counted with `sb_counter_inc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    /// Not included in `Tally::statements`.
    pub statements: ByClass<u64>,
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
        self.statements.add(&other.statements);
        self.transactions += other.transactions;
        self.errors += other.errors;
        self.reconnects += other.reconnects;
    }

    /// Adds what scripts counted, in the order of `SB_CNT_*`.
    pub(crate) fn add_counters(&mut self, counters: [u64; 8]) {
        let [other, read, write, transactions, errors, reconnects, ..] = counters;
        let statements = ByClass { read, write, other };
        self.add(&Outside { statements, transactions, errors, reconnects });
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

/// One reporting interval.
#[derive(Clone, Debug, Default)]
pub struct Interval {
    /// Everything that finished in it.
    pub measured: assay_measure::Interval,
    /// Lost connections, which are also counted as errors.
    pub lost: u64,
    /// What is not in the tallies.
    pub outside: Outside,
    /// Transactions in flight at its end.
    pub in_flight: u64,
    /// Closed loop: started in the warm-up; if they end in the stage, they are measured and count as `due`.
    pub carried: u64,
}
