//! Defects of transactions while they run: work that is reported but not done, wrong rows, broken isolation, wrong
//! times, wrong contents. Each is noticed by the intended rule, in a run of the length of those in `defects`.

use super::common::Folder;
use super::defects::{Defect, Noticed, defect, judged, prepare, selected};

use Noticed::{Audit, Check};

/// Work that is reported but not done, or done but not reported.
const WORK: &[Defect] = &[
    defect("tpcc_payment", "  defer(session.begin)\n", "  do return end\n", Audit("cents paid in the tables")),
    defect(
        "tpcc_payment",
        "  session.commit:execute()\n",
        "  session.rollback:execute()\n",
        Audit("cents paid in the tables"),
    ),
    defect(
        "tpcc_new_order",
        "  session.commit:execute()\n",
        "  if uniform(1, 10) == 1 then session.rollback:execute() else session.commit:execute() end\n",
        Audit("orders in the tables"),
    ),
    defect(
        "tpcc_new_order",
        "  defer(session.begin)\n",
        "  turn = (turn or 0) + 1\n  if turn % 2 == 0 then return turn, 1 end\n  defer(session.begin)\n",
        Audit("orders in the tables"),
    ),
    defect(
        "tpcc_delivery",
        "delivered[d] = deliver(set, w, d, carrier)",
        "deliver(set, w, d, carrier)\n    delivered[d] = deliver(set, w, d, carrier)",
        Audit("deliveries in the tables"),
    ),
    defect(
        "tpcc_delivery",
        "  while not o do\n",
        "  if o then\n    invented = (invented or 5000) + 1\n    return invented\n  end\n  while not o do\n",
        Audit("deliveries in the tables"),
    ),
    defect(
        "tpcc_new_order",
        "  defer(session.begin)\n",
        "  if input.unused then return nil end\n  defer(session.begin)\n",
        Audit("transactions with too few statements"),
    ),
    // The unused item comes first.
    defect(
        "tpcc_new_order",
        "    local i, from, amount = item[n], supply[n], quantity[n]\n",
        "    local i, from, amount = input.unused and session.items + 1 or item[n], supply[n], quantity[n]\n",
        Audit("transactions with too few statements"),
    ),
    defect(
        "tpcc_new_order",
        "  if not o then return assay.rolled_back() end\n",
        "  if not o then return end\n",
        Audit("orders in the tables"),
    ),
    defect(
        "tpcc",
        "assay.transaction(transaction.name, transaction.run)",
        "assay.transaction(transaction.name == \"stock_level\" and \"new_order\" or transaction.name, transaction.run)",
        Audit("orders in the tables"),
    ),
    defect(
        "tpcc_payment",
        "  session.by.payment(session.sets[input.set], home, input)\n",
        "  for _ = 1, 2 do session.by.payment(session.sets[input.set], home, input) end\n",
        Audit("cents paid in the tables"),
    ),
    defect(
        "tpcc_payment",
        "defer(set.pay_warehouse, amount, w)",
        "defer(set.pay_warehouse, amount / 2, w)",
        Audit("cents paid to warehouses"),
    ),
    defect(
        "tpcc_sql",
        "ORDER BY no_o_id LIMIT 1<lock>",
        "ORDER BY no_o_id DESC LIMIT 1<lock>",
        Audit("deliveries in the tables"),
    ),
    // A client that remembers items, instead of reading them.
    defect(
        "tpcc_new_order",
        "    local price, _, i_data = select_item:row(i)\n",
        "    known = known or {}\n    if not known[i] then known[i] = { select_item:row(i) } end\n    local price, _, i_data = unpack(known[i])\n",
        Audit("transactions with too few statements"),
    ),
    defect(
        "tpcc_new_order",
        "    defer(update_stock, left, amount, from == w and 0 or 1, from, i)\n",
        "    if from == w then defer(update_stock, left, amount, 0, from, i) end\n",
        Audit("transactions with too few statements"),
    ),
    defect(
        "tpcc_delivery",
        "  defer(set.deliver_to_customer, amount, w, d, c)\n",
        "",
        Audit("transactions with too few statements"),
    ),
    defect(
        "tpcc_new_order",
        "  local discount, _, _, w_tax = set.order_customer:row(w, d, c)\n",
        "  local discount, w_tax = 0.1, 0.1\n",
        Audit("transactions with too few statements"),
    ),
    defect(
        "tpcc_payment",
        "  local w_name = set.warehouse:row(w)\n",
        "  names = names or {}\n  names[w] = names[w] or set.warehouse:row(w)\n  local w_name = names[w]\n",
        Audit("transactions with too few statements"),
    ),
];

