//! What committed transactions read and wrote: anomalies that need no cycle, and the edges of the graph.

use crate::facts::{Facts, NOBODY};
use crate::findings::Findings;
use crate::graph::{Builder, Kind};
use crate::history::{Operation, Outcome, Version};
use crate::phenomenon::Phenomenon;
use crate::timing::Access;
use crate::versions::Versions;

/// Walks through all committed transactions.
pub(crate) struct Local<'a, 'b> {
    pub(crate) facts: &'b Facts<'a>,
    pub(crate) versions: &'b Versions<'a>,
    pub(crate) findings: &'b mut Findings,
    pub(crate) graph: &'b mut Builder,
    /// For the checks of sessions and of real time.
    pub(crate) accesses: Vec<Access>,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Transactions that read all there is of a list, by key.
    readers_of_all: Vec<Vec<u32>>,
    /// A transaction that read all there is of a list and then appended to it, by key.
    first_after_all: Vec<u32>,
}

/// What a transaction has done to a key so far.
struct Touched {
    key: usize,
    /// Its last write.
    own: Option<u64>,
    /// Versions before what it read first, before any write of its own.
    read: Option<usize>,
}

/// Place of an unread append: after all that were read.
pub(crate) const AFTER_ALL: u64 = u64::MAX;

impl<'a, 'b> Local<'a, 'b> {
    pub(crate) fn new(
        facts: &'b Facts<'a>,
        versions: &'b Versions<'a>,
        findings: &'b mut Findings,
        graph: &'b mut Builder,
    ) -> Local<'a, 'b> {
        let readers_of_all = vec![Vec::new(); facts.keys.len()];
        let first_after_all = vec![NOBODY; facts.keys.len()];
        let accesses = Vec::new();
        Local { facts, versions, findings, graph, accesses, reads: 0, writes: 0, readers_of_all, first_after_all }
    }

    pub(crate) fn walk(&mut self) {
        let mut touched = Vec::new();
        for (index, transaction) in self.facts.history.transactions().enumerate() {
            if !self.facts.is_committed[index] {
                continue;
            }
            touched.clear();
            for operation in transaction.operations() {
                self.operation(index as u32, operation, &mut touched);
            }
            self.lost_updates(index as u32, &touched);
        }
        for key in 0..self.facts.keys.len() {
            self.write_order(key);
            self.after_the_last_read(key);
        }
    }

    fn operation(&mut self, index: u32, operation: Operation<'_>, touched: &mut Vec<Touched>) {
        match operation {
            Operation::Append { key, value } | Operation::Write { key, value, replaced: None } => {
                let key = self.facts.index(key);
                self.wrote(index, key, value, touched);
            }
            Operation::Write { key, value, replaced: Some(before) } => {
                let key = self.facts.index(key);
                self.replaced(index, key, before);
                self.wrote(index, key, value, touched);
            }
            Operation::ReadList { key, values } => {
                self.reads += 1;
                let key = self.facts.index(key);
                let own = touch(touched, key).own;
                if own.is_some_and(|own| !values.contains(&own)) {
                    self.findings.add(Phenomenon::Internal, &[index]);
                    return;
                }
                let longest = self.versions.longest[key];
                if longest.get(..values.len()) != Some(values) {
                    return self.contradiction(index, key, values);
                }
                // With a duplicate in the list, its places are no longer those of the versions.
                if self.versions.of(key).len() == longest.len() {
                    self.read(index, key, values.len(), touched);
                }
            }
            Operation::Read { key, version } => {
                self.reads += 1;
                let key = self.facts.index(key);
                if let Some(own) = touch(touched, key).own
                    && let Some(at) = self.facts.write_of(key, own)
                    && version.number < self.facts.writes[at].number
                {
                    self.findings.add(Phenomenon::Internal, &[index]);
                    return;
                }
                match self.versions.place(key, version) {
                    Some(place) => self.read(index, key, place, touched),
                    None if version.is_counted() => self.miscounted(index, key, version.number),
                    None => self.strange(index, key, version.value),
                }
            }
            Operation::Total { found, expected } => {
                self.reads += 1;
                if found != expected {
                    // Money that is gone stays gone: all later sums are as wrong.
                    self.findings.add_once(Phenomenon::WrongTotal, (expected as u64, found as u64), &[index]);
                }
            }
        }
    }

