//! How the load generator affected its own measurement, with the same three names everywhere.

use crate::findings::limit::GeneratorLimit;

/// The beginning of a sentence.
pub(crate) fn limited(limit: GeneratorLimit) -> &'static str {
    match limit {
        GeneratorLimit::Bottleneck => "the generator was the bottleneck",
        GeneratorLimit::Starved => "the generator was starved of CPU time",
        GeneratorLimit::Late => "the generator was late",
    }
}
