//! Runs the remaining trials of an experiment, one by one.
//!
//! Every event is in the journal before the next one starts, so that whatever ends this process loses only the trial in
//! progress.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use assay_lab::{Home, Status, server};
use assay_process::bar::Bar;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_process::terminal;
use assay_recipe::{JournalEvent, Recipe, TrialKey, When, remaining, seconds_left};
use assay_record::{Record, RecordedTrial, text_without_secrets};
use assay_report::{Advice, Findings, Progress, Warning, trial_words, warning_words};

use crate::arguments::ArgumentParser;
use crate::experiment::{Experiment, ExperimentChoice, interrupted};
use crate::folder::{self, Folder, now};
use crate::results;
use crate::servers::{self, about, count};
use crate::setup::Runs;
use crate::shows::check_shows;
use crate::trial::{Timed, Trial, say};

/// Runs it to its end, or until it is interrupted, and prints the results. `folder`: instead of the usual one.
/// `again_failed`: repeats trials that failed.
pub fn run(
    choice: &ExperimentChoice,
    folder: Option<PathBuf>,
    again_failed: bool,
    parser: &dyn ArgumentParser,
) -> Result<Exit, Trouble> {
    let experiment = Experiment::of(choice, parser)?;
    experiment.check_trust(choice.trust)?;
    let runs = Runs::of_all(&experiment.recipe, parser).map_err(|wrong| experiment.located(wrong))?;
    for words in check_shows(&experiment.recipe, &runs).map_err(|wrong| experiment.located(wrong))? {
        terminal::say(&format!("warning: {words}\n"));
    }
    // A setting that its server does not know would fail in every trial of its level.
    let mut found = servers::look(&experiment, &runs, Some(&|words| terminal::say(&format!("{words}\n"))))?;
    found.refuse_wrong(&experiment)?;
    if let Some(words) = &found.too_small {
        terminal::say(&format!("warning: {words}\n"));
    }
    let path = folder.unwrap_or_else(|| Folder::usual(&experiment));
    folder::tell_of_relatives(&experiment.name, &path, &experiment.recipe);
    let mut folder = Folder::open(path, experiment, choice)?;
    if again_failed && folder.progress.failures().next().is_some() {
        folder.add(JournalEvent::Forgiven)?;
    }
    let home = assay_products::home();
    remove_left_over(&home, &folder)?;
    let done = folder.progress.outcomes.len();
    if done > 0 {
        terminal::say(&format!("resuming in {}: {} done\n", folder.path.display(), count(done, "trial")));
    }
    let drawn = Bar::begin(Progress::default());
    let bar = drawn.as_ref();
    let watch = Instant::now();
    loop {
        let recipe = &folder.recipe;
        let left = remaining(recipe.cells.len(), recipe.trials.count, recipe.trials.seed, &folder.progress);
        let Some(key) = left.first().copied() else { break };
        let seconds = seconds_left(&left, &folder.progress, |cell| runs[cell].seconds);
        let trial = format!("round {} of {}: {}", key.round, recipe.trials.count, recipe.cells[key.cell].name);
        match bar {
            Some(bar) => {
                say(Some(bar), &trial);
                show_progress(bar, watch, &folder, (left.len(), seconds));
            }
            None => say(None, &format!("{trial} ({} left, about {})", count(left.len(), "trial"), about(seconds))),
        }
        let last_of_round = left.get(1).is_none_or(|next| next.round != key.round);
        match one(&home, &mut folder, (&runs[key.cell].runs, parser), key, last_of_round, bar) {
            Ok(()) => {}
            Err(trouble) if interrupt::control().is_stopped() => {
                let folder = folder.path.display();
                return Err(Trouble { cause: format!("interrupted: {} trials are left", left.len()), ..trouble }
                    .hint(format!("run the same command again to resume; results so far: assay lab show {folder}")));
            }
            Err(trouble) => return Err(trouble),
        }
    }
    drop(drawn);
    terminal::say(&format!("records: {}\n\n", folder.path.join("records").display()));
    terminal::result(&results::text(&folder)?)?;
    let measured = folder.progress.outcomes.len() > folder.progress.failures().count();
    Ok(if measured { Exit::Success } else { Exit::Server })
}

