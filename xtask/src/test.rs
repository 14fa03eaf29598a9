//! `cargo xtask test`: everything that must hold before a change lands.

use anyhow::Result;

use crate::steps::{Steps, cargo, run};
use crate::{fuzz, install, instructions, tidy};

/// Runs all checks; the first alone is needed by the others.
pub(crate) fn run_all() -> Result<()> {
    let mut steps = Steps::default();
    if steps.run("install", install::run_all) {
        steps.run("formatting", || run(&mut cargo(&["fmt", "--all", "--check"])));
        steps.run("lints", || run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])));
        steps.run("tidiness", tidy::run);
        // After the install nothing may be absent, so nothing may be skipped.
        steps.run("tests", || run(cargo(&["test", "--workspace", "--no-fail-fast"]).env("ASSAY_TEST_STRICT", "1")));
        steps.run("instructions", || instructions::run(&instructions::Options::check()));
        steps.run("fuzzing", || fuzz::run(&fuzz::Options::brief()));
    }
    steps.finish()
}
