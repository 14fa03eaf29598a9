//! `assay manual FOLDER`: the help of every command as manual pages, for `man`.

use std::fs;
use std::path::Path;

use crate::command_line::{ManualOptions, definition};
use assay_process::diagnostics::{Exit, Trouble};

/// Writes `assay.1`, `assay-run.1` and so on.
pub fn run(options: &ManualOptions) -> Result<Exit, Trouble> {
    let folder = &options.folder;
    let written = fs::create_dir_all(folder).and_then(|()| write(folder));
    written.map_err(|error| {
        Trouble::environment(format!("cannot write manual pages to {}", folder.display())).detail(error.to_string())
    })?;
    Ok(Exit::Success)
}

/// All pages beside the folder's files first: none replaces an older one unless all of them could be written.
fn write(folder: &Path) -> std::io::Result<()> {
    let aside = tempfile::Builder::new().prefix(".assay-").tempdir_in(folder)?;
    clap_mangen::generate_to(definition(), aside.path())?;
    for page in fs::read_dir(aside.path())? {
        let page = page?;
        fs::rename(page.path(), folder.join(page.file_name()))?;
    }
    Ok(())
}
