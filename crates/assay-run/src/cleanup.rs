//! `assay cleanup WORKLOAD`: removes the tables. The workload itself reports which ones it removed.

use crate::assignment::Assignment;
use crate::exec;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;

/// Runs the workload's `cleanup`.
pub fn run(assignment: &Assignment, quiet: bool) -> Result<Exit, Trouble> {
    let (workload, outcomes) = (&assignment.workload, exec::on_databases(assignment, quiet)?);
    if outcomes.iter().any(|outcome| !outcome.success) {
        return Err(Trouble::new(Exit::Workload, format!("cleanup of workload {} failed", workload.name)));
    }
    if !quiet {
        terminal::say(&format!("cleaned up {}\n", workload.name));
    }
    Ok(Exit::Success)
}
