//! `assay show RECORD`: the report of a run, from its record.

use std::path::Path;

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_record::Record;
use assay_report::View;
use assay_run::{identity, isolation, render};

use crate::command_line::ShowOptions;

/// Prints the report.
pub fn run(options: &ShowOptions) -> Result<Exit, Trouble> {
    let record = read(&options.record)?;
    let view = View { agents: options.agents, ..terminal::view(options.verbose) };
    terminal::result(&render::result(&record, options.format, view))?;
    Ok(Exit::Success)
}

/// The record in this file.
pub(super) fn read(path: &Path) -> Result<Record, Trouble> {
    let mut record = Record::read(path)?;
    // A run that was killed has not checked its history.
    if record.isolation.is_none() {
        record.isolation = isolation::verdict_beside(path);
    }
    identity::complete(&mut record);
    Ok(record)
}
