//! `assay bisect`: finds the version, commit or value from which a figure is worse.
//!
//! Each round measures the good end, the bad end and a candidate in random order, so that drift affects all alike. The
//! probabilities are those of `Bisection` in assay-stats. The folder of records is the state of the search: one that
//! was interrupted reads them again, and `bisect.json` says which search it is and what does not build.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_lab::Account;
use assay_lab::Wanted;
use assay_lab::binaries;
use assay_lab::version::Version;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::{interrupt, terminal, title, url_text};
use assay_record::{DEFAULT_FOLDER, Record, Status, Time};
use assay_report::Findings;
use assay_run::{names, plan, render};
use assay_spec::Concealed;
use assay_stats::{Bisection, BisectionLimits, NextTrial};
use serde::{Deserialize, Serialize};

use crate::command_line::BisectOptions;
use crate::commands::duel::Side;

/// Searches until the first bad candidate is probable enough.
pub fn run(options: &BisectOptions) -> Result<Exit, Trouble> {
    let run = run_of(options)?;
    let candidates = candidates(options)?;
    let sides: Vec<Side> = candidates
        .iter()
        .map(|candidate| Side::read(candidate, &[&run.replace("{}", candidate)], "bisect"))
        .collect::<Result<_, _>>()?;
    for side in &sides {
        names::check_metric("--metric", &options.metric, side.workload())?;
    }
    let folder = options.records.clone().unwrap_or_else(|| {
        Path::new(DEFAULT_FOLDER).join(format!("bisect-{}", Time::from(std::time::SystemTime::now()).compact()))
    });
    std::fs::create_dir_all(&folder).map_err(|error| {
        Trouble::environment(format!("cannot write to {}: {error}", folder.display()))
            .hint("choose another folder with --records")
    })?;
    let state = state(&folder, &run, &candidates)?;
    let limits = BisectionLimits {
        sure: options.sure,
        margin: options.margin,
        rounds_of_ends: usize::try_from(options.ends).unwrap_or(usize::MAX),
        trials: usize::try_from(options.trials).unwrap_or(usize::MAX),
    };
    let search = Bisection::new(candidates.len(), limits);
    let built = state.skipped.iter().map(|at| (*at, false)).collect();
    let mut work = Work { options, candidates, sides, folder, search, state, built, ends: [Vec::new(), Vec::new()] };
    let outcome = work.search();
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(trouble) if interrupt::control().is_stopped() => {
            return Err(trouble.hint(format!("to continue: the same command with --records {}", work.folder.display())));
        }
        Err(trouble) => return Err(trouble),
    };
    work.show(outcome)
}

/// The arguments of a trial, with `{}` for the candidate.
fn run_of(options: &BisectOptions) -> Result<String, Trouble> {
    let run = match &options.binaries {
        None => options.run.clone(),
        Some(binaries) => {
            let path = std::path::absolute(options.source.join(binaries)).unwrap_or_else(|_| binaries.clone());
            let words = ["--binaries".to_owned(), path.display().to_string()];
            format!("{} {}", options.run, url_text::shell_line(&words))
        }
    };
    // Without it, all candidates are the same.
    match run.contains("{}") {
        true => Ok(run),
        false => Err(Trouble::usage("RUN does not depend on the candidate: {} is missing in it")
            .hint("write {} where the candidate belongs, such as '--server {}' or --binaries 'builds/{}'")),
    }
}

/// What the folder is about, so that no search continues with the records of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct State {
    run: Concealed,
    candidates: Vec<Concealed>,
    /// Candidates that do not build or cannot be measured, by number.
    skipped: Vec<usize>,
}

const STATE_FILE: &str = "bisect.json";

