//! What the values of a metric are in.

use serde::Serialize;

/// What values are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    /// Per transaction finished well.
    PerTransaction,
    /// Per time of the workload's own: `tpmC`.
    Own,
    /// A level of a server or machine, in the unit at the end of its name.
    Level,
}
