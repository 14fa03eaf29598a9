//! Requested views of an experiment, or of records: pivot tables with notes, and charts. Created once for every output.

use assay_stats::{Contrast, Measure, Verdict};

use crate::charts::asked::{ChartAsked, NoChart};
use crate::charts::chart::{Chart, MarkKind};
use crate::charts::layout::clock;
use crate::digits::{figure, percent};
use crate::findings::best::BestLevel;
use crate::findings::experiment::{Experiment, OfTrials, Pivot, PivotAsked, PivotCell};
use crate::findings::metric::Better;
use crate::findings::setting::SESSIONS;
use crate::plain::clean;
use crate::tables::as_markdown::escaped;
use crate::tables::experiment::contrast_words;
use crate::tables::table::Table;
use crate::words::run::sessions;
use crate::words::subject::subject;
use crate::words::window::window_words;

/// A requested view.
#[derive(Clone, Debug, PartialEq)]
pub enum ShowAsked {
    /// A pivot table.
    Table(PivotAsked),
    /// A chart.
    Chart(ChartAsked),
}

/// A view with its data.
pub struct Shown(pub(crate) ShownContent);

pub(crate) enum ShownContent {
    /// One per facet, and notes.
    Tables {
        tables: Vec<Table>,
        notes: Vec<String>,
        pivot: Box<Pivot>,
    },
    Chart(Box<Chart>),
}

impl Shown {
    /// Adds a reader's notes to a chart over time.
    pub fn note(&mut self, notes: &[(f64, String)]) {
        if let ShownContent::Chart(chart) = &mut self.0 {
            chart.note(notes);
        }
    }
}

/// The requested views of an experiment, in order.
pub fn shown(experiment: &Experiment, asked: &[ShowAsked]) -> Result<Vec<Shown>, NoChart> {
    shown_of(asked.iter().map(|asked| (experiment, asked)))
}

/// Requested views, each of an experiment of its own: the same one, but another part of the time.
pub fn shown_of<'a>(asked: impl IntoIterator<Item = (&'a Experiment, &'a ShowAsked)>) -> Result<Vec<Shown>, NoChart> {
    let mut files = Vec::new();
    let one = |(number, (experiment, asked)): (usize, (&Experiment, &ShowAsked))| match asked {
        ShowAsked::Table(asked) => {
            let best = asked.best_of.as_ref().map(|factor| experiment.best_of(factor, &asked.value)).transpose()?;
            let chosen = best.as_ref().map_or(Vec::new(), |(_, chosen)| best_words(chosen));
            let experiment = best.as_ref().map_or(experiment, |(best, _)| best);
            let few = (!asked.only.is_empty()).then(|| experiment.only(&asked.rows, &asked.only)).transpose()?;
            let experiment = few.as_ref().unwrap_or(experiment);
            let pivot = experiment.pivot(asked)?;
            let mut tables = pivot.tables();
            if let Some(factor) = &asked.best_of {
                let words = format!(", best {}", clean(factor, 80));
                tables.iter_mut().for_each(|table| table.caption.push_str(&words));
            }
            let stages = experiment.trials.iter().flat_map(|trial| &trial.findings.stages);
            // Times and values of steps do not belong to the window.
            let window = window_words(stages).filter(|_| !experiment.is_of_trial(&asked.value));
            for table in &mut tables {
                table.caption.extend(window.iter().map(|window| format!(", {window}")));
            }
            let notes = chosen.into_iter().chain(notes(&pivot)).collect();
            Ok(Shown(ShownContent::Tables { tables, notes, pivot: Box::new(pivot) }))
        }
        ShowAsked::Chart(asked) => {
            let records = || experiment.trials.iter().map(|trial| &trial.findings);
            let value = asked.values.first().map_or("tps", String::as_str);
            let best = asked.best_of.as_ref().map(|factor| experiment.best_of(factor, value)).transpose()?;
            let experiment = best.as_ref().map_or(experiment, |(best, _)| best);
            let mut chart =
                Chart { subject: subject(records()), ..experiment.chart(asked, number)? }.of_records(records());
            let own = chart.file.clone();
            let mut again = 2;
            while files.contains(&chart.file) {
                chart.file = format!("{own}-{again}");
                again += 1;
            }
            files.push(chart.file.clone());
            Ok(Shown(ShownContent::Chart(Box::new(chart))))
        }
    };
    asked.into_iter().enumerate().map(one).collect()
}

