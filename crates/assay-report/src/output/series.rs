//! Time series for other programs: one row per interval, and one row per record for change point detection tools.
//!
//! Figures are plain: no grouping; nanoseconds, or the unit in the column's name; empty if missing.

use std::collections::BTreeSet;

use assay_record::{Reading, ScopeKind, Status, Time, Unit};

use crate::findings::arithmetic::per_second;
use crate::findings::report::{Report, ReportEntry};
use crate::output::csv::{headed, tag_column, tallies, tallies_columns};
use crate::plain::clean;
use crate::tables::latency::latency_cells;
use crate::tables::table::{Table, TableCell, TableColumn};
use crate::words::run::{load, servers};

/// One row per interval, transaction type and statement class: `type` is empty in rows of all types, `class` in rows of
/// all classes, and so are figures that are unknown for one of them. Every row has the time of day, the load and the
/// options of its record.
pub fn intervals_csv(report: &Report) -> String {
    in_parts(|take| intervals(report, take))
}

/// A long table as CSV.
fn in_parts(all: impl FnOnce(&mut dyn FnMut(&Table))) -> String {
    let mut text = String::new();
    all(&mut |table| {
        if text.is_empty() {
            text = table.csv_head();
        }
        text += &table.csv_rows();
    });
    text
}

/// Passes the table of intervals on in parts: its columns alone, then the rows of each stage. Days of seconds would
/// fill the memory.
pub(crate) fn intervals(report: &Report, take: &mut dyn FnMut(&Table)) {
    let options = option_names(report);
    let mut table = headed(
        "record,file,setting,workload,stage,sessions,start_ns,end_ns,transactions,tps,qps,response_ns_min,response_ns_mean,\
         response_ns_p50,response_ns_p90,response_ns_p95,response_ns_p99,response_ns_p999,response_ns_max,errors,retries,\
         failed,reconnects,backlog,cpus_used,type,class,time,server,load,seed",
    );
    table
        .columns
        .extend(options.iter().map(|name| TableColumn::figures(format!("option_{}", clean(name, OPTION_WIDTH)))));
    let tags: BTreeSet<&String> = report.entries.iter().flat_map(|entry| entry.findings.tags.keys()).collect();
    table.columns.extend(tags.iter().map(|tag| TableColumn::figures(tag_column(tag))));
    take(&table);
    for entry in &report.entries {
        let mut settings = settings(entry, &options);
        let tag =
            |tag: &&String| entry.findings.tags.get(*tag).map_or(TableCell::Blank, |value| TableCell::foreign(value));
        settings.extend(tags.iter().map(tag));
        for (number, stage) in entry.findings.stages.iter().enumerate() {
            for interval in &stage.intervals {
                let head = |sessions: u32| {
                    let mut row = vec![TableCell::foreign(&entry.name), TableCell::foreign(&entry.file)];
                    row.extend([TableCell::Count(entry.setting as u64), TableCell::foreign(&entry.findings.workload)]);
                    row.extend(
                        [number as u64, sessions.into(), interval.start_ns, interval.end_ns].map(TableCell::Count),
                    );
                    row
                };
                let begun_ms = stage.started.unix_ms().saturating_add(interval.start_ns / 1_000_000);
                let time = TableCell::Words(Time::from_unix_ms(begun_ms).to_string());
                let mut row = |kind: &str, class: &str, figures: Vec<TableCell>| {
                    let names = [TableCell::foreign(kind), TableCell::words(class), time.clone()];
                    let cells = head(interval.sessions).into_iter().chain(figures).chain(names);
                    table.row(cells.chain(settings.iter().cloned()).collect::<Vec<_>>());
                };
                let mut all = vec![TableCell::Count(interval.transactions)];
                all.extend([interval.tps, interval.qps].map(TableCell::Number));
                all.extend(latency_cells(&interval.response));
                let troubles = [interval.errors, interval.retries, interval.failed, interval.reconnects];
                all.extend(troubles.into_iter().chain([interval.backlog]).map(TableCell::Count));
                all.push(TableCell::Number(interval.cpus_used));
                let width = all.len();
                row("", "", all);
                let length_ns = interval.end_ns.saturating_sub(interval.start_ns);
                let of_type = |count: u64| [TableCell::Count(count), TableCell::Number(per_second(count, length_ns))];
                let types = stage.total.types.iter().zip(&interval.transactions_by_type);
                for (one, count) in types.filter(|(one, _)| one.has_ended()) {
                    row(&one.name, "", padded(of_type(*count).to_vec(), width));
                }
                let of = interval.qps_by_class;
                for (class, qps) in [("read", of.read), ("write", of.write), ("other", of.other)] {
                    row("", class, padded(vec![TableCell::Blank, TableCell::Blank, TableCell::Number(qps)], width));
                }
            }
            take(&table);
            table.rows.clear();
        }
    }
}

