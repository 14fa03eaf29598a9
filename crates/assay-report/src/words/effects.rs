//! What an experiment found, in sentences: the largest effects in order, then what could not be told.

use assay_stats::{Ratio, Verdict};

use crate::digits::figure;
use crate::findings::experiment::{OfTrials, Pivot, PivotCell, SETTING};
use crate::plain::clean;

const LEVEL_WIDTH: usize = 40;
/// Effects told; the tables have all of them.
const TOLD_MAX: usize = 3;

/// A ratio of a table, with the words around it.
struct Effect {
    /// `tps: memory 4G is`.
    subject: String,
    ratio: Ratio,
    /// `times 1G with cache 2G`.
    object: String,
}

/// The largest effects that are not by chance, then how many comparisons show no difference, and how many cannot tell.
/// Empty if the tables compare nothing.
pub(crate) fn effects_words<'a>(pivots: impl Iterator<Item = &'a Pivot>) -> Vec<String> {
    let all: Vec<Effect> = pivots.filter(|pivot| pivot.of == OfTrials::All).flat_map(effects).collect();
    let is = |effect: &&Effect, verdict: fn(&Verdict) -> bool| verdict(&effect.ratio.verdict);
    let mut found: Vec<&Effect> =
        all.iter().filter(|effect| is(effect, |verdict| matches!(verdict, Verdict::More | Verdict::Less))).collect();
    let size = |effect: &&Effect| effect.ratio.ratio.ln().abs();
    found.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut sentences: Vec<String> = found.iter().take(TOLD_MAX).map(|effect| sentence(effect)).collect();
    if found.len() > TOLD_MAX {
        sentences.push(format!("{} smaller effects are in the tables.", found.len() - TOLD_MAX));
    }
    let same = all.iter().filter(|effect| is(effect, |verdict| *verdict == Verdict::NoDifference)).count();
    let unclear: Vec<&Effect> =
        all.iter().filter(|effect| is(effect, |verdict| matches!(verdict, Verdict::CannotTell { .. }))).collect();
    match (&unclear[..], all.len()) {
        ([], _) => {}
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
    let interval = effect.ratio.interval.map(|(low, high)| format!(" [{}, {}]", figure(low), figure(high)));
    let (ratio, interval) = (figure(effect.ratio.ratio), interval.unwrap_or_default());
    format!("{} {ratio}{interval} {}.", effect.subject, effect.object)
}

fn effects(pivot: &Pivot) -> Vec<Effect> {
    let Some(base) = pivot.base else { return Vec::new() };
    let level = |axis: &str, level: &str| match axis {
        // What differs is in the level's own words.
        SETTING => clean(level, LEVEL_WIDTH),
        axis => format!("{} {}", clean(axis, LEVEL_WIDTH), clean(level, LEVEL_WIDTH)),
    };
    let mut all = Vec::new();
    for facet in &pivot.facets {
        for (row, places) in &facet.rows {
            for (column, place) in places.iter().enumerate() {
                let PivotCell::Measured { ratio: Some(ratio), .. } = place else { continue };
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
                with.extend(Some(clean(&facet.name, 2 * LEVEL_WIDTH)).filter(|name| !name.is_empty()));
                let with = if with.is_empty() { String::new() } else { format!(" with {}", with.join(", ")) };
                all.push(Effect {
                    subject: format!("{}: {changed} is", clean(&pivot.value, LEVEL_WIDTH)),
                    ratio: *ratio,
                    object: format!("times {other}{with}"),
                });
            }
        }
    }
    all
}
