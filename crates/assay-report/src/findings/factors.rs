//! Records as an experiment: their differences become factors, their trials rounds.
//!
//! Records that differ in more than the requested axes are never merged: the remaining differences become an additional
//! factor, `setting`. Consequences of the axes (defaults that the server derives) do not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::findings::experiment::{Experiment, ExperimentCell, ExperimentTrial, Factor, Level, SETTING, Unknown};
use crate::findings::report::{Report, ReportEntry};
use crate::findings::setting::{RunSettings, SESSIONS, SettingKind, SettingName, names, settings};

/// Between the values of a combined level.
const LEVEL_WIDTH: usize = 44;
/// A value that a record does not have.
const ABSENT: &str = "none";

impl Experiment {
    /// `axes`: names of settings, options, facts or tags, as in reports; `setting` for everything else that differs;
    /// `sessions`.
    pub fn of_report(report: &Report, axes: &[String]) -> Result<Experiment, Unknown> {
        let all: Vec<RunSettings> =
            report.entries.iter().map(|entry| without_sessions(settings(&entry.findings))).collect();
        let mut columns: Vec<(String, Vec<String>)> = Vec::new();
        let mut taken: BTreeSet<SettingName> = BTreeSet::new();
        let mut short: BTreeMap<String, String> = BTreeMap::new();
        for axis in axes {
            let is_known = columns.iter().any(|(name, _)| name == axis);
            if is_known || axis == SESSIONS || axis == SETTING {
                continue;
            }
            let key = key_of(axis, &all)?;
            let value = |one: &RunSettings| one.get(&key).filter(|value| !value.is_empty()).cloned();
            let values = all.iter().map(|one| value(one).unwrap_or_else(|| ABSENT.to_owned())).collect();
            columns.push((axis.clone(), values));
            short.insert(axis.clone(), key.short.clone());
            taken.insert(key);
        }
        let rest = rest(&all, &columns, &taken);
        if axes.iter().any(|axis| axis == SETTING) || rest.iter().any(|one| *one != rest[0]) {
            columns.push((SETTING.to_owned(), named(&rest, report)));
        }
        let levels: Vec<Vec<String>> = columns.iter().map(|(_, values)| levels(values)).collect();
        let place = |entry: usize| -> Vec<usize> {
            let at = |((_, values), levels): (&(String, Vec<String>), &Vec<String>)| {
                levels.iter().position(|level| *level == values[entry]).expect("every value is a level")
            };
            columns.iter().zip(&levels).map(at).collect()
        };
        let mut cells: Vec<ExperimentCell> = Vec::new();
        let mut of_entries = Vec::new();
        for entry in 0..report.entries.len() {
            let levels = place(entry);
            let known = cells.iter().position(|cell| cell.levels == levels);
            of_entries.push(known.unwrap_or_else(|| {
                cells.push(ExperimentCell { levels, price_per_hour: None, failed: 0 });
                cells.len() - 1
            }));
        }
        let rounds = rounds(&report.entries, &of_entries);
        let trial = |((entry, cell), round): ((&ReportEntry, &usize), &usize)| ExperimentTrial {
            cell: *cell,
            round: *round,
            findings: entry.findings.clone(),
            parts: Vec::new(),
            values: Vec::new(),
        };
        let factor = |((name, _), levels): ((String, _), Vec<String>)| {
            let short = short.get(&name).unwrap_or(&name).clone();
            Factor { name, levels: levels.into_iter().map(|level| Level::new(level, vec![short.clone()])).collect() }
        };
        let factors = columns.into_iter().zip(levels).map(factor).collect();
        let trials = report.entries.iter().zip(&of_entries).zip(&rounds).map(trial).collect();
        Ok(Experiment::new(factors, cells, trials, rounds.iter().max().map_or(1, |last| last + 1)))
    }
}

/// Sessions are an axis anyway: of a ladder's steps, or of records.
fn without_sessions(mut all: RunSettings) -> RunSettings {
    all.retain(|name, _| !name.is_sessions());
    all
}

/// The setting with this name: `shared_buffers` is the server's, `tables` an option, `disk` a tag. One that differs
/// comes before one that does not, and a tag before all others.
fn key_of(axis: &str, all: &[RunSettings]) -> Result<SettingName, Unknown> {
    let keys: BTreeSet<&SettingName> = all.iter().flat_map(|one| one.keys()).collect();
    let plain = |name: &str| name.to_lowercase().replace(['-', ' '], "_");
    let differs = |key: &SettingName| all.iter().any(|one| one.get(key) != all[0].get(key));
    let is_called = |name: &SettingName| plain(&name.what) == plain(axis) || plain(&name.short) == plain(axis);
    let called = keys.iter().copied().filter(|key| is_called(key));
    match called.min_by_key(|key| (!differs(key), key.kind != SettingKind::Tag, (*key).clone())) {
        Some(key) => Ok(key.clone()),
        None => {
            let mut known: Vec<String> =
                keys.into_iter().filter(|key| differs(key)).map(|name| name.short.replace(' ', "_")).collect();
            known.extend([SESSIONS, SETTING].map(str::to_owned));
            Err(Unknown { what: "record has a setting".into(), name: axis.to_owned(), known: known.join(", ") })
        }
    }
}

