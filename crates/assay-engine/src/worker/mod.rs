//! One OS thread's share of a run: an event loop that drives many sessions and measures them.
//!
//! The worker owns its sessions, their Lua states, their connections and its part of the schedule; it shares only
//! what `Shared` holds and talks to the coordinator in messages. One round of its loop: obey commands,
//! begin what is due (`work`), sleep, handle what arrived (`wait`). Here are the loop and the stage, in `session` the
//! conversation with scripts, in `link` the connections; what counts is decided in `recorder`.

mod link;
mod recorder;
mod session;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use assay_io::{Event, Io};
use assay_random::Random;
use assay_script::{Answer, Entry, Report, State};
use assay_seam::{Code, Nanos, RowsPool, StatementError};

use crate::arrivals::{Arrivals, Tally as _};
use crate::messages::{Command, Message, Part, StageSummary};
use crate::observer::Warning;
use crate::outcome::{Outside, RunError};
use crate::plan::{Load, Plan};
use crate::retry;
use crate::schedule::{Schedule, Share};
use crate::shared::Shared;
use link::Link;
use recorder::Recorder;
use session::{Doing, Session};

/// See the module.
pub(crate) struct Worker<I: Io> {
    number: usize,
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    inbox: Receiver<Command>,
    outbox: Sender<Message>,
    io: I,

    states: Vec<StateEntry>,
    /// Session `number + i · workers` is at index `i`.
    sessions: Vec<Session>,
    links: Vec<Link>,
    /// Links of dropped sessions, to be used again.
    free_links: Vec<usize>,
    /// Link by the lower half of its socket's id.
    sockets: Vec<usize>,
    /// Links that wait for their turn to connect.
    connect_queue: VecDeque<usize>,
    connecting: usize,
    connect_next: Nanos,
    /// `Connects::silence_max`, where there are sockets.
    silence_max: Option<Nanos>,
    /// When to look next at connections whose answers are late.
    silence_next: Nanos,

    timers: BinaryHeap<Reverse<Timer>>,
    timers_set: u64,
    /// Sessions that can go on at once: those of embedded databases, and those that have had their turn.
    runnable: VecDeque<(usize, Answer, Nanos)>,
    /// Sessions that wait at a barrier.
    at_barrier: usize,

    phase: Phase,
    /// How long what has begun may take to end.
    grace: Nanos,
    /// Nothing is waited for any longer: the grace period of an interrupt is over. `MAX` without an interrupt.
    leave_by: Nanos,
    stage: Stage,
    recorder: Recorder,

    out: Vec<u8>,
    pool: RowsPool,
    random: Random,
    /// An outage of this target was reported and is not over.
    outages: Vec<bool>,
    /// A slow connect to this target was reported.
    slow_connects: Vec<bool>,
    /// Targets and codes of errors about which advice was given.
    advised: Vec<(usize, Code)>,
    facts_told: Vec<bool>,
    ready_told: u32,
}

/// A Lua state, and the numbers that its transaction types and counters have over the whole run.
struct StateEntry {
    state: State,
    sessions: usize,
    types: Vec<usize>,
    counters: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing to do yet, or between stages.
    Waiting,
    /// Sessions of the stage are getting ready.
    Preparing,
    /// A command's sessions run.
    Command,
    /// The stage runs.
    Running,
    /// Sessions are leaving their loops; those still there at the instant are dropped.
    Finishing(Nanos),
    /// `Finished` was said.
    Over,
}

/// The stage now running. Instants are those of the worker's `Io`.
struct Stage {
    index: usize,
    /// Sessions of the whole stage; this worker drives those it owns.
    share: Share,
    begin: Nanos,
    /// No transaction is begun at or after this; `MAX` without a time limit.
    end: Nanos,
    /// No more transactions are begun, since this instant.
    ended: Option<Nanos>,
    /// Then those in flight are not waited for any longer. ended <= give_up
    give_up: Nanos,
    released: bool,
    next_cut: Nanos,
    /// Of an open loop.
    arrivals: Option<Arrivals>,
    /// When terminals that think will be due, and which.
    thinking: BinaryHeap<Reverse<Due>>,
    /// Of terminals: due and not begun, in the order of their instants.
    thought: VecDeque<Due>,
    /// Sessions free to take a due transaction, longest free first.
    idle: VecDeque<usize>,
    unstarted: u64,
}

