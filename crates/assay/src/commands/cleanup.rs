//! `assay cleanup WORKLOAD`: removes the tables. The workload itself reports which ones it removed.

use crate::command_line::{CommandOptions, Workload};
use crate::commands::exec;
use crate::diagnostics::{Exit, Trouble};
use crate::terminal;

/// Runs the workload's `cleanup`.
pub fn run(options: &CommandOptions, workload: &Workload, words: &[String]) -> Result<Exit, Trouble> {
    let outcomes = exec::on_databases("cleanup", &options.common, workload, words)?;
    if outcomes.iter().any(|outcome| !outcome.success) {
        return Err(Trouble::new(Exit::Workload, format!("cleanup of workload {} failed", workload.name)));
    }
    if !options.common.quiet {
        terminal::say(&format!("cleaned up {}\n", workload.name));
    }
    Ok(Exit::Success)
}
