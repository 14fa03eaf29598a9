//! Defects of what is random: values that have another distribution, or depend on each other, on the terminal, the
//! turn or their own previous values; and loaded columns that depend on the key or on each other. No rule was made for
//! any one of them: `tpcc_draws` and `tpcc_rows` declare columns, and `tpcc_statistics` tests all of them.

use super::common::Folder;
use super::defects::{Defect, Noticed, defect, expect_notices, prepare, selected};
use super::defects_data::{all_are_noticed, broken_after_loads};
use super::{Place, SMALL};

use Noticed::Audit;

const ONE: &str = "--sessions 1 --transactions 2300 --seed 1";
const FOUR: &str = "--sessions 4 --transactions 2300 --seed 1";
const MANY: &str = "--sessions 4 --transactions 6900 --seed 1";
const USERS: &str = "--terminals 30 --connections 1 --think-scale 0.0001 --transactions 1500 --seed 1";

/// How many defects are seeded here: into transactions, and into the load.
pub(super) fn numbers() -> (usize, usize) {
    ([BY_ONE, BY_FOUR, BY_MANY, BY_USERS].map(<[Defect]>::len).iter().sum(), LOADS.len())
}

/// With the options of `ONE`.
const BY_ONE: &[Defect] = &[
    // Status own district.
    defect(
        "tpcc_order_status",
        "input.c_w, input.c_d = home, sysbench.rand.uniform(1, tpcc.DISTRICTS)",
        "input.c_w, input.c_d = home, assay.terminal().district",
        Audit("failed tests of random order-status"),
    ),
    // Item never twice.
    defect(
        "tpcc_new_order",
        "local w, i = supply_warehouse(home), random_item()\n",
        "local w, i = supply_warehouse(home), random_item()\n    for again = 1, 20 do local used = false for m = 1, n - 1 do if item[m] == i then used = true end end if not used then break end i = random_item() end\n",
        Audit("failed tests of random orders"),
    ),
    // Remote per order.
    defect(
        "tpcc_new_order",
        "local w, i = supply_warehouse(home), random_item()\n",
        "if n == 1 then one = supply_warehouse(home) end\n    local w, i = one, random_item()\n",
        Audit("failed tests of random orders"),
    ),
    // Only short roll back.
    defect(
        "tpcc_new_order",
        "input.unused = chance(1)",
        "input.unused = lines <= 7 and chance(4)",
        Audit("failed tests of random orders"),
    ),
    // Even cents.
    defect(
        "tpcc_payment",
        "uniform(100, 500000) / 100",
        "2 * uniform(50, 250000) / 100",
        Audit("failed tests of random payments"),
    ),
    // Only by number remote.
    defect(
        "tpcc_payment",
        "  customers.draw(input)\n",
        "  customers.draw(input)\n  if input.name then input.c_w, input.c_d = home, input.d elseif tpcc.chance(26) then input.c_w = tpcc.another_warehouse(home) end\n",
        Audit("failed tests of random payments"),
    ),
    // Status names uniform.
    defect(
        "tpcc_order_status",
        "  customers.draw(input)\n",
        "  customers.draw(input)\n  if input.name then input.name = sysbench.rand.uniform(0, session.names - 1) end\n",
        Audit("failed tests of random order-status"),
    ),
    // Every hundredth rolled back.
    defect(
        "tpcc_new_order",
        "input.unused = chance(1)",
        "turn = (turn or 0) + 1\n  input.unused = turn % 100 == 0",
        Audit("failed tests of random orders"),
    ),
    // Same quantity.
    defect(
        "tpcc_new_order",
        "= w, i, uniform(1, 10), n",
        "= w, i, n > 1 and quantity[1] or uniform(1, 10), n",
        Audit("failed tests of random orders"),
    ),
    // First line remote.
    defect(
        "tpcc_new_order",
        "local w, i = supply_warehouse(home), random_item()",
        "local w, i = home, random_item()\n    if n == 1 and chance(10) then w = tpcc.another_warehouse(home) end",
        Audit("failed tests of random orders"),
    ),
    // Remote half as large.
    defect(
        "tpcc_payment",
        "  input.amount = uniform(100, 500000) / 100\n",
        "  input.amount = uniform(100, input.c_w ~= home and 250000 or 500000) / 100\n",
        Audit("failed tests of random payments"),
    ),
    // Amount multiple of 10 cents.
    defect(
        "tpcc_payment",
        "uniform(100, 500000) / 100",
        "10 * uniform(10, 50000) / 100",
        Audit("failed tests of random payments"),
    ),
    // Amount nickel.
    defect(
        "tpcc_payment",
        "uniform(100, 500000) / 100",
        "5 * uniform(20, 100000) / 100",
        Audit("failed tests of random payments"),
    ),
    // Amount depends on district.
    defect(
        "tpcc_payment",
        "input.amount = uniform(100, 500000) / 100",
        "input.amount = (uniform(100, 500000) - 100) % (50000 * input.d) / 100 + 1",
        Audit("failed tests of random payments"),
    ),
    // Amount repeated per customer.
    defect(
        "tpcc_payment",
        "input.amount = uniform(100, 500000) / 100",
        "input.amount = uniform(100, 500000) / 100\n  if input.c then paid = paid or {} paid[input.c] = paid[input.c] or input.amount input.amount = paid[input.c] end",
        Audit("failed tests of random payments"),
    ),
    // Amount cycles of 100.
    defect(
        "tpcc_payment",
        "input.amount = uniform(100, 500000) / 100",
        "turn = (turn or 0) % 100 + 1\n  cycle = cycle or {}\n  cycle[turn] = cycle[turn] or uniform(100, 500000)\n  input.amount = cycle[turn] / 100",
        Audit("failed tests of random payments"),
    ),
    // Amount triangular.
    defect(
        "tpcc_payment",
        "uniform(100, 500000) / 100",
        "math.floor((uniform(100, 500000) + uniform(100, 500000)) / 2) / 100",
        Audit("failed tests of random payments"),
    ),
    // By name alternates 3 of 5.
    defect(
        "tpcc_customers",
        "  if chance(60) then",
        "  turn = (turn or 0) + 1\n  if turn % 5 < 3 then",
        Audit("failed tests of random payments"),
    ),
    // District walks.
    defect(
        "tpcc_payment",
        "input.d = uniform(1, tpcc.DISTRICTS)",
        "last = ((last or 0) + uniform(0, 2)) % 10 input.d = last + 1",
        Audit("failed tests of random payments"),
    ),
    // District deck.
    defect(
        "tpcc_new_order",
        "input.d, input.c = uniform(1, tpcc.DISTRICTS), customers.random()",
        "if not left or #left == 0 then left = tpcc.permutation(10) end\n  input.d, input.c = table.remove(left), customers.random()",
        Audit("failed tests of random orders"),
    ),
    // Quantity more for first.
    defect(
        "tpcc_new_order",
        "= w, i, uniform(1, 10), n",
        "= w, i, n == 1 and uniform(5, 10) or uniform(1, 10), n",
        Audit("failed tests of random orders"),
    ),
    // Quantity by item.
    defect(
        "tpcc_new_order",
        "= w, i, uniform(1, 10), n",
        "= w, i, (i * 7) % 10 + 1, n",
        Audit("failed tests of random orders"),
    ),
    // Quantity complement.
    defect(
        "tpcc_new_order",
        "= w, i, uniform(1, 10), n",
        "= w, i, n % 2 == 0 and 11 - (lastq or 5) or uniform(1, 10), n\n    lastq = quantity[at]",
        Audit("failed tests of random orders"),
    ),
    // Items neighbors.
    defect(
        "tpcc_new_order",
        "local w, i = supply_warehouse(home), random_item()\n",
        "local w, i = supply_warehouse(home), random_item()\n    if n % 2 == 0 then i = lasti % session.items + 1 end\n    lasti = i\n",
        Audit("failed tests of random orders"),
    ),
    // Items sorted.
    defect(
        "tpcc_new_order",
        "local w, i = supply_warehouse(home), random_item()\n",
        "local w, i = supply_warehouse(home), random_item()\n    if n > 1 and i < lasti then i = lasti end\n    lasti = i\n",
        Audit("failed tests of random orders"),
    ),
    // Items even.
    defect(
        "tpcc_new_order",
        "local function random_item() return nurand(8191, session.c_for_items, 1, session.items) end",
        "local function random_item() return 2 * math.ceil(nurand(8191, session.c_for_items, 1, session.items) / 2) end",
        Audit("failed tests of random orders"),
    ),
    // Remote expensive items.
    defect(
        "tpcc_new_order",
        "local w, i = supply_warehouse(home), random_item()\n",
        "local w, i = home, random_item()\n    if i > session.items / 2 and chance(2) then w = tpcc.another_warehouse(home) end\n",
        Audit("failed tests of random orders"),
    ),
    // Remote next only.
    defect(
        "tpcc_new_order",
        "if chance(1) then return tpcc.another_warehouse(w) end",
        "if chance(1) then return w % session.warehouses + 1 end",
        Audit("failed tests of random orders"),
    ),
    // Lines by turn.
    defect(
        "tpcc_new_order",
        "local lines = uniform(5, 15)",
        "turn = (turn or 0) + 1\n  local lines = 5 + turn % 11",
        Audit("failed tests of random orders"),
    ),
    // Lines same as before often.
    defect(
        "tpcc_new_order",
        "local lines = uniform(5, 15)",
        "local lines = before and chance(25) and before or uniform(5, 15)\n  before = lines",
        Audit("failed tests of random orders"),
    ),
    // Rolled back in district 1.
    defect(
        "tpcc_new_order",
        "input.unused = chance(1)",
        "input.unused = input.d == 1 and chance(10)",
        Audit("failed tests of random orders"),
    ),
    // Carrier by district.
    defect(
        "tpcc_delivery",
        "input.carrier = sysbench.rand.uniform(1, 10)",
        "input.carrier = (last or 0) % 10 + 1 last = input.carrier",
        Audit("failed tests of random deliveries"),
    ),
    // Threshold walk.
    defect(
        "tpcc_stock_level",
        "input.threshold = sysbench.rand.uniform(10, 20)",
        "last = last and 30 - last or sysbench.rand.uniform(10, 20) input.threshold = last",
        Audit("failed tests of random stock-level"),
    ),
    // New order first in deck.
    defect(
        "tpcc",
        "  local kind = deck[at]\n",
        "  if left == #deck then for place, card in ipairs(deck) do if card == 1 then at = place break end end end\n  local kind = deck[at]\n",
        Audit("failed tests of random cards"),
    ),
    // No kind twice in a row.
    defect(
        "tpcc",
        "  local kind = deck[at]\n",
        "  for _ = 1, 3 do if deck[at] == of.lastcard then at = uniform(1, left) end end\n  of.lastcard = deck[at]\n  local kind = deck[at]\n",
        Audit("failed tests of random cards"),
    ),
    // Customer by district.
    defect(
        "tpcc_new_order",
        "uniform(1, tpcc.DISTRICTS), customers.random()",
        "uniform(1, tpcc.DISTRICTS), customers.random()\n  if input.d > 5 then input.c = math.min(session.customers, input.c + 7) end",
        Audit("failed tests of random orders"),
    ),
    // Customer number uniform in status.
    defect(
        "tpcc_order_status",
        "  customers.draw(input)\n",
        "  customers.draw(input)\n  if input.c then input.c = sysbench.rand.uniform(1, session.customers) end\n",
        Audit("failed tests of random order-status"),
    ),
    // Remote burst.
    defect(
        "tpcc_payment",
        "if tpcc.chance(15) then return",
        "turn = (turn or 0) + 1\n  if turn % 100 < 15 then return",
        Audit("failed tests of random payments"),
    ),
    // No remote in the first 300.
    defect(
        "tpcc_payment",
        "if tpcc.chance(15) then return",
        "turn = (turn or 0) + 1\n  if turn > 300 and tpcc.chance(21) then return",
        Audit("failed tests of random payments"),
    ),
    // Payment amounts sorted within ten.
    defect(
        "tpcc_payment",
        "input.amount = uniform(100, 500000) / 100",
        "turn = (turn or 0) % 10 + 1\n  input.amount = (100 + (turn - 1) * 49990 + uniform(0, 49989)) / 100",
        Audit("failed tests of random payments"),
    ),
];

