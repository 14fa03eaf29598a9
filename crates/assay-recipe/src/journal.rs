//! The progress of an experiment: one line of JSON per event, append-only.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

/// A trial: one cell in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrialKey {
    /// Counts from 1.
    pub round: u32,
    /// Counts from 0.
    pub cell: usize,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum JournalEvent {
    /// The experiment started or resumed.
    Opened {
        /// Hash of the recipe.
        hash: String,
        /// Wall-clock time, RFC 3339.
        at: String,
        /// The version of assay.
        tool: String,
    },
    /// A trial started.
    Begun {
        /// From 1.
        round: u32,
        /// From 0.
        cell: usize,
        /// The cell's.
        name: String,
        /// From 1.
        attempt: u32,
        /// Wall-clock time, RFC 3339.
        at: String,
    },
    /// A trial was measured.
    Done {
        /// From 1.
        round: u32,
        /// From 0.
        cell: usize,
        /// The cell's.
        name: String,
        /// From 1.
        attempt: u32,
        /// Its record, relative to the experiment's folder.
        record: String,
        /// Wall-clock time, RFC 3339.
        at: String,
        /// Total, from restoring the data to stopping the server.
        seconds: f64,
        /// Its parts in order, in seconds.
        parts: Vec<(String, f64)>,
        /// Values that its steps returned, in order.
        #[serde(default)]
        values: Vec<(String, f64)>,
        /// What was measured one after the other, in order; empty: one load, in `record`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        phases: Vec<PhaseResult>,
        /// Disturbances that spoiled it, in words; empty: none.
        spoiled: Vec<String>,
        /// Whether its result counts; `false`: it is repeated.
        kept: bool,
    },
    /// A trial failed, which is its result.
    Failed {
        /// From 1.
        round: u32,
        /// From 0.
        cell: usize,
        /// The cell's.
        name: String,
        /// From 1.
        attempt: u32,
        /// Wall-clock time, RFC 3339.
        at: String,
        /// One line.
        cause: String,
        /// Further lines: the end of the server's log.
        details: Vec<String>,
    },
    /// Failed trials will be tried again.
    Forgiven,
}

/// A run of a phase, or an action between the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// The name of its step.
    pub name: String,
    /// Its record, relative to the experiment's folder; `None`: it was no load.
    pub record: Option<String>,
    /// The record of the load in its background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// How long it took.
    pub seconds: f64,
    /// The number that it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

/// The event as a line of the journal.
pub fn line(event: &JournalEvent) -> String {
    serde_json::to_string(event).expect("it is plain data") + "\n"
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq)]
pub enum TrialResult {
    /// It was measured.
    Done {
        /// Its record, relative to the experiment's folder.
        record: String,
        /// Its parts in order, in seconds.
        parts: Vec<(String, f64)>,
        /// Values that its steps returned, in order.
        values: Vec<(String, f64)>,
        /// What was measured one after the other, in order; empty: one load, in `record`.
        phases: Vec<PhaseResult>,
        /// Disturbances that spoiled it, in words; empty: none.
        spoiled: Vec<String>,
    },
    /// It failed.
    Failed {
        /// One line.
        cause: String,
        /// Further lines.
        details: Vec<String>,
    },
}

/// A journal that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialProgress {
    /// The results of finished trials.
    pub outcomes: BTreeMap<TrialKey, TrialResult>,
    /// The recipe's hash, as last opened.
    pub hash: Option<String>,
    /// Trials that were measured and repeated, and what spoiled them.
    pub repeated: Vec<(TrialKey, Vec<String>)>,
    /// Trials that were started again, because assay was killed.
    pub interrupted: u32,
    /// Seconds of all measured trials, and of those of each cell.
    took: Took,
    took_by_cell: HashMap<usize, Took>,
    /// How often trials of each cell were repeated.
    repeats: HashMap<usize, u32>,
    /// A trial that started and has not ended.
    under_way: Option<(TrialKey, u32)>,
}

/// Trials, and their seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Took {
    trials: u32,
    seconds: f64,
}

impl Took {
    fn add(&mut self, seconds: f64) {
        self.trials += 1;
        self.seconds += seconds;
    }

    fn mean(&self) -> Option<f64> {
        (self.trials > 0).then(|| self.seconds / f64::from(self.trials))
    }
}

