//! Statements compared by `assay sql`: their times, ratios, and whether they returned the same rows.
//!
//! A round runs every case once, in random order: rounds are blocks (`assay_stats::Cells`), so that drift between
//! rounds does not affect the ratios.

use std::collections::BTreeMap;

use assay_record::{Case, Cases, Cold, Suite};
use assay_stats::{Cells as Fit, Contrast, MARGIN_DEFAULT, Observation, Scale, trials};
use serde::Serialize;

use crate::findings::power::{SuiteFigures, suite_figures};
use crate::findings::verdict::ChangeVerdict;

/// The cases and their results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CasesFindings {
    /// The case by which the others are divided; `None`: no case was timed.
    pub base: Option<String>,
    /// The case that is faster than every other one, if the intervals of their ratios say so (together at 95 %).
    pub fastest: Option<String>,
    /// If no case is the fastest: the one with the lowest median, then those that do not differ significantly from it.
    pub fastest_candidates: Vec<String>,
    /// Executions of each case before the first that was timed.
    pub warmup: u32,
    /// Preparation of every execution.
    pub cold: Option<Cold>,
    /// Scope of the cases' counters: `session` or `database`.
    pub counters_of: Option<String>,
    /// What `assay olap` did; `None`: the cases were compared by `assay sql`.
    pub suite: Option<Suite>,
    /// Figures of its parallel streams, and those that are scaled by the size of the data; `None`: there are none.
    pub figures: Option<SuiteFigures>,
    /// In the order given.
    pub cases: Vec<CaseFindings>,
    /// Names of results on which their cases disagree.
    pub disagreements: Vec<String>,
}

/// One named statement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseFindings {
    /// Its name.
    pub name: String,
    /// The timed statement.
    pub sql: String,
    /// Timed executions.
    pub runs: u64,
    /// Their median.
    pub median_ns: Option<f64>,
    /// 95 % interval of the median: its lower end. `None` for fewer than five.
    pub low_ns: Option<f64>,
    /// Its upper end.
    pub high_ns: Option<f64>,
    /// The shortest.
    pub min_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// Ratio of its time to the base's; `None` for the base itself.
    pub ratio: Option<RatioFindings>,
    /// Rows of the last execution.
    pub rows: Option<u64>,
    /// Hash of these rows, in any order.
    pub digest: Option<String>,
    /// The name of the result that it must return, together with other cases.
    pub result: Option<String>,
    /// Whether two executions returned different rows.
    pub result_changed: bool,
    /// Whether the rows were so many that they were hashed while they arrived: the times include that.
    pub large_result: bool,
    /// The plans seen, in the order of their first appearance.
    pub plans: Vec<PlanFindings>,
    /// Increase of the server's counters per execution.
    pub counters: BTreeMap<String, i64>,
    /// Whether another server executes all of it, by foreign tables; `None`: it has none.
    pub pushed_down: Option<bool>,
    /// Rows of tables that the server read in the last execution; `None`: it does not say so.
    pub read_rows: Option<u64>,
    /// Their bytes before compression, likewise.
    pub read_bytes: Option<u64>,
    /// Why it was given up.
    pub failure: Option<String>,
    /// Time of the first execution of a query of `assay olap`.
    pub first_ns: Option<u64>,
    /// The shortest of its later ones.
    pub hot_ns: Option<u64>,
    /// Whether an execution took longer than the time limit.
    pub timed_out: bool,
    /// Rows that it returned, if they were kept.
    #[serde(skip)]
    pub(crate) answer: Vec<Vec<Option<String>>>,
}

/// Ratio of a case's time to the base's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatioFindings {
    /// Below 1: faster than the base.
    pub ratio: f64,
    /// Its interval; all cases' together hold at 95 %.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The verdict.
    pub verdict: ChangeVerdict,
    /// The ratio in assay-stats' type.
    #[serde(skip)]
    pub(crate) found: Contrast,
}

/// A plan with how often it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanFindings {
    /// As text.
    pub text: String,
    /// In the server's machine-readable form.
    pub json: Option<String>,
    /// The text without estimates, by which plans of several records are recognized.
    #[serde(skip)]
    pub(crate) shape: String,
    /// Number of executions before which it was seen.
    pub executions: u64,
    /// The round in which it first appeared, from 1.
    pub first_round: Option<u32>,
}

