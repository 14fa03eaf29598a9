//! All sessions of a worker: executes the requests of their scripts.
//!
//! A session is resumed with an answer and returns a request. What can be answered immediately is; requests to a
//! connection go to the links; what only the stage can decide is handed up as a `Want`. Results of statements and
//! transactions go to the recorder.
//!
//! This file has the worker's interface and a session's course from one request to the next; `answers` handles replies
//! of connections, `transactions` the ends of transactions, and `failures` recovery after an error.

mod answers;
mod failures;
mod transactions;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use assay_io::{Io, IoEvent};
use assay_random::Random;
use assay_script::{Answer, ConnectionNumber, Entry, Failure, Footprint, Key, LuaState, Request, ScriptError};
use assay_seam::{Class, Code, Nanos, Operation, StatementError};

use super::link::{Batch, Unfinished};
use super::links::Links;
use super::recorder::{Ending, Recorder};
use super::session::{Session, SessionPhase};
use super::stage::DueTransaction;
use super::timers::Timers;
use crate::messages::Message;
use crate::outcome::{Outside, RunError};
use crate::plan::{Deal, Load, Plan};
use crate::shared::{Claim, Shared};

/// See the module.
pub(super) struct Sessions<I: Io> {
    worker: usize,
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    outbox: Sender<Message>,
    states: Vec<StateEntry>,
    /// Session `worker + i · workers` is at index `i`, as all agents number their workers.
    all: Vec<Session>,
    pub(super) links: Links<I>,
    pub(super) recorder: Recorder,
    timers: Timers,
    /// Sessions that can continue immediately: those of embedded databases, and those that have had their turn.
    runnable: VecDeque<(usize, Answer, Nanos)>,
    /// Sessions that wait at a barrier, or for a number from the fleet.
    at_barrier: usize,
    /// Whether the run has started: sessions that become ready now continue immediately.
    pub(super) under_way: bool,
    wants: VecDeque<Want>,
    /// For the pauses between reconnects.
    random: Random,
    /// By target: whether an outage was reported and is not over.
    outages: Vec<bool>,
    /// Targets and error codes for which advice was given.
    advised: Vec<(usize, Code)>,
}

/// A Lua state, and the run-wide indices of its transaction types and counters.
struct StateEntry {
    state: LuaState,
    sessions: usize,
    types: Vec<usize>,
    counters: Vec<usize>,
}

/// What only the stage can decide.
#[derive(Debug)]
pub(super) enum Want {
    /// A session has no transaction and asks for the next.
    Transaction { session: usize, at: Nanos },
    /// A terminal's transaction ended at `at`: its user starts to think.
    Think { terminal: u32, at: Nanos },
    /// The run must end.
    End(Box<RunError>),
}

/// Sessions of embedded databases resumed between two polls of the event loop.
const RUNNABLE_MAX: usize = 64;