impl TrialProgress {
    /// Parses a journal's text. An incomplete last line is ignored: assay was killed while writing it.
    pub fn of_text(text: &str) -> TrialProgress {
        let mut progress = TrialProgress::default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).for_each(|event| progress.add(event));
        progress
    }

    /// After one more event.
    pub fn add(&mut self, event: JournalEvent) {
        match event {
            JournalEvent::Opened { hash, .. } => self.hash = Some(hash),
            JournalEvent::Begun { round, cell, attempt, .. } => {
                self.interrupted += u32::from(self.under_way.is_some());
                self.under_way = Some((TrialKey { round, cell }, attempt));
            }
            JournalEvent::Done { round, cell, record, seconds, parts, values, phases, spoiled, kept, .. } => {
                self.under_way = None;
                self.took.add(seconds);
                self.took_by_cell.entry(cell).or_default().add(seconds);
                let key = TrialKey { round, cell };
                if kept {
                    self.outcomes.insert(key, TrialResult::Done { record, parts, values, phases, spoiled });
                } else {
                    self.repeated.push((key, spoiled));
                    *self.repeats.entry(cell).or_default() += 1;
                }
            }
            JournalEvent::Failed { round, cell, cause, details, .. } => {
                self.under_way = None;
                self.outcomes.insert(TrialKey { round, cell }, TrialResult::Failed { cause, details });
            }
            JournalEvent::Forgiven => self.outcomes.retain(|_, outcome| matches!(outcome, TrialResult::Done { .. })),
        }
    }

    /// Rounds that are `planned`, or begun: the plan may have had more.
    pub fn rounds(&self, planned: u32) -> u32 {
        // Keys are sorted by their rounds.
        self.outcomes.last_key_value().map_or(0, |(key, _)| key.round).max(planned)
    }

    /// The number of trials that were measured.
    pub fn measured(&self) -> usize {
        self.outcomes.values().filter(|outcome| matches!(outcome, TrialResult::Done { .. })).count()
    }

    /// Whether a trial has its result.
    pub fn is_over(&self, key: TrialKey) -> bool {
        self.outcomes.contains_key(&key)
    }

    /// For each of `cells`, whether it is not tried any more: its last two trials failed. One may have failed by
    /// chance, or because somebody killed the server.
    pub fn given_up(&self, cells: usize) -> Vec<bool> {
        let mut failed_in_a_row = vec![0; cells];
        // Sorted by round.
        for (key, outcome) in &self.outcomes {
            if let Some(failed) = failed_in_a_row.get_mut(key.cell) {
                *failed = if matches!(outcome, TrialResult::Failed { .. }) { *failed + 1 } else { 0 };
            }
        }
        failed_in_a_row.into_iter().map(|failed| failed >= 2).collect()
    }

    /// The trials that failed, with cause and details.
    pub fn failures(&self) -> impl Iterator<Item = (TrialKey, &str, &[String])> {
        self.outcomes.iter().filter_map(|(key, outcome)| match outcome {
            TrialResult::Failed { cause, details } => Some((*key, cause.as_str(), details.as_slice())),
            TrialResult::Done { .. } => None,
        })
    }

    /// The trials whose results count although something spoiled them, and what did.
    pub fn spoiled(&self) -> impl Iterator<Item = (TrialKey, &[String])> {
        self.outcomes.iter().filter_map(|(key, outcome)| match outcome {
            TrialResult::Done { spoiled, .. } if !spoiled.is_empty() => Some((*key, spoiled.as_slice())),
            _ => None,
        })
    }

    /// How often trials of a cell were repeated.
    pub fn repeats_of(&self, cell: usize) -> u32 {
        self.repeats.get(&cell).copied().unwrap_or(0)
    }

    /// The trial that was in progress when the journal ends.
    pub fn under_way(&self) -> Option<TrialKey> {
        self.under_way.map(|(key, _)| key)
    }

    /// Mean seconds of the trials measured so far: of a cell, or of all.
    pub fn seconds_of(&self, cell: Option<usize>) -> Option<f64> {
        match cell {
            Some(cell) => self.took_by_cell.get(&cell)?.mean(),
            None => self.took.mean(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_was_cut_off_loses_the_trial_under_way_only() {
        let begun = |round, cell| {
            line(&JournalEvent::Begun {
                round,
                cell,
                name: "a=1".into(),
                attempt: 1,
                at: "2026-01-01T00:00:00Z".into(),
            })
        };
        let done = |round, cell, kept| {
            line(&JournalEvent::Done {
                round,
                cell,
                name: "a=1".into(),
                attempt: 1,
                record: format!("records/{round}-{cell}.json.zst"),
                at: String::new(),
                seconds: 2.0,
                parts: vec![("run".into(), 1.0)],
                values: vec![("size".into(), 2.0)],
                phases: Vec::new(),
                spoiled: Vec::new(),
                kept,
            })
        };
        let opened = line(&JournalEvent::Opened { hash: "abc".into(), at: String::new(), tool: "0.1.0".into() });
        let whole =
            [opened.clone(), begun(1, 0), done(1, 0, false), begun(1, 0), done(1, 0, true), begun(1, 1)].concat();
        let cut = [&whole[..], &done(1, 1, true)[..30]].concat();
        for text in [&whole, &cut] {
            let progress = TrialProgress::of_text(text);
            assert_eq!(progress.hash.as_deref(), Some("abc"));
            assert!(progress.is_over(TrialKey { round: 1, cell: 0 }) && progress.outcomes.len() == 1);
            assert_eq!((progress.repeats_of(0), progress.repeats_of(1)), (1, 0));
            assert_eq!(progress.under_way(), Some(TrialKey { round: 1, cell: 1 }));
        }
        // Continuing after the incomplete line, which then gets its own line end.
        let gone_on = [&cut, "\n", &opened, &begun(1, 1), &done(1, 1, true)].concat();
        let progress = TrialProgress::of_text(&gone_on);
        assert_eq!((progress.outcomes.len(), progress.interrupted, progress.under_way()), (2, 1, None));
    }
}
