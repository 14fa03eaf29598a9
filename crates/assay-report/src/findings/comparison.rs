//! Baseline against candidate: the settings that differ, the changes, and the verdict.
//!
//! A side is the trials of one setting, with one value of every metric per trial. The method is `change` of
//! assay-stats. Doubts about the comparison (other work, other hosts, broken trials) are found here, too, and shown
//! before any number.

use assay_record::{Load, Status};
use assay_stats::{Change, Measure, Scale, Verdict as Found, change};
use serde::Serialize;

use crate::findings::capacity::{Capacity, CapacityFindings};
use crate::findings::judgment::ConditionFindings;
use crate::findings::limit::LimitedTrials;
use crate::findings::metric::{Better, Metric, TrialsFindings, over_trials, stage_sessions};
use crate::findings::run::Findings;
use crate::findings::setting::{Difference, Mixed, SettingKind, differences, mixed};
use crate::findings::verdict::ChangeVerdict;
use crate::findings::warning::Warning;

/// The load of a closed loop, as attributes have it.
const CLOSED_LOOP: &str = "closed loop";

/// Two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The side that is compared with.
    pub baseline: SideFindings,
    /// The other one.
    pub candidate: SideFindings,
    /// Settings that differ between the sides, the most important first.
    pub differences: Vec<Difference>,
    /// The smallest difference that matters, a share.
    pub margin: f64,
    /// The metric of the verdict in words: `tps` in a closed loop; `p99` in an open one, whose rate is given;
    /// `capacity` for searches for a rate.
    pub headline: String,
    /// One per number of sessions that both sides measured; if each measured a single different one, that pair.
    pub stages: Vec<StageComparison>,
    /// The conditions of `--fail-if`, and their outcomes.
    pub conditions: Vec<ConditionFindings>,
}

/// One side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SideFindings {
    /// The user's name for it.
    pub name: String,
    /// Paths of its records, in order.
    pub records: Vec<String>,
    /// Records that were given several times under different names, and those names: such a trial counts once.
    pub copies: Vec<(String, Vec<String>)>,
    /// The workload of the first.
    pub workload: String,
    /// Product and version of the first's servers.
    pub servers: Vec<String>,
    /// Settings that differ between its trials, which are then not trials of one setting.
    pub mixed: Vec<Mixed>,
    /// Trials, counted from 1, that did not end as planned, and how they ended.
    pub incomplete: Vec<(usize, Status)>,
    /// Trials in which the generator was the bottleneck, starved, or late.
    pub limited_by_generator: usize,
    /// Limited trials by reason.
    pub generator: LimitedTrials,
    /// Transactions given up, over all trials.
    pub failed: u64,
    /// The change in throughput from the first trial to the last, as a share of its median, if it is significant.
    pub drift: Option<f64>,
}

/// One number of sessions, or one per side if the sides measured a single different one each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageComparison {
    /// Sessions taking transactions: of the baseline.
    pub sessions: u32,
    /// Sessions of the candidate.
    pub candidate_sessions: u32,
    /// Every metric that either side has.
    pub metrics: Vec<MetricComparison>,
}

/// One metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricComparison {
    /// Which.
    #[serde(flatten)]
    pub metric: Metric,
    /// Over the trials of the baseline; `None` if none has it.
    pub baseline: Option<TrialsFindings>,
    /// Over the trials of the candidate.
    pub candidate: Option<TrialsFindings>,
    /// The change; `None` if a side has no values.
    pub change: Option<ChangeFindings>,
}

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangeFindings {
    /// Ratio of candidate to baseline: 1.03 is 3 % more. `None`: there is a difference instead.
    pub ratio: Option<f64>,
    /// Candidate minus baseline, in the metric's unit, of what has no ratio: percentages, and counts that may be zero.
    pub difference: Option<f64>,
    /// 95 % interval of either: the lower end. `None` if a side has too few trials for one.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Effect size: share of the pairs of trials in which the candidate's value is larger, ties count half.
    pub superiority: f64,
    /// Pairs of trials.
    pub pairs: usize,
    /// The verdict.
    pub verdict: ChangeVerdict,
}

/// The trials of one setting, as a comparison takes them.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Its name.
    pub name: &'a str,
    /// Paths of the records.
    pub records: &'a [String],
    /// Their findings, in the same order; at least one.
    pub trials: &'a [Findings],
}

