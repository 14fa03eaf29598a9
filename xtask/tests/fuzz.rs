//! Mutations of what real servers sent, against the wire machines: nothing may panic, nothing may hang.
//!
//! Without coverage, so it finds less than cargo-fuzz, but with any compiler and within `cargo test`. Seconds and
//! seed come from `cargo xtask fuzz`; without it the seed is fixed, so that the tests of a tree never disagree.

#![forbid(unsafe_code)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// An input takes microseconds; one that takes this long hangs.
const HANG: Duration = Duration::from_secs(20);

/// Inputs do not grow beyond this.
const LENGTH_MAX: usize = 8192;

#[test]
fn nothing_a_postgres_server_sends_panics() {
    fuzz("postgres", "postgres", assay_wire::postgres::fuzz_postgres);
}

#[test]
fn nothing_a_mysql_server_sends_panics() {
    fuzz("mysql", "mysql", assay_wire::mysql::fuzz_mysql);
}

#[test]
#[should_panic(expected = "itself panicked after")]
fn a_parser_that_panics_is_found_out() {
    fuzz("itself", "postgres", |data| assert!(!data.ends_with(b"\0"), "a bug that only mutation finds"));
}

/// `name`: whose input is kept when it fails. `seeds`: the folder of inputs to begin with.
fn fuzz(name: &str, seeds: &str, entry: fn(&[u8])) {
    let number = |variable, default| match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")),
        Err(_) => default,
    };
    let seconds = number("ASSAY_FUZZ_SECONDS", 2);
    let seed = number("ASSAY_FUZZ_SEED", 1);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let keep = |input: &[u8]| {
        let folder = root.join("target/fuzz");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{name}-{seed}"));
        fs::write(&path, input).unwrap();
        format!("repeat with `cargo xtask fuzz --seed {seed}`; the input is in {}", path.display())
    };

    let folder = fs::read_dir(root.join("fuzz/seeds").join(seeds)).unwrap();
    let mut paths: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty(), "no inputs to begin with for {name}");

    // In a thread of its own, for one that hangs cannot be stopped, only reported.
    let current = Arc::new(Mutex::new(Vec::new()));
    let (sender, outcomes) = mpsc::channel();
    let shared = Arc::clone(&current);
    std::thread::spawn(move || {
        let mut random = Random(seed);
        let mut unchanged = seeds.iter();
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            let input = unchanged.next().cloned().unwrap_or_else(|| mutated(&seeds, &mut random));
            shared.lock().unwrap().clone_from(&input);
            let survived = catch_unwind(AssertUnwindSafe(|| entry(&input))).is_ok();
            if sender.send(survived).is_err() || !survived {
                return;
            }
        }
    });
    let mut inputs = 0_u64;
    loop {
        let trouble = match outcomes.recv_timeout(HANG) {
            Ok(true) => {
                inputs += 1;
                continue;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Ok(false) => "panicked",
            Err(mpsc::RecvTimeoutError::Timeout) => "hangs",
        };
        panic!("{name} {trouble} after {inputs} inputs; {}", keep(&current.lock().unwrap()));
    }
    println!("{name}: {inputs} inputs in {seconds} s, seed {seed}");
    assert!(inputs > 100, "only {inputs} inputs in {seconds} s");
}

/// One to eight changes to one of the seeds: what protocols are sensitive to are lengths, tags and cuts.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    const LENGTHS: [u32; 12] = [0, 1, 3, 4, 5, 0x7f, 0x80, 0xff, 0xffff, 0x00ff_ffff, 0x7fff_ffff, 0xffff_ffff];
    let mut input = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(8) {
        let at = random.below(input.len().max(1));
        let some = (1 + random.below(64)).min(input.len().saturating_sub(at));
        match random.below(9) {
            0 if !input.is_empty() => input[at] ^= 1 << random.below(8),
            1 if !input.is_empty() => input[at] = random.below(256) as u8,
            2 if input.len() >= at + 4 => {
                input[at..at + 4].copy_from_slice(&LENGTHS[random.below(LENGTHS.len())].to_be_bytes());
            }
            3 if input.len() >= at + 3 => {
                input[at..at + 3].copy_from_slice(&LENGTHS[random.below(LENGTHS.len())].to_le_bytes()[..3]);
            }
            4 => drop(input.drain(at..at + some)),
            5 => {
                let copy = input[at..at + some].to_vec();
                input.splice(at..at, copy);
            }
            6 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len().max(1));
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            7 => input.truncate(at),
            _ => {
                let noise: Vec<u8> = (0..random.below(16)).map(|_| random.below(256) as u8).collect();
                input.splice(at..at, noise);
            }
        }
        input.truncate(LENGTH_MAX);
    }
    input
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same everywhere.
struct Random(u64);

impl Random {
    /// 0 <= result < `bound`, for a bound of at least 1.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}
