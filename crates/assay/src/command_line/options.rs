//! The subcommands, and the options of those that need few.
//!
//! One definition feeds help, checks and values.

use assay_process::diagnostics::Exit;
use assay_spec::{Format, TelemetryLevel, tag, values};
use clap::{Args, Parser, ValueEnum};

use crate::command_line::bisect::BisectOptions;
use crate::command_line::compare::{CompareOptions, DuelOptions, ExplainOptions};
use crate::command_line::db::DbOptions;
use crate::command_line::fleet::{AgentOptions, FleetCommandOptions, FleetOptions};
use crate::command_line::generator::GeneratorOptions;
use crate::command_line::help;
use crate::command_line::io::IoOptions;
use crate::command_line::lab::LabOptions;
use crate::command_line::new::{LuaOptions, NewOptions, SchemaOptions};
use crate::command_line::olap::OlapOptions;
use crate::command_line::records::{HistoryOptions, LibraryOptions, ServeOptions};
use crate::command_line::report::ReportOptions;
use crate::command_line::run::RunOptions;
use crate::command_line::server::ServerOptions;
use crate::command_line::shared::one_of;
use crate::command_line::sql::SqlOptions;
use crate::command_line::target::TargetOptions;
use crate::command_line::top::{NoteOptions, TopOptions};

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
    /// Run another command of a workload
    Exec(ExecOptions),
    /// List the built-in workloads, or the metrics of reports and recipes
    List(ListOptions),
    /// Print the report of a record
    Show(ShowOptions),
    /// Add tags such as disk=nvme to records
    Tag(TagOptions),
    /// Compare the records of two or more settings
    Compare(CompareOptions),
    /// Explain why two results differ
    Explain(ExplainOptions),
    /// Run two settings alternately and compare them
    Duel(DuelOptions),
    /// Find the version, commit or value from which a figure is worse
    Bisect(BisectOptions),
    /// Write an HTML page, tables, charts or time series from records
    Report(Box<ReportOptions>),
    /// Write a workload or a recipe to start from
    New(NewOptions),
    /// Describe the Lua API to an editor
    Lua(LuaOptions),
    /// Print the JSON Schema of recipes, records or results
    Schema(SchemaOptions),
    /// Find records: an index over all records below a folder
    Library(LibraryOptions),
    /// Show a figure over time, versions or commits, and when it changed
    History(HistoryOptions),
    /// Serve pages over all records below a folder, while it grows
    Serve(ServeOptions),
    /// Print shell completions; for bash: source <(assay completions bash)
    Completions(CompletionsOptions),
    /// Write the manual pages into a folder
    Manual(ManualOptions),
    /// Watch a run, a server or a record on the terminal
    Top(TopOptions),
    /// Note what happens now in the record of a run in progress
    Note(NoteOptions),
    /// Give databases names, and test whether they are ready for a run
    Db(DbOptions),
    /// Start and manage database servers to test
    Server(ServerOptions),
    /// Time statements against each other, and compare their rows and plans
    Sql(SqlOptions),
    /// Time the queries of an analytical workload on one or more databases
    Olap(OlapOptions),
    /// Measure file I/O with the access pattern of a database engine
    Io(IoOptions),
    /// Run experiments: vary settings, repeat the trials in random order, compare the results
    Lab(Box<LabOptions>),
    /// Generate load for runs that are started on other machines with --fleet
    Agent(AgentOptions),
    /// Inspect, check and set up the agents of a fleet
    Fleet(FleetCommandOptions),
    /// Run sysbench's command lines and scripts, with its reports
    Sysbench,
    /// Run pgbench's command lines and scripts, with its reports and log files
    Pgbench,
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
    /// Replace an existing record
    #[arg(long, conflicts_with = "no_record")]
    pub force: bool,
    /// Write no record
    #[arg(long)]
    pub no_record: bool,
    /// Label to find and group this record by, such as disk=nvme; may be repeated
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = tag)]
    pub tags: Vec<(String, String)>,
    /// Sample server statistics, and the machine of a local server, once per second; `full`: all of them
    #[arg(long, value_name = "off|on|full", hide_possible_values = true, default_value = "on",
          value_parser = one_of::<TelemetryLevel>(&["off", "on", "full"]))]
    pub telemetry: TelemetryLevel,
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
    #[arg(long, value_name = "N", value_parser = values::sessions, help_heading = "Load")]
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
    #[arg(long, value_name = "text|json|csv", hide_possible_values = true, default_value = "text",
          value_parser = one_of::<Format>(&["text", "json", "csv"]))]
    pub format: Format,
    /// Show each agent of a fleet separately
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

