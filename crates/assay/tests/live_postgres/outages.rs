//! Servers that crash, come back, stay away, or stall, and interrupts by the user.

#[path = "../common/outages.rs"]
mod shared;

use insta::assert_snapshot;
use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::{ServerSetup, redact};

use crate::common::{Folder, ONE_TABLE};
use crate::on_every_version;
use shared::count;

#[test]
fn a_killed_server_that_comes_back_is_an_outage_in_the_intervals_and_no_end() {
    on_every_version(shared::comes_back);
}

#[test]
fn a_server_that_stays_away_ends_the_run_with_what_was_measured() {
    on_every_version(|kind| {
        assert_snapshot!(shared::stays_away(kind), @r"
        error: cannot connect to postgres://app@127.0.0.1:[PORT]/app
          connecting to 127.0.0.1:[PORT]: connection refused

        hint: check that the server is running and listening on this address and port
        ");
    });
}

#[test]
fn a_server_that_shuts_down_in_order_is_waited_for_too() {
    on_every_version(|kind| {
        let (folder, server) = (Folder::new(), kind.start(&ServerSetup::default()).unwrap());
        folder.write("one_table.lua", ONE_TABLE);
        let common = format!("./one_table.lua --db {}", server.url("app"));
        folder.expect(&format!("prepare {common}"), 0);
        let line = format!("run {common} --sessions 2 --time 0 --interval 100ms --format json --no-record");
        let mut started = folder.start(&line);
        started.wait_for("   0.2   ");
        server.restart().unwrap();
        started.wait_for("is back");
        for _ in 0..3 {
            started.wait_for_interval(2);
        }
        started.signal(Signal::SIGTERM);
        let ran = started.finish();
        assert_eq!(ran.code, Some(0), "{}", ran.shown());
        let total = &ran.findings()["stages"][0]["total"];
        assert_eq!((count(&total["reconnects"]), count(&total["failed"])), (2, 0), "{total}");
        // The server was asked to stop, and has rolled back what it did not confirm.
        let seen: u64 = server.sql("app", "SELECT SUM(n) FROM counter").unwrap().trim().parse().unwrap();
        let expected = count(&total["transactions"]);
        assert!((expected..=expected + 2).contains(&seen), "{seen}: {total}");
    });
}

#[test]
fn a_server_that_stands_still_shows_in_response_times_and_no_due_transaction_is_lost() {
    on_every_version(|kind| {
        let (folder, server) = (Folder::new(), kind.start(&ServerSetup::default()).unwrap());
        folder.write("one_table.lua", ONE_TABLE);
        let common = format!("./one_table.lua --db {}", server.url("app"));
        folder.expect(&format!("prepare {common}"), 0);
        let line = format!("run {common} --sessions 8 --rate 200 --time 3s --interval 100ms --format json --no-record");
        // One run keeps everything that was due, the other drops what exceeds its backlog limit.
        let mut keeps = folder.start(&line);
        let drops = folder.start(&format!("{line} --backlog-max 50"));
        keeps.wait_for("   0.8   ");
        server.suspend().unwrap();
        for _ in 0..10 {
            keeps.wait_for_interval(8);
        }
        server.resume().unwrap();
        let (keeps, drops) = (keeps.finish(), drops.finish());
        for ran in [&keeps, &drops] {
            assert_eq!(ran.code, Some(0), "{}", ran.shown());
            let stage = &ran.findings()["stages"][0];
            let (total, open) = (&stage["total"], &stage["open"]);
            let of = |tally: &Value, key: &str| count(&tally[key]);
            assert_eq!(
                of(open, "due"),
                of(total, "transactions")
                    + of(total, "failed")
                    + of(open, "dropped")
                    + of(open, "unstarted")
                    + of(total, "unfinished"),
                "{stage}"
            );
            assert_eq!(of(open, "due"), 600, "{stage}");
            // Eight were at the server; all others waited for a session, and were then served as fast as ever: even on
            // a busy machine in less than half of the duration of the stall.
            assert!(of(&total["service"], "p50_ns") < 350_000_000, "{stage}");
            assert!(of(&total["service"], "max_ns") > 700_000_000, "{stage}");
            assert!(of(&total["response"], "max_ns") > 700_000_000, "{stage}");
        }
        let stage = &keeps.findings()["stages"][0];
        assert_eq!(count(&stage["open"]["dropped"]), 0);
        assert!(count(&stage["open"]["backlog_max"]) > 100, "{stage}");
        let response = &stage["total"]["response"];
        assert!(count(&response["p99_ns"]) > 700_000_000, "{stage}");
        // A third of all transactions was due while nothing answered, evenly over that time: a tenth waited for half of
        // it.
        assert!(count(&response["p90_ns"]) > 400_000_000, "{stage}");
        let stage = &drops.findings()["stages"][0];
        assert!(count(&stage["open"]["dropped"]) > 50, "{stage}");
        // Transactions that idle sessions are about to start are part of the backlog too.
        assert!(count(&stage["open"]["backlog_max"]) <= 58, "{stage}");
    });
}

#[test]
fn an_interrupt_ends_a_run_with_report_and_record() {
    on_every_version(|kind| shared::is_interrupted(kind, "--ignore-errors 23505"));
}

#[test]
fn a_server_that_was_never_there_is_named() {
    let folder = Folder::new();
    let port = testkit::free_port().unwrap().to_string();
    let told = |url: &str| {
        let ran = folder.expect(&format!("check oltp_read_only --db {}", url.replace("[PORT]", &port)), 4);
        redact::replace(&ran.stderr, &[(&port, "[PORT]")])
    };
    assert_snapshot!(told("postgres://app@127.0.0.1:[PORT]/app"), @r"
    error: cannot connect to postgres://app@127.0.0.1:[PORT]/app
      connecting to 127.0.0.1:[PORT]: connection refused

    hint: check that the server is running and listening on this address and port
    ");
    assert_snapshot!(told(&format!("postgres://app@/app?host={}&port=[PORT]", folder.path().display())), @r"
    error: cannot connect to postgres://app@/app?host=[FOLDER]&port=[PORT]
      connecting to [FOLDER]/.s.PGSQL.[PORT]: no such file or directory

    hint: there is no such socket file: start the server, or check the socket path in its configuration
    ");
}

/// Inserts a row and acknowledges its number.
const ACKNOWLEDGED: &str = r#"
function prepare() sysbench.sql.driver():connect():query("CREATE TABLE kept (id SERIAL PRIMARY KEY)") end
function thread_init() con = sysbench.sql.driver():connect() end
function event() assay.acknowledge(tonumber((con:query_row("INSERT INTO kept VALUES (DEFAULT) RETURNING id")))) end
function verify()
  local con, lost = sysbench.sql.driver():connect(), 0
  for id in assay.acknowledged() do
    if not con:query_row("SELECT 1 FROM kept WHERE id = " .. id) then lost = lost + 1 end
  end
  if lost > 0 then print("some rows are missing") end
  return lost == 0
end
"#;

#[test]
fn a_kill_check_finds_what_a_server_lost_that_had_acknowledged_it() {
    let server = testkit::Kind::Postgres.start(&ServerSetup::default()).unwrap();
    // The log is written when the writer wakes up, and by nobody else at this low rate.
    for setting in ["wal_writer_delay = '10s'", "wal_writer_flush_after = '1GB'", "bgwriter_lru_maxpages = 0"] {
        server.sql("", &format!("ALTER SYSTEM SET {setting};")).unwrap();
    }
    for (commit, code) in [("on", 0), ("off", 1)] {
        let folder = Folder::new();
        folder.write("kept.lua", ACKNOWLEDGED);
        let database = server.fresh_database().unwrap();
        server.sql("", &format!("ALTER DATABASE {database} SET synchronous_commit = {commit};")).unwrap();
        server.restart().unwrap();
        let common = format!("./kept.lua --db {}", server.url(&database));
        folder.expect(&format!("prepare {common}"), 0);
        let crash = "until test -e back; do sleep 0.1; done";
        let line = format!("run {common} --sessions 2 --rate 50 --time 4s --no-record --kill-check '{crash}'");
        let mut started = folder.start(&line);
        started.wait_for("kill check: ");
        server.kill9().unwrap();
        server.restart().unwrap();
        folder.write("back", "");
        let ran = started.finish();
        assert_eq!(ran.code, Some(code), "synchronous_commit = {commit}: {}", ran.shown());
        let said = if code == 0 { "none lost in the crash" } else { "some were lost in the crash" };
        assert!(ran.stderr.contains(said), "{}", ran.shown());
    }
}

#[test]
fn a_kill_check_whose_command_crashes_nothing_is_an_error() {
    on_every_version(|kind| {
        let (folder, server) = (Folder::new(), kind.shared());
        folder.write("kept.lua", ACKNOWLEDGED);
        let common = format!("./kept.lua --db {}", server.url(&server.fresh_database().unwrap()));
        folder.expect(&format!("prepare {common}"), 0);
        let ran = folder.expect(&format!("run {common} --time 1s --no-record --quiet --kill-check true"), 5);
        assert_snapshot!(ran.stderr, @r"
        kill check: true
        error: the --kill-check command did not crash the server: no connection was lost during the run

        hint: it must crash the server under test, for example with `kill -9`, and restart it
        ");
    });
}
