//! Whether the database kept its promise.

use assay_isolation::{IsolationLevel, IsolationVerdict};
use serde::{Deserialize, Serialize};

/// The check of a run's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// The level that was promised.
    pub level: IsolationLevel,
    /// What the history shows.
    pub verdict: IsolationVerdict,
}
