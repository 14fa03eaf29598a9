//! `cargo xtask fuzz`: runs the fuzz test of this package longer, with a new seed each time.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Args;

use xtask::steps::{cargo, run as run_command};

/// What `cargo xtask fuzz` takes.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds for each parser
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Seed of the random numbers, as printed by a failure [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
}

/// Sets the time for each parser in the whole suite: long enough to find simple bugs.
pub(crate) fn brief(tests: &mut Command) {
    set(tests, 8, None);
}

fn set(tests: &mut Command, seconds: u64, seed: Option<u64>) {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    tests.env("ASSAY_FUZZ_SECONDS", seconds.to_string());
    tests.env("ASSAY_FUZZ_SEED", seed.unwrap_or(clock).to_string());
}

/// Runs xtask/tests/fuzz.rs, which is a test so that xtask itself need not be built with the parsers. The whole
/// workspace is named so that nothing is compiled again with other features.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut tests = cargo(&["test", "--workspace", "--test", "fuzz", "--", "--nocapture", "--test-threads=1"]);
    set(&mut tests, options.seconds, options.seed);
    run_command(&mut tests)
}
