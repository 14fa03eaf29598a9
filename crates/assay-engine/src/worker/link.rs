//! Links: connections as the worker holds them, from the queue for connecting to the last goodbye.

use std::ops::Range;
use std::sync::atomic::Ordering;

use assay_io::{Closed, Io, SocketId};
use assay_script::{Answer, ConnectionNumber, Failure};
use assay_seam::{
    Class, Connection, Effect, Exchange, Nanos, Operation, Progress, Reply, StatementError, StatementId, TlsFacts,
};

use super::{Alarm, Worker};
use crate::messages::Message;
use crate::observer::Warning;
use crate::outcome::RunError;
use crate::plan::Deal;
use crate::retry;

/// Such a connect was not taken by the server's kernel at once, but asked for again: Linux waits a second before it does.
const SLOW_CONNECT: Nanos = Nanos::from_secs(1);

/// Looks within the limit at whether a machine is there; two in a row have to find it gone.
const LOOKS_PER_LIMIT: u64 = 8;

/// One connection of a session.
pub(super) struct Link {
    pub(super) machine: Box<dyn Connection>,
    pub(super) session: usize,
    target: usize,
    socket: Option<SocketId>,
    pub(super) doing: LinkDoing,
    pub(super) in_flight: InFlight,
    /// Which of the target's addresses is being tried.
    address: usize,
    /// It counts in `Worker::connecting`.
    pending: bool,
    /// When the operation in flight was sent, or the connect under way was begun.
    pub(super) sent: Nanos,
    /// The connect under way got as far as the server's kernel: the login is next.
    established: bool,
    /// Why it broke, for the next operation to tell.
    broken: Option<Box<StatementError>>,
    /// Was open before: connecting again is a reconnect.
    was_open: bool,
    /// Within the present recovery.
    pub(super) rolled_back: bool,
    /// Statements wait to be sent with the next, or were sent with the one in flight.
    pub(super) deferred: bool,
    pub(super) batch: Batch,
    /// Serial of the timer that counts; older ones are void.
    pub(super) timer: u64,
}

/// Where a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkDoing {
    /// In the queue, connecting, or logging in.
    Connecting,
    /// Pausing before the next attempt to connect.
    Pausing,
    Idle,
    /// An operation of the script is in flight.
    Operation {
        load: bool,
        /// It executes something, and so counts as a statement.
        statement: bool,
    },
    /// Our own ROLLBACK is in flight.
    Rollback,
    /// No socket; an attempt to connect has to be made first.
    Broken,
    /// Disconnected; the slot may be used again.
    Free,
}

/// As much of the operation last sent as is needed to tell whether it may have committed something.
#[derive(Clone, Copy, Debug)]
pub(super) enum InFlight {
    /// How its text begins and how it ends: enough for `START TRANSACTION` and `; COMMIT`.
    Text {
        head: [u8; 20],
        tail: [u8; 8],
    },
    Statement(StatementId),
    Load,
    /// What changes no data, or was deferred, and so has a transaction around it.
    Harmless,
}

impl InFlight {
    pub(super) fn of(operation: &Operation<'_>) -> InFlight {
        match operation {
            Operation::Query { sql } => {
                let (mut head, mut tail) = ([b' '; 20], [b' '; 8]);
                let length = sql.len().min(head.len());
                head[..length].copy_from_slice(&sql[..length]);
                let length = sql.len().min(tail.len());
                tail[..length].copy_from_slice(&sql[sql.len() - length..]);
                InFlight::Text { head, tail }
            }
            Operation::Execute { statement, .. } => InFlight::Statement(*statement),
            Operation::Load { .. } => InFlight::Load,
            Operation::Prepare { .. } | Operation::Close { .. } => InFlight::Harmless,
        }
    }
}

/// Who waits for the answer to a load. The script makes the next rows while the server stores these, and asks for the
/// answer (`Request::Flush`) before it does anything else on the connection.
#[derive(Debug, Default)]
pub(super) enum Batch {
    /// The session waits, if one is in flight.
    #[default]
    Awaited,
    /// The session waits until the rows have been sent.
    Sending,
    /// The session went on.
    Unanswered,
    /// It was answered since.
    Answered(Reply),
}

