//! The answer of a report in one sentence: the heading of a page.

use assay_record::Status;

use crate::digits::{figure, ms, percent, seconds};
use crate::findings::comparison::{ChangeFindings, Comparison};
use crate::findings::metric::Metric;
use crate::findings::report::Report;
use crate::findings::run::Findings;
use crate::findings::stage::StageFindings;
use crate::findings::verdict::ChangeVerdict;
use crate::plain::clean;
use crate::words::capacity::capacity_words;
use crate::words::cases;
use crate::words::comparison::change_text;
use crate::words::isolation::isolation_answer;
use crate::words::run::{clients, number_of, per_second};
use crate::words::summary::{capitalized, over_trials};

/// Longest name of a workload's own measure of throughput.
const OWN_WIDTH: usize = 24;

const NAME_WIDTH: usize = 60;

/// `17,535 NOPM, p99 16.0 ms`, `off is 5.3× as fast as on [3.8, 8.0]`; `None` if there is nothing to say.
pub(crate) fn verdict(report: &Report) -> Option<String> {
    let words = match (&report.entries[..], &report.comparisons[..]) {
        ([], _) => return None,
        ([entry], _) => of_run(&entry.findings)?,
        (entries, []) if report.settings == 1 => over_trials(&entries.iter().collect::<Vec<_>>()),
        (_, []) => return None,
        (_, [comparison]) => of_comparison(comparison)?,
        (_, comparisons) => of_comparisons(comparisons)?,
    };
    Some(capitalized(&words))
}

/// The beginning of a run's answer: `1,000 tx/s`, `4,000 NOPM`, `capacity 400 tx/s`.
pub(crate) fn headline(stage: &StageFindings, findings: &Findings) -> String {
    match (&findings.capacity, stage.rates.first()) {
        (Some(found), _) => capacity_words(found).split(':').next().unwrap_or_default().to_owned(),
        (None, Some(own)) => format!("{} {}", figure(own.rate), clean(&own.name, OWN_WIDTH)),
        (None, None) => format!("{} {}", figure(stage.total.tps), per_second(findings.task.rate())),
    }
}

fn of_run(findings: &Findings) -> Option<String> {
    if let Some(found) = &findings.isolation {
        return Some(isolation_answer(found));
    }
    if let Some(found) = &findings.cases {
        return if found.suite.is_none() { cases::conclusion(found) } else { None };
    }
    let stage = findings.main_stage().filter(|stage| stage.measured_ns > 0);
    let Some(stage) = stage else {
        return (findings.status == Status::Failed).then(|| format!("failed after {}", seconds(findings.elapsed_ns)));
    };
    if let Some(found) = &findings.capacity {
        return Some(capacity_words(found));
    }
    let with = match findings.stages.len() {
        0 | 1 => String::new(),
        _ => format!(" with {}", clients(findings, stage.sessions)),
    };
    // Latencies of a workload's own measure are those of its transaction.
    let of = stage.rates.first().and_then(|own| own.of.as_ref());
    let of_type = of.and_then(|name| stage.total.types.iter().find(|one| one.name == *name));
    let (name, response) = match of_type {
        Some(one) => (format!("{} ", clean(&one.name, NAME_WIDTH)), &one.response),
        None => (String::new(), &stage.total.response),
    };
    let p99 = response.p99_ns.map_or(String::new(), |ns| format!(", {name}p99 {} ms", ms(Some(ns))));
    Some(format!("{}{with}{p99}", headline(stage, findings)))
}

