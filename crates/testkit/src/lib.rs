//! For tests only: real database servers that live as long as a test, a network that can be taken apart or damaged, a
//! browser for pages, and redaction of what changes between runs.
//!
//! A server is started from binaries that are already on the machine (`cargo xtask test` installs them), on a free
//! loopback port and a unix socket, in a temporary folder, by an unprivileged user, and is gone afterwards whatever
//! happens to the test. Nothing here talks to a server it has not started, installs anything, or is linked into
//! the tool itself.
//!
//! ```no_run
//! use testkit::{Kind, ServerSetup};
//!
//! // One server for the whole test process; says aloud that the test is skipped where there is none to start.
//! if Kind::MariaDb.present() {
//!     let server = Kind::MariaDb.shared();
//!     let database = server.fresh_database().unwrap();
//!     println!("{}", server.url(&database));
//! }
//! // One with settings of its own.
//! let access = vec!["host all all 127.0.0.1/32 scram-sha-256".to_owned()];
//! let server = Kind::Postgres.start(&ServerSetup { access, ..ServerSetup::default() }).unwrap();
//! server.sql("app", "CREATE ROLE jane LOGIN PASSWORD 'secret'").unwrap();
//! server.kill9().unwrap();
//! server.restart().unwrap();
//! ```

#![forbid(unsafe_code)]

mod browser;
mod cable;
mod certificates;
mod clickhouse;
mod duckdb;
mod ferretdb;
mod folder;
mod image_builder;
mod interrupts;
mod kind;
mod kubernetes;
mod lua_checker;
mod machines;
mod mongo_java;
mod mounted;
mod nats;
mod nats_operator;
mod nats_programs;
mod proxy;
mod python;
pub mod redact;
mod scrape;
mod server;
mod skip;
mod start;

use std::path::PathBuf;

pub use assay_lab::home::free_port;
pub use browser::{Browser, BrowserView};
pub use cable::Cable;
pub use certificates::Certificates;
pub use clickhouse::ClickHouse;
pub use duckdb::{duckdb_libraries, fetch_duckdb, missing_duckdb};
pub use ferretdb::{FerretDb, FerretSetup, fetch_ferretdb, missing_ferretdb};
pub use folder::{cache, folder_on_a_drive, home, lab_folder};
pub use image_builder::ImageBuilder;
pub use interrupts::accept_interrupts;
pub use kind::{Kind, fetch_versions, missing_versions, versions};
pub use kubernetes::{check_manifest, fetch_kubernetes_schemas, has_kubernetes_schemas, misses_kubernetes_schemas};
pub use lua_checker::{check_lua, fetch_lua_checker, has_lua_checker};
pub use machines::Machines;
pub use mongo_java::{JavaMongo, fetch_java_mongo, missing_java_mongo};
pub use mounted::Mounted;
pub use nats::Nats;
pub use nats_operator::Operator;
pub use nats_programs::{NatsProgram, fetch_nats, missing_nats};
pub use proxy::{Fault, Proxy, Way};
pub use python::{fetch_table_readers, has_table_readers, misses_table_readers, run_python};
pub use scrape::{Exposition, metric_families};
pub use server::Server;
pub use skip::{absent, aloud, installed, matrix, refused, root};
pub use start::start_version;

/// How a server is to be set up. The default: no TLS, everybody may log in without a password, 300 connections,
/// and no waiting for the disk: commits survive `Server::kill9`, not a power cut.
#[derive(Clone, Debug)]
pub struct ServerSetup {
    /// Lines appended to postgresql.conf, or to the `[mysqld]` section; later lines win over ours.
    pub config: Vec<String>,
    /// Lines of pg_hba.conf that replace the default ones, in order. The superuser `postgres` always gets in on
    /// the unix socket. Ignored by MySQL and MariaDB.
    pub access: Vec<String>,
    /// Whether the server encrypts.
    pub tls: Tls,
    /// Names in the server's certificate, host names or addresses.
    pub certificate_names: Vec<String>,
    /// Size of the connection table.
    pub max_connections: u32,
    /// Its data directory, which does not exist yet; `None`: in the folder of all servers.
    pub data: Option<PathBuf>,
}

/// Whether a server encrypts; its certificate is signed by a CA made for it: `Server::certificates`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Refuses TLS.
    Off,
    /// Takes both.
    Offered,
    /// Refuses TCP connections without TLS.
    Required,
}

impl Default for ServerSetup {
    fn default() -> ServerSetup {
        ServerSetup {
            config: Vec::new(),
            access: Vec::new(),
            tls: Tls::Off,
            certificate_names: vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
            max_connections: 300,
            data: None,
        }
    }
}
