//! Comparisons in words: the settings that differ, the doubts, the changes, and the verdict.

use assay_record::Status;
use assay_stats::TRIALS_MAX;

use crate::digits::{change, count, figure, half_digit, percent, plural, signed, with_interval};
use crate::findings::comparison::{
    ChangeFindings, ChangeSize, Comparison, MetricComparison, SideFindings, StageComparison,
};
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

/// The factor from the unit of a table to that of the values.
fn unit(metric: &Metric) -> f64 {
    match (metric.unit, metric.name.as_str()) {
        (MetricUnit::Ns, "cpu_per_transaction") => 1e3,
        (MetricUnit::Ns, _) => 1e6,
        _ => 1.0,
    }
}

/// The median and its interval.
pub(crate) fn middle(trials: &TrialsFindings, metric: &Metric) -> String {
    let scale = unit(metric);
    match trials.low.zip(trials.high) {
        Some((low, high)) => with_interval(trials.median / scale, low / scale, high / scale),
        None => figure(trials.median / scale),
    }
}

/// The median without its interval.
pub(crate) fn middle_alone(trials: &TrialsFindings, metric: &Metric) -> String {
    figure_in_unit(trials.median, metric)
}

fn figure_in_unit(value: f64, metric: &Metric) -> String {
    figure(value / unit(metric))
}

/// `+15.6%`; of a difference `+1.20`, `+1.20 points`.
fn size_text(size: ChangeSize, metric: &Metric) -> String {
    let points = if metric.name.ends_with("_percent") { " points" } else { "" };
    match size {
        ChangeSize::Ratio(ratio) => change(ratio - 1.0),
        ChangeSize::Difference(difference) => signed(difference / unit(metric)) + points,
    }
}

/// `+15.6% [+14.1, +17.0]`; of a difference `+1.20 [+0.95, +1.41]`.
pub(crate) fn change_text(found: &ChangeFindings, metric: &Metric) -> String {
    let end = |end: f64| match found.size() {
        ChangeSize::Ratio(_) => change(end - 1.0).trim_end_matches('%').to_owned(),
        ChangeSize::Difference(_) => signed(end / unit(metric)),
    };
    let known = match (found.low, found.high) {
        (Some(low), Some(high)) => format!("[{}, {}]", end(low), end(high)),
        _ => "(no interval)".into(),
    };
    format!("{} {known}", size_text(found.size(), metric))
}

/// Whether the change is another one than that of the two medians as their digits are shown.
pub(crate) fn is_not_of_medians(one: &MetricComparison) -> bool {
    let (Some(baseline), Some(candidate), Some(found)) = (&one.baseline, &one.candidate, &one.change) else {
        return false;
    };
    let [before, after] = [baseline.median, candidate.median].map(|median| median / unit(&one.metric));
    match found.size() {
        ChangeSize::Ratio(ratio) => !is_ratio_of(ratio, before, after),
        ChangeSize::Difference(difference) => {
            let rounding = half_digit(before) + half_digit(after);
            let difference = difference / unit(&one.metric);
            (after - before - difference).abs() > rounding + half_digit(difference)
        }
    }
}

/// Whether the percentage of a ratio is that of two figures, as far as the digits of all three go.
pub(crate) fn is_ratio_of(ratio: f64, before: f64, after: f64) -> bool {
    // Of a percentage with one decimal, or none.
    let of_percent = if (ratio - 1.0).abs() < 0.9995 { 0.0005 } else { 0.005 };
    let (low, high) = ((after - half_digit(after)) / (before + half_digit(before)), after + half_digit(after));
    let high = high / (before - half_digit(before)).max(f64::MIN_POSITIVE);
    (low - of_percent..=high + of_percent).contains(&ratio)
}

/// `1,000 → 1,250, +25.0% [+23.4, +26.6]`: a percentage right after two figures is that of these figures. If the change
/// is another one, it says of what: `100 → 110 (+10.0%), median of pairs +12.1% [+3.0, +15.2]`.
pub(crate) fn medians_and_change(one: &MetricComparison) -> Option<String> {
    let (baseline, candidate, found) = (one.baseline.as_ref()?, one.candidate.as_ref()?, one.change.as_ref()?);
    let medians = format!("{} → {}", middle_alone(baseline, &one.metric), middle_alone(candidate, &one.metric));
    let change = change_text(found, &one.metric);
    let of_medians = one.of_medians().filter(|_| is_not_of_medians(one));
    Some(match of_medians {
        None => format!("{medians}, {change}"),
        Some(size) => format!("{medians} ({}), {} {change}", size_text(size, &one.metric), of_pairs(found)),
    })
}

/// What a change is of, if it is not that of the medians.
pub(crate) fn of_pairs(found: &ChangeFindings) -> &'static str {
    match found.size() {
        // Where they point in opposite directions.
        ChangeSize::Ratio(1.0) | ChangeSize::Difference(0.0) => "medians and pairs disagree:",
        _ => "median of pairs",
    }
}

