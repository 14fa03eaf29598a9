//! The kernel's event loop, in one of two forms.

use std::fmt;
use std::io;
use std::sync::Arc;

use assay_seam::Nanos;

use crate::{Address, Clock, ConnectError, Io, IoEvent, Readiness, SocketId, Tls, Uring, Waker, readiness, uring};

/// A kind of event loop over the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Always available.
    Epoll,
    /// Cheaper, if the kernel supports and allows it.
    Uring,
}

/// With fewer sessions per worker epoll is cheaper: docs/performance.md has the measurements.
pub const SESSIONS_FOR_URING: usize = 8;

impl Backend {
    /// io_uring if it pays and is available, else epoll; with the reason if it would pay but is not available. It pays
    /// from some number of sessions per worker on: it saves system calls that many statements can share.
    pub fn best(sessions: usize, workers: usize) -> (Backend, Option<String>) {
        if sessions < SESSIONS_FOR_URING.saturating_mul(workers) {
            return (Backend::Epoll, None);
        }
        match Uring::new(Clock::start(), 1) {
            Ok(_) => (Backend::Uring, None),
            Err(error) => (Backend::Epoll, Some(uring::explain(&error))),
        }
    }

    /// Events handled before the resulting sends are submitted (io_uring), or before the kernel is asked for more
    /// (epoll).
    pub fn batch_default(self) -> usize {
        match self {
            Backend::Epoll => readiness::BATCH_MAX,
            Backend::Uring => uring::BATCH_MAX,
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Epoll => "epoll",
            Backend::Uring => "io_uring",
        })
    }
}

/// One worker's event loop over the kernel.
// Boxed, because the two differ in size and a worker holds one.
pub enum Kernel {
    /// Over epoll.
    Epoll(Box<Readiness>),
    /// Over io_uring.
    Uring(Box<Uring>),
}

macro_rules! either {
    ($this:expr, $io:ident => $call:expr) => {
        match $this {
            Kernel::Epoll($io) => $call,
            Kernel::Uring($io) => $call,
        }
    };
}

impl Kernel {
    /// An event loop of the calling thread whose instants are those of `clock`. `batch_max`: see `batch_default`, at
    /// least 1.
    pub fn new(backend: Backend, clock: Clock, batch_max: usize) -> io::Result<Kernel> {
        Ok(match backend {
            Backend::Epoll => Kernel::Epoll(Box::new(Readiness::new(clock, batch_max)?)),
            Backend::Uring => Kernel::Uring(Box::new(Uring::new(clock, batch_max)?)),
        })
    }

    /// Has `wait` look for events for this long before it sleeps: a CPU that sleeps takes a while to wake up, which is
    /// measured as part of the reply's latency. It costs that CPU meanwhile.
    pub fn polling(mut self, polls: Nanos) -> Kernel {
        either!(&mut self, io => io.polls = polls);
        self
    }
}

impl Io for Kernel {
    fn now(&self) -> Nanos {
        either!(self, io => io.now())
    }

    fn received_at(&self) -> Nanos {
        either!(self, io => io.received_at())
    }

    fn connect(&mut self, address: &Address, tls: Option<&Arc<Tls>>) -> Result<SocketId, ConnectError> {
        either!(self, io => io.connect(address, tls))
    }

    fn send(&mut self, socket: SocketId, bytes: &[u8]) {
        either!(self, io => io.send(socket, bytes))
    }

    fn start_tls(&mut self, socket: SocketId) {
        either!(self, io => io.start_tls(socket))
    }

    fn keep_alive(&mut self, socket: SocketId, limit: Nanos) {
        either!(self, io => io.keep_alive(socket, limit))
    }

    fn close_if_silent(&mut self, socket: SocketId, limit: Nanos) {
        either!(self, io => io.close_if_silent(socket, limit))
    }

    fn close(&mut self, socket: SocketId) {
        either!(self, io => io.close(socket))
    }

    fn wait(&mut self, until: Option<Nanos>) -> io::Result<()> {
        either!(self, io => io.wait(until))
    }

    fn polled(&self) -> Nanos {
        either!(self, io => io.polled())
    }

    fn next_event(&mut self) -> Option<IoEvent> {
        either!(self, io => io.next_event())
    }

    fn received(&self) -> &[u8] {
        either!(self, io => io.received())
    }

    fn waker(&self) -> Waker {
        either!(self, io => io.waker())
    }
}