/// With the options of `FOUR`.
const BY_FOUR: &[Defect] = &[
    // Payment own district.
    defect(
        "tpcc_payment",
        "input.d = uniform(1, tpcc.DISTRICTS)",
        "input.d = assay.terminal().district",
        Audit("failed tests of random payments"),
    ),
    // Lines per session.
    defect(
        "tpcc_new_order",
        "local lines = uniform(5, 15)",
        "lines_of = lines_of or uniform(5, 15)\n  local lines = lines_of",
        Audit("failed tests of random orders"),
    ),
    // All sessions draw the same amounts.
    defect(
        "tpcc_payment",
        "input.amount = uniform(100, 500000) / 100",
        "turn = (turn or 0) + 1\n  input.amount = ((turn * 48271 + 11) * 16807 % 499901 + 100) / 100",
        Audit("failed tests of random payments"),
    ),
];

/// With the options of `MANY`.
const BY_MANY: &[Defect] = &[
    // Remote lines of cheap stock.
    defect(
        "tpcc_new_order",
        "= w, i, uniform(1, 10), n",
        "= w, i, w ~= home and uniform(1, 5) or uniform(1, 10), n",
        Audit("failed tests of random orders"),
    ),
    // Customer of the last payment's name.
    defect(
        "tpcc_order_status",
        "  customers.draw(input)\n",
        "  customers.draw(input)\n  if input.c then input.c = (input.c + 3) % session.customers + 1 end\n",
        Audit("failed tests of random order-status"),
    ),
    // Same district as the transaction before 20%.
    defect(
        "tpcc_payment",
        "input.d = uniform(1, tpcc.DISTRICTS)",
        "input.d = dd and tpcc.chance(20) and dd or uniform(1, tpcc.DISTRICTS) dd = input.d",
        Audit("failed tests of random payments"),
    ),
    // Amount grows over the run.
    defect(
        "tpcc_payment",
        "input.amount = uniform(100, 500000) / 100",
        "turn = (turn or 0) + 1\n  input.amount = uniform(100, math.min(500000, 250000 + 250 * turn)) / 100",
        Audit("failed tests of random payments"),
    ),
    // Quantity 1 in rolled back orders.
    defect(
        "tpcc_new_order",
        "= w, i, uniform(1, 10), n",
        "= w, i, input.unused and 1 or uniform(1, 10), n",
        Audit("failed tests of random orders"),
    ),
    // Carriers of pairs.
    defect(
        "tpcc_delivery",
        "input.carrier = sysbench.rand.uniform(1, 10)",
        "if not nextc then nextc = sysbench.rand.uniform(1, 10) input.carrier = nextc else input.carrier = nextc nextc = nil end",
        Audit("failed tests of random deliveries"),
    ),
    // Threshold by district.
    defect(
        "tpcc_stock_level",
        "function stock_level.draw(input) input.threshold = sysbench.rand.uniform(10, 20) end",
        "function stock_level.draw(input) input.threshold = 10 + (sysbench.rand.uniform(0, 3) + 3 * assay.terminal().district) % 11 end",
        Audit("failed tests of random stock-level"),
    ),
    // By name with even customers only by number.
    defect(
        "tpcc_customers",
        "input.name, input.c = nil, customers.random()",
        "input.name, input.c = nil, customers.random()\n    if input.c % 2 == 1 and tpcc.chance(50) then input.c = math.min(session.customers, input.c + 1) end",
        Audit("failed tests of random payments"),
    ),
    // Deck without shuffling the last three.
    defect(
        "tpcc",
        "local at = uniform(1, left)",
        "local at = left > 20 and left or uniform(1, left)",
        Audit("failed tests of random cards"),
    ),
    // Lines of 10 twice.
    defect(
        "tpcc_new_order",
        "local lines = uniform(5, 15)",
        "local lines = uniform(5, 15)\n  if lines == 12 and tpcc.chance(50) then lines = 10 end",
        Audit("failed tests of random orders"),
    ),
    // Remote lines come in twos.
    defect(
        "tpcc_new_order",
        "local w, i = supply_warehouse(home), random_item()\n",
        "local w, i = supply_warehouse(home), random_item()\n    if n % 2 == 0 then w = lastw or home end\n    lastw = w\n",
        Audit("failed tests of random orders"),
    ),
    // Names never with one syllable.
    defect(
        "tpcc_customers",
        "local function random_name(set) return nurand(255, session.sets[set].c_last, 0, session.names - 1) end",
        "local function random_name(set) local n repeat n = nurand(255, session.sets[set].c_last, 0, session.names - 1) until n % 11 ~= 0 return n end",
        Audit("failed tests of random payments"),
    ),
    // Name constant of another set.
    defect(
        "tpcc_customers",
        "nurand(255, session.sets[set].c_last,",
        "nurand(255, session.sets[set].c_last + 1,",
        Audit("failed tests of random payments"),
    ),
    // Customers constant other in status.
    defect(
        "tpcc_order_status",
        "  customers.draw(input)\n",
        "  customers.draw(input)\n  if input.c then input.c = nurand(1023, session.c_for_customers + 100, 1, session.customers) end\n",
        Audit("failed tests of random order-status"),
    ),
    // Item constant by session.
    defect(
        "tpcc_new_order",
        "nurand(8191, session.c_for_items, 1, session.items)",
        "nurand(8191, session.c_for_items + sysbench.tid, 1, session.items)",
        Audit("failed tests of random orders"),
    ),
];