/// Compares two sides. `margin`: the smallest difference that matters, a share above 0.
pub fn compare(baseline: Side<'_>, candidate: Side<'_>, margin: f64) -> Comparison {
    let sessions = stage_sessions(baseline.trials);
    let also = stage_sessions(candidate.trials);
    let pairs = match (sessions.as_slice(), also.as_slice()) {
        ([one], [other]) => vec![(*one, *other)],
        _ => sessions.into_iter().filter(|sessions| also.contains(sessions)).map(|both| (both, both)).collect(),
    };
    let stage = |(sessions, candidate_sessions): (u32, u32)| StageComparison {
        sessions,
        candidate_sessions,
        metrics: metric_comparisons(
            over_trials(baseline.trials, sessions),
            over_trials(candidate.trials, candidate_sessions),
            margin,
        ),
    };
    let open = [baseline, candidate].iter().any(|side| side.trials.iter().any(|one| one.load != Load::Closed));
    let is_rate = |one: &Findings| matches!(&one.capacity, Some(CapacityFindings { of: Capacity::Rate { .. }, .. }));
    let searched = [baseline, candidate].iter().any(|side| side.trials.iter().any(is_rate));
    Comparison {
        baseline: side_findings(baseline),
        candidate: side_findings(candidate),
        differences: differences(baseline.trials, candidate.trials),
        margin,
        headline: if searched {
            "capacity"
        } else if open {
            "p99"
        } else {
            "tps"
        }
        .to_owned(),
        stages: pairs.into_iter().map(stage).collect(),
        conditions: Vec::new(),
    }
}

impl Comparison {
    /// Whether the sides ran different workloads, so that a change says nothing about a server.
    pub(crate) fn has_other_workload(&self) -> bool {
        self.baseline.workload != self.candidate.workload
    }

    /// Whether the sides differ in the offered load, so that a change is that of the load.
    pub(crate) fn has_other_load(&self, stage: &StageComparison) -> bool {
        let is_load = |one: &Difference| one.kind == SettingKind::Work && ["load", "terminals"].contains(&&*one.what);
        stage.sessions != stage.candidate_sessions || self.differences.iter().any(is_load)
    }
}

impl Comparison {
    /// The difference that makes one side a closed loop, and the other one an open loop or terminals.
    pub(crate) fn difference_of_loops(&self) -> Option<&Difference> {
        let is_closed = |side: &[String]| side.iter().all(|load| load == CLOSED_LOOP);
        self.differences.iter().find(|one| {
            one.kind == SettingKind::Work && one.what == "load" && is_closed(&one.baseline) != is_closed(&one.candidate)
        })
    }

    /// The difference that makes one side a run, and the other one something else.
    pub(crate) fn difference_of_tasks(&self) -> Option<&Difference> {
        self.differences.iter().find(|one| one.kind == SettingKind::Work && one.what == "task")
    }
}

impl StageComparison {
    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<&MetricComparison> {
        self.metrics.iter().find(|one| one.metric.name == name)
    }
}

impl MetricComparison {
    /// The change of the medians, as `ChangeFindings` has that of the pairs of trials.
    pub(crate) fn of_medians(&self) -> Option<ChangeSize> {
        let (baseline, candidate) = (self.baseline.as_ref()?.median, self.candidate.as_ref()?.median);
        Some(match self.change?.size() {
            ChangeSize::Ratio(_) => ChangeSize::Ratio(candidate / baseline),
            ChangeSize::Difference(_) => ChangeSize::Difference(candidate - baseline),
        })
    }

    /// The change as a share of the baseline's median, such as −0.03. Infinite for a count that was zero; a rate or
    /// time that was zero is rather one that was not measured: `None`.
    pub(crate) fn share(&self) -> Option<f64> {
        let baseline = self.baseline.as_ref()?.median.abs();
        if baseline == 0.0 && self.metric.scale() == Scale::Ratio {
            return None;
        }
        Some(match self.change?.size() {
            ChangeSize::Ratio(ratio) => ratio - 1.0,
            ChangeSize::Difference(0.0) => 0.0,
            ChangeSize::Difference(difference) => difference / baseline,
        })
    }
}

/// The size of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ChangeSize {
    /// 1 is none.
    Ratio(f64),
    /// 0 is none.
    Difference(f64),
}

impl ChangeFindings {
    /// The ratio, or the difference.
    pub(crate) fn size(&self) -> ChangeSize {
        match self.ratio {
            Some(ratio) => ChangeSize::Ratio(ratio),
            None => ChangeSize::Difference(self.difference.unwrap_or(0.0)),
        }
    }

    /// Whether the candidate has more.
    pub(crate) fn is_more(&self) -> bool {
        match self.size() {
            ChangeSize::Ratio(ratio) => ratio > 1.0,
            ChangeSize::Difference(difference) => difference > 0.0,
        }
    }

