//! The cost of the load generator, stage by stage.

use crate::findings::run::Findings;
use crate::tables::table::{NAME_WIDTH, Table, TableCell, TableColumn};
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
    let columns = [TableColumn::words("generator", NAME_WIDTH)].into_iter().chain(heads.map(TableColumn::figures));
    Table::new(columns).with_rows(findings.stages.iter().map(|stage| {
        let mut row = vec![TableCell::Words(clients(findings, stage.sessions))];
        let Some(generator) = stage.generator else { return row };
        row.extend([
            TableCell::of(generator.cpu_ns_per_statement, TableCell::Micros),
            TableCell::Share(generator.cpu_share_of_machine),
            TableCell::Share(generator.busiest_worker),
            TableCell::of(generator.waited_for_cpu, TableCell::Share),
            TableCell::ns(stage.total.lag.p99_ns),
            TableCell::ns(stage.total.lag.max_ns),
            TableCell::of(generator.switches_per_statement, TableCell::Number),
            // An embedded database answers without an event.
            TableCell::of(generator.events_per_turn.filter(|_| !embedded), TableCell::Number),
            TableCell::Count(generator.memory_max_bytes >> 20),
        ]);
        row
    }))
}
