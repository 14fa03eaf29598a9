//! Each condition of `check` fails if its data is broken, and no other does.

use std::collections::BTreeSet;

use super::{Place, RULES, SMALL, places};

/// How the data is broken and repaired (`` `…` `` is a text), and the beginnings of the conditions that must notice.
/// After a load for 60 customers: orders 1 to 42 are delivered, 43 to 60 are new.
const BREAKS: &[(&str, &str, &[&str])] = &[
    (
        "UPDATE warehouse1 SET w_ytd = w_ytd + 1 WHERE w_id = 1",
        "UPDATE warehouse1 SET w_ytd = w_ytd - 1 WHERE w_id = 1",
        &["3.3.2.1:", "3.3.2.8:"],
    ),
    (
        "UPDATE district1 SET d_ytd = d_ytd - 0.01 WHERE d_w_id = 2 AND d_id = 10",
        "UPDATE district1 SET d_ytd = d_ytd + 0.01 WHERE d_w_id = 2 AND d_id = 10",
        &["3.3.2.1:", "3.3.2.9:"],
    ),
    (
        "UPDATE district1 SET d_next_o_id = 62 WHERE d_w_id = 1 AND d_id = 3",
        "UPDATE district1 SET d_next_o_id = 61 WHERE d_w_id = 1 AND d_id = 3",
        &["3.3.2.2:"],
    ),
    (
        "DELETE FROM new_orders1 WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 50",
        "INSERT INTO new_orders1 (no_w_id, no_d_id, no_o_id) VALUES (1, 1, 50)",
        &["3.3.2.3:", "3.3.2.5:", "3.3.2.11:"],
    ),
    (
        "UPDATE orders1 SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 7 AND o_ol_cnt < 15",
        "UPDATE orders1 SET o_ol_cnt = (SELECT COUNT(*) FROM order_line1 WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 7) WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 7",
        &["3.3.2.4:", "3.3.2.6:"],
    ),
    (
        "UPDATE orders1 SET o_carrier_id = 5 WHERE o_w_id = 2 AND o_d_id = 4 AND o_id = 60",
        "UPDATE orders1 SET o_carrier_id = NULL WHERE o_w_id = 2 AND o_d_id = 4 AND o_id = 60",
        &["3.3.2.5:", "3.3.2.7:", "2.7.4.2: c_delivery_cnt"],
    ),
    (
        "UPDATE orders1 SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 7 THEN 1 ELSE -1 END WHERE o_w_id = 1 AND o_d_id = 1 AND o_id IN (7, 8)",
        "UPDATE orders1 SET o_ol_cnt = o_ol_cnt - CASE o_id WHEN 7 THEN 1 ELSE -1 END WHERE o_w_id = 1 AND o_d_id = 1 AND o_id IN (7, 8)",
        &["3.3.2.6:"],
    ),
    (
        "UPDATE order_line1 SET ol_delivery_d = NULL WHERE ol_w_id = 2 AND ol_d_id = 4 AND ol_o_id = 42 AND ol_number = 5",
        "UPDATE order_line1 SET ol_delivery_d = (SELECT o_entry_d FROM orders1 WHERE o_w_id = 2 AND o_d_id = 4 AND o_id = 42) WHERE ol_w_id = 2 AND ol_d_id = 4 AND ol_o_id = 42 AND ol_number = 5",
        &["3.3.2.7:"],
    ),
    (
        "UPDATE history1 SET h_amount = 10.01 WHERE h_w_id = 1 AND h_d_id = 2 AND h_c_id = 60",
        "UPDATE history1 SET h_amount = 10.00 WHERE h_w_id = 1 AND h_d_id = 2 AND h_c_id = 60",
        &["1.3: columns of history", "3.3.2.8:", "3.3.2.9:", "3.3.2.10:"],
    ),
    (
        "UPDATE customer1 SET c_balance = c_balance + 0.01 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        "UPDATE customer1 SET c_balance = c_balance - 0.01 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        &["3.3.2.10:", "3.3.2.12:"],
    ),
    (
        "UPDATE customer1 SET c_ytd_payment = 11 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        "UPDATE customer1 SET c_ytd_payment = 10 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        &["3.3.2.12:"],
    ),
    (
        "UPDATE customer1 SET c_delivery_cnt = 1 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        "UPDATE customer1 SET c_delivery_cnt = 0 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        &["3.3.2.11:", "2.7.4.2: c_delivery_cnt"],
    ),
    (
        "UPDATE stock1 SET s_remote_cnt = 1 WHERE s_w_id = 2 AND s_i_id = 200",
        "UPDATE stock1 SET s_remote_cnt = 0 WHERE s_w_id = 2 AND s_i_id = 200",
        &["2.4.2.2: s_ytd, s_order_cnt and s_remote_cnt"],
    ),
    (
        "UPDATE stock1 SET s_quantity = s_quantity + 91 WHERE s_w_id = 2 AND s_i_id = 200",
        "UPDATE stock1 SET s_quantity = s_quantity - 91 WHERE s_w_id = 2 AND s_i_id = 200",
        &["2.4.2.2: columns of stock"],
    ),
    (
        "UPDATE stock1 SET s_ytd = NULL WHERE s_w_id = 2 AND s_i_id = 200",
        "UPDATE stock1 SET s_ytd = 0 WHERE s_w_id = 2 AND s_i_id = 200",
        &["2.4.2.2: columns of stock", "2.4.2.2: s_quantity decreased by s_ytd"],
    ),
    (
        "UPDATE item1 SET i_id = 1200 WHERE i_id = 200",
        "UPDATE item1 SET i_id = 200 WHERE i_id = 1200",
        &["1.2.1: item", "4.3.3.1: one item in ten"],
    ),
    (
        "UPDATE stock1 SET s_i_id = 1200 WHERE s_w_id = 2 AND s_i_id = 200",
        "UPDATE stock1 SET s_i_id = 200 WHERE s_w_id = 2 AND s_i_id = 1200",
        &[
            "1.2.1: a warehouse has",
            "2.4.2.2: columns of stock",
            "2.4.2.2: s_quantity decreased by s_ytd",
            "4.3.3.1: one row of stock in ten",
        ],
    ),
    (
        "UPDATE warehouse1 SET w_id = 3 WHERE w_id = 2",
        "UPDATE warehouse1 SET w_id = 2 WHERE w_id = 3",
        &["1.2.1: a warehouse has", "1.2.1: warehouse", "3.3.2.1:", "3.3.2.8:"],
    ),
    (
        "UPDATE customer1 SET c_id = 61 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        "UPDATE customer1 SET c_id = 60 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 61",
        &["1.2.1: a district has", "1.3: columns of customer", "2.5.2.2: c_payment_cnt", "3.3.2.10:"],
    ),
    (
        "UPDATE orders1 SET o_id = 0 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 1",
        "UPDATE orders1 SET o_id = 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 0",
        &["2.4.2.2: the o_id", "3.3.2.6:"],
    ),
    (
        "UPDATE warehouse1 SET w_tax = w_tax + 0.3 WHERE w_id = 2",
        "UPDATE warehouse1 SET w_tax = w_tax - 0.3 WHERE w_id = 2",
        &["1.3: columns of warehouse"],
    ),
    (
        "UPDATE district1 SET d_tax = d_tax + 0.3 WHERE d_w_id = 2 AND d_id = 4",
        "UPDATE district1 SET d_tax = d_tax - 0.3 WHERE d_w_id = 2 AND d_id = 4",
        &["1.3: columns of district"],
    ),
    (
        "UPDATE customer1 SET c_middle = NULL WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        "UPDATE customer1 SET c_middle = `OE` WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        &["1.3: columns of customer"],
    ),
    (
        "UPDATE customer1 SET c_last = `BARBARBAR` WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 2",
        "UPDATE customer1 SET c_last = `BARBAROUGHT` WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 2",
        &["4.3.2.3:"],
    ),
    (
        "UPDATE customer1 SET c_last = `BARBARABAR` WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 2",
        "UPDATE customer1 SET c_last = `BARBAROUGHT` WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 2",
        &["4.3.2.3:"],
    ),
    (
        "UPDATE customer1 SET c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        "UPDATE customer1 SET c_payment_cnt = c_payment_cnt - 1 WHERE c_w_id = 1 AND c_d_id = 2 AND c_id = 60",
        &["2.5.2.2: c_payment_cnt"],
    ),
    (
        "UPDATE history1 SET h_c_d_id = 3 WHERE h_w_id = 1 AND h_d_id = 2 AND h_c_id = 60",
        "UPDATE history1 SET h_c_d_id = 2 WHERE h_w_id = 1 AND h_d_id = 2 AND h_c_id = 60",
        &["1.3: columns of history", "2.5.2.2: c_payment_cnt", "3.3.2.10:"],
    ),
    (
        "UPDATE orders1 SET o_c_id = o_c_id + 60 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 60",
        "UPDATE orders1 SET o_c_id = o_c_id - 60 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 60",
        &["1.3: columns of orders"],
    ),
    (
        "UPDATE orders1 SET o_all_local = 0 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 60",
        "UPDATE orders1 SET o_all_local = 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 60",
        &["2.4.2.2: o_all_local"],
    ),
    (
        "UPDATE orders1 SET o_c_id = o_c_id + 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id IN (59, 60) AND o_c_id < 60",
        "UPDATE orders1 SET o_c_id = o_c_id - 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id IN (59, 60) AND o_c_id < 61",
        &["4.3.3.1: each customer"],
    ),
    (
        "UPDATE order_line1 SET ol_amount = ol_amount + 0.01 WHERE ol_w_id = 2 AND ol_d_id = 4 AND ol_o_id = 60 AND ol_number = 5",
        "UPDATE order_line1 SET ol_amount = ol_amount - 0.01 WHERE ol_w_id = 2 AND ol_d_id = 4 AND ol_o_id = 60 AND ol_number = 5",
        &["4.3.3.1: the ol_amount"],
    ),
    (
        "UPDATE order_line1 SET ol_number = 0 WHERE ol_w_id = 2 AND ol_d_id = 4 AND ol_o_id = 60 AND ol_number = 1",
        "UPDATE order_line1 SET ol_number = 1 WHERE ol_w_id = 2 AND ol_d_id = 4 AND ol_o_id = 60 AND ol_number = 0",
        &["3.3.2.6:"],
    ),
    (
        "UPDATE order_line1 SET ol_quantity = 6 WHERE ol_w_id = 2 AND ol_d_id = 4 AND ol_o_id = 60 AND ol_number = 1",
        "UPDATE order_line1 SET ol_quantity = 5 WHERE ol_w_id = 2 AND ol_d_id = 4 AND ol_o_id = 60 AND ol_number = 1",
        &["1.3: columns of order_line"],
    ),
    (
        "UPDATE item1 SET i_price = i_price + 100 WHERE i_id = 100",
        "UPDATE item1 SET i_price = i_price - 100 WHERE i_id = 100",
        &["1.3: columns of item"],
    ),
];