/// Rows other than those entered, or drawn from another distribution.
const ROWS: &[Defect] = &[
    defect(
        "tpcc_delivery",
        "session.by.delivery(session.sets[input.set], home,",
        "session.by.delivery(session.sets[input.set], home % session.warehouses + 1,",
        Audit("deliveries in the tables by district"),
    ),
    defect(
        "tpcc_payment",
        "defer(set.pay_district, amount, w, d)",
        "defer(set.pay_district, amount, w, 1)",
        Audit("cents paid in the tables by district"),
    ),
    defect(
        "tpcc_payment",
        "  input.d = uniform(1, tpcc.DISTRICTS)\n",
        "  input.d = 1\n",
        Audit("district of payments"),
    ),
    defect(
        "tpcc_payment",
        "input.c_d = uniform(1, tpcc.DISTRICTS) end",
        "input.c_d = input.d end",
        Audit("remote payments in the same district"),
    ),
    defect(
        "tpcc_payment",
        "  local credit = set.paying_customer:row(c_w, c_d, c)\n",
        "  c = 7\n  local credit = set.paying_customer:row(c_w, c_d, c)\n",
        Audit("transactions with wrong values"),
    ),
    defect(
        "tpcc_customers",
        "    input.name, input.c = nil, customers.random()\n",
        "    input.name, input.c = nil, 7\n",
        Audit("customers favored by NURand"),
    ),
    defect(
        "tpcc_order_status",
        "input.c_w, input.c_d = home, sysbench.rand.uniform(1, tpcc.DISTRICTS)",
        "input.c_w, input.c_d = home, 1",
        Audit("district of order-status"),
    ),
    defect(
        "tpcc_order_status",
        "local w, d, c = input.c_w, input.c_d, input.c\n",
        "local w, d, c = input.c_w % session.warehouses + 1, input.c_d, input.c\n",
        Audit("transactions with wrong values"),
    ),
    defect(
        "tpcc_order_status",
        "local w, d, c = input.c_w, input.c_d, input.c\n",
        "local w, d, c = input.c_w, 1, input.c\n",
        Audit("transactions with wrong values"),
    ),
    defect(
        "tpcc_new_order",
        "    local w, i = supply_warehouse(home), random_item()\n",
        "    one = n == 1 and random_item() or one\n    local w, i = supply_warehouse(home), one\n",
        Audit("first two lines with the same item"),
    ),
    defect(
        "tpcc_new_order",
        "input.d, input.c = uniform(1, tpcc.DISTRICTS), customers.random()",
        "input.d, input.c = assay.terminal().district, customers.random()",
        Audit("orders of the terminal's district"),
    ),
    defect(
        "tpcc_new_order",
        "defer(set.insert_order, o, d, w, c, lines,",
        "defer(set.insert_order, o, d, w, 1, lines,",
        Audit("transactions with wrong values"),
    ),
    defect(
        "tpcc_stock_level",
        "next_order - 20, next_order",
        "next_order - 10, next_order",
        Audit("transactions with wrong values"),
    ),
    // As procedures, and other transactions that cannot be watched: seen in the tables.
    defect(
        "tpcc_new_order",
        "nurand(8191, session.c_for_items, 1, session.items)",
        "uniform(1, session.items)",
        Audit("favored items in the tables"),
    ),
    defect(
        "tpcc_customers",
        "nurand(1023, session.c_for_customers, 1, session.customers)",
        "sysbench.rand.uniform(1, session.customers)",
        Audit("favored customers in the tables"),
    ),
    defect("tpcc_payment", "tpcc.chance(15)", "tpcc.chance(5)", Audit("remote payments")),
    defect("tpcc_new_order", "chance(1) then return tpcc", "chance(3) then return tpcc", Audit("remote order lines")),
    defect("tpcc_new_order", "input.unused = chance(1)", "input.unused = chance(5)", Audit("new-orders rolled back")),
    defect("tpcc_customers", "chance(60)", "chance(45)", Audit("payments by last name")),
    defect(
        "tpcc_customers",
        "math.ceil(found.nrows / 2)",
        "math.max(1, math.floor(found.nrows / 2))",
        Check("Order-Status answers with the balance"),
    ),
    defect("tpcc_new_order", "= w, i, uniform(1, 10), n", "= w, i, uniform(1, 9), n", Check("ol_quantity is 1 to 10")),
    defect(
        "tpcc_new_order",
        "defer(set.next_order, o + 1,",
        "defer(set.next_order, o + 2,",
        Audit("orders in the tables"),
    ),
];