/// A transaction to be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Nanos,
    /// Whose it is.
    terminal: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    at: Nanos,
    /// Order of setting: equal instants fire in it, and a timer whose owner has set another since is void.
    serial: u64,
    what: Alarm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    /// A session's pause is over.
    Session(usize),
    /// A link's connect takes too long, its embedded database may be free again, or it should try to connect again.
    Link(usize),
}

/// Sessions of embedded databases resumed between two looks at the event loop.
const RUNNABLE_MAX: usize = 64;

impl<I: Io> Worker<I> {
    pub(crate) fn new(
        number: usize,
        plan: Arc<Plan>,
        shared: Arc<Shared>,
        inbox: Receiver<Command>,
        outbox: Sender<Message>,
        io: I,
    ) -> Worker<I> {
        shared.add_waker(io.waker());
        let targets = plan.targets.len();
        let networked = plan.targets.iter().any(|target| !target.addresses.is_empty());
        Worker {
            number,
            random: Random::of_stream(plan.setup.seed, 1_000_000 + number as u64),
            recorder: Recorder::new(&plan, shared.clone()),
            shared,
            inbox,
            outbox,
            io,
            states: Vec::new(),
            sessions: Vec::new(),
            links: Vec::new(),
            free_links: Vec::new(),
            sockets: Vec::new(),
            connect_queue: VecDeque::new(),
            connecting: 0,
            connect_next: Nanos::ZERO,
            silence_max: plan.connects.silence_max.filter(|_| networked),
            silence_next: Nanos::ZERO,
            timers: BinaryHeap::new(),
            timers_set: 0,
            runnable: VecDeque::new(),
            at_barrier: 0,
            phase: Phase::Waiting,
            grace: plan.grace,
            leave_by: Nanos::MAX,
            stage: Stage::new(0, Share { worker: number as u32, workers: plan.workers as u32, sessions: 1 }),
            out: Vec::new(),
            pool: RowsPool::default(),
            outages: vec![false; targets],
            slow_connects: vec![false; targets],
            advised: Vec::new(),
            facts_told: vec![false; targets],
            ready_told: 0,
            plan,
        }
    }

    /// The present instant of this worker's event loop.
    pub(crate) fn now(&self) -> Nanos {
        self.io.now()
    }

    /// Turns until the run is over.
    pub(crate) fn run(&mut self) {
        while self.work() && self.wait() {}
    }

    /// The first half of a round, what can be done without waiting; false when the run is over.
    pub(crate) fn work(&mut self) -> bool {
        self.obey();
        let now = self.io.now();
        self.ring(now);
        self.end_silent(now);
        self.begin_due(self.io.now());
        self.connect_more();
        if self.at_barrier > 0 {
            self.pass_barriers();
        }
        self.run_runnable();
        self.conclude();
        self.phase != Phase::Over
    }

    /// The second half: sleep until something happens, and handle it; false when the run is over.
    pub(crate) fn wait(&mut self) -> bool {
        let before = self.io.now();
        let until = self.deadline();
        if let Err(error) = self.io.wait(until) {
            self.fail(RunError::Environment(format!("the event loop failed: {error}")));
            if self.phase == Phase::Running {
                self.close_stage();
            }
            self.finish_now(false);
            return false;
        }
        let at = self.io.received_at();
        self.recorder.slept(before, at);
        self.cut(at);
        while let Some(event) = self.io.next_event() {
            self.recorder.event(at);
            self.handle(event, at);
        }
        true
    }

    fn send(&self, message: Message) {
        // The coordinator outlives its workers, except when it is gone because of a panic of its own.
        let _ = self.outbox.send(message);
    }

    fn fail(&mut self, error: RunError) {
        self.end_stage(self.io.now());
        self.send(Message::Failed(Box::new(error)));
    }

    /// The run survives this error; whoever watches may want to do something about it.
    fn advise(&mut self, target: usize, error: &StatementError) {
        let known = |(of, code): &(usize, Code)| *of == target && *code == error.code;
        let Some(hint) = retry::advice(error).filter(|_| !self.advised.iter().any(known)) else { return };
        self.advised.push((target, error.code.clone()));
        let (error, hint) = (Box::new(error.clone()), hint.clone());
        self.send(Message::Warning(Warning::Advice { target, error, hint }));
    }

