//! ClickHouse: all that is particular to this product.
//!
//! The driver speaks the native protocol (TCP, port 9000), not HTTP: a connection is kept however long it is idle, an
//! error after the first rows cannot be mistaken for their end, and rows are loaded as blocks of columns.

#![forbid(unsafe_code)]

mod protocol;

pub use protocol::{DRIVER, fuzz_clickhouse};

use assay_telemetry::{Checkup, LiveQuestions, Questions, ServerQuestions, SettingFacts, StatementQuestions};

/// What to ask: the plan of a statement, from versions that have one.
pub const QUESTIONS: Questions = Questions {
    products: &["ClickHouse"],
    server: |_, _| ServerQuestions::default(),
    live: |_, _| LiveQuestions::default(),
    statement: |_, version| StatementQuestions {
        explain: has_explain(version).then_some("EXPLAIN "),
        no_counters: "ClickHouse's counters are not read yet",
        // Whole seconds: older versions take nothing else.
        time_limit: Some(|ms| format!("SET max_execution_time = {}", ms.div_ceil(1000))),
        ..StatementQuestions::default()
    },
    checkup: Checkup::NONE,
};

/// How to read its settings: those of the session, where a profile or a session statement may have changed them.
pub const SETTINGS: SettingFacts = SettingFacts {
    queries: &["SELECT name, value, if(changed, 'changed', NULL) FROM system.settings"],
    ..SettingFacts::NONE
};

/// `EXPLAIN` of a plan came with version 20.6.
fn has_explain(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(20), Some(6))
}
