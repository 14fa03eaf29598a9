//! `assay duel A B`: runs two settings of `assay run` alternately, and compares them.
//!
//! It is an experiment with two cells. The turns are A B, B A, A B, …: drift (a filling disk, a warming cache, noisy
//! neighbors in a cloud) affects both sides alike. Every trial is a separate process, started as a person would start
//! it: no memory, connection or statistics of one trial reach the next, and a trial that crashes affects no other. The
//! two trials of a turn have the same seed.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use assay_process::bar::Bar;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_process::{terminal, url_text};
use assay_recipe::alternating;
use assay_record::{DEFAULT_FOLDER, Record, Time};
use assay_report::{Progress, throughput_words};
use assay_run::workload::Workload;
use assay_run::{names, plan, render};
use assay_spec::{ChildSpec, Format, LoadSpec};

use assay_experiment::child::{self, ChildEnded};

use crate::command_line::{self, DuelOptions, Invocation, Subcommand};
use crate::commands::compare;

/// Runs the trials, compares the sides. Trials before an interrupt or a failure are compared, too.
pub fn run(options: &DuelOptions) -> Result<Exit, Trouble> {
    let of = |name: &str, text: &str| Side::read(name, &[&options.common, text], "the duel");
    let sides = [of("A", &options.a)?, of("B", &options.b)?];
    for condition in &options.judgment.fail_if {
        for side in &sides {
            names::check_metric("--fail-if", &condition.metric, &side.workload)?;
        }
    }
    let folder = folder(options)?;
    let mut trials = [Vec::new(), Vec::new()];
    let mut ended = Ok(Exit::Success);
    let seed = plan::random_seed();
    let bar = if options.quiet { None } else { Bar::begin(course(&sides, options.trials)) };
    'turns: for number in 1..=options.trials {
        for side in alternating(sides.len(), number) {
            if let Some(bar) = &bar {
                let label = format!("trial {number} of {}, {}", options.trials, sides[side].name);
                bar.change(|progress| progress.label = label);
            }
            let path = folder.join(format!("{}-{number}.json.zst", sides[side].name.to_lowercase()));
            let of_trial = sides[side].trial(&path, seed.wrapping_add(number - 1))?;
            let found = Record::read(&path).ok().map(|record| assay_report::findings(&record));
            if !options.quiet {
                let tps = found.as_ref().map_or("nothing measured".into(), throughput_words);
                let say = || {
                    terminal::say(&format!("trial {number} of {}, {}: {tps}\n", options.trials, sides[side].name));
                };
                bar.as_ref().map_or_else(say, |bar| bar.above(say));
            }
            if let (Some(bar), Some(found)) = (&bar, &found) {
                bar.change(|progress| {
                    progress.tps.extend(found.stages.iter().map(|stage| stage.total.tps).reduce(f64::max))
                });
            }
            trials[side].extend(found.map(|found| (path.display().to_string(), found)));
            ended = sides[side].ended(&of_trial, number);
            if interrupt::control().is_stopped() {
                ended = Ok(interrupt::exit());
            }
            if !matches!(ended, Ok(Exit::Success)) {
                break 'turns;
            }
        }
    }
    drop(bar);
    let [a, b] = trials;
    if a.is_empty() || b.is_empty() {
        return ended.and_then(|exit| Err(Trouble::new(exit, "stopped before both sides had a trial")));
    }
    if options.format == Format::Text {
        let line = |side: &Side| format!("{}  {}\n", side.name, url_text::shell_line(&side.words));
        terminal::result(&format!("{}{}\n", line(&sides[0]), line(&sides[1])))?;
    }
    let compared = compare::compared(&render::group("A", a), &render::group("B", b), &options.judgment);
    let concluded = compare::conclude(vec![compared], &options.judgment, options.format);
    if !options.quiet {
        terminal::say(&format!("records: {}\n", folder.display()));
    }
    match ended {
        Ok(Exit::Success) => concluded,
        early => early,
    }
}

/// The label of a duel's progress bar.
fn course(sides: &[Side; 2], trials: u64) -> Progress {
    let both = sides[0].length_ns.zip(sides[1].length_ns).map(|(a, b)| a.saturating_add(b));
    Progress { total_ns: both.map(|both| both.saturating_mul(trials)), ..Progress::default() }
}

fn length_ns(load: &LoadSpec) -> Option<u64> {
    let time = plan::time_of(load).filter(|_| load.transactions.is_none())?;
    Some(load.warmup.0.saturating_add(time.0).saturating_mul(load.steps().len() as u64))
}

