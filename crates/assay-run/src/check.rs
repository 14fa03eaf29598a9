//! `assay check WORKLOAD`: verifies the tables.

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_spec::{FleetSpec, OutputSpec};

use crate::assignment::Assignment;
use crate::exec;
use crate::workload::Workload;

/// Runs the workload's `check`; its findings are in the lines it printed.
pub fn run(assignment: &Assignment, output: &OutputSpec, fleet: Option<&FleetSpec>) -> Result<Exit, Trouble> {
    let (workload, mut success) = (&assignment.workload, true);
    exec::measured_on_databases(assignment, output, fleet, |outcome| {
        success &= outcome.success;
        Ok(())
    })?;
    if !success {
        return Err(difference(workload, ""));
    }
    terminal::result(&format!("the tables of {} are correct\n", workload.name))?;
    Ok(Exit::Success)
}

/// The error if `check` found something; `when` it was found: nothing, or " after the run". The workload says what to
/// do about it: it knows whether the tables have a different size, are damaged, or half loaded.
pub fn difference(workload: &Workload, when: &str) -> Trouble {
    Trouble::new(Exit::Difference, format!("the tables of {} are not correct{when}", workload.name))
}
