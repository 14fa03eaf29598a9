//! `assay db`: databases by name, and whether one is ready for a run.

use std::time::{Duration, Instant};

use assay_engine::Target;
use assay_io::clock::Clock;
use assay_io::process::FilesLimit;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_products::{checkup, server_questions};
use assay_run::client::{Client, identity, text};
use assay_run::{failure, plan};
use assay_seam::{Class, ConnectOptions, Nanos, StatementError};

use crate::command_line::{DbAction, DbAddOptions, DbOptions};
use crate::databases::{Databases, Named, resolve};

/// Limit of each wait for the server.
const PATIENCE: Nanos = Nanos::from_secs(10);

/// Round trips that are timed.
const ROUND_TRIPS: usize = 50;

/// Does what is asked for.
pub fn run(options: &DbOptions) -> Result<Exit, Trouble> {
    match &options.action {
        DbAction::Add(options) => add(options),
        DbAction::List => list(),
        DbAction::Remove { name } => remove(name),
        DbAction::Test { database } => test(database),
    }
}

fn add(options: &DbAddOptions) -> Result<Exit, Trouble> {
    let DbAddOptions { name, url, password_command, password_file, force } = options;
    // Relative paths would depend on where a command is started.
    let password_file = match password_file {
        Some(file) => Some(
            std::path::absolute(file)
                .map_err(|error| Trouble::environment(format!("cannot find {}: {error}", file.display())))?,
        ),
        None => None,
    };
    let named = Named { url: url.clone(), password_command: password_command.clone(), password_file };
    named.check(name)?;
    named.has_password_file().map_err(|why| Trouble::environment(format!("--password-file: {why}")))?;
    let mut databases = Databases::read()?;
    if databases.all.contains_key(name) && !force {
        return Err(Trouble::usage(format!("there is a database named {name} already"))
            .hint("--force replaces it, `assay db list` shows it"));
    }
    databases.all.insert(name.clone(), named);
    databases.write()?;
    terminal::say(&format!("{name} added to {}; try: assay db test {name}\n", databases.path().display()));
    Ok(Exit::Success)
}

fn list() -> Result<Exit, Trouble> {
    let databases = Databases::read()?;
    if databases.all.is_empty() {
        terminal::say("no names; such as: assay db add prod postgres://app@host/bench\n");
    }
    let width = databases.all.keys().map(String::len).max().unwrap_or(0);
    let line = |(name, named): (&String, &Named)| {
        let password = match (&named.password_command, &named.password_file) {
            (Some(command), _) => format!("  password from `{command}`"),
            (None, Some(file)) => format!("  password from {}", file.display()),
            (None, None) => String::new(),
        };
        format!("{name:width$}  {}{password}\n", named.url)
    };
    terminal::result(&databases.all.iter().map(line).collect::<String>())?;
    Ok(Exit::Success)
}

fn remove(name: &str) -> Result<Exit, Trouble> {
    let mut databases = Databases::read()?;
    databases.find(name)?;
    databases.all.remove(name);
    databases.write()?;
    terminal::say(&format!("{name} removed\n"));
    Ok(Exit::Success)
}

/// Connects as a run would, and reports what a run would meet.
fn test(database: &str) -> Result<Exit, Trouble> {
    let url = resolve(database)?;
    let target = plan::target(&url, &ConnectOptions::default())?;
    let unusable = |error: Box<StatementError>| {
        let mut trouble = failure::cannot_connect(&target, &error);
        // Here the URL is not the value of an option.
        for hint in &mut trouble.hints {
            *hint = hint.replace("`--db`", "the URL");
        }
        match error.class == Class::Authentication && url != database {
            true => trouble.hint("`assay db list` shows where passwords come from"),
            false => trouble,
        }
    };
    let refused =
        |message: String| Trouble::new(Exit::Server, format!("cannot use {}: {message}", target.database.display()));
    let begun = Instant::now();
    let mut client = Client::open(&target, Clock::start(), PATIENCE).map_err(unusable)?;
    let connected = begun.elapsed();
    let server = identity(&mut client, PATIENCE);
    let mut report = Report::default();
    report.line("database", &target.database.display());
    report.line("server", &format!("{} {}", server.product, server.version_shown()));
    report.line("connecting", &milliseconds(connected));
    report.line("round trip", &round_trip(&mut client).map_err(refused)?);
    let encryption = client.server().tls.unwrap_or_else(|| "none".to_owned());
    if !target.addresses.is_empty() {
        report.line("encryption", &encryption);
    }
    rights(&mut client, &mut report);
    limits(&mut client, &target, &mut report);
    terminal::result(&report.text)?;
    Ok(Exit::Success)
}

