//! `assay show RECORD`: the report of a run, from its record.

use std::path::Path;

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_record::{ReadError, Record};
use assay_report::View;
use assay_run::{identity, isolation, render};

use crate::command_line::ShowOptions;

/// Prints the report.
pub fn run(options: &ShowOptions) -> Result<Exit, Trouble> {
    let record = read(&options.record, Record::read_thinned)?;
    let view = View { agents: options.agents, ..terminal::view(options.verbose) };
    terminal::result(&render::result(&record, options.format, view))?;
    Ok(Exit::Success)
}

/// The record in this file, read with `reads`.
pub(super) fn read(path: &Path, reads: fn(&Path) -> Result<Record, ReadError>) -> Result<Record, Trouble> {
    let mut record = reads(path)?;
    // A run that was killed has not checked its history.
    if record.isolation.is_none() {
        record.isolation = isolation::verdict_beside(path);
    }
    identity::complete(&mut record);
    Ok(record)
}
