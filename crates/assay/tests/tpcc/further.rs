//! Defects of other kinds, which no rule was made for: what notices them, and which ones nothing notices. The table in
//! `docs/tpcc.md` is this one.

use super::common::Folder;
use super::defects::{judged, prepare, selected};
use super::defects_data::{all_are_noticed, broken, broken_after_load, prepare_used, spoil};
use super::{defects, defects_data, defects_run, random};

/// A defect, as the documentation names it, and what notices it.
struct Further {
    defect: &'static str,
    seeded: Seeded,
    noticed: Noticed,
}

/// Where the defect is.
enum Seeded {
    /// In a file of the workload, during a run with these options: text and replacement.
    Run(&'static str, &'static str, &'static str, &'static str),
    /// In a file of the workload, during the load: text and replacement.
    Load(&'static str, &'static str, &'static str),
    /// In tables on which a run has worked; each line is a statement, with texts between grave accents.
    Data(&'static str),
}

/// What notices, by a part of the rule's or condition's name.
#[derive(Clone, Copy)]
enum Noticed {
    Audit(&'static str),
    Check(&'static str),
    Thorough(&'static str),
    Nothing,
}

use Noticed::{Audit, Check, Nothing, Thorough};
use Seeded::{Data, Load, Run};

const ONE: &str = "--sessions 1 --transactions 2300 --seed 1";
const USERS: &str = "--terminals 30 --connections 1 --think-scale 0.0001 --transactions 1500 --seed 1";
const LEVELS: &str = "--mix 4,4,1,1,10 --sessions 1 --transactions 4000 --seed 1";

const fn further(defect: &'static str, seeded: Seeded, noticed: Noticed) -> Further {
    Further { defect, seeded, noticed }
}

const FURTHER: &[Further] = &[
    // New-Order.
    further(
        "an order of 7 lines gets no row in new_orders",
        Run(
            "tpcc_new_order",
            "  defer(set.insert_new_order, o, d, w)\n",
            "  if lines ~= 7 then defer(set.insert_new_order, o, d, w) end\n",
            ONE,
        ),
        Audit("transactions with too few statements"),
    ),
    further(
        "s_remote_cnt counts the local lines",
        Run("tpcc_new_order", "from == w and 0 or 1, from", "from == w and 1 or 0, from", ONE),
        Check("s_ytd, s_order_cnt and s_remote_cnt count the order lines"),
    ),
    further(
        "91 are added to the stock when exactly 10 are left",
        Run("tpcc_new_order", "if left < 10 then", "if left <= 10 then", ONE),
        Check("columns of stock are in their ranges"),
    ),
    further(
        "amounts of lines are rounded to whole dollars",
        Run(
            "tpcc_new_order",
            "local cost = amount * cents(price)",
            "local cost = floor(amount * cents(price) / 100) * 100",
            ONE,
        ),
        Check("an order line has its ol_quantity times i_price"),
    ),
    further(
        "half of the discount",
        Run("tpcc_new_order", "(1 - discount)", "(1 - discount / 2)", ONE),
        Audit("transactions with wrong values"),
    ),
    further(
        "the tax of the district twice, none of the warehouse",
        Run("tpcc_new_order", "(1 + w_tax + d_tax)", "(1 + d_tax + d_tax)", ONE),
        Audit("transactions with wrong values"),
    ),
    further(
        "orders are for customers with even numbers only",
        Run(
            "tpcc_new_order",
            "uniform(1, tpcc.DISTRICTS), customers.random()",
            "uniform(1, tpcc.DISTRICTS), 2 * math.ceil(customers.random() / 2)",
            ONE,
        ),
        Audit("customers favored by NURand"),
    ),
    further(
        "the number of lines depends on the customer",
        Run("tpcc_new_order", "local lines = uniform(5, 15)", "local lines = 5 + (input.c + input.d) % 11", ONE),
        Audit("failed tests of random orders"),
    ),
    further(
        "every hundredth order is rolled back, not one in a hundred at random",
        Run(
            "tpcc_new_order",
            "input.unused = chance(1)",
            "turn = (turn or 0) + 1\n  input.unused = turn % 100 == 0",
            ONE,
        ),
        Audit("failed tests of random orders"),
    ),
    further(
        "all lines of an order have the same quantity",
        Run("tpcc_new_order", "= w, i, uniform(1, 10), n", "= w, i, n > 1 and quantity[1] or uniform(1, 10), n", ONE),
        Audit("failed tests of random orders"),
    ),
    further(
        "only the first line of an order is ever remote",
        Run(
            "tpcc_new_order",
            "local w, i = supply_warehouse(home), random_item()",
            "local w, i = home, random_item()\n    if n == 1 and chance(10) then w = tpcc.another_warehouse(home) end",
            ONE,
        ),
        Audit("failed tests of random orders"),
    ),
    further(
        "the client ignores i_data and s_data",
        Run(
            "tpcc_new_order",
            "i_data:find(\"ORIGINAL\", 1, true) and s_data:find(\"ORIGINAL\", 1, true) and \"B\" or \"G\"",
            "\"G\"",
            ONE,
        ),
        Nothing,
    ),
    // Payment.
    further(
        "a payment lowers the balance by twice its amount",
        Run(
            "tpcc_sql",
            "c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1\"",
            "c_balance = c_balance - 2 * ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1\"",
            ONE,
        ),
        Check("clause 3.3.2.10"),
    ),
    further(
        "h_d_id and h_c_d_id are exchanged",
        Run(
            "tpcc_payment",
            "defer(set.insert_history, c, c_d, c_w, d, w,",
            "defer(set.insert_history, c, d, c_w, c_d, w,",
            ONE,
        ),
        Audit("transactions with wrong values"),
    ),
    further(
        "remote payments are half as large",
        Run(
            "tpcc_payment",
            "  input.amount = uniform(100, 500000) / 100\n",
            "  input.amount = uniform(100, input.c_w ~= home and 250000 or 500000) / 100\n",
            ONE,
        ),
        Audit("failed tests of random payments"),
    ),
    further(
        "the customer after the middle one pays",
        Run(
            "tpcc_customers",
            "math.ceil(found.nrows / 2)",
            "math.min(found.nrows, math.ceil(found.nrows / 2) + 1)",
            ONE,
        ),
        Check("at least 60 % of payments are for the middle one"),
    ),
    further(
        "customers with a last name are ordered by number",
        Run("tpcc_sql", "ORDER BY c_first\"", "ORDER BY c_id\"", ONE),
        Check("at least 60 % of payments are for the middle one"),
    ),
    further(
        "payments are appended to c_data instead of put in front",
        Run(
            "tpcc_payment",
            "(\"%d %d %d %d %d %.2f|%s\"):format(c, c_d, c_w, d, w, amount, data)",
            "(\"%s|%d %d %d %d %d %.2f\"):format(data, c, c_d, c_w, d, w, amount)",
            ONE,
        ),
        Audit("transactions with wrong values"),
    ),
    further(
        "w_ytd grows by whole dollars",
        Run(
            "tpcc_payment",
            "defer(set.pay_warehouse, amount, w)",
            "defer(set.pay_warehouse, math.floor(amount), w)",
            ONE,
        ),
        Audit("cents paid to warehouses"),
    ),
    further(
        "remote payments are always for the same other warehouse",
        Run(
            "tpcc_payment",
            "return tpcc.another_warehouse(w)",
            "return w % 2 == 1 and math.min(w + 1, session.warehouses) or w - 1",
            ONE,
        ),
        Audit("remote payments for far warehouses"),
    ),
    // Delivery.
    further(
        "the carrier is noted for the next order",
        Run(
            "tpcc_delivery",
            "defer(set.set_carrier, carrier, w, d, o)",
            "defer(set.set_carrier, carrier, w, d, o + 1)",
            ONE,
        ),
        Check("clause 3.3.2.5"),
    ),
    further(
        "a delivery charges only the most expensive line",
        Run("tpcc_sql", "SELECT SUM(ol_amount)", "SELECT MAX(ol_amount)", ONE),
        Check("clause 3.3.2.10"),
    ),
    further(
        "a delivery charges the next customer",
        Run(
            "tpcc_delivery",
            "defer(set.deliver_to_customer, amount, w, d, c)",
            "defer(set.deliver_to_customer, amount, w, d, c % session.customers + 1)",
            ONE,
        ),
        Check("c_delivery_cnt counts the customer's orders"),
    ),
    further(
        "the first district is delivered twice, the tenth never",
        Run(
            "tpcc_delivery",
            "delivered[d] = deliver(set, w, d, carrier)",
            "delivered[d] = deliver(set, w, d == 10 and 1 or d, carrier)",
            ONE,
        ),
        Audit("deliveries in the tables by district"),
    ),
    further(
        "lines have the date of the order's entry as date of delivery",
        Run(
            "tpcc_sql",
            "SET ol_delivery_d = <now> WHERE ol_w_id = ?",
            "SET ol_delivery_d = (SELECT o_entry_d FROM {orders} WHERE o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id) WHERE ol_w_id = ?",
            ONE,
        ),
        Audit("dates of deliveries"),
    ),
    // Order-Status and Stock-Level.
    further(
        "Order-Status reads the last but one order",
        Run("tpcc_sql", "ORDER BY o_id DESC LIMIT 1\"", "ORDER BY o_id DESC LIMIT 1 OFFSET 1\"", ONE),
        Audit("order-status that found no order"),
    ),
    further(
        "Order-Status reads the balance of the next customer",
        Run(
            "tpcc_order_status",
            "set.customer_status:row(w, d, c)",
            "set.customer_status:row(w, d, c % session.customers + 1)",
            ONE,
        ),
        Audit("transactions with wrong values"),
    ),
    further(
        "Order-Status reads the lines of an older order",
        Run(
            "tpcc_order_status",
            "set.lines_of_order:execute(w, d, tonumber(o))",
            "set.lines_of_order:execute(w, d, tonumber(o) - 1)",
            ONE,
        ),
        Audit("transactions with wrong values"),
    ),
    further(
        "Stock-Level counts an item once per line",
        Run("tpcc_sql", "COUNT(DISTINCT s_i_id)", "COUNT(s_i_id)", ONE),
        Check("Stock-Level counts the low items of the last 20 orders"),
    ),
    further(
        "Stock-Level counts quantities equal to the threshold",
        Run("tpcc_sql", "s_quantity < ?", "s_quantity <= ?", ONE),
        Check("Stock-Level counts the low items of the last 20 orders"),
    ),
    further(
        "thresholds are even numbers",
        Run("tpcc_stock_level", "sysbench.rand.uniform(10, 20)", "2 * sysbench.rand.uniform(5, 10)", LEVELS),
        Audit("stock-level thresholds of 10"),
    ),
    // Mix and times.
    further(
        "a payment instead of every second delivery",
        Run(
            "tpcc",
            "  execute = transaction.counted\n",
            "  if transaction.name == \"delivery\" then other = (other or 0) + 1 end\n  if transaction.name == \"delivery\" and other % 2 == 0 then\n    kind, transaction = 2, TRANSACTIONS[2]\n    transaction.draw(input, user.home)\n  end\n  execute = transaction.counted\n",
            ONE,
        ),
        Audit("delivery in the mix"),
    ),
    further(
        "think times end at three means, not ten",
        Run("tpcc", "* mean, 10 * mean)", "* mean, 3 * mean)", USERS),
        Audit("failed tests of random think times"),
    ),
    further(
        "the think time is that of the next transaction, not of the last",
        Run(
            "tpcc",
            "assay.think(time_to_think(kind) + TRANSACTIONS[user.next].keying) end",
            "assay.think(time_to_think(user.next) + TRANSACTIONS[user.next].keying) end",
            USERS,
        ),
        Audit("think times over ten means"),
    ),
    // The load.
    further(
        "c_street_2 equals c_street_1",
        Load(
            "tpcc_load",
            "tpcc.last_name(name), A10_20, A10_20, A10_20, A2,\n",
            "tpcc.last_name(name), STREET(c), STREET(c), A10_20, A2,\n",
        ),
        Check("values of customer do not depend on each other"),
    ),
    further(
        "first names have at most 12 characters",
        Load("tpcc_load", "cell(8, 16)", "cell(8, 12)"),
        Check("values of customer are distributed as specified"),
    ),
    further(
        "prices are multiples of half a dollar",
        Load("tpcc_load", "money(uniform(100, 10000))", "money(50 * uniform(2, 200))"),
        Check("values of item are distributed as specified"),
    ),
    further(
        "image numbers end at 1,000",
        Load("tpcc_load", "to.item:row(i, uniform(1, 10000)", "to.item:row(i, uniform(1, 1000)"),
        Check("values of item are distributed as specified"),
    ),
    further(
        "orders with 15 lines have 14",
        Load("tpcc_load", "    for number = 1, count do\n", "    for number = 1, math.min(count, 14) do\n"),
        Check("an order has o_ol_cnt lines"),
    ),
    further(
        "all districts of a warehouse have the same tax",
        Load(
            "tpcc_load",
            "A6_10, A10_20, A10_20, A10_20, A2, ZIP, tax(),\n    money(context.customers",
            "A6_10, A10_20, A10_20, A10_20, A2, ZIP, 0.01 * w,\n    money(context.customers",
        ),
        Check("w_tax and d_tax are distributed as specified"),
    ),
    // Data.
    further(
        "a dollar more in d_ytd and in w_ytd",
        Data(
            "UPDATE warehouse1 SET w_ytd = w_ytd + 1 WHERE w_id = 1\nUPDATE district1 SET d_ytd = d_ytd + 1 WHERE d_w_id = 1 AND d_id = 4",
        ),
        Check("clause 3.3.2.9"),
    ),
    further(
        "another quantity in an order line of the run",
        Data(
            "UPDATE order_line1 SET ol_quantity = 11 - ol_quantity WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 125 AND ol_number = 1",
        ),
        Check("an order line has its ol_quantity times i_price"),
    ),
    further(
        "a payment is gone, and all sums and counters are corrected for it",
        Data(
            "CREATE TABLE gone AS SELECT * FROM history1 WHERE h_w_id = 1 AND h_c_w_id = 1 AND h_amount <> 10 AND h_c_id IN (SELECT c_id FROM customer1 WHERE c_w_id = 1 AND c_d_id = h_c_d_id AND c_credit = `GC`) LIMIT 1\nDELETE FROM history1 WHERE rowid = (SELECT h.rowid FROM history1 h JOIN gone g ON h.h_amount = g.h_amount AND h.h_c_id = g.h_c_id AND h.h_c_d_id = g.h_c_d_id LIMIT 1)\nUPDATE warehouse1 SET w_ytd = w_ytd - (SELECT h_amount FROM gone) WHERE w_id = 1\nUPDATE district1 SET d_ytd = d_ytd - (SELECT h_amount FROM gone) WHERE d_w_id = 1 AND d_id = (SELECT h_d_id FROM gone)\nUPDATE customer1 SET c_balance = c_balance + (SELECT h_amount FROM gone), c_ytd_payment = c_ytd_payment - (SELECT h_amount FROM gone), c_payment_cnt = c_payment_cnt - 1 WHERE c_w_id = 1 AND c_d_id = (SELECT h_c_d_id FROM gone) AND c_id = (SELECT h_c_id FROM gone)\nDROP TABLE gone",
        ),
        Nothing,
    ),
    further(
        "an order of the run is entered a second later",
        Data(
            "UPDATE orders1 SET o_entry_d = DATETIME(o_entry_d, `+1 second`) WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 122",
        ),
        Nothing,
    ),
    further(
        "the two lines of a warehouse's street are exchanged",
        Data("UPDATE warehouse1 SET w_street_1 = w_street_2, w_street_2 = w_street_1 WHERE w_id = 1"),
        Thorough("warehouse is as it was loaded"),
    ),
];

/// An error if something else notices than what is published.
fn is_as_published(further: &Further, small: &Folder, used: &Folder) -> Result<(), String> {
    let of_run = |file: &str, text: &str, instead: &str, options: &str| {
        let builtin = assay_workloads::builtin().iter().find(|workload| workload.name == file).unwrap();
        if builtin.text.matches(text).count() != 1 {
            return Err(format!("not once in the file: {text}"));
        }
        let folder = Folder::new();
        folder.write(&format!("{file}.lua"), &builtin.text.replace(text, instead));
        let (mut failed, broken) = judged(&folder, small.path(), options)?;
        // Of all these runs, because of their tables and options.
        failed.retain(|name| !["new-orders on full-size tables", "payment in the mix"].contains(&name.as_str()));
        Ok((failed, broken))
    };
    let (failed, broken) = match further.seeded {
        Run(file, text, instead, options) => of_run(file, text, instead, options)?,
        Load(file, text, instead) => (Vec::new(), broken_after_load(file, text, instead)?),
        Data(statements) => {
            let place = spoil(used, statements);
            let broken_lines = broken(&place.folder, &place.url, "")?;
            if broken_lines.is_empty() {
                (Vec::new(), broken(&place.folder, &place.url, "--thorough")?)
            } else {
                (Vec::new(), broken_lines)
            }
        }
    };
    let is_right = match further.noticed {
        Audit(rule) => failed.iter().any(|name| name.contains(rule)),
        Check(rule) => broken.iter().any(|line| line.contains(rule) && !line.contains("as it was loaded")),
        Thorough(rule) => broken.iter().any(|line| line.contains(rule)),
        Nothing => failed.is_empty() && broken.is_empty(),
    };
    if is_right { Ok(()) } else { Err(format!("{}: {failed:?}, {broken:?}", further.defect)) }
}

#[test]
fn further_defects_are_noticed_or_missed_as_the_documentation_says() {
    let (small, used) = (Folder::new(), Folder::new());
    prepare(&small, "--warehouses 3 --customers 360 --items 200 --seed 3");
    prepare_used(&used);
    let by = |further: &Further| match further.noticed {
        Audit(rule) | Check(rule) | Thorough(rule) => rule,
        Nothing => "nothing",
    };
    all_are_noticed(&selected(FURTHER, by), |further| is_as_published(further, &small, &used));
}

#[test]
fn the_documentation_has_the_table_of_further_defects() {
    let mut table = String::from("| defect | noticed by |\n| --- | --- |\n");
    for one in FURTHER {
        let by = match one.noticed {
            Audit(rule) => format!("audit: {rule}"),
            Check(rule) => format!("check: {rule}"),
            Thorough(rule) => format!("check --thorough: {rule}"),
            Nothing => "nothing".to_owned(),
        };
        table.push_str(&format!("| {} | {by} |\n", one.defect));
    }
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tpcc.md")).unwrap();
    assert!(document.contains(&table), "docs/tpcc.md lacks:\n{table}");

    let missed = FURTHER.iter().filter(|one| matches!(one.noticed, Nothing)).count();
    let (loads, spoiled) = defects_data::numbers();
    let (random, random_loads) = random::numbers();
    let words = document.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        format!("{} into transactions", defects::number() + defects_run::number() + random),
        format!("{} into the load, and {spoiled} into tables that were correct", loads + random_loads),
        format!("The following {} were seeded", FURTHER.len()),
        format!("{} are noticed, {missed} are not", FURTHER.len() - missed),
    ] {
        assert!(words.contains(&sentence), "docs/tpcc.md lacks: {sentence}");
    }
}
