//! Ctrl-C, SIGTERM, and being killed.

use nix::sys::signal::Signal;

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
