//! The fixed options of each subcommand, and how their values are parsed.
//!
//! One definition feeds help, checks and values.

use assay_engine::Rate;
use assay_io::SESSIONS_FOR_URING;
use assay_report::{ChartKind, OfTrials};
use assay_seam::Nanos;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, ValueEnum};

use crate::command_line::fleet::{AgentOptions, FleetCommandOptions, FleetOptions, Role};
use crate::command_line::io::IoOptions;
use crate::command_line::lab::LabOptions;
use crate::command_line::shared::{Format, any_count, at_least_one, tag};
use crate::command_line::sql::SqlOptions;
use crate::diagnostics::Exit;
use crate::load_model::{Sessions, session_count};
use crate::{load_model, values};

/// Database performance lab: runs workloads, measures them and compares the results.
#[derive(Parser)]
#[command(name = "assay", version, disable_help_subcommand = true, max_term_width = 110)]
#[command(after_help = after_help())]
pub(super) struct CommandLine {
    #[command(subcommand)]
    pub(super) subcommand: Subcommand,
}

/// What to do.
#[derive(clap::Subcommand)]
pub enum Subcommand {
    /// Run a workload and report what was measured
    Run(Box<RunOptions>),
    /// Create and fill a workload's tables
    Prepare(MeasuredCommandOptions),
    /// Verify a workload's tables and their contents
    Check(MeasuredCommandOptions),
    /// Drop a workload's tables
    Cleanup(CommandOptions),
    /// Run one of a workload's other commands
    Exec(ExecOptions),
    /// List the built-in workloads
    List,
    /// Print the report of a record
    Show(ShowOptions),
    /// Add tags such as disk=nvme to records
    Tag(TagOptions),
    /// Compare the records of two or more settings
    Compare(CompareOptions),
    /// Run two settings alternately and compare them
    Duel(DuelOptions),
    /// Write an HTML page, tables, charts or time series from records
    Report(ReportOptions),
    /// Print shell completions; for bash: source <(assay completions bash)
    Completions(CompletionsOptions),
    /// Write the manual pages into a folder
    Manual(ManualOptions),
    /// Start and manage database servers to test
    Server(ServerOptions),
    /// Time statements against each other, and compare their rows and plans
    Sql(SqlOptions),
    /// Measure files as a database engine uses them
    Io(IoOptions),
    /// Run experiments: vary settings, repeat the trials in random order, compare the results
    Lab(Box<LabOptions>),
    /// Take shares of runs that are started on other machines with --fleet
    Agent(AgentOptions),
    /// See, check and set up the agents of a fleet
    Fleet(FleetCommandOptions),
    /// Run sysbench's command lines and scripts, with its reports
    Sysbench,
    /// Run pgbench's command lines and scripts, with its reports and log files
    Pgbench,
}

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

/// Options of `server`.
#[derive(Args, Clone)]
pub struct ServerOptions {
    /// What to do
    #[command(subcommand)]
    pub action: ServerAction,
}

