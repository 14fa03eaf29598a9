//! Histories: a figure of many records over time, versions or commits, its changes, and what changed with them.
//!
//! A series is the records of one setting of the work on one machine. Server settings, versions and the generator's
//! software may change within it: that is what a history is for. A point is the records with one label, such as a
//! commit; its value is their median. The method is `levels` of assay-stats.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use assay_record::Time;
use assay_stats::{CORRELATION_MAX, LevelChange, Measure, levels, trials};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::findings::metric::{Better, Metric};
use crate::findings::setting::{Difference, SettingKind};

/// A record with its figure.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryRecord {
    /// Its path.
    pub path: String,
    /// Start of its run.
    pub started: Time,
    /// The figure.
    pub value: f64,
    /// The machine of the load generator.
    pub machine: String,
    /// The workload.
    pub workload: String,
    /// Product of the first server.
    pub product: String,
    /// Its version.
    pub version: String,
    /// The user's tags.
    pub tags: BTreeMap<String, String>,
    /// Settings that matter, without tags: kind, name, value.
    pub settings: Arc<Vec<(SettingKind, String, String)>>,
}

/// What the points of a history are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryBy {
    /// Records, by the start of their runs.
    Time,
    /// Days (UTC).
    Day,
    /// Versions of the server, in their order.
    Version,
    /// Values of a tag, by the start of the first run with each.
    Tag(String),
}

/// What a history should show.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryAsked {
    /// The figure.
    pub metric: Metric,
    /// The points.
    pub by: HistoryBy,
    /// The smallest worsening that matters, a share.
    pub margin: f64,
    /// What is known about changes.
    pub notes: Vec<HistoryNote>,
}

/// A line about a change that somebody has looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryNote {
    /// What it does.
    pub kind: NoteKind,
    /// The series' id, or `*`.
    pub series: String,
    /// The metric's name, or `*`.
    pub metric: String,
    /// Label of the point.
    pub label: String,
    /// Why.
    pub reason: String,
}

/// What a note does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The change is known, and no reason to fail.
    Acknowledged,
    /// Points before this one do not count.
    Baseline,
}

/// A line of notes that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected `acknowledged|baseline SERIES METRIC POINT REASON…`")]
pub struct BadNote {
    /// Counts from 1.
    pub line: usize,
}

impl HistoryNote {
    /// The notes of a file: `acknowledged SERIES METRIC POINT REASON…` or `baseline …`, a line each. Blank lines and
    /// lines that start with `#` are comments.
    pub fn parse(text: &str) -> Result<Vec<HistoryNote>, BadNote> {
        let mut notes = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = BadNote { line: number + 1 };
            let words: Vec<&str> = line.split_whitespace().collect();
            let [kind, series, metric, label, reason @ ..] = words.as_slice() else { return Err(bad) };
            let kind = match *kind {
                "acknowledged" => NoteKind::Acknowledged,
                "baseline" => NoteKind::Baseline,
                _ => return Err(bad),
            };
            let [series, metric, label] = [series, metric, label].map(|word| (*word).to_owned());
            notes.push(HistoryNote { kind, series, metric, label, reason: reason.join(" ") });
        }
        Ok(notes)
    }

    fn is_about(&self, kind: NoteKind, series: &str, metric: &str) -> bool {
        let is = |own: &str, other: &str| own == "*" || own == other;
        self.kind == kind && is(&self.series, series) && is(&self.metric, metric)
    }
}

/// The histories of a question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// The figure.
    pub metric: Metric,
    /// The points.
    pub by: HistoryBy,
    /// The smallest worsening that matters.
    pub margin: f64,
    /// One per setting of the work and machine, those that got worse first.
    pub series: Vec<SeriesFindings>,
    /// Records without a label.
    pub unlabeled: usize,
}

