//! SQLite's errors, mapped to those shared by all databases.
//!
//! Source of the codes and their meaning: https://sqlite.org/rescode.html.

use assay_seam::{Class, Code, Origin, Retry, StatementError};
use rusqlite::ffi;

/// The meaning of `error`. `path`: the database file, for messages about it.
pub(crate) fn from_sqlite(error: rusqlite::Error, path: &str) -> StatementError {
    let (code, message) = match error {
        rusqlite::Error::SqliteFailure(code, message) => {
            (code, message.unwrap_or_else(|| ffi::code_to_str(code.extended_code).to_owned()))
        }
        rusqlite::Error::SqlInputError { error, msg, .. } => (error, msg),
        rusqlite::Error::MultipleStatement => {
            return StatementError::client(Class::Syntax, "a prepared statement must be a single statement");
        }
        other => return StatementError::client(Class::Other, other.to_string()),
    };
    let extended = code.extended_code;
    let mut failure = StatementError {
        origin: Origin::Server,
        class: Class::Other,
        code: Code { number: extended.unsigned_abs(), state: String::new() },
        retry: Retry::Never,
        message,
        position: 0,
        hint: None,
        details: String::new(),
    };
    let (class, retry, hint) = match extended & 0xff {
        _ if extended == ffi::SQLITE_BUSY_SNAPSHOT => (Class::Serialization, Retry::AfterBackoff, Some(UPGRADE.into())),
        ffi::SQLITE_ERROR => (class_of_message(&failure.message), Retry::Never, None),
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => (Class::Busy, Retry::AfterBackoff, None),
        ffi::SQLITE_SCHEMA => (Class::Other, Retry::Now, None),
        ffi::SQLITE_ABORT | ffi::SQLITE_INTERRUPT => (Class::Cancelled, Retry::Never, None),
        ffi::SQLITE_CONSTRAINT | ffi::SQLITE_MISMATCH => (Class::Constraint, Retry::Never, None),
        ffi::SQLITE_NOMEM | ffi::SQLITE_TOOBIG => (Class::Limit, Retry::Never, None),
        ffi::SQLITE_FULL => (
            Class::Limit,
            Retry::Never,
            Some(format!("the disk that holds {path} is full: make room or use another folder")),
        ),
        ffi::SQLITE_PERM | ffi::SQLITE_AUTH => (Class::Permission, Retry::Never, None),
        ffi::SQLITE_READONLY => {
            (Class::Permission, Retry::Never, Some(format!("make {path} and its folder writable for this user")))
        }
        ffi::SQLITE_CANTOPEN => (
            Class::Connection,
            Retry::Never,
            Some(format!(
                "check that the folder of {path} exists and is writable, and that the limit of open files (ulimit -n) \
                 allows three for each session"
            )),
        ),
        ffi::SQLITE_NOTADB => {
            (Class::Other, Retry::Never, Some(format!("{path} is not a SQLite database: choose another file")))
        }
        ffi::SQLITE_CORRUPT => {
            (Class::Other, Retry::Never, Some(format!("{path} is damaged: delete it and prepare it again")))
        }
        _ => (Class::Other, Retry::Never, None),
    };
    (failure.class, failure.retry, failure.hint) = (class, retry, hint);
    failure
}

/// Why a transaction that has read may have to start over, and how to avoid that.
pub(crate) const UPGRADE: &str = "start writing transactions with BEGIN IMMEDIATE: SQLite cannot upgrade a reader to a writer after another session has written";

/// SQLITE_ERROR says everything in its text; the texts are those of parse.y, build.c and resolve.c.
fn class_of_message(message: &str) -> Class {
    if message.starts_with("no such ") || message.contains("has no column named") {
        Class::Missing
    } else if message.contains("already exists") || message.contains("already another table or index") {
        Class::Exists
    } else if ["syntax error", "incomplete input", "unrecognized token"].iter().any(|text| message.contains(text)) {
        Class::Syntax
    } else if message.starts_with("too many ") {
        Class::Limit
    } else {
        Class::Other
    }
}
