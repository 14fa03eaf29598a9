//! The text of intermediate and cumulative reports, checkpoints, verbosity, and repeated messages.

use crate::bench::{Bench, Did};

fn bench() -> Bench {
    Bench::new(&[
        ("it.lua", "ffi.cdef'int usleep(unsigned int);' function event() ffi.C.usleep(20000) end"),
        (
            "sql.lua",
            "function thread_init() con = sysbench.sql.driver():connect() end
             function event() con:query('SELECT 1') con:query('SELECT 2') end",
        ),
        ("twice.lua", "function event() end function done() for _ = 1, 3 do con:query() end end"),
    ])
}

/// The same but for counters that depend on speed, and lines of the last second, which the original may leave out.
fn without_counts(did: &Did) -> String {
    let varies = |line: &&str| {
        line.contains("total number of events") || line.contains("queue length") || line.starts_with("[ 2s ] thds")
    };
    did.shown().lines().filter(|line| !varies(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn reports_of_a_number_of_events_are_the_same_to_the_letter() {
    let bench = bench();
    for line in [
        "it.lua run --events=3",
        "it.lua run --events=3 --percentile=50",
        "it.lua run --events=3 --percentile=0 --report-interval=5",
        "it.lua run --events=3 --histogram",
        "it.lua run --events=3 --verbosity=4",
        "it.lua run --events=3 --verbosity=2",
        "it.lua run --events=3 --rand-seed=5",
        "it.lua run --events=3 --validate --report-interval=5 --report-checkpoints=7,3 --time=20",
        "sql.lua run --events=3 --mysql-dry-run",
    ] {
        bench.same(line);
    }
}

#[test]
fn reports_of_some_seconds_have_the_same_lines() {
    let bench = bench();
    for line in [
        "it.lua run --time=2 --report-interval=1",
        "it.lua run --time=2 --report-interval=1 --rate=20",
        "it.lua run --time=3 --report-checkpoints=1,2",
    ] {
        let (oracle, ours) = (bench.oracle(line), bench.ours(line));
        assert_eq!(without_counts(&ours), without_counts(&oracle), "sysbench {line}");
    }
}

#[test]
fn the_layout_of_the_development_branch_is_an_option() {
    let ours = bench().ours("it.lua run --events=2 --report-layout=master");
    let (_, report) = ours.stdout.split_once("Threads started!\n\n\n").unwrap();
    let labels: Vec<&str> =
        report.lines().filter_map(|line| line.split_once(':')).map(|(label, _)| label.trim()).collect();
    assert_eq!(labels[..4], ["Throughput", "events/s (eps)", "time elapsed", "total number of events"], "{report}");
}

#[test]
fn a_percentile_lies_within_what_was_measured() {
    // The original reports the value of a bucket, which may be below the fastest event.
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["sysbench", "--events=5", "-", "run"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("it.lua");
    std::fs::write(&script, "ffi.cdef'int usleep(unsigned int);' function event() ffi.C.usleep(3000) end").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["sysbench", script.to_str().unwrap(), "run", "--events=5"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let figure = |label: &str| -> f64 {
        let line = text.lines().find(|line| line.trim_start().starts_with(label)).unwrap_or_else(|| panic!("{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let (min, max, p95) = (figure("min:"), figure("max:"), figure("95th percentile:"));
    assert!(min > 0.0 && min <= p95 && p95 <= max, "{text}");
    assert!(figure("sum:") >= 5.0 * min - 0.05, "{text}");
}

#[test]
fn work_inside_lua_is_measured_too() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("it.lua");
    std::fs::write(&script, "function event() local t = os.clock() while os.clock() < t + 0.005 do end end").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["sysbench", script.to_str().unwrap(), "run", "--events=4"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.trim_start().starts_with("min:")).unwrap();
    // os.clock() is the CPU time of the whole process, whose other threads work a little as well.
    assert!(line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() >= 2.5, "{text}");
}

#[test]
fn the_hook_of_the_last_report_shares_its_globals_with_init_and_done() {
    let bench = Bench::new(&[(
        "it.lua",
        "function init() left = 5 con = sysbench.sql.driver():connect() con:query('INIT') end
         function thread_init() con = sysbench.sql.driver():connect() end
         function event() con:query('EVENT') end
         function sysbench.hooks.report_cumulative(stat)
           print('report', left, sysbench.tid, stat.events, stat.other)
           con:query('REPORT') left = 6
         end
         function done() print('done', left) end",
    )]);
    bench.same("it.lua run --events=3 --mysql-dry-run");
}
