//! Whether the database kept the isolation that it promised.

use assay_isolation::{IsolationLevel, IsolationVerdict};
use assay_record::Record;
use serde::Serialize;

/// The check of a run's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IsolationFindings {
    /// The level that was promised.
    pub level: IsolationLevel,
    /// Nothing was found that this level forbids.
    pub kept: bool,
    /// All levels of which that can be said: none if no two transactions met, or only sums were read.
    pub not_violated: Vec<IsolationLevel>,
    /// Whether at least one transaction committed, and no values of another run were in the way: otherwise nothing was
    /// checked.
    pub checked: bool,
    /// Numbers and anomalies. Those that the level permits are included.
    #[serde(flatten)]
    pub verdict: IsolationVerdict,
}

/// `None` if the workload has no history.
pub(crate) fn isolation_findings(record: &Record) -> Option<IsolationFindings> {
    let found = record.isolation.as_ref()?;
    let verdict = found.verdict.clone();
    let checked = verdict.committed > 0 && verdict.foreign == 0;
    let is_known = |level: &IsolationLevel| checked && verdict.is_telling() && verdict.holds(*level);
    Some(IsolationFindings {
        level: found.level,
        kept: verdict.holds(found.level),
        not_violated: IsolationLevel::ALL.into_iter().filter(is_known).collect(),
        checked,
        verdict,
    })
}
