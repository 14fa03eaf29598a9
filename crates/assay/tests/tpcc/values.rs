//! Values as the specification requires: random values, the content of the tables, the cards of a deck.

use super::{Place, SMALL};

/// Runs Lua with `tpcc` and a connection `con`; the script raises an error if something is wrong.
#[track_caller]
fn holds(place: &Place, body: &str) {
    let script = format!(
        r#"
local tpcc = require("tpcc_common")
local function same(a, b) if a ~= b then error(("%s, expected %s"):format(tostring(a), tostring(b)), 2) end end
local function within(a, low, high)
  if not (a >= low and a <= high) then error(("%s, expected %s to %s"):format(a, low, high), 2) end
end
sysbench.cmdline.commands = {{ go = {{ function()
  local con = sysbench.sql.driver():connect()
  local function number(sql) return tonumber((con:query_row(sql))) end
{body}
end }} }}
"#
    );
    place.folder.write("holds.lua", &script);
    place.folder.expect(&format!("exec ./holds.lua go --db {} --seed 1", place.url), 0);
}

#[test]
fn last_names_constants_and_nurand_follow_their_clauses() {
    holds(
        &Place::sqlite(),
        r#"
  -- 4.3.2.3, whose example is 371
  same(tpcc.last_name(371), "PRICALLYOUGHT")
  same(tpcc.last_name(0), "BARBARBAR")
  same(tpcc.last_name(999), "EINGEINGEING")
  -- 4.3.3.1: 70 % of the orders are delivered, for any number of customers
  for customers = 20, 3000, 20 do same(tpcc.delivered(customers) * 10, customers * 7) end
  -- 2.1.6.1, for any constant of the load and seed
  for load = 0, 255 do
    sysbench.opt.rand_seed = load * 7
    local run = tpcc.constant_for_last_names(load)
    local delta = math.abs(run - load)
    within(run, 0, 255)
    within(delta, 65, 119)
    if delta == 96 or delta == 112 then error(("delta %d for %d"):format(delta, load)) end
  end
  -- Agreed on by all, and others with another seed.
  local seen, different = {}, 0
  for seed = 1, 1000 do
    sysbench.opt.rand_seed = seed
    local c = tpcc.constant_of_run(8191, 8192)
    within(c, 0, 8191)
    same(c, tpcc.constant_of_run(8191, 8192))
    if not seen[c] then seen[c], different = true, different + 1 end
  end
  within(different, 900, 1000)
  -- 2.1.6: as often as counting all pairs says, for a range small enough to count
  local wanted, n = {}, 200000
  for a = 0, 7 do for b = 3, 22 do
    local value = (bit.bor(a, b) + 5) % 20 + 3
    wanted[value] = (wanted[value] or 0) + n / 160
  end end
  local found = {}
  for _ = 1, n do
    local value = nurand(7, 5, 3, 22)
    found[value] = (found[value] or 0) + 1
  end
  for value = 3, 22 do
    local expected = wanted[value] or 0
    within(found[value] or 0, expected - 5 * math.sqrt(expected), expected + 5 * math.sqrt(expected))
  end
  -- What NURand favors, against all pairs counted one by one, and against an even generator
  for _, of in ipairs { { 7, 3, 22 }, { 3, 1, 4 }, { 15, 0, 99 }, { 7, 1, 100 } } do
    local a, low, high = unpack(of)
    local flags, share = tpcc.favored(a, low, high)
    local range, favored = high - low + 1, 0
    same(#flags, range)
    for x = 0, a do for y = low, high do
      if flags:sub(bit.bor(x, y) % range + 1, bit.bor(x, y) % range + 1) == "1" then favored = favored + 1 end
    end end
    same(favored / ((a + 1) * range), share)
    local _, ones = flags:gsub("1", "")
    if ones > 0 then within(share / (ones / range), 1.2, 100) end
  end
  local list, there = tpcc.permutation(100), {}
  for i = 1, 100 do there[list[i]] = true end
  for i = 1, 100 do same(there[i], true) end"#,
    );
}

#[test]
fn tables_are_populated_as_clause_4_3_says() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    holds(
        &place,
        r#"
  local function none(sql) same(number(sql), 0) end
  -- Rows and their numbers
  same(number("SELECT COUNT(*) FROM item1 WHERE i_id BETWEEN 1 AND 200"), 200)
  same(number("SELECT COUNT(*) FROM stock1 WHERE s_i_id BETWEEN 1 AND 200 AND s_w_id BETWEEN 1 AND 2"), 400)
  same(number("SELECT COUNT(*) FROM customer1"), 1200)
  same(number("SELECT COUNT(*) FROM history1"), 1200)
  same(number("SELECT COUNT(DISTINCT o_c_id + 100 * o_d_id + 10000 * o_w_id) FROM orders1"), 1200)
  same(number("SELECT COUNT(*) FROM new_orders1 WHERE no_o_id BETWEEN 43 AND 60"), 360)
  -- One in ten
  same(number("SELECT COUNT(*) FROM item1 WHERE i_data LIKE '%ORIGINAL%'"), 20)
  same(number("SELECT COUNT(*) FROM stock1 WHERE s_data LIKE '%ORIGINAL%'"), 40)
  same(number("SELECT COUNT(*) FROM customer1 WHERE c_credit = 'BC'"), 120)
  same(number("SELECT COUNT(*) FROM customer1 WHERE c_credit = 'GC'"), 1080)
  -- Texts: letters and digits, of their lengths
  for _, column in ipairs {
    "item1.i_name 14 24", "item1.i_data 26 50", "stock1.s_dist_01 24 24", "stock1.s_dist_10 24 24", "stock1.s_data 26 50",
    "customer1.c_first 8 16", "customer1.c_street_1 10 20", "customer1.c_state 2 2", "customer1.c_data 300 500",
    "history1.h_data 12 24", "order_line1.ol_dist_info 24 24", "warehouse1.w_name 6 10", "district1.d_name 6 10",
  } do
    local where, name, low, high = column:match("(%w+_?%w+)%.(%S+) (%d+) (%d+)")
    none(("SELECT COUNT(*) FROM %s WHERE LENGTH(%s) < %d OR LENGTH(%s) > %d OR %s GLOB '*[^0-9A-Za-z]*'"):format(where, name,
      low, name, high, name))
  end
  none("SELECT COUNT(*) FROM customer1 WHERE c_zip NOT GLOB '[0-9][0-9][0-9][0-9]11111'")
  none("SELECT COUNT(*) FROM customer1 WHERE LENGTH(c_phone) <> 16 OR c_phone GLOB '*[^0-9]*' OR c_middle <> 'OE'")
  -- Numbers
  none("SELECT COUNT(*) FROM item1 WHERE i_price < 1 OR i_price > 100 OR i_im_id NOT BETWEEN 1 AND 10000")
  none("SELECT COUNT(*) FROM stock1 WHERE s_quantity NOT BETWEEN 10 AND 100 OR s_ytd <> 0 OR s_order_cnt <> 0 OR s_remote_cnt <> 0")
  none("SELECT COUNT(*) FROM district1 WHERE d_ytd <> 600 OR d_next_o_id <> 61 OR d_tax NOT BETWEEN 0 AND 0.2")
  none("SELECT COUNT(*) FROM warehouse1 WHERE w_ytd <> 6000 OR w_tax NOT BETWEEN 0 AND 0.2")
  none("SELECT COUNT(*) FROM customer1 WHERE c_balance <> -10 OR c_ytd_payment <> 10 OR c_payment_cnt <> 1"
    .. " OR c_delivery_cnt <> 0 OR c_credit_lim <> 50000 OR c_discount NOT BETWEEN 0 AND 0.5")
  none("SELECT COUNT(*) FROM orders1 WHERE o_ol_cnt NOT BETWEEN 5 AND 15 OR o_all_local <> 1")
  none("SELECT COUNT(*) FROM orders1 WHERE (o_id <= 42) <> (o_carrier_id BETWEEN 1 AND 10)")
  none("SELECT COUNT(*) FROM order_line1 WHERE ol_quantity <> 5 OR ol_supply_w_id <> ol_w_id OR ol_i_id NOT BETWEEN 1 AND 200")
  none("SELECT COUNT(*) FROM order_line1 WHERE (ol_o_id <= 42) <> (ol_amount = 0) OR ol_amount > 9999.99")
  -- The first customers have all last names, one each; the others have these too.
  same(tpcc.last_names(60), 20)
  same(tpcc.last_names(3000), 1000)
  for c = 1, 20 do
    same(number(("SELECT COUNT(*) FROM customer1 WHERE c_id = %d AND c_last = '%s'"):format(c, tpcc.last_name(c - 1))), 20)
  end
  same(number("SELECT COUNT(DISTINCT c_last) FROM customer1"), 20)
  within(number("SELECT v FROM tpcc_load1 WHERE what = 'c_last'"), 0, 255)"#,
    );
}

