//! Findings as charts, and charts as pictures.

use std::convert::Infallible;

use serde::Serialize;

use crate::charts::chart::{Chart, points_max};
use crate::charts::time::TimeLine;
use crate::cpus::on_all_cpus;
use crate::findings::report::{Report, ReportEntry};
use crate::findings::run::Findings;
use crate::findings::shares::Points;
use crate::words::run::{TRANSACTIONS_PER_SECOND, rate_words_of};
use crate::words::subject::{slug, subject};
use crate::words::window::window_words;

pub(crate) mod asked;
mod capacity;
pub(crate) mod chart;
mod ladder;
pub(crate) mod layout;
pub(crate) mod palette;
pub(crate) mod picture;
mod shape;
mod spread;
mod telemetry;
mod time;

/// The charts of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Charts {
    /// Charts of each record, in the order of the report.
    pub of_entries: Vec<Vec<Chart>>,
    /// Charts of all records together.
    pub of_all: Vec<Chart>,
}

/// Leaves out the readings over time that are in no chart of `charts`: a report of many records need not keep them.
pub fn forget_undrawn(findings: &mut Findings) {
    for scope in findings.stages.iter_mut().flat_map(|stage| &mut stage.telemetry) {
        let kind = scope.scope;
        let is_needed = |metric: &str| telemetry::is_drawn(kind, metric) || time::is_marked(metric);
        for metric in scope.metrics.iter_mut().filter(|one| !is_needed(&one.metric)) {
            metric.points = Points::default();
        }
    }
}

/// Every chart for which `report` has data.
pub fn charts(report: &Report) -> Charts {
    let several = report.entries.len() > 1;
    let points = points_max(report.entries.len());
    let of_entry = |number: usize, entry: &ReportEntry| {
        let (subject, name) = (subject([&entry.findings]), slug(entry, several));
        let named = |chart: Chart| {
            let what = chart.id.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-');
            Chart { subject: subject.clone(), file: format!("{name}-{what}"), ..chart }.of_records([&entry.findings])
        };
        // A run, and below it servers and their machine over the same time.
        let time = TimeLine::new(&entry.findings, points);
        let all = time::of_entry(&time, entry, number).into_iter().chain(telemetry::of_entry(&time, entry, number));
        Ok::<Vec<Chart>, Infallible>(all.map(named).collect())
    };
    let Ok(of_entries) = on_all_cpus(&report.entries, of_entry);
    let mut charts = Charts { of_entries, of_all: of_all(report) };
    for chart in charts.of_entries.iter_mut().flatten().chain(&mut charts.of_all) {
        chart.note(&report.notes);
    }
    charts.name_files_apart();
    charts
}

impl Charts {
    /// Every chart: those of each record, then those of all together.
    pub fn iter(&self) -> impl Iterator<Item = &Chart> {
        self.of_entries.iter().flatten().chain(&self.of_all)
    }

    /// The chart with this name.
    pub(crate) fn get(&self, id: &str) -> Option<&Chart> {
        self.iter().find(|chart| chart.id == id)
    }

    fn name_files_apart(&mut self) {
        let mut known = std::collections::HashSet::new();
        for chart in self.of_entries.iter_mut().flatten().chain(&mut self.of_all) {
            let own = std::mem::take(&mut chart.file);
            let numbered = (2..).map(|number| format!("{own}-{number}"));
            let free = [own.clone()].into_iter().chain(numbered).find(|name| known.insert(name.clone()));
            chart.file = free.expect("numbers do not end");
        }
    }
}

fn of_all(report: &Report) -> Vec<Chart> {
    let Some(first) = report.entries.first() else { return Vec::new() };
    let settings = report.by_setting();
    let mut charts: Vec<Chart> = spread::trials(report, &settings).into_iter().collect();
    charts.extend(ladder::ladders(&settings));
    charts.extend(capacity::capacities(&report.entries));
    if report.entries.len() > 1 {
        charts.extend(time::over_time(&settings));
    }
    charts.extend(spread::percentiles(&settings));
    charts.extend(spread::boxes(&settings));
    charts.retain(|chart| !chart.is_empty());
    let records = || report.entries.iter().map(|entry| &entry.findings);
    let (subject, name) = (subject(records()), slug(first, false));
    let named = |chart: Chart| {
        let what = chart.id.trim_end_matches("-all");
        Chart { subject: subject.clone(), file: format!("{name}-{what}"), ..chart }.of_records(records())
    };
    charts.into_iter().map(Chart::with_groups).map(named).collect()
}

impl Chart {
    /// States the unit of throughput at the axes, and in the caption which part of the runs it shows.
    pub(crate) fn of_records<'a>(mut self, records: impl IntoIterator<Item = &'a Findings> + Clone) -> Chart {
        let rate = rate_words_of(records.clone());
        self.caption = self.caption.replace(TRANSACTIONS_PER_SECOND, rate);
        for axis in self.axes_up() {
            axis.label = axis.label.replace(TRANSACTIONS_PER_SECOND, rate);
        }
        let Some(window) = window_words(records.into_iter().flat_map(|record| &record.stages)) else { return self };
        let told = std::mem::take(&mut self.caption);
        self.caption = if told.is_empty() { window } else { format!("{window}; {told}") };
        self
    }
}
