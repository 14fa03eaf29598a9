//! All links of a worker: their sockets and timers, the connect queue, the bytes sent and received.
//!
//! Links know nothing about what sessions do. Whatever happens to a link is returned as `Heard`, and the sessions
//! decide what follows.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use assay_io::{Closed, Io, IoEvent, SocketId};
use assay_seam::{Class, Exchange, Nanos, Operation, Origin, Progress, Reply, Retry, RowsPool, StatementError};

use super::link::{Batch, InFlight, Link, LinkDoing};
use super::timers::Timers;
use crate::messages::{Message, Wait};
use crate::observer::Warning;
use crate::plan::Plan;

/// See the module.
pub(super) struct Links<I: Io> {
    plan: Arc<Plan>,
    outbox: Sender<Message>,
    pub(super) io: I,
    links: Vec<Link>,
    /// Links of dropped sessions, for reuse.
    free: Vec<usize>,
    /// Link by the lower half of its socket's id.
    sockets: Vec<usize>,
    timers: Timers,
    /// Links that wait for their turn to connect.
    queue: VecDeque<usize>,
    connecting: usize,
    connect_next: Nanos,
    /// `Connects::silence_max`, if there are sockets.
    silence_max: Option<Nanos>,
    /// When to check next for connections whose answers are late.
    silence_next: Nanos,
    out: Vec<u8>,
    pub(super) pool: RowsPool,
    /// By target: whether a slow connect was reported, and what the server reported about itself.
    slow_connects: Vec<bool>,
    facts_told: Vec<bool>,
}

/// What happened to a link.
#[derive(Debug)]
pub(super) enum Heard {
    /// The operation in flight is answered.
    Answered { link: usize, reply: Reply },
    /// It never will be answered: the socket is gone. `may_have_committed`: nobody knows whether it changed something
    /// permanently.
    Lost { link: usize, error: Box<StatementError>, may_have_committed: bool },
    /// The rows of the load in flight have been sent.
    RowsSent { link: usize },
    /// Our own rollback is answered, or lost with the socket.
    RolledBack { link: usize },
    /// It is connected and logged in. `again`: for the second time or later.
    Ready { link: usize, again: bool },
    /// The server has closed its side, or it took too long.
    Left { link: usize },
    /// It could not be connected.
    Refused { link: usize, error: Box<StatementError> },
}

/// The server's kernel did not accept such a connect immediately, so it was sent again: Linux waits a second before
/// that.
const SLOW_CONNECT: Nanos = Nanos::from_secs(1);

/// Checks of a silent machine per time limit; two in a row must find it gone.
const LOOKS_PER_LIMIT: u64 = 8;

impl<I: Io> Links<I> {
    pub(super) fn new(plan: Arc<Plan>, outbox: Sender<Message>, io: I) -> Links<I> {
        let targets = plan.targets.len();
        let networked = plan.targets.iter().any(|target| !target.addresses.is_empty());
        Links {
            outbox,
            io,
            links: Vec::new(),
            free: Vec::new(),
            sockets: Vec::new(),
            timers: Timers::default(),
            queue: VecDeque::new(),
            connecting: 0,
            connect_next: Nanos::ZERO,
            silence_max: plan.connects.silence_max.filter(|_| networked),
            silence_next: Nanos::ZERO,
            out: Vec::new(),
            pool: RowsPool::default(),
            slow_connects: vec![false; targets],
            facts_told: vec![false; targets],
            plan,
        }
    }

    /// Whether all of these are usable.
    pub(super) fn are_open(&self, links: &[Option<usize>]) -> bool {
        links.iter().flatten().all(|link| self.links[*link].is_open())
    }

    /// This link, if it can take an operation.
    pub(super) fn usable(&self, link: Option<usize>) -> Option<usize> {
        link.filter(|link| self.links[*link].is_open())
    }

    /// When something must be done, whatever happens on the sockets.
    pub(super) fn deadline(&self) -> Nanos {
        let mut until = self.timers.next();
        if self.may_connect() {
            until = until.min(self.connect_next);
        }
        if self.silence_max.is_some() && !self.links.is_empty() {
            until = until.min(self.silence_next);
        }
        until
    }

