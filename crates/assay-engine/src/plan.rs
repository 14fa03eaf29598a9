//! What a run will do, decided before it starts.
//!
//! A `Plan` is made of values that vary independently: sessions, load, limits, warm-up, policy, seed. Front ends
//! (`assay run`, the sysbench front) translate their options into it; nothing in here knows an option's name.

use std::ops::Range;
use std::sync::Arc;

use assay_io::{Backend, Target};
use assay_script::{Entry, Program, Setup};
use assay_seam::{Nanos, StatementError};

use crate::fleet::{Agent, Fleet};
use crate::rate::Rate;

/// A whole run: one or more stages of the same workload, or one command of it.
#[derive(Clone)]
pub struct Plan {
    /// The workload.
    pub program: Arc<Program>,
    /// Command, options, seed and names for the script. `setup.sessions` is the largest stage.
    pub setup: Setup,
    /// Servers; sessions are distributed round-robin. At least one. Targets of the same driver are adjacent; a script
    /// that names a driver gets its connections from them.
    pub targets: Vec<Target>,
    /// One per step of the ladder; a plain run has one. At least one. The observer may add more
    /// (`Observer::next_stage`).
    pub stages: Vec<Stage>,
    /// When transactions are due.
    pub load: Load,
    /// When a stage ends.
    pub limit: Limit,
    /// Transactions run but not measured at the start of every stage.
    pub warmup: Nanos,
    /// Length of a reporting interval. 100 ms <= interval.
    pub interval: Nanos,
    /// What to do about errors.
    pub policy: Policy,
    /// How fast sessions connect.
    pub connects: Connects,
    /// OS threads, each with its own event loop. 1 <= workers. In a fleet, those of this process; every agent has as
    /// many.
    pub workers: usize,
    /// The other processes of the run; `None`: there are none. Numbers of sessions, rates and connects are those of
    /// the whole fleet, as is the limit of transactions, and this process does its share.
    pub fleet: Option<Arc<dyn Fleet>>,
    /// The kind of event loop; unused by a run with an `Io` of its own (`run_inline`).
    pub event_loop: EventLoop,
    /// Sessions per Lua state: more make garbage collection pauses longer, fewer need more memory.
    pub sessions_per_state: usize,
    /// How long transactions in flight may take after the end of a stage, and sessions after the last stage.
    pub grace: Nanos,
    /// Grace period after an interrupt. <= grace
    pub grace_interrupted: Nanos,
    /// How long a script may hold its worker before the run ends with an error; a warning names it after one second.
    pub hold_max: Nanos,
}

impl Plan {
    /// Whether something of the script (`init`, `done`, its last report) runs before or after the run, in an
    /// environment of its own.
    pub fn has_main_session(&self) -> bool {
        let program = &self.program;
        let around = program.defines("init") || program.defines("done") || program.hooks("report_cumulative");
        self.setup.entry == Entry::Thread && around
    }

    /// Which of the processes of the run this is.
    pub fn agent(&self) -> Agent {
        self.fleet.as_ref().map_or(Agent::ALONE, |fleet| fleet.agent())
    }

    /// Workers over all agents.
    pub(crate) fn workers_of_all(&self) -> usize {
        self.workers * self.agent().agents as usize
    }

    /// Sessions of this process: those of the largest stage that it drives.
    pub(crate) fn own_sessions(&self) -> u32 {
        self.agent().part_of(self.setup.sessions.into()) as u32
    }

    /// The targets of the driver with this name; `None` if there are none.
    pub(crate) fn targets_of(&self, driver: &[u8]) -> Option<Range<usize>> {
        let of_driver = |target: &Target| target.database.driver().as_bytes() == driver;
        let start = self.targets.iter().position(of_driver)?;
        let count = self.targets[start..].iter().take_while(|target| of_driver(target)).count();
        Some(start..start + count)
    }

    /// The first target of the same driver.
    pub(crate) fn first_like(&self, target: usize) -> usize {
        let driver = self.targets[target].database.driver();
        self.targets.iter().position(|other| other.database.driver() == driver).unwrap_or(target)
    }
}

/// How a worker talks to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLoop {
    /// Its form.
    pub backend: Backend,
    /// Why it is not the cheaper kind, if that one was wanted.
    pub fallback: Option<String>,
    /// Replies handled between two system calls: more of them need less CPU, but the first waits for the last. At least
    /// 1; usually `Backend::batch_default`.
    pub batch_max: usize,
    /// How long a worker looks for replies before it sleeps; 0: not at all.
    pub polls: Nanos,
}

impl EventLoop {
    /// This kind, with its default batch.
    pub fn of(backend: Backend) -> EventLoop {
        EventLoop { backend, fallback: None, batch_max: backend.batch_default(), polls: Nanos(0) }
    }
}

/// One step of a ladder or of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Active sessions. 1 <= sessions <= `Setup::sessions`
    pub sessions: u32,
    /// Transactions due per second in this stage, instead of the rate of `Load::Open`.
    pub rate: Option<f64>,
}

impl Stage {
    /// A stage with this many sessions, under the plan's load.
    pub fn of(sessions: u32) -> Stage {
        Stage { sessions, rate: None }
    }
}

