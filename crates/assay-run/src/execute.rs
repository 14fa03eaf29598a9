//! The one function that executes a spec: runs the load, shows progress, reports the results, writes a record.

use std::path::PathBuf;

use assay_engine::{End, Outcome, Plan, StageOutcome};
use assay_lab::placement::Cpus;
use assay_lab::{Description, Topology};
use assay_process::diagnostics::{Exit, Trouble, nearest};
use assay_process::scratch::Scratch;
use assay_process::{files, interrupt, terminal, url_text};
use assay_record::{self as record, Record, StartedServer, Status};
use assay_report::{Findings, RuleVerdict};
use assay_spec::{Concealed, FleetSpec, OutputSpec, RunSpec, TelemetrySpec};

use crate::assignment::Assignment;
use crate::fleet::crew::{self, Crew, Work};
use crate::kill_check::{self, Crash};
use crate::lab::{self, Kept};
use crate::live::{Left, Live, may_write};
use crate::plan::ProcessOptions;
use crate::plan::Role;
use crate::served::Served;
use crate::watch::Watch;
use crate::workload::Workload;
use crate::{check, cleanup, engine, exec, failure, isolation, names, next, plan, prepare, record_of, render};

/// Executes an assignment: a run, or another command of a workload. Without a database: a run on an embedded one in a
/// temporary folder, prepared first.
pub fn execute(assignment: &Assignment, output: &OutputSpec, fleet: Option<&FleetSpec>) -> Result<Exit, Trouble> {
    let (spec, workload) = (&assignment.spec, &assignment.workload);
    match spec.task.as_str() {
        "run" => {}
        "prepare" => return prepare::run(assignment, output, fleet),
        "check" => return check::run(assignment, output, fleet),
        "cleanup" => return cleanup::run(assignment, output.quiet),
        _ => return exec::run(assignment, output.quiet),
    }
    for number in 1..=spec.trials {
        may_write(record_of_trial(output, spec, number).as_deref(), output.force)?;
    }
    for (what, path) in [("journal", &output.journal), ("history", &output.history)] {
        let Some(path) = path else { continue };
        files::may_write(path).map_err(|why| {
            Trouble::environment(format!("cannot write the {what} {}: {why}", path.display()))
                .hint(format!("choose a writable file with `--{what} FILE`"))
        })?;
    }
    if output.history.is_some() && !names::texts(&workload.name).iter().any(|text| text.contains("assay.history")) {
        return Err(no_history(workload, Exit::Usage));
    }
    let run = Run {
        urls: &assignment.urls(),
        assignment,
        output,
        fleet,
        telemetry: &spec.telemetry,
        started: None,
        trial: None,
    };
    if let Some(server) = &spec.server {
        let exit = run.on_started(lab::description(server)?);
        Served::finish();
        return exit;
    }
    if !run.urls.is_empty() {
        run.can_be_planned()?;
        let exit = run.on_databases();
        Served::finish();
        return exit;
    }
    let scratch = Scratch::new()?;
    Run { urls: &[scratch.url()], ..run }.can_be_planned()?;
    if !output.quiet {
        terminal::say(&format!(
            "no --db: using an embedded SQLite database in {}, removed at the end\n",
            scratch.folder().display()
        ));
    }
    let run = Run { urls: &[scratch.url()], ..run };
    if workload.has_command("prepare") {
        run.prepare_tables(run.urls)?;
    }
    let exit = run.on_databases();
    Served::finish();
    exit
}

fn no_history(workload: &Workload, exit: Exit) -> Trouble {
    Trouble::new(exit, format!("workload {} does not have a history", workload.name))
        .hint("leave out `--history`, or call `assay.history{…}` in the script: see docs/lua-api.md")
}

/// The path of the record of a trial, if one was given.
fn record_of_trial(output: &OutputSpec, spec: &RunSpec, number: u64) -> Option<PathBuf> {
    let path = output.record.as_ref()?;
    Some(if spec.trials > 1 { exec::numbered(path, number) } else { path.clone() })
}