    /// Something arrived at `at`.
    pub(super) fn on_event(&mut self, event: IoEvent, at: Nanos) -> Option<Heard> {
        let (IoEvent::Received(socket)
        | IoEvent::Connected(socket)
        | IoEvent::Secured(socket, _)
        | IoEvent::Closed(socket, _)) = event;
        let link = self.link_of(socket)?;
        if self.links[link].doing == LinkDoing::Leaving && !matches!(event, IoEvent::Closed(..)) {
            return None;
        }
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now: at };
        let machine = &mut self.links[link].machine;
        let progress = match event {
            IoEvent::Received(_) => machine.on_bytes(self.io.received(), &mut exchange),
            IoEvent::Secured(_, facts) => machine.on_secured(&facts, &mut exchange),
            IoEvent::Connected(_) => {
                let progress = machine.on_connected(&mut exchange);
                self.note_connected(link, socket, at);
                progress
            }
            IoEvent::Closed(_, closed) => return self.on_closed(link, &closed, at),
        };
        self.follow(link, progress, at)
    }

    /// The link of a socket's event.
    fn link_of(&self, socket: SocketId) -> Option<usize> {
        let link = *self.sockets.get(socket.0 as u32 as usize)?;
        (self.links.get(link)?.socket == Some(socket)).then_some(link)
    }

    /// The server's kernel accepted the connect: the login is next.
    fn note_connected(&mut self, link: usize, socket: SocketId, at: Nanos) {
        let this = &mut self.links[link];
        this.established = true;
        let (target, took) = (this.target, at - this.sent);
        if let Some(limit) = self.silence_max {
            self.io.keep_alive(socket, limit);
        }
        if took >= SLOW_CONNECT && !std::mem::replace(&mut self.slow_connects[target], true) {
            self.send(Message::Warning(Warning::SlowConnects { target, took }));
        }
    }

    fn on_closed(&mut self, link: usize, closed: &Closed, at: Nanos) -> Option<Heard> {
        self.links[link].socket = None;
        let mut error = StatementError::network(closed.message.clone());
        error.hint.clone_from(&closed.hint);
        if closed.tls {
            error.class = Class::Encryption;
        }
        self.lose(link, Box::new(error), at)
    }

    /// Fires an alarm that is due; returns false if there is none.
    pub(super) fn ring(&mut self, now: Nanos) -> Option<Option<Heard>> {
        let (link, serial) = self.timers.take_due(now)?;
        Some(if self.links[link].timer == serial { self.on_alarm(link, now) } else { None })
    }

    /// The connect takes too long, the embedded database may be free again, or the pause before the next connect is
    /// over.
    fn on_alarm(&mut self, link: usize, now: Nanos) -> Option<Heard> {
        match self.links[link].doing {
            LinkDoing::Connecting if self.links[link].socket.is_none() => {
                let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
                let progress = self.links[link].machine.on_timeout(&mut exchange);
                self.follow(link, progress, now)
            }
            LinkDoing::Connecting => self.give_up_connect(link, now),
            // The connection asked for a new socket, and that one is not there yet.
            LinkDoing::Operation { .. } if self.links[link].is_connecting() => self.give_up_connect(link, now),
            LinkDoing::Pausing => {
                self.connect(link);
                None
            }
            LinkDoing::Leaving => Some(Heard::Left { link }),
            LinkDoing::Operation { .. } | LinkDoing::Rollback => {
                let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
                let progress = self.links[link].machine.on_timeout(&mut exchange);
                let at = self.io.now();
                self.follow(link, progress, at)
            }
            LinkDoing::Idle | LinkDoing::Broken | LinkDoing::Free => None,
        }
    }

    fn give_up_connect(&mut self, link: usize, now: Nanos) -> Option<Heard> {
        self.close_socket(link);
        let seconds = self.connect_timeout(link).as_secs_f64();
        let what = if self.links[link].established { "login" } else { "connect" };
        let mut error = StatementError::network(format!("no answer to the {what} within {seconds} s"));
        error.class = Class::Timeout;
        self.lose(link, Box::new(error), now)
    }

    /// Checks regularly whether machines whose answers are late still respond.
    pub(super) fn end_silent(&mut self, now: Nanos) {
        let Some(limit) = self.silence_max else { return };
        if now < self.silence_next {
            return;
        }
        self.silence_next = now + Nanos(limit.0 / LOOKS_PER_LIMIT);
        for link in &self.links {
            let owes = matches!(link.doing, LinkDoing::Operation { .. } | LinkDoing::Rollback);
            if let Some(socket) = link.socket.filter(|_| owes && now - link.sent >= limit) {
                self.io.close_if_silent(socket, limit);
            }
        }
    }

    /// The answer that a server has owed longest.
    pub(super) fn longest_wait(&self) -> Option<Wait> {
        let wait = |link: &Link| {
            let what = match link.doing {
                LinkDoing::Connecting if link.socket.is_none() => return None,
                LinkDoing::Connecting if link.established => "a login",
                LinkDoing::Connecting => "a connect",
                LinkDoing::Operation { .. } | LinkDoing::Rollback => "a statement",
                LinkDoing::Leaving => "a goodbye",
                LinkDoing::Pausing | LinkDoing::Idle | LinkDoing::Broken | LinkDoing::Free => return None,
            };
            Some(Wait { target: link.target, what, since: link.sent })
        };
        self.links.iter().filter_map(wait).min_by_key(|wait| wait.since)
    }

    /// A new connection to this target, queued for connecting.
    pub(super) fn open(&mut self, session: usize, target: usize) -> usize {
        let link = Link::new(self.plan.targets[target].database.connection(), session, target);
        let index = match self.free.pop() {
            Some(index) => {
                self.links[index] = link;
                index
            }
            None => {
                self.links.push(link);
                self.links.len() - 1
            }
        };
        self.queue.push_back(index);
        index
    }

    /// Queues a link for connecting, starting with its first address.
    pub(super) fn connect(&mut self, link: usize) {
        self.links[link].doing = LinkDoing::Connecting;
        self.links[link].address = 0;
        self.queue.push_back(link);
    }

    /// Queues it after a pause.
    pub(super) fn connect_after(&mut self, link: usize, pause: Nanos) {
        self.links[link].doing = LinkDoing::Pausing;
        let wake = self.io.now() + pause;
        self.links[link].timer = self.timers.set(wake, link);
    }

    fn may_connect(&self) -> bool {
        let pending_max = self.plan.connects.pending_max.div_ceil(self.plan.workers_of_all()).max(1);
        !self.queue.is_empty() && self.connecting < pending_max
    }

    /// Starts a queued connect, if the limits allow one now.
    pub(super) fn connect_next(&mut self) -> Option<Option<Heard>> {
        if !self.may_connect() {
            return None;
        }
        let now = self.io.now();
        if let Some(rate) = self.plan.connects.rate {
            if now < self.connect_next {
                return None;
            }
            let gap = Nanos::from_secs_f64(self.plan.workers_of_all() as f64 / rate);
            self.connect_next = self.connect_next.max(now.max(gap) - gap) + gap;
        }
        let link = self.queue.pop_front()?;
        Some(self.open_socket(link, now))
    }

    /// Also while an operation is in flight, if its connection wants another socket for it: its time goes on.
    fn open_socket(&mut self, link: usize, now: Nanos) -> Option<Heard> {
        let this = &mut self.links[link];
        let connecting = match this.doing {
            LinkDoing::Connecting => true,
            LinkDoing::Operation { .. } => false,
            _ => return None,
        };
        this.established = false;
        if connecting {
            this.sent = now;
        }
        let target = &self.plan.targets[this.target];
        if target.addresses.is_empty() {
            let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
            let progress = this.machine.on_connected(&mut exchange);
            return self.follow(link, progress, now);
        }
        if connecting && !this.pending {
            this.pending = true;
            self.connecting += 1;
        }
        match self.io.connect(&target.addresses[this.address], target.tls(this.address)) {
            Ok(socket) => {
                let index = socket.0 as u32 as usize;
                if self.sockets.len() <= index {
                    self.sockets.resize(index + 1, usize::MAX);
                }
                self.sockets[index] = link;
                self.links[link].socket = Some(socket);
                let timeout = self.connect_timeout(link);
                self.links[link].timer = self.timers.set(now + timeout, link);
                None
            }
            Err(refused) => {
                let mut error = StatementError::network(refused.message);
                error.hint = refused.hint;
                if connecting { self.refuse(link, Box::new(error), now) } else { self.lose(link, Box::new(error), now) }
            }
        }
    }

    /// How long this link's connect and login may take: the target's own limit, or else the plan's.
    fn connect_timeout(&self, link: usize) -> Nanos {
        let database = &self.plan.targets[self.links[link].target].database;
        database.connect_timeout().unwrap_or(self.plan.connects.timeout)
    }

    /// Executes something for the session. `ahead`: it continues once the rows of a load are sent. Returns the result
    /// if there is one immediately.
    pub(super) fn execute(
        &mut self,
        link: usize,
        operation: &Operation<'_>,
        statement: bool,
        ahead: bool,
    ) -> Option<Heard> {
        let now = self.io.now();
        let this = &mut self.links[link];
        this.sent = now;
        this.was_in_transaction = this.machine.in_transaction();
        this.doing = LinkDoing::Operation { load: matches!(operation, Operation::Load { .. }), statement };
        this.in_flight = if std::mem::take(&mut this.piped) { InFlight::Pipeline } else { InFlight::Operation };
        this.batch = if ahead { Batch::Sending } else { Batch::Awaited };
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
        let progress = this.machine.execute(operation, &mut exchange);
        self.follow(link, progress, now)
    }

    /// Hands over a load while the one before it is in flight; false if it must be executed later.
    pub(super) fn load_ahead(&mut self, link: usize, operation: &Operation<'_>) -> bool {
        let this = &mut self.links[link];
        let is_held = this.machine.load_ahead(operation);
        if is_held {
            this.batch = Batch::Ahead;
        }
        is_held
    }

    /// Holds an execution back until the next one; false if it cannot wait.
    pub(super) fn defer(&mut self, link: usize, operation: &Operation<'_>) -> bool {
        let this = &mut self.links[link];
        let waits = this.machine.defer(operation);
        this.deferred |= waits;
        waits
    }

    /// Executes an operation in a pipeline.
    pub(super) fn pipe(&mut self, link: usize, operation: &Operation<'_>) -> bool {
        let this = &mut self.links[link];
        let waits = this.machine.pipe(operation);
        this.deferred |= waits;
        this.piped |= waits;
        waits
    }

    /// Sends what waits on a link.
    pub(super) fn flush(&mut self, link: usize) -> Option<Heard> {
        let now = self.io.now();
        let this = &mut self.links[link];
        this.sent = now;
        this.was_in_transaction = this.machine.in_transaction();
        this.doing = LinkDoing::Operation { load: false, statement: false };
        this.in_flight = if std::mem::take(&mut this.piped) { InFlight::Pipeline } else { InFlight::Harmless };
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
        let progress = this.machine.flush(&mut exchange);
        self.follow(link, progress, now)
    }

    /// Waits for a notification, at most this long.
    pub(super) fn notification(&mut self, link: usize, limit: Nanos) -> Option<Heard> {
        let now = self.io.now();
        let this = &mut self.links[link];
        this.sent = now;
        this.was_in_transaction = this.machine.in_transaction();
        this.doing = LinkDoing::Operation { load: false, statement: false };
        this.in_flight = InFlight::Harmless;
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
        let progress = this.machine.notification(limit, &mut exchange);
        self.follow(link, progress, now)
    }

    /// Rolls back the open transaction.
    pub(super) fn roll_back(&mut self, link: usize) -> Option<Heard> {
        let now = self.io.now();
        let this = &mut self.links[link];
        this.rolled_back = true;
        this.doing = LinkDoing::Rollback;
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
        let progress = this.machine.execute(&Operation::RollBack, &mut exchange);
        self.follow(link, progress, now)
    }

    /// Sends what the connection wrote, and does what it asks for.
    fn follow(&mut self, link: usize, progress: Progress, at: Nanos) -> Option<Heard> {
        let this = &mut self.links[link];
        if !self.out.is_empty() {
            if let Some(socket) = this.socket {
                self.io.send(socket, &self.out);
            }
            self.out.clear();
        }
        match progress {
            Progress::Pending => {
                if matches!(this.batch, Batch::Sending) && this.machine.has_sent_rows() {
                    this.batch = Batch::Unanswered;
                    return Some(Heard::RowsSent { link });
                }
                None
            }
            Progress::Reply(reply) => match this.doing {
                LinkDoing::Operation { .. } => {
                    // It may have come before the time that limited the wait.
                    this.timer = 0;
                    Some(Heard::Answered { link, reply })
                }
                LinkDoing::Rollback => {
                    this.doing = LinkDoing::Idle;
                    if let Some(rows) = reply.rows {
                        self.pool.put(rows);
                    }
                    Some(Heard::RolledBack { link })
                }
                _ => None,
            },
            Progress::Ready => Some(self.note_ready(link)),
            Progress::StartTls => {
                if let Some(socket) = this.socket {
                    self.io.start_tls(socket);
                }
                None
            }
            Progress::Wait(pause) => {
                let wake = self.io.now() + pause;
                this.timer = self.timers.set(wake, link);
                None
            }
            Progress::Reconnect => {
                if self.close_socket(link) {
                    self.links[link].machine.on_closed();
                }
                self.open_socket(link, at)
            }
            Progress::Failed(error) => {
                self.close_socket(link);
                self.lose(link, error, at)
            }
        }
    }

    fn note_ready(&mut self, link: usize) -> Heard {
        self.no_longer_pending(link);
        let this = &mut self.links[link];
        this.doing = LinkDoing::Idle;
        this.timer = 0;
        let again = std::mem::replace(&mut this.was_open, true);
        let target = this.target;
        if !std::mem::replace(&mut self.facts_told[target], true) {
            let facts = self.links[link].machine.server();
            self.send(Message::Server { target, facts });
        }
        Heard::Ready { link, again }
    }

    fn no_longer_pending(&mut self, link: usize) {
        if std::mem::take(&mut self.links[link].pending) {
            self.connecting -= 1;
        }
    }

    /// Returns whether there was one.
    fn close_socket(&mut self, link: usize) -> bool {
        let socket = self.links[link].socket.take();
        socket.inspect(|socket| self.io.close(*socket)).is_some()
    }

    /// The socket is gone.
    fn lose(&mut self, link: usize, error: Box<StatementError>, at: Nanos) -> Option<Heard> {
        let this = &mut self.links[link];
        let may_have_committed = matches!(this.doing, LinkDoing::Operation { .. }) && this.may_have_committed();
        let another_way = this.machine.on_closed();
        (this.timer, this.deferred) = (0, false);
        match this.doing {
            LinkDoing::Connecting | LinkDoing::Operation { .. } if another_way => self.open_socket(link, at),
            // The connection asks for a socket when it needs one.
            LinkDoing::Idle if another_way => None,
            LinkDoing::Connecting => self.refuse(link, error, at),
            LinkDoing::Operation { .. } => {
                this.doing = LinkDoing::Broken;
                Some(Heard::Lost { link, error, may_have_committed })
            }
            LinkDoing::Rollback => {
                this.doing = LinkDoing::Broken;
                Some(Heard::RolledBack { link })
            }
            LinkDoing::Idle => {
                this.doing = LinkDoing::Broken;
                this.broken = Some(error);
                None
            }
            LinkDoing::Leaving => Some(Heard::Left { link }),
            LinkDoing::Pausing | LinkDoing::Broken | LinkDoing::Free => None,
        }
    }

    /// A connect failed: tries the next address, if there is one and this server cannot take the session.
    fn refuse(&mut self, link: usize, error: Box<StatementError>, at: Nanos) -> Option<Heard> {
        let this = &mut self.links[link];
        let addresses = self.plan.targets[this.target].addresses.len();
        // Nothing answers there; or what answers is not the primary, or does not accept sessions now.
        let is_elsewhere = error.class == Class::Connection && error.retry == Retry::Reconnect;
        if (error.origin == Origin::Network || is_elsewhere) && this.address + 1 < addresses {
            this.address += 1;
            return self.open_socket(link, at);
        }
        this.doing = LinkDoing::Broken;
        self.no_longer_pending(link);
        Some(Heard::Refused { link, error })
    }

    /// Closes the socket immediately; the next operation fails with `why`.
    pub(super) fn sever(&mut self, link: usize, why: StatementError) {
        self.no_longer_pending(link);
        if self.links[link].is_open() {
            let now = self.io.now();
            let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
            self.links[link].machine.close(&mut exchange);
            if let Some(socket) = self.links[link].socket {
                self.io.send(socket, &self.out);
            }
            self.out.clear();
        }
        self.close_socket(link);
        let this = &mut self.links[link];
        this.machine.on_closed();
        this.doing = LinkDoing::Broken;
        this.broken = Some(Box::new(why));
        (this.timer, this.deferred) = (0, false);
    }

    /// Says goodbye and lets the server close: `Heard::Left` follows. False if there is nothing to wait for.
    pub(super) fn leave(&mut self, link: usize) -> bool {
        let (LinkDoing::Idle, Some(socket)) = (self.links[link].doing, self.links[link].socket) else { return false };
        let now = self.io.now();
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
        self.links[link].machine.close(&mut exchange);
        if self.out.is_empty() {
            // The protocol has no goodbye, to which the server could answer by closing.
            return false;
        }
        self.io.send(socket, &self.out);
        self.out.clear();
        self.links[link].doing = LinkDoing::Leaving;
        let timeout = self.connect_timeout(link);
        self.links[link].timer = self.timers.set(now + timeout, link);
        true
    }

    /// Closes a link for good.
    pub(super) fn close(&mut self, link: usize) {
        if self.links[link].doing == LinkDoing::Connecting {
            self.queue.retain(|queued| *queued != link);
        }
        self.sever(link, StatementError::network("the connection is closed"));
        self.links[link].doing = LinkDoing::Free;
        self.free.push(link);
    }

    fn send(&self, message: Message) {
        // The coordinator outlives its workers, except when it is gone because of a panic of its own.
        let _ = self.outbox.send(message);
    }
}

impl<I: Io> Index<usize> for Links<I> {
    type Output = Link;

    fn index(&self, link: usize) -> &Link {
        &self.links[link]
    }
}

impl<I: Io> IndexMut<usize> for Links<I> {
    fn index_mut(&mut self, link: usize) -> &mut Link {
        &mut self.links[link]
    }
}
