//! From an empty folder to a stopped server.

use std::fs;
use std::path::Path;
use std::time::Duration;

use assay_client::Client;
use assay_lab::fault::{At, Result};
use assay_lab::process::runs_on_it;
use assay_lab::product::{Lifecycle, ServerSetting, Settled, Site};
use assay_lab::version::Version;
use assay_lab::wait;
use nix::sys::signal::Signal;

use super::ClickHouse;

impl Lifecycle for ClickHouse {
    /// The server makes what it needs in an empty folder.
    fn initialize(&self, site: &Site<'_>, _: &[ServerSetting]) -> Result<()> {
        fs::create_dir_all(site.data).at("create", site.data)?;
        site.account.own(site.data)
    }

    /// The user is in its configuration.
    fn first_statements(&self) -> &'static [&'static str] {
        &["CREATE DATABASE app"]
    }

    fn is_data(&self, data: &Path) -> bool {
        data.join("metadata/system").is_dir() && data.join("data/system").is_dir()
    }

    fn in_use(&self, data: &Path) -> Option<String> {
        let text = fs::read_to_string(data.join("status")).ok()?;
        runs_on_it(text.lines().find_map(|line| line.strip_prefix("PID: "))?, "clickhouse")
    }

    fn administrator(&self, site: &Site<'_>) -> String {
        format!("clickhouse://default@127.0.0.1:{}/default", site.port)
    }

    fn socket_url(&self, site: &Site<'_>, database: &str) -> String {
        format!("clickhouse://app@127.0.0.1:{}/{database}", site.port)
    }

    fn client(&self, site: &Site<'_>) -> (&'static [&'static str], Vec<String>) {
        let port = format!("--port={}", site.port);
        let arguments = ["--host=127.0.0.1", &port, "--user=app", "--database=app"];
        (&["clickhouse-client"], arguments.map(str::to_owned).into())
    }

    /// Waits until no parts are being merged.
    fn settle(&self, session: &mut Client, _: &Version, patience: Duration) -> std::result::Result<Settled, String> {
        let mut merges = String::new();
        let done = wait::until(patience, || {
            merges = session.value("SELECT count() FROM system.merges")?;
            Ok::<_, String>((merges == "0").then_some(()))
        })?;
        Ok(Settled { reached: vec![format!("{merges} merges")], complete: done.is_some() })
    }

    /// Nothing is in its memory only: every insertion writes its parts.
    fn checkpoint(
        &self,
        session: &mut Client,
        version: &Version,
        patience: Duration,
    ) -> std::result::Result<Settled, String> {
        self.settle(session, version, patience)
    }

    fn stop_signals(&self) -> &'static [Signal] {
        &[Signal::SIGTERM]
    }
}
