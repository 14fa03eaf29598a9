//! Which NATS servers tests can start: Debian's, which is old, and newer ones built by Go.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};

use crate::{absent, aloud, cache};

/// A NATS server that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsProgram {
    /// Such as `2.9.10`.
    pub version: String,
    pub(crate) path: PathBuf,
}

/// Releases that Go can build, the oldest first, and the minor version of Go 1 that each needs.
const RELEASES: [(&str, u32); 6] =
    [("2.9.25", 19), ("2.10.22", 21), ("2.11.11", 24), ("2.12.11", 25), ("2.14.9", 26), ("2.15.2", 26)];
const MODULE: &str = "github.com/nats-io/nats-server/v2";
/// Where Debian's package puts its program.
const DEBIAN: [&str; 2] = ["/usr/sbin/nats-server", "/usr/bin/nats-server"];
/// Where Go is, if not in PATH.
const GO_FOLDERS: [&str; 2] = ["/usr/local/go/bin", "/usr/lib/go/bin"];

impl NatsProgram {
    /// Whether a NATS server can be started here; says aloud where not.
    pub fn present() -> bool {
        debian().is_some() || newest().is_some() || absent("no nats-server (cargo xtask install)")
    }

    /// The newest. Panics if there is none: call `present` first.
    pub fn newest() -> NatsProgram {
        newest().or_else(debian).expect("there is a nats-server")
    }

    /// Debian's and the newest that Go can build here; with `ASSAY_TEST_MATRIX` all that it can build. The oldest comes
    /// first. Says aloud if Debian's is the only one.
    pub fn all() -> Vec<NatsProgram> {
        let mut all: Vec<NatsProgram> = debian().into_iter().collect();
        if std::env::var_os("ASSAY_TEST_MATRIX").is_some() {
            all.extend(buildable(go_minor()).filter_map(|release| build(release).map_err(report).ok()));
        } else {
            all.extend(newest());
        }
        if all.len() == 1 {
            aloud(&format!("NATS {} only: {}", all[0].version, why_no_newer()));
        }
        all
    }
}

/// The release that `cargo xtask install` should build: the newest possible here, unless it was built before.
pub fn missing_nats() -> Option<&'static str> {
    let wanted = buildable(go_minor()).last()?;
    (!program(wanted).is_file()).then_some(wanted)
}

/// Builds it. Where that fails, an older one; without any, the tests use Debian's. Returns what the tests will use.
pub fn fetch_nats() -> String {
    for release in buildable(go_minor()).collect::<Vec<_>>().into_iter().rev() {
        match build(release) {
            Ok(program) => return format!("{} (built by Go), {}", program.version, debian_version()),
            Err(error) => report(error),
        }
    }
    format!("{} only: {}", debian_version(), why_no_newer())
}

fn report(error: anyhow::Error) {
    aloud(&format!("{error:#}"));
}

fn debian_version() -> String {
    debian().map_or_else(|| "none from Debian".to_owned(), |program| format!("{} (Debian)", program.version))
}

fn why_no_newer() -> String {
    let newest = RELEASES.last().expect("there are some");
    match go_minor() {
        None => format!("Go is missing, which {} needs", newest.0),
        Some(minor) if buildable(Some(minor)).next().is_none() => {
            format!("this is Go 1.{minor}, and {} needs Go 1.{}", newest.0, newest.1)
        }
        Some(_) => "no newer one was built (cargo xtask install)".to_owned(),
    }
}

fn debian() -> Option<NatsProgram> {
    let path = DEBIAN.into_iter().map(PathBuf::from).find(|path| path.is_file())?;
    let output = Command::new(&path).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = said.trim().rsplit(['v', ' ']).next().unwrap_or_default().to_owned();
    Some(NatsProgram { version, path })
}

/// The newest that was built.
fn newest() -> Option<NatsProgram> {
    let built = RELEASES.iter().rev().find(|(release, _)| program(release).is_file());
    built.map(|(release, _)| NatsProgram { version: (*release).to_owned(), path: program(release) })
}

fn program(release: &str) -> PathBuf {
    cache().join("nats-server").join(release).join("nats-server")
}

/// Releases for this Go, the oldest first.
fn buildable(minor: Option<u32>) -> impl Iterator<Item = &'static str> {
    RELEASES.iter().filter(move |(_, needed)| minor.is_some_and(|minor| minor >= *needed)).map(|(release, _)| *release)
}

pub(crate) fn go() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(GO_FOLDERS.map(PathBuf::from));
    folders.map(|folder| folder.join("go")).find(|path| path.is_file())
}

/// The `26` of `go version go1.26.8 linux/amd64`.
pub(crate) fn go_minor() -> Option<u32> {
    let output = Command::new(go()?).arg("version").env("GOTOOLCHAIN", "local").output().ok()?;
    minor_in(&String::from_utf8_lossy(&output.stdout))
}

fn minor_in(said: &str) -> Option<u32> {
    let (_, rest) = said.split_once("go1.")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Builds a release, unless it was built before. Complete or absent, whatever happens meanwhile.
fn build(release: &str) -> Result<NatsProgram> {
    // Tests of this process may want it at the same time.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _guard = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = program(release);
    if !path.is_file() {
        let Some(go) = go() else { bail!("Go is missing") };
        let folder = path.parent().expect("it is in a folder");
        fs::create_dir_all(folder)?;
        let draft = tempfile::Builder::new().prefix("draft-").tempdir_in(folder)?;
        let output = Command::new(go)
            .args(["install", &format!("{MODULE}@v{release}")])
            // Neither another version of Go nor a C compiler is needed.
            .envs([("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0")])
            .env("GOBIN", draft.path())
            .stdin(Stdio::null())
            .output()
            .context("running go")?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "go cannot build nats-server {release}: {}", last_line(&said));
        fs::rename(draft.path().join("nats-server"), &path)?;
    }
    Ok(NatsProgram { version: release.to_owned(), path })
}

pub(crate) fn last_line(text: &str) -> &str {
    text.trim().lines().last().unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_release_that_a_go_can_build_is_chosen() {
        let newest = |said: &str| buildable(minor_in(said)).last();
        assert_eq!(newest("go version go1.26.8 linux/amd64\n"), Some("2.15.2"));
        assert_eq!(newest("go version go1.24.4 linux/amd64\n"), Some("2.11.11"));
        assert_eq!(newest("go version go1.19.8 linux/amd64\n"), Some("2.9.25"));
        assert_eq!(newest("go version go1.15 linux/amd64\n"), None);
        assert_eq!(newest("no such program"), None);
    }
}