/// When transactions are due.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// The next one when the previous one is done.
    Closed,
    /// As users at terminals want them: the next one when the previous one is done and the user has thought
    /// (`assay.think`). Sessions serve terminals in the order in which their transactions become due.
    Terminals {
        /// Users over all sessions. 1 <= terminals.
        terminals: u32,
        /// Factor for think times. 0 <= think_scale.
        think_scale: f64,
    },
    /// At a rate, whatever the server does.
    Open {
        /// Transactions per second over all sessions, from the start of the measured part on.
        rate: Rate,
        /// How due instants are spaced.
        arrival: Arrival,
        /// Due transactions that may wait for a session; more are dropped, and counted. `None`: no limit.
        backlog_max: Option<u64>,
    },
    /// At recorded instants, whatever the server does. Nothing is due in the warm-up.
    Trace {
        /// Since the start of the measured part; ascending.
        arrivals: Arc<[Nanos]>,
        /// As in `Open`.
        backlog_max: Option<u64>,
    },
}

/// How the due instants of an open loop are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Evenly spaced.
    Constant,
    /// Exponentially distributed gaps: independent users.
    Poisson,
}

/// When a stage ends: whichever comes first. Both `None`: when interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Measured time, without warm-up.
    pub time: Option<Nanos>,
    /// Measured transactions over all sessions. In a closed loop: started; whichever session is free takes the next.
    /// Otherwise: due, and not dropped, whichever worker is slow. Terminals have equal parts.
    pub transactions: Option<u64>,
}

/// What to do about errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Errors that fail their transaction but not the run.
    pub ignore: Ignore,
    /// How often a transaction is retried after a deadlock, serialization failure or lost connection.
    pub retries: u32,
    /// Restart a transaction whose error is ignored, within the same transaction and without limit, as sysbench does,
    /// instead of counting it as failed.
    pub restart_ignored: bool,
    /// What any other error does.
    pub on_error: OnError,
    /// Whether to roll back an open transaction before it is retried or given up.
    pub rollback: bool,
    /// Whether errors outside transactions count with everything else outside (`Outside`), not with the errors of the
    /// run.
    pub errors_outside_apart: bool,
    /// Whether transactions in flight at the end of the warm-up count although there is a limit of transactions, which
    /// then may be exceeded. Only in a closed loop.
    pub carried_over_count: bool,
    /// Whether a transaction of the script that ends inside a database transaction is an error, which ends the run:
    /// its changes are lost.
    pub must_complete: bool,
    /// Whether a statement that cannot be prepared counts as an error.
    pub failed_prepares_count: bool,
    /// Whether the other sessions run to their end if one cannot get ready, or fails in a command.
    pub failures_are_alone: bool,
    /// Whether a session ends as soon as there are no more transactions for it, and does not stay connected until all
    /// are done. Only in a run of one stage.
    pub sessions_leave_alone: bool,
    /// Whether what a script does at its end (`thread_done`) is limited by the grace period after an interrupt, as
    /// transactions in flight are.
    pub grace_bounds_leaving: bool,
    /// How long to keep trying to reconnect after losing a connection.
    pub reconnect: Nanos,
}

/// Errors that fail their transaction but not the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignore {
    /// These codes: errno or SQLSTATE as text.
    Codes(Vec<String>),
    /// Every statement error.
    All,
}

impl Ignore {
    /// Whether `error` is to be ignored.
    pub fn covers(&self, error: &StatementError) -> bool {
        match self {
            Ignore::All => true,
            Ignore::Codes(codes) => codes.iter().any(|code| {
                *code == error.code.state || (error.code.number != 0 && code.parse() == Ok(error.code.number))
            }),
        }
    }
}

/// What happens after an error that is neither retried nor ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// End the run, with report and record.
    Stop,
    /// Count the transaction as failed and continue.
    Continue,
}

/// How fast sessions connect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connects {
    /// Concurrent connects, over all workers. 1 <= pending_max.
    pub pending_max: usize,
    /// Connects started per second; `None`: no limit.
    pub rate: Option<f64>,
    /// How long one may take, including login, unless the target has a limit of its own.
    pub timeout: Nanos,
    /// A connection is lost if the server's machine has acknowledged nothing for this long: whole seconds, at least 2.
    /// `None`: the kernel decides, after hours.
    pub silence_max: Option<Nanos>,
    /// Which target each connection goes to.
    pub deal: Deal,
}

/// How connections are assigned to targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deal {
    /// All connections of a session go to the same target: sessions take targets in turn.
    BySession,
    /// Each connection goes to the next target, over all sessions; what a session did counts for the target of its
    /// turn.
    ByConnection,
}

/// How many sessions each Lua state should have, for these numbers of sessions and workers; `workers` >= 1.
///
/// Each state has its own compiled code and libraries, half a megabyte, and the longest step of its garbage collection
/// grows with its sessions: 0.1 ms for 256, 0.3 ms for 512. With thousands of sessions on a worker, a transaction waits
/// longer than that for its turn anyway, and memory matters more.
pub fn sessions_per_state(sessions: usize, workers: usize) -> usize {
    sessions.div_ceil(workers).div_ceil(STATES_PER_WORKER).clamp(256, 1024)
}

const STATES_PER_WORKER: usize = 8;
