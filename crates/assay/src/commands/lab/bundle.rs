//! `assay lab bundle`: packs an experiment into one archive, which another machine can show or run again.

use std::path::PathBuf;
use std::process::Command;

use crate::command_line::LabBundleOptions;
use crate::commands::lab::folder::{Folder, only, unwritable};
use crate::commands::lab::show;
use crate::diagnostics::{Exit, Trouble};
use crate::terminal;

/// Recipe, journal, records (which contain the servers' configuration), logs, tables and page.
pub(super) fn run(options: &LabBundleOptions) -> Result<Exit, Trouble> {
    let path = only(options.folder.as_ref())?;
    let folder = Folder::read(&path)?;
    for (name, text) in [("page.html", show::page(&folder)?), ("results.txt", show::text(&folder)?)] {
        let file = path.join(name);
        std::fs::write(&file, text).map_err(|error| unwritable(&file, &error))?;
    }
    let path = std::fs::canonicalize(&path).map_err(|error| unwritable(&path, &error))?;
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Trouble::usage(format!("{} is not an experiment's folder", path.display())));
    };
    let archive = options.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.tar.gz", name.to_string_lossy())));
    let failed = |error: std::io::Error| Trouble::environment(format!("cannot run tar: {error}"));
    let status =
        Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(above).arg(name).status().map_err(failed)?;
    if !status.success() {
        return Err(Trouble::environment(format!("tar failed to write {}", archive.display())));
    }
    terminal::result(&format!("{}\n", archive.display()))?;
    terminal::say(&format!("to show it on any machine: assay lab show {}\n", archive.display()));
    Ok(Exit::Success)
}
