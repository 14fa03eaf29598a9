//! What to ask MySQL 5.7 to 8.0 and MariaDB 10.2 to 11.4.
//!
//! Most of it is one `SHOW GLOBAL STATUS`; a variable that a version does not have is simply missing in the answer.

use assay_telemetry::question::{
    Asked, Condition, OwnPart, ProcessQuestion, Question, ServerQuestions, Shape, Switched, Waits,
};
use assay_telemetry::{Checkup, LiveQuestions, Questions, Right, StatementQuestions};

/// The schema has the table of status variables. Without the privilege PROCESS, a user sees sessions of its own alone.
macro_rules! sessions {
    ($schema:literal) => {
        concat!(
            "SELECT * FROM (SELECT ID, USER, DB, HOST, COMMAND, STATE, TIME, LEFT(INFO, 400) \
             FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() \
             UNION ALL SELECT 0, 'others', '', '', 'hidden: needs PROCESS', '', NULL, \
             CONCAT('sessions of other users: ', number) FROM (SELECT (SELECT VARIABLE_VALUE FROM ",
            $schema,
            ".GLOBAL_STATUS WHERE VARIABLE_NAME = 'THREADS_CONNECTED') - COUNT(*) AS number, \
             SUM(USER <> SUBSTRING_INDEX(USER(), '@', 1)) AS others \
             FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Daemon') AS counted \
             WHERE number > 0 AND others = 0) AS listed ORDER BY COMMAND = 'Sleep', TIME DESC"
        )
    };
}

/// The questions.
pub const QUESTIONS: Questions = Questions {
    products: &["MySQL", "MariaDB"],
    server: |product, version| server_questions(product == "MariaDB", version),
    statement: |product, _| StatementQuestions {
        explain: Some("EXPLAIN "),
        explain_json: Some("EXPLAIN FORMAT=JSON "),
        explain_remote: None,
        counters: &["SHOW SESSION STATUS WHERE Variable_name RLIKE '^(Bytes|Created_tmp|Handler|Rows|Select|Sort)_'"],
        of_session: true,
        no_counters: "",
        time_limit: Some(match product {
            "MariaDB" => |ms: u64| format!("SET SESSION max_statement_time = {}.{:03}", ms / 1000, ms % 1000),
            // For SELECT only.
            _ => |ms: u64| format!("SET SESSION max_execution_time = {ms}"),
        }),
    },
    live: |product, _| LiveQuestions {
        sessions_sql: match product {
            "MariaDB" => sessions!("information_schema"),
            _ => sessions!("performance_schema"),
        },
        statements_sql: "SELECT CONCAT(COALESCE(SCHEMA_NAME, ''), ':', COALESCE(DIGEST, '')), COUNT_STAR, \
                         SUM_TIMER_WAIT / 1000000, SUM_ROWS_SENT + SUM_ROWS_AFFECTED, NULL, LEFT(DIGEST_TEXT, 400) \
                         FROM performance_schema.events_statements_summary_by_digest \
                         ORDER BY SUM_TIMER_WAIT DESC LIMIT 500",
        statements_condition: "SELECT IF(@@performance_schema, ENABLED, 'NO') \
                               FROM performance_schema.setup_consumers WHERE NAME = 'statements_digest'",
        no_statements: "the performance schema, or its consumer statements_digest, is off",
        log: None,
        end_sql: "KILL {}",
    },
    checkup: Checkup {
        ping: "SELECT 1",
        limits: &[
            ("connections that the server allows", "SELECT @@GLOBAL.max_connections"),
            ("open now", "SHOW GLOBAL STATUS LIKE 'Threads_connected'"),
            (
                "connections that this user may open",
                "SELECT CASE @@SESSION.max_user_connections WHEN 0 THEN 'no limit' \
                 ELSE @@SESSION.max_user_connections END",
            ),
            ("prepared statements of all connections", "SELECT @@GLOBAL.max_prepared_stmt_count"),
            ("prepared now", "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'"),
            ("files that the server may open", "SELECT @@GLOBAL.open_files_limit"),
            ("max_allowed_packet, bytes", "SELECT @@GLOBAL.max_allowed_packet"),
        ],
        rights: &[Right {
            name: "PROCESS",
            shows: "InnoDB's log, pages and tables, and sessions of other users",
            // A role may have it, too, which no table of every version tells.
            sql: "",
            grant: "GRANT PROCESS ON *.* TO {}",
        }],
        user_sql: r"SELECT CONCAT('\'', REPLACE(CURRENT_USER(), '@', '\'@\''), '\'')",
    },
};

/// The threads of a pool serve other sessions, too.
macro_rules! own_thread {
    () => {
        " AND @@thread_handling = 'one-thread-per-connection'"
    };
}

