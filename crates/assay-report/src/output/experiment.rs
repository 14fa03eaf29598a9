//! An experiment's results: pivot tables with what has to be known of them, and a row per trial for other tools.

use std::collections::BTreeSet;

use crate::digits::percent;
use crate::findings::experiment::{Experiment, Pivot, PivotAsked, UnknownValue};
use crate::findings::metric::metrics;
use crate::tables::experiment::ratio_words;
use crate::tables::table::{Cell, Column, Table};

/// Columns of a terminal that tables may take.
const WIDTH: usize = 80;

/// Tables for a terminal.
pub fn experiment_text(experiment: &Experiment, asked: &[PivotAsked]) -> Result<String, UnknownValue> {
    let mut text = String::new();
    for asked in asked {
        let pivot = experiment.pivot(asked)?;
        for table in pivot.tables() {
            text += &format!("{}\n{}\n", table.caption, table.text(WIDTH));
        }
        text += &(notes(&pivot).join("\n") + "\n\n");
    }
    Ok(text)
}

/// The same as Markdown.
pub fn experiment_markdown(experiment: &Experiment, asked: &[PivotAsked]) -> Result<String, UnknownValue> {
    let mut text = String::new();
    for asked in asked {
        let pivot = experiment.pivot(asked)?;
        for table in pivot.tables() {
            text +=
                &format!("### {}\n\n{}\n", crate::tables::as_markdown::escaped(&table.caption, 200), table.markdown());
        }
        text += &(notes(&pivot).join("\n") + "\n\n");
    }
    Ok(text)
}

/// What has to be known of a table.
fn notes(pivot: &Pivot) -> Vec<String> {
    let mut notes = Vec::new();
    match pivot.deviation {
        Some(deviation) => {
            notes.push(format!("Trials of a cell differ by {} (standard deviation).", percent(deviation)))
        }
        None => notes.push("No intervals: they need at least two rounds.".to_owned()),
    }
    if let Some(drift) = &pivot.drift {
        notes.push(format!("Drift, last round by first: {}; ratios are free of it.", ratio_words(drift)));
    }
    if pivot.base.is_some() {
        notes.push(
            "Ratios with 95% confidence intervals that hold for the whole table; `same`: no difference above 3%; `? n rounds`: \
             cannot tell, n rounds in all might."
                .to_owned(),
        );
    }
    notes
}

/// A row per trial and step of its ladder: factors, round, sessions, every metric, every part's seconds.
pub fn experiment_csv(experiment: &Experiment) -> String {
    let stages =
        || experiment.trials.iter().flat_map(|trial| trial.findings.stages.iter().map(move |stage| (trial, stage)));
    let mut names: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for (metric, _) in stages().flat_map(|(_, stage)| metrics(stage)) {
        if seen.insert(metric.name.clone()) {
            names.push(metric.name);
        }
    }
    let mut parts: Vec<&str> = Vec::new();
    for (part, _) in experiment.trials.iter().flat_map(|trial| &trial.parts) {
        if !parts.contains(&part.as_str()) {
            parts.push(part);
        }
    }
    let factors = experiment.factors.iter().map(|(name, _)| name.clone());
    let heads = factors.chain(["round".to_owned(), "sessions".to_owned()]).chain(names.iter().cloned());
    let mut table = Table::new(
        heads.chain(parts.iter().map(|part| format!("{part}_s"))).map(|head| Column::words(head, usize::MAX)),
    );
    for (trial, stage) in stages() {
        let levels = &experiment.cells[trial.cell].levels;
        let mut row: Vec<Cell> =
            experiment.factors.iter().zip(levels).map(|((_, names), level)| Cell::foreign(&names[*level])).collect();
        row.extend([Cell::Count(trial.round as u64 + 1), Cell::Count(stage.sessions.into())]);
        let found = metrics(stage);
        let value = |name: &String| found.iter().find(|(metric, _)| metric.name == *name).and_then(|(_, value)| *value);
        row.extend(names.iter().map(|name| Cell::of(value(name), Cell::Number)));
        let seconds = |part: &&str| trial.parts.iter().find(|(one, _)| one == part).map(|(_, seconds)| *seconds);
        row.extend(parts.iter().map(|part| Cell::of(seconds(part), Cell::Number)));
        table.row(row);
    }
    table.csv()
}