    fn obey(&mut self) {
        loop {
            match self.inbox.try_recv() {
                Ok(Command::Stage(stage)) => self.prepare_stage(stage),
                Ok(Command::Begin(at)) => self.begin_stage(at),
                Ok(Command::End) => self.end_stage(self.io.now()),
                Ok(Command::Hurry) => self.hurry(self.io.now()),
                Ok(Command::Finish) => self.begin_finish(),
                Ok(Command::Report(report)) => self.begin_report(report),
                Ok(Command::Recycle(tallies)) => self.recorder.recycle(tallies),
                Ok(Command::Abort) | Err(TryRecvError::Disconnected) => {
                    if self.phase != Phase::Over {
                        self.finish_now(false);
                    }
                    return;
                }
                Err(TryRecvError::Empty) => return,
            }
        }
    }

    fn prepare_stage(&mut self, index: usize) {
        let share = Share {
            worker: self.number as u32,
            workers: self.plan.workers as u32,
            sessions: self.plan.stages[index].sessions,
        };
        self.stage = Stage::new(index, share);
        self.recorder.prepare_stage(index, share.own_sessions() as usize);
        self.ready_told = 0;
        self.phase = match self.plan.setup.entry {
            Entry::Thread | Entry::Frame | Entry::Reports => Phase::Preparing,
            Entry::Function(_) | Entry::TopLevel | Entry::Declare => Phase::Command,
        };
        while self.sessions.len() < share.own_sessions() as usize {
            let number = match self.plan.setup.entry {
                // After those of the run.
                Entry::Reports => self.plan.setup.sessions,
                _ => self.number as u32 + self.sessions.len() as u32 * share.workers,
            };
            match self.add_session(number) {
                Ok(session) => self.runnable.push_back((session, Answer::Done, self.io.now())),
                Err(error) => return self.fail(RunError::Script(error)),
            }
        }
    }

    fn begin_stage(&mut self, at: Nanos) {
        let share = self.stage.share;
        let measured_from = at + self.plan.warmup;
        self.recorder.begin_stage(measured_from);
        let stage = &mut self.stage;
        stage.begin = at;
        stage.end = self.plan.limit.time.map_or(Nanos::MAX, |time| measured_from + time);
        stage.next_cut = measured_from + self.plan.interval;
        if let Load::Open { rate, arrival, backlog_max } = self.plan.load {
            let seed = self.plan.setup.seed.wrapping_add(stage.index as u64);
            let schedule = Schedule::new(at, rate, arrival, share, seed);
            // The bound is the whole run's.
            let max = backlog_max.map(|max| share.part_of(max));
            stage.arrivals = schedule.map(|schedule| Arrivals::new(schedule, measured_from, stage.end, max));
        }
        if let Load::Terminals { terminals, .. } = self.plan.load {
            for terminal in (0..terminals).filter(|terminal| share.owns(terminal % share.sessions)) {
                self.think(terminal, at);
            }
        }
        self.phase = Phase::Running;
    }

    /// Begins no more transactions from `at` on. What was due before and has not begun is counted.
    fn end_stage(&mut self, at: Nanos) {
        if self.phase != Phase::Running || self.stage.ended.is_some() {
            return;
        }
        self.arrive(at);
        let stage = &mut self.stage;
        let ended = at.min(stage.end);
        (stage.ended, stage.give_up) = (Some(ended), ended + self.grace);
        let arrived = stage.arrivals.take().map_or(0, |arrivals| arrivals.waiting_measured());
        stage.unstarted = self.recorder.end_arrivals(at, arrived, stage.thought.drain(..).map(|due| due.at));
        stage.idle.clear();
    }

    fn hurry(&mut self, now: Nanos) {
        self.grace = self.grace.min(self.plan.grace_interrupted);
        self.end_stage(now);
        let limit = now + self.grace;
        // What sysbench's users see of `thread_done` does not depend on what was in flight.
        if self.plan.setup.host.is_none() {
            self.leave_by = self.leave_by.min(limit);
        }
        self.stage.give_up = self.stage.give_up.min(limit);
        if let Phase::Finishing(until) = &mut self.phase {
            *until = limit.min(*until);
        }
    }

