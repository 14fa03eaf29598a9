//! The order of the versions of each key.
//!
//! The longest read of a list has the order of its appends; a write of a register says which version it replaced. A
//! transaction with unknown outcome has committed if a committed one saw any of its writes; then its own reads count,
//! too, so the search is repeated until it finds no more.

use crate::facts::{Facts, NOBODY};
use crate::findings::Findings;
use crate::history::{Operation, Outcome, Version};
use crate::phenomenon::Phenomenon;

/// A version of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) value: u64,
    /// `NOBODY` if its writer is not in the history.
    pub(crate) transaction: u32,
    /// The last write of its transaction to the key.
    pub(crate) is_last: bool,
}

/// The versions of all keys.
pub(crate) struct Versions<'a> {
    /// By key, ascending.
    entries: Vec<Vec<Entry>>,
    /// Longest list read of each key.
    pub(crate) longest: Vec<&'a [u64]>,
    /// Committed transactions whose appends nobody read, and which come after all that were read, by key.
    pub(crate) unread: Vec<Vec<u32>>,
}

impl<'a> Versions<'a> {
    pub(crate) fn new(facts: &mut Facts<'a>, findings: &mut Findings) -> Versions<'a> {
        let (longest, readers) = settle(facts);
        let mut versions =
            Versions { entries: vec![Vec::new(); longest.len()], unread: vec![Vec::new(); longest.len()], longest };
        for (key, reader) in readers.into_iter().enumerate() {
            versions.order_list(facts, key, reader, findings);
            versions.order_register(facts, key, findings);
        }
        versions
    }

    /// The versions of a key in their order.
    pub(crate) fn of(&self, key: usize) -> &[Entry] {
        &self.entries[key]
    }

    fn order_list(&mut self, facts: &mut Facts<'a>, key: usize, reader: u32, findings: &mut Findings) {
        let values = self.longest[key];
        for (i, value) in values.iter().enumerate() {
            let number = i as u64 + 1;
            let mut entry = Entry { number, value: *value, transaction: NOBODY, is_last: true };
            if let Some(at) = facts.write_of(key, *value) {
                let write = &mut facts.writes[at];
                if write.number != 0 {
                    let cause = (key as u64, *value);
                    findings.add_once(Phenomenon::DuplicateElement, cause, &[write.transaction, reader]);
                    continue;
                }
                write.number = number;
                (entry.transaction, entry.is_last) = (write.transaction, write.is_last);
            } else if !facts.history.is_partial() {
                findings.add_once(Phenomenon::GarbageRead, (key as u64, *value), &[reader]);
            }
            self.entries[key].push(entry);
        }
        let last_begin = self.entries[key]
            .iter()
            .filter(|entry| entry.transaction != NOBODY)
            .map(|entry| (facts.history.transaction(entry.transaction as usize).begin, entry.transaction))
            .max();
        let mut unread = Vec::new();
        for write in facts.writes_to(key).iter().filter(|write| write.is_append && write.number == 0) {
            if !facts.is_committed[write.transaction as usize] {
                continue;
            }
            let transaction = facts.history.transaction(write.transaction as usize);
            match last_begin {
                Some((begin, later)) if transaction.outcome == Outcome::Ok && transaction.end < begin => {
                    findings.add(Phenomenon::LostWrite, &[write.transaction, later, reader]);
                }
                _ => unread.push(write.transaction),
            }
        }
        unread.sort_unstable();
        unread.dedup();
        self.unread[key] = unread;
    }

    fn order_register(&mut self, facts: &Facts<'a>, key: usize, findings: &mut Findings) {
        let is_in_order = |write: &&crate::facts::Write| {
            !write.is_append && write.number > 0 && facts.is_committed[write.transaction as usize]
        };
        let mut entries: Vec<Entry> = facts
            .writes_to(key)
            .iter()
            .filter(is_in_order)
            .map(|write| Entry {
                number: write.number,
                value: write.value,
                transaction: write.transaction,
                is_last: write.is_last,
            })
            .collect();
        if entries.is_empty() {
            return;
        }
        let is_counter = facts.writes_to(key)[0].is_counter;
        // Of two writes with a number, the later one is kept: the earlier one was lost.
        let begin = |entry: &Entry| facts.history.transaction(entry.transaction as usize).begin;
        entries.sort_by_key(|entry| (entry.number, std::cmp::Reverse(begin(entry))));
        entries.dedup_by(|again, kept| {
            let is_lost = again.number == kept.number;
            let overlap = facts.history.transaction(again.transaction as usize).end >= begin(kept);
            if is_lost && is_counter && overlap {
                findings.add_lost_update(key as u32, again.transaction, kept.transaction);
            } else if is_lost {
                findings.add(Phenomenon::LostWrite, &[again.transaction, kept.transaction]);
            }
            is_lost
        });
        self.entries[key] = entries;
    }

    /// How many versions of the key there are up to what a register's read found. `None` if it is not among them.
    pub(crate) fn place(&self, key: usize, version: Version) -> Option<usize> {
        if version.is_counted() {
            let entries = &self.entries[key];
            let place = entries.partition_point(|entry| entry.number <= version.number);
            // A counter has a value before the first write that is known.
            return (place == 0 || entries[place - 1].number == version.number).then_some(place);
        }
        if version.number == 0 {
            return (version.value == 0).then_some(0);
        }
        let entries = &self.entries[key];
        let at = entries.binary_search_by_key(&version.number, |entry| entry.number).ok()?;
        (entries[at].value == version.value).then_some(at + 1)
    }
}

/// Finds the longest read of each list and its reader, and the unknown transactions that have committed.
fn settle<'a>(facts: &mut Facts<'a>) -> (Vec<&'a [u64]>, Vec<u32>) {
    let history = facts.history;
    let mut longest: Vec<&'a [u64]> = vec![&[]; facts.keys.len()];
    let mut readers = vec![NOBODY; facts.keys.len()];
    loop {
        let mut seen = Vec::new();
        for (index, transaction) in history.transactions().enumerate() {
            if !facts.is_committed[index] {
                continue;
            }
            for operation in transaction.operations() {
                match operation {
                    Operation::ReadList { key, values } => {
                        let key = facts.index(key);
                        if values.len() > longest[key].len() {
                            let values = facts.without_failed(key, values);
                            if values.len() > longest[key].len() {
                                (longest[key], readers[key]) = (values, index as u32);
                            }
                        }
                    }
                    Operation::Read { key, version } => note_seen(facts, key, version, &mut seen),
                    Operation::Write { key, replaced: Some(version), .. } => note_seen(facts, key, version, &mut seen),
                    _ => {}
                }
            }
        }
        for (key, values) in longest.iter().enumerate() {
            for value in *values {
                if let Some(at) = facts.write_of(key, *value)
                    && !facts.is_committed[facts.writes[at].transaction as usize]
                {
                    seen.push(facts.writes[at].transaction);
                }
            }
        }
        if seen.is_empty() {
            return (longest, readers);
        }
        seen.iter().for_each(|transaction| facts.is_committed[*transaction as usize] = true);
    }
}

/// A register's version was seen by a committed transaction.
fn note_seen(facts: &mut Facts<'_>, key: u32, version: Version, seen: &mut Vec<u32>) {
    if version.is_counted() {
        let key = facts.index(key);
        let is_new = |writer: &u32| facts.outcome(*writer) == Outcome::Unknown && !facts.is_committed[*writer as usize];
        return seen.extend(facts.unsure_of(key, version.number).find(is_new));
    }
    let Some(at) = facts.write_of(facts.index(key), version.value) else { return };
    if facts.writes[at].number == 0 {
        facts.writes[at].number = version.number;
    }
    let writer = facts.writes[at].transaction;
    if !facts.is_committed[writer as usize] && facts.outcome(writer) == Outcome::Unknown {
        seen.push(writer);
    }
}