/// One side: what a command line of `assay run` asks for.
pub(super) struct Side {
    name: String,
    workload: Workload,
    /// What a trial does.
    run: ChildSpec,
    /// Planned nanoseconds of a trial; `None`: unknown.
    length_ns: Option<u64>,
    /// As written, without passwords.
    words: Vec<String>,
}

impl Side {
    /// Its workload.
    pub(super) fn workload(&self) -> &Workload {
        &self.workload
    }

    /// The side of this name, from its parts of a command line. `owner`: who runs its trials.
    pub(super) fn read(name: &str, texts: &[&str], owner: &str) -> Result<Side, Trouble> {
        let mut words = Vec::new();
        for text in texts {
            let part = url_text::shell_words(text).map_err(|reason| Trouble::usage(format!("{name}: {reason}")))?;
            // People paste the command they ran before.
            words.extend(part.into_iter().skip_while(|word| ["assay", "run"].contains(&word.as_str())));
        }
        let line = ["assay", "run"].into_iter().map(str::to_owned).chain(words.iter().cloned());
        let invocation = command_line::parse(line.map(Into::into))
            .map_err(|trouble| Trouble { cause: format!("{name}: {}", trouble.cause), ..trouble })?;
        let Some(Invocation { subcommand: Subcommand::Run(options), assignment: Some(assignment), words, .. }) =
            invocation
        else {
            return Err(Trouble::usage(format!("{name} is not `run` or a workload")));
        };
        let (spec, output) = (assignment.spec, options.output.output());
        let workload = assignment.workload;
        let kept = output.record.is_some() || output.no_record;
        for (given, option) in [(kept, "--record and --no-record"), (spec.trials > 1, "--trials")] {
            if given {
                return Err(Trouble::usage(format!("{name}: {owner} itself sets {option}"))
                    .hint(format!("pass --trials and --records to {owner} itself, outside the quotes")));
            }
        }
        for (what, path) in [("journal", &output.journal), ("history", &output.history)] {
            if path.is_some() {
                return Err(Trouble::usage(format!(
                    "{name}: with --{what}, each trial would overwrite the {what} of the previous one"
                ))
                .hint(format!("use `assay run` for a {what}, with or without --trials")));
            }
        }
        let length_ns = length_ns(&spec.load);
        let run = ChildSpec { fleet: options.fleet.spec(), ..ChildSpec::of_run(spec, output) };
        Ok(Side { name: name.to_owned(), workload, run, length_ns, words })
    }

    /// Runs one trial to its end.
    pub(super) fn trial(&self, record: &Path, seed: u64) -> Result<ChildEnded, Trouble> {
        child::execute(&self.run.as_trial(seed, record), Stdio::inherit(), &interrupt::run, |_| {})
            .map_err(|error| Trouble::environment(format!("cannot start a trial: {error}")))
    }

    /// What the end of a trial means for the duel. The trial itself has reported why it failed.
    pub(super) fn ended(&self, ended: &ChildEnded, number: u64) -> Result<Exit, Trouble> {
        if ended.status.success() {
            return Ok(Exit::Success);
        }
        let code = ended.exited.as_ref().map(|exited| i32::from(exited.code)).or(ended.status.code());
        let exit = code.and_then(Exit::of_code).unwrap_or(Exit::Bug);
        let how = code.map_or("was killed".to_owned(), |code| format!("ended with exit code {code}"));
        Err(Trouble::new(exit, format!("trial {number} of {} {how}", self.name)))
    }
}

/// The folder for the records: a new one, or the given one, which must not contain a duel yet.
fn folder(options: &DuelOptions) -> Result<PathBuf, Trouble> {
    let default = || {
        let now = Time::from(std::time::SystemTime::now());
        Path::new(DEFAULT_FOLDER).join(format!("duel-{}", now.compact()))
    };
    let folder = options.records.clone().unwrap_or_else(default);
    let failed = |error: std::io::Error| {
        Trouble::environment(format!("cannot write to {}: {error}", folder.display()))
            .hint("choose another folder with --records")
    };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let mut records =
        (1..=options.trials).flat_map(|number| ["a", "b"].map(|side| format!("{side}-{number}.json.zst")));
    if records.any(|name| folder.join(name).exists()) {
        return Err(Trouble::usage(format!("{} already contains the records of a duel", folder.display()))
            .hint("choose another folder with --records, or delete them"));
    }
    Ok(folder)
}
