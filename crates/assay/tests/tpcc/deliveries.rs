//! Deferred deliveries, and their result file.

use super::{Place, SMALL, places};

/// The lines of a journal, each by its columns.
fn journal(place: &Place, name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(place.folder.path().join(name)).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().unwrap();
    assert_eq!(head[..7], ["due", "begun", "done", "set", "warehouse", "carrier", "order_1"]);
    assert_eq!((head.len(), head[15].as_str()), (16, "order_10"));
    let lines: Vec<_> = lines.collect();
    assert!(lines.iter().all(|line| line.len() == 16), "{text}");
    lines
}

#[test]
fn deferred_deliveries_are_counted_once_and_have_a_result_file() {
    for place in places() {
        place.expect("prepare", SMALL, 0);
        let line = "--deferred-delivery --journal d.csv --transactions 480 --sessions 2 --seed 1 --format json";
        let ran = place.run_checked(line);
        let findings = ran.findings();
        let (stage, total) = (&findings["stages"][0], &findings["stages"][0]["total"]);
        let types = total["types"].as_array().unwrap();
        let names: Vec<&str> = types.iter().map(|of_type| of_type["name"].as_str().unwrap()).collect();
        assert_eq!(names.iter().filter(|name| name.starts_with("delivery")).count(), 1, "{names:?}");
        let delivery = types.iter().find(|of_type| of_type["name"] == "delivery").unwrap();
        // One per deck of 23, as in the throughput and the mix.
        let done = delivery["transactions"].as_u64().unwrap();
        assert!((18..=22).contains(&done), "{total}");
        assert_eq!(total["transactions"].as_u64().unwrap() + total["rolled_back"].as_u64().unwrap(), 480, "{total}");
        let share = delivery["share"].as_f64().unwrap();
        assert!((share - done as f64 / 480.0).abs() < 1e-9, "{total}");
        let limits = stage["audit"].as_array().unwrap().iter().filter(|rule| rule["name"] == "p90 of delivery");
        let limits: Vec<_> = limits.map(|rule| (rule["clause"].as_str().unwrap(), &rule["high"])).collect();
        assert_eq!(limits, [("2.7.2.2", &80e9.into())], "{stage}");
        let lines = journal(&place, "d.csv");
        assert_eq!(lines.len() as u64, done);
        // RFC 3339 times with the same precision sort by time.
        assert!(lines.iter().all(|line| line[0] <= line[1] && line[1] < line[2]), "{lines:?}");
        // The orders confirm what the file says was delivered, and nothing else was: each session has its own
        // warehouse.
        let mut delivered = String::new();
        for (at, line) in lines.iter().enumerate() {
            for (d, order) in line[6..].iter().enumerate() {
                let or = if at + d == 0 { "" } else { " OR " };
                let (w, carrier) = (&line[4], &line[5]);
                let d = d + 1;
                delivered +=
                    &format!("{or}(o_w_id = {w} AND o_d_id = {d} AND o_id = {order} AND o_carrier_id = {carrier})");
            }
        }
        let all = lines.len() * 10;
        place.folder.write(
            "delivered.lua",
            &format!(
                r#"
sysbench.cmdline.commands = {{ go = {{ function()
  local con = sysbench.sql.driver():connect()
  local found = con:query_row([[SELECT COUNT(*) FROM orders1 WHERE {delivered}]])
  local all = con:query_row("SELECT COUNT(*) FROM orders1 WHERE o_id > 42 AND o_carrier_id IS NOT NULL")
  print(found, all)
  return tonumber(found) == {all} and tonumber(all) == {all}
end }} }}
"#
            ),
        );
        place.folder.expect(&format!("exec ./delivered.lua go --db {}", place.url), 0);
        place.expect("cleanup", "", 0);
    }
}

#[test]
fn a_delivery_skips_districts_without_orders_and_says_so() {
    let place = Place::sqlite();
    place.expect("prepare", "--customers 60 --items 200", 0);
    // 18 orders wait in each district, and none is added; one district has fewer.
    place.sql("UPDATE orders1 SET o_carrier_id = 1 WHERE o_d_id = 4 AND o_id = 43");
    place.sql("DELETE FROM new_orders1 WHERE no_d_id = 4 AND no_o_id = 43");
    let line = "--mix 0,0,0,1,0 --deferred-delivery --journal d.csv --transactions 200 --format json --no-record";
    let findings = place.expect("run", line, 0).findings();
    let lines = journal(&place, "d.csv");
    assert_eq!(lines.len(), 200);
    for (at, line) in lines.iter().enumerate() {
        let order = |d: usize| {
            let oldest = 43 + at + usize::from(d == 4);
            if oldest > 60 { String::new() } else { oldest.to_string() }
        };
        assert_eq!(line[6..], (1..=10).map(order).collect::<Vec<_>>(), "delivery {at}");
    }
    let stage = &findings["stages"][0];
    let is_meant = |rule: &&serde_json::Value| rule["name"] == "deliveries that skip a district";
    let rule = stage["audit"].as_array().unwrap().iter().find(is_meant).unwrap();
    assert_eq!((&rule["verdict"], &rule["observed"], &rule["count"]), (&"failed".into(), &0.915.into(), &200.into()));
    assert!(stage.to_string().contains("skipped_districts"), "{stage}");
}

#[test]
fn a_journal_that_cannot_be_written_costs_the_run_nothing_else() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    let line = "--deferred-delivery --transactions 480 --seed 1 --record kept.json.zst --force";
    let ran = place.expect("run", &format!("{line} --journal /dev/full --check"), 1);
    assert!(ran.stdout.contains("delivery"), "{}", ran.shown());
    assert!(ran.stderr.contains("warning: cannot write the journal /dev/full: No space left"), "{}", ran.shown());
    assert!(ran.stderr.contains("error: the audit of tpcc failed"), "{}", ran.shown());
    let ran = place.expect("run", &format!("{line} --journal /dev/full"), 5);
    assert!(ran.stdout.contains("delivery"), "{}", ran.shown());
    assert!(ran.stderr.contains("error: cannot write the journal /dev/full: No space left"), "{}", ran.shown());
    assert!(place.folder.names().contains(&"kept.json.zst".to_owned()));

    let ran = place.expect("run", &format!("{line} --journal nowhere/d.csv"), 5);
    assert!(
        ran.stderr.contains("error: cannot write the journal nowhere/d.csv: there is no folder nowhere"),
        "{}",
        ran.shown()
    );
    assert_eq!(ran.stdout, "", "nothing was run");
    // A run without a measured part writes no file, and neither does a workload without a journal.
    place.expect("run", "--journal d.csv --warehouses 9 --deferred-delivery", 2);
    place.folder.write("plain.lua", "function event() end");
    let plain = format!("run ./plain.lua --db {} --transactions 5 --journal d.csv --no-record", place.url);
    let ran = place.folder.expect(&plain, 3);
    assert!(ran.stderr.contains("error: workload plain does not write a journal"), "{}", ran.shown());
    assert!(!place.folder.names().contains(&"d.csv".to_owned()));
    // Each trial has its own file.
    place.expect("run", "--deferred-delivery --transactions 480 --journal d.csv --trials 2 --no-record", 0);
    assert!(!journal(&place, "d-2.csv").is_empty() && !journal(&place, "d-1.csv").is_empty());
}
