//! Defects seeded into the workload: for each, the audit or the check of the data fails with the intended rule. The
//! unmodified workload passes all rules in a run of the same length.
//!
//! A defect is a change to the workload's text, in a file in the run's folder that takes precedence over the built-in
//! one. One session on SQLite does the same transactions in every run, so nothing here depends on chance.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::common::Folder;

/// A defect of the workload: the file, its text and the replacement, and the rule that notices.
pub(super) struct Defect {
    pub(super) file: &'static str,
    pub(super) text: &'static str,
    pub(super) instead: &'static str,
    pub(super) noticed: Noticed,
}

/// The check that notices, by a rule's name or by its message.
#[derive(Clone, Copy)]
pub(super) enum Noticed {
    /// The audit of the run.
    Audit(&'static str),
    /// The check of the tables after it.
    Check(&'static str),
}

use Noticed::{Audit, Check};

impl Noticed {
    /// The rule's name.
    pub(super) fn rule(self) -> &'static str {
        let (Audit(rule) | Check(rule)) = self;
        rule
    }
}

/// One defect for each rule, the first; with `ASSAY_TEST_MATRIX` all of them.
pub(super) fn selected<T>(all: &'static [T], rule: impl Fn(&T) -> &'static str) -> Vec<&'static T> {
    let mut seen = std::collections::HashSet::new();
    let all_of_them = std::env::var_os("ASSAY_TEST_MATRIX").is_some();
    all.iter().filter(|one| seen.insert(rule(one)) || all_of_them).collect()
}

pub(super) const fn defect(file: &'static str, text: &'static str, instead: &'static str, noticed: Noticed) -> Defect {
    Defect { file, text, instead, noticed }
}

