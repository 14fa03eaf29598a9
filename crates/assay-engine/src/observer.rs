//! What a run reports while it is in progress: for the terminal, and for partial records.

use assay_io::Clock;
use assay_script::Report;
use assay_seam::{Nanos, StatementError};

use crate::outcome::{Interval, Line, Outcome, Outside};
use crate::plan::Stage;

/// Watches a run. Called on the coordinating thread, never on the measured path.
pub trait Observer {
    /// Something happened.
    fn notice(&mut self, notice: Notice<'_>);

    /// A session of the run, or the main session, has logged in to this target (index into `Plan::targets`) for the
    /// first time.
    fn logged_in(&mut self, target: usize) {
        let _ = target;
    }

    /// The last report, after `Notice::Ends`, for a hook of the script that runs in the environment of `init` and
    /// `done`.
    fn last_report(&mut self) -> Option<Report> {
        None
    }

    /// Gets ready for a stage, in little time. Returns how long after the call it can start; it is announced before
    /// that (`Notice::StageBegins`).
    fn get_ready(&self) -> Nanos {
        Nanos::ZERO
    }

    /// A stage to run after the last planned one, based on what was measured so far: a search. `None` ends the run.
    fn next_stage(&mut self, so_far: &Outcome) -> Option<Stage> {
        let _ = so_far;
        None
    }

    /// Whether the run was given up, so that `done` does not run.
    fn has_given_up(&self) -> bool {
        false
    }

    /// Whether `Notice::Overdue` would end the program now. If not, the run waits for workers, and the notice is not
    /// sent.
    fn gives_up(&self) -> bool {
        false
    }
}

/// What happened.
#[derive(Debug)]
pub enum Notice<'a> {
    /// Sessions are connecting: the number that is ready, and the total.
    Connecting {
        /// Sessions ready.
        ready: u32,
        /// Sessions wanted for the stage.
        wanted: u32,
    },
    /// The script's `init`, if it has one, has finished: sessions start to get ready.
    Begins {
        /// What `init` did.
        before: Outside,
        /// The clock of the run.
        clock: Clock,
        /// Its start on that clock: all instants of the outcome are relative to it.
        started: Nanos,
    },
    /// Everything is measured and every session has ended; the script's `done` comes next.
    Ends {
        /// Everything.
        outcome: &'a Outcome,
    },
    /// All sessions of a stage are ready, and none has started a transaction. The stage starts next.
    StageReady,
    /// A stage starts (with its warm-up, if it has one). Transactions may be in progress already.
    StageBegins {
        /// Counted from 0.
        stage: usize,
        /// Sessions of it.
        sessions: u32,
        /// The stage's own rate, in a search for the highest rate.
        rate: Option<f64>,
        /// Warm-up before the measured part.
        warmup: Nanos,
        /// When the measured part will begin, since the start of the run.
        measured_from: Nanos,
    },
    /// An interval of the measured part is complete.
    Interval {
        /// Stage it belongs to, counted from 0.
        stage: usize,
        /// What finished in the interval.
        interval: &'a Interval,
        /// Everything so far, for a partial record. `end` is `Interrupted` in it.
        so_far: &'a Outcome,
    },
    /// Workers do not respond although the time of the run and its grace period are over, or after an interrupt:
    /// something in a script, or called by it, holds them. Everything that can be known of the measured part was
    /// reported before.
    Overdue {
        /// The sessions of these workers.
        sessions: u32,
        /// Everything so far.
        so_far: &'a Outcome,
    },
    /// A stage is complete: the last of `so_far.stages`.
    StageEnds {
        /// Counted from 0.
        stage: usize,
        /// Everything so far.
        so_far: &'a Outcome,
    },
    /// A command is loading rows.
    Loading {
        /// Rows loaded.
        rows: u64,
        /// Expected total; 0 if the script has not said.
        expected: u64,
        /// Since the start.
        elapsed: Nanos,
    },
    /// The workload keeps a journal (`assay.journal`): sent when its columns are known, then with lines.
    Journal {
        /// Names of the values in a line.
        columns: &'a [String],
        /// New lines, in the order of each worker's transactions.
        lines: &'a [Line],
        /// This instant, since the start of the run.
        now: Nanos,
    },
    /// The workload keeps a history (`assay.history`): new transactions.
    History {
        /// The isolation level that is checked.
        level: &'a str,
        /// Whole transactions (`assay_isolation::log`); instants count from the start of the run.
        words: &'a [u64],
    },
    /// A message from the script (`assay.log`, `print`).
    Log {
        /// Session number.
        session: u32,
        /// The message.
        text: &'a str,
    },
    /// Something the user should know and may want to act on.
    Warning(Warning),
}

/// Something that the user should know and may want to act on. Typed, so that advice can take into account what was
/// tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A connect took so long that packets must have been lost: the server's connection queue was full.
    SlowConnects {
        /// Index into `Plan::targets`.
        target: usize,
        /// How long it took.
        took: Nanos,
    },
    /// A script has held a worker, and with it that worker's sessions, for more than a second.
    Held {
        /// Among those of this process.
        worker: usize,
        /// `file:line` and function; `None` in a C function that a script has called.
        place: Option<String>,
        /// How long so far.
        held: Nanos,
    },
    /// The run survives an error that somebody should fix. Sent once per target and code.
    Advice {
        /// Index into `Plan::targets`.
        target: usize,
        /// The first such error.
        error: Box<StatementError>,
        /// What to do.
        hint: String,
    },
    /// The server is away; the run keeps trying. Sent once per outage and target.
    Outage {
        /// Index into `Plan::targets`.
        target: usize,
        /// The error of the connect.
        message: String,
    },
    /// The outage is over.
    Recovered {
        /// Index into `Plan::targets`.
        target: usize,
    },
    /// Nothing has come of the preparation of sessions, or of a command, for long. Sent after ten seconds, then after
    /// twice as long, and so on.
    Waiting {
        /// Index into `Plan::targets` of the server that owes an answer; `None` if none does.
        target: Option<usize>,
        /// What is waited for.
        what: &'static str,
        /// How long so far.
        waited: Nanos,
    },
    /// The user interrupted; transactions in flight may finish. A second interrupt quits.
    Finishing {
        /// Transactions in flight, at most.
        in_flight: u32,
    },
}