/// What a script gets that continues, or ends, without the answer to the rows it loads.
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
            random: Random::of_stream(plan.setup.seed, 1_000_000 + plan.agent().worker(worker) as u64),
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

    /// The number of sessions.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn number(&self, session: usize) -> u32 {
        self.all[session].number
    }

    pub(super) fn doing(&self, session: usize) -> SessionPhase {
        self.all[session].doing
    }

    /// How many of the first `count` are in this state.
    pub(super) fn count(&self, count: usize, stands: impl Fn(SessionPhase) -> bool) -> usize {
        self.all[..count].iter().filter(|session| stands(session.doing)).count()
    }

    /// Whether every one of the first `count` has ended.
    pub(super) fn are_gone(&self, count: usize) -> bool {
        self.all[..count].iter().all(|session| session.doing == SessionPhase::Gone)
    }

    /// Whether none returned failure.
    pub(super) fn are_successful(&self) -> bool {
        self.all.iter().all(|session| session.success)
    }

    /// How many of the first `count` have usable connections.
    pub(super) fn served(&self, count: usize) -> u32 {
        let served = |session: &&Session| session.doing != SessionPhase::Gone && self.links.are_open(&session.links);
        self.all[..count].iter().filter(served).count() as u32
    }

    /// What was done outside transactions since the last call.
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

    /// Adds what this worker did to what all of them did.
    pub(super) fn share_work(&mut self) {
        self.shared.add_work(&self.recorder.take_work());
    }

    /// How long a terminal's user thinks now.
    pub(super) fn take_think(&mut self, terminal: u32) -> Option<Nanos> {
        // With terminals a worker has one Lua state.
        self.states.first_mut().map(|entry| entry.state.take_think(terminal))
    }

    /// When something must be done, whatever happens on the sockets.
    pub(super) fn deadline(&self) -> Nanos {
        if self.runnable.is_empty() { self.timers.next().min(self.links.deadline()) } else { Nanos::ZERO }
    }

    /// Something arrived at `at`.
    pub(super) fn on_event(&mut self, event: IoEvent, at: Nanos) {
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
            SessionPhase::Recovering => self.recover(session, now),
            SessionPhase::Waiting => self.advance(session, Answer::Done, now),
            _ => {}
        }
    }

    /// Continues the sessions whose barrier has opened.
    pub(super) fn pass_barriers(&mut self) {
        if self.at_barrier == 0 {
            return;
        }
        self.at_barrier = 0;
        for session in 0..self.all.len() {
            let answer = match self.all[session].doing {
                SessionPhase::AtBarrier => self.shared.passed(self.all[session].barrier).then_some(Answer::Done),
                SessionPhase::Claiming(claim) => self.shared.granted(claim).map(Answer::Number),
                _ => continue,
            };
            match answer {
                Some(answer) => self.queue(session, answer, self.links.io.now()),
                None => self.at_barrier += 1,
            }
        }
    }

    /// Resumes some of the sessions that can continue immediately.
    pub(super) fn run_some(&mut self) {
        for _ in 0..RUNNABLE_MAX {
            let Some((session, answer, at)) = self.runnable.pop_front() else { return };
            self.advance(session, answer, at);
        }
    }

    /// Starts as many queued connects as the limits allow now.
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
        // Any session that serves a terminal finds what the script keeps for it.
        let per_state = match self.plan.load {
            Load::Terminals { .. } => usize::MAX,
            Load::Closed | Load::Open { .. } | Load::Trace { .. } => self.plan.sessions_per_state,
        };
        if self.states.last().is_none_or(|entry| entry.sessions >= per_state) {
            let mut state = LuaState::new(&self.plan.program, &self.plan.setup)?;
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

    /// Lets the session continue in a later round.
    pub(super) fn queue(&mut self, session: usize, answer: Answer, at: Nanos) {
        self.all[session].doing = SessionPhase::Queued;
        self.runnable.push_back((session, answer, at));
    }

    /// Starts a transaction that was due at `due`; false if the transaction limit is reached. `now`: freshly read.
    pub(super) fn begin(&mut self, session: usize, due: DueTransaction, now: Nanos) -> bool {
        let this = &mut self.all[session];
        this.transaction = self.recorder.begin(session, this.target, due.at, this.free, now);
        if this.transaction.is_none() {
            return false;
        }
        if let Some(terminal) = due.terminal {
            self.states[this.state].state.enter_terminal(this.slot, terminal);
        }
        self.clear_marks(session);
        let this = &mut self.all[session];
        let state = &mut self.states[this.state].state;
        if state.has_history() {
            state.history(this.slot).clear();
        }
        (this.attempt, this.footprint) = (now, Footprint::default());
        true
    }

    /// Resumes a session and executes its requests until it has to wait. `at`: the time of the event passed to it.
    pub(super) fn advance(&mut self, session: usize, answer: Answer, at: Nanos) {
        if self.all[session].doing == SessionPhase::Gone {
            return;
        }
        let mut answer = answer;
        loop {
            let this = &mut self.all[session];
            this.doing = SessionPhase::Waiting;
            let state = this.state;
            let request = self.states[state].state.resume(this.slot, answer, &mut self.links.pool);
            answer = match request {
                Request::Operation(connection, operation) => {
                    let Some(link) = self.links.usable(self.all[session].link(connection.0)) else {
                        return self.queue_broken(session, connection);
                    };
                    let is_load = matches!(operation, Operation::Load { .. });
                    if !is_load || matches!(self.links[link].batch, Batch::Awaited) {
                        let statement = !matches!(
                            operation,
                            Operation::Prepare { .. } | Operation::Close { .. } | Operation::RollBack
                        );
                        // What fails in a transaction is undone immediately, and that may need all connections.
                        let ahead = is_load && self.all[session].transaction.is_none();
                        let heard = self.links.execute(link, &operation, statement, ahead);
                        return self.on_heard_inline(heard);
                    }
                    // Earlier rows are still being stored, or their answer is not read yet.
                    if self.links.load_ahead(link, &operation) {
                        return;
                    }
                    Answer::Proceed(false)
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
                Request::Executed => Answer::Executed(self.all[session].footprint),
                Request::Synchronize(connection) => {
                    if let Some(link) = self.links.usable(self.all[session].link(connection.0)) {
                        self.links[link].machine.synchronize();
                    }
                    Answer::Done
                }
                Request::Flush(connection) => match self.on_flush(session, connection) {
                    Some(answer) => answer,
                    None => return,
                },
                Request::Notification(connection, limit) => {
                    let Some(link) = self.links.usable(self.all[session].link(connection.0)) else {
                        return self.queue_broken(session, connection);
                    };
                    let heard = self.links.notification(link, limit);
                    return self.on_heard_inline(heard);
                }
                Request::Next => return self.on_next(session, at),
                Request::Type(index) => {
                    let kind = self.type_index(state, index as usize);
                    if let Some(transaction) = &mut self.all[session].transaction {
                        transaction.kind = kind;
                    }
                    Answer::Done
                }
                // Interrupted: the run is over.
                Request::Failed(_) | Request::Died(_) if self.shared.is_overdue(self.links.io.now()) => {
                    return self.give_up(session);
                }
                Request::Failed(failure) => return self.on_failed(session, failure, at),
                Request::Stop => {
                    self.leave_transaction(session, Ending::Stopped, at);
                    Answer::Done
                }
                Request::Ready => {
                    if !self.under_way {
                        self.all[session].doing = SessionPhase::Initialized;
                        return;
                    }
                    Answer::Done
                }
                Request::Connect(connection, driver, place) => {
                    let unused = || format!("no server uses the driver `{}`", String::from_utf8_lossy(driver));
                    let targets = self.plan.targets_of(driver).ok_or_else(unused);
                    return self.on_connect(session, connection, targets, place as usize);
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
                Request::Claim(name) => match self.shared.claim(name) {
                    Claim::Granted(number) => Answer::Number(number),
                    Claim::Asked(claim) => {
                        self.all[session].doing = SessionPhase::Claiming(claim);
                        self.at_barrier += 1;
                        return self.pass_barriers();
                    }
                },
                Request::Barrier => {
                    self.all[session].doing = SessionPhase::AtBarrier;
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
                    let unfinished = self.unfinished(session);
                    if unfinished == Some(Unfinished::Transaction) && self.must_complete(session) {
                        return self.on_left_open(session, at);
                    }
                    // A script with a loop of its own may end right after its last transaction; the default loop says
                    // `Next` or `Stop` first.
                    self.complete(session, self.done_at(session, at));
                    if unfinished == Some(Unfinished::Load) {
                        return self.on_died(session, &not_done());
                    }
                    self.all[session].success &= success;
                    return self.drop(session);
                }
                Request::Died(failure) => return self.on_died(session, &failure),
            };
        }
    }

    /// Whether the end of a session inside a database transaction is an error: that of its transaction, or of a
    /// command. What `thread_done` leaves open belongs to no transaction.
    fn must_complete(&self, session: usize) -> bool {
        let is_thread = self.plan.setup.entry == Entry::Thread;
        self.plan.policy.must_complete && (!is_thread || self.all[session].transaction.is_some())
    }

    fn wake_after(&mut self, session: usize, pause: Nanos) {
        let wake = self.links.io.now() + pause;
        self.all[session].timer = self.timers.set(wake, session);
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

    /// Sends what was deferred, or hands over the answer to the rows of a load. `None`: the session waits for one.
    fn on_flush(&mut self, session: usize, connection: ConnectionNumber) -> Option<Answer> {
        let Some(link) = self.all[session].link(connection.0) else { return Some(Answer::Done) };
        match std::mem::take(&mut self.links[link].batch) {
            Batch::Answered(reply) => Some(self.judge(session, reply, true)),
            Batch::Unanswered => None,
            _ if self.links[link].deferred => {
                let heard = self.links.flush(link);
                self.on_heard_inline(heard);
                None
            }
            _ => Some(Answer::Done),
        }
    }

    /// Connects to one of the driver's targets: to number `place`, counted from 1, or for 0 to the session's next one.
    fn on_connect(
        &mut self,
        session: usize,
        connection: ConnectionNumber,
        targets: Result<Range<usize>, String>,
        place: usize,
    ) {
        let first = targets.as_ref().map_or(0, |targets| targets.start);
        let chosen = targets.and_then(|targets| match place {
            0 => Ok(targets),
            _ if place <= targets.len() => Ok(first + place - 1..first + place),
            _ => Err(format!("the script connects to server {place}, but there are {}", targets.len())),
        });
        match chosen {
            Ok(targets) => self.connect(session, connection, targets),
            Err(words) => {
                let error = StatementError::client(Class::Connection, words);
                self.refuse_connect(session, first, Box::new(error));
            }
        }
    }

    /// The script was interrupted because the grace period is over.
    fn give_up(&mut self, session: usize) {
        let now = self.links.io.now();
        if let Some(transaction) = &mut self.all[session].transaction {
            self.recorder.give_up(transaction, now);
        }
        self.drop(session);
    }

    /// The grace period is over: transactions in flight are not waited for.
    pub(super) fn give_up_unfinished(&mut self) {
        let now = self.links.io.now();
        for transaction in self.all.iter_mut().filter_map(|session| session.transaction.as_mut()) {
            self.recorder.give_up(transaction, now);
        }
    }

    /// Opens a connection for the script, to one of these targets.
    fn connect(&mut self, session: usize, connection: ConnectionNumber, targets: Range<usize>) {
        let target = match self.plan.connects.deal {
            // The target that the script has chosen.
            Deal::BySession if targets.len() == 1 => targets.start,
            Deal::BySession => self.all[session].target,
            // With a single choice the counter does not change.
            Deal::ByConnection if targets.len() == 1 => targets.start,
            Deal::ByConnection => targets.start + self.shared.dealt.fetch_add(1, Ordering::Relaxed) % targets.len(),
        };
        let link = self.links.open(session, target);
        let links = &mut self.all[session].links;
        links.resize(links.len().max(connection.0 as usize + 1), None);
        links[connection.0 as usize] = Some(link);
    }

    /// Closes a connection of the script for good.
    fn disconnect(&mut self, session: usize, connection: ConnectionNumber) {
        let slot = self.all[session].links.get_mut(connection.0 as usize);
        if let Some(link) = slot.and_then(Option::take) {
            self.links.close(link);
        }
    }

    /// Ends a session: closes its connections, drops its coroutine.
    pub(super) fn drop(&mut self, session: usize) {
        if self.all[session].doing == SessionPhase::Gone {
            return;
        }
        // What it was doing is lost.
        self.leave_transaction(session, Ending::Cut, self.links.io.now());
        for number in 0..self.all[session].links.len() {
            self.disconnect(session, ConnectionNumber(number as u32));
        }
        let this = &mut self.all[session];
        this.doing = SessionPhase::Gone;
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

    /// Lets every session run to its end; those that wait in a transaction are not waited for.
    pub(super) fn dismiss(&mut self) {
        for session in 0..self.all.len() {
            let at = self.links.io.now();
            let this = &self.all[session];
            match this.doing {
                SessionPhase::Initialized => self.runnable.push_back((session, Answer::Done, at)),
                SessionPhase::Parked => self.runnable.push_back((session, Answer::Proceed(false), at)),
                SessionPhase::Queued => {}
                // Outside a transaction it is still in its own loop, and may reach its end.
                SessionPhase::Waiting | SessionPhase::Recovering if this.transaction.is_none() => {}
                SessionPhase::Waiting
                | SessionPhase::Recovering
                | SessionPhase::AtBarrier
                | SessionPhase::Claiming(_) => self.drop(session),
                SessionPhase::Gone => {}
            }
        }
    }

    /// Lets the sessions that ask for a transaction run to their end.
    pub(super) fn dismiss_parked(&mut self) {
        let at = self.links.io.now();
        for session in 0..self.all.len() {
            if self.all[session].doing == SessionPhase::Parked {
                self.queue(session, Answer::Proceed(false), at);
            }
        }
    }

    /// Sends what is new of the history.
    pub(super) fn send_history(&mut self) {
        let words = self.recorder.take_history();
        if !words.is_empty() {
            self.send(Message::History(words));
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
    /// Finds the run-wide indices of counters that its script has started to use.
    fn learn_counters(&mut self, shared: &Shared) {
        let names = self.state.counter_names();
        if self.counters.len() < names.len() {
            let known = self.counters.len();
            self.counters.extend(names[known..].iter().map(|name| shared.counter_index(name)));
        }
    }
}
