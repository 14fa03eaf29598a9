//! A PostgreSQL server: creates connections to it, and knows what to query and advise.

use std::sync::Arc;

use assay_seam::{
    ConnectOptions, Connection, Database, Dialect, Driver, Endpoint, Nanos, StatementError, Surroundings, TargetError,
    TlsSettings,
};

use crate::protocol::connection::PostgresConnection;
use crate::protocol::server::{self, Server};

/// The registry's entry.
pub const DRIVER: Driver = Driver { dialect: Dialect::plain("pgsql"), schemes: &["postgres", "postgresql"], open };

struct Postgres {
    server: Arc<Server>,
    /// The same without statements for new connections.
    beside: Arc<Server>,
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

    fn settings_queries(&self) -> &'static [&'static str] {
        // A name that a version does not have is omitted. A setting that differs because this connection set it says
        // nothing about the server; a calculated one differs although nobody set it.
        &["SELECT name, current_setting(name), \
           CASE WHEN setting IS DISTINCT FROM boot_val AND source <> 'default' THEN source END FROM pg_settings \
           WHERE (setting IS DISTINCT FROM boot_val AND source NOT IN ('default', 'client', 'session')) \
           OR name IN ('autovacuum', 'block_size', \
             'checkpoint_completion_target', 'checkpoint_timeout', 'commit_delay', 'data_checksums', \
             'default_transaction_isolation', 'effective_cache_size', 'effective_io_concurrency', 'fsync', \
             'full_page_writes', 'huge_pages', 'io_method', 'jit', 'lc_collate', 'lc_ctype', 'maintenance_work_mem', \
             'max_connections', \
             'max_parallel_workers', 'max_wal_size', 'max_worker_processes', 'min_wal_size', 'random_page_cost', \
             'server_encoding', \
             'shared_buffers', 'shared_preload_libraries', 'synchronous_commit', 'synchronous_standby_names', \
             'track_io_timing', 'wal_buffers', 'wal_compression', 'wal_level', 'wal_sync_method', 'work_mem')"]
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
