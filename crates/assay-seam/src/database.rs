//! A database to load: its address, its login, and how to create connections to it.
//!
//! Each kind of database is one `Driver`, listed in the binary's registry and nowhere else. Opening a target
//! reads no environment by itself: what it may look at comes in as `Surroundings`.

use std::path::{Path, PathBuf};

use crate::connection::Connection;
use crate::operation::Value;
use crate::time::Nanos;

/// One kind of database: an entry of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// What scripts see of it.
    pub dialect: Dialect,
    /// URL schemes, without `:`; the first is the canonical one.
    pub schemes: &'static [&'static str],
    /// Reads a URL of one of the schemes, completed from the surroundings (`PG*`, `~/.my.cnf`, …).
    pub open: Open,
}

/// What scripts and loaders have to know of a kind of database.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dialect {
    /// As scripts see it (`drv:name()`): `pgsql`, `mysql`, `sqlite`.
    pub name: &'static str,
    /// A backslash in a literal escapes what follows.
    pub backslash_escapes: bool,
    /// A loader sends at most this many bytes at a time, if it is more than one row.
    pub load_bytes_max: Option<usize>,
    /// Globals that old scripts look up when they write for this kind, and their values.
    pub globals: &'static [(&'static str, Value<'static>)],
}

impl Dialect {
    /// One without peculiarities.
    pub const fn plain(name: &'static str) -> Dialect {
        Dialect { name, backslash_escapes: false, load_bytes_max: None, globals: &[] }
    }
}

/// Opens a target.
pub type Open =
    fn(url: &str, options: &ConnectOptions, surroundings: &dyn Surroundings) -> Result<Box<dyn Database>, TargetError>;

/// What the command line says about every connection, whatever the database.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Use protocol-level prepared statements (`--prepared on|off`). Off: extended/binary protocol is not used
    /// at all, parameters are substituted into the text on our side (transaction-pooling proxies need it).
    pub prepared: bool,
    /// A prepared statement is parsed anew for each execution, in the same send, and kept by no server; drivers that
    /// cannot do that prepare it once.
    pub unnamed: bool,
    /// Statements to run on every new connection before it is `Ready` (`--session-sql`).
    pub session_sql: Vec<String>,
    /// What connections call themselves where a server asks and the user has not said it; empty: nothing.
    pub application_name: &'static str,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions { prepared: true, unnamed: false, session_sql: Vec::new(), application_name: "assay" }
    }
}

/// One server to load, with the credentials for it. Shared by all workers.
pub trait Database: Send + Sync {
    /// What scripts see of it.
    fn dialect(&self) -> Dialect;

    /// The dialect's name.
    fn driver(&self) -> &'static str {
        self.dialect().name
    }

    /// The URL to show and to record: canonical, never with a password.
    fn display(&self) -> String;

    /// Where its sockets go. Several: the first that accepts is used.
    fn endpoints(&self) -> Vec<Endpoint>;

    /// How its sockets may be encrypted.
    fn tls(&self) -> TlsSettings;

    /// How long a socket may take to connect and log in; `None`: the engine's own limit.
    fn connect_timeout(&self) -> Option<Nanos> {
        None
    }

    /// A machine for one new connection, not yet connected.
    fn connection(&self) -> Box<dyn Connection>;

    /// The same for what is asked beside the load: without the statements that run on every new connection of a
    /// session.
    fn connection_beside(&self) -> Box<dyn Connection> {
        self.connection()
    }

    /// Queries for the server's settings that matter to performance or differ from their defaults: rows of a name, a
    /// value, and where the value came from (NULL: it is the default, or not known). The first that is not refused
    /// answers; which one that is depends on product and version. Empty: it has none. Asked once, off the measured
    /// path.
    fn settings_queries(&self) -> &'static [&'static str] {
        &[]
    }

    /// Turns this connection error's limit into advice, where the kind of database knows some; `sessions` is
    /// how many were asked for.
    fn advice(&self, error: &crate::error::StatementError, sessions: usize) -> Option<String> {
        let _ = sessions;
        error.hint.clone()
    }
}

/// Where a socket goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Host name or address, and port.
    Tcp {
        /// As written by the user; resolved by `assay-io`.
        host: String,
        /// 1 … 65535.
        port: u16,
    },
    /// A unix socket's path.
    Unix(PathBuf),
    /// No socket: the database runs inside this process.
    Embedded,
}

/// Encryption, with libpq's meaning of the modes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TlsSettings {
    /// Whether, and what is checked.
    pub mode: TlsMode,
    /// PEM file of trusted roots; `None`: the system's.
    pub root: Option<PathBuf>,
    /// PEM files of our own certificate and key.
    pub client: Option<(PathBuf, PathBuf)>,
    /// Name the certificate must be for (`VerifyFull`) and the SNI name.
    pub server_name: String,
}

/// libpq's sslmode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum TlsMode {
    /// Never.
    #[default]
    Disable,
    /// Only when the server refuses without.
    Allow,
    /// When the server offers it.
    Prefer,
    /// Always, whatever the certificate.
    Require,
    /// Always, and the certificate must chain to a trusted root.
    VerifyCa,
    /// As `VerifyCa`, and it must be for the host we asked for.
    VerifyFull,
}

/// What opening a target may look at besides its URL.
pub trait Surroundings {
    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// A file's content (`~/.pgpass`, `~/.my.cnf`); `None` when absent.
    fn read(&self, path: &Path) -> Option<Vec<u8>>;
    /// Permission bits of a file (libpq ignores a `~/.pgpass` that others may read); `None` when absent.
    fn mode(&self, path: &Path) -> Option<u32>;
    /// The user's home directory.
    fn home(&self) -> Option<PathBuf>;
    /// The operating system's name of the user.
    fn user(&self) -> Option<String>;
}

/// A machine without environment, files or users.
#[derive(Clone, Copy, Debug)]
pub struct NoSurroundings;

impl Surroundings for NoSurroundings {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn read(&self, _path: &Path) -> Option<Vec<u8>> {
        None
    }

    fn mode(&self, _path: &Path) -> Option<u32> {
        None
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }

    fn user(&self) -> Option<String> {
        None
    }
}

/// A target that cannot be used as written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TargetError {
    /// Names the part that is wrong; never holds a password.
    pub message: String,
    /// What to write instead, where we know.
    pub hint: Option<String>,
}
