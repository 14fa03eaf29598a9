//! What may differ between trials of one setting: names of things and paths, and counters, none of which makes a server
//! faster or slower.
//!
//! The list is deliberately short: any other difference makes two settings. docs/methodology.md explains it to users.

use crate::findings::run::ServerFindings;

/// Server settings that never matter.
const SETTINGS: [&str; 62] = [
    // PostgreSQL
    "application_name",
    "bonjour_name",
    "cluster_name",
    "config_file",
    "event_source",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "krb_server_keyfile",
    "listen_addresses",
    "log_directory",
    "log_file_mode",
    "log_filename",
    "port",
    "ssl_ca_file",
    "ssl_cert_file",
    "ssl_crl_file",
    "ssl_key_file",
    "stats_temp_directory",
    "syslog_ident",
    "unix_socket_directories",
    "unix_socket_group",
    "unix_socket_permissions",
    // MySQL and MariaDB
    "admin_port",
    "basedir",
    "bind_address",
    "character_sets_dir",
    "general_log_file",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "gtid_executed",
    "gtid_purged",
    "gtid_slave_pos",
    "hostname",
    "lc_messages_dir",
    "log_bin_basename",
    "log_bin_index",
    "log_error",
    "mysqlx_bind_address",
    "mysqlx_port",
    "mysqlx_socket",
    "pid_file",
    "plugin_dir",
    "relay_log",
    "relay_log_basename",
    "relay_log_index",
    "relay_log_info_file",
    "report_host",
    "report_port",
    "secure_file_priv",
    "server_id",
    "server_uid",
    "server_uuid",
    "slow_query_log_file",
    "socket",
    "ssl_ca",
    "ssl_cert",
    "ssl_key",
    "timestamp",
    "version_compile_machine",
    "wsrep_node_name",
];

/// Folders, which do not matter if the filesystem and the drive below them are known.
const FOLDERS: [&str; 3] = ["data_directory", "datadir", "tmpdir"];

/// Facts of a server's process that mirror its settings, which are known better.
const FACTS: [&str; 2] = ["command line", "data directory"];

/// Whether a setting of this server may differ between trials of one setting.
pub(crate) fn is_harmless_setting(name: &str, of: &ServerFindings) -> bool {
    SETTINGS.contains(&name) || (FOLDERS.contains(&name) && of.facts.contains_key("filesystem"))
}

/// Whether a fact may.
pub(crate) fn is_harmless_fact(name: &str) -> bool {
    FACTS.contains(&name)
}
