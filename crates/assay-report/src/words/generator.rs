//! How the load generator affected its own measurement, with the same three names everywhere.

use crate::findings::limit::Limit;

/// The beginning of a sentence.
pub(crate) fn limited(limit: Limit) -> &'static str {
    match limit {
        Limit::Bottleneck => "the generator was the bottleneck",
        Limit::Starved => "the generator was starved of CPU time",
        Limit::Late => "the generator was late",
    }
}
