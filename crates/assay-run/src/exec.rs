//! `assay exec WORKLOAD COMMAND`: any command that a workload declares. `prepare`, `check` and `cleanup` are such
//! commands with a subcommand of their own.

use std::path::{Path, PathBuf};

use assay_engine::{End, Outcome, Plan};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::{interrupt, terminal};
use assay_spec::{FleetSpec, OutputSpec};

use crate::assignment::Assignment;
use crate::fleet::crew::{self, Work};
use crate::live::may_write;
use crate::measured::Measured;
use crate::plan::ProcessOptions;
use crate::plan::Role;
use crate::watch::Watch;
use crate::{engine, failure, next, plan, record_of};

/// Runs the given command.
pub fn run(assignment: &Assignment, quiet: bool) -> Result<Exit, Trouble> {
    let outcomes = on_databases(assignment, quiet)?;
    if outcomes.iter().any(|outcome| !outcome.success) {
        let cause = format!("command {} of workload {} failed", assignment.spec.task, assignment.workload.name);
        return Err(Trouble::new(Exit::Difference, cause));
    }
    Ok(Exit::Success)
}

/// Runs a command on each given database: each has tables of its own.
pub fn on_databases(assignment: &Assignment, quiet: bool) -> Result<Vec<Outcome>, Trouble> {
    databases(assignment)?.iter().map(|url| on_database(assignment, quiet, url)).collect()
}

/// The given databases; at least one.
fn databases(assignment: &Assignment) -> Result<Vec<String>, Trouble> {
    let (task, urls) = (&assignment.spec.task, assignment.urls());
    plan::must_have(&assignment.workload, task)?;
    if urls.is_empty() {
        return Err(Trouble::usage(format!("{task} needs a database: --db URL")).hint(format!(
            "use {}",
            assay_products::examples().iter().map(|url| format!("--db {url}")).collect::<Vec<_>>().join(", ")
        )));
    }
    Ok(urls)
}

/// Runs a command on each database and writes a record of each, whose path is printed after `told` has printed the
/// outcome.
pub fn measured_on_databases(
    assignment: &Assignment,
    output: &OutputSpec,
    fleet: Option<&FleetSpec>,
    mut told: impl FnMut(&Outcome) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let Assignment { spec, workload, .. } = assignment;
    let quiet = output.quiet;
    let output_of = |number: usize| {
        let path = output.record.as_ref();
        let record = path.map(|path| if number > 0 { numbered(path, number as u64 + 1) } else { path.clone() });
        OutputSpec { record, ..output.clone() }
    };
    for number in 0..spec.target.urls.len() {
        may_write(output_of(number).record.as_deref(), output.force)?;
    }
    for (number, url) in databases(assignment)?.iter().enumerate() {
        let (mut shared, mut process) = (assignment.clone(), ProcessOptions { quiet, ..ProcessOptions::default() });
        if let Some(fleet) = fleet {
            process.role = Role::Lead;
            shared.spec.generator.seed = Some(spec.generator.seed.unwrap_or_else(plan::random_seed));
            let sessions = || plan::sessions_of_fleet(fleet.agents).into();
            shared.spec.load.sessions = Some(spec.load.sessions.clone().unwrap_or_else(sessions));
        }
        let plan = plan::of_command(&shared, &process, std::slice::from_ref(url))?;
        let record = record_of::begun_command(&plan, assignment);
        let measured = Measured::begin(record, &output_of(number), &spec.telemetry)?;
        let mut watch = Watch::of_command(&plan, quiet, measured);
        let outcome = match fleet {
            None => Ok(engine::run(&plan, interrupt::control(), &mut watch)),
            Some(fleet) => {
                let work = Work {
                    spec: &shared.spec,
                    urls: std::slice::from_ref(url),
                    is_parallel: plan::is_parallel(workload, &spec.task),
                    plan: &plan,
                    quiet,
                };
                crew::command(fleet, &work, &mut watch)
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
        let is_result = matches!(outcome.end, End::Complete) && (outcome.success || spec.task == "check");
        let path = match measured {
            Some(measured) if is_result => Some(measured.finish(&plan, &outcome)?),
            measured => {
                measured.into_iter().for_each(Measured::discard);
                None
            }
        };
        told(&conclude(assignment, &plan, outcome)?)?;
        let notes = plan.targets.iter().flat_map(|target| target.database.notes());
        for note in notes.filter(|_| !quiet) {
            terminal::say(&format!("note: {note}\n"));
        }
        if let (Some(path), false) = (path, quiet) {
            terminal::say(&format!("record: {}\n", path.display()));
        }
    }
    Ok(())
}

/// `PATH-2.json.zst` of `PATH.json.zst`.
pub fn numbered(path: &Path, number: u64) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // A name may begin with a dot.
    let end = name[1.min(name.len())..].find('.').map_or(name.len(), |at| at + 1);
    path.with_file_name(format!("{}-{number}{}", &name[..end], &name[end..]))
}

/// Runs a command on one database. Errors and interrupts are troubles.
pub fn on_database(assignment: &Assignment, quiet: bool, url: &str) -> Result<Outcome, Trouble> {
    let (plan, outcome) = attempt(assignment, quiet, url)?;
    conclude(assignment, &plan, outcome)
}

/// The outcome of a completed command; errors and interrupts are troubles.
fn conclude(assignment: &Assignment, plan: &Plan, outcome: Outcome) -> Result<Outcome, Trouble> {
    let Assignment { spec, workload, .. } = assignment;
    match outcome.end {
        End::Complete => Ok(outcome),
        End::Interrupted => {
            Err(Trouble::new(interrupt::exit(), format!("{} of {} was interrupted", spec.task, workload.name)))
        }
        End::Failed(error) => {
            let needs_tables = !["prepare", "cleanup"].contains(&spec.task.as_str()) && workload.has_command("prepare");
            let prepare = needs_tables.then(|| next::prepare_command(assignment));
            let trouble = failure::trouble(&error, plan, workload, prepare.as_deref());
            let has_tables = spec.task == "prepare" && failure::is_existing_table(&error);
            Err(match has_tables && workload.has_command("cleanup") {
                true => {
                    trouble.hint(format!("prepared before? remove it first: {}", next::cleanup_command(assignment)))
                }
                false => trouble,
            })
        }
    }
}

/// Runs a command on one database, however it ends.
pub fn attempt(assignment: &Assignment, quiet: bool, url: &str) -> Result<(Plan, Outcome), Trouble> {
    let process = ProcessOptions { quiet, ..ProcessOptions::default() };
    let plan = plan::of_command(assignment, &process, &[url.to_owned()])?;
    let mut watch = Watch::of_command(&plan, quiet, None);
    let outcome = engine::run(&plan, interrupt::control(), &mut watch);
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