/// The questions for a version such as `8.0.31` or `10.11.14-MariaDB`.
fn server_questions(is_mariadb: bool, version: &str) -> ServerQuestions {
    let version = version_of(version);
    let has_status = if is_mariadb { version >= (10, 5, 0) } else { version >= (8, 0, 30) };
    let miscounts = is_mariadb && miscounts_reads(version);
    let mut questions = vec![status(is_mariadb, has_status, miscounts)];
    if miscounts {
        questions.push(buffer_pool());
    }
    match (is_mariadb, has_status) {
        (true, true) => {}
        (false, true) => questions.extend([redo_log(), innodb_metrics()]),
        (_, false) => questions.extend([innodb_status(), capacity(), innodb_metrics()]),
    }
    questions.push(statement_time());
    questions.push(replica(is_mariadb, version));
    let sizes = match !is_mariadb && version >= (8, 0, 0) {
        true => tablespaces("INNODB_TABLESPACES", "information_schema.INNODB_TABLESPACES.FILE_SIZE"),
        false => tablespaces("INNODB_SYS_TABLESPACES", "information_schema.INNODB_SYS_TABLESPACES.FILE_SIZE"),
    };
    // MySQL, and MariaDB 10.2, read the data dictionary for the answer, about a page per tablespace; MariaDB 10.11 and
    // 11.4 have it in memory.
    let sizes = Question { at_ends: !is_mariadb || version < (10, 6, 0), ..sizes };
    ServerQuestions {
        questions,
        // With MyRocks, InnoDB's tablespaces are not all data, and nothing tells the size of the rest.
        without_extensions: vec![("ROCKSDB", sizes)],
        extensions_sql: "SELECT PLUGIN_NAME FROM information_schema.PLUGINS WHERE PLUGIN_STATUS = 'ACTIVE'",
        waits: Some(Waits {
            sql: "SELECT COALESCE(w.EVENT_NAME, 'CPU'), COUNT(*) FROM performance_schema.threads t \
                  LEFT JOIN performance_schema.events_waits_current w \
                  ON w.THREAD_ID = t.THREAD_ID AND w.END_EVENT_ID IS NULL \
                  WHERE t.TYPE = 'FOREGROUND' AND t.PROCESSLIST_ID <> CONNECTION_ID() \
                  AND t.PROCESSLIST_COMMAND NOT IN ('Sleep', 'Daemon') GROUP BY 1",
            condition: Some(Condition {
                sql: "SELECT ENABLED FROM performance_schema.setup_consumers WHERE NAME = 'events_waits_current'",
                refused: "the consumer events_waits_current of the performance schema is off",
            }),
        }),
        process: ProcessQuestion {
            programs: &["mysqld", "mariadbd"],
            own_sql: match is_mariadb {
                true => {
                    concat!("SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()", own_thread!())
                }
                false => concat!(
                    "SELECT THREAD_OS_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()",
                    own_thread!()
                ),
            },
            file_sql: "SELECT @@pid_file",
            folder_sql: "SELECT @@datadir",
            ..ProcessQuestion::default()
        },
        switched: Some(flushes()),
        unwatch_sql: "UPDATE performance_schema.threads SET INSTRUMENTED = 'NO' WHERE PROCESSLIST_ID = CONNECTION_ID()",
        ..ServerQuestions::default()
    }
}

/// Some servers report `5.5.5-10.11.14-MariaDB`.
fn version_of(version: &str) -> (u32, u32, u32) {
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    let mut part = || parts.next().unwrap_or(0);
    (part(), part(), part())
}

/// Whether this MariaDB's `Innodb_buffer_pool_read_requests` counts only some of the reads (MDEV-31309, mended in
/// 10.6.15) or none (MDEV-32920, mended in 10.11.7 and 11.2.3).
fn miscounts_reads(version: (u32, u32, u32)) -> bool {
    let series = [((10, 6, 0), (10, 6, 15)), ((10, 7, 0), (10, 11, 7)), ((11, 0, 0), (11, 2, 3))];
    series.iter().any(|(first, mended)| (*first..*mended).contains(&version))
}

/// What that variable should count.
fn buffer_pool() -> Question {
    Question::new(
        "SELECT SUM(NUMBER_PAGES_GET) FROM information_schema.INNODB_BUFFER_POOL_STATS".to_owned(),
        Shape::Row,
        vec![Asked::of("buffer_reads", "information_schema.INNODB_BUFFER_POOL_STATS.NUMBER_PAGES_GET")],
    )
}

