//! What finished in an interval of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::add_to;
use crate::latencies::Latencies;
use crate::tally::ByClass;

/// One interval: everything that finished in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Since the start of the measured part.
    pub start_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// Successful transactions, by type, in the order of the run's types.
    pub transactions: Vec<u64>,
    /// Successful statements.
    pub statements: ByClass<u64>,
    /// Errors.
    pub errors: u64,
    /// Retries of transactions.
    pub retries: u64,
    /// Failed transactions.
    pub failed: u64,
    /// Reconnects.
    pub reconnects: u64,
    /// Transactions that became due; in a closed loop, those started. `None`: not known.
    #[serde(default)]
    pub due: Option<u64>,
    /// Open loop and terminals: due and waiting for a session at its end.
    pub backlog: u64,
    /// The maximum at any instant in it; `None`: not known.
    #[serde(default)]
    pub backlog_max: Option<u64>,
    /// When its first successful transaction ended, since the start of the measured part; `None`: there was none, or
    /// not known. A transaction that is counted in it and ended after it does not matter here.
    #[serde(default)]
    pub first_done_ns: Option<u64>,
    /// End of its last successful transaction, on the same scale.
    #[serde(default)]
    pub last_done_ns: Option<u64>,
    /// Errors, including those outside transactions, by the name of their class; empty in records of 0.1.0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_by_class: BTreeMap<String, u64>,
    /// Each server, in the order of the run's; empty if there is only one, and in records of 0.1.0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetInterval>,
    /// Sessions connected and taking transactions at its end.
    pub sessions: u32,
    /// CPU time of this process in the interval.
    pub cpu_ns: u64,
    /// How long its workers were ready to run but waited for a CPU, in total; `None`: not known.
    #[serde(default)]
    pub cpu_wait_ns: Option<u64>,
    /// Response times of all types together.
    pub response: Latencies,
}

/// One of several servers in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInterval {
    /// Successful transactions.
    pub transactions: u64,
    /// When the first of them ended, since the start of the measured part; `None`: there was none.
    pub first_done_ns: Option<u64>,
    /// End of the last successful transaction.
    pub last_done_ns: Option<u64>,
    /// Errors, by the name of their class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_by_class: BTreeMap<String, u64>,
}

impl Interval {
    /// The same interval of processes that share a run, each with the names of its transaction types; `types`: those of
    /// all, in the order of the sum.
    pub fn sum(parts: &[(&[String], &Interval)], types: &[String]) -> Interval {
        let [(_, first), ..] = parts else { return Interval::default() };
        let mut sum = Interval {
            start_ns: first.start_ns,
            transactions: vec![0; types.len()],
            due: Some(0),
            backlog_max: Some(0),
            cpu_wait_ns: Some(0),
            ..Interval::default()
        };
        for (names, part) in parts {
            for (name, count) in names.iter().zip(&part.transactions) {
                if let Some(number) = types.iter().position(|known| known == name) {
                    add_to(&mut sum.transactions[number], *count);
                }
            }
            sum.add(part);
        }
        sum.response.rest();
        sum
    }

    /// Everything but transactions, which need the names of their types.
    fn add(&mut self, part: &Interval) {
        let both = |ours: Option<u64>, theirs: Option<u64>| Some(ours?.saturating_add(theirs?));
        self.start_ns = self.start_ns.min(part.start_ns);
        self.length_ns = self.length_ns.max(part.length_ns);
        self.statements.add(&part.statements);
        add_to(&mut self.errors, part.errors);
        add_to(&mut self.retries, part.retries);
        add_to(&mut self.failed, part.failed);
        add_to(&mut self.reconnects, part.reconnects);
        self.due = both(self.due, part.due);
        add_to(&mut self.backlog, part.backlog);
        self.backlog_max = both(self.backlog_max, part.backlog_max);
        self.first_done_ns = earliest(self.first_done_ns, part.first_done_ns);
        self.last_done_ns = self.last_done_ns.max(part.last_done_ns);
        add_classes(&mut self.errors_by_class, &part.errors_by_class);
        if self.targets.len() < part.targets.len() {
            self.targets.resize_with(part.targets.len(), TargetInterval::default);
        }
        for (ours, theirs) in self.targets.iter_mut().zip(&part.targets) {
            add_to(&mut ours.transactions, theirs.transactions);
            ours.first_done_ns = earliest(ours.first_done_ns, theirs.first_done_ns);
            ours.last_done_ns = ours.last_done_ns.max(theirs.last_done_ns);
            add_classes(&mut ours.errors_by_class, &theirs.errors_by_class);
        }
        self.sessions = self.sessions.saturating_add(part.sessions);
        add_to(&mut self.cpu_ns, part.cpu_ns);
        self.cpu_wait_ns = both(self.cpu_wait_ns, part.cpu_wait_ns);
        self.response.add(&part.response);
    }
}

fn earliest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

fn add_classes(sums: &mut BTreeMap<String, u64>, classes: &BTreeMap<String, u64>) {
    for (class, count) in classes {
        add_to(sums.entry(class.clone()).or_default(), *count);
    }
}
