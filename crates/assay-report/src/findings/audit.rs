//! A workload's audit: its rules with the observed values; and its named rates.
//!
//! `assay_stats::audit` determines the verdicts. A rule about something that was never counted cannot be judged, which
//! its missing value shows.

use assay_record as record;
use assay_record::{Measure, Rate, Record, Rule, Status};
use assay_stats::audit::{AuditVerdict, Bounds, Caution, NOTHING, RuleEstimate, exact, mean, number, share};
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
    /// If the run was too short: about how many trials, transactions or response times would be enough.
    pub enough: Option<u64>,
    /// A run like this one would have failed, nine times in ten, if the true value were at most this.
    pub notices_low: Option<f64>,
    /// The same for at least this.
    pub notices_high: Option<f64>,
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
    /// Numbers of something, and rates.
    Count,
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
    /// The tables were not read before and after the run.
    NotRead,
}

impl RuleFindings {
    /// Whether a reader must see it: the rule failed, or what it needs was not read.
    pub fn is_alarming(&self) -> bool {
        matches!(self.verdict, RuleVerdict::Failed | RuleVerdict::NotRead)
    }
}

/// A named rate, in one stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateFindings {
    /// Its name.
    pub name: String,
    /// The transaction type counted; `None`: all of them.
    pub of: Option<String>,
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
        Measure::Growth { of, .. } => of == name,
        Measure::Mix { .. }
        | Measure::RolledBack { .. }
        | Measure::Percentile { .. }
        | Measure::TableShare { .. }
        | Measure::Rate { .. } => false,
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

/// The rules of a record in a stage of it. Those about the whole run are with the last stage.
pub(crate) fn rules(record: &Record, stage: &record::Stage) -> Vec<RuleFindings> {
    let is_last = record.stages.last().is_some_and(|last| std::ptr::eq(last, stage));
    let statistical = record.rules.iter().filter(|rule| is_statistical(rule)).count();
    let looks = (record.status == Status::Running).then_some(stage.intervals.len() as u64);
    let caution = Caution::of(statistical * record.stages.len(), looks);
    let judged = |rule: &Rule| match &rule.measure {
        Measure::Growth { total, of, most } => is_last.then(|| growth(rule, record, (total, of), *most)).flatten(),
        Measure::TableShare { part, whole } => {
            is_last.then(|| table_share(rule, record, (part, whole), caution)).flatten()
        }
        _ => Some(judge(rule, record, stage, caution)),
    };
    record.rules.iter().filter_map(judged).collect()
}

fn bounds(rule: &Rule) -> Bounds {
    Bounds { low: rule.low.unwrap_or(f64::NEG_INFINITY), high: rule.high.unwrap_or(f64::INFINITY) }
}

/// Whether chance has a part in the verdict.
fn is_statistical(rule: &Rule) -> bool {
    match rule.measure {
        Measure::Growth { .. } => false,
        Measure::Share { .. } | Measure::TableShare { .. } | Measure::Mix { .. } | Measure::RolledBack { .. } => {
            !bounds(rule).is_absolute()
        }
        Measure::Mean { .. } | Measure::Percentile { .. } | Measure::Rate { .. } => true,
    }
}

fn judge(rule: &Rule, record: &Record, stage: &record::Stage, caution: Caution) -> RuleFindings {
    let (bounds, tally) = (bounds(rule), &stage.total);
    let of_type = |name: &str| tally.transactions.iter().find(|one| one.name == name);
    let ended = |name: &str| of_type(name).map_or(0, self::ended);
    let counter = |name: &str| tally.counters.iter().find(|one| one.name == name);
    let share_of = |part: u64, whole: u64| (RuleUnit::Share, whole, share(part, whole, bounds, caution));
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
            (RuleUnit::Mean, count, mean(count, sum, squares, bounds, caution))
        }
        Measure::Percentile { of, ppm } => {
            let response = of_type(of).map(|one| distribution(&one.response)).unwrap_or_default();
            // The percentile is within its limit if at least this many responses are.
            let within = response.at_most([rule.high.unwrap_or(f64::INFINITY) as u64])[0];
            let needed = Bounds { low: f64::from(*ppm) / 1e6, high: f64::INFINITY };
            let [observed] = response.quantiles([*ppm]);
            let of_share = share(within, response.count(), needed, caution);
            let observed = observed.map(|ns| ns as f64);
            let estimate = RuleEstimate { observed, verdict: of_share.verdict, enough: of_share.enough, ..NOTHING };
            (RuleUnit::Ns, response.count(), estimate)
        }
        Measure::Rate { of } => {
            let rate = record.rates.iter().find(|rate| rate.name == *of);
            let counted = rate.map_or(0, |rate| counted(rate, tally));
            // How many events are a rate of one.
            let one = rate.map_or(0.0, |rate| stage.measured_ns as f64 / rate.per_ns as f64);
            let estimate = if one > 0.0 { number(counted, bounds.high * one, caution) } else { NOTHING };
            let per = |number: Option<f64>| number.map(|number| number / one);
            let notices = (per(estimate.notices.0), per(estimate.notices.1));
            (RuleUnit::Count, counted, RuleEstimate { observed: per(estimate.observed), notices, ..estimate })
        }
        Measure::Growth { .. } | Measure::TableShare { .. } => (RuleUnit::Count, 0, NOTHING),
    };
    found(rule, unit, count, estimate)
}

