//! The command line: fixed options declared here, workload options declared by the workload.
//!
//! Reading takes two passes. The first only finds which workload is meant; its script is loaded, and what it declares
//! becomes real options of the subcommand: listed by `--help`, typed, refused with the nearest name when
//! misspelt. The second pass is clap's. `-` and `_` mean the same inside option names.

use std::ffi::OsString;
use std::sync::Arc;

use assay_engine::RATE_MAX;
use assay_options::{OptionDeclaration, OptionKind, OptionValue};
use assay_script::Program;
use assay_seam::Nanos;
use clap::builder::{PossibleValuesParser, StyledStr};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, ValueEnum};

use crate::diagnostics::{Exit, Trouble};
use crate::{library, registry, terminal, values};

/// A command line that was understood.
pub struct Invocation {
    /// What to do.
    pub subcommand: Subcommand,
    /// The workload, for subcommands that take one.
    pub workload: Option<Workload>,
    /// The words as given, the program's name first, passwords masked.
    pub words: Vec<String>,
}

/// A workload with the options the user gave it.
#[derive(Clone)]
pub struct Workload {
    /// As the user named it.
    pub name: String,
    /// The script.
    pub program: Arc<Program>,
    /// Options given on the command line, by `OptionDeclaration::key`; the others have their defaults.
    pub given: Vec<(String, OptionValue)>,
}

/// Commands a script may give as plain global functions.
const BARE_COMMANDS: [&str; 3] = ["prepare", "check", "cleanup"];

impl Workload {
    /// Its commands, `run` among them, sorted.
    pub fn commands(&self) -> Vec<String> {
        let mut names: Vec<String> = self.program.commands().iter().map(|command| command.name.clone()).collect();
        names.extend(BARE_COMMANDS.iter().filter(|name| self.program.defines(name)).map(|name| (*name).to_owned()));
        names.extend(self.program.defines("event").then(|| "run".to_owned()));
        names.sort();
        names.dedup();
        names
    }

    /// Whether it has a command of this name.
    pub fn has_command(&self, name: &str) -> bool {
        self.commands().iter().any(|command| command == name)
    }

    /// Its options: as given, or their defaults.
    pub fn options_in_effect(&self) -> Vec<(String, OptionValue)> {
        let given = |key: &str| self.given.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        let value = |option: &OptionDeclaration| given(&option.key()).unwrap_or_else(|| option.default.clone());
        self.program.options().iter().map(|option| (option.key(), value(option))).collect()
    }

    /// The given options as words of a command line.
    pub fn given_words(&self) -> Vec<String> {
        let word = |(key, value): &(String, OptionValue)| format!("--{}={}", key.replace('_', "-"), shown(value));
        assay_record::without_secrets(self.given.iter().map(word))
    }
}

/// A value as the command line takes it.
fn shown(value: &OptionValue) -> String {
    match value {
        OptionValue::None => String::new(),
        OptionValue::Bool(on) => if *on { "on" } else { "off" }.to_owned(),
        OptionValue::Number(value) => value.to_string(),
        OptionValue::Text(text) => text.clone(),
        OptionValue::List(items) => items.join(","),
    }
}

/// Loads databases with scripted work and measures them honestly.
#[derive(Parser)]
#[command(name = "assay", version, disable_help_subcommand = true, max_term_width = 110)]
#[command(after_help = "A workload's own options: assay run WORKLOAD --help. Exit codes: 0 done, 1 check found a \
    difference, 2 usage, 3 workload, 4 server, 5 environment, 70 a bug in assay, 130 and 143 interrupted.")]
struct CommandLine {
    #[command(subcommand)]
    subcommand: Subcommand,
}

