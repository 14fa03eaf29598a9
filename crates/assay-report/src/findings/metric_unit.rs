//! Units of metrics.

use serde::{Deserialize, Serialize};

/// The unit of a metric's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricUnit {
    /// Per second.
    PerSecond,
    /// Rows per second: of a load.
    RowsPerSecond,
    /// Events per second: of a test of the machine.
    EventsPerSecond,
    /// Nanoseconds.
    Ns,
    /// Per successful transaction.
    PerTransaction,
    /// Per the workload's own time unit: `tpmC`.
    Own,
    /// A level of a server or machine, in the unit at the end of its name.
    Level,
}
