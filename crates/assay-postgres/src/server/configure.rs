//! PostgreSQL's settings.
//!
//! The configuration is next to the data directory and includes the one that initdb wrote, so that a data directory can
//! be copied from an image and compared with it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use assay_client::Client;
use assay_lab::fault::{Fault, Result};
use assay_lab::process::output;
use assay_lab::product::{Configuration, Configure, InEffect, Role, ServerSetting, Site};

use super::Postgres;
use super::replicate::conninfo;

const FILES: [&str; 2] = ["postgresql.conf", "pg_hba.conf"];

impl Configure for Postgres {
    fn layout(&self) -> &'static [&'static str] {
        &["data_checksums", "wal_segment_size", "server_encoding", "lc_collate"]
    }

    fn huge_page_settings(&self) -> Vec<ServerSetting> {
        vec![ServerSetting::new("huge_pages", "on")]
    }

    fn configuration_files(&self) -> &'static [&'static str] {
        &FILES
    }

    fn configuration(&self, site: &Site<'_>, wanted: &Configuration<'_>) -> Result<Vec<(PathBuf, String)>> {
        let version = &site.binaries.version;
        let mut lines = vec![
            "# Written by assay, overwritten at every start.".to_owned(),
            format!("include = '{}'", site.data.join("postgresql.conf").display()),
            format!("hba_file = '{}'", site.folder.join(FILES[1]).display()),
            "listen_addresses = '127.0.0.1'".to_owned(),
            format!("port = {}", site.port),
            format!("unix_socket_directories = '{}'", site.folder.display()),
        ];
        if *wanted.role != Role::Alone {
            lines.push("wal_level = replica".to_owned());
            lines.push("max_wal_senders = 10".to_owned());
            lines.push("hot_standby = on".to_owned());
            lines.push(
                if version.at_least(13, 0) { "wal_keep_size = 1GB" } else { "wal_keep_segments = 64" }.to_owned(),
            );
        }
        if let (Role::Replica { primary, number }, true) = (wanted.role, version.at_least(12, 0)) {
            lines.push(format!("primary_conninfo = '{}'", conninfo(*primary, *number)));
        }
        lines.extend(wanted.file.iter().flat_map(|file| file.lines()).map(str::to_owned));
        for asked in wanted.settings {
            let Some(value) = &asked.value else {
                return Err(Fault::usage(format!("setting {} has no value", asked.name))
                    .hint(format!("write --set {}=VALUE", asked.name)));
            };
            lines.push(format!("{} = '{}'", asked.name, value.trim_matches('\'').replace('\'', "''")));
        }
        let mut access = vec!["local all postgres trust".to_owned()];
        match wanted.access {
            [] => access.extend(["local all all trust", "host all all 127.0.0.1/32 trust"].map(str::to_owned)),
            given => access.extend(given.iter().cloned()),
        }
        access.push("host replication all 127.0.0.1/32 trust".to_owned());
        Ok(vec![
            (site.folder.join(FILES[0]), lines.join("\n") + "\n"),
            (site.folder.join(FILES[1]), access.join("\n") + "\n"),
        ])
    }

    fn arguments(&self, site: &Site<'_>) -> Vec<OsString> {
        let config = format!("config_file={}", site.folder.join(FILES[0]).display());
        vec!["-D".into(), site.data.into(), "-c".into(), config.into()]
    }

    fn pretend_data(&self, data: &Path) -> std::io::Result<()> {
        std::fs::write(data.join("postgresql.conf"), "")
    }

    fn known_settings(&self, site: &Site<'_>) -> Result<Vec<String>> {
        let mut command = site.command(&site.binaries.program);
        let text = output("list its settings", command.arg("--describe-config"))?;
        Ok(text.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect())
    }

    fn may_know(&self, site: &Site<'_>, name: &str, _: &Configuration<'_>) -> bool {
        // A name with a dot belongs to an extension, or to nobody; the list omits developer options.
        let shown = |name: &str| {
            let mut command = site.command(&site.binaries.program);
            output("show a setting", command.args(["-C", name, "-D"]).arg(site.data)).is_ok()
        };
        name.contains('.') || shown(name)
    }

    fn has_settings_without_value(&self) -> bool {
        false
    }

    fn refuses(&self, site: &Site<'_>, settings: &[&ServerSetting]) -> Option<String> {
        // It shows one setting, after it has parsed all of them.
        let mut command = site.command(&site.binaries.program);
        command.args(["-C", "port", "-D"]).arg(site.data).stdin(Stdio::null());
        let words = |one: &&ServerSetting| format!("{}={}", one.name, one.value.as_deref().unwrap_or_default());
        command.args(settings.iter().flat_map(|one| ["-c".to_owned(), words(one)]));
        let said = command.output().ok().filter(|said| !said.status.success())?.stderr;
        let said = String::from_utf8_lossy(&said);
        let after = |label: &str| said.lines().find_map(|line| Some(line.split_once(label)?.1.trim().to_owned()));
        let cause = after("FATAL:")?;
        Some(after("HINT:").map_or(cause.clone(), |hint| format!("{cause}. {hint}")))
    }

    fn settings_of_file(&self, text: &str) -> Vec<ServerSetting> {
        text.lines().filter_map(setting_of_line).collect()
    }

    fn in_effect(
        &self,
        session: &mut Client,
        settings: &[ServerSetting],
    ) -> std::result::Result<Vec<InEffect>, String> {
        let mut all = Vec::new();
        for one in settings {
            let name = one.name.to_ascii_lowercase();
            // The server itself reports whether the line of our file is in effect.
            let applied = format!(
                "SELECT current_setting('{0}', true), (SELECT applied AND sourcefile NOT LIKE '%postgresql.auto.conf' \
                 FROM pg_file_settings WHERE lower(name) = '{0}' ORDER BY seqno DESC LIMIT 1)",
                name.replace('\'', "''")
            );
            let row = session.rows(&applied)?.pop();
            let (value, same) = match row.as_deref() {
                Some([value, same]) => (value.clone(), same.as_deref() == Some("t")),
                _ => (None, false),
            };
            all.push(InEffect { name: one.name.clone(), asked: one.value.clone(), value, same });
        }
        Ok(all)
    }
}

/// `name = value`, `name 'value'`; `None`: nothing, a comment, or an include.
fn setting_of_line(line: &str) -> Option<ServerSetting> {
    let line = line.trim();
    let end = line.find(|c: char| c == '=' || c == '#' || c.is_whitespace()).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    if name.is_empty() || name.starts_with("include") {
        return None;
    }
    let rest = rest.trim_start().trim_start_matches('=').trim_start();
    let value = match rest.strip_prefix('\'') {
        // A quote within quotes is doubled.
        Some(quoted) => quoted.replace("''", "\0").split('\'').next().unwrap_or_default().replace('\0', "'"),
        None => rest.split('#').next().unwrap_or_default().trim().to_owned(),
    };
    Some(ServerSetting::new(name, &value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_from_a_file_as_the_server_reads_them() {
        let text = "# comment\n\nwork_mem = 5MB  # more\nport=1\nshared_buffers 1GB\ninclude 'other.conf'\n\
                    log_line_prefix = '%m ''x'' # '  # why\n  fsync=off\n";
        let read: Vec<String> = Postgres
            .settings_of_file(text)
            .into_iter()
            .map(|setting| format!("{}={}", setting.name, setting.value.unwrap()))
            .collect();
        assert_eq!(read, ["work_mem=5MB", "port=1", "shared_buffers=1GB", "log_line_prefix=%m 'x' # ", "fsync=off"]);
    }
}
