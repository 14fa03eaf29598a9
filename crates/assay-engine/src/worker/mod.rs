//! One OS thread's share of a run: an event loop that drives many sessions and measures them.
//!
//! The worker owns its sessions, their Lua states, their connections and its part of the schedule; it shares only what
//! `Shared` holds, and exchanges messages with the coordinator. One round of its loop: obey commands, start what is due
//! (`work`), sleep, handle what arrived (`wait`).
//!
//! This file is the course of the run as a worker sees it. The parts below know nothing of it: `sessions` talk to
//! scripts and hand up what only the stage can decide, `links` are the connections and hand up what they hear, `stage`
//! knows what is due, and `recorder` decides what counts.

mod link;
mod links;
mod recorder;
mod recovery;
mod session;
mod sessions;
mod stage;
mod timers;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};

use assay_io::Io;
use assay_script::{Answer, Entry, Report};
use assay_seam::Nanos;

use crate::arrivals::Arrivals;
use crate::messages::{IntervalPart, Message, WorkerCommand, WorkerStageSummary};
use crate::outcome::{Outside, RunError};
use crate::plan::{self, Load, Plan};
use crate::quota::Quota;
use crate::rate::Rate;
use crate::schedule::{Schedule, SessionShare};
use crate::shared::Shared;
use recorder::PresentLoad;
use session::SessionPhase;
use sessions::{Sessions, Want};
use stage::WorkerStage;

/// See the module.
pub(crate) struct Worker<I: Io> {
    /// Among those of this process.
    number: usize,
    plan: Arc<Plan>,
    inbox: Receiver<WorkerCommand>,
    outbox: Sender<Message>,
    sessions: Sessions<I>,
    phase: WorkerPhase,
    stage: WorkerStage,
    /// The grace period of the stage, instead of the plan's.
    rate: Option<f64>,
    /// How long transactions in flight may take to finish.
    grace: Nanos,
    /// When waiting ends: the grace period of an interrupt is over. `MAX` without an interrupt.
    leave_by: Nanos,
    /// Sessions ready for the stage, as last reported.
    ready_told: u32,
    /// When the stage started no more transactions.
    load_at_end: PresentLoad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkerPhase {
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
    /// `Finished` was sent.
    Over,
}

/// Which of so many sessions a worker drives, by its number among those of this process.
fn share(plan: &Plan, number: usize, sessions: u32) -> SessionShare {
    SessionShare { worker: plan.agent().worker(number) as u32, workers: plan.workers_of_all() as u32, sessions }
}

/// The part that `share` has of the first `limit` arrivals from `measured_from` on; `schedule`: its own arrivals.
fn quota_of(
    schedule: &Schedule,
    share: SessionShare,
    limit: u64,
    measured_from: Nanos,
    schedule_of: &dyn Fn(SessionShare) -> Option<Schedule>,
) -> Quota {
    schedule.part_of_first(limit, measured_from).map_or_else(
        || {
            // Workers from the number of sessions on have none.
            let all = (0..share.workers).map_while(|worker| schedule_of(SessionShare { worker, ..share })).collect();
            Quota::among(all, share.worker as usize, limit, measured_from)
        },
        Quota::of,
    )
}

impl<I: Io> Worker<I> {
    pub(crate) fn new(
        number: usize,
        plan: Arc<Plan>,
        shared: Arc<Shared>,
        inbox: Receiver<WorkerCommand>,
        outbox: Sender<Message>,
        io: I,
    ) -> Worker<I> {
        shared.add_waker(io.waker());
        let share = share(&plan, number, 1);
        Worker {
            number,
            sessions: Sessions::new(number, plan.clone(), shared, outbox.clone(), io),
            inbox,
            outbox,
            phase: WorkerPhase::Waiting,
            stage: WorkerStage::new(0, share, plan.load == Load::Closed),
            rate: None,
            grace: plan.grace,
            leave_by: Nanos::MAX,
            ready_told: 0,
            load_at_end: PresentLoad::default(),
            plan,
        }
    }

    /// The present instant of this worker's event loop.
    pub(crate) fn now(&self) -> Nanos {
        self.sessions.links.io.now()
    }

    /// Turns until the run is over.
    pub(crate) fn run(&mut self) {
        while self.work() && self.wait() {}
    }

