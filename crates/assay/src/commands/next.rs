//! Suggested next commands, ready to paste: to create missing tables, and after a run.

use std::path::Path;

use assay_process::url_text;
use assay_seam::Nanos;

use assay_spec::{LoadSpec, RunSpec, Sessions};

use crate::assignment::Assignment;
use crate::{plan, registry};

/// A command to try after this run, of which `path` is the record: the next thing a newcomer has not done yet.
pub(crate) fn command(assignment: &Assignment, path: &Path) -> String {
    let Assignment { spec, workload, .. } = assignment;
    let record = path.display().to_string();
    let again = |more: &[&str]| {
        let words = ["assay", "run", "--again", &record].into_iter().chain(more.iter().copied());
        url_text::shell_line(words)
    };
    if spec.target.urls.is_empty() && spec.server.is_none() {
        let prepare = (workload.has_command("prepare") && !spec.prepare).then_some("--prepare");
        return again(&prepare.into_iter().chain(["--db", registry::EXAMPLES[1]]).collect::<Vec<_>>());
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
pub(crate) fn sessions_to_prepare(assignment: &Assignment) -> Option<u32> {
    let most = Some(assignment.spec.load.sessions_max());
    most.filter(|sessions| *sessions > 1 && !plan::is_parallel(&assignment.workload, "prepare"))
}

/// The command that creates the tables for this run.
pub(crate) fn prepare_command(assignment: &Assignment) -> String {
    let databases = assignment.spec.target.urls.iter().flat_map(|url| ["--db".to_owned(), url.shown()]);
    let mut tables = tables(assignment);
    let name = tables.remove(0);
    let words = ["assay".to_owned(), "prepare".to_owned(), name].into_iter().chain(databases).chain(tables);
    url_text::shell_line(words)
}

/// The arguments of `assay prepare` that determine the tables for this run.
pub(crate) fn tables(assignment: &Assignment) -> Vec<String> {
    let sessions = sessions_to_prepare(assignment).map(Sessions::from);
    let load = LoadSpec { sessions, ..LoadSpec::default() };
    let mut words = RunSpec { workload: assignment.spec.workload.clone(), load, ..RunSpec::default() }.words();
    words.remove(0);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{self, Invocation};

    /// What is suggested after this command line. It must be a valid command line itself.
    #[track_caller]
    fn suggested(line: &str) -> String {
        let parse = |line: &str| {
            let words = url_text::shell_words(line).unwrap();
            let parsed = command_line::parse(words.into_iter().map(Into::into));
            parsed.unwrap_or_else(|trouble| panic!("{line}: {}", trouble.text(false))).expect("it asks for no help")
        };
        let Invocation { assignment, .. } = parse(line);
        let assignment = assignment.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my run.json");
        let mut record = assay_record::Record { format: assay_record::FORMAT, ..Default::default() };
        record.manifest.spec = Some(assignment.spec.to_value());
        record.create(&path, assay_record::Existing::Keep).unwrap();
        let next = command(&assignment, &path);
        parse(&next);
        next.replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn what_is_suggested_after_a_run_is_a_command_that_can_be_given() {
        let db = "--db sqlite:a.db";
        let show = "assay show 'my run.json'";
        let again = "assay run --again 'my run.json'";
        let of_run = |line: &str| suggested(&format!("assay run {line}"));
        assert_eq!(
            of_run("oltp_read_only --tables 4 --time=5s --record a.json"),
            format!("{again} --prepare --db postgres://USER@HOST/DATABASE")
        );
        assert_eq!(of_run("oltp_read_only --prepare"), format!("{again} --db postgres://USER@HOST/DATABASE"));
        assert_eq!(of_run(&format!("tpcc {db}")), format!("{again} --sessions 1,2,4,8,16"));
        assert_eq!(of_run(&format!("tpcc --sessions 16 {db}")), format!("{again} --sessions 16,32,64"));
        for told_otherwise in [
            "--sessions 64",
            "--sessions 1,2",
            "--rate 100",
            "--find-rate 'p99 < 1s'",
            "--sessions auto",
            "--terminals 10",
            "--terminals 10 --connections 4",
            "--time 0",
            "--time 5s --kill-check true",
        ] {
            assert_eq!(of_run(&format!("tpcc {db} {told_otherwise}")), show, "{told_otherwise}");
        }
        // Its tables are created for this many sessions.
        assert_eq!(of_run(&format!("bulk_insert {db}")), show);
    }
}