impl Link {
    /// Ready for an operation.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.doing, LinkDoing::Idle | LinkDoing::Operation { .. } | LinkDoing::Rollback)
    }

    pub(super) fn is_broken(&self) -> bool {
        self.doing == LinkDoing::Broken
    }

    pub(super) fn is_loading(&self) -> bool {
        matches!(self.doing, LinkDoing::Operation { load: true, .. })
    }

    pub(super) fn is_executing(&self) -> bool {
        matches!(self.doing, LinkDoing::Operation { statement: true, .. })
    }

    /// What was in flight is answered. Gives the reply back for the session that waits for it; one that went on finds it
    /// here when it asks.
    pub(super) fn answered(&mut self, reply: Reply) -> Option<Reply> {
        match std::mem::take(&mut self.batch) {
            Batch::Unanswered => {
                self.batch = Batch::Answered(reply);
                None
            }
            _ => Some(reply),
        }
    }

    /// Whether the operation in flight may have made something lasting: it commits, or changes something where no
    /// transaction is open. To be asked before the machine hears that its socket is gone.
    fn may_have_committed(&self) -> bool {
        let effect = match self.in_flight {
            InFlight::Text { tail, .. } if ends_with_commit(&tail) => Effect::Commits,
            InFlight::Text { head, .. } => Effect::of(&head),
            InFlight::Statement(statement) => self.machine.effect(statement),
            InFlight::Load => Effect::ChangesRows,
            InFlight::Harmless => return false,
        };
        let alone = !self.machine.in_transaction() && !self.deferred;
        match effect {
            Effect::Commits => true,
            Effect::ChangesRows | Effect::Other => alone,
            Effect::Begins | Effect::Reads => false,
        }
    }
}

fn ends_with_commit(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let text = text.strip_suffix(b";").unwrap_or(text).trim_ascii_end();
    text.len() >= 6 && text[text.len() - 6..].eq_ignore_ascii_case(b"commit")
}

impl<I: Io> Worker<I> {
    /// Connects under way at once in this worker.
    pub(super) fn pending_max(&self) -> usize {
        self.plan.connects.pending_max.div_ceil(self.plan.workers).max(1)
    }

    /// Opens a connection for the script, to one of these targets.
    pub(super) fn connect(&mut self, session: usize, connection: ConnectionNumber, targets: Range<usize>) {
        let target = match self.plan.connects.deal {
            Deal::BySession => self.sessions[session].target,
            // Where there is no choice, the counter stays as it is.
            Deal::ByConnection if targets.len() == 1 => targets.start,
            Deal::ByConnection => targets.start + self.shared.dealt.fetch_add(1, Ordering::Relaxed) % targets.len(),
        };
        let link = Link {
            machine: self.plan.targets[target].database.connection(),
            session,
            target,
            socket: None,
            doing: LinkDoing::Connecting,
            in_flight: InFlight::Harmless,
            address: 0,
            pending: false,
            sent: Nanos::ZERO,
            established: false,
            broken: None,
            was_open: false,
            rolled_back: false,
            deferred: false,
            batch: Batch::Awaited,
            timer: 0,
        };
        let index = match self.free_links.pop() {
            Some(index) => {
                self.links[index] = link;
                index
            }
            None => {
                self.links.push(link);
                self.links.len() - 1
            }
        };
        let links = &mut self.sessions[session].links;
        links.resize(links.len().max(connection.0 as usize + 1), None);
        links[connection.0 as usize] = Some(index);
        self.connect_queue.push_back(index);
        self.connect_more();
    }

    /// Connects a broken link again.
    pub(super) fn connect_again(&mut self, link: usize) {
        self.links[link].doing = LinkDoing::Connecting;
        self.links[link].address = 0;
        self.connect_queue.push_back(link);
        self.connect_more();
    }

