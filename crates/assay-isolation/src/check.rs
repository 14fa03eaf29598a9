//! The check of a history, from the operations to the verdict.

use std::collections::BTreeSet;

use crate::cycles::{Search, find};
use crate::facts::Facts;
use crate::findings::{Findings, Reason};
use crate::graph::{Builder, Graph, Kind};
use crate::history::{History, Operation, Outcome, stamp_of};
use crate::local::Local;
use crate::phenomenon::{Form, Phenomenon};
use crate::timing;
use crate::verdict::IsolationVerdict;
use crate::versions::Versions;

const WW: u8 = Kind::WriteWrite.mask();
const WR: u8 = Kind::WriteRead.mask();
const RW: u8 = Kind::ReadWrite.mask();
const SESSION: u8 = Kind::Session.mask();
const REAL_TIME: u8 = Kind::RealTime.mask();

/// Looks for everything that any isolation level forbids. `clock_error`: how far the clocks of two sessions may be
/// apart, in nanoseconds; 0 if there is one clock.
pub fn check(history: &History, clock_error: u64) -> IsolationVerdict {
    let mut findings = Findings::default();
    let mut facts = Facts::new(history);
    let versions = Versions::new(&mut facts, &mut findings);
    let mut graph = Builder::new(history.len());
    let mut local = Local::new(&facts, &versions, &mut findings, &mut graph);
    local.walk();
    let (reads, writes) = (local.reads, local.writes);
    let mut accesses = local.accesses;
    timing::sessions(&facts, &accesses, &mut findings);
    timing::stale_reads(&facts, &mut accesses, clock_error, &mut findings);
    drop(accesses);
    timing::session_edges(&facts, &mut graph);
    timing::real_time_edges(&facts, clock_error, &mut graph);
    let graph = graph.finish();
    pairs(&graph, &mut findings);
    cycles(&graph, &mut findings);

    let mut verdict = IsolationVerdict {
        reads,
        writes,
        keys: facts.keys.len() as u64,
        partial: history.is_partial(),
        concurrent: Some(concurrent(history, &facts.is_committed)),
        foreign: foreign(&facts),
        ..IsolationVerdict::default()
    };
    let mut sessions = BTreeSet::new();
    for (transaction, is_committed) in history.transactions().zip(&facts.is_committed) {
        sessions.insert(transaction.session);
        match transaction.outcome {
            _ if *is_committed => verdict.committed += 1,
            Outcome::Failed => verdict.failed += 1,
            _ => verdict.unknown += 1,
        }
    }
    verdict.sessions = sessions.len() as u64;
    verdict.anomalies = findings.into_anomalies(history, &facts.keys);
    verdict
}

/// Committed transactions during which one of another session was running.
fn concurrent(history: &History, is_committed: &[bool]) -> u64 {
    let mut order: Vec<u32> = (0..history.len() as u32).collect();
    let of = |index: u32| history.transaction(index as usize);
    order.sort_unstable_by_key(|index| of(*index).begin);
    let mut met = vec![false; history.len()];
    // The latest end so far, and the latest of any other session.
    let (mut latest, mut other) = ((u32::MAX, 0), (u32::MAX, 0));
    for index in &order {
        let now = of(*index);
        let before = if latest.0 == now.session { other } else { latest };
        met[*index as usize] = before.0 != u32::MAX && before.1 > now.begin;
        if latest.0 == now.session {
            latest.1 = latest.1.max(now.end);
        } else if now.end >= latest.1 {
            (other, latest) = (latest, (now.session, now.end));
        } else if now.end >= other.1 {
            other = (now.session, now.end);
        }
    }
    // When the next transaction begins, and when the next one of another session than that does.
    let (mut next, mut after) = ((u32::MAX, u64::MAX), (u32::MAX, u64::MAX));
    for index in order.iter().rev() {
        let now = of(*index);
        let following = if next.0 == now.session { after } else { next };
        met[*index as usize] |= following.1 < now.end;
        if next.0 != now.session {
            after = next;
        }
        next = (now.session, now.begin);
    }
    met.iter().zip(is_committed).filter(|(met, is_committed)| **met && **is_committed).count() as u64
}

/// Reads that found a value with the stamp of another run.
fn foreign(facts: &Facts<'_>) -> u64 {
    // What is missing may be what this run wrote itself.
    if facts.history.is_partial() {
        return 0;
    }
    let own: BTreeSet<u64> = facts.writes.iter().filter_map(|write| stamp_of(write.value)).collect();
    let is_foreign = |value: &u64| stamp_of(*value).is_some_and(|stamp| !own.contains(&stamp));
    let found = |operation: &Operation<'_>| match operation {
        Operation::ReadList { values, .. } => values.iter().any(is_foreign),
        Operation::Read { version, .. } | Operation::Write { replaced: Some(version), .. } => {
            is_foreign(&version.value)
        }
        _ => false,
    };
    let operations = facts.history.transactions().flat_map(|transaction| transaction.operations());
    operations.filter(found).count() as u64
}