/// What to run, and where.
#[derive(Clone, Copy)]
struct Run<'a> {
    /// With passwords; those of the spec, or of what was started instead.
    urls: &'a [String],
    assignment: &'a Assignment,
    output: &'a OutputSpec,
    fleet: Option<&'a FleetSpec>,
    telemetry: &'a TelemetrySpec,
    /// The server that was started, for the record.
    started: Option<&'a StartedServer>,
    /// Which trial this is, and of how many.
    trial: Option<(u64, u64)>,
}

/// How one or several runs ended, and an error of the journal.
struct Conclusion {
    exit: Result<Exit, Trouble>,
    journal: Result<(), Trouble>,
}

impl From<Trouble> for Conclusion {
    fn from(trouble: Trouble) -> Conclusion {
        Conclusion { exit: Err(trouble), journal: Ok(()) }
    }
}

impl Run<'_> {
    fn spec(&self) -> &RunSpec {
        &self.assignment.spec
    }

    fn workload(&self) -> &Workload {
        &self.assignment.workload
    }

    /// What is wrong with the plan is said before tables are prepared for it.
    fn can_be_planned(&self) -> Result<(), Trouble> {
        let process = ProcessOptions { quiet: true, only_named: true, ..self.process() };
        plan::of_run(self.assignment, &process, self.urls).map(drop)
    }

    /// On a server that is started for the run. Loaded data comes from an image, or becomes one.
    fn on_started(&self, description: Description) -> Result<Exit, Trouble> {
        // Before a server is started in vain.
        if let Some(cpus) = &self.spec().generator.cpus {
            Cpus::of_this_machine(cpus)?;
        }
        let (home, workload, quiet) = (assay_products::home(), self.workload(), self.output.quiet);
        let say = |words: &str| {
            if !quiet {
                terminal::say(&format!("{words}\n"));
            }
        };
        lab::tell_of_stale(&home);
        let can_prepare = |started: &Topology| lab::can_prepare_statements(started, self.spec().target.prepared);
        let kept = match self.spec().prepare && workload.has_command("prepare") {
            false => Kept::new(Topology::start(&home, &description, &say)?),
            true => {
                let load = |started: &Topology| {
                    can_prepare(started)?;
                    self.prepare_tables(&[started.primary.url("app")])?;
                    match interrupt::control().is_stopped() {
                        true => Err(Trouble::new(interrupt::exit(), "interrupted after loading the data")),
                        false => Ok(()),
                    }
                };
                let words = next::tables(self.assignment);
                lab::load_once(&home, &description, &words, &say, load)?.start(&home, description, &say)?
            }
        };
        let started = kept.topology();
        can_prepare(started)?;
        let state = started.primary.snapshot();
        say(&format!("{} {} started for this run as {}", state.binaries.product, state.binaries.version, state.name));
        let differences = lab::differences(&started.in_effect);
        if !differences.is_empty() {
            say(differences.trim_end());
        }
        let mut telemetry = self.telemetry.clone();
        if telemetry.poolers.is_empty() {
            telemetry.poolers.extend(lab::pooler(started).map(Concealed::from));
        }
        let recorded = lab::recorded(&[started]);
        Run { urls: &[started.url()], telemetry: &telemetry, started: recorded.as_ref(), ..*self }.on_databases()
    }

    fn on_databases(&self) -> Result<Exit, Trouble> {
        let spec = self.spec();
        // Without a check of the tables, there is the audit.
        let checks_tables = spec.check && self.workload().has_command("check");
        if checks_tables {
            for url in self.urls {
                self.check_before(url)?;
            }
        }
        let Conclusion { exit, journal } = match spec.trials {
            1 => self.single(),
            _ => self.trials(),
        };
        // A failed audit is a result; the tables are checked all the same.
        if checks_tables && is_result(&exit) {
            for url in self.urls {
                if !self.checks(url)? {
                    return Err(check::difference(self.workload(), " after the run"));
                }
            }
        }
        // Reported last: a journal's error affects nothing else.
        exit.and_then(|exit| journal.map(|()| exit))
    }

    /// Checks the tables of one database, created first if requested and missing.
    fn check_before(&self, url: &String) -> Result<(), Trouble> {
        if self.spec().prepare && self.workload().has_command("prepare") {
            let (_, outcome) = exec::attempt(&self.assignment.with_task("check", None), self.output.quiet, url)?;
            if matches!(&outcome.end, End::Failed(error) if failure::is_missing_table(error)) {
                self.prepare_tables(std::slice::from_ref(url))?;
            }
        }
        if self.checks(url)? {
            return Ok(());
        }
        Err(check::difference(self.workload(), " before the run, so it was not started"))
    }

    /// Whether the tables of one database are correct.
    fn checks(&self, url: &str) -> Result<bool, Trouble> {
        Ok(exec::on_database(&self.assignment.with_task("check", None), self.output.quiet, url)?.success)
    }

    fn single(&self) -> Conclusion {
        match self.once() {
            Ok(mut finished) => {
                let journal = std::mem::replace(&mut finished.journal, Ok(()));
                Conclusion { exit: self.conclude(finished), journal }
            }
            Err(trouble) => trouble.into(),
        }
    }

    /// One trial: its report to stdout, the path of its record to stderr.
    fn conclude(&self, finished: Finished) -> Result<Exit, Trouble> {
        let Run { urls, assignment, output, .. } = *self;
        let view = terminal::view(output.verbose);
        terminal::result(&render::result(&finished.record, output.format, view))?;
        if let (Some(path), false) = (finished.path?, output.quiet) {
            let next = match is_result(&finished.exit) {
                true => format!("next:   {}\n", next::command(assignment, &path)),
                false => String::new(),
            };
            terminal::say(&format!("record: {}\n{next}", path.display()));
        }
        if self.spec().kill_check.is_some() && is_result(&finished.exit) {
            finished.crashed?;
            kill_check::verify(finished.acknowledged, assignment, output.quiet, &urls[0])?;
        }
        finished.exit
    }

    /// The same run several times, and a summary of the trials. Trials before an interrupt or a failure are summarized,
    /// too.
    fn trials(&self) -> Conclusion {
        let (spec, output) = (self.spec(), self.output);
        let first_seed = spec.generator.seed.unwrap_or_else(plan::random_seed);
        let mut found: Vec<(String, Findings)> = Vec::new();
        let (mut exit, mut journal) = (Ok(Exit::Success), Ok(()));
        for number in 1..=spec.trials {
            let mut of_trial = self.assignment.clone();
            (of_trial.spec.generator.seed, of_trial.spec.trials) = (Some(first_seed.wrapping_add(number - 1)), 1);
            let mut output_of_trial = output.clone();
            output_of_trial.record = record_of_trial(output, spec, number);
            output_of_trial.journal = output.journal.as_ref().map(|path| exec::numbered(path, number));
            output_of_trial.history = output.history.as_ref().map(|path| exec::numbered(path, number));
            if !output.quiet && !terminal::stderr_is_terminal() {
                terminal::say(&format!("trial {number} of {}\n", spec.trials));
            }
            let trial = Some((number, spec.trials));
            let run = Run { assignment: &of_trial, output: &output_of_trial, trial, ..*self };
            let finished = match run.once() {
                Ok(finished) => finished,
                Err(trouble) if found.is_empty() => return trouble.into(),
                Err(trouble) => {
                    exit = Err(trouble);
                    break;
                }
            };
            if journal.is_ok() {
                journal = finished.journal;
            }
            let path = match finished.path {
                Ok(path) => path.map_or_else(|| format!("trial {number}"), |path| path.display().to_string()),
                Err(trouble) => return Conclusion { exit: Err(trouble), journal },
            };
            found.push((path, assay_report::findings(&finished.record)));
            exit = finished.exit;
            if !matches!(exit, Ok(Exit::Success)) || interrupt::control().is_stopped() {
                break;
            }
        }
        Conclusion { exit: self.sum_up(found).and(exit), journal }
    }

    fn sum_up(&self, found: Vec<(String, Findings)>) -> Result<(), Trouble> {
        let output = self.output;
        let group = render::group(&self.workload().name, found);
        terminal::result(&render::summary(&group, output.format))?;
        if !output.quiet && !output.no_record {
            terminal::say(&format!("records: {}\n", url_text::shell_line(&group.records)));
        }
        Ok(())
    }

    /// One trial to its end. Missing tables are prepared, if requested.
    fn once(&self) -> Result<Finished, Trouble> {
        if let Some(fleet) = self.fleet {
            return self.on_fleet(fleet);
        }
        let mut attempt = Attempt::make(self)?;
        if attempt.tables_are_missing() && self.spec().prepare && self.workload().has_command("prepare") {
            attempt.live.discard();
            self.prepare_tables(self.urls)?;
            attempt = Attempt::make(self)?;
        }
        let acknowledged = std::mem::take(&mut attempt.outcome.acknowledged);
        let crashed = std::mem::replace(&mut attempt.crashed, Ok(()));
        Ok(Finished { acknowledged, crashed, ..attempt.finish(self)? })
    }

    /// One trial, shared by agents on other machines.
    fn on_fleet(&self, fleet: &FleetSpec) -> Result<Finished, Trouble> {
        let (urls, output) = (self.urls, self.output);
        can_be_led(self.spec(), output)?;
        let mut assignment = self.assignment.clone();
        assignment.spec.generator.seed = Some(self.spec().generator.seed.unwrap_or_else(plan::random_seed));
        let process = ProcessOptions { role: Role::Lead, ..self.process() };
        let plan = plan::of_run(&assignment, &process, urls)?;
        crew::can_be_shared(&plan)?;
        let live = self.live(&plan, &assignment)?.of_several();
        let work = Work { spec: &assignment.spec, urls, is_parallel: true, plan: &plan, quiet: output.quiet };
        let mut crew = match Crew::gather(fleet, &work) {
            Ok(crew) => crew,
            Err(trouble) => {
                live.discard();
                return Err(trouble);
            }
        };
        if !output.quiet {
            terminal::say(&format!("run {}: agents {}\n", crew.run(), crew.names().join(", ")));
        }
        let mut watch = Watch::of_run(&plan, output.quiet, live);
        let course = crew.lead(&plan, &mut watch);
        let live = watch.finish().expect("it was given one");
        let shares = crew.shares(&course);
        let trouble = crew.trouble(&course);
        let counted = shares.iter().filter_map(|share| share.record.as_ref()).any(has_counted);
        if !counted && (trouble.is_some() || course.interrupted) {
            live.discard();
            crew.dismiss();
            let interrupted = || Trouble::new(interrupt::exit(), "interrupted before anything was measured");
            return Err(trouble.unwrap_or_else(interrupted));
        }
        let isolation = isolation::verdict_of_fleet(&shares, crew.histories(&course), &course.starts_ns, output.quiet);
        let Left { record, path, journal } = live.finish_fleet(&plan, |record| {
            record.isolation = isolation;
            record.take_shares(shares, &course.starts_ns);
            record.elapsed_ns = course.elapsed.0;
            record.failure = trouble.as_ref().map(|trouble| trouble.cause.clone());
            record.status = match (&trouble, course.interrupted) {
                (Some(_), _) => Status::Failed,
                (None, true) => Status::Interrupted,
                (None, false) => Status::Complete,
            };
        });
        if path.is_ok() {
            crew.dismiss();
        }
        let exit = match trouble {
            Some(trouble) => Err(trouble),
            None => self.exit_of(&record, course.interrupted && plan.limit != assay_engine::Limit::default()),
        };
        Ok(Finished { record, path, journal, exit, acknowledged: Default::default(), crashed: Ok(()) })
    }

    /// Exit code of a finished trial. `interrupted`: it did not reach its own end.
    fn exit_of(&self, record: &Record, interrupted: bool) -> Result<Exit, Trouble> {
        if !self.spec().load.find_rate.is_empty() {
            refuse_unknown_types(record)?;
        }
        if let Some(found) = assay_report::findings(record).isolation.filter(|found| !(found.kept && found.checked)) {
            return Err(Trouble::new(Exit::Difference, assay_report::isolation_answer(&found)));
        }
        if self.spec().check && record.rules.is_empty() && !self.workload().has_command("check") && !interrupted {
            let cause = format!("--check: workload {} has no check() and declared no audit", self.workload().name);
            let hint = "nothing was checked: define check(), or call assay.audit in thread_init(); see docs/lua-api.md";
            return Err(Trouble::usage(cause).hint(hint));
        }
        let broken = if self.spec().check { broken_rules(record) } else { Vec::new() };
        match (broken.is_empty(), interrupted) {
            (true, false) => Ok(Exit::Success),
            (true, true) => Ok(interrupt::exit()),
            (false, _) => {
                let cause = format!("the audit of {} failed: {}", self.workload().name, broken.join(", "));
                Err(Trouble::new(Exit::Difference, cause))
            }
        }
    }

    fn prepare_tables(&self, urls: &[String]) -> Result<(), Trouble> {
        let sessions = next::sessions_to_prepare(self.assignment);
        let (assignment, quiet) = (self.assignment.with_task("prepare", sessions), self.output.quiet);
        for url in urls {
            let outcome = exec::on_database(&assignment, quiet, url)?;
            prepare::conclude(self.workload(), &outcome, quiet)?;
        }
        Ok(())
    }

    fn process(&self) -> ProcessOptions {
        ProcessOptions { quiet: self.output.quiet, journal: self.output.journal.is_some(), ..ProcessOptions::default() }
    }

    fn live(&self, plan: &Plan, assignment: &Assignment) -> Result<Live, Trouble> {
        let record = record_of::begun(plan, assignment, self.started);
        Live::begin(record, self.output, self.telemetry, self.trial)
    }
}

