//! A ClickHouse server to load, for the engine.

use std::sync::Arc;

use assay_seam::{
    ConnectOptions, Connection, Database, Dialect, Driver, Endpoint, Nanos, Surroundings, TargetError, TlsSettings,
};

use super::connection::ClickHouseConnection;
use super::http::connection::HttpConnection;
use super::server::{self, ClickHouseServer};

/// The registry's entry for ClickHouse.
pub const DRIVER: Driver = Driver {
    dialect: Dialect { backslash_escapes: true, ..Dialect::plain("clickhouse") },
    schemes: &["clickhouse", "clickhouse+http", "clickhouse+https"],
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
        connection(&self.server)
    }

    fn connection_beside(&self) -> Box<dyn Connection> {
        connection(&self.beside)
    }

    fn farewell(&self) -> Option<Box<dyn Connection>> {
        let left = std::mem::take(&mut *self.server.http.as_ref()?.run.left.lock().expect("nobody panics with it"));
        (!left.is_empty()).then(|| -> Box<dyn Connection> {
            let sql = format!("KILL QUERY WHERE query_id IN ('{}')", left.join("', '"));
            Box::new(HttpConnection::new(Arc::clone(&self.beside)).with_errand(sql))
        })
    }
}

fn connection(server: &Arc<ClickHouseServer>) -> Box<dyn Connection> {
    let server = Arc::clone(server);
    if server.http.is_some() {
        Box::new(HttpConnection::new(server))
    } else {
        Box::new(ClickHouseConnection::new(server))
    }
}

fn open(
    url: &str,
    options: &ConnectOptions,
    surroundings: &dyn Surroundings,
) -> Result<Box<dyn Database>, TargetError> {
    let read =
        |session_sql: Vec<String>| server::read(url, &ConnectOptions { session_sql, ..options.clone() }, surroundings);
    let (server, mut beside) = (read(options.session_sql.clone())?, read(Vec::new())?);
    if let (Some(http), Some(of_beside)) = (&server.http, &mut beside.http) {
        of_beside.run = Arc::clone(&http.run);
    }
    Ok(Box::new(ClickHouse { server: Arc::new(server), beside: Arc::new(beside) }))
}
