//! Options of `assay run`: what it starts, what it does about errors, what it shows and keeps.

use assay_seam::Nanos;
use assay_spec::{Format, OnError, TelemetryLevel, tag, values};
use clap::Args;

use crate::command_line::fleet::FleetOptions;
use crate::command_line::generator::GeneratorOptions;
use crate::command_line::load::LoadOptions;
use crate::command_line::shared::{any_count, listen_address, one_of, pooler_url};
use crate::command_line::target::TargetOptions;

/// Options of `run`.
#[derive(Args, Clone)]
pub struct RunOptions {
    /// Built-in workload (see `assay list`) or Lua file
    #[arg(value_name = "WORKLOAD", required_unless_present_any = ["again", "spec", "moved"])]
    pub workload: Option<String>,
    /// Repeat the run of a record, with its seed; options given here override those of the record
    #[arg(long, value_name = "RECORD", conflicts_with_all = ["workload", "spec"])]
    pub again: Option<std::path::PathBuf>,
    /// Where the script of the record is now, if it has moved
    #[arg(long = "workload", value_name = "PATH")]
    pub moved: Option<String>,
    /// Run what a file says, as printed by --print-spec; - is stdin; options given here override it
    #[arg(long, value_name = "FILE|-", conflicts_with = "workload")]
    pub spec: Option<std::path::PathBuf>,
    /// Execute what the file of --again or --spec asks for, such as shell commands; without this, it is shown and
    /// refused
    #[arg(long)]
    pub trust: bool,
    /// Print what would be run, as JSON without passwords, and exit
    #[arg(long)]
    pub print_spec: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub load: LoadOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub target: TargetOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub server: RunServerOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub errors: ErrorOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub output: OutputOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub generator: GeneratorOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub fleet: FleetOptions,
}

/// The server that a run starts for itself, and where the generator runs.
#[derive(Args, Clone)]
#[command(next_help_heading = "Server")]
pub struct RunServerOptions {
    /// Start a server for this run and remove it afterwards, such as postgres:17 or mysql:8.0; with --prepare, the
    /// loaded data is kept as an image for the next run
    #[arg(long, value_name = "PRODUCT:VERSION", value_parser = server_product)]
    pub server: Option<String>,
    /// Folder or archive with the server's binaries, such as those of a build, or container:IMAGE [default: found as
    /// `assay server sources` shows]
    #[arg(long, value_name = "PATH")]
    pub binaries: Option<std::path::PathBuf>,
    /// Server setting, named as in its configuration file; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Configuration file for the server; --set overrides it
    #[arg(long, value_name = "FILE")]
    pub server_config: Option<std::path::PathBuf>,
    /// CPUs for the server, such as 0-3,8, socket:0 or core:0-3; add ,no-smt to use one thread per core
    #[arg(long, value_name = "CPUS")]
    pub server_cpus: Option<String>,
    /// Memory limit of the server, including its page cache
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    pub server_memory: Option<u64>,
    /// Put a pooler or proxy in front of the server: pgbouncer or haproxy; may be repeated
    #[arg(long, value_name = "NAME")]
    pub front: Vec<String>,
    /// Setting of the last --front, named as in its configuration file; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub front_set: Vec<String>,
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
    #[arg(long, value_name = "CODE,…|all", value_delimiter = ',', value_parser = assay_spec::error_code)]
    pub ignore_errors: Vec<String>,
    /// What to do on any other error
    #[arg(long, value_name = "stop|continue", hide_possible_values = true, default_value = "stop",
          value_parser = one_of::<OnError>(&["stop", "continue"]))]
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
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, default_value = "text",
          value_parser = one_of::<Format>(&["text", "json", "csv"]))]
    pub format: Format,
    /// Length of a reporting interval, at least 100ms
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = values::interval)]
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
    #[arg(long, value_name = "off|on|full", hide_possible_values = true, default_value = "on",
          value_parser = one_of::<TelemetryLevel>(&["off", "on", "full"]))]
    pub telemetry: TelemetryLevel,
    /// Node exporter on the server's machine, such as http://db1:9100#nvme0n1 (the drive under its data directory);
    /// repeat for each server
    #[arg(long, value_name = "URL[#DEVICE]", value_parser = host_url)]
    pub host_metrics: Vec<String>,
    /// Admin console of the PgBouncer in front of the server, such as postgres://stats@HOST:6432/pgbouncer; repeat for
    /// each server
    #[arg(long, value_name = "URL", value_parser = pooler_url)]
    pub pooler: Vec<String>,
    /// Label for this run, such as disk=nvme; kept in the record, shown, and used for grouping; may be repeated
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = tag)]
    pub tags: Vec<(String, String)>,
    /// Serve the page of the report while it grows, for this machine or at an address, where its URL has a random token
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, require_equals = true,
          default_missing_value = "127.0.0.1:8642", value_parser = listen_address)]
    pub serve: Option<std::net::SocketAddr>,
    /// Show the run on the whole terminal, like `assay top`, instead of lines
    #[arg(long, conflicts_with = "quiet")]
    pub top: bool,
    /// CSV file with one line per transaction that the workload logs (tpcc: queued deliveries)
    #[arg(long, value_name = "FILE")]
    pub journal: Option<std::path::PathBuf>,
    /// File with the history of a workload that checks isolation, in the form that Elle reads (EDN)
    #[arg(long, value_name = "FILE")]
    pub history: Option<std::path::PathBuf>,
    /// Serve live metrics for Prometheus at http://ADDRESS/metrics during the run
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub metrics_listen: Option<std::net::SocketAddr>,
    /// Show all options in effect, zero values, and details of the load generator
    #[arg(long, short)]
    pub verbose: bool,
    /// Print only errors and warnings on stderr
    #[arg(long)]
    pub quiet: bool,
}

/// A product, perhaps with a version; which there are is known to the lab.
fn server_product(text: &str) -> Result<String, String> {
    let (product, version) = text.split_once(':').map_or((text, None), |(product, version)| (product, Some(version)));
    match product.is_empty() || version.is_some_and(str::is_empty) {
        true => Err("expected a product, perhaps with a version, such as postgres or mysql:8.0".to_owned()),
        false => Ok(text.to_owned()),
    }
}

fn host_url(text: &str) -> Result<String, String> {
    text.parse::<assay_run::telemetry::HostUrl>().map(|_| text.to_owned())
}