/// More or fewer database transactions than one.
const ISOLATION: &[Defect] = &[
    // SQLite refuses a COMMIT without BEGIN.
    defect(
        "tpcc_order_status",
        "  session.defer(session.begin_reading)\n",
        "  local session = setmetatable({ commit = { execute = function() end } }, { __index = session })\n",
        Audit("not in one database transaction"),
    ),
    defect(
        "tpcc_order_status",
        "  local o = set.last_order:row(w, d, c)\n",
        "  session.commit:execute()\n  session.begin:execute()\n  local o = set.last_order:row(w, d, c)\n",
        Audit("not in one database transaction"),
    ),
    defect(
        "tpcc_stock_level",
        "  local low = set.low_stock",
        "  session.commit:execute()\n  session.begin:execute()\n  local low = set.low_stock",
        Audit("not in one database transaction"),
    ),
    defect(
        "tpcc_payment",
        "  defer(session.begin)\n",
        "  local session = setmetatable({ commit = { execute = function() end } }, { __index = session })\n",
        Audit("not in one database transaction"),
    ),
    defect(
        "tpcc_delivery",
        "    if not delivered[d] then skipped = skipped + 1 end\n",
        "    if not delivered[d] then skipped = skipped + 1 end\n    if d == 5 then session.commit:execute() session.begin:execute() end\n",
        Audit("not in one database transaction"),
    ),
];

/// Contents that the client calculates.
const CONTENTS: &[Defect] = &[
    defect("tpcc_new_order", "sum / 100 * (1 - discount) * ", "sum / 100 * ", Audit("transactions with wrong values")),
    defect("tpcc_new_order", " * (1 + w_tax + d_tax)", "", Audit("transactions with wrong values")),
    defect(
        "tpcc_delivery",
        "defer(set.set_carrier, carrier,",
        "defer(set.set_carrier, (carrier + d) % 10 + 1,",
        Audit("transactions with wrong values"),
    ),
    defect("tpcc_payment", "uniform(100, 500000) / 100", "uniform(1, 5000)", Audit("payments of whole dollars")),
    defect("tpcc_payment", ":sub(1, 500)", ":sub(1, 400)", Audit("transactions with wrong values")),
    defect(
        "tpcc_payment",
        "w, amount, data):sub",
        "w, amount, (\"x\"):rep(400)):sub",
        Audit("transactions with wrong values"),
    ),
    defect(
        "tpcc_order_status",
        "  for _ = 1, found do lines:fetch_row() end\n",
        "",
        Audit("transactions with wrong values"),
    ),
    defect(
        "tpcc_sql",
        "VALUES (?, ?, ?, ?, <now>, ?, ?)",
        "VALUES (?, ?, ?, ?, '2026-01-01 00:00:00', ?, ?)",
        Audit("dates of orders"),
    ),
    defect(
        "tpcc_sql",
        "SET ol_delivery_d = <now>",
        "SET ol_delivery_d = '2026-01-01 00:00:00'",
        Audit("dates of deliveries"),
    ),
    defect(
        "tpcc_sql",
        "VALUES (?, ?, ?, ?, ?, <now>, ?, ?)",
        "VALUES (?, ?, ?, ?, ?, '2026-01-01 00:00:00', ?, ?)",
        Audit("dates of payments"),
    ),
    defect(
        "tpcc_sql",
        "UPDATE {order_line} SET ol_delivery_d = <now> WHERE",
        "UPDATE {order_line} SET ol_delivery_d = <now> WHERE ol_number = 1 AND",
        Check("an order line has no delivery date if, and only if"),
    ),
    defect(
        "tpcc_sql",
        " WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?\", \"iii\",\n  },\n}\n\nstatements.delivery",
        " WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ? LIMIT 5\", \"iii\",\n  },\n}\n\nstatements.delivery",
        Check("Order-Status answers with the balance"),
    ),
];

/// What users key in and think.
const TIMES: &[Defect] = &[
    defect(
        "tpcc",
        "assay.think(time_to_think(kind) + TRANSACTIONS[user.next].keying) end",
        "assay.think(time_to_think(kind)) end",
        Audit("pauses shorter than the keying time"),
    ),
    defect(
        "tpcc",
        "assay.think(time_to_think(kind) + TRANSACTIONS[user.next].keying) end",
        "assay.think(time_to_think(kind) + TRANSACTIONS[kind].keying) end",
        Audit("pauses shorter than the keying time"),
    ),
    defect(
        "tpcc",
        "return math.min(-math.log",
        "return 0.5 * math.min(-math.log",
        Audit("think times in the longest half"),
    ),
    defect(
        "tpcc",
        "return math.min(-math.log(1 - sysbench.rand.uniform_double()) * mean, 10 * mean)",
        "return mean",
        Audit("think times in the longest quarter"),
    ),
    defect(
        "tpcc",
        "return math.min(-math.log(1 - sysbench.rand.uniform_double()) * mean, 10 * mean)",
        "return 2 * mean * sysbench.rand.uniform_double()",
        Audit("think times in the longest half"),
    ),
    defect("tpcc_payment", "thinking = 12", "thinking = 6", Audit("think times in the longest half")),
    defect("tpcc_new_order", "keying = 18", "keying = 8", Audit("pauses shorter than the keying time")),
];