    /// Begins as many queued connects as the limits allow now.
    pub(super) fn connect_more(&mut self) {
        while self.connecting < self.pending_max()
            && let Some(link) = self.connect_queue.front().copied()
        {
            let now = self.io.now();
            if let Some(rate) = self.plan.connects.rate {
                if now < self.connect_next {
                    return;
                }
                let gap = Nanos::from_secs_f64(self.plan.workers as f64 / rate);
                self.connect_next = self.connect_next.max(now.max(gap) - gap) + gap;
            }
            self.connect_queue.pop_front();
            self.open_socket(link, now);
        }
    }

    fn open_socket(&mut self, link: usize, now: Nanos) {
        let this = &mut self.links[link];
        if this.doing != LinkDoing::Connecting {
            return;
        }
        (this.sent, this.established) = (now, false);
        let target = &self.plan.targets[this.target];
        if target.addresses.is_empty() {
            let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
            let progress = this.machine.on_connected(&mut exchange);
            return self.follow(link, progress, now, true);
        }
        if !this.pending {
            this.pending = true;
            self.connecting += 1;
        }
        match self.io.connect(&target.addresses[this.address], target.tls.as_ref()) {
            Ok(socket) => {
                let index = socket.0 as u32 as usize;
                if self.sockets.len() <= index {
                    self.sockets.resize(index + 1, usize::MAX);
                }
                self.sockets[index] = link;
                self.links[link].socket = Some(socket);
                let timeout = self.connect_timeout(link);
                self.set_timer(now + timeout, Alarm::Link(link));
            }
            Err(refused) => {
                let mut error = StatementError::network(refused.message);
                error.hint = refused.hint;
                self.on_connect_failed(link, Box::new(error), now);
            }
        }
    }

    /// How long this link's connect and login may take: the target's own word, or else the plan's.
    fn connect_timeout(&self, link: usize) -> Nanos {
        let database = &self.plan.targets[self.links[link].target].database;
        database.connect_timeout().unwrap_or(self.plan.connects.timeout)
    }

    /// The link a socket's event is for.
    fn link_of(&self, socket: SocketId) -> Option<usize> {
        let link = *self.sockets.get(socket.0 as u32 as usize)?;
        (self.links.get(link)?.socket == Some(socket)).then_some(link)
    }

