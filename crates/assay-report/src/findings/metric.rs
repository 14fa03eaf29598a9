//! The metrics that can be compared: one value per stage and trial, by name.
//!
//! The names are those of the JSON without units, and those of `--fail-if`: `tps`, `p99`, `new_order.p99`, `tpmC`,
//! `lines_per_transaction`.

use std::collections::BTreeSet;

use assay_isolation::Phenomenon;
use assay_record::Reading;
use assay_stats::{Scale, trials};
use serde::{Deserialize, Serialize};

use crate::findings::arithmetic::ratio;
use crate::findings::capacity::{Capacity, SearchState};
use crate::findings::course::scope_name;
use crate::findings::latency::LatencyFindings;
pub use crate::findings::metric_unit::MetricUnit;
use crate::findings::run::Findings;
use crate::findings::stage::StageFindings;

/// Transactions per unit of money.
pub(crate) const PER_PRICE: &str = "per_price";

/// A figure that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// `tps`, `p99`, `new_order.p99`.
    pub name: String,
    /// The unit of its values.
    pub unit: MetricUnit,
    /// Which direction is good.
    pub better: Better,
}

/// Which direction is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Throughput.
    Higher,
    /// Times.
    Lower,
    /// Neither: a workload's counter.
    Neither,
}

impl Metric {
    /// What its values are.
    pub(crate) fn scale(&self) -> Scale {
        scale(&self.name, Some(self.unit))
    }
}

/// What the values of a figure are, by its name and unit: the only place that decides it. `unit`: `None` for figures
/// that only experiments show.
pub(crate) fn scale(name: &str, unit: Option<MetricUnit>) -> Scale {
    let is_rate_or_time = match unit {
        Some(MetricUnit::PerTransaction | MetricUnit::Level) => false,
        Some(_) => true,
        None => name == PER_PRICE || name.starts_with("tps_"),
    };
    match name {
        _ if name.ends_with("_growth") => Scale::Difference,
        // A percentage without an end: the deviation may be larger than the mean.
        "tps_variation" => Scale::Count,
        _ if name.ends_with("_percent") => Scale::Share { whole: 100.0 },
        _ if is_rate_or_time => Scale::Ratio,
        // Of transactions, sessions, bytes, errors: often none.
        _ => Scale::Count,
    }
}

/// One metric over the trials of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialsFindings {
    /// One per trial that has it, in order.
    pub values: Vec<f64>,
    /// Their median.
    pub median: f64,
    /// 95 % interval of the median: its lower end. `None` for fewer than five trials.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Largest minus smallest value, divided by the median.
    pub spread: f64,
}

/// Names of metrics that do not depend on the workload. `metrics` makes the rest of its names from those of transaction
/// types, counters, rates and readings.
pub const FIXED_METRICS: [&str; 33] = [
    "tps",
    "qps",
    "p50",
    "p90",
    "p95",
    "p99",
    "p999",
    "mean",
    "max",
    "service_p50",
    "service_p90",
    "service_p95",
    "service_p99",
    "service_p999",
    "service_mean",
    "service_max",
    "lag_p50",
    "lag_p90",
    "lag_p95",
    "lag_p99",
    "lag_p999",
    "lag_mean",
    "lag_max",
    "cpu_per_transaction",
    "outage",
    "failed_per_transaction",
    "errors_per_transaction",
    "retries_per_transaction",
    "anomalies_per_transaction",
    "lost_update_per_transaction",
    "read_skew_per_transaction",
    "write_skew_per_transaction",
    "stale_read_per_transaction",
];

