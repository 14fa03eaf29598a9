//! Errors in a command line, in our own words: clap's errors, and options of other tools.

use assay_process::diagnostics::{self, Exit, Trouble};
use assay_process::terminal;
use assay_run::library;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Help and version go to stdout; anything else becomes a trouble in our own form. `workload`: the one on the command
/// line, if any. `words`: the command line.
pub(super) fn explain(
    error: &clap::Error,
    command: &clap::Command,
    workload: Option<&str>,
    words: &[String],
) -> Result<(), Trouble> {
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
    // Named as it was written.
    let is_nats = option == "--fleet" && words.iter().any(|word| word.split('=').next() == Some("--nats"));
    let option = if is_nats && !words.iter().any(|word| word == "--fleet") { "--nats".to_owned() } else { option };
    let value = text(ContextKind::InvalidValue);
    let mut trouble = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => return Ok(terminal::result(&error.to_string())?),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            terminal::say(&error.to_string());
            return Err(Trouble::usage("no command given").hint("try `assay run oltp_read_write`"));
        }
        ErrorKind::UnknownArgument if option.starts_with('-') => {
            let trouble = Trouble::usage(format!("there is no option {option}"));
            if let Some(hint) = habit(&option) {
                return Err(trouble.hint(hint));
            }
            // Rather a slip in an option of its own: `--table` for `--tables`.
            let own = text(ContextKind::SuggestedArg);
            let is_slip = !own.is_empty() && (own.starts_with(&option) || option.starts_with(&own));
            if let Some((workload, others)) =
                workload.filter(|_| !is_slip).and_then(|name| Some((name, having(&option, words)?)))
            {
                return Err(Trouble::usage(format!("workload {workload} has no option {option}"))
                    .detail(format!("it is an option of {others}"))
                    .hint(format!("`assay run {workload} --help` lists the options of {workload}")));
            }
            trouble
        }
        ErrorKind::UnknownArgument if workload.is_some() => Trouble::usage(format!("unexpected argument `{option}`"))
            .hint("a workload's name comes first; option values follow their option"),
        ErrorKind::UnknownArgument if words.get(1).is_some_and(|word| word == "duel") => {
            Trouble::usage(format!("unexpected argument `{option}`"))
                .hint("each side is one argument, in quotes; `--common` has what both share")
        }
        ErrorKind::UnknownArgument => Trouble::usage(format!("unexpected argument `{option}`"))
            .hint(format!("`{} --help` shows the usage", path(command, workload, words))),
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand);
            let trouble = Trouble::usage(format!("there is no command {name}"));
            if SYSBENCH_TESTS.contains(&name.as_str()) {
                return Err(trouble.hint(format!("it is a test of sysbench: `assay sysbench {name} run`")));
            }
            // clap does not see that letters were exchanged: `rnu`.
            let names = command.get_subcommands().map(clap::Command::get_name);
            match diagnostics::nearest(&name, names) {
                Some(near) if text(ContextKind::SuggestedSubcommand).is_empty() && words.get(1) == Some(&name) => {
                    trouble.hint(format!("did you mean {near}?"))
                }
                _ => trouble,
            }
        }
        ErrorKind::ValueValidation => {
            let reason = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            let trouble = Trouble::usage(format!("{option} {value}: {reason}"));
            // Of a list of words, the one that was probably meant.
            let words = reason.strip_prefix("expected ").filter(|_| !reason.contains("such as")).unwrap_or_default();
            let words = words.split([',', ' ']).filter(|word| word.len() > 2);
            match diagnostics::nearest(&value, words) {
                Some(near) if value.len() > 2 => trouble.hint(format!("did you mean {near}?")),
                _ => trouble,
            }
        }
        ErrorKind::InvalidValue if value.is_empty() => Trouble::usage(format!("{option} needs a value")),
        // An argument without an option's name; clap would suggest zsh for tcsh.
        ErrorKind::InvalidValue if option.is_empty() || option.starts_with('<') => {
            let valid = text(ContextKind::ValidValue);
            let trouble = Trouble::usage(format!("`{value}`: expected one of {valid}"));
            return Err(match diagnostics::nearest(&value, valid.split(", ")) {
                Some(near) => trouble.hint(format!("did you mean {near}?")),
                None => trouble,
            });
        }
        ErrorKind::InvalidValue => {
            Trouble::usage(format!("{option} {value}: expected one of {}", text(ContextKind::ValidValue)))
        }
        ErrorKind::ArgumentConflict => {
            let prior = text(ContextKind::PriorArg);
            // `[RECIPE]` and `[-- <WORKLOAD>...]` have no name of an option.
            let name = |argument: &str| match argument.split(' ').next().unwrap_or_default() {
                option if option.starts_with("--") && option.len() > 2 => option.to_owned(),
                _ => argument.trim_matches(['[', ']', '<', '>', '.', '-', ' ']).to_owned(),
            };
            let (option, prior) = (name(&text(ContextKind::InvalidArg)), name(&prior));
            if prior == option {
                Trouble::usage(format!("{option} was given twice"))
            } else {
                Trouble::usage(format!("{option} and {prior} cannot be used together"))
            }
        }
        ErrorKind::MissingRequiredArgument if option == "<WORKLOAD>" => Trouble::usage("no workload given")
            .hint("`assay list` shows the built-in workloads; try `assay run oltp_read_write`"),
        ErrorKind::MissingRequiredArgument if option.starts_with("<RECORD>") => Trouble::usage("no record given")
            .hint("runs write their records to assay-records/, or to the path given with `--record`"),
        ErrorKind::MissingRequiredArgument if option.starts_with("<SQL") => Trouble::usage("no statement given")
            .hint("write statements or files with statements: `assay sql --db URL 'select 1' other.sql`"),
        ErrorKind::MissingRequiredArgument => Trouble::usage(format!("{} is missing", text(ContextKind::InvalidArg)))
            .hint(format!("`{} --help` has examples", path(command, workload, words))),
        _ => Trouble::usage(error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ")),
    };
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
        let suggestion = text(kind);
        if !suggestion.is_empty() {
            trouble = trouble.hint(format!("did you mean {suggestion}?"));
        }
    }
    let known = match error.kind() {
        ErrorKind::UnknownArgument => Some("options"),
        ErrorKind::InvalidSubcommand => Some("commands"),
        _ => None,
    };
    if let Some(known) = known.filter(|_| !trouble.has_hints()) {
        trouble = trouble.hint(format!("`{} --help` lists the {known}", path(command, workload, words)));
    }
    debug_assert_eq!(trouble.exit, Exit::Usage);
    Err(trouble)
}