impl Shown {
    /// The chart, if it is one.
    pub fn chart(&self) -> Option<&Chart> {
        match &self.0 {
            ShownContent::Chart(chart) => Some(chart),
            ShownContent::Tables { .. } => None,
        }
    }

    /// The pivot table, if it is one.
    pub(crate) fn pivot(&self) -> Option<&Pivot> {
        match &self.0 {
            ShownContent::Chart(_) => None,
            ShownContent::Tables { pivot, .. } => Some(pivot),
        }
    }
}

/// For a terminal of `width` columns.
pub fn shown_text(all: &[Shown], width: usize) -> String {
    let mut text = String::new();
    for one in all {
        match &one.0 {
            ShownContent::Tables { tables, notes, .. } => {
                for table in tables {
                    text += &format!("{}\n{}\n", table.caption, table.text(width));
                }
                text += &(notes.join("\n") + "\n\n");
            }
            ShownContent::Chart(chart) => {
                text += &format!("{}{}\n", clean(&chart.title, 200), in_brackets(&chart.caption));
                for table in chart.sketches() {
                    text += &format!("{}\n{}\n", table.caption, table.text(width));
                }
                marked(chart).into_iter().for_each(|line| text += &format!("{line}\n\n"));
            }
        }
    }
    text
}

/// Renders Markdown, with tables in place of charts.
pub fn shown_markdown(all: &[Shown]) -> String {
    let mut text = String::new();
    for one in all {
        match &one.0 {
            ShownContent::Tables { tables, notes, .. } => {
                for table in tables {
                    text += &format!("### {}\n\n{}\n", escaped(&table.caption, 200), table.markdown());
                }
                text += &(notes.join("\n") + "\n\n");
            }
            ShownContent::Chart(chart) => {
                let title = format!("{}{}", chart.title, in_brackets(&chart.caption));
                text += &format!("### {}\n\n", escaped(&title, 300));
                for table in chart.sketches() {
                    text += &format!("{}\n\n{}\n", escaped(&table.caption, 200), table.markdown());
                }
                marked(chart).into_iter().for_each(|line| text += &format!("{}\n\n", escaped(&line, 400)));
            }
        }
    }
    text
}

/// The data of all views, each with headers of its own and a blank line in between.
pub fn shown_csv(all: &[Shown]) -> String {
    let csv = |one: &Shown| match &one.0 {
        ShownContent::Tables { pivot, .. } => pivot.figures().csv(),
        ShownContent::Chart(chart) => chart.figures().csv(),
    };
    all.iter().map(csv).collect::<Vec<_>>().join("\n")
}

/// The steps that are marked in the panels of a chart.
fn marked(chart: &Chart) -> Option<String> {
    const NAMED_MAX: usize = 8;
    let mut all: Vec<String> = Vec::new();
    let steps = chart.panels().iter().flat_map(|panel| &panel.marks).filter(|mark| mark.kind == MarkKind::Step);
    for mark in steps {
        let to = if mark.to - mark.from >= 1.0 { format!(" to {}", clock(mark.to)) } else { String::new() };
        let words = format!("{} at {}{to}", mark.text, clock(mark.from));
        if !all.contains(&words) {
            all.push(words);
        }
    }
    let more = all.len().saturating_sub(NAMED_MAX);
    all.truncate(NAMED_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!all.is_empty()).then(|| format!("Marked: {}{more}.", all.join("; ")))
}