/// Refuses what one process has to do alone.
fn can_be_led(spec: &RunSpec, output: &OutputSpec) -> Result<(), Trouble> {
    let load = &spec.load;
    let alone = [
        ("--find-rate", !load.find_rate.is_empty()),
        ("--sessions auto", load.searches_sessions()),
        ("--kill-check", spec.kill_check.is_some()),
        ("--journal", output.journal.is_some()),
        ("--history", output.history.is_some()),
        ("--prepare", spec.prepare),
    ];
    match alone.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name @ "--prepare", _)) => Err(Trouble::usage(format!("{name} cannot be used with --fleet"))
            .hint("prepare the tables first: `assay prepare WORKLOAD --fleet …`")),
        Some((name, _)) => Err(Trouble::usage(format!("{name} cannot be used with --fleet"))),
    }
}

/// Whether anything was counted: a statement, an error or a due transaction.
fn has_counted(record: &Record) -> bool {
    let counted = |stage: &record::Stage| {
        let (total, classes) = (&stage.total, &stage.total.statements);
        total.due > 0
            || !total.errors.is_empty()
            || [&classes.read, &classes.write, &classes.other].iter().any(|class| class.count > 0)
    };
    record.stages.iter().any(counted)
}

/// Whether a run was completed, whatever it found.
fn is_result(exit: &Result<Exit, Trouble>) -> bool {
    exit.as_ref().err().is_none_or(|trouble| trouble.exit == Exit::Difference)
}

