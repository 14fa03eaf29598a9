//! What the kernel's error numbers mean for the user of a load generator, and what to do about them.

use std::io;

use crate::Closed;
use crate::address::{Address, ConnectError};
use crate::os_error::words;
use crate::process;

/// A connect that failed, immediately or later.
pub(crate) fn connecting(address: &Address, error: &io::Error) -> ConnectError {
    ConnectError { message: format!("connecting to {address}: {}", words(error)), hint: advice(address, error) }
}

/// An established connection that broke.
pub(crate) fn lost(address: &Address, error: &io::Error) -> Closed {
    match error.raw_os_error() {
        // The kernel's error depends on where its packets got stuck.
        Some(libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EHOSTDOWN) => Closed {
            message: format!("lost the connection to {address}: its host no longer answers"),
            hint: Some(
                "the server's machine is down, or the network drops packets; `--network-timeout` sets how long to wait for a response from the host"
                    .into(),
            ),
            tls: false,
        },
        _ => Closed { message: format!("lost the connection to {address}: {}", words(error)), hint: None, tls: false },
    }
}

/// A connection that the peer closed gracefully.
pub(crate) fn closed_by_peer(address: &Address) -> Closed {
    Closed { message: format!("{address} closed the connection"), hint: None, tls: false }
}

impl From<ConnectError> for Closed {
    fn from(error: ConnectError) -> Closed {
        Closed { message: error.message, hint: error.hint, tls: false }
    }
}

fn advice(address: &Address, error: &io::Error) -> Option<String> {
    let unix = matches!(address, Address::Unix(_));
    Some(match error.raw_os_error()? {
        libc::ECONNREFUSED if unix => {
            "no server is listening on this socket file: start the server, or use its current socket".into()
        }
        libc::ENOENT if unix => {
            "there is no such socket file: start the server, or check the socket path in its configuration".into()
        }
        libc::EACCES if unix => "this user may not write to the socket file or enter its folder".into(),
        libc::EAGAIN if unix => "the server's connection queue is full: connect more slowly (`--connect-rate`), or raise the server's listen backlog and net.core.somaxconn"
            .into(),
        libc::ECONNREFUSED => "check that the server is running and listening on this address and port".into(),
        libc::ETIMEDOUT => "a firewall may drop the packets, or the server's accept queue is full: check \
             the address, connect more slowly (`--connect-rate`), or raise the server's listen backlog"
            .into(),
        libc::EHOSTUNREACH | libc::ENETUNREACH => "check the address, the routes and the firewall".into(),
        // Linux also returns EADDRNOTAVAIL for an address that no interface has; when connecting to a target, only one
        // of the two is possible.
        libc::EADDRNOTAVAIL => {
            let range = process::local_ports().map(|(first, last)| format!(" (now {first} to {last})"));
            format!(
                "this machine has no local port left for connections to this address: widen \
                 net.ipv4.ip_local_port_range{}, give the server more addresses to listen on, or use a unix socket",
                range.unwrap_or_default()
            )
        }
        libc::EMFILE => {
            let limit = process::FilesLimit::get().map(|limit| format!(" of {}", limit.soft));
            format!("this process has reached its limit{} open files: raise `ulimit -n`", limit.unwrap_or_default())
        }
        libc::ENFILE => "this machine has reached its limit of open files: raise fs.file-max".into(),
        libc::ENOBUFS | libc::ENOMEM => "the kernel has no memory for more sockets: use fewer sessions".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_named_with_how_to_raise_them() {
        let tcp = Address::Tcp("127.0.0.1:5432".parse().unwrap());
        let unix = Address::Unix("/run/db.sock".into());
        for (address, errno, hint) in [
            (&tcp, libc::EADDRNOTAVAIL, "net.ipv4.ip_local_port_range (now "),
            (&tcp, libc::EMFILE, "ulimit -n"),
            (&tcp, libc::ENFILE, "fs.file-max"),
            (&tcp, libc::ETIMEDOUT, "firewall"),
            (&tcp, libc::EHOSTUNREACH, "routes"),
            (&unix, libc::EAGAIN, "net.core.somaxconn"),
            (&unix, libc::EACCES, "may not write"),
        ] {
            let error = connecting(address, &io::Error::from_raw_os_error(errno));
            assert!(error.hint.as_ref().is_some_and(|text| text.contains(hint)), "{error:?}");
            assert!(error.message.starts_with(&format!("connecting to {address}: ")), "{error}");
            assert!(!error.message.contains("os error"), "{error}");
        }
    }
}
