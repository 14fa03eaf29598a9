//! Several records told together: which of them are trials of one setting, and what to call each.
//!
//! Two records have the same setting when everything that was asked for, the server and the machine are the same; the seed
//! and the time of day do not count. A record's name is what tells its setting from the others'.

use assay_stats::MARGIN_DEFAULT;
use serde::Serialize;

use crate::findings::comparison::{Comparison, Side, compare};
use crate::findings::run::Findings;
use crate::findings::setting::{Group, named_groups};

/// Records, told together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The trials of a setting side by side, otherwise in the order given.
    pub entries: Vec<Entry>,
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
}

impl Report {
    /// What to call each record where there are several, and what it says.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&str, &Findings)> {
        let several = self.entries.len() > 1;
        self.entries.iter().map(move |entry| (if several { entry.name.as_str() } else { "" }, &entry.findings))
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
            entries.push(Entry { file, name, setting, findings });
        }
    }
    Report { entries, settings, comparisons }
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