/// What can be done with servers.
#[derive(clap::Subcommand, Clone)]
pub enum ServerAction {
    /// Start a server and print its URL
    Start(Box<StartOptions>),
    /// List the servers started on this machine
    List,
    /// Stop servers, with their replicas, poolers and proxies
    Stop(StopOptions),
    /// Kill a server, as a crash would; `restart` starts it again
    Kill {
        /// Name of the server, as shown by `assay server list`
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Restart a server on the same data and port
    Restart {
        /// Name of the server, as shown by `assay server list`
        name: String,
        /// How long to wait for it to stop before killing it
        #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
        patience: Nanos,
    },
    /// Print the end of a server's log
    Log {
        /// Name of the server, as shown by `assay server list`
        name: String,
        /// Number of lines
        #[arg(long, value_name = "N", default_value = "100", value_parser = at_least_one)]
        lines: u64,
    },
    /// List the available server versions and where they come from
    Sources {
        /// postgres, mysql or mariadb [default: all]
        product: Option<String>,
    },
    /// List, check or remove images of data directories
    Images(ImageOptions),
    /// Open a server's own client (psql, mysql or mariadb), connected to it
    Shell {
        /// Name of the server, as shown by `assay server list`
        name: String,
    },
}

/// Options of `server start`.
#[derive(Args, Clone)]
pub struct StartOptions {
    /// postgres, mysql or mariadb with a version or the start of one, such as postgres:15
    #[arg(value_name = "PRODUCT:VERSION")]
    pub product: String,
    /// Name to use in other commands [default: product and version]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Server setting, named as in its configuration file; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Configuration file for the server; --set overrides it
    #[arg(long, value_name = "FILE")]
    pub config: Option<std::path::PathBuf>,
    /// Folder or archive with the server's binaries, or container:IMAGE [default: found as `assay server sources`
    /// shows]
    #[arg(long, value_name = "PATH")]
    pub binaries: Option<std::path::PathBuf>,
    /// Load this workload's tables first, such as 'tpcc --warehouses 10'; the data is kept as an image and copied next
    /// time
    #[arg(long, value_name = "WORDS")]
    pub prepare: Option<String>,
    /// Number of replicas
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u32).range(0..=8))]
    pub replicas: u32,
    /// Put a pooler or proxy in front of the server: pgbouncer, haproxy, haproxy:replicas or haproxy:all; may be
    /// repeated
    #[arg(long, value_name = "NAME")]
    pub front: Vec<String>,
    /// Setting of the last --front, named as in its configuration file; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "front")]
    pub front_set: Vec<String>,
    /// CPUs it may run on, such as 0-3,8, socket:0 or core:0-3; add ,no-smt to use one thread per core
    #[arg(long, value_name = "CPUS")]
    pub cpus: Option<String>,
    /// Memory limit, including its page cache
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    pub memory: Option<u64>,
    /// Reserve huge pages and make the server use them
    #[arg(long, value_name = "BYTES", value_parser = values::size)]
    pub huge_pages: Option<u64>,
    /// Transparent huge pages while it runs, for the whole machine: always, madvise or never
    #[arg(long, value_name = "WHEN")]
    pub thp: Option<String>,
    /// Existing user to run it as [default: the current user, or nobody if that is root]
    #[arg(long, value_name = "USER")]
    pub run_as: Option<String>,
    /// Data directory: a new or empty folder, or an existing data directory of this version; never removed
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<std::path::PathBuf>,
    /// TCP port on the loopback interface [default: a free one]
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// How long to wait for it to answer, and for replicas to catch up
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = values::duration)]
    pub patience: Nanos,
}

/// Options of `server stop`.
#[derive(Args, Clone)]
pub struct StopOptions {
    /// Name of the server, as shown by `assay server list`
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Stop and remove servers left behind by a killed process
    #[arg(long)]
    pub all_stale: bool,
    /// Also remove data, log and configuration
    #[arg(long)]
    pub remove: bool,
    /// How long to wait for it to stop before killing it
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = values::duration)]
    pub patience: Nanos,
}

/// Options of `server images`.
#[derive(Args, Clone)]
pub struct ImageOptions {
    /// Check every file of an image against its checksum
    #[arg(long, value_name = "IMAGE")]
    pub verify: Vec<String>,
    /// Remove an image
    #[arg(long, value_name = "IMAGE")]
    pub remove: Vec<String>,
}

/// Options of the commands that work on a workload's tables.
#[derive(Args, Clone)]
pub struct CommandOptions {
    /// Built-in workload (see `assay list`) or Lua file
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub common: CommonCommandOptions,
}

/// Options of the commands that leave a record.
#[derive(Args, Clone)]
pub struct MeasuredCommandOptions {
    /// Built-in workload (see `assay list`) or Lua file
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub common: CommonCommandOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub fleet: FleetOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub record: RecordOptions,
}

/// The record of a command.
#[derive(Args, Clone)]
#[command(next_help_heading = "Output")]
pub struct RecordOptions {
    /// Path of the record [default: assay-records/WORKLOAD-COMMAND-TIME.json.zst]
    #[arg(long, value_name = "PATH", conflicts_with = "no_record")]
    pub record: Option<std::path::PathBuf>,
    /// Write no record
    #[arg(long)]
    pub no_record: bool,
    /// Label to find and group this record by, such as disk=nvme; may be repeated
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = tag)]
    pub tags: Vec<(String, String)>,
    /// Sample server statistics, and the machine of a local server, once per second; `full`: all of them
    #[arg(long, value_name = "off|on|full", hide_possible_values = true, value_enum, default_value = "on")]
    pub telemetry: TelemetryChoice,
}

