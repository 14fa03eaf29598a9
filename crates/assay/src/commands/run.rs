//! `assay run WORKLOAD`: loads the databases, shows what happens, reports what was measured, leaves a record.

use std::path::{Path, PathBuf};

use assay_engine::{End, Outcome, Plan, StageOutcome};
use assay_record::Record;
use assay_report::{Findings, RuleVerdict};
use assay_seam::Nanos;

use crate::command_line::{CommonCommandOptions, RunOptions, Workload};
use crate::commands::kill_check::{self, Crash};
use crate::commands::{check, compare, exec, prepare};
use crate::diagnostics::{Exit, Trouble};
use crate::live::{Left, Live};
use crate::scratch::Scratch;
use crate::watch::Watch;
use crate::{failure, plan, record_of, registry, render, signals, terminal, url_text};

/// Runs the workload. Without `--db`: on an embedded database in a temporary folder, prepared first.
pub fn run(options: &RunOptions, workload: &Workload, words: &[String]) -> Result<Exit, Trouble> {
    let given = &options.target.db;
    if !given.is_empty() {
        return on_databases(given, options, workload, words);
    }
    let scratch = Scratch::new()?;
    let url = scratch.url();
    if !options.output.quiet {
        terminal::say(&format!(
            "no --db: an embedded SQLite database in {}, removed at the end\n",
            scratch.folder().display()
        ));
    }
    if workload.has_command("prepare") {
        prepare_tables(std::slice::from_ref(&url), options, workload, words)?;
    }
    on_databases(&[url], options, workload, words)
}

fn on_databases(urls: &[String], options: &RunOptions, workload: &Workload, words: &[String]) -> Result<Exit, Trouble> {
    if options.load.check {
        for url in urls {
            check_before(url, options, workload, words)?;
        }
    }
    let mut journal = Ok(());
    let ended = match options.load.trials {
        1 => single(urls, options, workload, words, &mut journal),
        _ if options.load.kill_check.is_some() => {
            Err(Trouble::usage("--kill-check and --trials exclude each other")
                .hint("after a crash nothing is the same"))
        }
        _ => trials(urls, options, workload, words, &mut journal),
    };
    // An audit that failed is a result, which does not spare the tables their check.
    if options.load.check && is_result(&ended) {
        for url in urls {
            let common = command_options(options, None);
            if !exec::on_database("check", &common, workload, url, words)?.success {
                return Err(check::difference(workload, " after the run"));
            }
        }
    }
    // Told last: nothing else is lost with a journal.
    ended.and_then(|exit| journal.map(|()| exit))
}

/// Checks the tables of one database, made first where that is asked for and they are missing.
fn check_before(url: &str, options: &RunOptions, workload: &Workload, words: &[String]) -> Result<(), Trouble> {
    let common = command_options(options, None);
    if options.load.prepare && workload.has_command("prepare") {
        let (_, outcome) = exec::attempt("check", &common, workload, url, words)?;
        if matches!(&outcome.end, End::Failed(error) if failure::is_missing_table(error)) {
            prepare_tables(&[url.to_owned()], options, workload, words)?;
        }
    }
    if exec::on_database("check", &common, workload, url, words)?.success {
        return Ok(());
    }
    Err(check::difference(workload, " before the run, which was not begun"))
}

/// One trial: its report to stdout, the place of its record to stderr. `journal` becomes what is wrong with that.
fn single(
    urls: &[String],
    options: &RunOptions,
    workload: &Workload,
    words: &[String],
    journal: &mut Result<(), Trouble>,
) -> Result<Exit, Trouble> {
    let finished = once(urls, options, workload, words)?;
    *journal = finished.journal;
    terminal::result(&render::result(&finished.record, options.output.format))?;
    if let (Some(path), false) = (finished.path?, options.output.quiet) {
        let next = next(options, workload, words, &path);
        terminal::say(&format!("record: {}\nnext:   {next}\n", path.display()));
    }
    if options.load.kill_check.is_some() && is_result(&finished.ended) {
        finished.crashed?;
        let common = command_options(options, None);
        kill_check::verify(finished.acknowledged, &common, workload, &urls[0], words)?;
    }
    finished.ended
}

/// Whether a run came to its end, whatever was found then.
fn is_result(ended: &Result<Exit, Trouble>) -> bool {
    ended.as_ref().err().is_none_or(|trouble| trouble.exit == Exit::Difference)
}

