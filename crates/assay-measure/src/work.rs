//! Everything that the transactions of a run did, to be compared with the tables.

use serde::{Deserialize, Serialize};

/// All transactions of a run, including warm-up and every stage, and what the workload read from its tables before and
/// after them (`assay.total`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// By type.
    pub transactions: Vec<WorkTally>,
    /// By counter, only from transactions that succeeded.
    pub counters: Vec<CounterSum>,
    /// In the order in which they were read.
    #[serde(default)]
    pub totals: Vec<TableTotal>,
}

/// All transactions of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkTally {
    /// Its name.
    pub name: String,
    /// Those that succeeded.
    pub count: u64,
    /// Those that were rolled back on purpose.
    pub rolled_back: u64,
    /// Attempts that the server may or may not have committed: the answer to a commit was lost, or the run did not wait
    /// for their end.
    pub unknown: u64,
}

/// The sum of a counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterSum {
    /// Its name.
    pub name: String,
    /// The sum.
    pub sum: u64,
}

/// A total of the tables, such as a sum or a number of rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableTotal {
    /// Its name.
    pub name: String,
    /// Before the first transaction; `None` if it was not read.
    #[serde(default)]
    pub before: Option<f64>,
    /// After the last transaction; `None` if it was not read.
    #[serde(default)]
    pub after: Option<f64>,
}

impl Work {
    /// The type with this index. Types have names only at rest.
    pub fn transaction(&mut self, index: usize) -> &mut WorkTally {
        if self.transactions.len() <= index {
            self.transactions.resize(index + 1, WorkTally::default());
        }
        &mut self.transactions[index]
    }

    /// Adds to the counter with this index. Counters have names only at rest.
    pub fn count(&mut self, index: usize, amount: u64) {
        if self.counters.len() <= index {
            self.counters.resize(index + 1, CounterSum::default());
        }
        crate::add_to(&mut self.counters[index].sum, amount);
    }

    /// Adds work whose types and counters have the same indices.
    pub fn add(&mut self, other: &Work) {
        for (index, theirs) in other.transactions.iter().enumerate() {
            self.transaction(index).add(theirs);
        }
        for (index, theirs) in other.counters.iter().enumerate() {
            self.count(index, theirs.sum);
        }
    }

    /// Names types and counters.
    pub fn name(&mut self, types: &[String], counters: &[String]) {
        for (index, name) in types.iter().enumerate() {
            self.transaction(index).name.clone_from(name);
        }
        for (index, name) in counters.iter().enumerate() {
            self.count(index, 0);
            self.counters[index].name.clone_from(name);
        }
    }

    /// Adds named work of another process of the run.
    pub fn add_named(&mut self, other: &Work) {
        for theirs in &other.transactions {
            match self.transactions.iter_mut().find(|one| one.name == theirs.name) {
                Some(own) => own.add(theirs),
                None => self.transactions.push(theirs.clone()),
            }
        }
        for theirs in &other.counters {
            match self.counters.iter_mut().find(|one| one.name == theirs.name) {
                Some(own) => crate::add_to(&mut own.sum, theirs.sum),
                None => self.counters.push(theirs.clone()),
            }
        }
        // One process reads them for all.
        self.totals.extend(other.totals.iter().cloned());
    }

    /// Stores a total, read before or after the transactions.
    pub fn note_total(&mut self, name: &str, value: f64, is_after: bool) {
        let at = self.totals.iter().position(|one| one.name == name).unwrap_or_else(|| {
            self.totals.push(TableTotal { name: name.to_owned(), ..TableTotal::default() });
            self.totals.len() - 1
        });
        let total = &mut self.totals[at];
        *(if is_after { &mut total.after } else { &mut total.before }) = Some(value);
    }
}

impl WorkTally {
    fn add(&mut self, other: &WorkTally) {
        crate::add_to(&mut self.count, other.count);
        crate::add_to(&mut self.rolled_back, other.rolled_back);
        crate::add_to(&mut self.unknown, other.unknown);
    }
}
