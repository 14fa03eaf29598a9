//! Executes a plan: on threads in the real world, or on one thread in a simulated one.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use assay_io::process::{Scheduler, Usage, keep_freed_memory};
use assay_io::{Clock, Io, Kernel, Waker};
use assay_script::{Declaration, Entry, Report};
use assay_seam::Nanos;

use crate::control::Control;
use crate::coordinator::{self, Coordinator};
use crate::fleet::Gate;
use crate::messages::{Message, WorkerCommand};
use crate::observer::{Notice, Observer};
use crate::outcome::{End, Outcome, Outside, RunError};
use crate::patience::Patience;
use crate::plan::{Plan, Stage};
use crate::shared::Shared;
use crate::sums::Consumption;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// Runs a plan with one thread per worker on the kernel's event loop, and one that watches for scripts that hold a
/// worker. `init` and `done` of the script run before and after, in an environment of their own; in a fleet, the first
/// agent alone runs them. Returns when the run is over, for whatever reason.
pub fn run(plan: Plan, control: &Control, observer: &mut dyn Observer) -> Outcome {
    keep_freed_memory();
    let clock = Clock::start();
    let (mut main, before) = match open_main_session(&plan, clock, control, observer) {
        Ok(Some((main, before))) => (Some(main), before),
        Ok(None) => (None, Outside::default()),
        Err(end) => return Outcome { end, ..Outcome::nothing_yet(plan.targets.len()) },
    };
    if !wait_at(Gate::Sessions, &plan, clock, control) {
        let outcome = Outcome::nothing_yet(plan.targets.len());
        let end = main.map_or(End::Interrupted, |main| main.abandon(End::Interrupted));
        return Outcome { end, ..outcome };
    }
    let fleet = plan.fleet.clone();
    let started = clock.now();
    observer.notice(Notice::Begins { before, clock, started });
    let mut outcome = run_workers(Arc::new(plan), (clock, started), control, observer);
    outcome.before = before;
    for (name, value) in main.as_mut().map(Aside::take_totals).unwrap_or_default() {
        outcome.work.note_total(&name, value, false);
    }
    observer.notice(Notice::Ends { outcome: &outcome });
    let failed = matches!(outcome.end, End::Failed(_));
    if let Some(main) = main {
        // After an interrupt too: `done` comes after the last session of the run, wherever that is.
        while fleet.as_ref().is_some_and(|fleet| fleet.passes(Gate::Done, clock.now()).is_none()) {
            thread::sleep(LOOK_AROUND);
        }
        if failed && outcome.stages.is_empty() {
            // Sessions did not get ready: the run did not start, and nothing was done.
            outcome.end = main.abandon(outcome.end);
        } else {
            let mut totals = Vec::new();
            if let Err(end) = close_main_session(main, control, observer, &mut totals)
                && !failed
            {
                outcome.end = end;
            }
            for (name, value) in totals {
                outcome.work.note_total(&name, value, true);
            }
        }
    }
    outcome
}

/// Waits until the other agents have come as far, if there are any; false when the run is stopped before.
fn wait_at(gate: Gate, plan: &Plan, clock: Clock, control: &Control) -> bool {
    let Some(fleet) = &plan.fleet else { return true };
    while fleet.passes(gate, clock.now()).is_none() {
        if control.is_stopped() {
            return false;
        }
        thread::sleep(LOOK_AROUND);
    }
    true
}