/// One row per record, stage, server and transaction type, with the columns of `csv` and those of its record.
pub(crate) fn trials(report: &Report, take: &mut dyn FnMut(&Table)) {
    let options = option_names(report);
    let mut table = headed("record,file,setting,workload,outcome,time,machine,product,version");
    table.columns.extend(tallies_columns());
    table.columns.extend(headed("server,load,seed").columns);
    table
        .columns
        .extend(options.iter().map(|name| TableColumn::figures(format!("option_{}", clean(name, OPTION_WIDTH)))));
    let tags: BTreeSet<&String> = report.entries.iter().flat_map(|entry| entry.findings.tags.keys()).collect();
    table.columns.extend(tags.iter().map(|tag| TableColumn::figures(tag_column(tag))));
    take(&table);
    for entry in &report.entries {
        let findings = &entry.findings;
        let server = findings.targets.first();
        let outcome = match findings.status {
            Status::Running => "unfinished",
            Status::Complete => "complete",
            Status::Interrupted => "interrupted",
            Status::Failed => "failed",
        };
        let of_server = |text: Option<&String>| text.map_or(TableCell::Blank, |text| TableCell::foreign(text));
        let head = [
            TableCell::foreign(&entry.name),
            TableCell::foreign(&entry.file),
            TableCell::Count(entry.setting as u64),
            TableCell::foreign(&findings.workload),
            TableCell::words(outcome),
            TableCell::Words(findings.started.to_string()),
            TableCell::foreign(&findings.host.name),
            of_server(server.map(|server| &server.product)),
            of_server(server.map(|server| &server.version)),
        ];
        let mut of_record = settings(entry, &options);
        of_record.extend(tags.iter().map(|tag| of_server(findings.tags.get(*tag))));
        for row in tallies(findings).rows {
            table.row(head.iter().cloned().chain(row.cells).chain(of_record.iter().cloned()).collect::<Vec<_>>());
        }
        take(&table);
        table.rows.clear();
    }
}

/// Options beyond this number have no column.
const OPTIONS_MAX: usize = 100;
const OPTION_WIDTH: usize = 60;

/// Every option of any record.
fn option_names(report: &Report) -> Vec<String> {
    let all: BTreeSet<&String> = report.entries.iter().flat_map(|entry| entry.findings.options.keys()).collect();
    all.into_iter().take(OPTIONS_MAX).cloned().collect()
}

/// The columns of a record, in every row: servers, load, seed, and the value of each of `options`.
fn settings(entry: &ReportEntry, options: &[String]) -> Vec<TableCell> {
    let findings = &entry.findings;
    let mut cells = vec![TableCell::foreign(&servers(findings)), TableCell::foreign(&load(findings))];
    cells.push(TableCell::Words(findings.seed.to_string()));
    let value =
        |name| findings.options.get(name).map_or(TableCell::Blank, |value| TableCell::foreign(&value.to_string()));
    cells.extend(options.iter().map(value));
    cells
}

fn padded(mut cells: Vec<TableCell>, width: usize) -> Vec<TableCell> {
    cells.resize(width, TableCell::Blank);
    cells
}

