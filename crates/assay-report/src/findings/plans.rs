//! Plans and counters of timed statements in an experiment, over all trials of a cell.

use std::collections::BTreeMap;

use crate::findings::arithmetic::median;
use crate::findings::cases::CaseFindings;
use crate::findings::experiment::{Experiment, FactorAxis};

/// The axis of timed statements.
const CASE: &str = "case";

/// The statements of one cell.
pub(crate) struct CellPlans {
    /// The levels of the other factors: `optimizer=off`; empty: there are none.
    pub(crate) place: String,
    /// In the order of the recipe; without those that have neither a plan nor counters.
    pub(crate) cases: Vec<CasePlans>,
}

/// One statement.
pub(crate) struct CasePlans {
    pub(crate) name: String,
    /// Plans that differ by more than their estimates, the most frequent first, with the number of executions.
    pub(crate) plans: Vec<CasePlan>,
    /// Increase of the server's counters per execution: the median of the trials.
    pub(crate) counters: BTreeMap<String, f64>,
}

/// A plan.
pub(crate) struct CasePlan {
    pub(crate) text: String,
    /// Without estimates.
    pub(crate) shape: String,
    pub(crate) executions: u64,
}

impl Experiment {
    /// What the trials know about the plans and counters of their statements; empty: nothing.
    pub(crate) fn plans(&self) -> Vec<CellPlans> {
        let Ok(FactorAxis::Factor(cases)) = self.axis(CASE) else { return Vec::new() };
        let others: Vec<FactorAxis> =
            (0..self.factors.len()).filter(|other| *other != cases).map(FactorAxis::Factor).collect();
        let mut all = Vec::new();
        for place in self.combinations(&others) {
            let case = |(number, name): (usize, String)| {
                let at = place.iter().copied().chain([(FactorAxis::Factor(cases), number)]);
                let cell = self.cell(at).0?;
                let trials = self.trials.iter().filter(|trial| trial.cell == cell);
                let found = trials.filter_map(|trial| trial.findings.cases.as_ref());
                of_case(name, found.flat_map(|cases| &cases.cases))
            };
            let own: Vec<CasePlans> =
                self.levels(FactorAxis::Factor(cases)).into_iter().enumerate().filter_map(case).collect();
            if !own.is_empty() {
                all.push(CellPlans { place: self.facet_name(&place), cases: own });
            }
        }
        all
    }
}

fn of_case<'a>(name: String, trials: impl Iterator<Item = &'a CaseFindings>) -> Option<CasePlans> {
    let mut plans: Vec<CasePlan> = Vec::new();
    let mut counters: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut number = 0;
    for trial in trials {
        number += 1;
        for plan in &trial.plans {
            match plans.iter_mut().find(|known| known.shape == plan.shape) {
                Some(known) => known.executions = known.executions.saturating_add(plan.executions),
                None => plans.push(CasePlan {
                    text: plan.text.clone(),
                    shape: plan.shape.clone(),
                    executions: plan.executions,
                }),
            }
        }
        for (counter, value) in &trial.counters {
            counters.entry(counter.clone()).or_default().push(*value as f64);
        }
    }
    plans.sort_by_key(|plan| std::cmp::Reverse(plan.executions));
    // A counter that a trial does not list did not move in it.
    let center = |(name, mut values): (String, Vec<f64>)| {
        values.resize(number, 0.0);
        Some((name, median(values)?))
    };
    let counters: BTreeMap<String, f64> = counters.into_iter().filter_map(center).collect();
    (!plans.is_empty() || !counters.is_empty()).then_some(CasePlans { name, plans, counters })
}
