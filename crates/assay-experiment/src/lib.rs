//! Experiments: what a recipe's cells execute, their trials, the folder with journal and records, and what it came to.
//!
//! ```text
//! Recipe ─► Runs (specs, checked) ─► Trial: server, steps, load ─► Folder (journal, records) ─► results
//! ```
//!
//! `run` is the loop over the trials. The load of a trial is a process of this program, which `child` starts. A
//! recipe's lines of arguments are parsed by whoever knows the command line (`ArgumentParser`).

#![forbid(unsafe_code)]

mod arguments;
mod cases;
pub mod child;
mod experiment;
mod folder;
mod merge;
mod outside;
pub mod results;
mod run;
mod servers;
mod setup;
mod shows;
mod trial;
pub mod unpack;

pub use arguments::{ArgumentParser, WorkloadArguments};
pub use cases::spec_of_case;
pub use experiment::{Experiment, ExperimentChoice, WrongKey};
pub use folder::{DEFAULT, Folder, all, chosen, unwritable};
pub use merge::Merged;
pub use run::run;
pub use servers::{Found, about, count, look};
pub use setup::{PlannedCell, Runs, prepare_words};
pub use shows::check_shows;
pub use unpack::fuzz_bundle;
