//! The row of a latency distribution, the same in all tables.

use crate::findings::latency::LatencyFindings;
use crate::findings::run::{Findings, Task};
use crate::findings::stage::StageFindings;
use crate::findings::warning::has_lower_bounds;
use crate::tables::table::{NAME_WIDTH, Table, TableCell, TableColumn};

/// Headers of `latency_cells`.
pub(crate) const LATENCY_HEADS: [&str; 8] = ["min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"];

/// Under `LATENCY_HEADS`.
pub(crate) fn latency_cells(of: &LatencyFindings) -> [TableCell; 8] {
    let LatencyFindings { min_ns, mean_ns, p50_ns, p90_ns, p95_ns, p99_ns, p999_ns, max_ns, .. } = *of;
    let mean = TableCell::of(mean_ns, TableCell::Ms);
    let [min, p50, p90, p95, p99, p999, max] =
        [min_ns, p50_ns, p90_ns, p95_ns, p99_ns, p999_ns, max_ns].map(TableCell::ns);
    [min, mean, p50, p90, p95, p99, p999, max]
}

/// Response times by type, then their components, marked if they are too low. An embedded database runs on our workers:
/// a session that is sent late waits while its worker answers another one, which is the database's doing and not our
/// lag.
pub(crate) fn responses(stage: &StageFindings, of: &Findings) -> Table {
    let (total, is_bound) = (&stage.total, has_lower_bounds(stage));
    /// Under `LATENCY_HEADS`: the width of terminals that show them.
    const FROM: [usize; 8] = [100, 100, 0, 80, 0, 0, 80, 0];
    let heads = LATENCY_HEADS.into_iter().zip(FROM).map(|(head, from)| TableColumn::figures(head).from(from));
    let first = [TableColumn::words("response ms", NAME_WIDTH), TableColumn::figures("count")];
    let mut table = Table::new(first.into_iter().chain(heads));
    let mut row = |name: &str, of: &LatencyFindings, is_bound: bool| {
        let [min, above @ ..] = latency_cells(of);
        let above = above.map(|cell| if is_bound { at_least(cell) } else { cell });
        let head = [TableCell::foreign(name), TableCell::Count(of.count), min];
        table.row(head.into_iter().chain(above).collect::<Vec<_>>());
    };
    for one in total.types.iter().filter(|one| total.types.len() == 1 || one.has_ended()) {
        row(&one.name, &one.response, is_bound);
    }
    let is_machine = of.task == Task::Machine;
    if total.types.len() > 1 && !is_machine {
        row("all", &total.response, is_bound);
    }
    if total.wait.count > 0 {
        row("waiting", &total.wait, is_bound);
    }
    if stage.window.is_none() && !is_machine {
        row("service time", &total.service, is_bound);
    }
    if !is_machine || total.lag.count > 0 {
        row(if of.is_embedded() { "wait for a worker" } else { "generator lag" }, &total.lag, false);
    }
    table
}

fn at_least(cell: TableCell) -> TableCell {
    match cell {
        TableCell::Ms(_) => TableCell::Words(format!("≥{}", cell.shown())),
        other => other,
    }
}