/// What all transactions did, with the totals of the tables. `None` if that is not known: several databases, an agent
/// or a worker that was lost, a run that is in progress or has failed.
fn work_of(record: &Record) -> Option<&record::Work> {
    let has_ended = |status: Status| matches!(status, Status::Complete | Status::Interrupted);
    let is_known = has_ended(record.status)
        && record.manifest.targets.len() == 1
        && record.agents.iter().all(|agent| has_ended(agent.status));
    record.work.as_ref().filter(|_| is_known)
}

/// How much a total of the tables grew, against what was reported. `None` where that is not known.
fn growth(rule: &Rule, record: &Record, (total, of): (&str, &str), most: u64) -> Option<RuleFindings> {
    let work = work_of(record)?;
    let of_type = work.transactions.iter().find(|one| one.name == of);
    let counter = work.counters.iter().find(|one| one.name == of);
    let reported = counter.map(|one| one.sum).or(of_type.map(|one| one.count)).unwrap_or(0);
    let unknown = sum(work.transactions.iter().map(|one| one.unknown));
    let (low, high) = (reported as f64, reported as f64 + unknown as f64 * most as f64);
    let estimate = grown(work, total).map(|grown| exact(grown, low, high));
    let rule = Rule { low: Some(low), high: Some(high), ..rule.clone() };
    Some(read(&rule, RuleUnit::Count, reported, estimate))
}

/// A share of what was found in the tables. `None` where that is not known.
fn table_share(rule: &Rule, record: &Record, (part, whole): (&str, &str), caution: Caution) -> Option<RuleFindings> {
    let work = work_of(record)?;
    let number = |name: &str| grown(work, name).map(|grown| grown.max(0.0) as u64);
    let whole = number(whole);
    let estimate = number(part).zip(whole).map(|(part, whole)| share(part, whole, bounds(rule), caution));
    Some(read(rule, RuleUnit::Share, whole.unwrap_or(0), estimate))
}

/// How much a total grew during the run; `None` if it was not read before and after it.
fn grown(work: &record::Work, total: &str) -> Option<f64> {
    let total = work.totals.iter().find(|one| one.name == total)?;
    Some(total.after? - total.before?)
}

/// A rule about the tables; without an estimate if they were not read.
fn read(rule: &Rule, unit: RuleUnit, count: u64, estimate: Option<RuleEstimate>) -> RuleFindings {
    match estimate {
        Some(estimate) => found(rule, unit, count, estimate),
        None => RuleFindings { verdict: RuleVerdict::NotRead, ..found(rule, unit, count, NOTHING) },
    }
}

fn found(rule: &Rule, unit: RuleUnit, count: u64, estimate: RuleEstimate) -> RuleFindings {
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
        enough: estimate.enough,
        notices_low: estimate.notices.0,
        notices_high: estimate.notices.1,
    }
}

/// Transactions of a type that ended as they should.
pub(crate) fn ended(one: &record::TransactionTally) -> u64 {
    one.count.saturating_add(one.rolled_back)
}

/// The types of a named rate.
fn of_rate<'a>(rate: &'a Rate, tally: &'a record::Tally) -> impl Iterator<Item = &'a record::TransactionTally> {
    tally.transactions.iter().filter(|one| rate.of.as_ref().is_none_or(|of| *of == one.name))
}

/// How many transactions are in a named rate.
fn counted(rate: &Rate, tally: &record::Tally) -> u64 {
    sum(of_rate(rate, tally).map(|one| if rate.rolled_back { ended(one) } else { one.count }))
}

/// The named rates of a record in a stage's tally. The allowed maximum assumes users with the rules' times: it is
/// omitted if those were scaled.
pub(crate) fn rates(record: &Record, tally: &record::Tally, measured_ns: u64) -> Vec<RateFindings> {
    let is_scaled = record.manifest.terminals.is_some_and(|terminals| terminals.think_scale != 1.0);
    let rate = |rate: &Rate| {
        let count = counted(rate, tally);
        let rolled_back = if rate.rolled_back { 0 } else { sum(of_rate(rate, tally).map(|one| one.rolled_back)) };
        let value = per_second(count, measured_ns) * rate.per_ns as f64 / 1e9;
        let nominal = rate.nominal.filter(|nominal| !is_scaled && *nominal > 0.0);
        RateFindings {
            name: rate.name.clone(),
            of: rate.of.clone(),
            per_ns: rate.per_ns,
            rate: value,
            nominal,
            efficiency: nominal.map(|nominal| value / nominal),
            rolled_back,
        }
    };
    record.rates.iter().map(rate).collect()
}
