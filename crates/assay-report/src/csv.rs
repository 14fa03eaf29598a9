//! One table for spreadsheets: a row per stage, server and transaction type.
//!
//! Figures are plain: no grouping, nanoseconds, empty where there is none. docs/record.md lists the columns.

use crate::comparison::{Comparison, Verdict};
use crate::findings::{Findings, LatencyFindings, StageFindings, TallyFindings};
use crate::metric::{MetricUnit, TrialsFindings};
use crate::summary::Summary;

const HEAD: &str = "stage,sessions,measured_ns,target,type,transactions,tps,failed,retries,statements,qps,errors,\
    response_ns_min,response_ns_mean,response_ns_p50,response_ns_p90,response_ns_p95,response_ns_p99,response_ns_p999,\
    response_ns_max,service_ns_p50,service_ns_p99,lag_ns_p99,lag_ns_max";

/// The table, head first. `target` and `type` are empty in rows of all of them together; figures that are not known
/// by type are empty in rows of one type.
pub fn csv(findings: &Findings) -> String {
    let mut text = format!("{HEAD}\n");
    for (number, stage) in findings.stages.iter().enumerate() {
        tally(&mut text, number, stage, "", &stage.total);
        for (target, one) in findings.targets.iter().zip(&stage.targets) {
            tally(&mut text, number, stage, &target.url, one);
        }
    }
    text
}

const COMPARISON_HEAD: &str = "baseline,candidate,sessions,metric,unit,baseline_trials,baseline_median,baseline_low,\
    baseline_high,candidate_trials,candidate_median,candidate_low,candidate_high,ratio,ratio_low,ratio_high,superiority,\
    verdict,trials_needed";

/// A row per comparison, stage and metric.
pub fn comparison_csv(comparisons: &[Comparison]) -> String {
    let mut text = format!("{COMPARISON_HEAD}\n");
    for one in comparisons {
        for stage in &one.stages {
            for metric in &stage.metrics {
                let mut cells =
                    vec![quoted(&one.baseline.name), quoted(&one.candidate.name), stage.sessions.to_string()];
                cells.extend([quoted(&metric.metric.name), unit(metric.metric.unit).to_owned()]);
                cells.extend(trials(metric.baseline.as_ref()));
                cells.extend(trials(metric.candidate.as_ref()));
                let change = metric.change;
                cells.extend([cell(change.map(|it| it.ratio)), cell(change.and_then(|it| it.low))]);
                cells.extend([cell(change.and_then(|it| it.high)), cell(change.map(|it| it.superiority))]);
                let (verdict, needed) = match change.map(|it| it.verdict) {
                    None => ("", None),
                    Some(Verdict::Better) => ("better", None),
                    Some(Verdict::Worse) => ("worse", None),
                    Some(Verdict::NoDifference) => ("no_difference", None),
                    Some(Verdict::CannotTell { trials_needed }) => ("cannot_tell", Some(trials_needed)),
                };
                cells.extend([verdict.to_owned(), cell(needed)]);
                text.push_str(&(cells.join(",") + "\n"));
            }
        }
    }
    text
}

/// A row per stage, metric and trial.
pub fn summary_csv(summary: &Summary) -> String {
    let mut text = "sessions,metric,unit,trial,value,median,median_low,median_high\n".to_owned();
    for stage in &summary.stages {
        for metric in &stage.metrics {
            let found = metric.trials.as_ref();
            for (at, value) in found.map_or(&[][..], |it| &it.values).iter().enumerate() {
                let [_, median, low, high] = trials(found);
                let name = quoted(&metric.metric.name);
                let (sessions, unit, trial) = (stage.sessions, unit(metric.metric.unit), at + 1);
                text.push_str(&format!("{sessions},{name},{unit},{trial},{value},{median},{low},{high}\n"));
            }
        }
    }
    text
}

fn trials(found: Option<&TrialsFindings>) -> [String; 4] {
    [
        found.map_or(0, |it| it.values.len()).to_string(),
        cell(found.map(|it| it.median)),
        cell(found.and_then(|it| it.low)),
        cell(found.and_then(|it| it.high)),
    ]
}

fn unit(unit: MetricUnit) -> &'static str {
    match unit {
        MetricUnit::PerSecond => "per_second",
        MetricUnit::Ns => "ns",
    }
}

fn tally(text: &mut String, number: usize, stage: &StageFindings, target: &str, tally: &TallyFindings) {
    let mut row = |name: &str, figures: Vec<String>| {
        let mut cells = vec![number.to_string(), stage.sessions.to_string(), stage.measured_ns.to_string()];
        cells.extend([quoted(target), quoted(name)]);
        cells.extend(figures);
        text.push_str(&cells.join(","));
        text.push('\n');
    };
    let mut figures = counts(tally.transactions, tally.tps, tally.failed, tally.retries).to_vec();
    figures.extend([tally.statements.to_string(), tally.qps.to_string(), tally.errors.to_string()]);
    figures.extend(response(&tally.response));
    figures.extend(service(&tally.service));
    figures.extend([cell(tally.lag.p99_ns), cell(tally.lag.max_ns)]);
    row("", figures);
    for one in &tally.types {
        let mut figures = counts(one.transactions, one.tps, one.failed, one.retries).to_vec();
        figures.extend([const { String::new() }; 3]);
        figures.extend(response(&one.response));
        figures.extend(service(&one.service));
        figures.extend([const { String::new() }; 2]);
        row(&one.name, figures);
    }
}

fn counts(transactions: u64, tps: f64, failed: u64, retries: u64) -> [String; 4] {
    [transactions.to_string(), tps.to_string(), failed.to_string(), retries.to_string()]
}

fn response(latencies: &LatencyFindings) -> [String; 8] {
    [
        cell(latencies.min_ns),
        cell(latencies.mean_ns),
        cell(latencies.p50_ns),
        cell(latencies.p90_ns),
        cell(latencies.p95_ns),
        cell(latencies.p99_ns),
        cell(latencies.p999_ns),
        cell(latencies.max_ns),
    ]
}

fn service(latencies: &LatencyFindings) -> [String; 2] {
    [cell(latencies.p50_ns), cell(latencies.p99_ns)]
}

pub(crate) fn cell<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// RFC 4180, and no formula: a spreadsheet would run a name that begins with one of `=+-@`.
pub(crate) fn quoted(name: &str) -> String {
    let name = crate::cells::clean(name, 200);
    let name = if name.starts_with(['=', '+', '-', '@']) { format!("'{name}") } else { name };
    if name.contains([',', '"']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name }
}
