//! The event loop that is always available: epoll through mio, edge-triggered.
//!
//! `wait` learns which sockets are ready and queues their ids; `next_event` takes the ids in turn and only then reads,
//! into one buffer that all sockets share. So an idle socket costs only its slot (`size_of::<Slot>()`, under 100
//! bytes), and nothing is allocated per event.
//!
//! Edge-triggered means that a socket is reported when something new happens to it, so each is read until the kernel
//! has no more data. A read shorter than the buffer proves that as well as WouldBlock does (epoll(7), questions and
//! answers, 9) and saves a system call per reply, with one exception: bytes and the end of the stream can be reported
//! together, and the end would then be missed. `hung_up` remembers that it was reported.
//!
//! If one socket is all there is, and an answer is due, `wait` blocks in reading it: epoll would only say that a second
//! system call is worth while. Nothing else is noticed meanwhile, so it does that for `stream::PATIENCE` only, and not
//! if an instant was asked for that comes soon.
//!
//! Encrypted bytes are read into the same buffer and decrypted into a second one that all sockets share.
//!
//! It knows no protocol, has no timers but the one of `wait`, and retries nothing.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use assay_seam::Nanos;
use mio::{Events, Interest, Poll, Registry, Token};

use crate::clock::Clock;
use crate::stream::{PATIENCE, Stream};
use crate::timer::Timer;
use crate::tls::{self, TlsSession};
use crate::{Address, Closed, ConnectError, Io, IoEvent, SocketId, Tls, Waker, trouble};

/// The default for how many sockets one `wait` reports at most. More means fewer system calls, but a longer wait for
/// the last of them: batching trades median latency for CPU.
pub const BATCH_MAX: usize = 64;

/// The least that one read requests, if there is that much.
const READ_BYTES: usize = 64 * 1024;

/// How many full buffers a socket may return before it goes to the end of the queue.
const READS_MAX: u32 = 4;

/// An empty send buffer larger than this is freed.
const SPARE_BYTES_MAX: usize = 4 * 1024;

/// Among more slots than these, nobody looks for the only socket.
const SLOTS_MAX: usize = 4;

/// How much is encrypted at a time.
const ENCRYPT_BYTES: usize = 64 * 1024;

// No socket has these: its index would be 2³² − 1.
const WAKER: Token = Token(usize::MAX);
const TIMER: Token = Token(usize::MAX - (1 << 32));

/// One worker's event loop over epoll.
///
/// Its `wait` may also return early: for a signal, for a `Waker`, for an instant asked for by an earlier `wait`.
/// It wakes within some 60 µs of the instant asked for on an idle machine (the test `timers_are_punctual` prints
/// what it finds), never before it.
#[derive(Debug)]
pub struct Readiness {
    clock: Clock,
    poll: Poll,
    events: Events,
    waker: Waker,
    timer: Timer,
    /// What the timer is set to, unless it has expired.
    timer_at: Option<Nanos>,
    /// How long it looks for events before it sleeps.
    pub(crate) polls: Nanos,
    /// How long it has looked instead of sleeping.
    polled: Nanos,
    received_at: Nanos,
    slots: Vec<Slot>,
    /// Indices of empty slots.
    free: Vec<u32>,
    /// Every address ever connected to: one per server, so a socket can name its own in four bytes.
    addresses: Vec<Address>,
    /// Sockets to check, each at most once; ids of closed ones are skipped.
    ready: VecDeque<SocketId>,
    /// How many of `ready` belong to the present batch. 0 <= batch <= ready.len()
    batch: usize,
    /// Full buffers read in a row from the socket at the front of `ready`.
    reads: u32,
    /// What was read last. READ_BYTES <= buffer.len(); longer once an incomplete record had to be put before it.
    buffer: Vec<u8>,
    /// What was decrypted last.
    plain: Vec<u8>,
    /// What was encrypted last. Empty between calls.
    sealed: Vec<u8>,
    received: Received,
    /// What `wait` itself got from the only socket, whose turn is next.
    taken: Option<io::Result<usize>>,
    /// The socket whose handshake ended while bytes in `plain` are still to be reported.
    early: Option<SocketId>,
}

