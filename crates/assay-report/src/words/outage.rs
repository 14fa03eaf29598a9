//! Outages, worded the same everywhere.

use crate::digits::{clock, count, length};
use crate::findings::outage::OutageFindings;

/// `no service for 5.02 s from 0:30`.
pub(crate) fn outage_words(outage: &OutageFindings) -> String {
    let to_end = if outage.to_end { " to the end" } else { "" };
    format!("no service for {} from {}{to_end}", length(outage.length_ns), clock(outage.start_ns))
}

/// Describes several outages: `times` is their number, `length_ns` their total length.
pub(crate) fn outages_words(times: u64, longest: &OutageFindings, length_ns: u64) -> String {
    match times {
        0 | 1 => outage_words(longest),
        times => format!(
            "no service for {} in {} outages, the longest {} from {}",
            length(length_ns),
            count(times),
            length(longest.length_ns),
            clock(longest.start_ns)
        ),
    }
}