/// What to do.
#[derive(clap::Subcommand)]
pub enum Subcommand {
    /// Run a workload and report what was measured
    Run(Box<RunOptions>),
    /// Create and fill a workload's tables
    Prepare(CommandOptions),
    /// Verify the tables of a workload: row counts and shape
    Check(CommandOptions),
    /// Remove the tables of a workload
    Cleanup(CommandOptions),
    /// Run another command that a workload declares
    Exec(ExecOptions),
    /// List the built-in workloads
    List,
    /// Print the final report of a record
    Show(ShowOptions),
    /// Compare the records of two settings, or of several
    Compare(CompareOptions),
    /// Run two settings in turns, so that drift hits both, and compare them
    Duel(DuelOptions),
    /// Make a page, tables, pictures or series of one or several records
    Report(ReportOptions),
    /// Do what sysbench does: its command line, scripts and reports
    Sysbench,
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
    pub load: LoadOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub errors: ErrorOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub generator: GeneratorOptions,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub output: OutputOptions,
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

/// Options of `exec`.
#[derive(Args, Clone)]
pub struct ExecOptions {
    /// Built-in workload (see `assay list`) or Lua file
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    /// A command that the workload declares
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
    /// Sessions working side by side [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = session_count, help_heading = "Load")]
    pub sessions: Option<u32>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub generator: GeneratorOptions,
    /// Say nothing on stderr but errors
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,
}

/// Options of `show`.
#[derive(Args, Clone)]
pub struct ShowOptions {
    /// A record that `assay run` wrote
    #[arg(value_name = "RECORD")]
    pub record: std::path::PathBuf,
    /// Form of the report
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, value_enum, default_value = "text")]
    pub format: Format,
}

/// Options of `report`. A `-` instead of a file is stdout.
#[derive(Args, Clone)]
pub struct ReportOptions {
    /// Records that `assay run` wrote; those of the same settings are told as trials of one
    #[arg(value_name = "RECORD", required = true)]
    pub records: Vec<std::path::PathBuf>,
    /// A page with charts in one file that opens offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<std::path::PathBuf>,
    /// Words and tables as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<std::path::PathBuf>,
    /// A row per interval
    #[arg(long, value_name = "FILE")]
    pub csv: Option<std::path::PathBuf>,
    /// Findings, and the figures of every chart
    #[arg(long, value_name = "FILE")]
    pub json: Option<std::path::PathBuf>,
    /// The final state as Prometheus reads it
    #[arg(long, value_name = "FILE")]
    pub prometheus: Option<std::path::PathBuf>,
    /// A row per record, the oldest first, for tools that look for change points (Apache Otava's CSV)
    #[arg(long, value_name = "FILE")]
    pub otava: Option<std::path::PathBuf>,
    /// Every chart as an SVG file in this folder
    #[arg(long, value_name = "FOLDER")]
    pub svg: Option<std::path::PathBuf>,
    /// Every chart as a PNG file in this folder
    #[arg(long, value_name = "FOLDER")]
    pub png: Option<std::path::PathBuf>,
}

/// Options of `compare`.
#[derive(Args, Clone)]
pub struct CompareOptions {
    /// Records of any settings: those of one setting are put together, and compared with those of the first
    #[arg(value_name = "RECORD", required_unless_present = "baseline")]
    pub records: Vec<std::path::PathBuf>,
    /// Records of the trials of one setting, which the other is compared with
    #[arg(long, value_name = "RECORD", num_args = 1.., requires = "candidate", conflicts_with = "records")]
    pub baseline: Vec<std::path::PathBuf>,
    /// Records of the trials of the other setting
    #[arg(long, value_name = "RECORD", num_args = 1.., requires = "baseline")]
    pub candidate: Vec<std::path::PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub judgement: JudgementOptions,
    /// Form of the result
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, value_enum, default_value = "text")]
    pub format: Format,
}

/// What a comparison is to conclude.
#[derive(Args, Clone)]
pub struct JudgementOptions {
    /// The smallest difference that matters: "no difference" means that there is none larger
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = margin)]
    pub margin: f64,
    /// Exit with 1 if the change is beyond this limit and not by chance, such as 'tps < -3%' or 'new_order.p99 > +10%'; may
    /// be repeated
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    pub fail_if: Vec<assay_report::Condition>,
    /// Exit with 1 also if the change may be beyond the limit: too few trials for a confidence interval, an interval that
    /// includes no change, or no figure
    #[arg(long, requires = "fail_if")]
    pub fail_if_unsure: bool,
}