    /// The first half of a round, everything that needs no waiting; false when the run is over.
    pub(crate) fn work(&mut self) -> bool {
        self.obey();
        let now = self.now();
        self.sessions.ring(now);
        self.satisfy();
        self.begin_due(now);
        self.sessions.pass_barriers();
        self.sessions.run_some();
        self.satisfy();
        self.sessions.connect_more();
        self.satisfy();
        self.conclude();
        self.phase != WorkerPhase::Over
    }

    /// The second half: sleep until something happens, and handle it; false when the run is over.
    pub(crate) fn wait(&mut self) -> bool {
        let before = self.now();
        let polled = self.sessions.links.io.polled();
        let until = self.deadline();
        if let Err(error) = self.sessions.links.io.wait(until) {
            self.fail(RunError::Environment(format!("the event loop failed: {error}")));
            if self.phase == WorkerPhase::Running {
                self.close_stage();
            }
            self.finish_now(false);
            return false;
        }
        let at = self.sessions.links.io.received_at();
        let polled = self.sessions.links.io.polled() - polled;
        self.sessions.recorder.slept(before, at, polled);
        self.cut(at);
        while let Some(event) = self.sessions.links.io.next_event() {
            self.sessions.recorder.event(at);
            self.sessions.on_event(event, at);
            self.satisfy();
        }
        true
    }

    /// When to stop sleeping, whatever happens on the sockets.
    fn deadline(&self) -> Option<Nanos> {
        let until = self.sessions.deadline().min(match self.phase {
            WorkerPhase::Running => self.stage.deadline().min(self.sessions.recorder.next_cut()),
            WorkerPhase::Finishing(limit) => limit,
            WorkerPhase::Waiting | WorkerPhase::Preparing | WorkerPhase::Command | WorkerPhase::Over => Nanos::MAX,
        });
        (until != Nanos::MAX).then_some(until)
    }

    fn send(&self, message: Message) {
        // The coordinator outlives its workers, except when it is gone because of a panic of its own.
        let _ = self.outbox.send(message);
    }

    fn fail(&mut self, error: RunError) {
        self.end_stage(self.now());
        self.send(Message::Failed(Box::new(error)));
    }

    fn obey(&mut self) {
        loop {
            match self.inbox.try_recv() {
                Ok(WorkerCommand::Stage { index, stage }) => self.prepare_stage(index, stage),
                Ok(WorkerCommand::Begin(at)) => self.begin_stage(at),
                Ok(WorkerCommand::End) => self.end_stage(self.now()),
                Ok(WorkerCommand::Hurry) => self.hurry(self.now()),
                Ok(WorkerCommand::Explain) => {
                    let longest = self.sessions.links.longest_wait();
                    self.send(Message::Waiting { longest });
                }
                Ok(WorkerCommand::Finish) => self.begin_finish(),
                Ok(WorkerCommand::Report(report)) => self.begin_report(report),
                Ok(WorkerCommand::Recycle(tallies)) => self.sessions.recorder.recycle(tallies),
                Ok(WorkerCommand::Abort) | Err(TryRecvError::Disconnected) => {
                    if self.phase != WorkerPhase::Over {
                        self.finish_now(false);
                    }
                    return;
                }
                Err(TryRecvError::Empty) => return,
            }
        }
    }

    fn prepare_stage(&mut self, index: usize, stage: plan::Stage) {
        let share = share(&self.plan, self.number, stage.sessions);
        self.stage = WorkerStage::new(index, share, self.plan.load == Load::Closed);
        self.rate = stage.rate;
        self.sessions.under_way = false;
        self.sessions.recorder.prepare_stage(index, self.stage.own_sessions());
        self.ready_told = 0;
        self.phase = match self.plan.setup.entry {
            Entry::Thread | Entry::Main | Entry::Reports => WorkerPhase::Preparing,
            Entry::Function(_) | Entry::TopLevel | Entry::Declare => WorkerPhase::Command,
        };
        while self.sessions.len() < self.stage.own_sessions() {
            let number = match self.plan.setup.entry {
                // After those of the run.
                Entry::Reports => self.plan.setup.sessions,
                _ => share.worker + self.sessions.len() as u32 * share.workers,
            };
            match self.sessions.add(number) {
                Ok(session) => self.sessions.queue(session, Answer::Done, self.now()),
                Err(error) => return self.fail(RunError::Script(error)),
            }
        }
    }

