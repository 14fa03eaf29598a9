//! `assay show RECORD`: the final report of a run, from the file it left behind.

use assay_record::{ReadError, Record};

use crate::command_line::ShowOptions;
use crate::diagnostics::{Exit, Trouble};
use crate::{render, terminal};

/// Prints the report.
pub fn run(options: &ShowOptions) -> Result<Exit, Trouble> {
    let record = Record::read(&options.record).map_err(unreadable)?;
    terminal::result(&render::result(&record, options.format))?;
    Ok(Exit::Success)
}

fn unreadable(error: ReadError) -> Trouble {
    let trouble = Trouble::environment(error.to_string());
    let trouble = match std::error::Error::source(&error) {
        Some(source) => trouble.detail(source.to_string()),
        None => trouble,
    };
    match error {
        ReadError::CutOff { .. } => trouble.hint("it was copied only in part: copy it again"),
        _ => trouble,
    }
}
