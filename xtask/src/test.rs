//! `cargo xtask test`: everything that must hold before a change lands.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use nix::sys::statvfs::statvfs;

use crate::steps::{Beside, Steps, cargo, run};
use crate::{fuzz, install, instructions, suites, tidy};

/// Options of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Start every version of every server that can be fetched, too (about 600 MB the first time)
    #[arg(long)]
    matrix: bool,
}

/// Runs all checks. What is missing is installed while checks and builds that do not need it run.
pub(crate) fn run_all(options: &Options) -> Result<()> {
    let mut steps = Steps::new();
    install::components()?;
    let program = std::env::current_exe().context("where this program lies")?;
    let mut installing = Beside::start(Command::new(program).arg("install"))?;
    steps.run("formatting", || run(&mut cargo(&["fmt", "--all", "--check"])));
    steps.run("tidiness", tidy::run);
    installing.show()?;
    steps.run("lints", lints);
    installing.show()?;
    let compiled = steps.run("compiling the tests", suites::compile);
    if options.matrix {
        steps.run("a checker of Lua", || {
            testkit::fetch_lua_checker().map(|version| println!("emmylua_check {version}"))
        });
    }
    let has_room = steps.run("room for the tests", room);
    let installed = steps.run("install", || installing.finish());
    if compiled && installed && has_room {
        // Everything is installed now, so no test may be skipped, except by an ordinary user those that need root.
        let strict = if nix::unistd::geteuid().is_root() { "1" } else { "installed" };
        steps.run("tests", || {
            suites::run_all(&|tests| {
                tests.env("ASSAY_TEST_STRICT", strict);
                fuzz::brief(tests);
                if options.matrix {
                    tests.env("ASSAY_TEST_MATRIX", "1");
                }
            })
        });
        steps.run("instructions", || instructions::run(&instructions::Options::check()));
    }
    steps.finish()
}

/// What servers, loads and records of all tests take at once, and as much again.
const ROOM_BYTES: u64 = 6 << 30;

/// Without it, tests would fail one after another, each in its own words.
fn room() -> Result<()> {
    let folder = std::env::temp_dir();
    let found = statvfs(&folder).with_context(|| format!("asking for the free space of {}", folder.display()))?;
    let free = found.blocks_available().saturating_mul(found.fragment_size());
    ensure!(
        free >= ROOM_BYTES,
        "tests need {} GB in {}, and {:.1} GB are free there: remove something, or set TMPDIR",
        ROOM_BYTES >> 30,
        folder.display(),
        free as f64 / f64::from(1 << 30)
    );
    Ok(())
}

/// Warnings fail the step only with the compiler for which this tree is kept clean, `rust-version` of the workspace. A
/// newer one has more lints, so its warnings are only shown.
fn lints() -> Result<()> {
    let output = Command::new("rustc").arg("--version").output().context("running rustc")?;
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut arguments = vec!["clippy", "--workspace", "--all-targets"];
    if is_newer(&version, KEPT_CLEAN_WITH) {
        println!("{}: newer than {KEPT_CLEAN_WITH}, so its warnings are shown but fail nothing", version.trim());
    } else {
        arguments.extend(["--", "-D", "warnings"]);
    }
    run(&mut cargo(&arguments))
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
