//! Who wrote what, and which transactions committed.

use crate::hash::IntMap;
use crate::history::{History, Operation, Outcome, Version};

/// No transaction.
pub(crate) const NOBODY: u32 = u32::MAX;

/// A write of any transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    /// Index of its key.
    pub(crate) key: u32,
    pub(crate) transaction: u32,
    pub(crate) value: u64,
    /// Place among the versions of its key, from 1; 0: unknown.
    pub(crate) number: u64,
    /// The last write of its transaction to the key.
    pub(crate) is_last: bool,
    pub(crate) is_append: bool,
    pub(crate) is_counter: bool,
}

/// What follows from the operations alone.
pub(crate) struct Facts<'a> {
    pub(crate) history: &'a History,
    indices: IntMap<u32, u32>,
    /// By index.
    pub(crate) keys: Vec<u32>,
    /// Whether each transaction has certainly committed. An unknown one has if somebody saw its writes.
    pub(crate) is_committed: Vec<bool>,
    /// By key and value.
    pub(crate) writes: Vec<Write>,
    /// Where the writes of each key begin, and the number of all.
    starts: Vec<usize>,
    /// Keys to which a failed transaction wrote.
    has_failed: Vec<bool>,
    /// Writes to counters by transactions that are not known to have committed: key, number and transaction, in order.
    unsure: Vec<(u32, u64, u32)>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(history: &'a History) -> Facts<'a> {
        let mut facts = Facts {
            history,
            indices: IntMap::default(),
            keys: Vec::new(),
            is_committed: history.transactions().map(|one| one.outcome == Outcome::Ok).collect(),
            writes: Vec::new(),
            starts: Vec::new(),
            has_failed: Vec::new(),
            unsure: Vec::new(),
        };
        for (index, transaction) in history.transactions().enumerate() {
            let first = facts.writes.len();
            for operation in transaction.operations() {
                let (key, value, replaced, is_append) = match operation {
                    Operation::Append { key, value } => (key, value, None, true),
                    Operation::Write { key, value, replaced } => (key, value, replaced, false),
                    Operation::ReadList { key, .. } | Operation::Read { key, .. } => {
                        facts.intern(key);
                        continue;
                    }
                    Operation::Total { .. } => continue,
                };
                let key = facts.intern(key);
                facts.has_failed[key as usize] |= transaction.outcome == Outcome::Failed;
                let number = replaced.map_or(0, |version| version.number + 1);
                let (outcome, transaction) = (transaction.outcome, index as u32);
                let is_counter = replaced.is_some_and(Version::is_counted);
                facts.writes.push(Write { key, transaction, value, number, is_last: true, is_append, is_counter });
                if is_counter && outcome != Outcome::Ok {
                    facts.unsure.push((key, number, transaction));
                }
            }
            facts.mark_overwritten(first);
        }
        facts.writes.sort_unstable_by_key(|write| (write.key, write.value));
        facts.unsure.sort_unstable();
        let mut starts = vec![0; facts.keys.len() + 1];
        facts.writes.iter().for_each(|write| starts[write.key as usize + 1] += 1);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        facts.starts = starts;
        facts
    }

    fn intern(&mut self, key: u32) -> u32 {
        *self.indices.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.has_failed.push(false);
            self.keys.len() as u32 - 1
        })
    }

    /// Of the writes from `first` on, which are of one transaction, only the last to each key is its last one.
    fn mark_overwritten(&mut self, first: usize) {
        let own = &mut self.writes[first..];
        // Stable: writes to a key keep their order.
        own.sort_by_key(|write| write.key);
        for i in 1..own.len() {
            own[i - 1].is_last = own[i - 1].key != own[i].key;
        }
    }

    /// The index of a key that occurs in the history.
    pub(crate) fn index(&self, key: u32) -> usize {
        self.indices[&key] as usize
    }

    /// Place in `writes` of the write of a value to a key, given by its index.
    pub(crate) fn write_of(&self, key: usize, value: u64) -> Option<usize> {
        let start = self.starts[key];
        let writes = &self.writes[start..self.starts[key + 1]];
        writes.binary_search_by_key(&value, |write| write.value).ok().map(|at| start + at)
    }

    /// All writes to a key, by value.
    pub(crate) fn writes_to(&self, key: usize) -> &[Write] {
        &self.writes[self.starts[key]..self.starts[key + 1]]
    }

    /// Transactions that are not known to have committed, and would have given the counter this value.
    pub(crate) fn unsure_of(&self, key: usize, number: u64) -> impl Iterator<Item = u32> + '_ {
        let key = key as u32;
        let start = self.unsure.partition_point(|(known, value, _)| (*known, *value) < (key, number));
        let same = move |one: &&(u32, u64, u32)| (one.0, one.1) == (key, number);
        self.unsure[start..].iter().take_while(same).map(|(_, _, transaction)| *transaction)
    }

    /// Whether a failed transaction wrote the value.
    pub(crate) fn has_failed(&self, key: usize, value: u64) -> bool {
        self.has_failed[key]
            && self.write_of(key, value).is_some_and(|at| self.outcome(self.writes[at].transaction) == Outcome::Failed)
    }

    /// The part of a list before the first value of a failed transaction.
    pub(crate) fn without_failed<'b>(&self, key: usize, values: &'b [u64]) -> &'b [u64] {
        if !self.has_failed[key] {
            return values;
        }
        let length = values.iter().position(|value| self.has_failed(key, *value)).unwrap_or(values.len());
        &values[..length]
    }

    pub(crate) fn outcome(&self, transaction: u32) -> Outcome {
        self.history.transaction(transaction as usize).outcome
    }
}