/// Options of `completions`.
#[derive(Args, Clone)]
pub struct CompletionsOptions {
    /// Shell to complete for
    #[arg(value_name = "bash|zsh|fish", hide_possible_values = true, value_enum)]
    pub shell: Shell,
    /// Print what completes this line, for the shell's script
    #[arg(long, value_name = "LINE", hide = true)]
    pub line: Option<String>,
    /// The end of the line that bash replaces
    #[arg(long, value_name = "TEXT", hide = true, requires = "line")]
    pub text: Option<String>,
}

/// A shell that completes commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// GNU's shell.
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
    help::with_examples(<CommandLine as clap::CommandFactory>::command())
}

/// The codes are those of the code.
fn after_help() -> String {
    let codes = Exit::ALL.map(|(exit, meaning)| format!("{} {meaning}", exit as i32)).join(", ");
    format!("A workload's own options: assay run WORKLOAD --help. Exit codes: {codes}.")
}

#[cfg(test)]
mod tests {
    use assay_io::{Backend, SESSIONS_FOR_URING};
    use regex::Regex;

    use assay_spec::{
        AUTO_MAX, CONNECTIONS, INTERVAL_MIN, IoSpec, LEASE_MIN, NETWORK_TIMEOUT_MAX, NETWORK_TIMEOUT_MIN,
        SESSIONS_OF_SEARCH, SqlSpec,
    };

    use super::*;
    use assay_run::plan::{THINK_SCALE, TIME_DEFAULT};

    /// The numbers in the help of an option, in order, apart from examples and the defaults that clap itself states.
    /// Those of options that are not in this list have none.
    fn stated() -> Vec<(&'static str, Vec<String>)> {
        let one = |value: &dyn ToString| vec![value.to_string().replace(' ', "")];
        let failed = Exit::Difference as i32;
        vec![
            ("sessions", [AUTO_MAX, 1, SESSIONS_OF_SEARCH].map(|number| number.to_string()).into()),
            ("connections", one(&CONNECTIONS)),
            ("think-scale", one(&THINK_SCALE)),
            ("time", one(&TIME_DEFAULT)),
            ("network-timeout", [one(&NETWORK_TIMEOUT_MIN), one(&"9h")].concat()),
            ("interval", one(&INTERVAL_MIN)),
            ("batch", [Backend::Uring, Backend::Epoll].map(|backend| backend.batch_default().to_string()).into()),
            ("io", one(&SESSIONS_FOR_URING)),
            ("check", one(&failed)),
            ("kill-check", one(&failed)),
            ("fail-if", one(&failed)),
            ("fail-if-worse", one(&failed)),
            ("limit", one(&crate::commands::library::SHOWN)),
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
    fn the_options_of_a_spec_are_those_of_its_command() {
        let has = |command: &str, name: &str| {
            let definition = definition();
            let mut arguments = definition.find_subcommand(command).unwrap().get_arguments();
            arguments.any(|argument| argument.get_long() == Some(name))
        };
        for (task, option) in
            ["run", "prepare"].iter().flat_map(|task| assay_spec::options().iter().map(|one| (*task, one)))
        {
            assert_eq!(option.is_of(task), has(task, option.name), "{task} --{}", option.name);
        }
        for (command, options) in [("sql", SqlSpec::options()), ("io", IoSpec::options())] {
            options.iter().for_each(|option| assert!(has(command, option.name), "{command} --{}", option.name));
        }
        let parsed = crate::command_line::parse(["assay", "io"].map(Into::into)).unwrap().unwrap();
        let Subcommand::Io(options) = parsed.subcommand else { panic!("it is `io`") };
        assert_eq!(options.spec(), IoSpec::default());
        assert_eq!(LEASE_MIN.as_secs_f64(), assay_fleet::LEASE_MIN.as_secs_f64());
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

/// Options of `list`.
#[derive(clap::Args, Clone)]
pub struct ListOptions {
    /// `workloads` or `metrics`
    #[arg(value_name = "WHAT", value_enum, default_value = "workloads", hide_possible_values = true)]
    pub what: Listed,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Listed {
    /// The built-in workloads.
    Workloads,
    /// Metrics, with their units and where they come from.
    Metrics,
}
