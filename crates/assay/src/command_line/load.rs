//! Options of a run's load: how much work, and when.

use assay_run::load_model;
use assay_seam::Nanos;
use assay_spec::{Arrival, RateSpec, Sessions, Terminals, values};
use clap::Args;

use crate::command_line::shared::{at_least_one, one_of};

/// How much work, and when.
#[derive(Args, Clone)]
#[command(next_help_heading = "Load")]
pub struct LoadOptions {
    /// Number of concurrent sessions; a list such as 1,2,4 runs one step after another (a ladder); auto[:MAX] finds the
    /// number beyond which throughput stops growing, up to MAX or 64 [default: 1; 64 with --find-rate]
    #[arg(long, value_name = "N,…|auto", value_parser = str::parse::<Sessions>, allow_negative_numbers = true)]
    pub sessions: Option<Sessions>,
    /// Users at terminals that share connections: N, or N per unit of a workload option, such as 10/warehouse
    #[arg(long, value_name = "N[/OPTION]", value_parser = str::parse::<Terminals>)]
    pub terminals: Option<Terminals>,
    /// Connections shared by the terminals [default: 64]
    #[arg(long, value_name = "N", value_parser = values::sessions)]
    pub connections: Option<u32>,
    /// Multiplier for the terminals' keying and think times [default: 1]
    #[arg(long, value_name = "X", value_parser = values::not_negative)]
    pub think_scale: Option<f64>,
    /// Duration of the measured part of each step, such as 30s or 10m; 0: no limit [default: 10s; no limit with
    /// --transactions]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub time: Option<Nanos>,
    /// End each step after this many transactions
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub transactions: Option<u64>,
    /// Warm-up before the measured part of each step
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::duration)]
    pub warmup: Nanos,
    /// Open loop: transactions due per second, however slow the server is; a number, or rates at points in time with
    /// linear ramps between them, such as 0:100,60s:2000,120s:500 [default: closed loop]
    #[arg(long, value_name = "N|TIME:N,…", allow_negative_numbers = true, value_parser = load_model::rate)]
    pub rate: Option<RateSpec>,
    /// Open loop: file with the due time of each transaction, in seconds since the start, one per line, ascending
    #[arg(long, value_name = "FILE")]
    pub rate_file: Option<std::path::PathBuf>,
    /// Find the highest rate that keeps a promise such as 'p99 < 10ms', 'errors < 0.1%' or 'new_order.p95 < 50ms'; each
    /// stage of the search lasts --time; may be repeated
    #[arg(long, value_name = "PROMISE", value_parser = promise)]
    pub find_rate: Vec<String>,
    /// Spacing of due times [default: constant]
    #[arg(long, value_name = "constant|poisson", hide_possible_values = true,
          value_parser = one_of::<Arrival>(&["constant", "poisson"]))]
    pub arrival: Option<Arrival>,
    /// Drop transactions that become due while this many are waiting; dropped transactions are counted [default: no
    /// limit]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub backlog_max: Option<u64>,
    /// Time for transactions in flight to finish at the end of a step
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    pub grace: Nanos,
    /// Number of trials, each with its own record and seed
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    pub trials: u64,
    /// Prepare the workload's tables first if they are missing
    #[arg(long)]
    pub prepare: bool,
    /// Check the workload's tables before and after the run; exit with status 1 if a check or the audit fails
    #[arg(long)]
    pub check: bool,
    /// Shell command that crashes and restarts the server in the middle of the run; afterwards assay looks for every
    /// acknowledged commit and exits with status 1 if any is lost
    #[arg(long, value_name = "CMD")]
    pub kill_check: Option<String>,
}

fn promise(text: &str) -> Result<String, String> {
    let parsed = text.parse::<assay_report::Promise>();
    parsed.map(|promise| promise.text).map_err(|error| error.to_string())
}
