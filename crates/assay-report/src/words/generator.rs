//! What the generator did to its own measurement, under the same three names wherever it is said.

use crate::findings::limit::Limit;

/// The beginning of a sentence.
pub(crate) fn limited(limit: Limit) -> &'static str {
    match limit {
        Limit::Bottleneck => "the generator was the bottleneck",
        Limit::Starved => "the generator was starved of CPU time",
        Limit::Late => "the generator was late",
    }
}
