//! A non-blocking client socket, TCP or unix.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};

use assay_seam::Nanos;
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use crate::{Address, silence};

/// How long `Stream::read_waiting` waits. The kernel rounds up to its ticks of up to 10 ms.
pub(crate) const PATIENCE: Nanos = Nanos(10_000_000);

#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Starts to connect. A unix socket connects immediately or not at all.
    pub(crate) fn connect(address: &Address) -> io::Result<Stream> {
        match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(*address)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path)?)),
        }
    }

    /// Whether a connect has succeeded; false: not decided yet.
    pub(crate) fn connected(&self) -> io::Result<bool> {
        let Stream::Tcp(stream) = self else { return Ok(true) };
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// See `Io::keep_alive`.
    pub(crate) fn keep_alive(&self, limit: Nanos) {
        if let Stream::Tcp(stream) = self {
            // Only a socket that is gone refuses, which is reported otherwise.
            let _ = silence::keep_alive(stream.as_raw_fd(), limit);
        }
    }

    /// Whether the peer's machine was sent something and has acknowledged nothing for `limit`.
    pub(crate) fn is_silent(&self, limit: Nanos) -> bool {
        matches!(self, Stream::Tcp(stream) if silence::is_silent(stream.as_raw_fd(), limit))
    }

    /// Reads what the kernel has, as much as fits into `buffer`.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer, libc::MSG_DONTWAIT)
    }

    /// Waits for bytes, `PATIENCE` at most, and reads as many as fit into `buffer`. `WouldBlock`: none came. Once for
    /// each socket, `will_block` is called before.
    pub(crate) fn read_waiting(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer, 0)
    }

    fn receive(&mut self, buffer: &mut [u8], flags: libc::c_int) -> io::Result<usize> {
        // SAFETY: the pointer and the length are those of `buffer`, which lives through the call.
        let n = unsafe { libc::recv(self.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }

    /// Prepares `read_waiting`. All other calls say for themselves that they do not wait.
    pub(crate) fn will_block(&self) -> io::Result<()> {
        let limit = libc::timeval { tv_sec: 0, tv_usec: (PATIENCE.0 / 1000) as libc::suseconds_t };
        let size = size_of_val(&limit) as libc::socklen_t;
        let fd = self.as_raw_fd();
        // SAFETY: `limit` lives through the call, and `size` is its size.
        let set = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const limit).cast(), size) };
        // SAFETY: no pointers are passed.
        if set != 0 || unsafe { libc::fcntl(fd, libc::F_SETFL, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Writes as much as the kernel accepts without waiting.
    pub(crate) fn write_all_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while let rest @ [_, ..] = &bytes[written..] {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: the pointer and the length are those of `rest`, which lives through the call.
            let n = unsafe { libc::send(self.as_raw_fd(), rest.as_ptr().cast(), rest.len(), flags) };
            match usize::try_from(n).map_err(|_| io::Error::last_os_error()) {
                Ok(n) => written += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }
}

impl Source for Stream {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.register(registry, token, interests),
            Stream::Unix(stream) => stream.register(registry, token, interests),
        }
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.reregister(registry, token, interests),
            Stream::Unix(stream) => stream.reregister(registry, token, interests),
        }
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.deregister(registry),
            Stream::Unix(stream) => stream.deregister(registry),
        }
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
        }
    }
}
