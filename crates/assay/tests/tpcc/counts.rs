//! What a run reports is compared with how much its tables changed, whatever the run was like.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::{Kind, ServerSetup};

use super::common::Folder;
use super::{Place, SMALL, places};

/// Rules that compare a run with its tables, and with what was entered.
const EXACT: [&str; 13] = [
    "orders in the tables",
    "orders in the tables by district",
    "deliveries in the tables",
    "deliveries in the tables by district",
    "cents paid in the tables",
    "cents paid in the tables by district",
    "cents paid to warehouses",
    "dates of orders",
    "dates of deliveries",
    "payments in the tables",
    "dates of payments",
    "not in one database transaction",
    "transactions with too few statements",
];

/// Runs, and returns the audit of each stage: names and verdicts.
fn audits(place: &Place, options: &str) -> Vec<Vec<(String, String)>> {
    let ran = place.expect("run", &format!("{options} --seed 1 --format json --no-record"), 0);
    let findings = ran.findings();
    let text = |rule: &serde_json::Value, field: &str| rule[field].as_str().unwrap().to_owned();
    let rules = |stage: &serde_json::Value| {
        let rules = stage["audit"].as_array().unwrap().iter();
        rules.map(|rule| (text(rule, "name"), text(rule, "verdict"))).collect()
    };
    findings["stages"].as_array().unwrap().iter().map(rules).collect()
}

fn verdict<'a>(audit: &'a [(String, String)], name: &str) -> Option<&'a str> {
    audit.iter().find(|(known, _)| known == name).map(|(_, verdict)| verdict.as_str())
}

#[test]
fn a_run_of_several_stages_with_warmup_did_exactly_what_it_reports() {
    for place in places() {
        place.expect("prepare", SMALL, 0);
        let ways = match place.kind {
            None => vec!["", "--deferred-delivery"],
            Some(_) => {
                place.expect("prepare", &format!("{SMALL} --procedures"), 0);
                vec!["", "--batch-statements", "--procedures", "--prepared off"]
            }
        };
        for way in ways {
            let stages = audits(&place, &format!("{way} --sessions 1,4 --time 1s --warmup 0.3s"));
            assert_eq!(stages.len(), 2);
            assert_eq!(verdict(&stages[0], "orders in the tables"), None, "it is about the whole run");
            for name in EXACT {
                let expected = if name.starts_with("dates") { ["passed", "too_short"].as_slice() } else { &["passed"] };
                let found = verdict(&stages[1], name).unwrap_or_else(|| panic!("{name} {way}: {stages:?}"));
                assert!(expected.contains(&found), "{name} {way} {:?}: {:?}", place.kind, stages[1]);
            }
            let entered = verdict(&stages[1], "transactions with wrong values");
            assert_eq!(entered, (way != "--procedures").then_some("passed"), "{way} {:?}", place.kind);
        }
        place.expect("check", "", 0);
        place.expect("cleanup", "", 0);
    }
}

#[test]
fn work_of_somebody_else_is_a_difference() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    place.folder.write(
        "disturbed.lua",
        r#"
require("tpcc")
local real = done
function done()
  local con = sysbench.sql.driver():connect()
  con:query("UPDATE district1 SET d_ytd = d_ytd + 1 WHERE d_w_id = 1 AND d_id = 3")
  con:close()
  real()
end
"#,
    );
    let line = format!("run ./disturbed.lua --db {} --transactions 50 --seed 1 --no-record", place.url);
    let ran = place.folder.expect(&line, 0);
    let failed: Vec<&str> = ran.stdout.lines().filter(|line| line.ends_with("FAILED")).collect();
    let [paid, weighted, small] = &failed[..] else { panic!("{}", ran.shown()) };
    assert!(paid.starts_with("cents paid in the tables (2.5.2.2)"), "{paid}");
    assert!(weighted.starts_with("cents paid in the tables by district"), "{weighted}");
    assert!(small.starts_with("new-orders on full-size tables"), "{small}");
}

#[test]
fn a_quiet_check_prints_only_what_is_violated() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    let ran = place.expect("check", "--quiet --no-record", 0);
    assert_eq!(ran.stderr, "", "{}", ran.shown());
    place.sql("UPDATE warehouse1 SET w_ytd = w_ytd + 1 WHERE w_id = 1");
    let ran = place.expect("check", "--quiet --no-record", 1);
    assert!(!ran.stderr.contains("holds"), "{}", ran.shown());
    assert_eq!(ran.stderr.matches("VIOLATED").count(), 2, "{}", ran.shown());
}