/// A series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeriesFindings {
    /// Short and always the same for the same setting, machine and metric.
    pub id: String,
    /// What was measured.
    pub name: String,
    /// The product of the first server.
    pub product: String,
    /// The machine of the load generator.
    pub machine: String,
    /// The machine of the same work before this series, if another one took over: their difference is not a change.
    pub machine_before: Option<String>,
    /// In order.
    pub points: Vec<PointFindings>,
    /// Changes of the level, in order.
    pub changes: Vec<HistoryChange>,
    /// The latest points look different, and too few confirm it.
    pub pending: Option<HistoryChange>,
    /// Single points far from their neighbors, by number.
    pub spikes: Vec<usize>,
    /// A steady drift.
    pub drift: Option<DriftFindings>,
    /// Whether there are enough points for a statement about changes.
    pub is_judged: bool,
    /// Whether `noise` and `detectable` are shares of the level; otherwise they are in the metric's unit.
    pub in_shares: bool,
    /// Standard deviation of a point around its level.
    pub noise: Option<f64>,
    /// The smallest change that ten more points would most likely confirm.
    pub detectable: Option<f64>,
    /// Whether neighbors are so alike that chance produces more changes than it should.
    pub correlated: bool,
}

/// A point of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointFindings {
    /// Time, day, version or tag.
    pub label: String,
    /// Start of its first run.
    pub started: Time,
    /// Median of its records.
    pub value: f64,
    /// 95 % interval of the median: its lower end. `None` for fewer than five records.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Paths of its records.
    pub records: Vec<String>,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryChange {
    /// Number of the first point of the new level.
    pub at: usize,
    /// Its label.
    pub label: String,
    /// Start of its first run.
    pub started: Time,
    /// Label of the last point of the old level.
    pub previous: String,
    /// Median before.
    pub before: f64,
    /// Median after.
    pub after: f64,
    /// Ratio of the levels, the median of pairs of points; `None`: there is a difference instead.
    pub ratio: Option<f64>,
    /// Difference of the levels, of what has no ratio.
    pub difference: Option<f64>,
    /// 95 % interval of either; `None` for too few points.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Whether that is better or worse; `None` if neither.
    pub is_worse: Option<bool>,
    /// Why it does not count, if somebody has said so.
    pub acknowledged: Option<String>,
    /// Whether a later level is as good as the one before.
    pub recovered: bool,
    /// Settings, versions and tags that changed at the same point.
    pub with: Vec<Difference>,
}

/// A drift.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriftFindings {
    /// Label of the first point.
    pub from: String,
    /// Label of the last point.
    pub to: String,
    /// Points.
    pub points: usize,
    /// Change from the first to the last, a share of the first.
    pub total: f64,
    /// Its 95 % interval: the lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// As in `HistoryChange`.
    pub is_worse: Option<bool>,
    /// Why it does not count, if somebody has said so at its first point.
    pub acknowledged: Option<String>,
}

impl HistoryChange {
    /// Whether it is at least this share of the level before.
    fn is_as_large_as(&self, margin: f64) -> bool {
        match (self.ratio, self.difference) {
            (Some(ratio), _) => ratio.ln().abs() >= margin.ln_1p(),
            (None, difference) => difference.unwrap_or(0.0).abs() >= margin * self.before.abs(),
        }
    }
}

impl SeriesFindings {
    /// Changes for the worse that were as large as the margin, and that a later level made up for.
    pub fn recovered(&self, margin: f64) -> impl Iterator<Item = &HistoryChange> {
        let counts = move |change: &&HistoryChange| {
            change.is_worse == Some(true) && change.recovered && change.is_as_large_as(margin)
        };
        self.changes.iter().filter(counts)
    }

    /// Changes for the worse that are new: as large as the margin, not acknowledged, and not recovered from.
    pub fn alarms(&self, margin: f64) -> impl Iterator<Item = &HistoryChange> {
        let counts = move |change: &&HistoryChange| {
            let is_large = change.is_as_large_as(margin);
            change.is_worse == Some(true) && is_large && change.acknowledged.is_none() && !change.recovered
        };
        self.changes.iter().filter(counts)
    }

