//! What to ask PostgreSQL, 9.6 to 18.
//!
//! Backends publish their counters every half second (up to 14) or every second (from 15), so those lag behind; the
//! log's position and wait events do not. All databases of the server are added up.

use assay_telemetry::question::{
    Asked, Condition, OWN_IDS, OwnPart, ProcessQuestion, Question, Running, ServerQuestions, Shape, Waits,
};
use assay_telemetry::{Checkup, LiveQuestions, Questions, Right, StatementQuestions};

/// The questions.
pub const QUESTIONS: Questions = Questions {
    products: &["PostgreSQL"],
    server: |_, version| server_questions(version),
    statement: |_, version| statement_questions(version),
    live: |_, version| live_questions(version),
    checkup: Checkup {
        ping: "SELECT 1",
        limits: &[
            ("connections that the server allows", "SHOW max_connections"),
            ("reserved for superusers", "SHOW superuser_reserved_connections"),
            ("open now", "SELECT count(*) FROM pg_stat_activity WHERE client_port IS NOT NULL"),
            (
                "connections that this user may open",
                "SELECT CASE WHEN rolconnlimit < 0 THEN 'no limit' ELSE rolconnlimit::text END FROM pg_roles \
                 WHERE rolname = current_user",
            ),
            (
                "connections to this database",
                "SELECT CASE WHEN datconnlimit < 0 THEN 'no limit' ELSE datconnlimit::text END FROM pg_database \
                 WHERE datname = current_database()",
            ),
            ("files that each server process may open", "SHOW max_files_per_process"),
            (
                "statement_timeout",
                "SELECT CASE setting WHEN '0' THEN 'none' ELSE setting || ' ms' END FROM pg_settings \
                 WHERE name = 'statement_timeout'",
            ),
        ],
        rights: &[Right {
            name: "pg_monitor",
            shows: "sessions and waits of other users, and the data directory",
            sql: "SELECT CASE WHEN pg_has_role(current_user, 'pg_monitor', 'USAGE') THEN 1 ELSE 0 END",
            grant: "GRANT pg_monitor TO {}",
        }],
        user_sql: "SELECT quote_ident(current_user)",
    },
};

/// The questions for a version such as `15.14 (Debian 15.14-1)`.
fn server_questions(version: &str) -> ServerQuestions {
    let at_least = |major: u32| major_of(version) >= major;
    // Before 12, pg_stat_database lacks reads of catalogs that all databases share, such as pg_database.
    let uncounted = !at_least(12);
    let mut all = vec![
        Question { late: !at_least(15), uncounted, ..database(at_least(16), at_least(18)) },
        log_position(at_least(10)),
        checkpoint_age(at_least(10)),
        if at_least(17) { written_17(at_least(18)) } else { written() },
        activity(),
        row(
            &[("pg_stat_get_dead_tuples(oid)", "purge_lag", "sum(pg_stat_get_dead_tuples(oid))::int8")],
            "pg_class WHERE relkind IN ('r', 'm', 't') AND oid >= 16384",
        ),
        Question {
            uncounted,
            ..row(
                &[("pg_database_size()", "data_bytes", "sum(pg_database_size(oid))::int8")],
                "pg_database WHERE datname = current_database()",
            )
        },
    ];
    if at_least(10) {
        all.push(replicas());
    }
    if at_least(14) {
        all.push(log(at_least(18)));
    }
    let mut of_extensions = vec![("pg_stat_statements", statements(at_least(13)))];
    if at_least(16) {
        let dirty = ("pg_buffercache_summary().buffers_dirty", "dirty_pages", "buffers_dirty");
        of_extensions.push(("pg_buffercache", row(&[dirty], "pg_buffercache_summary()")));
    }
    ServerQuestions {
        questions: all,
        of_extensions,
        extensions_sql: "SELECT extname FROM pg_extension",
        waits: Some(Waits {
            // The function below the view pg_stat_activity, which in old versions also reads catalogs for their names.
            sql: "SELECT coalesce(wait_event_type || ':' || wait_event, 'CPU') AS assay_telemetry, count(*) \
                  FROM pg_stat_get_activity(NULL) WHERE state = 'active' AND pid <> pg_backend_pid() GROUP BY 1",
            condition: Some(SEES_SESSIONS),
        }),
        running: at_least(12).then_some(RUNNING),
        process: ProcessQuestion {
            programs: &["postgres", "postmaster"],
            own_sql: "SELECT pg_backend_pid()",
            file_sql: "",
            folder_sql: "SHOW data_directory",
            ..ProcessQuestion::default()
        },
        // Before 15, a backend publishes its counters at most twice per second, and cannot be asked to.
        publish_sql: if at_least(15) { "SELECT pg_stat_force_next_flush() AS assay_telemetry" } else { "" },
        explain: "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) ",
        ..ServerQuestions::default()
    }
}

