//! A virtual network and clock: an `Io` that reproduces a run from its seed.
//!
//! Time stands still except in `wait`, which jumps to the next instant at which something is due, and by a fixed cost
//! per event if one is set. Servers are ordinary values (`ScriptedServer`) called at virtual instants; their answers
//! arrive after a latency and are split by the seed. The same seed, servers and calls give the same events at the same
//! instants.
//!
//! Not modeled: full send buffers, bandwidth, loss of single packets, kernel limits, and encryption (`start_tls` asks
//! the server and changes no bytes).

mod server;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_random::Random;
use assay_seam::{Nanos, TlsFacts};

use self::server::ServerAction;
pub use self::server::{PeerId, ScriptedServer, ServerOut};
use crate::{Address, Closed, ConnectError, Io, IoEvent, SocketId, Tls, Waker};

/// Properties of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkSettings {
    /// Determines jitter and where deliveries are split.
    pub seed: u64,
    /// Latency in each direction.
    pub latency: Nanos,
    /// Up to this much is added to the latency of each delivery. Order within a socket is kept.
    pub jitter: Nanos,
    /// Splits what servers send into deliveries of 1 … this many bytes; 0: never split.
    pub split_max: usize,
    /// Cost of handling one event: the clock advances by it, so that a busy loop falls behind.
    pub event_cost: Nanos,
}

impl Default for NetworkSettings {
    /// 100 µs each way, no jitter, nothing split, events for free.
    fn default() -> NetworkSettings {
        NetworkSettings {
            seed: 1,
            latency: Nanos::from_micros(100),
            jitter: Nanos::ZERO,
            split_max: 0,
            event_cost: Nanos::ZERO,
        }
    }
}

/// The virtual network, its clock, its servers and one client's event loop.
pub struct Network {
    settings: NetworkSettings,
    random: Random,
    now: Nanos,
    received_at: Nanos,
    woken: Arc<AtomicBool>,
    hosts: Vec<SimulatedHost>,
    links: BTreeMap<SocketId, SimulatedLink>,
    sockets: u64,
    /// What is due; equal instants in the order they were planned.
    due: BinaryHeap<Reverse<(Nanos, u64, DueWork)>>,
    planned: u64,
    /// Arrived at the client, not taken yet.
    ready: VecDeque<(SocketId, Down)>,
    received: Vec<u8>,
}

struct SimulatedHost {
    address: Address,
    server: Box<dyn ScriptedServer>,
    up: bool,
    /// Since when it takes no packets and sends none.
    vanished: Option<Nanos>,
    /// Between these instants (both excluded) the server does nothing.
    stalls: Vec<(Nanos, Nanos)>,
}

/// One connection. Each queue keeps its order whatever the delays; entries of `Network::due` only say when to take
/// from which.
struct SimulatedLink {
    host: Option<usize>,
    address: Address,
    to_server: VecDeque<Up>,
    arrived_up: Nanos,
    leaving: VecDeque<Down>,
    left: Nanos,
    to_client: VecDeque<Down>,
    arrived_down: Nanos,
    /// The server knows this connection.
    serving: bool,
    /// Whether the client has neither closed it nor been told that it is closed.
    open: bool,
    /// How long its host may be silent while nothing is in flight.
    keep_alive: Option<Nanos>,
    /// Something was sent to a host that had vanished.
    unacknowledged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DueWork {
    /// Something of the client's reaches the server.
    Up(SocketId),
    /// Something leaves the server.
    Leave(SocketId),
    /// Something reaches the client.
    Down(SocketId),
    /// The client's kernel gives up probing an idle peer.
    Silent(SocketId),
    Kill(usize),
    Restart(usize),
    Vanish(usize),
}

enum Up {
    Connect,
    /// The server's turn to see a connection that its machine has accepted.
    Accepted,
    Bytes(Vec<u8>),
    StartTls,
    Close,
}

enum Down {
    Connected,
    Refused,
    Bytes(Vec<u8>),
    Secured(TlsFacts),
    NoTls,
    Close,
    Reset,
    Silent,
}

impl Network {
    /// An empty network at instant zero.
    pub fn new(settings: NetworkSettings) -> Network {
        Network {
            random: Random::new(settings.seed),
            settings,
            now: Nanos::ZERO,
            received_at: Nanos::ZERO,
            woken: Arc::default(),
            hosts: Vec::new(),
            links: BTreeMap::new(),
            sockets: 0,
            due: BinaryHeap::new(),
            planned: 0,
            ready: VecDeque::new(),
            received: Vec::new(),
        }
    }