/// With the options of `USERS`.
const BY_USERS: &[Defect] = &[
    // Think >= 1 s.
    defect("tpcc", "* mean, 10 * mean)", "* (mean - 1) + 1, 10 * mean)", Audit("failed tests of random think times")),
    // Think whole s.
    defect(
        "tpcc",
        "* mean, 10 * mean)",
        "* mean + 0.5 - (-math.log(1 - 0.5) * 0), 10 * mean)",
        Audit("failed tests of random think times"),
    ),
    // Same cards for all terminals.
    defect(
        "tpcc",
        "local at = uniform(1, left)",
        "cards = cards or {}\n  of.drawn = (of.drawn or 0) + 1\n  cards[of.drawn] = cards[of.drawn] or sysbench.rand.uniform_double()\n  local at = math.floor(cards[of.drawn] * left) + 1",
        Audit("failed tests of random cards"),
    ),
    // Think 3 means.
    defect("tpcc", "* mean, 10 * mean)", "* mean, 3 * mean)", Audit("failed tests of random think times")),
    // Think uniform mixture.
    defect(
        "tpcc",
        "* mean, 10 * mean)",
        "* mean * (uniform(0,1) == 0 and 0.5 or 1.5), 10 * mean)",
        Audit("failed tests of random think times"),
    ),
    // Think erlang.
    defect(
        "tpcc",
        "math.min(-math.log(1 - sysbench.rand.uniform_double()) * mean, 10 * mean)",
        "math.min(-math.log(1 - sysbench.rand.uniform_double()) * mean / 2 - math.log(1 - sysbench.rand.uniform_double()) * mean / 2, 10 * mean)",
        Audit("failed tests of random think times"),
    ),
    // Think same for terminal.
    defect(
        "tpcc",
        "assay.think(time_to_think(kind) + TRANSACTIONS[user.next].keying) end",
        "user.draw = user.draw or sysbench.rand.uniform_double()\n    assay.think(math.min(-math.log(1 - user.draw) * TRANSACTIONS[kind].thinking, 10 * TRANSACTIONS[kind].thinking) + TRANSACTIONS[user.next].keying) end",
        Audit("failed tests of random think times"),
    ),
    // Think ms granularity.
    defect(
        "tpcc",
        "assay.think(time_to_think(kind) + TRANSACTIONS[user.next].keying) end",
        "assay.think(math.floor(time_to_think(kind) * 1000) / 1000 + TRANSACTIONS[user.next].keying) end",
        Audit("failed tests of random think times"),
    ),
    // Think 100 ms granularity.
    defect(
        "tpcc",
        "assay.think(time_to_think(kind) + TRANSACTIONS[user.next].keying) end",
        "assay.think(math.floor(time_to_think(kind) * 10) / 10 + TRANSACTIONS[user.next].keying) end",
        Audit("failed tests of random think times"),
    ),
    // Keying random.
    defect(
        "tpcc",
        "+ TRANSACTIONS[user.next].keying) end",
        "+ TRANSACTIONS[user.next].keying + uniform(0, 2)) end",
        Audit("failed tests of random think times"),
    ),
    // Think antithetic.
    defect(
        "tpcc",
        "return math.min(-math.log(1 - sysbench.rand.uniform_double()) * mean, 10 * mean)",
        "uu = uu and 1 - uu or nil\n  local u = uu or sysbench.rand.uniform_double()\n  uu = uu == nil and u or nil\n  return math.min(-math.log(1 - u) * mean, 10 * mean)",
        Audit("failed tests of random think times"),
    ),
];