pub(crate) fn cases_findings(cases: &Cases) -> CasesFindings {
    let median = |case: &Case| trials(&times(case), Scale::Ratio);
    let medians: Vec<Option<assay_stats::TrialCenter>> = cases.cases.iter().map(median).collect();
    let timed = medians.iter().enumerate().filter_map(|(at, found)| Some((at, found.as_ref()?.median)));
    let lowest = timed.clone().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at);
    let named = |name: &String| cases.cases.iter().position(|case| case.name == *name);
    let base = cases.base.as_ref().and_then(named).filter(|at| medians[*at].is_some()).or(lowest);
    let rounds = cases.cases.iter().flat_map(|case| &case.executions).map(|one| one.round).max().unwrap_or(0) as usize;
    let observations = cases.cases.iter().enumerate().flat_map(|(cell, case)| {
        case.executions.iter().map(move |one| Observation {
            cell,
            round: (one.round.max(1) - 1) as usize,
            // Clocks tick in nanoseconds; a logarithm needs something above 0.
            value: one.elapsed_ns.max(1) as f64,
        })
    });
    let observations: Vec<Observation> = observations.take(OBSERVATIONS_MAX).collect();
    let fit = (rounds <= ROUNDS_FITTED_MAX)
        .then(|| Fit::fit(&observations, cases.cases.len(), rounds, Scale::Ratio))
        .flatten()
        .filter(|_| observations.len() < OBSERVATIONS_MAX);
    let family = timed.clone().count().saturating_sub(1);
    let ratio = |at: usize| {
        let base = base.filter(|base| *base != at)?;
        let found = match &fit {
            Some(fit) => fit.contrast(base, at, family, MARGIN_DEFAULT)?,
            None => return None,
        };
        let (low, high) = found.interval.unzip();
        Some(RatioFindings { ratio: found.size, low, high, verdict: verdict(found.verdict), found })
    };
    let name = |at: usize| cases.cases[at].name.clone();
    let is_slower = |lowest: usize, at: usize| {
        let found = fit.as_ref().and_then(|fit| fit.contrast(lowest, at, family, MARGIN_DEFAULT));
        found.is_some_and(|found| found.verdict == assay_stats::Verdict::More)
    };
    let rivals: Vec<usize> = match lowest {
        Some(lowest) => timed.map(|(at, _)| at).filter(|at| *at != lowest && !is_slower(lowest, *at)).collect(),
        None => Vec::new(),
    };
    let candidates = lowest.into_iter().chain(rivals.iter().copied()).map(name);
    CasesFindings {
        base: base.map(name),
        fastest: lowest.filter(|_| rivals.is_empty()).map(name),
        fastest_candidates: if rivals.is_empty() { Vec::new() } else { candidates.collect() },
        warmup: cases.warmup,
        cold: cases.cold,
        counters_of: cases.counters_of.clone(),
        suite: cases.suite.clone(),
        figures: cases.suite.as_ref().and_then(|suite| suite_figures(suite, &cases.cases)),
        cases: cases
            .cases
            .iter()
            .zip(&medians)
            .enumerate()
            .map(|(at, (case, found))| of_case(case, found.as_ref(), ratio(at)))
            .map(
                |case| if cases.suite.is_some() { case } else { CaseFindings { first_ns: None, hot_ns: None, ..case } },
            )
            .collect(),
        disagreements: disagreements(&cases.cases),
    }
}

/// Less time is better.
fn verdict(found: assay_stats::Verdict) -> ChangeVerdict {
    match found {
        assay_stats::Verdict::More => ChangeVerdict::Worse,
        assay_stats::Verdict::Less => ChangeVerdict::Better,
        assay_stats::Verdict::NoDifference => ChangeVerdict::NoDifference,
        assay_stats::Verdict::CannotTell { trials_needed } => ChangeVerdict::CannotTell { trials_needed },
    }
}

/// The cost of a fit is cubic in its rounds.
const ROUNDS_FITTED_MAX: usize = 500;
const OBSERVATIONS_MAX: usize = 100_000;