    /// Adds a server. To inspect it afterwards, let it share its state (`Rc`).
    pub fn listen(&mut self, address: Address, server: Box<dyn ScriptedServer>) {
        assert!(self.host(&address).is_none(), "{address} is taken");
        self.hosts.push(SimulatedHost { address, server, up: true, vanished: None, stalls: Vec::new() });
    }

    /// At `at` the server is gone: connections are reset, new ones refused, pending output is not sent.
    pub fn kill(&mut self, address: &Address, at: Nanos) {
        let host = self.host(address).expect("somebody listens there");
        self.plan(at, DueWork::Kill(host));
    }

    /// At `at` a killed server accepts connections again.
    pub fn restart(&mut self, address: &Address, at: Nanos) {
        let host = self.host(address).expect("somebody listens there");
        self.plan(at, DueWork::Restart(host));
    }

    /// From `at` on the server's host neither receives nor sends a packet, for good: it lost its power.
    pub fn vanish(&mut self, address: &Address, at: Nanos) {
        let host = self.host(address).expect("somebody listens there");
        self.plan(at, DueWork::Vanish(host));
    }

    fn host(&self, address: &Address) -> Option<usize> {
        self.hosts.iter().position(|host| host.address == *address)
    }

    fn plan(&mut self, at: Nanos, due: DueWork) {
        self.planned += 1;
        self.due.push(Reverse((at, self.planned, due)));
    }

    fn travel(&mut self) -> Nanos {
        self.settings.latency + Nanos(self.random.below(self.settings.jitter.0.saturating_add(1)))
    }

    fn go_up(&mut self, id: SocketId, what: Up) {
        let travel = self.travel();
        let Some(link) = self.links.get_mut(&id).filter(|link| link.open) else { return };
        link.unacknowledged |= link.host.is_some_and(|host| self.hosts[host].vanished.is_some());
        link.arrived_up = link.arrived_up.max(self.now + travel);
        link.to_server.push_back(what);
        let at = link.arrived_up;
        self.plan(at, DueWork::Up(id));
    }

    fn go_down(&mut self, at: Nanos, id: SocketId, what: Down) {
        let travel = self.travel();
        let Some(link) = self.links.get_mut(&id) else { return };
        link.arrived_down = link.arrived_down.max(at + travel);
        link.to_client.push_back(what);
        let at = link.arrived_down;
        self.plan(at, DueWork::Down(id));
    }

    /// Makes everything happen that is due by now.
    fn settle(&mut self) {
        while let Some(&Reverse((at, _, due))) = self.due.peek()
            && at <= self.now
        {
            self.due.pop();
            match due {
                DueWork::Up(id) => self.up(at, id),
                DueWork::Leave(id) => self.leave(at, id),
                DueWork::Down(id) => self.down(id),
                DueWork::Kill(host) => self.killed(at, host),
                DueWork::Restart(host) => self.hosts[host].up = true,
                DueWork::Vanish(host) => self.vanished(at, host),
                DueWork::Silent(id) => self.silent(id),
            }
        }
    }

    /// Until when the server of a link hangs, if it does.
    fn stalled(&self, at: Nanos, id: SocketId) -> Option<Nanos> {
        let host = &self.hosts[self.links.get(&id)?.host?];
        host.stalls.iter().filter(|(from, until)| *from < at && at < *until).map(|(_, until)| *until).max()
    }

