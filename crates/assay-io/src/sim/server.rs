//! A simulated server: a value called at virtual times, and what it can do.

use assay_seam::{Nanos, TlsFacts};

/// A connection as a server sees it. The same number as the client's `SocketId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u64);

/// A scripted server. `now` is the instant at which the thing happens; `out` answers it.
pub trait ScriptedServer {
    /// Whether a connect at this instant is accepted.
    fn accepts(&mut self, now: Nanos) -> bool {
        let _ = now;
        true
    }

    /// A connection was accepted. Servers that speak first greet here.
    fn connected(&mut self, now: Nanos, peer: PeerId, out: &mut ServerOut) {
        let _ = (now, peer, out);
    }

    /// Bytes arrived: those of one `send`, never joined or split.
    fn received(&mut self, now: Nanos, peer: PeerId, bytes: &[u8], out: &mut ServerOut);

    /// The client starts a TLS handshake. `None`: it is refused. Bytes are not encrypted.
    fn tls(&mut self, now: Nanos, peer: PeerId) -> Option<TlsFacts> {
        let _ = (now, peer);
        None
    }

    /// The client closed the connection. Not called for connections this server closed or reset.
    fn closed(&mut self, now: Nanos, peer: PeerId, out: &mut ServerOut) {
        let _ = (now, peer, out);
    }

    /// The process was killed (`Network::kill`): forget everything that is not on disk.
    fn killed(&mut self, now: Nanos) {
        let _ = now;
    }
}

/// What a server does in response to one call. At first everything concerns the peer of that call and happens
/// immediately; `to` and `after` change that for what follows. Order within a connection is kept whatever the delays.
///
/// ```
/// # use assay_io::sim::ServerOut;
/// # use assay_seam::Nanos;
/// # fn answer(out: &mut ServerOut) {
/// out.reply(b"row").after(Nanos::from_millis(5)).reply(b"done").close();
/// # }
/// ```
#[derive(Debug)]
pub struct ServerOut {
    peer: PeerId,
    after: Nanos,
    pub(super) actions: Vec<(PeerId, Nanos, ServerAction)>,
}

#[derive(Debug)]
pub(super) enum ServerAction {
    Bytes(Vec<u8>),
    Close,
    Reset,
    Stall(Nanos),
}

impl ServerOut {
    pub(super) fn new(peer: PeerId) -> ServerOut {
        ServerOut { peer, after: Nanos::ZERO, actions: Vec::new() }
    }

    /// What follows concerns this connection. Ignored if it is gone.
    pub fn to(&mut self, peer: PeerId) -> &mut ServerOut {
        self.peer = peer;
        self
    }

    /// What follows happens that much later. Adds up.
    pub fn after(&mut self, delay: Nanos) -> &mut ServerOut {
        self.after += delay;
        self
    }

    /// Sends bytes.
    pub fn reply(&mut self, bytes: &[u8]) -> &mut ServerOut {
        self.act(ServerAction::Bytes(bytes.to_vec()))
    }

    /// Closes the connection gracefully, after what was sent before.
    pub fn close(&mut self) -> &mut ServerOut {
        self.act(ServerAction::Close)
    }

    /// Resets the connection.
    pub fn reset(&mut self) -> &mut ServerOut {
        self.act(ServerAction::Reset)
    }

    /// The whole server hangs for this long: it receives and sends nothing on any connection, including what was
    /// scheduled for that time. Connects still succeed, as with a real server whose process hangs. What follows happens
    /// afterwards.
    pub fn stall(&mut self, time: Nanos) -> &mut ServerOut {
        self.act(ServerAction::Stall(time)).after(time)
    }

    fn act(&mut self, action: ServerAction) -> &mut ServerOut {
        self.actions.push((self.peer, self.after, action));
        self
    }
}