/// The level that is best in each place: `Best at version=10.11: default with 1 session; thread pool with 16, 64
/// sessions.`
fn best_words(chosen: &[BestLevel]) -> Vec<String> {
    let is_ladder = chosen.iter().any(|one| one.sessions != chosen[0].sessions);
    let line = |of_place: &[BestLevel]| {
        let mut levels: Vec<(&str, Vec<String>)> = Vec::new();
        for one in of_place {
            match levels.iter_mut().find(|(level, _)| *level == one.level) {
                Some((_, steps)) => steps.push(one.sessions.to_string()),
                None => levels.push((&one.level, vec![one.sessions.to_string()])),
            }
        }
        let words = |(level, steps): (&str, Vec<String>)| match is_ladder {
            true => {
                let plural = if steps == ["1"] { "" } else { "s" };
                format!("{} with {} session{plural}", clean(level, 80), steps.join(", "))
            }
            false => clean(level, 80),
        };
        let levels: Vec<String> = levels.into_iter().map(words).collect();
        let place = clean(&of_place[0].place, 200);
        let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
        format!("Best{at}: {}.", levels.join("; "))
    };
    chosen.chunk_by(|one, other| one.place == other.place).map(line).collect()
}

fn in_brackets(caption: &str) -> String {
    if caption.is_empty() { String::new() } else { format!(" ({})", clean(caption, 200)) }
}

impl Pivot {
    fn has(&self, is: impl Fn(&PivotCell) -> bool) -> bool {
        self.facets.iter().flat_map(|facet| &facet.rows).flat_map(|(_, places)| places).any(is)
    }
}

/// The notes of a table.
fn notes(pivot: &Pivot) -> Vec<String> {
    let mut notes = Vec::new();
    let mut places = pivot.facets.iter().flat_map(|facet| facet.rows.iter().flat_map(|(_, places)| places));
    if !places.any(|place| matches!(place, PivotCell::Measured { .. })) {
        return vec!["No trial has this value.".to_owned()];
    }
    if pivot.by_best {
        let by_sessions = pivot.rows == SESSIONS || pivot.columns.as_deref() == Some(SESSIONS);
        let of = if by_sessions { "the best with as many sessions" } else { "the best in the table" };
        notes.push(format!("Percentages: of {of}."));
    }
    if pivot.of != OfTrials::All {
        notes.push("No confidence intervals: a single trial stands for its cell.".to_owned());
        return notes;
    }
    match pivot.deviation {
        Some(deviation) => {
            let most = if pivot.once { "" } else { "at most " };
            notes.push(format!("Standard deviation between trials of a cell: {most}{}.", percent(deviation)));
        }
        None if pivot.has(|place| matches!(place, PivotCell::Measured { interval: Some(_), .. })) => {
            notes.push("Means of trials, each with the 95% confidence interval of its own trials.".to_owned());
        }
        // With a single cell, its own deviation cannot be separated from that of the rounds.
        None if pivot.repeated => {
            notes.push("No confidence intervals: they need two cells, or three trials of a cell.".to_owned());
        }
        None => notes.push("No confidence intervals: they need at least three trials of a cell.".to_owned()),
    }
    if pivot.has(|place| matches!(place, PivotCell::Measured { range: Some(_), .. })) {
        notes.push("`(low … high)`: lowest and highest of two trials, too few for a confidence interval.".to_owned());
    }
    if pivot.uneven && pivot.deviation.is_some() {
        notes.push("Some cells have fewer trials: their values are adjusted to the average round.".to_owned());
    }
    notes.extend(pivot.drift.as_ref().and_then(|drift| drift_words(drift, pivot.once)));
    notes.extend(effects(pivot));
    notes.extend(faults(pivot));
    let is_compared = |place: &PivotCell| match place {
        PivotCell::Measured { contrast: Some(contrast), .. } => contrast.interval.is_some(),
        _ => false,
    };
    if pivot.base.is_some() && pivot.has(is_compared) {
        let more = pivot.more_of;
        let what = match pivot.by {
            Some(Measure::Ratio) => "Ratios",
            Some(Measure::Difference) => "Differences",
            None => "Ratios, and differences with a sign where there is no ratio,",
        };
        notes.push(format!(
            "{what} with 95% confidence intervals that hold for the whole table; `same`: no difference above 3%; \
             `? n {more}`: inconclusive, n {more} in total would find a difference of 3% four times out of five."
        ));
    }
    notes
}

