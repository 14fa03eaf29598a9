//! Options of `assay run`: what it starts, what it does about errors, what it shows and keeps.

use assay_seam::Nanos;
use clap::{Args, ValueEnum};

use crate::command_line::fleet::FleetOptions;
use crate::command_line::generator::GeneratorOptions;
use crate::command_line::load::LoadOptions;
use crate::command_line::shared::{Format, any_count, tag};
use crate::command_line::target::TargetOptions;
use crate::values;

/// Options of `run`.
#[derive(Args, Clone)]
pub struct RunOptions {
    /// Built-in workload (see `assay list`) or Lua file
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub target: TargetOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub server: RunServerOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub load: LoadOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub errors: ErrorOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub generator: GeneratorOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub fleet: FleetOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub output: OutputOptions,
}

/// The server that a run starts for itself, and where the generator runs.
#[derive(Args, Clone)]
#[command(next_help_heading = "Server")]
pub struct RunServerOptions {
    /// Start a server for this run and remove it afterwards, such as postgres:17 or mysql:8.0; with --prepare, the
    /// loaded data is kept as an image for the next run
    #[arg(long, value_name = "PRODUCT:VERSION", conflicts_with_all = ["db", "kill_check"])]
    pub server: Option<String>,
    /// Server setting, named as in its configuration file; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "server")]
    pub set: Vec<String>,
    /// Configuration file for the server; --set overrides it
    #[arg(long, value_name = "FILE", requires = "server")]
    pub server_config: Option<std::path::PathBuf>,
    /// CPUs for the server, such as 0-3,8, socket:0 or core:0-3; add ,no-smt to use one thread per core
    #[arg(long, value_name = "CPUS", requires = "server")]
    pub server_cpus: Option<String>,
    /// Memory limit of the server, including its page cache
    #[arg(long, value_name = "BYTES", value_parser = values::size, requires = "server")]
    pub server_memory: Option<u64>,
    /// Put a pooler or proxy in front of the server: pgbouncer or haproxy; may be repeated
    #[arg(long, value_name = "NAME", requires = "server")]
    pub front: Vec<String>,
    /// Setting of the last --front, named as in its configuration file; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "front")]
    pub front_set: Vec<String>,
    /// What was started, for the record.
    #[arg(skip)]
    pub started: Option<Box<assay_record::StartedServer>>,
}

/// What to do about errors.
#[derive(Args, Clone)]
#[command(next_help_heading = "Errors")]
pub struct ErrorOptions {
    /// Number of retries of a transaction after a deadlock, serialization failure or lost connection
    #[arg(long, value_name = "N", default_value = "10", value_parser = any_count)]
    pub retries: u64,
    /// Error codes that fail the transaction but not the run, such as 1213 or 40001, or all; errors that can be retried
    /// are retried first
    #[arg(long, value_name = "CODE,…|all", value_delimiter = ',', value_parser = error_code)]
    pub ignore_errors: Vec<String>,
    /// What to do on any other error
    #[arg(long, value_name = "stop|continue", hide_possible_values = true, value_enum, default_value = "stop")]
    pub on_error: OnError,
    /// How long to try to reconnect after losing a connection
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    pub reconnect_time: Nanos,
}

/// What is shown and kept.
#[derive(Args, Clone)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// Output format of the result on stdout
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, value_enum, default_value = "text")]
    pub format: Format,
    /// Length of a reporting interval, at least 100ms
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    pub interval: Nanos,
    /// Path of the record [default: assay-records/WORKLOAD-TIME.json.zst]
    #[arg(long, value_name = "PATH", conflicts_with = "no_record")]
    pub record: Option<std::path::PathBuf>,
    /// Replace an existing record
    #[arg(long, conflicts_with = "no_record")]
    pub force: bool,
    /// Write no record
    #[arg(long)]
    pub no_record: bool,
    /// Sample server statistics, and the machine of a local server, once per second; `full` shows all of them, switches
    /// on INNODB_METRICS that are off, and counts processor events
    #[arg(long, value_name = "off|on|full", hide_possible_values = true, value_enum, default_value = "on")]
    pub telemetry: TelemetryChoice,
    /// Node exporter on the server's machine, such as http://db1:9100#nvme0n1 (the drive under its data directory);
    /// repeat for each server
    #[arg(long, value_name = "URL[#DEVICE]")]
    pub host_metrics: Vec<crate::telemetry::HostUrl>,
    /// Admin console of the PgBouncer in front of the server, such as postgres://stats@HOST:6432/pgbouncer; repeat for
    /// each server
    #[arg(long, value_name = "URL")]
    pub pooler: Vec<String>,
    /// Label for this run, such as disk=nvme; kept in the record, shown, and used for grouping; may be repeated
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = tag)]
    pub tags: Vec<(String, String)>,
    /// CSV file with one line per transaction that the workload logs (tpcc: queued deliveries)
    #[arg(long, value_name = "FILE")]
    pub journal: Option<std::path::PathBuf>,
    /// Serve live metrics for Prometheus at http://ADDRESS/metrics during the run
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics_listen: Option<std::net::SocketAddr>,
    /// Show all options in effect, zero values, and details of the load generator
    #[arg(long, short)]
    pub verbose: bool,
    /// Print only errors and warnings on stderr
    #[arg(long)]
    pub quiet: bool,
    /// Which trial this is, and of how many.
    #[arg(skip)]
    pub trial: Option<(u64, u64)>,
}

/// What is read beside the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "a doc comment would become help text")]
pub enum TelemetryChoice {
    Off,
    On,
    Full,
}

/// What an unexpected error does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "a doc comment would become help text")]
pub enum OnError {
    Stop,
    Continue,
}

fn error_code(text: &str) -> Result<String, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_state = text.len() == 5
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_digit());
    if is_number || is_state || text == "all" {
        return Ok(text.to_owned());
    }
    Err("expected an error number such as 1213, an SQLSTATE such as 40001, or all".to_owned())
}

fn interval(text: &str) -> Result<Nanos, String> {
    let interval = values::duration(text)?;
    if interval >= INTERVAL_MIN { Ok(interval) } else { Err("must be at least 100ms".to_owned()) }
}

pub(super) const INTERVAL_MIN: Nanos = Nanos::from_millis(100);
