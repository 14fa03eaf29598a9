//! Comparisons in words: the settings that differ, the doubts, the changes, and the verdict.

use assay_record::Status;

use crate::digits::{change, figure, percent, plural, with_interval};
use crate::findings::comparison::{ChangeFindings, Comparison, MetricComparison, SideFindings, StageComparison};
use crate::findings::judgment::{Judged, Judgment};
use crate::findings::limit::GeneratorLimit;
use crate::findings::metric::{Metric, MetricUnit, TrialsFindings};
use crate::findings::setting::SETTING_WIDTH;
use crate::findings::setting::{Difference, SettingKind};
use crate::findings::verdict::ChangeVerdict;
use crate::plain::clean;
use crate::words::generator::limited;
use crate::words::run::{per_second, sessions};
use crate::words::warning::copies_words;

const NAME_WIDTH: usize = 24;

/// Characters of a side's name in a sentence.
const SIDE_WIDTH: usize = 44;
const VALUE_WIDTH: usize = 60;
/// More records than this are counted, not listed.
const RECORDS_SHOWN: usize = 2;

/// Name, workload, number of trials, servers and records of a side.
pub(crate) fn side_facts(side: &SideFindings) -> Vec<String> {
    let trials = match side.records.len() {
        1 => "1 trial".to_owned(),
        many => format!("{many} trials"),
    };
    let records: Vec<String> = match side.records.as_slice() {
        [first, .., last] if side.records.len() > RECORDS_SHOWN => {
            vec![format!("{} … {}", clean(first, VALUE_WIDTH), clean(last, VALUE_WIDTH))]
        }
        few => few.iter().map(|record| clean(record, VALUE_WIDTH)).collect(),
    };
    let mut facts = vec![clean(&side.name, VALUE_WIDTH), clean(&side.workload, NAME_WIDTH), trials];
    facts.extend(side.servers.iter().map(|server| clean(server, NAME_WIDTH * 2)));
    facts.extend(records);
    facts.dedup();
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// Differences with the same meaning.
pub(crate) struct DifferenceGroup<'a> {
    /// Their meaning, before the list.
    pub(crate) words: &'static str,
    /// Whether they make the comparison doubtful; otherwise they are what is compared.
    pub(crate) is_warning: bool,
    pub(crate) differences: Vec<&'a Difference>,
}

/// Settings that differ between the sides, the most important first.
pub(crate) fn differences_by_kind(differences: &[Difference]) -> Vec<DifferenceGroup<'_>> {
    let kinds = [
        (
            &[SettingKind::Work][..],
            true,
            "the sides did different work, so the server alone does not explain a change:",
        ),
        (&[SettingKind::Generator], true, "the load came from different machines, which may explain a change:"),
        (&[SettingKind::Server, SettingKind::Session, SettingKind::Tag], false, "the sides differ in:"),
    ];
    let groups = kinds.into_iter().map(|(kinds, is_warning, words)| {
        let differences = differences.iter().filter(|one| kinds.contains(&one.kind)).collect();
        DifferenceGroup { words, is_warning, differences }
    });
    groups.filter(|group| !group.differences.is_empty()).collect()
}

/// `on → off`.
pub(crate) fn difference_words(one: &Difference) -> String {
    let values = |values: &[String]| match values {
        [] => "none".to_owned(),
        values => clean(&values.iter().map(|value| named(value)).collect::<Vec<_>>().join(" or "), VALUE_WIDTH),
    };
    format!("{} → {}", values(&one.baseline), values(&one.candidate))
}

pub(crate) fn named(value: &str) -> &str {
    if value.is_empty() { "none" } else { value }
}

