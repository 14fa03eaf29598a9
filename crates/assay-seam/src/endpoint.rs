//! Where a server is.

use std::path::PathBuf;

/// Where to connect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Host name or address, and port.
    Tcp {
        /// As written by the user; `assay-io` resolves it.
        host: String,
        /// 1 … 65535.
        port: u16,
    },
    /// A unix socket's path.
    Unix(PathBuf),
    /// No socket: the database runs inside this process.
    Embedded,
}
