//! Runs the phases of a run: connect, each stage, finish. The workers' measurements are combined in `sums`.
//!
//! The coordinator is a machine without a thread: `step` takes the instant and a worker's message and sends commands.
//! `run` drives it with real threads, tests with a virtual clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use assay_io::Waker;
use assay_isolation as isolation;
use assay_measure::{Generator, Tally};
use assay_script::{Declaration, Entry, ScriptError};
use assay_seam::{Code, Nanos};

use crate::control::Control;
use crate::fleet::Gate;
use crate::messages::{IntervalPart, Message, WorkerCommand, WorkerStageSummary};
use crate::observer::{Notice, Observer, Warning};
use crate::outcome::{End, Line, Outcome, RunError, SessionTally, StageOutcome};
use crate::patience::Patience;
use crate::plan::{Load, Plan, Stage};
use crate::schedule::SessionShare;
use crate::shared::Shared;
use crate::sums::{Consumption, StageSums};

/// See the module.
pub(crate) struct Coordinator<'a> {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    control: &'a Control,
    observer: &'a mut dyn Observer,
    consumption: &'a mut dyn FnMut() -> Consumption,
    workers: Vec<WorkerHandle>,
    outcome: Outcome,
    course: StageCourse,
    stage: usize,
    /// Planned stages, and those that the observer added.
    stages: Vec<Stage>,
    /// Every session of the stage is ready, and the stage has not begun: other agents may not be.
    at_gate: bool,
    /// When a graceful stop was passed on.
    stopping: Option<Nanos>,
    started: Nanos,
    /// When progress was last reported.
    told: Nanos,
    told_loaded: u64,
    /// For the preparation of sessions and for commands.
    patience: Patience,
    /// When everything must have ended (`limit`), as last passed on to the watchdog.
    limit_told: Nanos,
    outages: Vec<bool>,
    slow_connects: Vec<bool>,
    /// Targets and error codes for which advice was given.
    advised: Vec<(usize, Code)>,
    /// Columns of the journal; empty without a journal.
    journal: Vec<String>,
}

/// A worker as the coordinator sees it.
struct WorkerHandle {
    commands: Sender<WorkerCommand>,
    waker: Waker,
    /// Sessions ready for the stage.
    ready: u32,
    is_ready: bool,
    /// Intervals of the stage received.
    cuts: usize,
    /// Its stage is over.
    done: Option<WorkerStageSummary>,
    finished: bool,
    /// As of its last interval in the stage: transactions that became due minus those that ended, and those that were
    /// due but not started.
    open: i64,
    backlog: u64,
    /// It did not come back from a script, and is not waited for.
    is_lost: bool,
    /// Once its time is over: the call of a script in which it was first seen, and when; `None`: it was in no script.
    seen: Option<(Option<u64>, Nanos)>,
}

enum StageCourse {
    Preparing,
    Running(StageSums),
    /// Until this instant at the latest.
    Finishing(Nanos),
    Over,
}

/// Between the decision to start a stage and its start, so that every worker knows of it in time.
const BEGIN_AHEAD: Nanos = Nanos::from_millis(2);
/// How often the coordinator looks for what is due, and for an interrupt, when no message comes.
pub(crate) const LOOK_AROUND: Nanos = Nanos::from_millis(100);
/// As `LOOK_AROUND`, while nothing can be due.
const LOOK_RARELY: Nanos = Nanos::from_millis(500);
/// Between two progress notices.
const PROGRESS_EVERY: Nanos = Nanos::from_millis(100);
/// How late workers may report what time and grace period oblige them to report.
const OVERDUE: Nanos = Nanos::from_secs(1);
/// `OVERDUE` after an interrupt, when the user waits for the prompt.
const OVERDUE_STOPPED: Nanos = Nanos::from_millis(500);
/// After time and grace period are over, workers end by themselves; scripts that run after this are interrupted.
const SCRIPTS_END: Nanos = Nanos::from_millis(200);
/// A worker that stays in the same call of a script for this long after that is in a C function, and is not waited for.
/// An interrupted script needs some 100 ms, on a busy machine ten times as long.
const LOST: Nanos = Nanos::from_secs(2);
/// Limit after an interrupt.
const LOST_STOPPED: Nanos = Nanos::from_millis(1_200);
/// Limit for a worker that is not in a script: it has many sessions to end, or is in an embedded database.
const LOST_ELSEWHERE: Nanos = Nanos::from_secs(10);

