//! `assay cleanup WORKLOAD`: removes the tables.

use crate::command_line::{CommandOptions, Workload};
use crate::commands::exec;
use crate::diagnostics::{Exit, Trouble};
use crate::terminal;

/// Runs the workload's `cleanup`.
pub fn run(options: &CommandOptions, workload: &Workload, words: &[String]) -> Result<Exit, Trouble> {
    let outcomes = exec::on_databases("cleanup", &options.common, workload, words)?;
    if outcomes.iter().any(|outcome| !outcome.success) {
        return Err(Trouble::new(Exit::Workload, format!("workload {} says that its cleanup failed", workload.name)));
    }
    if !options.common.quiet {
        terminal::say(&format!("removed the tables of {}\n", workload.name));
    }
    Ok(Exit::Success)
}
