//! Several records told together: which of them are trials of one setting, and what to call each.
//!
//! Two records have the same setting when everything that was asked for, the server and the machine are the same; the seed
//! and the time of day do not count. A record's name is what tells its setting from the others'.

use assay_stats::MARGIN_DEFAULT;
use serde::Serialize;

use crate::chart::{self, Chart};
use crate::comparison::{Comparison, Side, compare};
use crate::findings::Findings;
use crate::setting::{Group, named_groups};

/// Records and the charts of all of them together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The trials of a setting side by side, otherwise in the order given.
    pub entries: Vec<Entry>,
    /// Charts of all records together.
    pub charts: Vec<Chart>,
    /// Number of different settings.
    pub settings: usize,
    /// Every other setting compared with the first.
    pub comparisons: Vec<Comparison>,
}

/// One record in a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The file it came from.
    pub file: String,
    /// What tells it from the others.
    pub name: String,
    /// Entries of the same number are trials of one setting. Counted from 0 in the order of their first entry.
    pub setting: usize,
    /// What it says.
    pub findings: Findings,
    /// Its own charts.
    pub charts: Vec<Chart>,
}

impl Report {
    /// Every chart: those of each record, then those of all together.
    pub fn all_charts(&self) -> impl Iterator<Item = &Chart> {
        self.entries.iter().flat_map(|entry| &entry.charts).chain(&self.charts)
    }
}

/// More settings than these are seen side by side, and compared by `assay compare`.
const SETTINGS_COMPARED_MAX: usize = 9;
/// Leaves room for the trial and the number of sessions in every legend.
const SETTING_WIDTH: usize = 44;

/// What `records` (file and findings) say together.
pub fn report(records: Vec<(String, Findings)>) -> Report {
    let groups = named_groups(records, SETTING_WIDTH);
    let (comparisons, settings) = (comparisons(&groups), groups.len());
    let mut entries = Vec::new();
    for (setting, group) in groups.into_iter().enumerate() {
        let several = group.trials.len() > 1;
        for (number, (file, findings)) in group.records.into_iter().zip(group.trials).enumerate() {
            let trial = several.then(|| format!("trial {}", number + 1));
            let name = (settings > 1 || !several).then(|| group.name.clone());
            let name = name.into_iter().chain(trial).collect::<Vec<_>>().join(", ");
            entries.push(Entry { file, name, setting, findings, charts: Vec::new() });
        }
    }
    let charts: Vec<Vec<Chart>> =
        entries.iter().enumerate().map(|(number, entry)| chart::of_entry(entry, number)).collect();
    for (entry, charts) in entries.iter_mut().zip(charts) {
        entry.charts = charts;
    }
    Report { charts: chart::of_all(&entries), settings, comparisons, entries }
}

/// Every setting compared with the first, by its trials.
fn comparisons(groups: &[Group]) -> Vec<Comparison> {
    fn side(group: &Group) -> Side<'_> {
        Side { name: &group.name, records: &group.records, trials: &group.trials }
    }
    let [baseline, candidates @ ..] = groups else { return Vec::new() };
    let candidates = candidates.iter().take(SETTINGS_COMPARED_MAX - 1);
    candidates.map(|candidate| compare(side(baseline), side(candidate), MARGIN_DEFAULT)).collect()
}
