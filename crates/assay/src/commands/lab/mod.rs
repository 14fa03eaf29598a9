//! `assay lab …`: experiments, from a recipe to its results. One file per action.

mod bundle;
mod experiment;
mod folder;
mod list;
mod outside;
mod plan;
mod run;
mod servers;
mod setup;
mod show;
mod status;
mod trial;
mod unpack;

use crate::command_line::{LabAction, LabOptions};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;

/// Runs the requested action.
pub fn run(options: &LabOptions) -> Result<Exit, Trouble> {
    match &options.action {
        LabAction::List => list::run(),
        LabAction::Plan(options) => plan::run(options),
        LabAction::Run(options) => run::run(options),
        LabAction::Status(options) => status::run(options),
        LabAction::Show(options) => show::run(options),
        LabAction::Bundle(options) => bundle::run(options),
        LabAction::Schema => {
            terminal::result(&format!("{:#}\n", assay_recipe::schema()))?;
            Ok(Exit::Success)
        }
    }
}
