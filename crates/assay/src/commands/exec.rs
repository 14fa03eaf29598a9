//! `assay exec WORKLOAD COMMAND`: any command that a workload declares. `prepare`, `check` and `cleanup` are such
//! commands with a subcommand of their own.

use assay_engine::{End, Outcome, Plan};

use crate::command_line::{CommonCommandOptions, ExecOptions, Workload};
use crate::diagnostics::{Exit, Trouble};
use crate::watch::Watch;
use crate::{failure, plan, registry, signals};

/// Runs the command that the user names.
pub fn run(options: &ExecOptions, workload: &Workload, words: &[String]) -> Result<Exit, Trouble> {
    let outcomes = on_databases(&options.command, &options.common, workload, words)?;
    if outcomes.iter().any(|outcome| !outcome.success) {
        let cause = format!("command {} of workload {} failed", options.command, workload.name);
        return Err(Trouble::new(Exit::Difference, cause));
    }
    Ok(Exit::Success)
}

/// Runs a command on each database that the user names: each has tables of its own.
pub(crate) fn on_databases(
    command: &str,
    options: &CommonCommandOptions,
    workload: &Workload,
    words: &[String],
) -> Result<Vec<Outcome>, Trouble> {
    let urls = &options.target.db;
    if urls.is_empty() {
        return Err(Trouble::usage(format!("{command} needs a database: --db URL"))
            .hint(format!("such as {}", registry::EXAMPLES.map(|url| format!("--db {url}")).join(", "))));
    }
    urls.iter().map(|url| on_database(command, options, workload, url, words)).collect()
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
    match outcome.end {
        End::Complete => Ok(outcome),
        End::Interrupted => {
            Err(Trouble::new(signals::exit(), format!("{command} of {} was interrupted", workload.name)))
        }
        End::Failed(error) => Err(failure::trouble(&error, &plan, workload, None)),
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
    let mut watch = Watch::of_command(&plan, options.quiet);
    let outcome = assay_engine::run(plan.clone(), signals::control(), &mut watch);
    watch.finish();
    Ok((plan, outcome))
}
