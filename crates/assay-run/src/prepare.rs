//! `assay prepare WORKLOAD`: creates and fills the tables.

use assay_engine::Outcome;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_spec::{FleetSpec, OutputSpec};
use indicatif::HumanCount;

use crate::assignment::Assignment;
use crate::exec;
use crate::workload::Workload;

/// Runs the workload's `prepare`.
pub fn run(assignment: &Assignment, output: &OutputSpec, fleet: Option<&FleetSpec>) -> Result<Exit, Trouble> {
    let told = |outcome: &Outcome| conclude(&assignment.workload, outcome, output.quiet);
    exec::measured_on_databases(assignment, output, fleet, told)?;
    Ok(Exit::Success)
}

/// Prints what was loaded, and how fast.
pub fn conclude(workload: &Workload, outcome: &Outcome, quiet: bool) -> Result<(), Trouble> {
    if !outcome.success {
        return Err(Trouble::new(Exit::Workload, format!("prepare of workload {} failed", workload.name)));
    }
    let seconds = outcome.elapsed.as_secs_f64();
    let per_second = HumanCount((outcome.loaded as f64 / seconds.max(1e-3)) as u64);
    let rows = match outcome.loaded {
        0 => String::new(),
        rows => format!(": {} rows, {per_second} rows/s", HumanCount(rows)),
    };
    if !quiet {
        terminal::say(&format!("prepared {} in {seconds:.1} s{rows}\n", workload.name));
    }
    Ok(())
}
