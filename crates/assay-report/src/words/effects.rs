//! What an experiment found, in sentences: the largest effects in order, then what could not be told.

use assay_stats::{Contrast, Measure, Verdict};

use crate::digits::{figure, signed};
use crate::findings::experiment::{Facet, OfTrials, Pivot, PivotCell, SETTING};
use crate::plain::clean;

const LEVEL_WIDTH: usize = 40;
/// Names of metrics are whole: `machine.device_written_kb_per_transaction`.
const VALUE_WIDTH: usize = 60;
/// Effects told; the tables have all of them.
const TOLD_MAX: usize = 3;

/// A place of a table compared with its base, with the words around it.
struct Effect {
    /// `tps: memory 4G is`.
    subject: String,
    contrast: Contrast,
    /// How large it is, on a scale that ratios and differences share.
    size: f64,
    /// `1G with cache 2G`.
    object: String,
}

/// The largest effects that are not by chance, then how many comparisons show no difference, and how many cannot tell.
/// If the tables compare nothing: the lowest and the highest of each value.
pub(crate) fn effects_words<'a>(pivots: impl Iterator<Item = &'a Pivot>) -> Vec<String> {
    let (of_all, of_one): (Vec<&Pivot>, Vec<&Pivot>) = pivots.partition(|pivot| pivot.of == OfTrials::All);
    // A trial that stands for its cell has no interval, so it is told only where there is nothing else.
    let pivots = if of_all.is_empty() { of_one } else { of_all };
    let all: Vec<Effect> = pivots.iter().flat_map(|pivot| effects(pivot)).collect();
    if all.is_empty() {
        let is_first = |(at, pivot): &(usize, &&Pivot)| !pivots[..*at].iter().any(|one| one.value == pivot.value);
        let pivots = pivots.iter().enumerate().filter(is_first);
        return pivots.filter_map(|(_, pivot)| extremes(pivot)).take(TOLD_MAX).collect();
    }
    let is = |effect: &&Effect, verdict: fn(&Verdict) -> bool| verdict(&effect.contrast.verdict);
    let mut found: Vec<&Effect> =
        all.iter().filter(|effect| is(effect, |verdict| matches!(verdict, Verdict::More | Verdict::Less))).collect();
    found.sort_by(|a, b| b.size.total_cmp(&a.size));
    let mut sentences: Vec<String> = found.iter().take(TOLD_MAX).map(|effect| sentence(effect)).collect();
    match found.len().saturating_sub(TOLD_MAX) {
        0 => {}
        1 => sentences.push("1 smaller effect is in the tables.".to_owned()),
        number => sentences.push(format!("{number} smaller effects are in the tables.")),
    }
    let same = all.iter().filter(|effect| is(effect, |verdict| *verdict == Verdict::NoDifference)).count();
    let unclear: Vec<&Effect> =
        all.iter().filter(|effect| is(effect, |verdict| matches!(verdict, Verdict::CannotTell { .. }))).collect();
    match (&unclear[..], all.len()) {
        ([], _) => {}
        (several, number) if several.len() == number && !pivots.iter().any(|pivot| pivot.repeated) => {
            sentences.push("Cannot tell: there is one trial of each cell, and it takes more to see chance.".to_owned());
        }
        ([only], 1) => sentences.push(format!("Cannot tell: {}", sentence(only))),
        (several, number) if several.len() == number => {
            sentences.push(format!("Cannot tell: none of {number} comparisons is clear of chance."));
        }
        (several, number) => {
            sentences.push(format!("{} of {number} comparisons cannot be told from chance.", several.len()));
        }
    }
    match same {
        0 => {}
        number if number == all.len() => sentences.push("No difference above 3%.".to_owned()),
        number => sentences.push(format!("{number} of {} comparisons show no difference above 3%.", all.len())),
    }
    sentences
}

fn sentence(effect: &Effect) -> String {
    let words = match effect.contrast.by {
        Measure::Ratio => "times",
        Measure::Difference => "against",
    };
    format!("{} {} {words} {}.", effect.subject, contrast_figures(&effect.contrast), effect.object)
}

