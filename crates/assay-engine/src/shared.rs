//! The little that workers share: counters and barriers. Locks are taken only by commands (loading), or when a
//! transaction type or counter is first used, never per statement.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use assay_io::Waker;
use assay_measure::Work;
use assay_script::Guard;
use assay_seam::Nanos;

use crate::fleet::Fleet;

/// Shared by the workers of one run.
#[derive(Default)]
pub(crate) struct Shared {
    /// Measured transactions that were started in the current stage of a closed loop, if their number is limited.
    pub(crate) begun: AtomicU64,
    /// Rows loaded, and rows the script expects to load.
    pub(crate) loaded: AtomicU64,
    pub(crate) expected: AtomicU64,
    /// Connections dealt to targets.
    pub(crate) dealt: AtomicUsize,
    /// From this instant on no script may run: the watchdog interrupts those that do. Zero: not yet.
    scripts_end: AtomicU64,
    types: Mutex<Vec<String>>,
    counters: Mutex<Vec<String>>,
    /// What the workers that have finished did.
    work: Mutex<Work>,
    claims: Mutex<HashMap<Vec<u8>, u64>>,
    /// The processes that take part in claims and barriers too.
    fleet: Option<Arc<dyn Fleet>>,
    /// What is asked of them refers back to this.
    this: Weak<Shared>,
    /// Numbers that the fleet has granted, by claim, until they are taken; and how many it was asked for.
    granted: Mutex<(HashMap<u64, u64>, u64)>,
    meeting: Mutex<Meeting>,
    wakers: Mutex<Vec<Waker>>,
    /// With the number of the worker they run on.
    guards: Mutex<Vec<(usize, Guard)>>,
    looks: Mutex<Looks>,
}

/// When the watchdog looked around, which it does ten times a second.
#[derive(Debug, Default)]
struct Looks {
    last: Option<Nanos>,
    halts: Vec<(Nanos, Nanos)>,
}

/// This long without a look, the process did not run.
const HALT: Nanos = Nanos::from_millis(500);

fn halt_between(one: Nanos, next: Nanos) -> Option<(Nanos, Nanos)> {
    (next - one >= HALT).then_some((one, next))
}

#[derive(Debug, Default)]
struct Meeting {
    /// Sessions that have not ended.
    alive: u32,
    arrived: u32,
    generation: u64,
    /// Set for good by an error that ends the run.
    broken: bool,
    /// The other agents are waited for.
    announced: bool,
}

/// What becomes of a claim.
pub(crate) enum Claim {
    /// The number.
    Granted(u64),
    /// The fleet was asked; `Shared::granted` tells when it has answered.
    Asked(u64),
}

impl Shared {
    /// For a run of a workload of this name, with `sessions` sessions in this process.
    pub(crate) fn new(workload: &str, sessions: u32, fleet: Option<Arc<dyn Fleet>>) -> Arc<Shared> {
        let shared = Arc::new_cyclic(|this| Shared { fleet, this: this.clone(), ..Shared::default() });
        lock(&shared.types).push(workload.to_owned());
        lock(&shared.meeting).alive = sessions;
        if let (0, Some(fleet)) = (sessions, &shared.fleet) {
            fleet.leave();
        }
        shared
    }

    /// Index of a transaction type over the whole run.
    pub(crate) fn type_index(&self, name: &str) -> usize {
        index_of(name, &mut lock(&self.types))
    }

    /// Index of a counter over the whole run.
    pub(crate) fn counter_index(&self, name: &str) -> usize {
        index_of(name, &mut lock(&self.counters))
    }

    /// Names of all counters used so far.
    pub(crate) fn counters(&self) -> Vec<String> {
        lock(&self.counters).clone()
    }

    /// Names of all transaction types used so far.
    pub(crate) fn types(&self) -> Vec<String> {
        lock(&self.types).clone()
    }

    /// The watchdog looks around.
    pub(crate) fn look(&self, now: Nanos) {
        let looks = &mut *lock(&self.looks);
        looks.halts.extend(looks.last.and_then(|last| halt_between(last, now)));
        looks.last = Some(now);
    }

    /// When the process did not run, ascending, from and to; `None`: nobody has looked. One that has ended just now
    /// counts, too.
    pub(crate) fn halts(&self, now: Nanos) -> Option<Vec<(Nanos, Nanos)>> {
        let looks = lock(&self.looks);
        let last = looks.last?;
        Some(looks.halts.iter().copied().chain(halt_between(last, now)).collect())
    }

    /// Adds what a worker did in the whole run.
    pub(crate) fn add_work(&self, work: &Work) {
        lock(&self.work).add(work);
    }

    /// What all workers did.
    pub(crate) fn work(&self) -> Work {
        lock(&self.work).clone()
    }

    /// The next number of a named counter, from 0.
    pub(crate) fn claim(&self, name: &[u8]) -> Claim {
        if let Some(fleet) = &self.fleet {
            let claim = {
                let (_, asked) = &mut *lock(&self.granted);
                *asked += 1;
                *asked
            };
            let this = self.this.clone();
            let granted = move |number| {
                if let Some(shared) = this.upgrade() {
                    lock(&shared.granted).0.insert(claim, number);
                    shared.wake_all();
                }
            };
            fleet.claim(name, Box::new(granted));
            return Claim::Asked(claim);
        }
        let mut claims = lock(&self.claims);
        if let Some(next) = claims.get_mut(name) {
            *next += 1;
            return Claim::Granted(*next);
        }
        claims.insert(name.to_owned(), 0);
        Claim::Granted(0)
    }

