//! `assay lab …`: experiments, from a recipe to its results. One file per action.

mod arguments;
mod bundle;
mod list;
mod plan;
mod show;
mod status;

use crate::command_line::{LabAction, LabOptions};
use arguments::RecipeArguments;
use assay_experiment::ExperimentChoice;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;

/// Runs the requested action.
pub fn run(options: &LabOptions) -> Result<Exit, Trouble> {
    match &options.action {
        LabAction::List => list::run(),
        LabAction::Plan(options) => plan::run(options),
        LabAction::Run(options) => {
            let choice = ExperimentChoice { trust: options.trust, ..options.recipe.choice() };
            assay_experiment::run(&choice, options.folder.clone(), options.again_failed, &RecipeArguments)
        }
        LabAction::Status(options) => status::run(options),
        LabAction::Show(options) => show::run(options),
        LabAction::Bundle(options) => bundle::run(options),
        LabAction::Schema => {
            terminal::result(&format!("{:#}\n", assay_recipe::schema()))?;
            Ok(Exit::Success)
        }
    }
}
