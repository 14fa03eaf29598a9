//! The built-in tests: cpu, memory, threads, mutex, fileio.

use std::os::unix::fs::FileExt;

use super::bench::{Bench, Did};

/// Two folders, one for each program: neither finds the other's files.
struct Pair {
    oracle: Bench,
    ours: Bench,
}

impl Pair {
    fn new() -> Pair {
        Pair { oracle: Bench::new(&[]), ours: Bench::new(&[]) }
    }

    /// Both give the same result, which is returned.
    #[track_caller]
    fn same(&self, line: &str) -> Did {
        self.same_but(line, str::to_owned)
    }

    /// Compares outputs after `change` has masked more.
    #[track_caller]
    fn same_but(&self, line: &str, change: impl Fn(&str) -> String) -> Did {
        let (mut oracle, mut ours) = (self.oracle.oracle(line), self.ours.ours(line));
        (oracle.stdout, ours.stdout) = (change(&oracle.stdout), change(&ours.stdout));
        assert!(oracle == ours, "sysbench {line}\n=== sysbench 1.0.20: {}\n=== ours: {}", oracle.shown(), ours.shown());
        ours
    }

    #[track_caller]
    fn all_same(&self, lines: &[&str]) {
        for line in lines {
            self.same(line);
        }
    }

    /// Writes a file into both folders.
    fn damage(&self, file: &str, position: u64) {
        for bench in [&self.oracle, &self.ours] {
            let file = std::fs::OpenOptions::new().write(true).open(bench.path(file)).unwrap();
            file.write_all_at(b"damage", position).unwrap();
        }
    }
}

/// Counts of events in a fixed time vary as the time does.
fn without_events(text: &str) -> String {
    let events = regex::Regex::new(r"(total number of events: +|Total operations: )\d+").unwrap();
    let bytes = regex::Regex::new(r"(?m)^[\d.]+ MiB transferred").unwrap();
    let queue = regex::Regex::new(r"queue length: \d+ concurrency: \d+").unwrap();
    let text = bytes.replace_all(&events.replace_all(text, "$1#"), "# MiB transferred").into_owned();
    queue.replace_all(&text, "queue length: # concurrency: #").into_owned()
}

/// The output of ours where the original crashes or never ends.
#[track_caller]
fn ours_refuses(pair: &Pair, line: &str, message: &str) {
    let did = pair.ours.ours(line);
    assert!(did.code == Some(1) && did.stdout.contains(&format!("\nFATAL: {message}\n")), "{line}: {}", did.shown());
}

#[test]
fn every_test_has_help_and_needs_a_command_that_it_knows() {
    let pair = Pair::new();
    for test in ["cpu", "memory", "threads", "mutex", "fileio"] {
        for command in ["help", "", "nonsense", "run --nonsense=1", "help --events=x"] {
            pair.same(&format!("{test} {command}"));
        }
        if test != "fileio" {
            pair.same(&format!("{test} prepare"));
            pair.same(&format!("{test} cleanup"));
        }
    }
}

#[test]
fn cpu_reports_as_the_original() {
    let pair = Pair::new();
    for limit in ["1", "2", "3", "20000", "0", "-5", "abc", "99999999999", ""] {
        pair.same(&format!("cpu --events=3 --cpu-max-prime={limit} run"));
    }
    pair.all_same(&[
        "cpu --events=5 run",
        "cpu --events=50 --threads=3 run",
        "cpu --events=5 --time=0 run",
        "cpu --events=5 --percentile=0 run",
        "cpu --events=5 --percentile=99 --histogram run",
        "cpu --events=5 --debug run",
        "cpu --events=5 --verbosity=0 run",
        "cpu --events=5 --verbosity=4 run",
        "cpu --events=5 --rand-seed=7 --validate run",
        "cpu --events=20 --rate=1000 run",
    ]);
}

