//! Series for other programs: every interval as a row, and a row per record for tools that look for change points.
//!
//! Figures are plain: no grouping, nanoseconds or the unit in the column's name, empty where there is none.

use std::collections::BTreeSet;

use assay_record::{Reading, ScopeKind, Unit};

use crate::findings::report::{Entry, Report};
use crate::output::csv::{headed, tag_column};
use crate::plain::clean;
use crate::tables::latency::latency_cells;
use crate::tables::table::{Cell, Column, Table};

/// One row per interval: what was observed together stands together.
pub fn intervals_csv(report: &Report) -> String {
    let names = "record,file,setting,workload,stage,sessions,start_ns,end_ns,transactions,tps,qps,response_ns_min,response_ns_mean,\
         response_ns_p50,response_ns_p90,response_ns_p95,response_ns_p99,response_ns_p999,response_ns_max,errors,retries,\
         failed,reconnects,backlog,cpus_used";
    let tags: BTreeSet<&String> = report.entries.iter().flat_map(|entry| entry.findings.tags.keys()).collect();
    let tag_columns = tags.iter().map(|tag| Column::figures(tag_column(tag)));
    let mut table = Table::new(names.split(',').map(Column::figures).chain(tag_columns));
    let mut text = table.csv_head();
    for entry in &report.entries {
        for (number, stage) in entry.findings.stages.iter().enumerate() {
            for interval in &stage.intervals {
                let mut row = vec![Cell::foreign(&entry.name), Cell::foreign(&entry.file)];
                row.extend([Cell::Count(entry.setting as u64), Cell::foreign(&entry.findings.workload)]);
                row.extend([number as u64, interval.sessions.into(), interval.start_ns].map(Cell::Count));
                row.extend([interval.end_ns, interval.transactions].map(Cell::Count));
                row.extend([interval.tps, interval.qps].map(Cell::Number));
                row.extend(latency_cells(&interval.response));
                let troubles = [interval.errors, interval.retries, interval.failed, interval.reconnects];
                row.extend(troubles.into_iter().chain([interval.backlog]).map(Cell::Count));
                row.push(Cell::Number(interval.cpus_used));
                let tag =
                    |tag: &&String| entry.findings.tags.get(*tag).map_or(Cell::Blank, |value| Cell::foreign(value));
                row.extend(tags.iter().map(tag));
                table.row(row);
            }
            // Days of seconds would fill the memory.
            text += &table.csv_rows();
            table.rows.clear();
        }
    }
    text
}

/// One row per reading that has a figure: rates of counters, levels of gauges, sessions by what they waited for. `time_ns` is the
/// end of the step between two samples, since the start of the stage.
pub fn telemetry_csv(report: &Report) -> String {
    let mut table = headed("record,file,setting,stage,sessions,time_ns,scope,target,metric,unit,value");
    let mut text = table.csv_head();
    for entry in &report.entries {
        for (number, stage) in entry.findings.stages.iter().enumerate() {
            for scope in &stage.telemetry {
                let kind = if scope.scope == ScopeKind::Server { "server" } else { "machine" };
                let mut row = |at_ns: u64, metric: &str, unit: &str, value: f64| {
                    let mut row = vec![Cell::foreign(&entry.name), Cell::foreign(&entry.file)];
                    row.extend([entry.setting as u64, number as u64, stage.sessions.into(), at_ns].map(Cell::Count));
                    row.extend([Cell::words(kind), Cell::Count(scope.target.into())]);
                    row.extend([Cell::foreign(metric), Cell::words(unit), Cell::Number(value)]);
                    table.row(row);
                };
                for one in &scope.metrics {
                    let unit = match (one.reading, one.unit) {
                        (Reading::Counter, Unit::Count) => "per_s",
                        (Reading::Counter, Unit::Bytes) => "bytes_per_s",
                        (Reading::Counter, Unit::Us) => "us_per_s",
                        (Reading::Gauge, Unit::Count) => "count",
                        (Reading::Gauge, Unit::Bytes) => "bytes",
                        (Reading::Gauge, Unit::Us) => "us",
                    };
                    for point in &one.points {
                        point.value.into_iter().for_each(|value| row(point.at_ns, &one.metric, unit, value));
                    }
                }
                let events: Vec<_> = scope.waits.iter().flatten().collect();
                for (at_ns, sessions) in &scope.wait_points {
                    for (event, sessions) in events.iter().zip(sessions) {
                        row(*at_ns, &format!("waits {}", event.event), "sessions", *sessions);
                    }
                }
            }
            text += &table.csv_rows();
            table.rows.clear();
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
        format!("{} with {} sessions", clean(&entry.findings.workload, 60), sessions.join(","))
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
    let mut table = Table::new(head.into_iter().map(Column::figures));
    for entry in entries {
        let mut row = vec![Cell::Words(entry.findings.started.to_string())];
        row.extend([word(&entry.findings.tool), word(&entry.file)]);
        for stage in &entry.findings.stages {
            let (total, response) = (&stage.total, &stage.total.response);
            let scaled = |ns: Option<f64>, unit: f64| Cell::of(ns, |ns| Cell::Number(ns / unit));
            let ms = |ns: Option<u64>| scaled(ns.map(|ns| ns as f64), 1e6);
            row.extend([Cell::Number(total.tps), Cell::Number(total.qps), scaled(response.mean_ns, 1e6)]);
            row.extend([response.p50_ns, response.p95_ns, response.p99_ns].map(ms));
            row.push(Cell::Count(total.failed));
            row.push(scaled(stage.generator.and_then(|generator| generator.cpu_ns_per_statement), 1e3));
        }
        table.row(row);
    }
    Ok(table.csv())
}

/// Text in which nothing could be a separator, a quote or a formula.
fn word(text: &str) -> Cell {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-/".contains(c) { c } else { '_' };
    let word: String = clean(text, 200).chars().map(safe).collect();
    Cell::words(word.trim_start_matches(['-', '/', '.']))
}
