//! A proxy on loopback in front of a server, which damages what passes through it: a bad network, as a client sees it.
//!
//! Each connection has two threads, one per direction. They look up the fault for every chunk that they read.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use assay_lab::home::free_port;
use socket2::SockRef;

/// What is done to connections from `Proxy::inflict` until `Proxy::heal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// All open connections are reset (RST). New ones work.
    Reset,
    /// All open connections are reset, and new ones are refused.
    Refuse,
    /// Everything is accepted, new connections too, and nothing arrives.
    Blackhole,
    /// Swallows the bytes of one direction.
    HalfOpen(Way),
    /// The next chunk of two or more bytes is cut in half, and the connection is closed.
    Truncate(Way),
    /// In every open connection, random bytes arrive before the next chunk. The seed determines them. New connections
    /// work.
    Garbage(Way, u64),
    /// Every byte arrives on its own.
    Trickle,
    /// Every chunk arrives this much later.
    Delay(Duration),
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// The proxy. Dropping it resets its connections.
pub struct Proxy {
    port: u16,
    listener: Arc<TcpListener>,
    state: Arc<ProxyState>,
}

impl Proxy {
    /// Listens on a free port of loopback and forwards to this one.
    pub fn to(server: u16) -> Result<Proxy> {
        // Bound by number, because the kernel takes back a port that it chose itself when the listener is shut down.
        let port = free_port()?;
        let listener = Arc::new(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?);
        let state = Arc::new(ProxyState::default());
        let (ours, theirs) = (listener.clone(), state.clone());
        thread::spawn(move || {
            while theirs.wait_for_opening() {
                // It fails once the listener is shut down.
                while let Ok((call, _)) = ours.accept() {
                    connect(&theirs, call, server);
                }
            }
        });
        Ok(Proxy { port, listener, state })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts a fault, instead of the one before.
    pub fn inflict(&self, fault: Fault) {
        let mut now = self.state.lock();
        (now.fault, now.hits) = (Some(fault), 0);
        now.refuses = fault == Fault::Refuse;
        let open: Vec<Arc<Connection>> = now.open.iter().filter_map(Weak::upgrade).collect();
        for connection in &open {
            let mut damage = connection.damage();
            (damage.is_older, damage.hit) = (true, None);
        }
        if matches!(fault, Fault::Reset | Fault::Refuse) {
            now.hits = open.len();
            open.iter().for_each(|connection| connection.reset());
        }
        if fault == Fault::Refuse {
            // The port stays bound, so nobody else can take it.
            let _ = SockRef::from(&*self.listener).shutdown(Shutdown::Read);
        }
    }

    /// Ends the fault. Connections that have lost bytes, or got some that nobody sent, are reset.
    pub fn heal(&self) {
        let mut now = self.state.lock();
        now.fault = None;
        for connection in now.open.iter().filter_map(Weak::upgrade) {
            if connection.hit().is_some_and(|fault| !matches!(fault, Fault::Trickle | Fault::Delay(_))) {
                connection.reset();
            }
        }
        if std::mem::take(&mut now.refuses) {
            SockRef::from(&*self.listener).listen(128).expect("the port is still bound");
            self.state.opened.notify_all();
        }
    }

    /// How many connections the present fault has damaged so far.
    pub fn hits(&self) -> usize {
        self.state.lock().hits
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut now = self.state.lock();
        now.ended = true;
        now.open.iter().filter_map(Weak::upgrade).for_each(|connection| connection.reset());
        let _ = SockRef::from(&*self.listener).shutdown(Shutdown::Read);
        self.state.opened.notify_all();
    }
}

/// What the threads of a proxy share.
#[derive(Default)]
pub(crate) struct ProxyState {
    now: Mutex<Now>,
    opened: Condvar,
}

#[derive(Default)]
struct Now {
    fault: Option<Fault>,
    hits: usize,
    refuses: bool,
    ended: bool,
    open: Vec<Weak<Connection>>,
}

/// One client's way to the server. Its sockets are closed when both of its threads have ended.
struct Connection {
    client: TcpStream,
    /// `None`: it was opened into a black hole.
    server: Option<TcpStream>,
    damage: Mutex<Damage>,
}

#[derive(Default)]
struct Damage {
    /// It was open when the present fault began.
    is_older: bool,
    hit: Option<Fault>,
    /// It was reset: nothing is passed on any more, not even the end of the other side.
    is_over: bool,
}

/// What to do with a chunk.
enum Treatment {
    Pass,
    Lose,
    Cut,
    Precede(u64),
    Trickle,
    Delay(Duration),
}

impl ProxyState {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits while connections are refused; false at the end of the proxy.
    fn wait_for_opening(&self) -> bool {
        let now = self.opened.wait_while(self.lock(), |now| now.refuses && !now.ended);
        !now.unwrap_or_else(|poisoned| poisoned.into_inner()).ended
    }

