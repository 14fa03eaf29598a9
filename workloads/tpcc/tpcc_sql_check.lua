--- The consistency conditions of TPC-C in SQL, and the questions of the commands that verify.
--
-- Every condition is one statement that returns the rows that violate it, none if it holds. The statements group and
-- join whole tables instead of looking at one district after another, and compare in both directions (UNION ALL, then
-- GROUP BY), so that a row that is missing on either side is found as well. Shares (what was drawn at random, as seen
-- in the data) are one statement each, too, which counts.

local tpcc = require("tpcc_common")

local check = {}

local format = string.format

-- A WHERE clause for rows that violate any of the conditions, or have NULL in a tested column.
local function unless(conditions)
  return "CASE WHEN " .. table.concat(conditions, " AND ") .. " THEN 0 ELSE 1 END = 1"
end

--- `column`s, each a text with this many characters.
local function lengths(low, high, columns)
  local parts = {}
  for column in columns:gmatch("[%w_]+") do parts[#parts + 1] = format("LENGTH(%s) BETWEEN %d AND %d", column, low, high) end
  return table.concat(parts, " AND ")
end

--- `column`s, each an a-string: nothing but letters and digits (4.3.2.2).
local function letters(low, high, columns)
  local parts = {}
  for column in columns:gmatch("[%w_]+") do parts[#parts + 1] = format("LETTERS(%s)", column) end
  return lengths(low, high, columns) .. " AND " .. table.concat(parts, " AND ")
end

-- A zip code ends with 11111 (4.3.2.7).
local function address(prefix)
  return letters(10, 20, (("_street_1 _street_2 _city"):gsub("_street_[12]", prefix .. "%0"):gsub(" _city", " " .. prefix .. "_city")))
    .. " AND " .. letters(2, 2, prefix .. "_state") .. format(" AND LENGTH(%s_zip) = 9 AND DIGITS(%s_zip) AND %s_zip LIKE '____11111'",
      prefix, prefix, prefix)
end

-- The texts of a row of stock differ: two of 24 characters are not the same by chance.
local DISTRICT_TEXTS, DISTRICT_TEXT = {}, { "CASE ol_d_id" }
for d = 1, tpcc.DISTRICTS do
  DISTRICT_TEXTS[d] = format("LENGTH(s_dist_%02d) = 24", d)
  if d > 1 then DISTRICT_TEXTS[d] = DISTRICT_TEXTS[d] .. format(" AND s_dist_%02d <> s_dist_%02d", d - 1, d) end
  DISTRICT_TEXT[d + 1] = format("WHEN %d THEN BYTES(s_dist_%02d)", d, d)
end
DISTRICT_TEXTS, DISTRICT_TEXT = table.concat(DISTRICT_TEXTS, " AND "), table.concat(DISTRICT_TEXT, " ") .. " END"

-- 4.3.2.3, not shared with the load: a wrong syllable there must not be right here.
local PARTS_OF_NAMES = { [0] = "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING" }

--- The last name of a number from 0 to 999.
function check.last_name(n)
  return (format("%03d", n):gsub("%d", function(figure) return PARTS_OF_NAMES[tonumber(figure)] end))
end

-- For the number c_id - 1.
local SYLLABLES = {}
for place, ones in ipairs { 100, 10, 1 } do
  local cases = { format("CASE ((c_id - 1) %% %d - (c_id - 1) %% %d) / %d", ones * 10, ones, ones) }
  for n = 0, 9 do cases[n + 2] = format("WHEN %d THEN '%s'", n, PARTS_OF_NAMES[n]) end
  SYLLABLES[place] = table.concat(cases, " ") .. " END"
end
local NAMES = {}
for n = 0, 999 do NAMES[n + 1] = "'" .. check.last_name(n) .. "'" end

-- Clause, condition, statement. {name} is a table of the set; <…> makes a sum of money comparable; JOINED(a, b)
-- concatenates texts; BYTES(a) compares a text with its case and blanks; LETTERS(a) and DIGITS(a): a text has nothing
-- else than letters and digits, or digits; CODE(a) is the code of a character; #name is a number from the load.
check.conditions = {
  {
    "3.3.2.1", "w_ytd is the sum of its districts' d_ytd",
    [[SELECT w_id, MAX(w_ytd) AS w_ytd, SUM(d_ytd) AS sum_d_ytd FROM {warehouse} LEFT JOIN {district} ON d_w_id = w_id
      GROUP BY w_id HAVING COUNT(d_id) <> 10 OR <MAX(w_ytd)> <> <SUM(d_ytd)>]],
  },
  {
    "3.3.2.2", "d_next_o_id - 1 is the greatest o_id, and the greatest no_o_id",
    [[SELECT d_w_id, d_id, d_next_o_id, last_order, last_new_order FROM {district}
      LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last_order FROM {orders} GROUP BY o_w_id, o_d_id) o
        ON o_w_id = d_w_id AND o_d_id = d_id
      LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS last_new_order FROM {new_orders} GROUP BY no_w_id, no_d_id) n
        ON no_w_id = d_w_id AND no_d_id = d_id
      WHERE last_order IS NULL OR d_next_o_id - 1 <> last_order OR d_next_o_id - 1 <> last_new_order]],
  },
  {
    "3.3.2.3", "the no_o_id of a district have no gaps",
    [[SELECT no_w_id, no_d_id, MIN(no_o_id) AS min_no_o_id, MAX(no_o_id) AS max_no_o_id, COUNT(*) AS new_order_rows
      FROM {new_orders} GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)]],
  },
  {
    "3.3.2.4", "the o_ol_cnt of a district add up to its order lines",
    [[SELECT w, d, SUM(expected) AS sum_o_ol_cnt, SUM(found) AS order_line_rows FROM (
        SELECT o_w_id AS w, o_d_id AS d, SUM(o_ol_cnt) AS expected, 0 AS found FROM {orders} GROUP BY o_w_id, o_d_id
        UNION ALL SELECT ol_w_id, ol_d_id, 0, COUNT(*) FROM {order_line} GROUP BY ol_w_id, ol_d_id) t
      GROUP BY w, d HAVING SUM(expected) <> SUM(found)]],
  },
  {
    "3.3.2.5", "an order has no carrier if, and only if, it is a new order",
    [[SELECT w, d, o, SUM(without_carrier) AS without_carrier, SUM(new_orders) AS new_order_rows FROM (
        SELECT o_w_id AS w, o_d_id AS d, o_id AS o, 1 AS without_carrier, 0 AS new_orders FROM {orders}
          WHERE o_carrier_id IS NULL
        UNION ALL SELECT no_w_id, no_d_id, no_o_id, 0, 1 FROM {new_orders}) t
      GROUP BY w, d, o HAVING SUM(without_carrier) <> SUM(new_orders)]],
  },
  {
    "3.3.2.6", "an order has o_ol_cnt lines, numbered from 1",
    [[SELECT w, d, o, SUM(expected) AS o_ol_cnt, SUM(found) AS order_line_rows, SUM(low) AS min_ol_number, SUM(high) AS max_ol_number
      FROM (
        SELECT o_w_id AS w, o_d_id AS d, o_id AS o, o_ol_cnt AS expected, 0 AS found, 0 AS low, 0 AS high FROM {orders}
        UNION ALL SELECT ol_w_id, ol_d_id, ol_o_id, 0, COUNT(*), MIN(ol_number), MAX(ol_number) FROM {order_line}
          GROUP BY ol_w_id, ol_d_id, ol_o_id) t
      GROUP BY w, d, o HAVING SUM(expected) <> SUM(found) OR SUM(low) <> 1 OR SUM(high) <> SUM(found)]],
  },
  {
    "3.3.2.7", "an order line has no delivery date if, and only if, its order has no carrier",
    [[SELECT o_w_id, o_d_id, o_id, o_carrier_id, order_lines, delivered_lines FROM {orders} JOIN (
        SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS order_lines, COUNT(ol_delivery_d) AS delivered_lines
        FROM {order_line} GROUP BY ol_w_id, ol_d_id, ol_o_id) l
      ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
      WHERE (o_carrier_id IS NULL AND delivered_lines > 0) OR (o_carrier_id IS NOT NULL AND delivered_lines < order_lines)]],
  },
  {
    "3.3.2.8", "w_ytd is the sum of its history's h_amount",
    [[SELECT w, SUM(ytd) AS w_ytd, SUM(paid) AS sum_h_amount FROM (
        SELECT w_id AS w, w_ytd AS ytd, 0 AS paid FROM {warehouse}
        UNION ALL SELECT h_w_id, 0, SUM(h_amount) FROM {history} GROUP BY h_w_id) t
      GROUP BY w HAVING <SUM(ytd)> <> <SUM(paid)>]],
  },
  {
    "3.3.2.9", "d_ytd is the sum of its history's h_amount",
    [[SELECT w, d, SUM(ytd) AS d_ytd, SUM(paid) AS sum_h_amount FROM (
        SELECT d_w_id AS w, d_id AS d, d_ytd AS ytd, 0 AS paid FROM {district}
        UNION ALL SELECT h_w_id, h_d_id, 0, SUM(h_amount) FROM {history} GROUP BY h_w_id, h_d_id) t
      GROUP BY w, d HAVING <SUM(ytd)> <> <SUM(paid)>]],
  },
  {
    "3.3.2.10", "c_balance is what was delivered to the customer less what was paid",
    [[SELECT w, d, c, SUM(balance) AS c_balance, SUM(delivered) AS sum_ol_amount, SUM(paid) AS sum_h_amount FROM (
        SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_balance AS balance, 0 AS delivered, 0 AS paid FROM {customer}
        UNION ALL SELECT o_w_id, o_d_id, o_c_id, 0, SUM(ol_amount), 0 FROM {orders} JOIN {order_line}
          ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
          WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id
        UNION ALL SELECT h_c_w_id, h_c_d_id, h_c_id, 0, 0, SUM(h_amount) FROM {history}
          GROUP BY h_c_w_id, h_c_d_id, h_c_id) t
      GROUP BY w, d, c HAVING <SUM(balance)> <> <SUM(delivered) - SUM(paid)>]],
  },
  {
    -- The specification says 2100 (3000 customers less 900 new orders), which holds until the first delivery. Each
    -- delivery removes a new order, and is counted in c_delivery_cnt.
    "3.3.2.11", "orders that are not new: 70 % of the customers, and one for each delivery",
    [[SELECT w, d, SUM(orders) AS order_rows, SUM(new_orders) AS new_order_rows, SUM(deliveries) AS sum_c_delivery_cnt
      FROM (
        SELECT o_w_id AS w, o_d_id AS d, COUNT(*) AS orders, 0 AS new_orders, 0 AS deliveries FROM {orders}
          GROUP BY o_w_id, o_d_id
        UNION ALL SELECT no_w_id, no_d_id, 0, COUNT(*), 0 FROM {new_orders} GROUP BY no_w_id, no_d_id
        UNION ALL SELECT c_w_id, c_d_id, 0, 0, SUM(c_delivery_cnt) FROM {customer} GROUP BY c_w_id, c_d_id) t
      GROUP BY w, d HAVING SUM(orders) - SUM(new_orders) - SUM(deliveries) <> #delivered]],
  },
  {
    "3.3.2.12", "c_balance and c_ytd_payment add up to what was delivered to the customer",
    [[SELECT w, d, c, SUM(balance) AS c_balance, SUM(paid) AS c_ytd_payment, SUM(delivered) AS sum_ol_amount FROM (
        SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_balance AS balance, c_ytd_payment AS paid, 0 AS delivered
          FROM {customer}
        UNION ALL SELECT o_w_id, o_d_id, o_c_id, 0, 0, SUM(ol_amount) FROM {orders} JOIN {order_line}
          ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
          WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) t
      GROUP BY w, d, c HAVING <SUM(balance) + SUM(paid)> <> <SUM(delivered)>]],
  },
  {
    -- No condition of 3.3.2 detects a workload that leaves these unchanged.
    "2.4.2.2", "s_ytd, s_order_cnt and s_remote_cnt count the order lines since the load",
    [[SELECT w, i, SUM(ytd) AS s_ytd, SUM(quantity) AS sum_ol_quantity, SUM(orders) AS s_order_cnt, SUM(line) AS order_lines,
        SUM(remote) AS s_remote_cnt, SUM(remote_line) AS remote_lines FROM (
        SELECT s_w_id AS w, s_i_id AS i, s_ytd AS ytd, s_order_cnt AS orders, s_remote_cnt AS remote, 0 AS quantity,
          0 AS line, 0 AS remote_line FROM {stock} WHERE s_ytd <> 0 OR s_order_cnt <> 0 OR s_remote_cnt <> 0
        UNION ALL SELECT ol_supply_w_id, ol_i_id, 0, 0, 0, SUM(ol_quantity), COUNT(*),
          SUM(CASE WHEN ol_supply_w_id <> ol_w_id THEN 1 ELSE 0 END) FROM {order_line} WHERE ol_o_id > #customers
          GROUP BY ol_supply_w_id, ol_i_id) t
      GROUP BY w, i HAVING SUM(ytd) <> SUM(quantity) OR SUM(orders) <> SUM(line) OR SUM(remote) <> SUM(remote_line)]],
  },
  -- Rows: their number, and their ids.
  {
    "1.2.1", "item has each i_id from 1 to the number of items",
    [[SELECT COUNT(*) AS item_rows, MIN(i_id) AS min_i_id, MAX(i_id) AS max_i_id FROM {item}
      HAVING COUNT(*) <> #items OR MIN(i_id) <> 1 OR MAX(i_id) <> #items]],
  },
  {
    "1.2.1", "warehouse has each w_id from 1 to the number of warehouses",
    [[SELECT COUNT(*) AS warehouse_rows, MIN(w_id) AS min_w_id, MAX(w_id) AS max_w_id FROM {warehouse}
      HAVING COUNT(*) <> #warehouses OR MIN(w_id) <> 1 OR MAX(w_id) <> #warehouses]],
  },
  {
    "1.2.1", "a warehouse has a row of stock for each item",
    [[SELECT w_id, COUNT(s_i_id) AS stock_rows, MIN(s_i_id) AS min_s_i_id, MAX(s_i_id) AS max_s_i_id
      FROM {warehouse} LEFT JOIN {stock} ON s_w_id = w_id
      GROUP BY w_id HAVING COUNT(s_i_id) <> #items OR MIN(s_i_id) <> 1 OR MAX(s_i_id) <> #items]],
  },
  {
    "1.2.1", "a district has all its customers",
    [[SELECT d_w_id, d_id, COUNT(c_id) AS customer_rows, MIN(c_id) AS min_c_id, MAX(c_id) AS max_c_id
      FROM {district} LEFT JOIN {customer} ON c_w_id = d_w_id AND c_d_id = d_id
      GROUP BY d_w_id, d_id HAVING COUNT(c_id) <> #customers OR MIN(c_id) <> 1 OR MAX(c_id) <> #customers]],
  },
  {
    "2.4.2.2", "the o_id of a district have no gaps",
    [[SELECT o_w_id, o_d_id, MIN(o_id) AS min_o_id, MAX(o_id) AS max_o_id, COUNT(*) AS order_rows
      FROM {orders} GROUP BY o_w_id, o_d_id HAVING MIN(o_id) <> 1 OR MAX(o_id) <> COUNT(*)]],
  },
  -- Columns: no unexpected NULLs, and all values in range.
  {
    "1.3", "columns of warehouse are in their ranges",
    "SELECT w_id, w_name, w_tax, w_ytd FROM {warehouse} WHERE "
      .. unless { letters(6, 10, "w_name"), address("w"), "w_tax BETWEEN 0 AND 0.2", "w_ytd >= 0" },
  },
  {
    "1.3", "columns of district are in their ranges",
    "SELECT d_w_id, d_id, d_name, d_tax, d_ytd, d_next_o_id FROM {district} WHERE " .. unless {
      "d_w_id BETWEEN 1 AND #warehouses", "d_id BETWEEN 1 AND 10", letters(6, 10, "d_name"), address("d"), "d_tax BETWEEN 0 AND 0.2", "d_ytd >= 0",
      "d_next_o_id > #customers",
    },
  },
  {
    "1.3", "columns of customer are in their ranges",
    "SELECT c_w_id, c_d_id, c_id, c_first, c_middle, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt,"
      .. " c_delivery_cnt FROM {customer} WHERE " .. unless {
        "c_w_id BETWEEN 1 AND #warehouses", "c_d_id BETWEEN 1 AND 10", "c_id BETWEEN 1 AND #customers", letters(8, 16, "c_first"),
        "BYTES(c_middle) = 'OE'", address("c"), "LENGTH(c_phone) = 16 AND DIGITS(c_phone)", "c_since IS NOT NULL",
        "BYTES(c_credit) IN ('GC', 'BC')", "c_credit_lim = 50000", "c_discount BETWEEN 0 AND 0.5", "c_balance IS NOT NULL",
        "c_ytd_payment >= 10", "c_payment_cnt >= 1", "c_delivery_cnt >= 0", lengths(300, 500, "c_data"),
      },
  },
  {
    "4.3.2.3", "c_last is the name of c_id - 1 for the first customers, and a valid name for the others",
    "SELECT c_w_id, c_d_id, c_id, c_last FROM {customer} WHERE CASE WHEN c_id <= #names AND c_last = JOINED("
      .. table.concat(SYLLABLES, ", ") .. ") OR c_id > #names AND BYTES(c_last) IN (#all_names) THEN 0 ELSE 1 END = 1",
  },
  {
    "1.3", "columns of history are in their ranges, and a customer of the warehouse pays in the customer's district",
    "SELECT h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_date, h_amount, h_data FROM {history} WHERE " .. unless {
      "h_w_id BETWEEN 1 AND #warehouses", "h_d_id BETWEEN 1 AND 10", "h_c_w_id BETWEEN 1 AND #warehouses",
      "h_c_d_id BETWEEN 1 AND 10", "h_c_id BETWEEN 1 AND #customers", "h_date IS NOT NULL", "h_amount BETWEEN 1 AND 5000",
      lengths(12, 24, "h_data"), "(h_c_w_id <> h_w_id OR h_c_d_id = h_d_id)", "(h_amount = 10 OR h_data LIKE '%    %')",
    },
  },
  {
    "1.3", "columns of orders are in their ranges",
    "SELECT o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local FROM {orders} WHERE " .. unless {
      "o_w_id BETWEEN 1 AND #warehouses", "o_d_id BETWEEN 1 AND 10", "o_c_id BETWEEN 1 AND #customers", "o_entry_d IS NOT NULL", "(o_carrier_id IS NULL OR o_carrier_id BETWEEN 1 AND 10)",
      "o_ol_cnt BETWEEN 5 AND 15", "o_all_local BETWEEN 0 AND 1",
    },
  },
  {
    "1.3", "columns of order_line are in their ranges",
    "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info FROM {order_line}"
      .. " WHERE " .. unless {
        "ol_i_id BETWEEN 1 AND #items", "ol_supply_w_id BETWEEN 1 AND #warehouses", "ol_quantity BETWEEN 1 AND 10",
        -- Orders are loaded with 5 pieces per line, and delivered ones with an amount of 0.
        "ol_amount <= 9999.99", "(ol_o_id > #customers OR ol_quantity = 5)", lengths(24, 24, "ol_dist_info"),
        "CASE WHEN ol_o_id <= #delivered THEN ol_amount = 0 ELSE ol_amount > 0 END",
        "(ol_o_id > #customers OR ol_supply_w_id = ol_w_id)",
      },
  },
  {
    "1.3", "columns of item are in their ranges",
    "SELECT i_id, i_im_id, i_name, i_price, i_data FROM {item} WHERE " .. unless {
      "i_im_id BETWEEN 1 AND 10000", letters(14, 24, "i_name"), "i_price BETWEEN 1 AND 100", letters(26, 50, "i_data"),
    },
  },
  {
    "2.4.2.2", "columns of stock are in their ranges: s_quantity from 10 to 100, since 91 are added if fewer would be left",
    "SELECT s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt FROM {stock} WHERE " .. unless {
      "s_w_id BETWEEN 1 AND #warehouses", "s_i_id BETWEEN 1 AND #items", "s_quantity BETWEEN 10 AND 100", DISTRICT_TEXTS, "s_ytd >= 0", "s_order_cnt >= 0", "s_remote_cnt >= 0",
      lengths(26, 50, "s_data"),
    },
  },
  -- What was loaded, and never changes.
  {
    "4.3.3.1", "each customer has one of the loaded orders",
    [[SELECT o_w_id, o_d_id, o_c_id, COUNT(*) AS loaded_orders FROM {orders} WHERE o_id <= #customers
      GROUP BY o_w_id, o_d_id, o_c_id HAVING COUNT(*) <> 1]],
  },
  {
    "4.3.3.1", "the ol_amount of the loaded orders add up to the sum recorded by the load",
    [[SELECT w, d, loaded_cents, found_cents FROM (
        SELECT w, d, MAX(v) - 2 AS loaded_cents, ROUND(SUM(amount) * 100) % 1000000000 AS found_cents FROM (
          SELECT ol_w_id AS w, ol_d_id AS d, SUM(ol_amount) AS amount FROM {order_line} WHERE ol_o_id <= #customers
          GROUP BY ol_w_id, ol_d_id) l
        JOIN {tpcc_load} ON what = 'piece district' AND n = (w - 1) * 10 + d AND v > 1 GROUP BY w, d) t
      WHERE loaded_cents <> found_cents]],
  },
  {
    -- Of the sums, what is left after a division by 1,000,000,000 is kept.
    "4.3.3.1", "numbers of the load are where the load put them, by a weighted sum of each piece",
    [[SELECT what, n, MAX(v) AS loaded, MAX(found) AS found FROM (
        SELECT 'sum item' AS what_found, part, SUM(weighted) % 1000000000 AS found FROM (
          SELECT ((i_id - 1) - (i_id - 1) % (#items / 10)) / (#items / 10) + 1 AS part,
            (i_id % 1000 + 1) * (3 * i_im_id + ROUND(i_price * 100)) AS weighted FROM {item}) i GROUP BY part
        UNION ALL SELECT 'sum stock', part, SUM(weighted) % 1000000000 FROM (
          SELECT (s_w_id - 1) * 10 + ((s_i_id - 1) - (s_i_id - 1) % (#items / 10)) / (#items / 10) + 1 AS part,
            (s_i_id % 1000 + 1) * ((s_quantity + s_ytd) % 91) AS weighted FROM {stock}) s GROUP BY part
        UNION ALL SELECT 'sum district', part, SUM(weighted) % 1000000000 FROM (
          SELECT (c_w_id - 1) * 10 + c_d_id AS part,
            SUM(c_id * (ROUND(c_discount * 10000) + CASE WHEN BYTES(c_credit) = 'BC' THEN 7000 ELSE 0 END)) AS weighted
            FROM {customer} GROUP BY c_w_id, c_d_id
          UNION ALL SELECT (o_w_id - 1) * 10 + o_d_id,
            SUM(o_id * (40 * o_c_id + 3 * CASE WHEN o_id <= #delivered THEN COALESCE(o_carrier_id, 0) ELSE 0 END + o_ol_cnt))
            FROM {orders} WHERE o_id <= #customers GROUP BY o_w_id, o_d_id
          UNION ALL SELECT (ol_w_id - 1) * 10 + ol_d_id, SUM((ol_o_id % 100 * 16 + ol_number) * (ol_i_id + ROUND(ol_amount * 100)))
            FROM {order_line} WHERE ol_o_id <= #customers GROUP BY ol_w_id, ol_d_id) o GROUP BY part) t
      JOIN {tpcc_load} ON what = what_found AND n = part GROUP BY what, n HAVING MAX(v) <> MAX(found)]],
  },
  {
    "4.3.3.1", "one item in ten of each piece has ORIGINAL",
    [[SELECT part, COUNT(*) AS items, SUM(original) AS with_original FROM (
        SELECT ((i_id - 1) - (i_id - 1) % (#items / 10)) / (#items / 10) + 1 AS part,
          CASE WHEN ORIGINAL_AT(i_data) > 0 THEN 1 ELSE 0 END AS original FROM {item}) t
      GROUP BY part HAVING SUM(original) * 100 <> #items]],
  },
  {
    "4.3.3.1", "one row of stock in ten of each piece has ORIGINAL",
    [[SELECT w, part, COUNT(*) AS stock_rows, SUM(original) AS with_original FROM (
        SELECT s_w_id AS w, ((s_i_id - 1) - (s_i_id - 1) % (#items / 10)) / (#items / 10) + 1 AS part,
          CASE WHEN ORIGINAL_AT(s_data) > 0 THEN 1 ELSE 0 END AS original FROM {stock}) t
      GROUP BY w, part HAVING SUM(original) * 100 <> #items]],
  },
  {
    "4.3.3.1", "one customer in ten of each district has bad credit",
    [[SELECT c_w_id, c_d_id, COUNT(*) AS customers, SUM(bad) AS with_bad_credit FROM (
        SELECT c_w_id, c_d_id, CASE WHEN BYTES(c_credit) = 'BC' THEN 1 ELSE 0 END AS bad FROM {customer}) t
      GROUP BY c_w_id, c_d_id HAVING SUM(bad) * 10 <> #customers]],
  },
  {
    -- Two of them are not the same by chance.
    "4.3.2.2", "random texts are different in each warehouse, district and piece of the load",
    [[SELECT a.s_w_id AS w, a.s_i_id AS id, a.s_data AS text FROM {stock} a JOIN {stock} b
        ON b.s_w_id = a.s_w_id AND b.s_i_id = a.s_i_id + #items / 10 AND b.s_data = a.s_data WHERE a.s_i_id <= 10
      UNION ALL SELECT a.s_w_id, a.s_i_id, a.s_data FROM {stock} a JOIN {stock} b
        ON b.s_w_id = a.s_w_id + 1 AND b.s_i_id = a.s_i_id AND b.s_data = a.s_data WHERE a.s_i_id <= 10
      UNION ALL SELECT 0, a.i_id, a.i_data FROM {item} a JOIN {item} b
        ON b.i_id = a.i_id + #items / 10 AND b.i_data = a.i_data WHERE a.i_id <= 10
      UNION ALL SELECT a.c_w_id, a.c_id, a.c_street_1 FROM {customer} a JOIN {customer} b
        ON b.c_w_id = a.c_w_id AND b.c_d_id = a.c_d_id + 1 AND b.c_id = a.c_id AND b.c_street_1 = a.c_street_1 WHERE a.c_id <= 10
      UNION ALL SELECT a.c_w_id, a.c_id, a.c_street_1 FROM {customer} a JOIN {customer} b
        ON b.c_w_id = a.c_w_id + 1 AND b.c_d_id = a.c_d_id AND b.c_id = a.c_id AND b.c_street_1 = a.c_street_1 WHERE a.c_id <= 10
      UNION ALL SELECT d_w_id, MIN(d_id), d_street_1 FROM {district} GROUP BY d_w_id, d_street_1 HAVING COUNT(*) > 1
      UNION ALL SELECT d_w_id, MIN(d_id), d_name FROM {district} GROUP BY d_w_id, d_name HAVING COUNT(*) > 1
      UNION ALL SELECT MIN(w_id), 0, w_street_1 FROM {warehouse} GROUP BY w_street_1 HAVING COUNT(*) > 1]],
  },
  {
    "4.3.3.1", "the rows of a district that were loaded have one date",
    [[SELECT w, d, MIN(low) AS first_date, MAX(high) AS last_date FROM (
        SELECT c_w_id AS w, c_d_id AS d, MIN(c_since) AS low, MAX(c_since) AS high FROM {customer} GROUP BY c_w_id, c_d_id
        UNION ALL SELECT o_w_id, o_d_id, MIN(o_entry_d), MAX(o_entry_d) FROM {orders} WHERE o_id <= #customers GROUP BY o_w_id, o_d_id
        UNION ALL SELECT ol_w_id, ol_d_id, MIN(ol_delivery_d), MAX(ol_delivery_d) FROM {order_line} WHERE ol_o_id <= #delivered
          GROUP BY ol_w_id, ol_d_id
        UNION ALL SELECT h_w_id, h_d_id, MIN(h_date), MAX(h_date) FROM {history} WHERE h_data NOT LIKE '%    %'
          GROUP BY h_w_id, h_d_id) t
      GROUP BY w, d HAVING MIN(low) <> MAX(high)]],
  },
  -- What transactions wrote.
  {
    "2.4.2.2", "orders, payments and deliveries have dates from their load until today",
    [[SELECT w, d, o, what, date_found FROM (
        SELECT o_w_id AS w, o_d_id AS d, o_id AS o, 'o_entry_d' AS what, o_entry_d AS date_found FROM {orders}
          WHERE NOT o_entry_d BETWEEN #earliest AND #latest
        UNION ALL SELECT h_w_id, h_d_id, h_c_id, 'h_date of the customer', h_date FROM {history}
          WHERE NOT h_date BETWEEN #earliest AND #latest
        UNION ALL SELECT ol_w_id, ol_d_id, ol_o_id, 'ol_delivery_d', ol_delivery_d FROM {order_line}
          WHERE NOT ol_delivery_d BETWEEN #earliest AND #latest) t]],
  },
  {
    "2.7.4.2", "the lines of an order are delivered at one time",
    [[SELECT ol_w_id, ol_d_id, ol_o_id, MIN(ol_delivery_d) AS first_date, MAX(ol_delivery_d) AS last_date FROM {order_line}
      WHERE ol_o_id > #delivered GROUP BY ol_w_id, ol_d_id, ol_o_id HAVING MIN(ol_delivery_d) <> MAX(ol_delivery_d)]],
  },
  {
    -- s_quantity is counted down by what is sold, and s_ytd up; 91 are added to the former.
    "2.4.2.2", "s_quantity decreased by s_ytd since the load, plus a multiple of 91",
    [[SELECT w, part, loaded, found FROM (
        SELECT w, part, MAX(v) - 2 AS loaded, MAX(quantity) AS found FROM (
          SELECT s_w_id AS w, ((s_i_id - 1) - (s_i_id - 1) % (#items / 10)) / (#items / 10) + 1 AS part,
            SUM((s_quantity + s_ytd) % 91) AS quantity FROM {stock}
          GROUP BY s_w_id, ((s_i_id - 1) - (s_i_id - 1) % (#items / 10)) / (#items / 10) + 1) s
        JOIN {tpcc_load} ON what = 'piece stock' AND n = (w - 1) * 10 + part AND v > 1 GROUP BY w, part) t
      WHERE loaded <> found]],
  },
  {
    "2.4.2.2", "an order line has its ol_quantity times i_price, and the text of its stock for the district",
    [[SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_quantity, i_price, ol_amount, ol_dist_info, s_i_id FROM {order_line}
      LEFT JOIN {item} ON i_id = ol_i_id LEFT JOIN {stock} ON s_w_id = ol_supply_w_id AND s_i_id = ol_i_id
      WHERE ol_o_id > #customers AND CASE WHEN <(ol_amount)> = <(ol_quantity * i_price)> AND BYTES(ol_dist_info) = ]] .. DISTRICT_TEXT
      .. " THEN 0 ELSE 1 END = 1",
  },
  {
    "2.4.2.2", "o_all_local is 0 if, and only if, a line comes from another warehouse",
    [[SELECT w, d, o, SUM(not_local) AS not_local, SUM(remote) AS has_remote_lines FROM (
        SELECT o_w_id AS w, o_d_id AS d, o_id AS o, 1 AS not_local, 0 AS remote FROM {orders} WHERE o_all_local = 0
        UNION ALL SELECT ol_w_id, ol_d_id, ol_o_id, 0, 1 FROM {order_line} WHERE ol_supply_w_id <> ol_w_id
          GROUP BY ol_w_id, ol_d_id, ol_o_id) t
      GROUP BY w, d, o HAVING SUM(not_local) <> SUM(remote)]],
  },
  {
    "2.5.2.2", "c_payment_cnt counts the customer's history",
    [[SELECT w, d, c, SUM(counted) AS c_payment_cnt, SUM(found) AS history_rows FROM (
        SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_payment_cnt AS counted, 0 AS found FROM {customer}
        UNION ALL SELECT h_c_w_id, h_c_d_id, h_c_id, 0, COUNT(*) FROM {history} GROUP BY h_c_w_id, h_c_d_id, h_c_id) t
      GROUP BY w, d, c HAVING SUM(counted) <> SUM(found)]],
  },
  {
    "2.5.2.2", "h_data is the names of warehouse and district, except in loaded rows",
    [[SELECT h_w_id, h_d_id, COUNT(*) AS other_texts FROM {history} JOIN {district} ON d_w_id = h_w_id AND d_id = h_d_id
      JOIN {warehouse} ON w_id = h_w_id WHERE h_data <> JOINED(w_name, '    ', d_name)
      GROUP BY h_w_id, h_d_id HAVING COUNT(*) <> #customers]],
  },
  {
    "2.5.2.2", "c_data of a customer with bad credit who paid begins with a payment, and of no other",
    [[SELECT h_c_w_id, h_c_d_id, h_c_id, MAX(c_credit) AS c_credit, MAX(c_payment_cnt) AS c_payment_cnt FROM {history}
      JOIN {customer} ON c_w_id = h_c_w_id AND c_d_id = h_c_d_id AND c_id = h_c_id
      GROUP BY h_c_w_id, h_c_d_id, h_c_id HAVING MAX(CASE
        WHEN BYTES(c_credit) = 'BC' AND c_payment_cnt > 1 THEN CASE WHEN c_data LIKE
          JOINED(c_id, ' ', c_d_id, ' ', c_w_id, ' ', h_d_id, ' ', h_w_id, ' ', <amount>, '|%') THEN 1 ELSE 0 END
        WHEN c_data LIKE '%|%' THEN 0 ELSE 1 END) = 0]],
  },
  {
    -- What was there goes on behind each payment, and the text is cut after 500 characters.
    "2.5.2.2", "c_data of a customer with bad credit has all payments, unless it is full",
    [[SELECT c_w_id, c_d_id, c_id, c_payment_cnt, LENGTH(c_data) AS characters, c_data FROM {customer}
      WHERE BYTES(c_credit) = 'BC' AND (LENGTH(c_data) - LENGTH(REPLACE(c_data, '|', '')) > c_payment_cnt - 1
        OR LENGTH(c_data) < 500 AND LENGTH(c_data) - LENGTH(REPLACE(c_data, '|', '')) <> c_payment_cnt - 1)]],
  },
  {
    "2.7.4.2", "c_delivery_cnt counts the customer's orders delivered since the load",
    [[SELECT w, d, c, SUM(counted) AS c_delivery_cnt, SUM(found) AS delivered_orders FROM (
        SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_delivery_cnt AS counted, 0 AS found FROM {customer}
        UNION ALL SELECT o_w_id, o_d_id, o_c_id, 0, COUNT(*) FROM {orders} WHERE o_carrier_id IS NOT NULL AND o_id > #delivered
          GROUP BY o_w_id, o_d_id, o_c_id) t
      GROUP BY w, d, c HAVING SUM(counted) <> SUM(found)]],
  },
}

-- Shares: what was drawn at random since the load, as seen in the data. Clause, condition; a statement that returns
-- rows of a number and how often it occurs; which numbers must be equally frequent, or the shares of some. `even`: the
-- first and the last of the numbers; `load`: rows of the load that are counted for the first number.
check.shares = {
  {
    "2.4.1.2", "orders are spread evenly over districts", even = { 1, 10 },
    [[SELECT d_id, SUM(d_next_o_id - 1 - #customers) AS orders FROM {district} GROUP BY d_id]],
  },
  {
    "2.4.1.3", "orders have 5 to 15 lines, each number equally often", even = { 5, 15 },
    [[SELECT o_ol_cnt, COUNT(*) AS orders FROM {orders} WHERE o_id > #customers GROUP BY o_ol_cnt]],
  },
  {
    "2.4.1.5", "ol_quantity is 1 to 10, each number equally often", even = { 1, 10 },
    [[SELECT ol_quantity, COUNT(*) AS order_lines FROM {order_line} WHERE ol_o_id > #customers GROUP BY ol_quantity]],
  },
  {
    "2.4.1.5", "1 % of lines are from other warehouses, each equally often", remote = 0.01,
    [[SELECT (ol_supply_w_id - ol_w_id + #warehouses) % #warehouses AS away, COUNT(*) AS order_lines FROM {order_line}
      WHERE ol_o_id > #customers GROUP BY (ol_supply_w_id - ol_w_id + #warehouses) % #warehouses]],
  },
  {
    "2.5.1.2", "15 % of payments are for customers of other warehouses, each equally often", remote = 0.15,
    [[SELECT (h_c_w_id - h_w_id + #warehouses) % #warehouses AS away, COUNT(*) AS payments FROM {history}
      GROUP BY (h_c_w_id - h_w_id + #warehouses) % #warehouses]], load = true,
  },
  {
    "2.5.1.3", "payments are from 1 to 5,000, each amount equally often", even = { 0, 4 },
    [[SELECT CASE WHEN h_amount < 1000.80 THEN 0 WHEN h_amount < 2000.60 THEN 1 WHEN h_amount < 3000.40 THEN 2
        WHEN h_amount < 4000.20 THEN 3 ELSE 4 END AS fifth, COUNT(*) AS payments FROM {history}
      GROUP BY CASE WHEN h_amount < 1000.80 THEN 0 WHEN h_amount < 2000.60 THEN 1 WHEN h_amount < 3000.40 THEN 2
        WHEN h_amount < 4000.20 THEN 3 ELSE 4 END]], load = true,
  },
  {
    -- At least 60 of 100, by last name; the middle one may also be chosen by number. MySQL 5.7 has no window functions.
    "2.5.2.2", "at least 60 % of payments are for the middle one of the customers with a last name", shares = { [1] = { 0.57, 1 } },
    [[SELECT is_middle, SUM(payments) AS payments FROM (
        SELECT payments, CASE WHEN 2 * place = customers OR 2 * place = customers + 1 THEN 1 ELSE 0 END AS is_middle FROM (
          SELECT a.c_payment_cnt - 1 AS payments, SUM(CASE WHEN b.c_first <= a.c_first THEN 1 ELSE 0 END) AS place, COUNT(*) AS customers
          FROM {customer} a JOIN {customer} b ON b.c_w_id = a.c_w_id AND b.c_d_id = a.c_d_id AND b.c_last = a.c_last
          GROUP BY a.c_w_id, a.c_d_id, a.c_id, a.c_payment_cnt) c) m GROUP BY is_middle]],
  },
  {
    -- Of one district: a delivery takes one carrier for all its orders.
    "2.7.1.2", "deliveries have carriers 1 to 10, each equally often", even = { 1, 10 },
    [[SELECT o_carrier_id, COUNT(*) AS orders FROM {orders} WHERE o_id > #delivered AND o_d_id = 1 AND o_carrier_id IS NOT NULL
      GROUP BY o_carrier_id]],
  },
}

--- A statement in the database's dialect, for a table set.
function check.translated(text, set, dialect)
  for _, one in ipairs { "BYTES", "LETTERS", "DIGITS", "CODE", "ORIGINAL_AT" } do
    text = text:gsub(one .. "(%b())", function(argument) return dialect:of_text(one, argument:sub(2, -2)) end)
  end
  return dialect.of_set(text, set)
end

--- A condition's statement in the database's dialect.
function check.statement(condition, set, dialect, state)
  local names = tpcc.last_names(state.customers)
  local numbers = {
    delivered = tpcc.delivered(state.customers), customers = state.customers, items = state.items, warehouses = state.warehouses,
    names = names,
  }
  local text = condition[3]:gsub("<([%u(][^<>]*)>", function(sum) return dialect.money:format(sum) end):gsub("<amount>", dialect.amount)
  text = text:gsub("JOINED(%b())", function(parts) return dialect:joined(parts) end)
  text = text:gsub("#all_names", table.concat(NAMES, ", ", 1, names)):gsub("#(%l+)", function(name)
    return numbers[name] and format("%d", numbers[name]) or format("'%s'", state[name])
  end)
  return check.translated(text, set, dialect)
end

-- Dates: what the server's clock says, and when a district was loaded.
check.dates = "SELECT <now>, MIN(c_since) FROM {customer} WHERE c_w_id = 1 AND c_d_id = 1"

--- The same, for at most `most` rows.
function check.violations(condition, set, dialect, state, most)
  return check.statement(condition, set, dialect, state) .. format(" LIMIT %d", most)
end

--- The most expensive are to come first: those that read the order lines, especially joins.
function check.cost(condition)
  local text = tostring(condition[3])
  return (text:find("{order_line}", 1, true) and 2 or 0) + (text:find("JOIN", 1, true) and 1 or 0)
end

-- Names of the columns of a condition's rows: the last word of each part between SELECT and FROM.
function check.columns(condition)
  local names = {}
  for part in (condition[3]:match("^SELECT (.-) FROM ") or condition[3]:match("^SELECT (.-)%s+FROM ")):gmatch("[^,]+") do
    names[#names + 1] = part:match("([%w_]+)%s*$")
  end
  return names
end

-- Questions of the inspection, the isolation tests and `verify`, for a table set --------------------------------------

check.questions = {
  last_order = "SELECT MAX(o_id) FROM {orders} WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d",
  bad_customer = "SELECT MIN(c_id) FROM {customer} WHERE c_w_id = %d AND c_d_id = %d AND c_credit = 'BC'",
  data = "SELECT c_data FROM {customer} WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d",
  balance = "SELECT c_balance FROM {customer} WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d",
  lines = "SELECT COUNT(*) FROM {order_line} WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d",
  last_customer = "SELECT o_c_id FROM {orders} WHERE o_w_id = %d AND o_d_id = %d ORDER BY o_id DESC LIMIT 1",
  customers_of_name = "SELECT c_id FROM {customer} WHERE c_w_id = %d AND c_d_id = %d AND c_last = '%s' ORDER BY c_first",
  last_order_of_district = "SELECT MAX(o_id) FROM {orders} WHERE o_w_id = %d AND o_d_id = %d",
  items_sold = "SELECT DISTINCT ol_i_id, s_quantity FROM {order_line}, {stock} WHERE ol_w_id = %d AND ol_d_id = %d"
    .. " AND ol_o_id > %d AND ol_o_id <= %d AND s_w_id = ol_w_id AND s_i_id = ol_i_id",
  -- The stock of the home warehouse, and of the one that supplied it.
  remote_lines = "SELECT h.s_quantity, r.s_quantity FROM {order_line}, {stock} h, {stock} r WHERE ol_w_id = %d AND ol_d_id = %d"
    .. " AND ol_o_id > %d AND ol_o_id <= %d AND ol_supply_w_id <> ol_w_id AND h.s_w_id = ol_w_id AND h.s_i_id = ol_i_id"
    .. " AND r.s_w_id = ol_supply_w_id AND r.s_i_id = ol_i_id",
  next_order = "SELECT d_next_o_id FROM {district} WHERE d_w_id = %d AND d_id = %d",
  orders_from = "SELECT o_id, o_c_id, o_carrier_id FROM {orders} WHERE o_w_id = %d AND o_d_id = %d AND o_id >= %d",
  -- Those of the load are all of 10.00.
  payments = "SELECT h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_amount FROM {history} WHERE h_amount <> 10",
  orders_of_customer_from = "SELECT COUNT(*) FROM {orders} WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d AND o_id >= %d",
  oldest_new_order = "SELECT MIN(no_o_id) FROM {new_orders} WHERE no_w_id = %d AND no_d_id = %d",
  customer_of_order = "SELECT o_c_id FROM {orders} WHERE o_w_id = %d AND o_d_id = %d AND o_id = %d",
  amount_of_order = "SELECT SUM(ol_amount) FROM {order_line} WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %d",
  price = "SELECT i_price FROM {item} WHERE i_id = %d",
  -- Not questions: what the isolation tests change, and put back.
  raise_prices = "UPDATE {item} SET i_price = i_price * 1.1 WHERE i_id IN (1, 2)",
  set_price = "UPDATE {item} SET i_price = %s WHERE i_id = %d",
  take_new_orders = "DELETE FROM {new_orders} WHERE no_w_id = %d AND no_d_id = %d",
  restore_new_orders = "INSERT INTO {new_orders} (no_o_id, no_d_id, no_w_id) SELECT o_id, o_d_id, o_w_id FROM {orders}"
    .. " WHERE o_w_id = %d AND o_d_id = %d AND o_carrier_id IS NULL AND NOT EXISTS (SELECT 1 FROM {new_orders}"
    .. " WHERE no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id)",
}

--- One of them as text.
function check.question(name, set, ...) return tpcc.dialect().of_set(format(check.questions[name], ...), set) end

return check