#[test]
fn memory_reports_as_the_original() {
    let pair = Pair::new();
    let total = "--memory-total-size=1M";
    for block in ["0", "1", "3", "4", "8", "16", "512", "1000", "1K", "2k", "1M", "3M", "16M", "1X", "-1", "1T"] {
        pair.same(&format!("memory {total} --memory-block-size={block} run"));
    }
    for option in [
        "memory-oper=read",
        "memory-oper=none",
        "memory-oper=other",
        "memory-access-mode=rnd",
        "memory-access-mode=rnd --memory-oper=read --memory-scope=local --threads=3",
        "memory-access-mode=other",
        "memory-scope=local --threads=3",
        "memory-scope=global --threads=2",
        "memory-scope=other",
        "memory-hugetlb=off",
        "memory-hugetlb=other",
        // The limit is the total size.
        "events=5 --debug",
        "time=0",
        "memory-total-size=1000",
    ] {
        pair.same(&format!("memory {total} --{option} run"));
    }
    pair.same_but("memory --memory-total-size=0 --time=1 run", without_events);
    ours_refuses(&pair, "memory --memory-oper= run", "Invalid value for memory-oper: ");
}

#[test]
fn threads_and_mutex_report_as_the_original() {
    let pair = Pair::new();
    pair.all_same(&[
        "threads --events=5 run",
        "threads --events=20 --threads=4 --thread-locks=2 run",
        "threads --events=5 --thread-yields=0 --debug run",
        "threads --events=5 --thread-yields=x run",
        "mutex --mutex-locks=100 run",
        "mutex --mutex-locks=100 --threads=3 run",
        "mutex --mutex-locks=100 --debug run",
        "mutex --mutex-locks=100 --mutex-num=1 --mutex-loops=0 --time=0 run",
        "mutex --mutex-num=x run",
    ]);
    // The original divides by zero, allocates nothing, or does not end.
    ours_refuses(&pair, "threads --thread-locks=0 run", "Invalid value for thread-locks: 0");
    ours_refuses(&pair, "threads --thread-yields=-1 run", "Invalid value for thread-yields: -1");
    ours_refuses(&pair, "mutex --mutex-num=0 run", "Invalid value for mutex-num: 0");
    ours_refuses(&pair, "mutex --mutex-locks=0 run", "Invalid value for mutex-locks: 0");
    ours_refuses(&pair, "mutex --mutex-loops=-1 run", "Invalid value for mutex-loops: -1");
}

#[test]
fn runs_limited_by_time_report_as_the_original() {
    let pair = Pair::new();
    for test in ["cpu", "memory", "threads"] {
        pair.same_but(&format!("{test} --time=2 --report-checkpoints=1 run"), without_events);
    }
    // Whether there is a line at the very end depends on which thread is faster.
    let line_at_end = regex::Regex::new(r"(?m)^\[ 2s \].*\n").unwrap();
    for test in ["cpu --rate=100", "memory"] {
        let change = |text: &str| line_at_end.replace_all(&without_events(text), "").into_owned();
        pair.same_but(&format!("{test} --time=2 --report-interval=1 run"), change);
    }
    // In the line about fairness, the original counts one event and the whole time for a thread that has done nothing.
    let of_fairness = regex::Regex::new(r"(?m)^ +(events|execution time) \(avg.*$").unwrap();
    for test in [
        "cpu --cpu-max-prime=30000000",
        "memory --memory-block-size=1G --memory-access-mode=rnd",
        "mutex --mutex-locks=2000000000 --mutex-loops=0 --threads=2",
    ] {
        let did = pair.same_but(&format!("{test} --time=1 --forced-shutdown=0 run"), |text| {
            of_fairness.replace_all(&without_events(text), "").into_owned()
        });
        assert_eq!(did.code, Some(2));
    }
}

const FILES: &str = "fileio --file-num=3 --file-total-size=768K";