    fn up(&mut self, at: Nanos, id: SocketId) {
        let stalled = self.stalled(at, id);
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(what) = link.to_server.pop_front() else { return };
        if link.host.is_some_and(|host| self.hosts[host].vanished.is_some()) {
            return;
        }
        // The kernel of a stalled server still completes connects; everything else waits.
        if let Some(until) = stalled
            && !matches!(what, Up::Connect)
        {
            link.to_server.push_front(what);
            return self.plan(until, DueWork::Up(id));
        }
        let host = link.host.map(|host| &mut self.hosts[host]);
        match what {
            Up::Connect => {
                let accepted = host.is_some_and(|host| host.up && host.server.accepts(at));
                if accepted {
                    link.serving = true;
                    link.to_server.push_front(Up::Accepted);
                    self.plan(at, DueWork::Up(id));
                }
                self.go_down(at, id, if accepted { Down::Connected } else { Down::Refused });
            }
            Up::Accepted => self.serve(at, id, |server, out| server.connected(at, PeerId(id.0), out)),
            Up::Bytes(bytes) => self.serve(at, id, |server, out| server.received(at, PeerId(id.0), &bytes, out)),
            Up::StartTls => {
                if let Some(host) = host.filter(|_| link.serving) {
                    let answer = host.server.tls(at, PeerId(id.0)).map_or(Down::NoTls, Down::Secured);
                    self.go_down(at, id, answer);
                }
            }
            Up::Close => {
                if link.serving {
                    self.serve(at, id, |server, out| server.closed(at, PeerId(id.0), out));
                }
                self.links.remove(&id);
            }
        }
    }

    fn serve(&mut self, at: Nanos, id: SocketId, call: impl FnOnce(&mut dyn ScriptedServer, &mut ServerOut)) {
        let link = &self.links[&id];
        let Some(host) = link.host.filter(|_| link.serving) else { return };
        let mut out = ServerOut::new(PeerId(id.0));
        call(&mut *self.hosts[host].server, &mut out);
        for (peer, after, action) in out.actions {
            let id = SocketId(peer.0);
            let what = match action {
                ServerAction::Bytes(bytes) => Down::Bytes(bytes),
                ServerAction::Close => Down::Close,
                ServerAction::Reset => Down::Reset,
                ServerAction::Stall(time) => {
                    self.hosts[host].stalls.push((at + after, at + after + time));
                    continue;
                }
            };
            let Some(link) = self.links.get_mut(&id).filter(|link| link.serving && link.host == Some(host)) else {
                continue;
            };
            link.left = link.left.max(at + after);
            link.leaving.push_back(what);
            let at = link.left;
            self.plan(at, DueWork::Leave(id));
        }
    }

    fn leave(&mut self, at: Nanos, id: SocketId) {
        if let Some(until) = self.stalled(at, id) {
            return self.plan(until, DueWork::Leave(id));
        }
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(what) = link.leaving.pop_front() else { return };
        if link.host.is_some_and(|host| self.hosts[host].vanished.is_some()) {
            return;
        }
        match what {
            Down::Bytes(bytes) if self.settings.split_max > 0 => {
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let most = self.settings.split_max.min(rest.len()) as u64;
                    let (piece, others) = rest.split_at(1 + self.random.below(most) as usize);
                    self.go_down(at, id, Down::Bytes(piece.to_vec()));
                    rest = others;
                }
            }
            Down::Close | Down::Reset => {
                link.serving = false;
                link.leaving.clear();
                self.go_down(at, id, what);
            }
            what => self.go_down(at, id, what),
        }
    }

    fn down(&mut self, id: SocketId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if let Some(what) = link.to_client.pop_front()
            && link.open
        {
            self.ready.push_back((id, what));
        }
    }

    fn killed(&mut self, at: Nanos, host: usize) {
        self.hosts[host].up = false;
        self.hosts[host].stalls.clear();
        self.hosts[host].server.killed(at);
        let links = self.links.iter_mut().filter(|(_, link)| link.host == Some(host) && link.serving);
        let reset: Vec<SocketId> = links
            .map(|(id, link)| {
                link.serving = false;
                link.leaving.clear();
                *id
            })
            .collect();
        for id in reset {
            self.go_down(at, id, Down::Reset);
        }
    }

    fn vanished(&mut self, at: Nanos, host: usize) {
        self.hosts[host].vanished = Some(at);
        let links = self.links.iter().filter(|(_, link)| link.host == Some(host) && link.open);
        let asked: Vec<_> = links.filter_map(|(id, link)| Some((*id, link.keep_alive?))).collect();
        for (id, limit) in asked {
            self.plan(at + limit, DueWork::Silent(id));
        }
    }

    /// While bytes are unacknowledged the kernel does not probe: it retransmits them.
    fn silent(&mut self, id: SocketId) {
        if self.links.get(&id).is_some_and(|link| link.open && !link.unacknowledged) {
            self.ready.push_back((id, Down::Silent));
        }
    }

