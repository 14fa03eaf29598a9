//! Locks: each thread has one event, which takes many randomly chosen locks, with empty loops in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::barrier::opaque;
use crate::random::WorkerRandom;
use crate::threads::Lock;
use crate::{Counts, MachineFault, MachineTest, TestThread};

/// A lock and what it protects, alone in their cache lines.
#[repr(align(256))]
struct Protected {
    lock: Lock,
    taken: AtomicU64,
}

/// What an event does.
pub struct Mutexes {
    locks: Vec<Protected>,
    rounds: u64,
    loops: usize,
    seed: u64,
}

impl Mutexes {
    /// Takes one of `locks` locks (at least one) `rounds` times, each time after `loops` empty loops.
    pub fn new(locks: usize, rounds: u64, loops: usize, seed: u64) -> Mutexes {
        assert!(locks > 0, "there is a lock to take");
        let locks = (0..locks).map(|_| Protected { lock: Lock::new(), taken: AtomicU64::new(0) }).collect();
        Mutexes { locks, rounds, loops, seed }
    }
}

/// One of the threads, and whether it still has its event.
pub struct LockingThread {
    test: Arc<Mutexes>,
    random: WorkerRandom,
    to_do: bool,
}

impl MachineTest for Mutexes {
    type Worker = LockingThread;

    fn worker(self: &Arc<Self>, id: u32) -> Result<LockingThread, MachineFault> {
        Ok(LockingThread { test: self.clone(), random: WorkerRandom::new(self.seed, u64::from(id)), to_do: true })
    }
}

impl TestThread for LockingThread {
    type Request = ();

    fn next(&mut self) -> Option<()> {
        std::mem::take(&mut self.to_do).then_some(())
    }

    fn execute(&mut self, (): (), _: &Counts) -> Result<(), MachineFault> {
        for _ in 0..self.test.rounds {
            let mut i = 0;
            while i < self.test.loops {
                i = opaque(i + 1);
            }
            let Protected { lock, taken } = &self.test.locks[self.random.below(self.test.locks.len() as u64) as usize];
            lock.with(|| taken.store(taken.load(Relaxed) + 1, Relaxed));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_one_event_which_takes_so_many_locks() {
        let test = Arc::new(Mutexes::new(4, 1000, 3, 1));
        let mut worker = test.worker(0).unwrap();
        let request = worker.next();
        assert_eq!(request, Some(()));
        worker.execute((), &Counts::default()).unwrap();
        assert_eq!(test.locks.iter().map(|one| one.taken.load(Relaxed)).sum::<u64>(), 1000);
        assert_eq!(worker.next(), None);
    }
}
