//! Sessions: the conversation between a script and the world.

use assay_io::Io;
use assay_random::Random;
use assay_script::{Answer, ConnectionNumber, Decision, Failure, Request, ScriptError, Slot, State, Verdict};
use assay_seam::{Class, Exchange, Nanos, Operation, Progress, Reply, StatementError};

use super::link::{Batch, InFlight, Link, LinkDoing};
use super::recorder::{Ending, Transaction};
use super::{Alarm, Due, Phase, StateEntry, Worker};
use crate::messages::Message;
use crate::outcome::RunError;
use crate::plan::Load;
use crate::retry::{self, Remedy};
use crate::shared::Shared;

/// One client: a coroutine and its connections.
pub(super) struct Session {
    pub(super) number: u32,
    state: usize,
    slot: Slot,
    pub(super) target: usize,
    pub(super) doing: Doing,
    /// Link of each connection number; `None` once disconnected.
    pub(super) links: Vec<Option<usize>>,
    /// Between `Proceed(true)` and the next `Next`, `Stop` or skipped failure.
    pub(super) transaction: Option<Transaction>,
    /// When it last asked for a transaction.
    free: Nanos,
    /// The last statement error, until a statement succeeds.
    last_error: Option<Box<StatementError>>,
    /// The last error of `Connect`, until one succeeds.
    connect_error: Option<Box<StatementError>>,
    pub(super) recovery: Option<Recovery>,
    barrier: u64,
    /// Serial of the timer that counts; older ones are void.
    pub(super) timer: u64,
    random: Random,
    pub(super) success: bool,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// For a reply, a connection or a pause.
    Waiting,
    /// Through `thread_init`; the run has not begun for it.
    Initialised,
    /// Has asked for a transaction and got none yet.
    Parked,
    /// In `Worker::runnable`.
    Queued,
    /// Getting its connections in order after a failure.
    Recovering,
    AtBarrier,
    Gone,
}

/// On the way from a failure to the answer that the script waits for.
pub(super) struct Recovery {
    answer: RecoveryAnswer,
    pause: Nanos,
    paused: bool,
    pub(super) started: Nanos,
    /// Attempts to reconnect so far.
    pub(super) attempts: u32,
}

#[derive(Clone, Copy)]
enum RecoveryAnswer {
    Decide(Decision),
    /// The script asked for the reconnect by itself.
    Done,
}

impl Session {
    /// Whether its connections are usable.
    pub(super) fn is_served(&self, links: &[Link]) -> bool {
        self.doing != Doing::Gone && self.links.iter().flatten().all(|link| links[*link].is_open())
    }
}

impl StateEntry {
    /// Finds the indices over the run of the counters that its script has begun to use.
    fn learn_counters(&mut self, shared: &Shared) {
        let names = self.state.counter_names();
        if self.counters.len() < names.len() {
            let known = self.counters.len();
            self.counters.extend(names[known..].iter().map(|name| shared.counter_index(name)));
        }
    }
}

/// What a script hears that goes on, or ends, without the answer to rows that it loads.
fn not_done() -> Failure {
    let message = "rows of a loader were sent and their answer was not waited for: call `done` after the last row";
    Failure { message: message.to_owned(), ..Failure::default() }
}

