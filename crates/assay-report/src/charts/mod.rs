//! Findings as charts, and charts as pictures.

use serde::Serialize;

use crate::charts::chart::Chart;
use crate::findings::report::{Entry, Report};

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
    /// Of each record, in the order of the report.
    pub of_entries: Vec<Vec<Chart>>,
    /// Of all records together.
    pub of_all: Vec<Chart>,
}

/// Every chart that `report` has figures for.
pub fn charts(report: &Report) -> Charts {
    let entries = report.entries.iter().enumerate();
    Charts {
        of_entries: entries.map(|(number, entry)| of_entry(entry, number)).collect(),
        of_all: of_all(&report.entries),
    }
}

impl Charts {
    /// Every chart: those of each record, then those of all together.
    pub fn iter(&self) -> impl Iterator<Item = &Chart> {
        self.of_entries.iter().flatten().chain(&self.of_all)
    }
}

/// What a run did, and below it what servers and their machine did at the same time.
fn of_entry(entry: &Entry, number: usize) -> Vec<Chart> {
    let mut charts = time::of_entry(entry, number);
    charts.extend(telemetry::of_entry(entry, number));
    charts
}

fn of_all(entries: &[Entry]) -> Vec<Chart> {
    let mut charts = ladder::ladders(entries);
    charts.extend(capacity::capacities(entries));
    charts.extend(spread::boxes(entries));
    charts.extend(spread::percentiles(entries));
    if entries.len() > 1 {
        charts.extend(time::over_time(entries));
    }
    charts.retain(|chart| !chart.is_empty());
    charts.into_iter().map(Chart::with_groups).collect()
}
