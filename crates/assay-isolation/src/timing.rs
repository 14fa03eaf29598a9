//! The order of a session's transactions and of real time: guarantees of sessions, stale reads, and edges.

use crate::facts::Facts;
use crate::findings::{Findings, Reason};
use crate::graph::{Builder, Kind};
use crate::hash::IntMap;
use crate::history::Outcome;
use crate::phenomenon::{Form, Phenomenon};

/// A committed transaction read or wrote a version of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) key: u32,
    pub(crate) transaction: u32,
    /// Place of the version; 0: before the first.
    pub(crate) number: u64,
    pub(crate) is_write: bool,
}

/// The latest version that a session has read and written.
#[derive(Clone, Copy, Default)]
struct Latest {
    read: (u64, u32),
    written: (u64, u32),
}

/// What a session must see of its own work. `accesses` are by transaction. A transaction with unknown outcome may
/// have ended later than the session went on.
pub(crate) fn sessions(facts: &Facts<'_>, accesses: &[Access], findings: &mut Findings) {
    let mut latest: IntMap<u64, Latest> = IntMap::default();
    for of_one in accesses.chunk_by(|a, b| a.transaction == b.transaction) {
        let now = of_one[0].transaction;
        let transaction = facts.history.transaction(now as usize);
        if transaction.outcome != Outcome::Ok {
            continue;
        }
        let place = |access: &Access| u64::from(transaction.session) << 32 | u64::from(access.key);
        for access in of_one {
            let Some(before) = latest.get(&place(access)) else { continue };
            let rules = match access.is_write {
                false => [(before.read, Phenomenon::NonMonotonicRead), (before.written, Phenomenon::UnreadOwnWrite)],
                true => [(before.read, Phenomenon::WriteBeforeRead), (before.written, Phenomenon::NonMonotonicWrite)],
            };
            for ((number, earlier), phenomenon) in rules {
                if access.number < number {
                    let key = access.key;
                    let reason = Reason { from: earlier, to: now, kind: Kind::Session, key };
                    findings.add_with(phenomenon, Form::Plain, &[earlier, now], &[reason]);
                }
            }
        }
        for access in of_one {
            let entry = latest.entry(place(access)).or_default();
            let known = if access.is_write { &mut entry.written } else { &mut entry.read };
            *known = (*known).max((access.number, now));
        }
    }
}

/// Reads that began after the end of a transaction whose write they do not see. Changes the order of `accesses`.
pub(crate) fn stale_reads(facts: &Facts<'_>, accesses: &mut [Access], error: u64, findings: &mut Findings) {
    let instant = |access: &Access| {
        let transaction = facts.history.transaction(access.transaction as usize);
        match (access.is_write, transaction.outcome) {
            (false, _) => transaction.begin,
            // One instant later: a read must begin after it.
            (true, Outcome::Ok) => transaction.end.saturating_add(error).saturating_add(1),
            (true, _) => u64::MAX,
        }
    };
    accesses.sort_by_cached_key(|access| (access.key, instant(access), !access.is_write));
    for of_key in accesses.chunk_by(|a, b| a.key == b.key) {
        let mut latest = (0, 0);
        for access in of_key {
            if access.is_write && facts.outcome(access.transaction) == Outcome::Ok {
                latest = latest.max((access.number, access.transaction));
            } else if !access.is_write && access.number < latest.0 {
                let (reader, writer, key) = (access.transaction, latest.1, access.key);
                let reasons = [
                    Reason { from: reader, to: writer, kind: Kind::ReadWrite, key },
                    Reason { from: writer, to: reader, kind: Kind::RealTime, key },
                ];
                findings.add_with(Phenomenon::StaleRead, Form::Plain, &[reader, writer], &reasons);
            }
        }
    }
}

/// The order of each session.
pub(crate) fn session_edges(facts: &Facts<'_>, graph: &mut Builder) {
    let mut latest: IntMap<u32, u32> = IntMap::default();
    for (index, transaction) in facts.history.transactions().enumerate() {
        if !facts.is_committed[index] {
            continue;
        }
        if let Some(before) = latest.get(&transaction.session) {
            graph.edge(*before, index as u32, Kind::Session, 0);
        }
        // One whose end is unknown may have committed after its session went on.
        if transaction.outcome == Outcome::Ok {
            latest.insert(transaction.session, index as u32);
        }
    }
}

/// The order of real time: each transaction is before the point of its end, and that before those that begin later.
/// `error`: how far the clocks of two sessions may be apart.
pub(crate) fn real_time_edges(facts: &Facts<'_>, error: u64, graph: &mut Builder) {
    let mut ends = Vec::new();
    let mut begins = Vec::new();
    for (index, transaction) in facts.history.transactions().enumerate() {
        if !facts.is_committed[index] {
            continue;
        }
        begins.push((transaction.begin, index as u32));
        if transaction.outcome == Outcome::Ok && transaction.end != u64::MAX {
            ends.push((transaction.end.saturating_add(error), index as u32));
        }
    }
    ends.sort_unstable();
    begins.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut point = None;
    for (begin, later) in begins {
        let mut is_fresh = false;
        while let Some((_, earlier)) = ends.next_if(|(end, _)| *end < begin) {
            if !is_fresh {
                let next = graph.point();
                if let Some(before) = point.replace(next) {
                    graph.edge(before, next, Kind::Onward, 0);
                }
                is_fresh = true;
            }
            graph.edge(earlier, point.expect("just made"), Kind::RealTime, 0);
        }
        if let Some(point) = point {
            graph.edge(point, later, Kind::Onward, 0);
        }
    }
}
