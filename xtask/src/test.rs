//! `cargo xtask test`: everything that must hold before a change lands.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use nix::sys::statvfs::{FsFlags, Statvfs, statvfs};
use tempfile::TempDir;

use xtask::install;
use xtask::steps::{Beside, Steps, cargo, run};

use crate::lints::Wrapper;
use crate::{fuzz, instructions, suites, tidy};

/// Options of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Start every version of every server that can be fetched, too (about 600 MB the first time)
    #[arg(long)]
    matrix: bool,
}

/// Runs all checks. What is missing is installed and fetched while checks and builds that do not need it run.
pub(crate) fn run_all(options: &Options) -> Result<()> {
    let mut steps = Steps::new();
    install::components()?;
    let program = std::env::current_exe().context("where this program lies")?;
    let mut packages = Beside::start(Command::new(program).args(["install", "--packages"]))?;
    steps.run("formatting", || run(&mut cargo(&["fmt", "--all", "--check"])));
    steps.run("tidiness", tidy::run);
    packages.show()?;
    let wrapper = Wrapper::new()?;
    let mut fetches = None;
    steps.run("compiling what fetches servers", || suites::fetcher(&wrapper).map(|program| fetches = Some(program)));
    let mut fetching = None;
    steps.run("packages", || {
        packages.finish()?;
        let mut fetch = Command::new(fetches.context("nothing fetches servers")?);
        if options.matrix {
            fetch.arg("--matrix");
        }
        fetching = Some(Beside::start(&mut fetch)?);
        Ok(())
    });
    let mut compiled = None;
    steps.run("compiling the tests", || suites::compile(wrapper).map(|suites| compiled = Some(suites)));
    if let Some(suites) = &compiled {
        steps.run("lints", || judge(suites.warnings));
    }
    let mut memory = None;
    let has_room = steps.run("room for the tests", || room().map(|folder| memory = folder));
    let installed = steps.run("servers", || fetching.context("nothing was fetched")?.finish());
    // Everything is installed now, so no test may be skipped, except by an ordinary user those that need root.
    let strict = if nix::unistd::geteuid().is_root() { "1" } else { "installed" };
    let ready = |tests: &mut Command| {
        tests.env("ASSAY_TEST_STRICT", strict);
        if let Some(folder) = &memory {
            tests.env("TMPDIR", folder.path());
        }
        fuzz::brief(tests);
        if options.matrix {
            tests.env("ASSAY_TEST_MATRIX", "1");
        }
    };
    let suites = compiled.filter(|_| installed && has_room);
    let is_ready = suites.is_some();
    if let Some(suites) = suites {
        steps.run("tests", || suites.run(&ready));
    }
    if is_ready {
        steps.run("instructions", || instructions::run(&instructions::Options::check()));
    }
    steps.finish()
}

/// What servers, loads and records of all tests take at once, and as much again.
const ROOM_BYTES: u64 = 6 << 30;

/// Where tests have their servers and files: in the temporary folder, or, if memory has room for them, in a folder
/// there that is removed at the end. Servers flush to their drive with each commit, and tests waited for it a third of
/// their time.
///
/// # Errors
/// Neither has room: tests would fail one after another, each in its own words.
fn room() -> Result<Option<TempDir>> {
    if std::env::var_os("TMPDIR").is_none()
        && let Some(folder) = in_memory()?
    {
        println!("servers and files of tests are in {}", folder.path().display());
        return Ok(Some(folder));
    }
    let folder = std::env::temp_dir();
    let free = free(&statvfs(&folder).with_context(|| format!("asking for the free space of {}", folder.display()))?);
    ensure!(
        free >= ROOM_BYTES,
        "tests need {} GB in {}, and {:.1} GB are free there: remove something, or set TMPDIR",
        ROOM_BYTES >> 30,
        folder.display(),
        free as f64 / f64::from(1 << 30)
    );
    Ok(None)
}

/// A new folder in `/dev/shm` for programs of all users, if files can be run there, it has room, and the machine and
/// its container have as much memory for what the servers need besides.
fn in_memory() -> Result<Option<TempDir>> {
    let folder = Path::new("/dev/shm");
    let Ok(found) = statvfs(folder) else { return Ok(None) };
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let available: Option<u64> = read("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|kib| kib.split_whitespace().next()?.parse().ok());
    // Of control groups of both versions. Without a limit they are missing, or not below any memory of a machine.
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limit = limits.iter().filter_map(|file| read(file).trim().parse::<u64>().ok()).min();
    let memory = limit.unwrap_or(u64::MAX).min(available.unwrap_or(0) << 10);
    let runs_files = !found.flags().contains(FsFlags::ST_NOEXEC);
    if !runs_files || free(&found) < ROOM_BYTES || memory < 2 * ROOM_BYTES {
        return Ok(None);
    }
    let everybody = fs::Permissions::from_mode(0o1777);
    // A short name: the path of a socket has 107 bytes at most.
    let made = tempfile::Builder::new().prefix("t").rand_bytes(3).permissions(everybody).tempdir_in(folder);
    Ok(Some(made.context("a folder in /dev/shm")?))
}

/// Bytes that an ordinary user may still write.
fn free(found: &Statvfs) -> u64 {
    found.blocks_available().saturating_mul(found.fragment_size())
}

/// Warnings fail the step only with the compiler for which this tree is kept clean, `rust-version` of the workspace. A
/// newer one has more lints, so its warnings are only shown.
fn judge(warnings: usize) -> Result<()> {
    let output = Command::new("rustc").arg("--version").output().context("running rustc")?;
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    if is_newer(&version, KEPT_CLEAN_WITH) {
        println!("{}: newer than {KEPT_CLEAN_WITH}, so its {warnings} warnings fail nothing", version.trim());
        return Ok(());
    }
    ensure!(warnings == 0, "{warnings} warnings while the tests were compiled: see above");
    Ok(())
}

const KEPT_CLEAN_WITH: &str = env!("CARGO_PKG_RUST_VERSION");

/// Whether `rustc --version` reported a later release than `1.95`. False if it cannot be parsed.
fn is_newer(said: &str, than: &str) -> bool {
    let release = |text: &str| -> Option<(u32, u32)> {
        let (major, rest) = text.split_once('.')?;
        let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    said.split_whitespace().nth(1).and_then(release) > release(than)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_warnings_of_a_newer_compiler_are_let_through() {
        let check = |said, expected| assert_eq!(is_newer(said, "1.95"), expected, "{said}");
        check("rustc 1.95.0 (59807616e 2026-04-14)\n", false);
        check("rustc 1.95.1 (000000000 2026-05-14)\n", false);
        check("rustc 1.96.0-nightly (000000000 2026-05-14)\n", true);
        check("rustc 1.100.0 (000000000 2027-01-14)\n", true);
        check("rustc 2.0.0 (000000000 2030-01-14)\n", true);
        check("rustc 1.94.0 (000000000 2026-03-04)\n", false);
        check("", false);
    }
}
