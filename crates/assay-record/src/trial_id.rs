//! Which records are copies of one trial.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::iter;

use assay_measure::Tally;

use crate::event::{StageStarted, Totals, head_of};
use crate::time::Time;
use crate::trial::Record;

/// A trial: records with the same one are copies of each other, whatever their files are called and however they are
/// compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrialId {
    started: Time,
    seed: u64,
    content: u64,
}

impl Record {
    /// Identifies the trial by what the record says about the run as a whole, except its tags, which may be added to
    /// one of several copies, and its identity, which follows from the rest. Intervals and telemetry are most of a
    /// record, and trials that differ in them differ in their totals. Histograms are left out: compressing them takes
    /// most of the time, and trials that differ in one differ in its sum, which is exact to the nanosecond.
    pub fn trial(&self) -> TrialId {
        let head = Record { tags: BTreeMap::new(), identity: Vec::new(), ..head_of(self) };
        let of_stage = |number| (StageStarted::of(self, number), Totals::of(self, number).map(without_histograms));
        let stages: Vec<_> = (0..self.stages.len()).map(of_stage).collect();
        let mut content = DefaultHasher::new();
        content.write(&serde_json::to_vec(&(head, stages)).expect("records become JSON"));
        TrialId { started: self.started, seed: self.manifest.seed, content: content.finish() }
    }
}

fn without_histograms(mut totals: Totals) -> Totals {
    for latencies in iter::once(&mut totals.total).chain(&mut totals.targets).flat_map(Tally::latencies_mut) {
        *latencies = latencies.with_histogram(None);
    }
    totals
}
