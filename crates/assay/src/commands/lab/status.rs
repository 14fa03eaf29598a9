//! `assay lab status`: the progress of experiments.

use std::cell::LazyCell;

use assay_experiment::{DEFAULT, Folder, Runs, about, all};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use assay_recipe::{remaining, seconds_left};

use crate::command_line::LabFolderOptions;
use crate::commands::lab::arguments::RecipeArguments;

/// Prints the status of the given experiment, or of all in the default folder.
pub(super) fn run(options: &LabFolderOptions) -> Result<Exit, Trouble> {
    let folders = options.folder.clone().map_or_else(all, |one| vec![one]);
    if folders.is_empty() {
        terminal::say(&format!("no experiment in {}\n", DEFAULT));
    }
    for path in folders {
        terminal::result(&text(&Folder::read(&path)?))?;
    }
    Ok(Exit::Success)
}

fn text(folder: &Folder) -> String {
    let (recipe, progress) = (&folder.recipe, &folder.progress);
    let all = recipe.cells.len() * progress.rounds(recipe.trials.count) as usize;
    let done = progress.measured();
    let left = remaining(recipe.cells.len(), recipe.trials.count, recipe.trials.seed, progress);
    // Planned times are for experiments of which nothing is measured yet. The steps of a recipe of another version may
    // be unknown here.
    let runs = LazyCell::new(|| Runs::of_all(recipe, &RecipeArguments).unwrap_or_default());
    let planned = |cell: usize| runs.get(cell).map_or(0.0, |runs| runs.seconds);
    let mut text = format!("{}: {}\n  {done} of {all} trials measured", folder.path.display(), recipe.title);
    if !left.is_empty() {
        text += &format!(", {} left, about {}", left.len(), about(seconds_left(&left, progress, planned)));
    }
    text += match (folder.is_running(), left.is_empty()) {
        (true, _) => "; it is running\n",
        (false, true) => "; it is complete\n",
        (false, false) => "; it is not running\n",
    };
    if progress.interrupted > 0 {
        text += &format!("  interrupted and repeated: {}\n", progress.interrupted);
    }
    let repeated = progress.repeated.iter().map(|(key, causes)| ("spoiled and repeated", *key, causes.as_slice()));
    for (what, key, causes) in repeated.chain(progress.spoiled().map(|(key, causes)| ("spoiled", key, causes))) {
        text += &format!("  {what}, round {}, {}: {}\n", key.round, recipe.cells[key.cell].name, causes.join("; "));
    }
    for (key, cause, _) in progress.failures() {
        text += &format!("  failed, round {}, {}: {cause}\n", key.round, recipe.cells[key.cell].name);
    }
    text
}