    fn wrote(&mut self, index: u32, key: usize, value: u64, touched: &mut Vec<Touched>) {
        self.writes += 1;
        touch(touched, key).own = Some(value);
        let Some(at) = self.facts.write_of(key, value) else { return };
        let write = self.facts.writes[at];
        let number = match write.number {
            0 if write.is_append => AFTER_ALL,
            0 => return,
            number => number,
        };
        self.accesses.push(Access { key: key as u32, transaction: index, number, is_write: true });
    }

    /// A write replaced a version: that of an aborted transaction, or one that is not in the order?
    fn replaced(&mut self, index: u32, key: usize, before: Version) {
        if before.number == 0 || self.versions.place(key, before).is_some() {
            return;
        }
        match before.is_counted() {
            true => self.miscounted(index, key, before.number),
            false => self.strange(index, key, before.value),
        }
    }

    /// A counter had a value that no committed transaction gave it.
    fn miscounted(&mut self, index: u32, key: usize, number: u64) {
        let failed = self.facts.unsure_of(key, number).find(|writer| self.facts.outcome(*writer) == Outcome::Failed);
        match failed {
            Some(writer) => self.findings.add_once(Phenomenon::AbortedRead, (key as u64, number), &[writer, index]),
            None if self.facts.history.is_partial() => {}
            None => self.findings.add_once(Phenomenon::GarbageRead, (key as u64, number), &[index]),
        }
    }

    /// A transaction read the version after which there are others from `place` on.
    fn read(&mut self, index: u32, key: usize, place: usize, touched: &mut Vec<Touched>) {
        let entries = self.versions.of(key);
        let mut others = place;
        while others > 0 && entries[others - 1].transaction == index {
            others -= 1;
        }
        // A register that has its own value shows nothing of the one before.
        let is_hidden = others < place && self.versions.longest[key].is_empty();
        if others > 0 && !is_hidden {
            let entry = entries[others - 1];
            if entry.transaction != NOBODY {
                self.graph.edge(entry.transaction, index, Kind::WriteRead, key as u32);
                if !entry.is_last {
                    self.findings.add(Phenomenon::IntermediateRead, &[entry.transaction, index]);
                }
            }
        }
        match entries[place..].iter().find(|entry| entry.transaction != NOBODY) {
            // What comes after its own write depends on that write.
            Some(next) if next.transaction == index => {}
            Some(next) => self.graph.edge(index, next.transaction, Kind::ReadWrite, key as u32),
            None => self.readers_of_all[key].push(index),
        }
        let state = touch(touched, key);
        if state.own.is_none() {
            state.read.get_or_insert(place);
            let number = place.checked_sub(1).map_or(0, |at| entries[at].number);
            self.accesses.push(Access { key: key as u32, transaction: index, number, is_write: false });
        }
    }

    /// A list that is not the beginning of the longest one.
    fn contradiction(&mut self, index: u32, key: usize, values: &[u64]) {
        let longest = self.versions.longest[key];
        let agreed = values.iter().zip(longest).take_while(|(a, b)| a == b).count();
        let strange = values[agreed..]
            .iter()
            .find(|value| self.facts.has_failed(key, **value) || self.facts.write_of(key, **value).is_none());
        match strange {
            Some(value) => self.strange(index, key, *value),
            None => {
                let writers = [values.get(agreed), longest.get(agreed)].map(|value| {
                    let at = value.and_then(|value| self.facts.write_of(key, *value));
                    at.map_or(index, |at| self.facts.writes[at].transaction)
                });
                let cause = (key as u64, values.get(agreed).copied().unwrap_or_default());
                self.findings.add_once(Phenomenon::IncompatibleOrder, cause, &[index, writers[0], writers[1]]);
            }
        }
    }

