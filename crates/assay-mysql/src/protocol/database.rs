//! A MySQL or MariaDB server: creates connections to it, and knows what to query and advise.

use std::sync::Arc;

use assay_seam::{
    ConnectOptions, Connection, Database, Dialect, Driver, Endpoint, Nanos, StatementError, Surroundings, TargetError,
    TlsMode, TlsSettings, Value,
};

use super::connection::MySqlConnection;
use super::refusal;
use super::server::{self, MySqlServer};

/// The registry's entry for MySQL and MariaDB.
pub const DRIVER: Driver = Driver {
    dialect: Dialect {
        name: "mysql",
        backslash_escapes: true,
        // Servers refuse packets above their max_allowed_packet, which may be small.
        load_bytes_max: Some(1 << 20),
        globals: &[("mysql_table_engine", Value::Text(b"innodb")), ("myisam_max_rows", Value::Int(1_000_000))],
    },
    schemes: &["mysql", "mariadb"],
    open,
};

#[derive(Debug)]
struct MySql {
    server: Arc<MySqlServer>,
    /// The same without the statements for new connections.
    beside: Arc<MySqlServer>,
}

impl Database for MySql {
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
        Box::new(MySqlConnection::new(Arc::clone(&self.server)))
    }

    fn connection_beside(&self) -> Box<dyn Connection> {
        Box::new(MySqlConnection::new(Arc::clone(&self.beside)))
    }

    fn notes(&self) -> Vec<String> {
        let refused = self.server.file_refusal.get();
        let note = |why: &String| format!("loaded by INSERT, because the server refused LOAD DATA: {why}");
        refused.map(note).into_iter().collect()
    }

    fn advice(&self, error: &StatementError, sessions: usize) -> Option<String> {
        let advice = refusal::advice(error, sessions)?;
        let bare = self.server.tls.mode == TlsMode::Disable && matches!(self.server.endpoint, Endpoint::Tcp { .. });
        // Neither server reports that it wants an account's password over TLS only.
        let more = if bare && error.code.number == refusal::ACCESS_DENIED {
            "; it may also want TLS, which `sslmode=disable` forbids"
        } else {
            ""
        };
        Some(advice + more)
    }
}

/// Opens `mysql://user:password@host:port/database?socket=…&ssl-mode=…`.
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
    Ok(Box::new(MySql { server, beside }))
}