/// Options of `duel`.
#[derive(Args, Clone)]
pub struct DuelOptions {
    /// What `assay run` takes, in quotes: 'oltp_read_write --db URL --session-sql "SET synchronous_commit=on"'
    #[arg(value_name = "A", allow_hyphen_values = true)]
    pub a: String,
    /// The same of the other side
    #[arg(value_name = "B", allow_hyphen_values = true)]
    pub b: String,
    /// Words put before those of both sides, which then hold what differs alone
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub common: String,
    /// Trials of each side
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least_one)]
    pub trials: u64,
    /// Folder for the records [default: assay-records/duel-TIME]
    #[arg(long, value_name = "FOLDER")]
    pub records: Option<std::path::PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc comment would become help text")]
    pub judgement: JudgementOptions,
    /// Form of the result
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, value_enum, default_value = "text")]
    pub format: Format,
    /// Say nothing on stderr but errors and warnings
    #[arg(long)]
    pub quiet: bool,
}

/// Which servers, and how to talk to them.
#[derive(Args, Clone)]
#[command(next_help_heading = "Database")]
pub struct TargetOptions {
    /// Database to load: postgres://…, mysql://…, mariadb://… or sqlite:FILE; several share the sessions evenly
    #[arg(long, value_name = "URL")]
    pub db: Vec<String>,
    /// Use protocol-level prepared statements; off for pooling proxies that cannot hold them
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = values::switch, action = ArgAction::Set)]
    pub prepared: bool,
    /// Statement to run on every new connection; may be repeated
    #[arg(long, value_name = "SQL")]
    pub session_sql: Vec<String>,
    /// Connects per second [default: as fast as they go]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = positive)]
    pub connect_rate: Option<f64>,
    /// Connects under way at once
    #[arg(long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    pub connect_pending: u64,
    /// Treat a connection as lost when the server's host has acknowledged nothing for this long, 2s to 9h; a slow statement
    /// does not count; 0: no limit
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = network_timeout)]
    pub network_timeout: Nanos,
}

/// How much work, and when.
#[derive(Args, Clone)]
#[command(next_help_heading = "Load")]
pub struct LoadOptions {
    /// Concurrent sessions; several numbers are a ladder, one stage after the other
    #[arg(long, value_name = "N,…", default_value = "1", value_parser = session_count, value_delimiter = ',',
          allow_negative_numbers = true)]
    pub sessions: Vec<u32>,
    /// Users at terminals who share connections: N, or N per value of a workload option, such as 10/warehouse
    #[arg(long, value_name = "N[/OPTION]", value_parser = terminals, conflicts_with_all = ["sessions", "rate"])]
    pub terminals: Option<Terminals>,
    /// Connections that the terminals share
    #[arg(long, value_name = "N", default_value = "64", value_parser = session_count, requires = "terminals")]
    pub connections: u32,
    /// Multiplies the terminals' times to key in and to think
    #[arg(long, value_name = "X", default_value = "1", value_parser = not_negative, requires = "terminals")]
    pub think_scale: f64,
    /// Length of the measured part of a stage, such as 30s or 10m; 0: no limit [default: 10s, no limit with
    /// --transactions]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub time: Option<Nanos>,
    /// End a stage after this many transactions
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub transactions: Option<u64>,
    /// Run this long before measuring, in every stage
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::duration)]
    pub warmup: Nanos,
    /// Transactions due per second, whatever the server does [default: the next when the one before is done]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = rate)]
    pub rate: Option<f64>,
    /// How due times are spaced
    #[arg(
        long,
        value_name = "constant|poisson",
        hide_possible_values = true,
        value_enum,
        default_value = "constant",
        requires = "rate"
    )]
    pub arrival: Arrival,
    /// Drop due transactions when this many wait; drops are counted [default: no bound]
    #[arg(long, value_name = "N", value_parser = at_least_one, requires = "rate")]
    pub backlog_max: Option<u64>,
    /// How long transactions in flight may take to finish at the end of a stage
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration)]
    pub grace: Nanos,
    /// Run all of it so many times, each with a record and a seed of its own, and sum up
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    pub trials: u64,
    /// Prepare the workload's tables first if they are missing
    #[arg(long)]
    pub prepare: bool,
    /// Check the workload's tables before the run and after it; exit with 1 when something is wrong, or its audit failed
    #[arg(long)]
    pub check: bool,
    /// Run this shell command, which crashes the server and starts it again, in the middle of the run; look afterwards for
    /// all that was acknowledged, and exit with 1 when some is lost
    #[arg(long, value_name = "CMD", requires = "db")]
    pub kill_check: Option<String>,
}

