//! The processes that shared a run, as its record keeps them.

use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::status::Status;
use assay_measure::Generator;
use assay_measure::Latencies;

/// One of the processes that shared a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentPart {
    /// Its name on the bus.
    pub name: String,
    /// Its place among the agents of the run, from 0.
    pub number: u32,
    /// How its share ended; `running`: it was lost, and its share holds what it had sent until then.
    pub status: Status,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Its machine.
    #[serde(flatten)]
    pub host: Host,
    /// Its clock against that of the coordinator before the run; `None`: not measured.
    #[serde(default)]
    pub clock_before: Option<ClockOffset>,
    /// Offset of its clock after the run.
    #[serde(default)]
    pub clock_after: Option<ClockOffset>,
    /// Its share of each stage.
    pub stages: Vec<AgentStage>,
}

impl AgentPart {
    /// How far its instants may be off on the coordinator's clock: the bound of the pings, and how much its clock moved
    /// during the run.
    pub fn clock_error_ns(&self) -> u64 {
        let known: Vec<ClockOffset> = [self.clock_before, self.clock_after].into_iter().flatten().collect();
        let moved = match known[..] {
            [before, after] => before.offset_ns.abs_diff(after.offset_ns),
            _ => 0,
        };
        // Never measured: nothing can be said about real time.
        known.iter().map(|offset| offset.bound_ns).max().map_or(u64::MAX / 4, |bound| bound.saturating_add(moved))
    }
}

/// How far a clock was from another, as pings tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// The agent's time of day minus the coordinator's.
    pub offset_ns: i64,
    /// The true offset differs from that by no more than this: half of the shortest round trip.
    pub bound_ns: u64,
}

/// An agent's share of a stage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentStage {
    /// Sessions that it drove.
    pub sessions: u32,
    /// How much later than agreed its first transaction could begin.
    pub late_ns: u64,
    /// Length of its measured part.
    pub measured_ns: u64,
    /// Transactions that finished well.
    pub transactions: u64,
    /// Errors met.
    pub errors: u64,
    /// Response times of all types together.
    pub response: Latencies,
    /// sent − due of every transaction.
    pub lag: Latencies,
    /// The agent's own use of resources.
    pub generator: Generator,
}