/// Options of `exec`.
#[derive(Args, Clone)]
pub struct ExecOptions {
    /// Built-in workload (see `assay list`) or Lua file
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    /// Command of the workload
    #[arg(value_name = "COMMAND")]
    pub command: String,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub common: CommonCommandOptions,
}

/// What all commands of a workload share.
#[derive(Args, Clone)]
pub struct CommonCommandOptions {
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub target: TargetOptions,
    /// Number of concurrent sessions [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = session_count, help_heading = "Load")]
    pub sessions: Option<u32>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub generator: GeneratorOptions,
    /// Print only errors on stderr
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,
}

/// Options of `show`.
#[derive(Args, Clone)]
pub struct ShowOptions {
    /// Record written by `assay run`
    #[arg(value_name = "RECORD")]
    pub record: std::path::PathBuf,
    /// Show all options in effect, zero values, and details of the load generator
    #[arg(long, short)]
    pub verbose: bool,
    /// Output format
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, value_enum, default_value = "text")]
    pub format: Format,
    /// Show the agents of a fleet apart
    #[arg(long)]
    pub agents: bool,
}

/// Options of `tag`.
#[derive(Args, Clone)]
pub struct TagOptions {
    /// Records, then tags such as disk=nvme; an existing tag with the same key is replaced
    #[arg(value_name = "RECORD… KEY=VALUE", required = true)]
    pub words: Vec<String>,
}

/// Options of `report`. A `-` instead of a file is stdout.
#[derive(Args, Clone)]
pub struct ReportOptions {
    /// Records written by `assay run`; records with the same settings are grouped as trials
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<std::path::PathBuf>,
    /// HTML page with charts: one file that opens offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<std::path::PathBuf>,
    /// Summary and tables in Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<std::path::PathBuf>,
    /// CSV with one row per interval, and one per interval for each transaction type and statement class
    #[arg(long, value_name = "FILE")]
    pub csv: Option<std::path::PathBuf>,
    /// CSV of server and machine telemetry: one row per reading, with time, scope, metric and value
    #[arg(long, value_name = "FILE")]
    pub telemetry_csv: Option<std::path::PathBuf>,
    /// JSON with all findings and the data of every chart
    #[arg(long, value_name = "FILE")]
    pub json: Option<std::path::PathBuf>,
    /// Final results in the OpenMetrics format, for Prometheus
    #[arg(long, value_name = "FILE")]
    pub prometheus: Option<std::path::PathBuf>,
    /// CSV with one row per record, oldest first, for change point detection with Apache Otava
    #[arg(long, value_name = "FILE")]
    pub otava: Option<std::path::PathBuf>,
    /// Folder for the charts as SVG files
    #[arg(long, value_name = "FOLDER")]
    pub svg: Option<std::path::PathBuf>,
    /// Folder for the charts as PNG files
    #[arg(long, value_name = "FOLDER")]
    pub png: Option<std::path::PathBuf>,
    /// Title of the page, the Markdown and the charts [default: workload and server; for a chart, what it shows]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Width and height of charts; a PNG has twice as many pixels in each direction
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "960x460", value_parser = picture_size)]
    pub size: (u32, u32),
    /// Background of charts
    #[arg(long, value_name = "light|dark", hide_possible_values = true, value_enum, default_value = "light")]
    pub theme: Theme,
    /// Window, charts and tables of settings.
    #[command(flatten)]
    pub shown: ShownOptions,
}