/// How many users there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminals {
    /// So many. 1 <= number
    pub number: u32,
    /// Times the value of this option of the workload.
    pub per: Option<String>,
}

/// What to do about errors.
#[derive(Args, Clone)]
#[command(next_help_heading = "Errors")]
pub struct ErrorOptions {
    /// Run a transaction again up to N times after a deadlock, serialization failure or lost connection
    #[arg(long, value_name = "N", default_value = "10", value_parser = any_count)]
    pub retries: u64,
    /// Errors that fail a transaction but not the run, such as 1213 or 40001, or all; what can be retried is retried first
    #[arg(long, value_name = "CODE,…|all", value_delimiter = ',')]
    pub ignore_errors: Vec<String>,
    /// What any other error does
    #[arg(long, value_name = "stop|continue", hide_possible_values = true, value_enum, default_value = "stop")]
    pub on_error: OnError,
    /// How long to keep trying to reconnect when a connection is lost
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
    /// The same seed gives every session the same statements [default: random, always shown]
    #[arg(long, value_name = "N", value_parser = any_count)]
    pub seed: Option<u64>,
    /// Threads driving the sessions [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub workers: Option<u64>,
    /// How sockets are served: `auto` is io_uring where the kernel allows it and each worker has 16
    /// sessions or more [default: auto, or ASSAY_IO]
    #[arg(long, value_name = "auto|epoll|uring", hide_possible_values = true, value_enum)]
    pub io: Option<IoChoice>,
    /// Replies handled between two calls of the kernel: more cost less CPU and more median latency
    /// [default: 32 with io_uring, 64 with epoll]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub batch: Option<u64>,
    /// Distribution of the rows that statements touch
    #[arg(long, value_name = "NAME", default_value = "uniform",
          value_parser = PossibleValuesParser::new(["uniform", "gaussian", "special", "pareto", "zipfian"]))]
    pub rand_type: String,
    /// gaussian, special: uniform numbers averaged
    #[arg(long, value_name = "N", default_value = "12", value_parser = at_least_one)]
    pub rand_spec_iter: u64,
    /// special: size of the hot centre in percent of the rows
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::number)]
    pub rand_spec_pct: f64,
    /// special: how many of 100 accesses go to the hot centre
    #[arg(long, value_name = "N", default_value = "75", value_parser = values::number)]
    pub rand_spec_res: f64,
    /// pareto: share that gets the rest of the accesses, 0 … 1
    #[arg(long, value_name = "X", default_value = "0.2", value_parser = values::number)]
    pub rand_pareto_h: f64,
    /// zipfian: exponent
    #[arg(long, value_name = "X", default_value = "0.8", value_parser = values::number)]
    pub rand_zipfian_exp: f64,
}

