//! What can go wrong with an operation, defined once for all databases.
//!
//! An error keeps the server's own code and message; class and retry are our interpretation, so that the engine can act
//! and the report can group without knowing the database.

/// Why an operation, or a whole connection, failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {message} ({code})")]
pub struct StatementError {
    /// Where the error was raised.
    pub origin: Origin,
    /// Its class.
    pub class: Class,
    /// SQLSTATE or errno, verbatim.
    pub code: Code,
    /// Whether trying again makes sense, and after what.
    pub retry: Retry,
    /// The server's message, without code or position.
    pub message: String,
    /// Position in the statement's text as the server received it, in characters from 1; 0: not reported.
    pub position: u32,
    /// What the user can do about it, if known: a limit's name and how to raise it, an option to pass.
    pub hint: Option<String>,
    /// The server's further lines about it, each with its title, as its own client shows them (DETAIL, HINT, CONTEXT);
    /// empty if it sent none.
    pub details: String,
}

impl StatementError {
    /// The hint as it follows the message: `; use another file`. Empty if there is none.
    pub fn hint_words(&self) -> String {
        self.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"))
    }

    /// A failure on our side of the wire that no retry can fix.
    pub fn client(class: Class, message: impl Into<String>) -> StatementError {
        StatementError {
            origin: Origin::Client,
            class,
            code: Code::default(),
            retry: Retry::Never,
            message: message.into(),
            position: 0,
            hint: None,
            details: String::new(),
        }
    }

    /// The connection broke: reset, closed, refused. During a run, reconnecting fixes it.
    pub fn network(message: impl Into<String>) -> StatementError {
        StatementError {
            origin: Origin::Network,
            class: Class::Connection,
            code: Code::default(),
            retry: Retry::Reconnect,
            message: message.into(),
            position: 0,
            hint: None,
            details: String::new(),
        }
    }
}

/// Where an error was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The database server answered with an error.
    Server,
    /// The connection broke or could not be made.
    Network,
    /// This program: a protocol violation, a wrong parameter count, one of our limits.
    Client,
    /// The workload script.
    Script,
}

/// Classes of errors, for all databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Chosen as victim of a deadlock.
    Deadlock,
    /// Concurrent update under snapshot isolation, or row changed since read (MariaDB 1020).
    Serialization,
    /// Lock wait, statement or idle timeout.
    Timeout,
    /// Unique, foreign key, check, not null.
    Constraint,
    /// The connection is gone or was never there; an administrator or a shutdown of the server ended it.
    Connection,
    /// The host name does not resolve to an address.
    Host,
    /// The two sides cannot agree on encryption, or a certificate is not acceptable.
    Encryption,
    /// User, password, host not allowed.
    Authentication,
    /// Connections, memory, disk, prepared statements: a limit was reached.
    Limit,
    /// The statement's text is wrong.
    Syntax,
    /// Table, column, database or function does not exist.
    Missing,
    /// Table, database, index exists already.
    Exists,
    /// Not allowed for this user.
    Permission,
    /// The database file is locked by another connection (SQLite).
    Busy,
    /// The peer broke the protocol.
    Protocol,
    /// A user or an administrator cancelled the statement.
    Cancelled,
    /// A database transaction was left open by the script.
    Incomplete,
    /// Everything else.
    Other,
}

/// The server's own code: an errno, an SQLSTATE, or both (MySQL).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code {
    /// MySQL/MariaDB errno or SQLite extended result code; 0 when there is none.
    pub number: u32,
    /// Five characters; empty when there is none.
    pub state: String,
}

/// Whether trying the transaction again makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Immediately.
    Now,
    /// After a jittered pause: somebody else held what we wanted.
    AfterBackoff,
    /// On a new connection.
    Reconnect,
    /// Never.
    Never,
}

impl std::fmt::Display for Code {
    /// `40P01`, `1213`; the errno wins if there are both, because users know MySQL's errors by it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.number, self.state.as_str()) {
            (0, "") => f.write_str("no code"),
            (0, state) => f.write_str(state),
            (number, _) => write!(f, "{number}"),
        }
    }
}

impl Origin {
    /// The word used in records and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Server => "server",
            Origin::Network => "network",
            Origin::Client => "client",
            Origin::Script => "script",
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Class {
    /// The word used in records and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Deadlock => "deadlock",
            Class::Serialization => "serialization",
            Class::Timeout => "timeout",
            Class::Constraint => "constraint",
            Class::Connection => "connection",
            Class::Host => "host",
            Class::Encryption => "encryption",
            Class::Authentication => "authentication",
            Class::Limit => "limit",
            Class::Syntax => "syntax",
            Class::Missing => "missing",
            Class::Exists => "exists",
            Class::Permission => "permission",
            Class::Busy => "busy",
            Class::Protocol => "protocol",
            Class::Cancelled => "cancelled",
            Class::Incomplete => "incomplete",
            Class::Other => "other",
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
