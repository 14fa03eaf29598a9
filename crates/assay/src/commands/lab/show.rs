//! `assay lab show`: the results of an experiment, complete or not.

use std::path::{Path, PathBuf};

use assay_experiment::results::{experiment, page, results, text};
use assay_experiment::{Folder, only, unpack};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::{files, terminal};
use assay_report::experiment_csv;

use crate::command_line::LabShowOptions;

/// Prints the tables of the recipe, and writes whatever else was requested.
pub(super) fn run(options: &LabShowOptions) -> Result<Exit, Trouble> {
    let path = only(options.folder.as_ref())?;
    let unpacked;
    let path = if path.is_file() {
        unpacked = unpack::unpack(&path)?;
        unpacked.path().join(first_folder(unpacked.path())?)
    } else {
        path
    };
    let folder = Folder::read(&path)?;
    terminal::result(&text(&folder)?)?;
    type Write<'a> = &'a dyn Fn() -> Result<String, Trouble>;
    let outputs: [(&Option<PathBuf>, Write<'_>); 3] = [
        (&options.markdown, &|| Ok(results(&folder)?.markdown())),
        (&options.csv, &|| Ok(experiment_csv(&experiment(&folder, folder.recipe.part.as_ref())?))),
        (&options.html, &|| page(&folder)),
    ];
    for (path, output) in outputs {
        if let Some(path) = path {
            files::write(path, assay_report::visible(&output()?, false).as_bytes())
                .map_err(|error| Trouble::environment(format!("cannot write {}: {error}", path.display())))?;
            terminal::say(&format!("wrote {}\n", path.display()));
        }
    }
    Ok(Exit::Success)
}

fn first_folder(path: &Path) -> Result<PathBuf, Trouble> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).find(|path| path.is_dir()).ok_or_else(|| Trouble::usage("the bundle is empty"))
}
