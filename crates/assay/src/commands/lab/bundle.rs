//! `assay lab bundle`: packs an experiment into one archive, which another machine can show or run again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command_line::LabBundleOptions;
use assay_experiment::{Folder, chosen, results, unwritable};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::{files, terminal};

/// Recipe, journal, records (which contain the servers' configuration), logs, tables and page.
pub(super) fn run(options: &LabBundleOptions) -> Result<Exit, Trouble> {
    let path = chosen(options.folder.as_ref())?;
    let folder = Folder::read(&path)?;
    for (name, text) in [("page.html", results::page(&folder)?), ("results.txt", results::text(&folder)?)] {
        let file = path.join(name);
        files::write(&file, assay_report::visible(&text, false).as_bytes())
            .map_err(|error| unwritable(&file, &error))?;
    }
    let path = std::fs::canonicalize(&path).map_err(|error| unwritable(&path, &error))?;
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Trouble::usage(format!("{} is not an experiment's folder", path.display())));
    };
    let archive = options.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.tar.gz", name.to_string_lossy())));
    pack(&archive, above, name)?;
    terminal::result(&format!("{}\n", archive.display()))?;
    terminal::say(&format!("to show it on any machine: assay lab show {}\n", archive.display()));
    Ok(Exit::Success)
}

/// Packs what is below `above` under this name.
fn pack(archive: &Path, above: &Path, name: &OsStr) -> Result<(), Trouble> {
    let mut said = Vec::new();
    let packed = files::write_by(archive, |file| {
        let mut command = Command::new("tar");
        command.arg("-cz").arg("-C").arg(above).arg(name).stdin(Stdio::null()).stdout(file.try_clone()?);
        let output = command.stderr(Stdio::piped()).output()?;
        said = output.stderr;
        if output.status.success() { Ok(()) } else { Err(std::io::Error::other("tar failed")) }
    });
    packed.map_err(|error| {
        Trouble::environment(format!("cannot write {}: {error}", archive.display()))
            .detail(String::from_utf8_lossy(&said))
            .hint("choose another file with --output")
    })
}