/// The state of the search in this folder, or of a new one.
fn state(folder: &Path, run: &str, candidates: &[String]) -> Result<State, Trouble> {
    let path = folder.join(STATE_FILE);
    let candidates = candidates.iter().map(|candidate| candidate.as_str().into()).collect();
    let new = State { run: run.into(), candidates, skipped: Vec::new() };
    let text = match assay_record::read_file(&path, assay_record::WRITTEN_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return new.write(folder).map(|()| new),
        Err(error) => return Err(Trouble::environment(format!("cannot read {}: {error}", path.display()))),
    };
    let known: State = serde_json::from_slice(&text)
        .map_err(|error| Trouble::environment(format!("{} is damaged: {error}", path.display())))?;
    let shown = |state: &State| -> Vec<String> {
        [&state.run].into_iter().chain(&state.candidates).map(Concealed::shown).collect()
    };
    let there = shown(&known);
    if there != shown(&new) {
        return Err(Trouble::usage(format!("{} has the records of another search", folder.display()))
            .detail(format!("RUN there: {}", there[0]))
            .detail(format!("candidates there: {}", there[1..].join(" ")))
            .hint("choose another folder with --records"));
    }
    Ok(known)
}

impl State {
    fn write(&self, folder: &Path) -> Result<(), Trouble> {
        let path = folder.join(STATE_FILE);
        let text = serde_json::to_string_pretty(self).expect("texts and numbers become JSON") + "\n";
        assay_process::files::write(&path, text)
            .map_err(|error| Trouble::environment(format!("cannot write {}: {error}", path.display())))
    }
}

/// The candidates in order.
fn candidates(options: &BisectOptions) -> Result<Vec<String>, Trouble> {
    let found = match (&options.commits, &options.versions) {
        (Some(range), _) => commits(range, &options.source)?,
        (None, Some(range)) => versions(range)?,
        (None, None) => options.values.iter().map(|value| value.trim().to_owned()).collect(),
    };
    if let Some(empty) = found.iter().position(String::is_empty) {
        return Err(Trouble::usage(format!("--values {}: candidate {} is empty", options.values.join(","), empty + 1)));
    }
    match found.len() {
        0 | 1 => Err(Trouble::usage("a search needs at least two candidates: a good one and a bad one")),
        _ => Ok(found),
    }
}

/// Commits of the first parents' line, the good one first.
fn commits(range: &str, source: &Path) -> Result<Vec<String>, Trouble> {
    let (good, bad) = ends_of(range, "--commits", "GOOD..BAD")?;
    let git = |words: &[&str]| -> Result<String, Trouble> {
        let output = Command::new("git").arg("-C").arg(source).args(words).output();
        let output = output.map_err(|error| Trouble::environment(format!("cannot start git: {error}")))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(Trouble::usage(format!("git {} failed", words.join(" ")))
                .detail(String::from_utf8_lossy(&output.stderr))),
        }
    };
    let first = git(&["rev-parse", "--verify", &format!("{good}^{{commit}}")])?;
    let later = git(&["rev-list", "--reverse", "--first-parent", &format!("{good}..{bad}")])?;
    Ok(first.lines().chain(later.lines()).map(str::to_owned).collect())
}

/// Versions of a product that `assay server` can start, in ascending order.
fn versions(range: &str) -> Result<Vec<String>, Trouble> {
    let (first, last) = ends_of(range, "--versions", "PRODUCT:FIRST..LAST")?;
    let Wanted { product, version } = first.parse()?;
    let (Some(first), Ok(last)) = (version, last.parse::<Version>()) else {
        return Err(Trouble::usage(format!("--versions {range}: expected two versions, such as postgres:9.6..18")));
    };
    if last < first && !first.is_a(&last) {
        return Err(Trouble::usage(format!("--versions {range}: {first} comes after {last}"))
            .hint(format!("write --versions {product}:{last}..{first}")));
    }
    let home = assay_products::home();
    let sources = binaries::sources(&home, home.products.product(&product)?, &Account::choose(None)?);
    let mut known: Vec<Version> = sources.iter().map(binaries::version_of).collect();
    known.sort();
    known.dedup();
    let is_between = |version: &&Version| **version >= first && (**version <= last || version.is_a(&last));
    let found: Vec<String> = known.iter().filter(is_between).map(|version| format!("{product}:{version}")).collect();
    match found.len() {
        0 | 1 => {
            let known: Vec<String> = known.iter().map(Version::to_string).collect();
            Err(Trouble::usage(format!("--versions {range}: fewer than two such versions are installed or known"))
                .detail(format!("available versions of {product}: {}", known.join(", ")))
                .hint(format!("assay server sources {product}")))
        }
        _ => Ok(found),
    }
}

