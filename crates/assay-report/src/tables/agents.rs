//! The agents of a fleet, one below the other.

use assay_record::Status;

use crate::findings::run::Findings;
use crate::plain::clean;
use crate::tables::table::{Cell, Column, NAME_WIDTH, Table};

/// A row for each agent, of the stage that represents the run; `None`: there are no agents.
pub(crate) fn agents(findings: &Findings) -> Option<Table> {
    let agents = &findings.agents;
    if agents.is_empty() {
        return None;
    }
    let main = findings.main_stage();
    let main = findings.stages.iter().position(|stage| main.is_some_and(|main| std::ptr::eq(stage, main)));
    let heads = ["sessions", "tx/s", "p99 ms", "errors", "CPU", "lag p99 ms", "late ms", "clock ms", "± ms"];
    let columns = [Column::words("agent", NAME_WIDTH)].into_iter().chain(heads.map(Column::figures));
    Some(Table::new(columns).with_rows(agents.iter().map(|agent| {
        let name = match agent.status {
            Status::Complete => agent.name.clone(),
            Status::Running => format!("{} (lost)", agent.name),
            Status::Interrupted => format!("{} (stopped)", agent.name),
            Status::Failed => format!("{} (failed)", agent.name),
        };
        let mut row = vec![Cell::Words(clean(&name, NAME_WIDTH))];
        let Some(stage) = agent.stages.get(main.unwrap_or(0)) else { return row };
        let clock = agent.clock_before;
        row.extend([
            Cell::Count(stage.sessions.into()),
            Cell::Number(stage.tps),
            Cell::ns(stage.response.p99_ns),
            Cell::Count(stage.errors),
            Cell::of(stage.cpu_share, Cell::Share),
            Cell::ns(stage.lag.p99_ns),
            Cell::ns(Some(stage.late_ns)),
            Cell::of(clock.map(|clock| clock.offset_ns as f64), Cell::Ms),
            Cell::ns(clock.map(|clock| clock.bound_ns)),
        ]);
        row
    })))
}
