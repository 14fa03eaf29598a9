//! Ctrl-C, SIGTERM, and being killed.

use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;
use testkit::Kind;

use crate::common::{Folder, ONE_TABLE};

/// Never finishes a transaction.
const STUCK: &str = r#"--- Sleeps for a minute.
ffi.cdef("int usleep(unsigned int)")
function event()
  print("asleep")
  ffi.C.usleep(60 * 1000 * 1000)
end
"#;

/// One transaction takes two seconds of CPU time in a single statement.
const SLOW_ONCE: &str = r#"--- Counts to a number, once to a large one.
local count = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) SELECT count(*) FROM c"
local con, rows
local done = 0

function thread_init()
  con = sysbench.sql.driver():connect()
  local before = os.clock()
  con:query(count:format(200000))
  rows = 200000 * 2 / (os.clock() - before)
end

function event()
  done = done + 1
  con:query(count:format(done == 50 and rows or 1))
end
"#;

#[test]
fn the_first_interrupt_ends_the_run_with_report_and_record() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 143)] {
        let folder = Folder::new();
        folder.write("one_table.lua", ONE_TABLE);
        let mut started = folder.start("run ./one_table.lua --time 10m --interval 100ms");
        started.wait_for("   0.2   ");
        started.signal(signal);
        let ran = started.finish();
        assert_eq!(ran.code, Some(code), "{}", ran.shown());
        assert!(ran.stdout.contains("interrupted"), "{}", ran.shown());
        assert!(ran.stderr.contains("record: assay-records/"), "{}", ran.shown());
        assert_eq!(folder.names(), ["assay-records", "one_table.lua"], "the temporary database is gone");
    }
}

#[test]
fn an_endless_run_is_meant_to_be_interrupted() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let mut started = folder.start("run ./one_table.lua --time 0 --interval 100ms --no-record");
    started.wait_for("   0.2   ");
    started.signal(Signal::SIGINT);
    let ran = started.finish();
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
}

#[test]
fn the_second_interrupt_quits_at_once() {
    let folder = Folder::new();
    folder.write("stuck.lua", STUCK);
    let mut started = folder.start("run ./stuck.lua --time 10m --grace 10m");
    started.wait_for("asleep");
    started.signal(Signal::SIGINT);
    started.wait_for("press Ctrl-C again to quit immediately");
    started.signal(Signal::SIGINT);
    let ran = started.finish();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(130), ""), "{}", ran.shown());
    assert_eq!(folder.names(), ["assay-records", "stuck.lua"], "the temporary database is gone");
}

#[test]
fn a_run_that_is_killed_leaves_a_readable_record() {
    let folder = Folder::new();
    // The first stage ends by its transactions, the second never.
    folder.write(
        "one_table.lua",
        &STUCK.replace("function event()", "local n = 0\nfunction event()\n  n = n + 1\n  if n <= 5 then return end"),
    );
    let mut started = folder.start("run ./one_table.lua --sessions 1,1 --transactions 5 --record r.json.zst");
    // The end of a stage writes what is known so far.
    started.wait_for("step 2 of 2");
    started.signal(Signal::SIGKILL);
    assert_eq!(started.finish().code, None);
    let shown = folder.run("show r.json.zst");
    assert_eq!(shown.code, Some(0), "{}", shown.shown());
    assert!(shown.stdout.contains("one_table"), "{}", shown.shown());
}

