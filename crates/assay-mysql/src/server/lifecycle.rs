//! From an empty folder to a stopped server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_client::Client;
use assay_lab::fault::Result;
use assay_lab::process::output;
use assay_lab::product::{Lifecycle, ServerSetting, Settled, Site};
use assay_lab::version::Version;
use nix::sys::signal::Signal;

use super::Member;
use super::settle::settle;

impl Lifecycle for Member {
    fn initialize(&self, site: &Site<'_>, layout: &[ServerSetting]) -> Result<()> {
        let mut command = (self.initializer)(site);
        command.args(layout.iter().map(|one| format!("--{}={}", one.name, one.value.as_deref().unwrap_or("ON"))));
        output("create a data directory", &mut command).map(drop)
    }

    fn first_settings(&self) -> Vec<ServerSetting> {
        // Statements from here on are not replicated.
        vec![
            ServerSetting { name: "skip_log_bin".to_owned(), value: None },
            ServerSetting::new("innodb_flush_log_at_trx_commit", "2"),
        ]
    }

    fn first_statements(&self) -> &'static [&'static str] {
        FIRST
    }

    fn is_data(&self, data: &Path) -> bool {
        is_data(data)
    }

    fn data_version(&self, data: &Path) -> Option<String> {
        data_version(data)
    }

    fn in_use(&self, data: &Path) -> Option<String> {
        in_use(data)
    }

    fn socket(&self, site: &Site<'_>) -> PathBuf {
        socket(site)
    }

    fn administrator(&self, site: &Site<'_>) -> String {
        let path = socket(site).display().to_string().replace('%', "%25").replace('&', "%26").replace('#', "%23");
        format!("mysql://root@/?socket={path}&ssl-mode=disabled")
    }

    fn socket_url(&self, site: &Site<'_>, database: &str) -> String {
        format!("{}://app@localhost/{database}?socket={}", self.name, socket(site).display())
    }

    fn client(&self, site: &Site<'_>) -> (&'static [&'static str], Vec<String>) {
        let port = format!("--port={}", site.port);
        let arguments = ["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=app", &port, "app"];
        (self.clients, arguments.map(str::to_owned).into())
    }

    fn settle(&self, session: &mut Client, _: &Version, patience: Duration) -> std::result::Result<Settled, String> {
        settle(session, patience)
    }

    fn checkpoint(
        &self,
        session: &mut Client,
        _: &Version,
        patience: Duration,
    ) -> std::result::Result<Settled, String> {
        settle(session, patience)
    }

    fn stop_signals(&self) -> &'static [Signal] {
        // A second one is SIGKILL.
        &[Signal::SIGTERM]
    }
}

/// The user `app`, who may do everything from anywhere on this machine, without a password.
const FIRST: &[&str] = &[
    "CREATE DATABASE IF NOT EXISTS app",
    "CREATE USER app@'%'",
    "GRANT ALL ON *.* TO app@'%' WITH GRANT OPTION",
    // Installations of old versions create users without a name, which would take precedence.
    "DELETE FROM mysql.user WHERE User = ''",
    "FLUSH PRIVILEGES",
];

/// The unix socket.
pub(super) fn socket(site: &Site<'_>) -> PathBuf {
    site.folder.join("mysql.sock")
}

/// The version that created a data directory: MariaDB and MySQL record it when they upgrade their own tables.
fn data_version(data: &Path) -> Option<String> {
    let names = ["mysql_upgrade_info", "mariadb_upgrade_info", "mysql_upgrade_history"];
    let text = names.iter().find_map(|name| std::fs::read_to_string(data.join(name)).ok())?;
    let version = Version::find(text.lines().next()?)?;
    Some(version.to_string())
}

/// InnoDB locks its first file. The kernel lists locks by inode.
fn in_use(data: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let inode = std::fs::metadata(data.join("ibdata1")).ok()?.ino();
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let of_file = |line: &&str| line.split_whitespace().any(|word| word.ends_with(&format!(":{inode}")));
    let line = locks.lines().find(of_file)?;
    // 1: POSIX  ADVISORY  WRITE 12345 fe:00:98765 0 EOF
    let pid = line.split_whitespace().nth(4).unwrap_or("?");
    Some(format!("process {pid} runs on it"))
}

fn is_data(data: &Path) -> bool {
    data.join("ibdata1").is_file() && data.join("mysql").is_dir()
}