/// Every metric of a stage; `None` if it was not measured.
pub(crate) fn metrics(stage: &StageFindings) -> Vec<(Metric, Option<f64>)> {
    let total = &stage.total;
    let rate = |name: &str, value: f64| (metric(name, MetricUnit::PerSecond, Better::Higher), Some(value));
    let mut all = vec![rate("tps", total.tps), rate("qps", total.qps)];
    all.extend(latencies("", &total.response));
    let cpu = stage.generator.and_then(|generator| generator.cpu_ns_per_transaction);
    all.push((metric("cpu_per_transaction", MetricUnit::Ns, Better::Lower), cpu));
    for one in &total.types {
        let name = format!("{}.", one.name);
        all.push(rate(&format!("{name}tps"), one.tps));
        all.extend(latencies(&name, &one.response));
    }
    all.extend(stage.rates.iter().map(|one| (metric(&one.name, MetricUnit::Own, Better::Higher), Some(one.rate))));
    // Only if there were outages: most runs have none, and need no column for them.
    let outages: u64 = stage.throughput.outages.iter().map(|one| one.length_ns).sum();
    all.push((metric("outage", MetricUnit::Ns, Better::Lower), (outages > 0).then_some(outages as f64)));
    all.extend(latencies("service_", &total.service));
    all.extend(latencies("lag_", &total.lag));
    let transactions = total.transactions as f64;
    let mut each = |name: &str, number: u64, better: Better| {
        let name = format!("{name}_per_transaction");
        all.push((metric(&name, MetricUnit::PerTransaction, better), ratio(number as f64, transactions)));
    };
    each("failed", total.failed, Better::Lower);
    each("errors", total.errors, Better::Lower);
    each("retries", total.retries, Better::Lower);
    for one in &stage.counters {
        each(&one.name, one.sum, Better::Neither);
    }
    for scope in &stage.telemetry {
        let of = scope_name(scope);
        for one in &scope.metrics {
            let unit = if one.reading == Reading::Counter { MetricUnit::PerTransaction } else { MetricUnit::Level };
            let (name, value) = one.compared();
            all.push((metric(&format!("{of}.{name}"), unit, Better::Neither), value));
        }
    }
    all
}

fn latencies(of: &str, found: &LatencyFindings) -> [(Metric, Option<f64>); 7] {
    let ns = |value: Option<u64>| value.map(|ns| ns as f64);
    [
        ("p50", ns(found.p50_ns)),
        ("p90", ns(found.p90_ns)),
        ("p95", ns(found.p95_ns)),
        ("p99", ns(found.p99_ns)),
        ("p999", ns(found.p999_ns)),
        ("mean", found.mean_ns),
        ("max", ns(found.max_ns)),
    ]
    .map(|(name, value)| (metric(&format!("{of}{name}"), MetricUnit::Ns, Better::Lower), value))
}

fn metric(name: &str, unit: MetricUnit, better: Better) -> Metric {
    Metric { name: name.to_owned(), unit, better }
}

/// The numbers of sessions measured by any of `all`, without duplicates, in order of appearance.
pub(crate) fn stage_sessions<'a>(all: impl IntoIterator<Item = &'a Findings>) -> Vec<u32> {
    let mut sessions = Vec::new();
    for findings in all {
        match &findings.capacity {
            Some(_) => sessions.extend(search_sessions(findings)),
            None => sessions.extend(findings.stages.iter().map(|stage| stage.sessions)),
        }
    }
    let mut seen = BTreeSet::new();
    sessions.retain(|number| seen.insert(*number));
    sessions
}

/// A search is compared as one stage, with its fixed number of sessions, or the largest that it may try.
fn search_sessions(findings: &Findings) -> Option<u32> {
    match findings.capacity.as_ref()?.of {
        Capacity::Rate { .. } => findings.stages.first().map(|stage| stage.sessions),
        Capacity::Sessions { max } => Some(max),
    }
}

