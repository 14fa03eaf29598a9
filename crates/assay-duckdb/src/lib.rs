//! DuckDB inside this process: the embedded column store, as SQLite is the embedded row store.
//!
//! Its library is loaded at run time, so that nobody has to compile it. There is no socket: every operation is answered
//! inline, on the worker that requested it, while DuckDB executes it with threads of its own. No session ever waits for
//! another: transactions that change the same rows fail with a conflict.

mod client;
mod connection;
mod database;
mod failure;
mod library;
mod settings;
mod values;

use assay_seam::{ConnectOptions, Database, Dialect, Driver, Surroundings, TargetError};
use assay_telemetry::{Checkup, LiveQuestions, Questions, ServerQuestions, SettingFacts, StatementQuestions};

use crate::database::DuckDatabase;
use crate::settings::FileSettings;

/// The registry entry: `duckdb:FILE?threads=2&…`.
pub const DRIVER: Driver = Driver { dialect: Dialect::plain("duckdb"), schemes: &["duckdb"], open };

/// What to ask: the plan of a statement.
pub const QUESTIONS: Questions = Questions {
    products: &["DuckDB"],
    server: |_, _| ServerQuestions::default(),
    live: |_, _| LiveQuestions::default(),
    statement: |_, _| StatementQuestions {
        explain: Some("EXPLAIN "),
        no_counters: "DuckDB has no counters",
        ..StatementQuestions::default()
    },
    checkup: Checkup::NONE,
};

/// How to read its settings: those that change what a benchmark measures.
pub const SETTINGS: SettingFacts = SettingFacts {
    queries: &[
        "SELECT name, value, NULL FROM duckdb_settings() WHERE name IN ('access_mode', 'checkpoint_threshold', \
                'memory_limit', 'preserve_insertion_order', 'temp_directory', 'threads') ORDER BY name",
    ],
    ..SettingFacts::NONE
};

fn open(
    url: &str,
    options: &ConnectOptions,
    surroundings: &dyn Surroundings,
) -> Result<Box<dyn Database>, TargetError> {
    Ok(Box::new(DuckDatabase::new(FileSettings::read(url, options, surroundings)?)))
}
