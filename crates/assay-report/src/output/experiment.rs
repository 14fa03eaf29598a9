//! The results of an experiment: pivot tables with notes, and one row per trial for other tools.

use std::collections::BTreeSet;

use crate::findings::experiment::Experiment;
use crate::findings::metric::{stage_sessions, trial_metrics};
use crate::tables::table::{Table, TableCell, TableColumn};

/// A row per trial and step of its ladder, or per search: factors, round, sessions, every metric, seconds of every
/// part, values of steps.
pub fn experiment_csv(experiment: &Experiment) -> String {
    let steps = || {
        experiment.trials.iter().flat_map(|trial| {
            let sessions = stage_sessions([&trial.findings]);
            sessions.into_iter().map(move |sessions| (trial, sessions, trial_metrics(&trial.findings, sessions)))
        })
    };
    let mut names: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for (metric, _) in steps().flat_map(|(.., found)| found) {
        if seen.insert(metric.name.clone()) {
            names.push(metric.name);
        }
    }
    let parts = named(experiment.trials.iter().flat_map(|trial| &trial.parts));
    let values = named(experiment.trials.iter().flat_map(|trial| &trial.values));
    let factors = experiment.factors.iter().map(|factor| factor.name.clone());
    let heads = factors.chain(["round".to_owned(), "sessions".to_owned()]).chain(names.iter().cloned());
    let heads = heads.chain(parts.iter().map(|part| format!("{part}_s")));
    let heads = heads.chain(values.iter().map(|value| (*value).to_owned()));
    let mut table = Table::new(heads.map(|head| TableColumn::words(head, usize::MAX)));
    for (trial, sessions, found) in steps() {
        let levels = &experiment.cells[trial.cell].levels;
        let factors = experiment.factors.iter().zip(levels);
        let mut row: Vec<TableCell> =
            factors.map(|(factor, level)| TableCell::foreign(&factor.levels[*level].shown)).collect();
        row.extend([TableCell::Count(trial.round as u64 + 1), TableCell::Count(sessions.into())]);
        let value = |name: &String| found.iter().find(|(metric, _)| metric.name == *name).and_then(|(_, value)| *value);
        row.extend(names.iter().map(|name| TableCell::of(value(name), TableCell::Number)));
        let around =
            |all: &[(String, f64)], name: &str| all.iter().find(|(one, _)| one == name).map(|(_, found)| *found);
        row.extend(parts.iter().map(|part| TableCell::of(around(&trial.parts, part), TableCell::Number)));
        row.extend(values.iter().map(|value| TableCell::of(around(&trial.values, value), TableCell::Number)));
        table.row(row);
    }
    table.csv()
}

/// The names among them, each once.
fn named<'a>(all: impl Iterator<Item = &'a (String, f64)>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (name, _) in all {
        if !names.contains(&name.as_str()) {
            names.push(name.as_str());
        }
    }
    names
}