const DEFECTS: &[Defect] = &[
    // Missing work.
    defect(
        "tpcc_delivery",
        "for d = 1, DISTRICTS do\n    delivered[d] = deliver(",
        "for d = 1, 9 do\n    delivered[d] = deliver(",
        Audit("deliveries not trying all districts"),
    ),
    defect(
        "tpcc_delivery",
        "for d = 1, DISTRICTS do\n    delivered[d] = deliver(",
        "for d = 1, 0 do\n    delivered[d] = deliver(",
        Audit("deliveries not trying all districts"),
    ),
    defect(
        "tpcc_delivery",
        "  defer(set.delete_new_order, w, d, o)\n",
        "  do return o end\n",
        Audit("deliveries out of order or repeated"),
    ),
    defect(
        "tpcc_delivery",
        "  while not o do\n",
        "  do return nil end\n  while not o do\n",
        Audit("deliveries that skip a district"),
    ),
    defect(
        "tpcc_order_status",
        "  if not c then c = customers",
        "  if c ~= 0 then return session.commit:execute() end\n  if not c then c = customers",
        Audit("order-status that found no order"),
    ),
    defect(
        "tpcc_order_status",
        "set.lines_of_order:execute(w, d, tonumber(o))",
        "{ nrows = 0 }",
        Audit("order-status that found no order"),
    ),
    defect(
        "tpcc_stock_level",
        "  local next_order =",
        "  if w then return session.commit:execute() end\n  local next_order =",
        Audit("stock-level without a result"),
    ),
    defect(
        "tpcc_new_order",
        "item[n], supply[n], quantity[n]\n",
        "item[n], w, quantity[n]\n",
        Check("1 % of lines are from other warehouses"),
    ),
    defect(
        "tpcc_new_order",
        "number[at] = w, i, uniform",
        "number[at] = home, i, uniform",
        Check("1 % of lines are from other warehouses"),
    ),
    defect(
        "tpcc_payment",
        "input.amount, input.c_w, input.c_d, input.c\n",
        "input.amount, w, input.c_d, input.c\n",
        Check("15 % of payments are for customers of other warehouses"),
    ),
    defect(
        "tpcc_new_order",
        "session.rollback:execute()",
        "session.commit:execute()",
        Check("an order has o_ol_cnt lines"),
    ),
    // Skew.
    defect(
        "tpcc",
        "one.home, one.district = tpcc.home_of(one.number)",
        "one.home, one.district = 2, 1",
        Audit("transactions outside home warehouse"),
    ),
    defect(
        "tpcc",
        "local home = user.home",
        "local home = uniform(1, session.warehouses)",
        Audit("transactions outside home warehouse"),
    ),
    defect(
        "tpcc_new_order",
        "nurand(8191, session.c_for_items, 1, session.items)",
        "uniform(1, session.items)",
        Audit("items favored by NURand"),
    ),
    defect(
        "tpcc_customers",
        "nurand(1023, session.c_for_customers, 1, session.customers)",
        "sysbench.rand.uniform(1, session.customers)",
        Audit("customers favored by NURand"),
    ),
    defect(
        "tpcc_customers",
        "0, session.names - 1) end",
        "0, session.names / 2 - 1) end",
        Audit("last names favored by NURand"),
    ),
    defect(
        "tpcc_customers",
        "nurand(255, session.sets[set].c_last,",
        "nurand(255, session.sets[set].c_last_of_load,",
        Audit("last names favored by NURand"),
    ),
    defect(
        "tpcc_common",
        "return allowed[tpcc.constant_of_run(255, #allowed) + 1]",
        "return load",
        Audit("names with a wrong NURand constant"),
    ),
    defect(
        "tpcc_common",
        "return allowed[tpcc.constant_of_run(255, #allowed) + 1]",
        "return (load + 40) % 256",
        Audit("names with a wrong NURand constant"),
    ),
    defect(
        "tpcc_common",
        "local other = uniform(1, warehouses - 1)",
        "do return w % warehouses + 1 end\n  local other",
        Audit("remote payments for far warehouses"),
    ),
    defect(
        "tpcc_common",
        "local other = uniform(1, warehouses - 1)",
        "do return w % warehouses + 1 end\n  local other",
        Check("15 % of payments are for customers of other warehouses"),
    ),
    defect("tpcc", "local at = uniform(1, left)", "local at = left", Audit("same card as in the previous deck")),
    defect(
        "tpcc",
        "local at = uniform(1, left)",
        "local at = of.turn < #mix and uniform(1, left) or left",
        Audit("same card as in the previous deck"),
    ),
    defect(
        "tpcc_new_order",
        "local lines = uniform(5, 15)",
        "local lines = 5 + 10 * uniform(0, 1)",
        Audit("orders with 5 to 7 lines"),
    ),
    defect(
        "tpcc_new_order",
        "local lines = uniform(5, 15)",
        "local lines = uniform(1, 11)\n  lines = lines <= 3 and 6 or uniform(11, 12)",
        Audit("orders with 13 to 15 lines"),
    ),
    defect(
        "tpcc_new_order",
        "local lines = uniform(5, 15)",
        "local lines = ({ 6, 6, 6, 10, 10, 10, 10, 10, 14, 14, 14 })[uniform(1, 11)]",
        Check("orders have 5 to 15 lines, each number equally often"),
    ),
    defect(
        "tpcc_new_order",
        "input.d, input.c = uniform(1, tpcc.DISTRICTS)",
        "input.d, input.c = 3",
        Check("orders are spread evenly over districts"),
    ),
    // Content.
    defect(
        "tpcc_customers",
        "math.ceil(found.nrows / 2)",
        "1",
        Check("at least 60 % of payments are for the middle one"),
    ),
    defect(
        "tpcc_order_status",
        "c = customers.of_name(set, w, d, input.name)",
        "c = tonumber((set.customers_of_name:row(w, d, tpcc.last_name(input.name))))",
        Check("Order-Status answers with the balance"),
    ),
    defect("tpcc_new_order", "left = left + 91", "left = left + 81", Check("s_quantity decreased by s_ytd")),
    defect(
        "tpcc_new_order",
        "left = left - amount\n",
        "left = left - 0 * amount\n",
        Check("s_quantity decreased by s_ytd"),
    ),
    defect("tpcc_payment", "if credit == \"BC\"", "if credit == \"XX\"", Check("c_data of a customer with bad credit")),
    defect(
        "tpcc_sql",
        "c_payment_cnt = c_payment_cnt + 1\"",
        "c_payment_cnt = c_payment_cnt\"",
        Check("c_payment_cnt counts the customer's history"),
    ),
    defect(
        "tpcc_sql",
        "c_payment_cnt = c_payment_cnt + 1,",
        "c_payment_cnt = c_payment_cnt,",
        Check("c_payment_cnt counts the customer's history"),
    ),
    defect(
        "tpcc_new_order",
        "local cost = amount * cents(price)",
        "local cost = cents(price)",
        Check("ol_quantity times i_price"),
    ),
    defect(
        "tpcc_new_order",
        "set.item, set.stock[d],",
        "set.item, set.stock[d % 10 + 1],",
        Check("the text of its stock for the district"),
    ),
    defect("tpcc_new_order", "input.remote == 0 and 1 or 0)", "1)", Check("o_all_local is 0 if, and only if")),
    defect(
        "tpcc_new_order",
        "o, d, w, number[n], i",
        "o, d, w, number[n] - 1, i",
        Check("an order has o_ol_cnt lines, numbered from 1"),
    ),
    defect(
        "tpcc_sql",
        "VALUES (?, ?, ?, ?, <now>, ?, ?)",
        "VALUES (?, ?, ?, ?, NULL, ?, ?)",
        Check("columns of orders are in their ranges"),
    ),
    defect(
        "tpcc_new_order",
        "= w, i, uniform(1, 10), n",
        "= w, i, 5, n",
        Check("ol_quantity is 1 to 10, each number equally often"),
    ),
    defect(
        "tpcc_payment",
        "w_name .. \"    \" .. d_name",
        "w_name .. d_name",
        Check("h_data is the names of warehouse and district"),
    ),
    defect(
        "tpcc_sql",
        "VALUES (?, ?, ?, ?, ?, <now>, ?, ?)",
        "VALUES (?, ?, ?, ?, ?, NULL, ?, ?)",
        Check("columns of history are in their ranges"),
    ),
    defect(
        "tpcc_delivery",
        "input.carrier = sysbench.rand.uniform(1, 10)",
        "input.carrier = 0",
        Check("columns of orders are in their ranges"),
    ),
    defect(
        "tpcc_delivery",
        "input.carrier = sysbench.rand.uniform(1, 10)",
        "input.carrier = 7",
        Check("deliveries have carriers 1 to 10, each equally often"),
    ),
    defect(
        "tpcc_sql",
        "c_delivery_cnt = c_delivery_cnt + 1",
        "c_delivery_cnt = c_delivery_cnt",
        Check("c_delivery_cnt counts the customer's orders"),
    ),
    defect(
        "tpcc_stock_level",
        "next_order - 20,",
        "next_order - 19,",
        Check("Stock-Level counts the low items of the last 20 orders"),
    ),
    defect(
        "tpcc_stock_level",
        "w, input.threshold)",
        "w, 15)",
        Check("Stock-Level counts the low items of the last 20 orders"),
    ),
    defect(
        "tpcc_stock_level",
        "set.low_stock:row(w, d,",
        "set.low_stock:row(w, d % 10 + 1,",
        Check("Stock-Level counts the low items of the last 20 orders"),
    ),
    defect(
        "tpcc_stock_level",
        "input.threshold = sysbench.rand.uniform(10, 20)",
        "input.threshold = 15",
        Audit("stock-level thresholds above 15"),
    ),
    defect(
        "tpcc_stock_level",
        "local d = district\n",
        "local d = district % 10 + 1\n",
        Audit("stock-level outside home district"),
    ),
    defect(
        "tpcc_payment",
        "uniform(100, 500000) / 100",
        "100",
        Check("payments are from 1 to 5,000, each amount equally often"),
    ),
    defect(
        "tpcc_payment",
        "input.amount = uniform(100, 500000) / 100",
        "input.amount = uniform(100, 500000) / 200",
        Check("payments are from 1 to 5,000, each amount equally often"),
    ),
    defect(
        "tpcc_sql",
        "ORDER BY o_id DESC LIMIT 1",
        "ORDER BY o_id LIMIT 1",
        Check("Order-Status answers with the balance"),
    ),
    // The load.
    defect("tpcc_load", "uniform(1, 999999)", "uniform(0, 0)", Check("columns of order_line are in their ranges")),
];

