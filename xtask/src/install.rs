//! Installs the servers and tools that tests and benchmarks need, once.
//!
//! From Debian by apt, without starting any service, now or at boot; what no Debian package has is fetched by testkit's
//! program `fetch-servers`. What is missing is listed before anything is installed. What is present is left alone, so
//! that a second run takes no time and needs no network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::boot;
use crate::steps::{as_root, cargo, run};

/// What `cargo xtask install` takes.
#[derive(Args)]
pub struct Options {
    /// Only what Debian has
    #[arg(long)]
    packages: bool,
}

/// Installs what is missing.
pub fn run_all(options: &Options) -> Result<()> {
    components()?;
    packages()?;
    if options.packages {
        return Ok(());
    }
    run(&mut cargo(&["run", "--quiet", "--package", "testkit", "--bin", FETCH]))
}

/// Everything, as a task that needs servers calls it.
pub fn everything() -> Result<()> {
    run_all(&Options { packages: false })
}

/// The program that fetches what Debian does not have.
pub const FETCH: &str = "fetch-servers";

/// rustfmt and clippy are not part of rustup's minimal profile.
pub fn components() -> Result<()> {
    for (name, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        let present = cargo(&[subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status()?.success();
        if !present {
            run(Command::new("rustup").args(["component", "add", name]))?;
        }
    }
    Ok(())
}

/// What counts instructions.
pub fn valgrind() -> Result<()> {
    if program("valgrind") { Ok(()) } else { apt_install(&["valgrind"]) }
}

/// Debian packages, and how to tell whether each is needed.
fn missing_packages() -> Vec<&'static str> {
    let bin = |name: &str| ["/usr/sbin", "/usr/bin"].iter().any(|folder| Path::new(folder).join(name).is_file());
    let wanted = [
        ("postgresql", !has_postgres()),
        ("mariadb-server", !bin("mariadbd")),
        ("pgbouncer", !bin("pgbouncer")),
        ("haproxy", !bin("haproxy")),
        // The bus of a fleet, what builds a newer one, and clocks that are wrong.
        ("nats-server", !bin("nats-server")),
        ("golang-go", !program("go") && !Path::new("/usr/local/go/bin/go").is_file()),
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
        ("python3-pip", !program("pip3")),
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
        ("maven", !program("mvn")),
        // To compile the program of mongo-java-server.
        ("default-jdk-headless", !program("javac")),
        ("unzip", !program("unzip")),
        ("xz-utils", !program("xz")),
    ];
    wanted.into_iter().filter(|(_, missing)| *missing).map(|(name, _)| name).collect()
}

/// Whether any version has its server here, the Debian way.
fn has_postgres() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.into_iter().any(|version| version.path().join("bin/postgres").is_file())
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
    if missing.is_empty() {
        return Ok(());
    }
    println!("to be installed for tests and benchmarks (nobody needs it to build or use assay):");
    println!("  from Debian, by apt: {}", missing.join(", "));
    apt_install(&missing)
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
