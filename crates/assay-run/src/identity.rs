//! What a record says of its run's identity besides what follows from its other fields: server settings that may differ
//! between trials of one setting. These are names of things and paths, and counters, none of which makes a server
//! faster or slower.
//!
//! The list is deliberately short: any other difference makes two settings. docs/methodology.md explains it to users.

use assay_record::{Attribute, AttributeScope, Record};

/// Writes down what distinguishes the run, before its record is written for the last time.
pub fn write_down(record: &mut Record) {
    note_harmless(record);
    record.identify();
}

/// Completes a record of an earlier version, which only lists the settings.
pub fn complete(record: &mut Record) {
    if record.identity.is_empty() {
        note_harmless(record);
    }
}

fn note_harmless(record: &mut Record) {
    let of = record.manifest.targets.len();
    for (place, server) in record.environment.servers.iter().enumerate() {
        let knows_drive = server.facts.contains_key("filesystem");
        let is_harmless =
            |name: &&String| SETTINGS.contains(&name.as_str()) || (knows_drive && FOLDERS.contains(&name.as_str()));
        let note = |name: &String| {
            let unknown = Attribute::unknown(AttributeScope::Server, name);
            Attribute { matters: false, ..unknown.numbered(place, of) }
        };
        record.identity.extend(server.settings.keys().filter(is_harmless).map(note));
    }
}

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

#[cfg(test)]
mod tests {
    use assay_record::Server;

    use super::*;

    #[test]
    fn settings_that_only_name_things_do_not_distinguish_runs() {
        let record = |port: &str, folder: &str, filesystem: Option<&str>| {
            let mut record = Record::default();
            record.manifest.targets = vec!["postgres://db".to_owned()];
            let pairs = [("port", port), ("data_directory", folder), ("work_mem", "4MB")];
            let settings = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let facts = filesystem.map(|name| ("filesystem".to_owned(), name.to_owned())).into_iter().collect();
            record.environment.servers = vec![Server { settings, facts, ..Server::default() }];
            record
        };
        // As an earlier version left it, and as it is written now.
        for written in [false, true] {
            let differ = |one: Record, other: Record| {
                let findings = [one, other].map(|mut record| {
                    if written {
                        write_down(&mut record);
                    }
                    complete(&mut record);
                    assay_report::findings(&record)
                });
                let [one, other] = findings;
                let all = assay_report::differences(&[one], &[other]);
                all.into_iter().map(|one| one.what).collect::<Vec<_>>()
            };
            assert!(differ(record("5432", "/a", Some("ext4")), record("5433", "/b", Some("ext4"))).is_empty());
            // If the drives are unknown, two folders may be on different ones.
            assert_eq!(differ(record("5432", "/a", None), record("5433", "/b", None)), ["server data_directory"]);
        }
    }
}
