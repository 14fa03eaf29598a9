//! The settings of MySQL and MariaDB: how to read them, and which of them do not matter.

use assay_telemetry::{Defaults, Harmless, SettingFacts};

use crate::defaults::mysql_5_7;

/// What is known about them.
pub const SETTINGS: SettingFacts = SettingFacts {
    queries: &[MYSQL_8, MARIADB, "SHOW GLOBAL VARIABLES"],
    defaults,
    harmless: &[
        Harmless {
            why: "addresses",
            names: &[
                "admin_port",
                "bind_address",
                "mysqlx_bind_address",
                "mysqlx_port",
                "mysqlx_socket",
                "port",
                "report_host",
                "report_port",
                "socket",
            ],
        },
        Harmless {
            why: "names of files",
            names: &[
                "basedir",
                "character_sets_dir",
                "general_log_file",
                "lc_messages_dir",
                "log_bin_basename",
                "log_bin_index",
                "log_error",
                "pid_file",
                "plugin_dir",
                "relay_log",
                "relay_log_basename",
                "relay_log_index",
                "relay_log_info_file",
                "secure_file_priv",
                "slow_query_log_file",
                "ssl_ca",
                "ssl_cert",
                "ssl_key",
            ],
        },
        Harmless {
            why: "positions in the binary log",
            names: &[
                "gtid_binlog_pos",
                "gtid_binlog_state",
                "gtid_current_pos",
                "gtid_executed",
                "gtid_purged",
                "gtid_slave_pos",
            ],
        },
        Harmless {
            why: "identities",
            names: &[
                "hostname",
                "server_id",
                "server_uid",
                "server_uuid",
                "version_compile_machine",
                "wsrep_node_name",
            ],
        },
        Harmless { why: "the time of the query", names: &["timestamp"] },
    ],
    folders: &["datadir", "tmpdir"],
    is_secret: |_| false,
};

/// MySQL 5.7 lists every variable without its origin.
fn defaults(version: &str) -> Option<Defaults> {
    let recorded = &[
        "binlog_format",
        "character_set_server",
        "innodb_adaptive_hash_index",
        "innodb_buffer_pool_size",
        "innodb_doublewrite",
        "innodb_flush_log_at_trx_commit",
        "innodb_flush_method",
        "innodb_io_capacity",
        "innodb_log_buffer_size",
        "innodb_log_file_size",
        "log_bin",
        "max_connections",
        "performance_schema",
        "sync_binlog",
    ];
    version.starts_with("5.7.").then_some(Defaults { of: mysql_5_7, recorded })
}

/// Always shown, whether they differ or not. A name that a product or version does not have is omitted.
macro_rules! settings_that_matter {
    () => {
        "'binlog_format', 'character_set_server', \
         'innodb_adaptive_hash_index', 'innodb_buffer_pool_instances', 'innodb_buffer_pool_size', \
         'innodb_doublewrite', 'innodb_flush_log_at_trx_commit', 'innodb_flush_method', 'innodb_io_capacity', \
         'innodb_io_capacity_max', 'innodb_log_buffer_size', 'innodb_log_file_size', 'innodb_page_size', \
         'innodb_redo_log_capacity', 'log_bin', 'max_connections', 'max_prepared_stmt_count', 'performance_schema', \
         'query_cache_type', 'sync_binlog', 'table_open_cache', 'thread_handling', 'thread_pool_size', \
         'transaction_isolation', 'tx_isolation'"
    };
}

/// Since 8.0 a value's origin is known; older servers list every variable, but not which ones differ.
const MYSQL_8: &str = concat!(
    "SELECT LOWER(g.VARIABLE_NAME), g.VARIABLE_VALUE, NULLIF(i.VARIABLE_SOURCE, 'COMPILED') \
     FROM performance_schema.global_variables g JOIN performance_schema.variables_info i \
     ON i.VARIABLE_NAME = g.VARIABLE_NAME WHERE i.VARIABLE_SOURCE <> 'COMPILED' OR g.VARIABLE_NAME IN (",
    settings_that_matter!(),
    ")"
);

/// What MariaDB calculated at its start (`AUTO`) depends on the machine, and so differs from the compiled-in value.
const MARIADB: &str = concat!(
    "SELECT LOWER(VARIABLE_NAME), GLOBAL_VALUE, NULLIF(GLOBAL_VALUE_ORIGIN, 'COMPILE-TIME') \
     FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE IS NOT NULL \
     AND (GLOBAL_VALUE_ORIGIN <> 'COMPILE-TIME' OR LOWER(VARIABLE_NAME) IN (",
    settings_that_matter!(),
    "))"
);
