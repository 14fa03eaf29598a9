//! Options of a run's load: how much work, and when.

use assay_engine::Rate;
use assay_seam::Nanos;
use clap::{Args, ValueEnum};

use crate::command_line::shared::at_least_one;
use crate::load_model::{Sessions, session_count};
use crate::{load_model, values};

/// How much work, and when.
#[derive(Args, Clone)]
#[command(next_help_heading = "Load")]
pub struct LoadOptions {
    /// Number of concurrent sessions; a list such as 1,2,4 runs one step after another (a ladder); auto[:MAX] finds the
    /// number beyond which throughput stops growing, up to MAX or 64 [default: 1; 64 with --find-rate]
    #[arg(long, value_name = "N,…|auto", value_parser = load_model::sessions, allow_negative_numbers = true)]
    pub sessions: Option<Sessions>,
    /// Users at terminals that share connections: N, or N per unit of a workload option, such as 10/warehouse
    #[arg(long, value_name = "N[/OPTION]", value_parser = terminals, conflicts_with_all = ["sessions", "open_loop"])]
    pub terminals: Option<Terminals>,
    /// Connections shared by the terminals
    #[arg(long, value_name = "N", default_value = "64", value_parser = session_count, requires = "terminals")]
    pub connections: u32,
    /// Multiplier for the terminals' keying and think times
    #[arg(long, value_name = "X", default_value = "1", value_parser = not_negative, requires = "terminals")]
    pub think_scale: f64,
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
    #[arg(long, value_name = "N|TIME:N,…", allow_negative_numbers = true, value_parser = load_model::rate, group = "open_loop")]
    pub rate: Option<Rate>,
    /// Open loop: file with the due time of each transaction, in seconds since the start, one per line, ascending
    #[arg(long, value_name = "FILE", group = "open_loop", conflicts_with_all = ["arrival", "warmup"])]
    pub rate_file: Option<std::path::PathBuf>,
    /// Find the highest rate that keeps a promise such as 'p99 < 10ms', 'errors < 0.1%' or 'new_order.p95 < 50ms'; each
    /// stage of the search lasts --time; may be repeated
    #[arg(long, value_name = "PROMISE", group = "open_loop", value_parser = promise,
          conflicts_with_all = ["transactions", "kill_check"])]
    pub find_rate: Vec<assay_report::Promise>,
    /// Spacing of due times
    #[arg(
        long,
        value_name = "constant|poisson",
        hide_possible_values = true,
        value_enum,
        default_value = "constant",
        requires = "open_loop"
    )]
    pub arrival: Arrival,
    /// Drop transactions that become due while this many are waiting; dropped transactions are counted [default: no
    /// limit]
    #[arg(long, value_name = "N", value_parser = at_least_one, requires = "open_loop")]
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
    #[arg(long, value_name = "CMD", requires = "db")]
    pub kill_check: Option<String>,
}

impl LoadOptions {
    /// The sessions of every stage, or the most that a search tries.
    pub fn steps(&self) -> Vec<u32> {
        match &self.sessions {
            Some(sessions) => sessions.steps.clone(),
            None if self.find_rate.is_empty() => vec![1],
            None => vec![SESSIONS_OF_SEARCH],
        }
    }

    /// Whether the number of sessions is searched for.
    pub fn searches_sessions(&self) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| sessions.auto)
    }

    /// Whether stages are decided by those before them.
    pub fn searches(&self) -> bool {
        self.searches_sessions() || !self.find_rate.is_empty()
    }

    /// Whether the next transaction of a session is due when the one before is done.
    pub fn is_closed(&self) -> bool {
        self.rate.is_none() && self.rate_file.is_none() && self.find_rate.is_empty() && self.terminals.is_none()
    }
}

/// Enough to keep a server busy, and few enough for any to accept.
pub(super) const SESSIONS_OF_SEARCH: u32 = 64;

/// How many users there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminals {
    /// Their number. 1 <= number
    pub number: u32,
    /// Times the value of this option of the workload.
    pub per: Option<String>,
}

/// Spacing of due times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "a doc comment would become help text")]
pub enum Arrival {
    Constant,
    Poisson,
}

fn terminals(text: &str) -> Result<Terminals, String> {
    let (number, per) = text.split_once('/').map_or((text, None), |(number, per)| (number, Some(per.to_owned())));
    Ok(Terminals { number: session_count(number)?, per })
}

fn not_negative(text: &str) -> Result<f64, String> {
    values::number(text).and_then(|value| if value >= 0.0 { Ok(value) } else { Err("must not be negative".to_owned()) })
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    values::number(text).and_then(|value| if value > 0.0 { Ok(value) } else { Err("must be above 0".to_owned()) })
}

fn promise(text: &str) -> Result<assay_report::Promise, String> {
    text.parse().map_err(|error: assay_report::BadPromise| error.to_string())
}