fn ends_of<'a>(range: &'a str, option: &str, form: &str) -> Result<(&'a str, &'a str), Trouble> {
    let ends = range.split_once("..").filter(|(first, last)| !first.is_empty() && !last.is_empty());
    ends.ok_or_else(|| Trouble::usage(format!("{option} {range}: expected {form}")))
}

struct Work<'a> {
    options: &'a BisectOptions,
    candidates: Vec<String>,
    sides: Vec<Side>,
    folder: PathBuf,
    search: Bisection,
    state: State,
    /// Whether a candidate that was needed could be built; false also if it could not be measured.
    built: BTreeMap<usize, bool>,
    /// Records and findings of both ends.
    ends: [Vec<(String, Findings)>; 2],
}

impl Work<'_> {
    fn search(&mut self) -> Result<NextTrial, Trouble> {
        let last = self.candidates.len() - 1;
        let seed = plan::random_seed();
        for round in 1_u64.. {
            let next = self.search.next();
            let candidate = match next {
                NextTrial::Ends => None,
                NextTrial::Candidate(at) => Some(at),
                outcome => return Ok(outcome),
            };
            let mut turns: Vec<usize> = [0, last].into_iter().chain(candidate).collect();
            // Nothing is built for trials whose records are there.
            let news: Vec<usize> = turns.iter().copied().filter(|at| self.known(*at, round).is_none()).collect();
            let mut unbuilt = None;
            for at in news.into_iter().rev() {
                unbuilt = if self.is_built(at)? { None } else { Some(at) };
                if unbuilt.is_some() {
                    break;
                }
            }
            match unbuilt {
                None => {}
                Some(at) if Some(at) == candidate => {
                    self.skip(at, "does not build")?;
                    continue;
                }
                Some(end) => {
                    let cause = format!("--build failed for {}, an end of the search", self.candidates[end]);
                    return Err(Trouble::new(Exit::Environment, cause));
                }
            }
            // Another order in each round: a rotation, and every other one backwards.
            let turn = usize::try_from(round % turns.len() as u64).unwrap_or(0);
            turns.rotate_left(turn);
            if round % 2 == 0 {
                turns.reverse();
            }
            let mut values = BTreeMap::new();
            let mut failed = None;
            let lengths = self.ends.each_ref().map(Vec::len);
            for at in turns {
                match self.trial(at, round, seed.wrapping_add(round)) {
                    Ok(value) => drop(values.insert(at, value)),
                    Err(trouble) if Some(at) != candidate || interrupt::control().is_stopped() => return Err(trouble),
                    Err(trouble) => failed = Some((at, trouble.cause)),
                }
            }
            // The trial itself has reported why.
            if let Some((at, cause)) = failed {
                // A search that is continued knows nothing of this round.
                self.ends.iter_mut().zip(lengths).for_each(|(end, length)| end.truncate(length));
                self.skip(at, &format!("cannot be measured: {cause}"))?;
                continue;
            }
            if let Some(at) = candidate {
                self.search.on_trial(at, values[&at]);
            }
            self.search.on_ends(values[&0], values[&last]);
            self.say_round(round, candidate);
        }
        unreachable!("rounds have no end")
    }

    /// Leaves out a candidate, also when the search is continued.
    fn skip(&mut self, at: usize, why: &str) -> Result<(), Trouble> {
        self.search.skip(at);
        self.built.insert(at, false);
        if self.state.skipped.contains(&at) {
            return Ok(());
        }
        terminal::warn(&format!("{} {why}: it is skipped", self.candidates[at]));
        self.state.skipped.push(at);
        self.state.write(&self.folder)
    }

    fn say_round(&self, round: u64, candidate: Option<usize>) {
        if self.options.quiet {
            return;
        }
        let (first, last) = self.search.range();
        let name = |at: usize| &self.candidates[at];
        terminal::say(&match candidate {
            None => format!("round {round}: both ends\n"),
            Some(at) => format!("round {round}: {}; now most probable: {} … {}\n", name(at), name(first), name(last)),
        });
    }

    fn path(&self, at: usize, round: u64) -> PathBuf {
        self.folder.join(format!("round-{round}-candidate-{at}.json.zst"))
    }

    /// The record of a trial that an earlier part of this search has completed.
    fn known(&self, at: usize, round: u64) -> Option<Record> {
        Record::read(&self.path(at, round)).ok().filter(|record| record.status == Status::Complete)
    }

    /// The figure of a trial; a record that is there already is not measured again.
    fn trial(&mut self, at: usize, round: u64, seed: u64) -> Result<f64, Trouble> {
        let path = self.path(at, round);
        let record = match self.known(at, round) {
            Some(record) => record,
            None => {
                // What an interrupted trial left.
                let _ = std::fs::remove_file(&path);
                let ended = self.sides[at].trial(&path, seed)?;
                if interrupt::control().is_stopped() {
                    return Err(Trouble::new(interrupt::exit(), "interrupted"));
                }
                self.sides[at].ended(&ended, round)?;
                Record::read(&path)?
            }
        };
        let findings = assay_report::findings(&record);
        let metric = &self.options.metric;
        let value = assay_report::metric_value(&findings, metric).map(|(value, _)| value).filter(|value| *value > 0.0);
        let Some(value) = value else {
            return Err(Trouble::usage(format!("{}: a trial has no {metric} above 0", path.display())));
        };
        let end = [0, self.candidates.len() - 1].iter().position(|end| *end == at);
        if let Some(end) = end {
            self.ends[end].push((path.display().to_string(), findings));
        }
        Ok(value)
    }

    /// Builds a candidate before its first trial. What was skipped stays skipped.
    fn is_built(&mut self, at: usize) -> Result<bool, Trouble> {
        if let Some(built) = self.built.get(&at) {
            return Ok(*built);
        }
        let Some(build) = &self.options.build else { return Ok(true) };
        let candidate = &self.candidates[at];
        if !self.options.quiet {
            terminal::say(&format!("building {candidate}\n"));
        }
        let line = build.replace("{}", &url_text::shell_line(std::slice::from_ref(candidate)));
        let mut command = title::shell(&line);
        command.current_dir(&self.options.source).env("ASSAY_CANDIDATE", candidate).stdout(terminal::aside());
        let status =
            interrupt::run(command).map_err(|error| Trouble::environment(format!("cannot start sh: {error}")))?;
        if interrupt::control().is_stopped() {
            return Err(Trouble::new(interrupt::exit(), "interrupted"));
        }
        self.built.insert(at, status.success());
        Ok(status.success())
    }

    fn show(self, outcome: NextTrial) -> Result<Exit, Trouble> {
        let shown: Vec<String> = self.candidates.iter().map(|candidate| url_text::masked(candidate)).collect();
        terminal::result(&assay_report::bisection_text(&self.search, &shown, outcome))?;
        if outcome == NextTrial::Found {
            let [good, bad] = self.ends;
            let (good, bad) = (render::group("good", good), render::group("bad", bad));
            let found = assay_report::compare(render::side(&good), render::side(&bad), self.options.margin);
            if let Some(explanation) = assay_report::explain(&found, &good.trials, &bad.trials) {
                terminal::result(&format!("\n{}", assay_report::explanation_text(&explanation, &found)))?;
            }
        }
        if !self.options.quiet {
            terminal::say(&format!("records: {}\n", self.folder.display()));
        }
        match outcome {
            NextTrial::Found => Ok(Exit::Success),
            NextTrial::SameEnds => Err(Trouble::new(Exit::Difference, "the ends do not differ")),
            _ => Err(Trouble::new(Exit::Difference, format!("not found within {} trials", self.options.trials))
                .hint(format!("to continue: --trials with more, and --records {}", self.folder.display()))),
        }
    }
}