impl<I: Io> Worker<I> {
    pub(super) fn add_session(&mut self, number: u32) -> Result<usize, ScriptError> {
        // Whichever session serves a terminal finds what the script keeps for it.
        let per_state = match self.plan.load {
            Load::Terminals { .. } => usize::MAX,
            Load::Closed | Load::Open { .. } => self.plan.sessions_per_state,
        };
        if self.states.last().is_none_or(|entry| entry.sessions >= per_state) {
            let mut state = State::new(&self.plan.program, &self.plan.setup)?;
            if let Load::Terminals { terminals, .. } = self.plan.load {
                state.serve_terminals(terminals);
            }
            self.shared.add_guard(self.number, state.guard());
            self.states.push(StateEntry { state, sessions: 0, types: vec![0], counters: Vec::new() });
        }
        let state = self.states.len() - 1;
        let entry = &mut self.states[state];
        let slot = entry.state.add_session(number)?;
        entry.sessions += 1;
        self.sessions.push(Session {
            number,
            state,
            slot,
            target: number as usize % self.plan.targets.len(),
            doing: Doing::Queued,
            links: Vec::new(),
            transaction: None,
            free: Nanos::ZERO,
            last_error: None,
            connect_error: None,
            recovery: None,
            barrier: 0,
            timer: 0,
            random: Random::of_stream(self.plan.setup.seed, 2_000_000 + u64::from(number)),
            success: true,
        });
        Ok(self.sessions.len() - 1)
    }

    /// Whether the session takes transactions in the present stage.
    pub(super) fn is_active(&self, session: usize) -> bool {
        self.sessions[session].number < self.stage.share.sessions
    }