    /// When to stop sleeping, whatever happens on the sockets.
    fn deadline(&self) -> Option<Nanos> {
        if !self.runnable.is_empty() {
            return Some(Nanos::ZERO);
        }
        let mut until = Nanos::MAX;
        if let Some(Reverse(timer)) = self.timers.peek() {
            until = until.min(timer.at);
        }
        if !self.connect_queue.is_empty() && self.connecting < self.pending_max() {
            until = until.min(self.connect_next);
        }
        if self.silence_max.is_some() && !self.links.is_empty() {
            until = until.min(self.silence_next);
        }
        match self.phase {
            Phase::Running => {
                let stage = &self.stage;
                until = until.min(stage.next_cut);
                if !stage.released {
                    until = until.min(stage.begin);
                }
                until = until.min(match stage.ended {
                    Some(_) => stage.give_up,
                    None => stage.end,
                });
                if !stage.idle.is_empty() {
                    until = until.min(stage.next_due());
                }
            }
            Phase::Finishing(limit) => until = until.min(limit),
            Phase::Waiting | Phase::Preparing | Phase::Command | Phase::Over => {}
        }
        (until != Nanos::MAX).then_some(until)
    }

    fn set_timer(&mut self, at: Nanos, what: Alarm) {
        self.timers_set += 1;
        let serial = self.timers_set;
        match what {
            Alarm::Session(session) => self.sessions[session].timer = serial,
            Alarm::Link(link) => self.links[link].timer = serial,
        }
        self.timers.push(Reverse(Timer { at, serial, what }));
    }

    /// Fires the timers that are due.
    fn ring(&mut self, now: Nanos) {
        while let Some(Reverse(timer)) = self.timers.peek().copied()
            && timer.at <= now
        {
            self.timers.pop();
            match timer.what {
                Alarm::Session(session) if self.sessions[session].timer == timer.serial => {
                    self.wake_session(session, now);
                }
                Alarm::Link(link) if self.links[link].timer == timer.serial => self.wake_link(link, now),
                Alarm::Session(_) | Alarm::Link(_) => {}
            }
        }
    }

    /// Begins the stage's transactions: all sessions at its begin, then whatever has become due.
    fn begin_due(&mut self, now: Nanos) {
        if self.phase != Phase::Running || self.stage.ended.is_some() || now < self.stage.begin {
            return;
        }
        if now >= self.stage.end {
            return self.end_stage(now);
        }
        if !self.stage.released {
            self.stage.released = true;
            for session in 0..self.sessions.len() {
                match self.sessions[session].doing {
                    Doing::Initialised => self.runnable.push_back((session, Answer::Done, self.stage.begin)),
                    Doing::Parked if self.is_active(session) => {
                        if let Some(answer) = self.grant(session, self.stage.begin) {
                            self.runnable.push_back((session, answer, self.stage.begin));
                        }
                    }
                    _ => {}
                }
            }
        }
        self.arrive(now);
        while self.stage.ended.is_none()
            && !self.stage.idle.is_empty()
            && let Some(due) = self.stage.take_due()
        {
            let session = self.stage.idle.pop_front().expect("checked above");
            if let Some(answer) = self.begin_transaction(session, due, self.io.now()) {
                self.advance(session, answer, now);
            }
        }
        // A closed loop learns that there are no more when it asks for the next.
        let all_done = self.stage.waiting() == 0 && self.recorder.in_flight() == 0;
        if self.plan.load != Load::Closed && all_done && self.recorder.is_exhausted() {
            self.end_stage(self.io.now());
        }
    }

    /// Lets arrive what has become due by now.
    fn arrive(&mut self, now: Nanos) {
        if self.plan.load == Load::Closed {
            return;
        }
        let stage = &mut self.stage;
        while let Some(Reverse(due)) = stage.thinking.peek().copied()
            && due.at <= now
            && due.at < stage.end
        {
            stage.thinking.pop();
            if self.recorder.admit(1, due.at) == 1 {
                stage.thought.push_back(due);
            }
        }
        if let Some(arrivals) = &mut stage.arrivals {
            arrivals.arrive(now, stage.idle.len(), &mut self.recorder);
        }
        self.recorder.note_backlog(stage.waiting().saturating_sub(stage.idle.len() as u64), now);
    }

