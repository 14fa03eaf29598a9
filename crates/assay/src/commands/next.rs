//! Suggested next commands, ready to paste: to create missing tables, and after a run.

use std::path::Path;

use assay_seam::Nanos;

use crate::command_line::{RunOptions, Workload};
use crate::{plan, registry, url_text};

/// A command to try after this run: the next thing a newcomer has not done yet. `words`: the command line of this run.
pub(crate) fn command(options: &RunOptions, workload: &Workload, words: &[String], path: &Path) -> String {
    if options.target.db.is_empty() && options.server.server.is_none() {
        let prepare = (workload.has_command("prepare") && !options.load.prepare).then_some("--prepare");
        let words = again(words, &["record"]).into_iter().chain(prepare.map(str::to_owned));
        return url_text::shell_line(words.chain(["--db".to_owned(), registry::EXAMPLES[1].to_owned()]));
    }
    match further_steps(options, workload) {
        Some(steps) => {
            let words = again(words, &["record", "sessions"]);
            url_text::shell_line(words.into_iter().chain(["--sessions".to_owned(), steps]))
        }
        None => format!("assay show {}", url_text::shell_line([path.display().to_string()])),
    }
}

/// Steps of a ladder that starts at this run's sessions; `None` if that is impossible or pointless.
fn further_steps(options: &RunOptions, workload: &Workload) -> Option<String> {
    let load = &options.load;
    let [sessions] = load.steps()[..] else { return None };
    let closed = load.is_closed() && !load.searches();
    // The first step must end, and leave the server unchanged.
    let ends = load.time != Some(Nanos::ZERO) && load.kill_check.is_none();
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

/// The arguments of this run, without these options and their values.
fn again(words: &[String], without: &[&str]) -> Vec<String> {
    let mut kept = vec!["assay".to_owned()];
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let option = word.strip_prefix("--").map(|option| option.split_once('=').map_or(option, |(name, _)| name));
        if option == Some("force") {
            continue;
        }
        if !option.is_some_and(|option| without.contains(&option)) {
            kept.push(word.clone());
        } else if !word.contains('=') {
            words.next();
        }
    }
    kept
}

/// The number of sessions that the tables need, if that is not just a matter of speed: a script whose `prepare` runs
/// once may create something for each session of the run.
pub(crate) fn sessions_to_prepare(options: &RunOptions, workload: &Workload) -> Option<u32> {
    let most = options.load.steps().into_iter().max();
    most.filter(|sessions| *sessions > 1 && !plan::is_parallel(workload, "prepare"))
}

/// The command that creates the tables for this run.
pub(crate) fn prepare_command(options: &RunOptions, workload: &Workload) -> String {
    let mut words = vec!["assay".to_owned(), "prepare".to_owned(), workload.name.clone()];
    for url in &options.target.db {
        words.extend(["--db".to_owned(), url_text::masked(url)]);
    }
    if let Some(sessions) = sessions_to_prepare(options, workload) {
        words.extend(["--sessions".to_owned(), sessions.to_string()]);
    }
    words.extend(workload.given_words());
    url_text::shell_line(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{self, Invocation, Subcommand};

    /// What is suggested after this command line. It must be a valid command line itself.
    #[track_caller]
    fn suggested(line: &str) -> String {
        let parse = |line: &str| {
            let words = url_text::shell_words(line).unwrap();
            let parsed = command_line::parse(words.into_iter().map(Into::into));
            parsed.unwrap_or_else(|trouble| panic!("{line}: {}", trouble.text(false))).expect("it asks for no help")
        };
        let Invocation { subcommand, workload, words } = parse(line);
        let Subcommand::Run(options) = subcommand else { panic!("{line}") };
        let next = command(&options, &workload.unwrap(), &words, Path::new("assay-records/my run.json.zst"));
        parse(&next);
        next
    }

    #[test]
    fn what_is_suggested_after_a_run_is_a_command_that_can_be_given() {
        let db = "--db sqlite:a.db";
        let show = "assay show 'assay-records/my run.json.zst'";
        let of_run = |line: &str| suggested(&format!("assay run {line}"));
        assert_eq!(
            of_run("oltp_read_only --tables 4 --time=5s --record a.json"),
            "assay run oltp_read_only --tables 4 --time=5s --prepare --db postgres://USER@HOST/DATABASE"
        );
        assert_eq!(
            of_run("oltp_read_only --prepare"),
            "assay run oltp_read_only --prepare --db postgres://USER@HOST/DATABASE"
        );
        assert_eq!(of_run(&format!("tpcc {db}")), format!("assay run tpcc {db} --sessions 1,2,4,8,16"));
        assert_eq!(
            of_run(&format!("tpcc --sessions 16 {db} --warehouses 2 --record=b.json")),
            format!("assay run tpcc {db} --warehouses 2 --sessions 16,32,64")
        );
        let password = of_run("tpcc --db mysql://app:secret@host/b --sessions=8");
        assert_eq!(password, "assay run tpcc --db 'mysql://app:***@host/b' --sessions 8,16,32,64");
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
