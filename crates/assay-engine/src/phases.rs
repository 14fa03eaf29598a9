//! The course of a run: connect, stage after stage, finish; and the sum of what the workers measured.
//!
//! The coordinator is a machine without a thread: `step` takes the instant and a worker's message and sends commands.
//! `run` drives it with real threads, tests with a virtual clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use assay_io::Waker;
use assay_io::process::{Turns, Usage};
use assay_script::{Declaration, Entry};
use assay_wire::{Nanos, Origin};

use crate::control::Control;
use crate::messages::{Command, Message, Part, StageSummary};
use crate::observer::{Notice, Observer, Warning};
use crate::outcome::{
    End, Generator, Interval, Latencies, Line, Outcome, Outside, RunError, SessionTally, SparseLatencies, StageOutcome,
    Tally, TransactionTally,
};
use crate::plan::Plan;
use crate::schedule::Share;
use crate::shared::Shared;

/// See the module.
pub(crate) struct Coordinator<'a> {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    control: &'a Control,
    observer: &'a mut dyn Observer,
    consumption: &'a mut dyn FnMut() -> Consumption,
    workers: Vec<WorkerHandle>,
    outcome: Outcome,
    course: Course,
    stage: usize,
    /// A graceful stop was passed on.
    stopping: bool,
    started: Nanos,
    /// When progress was last told.
    told: Nanos,
    told_loaded: u64,
    outages: Vec<bool>,
    slow_connects: Vec<bool>,
    /// Columns of the journal; empty: none is kept.
    journal: Vec<String>,
}

/// What the program has taken of the machine since it began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consumption {
    /// Of the whole process.
    pub(crate) process: Usage,
    /// Of each worker; empty where the kernel does not tell.
    pub(crate) workers: Vec<Turns>,
}

/// A worker as the coordinator sees it.
struct WorkerHandle {
    commands: Sender<Command>,
    waker: Waker,
    /// Sessions ready for the stage.
    ready: u32,
    is_ready: bool,
    /// Intervals of the stage received.
    cuts: usize,
    /// Its stage is over.
    done: Option<StageSummary>,
    finished: bool,
}

enum Course {
    Preparing,
    Running(Measuring),
    Finishing,
    Over,
}

/// A stage under way.
struct Measuring {
    measured_from: Nanos,
    /// At the start of the measured part, once that has come; and at the last interval told.
    consumed_from: Option<Consumption>,
    consumed_told: Consumption,
    /// By interval, not told yet; the first is number `told`.
    slots: Vec<Slot>,
    told: usize,
}

#[derive(Default)]
struct Slot {
    tallies: Vec<Tally>,
    due: u64,
    dropped: u64,
    backlog: u64,
    sessions: u32,
    outside: Outside,
    in_flight: u64,
}

/// Between the decision to begin a stage and its begin, so that every worker has heard of it.
const BEGIN_AHEAD: Nanos = Nanos::from_millis(2);
/// Between two notices of progress.
const PROGRESS_EVERY: Nanos = Nanos::from_millis(100);
/// How late workers may be with what time and grace oblige them to say.
const OVERDUE: Nanos = Nanos::from_secs(1);

