//! The embedded driver: SQLite inside this process, behind the same `Connection` as every server.
//!
//! There is no socket and nothing to wait for: every operation is answered inline, on the worker that requested it.
//! SQLite itself never waits for a lock here (its busy timeout is 0), because the session that holds the lock may be on
//! the same worker and could then never release it. A connection that meets a lock keeps its operation, asks the engine
//! for a pause (`Progress::Wait`) and tries again.
//!
//! Statements are executed as the script wrote them. `BEGIN` in SQLite is deferred: the first write takes the write
//! lock, and if that write comes after a read and somebody else has written in between, waiting cannot help and the
//! transaction has to start over. Workloads that write should use `BEGIN IMMEDIATE`.

#![forbid(unsafe_code)]

mod connection;
mod database;
mod failure;
mod fuzz;
mod settings;
mod split;

pub use fuzz::fuzz_split;

use assay_seam::{ConnectOptions, Database, Dialect, Driver, Surroundings, TargetError};
use assay_telemetry::{Checkup, LiveQuestions, Questions, ServerQuestions, SettingFacts, StatementQuestions};

use crate::database::SqliteDatabase;
use crate::settings::FileSettings;

/// The registry entry: `sqlite:FILE?synchronous=full&…`.
pub const DRIVER: Driver = Driver { dialect: Dialect::plain("sqlite"), schemes: &["sqlite"], open };

/// What to ask: the plan of a statement.
pub const QUESTIONS: Questions = Questions {
    products: &["SQLite"],
    server: |_, _| ServerQuestions::default(),
    live: |_, _| LiveQuestions::default(),
    statement: |_, _| StatementQuestions {
        explain: Some("EXPLAIN QUERY PLAN "),
        no_counters: "SQLite has no counters",
        ..StatementQuestions::default()
    },
    checkup: Checkup::NONE,
};

/// How to read its settings. Other pragmas (mmap_size, wal_autocheckpoint) have no table form.
pub const SETTINGS: SettingFacts = SettingFacts {
    queries: &["SELECT 'journal_mode', journal_mode, NULL FROM pragma_journal_mode \
                UNION ALL SELECT 'synchronous', synchronous, NULL FROM pragma_synchronous \
                UNION ALL SELECT 'page_size', page_size, NULL FROM pragma_page_size \
                UNION ALL SELECT 'cache_size', cache_size, NULL FROM pragma_cache_size"],
    ..SettingFacts::NONE
};

fn open(url: &str, options: &ConnectOptions, _: &dyn Surroundings) -> Result<Box<dyn Database>, TargetError> {
    Ok(Box::new(SqliteDatabase::new(FileSettings::read(url, options)?)))
}