    pub(super) fn on_received(&mut self, socket: SocketId, at: Nanos) {
        let Some(link) = self.link_of(socket) else { return };
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now: at };
        let progress = self.links[link].machine.on_bytes(self.io.received(), &mut exchange);
        self.follow(link, progress, at, false);
    }

    pub(super) fn on_connected(&mut self, socket: SocketId, at: Nanos) {
        let Some(link) = self.link_of(socket) else { return };
        let this = &mut self.links[link];
        this.established = true;
        let (target, took) = (this.target, at - this.sent);
        if let Some(limit) = self.silence_max {
            self.io.keep_alive(socket, limit);
        }
        if took >= SLOW_CONNECT && !std::mem::replace(&mut self.slow_connects[target], true) {
            self.send(Message::Warning(Warning::SlowConnects { target, took }));
        }
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now: at };
        let progress = self.links[link].machine.on_connected(&mut exchange);
        self.follow(link, progress, at, false);
    }

    pub(super) fn on_secured(&mut self, socket: SocketId, facts: &TlsFacts, at: Nanos) {
        let Some(link) = self.link_of(socket) else { return };
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now: at };
        let progress = self.links[link].machine.on_secured(facts, &mut exchange);
        self.follow(link, progress, at, false);
    }

    pub(super) fn on_closed(&mut self, socket: SocketId, closed: &Closed, at: Nanos) {
        let Some(link) = self.link_of(socket) else { return };
        self.links[link].socket = None;
        let mut error = StatementError::network(closed.message.clone());
        error.hint.clone_from(&closed.hint);
        if closed.tls {
            error.class = Class::Encryption;
        }
        self.lose(link, Box::new(error), at);
    }

    /// Sends what the machine wrote, and does what it asks for. `inline`: it answered within the session's own request.
    pub(super) fn follow(&mut self, link: usize, progress: Progress, at: Nanos, inline: bool) {
        if !self.out.is_empty() {
            if let Some(socket) = self.links[link].socket {
                self.io.send(socket, &self.out);
            }
            self.out.clear();
        }
        match progress {
            Progress::Pending => {
                let this = &mut self.links[link];
                if matches!(this.batch, Batch::Sending) && this.machine.has_sent_rows() {
                    this.batch = Batch::Unanswered;
                    let session = this.session;
                    self.queue(session, Answer::Proceed(true), self.io.now());
                }
            }
            Progress::Reply(reply) => match self.links[link].doing {
                LinkDoing::Operation { .. } => self.on_reply(link, reply, at, inline),
                LinkDoing::Rollback => {
                    if let Some(rows) = reply.rows {
                        self.pool.put(rows);
                    }
                    self.links[link].doing = LinkDoing::Idle;
                    self.recover(self.links[link].session, at);
                }
                _ => {}
            },
            Progress::Ready => self.on_ready(link, at),
            Progress::StartTls => {
                if let Some(socket) = self.links[link].socket {
                    self.io.start_tls(socket);
                }
            }
            Progress::Wait(pause) => self.set_timer(self.io.now() + pause, Alarm::Link(link)),
            Progress::Reconnect => {
                self.close_socket(link);
                self.links[link].machine.on_closed();
                self.open_socket(link, at);
            }
            Progress::Failed(error) => {
                self.close_socket(link);
                self.lose(link, error, at);
            }
        }
    }

    fn on_ready(&mut self, link: usize, at: Nanos) {
        self.no_longer_pending(link);
        let this = &mut self.links[link];
        this.doing = LinkDoing::Idle;
        this.timer = 0;
        let (session, target) = (this.session, this.target);
        if !std::mem::replace(&mut self.facts_told[target], true) {
            self.send(Message::Server { target, facts: self.links[link].machine.server() });
        }
        if std::mem::replace(&mut self.links[link].was_open, true) {
            self.recorder.reconnected(target, at);
            if std::mem::take(&mut self.outages[target]) {
                self.send(Message::Warning(Warning::Recovered { target }));
            }
        }
        if self.sessions[session].recovery.is_some() {
            self.recover(session, at);
        } else {
            self.accept_connect(session, at);
        }
        self.connect_more();
    }

    fn no_longer_pending(&mut self, link: usize) {
        if std::mem::take(&mut self.links[link].pending) {
            self.connecting -= 1;
        }
    }

    fn close_socket(&mut self, link: usize) {
        if let Some(socket) = self.links[link].socket.take() {
            self.io.close(socket);
        }
    }

    /// The socket is gone.
    fn lose(&mut self, link: usize, error: Box<StatementError>, at: Nanos) {
        let lost_operation = matches!(self.links[link].doing, LinkDoing::Operation { .. });
        let may_have_committed = lost_operation && self.links[link].may_have_committed();
        let another_way = self.links[link].machine.on_closed();
        (self.links[link].timer, self.links[link].deferred) = (0, false);
        match self.links[link].doing {
            LinkDoing::Connecting if another_way => self.open_socket(link, at),
            LinkDoing::Connecting => self.on_connect_failed(link, error, at),
            LinkDoing::Operation { .. } => {
                if let Some(transaction) = &mut self.sessions[self.links[link].session].transaction {
                    transaction.lose_answer(may_have_committed);
                }
                self.on_reply_lost(link, error, at);
            }
            LinkDoing::Rollback => {
                self.links[link].doing = LinkDoing::Broken;
                self.recover(self.links[link].session, at);
            }
            LinkDoing::Idle => {
                self.links[link].doing = LinkDoing::Broken;
                self.links[link].broken = Some(error);
            }
            LinkDoing::Pausing | LinkDoing::Broken | LinkDoing::Free => {}
        }
    }

    fn on_reply_lost(&mut self, link: usize, error: Box<StatementError>, at: Nanos) {
        // `on_reply` sets the link idle; it has no socket any more.
        let reply = assay_seam::Reply { error: Some(error), ..Default::default() };
        let session = self.links[link].session;
        self.links[link].doing = LinkDoing::Broken;
        let Some(reply) = self.links[link].answered(reply) else { return };
        let answer = self.judge(session, reply, true);
        self.advance(session, answer, at);
    }

    fn on_connect_failed(&mut self, link: usize, error: Box<StatementError>, at: Nanos) {
        let (session, target) = (self.links[link].session, self.links[link].target);
        let addresses = self.plan.targets[target].addresses.len();
        let refused_by_system = error.origin == assay_seam::Origin::Network;
        if refused_by_system && self.links[link].address + 1 < addresses {
            self.links[link].address += 1;
            return self.open_socket(link, at);
        }
        self.no_longer_pending(link);
        let Some(recovery) = &mut self.sessions[session].recovery else {
            self.links[link].doing = LinkDoing::Broken;
            self.refuse_connect(session, target, error);
            return self.connect_more();
        };
        let now = self.io.now();
        if retry::may_come_back(&error) && now - recovery.started < self.plan.policy.reconnect {
            recovery.attempts += 1;
            let pause = retry::reconnect_pause(recovery.attempts - 1, &mut self.random);
            self.links[link].doing = LinkDoing::Pausing;
            self.set_timer(now + pause, Alarm::Link(link));
            if !std::mem::replace(&mut self.outages[target], true) {
                self.send(Message::Warning(Warning::Outage { target, message: error.message.clone() }));
            }
        } else {
            self.links[link].doing = LinkDoing::Broken;
            let connected = self.sessions.iter().filter(|session| session.is_served(&self.links)).count() as u32;
            self.fail(RunError::Connect {
                target,
                connected,
                wanted: self.plan.setup.sessions,
                error,
                failure: Failure::default(),
            });
            self.drop_session(session);
        }
        self.connect_more();
    }

    /// A link's timer fired.
    pub(super) fn wake_link(&mut self, link: usize, now: Nanos) {
        match self.links[link].doing {
            LinkDoing::Connecting if self.links[link].socket.is_none() => {
                let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
                let progress = self.links[link].machine.on_timeout(&mut exchange);
                self.follow(link, progress, now, false);
            }
            LinkDoing::Connecting => {
                self.close_socket(link);
                let seconds = self.connect_timeout(link).as_secs_f64();
                let what = if self.links[link].established { "login" } else { "connect" };
                let mut error = StatementError::network(format!("no answer to the {what} within {seconds} s"));
                error.class = Class::Timeout;
                self.lose(link, Box::new(error), now);
            }
            LinkDoing::Pausing => self.connect_again(link),
            LinkDoing::Operation { .. } | LinkDoing::Rollback => {
                let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
                let progress = self.links[link].machine.on_timeout(&mut exchange);
                let at = self.io.now();
                self.follow(link, progress, at, false);
            }
            LinkDoing::Idle | LinkDoing::Broken | LinkDoing::Free => {}
        }
    }

    /// Looks, every so often, whether the machines are there whose answers are late.
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

    /// Closes the socket at once; the next operation is told `why`.
    pub(super) fn break_link(&mut self, link: usize, why: StatementError) {
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
        self.links[link].machine.on_closed();
        self.links[link].doing = LinkDoing::Broken;
        self.links[link].broken = Some(Box::new(why));
        (self.links[link].timer, self.links[link].deferred) = (0, false);
    }

    /// Why a link cannot take an operation.
    pub(super) fn take_broken(&mut self, link: Option<usize>) -> StatementError {
        let broken = link.and_then(|link| self.links[link].broken.take());
        broken.map_or_else(|| StatementError::network("the connection is closed"), |error| *error)
    }

    /// Closes a connection of the script for good.
    pub(super) fn disconnect(&mut self, session: usize, connection: ConnectionNumber) {
        let Some(slot) = self.sessions[session].links.get_mut(connection.0 as usize) else { return };
        let Some(link) = slot.take() else { return };
        if self.links[link].doing == LinkDoing::Connecting {
            self.connect_queue.retain(|queued| *queued != link);
        }
        self.break_link(link, StatementError::network("the connection is closed"));
        self.links[link].doing = LinkDoing::Free;
        self.free_links.push(link);
    }
}
