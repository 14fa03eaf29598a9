//! Requests of sessions and their answers: the whole interface between scripts and the engine.

use assay_seam::{Nanos, Operation, Reply, StatementError};

use crate::rule::Declaration;

/// A session's place in its `LuaState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// A connection's number within its session, counted from 0 in the order of `drv:connect()` calls; reused only after
/// `Request::Leave`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionNumber(pub u32);

/// What a session wants. Borrowed parts are in the script's memory and valid until the session is resumed.
#[derive(Debug)]
pub enum Request<'a> {
    /// Open a connection to a server of the driver with this name: to server number n, counted from 1, or for 0 to the
    /// session's next one. Answer: `Done` or `Error`.
    Connect(ConnectionNumber, &'a [u8], u32),
    /// Close it. Answer: `Done`.
    Disconnect(ConnectionNumber),
    /// Close it, and wait until the server has closed its side. Answer: `Done`. Its number may be reused.
    Leave(ConnectionNumber),
    /// Close it and open it again, keeping its prepared statements. Answer: `Done` or `Error`.
    Reconnect(ConnectionNumber),
    /// Run an operation. Answer: `Reply`.
    Operation(ConnectionNumber, Operation<'a>),
    /// Run an execution together with the next one of the connection, if possible, without waiting for its answer.
    /// Answer: `Proceed(true)` immediately, or `Reply` if it was run alone.
    Defer(ConnectionNumber, Operation<'a>),
    /// Executes it in a pipeline, whatever it does (`Connection::pipe`). Answer: as for `Defer`.
    Pipe(ConnectionNumber, Operation<'a>),
    /// The pipeline so far is a unit of its own (`Connection::synchronize`). Answer: `Done`, immediately.
    Synchronize(ConnectionNumber),
    /// Whether a transaction is open, failed or not. Answer: `Proceed`, immediately.
    InTransaction(ConnectionNumber),
    /// What the current attempt of the transaction has executed so far. Answer: `Executed`, immediately.
    Executed,
    /// Send deferred statements. Answer: `Done` if there were none, or `Reply`.
    Flush(ConnectionNumber),
    /// Wait for the server's next notification, at most this long. Answer: `Reply`.
    Notification(ConnectionNumber, Nanos),
    /// `thread_init` has finished: the session can take transactions. Answer: `Done`, when the run starts.
    Ready,
    /// Ask for the next transaction. Ends the previous one, if there was one, as a success. Answer: `Begin` at the
    /// instant it is started, or `Proceed(false)`: leave the loop.
    Next,
    /// The current transaction has this type (`assay.transaction`): an index into `LuaState::transaction_types`.
    /// Answer: `Done`, immediately.
    Type(u32),
    /// The transaction failed. Answer: `Decision`. With `Retry` the session runs it again, as the same transaction
    /// (same due instant); with `Skip` it counts as failed and the session asks for the `Next`.
    Failed(Failure),
    /// `event` returned a truthy value: the session stops without counting that transaction. Answer: `Done`.
    Stop,
    /// Pause. Answer: `Done` afterwards.
    Sleep(Nanos),
    /// The next number, from 0, of the counter with this name, which all sessions of the run share. Answer: `Number`.
    Claim(&'a [u8]),
    /// Wait until all sessions of the run have arrived here (or ended). Answer: `Done`.
    Barrier,
    /// The number of rows that this command will load in total (`assay.expect(rows)`), added up over sessions. Answer:
    /// `Done`, immediately.
    Expect(u64),
    /// A message for the user (`assay.log`, `print`). Answer: `Done`, immediately.
    Log(&'a [u8]),
    /// The script declares something about its transactions (`assay.audit`, `assay.rate`); sent by the first session of
    /// each `LuaState` that does so. Answer: `Done`, immediately.
    Declare(Declaration),
    /// The session's main function returned; its value (custom commands: `false` is failure). Not resumable.
    Finished {
        /// Whether the command returned anything but `false`.
        success: bool,
    },
    /// An error that nothing in the script caught, outside a transaction. Not resumable.
    Died(Failure),
}

/// The answer that a session gets when it is resumed.
#[derive(Debug)]
pub enum Answer {
    /// First resume of a session; or: the request was carried out.
    Done,
    /// The server's answer. If it is an error, the verdict says how the script learns of it.
    Reply(Reply, Verdict),
    /// A connection could not be opened: to which of the plan's targets of that driver, from 0.
    Error(Box<StatementError>, usize),
    /// To `Next`: the transaction starts, this long after it was due.
    Begin(Nanos),
    /// To `Next`, `Defer`, `Pipe` and `InTransaction`.
    Proceed(bool),
    /// To `Claim`.
    Number(u64),
    /// To `Executed`.
    Executed(Footprint),
    /// To `Failed`.
    Decision(Decision),
    /// To `Ready`: a report is due. The session, one of `Entry::Reports` or `Entry::Main`, sends `Ready` again when the
    /// report is made.
    Report(Report),
}

/// What an attempt of a transaction has executed, according to the server's answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Statements that were answered without an error.
    pub statements: u32,
    /// Those that neither found nor left an open database transaction: each was one of its own.
    pub outside: u32,
    /// Database transactions that were opened.
    pub begun: u32,
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
    /// The reply is not an error, or the error is raised as a plain Lua error: a string with code and message.
    Fatal,
    /// Raised as a table with `errcode = sysbench.error.RESTART_EVENT`: the transaction should start over.
    Restart,
}

/// What happens to a failed transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Run it again now (back-off and reconnects are over).
    Retry,
    /// Give it up and continue with the next.
    Skip,
}

/// Why a transaction, or a session, failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The script asked for a restart: a statement error judged `Restart`, or its own `error{errcode=…}`.
    pub restart: bool,
    /// Whether the error came from a database operation of this session (its last error), not from the script.
    pub statement: bool,
    /// Lua's message, preceded by `file:line:` if Lua gave one.
    pub message: String,
    /// Stack traceback of the script, without frames of our own prelude; empty for restarts.
    pub traceback: String,
}