/// Finds cycles of two transactions, and counts them all.
fn pairs(graph: &Graph, findings: &mut Findings) {
    for one in 0..graph.transactions {
        let edges = graph.from(one);
        for to_other in edges.chunk_by(|a, b| a.to == b.to) {
            let other = to_other[0].to;
            if other <= one || other >= graph.transactions {
                continue;
            }
            let kinds = (graph.kinds(one, other), graph.kinds(other, one));
            if kinds.1 & (WW | WR | RW) == 0 {
                continue;
            }
            let mut add = |phenomenon, there: Kind, back: Kind| {
                let reason = |from, to, kind: Kind| {
                    let edge = graph.between(from, to).iter().find(|edge| edge.kind == kind);
                    Reason { from, to, kind, key: edge.map_or(0, |edge| edge.key) }
                };
                let reasons = [reason(one, other, there), reason(other, one, back)];
                // Counted where the versions of the key are compared.
                if phenomenon != Phenomenon::ReadSkew || !is_lost_update(&reasons) {
                    findings.add_with(phenomenon, Form::Plain, &[one, other], &reasons);
                }
            };
            use Kind::{ReadWrite, WriteRead, WriteWrite};
            let both = |a: u8, b: u8| kinds.0 & a != 0 && kinds.1 & b != 0;
            if both(WW, WW) {
                add(Phenomenon::DirtyWrite, WriteWrite, WriteWrite);
            }
            if both(WR, WR) {
                add(Phenomenon::CircularInformation, WriteRead, WriteRead);
            } else if both(WR, WW) {
                add(Phenomenon::CircularInformation, WriteRead, WriteWrite);
            } else if both(WW, WR) {
                add(Phenomenon::CircularInformation, WriteWrite, WriteRead);
            }
            if both(RW, WR) {
                add(Phenomenon::ReadSkew, ReadWrite, WriteRead);
            } else if both(WR, RW) {
                add(Phenomenon::ReadSkew, WriteRead, ReadWrite);
            } else if both(RW, WW) {
                add(Phenomenon::ReadSkew, ReadWrite, WriteWrite);
            } else if both(WW, RW) {
                add(Phenomenon::ReadSkew, WriteWrite, ReadWrite);
            }
            if both(RW, RW) {
                add(Phenomenon::WriteSkew, ReadWrite, ReadWrite);
            }
        }
    }
}

/// Finds longer cycles, and those that need the order of sessions or of real time.
fn cycles(graph: &Graph, findings: &mut Findings) {
    let passes = [(WW, WW, false), (WW | WR, WR, false), (WW | WR | RW, RW, true), (WW | WR | RW, RW, false)];
    // The weakest pass, in any earlier form, that found a cycle: later passes would find it again.
    let mut known = passes.len();
    for (form, extra) in [(Form::Plain, 0), (Form::Session, SESSION), (Form::RealTime, SESSION | REAL_TIME)] {
        let mut first = known;
        for (at, (mask, must, is_spaced)) in passes.into_iter().enumerate().take(known) {
            find(graph, Search { mask: mask | extra, must, is_spaced }, |cycle| {
                first = first.min(at);
                let phenomenon = phenomenon_of(cycle);
                let is_counted = match form {
                    Form::Plain => cycle.len() == 2 && findings.has(phenomenon, form),
                    _ => false,
                };
                // A pass also finds the cycles of earlier ones.
                let is_known = at > class(phenomenon) && findings.has(phenomenon, form);
                let is_counted = is_counted || is_lost_update(cycle) && findings.has(Phenomenon::LostUpdate, form);
                if !(is_counted || is_known) {
                    let transactions: Vec<u32> = cycle.iter().map(|reason| reason.from).collect();
                    findings.add_with(phenomenon, form, &transactions, cycle);
                }
            });
        }
        known = first;
    }
}

/// The first pass that finds cycles of this phenomenon.
fn class(phenomenon: Phenomenon) -> usize {
    match phenomenon {
        Phenomenon::DirtyWrite => 0,
        Phenomenon::CircularInformation => 1,
        Phenomenon::LostUpdate | Phenomenon::ReadSkew | Phenomenon::LongFork => 2,
        _ => 3,
    }
}

/// The name of a cycle.
fn phenomenon_of(cycle: &[Reason]) -> Phenomenon {
    let is_anti = |reason: &Reason| reason.kind == Kind::ReadWrite;
    let is_adjacent = cycle.iter().zip(cycle.iter().cycle().skip(1)).any(|(a, b)| is_anti(a) && is_anti(b));
    match cycle.iter().filter(|reason| is_anti(reason)).count() {
        0 if cycle.iter().any(|reason| reason.kind == Kind::WriteRead) => Phenomenon::CircularInformation,
        0 => Phenomenon::DirtyWrite,
        1 if is_lost_update(cycle) => Phenomenon::LostUpdate,
        1 => Phenomenon::ReadSkew,
        _ if is_adjacent => Phenomenon::WriteSkew,
        _ => Phenomenon::LongFork,
    }
}

/// One transaction read a key that others then wrote before it wrote the key, too.
fn is_lost_update(cycle: &[Reason]) -> bool {
    let is_of = |kind, reason: &Reason| reason.kind == kind && reason.key == cycle[0].key;
    cycle.iter().filter(|reason| is_of(Kind::ReadWrite, reason)).count() == 1
        && cycle.iter().filter(|reason| is_of(Kind::WriteWrite, reason)).count() == cycle.len() - 1
}