#[test]
fn decks_make_the_mix_exact_and_can_be_others() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    for (mix, wanted) in [
        ("10,10,1,1,1", [100, 100, 10, 10, 10]),
        ("45,43,4,4,4", [103, 99, 10, 9, 9]),
        ("0,0,0,0,3", [0, 0, 0, 0, 230]),
    ] {
        let line = format!("--mix {mix} --sessions 1 --transactions 230 --seed 1 --format json --no-record");
        let findings = place.expect("run", &line, 0).findings();
        let types = findings["stages"][0]["total"]["types"].as_array().unwrap();
        let of = |name: &str| -> u64 {
            let one = types.iter().find(|one| one["name"] == name).unwrap();
            one["transactions"].as_u64().unwrap() + one["rolled_back"].as_u64().unwrap_or(0)
        };
        let found = ["new_order", "payment", "order_status", "delivery", "stock_level"].map(of);
        assert_eq!(found.iter().sum::<u64>(), 230);
        // Two decks of 100 and part of a third: within a few cards.
        let near = |found: &u64, wanted: &u64| found.abs_diff(*wanted) <= if mix.starts_with("45") { 8 } else { 0 };
        assert!(found.iter().zip(&wanted).all(|(found, wanted)| near(found, wanted)), "{mix}: {found:?}");
    }
}
