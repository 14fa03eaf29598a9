//! What follows from a difference.

use serde::Serialize;

/// What follows from a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Verdict {
    /// The candidate is better: faster.
    Better,
    /// The candidate is worse: slower.
    Worse,
    /// The candidate has more of what is neither good nor bad.
    More,
    /// The candidate has less of it.
    Less,
    /// If there is a difference it is smaller than the margin.
    NoDifference,
    /// There may be a difference larger than the margin, in either direction.
    CannotTell {
        /// Trials per side that would find one of the margin four times of five.
        trials_needed: usize,
    },
}