/// More items than A are needed to tell one A from another.
const DEFECT_OF_ITEMS: Defect =
    defect("tpcc_new_order", "nurand(8191, session", "nurand(1023, session", Audit("items favored by NURand"));

/// How many defects are seeded here.
pub(super) fn number() -> usize {
    DEFECTS.len() + 1
}

/// Length of a run, in cards: 100 decks. Each district has enough orders for all deliveries.
const RUN: &str = "--sessions 1 --transactions 2300 --seed 1";

const TABLES: &str = "--warehouses 3 --customers 360 --items 200 --seed 3";
const TABLES_OF_MANY_ITEMS: &str = "--warehouses 1 --customers 360 --items 20000 --seed 3";

/// Tables are loaded once, and copied for each defect.
pub(super) fn prepare(folder: &Folder, tables: &str) {
    folder.expect(&format!("prepare tpcc --db {} {tables}", url(folder)), 0);
}

/// Runs the workload with the files of `folder` and these options on a copy of the tables of `prepared`. Returns the
/// names of the audit's rules that failed, and the conditions that the check found broken; or the output of a command
/// that failed otherwise.
pub(super) fn judged(folder: &Folder, prepared: &Path, run: &str) -> Result<(Vec<String>, Vec<String>), String> {
    Ok((audited(folder, prepared, run)?, checked(folder)?))
}