/// Where the bytes of the last `Received` event are.
#[derive(Debug)]
enum Received {
    /// In `buffer`, this many.
    Read(usize),
    /// All of `plain`.
    Decrypted,
}

#[derive(Debug)]
struct Slot {
    /// Counts the earlier sockets in this slot: the upper half of an id.
    generation: u32,
    socket: Option<Socket>,
}

#[derive(Debug)]
struct Socket {
    stream: Stream,
    /// Index into `Readiness::addresses`.
    address: u32,
    /// Errno of a failed send; reported once everything that the peer sent before has been read.
    broken: i32,
    connected: bool,
    /// There may be something to read.
    readable: bool,
    /// The kernel takes bytes again, or the connect has ended.
    writable: bool,
    /// The end of the stream was reported: a short read is not the last one.
    hung_up: bool,
    /// In `Readiness::ready`.
    queued: bool,
    /// Something was sent since the last read.
    awaits: bool,
    /// `Stream::will_block` was called.
    blocks: bool,
    /// Writability is asked for.
    watches_writes: bool,
    /// Whether the last check by `close_if_silent` found it silent.
    silent: bool,
    /// Bytes the kernel did not accept yet: `unsent[sent..]`. Limited by what the caller sends without waiting.
    unsent: Vec<u8>,
    /// 0 <= sent <= unsent.len()
    sent: usize,
    tls: Option<Arc<Tls>>,
    /// From `start_tls` on.
    session: Option<Box<TlsSession>>,
}

/// The result of checking a ready socket.
enum ReadyCheck {
    Event(IoEvent),
    /// Nothing more until epoll reports it again.
    Done,
    /// There is more, but others come first.
    Later,
}

impl Readiness {
    /// An event loop whose instants are those of `clock`. `batch_max`: sockets reported by one `wait`, at least 1;
    /// usually `BATCH_MAX`. Fails when the process has no file descriptors left.
    pub fn new(clock: Clock, batch_max: usize) -> io::Result<Readiness> {
        let poll = Poll::new()?;
        Ok(Readiness {
            clock,
            events: Events::with_capacity(batch_max.max(1)),
            waker: Waker::eventfd(mio::Waker::new(poll.registry(), WAKER)?),
            timer: Timer::new(poll.registry(), TIMER)?,
            timer_at: None,
            polls: Nanos(0),
            polled: Nanos(0),
            poll,
            received_at: clock.now(),
            slots: Vec::new(),
            free: Vec::new(),
            addresses: Vec::new(),
            ready: VecDeque::new(),
            batch: 0,
            reads: 0,
            buffer: vec![0; READ_BYTES],
            plain: Vec::new(),
            sealed: Vec::new(),
            received: Received::Read(0),
            taken: None,
            early: None,
        })
    }

