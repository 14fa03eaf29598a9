//! Sentences about histories.

use crate::digits::{change, figure, percent};
use crate::findings::history::{DriftFindings, History, HistoryBy, HistoryChange, SeriesFindings};
use crate::findings::metric::Metric;
use crate::findings::metric_unit::MetricUnit;
use crate::findings::setting::Difference;
use crate::plain::clean;

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
        (1, []) => format!("{metric}: no new change for the worse"),
        (_, []) => format!("{metric}: no new change for the worse in {all} {series}"),
        (1, [one]) => format!("{metric} got worse: {}", what_happened(one, margin)),
        (_, [one]) => {
            format!("{metric} got worse in 1 of {all} {series}: {}: {}", one.name, what_happened(one, margin))
        }
        (_, several) => format!("{metric} got worse in {} of {all} {series}", several.len()),
    }
}

fn what_happened(one: &SeriesFindings, margin: f64) -> String {
    let changes: Vec<String> =
        one.alarms(margin).map(|found| format!("{} at {}", size(found), clean(&found.label, VALUE_WIDTH))).collect();
    let drift = one.drift_alarm(margin).map(|drift| format!("a slow drift of {}", change(drift.total)));
    changes.into_iter().chain(drift).collect::<Vec<_>>().join(", ")
}

/// `−5.1% [−6.0, −4.2]`.
pub(crate) fn size(found: &HistoryChange) -> String {
    let short = |ratio: f64| change(ratio - 1.0).trim_end_matches('%').to_owned();
    match (found.low, found.high) {
        (Some(low), Some(high)) => format!("{} [{}, {}]", change(found.ratio - 1.0), short(low), short(high)),
        _ => format!("{} (no interval)", change(found.ratio - 1.0)),
    }
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
    format!("{} at {label}, the first after {previous}: {before} → {after}{state}", size(found))
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
pub(crate) fn power(one: &SeriesFindings) -> String {
    let (Some(noise), Some(detectable)) = (one.noise, one.detectable) else {
        return format!("too few points for a statement about changes: {}", one.points.len());
    };
    let correlated = match one.correlated {
        true => "; neighboring points are correlated, so some changes may be chance",
        false => "",
    };
    format!("noise {}; ten more points would show a change of {}{correlated}", percent(noise), percent(detectable))
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