/// A trial that measured something.
struct Finished {
    record: Record,
    path: Result<Option<PathBuf>, Trouble>,
    journal: Result<(), Trouble>,
    exit: Result<Exit, Trouble>,
    /// Kill check: keys of acknowledged transactions.
    acknowledged: Vec<assay_script::Key>,
    crashed: Result<(), Trouble>,
}

/// One run through the engine.
struct Attempt {
    plan: Plan,
    outcome: Outcome,
    live: Live,
    /// Kill check: the outcome of the crash command.
    crashed: Result<(), Trouble>,
}

impl Attempt {
    fn make(run: &Run<'_>) -> Result<Attempt, Trouble> {
        let plan = plan::of_run(run.assignment, &run.process(), run.urls)?;
        let live = run.live(&plan, run.assignment)?;
        let mut watch = Watch::of_run(&plan, run.output.quiet, live);
        let (outcome, crashed) = match &run.spec().kill_check {
            None => (engine::run(&plan, interrupt::control(), &mut watch), Ok(())),
            Some(command) => {
                let mut crash = Crash::new(&mut watch, command.reveal(), &plan);
                let outcome = engine::run(&plan, interrupt::control(), &mut crash);
                let crashed = crash.finish(&outcome);
                (outcome, crashed)
            }
        };
        let live = watch.finish().expect("it was given one");
        Ok(Attempt { plan, outcome, live, crashed })
    }