/// Replacements in the load, and a part of what the check says.
const LOADS: &[(&[(&str, &str)], &str)] = &[
    // Every tenth customer BC.
    (&[("bad_credit[c] and", "c % 10 == 0 and")], "values of customer do not depend on each other"),
    // Every tenth from random offset BC.
    (
        &[(
            "local bad_credit, names = a_tenth(customers), tpcc",
            "local off = uniform(0, 9)\n  local bad_credit, names = setmetatable({}, { __index = function(_, c) return (c + off) % 10 == 0 end }), tpcc",
        )],
        "values of customer do not depend on each other",
    ),
    // S_quantity mult 10.
    (
        &[("local quantity = uniform(10, 100)", "local quantity = 10 * uniform(1, 10)")],
        "values of stock do not depend on each other",
    ),
    // Prices grow.
    (
        &[("money(uniform(100, 10000))", "money(math.floor(100 + (i - 1) * 9900 / (context.items - 1)))")],
        "values of item do not depend on each other",
    ),
    // C_data 325 or 475.
    (
        &[("cell(300, 500)", "cell(325, 325)"), ("A300_500)", "(c % 2 == 0 and A300_500 or cell(475, 475)))")],
        "values of customer do not depend on each other",
    ),
    // Street_2 = street_1.
    (
        &[(
            "tpcc.last_name(name), A10_20, A10_20, A10_20, A2,\n",
            "tpcc.last_name(name), STREET(c), STREET(c), A10_20, A2,\n",
        )],
        "values of customer do not depend on each other",
    ),
    // Carrier by o_id.
    (
        &[("delivered and uniform(1, 10) or nil", "delivered and o % 10 + 1 or nil")],
        "values of the loaded orders do not depend on each other",
    ),
    // Carrier by customer.
    (
        &[("delivered and uniform(1, 10) or nil", "delivered and c % 10 + 1 or nil")],
        "values of the loaded orders do not depend on each other",
    ),
    // Discount by credit.
    (
        &[("50000, fraction(5000)", "50000, fraction(bad_credit[c] and 2500 or 5000)")],
        "values of customer do not depend on each other",
    ),
    // Discount by c_id.
    (
        &[("50000, fraction(5000)", "50000, string.format('0.%04d', (c * 37) % 5001)")],
        "values of customer do not depend on each other",
    ),
    // Discount whole percent.
    (
        &[("50000, fraction(5000)", "50000, string.format('0.%04d', 100 * uniform(0, 50))")],
        "values of customer do not depend on each other",
    ),
    // Ol_cnt by o.
    (
        &[("<= delivered_until, uniform(5, 15)", "<= delivered_until, 5 + o % 11")],
        "values of the loaded orders do not depend on each other",
    ),
    // Ol_cnt by customer.
    (
        &[("<= delivered_until, uniform(5, 15)", "<= delivered_until, 5 + c % 11")],
        "values of the loaded orders do not depend on each other",
    ),
    // Amount by line.
    (
        &[(
            "local item, amount = uniform(1, items), uniform(1, 999999)",
            "local item, amount = uniform(1, items), uniform(1, 66666 * number)",
        )],
        "values of the loaded order lines do not depend on each other",
    ),
    // Amount by item.
    (
        &[(
            "local item, amount = uniform(1, items), uniform(1, 999999)",
            "local item = uniform(1, items)\n        local amount = math.min(999999, math.floor(item * 999999 / items))",
        )],
        "values of the loaded order lines do not depend on each other",
    ),
    // Items sorted in order.
    (
        &[(
            "number, uniform(1, items), w, now, 5, 0",
            "number, math.floor((number - 1 + uniform(0, 999) / 1000) * items / 15) + 1, w, now, 5, 0",
        )],
        "values of the loaded order lines do not depend on each other",
    ),
    // Item the same in the order.
    (
        &[("number, uniform(1, items), w, now, 5, 0", "number, (o * 7919 + number) % items + 1, w, now, 5, 0")],
        "values of the loaded order lines do not depend on each other",
    ),
    // Same permutation in all districts.
    (
        &[(
            "ipairs(tpcc.permutation(context.customers))",
            "ipairs(PERM or (function() PERM = tpcc.permutation(context.customers) return PERM end)())",
        )],
        "values of the loaded orders do not depend on each other",
    ),
    // Permutation in blocks.
    (
        &[(
            "ipairs(tpcc.permutation(context.customers))",
            "ipairs((function() local t, n = {}, context.customers local s = uniform(0, n - 1) for i = 1, n do t[i] = (s + i * 7) % n + 1 end return t end)())",
        )],
        "values of the loaded orders do not depend on each other",
    ),
    // Im_id equals i.
    (
        &[("to.item:row(i, uniform(1, 10000)", "to.item:row(i, (i * 50) % 10000 + 1")],
        "values of item do not depend on each other",
    ),
    // Im_id by price.
    (
        &[(
            "to.item:row(i, uniform(1, 10000), A14_24, money(uniform(100, 10000))",
            "local price = uniform(100, 10000)\n    to.item:row(i, price, A14_24, money(price)",
        )],
        "values of item do not depend on each other",
    ),
    // Price cents 99.
    (
        &[("money(uniform(100, 10000))", "money(uniform(1, 100) * 100 - (uniform(0, 1) == 1 and 1 or 0))")],
        "values of item do not depend on each other",
    ),
    // Quantity by i.
    (
        &[("local quantity = uniform(10, 100)", "local quantity = 10 + (i * 13) % 91")],
        "values of stock do not depend on each other",
    ),
    // Original in each tenth.
    (
        &[(
            "local original, stock, quantities = a_tenth(last - first + 1), to.stock, 0",
            "local off = uniform(0, 9)\n  local original, stock, quantities = setmetatable({}, { __index = function(_, c) return (c + off) % 10 == 0 end }), to.stock, 0",
        )],
        "values of stock do not depend on each other",
    ),
    // Last name by c.
    (
        &[("nurand(255, context.c_last, 0, names - 1)", "(c * 7 + d) % names")],
        "values of customer do not depend on each other",
    ),
    // Phone of zeros at 9.
    (&[("cell(\"################\")", "cell(\"########0#######\")")], "values of customer do not depend on each other"),
    // Text lower only first.
    (&[("cell(8, 16)", "cell(8, 9)")], "values of customer do not depend on each other"),
    // Street lengths even.
    (
        &[
            ("cell(10, 20)", "cell(10, 10)"),
            (
                "A10_20, A10_20, A10_20, A2,\n      ZIP, PHONE",
                "A10_20, c % 2 == 0 and cell(20, 20) or A10_20, A10_20, A2,\n      ZIP, PHONE",
            ),
        ],
        "values of customer do not depend on each other",
    ),
    // Names equal history.
    (
        &[("now, 10, A12_24)", "now, 10, string.rep('ab', 8))")],
        "values of the loaded history do not depend on each other",
    ),
    // H_data from a few texts.
    (
        &[(
            "now, 10, A12_24)",
            "now, 10, (function() few = few or {} local k = uniform(1, 50) few[k] = few[k] or assay.random_text(12, 24) return few[k] end)())",
        )],
        "values of the loaded history do not depend on each other",
    ),
    // S_dist alike.
    (
        &[("quantity, A24, A24, A24, A24", "quantity, assay.random_text(1, 1):rep(24), A24, A24, A24")],
        "values of stock do not depend on each other",
    ),
    // Dist by neighbor.
    (
        &[(
            "quantity, A24, A24",
            "quantity, (function() two = assay.random_text(24, 24) return two end)(), (function() return two:reverse() end)()",
        )],
        "values of stock do not depend on each other",
    ),
    // Ol_dist_info few.
    (
        &[(
            "w, nil, 5, money(amount), A24)",
            "w, nil, 5, money(amount), (function() few = few or {} local k = uniform(1, 500) few[k] = few[k] or assay.random_text(24, 24) return few[k] end)())",
        )],
        "values of the loaded order lines do not depend on each other",
    ),
    // Carriers after sort.
    (
        &[("delivered and uniform(1, 10) or nil", "delivered and math.ceil(o * 10 / delivered_until) or nil")],
        "values of the loaded orders do not depend on each other",
    ),
    // Credit BC for low names.
    (
        &[("bad_credit[c] and", "(c <= customers / 20 or c > customers - customers / 20) and")],
        "values of customer do not depend on each other",
    ),
    // Credit by discount order.
    (
        &[(
            "local bad_credit, names = a_tenth(customers), tpcc",
            "local half = a_tenth(customers / 2)\n  local bad_credit, names = setmetatable({}, { __index = function(_, c) return half[math.ceil(c / 2)] end }), tpcc",
        )],
        "values of customer do not depend on each other",
    ),
];