#[test]
fn files_are_prepared_kept_extended_and_removed_as_by_the_original() {
    let pair = Pair::new();
    for line in [
        "prepare",
        "prepare",
        "--file-total-size=1M prepare",
        "--file-num=4 prepare",
        "--file-total-size=600K prepare",
        "--file-total-size=3333333 --file-block-size=1000 prepare",
        "--file-block-size=32K --file-test-mode=other prepare",
        "--verbosity=0 prepare",
        "cleanup",
        "--file-num=4 cleanup",
        "cleanup",
        "--file-extra-flags=sync prepare",
        "--verbosity=5 cleanup",
        "--validate prepare",
    ] {
        pair.same(&format!("{FILES} {line}"));
    }
}

#[test]
fn every_mode_reports_as_the_original_by_every_way() {
    let pair = Pair::new();
    pair.same(&format!("{FILES} prepare"));
    for mode in ["seqrewr", "seqrd", "rndrd", "rndwr", "rndrw", "seqwr"] {
        for way in ["sync", "async", "mmap"] {
            for option in
                ["", "--file-fsync-mode=fdatasync --file-fsync-freq=7", "--file-fsync-all", "--file-fsync-end=off"]
            {
                pair.same(&format!("{FILES} --file-test-mode={mode} --file-io-mode={way} {option} --events=30 run"));
            }
        }
    }
    pair.same(&format!("{FILES} prepare"));
    for option in [
        "--file-merged-requests=4",
        "--file-rw-ratio=0",
        "--file-rw-ratio=abc",
        "--file-fsync-freq=0",
        "--file-extra-flags=sync",
        "--file-extra-flags=dsync,",
        "--file-extra-flags=direct",
        "--file-extra-flags=",
        "--file-io-mode=",
        "--file-block-size=1M",
        "--file-block-size=1000",
        "--file-io-mode=async --file-async-backlog=1",
        "--file-total-size=500000 --threads=3",
        "--debug --file-test-mode=seqrd",
        "--rate=1000",
    ] {
        pair.same(&format!("{FILES} --file-test-mode=rndrw {option} --events=30 run"));
    }
}

/// Rates vary, but their ratios do not. (With many requests in flight they depend on how many the kernel completes at a
/// time.)
#[test]
fn reads_writes_and_fsyncs_are_counted_as_by_the_original() {
    let pair = Pair::new();
    pair.same(&format!("{FILES} prepare"));
    let ratios = |text: &str| {
        let figure = |label: &str| -> f64 {
            let line = text.lines().find_map(|line| line.trim_start().strip_prefix(label)).unwrap();
            line.trim().parse().unwrap()
        };
        let [reads, writes, syncs] = ["reads/s:", "writes/s:", "fsyncs/s:"].map(figure);
        let [read, written] = ["read, MiB/s:", "written, MiB/s:"].map(figure);
        [reads / syncs, writes / syncs, read / written]
    };
    for option in
        ["", "--file-rw-ratio=0.5 --file-fsync-freq=13", "--file-fsync-all", "--file-io-mode=mmap", "--threads=3"]
    {
        let line = format!("{FILES} --file-test-mode=rndrw {option} --events=1000 run");
        let (oracle, ours) = (pair.oracle.oracle_text(&line), pair.ours.ours_text(&line));
        for (one, two) in ratios(&oracle).into_iter().zip(ratios(&ours)) {
            // Figures have two decimals; with several threads their order varies slightly.
            assert!((one / two - 1.0).abs() < 0.05, "{line}\n{oracle}\n{ours}");
        }
    }
}