fn times(case: &Case) -> Vec<f64> {
    case.executions.iter().map(|one| one.elapsed_ns as f64).collect()
}

fn of_case(case: &Case, found: Option<&assay_stats::TrialCenter>, ratio: Option<RatioFindings>) -> CaseFindings {
    let interval = found.and_then(|found| found.interval);
    let plan = |(number, plan): (usize, &assay_record::QueryPlan)| {
        let with_it = || case.executions.iter().filter(move |one| one.plan == Some(number as u32));
        PlanFindings {
            text: plan.text.clone(),
            json: plan.json.clone(),
            shape: if plan.shape.is_empty() { plan.text.clone() } else { plan.shape.clone() },
            executions: with_it().count() as u64,
            first_round: with_it().map(|one| one.round).min(),
        }
    };
    let elapsed = || case.executions.iter().map(|one| one.elapsed_ns);
    CaseFindings {
        name: case.name.clone(),
        sql: case.sql.clone(),
        runs: case.executions.len() as u64,
        median_ns: found.map(|found| found.median),
        low_ns: interval.map(|interval| interval.low.max(0.0)),
        high_ns: interval.map(|interval| interval.high),
        min_ns: elapsed().min(),
        max_ns: elapsed().max(),
        ratio,
        rows: case.rows,
        digest: case.digest.clone(),
        result: case.result.clone(),
        result_changed: case.result_changed,
        large_result: case.large_result,
        plans: case.plans.iter().enumerate().map(plan).collect(),
        counters: case.counters.clone(),
        pushed_down: case.pushed_down,
        read_rows: case.executions.last().and_then(|one| one.read_rows),
        read_bytes: case.executions.last().and_then(|one| one.read_bytes),
        failure: case.failure.clone(),
        first_ns: case.executions.iter().find(|one| one.round == 1).map(|one| one.elapsed_ns),
        hot_ns: case.executions.iter().filter(|one| one.round > 1).map(|one| one.elapsed_ns).min(),
        timed_out: case.timed_out,
        answer: case.answer.clone(),
    }
}

/// Results that differed between two cases, or two executions of one.
fn disagreements(cases: &[Case]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        if let Some(result) = &case.result {
            by_name.entry(result).or_default().push(case);
        }
    }
    let differ = |cases: &[&Case]| {
        let mut known = cases.iter().filter_map(|case| Some((case.rows?, case.digest.as_ref()?)));
        let first = known.next();
        cases.iter().any(|case| case.result_changed) || known.any(|other| Some(other) != first)
    };
    by_name.into_iter().filter(|(_, cases)| differ(cases)).map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fastest(times: &[&[u64]]) -> (Option<String>, Vec<String>) {
        let case = |(number, times): (usize, &&[u64])| {
            let execution = |(round, ms): (usize, &u64)| assay_record::Execution {
                round: round as u32 + 1,
                elapsed_ns: ms * 1_000_000,
                ..Default::default()
            };
            Case {
                name: ["a", "b", "c"][number].to_owned(),
                executions: times.iter().enumerate().map(execution).collect(),
                ..Case::default()
            }
        };
        let found = cases_findings(&Cases { cases: times.iter().enumerate().map(case).collect(), ..Cases::default() });
        (found.fastest, found.fastest_candidates)
    }

    #[test]
    fn a_case_is_the_fastest_if_it_is_told_apart_from_every_other() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let (low, high) = (&[100, 104, 98, 101, 97, 103][..], &[200, 207, 195, 202, 199, 204][..]);
        assert_eq!(fastest(&[high, low]), (Some("b".to_owned()), vec![]));
        assert_eq!(fastest(&[&[101, 103, 99, 102, 97, 104], low]), (None, names(&["b", "a"])));
        assert_eq!(fastest(&[high, low, &[101, 103, 99, 102, 97, 104]]), (None, names(&["b", "c"])));
        // One run of each has no interval; one case alone has no rival.
        assert_eq!(fastest(&[&[100], &[200]]), (None, names(&["a", "b"])));
        assert_eq!(fastest(&[low]), (Some("a".to_owned()), vec![]));
        assert_eq!(fastest(&[]), (None, vec![]));
    }
}
