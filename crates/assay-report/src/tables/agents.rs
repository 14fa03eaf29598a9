//! The agents of a fleet, one below the other.

use assay_record::Status;

use crate::findings::run::Findings;
use crate::plain::clean;
use crate::tables::table::{NAME_WIDTH, Table, TableCell, TableColumn};

/// A row for each agent, of the stage that represents the run; `None`: there are no agents.
pub(crate) fn agents(findings: &Findings) -> Option<Table> {
    let agents = &findings.agents;
    if agents.is_empty() {
        return None;
    }
    let main = findings.main_stage();
    let main = findings.stages.iter().position(|stage| main.is_some_and(|main| std::ptr::eq(stage, main)));
    let heads = ["sessions", "tx/s", "p99 ms", "errors", "CPU", "lag p99 ms", "late ms", "clock ms", "± ms"];
    let columns = [TableColumn::words("agent", NAME_WIDTH)].into_iter().chain(heads.map(TableColumn::figures));
    Some(Table::new(columns).with_rows(agents.iter().map(|agent| {
        let name = match agent.status {
            Status::Complete => agent.name.clone(),
            Status::Running => format!("{} (lost)", agent.name),
            Status::Interrupted => format!("{} (stopped)", agent.name),
            Status::Failed => format!("{} (failed)", agent.name),
        };
        let mut row = vec![TableCell::Words(clean(&name, NAME_WIDTH))];
        let Some(stage) = agent.stages.get(main.unwrap_or(0)) else { return row };
        let clock = agent.clock_before;
        row.extend([
            TableCell::Count(stage.sessions.into()),
            TableCell::Number(stage.tps),
            TableCell::ns(stage.response.p99_ns),
            TableCell::Count(stage.errors),
            TableCell::of(stage.cpu_share, TableCell::Share),
            TableCell::ns(stage.lag.p99_ns),
            TableCell::ns(Some(stage.late_ns)),
            TableCell::of(clock.map(|clock| clock.offset_ns as f64), TableCell::Ms),
            TableCell::ns(clock.map(|clock| clock.bound_ns)),
        ]);
        row
    })))
}