/// Which places are worse than the base by more than is allowed: certainly, or possibly.
fn faults(pivot: &Pivot) -> Option<String> {
    let limit = f64::from(pivot.fault_above?) / 100.0;
    let (mut certain, mut possible, mut judged) = (Vec::new(), Vec::new(), 0);
    for facet in &pivot.facets {
        for (row, places) in &facet.rows {
            for (column, place) in places.iter().enumerate() {
                let PivotCell::Measured { value, contrast: Some(contrast), .. } = place else { continue };
                let (low, high) = contrast.interval.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
                // A difference as a share of the base.
                let share = |end: f64| match contrast.by {
                    Measure::Difference if end == 0.0 => 1.0,
                    Measure::Difference => 1.0 + end / (value - contrast.size).abs(),
                    Measure::Ratio => end,
                };
                let (low, high) = (share(low), share(high));
                let (is_certain, is_possible) = match pivot.better {
                    Better::Lower => (low > 1.0 + limit, high > 1.0 + limit),
                    Better::Higher | Better::Neither => (high < 1.0 - limit, low < 1.0 - limit),
                };
                judged += 1;
                let column = pivot.column_levels.get(column).map(|column| format!("{} ", clean(column, 40)));
                let column = column.unwrap_or_default();
                let row = if pivot.columns.is_some() { format!("({} {row})", pivot.rows) } else { row.clone() };
                let facet = if facet.name.is_empty() { String::new() } else { format!(" {}", clean(&facet.name, 80)) };
                let words = format!("{column}{}{facet}", clean(&row, 60));
                if is_certain {
                    certain.push(words);
                } else if is_possible {
                    possible.push(words);
                }
            }
        }
    }
    let percent = pivot.fault_above?;
    let all = |names: &[String]| names.join(", ");
    Some(match (judged, certain.is_empty(), possible.is_empty()) {
        (0, ..) => return None,
        (_, true, true) => format!("Nothing is more than {percent}% worse."),
        (_, true, false) => {
            format!("Nothing is certainly more than {percent}% worse; too uncertain to tell: {}.", all(&possible))
        }
        (_, false, true) => format!("More than {percent}% worse, a fault: {}.", all(&certain)),
        (_, false, false) => format!(
            "More than {percent}% worse, a fault: {}. Too uncertain to tell: {}.",
            all(&certain),
            all(&possible)
        ),
    })
}

/// A line for each step of a ladder: `Over all levels of memory: 0 / 1: 1.18 [1.03, 1.42]`.
fn effects(pivot: &Pivot) -> Vec<String> {
    let mut lines: Vec<(Option<u32>, String)> = Vec::new();
    for effect in &pivot.effects {
        let words = format!("{}: {}", clean(&effect.levels, 80), contrast_words(&effect.contrast, pivot.more_of));
        match lines.last_mut() {
            Some((sessions, line)) if *sessions == effect.sessions => *line += &format!("; {words}"),
            _ => {
                let with = effect.sessions.map(|number| format!("With {}, over", sessions(number)));
                let with = with.unwrap_or_else(|| "Over".to_owned());
                lines.push((effect.sessions, format!("{with} all levels of {}: {words}", clean(&effect.over, 80))));
            }
        }
    }
    lines.into_iter().map(|(_, line)| line + ".").collect()
}

/// `None`: there is none. `once`: it is that of the table, not of one of several.
fn drift_words(drift: &Contrast, once: bool) -> Option<String> {
    let chance = match drift.verdict {
        Verdict::NoDifference => return None,
        Verdict::More | Verdict::Less => "",
        Verdict::CannotTell { .. } => ", which may be chance",
    };
    let interval = drift.interval.map_or(String::new(), |(low, high)| format!(" [{}, {}]", figure(low), figure(high)));
    let (drift, first) = (figure(drift.size), if once { "Drift" } else { "Largest drift" });
    Some(format!("{first}, last round / first round: {drift}{interval}{chance}; it does not affect the ratios."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_level_is_named_with_its_place() {
        let best =
            |place: &str, sessions, level: &str| BestLevel { place: place.into(), sessions, level: level.into() };
        let ladder = [best("version=1", 1, "pool"), best("version=1", 8, "default"), best("version=2", 1, "pool")];
        let said = [
            "Best at version=1: pool with 1 session; default with 8 sessions.",
            "Best at version=2: pool with 1 session.",
        ];
        assert_eq!(best_words(&ladder), said);
        assert_eq!(best_words(&[best("", 8, "default")]), ["Best: default."]);
    }
}