#[test]
fn values_that_are_not_drawn_as_their_clauses_say_are_noticed() {
    let tables = Folder::new();
    prepare(&tables, "--warehouses 3 --customers 360 --items 200 --seed 3");
    for (defects, run) in [(BY_ONE, ONE), (BY_FOUR, FOUR), (BY_MANY, MANY), (BY_USERS, USERS)] {
        expect_notices(&selected(defects, |defect| defect.noticed.rule()), tables.path(), run);
    }
}

#[test]
fn loaded_columns_that_depend_on_the_key_or_on_each_other_are_noticed() {
    all_are_noticed(&selected(LOADS, |(_, condition)| *condition), |(replacements, condition)| {
        let broken = broken_after_loads("tpcc_load", replacements)?;
        let noticed = broken.iter().any(|line| line.contains(condition));
        if noticed { Ok(()) } else { Err(format!("{replacements:?}\n  unnoticed by `{condition}`: {broken:?}")) }
    });
}

#[test]
fn numbers_of_the_load_that_are_exchanged_are_noticed_without_making_the_rows_again() {
    let place = Place::sqlite();
    place.expect("prepare", &format!("{SMALL} --seed 3"), 0);
    let exchange = |table: &str, column: &str, others: &str| {
        format!(
            "UPDATE {table}1 SET {column} = ROUND((SELECT SUM(o.{column}) FROM {table}1 o WHERE {others}) - {column}, 4)
             WHERE {others}"
        )
    };
    for (table, column, others) in [
        ("orders", "o_carrier_id", "o_w_id = 1 AND o_d_id = 2 AND o_id IN (4, 5)"),
        ("orders", "o_c_id", "o_w_id = 1 AND o_d_id = 2 AND o_id IN (3, 4)"),
        ("item", "i_price", "i_id IN (5, 6)"),
        ("customer", "c_discount", "c_w_id = 2 AND c_d_id = 1 AND c_id IN (7, 8)"),
        ("stock", "s_quantity", "s_w_id = 2 AND s_i_id IN (5, 6)"),
        ("order_line", "ol_i_id", "ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id IN (3, 4) AND ol_number = 1"),
    ] {
        let statement = exchange(table, column, others);
        place.sql(&statement);
        let said = place.folder.run(&format!("check tpcc --db {} --no-record", place.url)).stderr;
        assert!(
            said.contains("numbers of the load are where the load put them, by a weighted sum of each piece: VIOLATED"),
            "{statement}: {said}"
        );
        place.sql(&statement);
    }
    place.expect("check", "--thorough", 0);
}

