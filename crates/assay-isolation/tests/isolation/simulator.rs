//! A database in memory whose sessions take turns at random, at several isolation levels.

use std::collections::BTreeMap;

use assay_isolation::{History, Outcome};
use assay_random::Random;

use crate::written::{Append, List, Op, Read, Write, Written};

/// How the simulated database isolates transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each transaction is done at one instant.
    Serial,
    /// Reads are of a snapshot, and the first to commit a write wins.
    Snapshot,
    /// Reads are of a snapshot, writes of the latest version, as in MySQL.
    StaleWrites,
    /// Reads and writes are of the latest version.
    ReadCommitted,
}

/// Random numbers of a seed.
pub(crate) struct Dice(Random);

impl Dice {
    pub(crate) fn new(seed: u64, stream: u64) -> Dice {
        Dice(Random::of_stream(seed, stream))
    }

    /// From `low` to `high`, both included.
    pub(crate) fn uniform(&mut self, low: u32, high: u32) -> u32 {
        low + self.0.below(u64::from(high - low) + 1) as u32
    }
}

const KEYS: u32 = 4;
const SESSIONS: usize = 4;

/// Versions of a key: when each was committed, and all values up to it.
type Committed = Vec<(u64, Vec<u64>)>;

#[derive(Default)]
struct Session {
    is_open: bool,
    begin: u64,
    snapshot: u64,
    left: u32,
    done: Vec<Op>,
    own: BTreeMap<u32, Vec<u64>>,
}

struct Database {
    keys: Vec<Committed>,
    locks: Vec<Option<usize>>,
    next_value: u64,
    is_list: bool,
}

impl Database {
    fn latest(&self, key: u32) -> &[u64] {
        self.keys[key as usize].last().map_or(&[], |(_, values)| values)
    }

    fn at(&self, key: u32, snapshot: u64) -> &[u64] {
        let versions = self.keys[key as usize].iter().rev();
        versions.into_iter().find(|(at, _)| *at <= snapshot).map_or(&[], |(_, values)| values)
    }

    fn read(&self, key: u32, values: &[u64]) -> Op {
        match self.is_list {
            true => List(key, values.to_vec()),
            false => Read(key, values.len() as u64, values.last().copied().unwrap_or(0)),
        }
    }
}

/// A history of about this many transactions, and what the keys contain at the end. It has list appends or registers,
/// by seed, and ends with a read of all keys. Some outcomes are unknown.
pub(crate) fn simulate(seed: u64, mode: Mode, transactions: u32) -> (History, Vec<Vec<u64>>) {
    let mut rng = Dice::new(seed, 0);
    let mut database = Database {
        keys: vec![Vec::new(); KEYS as usize],
        locks: vec![None; KEYS as usize],
        next_value: 1,
        is_list: seed.is_multiple_of(2),
    };
    let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| Session::default()).collect();
    let mut history = Written::default();
    let (mut now, mut begun) = (0, 0);
    while begun < transactions || sessions.iter().any(|session| session.is_open) {
        now += 1;
        let turn = rng.uniform(0, SESSIONS as u32 - 1) as usize;
        let session = &mut sessions[turn];
        if !session.is_open {
            if begun < transactions {
                begun += 1;
                let left = rng.uniform(1, 4);
                *session = Session { is_open: true, begin: now, snapshot: now, left, ..Session::default() };
            }
            continue;
        }
        let mut outcome = None;
        while session.left > 0 {
            session.left -= 1;
            let key = rng.uniform(0, KEYS - 1);
            if rng.uniform(0, 1) == 0 {
                let values = match (session.own.get(&key), mode) {
                    (Some(own), _) => own.clone(),
                    (None, Mode::Snapshot | Mode::StaleWrites) => database.at(key, session.snapshot).to_vec(),
                    _ => database.latest(key).to_vec(),
                };
                session.done.push(database.read(key, &values));
            } else if database.locks[key as usize].is_some_and(|owner| owner != turn) {
                // Waits, or is chosen as the victim of a deadlock.
                session.left += 1;
                outcome = (rng.uniform(0, 9) == 0).then_some(Outcome::Failed);
                break;
            } else {
                let newest = database.keys[key as usize].last().map_or(0, |(at, _)| *at);
                if mode == Mode::Snapshot && newest > session.snapshot {
                    outcome = Some(Outcome::Failed);
                    break;
                }
                database.locks[key as usize] = Some(turn);
                let values = session.own.entry(key).or_insert_with(|| database.latest(key).to_vec());
                let value = database.next_value;
                database.next_value += 1;
                session.done.push(match database.is_list {
                    true => Append(key, value),
                    false => Write(key, value, values.len() as u64, values.last().copied().unwrap_or(0)),
                });
                values.push(value);
            }
            if mode != Mode::Serial && session.left > 0 {
                break;
            }
        }
        if session.left == 0 && outcome.is_none() {
            outcome = Some(if rng.uniform(0, 19) == 0 { Outcome::Failed } else { Outcome::Ok });
        }
        let Some(outcome) = outcome else { continue };
        now += 1;
        for (key, values) in std::mem::take(&mut session.own) {
            if outcome == Outcome::Ok {
                database.keys[key as usize].push((now, values));
            }
        }
        database.locks.iter_mut().filter(|owner| **owner == Some(turn)).for_each(|owner| *owner = None);
        now += 1;
        let is_lost = rng.uniform(0, 19) == 0;
        let (outcome, end) = if is_lost { (Outcome::Unknown, u64::MAX) } else { (outcome, now) };
        // The client's instants are around the server's.
        history.add(turn as u32, outcome, (session.begin, end), &session.done);
        session.is_open = false;
    }
    let all: Vec<Op> = (0..KEYS).map(|key| database.read(key, database.latest(key))).collect();
    history.add(SESSIONS as u32, Outcome::Ok, (now + 1, now + 2), &all);
    (history.0, (0..KEYS).map(|key| database.latest(key).to_vec()).collect())
}