    /// A terminal's last transaction was done at `at` (or the stage begins then): its next is due when its user has
    /// thought.
    fn think(&mut self, terminal: u32, at: Nanos) {
        let Load::Terminals { think_scale, .. } = self.plan.load else { return };
        // With terminals a worker has one Lua state.
        let Some(entry) = self.states.first_mut() else { return };
        let think = Nanos::from_secs_f64(entry.state.take_think(terminal).as_secs_f64() * think_scale);
        self.stage.thinking.push(Reverse(Due { at: at + think, terminal: Some(terminal) }));
    }

    fn run_runnable(&mut self) {
        for _ in 0..RUNNABLE_MAX {
            let Some((session, answer, at)) = self.runnable.pop_front() else { return };
            self.advance(session, answer, at);
        }
    }

    /// Notices what has come to an end.
    fn conclude(&mut self) {
        match self.phase {
            Phase::Preparing => {
                let active = 0..self.stage.share.own_sessions() as usize;
                let settled =
                    |session: &Session| matches!(session.doing, Doing::Initialised | Doing::Parked | Doing::Gone);
                let ready = self.sessions[active].iter().filter(|session| settled(session)).count() as u32;
                if ready != self.ready_told {
                    self.ready_told = ready;
                    self.send(Message::Connected { worker: self.number, ready });
                }
                if ready == self.stage.share.own_sessions() {
                    self.phase = Phase::Waiting;
                    let framed = self.plan.setup.entry == Entry::Frame;
                    let before = if framed { self.outside() } else { Outside::default() };
                    self.send(Message::Ready { worker: self.number, before });
                }
            }
            Phase::Running => self.conclude_stage(),
            Phase::Command => {
                if self.sessions.iter().all(|session| session.doing == Doing::Gone) {
                    let success = self.sessions.iter().all(|session| session.success);
                    self.finish_now(success);
                }
            }
            Phase::Finishing(limit) => {
                let all_gone = self.sessions.iter().all(|session| session.doing == Doing::Gone);
                if all_gone || self.io.now() >= limit {
                    let success = self.sessions.iter().all(|session| session.success);
                    self.finish_now(success);
                }
            }
            Phase::Waiting | Phase::Over => {}
        }
    }

    fn conclude_stage(&mut self) {
        let own = self.stage.share.own_sessions() as usize;
        if self.stage.ended.is_none() {
            if self.stage.released && self.sessions[..own].iter().all(|session| session.doing == Doing::Gone) {
                // Every session stopped by itself, or there is none.
                self.end_stage(self.io.now());
            } else {
                return;
            }
        }
        if self.recorder.in_flight() == 0 || self.io.now() >= self.stage.give_up {
            self.close_stage();
        }
    }

    /// Says what the stage came to. Transactions still under way are not waited for.
    fn close_stage(&mut self) {
        let own = self.stage.share.own_sessions() as usize;
        // A stage that ran out of transactions is as long as they took; any other until it was ended.
        let all_done = self.stage.unstarted == 0 && self.recorder.in_flight() == 0;
        let exhausted = self.recorder.is_exhausted() && all_done;
        self.give_up_unfinished();
        self.cut(self.io.now());
        self.recorder.end_stage();
        let last_done = self.recorder.last_done();
        let ended = self.stage.ended.filter(|_| !exhausted).unwrap_or(last_done);
        let usage = self.recorder.usage();
        let completed = self.recorder.completed();
        let summary = StageSummary {
            end: if own == 0 { Nanos::ZERO } else { last_done.max(ended) },
            unstarted: self.stage.unstarted,
            sessions: own as u32,
            fewest: completed.iter().copied().min().unwrap_or(u64::MAX),
            most: completed.iter().copied().max().unwrap_or(0),
            turns: usage.turns,
            events: usage.events,
            asleep: usage.asleep,
        };
        self.phase = Phase::Waiting;
        let part = self.part();
        self.send(Message::StageDone { worker: self.number, part, summary });
    }

    /// Sends the intervals that are complete at `at`.
    fn cut(&mut self, at: Nanos) {
        while self.phase == Phase::Running && at >= self.stage.next_cut {
            if self.stage.ended.is_none() {
                self.arrive(self.stage.next_cut);
            }
            let part = self.part();
            self.send_lines();
            self.stage.next_cut += self.plan.interval;
            self.send(Message::Interval { worker: self.number, part });
        }
    }