/// Starts the line of a trial on the terminal: its number of all, the time left for all, and its own rate.
/// `left`: the number of trials left, and their seconds.
fn show_progress(bar: &Bar, watch: Instant, folder: &Folder, (left, seconds): (usize, f64)) {
    let elapsed = u64::try_from(watch.elapsed().as_nanos()).unwrap_or(u64::MAX);
    bar.set_elapsed(elapsed);
    let done = folder.progress.outcomes.len();
    let label = format!("trial {} of {}", done + 1, done + left);
    let total_ns = Some(elapsed.saturating_add((seconds * 1e9) as u64));
    bar.change(|progress| *progress = Progress { label, elapsed_ns: elapsed, total_ns, ..Progress::default() });
}

/// One trial, from its first journal entry to its last. An error is one of ours, or an interrupt; a trial that fails is
/// a result.
fn one(
    home: &Home,
    folder: &mut Folder,
    (runs, parser): (&Runs, &dyn ArgumentParser),
    key: TrialKey,
    last_of_round: bool,
    bar: Option<&Bar>,
) -> Result<(), Trouble> {
    let recipe = folder.recipe.clone();
    let cell = &recipe.cells[key.cell];
    let (round, number, name) = (key.round, key.cell, cell.name.clone());
    // What is left of a killed trial may still write to its files.
    let file = |attempt: u32| format!("records/round{round}-cell{}-{attempt}.json.zst", number + 1);
    let log = |attempt: u32| folder.path.join(format!("logs/round{round}-cell{}-{attempt}.log", number + 1));
    let attempt = (1..).find(|attempt| !log(*attempt).exists()).expect("numbers do not end");
    let (record, log) = (file(attempt), log(attempt));
    let first_of_round = !folder.progress.outcomes.keys().any(|other| other.round == round);
    folder.add(JournalEvent::Begun { round, cell: number, name: name.clone(), attempt, at: now() })?;
    let trial = Trial {
        home,
        server: format!("{}{}", server_prefix(&recipe), std::process::id()),
        cell,
        levels: recipe.levels_of(cell),
        runs,
        parser,
        steps: &recipe.steps,
        round,
        seed: recipe.trials.seed.wrapping_add(u64::from(round)),
        record: folder.path.join(&record),
        log,
        reached: Mutex::default(),
        noted: Mutex::default(),
        files: Mutex::default(),
        bar,
    };
    let watch = Instant::now();
    let mut parts = Timed::default();
    let before = if first_of_round { trial.steps(When::BeforeRound, &[], &mut parts) } else { Ok(()) };
    let ended = before.and_then(|()| trial.run());
    if interrupt::control().is_stopped() {
        return Err(interrupted());
    }
    let ended = ended.and_then(|more| {
        parts.phases = more.phases;
        parts.measured = more.measured;
        parts.seconds.extend(more.seconds);
        parts.values.extend(more.values);
        parts.outside = more.outside;
        parts.steps = more.steps;
        // Of phases the last one.
        if let Some(last) = parts.measured.pop() {
            return Ok(last);
        }
        let record = Record::read(&trial.record).map_err(|error| Trouble::environment(error.to_string()))?;
        Ok(assay_report::findings(&record))
    });
    match ended {
        Ok(findings) => {
            let all_ours = cell.setup.server.values().all(|server| server.url.is_none());
            let mut spoiled = std::mem::take(&mut parts.outside);
            for findings in parts.measured.iter().chain([&findings]) {
                let limits = generator_limits(findings, all_ours);
                spoiled.extend(limits.into_iter().filter(|words| !spoiled.contains(words)).collect::<Vec<_>>());
            }
            let kept = spoiled.is_empty() || folder.progress.repeats_of(number) >= recipe.trials.repeats;
            if parts.phases.is_empty() {
                say(bar, &format!("  {}", trial_words(&findings)));
            }
            if !kept {
                say(bar, &format!("  spoiled, will be repeated: {}", spoiled.join("; ")));
            }
            if last_of_round && kept {
                trial.steps(When::AfterRound, &[], &mut parts)?;
            }
            let seconds = watch.elapsed().as_secs_f64();
            let of_experiment = RecordedTrial {
                experiment: recipe.hash.clone(),
                round,
                cell: name.clone(),
                rejected: if kept { Vec::new() } else { spoiled.clone() },
                steps: std::mem::take(&mut parts.steps),
            };
            for path in trial.records(&parts) {
                let of_experiment = of_experiment.clone();
                let added = assay_record::change(&path, |record| record.environment.trial = Some(of_experiment));
                added.map_err(|error| Trouble::environment(format!("the record of the trial: {error}")))?;
            }
            // Of phases the last one with a load.
            let record = parts.phases.iter().rev().find_map(|phase| phase.record.clone()).unwrap_or(record);
            folder.add(JournalEvent::Done {
                round,
                cell: number,
                name,
                attempt,
                record,
                at: now(),
                seconds,
                parts: parts.seconds,
                values: parts.values,
                phases: parts.phases,
                spoiled,
                kept,
            })
        }
        Err(trouble) => {
            // If our own folder is full, the cell is not to blame.
            folder.can_write()?;
            // A server with a full disk says nothing about its cell either, and the next trial would meet it, too.
            let is_full = assay_lab::fault::is_full;
            if is_full(&trouble.cause) || trouble.details.iter().any(|line| is_full(line)) {
                let cause = format!("the disk became full during the trial: {}", trouble.cause);
                return Err(Trouble { cause, exit: Exit::Environment, ..trouble }
                    .hint("free some space, then run the same command again to resume"));
            }
            let hints = trouble.hints.iter().map(|hint| format!("hint: {hint}"));
            let details: Vec<String> = trouble.details.into_iter().chain(hints).collect();
            let mut said = format!("  failed: {}", trouble.cause);
            details.iter().for_each(|line| said += &format!("\n    {line}"));
            say(bar, &text_without_secrets(&said));
            folder.add(JournalEvent::Failed {
                round,
                cell: number,
                name,
                attempt,
                at: now(),
                cause: trouble.cause,
                details,
            })
        }
    }
}