    /// Resumes a session and does what it asks, until it has to wait. `at`: when what it is told happened.
    pub(super) fn advance(&mut self, session: usize, answer: Answer, at: Nanos) {
        if self.sessions[session].doing == Doing::Gone {
            return;
        }
        let mut answer = answer;
        let mut begun = 0;
        loop {
            let Session { state, slot, .. } = self.sessions[session];
            self.sessions[session].doing = Doing::Waiting;
            let request = self.states[state].state.resume(slot, answer, &mut self.pool);
            answer = match request {
                request @ (Request::Operation(..) | Request::Defer(..) | Request::Rollback(_)) => {
                    let may_wait = matches!(request, Request::Defer(..));
                    let (connection, operation, statement) = match request {
                        Request::Operation(connection, operation) | Request::Defer(connection, operation) => {
                            let statement = !matches!(operation, Operation::Prepare { .. } | Operation::Close { .. });
                            (connection, operation, statement)
                        }
                        Request::Rollback(connection) => (connection, Operation::Query { sql: b"ROLLBACK" }, false),
                        _ => unreachable!("no other request comes here"),
                    };
                    let link = self.sessions[session].links.get(connection.0 as usize).copied().flatten();
                    let Some(link) = link.filter(|link| self.links[*link].is_open()) else {
                        let error = self.take_broken(link);
                        return self.queue_reply(session, Reply::failed(error));
                    };
                    let this = &mut self.links[link];
                    if may_wait && this.machine.defer(&operation) {
                        this.deferred = true;
                        Answer::Proceed(true)
                    } else {
                        let load = matches!(operation, Operation::Load { .. });
                        let now = self.io.now();
                        this.sent = now;
                        this.doing = LinkDoing::Operation { load, statement };
                        this.in_flight = InFlight::of(&operation);
                        // What fails in a transaction is undone at once, and takes all connections for that.
                        let ahead = load && self.sessions[session].transaction.is_none();
                        this.batch = if ahead { Batch::Sending } else { Batch::Awaited };
                        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
                        let progress = this.machine.execute(&operation, &mut exchange);
                        return self.follow_inline(link, progress);
                    }
                }
                Request::Flush(connection) => {
                    let link = self.sessions[session].links.get(connection.0 as usize).copied().flatten();
                    match link.map(|link| (link, std::mem::take(&mut self.links[link].batch))) {
                        Some((_, Batch::Answered(reply))) => self.judge(session, reply, true),
                        Some((_, Batch::Unanswered)) => return,
                        Some((link, _)) if self.links[link].deferred => return self.flush(link),
                        _ => Answer::Done,
                    }
                }
                Request::Next => {
                    let at = self.done_at(session, at);
                    if self.has_deferred(session) {
                        let message = "the transaction ended while statements that it had deferred were not sent: \
                                       execute one behind them, such as COMMIT";
                        let failure = Failure { message: message.to_owned(), ..Failure::default() };
                        return self.on_failed(session, failure, at);
                    }
                    if self.is_ahead(session) {
                        return self.on_died(session, &not_done());
                    }
                    self.complete(session, at);
                    match self.grant(session, at) {
                        Some(answer) if begun == 0 => {
                            begun += 1;
                            answer
                        }
                        // A script that never waits must not keep the others waiting.
                        Some(answer) => return self.queue(session, answer, at),
                        None => return,
                    }
                }
                Request::Type(index) => {
                    let kind = self.type_index(state, index as usize);
                    if let Some(transaction) = &mut self.sessions[session].transaction {
                        transaction.kind = kind;
                    }
                    Answer::Done
                }
                Request::Failed(failure) => return self.on_failed(session, failure, at),
                Request::Stop => {
                    self.leave_transaction(session, Ending::Stopped, at);
                    Answer::Done
                }
                Request::Ready => {
                    if self.stage.released && self.phase == Phase::Running {
                        Answer::Done
                    } else {
                        self.sessions[session].doing = Doing::Initialised;
                        return;
                    }
                }
                Request::Connect(connection, driver) => {
                    return match self.plan.targets_of(driver) {
                        Some(targets) => self.connect(session, connection, targets),
                        None => {
                            let driver = String::from_utf8_lossy(driver);
                            let words = format!("no server of the driver `{driver}` is known");
                            let error = StatementError::client(Class::Connection, words);
                            self.refuse_connect(session, 0, Box::new(error));
                        }
                    };
                }
                Request::Disconnect(connection) => {
                    self.disconnect(session, connection);
                    Answer::Done
                }
                Request::Reconnect(connection) => return self.reconnect(session, connection, at),
                Request::Sleep(pause) => {
                    let wake = self.io.now() + pause;
                    return self.set_timer(wake, Alarm::Session(session));
                }
                Request::Claim(name) => Answer::Number(self.shared.claim(name)),
                Request::Barrier => {
                    self.sessions[session].doing = Doing::AtBarrier;
                    self.sessions[session].barrier = self.shared.arrive();
                    self.at_barrier += 1;
                    return self.pass_barriers();
                }
                Request::Expect(rows) => {
                    self.shared.expected.fetch_add(rows, std::sync::atomic::Ordering::Relaxed);
                    Answer::Done
                }
                Request::Log(text) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    self.send(Message::Log { session: self.sessions[session].number, text });
                    Answer::Done
                }
                Request::Declare(declaration) => {
                    self.send(Message::Declared(declaration));
                    Answer::Done
                }
                Request::Finished { success } => {
                    // A script with a loop of its own may end right after its last transaction; the default loop
                    // says `Next` or `Stop` first.
                    self.complete(session, self.done_at(session, at));
                    if self.is_ahead(session) {
                        return self.on_died(session, &not_done());
                    }
                    self.sessions[session].success &= success;
                    return self.drop_session(session);
                }
                Request::Died(failure) => return self.on_died(session, &failure),
            };
        }
    }

    /// Lets the session go on in a later round.
    pub(super) fn queue(&mut self, session: usize, answer: Answer, at: Nanos) {
        self.sessions[session].doing = Doing::Queued;
        self.runnable.push_back((session, answer, at));
    }

    /// Sends what waits on a link.
    fn flush(&mut self, link: usize) {
        let now = self.io.now();
        let this = &mut self.links[link];
        this.sent = now;
        this.doing = LinkDoing::Operation { load: false, statement: false };
        this.in_flight = InFlight::Harmless;
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
        let progress = this.machine.flush(&mut exchange);
        self.follow_inline(link, progress);
    }

    /// Rows are on their way whose answer the script has not asked for.
    fn is_ahead(&self, session: usize) -> bool {
        self.sessions[session].links.iter().flatten().any(|link| !matches!(self.links[*link].batch, Batch::Awaited))
    }

    fn has_deferred(&self, session: usize) -> bool {
        self.sessions[session].links.iter().flatten().any(|link| self.links[*link].deferred)
    }

    /// Counts the deferred statements that were answered together with the one that was `sent`.
    fn count_deferred(&mut self, link: usize, sent: Nanos, at: Nanos) {
        let session = self.links[link].session;
        let executed = self.links[link].machine.take_executed();
        let transaction = self.sessions[session].transaction.as_ref();
        for (class, count) in [(1, executed.writes), (2, executed.others)] {
            self.recorder.statements(transaction, class, count, sent, at);
        }
    }

    /// A reply that came without waiting.
    fn queue_reply(&mut self, session: usize, reply: Reply) {
        let at = self.io.now();
        let answer = self.judge(session, reply, true);
        self.queue(session, answer, at);
    }

    /// Takes note of a reply and decides how the script learns of it. `counts`: its error is one of the run.
    pub(super) fn judge(&mut self, session: usize, reply: Reply, counts: bool) -> Answer {
        let this = &mut self.sessions[session];
        let Some(error) = &reply.error else {
            this.last_error = None;
            return Answer::Reply(reply, Verdict::Fatal);
        };
        let in_transaction = this.transaction.is_some();
        let verdict = if in_transaction { retry::verdict(&self.plan.policy, error) } else { Verdict::Fatal };
        this.last_error = Some(error.clone());
        if counts {
            self.recorder.error(this.transaction.as_ref(), this.target, error, self.io.now());
        }
        Answer::Reply(reply, verdict)
    }

    /// An operation of the script is answered. `at`: when the answer arrived.
    pub(super) fn on_reply(&mut self, link: usize, reply: Reply, at: Nanos, inline: bool) {
        let (session, sent, load) = (self.links[link].session, self.links[link].sent, self.links[link].is_loading());
        let executing = self.links[link].is_executing();
        self.links[link].doing = LinkDoing::Idle;
        if std::mem::take(&mut self.links[link].deferred) {
            self.count_deferred(link, sent, at);
        }
        if reply.error.is_none() {
            if load {
                self.shared.loaded.fetch_add(reply.affected, std::sync::atomic::Ordering::Relaxed);
            }
            let class = match (&reply.rows, reply.affected) {
                (Some(_), _) => 0,
                (None, 1..) => 1,
                (None, 0) => 2,
            };
            if executing {
                let transaction = self.sessions[session].transaction.as_ref();
                self.recorder.statements(transaction, class, 1, sent, at);
            }
        }
        let Some(reply) = self.links[link].answered(reply) else { return };
        let answer = self.judge(session, reply, executing || load || self.plan.policy.failed_prepares_count);
        if inline { self.queue(session, answer, at) } else { self.advance(session, answer, at) }
    }

    /// Decides about a session that asks for a transaction: `None` when it has to wait.
    pub(super) fn grant(&mut self, session: usize, at: Nanos) -> Option<Answer> {
        self.sessions[session].doing = Doing::Parked;
        self.sessions[session].free = at;
        if matches!(self.phase, Phase::Finishing(_)) {
            return Some(Answer::Proceed(false));
        }
        if self.phase != Phase::Running
            || !self.stage.released
            || self.stage.ended.is_some()
            || !self.is_active(session)
        {
            return None;
        }
        let now = self.io.now();
        if self.plan.load == Load::Closed {
            if now >= self.stage.end {
                self.end_stage(self.stage.end);
                return None;
            }
            return self.begin_transaction(session, Due { at, terminal: None }, now);
        }
        self.arrive(at);
        match self.stage.take_due() {
            Some(due) => self.begin_transaction(session, due, now),
            None => {
                self.stage.idle.push_back(session);
                None
            }
        }
    }

    /// Begins a transaction that was due at `due`; `None` when the transaction limit is reached. `now`: freshly read.
    pub(super) fn begin_transaction(&mut self, session: usize, due: Due, now: Nanos) -> Option<Answer> {
        let this = &mut self.sessions[session];
        this.transaction = self.recorder.begin(session, this.target, due.at, this.free, now);
        if this.transaction.is_none() {
            self.end_stage(now);
            return None;
        }
        if let Some(terminal) = due.terminal {
            self.states[this.state].state.enter_terminal(this.slot, terminal);
        }
        self.clear_marks(session);
        Some(Answer::Proceed(true))
    }

    /// When a session's transaction was done that ends now: when its last answer arrived. One that waited for nothing
    /// has worked inside the script until now.
    fn done_at(&self, session: usize, at: Nanos) -> Nanos {
        let worked = self.sessions[session].transaction.as_ref().is_some_and(|transaction| transaction.sent() >= at);
        if worked { self.io.now() } else { at }
    }

    /// The session's transaction, if there is one, is done, well.
    fn complete(&mut self, session: usize, at: Nanos) {
        let this = &mut self.sessions[session];
        let Some(transaction) = this.transaction.take() else { return };
        let entry = &mut self.states[this.state];
        if entry.state.has_marks() {
            entry.learn_counters(&self.shared);
            let marks = entry.state.marks(this.slot);
            self.recorder.complete(transaction, Some(marks), &entry.counters, at);
            if self.recorder.has_many_lines() {
                self.send_lines();
            }
        } else {
            self.recorder.complete(transaction, None, &[], at);
        }
        self.leave_terminal(session, at);
    }

    /// What a run of a transaction noted that is started over, or never counted.
    fn clear_marks(&mut self, session: usize) {
        let Session { state, slot, .. } = self.sessions[session];
        let state = &mut self.states[state].state;
        if state.has_marks() {
            state.marks(slot).clear();
        }
    }

    /// The session's transaction, if there is one, ends in another way.
    fn leave_transaction(&mut self, session: usize, ending: Ending, at: Nanos) {
        if let Some(transaction) = self.sessions[session].transaction.take() {
            self.recorder.end(transaction, ending, at);
            self.leave_terminal(session, at);
        }
    }

    /// The user whom the session served begins to think.
    fn leave_terminal(&mut self, session: usize, at: Nanos) {
        if let Load::Terminals { .. } = self.plan.load {
            let Session { state, slot, .. } = self.sessions[session];
            if let Some(terminal) = self.states[state].state.leave_terminal(slot) {
                self.think(terminal, at);
            }
        }
    }

    /// The grace period is over: those still in flight will not be waited for.
    pub(super) fn give_up_unfinished(&mut self) {
        let now = self.io.now();
        for transaction in self.sessions.iter_mut().filter_map(|session| session.transaction.as_mut()) {
            self.recorder.give_up(transaction, now);
        }
    }

    fn type_index(&mut self, state: usize, index: usize) -> usize {
        let entry = &mut self.states[state];
        if index >= entry.types.len() {
            let names = entry.state.transaction_types();
            let known = entry.types.len();
            entry.types.extend(names[known..].iter().map(|name| self.shared.type_index(name)));
        }
        entry.types.get(index).copied().unwrap_or(0)
    }

    /// The transaction failed: decide, and bring the connections in order before saying so.
    fn on_failed(&mut self, session: usize, failure: Failure, at: Nanos) {
        self.clear_marks(session);
        let this = &mut self.sessions[session];
        let error = if failure.statement { this.last_error.take() } else { None };
        if error.is_none() && !failure.restart {
            self.leave_transaction(session, Ending::Failed, at);
            self.fail(RunError::Script(ScriptError::from(&failure)));
            return self.drop_session(session);
        }
        // A restart after an error that the policy does not restart for: the script's hook asked for it.
        let policy = &self.plan.policy;
        let asked_for = |error: &&StatementError| failure.restart && retry::verdict(policy, error) == Verdict::Fatal;
        let judged = error.as_deref().filter(|error| !asked_for(error));
        let (kind, retries) =
            this.transaction.as_ref().map_or((0, 0), |transaction| (transaction.kind, transaction.retries));
        let target = this.target;
        let (decision, pause) = match retry::remedy(policy, judged, retries, &mut this.random) {
            Remedy::Again(pause) => {
                if let Some(transaction) = &mut this.transaction {
                    self.recorder.retry(transaction, at);
                }
                if matches!(self.plan.load, Load::Terminals { .. }) {
                    let Session { state, slot, .. } = self.sessions[session];
                    self.states[state].state.run_again(slot);
                }
                (Decision::Retry, pause)
            }
            Remedy::GiveUp => {
                self.leave_transaction(session, Ending::Failed, at);
                (Decision::Skip, Nanos::ZERO)
            }
            Remedy::EndRun => {
                self.leave_transaction(session, Ending::Failed, at);
                let error = match error {
                    Some(error) => RunError::Statement {
                        target,
                        transaction: self.shared.types()[kind].clone(),
                        retries,
                        error,
                        failure,
                    },
                    None => RunError::Script(ScriptError::from(&failure)),
                };
                self.fail(error);
                return self.drop_session(session);
            }
        };
        if let Some(error) = &error {
            self.advise(target, error);
        }
        for link in self.sessions[session].links.iter().flatten() {
            let link = &mut self.links[*link];
            link.rolled_back = false;
            if std::mem::take(&mut link.deferred) {
                link.machine.forget_deferred();
            }
        }
        self.sessions[session].recovery =
            Some(Recovery { answer: RecoveryAnswer::Decide(decision), pause, paused: false, started: at, attempts: 0 });
        self.recover(session, at);
    }

    /// The script asked for a new connection by itself.
    fn reconnect(&mut self, session: usize, connection: ConnectionNumber, at: Nanos) {
        match self.sessions[session].links.get(connection.0 as usize).copied().flatten() {
            Some(link) => self.break_link(link, StatementError::network("closed by the script to connect anew")),
            None => {
                let at = self.io.now();
                return self.queue(session, Answer::Done, at);
            }
        }
        self.sessions[session].recovery = Some(Recovery {
            answer: RecoveryAnswer::Done,
            pause: Nanos::ZERO,
            paused: false,
            started: at,
            attempts: 0,
        });
        self.recover(session, at);
    }

    /// Takes the next step of a recovery: roll back what is open, reconnect what is broken, pause, go on.
    pub(super) fn recover(&mut self, session: usize, at: Nanos) {
        self.sessions[session].doing = Doing::Recovering;
        for number in 0..self.sessions[session].links.len() {
            let Some(link) = self.sessions[session].links[number] else { continue };
            if self.links[link].is_open() && self.links[link].machine.in_transaction() && self.rolls_back(session) {
                if self.links[link].rolled_back {
                    self.break_link(link, StatementError::network("still in a transaction after ROLLBACK"));
                } else {
                    return self.roll_back(link);
                }
            }
            if self.links[link].is_broken() {
                return self.connect_again(link);
            }
            if !self.links[link].is_open() {
                return;
            }
        }
        let this = &mut self.sessions[session];
        let Some(recovery) = &mut this.recovery else { return };
        if recovery.pause > Nanos::ZERO && !recovery.paused {
            recovery.paused = true;
            let wake = self.io.now() + recovery.pause;
            return self.set_timer(wake, Alarm::Session(session));
        }
        let answer = match recovery.answer {
            RecoveryAnswer::Decide(decision) => Answer::Decision(decision),
            RecoveryAnswer::Done => Answer::Done,
        };
        this.recovery = None;
        self.queue(session, answer, at);
    }

    fn rolls_back(&self, session: usize) -> bool {
        let recovery = self.sessions[session].recovery.as_ref();
        self.plan.policy.rollback
            && recovery.is_some_and(|recovery| matches!(recovery.answer, RecoveryAnswer::Decide(_)))
    }

    fn roll_back(&mut self, link: usize) {
        let now = self.io.now();
        let this = &mut self.links[link];
        this.rolled_back = true;
        this.doing = LinkDoing::Rollback;
        let mut exchange = Exchange { out: &mut self.out, pool: &mut self.pool, now };
        let progress = this.machine.execute(&Operation::Query { sql: b"ROLLBACK" }, &mut exchange);
        self.follow_inline(link, progress);
    }

    /// Acts on what a machine said to an operation just given to it: replies go through the queue, since the
    /// session that asked is not to be resumed within its own request.
    fn follow_inline(&mut self, link: usize, progress: Progress) {
        // Mostly there is nothing to act on, and then no instant is needed either.
        let at = if matches!(progress, Progress::Pending) { Nanos::ZERO } else { self.io.now() };
        self.follow(link, progress, at, true);
    }

    /// An error that nothing in the script caught, outside a transaction.
    fn on_died(&mut self, session: usize, failure: &Failure) {
        let this = &mut self.sessions[session];
        this.success = false;
        let target = this.target;
        let error = if let Some(error) = this.connect_error.take() {
            RunError::Connect {
                target,
                connected: self.sessions.iter().filter(|session| session.is_served(&self.links)).count() as u32,
                wanted: self.plan.setup.sessions,
                error,
                failure: failure.clone(),
            }
        } else if let Some(error) = this.last_error.take().filter(|_| failure.statement) {
            RunError::Statement {
                target,
                transaction: self.plan.setup.command.clone(),
                retries: 0,
                error,
                failure: failure.clone(),
            }
        } else {
            RunError::Script(ScriptError::from(failure))
        };
        self.fail(error);
        self.drop_session(session);
    }

    /// A connection asked for by the script could not be made.
    pub(super) fn refuse_connect(&mut self, session: usize, target: usize, error: Box<StatementError>) {
        self.sessions[session].connect_error = Some(error.clone());
        let at = self.io.now();
        let first = self.plan.first_like(target);
        self.queue(session, Answer::Error(error, target - first), at);
    }

    /// A connection asked for by the script is there.
    pub(super) fn accept_connect(&mut self, session: usize, at: Nanos) {
        self.sessions[session].connect_error = None;
        self.queue(session, Answer::Done, at);
    }

    /// The session's pause is over.
    pub(super) fn wake_session(&mut self, session: usize, now: Nanos) {
        match self.sessions[session].doing {
            Doing::Recovering => self.recover(session, now),
            Doing::Waiting => self.advance(session, Answer::Done, now),
            _ => {}
        }
    }

    /// Lets sessions go on whose barrier has opened.
    pub(super) fn pass_barriers(&mut self) {
        self.at_barrier = 0;
        for session in 0..self.sessions.len() {
            if self.sessions[session].doing != Doing::AtBarrier {
                continue;
            }
            if self.shared.passed(self.sessions[session].barrier) {
                let at = self.io.now();
                self.queue(session, Answer::Done, at);
            } else {
                self.at_barrier += 1;
            }
        }
    }

    /// Ends a session: closes its connections, forgets its coroutine.
    pub(super) fn drop_session(&mut self, session: usize) {
        if self.sessions[session].doing == Doing::Gone {
            return;
        }
        // What it was at is lost with it.
        self.leave_transaction(session, Ending::Failed, self.io.now());
        for number in 0..self.sessions[session].links.len() {
            self.disconnect(session, ConnectionNumber(number as u32));
        }
        let this = &mut self.sessions[session];
        this.doing = Doing::Gone;
        this.recovery = None;
        let (state, slot) = (this.state, this.slot);
        self.states[state].state.remove(slot, &mut self.pool);
        self.shared.leave();
    }
}
