//! One client connection as the engine drives it.
//!
//! A `Connection` is a machine without a socket: the engine feeds it what arrived, sends what it wrote into
//! `Exchange::out`, and acts on the `Progress` it returns. The same value survives reconnects; what it knows of
//! prepared statements survives with it. Embedded databases answer inline.

use crate::effect::Effect;
use crate::error::StatementError;
use crate::facts::{ServerFacts, TlsFacts};
use crate::operation::{Operation, Reply, StatementId};
use crate::rows::RowsPool;
use crate::time::Nanos;

/// What a connection may use while it works. Belongs to the worker and is shared by its connections.
pub struct Exchange<'a> {
    /// Bytes to send, appended. The engine sends and clears them after every call.
    pub out: &'a mut Vec<u8>,
    /// Spare row buffers.
    pub pool: &'a mut RowsPool,
    /// The present instant.
    pub now: Nanos,
}

/// What the engine should do next for a connection, after everything in `Exchange::out` was sent.
#[derive(Debug)]
pub enum Progress {
    /// Wait for more bytes.
    Pending,
    /// Send `out`, then do a TLS handshake on the socket, then call `on_secured`.
    StartTls,
    /// Logged in; operations may start.
    Ready,
    /// The operation is answered; the next may start.
    Reply(Reply),
    /// Nothing to wait for but time: call `on_timeout` after this long (a busy embedded database).
    Wait(Nanos),
    /// Close this socket and connect anew, at once and without counting an error: the login is to be tried in
    /// another way (TLS preferred but refused, and the reverse).
    Reconnect,
    /// The connection is unusable: login refused, protocol broken, server said goodbye. Close the socket.
    /// An operation in flight is thereby answered with this error.
    Failed(Box<StatementError>),
}

/// Deferred statements that were executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Those that returned rows.
    pub reads: u32,
    /// Those that changed rows.
    pub writes: u32,
    /// The others.
    pub others: u32,
}

/// A client connection. Methods that return `Progress` are called in the order the protocol allows:
/// `on_connected`, then `on_bytes`/`on_secured` until `Ready`; then `execute`, then `on_bytes` until `Reply`.
/// After `on_closed` it starts again at `on_connected`. Nothing a server sends may panic.
pub trait Connection {
    /// The transaction state the server last reported: true while a transaction is open, failed or not.
    fn in_transaction(&self) -> bool;

    /// What the server said of itself; complete once `Ready` was returned.
    fn server(&self) -> ServerFacts;

    /// The socket is connected (for an embedded database: open the file). Starts the login.
    fn on_connected(&mut self, exchange: &mut Exchange<'_>) -> Progress;

    /// Bytes arrived (decrypted, in order, split anywhere). Consumes all of them; an incomplete message is
    /// kept. Memory kept between calls is bounded by what the message needs, and given back afterwards.
    fn on_bytes(&mut self, bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress;

    /// The TLS handshake asked for by `Progress::StartTls` succeeded.
    fn on_secured(&mut self, tls: &TlsFacts, exchange: &mut Exchange<'_>) -> Progress;

    /// The socket is gone (or the connect failed, or the TLS handshake did). Forgets everything bound to the
    /// socket, keeps statement texts. Says whether login should be tried at once in another way (sslmode prefer/allow).
    fn on_closed(&mut self) -> bool;

    /// The time asked for by `Progress::Wait` has passed.
    fn on_timeout(&mut self, exchange: &mut Exchange<'_>) -> Progress;

    /// What a prepared statement does; one that is not known may do anything.
    fn effect(&self, statement: StatementId) -> Effect {
        let _ = statement;
        Effect::Other
    }

    /// Starts an operation. Only while none is in flight.
    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress;

    /// The rows of the load in flight are on their way, all of them: nothing is left to do but to await the answer, and
    /// the caller may prepare more rows meanwhile.
    fn has_sent_rows(&self) -> bool {
        false
    }

    /// Has an execution wait, to be sent in front of the next execution, or by `flush`, and answered with that: by the
    /// first refusal of any of them, after which none is executed. Any other operation forgets what waits. False: this
    /// one cannot wait here, or not now, and is to be executed. Only while no operation is in flight.
    ///
    /// What waits, does so inside a transaction only, and changes rows or begins it; and the sum of it has a bound.
    fn defer(&mut self, operation: &Operation<'_>) -> bool {
        let _ = operation;
        false
    }

    /// The same in a pipeline that the script asks for itself: whatever the execution means, and with rows that nobody
    /// reads, it may wait. What waits between two calls of `synchronise` is one implicit transaction where the protocol
    /// knows such. False: it cannot wait, and is to be executed.
    fn pipe(&mut self, operation: &Operation<'_>) -> bool {
        let _ = operation;
        false
    }

    /// What waits so far is a unit of its own: what comes later is executed even where that is refused.
    fn synchronise(&mut self) {}

    /// Sends what waits, if anything does; answered as an operation.
    fn flush(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        let _ = exchange;
        Progress::Reply(Reply::default())
    }

    /// Statements that had waited and were executed since this was last asked.
    fn take_executed(&mut self) -> Executed {
        Executed::default()
    }

    /// What waits will not be sent.
    fn forget_deferred(&mut self) {}

    /// Writes the protocol's goodbye. The engine sends it and closes the socket.
    fn close(&mut self, exchange: &mut Exchange<'_>);
}