/// Settings of each record besides the axes and their consequences.
fn rest(all: &[RunSettings], columns: &[(String, Vec<String>)], taken: &BTreeSet<SettingName>) -> Vec<RunSettings> {
    let same_place = |a: usize, b: usize| columns.iter().all(|(_, values)| values[a] == values[b]);
    let follows = |key: &SettingName| {
        let pairs = (0..all.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.filter(|(a, b)| same_place(*a, *b)).all(|(a, b)| all[a].get(key) == all[b].get(key))
    };
    let keys: BTreeSet<&SettingName> = all.iter().flat_map(|one| one.keys()).collect();
    let differs = |key: &SettingName| all.iter().any(|one| one.get(key) != all[0].get(key));
    let kept: BTreeSet<&SettingName> =
        keys.into_iter().filter(|key| !taken.contains(*key) && differs(key) && !follows(key)).collect();
    let only = |one: &RunSettings| one.clone().into_iter().filter(|(key, _)| kept.contains(key)).collect();
    all.iter().map(only).collect()
}

/// A name for the rest of each record; different settings never have the same name.
fn named(rest: &[RunSettings], report: &Report) -> Vec<String> {
    let mut distinct: Vec<RunSettings> = Vec::new();
    for one in rest {
        if !distinct.contains(one) {
            distinct.push(one.clone());
        }
    }
    if let [_] = distinct[..] {
        return report.entries.iter().map(|entry| entry.findings.workload.clone()).collect();
    }
    let names = names(&distinct, LEVEL_WIDTH);
    let name = |one: &RunSettings| {
        let number = distinct.iter().position(|other| other == one).expect("every one was put in");
        names[number].clone()
    };
    rest.iter().map(name).collect()
}

/// Distinct values: by size if all are sizes, else in the order of the records.
fn levels(values: &[String]) -> Vec<String> {
    let mut levels: Vec<String> = Vec::new();
    for value in values {
        if !levels.contains(value) {
            levels.push(value.clone());
        }
    }
    let sizes: Option<Vec<f64>> = levels.iter().map(|level| size(level)).collect();
    if let Some(sizes) = sizes {
        let mut sorted: Vec<(f64, String)> = sizes.into_iter().zip(levels).collect();
        sorted.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        return sorted.into_iter().map(|(_, level)| level).collect();
    }
    levels
}

/// A number, with or without a unit: `128MB`, `0.5`, `30 s`. `None`: something else.
pub(crate) fn size(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let scale = match text[digits..].trim().to_lowercase().as_str() {
        "" | "b" | "s" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024f64.powi(2),
        "g" | "gb" | "gib" => 1024f64.powi(3),
        "t" | "tb" | "tib" => 1024f64.powi(4),
        "us" => 1e-6,
        "ms" => 1e-3,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "8kb" => 8192.0,
        _ => return None,
    };
    Some(number * scale)
}

/// The round of each record, from 0: the first trials of all cells, then the second, if they were measured in this
/// order. If cells were measured one after the other, there are no rounds, and all have the same number.
fn rounds(entries: &[ReportEntry], cells: &[usize]) -> Vec<usize> {
    let sessions = |entry: &ReportEntry| entry.findings.stages.iter().map(|stage| stage.sessions).collect::<Vec<_>>();
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|number| entries[*number].findings.started);
    let mut rounds = vec![0; entries.len()];
    for (at, number) in order.iter().enumerate() {
        let is_same = |other: &&usize| {
            cells[**other] == cells[*number] && sessions(&entries[**other]) == sessions(&entries[*number])
        };
        rounds[*number] = order[..at].iter().filter(is_same).count();
    }
    let in_rounds = order.windows(2).all(|two| rounds[two[0]] <= rounds[two[1]]);
    if in_rounds { rounds } else { vec![0; entries.len()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_by_size_where_they_are_sizes() {
        let ordered = |values: &[&str]| levels(&values.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        assert_eq!(ordered(&["1GB", "16MB", "1GB", "128MB"]), ["16MB", "128MB", "1GB"]);
        assert_eq!(ordered(&["10", "9", "0.5"]), ["0.5", "9", "10"]);
        assert_eq!(ordered(&["on", "off", "on"]), ["on", "off"]);
        assert_eq!(ordered(&["8kB", "16 bytes"]), ["8kB", "16 bytes"]);
    }
}
