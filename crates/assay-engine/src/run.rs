//! Running a plan: on threads against the real world, or in one thread against a simulated one.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use assay_io::readiness::BATCH_MAX;
use assay_io::{Clock, Io, Readiness};
use assay_wire::Nanos;

use crate::control::Control;
use crate::messages::{Command, Message};
use crate::observer::{Observer, Warning};
use crate::outcome::{End, Outcome, RunError};
use crate::phases::{Coordinator, Usage};
use crate::plan::Plan;
use crate::shared::Shared;
use crate::worker::Worker;

/// Carries out a plan with one thread per worker over the kernel's event loop, and one that watches for scripts that
/// hold a worker. Returns when the run is over, for whatever reason.
pub fn run(plan: Plan, control: &Control, observer: &mut dyn Observer) -> Outcome {
    let plan = Arc::new(plan);
    let shared = Arc::new(Shared::new(plan.program.name(), sessions_of(&plan)));
    let clock = Clock::start();
    let (outbox, messages) = mpsc::channel();
    let mut workers = Vec::new();
    let mut threads = Vec::new();
    let mut broken = None;
    for number in 0..plan.workers {
        let (commands, inbox) = mpsc::channel();
        let (tell_waker, wakers) = mpsc::channel();
        let (plan, shared, outbox) = (plan.clone(), shared.clone(), outbox.clone());
        let thread = thread::Builder::new().name(format!("worker {number}")).spawn(move || {
            let io = match Readiness::new(clock, BATCH_MAX) {
                Ok(io) => io,
                Err(error) => {
                    let _ = tell_waker.send(Err(format!("no event loop for worker {number}: {error}")));
                    return;
                }
            };
            let _ = tell_waker.send(Ok(io.waker()));
            Worker::new(number, plan, shared, inbox, outbox, io).run();
        });
        let waker = match thread {
            Ok(thread) => {
                threads.push(thread);
                wakers.recv().unwrap_or_else(|_| Err(format!("worker {number} did not start")))
            }
            Err(error) => Err(format!("no thread for worker {number}: {error}")),
        };
        match waker {
            Ok(waker) => workers.push((commands, waker)),
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    let watchdog = Watchdog::start(shared.clone(), outbox.clone(), plan.hold_max);
    drop(outbox);

    let mut usage = Usage::default;
    let mut coordinator = Coordinator::new(plan, shared, control, observer, &mut usage, workers, clock.now());
    if let Some(error) = broken {
        coordinator.step(clock.now(), Some(Message::Failed(Box::new(RunError::Environment(error)))));
    } else {
        loop {
            let message = match messages.recv_timeout(LOOK_AROUND) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => {
                    // A thread says all it has to say before it ends: one that ended unheard has panicked.
                    let ended: Vec<bool> = threads.iter().map(thread::JoinHandle::is_finished).collect();
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
    let outcome = coordinator.into_outcome();
    watchdog.stop();
    for thread in threads {
        if let Err(panic) = thread.join() {
            // Our own bug: let the binary's panic hook have told of it, and end the same way here.
            std::panic::resume_unwind(panic);
        }
    }
    outcome
}

/// Carries out a plan in this thread on one worker with the given `Io`: repeats exactly with a simulated one.
/// CPU time, context switches and memory are reported as zero, and nobody watches for scripts that hold the worker.
pub fn run_inline<I: Io>(mut plan: Plan, io: I, control: &Control, observer: &mut dyn Observer) -> Outcome {
    plan.workers = 1;
    let plan = Arc::new(plan);
    let shared = Arc::new(Shared::new(plan.program.name(), sessions_of(&plan)));
    let (outbox, messages) = mpsc::channel();
    let (commands, inbox) = mpsc::channel::<Command>();
    let waker = io.waker();
    let mut worker = Worker::new(0, plan.clone(), shared.clone(), inbox, outbox, io);
    let mut usage = Usage::default;
    let now = worker.now();
    let mut coordinator = Coordinator::new(plan, shared, control, observer, &mut usage, vec![(commands, waker)], now);
    loop {
        let working = worker.work();
        let mut going = coordinator.step(worker.now(), None);
        let mut heard = false;
        while let Ok(message) = messages.try_recv() {
            going = coordinator.step(worker.now(), Some(message));
            heard = true;
        }
        // What was heard may have led to orders, which come before sleep.
        if !going || !working || (!heard && !worker.wait()) {
            return coordinator.into_outcome();
        }
    }
}

/// How often the coordinator looks for an interrupt when no message comes.
const LOOK_AROUND: Duration = Duration::from_millis(20);

/// Sessions that take part in barriers: all of the run.
fn sessions_of(plan: &Plan) -> u32 {
    plan.stages.iter().map(|stage| stage.sessions).max().unwrap_or(1)
}

/// The thread that notices scripts holding their worker.
struct Watchdog {
    stop: mpsc::Sender<()>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Between two looks at the Lua states.
const WATCH_EVERY: Nanos = Nanos::from_millis(100);
/// A script that holds its worker this long is named.
const HELD_NAMED: Nanos = Nanos::from_secs(1);
/// Generations are odd while Lua runs.
const fn is_running(generation: u64) -> bool {
    generation % 2 == 1
}

impl Watchdog {
    fn start(shared: Arc<Shared>, outbox: mpsc::Sender<Message>, hold_max: Nanos) -> Watchdog {
        let (stop, stopped) = mpsc::channel();
        // Without the thread a run is as right as with it: nobody names a script that holds its worker.
        let thread = thread::Builder::new().name("watchdog".into()).spawn(move || {
            // Per state: the generation last seen, and how long it has been the same.
            let mut seen: Vec<(u64, Nanos)> = Vec::new();
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(Duration::from_nanos(WATCH_EVERY.0)) {
                let guards = shared.guards();
                seen.resize(guards.len(), (0, Nanos::ZERO));
                for (guard, (last, held)) in guards.iter().zip(&mut seen) {
                    let generation = guard.generation();
                    if generation != *last || !is_running(generation) {
                        (*last, *held) = (generation, Nanos::ZERO);
                        continue;
                    }
                    *held += WATCH_EVERY;
                    if *held == HELD_NAMED {
                        guard.inspect(generation);
                    } else if *held == HELD_NAMED + WATCH_EVERY {
                        let warning = Warning::Held { place: guard.place(), held: *held };
                        if outbox.send(Message::Warning(warning)).is_err() {
                            return;
                        }
                    } else if *held >= hold_max && held.0.is_multiple_of(1_000_000_000) {
                        let message = format!("held its worker, and every session on it, for {hold_max}");
                        guard.interrupt(generation, &message);
                    }
                }
            }
        });
        Watchdog { stop, thread: thread.ok() }
    }

    fn stop(mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Outcome {
    /// Whether the run did all it was to do and no session returned failure.
    pub fn is_success(&self) -> bool {
        matches!(self.end, End::Complete) && self.success
    }
}