/// What is shown and kept.
#[derive(Args, Clone)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// Form of the result on stdout
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, value_enum, default_value = "text")]
    pub format: Format,
    /// Length of a reporting interval, at least 100ms
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    pub interval: Nanos,
    /// Write the record here [default: assay-records/WORKLOAD-TIME.json.zst]
    #[arg(long, value_name = "PATH", conflicts_with = "no_record")]
    pub record: Option<std::path::PathBuf>,
    /// Write no record
    #[arg(long)]
    pub no_record: bool,
    /// Write a line about each transaction that the workload has something to say of into this file, as CSV (tpcc: the
    /// deliveries that were queued)
    #[arg(long, value_name = "FILE")]
    pub journal: Option<std::path::PathBuf>,
    /// Serve live metrics to Prometheus at http://ADDRESS/metrics while the run goes on
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics_listen: Option<std::net::SocketAddr>,
    /// Say nothing on stderr but errors and warnings
    #[arg(long)]
    pub quiet: bool,
}

/// Form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "a doc comment would become help text")]
pub enum Format {
    Text,
    Json,
    Csv,
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

/// The words for the sysbench front, its name first: after `assay sysbench`, or all of them when the program is called
/// `sysbench`. `None`: the command line is ours.
pub fn words_of_sysbench(words: impl IntoIterator<Item = OsString>) -> Result<Option<Vec<String>>, Trouble> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let called = |word: &OsString| std::path::Path::new(word).file_name().is_some_and(|name| name == "sysbench");
    if !words.first().is_some_and(called) {
        if words.get(1).is_none_or(|word| word != "sysbench") {
            return Ok(None);
        }
        words.remove(0);
    }
    let text = |word: OsString| word.into_string().map_err(|word| word.display().to_string());
    let words: Result<Vec<String>, String> = words.into_iter().map(text).collect();
    words.map(Some).map_err(|word| Trouble::usage(format!("{word} is not UTF-8")))
}

/// Reads a command line, the program's name first. `Ok(None)`: it asked for help or the version, and got it.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Option<Invocation>, Trouble> {
    let text = |word: OsString| word.into_string();
    let words: Result<Vec<String>, OsString> = words.into_iter().map(text).collect();
    let words = words.map_err(|word| Trouble::usage(format!("{} is not UTF-8", word.display())))?;
    let words: Vec<String> = words.iter().map(|word| with_hyphens(word)).collect();
    let words = asking_for_help(words);
    let mut command = CommandLine::command();
    let found = find_workload(&command, &words)?;
    let mut declared = Vec::new();
    let mut words_now = words.clone();
    if let Some((subcommand, workload)) = &found {
        declared = addable(&command, subcommand, workload.program.options());
        words_now = with_switch_values(words_now, &declared);
        let heading = format!("Options of {}", workload.name);
        command = command.mut_subcommand(subcommand, |command| {
            command.next_help_heading(heading).args(declared.iter().map(workload_argument))
        });
    }
    let matches = match command.try_get_matches_from_mut(&words_now) {
        Ok(matches) => matches,
        Err(error) => return explain(&error).map(|()| None),
    };
    let parsed = CommandLine::from_arg_matches(&matches).map_err(|error| Trouble::usage(error.to_string()))?;
    let workload = found.map(|(subcommand, workload)| {
        let matches = matches.subcommand_matches(&subcommand).expect("the subcommand was found by name");
        Workload { given: given(matches, &declared), ..workload }
    });
    Ok(Some(Invocation { subcommand: parsed.subcommand, workload, words: assay_record::without_secrets(&words) }))
}

/// `help run tpcc` is `run tpcc --help`.
fn asking_for_help(mut words: Vec<String>) -> Vec<String> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".to_owned());
    }
    words
}

/// `--table_size=5` is `--table-size=5`.
fn with_hyphens(word: &str) -> String {
    // A command line in one word, as `duel` takes them, is not an option.
    let end = word.find(['=', ' ']).unwrap_or(word.len());
    if word.starts_with("--") { word[..end].replace('_', "-") + &word[end..] } else { word.to_owned() }
}

