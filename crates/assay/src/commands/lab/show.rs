//! `assay lab show`: the results of an experiment, complete or not.

use std::path::{Path, PathBuf};

use assay_experiment::results::{WIDTH, experiment, page, results, text};
use assay_experiment::{Folder, Merged, chosen, unpack};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::{files, terminal};
use assay_report::{Chart, Shown, experiment_csv};

use crate::command_line::LabShowOptions;
use crate::commands::report;

/// Prints the tables of the recipe, and writes whatever else was requested.
pub(super) fn run(options: &LabShowOptions) -> Result<Exit, Trouble> {
    let named = match &options.folders[..] {
        [] => vec![chosen(None)?],
        named => named.to_vec(),
    };
    let mut unpacked = Vec::new();
    let mut folders = Vec::new();
    for path in &named {
        folders.push(if path.is_file() {
            let bundle = unpack::unpack(path)?;
            let folder = Folder::read(&bundle.path().join(first_folder(bundle.path())?));
            unpacked.push(bundle);
            folder?
        } else {
            Folder::read(path)?
        });
    }
    if folders.len() > 1 {
        let names =
            named.iter().map(|path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned());
        let merged = Merged::of(folders, names.collect())?;
        terminal::result(&merged.results()?.text(WIDTH))?;
        draw(options, &|| Ok(merged.results()?.shown))?;
        return write(
            options,
            &|| Ok(merged.results()?.markdown()),
            &|| Ok(experiment_csv(&merged.experiment(None)?)),
            &|| merged.page(),
        );
    }
    let folder = folders.remove(0);
    terminal::result(&text(&folder)?)?;
    draw(options, &|| Ok(results(&folder)?.shown))?;
    write(
        options,
        &|| Ok(results(&folder)?.markdown()),
        &|| Ok(experiment_csv(&experiment(&folder, folder.recipe.part.as_ref())?)),
        &|| page(&folder),
    )
}

/// Writes the charts of the recipe, if they were requested.
fn draw(options: &LabShowOptions, shown: &dyn Fn() -> Result<Vec<Shown>, Trouble>) -> Result<(), Trouble> {
    if options.pictures.svg.is_none() && options.pictures.png.is_none() {
        return Ok(());
    }
    let shown = shown()?;
    let charts: Vec<&Chart> = shown.iter().filter_map(Shown::chart).collect();
    if charts.is_empty() {
        return Err(Trouble::usage(
            "there is no chart to draw: the recipe shows tables only, or nothing is measured yet",
        )
        .hint("add one to the recipe, such as [[show]] with lines = {}, and run it again: nothing is measured twice"));
    }
    report::pictures(&options.pictures, &charts)
}

type Output<'a> = &'a dyn Fn() -> Result<String, Trouble>;

/// Writes the files that were requested.
fn write(options: &LabShowOptions, markdown: Output<'_>, csv: Output<'_>, html: Output<'_>) -> Result<Exit, Trouble> {
    for (path, output) in [(&options.markdown, markdown), (&options.csv, csv), (&options.html, html)] {
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