#[test]
fn what_cannot_be_done_with_files_is_refused_as_by_the_original() {
    let pair = Pair::new();
    for line in [
        "run",
        "--file-test-mode= run",
        "--file-test-mode=RNDRD run",
        "--file-test-mode=rndrd run",
        "--file-num=0 prepare",
        "--file-num=abc prepare",
        "--file-total-size=0 prepare",
        "--file-total-size=-1 prepare",
        "--file-block-size=0 prepare",
        "--file-block-size=abc cleanup",
        "--file-io-mode=other prepare",
        "--file-fsync-mode=other cleanup",
        "--file-fsync-freq=-1 prepare",
        "--file-fsync-all=other prepare",
        "--file-merged-requests=-1 prepare",
        "--file-rw-ratio=-1 prepare",
        "--file-extra-flags=other prepare",
        "--file-test-mode=rndrd --file-io-mode=async --file-async-backlog=0 run",
        "--file-test-mode=rndrd --file-io-mode=async --file-async-backlog=x run",
        "--file-test-mode=seqwr --events=5 run",
        "--file-test-mode=rndrd --events=5 run",
        "--file-test-mode=rndrd --events=5 --file-io-mode=mmap run",
        "--file-num=4 --file-total-size=32K --file-test-mode=seqrd run",
        "--file-test-mode=seqwr --file-io-mode=mmap --file-total-size=500T run",
        "cleanup",
    ] {
        pair.same(&format!("{FILES} {line}"));
    }
    // Where the original crashes, or does not end.
    ours_refuses(&pair, "fileio --file-num=-2 cleanup", "Invalid value for file-num: -2");
    ours_refuses(&pair, "fileio --file-fsync-mode= prepare", "Invalid fsync mode: .");
    let small = "fileio --validate --file-block-size=8 --file-total-size=1M prepare";
    ours_refuses(&pair, small, "Invalid value for file-block-size: 8 (--validate needs at least 13).");
    // The original accepts a list of flags, and then refuses any two of them.
    pair.ours.ours(&format!("{FILES} --file-extra-flags=sync,dsync prepare"));
    let line = format!("{FILES} --file-extra-flags=sync,dsync --file-test-mode=rndrw --events=10 run");
    assert_eq!(pair.ours.ours(&line).code, Some(0));
}

#[test]
fn validation_finds_what_the_original_finds() {
    let pair = Pair::new();
    pair.same(&format!("{FILES} --validate prepare"));
    for option in ["rndrw", "rndrw --threads=3 --file-io-mode=async", "seqrd --file-io-mode=mmap", "seqrewr"] {
        pair.same(&format!("{FILES} --validate --file-test-mode={option} --events=60 run"));
    }
    // Each program accepts files that the other has written.
    let line = format!("{FILES} --validate --file-test-mode=seqrd --events=48 run");
    assert_eq!((pair.oracle.ours(&line).code, pair.ours.oracle(&line).code), (Some(0), Some(0)));
    pair.damage("test_file.1", 20_000);
    let sums = regex::Regex::new("value: 0x[0-9a-f]+|value: 0x#").unwrap();
    for way in ["sync", "async", "mmap"] {
        let line = format!("{FILES} --validate --file-test-mode=seqrd --file-io-mode={way} --events=48 run");
        let did = pair.same_but(&line, |text| sums.replace_all(text, "value: #").into_owned());
        assert!(did.stdout.contains("Validation failed on file 1, block offset 16384, exiting..."), "{}", did.shown());
    }
    // Blocks without a checksum are not valid.
    pair.all_same(&[&format!("{FILES} cleanup"), &format!("{FILES} prepare"), &line]);
}

#[test]
fn runs_on_files_limited_by_time_report_as_the_original() {
    let pair = Pair::new();
    pair.same(&format!("{FILES} prepare"));
    let line_at_end = regex::Regex::new(r"(?m)^\[ 2s \].*\n").unwrap();
    let change = |text: &str| line_at_end.replace_all(&without_events(text), "").into_owned();
    let line = format!("{FILES} --file-test-mode=rndrw --time=2");
    pair.same_but(&format!("{line} --report-interval=1 run"), change);
    pair.same_but(&format!("{line} --report-checkpoints=1 run"), without_events);
    pair.same_but(&format!("{line} --report-interval=1 --percentile=50 --rate=50 --threads=2 run"), change);
}