/// Lines with a heading in the first column.
#[derive(Default)]
struct Report {
    text: String,
    heading: String,
}

impl Report {
    /// A line; its heading is printed if it differs from the line's before.
    fn line(&mut self, heading: &str, words: &str) {
        let shown = if self.heading == heading { "" } else { heading };
        self.text += &format!("{shown:12}{words}\n");
        heading.clone_into(&mut self.heading);
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}

/// Median and maximum of the shortest query.
fn round_trip(client: &mut Client) -> Result<String, String> {
    let ping = checkup(&client.server().product).ping;
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let begun = Instant::now();
        let rows = client.ask(ping, PATIENCE)?;
        times.push(begun.elapsed());
        client.reuse(rows);
    }
    times.sort();
    let (median, slowest) = (times[ROUND_TRIPS / 2], times[ROUND_TRIPS - 1]);
    Ok(format!("median {}, slowest of {ROUND_TRIPS} {}", milliseconds(median), milliseconds(slowest)))
}

/// Whether telemetry gets all its answers, and how to grant what is missing.
fn rights(client: &mut Client, report: &mut Report) {
    let facts = client.server();
    let (all, checkup) = (server_questions(&facts.product, &facts.version), checkup(&facts.product));
    let depending = all.without_extensions.into_iter().map(|(_, question)| question);
    // Whether the others need a right depends on whether this server has what they ask for.
    let asked: Vec<_> = all.questions.into_iter().chain(depending).filter(|question| !question.of_some).collect();
    if asked.is_empty() {
        return report.line("telemetry", "this product has none");
    }
    let mut refusals: Vec<String> =
        asked.iter().filter_map(|question| client.ask(&question.sql, PATIENCE).err()).collect();
    let answered = asked.len() - refusals.len();
    report.line("telemetry", &format!("{answered} of {} questions answered", asked.len()));
    refusals.dedup();
    refusals.iter().for_each(|refusal| report.line("telemetry", &format!("refused: {refusal}")));
    let user = client.value(checkup.user_sql).unwrap_or_else(|_| "USER".to_owned());
    for right in checkup.rights {
        let is_missing = match right.sql {
            "" => refusals.iter().any(|refusal| refusal.contains(right.name)),
            sql => client.value(sql).is_ok_and(|answer| answer != "1"),
        };
        if is_missing {
            report.line("telemetry", &format!("lacks {}, which shows {}", right.name, right.shows));
            report.line("telemetry", &format!("grant it: {}", right.grant.replace("{}", &user)));
        }
    }
}

/// The limits of the server and of this process.
fn limits(client: &mut Client, target: &Target, report: &mut Report) {
    for (name, sql) in checkup(&client.server().product).limits {
        let Ok(rows) = client.ask(sql, PATIENCE) else { continue };
        let last = rows.columns(0).saturating_sub(1);
        if let Some(value) = text(&rows, 0, last) {
            report.line("limits", &format!("{name}: {value}"));
        }
        client.reuse(rows);
    }
    if let (false, Ok(files)) = (target.addresses.is_empty(), FilesLimit::get()) {
        report.line("limits", &format!("files and sockets that assay may open here: {}", files.hard));
    }
}
