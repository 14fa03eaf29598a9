//! `assay lab plan`: shows what an experiment will do.

use std::collections::HashSet;

use assay_experiment::{Experiment, Folder, Runs, about, check_shows, count, look, prepare_words};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::{terminal, url_text};
use assay_recipe::{order, remaining, seconds_left};

use crate::command_line::RecipeOptions;
use crate::commands::lab::arguments::RecipeArguments;

/// A longer list of cells is summarized.
const CELLS_SHOWN: usize = 60;

/// Prints it, if all of it can run here.
pub(super) fn run(options: &RecipeOptions) -> Result<Exit, Trouble> {
    let experiment = Experiment::of(&options.choice(), &RecipeArguments)?;
    let recipe = &experiment.recipe;
    let runs = Runs::of_all(recipe, &RecipeArguments).map_err(|wrong| experiment.located(wrong))?;
    for words in check_shows(recipe, &runs).map_err(|wrong| experiment.located(wrong))? {
        terminal::say(&format!("warning: {words}\n"));
    }
    let folder = Folder::usual(&experiment);
    let progress = Folder::read(&folder).map(|folder| folder.progress).unwrap_or_default();
    let left = remaining(recipe.cells.len(), recipe.trials.count, recipe.trials.seed, &progress);
    let mut text = format!("{}\n", recipe.title);
    if !recipe.question.is_empty() {
        text += &format!("{}\n", recipe.question);
    }
    for factor in &recipe.factors {
        let levels: Vec<&str> = factor.levels.iter().map(|level| level.name.as_str()).collect();
        text += &format!("  {}: {}\n", factor.name, levels.join(", "));
    }
    text += &format!(
        "{} in {}, seed {}, {}\n",
        count(recipe.cells.len(), "cell"),
        count(recipe.trials.count as usize, "round"),
        recipe.trials.seed,
        match progress.outcomes.len() {
            0 => count(left.len(), "trial"),
            done => format!("{} of {} trials left", left.len(), left.len() + done),
        }
    );
    let found = look(&experiment, &runs, None)?.refuse_any(&experiment)?;
    text += &found.text;
    for need in &recipe.needs {
        text += &format!("  needs: {need}\n");
    }
    if recipe.trials.drop > 0 {
        text += &format!("  {} run first and not shown\n", count(recipe.trials.drop as usize, "round"));
    }
    text += &format!("  load: assay {}\n", url_text::shell_line(runs[0].runs.shown()));
    let mut prepared: Vec<String> = Vec::new();
    // Cells share their runs.
    let mut seen = HashSet::new();
    let distinct = runs.iter().map(|planned| &*planned.runs).filter(|runs| seen.insert(std::ptr::from_ref(*runs)));
    for prepare in distinct.filter_map(|runs| runs.prepare.as_ref()) {
        let line = url_text::shell_line(prepare_words(prepare));
        if !prepared.contains(&line) {
            text += &format!("  data, loaded once per version: assay prepare {line}\n");
            prepared.push(line);
        }
    }
    for step in &recipe.steps {
        text += &format!("  step {}, {}\n", step.name, step.when.name());
    }
    text += "order of round 1:\n";
    for (number, cell) in order(recipe.cells.len(), 1, recipe.trials.seed).into_iter().take(CELLS_SHOWN).enumerate() {
        text += &format!("  {:3}  {}\n", number + 1, recipe.cells[cell].name);
    }
    if recipe.cells.len() > CELLS_SHOWN {
        text += &format!("  and {} more\n", recipe.cells.len() - CELLS_SHOWN);
    }
    let seconds = seconds_left(&left, &progress, |cell| runs[cell].seconds);
    let loading = if prepared.is_empty() { "" } else { ", plus loading the data" };
    text += &format!("time: about {}{loading}\n", about(seconds));
    text += &found.disk;
    text += &format!("folder: {}\n", folder.display());
    terminal::result(&text)?;
    Ok(Exit::Success)
}
