//! Scripts that block their worker: a separate thread detects them, reports them, and finally interrupts them.
//!
//! It also notices when the whole process was halted: it was suspended, or got no CPU, and the thread, which waits for
//! nothing, was not woken up in time. And it tells the coordinator of an interrupt, so that only one thread of a run
//! looks around all the time.
//!
//! A session that computes without waiting blocks every other session of its worker. Only time in which the worker
//! could run counts: while it waits for a CPU on a busy machine, no script holds it. Once the time of the run and its
//! grace period are over (`Shared::end_scripts_at`), every script that still runs is interrupted, whatever it has
//! waited for.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use assay_io::Clock;
use assay_io::process::Scheduler;
use assay_seam::Nanos;

use crate::control::Control;
use crate::messages::Message;
use crate::observer::Warning;
use crate::shared::Shared;

/// Between two checks of the Lua states.
const WATCH_EVERY: Nanos = Nanos::from_millis(100);
/// A script that holds its worker this long is named.
const HELD_NAMED: Nanos = Nanos::from_secs(1);
/// A script that does not report its position for this much longer is in a C function, and named without it.
const SILENT_NAMED: Nanos = Nanos::from_secs(2);
/// Between two interrupts of a script that continues nevertheless.
const INTERRUPT_EVERY: Nanos = Nanos::from_secs(1);

/// The thread that notices scripts that hold their worker.
pub(crate) struct Watchdog {
    stop: mpsc::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// `schedulers`: by worker; empty if the kernel does not account for threads, and then waiting for a CPU counts as
    /// holding.
    pub(crate) fn start(
        shared: Arc<Shared>,
        control: Control,
        schedulers: Arc<[Scheduler]>,
        outbox: mpsc::Sender<Message>,
        hold_max: Nanos,
        clock: Clock,
    ) -> Watchdog {
        let (stop, stopped) = mpsc::channel();
        // Without this thread the run is still correct, but nobody names a script that holds its worker, or knows of
        // halts.
        let thread = thread::Builder::new().name("watchdog".into()).spawn(move || {
            let mut holds: Vec<Hold> = Vec::new();
            let mut has_told_stop = false;
            shared.look(clock.now());
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(Duration::from_nanos(WATCH_EVERY.0)) {
                let waited: Vec<Nanos> =
                    schedulers.iter().map(|one| one.turns().map_or(Nanos::ZERO, |turns| turns.waited)).collect();
                let now = clock.now();
                shared.look(now);
                if control.is_stopped() && !std::mem::replace(&mut has_told_stop, true) {
                    let _ = outbox.send(Message::Stopped);
                }
                let is_overdue = shared.is_overdue(now);
                let guards = shared.guards();
                holds.resize_with(guards.len(), Hold::default);
                for ((worker, guard), hold) in guards.iter().zip(&mut holds) {
                    let generation = guard.generation();
                    let limit = HoldLimit { hold_max, is_overdue };
                    let step = hold.look(generation, waited.get(*worker).copied().unwrap_or_default(), limit);
                    let place = if hold.seeks_place { guard.place(generation) } else { None };
                    if place.is_some() || step == Escalation::Name {
                        hold.seeks_place = false;
                        let warning = Warning::Held { worker: *worker, place, held: hold.held };
                        if outbox.send(Message::Warning(warning)).is_err() {
                            return;
                        }
                    } else if hold.seeks_place {
                        guard.inspect(generation);
                    }
                    if step == Escalation::Interrupt {
                        let message = match is_overdue {
                            true => "still running when the run and its grace period were over".to_owned(),
                            false => format!("held its worker, and every session on it, for {hold_max}"),
                        };
                        guard.interrupt(generation, &message);
                    }
                }
            }
        });
        Watchdog { stop, thread: thread.ok() }
    }

    /// Whether the thread could be started.
    pub(crate) fn is_awake(&self) -> bool {
        self.thread.is_some()
    }

