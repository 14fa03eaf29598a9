//! Several records in one report: which of them are trials of one setting, and how each is named.
//!
//! Two records have the same setting if everything requested, the server and the machine are the same; seed and time of
//! day do not count. A record's name is what distinguishes its setting from the others'.

use assay_stats::MARGIN_DEFAULT;
use serde::Serialize;

use crate::findings::comparison::{Comparison, Side, compare};
use crate::findings::explanation::{Explanation, explain};
use crate::findings::run::Findings;
use crate::findings::setting::{Group, groups};

/// Records in one report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The trials of a setting together, otherwise in the order given.
    pub entries: Vec<ReportEntry>,
    /// Number of different settings.
    pub settings: usize,
    /// Their names.
    #[serde(skip)]
    pub names: Vec<String>,
    /// The reader's own title, if any.
    #[serde(skip)]
    pub title: Option<String>,
    /// The reader's notes in charts over time: seconds since the start, and a text.
    #[serde(skip)]
    pub notes: Vec<(f64, String)>,
    /// Its answer in a sentence; `None`: derived from the records.
    #[serde(skip)]
    pub answer: Option<String>,
    /// Its heading; `None`: derived from the records.
    #[serde(skip)]
    pub head: Option<Vec<String>>,
    /// The address of a picture for previews of links to the page.
    #[serde(skip)]
    pub picture: Option<String>,
    /// Whether the agents of a fleet are shown separately.
    #[serde(skip)]
    pub agents: bool,
    /// Every other setting compared with the first.
    pub comparisons: Vec<Comparison>,
    /// Why each of them differs from the first, in the same order; `None`: nothing in common to compare.
    #[serde(skip)]
    pub explanations: Vec<Option<Explanation>>,
}

/// One record in a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportEntry {
    /// The file it came from.
    pub file: String,
    /// Its name: the settings that distinguish it.
    pub name: String,
    /// Entries with the same number are trials of one setting. Counted from 0 in order of appearance.
    pub setting: usize,
    /// Its findings.
    pub findings: Findings,
}

/// The trials of one setting.
pub(crate) struct Setting<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Counted from 0.
    pub(crate) number: usize,
    /// At least one.
    pub(crate) trials: Vec<&'a ReportEntry>,
}

impl Report {
    /// Every setting with its trials, in order.
    pub(crate) fn by_setting<'a>(&'a self) -> Vec<Setting<'a>> {
        let setting = |(number, name): (usize, &'a String)| Setting {
            name,
            number,
            trials: self.entries.iter().filter(|entry| entry.setting == number).collect(),
        };
        self.names.iter().enumerate().map(setting).filter(|setting| !setting.trials.is_empty()).collect()
    }

    /// The name of each record if there are several, and its findings.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (&str, &Findings)> {
        let several = self.entries.len() > 1;
        self.entries.iter().map(move |entry| (if several { entry.name.as_str() } else { "" }, &entry.findings))
    }
}

/// More settings than this are shown side by side, and compared by `assay compare`.
const SETTINGS_COMPARED_MAX: usize = 9;

/// The report of `records` (file and findings).
pub fn report(records: Vec<(String, Findings)>) -> Report {
    let groups = groups(records);
    let (comparisons, explanations) = comparisons(&groups).into_iter().unzip();
    let settings = groups.len();
    let (mut entries, mut names) = (Vec::new(), Vec::new());
    for (setting, group) in groups.into_iter().enumerate() {
        let several = group.trials.len() > 1;
        names.push(group.name.clone());
        for (number, (file, findings)) in group.records.into_iter().zip(group.trials).enumerate() {
            let trial = several.then(|| format!("trial {}", number + 1));
            let name = (settings > 1 || !several).then(|| group.name.clone());
            let name = name.into_iter().chain(trial).collect::<Vec<_>>().join(", ");
            entries.push(ReportEntry { file, name, setting, findings });
        }
    }
    Report {
        entries,
        settings,
        names,
        title: None,
        notes: Vec::new(),
        answer: None,
        head: None,
        picture: None,
        agents: false,
        comparisons,
        explanations,
    }
}

/// The report of an experiment: its cells, each with its records (name and findings), under a title, its answer and a
/// few sentences. They are compared by the experiment's own tables.
pub fn report_of_cells(
    title: &str,
    answer: Option<String>,
    head: Vec<String>,
    cells: Vec<(String, Vec<(String, Findings)>)>,
) -> Report {
    let (mut entries, mut names) = (Vec::new(), Vec::new());
    for (setting, (cell, records)) in cells.into_iter().filter(|(_, records)| !records.is_empty()).enumerate() {
        for (name, findings) in records {
            let name = format!("{cell}, {name}");
            entries.push(ReportEntry { file: name.clone(), name, setting, findings });
        }
        names.push(cell);
    }
    let settings = names.len();
    let (title, head) = (Some(title.to_owned()), Some(head));
    Report {
        entries,
        settings,
        names,
        title,
        notes: Vec::new(),
        answer,
        head,
        picture: None,
        agents: false,
        comparisons: Vec::new(),
        explanations: Vec::new(),
    }
}

/// Every setting compared with the first, by its trials, and why they differ.
fn comparisons(groups: &[Group]) -> Vec<(Comparison, Option<Explanation>)> {
    fn side(group: &Group) -> Side<'_> {
        Side { name: &group.name, records: &group.records, trials: &group.trials }
    }
    let [baseline, candidates @ ..] = groups else { return Vec::new() };
    let candidates = candidates.iter().take(SETTINGS_COMPARED_MAX - 1);
    let with_first = |candidate: &Group| {
        let found = compare(side(baseline), side(candidate), MARGIN_DEFAULT);
        let explanation = explain(&found, &baseline.trials, &candidate.trials);
        (found, explanation)
    };
    candidates.map(with_first).collect()
}
