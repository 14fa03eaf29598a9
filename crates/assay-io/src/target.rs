//! A database with its addresses and how to encrypt, resolved from its endpoints.

use std::sync::Arc;

use assay_seam::{Database, Endpoint, TlsMode};

use crate::address::{Address, ConnectError};
use crate::tls::Tls;

/// One server.
#[derive(Clone)]
pub struct Target {
    /// How to log in, and which protocol.
    pub database: Arc<dyn Database>,
    /// Resolved addresses, tried in order. Empty for an embedded database.
    pub addresses: Vec<Address>,
    /// How to encrypt; `None` if the database's settings never want it.
    pub tls: Option<Arc<Tls>>,
}

/// Why a database is not a target.
#[derive(Debug)]
pub enum Unresolved {
    /// Its TLS settings cannot be used: a file is missing or wrong.
    Tls(ConnectError),
    /// An endpoint has no address.
    Address(Endpoint, ConnectError),
}

/// How many endpoints of a database must have an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeededEndpoints {
    /// Every one.
    All,
    /// At least one.
    Any,
}

impl Target {
    /// Reads the files for TLS and looks up every endpoint, in order, by `look_up`.
    pub fn resolve(
        database: Box<dyn Database>,
        needed: NeededEndpoints,
        mut look_up: impl FnMut(&Endpoint) -> Result<Vec<Address>, ConnectError>,
    ) -> Result<Target, Unresolved> {
        let settings = database.tls();
        let tls = match settings.mode {
            TlsMode::Disable => None,
            _ => Some(Arc::new(Tls::new(&settings).map_err(Unresolved::Tls)?)),
        };
        let (mut addresses, mut unknown) = (Vec::new(), None);
        for endpoint in database.endpoints() {
            match look_up(&endpoint) {
                Ok(found) => addresses.extend(found),
                Err(error) if needed == NeededEndpoints::All => return Err(Unresolved::Address(endpoint, error)),
                Err(error) => unknown = Some((endpoint, error)),
            }
        }
        match unknown {
            Some((endpoint, error)) if addresses.is_empty() => Err(Unresolved::Address(endpoint, error)),
            _ => Ok(Target { database: Arc::from(database), addresses, tls }),
        }
    }
}
