//! The verdict on a difference.

use serde::Serialize;

/// The verdict on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ChangeVerdict {
    /// The candidate is better: faster.
    Better,
    /// The candidate is worse: slower.
    Worse,
    /// The candidate has more of something neutral.
    More,
    /// The candidate has less of something neutral.
    Less,
    /// Any difference is smaller than the margin.
    NoDifference,
    /// There may be a difference larger than the margin, in either direction.
    CannotTell {
        /// Trials per side that would detect a difference of the margin four times out of five.
        trials_needed: usize,
    },
}