    fn insert(&mut self, socket: Socket) -> SocketId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, socket: None });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.socket = Some(socket);
        id_of(slot.generation, index)
    }

    /// Drops a socket. That closes the descriptor, which removes it from the epoll set, because nothing else holds it
    /// open.
    fn remove(&mut self, id: SocketId) -> Option<Socket> {
        live(&mut self.slots, id)?;
        let slot = &mut self.slots[index(id)];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index(id) as u32);
        slot.socket.take()
    }

    fn closed(&mut self, id: SocketId, why: Closed) -> ReadyCheck {
        self.remove(id);
        ReadyCheck::Event(IoEvent::Closed(id, why))
    }

    fn look(&mut self, id: SocketId) -> ReadyCheck {
        let Some(socket) = live(&mut self.slots, id) else { return ReadyCheck::Done };
        let address = &self.addresses[socket.address as usize];
        if !socket.connected {
            match socket.stream.connected() {
                Ok(true) => {
                    socket.connected = true;
                    return ReadyCheck::Event(IoEvent::Connected(id));
                }
                Ok(false) => {
                    socket.writable = false;
                    return ReadyCheck::Done;
                }
                Err(error) => {
                    let why = trouble::connecting(address, &error).into();
                    return self.closed(id, why);
                }
            }
        }
        if socket.writable {
            socket.writable = false;
            socket.flush(self.poll.registry(), id);
        }
        if self.early.take_if(|early| *early == id).is_some() {
            return ReadyCheck::Event(IoEvent::Received(id));
        }
        if !socket.readable {
            return ReadyCheck::Done;
        }
        if self.reads == READS_MAX {
            return ReadyCheck::Later;
        }
        // The rest of an incomplete record goes before what is read now.
        let kept = socket.session.as_ref().map_or(0, |session| session.rest().len());
        if self.buffer.len() < kept + READ_BYTES {
            self.buffer.resize(kept + READ_BYTES, 0);
        }
        if let Some(session) = &socket.session {
            if session.is_closed() {
                let why = trouble::closed_by_peer(address);
                return self.closed(id, why);
            }
            self.buffer[..kept].copy_from_slice(session.rest());
        }
        let read = self.taken.take().unwrap_or_else(|| socket.stream.read(&mut self.buffer[kept..]));
        let end = match read {
            Ok(0) => None,
            Ok(n) => {
                self.reads += 1;
                socket.awaits = false;
                socket.readable = kept + n == self.buffer.len() || socket.hung_up || socket.broken != 0;
                return self.take_in(id, kept + n);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => return ReadyCheck::Later,
            Err(error) if error.kind() == ErrorKind::WouldBlock && socket.broken == 0 => {
                socket.readable = false;
                return ReadyCheck::Done;
            }
            Err(error) => Some(error),
        };
        // A broken pipe only means that the peer is gone; the read reports why.
        let why = match (socket.broken, end) {
            (0 | libc::EPIPE, None) => trouble::closed_by_peer(address),
            (0, Some(error)) => trouble::lost(address, &error),
            (errno, _) => trouble::lost(address, &io::Error::from_raw_os_error(errno)),
        };
        let why = match &socket.session {
            Some(session) if !session.is_secured() => tls::interrupted(why),
            _ => why,
        };
        self.closed(id, why)
    }

    /// The only socket, if an answer is due and nothing else is to be done for it. Encrypted ones are left out: what
    /// they receive is not always an answer.
    fn only(&self) -> Option<usize> {
        if self.slots.len() - self.free.len() != 1 || self.slots.len() > SLOTS_MAX {
            return None;
        }
        let at = self.slots.iter().position(|slot| slot.socket.is_some())?;
        let socket = self.slots[at].socket.as_ref()?;
        let idle = socket.connected && socket.broken == 0 && !socket.readable && socket.unsent.is_empty();
        (idle && socket.awaits && socket.session.is_none()).then_some(at)
    }

    /// Waits for bytes of this socket. False: there were none within `PATIENCE`.
    fn take(&mut self, at: usize) -> io::Result<bool> {
        let Readiness { slots, buffer, ready, taken, .. } = self;
        let Slot { generation, socket } = &mut slots[at];
        let socket = socket.as_mut().expect("it is the only one");
        if !socket.blocks {
            socket.stream.will_block()?;
            socket.blocks = true;
        }
        match socket.stream.read_waiting(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            // A signal: whoever sent it wants us to check.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => {
                *taken = Some(read);
                socket.readable = true;
                socket.queue(id_of(*generation, at as u32), ready);
            }
        }
        Ok(true)
    }

    /// Asks the kernel for events, and waits for one as long as `limit` says (`None`: without limit).
    fn ask(&mut self, limit: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, limit) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            // A signal: whoever sent it wants us to check.
            Err(_) => self.events.clear(),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Sleeps until something happened or `until` has come.
    fn sleep(&mut self, until: Option<Nanos>, now: Nanos) -> io::Result<()> {
        if let Some(until) = until
            && self.timer_at != Some(until)
        {
            self.timer.set(until - now)?;
            self.timer_at = Some(until);
        }
        self.ask(None)
    }

    /// As `sleep`, but awake for the first while.
    fn poll_then_sleep(&mut self, until: Option<Nanos>, mut now: Nanos) -> io::Result<()> {
        let end = now + self.polls;
        // What the first look finds was already there, so that look counts as work. Every later one is polling,
        // whatever it finds, and however long the worker had no CPU meanwhile.
        let mut is_work = true;
        while now < end && until.is_none_or(|until| until > now) {
            self.ask(Some(Duration::ZERO))?;
            let found = !self.events.is_empty();
            if found && is_work {
                return Ok(());
            }
            let before = std::mem::replace(&mut now, self.clock.now());
            self.polled += now - before;
            if found {
                return Ok(());
            }
            is_work = false;
        }
        if until.is_none_or(|until| until > now) { self.sleep(until, now) } else { Ok(()) }
    }

    /// Queues the sockets of the events.
    fn take_events(&mut self) {
        self.received_at = self.clock.now();
        let Readiness { events, slots, ready, .. } = self;
        for event in events.iter() {
            let id = match event.token() {
                WAKER => continue,
                TIMER => {
                    self.timer_at = None;
                    continue;
                }
                Token(id) => SocketId(id as u64),
            };
            let Some(socket) = live(slots, id) else { continue };
            let hung_up = event.is_read_closed() || event.is_error();
            socket.hung_up |= hung_up;
            socket.readable |= hung_up || event.is_readable();
            socket.writable |= event.is_writable();
            socket.queue(id, ready);
        }
        self.batch = self.ready.len();
    }

    /// Makes an event of the first `len` bytes of the buffer.
    fn take_in(&mut self, id: SocketId, len: usize) -> ReadyCheck {
        let Readiness { slots, poll, addresses, buffer, plain, sealed, .. } = self;
        let socket = slots[index(id)].socket.as_mut().expect("it was just read from");
        let Some(session) = &mut socket.session else {
            self.received = Received::Read(len);
            return ReadyCheck::Event(IoEvent::Received(id));
        };
        plain.clear();
        let result = session.receive(&mut buffer[..len], plain, sealed);
        // A close_notify ends the stream as the end of the stream does.
        socket.readable |= session.is_closed();
        let secured = session.is_secured();
        let facts = result.as_ref().is_ok_and(|ended| *ended).then(|| session.facts());
        if !sealed.is_empty() {
            socket.write(sealed, poll.registry(), id);
            sealed.clear();
        }
        if let Err(error) = result {
            let why = tls::explain(&addresses[socket.address as usize], &error, secured);
            return self.closed(id, why);
        }
        self.received = Received::Decrypted;
        match facts {
            Some(facts) => {
                self.early = (!self.plain.is_empty()).then_some(id);
                ReadyCheck::Event(IoEvent::Secured(id, facts))
            }
            None if !self.plain.is_empty() => ReadyCheck::Event(IoEvent::Received(id)),
            None if socket.readable => ReadyCheck::Later,
            None => ReadyCheck::Done,
        }
    }
}

