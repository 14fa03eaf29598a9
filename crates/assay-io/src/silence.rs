//! Detects whether the machine at the other end of a TCP connection is still there.
//!
//! A machine that lost its power or its network sends nothing, and the local kernel does not report it: it retransmits
//! unacknowledged bytes for a quarter of an hour, and probes an idle peer only after two hours. Here idle peers are
//! probed in time (`keep_alive`), and while waiting for an answer one can ask when the other kernel last acknowledged
//! anything (`is_silent`). A server that is busy or stopped is not silent: its kernel acknowledges for it.
//!
//! Rejected: `TCP_USER_TIMEOUT`. It also ends a connection if the other kernel answers but its server does not read for
//! that long (a closed window), as in a load while the server waits for its disk.

use std::io;
use std::mem;
use std::os::fd::RawFd;

use assay_seam::Nanos;

/// How often an idle peer is probed before it counts as gone.
const QUESTIONS: u64 = 3;

/// Lets the kernel probe an idle peer, and end the connection (`ETIMEDOUT`) when nothing was acknowledged for `limit`:
/// whole seconds, at least 2. Fails for anything but a TCP socket.
pub(crate) fn keep_alive(fd: RawFd, limit: Nanos) -> io::Result<()> {
    let (idle, pause, questions) = questions(limit);
    set(fd, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, idle)?;
    set(fd, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, pause)?;
    set(fd, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, questions)?;
    set(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)
}

/// Idle seconds before the first probe, seconds between probes, and their number. Their sum, idle + pause × probes, is
/// the limit.
fn questions(limit: Nanos) -> (i32, i32, i32) {
    // The kernel's limit is 32,767 s.
    let seconds = limit.as_secs_f64().round().clamp(2.0, 32_767.0) as u64;
    let questions = QUESTIONS.min(seconds - 1);
    let pause = (seconds / 2 / questions).max(1);
    let [idle, pause, questions] = [seconds - pause * questions, pause, questions].map(|value| value as i32);
    (idle, pause, questions)
}

/// Whether the other kernel was sent something and has acknowledged nothing for `limit`. Once is not enough: a probe
/// may just have been sent, the first after a long pause.
pub(crate) fn is_silent(fd: RawFd, limit: Nanos) -> bool {
    // SAFETY: all fields are numbers, and every number may be zero.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = mem::size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`.
    let result =
        unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut length) };
    // Bytes in flight, or probes of a closed window.
    let asked = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
    let last_word = info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv);
    result == 0 && asked && Nanos::from_millis(last_word.into()) >= limit
}

fn set(fd: RawFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    let length = mem::size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `value`.
    match unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_to_an_idle_peer_fill_the_limit() {
        for (seconds, expected) in
            [(2, (1, 1, 1)), (3, (1, 1, 2)), (5, (2, 1, 3)), (30, (15, 5, 3)), (3600, (1800, 600, 3))]
        {
            let (idle, pause, count) = questions(Nanos::from_secs(seconds));
            assert_eq!((idle, pause, count), expected, "{seconds} s");
            assert_eq!(idle + pause * count, seconds as i32);
        }
    }
}
