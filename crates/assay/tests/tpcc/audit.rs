//! The audit and the check detect a workload that cheats, and accept the correct one.

use super::{Place, SMALL};

/// Rules broken by a run of this script (`tpcc` itself if it is empty), except those about the size of its tables.
fn broken_rules(place: &Place, script: &str) -> Vec<String> {
    place.folder.write("workload.lua", &format!("require('tpcc')\n{script}"));
    let line = format!(
        "run ./workload.lua --db {} --sessions 1 --transactions 2300 --seed 1 --format json --no-record",
        place.url
    );
    let findings = place.folder.expect(&line, 0).findings();
    let audit = findings["stages"][0]["audit"].as_array().unwrap();
    assert!(audit.len() >= 20, "{audit:?}");
    let failed = audit.iter().filter(|rule| rule["verdict"] == "failed");
    let names: Vec<String> = failed.map(|rule| rule["name"].as_str().unwrap().to_owned()).collect();
    let (size, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name == "new-orders on full-size tables");
    assert_eq!(size.len(), 1, "small tables are no TPC-C");
    others
}

/// The rules on NURand, in the order of the report.
const NOT_SKEWED: [&str; 8] = [
    "items favored by NURand",
    "customers favored by NURand",
    "last names favored by NURand",
    "favored customers in the tables",
    "favored items in the tables",
    "failed tests of random orders",
    "failed tests of random payments",
    "failed tests of random order-status",
];

#[test]
fn the_audit_fails_for_a_workload_that_breaks_its_rules_and_for_no_other() {
    let place = Place::sqlite();
    // Enough orders in each district for all deliveries of the five runs.
    place.expect("prepare", "--warehouses 2 --customers 400 --items 200", 0);
    assert_eq!(broken_rules(&place, ""), [""; 0]);
    assert_eq!(
        broken_rules(&place, "function supply_warehouse(w) return w end  function customer_warehouse(w) return w end"),
        ["remote order lines", "remote payments", "failed tests of random orders", "failed tests of random payments"]
    );
    let redrawn = "local fixed = nurand
        function nurand(a, c, low, high) return fixed(a, sysbench.rand.uniform(0, a), low, high) end";
    assert_eq!(broken_rules(&place, redrawn), NOT_SKEWED);
    let even = "function nurand(a, c, low, high) return sysbench.rand.uniform(low, high) end";
    assert_eq!(broken_rules(&place, even), NOT_SKEWED);
    place.expect("check", "", 0);
}

#[test]
fn a_run_with_check_has_the_verdict_of_its_audit_as_exit_code() {
    let place = Place::sqlite();
    for (at_most, with_check, code) in [(0.6, "--check", 0), (0.4, "--check", 1), (0.4, "", 0)] {
        place.folder.write(
            "coin.lua",
            &format!(
                r#"
sysbench.cmdline.commands = {{ check = {{ function() return true end }} }}
assay.audit{{ name = "heads", part = "heads", whole = "tosses", high = {at_most} }}
function event()
  assay.count("tosses")
  if sysbench.rand.uniform(0, 1) == 1 then assay.count("heads") end
end
"#
            ),
        );
        let line = format!("run ./coin.lua --db {} --transactions 4000 --seed 1 --no-record {with_check}", place.url);
        let ran = place.folder.expect(&line, code);
        assert_eq!(ran.stderr.contains("error: the audit of ./coin.lua failed: heads"), code == 1, "{}", ran.shown());
        assert_eq!(ran.stdout.contains("FAILED"), at_most < 0.5, "{}", ran.shown());
    }
}

#[test]
fn the_check_notices_stock_counters_that_are_left_alone() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    place.folder.write(
        "lazy.lua",
        r#"
require("tpcc")
local statement = require("tpcc_common").statements.update_stock
statement[1] = statement[1]:gsub("s_order_cnt %+ 1", "s_order_cnt")
"#,
    );
    let line = format!("run ./lazy.lua --db {} --transactions 100 --seed 1 --check --no-record", place.url);
    let ran = place.folder.expect(&line, 1);
    let broken = "clause 2.4.2.2: s_ytd, s_order_cnt and s_remote_cnt count the order lines since the load: VIOLATED, for example:";
    assert!(ran.stderr.contains(broken), "{}", ran.shown());
    assert_eq!(ran.stderr.matches("VIOLATED").count(), 1, "{}", ran.shown());
}
