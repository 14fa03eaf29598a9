//! What MySQL and MariaDB have in common: option file, variables, flushing InnoDB.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use assay_seam::Driver;
use nix::sys::signal::Signal;

use super::{Artifact, Asked, Binaries, InEffect, Product, Role, Settled, Site, Wishes};
use crate::fault::Result;
use crate::process::output;
use crate::sql::SqlClient;
use crate::version::Version;
use crate::wait::{self, Stopwatch};

/// What differs between the products of the family; the rest is the same, below.
pub(super) trait Member: Sync {
    /// See `Product::name`.
    const NAME: &'static str;
    /// See `Product::title`.
    const TITLE: &'static str;
    /// See `Product::programs`.
    const PROGRAMS: &'static [&'static str];
    /// Names of the program that people talk to it with.
    const CLIENTS: &'static [&'static str];
    /// See `Product::places`.
    const PLACES: &'static [&'static str];
    /// See `Product::package`.
    const PACKAGE: &'static str;
    /// See `Product::catalog`.
    const CATALOG: &'static [Artifact];

    /// Whether what a program answers to `--version` is of this product.
    fn is_said(words: &str) -> bool;

    /// See `Product::environment`.
    fn environment(binaries: &Binaries) -> Vec<(String, String)>;

    /// The command that makes an empty data directory, without the settings of the layout.
    fn initializer(site: &Site<'_>) -> Command;

    /// Lines of the configuration that only this product needs.
    fn special(site: &Site<'_>, role: &Role) -> Vec<String>;

    /// See `Product::become_replica`.
    fn become_replica(site: &Site<'_>) -> Result<()>;

    /// See `Product::follow`.
    fn follow(
        version: &Version,
        primary: (&mut SqlClient, u16),
        replica: &mut SqlClient,
    ) -> std::result::Result<(), String>;

    /// See `Product::caught_up`.
    fn caught_up(primary: &mut SqlClient, replica: &mut SqlClient) -> std::result::Result<bool, String>;
}

impl<T: Member> Product for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn title(&self) -> &'static str {
        T::TITLE
    }

    fn driver(&self) -> Driver {
        assay_mysql::DRIVER
    }

    fn programs(&self) -> &'static [&'static str] {
        T::PROGRAMS
    }

    fn places(&self) -> Vec<PathBuf> {
        T::PLACES.iter().map(PathBuf::from).collect()
    }

    fn package(&self) -> &'static str {
        T::PACKAGE
    }

    fn catalog(&self) -> &'static [Artifact] {
        T::CATALOG
    }

    fn version_said(&self, words: &str) -> Option<Version> {
        let (_, version) = words.split_once(" Ver ")?;
        T::is_said(words).then(|| Version::find(version)).flatten()
    }

    fn environment(&self, binaries: &Binaries) -> Vec<(String, String)> {
        T::environment(binaries)
    }

    /// Settings that are decided when the data directory is made.
    fn layout(&self) -> &'static [&'static str] {
        &["innodb_page_size", "innodb_data_file_path", "innodb_undo_tablespaces", "lower_case_table_names"]
    }

    fn initialize(&self, site: &Site<'_>, layout: &[Asked]) -> Result<()> {
        let mut command = T::initializer(site);
        command.args(layout.iter().map(|asked| format!("--{}={}", asked.name, asked.value.as_deref().unwrap_or("ON"))));
        output("create a data directory", &mut command).map(drop)
    }

    fn administrator(&self, site: &Site<'_>) -> String {
        let path = socket(site).display().to_string().replace('%', "%25").replace('&', "%26").replace('#', "%23");
        format!("mysql://root@/?socket={path}&ssl-mode=disabled")
    }

    fn socket(&self, site: &Site<'_>) -> PathBuf {
        socket(site)
    }

    fn first_statements(&self) -> &'static [&'static str] {
        FIRST
    }

    fn configuration(&self, site: &Site<'_>, wishes: &Wishes<'_>) -> Result<Vec<(PathBuf, String)>> {
        Ok(configuration(site, wishes, &T::special(site, wishes.role)))
    }

    fn arguments(&self, site: &Site<'_>) -> Vec<OsString> {
        vec![format!("--defaults-file={}", site.folder.join("my.cnf").display()).into()]
    }

    fn known_settings(&self, site: &Site<'_>) -> Result<Vec<String>> {
        known_settings(site, &T::environment(site.binaries))
    }

    fn may_know(&self, _: &Site<'_>, name: &str, wishes: &Wishes<'_>) -> bool {
        may_know(name, wishes)
    }

    fn settings_of_file(&self, text: &str) -> Vec<Asked> {
        settings_of_file(text, T::NAME)
    }

    fn in_effect(&self, session: &mut SqlClient, asked: &[Asked]) -> std::result::Result<Vec<InEffect>, String> {
        in_effect(session, asked)
    }

    fn stop_signals(&self) -> &'static [Signal] {
        // A second one is SIGKILL.
        &[Signal::SIGTERM]
    }

    fn client(&self, site: &Site<'_>) -> (&'static [&'static str], Vec<String>) {
        let port = format!("--port={}", site.port);
        let arguments = ["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=app", &port, "app"];
        (T::CLIENTS, arguments.map(str::to_owned).into())
    }

    fn data_version(&self, data: &Path) -> Option<String> {
        data_version(data)
    }

    fn in_use(&self, data: &Path) -> Option<String> {
        in_use(data)
    }

    fn is_data(&self, data: &Path) -> bool {
        is_data(data)
    }

    fn first_settings(&self) -> Vec<Asked> {
        // Statements from here on are not replicated.
        vec![Asked { name: "skip_log_bin".to_owned(), value: None }, Asked::new("innodb_flush_log_at_trx_commit", "2")]
    }

    fn become_replica(&self, site: &Site<'_>, _: &Role) -> Result<()> {
        T::become_replica(site)
    }

    fn follow(
        &self,
        version: &Version,
        primary: (&mut SqlClient, u16),
        replica: &mut SqlClient,
    ) -> std::result::Result<(), String> {
        T::follow(version, primary, replica)
    }

    fn caught_up(
        &self,
        _: &Version,
        primary: &mut SqlClient,
        replica: &mut SqlClient,
        _: u32,
    ) -> std::result::Result<bool, String> {
        T::caught_up(primary, replica)
    }

    fn settle(&self, session: &mut SqlClient, _: &Version, patience: Duration) -> std::result::Result<Settled, String> {
        settle(session, patience)
    }

    fn checkpoint(
        &self,
        session: &mut SqlClient,
        _: &Version,
        patience: Duration,
    ) -> std::result::Result<Settled, String> {
        settle(session, patience)
    }

    fn huge_page_settings(&self) -> Vec<Asked> {
        vec![Asked { name: "large-pages".to_owned(), value: None }]
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

/// Paths that it needs if it is not where it was built for.
pub(super) fn places(binaries: &Binaries) -> Vec<String> {
    if binaries.is_installed() {
        return Vec::new();
    }
    let base = binaries.base();
    vec![format!("basedir = {}", base.display()), format!("lc_messages_dir = {}", base.join("share").display())]
}

fn socket(site: &Site<'_>) -> PathBuf {
    site.folder.join("mysql.sock")
}

/// The `[mysqld]` section. `special`: lines of one of the products, after the common ones.
fn configuration(site: &Site<'_>, wishes: &Wishes<'_>, special: &[String]) -> Vec<(PathBuf, String)> {
    let mut lines = vec![
        "# Written by assay, overwritten at every start.".to_owned(),
        "[mysqld]".to_owned(),
        format!("datadir = {}", site.data.display()),
        format!("socket = {}", socket(site).display()),
        format!("pid_file = {}", site.folder.join("server.pid").display()),
        // At its start a server deletes temporary tables there, including those of others.
        format!("tmpdir = {}", site.folder.display()),
        format!("port = {}", site.port),
        "bind_address = 127.0.0.1".to_owned(),
        "skip_name_resolve".to_owned(),
        // If the buffer pool is reloaded automatically, the second start is a different experiment from the first.
        "innodb_buffer_pool_dump_at_shutdown = OFF".to_owned(),
        "innodb_buffer_pool_load_at_startup = OFF".to_owned(),
    ];
    match wishes.role {
        Role::Alone => {}
        Role::Primary => lines.extend(["server_id = 1".to_owned(), "log_bin = binlog".to_owned()]),
        Role::Replica { number, .. } => {
            let relay = format!("relay_log = {}", site.folder.join("relay").display());
            lines.extend([format!("server_id = {}", number + 1), relay, "read_only = ON".to_owned()]);
        }
    }
    lines.extend(special.iter().cloned());
    lines.extend(wishes.file.iter().flat_map(|file| file.lines()).map(str::to_owned));
    if wishes.file.is_some() {
        // The file may have started another section.
        lines.push("[mysqld]".to_owned());
    }
    lines.extend(wishes.settings.iter().map(|asked| match &asked.value {
        Some(value) => format!("{} = {value}", asked.name),
        None => asked.name.clone(),
    }));
    vec![(site.folder.join("my.cnf"), lines.join("\n") + "\n")]
}

/// The variables that `--verbose --help` lists, after a line of dashes.
fn known_settings(site: &Site<'_>, environment: &[(String, String)]) -> Result<Vec<String>> {
    let mut command = site.command(&site.binaries.program);
    let places = places(site.binaries);
    command.arg("--no-defaults").args(places.iter().map(|line| format!("--{}", line.replace(" = ", "="))));
    command.args(["--verbose", "--help"]).envs(environment.iter().map(|(name, value)| (name, value)));
    let text = output("list its settings", &mut command)?;
    let list = text.lines().skip_while(|line| !line.starts_with("----")).skip(1);
    let listed = list.take_while(|line| !line.is_empty()).filter_map(|line| line.split(' ').next());
    Ok(listed.filter(|name| !name.is_empty()).map(underscored).collect())
}

/// A plugin adds settings that the program does not list.
fn may_know(name: &str, wishes: &Wishes<'_>) -> bool {
    let name = underscored(name);
    let loads = |text: &str| underscored(text).contains("plugin_load") || text.contains("early-plugin-load");
    let loaded = wishes.settings.iter().any(|asked| loads(&asked.name)) || wishes.file.is_some_and(loads);
    // `loose_` tells a server to ignore the option if it is unknown.
    name.starts_with("loose_") || loaded
}

/// As variables are spelled: an option's `-` is a variable's `_`.
fn underscored(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('-', "_")
}

fn in_effect(session: &mut SqlClient, asked: &[Asked]) -> std::result::Result<Vec<InEffect>, String> {
    let mut all = Vec::new();
    for one in asked {
        let written = underscored(&one.name);
        // `skip_x` and `disable_x` mean that `x` is off.
        let variable = written.trim_start_matches("loose_");
        let off = ["skip_", "disable_"].iter().find_map(|prefix| variable.strip_prefix(prefix));
        let mut shown = |name: &str| -> std::result::Result<Option<String>, String> {
            let rows =
                session.rows(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name = '{}'", name.replace('\'', "''")))?;
            Ok(rows.into_iter().next().and_then(|row| row.into_iter().nth(1).flatten()))
        };
        let (value, wanted) = match (shown(variable)?, off) {
            (Some(value), _) => (Some(value), one.value.clone().unwrap_or_else(|| "ON".to_owned())),
            (None, Some(off)) => (shown(off)?, "OFF".to_owned()),
            (None, None) => (None, String::new()),
        };
        let same = value.as_deref().is_some_and(|value| mean_the_same(&wanted, value));
        all.push(InEffect { name: one.name.clone(), asked: one.value.clone(), value, same });
    }
    Ok(all)
}

/// `1G` and `1073741824`, `on` and `1`.
fn mean_the_same(asked: &str, shown: &str) -> bool {
    let plain = |text: &str| text.trim().trim_matches(['\'', '"']).to_ascii_uppercase();
    let switch = |text: &str| match text {
        "ON" | "1" | "TRUE" | "YES" => Some(true),
        "OFF" | "0" | "FALSE" | "NO" => Some(false),
        _ => None,
    };
    let (asked, shown) = (plain(asked), plain(shown));
    if let (Some(asked), Some(shown)) = (switch(&asked), switch(&shown)) {
        return asked == shown;
    }
    match (number(&asked), number(&shown)) {
        (Some(asked), Some(shown)) => asked == shown,
        _ => asked == shown,
    }
}

fn number(text: &str) -> Option<f64> {
    let units = [("K", 10), ("M", 20), ("G", 30), ("T", 40), ("P", 50)];
    let unit = units.iter().find_map(|(unit, bits)| text.strip_suffix(unit).map(|number| (number, 1u64 << bits)));
    let (digits, factor) = unit.unwrap_or((text, 1));
    digits.parse::<f64>().ok().map(|number| number * factor as f64)
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

/// The name and value of a global variable, or of a status variable.
fn one(session: &mut SqlClient, sql: &str) -> Option<String> {
    session.rows(sql).ok()?.into_iter().next()?.into_iter().nth(1).flatten()
}

/// Makes InnoDB flush its dirty pages as fast as possible, until almost none are left. There is no command for it:
/// settings that make it hurry are set, and restored.
fn settle(session: &mut SqlClient, patience: Duration) -> std::result::Result<Settled, String> {
    // Each with the value that makes it hurry.
    let hurry = [
        ("innodb_max_dirty_pages_pct_lwm", "0"),
        ("innodb_max_dirty_pages_pct", "0"),
        ("innodb_idle_flush_pct", "100"),
    ];
    let mut before = Vec::new();
    for (name, value) in hurry {
        let shown = one(session, &format!("SHOW GLOBAL VARIABLES LIKE '{name}'"));
        if let Some(shown) = shown.filter(|_| session.rows(&format!("SET GLOBAL {name} = {value}")).is_ok()) {
            before.push((name, shown));
        }
    }
    let written = write_out(session, patience);
    // In reverse order, because the server limits some settings by others.
    for (name, value) in before.iter().rev() {
        session.rows(&format!("SET GLOBAL {name} = {value}"))?;
    }
    let mut settled = written?;
    if let Some((words, done)) = rocks(session) {
        settled.reached.push(words);
        settled.complete &= done;
    }
    Ok(settled)
}

/// Waits for the pages, then for the checkpoint that follows them.
fn write_out(session: &mut SqlClient, patience: Duration) -> std::result::Result<Settled, String> {
    let watch = Stopwatch::start();
    let mut dirty = 0;
    let clean = wait::until(patience, || {
        let pages = one(session, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'");
        dirty = pages.and_then(|pages| pages.parse::<u64>().ok()).ok_or("it does not say how many pages are dirty")?;
        Ok::<_, String>((dirty <= DIRTY_PAGES).then_some(()))
    })?;
    let mut reached = vec![format!("{dirty} dirty pages")];
    // Some versions make no checkpoint while nothing is written: the current state is reported.
    let left = patience.saturating_sub(watch.elapsed()).min(CHECKPOINT_PATIENCE);
    let mut age = checkpoint_age(session);
    let _ = wait::until(left, || {
        age = checkpoint_age(session);
        Ok::<_, ()>(age.is_none_or(|age| age <= CHECKPOINT_AGE).then_some(()))
    });
    reached.extend(age.map(|age| format!("checkpoint age {age} bytes")));
    Ok(Settled { reached, complete: clean.is_some() })
}

/// Bytes of redo log that a recovery would have to read; `None`: not reported.
fn checkpoint_age(session: &mut SqlClient) -> Option<u64> {
    let row = session.rows("SHOW ENGINE INNODB STATUS").ok()?.into_iter().next()?;
    age_in(row.last()?.as_ref()?)
}

fn age_in(status: &str) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        status.lines().find_map(|line| line.strip_prefix(name)?.trim_start_matches([' ', '=', ':']).trim().parse().ok())
    };
    number("Log sequence number")?.checked_sub(number("Last checkpoint at")?)
}

/// This little hardly matters for a recovery.
const CHECKPOINT_AGE: u64 = 64 << 10;
/// A checkpoint follows the pages within a second, if it follows at all.
const CHECKPOINT_PATIENCE: Duration = Duration::from_secs(5);
/// This few are always dirty again.
const DIRTY_PAGES: u64 = 32;

/// Flushes MyRocks, if it is loaded: the result in words, and whether it is complete.
fn rocks(session: &mut SqlClient) -> Option<(String, bool)> {
    one(session, "SHOW GLOBAL VARIABLES LIKE 'rocksdb_force_flush_memtable_now'")?;
    let orders = ["rocksdb_force_flush_memtable_now", "rocksdb_force_flush_memtable_and_lzero_now"];
    let refused = orders.iter().find_map(|order| session.rows(&format!("SET GLOBAL {order} = 1")).err());
    Some(match refused {
        None => ("MyRocks flushed, level 0 compacted".to_owned(), true),
        Some(words) => (format!("MyRocks was not flushed: {words}"), false),
    })
}

/// The settings of the sections that a server reads; lines before any section count, because our own come before them.
fn settings_of_file(text: &str, product: &str) -> Vec<Asked> {
    let mut ours = true;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let base = section.split_once('-').map_or(section, |(base, _)| base);
            ours = ["server", "mysqld"].contains(&base)
                || (product == "mariadb" && ["mariadb", "mariadbd"].contains(&base));
        } else if ours && !line.is_empty() && !line.starts_with(['#', ';', '!']) {
            let line = line.split(" #").next().unwrap_or_default();
            let asked = Asked::parse(line);
            let value = asked.value.map(|value| value.trim_matches(['\'', '"']).to_owned());
            found.push(Asked { value, ..asked });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_what_they_mean() {
        for (asked, shown) in [
            ("1G", "1073741824"),
            ("on", "ON"),
            ("1", "ON"),
            ("0", "OFF"),
            ("O_DIRECT", "o_direct"),
            ("75", "75.000000"),
        ] {
            assert!(mean_the_same(asked, shown), "{asked} {shown}");
        }
        for (asked, shown) in [("130M", "134217728"), ("2", "1"), ("off", "ON"), ("ROW", "MIXED")] {
            assert!(!mean_the_same(asked, shown), "{asked} {shown}");
        }
    }

    #[test]
    fn settings_are_read_from_the_sections_of_a_server() {
        let text = "max_connections = 7\n[client]\nport=1\n[mysqld]\n# no\nsort-buffer-size=5M # why\n!include x\n\
                    skip-name-resolve\n[mysqld-8.0]\ntmp_table_size = '1M'\n[mariadb]\nthread_handling = pool-of-threads\n";
        let read = |product: &str| -> Vec<String> {
            let all = settings_of_file(text, product);
            all.into_iter().map(|asked| format!("{}={}", asked.name, asked.value.unwrap_or_default())).collect()
        };
        let common = ["max_connections=7", "sort-buffer-size=5M", "skip-name-resolve=", "tmp_table_size=1M"];
        assert_eq!(read("mysql"), common);
        assert_eq!(read("mariadb"), [&common[..], &["thread_handling=pool-of-threads"]].concat());
    }

    #[test]
    fn the_age_of_the_checkpoint_is_read_from_every_versions_words() {
        let old = "LOG\n---\nLog sequence number 2543\nLog flushed up to   2543\nLast checkpoint at  2500\n";
        let new = "Log sequence number          19574219\nLog buffer assigned up to    19574219\n\
                   Last checkpoint at           19574219\n";
        assert_eq!((age_in(old), age_in(new), age_in("nothing")), (Some(43), Some(0), None));
    }
}