    fn gone(&mut self, id: SocketId, message: impl FnOnce(&Address) -> String, tls: bool) -> IoEvent {
        let message = self.links.get(&id).map_or_else(String::new, |link| message(&link.address));
        self.close(id);
        IoEvent::Closed(id, Closed { message, hint: None, tls })
    }
}

impl Io for Network {
    fn now(&self) -> Nanos {
        self.now
    }

    fn received_at(&self) -> Nanos {
        self.received_at
    }

    /// Never fails; if nobody listens, the connect is refused.
    fn connect(&mut self, address: &Address, _: Option<&Arc<Tls>>) -> Result<SocketId, ConnectError> {
        let id = SocketId(self.sockets);
        self.sockets += 1;
        let link = SimulatedLink {
            host: self.host(address),
            address: address.clone(),
            to_server: VecDeque::new(),
            arrived_up: Nanos::ZERO,
            leaving: VecDeque::new(),
            left: Nanos::ZERO,
            to_client: VecDeque::new(),
            arrived_down: Nanos::ZERO,
            serving: false,
            open: true,
            keep_alive: None,
            unacknowledged: false,
        };
        self.links.insert(id, link);
        self.go_up(id, Up::Connect);
        Ok(id)
    }

    fn send(&mut self, id: SocketId, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.go_up(id, Up::Bytes(bytes.to_vec()));
        }
    }

    fn start_tls(&mut self, id: SocketId) {
        self.go_up(id, Up::StartTls);
    }

    fn keep_alive(&mut self, id: SocketId, limit: Nanos) {
        if let Some(link) = self.links.get_mut(&id) {
            link.keep_alive = Some(limit);
        }
    }

    fn close_if_silent(&mut self, id: SocketId, limit: Nanos) {
        let Some(link) = self.links.get(&id) else { return };
        let since = link.host.and_then(|host| self.hosts[host].vanished);
        if link.unacknowledged && since.is_some_and(|since| self.now - since >= limit) {
            self.ready.push_back((id, Down::Silent));
        }
    }

    fn close(&mut self, id: SocketId) {
        self.go_up(id, Up::Close);
        if let Some(link) = self.links.get_mut(&id) {
            link.open = false;
        }
    }

    /// Fails if nothing is due and no instant is given: a real loop would sleep forever.
    fn wait(&mut self, until: Option<Nanos>) -> io::Result<()> {
        loop {
            self.settle();
            let woken = self.woken.swap(false, Ordering::Acquire);
            if woken || !self.ready.is_empty() || until.is_some_and(|until| until <= self.now) {
                break;
            }
            let due = self.due.peek().map(|Reverse((at, ..))| *at);
            let next = due.into_iter().chain(until).min();
            self.now = next.ok_or_else(|| io::Error::other("the simulation waits for something that never comes"))?;
        }
        self.received_at = self.now;
        Ok(())
    }

    fn next_event(&mut self) -> Option<IoEvent> {
        loop {
            let (id, what) = self.ready.pop_front()?;
            if !self.links.get(&id).is_some_and(|link| link.open) {
                continue;
            }
            self.now += self.settings.event_cost;
            return Some(match what {
                Down::Connected => IoEvent::Connected(id),
                Down::Bytes(bytes) => {
                    self.received = bytes;
                    IoEvent::Received(id)
                }
                Down::Secured(facts) => IoEvent::Secured(id, facts),
                Down::Refused => self.gone(id, |to| format!("connecting to {to}: connection refused"), false),
                Down::NoTls => self.gone(id, |to| format!("{to} does not speak TLS"), true),
                Down::Close => self.gone(id, |to| format!("{to} closed the connection"), false),
                Down::Reset => {
                    self.gone(id, |to| format!("lost the connection to {to}: connection reset by peer"), false)
                }
                Down::Silent => {
                    self.gone(id, |to| format!("lost the connection to {to}: its host no longer answers"), false)
                }
            });
        }
    }

    fn received(&self) -> &[u8] {
        &self.received
    }

    fn waker(&self) -> Waker {
        Waker::flag(Arc::clone(&self.woken))
    }
}

#[cfg(test)]
mod tests;