    /// What to do with a chunk of this length, or with the end of a side (zero).
    fn treat(&self, connection: &Connection, way: Way, length: usize) -> Treatment {
        let mut now = self.lock();
        let Some(fault) = now.fault else { return Treatment::Pass };
        let treatment = match fault {
            Fault::Blackhole => Treatment::Lose,
            Fault::HalfOpen(dead) if dead == way => Treatment::Lose,
            Fault::Trickle => Treatment::Trickle,
            Fault::Delay(time) => Treatment::Delay(time),
            Fault::Truncate(cut) if cut == way && length > 1 => Treatment::Cut,
            Fault::Garbage(spoiled, seed) if spoiled == way && length > 0 && connection.is_due() => {
                Treatment::Precede(seed)
            }
            _ => return Treatment::Pass,
        };
        if length > 0 {
            let hit = &mut connection.damage().hit;
            now.hits += usize::from(hit.is_none());
            *hit = Some(fault);
        }
        treatment
    }
}

impl Connection {
    fn hit(&self) -> Option<Fault> {
        self.damage().hit
    }

    /// Whether it was open when the fault began, and is undamaged.
    fn is_due(&self) -> bool {
        let damage = self.damage();
        damage.is_older && damage.hit.is_none()
    }

    fn damage(&self) -> MutexGuard<'_, Damage> {
        self.damage.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Closes both sides so that the other ends see a reset.
    fn reset(&self) {
        self.damage().is_over = true;
        for side in [Some(&self.client), self.server.as_ref()].into_iter().flatten() {
            let _ = SockRef::from(side).set_linger(Some(Duration::ZERO));
            // Wakes its reader, and tells the other end nothing yet.
            let _ = side.shutdown(Shutdown::Read);
        }
    }