#[test]
fn a_kill_check_looks_for_orders_deliveries_and_payments() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    // A script that loses what it has acknowledged, and looks for it as after a crash.
    place.folder.write(
        "losing.lua",
        r#"
require("tpcc")
local keys, tpcc, verify = {}, require("tpcc_common"), require("tpcc_verify")
assay.acknowledge = function(...) keys[#keys + 1] = { ... } end
local function lost(statement)
  local con = sysbench.sql.driver():connect()
  if statement then con:query(statement) end
  con:close()
  table.sort(keys, function(a, b)
    for i = 1, 5 do
      if a[i] ~= b[i] then return (a[i] or 0) < (b[i] or 0) end
    end
    return false
  end)
  assay.acknowledged = function()
    local i = 0
    return function()
      i = i + 1
      return unpack(keys[i] or {})
    end
  end
  return not verify.all()
end
function thread_done()
  print("intact", lost())
  print("without a payment", lost("DELETE FROM history1 WHERE h_amount <> 10 AND h_c_id = (SELECT MAX(h_c_id) FROM history1 WHERE h_amount <> 10)"))
  print("without a delivery", lost("UPDATE orders1 SET o_carrier_id = NULL WHERE o_id = 43 AND o_d_id = 2 AND o_w_id = 1"))
  print("without an order", lost("DELETE FROM orders1 WHERE o_id = 70 AND o_d_id = 3 AND o_w_id = 1"))
end
"#,
    );
    let line = format!("run ./losing.lua --db {} --sessions 1 --transactions 460 --seed 1 --no-record", place.url);
    let ran = place.folder.expect(&line, 0);
    let said: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| {
            line.starts_with("intact") || line.starts_with("without") || line.contains("acknowledged, but missing")
        })
        .collect();
    assert_eq!(said[0], "intact\tfalse", "{}", ran.shown());
    assert!(said[1].starts_with("acknowledged, but missing: orders 0, deliveries 0, payments "), "{}", ran.shown());
    assert_eq!(said[2], "without a payment\ttrue", "{}", ran.shown());
    assert!(said[3].starts_with("acknowledged, but missing: orders 0, deliveries 1, payments "), "{}", ran.shown());
    assert_eq!(said[4], "without a delivery\ttrue", "{}", ran.shown());
    assert!(said[5].starts_with("acknowledged, but missing: orders 1, deliveries 1, payments "), "{}", ran.shown());
    assert_eq!(said[6], "without an order\ttrue", "{}", ran.shown());
}

#[test]
fn a_server_that_crashes_keeps_all_transactions_or_is_reported() {
    if !Kind::Postgres.present() {
        return;
    }
    let server = Kind::Postgres.start(&ServerSetup::default()).unwrap();
    // The log is written when the writer wakes up, and by nobody else at this low rate.
    for setting in ["wal_writer_delay = '10s'", "wal_writer_flush_after = '1GB'", "bgwriter_lru_maxpages = 0"] {
        server.sql("", &format!("ALTER SYSTEM SET {setting};")).unwrap();
    }
    for (commit, code) in [("on", 0), ("off", 1)] {
        let folder = Folder::new();
        let database = server.fresh_database().unwrap();
        let common = format!("tpcc --db {}", server.url(&database));
        folder.expect(&format!("prepare {common} {SMALL}"), 0);
        server.sql("", &format!("ALTER DATABASE {database} SET synchronous_commit = {commit};")).unwrap();
        server.restart().unwrap();
        // A writer that wakes up between the last commit and the crash would save what is to be lost.
        let writer = server.sql("", "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'").unwrap();
        let writer = Pid::from_raw(writer.trim().parse().unwrap());
        kill(writer, Signal::SIGSTOP).unwrap();
        let crash = "until test -e back; do sleep 0.1; done";
        let line =
            format!("run {common} --sessions 4 --rate 100 --time 4s --no-record --format json --kill-check '{crash}'");
        let mut started = folder.start(&line);
        started.wait_for("kill check: ");
        server.kill9().unwrap();
        server.restart().unwrap();
        folder.write("back", "");
        let ran = started.finish();
        assert_eq!(ran.code, Some(code), "synchronous_commit = {commit}: {}", ran.shown());
        let findings = ran.findings();
        let rules = findings["stages"][0]["audit"].as_array().unwrap();
        let verdict = |name: &str| rules.iter().find(|rule| rule["name"] == name).unwrap()["verdict"].as_str().unwrap();
        let found = ran.stderr.lines().find(|line| line.starts_with("acknowledged, but missing: "));
        assert_eq!(found.is_some(), code == 1, "{}", ran.shown());
        for (kind, rule) in [
            ("orders", "orders in the tables"),
            ("deliveries", "deliveries in the tables"),
            ("payments", "cents paid in the tables"),
        ] {
            let is_kept = found.is_none_or(|line| line.contains(&format!("{kind} 0")));
            assert_eq!(verdict(rule), if is_kept { "passed" } else { "failed" }, "{}", ran.shown());
        }
    }
}
