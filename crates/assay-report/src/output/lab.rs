//! The results of an experiment with what a reader must know about them: as text, as Markdown, and as a page.

use std::collections::BTreeSet;

use crate::findings::experiment::{Experiment, ExperimentTrial};
use crate::findings::plans::CellPlans;
use crate::findings::report::report_of_cells;
use crate::findings::run::Findings;
use crate::findings::warning::{Advice, Warning};
use crate::output::page::html;
use crate::output::shown::{Shown, shown_markdown, shown_text};
use crate::plain::wrap_to;
use crate::tables::as_markdown::escaped;
use crate::tables::cases::counters_of_cells;
use crate::words::effects::effects_words;
use crate::words::plans::{differences_of, plans_of};

/// What an experiment came to.
#[derive(Default)]
pub struct LabResults<'a> {
    /// The recipe's.
    pub title: &'a str,
    /// What it should answer; empty: not stated.
    pub question: &'a str,
    /// What readers should look at; empty: not stated.
    pub look_at: &'a str,
    /// Trials that were measured.
    pub measured: usize,
    /// Trials that are planned, or were measured if that is more.
    pub planned: usize,
    /// Seed of the order and of the trials.
    pub seed: u64,
    /// Identifies the recipe's text.
    pub hash: &'a str,
    /// Trials that failed, in order.
    pub failures: Vec<FailedTrial<'a>>,
    /// Measured trials that something disturbed, and disturbed trials that were repeated.
    pub disturbed: (usize, usize),
    /// What the recipe shows, as far as it was measured.
    pub shown: Vec<Shown>,
    /// Why some of that is missing.
    pub left_out: Vec<String>,
    /// The measurements; `None`: there are none yet.
    pub experiment: Option<Experiment>,
}

/// A trial that failed.
#[derive(Clone, Copy)]
pub struct FailedTrial<'a> {
    /// Its round, from 1.
    pub round: u32,
    /// Its cell's name.
    pub cell: &'a str,
    /// Why.
    pub cause: &'a str,
    /// Places and original messages.
    pub details: &'a [String],
}

/// Failures of one cell with the same cause.
struct Failure<'a> {
    /// `memory=1G, rounds 1, 2`.
    what: String,
    cause: &'a str,
    /// Details of the first one.
    details: &'a [String],
}

impl<'a> LabResults<'a> {
    /// For a terminal.
    pub fn text(&self, width: usize) -> String {
        let mut text = format!("{}\n", self.title);
        if !self.question.is_empty() {
            text += &wrap_to(width, "", self.question.split(' '), " ");
        }
        for sentence in self.answer() {
            text += &wrap_to(width, "→ ", sentence.split(' '), " ");
        }
        text += &format!("{}\n\n{}", self.counts(), shown_text(&self.shown, width));
        let plans = self.plans();
        for table in counters_of_cells(&plans) {
            text += &format!("{}\n{}\n", table.caption, table.text(width));
        }
        for (head, lines) in plans_of(&plans) {
            text += &format!("{head}\n");
            lines.iter().for_each(|line| text += &format!("  {line}\n"));
            text += "\n";
        }
        differences_of(&plans).iter().for_each(|words| text += &format!("{words}\n"));
        self.about_the_shown().for_each(|note| text += &format!("{note}\n"));
        for failure in self.failures() {
            text += &format!("failed: {}\n  {}\n", failure.what, failure.cause);
            failure.details.iter().for_each(|line| text += &format!("    {line}\n"));
        }
        self.notes().into_iter().for_each(|note| text += &format!("{note}\n"));
        text
    }