/// A stock-level is one transaction in 23, and a threshold one in eleven.
const THRESHOLDS: &[Defect] = &[
    defect("tpcc_stock_level", "uniform(10, 20)", "uniform(10, 19)", Audit("stock-level thresholds of 20")),
    defect("tpcc_stock_level", "uniform(10, 20)", "uniform(11, 20)", Audit("stock-level thresholds of 10")),
];

/// Tables must have enough names for the constants of NURand to differ.
const NAMES: &[Defect] = &[
    defect("tpcc_customers", "nurand(255, session", "nurand(127, session", Audit("names with the top bit of NURand")),
    defect(
        "tpcc_customers",
        "nurand(1023, session",
        "nurand(511, session",
        Audit("customers with the top bit of NURand"),
    ),
];

/// Tables must have few customers for the last one to be missed.
const LAST: &[Defect] = &[defect(
    "tpcc_customers",
    "nurand(1023, session.c_for_customers, 1, session.customers)",
    "nurand(1023, session.c_for_customers, 1, session.customers - 1)",
    Audit("last customer of a district"),
)];

/// A user who hardly thinks.
const HURRIED: &[Defect] = &[defect(
    "tpcc",
    "assay.think(time_to_think(kind) + TRANSACTIONS[user.next].keying) end",
    "assay.think(0.01) end",
    Audit("tpmC up to 12.86 per warehouse"),
)];

/// How many defects are seeded here.
pub(super) fn number() -> usize {
    [WORK, ROWS, ISOLATION, CONTENTS, TIMES, THRESHOLDS, NAMES, LAST, HURRIED].map(<[Defect]>::len).iter().sum()
}

const RUN: &str = "--sessions 1 --transactions 2300 --seed 1";
const TABLES: &str = "--warehouses 3 --customers 360 --items 200 --seed 3";

/// Fails unless one defect for each rule is noticed in such a run, or all of them.
#[track_caller]
fn expect_notices(defects: &'static [Defect], prepared: &std::path::Path, run: &str) {
    super::defects::expect_notices(&selected(defects, |defect| defect.noticed.rule()), prepared, run);
}

/// Rules that the unmodified workload breaks in such a run: tables are small, and in some runs the mix is another.
fn broken_without_defects(tables: &Folder, run: &str) -> Vec<String> {
    let (failed, broken) = judged(&Folder::new(), tables.path(), run).unwrap();
    assert_eq!(broken, Vec::<String>::new());
    failed
}

#[test]
fn what_is_reported_is_compared_with_the_tables_and_with_what_was_entered() {
    let tables = Folder::new();
    prepare(&tables, TABLES);
    for defects in [WORK, ROWS, ISOLATION, CONTENTS] {
        expect_notices(defects, tables.path(), RUN);
    }
}

#[test]
fn keying_and_think_times_are_those_of_the_specification() {
    let tables = Folder::new();
    prepare(&tables, TABLES);
    let run = "--terminals 30 --connections 1 --think-scale 0.0001 --transactions 1500 --seed 1";
    assert_eq!(broken_without_defects(&tables, run), ["new-orders on full-size tables"]);
    expect_notices(TIMES, tables.path(), run);
}

#[test]
fn rare_values_are_noticed_when_they_are_missing() {
    let tables = Folder::new();
    prepare(&tables, TABLES);
    let run = "--mix 4,4,1,1,10 --sessions 1 --transactions 1000 --seed 1";
    let expected = ["payment in the mix", "new-orders on full-size tables"];
    assert_eq!(broken_without_defects(&tables, run), expected);
    expect_notices(THRESHOLDS, tables.path(), run);
    let tables = Folder::new();
    prepare(&tables, "--warehouses 1 --customers 3000 --items 200 --seed 3");
    assert_eq!(broken_without_defects(&tables, RUN), ["new-orders on full-size tables"]);
    expect_notices(NAMES, tables.path(), RUN);
    let tables = Folder::new();
    prepare(&tables, "--warehouses 3 --customers 60 --items 200 --seed 3");
    // With this seed, the last customer is drawn often.
    let run = "--sessions 1 --transactions 2300 --seed 5";
    assert_eq!(broken_without_defects(&tables, run), ["new-orders on full-size tables"]);
    expect_notices(LAST, tables.path(), run);
}

#[test]
fn more_than_the_maximum_of_tpmc_is_a_failed_rule() {
    let tables = Folder::new();
    prepare(&tables, TABLES);
    // The first transaction comes after a pause that is not shortened.
    expect_notices(HURRIED, tables.path(), "--terminals 30 --connections 1 --time 6 --seed 1");
}
