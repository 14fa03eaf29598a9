//! `cargo xtask fuzz`: runs the fuzz test of this package longer, with a new seed each time.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Args;

use crate::steps::{cargo, run as run_command};

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

impl Options {
    /// Long enough to find simple bugs.
    pub(crate) fn brief() -> Options {
        Options { seconds: 8, seed: None }
    }
}

/// Runs xtask/tests/fuzz.rs, which is a test so that xtask itself need not be built with the parsers.
pub(crate) fn run(options: &Options) -> Result<()> {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    run_command(
        cargo(&["test", "-p", "xtask", "--test", "fuzz", "--", "--nocapture", "--test-threads=1"])
            .env("ASSAY_FUZZ_SECONDS", options.seconds.to_string())
            .env("ASSAY_FUZZ_SEED", options.seed.unwrap_or(clock).to_string()),
    )
}
