//! What to ask ClickHouse during a run: `system.events` and `system.metrics`, and the plan of a statement.

use assay_telemetry::question::{Asked, Condition, OwnPart, ProcessQuestion, Question, ServerQuestions, Shape};
use assay_telemetry::{Checkup, LiveQuestions, Questions, StatementLog, StatementQuestions};

/// The questions.
pub const QUESTIONS: Questions = Questions {
    products: &["ClickHouse"],
    server: |_, _| server_questions(),
    live: |_, _| LiveQuestions {
        no_statements: "ClickHouse does not count its statements; records have those of its query_log",
        log: Some(QUERY_LOG),
        ..LiveQuestions::default()
    },
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
/// they execute a request. Asynchronous metrics are as the server has last calculated them: version 18.16 does so once
/// per minute, for the first time within two minutes of its start. Figures of the allocator are left out
/// unless the server renews them (`jemalloc.epoch`): in version 18.16 they stay what they were at its start.
const SQL: &str = "SELECT event, toInt64(value) AS assay_telemetry FROM system.events \
                   WHERE event IN ('Query', 'ReadBufferFromFileDescriptorReadBytes') \
                   UNION ALL SELECT 'now Query', toInt64(value) FROM system.metrics WHERE metric = 'Query' \
                   UNION ALL SELECT 'connections', toInt64(sum(value)) FROM system.metrics \
                   WHERE metric IN ('TCPConnection', 'HTTPConnection') \
                   UNION ALL SELECT concat('metrics.', metric), toInt64(value) FROM system.metrics \
                   WHERE metric = 'MemoryTracking' \
                   UNION ALL SELECT concat('asynchronous_metrics.', metric), toInt64(value) \
                   FROM system.asynchronous_metrics \
                   WHERE metric IN ('Uptime', 'MemoryResident', 'MarkCacheBytes', 'MaxPartCountForPartition') \
                   OR metric IN ('jemalloc.allocated', 'jemalloc.resident') AND \
                   (SELECT count() FROM system.asynchronous_metrics WHERE metric = 'jemalloc.epoch') > 0";

/// Without replicated tables, all of these are zero and mean nothing.
const OF_REPLICAS: &str = "SELECT concat('asynchronous_metrics.', metric), toInt64(value) AS assay_telemetry \
                           FROM system.asynchronous_metrics \
                           WHERE metric IN ('ReplicasMaxAbsoluteDelay', 'ReplicasSumQueueSize') \
                           AND (SELECT count() FROM system.tables WHERE engine LIKE 'Replicated%') > 0";

fn server_questions() -> ServerQuestions {
    const SECOND_US: u64 = 1_000_000;
    let asked = vec![
        Asked::of("statements", "Query").with(OwnPart::Statements),
        Asked::of("bytes_read", "ReadBufferFromFileDescriptorReadBytes"),
        Asked { less: 1, ..Asked::of("active_sessions", "now Query") },
        Asked { less: 1, ..Asked::of("connections", "connections") },
        Asked::of("tracked_memory_bytes", "metrics.MemoryTracking"),
        Asked { scale: SECOND_US, ..Asked::of("uptime_us", "asynchronous_metrics.Uptime") },
        Asked::of("resident_bytes", "asynchronous_metrics.MemoryResident"),
        Asked::of("allocated_bytes", "asynchronous_metrics.jemalloc.allocated"),
        Asked::of("allocator_resident_bytes", "asynchronous_metrics.jemalloc.resident"),
        Asked::of("mark_cache_bytes", "asynchronous_metrics.MarkCacheBytes"),
        Asked::of("partition_parts_max", "asynchronous_metrics.MaxPartCountForPartition"),
    ];
    let of_replicas = vec![
        Asked { scale: SECOND_US, ..Asked::of("replica_lag_us", "asynchronous_metrics.ReplicasMaxAbsoluteDelay") },
        Asked::of("replication_queue", "asynchronous_metrics.ReplicasSumQueueSize"),
    ];
    let replicas = Question::new(OF_REPLICAS.to_owned(), Shape::Named, of_replicas);
    ServerQuestions {
        questions: vec![Question::new(SQL.to_owned(), Shape::Named, asked), Question { of_some: true, ..replicas }],
        process: ProcessQuestion {
            // The kernel keeps 15 letters.
            programs: &["clickhouse-serv"],
            listens: true,
            folder_sql: "SELECT replaceRegexpOne(data_path, '/(data|store)/[^/]*/?$', '') AS assay_telemetry \
                         FROM system.databases WHERE name = 'default'",
            ..ProcessQuestion::default()
        },
        ..ServerQuestions::default()
    }
}

/// The columns in use are those of version 18.16, which newer versions should have, too. `type` was a number and became
/// an enumeration of the same numbers: 2 is a query that finished, 3 one that failed before its execution, 4 one that
/// failed in it. Literals are replaced here, because older versions do not normalize texts. Times are whole
/// milliseconds, rounded down.
const QUERY_LOG: StatementLog = StatementLog {
    now_sql: "SELECT toUInt32(now()) AS assay_telemetry",
    flush_sql: "SYSTEM FLUSH LOGS",
    condition: Condition {
        sql: "SELECT if(count() = 10, 'YES', 'NO') AS assay_telemetry FROM system.columns \
              WHERE database = 'system' AND table = 'query_log' \
              AND name IN ('type', 'event_date', 'event_time', 'query_duration_ms', 'read_rows', 'read_bytes', \
              'result_rows', 'written_rows', 'memory_usage', 'query')",
        refused: "system.query_log has nothing of this run: --session-sql 'SET log_queries = 1' switches it on",
    },
    sql: r"SELECT toString(cityHash64(text)), sum(type = 2), sum(ms) * 1000 AS us, sum(rows),
    CAST(NULL AS Nullable(UInt64)), any(substring(text, 1, 400)) AS assay_telemetry,
    sum(read_rows), sum(read_bytes), max(memory_usage), sum(type > 2)
FROM (SELECT toInt8(type) AS type, query_duration_ms AS ms, result_rows + written_rows AS rows, read_rows, read_bytes,
    memory_usage, replaceRegexpAll(replaceRegexpAll(replaceRegexpAll(query,
    '\'(?:[^\'\\\\]|\\\\.|\'\')*\'', '?'),
    '\\b[0-9]+(?:\\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\\b', '?'),
    '\\?(?:\\s*,\\s*\\?)+', '?, …') AS text
  FROM system.query_log
  WHERE event_date >= toDate(toDateTime({since})) AND event_time >= toDateTime({since}) AND toInt8(type) >= 2
    AND query NOT LIKE '%assay_telemetry%' AND query NOT LIKE 'SYSTEM FLUSH LOGS%')
GROUP BY text ORDER BY us DESC LIMIT 500",
};

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
        let asked = server_questions().questions.into_iter().flat_map(|question| question.asked);
        asked.for_each(|asked| assert!(assay_telemetry::metric(asked.metric).is_some(), "{}", asked.metric));
    }
}
