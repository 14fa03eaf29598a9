//! Sentences about histories.

use assay_stats::JUDGED_MIN;

use crate::digits::{change, figure, percent, plural, signed};
use crate::findings::history::{DriftFindings, History, HistoryBy, HistoryChange, SeriesFindings};
use crate::findings::metric::Metric;
use crate::findings::metric_unit::MetricUnit;
use crate::findings::setting::Difference;
use crate::plain::clean;
use crate::words::comparison::is_ratio_of;

const VALUE_WIDTH: usize = 40;
/// Differences that a sentence lists.
const LISTED: usize = 6;

/// The answer: what got worse.
pub(crate) fn answer(found: &History) -> String {
    let margin = found.margin;
    let (all, metric) = (found.series.len(), &found.metric.name);
    let worse: Vec<&SeriesFindings> = found
        .series
        .iter()
        .filter(|one| one.alarms(margin).next().is_some() || one.drift_alarm(margin).is_some())
        .collect();
    let series = if all == 1 { "series" } else { "series of results" };
    match (all, worse.as_slice()) {
        (0, _) => format!("no records with the figure {metric}"),
        (_, []) => format!("{metric}: {}", nothing_new(found)),
        (1, [one]) => format!("{metric} got worse: {}", what_happened(one, margin, &found.metric)),
        (_, [one]) => {
            format!(
                "{metric} got worse in 1 of {all} {series}: {}: {}",
                one.name,
                what_happened(one, margin, &found.metric)
            )
        }
        (_, several) => format!("{metric} got worse in {} of {all} {series}", several.len()),
    }
}

/// Nothing got worse, as far as that can be said: of how many series, and what was worse for a time.
pub(crate) fn nothing_new(found: &History) -> String {
    let all = found.series.len() as u64;
    let judged = found.series.iter().filter(|one| one.is_judged).count() as u64;
    let recovered = found.series.iter().map(|one| one.recovered(found.margin).count() as u64).sum::<u64>();
    let since = match recovered {
        0 => String::new(),
        number => format!("; {} for the worse since recovered from", plural(number, "change")),
    };
    let few = format!("fewer than {JUDGED_MIN} points");
    match (all, judged) {
        (1, 0) => format!("too few points to tell whether it got worse: a change needs at least {JUDGED_MIN}"),
        (_, 0) => format!("cannot tell whether it got worse: all {all} series have {few}, too few to judge"),
        (1, _) => format!("no new change for the worse{since}"),
        _ if judged == all => format!("no new change for the worse in {all} series of results{since}"),
        _ => {
            let others = all - judged;
            let have = if others == 1 { "has" } else { "have" };
            format!(
                "no new change for the worse in {judged} of {all} series of results; the other {others} {have} {few}, \
                 too few to judge{since}"
            )
        }
    }
}

fn what_happened(one: &SeriesFindings, margin: f64, metric: &Metric) -> String {
    let changes: Vec<String> = one
        .alarms(margin)
        .map(|found| format!("{} at {}", size_in(found, metric), clean(&found.label, VALUE_WIDTH)))
        .collect();
    let drift = one.drift_alarm(margin).map(|drift| format!("a slow drift of {}", change(drift.total)));
    changes.into_iter().chain(drift).collect::<Vec<_>>().join(", ")
}

/// `−5.1% [−6.0, −4.2]`, or of what has no ratio `−12 [−14, −9]`.
fn size_in(found: &HistoryChange, metric: &Metric) -> String {
    let shown = |size: f64| match (found.ratio, metric.unit) {
        (Some(_), _) => change(size - 1.0),
        (None, MetricUnit::Ns) => signed(size / 1e6),
        (None, _) => signed(size),
    };
    let size = shown(found.ratio.or(found.difference).unwrap_or_default());
    let short = |end: f64| shown(end).trim_end_matches('%').to_owned();
    match (found.low, found.high) {
        (Some(low), Some(high)) => format!("{size} [{}, {}]", short(low), short(high)),
        _ => format!("{size} (no interval)"),
    }
}

/// What a size is of, if it is not that of the two levels beside it.
fn of_pairs(found: &HistoryChange, metric: &Metric) -> &'static str {
    let unit = if metric.unit == MetricUnit::Ns { 1e6 } else { 1.0 };
    let [before, after] = [found.before / unit, found.after / unit];
    let is_of_levels = match (found.ratio, found.difference) {
        (Some(ratio), _) => is_ratio_of(ratio, before, after),
        (None, difference) => figure(after - before) == figure(difference.unwrap_or_default() / unit),
    };
    if is_of_levels { "" } else { " (median of pairs)" }
}