/// Every metric with so many sessions of one trial.
pub(crate) fn trial_metrics(findings: &Findings, sessions: u32) -> Vec<(Metric, Option<f64>)> {
    let Some(found) = &findings.capacity else {
        let stage = findings.stages.iter().find(|stage| stage.sessions == sessions);
        let mut all = stage.map(metrics).unwrap_or_default();
        for (metric, _) in all.iter_mut().filter(|(metric, _)| metric.name == "tps") {
            metric.unit = findings.task.rate();
        }
        all.extend(anomalies(findings));
        return all;
    };
    if search_sessions(findings) != Some(sessions) {
        return Vec::new();
    }
    let capacity = matches!(found.of, Capacity::Rate { .. }).then(|| {
        // Where both share CPUs, it is the capacity of server and generator together.
        let is_known = matches!(found.state, SearchState::Found | SearchState::SharedCpus);
        let known = found.low.filter(|_| is_known);
        (metric("capacity", MetricUnit::PerSecond, Better::Higher), known)
    });
    capacity.into_iter().chain(findings.main_stage().map(metrics).unwrap_or_default()).collect()
}

/// How often isolation failed in the whole run, with its warm-up, whatever the level permits.
pub(crate) fn anomalies(findings: &Findings) -> Vec<(Metric, Option<f64>)> {
    let Some(found) = &findings.isolation else { return Vec::new() };
    let of_kind = |kind: Option<Phenomenon>| {
        let all = found.verdict.anomalies.iter();
        all.filter(|one| kind.is_none_or(|kind| one.phenomenon == kind)).map(|one| one.count).sum::<u64>()
    };
    let kinds = [
        ("anomalies", None),
        ("lost_update", Some(Phenomenon::LostUpdate)),
        ("read_skew", Some(Phenomenon::ReadSkew)),
        ("write_skew", Some(Phenomenon::WriteSkew)),
        ("stale_read", Some(Phenomenon::StaleRead)),
    ];
    let each = |(name, kind)| {
        let metric = metric(&format!("{name}_per_transaction"), MetricUnit::PerTransaction, Better::Lower);
        (metric, ratio(of_kind(kind) as f64, found.verdict.committed as f64))
    };
    kinds.map(each).into()
}

/// A metric of a run, by its name: of its main stage.
pub fn metric_value(findings: &Findings, name: &str) -> Option<(f64, MetricUnit)> {
    let all = trial_metrics(findings, findings.main_stage()?.sessions);
    all.into_iter().find(|(metric, _)| metric.name == name).and_then(|(metric, value)| Some((value?, metric.unit)))
}

/// All metrics over `all` trials with this number of sessions, in order of appearance.
pub(crate) fn over_trials(all: &[Findings], sessions: u32) -> Vec<(Metric, Option<TrialsFindings>)> {
    let mut found: Vec<(Metric, Vec<f64>)> = Vec::new();
    for (metric, value) in all.iter().flat_map(|one| trial_metrics(one, sessions)) {
        match found.iter_mut().find(|(known, _)| *known == metric) {
            Some((_, values)) => values.extend(value),
            None => found.push((metric, value.into_iter().collect())),
        }
    }
    let of = |(metric, values): (Metric, Vec<f64>)| {
        let found = trials_findings(&values, metric.scale());
        (metric, found)
    };
    found.into_iter().map(of).collect()
}

/// One of these metrics, by its name.
pub(crate) fn metric_over_trials<'a>(
    all: impl Iterator<Item = &'a Findings>,
    sessions: u32,
    name: &str,
) -> Option<TrialsFindings> {
    let of_trial = |one| trial_metrics(one, sessions).into_iter().find(|(metric, _)| metric.name == name);
    let found: Vec<(Metric, f64)> =
        all.filter_map(of_trial).filter_map(|(metric, value)| Some((metric, value?))).collect();
    let values: Vec<f64> = found.iter().map(|(_, value)| *value).collect();
    trials_findings(&values, found.first()?.0.scale())
}

pub(crate) fn trials_findings(values: &[f64], scale: Scale) -> Option<TrialsFindings> {
    let found = trials(values, scale)?;
    Some(TrialsFindings {
        median: found.median,
        low: found.interval.map(|interval| interval.low),
        high: found.interval.map(|interval| interval.high),
        spread: found.spread,
        values: found.values,
    })
}