/// As above, without a check.
fn audited(folder: &Folder, prepared: &Path, run: &str) -> Result<Vec<String>, String> {
    let database = folder.path().join("tpcc.db");
    if !database.exists() {
        std::fs::copy(prepared.join("tpcc.db"), &database).unwrap();
    }
    // A file replaces the workload itself only by its path, and its parts by their names.
    let workload = if folder.path().join("tpcc.lua").exists() { "./tpcc.lua" } else { "tpcc" };
    let ran = folder.run(&format!("run {workload} --db {} {run} --format json --no-record", url(folder)));
    if ran.code != Some(0) {
        return Err(ran.shown());
    }
    let findings = ran.findings();
    let rules = findings["stages"][0]["audit"].as_array().unwrap();
    assert!(rules.len() >= 30, "{rules:?}");
    let failed = rules.iter().filter(|rule| rule["verdict"] == "failed");
    Ok(failed.map(|rule| rule["name"].as_str().unwrap().to_owned()).collect())
}

/// The conditions that are broken in the tables.
fn checked(folder: &Folder) -> Result<Vec<String>, String> {
    let checked = folder.run(&format!("check tpcc --db {}", url(folder)));
    let broken = checked.stderr.lines().filter(|line| line.contains(": VIOLATED"));
    let broken: Vec<String> = broken.map(str::to_owned).collect();
    match checked.code == Some(i32::from(!broken.is_empty())) {
        true => Ok(broken),
        false => Err(checked.shown()),
    }
}

/// Its database.
fn url(folder: &Folder) -> String {
    format!("sqlite:{}?synchronous=off", folder.path().join("tpcc.db").display())
}

/// Whether the intended rule noticed a defect; if not, the output.
pub(super) fn notices(defect: &Defect, prepared: &Path, run: &str) -> Result<(), String> {
    let builtin = assay_workloads::builtin().iter().find(|workload| workload.name == defect.file).unwrap();
    if builtin.text.matches(defect.text).count() != 1 {
        return Err(format!("{}: not once in the file: {}", defect.file, defect.text));
    }
    let folder = Folder::new();
    folder.write(&format!("{}.lua", defect.file), &builtin.text.replace(defect.text, defect.instead));
    if defect.file == "tpcc_load" {
        prepare(&folder, TABLES);
    }
    let about = |said| format!("{}: {}\n{said}", defect.file, defect.instead);
    let mut found = audited(&folder, prepared, run).map_err(about)?;
    let (rule, noticed) = match defect.noticed {
        Audit(rule) => (rule, found.iter().any(|name| name == rule)),
        Check(rule) => {
            found = checked(&folder).map_err(about)?;
            (rule, found.iter().any(|line| line.contains(rule)))
        }
    };
    if noticed { Ok(()) } else { Err(about(format!("  unnoticed by `{rule}`: {found:?}"))) }
}

#[test]
fn each_defect_is_noticed_by_its_rule_and_the_workload_has_none() {
    let prepared = Folder::new();
    prepare(&prepared, TABLES);
    let right = Folder::new();
    let (failed, broken) = judged(&right, prepared.path(), RUN).unwrap();
    assert_eq!((failed, broken), (vec!["new-orders on full-size tables".to_owned()], vec![]));

    expect_notices(&selected(DEFECTS, |defect| defect.noticed.rule()), prepared.path(), RUN);
}

/// Fails unless each defect is noticed by its rule in such a run.
#[track_caller]
pub(super) fn expect_notices(defects: &[&Defect], prepared: &Path, run: &str) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut unnoticed = Vec::new();
        while let Some(defect) = defects.get(next.fetch_add(1, Ordering::Relaxed)) {
            unnoticed.extend(notices(defect, prepared, run).err());
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
fn a_smaller_constant_of_nurand_is_noticed_where_there_are_items_enough() {
    let prepared = Folder::new();
    prepare(&prepared, TABLES_OF_MANY_ITEMS);
    let (failed, broken) = judged(&Folder::new(), prepared.path(), RUN).unwrap();
    assert_eq!((failed, broken), (vec!["new-orders on full-size tables".to_owned()], vec![]));
    assert_eq!(notices(&DEFECT_OF_ITEMS, prepared.path(), RUN), Ok(()));
}