/// The generator had no CPU, or was late. If that is because it shares the CPUs with the trial's own servers, it is not
/// interference: the next trial would be the same, and the record has the warning.
fn generator_limits(findings: &Findings, servers_are_ours: bool) -> Vec<String> {
    let is_own = |advice: &Advice| servers_are_ours && *advice == Advice::SeparateFromServer;
    let outside = |warning: &&Warning| warning.delay_advice().is_some_and(|advice| !is_own(advice));
    findings.warnings.iter().filter(outside).map(|warning| warning_words(warning, findings).0).collect()
}

/// The common prefix of the names of an experiment's servers.
fn server_prefix(recipe: &Recipe) -> String {
    format!("lab-{}-", &recipe.hash[..8])
}

/// Servers of this folder's trials that a killed process left.
fn remove_left_over(home: &Home, folder: &Folder) -> Result<(), Trouble> {
    let prefix = server_prefix(&folder.recipe);
    assay_lab::filesystem::remove_stale(&home.cache.join("filesystems"), &prefix);
    let is_ours = |server: &assay_lab::Server| server.name().starts_with(&prefix) && server.status() == Status::Stale;
    for server in server::all(home).into_iter().filter(is_ours) {
        terminal::say(&format!("stopping {}, left behind by a killed process\n", server.name()));
        server.kill()?;
        server.remove()?;
    }
    Ok(())
}
