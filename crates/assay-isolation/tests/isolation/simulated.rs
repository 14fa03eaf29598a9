//! Simulated databases: no level is denied that they have, and for small histories, serializability is exactly what
//! trying all orders says.

use std::collections::BTreeMap;

use assay_isolation::{History, IsolationLevel, Operation, Outcome, check};

use crate::simulator::{Mode, simulate};
use crate::written::summary;

#[test]
fn no_level_is_denied_to_a_database_that_has_it_in_10_000_histories() {
    let modes = [
        (Mode::Serial, IsolationLevel::StrictSerializable),
        (Mode::Snapshot, IsolationLevel::SnapshotIsolation),
        (Mode::StaleWrites, IsolationLevel::ReadCommitted),
        (Mode::ReadCommitted, IsolationLevel::ReadCommitted),
    ];
    for seed in 0..10_000 {
        let (mode, level) = modes[seed as usize / 2 % 4];
        let verdict = check(&simulate(seed, mode, 60).0, 0);
        assert!(verdict.holds(level), "seed {seed}, {mode:?}: {}", summary(&verdict));
    }
}

#[test]
fn weak_levels_show_what_they_permit() {
    let count = |mode, level: IsolationLevel| {
        (0..200).filter(|seed| !check(&simulate(*seed, mode, 60).0, 0).holds(level)).count()
    };
    assert!(count(Mode::Snapshot, IsolationLevel::Serializable) > 100);
    assert!(count(Mode::StaleWrites, IsolationLevel::SnapshotIsolation) > 100);
    assert!(count(Mode::ReadCommitted, IsolationLevel::SnapshotIsolation) > 100);
}

#[test]
fn trying_all_orders_of_small_histories_agrees_with_the_graph() {
    let (mut serializable, mut strict) = (0, 0);
    for seed in 0..10_000 {
        let mode = [Mode::Snapshot, Mode::StaleWrites, Mode::ReadCommitted][seed as usize / 2 % 3];
        let history = simulate(seed, mode, 6).0;
        let verdict = check(&history, 0);
        // Transactions with unknown outcome would have to be tried both ways.
        if history.transactions().any(|one| one.outcome == Outcome::Unknown) {
            continue;
        }
        let (any, real_time) = (has_order(&history, false), has_order(&history, true));
        assert_eq!(verdict.holds(IsolationLevel::Serializable), any, "seed {seed}: {}", summary(&verdict));
        assert_eq!(verdict.holds(IsolationLevel::StrictSerializable), real_time, "seed {seed}: {}", summary(&verdict));
        serializable += u32::from(any);
        strict += u32::from(real_time);
    }
    assert!((1000..9000).contains(&serializable), "both answers occur: {serializable}, {strict}");
}

/// Whether the committed transactions, one after the other in some order, read what they read.
fn has_order(history: &History, in_real_time: bool) -> bool {
    let committed: Vec<usize> =
        (0..history.len()).filter(|at| history.transaction(*at).outcome == Outcome::Ok).collect();
    let mut order = Vec::new();
    search(history, &committed, in_real_time, &mut order, &BTreeMap::new())
}

fn search(
    history: &History,
    committed: &[usize],
    in_real_time: bool,
    order: &mut Vec<usize>,
    state: &BTreeMap<u32, Vec<u64>>,
) -> bool {
    if order.len() == committed.len() {
        return true;
    }
    let left: Vec<usize> = committed.iter().copied().filter(|one| !order.contains(one)).collect();
    for one in &left {
        let begin = history.transaction(*one).begin;
        if in_real_time && left.iter().any(|other| history.transaction(*other).end < begin) {
            continue;
        }
        let mut after = state.clone();
        if apply(history, *one, &mut after) {
            order.push(*one);
            if search(history, committed, in_real_time, order, &after) {
                return true;
            }
            order.pop();
        }
    }
    false
}

/// Does the transaction; false if it would read or replace something else.
fn apply(history: &History, transaction: usize, state: &mut BTreeMap<u32, Vec<u64>>) -> bool {
    history.transaction(transaction).operations().all(|operation| match operation {
        Operation::Append { key, value } => {
            state.entry(key).or_default().push(value);
            true
        }
        Operation::ReadList { key, values } => state.entry(key).or_default() == values,
        Operation::Write { key, value, replaced } => {
            let values = state.entry(key).or_default();
            let is_next = replaced.is_some_and(|before| {
                (before.number, before.value) == (values.len() as u64, values.last().copied().unwrap_or(0))
            });
            values.push(value);
            is_next
        }
        Operation::Read { key, version } => {
            let values = state.entry(key).or_default();
            (version.number, version.value) == (values.len() as u64, values.last().copied().unwrap_or(0))
        }
        Operation::Total { .. } => true,
    })
}