/// A value with its unit.
pub(crate) fn value(metric: &Metric, value: f64) -> String {
    match metric.unit {
        MetricUnit::Ns => format!("{} ms", figure(value / 1e6)),
        _ => figure(value),
    }
}

/// `worse`, `better`, `changed`.
pub(crate) fn direction(is_worse: Option<bool>) -> &'static str {
    match is_worse {
        Some(true) => "worse",
        Some(false) => "better",
        None => "changed",
    }
}

/// `−5.1% [−6.0, −4.2] at abc1234, the first after 9f3e2d1: 1,203 → 1,142`.
pub(crate) fn change_words(metric: &Metric, found: &HistoryChange) -> String {
    let [label, previous] = [&found.label, &found.previous].map(|label| clean(label, VALUE_WIDTH));
    let [before, after] = [found.before, found.after].map(|level| value(metric, level));
    let state = match (&found.acknowledged, found.recovered) {
        (Some(reason), _) if reason.is_empty() => "; acknowledged".to_owned(),
        (Some(reason), _) => format!("; acknowledged: {}", clean(reason, 200)),
        (None, true) if found.is_worse == Some(true) => "; recovered since".to_owned(),
        _ => String::new(),
    };
    let size = size_in(found, metric);
    format!("{size}{} at {label}, the first after {previous}: {before} → {after}{state}", of_pairs(found, metric))
}

/// What else changed at the same point.
pub(crate) fn changed_with(with: &[Difference]) -> String {
    if with.is_empty() {
        return "no recorded setting, version or tag changed with it".to_owned();
    }
    let one = |side: &[String]| side.first().map_or("none".to_owned(), |value| clean(value, VALUE_WIDTH));
    let words = |found: &Difference| {
        format!("{} {} → {}", clean(&found.what, VALUE_WIDTH), one(&found.baseline), one(&found.candidate))
    };
    let mut all: Vec<String> = with.iter().take(LISTED).map(words).collect();
    all.extend((with.len() > LISTED).then(|| format!("{} more", with.len() - LISTED)));
    format!("changed with it: {}", all.join("; "))
}

/// A drift.
pub(crate) fn drift_words(found: &DriftFindings) -> String {
    let short = |share: f64| change(share).trim_end_matches('%').to_owned();
    let [from, to] = [&found.from, &found.to].map(|label| clean(label, VALUE_WIDTH));
    let state = match &found.acknowledged {
        Some(reason) if reason.is_empty() => "; acknowledged".to_owned(),
        Some(reason) => format!("; acknowledged: {}", clean(reason, 200)),
        None => String::new(),
    };
    format!(
        "{} [{}, {}] in small steps over {} points, from {from} to {to}{state}",
        change(found.total),
        short(found.low),
        short(found.high),
        found.points
    )
}

/// What the series can show.
pub(crate) fn power(metric: &Metric, one: &SeriesFindings) -> String {
    let (Some(noise), Some(detectable), true) = (one.noise, one.detectable, one.is_judged) else {
        return format!("too few points for a statement about changes: {} of {JUDGED_MIN}", one.points.len());
    };
    let shown = |size: f64| if one.in_shares { percent(size) } else { value(metric, size) };
    let correlated = match one.correlated {
        true => "; neighboring points are correlated, so some changes may be chance",
        false => "",
    };
    format!("noise {}; ten more points would show a change of {}{correlated}", shown(noise), shown(detectable))
}

/// `120 points by commit, 2026-03-01 … 2026-07-01`.
pub(crate) fn extent(by: &HistoryBy, one: &SeriesFindings) -> String {
    let by = match by {
        HistoryBy::Time => "records".to_owned(),
        HistoryBy::Day => "days".to_owned(),
        HistoryBy::Version => "versions".to_owned(),
        HistoryBy::Tag(tag) => format!("values of {}", clean(tag, VALUE_WIDTH)),
    };
    let times: Vec<_> = one.points.iter().map(|point| point.started).collect();
    let day =
        |time: Option<&assay_record::Time>| time.map(|time| time.to_string()[..10].to_owned()).unwrap_or_default();
    let (first, last) = (day(times.iter().min()), day(times.iter().max()));
    let extent = if first == last { first } else { format!("{first} … {last}") };
    format!("{} {by}, {extent}", one.points.len())
}
