//! Each condition of `check` fails when its data is broken, and no other does.

use std::collections::BTreeSet;

use super::{Place, SMALL, places};

/// What breaks the data, what repairs it, and the clauses that must notice. After a load for 60 customers: orders 1 to 42
/// are delivered, 43 to 60 are new.
const BREAKS: &[(&str, &str, &[&str])] = &[
    (
        "UPDATE warehouse1 SET w_ytd = w_ytd + 1 WHERE w_id = 1",
        "UPDATE warehouse1 SET w_ytd = w_ytd - 1 WHERE w_id = 1",
        &["3.3.2.1", "3.3.2.8"],
    ),
    (
        "UPDATE district1 SET d_ytd = d_ytd - 0.01 WHERE d_w_id = 2 AND d_id = 10",
        "UPDATE district1 SET d_ytd = d_ytd + 0.01 WHERE d_w_id = 2 AND d_id = 10",
        &["3.3.2.1", "3.3.2.9"],
    ),
    (
        "UPDATE district1 SET d_next_o_id = 62 WHERE d_w_id = 1 AND d_id = 3",
        "UPDATE district1 SET d_next_o_id = 61 WHERE d_w_id = 1 AND d_id = 3",
        &["3.3.2.2"],
    ),
    (
        "DELETE FROM new_orders1 WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 50",
        "INSERT INTO new_orders1 (no_w_id, no_d_id, no_o_id) VALUES (1, 1, 50)",
        &["3.3.2.3", "3.3.2.5", "3.3.2.11"],
    ),
    (
        "UPDATE orders1 SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 7",
        "UPDATE orders1 SET o_ol_cnt = o_ol_cnt - 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 7",
        &["3.3.2.4", "3.3.2.6"],
    ),
    (
        "UPDATE orders1 SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 7 THEN 1 ELSE -1 END WHERE o_w_id = 1 AND o_d_id = 1 AND o_id IN (7, 8)",
        "UPDATE orders1 SET o_ol_cnt = o_ol_cnt - CASE o_id WHEN 7 THEN 1 ELSE -1 END WHERE o_w_id = 1 AND o_d_id = 1 AND o_id IN (7, 8)",
        &["3.3.2.6"],
    ),
    (
        "UPDATE orders1 SET o_carrier_id = 5 WHERE o_w_id = 2 AND o_d_id = 4 AND o_id = 60",
        "UPDATE orders1 SET o_carrier_id = NULL WHERE o_w_id = 2 AND o_d_id = 4 AND o_id = 60",
        &["3.3.2.5", "3.3.2.7"],
    ),
    (
        "UPDATE order_line1 SET ol_delivery_d = NULL WHERE ol_w_id = 2 AND ol_d_id = 4 AND ol_o_id = 42 AND ol_number = 5",
        "UPDATE order_line1 SET ol_delivery_d = CURRENT_TIMESTAMP WHERE ol_w_id = 2 AND ol_d_id = 4 AND ol_o_id = 42 AND ol_number = 5",
        &["3.3.2.7"],
    ),
    (
        "UPDATE history1 SET h_amount = 10.01 WHERE h_w_id = 1 AND h_d_id = 2 AND h_c_id = 60",
        "UPDATE history1 SET h_amount = 10.00 WHERE h_w_id = 1 AND h_d_id = 2 AND h_c_id = 60",
        &["3.3.2.8", "3.3.2.9", "3.3.2.10"],
    ),
    (
        "UPDATE customer1 SET c_balance = c_balance + 0.01 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        "UPDATE customer1 SET c_balance = c_balance - 0.01 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        &["3.3.2.10", "3.3.2.12"],
    ),
    (
        "UPDATE customer1 SET c_ytd_payment = 11 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        "UPDATE customer1 SET c_ytd_payment = 10 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        &["3.3.2.12"],
    ),
    (
        "UPDATE customer1 SET c_delivery_cnt = 1 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        "UPDATE customer1 SET c_delivery_cnt = 0 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        &["3.3.2.11"],
    ),
    (
        "UPDATE stock1 SET s_remote_cnt = 1 WHERE s_w_id = 2 AND s_i_id = 200",
        "UPDATE stock1 SET s_remote_cnt = 0 WHERE s_w_id = 2 AND s_i_id = 200",
        &["2.4.2.2"],
    ),
    (
        "UPDATE stock1 SET s_quantity = 9 WHERE s_w_id = 2 AND s_i_id = 200",
        "UPDATE stock1 SET s_quantity = 10 WHERE s_w_id = 2 AND s_i_id = 200",
        &["2.4.2.2"],
    ),
];

