//! Statements compared by `assay sql`: their times, ratios, and whether they returned the same rows.
//!
//! A round runs every case once, in random order: rounds are blocks (`assay_stats::Blocks`), so that drift between
//! rounds does not affect the ratios.

use std::collections::BTreeMap;

use assay_record::{Case, Cases, Cold};
use assay_stats::{Blocks, MARGIN_DEFAULT, Observation, Ratio, trials};
use serde::Serialize;

use crate::findings::verdict::Verdict;

/// The cases and their results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CasesFindings {
    /// The case by which the others are divided; `None`: no case was timed.
    pub base: Option<String>,
    /// The case with the lowest median.
    pub fastest: Option<String>,
    /// Executions of each case before the first that was timed.
    pub warmup: u32,
    /// What was done before every execution.
    pub cold: Option<Cold>,
    /// Scope of the cases' counters: `session` or `database`.
    pub counters_of: Option<String>,
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
    /// The plans seen, in the order of their first appearance.
    pub plans: Vec<PlanFindings>,
    /// How much one execution increased the server's counters.
    pub counters: BTreeMap<String, i64>,
    /// Why it was given up.
    pub failure: Option<String>,
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
    pub verdict: Verdict,
    /// The same in assay-stats' type.
    #[serde(skip)]
    pub(crate) found: Ratio,
}

/// A plan with how often it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanFindings {
    /// As text.
    pub text: String,
    /// In the server's machine-readable form.
    pub json: Option<String>,
    /// Number of executions before which it was seen.
    pub executions: u64,
    /// The round in which it first appeared, from 1.
    pub first_round: Option<u32>,
}

pub(crate) fn cases_findings(cases: &Cases) -> CasesFindings {
    let median = |case: &Case| trials(&times(case));
    let medians: Vec<Option<assay_stats::Trials>> = cases.cases.iter().map(median).collect();
    let timed = medians.iter().enumerate().filter_map(|(at, found)| Some((at, found.as_ref()?.median)));
    let fastest = timed.clone().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at);
    let named = |name: &String| cases.cases.iter().position(|case| case.name == *name);
    let base = cases.base.as_ref().and_then(named).filter(|at| medians[*at].is_some()).or(fastest);
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
        .then(|| Blocks::fit(&observations, cases.cases.len(), rounds))
        .flatten()
        .filter(|_| observations.len() < OBSERVATIONS_MAX);
    let family = timed.count().saturating_sub(1);
    let ratio = |at: usize| {
        let base = base.filter(|base| *base != at)?;
        let found = match &fit {
            Some(fit) => fit.ratio(base, at, family, MARGIN_DEFAULT)?,
            None => return None,
        };
        let (low, high) = found.interval.unzip();
        Some(RatioFindings { ratio: found.ratio, low, high, verdict: verdict(found.verdict), found })
    };
    let name = |at: usize| cases.cases[at].name.clone();
    CasesFindings {
        base: base.map(name),
        fastest: fastest.map(name),
        warmup: cases.warmup,
        cold: cases.cold,
        counters_of: cases.counters_of.clone(),
        cases: cases
            .cases
            .iter()
            .zip(&medians)
            .enumerate()
            .map(|(at, (case, found))| of_case(case, found.as_ref(), ratio(at)))
            .collect(),
        disagreements: disagreements(&cases.cases),
    }
}

/// Less time is better.
fn verdict(found: assay_stats::Verdict) -> Verdict {
    match found {
        assay_stats::Verdict::More => Verdict::Worse,
        assay_stats::Verdict::Less => Verdict::Better,
        assay_stats::Verdict::NoDifference => Verdict::NoDifference,
        assay_stats::Verdict::CannotTell { trials_needed } => Verdict::CannotTell { trials_needed },
    }
}

/// The cost of a fit is cubic in its rounds.
const ROUNDS_FITTED_MAX: usize = 500;
const OBSERVATIONS_MAX: usize = 100_000;

fn times(case: &Case) -> Vec<f64> {
    case.executions.iter().map(|one| one.elapsed_ns as f64).collect()
}

fn of_case(case: &Case, found: Option<&assay_stats::Trials>, ratio: Option<RatioFindings>) -> CaseFindings {
    let interval = found.and_then(|found| found.interval);
    let plan = |(number, plan): (usize, &assay_record::QueryPlan)| {
        let with_it = || case.executions.iter().filter(move |one| one.plan == Some(number as u32));
        PlanFindings {
            text: plan.text.clone(),
            json: plan.json.clone(),
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
        plans: case.plans.iter().enumerate().map(plan).collect(),
        counters: case.counters.clone(),
        failure: case.failure.clone(),
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
