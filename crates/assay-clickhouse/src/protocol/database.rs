//! A ClickHouse server to load, for the engine.

use std::sync::Arc;

use assay_seam::{
    ConnectOptions, Connection, Database, Dialect, Driver, Endpoint, Nanos, Surroundings, TargetError, TlsSettings,
};

use super::connection::ClickHouseConnection;
use super::server::{self, ClickHouseServer};

/// The registry's entry for ClickHouse.
pub const DRIVER: Driver = Driver {
    dialect: Dialect { backslash_escapes: true, ..Dialect::plain("clickhouse") },
    schemes: &["clickhouse"],
    open,
};

#[derive(Debug)]
struct ClickHouse {
    server: Arc<ClickHouseServer>,
    /// The same without the statements for new connections.
    beside: Arc<ClickHouseServer>,
}

impl Database for ClickHouse {
    fn dialect(&self) -> Dialect {
        DRIVER.dialect
    }

    fn display(&self) -> String {
        self.server.display.clone()
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        vec![self.server.endpoint.clone()]
    }

    fn tls(&self) -> TlsSettings {
        self.server.tls.clone()
    }

    fn connect_timeout(&self) -> Option<Nanos> {
        self.server.connect_timeout
    }

    fn connection(&self) -> Box<dyn Connection> {
        Box::new(ClickHouseConnection::new(Arc::clone(&self.server)))
    }

    fn connection_beside(&self) -> Box<dyn Connection> {
        Box::new(ClickHouseConnection::new(Arc::clone(&self.beside)))
    }
}

fn open(
    url: &str,
    options: &ConnectOptions,
    surroundings: &dyn Surroundings,
) -> Result<Box<dyn Database>, TargetError> {
    let read = |options: &ConnectOptions| server::read(url, options, surroundings).map(Arc::new);
    let server = read(options)?;
    let beside = match options.session_sql.as_slice() {
        [] => Arc::clone(&server),
        _ => read(&ConnectOptions { session_sql: Vec::new(), ..options.clone() })?,
    };
    Ok(Box::new(ClickHouse { server, beside }))
}
