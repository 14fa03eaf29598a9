//! The only crate that touches sockets, the kernel or a clock on the measured path.
//!
//! An engine worker owns one `Io` and is generic over it: `Kernel`, which is `Uring` if the kernel allows it and else
//! `Readiness` (epoll through mio), or `sim`, a virtual network and clock that reproduces a run from its seed.

use std::sync::Arc;

use assay_seam::{Nanos, TlsFacts};

pub mod address;
mod certificate;
pub mod clock;
pub mod dns;
mod kernel;
mod os_error;
pub mod perf;
pub mod process;
pub mod readiness;
mod silence;
pub mod sim;
mod stream;
mod target;
mod timer;
pub mod tls;
mod trouble;
pub mod uring;
pub mod waker;

pub use address::{Address, ConnectError};
pub use clock::Clock;
pub use kernel::{Backend, Kernel, SESSIONS_FOR_URING};
pub use readiness::Readiness;
pub use target::{NeededEndpoints, Target, Unresolved};
pub use tls::Tls;
pub use uring::Uring;
pub use waker::Waker;

/// One worker's event loop. Not `Send`: created in the thread that uses it.
///
/// Use: `wait`, then `next_event` until `None`, then again. A socket is read only while its events are being taken,
/// into one buffer that all sockets share.
pub trait Io {
    /// The current instant, freshly read: time since the epoch that all workers of a run share.
    fn now(&self) -> Nanos;

    /// The instant at which the last `wait` returned: when the bytes of the current events had arrived.
    fn received_at(&self) -> Nanos;

    /// Starts connecting. `Connected` or `Closed` follows. `tls` is used only if `start_tls` is called later.
    fn connect(&mut self, address: &Address, tls: Option<&Arc<Tls>>) -> Result<SocketId, ConnectError>;

    /// Sends in order; what the kernel does not accept now is kept and sent later. Errors arrive as `Closed`. Encrypted
    /// once `Secured` was reported.
    fn send(&mut self, socket: SocketId, bytes: &[u8]);

    /// Starts the TLS handshake after everything sent so far. `Secured` or `Closed` follows.
    fn start_tls(&mut self, socket: SocketId);

    /// Lets the kernel probe the peer's machine while nothing is in flight; `Closed` follows if it did not respond for
    /// `limit`: whole seconds, at least 2. Does nothing for a unix socket.
    fn keep_alive(&mut self, socket: SocketId, limit: Nanos);

    /// For a socket whose peer owes an answer, called several times within `limit`: `Closed` follows if two checks in a
    /// row find that the peer's machine was sent something and has acknowledged nothing for `limit`. A machine does
    /// acknowledge while its server is busy or hangs.
    fn close_if_silent(&mut self, socket: SocketId, limit: Nanos);

    /// Sends what is still pending, as far as the kernel accepts it now, then closes. No event follows.
    fn close(&mut self, socket: SocketId);

    /// Sleeps until something happened or `until` has come (`None`: without limit).
    fn wait(&mut self, until: Option<Nanos>) -> std::io::Result<()>;

    /// How long `wait` has looked for events again and again instead of sleeping, since the beginning.
    fn polled(&self) -> Nanos {
        Nanos::ZERO
    }

    /// The next event; `None` when it is time to `wait` again.
    fn next_event(&mut self) -> Option<IoEvent>;

    /// The bytes of the last `Received` event. Valid until the next call of `next_event`.
    fn received(&self) -> &[u8];

    /// Interrupts this loop's `wait` from another thread.
    fn waker(&self) -> Waker;
}

/// Names a socket of one `Io`. Never reused for another socket within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub u64);

/// What happened.
#[derive(Debug)]
pub enum IoEvent {
    /// The connect succeeded.
    Connected(SocketId),
    /// Bytes arrived, decrypted: see `Io::received`.
    Received(SocketId),
    /// The TLS handshake succeeded.
    Secured(SocketId, TlsFacts),
    /// The socket is gone: connect or handshake refused, reset, closed by the peer. The id is dead.
    Closed(SocketId, Closed),
}

/// Why a socket is gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Closed {
    /// What failed, with the address: `connecting to 127.0.0.1:5432: connection refused`.
    pub message: String,
    /// What to do about it, if known (a limit and how to raise it).
    pub hint: Option<String>,
    /// Whether it failed in the TLS handshake or because of a certificate.
    pub tls: bool,
}
