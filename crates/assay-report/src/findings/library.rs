//! Records as the library lists them, and the figures that it keeps of each.

use std::collections::BTreeMap;

use assay_record::Time;
use serde::Serialize;

use crate::findings::metric::{Metric, MetricUnit, trial_metrics};
use crate::findings::run::Findings;
use crate::findings::setting::{SettingKind, settings};

/// A record of the library.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LibraryEntry {
    /// Its path below the library's folder.
    pub path: String,
    /// Start of the run.
    pub started: Time,
    /// Its length, including connects.
    pub elapsed_ns: u64,
    /// `complete`, `interrupted`, `failed`, `unfinished`, or `rejected` by its experiment.
    pub outcome: String,
    /// The workload.
    pub workload: String,
    /// The task.
    pub task: String,
    /// Product of the first server; empty if it never answered.
    pub product: String,
    /// Its version.
    pub version: String,
    /// The load generator's host.
    pub machine: String,
    /// Sessions of each stage.
    pub sessions: String,
    /// Throughput of the main stage.
    pub tps: Option<f64>,
    /// Response time of the main stage.
    pub p95_ns: Option<f64>,
    /// The user's tags.
    pub tags: BTreeMap<String, String>,
}

/// Figures of a record's main stage that need neither intervals nor telemetry.
pub type LibraryFigures = Vec<(Metric, f64)>;

/// The figures that the library keeps: all of the whole load, throughput and p95 of each transaction type.
pub fn library_figures(findings: &Findings) -> LibraryFigures {
    let Some(stage) = findings.main_stage() else { return Vec::new() };
    let is_kept = |name: &str, unit: MetricUnit| {
        let of_type = name.split_once('.').map(|(_, figure)| figure);
        let of_load = !name.starts_with("service_") && !name.starts_with("lag_");
        // Outages are found in intervals.
        unit != MetricUnit::Level && name != "outage" && of_load && of_type.is_none_or(|it| it == "tps" || it == "p95")
    };
    let all = trial_metrics(findings, stage.sessions).into_iter();
    all.filter(|(metric, _)| is_kept(&metric.name, metric.unit))
        .filter_map(|(metric, value)| Some((metric, value.filter(|value| value.is_finite())?)))
        .collect()
}

/// Everything that must be the same before two runs are trials of one setting, tags included: kind, name and value.
pub fn settings_in_effect(findings: &Findings) -> Vec<(SettingKind, String, String)> {
    settings(findings).into_iter().map(|(name, value)| (name.kind, name.what, value)).collect()
}
