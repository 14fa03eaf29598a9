//! The operations that a script can request of a database, and their results.
//!
//! A script yields an `Operation`; a `Connection` turns it into bytes and, later, into one `Reply`. Operations borrow
//! from the script's own memory, so that requests copy nothing.

use crate::error::StatementError;
use crate::rows::Rows;

/// One request to a server. Exactly one `Reply` answers it.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// Run the text unchanged, in the protocol's text form. May contain several statements; may return several result
    /// sets (`Rows::sets`).
    Query {
        /// In the language of the server: SQL, for most.
        text: &'a [u8],
        /// What is to become of its rows.
        rows: RowsWanted,
    },
    /// Prepare `text` as `statement`. Placeholders are `?` for every database; a driver whose server wants another form
    /// (`$1`) rewrites those outside quotes and comments. If protocol-level prepared statements are switched off, or
    /// the server cannot prepare this text, the text is kept, the reply is a plain success, and `Execute` substitutes
    /// quoted parameters into it.
    Prepare {
        /// Chosen by the caller, not in use on this connection.
        statement: StatementId,
        /// The same with `?` placeholders.
        text: &'a [u8],
    },
    /// Run a prepared statement. After a reconnect the driver prepares it again first: a `StatementId` lives as long as
    /// the `Connection` value, not as long as its socket.
    Execute {
        /// As in `Prepare`; unknown ids are answered with a client-side error, never a panic.
        statement: StatementId,
        /// One value per placeholder; a different number is a client-side error.
        parameters: &'a [Value<'a>],
        /// What is to become of its rows.
        rows: RowsWanted,
    },
    /// Forget a prepared statement, here and on the server. Closing an unknown one succeeds.
    Close {
        /// As in `Prepare`.
        statement: StatementId,
    },
    /// Undo the open transaction. How is the driver's business.
    RollBack,
    /// Append rows to a table in the server's fastest way (COPY, multi-row INSERT, …), atomically: all rows or none, in
    /// the open transaction or else in one of its own. `Reply::affected` is the number of rows.
    Load {
        /// Table name, already quoted if needed.
        table: &'a [u8],
        /// Column names, comma-separated, already quoted if needed.
        columns: &'a [u8],
        /// One result set: the rows to append.
        rows: &'a Rows,
        /// The table was created or emptied in the open transaction: the rows may be stored as visible to every
        /// transaction (PostgreSQL's COPY … FREEZE).
        frozen: bool,
    },
}

impl Operation<'_> {
    /// Whether its rows are only counted.
    pub fn counts_rows(&self) -> bool {
        matches!(self, Self::Query { rows, .. } | Self::Execute { rows, .. } if *rows == RowsWanted::Count)
    }
}

/// What is to become of the rows of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowsWanted {
    /// They are in the reply.
    #[default]
    Keep,
    /// They are read from the server, counted and discarded: `Rows::len` of their set is their number, and its columns
    /// are 0. Their size is not limited.
    Count,
}

/// Names a prepared statement within one `Connection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatementId(pub u32);

/// A parameter of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// Any signed integer type.
    Int(i64),
    /// Any floating-point type.
    Double(f64),
    /// Text, in the connection's character set (UTF-8 unless the script changed it).
    Text(&'a [u8]),
    /// Binary data (BLOB, BYTEA): any bytes, which are never converted.
    Bytes(&'a [u8]),
}

/// The answer to one operation.
#[derive(Debug, Default)]
pub struct Reply {
    /// Present if the server returned at least one result set, even an empty one. Comes from the `RowsPool` of the
    /// `Exchange` and should be returned there.
    pub rows: Option<Box<Rows>>,
    /// Rows changed by the statement(s); 0 for queries.
    pub affected: u64,
    /// The error of the server (or the driver). `rows` may still hold result sets that came before it.
    pub error: Option<Box<StatementError>>,
}

impl Reply {
    /// An answer that is an error.
    pub fn failed(error: StatementError) -> Reply {
        Reply { error: Some(Box::new(error)), ..Reply::default() }
    }
}