/// Which part of runs is shown, and how their settings are put beside each other.
#[derive(Args, Clone)]
pub struct ShownOptions {
    /// Use only the end of each run
    #[arg(long, value_name = "DURATION", value_parser = values::duration, conflicts_with_all = ["from", "to"], help_heading = "Window")]
    pub last: Option<Nanos>,
    /// Use each run from this time on; `steady`: from the start of its steady part
    #[arg(long, value_name = "TIME|steady", value_parser = window_start, help_heading = "Window")]
    pub from: Option<WindowStart>,
    /// Use each run up to this time
    #[arg(long, value_name = "TIME", value_parser = values::duration, help_heading = "Window")]
    pub to: Option<Nanos>,
    /// Chart of the settings: dots, lines (over time), boxes, bars, curves (over --x); may be repeated
    #[arg(
        long,
        value_name = "KIND",
        value_parser = chart_kinds(),
        hide_possible_values = true,
        help_heading = "Charts and tables of settings"
    )]
    pub chart: Vec<ChartKind>,
    /// Factor on the x axis: a setting, option, fact or tag that differs, `sessions`, or `setting` for all remaining
    /// differences
    #[arg(long, value_name = "FACTOR", help_heading = "Charts and tables of settings")]
    pub x: Option<String>,
    /// Factor shown as colors
    #[arg(long = "color", alias = "colour", value_name = "FACTOR", help_heading = "Charts and tables of settings")]
    pub colour: Option<String>,
    /// Factor shown as panels side by side
    #[arg(long, value_name = "FACTOR", help_heading = "Charts and tables of settings")]
    pub facet: Option<String>,
    /// Pivot table with one row per level of this factor
    #[arg(long, value_name = "FACTOR", help_heading = "Charts and tables of settings")]
    pub rows: Option<String>,
    /// Factor with one column per level
    #[arg(long, value_name = "FACTOR", requires = "rows", help_heading = "Charts and tables of settings")]
    pub columns: Option<String>,
    /// Metrics as in `assay compare`; over time also telemetry, such as server.log_bytes
    #[arg(
        long,
        value_name = "METRIC,…",
        value_delimiter = ',',
        default_value = "tps",
        help_heading = "Charts and tables of settings"
    )]
    pub value: Vec<String>,
    /// Level to which the others are compared as ratios; `best`: all values in percent of the best
    #[arg(long, value_name = "LEVEL", help_heading = "Charts and tables of settings")]
    pub ratio_to: Option<String>,
    /// Trials to use in tables: all, worst or best
    #[arg(
        long,
        value_name = "TRIALS",
        value_parser = of_trials(),
        hide_possible_values = true,
        default_value = "all",
        help_heading = "Charts and tables of settings"
    )]
    pub of: OfTrials,
}

/// Where a window begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowStart {
    /// Since the start of the measured part.
    At(Nanos),
    /// Where throughput was steady.
    Steady,
}

fn chart_kinds() -> impl TypedValueParser<Value = ChartKind> {
    let names = PossibleValuesParser::new(ChartKind::ALL.map(ChartKind::name));
    names.map(|name| ChartKind::of_name(&name).expect("other names are refused"))
}

fn of_trials() -> impl TypedValueParser<Value = OfTrials> {
    let names = PossibleValuesParser::new(OfTrials::ALL.map(OfTrials::name));
    names.map(|name| OfTrials::of_name(&name).expect("other names are refused"))
}

fn window_start(text: &str) -> Result<WindowStart, String> {
    if text == "steady" { Ok(WindowStart::Steady) } else { values::duration(text).map(WindowStart::At) }
}

/// Background of charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Theme {
    /// White.
    Light,
    /// Nearly black.
    Dark,
}

fn picture_size(text: &str) -> Result<(u32, u32), String> {
    let sizes = assay_report::PICTURE_SIZES;
    let wrong = || format!("expected two numbers from {} to {}, such as 1200x600", sizes.start(), sizes.end());
    let (width, height) = text.split_once('x').ok_or_else(wrong)?;
    let one = |text: &str| text.parse().ok().filter(|size| sizes.contains(size)).ok_or_else(wrong);
    Ok((one(width)?, one(height)?))
}

/// Options of `completions`.
#[derive(Args, Clone)]
pub struct CompletionsOptions {
    /// Shell to complete for
    #[arg(value_name = "bash|zsh|fish", hide_possible_values = true, value_enum)]
    pub shell: Shell,
}

