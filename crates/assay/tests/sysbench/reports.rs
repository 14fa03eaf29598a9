//! The text of intermediate and cumulative reports, checkpoints, verbosity, and repeated messages.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::Kind;

use crate::bench::{Bench, Did};

fn bench() -> Bench {
    Bench::new(&[
        ("it.lua", "ffi.cdef'int usleep(unsigned int);' function event() ffi.C.usleep(20000) end"),
        (
            "sql.lua",
            "function thread_init() con = sysbench.sql.driver():connect() end
             function event() con:query('SELECT 1') con:query('SELECT 2') end",
        ),
        ("slow.lua", "ffi.cdef'int usleep(unsigned int);' function event() ffi.C.usleep(100000) end"),
        ("stop.lua", "function event() return true end"),
        ("twice.lua", "function event() end function done() for _ = 1, 3 do con:query() end end"),
    ])
}

/// The report without counters that depend on speed, and without lines of the last second, which the original may omit.
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
        "it.lua run --time=2 --report-checkpoints=1 --histogram",
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
    // The original reports a bucket's value, which may be below the fastest event.
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
    // os.clock() is the CPU time of the whole process; its other threads use a little as well.
    assert!(line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() >= 2.5, "{text}");
}

#[test]
fn files_are_reported_in_the_form_of_either_branch() {
    let bench = bench();
    let common = "fileio --file-total-size=1M --file-num=1 --file-test-mode=rndrd --events=10 --time=60";
    assert_eq!(bench.ours(&format!("{common} prepare")).code, Some(0));
    let said = bench.ours_text(&format!("{common} --report-layout=master run"));
    let (_, block) = said.split_once("\nThroughput:\n").unwrap_or_else(|| panic!("{said}"));
    let figures = regex::Regex::new(r"[\d.]+").unwrap();
    let lines: Vec<String> = block.lines().take(5).map(|line| figures.replace_all(line, "#").into_owned()).collect();
    let wanted = [
        "         read:  IOPS=# # MiB/s (# MB/s)",
        "         write: IOPS=# # MiB/s (# MB/s)",
        "         fsync: IOPS=#",
        "",
        "Latency (ms):",
    ];
    assert_eq!(lines, wanted, "{said}");
    assert!(!said.contains("File operations:") && !said.contains("events/s (eps)"), "{said}");
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

/// Sessions that sleep and query; hooks that use connections of their own.
const HOOKS: &str = "
    ffi.cdef'int usleep(unsigned int);'
    function init() local con = sysbench.sql.driver():connect() for _ = 1, 7 do con:query('SELECT 1') end end
    function thread_init() con = sysbench.sql.driver():connect() end
    function event() con:query('SELECT 1') ffi.C.usleep(1500000) end
    local function ask(kind, stat)
      own = own or sysbench.sql.driver():connect()
      print(kind, sysbench.tid, own:query_row('SELECT 1 + 1'), stat.events < 3, stat.reads > 7, stat.other)
      own:query('CREATE TABLE IF NOT EXISTS seen(a INT)')
      own:query('INSERT INTO seen VALUES (1)')
    end
    if os.getenv('HOOK') ~= 'cumulative' then
      function sysbench.hooks.report_intermediate(stat)
        if own then return end -- a second one, on a machine that is busy
        ask('line', stat)
        own:query('SELECT nosuch')
        print('not reached')
      end
    else
      function sysbench.hooks.report_cumulative(stat) ask('block', stat) end
    end
    function done() print(sysbench.sql.driver():connect():query_row('SELECT COUNT(*) FROM seen')) end";

#[test]
fn the_hook_of_lines_uses_the_database_and_sees_what_init_did() {
    Bench::new(&[("it.lua", HOOKS)]).same_on_servers(&["it.lua run --events=2 --report-interval=1"]);
}

#[test]
fn the_hook_of_checkpoints_uses_the_database() {
    let bench = Bench::new(&[("it.lua", HOOKS)]).with("HOOK", "cumulative");
    bench.same_on(Kind::MariaDb, &["it.lua run --events=2 --report-checkpoints=1"]);
}

#[test]
fn a_forced_shutdown_ends_with_the_hook_and_without_done() {
    let bench = Bench::new(&[(
        "it.lua",
        "ffi.cdef'int usleep(unsigned int);'
         n = 0
         -- Two events of the second thread are done, however slow the machine is; the first thread never gets there.
         function event(id) n = n + 1 if id == 0 then ffi.C.usleep(600000000) end return n == 3 end
         function thread_done(id) print('thread_done', id) end
         function done() print('done') end
         function sysbench.hooks.report_cumulative(stat)
           print('report', sysbench.tid, stat.events, stat.threads_running, stat.time_total >= 2)
         end",
    )]);
    bench.same("it.lua run --threads=2 --time=1 --forced-shutdown=1");
}

#[test]
fn a_forced_shutdown_waits_for_nobody() {
    // Processes that it does not wait for keep running, and are ended here.
    let script = "function event(id) os.execute('echo $$ >> shells; exec sleep 600 > /dev/null 2>&1') end
        function done() print('no') end";
    let bench = Bench::new(&[("it.lua", script)]);
    bench.same("it.lua run --time=1 --forced-shutdown=1 --histogram");
    let shells = std::fs::read_to_string(bench.path("shells")).unwrap();
    assert_eq!(shells.lines().count(), 2, "one of each program: {shells}");
    for shell in shells.lines() {
        kill(Pid::from_raw(shell.parse().unwrap()), Signal::SIGKILL).expect("the program did not wait for it");
    }
}

#[test]
fn verbosity_has_its_lines_and_debugging_its_table() {
    let bench = bench();
    for line in [
        "it.lua run --events=3 --verbosity=5",
        "it.lua run --events=3 --debug",
        "it.lua run --verbosity=-1",
        "it.lua run --verbosity=6",
        "stop.lua run --histogram --time=1",
        "cpu run --events=3 --verbosity=5",
    ] {
        bench.same(line);
    }
    // The order in which threads report that they have started is chance.
    for line in ["it.lua run --events=3 --rate=100 --debug", "cpu run --events=3 --rate=1000 --debug"] {
        let lines = |did: Did| {
            let mut lines: Vec<String> = did.stdout.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(bench.ours(line)), lines(bench.oracle(line)), "sysbench {line}");
    }
}

/// One event a tenth of a second, 2,000 wanted: almost all of them wait, up to the end.
#[test]
fn the_last_line_of_a_rate_counts_what_still_waits() {
    let bench = bench();
    let line = "slow.lua run --time=2 --report-interval=1 --rate=1000";
    let queues = |text: &str| -> Vec<(u64, u64)> {
        let queue = regex::Regex::new(r"queue length: (\d+) concurrency: (\d+)").unwrap();
        let number = |found: &regex::Captures<'_>, at: usize| found[at].parse().unwrap();
        queue.captures_iter(text).map(|found| (number(&found, 1), number(&found, 2))).collect()
    };
    for text in [bench.oracle_text(line), bench.ours_text(line)] {
        let [(first, _), (last, running)] = queues(&text)[..] else { panic!("{text}") };
        assert!((600..1300).contains(&first) && (1500..2400).contains(&last) && running == 1, "{text}");
    }
}
