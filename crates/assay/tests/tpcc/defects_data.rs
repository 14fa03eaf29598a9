//! Defects seeded into the load, and into data that was right: for each, `check` or `check --thorough` fails with the
//! intended condition. Unspoiled tables, freshly loaded or after a run, pass all of them.
//!
//! Everything is loaded with one seed on SQLite, so nothing here depends on chance. What a defect of the load changes
//! is seen at once; tables that are spoiled by a statement are copies of tables on which a run has worked.

use std::sync::atomic::{AtomicUsize, Ordering};

use testkit::Kind;

use super::common::Folder;
use super::defects::selected;
use super::{Place, SMALL, places};

/// Replacement in the text of `tpcc_load` (`text`, `instead`), and the condition that notices, of the plain check.
struct Load(&'static str, &'static str, &'static str);

/// Statements that spoil tables (`` `…` `` is a text; each is a line), and what notices.
struct Spoiled(&'static str, Noticed);

/// What notices, by a part of its line.
enum Noticed {
    /// The plain check.
    Check(&'static str),
    /// Only `--thorough`, except for a sum that any changed number of the load changes: everything else holds.
    Thorough(&'static str),
}

use Noticed::{Check, Thorough};

const LOADS: &[Load] = &[
    Load("and \"BC\" or \"GC\"", "and \"GC\" or \"GC\"", "one customer in ten of each district has bad credit"),
    Load("bad_credit[c] and", "c == 1 and", "one customer in ten of each district has bad credit"),
    Load("bad_credit[c] and", "c % 8 == 0 and", "one customer in ten of each district has bad credit"),
    Load("bad_credit[c] and", "c <= customers / 10 and", "values of customer are"),
    Load(
        "if not original then return A26_50 end",
        "do return A26_50 end",
        "one item in ten of each piece has ORIGINAL",
    ),
    Load(
        "data(original[i - first + 1]))\n  end\n  stock",
        "data(i % 8 == 0))\n  end\n  stock",
        "one row of stock in ten of each piece has ORIGINAL",
    ),
    Load("local at = uniform(0, #value - 8)", "local at = 0", "values of stock are"),
    Load("local at = uniform(0, #value - 8)", "local at = #value - 8", "values of stock are"),
    Load("\"ORIGINAL\" ..", "\"Original\" ..", "one item in ten of each piece has ORIGINAL"),
    Load("nurand(255, context.c_last, 0, names - 1)", "uniform(0, names - 1)", "last names of the other customers"),
    Load("nurand(255, context.c_last, 0, names - 1)", "nurand(255, context.c_last + 7, 0, names - 1)", "last names of"),
    Load("nurand(255, context.c_last, 0, names - 1)", "(c - 1) % names", "last names of the other customers"),
    Load("tpcc.last_name(name)", "tpcc.last_name(name):lower()", "c_last is the name of c_id - 1"),
    Load("50000, fraction(5000)", "50000, 0", "values of customer are"),
    Load("50000, fraction(5000)", "50000, fraction(4000)", "values of customer are"),
    Load("A8_16, \"OE\"", "\"CONSTANTLY\", \"OE\"", "values of customer are"),
    Load("cell(8, 16)", "cell(12, 12)", "values of customer are"),
    Load("cell(300, 500)", "cell(300, 300)", "values of customer are"),
    Load("\"OE\"", "\"EO\"", "columns of customer are in their ranges"),
    Load("50000, fraction", "5000, fraction", "columns of customer are in their ranges"),
    Load("fraction(5000), -10, 10, 1", "fraction(5000), 0, 10, 1", "3.3.2.10"),
    Load("cell(24, 24)", "(\"S\"):rep(24)", "columns of stock are in their ranges"),
    Load("cell(24, 24)", "cell((\"@\"):rep(24))", "values of stock are"),
    Load("quantity, A24, A24, A24", "quantity, A24, A24, \"\"", "columns of stock are in their ranges"),
    Load("money(uniform(100, 10000))", "money(5050)", "values of item are"),
    Load("money(uniform(100, 10000))", "money(uniform(1, 100) * 100)", "values of item are"),
    Load("money(uniform(100, 10000))", "money(uniform(100, 9000))", "values of item are"),
    Load("local quantity = uniform(10, 100)", "local quantity = 50", "values of stock are"),
    Load("local quantity = uniform(10, 100)", "local quantity = uniform(10, 75)", "values of stock are"),
    Load("to.item:row(i, uniform(1, 10000)", "to.item:row(i, 1", "values of item are"),
    Load("to.item:row(i, uniform(1, 10000)", "to.item:row(i, i % 100 + 1", "values of item are"),
    Load("cell(\"####11111\")", "cell(\"#########\")", "columns of customer are in their ranges"),
    Load("cell(\"################\")", "cell(16, 16)", "columns of customer are in their ranges"),
    Load("cell(\"################\")", "cell(\"###############\")", "columns of customer are in their ranges"),
    Load("cell(\"################\")", "cell(\"1555###########1\")", "values of customer are"),
    Load("cell(2, 2)", "cell(\"##\")", "values of customer are"),
    Load("cell(2, 2)", "\"CA\"", "values of customer are"),
    Load("cell(2, 2)", "\"c.\"", "columns of customer are in their ranges"),
    Load("cell(10, 20)", "(\"x\"):rep(15)", "values of customer are"),
    Load(
        "ipairs(tpcc.permutation(context.customers))",
        "ipairs(IN_ORDER(context.customers))",
        "values of the loaded orders",
    ),
    Load("orders:row(o, d, w, c,", "orders:row(o, d, w, context.customers + 1 - o,", "values of the loaded orders"),
    Load("orders:row(o, d, w, c,", "orders:row(o, d, w, o % context.customers + 1,", "values of the loaded orders"),
    Load(
        "orders:row(o, d, w, c,",
        "orders:row(o, d, w, uniform(1, context.customers),",
        "each customer has one of the loaded",
    ),
    Load("delivered and uniform(1, 10) or nil", "delivered and 1 or nil", "values of the loaded orders"),
    Load("delivered and uniform(1, 10) or nil", "delivered and uniform(1, 9) or nil", "values of the loaded orders"),
    Load("<= delivered_until, uniform(5, 15)", "<= delivered_until, 10", "values of the loaded orders"),
    Load("<= delivered_until, uniform(5, 15)", "<= delivered_until, uniform(5, 14)", "values of the loaded orders"),
    Load("uniform(1, items), uniform(1, 999999)", "uniform(1, items), 500000", "values of the loaded order lines"),
    Load(
        "uniform(1, items), uniform(1, 999999)",
        "uniform(1, items), uniform(1, 9999) * 100",
        "values of the loaded order lines",
    ),
    Load(
        "uniform(1, items), uniform(1, 999999)",
        "uniform(1, items), uniform(1, 500000)",
        "values of the loaded order lines",
    ),
    Load("number, uniform(1, items), w, now, 5, 0", "number, 1, w, now, 5, 0", "values of the loaded order lines"),
    Load(
        "number, uniform(1, items), w, now, 5, 0",
        "number, uniform(1, items / 2), w, now, 5, 0",
        "values of the loaded order lines",
    ),
    Load(
        "number, uniform(1, items), w, now, 5, 0",
        "number, uniform(1, items), w % 2 + 1, now, 5, 0",
        "columns of order_line",
    ),
    Load("number, uniform(1, items), w, now, 5, 0", "number, uniform(1, items), w, now, 4, 0", "columns of order_line"),
    Load("number, uniform(1, items), w, now, 5, 0", "number, uniform(1, items), w, nil, 5, 0", "3.3.2.7"),
    Load("return fraction(2000)", "return 0", "w_tax and d_tax are distributed"),
    Load("return fraction(2000)", "return fraction(200)", "w_tax and d_tax are distributed"),
    Load("now, 10, A12_24)", "now, 10, \"PAID FOR NOTHING\")", "values of the loaded history"),
    Load("now, 10, A12_24)", "now, 20, A12_24)", "3.3.2.8"),
    Load(
        "now, 10, A12_24)",
        "\"2001-01-01 00:00:00\", 10, A12_24)",
        "the rows of a district that were loaded have one date",
    ),
    Load("orders:row(o, d, w, c, now,", "orders:row(o, d, w, c, \"1970-01-01 00:00:00\",", "have one date"),
    Load(
        "assay.seed(context.seed, kind, number)",
        "assay.seed(context.seed, kind)",
        "random texts are different in each",
    ),
    Load("cell(26, 50)", "cell(26, 40)", "values of item are"),
    Load(
        "local delivered_until, cents = tpcc.delivered(context.customers)",
        "local delivered_until, cents = context.customers / 2",
        "3.3.2.11",
    ),
    Load("context.customers + 1)\n  to.district", "context.customers + 2)\n  to.district", "3.3.2.2"),
    Load("if not delivered then new_orders", "if not delivered and o > delivered_until + 1 then new_orders", "3.3.2.5"),
    Load(
        "quantity, A24, A24, A24, A24, A24, A24,\n      A24, A24, A24, A24, 0, 0, 0",
        "quantity, A24, A24, A24, A24, A24, A24,\n      A24, A24, A24, A24, 1, 0, 0",
        "s_ytd, s_order_cnt",
    ),
];

const SPOILED: &[Spoiled] = &[
    // Rows and keys.
    Spoiled(
        "INSERT INTO stock1 (s_i_id, s_w_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt) VALUES (1, 99, 50, 0, 0, 0)",
        Check("columns of stock are in their ranges"),
    ),
    Spoiled(
        "INSERT INTO customer1 (c_w_id, c_d_id, c_id, c_payment_cnt) VALUES (1, 11, 1, 0)",
        Check("columns of customer"),
    ),
    Spoiled(
        "INSERT INTO order_line1 (ol_w_id, ol_d_id, ol_o_id, ol_number) VALUES (9, 1, 1, 1)",
        Check("columns of order_line"),
    ),
    Spoiled(
        "CREATE TABLE copy AS SELECT * FROM stock1\nDROP TABLE stock1\nALTER TABLE copy RENAME TO stock1",
        Check("tables have their keys and indexes"),
    ),
    Spoiled(
        "CREATE TABLE copy AS SELECT * FROM order_line1\nDROP TABLE order_line1\nALTER TABLE copy RENAME TO order_line1\nUPDATE order_line1 SET ol_number = 2 WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 3",
        Check("tables have their keys and indexes"),
    ),
    Spoiled("DROP INDEX customer_name1", Check("tables have their keys and indexes")),
    Spoiled("DROP INDEX orders_customer_order1", Check("tables have their keys and indexes")),
    Spoiled(
        "DROP INDEX customer_name1\nCREATE INDEX other ON customer1 (c_w_id, c_d_id, c_last)",
        Check("keys and indexes"),
    ),
    // Customers.
    Spoiled(
        "UPDATE customer1 SET c_last = CASE c_last WHEN `BARBAROUGHT` THEN `BARBARABLE` ELSE `BARBAROUGHT` END WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 110",
        Thorough("customer is as it"),
    ),
    Spoiled(
        "UPDATE customer1 SET c_last = o.c_last FROM customer1 o WHERE customer1.c_w_id = 1 AND customer1.c_d_id = 1 AND customer1.c_id IN (60, 110) AND o.c_w_id = 1 AND o.c_d_id = 1 AND o.c_id = 170 - customer1.c_id",
        Thorough("customer is as it was loaded"),
    ),
    Spoiled(
        "UPDATE customer1 SET c_last = c_last || ` ` WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 110",
        Check("c_last is the name"),
    ),
    Spoiled(
        "UPDATE customer1 SET c_last = LOWER(c_last) WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 110",
        Check("c_last is the name"),
    ),
    Spoiled("UPDATE customer1 SET c_credit = `bc` WHERE c_credit = `BC` AND c_w_id = 1", Check("columns of customer")),
    Spoiled("UPDATE customer1 SET c_credit = `GC` WHERE c_credit = `BC` AND c_w_id = 1", Check("one customer in ten")),
    Spoiled(
        "UPDATE customer1 SET c_since = `1999-01-01 00:00:00` WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 110",
        Check("have one date"),
    ),
    Spoiled(
        "UPDATE customer1 SET c_discount = 0.25 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 110",
        Thorough("customer is as it"),
    ),
    Spoiled(
        "UPDATE customer1 SET c_phone = `1234567890123456` WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 110",
        Thorough("customer is"),
    ),
    Spoiled(
        "UPDATE customer1 SET c_street_2 = c_street_1 WHERE c_w_id = 2 AND c_d_id = 10 AND c_id = 1",
        Thorough("customer is as it"),
    ),
    Spoiled("UPDATE customer1 SET c_state = LOWER(c_state)", Check("values of customer are")),
    Spoiled(
        "UPDATE customer1 SET c_data = SUBSTR(c_data, 2) || `x` WHERE c_credit = `GC` AND c_w_id = 2 AND c_d_id = 3",
        Thorough("customer is as it was loaded"),
    ),
    Spoiled(
        "UPDATE customer1 SET c_data = SUBSTR(c_data, INSTR(c_data, `|`) + 1) WHERE c_credit = `BC` AND c_payment_cnt > 1",
        Check("has all payments"),
    ),
    Spoiled(
        "UPDATE customer1 SET c_data = SUBSTR(c_data, 1, INSTR(c_data, `|`)) || SUBSTR(c_data, INSTR(c_data, `|`) + 10) || `012345678` WHERE c_credit = `BC` AND c_payment_cnt = 2 AND LENGTH(c_data) = 500",
        Thorough("customer is as it was loaded"),
    ),
    Spoiled(
        "UPDATE customer1 SET c_data = SUBSTR(c_data, 1, INSTR(c_data, `|`) + 310) WHERE c_credit = `BC` AND c_payment_cnt = 2 AND LENGTH(c_data) > 400",
        Thorough("customer is as it was loaded"),
    ),
    // Items and stock.
    Spoiled(
        "UPDATE item1 SET i_data = REPLACE(i_data, `ORIGINAL`, `ORIGINAR`) WHERE i_id = (SELECT MIN(i_id) FROM item1 WHERE i_data LIKE `%ORIGINAL%`)",
        Check("one item in ten of each piece has ORIGINAL"),
    ),
    Spoiled(
        "UPDATE stock1 SET s_data = REPLACE(s_data, `ORIGINAL`, `0RIGINAL`) WHERE s_w_id = 2",
        Check("one row of stock in ten of each piece has ORIGINAL"),
    ),
    Spoiled(
        "UPDATE stock1 SET s_dist_03 = SUBSTR(s_dist_03, 1, 10) WHERE s_w_id = 2 AND s_i_id = 77",
        Check("columns of stock"),
    ),
    Spoiled(
        "UPDATE stock1 SET s_dist_03 = `abcdefghijklmnopqrstuvwx` WHERE s_w_id = 2 AND s_i_id = 1999",
        Thorough("stock is as it"),
    ),
    Spoiled("UPDATE stock1 SET s_dist_03 = LOWER(s_dist_03) WHERE s_w_id = 2", Check("values of stock are")),
    Spoiled(
        "UPDATE stock1 SET s_quantity = s_quantity - 1 WHERE s_w_id = 2 AND s_i_id = 77 AND s_quantity > 10",
        Check("s_quantity decreased"),
    ),
    Spoiled(
        "UPDATE stock1 SET s_quantity = s_quantity + CASE WHEN s_i_id = 1 THEN 1 ELSE -1 END WHERE s_w_id = 2 AND s_i_id IN (1, (SELECT MIN(s_i_id) FROM stock1 WHERE s_w_id = 2 AND s_i_id > 1 AND s_quantity > 10))",
        Thorough("stock is as it was loaded"),
    ),
    Spoiled("UPDATE item1 SET i_name = LOWER(i_name) WHERE i_id = 1321", Thorough("item is as it was loaded")),
    Spoiled("UPDATE item1 SET i_im_id = i_im_id % 10000 + 1 WHERE i_id = 1321", Thorough("item is as it was loaded")),
    Spoiled(
        "UPDATE item1 SET i_price = 51 WHERE i_id = (SELECT MIN(i_id) FROM item1 WHERE i_id NOT IN (SELECT ol_i_id FROM order_line1 WHERE ol_o_id > 120))",
        Thorough("item is as it was loaded"),
    ),
    Spoiled(
        "UPDATE item1 SET i_price = 51 WHERE i_id = (SELECT MIN(ol_i_id) FROM order_line1 WHERE ol_o_id > 120)",
        Check("an order line has its ol_quantity times i_price"),
    ),
    // Warehouses and districts.
    Spoiled(
        "UPDATE warehouse1 SET w_tax = o.w_tax FROM warehouse1 o WHERE o.w_id = 3 - warehouse1.w_id",
        Thorough("warehouse is as it was loaded"),
    ),
    Spoiled(
        "UPDATE district1 SET d_tax = 0.1 WHERE d_w_id = 2 AND d_id = 10",
        Thorough("district is as it was loaded"),
    ),
    Spoiled(
        "UPDATE district1 SET d_zip = `123411111` WHERE d_w_id = 1 AND d_id = 10",
        Thorough("district is as it was loaded"),
    ),
    Spoiled(
        "UPDATE warehouse1 SET w_zip = `123456789` WHERE w_id = 1",
        Check("columns of warehouse are in their ranges"),
    ),
    Spoiled(
        "UPDATE warehouse1 SET w_city = `Mountain View` WHERE w_id = 1",
        Check("columns of warehouse are in their ranges"),
    ),
    // Orders and lines.
    Spoiled(
        "UPDATE orders1 SET o_carrier_id = o_carrier_id % 10 + 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 5",
        Thorough("orders is as it"),
    ),
    Spoiled(
        "UPDATE orders1 SET o_c_id = o.o_c_id FROM orders1 o WHERE orders1.o_w_id = 1 AND orders1.o_d_id = 1 AND orders1.o_id IN (3, 4) AND o.o_w_id = 1 AND o.o_d_id = 1 AND o.o_id = 7 - orders1.o_id",
        Thorough("orders is as it was loaded"),
    ),
    Spoiled(
        "UPDATE order_line1 SET ol_amount = o.ol_amount FROM order_line1 o WHERE order_line1.ol_w_id = 1 AND order_line1.ol_d_id = 1 AND order_line1.ol_o_id = 120 AND order_line1.ol_number IN (1, 2) AND o.ol_w_id = 1 AND o.ol_d_id = 1 AND o.ol_o_id = 120 AND o.ol_number = 3 - order_line1.ol_number",
        Thorough("order_line is as it was loaded"),
    ),
    Spoiled(
        "DELETE FROM order_line1 WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = (SELECT MIN(o_id) FROM orders1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_ol_cnt = 15) AND ol_number = 15\nUPDATE orders1 SET o_ol_cnt = 14 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = (SELECT MIN(o_id) FROM orders1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_ol_cnt = 15)",
        Thorough("order_line is as it was loaded"),
    ),
    Spoiled(
        "UPDATE order_line1 SET ol_i_id = ol_i_id % 2000 + 1 WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 7 AND ol_number = 1",
        Thorough("order_line is as"),
    ),
    Spoiled(
        "UPDATE order_line1 SET ol_dist_info = `abcdefghijklmnopqrstuvwx` WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 7 AND ol_number = 1",
        Thorough("order_line is as"),
    ),
    Spoiled(
        "UPDATE order_line1 SET ol_supply_w_id = 2 WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 7 AND ol_number = 1",
        Check("columns of order_line"),
    ),
    Spoiled(
        "UPDATE orders1 SET o_entry_d = `1999-01-01 00:00:00` WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 5",
        Check("have one date"),
    ),
    Spoiled(
        "UPDATE orders1 SET o_entry_d = `1999-01-01 00:00:00` WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 121",
        Check("have dates from"),
    ),
    Spoiled(
        "UPDATE orders1 SET o_entry_d = `2999-01-01 00:00:00` WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 121",
        Check("have dates from"),
    ),
    Spoiled(
        "UPDATE order_line1 SET ol_delivery_d = `1999-01-01 00:00:00` WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 5 AND ol_number = 2",
        Check("have one date"),
    ),
    Spoiled(
        "UPDATE order_line1 SET ol_delivery_d = DATETIME(ol_delivery_d, `+1 hour`) WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 85 AND ol_number = 2",
        Check("are delivered at one time"),
    ),
    Spoiled(
        "UPDATE order_line1 SET ol_delivery_d = `1999-01-01 00:00:00` WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 85",
        Check("have dates from"),
    ),
    // History.
    Spoiled(
        "UPDATE history1 SET h_date = `1999-01-01 00:00:00` WHERE h_w_id = 1 AND h_d_id = 1 AND h_c_id = 5 AND h_amount = 10",
        Check("have one date"),
    ),
    Spoiled(
        "UPDATE history1 SET h_date = `2999-01-01 00:00:00` WHERE h_w_id = 1 AND h_amount <> 10",
        Check("have dates from"),
    ),
    Spoiled(
        "UPDATE history1 SET h_data = `abcdefghijklmnop` WHERE h_w_id = 1 AND h_d_id = 1 AND h_c_id = 5 AND h_data NOT LIKE `%    %`",
        Thorough("history is as it"),
    ),
    Spoiled(
        "UPDATE history1 SET h_data = h_data || ` ` WHERE h_w_id = 1 AND h_d_id = 1 AND h_c_id = 5 AND h_data NOT LIKE `%    %`",
        Thorough("history is as it"),
    ),
    // What the tables say about themselves.
    Spoiled("UPDATE tpcc_load1 SET v = v + 1 WHERE what = `c_last`", Check("last names of the other customers")),
    Spoiled(
        "UPDATE tpcc_load1 SET v = v + 1 WHERE what = `piece stock` AND n = 3",
        Check("s_quantity decreased by s_ytd"),
    ),
];

/// How many defects are seeded here, into the load and into data.
pub(super) fn numbers() -> (usize, usize) {
    (LOADS.len() + 1, SPOILED.len())
}

/// Scale of the loads with defects: enough rows to tell one distribution from another.
const LOADED: &str = "--warehouses 2 --customers 120 --items 500 --seed 3";

/// Scale of the tables to spoil: some items are not sold.
const USED: &str = "--warehouses 2 --customers 120 --items 2000 --seed 3";
const RUN: &str = "--sessions 1 --transactions 1150 --seed 1";

/// The lines of a check that fails because the data is wrong; none if it is right.
pub(super) fn broken(folder: &Folder, url: &str, options: &str) -> Result<Vec<String>, String> {
    let checked = folder.run(&format!("check tpcc --db {url} {options}"));
    let broken = checked.stderr.lines().filter(|line| line.contains(": VIOLATED"));
    let broken: Vec<String> = broken.map(str::to_owned).collect();
    if checked.code == Some(i32::from(!broken.is_empty())) { Ok(broken) } else { Err(checked.shown()) }
}

fn url(folder: &Folder) -> String {
    format!("sqlite:{}?synchronous=off", folder.path().join("tpcc.db").display())
}

/// Loads tables with a defect; an error if the check does not notice.
fn is_noticed_after_load(Load(text, instead, condition): &Load) -> Result<(), String> {
    let broken = broken_after_load("tpcc_load", text, instead)?;
    let noticed = broken.iter().any(|line| line.contains(condition));
    if noticed { Ok(()) } else { Err(format!("{instead}\n  unnoticed by `{condition}`: {broken:?}")) }
}

/// Functions that defects call.
const FOR_DEFECTS: &str = "
local function IN_ORDER(n) local list = {} for i = 1, n do list[i] = i end return list end
local street_of, street
local function STREET(c) if street_of ~= c then street_of, street = c, assay.random_text(10, 20) end return street end
";

/// Loads tables with a file of the workload that is changed; the lines of a check, by the unchanged one, that fails.
pub(super) fn broken_after_load(file: &str, text: &str, instead: &str) -> Result<Vec<String>, String> {
    broken_after_loads(file, &[(text, instead)])
}

/// The same with several changes: texts and their replacements.
pub(super) fn broken_after_loads(file: &str, replacements: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let builtin = assay_workloads::builtin().iter().find(|workload| workload.name == file).unwrap();
    let folder = Folder::new();
    let mut defective = builtin.text.to_owned();
    for (text, instead) in replacements {
        if defective.matches(text).count() != 1 {
            return Err(format!("not once in the file: {text}"));
        }
        defective = defective.replace(text, instead);
    }
    folder.write(&format!("{file}.lua"), &format!("{FOR_DEFECTS}{defective}"));
    let prepared = folder.run(&format!("prepare tpcc --db {} {LOADED}", url(&folder)));
    if prepared.code != Some(0) {
        return Err(format!("{replacements:?}: {}", prepared.shown()));
    }
    broken(&folder, &url(&folder), "")
}

/// A copy of tables, changed by these statements, one in each line.
pub(super) fn spoil(used: &Folder, statements: &str) -> Place {
    let place = Place::sqlite();
    std::fs::copy(used.path().join("tpcc.db"), place.folder.path().join("tpcc.db")).unwrap();
    statements.lines().for_each(|statement| place.sql(statement));
    place
}

/// Loads tables to spoil, and runs on them; before and after, they are right.
pub(super) fn prepare_used(folder: &Folder) {
    let url = url(folder);
    folder.expect(&format!("prepare tpcc --db {url} {USED}"), 0);
    assert_eq!(broken(folder, &url, "--thorough"), Ok(vec![]));
    folder.expect(&format!("run tpcc --db {url} {RUN} --no-record"), 0);
    assert_eq!(broken(folder, &url, "--thorough"), Ok(vec![]));
}

/// Spoils a copy of the tables; an error if it is not noticed as intended.
fn is_noticed_when_spoiled(Spoiled(statements, noticed): &Spoiled, used: &Folder) -> Result<(), String> {
    let place = spoil(used, statements);
    let options = if matches!(noticed, Thorough(_)) { "--thorough" } else { "" };
    let broken = broken(&place.folder, &place.url, options)?;
    let as_intended = match noticed {
        Check(condition) => broken.iter().any(|line| line.contains(condition)),
        Thorough(condition) => {
            let implied = |line: &String| line.contains("as it was loaded") || line.contains("numbers of the load are");
            broken.iter().all(implied) && broken.iter().any(|line| line.contains(condition))
        }
    };
    if as_intended { Ok(()) } else { Err(format!("{statements}\n  not noticed as intended: {broken:?}")) }
}

/// Tries all defects, two at a time.
#[track_caller]
pub(super) fn all_are_noticed<T: Sync>(defects: &[T], notices: impl Fn(&T) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut unnoticed = Vec::new();
        while let Some(defect) = defects.get(next.fetch_add(1, Ordering::Relaxed)) {
            unnoticed.extend(notices(defect).err());
        }
        unnoticed
    };
    let unnoticed = std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.map(|worker| worker.join().unwrap()).concat()
    });
    assert!(unnoticed.is_empty(), "{} of {}:\n{}", unnoticed.len(), defects.len(), unnoticed.join("\n"));
}

#[test]
fn each_defect_of_the_load_is_noticed_and_the_load_has_none() {
    let folder = Folder::new();
    folder.expect(&format!("prepare tpcc --db {} {LOADED}", url(&folder)), 0);
    assert_eq!(broken(&folder, &url(&folder), "--thorough"), Ok(vec![]));
    all_are_noticed(&selected(LOADS, |load| load.2), |load| is_noticed_after_load(load));
    // What the check shares with the load, it does not trust.
    let broken = broken_after_load("tpcc_common", "\"PRES\"", "\"PREZ\"").unwrap();
    assert!(broken.iter().any(|line| line.contains("c_last is the name of c_id - 1")), "{broken:?}");
}

#[test]
fn spoiled_data_is_noticed_and_data_that_a_run_changed_is_not() {
    let folder = Folder::new();
    prepare_used(&folder);
    let rule = |spoiled: &Spoiled| match spoiled.1 {
        Check(rule) | Thorough(rule) => rule,
    };
    all_are_noticed(&selected(SPOILED, rule), |spoiled| is_noticed_when_spoiled(spoiled, &folder));
}

#[test]
fn case_blanks_and_missing_keys_are_noticed_on_every_product() {
    for place in places() {
        place.expect("prepare", &format!("{SMALL} --seed 3"), 0);
        let one = "WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1";
        for (break_it, repair_it, condition) in [
            ("c_credit = LOWER(c_credit)", "c_credit = UPPER(c_credit)", "columns of customer"),
            ("c_last = LOWER(c_last)", "c_last = UPPER(c_last)", "c_last is the name"),
            ("c_last = `BARBARBAR `", "c_last = `BARBARBAR`", "c_last is the name"),
        ] {
            place.sql(&format!("UPDATE customer1 SET {break_it} {one}"));
            let found = broken(&place.folder, &place.url, "").unwrap();
            assert!(found.iter().any(|line| line.contains(condition)), "{break_it} on {}: {found:?}", place.url);
            place.sql(&format!("UPDATE customer1 SET {repair_it} {one}"));
        }
        assert_eq!(broken(&place.folder, &place.url, "--thorough"), Ok(vec![]), "{}", place.url);

        let drop_index = match place.kind {
            Some(Kind::MariaDb | Kind::MySql) => "DROP INDEX orders_customer_order1 ON orders1",
            _ => "DROP INDEX orders_customer_order1",
        };
        let drop_key = match place.kind {
            None => "DROP INDEX customer_name1",
            Some(Kind::MariaDb | Kind::MySql) => "ALTER TABLE stock1 DROP PRIMARY KEY",
            Some(_) => "ALTER TABLE stock1 DROP CONSTRAINT stock_key1",
        };
        for statement in [drop_index, drop_key] {
            place.sql(statement);
            let found = broken(&place.folder, &place.url, "").unwrap();
            assert!(found.iter().all(|line| line.contains("keys and indexes")) && found.len() == 1, "{found:?}");
        }
        place.sql("UPDATE item1 SET i_name = UPPER(i_name) WHERE i_id IN (77, 78)");
        let found = place.expect("check", "--thorough", 1).stderr;
        assert!(
            found.contains(
                "item is as it was loaded: VIOLATED in items 61 to 80: 2 rows, the first:\n  i_id 77: i_name "
            ),
            "{found}"
        );
    }
}

#[test]
fn tables_of_another_seed_or_program_are_not_accused_by_the_thorough_check() {
    let place = Place::sqlite();
    place.expect("prepare", &format!("{SMALL} --seed 3"), 0);
    for (statement, reason) in [
        (
            "UPDATE item1 SET i_name = `another` || i_id, i_data = `text of another program` || i_id",
            "they were not loaded from seed",
        ),
        (
            "UPDATE tpcc_load1 SET v = v + 1 WHERE what = `seed`",
            "makes other rows in this version, or the seed was changed",
        ),
        ("DELETE FROM tpcc_load1 WHERE what = `generator`", "an older version loaded them"),
    ] {
        place.sql(statement);
        let said = place.folder.run(&format!("check tpcc --db {} --thorough", place.url)).stderr;
        assert!(said.contains("rows as they were loaded: not compared: ") && said.contains(reason), "{said}");
        assert!(!said.contains("as it was loaded: VIOLATED"), "{said}");
    }
}
