//! How long the check of a million transactions takes, and how much memory:
//! `cargo run -p assay-isolation --example million -- [TRANSACTIONS] [append|register]`.

use std::time::Instant;

use assay_isolation::{History, IsolationLevel, Outcome, Version, check, log};
use assay_random::Random;

const KEYS: u64 = 1000;
const SESSIONS: u32 = 100;
const LENGTH: usize = 100;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let transactions: u32 = arguments.next().map_or(1_000_000, |text| text.parse().expect("a number"));
    let is_list = arguments.next().is_none_or(|model| model == "append");
    let started = Instant::now();
    let history = serial(transactions, is_list);
    println!("history: {} MB, made in {:.1?}", history.words().len() * 8 / 1_000_000, started.elapsed());
    let started = Instant::now();
    let verdict = check(&history, 0);
    println!(
        "{} transactions, {} reads, {} writes: checked in {:.1?}, strictly serializable: {}",
        verdict.committed,
        verdict.reads,
        verdict.writes,
        started.elapsed(),
        verdict.holds(IsolationLevel::StrictSerializable)
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
}

/// Transactions of four operations, half of them reads, done one after the other by overlapping clients.
fn serial(transactions: u32, is_list: bool) -> History {
    let mut random = Random::of_stream(1, 1);
    let mut history = History::new();
    let mut lists: Vec<(u32, Vec<u64>)> = (0..KEYS as u32).map(|key| (key, Vec::new())).collect();
    let mut versions = vec![Version::default(); KEYS as usize];
    let mut words = Vec::new();
    let (mut value, mut next_key) = (0, KEYS as u32);
    for number in 0..transactions {
        words.clear();
        for _ in 0..4 {
            let slot = random.below(KEYS) as usize;
            let is_read = random.below(2) == 0;
            let (key, list) = &mut lists[slot];
            match (is_list, is_read) {
                (true, true) => {
                    log::read_list(&mut words, *key, list.iter().copied());
                    if list.len() >= LENGTH {
                        list.clear();
                        (*key, next_key) = (next_key, next_key + 1);
                    }
                }
                (true, false) => {
                    value += 1;
                    log::append(&mut words, *key, value);
                    list.push(value);
                }
                (false, true) => log::read(&mut words, slot as u32, versions[slot]),
                (false, false) => {
                    value += 1;
                    log::write(&mut words, slot as u32, value);
                    log::replaced(&mut words, versions[slot]);
                    versions[slot] = Version { number: versions[slot].number + 1, value };
                }
            }
        }
        let at = u64::from(number) * 10 + 1000;
        let instants = (at - random.below(900), at + random.below(90));
        history.push(number % SESSIONS, Outcome::Ok, instants, &words);
    }
    history
}
