//! The results of an experiment: pivot tables with notes, and one row per trial for other tools.

use std::collections::BTreeSet;

use crate::findings::experiment::Experiment;
use crate::findings::metric::metrics;
use crate::tables::table::{Cell, Column, Table};

/// A row per trial and step of its ladder: factors, round, sessions, every metric, seconds of every part.
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