/// `has_status`: whether the log's position and its checkpoint age are among the variables. `miscounts`: whether the
/// variable for `buffer_reads` is wrong.
fn status(is_mariadb: bool, has_status: bool, miscounts: bool) -> Question {
    let mut asked: Vec<Asked> = [
        // Handler_commit counts in engines: statements too, and each commit twice with a binary log.
        ("commits", "Com_commit"),
        ("rollbacks", "Com_rollback"),
        ("buffer_misses", "Innodb_buffer_pool_reads"),
        ("buffer_reads", "Innodb_buffer_pool_read_requests"),
        ("bytes_read", "Innodb_data_read"),
        ("pages_written", "Innodb_buffer_pool_pages_flushed"),
        ("doublewrite_pages", "Innodb_dblwr_pages_written"),
        ("dirty_pages", "Innodb_buffer_pool_pages_dirty"),
        ("log_buffer_full", "Innodb_log_waits"),
        ("lock_waits", "Innodb_row_lock_waits"),
        ("temporary_disk_tables", "Created_tmp_disk_tables"),
        ("rocksdb_stall_us", "Rocksdb_stall_micros"),
        ("rocksdb_compact_read_bytes", "Rocksdb_compact_read_bytes"),
        ("rocksdb_compact_written_bytes", "Rocksdb_compact_write_bytes"),
        ("rocksdb_flush_written_bytes", "Rocksdb_flush_write_bytes"),
        ("rocksdb_wal_bytes", "Rocksdb_wal_bytes"),
        ("rocksdb_wal_syncs", "Rocksdb_wal_synced"),
    ]
    .map(|(metric, source)| Asked::of(metric, source))
    .to_vec();
    asked.retain(|one| !(miscounts && one.metric == "buffer_reads"));
    // Digests lack what is executed by COM_STMT_EXECUTE.
    asked.push(Asked::of("statements", "Questions").with(OwnPart::Statements));
    asked.push(Asked { scale: 1000, ..Asked::of("lock_wait_us", "Innodb_row_lock_time") });
    asked.push(Asked { less: 1, ..Asked::of("active_sessions", "Threads_running") });
    // All writes to the log, including blocks written repeatedly; the position counts only what transactions wrote.
    let position = match (is_mariadb, has_status) {
        (true, true) => Some("Innodb_lsn_current"),
        (false, true) => Some("Innodb_redo_log_current_lsn"),
        _ => None,
    };
    asked.extend(position.map(|source| Asked::of("log_bytes", source)));
    let written = if position.is_some() { "log_written_bytes" } else { "log_bytes" };
    asked.push(Asked::of(written, "Innodb_os_log_written"));
    asked.push(Asked::of("log_fsyncs", if is_mariadb { "Innodb_data_fsyncs" } else { "Innodb_os_log_fsyncs" }));
    if is_mariadb && has_status {
        asked.extend([
            Asked::of("checkpoint_age_bytes", "Innodb_checkpoint_age"),
            Asked::of("checkpoint_age_limit_bytes", "Innodb_checkpoint_max_age"),
            Asked::of("purge_lag", "Innodb_history_list_length"),
            Asked::of("deadlocks", "Innodb_deadlocks"),
        ]);
    }
    let names: Vec<String> = asked.iter().map(|asked| format!("'{}'", asked.source)).collect();
    let sql = format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", names.join(", "));
    Question::new(sql, Shape::Named, asked)
}

/// From 8.0.30 on.
fn redo_log() -> Question {
    Question::new(
        "SELECT MAX(IF(VARIABLE_NAME = 'Innodb_redo_log_current_lsn', VARIABLE_VALUE + 0, NULL)) - \
              MAX(IF(VARIABLE_NAME = 'Innodb_redo_log_checkpoint_lsn', VARIABLE_VALUE + 0, NULL)), \
              MAX(IF(VARIABLE_NAME = 'Innodb_redo_log_capacity_resized', VARIABLE_VALUE + 0, NULL)) \
              FROM performance_schema.global_status WHERE VARIABLE_NAME IN ('Innodb_redo_log_current_lsn', \
              'Innodb_redo_log_checkpoint_lsn', 'Innodb_redo_log_capacity_resized')"
            .to_owned(),
        Shape::Row,
        vec![
            Asked::of("checkpoint_age_bytes", "Innodb_redo_log_current_lsn − Innodb_redo_log_checkpoint_lsn"),
            Asked::of("checkpoint_age_limit_bytes", "Innodb_redo_log_capacity_resized"),
        ],
    )
}

fn innodb_metrics() -> Question {
    Question::new(
        "SELECT NAME, `COUNT` FROM information_schema.INNODB_METRICS \
              WHERE NAME IN ('trx_rseg_history_len', 'lock_deadlocks')"
            .to_owned(),
        Shape::Named,
        vec![Asked::of("purge_lag", "trx_rseg_history_len"), Asked::of("deadlocks", "lock_deadlocks")],
    )
}

