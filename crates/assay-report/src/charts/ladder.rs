//! Throughput and latency by the number of sessions.

use crate::charts::chart::{
    Axis, Body, Chart, LINES_MAX, Line, Mark, MarkKind, NAME_WIDTH, STAGES_MAX, Scale, axis, rounded,
};
use crate::findings::latency::LatencyFindings;
use crate::findings::report::Entry;
use crate::findings::stage::StageFindings;
use crate::plain::clean;

/// Throughput and latency by the number of sessions, of records that have several.
pub(crate) fn ladders(entries: &[Entry]) -> Vec<Chart> {
    // The stages of a search for a rate all have the same sessions.
    let rises = |entry: &&Entry| {
        let stages = &entry.findings.stages;
        stages.iter().any(|stage| stage.sessions != stages[0].sessions)
    };
    let ladders: Vec<&Entry> = entries.iter().filter(rises).collect();
    if ladders.is_empty() {
        return Vec::new();
    }
    let line = |name: &str, entry: &Entry, of: &dyn Fn(&StageFindings) -> Option<f64>| {
        let mut stages: Vec<&StageFindings> =
            entry.findings.stages.iter().take(STAGES_MAX).filter(|stage| stage.sessions > 0).collect();
        stages.sort_by_key(|stage| stage.sessions);
        stages.dedup_by_key(|stage| stage.sessions);
        Line {
            name: clean(name, NAME_WIDTH),
            group: entry.setting,
            x: stages.iter().map(|stage| f64::from(stage.sessions)).collect(),
            y: stages.iter().map(|stage| of(stage).map(rounded)).collect(),
        }
    };
    let latency = |of: fn(&LatencyFindings) -> Option<u64>| {
        move |stage: &StageFindings| of(&stage.total.response).filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e6)
    };
    let latencies = match ladders[..] {
        [entry] => vec![
            line("p50", entry, &latency(|response| response.p50_ns)),
            line("p95", entry, &latency(|response| response.p95_ns)),
            line("p99", entry, &latency(|response| response.p99_ns)),
        ],
        _ => ladders
            .iter()
            .take(LINES_MAX)
            .map(|entry| line(&format!("p99, {}", entry.name), entry, &latency(|response| response.p99_ns)))
            .collect(),
    };
    let throughput =
        ladders.iter().take(LINES_MAX).map(|entry| line(&entry.name, entry, &|stage| Some(stage.total.tps))).collect();
    let knee = |entry: &&Entry| {
        let sessions = f64::from(entry.findings.stages.iter().find(|stage| stage.knee)?.sessions);
        let text = if ladders.len() > 1 { format!("knee, {}", entry.name) } else { "knee".into() };
        Some(Mark { from: sessions, to: sessions, kind: MarkKind::Knee, text: clean(&text, NAME_WIDTH) })
    };
    let mut knees: Vec<Mark> = ladders.iter().take(LINES_MAX).filter_map(knee).collect();
    knees.sort_by(|a, b| a.from.total_cmp(&b.from));
    let chart = |id: &str, title: &str, caption: &str, y: Axis, lines: Vec<Line>| {
        let all = lines.iter().flat_map(|line| &line.x);
        let wide = all.clone().fold(0.0, |a: f64, b| a.max(*b)) >= 8.0 * all.fold(f64::INFINITY, |a, b| a.min(*b));
        let x = axis("sessions", if wide { Scale::Log } else { Scale::Linear });
        Chart {
            id: id.into(),
            title: title.into(),
            caption: caption.into(),
            x,
            y,
            marks: knees.clone(),
            body: Body::Lines { lines },
        }
    };
    vec![
        chart(
            "ladder-throughput",
            "Throughput by sessions",
            "Where it flattens, more sessions only wait longer: after the knee no step has 5% more.",
            axis("transactions per second", Scale::Linear),
            throughput,
        ),
        chart(
            "ladder-latency",
            "Response time by sessions",
            "What each step costs those who wait. Logarithmic.",
            axis("response time, ms", Scale::Log),
            latencies,
        ),
    ]
}