    fn begin_stage(&mut self, at: Nanos) {
        let share = self.stage.share;
        let measured_from = at + self.plan.warmup;
        self.sessions.recorder.begin_stage(measured_from, measured_from + self.plan.interval);
        let stage = &mut self.stage;
        stage.begin = at;
        stage.end = self.plan.limit.time.map_or(Nanos::MAX, |time| measured_from + time);
        let seed = self.plan.setup.seed.wrapping_add(stage.index as u64);
        let rate = self.rate;
        let schedule_of = |share: SessionShare| match &self.plan.load {
            Load::Open { rate: planned, arrival, .. } => {
                let rate = rate.map_or_else(|| planned.after(self.plan.warmup), Rate::from);
                Schedule::new(at, rate, *arrival, share, seed)
            }
            Load::Trace { arrivals, .. } => Schedule::of_trace(measured_from, arrivals.clone(), share),
            Load::Closed | Load::Terminals { .. } => None,
        };
        // Limits are the whole run's.
        let backlog_max = match &self.plan.load {
            Load::Open { backlog_max, .. } | Load::Trace { backlog_max, .. } => *backlog_max,
            Load::Closed | Load::Terminals { .. } => None,
        };
        let arrivals = schedule_of(share).map(|schedule| {
            let quota = self
                .plan
                .limit
                .transactions
                .map(|limit| quota_of(&schedule, share, limit, measured_from, &schedule_of));
            Arrivals::new(schedule, measured_from, stage.end, backlog_max.map(|max| share.part_of(max)), quota)
        });
        stage.expect(arrivals);
        if let Load::Terminals { terminals, .. } = self.plan.load {
            let own: Vec<u32> = (0..terminals).filter(|terminal| share.owns(terminal % share.sessions)).collect();
            if let Some(limit) = self.plan.limit.transactions {
                stage.limit_terminals(limit, terminals, &own, measured_from);
            }
            own.into_iter().for_each(|terminal| self.think(terminal, at));
        }
        self.phase = WorkerPhase::Running;
    }

    /// Starts no more transactions from `at` on. What was due before and has not started is counted.
    fn end_stage(&mut self, at: Nanos) {
        if self.phase == WorkerPhase::Running && self.stage.ended.is_none() {
            self.arrive(at);
            self.load_at_end = self.load();
            self.stage.end(at, self.grace, &mut self.sessions.recorder);
            if self.plan.policy.sessions_leave_alone {
                self.sessions.dismiss_parked();
            }
        }
    }

    fn hurry(&mut self, now: Nanos) {
        self.grace = self.grace.min(self.plan.grace_interrupted);
        self.end_stage(now);
        let limit = now + self.grace;
        if self.plan.policy.grace_bounds_leaving {
            self.leave_by = self.leave_by.min(limit);
        }
        self.stage.give_up = self.stage.give_up.min(limit);
        if let WorkerPhase::Finishing(until) = &mut self.phase {
            *until = limit.min(*until);
        }
    }

    /// Starts the stage's transactions: in all sessions at its start, then whatever becomes due.
    fn begin_due(&mut self, now: Nanos) {
        if self.phase != WorkerPhase::Running || self.stage.ended.is_some() || now < self.stage.begin {
            return;
        }
        if now >= self.stage.end {
            return self.end_stage(now);
        }
        if !self.stage.released {
            self.release();
        }
        self.arrive(now);
        while let Some((session, due)) = self.stage.match_up() {
            let due_at = due.at;
            if self.sessions.begin(session, due, self.now()) {
                self.sessions.advance(session, Answer::Begin(now.max(due_at) - due_at), now);
                self.satisfy();
            } else {
                self.end_stage(self.now());
            }
        }
        // A closed loop learns that there are no more when it asks for the next.
        let recorder = &self.sessions.recorder;
        let may_leave = recorder.in_flight() == 0 || self.plan.policy.sessions_leave_alone;
        if may_leave && recorder.is_measuring(now) && self.stage.waiting() == 0 && self.stage.is_exhausted() {
            self.end_stage(self.now());
        }
    }

    /// Counts what has become due by now, in the intervals in which it did: a script may have held the worker for
    /// several of them.
    fn arrive(&mut self, now: Nanos) {
        let recorder = &mut self.sessions.recorder;
        let mut end = recorder.next_end();
        while end < now && self.plan.load != Load::Closed {
            self.stage.arrive(end, recorder);
            recorder.note_backlog_at_end(self.stage.waiting(), end);
            end += self.plan.interval;
        }
        self.stage.arrive(now, recorder);
    }

