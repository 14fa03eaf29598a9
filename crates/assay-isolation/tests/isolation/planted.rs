//! Each phenomenon planted in correct histories.

use crate::simulator::Dice;
use assay_isolation::{Form, History, Outcome, Phenomenon, check};

use crate::simulator::{Mode, simulate};
use crate::written::{Append, List, Op, Read, Write, Written, phenomena};

/// Transactions that show a phenomenon, each with session, outcome, instants and operations, on keys from 1000 on.
type Plant = Vec<(u32, Outcome, (u64, u64), Vec<Op>)>;

const OK: Outcome = Outcome::Ok;
const X: u32 = 1000;
const Y: u32 = 1001;
/// Sessions of the planted transactions.
const A: u32 = 100;
const B: u32 = 101;
const C: u32 = 102;
const D: u32 = 103;

#[rustfmt::skip]
fn plants() -> Vec<(Phenomenon, Form, Plant)> {
    use Form::{Plain, RealTime, Session};
    let plants = vec![
        (Phenomenon::GarbageRead, Plain, vec![(A, OK, (1, 2), vec![List(X, vec![5])])]),
        (Phenomenon::GarbageRead, Plain, vec![(A, OK, (1, 2), vec![Read(X, 1, 5)])]),
        (Phenomenon::DuplicateElement, Plain, vec![(A, OK, (1, 2), vec![Append(X, 1)]), (B, OK, (3, 4), vec![List(X, vec![1, 1])])]),
        (Phenomenon::Internal, Plain, vec![(A, OK, (1, 2), vec![Append(X, 1), List(X, vec![])])]),
        (Phenomenon::Internal, Plain, vec![(A, OK, (1, 2), vec![Write(X, 1, 0, 0), Read(X, 0, 0)])]),
        (Phenomenon::LostWrite, Plain, vec![(A, OK, (1, 2), vec![Append(X, 1)]), (B, OK, (3, 4), vec![Append(X, 2)]), (C, OK, (5, 6), vec![List(X, vec![2])])]),
        (Phenomenon::LostWrite, Plain, vec![(A, OK, (1, 2), vec![Write(X, 1, 0, 0)]), (B, OK, (3, 4), vec![Write(X, 2, 0, 0)])]),
        (Phenomenon::DirtyWrite, Plain, vec![(A, OK, (1, 9), vec![Append(X, 1), Append(Y, 1)]), (B, OK, (2, 8), vec![Append(X, 2), Append(Y, 2)]), (C, OK, (10, 11), vec![List(X, vec![1, 2]), List(Y, vec![2, 1])])]),
        (Phenomenon::DirtyWrite, Plain, vec![(A, OK, (1, 9), vec![Write(X, 1, 0, 0), Write(Y, 1, 1, 2)]), (B, OK, (2, 8), vec![Write(X, 2, 1, 1), Write(Y, 2, 0, 0)])]),
        (Phenomenon::AbortedRead, Plain, vec![(A, Outcome::Failed, (1, 2), vec![Append(X, 1)]), (B, OK, (1, 4), vec![List(X, vec![1])])]),
        (Phenomenon::AbortedRead, Plain, vec![(A, Outcome::Failed, (1, 2), vec![Write(X, 1, 0, 0)]), (B, OK, (1, 4), vec![Read(X, 1, 1)])]),
        (Phenomenon::AbortedRead, Plain, vec![(A, Outcome::Failed, (1, 2), vec![Write(X, 1, 0, 0)]), (B, OK, (1, 4), vec![Write(X, 2, 1, 1)])]),
        (Phenomenon::IntermediateRead, Plain, vec![(A, OK, (1, 9), vec![Append(X, 1), Append(X, 2)]), (B, OK, (2, 4), vec![List(X, vec![1])]), (C, OK, (10, 11), vec![List(X, vec![1, 2])])]),
        (Phenomenon::IntermediateRead, Plain, vec![(A, OK, (1, 9), vec![Write(X, 1, 0, 0), Write(X, 2, 1, 1)]), (B, OK, (2, 4), vec![Read(X, 1, 1)])]),
        (Phenomenon::IncompatibleOrder, Plain, vec![(A, OK, (1, 9), vec![Append(X, 1)]), (B, OK, (1, 9), vec![Append(X, 2)]), (C, OK, (1, 9), vec![List(X, vec![1, 2])]), (D, OK, (1, 9), vec![List(X, vec![2])])]),
        (Phenomenon::IncompatibleOrder, Plain, vec![(A, OK, (1, 9), vec![Write(X, 1, 0, 0)]), (B, OK, (1, 9), vec![Write(X, 2, 1, 1)]), (D, OK, (1, 9), vec![Read(X, 2, 1)])]),
        (Phenomenon::CircularInformation, Plain, vec![(A, OK, (1, 9), vec![Append(X, 1), List(Y, vec![1])]), (B, OK, (1, 9), vec![Append(Y, 1), List(X, vec![1])])]),
        (Phenomenon::CircularInformation, Plain, vec![(A, OK, (1, 9), vec![Write(X, 1, 0, 0), Read(Y, 1, 1)]), (B, OK, (1, 9), vec![Write(Y, 1, 0, 0), Read(X, 1, 1)])]),
        (Phenomenon::LostUpdate, Plain, vec![(A, OK, (1, 9), vec![List(X, vec![]), Append(X, 1)]), (B, OK, (1, 9), vec![List(X, vec![]), Append(X, 2)]), (C, OK, (10, 11), vec![List(X, vec![1, 2])])]),
        (Phenomenon::LostUpdate, Plain, vec![(A, OK, (1, 9), vec![List(X, vec![]), Append(X, 1)]), (B, OK, (1, 9), vec![List(X, vec![]), Append(X, 2)])]),
        (Phenomenon::LostUpdate, Plain, vec![(A, OK, (1, 9), vec![Read(X, 0, 0), Write(X, 1, 0, 0)]), (B, OK, (1, 9), vec![Read(X, 0, 0), Write(X, 2, 1, 1)])]),
        (Phenomenon::ReadSkew, Plain, vec![(A, OK, (1, 9), vec![List(X, vec![]), List(Y, vec![1])]), (B, OK, (1, 9), vec![Append(X, 1), Append(Y, 1)])]),
        (Phenomenon::ReadSkew, Plain, vec![(A, OK, (1, 9), vec![Read(X, 0, 0), Read(Y, 1, 1)]), (B, OK, (1, 9), vec![Write(X, 1, 0, 0), Write(Y, 1, 0, 0)])]),
        (Phenomenon::ReadSkew, Plain, vec![(A, OK, (1, 9), vec![Read(X, 0, 0), Read(X, 1, 1)]), (B, OK, (1, 9), vec![Write(X, 1, 0, 0)])]),
        (Phenomenon::LongFork, Plain, vec![(A, OK, (1, 9), vec![Write(X, 1, 0, 0)]), (B, OK, (1, 9), vec![Write(Y, 1, 0, 0)]), (C, OK, (1, 9), vec![Read(X, 1, 1), Read(Y, 0, 0)]), (D, OK, (1, 9), vec![Read(X, 0, 0), Read(Y, 1, 1)])]),
        (Phenomenon::WriteSkew, Plain, vec![(A, OK, (1, 9), vec![List(X, vec![]), Append(Y, 1)]), (B, OK, (1, 9), vec![List(Y, vec![]), Append(X, 1)])]),
        (Phenomenon::WriteSkew, Plain, vec![(A, OK, (1, 9), vec![Read(X, 0, 0), Write(Y, 1, 0, 0)]), (B, OK, (1, 9), vec![Read(Y, 0, 0), Write(X, 1, 0, 0)])]),
        (Phenomenon::NonMonotonicRead, Plain, vec![(A, OK, (1, 9), vec![Write(X, 1, 0, 0)]), (B, OK, (2, 3), vec![Read(X, 1, 1)]), (B, OK, (4, 5), vec![Read(X, 0, 0)])]),
        (Phenomenon::UnreadOwnWrite, Plain, vec![(A, OK, (1, 2), vec![Append(X, 1)]), (A, OK, (3, 4), vec![List(X, vec![])])]),
        (Phenomenon::NonMonotonicWrite, Plain, vec![(A, OK, (1, 2), vec![Write(X, 1, 1, 2)]), (A, OK, (3, 4), vec![Write(X, 2, 0, 0)])]),
        (Phenomenon::WriteBeforeRead, Plain, vec![(B, OK, (1, 9), vec![Write(X, 1, 1, 2)]), (A, OK, (2, 3), vec![Read(X, 2, 1)]), (A, OK, (4, 5), vec![Write(X, 2, 0, 0)])]),
        (Phenomenon::StaleRead, Plain, vec![(A, OK, (1, 2), vec![Append(X, 1)]), (B, OK, (3, 4), vec![List(X, vec![])])]),
        (Phenomenon::StaleRead, Plain, vec![(A, OK, (1, 2), vec![Write(X, 1, 0, 0)]), (B, OK, (3, 4), vec![Read(X, 0, 0)])]),
        (Phenomenon::ReadSkew, Session, vec![(A, OK, (1, 9), vec![Write(X, 1, 0, 0)]), (B, OK, (2, 3), vec![Read(X, 1, 1)]), (B, OK, (4, 5), vec![Read(X, 0, 0)])]),
        (Phenomenon::ReadSkew, RealTime, vec![(A, OK, (1, 2), vec![Write(X, 1, 0, 0)]), (B, OK, (3, 4), vec![Read(X, 0, 0)])]),
        (Phenomenon::DirtyWrite, RealTime, vec![(A, OK, (1, 2), vec![Write(X, 1, 1, 2)]), (B, OK, (3, 4), vec![Write(X, 2, 0, 0)])]),
        (Phenomenon::CircularInformation, RealTime, vec![(A, OK, (3, 4), vec![Write(X, 1, 0, 0)]), (B, OK, (1, 2), vec![Read(X, 1, 1)])]),
    ];
    plants
}

