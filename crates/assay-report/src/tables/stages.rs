//! Numbers of sessions, or records, side by side: a row for each stage.

use crate::findings::stage::StageFindings;
use crate::findings::throughput::SteadyFindings;
use crate::tables::table::{Cell, Column, NAME_WIDTH, Row, Table};

/// `head`: what tells the rows apart.
pub(crate) fn stages<'a>(head: &str, rows: impl IntoIterator<Item = (String, &'a StageFindings)>) -> Table {
    let rows: Vec<(String, &StageFindings)> = rows.into_iter().collect();
    // Short steps have no interval; a column of dashes says nothing.
    let known = rows.iter().any(|(_, stage)| half_interval(stage).is_some());
    let figures = |head: &str| Column::figures(head);
    let mut columns = vec![Column::words(head, NAME_WIDTH), figures("tx/s")];
    columns.extend(known.then(|| figures("±")));
    columns.push(figures("stmt/s").roomy());
    columns.extend(["p50 ms", "p95 ms", "p99 ms"].map(figures));
    columns.push(figures("max ms").roomy());
    columns.extend(["failed", "CPU µs/tx"].map(figures));
    columns.push(Column::words("", NAME_WIDTH));
    let mut table = Table::new(columns);
    table.rows = rows.into_iter().map(|(name, stage)| row(&name, stage, known)).collect();
    table
}

fn row(name: &str, stage: &StageFindings, known: bool) -> Row {
    let (total, response) = (&stage.total, &stage.total.response);
    let mut cells = vec![Cell::foreign(name), Cell::Number(total.tps)];
    cells.extend(known.then(|| Cell::of(half_interval(stage), Cell::Number)));
    cells.push(Cell::Number(total.qps));
    cells.extend([response.p50_ns, response.p95_ns, response.p99_ns, response.max_ns].map(Cell::ns));
    cells.push(Cell::Count(total.failed));
    cells.push(Cell::of(stage.generator.and_then(|generator| generator.cpu_ns_per_transaction), Cell::Micros));
    let remarks = [(stage.knee, "knee"), (stage.best, "most tx/s")];
    let remarks: Vec<&str> = remarks.into_iter().filter(|(is, _)| *is).map(|(_, remark)| remark).collect();
    cells.push(Cell::words(remarks.join(", ")));
    Row { cells, best: stage.best }
}

/// Half the width of the interval of the steady throughput, when that is all of the stage's.
fn half_interval(stage: &StageFindings) -> Option<f64> {
    match stage.throughput.steady {
        SteadyFindings::Steady { start_ns: 0, tps_low, tps_high, .. } => Some((tps_high - tps_low) / 2.0),
        _ => None,
    }
}