    /// Releases the sessions of the stage.
    fn release(&mut self) {
        self.stage.released = true;
        self.sessions.under_way = true;
        let at = self.stage.begin;
        for session in 0..self.sessions.len() {
            match self.sessions.doing(session) {
                SessionPhase::Initialized => self.sessions.queue(session, Answer::Done, at),
                SessionPhase::Parked => {
                    if let Some(answer) = self.grant(session, at) {
                        self.sessions.queue(session, answer, at);
                    }
                }
                _ => {}
            }
        }
    }

    /// Handles requests of sessions that only the stage can decide.
    fn satisfy(&mut self) {
        let mut granted = None;
        while let Some(want) = self.sessions.next_want() {
            match want {
                Want::Transaction { session, at } => match self.grant(session, at) {
                    // A script that never waits must not block the others.
                    Some(answer) if granted == Some(session) => self.sessions.queue(session, answer, at),
                    Some(answer) => {
                        granted = Some(session);
                        self.sessions.advance(session, answer, at);
                    }
                    None => {}
                },
                Want::Think { terminal, at } => self.think(terminal, at),
                Want::End(error) => {
                    self.end_stage(self.now());
                    self.send(Message::Failed(error));
                }
            }
        }
    }

    /// Decides about a session that asks for a transaction: `None` if it must wait.
    fn grant(&mut self, session: usize, at: Nanos) -> Option<Answer> {
        if matches!(self.phase, WorkerPhase::Finishing(_)) {
            return Some(Answer::Proceed(false));
        }
        // An earlier stage may have had more sessions than this one.
        let takes_part = self.sessions.number(session) < self.stage.share.sessions;
        if self.phase != WorkerPhase::Running || !self.stage.is_open() || !takes_part {
            let is_over = self.phase == WorkerPhase::Running && self.stage.ended.is_some();
            return (is_over && self.plan.policy.sessions_leave_alone).then_some(Answer::Proceed(false));
        }
        let now = self.now();
        if now >= self.stage.end {
            self.end_stage(self.stage.end);
            return None;
        }
        let due = if self.plan.load == Load::Closed {
            stage::DueTransaction { at, terminal: None }
        } else {
            self.arrive(now);
            let Some(due) = self.stage.take_due() else {
                self.stage.park(session);
                return None;
            };
            due
        };
        let late = now.max(due.at) - due.at;
        if !self.sessions.begin(session, due, now) {
            self.end_stage(now);
            return None;
        }
        Some(Answer::Begin(late))
    }

    /// A terminal's last transaction was done at `at` (or the stage starts then): the next one is due after its user
    /// has thought.
    fn think(&mut self, terminal: u32, at: Nanos) {
        let Load::Terminals { think_scale, .. } = self.plan.load else { return };
        if let Some(think) = self.sessions.take_think(terminal) {
            self.stage.expect_of(terminal, at + Nanos::from_secs_f64(think.as_secs_f64() * think_scale));
        }
    }

    /// Notices what has ended.
    fn conclude(&mut self) {
        match self.phase {
            WorkerPhase::Preparing => {
                let own = self.stage.own_sessions();
                let settled =
                    |doing| matches!(doing, SessionPhase::Initialized | SessionPhase::Parked | SessionPhase::Gone);
                let ready = self.sessions.count(own, settled) as u32;
                if ready != self.ready_told {
                    self.ready_told = ready;
                    self.send(Message::Connected { worker: self.number, ready });
                }
                if ready as usize == own {
                    self.phase = WorkerPhase::Waiting;
                    let main = self.plan.setup.entry == Entry::Main;
                    let before = if main { self.sessions.take_outside() } else { Outside::default() };
                    self.send(Message::Ready { worker: self.number, before });
                }
            }
            WorkerPhase::Running => self.conclude_stage(),
            WorkerPhase::Command if self.sessions.are_gone(self.sessions.len()) => {
                self.finish_now(self.sessions.are_successful());
            }
            WorkerPhase::Finishing(limit) if self.sessions.are_gone(self.sessions.len()) || self.now() >= limit => {
                self.finish_now(self.sessions.are_successful());
            }
            WorkerPhase::Command | WorkerPhase::Finishing(_) | WorkerPhase::Waiting | WorkerPhase::Over => {}
        }
    }

