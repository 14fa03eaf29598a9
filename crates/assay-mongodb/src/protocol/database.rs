//! A MongoDB server or replica set to load, for the engine.

use std::sync::Arc;

use assay_seam::url::Url;
use assay_seam::{
    ConnectOptions, Connection, Database, Dialect, Driver, Endpoint, Nanos, Origin, StatementError, Surroundings,
    TargetError, TlsMode, TlsSettings,
};

use crate::protocol::connection::MongoConnection;
use crate::protocol::seeds::{self, Seeds};
use crate::protocol::server::{self, MongoServer};

/// The registry's entry.
pub const DRIVER: Driver = Driver { dialect: Dialect::plain("mongodb"), schemes: &["mongodb", "mongodb+srv"], open };

#[derive(Debug)]
struct MongoDb {
    server: Arc<MongoServer>,
    /// The same without the statements for new connections.
    beside: Arc<MongoServer>,
}

impl Database for MongoDb {
    fn dialect(&self) -> Dialect {
        DRIVER.dialect
    }

    fn display(&self) -> String {
        self.server.display.clone()
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        self.server.endpoints.clone()
    }

    fn tls(&self) -> TlsSettings {
        self.server.tls.clone()
    }

    fn connect_timeout(&self) -> Option<Nanos> {
        self.server.connect_timeout
    }

    fn connection(&self) -> Box<dyn Connection> {
        Box::new(MongoConnection::new(Arc::clone(&self.server)))
    }

    fn connection_beside(&self) -> Box<dyn Connection> {
        Box::new(MongoConnection::new(Arc::clone(&self.beside)))
    }

    fn scout(&self) -> Option<Box<dyn Connection>> {
        (!self.server.topology.direct)
            .then(|| -> Box<dyn Connection> { Box::new(MongoConnection::scout(Arc::clone(&self.beside))) })
    }

    fn advice(&self, error: &StatementError, _: usize) -> Option<String> {
        let hint = error.hint.clone();
        if hint.is_some() || error.origin != Origin::Network || self.server.tls.mode != TlsMode::Disable {
            return hint;
        }
        // A server that wants TLS closes the connection without a word.
        Some("check host and port in `--db`, and that the server runs; if it wants TLS, add tls=true to the URL".into())
    }
}

fn open(url: &str, options: &ConnectOptions, around: &dyn Surroundings) -> Result<Box<dyn Database>, TargetError> {
    let url = Url::parse(url)?;
    let seeds = (url.scheme == seeds::SCHEME).then(|| Seeds::look_up(&url, around)).transpose()?;
    let read = |options: &ConnectOptions| server::read_with(&url, seeds.as_ref(), options).map(Arc::new);
    let server = read(options)?;
    let beside = match options.session_sql.as_slice() {
        [] => Arc::clone(&server),
        _ => read(&ConnectOptions { session_sql: Vec::new(), ..options.clone() })?,
    };
    Ok(Box::new(MongoDb { server, beside }))
}
