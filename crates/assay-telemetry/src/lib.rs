//! What to ask servers and machines during a run, and how to read the answers.
//!
//! Pure: `postgres` and `mysql` know the questions for each product and version, `procfs` parses the kernel's text
//! files, and `metric` names the results of both. When to ask, and over which connection, is decided elsewhere: nothing
//! here opens a file or a socket.

#![forbid(unsafe_code)]

pub mod defaults;
pub mod facts;
pub mod identity;
mod innodb;
pub mod metric;
pub mod mysql;
pub mod node_exporter;
pub mod pgbouncer;
pub mod postgres;
pub mod procfs;
pub mod question;
pub mod statement;

pub use identity::{Identity, identity_sql};
pub use metric::{METRICS, Metric, Reading, Unit, metric};
pub use question::{Asked, OwnPart, Question, ServerQuestions, Shape, Switched, buffers_read};
pub use statement::{PlanRead, StatementQuestions, read_plan, statement_questions};

/// What to ask a server of this product and version, as it reports them at login; nothing for unknown products.
pub fn server_questions(product: &str, version: &str) -> ServerQuestions {
    match product {
        "PostgreSQL" => postgres::server_questions(version),
        "MySQL" | "MariaDB" => mysql::server_questions(product == "MariaDB", version),
        _ => ServerQuestions::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_of_every_version_asks_for_metrics_that_have_a_name() {
        let postgres = ["9.6.24", "10.23", "13.23", "14.24", "15.19 (Debian 15)", "16.15", "17.11", "18.6"];
        let versions = postgres.map(|version| ("PostgreSQL", version)).into_iter().chain([
            ("MySQL", "5.7.22"),
            ("MySQL", "8.0.12"),
            ("MySQL", "8.0.31"),
            ("MariaDB", "10.2.11-MariaDB"),
            ("MariaDB", "10.11.5-MariaDB"),
            ("MariaDB", "11.4.5-MariaDB"),
        ]);
        for (product, version) in versions {
            let plan = server_questions(product, version);
            assert!(!plan.questions.is_empty(), "{product} {version}");
            let asked = plan.questions.iter().flat_map(|question| &question.asked);
            let metrics: Vec<&str> = asked.map(|asked| asked.metric).collect();
            for metric in &metrics {
                assert!(super::metric(metric).is_some(), "{metric}");
                let times = metrics.iter().filter(|other| *other == metric).count();
                assert_eq!(times, 1, "{product} {version} {metric}");
            }
            for needed in ["log_bytes", "buffer_misses", "checkpoint_age_bytes", "active_sessions", "data_bytes"] {
                assert!(metrics.contains(&needed), "{product} {version} {needed}");
            }
        }
    }
}