impl<'a> Coordinator<'a> {
    pub(crate) fn new(
        plan: Arc<Plan>,
        shared: Arc<Shared>,
        control: &'a Control,
        observer: &'a mut dyn Observer,
        consumption: &'a mut dyn FnMut() -> Consumption,
        workers: Vec<(Sender<WorkerCommand>, Waker)>,
        now: Nanos,
    ) -> Coordinator<'a> {
        let targets = plan.targets.len();
        let mut coordinator = Coordinator {
            shared,
            control,
            observer,
            consumption,
            workers: workers
                .into_iter()
                .map(|(commands, waker)| WorkerHandle {
                    commands,
                    waker,
                    ready: 0,
                    is_ready: false,
                    cuts: 0,
                    done: None,
                    finished: false,
                    open: 0,
                    backlog: 0,
                    is_lost: false,
                    seen: None,
                })
                .collect(),
            outcome: Outcome::nothing_yet(targets),
            course: StageCourse::Preparing,
            stage: 0,
            stages: plan.stages.clone(),
            at_gate: false,
            stopping: None,
            started: now,
            told: now,
            told_loaded: 0,
            patience: Patience::new(now),
            limit_told: Nanos::MAX,
            outages: vec![false; targets],
            slow_connects: vec![false; targets],
            advised: Vec::new(),
            journal: Vec::new(),
            plan,
        };
        coordinator.prepare();
        coordinator
    }

    /// The outcome of the run; complete once `step` has returned false.
    pub(crate) fn into_outcome(mut self) -> Outcome {
        self.outcome.types = self.shared.types();
        self.outcome.counters = self.shared.counters();
        self.outcome.work.add(&self.shared.work());
        self.outcome
    }

    /// Handles a worker's message, if there is one, and everything that follows from it and from the time; returns
    /// false when the run is over.
    pub(crate) fn step(&mut self, now: Nanos, message: Option<Message>) -> bool {
        self.outcome.elapsed = now - self.started;
        if let Some(message) = message {
            self.hear(message, now);
        }
        if self.control.is_stopped() && self.stopping.is_none() {
            self.stopping = Some(now);
            match self.course {
                StageCourse::Running(_) => {
                    let in_flight = self.own_sessions(self.stage);
                    self.observer.notice(Notice::Warning(Warning::Finishing { in_flight }));
                    self.order(|| WorkerCommand::Hurry);
                }
                StageCourse::Preparing => self.finish(WorkerCommand::Abort, now),
                StageCourse::Finishing(_) => self.order(|| WorkerCommand::Hurry),
                StageCourse::Over => {}
            }
        }
        if let StageCourse::Running(sums) = &mut self.course
            && sums.awaits_start()
            && now >= sums.measured_from()
        {
            sums.start((self.consumption)());
        }
        self.pass_gate(now);
        self.tell_progress(now);
        self.tell_waiting(now);
        self.tell_overdue(now);
        self.end_scripts(now);
        !matches!(self.course, StageCourse::Over)
    }

    /// Workers that did not come back from a script, by number: their threads may never end.
    pub(crate) fn lost(&self) -> Vec<usize> {
        (0..self.workers.len()).filter(|worker| self.workers[*worker].is_lost).collect()
    }

    /// How long to wait for a message before `step` is called without one. `told_of_stops`: an interrupt is a message.
    pub(crate) fn pause(&self, now: Nanos, told_of_stops: bool) -> Nanos {
        match &self.course {
            StageCourse::Running(sums) if sums.awaits_start() => LOOK_AROUND.min(sums.measured_from() - now),
            // Nothing is due before the limit. A thread that wakes up takes CPU time from the load.
            StageCourse::Running(_) if told_of_stops && self.stopping.is_none() && now < self.limit() => {
                LOOK_RARELY.min(self.limit() - now)
            }
            _ => LOOK_AROUND,
        }
    }

    /// Whether a worker whose thread has ended did not report that it finished.
    pub(crate) fn misses_any_of(&self, ended: &[bool]) -> bool {
        self.workers.iter().zip(ended).any(|(worker, ended)| *ended && !worker.finished)
    }

    fn order(&self, command: impl Fn() -> WorkerCommand) {
        for worker in &self.workers {
            // A worker that is gone has either reported it or panicked; a panic ends the run when its thread is joined.
            let _ = worker.commands.send(command());
            worker.waker.wake();
        }
    }

    fn prepare(&mut self) {
        for worker in &mut self.workers {
            (worker.ready, worker.is_ready, worker.cuts, worker.done) = (0, false, 0, None);
            (worker.open, worker.backlog) = (0, 0);
        }
        self.shared.begun.store(0, Ordering::Relaxed);
        self.course = StageCourse::Preparing;
        self.tell_limit();
        self.patience = Patience::new(self.started + self.outcome.elapsed);
        let (index, stage) = (self.stage, self.stages[self.stage]);
        self.order(|| WorkerCommand::Stage { index, stage });
    }

    /// Begins the stage that is ready, as soon as it is everywhere.
    fn pass_gate(&mut self, now: Nanos) {
        if !self.at_gate || !matches!(self.course, StageCourse::Preparing) {
            return;
        }
        let gate = Gate::Stage(self.stage);
        let at = self.plan.fleet.as_ref().map_or(Some(now), |fleet| fleet.passes(gate, now));
        if let Some(at) = at {
            self.at_gate = false;
            self.begin(at.max(now + BEGIN_AHEAD + self.observer.get_ready()));
        }
    }

    fn begin(&mut self, at: Nanos) {
        let measured_from = at + self.plan.warmup;
        self.course = StageCourse::Running(StageSums::new(measured_from, self.plan.interval));
        let Stage { sessions, rate } = self.stages[self.stage];
        let targets = self.plan.targets.len();
        self.outcome.stages.push(StageOutcome {
            sessions,
            rate,
            started: measured_from - self.started,
            measured: Nanos::ZERO,
            total: Tally::default(),
            targets: if targets > 1 { vec![Tally::default(); targets] } else { Vec::new() },
            intervals: Vec::new(),
            session_transactions: (0, 0),
            by_session: vec![SessionTally::default(); sessions as usize],
            generator: Generator::default(),
            halts: None,
        });
        self.order(|| WorkerCommand::Begin(at));
        let (warmup, measured_from) = (self.plan.warmup, measured_from - self.started);
        self.observer.notice(Notice::StageBegins { stage: self.stage, sessions, rate, warmup, measured_from });
    }

    fn finish(&mut self, command: WorkerCommand, now: Nanos) {
        let grace = if matches!(command, WorkerCommand::Abort) { Nanos::ZERO } else { self.plan.grace };
        self.course = StageCourse::Finishing(now + grace);
        self.tell_limit();
        let abort = matches!(command, WorkerCommand::Abort);
        self.order(|| if abort { WorkerCommand::Abort } else { WorkerCommand::Finish });
    }

    fn hear(&mut self, message: Message, now: Nanos) {
        match message {
            Message::Connected { worker, ready } => {
                self.workers[worker].ready = ready;
                self.patience = Patience::new(now);
            }
            Message::Ready { worker, .. } => {
                self.workers[worker].is_ready = true;
                if matches!(self.course, StageCourse::Preparing) && self.workers.iter().all(|worker| worker.is_ready) {
                    if matches!(self.outcome.end, End::Failed(_)) {
                        return self.finish(WorkerCommand::Abort, now);
                    }
                    self.tell_connecting();
                    self.observer.notice(Notice::StageReady);
                    self.at_gate = true;
                    self.pass_gate(now);
                }
            }
            Message::Interval { worker, part } => {
                let index = self.workers[worker].cuts;
                self.workers[worker].cuts += 1;
                self.merge(index, worker, part);
                self.tell_intervals(now);
            }
            Message::StageDone { worker, part, summary } => {
                let index = self.workers[worker].cuts;
                self.workers[worker].done = Some(summary);
                self.merge(index, worker, part);
                if self.workers.iter().all(|worker| worker.done.is_some()) {
                    self.end_stage(now);
                } else {
                    self.tell_intervals(now);
                }
            }
            Message::Finished { worker, success, outside } => {
                self.workers[worker].finished = true;
                self.outcome.outside.add(&outside);
                self.outcome.success &= success;
                if self.workers.iter().all(|worker| worker.finished) {
                    if matches!(self.course, StageCourse::Preparing)
                        && self.plan.setup.entry != Entry::Thread
                        && !matches!(self.outcome.end, End::Failed(_))
                    {
                        self.outcome.end = End::Complete;
                    }
                    self.tell_loading();
                    self.course = StageCourse::Over;
                }
            }
            Message::Server { target, facts } => {
                self.outcome.servers[target] = facts;
                self.observer.logged_in(target);
            }
            Message::Failed(mut error) => {
                // A worker knows only its own sessions.
                if let (RunError::Connect { connected, .. }, StageCourse::Preparing) = (&mut *error, &self.course) {
                    *connected = (*connected).max(self.workers.iter().map(|worker| worker.ready).sum());
                }
                self.fail(*error, now);
            }
            Message::Declared(Declaration::Journal(columns)) => {
                if self.journal.is_empty() {
                    self.journal = columns;
                    self.tell_journal(&[], now);
                }
            }
            Message::Declared(Declaration::History(level, _))
                if isolation::IsolationLevel::of_name(&level).is_none() =>
            {
                let known = isolation::IsolationLevel::ALL.map(isolation::IsolationLevel::name).join(", ");
                let message = format!("assay.history: there is no isolation level {level}; use one of {known}");
                self.fail(RunError::Script(ScriptError::from_message(&message, "")), now);
            }
            Message::Declared(Declaration::Total(name, value)) => self.outcome.work.add_total(&name, value),
            Message::Declared(declaration) => self.declare(declaration),
            Message::Acknowledged(keys) => self.outcome.acknowledged.extend(keys),
            Message::History(words) => self.add_history(words),
            Message::Journal(mut lines) => {
                for line in &mut lines {
                    for instant in [&mut line.due, &mut line.sent, &mut line.done] {
                        *instant = *instant - self.started;
                    }
                }
                self.tell_journal(&lines, now);
            }
            Message::Waiting { longest } => {
                if matches!(self.course, StageCourse::Preparing)
                    && let Some(warning) = self.patience.judge(longest, self.plan.setup.entry == Entry::Thread, now)
                {
                    self.observer.notice(Notice::Warning(warning));
                }
            }
            // `step` looks at `control` after every message.
            Message::Stopped => {}
            Message::Log { session, text } => self.observer.notice(Notice::Log { session, text: &text }),
            Message::Warning(warning) => {
                let news = match &warning {
                    Warning::Outage { target, .. } => !std::mem::replace(&mut self.outages[*target], true),
                    Warning::Recovered { target } => std::mem::take(&mut self.outages[*target]),
                    Warning::SlowConnects { target, .. } => !std::mem::replace(&mut self.slow_connects[*target], true),
                    Warning::Advice { target, error, .. } => {
                        let of = (*target, error.code.clone());
                        let new = !self.advised.contains(&of);
                        self.advised.extend(new.then_some(of));
                        new
                    }
                    Warning::Held { .. } | Warning::Waiting { .. } | Warning::Finishing { .. } => true,
                };
                if news {
                    self.observer.notice(Notice::Warning(warning));
                }
            }
        }
    }

    fn tell_journal(&mut self, lines: &[Line], now: Nanos) {
        self.observer.notice(Notice::Journal { columns: &self.journal, lines, now: now - self.started });
    }

    /// When the limit is reached, later transactions are left out.
    fn add_history(&mut self, mut words: Vec<u64>) {
        let Some((level, megabytes)) = self.outcome.declarations.iter().find_map(|declaration| match declaration {
            Declaration::History(level, megabytes) => Some((level, *megabytes)),
            _ => None,
        }) else {
            return;
        };
        let history = &mut self.outcome.history;
        let limit = (megabytes * 1e6 / 8.0) as usize;
        if history.is_partial() || history.words().len() + words.len() > limit {
            return history.set_partial();
        }
        isolation::log::advance(&mut words, -i128::from(self.started.0));
        let is_whole = history.extend(&words);
        debug_assert!(is_whole, "workers send whole transactions");
        self.observer.notice(Notice::History { level, words: &words });
    }

    /// Every Lua state reports the same; the first report counts.
    fn declare(&mut self, declaration: Declaration) {
        let same = |known: &Declaration| match (known, &declaration) {
            (Declaration::Rule(known), Declaration::Rule(new)) => known.name == new.name,
            (Declaration::Rate(known), Declaration::Rate(new)) => known.name == new.name,
            // Servers may differ: each value counts.
            (Declaration::Found(..), new) => known == new,
            (Declaration::History(..), Declaration::History(..)) => true,
            _ => false,
        };
        if !self.outcome.declarations.iter().any(same) {
            self.outcome.declarations.push(declaration);
        }
    }

    /// Only the first error ends a run; others follow from it.
    fn fail(&mut self, error: RunError, now: Nanos) {
        if matches!(self.outcome.end, End::Failed(_)) {
            return;
        }
        self.outcome.end = End::Failed(error);
        match self.course {
            StageCourse::Running(_) => self.order(|| WorkerCommand::End),
            StageCourse::Preparing if self.plan.policy.failures_are_alone => {}
            StageCourse::Preparing => self.finish(WorkerCommand::Abort, now),
            StageCourse::Finishing(_) | StageCourse::Over => {}
        }
    }

    fn merge(&mut self, index: usize, worker: usize, part: IntervalPart) {
        let StageCourse::Running(sums) = &mut self.course else { return };
        self.workers[worker].open += part.due as i64 - part.ended() as i64;
        self.workers[worker].backlog = part.backlog;
        let stage = self.outcome.stages.last_mut().expect("a stage is running");
        for (i, tally) in part.by_session.iter().enumerate() {
            stage.by_session[self.plan.agent().worker(worker) + i * self.plan.workers_of_all()].add(tally);
        }
        if let Some(cleared) = sums.add(index, worker, part) {
            let _ = self.workers[worker].commands.send(WorkerCommand::Recycle(cleared));
        }
    }

    /// Reports the intervals that every worker has sent, except the last one of a stage of known length: that one waits
    /// for what is still in flight at the end.
    fn tell_intervals(&mut self, now: Nanos) {
        loop {
            let StageCourse::Running(sums) = &self.course else { return };
            let index = sums.told();
            let complete = self.workers.iter().all(|worker| worker.cuts > index || worker.done.is_some());
            let end = Nanos(self.plan.interval.0 * (index as u64 + 1));
            let last = self.plan.limit.time.is_some_and(|time| end + self.plan.interval > time);
            if !complete || last || sums.is_empty() {
                return;
            }
            self.tell_interval(self.plan.interval, now);
        }
    }

    /// Adds the next interval, of this length, to the outcome.
    fn tell_interval(&mut self, length: Nanos, now: Nanos) {
        let StageCourse::Running(sums) = &mut self.course else { return };
        let stage = self.outcome.stages.last_mut().expect("a stage is running");
        let (worker, cleared) = sums.tell(length, (self.consumption)(), stage);
        stage.halts = halts_during(stage, &self.shared, self.started, now);
        let _ = self.workers[worker].commands.send(WorkerCommand::Recycle(cleared));
        self.outcome.types = self.shared.types();
        self.outcome.counters = self.shared.counters();
        self.outcome.elapsed = now - self.started;
        let interval = self.outcome.stages.last().and_then(|stage| stage.intervals.last()).expect("just pushed");
        self.observer.notice(Notice::Interval { stage: self.stage, interval, so_far: &self.outcome });
    }

    fn end_stage(&mut self, now: Nanos) {
        let StageCourse::Running(sums) = &mut self.course else { return };
        let summaries: Vec<WorkerStageSummary> = self.workers.iter().filter_map(|worker| worker.done).collect();
        let end = summaries.iter().map(|summary| summary.end).max().unwrap_or(Nanos::ZERO);
        let consumed = (self.consumption)();
        let generator = sums.generator(&summaries, &consumed, now);
        let measured = sums.settle(end);
        while let StageCourse::Running(sums) = &self.course
            && let Some(length) = sums.next_length(measured)
        {
            self.tell_interval(length, now);
        }

        let stage = self.outcome.stages.last_mut().expect("a stage is running");
        stage.measured = measured;
        stage.total.unstarted = summaries.iter().map(|summary| summary.unstarted).sum();
        let served = || summaries.iter().filter(|summary| summary.sessions > 0);
        stage.session_transactions = (
            served().map(|summary| summary.fewest).min().unwrap_or(0),
            served().map(|summary| summary.most).max().unwrap_or(0),
        );
        stage.generator = generator;
        stage.halts = halts_during(stage, &self.shared, self.started, now);
        self.observer.notice(Notice::StageEnds { stage: self.stage, so_far: &self.outcome });
        self.stage += 1;
        let failed = matches!(self.outcome.end, End::Failed(_));
        let stopping = self.stopping.is_some();
        if !failed && !stopping && self.stage == self.stages.len() {
            self.stages.extend(self.observer.next_stage(&self.outcome));
        }
        if failed || stopping || self.stage == self.stages.len() {
            if !failed && !stopping {
                self.outcome.end = End::Complete;
            }
            self.finish(WorkerCommand::Finish, now);
        } else {
            self.prepare();
        }
    }

    /// Workers report on their own when time and grace period are over; if they do not, something holds them. An
    /// observer that ends the program then gets everything that is known.
    fn tell_overdue(&mut self, now: Nanos) {
        let of_stage = match (&self.course, self.plan.limit.time) {
            (StageCourse::Running(sums), Some(time)) => Some(sums.measured_from() + time + self.plan.grace + OVERDUE),
            _ => None,
        };
        let of_stop = self.stopping.map(|stopped| stopped + self.plan.grace_interrupted + OVERDUE_STOPPED);
        let due = of_stage.into_iter().chain(of_stop).min().unwrap_or(Nanos::MAX);
        if now < due || matches!(self.course, StageCourse::Over) || !self.observer.gives_up() {
            return;
        }
        let held = (0..self.workers.len()).filter(|worker| self.workers[*worker].done.is_none());
        let sessions = held.map(|worker| self.sessions_of(worker)).sum();
        while let StageCourse::Running(sums) = &self.course
            && let Some(length) = sums.length_until(now)
        {
            self.tell_interval(length, now);
        }
        self.observer.notice(Notice::Overdue { sessions, so_far: &self.outcome });
    }

    /// Sessions of the stage that a worker drives.
    fn sessions_of(&self, worker: usize) -> u32 {
        let share = SessionShare {
            worker: self.plan.agent().worker(worker) as u32,
            workers: self.plan.workers_of_all() as u32,
            sessions: self.stages[self.stage.min(self.stages.len() - 1)].sessions,
        };
        share.own_sessions()
    }

    /// When what happens now must have ended; `MAX` if it may take as long as it likes.
    fn limit(&self) -> Nanos {
        let own = match (&self.course, self.plan.limit.time) {
            (StageCourse::Running(sums), Some(time)) => sums.measured_from() + time + self.plan.grace,
            (StageCourse::Finishing(until), _) => *until,
            _ => Nanos::MAX,
        };
        let leaves = matches!(self.course, StageCourse::Finishing(_)) && !self.plan.policy.grace_bounds_leaving;
        own.min(self.stopping.filter(|_| !leaves).map_or(Nanos::MAX, |at| at + self.plan.grace_interrupted))
    }

    /// Lets the watchdog know when scripts must have ended.
    fn tell_limit(&mut self) {
        let limit = self.limit();
        if limit != self.limit_told {
            self.limit_told = limit;
            self.shared.end_scripts_at(limit + SCRIPTS_END);
            self.workers.iter_mut().for_each(|worker| worker.seen = None);
        }
    }

    /// Workers end by themselves when their time is over. Scripts that still run then are interrupted, and workers that
    /// do not come back even so are not waited for.
    fn end_scripts(&mut self, now: Nanos) {
        if matches!(self.course, StageCourse::Over) {
            return;
        }
        self.tell_limit();
        if now < self.limit_told + SCRIPTS_END || self.observer.gives_up() {
            return;
        }
        let is_running = matches!(self.course, StageCourse::Running(_));
        let patience = if self.stopping.is_some() { LOST_STOPPED } else { LOST };
        let mut lost = Vec::new();
        for (number, worker) in self.workers.iter_mut().enumerate() {
            let owes = if is_running { worker.done.is_none() } else { !worker.finished };
            if !owes {
                continue;
            }
            let call = self.shared.call_of(number);
            let (seen, since) = *worker.seen.get_or_insert((call, now));
            if seen != call {
                worker.seen = Some((call, now));
            } else if now - since >= call.map_or(LOST_ELSEWHERE, |_| patience) {
                lost.push(number);
            }
        }
        if lost.is_empty() {
            return;
        }
        let sessions = lost.iter().map(|worker| self.sessions_of(*worker)).sum();
        if !matches!(self.outcome.end, End::Failed(_)) {
            let (workers, waited) = (lost.len(), now - self.limit_told);
            self.outcome.end = End::Failed(RunError::Held { workers, sessions, waited, is_measured: is_running });
        }
        for worker in &lost {
            (self.workers[*worker].is_lost, self.workers[*worker].finished) = (true, true);
        }
        if is_running {
            self.give_up(&lost);
            if self.workers.iter().all(|worker| worker.done.is_some()) {
                self.end_stage(now);
            }
        }
        if self.workers.iter().all(|worker| worker.finished) {
            self.course = StageCourse::Over;
        }
    }

    /// Ends the stage of workers that did not come back. Of what they did since their last interval nothing
    /// is known, except that their sessions had not finished.
    fn give_up(&mut self, lost: &[usize]) {
        let StageCourse::Running(sums) = &self.course else { return };
        // No transaction was started after this.
        let end = self.plan.limit.time.map_or(Nanos::MAX, |time| sums.measured_from() + time);
        let end = end.min(self.stopping.unwrap_or(Nanos::MAX));
        for number in lost {
            let sessions = self.sessions_of(*number);
            let worker = &self.workers[*number];
            let cuts = worker.cuts;
            let unstarted = worker.backlog.min(worker.open.max(0) as u64);
            let known = worker.open - unstarted as i64;
            // In a closed loop every session had one; otherwise at least the session that holds the worker.
            let least = if self.plan.load == Load::Closed { sessions.into() } else { 1 };
            let unfinished = known.max(least);
            let mut tallies = vec![Tally::default(); self.plan.targets.len()];
            tallies[0].unfinished = unfinished as u64;
            let part = IntervalPart { tallies, due: (unfinished - known) as u64, ..IntervalPart::default() };
            self.merge(cuts, *number, part);
            self.workers[*number].done =
                Some(WorkerStageSummary { end, unstarted, sessions, ..WorkerStageSummary::default() });
        }
    }

    /// Lets the workers explain what they wait for, if nothing has come of it for long.
    fn tell_waiting(&mut self, now: Nanos) {
        if !matches!(self.course, StageCourse::Preparing) || self.at_gate {
            return;
        }
        if self.patience.is_over(now) {
            self.order(|| WorkerCommand::Explain);
        }
    }

    fn tell_progress(&mut self, now: Nanos) {
        if now - self.told < PROGRESS_EVERY || !matches!(self.course, StageCourse::Preparing) {
            return;
        }
        self.told = now;
        if self.plan.setup.entry == Entry::Thread {
            self.tell_connecting();
        } else if self.shared.loaded.load(Ordering::Relaxed) != self.told_loaded {
            self.tell_loading();
        }
    }

    /// Sessions of a stage that this process drives.
    fn own_sessions(&self, stage: usize) -> u32 {
        self.plan.agent().part_of(self.stages[stage].sessions.into()) as u32
    }

    fn tell_connecting(&mut self) {
        let ready = self.workers.iter().map(|worker| worker.ready).sum();
        let wanted = self.own_sessions(self.stage);
        self.observer.notice(Notice::Connecting { ready, wanted });
    }

    fn tell_loading(&mut self) {
        let rows = self.shared.loaded.load(Ordering::Relaxed);
        self.outcome.loaded = rows;
        if rows != self.told_loaded {
            self.told_loaded = rows;
            let expected = self.shared.expected.load(Ordering::Relaxed);
            self.observer.notice(Notice::Loading { rows, expected, elapsed: self.outcome.elapsed });
        }
    }
}

/// The value of `StageOutcome::halts` until now.
fn halts_during(stage: &StageOutcome, shared: &Shared, started: Nanos, now: Nanos) -> Option<Vec<(Nanos, Nanos)>> {
    let all = shared.halts(now)?.into_iter().map(|(from, to)| (from - started, to - started));
    Some(all.filter(|(_, to)| *to > stage.started).collect())
}
