//! Numbers of sessions, or records, side by side: one row per stage.

use crate::digits::figure;
use crate::findings::capacity::{Capacity, CapacityFindings};
use crate::findings::run::Findings;
use crate::findings::stage::StageFindings;
use crate::findings::throughput::SteadyFindings;
use crate::tables::table::{NAME_WIDTH, Table, TableCell, TableColumn, TableRow};
use crate::words::capacity::look_words;
use crate::words::run::{OPERATIONS, per_second};

/// Characters of a remark: `not all started or finished`.
const REMARK_WIDTH: usize = 28;

/// `head`: header of the column that distinguishes the rows; `unit`: of throughput, as in `per_second`.
pub(crate) fn stages<'a>(head: &str, unit: &str, rows: impl IntoIterator<Item = (String, &'a StageFindings)>) -> Table {
    let remark = |stage: &StageFindings| {
        let remarks = [(stage.knee, "knee".to_owned()), (stage.best, format!("most {unit}"))];
        remarks.into_iter().filter(|(is, _)| *is).map(|(_, remark)| remark).collect::<Vec<_>>().join(", ")
    };
    remarked(head, unit, rows.into_iter().map(|(name, stage)| (name, stage, remark(stage))))
}

/// The stages of a search, in the order in which it requested them.
pub(crate) fn looks(found: &CapacityFindings, findings: &Findings) -> Table {
    let head = match found.of {
        Capacity::Rate { .. } => "due/s",
        Capacity::Sessions { .. } => "sessions",
    };
    let rows = findings.stages.iter().zip(&found.looks);
    let unit = per_second(findings.task.rate());
    remarked(head, unit, rows.map(|(stage, look)| (figure(look.at), stage, look_words(found, look))))
}

/// A row per stage, with a remark.
fn remarked<'a>(head: &str, unit: &str, rows: impl IntoIterator<Item = (String, &'a StageFindings, String)>) -> Table {
    let rows: Vec<(String, &StageFindings, String)> = rows.into_iter().collect();
    // Short steps have no interval; a column of dashes is useless.
    let known = rows.iter().any(|(_, stage, _)| half_interval(stage).is_some());
    let figures = |head: &str| TableColumn::figures(head);
    let mut columns = vec![TableColumn::words(head, NAME_WIDTH), figures(unit)];
    columns.extend(known.then(|| figures("±")));
    let has_statements = unit != OPERATIONS;
    columns.extend(has_statements.then(|| figures("stmt/s").roomy()));
    columns.extend([figures("p50 ms"), figures("p95 ms").from(100), figures("p99 ms")]);
    columns.push(figures("max ms").roomy());
    if has_statements {
        columns.extend([figures("failed"), figures(&cpu_of_each(unit))].map(|column| column.from(100)));
    }
    columns.push(TableColumn::words("", REMARK_WIDTH));
    let mut table = Table::new(columns);
    table.rows =
        rows.into_iter().map(|(name, stage, remark)| row(&name, stage, (known, has_statements), remark)).collect();
    table
}

/// The header of the generator's CPU time: `assay CPU µs/tx` where throughput is `tx/s`.
pub(crate) fn cpu_of_each(unit: &str) -> String {
    unit.strip_suffix("/s").map_or("assay CPU µs each".to_owned(), |one| format!("assay CPU µs/{one}"))
}

/// `known`: with intervals. `has_statements`: not of a machine test.
fn row(name: &str, stage: &StageFindings, (known, has_statements): (bool, bool), remark: String) -> TableRow {
    let (total, response) = (&stage.total, &stage.total.response);
    let mut cells = vec![TableCell::foreign(name), TableCell::Number(total.tps)];
    cells.extend(known.then(|| TableCell::of(half_interval(stage), TableCell::Number)));
    cells.extend(has_statements.then_some(TableCell::Number(total.qps)));
    cells.extend([response.p50_ns, response.p95_ns, response.p99_ns, response.max_ns].map(TableCell::ns));
    if has_statements {
        cells.push(TableCell::Count(total.failed));
        cells.push(TableCell::of(
            stage.generator.and_then(|generator| generator.cpu_ns_per_transaction),
            TableCell::Micros,
        ));
    }
    cells.push(TableCell::words(remark));
    TableRow { cells, best: stage.best }
}

/// Half the width of the interval of the steady throughput, if the whole stage was steady.
fn half_interval(stage: &StageFindings) -> Option<f64> {
    match stage.throughput.steady {
        Some(SteadyFindings::Steady { start_ns: 0, tps_low, tps_high, .. }) => Some((tps_high - tps_low) / 2.0),
        _ => None,
    }
}
