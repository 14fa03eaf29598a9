//! `assay bisect`: finds the version, commit or value from which a figure is worse.
//!
//! Each round measures the good end, the bad end and a candidate in random order, so that drift affects all alike. The
//! probabilities are those of `Bisection` in assay-stats. The folder of records is the state of the search: one that
//! was interrupted reads it again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::{interrupt, terminal, url_text};
use assay_record::{DEFAULT_FOLDER, Record, Time};
use assay_report::Findings;
use assay_run::{plan, render};
use assay_stats::{Bisection, BisectionLimits, NextTrial};

use crate::command_line::BisectOptions;
use crate::commands::duel::Side;

/// Searches until the first bad candidate is probable enough.
pub fn run(options: &BisectOptions) -> Result<Exit, Trouble> {
    let candidates = candidates(options)?;
    let sides: Vec<Side> = candidates
        .iter()
        .map(|candidate| Side::read(candidate, &[&options.run.replace("{}", candidate)], "bisect"))
        .collect::<Result<_, _>>()?;
    let folder = options.records.clone().unwrap_or_else(|| {
        Path::new(DEFAULT_FOLDER).join(format!("bisect-{}", Time::from(std::time::SystemTime::now()).compact()))
    });
    std::fs::create_dir_all(&folder).map_err(|error| {
        Trouble::environment(format!("cannot write to {}: {error}", folder.display()))
            .hint("choose another folder with --records")
    })?;
    let limits = BisectionLimits {
        sure: options.sure,
        margin: options.margin,
        rounds_of_ends: usize::try_from(options.ends).unwrap_or(usize::MAX),
        trials: usize::try_from(options.trials).unwrap_or(usize::MAX),
    };
    let search = Bisection::new(candidates.len(), limits);
    let mut work =
        Work { options, candidates, sides, folder, search, built: BTreeMap::new(), ends: [Vec::new(), Vec::new()] };
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

/// The candidates in order.
fn candidates(options: &BisectOptions) -> Result<Vec<String>, Trouble> {
    let found: Vec<String> = match &options.commits {
        None => options.values.iter().map(|value| value.trim().to_owned()).collect(),
        Some(range) => {
            let Some((good, bad)) = range.split_once("..").filter(|(good, bad)| !good.is_empty() && !bad.is_empty())
            else {
                return Err(Trouble::usage(format!("--commits {range}: expected GOOD..BAD")));
            };
            let git = |words: &[&str]| -> Result<String, Trouble> {
                let output = Command::new("git").arg("-C").arg(&options.source).args(words).output();
                let output = output.map_err(|error| Trouble::environment(format!("cannot start git: {error}")))?;
                match output.status.success() {
                    true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
                    false => Err(Trouble::usage(format!("git {} failed", words.join(" ")))
                        .detail(String::from_utf8_lossy(&output.stderr))),
                }
            };
            let first = git(&["rev-parse", "--verify", &format!("{good}^{{commit}}")])?;
            let later = git(&["rev-list", "--reverse", "--first-parent", &format!("{good}..{bad}")])?;
            first.lines().chain(later.lines()).map(str::to_owned).collect()
        }
    };
    match found.len() {
        0 | 1 => Err(Trouble::usage("a search needs at least two candidates: a good one and a bad one")),
        _ => Ok(found),
    }
}

struct Work<'a> {
    options: &'a BisectOptions,
    candidates: Vec<String>,
    sides: Vec<Side>,
    folder: PathBuf,
    search: Bisection,
    /// Whether a candidate that was needed could be built.
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
            if let Some(at) = candidate
                && !self.is_built(at)?
            {
                self.search.skip(at);
                continue;
            }
            for end in [0, last] {
                if !self.is_built(end)? {
                    let cause = format!("--build failed for {}, an end of the search", self.candidates[end]);
                    return Err(Trouble::new(Exit::Environment, cause));
                }
            }
            let mut turns: Vec<usize> = [0, last].into_iter().chain(candidate).collect();
            // Another order in each round: a rotation, and every other one backwards.
            let turn = usize::try_from(round % turns.len() as u64).unwrap_or(0);
            turns.rotate_left(turn);
            if round % 2 == 0 {
                turns.reverse();
            }
            let mut values = BTreeMap::new();
            for at in turns {
                values.insert(at, self.trial(at, round, seed.wrapping_add(round))?);
            }
            if let Some(at) = candidate {
                self.search.on_trial(at, values[&at]);
            }
            self.search.on_ends(values[&0], values[&last]);
            self.say_round(round, candidate);
        }
        unreachable!("rounds have no end")
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

    /// The figure of a trial; a record that is there already is not measured again.
    fn trial(&mut self, at: usize, round: u64, seed: u64) -> Result<f64, Trouble> {
        let path = self.folder.join(format!("round-{round}-candidate-{at}.json.zst"));
        let known = Record::read(&path).ok().filter(|record| record.status == assay_record::Status::Complete);
        let record = match known {
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

    /// Builds a candidate before its first trial.
    fn is_built(&mut self, at: usize) -> Result<bool, Trouble> {
        let Some(build) = &self.options.build else { return Ok(true) };
        if let Some(built) = self.built.get(&at) {
            return Ok(*built);
        }
        let candidate = &self.candidates[at];
        if !self.options.quiet {
            terminal::say(&format!("building {candidate}\n"));
        }
        let mut command = Command::new("sh");
        command.arg("-c").arg(build.replace("{}", &url_text::shell_line(std::slice::from_ref(candidate))));
        command.current_dir(&self.options.source).env("ASSAY_CANDIDATE", candidate).stdout(terminal::aside());
        let status =
            interrupt::run(command).map_err(|error| Trouble::environment(format!("cannot start sh: {error}")))?;
        if interrupt::control().is_stopped() {
            return Err(Trouble::new(interrupt::exit(), "interrupted"));
        }
        if !status.success() {
            terminal::warn(&format!("{candidate} does not build: it is skipped"));
        }
        self.built.insert(at, status.success());
        Ok(status.success())
    }

    fn show(self, outcome: NextTrial) -> Result<Exit, Trouble> {
        terminal::result(&assay_report::bisection_text(&self.search, &self.candidates, outcome))?;
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
