//! What was found so far: how often, and the shortest example.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::Kind;
use crate::history::{History, Operation, Outcome};
use crate::phenomenon::{Form, Phenomenon};
use crate::verdict::{Anomaly, Example, ExampleLink, ExampleStep, Relation};

/// A reason why a transaction is before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) kind: Kind,
    /// Index of a key.
    pub(crate) key: u32,
}

struct Found {
    count: u64,
    transactions: Vec<u32>,
    reasons: Vec<Reason>,
}

/// By phenomenon and form.
#[derive(Default)]
pub(crate) struct Findings {
    found: BTreeMap<(Phenomenon, Form), Found>,
    /// What was counted by its cause: a key and a value.
    causes: BTreeSet<(Phenomenon, u64, u64)>,
}

/// Longest part of a list that an example shows.
const SHOWN_MAX: usize = 8;
/// Maximum of operations of a transaction that an example shows.
const OPERATIONS_MAX: usize = 40;

impl Findings {
    /// Something that these transactions alone show.
    pub(crate) fn add(&mut self, phenomenon: Phenomenon, transactions: &[u32]) {
        self.add_with(phenomenon, Form::Plain, transactions, &[]);
    }

    /// The same, unless this cause was counted before: a value that is wrong once is read by everybody who comes later.
    pub(crate) fn add_once(&mut self, phenomenon: Phenomenon, cause: (u64, u64), transactions: &[u32]) {
        if self.causes.insert((phenomenon, cause.0, cause.1)) {
            self.add(phenomenon, transactions);
        }
    }

    /// Something that the relations of these transactions show.
    pub(crate) fn add_with(&mut self, phenomenon: Phenomenon, form: Form, transactions: &[u32], reasons: &[Reason]) {
        let found = self.found.entry((phenomenon, form)).or_insert_with(|| Found {
            count: 0,
            transactions: transactions.to_vec(),
            reasons: reasons.to_vec(),
        });
        found.count += 1;
        // Of two examples, one with reasons explains more.
        let rank = |transactions: usize, reasons: usize| (reasons == 0, transactions);
        if rank(transactions.len(), reasons.len()) < rank(found.transactions.len(), found.reasons.len()) {
            (found.transactions, found.reasons) = (transactions.to_vec(), reasons.to_vec());
        }
    }

    /// `one` read `key` before `other` wrote it, and wrote it itself afterwards.
    pub(crate) fn add_lost_update(&mut self, key: u32, one: u32, other: u32) {
        let reasons = [
            Reason { from: one, to: other, kind: Kind::ReadWrite, key },
            Reason { from: other, to: one, kind: Kind::WriteWrite, key },
        ];
        self.add_with(Phenomenon::LostUpdate, Form::Plain, &[one, other], &reasons);
    }

    /// Whether the phenomenon was found in this form.
    pub(crate) fn has(&self, phenomenon: Phenomenon, form: Form) -> bool {
        self.found.contains_key(&(phenomenon, form))
    }

    /// With their examples. `keys`: names of keys by index.
    pub(crate) fn into_anomalies(self, history: &History, keys: &[u32]) -> Vec<Anomaly> {
        let anomaly = |((phenomenon, form), found): ((Phenomenon, Form), Found)| {
            let mut transactions = Vec::new();
            for transaction in &found.transactions {
                if !transactions.contains(transaction) && (*transaction as usize) < history.len() {
                    transactions.push(*transaction);
                }
            }
            let place = |transaction| transactions.iter().position(|one| *one == transaction).unwrap_or(0);
            let link = |reason: &Reason| ExampleLink {
                from: place(reason.from),
                to: place(reason.to),
                relation: match reason.kind {
                    Kind::WriteWrite => Relation::WriteWrite,
                    Kind::WriteRead => Relation::WriteRead,
                    Kind::ReadWrite => Relation::ReadWrite,
                    Kind::Session => Relation::Session,
                    Kind::RealTime | Kind::Onward => Relation::RealTime,
                },
                key: (!matches!(reason.kind, Kind::Session | Kind::RealTime | Kind::Onward))
                    .then(|| keys[reason.key as usize]),
            };
            let links: Vec<ExampleLink> = found.reasons.iter().map(link).collect();
            let mut concerned: Vec<u32> = links.iter().filter_map(|link| link.key).collect();
            concerned.sort_unstable();
            let steps = transactions.iter().map(|one| step(history, *one, &concerned)).collect();
            Anomaly { phenomenon, form, count: found.count, example: Example { steps, links } }
        };
        self.found.into_iter().map(anomaly).collect()
    }
}

/// `concerned`: keys of the example; empty: unknown. Other operations of a long transaction are left out.
fn step(history: &History, index: u32, concerned: &[u32]) -> ExampleStep {
    let transaction = history.transaction(index as usize);
    let is_long = transaction.operations().count() > OPERATIONS_MAX;
    let is_shown = |operation: &Operation<'_>| match operation {
        _ if !is_long || concerned.is_empty() => true,
        Operation::Append { key, .. }
        | Operation::ReadList { key, .. }
        | Operation::Write { key, .. }
        | Operation::Read { key, .. } => concerned.contains(key),
        Operation::Total { .. } => false,
    };
    let outcome = match transaction.outcome {
        Outcome::Ok => "ok",
        Outcome::Failed => "failed",
        Outcome::Unknown => "unknown",
    };
    ExampleStep {
        transaction: u64::from(index),
        session: transaction.session,
        begin: transaction.begin,
        end: (transaction.end != u64::MAX).then_some(transaction.end),
        outcome: outcome.to_owned(),
        operations: transaction.operations().filter(is_shown).take(OPERATIONS_MAX).map(shown).collect(),
    }
}

fn shown(operation: Operation<'_>) -> String {
    match operation {
        Operation::Append { key, value } => format!("append({key}, {value})"),
        Operation::ReadList { key, values } => {
            let from = values.len().saturating_sub(SHOWN_MAX);
            let mut text = format!("read({key}):");
            if values.is_empty() {
                text.push_str(" empty");
            }
            if from > 0 {
                text.push_str(&format!(" ({from} more)"));
            }
            values[from..].iter().for_each(|value| text.push_str(&format!(" {value}")));
            text
        }
        Operation::Write { key, value, replaced: None } => format!("write({key}, {value})"),
        Operation::Write { key, replaced: Some(before), .. } if before.is_counted() => {
            format!("count({key}): from {} to {}", before.number, before.number + 1)
        }
        Operation::Read { key, version } if version.is_counted() => format!("read({key}): {}", version.number),
        Operation::Write { key, value, replaced: Some(before) } => {
            format!("write({key}, {value}) as version {}, after {}", before.number + 1, before.value)
        }
        Operation::Read { key, version } => {
            format!("read({key}): {} of version {}", version.value, version.number)
        }
        Operation::Total { found, expected } => format!("total: {found} instead of {expected}"),
    }
}