    pub(crate) fn stop(mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One Lua state as the watchdog sees it.
#[derive(Default)]
struct Hold {
    /// As last seen.
    generation: u64,
    /// Checks since this generation was first seen.
    looks: u64,
    /// How long its worker had waited for a CPU by then, since its start.
    waited: Nanos,
    /// How long this generation has held its worker, counting only time in which the worker could run.
    held: Nanos,
    named: bool,
    /// It is to be named, and its position is not known yet.
    seeks_place: bool,
    /// The number of looks at the last interrupt, and what was held then.
    interrupted: Option<(u64, Nanos)>,
}

/// How long a script may run.
#[derive(Clone, Copy)]
struct HoldLimit {
    hold_max: Nanos,
    /// Not at all any more.
    is_overdue: bool,
}

/// What to do about a Lua state.
#[derive(Debug, PartialEq, Eq)]
enum Escalation {
    Wait,
    /// Find its position, and report it.
    Seek,
    /// Report it without a position, if none was found.
    Name,
    Interrupt,
}

impl Hold {
    /// Generations are odd while Lua runs. Called every `WATCH_EVERY`; a late check counts no more than that. `waited`
    /// grows when a wait for a CPU ends, so what is held may shrink.
    fn look(&mut self, generation: u64, waited: Nanos, limit: HoldLimit) -> Escalation {
        let is_running = generation % 2 == 1;
        if generation != self.generation || !is_running {
            *self = Hold { generation, waited, ..Hold::default() };
            return Escalation::Wait;
        }
        self.looks += 1;
        self.held = Nanos(WATCH_EVERY.0 * self.looks) - (waited - self.waited);
        if !self.named && (limit.is_overdue || self.held >= HELD_NAMED) {
            (self.named, self.seeks_place) = (true, true);
            return Escalation::Seek;
        }
        let is_due = match self.interrupted {
            Some((looks, _)) if limit.is_overdue => self.looks > looks,
            None if limit.is_overdue => true,
            Some((_, held)) => self.held >= held + INTERRUPT_EVERY,
            None => self.held >= limit.hold_max,
        };
        if is_due {
            self.interrupted = Some((self.looks, self.held));
            return Escalation::Interrupt;
        }
        if self.seeks_place && self.held >= HELD_NAMED + SILENT_NAMED {
            return Escalation::Name;
        }
        Escalation::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: HoldLimit = HoldLimit { hold_max: Nanos::from_secs(3), is_overdue: false };

    /// The checks, counted from 1, at which something is done about a script that never waits, if its worker waits for
    /// a CPU in this many of every ten checks, all at once.
    fn steps(starved: u64) -> Vec<(u64, Escalation)> {
        let (mut hold, mut waited) = (Hold::default(), Nanos::ZERO);
        hold.look(1, waited, LIMIT);
        let mut steps = Vec::new();
        for look in 1..=60 {
            if look % 10 == 9 {
                // The kernel counts a wait when it is over.
                waited += Nanos(WATCH_EVERY.0 * starved);
            }
            match hold.look(1, waited, LIMIT) {
                Escalation::Wait => {}
                step => {
                    // A script in Lua reports its position at once.
                    hold.seeks_place = false;
                    steps.push((look, step));
                }
            }
        }
        steps
    }

    #[test]
    fn a_script_that_holds_its_worker_is_named_and_interrupted_until_it_stops() {
        use Escalation::*;
        assert_eq!(steps(0), [(10, Seek), (30, Interrupt), (40, Interrupt), (50, Interrupt), (60, Interrupt)]);
    }

    #[test]
    fn a_worker_that_waits_for_a_cpu_is_held_by_no_script() {
        use Escalation::*;
        // Half of the time it could not run: everything happens when the script has had its time.
        assert_eq!(steps(5), [(15, Seek), (55, Interrupt)]);
        assert_eq!(steps(10), []);
    }

    #[test]
    fn a_script_that_waits_in_between_is_left_alone() {
        let mut hold = Hold::default();
        for look in 0..100 {
            // Another resume every half second; asleep in the second half.
            let generation = 2 * (look / 5) + u64::from(look < 50);
            assert_eq!(hold.look(generation, Nanos::ZERO, LIMIT), Escalation::Wait, "{look}");
        }
    }

    #[test]
    fn a_script_that_reports_no_position_is_named_without_it_later() {
        let mut hold = Hold::default();
        let limit = HoldLimit { hold_max: Nanos::from_secs(60), ..LIMIT };
        let steps: Vec<_> = (0..=40).map(|look| (look, hold.look(1, Nanos::ZERO, limit))).collect();
        let steps: Vec<_> = steps.into_iter().filter(|(_, step)| *step != Escalation::Wait).collect();
        assert_eq!(steps[..2], [(10, Escalation::Seek), (30, Escalation::Name)]);
    }

    #[test]
    fn when_the_run_is_over_a_script_is_named_and_interrupted_at_every_look_even_if_it_waits_for_a_cpu() {
        use Escalation::*;
        let mut hold = Hold::default();
        let limit = HoldLimit { is_overdue: true, ..LIMIT };
        let steps: Vec<_> = (0..5).map(|look| hold.look(1, Nanos(WATCH_EVERY.0 * look), limit)).collect();
        assert_eq!(steps, [Wait, Seek, Interrupt, Interrupt, Interrupt]);
    }
}
