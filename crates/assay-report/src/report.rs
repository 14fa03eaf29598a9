//! Several records told together: which of them are trials of one setting, and what to call each.
//!
//! Two records have the same setting when everything that was asked for, the server and the machine are the same; the seed
//! and the time of day do not count. A record's name is what tells its setting from the others'.

use std::collections::BTreeSet;

use assay_record::Load;
use assay_stats::MARGIN_DEFAULT;
use serde::Serialize;

use crate::cells::{clean, count, figure, seconds};
use crate::chart::{self, Chart};
use crate::comparison::{Comparison, Side, compare};
use crate::findings::Findings;
use crate::text::option_value;

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

const NAME_WIDTH: usize = 64;
/// More settings than these are seen side by side, and compared by `assay compare`.
const SETTINGS_COMPARED_MAX: usize = 9;
/// Leaves room for the trial and the number of sessions in every legend.
const SETTING_WIDTH: usize = 44;

/// What `records` (file and findings) say together.
pub fn report(records: Vec<(String, Findings)>) -> Report {
    let facts: Vec<Vec<(String, String)>> = records.iter().map(|(_, findings)| facts(findings)).collect();
    let mut settings: Vec<&Vec<(String, String)>> = Vec::new();
    let mut trials: Vec<usize> = Vec::new();
    let mut entries = Vec::new();
    for ((file, findings), of_entry) in records.into_iter().zip(&facts) {
        let setting = settings.iter().position(|known| *known == of_entry).unwrap_or_else(|| {
            settings.push(of_entry);
            trials.push(0);
            settings.len() - 1
        });
        trials[setting] += 1;
        // The number of the trial, until it has a name.
        entries.push(Entry { file, name: trials[setting].to_string(), setting, findings, charts: Vec::new() });
    }
    entries.sort_by_key(|entry| entry.setting);
    for entry in &mut entries {
        let trial = (trials[entry.setting] > 1).then(|| format!("trial {}", entry.name));
        let setting = difference(settings[entry.setting], &settings);
        let name = [setting, trial].into_iter().flatten().collect::<Vec<_>>().join(", ");
        entry.name = if name.is_empty() { clean(&entry.findings.workload, NAME_WIDTH) } else { name };
    }
    let names: Vec<String> =
        settings.iter().map(|setting| difference(setting, &settings).unwrap_or_default()).collect();
    let comparisons = comparisons(&entries, &names);
    let charts: Vec<Vec<Chart>> =
        entries.iter().enumerate().map(|(number, entry)| chart::of_entry(entry, number)).collect();
    for (entry, charts) in entries.iter_mut().zip(charts) {
        entry.charts = charts;
    }
    Report { charts: chart::of_all(&entries), settings: settings.len(), comparisons, entries }
}

/// Every setting compared with the first, by its trials.
fn comparisons(entries: &[Entry], names: &[String]) -> Vec<Comparison> {
    struct Trials<'a>(&'a str, Vec<String>, Vec<Findings>);
    let trials = |(setting, name)| {
        let own = || entries.iter().filter(|entry: &&Entry| entry.setting == setting);
        let (files, findings) = own().map(|entry| (entry.file.clone(), entry.findings.clone())).unzip();
        Trials(name, files, findings)
    };
    let sides: Vec<Trials> =
        names.iter().map(String::as_str).enumerate().take(SETTINGS_COMPARED_MAX).map(trials).collect();
    let [baseline, candidates @ ..] = &sides[..] else { return Vec::new() };
    fn side<'a>(Trials(name, records, trials): &'a Trials<'_>) -> Side<'a> {
        Side { name, records, trials }
    }
    candidates.iter().map(|candidate| compare(side(baseline), side(candidate), MARGIN_DEFAULT)).collect()
}

/// What in `setting` is not the same in all of `settings`; `None` when there is only one.
fn difference(setting: &[(String, String)], settings: &[&Vec<(String, String)>]) -> Option<String> {
    if settings.len() < 2 {
        return None;
    }
    let own = own(setting, settings);
    let name = clean(&own.join(", "), SETTING_WIDTH);
    // Only what others have, or too much to be told apart once it is cut.
    let number = settings.iter().position(|other| *other == setting).unwrap_or(0) + 1;
    let alike = || {
        let names = settings.iter().map(|other| clean(&self::own(other, settings).join(", "), SETTING_WIDTH));
        names.collect::<BTreeSet<_>>().len() < settings.len()
    };
    Some(if own.is_empty() {
        "otherwise as the others".to_owned()
    } else if alike() {
        format!("setting {number}: {name}")
    } else {
        name
    })
}

/// The facts of `setting` that not all of `settings` share. A server's setting that session SQL names is told once.
fn own(setting: &[(String, String)], settings: &[&Vec<(String, String)>]) -> Vec<String> {
    let mut own: Vec<String> = Vec::new();
    for (name, value) in setting.iter().filter(|fact| !settings.iter().all(|other| other.contains(fact))) {
        let told = name.strip_suffix('=').is_some_and(|name| own.iter().any(|before| before.contains(name)));
        if !told {
            own.push(format!("{name}{value}"));
        }
    }
    own
}

/// What was asked for, of whom, and where: with a word before each value where the value does not speak for itself.
fn facts(findings: &Findings) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("", findings.workload.clone());
    fact(
        "",
        findings.stages.iter().map(|stage| stage.sessions.to_string()).collect::<Vec<_>>().join(",") + " sessions",
    );
    if let Some(terminals) = findings.terminals {
        fact("", format!("{} terminals", terminals.number));
        fact("think scale ", figure(terminals.think_scale));
    }
    match findings.load {
        Load::Closed => fact("", "closed loop".into()),
        Load::Open { rate_per_s, .. } => fact("", format!("{} tx/s", figure(rate_per_s))),
    }
    for (name, value) in &findings.options {
        fact(&format!("{name}="), option_value(value));
    }
    match &findings.session_sql[..] {
        [] => fact("", "no session SQL".into()),
        statements => fact("", statements.join("; ")),
    }
    for target in &findings.targets {
        fact("", format!("{} {}", target.product, target.version));
        fact("", target.url.clone());
        for (name, value) in &target.settings {
            fact(&format!("{name}="), value.clone());
        }
    }
    if let Some(ns) = findings.limit.time_ns {
        fact("for ", seconds(ns));
    }
    if let Some(transactions) = findings.limit.transactions {
        fact("", format!("{} transactions", count(transactions)));
    }
    fact("warm-up ", seconds(findings.warmup_ns));
    fact("", findings.distribution.clone().unwrap_or_default());
    fact("on ", findings.host.name.clone());
    fact("", findings.tool.clone());
    facts
}
