//! How a run, or an agent's share of one, ended.

use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It has not ended: the record is partial. In a file, it means that the run was killed.
    #[default]
    Running,
    /// The plan was completed.
    Complete,
    /// By the user; the record has everything until then.
    Interrupted,
    /// By an error; the record has everything until then.
    Failed,
}
