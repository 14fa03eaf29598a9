//! One connection of a session, as the worker sees it: its state, and what is in flight on it.

use assay_io::SocketId;
use assay_seam::{Connection, Effect, Nanos, Reply, StatementError};

/// One connection of a session.
pub(super) struct Link {
    pub(super) machine: Box<dyn Connection>,
    pub(super) session: usize,
    pub(super) target: usize,
    pub(super) socket: Option<SocketId>,
    pub(super) doing: LinkDoing,
    pub(super) in_flight: InFlight,
    /// Index of the address being tried.
    pub(super) address: usize,
    /// Whether it counts in `Links::connecting`.
    pub(super) pending: bool,
    /// When the operation in flight was sent, or the current connect was started.
    pub(super) sent: Nanos,
    /// Whether the current connect has reached the server's kernel: the login is next.
    pub(super) established: bool,
    /// Whether a transaction was open when the operation in flight was sent.
    pub(super) was_in_transaction: bool,
    /// Why it broke, reported to the next operation.
    pub(super) broken: Option<Box<StatementError>>,
    /// Whether it was open before: connecting again is a reconnect.
    pub(super) was_open: bool,
    /// Within the current recovery.
    pub(super) rolled_back: bool,
    /// Whether statements wait to be sent with the next one, or were sent with the one in flight.
    pub(super) deferred: bool,
    /// Whether some of those waiting belong to a pipeline, and may be anything.
    pub(super) piped: bool,
    pub(super) batch: Batch,
    /// Serial of the active timer; older ones are void.
    pub(super) timer: u64,
}

/// Where a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkDoing {
    /// In the queue, connecting, or logging in.
    Connecting,
    /// Pausing before the next attempt to connect.
    Pausing,
    Idle,
    /// An operation of the script is in flight.
    Operation {
        load: bool,
        /// Whether it executes something, and so counts as a statement.
        statement: bool,
    },
    /// Our own ROLLBACK is in flight.
    Rollback,
    /// We have said goodbye; the server closes its side when it is done.
    Leaving,
    /// No socket; it must connect first.
    Broken,
    /// Disconnected; the slot may be reused.
    Free,
}

/// What the engine knows about the last thing sent that the connection does not.
#[derive(Clone, Copy, Debug)]
pub(super) enum InFlight {
    /// An operation: the connection knows its effect.
    Operation,
    /// Any statements, each committed separately or all together.
    Pipeline,
    /// Something that changes no data, or was deferred, and so is inside a transaction.
    Harmless,
}

/// Who waits for the answer to a load. The script generates the next rows while the server stores these, and asks for
/// the answer (`Request::Flush`) before it does anything else on the connection.
#[derive(Debug, Default)]
pub(super) enum Batch {
    /// The session waits, if one is in flight.
    #[default]
    Awaited,
    /// The session waits until the rows have been sent.
    Sending,
    /// The session continued.
    Unanswered,
    /// It has handed over the next load, which the connection holds, and waits until that is sent.
    Ahead,
    /// It has been answered since.
    Answered(Reply),
}

/// What the end of a script's transaction finds undone on a connection; what comes later is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unfinished {
    /// A database transaction is open, failed or not.
    Transaction,
    /// Nobody has asked for the answer to a load.
    Load,
    /// Statements wait to be sent.
    Deferred,
}

impl Link {
    /// Not connected yet.
    pub(super) fn new(machine: Box<dyn Connection>, session: usize, target: usize) -> Link {
        Link {
            machine,
            session,
            target,
            socket: None,
            doing: LinkDoing::Connecting,
            in_flight: InFlight::Harmless,
            address: 0,
            pending: false,
            sent: Nanos::ZERO,
            established: false,
            was_in_transaction: false,
            broken: None,
            was_open: false,
            rolled_back: false,
            deferred: false,
            piped: false,
            batch: Batch::Awaited,
            timer: 0,
        }
    }

    /// Ready for an operation.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.doing, LinkDoing::Idle | LinkDoing::Operation { .. } | LinkDoing::Rollback)
    }

    /// Whether it has a socket that has not reached the server's kernel.
    pub(super) fn is_connecting(&self) -> bool {
        self.socket.is_some() && !self.established
    }

    /// What a script that says that it is done has left undone here.
    #[inline]
    pub(super) fn unfinished(&self) -> Option<Unfinished> {
        match self.batch {
            _ if self.deferred => Some(Unfinished::Deferred),
            Batch::Awaited => self.machine.in_transaction().then_some(Unfinished::Transaction),
            _ => Some(Unfinished::Load),
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.doing == LinkDoing::Broken
    }

    pub(super) fn is_loading(&self) -> bool {
        matches!(self.doing, LinkDoing::Operation { load: true, .. })
    }

    pub(super) fn is_executing(&self) -> bool {
        matches!(self.doing, LinkDoing::Operation { statement: true, .. })
    }

    /// The operation in flight is over. Returns whether deferred statements were sent with it.
    pub(super) fn finish(&mut self) -> bool {
        self.doing = LinkDoing::Idle;
        std::mem::take(&mut self.deferred)
    }

    /// The transaction on it failed: nothing is rolled back yet, and deferred statements will not be sent.
    pub(super) fn begin_recovery(&mut self) {
        self.rolled_back = false;
        self.piped = false;
        if std::mem::take(&mut self.deferred) {
            self.machine.forget_deferred();
        }
    }

    /// A load is answered without an error, and the next one, which the connection held, is in flight from `at` on.
    /// False: it held none.
    pub(super) fn goes_on_loading(&mut self, at: Nanos) -> bool {
        if !matches!(self.batch, Batch::Ahead) {
            return false;
        }
        self.batch = Batch::Unanswered;
        self.doing = LinkDoing::Operation { load: true, statement: true };
        self.sent = at;
        true
    }

    /// The operation in flight is answered. Returns the reply if a session waits for it; a session that continued finds
    /// it here later.
    #[inline]
    pub(super) fn answered(&mut self, reply: Reply) -> Option<Reply> {
        match std::mem::take(&mut self.batch) {
            Batch::Unanswered => {
                self.batch = Batch::Answered(reply);
                None
            }
            _ => Some(reply),
        }
    }

    /// Whether the operation in flight may have changed something permanently: it commits, or changes something outside
    /// a transaction. Must be asked before the connection learns that its socket is gone.
    pub(super) fn may_have_committed(&self) -> bool {
        match self.in_flight {
            InFlight::Pipeline => return true,
            InFlight::Harmless => return false,
            InFlight::Operation => {}
        }
        let alone = !self.machine.in_transaction() && !self.deferred;
        match self.machine.effect() {
            Effect::Commits => true,
            Effect::ChangesRows | Effect::Other => alone,
            Effect::Begins | Effect::Reads => false,
        }
    }
}
