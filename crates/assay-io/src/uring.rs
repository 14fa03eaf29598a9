//! The event loop on io_uring: sends and receives are passed to and from the kernel in batches.
//!
//! Between two waits, `send` only collects. `wait` submits everything in one system call, which sends, asks for the
//! next bytes of each socket that was read from, runs what the kernel has ready, and sleeps if there is nothing. So a
//! statement shares its system call with the others of its batch, while epoll needs one to send, one to receive, and a
//! share of one to wait. After `batch_max` events, pending sends are submitted without waiting for the rest.
//!
//! Sends do not wait in the kernel and report nothing on success (`MSG_DONTWAIT`, `CQE_SKIP_SUCCESS`): when the call
//! returns, the kernel has their bytes, or reports how many it does not have. Only those are sent again, as a request
//! that waits and holds its own bytes. Receives take a buffer from a ring of buffers when bytes have arrived, so an
//! idle socket holds none. With `POLL_FIRST` the kernel does not try to receive before there is data: right after a
//! request there is none yet.
//!
//! The ring belongs to one thread (`SINGLE_ISSUER`), and completions are produced only while that thread asks for them
//! (`DEFER_TASKRUN`, kernel 6.1): nothing interrupts the worker between two waits.
//!
//! It knows no protocol, and retries nothing. Rejected: multishot receives, which save a request per reply but check
//! the socket once more instead; and the kernel's polling thread, which takes a CPU from the server.

use std::alloc::{self, Layout};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use assay_seam::Nanos;
use io_uring::types::{BufRingEntry, CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use crate::clock::Clock;
use crate::stream::Stream;
use crate::tls::{self, TlsSession};
use crate::{Address, Closed, ConnectError, Io, IoEvent, SocketId, Tls, Waker, os_error, trouble};

/// The default for events returned before the resulting sends are submitted: docs/performance.md has the measurements.
pub const BATCH_MAX: usize = 32;

/// Most requests submitted in one call.
const SUBMISSIONS: u32 = 512;
/// More than all requests that can end during a submission, so that the report of a failed send never waits.
const COMPLETIONS: u32 = 4096;

/// Buffers for incoming bytes, shared by all sockets; a power of two. Only used ones need memory.
const BUFFERS: u16 = 128;
/// Size of each: the most that one receive returns.
const BUFFER_BYTES: usize = 16 * 1024;
/// The id of their ring.
const BUFFER_GROUP: u16 = 0;

/// Send buffers kept for the next send of any socket: the number of buffers, and the maximum size.
const SPARES_MAX: usize = SUBMISSIONS as usize;
const SPARE_BYTES_MAX: usize = 4 * 1024;
/// How much is encrypted at a time.
const ENCRYPT_BYTES: usize = 64 * 1024;

/// One worker's event loop over io_uring.
///
/// Its `wait` may also return early: for a signal, for a `Waker`.
pub struct Uring {
    clock: Clock,
    ring: IoUring,
    buffers: Buffers,
    wakeup: Arc<OwnedFd>,
    /// Where the kernel writes the count of wake-ups.
    wakeups: Box<u64>,
    /// Whether the wake-up must be requested again.
    wakeup_taken: bool,
    batch_max: usize,
    received_at: Nanos,
    /// How long it looks for completions before it sleeps.
    pub(crate) polls: Nanos,
    /// How long it has looked instead of sleeping.
    polled: Nanos,
    slots: Vec<Slot>,
    /// Indices of empty slots.
    free: Vec<u32>,
    /// Every address ever connected to: one per server, so a socket can name its own in four bytes.
    addresses: Vec<Address>,
    /// Requests for the next call, by socket; dead ones are skipped.
    to_send: Vec<SocketId>,
    to_drain: Vec<SocketId>,
    to_receive: Vec<SocketId>,
    to_connect: Vec<SocketId>,
    /// Sends of the current call.
    sending: Vec<SocketId>,
    /// Empty buffers: a socket has one only while it has something to send. The last one used is the first one reused,
    /// because it is still in the processor's cache. spares.len() <= SPARES_MAX
    spares: Vec<Vec<u8>>,
    /// Completions not handled yet.
    ended: VecDeque<Completion>,
    /// How many of `ended` belong to the present batch. 0 <= batch <= ended.len()
    batch: usize,
    /// Events returned since the last call.
    handed_out: usize,
    /// The error of a call within a batch, which the next `wait` reports.
    failed: Option<io::Error>,
    /// Bytes that the kernel may still be reading for sockets that are gone, by the request's number.
    graves: Vec<(u64, Vec<u8>)>,
    /// The buffer whose bytes were returned last.
    lent: Option<u16>,
    received: Received,
    /// An incomplete record and what arrived after it.
    sealed_in: Vec<u8>,
    /// What was decrypted last.
    plain: Vec<u8>,
    /// What was encrypted last. Empty between calls.
    sealed: Vec<u8>,
    /// The socket whose handshake ended while bytes in `plain` are still to be reported.
    early: Option<SocketId>,
}

/// Where the bytes of the last `Received` event are.
enum Received {
    /// The buffer, and the number of bytes in it.
    Buffer(u16, usize),
    /// All of `plain`.
    Decrypted,
}

#[derive(Default)]
struct Slot {
    /// Counts the earlier sockets in this slot: the upper half of an id.
    generation: u32,
    socket: Option<Socket>,
}

struct Socket {
    stream: Stream,
    /// Index into `Uring::addresses`.
    address: u32,
    /// Errno of a failed send; reported once everything that the peer sent before has been read.
    broken: i32,
    connected: bool,
    /// In `Uring::to_send`.
    queued: bool,
    /// Whether a waiting request is sending `draining`.
    drains: bool,
    /// Whether the last check by `close_if_silent` found it silent.
    silent: bool,
    /// What to send next; no buffer if that is nothing. Limited by what the caller sends without waiting.
    out: Vec<u8>,
    /// What the kernel did not accept immediately, before `out`. Not touched while `drains`.
    draining: Vec<u8>,
    tls: Option<Arc<Tls>>,
    /// From `start_tls` on.
    session: Option<Box<TlsSession>>,
}

/// A completed request.
#[derive(Clone, Copy)]
struct Completion {
    socket: SocketId,
    purpose: Purpose,
    /// A count or a negative errno.
    result: i32,
    flags: u32,
}

/// The kind of request; two bits in its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Receive = 0,
    Send = 1,
    Drain = 2,
    Connect = 3,
}