/// The command whose help has the options: `assay run tpcc`.
fn path(command: &clap::Command, workload: Option<&str>, words: &[String]) -> String {
    let mut path = vec!["assay"];
    let mut command = command;
    for word in words.iter().skip(1) {
        let Some(subcommand) = command.find_subcommand(word) else { break };
        path.push(word);
        command = subcommand;
    }
    path.extend(workload);
    path.join(" ")
}

/// People look for these among the commands.
const SYSBENCH_TESTS: [&str; 5] = ["cpu", "memory", "threads", "mutex", "fileio"];

/// The built-in workloads that have this option.
fn having(option: &str, words: &[String]) -> Option<String> {
    /// A longer list does not help.
    const NAMED_MAX: usize = 3;
    let name = option.trim_start_matches('-');
    let has = |of: &&str| {
        let program = library::load(of, "list", words, assay_products::EMBEDDED.dialect);
        program.is_ok_and(|program| program.options().iter().any(|option| option.name.replace('_', "-") == name))
    };
    let runnable = assay_workloads::builtin().iter().filter(|builtin| builtin.runnable).map(|builtin| builtin.name);
    let found: Vec<&str> = runnable.filter(|name| has(name)).collect();
    let more = if found.len() > NAMED_MAX { " and others" } else { "" };
    (!found.is_empty()).then(|| found[..found.len().min(NAMED_MAX)].join(", ") + more)
}

/// Options of other tools, and their names here; a text instead of a name explains what replaces it.
const HABITS: [(&[&str], &str); 21] = [
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
    (&["memory"], "--server-memory"),
    (&["server-set", "setting"], "--set"),
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
    (&["histogram"], "every record contains its histograms: `assay report RECORD --html FILE` draws them"),
    (&["percentile", "percentiles"], "the report always shows p50, p95, p99 and p99.9"),
    (&["verbosity", "debug"], "--verbose"),
];

/// Advice for users of another tool.
fn habit(option: &str) -> Option<String> {
    let option = option.trim_start_matches('-');
    let (_, answer) = HABITS.iter().find(|(names, _)| names.contains(&option))?;
    Some(if answer.starts_with("--") { format!("it is called `{answer}` here") } else { (*answer).to_owned() })
}
