//! The result of a command that loads rows.

use serde::Serialize;

use crate::findings::arithmetic::per_second;

/// Work of a command (`prepare`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Loaded {
    /// Rows loaded.
    pub rows: u64,
    /// From the first connect to the end.
    pub elapsed_ns: u64,
    /// Rows per second.
    pub rows_per_s: f64,
}

/// The figures of a command that loaded `rows`.
pub fn loaded(rows: u64, elapsed_ns: u64) -> Loaded {
    Loaded { rows, elapsed_ns, rows_per_s: per_second(rows, elapsed_ns) }
}
