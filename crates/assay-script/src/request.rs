//! Requests of sessions and their answers: the whole interface between scripts and the engine.

use assay_seam::{Nanos, Operation, Reply, StatementError};

use crate::rule::Declaration;

/// A session's place in its `State`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// A connection's number within its session, counted from 0 in the order of `drv:connect()` calls; reused only after
/// `Request::Leave`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionNumber(pub u32);

/// What a session wants. Borrowed parts lie in the script's memory and are valid until the session is resumed.
#[derive(Debug)]
pub enum Request<'a> {
    /// Open a connection to a server of the driver with this name: to the one at this place among them, from 1, or with
    /// 0 to the one that is due for the session. Answer: `Done` or `Error`.
    Connect(ConnectionNumber, &'a [u8], u32),
    /// Close it. Answer: `Done`.
    Disconnect(ConnectionNumber),
    /// Close it, and wait until the server has closed its side. Answer: `Done`. Its number may be used again.
    Leave(ConnectionNumber),
    /// Close it and open it again, keeping its prepared statements. Answer: `Done` or `Error`.
    Reconnect(ConnectionNumber),
    /// Run an operation. Answer: `Reply`.
    Operation(ConnectionNumber, Operation<'a>),
    /// Run an execution together with the next one of the connection, where that can be; its answer is not waited for.
    /// Answer: `Proceed(true)` at once, or `Reply` where it was run alone.
    Defer(ConnectionNumber, Operation<'a>),
    /// The same in a pipeline, whatever the execution means (`Connection::pipe`). Answer: as for `Defer`.
    Pipe(ConnectionNumber, Operation<'a>),
    /// What was piped so far is a unit of its own (`Connection::synchronise`). Answer: `Done`, at once.
    Synchronise(ConnectionNumber),
    /// Whether a transaction is open, failed or not. Answer: `Proceed`, at once.
    InTransaction(ConnectionNumber),
    /// Send what was deferred. Answer: `Done` when there was nothing, or `Reply`.
    Flush(ConnectionNumber),
    /// Roll back, as the driver's own doing: it counts as no statement. Answer: `Reply`.
    Rollback(ConnectionNumber),
    /// `thread_init` is through: the session can take transactions. Answer: `Done`, when the run begins.
    Ready,
    /// May the next transaction begin? Ends the one before it, if there was one, as a success.
    /// Answer: `Begin` at the instant it is started, or `Proceed(false)`: leave the loop.
    Next,
    /// The transaction now running is of this type (`assay.transaction`): an index into
    /// `State::transaction_types`. Answer: `Done`, at once.
    Type(u32),
    /// The transaction failed. Answer: `Decision`. With `Retry` the session runs it again, as the same transaction
    /// (same due instant); with `Skip` it is counted as failed and the session asks `Next`.
    Failed(Failure),
    /// `event` returned a truthy value: the session stops without counting that transaction. Answer: `Done`.
    Stop,
    /// Pause. Answer: `Done` afterwards.
    Sleep(Nanos),
    /// The next number, from 0, of the counter of this name that all sessions of the run share. Answer: `Number`.
    Claim(&'a [u8]),
    /// Wait until all sessions of the run arrived here (or ended). Answer: `Done`.
    Barrier,
    /// Tell the user: how much work this command has in all, in rows (`assay.expect(rows)`); added up over sessions.
    /// Answer: `Done`, at once.
    Expect(u64),
    /// Tell the user something (`assay.log`, `print`). Answer: `Done`, at once.
    Log(&'a [u8]),
    /// The script declares something about its transactions (`assay.audit`, `assay.rate`): the first session of each
    /// `State` to do so says it. Answer: `Done`, at once.
    Declare(Declaration),
    /// The session's main function returned; its value (custom commands: `false` is failure). Not resumable.
    Finished {
        /// What the command returned was not `false`.
        success: bool,
    },
    /// An error that nothing in the script caught, outside a transaction. Not resumable.
    Died(Failure),
}

/// The answer that a session gets when it is resumed.
#[derive(Debug)]
pub enum Answer {
    /// First resume of a session; or: what you asked for is done.
    Done,
    /// The server's answer. When it is an error, the verdict says how the script learns of it.
    Reply(Reply, Verdict),
    /// A connection could not be opened: to which of the plan's targets of that driver, from 0.
    Error(Box<StatementError>, usize),
    /// To `Next`: the transaction starts, this long after it was due.
    Begin(Nanos),
    /// To `Next`, `Defer`, `Pipe` and `InTransaction`.
    Proceed(bool),
    /// To `Claim`.
    Number(u64),
    /// To `Failed`.
    Decision(Decision),
    /// To `Ready`: a report is due. The session, one of `Entry::Reports` or `Entry::Main`, says `Ready` again when that
    /// is made.
    Report(Report),
}

/// The numbers of a report, for a script's hook.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// `report_intermediate` or `report_cumulative`: the field of `sysbench.hooks`.
    pub hook: &'static str,
    /// What the hook gets: names and values of its one argument, a table.
    pub stat: Vec<(&'static str, f64)>,
}

/// How a script learns of a statement error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The reply is no error, or the error is raised as a plain Lua error: a string with code and message.
    Fatal,
    /// Raised as a table with `errcode = sysbench.error.RESTART_EVENT`: the transaction should start over.
    Restart,
}

/// What becomes of a failed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it again now (back-off and reconnect are over).
    Retry,
    /// Give it up and go on with the next.
    Skip,
}

/// Why a transaction, or a session, failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The script asked for a restart: a statement error judged `Restart`, or its own `error{errcode=…}`.
    pub restart: bool,
    /// The error came from a database operation of this session (its last error), not from the script.
    pub statement: bool,
    /// Lua's message, with `file:line:` in front where Lua gave one.
    pub message: String,
    /// Stack traceback of the script, frames of our own prelude left out; empty for restarts.
    pub traceback: String,
}
