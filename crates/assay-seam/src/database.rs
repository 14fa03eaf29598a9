//! A database to load: its address, its login, and how to create connections to it.
//!
//! Each kind of database is one `Driver`, listed in the binary's registry and nowhere else. Opening a target does not
//! read the environment itself: it only uses what `Surroundings` provides.

use std::path::{Path, PathBuf};

use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::operation::Value;
use crate::time::Nanos;

/// One kind of database: an entry of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// What scripts see of it.
    pub dialect: Dialect,
    /// URL schemes, without `:`; the first is the canonical one.
    pub schemes: &'static [&'static str],
    /// Parses a URL with one of these schemes, completed from the surroundings (`PG*`, `~/.my.cnf`, …).
    pub open: Open,
}

/// What scripts and loaders need to know about a kind of database.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dialect {
    /// As scripts see it (`drv:name()`): `pgsql`, `mysql`, `sqlite`.
    pub name: &'static str,
    /// Whether a backslash in a literal escapes what follows.
    pub backslash_escapes: bool,
    /// A loader sends at most this many bytes at a time, unless it is a single row.
    pub load_bytes_max: Option<usize>,
    /// Globals that old scripts use when they are written for this kind, and their values.
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

/// What the command line specifies for every connection, whatever the database.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Whether to use protocol-level prepared statements (`--prepared on|off`). Off: the extended or binary protocol is
    /// not used at all, and parameters are substituted into the text on our side (transaction-pooling proxies need it).
    pub prepared: bool,
    /// Whether a prepared statement is parsed again for each execution, in the same packet, and stored on no server;
    /// drivers that cannot do that prepare it once.
    pub unnamed: bool,
    /// Statements to run on every new connection before it is `Ready` (`--session-sql`).
    pub session_sql: Vec<String>,
    /// How connections identify themselves if the user has not chosen a name; empty: not at all.
    pub application_name: &'static str,
    /// Receives the server's notices and warnings, as lines; otherwise they are skipped.
    pub notices: Option<fn(&str)>,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            prepared: true,
            unnamed: false,
            session_sql: Vec::new(),
            application_name: "assay",
            notices: None,
        }
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

    /// The URL for output and records: canonical, always without a password.
    fn display(&self) -> String;

    /// Where to connect. Several: the first that accepts is used.
    fn endpoints(&self) -> Vec<Endpoint>;

    /// How its sockets may be encrypted.
    fn tls(&self) -> TlsSettings;

    /// How long a socket may take to connect and log in; `None`: the engine's own limit.
    fn connect_timeout(&self) -> Option<Nanos> {
        None
    }

    /// A new connection, not yet connected.
    fn connection(&self) -> Box<dyn Connection>;

    /// A connection for queries beside the load: without the statements that run on every new connection of a session.
    fn connection_beside(&self) -> Box<dyn Connection> {
        self.connection()
    }

    /// A connection that only asks a server which others belong to it, and gets `Ready` without a login: see
    /// `Connection::members`. `None`: the URL names all that may be used.
    fn scout(&self) -> Option<Box<dyn Connection>> {
        None
    }

    /// A connection that ends what those closed since the last call have left running on the server, and is `Ready`
    /// once that is requested. `None`: nothing is left, or closing a connection is enough.
    fn farewell(&self) -> Option<Box<dyn Connection>> {
        None
    }

    /// What its connections did in another way than the fastest, because the server refused that: a sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Turns the limit behind this connection error into advice, if the driver knows any; `sessions` is the number of
    /// sessions requested.
    fn advice(&self, error: &crate::error::StatementError, sessions: usize) -> Option<String> {
        let _ = sessions;
        error.hint.clone()
    }
}

/// Encryption; the modes mean what they mean in libpq.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TlsSettings {
    /// Whether to encrypt, and what to verify.
    pub mode: TlsMode,
    /// PEM file of trusted roots; `None`: the system's.
    pub root: Option<PathBuf>,
    /// PEM files of our own certificate and key.
    pub client: Option<(PathBuf, PathBuf)>,
    /// The name that the certificate must have (`VerifyFull`), also sent as SNI.
    pub server_name: String,
    /// `server_name` is that of the first endpoint; the others have names of their own.
    pub each_host: bool,
}

/// libpq's sslmode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum TlsMode {
    /// Never.
    #[default]
    Disable,
    /// Only if the server refuses without.
    Allow,
    /// If the server offers it.
    Prefer,
    /// Always, whatever the certificate.
    Require,
    /// Always, and the certificate must chain to a trusted root.
    VerifyCa,
    /// Like `VerifyCa`, and the certificate must be for the requested host.
    VerifyFull,
}

/// What opening a target may use besides its URL.
pub trait Surroundings {
    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;
    /// A file's content (`~/.pgpass`, `~/.my.cnf`); `None` when absent.
    fn read(&self, path: &Path) -> Option<Vec<u8>>;
    /// Permission bits of a file (libpq ignores a `~/.pgpass` that others may read); `None` if absent.
    fn mode(&self, path: &Path) -> Option<u32>;
    /// The user's home directory.
    fn home(&self) -> Option<PathBuf>;
    /// The user's name in the operating system.
    fn user(&self) -> Option<String>;

    /// Hosts and ports of a service, by SRV records of this name, in the order in which to try them.
    fn services(&self, name: &str) -> Result<Vec<(String, u16)>, TargetError> {
        Err(TargetError { message: format!("{name} is not looked up in DNS here"), hint: None, is_missing: false })
    }

    /// TXT records of a name, each as one text.
    fn texts(&self, name: &str) -> Result<Vec<String>, TargetError> {
        Err(TargetError { message: format!("{name} is not looked up in DNS here"), hint: None, is_missing: false })
    }
}

/// No environment, files or users.
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
    /// Names the part that is wrong; never contains a password.
    pub message: String,
    /// What to write instead, if known.
    pub hint: Option<String>,
    /// It may be written well, but what it names was not found.
    pub is_missing: bool,
}
