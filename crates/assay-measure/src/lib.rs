//! Measurements: counts, latency distributions, intervals, and the load generator's own use of resources.
//!
//! The engine measures into these types, records and fleets store and send them, and both add them up in the same way.
//! Fields are the integers of the record's format (docs/record.md), with the unit in the name. Nothing is derived here:
//! rates and percentiles are computed in assay-report.

#![forbid(unsafe_code)]

mod bucket;
mod encoded;
mod generator;
mod interval;
mod latencies;
mod tally;
mod thin;
mod work;

pub use encoded::{BadHistogram, EncodedHistogram, inflated_bytes};
pub use generator::Generator;
pub use hdrhistogram::Histogram;
pub use interval::{Interval, TargetInterval};
pub use latencies::{Bucket, Latencies};
pub use tally::{ByClass, CounterTally, ErrorTally, StatementClass, StatementTally, Tally, TransactionTally};
pub use thin::{QUANTILES_PPM, STAGE_QUANTILES_PPM, Thinner, coarse_bounds_ns};
pub use work::{CounterSum, TableTotal, Work, WorkTally};

/// Adds `value`; the sum stays at the maximum instead of overflowing.
fn add_to(sum: &mut u64, value: u64) {
    *sum = sum.saturating_add(value);
}