    /// Closes both sides in order.
    fn close(&self) {
        for side in [Some(&self.client), self.server.as_ref()].into_iter().flatten() {
            let _ = side.shutdown(Shutdown::Both);
        }
    }
}

/// Forwards a client's connection to this port of loopback, in threads of its own.
pub(crate) fn connect(state: &Arc<ProxyState>, client: TcpStream, server: u16) {
    let is_lost = state.lock().fault == Some(Fault::Blackhole);
    let server = if is_lost { None } else { TcpStream::connect((Ipv4Addr::LOCALHOST, server)).ok() };
    if server.is_none() && !is_lost {
        // Nobody listens: the caller is disconnected.
        return;
    }
    let mut now = state.lock();
    for side in [Some(&client), server.as_ref()].into_iter().flatten() {
        let _ = side.set_nodelay(true);
    }
    let connection = Arc::new(Connection { client, server, damage: Mutex::default() });
    now.open.retain(|open| open.strong_count() > 0);
    now.open.push(Arc::downgrade(&connection));
    for way in [Way::ToServer, Way::ToClient] {
        let (state, connection) = (state.clone(), connection.clone());
        thread::spawn(move || pump(&state, &connection, way));
    }
}

/// Passes on what comes from one side, until it ends.
fn pump(state: &ProxyState, connection: &Connection, way: Way) {
    let (from, to) = match way {
        Way::ToServer => (Some(&connection.client), connection.server.as_ref()),
        Way::ToClient => (connection.server.as_ref(), Some(&connection.client)),
    };
    let Some(mut from) = from else { return };
    let mut chunk = vec![0; 1 << 16];
    while let Ok(length) = from.read(&mut chunk) {
        let chunk = &chunk[..length];
        let treatment = state.treat(connection, way, length);
        if connection.damage().is_over {
            return;
        }
        let Some(mut to) = to else { if length == 0 { return } else { continue } };
        let passed = match treatment {
            Treatment::Lose if length == 0 => return,
            Treatment::Lose => Ok(()),
            _ if length == 0 => {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Treatment::Pass => to.write_all(chunk),
            Treatment::Cut => {
                let _ = to.write_all(&chunk[..length / 2]);
                return connection.close();
            }
            Treatment::Precede(seed) => to.write_all(&garbage(seed)).and_then(|()| to.write_all(chunk)),
            Treatment::Delay(time) => {
                thread::sleep(time);
                to.write_all(chunk)
            }
            Treatment::Trickle => chunk.iter().try_for_each(|byte| to.write_all(&[*byte])),
        };
        if passed.is_err() {
            return connection.close();
        }
    }
    // The other end has reset its connection.
    if !connection.damage().is_over {
        connection.reset();
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
fn garbage(seed: u64) -> Vec<u8> {
    let word = |i: u64| {
        let mut word = seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    (1..=8).flat_map(|i| word(i).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Answers every byte with the next one.
    fn successor() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for call in listener.incoming() {
                let mut call = call.unwrap();
                thread::spawn(move || {
                    let mut bytes = [0; 64];
                    while let Ok(length @ 1..) = call.read(&mut bytes) {
                        bytes[..length].iter_mut().for_each(|byte| *byte += 1);
                        if call.write_all(&bytes[..length]).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        port
    }

    fn call(proxy: &Proxy) -> io::Result<TcpStream> {
        TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port()))
    }

    /// Sends a word; returns as many bytes of the answer.
    fn ask(client: &mut TcpStream, word: &[u8]) -> io::Result<Vec<u8>> {
        client.write_all(word)?;
        let mut answer = vec![0; word.len()];
        client.read_exact(&mut answer)?;
        Ok(answer)
    }

    /// Everything that still comes.
    fn rest(client: &mut TcpStream) -> (Vec<u8>, io::Result<usize>) {
        let mut all = Vec::new();
        let end = client.read_to_end(&mut all);
        (all, end)
    }

    fn is_reset(result: &io::Result<usize>) -> bool {
        result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
    }

    #[test]
    fn every_fault_shows_at_the_client_as_what_it_is() {
        let proxy = Proxy::to(successor()).unwrap();
        let mut client = call(&proxy).unwrap();
        assert_eq!(ask(&mut client, b"HAL").unwrap(), b"IBM");

        proxy.inflict(Fault::Reset);
        assert!(is_reset(&rest(&mut client).1));
        let mut client = call(&proxy).unwrap();
        assert_eq!(ask(&mut client, b"HAL").unwrap(), b"IBM");

        proxy.inflict(Fault::Refuse);
        assert!(is_reset(&rest(&mut client).1));
        assert_eq!(call(&proxy).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        proxy.heal();
        let mut client = call(&proxy).unwrap();
        assert_eq!(ask(&mut client, b"HAL").unwrap(), b"IBM");

        proxy.inflict(Fault::Trickle);
        assert_eq!(ask(&mut client, b"HAL").unwrap(), b"IBM");
        assert_eq!(proxy.hits(), 1);

        proxy.inflict(Fault::Garbage(Way::ToClient, 7));
        assert_eq!(ask(&mut client, &[0; 64]).unwrap(), garbage(7));
        assert_eq!(proxy.hits(), 1);

        proxy.inflict(Fault::Truncate(Way::ToClient));
        client.write_all(b"HALHAL").unwrap();
        let (answer, end) = rest(&mut client);
        // What was behind the garbage, and half of a chunk.
        assert!(answer.starts_with(&[1; 64]) && answer.len() < 64 + 6 && end.is_ok(), "{answer:?} {end:?}");
    }

    #[test]
    fn what_is_lost_on_the_way_ends_in_a_reset_when_the_way_is_free_again() {
        let proxy = Proxy::to(successor()).unwrap();
        for fault in [Fault::Blackhole, Fault::HalfOpen(Way::ToServer), Fault::HalfOpen(Way::ToClient)] {
            let mut client = call(&proxy).unwrap();
            assert_eq!(ask(&mut client, b"HAL").unwrap(), b"IBM");
            proxy.inflict(fault);
            client.write_all(b"HAL").unwrap();
            while proxy.hits() == 0 {
                thread::yield_now();
            }
            let mut another = call(&proxy).unwrap();
            another.write_all(b"HAL").unwrap();
            while proxy.hits() == 1 {
                thread::yield_now();
            }
            proxy.heal();
            for client in [&mut client, &mut another] {
                let (answer, end) = rest(client);
                assert!(answer.is_empty() && is_reset(&end), "{fault:?}: {answer:?} {end:?}");
            }
        }
    }
}