    /// A drift for the worse that is new.
    pub fn drift_alarm(&self, margin: f64) -> Option<&DriftFindings> {
        let counts = |drift: &&DriftFindings| {
            drift.is_worse == Some(true) && drift.total.abs() >= margin && drift.acknowledged.is_none()
        };
        self.drift.as_ref().filter(counts)
    }
}

impl History {
    /// Whether any series got worse, and nobody has acknowledged it.
    pub fn is_alarming(&self) -> bool {
        let margin = self.margin;
        self.series.iter().any(|one| one.alarms(margin).next().is_some() || one.drift_alarm(margin).is_some())
    }
}

/// Settings of the work: series with different ones are not compared.
type Work = Vec<(String, String)>;

/// The histories of these records.
pub fn history(records: Vec<HistoryRecord>, asked: &HistoryAsked) -> History {
    let mut by_work: BTreeMap<(String, String, Work), BTreeMap<String, Vec<HistoryRecord>>> = BTreeMap::new();
    let mut unlabeled = 0;
    for record in records.into_iter().filter(|record| record.value.is_finite()) {
        if matches!(&asked.by, HistoryBy::Tag(tag) if !record.tags.contains_key(tag)) {
            unlabeled += 1;
            continue;
        }
        let of_work = |kind: SettingKind| matches!(kind, SettingKind::Work | SettingKind::Session);
        let work: Work = record
            .settings
            .iter()
            .filter(|(kind, _, _)| of_work(*kind))
            .map(|(_, what, value)| (what.clone(), value.clone()))
            .collect();
        let key = (record.workload.clone(), record.product.clone(), work);
        by_work.entry(key).or_default().entry(record.machine.clone()).or_default().push(record);
    }
    let works: Vec<Work> = by_work.keys().map(|(_, _, work)| work.clone()).collect();
    let differing = differing(&works);
    let mut series = Vec::new();
    for ((workload, product, work), machines) in by_work {
        let name = name(&workload, &product, &work, &differing);
        let first = |records: &[HistoryRecord]| records.iter().map(|record| record.started).min();
        let mut machines: Vec<(String, Vec<HistoryRecord>)> = machines.into_iter().collect();
        machines.sort_by_key(|(_, records)| first(records));
        let mut before: Option<(String, Option<Time>)> = None;
        for (machine, records) in machines {
            let id = id(&[&workload, &product, &machine, &asked.metric.name], &work);
            let last = records.iter().map(|record| record.started).max();
            // One took over from the other if they did not measure at the same time.
            let took_over = before.filter(|(_, until)| *until < first(&records)).map(|(machine, _)| machine);
            let (name, product) = (name.clone(), product.clone());
            let one = SeriesOf { id, name, product, machine: machine.clone(), machine_before: took_over };
            series.push(one.findings(records, asked));
            before = Some((machine, last));
        }
    }
    let margin = asked.margin;
    let rank = |one: &SeriesFindings| match () {
        () if one.alarms(margin).next().is_some() || one.drift_alarm(margin).is_some() => 0,
        () if one.pending.is_some() => 1,
        () if !one.changes.is_empty() || one.drift.is_some() => 2,
        () => 3,
    };
    series.sort_by_key(|one| (rank(one), one.name.clone(), one.machine.clone()));
    History { metric: asked.metric.clone(), by: asked.by.clone(), margin, series, unlabeled }
}

struct SeriesOf {
    id: String,
    name: String,
    product: String,
    machine: String,
    machine_before: Option<String>,
}

/// A point while its series is built.
struct Labeled {
    label: String,
    records: Vec<HistoryRecord>,
}

