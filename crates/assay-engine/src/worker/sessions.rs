//! All sessions of a worker: executes the requests of their scripts.
//!
//! A session is resumed with an answer and asks for something; what can be answered at once is, what a connection is
//! asked goes to the links, and what only the stage can decide is handed up as a `Want`. What came of statements and
//! transactions is told to the recorder.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use assay_io::{Event, Io};
use assay_random::Random;
use assay_script::{Answer, ConnectionNumber, Decision, Failure, Key, Request, ScriptError, State, Verdict};
use assay_seam::{Class, Code, Nanos, Operation, Reply, StatementError};

use super::link::Batch;
use super::links::{Heard, Links};
use super::recorder::{Ending, Recorder};
use super::recovery::{Recovery, Step};
use super::session::{Doing, Session};
use super::stage::Due;
use super::timers::Timers;
use crate::messages::Message;
use crate::observer::Warning;
use crate::outcome::{Outside, RunError};
use crate::plan::{Deal, Load, Plan};
use crate::retry::{self, Remedy};
use crate::shared::Shared;

/// See the module.
pub(super) struct Sessions<I: Io> {
    worker: usize,
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    outbox: Sender<Message>,
    states: Vec<StateEntry>,
    /// Session `worker + i · workers` is at index `i`.
    all: Vec<Session>,
    pub(super) links: Links<I>,
    pub(super) recorder: Recorder,
    timers: Timers,
    /// Sessions that can go on at once: those of embedded databases, and those that have had their turn.
    runnable: VecDeque<(usize, Answer, Nanos)>,
    /// Sessions that wait at a barrier.
    at_barrier: usize,
    /// The run has started: sessions that become ready now continue immediately.
    pub(super) under_way: bool,
    wants: VecDeque<Want>,
    /// Of the pauses between attempts to connect again.
    random: Random,
    /// By target: an outage was reported and is not over.
    outages: Vec<bool>,
    /// Targets and codes of errors about which advice was given.
    advised: Vec<(usize, Code)>,
}

/// A Lua state, and the numbers that its transaction types and counters have over the whole run.
struct StateEntry {
    state: State,
    sessions: usize,
    types: Vec<usize>,
    counters: Vec<usize>,
}

/// What only the stage can decide.
#[derive(Debug)]
pub(super) enum Want {
    /// A session has parked, and asks for its next transaction.
    Transaction { session: usize, at: Nanos },
    /// A terminal's transaction ended at `at`: its user begins to think.
    Think { terminal: u32, at: Nanos },
    /// The run is to end.
    End(Box<RunError>),
}

/// Sessions of embedded databases resumed between two looks at the event loop.
const RUNNABLE_MAX: usize = 64;

/// What a script hears that goes on, or ends, without the answer to rows that it loads.
fn not_done() -> Failure {
    let message = "a loader's rows were sent without waiting for the answer: call `done` after the last row";
    Failure { message: message.to_owned(), ..Failure::default() }
}

