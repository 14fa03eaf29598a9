//! `assay exec WORKLOAD COMMAND`: any command that a workload declares. `prepare`, `check` and `cleanup` are such
//! commands with a subcommand of their own.

use std::path::{Path, PathBuf};

use assay_engine::{End, Outcome, Plan};

use crate::command_line::{CommonCommandOptions, ExecOptions, MeasuredCommandOptions, Role, Workload};
use crate::diagnostics::{Exit, Trouble};
use crate::fleet::crew::{self, Work};
use crate::live::may_write;
use crate::measured::Measured;
use crate::watch::Watch;
use crate::{events, failure, plan, record_of, registry, signals, terminal};

/// Runs the given command.
pub fn run(options: &ExecOptions, workload: &Workload, words: &[String]) -> Result<Exit, Trouble> {
    let outcomes = on_databases(&options.command, &options.common, workload, words)?;
    if outcomes.iter().any(|outcome| !outcome.success) {
        let cause = format!("command {} of workload {} failed", options.command, workload.name);
        return Err(Trouble::new(Exit::Difference, cause));
    }
    Ok(Exit::Success)
}

/// Runs a command on each given database: each has tables of its own.
pub(crate) fn on_databases(
    command: &str,
    options: &CommonCommandOptions,
    workload: &Workload,
    words: &[String],
) -> Result<Vec<Outcome>, Trouble> {
    let urls = databases(command, workload, options)?;
    urls.iter().map(|url| on_database(command, options, workload, url, words)).collect()
}

/// The given databases; at least one.
fn databases<'a>(
    command: &str,
    workload: &Workload,
    options: &'a CommonCommandOptions,
) -> Result<&'a [String], Trouble> {
    plan::must_have(workload, command)?;
    let urls = &options.target.db;
    if urls.is_empty() {
        return Err(Trouble::usage(format!("{command} needs a database: --db URL"))
            .hint(format!("use {}", registry::EXAMPLES.map(|url| format!("--db {url}")).join(", "))));
    }
    Ok(urls)
}

/// Runs a command on each database and writes a record of each, whose path is printed after `told` has printed the
/// outcome.
pub(crate) fn measured_on_databases(
    command: &str,
    options: &MeasuredCommandOptions,
    workload: &Workload,
    words: &[String],
    mut told: impl FnMut(&Outcome) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let common = &options.common;
    let record_of = |number: usize| {
        let path = options.record.record.as_ref()?;
        Some(if number > 0 { numbered(path, number as u64 + 1) } else { path.clone() })
    };
    for number in 0..common.target.db.len() {
        may_write(record_of(number).as_deref(), options.record.force)?;
    }
    for (number, url) in databases(command, workload, common)?.iter().enumerate() {
        let mut of_fleet = common.clone();
        if let Some(agents) = options.fleet.url.as_ref().map(|_| options.fleet.agents) {
            of_fleet.generator.role = Role::Lead;
            of_fleet.generator.seed = Some(common.generator.seed.unwrap_or_else(plan::random_seed));
            of_fleet.sessions = Some(common.sessions.unwrap_or_else(|| plan::sessions_of_fleet(agents)));
        }
        let plan = plan::of_command(workload, command, &of_fleet, std::slice::from_ref(url), words)?;
        let record = record_of::begun_command(&plan, workload, command, options, words);
        let mut of_database = options.clone();
        of_database.record.record = record_of(number);
        let mut watch = Watch::of_command(&plan, common.quiet, Measured::begin(record, &of_database)?);
        let outcome = match &options.fleet.url {
            None => Ok(assay_engine::run(plan.clone(), signals::control(), &mut watch)),
            Some(_) => {
                let work = Work {
                    words: &events::words(),
                    urls: std::slice::from_ref(url),
                    sessions: of_fleet.sessions.filter(|_| common.sessions.is_none()),
                    is_parallel: plan::is_parallel(workload, command),
                    workload: &workload.name,
                    rate_file: None,
                    seed: plan.setup.seed,
                    workers: common.generator.workers,
                    plan: &plan,
                    quiet: common.quiet,
                };
                crew::command(&options.fleet, &work, &mut watch)
            }
        };
        let measured = watch.finish_command();
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(trouble) => {
                measured.into_iter().for_each(Measured::discard);
                return Err(trouble);
            }
        };
        // A check that finds errors is a result, too.
        let is_result = matches!(outcome.end, End::Complete) && (outcome.success || command == "check");
        let path = match measured {
            Some(measured) if is_result => Some(measured.finish(&plan, &outcome)?),
            measured => {
                measured.into_iter().for_each(Measured::discard);
                None
            }
        };
        told(&conclude(command, workload, &plan, outcome)?)?;
        let notes = plan.targets.iter().flat_map(|target| target.database.notes());
        for note in notes.filter(|_| !common.quiet) {
            terminal::say(&format!("note: {note}\n"));
        }
        if let (Some(path), false) = (path, common.quiet) {
            terminal::say(&format!("record: {}\n", path.display()));
        }
    }
    Ok(())
}

/// `PATH-2.json.zst` of `PATH.json.zst`.
pub(crate) fn numbered(path: &Path, number: u64) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // A name may begin with a dot.
    let end = name[1.min(name.len())..].find('.').map_or(name.len(), |at| at + 1);
    path.with_file_name(format!("{}-{number}{}", &name[..end], &name[end..]))
}

/// Runs a command on one database. Errors and interrupts are troubles.
pub(crate) fn on_database(
    command: &str,
    options: &CommonCommandOptions,
    workload: &Workload,
    url: &str,
    words: &[String],
) -> Result<Outcome, Trouble> {
    let (plan, outcome) = attempt(command, options, workload, url, words)?;
    conclude(command, workload, &plan, outcome)
}

/// The outcome of a completed command; errors and interrupts are troubles.
fn conclude(command: &str, workload: &Workload, plan: &Plan, outcome: Outcome) -> Result<Outcome, Trouble> {
    match outcome.end {
        End::Complete => Ok(outcome),
        End::Interrupted => {
            Err(Trouble::new(signals::exit(), format!("{command} of {} was interrupted", workload.name)))
        }
        End::Failed(error) => Err(failure::trouble(&error, plan, workload, None)),
    }
}

/// Runs a command on one database, however it ends.
pub(crate) fn attempt(
    command: &str,
    options: &CommonCommandOptions,
    workload: &Workload,
    url: &str,
    words: &[String],
) -> Result<(Plan, Outcome), Trouble> {
    let plan = plan::of_command(workload, command, options, &[url.to_owned()], words)?;
    let mut watch = Watch::of_command(&plan, options.quiet, None);
    let outcome = assay_engine::run(plan.clone(), signals::control(), &mut watch);
    watch.finish();
    Ok((plan, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_trials_are_numbered_before_their_ending() {
        for (path, second) in [("a/b.json.zst", "a/b-2.json.zst"), ("b", "b-2"), (".hidden.json", ".hidden-2.json")] {
            assert_eq!(numbered(Path::new(path), 2), Path::new(second));
        }
    }
}
