//! `assay check WORKLOAD`: verifies the tables.

use crate::command_line::{MeasuredCommandOptions, Workload};
use crate::commands::exec;
use crate::diagnostics::{Exit, Trouble};
use crate::terminal;

/// Runs the workload's `check`; its findings are in the lines it printed.
pub fn run(options: &MeasuredCommandOptions, workload: &Workload, words: &[String]) -> Result<Exit, Trouble> {
    let mut success = true;
    exec::measured_on_databases("check", options, workload, words, |outcome| {
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
pub(crate) fn difference(workload: &Workload, when: &str) -> Trouble {
    Trouble::new(Exit::Difference, format!("the tables of {} are not correct{when}", workload.name))
}