/// The clauses that `check` calls broken, each with the rows shown.
fn broken(place: &Place, code: i32) -> BTreeSet<String> {
    let said = place.expect("check", "", code).stderr;
    let clauses = said.lines().filter(|line| line.contains(": BROKEN, by")).map(|line| {
        let (_, rest) = line.split_once("clause ").expect("a broken condition names its clause");
        rest.split_once(':').expect("and what should hold").0.to_owned()
    });
    let clauses: BTreeSet<String> = clauses.collect();
    let rows = said.lines().filter(|line| line.starts_with("  ")).count();
    assert!(rows >= clauses.len(), "{said}");
    clauses
}

#[test]
fn each_condition_fails_when_its_data_is_broken_and_no_other_does() {
    for place in places() {
        place.expect("prepare", SMALL, 0);
        let right = place.expect("check", "", 0);
        assert_eq!(right.stderr.matches(": holds").count(), 14, "{}", right.shown());
        let mut noticed = BTreeSet::new();
        for (break_it, repair_it, clauses) in BREAKS {
            place.sql(break_it);
            let wanted: BTreeSet<String> = clauses.iter().map(|clause| (*clause).to_owned()).collect();
            assert_eq!(broken(&place, 1), wanted, "{break_it} on {}", place.url);
            noticed.extend(wanted);
            place.sql(repair_it);
        }
        assert_eq!(noticed.len(), 13, "all conditions, those of 2.4.2.2 once: {noticed:?}");
        assert_eq!(broken(&place, 0), BTreeSet::new());
    }
}

#[test]
fn a_run_with_check_is_not_begun_on_broken_tables_and_tells_what_it_broke() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    let run = "--transactions 20 --seed 1";
    let ran = place.run_checked(run);
    assert_eq!(ran.stderr.matches("clause 3.3.2.12").count(), 2, "{}", ran.shown());

    place.folder.write(
        "forgetful.lua",
        r#"
require("tpcc")
require("tpcc_common").statements.pay_warehouse[1] = "UPDATE {warehouse} SET w_ytd = w_ytd + 0 * ? WHERE w_id = ?"
"#,
    );
    let ran = place.folder.expect(&format!("run ./forgetful.lua --db {} --check --no-record {run}", place.url), 1);
    assert!(ran.stdout.contains("throughput"), "{}", ran.shown());
    assert!(
        ran.stderr.contains("error: the tables of ./forgetful.lua are not as they should be after the run"),
        "{}",
        ran.shown()
    );
    assert!(
        ran.stderr.contains("clause 3.3.2.8: w_ytd is the sum of its history's h_amount: BROKEN, by"),
        "{}",
        ran.shown()
    );

    let ran = place.expect("run", &format!("--check --no-record {run}"), 1);
    assert!(ran.stderr.contains("before the run, which was not begun"), "{}", ran.shown());
    assert_eq!(ran.stdout, "");
}

#[test]
fn deliveries_that_compete_for_few_orders_leave_the_tables_consistent() {
    for place in places() {
        place.expect("prepare", "--customers 60 --items 200", 0);
        for isolation in ["", "--isolation repeatable-read"] {
            if place.kind.is_none() && !isolation.is_empty() {
                continue;
            }
            let run = "--mix 4,1,0,3,0 --sessions 16 --transactions 500 --seed 1 --retries 1000";
            place.run_checked(&format!("{run} {isolation}"));
        }
    }
}
