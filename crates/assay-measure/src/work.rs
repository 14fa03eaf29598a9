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
        // One process reads the tables for all; what sessions add up comes from each.
        for theirs in &other.totals {
            match self.totals.iter_mut().find(|one| one.name == theirs.name) {
                Some(own) => own.add(theirs),
                None => self.totals.push(theirs.clone()),
            }
        }
    }

    /// Adds to a total that sessions count from 0.
    pub fn add_total(&mut self, name: &str, value: f64) {
        let theirs = TableTotal { name: name.to_owned(), before: Some(0.0), after: Some(value) };
        match self.totals.iter_mut().find(|one| one.name == name) {
            Some(own) => own.add(&theirs),
            None => self.totals.push(theirs),
        }
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

impl TableTotal {
    fn add(&mut self, other: &TableTotal) {
        let sum = |own: Option<f64>, other: Option<f64>| match (own, other) {
            (Some(own), Some(other)) => Some(own + other),
            (own, other) => own.or(other),
        };
        self.before = sum(self.before, other.before);
        self.after = sum(self.after, other.after);
    }
}

impl WorkTally {
    fn add(&mut self, other: &WorkTally) {
        crate::add_to(&mut self.count, other.count);
        crate::add_to(&mut self.rolled_back, other.rolled_back);
        crate::add_to(&mut self.unknown, other.unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(work: &Work, name: &str) -> (Option<f64>, Option<f64>) {
        let one = work.totals.iter().find(|one| one.name == name).unwrap();
        (one.before, one.after)
    }

    #[test]
    fn what_sessions_of_several_processes_add_up_is_one_total() {
        let (mut one, mut other) = (Work::default(), Work::default());
        one.add_total("tests", 3.0);
        one.add_total("tests", 4.0);
        one.note_total("rows", 10.0, false);
        one.note_total("rows", 12.0, true);
        other.add_total("tests", 5.0);
        other.add_total("failed", 1.0);
        one.add_named(&other);
        assert_eq!(total(&one, "tests"), (Some(0.0), Some(12.0)));
        assert_eq!(total(&one, "failed"), (Some(0.0), Some(1.0)));
        assert_eq!(total(&one, "rows"), (Some(10.0), Some(12.0)));
    }
}