/// The same run several times, and what the trials say together. What was measured before an interrupt or a failure
/// is summed up too.
fn trials(
    urls: &[String],
    options: &RunOptions,
    workload: &Workload,
    words: &[String],
    journal: &mut Result<(), Trouble>,
) -> Result<Exit, Trouble> {
    let first_seed = options.generator.seed.unwrap_or_else(plan::random_seed);
    let mut found: Vec<(String, Findings)> = Vec::new();
    let mut ended = Ok(Exit::Success);
    for number in 1..=options.load.trials {
        let mut of_trial = options.clone();
        of_trial.generator.seed = Some(first_seed.wrapping_add(number - 1));
        of_trial.output.record = options.output.record.as_ref().map(|path| numbered(path, number));
        of_trial.output.journal = options.output.journal.as_ref().map(|path| numbered(path, number));
        if !options.output.quiet {
            terminal::say(&format!("trial {number} of {}\n", options.load.trials));
        }
        let finished = match once(urls, &of_trial, workload, words) {
            Ok(finished) => finished,
            Err(trouble) if found.is_empty() => return Err(trouble),
            Err(trouble) => {
                ended = Err(trouble);
                break;
            }
        };
        if journal.is_ok() {
            *journal = finished.journal;
        }
        let path = finished.path?.map_or_else(|| format!("trial {number}"), |path| path.display().to_string());
        found.push((path, assay_report::findings(&finished.record)));
        ended = finished.ended;
        if !matches!(ended, Ok(Exit::Success)) || signals::control().is_stopped() {
            break;
        }
    }
    let group = compare::group(&workload.name, found);
    terminal::result(&compare::summary(&group, options.output.format))?;
    if !options.output.quiet && !options.output.no_record {
        terminal::say(&format!("records: {}\n", url_text::shell_line(&group.records)));
    }
    ended
}

/// `PATH-2.json.zst` of `PATH.json.zst`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // A name may begin with a dot.
    let end = name[1.min(name.len())..].find('.').map_or(name.len(), |at| at + 1);
    path.with_file_name(format!("{}-{number}{}", &name[..end], &name[end..]))
}

/// One trial to its end. Tables that are missing are prepared, if that was asked for.
fn once(urls: &[String], options: &RunOptions, workload: &Workload, words: &[String]) -> Result<Finished, Trouble> {
    let mut attempt = Attempt::make(urls, options, workload, words)?;
    if attempt.tables_are_missing() && options.load.prepare && workload.has_command("prepare") {
        attempt.live.discard();
        prepare_tables(urls, options, workload, words)?;
        attempt = Attempt::make(urls, options, workload, words)?;
    }
    let acknowledged = std::mem::take(&mut attempt.outcome.acknowledged);
    let crashed = std::mem::replace(&mut attempt.crashed, Ok(()));
    Ok(Finished { acknowledged, crashed, ..attempt.finish(options, workload)? })
}

/// A trial that measured something.
struct Finished {
    record: Record,
    path: Result<Option<PathBuf>, Trouble>,
    journal: Result<(), Trouble>,
    ended: Result<Exit, Trouble>,
    /// Of a kill check.
    acknowledged: Vec<assay_script::Key>,
    crashed: Result<(), Trouble>,
}

/// One run through the engine.
struct Attempt {
    plan: Plan,
    outcome: Outcome,
    live: Live,
    /// Of a kill check.
    crashed: Result<(), Trouble>,
}

impl Attempt {
    fn make(urls: &[String], options: &RunOptions, workload: &Workload, words: &[String]) -> Result<Attempt, Trouble> {
        let plan = plan::of_run(workload, options, urls, words)?;
        let live = Live::begin(record_of::begun(&plan, workload, options, words), &options.output)?;
        let mut watch = Watch::of_run(&plan, options.output.quiet, live);
        let (outcome, crashed) = match &options.load.kill_check {
            None => (assay_engine::run(plan.clone(), signals::control(), &mut watch), Ok(())),
            Some(command) => {
                let mut crash = Crash::new(&mut watch, command, &plan);
                let outcome = assay_engine::run(plan.clone(), signals::control(), &mut crash);
                let crashed = crash.finish(&outcome);
                (outcome, crashed)
            }
        };
        let live = watch.finish().expect("it was given one");
        Ok(Attempt { plan, outcome, live, crashed })
    }

    fn tables_are_missing(&self) -> bool {
        matches!(&self.outcome.end, End::Failed(error) if failure::is_missing_table(error)) && !self.measured()
    }

    /// Whether there is anything to report: any transaction that finished well.
    fn measured(&self) -> bool {
        let transactions = |stage: &StageOutcome| stage.total.transactions.iter().any(|of_type| of_type.count > 0);
        self.outcome.stages.iter().any(transactions)
    }

    /// The record to its file. A trouble where nothing was measured.
    fn finish(self, options: &RunOptions, workload: &Workload) -> Result<Finished, Trouble> {
        let trouble = match &self.outcome.end {
            End::Failed(error) => {
                let prepare = workload.has_command("prepare").then(|| prepare_command(options, workload));
                Some(failure::trouble(error, &self.plan, workload, prepare.as_deref()))
            }
            _ => None,
        };
        if !self.measured() && !matches!(self.outcome.end, End::Complete) {
            self.live.discard();
            return Err(
                trouble.unwrap_or_else(|| Trouble::new(signals::exit(), "interrupted before anything was measured"))
            );
        }
        let Left { record, path, journal } =
            self.live.finish(&self.plan, &self.outcome, trouble.as_ref().map(|trouble| trouble.cause.clone()));
        let ended = match (trouble, &self.outcome.end) {
            (Some(trouble), _) => Err(trouble),
            _ if options.load.check && !broken_rules(&record).is_empty() => {
                let broken = broken_rules(&record).join(", ");
                Err(Trouble::new(Exit::Difference, format!("the audit of {} failed: {broken}", workload.name)))
            }
            // A run without limits is meant to end this way.
            (None, End::Interrupted) if self.plan.limit != assay_engine::Limit::default() => Ok(signals::exit()),
            _ => Ok(Exit::Success),
        };
        Ok(Finished { record, path, journal, ended, acknowledged: Default::default(), crashed: Ok(()) })
    }
}