/// A ratio, or the difference of what has none, with a mark if it may be chance.
pub(crate) fn ratio(found: &ChangeFindings, metric: &Metric) -> String {
    let mark = match found.includes_none() {
        Some(true) => "*",
        Some(false) => "",
        None => "?",
    };
    // Four digits, if the first of them matters.
    match found.size() {
        ChangeSize::Ratio(ratio) if ratio < 9.9995 => format!("{ratio:.3}{mark}"),
        ChangeSize::Ratio(ratio) => figure(ratio) + mark,
        size => size_text(size, metric) + mark,
    }
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

/// The verdict in a sentence, or why there is none.
pub(crate) fn conclusion(found: &Comparison, stage: &StageComparison) -> String {
    let (mut baseline, mut candidate) =
        (clean(&found.baseline.name, SIDE_WIDTH), clean(&found.candidate.name, SIDE_WIDTH));
    if baseline == candidate {
        // They differ in the truncated part.
        (baseline, candidate) = ("the baseline".into(), "the candidate".into());
    }
    if let Some(task) = found.difference_of_tasks() {
        let [one, other] = [&task.baseline, &task.candidate].map(|side| task_words(side));
        return format!("not comparable: {baseline} is {one}, {candidate} is {other}");
    }
    let metric = match stage.metric(&found.headline) {
        Some(metric) if metric.baseline.is_some() && metric.candidate.is_some() => metric,
        metric => return not_measured(found, metric, &baseline, &candidate),
    };
    let (Some(change), Some(medians)) = (metric.change, medians_and_change(metric)) else {
        let is_zero = |side: &Option<TrialsFindings>| side.as_ref().is_some_and(|side| side.median == 0.0);
        let zero = match (is_zero(&metric.baseline), is_zero(&metric.candidate)) {
            (true, false) => baseline,
            (false, true) => candidate,
            _ => "a trial".to_owned(),
        };
        return format!("no verdict: {} of {zero} is 0", metric_name(&metric.metric));
    };
    let figures = format!("{} {medians}", metric_name(&metric.metric));
    if found.has_other_workload() {
        let names = (clean(&found.baseline.workload, NAME_WIDTH), clean(&found.candidate.workload, NAME_WIDTH));
        return format!("not comparable: {} and {} are different workloads; {figures}", names.0, names.1);
    }
    if found.has_other_load(stage) {
        return other_load(found, stage, &candidate, &figures);
    }
    match change.verdict {
        ChangeVerdict::Better | ChangeVerdict::Worse | ChangeVerdict::More | ChangeVerdict::Less => {
            let word = verdict(&metric.metric.name, change.verdict);
            let larger = (change.superiority * change.pairs as f64).round();
            let pairs = if change.is_more() { larger } else { change.pairs as f64 - larger };
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
            match change.low {
                None => format!(
                    "no verdict on {candidate} against {baseline}: {figures}; a confidence interval needs at least 4 trials \
                     per side (there are {there})"
                ),
                Some(_) => format!(
                    "cannot tell whether {candidate} is faster or slower than {baseline}: {figures} at 95%; {} would find \
                     a difference of {} four times out of five",
                    trials_more(trials_needed, there),
                    percent(found.margin)
                ),
            }
        }
    }
}

/// What a side did, by its tasks.
fn task_words(tasks: &[String]) -> &'static str {
    match tasks {
        [] => "a run",
        [one] if one == "prepare" => "a load (assay prepare)",
        [one] if one == "check" => "a check (assay check)",
        [one] if one == "machine" => "a test of a machine (assay io)",
        _ => "several kinds of work",
    }
}

/// Why there is no verdict: a side lacks the metric.
fn not_measured(found: &Comparison, metric: Option<&MetricComparison>, baseline: &str, candidate: &str) -> String {
    let name = metric.map_or_else(|| clean(&found.headline, NAME_WIDTH), |metric| metric_name(&metric.metric));
    let who = match metric.map(|metric| (metric.baseline.is_some(), metric.candidate.is_some())) {
        Some((true, false)) => format!("{candidate} has"),
        Some((false, true)) => format!("{baseline} has"),
        _ => "neither side has".to_owned(),
    };
    let any = if who.starts_with("neither") { "a" } else { "no" };
    let why = match found.headline.as_str() {
        "p99" => ": it needs at least 100 transactions",
        "capacity" => ": its search did not find one",
        _ => "",
    };
    format!("no verdict: {who} {any} {name}{why}")
}

/// A conclusion about sides that differ in their load.
fn other_load(found: &Comparison, stage: &StageComparison, candidate: &str, figures: &str) -> String {
    if let Some(Difference { baseline, candidate: other, .. }) = found.difference_of_loops() {
        let shown = |side: &Vec<String>| clean(&side.join(" or "), VALUE_WIDTH);
        return format!(
            "not comparable: {candidate} ran with {} instead of {}: {figures}; an open loop's throughput is its rate, \
             and its response times include the wait for a session",
            shown(other),
            shown(baseline)
        );
    }
    let (load, what) = match (stage.sessions, stage.candidate_sessions) {
        (one, other) if one == other => ("another load".to_owned(), "two loads"),
        (one, other) => (format!("{} instead of {one}", sessions(other)), "two steps of a ladder"),
    };
    format!("{candidate} ran with {load}: {figures}; this compares {what}, not two settings of a server")
}

/// `33 more trials per side (38 in all)`.
fn trials_more(needed: usize, there: usize) -> String {
    match needed {
        many if many >= TRIALS_MAX => format!("more than {} trials per side", count(TRIALS_MAX as u64)),
        needed => format!("{} per side ({} in all)", more_trials(needed.saturating_sub(there)), count(needed as u64)),
    }
}

fn more_trials(more: usize) -> String {
    if more == 1 { "1 more trial".to_owned() } else { format!("{} more trials", count(more as u64)) }
}

/// The outcome of a condition in one of `several` stages.
pub(crate) fn judgment_words(one: &Judgment, several: bool) -> String {
    let at = if several { format!(" with {}", sessions(one.sessions)) } else { String::new() };
    let by = match one.change {
        None => "not known".to_owned(),
        Some(by) if by.is_infinite() => "from nothing to something".to_owned(),
        Some(by) => change(by),
    };
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