/// A shell that completes commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Of GNU.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly one.
    Fish,
}

/// Options of `manual`.
#[derive(Args, Clone)]
pub struct ManualOptions {
    /// Folder for the manual pages, one per command; created if missing
    #[arg(value_name = "FOLDER")]
    pub folder: std::path::PathBuf,
}

/// All commands with their options, but for those of workloads.
pub fn definition() -> clap::Command {
    <CommandLine as clap::CommandFactory>::command()
}

/// Options of `compare`.
#[derive(Args, Clone)]
pub struct CompareOptions {
    /// Records to compare; records with the same settings are grouped as trials, and each setting is compared with the
    /// first
    #[arg(value_name = "RECORD", required_unless_present = "baseline")]
    pub records: Vec<std::path::PathBuf>,
    /// Records of the baseline's trials
    #[arg(long, value_name = "RECORD", num_args = 1.., requires = "candidate", conflicts_with = "records")]
    pub baseline: Vec<std::path::PathBuf>,
    /// Records of the candidate's trials
    #[arg(long, value_name = "RECORD", num_args = 1.., requires = "baseline")]
    pub candidate: Vec<std::path::PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub judgement: JudgementOptions,
    /// Output format
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, value_enum, default_value = "text")]
    pub format: Format,
}

/// What a comparison is to conclude.
#[derive(Args, Clone)]
pub struct JudgementOptions {
    /// Smallest difference that matters; smaller ones count as no difference
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = margin)]
    pub margin: f64,
    /// Exit with status 1 if the condition holds and chance is ruled out, such as 'tps < -3%' or 'new_order.p99 >
    /// +10%'; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    pub fail_if: Vec<assay_report::Condition>,
    /// Exit with status 1 also if the condition may hold: too few trials for a confidence interval, an interval that
    /// includes no change, or a missing value
    #[arg(long, requires = "fail_if")]
    pub fail_if_unsure: bool,
}

/// Options of `duel`.
#[derive(Args, Clone)]
pub struct DuelOptions {
    /// Arguments of `assay run` for the first side, in quotes: 'oltp_read_write --db URL --session-sql "SET
    /// synchronous_commit=on"'
    #[arg(value_name = "A", allow_hyphen_values = true)]
    pub a: String,
    /// Arguments for the second side
    #[arg(value_name = "B", allow_hyphen_values = true)]
    pub b: String,
    /// Arguments for both sides, placed before their own
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub common: String,
    /// Number of trials per side
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least_one)]
    pub trials: u64,
    /// Folder for the records [default: assay-records/duel-TIME]
    #[arg(long, value_name = "FOLDER")]
    pub records: Option<std::path::PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub judgement: JudgementOptions,
    /// Output format
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, value_enum, default_value = "text")]
    pub format: Format,
    /// Print only errors and warnings on stderr
    #[arg(long)]
    pub quiet: bool,
}

/// Which servers, and how to talk to them.
#[derive(Args, Clone)]
#[command(next_help_heading = "Database")]
pub struct TargetOptions {
    /// Database to load: postgres://…, mysql://…, mariadb://… or sqlite:FILE; may be repeated: sessions are spread
    /// evenly
    #[arg(long, value_name = "URL")]
    pub db: Vec<String>,
    /// Use protocol-level prepared statements; off for connection poolers that do not support them
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = values::switch, action = ArgAction::Set)]
    pub prepared: bool,
    /// Statement to run on every new connection; may be repeated
    #[arg(long, value_name = "SQL")]
    pub session_sql: Vec<String>,
    /// Connections opened per second [default: unlimited]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = positive)]
    pub connect_rate: Option<f64>,
    /// Maximum number of connections being opened at the same time
    #[arg(long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    pub connect_pending: u64,
    /// Treat a connection as lost if the server's host acknowledges nothing for this long (2s to 9h; 0: no limit); slow
    /// statements do not trigger it
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = network_timeout)]
    pub network_timeout: Nanos,
}

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
const SESSIONS_OF_SEARCH: u32 = 64;

/// How many users there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminals {
    /// Their number. 1 <= number
    pub number: u32,
    /// Times the value of this option of the workload.
    pub per: Option<String>,
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