/// Pages flushed, by reason.
fn flushes() -> Switched {
    let asked = [
        ("flush_adaptive_pages", "buffer_flush_adaptive_total_pages"),
        ("flush_background_pages", "buffer_flush_background_total_pages"),
        ("flush_sync_pages", "buffer_flush_sync_total_pages"),
        ("flush_lru_pages", "buffer_LRU_batch_flush_total_pages"),
    ]
    .map(|(metric, source)| Asked::of(metric, source))
    .to_vec();
    let names = asked.iter().map(|asked| format!("'{}'", asked.source)).collect::<Vec<_>>().join(", ");
    let of = |rest: &str| format!("FROM information_schema.INNODB_METRICS WHERE NAME IN ({names}){rest}");
    Switched {
        // MariaDB has called the column ENABLED since 10.6.
        off_sql: [
            format!("SELECT NAME {}", of(" AND STATUS = 'disabled'")),
            format!("SELECT NAME {}", of(" AND ENABLED = 0")),
        ],
        on_sql: "SET GLOBAL innodb_monitor_enable = '{}'",
        undo_sql: "SET GLOBAL innodb_monitor_disable = '{}'",
        question: Question::new(format!("SELECT NAME, `COUNT` {}", of("")), Shape::Named, asked),
    }
}

fn statement_time() -> Question {
    // Statements inside of procedures (`statement/sp/%`) are part of the statement that calls them. In picoseconds.
    let sql = "SELECT SUM(SUM_TIMER_WAIT) DIV 1000000 \
               FROM performance_schema.events_statements_summary_global_by_event_name \
               WHERE EVENT_NAME LIKE 'statement/sql/%' OR EVENT_NAME LIKE 'statement/com/%'";
    let source = "performance_schema.events_statements_summary_global_by_event_name.SUM_TIMER_WAIT";
    Question::new(sql.to_owned(), Shape::Row, vec![Asked::of("statement_us", source).with(OwnPart::Watched)])
}

fn innodb_status() -> Question {
    Question::new(
        "SHOW ENGINE INNODB STATUS".to_owned(),
        Shape::InnodbStatus,
        vec![Asked::of("checkpoint_age_bytes", "Log sequence number − Last checkpoint at")],
    )
}

/// Known to the replica only. It reports whole seconds.
fn replica(is_mariadb: bool, version: (u32, u32, u32)) -> Question {
    let (sql, source) = match is_mariadb {
        true => ("SHOW ALL SLAVES STATUS", "Seconds_Behind_Master"),
        false if version < (8, 0, 22) => ("SHOW SLAVE STATUS", "Seconds_Behind_Master"),
        false => ("SHOW REPLICA STATUS", "Seconds_Behind_Source"),
    };
    let lag = Asked { scale: 1_000_000, ..Asked::of("replica_lag_us", source) };
    Question { of_some: true, ..Question::new(sql.to_owned(), Shape::MostOfColumns, vec![lag]) }
}

/// The size of the log files: older servers start to throttle transactions somewhat below it.
fn capacity() -> Question {
    Question::new(
        "SELECT @@innodb_log_file_size * @@innodb_log_files_in_group".to_owned(),
        Shape::Row,
        vec![Asked::of("checkpoint_age_limit_bytes", "innodb_log_file_size × innodb_log_files_in_group")],
    )
}

fn tablespaces(table: &str, source: &'static str) -> Question {
    Question::new(
        format!("SELECT SUM(FILE_SIZE) FROM information_schema.{table}"),
        Shape::Row,
        vec![Asked::of("data_bytes", source)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_servers_write_them() {
        assert_eq!(version_of("8.0.31"), (8, 0, 31));
        assert_eq!(version_of("5.5.5-10.11.14-MariaDB-0+deb12u2"), (10, 11, 14));
        assert_eq!(version_of("11.4.5-MariaDB"), (11, 4, 5));
    }

    #[test]
    fn reads_of_the_buffer_pool_come_from_a_source_that_counts_them() {
        let source = |version: &str| {
            let questions = server_questions(true, version).questions;
            let asked = questions.iter().flat_map(|question| &question.asked);
            let sources: Vec<&str> = asked.filter(|one| one.metric == "buffer_reads").map(|one| one.source).collect();
            sources.join(", ")
        };
        let table = "information_schema.INNODB_BUFFER_POOL_STATS.NUMBER_PAGES_GET";
        for version in ["10.6.14-MariaDB", "10.11.5-MariaDB", "10.11.6-MariaDB", "11.0.4-MariaDB", "11.2.2-MariaDB"] {
            assert_eq!(source(version), table, "{version}");
        }
        for version in ["10.2.11-MariaDB", "10.5.29-MariaDB", "10.6.15-MariaDB", "10.11.7-MariaDB", "11.4.5-MariaDB"] {
            assert_eq!(source(version), "Innodb_buffer_pool_read_requests", "{version}");
        }
    }
}
