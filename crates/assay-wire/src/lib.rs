//! How to say it: the seam between scripts, engine and databases, and the wire protocols themselves.
//!
//! Everything here is a pure state machine: bytes and instants go in, bytes and replies come out. Nothing
//! opens a socket, reads a clock or blocks. `operation` is the seam every database implements;
//! `postgres` and `mysql` are two implementations of it.

#![forbid(unsafe_code)]

pub mod connection;
pub mod database;
mod deferral;
pub mod dry;
pub mod error;
pub mod mysql;
pub mod operation;
pub mod placeholders;
pub mod postgres;
pub mod rows;
mod templates;
pub mod time;
pub mod url;

pub use connection::{Connection, Exchange, Progress};
pub use database::{
    ConnectOptions, Database, Driver, Endpoint, ServerFacts, Surroundings, TargetError, TlsFacts, TlsMode, TlsSettings,
};
pub use deferral::Executed;
pub use error::{Class, Code, Origin, Retry, StatementError};
pub use operation::{Operation, Reply, StatementId, Value};
pub use rows::{Cell, Rows, RowsPool};
pub use time::Nanos;