/// Sessions and statements at this moment.
fn live_questions(version: &str) -> LiveQuestions {
    macro_rules! sessions {
        ($only:literal) => {
            concat!(
                "SELECT pid, usename, datname, coalesce(host(client_addr) || ':' || client_port, 'local'), \
                 coalesce(state, 'hidden: needs pg_monitor'), coalesce(wait_event_type || ':' || wait_event, ''), \
                 extract(epoch FROM clock_timestamp() - \
                 CASE WHEN state = 'active' THEN query_start ELSE state_change END), \
                 left(query, 400) AS assay_telemetry FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
                $only,
                " ORDER BY state <> 'active', 7 DESC NULLS LAST"
            )
        };
    }
    macro_rules! statements {
        ($time:literal) => {
            concat!(
                "SELECT userid || ':' || dbid || ':' || queryid, calls, ",
                $time,
                " * 1000, rows, shared_blks_read, left(query, 400) AS assay_telemetry FROM pg_stat_statements \
                 WHERE queryid IS NOT NULL AND query NOT LIKE '%assay_telemetry%' ORDER BY ",
                $time,
                " DESC LIMIT 500"
            )
        };
    }
    let major = major_of(version);
    LiveQuestions {
        // Of hidden sessions, only their user and database are known.
        sessions_sql: match major {
            10.. => {
                sessions!(" AND (backend_type = 'client backend' OR state IS NULL AND datid <> 0 AND usesysid <> 0)")
            }
            _ => sessions!(""),
        },
        statements_sql: if major >= 13 { statements!("total_exec_time") } else { statements!("total_time") },
        statements_condition: "SELECT 'YES' AS assay_telemetry FROM pg_extension WHERE extname = 'pg_stat_statements'",
        no_statements: "the database has no extension pg_stat_statements",
        log: None,
        end_sql: "SELECT pg_terminate_backend({})",
    }
}

/// Idle sessions show their last statement.
const RUNNING: Running = Running {
    sql: "SELECT query AS assay_telemetry FROM pg_stat_get_activity(NULL) \
          WHERE pid <> pg_backend_pid() AND usesysid = (SELECT oid FROM pg_roles WHERE rolname = current_user) \
          AND datid = (SELECT oid FROM pg_database WHERE datname = current_database()) \
          AND state_change > now() - interval '2 s' \
          AND octet_length(query) < pg_size_bytes(current_setting('track_activity_query_size')) - 1 LIMIT 100",
    explain: "EXPLAIN {}",
    // All in one transaction, so that a pooler in front of the server keeps it together. Before a value is known, NULL
    // is as good as any other: the plan is one for all values.
    explain_prepared: "SET LOCAL plan_cache_mode = force_generic_plan; PREPARE assay_plan AS {}\n; \
                       EXPLAIN EXECUTE assay_plan({nulls}); DEALLOCATE assay_plan",
};