/// Conditions that `check` reports as broken: clause and condition, each with the rows shown.
fn broken(place: &Place, code: i32) -> BTreeSet<String> {
    let said = place.expect("check", "", code).stderr;
    let conditions = said.lines().filter(|line| line.contains(": VIOLATED")).map(|line| {
        let (_, rest) = line.split_once("clause ").expect("a broken condition names its clause");
        rest.split_once(": VIOLATED").expect("and what should hold").0.to_owned()
    });
    let conditions: BTreeSet<String> = conditions.collect();
    let rows = said.lines().filter(|line| line.starts_with("  ")).count();
    assert!(rows >= conditions.len(), "{said}");
    conditions
}

/// Breaks the data, and fails unless exactly the conditions with these beginnings notice. Returns all of their names.
#[track_caller]
fn noticed(place: &Place, break_it: &str, beginnings: &[&str]) -> BTreeSet<String> {
    place.sql(break_it);
    let mut found = broken(place, 1);
    // Any number of the load that is changed also changes a sum.
    found.retain(|condition| !condition.starts_with("4.3.3.1: numbers of the load"));
    let is_meant = |condition: &String| beginnings.iter().any(|beginning| condition.starts_with(beginning));
    assert!(found.iter().all(is_meant) && found.len() == beginnings.len(), "{break_it} on {}: {found:?}", place.url);
    found
}

