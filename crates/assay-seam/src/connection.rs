//! One client connection as the engine drives it.
//!
//! A `Connection` is a state machine without a socket: the engine feeds it what arrived, sends what it wrote into
//! `Exchange::out`, and acts on the `Progress` it returns. The same value survives reconnects, including its prepared
//! statements. Embedded databases answer inline.

use crate::effect::Effect;
use crate::endpoint::Endpoint;
use crate::error::{Class, StatementError};
use crate::facts::{ServerFacts, ServerReads, TlsFacts};
use crate::operation::{Operation, Reply};
use crate::rows::RowsPool;
use crate::time::Nanos;

/// What a connection may use during a call. Belongs to the worker and is shared by its connections.
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
    /// Call `on_timeout` after this long, unless the operation is answered before: only time is needed (a busy embedded
    /// database), or time limits the wait.
    Wait(Nanos),
    /// Close this socket, if there is one, and connect again, immediately and without counting an error: the login is
    /// tried in another way (TLS preferred but refused, and the reverse); or the operation in flight needs another
    /// socket, on which the connection sends it (HTTP, where servers close idle sockets).
    Reconnect,
    /// The connection is unusable: login refused, protocol broken, server said goodbye. Close the socket. This error is
    /// also the answer to an operation in flight.
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

/// Ends the statement in progress, if there is one; see `Connection::interrupter`. May be called at any time.
pub type Interrupter = std::sync::Arc<dyn Fn() + Send + Sync>;

/// A client connection. Methods that return `Progress` are called in the order the protocol allows: `on_connected`,
/// then `on_bytes`/`on_secured` until `Ready`; then `execute`, then `on_bytes` until `Reply`. After `on_closed` it
/// starts again with `on_connected`. Nothing a server sends may panic.
pub trait Connection {
    /// The transaction state that the server last reported: true while a transaction is open, failed or not.
    fn in_transaction(&self) -> bool;

    /// What the server reported about itself; complete once `Ready` was returned.
    fn server(&self) -> ServerFacts;

    /// Servers that belong to this one, with itself, as it listed them to a scout: each may become the one to use.
    fn members(&self) -> Vec<Endpoint> {
        Vec::new()
    }

    /// The socket is connected (for an embedded database: open the file). Starts the login.
    fn on_connected(&mut self, exchange: &mut Exchange<'_>) -> Progress;

    /// Bytes arrived (decrypted, in order, split anywhere). Consumes all of them; an incomplete message is kept. Memory
    /// kept between calls is limited to what the message needs, and freed afterwards.
    fn on_bytes(&mut self, bytes: &[u8], exchange: &mut Exchange<'_>) -> Progress;

    /// The TLS handshake requested by `Progress::StartTls` succeeded.
    fn on_secured(&mut self, tls: &TlsFacts, exchange: &mut Exchange<'_>) -> Progress;

    /// The socket is gone (or the connect or the TLS handshake failed): called once for every socket. Forgets
    /// everything tied to the socket, keeps statement texts. Returns whether the connection lives on without it: during
    /// the login or an operation, the caller connects again immediately (sslmode prefer/allow; a request that can be
    /// repeated); otherwise nothing happens until an operation asks for `Progress::Reconnect`.
    fn on_closed(&mut self) -> bool;

    /// The time requested by `Progress::Wait` has passed.
    fn on_timeout(&mut self, exchange: &mut Exchange<'_>) -> Progress;

    /// What the operation in flight, or the last one, does. Asked when its answer is lost, before `on_closed`.
    fn effect(&self) -> Effect {
        Effect::Other
    }

    /// Starts an operation. Only while none is in flight.
    fn execute(&mut self, operation: &Operation<'_>, exchange: &mut Exchange<'_>) -> Progress;

    /// Ends the statement that an embedded database executes, from another thread: it fails as cancelled. `None`: there
    /// is a socket, which the caller can close.
    fn interrupter(&self) -> Option<Interrupter> {
        None
    }

    /// What the server read for the last operation; `None`: it does not say so.
    fn reads(&self) -> Option<ServerReads> {
        None
    }

    /// Whether all rows of the load in flight have been sent: only the answer is missing, and the caller may prepare
    /// more rows meanwhile.
    fn has_sent_rows(&self) -> bool {
        false
    }

    /// Takes a second load while one is in flight, encoded and held until that one is answered: then it is sent at
    /// once, as if it had been executed, or dropped if the first failed. False: it must be executed later. So a server
    /// does not wait while rows are encoded. At most one is held.
    fn load_ahead(&mut self, operation: &Operation<'_>) -> bool {
        let _ = operation;
        false
    }

    /// Holds an execution back, to be sent before the next execution, or by `flush`, and answered with that one: by the
    /// first error of any of them, after which none is executed. Any other operation drops what waits. False: this one
    /// cannot wait here or now, and must be executed. Only while no operation is in flight.
    ///
    /// Only statements inside a transaction that change rows, or start it, can wait; and their total size is limited.
    fn defer(&mut self, operation: &Operation<'_>) -> bool {
        let _ = operation;
        false
    }

    /// The same in a pipeline requested by the script: any execution may wait, even if it returns rows, which nobody
    /// reads. What waits between two calls of `synchronize` is one implicit transaction, if the protocol has them.
    /// False: it cannot wait, and must be executed.
    fn pipe(&mut self, operation: &Operation<'_>) -> bool {
        let _ = operation;
        false
    }

    /// Ends a unit: what comes later is executed even if this unit is refused.
    fn synchronize(&mut self) {}

    /// Sends what waits, if anything; answered like an operation.
    fn flush(&mut self, exchange: &mut Exchange<'_>) -> Progress {
        let _ = exchange;
        Progress::Reply(Reply::default())
    }

    /// Waits for the next message that the server sends unasked to whoever listens (PostgreSQL's NOTIFY), at most this
    /// long. Answered like an operation: by a row with its channel and its text, or by nothing if none came. Those that
    /// came before are kept, up to a limit, and answer at once. Only while no operation is in flight.
    fn notification(&mut self, limit: Nanos, exchange: &mut Exchange<'_>) -> Progress {
        let _ = (limit, exchange);
        let error = StatementError::client(Class::Other, "this database sends no notifications");
        Progress::Reply(Reply::failed(error))
    }

    /// Statements that had waited and were executed since the last call.
    fn take_executed(&mut self) -> Executed {
        Executed::default()
    }

    /// Drops what waits without sending it.
    fn forget_deferred(&mut self) {}

    /// Writes the protocol's goodbye. The engine sends it and closes the socket.
    fn close(&mut self, exchange: &mut Exchange<'_>);
}