/// `10` of `10.23`; 9 of 9.6.
fn major_of(version: &str) -> u32 {
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// A query of one row: source, metric and expression of each column.
fn row(columns: &[(&'static str, &'static str, &str)], from: &str) -> Question {
    let expressions: Vec<&str> = columns.iter().map(|(_, _, expression)| *expression).collect();
    let from = if from.is_empty() { String::new() } else { format!(" FROM {from}") };
    // The name identifies our statements: see `OWN_IDS_SQL`.
    let sql = format!("SELECT {} AS assay_telemetry{from}", expressions.join(", "));
    let asked = columns.iter().map(|(source, metric, _)| Asked::of(metric, source).with(own_part(metric)));
    Question::new(sql, Shape::Row, asked.collect())
}

/// Our own part of the counters of `pg_stat_database`.
fn own_part(metric: &str) -> OwnPart {
    match metric {
        "commits" => OwnPart::Transactions,
        "buffer_reads" => OwnPart::Buffers,
        _ => OwnPart::None,
    }
}

/// Every question has a column of this name.
const OWN_IDS_SQL: &str = "SELECT DISTINCT queryid FROM pg_stat_statements(true) \
                           WHERE queryid IS NOT NULL AND query LIKE '%assay_telemetry%'";

fn database(has_io: bool, has_io_bytes: bool) -> Question {
    let (source, read) = match (has_io, has_io_bytes) {
        (_, true) => ("pg_stat_io.read_bytes", "(SELECT sum(read_bytes) FROM pg_stat_io WHERE object <> 'wal')::int8"),
        (true, _) => ("pg_stat_io.reads × op_bytes", "(SELECT sum(reads * op_bytes) FROM pg_stat_io)::int8"),
        _ => ("pg_stat_database.blks_read × block_size", "sum(blks_read)::int8 * current_setting('block_size')::int8"),
    };
    row(
        &[
            ("pg_stat_database.xact_commit", "commits", "sum(xact_commit)::int8"),
            ("pg_stat_database.xact_rollback", "rollbacks", "sum(xact_rollback)::int8"),
            ("pg_stat_database.blks_read", "buffer_misses", "sum(blks_read)::int8"),
            ("pg_stat_database.blks_read + blks_hit", "buffer_reads", "sum(blks_read + blks_hit)::int8"),
            ("pg_stat_database.deadlocks", "deadlocks", "sum(deadlocks)::int8"),
            ("pg_stat_database.temp_bytes", "temporary_bytes", "sum(temp_bytes)::int8"),
            (source, "bytes_read", read),
        ],
        "pg_stat_database",
    )
}

fn log_position(is_wal: bool) -> Question {
    match is_wal {
        true => row(&[("pg_current_wal_lsn()", "log_bytes", "pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::int8")], ""),
        false => row(
            &[(
                "pg_current_xlog_location()",
                "log_bytes",
                "pg_xlog_location_diff(pg_current_xlog_location(), '0/0')::int8",
            )],
            "",
        ),
    }
}

fn checkpoint_age(is_wal: bool) -> Question {
    let (source, age) = match is_wal {
        true => (
            "pg_current_wal_lsn() − pg_control_checkpoint().redo_lsn",
            "pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn)::int8",
        ),
        false => (
            "pg_current_xlog_location() − pg_control_checkpoint().redo_location",
            "pg_xlog_location_diff(pg_current_xlog_location(), redo_location)::int8",
        ),
    };
    row(
        &[
            (source, "checkpoint_age_bytes", age),
            ("max_wal_size", "checkpoint_age_limit_bytes", "pg_size_bytes(current_setting('max_wal_size'))"),
        ],
        "pg_control_checkpoint()",
    )
}

/// Up to 16, the background writer counts for all processes.
fn written() -> Question {
    row(
        &[
            (
                "pg_stat_bgwriter.buffers_checkpoint + buffers_clean + buffers_backend",
                "pages_written",
                "buffers_checkpoint + buffers_clean + buffers_backend",
            ),
            ("pg_stat_bgwriter.checkpoints_timed", "checkpoints_timed", "checkpoints_timed"),
            ("pg_stat_bgwriter.checkpoints_req", "checkpoints_requested", "checkpoints_req"),
        ],
        "pg_stat_bgwriter",
    )
}

fn written_17(has_io_bytes: bool) -> Question {
    let by_backends = match has_io_bytes {
        true => "sum(write_bytes) / current_setting('block_size')::int8",
        false => "sum(writes)",
    };
    let pages = format!(
        "c.buffers_written + b.buffers_clean + (SELECT coalesce({by_backends}, 0) FROM pg_stat_io \
         WHERE object = 'relation' AND backend_type NOT IN ('checkpointer', 'background writer'))::int8"
    );
    row(
        &[
            (
                "pg_stat_checkpointer.buffers_written + pg_stat_bgwriter.buffers_clean + pg_stat_io.writes",
                "pages_written",
                &pages,
            ),
            ("pg_stat_checkpointer.num_timed", "checkpoints_timed", "c.num_timed"),
            ("pg_stat_checkpointer.num_requested", "checkpoints_requested", "c.num_requested"),
        ],
        "pg_stat_checkpointer c, pg_stat_bgwriter b",
    )
}

/// From 18 on, writes and fsyncs of the log are counted with all others.
fn log(is_in_io: bool) -> Question {
    let fsyncs = match is_in_io {
        true => (
            "pg_stat_io.fsyncs of wal",
            "log_fsyncs",
            "(SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal')::int8",
        ),
        false => ("pg_stat_wal.wal_sync", "log_fsyncs", "wal_sync"),
    };
    row(
        &[
            ("pg_stat_wal.wal_fpi", "log_full_pages", "wal_fpi"),
            ("pg_stat_wal.wal_buffers_full", "log_buffer_full", "wal_buffers_full"),
            fsyncs,
        ],
        "pg_stat_wal",
    )
}

/// A replica that has applied everything and has nothing to do reports no time: it has no lag. A standby itself knows
/// its lag in bytes only: the age of the last transaction that it applied includes times without any.
fn replicas() -> Question {
    const NOW: &str = "CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END";
    let bytes = format!(
        "greatest(max(pg_wal_lsn_diff({NOW}, replay_lsn)), CASE WHEN pg_is_in_recovery() \
         THEN pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) END)::int8"
    );
    let time = format!(
        "(extract(epoch FROM max(CASE WHEN replay_lsn >= {NOW} THEN interval '0' ELSE replay_lag END)) \
         * 1000000)::int8"
    );
    let asked = row(
        &[
            ("pg_current_wal_lsn() − pg_stat_replication.replay_lsn", "replica_lag_bytes", &bytes),
            ("pg_stat_replication.replay_lag", "replica_lag_us", &time),
        ],
        "pg_stat_get_wal_senders()",
    );
    Question { of_some: true, ..asked }
}

/// If the extension is in the database, without the statement texts.
fn statements(is_execution: bool) -> Question {
    let time = if is_execution { "total_exec_time" } else { "total_time" };
    let counted = row(
        &[
            ("pg_stat_statements.calls", "statements", "sum(calls)::int8"),
            (
                if is_execution { "pg_stat_statements.total_exec_time" } else { "pg_stat_statements.total_time" },
                "statement_us",
                &format!("(sum({time}) * 1000)::int8"),
            ),
        ],
        // Statements that the user may not identify have no number.
        &format!("pg_stat_statements(false) WHERE coalesce(queryid, 0) <> ALL ({OWN_IDS}::bigint[])"),
    );
    Question { own_ids_sql: OWN_IDS_SQL, ..counted }
}

fn activity() -> Question {
    let asked = row(
        &[
            (
                "pg_stat_activity.state",
                "active_sessions",
                "count(*) FILTER (WHERE state = 'active' AND pid <> pg_backend_pid())",
            ),
            (
                "pg_stat_activity.backend_xmin",
                "oldest_snapshot_age",
                "coalesce(max(age(backend_xmin)) FILTER (WHERE pid <> pg_backend_pid()), 0)",
            ),
        ],
        "pg_stat_get_activity(NULL)",
    );
    Question { condition: Some(SEES_SESSIONS), ..asked }
}

/// Of sessions that a user may not see, there is neither state nor snapshot. Background processes have no database or
/// no user.
const SEES_SESSIONS: Condition = Condition {
    sql: "SELECT CASE WHEN EXISTS (SELECT 1 FROM pg_stat_get_activity(NULL) WHERE state IS NULL AND datid <> 0 \
          AND usesysid <> 0 AND query = '<insufficient privilege>') THEN 'NO' ELSE 'YES' END AS assay_telemetry",
    refused: "sessions of other users are hidden: needs pg_monitor",
};

fn statement_questions(version: &str) -> StatementQuestions {
    // pg_stat_force_next_flush came with 15; before it, counters arrive up to half a second late.
    let is_recent = major_of(version) >= 15;
    StatementQuestions {
        explain: Some("EXPLAIN "),
        explain_json: Some("EXPLAIN (FORMAT JSON) "),
        explain_remote: Some("EXPLAIN (VERBOSE, COSTS OFF) "),
        counters: if is_recent { COUNTERS } else { &[] },
        of_session: false,
        no_counters: "PostgreSQL before version 15 reports counters too late",
        time_limit: Some(|ms| format!("SET statement_timeout = {ms}")),
    }
}

const COUNTERS: &[&str] = &[
    "SELECT pg_stat_force_next_flush()",
    "SELECT name, value FROM pg_stat_database d, pg_stat_wal w, LATERAL (VALUES ('blks_hit', d.blks_hit), \
     ('blks_read', d.blks_read), ('tup_returned', d.tup_returned), ('tup_fetched', d.tup_fetched), \
     ('tup_inserted', d.tup_inserted), ('tup_updated', d.tup_updated), ('tup_deleted', d.tup_deleted), \
     ('temp_files', d.temp_files), ('temp_bytes', d.temp_bytes), ('wal_records', w.wal_records), \
     ('wal_fpi', w.wal_fpi), ('wal_bytes', w.wal_bytes::bigint)) AS counter(name, value) \
     WHERE d.datname = current_database()",
];