    /// Whether the interval includes no change; `None` without one.
    pub(crate) fn includes_none(&self) -> Option<bool> {
        let none = if self.ratio.is_some() { 1.0 } else { 0.0 };
        Some(self.low? <= none && none <= self.high?)
    }
}

pub(crate) fn side_findings(side: Side<'_>) -> SideFindings {
    let first = side.trials.first();
    let limits = |one: &&Findings| one.warnings.iter().any(Warning::is_of_generator);
    let ended = side.trials.iter().enumerate().map(|(at, one)| (at + 1, one.status));
    let failed = side.trials.iter().flat_map(|one| &one.stages).map(|stage| stage.total.failed);
    SideFindings {
        name: side.name.to_owned(),
        records: side.records.to_vec(),
        copies: side.records.iter().zip(side.trials).filter_map(copies).collect(),
        workload: first.map(|one| one.workload.clone()).unwrap_or_default(),
        servers: first.iter().flat_map(|one| &one.targets).map(|at| format!("{} {}", at.product, at.version)).collect(),
        mixed: mixed(side.trials),
        incomplete: ended.filter(|(_, status)| *status != Status::Complete).collect(),
        limited_by_generator: side.trials.iter().filter(limits).count(),
        generator: LimitedTrials::of(side.trials),
        failed: failed.fold(0, u64::saturating_add),
        drift: drift(side.trials),
    }
}

/// A record, and the other files with the same trial.
fn copies((record, trial): (&String, &Findings)) -> Option<(String, Vec<String>)> {
    let files = |warning: &Warning| match warning {
        Warning::Copies { files } => Some(files.clone()),
        _ => None,
    };
    Some((record.clone(), trial.warnings.iter().find_map(files)?))
}

/// For the number of sessions that all trials share and that has the most throughput.
fn drift(trials: &[Findings]) -> Option<f64> {
    let of = |sessions: u32| -> Option<Vec<f64>> {
        let of_trial =
            |one: &Findings| one.stages.iter().find(|stage| stage.sessions == sessions).map(|it| it.total.tps);
        trials.iter().map(of_trial).collect()
    };
    let values = stage_sessions(trials).into_iter().filter_map(of);
    assay_stats::drift(&values.max_by(|a, b| a[0].total_cmp(&b[0]))?)
}

/// A metric, and its values in a side's trials.
type MetricValues = (Metric, Option<TrialsFindings>);

fn metric_comparisons(baseline: Vec<MetricValues>, candidate: Vec<MetricValues>, margin: f64) -> Vec<MetricComparison> {
    let mut others = candidate;
    let mut all: Vec<(Metric, Option<TrialsFindings>, Option<TrialsFindings>)> = Vec::new();
    for (metric, found) in baseline {
        let at = others.iter().position(|(other, _)| *other == metric);
        let other = at.and_then(|at| others.remove(at).1);
        all.push((metric, found, other));
    }
    all.extend(others.into_iter().map(|(metric, found)| (metric, None, found)));
    let comparison = |(metric, baseline, candidate): (Metric, Option<TrialsFindings>, Option<TrialsFindings>)| {
        let values = |side: &Option<TrialsFindings>| side.as_ref().map_or(Vec::new(), |side| side.values.clone());
        let (before, after) = (values(&baseline), values(&candidate));
        let found = change(&before, &after, margin, metric.scale());
        let change = found.map(|found| change_findings(&found, before.len() * after.len(), metric.better));
        MetricComparison { metric, baseline, candidate, change }
    };
    all.into_iter().map(comparison).collect()
}

fn change_findings(found: &Change, pairs: usize, better: Better) -> ChangeFindings {
    ChangeFindings {
        ratio: (found.by == Measure::Ratio).then_some(found.size),
        difference: (found.by == Measure::Difference).then_some(found.size),
        low: found.interval.map(|(low, _)| low),
        high: found.interval.map(|(_, high)| high),
        superiority: found.superiority,
        pairs,
        verdict: verdict_of(found.verdict, better),
    }
}

/// The verdict for a metric that is better when higher, or lower.
fn verdict_of(found: Found, better: Better) -> ChangeVerdict {
    match (found, better) {
        (Found::More, Better::Higher) | (Found::Less, Better::Lower) => ChangeVerdict::Better,
        (Found::More, Better::Lower) | (Found::Less, Better::Higher) => ChangeVerdict::Worse,
        (Found::More, Better::Neither) => ChangeVerdict::More,
        (Found::Less, Better::Neither) => ChangeVerdict::Less,
        (Found::NoDifference, _) => ChangeVerdict::NoDifference,
        (Found::CannotTell { trials_needed }, _) => ChangeVerdict::CannotTell { trials_needed },
    }
}