/// The subcommand's name and the workload that `words` name, loaded; `None` when they name none.
fn find_workload(command: &clap::Command, words: &[String]) -> Result<Option<(String, Workload)>, Trouble> {
    let Some(subcommand) = words.get(1).and_then(|name| command.find_subcommand(name)) else { return Ok(None) };
    if !subcommand.get_arguments().any(|argument| argument.get_id() == "workload") {
        return Ok(None);
    }
    let mut names = Vec::new();
    let mut database = None;
    let mut rest = words[2..].iter();
    while let Some(word) = rest.next() {
        let Some(option) = word.strip_prefix("--") else {
            names.push(word.as_str());
            continue;
        };
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let fixed = subcommand.get_arguments().find(|argument| argument.get_long() == Some(name));
        let takes_value = fixed.is_some_and(|argument| argument.get_action().takes_values());
        let value = value.or_else(|| if takes_value { rest.next().map(String::as_str) } else { None });
        if name == "db" {
            database = database.or(value);
        }
    }
    // An option's value may stand before the name (`--tables 4 oltp_read_only`); which options take one is only
    // known from the workload. So the first word that names a workload is it, and if none does, the first word.
    let library = library::library();
    let Some(name) = names.iter().find(|name| library.find(name).is_ok()).or(names.first()) else { return Ok(None) };
    let driver = match database {
        Some(url) => registry::driver_of(url)?.dialect,
        None => registry::EMBEDDED.dialect,
    };
    let program = library::load(name, subcommand.get_name(), words, driver)?;
    let workload = Workload { name: (*name).to_owned(), program: Arc::new(program), given: Vec::new() };
    Ok(Some((subcommand.get_name().to_owned(), workload)))
}

/// The workload's options that do not hide a fixed one (scripts written for sysbench sometimes declare `threads`).
fn addable(command: &clap::Command, subcommand: &str, options: &[OptionDeclaration]) -> Vec<OptionDeclaration> {
    let subcommand = command.find_subcommand(subcommand).expect("it was found before");
    let fixed = |name: &str| name == "help" || subcommand.get_arguments().any(|fixed| fixed.get_long() == Some(name));
    options.iter().filter(|option| !fixed(&long_name(option))).cloned().collect()
}

fn long_name(option: &OptionDeclaration) -> String {
    option.name.replace('_', "-")
}

fn workload_argument(option: &OptionDeclaration) -> Arg {
    let (kind, name) = (option.kind, long_name(option));
    let value_name = match kind {
        OptionKind::Bool => "on|off",
        OptionKind::Int | OptionKind::Double => "N",
        OptionKind::Size => "BYTES",
        OptionKind::Text => "TEXT",
        OptionKind::File => "FILE",
        OptionKind::List => "A,B,…",
    };
    let default = match shown(&option.default) {
        text if text.is_empty() => text,
        text => format!(" [default: {text}]"),
    };
    let argument = Arg::new(option.key())
        .long(name)
        .value_name(value_name)
        .help(StyledStr::from(format!("{}{default}", option.description)))
        .action(ArgAction::Set)
        .overrides_with(option.key())
        .value_parser(move |text: &str| option_value(kind, text));
    match kind {
        OptionKind::Bool => argument.num_args(0..=1).require_equals(true).default_missing_value("on"),
        OptionKind::Int | OptionKind::Double => argument.allow_negative_numbers(true),
        _ => argument,
    }
}

/// Reads a workload option. An empty value clears it, as sysbench scripts expect.
fn option_value(kind: OptionKind, text: &str) -> Result<OptionValue, String> {
    Ok(match kind {
        OptionKind::Bool => OptionValue::Bool(values::switch(text)?),
        OptionKind::Int | OptionKind::Double | OptionKind::Size if text.is_empty() => OptionValue::Number(0.0),
        OptionKind::Int => OptionValue::Number(values::integer(text)? as f64),
        OptionKind::Double => OptionValue::Number(values::number(text)?),
        OptionKind::Size => OptionValue::Number(values::size(text)? as f64),
        OptionKind::Text => OptionValue::Text(text.to_owned()),
        OptionKind::File => OptionValue::None,
        OptionKind::List => {
            OptionValue::List(text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect())
        }
    })
}