const PURPOSE_SHIFT: u32 = 30;
/// The number of the request that waits for a wake-up: that of a socket that never exists.
const WAKEUP: u64 = u64::MAX;

fn number(socket: SocketId, purpose: Purpose) -> u64 {
    socket.0 | (purpose as u64) << PURPOSE_SHIFT
}

impl Completion {
    fn from(entry: &cqueue::Entry) -> Completion {
        let number = entry.user_data();
        let purpose = match number >> PURPOSE_SHIFT & 3 {
            0 => Purpose::Receive,
            1 => Purpose::Send,
            2 => Purpose::Drain,
            _ => Purpose::Connect,
        };
        Completion {
            socket: SocketId(number & !(3 << PURPOSE_SHIFT)),
            purpose,
            result: entry.result(),
            flags: entry.flags(),
        }
    }
}

impl Uring {
    /// An event loop of the calling thread whose instants are those of `clock`. `batch_max`: events returned before the
    /// resulting sends are submitted, at least 1; usually `BATCH_MAX`. Fails if the kernel does not support or allow
    /// it: `explain` says why.
    pub fn new(clock: Clock, batch_max: usize) -> io::Result<Uring> {
        let ring: IoUring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)?;
        let buffers = Buffers::new(&ring)?;
        // SAFETY: no pointers are passed.
        let wakeup = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if wakeup < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so it is an open descriptor that nothing else owns.
        let wakeup = Arc::new(unsafe { OwnedFd::from_raw_fd(wakeup) });
        Ok(Uring {
            received_at: clock.now(),
            polls: Nanos(0),
            polled: Nanos(0),
            clock,
            ring,
            buffers,
            wakeup,
            wakeups: Box::new(0),
            wakeup_taken: true,
            batch_max: batch_max.max(1),
            slots: Vec::new(),
            free: Vec::new(),
            addresses: Vec::new(),
            to_send: Vec::new(),
            to_drain: Vec::new(),
            to_receive: Vec::new(),
            to_connect: Vec::new(),
            sending: Vec::new(),
            spares: Vec::new(),
            ended: VecDeque::new(),
            batch: 0,
            handed_out: 0,
            failed: None,
            graves: Vec::new(),
            lent: None,
            received: Received::Decrypted,
            sealed_in: Vec::new(),
            plain: Vec::new(),
            sealed: Vec::new(),
            early: None,
        })
    }

    fn insert(&mut self, socket: Socket) -> SocketId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        assert!(index < 1 << PURPOSE_SHIFT, "a process has no billion descriptors");
        let slot = &mut self.slots[index as usize];
        slot.socket = Some(socket);
        SocketId(u64::from(slot.generation) << 32 | u64::from(index))
    }

    /// Drops a socket. What the kernel still does for it ends soon, because the socket is shut down.
    fn remove(&mut self, id: SocketId) {
        if live(&mut self.slots, id).is_none() {
            return;
        }
        let slot = &mut self.slots[index(id)];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index(id) as u32);
        let socket = slot.socket.take().expect("it is alive");
        shut_down(socket.stream.as_raw_fd());
        if socket.drains {
            self.graves.push((number(id, Purpose::Drain), socket.draining));
        }
    }

    fn closed(&mut self, id: SocketId, why: Closed) -> Option<IoEvent> {
        self.remove(id);
        Some(IoEvent::Closed(id, why))
    }

    /// Queues the collected requests. May call the kernel if they are too many for one call.
    fn fill(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.wakeup_taken) {
            let target = (&raw mut *self.wakeups).cast();
            let entry = opcode::Read::new(Fd(self.wakeup.as_raw_fd()), target, 8).build().user_data(WAKEUP);
            // SAFETY: the count is boxed and lives until all requests are cancelled.
            unsafe { self.push(&entry)? };
        }
        for i in 0..self.to_send.len() {
            let id = self.to_send[i];
            let Some(socket) = live(&mut self.slots, id) else { continue };
            socket.queued = false;
            if socket.out.is_empty() || !socket.connected || !socket.draining.is_empty() {
                continue;
            }
            let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;
            let entry = opcode::Send::new(Fd(socket.stream.as_raw_fd()), socket.out.as_ptr(), length(&socket.out))
                .flags(flags)
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS)
                .user_data(number(id, Purpose::Send));
            // SAFETY: `out` is not touched until the call that submits this has returned, and then the kernel has
            // finished with it, because the request does not wait.
            unsafe { self.push(&entry)? };
            self.sending.push(id);
        }
        self.to_send.clear();
        while let Some(id) = self.to_drain.pop() {
            let Some(socket) = live(&mut self.slots, id) else { continue };
            socket.drains = true;
            let (fd, flags) = (Fd(socket.stream.as_raw_fd()), libc::MSG_NOSIGNAL | libc::MSG_WAITALL);
            let entry = opcode::Send::new(fd, socket.draining.as_ptr(), length(&socket.draining)).flags(flags).build();
            let entry = entry.user_data(number(id, Purpose::Drain));
            // SAFETY: `draining` is not touched while `drains` is set; `remove` keeps it for a socket that goes away.
            unsafe { self.push(&entry)? };
        }
        while let Some(id) = self.to_receive.pop() {
            let Some(socket) = live(&mut self.slots, id) else { continue };
            let entry = opcode::Recv::new(Fd(socket.stream.as_raw_fd()), std::ptr::null_mut(), 0)
                .ioprio(POLL_FIRST)
                .buf_group(BUFFER_GROUP)
                .build()
                .flags(squeue::Flags::BUFFER_SELECT)
                .user_data(number(id, Purpose::Receive));
            // SAFETY: writes only into a buffer of the ring; those live until all requests are cancelled.
            unsafe { self.push(&entry)? };
        }
        while let Some(id) = self.to_connect.pop() {
            let Some(socket) = live(&mut self.slots, id) else { continue };
            let fd = Fd(socket.stream.as_raw_fd());
            let entry = opcode::PollAdd::new(fd, libc::POLLOUT as u32).build().user_data(number(id, Purpose::Connect));
            // SAFETY: it writes nowhere.
            unsafe { self.push(&entry)? };
        }
        Ok(())
    }

    /// # Safety
    /// What the request points to stays alive and untouched as long as the kernel uses it.
    unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the caller's promise.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit()?;
        }
        Ok(())
    }

    /// Submits the queued requests without waiting.
    fn submit(&mut self) -> io::Result<()> {
        while !self.ring.submission().is_empty() {
            match self.ring.submit() {
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.reap();
        Ok(())
    }

    /// Submits what is queued, and has the kernel finish what it can, without waiting.
    fn look_for_completions(&mut self) -> io::Result<usize> {
        let queued = self.ring.submission().len() as u32;
        // SAFETY: no pointers are passed.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(queued, 0, ENTER_GETEVENTS, None) }
    }

    /// Looks for completions for as long as `polls` says. The instant at which it gave up; `None`: there are some, or
    /// `until` has come.
    fn poll(&mut self, until: Option<Nanos>, mut now: Nanos) -> io::Result<Option<Nanos>> {
        let end = now + self.polls;
        // A look that sends is work, and so is the first one if it finds something, which was already there. Every
        // other one is polling, whatever it finds, and however long the worker had no CPU meanwhile.
        let mut is_work = true;
        while now < end {
            let sends = !self.ring.submission().is_empty();
            match self.look_for_completions() {
                Err(error) if !is_passing(&error) => return Err(error),
                _ => {}
            }
            let before = std::mem::replace(&mut now, self.clock.now());
            let found = !self.ring.completion().is_empty();
            if !(sends || found && is_work) {
                self.polled += now - before;
            }
            if found || until.is_some_and(|until| until <= now) {
                return Ok(None);
            }
            is_work = false;
        }
        Ok(Some(now))
    }

    /// Collects completions. Every send submitted before is over.
    fn reap(&mut self) {
        let Uring { ring, slots, ended, graves, to_send, to_drain, wakeup_taken, sending, spares, .. } = self;
        for entry in ring.completion() {
            if entry.user_data() == WAKEUP {
                *wakeup_taken = true;
                continue;
            }
            let this = Completion::from(&entry);
            match this.purpose {
                Purpose::Receive | Purpose::Connect => ended.push_back(this),
                Purpose::Send => {
                    if let Some(socket) = live(slots, this.socket) {
                        socket.on_short_send(this.result);
                        if !socket.draining.is_empty() {
                            to_drain.push(this.socket);
                        }
                    }
                }
                Purpose::Drain => match live(slots, this.socket) {
                    None => graves.retain(|(number, _)| *number != entry.user_data()),
                    Some(socket) => {
                        socket.on_drained(this.result);
                        if socket.draining.is_empty() {
                            socket.queue(this.socket, to_send);
                        } else {
                            to_drain.push(this.socket);
                        }
                    }
                },
            }
        }
        for id in sending.drain(..) {
            if let Some(socket) = live(slots, id) {
                let mut out = std::mem::take(&mut socket.out);
                if out.capacity() <= SPARE_BYTES_MAX && spares.len() < SPARES_MAX {
                    out.clear();
                    spares.push(out);
                }
            }
        }
    }

    /// Returns the buffer of the last event to the ring.
    fn give_back(&mut self) {
        if let Some(buffer) = self.lent.take() {
            self.buffers.give(buffer);
        }
    }

    /// Makes an event of a completion, if it is one.
    fn look(&mut self, ended: Completion) -> Option<IoEvent> {
        let id = ended.socket;
        let buffer = cqueue::buffer_select(ended.flags);
        let Some(socket) = live(&mut self.slots, id) else {
            // The socket was closed when its last bytes had arrived.
            self.lent = buffer;
            return None;
        };
        let address = &self.addresses[socket.address as usize];
        if ended.purpose == Purpose::Connect {
            match socket.stream.connected().and_then(|connected| Ok((connected, socket.stream.wait_in_kernel()?))) {
                Ok((true, ())) => {
                    socket.connected = true;
                    self.to_receive.push(id);
                    socket.queue(id, &mut self.to_send);
                    return Some(IoEvent::Connected(id));
                }
                Ok((false, ())) => {
                    self.to_connect.push(id);
                    return None;
                }
                Err(error) => {
                    let why = trouble::connecting(address, &error).into();
                    return self.closed(id, why);
                }
            }
        }
        let end = match ended.result {
            count @ 1.. => {
                let buffer = buffer.expect("a receive that gives bytes names their buffer");
                self.lent = Some(buffer);
                self.to_receive.push(id);
                return self.take_in(id, buffer, count as usize);
            }
            0 => None,
            // All buffers were in use, or a signal came: request again.
            errno if [-libc::ENOBUFS, -libc::EINTR, -libc::EAGAIN].contains(&errno) => {
                self.to_receive.push(id);
                return None;
            }
            errno => Some(io::Error::from_raw_os_error(-errno)),
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

    /// Makes an event of the bytes that arrived.
    fn take_in(&mut self, id: SocketId, buffer: u16, len: usize) -> Option<IoEvent> {
        let Uring { slots, buffers, addresses, sealed_in, plain, sealed, to_send, .. } = self;
        let socket = slots[index(id)].socket.as_mut().expect("it was just read from");
        let Some(session) = &mut socket.session else {
            self.received = Received::Buffer(buffer, len);
            return Some(IoEvent::Received(id));
        };
        sealed_in.clear();
        sealed_in.extend_from_slice(session.rest());
        sealed_in.extend_from_slice(buffers.bytes(buffer, len));
        plain.clear();
        let result = session.receive(sealed_in, plain, sealed);
        // A close_notify ends the stream as the end of the stream does.
        if session.is_closed() {
            shut_down(socket.stream.as_raw_fd());
        }
        let secured = session.is_secured();
        let facts = result.as_ref().is_ok_and(|ended| *ended).then(|| session.facts());
        if !sealed.is_empty() {
            socket.out.append(sealed);
            socket.queue(id, to_send);
        }
        if let Err(error) = result {
            socket.send_now(); // the alert that tells the server
            let why = tls::explain(&addresses[socket.address as usize], &error, secured);
            return self.closed(id, why);
        }
        self.received = Received::Decrypted;
        match facts {
            Some(facts) => {
                self.early = (!self.plain.is_empty()).then_some(id);
                Some(IoEvent::Secured(id, facts))
            }
            None => (!self.plain.is_empty()).then_some(IoEvent::Received(id)),
        }
    }
}

impl Io for Uring {
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn received_at(&self) -> Nanos {
        self.received_at
    }

    fn connect(&mut self, address: &Address, tls: Option<&Arc<Tls>>) -> Result<SocketId, ConnectError> {
        let known = self.addresses.iter().position(|known| known == address);
        let known = known.unwrap_or_else(|| {
            self.addresses.push(address.clone());
            self.addresses.len() - 1
        });
        let stream = Stream::connect(address).map_err(|error| trouble::connecting(address, &error))?;
        let id = self.insert(Socket {
            stream,
            address: known as u32,
            broken: 0,
            connected: false,
            queued: false,
            drains: false,
            silent: false,
            out: Vec::new(),
            draining: Vec::new(),
            tls: tls.cloned(),
            session: None,
        });
        self.to_connect.push(id);
        Ok(id)
    }

    fn send(&mut self, id: SocketId, bytes: &[u8]) {
        let Uring { slots, to_send, spares, .. } = self;
        let Some(socket) = live(slots, id) else { return };
        if socket.broken != 0 {
            return;
        }
        if socket.out.capacity() == 0 {
            socket.out = spares.pop().unwrap_or_default();
        }
        match socket.session.take() {
            None => socket.out.extend_from_slice(bytes),
            Some(mut session) => {
                assert!(session.is_secured(), "nothing is sent between start_tls and Secured");
                for piece in bytes.chunks(ENCRYPT_BYTES) {
                    if session.encrypt(piece, &mut socket.out).is_err() {
                        // The keys are worn out (2⁶⁴ records) or the peer has broken the session; the read will report
                        // it.
                        socket.fail(libc::EPROTO);
                        break;
                    }
                }
                socket.session = Some(session);
            }
        }
        socket.queue(id, to_send);
    }

    /// Requires the `Tls` that was passed to `connect`.
    fn start_tls(&mut self, id: SocketId) {
        let Uring { slots, to_send, .. } = self;
        let Some(socket) = live(slots, id) else { return };
        let tls = socket.tls.take().expect("connect was told how to encrypt");
        match TlsSession::start(&tls, &mut socket.out) {
            Ok(session) => socket.session = Some(Box::new(session)),
            Err(_) => socket.fail(libc::EPROTO),
        }
        socket.queue(id, to_send);
    }

    fn keep_alive(&mut self, id: SocketId, limit: Nanos) {
        if let Some(socket) = live(&mut self.slots, id) {
            socket.stream.keep_alive(limit);
        }
    }

    fn close_if_silent(&mut self, id: SocketId, limit: Nanos) {
        let Some(socket) = live(&mut self.slots, id).filter(|socket| socket.connected) else { return };
        let silent = socket.stream.is_silent(limit);
        if std::mem::replace(&mut socket.silent, silent) && silent {
            socket.fail(libc::ETIMEDOUT);
        }
    }

    fn close(&mut self, id: SocketId) {
        let Some(socket) = live(&mut self.slots, id) else { return };
        if let Some(session) = socket.session.as_mut().filter(|session| session.is_secured()) {
            // A goodbye that cannot be sent is omitted.
            let _ = session.close(&mut socket.out);
        }
        // What does not fit now is lost, and so is an error: for the caller nothing matters any more.
        socket.send_now();
        self.remove(id);
    }

    fn wait(&mut self, until: Option<Nanos>) -> io::Result<()> {
        self.give_back();
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.fill()?;
        let now = self.clock.now();
        // Instants that have passed, and completions within the last batch: check without sleeping.
        let sleeps = self.ended.is_empty() && until.is_none_or(|until| until > now);
        let sleeps_from = if sleeps { self.poll(until, now)? } else { None };
        let result = match (sleeps_from, until) {
            (Some(now), Some(until)) => {
                let timeout = Timespec::from(Duration::from_nanos((until - now).0));
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout))
            }
            (Some(_), None) => self.ring.submit_and_wait(1),
            (None, _) => self.look_for_completions(),
        };
        self.received_at = self.clock.now();
        match result {
            Err(error) if !is_passing(&error) && error.raw_os_error() != Some(libc::ETIME) => return Err(error),
            _ => {}
        }
        // Normally nothing is left.
        self.submit()?;
        self.batch = self.ended.len();
        self.handed_out = 0;
        Ok(())
    }

    fn polled(&self) -> Nanos {
        self.polled
    }

    fn next_event(&mut self) -> Option<IoEvent> {
        self.give_back();
        if let Some(id) = self.early.take()
            && live(&mut self.slots, id).is_some()
        {
            return Some(IoEvent::Received(id));
        }
        while self.batch > 0 {
            if self.handed_out == self.batch_max {
                self.handed_out = 0;
                if let Err(error) = self.fill().and_then(|()| self.submit()) {
                    self.failed = Some(error);
                }
            }
            self.batch -= 1;
            let ended = self.ended.pop_front().expect("batch <= ended.len()");
            let event = self.look(ended);
            if event.is_some() {
                self.handed_out += 1;
                return event;
            }
            self.give_back();
        }
        None
    }

    fn received(&self) -> &[u8] {
        match self.received {
            Received::Buffer(buffer, len) => self.buffers.bytes(buffer, len),
            Received::Decrypted => &self.plain,
        }
    }

    fn waker(&self) -> Waker {
        Waker::descriptor(Arc::clone(&self.wakeup))
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Nothing may use our memory once it is freed. A kernel that cannot cancel everything now cancels it together
        // with the ring, a moment later: then the memory is leaked.
        for slot in &self.slots {
            if let Some(socket) = &slot.socket {
                shut_down(socket.stream.as_raw_fd());
            }
        }
        let cancelled = self.ring.submitter().register_sync_cancel(None, CancelBuilder::any());
        if cancelled.is_err_and(|error| error.raw_os_error() != Some(libc::ENOENT)) {
            std::mem::forget(std::mem::take(&mut self.wakeups));
            std::mem::forget(std::mem::take(&mut self.graves));
            std::mem::forget(std::mem::take(&mut self.slots));
            self.buffers.leak();
        }
    }
}

impl Socket {
    fn queue(&mut self, id: SocketId, to_send: &mut Vec<SocketId>) {
        if !self.queued && !self.out.is_empty() {
            self.queued = true;
            to_send.push(id);
        }
    }

    /// The kernel accepted this many bytes of `out` and would have blocked, or refused.
    fn on_short_send(&mut self, result: i32) {
        match result {
            errno if errno < 0 && ![-libc::EAGAIN, -libc::EINTR].contains(&errno) => self.fail(-errno),
            count => self.draining.extend_from_slice(&self.out[self.out.len().min(count.max(0) as usize)..]),
        }
    }

    /// The waiting request has ended.
    fn on_drained(&mut self, result: i32) {
        self.drains = false;
        match result {
            errno if errno < 0 && ![-libc::EAGAIN, -libc::EINTR].contains(&errno) => self.fail(-errno),
            count => drop(self.draining.drain(..self.draining.len().min(count.max(0) as usize))),
        }
        if self.draining.is_empty() {
            self.draining = Vec::new();
        }
    }

    /// Sends what the kernel accepts without waiting.
    fn send_now(&self) {
        if self.connected && self.draining.is_empty() && self.broken == 0 {
            let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
            // SAFETY: the buffer is readable for its whole length. Errors do not matter.
            unsafe { libc::send(self.stream.as_raw_fd(), self.out.as_ptr().cast(), self.out.len(), flags) };
        }
    }

    /// The peer is gone. What it sent before, perhaps its reason, can still be read; after that the read ends. The
    /// first reason counts: everything else fails as a consequence.
    fn fail(&mut self, errno: i32) {
        if self.broken == 0 {
            self.broken = errno;
        }
        self.out.clear();
        self.draining.clear();
        shut_down(self.stream.as_raw_fd());
    }
}

impl Stream {
    /// Lets requests of the ring wait for a socket that has connected.
    fn wait_in_kernel(&self) -> io::Result<()> {
        let fd = self.as_raw_fd();
        // SAFETY: no pointers are passed.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        // SAFETY: no pointers are passed.
        if flags < 0 || unsafe { libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_NONBLOCK) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// Ends everything that waits for the socket. Bytes that arrived before can still be read. Fails only if there is
/// nothing to end.
fn shut_down(fd: RawFd) {
    // SAFETY: no pointers are passed.
    unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
}

/// The call did nothing for a temporary reason: a signal, or completions that must be collected first.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN))
}

fn length(bytes: &[u8]) -> u32 {
    // What remains goes in a second request.
    bytes.len().min(1 << 30) as u32
}

/// `IORING_RECVSEND_POLL_FIRST` of the kernel's interface: do not try before the socket is ready.
const POLL_FIRST: u16 = 1;
/// `IORING_ENTER_GETEVENTS` of the kernel's interface: run what is ready.
const ENTER_GETEVENTS: u32 = 1;

fn live(slots: &mut [Slot], id: SocketId) -> Option<&mut Socket> {
    slots.get_mut(index(id)).filter(|slot| slot.generation == (id.0 >> 32) as u32)?.socket.as_mut()
}

fn index(id: SocketId) -> usize {
    id.0 as u32 as usize
}

/// Buffers that the kernel fills when bytes have arrived, and the ring through which it gets them.
struct Buffers {
    /// `BUFFERS` entries, on a page of their own.
    ring: NonNull<BufRingEntry>,
    /// `BUFFERS` times `BUFFER_BYTES`.
    memory: NonNull<u8>,
    /// Buffers ever added, modulo 2¹⁶.
    tail: u16,
    leaked: bool,
}

impl Buffers {
    fn ring_layout() -> Layout {
        Layout::array::<BufRingEntry>(BUFFERS.into()).and_then(|layout| layout.align_to(4096)).expect("small numbers")
    }

    fn memory_layout() -> Layout {
        Layout::from_size_align(usize::from(BUFFERS) * BUFFER_BYTES, 4096).expect("small numbers")
    }

    fn new(ring: &IoUring) -> io::Result<Buffers> {
        // Zeroed memory of this size comes untouched from the system.
        let allocate = |layout: Layout| {
            // SAFETY: the layout's size is not zero.
            NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).unwrap_or_else(|| alloc::handle_alloc_error(layout))
        };
        let mut buffers = Buffers {
            ring: allocate(Buffers::ring_layout()).cast(),
            memory: allocate(Buffers::memory_layout()),
            tail: 0,
            leaked: false,
        };
        // SAFETY: the memory is page-aligned, as large as announced, and outlives the requests (`Uring::drop`).
        unsafe {
            ring.submitter().register_buf_ring_with_flags(buffers.ring.as_ptr() as u64, BUFFERS, BUFFER_GROUP, 0)?;
        }
        (0..BUFFERS).for_each(|buffer| buffers.give(buffer));
        Ok(buffers)
    }

    /// Lets the kernel use a buffer (again).
    fn give(&mut self, buffer: u16) {
        assert!(buffer < BUFFERS, "the kernel names buffers that it was given");
        let place = usize::from(self.tail % BUFFERS);
        // SAFETY: `place` is inside the ring. The kernel reads only entries below the tail, and this one is above it:
        // there are as many places as buffers.
        let entry = unsafe { &mut *self.ring.as_ptr().add(place) };
        // SAFETY: the buffer is inside the memory.
        entry.set_addr(unsafe { self.memory.as_ptr().add(usize::from(buffer) * BUFFER_BYTES) } as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is in the ring's first entry, in a field that `set_*` do not touch, and is aligned. The
        // kernel reads it while we write, hence the atomic.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.ring.as_ptr()).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    fn bytes(&self, buffer: u16, len: usize) -> &[u8] {
        assert!(buffer < BUFFERS && len <= BUFFER_BYTES, "the kernel names buffers that it was given");
        // SAFETY: it is inside the memory, and the kernel does not write to a buffer that was not returned; `give`
        // needs `&mut self`.
        unsafe { slice::from_raw_parts(self.memory.as_ptr().add(usize::from(buffer) * BUFFER_BYTES), len) }
    }

    /// The kernel may still use it.
    fn leak(&mut self) {
        self.leaked = true;
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if self.leaked {
            return;
        }
        // SAFETY: allocated with these layouts in `new`; no remaining request uses them (`Uring::drop`).
        unsafe {
            alloc::dealloc(self.ring.as_ptr().cast(), Buffers::ring_layout());
            alloc::dealloc(self.memory.as_ptr(), Buffers::memory_layout());
        }
    }
}

/// Why io_uring is not available, as a fragment after "io_uring is not used: ".
pub fn explain(error: &io::Error) -> String {
    let switched_off = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    words(error, switched_off.trim())
}

/// `switched_off`: the content of kernel.io_uring_disabled; empty if there is no such setting.
fn words(error: &io::Error, switched_off: &str) -> String {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => "not available in this kernel, or blocked by a security policy (seccomp)".to_owned(),
        Some(libc::EPERM) if !matches!(switched_off, "" | "0") => {
            format!("it is switched off on this machine (kernel.io_uring_disabled = {switched_off})")
        }
        Some(libc::EPERM | libc::EACCES) => {
            "a security policy (seccomp, as in many containers, or an LSM) forbids it".to_owned()
        }
        Some(libc::EINVAL) => "this kernel is too old: Linux 6.1 or later is needed".to_owned(),
        Some(libc::ENOMEM) => "the locked memory limit is too low (`ulimit -l`), or memory ran out".to_owned(),
        _ => os_error::words(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_refuses_is_explained_by_its_reason() {
        let explained = |errno, setting| words(&io::Error::from_raw_os_error(errno), setting);
        assert!(explained(libc::ENOSYS, "").contains("not available in this kernel"));
        assert!(explained(libc::EPERM, "0").contains("seccomp"));
        assert!(explained(libc::EPERM, "").contains("seccomp"));
        assert!(explained(libc::EPERM, "2").contains("kernel.io_uring_disabled = 2"));
        assert!(explained(libc::EINVAL, "0").contains("Linux 6.1"));
        assert!(explained(libc::ENOMEM, "0").contains("ulimit -l"));
        assert_eq!(explained(libc::EMFILE, "0"), "too many open files");
    }

    #[test]
    fn the_number_of_a_request_names_its_socket_and_what_was_asked() {
        for purpose in [Purpose::Receive, Purpose::Send, Purpose::Drain, Purpose::Connect] {
            let socket = SocketId(0xFFFF_FFFF << 32 | 12_345);
            let number = number(socket, purpose);
            assert_ne!(number, WAKEUP);
            let purpose_of = |number: u64| number >> PURPOSE_SHIFT & 3;
            assert_eq!((number & !(3 << PURPOSE_SHIFT), purpose_of(number)), (socket.0, purpose as u64));
        }
    }
}