#[test]
fn each_condition_fails_when_its_data_is_broken_and_no_other_does() {
    for place in places() {
        // What BREAKS says about customer 60 and order 60 depends on the load.
        place.expect("prepare", &format!("{SMALL} --seed 3"), 0);
        let right = place.expect("check", "", 0);
        assert_eq!(right.stderr.matches(": holds").count(), RULES, "{}", right.shown());
        let mut all = BTreeSet::new();
        for (break_it, repair_it, beginnings) in BREAKS {
            all.extend(noticed(&place, break_it, beginnings));
            place.sql(repair_it);
        }
        // All except the conditions that only apply after transactions.
        assert_eq!(all.len(), 35, "{all:?}");
        assert_eq!(broken(&place, 0), BTreeSet::new());
    }
}

#[test]
fn rows_that_are_gone_and_values_that_were_spoiled_are_noticed() {
    let place = Place::sqlite();
    // Whether another customer for an order breaks more than one condition depends on the load.
    place.expect("prepare", &format!("{SMALL} --seed 3"), 0);
    let database = place.folder.path().join("tpcc.db");
    let right = place.folder.path().join("right.db");
    std::fs::copy(&database, &right).unwrap();
    for (break_it, beginnings) in [
        ("DELETE FROM item1 WHERE i_id > 100", &["1.2.1: item"][..]),
        (
            "DELETE FROM stock1 WHERE s_w_id = 2 AND s_i_id = 199",
            &["1.2.1: a warehouse has", "2.4.2.2: s_quantity decreased by s_ytd"],
        ),
        (
            "UPDATE stock1 SET s_quantity = NULL WHERE s_w_id = 2 AND s_i_id = 200",
            &["2.4.2.2: columns of stock", "2.4.2.2: s_quantity decreased by s_ytd"],
        ),
        ("UPDATE stock1 SET s_dist_04 = NULL WHERE s_w_id = 2 AND s_i_id = 200", &["2.4.2.2: columns of stock"]),
        (
            "UPDATE orders1 SET o_c_id = o_c_id % 60 + 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 60",
            &["4.3.3.1: each customer"],
        ),
        (
            "UPDATE orders1 SET o_entry_d = NULL WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 60",
            &["1.3: columns of orders"],
        ),
        (
            "UPDATE order_line1 SET ol_dist_info = NULL WHERE ol_w_id = 2 AND ol_d_id = 4 AND ol_o_id = 60",
            &["1.3: columns of order_line"],
        ),
    ] {
        noticed(&place, break_it, beginnings);
        std::fs::copy(&right, &database).unwrap();
    }
    assert_eq!(broken(&place, 0), BTreeSet::new());
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
        ran.stderr.contains("error: the tables of ./forgetful.lua are not correct after the run"),
        "{}",
        ran.shown()
    );
    assert!(
        ran.stderr.contains("clause 3.3.2.8: w_ytd is the sum of its history's h_amount: VIOLATED:"),
        "{}",
        ran.shown()
    );

    let ran = place.expect("run", &format!("--check --no-record {run}"), 1);
    assert!(ran.stderr.contains("before the run, so it was not started"), "{}", ran.shown());
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
