//! What an experiment adds to the record of one of its trials.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// The trial of an experiment that a run was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTrial {
    /// Hash of the recipe.
    pub experiment: String,
    /// Counts from 1.
    pub round: u32,
    /// Name of the cell.
    pub cell: String,
    /// Why the experiment rejected and repeated the trial; empty: it counts.
    #[serde(default)]
    pub rejected: Vec<String>,
    /// Steps of the recipe during the run, in the order of their start.
    #[serde(default)]
    pub steps: Vec<StepTime>,
}

/// When a step ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTime {
    /// Name of the step.
    pub name: String,
    /// Its start.
    pub started: Time,
    /// Its duration.
    pub length_ns: u64,
}