/// Doubts about a side.
pub(crate) fn doubts_of(side: &SideFindings) -> Vec<String> {
    let name = clean(&side.name, SETTING_WIDTH);
    let mut doubts = Vec::new();
    let mut warn = |words: String| doubts.push(words);
    for (record, files) in &side.copies {
        let (record, files) = (clean(record, VALUE_WIDTH), copies_words(files));
        warn(format!("{record} was also given as {files}: a trial counts once"));
    }
    for mixed in &side.mixed {
        let values: Vec<String> = mixed.values.iter().map(|value| clean(named(value), NAME_WIDTH)).collect();
        warn(format!(
            "the trials of {name} differ in their settings: {} is {}",
            clean(&mixed.what, VALUE_WIDTH),
            values.join(" or ")
        ));
    }
    for (trial, status) in &side.incomplete {
        let ended = match status {
            Status::Running => "has no end",
            Status::Interrupted => "was interrupted",
            Status::Failed => "failed",
            Status::Complete => continue,
        };
        warn(format!("trial {trial} of {name} {ended}; what it measured until then is included"));
    }
    for limit in GeneratorLimit::ALL {
        let (number, all) = (side.generator.by(limit), side.records.len());
        if number > 0 {
            let trials = if all == 1 { String::new() } else { format!("{number} of {all} trials of ") };
            warn(format!("{} in {trials}{name}: see `assay show`", limited(limit)));
        }
    }
    if side.failed > 0 {
        warn(format!("{} of {name} failed; no figure includes them", plural(side.failed, "transaction")));
    }
    if let Some(drift) = side.drift {
        warn(format!(
            "throughput drifts over the trials of {name}: {} from the first to the last (Mann-Kendall, 95%)",
            change(drift)
        ));
    }
    doubts
}

pub(crate) fn metric_name(metric: &Metric) -> String {
    match metric.name.as_str() {
        "tps" => per_second(metric.unit).into(),
        "capacity" => "capacity tx/s".into(),
        "cpu_per_transaction" => "assay CPU µs/tx".into(),
        name if metric.unit != MetricUnit::Ns => clean(name, NAME_WIDTH),
        name => match name.rsplit_once('.') {
            Some((of, metric)) => format!("{} {metric} ms", clean(of, 13)),
            None => format!("{name} ms"),
        },
    }
}

/// The median and its interval.
pub(crate) fn middle(trials: &TrialsFindings, metric: Option<&MetricComparison>) -> String {
    let scale = match metric.map(|metric| (metric.metric.unit, metric.metric.name.as_str())) {
        Some((MetricUnit::Ns, "cpu_per_transaction")) => 1e3,
        Some((MetricUnit::Ns, _)) => 1e6,
        _ => 1.0,
    };
    match trials.low.zip(trials.high) {
        Some((low, high)) => with_interval(trials.median / scale, low / scale, high / scale),
        None => figure(trials.median / scale),
    }
}

/// The median without its interval.
pub(crate) fn middle_alone(trials: &TrialsFindings, metric: &MetricComparison) -> String {
    middle(&TrialsFindings { low: None, high: None, values: Vec::new(), ..*trials }, Some(metric))
}

/// `+15.6% [+14.1, +17.0]`.
pub(crate) fn change_text(found: &ChangeFindings) -> String {
    let known = match (found.low, found.high) {
        (Some(low), Some(high)) => {
            let [low, high] = [low, high].map(|end| change(end - 1.0).trim_end_matches('%').to_owned());
            format!("[{low}, {high}]")
        }
        _ => "(no interval)".into(),
    };
    format!("{} {known}", change(found.ratio - 1.0))
}

pub(crate) fn ratio(found: &ChangeFindings) -> String {
    let mark = match (found.low, found.high) {
        (Some(low), Some(high)) if low <= 1.0 && 1.0 <= high => "*",
        (Some(_), Some(_)) => "",
        _ => "?",
    };
    // Four digits, if the first of them matters.
    if found.ratio < 9.9995 { format!("{:.3}{mark}", found.ratio) } else { figure(found.ratio) + mark }
}

pub(crate) fn verdict(metric: &str, verdict: ChangeVerdict) -> &'static str {
    let cpu = metric == "cpu_per_transaction";
    match verdict {
        ChangeVerdict::Better if cpu => "less",
        ChangeVerdict::Worse if cpu => "more",
        ChangeVerdict::More => "more",
        ChangeVerdict::Less => "less",
        ChangeVerdict::Better => "faster",
        ChangeVerdict::Worse => "slower",
        ChangeVerdict::NoDifference => "the same",
        ChangeVerdict::CannotTell { .. } => "cannot tell",
    }
}

