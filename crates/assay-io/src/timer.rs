//! Timers more precise than epoll's milliseconds.
//!
//! A timerfd in the epoll set: it expires with the precision of the hardware timer, while an epoll timeout is rounded
//! up to a millisecond and then delayed by the thread's timer slack (50 µs). It costs one system call when the instant
//! changes, otherwise none. Rejected: epoll_pwait2, which is newer than the kernels we run on and has the same slack;
//! polling before the instant, which takes the CPU from a server on the same machine.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use assay_seam::Nanos;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

/// A one-shot timer that makes its poll return.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: OwnedFd,
}

impl Timer {
    /// Registered edge-triggered: setting it again resets its count, so it is never read.
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Timer> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so `fd` is an open descriptor that nothing else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Timer { fd })
    }

    /// Expires once, `after` from now; zero means the shortest possible time. Replaces the previous setting.
    pub(crate) fn set(&self, after: Nanos) -> io::Result<()> {
        let after = after.0.max(1); // an all-zero time would disarm it
        let spec = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: (after / 1_000_000_000) as libc::time_t,
                tv_nsec: (after % 1_000_000_000) as libc::c_long,
            },
        };
        // SAFETY: `spec` lives through the call, the old value is not asked for.
        match unsafe { libc::timerfd_settime(self.fd.as_raw_fd(), 0, &spec, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
