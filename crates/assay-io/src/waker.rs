//! Wakes a sleeping event loop from another thread.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Wakes one `Io`. Cheap to clone; waking a loop that is gone does nothing.
#[derive(Clone, Debug)]
pub struct Waker(Means);

#[derive(Clone, Debug)]
enum Means {
    /// An eventfd in the loop's epoll set; it outlives the loop.
    Eventfd(Arc<mio::Waker>),
    /// An eventfd that a loop over io_uring reads.
    Descriptor(Arc<OwnedFd>),
    /// Checked by the next `wait` of a simulated loop, which never sleeps.
    Flag(Arc<AtomicBool>),
}

impl Waker {
    pub(crate) fn eventfd(waker: mio::Waker) -> Waker {
        Waker(Means::Eventfd(Arc::new(waker)))
    }

    pub(crate) fn descriptor(eventfd: Arc<OwnedFd>) -> Waker {
        Waker(Means::Descriptor(eventfd))
    }

    /// For a loop that never sleeps and checks the flag instead: a simulated one.
    pub fn flag(flag: Arc<AtomicBool>) -> Waker {
        Waker(Means::Flag(flag))
    }

    /// Makes the current or next `wait` of the loop return immediately.
    pub fn wake(&self) {
        match &self.0 {
            // Writing to an eventfd that we hold open fails only if its counter is full, and then the loop is being
            // woken anyway.
            Means::Eventfd(waker) => drop(waker.wake()),
            Means::Descriptor(eventfd) => {
                let one = 1_u64;
                // SAFETY: eight readable bytes; failures are as above.
                unsafe { libc::write(eventfd.as_raw_fd(), (&raw const one).cast(), 8) };
            }
            Means::Flag(flag) => flag.store(true, Ordering::Release),
        }
    }
}
