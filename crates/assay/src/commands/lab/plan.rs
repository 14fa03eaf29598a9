//! `assay lab plan`: what an experiment will do, before it does it.

use std::collections::BTreeMap;

use assay_lab::{Home, binaries};
use assay_recipe::{order, remaining, seconds_left};
use assay_seam::Nanos;

use crate::command_line::RecipeOptions;
use crate::commands::lab::experiment::Experiment;
use crate::commands::lab::folder::Folder;
use crate::commands::lab::setup::{Lines, description};
use crate::diagnostics::{Exit, Trouble};
use crate::values::display_duration;
use crate::{terminal, url_text};

/// A trial's start, stop and restored data take about so many seconds.
pub(super) const OVERHEAD_S: f64 = 8.0;
/// More cells are summed up.
const CELLS_SHOWN: usize = 60;

/// Prints it. What is missing on this machine is said, and is not an error.
pub(super) fn run(options: &RecipeOptions) -> Result<Exit, Trouble> {
    let experiment = Experiment::of(options)?;
    let recipe = &experiment.recipe;
    let lines = recipe.cells.iter().map(|cell| Lines::of(&cell.setup)).collect::<Result<Vec<_>, _>>()?;
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
    let (_, first) = recipe.cells[0].setup.only_server();
    if first.replicas > 0 {
        text += &format!("  {} replicas\n", count(first.replicas as usize, "replica"));
    }
    for (product, missing) in products(recipe)? {
        text += &match missing {
            None => format!("  {product}\n"),
            Some(reason) => format!("  {product}: missing: {reason}\n"),
        };
    }
    text += &format!("  load: assay run {}\n", url_text::shell_line(&lines[0].run));
    let mut prepared: Vec<String> =
        lines.iter().filter_map(|line| line.prepare.as_ref()).map(url_text::shell_line).collect();
    prepared.dedup();
    for line in prepared {
        text += &format!("  data, loaded once per version: assay prepare {line}\n");
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
    let seconds = seconds_left(&left, &progress, |cell| lines[cell].seconds() + OVERHEAD_S);
    text += &format!("time: about {}, plus loading the data\n", about(seconds));
    text += &format!("folder: {}\n", folder.display());
    terminal::result(&text)?;
    Ok(Exit::Success)
}

/// Products of all cells, with what stands in the way of each.
fn products(recipe: &assay_recipe::Recipe) -> Result<BTreeMap<String, Option<String>>, Trouble> {
    let home = Home::usual();
    let mut products = BTreeMap::new();
    for cell in &recipe.cells {
        let (_, server) = cell.setup.only_server();
        let Some(product) = &server.product else { continue };
        if products.contains_key(product) {
            continue;
        }
        let missing = match description(server) {
            Err(trouble) => Some(trouble.cause),
            Ok(description) if description.binaries.is_some() => None,
            Ok(description) => {
                let wanted = &description.wanted;
                let all =
                    binaries::sources(&home, binaries::product(&wanted.product)?, &assay_lab::Account::choose(None)?);
                let fits = all.iter().any(|source| wanted.fits(&binaries::version_of(source)));
                (!fits).then(|| format!("see `assay server sources {}`", wanted.product))
            }
        };
        products.insert(product.clone(), missing);
    }
    Ok(products)
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// In minutes, or seconds where it is short.
pub(super) fn about(seconds: f64) -> String {
    let whole = if seconds < 120.0 { seconds.ceil() } else { (seconds / 60.0).ceil() * 60.0 };
    display_duration(Nanos::from_secs(whole as u64))
}