impl<I: Io> Sessions<I> {
    pub(super) fn new(
        worker: usize,
        plan: Arc<Plan>,
        shared: Arc<Shared>,
        outbox: Sender<Message>,
        io: I,
    ) -> Sessions<I> {
        Sessions {
            worker,
            links: Links::new(plan.clone(), outbox.clone(), io),
            recorder: Recorder::new(&plan, shared.clone()),
            random: Random::of_stream(plan.setup.seed, 1_000_000 + worker as u64),
            outages: vec![false; plan.targets.len()],
            plan,
            shared,
            outbox,
            states: Vec::new(),
            all: Vec::new(),
            timers: Timers::default(),
            runnable: VecDeque::new(),
            at_barrier: 0,
            under_way: false,
            wants: VecDeque::new(),
            advised: Vec::new(),
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn number(&self, session: usize) -> u32 {
        self.all[session].number
    }

    pub(super) fn doing(&self, session: usize) -> Doing {
        self.all[session].doing
    }

    /// How many of the first `count` stand so.
    pub(super) fn count(&self, count: usize, stands: impl Fn(Doing) -> bool) -> usize {
        self.all[..count].iter().filter(|session| stands(session.doing)).count()
    }

    /// Whether every one of the first `count` has ended.
    pub(super) fn are_gone(&self, count: usize) -> bool {
        self.all[..count].iter().all(|session| session.doing == Doing::Gone)
    }

    /// Whether none returned failure.
    pub(super) fn are_successful(&self) -> bool {
        self.all.iter().all(|session| session.success)
    }

    /// How many of the first `count` have usable connections.
    pub(super) fn served(&self, count: usize) -> u32 {
        let served = |session: &&Session| session.doing != Doing::Gone && self.links.are_open(&session.links);
        self.all[..count].iter().filter(served).count() as u32
    }

    /// What was done besides transactions since this was last asked.
    pub(super) fn take_outside(&mut self) -> Outside {
        let mut outside = self.recorder.take_outside();
        for entry in &mut self.states {
            outside.add_counters(entry.state.take_counted());
        }
        outside
    }

    /// What was acknowledged to the scripts (`assay.acknowledge`).
    pub(super) fn take_acknowledged(&mut self) -> Vec<Key> {
        self.states.iter_mut().flat_map(|entry| entry.state.take_acknowledged()).collect()
    }

    /// How long a terminal's user thinks now.
    pub(super) fn take_think(&mut self, terminal: u32) -> Option<Nanos> {
        // With terminals a worker has one Lua state.
        self.states.first_mut().map(|entry| entry.state.take_think(terminal))
    }

    /// When something is to be done, whatever happens on the sockets.
    pub(super) fn deadline(&self) -> Nanos {
        if self.runnable.is_empty() { self.timers.next().min(self.links.deadline()) } else { Nanos::ZERO }
    }

    /// Something arrived at `at`.
    pub(super) fn on_event(&mut self, event: Event, at: Nanos) {
        if let Some(heard) = self.links.on_event(event, at) {
            self.on_heard(heard, at, false);
        }
    }

    /// Fires the alarms that are due.
    pub(super) fn ring(&mut self, now: Nanos) {
        while let Some(heard) = self.links.ring(now) {
            if let Some(heard) = heard {
                self.on_heard(heard, self.links.io.now(), false);
            }
        }
        while let Some((session, serial)) = self.timers.take_due(now) {
            if self.all[session].timer == serial {
                self.wake(session, now);
            }
        }
        self.links.end_silent(now);
    }

    /// A session's pause is over.
    fn wake(&mut self, session: usize, now: Nanos) {
        match self.all[session].doing {
            Doing::Recovering => self.recover(session, now),
            Doing::Waiting => self.advance(session, Answer::Done, now),
            _ => {}
        }
    }

    /// Lets sessions go on whose barrier has opened.
    pub(super) fn pass_barriers(&mut self) {
        if self.at_barrier == 0 {
            return;
        }
        self.at_barrier = 0;
        for session in 0..self.all.len() {
            if self.all[session].doing != Doing::AtBarrier {
                continue;
            }
            if self.shared.passed(self.all[session].barrier) {
                self.queue(session, Answer::Done, self.links.io.now());
            } else {
                self.at_barrier += 1;
            }
        }
    }

    /// Resumes sessions that can go on at once: some of them.
    pub(super) fn run_some(&mut self) {
        for _ in 0..RUNNABLE_MAX {
            let Some((session, answer, at)) = self.runnable.pop_front() else { return };
            self.advance(session, answer, at);
        }
    }

    /// Begins as many queued connects as the limits allow now.
    pub(super) fn connect_more(&mut self) {
        while let Some(heard) = self.links.connect_next() {
            if let Some(heard) = heard {
                self.on_heard(heard, self.links.io.now(), true);
            }
        }
    }

    /// What only the stage can decide, in the order in which it came up.
    pub(super) fn next_want(&mut self) -> Option<Want> {
        self.wants.pop_front()
    }

    pub(super) fn add(&mut self, number: u32) -> Result<usize, ScriptError> {
        // Whichever session serves a terminal finds what the script keeps for it.
        let per_state = match self.plan.load {
            Load::Terminals { .. } => usize::MAX,
            Load::Closed | Load::Open { .. } | Load::Trace { .. } => self.plan.sessions_per_state,
        };
        if self.states.last().is_none_or(|entry| entry.sessions >= per_state) {
            let mut state = State::new(&self.plan.program, &self.plan.setup)?;
            if let Load::Terminals { terminals, .. } = self.plan.load {
                state.serve_terminals(terminals);
            }
            self.shared.add_guard(self.worker, state.guard());
            self.states.push(StateEntry { state, sessions: 0, types: vec![0], counters: Vec::new() });
        }
        let state = self.states.len() - 1;
        let entry = &mut self.states[state];
        let slot = entry.state.add_session(number)?;
        entry.sessions += 1;
        let target = number as usize % self.plan.targets.len();
        self.all.push(Session::new(number, state, slot, target, self.plan.setup.seed));
        Ok(self.all.len() - 1)
    }

    /// Lets the session go on in a later round.
    pub(super) fn queue(&mut self, session: usize, answer: Answer, at: Nanos) {
        self.all[session].doing = Doing::Queued;
        self.runnable.push_back((session, answer, at));
    }

    /// Begins a transaction that was due at `due`; false when the transaction limit is reached. `now`: freshly read.
    pub(super) fn begin(&mut self, session: usize, due: Due, now: Nanos) -> bool {
        let this = &mut self.all[session];
        this.transaction = self.recorder.begin(session, this.target, due.at, this.free, now);
        if this.transaction.is_none() {
            return false;
        }
        if let Some(terminal) = due.terminal {
            self.states[this.state].state.enter_terminal(this.slot, terminal);
        }
        self.clear_marks(session);
        true
    }

    /// Resumes a session and executes its requests until it has to wait. `at`: the time of the event passed to it.
    pub(super) fn advance(&mut self, session: usize, answer: Answer, at: Nanos) {
        if self.all[session].doing == Doing::Gone {
            return;
        }
        let mut answer = answer;
        loop {
            let this = &mut self.all[session];
            this.doing = Doing::Waiting;
            let state = this.state;
            let request = self.states[state].state.resume(this.slot, answer, &mut self.links.pool);
            answer = match request {
                Request::Operation(connection, operation) => {
                    let Some(link) = self.links.usable(self.all[session].link(connection.0)) else {
                        return self.queue_broken(session, connection);
                    };
                    let statement = !matches!(operation, Operation::Prepare { .. } | Operation::Close { .. });
                    // What fails in a transaction is undone at once, and takes all connections for that.
                    let ahead = matches!(operation, Operation::Load { .. }) && self.all[session].transaction.is_none();
                    let heard = self.links.execute(link, &operation, statement, ahead);
                    return self.on_heard_inline(heard);
                }
                Request::Defer(connection, operation) => {
                    let Some(link) = self.links.usable(self.all[session].link(connection.0)) else {
                        return self.queue_broken(session, connection);
                    };
                    if !self.links.defer(link, &operation) {
                        let heard = self.links.execute(link, &operation, true, false);
                        return self.on_heard_inline(heard);
                    }
                    Answer::Proceed(true)
                }
                Request::Pipe(connection, operation) => {
                    let Some(link) = self.links.usable(self.all[session].link(connection.0)) else {
                        return self.queue_broken(session, connection);
                    };
                    if !self.links.pipe(link, &operation) {
                        let heard = self.links.execute(link, &operation, true, false);
                        return self.on_heard_inline(heard);
                    }
                    Answer::Proceed(true)
                }
                Request::InTransaction(connection) => {
                    let link = self.links.usable(self.all[session].link(connection.0));
                    Answer::Proceed(link.is_some_and(|link| self.links[link].machine.in_transaction()))
                }
                Request::Synchronise(connection) => {
                    if let Some(link) = self.links.usable(self.all[session].link(connection.0)) {
                        self.links[link].machine.synchronise();
                    }
                    Answer::Done
                }
                Request::Rollback(connection) => {
                    let Some(link) = self.links.usable(self.all[session].link(connection.0)) else {
                        return self.queue_broken(session, connection);
                    };
                    let heard = self.links.execute(link, &Operation::Query { sql: b"ROLLBACK" }, false, false);
                    return self.on_heard_inline(heard);
                }
                Request::Flush(connection) => {
                    let link = self.all[session].link(connection.0);
                    match link.map(|link| (link, std::mem::take(&mut self.links[link].batch))) {
                        Some((_, Batch::Answered(reply))) => self.judge(session, reply, true),
                        Some((_, Batch::Unanswered)) => return,
                        Some((link, _)) if self.links[link].deferred => {
                            let heard = self.links.flush(link);
                            return self.on_heard_inline(heard);
                        }
                        _ => Answer::Done,
                    }
                }
                Request::Next => return self.on_next(session, at),
                Request::Type(index) => {
                    let kind = self.type_index(state, index as usize);
                    if let Some(transaction) = &mut self.all[session].transaction {
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
                    if !self.under_way {
                        self.all[session].doing = Doing::Initialised;
                        return;
                    }
                    Answer::Done
                }
                Request::Connect(connection, driver, place) => {
                    let targets = self.plan.targets_of(driver);
                    let among = targets.clone().unwrap_or_default();
                    // From 1; 0 is for the one that is due.
                    let chosen = (place > 0).then(|| among.start + place as usize - 1);
                    let words = match (targets, chosen) {
                        (Some(targets), None) => return self.connect(session, connection, targets),
                        (Some(targets), Some(target)) if target < targets.end => {
                            return self.connect(session, connection, target..target + 1);
                        }
                        (Some(targets), _) => {
                            format!(
                                "the script connects to server {place}, and there are {}: add a `--db`",
                                targets.len()
                            )
                        }
                        (None, _) => {
                            format!("no server uses the driver `{}`", String::from_utf8_lossy(driver))
                        }
                    };
                    let error = StatementError::client(Class::Connection, words);
                    return self.refuse_connect(session, among.start, Box::new(error));
                }
                Request::Leave(connection) => {
                    let link = self.all[session].link(connection.0);
                    if link.is_some_and(|link| self.links.leave(link)) {
                        return;
                    }
                    self.disconnect(session, connection);
                    Answer::Done
                }
                Request::Disconnect(connection) => {
                    self.disconnect(session, connection);
                    Answer::Done
                }
                Request::Reconnect(connection) => return self.reconnect(session, connection, at),
                Request::Sleep(pause) => return self.wake_after(session, pause),
                Request::Claim(name) => Answer::Number(self.shared.claim(name)),
                Request::Barrier => {
                    self.all[session].doing = Doing::AtBarrier;
                    self.all[session].barrier = self.shared.arrive();
                    self.at_barrier += 1;
                    return self.pass_barriers();
                }
                Request::Expect(rows) => {
                    self.shared.expected.fetch_add(rows, Ordering::Relaxed);
                    Answer::Done
                }
                Request::Log(text) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    self.send(Message::Log { session: self.all[session].number, text });
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
                    self.all[session].success &= success;
                    return self.drop(session);
                }
                Request::Died(failure) => return self.on_died(session, &failure),
            };
        }
    }

    /// The session's transaction is over, and it asks for the next.
    fn on_next(&mut self, session: usize, at: Nanos) {
        let at = self.done_at(session, at);
        if self.has_deferred(session) {
            let message = "the transaction ended before its deferred statements were sent: execute another statement after them, such as COMMIT";
            let failure = Failure { message: message.to_owned(), ..Failure::default() };
            return self.on_failed(session, failure, at);
        }
        if self.is_ahead(session) {
            return self.on_died(session, &not_done());
        }
        self.complete(session, at);
        let this = &mut self.all[session];
        (this.doing, this.free) = (Doing::Parked, at);
        self.wants.push_back(Want::Transaction { session, at });
    }

    /// An operation cannot be executed: the session hears why.
    fn queue_broken(&mut self, session: usize, connection: ConnectionNumber) {
        let broken = self.all[session].link(connection.0).and_then(|link| self.links[link].broken.take());
        let error = broken.map_or_else(|| StatementError::network("the connection is closed"), |error| *error);
        let at = self.links.io.now();
        let answer = self.judge(session, Reply::failed(error), true);
        self.queue(session, answer, at);
    }

    fn wake_after(&mut self, session: usize, pause: Nanos) {
        let wake = self.links.io.now() + pause;
        self.all[session].timer = self.timers.set(wake, session);
    }

    /// Rows are on their way whose answer the script has not asked for.
    fn is_ahead(&self, session: usize) -> bool {
        self.all[session].links.iter().flatten().any(|link| !matches!(self.links[*link].batch, Batch::Awaited))
    }

    fn has_deferred(&self, session: usize) -> bool {
        self.all[session].links.iter().flatten().any(|link| self.links[*link].deferred)
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

    /// What came of a command at once: the session that gave it is not resumed within its own request.
    fn on_heard_inline(&mut self, heard: Option<Heard>) {
        // Mostly it has to wait, and then no instant is needed either.
        if let Some(heard) = heard {
            self.on_heard(heard, self.links.io.now(), true);
        }
    }

    /// Something happened to a link at `at`. `inline`: while its session is in the middle of a request.
    fn on_heard(&mut self, heard: Heard, at: Nanos, inline: bool) {
        match heard {
            Heard::Answered { link, reply } => self.on_answered(link, reply, at, inline),
            Heard::Lost { link, error, may_have_committed } => {
                let session = self.links[link].session;
                if let Some(transaction) = &mut self.all[session].transaction {
                    transaction.lose_answer(may_have_committed);
                }
                let Some(reply) = self.links[link].answered(Reply { error: Some(error), ..Reply::default() }) else {
                    return;
                };
                let answer = self.judge(session, reply, true);
                if inline { self.queue(session, answer, at) } else { self.advance(session, answer, at) }
            }
            Heard::RowsSent { link } => {
                let session = self.links[link].session;
                self.queue(session, Answer::Proceed(true), self.links.io.now());
            }
            Heard::RolledBack { link } => self.recover(self.links[link].session, at),
            Heard::Ready { link, again } => {
                let (session, target) = (self.links[link].session, self.links[link].target);
                if again {
                    self.recorder.reconnected(target, at);
                    if std::mem::take(&mut self.outages[target]) {
                        self.send(Message::Warning(Warning::Recovered { target }));
                    }
                }
                if self.all[session].recovery.is_some() {
                    self.recover(session, at);
                } else {
                    self.all[session].connect_error = None;
                    self.queue(session, Answer::Done, at);
                }
            }
            Heard::Left { link } => {
                let session = self.links[link].session;
                if let Some(slot) = self.all[session].links.iter_mut().find(|slot| **slot == Some(link)) {
                    *slot = None;
                }
                self.links.close(link);
                self.queue(session, Answer::Done, at);
            }
            Heard::Refused { link, error } => self.on_refused(link, error),
        }
    }

    /// An operation of the script is answered. `at`: when the answer arrived.
    fn on_answered(&mut self, link: usize, reply: Reply, at: Nanos, inline: bool) {
        let of_link = &mut self.links[link];
        let (session, sent) = (of_link.session, of_link.sent);
        let (load, executing) = (of_link.is_loading(), of_link.is_executing());
        let answered_deferred = of_link.finish();
        let transaction = self.all[session].transaction.as_ref();
        if answered_deferred {
            let executed = self.links[link].machine.take_executed();
            for (class, count) in [(0, executed.reads), (1, executed.writes), (2, executed.others)] {
                self.recorder.statements(transaction, class, count, sent, at);
            }
        }
        if reply.error.is_none() {
            if load {
                self.shared.loaded.fetch_add(reply.affected, Ordering::Relaxed);
            }
            let class = match (&reply.rows, reply.affected) {
                (Some(_), _) => 0,
                (None, 1..) => 1,
                (None, 0) => 2,
            };
            if executing {
                self.recorder.statements(transaction, class, 1, sent, at);
            }
        }
        let Some(reply) = self.links[link].answered(reply) else { return };
        let answer = self.judge(session, reply, executing || load || self.plan.policy.failed_prepares_count);
        if inline { self.queue(session, answer, at) } else { self.advance(session, answer, at) }
    }

    /// Takes note of a reply and decides how the script learns of it. `counts`: its error is one of the run.
    fn judge(&mut self, session: usize, reply: Reply, counts: bool) -> Answer {
        let this = &mut self.all[session];
        let Some(error) = &reply.error else {
            this.last_error = None;
            return Answer::Reply(reply, Verdict::Fatal);
        };
        let in_transaction = this.transaction.is_some();
        let verdict = if in_transaction { retry::verdict(&self.plan.policy, error) } else { Verdict::Fatal };
        this.last_error = Some(error.clone());
        if counts {
            self.recorder.error(this.transaction.as_ref(), this.target, error, self.links.io.now());
        }
        Answer::Reply(reply, verdict)
    }

    /// When a session's transaction was done that ends now: when its last answer arrived. One that waited for nothing
    /// has worked inside the script until now.
    fn done_at(&self, session: usize, at: Nanos) -> Nanos {
        let worked = self.all[session].transaction.as_ref().is_some_and(|transaction| transaction.sent() >= at);
        if worked { self.links.io.now() } else { at }
    }

    /// The session's transaction, if there is one, is done, well.
    fn complete(&mut self, session: usize, at: Nanos) {
        let this = &mut self.all[session];
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
        let Session { state, slot, .. } = self.all[session];
        let state = &mut self.states[state].state;
        if state.has_marks() {
            state.marks(slot).clear();
        }
    }

    /// The session's transaction, if there is one, ends in another way.
    fn leave_transaction(&mut self, session: usize, ending: Ending, at: Nanos) {
        if let Some(transaction) = self.all[session].transaction.take() {
            self.recorder.end(transaction, ending, at);
            self.leave_terminal(session, at);
        }
    }

    /// The user whom the session served begins to think.
    fn leave_terminal(&mut self, session: usize, at: Nanos) {
        if let Load::Terminals { .. } = self.plan.load {
            let Session { state, slot, .. } = self.all[session];
            if let Some(terminal) = self.states[state].state.leave_terminal(slot) {
                self.wants.push_back(Want::Think { terminal, at });
            }
        }
    }

    /// The grace period is over: those still in flight will not be waited for.
    pub(super) fn give_up_unfinished(&mut self) {
        let now = self.links.io.now();
        for transaction in self.all.iter_mut().filter_map(|session| session.transaction.as_mut()) {
            self.recorder.give_up(transaction, now);
        }
    }

    /// The transaction failed: decide, and bring the connections in order before saying so.
    fn on_failed(&mut self, session: usize, failure: Failure, at: Nanos) {
        self.clear_marks(session);
        let this = &mut self.all[session];
        let error = if failure.statement { this.last_error.take() } else { None };
        if error.is_none() && !failure.restart {
            return self.end_run(session, RunError::Script(ScriptError::from(&failure)), at);
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
                    self.states[this.state].state.run_again(this.slot);
                }
                (Decision::Retry, pause)
            }
            Remedy::GiveUp => {
                self.leave_transaction(session, Ending::Failed, at);
                (Decision::Skip, Nanos::ZERO)
            }
            Remedy::EndRun => {
                let transaction = self.shared.types()[kind].clone();
                let error = match error {
                    Some(error) => RunError::Statement { target, transaction, retries, error, failure },
                    None => RunError::Script(ScriptError::from(&failure)),
                };
                return self.end_run(session, error, at);
            }
        };
        if let Some(error) = &error {
            self.advise(target, error);
        }
        for link in self.all[session].links.iter().flatten() {
            self.links[*link].begin_recovery();
        }
        let answer = Answer::Decision(decision);
        self.all[session].recovery = Some(Recovery::new(answer, self.plan.policy.rollback, pause, at));
        self.recover(session, at);
    }

    /// The session cannot go on, and the run is to end.
    fn end_run(&mut self, session: usize, error: RunError, at: Nanos) {
        self.leave_transaction(session, Ending::Failed, at);
        self.wants.push_back(Want::End(Box::new(error)));
        self.drop(session);
    }

    /// The script asked for a new connection by itself.
    fn reconnect(&mut self, session: usize, connection: ConnectionNumber, at: Nanos) {
        let Some(link) = self.all[session].link(connection.0) else {
            let at = self.links.io.now();
            return self.queue(session, Answer::Done, at);
        };
        self.links.sever(link, StatementError::network("closed by the script to connect anew"));
        self.all[session].recovery = Some(Recovery::new(Answer::Done, false, Nanos::ZERO, at));
        self.recover(session, at);
    }

    /// Takes the next step of a recovery.
    fn recover(&mut self, session: usize, at: Nanos) {
        loop {
            let this = &mut self.all[session];
            this.doing = Doing::Recovering;
            let Some(recovery) = &mut this.recovery else { return };
            let links = this.links.iter().flatten().map(|link| (*link, &self.links[*link]));
            match recovery.next(links) {
                Step::Sever(link) => {
                    self.links.sever(link, StatementError::network("still in a transaction after ROLLBACK"));
                }
                Step::RollBack(link) => {
                    let heard = self.links.roll_back(link);
                    return self.on_heard_inline(heard);
                }
                Step::Connect(link) => return self.links.connect(link),
                Step::Wait => return,
                Step::Pause(pause) => return self.wake_after(session, pause),
                Step::GoOn(answer) => {
                    this.recovery = None;
                    return self.queue(session, answer, at);
                }
            }
        }
    }

    /// A link could not be connected: the script hears of its first connect; lost connections are tried again for a
    /// while.
    fn on_refused(&mut self, link: usize, error: Box<StatementError>) {
        let (session, target) = (self.links[link].session, self.links[link].target);
        let Some(recovery) = &mut self.all[session].recovery else {
            return self.refuse_connect(session, target, error);
        };
        let now = self.links.io.now();
        if !retry::may_come_back(&error) || now - recovery.started >= self.plan.policy.reconnect {
            let connected = self.served(self.all.len());
            let (wanted, failure) = (self.plan.setup.sessions, Failure::default());
            return self.end_run(session, RunError::Connect { target, connected, wanted, error, failure }, now);
        }
        recovery.attempts += 1;
        let pause = retry::reconnect_pause(recovery.attempts - 1, &mut self.random);
        self.links.connect_after(link, pause);
        if !std::mem::replace(&mut self.outages[target], true) {
            self.send(Message::Warning(Warning::Outage { target, message: error.message.clone() }));
        }
    }

    /// An error that nothing in the script caught, outside a transaction.
    fn on_died(&mut self, session: usize, failure: &Failure) {
        let this = &mut self.all[session];
        this.success = false;
        let (target, failure) = (this.target, failure.clone());
        let connect_error = this.connect_error.take();
        let last_error = this.last_error.take().filter(|_| failure.statement);
        let error = if let Some(error) = connect_error {
            let (connected, wanted) = (self.served(self.all.len()), self.plan.setup.sessions);
            RunError::Connect { target, connected, wanted, error, failure }
        } else if let Some(error) = last_error {
            let transaction = self.plan.setup.command.clone();
            RunError::Statement { target, transaction, retries: 0, error, failure }
        } else {
            RunError::Script(ScriptError::from(&failure))
        };
        self.end_run(session, error, self.links.io.now());
    }

    /// The run survives this error; the observer may act on it.
    fn advise(&mut self, target: usize, error: &StatementError) {
        let known = |(of, code): &(usize, Code)| *of == target && *code == error.code;
        let Some(hint) = retry::advice(error).filter(|_| !self.advised.iter().any(known)) else { return };
        self.advised.push((target, error.code.clone()));
        let (error, hint) = (Box::new(error.clone()), hint.clone());
        self.send(Message::Warning(Warning::Advice { target, error, hint }));
    }

    /// Opens a connection for the script, to one of these targets.
    fn connect(&mut self, session: usize, connection: ConnectionNumber, targets: Range<usize>) {
        let target = match self.plan.connects.deal {
            // One that the script has chosen.
            Deal::BySession if targets.len() == 1 => targets.start,
            Deal::BySession => self.all[session].target,
            // With a single choice the counter stays as it is.
            Deal::ByConnection if targets.len() == 1 => targets.start,
            Deal::ByConnection => targets.start + self.shared.dealt.fetch_add(1, Ordering::Relaxed) % targets.len(),
        };
        let link = self.links.open(session, target);
        let links = &mut self.all[session].links;
        links.resize(links.len().max(connection.0 as usize + 1), None);
        links[connection.0 as usize] = Some(link);
    }

    /// A connection asked for by the script could not be made.
    fn refuse_connect(&mut self, session: usize, target: usize, error: Box<StatementError>) {
        self.all[session].connect_error = Some(error.clone());
        let at = self.links.io.now();
        let first = self.plan.first_like(target);
        self.queue(session, Answer::Error(error, target - first), at);
    }

    /// Closes a connection of the script for good.
    fn disconnect(&mut self, session: usize, connection: ConnectionNumber) {
        let slot = self.all[session].links.get_mut(connection.0 as usize);
        if let Some(link) = slot.and_then(Option::take) {
            self.links.close(link);
        }
    }

    /// Ends a session: closes its connections, forgets its coroutine.
    pub(super) fn drop(&mut self, session: usize) {
        if self.all[session].doing == Doing::Gone {
            return;
        }
        // What it was at is lost with it.
        self.leave_transaction(session, Ending::Failed, self.links.io.now());
        for number in 0..self.all[session].links.len() {
            self.disconnect(session, ConnectionNumber(number as u32));
        }
        let this = &mut self.all[session];
        this.doing = Doing::Gone;
        this.recovery = None;
        self.states[this.state].state.remove(this.slot, &mut self.links.pool);
        self.shared.leave();
    }

    /// Ends all of them.
    pub(super) fn drop_all(&mut self) {
        self.runnable.clear();
        for session in 0..self.all.len() {
            self.drop(session);
        }
    }

    /// Lets every session come to its end; those that wait for something in a transaction are not waited for.
    pub(super) fn dismiss(&mut self) {
        for session in 0..self.all.len() {
            let at = self.links.io.now();
            let this = &self.all[session];
            match this.doing {
                Doing::Initialised => self.runnable.push_back((session, Answer::Done, at)),
                Doing::Parked => self.runnable.push_back((session, Answer::Proceed(false), at)),
                Doing::Queued => {}
                // Outside of a transaction it is still at what its own loop does, and may get to its end.
                Doing::Waiting | Doing::Recovering if this.transaction.is_none() => {}
                Doing::Waiting | Doing::Recovering | Doing::AtBarrier => self.drop(session),
                Doing::Gone => {}
            }
        }
    }

    /// Sends what is new for the journal.
    pub(super) fn send_lines(&mut self) {
        let lines = self.recorder.take_lines();
        if !lines.is_empty() {
            self.send(Message::Journal(lines));
        }
    }

    fn send(&self, message: Message) {
        // The coordinator outlives its workers, except when it is gone because of a panic of its own.
        let _ = self.outbox.send(message);
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
