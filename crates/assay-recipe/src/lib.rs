//! Recipes: one text describes one experiment.
//!
//! A recipe is a TOML text. `Recipe::read` turns it into cells: one level of each factor, set in the base document at
//! the factor's paths, and parsed as a `Setup` without unknown keys. `plan` determines the order of trials, `journal`
//! their results. It opens no file, starts no server, reads no clock, and does not know what a workload's options mean.

#![forbid(unsafe_code)]

mod cases;
mod document;
mod error;
mod expression;
mod fuzz;
mod grid;
mod journal;
mod plan;
mod recipe;
mod setup;
mod shipped;
mod step;
mod word;

pub use cases::{CaseFile, StatementCase};
pub use document::{differences, is_url, public_setting, value_with_urls, values, with_urls};
pub use error::RecipeError;
pub use expression::{filled, names};
pub use fuzz::fuzz_recipe;
pub use grid::{Cell, Factor, Level};
pub use journal::{JournalEvent, PhaseResult, TrialKey, TrialProgress, TrialResult, line};
pub use plan::{alternating, order, remaining, seconds_left};
pub use recipe::{ChartAsked, Part, Recipe, Show, TableAsked, Trials, schema};
pub use setup::{Data, Generator, RecipeFront, RecipeServer, Run, Setup};
pub use shipped::{from_words, shipped};
pub use step::{Action, Step, Until, When};
pub use word::{Word, Words};
