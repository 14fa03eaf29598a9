//! One client as the worker sees it: a coroutine, its connections, and its state.

use assay_random::Random;
use assay_script::{Footprint, Slot};
use assay_seam::{Nanos, StatementError};

use super::recorder::Transaction;
use super::recovery::Recovery;

/// See the module.
pub(super) struct Session {
    pub(super) number: u32,
    /// Its Lua state, and its index there.
    pub(super) state: usize,
    pub(super) slot: Slot,
    pub(super) target: usize,
    pub(super) doing: SessionPhase,
    /// Link of each connection number; `None` once disconnected.
    pub(super) links: Vec<Option<usize>>,
    /// Between `Proceed(true)` and the next `Next`, `Stop` or skipped failure.
    pub(super) transaction: Option<Transaction>,
    /// When the current attempt of it was started, or the one before had failed.
    pub(super) attempt: Nanos,
    /// What the current attempt of it has executed.
    pub(super) footprint: Footprint,
    /// When it last asked for a transaction.
    pub(super) free: Nanos,
    /// The last statement error, until a statement succeeds.
    pub(super) last_error: Option<Box<StatementError>>,
    /// The last error of `Connect`, until one succeeds.
    pub(super) connect_error: Option<Box<StatementError>>,
    pub(super) recovery: Option<Recovery>,
    /// The barrier at which it waits.
    pub(super) barrier: u64,
    /// Serial of the active alarm; older ones are void.
    pub(super) timer: u64,
    pub(super) random: Random,
    pub(super) success: bool,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionPhase {
    /// For a reply, a connection or a pause.
    Waiting,
    /// In `thread_init`; for this session the run has not started.
    Initialized,
    /// Asked for a transaction and has none yet.
    Parked,
    /// In `Sessions::runnable`.
    Queued,
    /// Restoring its connections after a failure.
    Recovering,
    AtBarrier,
    /// For a number that the fleet was asked for.
    Claiming(u64),
    Gone,
}

impl Session {
    /// A new session with this number.
    pub(super) fn new(number: u32, state: usize, slot: Slot, target: usize, seed: u64) -> Session {
        Session {
            number,
            state,
            slot,
            target,
            doing: SessionPhase::Queued,
            links: Vec::new(),
            transaction: None,
            attempt: Nanos::ZERO,
            footprint: Footprint::default(),
            free: Nanos::ZERO,
            last_error: None,
            connect_error: None,
            recovery: None,
            barrier: 0,
            timer: 0,
            random: Random::of_stream(seed, 2_000_000 + u64::from(number)),
            success: true,
        }
    }

    /// The link of a connection number.
    pub(super) fn link(&self, connection: u32) -> Option<usize> {
        self.links.get(connection as usize).copied().flatten()
    }
}
