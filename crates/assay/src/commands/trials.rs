//! Reads the records of trials that are to be compared or shown together.
//!
//! A trial in several files (a copy, a link, the same path twice) counts once: repeating it would narrow confidence
//! intervals without a measurement. What counts is the content, not the file: a `.json` and a `.zst` may hold the same.

use std::path::{Path, PathBuf};

use assay_process::diagnostics::Trouble;
use assay_process::terminal;
use assay_record::{ReadError, Record, Status, TrialId};
use assay_report::{Findings, Task, Warning, on_all_cpus};

use crate::commands::show;

/// A trial.
pub(super) struct Trial {
    /// The path of its record, as given.
    file: String,
    findings: Findings,
    id: TrialId,
}

/// Reads these records with `reads`, several at once. Those that hold the same trial become one, with a warning.
pub(super) fn read(
    paths: &[PathBuf],
    reads: fn(&Path) -> Result<Record, ReadError>,
    found: impl Fn(&Path, &Record) -> Result<Findings, Trouble> + Sync,
) -> Result<Vec<Trial>, Trouble> {
    // `None`: the experiment rejected it.
    let all = on_all_cpus(paths, |_, path| -> Result<Option<Trial>, Trouble> {
        let record = show::read(path, reads)?;
        // Alone, it is what somebody wants to see.
        if paths.len() > 1 && record.environment.trial.as_ref().is_some_and(|trial| !trial.rejected.is_empty()) {
            return Ok(None);
        }
        let file = path.display().to_string();
        Ok(Some(Trial { file, findings: found(path, &record)?, id: record.trial() }))
    })?;
    let mut trials: Vec<(Trial, Vec<String>)> = Vec::new();
    let mut rejected = 0;
    for trial in all {
        let Some(trial) = trial else {
            rejected += 1;
            continue;
        };
        match trials.iter_mut().find(|(known, _)| known.id == trial.id) {
            Some((_, copies)) => copies.push(trial.file),
            None => trials.push((trial, Vec::new())),
        }
    }
    if rejected > 0 && trials.is_empty() {
        let cause = "all of these trials were spoiled, and their experiment repeated them";
        return Err(Trouble::usage(cause).hint("give the record of one of them to see it alone"));
    }
    if rejected > 0 {
        let (trials, were) = if rejected == 1 { ("trial", "was") } else { ("trials", "were") };
        terminal::warn(&format!("left out {rejected} {trials} that {were} spoiled and repeated by the experiment"));
    }
    let once = |(mut trial, files): (Trial, Vec<String>)| {
        if !files.is_empty() {
            let all = [std::slice::from_ref(&trial.file), &files].concat().join(", ");
            terminal::warn(&format!("these files hold the same trial, which counts once: {all}"));
            trial.findings.warnings.insert(0, Warning::Copies { files });
        }
        trial
    };
    Ok(trials.into_iter().map(once).collect())
}

/// An error if a trial is on both sides of a comparison: it would be compared with itself.
pub(super) fn check_sides(baseline: &[Trial], candidate: &[Trial]) -> Result<(), Trouble> {
    let both = baseline.iter().filter_map(|one| {
        let other = candidate.iter().find(|other| other.id == one.id)?;
        Some(format!("--baseline {} and --candidate {} hold the same trial", one.file, other.file))
    });
    let both: Vec<String> = both.collect();
    if both.is_empty() {
        return Ok(());
    }
    Err(Trouble::usage("the same trial is on both sides of the comparison")
        .detail(both.join("\n"))
        .hint("give each side the records of its own trials; for the trials of one setting: assay compare RECORD…"))
}

/// The runs, if there are several: a folder of records may have their loads and checks, too, which are left out aloud.
pub(super) fn runs_among(trials: Vec<Trial>) -> Vec<Trial> {
    let is_run = |trial: &Trial| trial.findings.task == Task::Run;
    let (runs, others): (Vec<Trial>, Vec<Trial>) = trials.into_iter().partition(is_run);
    if runs.len() < 2 {
        return runs.into_iter().chain(others).collect();
    }
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().map(|trial| trial.file.as_str()).collect();
        terminal::warn(&format!("left out, because they are not runs: {}", names.join(", ")));
    }
    runs
}

/// An error if these cannot be compared: runs with something else, or a record that lacks what the others have.
pub(super) fn check_comparable<'a>(trials: impl Iterator<Item = &'a Trial> + Clone) -> Result<(), Trouble> {
    let is_run = |trial: &&Trial| trial.findings.task == Task::Run;
    if trials.clone().any(|trial| is_run(&trial))
        && let Some(other) = trials.clone().find(|trial| !is_run(trial))
    {
        let what = match other.findings.task {
            Task::Run => "a run",
            Task::Prepare => "a load (assay prepare)",
            Task::Check => "a check (assay check)",
            Task::Machine => "a test of the machine (assay io)",
        };
        return Err(Trouble::usage(format!("{} is {what}, not a run", other.file))
            .hint("compare runs with runs, and loads with loads"));
    }
    let has_settings = |trial: &Trial| trial.findings.targets.iter().any(|target| !target.settings.is_empty());
    let is_cut = |trial: &&Trial| trial.findings.status == Status::Running && !has_settings(trial);
    if trials.clone().any(has_settings)
        && let Some(cut) = trials.clone().find(is_cut)
    {
        let cause = "is incomplete: its server settings are missing, so the sides cannot be compared";
        return Err(Trouble::usage(format!("{} {cause}", cut.file))
            .hint(format!("`assay show {}` shows what it has", cut.file)));
    }
    Ok(())
}

/// Files with findings, as assay-report takes them.
pub(super) fn pairs(trials: Vec<Trial>) -> Vec<(String, Findings)> {
    trials.into_iter().map(|trial| (trial.file, trial.findings)).collect()
}