    fn send_lines(&mut self) {
        let lines = self.recorder.take_lines();
        if !lines.is_empty() {
            self.send(Message::Journal(lines));
        }
    }

    /// What was recorded since the last cut.
    fn part(&mut self) -> Part {
        let own = self.stage.share.own_sessions() as usize;
        let served = self.sessions[..own].iter().filter(|session| session.is_served(&self.links)).count() as u32;
        let outside = self.outside();
        self.recorder.cut(outside, self.stage.waiting(), served)
    }

    /// What was done besides transactions since this was last asked.
    fn outside(&mut self) -> Outside {
        let mut outside = self.recorder.take_outside();
        for entry in &mut self.states {
            outside.add_counters(entry.state.take_counted());
        }
        outside
    }

    /// Hands a report to the session that makes them. It is ready again when that is made.
    fn begin_report(&mut self, report: Report) {
        self.phase = Phase::Preparing;
        if let Some(session) = self.sessions.iter().position(|session| session.doing == Doing::Initialised) {
            self.queue(session, Answer::Report(report), self.io.now());
        }
    }

    fn begin_finish(&mut self) {
        self.phase = Phase::Finishing((self.io.now() + self.grace).min(self.leave_by));
        for session in 0..self.sessions.len() {
            let at = self.io.now();
            match self.sessions[session].doing {
                Doing::Initialised => self.runnable.push_back((session, Answer::Done, at)),
                Doing::Parked => self.runnable.push_back((session, Answer::Proceed(false), at)),
                Doing::Queued => {}
                // Outside of a transaction it is still at what its own loop does, and may get to its end.
                Doing::Waiting | Doing::Recovering if self.sessions[session].transaction.is_none() => {}
                Doing::Waiting | Doing::Recovering | Doing::AtBarrier => self.drop_session(session),
                Doing::Gone => {}
            }
        }
    }

    /// Drops what is left and says so.
    fn finish_now(&mut self, success: bool) {
        self.runnable.clear();
        for session in 0..self.sessions.len() {
            self.drop_session(session);
        }
        self.phase = Phase::Over;
        self.send_lines();
        let acknowledged: Vec<_> = self.states.iter_mut().flat_map(|entry| entry.state.take_acknowledged()).collect();
        if !acknowledged.is_empty() {
            self.send(Message::Acknowledged(acknowledged));
        }
        let outside = self.outside();
        self.send(Message::Finished { worker: self.number, success, outside });
    }

    fn handle(&mut self, event: Event, at: Nanos) {
        match event {
            Event::Received(socket) => self.on_received(socket, at),
            Event::Connected(socket) => self.on_connected(socket, at),
            Event::Secured(socket, facts) => self.on_secured(socket, &facts, at),
            Event::Closed(socket, closed) => self.on_closed(socket, &closed, at),
        }
    }
}

impl Stage {
    /// When the next transaction becomes due by itself; `MAX` when none will.
    fn next_due(&self) -> Nanos {
        let thought = self.thinking.peek().map_or(Nanos::MAX, |Reverse(due)| due.at);
        self.arrivals.as_ref().map_or(thought, |arrivals| arrivals.next_due().min(thought))
    }

    /// How many transactions are due and not begun.
    fn waiting(&self) -> u64 {
        self.thought.len() as u64 + self.arrivals.as_ref().map_or(0, Arrivals::waiting)
    }

    /// The one that has waited longest.
    fn take_due(&mut self) -> Option<Due> {
        let arrived = || self.arrivals.as_mut()?.take().map(|at| Due { at, terminal: None });
        self.thought.pop_front().or_else(arrived)
    }

    fn new(index: usize, share: Share) -> Stage {
        Stage {
            index,
            share,
            begin: Nanos::ZERO,
            end: Nanos::MAX,
            ended: None,
            give_up: Nanos::MAX,
            released: false,
            next_cut: Nanos::MAX,
            arrivals: None,
            thinking: BinaryHeap::new(),
            thought: VecDeque::new(),
            idle: VecDeque::new(),
            unstarted: 0,
        }
    }
}