fn prepare_tables(urls: &[String], options: &RunOptions, workload: &Workload, words: &[String]) -> Result<(), Trouble> {
    let common = command_options(options, sessions_to_prepare(options, workload));
    for url in urls {
        let outcome = exec::on_database("prepare", &common, workload, url, words)?;
        prepare::conclude(workload, &outcome, options.output.quiet)?;
    }
    Ok(())
}

/// Rules of the audit that were not kept, in any stage.
fn broken_rules(record: &Record) -> Vec<String> {
    let stages = assay_report::findings(record).stages;
    let rules = stages.into_iter().flat_map(|stage| stage.audit);
    let mut broken: Vec<String> =
        rules.filter(|rule| rule.verdict == RuleVerdict::Failed).map(|rule| rule.name).collect();
    broken.dedup();
    broken
}

/// The options of a run that matter to a command beside it.
fn command_options(options: &RunOptions, sessions: Option<u32>) -> CommonCommandOptions {
    CommonCommandOptions {
        target: options.target.clone(),
        sessions,
        generator: options.generator.clone(),
        quiet: options.output.quiet,
    }
}

/// How many sessions the tables are for, where that is not a matter of speed: a script whose `prepare` runs once may
/// make something for each session of the run.
fn sessions_to_prepare(options: &RunOptions, workload: &Workload) -> Option<u32> {
    let most = options.load.sessions.iter().copied().max();
    most.filter(|sessions| *sessions > 1 && !plan::is_parallel(workload, "prepare"))
}

/// The command that creates the tables this run wants.
fn prepare_command(options: &RunOptions, workload: &Workload) -> String {
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

/// A command to try after this run: the next thing a newcomer has not done yet. `words`: the command line of this run.
fn next(options: &RunOptions, workload: &Workload, words: &[String], path: &Path) -> String {
    if options.target.db.is_empty() {
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

/// Steps of a ladder that begins where this run was; `None` where that would not be possible or tell little.
fn further_steps(options: &RunOptions, workload: &Workload) -> Option<String> {
    let load = &options.load;
    let &[sessions] = load.sessions.as_slice() else { return None };
    let closed = load.rate.is_none() && load.terminals.is_none();
    // The first step has to end, and to leave the server as it was.
    let ends = load.time != Some(Nanos::ZERO) && load.kill_check.is_none();
    // A prepare that runs once may have made tables for these sessions only.
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

/// The words of this run, without these options and their values.
fn again(words: &[String], without: &[&str]) -> Vec<String> {
    let mut kept = vec!["assay".to_owned()];
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let option = word.strip_prefix("--").map(|option| option.split_once('=').map_or(option, |(name, _)| name));
        if !option.is_some_and(|option| without.contains(&option)) {
            kept.push(word.clone());
        } else if !word.contains('=') {
            words.next();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{self, Invocation, Subcommand};

    /// What is suggested after this command line. It must be a command line itself.
    #[track_caller]
    fn suggested(line: &str) -> String {
        let parse = |line: &str| {
            let words = url_text::shell_words(line).unwrap();
            let parsed = command_line::parse(words.into_iter().map(Into::into));
            parsed.unwrap_or_else(|trouble| panic!("{line}: {}", trouble.text(false))).expect("it asks for no help")
        };
        let Invocation { subcommand, workload, words } = parse(line);
        let Subcommand::Run(options) = subcommand else { panic!("{line}") };
        let next = next(&options, &workload.unwrap(), &words, Path::new("assay-records/my run.json.zst"));
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
            "--terminals 10",
            "--terminals 10 --connections 4",
            "--time 0",
            "--time 5s --kill-check true",
        ] {
            assert_eq!(of_run(&format!("tpcc {db} {told_otherwise}")), show, "{told_otherwise}");
        }
        // Its tables are made for so many sessions.
        assert_eq!(of_run(&format!("bulk_insert {db}")), show);
    }

    #[test]
    fn records_of_trials_are_numbered_before_their_ending() {
        for (path, second) in [("a/b.json.zst", "a/b-2.json.zst"), ("b", "b-2"), (".hidden.json", ".hidden-2.json")] {
            assert_eq!(numbered(Path::new(path), 2), Path::new(second));
        }
    }
}
