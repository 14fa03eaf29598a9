//! Socket addresses, resolved before the measured path starts.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use assay_seam::Endpoint;

use crate::os_error;

/// A place a socket can connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An IP address and port.
    Tcp(SocketAddr),
    /// A unix socket's path.
    Unix(PathBuf),
}

impl Address {
    /// Resolves an endpoint; a host name may have several addresses, in the order to try them. Blocks on the
    /// resolver: call it before a run. An embedded endpoint has none.
    pub fn resolve(endpoint: &Endpoint) -> Result<Vec<Address>, ConnectError> {
        match endpoint {
            Endpoint::Embedded => Ok(Vec::new()),
            Endpoint::Unix(path) => Ok(vec![Address::Unix(path.clone())]),
            Endpoint::Tcp { host, port } => {
                // `[::1]` is how URLs write it.
                let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
                let unknown = |why: String| ConnectError {
                    message: format!("looking up the host {host}: {why}"),
                    hint: Some("check the spelling of the host name, or use an IP address".into()),
                };
                let found = (bare, *port).to_socket_addrs().map_err(|error| unknown(os_error::words(&error)))?;
                let mut addresses = Vec::new();
                for address in found.map(Address::Tcp) {
                    if !addresses.contains(&address) {
                        addresses.push(address);
                    }
                }
                if addresses.is_empty() { Err(unknown("it has no address".into())) } else { Ok(addresses) }
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

/// A connect that could not even be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    /// What failed, with the address and the system's message.
    pub message: String,
    /// What to do about it (a limit and how to raise it), if known.
    pub hint: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str) -> Result<Vec<Address>, ConnectError> {
        Address::resolve(&Endpoint::Tcp { host: host.into(), port: 5432 })
    }

    #[test]
    fn numeric_addresses_resolve_to_themselves() {
        assert_eq!(tcp("127.0.0.1").unwrap(), [Address::Tcp("127.0.0.1:5432".parse().unwrap())]);
        assert_eq!(tcp("::1").unwrap(), [Address::Tcp("[::1]:5432".parse().unwrap())]);
        assert_eq!(tcp("[::1]").unwrap(), tcp("::1").unwrap());
    }

    #[test]
    fn localhost_resolves_to_loopback_without_repetition() {
        let found = tcp("localhost").unwrap();
        assert!(!found.is_empty());
        for (i, address) in found.iter().enumerate() {
            assert!(matches!(address, Address::Tcp(address) if address.ip().is_loopback()));
            assert!(!found[..i].contains(address));
        }
    }

    #[test]
    fn a_name_longer_than_names_can_be_is_refused_by_name() {
        let error = tcp(&"x".repeat(70)).unwrap_err();
        assert!(error.message.starts_with("looking up the host xxxx"), "{}", error.message);
        assert!(error.hint.is_some());
    }

    #[test]
    fn paths_resolve_to_themselves_and_embedded_databases_to_nothing() {
        let path = PathBuf::from("/run/db.sock");
        assert_eq!(Address::resolve(&Endpoint::Unix(path.clone())).unwrap(), [Address::Unix(path)]);
        assert_eq!(Address::resolve(&Endpoint::Embedded).unwrap(), []);
    }
}