/// Tables of dice, and of dice that are not fair or depend on each other, with the module's own tests.
#[test]
fn tests_of_random_values_alarm_as_seldom_as_they_say_and_see_what_they_should() {
    let place = Place::sqlite();
    place.folder.write(
        "dice.lua",
        r#"
local statistics = require("tpcc_statistics")
local uniform = sysbench.rand.uniform
local function near(a, wanted) if math.abs(a / wanted - 1) > 2e-3 then error(("%g, not %g"):format(a, wanted), 2) end end
-- Of 1,000 trials, how many are below 0.1 and 0.01: no more than that, and not never.
local function fair(what, trial)
  local tenths, hundredths = 0, 0
  for i = 1, 1000 do
    local p = trial()
    if p < 0.1 then tenths = tenths + 1 end
    if p < 0.01 then hundredths = hundredths + 1 end
    if i % 100 == 0 then assay.sleep(0) end
  end
  if tenths > 130 or tenths < 5 or hundredths > 22 then error(("%s: %d, %d"):format(what, tenths, hundredths)) end
end
local function zeros(k)
  local cells = {}
  for i = 0, k - 1 do cells[i] = 0 end
  return cells
end
sysbench.cmdline.commands = { go = { function()
  local lower, upper = statistics.chi_square(18.307, 10)
  near(upper, 0.05) near(lower, 0.95)
  near((select(2, statistics.chi_square(10.828, 1))), 0.001)
  near((statistics.chi_square(3.940, 10)), 0.05)
  near(statistics.combined(-2 * math.log(0.05), 2), 0.0025 * (1 - math.log(0.0025)))
  local even = statistics.equal(10)
  fair("ten faces", function()
    local cells = zeros(10)
    for _ = 1, 200 do local x = uniform(0, 9) cells[x] = cells[x] + 1 end
    return (statistics.fit(cells, even, 10))
  end)
  fair("a rare event and ten faces", function()
    local cells = zeros(20)
    for _ = 1, 300 do
      local at = (uniform(1, 30) == 1 and 10 or 0) + uniform(0, 9)
      cells[at] = cells[at] + 1
    end
    return (statistics.independence(cells, 2, 10))
  end)
  fair("pairs", function()
    local cells = zeros(100)
    for _ = 1, 400 do local at = uniform(0, 9) * 10 + uniform(0, 9) cells[at] = cells[at] + 1 end
    return (statistics.independence(cells, 10, 10))
  end)
  -- A deck instead of dice, a face too often, and a copy of a fifth.
  local cells = zeros(10)
  for i = 0, 9 do cells[i] = 100 end
  assert(statistics.fit(cells, even, 10) < 1e-8)
  cells[3], cells[4] = 160, 40
  assert(statistics.fit(cells, even, 10) < 1e-8)
  cells = zeros(100)
  for _ = 1, 1000 do
    local x = uniform(0, 9)
    local at = x * 10 + (uniform(1, 5) == 1 and x or uniform(0, 9))
    cells[at] = cells[at] + 1
  end
  assert(statistics.independence(cells, 10, 10) < 1e-8)
end } }
"#,
    );
    place.folder.expect(&format!("exec ./dice.lua go --db {} --seed 1", place.url), 0);
}