    fn tables_are_missing(&self) -> bool {
        let has_succeeded = |stage: &StageOutcome| stage.total.transactions.iter().any(|of_type| of_type.count > 0);
        matches!(&self.outcome.end, End::Failed(error) if failure::is_missing_table(error))
            && !self.outcome.stages.iter().any(has_succeeded)
    }

    /// Whether there is anything to report: a statement, an error or a due transaction.
    fn counted(&self) -> bool {
        let counted = |stage: &StageOutcome| {
            let total = &stage.total;
            total.due > 0 || !total.errors.is_empty() || total.statements.iter().any(|class| class.count > 0)
        };
        self.outcome.stages.iter().any(counted)
    }

    /// Writes the record. An error if nothing was counted.
    fn finish(self, run: &Run<'_>) -> Result<Finished, Trouble> {
        let workload = run.workload();
        let trouble = match &self.outcome.end {
            End::Failed(error) => {
                let prepare = workload.has_command("prepare").then(|| next::prepare_command(run.assignment));
                Some(failure::trouble(error, &self.plan, workload, prepare.as_deref()))
            }
            _ => None,
        };
        if !self.counted() && !matches!(self.outcome.end, End::Complete) {
            self.live.discard();
            return Err(
                trouble.unwrap_or_else(|| Trouble::new(interrupt::exit(), "interrupted before anything was measured"))
            );
        }
        let isolation = isolation::verdict(&self.outcome, run.output.quiet);
        let history = match (&run.output.history, &isolation) {
            (None, _) => Ok(()),
            (Some(path), Some(_)) => isolation::write(path, &self.outcome.history),
            (Some(_), None) => Err(no_history(workload, Exit::Workload)),
        };
        let failure = trouble.as_ref().map(|trouble| trouble.cause.clone());
        let Left { record, path, journal } = self.live.finish(&self.plan, &self.outcome, failure, isolation);
        let journal = journal.and(history);
        let exit = match (trouble, &self.outcome.end) {
            (Some(trouble), _) => Err(trouble),
            // A run without limits is meant to end by an interrupt.
            (None, end) => {
                let limited = self.plan.limit != assay_engine::Limit::default();
                run.exit_of(&record, limited && matches!(end, End::Interrupted))
            }
        };
        Ok(Finished { record, path, journal, exit, acknowledged: Default::default(), crashed: Ok(()) })
    }
}

/// A promise on a type of transaction that does not occur holds at any rate.
fn refuse_unknown_types(record: &Record) -> Result<(), Trouble> {
    let Some(found) = assay_report::findings(record).capacity else { return Ok(()) };
    let Some(unknown) = found.unknown_types.first() else { return Ok(()) };
    let known = || found.known_types.iter().map(String::as_str);
    let trouble = Trouble::usage(format!("--find-rate: there are no transactions of type {unknown}"));
    Err(match nearest(unknown, known()) {
        Some(near) => trouble.hint(format!("did you mean {near}?")),
        None => trouble.hint(format!("there are: {}", known().collect::<Vec<_>>().join(", "))),
    })
}

/// Rules of the audit that were broken, in any stage.
fn broken_rules(record: &Record) -> Vec<String> {
    let stages = assay_report::findings(record).stages;
    let rules = stages.into_iter().flat_map(|stage| stage.audit);
    let mut broken: Vec<String> =
        rules.filter(|rule| rule.verdict == RuleVerdict::Failed).map(|rule| rule.name).collect();
    broken.dedup();
    broken
}