impl SeriesOf {
    fn findings(self, records: Vec<HistoryRecord>, asked: &HistoryAsked) -> SeriesFindings {
        let metric = &asked.metric;
        let mut labeled = labeled(records, &asked.by);
        let about = |kind| -> Vec<&HistoryNote> {
            asked.notes.iter().filter(|note| note.is_about(kind, &self.id, &metric.name)).collect()
        };
        let (baselines, acknowledgments) = (about(NoteKind::Baseline), about(NoteKind::Acknowledged));
        let is_baseline = |one: &Labeled| baselines.iter().any(|note| note.label == one.label);
        if let Some(at) = labeled.iter().rposition(is_baseline) {
            labeled.drain(..at);
        }
        let points: Vec<PointFindings> = labeled.iter().filter_map(|one| point(one, metric)).collect();
        let values: Vec<f64> = points.iter().map(|point| point.value).collect();
        let found = levels(&values, metric.scale());
        let acknowledged = |at: usize| {
            // With more points, the place of a change may move a little.
            let near = |note: &&&HistoryNote| {
                let place = points.iter().position(|point| point.label == note.label);
                place.is_some_and(|place| place.abs_diff(at) <= 2)
            };
            acknowledgments.iter().find(near).map(|note| note.reason.clone())
        };
        let change = |change: &LevelChange| HistoryChange {
            at: change.at,
            label: points[change.at].label.clone(),
            started: points[change.at].started,
            previous: points[change.at - 1].label.clone(),
            before: change.before,
            after: change.after,
            ratio: (change.size.by == Measure::Ratio).then_some(change.size.size),
            difference: (change.size.by == Measure::Difference).then_some(change.size.size),
            low: change.size.interval.map(|(low, _)| low),
            high: change.size.interval.map(|(_, high)| high),
            is_worse: is_worse(metric.better, change.size.size - change.size.by.none()),
            acknowledged: acknowledged(change.at),
            recovered: false,
            with: changed_with(&labeled, change.at, &asked.by),
        };
        let mut changes: Vec<HistoryChange> = found.changes.iter().map(change).collect();
        for at in 0..changes.len() {
            let before = changes[at].before;
            let near = NEAR * before.abs();
            let is_as_good = |after: f64| match metric.better {
                Better::Higher => after >= before - near,
                Better::Lower => after <= before + near,
                Better::Neither => true,
            };
            changes[at].recovered = changes[at + 1..].iter().any(|later| is_as_good(later.after));
        }
        let drift = found.drift.map(|drift| DriftFindings {
            from: points[drift.from].label.clone(),
            to: points[drift.to].label.clone(),
            points: drift.to - drift.from + 1,
            total: drift.total,
            low: drift.interval.0,
            high: drift.interval.1,
            is_worse: is_worse(metric.better, drift.total),
            acknowledged: acknowledged(drift.from),
        });
        SeriesFindings {
            pending: found.pending.as_ref().map(change),
            spikes: found.spikes,
            is_judged: found.is_judged,
            in_shares: found.by == Measure::Ratio,
            noise: found.noise,
            detectable: found.detectable,
            correlated: found.correlation.is_some_and(|correlation| correlation > CORRELATION_MAX),
            id: self.id.clone(),
            name: self.name,
            product: self.product,
            machine: self.machine,
            machine_before: self.machine_before,
            points,
            changes,
            drift,
        }
    }
}

/// A recovery may miss the old level by this share.
const NEAR: f64 = 0.01;

/// Whether it is worse to have so much more.
fn is_worse(better: Better, more: f64) -> Option<bool> {
    match better {
        Better::Higher => Some(more < 0.0),
        Better::Lower => Some(more > 0.0),
        Better::Neither => None,
    }
}

/// The points, in order.
fn labeled(records: Vec<HistoryRecord>, by: &HistoryBy) -> Vec<Labeled> {
    let mut records = records;
    records.sort_by(|a, b| (a.started, &a.path).cmp(&(b.started, &b.path)));
    let mut points: Vec<Labeled> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for record in records {
        let label = match by {
            HistoryBy::Time => record.started.to_string(),
            HistoryBy::Day => record.started.to_string()[..10].to_owned(),
            HistoryBy::Version => record.version.split([' ', '-']).next().unwrap_or_default().to_owned(),
            HistoryBy::Tag(tag) => record.tags.get(tag).cloned().unwrap_or_default(),
        };
        match places.get(&label) {
            Some(place) => points[*place].records.push(record),
            None => {
                places.insert(label.clone(), points.len());
                points.push(Labeled { label, records: vec![record] });
            }
        }
    }
    if *by == HistoryBy::Version {
        points.sort_by_key(|point| version_key(&point.label));
    }
    points
}

