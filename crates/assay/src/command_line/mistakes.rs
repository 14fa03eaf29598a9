//! What is wrong with a command line, in our own words: clap's errors, and the habits of other tools' users.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::diagnostics::{Exit, Trouble};
use crate::terminal;

/// Help and version go to stdout; anything else becomes a trouble in our own form.
pub(super) fn explain(error: &clap::Error) -> Result<(), Trouble> {
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
        ErrorKind::MissingRequiredArgument if text(ContextKind::InvalidArg).contains("--rate") => {
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