/// `1.12 [1.08, 1.16]`, or of a difference `+1.20 [+0.95, +1.41]`.
pub(crate) fn contrast_figures(found: &Contrast) -> String {
    let shown: fn(f64) -> String = match found.by {
        Measure::Ratio => figure,
        Measure::Difference => signed,
    };
    let interval = found.interval.map(|(low, high)| format!(" [{}, {}]", shown(low), shown(high)));
    shown(found.size) + &interval.unwrap_or_default()
}

/// How large a contrast is, whichever way: the logarithm of a ratio, and of a difference that of 1 and its share of the
/// base.
fn magnitude(found: &Contrast, value: f64) -> f64 {
    match found.by {
        Measure::Ratio => found.size.ln().abs(),
        Measure::Difference => (found.size / (value - found.size)).abs().ln_1p(),
    }
}

/// `outage ms: lowest 1,055 with endpoint haproxy; highest 15,169 with endpoint pgbouncer.`; `None`: they look equal.
fn extremes(pivot: &Pivot) -> Option<String> {
    let mut all: Vec<(f64, String)> = Vec::new();
    for facet in &pivot.facets {
        for (row, places) in &facet.rows {
            for (column, place) in places.iter().enumerate() {
                let PivotCell::Measured { value, .. } = place else { continue };
                let of_column = pivot.columns.as_ref().zip(pivot.column_levels.get(column));
                let mut with = vec![level(&pivot.rows, row)];
                with.extend(of_column.map(|(axis, of)| level(axis, of)));
                with.extend(of_facet(facet));
                all.push((*value, with.join(", ")));
            }
        }
    }
    // Of equal ones the first.
    let lowest = all.iter().reduce(|a, b| if b.0 < a.0 { b } else { a })?;
    let highest = all.iter().reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    let one = |(value, with): &(f64, String)| format!("{} with {with}", figure(*value));
    (figure(lowest.0) != figure(highest.0))
        .then(|| format!("{}: lowest {}; highest {}.", clean(&pivot.value, VALUE_WIDTH), one(lowest), one(highest)))
}

/// `None`: there is only one.
fn of_facet(facet: &Facet) -> Option<String> {
    Some(clean(&facet.name, 2 * LEVEL_WIDTH)).filter(|name| !name.is_empty())
}

/// `memory 4G`.
fn level(axis: &str, level: &str) -> String {
    match axis {
        // What differs is in the level's own words.
        SETTING => clean(level, LEVEL_WIDTH),
        axis => format!("{} {}", clean(axis, LEVEL_WIDTH), clean(level, LEVEL_WIDTH)),
    }
}

fn effects(pivot: &Pivot) -> Vec<Effect> {
    let Some(base) = pivot.base else { return Vec::new() };
    let mut all = Vec::new();
    for facet in &pivot.facets {
        for (row, places) in &facet.rows {
            for (column, place) in places.iter().enumerate() {
                let PivotCell::Measured { value, contrast: Some(contrast), .. } = place else { continue };
                let (changed, other, mut with) = match &pivot.columns {
                    Some(axis) if column != base => {
                        let of = |number: usize| pivot.column_levels.get(number).map_or("", String::as_str);
                        (level(axis, of(column)), clean(of(base), LEVEL_WIDTH), vec![level(&pivot.rows, row)])
                    }
                    None if facet.rows.get(base).is_some_and(|(level, _)| level != row) => {
                        let base = &facet.rows[base].0;
                        (level(&pivot.rows, row), clean(base, LEVEL_WIDTH), Vec::new())
                    }
                    _ => continue,
                };
                with.extend(of_facet(facet));
                let with = if with.is_empty() { String::new() } else { format!(" with {}", with.join(", ")) };
                all.push(Effect {
                    subject: format!("{}: {changed} is", clean(&pivot.value, VALUE_WIDTH)),
                    contrast: *contrast,
                    size: magnitude(contrast, *value),
                    object: format!("{other}{with}"),
                });
            }
        }
    }
    all
}