/// Everything that a run has said in interval lines until it is killed, but for its last ten seconds, is in its record.
#[test]
fn a_run_that_is_killed_leaves_all_but_its_last_seconds() {
    let folder = Folder::new();
    folder.write(
        "slow.lua",
        "local ffi = require('ffi')\nffi.cdef('int usleep(unsigned int)')\nfunction event() ffi.C.usleep(20000) end\n",
    );
    // Two sessions of one worker do 50 of the 80 transactions that are due per second.
    let line = "run ./slow.lua --rate 80 --sessions 2 --workers 1 --time 1h --interval 100ms --record r.json.zst";
    let mut started = folder.start(line);
    let told: u64 = 130;
    for _ in 0..told {
        started.wait_for_interval(2);
    }
    started.signal(Signal::SIGKILL);
    assert_eq!(started.finish().code, None);
    let record = assay_record::Record::read(&folder.path().join("r.json.zst")).unwrap();
    let stage = &record.stages[0];
    assert_eq!(record.status, assay_record::Status::Running);
    let kept = stage.intervals.len() as u64;
    assert!(kept + 100 >= told, "{kept} of {told} intervals were kept");
    let counted: u64 = stage.intervals.iter().flat_map(|interval| &interval.transactions).sum();
    assert_eq!(stage.total.transactions[0].count, counted, "totals and intervals agree");
    let waiting = stage.intervals.last().unwrap().backlog;
    assert!(waiting > 0 && stage.total.unstarted == waiting, "{} of {waiting}", stage.total.unstarted);
    let shown = folder.expect("show r.json.zst", 0);
    assert!(shown.stdout.contains("the run was killed, or is still going on"), "{}", shown.shown());
    assert!(shown.stdout.contains("not started"), "{}", shown.shown());
}

/// Nothing is sampled of SQLite, so only the run itself can tell. It is suspended for as long as another one takes.
#[test]
fn a_run_that_was_suspended_does_not_blame_its_server() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let mut started = folder.start("run ./one_table.lua --rate 100 --sessions 1 --time 6s --record r.json.zst");
    started.wait_for_interval(1);
    started.signal(Signal::SIGSTOP);
    folder.expect("run ./one_table.lua --rate 1 --sessions 1 --time 3s --no-record", 0);
    started.signal(Signal::SIGCONT);
    let ran = started.finish();
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    let findings = folder.expect("show r.json.zst --format json", 0).findings();
    let outages = findings["stages"][0]["throughput"]["outages"].as_array().unwrap();
    // An outage begins with an interval without a transaction, and three seconds contain two whole intervals.
    let is_ours = |outage: &serde_json::Value| {
        let (halted, length) = (outage["halted_ns"].as_u64().unwrap_or(0), outage["length_ns"].as_u64().unwrap());
        halted >= 2_000_000_000 && halted as f64 >= 0.9 * length as f64
    };
    assert!(outages.iter().any(is_ours), "{outages:?}");
    let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("; assay itself was not running for"), "{}", ran.shown());
    assert!(!said.contains("the server's log"), "{}", ran.shown());
}

/// A statement of SQLite holds up its worker, so the interval in which it began is over long before it is sent.
#[test]
fn an_outage_in_the_middle_of_an_interval_has_its_whole_length() {
    let folder = Folder::new();
    folder.write("slow.lua", SLOW_ONCE);
    folder.expect("run ./slow.lua --rate 100 --sessions 1 --time 6s --record r.json.zst", 0);
    let findings = folder.expect("show r.json.zst --format json", 0).findings();
    let stage = &findings["stages"][0];
    let outage = &stage["throughput"]["outages"][0];
    let slowest = &stage["total"]["service"]["max_ns"];
    assert!(outage["length_ns"].as_u64() >= slowest.as_u64(), "{outage} {slowest}");
    assert!(slowest.as_u64() > Some(1_000_000_000), "{slowest}");
}

/// A limit on the size of files is a full disk that needs no disk.
#[test]
fn a_record_whose_end_could_not_be_written_says_so() {
    let folder = Folder::new();
    folder.write("nothing.lua", "function event() end\n");
    let line = "run ./nothing.lua --sessions 1 --rate 1000 --time 3s --interval 100ms --record r.json.zst --quiet";
    let program = folder.command(line);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 10; exec \"$0\" \"$@\""]).arg(program.get_program());
    limited.args(program.get_args()).current_dir(folder.path());
    for (name, value) in program.get_envs() {
        value.map(|value| limited.env(name, value));
    }
    let output = limited.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("cannot write record r.json.zst"), "{said}");
    let shown = folder.expect("show r.json.zst", 0).stdout;
    assert!(shown.contains("the end of this record could not be written"), "{shown}");
    assert!(!shown.contains("killed"), "{shown}");
}

