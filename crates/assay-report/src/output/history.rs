//! Histories as text, and as a Markdown comment that changes only when the answer does.

use crate::digits::{change, plural, signed, sparkline};
use crate::findings::history::{History, HistoryChange, SeriesFindings};
use crate::plain::{clean, wrap_to};
use crate::tables::as_markdown::escaped;
use crate::words::history::{answer, change_words, changed_with, direction, drift_words, extent, nothing_new, power};

const WIDTH: usize = 100;
const NAME_WIDTH: usize = 90;
/// Series that are shown although nothing happened.
const CALM_MAX: usize = 20;
/// Points of a sparkline.
const SPARK: usize = 60;

/// A history for a terminal.
pub fn history_text(found: &History) -> String {
    let mut text = wrapped("", &answer(found));
    if found.unlabeled > 0 {
        text += &format!("! left out {} without the tag\n", plural(found.unlabeled as u64, "record"));
    }
    let is_calm = |one: &&SeriesFindings| one.changes.is_empty() && one.pending.is_none() && one.drift.is_none();
    let calm = found.series.iter().filter(is_calm).count();
    let mut shown = 0;
    for one in &found.series {
        if is_calm(&one) {
            shown += 1;
            if shown > CALM_MAX {
                continue;
            }
        }
        text += &series_text(found, one);
    }
    if calm > CALM_MAX {
        text += &format!("\nand {} more series without changes\n", calm - CALM_MAX);
    }
    text
}

fn series_text(found: &History, one: &SeriesFindings) -> String {
    let mut text = format!("\n{}\n", clean(&one.name, NAME_WIDTH));
    text += &wrapped("  ", &format!("{}; on {}", extent(&found.by, one), clean(&one.machine, 120)));
    if one.points.len() > 1 {
        text += &format!("  {}\n", sparkline(&thinned(one)));
    }
    if let Some(before) = &one.machine_before {
        let words = format!("another machine before, whose results are a series of their own: {}", clean(before, 120));
        text += &wrapped("  ", &words);
    }
    for one_change in &one.changes {
        let words = change_words(&found.metric, one_change);
        text += &wrapped("  ", &format!("{:8} {words}", direction(one_change.is_worse)));
        text += &wrapped("           ", &changed_with(&one_change.with));
    }
    if let Some(pending) = &one.pending {
        let words = change_words(&found.metric, pending);
        let there = one.points.len() - pending.at;
        let state = format!("pending  {words} ({there} points so far, {} confirm it)", assay_stats::CONFIRMED_BY);
        text += &wrapped("  ", &state);
        text += &wrapped("           ", &changed_with(&pending.with));
    }
    if let Some(drift) = &one.drift {
        text += &wrapped("  ", &format!("{:8} {}", direction(drift.is_worse), drift_words(drift)));
    }
    text += &wrapped("  ", &power(&found.metric, one));
    let spikes: Vec<String> = one.spikes.iter().take(5).map(|at| clean(&one.points[*at].label, 40)).collect();
    if !spikes.is_empty() {
        let more = if one.spikes.len() > spikes.len() { ", …" } else { "" };
        text += &wrapped("  ", &format!("single far values, which are not changes: {}{more}", spikes.join(", ")));
    }
    let labels = one.alarms(found.margin).map(|found| found.label.clone());
    let labels = labels.chain(one.drift_alarm(found.margin).map(|drift| drift.from.clone()));
    for label in labels {
        let label = clean(&label, 100);
        text += &format!("  to acknowledge it: acknowledged {} {} {label} REASON\n", one.id, found.metric.name);
    }
    text
}

/// Differences between values show best from a little below the smallest.
fn thinned(one: &SeriesFindings) -> Vec<f64> {
    let values: Vec<f64> = one.points.iter().map(|point| point.value).collect();
    let batch = values.len().div_ceil(SPARK);
    let means: Vec<f64> = values.chunks(batch).map(|values| values.iter().sum::<f64>() / values.len() as f64).collect();
    let low = means.iter().copied().fold(f64::INFINITY, f64::min);
    let high = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let base = low - (high - low) * 0.15;
    means.iter().map(|value| value - base).collect()
}

fn wrapped(indent: &str, words: &str) -> String {
    let first: usize = indent.len();
    let pad = " ".repeat(first);
    let text = wrap_to(WIDTH - first, "", words.split(' '), " ");
    text.lines()
        .enumerate()
        .map(|(number, line)| format!("{pad}{}{line}\n", if number == 0 { "" } else { "  " }))
        .collect()
}

/// What got worse, as a comment for a pull request or an issue. It has no times, counts or levels that move with each
/// new record.
pub fn history_markdown(found: &History) -> String {
    let margin = found.margin;
    let mut text = String::from("<!-- assay history -->\n");
    let alarms = |one: &SeriesFindings| one.alarms(margin).cloned().collect::<Vec<HistoryChange>>();
    let worse: Vec<&SeriesFindings> =
        found.series.iter().filter(|one| !alarms(one).is_empty() || one.drift_alarm(margin).is_some()).collect();
    if worse.is_empty() {
        return text + &format!("**{}**: {}\n", escaped(&found.metric.name, 60), nothing_new(found));
    }
    let metric = escaped(&found.metric.name, 60);
    text += &format!("**{metric}** got worse in {} series\n\n", worse.len());
    text += "| what | where | change | changed with it |\n| --- | --- | ---: | --- |\n";
    for one in worse {
        let what = format!("{} ({})", escaped(&one.name, NAME_WIDTH), one.id);
        for found_change in alarms(one) {
            let size = match found_change.ratio {
                Some(ratio) => rounded(ratio - 1.0),
                None => signed(found_change.difference.unwrap_or_default()),
            };
            let with = escaped(&changed_with(&found_change.with), 400);
            text += &format!("| {what} | {} | {size} | {with} |\n", escaped(&found_change.label, 60));
        }
        if let Some(drift) = one.drift_alarm(margin) {
            text += &format!("| {what} | since {} | slow drift | |\n", escaped(&drift.from, 60));
        }
    }
    text
}

/// To whole percents: more points move the last digits.
fn rounded(share: f64) -> String {
    if share.abs() < 0.095 { change((share * 100.0).round() / 100.0) } else { change((share * 50.0).round() / 50.0) }
        .replace(".0%", "%")
}

/// A history as JSON.
pub fn history_json(found: &History) -> String {
    serde_json::to_string_pretty(found).expect("histories become JSON") + "\n"
}