impl Io for Readiness {
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn received_at(&self) -> Nanos {
        self.received_at
    }

    fn connect(&mut self, address: &Address, tls: Option<&Arc<Tls>>) -> Result<SocketId, ConnectError> {
        let failed = |error: io::Error| trouble::connecting(address, &error);
        let known = self.addresses.iter().position(|known| known == address);
        let known = known.unwrap_or_else(|| {
            self.addresses.push(address.clone());
            self.addresses.len() - 1
        });
        let stream = Stream::connect(address).map_err(failed)?;
        let unix = matches!(stream, Stream::Unix(_));
        let id = self.insert(Socket {
            stream,
            address: known as u32,
            broken: 0,
            connected: false,
            readable: false,
            writable: false,
            hung_up: false,
            queued: false,
            awaits: false,
            blocks: false,
            watches_writes: !unix,
            silent: false,
            unsent: Vec::new(),
            sent: 0,
            tls: tls.cloned(),
            session: None,
        });
        // Unix sockets connect immediately or not at all. They are not watched for writability until a send falls
        // short: otherwise each message that the server receives would be reported, one more wake-up per statement. TCP
        // reports only the end of a shortage, so there it is always watched.
        let interest = if unix { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
        let Readiness { slots, poll, ready, .. } = self;
        let socket = slots[index(id)].socket.as_mut().expect("it was just put there");
        if let Err(error) = poll.registry().register(&mut socket.stream, token(id), interest) {
            self.remove(id);
            return Err(failed(error));
        }
        if unix {
            socket.queue(id, ready);
        }
        Ok(id)
    }

    fn send(&mut self, id: SocketId, bytes: &[u8]) {
        let Readiness { slots, poll, ready, sealed, .. } = self;
        let Some(socket) = live(slots, id) else { return };
        match socket.session.take() {
            None => socket.write(bytes, poll.registry(), id),
            Some(mut session) => {
                assert!(session.is_secured(), "nothing is sent between start_tls and Secured");
                for piece in bytes.chunks(ENCRYPT_BYTES) {
                    if session.encrypt(piece, sealed).is_err() {
                        // The keys are worn out (2⁶⁴ records) or the peer has broken the session; a read will report
                        // it.
                        socket.broken = libc::EPROTO;
                        socket.readable = true;
                        break;
                    }
                    socket.write(sealed, poll.registry(), id);
                    sealed.clear();
                }
                socket.session = Some(session);
            }
        }
        if socket.broken != 0 {
            socket.queue(id, ready);
        }
    }

    /// Requires the `Tls` that was passed to `connect`.
    fn start_tls(&mut self, id: SocketId) {
        let Readiness { slots, poll, ready, sealed, .. } = self;
        let Some(socket) = live(slots, id) else { return };
        let tls = socket.tls.take().expect("connect was told how to encrypt");
        match TlsSession::start(&tls, sealed) {
            Ok(session) => {
                socket.session = Some(Box::new(session));
                socket.write(sealed, poll.registry(), id);
                sealed.clear();
            }
            Err(_) => socket.fail(&io::Error::from_raw_os_error(libc::EPROTO)),
        }
        if socket.broken != 0 {
            socket.queue(id, ready);
        }
    }

    fn keep_alive(&mut self, id: SocketId, limit: Nanos) {
        if let Some(socket) = live(&mut self.slots, id) {
            socket.stream.keep_alive(limit);
        }
    }

    fn close_if_silent(&mut self, id: SocketId, limit: Nanos) {
        let Readiness { slots, ready, .. } = self;
        let Some(socket) = live(slots, id).filter(|socket| socket.connected) else { return };
        let silent = socket.stream.is_silent(limit);
        if std::mem::replace(&mut socket.silent, silent) && silent {
            socket.fail(&io::Error::from_raw_os_error(libc::ETIMEDOUT));
            socket.queue(id, ready);
        }
    }

    fn close(&mut self, id: SocketId) {
        let Some(mut socket) = self.remove(id) else { return };
        let Readiness { sealed, .. } = self;
        if let Some(session) = socket.session.as_mut().filter(|session| session.is_secured()) {
            // A goodbye that cannot be sent is omitted.
            let _ = session.close(sealed);
            socket.unsent.append(sealed);
        }
        // What does not fit now is lost, and so is an error: for the caller nothing matters any more.
        let _ = socket.stream.write_all_now(&socket.unsent[socket.sent..]);
    }

    fn wait(&mut self, until: Option<Nanos>) -> io::Result<()> {
        // Instants that have passed, and sockets deferred by fairness: check without sleeping.
        let now = self.clock.now();
        let sleeps = self.ready.is_empty() && until.is_none_or(|until| until > now);
        self.taken = None;
        if sleeps
            && self.polls == Nanos(0)
            && until.is_none_or(|until| until > now + PATIENCE + PATIENCE)
            && let Some(at) = self.only()
            && self.take(at)?
        {
            self.received_at = self.clock.now();
            self.batch = self.ready.len();
            return Ok(());
        }
        if sleeps {
            self.poll_then_sleep(until, now)?
        } else {
            self.ask(Some(Duration::ZERO))?
        }
        self.take_events();
        Ok(())
    }
    fn polled(&self) -> Nanos {
        self.polled
    }

    fn next_event(&mut self) -> Option<IoEvent> {
        while self.batch > 0 {
            let id = *self.ready.front().expect("batch <= ready.len()");
            let look = self.look(id);
            if let ReadyCheck::Event(event) = look {
                return Some(event);
            }
            self.ready.pop_front();
            self.batch -= 1;
            self.reads = 0;
            let later = matches!(look, ReadyCheck::Later);
            if let Some(socket) = live(&mut self.slots, id) {
                socket.queued = later;
                if later {
                    self.ready.push_back(id);
                }
            }
        }
        None
    }

    fn received(&self) -> &[u8] {
        match self.received {
            Received::Read(len) => &self.buffer[..len],
            Received::Decrypted => &self.plain,
        }
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

impl Socket {
    fn queue(&mut self, id: SocketId, ready: &mut VecDeque<SocketId>) {
        if !self.queued {
            self.queued = true;
            ready.push_back(id);
        }
    }

    /// Sends now what the kernel accepts, keeps the rest.
    fn write(&mut self, mut bytes: &[u8], registry: &Registry, id: SocketId) {
        if self.broken != 0 {
            return;
        }
        self.awaits = true;
        if self.connected && self.unsent.is_empty() {
            match self.stream.write_all_now(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) => return self.fail(&error),
            }
        }
        if !bytes.is_empty() {
            self.unsent.extend_from_slice(bytes);
            self.watch_writes(true, registry, id);
        }
    }

    /// Sends what was kept.
    fn flush(&mut self, registry: &Registry, id: SocketId) {
        match self.stream.write_all_now(&self.unsent[self.sent..]) {
            Ok(n) => self.sent += n,
            Err(error) => return self.fail(&error),
        }
        if self.sent == self.unsent.len() {
            self.sent = 0;
            self.unsent.clear();
            if self.unsent.capacity() > SPARE_BYTES_MAX {
                self.unsent = Vec::new();
            }
            self.watch_writes(false, registry, id);
        }
    }

    /// The peer is gone. What it sent before, perhaps its reason, can still be read.
    fn fail(&mut self, error: &io::Error) {
        self.broken = error.raw_os_error().unwrap_or(libc::EIO);
        self.readable = true;
        self.unsent = Vec::new();
        self.sent = 0;
    }

    /// Only unix sockets change what they watch: see `Readiness::connect`.
    fn watch_writes(&mut self, on: bool, registry: &Registry, id: SocketId) {
        if let Stream::Unix(stream) = &mut self.stream
            && self.watches_writes != on
        {
            let interest = if on { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
            match registry.reregister(stream, token(id), interest) {
                Ok(()) => self.watches_writes = on,
                Err(error) => self.fail(&error),
            }
        }
    }
}

fn live(slots: &mut [Slot], id: SocketId) -> Option<&mut Socket> {
    slots.get_mut(index(id)).filter(|slot| slot.generation == generation(id))?.socket.as_mut()
}

fn id_of(generation: u32, index: u32) -> SocketId {
    SocketId(u64::from(generation) << 32 | u64::from(index))
}

fn index(id: SocketId) -> usize {
    id.0 as u32 as usize
}

fn generation(id: SocketId) -> u32 {
    (id.0 >> 32) as u32
}

fn token(id: SocketId) -> Token {
    Token(id.0 as usize)
}
