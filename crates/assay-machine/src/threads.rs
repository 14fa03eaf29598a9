//! The scheduler: an event repeatedly takes one of a few locks and yields the CPU while holding it.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{Counts, MachineFault, MachineTest, TestThread};

/// A lock of the C library, as C programs have it: Rust's own spins before it sleeps, which would be another test.
pub(crate) struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a pthread mutex is made to be used by many threads, and may move to another before its first use.
unsafe impl Send for Lock {}
// SAFETY: as above.
unsafe impl Sync for Lock {}

impl Lock {
    pub(crate) fn new() -> Lock {
        Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    /// Does `work` while holding the lock.
    #[inline]
    pub(crate) fn with(&self, work: impl FnOnce()) {
        // SAFETY: initialized above; unlocked by the thread that locked it, since `work` is ours and does not panic;
        // both tests keep their locks in a vector behind an `Arc` that is complete before any is taken, so none moves.
        unsafe {
            libc::pthread_mutex_lock(self.0.get());
            work();
            libc::pthread_mutex_unlock(self.0.get());
        }
    }
}

/// What an event does.
pub struct Threads {
    yields: u64,
    locks: Vec<Lock>,
    events: AtomicU64,
}

impl Threads {
    /// `yields` times per event; events take the `locks` in turn. 1 <= locks.
    pub fn new(yields: u64, locks: usize) -> Threads {
        assert!(locks > 0, "there is a lock to take");
        Threads { yields, locks: (0..locks).map(|_| Lock::new()).collect(), events: AtomicU64::new(0) }
    }
}

/// One of the threads.
pub struct YieldingThread(Arc<Threads>);

impl MachineTest for Threads {
    type Worker = YieldingThread;

    fn worker(self: &Arc<Self>, _: u32) -> Result<YieldingThread, MachineFault> {
        Ok(YieldingThread(self.clone()))
    }
}

impl TestThread for YieldingThread {
    type Request = usize;

    fn next(&mut self) -> Option<usize> {
        Some((self.0.events.fetch_add(1, Relaxed) % self.0.locks.len() as u64) as usize)
    }

    fn execute(&mut self, lock: usize, _: &Counts) -> Result<(), MachineFault> {
        for _ in 0..self.0.yields {
            self.0.locks[lock].with(std::thread::yield_now);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_take_the_locks_in_turn() {
        let test = Arc::new(Threads::new(3, 4));
        let (mut a, mut b) = (test.worker(0).unwrap(), test.worker(1).unwrap());
        let taken: Vec<_> = (0..6).map(|i| if i % 2 == 0 { a.next() } else { b.next() }.unwrap()).collect();
        assert_eq!(taken, [0, 1, 2, 3, 0, 1]);
        a.execute(0, &Counts::default()).unwrap();
    }
}