/// One candidate: how much faster it is, if it is that at every number of sessions.
fn of_comparison(found: &Comparison) -> Option<String> {
    let all: Vec<(&Metric, ChangeFindings)> = found
        .stages
        .iter()
        .filter_map(|stage| stage.metric(&found.headline))
        .filter_map(|one| Some((&one.metric, one.change?)))
        .collect();
    if found.stages.iter().any(|stage| found.has_other_load(stage)) {
        return None;
    }
    let (candidate, baseline) = (clean(&found.candidate.name, NAME_WIDTH), clean(&found.baseline.name, NAME_WIDTH));
    if found.has_other_workload() {
        let workloads = (clean(&found.baseline.workload, NAME_WIDTH), clean(&found.candidate.workload, NAME_WIDTH));
        return Some(format!("{} and {} are different workloads: not comparable", workloads.0, workloads.1));
    }
    match &all[..] {
        [] => None,
        [(metric, change)] => Some(match change.verdict {
            ChangeVerdict::CannotTell { .. } => {
                format!("cannot tell {candidate} from {baseline}: {}", change_text(change, metric))
            }
            ChangeVerdict::NoDifference => {
                format!("{candidate} and {baseline} are the same within ±{}", percent(found.margin))
            }
            verdict => change_words(metric, &candidate, &baseline, change, verdict),
        }),
        all => {
            let is = |which: fn(ChangeVerdict) -> bool| all.iter().filter(|(_, change)| which(change.verdict)).count();
            let better = is(|verdict| verdict == ChangeVerdict::Better);
            let worse = is(|verdict| verdict == ChangeVerdict::Worse);
            let same = is(|verdict| verdict == ChangeVerdict::NoDifference);
            let unknown = all.len() - better - worse - same;
            let steps = all.len();
            Some(match (better, worse, same, unknown) {
                _ if better == steps => format!("{candidate} is faster than {baseline} at all {steps} steps"),
                _ if worse == steps => format!("{candidate} is slower than {baseline} at all {steps} steps"),
                _ if unknown == steps => format!("cannot tell {candidate} from {baseline} at any of {steps} steps"),
                _ => {
                    let counts = [(better, "faster"), (worse, "slower"), (same, "the same"), (unknown, "undecided")];
                    let counts = counts.iter().filter(|(number, _)| *number > 0);
                    let counts: Vec<String> = counts.map(|(number, words)| format!("{words} at {number}")).collect();
                    format!("{candidate} against {baseline}: {} of {steps} steps", counts.join(", "))
                }
            })
        }
    }
}

/// Several candidates: how many of them are faster.
fn of_comparisons(all: &[Comparison]) -> Option<String> {
    let baseline = clean(&all.first()?.baseline.name, NAME_WIDTH);
    let of = |found: &Comparison| match &found.stages[..] {
        [stage] if !found.has_other_load(stage) => Some(stage.metric(&found.headline)?.change?.verdict),
        _ => None,
    };
    let verdicts: Vec<ChangeVerdict> = all.iter().map(of).collect::<Option<_>>()?;
    let is = |which: ChangeVerdict| verdicts.iter().filter(|verdict| **verdict == which).count();
    let counts = [
        (is(ChangeVerdict::Better), "faster"),
        (is(ChangeVerdict::Worse), "slower"),
        (is(ChangeVerdict::NoDifference), "the same"),
    ];
    let unknown = verdicts.len() - counts.iter().map(|(number, _)| number).sum::<usize>();
    let counts = counts.into_iter().chain([(unknown, "cannot be told apart")]).filter(|(number, _)| *number > 0);
    let counts: Vec<String> = counts.map(|(number, words)| format!("{number} {words}")).collect();
    Some(format!("{} against {baseline}: {}", number_of(all.len() as u64, "setting"), counts.join(", ")))
}

/// From twice as fast on as a factor, otherwise in percent.
fn change_words(
    metric: &Metric,
    candidate: &str,
    baseline: &str,
    change: &ChangeFindings,
    verdict: ChangeVerdict,
) -> String {
    const FACTOR_MIN: f64 = 2.0;
    let by = change_text(change, metric);
    if metric.name != "tps" {
        let direction = if change.is_more() { "higher" } else { "lower" };
        return format!("{candidate} has a {direction} {} than {baseline}: {by}", metric.name);
    }
    match (verdict, change.ratio.zip(change.low.zip(change.high))) {
        (ChangeVerdict::Better, Some((ratio, (low, high)))) if ratio >= FACTOR_MIN => {
            let [ratio, low, high] = [ratio, low, high].map(times);
            format!("{candidate} is {ratio}× as fast as {baseline} [{low}, {high}]")
        }
        (ChangeVerdict::Better | ChangeVerdict::More, _) => format!("{candidate} is faster than {baseline}: {by}"),
        _ => format!("{candidate} is slower than {baseline}: {by}"),
    }
}

/// Two digits, as a person would say it.
fn times(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.1}") } else { figure(ratio.round()) }
}
