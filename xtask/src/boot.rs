//! Services that a Debian package brings along start with the system unless somebody says otherwise. Servers for tests
//! are started by tests alone, so what did not start with the system before does not do so after.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::steps::{as_root, run};

/// Services in the packages that `install` asks for.
const SERVICES: [&str; 7] =
    ["clickhouse-server", "haproxy", "mariadb", "nats-server", "pgbouncer", "postgresql", "prometheus-node-exporter"];

/// Runs `install`, then takes from the services that start with the system those that did not before.
pub(crate) fn unchanged(install: impl FnOnce() -> Result<()>) -> Result<()> {
    let root = Path::new("/");
    let before = started(root);
    // A failed installation leaves some packages.
    let outcome = install();
    for service in started(root).difference(&before) {
        println!("{service} shall not start with the system because of us:");
        let command = disabling(root, service);
        run(as_root(&command[0])?.args(&command[1..]))?;
    }
    let left: Vec<_> = started(root).difference(&before).copied().collect();
    ensure!(left.is_empty(), "now started with the system, and was not before: {}", left.join(", "));
    outcome
}

/// The command that takes a service from those that start with the system. `update-rc.d` refuses what has no script of
/// System V init; the links of systemd are all there is then.
fn disabling(root: &Path, service: &str) -> Vec<String> {
    let unit = format!("{service}.service");
    let words = match root.join("etc/init.d").join(service).exists() {
        true => vec!["/usr/sbin/update-rc.d", service, "disable"],
        false => vec!["find", "/etc/systemd/system", "-path", "*.wants/*", "-name", &unit, "-delete"],
    };
    words.into_iter().map(str::to_owned).collect()
}

/// Services that the files below `root` start with the system: by a link of System V init to start one in any
/// runlevel, or by one of systemd that makes a target want it.
fn started(root: &Path) -> BTreeSet<&'static str> {
    let list = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    };
    let mut links: Vec<String> = (0..=6).flat_map(|level| list(&format!("etc/rc{level}.d"))).collect();
    for target in list("etc/systemd/system").iter().filter(|name| name.ends_with(".wants")) {
        links.extend(list(&format!("etc/systemd/system/{target}")));
    }
    let starts = |link: &str, service: &str| {
        // `S01mariadb`, `mariadb.service`.
        link.strip_suffix(".service") == Some(service)
            || link
                .strip_prefix('S')
                .is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()) == service)
    };
    SERVICES.into_iter().filter(|service| links.iter().any(|link| starts(link, service))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(links: &[&str], expected: &[&str]) {
        let root = tempfile::tempdir().unwrap();
        for link in links {
            let path = root.path().join("etc").join(link);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(started(root.path()).into_iter().collect::<Vec<_>>(), expected, "{links:?}");
    }

    #[test]
    fn what_starts_with_the_system_is_seen_by_its_links() {
        check(&[], &[]);
        check(&["rc3.d/S01mariadb"], &["mariadb"]);
        check(&["systemd/system/multi-user.target.wants/pgbouncer.service"], &["pgbouncer"]);
        check(&["rc2.d/S01postgresql", "rc5.d/S03mariadb", "rc6.d/K01postgresql"], &["mariadb", "postgresql"]);
    }

    #[test]
    fn what_has_only_a_unit_of_systemd_is_disabled_there() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("etc/init.d")).unwrap();
        fs::write(root.path().join("etc/init.d/mariadb"), "").unwrap();
        let command = |service: &str| disabling(root.path(), service).join(" ");
        assert_eq!(command("mariadb"), "/usr/sbin/update-rc.d mariadb disable");
        assert_eq!(
            command("nats-server"),
            "find /etc/systemd/system -path *.wants/* -name nats-server.service -delete"
        );
    }

    #[test]
    fn what_is_only_stopped_or_somebody_elses_does_not_start() {
        check(&["rc0.d/K01mariadb", "rc3.d/K01pgbouncer", "init.d/postgresql"], &[]);
        check(&["rc3.d/S01postgresql-exporter", "systemd/system/mysql.service"], &[]);
        check(&["systemd/system/multi-user.target.wants/mariadb-backup.service"], &[]);
    }
}
