//! Throughput and latency by the number of sessions.

use crate::charts::chart::{
    AxisScale, Chart, ChartAxis, ChartBody, ChartLine, LINES_MAX, Mark, MarkKind, NAME_WIDTH, STAGES_MAX, axis, rounded,
};
use crate::findings::latency::LatencyFindings;
use crate::findings::report::{ReportEntry, Setting};
use crate::findings::stage::StageFindings;
use crate::plain::clean;

/// Throughput and latency by the number of sessions, for settings with several: medians of their trials.
pub(crate) fn ladders(settings: &[Setting]) -> Vec<Chart> {
    // The stages of a search for a rate all have the same number of sessions.
    let rises = |trial: &ReportEntry| {
        let stages = &trial.findings.stages;
        stages.iter().any(|stage| stage.sessions != stages[0].sessions)
    };
    let is_ladder = |setting: &&Setting| setting.trials.iter().any(|trial| rises(trial));
    let ladders: Vec<&Setting> = settings.iter().filter(is_ladder).take(LINES_MAX).collect();
    if ladders.is_empty() {
        return Vec::new();
    }
    let several = ladders.len() > 1;
    let latency = |of: fn(&LatencyFindings) -> Option<u64>| {
        move |stage: &StageFindings| of(&stage.total.response).filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e6)
    };
    let latencies = match ladders[..] {
        [setting] => vec![
            line("p50", setting, &latency(|response| response.p50_ns)),
            line("p95", setting, &latency(|response| response.p95_ns)),
            line("p99", setting, &latency(|response| response.p99_ns)),
        ],
        _ => ladders
            .iter()
            .map(|setting| line(&format!("p99, {}", setting.name), setting, &latency(|response| response.p99_ns)))
            .collect(),
    };
    let throughput =
        ladders.iter().map(|setting| line(setting.name, setting, &|stage| Some(stage.total.tps))).collect();
    let mut knees: Vec<Mark> = ladders.iter().filter_map(|setting| knee(setting, several)).collect();
    knees.sort_by(|a, b| a.from.total_cmp(&b.from));
    let caption = if ladders.iter().any(|setting| setting.trials.len() > 1) { "band: min to max" } else { "" };
    let chart = |id: &str, title: &str, y: ChartAxis, lines: Vec<ChartLine>| {
        let all = lines.iter().flat_map(|line| &line.x);
        let wide = all.clone().fold(0.0, |a: f64, b| a.max(*b)) >= 8.0 * all.fold(f64::INFINITY, |a, b| a.min(*b));
        let x = axis("sessions", if wide { AxisScale::Log } else { AxisScale::Linear });
        Chart::new(id, title, caption, [x, y], ChartBody::Lines { lines }).with_marks(knees.clone())
    };
    vec![
        chart(
            "ladder-throughput",
            "Throughput by sessions",
            axis("transactions per second", AxisScale::Linear),
            throughput,
        ),
        chart("ladder-latency", "Response time by sessions", axis("response time, ms", AxisScale::Log), latencies),
    ]
}

/// A point for every number of sessions that a trial has: the median over the trials.
fn line(name: &str, setting: &Setting, of: &dyn Fn(&StageFindings) -> Option<f64>) -> ChartLine {
    let stages = |trial: &ReportEntry| -> Vec<(u32, Option<f64>)> {
        let all = trial.findings.stages.iter().take(STAGES_MAX).filter(|stage| stage.sessions > 0);
        let mut all: Vec<_> = all.map(|stage| (stage.sessions, of(stage))).collect();
        all.sort_by_key(|(sessions, _)| *sessions);
        all.dedup_by_key(|(sessions, _)| *sessions);
        all
    };
    let mut all: Vec<(u32, Option<f64>)> = setting.trials.iter().flat_map(|trial| stages(trial)).collect();
    all.sort_by_key(|(sessions, _)| *sessions);
    let mut line = ChartLine::new(&clean(name, NAME_WIDTH), setting.number);
    for same in all.chunk_by(|one, other| one.0 == other.0) {
        let values: Vec<f64> = same.iter().filter_map(|(_, value)| *value).map(rounded).collect();
        line.push(f64::from(same[0].0), &values);
    }
    if setting.trials.len() == 1 {
        line.band.clear();
    }
    line
}

/// If all trials of a setting have theirs.
fn knee(setting: &Setting, several: bool) -> Option<Mark> {
    let of = |trial: &&ReportEntry| trial.findings.stages.iter().find(|stage| stage.knee).map(|stage| stage.sessions);
    let sessions = of(setting.trials.first()?)?;
    let agreed = setting.trials.iter().all(|trial| of(trial) == Some(sessions));
    let text = if several { format!("knee, {}", setting.name) } else { "knee".into() };
    let at = f64::from(sessions);
    agreed.then(|| Mark { from: at, to: at, kind: MarkKind::Knee, text: clean(&text, NAME_WIDTH) })
}