/// How sockets are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IoChoice {
    /// io_uring where it pays and can be had, else epoll.
    Auto,
    /// epoll.
    Epoll,
    /// io_uring, or not at all.
    Uring,
}

/// The generator itself: threads and random numbers.
#[derive(Args, Clone)]
#[command(next_help_heading = "Generator")]
pub struct GeneratorOptions {
    /// Random seed; with the same seed, each session sends the same statements [default: random, shown in the report]
    #[arg(long, value_name = "N", value_parser = any_count)]
    pub seed: Option<u64>,
    /// Threads that drive the sessions [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub workers: Option<u64>,
    /// CPUs for the load generator, such as 0-3,8, socket:0 or core:0-3; add ,no-smt to use one thread per core
    /// [default: all]
    #[arg(long, value_name = "CPUS")]
    pub cpus: Option<String>,
    #[arg(long, value_name = "auto|epoll|uring", hide_possible_values = true, value_enum, help = io_help())]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub io: Option<IoChoice>,
    /// Replies handled between two system calls: a larger batch saves CPU but raises the median latency [default: 32
    /// with io_uring, 64 with epoll]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub batch: Option<u64>,
    /// Distribution of the rows that statements access
    #[arg(long, value_name = "NAME", default_value = "uniform",
          value_parser = PossibleValuesParser::new(["uniform", "gaussian", "special", "pareto", "zipfian"]))]
    pub rand_type: String,
    /// gaussian, special: number of uniform values averaged
    #[arg(long, value_name = "N", default_value = "12", value_parser = at_least_one)]
    pub rand_spec_iter: u64,
    /// special: size of the hot center, in percent of the rows
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::number)]
    pub rand_spec_pct: f64,
    /// special: percentage of accesses that go to the hot center
    #[arg(long, value_name = "N", default_value = "75", value_parser = values::number)]
    pub rand_spec_res: f64,
    /// pareto: parameter h
    #[arg(long, value_name = "X", default_value = "0.2", value_parser = values::number)]
    pub rand_pareto_h: f64,
    /// zipfian: exponent
    #[arg(long, value_name = "X", default_value = "0.8", value_parser = values::number)]
    pub rand_zipfian_exp: f64,
    /// Which part of the work is done here.
    #[arg(skip)]
    pub role: Role,
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
    /// Where `assay lab` learns how the run goes.
    #[arg(long, value_name = "PATH", hide = true)]
    pub relay: Option<std::path::PathBuf>,
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

/// Spacing of due times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "a doc comment would become help text")]
pub enum Arrival {
    Constant,
    Poisson,
}

/// What an unexpected error does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "a doc comment would become help text")]
pub enum OnError {
    Stop,
    Continue,
}

/// The codes are those of the code.
fn after_help() -> String {
    let codes = Exit::ALL.map(|(exit, meaning)| format!("{} {meaning}", exit as i32)).join(", ");
    format!("A workload's own options: assay run WORKLOAD --help. Exit codes: {codes}.")
}

