//! The outcome of the conditions on a comparison.

use serde::Serialize;

/// The outcome of a condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConditionFindings {
    /// As written by the user.
    pub condition: String,
    /// One per stage of the comparison.
    pub stages: Vec<Judgment>,
}

/// Outcome of a condition in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judgment {
    /// Sessions of the stage.
    pub sessions: u32,
    /// The outcome.
    pub outcome: Judged,
    /// The change, a share of the baseline; `None` if unknown, infinite (in JSON `null`) from a baseline of zero.
    pub change: Option<f64>,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judged {
    /// The change is beyond the limit, and not by chance.
    Met,
    /// The estimate is beyond the limit, but there are too few trials for an interval.
    TooFewTrials,
    /// The estimate is beyond the limit, but the interval includes no change: more trials are needed.
    MayBeChance,
    /// The change is not beyond the limit.
    NotMet,
    /// A side lacks the figure.
    Unknown,
}

impl ConditionFindings {
    /// Whether the condition holds in any stage.
    pub fn is_met(&self) -> bool {
        self.stages.iter().any(|stage| stage.outcome == Judged::Met)
    }

    /// Whether it may hold, in any stage, without being certain.
    pub fn is_unsure(&self) -> bool {
        let unsure = |outcome| matches!(outcome, Judged::TooFewTrials | Judged::MayBeChance | Judged::Unknown);
        !self.is_met() && self.stages.iter().any(|stage| unsure(stage.outcome))
    }
}