/// One row per reading with a figure: rates of counters, levels of gauges, sessions by wait event. `time_ns` is the end
/// of the step between two samples, since the start of the stage.
pub fn telemetry_csv(report: &Report) -> String {
    in_parts(|take| telemetry(report, take))
}

/// The same in parts, the columns alone first.
pub(crate) fn telemetry(report: &Report, take: &mut dyn FnMut(&Table)) {
    let mut table = headed("record,file,setting,stage,sessions,time_ns,scope,target,metric,unit,value");
    take(&table);
    for entry in &report.entries {
        for (number, stage) in entry.findings.stages.iter().enumerate() {
            for scope in &stage.telemetry {
                let kind = if scope.scope == ScopeKind::Server { "server" } else { "machine" };
                let mut row = |at_ns: u64, metric: &str, unit: &str, value: f64| {
                    let mut row = vec![TableCell::foreign(&entry.name), TableCell::foreign(&entry.file)];
                    row.extend(
                        [entry.setting as u64, number as u64, stage.sessions.into(), at_ns].map(TableCell::Count),
                    );
                    row.extend([TableCell::words(kind), TableCell::Count(scope.target.into())]);
                    row.extend([TableCell::foreign(metric), TableCell::words(unit), TableCell::Number(value)]);
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
                    for point in one.points.iter() {
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
            take(&table);
            table.rows.clear();
        }
    }
}

/// Records that do not form a series.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a time series needs records of the same workload: {first} ran {first_did}, {other} ran {other_did}")]
pub struct MixedSeries {
    /// The first record's file.
    pub first: String,
    /// Workload and sessions of the record.
    pub first_did: String,
    /// The file that is different.
    pub other: String,
    /// Workload and sessions of the record.
    pub other_did: String,
}

/// One row per record, the oldest first, as Apache Otava and similar tools read them: `time` and the attributes `tool`
/// and `record`, then metrics; those of a ladder start with `sessions_N_`.
///
/// No cell needs quotes, whatever quote character the reader uses. Unknown figures are empty. All records must have the
/// same workload and sessions.
pub fn change_points_csv(report: &Report) -> Result<String, MixedSeries> {
    let mut entries: Vec<&ReportEntry> = report.entries.iter().collect();
    entries.sort_by_key(|entry| entry.findings.started);
    let Some(first) = entries.first() else { return Ok(String::new()) };
    let did = |entry: &ReportEntry| {
        let sessions: Vec<String> = entry.findings.stages.iter().map(|stage| stage.sessions.to_string()).collect();
        let plural = if sessions.as_slice() == ["1"] { "" } else { "s" };
        format!("{} with {} session{plural}", clean(&entry.findings.workload, 60), sessions.join(","))
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
    let mut table = Table::new(head.into_iter().map(TableColumn::figures));
    for entry in entries {
        let mut row = vec![TableCell::Words(entry.findings.started.to_string())];
        row.extend([word(&entry.findings.tool), word(&entry.file)]);
        for stage in &entry.findings.stages {
            let (total, response) = (&stage.total, &stage.total.response);
            let scaled = |ns: Option<f64>, unit: f64| TableCell::of(ns, |ns| TableCell::Number(ns / unit));
            let ms = |ns: Option<u64>| scaled(ns.map(|ns| ns as f64), 1e6);
            row.extend([TableCell::Number(total.tps), TableCell::Number(total.qps), scaled(response.mean_ns, 1e6)]);
            row.extend([response.p50_ns, response.p95_ns, response.p99_ns].map(ms));
            row.push(TableCell::Count(total.failed));
            row.push(scaled(stage.generator.and_then(|generator| generator.cpu_ns_per_statement), 1e3));
        }
        table.row(row);
    }
    Ok(table.csv())
}

/// Text without separators, quotes or formulas.
fn word(text: &str) -> TableCell {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-/".contains(c) { c } else { '_' };
    let word: String = clean(text, 200).chars().map(safe).collect();
    TableCell::words(word.trim_start_matches(['-', '/', '.']))
}
