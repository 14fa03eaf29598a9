//! Conditions on a comparison, for CI: `tps < -3%`, `new_order.p99 > +10%`.
//!
//! A condition holds if the estimated change is beyond its limit and the interval of the change excludes "no change".
//! Without such an interval the change may be chance, and the condition is undecided.

use crate::findings::comparison::{Comparison, MetricComparison, StageComparison};
use crate::findings::judgment::{ConditionFindings, Judged, Judgment};

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// As written by the user.
    pub text: String,
    /// Name of the metric.
    pub metric: String,
    /// Whether changes below or above the limit meet it.
    pub side: Beyond,
    /// The limit, a share: −0.03.
    pub limit: f64,
}

/// On which side of its limit a condition is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// `<`
    Below,
    /// `>`
    Above,
}

/// An invalid condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a metric, < or >, and a change in percent, such as 'tps < -3%' or 'p99 > +10%'")]
pub struct BadCondition;

impl std::str::FromStr for Condition {
    type Err = BadCondition;

    fn from_str(text: &str) -> Result<Condition, BadCondition> {
        let at = text.find(['<', '>']).ok_or(BadCondition)?;
        let (metric, rest) = (text[..at].trim(), text[at + 1..].trim());
        let side = if text.as_bytes()[at] == b'<' { Beyond::Below } else { Beyond::Above };
        let percent = rest.strip_suffix('%').ok_or(BadCondition)?.trim().replace('−', "-");
        let limit: f64 = percent.parse().map_err(|_| BadCondition)?;
        if metric.is_empty() || !limit.is_finite() {
            return Err(BadCondition);
        }
        Ok(Condition { text: text.to_owned(), metric: metric.to_owned(), side, limit: limit / 100.0 })
    }
}

impl Condition {
    /// Evaluates it. The metric must be part of the comparison.
    pub fn judge(&self, comparison: &Comparison) -> ConditionFindings {
        let stages = comparison.stages.iter().map(|stage| self.judge_stage(stage)).collect();
        ConditionFindings { condition: self.text.clone(), stages }
    }

    fn judge_stage(&self, stage: &StageComparison) -> Judgment {
        let metric = stage.metric(&self.metric);
        let share = metric.and_then(MetricComparison::share);
        let outcome = match metric.and_then(|metric| metric.change).zip(share) {
            None => Judged::Unknown,
            Some((_, share)) if !self.is_beyond(share) => Judged::NotMet,
            Some((change, _)) => match change.includes_none() {
                Some(true) => Judged::MayBeChance,
                Some(false) => Judged::Met,
                None => Judged::TooFewTrials,
            },
        };
        Judgment { sessions: stage.sessions, outcome, change: share }
    }

    fn is_beyond(&self, share: f64) -> bool {
        match self.side {
            Beyond::Below => share < self.limit,
            Beyond::Above => share > self.limit,
        }
    }
}

/// Names of all metrics that `comparison` has, each once.
pub fn metric_names(comparison: &Comparison) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for metric in comparison.stages.iter().flat_map(|stage| &stage.metrics) {
        if !names.contains(&metric.metric.name.as_str()) {
            names.push(&metric.metric.name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Condition>().map(|found| (found.metric, found.side, found.limit));
        assert_eq!(read("tps < -3%"), Ok(("tps".into(), Beyond::Below, -0.03)));
        assert_eq!(read("new_order.p99>+10%"), Ok(("new_order.p99".into(), Beyond::Above, 0.10)));
        assert_eq!(read(" p95 > 7.5 % "), Ok(("p95".into(), Beyond::Above, 0.075)));
        for text in ["", "tps", "tps < 3", "< 3%", "tps = 3%", "tps < x%", "tps < NaN%", "tps <> 3%"] {
            assert_eq!(read(text), Err(BadCondition), "{text}");
        }
    }
}
