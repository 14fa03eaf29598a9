//! What to ask PgBouncer, in its own database `pgbouncer`.
//!
//! Columns are found by name, because their positions differ between versions.

use crate::live::LiveQuestions;
use crate::question::{Asked, Question, Shape};

/// The questions, summed over all pools and databases; its own database is included, but hardly used.
pub fn questions() -> Vec<Question> {
    let question = |sql: &str, shape: Shape, asked: Vec<Asked>| Question::new(sql.to_owned(), shape, asked);
    vec![
        question(
            "SHOW POOLS",
            Shape::SumOfColumns,
            vec![
                // Our own connection.
                Asked { less: 1, ..Asked::of("pooler_clients_active", "cl_active") },
                Asked::of("pooler_clients_waiting", "cl_waiting"),
                Asked::of("pooler_servers_active", "sv_active"),
                Asked::of("pooler_servers_idle", "sv_idle"),
            ],
        ),
        question("SHOW POOLS", Shape::LongestWait, vec![Asked::of("pooler_wait_max_us", "maxwait + maxwait_us")]),
        question(
            "SHOW STATS",
            Shape::SumOfColumns,
            vec![
                Asked::of("pooler_transactions", "total_xact_count"),
                Asked::of("pooler_statements", "total_query_count"),
                Asked::of("pooler_wait_us", "total_wait_time"),
            ],
        ),
    ]
}

/// What its console lists at this moment. Its columns are found by name.
pub const LIVE: LiveQuestions = LiveQuestions {
    sessions_sql: "SHOW CLIENTS",
    statements_sql: "",
    statements_condition: "",
    no_statements: "PgBouncer counts all statements together: see screen 7",
    log: None,
    end_sql: "",
};

/// Whether a version is that of its console: `1.18.0/bouncer`.
pub fn is_console(version: &str) -> bool {
    version.ends_with("/bouncer")
}
