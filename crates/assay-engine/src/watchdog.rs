//! Scripts that block their worker: a separate thread detects them, reports them, and finally interrupts them.
//!
//! A session that computes without waiting blocks every other session of its worker. Only time in which the worker
//! could run counts: while it waits for a CPU on a busy machine, no script holds it.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use assay_io::process::Scheduler;
use assay_seam::Nanos;

use crate::messages::Message;
use crate::observer::Warning;
use crate::shared::Shared;

/// Between two checks of the Lua states.
const WATCH_EVERY: Nanos = Nanos::from_millis(100);
/// A script that holds its worker this long is named.
const HELD_NAMED: Nanos = Nanos::from_secs(1);
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
        schedulers: Arc<[Scheduler]>,
        outbox: mpsc::Sender<Message>,
        hold_max: Nanos,
    ) -> Watchdog {
        let (stop, stopped) = mpsc::channel();
        // Without this thread the run is still correct, but nobody names a script that holds its worker.
        let thread = thread::Builder::new().name("watchdog".into()).spawn(move || {
            let mut holds: Vec<Hold> = Vec::new();
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(Duration::from_nanos(WATCH_EVERY.0)) {
                let waited: Vec<Nanos> =
                    schedulers.iter().map(|one| one.turns().map_or(Nanos::ZERO, |turns| turns.waited)).collect();
                let guards = shared.guards();
                holds.resize_with(guards.len(), Hold::default);
                for ((worker, guard), hold) in guards.iter().zip(&mut holds) {
                    let generation = guard.generation();
                    match hold.look(generation, waited.get(*worker).copied().unwrap_or_default(), hold_max) {
                        Step::Wait => {}
                        Step::Inspect => guard.inspect(generation),
                        Step::Name => {
                            let warning = Warning::Held { place: guard.place(), held: hold.held };
                            if outbox.send(Message::Warning(warning)).is_err() {
                                return;
                            }
                        }
                        Step::Interrupt => {
                            let message = format!("held its worker, and every session on it, for {hold_max}");
                            guard.interrupt(generation, &message);
                        }
                    }
                }
            }
        });
        Watchdog { stop, thread: thread.ok() }
    }

    pub(crate) fn stop(mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of one Lua state.
#[derive(Default)]
struct Hold {
    /// As last seen.
    generation: u64,
    /// How long its worker had waited for a CPU by then, since its start.
    waited: Nanos,
    /// How long this generation has held its worker, counting only time in which the worker could run.
    held: Nanos,
    inspected: bool,
    named: bool,
    /// The value of `held` at the last interrupt.
    interrupted: Option<Nanos>,
}

/// What to do about a Lua state.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Wait,
    /// Ask it to note its position.
    Inspect,
    /// Report that position.
    Name,
    Interrupt,
}

impl Hold {
    /// Generations are odd while Lua runs. Called every `WATCH_EVERY`; a late check counts no more than that.
    fn look(&mut self, generation: u64, waited: Nanos, hold_max: Nanos) -> Step {
        let is_running = generation % 2 == 1;
        if generation != self.generation || !is_running {
            *self = Hold { generation, waited, ..Hold::default() };
            return Step::Wait;
        }
        self.held += WATCH_EVERY - (waited - self.waited).min(WATCH_EVERY);
        self.waited = waited;
        if !self.inspected && self.held >= HELD_NAMED {
            self.inspected = true;
            return Step::Inspect;
        }
        if !self.named && self.held >= HELD_NAMED + WATCH_EVERY {
            self.named = true;
            return Step::Name;
        }
        if self.held >= self.interrupted.map_or(hold_max, |last| last + INTERRUPT_EVERY) {
            self.interrupted = Some(self.held);
            return Step::Interrupt;
        }
        Step::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checks, counted from 1, at which something is done about a script that never waits, if its worker waits for
    /// a CPU in this many of every ten checks.
    fn steps(starved: u64) -> Vec<(u64, Step)> {
        let (mut hold, mut waited) = (Hold::default(), Nanos::ZERO);
        hold.look(1, waited, Nanos::from_secs(3));
        let mut steps = Vec::new();
        for look in 1..=60 {
            if look % 10 < starved {
                waited += WATCH_EVERY;
            }
            match hold.look(1, waited, Nanos::from_secs(3)) {
                Step::Wait => {}
                step => steps.push((look, step)),
            }
        }
        steps
    }

    #[test]
    fn a_script_that_holds_its_worker_is_named_and_interrupted_until_it_stops() {
        use Step::*;
        assert_eq!(
            steps(0),
            [(10, Inspect), (11, Name), (30, Interrupt), (40, Interrupt), (50, Interrupt), (60, Interrupt)]
        );
    }

    #[test]
    fn a_worker_that_waits_for_a_cpu_is_held_by_no_script() {
        use Step::*;
        // Half of the time it could not run: everything happens when the script has had its time.
        assert_eq!(steps(5), [(19, Inspect), (25, Name), (59, Interrupt)]);
        assert_eq!(steps(10), []);
    }

    #[test]
    fn a_script_that_waits_in_between_is_left_alone() {
        let mut hold = Hold::default();
        for look in 0..100 {
            // Another resume every half second; asleep in the second half.
            let generation = 2 * (look / 5) + u64::from(look < 50);
            assert_eq!(hold.look(generation, Nanos::ZERO, Nanos::from_secs(3)), Step::Wait, "{look}");
        }
    }
}
