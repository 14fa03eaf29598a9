//! The interface between scripts, engine, event loop and databases: requests, answers, and errors.
//!
//! `operation` is what a script may request of a database, `connection` how the engine drives one client of it,
//! `database` where it is and how to log in; `time` is the clock type that all of them share. Types and traits only:
//! every database implements them in a crate of its own, and this one knows no protocol. `dry` is a fake database,
//! `unusable` one that cannot be reached.

#![forbid(unsafe_code)]

mod calendar;
pub mod connection;
pub mod conninfo;
pub mod database;
mod decimal;
pub mod dry;
mod effect;
mod endpoint;
pub mod error;
pub mod facts;
mod file_url;
pub mod operation;
pub mod rows;
pub mod time;
pub mod unusable;
pub mod url;

pub use calendar::date_of;
pub use connection::{Connection, Exchange, Executed, Interrupter, Progress};
pub use database::{
    ConnectOptions, Database, Dialect, Driver, NoSurroundings, Surroundings, TargetError, TlsMode, TlsSettings,
};
pub use decimal::write_decimal;
pub use effect::{Effect, InFlight};
pub use endpoint::Endpoint;
pub use error::{Class, Code, Origin, Retry, StatementError};
pub use facts::{ServerFacts, ServerReads, TlsFacts};
pub use file_url::FileUrl;
pub use operation::{Operation, Reply, RowsWanted, StatementId, Value};
pub use rows::{Cell, Outlet, Rows, RowsPool};
pub use time::Nanos;
