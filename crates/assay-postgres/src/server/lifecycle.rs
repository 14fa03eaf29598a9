//! From an empty folder to a stopped server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_client::Client;
use assay_lab::fault::{Fault, Result};
use assay_lab::process::{output, runs_on_it};
use assay_lab::product::{Lifecycle, ServerSetting, Settled, Site};
use assay_lab::version::Version;
use assay_lab::wait::Stopwatch;
use nix::sys::signal::Signal;

use super::Postgres;

impl Lifecycle for Postgres {
    fn initialize(&self, site: &Site<'_>, layout: &[ServerSetting]) -> Result<()> {
        let mut command = site.command(&site.binaries.beside(&["initdb"]));
        command.arg("-D").arg(site.data).args(["--username=postgres", "--auth=trust", "-N"]);
        let given = |name: &str| {
            layout.iter().find(|setting| setting.name == name).and_then(|setting| setting.value.as_deref())
        };
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

    fn first_settings(&self) -> Vec<ServerSetting> {
        // 9.6 records in the data directory that replicas cannot follow, unless it is configured otherwise once.
        vec![ServerSetting::new("fsync", "off"), ServerSetting::new("wal_level", "replica")]
    }

    fn first_statements(&self) -> &'static [&'static str] {
        &["CREATE ROLE app SUPERUSER LOGIN", "CREATE DATABASE app OWNER app"]
    }

    fn is_data(&self, data: &Path) -> bool {
        data.join("PG_VERSION").is_file()
    }

    fn data_version(&self, data: &Path) -> Option<String> {
        fs::read_to_string(data.join("PG_VERSION")).ok().map(|text| text.trim().to_owned())
    }

    fn can_use(&self, programs: &Version, data: &Version) -> bool {
        // The directory has the part of the version that must be the same.
        programs.is_a(data)
    }

    fn in_use(&self, data: &Path) -> Option<String> {
        runs_on_it(fs::read_to_string(data.join("postmaster.pid")).ok()?.lines().next()?, "postgres")
    }

    fn stale_files(&self) -> &'static [&'static str] {
        &["postmaster.pid"]
    }

    fn socket(&self, site: &Site<'_>) -> PathBuf {
        site.folder.join(format!(".s.PGSQL.{}", site.port))
    }

    fn administrator(&self, site: &Site<'_>) -> String {
        let folder = escaped(&site.folder.display().to_string());
        format!("postgres://postgres@/postgres?host={folder}&port={}&sslmode=disable", site.port)
    }

    fn socket_url(&self, site: &Site<'_>, database: &str) -> String {
        // The URL has the socket's folder; the port is part of the file's name.
        format!("postgres://app@/{database}?host={}&port={}", site.folder.display(), site.port)
    }

    fn client(&self, site: &Site<'_>) -> (&'static [&'static str], Vec<String>) {
        (&["psql"], vec![format!("postgres://app@127.0.0.1:{}/app", site.port)])
    }

    fn settle(
        &self,
        session: &mut Client,
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
        session: &mut Client,
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

    fn stop_signals(&self) -> &'static [Signal] {
        // Fast, which does not wait for clients; then immediate, which requires recovery at the next start.
        &[Signal::SIGINT, Signal::SIGQUIT]
    }
}

/// Runs a statement that the server cancels after `patience`, at least 1 ms.
fn within(session: &mut Client, sql: &str, patience: Duration) -> std::result::Result<(), String> {
    session.rows(&format!("SET statement_timeout = {}", patience.as_millis().max(1)))?;
    let done = session.rows(sql).map(drop);
    session.rows("SET statement_timeout = 0")?;
    done
}

/// A path as a value of a URL's option.
fn escaped(path: &str) -> String {
    path.replace('%', "%25").replace('&', "%26").replace('?', "%3F").replace('#', "%23").replace('+', "%2B")
}
