//! The cost of the load generator, stage by stage.

use crate::findings::run::Findings;
use crate::tables::table::{Cell, Column, NAME_WIDTH, Table};
use crate::words::run::clients;

/// A row per stage; if the database ran in the same process, its work is included.
pub(crate) fn generator(findings: &Findings) -> Table {
    let embedded = findings.is_embedded();
    let heads = [
        "CPU µs/stmt",
        "of machine",
        "busiest worker",
        "CPU wait",
        "lag p99 ms",
        "lag max ms",
        "switches/stmt",
        "events/turn",
        "MiB",
    ];
    let columns = [Column::words("generator", NAME_WIDTH)].into_iter().chain(heads.map(Column::figures));
    Table::new(columns).with_rows(findings.stages.iter().map(|stage| {
        let mut row = vec![Cell::Words(clients(findings, stage.sessions))];
        let Some(generator) = stage.generator else { return row };
        row.extend([
            Cell::of(generator.cpu_ns_per_statement, Cell::Micros),
            Cell::Share(generator.cpu_share_of_machine),
            Cell::Share(generator.busiest_worker),
            Cell::of(generator.waited_for_cpu, Cell::Share),
            Cell::ns(stage.total.lag.p99_ns),
            Cell::ns(stage.total.lag.max_ns),
            Cell::of(generator.switches_per_statement, Cell::Number),
            // An embedded database answers without an event.
            Cell::of(generator.events_per_turn.filter(|_| !embedded), Cell::Number),
            Cell::Count(generator.memory_max_bytes >> 20),
        ]);
        row
    }))
}
