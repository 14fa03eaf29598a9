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
    /// How to encrypt at each of them; empty if the database's settings never want it.
    pub tls: Vec<Arc<Tls>>,
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
        let mut target = Target { database: Arc::from(database), addresses: Vec::new(), tls: Vec::new() };
        let mut unknown = None;
        for endpoint in target.database.endpoints() {
            match look_up(&endpoint) {
                Ok(found) => {
                    let tls = tls.as_ref().map(|tls| of_endpoint(tls, settings.each_host, &endpoint)).transpose();
                    target.push(found, tls.map_err(Unresolved::Tls)?.as_ref());
                }
                Err(error) if needed == NeededEndpoints::All => return Err(Unresolved::Address(endpoint, error)),
                Err(error) => unknown = Some((endpoint, error)),
            }
        }
        match unknown {
            Some((endpoint, error)) if target.addresses.is_empty() => Err(Unresolved::Address(endpoint, error)),
            _ => Ok(target),
        }
    }

    /// How to encrypt at the address of this place.
    pub fn tls(&self, place: usize) -> Option<&Arc<Tls>> {
        self.tls.get(place)
    }

    /// Adds addresses of a further endpoint, to be tried after all others, unless they are known.
    pub fn add(&mut self, endpoint: &Endpoint, mut found: Vec<Address>) -> Result<(), ConnectError> {
        found.retain(|address| !self.addresses.contains(address));
        let each_host = self.database.tls().each_host;
        let tls = self.tls.first().map(|tls| of_endpoint(tls, each_host, endpoint)).transpose()?;
        self.push(found, tls.as_ref());
        Ok(())
    }

    fn push(&mut self, found: Vec<Address>, tls: Option<&Arc<Tls>>) {
        for address in found {
            self.addresses.push(address);
            self.tls.extend(tls.cloned());
        }
    }
}

/// The encryption of an endpoint. `tls`: that of the first one.
fn of_endpoint(tls: &Arc<Tls>, each_host: bool, endpoint: &Endpoint) -> Result<Arc<Tls>, ConnectError> {
    match endpoint {
        Endpoint::Tcp { host, .. } if each_host => tls.for_host(host).map(Arc::new),
        _ => Ok(Arc::clone(tls)),
    }
}