    fn conclude_stage(&mut self) {
        if self.stage.ended.is_none() {
            if !self.stage.released || !self.sessions.are_gone(self.stage.own_sessions()) {
                return;
            }
            // Every session stopped by itself, or there is none.
            self.end_stage(self.now());
        }
        if self.sessions.recorder.in_flight() == 0 || self.now() >= self.stage.give_up {
            self.close_stage();
        }
    }

    /// Reports the results of the stage, without waiting for transactions in flight.
    fn close_stage(&mut self) {
        let own = self.stage.own_sessions();
        // A stage that ran out of transactions is as long as they took; any other until it was ended.
        let all_done = self.stage.unstarted == 0 && self.sessions.recorder.in_flight() == 0;
        let recorder = &self.sessions.recorder;
        let exhausted = all_done && (recorder.is_exhausted() || self.stage.is_exhausted());
        self.sessions.give_up_unfinished();
        self.cut(self.now());
        let recorder = &mut self.sessions.recorder;
        recorder.end_stage();
        let last_done = recorder.last_done();
        let ended = self.stage.ended.filter(|_| !exhausted).unwrap_or(last_done);
        let usage = recorder.usage();
        let completed = recorder.completed();
        let summary = WorkerStageSummary {
            end: if own == 0 { Nanos::ZERO } else { last_done.max(ended) },
            unstarted: self.stage.unstarted,
            sessions: own as u32,
            fewest: completed.iter().copied().min().unwrap_or(u64::MAX),
            most: completed.iter().copied().max().unwrap_or(0),
            turns: usage.turns,
            events: usage.events,
            asleep: usage.asleep,
            polled: usage.polled,
        };
        self.phase = WorkerPhase::Waiting;
        self.sessions.under_way = false;
        let part = self.part();
        self.send(Message::StageDone { worker: self.number, part, summary });
    }

    /// Sends the intervals that are complete at `at`.
    fn cut(&mut self, at: Nanos) {
        while self.phase == WorkerPhase::Running && at >= self.sessions.recorder.next_cut() {
            let end = self.sessions.recorder.next_cut();
            if self.stage.ended.is_none() && end == self.sessions.recorder.next_end() {
                self.stage.arrive(end, &mut self.sessions.recorder);
            }
            let part = self.part();
            self.sessions.send_lines();
            self.sessions.send_history();
            self.sessions.recorder.next_interval();
            self.send(Message::Interval { worker: self.number, part });
        }
    }

    /// The load of the stage now.
    fn load(&self) -> PresentLoad {
        PresentLoad {
            waiting: self.stage.waiting(),
            in_flight: self.sessions.recorder.in_flight().into(),
            served: self.sessions.served(self.stage.own_sessions()),
        }
    }

    /// What was recorded since the last cut.
    fn part(&mut self) -> IntervalPart {
        let outside = self.sessions.take_outside();
        let load = if self.stage.ended.is_some() { self.load_at_end } else { self.load() };
        self.sessions.recorder.cut(outside, load)
    }

    /// Gives a report to the session for reports, which is ready again when the report is made.
    fn begin_report(&mut self, report: Report) {
        self.phase = WorkerPhase::Preparing;
        let initialized = |session: &usize| self.sessions.doing(*session) == SessionPhase::Initialized;
        if let Some(session) = (0..self.sessions.len()).find(initialized) {
            self.sessions.queue(session, Answer::Report(report), self.now());
        }
    }

    fn begin_finish(&mut self) {
        self.phase = WorkerPhase::Finishing((self.now() + self.grace).min(self.leave_by));
        self.sessions.dismiss();
    }

    /// Drops the remaining ones and reports it.
    fn finish_now(&mut self, success: bool) {
        self.sessions.drop_all();
        self.phase = WorkerPhase::Over;
        self.sessions.send_lines();
        self.sessions.send_history();
        let acknowledged = self.sessions.take_acknowledged();
        if !acknowledged.is_empty() {
            self.send(Message::Acknowledged(acknowledged));
        }
        self.sessions.share_work();
        let outside = self.sessions.take_outside();
        self.send(Message::Finished { worker: self.number, success, outside });
    }
}
