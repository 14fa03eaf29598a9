//! Suggested next commands, ready to paste: to create missing tables, and after a run.

use std::path::Path;

use assay_process::url_text;
use assay_seam::Nanos;

use assay_spec::{LoadSpec, RunSpec, Sessions};

use crate::assignment::Assignment;
use crate::plan;

/// A command to try after this run, of which `path` is the record: the next thing a newcomer has not done yet.
pub fn command(assignment: &Assignment, path: &Path) -> String {
    let Assignment { spec, workload, .. } = assignment;
    let record = path.display().to_string();
    let again = |more: &[&str]| {
        let words = ["assay", "run", "--again", &record].into_iter().chain(more.iter().copied());
        url_text::shell_line(words)
    };
    if spec.target.urls.is_empty() && spec.server.is_none() {
        let prepare = (workload.has_command("prepare") && !spec.prepare).then_some("--prepare");
        return again(&prepare.into_iter().chain(["--db", assay_products::server_example()]).collect::<Vec<_>>());
    }
    match further_steps(assignment) {
        Some(steps) => again(&["--sessions", &steps]),
        None => format!("assay show {}", url_text::shell_line([&record])),
    }
}

/// Steps of a ladder that starts at this run's sessions; `None` if that is impossible or pointless.
fn further_steps(assignment: &Assignment) -> Option<String> {
    let Assignment { spec: RunSpec { load, kill_check, .. }, workload, .. } = assignment;
    let [sessions] = load.steps()[..] else { return None };
    let closed = load.is_closed() && !load.searches();
    // The first step must end, and leave the server unchanged.
    let ends = load.time != Some(Nanos::ZERO) && kill_check.is_none();
    // A prepare that runs once may have created tables for this number of sessions only.
    let tables = !workload.has_command("prepare") || plan::is_parallel(workload, "prepare");
    let steps: Vec<String> = (0..5)
        .map(|doubled| sessions << doubled)
        .take_while(|step| *step <= STEPS_TO)
        .map(|step| step.to_string())
        .collect();
    (closed && ends && tables && steps.len() > 1).then(|| steps.join(","))
}

/// More sessions than this are not suggested: servers refuse a hundred.
const STEPS_TO: u32 = 64;

/// The number of sessions that the tables need, if that is not just a matter of speed: a script whose `prepare` runs
/// once may create something for each session of the run.
pub fn sessions_to_prepare(assignment: &Assignment) -> Option<u32> {
    let most = Some(assignment.spec.load.sessions_max());
    most.filter(|sessions| *sessions > 1 && !plan::is_parallel(&assignment.workload, "prepare"))
}

/// The command that creates the tables for this run.
pub fn prepare_command(assignment: &Assignment) -> String {
    command_on_tables("prepare", assignment)
}

/// The command that removes them.
pub fn cleanup_command(assignment: &Assignment) -> String {
    command_on_tables("cleanup", assignment)
}

fn command_on_tables(command: &str, assignment: &Assignment) -> String {
    let databases = assignment.spec.target.urls.iter().flat_map(|url| ["--db".to_owned(), url.shown()]);
    let mut tables = tables(assignment);
    let name = tables.remove(0);
    let words = ["assay".to_owned(), command.to_owned(), name].into_iter().chain(databases).chain(tables);
    url_text::shell_line(words)
}

/// The arguments of `assay prepare` that determine the tables for this run.
pub fn tables(assignment: &Assignment) -> Vec<String> {
    let sessions = sessions_to_prepare(assignment).map(Sessions::from);
    let load = LoadSpec { sessions, ..LoadSpec::default() };
    let mut words = RunSpec { workload: assignment.spec.workload.clone(), load, ..RunSpec::default() }.words();
    words.remove(0);
    words
}
