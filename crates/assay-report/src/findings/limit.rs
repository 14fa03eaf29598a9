//! How the load generator may have affected the measurement.

use serde::Serialize;

use crate::findings::run::Findings;
use crate::findings::warning::Warning;

/// Why the generator itself may have been the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GeneratorLimit {
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

impl GeneratorLimit {
    pub(crate) const ALL: [GeneratorLimit; 3] =
        [GeneratorLimit::Bottleneck, GeneratorLimit::Starved, GeneratorLimit::Late];

    fn of(warning: &Warning) -> Option<GeneratorLimit> {
        match warning {
            Warning::GeneratorBusy { .. } => Some(GeneratorLimit::Bottleneck),
            Warning::GeneratorStarved { .. } => Some(GeneratorLimit::Starved),
            Warning::GeneratorLate { .. } => Some(GeneratorLimit::Late),
            _ => None,
        }
    }
}

/// Each one about which a run has a warning.
pub(crate) fn limits(run: &Findings) -> Vec<GeneratorLimit> {
    let has = |limit: &GeneratorLimit| run.warnings.iter().any(|warning| GeneratorLimit::of(warning) == Some(*limit));
    GeneratorLimit::ALL.into_iter().filter(has).collect()
}

impl LimitedTrials {
    pub(crate) fn of(trials: &[Findings]) -> LimitedTrials {
        let number = |limit| trials.iter().filter(|trial| limits(trial).contains(&limit)).count();
        let [bottleneck, starved, late] = GeneratorLimit::ALL.map(number);
        LimitedTrials { bottleneck, starved, late }
    }

    /// Number of trials to which that applies.
    pub(crate) fn by(&self, limit: GeneratorLimit) -> usize {
        match limit {
            GeneratorLimit::Bottleneck => self.bottleneck,
            GeneratorLimit::Starved => self.starved,
            GeneratorLimit::Late => self.late,
        }
    }
}