fn run_workers(
    plan: Arc<Plan>,
    (clock, started): (Clock, Nanos),
    control: &Control,
    observer: &mut dyn Observer,
) -> Outcome {
    // All sessions of the run take part in barriers.
    let shared = Shared::new(plan.program.name(), plan.own_sessions(), plan.fleet.clone());
    let (outbox, messages) = mpsc::channel();
    let mut workers = Vec::new();
    let mut threads = Vec::new();
    let mut schedulers = Vec::new();
    let mut broken = None;
    for number in 0..plan.workers {
        match WorkerThread::start(number, plan.clone(), shared.clone(), outbox.clone(), clock) {
            Ok(worker) => {
                workers.push((worker.commands, worker.waker));
                threads.push(worker.thread);
                schedulers.push(worker.scheduler);
            }
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    // All or none: what the kernel does not report for one thread, it reports for none.
    let schedulers: Arc<[Scheduler]> = schedulers.into_iter().collect::<Option<_>>().unwrap_or_default();
    let watchdog =
        Watchdog::start(shared.clone(), control.clone(), schedulers.clone(), outbox.clone(), plan.hold_max, clock);
    drop(outbox);

    let mut consumption = || {
        let turns = schedulers.iter().map(Scheduler::turns).collect::<Option<Vec<_>>>();
        Consumption { process: Usage::of_process(), workers: turns.unwrap_or_default() }
    };
    let mut coordinator = Coordinator::new(plan, shared, control, observer, &mut consumption, workers, started);
    if let Some(error) = broken {
        coordinator.step(clock.now(), Some(Message::Failed(Box::new(error))));
    } else {
        loop {
            let pause = coordinator.pause(clock.now(), watchdog.is_awake());
            let message = match messages.recv_timeout(Duration::from_nanos(pause.0)) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => {
                    // A thread sends everything before it ends: one that ends without `Finished` has panicked.
                    let ended: Vec<bool> = threads.iter().map(JoinHandle::is_finished).collect();
                    let message = messages.try_recv().ok();
                    if message.is_none() && coordinator.misses_any_of(&ended) {
                        break;
                    }
                    message
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if !coordinator.step(clock.now(), message) {
                break;
            }
        }
    }
    let lost = coordinator.lost();
    let outcome = coordinator.into_outcome();
    watchdog.stop();
    // A lost worker's thread is in a C function that does not return; it ends with the process.
    threads.into_iter().enumerate().filter(|(worker, _)| !lost.contains(worker)).for_each(|(_, thread)| join(thread));
    outcome
}

/// Our own bug ends the program: the panic, already printed where it happened, continues here.
fn join(thread: JoinHandle<()>) {
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// A worker on a thread of its own.
struct WorkerThread {
    commands: mpsc::Sender<WorkerCommand>,
    waker: Waker,
    thread: JoinHandle<()>,
    /// `None`: the kernel does not account for threads.
    scheduler: Option<Scheduler>,
}

impl WorkerThread {
    fn start(
        number: usize,
        plan: Arc<Plan>,
        shared: Arc<Shared>,
        outbox: mpsc::Sender<Message>,
        clock: Clock,
    ) -> Result<WorkerThread, RunError> {
        let (commands, inbox) = mpsc::channel();
        let (tell_waker, wakers) = mpsc::channel();
        // The event loop belongs to the thread that creates it.
        let body = move || {
            let io = match Kernel::new(plan.event_loop.backend, clock, plan.event_loop.batch_max) {
                Ok(io) => io.polling(plan.event_loop.polls),
                Err(error) => {
                    let _ = tell_waker.send(Err(error));
                    return;
                }
            };
            let _ = tell_waker.send(Ok((io.waker(), Scheduler::of_thread())));
            Worker::new(number, plan, shared, inbox, outbox, io).run();
        };
        let trouble = |error| RunError::Environment(format!("worker {number} cannot start: {error}"));
        let thread = thread::Builder::new().name(format!("worker {number}")).spawn(body).map_err(trouble)?;
        let (waker, scheduler) = wakers.recv().expect("sent, or the thread panicked").map_err(trouble)?;
        Ok(WorkerThread { commands, waker, thread, scheduler })
    }
}

/// One session of the script on a worker of its own, beside those of the run.
struct Aside {
    worker: WorkerThread,
    messages: mpsc::Receiver<Message>,
    watchdog: Watchdog,
    shared: Arc<Shared>,
    clock: Clock,
    /// What it read of the tables (`assay.total`).
    totals: Vec<(String, f64)>,
}

impl Aside {
    /// Starts to get the session ready.
    fn start(plan: &Plan, entry: Entry, clock: Clock) -> Result<Aside, RunError> {
        let mut plan = plan.clone();
        plan.setup.entry = entry;
        plan.fleet = None;
        (plan.workers, plan.stages) = (1, vec![Stage::of(1)]);
        let hold_max = plan.hold_max;
        let shared = Shared::new(plan.program.name(), 1, None);
        let (outbox, messages) = mpsc::channel();
        let mut worker = WorkerThread::start(0, Arc::new(plan), shared.clone(), outbox.clone(), clock)?;
        let schedulers = worker.scheduler.take().into_iter().collect();
        // Without our control: whoever waits for the session looks for interrupts.
        let watchdog = Watchdog::start(shared.clone(), Control::default(), schedulers, outbox, hold_max, clock);
        let aside = Aside { worker, messages, watchdog, shared, clock, totals: Vec::new() };
        aside.order(WorkerCommand::Stage { index: 0, stage: Stage::of(1) });
        Ok(aside)
    }

    /// Waits until the session is ready; returns what it did for that.
    fn ready(&mut self, control: &Control, observer: &mut dyn Observer) -> Result<Outside, End> {
        let mut patience = Patience::new(self.clock.now());
        loop {
            if patience.is_over(self.clock.now()) {
                self.order(WorkerCommand::Explain);
            }
            match self.messages.recv_timeout(LOOK_AROUND) {
                Ok(Message::Ready { before, .. }) => return Ok(before),
                Ok(Message::Declared(Declaration::Total(name, value))) => self.totals.push((name, value)),
                Ok(Message::Failed(error)) => return Err(End::Failed(*error)),
                Ok(message) => pass_on(message, observer, &mut patience, self.clock.now()),
                Err(RecvTimeoutError::Timeout) if control.is_stopped() => return Err(End::Interrupted),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(End::Interrupted),
            }
        }
    }

    /// Lets the session run to its end. After an interrupt, whenever that comes, it has a moment left.
    fn finish(
        self,
        control: &Control,
        observer: &mut dyn Observer,
        totals: &mut Vec<(String, f64)>,
    ) -> Result<(), End> {
        self.order(WorkerCommand::Finish);
        let mut end = Ok(());
        let mut until = Nanos::MAX;
        let mut patience = Patience::new(self.clock.now());
        loop {
            if patience.is_over(self.clock.now()) {
                self.order(WorkerCommand::Explain);
            }
            match self.messages.recv_timeout(LOOK_AROUND) {
                Ok(Message::Failed(error)) => end = Err(End::Failed(*error)),
                Ok(Message::Declared(Declaration::Total(name, value))) => totals.push((name, value)),
                Ok(Message::Finished { .. }) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(message) => pass_on(message, observer, &mut patience, self.clock.now()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = self.clock.now();
            if control.is_stopped() && until == Nanos::MAX {
                until = now + LEAVE_WITHIN;
            }
            if now >= until {
                return Err(self.abandon(End::Interrupted));
            }
        }
        self.watchdog.stop();
        join(self.worker.thread);
        end
    }

    /// Ends the session now. A thread in a C function of the script that does not return is left to the end of the
    /// process.
    fn abandon(self, end: End) -> End {
        self.order(WorkerCommand::Abort);
        let now = self.clock.now();
        self.shared.end_scripts_at(now);
        while !self.worker.thread.is_finished() && self.clock.now() < now + LEAVE_WITHIN {
            thread::sleep(LOOK_AROUND);
        }
        self.watchdog.stop();
        if self.worker.thread.is_finished() {
            join(self.worker.thread);
        }
        end
    }

    /// What it has read since the last call.
    fn take_totals(&mut self) -> Vec<(String, f64)> {
        std::mem::take(&mut self.totals)
    }

    fn order(&self, command: WorkerCommand) {
        let _ = self.worker.commands.send(command);
        self.worker.waker.wake();
    }
}

/// Runs the script's `init`; its session is kept for what comes after the run. `None` if nothing of the script runs
/// before or after, or if the run is a command.
fn open_main_session(
    plan: &Plan,
    clock: Clock,
    control: &Control,
    observer: &mut dyn Observer,
) -> Result<Option<(Aside, Outside)>, End> {
    if !plan.has_main_session() || plan.agent().number > 0 {
        return Ok(None);
    }
    let mut plan = plan.clone();
    plan.setup.sessions = 1;
    let mut main = Aside::start(&plan, Entry::Main, clock).map_err(End::Failed)?;
    match main.ready(control, observer) {
        Ok(before) => Ok(Some((main, before))),
        Err(end) => Err(main.abandon(end)),
    }
}

/// What comes after the run: the hook of the last report, if there is one, and `done`.
fn close_main_session(
    mut main: Aside,
    control: &Control,
    observer: &mut dyn Observer,
    totals: &mut Vec<(String, f64)>,
) -> Result<(), End> {
    if let Some(report) = observer.last_report() {
        main.order(WorkerCommand::Report(report));
        // An interrupt was for the run; the next one ends the program.
        if let Err(end) = main.ready(&Control::default(), observer) {
            return Err(main.abandon(end));
        }
    }
    if observer.has_given_up() {
        main.abandon(End::Complete);
        return Ok(());
    }
    main.finish(control, observer, totals)
}

/// A session apart from the run that calls the script's report hooks, with connections of its own. What it does with
/// them is not counted.
pub struct Reporter {
    aside: Aside,
}

impl Reporter {
    /// Runs the script's top level; its number is the one after the last of the run's, `plan.setup.sessions`. `None`
    /// when that fails.
    pub fn open(plan: &Plan, control: &Control) -> Option<Reporter> {
        let mut aside = Aside::start(plan, Entry::Reports, Clock::start()).ok()?;
        match aside.ready(control, &mut Unheard) {
            Ok(_) => Some(Reporter { aside }),
            Err(end) => {
                aside.abandon(end);
                None
            }
        }
    }

    /// Calls a hook; returns when it has finished, or the run is interrupted.
    pub fn call(&mut self, report: Report, control: &Control) {
        self.aside.order(WorkerCommand::Report(report));
        let _ = self.aside.ready(control, &mut Unheard);
    }

    /// Ends the session.
    pub fn close(self) {
        let _ = self.aside.finish(&Control::default(), &mut Unheard, &mut Vec::new());
    }
}

/// For sessions whose messages go to a host.
struct Unheard;

impl Observer for Unheard {
    fn notice(&mut self, _: Notice<'_>) {}
}

fn pass_on(message: Message, observer: &mut dyn Observer, patience: &mut Patience, now: Nanos) {
    match message {
        Message::Waiting { longest } => {
            if let Some(warning) = patience.judge(longest, true, now) {
                observer.notice(Notice::Warning(warning));
            }
        }
        Message::Server { target, .. } => observer.logged_in(target),
        Message::Log { session, text } => observer.notice(Notice::Log { session, text: &text }),
        Message::Warning(warning) => observer.notice(Notice::Warning(warning)),
        _ => {}
    }
}

/// Runs a plan in this thread on one worker with the given `Io`: exactly reproducible with a simulated one. CPU time,
/// context switches and memory are reported as zero, nothing watches for scripts that hold the worker, and the script's
/// `init` and `done` do not run.
pub fn run_inline<I: Io>(mut plan: Plan, io: I, control: &Control, observer: &mut dyn Observer) -> Outcome {
    plan.workers = 1;
    let plan = Arc::new(plan);
    // All sessions of the run take part in barriers.
    let shared = Shared::new(plan.program.name(), plan.own_sessions(), plan.fleet.clone());
    let (outbox, messages) = mpsc::channel();
    let (commands, inbox) = mpsc::channel::<WorkerCommand>();
    let waker = io.waker();
    let mut worker = Worker::new(0, plan.clone(), shared.clone(), inbox, outbox, io);
    let mut consumption = Consumption::default;
    let now = worker.now();
    let mut coordinator =
        Coordinator::new(plan, shared, control, observer, &mut consumption, vec![(commands, waker)], now);
    loop {
        let working = worker.work();
        let mut going = coordinator.step(worker.now(), None);
        let mut heard = false;
        while let Ok(message) = messages.try_recv() {
            going = coordinator.step(worker.now(), Some(message));
            heard = true;
        }
        // Messages may have led to commands, which come before sleep.
        if !going || !working || (!heard && !worker.wait()) {
            return coordinator.into_outcome();
        }
    }
}

/// How long the script's `done` may take after an interrupt, and a script beside the run to stop.
const LEAVE_WITHIN: Nanos = Nanos::from_secs(2);
/// How often whoever waits for a session apart or for other agents looks for an interrupt.
const LOOK_AROUND: Duration = Duration::from_nanos(coordinator::LOOK_AROUND.0);
