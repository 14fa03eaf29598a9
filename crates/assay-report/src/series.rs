//! Series for other programs: every interval as a row, and a row per record for tools that look for change points.
//!
//! Figures are plain: no grouping, nanoseconds or the unit in the column's name, empty where there is none.

use crate::csv::{cell, quoted};
use crate::report::{Entry, Report};

/// One row per interval: what was observed together stands together.
pub fn intervals_csv(report: &Report) -> String {
    let mut text = String::from(
        "record,file,setting,workload,stage,sessions,start_ns,end_ns,transactions,tps,qps,response_ns_min,response_ns_mean,\
         response_ns_p50,response_ns_p90,response_ns_p95,response_ns_p99,response_ns_p999,response_ns_max,errors,retries,\
         failed,reconnects,backlog,cpus_used\n",
    );
    for entry in &report.entries {
        let names =
            [quoted(&entry.name), quoted(&entry.file), entry.setting.to_string(), quoted(&entry.findings.workload)];
        for (number, stage) in entry.findings.stages.iter().enumerate() {
            for interval in &stage.intervals {
                let response = &interval.response;
                let figures = [
                    number.to_string(),
                    interval.sessions.to_string(),
                    interval.start_ns.to_string(),
                    interval.end_ns.to_string(),
                    interval.transactions.to_string(),
                    interval.tps.to_string(),
                    interval.qps.to_string(),
                    cell(response.min_ns),
                    cell(response.mean_ns),
                    cell(response.p50_ns),
                    cell(response.p90_ns),
                    cell(response.p95_ns),
                    cell(response.p99_ns),
                    cell(response.p999_ns),
                    cell(response.max_ns),
                    interval.errors.to_string(),
                    interval.retries.to_string(),
                    interval.failed.to_string(),
                    interval.reconnects.to_string(),
                    interval.backlog.to_string(),
                    interval.cpus_used.to_string(),
                ];
                text += &format!("{},{}\n", names.join(","), figures.join(","));
            }
        }
    }
    text
}

/// Records that make no series.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("records of different work make no series: {first} did {first_did}, {other} did {other_did}")]
pub struct MixedSeries {
    /// The first record's file.
    pub first: String,
    /// Its workload and sessions.
    pub first_did: String,
    /// The file that is different.
    pub other: String,
    /// Its workload and sessions.
    pub other_did: String,
}

/// One row per record, the oldest first, as Apache Otava and its kin read them: `time` and the attributes `tool` and `record`,
/// then metrics; those of a ladder begin with `sessions_N_`.
///
/// No cell needs quotes, whatever quote character the reader was told. Cells of figures that are not known are empty. All
/// records must be of the same workload and sessions.
pub fn change_points_csv(report: &Report) -> Result<String, MixedSeries> {
    let mut entries: Vec<&Entry> = report.entries.iter().collect();
    entries.sort_by_key(|entry| entry.findings.started);
    let Some(first) = entries.first() else { return Ok(String::new()) };
    let did = |entry: &Entry| {
        let sessions: Vec<String> = entry.findings.stages.iter().map(|stage| stage.sessions.to_string()).collect();
        format!("{} with {} sessions", crate::cells::clean(&entry.findings.workload, 60), sessions.join(","))
    };
    if let Some(other) = entries.iter().find(|entry| did(entry) != did(first)) {
        let (first_did, other_did) = (did(first), did(other));
        return Err(MixedSeries { first: first.file.clone(), first_did, other: other.file.clone(), other_did });
    }
    const METRICS: [&str; 8] =
        ["tps", "qps", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "failed", "cpu_us_per_statement"];
    let ladder = first.findings.stages.len() > 1;
    let mut head = vec!["time".to_owned(), "tool".to_owned(), "record".to_owned()];
    for stage in &first.findings.stages {
        let prefix = if ladder { format!("sessions_{}_", stage.sessions) } else { String::new() };
        head.extend(METRICS.map(|metric| format!("{prefix}{metric}")));
    }
    let mut text = head.join(",") + "\n";
    for entry in entries {
        let mut row = vec![entry.findings.started.to_string(), word(&entry.findings.tool), word(&entry.file)];
        for stage in &entry.findings.stages {
            let (total, response) = (&stage.total, &stage.total.response);
            let ms = |ns: Option<u64>| cell(ns.map(|ns| ns as f64 / 1e6));
            row.extend([
                total.tps.to_string(),
                total.qps.to_string(),
                cell(response.mean_ns.map(|ns| ns / 1e6)),
                ms(response.p50_ns),
                ms(response.p95_ns),
                ms(response.p99_ns),
                total.failed.to_string(),
                cell(stage.generator.and_then(|generator| generator.cpu_ns_per_statement).map(|ns| ns / 1e3)),
            ]);
        }
        text += &(row.join(",") + "\n");
    }
    Ok(text)
}

/// Text in which nothing could be a separator, a quote or a formula.
fn word(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-/".contains(c) { c } else { '_' };
    let word: String = crate::cells::clean(text, 200).chars().map(safe).collect();
    word.trim_start_matches(['-', '/', '.']).to_owned()
}