    /// The number of a claim, once.
    pub(crate) fn granted(&self, claim: u64) -> Option<u64> {
        lock(&self.granted).0.remove(&claim)
    }

    /// A session arrives at the barrier; returns the generation to wait for (`passed` says when it has opened).
    pub(crate) fn arrive(&self) -> u64 {
        let mut meeting = lock(&self.meeting);
        meeting.arrived += 1;
        let awaited = meeting.generation + 1;
        self.open_if_complete(&mut meeting);
        awaited
    }

    /// Whether the barrier of that generation has opened.
    pub(crate) fn passed(&self, generation: u64) -> bool {
        lock(&self.meeting).generation >= generation
    }

    /// A session ended and will arrive at no barrier again.
    pub(crate) fn leave(&self) {
        let mut meeting = lock(&self.meeting);
        meeting.alive = meeting.alive.saturating_sub(1);
        self.open_if_complete(&mut meeting);
        if let (0, Some(fleet)) = (meeting.alive, &self.fleet) {
            fleet.leave();
        }
    }

    /// A session failed, and the run ends. The barrier does not open for the others, which would continue without what
    /// that session had to do first; they leave it when the run ends.
    pub(crate) fn break_barrier(&self) {
        lock(&self.meeting).broken = true;
    }

    fn open_if_complete(&self, meeting: &mut Meeting) {
        if meeting.broken || meeting.arrived == 0 || meeting.arrived < meeting.alive {
            return;
        }
        let Some(fleet) = &self.fleet else { return self.open(meeting) };
        if !std::mem::replace(&mut meeting.announced, true) {
            let this = self.this.clone();
            let opened = move || {
                if let Some(shared) = this.upgrade() {
                    let mut meeting = lock(&shared.meeting);
                    meeting.announced = false;
                    shared.open(&mut meeting);
                }
            };
            fleet.arrive(meeting.generation + 1, Box::new(opened));
        }
    }

    fn open(&self, meeting: &mut Meeting) {
        meeting.arrived = 0;
        meeting.generation += 1;
        self.wake_all();
    }

    /// Registers a worker's waker.
    pub(crate) fn add_waker(&self, waker: Waker) {
        lock(&self.wakers).push(waker);
    }

    /// Interrupts every worker's sleep.
    pub(crate) fn wake_all(&self) {
        for waker in lock(&self.wakers).iter() {
            waker.wake();
        }
    }

    /// Registers a Lua state of a worker with the watchdog.
    pub(crate) fn add_guard(&self, worker: usize, guard: Guard) {
        lock(&self.guards).push((worker, guard));
    }

    /// Until when scripts may run. `MAX`: no limit yet.
    pub(crate) fn end_scripts_at(&self, instant: Nanos) {
        self.scripts_end.store(if instant == Nanos::MAX { 0 } else { instant.0.max(1) }, Ordering::Relaxed);
    }

    /// Whether scripts should have ended by now.
    pub(crate) fn is_overdue(&self, now: Nanos) -> bool {
        let end = self.scripts_end.load(Ordering::Relaxed);
        end != 0 && now.0 >= end
    }

    /// The call of a script in which a worker is; `None`: it is in none.
    pub(crate) fn call_of(&self, worker: usize) -> Option<u64> {
        let guards = self.guards();
        let mut calls = guards.iter().filter(|(of, _)| *of == worker).map(|(_, guard)| guard.generation());
        calls.find(|generation| generation % 2 == 1)
    }

    /// All Lua states.
    pub(crate) fn guards(&self) -> MutexGuard<'_, Vec<(usize, Guard)>> {
        lock(&self.guards)
    }

    /// Claims one of `limit` measured transactions; whether one was left.
    pub(crate) fn claim_one_of(&self, limit: u64) -> bool {
        self.begun.load(Ordering::Relaxed) < limit && self.begun.fetch_add(1, Ordering::Relaxed) < limit
    }
}

/// The index of `name`, which is appended if it is new.
fn index_of(name: &str, names: &mut Vec<String>) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// A poisoned lock only means that another thread panicked, which ends the run anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_opens_when_all_are_there_and_never_after_a_failure() {
        let shared = Shared::new("any", 3, None);
        let first = shared.arrive();
        shared.arrive();
        assert!(!shared.passed(first));
        // A session that has nothing more to do is not waited for.
        shared.leave();
        assert!(shared.passed(first));
        let second = shared.arrive();
        shared.break_barrier();
        shared.leave();
        assert!(!shared.passed(second));
    }

    #[test]
    fn long_times_without_a_look_are_halts() {
        let (shared, at) = (Shared::new("any", 1, None), |ms: u64| Nanos::from_millis(ms));
        assert_eq!(shared.halts(at(5000)), None);
        for ms in [100, 200, 699, 1199, 1300] {
            shared.look(at(ms));
        }
        assert_eq!(shared.halts(at(1799)), Some(vec![(at(699), at(1199))]));
        assert_eq!(shared.halts(at(1800)), Some(vec![(at(699), at(1199)), (at(1300), at(1800))]));
        shared.look(at(1799));
        assert_eq!(shared.halts(at(1800)), Some(vec![(at(699), at(1199))]));
    }
}
