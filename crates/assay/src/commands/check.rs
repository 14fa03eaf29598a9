//! `assay check WORKLOAD`: verifies the tables.

use crate::command_line::{CommandOptions, Workload};
use crate::commands::exec;
use crate::diagnostics::{Exit, Trouble};
use crate::terminal;

/// Runs the workload's `check`; what it found is in the lines it printed.
pub fn run(options: &CommandOptions, workload: &Workload, words: &[String]) -> Result<Exit, Trouble> {
    let outcomes = exec::on_databases("check", &options.common, workload, words)?;
    if outcomes.iter().any(|outcome| !outcome.success) {
        return Err(Trouble::new(Exit::Difference, format!("the tables of {} are not as prepared", workload.name))
            .hint("give the options they were prepared with, or prepare them again"));
    }
    terminal::result(&format!("the tables of {} are as prepared\n", workload.name))?;
    Ok(Exit::Success)
}
