//! A PostgreSQL server: creates connections to it, and knows what to query and advise.

use std::sync::Arc;

use assay_seam::{
    ConnectOptions, Connection, Database, Dialect, Driver, Endpoint, Nanos, StatementError, Surroundings, TargetError,
    TlsSettings,
};

use crate::protocol::connection::PostgresConnection;
use crate::protocol::server::{self, PostgresServer};

/// The registry's entry.
pub const DRIVER: Driver = Driver { dialect: Dialect::plain("pgsql"), schemes: &["postgres", "postgresql"], open };

struct Postgres {
    server: Arc<PostgresServer>,
    /// The same without statements for new connections.
    beside: Arc<PostgresServer>,
}

impl Database for Postgres {
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
        Box::new(PostgresConnection::new(Arc::clone(&self.server)))
    }

    fn connection_beside(&self) -> Box<dyn Connection> {
        Box::new(PostgresConnection::new(Arc::clone(&self.beside)))
    }

    fn advice(&self, error: &StatementError, sessions: usize) -> Option<String> {
        let hint = error.hint.as_deref()?;
        Some(match error.code.state.as_str() {
            "53300" => format!("{sessions} sessions were asked for; {hint}"),
            _ => hint.to_owned(),
        })
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
    Ok(Box::new(Postgres { server, beside }))
}
