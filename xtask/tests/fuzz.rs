//! Feeds mutations of what real servers sent to the protocol machines, and of what users write to the parsers of texts
//! and records: nothing may panic, nothing may hang.
//!
//! Without coverage feedback, so it finds less than cargo-fuzz, but it needs no special compiler and runs within `cargo
//! test`. Seconds and seed come from `cargo xtask fuzz`; without it the seed is fixed, so that tests are repeatable.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, Once, mpsc};
use std::time::{Duration, Instant};

use assay_random::Random;

/// An input takes microseconds; one that takes this long hangs.
const HANG: Duration = Duration::from_secs(20);

/// Inputs do not grow beyond this.
const LENGTH_MAX: usize = 8192;

#[test]
fn nothing_a_postgres_server_sends_panics() {
    fuzz("postgres", "fuzz/seeds/postgres", assay_postgres::fuzz_postgres);
}

#[test]
fn nothing_a_mysql_server_sends_panics() {
    fuzz("mysql", "fuzz/seeds/mysql", assay_mysql::fuzz_mysql);
}

#[test]
fn nothing_a_clickhouse_server_sends_panics() {
    fuzz("clickhouse", "fuzz/seeds/clickhouse", assay_clickhouse::fuzz_clickhouse);
}

#[test]
fn nothing_a_mongodb_server_sends_panics() {
    fuzz("mongodb", "fuzz/seeds/mongodb", assay_mongodb::fuzz_mongodb);
}

#[test]
fn no_command_for_mongodb_panics() {
    fuzz("command", "fuzz/seeds/commands", assay_mongodb::fuzz_statement);
}

#[test]
fn nothing_in_a_file_that_is_no_record_panics() {
    fuzz("record", "fuzz/seeds/record", assay_record::fuzz_record);
}

#[test]
fn nothing_in_a_bundle_panics_or_leaves_its_folder() {
    fuzz("bundle", "fuzz/seeds/bundles", assay_experiment::fuzz_bundle);
}

#[test]
fn nothing_in_a_recipe_panics() {
    fuzz("recipe", "recipes", assay_recipe::fuzz_recipe);
}

#[test]
fn nothing_in_a_spec_panics_and_what_was_read_stays_the_same() {
    fuzz("spec", "fuzz/seeds/spec", assay_spec::fuzz_spec);
}

#[test]
fn nothing_in_a_script_for_pgbench_panics() {
    fuzz("script", "fuzz/seeds/scripts", assay_pgbench::fuzz_script);
}

#[test]
fn no_text_of_statements_stops_its_splitting() {
    fuzz("split", "fuzz/seeds/statements", assay_sqlite::fuzz_split);
}

#[test]
fn no_statement_with_placeholders_panics() {
    fuzz("placeholders", "fuzz/seeds/statements", assay_wire::fuzz_placeholders);
}

#[test]
fn a_parser_that_panics_is_found_out_without_a_word_in_between() {
    let entry = |data: &[u8]| assert!(!data.ends_with(b"\0"), "a bug that only mutation finds");
    let trouble = fuzzed("itself", "fuzz/seeds/postgres", entry).unwrap_err();
    for part in
        ["itself panicked after ", "tests/fuzz.rs:", "a bug that only mutation finds", "--seed ", "fuzz/itself-"]
    {
        assert!(trouble.contains(part), "{part}: {trouble}");
    }
}

fn fuzz(name: &str, seeds: &str, entry: fn(&[u8])) {
    match fuzzed(name, seeds, entry) {
        Ok(done) => println!("{done}"),
        Err(trouble) => panic!("{trouble}"),
    }
}

thread_local! {
    /// The message of this thread's last panic if it is fuzzing; it is a finding, to be reported once.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Hides panics of threads that have `SAID` from the terminal.
fn listen_to_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            SAID.with_borrow_mut(|said| match said {
                Some(said) => *said = panic.to_string(),
                None => usual(panic),
            });
        }));
    });
}

/// Inputs that are tried however long that takes, on a machine that is busy with something else.
const INPUTS_MIN: u64 = 200;

/// `name`: the parser, whose input is kept if it fails. `seeds`: the folder of initial inputs. Returns what was done,
/// or what went wrong.
fn fuzzed(name: &str, seeds: &str, entry: fn(&[u8])) -> Result<String, String> {
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

    let folder = fs::read_dir(root.join(seeds)).unwrap();
    let mut paths: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty(), "no inputs to begin with for {name}");

    // In a thread of its own, because a hang cannot be stopped, only reported.
    listen_to_panics();
    let current = Arc::new(Mutex::new(Vec::new()));
    let (sender, outcomes) = mpsc::channel();
    let shared = Arc::clone(&current);
    std::thread::spawn(move || {
        SAID.set(Some(String::new()));
        let mut random = Random::new(seed);
        let mut unchanged = seeds.iter();
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut tried = 0;
        while Instant::now() < end || tried < INPUTS_MIN {
            tried += 1;
            let input = unchanged.next().cloned().unwrap_or_else(|| mutated(&seeds, &mut random));
            shared.lock().unwrap().clone_from(&input);
            let survived = catch_unwind(AssertUnwindSafe(|| entry(&input)));
            let outcome = survived.map_err(|_| SAID.take().unwrap_or_default());
            let is_over = outcome.is_err();
            if sender.send(outcome).is_err() || is_over {
                return;
            }
        }
    });
    let mut inputs = 0_u64;
    loop {
        let trouble = match outcomes.recv_timeout(HANG) {
            Ok(Ok(())) => {
                inputs += 1;
                continue;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Ok(Err(said)) => format!("{name} panicked after {inputs} inputs: {said}"),
            Err(mpsc::RecvTimeoutError::Timeout) => format!("{name} hangs after {inputs} inputs"),
        };
        return Err(format!("{trouble}\n{}", keep(&current.lock().unwrap())));
    }
    Ok(format!("{name}: {inputs} inputs in {seconds} s, seed {seed}"))
}

/// One to eight changes to one of the seeds, mostly to what protocols are sensitive to: lengths, tags and cuts.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    const LENGTHS: [u32; 12] = [0, 1, 3, 4, 5, 0x7f, 0x80, 0xff, 0xffff, 0x00ff_ffff, 0x7fff_ffff, 0xffff_ffff];
    let mut input = seeds[below(seeds.len())].clone();
    for _ in 0..=below(8) {
        let at = below(input.len().max(1));
        let some = (1 + below(64)).min(input.len().saturating_sub(at));
        match below(9) {
            0 if !input.is_empty() => input[at] ^= 1 << below(8),
            1 if !input.is_empty() => input[at] = below(256) as u8,
            2 if input.len() >= at + 4 => {
                input[at..at + 4].copy_from_slice(&LENGTHS[below(LENGTHS.len())].to_be_bytes());
            }
            3 if input.len() >= at + 3 => {
                input[at..at + 3].copy_from_slice(&LENGTHS[below(LENGTHS.len())].to_le_bytes()[..3]);
            }
            4 => drop(input.drain(at..at + some)),
            5 => {
                let copy = input[at..at + some].to_vec();
                input.splice(at..at, copy);
            }
            6 => {
                let other = &seeds[below(seeds.len())];
                let from = below(other.len().max(1));
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            7 => input.truncate(at),
            _ => {
                let noise: Vec<u8> = (0..below(16)).map(|_| below(256) as u8).collect();
                input.splice(at..at, noise);
            }
        }
        input.truncate(LENGTH_MAX);
    }
    input
}
