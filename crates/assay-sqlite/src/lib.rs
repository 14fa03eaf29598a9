//! The embedded driver: SQLite inside this process, behind the same `Connection` as every server.
//!
//! There is no socket and nothing to wait for: every operation is answered inline, on the worker that asked. SQLite
//! itself never waits for a lock here (its busy timeout is 0), because the session that holds the lock may live on the
//! same worker and could then never let go. A connection that meets a lock keeps its operation, asks the engine for a
//! pause (`Progress::Wait`) and tries again.
//!
//! Statements are sent as the script wrote them. `BEGIN` in SQLite is deferred: the write lock is taken by the first
//! write, and when that write comes after a read and somebody else has written in between, no waiting can help and the
//! transaction has to start over. Workloads that write should say `BEGIN IMMEDIATE`.

#![forbid(unsafe_code)]

mod connection;
mod database;
mod failure;
mod settings;
mod split;

use assay_seam::{ConnectOptions, Database, Dialect, Driver, Surroundings, TargetError};

use crate::database::SqliteDatabase;
use crate::settings::FileSettings;

/// The registry entry: `sqlite:FILE?synchronous=full&…`.
pub const DRIVER: Driver = Driver { dialect: Dialect::plain("sqlite"), schemes: &["sqlite"], open };

fn open(url: &str, options: &ConnectOptions, _: &dyn Surroundings) -> Result<Box<dyn Database>, TargetError> {
    Ok(Box::new(SqliteDatabase::new(FileSettings::read(url, options)?)))
}