/// The number of sessions is that of the code.
fn io_help() -> String {
    format!(
        "Event loop; auto: io_uring if the kernel allows it and each worker has at least {SESSIONS_FOR_URING} sessions, \
         otherwise epoll [default: auto, or ASSAY_IO]"
    )
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

fn terminals(text: &str) -> Result<Terminals, String> {
    let (number, per) = text.split_once('/').map_or((text, None), |(number, per)| (number, Some(per.to_owned())));
    Ok(Terminals { number: session_count(number)?, per })
}

fn not_negative(text: &str) -> Result<f64, String> {
    values::number(text).and_then(|value| if value >= 0.0 { Ok(value) } else { Err("must not be negative".to_owned()) })
}

fn positive(text: &str) -> Result<f64, String> {
    values::number(text).and_then(|value| if value > 0.0 { Ok(value) } else { Err("must be above 0".to_owned()) })
}

fn promise(text: &str) -> Result<assay_report::Promise, String> {
    text.parse().map_err(|error: assay_report::BadPromise| error.to_string())
}

/// The kernel counts in seconds, and to 32,767.
fn network_timeout(text: &str) -> Result<Nanos, String> {
    let limit = values::duration(text)?;
    let possible = limit == Nanos::ZERO || (NETWORK_TIMEOUT_MIN..=NETWORK_TIMEOUT_MAX).contains(&limit);
    if possible { Ok(limit) } else { Err("must be 0, or from 2s to 9h".to_owned()) }
}

const NETWORK_TIMEOUT_MIN: Nanos = Nanos::from_secs(2);
const NETWORK_TIMEOUT_MAX: Nanos = Nanos::from_secs(9 * 3600);

fn interval(text: &str) -> Result<Nanos, String> {
    let interval = values::duration(text)?;
    if interval >= INTERVAL_MIN { Ok(interval) } else { Err("must be at least 100ms".to_owned()) }
}

const INTERVAL_MIN: Nanos = Nanos::from_millis(100);

fn margin(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|number| values::number(number.trim()).ok());
    percent
        .filter(|percent| *percent > 0.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| "expected a percentage above 0, such as 3%".to_owned())
}

fn condition(text: &str) -> Result<assay_report::Condition, String> {
    text.parse().map_err(|error: assay_report::BadCondition| error.to_string())
}

#[cfg(test)]
mod tests {
    use assay_io::Backend;
    use regex::Regex;

    use super::*;
    use crate::plan::TIME_DEFAULT;

    /// The numbers in the help of an option, in order, apart from examples and the defaults that clap itself states.
    /// Those of options that are not in this list have none.
    fn stated() -> Vec<(&'static str, Vec<String>)> {
        let one = |value: &dyn ToString| vec![value.to_string().replace(' ', "")];
        let failed = Exit::Difference as i32;
        vec![
            ("sessions", [load_model::AUTO_MAX, 1, SESSIONS_OF_SEARCH].map(|number| number.to_string()).into()),
            ("time", one(&TIME_DEFAULT)),
            ("network-timeout", [one(&NETWORK_TIMEOUT_MIN), one(&"9h")].concat()),
            ("interval", one(&INTERVAL_MIN)),
            ("batch", [Backend::Uring, Backend::Epoll].map(|backend| backend.batch_default().to_string()).into()),
            ("io", one(&SESSIONS_FOR_URING)),
            ("check", one(&failed)),
            ("kill-check", one(&failed)),
            ("fail-if", one(&failed)),
            ("fail-if-unsure", one(&failed)),
            ("same-result", one(&failed)),
        ]
    }

    #[track_caller]
    fn check(command: &clap::Command) {
        let examples = Regex::new(r"such as [^;\[()]*| '[^']*'|\b0: ").unwrap();
        let number = Regex::new(r"\b\d[\d.]*(ns|us|ms|s|m|h|%|K|M|G)?\b").unwrap();
        let stated = stated();
        for argument in command.get_arguments().filter(|argument| argument.get_long() != Some("version")) {
            let name = argument.get_long().unwrap_or_default();
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let rest = examples.replace_all(&help, "");
            let found: Vec<&str> = number.find_iter(&rest).map(|found| found.as_str()).collect();
            // `prepare --sessions` has another default, which is not a number, and clap states that of `io --time`.
            let differs = found.is_empty() && (name == "sessions" || (command.get_name(), name) == ("io", "time"));
            let known = stated.iter().find(|(one, _)| *one == name && !differs);
            let mut expected = known.map(|(_, numbers)| numbers.clone()).unwrap_or_default();
            if (command.get_name(), name) == ("sql", "warmup") {
                expected = [false, true].map(|cold| u64::from(!cold).to_string()).into();
            }
            assert_eq!(found, expected, "{} --{name}: {help}", command.get_name());
        }
        command.get_subcommands().for_each(check);
    }

    #[test]
    fn every_number_in_the_help_is_that_of_the_code() {
        check(&definition());
        assert_eq!(values::duration("9h"), Ok(NETWORK_TIMEOUT_MAX));
        for (exit, meaning) in Exit::ALL {
            assert!(after_help().contains(&format!("{} {meaning}", exit as i32)));
        }
    }
}