/// The verdict in a sentence; empty if a side did not measure what counts.
pub(crate) fn conclusion(found: &Comparison, stage: &StageComparison) -> Option<String> {
    let metric = stage.metric(&found.headline)?;
    let change = metric.change?;
    let (mut baseline, mut candidate) =
        (clean(&found.baseline.name, SIDE_WIDTH), clean(&found.candidate.name, SIDE_WIDTH));
    if baseline == candidate {
        // They differ in the truncated part.
        (baseline, candidate) = ("the baseline".into(), "the candidate".into());
    }
    let median = |side: &Option<TrialsFindings>| side.as_ref().map(|side| middle_alone(side, metric));
    let medians = match (median(&metric.baseline), median(&metric.candidate)) {
        (Some(before), Some(after)) => format!("{before} → {after}, "),
        _ => String::new(),
    };
    let name = metric_name(&metric.metric);
    let figures = format!("{name} {medians}{}", change_text(&change));
    if found.has_other_workload() {
        let names = (clean(&found.baseline.workload, NAME_WIDTH), clean(&found.candidate.workload, NAME_WIDTH));
        return Some(format!("not comparable: {} and {} are different workloads; {figures}", names.0, names.1));
    }
    if found.has_other_load(stage) {
        let load = match (stage.sessions, stage.candidate_sessions) {
            (one, other) if one == other => "another load".to_owned(),
            (one, other) => format!("{} instead of {one}", sessions(other)),
        };
        return Some(format!(
            "{candidate} ran with {load}: {figures}; this compares two steps of a ladder, not two settings of a server"
        ));
    }
    Some(match change.verdict {
        ChangeVerdict::Better | ChangeVerdict::Worse | ChangeVerdict::More | ChangeVerdict::Less => {
            let word = verdict(&metric.metric.name, change.verdict);
            let larger = (change.superiority * change.pairs as f64).round();
            let pairs = if change.ratio > 1.0 { larger } else { change.pairs as f64 - larger };
            format!(
                "{candidate} is {word} than {baseline}: {figures} at 95%, in {pairs} of {} pairs of trials",
                change.pairs
            )
        }
        ChangeVerdict::NoDifference => {
            format!("no difference found: {figures} at 95% is within ±{}", percent(found.margin))
        }
        ChangeVerdict::CannotTell { trials_needed } => {
            let trials = |side: &Option<TrialsFindings>| side.as_ref().map_or(0, |side| side.values.len());
            let there = trials(&metric.baseline).min(trials(&metric.candidate));
            let more = trials_needed.saturating_sub(there);
            match change.low {
                None => format!(
                    "no verdict on {candidate} against {baseline}: {figures}; a confidence interval needs at least 4 trials \
                     per side (there are {there})"
                ),
                Some(_) => format!(
                    "cannot tell whether {candidate} is faster or slower than {baseline}: {figures} at 95%; {more} more trials \
                     per side ({trials_needed} in all) would find a difference of {}",
                    percent(found.margin)
                ),
            }
        }
    })
}

/// The outcome of a condition in one of `several` stages.
pub(crate) fn judgment_words(one: &Judgment, several: bool) -> String {
    let at = if several { format!(" with {}", sessions(one.sessions)) } else { String::new() };
    let by = one.change.map_or("not known".into(), change);
    match one.outcome {
        Judged::Met => format!("met: the change{at} is {by}"),
        Judged::TooFewTrials => {
            format!("cannot tell: the change{at} is {by}, but a confidence interval needs 4 trials per side")
        }
        Judged::MayBeChance => {
            format!("cannot tell: the change{at} is {by}, but may be chance: more trials are needed")
        }
        Judged::NotMet => format!("not met: the change{at} is {by}"),
        Judged::Unknown => format!("cannot tell{at}: one side lacks this metric"),
    }
}