/// Commands that start programs, make files or wait, and how long each takes on a quiet machine, in milliseconds.
const INTERRUPTED: [(&str, u64); 8] = [
    ("server start postgres --name NAME", 3000),
    ("run tpcb --server mariadb --prepare --time 1s --record NAME.json", 5000),
    ("run tpcb --server postgres --prepare --time 1s --record NAME.json", 4000),
    ("prepare oltp_read_write --table-size 30000 --db sqlite:NAME.db --no-record", 1500),
    ("run oltp_read_write --prepare --table-size 1000 --time 2s --db sqlite:NAME.db --record NAME.json", 2500),
    ("sql 'SELECT 1' --runs 2000 --db sqlite:NAME.db --record NAME.json", 800),
    ("io --size 16M --files 2 --log-size 64K --time 1s --record NAME.json", 1500),
    ("lab run lab.toml --folder NAME", 4000),
];

const SMALL_LAB: &str = r#"title = "Small"
[server.db]
product = "postgres"
[data]
prepare = "tpcb"
[run]
workload = "tpcb"
time = "500ms"
[trials]
count = 2
"#;

/// Processes, of any user, whose environment or arguments have this text.
fn processes_with(mark: &str) -> Vec<String> {
    let read =
        |path: std::path::PathBuf| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    let entries = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let pids =
        entries.filter(|path| path.file_name().unwrap().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()));
    let is_marked = |path: &std::path::PathBuf| {
        let is_over = read(path.join("stat")).rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']));
        !is_over && (read(path.join("environ")).contains(mark) || read(path.join("cmdline")).contains(mark))
    };
    pids.filter(is_marked).map(|path| read(path.join("cmdline")).replace('\0', " ")).collect()
}

#[test]
fn a_command_interrupted_at_any_moment_leaves_nothing_running_and_nothing_half_made() {
    let moments = if std::env::var_os("ASSAY_TEST_MATRIX").is_some() { 10 } else { 1 };
    let mut state = 0x1e55_u64;
    // Knuth's MMIX generator: its high bits.
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    for (number, (line, within)) in (1..).zip(INTERRUPTED) {
        let needs = |product: &str, kind: Kind| line.contains(product) && !kind.present();
        if needs("mariadb", Kind::MariaDb) || needs("postgres", Kind::Postgres) {
            continue;
        }
        // Each has a lab of its own: its first command makes the empty data directory.
        let folder = Folder::new();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        folder.write("lab.toml", SMALL_LAB);
        let mark = folder.path().display().to_string();
        let lab = folder.path().join("lab");
        let variables = [("ASSAY_LAB", lab.to_str().unwrap()), ("PATH", "/usr/bin:/bin")];
        for moment in 0..moments {
            let line = line.replace("NAME", &format!("i{number}-{moment}"));
            let (first, second) = (below(within), below(4) == 0);
            let what = format!("assay {line}, interrupted after {first} ms{}", if second { " twice" } else { "" });
            let begun = std::time::Instant::now();
            let started = folder.start_with(&variables, &line);
            while begun.elapsed().as_millis() < u128::from(first) {
                std::thread::yield_now();
            }
            started.signal(Signal::SIGINT);
            if second {
                started.signal(Signal::SIGINT);
            }
            let ran = started.finish();
            assert!(matches!(ran.code, Some(0 | 130)), "{what}: {}", ran.shown());
            assert!(!ran.stderr.contains(".lock") && !ran.stderr.contains("did not end"), "{what}: {}", ran.shown());
            // A server that was started before the interrupt is what was asked for.
            if line.starts_with("server start") && ran.code == Some(0) {
                folder.expect_with(&variables, &format!("server stop i{number}-{moment} --remove"), 0);
            }
            assert_eq!(processes_with(&mark), [""; 0], "{what}: {}", ran.shown());
            let servers = std::fs::read_dir(lab.join("servers")).into_iter().flatten().flatten();
            let left: Vec<_> = servers.map(|entry| entry.file_name()).collect();
            assert!(left.is_empty(), "{what}: {left:?}");
        }
        // What is there is whole: the same command succeeds, with another name.
        if line.starts_with("server start") {
            folder.expect_with(&variables, &line.replace("NAME", "whole"), 0);
            folder.expect_with(&variables, "server stop whole --remove", 0);
        }
    }
}
