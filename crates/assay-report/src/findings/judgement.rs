//! The outcome of the conditions on a comparison.

use serde::Serialize;

/// What became of a condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConditionFindings {
    /// As the user wrote it.
    pub condition: String,
    /// One per stage of the comparison.
    pub stages: Vec<Judgement>,
}

/// What became of it in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Sessions of the stage.
    pub sessions: u32,
    /// What follows.
    pub outcome: Outcome,
    /// The change, a share; `None` when it is not known.
    pub change: Option<f64>,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The change is beyond the limit, and not by chance.
    Met,
    /// The estimate is beyond the limit, but there are too few trials for an interval.
    TooFewTrials,
    /// The estimate is beyond the limit, but the interval includes no change: more trials are needed.
    MayBeChance,
    /// The change is not beyond the limit.
    NotMet,
    /// One of the sides does not have the figure.
    Unknown,
}

impl ConditionFindings {
    /// Whether the condition is met in any stage.
    pub fn is_met(&self) -> bool {
        self.stages.iter().any(|stage| stage.outcome == Outcome::Met)
    }

    /// Whether it is not known to be met but may be, in any stage.
    pub fn is_unsure(&self) -> bool {
        let unsure = |outcome| matches!(outcome, Outcome::TooFewTrials | Outcome::MayBeChance | Outcome::Unknown);
        !self.is_met() && self.stages.iter().any(|stage| unsure(stage.outcome))
    }
}
