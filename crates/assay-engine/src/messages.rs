//! Messages between the coordinator and the workers: a few per stage and interval.

use assay_measure::Tally;
use assay_script::{Declaration, Key, Report};
use assay_seam::{Nanos, ServerFacts};

use crate::observer::Warning;
use crate::outcome::{Line, Outside, RunError, SessionTally};
use crate::plan::Stage;

/// From the coordinator to a worker.
#[derive(Debug)]
pub(crate) enum WorkerCommand {
    /// Get the sessions of this stage ready (connected, `thread_init` done), then send `Ready`. A command's sessions
    /// start immediately and run to their end.
    Stage { index: usize, stage: Stage },
    /// The stage starts at this instant, with its warm-up.
    Begin(Nanos),
    /// Start no more transactions; send `StageDone` once those in flight have finished, or the grace period is over.
    End,
    /// The user wants to leave: use short grace periods from now on, and start no more transactions.
    Hurry,
    /// Let every session leave its loop and clean up, then send `Finished`.
    Finish,
    /// Say what is waited for (`Message::Waiting`).
    Explain,
    /// Let the session for reports make this one, then send `Ready`.
    Report(Report),
    /// Drop everything now, then send `Finished`.
    Abort,
    /// Cleared tallies for reuse.
    Recycle(Vec<Tally>),
}

/// From a worker to the coordinator.
#[derive(Debug)]
pub(crate) enum Message {
    /// This many sessions of the stage are ready.
    Connected {
        worker: usize,
        ready: u32,
    },
    /// All of them.
    Ready {
        worker: usize,
        /// What the main session did, such as `init`.
        before: Outside,
    },
    /// The next interval, in order.
    Interval {
        worker: usize,
        part: IntervalPart,
    },
    /// The stage is over for this worker; `part` is its last, partial interval.
    StageDone {
        worker: usize,
        part: IntervalPart,
        summary: WorkerStageSummary,
    },
    /// All sessions have ended; `success` if none of them returned failure.
    Finished {
        worker: usize,
        success: bool,
        /// Since the last interval.
        outside: Outside,
    },
    /// What a target's server reported about itself.
    Server {
        target: usize,
        facts: ServerFacts,
    },
    /// Something ended the run.
    Failed(Box<RunError>),
    Declared(Declaration),
    /// What this worker's sessions acknowledged; sent before `Finished`.
    Acknowledged(Vec<Key>),
    /// For the journal, in the order of this worker's transactions. Instants are those of its `Io`.
    Journal(Vec<Line>),
    /// New transactions of the history (`assay_isolation::log`). Instants are those of its `Io`.
    History(Vec<u64>),
    Log {
        session: u32,
        text: String,
    },
    Warning(Warning),
    /// From the watchdog: the run was interrupted (`Control::stop`).
    Stopped,
    /// The answer to `Explain`.
    Waiting {
        /// What its sessions have waited for longest; `None`: for no server.
        longest: Option<Wait>,
    },
}

/// Something that a server has not answered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) target: usize,
    pub(crate) what: &'static str,
    pub(crate) since: Nanos,
}

/// One worker's part of one interval.
#[derive(Debug, Default)]
pub(crate) struct IntervalPart {
    /// By target.
    pub(crate) tallies: Vec<Tally>,
    pub(crate) due: u64,
    pub(crate) dropped: u64,
    /// Due and waiting for a session: at the end of the interval, and the maximum at any instant.
    pub(crate) backlog: u64,
    pub(crate) backlog_max: u64,
    pub(crate) sessions: u32,
    pub(crate) outside: Outside,
    pub(crate) in_flight: u64,
    /// Started before the measured part, and due in it if they end in it; not in `due` yet.
    pub(crate) carried: u64,
    /// Per session of the worker, in their order.
    pub(crate) by_session: Vec<SessionTally>,
}

impl IntervalPart {
    /// How many transactions ended in it, in whatever way.
    pub(crate) fn ended(&self) -> u64 {
        self.dropped + self.tallies.iter().map(Tally::accounted).sum::<u64>()
    }
}

/// One worker's stage as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerStageSummary {
    /// When the last measured transaction finished, or when no more were started, whichever is later; zero if the
    /// worker had no session in the stage.
    pub(crate) end: Nanos,
    pub(crate) unstarted: u64,
    /// Sessions in the stage; fewest and most measured transactions of one of them.
    pub(crate) sessions: u32,
    pub(crate) fewest: u64,
    pub(crate) most: u64,
    pub(crate) turns: u64,
    pub(crate) events: u64,
    /// Time asleep in the event loop while measuring.
    pub(crate) asleep: Nanos,
    /// The part of it in which the event loop polled instead.
    pub(crate) polled: Nanos,
}