#[test]
fn every_planted_phenomenon_is_found_in_10_000_histories() {
    let plants = plants();
    for seed in 0..10_000 {
        let (phenomenon, form, plant) = &plants[seed as usize % plants.len()];
        let mut rng = Dice::new(seed, 1);
        let mut correct = simulate(seed, Mode::Serial, 30).0;
        let offset = u64::from(rng.uniform(0, 200));
        let mut history = Written(std::mem::take(&mut correct));
        for (session, outcome, (begin, end), operations) in plant {
            history.add(*session, *outcome, (offset + begin, offset + end), operations);
        }
        let verdict = check(&shuffled(&history.0, &mut rng), 0);
        let is_found = |(found, of)| verdict.anomalies.iter().any(|one| (one.phenomenon, one.form) == (found, of));
        assert!(
            is_found((*phenomenon, *form)),
            "seed {seed}: {phenomenon:?} {form:?} not in {:?}",
            phenomena(&verdict)
        );
    }
}

#[test]
fn every_phenomenon_is_planted() {
    use Phenomenon as P;
    let all = [
        P::GarbageRead,
        P::DuplicateElement,
        P::Internal,
        P::LostWrite,
        P::DirtyWrite,
        P::AbortedRead,
        P::IntermediateRead,
        P::IncompatibleOrder,
        P::CircularInformation,
        P::LostUpdate,
        P::ReadSkew,
        P::LongFork,
        P::WriteSkew,
        P::NonMonotonicRead,
        P::UnreadOwnWrite,
        P::NonMonotonicWrite,
        P::WriteBeforeRead,
        P::StaleRead,
    ];
    let plants = plants();
    all.into_iter().for_each(|one| assert!(plants.iter().any(|(planted, ..)| *planted == one), "{one:?}"));
}

/// The transactions in another order; those of a session keep theirs.
fn shuffled(history: &History, rng: &mut Dice) -> History {
    let mut queues = std::collections::BTreeMap::<u32, std::collections::VecDeque<usize>>::new();
    history.transactions().enumerate().for_each(|(at, one)| queues.entry(one.session).or_default().push_back(at));
    let mut starts = Vec::new();
    let mut at = 0;
    for one in history.transactions() {
        starts.push(at);
        at += 3 + (history.words()[at] >> 32 & 0x3fff_ffff) as usize;
        debug_assert_eq!(one.session, history.words()[*starts.last().expect("just pushed")] as u32);
    }
    starts.push(at);
    let mut result = History::new();
    while !queues.is_empty() {
        let pick = rng.uniform(0, queues.len() as u32 - 1) as usize;
        let session = *queues.keys().nth(pick).expect("there are as many");
        let queue = queues.get_mut(&session).expect("a key of the map");
        let one = queue.pop_front().expect("empty queues are removed");
        assert!(result.extend(&history.words()[starts[one]..starts[one + 1]]));
        if queue.is_empty() {
            queues.remove(&session);
        }
    }
    result
}
