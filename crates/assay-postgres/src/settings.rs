//! PostgreSQL's settings: how to read them, and which of them do not matter.

use assay_telemetry::{Harmless, SettingFacts};

/// What is known about them.
pub const SETTINGS: SettingFacts = SettingFacts {
    queries: &[QUERY],
    defaults: |_| None,
    harmless: &[
        Harmless {
            why: "names",
            names: &["application_name", "bonjour_name", "cluster_name", "event_source", "syslog_ident"],
        },
        Harmless {
            why: "addresses",
            names: &[
                "listen_addresses",
                "port",
                "unix_socket_directories",
                "unix_socket_group",
                "unix_socket_permissions",
            ],
        },
        Harmless {
            why: "names of files",
            names: &[
                "config_file",
                "external_pid_file",
                "hba_file",
                "ident_file",
                "krb_server_keyfile",
                "log_directory",
                "log_file_mode",
                "log_filename",
                "ssl_ca_file",
                "ssl_cert_file",
                "ssl_crl_file",
                "ssl_key_file",
                "stats_temp_directory",
            ],
        },
    ],
    folders: &["data_directory"],
    // Connection strings, and shell commands in which people put passwords.
    is_secret: |name| name.contains("conninfo") || name.ends_with("_command"),
};

/// A name that a version does not have is omitted. A setting that differs because this connection set it says nothing
/// about the server; a calculated one differs although nobody set it.
const QUERY: &str = "SELECT name, current_setting(name), \
       CASE WHEN setting IS DISTINCT FROM boot_val AND source <> 'default' THEN source END FROM pg_settings \
       WHERE (setting IS DISTINCT FROM boot_val AND source NOT IN ('default', 'client', 'session')) \
       OR name IN ('autovacuum', 'block_size', \
         'checkpoint_completion_target', 'checkpoint_timeout', 'commit_delay', 'data_checksums', \
         'default_transaction_isolation', 'effective_cache_size', 'effective_io_concurrency', 'fsync', \
         'full_page_writes', 'huge_pages', 'io_method', 'jit', 'lc_collate', 'lc_ctype', 'maintenance_work_mem', \
         'max_connections', \
         'max_parallel_workers', 'max_wal_size', 'max_worker_processes', 'min_wal_size', 'random_page_cost', \
         'server_encoding', \
         'shared_buffers', 'shared_preload_libraries', 'synchronous_commit', 'synchronous_standby_names', \
         'track_io_timing', 'wal_buffers', 'wal_compression', 'wal_level', 'wal_sync_method', 'work_mem')";