/// Orders versions by their numbers.
pub(crate) fn version_key(version: &str) -> Vec<(u64, String)> {
    let part = |part: &str| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        (part[..digits].parse().unwrap_or(0), part[digits..].to_owned())
    };
    version.split('.').map(part).collect()
}

fn point(of: &Labeled, metric: &Metric) -> Option<PointFindings> {
    let values: Vec<f64> = of.records.iter().map(|record| record.value).collect();
    let found = trials(&values, metric.scale())?;
    Some(PointFindings {
        label: of.label.clone(),
        started: of.records[0].started,
        value: found.median,
        low: found.interval.map(|interval| interval.low),
        high: found.interval.map(|interval| interval.high),
        records: of.records.iter().map(|record| record.path.clone()).collect(),
    })
}

/// Settings that all points shortly before `at` have otherwise than all points shortly after.
fn changed_with(points: &[Labeled], at: usize, by: &HistoryBy) -> Vec<Difference> {
    const NEAR: usize = 3;
    type Values = BTreeMap<(SettingKind, String), BTreeSet<String>>;
    let values = |points: &[Labeled]| -> Values {
        let mut all = Values::new();
        for record in points.iter().flat_map(|point| &point.records) {
            for (kind, what, value) in record.settings.iter() {
                all.entry((*kind, what.clone())).or_default().insert(value.clone());
            }
            for (key, value) in &record.tags {
                all.entry((SettingKind::Tag, format!("tag {key}"))).or_default().insert(value.clone());
            }
        }
        all
    };
    let (before, after) =
        (values(&points[at.saturating_sub(NEAR)..at]), values(&points[at..(at + NEAR).min(points.len())]));
    let keys: BTreeSet<&(SettingKind, String)> = before.keys().chain(after.keys()).collect();
    let own = |what: &str| matches!(by, HistoryBy::Tag(tag) if what.strip_prefix("tag ") == Some(tag));
    let of = |side: &Values, key: &(SettingKind, String)| -> Vec<String> {
        side.get(key).into_iter().flatten().cloned().collect()
    };
    let difference = |key: &&(SettingKind, String)| {
        let (baseline, candidate) = (of(&before, key), of(&after, key));
        // A tag of every point, such as its commit, says nothing.
        let is_apart = baseline.len() <= 1 && candidate.len() <= 1 && baseline != candidate;
        is_apart.then(|| Difference { kind: key.0, what: key.1.clone(), baseline, candidate })
    };
    keys.iter().filter(|(_, what)| !own(what)).filter_map(difference).collect()
}

/// Names of settings that are not the same in all.
fn differing(all: &[Work]) -> BTreeSet<String> {
    let Some(first) = all.first() else { return BTreeSet::new() };
    let names: BTreeSet<&String> = all.iter().flatten().map(|(name, _)| name).collect();
    let of = |work: &Work, name: &String| work.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
    names.into_iter().filter(|name| all.iter().any(|work| of(work, name) != of(first, name))).cloned().collect()
}

/// `tpcc, PostgreSQL, 8 sessions, tables=4`.
fn name(workload: &str, product: &str, work: &Work, differing: &BTreeSet<String>) -> String {
    let mut parts = vec![workload.to_owned()];
    parts.extend(Some(product.to_owned()).filter(|product| !product.is_empty()));
    for (what, value) in work {
        match what.as_str() {
            "workload" => {}
            "sessions" if value == "1" => parts.push("1 session".to_owned()),
            "sessions" => parts.push(format!("{value} sessions")),
            "load" if differing.contains(what) => parts.push(value.clone()),
            what if differing.contains(what) && !value.is_empty() && value != "none" => {
                parts.push(format!("{}={value}", what.trim_start_matches("option ")));
            }
            _ => {}
        }
    }
    parts.join(", ")
}

fn id(parts: &[&str], work: &Work) -> String {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(format!("{part}\0")));
    work.iter().for_each(|(name, value)| hash.update(format!("{name}\0{value}\0")));
    hash.finalize()[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}
