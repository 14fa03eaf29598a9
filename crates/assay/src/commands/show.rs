//! `assay show RECORD`: the report of a run, from its record.

use std::path::Path;

use assay_record::{ReadError, Record};
use assay_report::View;

use crate::command_line::ShowOptions;
use crate::diagnostics::{Exit, Trouble};
use crate::{render, terminal};

/// Prints the report.
pub fn run(options: &ShowOptions) -> Result<Exit, Trouble> {
    let record = read(&options.record)?;
    let view = View { agents: options.agents, ..terminal::view(options.verbose) };
    terminal::result(&render::result(&record, options.format, view))?;
    Ok(Exit::Success)
}

/// The record in this file.
pub(super) fn read(path: &Path) -> Result<Record, Trouble> {
    Record::read(path).map_err(unreadable)
}

pub(super) fn unreadable(error: ReadError) -> Trouble {
    let trouble = Trouble::environment(error.to_string());
    let trouble = match std::error::Error::source(&error) {
        Some(source) => trouble.detail(source.to_string()),
        None => trouble,
    };
    match error {
        ReadError::CutOff { .. } => trouble.hint("it was not copied completely: copy it again"),
        _ => trouble,
    }
}