/// A switch may stand alone, so clap cannot tell whether the next word is its value: `--skip-trx off` becomes
/// `--skip-trx=off` here, and `--skip-trx oltp_read_only` stays two words.
fn with_switch_values(words: Vec<String>, declared: &[OptionDeclaration]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for word in words {
        let before = joined.last().and_then(|before| before.strip_prefix("--"));
        let option = before.and_then(|name| declared.iter().find(|option| long_name(option) == name));
        match option {
            Some(option) if option.kind == OptionKind::Bool && values::switch(&word).is_ok() => {
                joined.last_mut().expect("it has an option").push_str(&format!("={word}"));
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// What the user gave of the workload's options.
fn given(matches: &ArgMatches, declared: &[OptionDeclaration]) -> Vec<(String, OptionValue)> {
    let value = |option: &OptionDeclaration| matches.get_one::<OptionValue>(&option.key()).cloned();
    declared.iter().filter_map(|option| Some((option.key(), value(option)?))).collect()
}

/// Help and version go to stdout; anything else becomes a trouble in our own form.
fn explain(error: &clap::Error) -> Result<(), Trouble> {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        Some(ContextValue::StyledStr(text)) => text.to_string(),
        Some(ContextValue::StyledStrs(texts)) => texts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        _ => String::new(),
    };
    // `--time <DURATION>` → `--time`
    let option =
        text(ContextKind::InvalidArg).split([' ', '=', '[']).next().unwrap_or_default().trim_matches('\'').to_owned();
    let value = text(ContextKind::InvalidValue);
    let mut trouble = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return Ok(terminal::result(&error.to_string())?),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            terminal::say(&error.to_string());
            return Err(Trouble::usage("no command given").hint("try `assay run oltp_read_write`"));
        }
        ErrorKind::UnknownArgument if option.starts_with('-') => {
            let trouble = Trouble::usage(format!("there is no option {option}"));
            match habit(&option) {
                Some(hint) => return Err(trouble.hint(hint)),
                None => trouble,
            }
        }
        ErrorKind::UnknownArgument => Trouble::usage(format!("what is `{option}` for?"))
            .hint("a workload's name comes first; option values follow their option"),
        ErrorKind::InvalidSubcommand => {
            Trouble::usage(format!("there is no command {}", text(ContextKind::InvalidSubcommand)))
        }
        ErrorKind::ValueValidation => {
            let reason = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            Trouble::usage(format!("{option} {value}: {reason}"))
        }
        ErrorKind::InvalidValue if value.is_empty() => Trouble::usage(format!("{option} needs a value")),
        ErrorKind::InvalidValue => {
            Trouble::usage(format!("{option} {value}: expected one of {}", text(ContextKind::ValidValue)))
        }
        ErrorKind::ArgumentConflict => {
            let prior = text(ContextKind::PriorArg);
            let prior = prior.split(' ').next().unwrap_or_default();
            if prior == option {
                Trouble::usage(format!("{option} was given twice"))
            } else {
                Trouble::usage(format!("{option} and {prior} exclude each other"))
            }
        }
        ErrorKind::MissingRequiredArgument if option == "--rate" => {
            Trouble::usage("--rate is missing").hint("--arrival and --backlog-max say how a rate is kept")
        }
        ErrorKind::MissingRequiredArgument => Trouble::usage(format!("{} is missing", text(ContextKind::InvalidArg))),
        _ => Trouble::usage(error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ")),
    };
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
        let suggestion = text(kind);
        if !suggestion.is_empty() {
            trouble = trouble.hint(format!("did you mean {suggestion}?"));
        }
    }
    debug_assert_eq!(trouble.exit, Exit::Usage);
    Err(trouble)
}

/// What people know from other tools, and what it is called here; words in place of a name say where it went.
const HABITS: [(&[&str], &str); 19] = [
    (
        &["threads", "num-threads", "clients", "client", "users", "vu", "vus", "virtual-users", "concurrency"],
        "--sessions",
    ),
    (&["duration", "max-time", "run-time", "runtime", "seconds"], "--time"),
    (&["events", "max-requests", "requests", "iterations"], "--transactions"),
    (&["warmup-time", "ramp-up", "rampup"], "--warmup"),
    (&["report-interval", "progress"], "--interval"),
    (&["tx-rate", "target-rate", "throughput", "qps", "tps"], "--rate"),
    (&["jobs"], "--workers"),
    (&["rand-seed", "random-seed"], "--seed"),
    (&["db-ps-mode", "protocol"], "--prepared"),
    (&["mysql-ignore-errors", "pgsql-ignore-errors"], "--ignore-errors"),
    (&["max-tries", "max-retries"], "--retries"),
    (&["output"], "--record"),
    (&["output-format", "json"], "--format"),
    (&["init", "initialize"], "--prepare"),
    (&["query-timeout", "tcp-user-timeout", "keepalive", "keepalives"], "--network-timeout"),
    (
        &[
            "host",
            "port",
            "user",
            "password",
            "dbname",
            "database",
            "mysql-host",
            "mysql-port",
            "mysql-socket",
            "mysql-user",
            "mysql-password",
            "mysql-db",
            "pgsql-host",
            "pgsql-port",
            "pgsql-user",
            "pgsql-password",
            "pgsql-db",
            "db-driver",
            "url",
            "dsn",
        ],
        "--db",
    ),
    (&["histogram"], "every record holds its histograms: `assay report RECORD --html FILE` draws them"),
    (&["percentile", "percentiles"], "the report shows p50, p95, p99 and p99.9: there is nothing to choose"),
    (&["verbosity", "verbose", "debug"], "there is only `--quiet`"),
];

/// What to say to somebody who is used to another tool.
fn habit(option: &str) -> Option<String> {
    let option = option.trim_start_matches('-');
    let (_, answer) = HABITS.iter().find(|(names, _)| names.contains(&option))?;
    Some(if answer.starts_with("--") { format!("it is called `{answer}` here") } else { (*answer).to_owned() })
}

fn session_count(text: &str) -> Result<u32, String> {
    u32::try_from(values::count(text, 1)?).map_err(|_| "must be below 2^32".to_owned())
}

fn terminals(text: &str) -> Result<Terminals, String> {
    let (number, per) = text.split_once('/').map_or((text, None), |(number, per)| (number, Some(per.to_owned())));
    Ok(Terminals { number: session_count(number)?, per })
}

fn not_negative(text: &str) -> Result<f64, String> {
    values::number(text).and_then(|value| if value >= 0.0 { Ok(value) } else { Err("must not be below 0".to_owned()) })
}

fn any_count(text: &str) -> Result<u64, String> {
    // A seed may use all 64 bits.
    text.parse().or_else(|_| values::count(text, 0))
}

fn at_least_one(text: &str) -> Result<u64, String> {
    values::count(text, 1)
}

fn positive(text: &str) -> Result<f64, String> {
    values::number(text).and_then(|value| if value > 0.0 { Ok(value) } else { Err("must be above 0".to_owned()) })
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = positive(text)?;
    if rate <= RATE_MAX { Ok(rate) } else { Err(format!("must be at most {RATE_MAX}")) }
}

/// The kernel counts in seconds, and to 32,767.
fn network_timeout(text: &str) -> Result<Nanos, String> {
    let limit = values::duration(text)?;
    let possible = limit == Nanos::ZERO || (Nanos::from_secs(2)..=Nanos::from_secs(9 * 3600)).contains(&limit);
    if possible { Ok(limit) } else { Err("must be 0, or from 2s to 9h".to_owned()) }
}

fn interval(text: &str) -> Result<Nanos, String> {
    let interval = values::duration(text)?;
    if interval >= Nanos::from_millis(100) { Ok(interval) } else { Err("must be at least 100ms".to_owned()) }
}

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
