//! The stages of a ladder as one, for charts over the time of a whole run.

use crate::findings::experiment::Experiment;
use crate::findings::run::Findings;
use crate::findings::shares::{Points, TelemetryPoint};
use crate::findings::stage::StageFindings;

impl Experiment {
    /// Every run as a single stage. Only what is drawn over time is that of the whole run.
    pub(crate) fn as_whole_runs(&self) -> Experiment {
        let mut all = self.clone();
        let sessions = self.sessions().first().copied().unwrap_or(0);
        for trial in &mut all.trials {
            join(&mut trial.findings, sessions);
        }
        all
    }
}

/// When a stage started, in nanoseconds after the first one.
pub(crate) fn offset_ns(findings: &Findings, stage: &StageFindings) -> u64 {
    let first = findings.stages.first().map_or(0, |stage| stage.started.unix_ms());
    stage.started.unix_ms().saturating_sub(first).saturating_mul(1_000_000)
}

fn join(findings: &mut Findings, sessions: u32) {
    let offsets: Vec<u64> = findings.stages.iter().map(|stage| offset_ns(findings, stage)).collect();
    let mut stages = std::mem::take(&mut findings.stages).into_iter();
    let Some(mut whole) = stages.next() else { return };
    whole.sessions = sessions;
    for (mut stage, offset) in stages.zip(offsets.into_iter().skip(1)) {
        let later = |ns: &mut u64| *ns = ns.saturating_add(offset);
        for interval in &mut stage.intervals {
            later(&mut interval.start_ns);
            later(&mut interval.end_ns);
        }
        for scope in &mut stage.telemetry {
            let metrics = scope.metrics.iter_mut().map(|metric| &mut metric.points);
            let hits = scope.shares.hits.iter_mut().map(|share| &mut share.points);
            let cpu = scope.shares.cpu.iter_mut().map(|(_, share)| &mut share.points);
            for points in metrics.chain(hits).chain(cpu) {
                *points = points
                    .iter()
                    .map(|one| TelemetryPoint { at_ns: one.at_ns.saturating_add(offset), ..one })
                    .collect();
            }
        }
        whole.measured_ns = offset.saturating_add(stage.measured_ns);
        whole.intervals.extend(stage.intervals);
        for outage in &mut stage.throughput.outages {
            later(&mut outage.start_ns);
        }
        whole.throughput.outages.extend(stage.throughput.outages);
        for scope in stage.telemetry {
            let same = |one: &&mut crate::findings::telemetry::ScopeFindings| {
                (one.scope, one.target) == (scope.scope, scope.target)
            };
            let Some(known) = whole.telemetry.iter_mut().find(same) else { continue };
            for metric in scope.metrics {
                if let Some(of) = known.metrics.iter_mut().find(|one| one.metric == metric.metric) {
                    extend(&mut of.points, &metric.points);
                }
            }
            if let Some((of, more)) = known.shares.hits.as_mut().zip(scope.shares.hits) {
                extend(&mut of.points, &more.points);
            }
            for (kind, more) in scope.shares.cpu {
                if let Some((_, of)) = known.shares.cpu.iter_mut().find(|(known, _)| *known == kind) {
                    extend(&mut of.points, &more.points);
                }
            }
        }
    }
    findings.stages = vec![whole];
}

fn extend(points: &mut Points, more: &Points) {
    *points = points.iter().chain(more.iter()).collect();
}
