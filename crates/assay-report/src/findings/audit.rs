//! A workload's audit: its rules with the observed values; and its named rates.
//!
//! `assay_stats::audit` determines the verdicts. A rule about something that was never counted cannot be judged, which
//! its missing value shows.

use assay_record as record;
use assay_record::{Measure, Rate, Record, Rule};
use assay_stats::audit::{AuditVerdict, Bounds, RuleEstimate, mean, share};
use serde::Serialize;

use crate::findings::arithmetic::{per_second, sum};
use crate::findings::latency::distribution;

/// One rule of the audit, in one stage. Values are shares of one, means, or nanoseconds, as `unit` says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleFindings {
    /// Its name.
    pub name: String,
    /// The clause of the workload's specification; may be empty.
    pub clause: String,
    /// The unit of the values.
    pub unit: RuleUnit,
    /// The observed value; `None`: nothing was observed.
    pub observed: Option<f64>,
    /// Ends of the 95 % interval of the true value; `None` if too little was observed, and for percentiles.
    pub interval: Option<(f64, f64)>,
    /// Smallest value allowed.
    pub low: Option<f64>,
    /// Largest value allowed.
    pub high: Option<f64>,
    /// Trials, transactions or response times it was observed in.
    pub count: u64,
    /// Whether the rule was kept.
    pub verdict: RuleVerdict,
}

/// The unit of a rule's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleUnit {
    /// Shares of one.
    Share,
    /// Means of whole numbers.
    Mean,
    /// Nanoseconds.
    Ns,
}

/// Whether a rule was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleVerdict {
    /// Within the limits.
    Passed,
    /// Outside the limits.
    Failed,
    /// The run was too short for a verdict.
    TooShort,
}

/// A named rate, in one stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateFindings {
    /// Its name.
    pub name: String,
    /// The time unit of the rate.
    pub per_ns: u64,
    /// How many.
    pub rate: f64,
    /// The highest rate that the workload's rules allow; `None` if think times were scaled.
    pub nominal: Option<f64>,
    /// `rate` as a share of that.
    pub efficiency: Option<f64>,
    /// Transactions of its type that were rolled back on purpose and are not included.
    pub rolled_back: u64,
}

/// A counter of the workload in one stage, over successful transactions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterFindings {
    /// Its name.
    pub name: String,
    /// The total count.
    pub sum: u64,
    /// The sum per second.
    pub per_s: f64,
    /// Transactions that counted anything.
    pub transactions: u64,
    /// Mean count of such a transaction.
    pub mean: Option<f64>,
    /// Whether a rule of the audit uses it, so that reports show it there.
    pub audited: bool,
}

/// The counters of a stage's tally.
pub(crate) fn counters(rules: &[Rule], tally: &record::Tally, measured_ns: u64) -> Vec<CounterFindings> {
    let looks_at = |rule: &Rule, name: &str| match &rule.measure {
        Measure::Share { part, whole } => part == name || whole == name,
        Measure::Mean { of } => of == name,
        Measure::Mix { .. } | Measure::RolledBack { .. } | Measure::Percentile { .. } => false,
    };
    let counter = |one: &record::CounterTally| CounterFindings {
        name: one.name.clone(),
        sum: one.sum,
        per_s: per_second(one.sum, measured_ns),
        transactions: one.transactions,
        mean: (one.transactions > 0).then(|| one.sum as f64 / one.transactions as f64),
        audited: rules.iter().any(|rule| looks_at(rule, &one.name)),
    };
    tally.counters.iter().map(counter).collect()
}

/// The rules of a record in a stage's tally.
pub(crate) fn rules(rules: &[Rule], tally: &record::Tally) -> Vec<RuleFindings> {
    rules.iter().map(|rule| judge(rule, tally)).collect()
}

fn judge(rule: &Rule, tally: &record::Tally) -> RuleFindings {
    let bounds = Bounds { low: rule.low.unwrap_or(f64::NEG_INFINITY), high: rule.high.unwrap_or(f64::INFINITY) };
    let of_type = |name: &str| tally.transactions.iter().find(|one| one.name == name);
    let ended = |name: &str| of_type(name).map_or(0, ended);
    let counter = |name: &str| tally.counters.iter().find(|one| one.name == name);
    let share_of = |part: u64, whole: u64| (RuleUnit::Share, whole, share(part, whole, bounds));
    let (unit, count, estimate) = match &rule.measure {
        Measure::Share { part, whole } => {
            let number = |name: &str| counter(name).map_or_else(|| ended(name), |counter| counter.sum);
            share_of(number(part), number(whole))
        }
        Measure::Mix { of } => share_of(ended(of), sum(tally.transactions.iter().map(self::ended))),
        Measure::RolledBack { of } => share_of(of_type(of).map_or(0, |one| one.rolled_back), ended(of)),
        Measure::Mean { of } => {
            let (count, sum, squares) =
                counter(of).map_or((0, 0.0, 0.0), |one| (one.transactions, one.sum as f64, one.squares as f64));
            (RuleUnit::Mean, count, mean(count, sum, squares, bounds))
        }
        Measure::Percentile { of, ppm } => {
            let response = of_type(of).map(|one| distribution(&one.response)).unwrap_or_default();
            // The percentile is within its limit if at least this many responses are.
            let within = response.counts(&[rule.high.unwrap_or(f64::INFINITY) as u64])[0];
            let needed = Bounds { low: f64::from(*ppm) / 1e6, high: f64::INFINITY };
            let [observed] = response.quantiles([*ppm]);
            let verdict = share(within, response.count(), needed).verdict;
            let observed = observed.map(|ns| ns as f64);
            (RuleUnit::Ns, response.count(), RuleEstimate { observed, interval: None, verdict })
        }
    };
    RuleFindings {
        name: rule.name.clone(),
        clause: rule.clause.clone(),
        unit,
        observed: estimate.observed,
        interval: estimate.interval,
        low: rule.low,
        high: rule.high,
        count,
        verdict: match estimate.verdict {
            AuditVerdict::Passed => RuleVerdict::Passed,
            AuditVerdict::Failed => RuleVerdict::Failed,
            AuditVerdict::TooShort => RuleVerdict::TooShort,
        },
    }
}

/// Transactions of a type that ended as they should.
pub(crate) fn ended(one: &record::TransactionTally) -> u64 {
    one.count.saturating_add(one.rolled_back)
}

/// The named rates of a record in a stage's tally. The allowed maximum assumes users with the rules' times: it is
/// omitted if those were scaled.
pub(crate) fn rates(record: &Record, tally: &record::Tally, measured_ns: u64) -> Vec<RateFindings> {
    let is_scaled = record.manifest.terminals.is_some_and(|terminals| terminals.think_scale != 1.0);
    let rate = |rate: &Rate| {
        let counted = || tally.transactions.iter().filter(|one| rate.of.as_ref().is_none_or(|of| *of == one.name));
        let count = sum(counted().map(|one| if rate.rolled_back { ended(one) } else { one.count }));
        let rolled_back = if rate.rolled_back { 0 } else { sum(counted().map(|one| one.rolled_back)) };
        let value = per_second(count, measured_ns) * rate.per_ns as f64 / 1e9;
        let nominal = rate.nominal.filter(|nominal| !is_scaled && *nominal > 0.0);
        RateFindings {
            name: rate.name.clone(),
            per_ns: rate.per_ns,
            rate: value,
            nominal,
            efficiency: nominal.map(|nominal| value / nominal),
            rolled_back,
        }
    };
    record.rates.iter().map(rate).collect()
}