    /// A value was found that is not among the versions of its key.
    fn strange(&mut self, index: u32, key: usize, value: u64) {
        let cause = (key as u64, value);
        match self.facts.write_of(key, value) {
            None if self.facts.history.is_partial() => {}
            None => self.findings.add_once(Phenomenon::GarbageRead, cause, &[index]),
            Some(at) => {
                let writer = self.facts.writes[at].transaction;
                match self.facts.has_failed(key, value) {
                    true => self.findings.add_once(Phenomenon::AbortedRead, cause, &[writer, index]),
                    false => self.findings.add_once(Phenomenon::IncompatibleOrder, cause, &[index, writer]),
                }
            }
        }
    }

    /// Keys that the transaction read and then wrote, although another one had written in between.
    fn lost_updates(&mut self, index: u32, touched: &[Touched]) {
        for Touched { key, own, read } in touched {
            let (Some(own), Some(read)) = (own, read) else { continue };
            let is_unread = self.versions.unread[*key].binary_search(&index).is_ok();
            let is_in_order = self.facts.write_of(*key, *own).is_some_and(|at| self.facts.writes[at].number > 0);
            if !is_in_order && !is_unread {
                continue;
            }
            let other = match self.versions.of(*key).get(*read) {
                Some(next) if next.transaction == index || next.transaction == NOBODY => continue,
                Some(next) => next.transaction,
                // Of several that read all and then appended, at most one was the next.
                None if self.first_after_all[*key] == NOBODY => {
                    self.first_after_all[*key] = index;
                    continue;
                }
                None => self.first_after_all[*key],
            };
            self.findings.add_lost_update(*key as u32, index, other);
        }
    }

    fn write_order(&mut self, key: usize) {
        let mut before = NOBODY;
        for entry in self.versions.of(key) {
            if entry.transaction == NOBODY {
                continue;
            }
            if before != NOBODY && before != entry.transaction {
                self.graph.edge(before, entry.transaction, Kind::WriteWrite, key as u32);
            }
            before = entry.transaction;
        }
    }

    /// Appends that nobody read come after all reads, in an unknown order. Points that stand for the first and the last
    /// of them let each be before all others but itself.
    fn after_the_last_read(&mut self, key: usize) {
        let unread = &self.versions.unread[key];
        let last = self.versions.of(key).iter().rev().map(|entry| entry.transaction).find(|one| *one != NOBODY);
        let mut before: Vec<(u32, Kind)> = last.map(|last| (last, Kind::WriteWrite)).into_iter().collect();
        before.extend(self.readers_of_all[key].iter().map(|reader| (*reader, Kind::ReadWrite)));
        if unread.is_empty() || before.is_empty() {
            return;
        }
        let index = key as u32;
        if let [only] = unread[..] {
            for (from, kind) in before.into_iter().filter(|(from, _)| *from != only) {
                self.graph.edge(from, only, kind, index);
            }
            return;
        }
        let mut chain = |order: &mut dyn Iterator<Item = u32>| {
            let mut points: Vec<u32> = Vec::new();
            for transaction in order {
                let point = self.graph.point();
                self.graph.edge(point, transaction, Kind::Onward, index);
                if let Some(previous) = points.last() {
                    self.graph.edge(point, *previous, Kind::Onward, index);
                }
                points.push(point);
            }
            points
        };
        let first = chain(&mut unread.iter().copied());
        let last = chain(&mut unread.iter().rev().copied());
        for (from, kind) in before {
            match unread.binary_search(&from) {
                Err(_) => self.graph.edge(from, first[first.len() - 1], kind, index),
                Ok(at) => {
                    if at > 0 {
                        self.graph.edge(from, first[at - 1], kind, index);
                    }
                    if at + 1 < unread.len() {
                        self.graph.edge(from, last[unread.len() - at - 2], kind, index);
                    }
                }
            }
        }
    }
}

fn touch(touched: &mut Vec<Touched>, key: usize) -> &mut Touched {
    let at = touched.iter().position(|one| one.key == key).unwrap_or_else(|| {
        touched.push(Touched { key, own: None, read: None });
        touched.len() - 1
    });
    &mut touched[at]
}
