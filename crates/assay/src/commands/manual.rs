//! `assay manual FOLDER`: the help of every command as manual pages, for `man`.

use std::fs;

use crate::command_line::{ManualOptions, definition};
use crate::diagnostics::{Exit, Trouble};

/// Writes `assay.1`, `assay-run.1` and so on.
pub fn run(options: &ManualOptions) -> Result<Exit, Trouble> {
    let folder = &options.folder;
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(definition(), folder));
    written.map_err(|error| {
        Trouble::environment(format!("cannot write manual pages to {}", folder.display())).detail(error.to_string())
    })?;
    Ok(Exit::Success)
}