impl<'a> Coordinator<'a> {
    pub(crate) fn new(
        plan: Arc<Plan>,
        shared: Arc<Shared>,
        control: &'a Control,
        observer: &'a mut dyn Observer,
        consumption: &'a mut dyn FnMut() -> Consumption,
        workers: Vec<(Sender<Command>, Waker)>,
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
                })
                .collect(),
            outcome: Outcome::nothing_yet(targets),
            course: Course::Preparing,
            stage: 0,
            stopping: false,
            started: now,
            told: now,
            told_loaded: 0,
            outages: vec![false; targets],
            slow_connects: vec![false; targets],
            journal: Vec::new(),
            plan,
        };
        coordinator.prepare();
        coordinator
    }

    /// What the run came to; complete once `step` has returned false.
    pub(crate) fn into_outcome(mut self) -> Outcome {
        self.outcome.types = self.shared.types();
        self.outcome.counters = self.shared.counters();
        self.outcome
    }

    /// Takes a worker's message, if there is one, and whatever follows from it and from the time; false when the run is
    /// over.
    pub(crate) fn step(&mut self, now: Nanos, message: Option<Message>) -> bool {
        self.outcome.elapsed = now - self.started;
        if let Some(message) = message {
            self.hear(message, now);
        }
        if self.control.is_stopped() && !self.stopping {
            self.stopping = true;
            match self.course {
                Course::Running(_) => {
                    let in_flight = self.plan.stages[self.stage].sessions;
                    self.observer.notice(Notice::Warning(Warning::Finishing { in_flight }));
                    self.order(|| Command::End);
                }
                Course::Preparing => self.finish(Command::Abort),
                Course::Finishing | Course::Over => {}
            }
        }
        if let Course::Running(measuring) = &mut self.course
            && measuring.consumed_from.is_none()
            && now >= measuring.measured_from
        {
            let consumed = (self.consumption)();
            measuring.consumed_told = consumed.clone();
            measuring.consumed_from = Some(consumed);
        }
        self.tell_progress(now);
        self.tell_overdue(now);
        !matches!(self.course, Course::Over)
    }

    /// When `step` wants to be called whatever happens; `MAX` when never.
    pub(crate) fn deadline(&self) -> Nanos {
        match &self.course {
            Course::Running(measuring) if measuring.consumed_from.is_none() => measuring.measured_from,
            _ => Nanos::MAX,
        }
    }

    /// Whether a worker whose thread has ended has not said that it finished.
    pub(crate) fn misses_any_of(&self, ended: &[bool]) -> bool {
        self.workers.iter().zip(ended).any(|(worker, ended)| *ended && !worker.finished)
    }

    fn order(&self, command: impl Fn() -> Command) {
        for worker in &self.workers {
            // A worker that is gone has said so, or has panicked, which ends the run when its thread is joined.
            let _ = worker.commands.send(command());
            worker.waker.wake();
        }
    }

    fn prepare(&mut self) {
        for worker in &mut self.workers {
            (worker.ready, worker.is_ready, worker.cuts, worker.done) = (0, false, 0, None);
        }
        self.shared.begun.store(0, Ordering::Relaxed);
        self.course = Course::Preparing;
        let stage = self.stage;
        self.order(|| Command::Stage(stage));
    }

    fn begin(&mut self, now: Nanos) {
        let at = now + BEGIN_AHEAD;
        let measured_from = at + self.plan.warmup;
        self.course = Course::Running(Measuring {
            measured_from,
            consumed_from: None,
            consumed_told: Consumption::default(),
            slots: Vec::new(),
            told: 0,
        });
        let sessions = self.plan.stages[self.stage].sessions;
        let targets = self.plan.targets.len();
        self.outcome.stages.push(StageOutcome {
            sessions,
            started: measured_from - self.started,
            measured: Nanos::ZERO,
            total: Tally::default(),
            targets: if targets > 1 { vec![Tally::default(); targets] } else { Vec::new() },
            intervals: Vec::new(),
            session_transactions: (0, 0),
            by_session: vec![SessionTally::default(); sessions as usize],
            generator: Generator::default(),
        });
        self.observer.notice(Notice::StageBegins { stage: self.stage, sessions, warmup: self.plan.warmup });
        self.order(|| Command::Begin(at));
    }

    fn finish(&mut self, command: Command) {
        self.course = Course::Finishing;
        let abort = matches!(command, Command::Abort);
        self.order(|| if abort { Command::Abort } else { Command::Finish });
    }

    fn hear(&mut self, message: Message, now: Nanos) {
        match message {
            Message::Connected { worker, ready } => self.workers[worker].ready = ready,
            Message::Ready { worker, .. } => {
                self.workers[worker].is_ready = true;
                if matches!(self.course, Course::Preparing) && self.workers.iter().all(|worker| worker.is_ready) {
                    if matches!(self.outcome.end, End::Failed(_)) {
                        return self.finish(Command::Abort);
                    }
                    self.tell_connecting();
                    self.begin(now);
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
                    if matches!(self.course, Course::Preparing)
                        && self.plan.setup.entry != Entry::Thread
                        && !matches!(self.outcome.end, End::Failed(_))
                    {
                        self.outcome.end = End::Complete;
                    }
                    self.tell_loading();
                    self.course = Course::Over;
                }
            }
            Message::Server { target, facts } => self.outcome.servers[target] = facts,
            Message::Failed(mut error) => {
                // A worker knows of its own sessions only.
                if let (RunError::Connect { connected, .. }, Course::Preparing) = (&mut *error, &self.course) {
                    *connected = (*connected).max(self.workers.iter().map(|worker| worker.ready).sum());
                }
                self.fail(*error);
            }
            Message::Declared(Declaration::Journal(columns)) => {
                if self.journal.is_empty() {
                    self.journal = columns;
                    self.tell_journal(&[], now);
                }
            }
            Message::Declared(declaration) => self.declare(declaration),
            Message::Acknowledged(keys) => self.outcome.acknowledged.extend(keys),
            Message::Journal(mut lines) => {
                for line in &mut lines {
                    for instant in [&mut line.due, &mut line.sent, &mut line.done] {
                        *instant = *instant - self.started;
                    }
                }
                self.tell_journal(&lines, now);
            }
            Message::Log { session, text } => self.observer.notice(Notice::Log { session, text: &text }),
            Message::Warning(warning) => {
                let news = match &warning {
                    Warning::Outage { target, .. } => !std::mem::replace(&mut self.outages[*target], true),
                    Warning::Recovered { target } => std::mem::take(&mut self.outages[*target]),
                    Warning::SlowConnects { target, .. } => !std::mem::replace(&mut self.slow_connects[*target], true),
                    Warning::Held { .. } | Warning::Finishing { .. } => true,
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

    /// Every Lua state says the same; the first word counts.
    fn declare(&mut self, declaration: Declaration) {
        let same = |known: &Declaration| match (known, &declaration) {
            (Declaration::Rule(known), Declaration::Rule(new)) => known.name == new.name,
            (Declaration::Rate(known), Declaration::Rate(new)) => known.name == new.name,
            _ => false,
        };
        if !self.outcome.declarations.iter().any(same) {
            self.outcome.declarations.push(declaration);
        }
    }

    /// Only the first error ends a run; others follow from it.
    fn fail(&mut self, error: RunError) {
        if matches!(self.outcome.end, End::Failed(_)) {
            return;
        }
        self.outcome.end = End::Failed(error);
        match self.course {
            Course::Running(_) => self.order(|| Command::End),
            // With a host every session says itself how its preparation or command ends.
            Course::Preparing if self.plan.setup.host.is_some() => {}
            Course::Preparing => self.finish(Command::Abort),
            Course::Finishing | Course::Over => {}
        }
    }

    fn merge(&mut self, index: usize, worker: usize, part: Part) {
        let Course::Running(measuring) = &mut self.course else { return };
        let Some(offset) = index.checked_sub(measuring.told) else { return };
        if measuring.slots.len() <= offset {
            measuring.slots.resize_with(offset + 1, Slot::default);
        }
        let slot = &mut measuring.slots[offset];
        slot.due += part.due;
        slot.dropped += part.dropped;
        slot.backlog += part.backlog;
        slot.sessions += part.sessions;
        slot.in_flight += part.in_flight;
        slot.outside.add(&part.outside);
        let stage = self.outcome.stages.last_mut().expect("a stage is running");
        for (i, tally) in part.by_session.iter().enumerate() {
            stage.by_session[worker + i * self.workers.len()].add(tally);
        }
        if slot.tallies.is_empty() {
            slot.tallies = part.tallies;
            return;
        }
        let mut tallies = part.tallies;
        for (ours, theirs) in slot.tallies.iter_mut().zip(&mut tallies) {
            ours.add(theirs);
            theirs.clear();
        }
        let _ = self.workers[worker].commands.send(Command::Recycle(tallies));
    }

    /// Tells the intervals that every worker has sent, except the last of a stage of known length: it waits for what
    /// is still in flight at the end.
    fn tell_intervals(&mut self, now: Nanos) {
        loop {
            let Course::Running(measuring) = &self.course else { return };
            let index = measuring.told;
            let complete = self.workers.iter().all(|worker| worker.cuts > index || worker.done.is_some());
            let end = Nanos(self.plan.interval.0 * (index as u64 + 1));
            let last = self.plan.limit.time.is_some_and(|time| end + self.plan.interval > time);
            if !complete || last || measuring.slots.is_empty() {
                return;
            }
            self.tell_interval(self.plan.interval, now);
        }
    }

    /// Adds the first slot to the outcome as an interval of this length.
    fn tell_interval(&mut self, length: Nanos, now: Nanos) {
        let Course::Running(measuring) = &mut self.course else { return };
        let slot = measuring.slots.remove(0);
        let start = Nanos(self.plan.interval.0 * measuring.told as u64);
        measuring.told += 1;
        let consumed = (self.consumption)();
        let cpu = consumed.process.cpu() - measuring.consumed_told.process.cpu();
        let cpu_wait = waited(&turns_between(&measuring.consumed_told, &consumed));
        measuring.consumed_told = consumed;

        let stage = self.outcome.stages.last_mut().expect("a stage is running");
        let mut tallies = slot.tallies;
        let mut sum = Tally::default();
        for tally in &tallies {
            sum.add(tally);
        }
        (sum.due, sum.dropped) = (slot.due, slot.dropped);
        let mut response = Latencies::default();
        for transaction in &sum.transactions {
            response.add(&transaction.response);
        }
        stage.total.add(&sum);
        for (ours, theirs) in stage.targets.iter_mut().zip(&tallies) {
            ours.add(theirs);
        }
        stage.measured = start + length;
        stage.intervals.push(Interval {
            start,
            length,
            transactions: sum.transactions.iter().map(|transaction| transaction.count).collect(),
            statements: [0, 1, 2].map(|class| sum.statements[class].count),
            errors: sum.errors.values().map(|error| error.count).sum(),
            lost: sum
                .errors
                .iter()
                .filter(|(key, _)| key.origin == Origin::Network)
                .map(|(_, error)| error.count)
                .sum(),
            retries: sum.transactions.iter().map(|transaction| transaction.retries).sum(),
            failed: sum.transactions.iter().map(|transaction| transaction.failed).sum(),
            reconnects: sum.reconnects,
            outside: slot.outside,
            backlog: slot.backlog,
            in_flight: slot.in_flight,
            sessions: slot.sessions,
            response: SparseLatencies::from(&response),
            cpu,
            cpu_wait,
        });
        for tally in &mut tallies {
            tally.clear();
        }
        let _ = self.workers[0].commands.send(Command::Recycle(tallies));
        self.outcome.types = self.shared.types();
        self.outcome.counters = self.shared.counters();
        self.outcome.elapsed = now - self.started;
        let interval = self.outcome.stages.last().and_then(|stage| stage.intervals.last()).expect("just pushed");
        self.observer.notice(Notice::Interval { stage: self.stage, interval, so_far: &self.outcome });
    }

    fn end_stage(&mut self, now: Nanos) {
        let Course::Running(measuring) = &mut self.course else { return };
        let summaries: Vec<StageSummary> = self.workers.iter().filter_map(|worker| worker.done).collect();
        let end = summaries.iter().map(|summary| summary.end).max().unwrap_or(Nanos::ZERO);
        let measured = end - measuring.measured_from;
        let consumed = (self.consumption)();
        let consumed_from = measuring.consumed_from.take().unwrap_or_else(|| consumed.clone());
        let measured_from = measuring.measured_from;

        // The last interval ends where the stage does. One that would be shorter than half an interval would show
        // a rate of nothing much: it joins the one before, unless that was told already.
        loop {
            let Course::Running(measuring) = &mut self.course else { return };
            let left = measuring.slots.len();
            if left == 0 {
                break;
            }
            let start = Nanos(self.plan.interval.0 * measuring.told as u64);
            let rest = measured - start;
            let is_tail = left == 2 && rest < self.plan.interval + Nanos(self.plan.interval.0 / 2);
            if is_tail {
                let tail = measuring.slots.pop().expect("there are two");
                let slot = &mut measuring.slots[0];
                for (ours, theirs) in slot.tallies.iter_mut().zip(&tail.tallies) {
                    ours.add(theirs);
                }
                slot.due += tail.due;
                slot.dropped += tail.dropped;
                slot.outside.add(&tail.outside);
                (slot.backlog, slot.in_flight, slot.sessions) = (tail.backlog, tail.in_flight, tail.sessions);
            }
            let is_last = left == 1 || is_tail;
            let length = if is_last { rest } else { self.plan.interval };
            if is_last && length == Nanos::ZERO && measuring.told > 0 && measuring.slots[0].is_empty() {
                break;
            }
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
        let span = (now - measured_from).as_secs_f64();
        let turns = turns_between(&consumed_from, &consumed);
        let largest_share = |times: &mut dyn Iterator<Item = Nanos>| {
            times.map(|time| time.as_secs_f64() / span).fold(0.0, f64::max).clamp(0.0, 1.0)
        };
        // What the kernel does within a call that may sleep, it does awake: only the scheduler can tell the two apart.
        let busiest_worker = match turns.is_empty() {
            false => largest_share(&mut turns.iter().map(|turns| turns.ran + turns.waited)),
            true => largest_share(&mut served().map(|summary| now - measured_from - summary.asleep)),
        };
        let used = consumed.process - consumed_from.process;
        stage.generator = Generator {
            cpu_user: used.user,
            cpu_system: used.system,
            switches_involuntary: used.switches_involuntary,
            switches_voluntary: used.switches_voluntary,
            turns: summaries.iter().map(|summary| summary.turns).sum(),
            events: summaries.iter().map(|summary| summary.events).sum(),
            cpu_wait: waited(&turns),
            longest_wait: (!turns.is_empty()).then(|| largest_share(&mut turns.iter().map(|turns| turns.waited))),
            busiest_worker,
            workers: self.workers.len() as u32,
            memory_max: used.resident_bytes_max,
        };
        self.observer.notice(Notice::StageEnds { stage: self.stage, so_far: &self.outcome });
        self.stage += 1;
        let failed = matches!(self.outcome.end, End::Failed(_));
        if failed || self.stopping || self.stage == self.plan.stages.len() {
            if !failed && !self.stopping {
                self.outcome.end = End::Complete;
            }
            self.finish(Command::Finish);
        } else {
            self.prepare();
        }
    }

    /// Workers say by themselves when time and grace are over: those that do not are held by something.
    fn tell_overdue(&mut self, now: Nanos) {
        let Course::Running(measuring) = &self.course else { return };
        let Some(time) = self.plan.limit.time else { return };
        if now < measuring.measured_from + time + self.plan.grace + OVERDUE {
            return;
        }
        let share = |worker: usize| Share {
            worker: worker as u32,
            workers: self.workers.len() as u32,
            sessions: self.plan.stages[self.stage].sessions,
        };
        let held = (0..self.workers.len()).filter(|worker| self.workers[*worker].done.is_none());
        let sessions = held.map(|worker| share(worker).own_sessions()).sum();
        self.observer.notice(Notice::Overdue { sessions, so_far: &self.outcome });
    }

    fn tell_progress(&mut self, now: Nanos) {
        if now - self.told < PROGRESS_EVERY || !matches!(self.course, Course::Preparing) {
            return;
        }
        self.told = now;
        if self.plan.setup.entry == Entry::Thread {
            self.tell_connecting();
        } else if self.shared.loaded.load(Ordering::Relaxed) != self.told_loaded {
            self.tell_loading();
        }
    }

    fn tell_connecting(&mut self) {
        let ready = self.workers.iter().map(|worker| worker.ready).sum();
        let wanted = self.plan.stages[self.stage].sessions;
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

/// Of each worker; empty where the kernel does not tell.
fn turns_between(earlier: &Consumption, later: &Consumption) -> Vec<Turns> {
    earlier.workers.iter().zip(&later.workers).map(|(earlier, later)| *later - *earlier).collect()
}

/// All workers together.
fn waited(turns: &[Turns]) -> Option<Nanos> {
    (!turns.is_empty()).then(|| turns.iter().fold(Nanos::ZERO, |sum, turns| sum + turns.waited))
}

impl Slot {
    fn is_empty(&self) -> bool {
        self.due == 0
            && self.outside == Outside::default()
            && self.tallies.iter().all(|tally| {
                tally.errors.is_empty()
                    && tally.unfinished == 0
                    && tally.statements.iter().all(|statement| statement.count == 0)
                    && tally.transactions.iter().all(TransactionTally::is_empty)
            })
    }
}