    /// For documents.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n", self.title);
        if !self.question.is_empty() {
            text += &format!("{}\n\n", self.question);
        }
        self.answer().into_iter().for_each(|sentence| text += &format!("* **{}**\n", escaped(&sentence, 400)));
        if !self.answer().is_empty() {
            text.push('\n');
        }
        text += &format!("{}\n\n{}", self.counts(), shown_markdown(&self.shown));
        let plans = self.plans();
        for table in counters_of_cells(&plans) {
            text += &format!("### {}\n\n{}\n", escaped(&table.caption, 200), table.markdown());
        }
        for (head, lines) in plans_of(&plans) {
            text += &format!("{}:\n\n```text\n{}\n```\n\n", escaped(&head, 200), lines.join("\n"));
        }
        differences_of(&plans).iter().for_each(|words| text += &format!("{}\n\n", escaped(words, 400)));
        self.about_the_shown().for_each(|note| text += &format!("{note}\n\n"));
        for failure in self.failures() {
            text += &format!("Failed: {}: {}\n\n", failure.what, failure.cause);
            if !failure.details.is_empty() {
                text += &format!("```text\n{}\n```\n\n", failure.details.join("\n"));
            }
        }
        self.notes().into_iter().for_each(|note| text += &format!("{note}\n\n"));
        text
    }

    /// A page: the results, then the records of each cell. `cells`: names, with the name and the findings of each of
    /// their trials.
    pub fn page(&self, cells: Vec<(String, Vec<(String, Findings)>)>) -> String {
        let mut head = vec![self.question.to_owned()];
        let mut answer = self.answer().into_iter();
        let first = answer.next();
        head.extend(answer);
        head.push(self.counts());
        head.extend(self.about_the_shown());
        head.extend(self.failures().into_iter().map(|failure| format!("Failed: {}: {}", failure.what, failure.cause)));
        head.extend(self.notes());
        head.extend(differences_of(&self.plans()));
        head.retain(|sentence| !sentence.is_empty());
        html(&report_of_cells(self.title, first, head, cells), &self.shown)
    }

    /// Plans and counters of timed statements, where the recipe asks for them.
    fn plans(&self) -> Vec<CellPlans> {
        self.experiment.as_ref().map_or(Vec::new(), Experiment::plans)
    }

    /// What was found, and whether it can be trusted, in sentences.
    fn answer(&self) -> Vec<String> {
        let (kept, _) = self.disturbed;
        if self.measured > 0 && kept >= self.measured {
            let all = if self.measured == 1 { "the only trial was".into() } else { format!("all {kept} trials were") };
            return vec![format!("No answer: {all} disturbed; `assay lab status` says by what.")];
        }
        effects_words(self.shown.iter().filter_map(Shown::pivot))
    }

    /// `8 of 12 trials · seed 1 · experiment 0123456789abcdef`.
    fn counts(&self) -> String {
        format!("{} of {} trials · seed {} · experiment {}", self.measured, self.planned, self.seed, self.hash)
    }

    fn about_the_shown(&self) -> impl Iterator<Item = String> {
        let whole = self.experiment.as_ref();
        self.left_out.iter().cloned().chain(whole.and_then(shared_cpus)).chain(whole.and_then(partly_encrypted))
    }

    /// A failure that occurred in several rounds is listed once.
    fn failures(&self) -> Vec<Failure<'a>> {
        let mut all: Vec<(&FailedTrial<'a>, Vec<String>)> = Vec::new();
        for trial in &self.failures {
            let round = trial.round.to_string();
            match all.iter_mut().find(|(known, _)| (known.cell, known.cause) == (trial.cell, trial.cause)) {
                Some((_, rounds)) => rounds.push(round),
                None => all.push((trial, vec![round])),
            }
        }
        let failure = |(trial, rounds): (&FailedTrial<'a>, Vec<String>)| {
            let plural = if rounds.len() > 1 { "s" } else { "" };
            let what = format!("{}, round{plural} {}", trial.cell, rounds.join(", "));
            Failure { what, cause: trial.cause, details: trial.details }
        };
        all.into_iter().map(failure).collect()
    }

    /// What to do about failures, how many trials were disturbed, what to look at.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.failures.is_empty() {
            notes.push("To retry what failed, run the same command with --again-failed.".to_owned());
        }
        let (kept, repeated) = self.disturbed;
        if kept + repeated > 0 {
            let others = match repeated {
                0 => String::new(),
                1 => ", and 1 other that was repeated".to_owned(),
                many => format!(", and {many} others that were repeated"),
            };
            notes.push(format!("Disturbed: {kept} of the measured trials{others}; `assay lab status` says by what."));
        }
        if self.measured > 0 && !self.look_at.is_empty() {
            notes.push(format!("What to look at: {}", self.look_at));
        }
        notes
    }
}

/// Clients prefer TLS by default, and not all products and versions offer it by default.
fn partly_encrypted(experiment: &Experiment) -> Option<String> {
    let levels = experiment.factors.iter().flat_map(|factor| &factor.levels);
    let meant = |path: &String| path.contains("ssl") || path.contains("tls");
    if levels.flat_map(|level| &level.sets).any(meant) {
        return None;
    }
    let is_encrypted = |trial: &&ExperimentTrial| trial.findings.targets.iter().any(|server| server.tls.is_some());
    let (encrypted, all) = (experiment.trials.iter().filter(is_encrypted).count(), experiment.trials.len());
    (0 < encrypted && encrypted < all).then(|| {
        format!(
            "Connections were encrypted in {encrypted} of the {all} measured trials only, and no factor asks for it: ratios \
             between them also contain what TLS costs. `parameters` of a server can set ssl-mode (PostgreSQL: sslmode)."
        )
    })
}

/// How many trials had too few CPUs for both sides.
fn shared_cpus(experiment: &Experiment) -> Option<String> {
    let is_shared = |warning: &Warning| warning.delay_advice() == Some(&Advice::SeparateFromServer);
    let trials = experiment.trials.iter().filter(|trial| trial.findings.warnings.iter().any(is_shared));
    let trials: BTreeSet<(usize, usize)> = trials.map(|trial| (trial.round, trial.cell)).collect();
    let number = Some(trials.len()).filter(|number| *number > 0)?;
    Some(format!(
        "Load generator and server competed for the CPUs in {number} of the measured trials, which adds to the latencies."
    ))
}
