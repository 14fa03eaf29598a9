//! How the load generator may have affected the measurement.

use serde::Serialize;

use crate::findings::run::Findings;
use crate::findings::warning::Warning;

/// Why the generator itself may have been the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A worker was almost always busy.
    Bottleneck,
    /// A worker waited for a CPU.
    Starved,
    /// Transactions were started late, for neither reason.
    Late,
}

/// Number of trials by how the generator affected them; a trial with several stages may count several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LimitedTrials {
    /// A worker was almost always busy.
    pub bottleneck: usize,
    /// A worker waited for a CPU.
    pub starved: usize,
    /// Transactions were started late, for neither reason.
    pub late: usize,
}

impl Limit {
    pub(crate) const ALL: [Limit; 3] = [Limit::Bottleneck, Limit::Starved, Limit::Late];

    fn of(warning: &Warning) -> Option<Limit> {
        match warning {
            Warning::GeneratorBusy { .. } => Some(Limit::Bottleneck),
            Warning::GeneratorStarved { .. } => Some(Limit::Starved),
            Warning::GeneratorLate { .. } => Some(Limit::Late),
            _ => None,
        }
    }
}

/// Each one about which a run has a warning.
pub(crate) fn limits(run: &Findings) -> Vec<Limit> {
    let has = |limit: &Limit| run.warnings.iter().any(|warning| Limit::of(warning) == Some(*limit));
    Limit::ALL.into_iter().filter(has).collect()
}

impl LimitedTrials {
    pub(crate) fn of(trials: &[Findings]) -> LimitedTrials {
        let number = |limit| trials.iter().filter(|trial| limits(trial).contains(&limit)).count();
        let [bottleneck, starved, late] = Limit::ALL.map(number);
        LimitedTrials { bottleneck, starved, late }
    }

    /// Number of trials to which that applies.
    pub(crate) fn by(&self, limit: Limit) -> usize {
        match limit {
            Limit::Bottleneck => self.bottleneck,
            Limit::Starved => self.starved,
            Limit::Late => self.late,
        }
    }
}
