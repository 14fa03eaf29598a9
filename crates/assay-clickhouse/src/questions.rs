//! What to ask ClickHouse during a run: `system.events` and `system.metrics`, and the plan of a statement.

use assay_telemetry::question::{Asked, OwnPart, ProcessQuestion, Question, ServerQuestions, Shape};
use assay_telemetry::{Checkup, LiveQuestions, Questions, StatementQuestions};

/// The questions.
pub const QUESTIONS: Questions = Questions {
    products: &["ClickHouse"],
    server: |_, _| server_questions(),
    live: |_, _| LiveQuestions::default(),
    statement: |_, version| StatementQuestions {
        explain: has_explain(version).then_some("EXPLAIN "),
        no_counters: "ClickHouse's counters are not read for a single statement",
        // Whole seconds: older versions take nothing else.
        time_limit: Some(|ms| format!("SET max_execution_time = {}", ms.div_ceil(1000))),
        ..StatementQuestions::default()
    },
    checkup: Checkup::NONE,
};

/// A metric and an event can have the same name: metrics get a prefix. The server counts HTTP connections only while
/// they execute a request.
const SQL: &str = "SELECT event, toInt64(value) FROM system.events \
                   WHERE event IN ('Query', 'ReadBufferFromFileDescriptorReadBytes') \
                   UNION ALL SELECT 'now Query', toInt64(value) FROM system.metrics WHERE metric = 'Query' \
                   UNION ALL SELECT 'connections', toInt64(sum(value)) FROM system.metrics \
                   WHERE metric IN ('TCPConnection', 'HTTPConnection')";

fn server_questions() -> ServerQuestions {
    let asked = vec![
        Asked::of("statements", "Query").with(OwnPart::Statements),
        Asked::of("bytes_read", "ReadBufferFromFileDescriptorReadBytes"),
        Asked { less: 1, ..Asked::of("active_sessions", "now Query") },
        Asked { less: 1, ..Asked::of("connections", "connections") },
    ];
    ServerQuestions {
        questions: vec![Question::new(SQL.to_owned(), Shape::Named, asked)],
        process: ProcessQuestion {
            // The kernel keeps 15 letters.
            programs: &["clickhouse-serv"],
            listens: true,
            folder_sql: "SELECT replaceRegexpOne(data_path, '/(data|store)/[^/]*/?$', '') FROM system.databases \
                         WHERE name = 'default'",
            ..ProcessQuestion::default()
        },
        ..ServerQuestions::default()
    }
}

/// `EXPLAIN` of a plan came with version 20.6.
fn has_explain(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(20), Some(6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_name() {
        let asked = server_questions().questions.remove(0).asked;
        asked.iter().for_each(|asked| assert!(assay_telemetry::metric(asked.metric).is_some(), "{}", asked.metric));
    }
}
