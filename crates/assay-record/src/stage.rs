//! A stage: what was measured in one step of a ladder.

use assay_measure::{Generator, Interval, Tally};
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// One step of a ladder; a plain run has one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Active sessions.
    pub sessions: u32,
    /// In a search for the highest rate: the stage's own rate, transactions due per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Start of the measured part.
    pub started: Time,
    /// Start of the measured part since the start of the run, on the clock of `Telemetry`; `None`: unknown.
    #[serde(default)]
    pub start_ns: Option<u64>,
    /// Length of the measured part: the divisor of every rate.
    pub measured_ns: u64,
    /// Everything measured, over all targets.
    pub total: Tally,
    /// Measurements of each target, in the order of `Manifest::targets`; empty if there is only one.
    #[serde(default)]
    pub targets: Vec<Tally>,
    /// Fewest successful transactions of one session.
    pub session_transactions_min: u64,
    /// Most successful transactions of one session.
    pub session_transactions_max: u64,
    /// The load generator's own use of resources.
    pub generator: Generator,
    /// When the load generator did not run at all, as it was suspended or got no CPU, since the start of the run: from
    /// and to, ascending; `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halts_ns: Option<Vec<[u64; 2]>>,
    /// One per interval of the measured part, in order; the last may be shorter.
    pub intervals: Vec<Interval>,
}
