//! Summary of several trials of one setting.

use serde::Serialize;

use crate::findings::comparison::{Side, SideFindings, side_findings};
use crate::findings::metric::{Metric, TrialsFindings, over_trials, stage_sessions};

/// Several trials of one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Which ones, and whether they belong together.
    pub side: SideFindings,
    /// One per number of sessions.
    pub stages: Vec<SessionsSummary>,
}

/// One number of sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionsSummary {
    /// Active sessions.
    pub sessions: u32,
    /// Transactions given up, by trial.
    pub failed: Vec<u64>,
    /// Every metric that a trial has.
    pub metrics: Vec<MetricSummary>,
}

/// One metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricSummary {
    /// Which.
    #[serde(flatten)]
    pub metric: Metric,
    /// Over the trials; `None` if none has it.
    pub trials: Option<TrialsFindings>,
}

/// The summary of one setting's trials.
pub fn summarize(side: Side<'_>) -> Summary {
    let stage = |sessions: u32| {
        let of = side.trials.iter().filter_map(|one| one.stages.iter().find(|stage| stage.sessions == sessions));
        SessionsSummary {
            sessions,
            failed: of.map(|stage| stage.total.failed).collect(),
            metrics: over_trials(side.trials, sessions)
                .into_iter()
                .map(|(metric, trials)| MetricSummary { metric, trials })
                .collect(),
        }
    };
    Summary { side: side_findings(side), stages: stage_sessions(side.trials).into_iter().map(stage).collect() }
}

impl SessionsSummary {
    /// Over the trials, the metric of this name.
    pub fn metric(&self, name: &str) -> Option<&TrialsFindings> {
        self.metrics.iter().find(|one| one.metric.name == name)?.trials.as_ref()
    }
}
