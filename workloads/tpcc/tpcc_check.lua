--- Verifies the data of TPC-C: the twelve consistency conditions of clause 3.3.2, and the rules for stock of 2.4.2.2.
--
-- Every condition is one statement that answers with the rows that break it, none when it holds. They group and join
-- whole tables instead of looking at one district after another, and compare in both directions (UNION ALL, then
-- GROUP BY), so that a row that is missing on either side is found as well.

local tpcc = require("tpcc_common")

local check = {}

local format = string.format

-- Clause, what must hold, the statement. {name} is a table of the set; <…> makes a sum of money comparable.
local CONDITIONS = {
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
    "3.3.2.6", "an order has o_ol_cnt lines",
    [[SELECT w, d, o, SUM(expected) AS o_ol_cnt, SUM(found) AS order_line_rows FROM (
        SELECT o_w_id AS w, o_d_id AS d, o_id AS o, o_ol_cnt AS expected, 0 AS found FROM {orders}
        UNION ALL SELECT ol_w_id, ol_d_id, ol_o_id, 0, COUNT(*) FROM {order_line} GROUP BY ol_w_id, ol_d_id, ol_o_id) t
      GROUP BY w, d, o HAVING SUM(expected) <> SUM(found)]],
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
    -- The specification says 2100 (3000 customers less 900 new orders), which holds until the first delivery. Each one
    -- turns a new order into one that is none, and counts in c_delivery_cnt.
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
    -- No condition of 3.3.2 sees a workload that leaves these alone.
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
  {
    "2.4.2.2", "s_quantity is from 10 to 100: 91 are added when fewer than 10 would be left",
    [[SELECT s_w_id, s_i_id, s_quantity FROM {stock} WHERE s_quantity < 10 OR s_quantity > 100]],
  },
}

local SHOWN = 5 -- offending rows that are shown of each condition

--- `text` of a condition as the database wants it.
local function statement(condition, set, dialect, state)
  local text = condition[3]:gsub("<([%u(][^<>]*)>", function(sum) return dialect.money:format(sum) end)
  text = text:gsub("#delivered", ("%d"):format(tpcc.delivered(state.customers))):gsub("#customers", ("%d"):format(state.customers))
  return tpcc.sql(text, set) .. format(" LIMIT %d", SHOWN + 1)
end

-- Names of the columns of a condition's rows: the last word of each part between SELECT and FROM.
local function columns(condition)
  local names = {}
  for part in (condition[3]:match("^SELECT (.-) FROM ") or condition[3]:match("^SELECT (.-)%s+FROM ")):gmatch("[^,]+") do
    names[#names + 1] = part:match("([%w_]+)%s*$")
  end
  return names
end

--- Runs one condition; false when rows break it.
local function holds(connection, dialect, set, state, condition)
  local result = connection:query(statement(condition, set, dialect, state))
  local label = format("set %d, clause %s: %s", set, condition[1], condition[2])
  if result.nrows == 0 then
    assay.log(label .. ": holds")
    return true
  end
  local lines, names = { label .. ": BROKEN, " .. (result.nrows > SHOWN and "such as" or "by") }, columns(condition)
  for _ = 1, math.min(result.nrows, SHOWN) do
    local row, shown = result:fetch_row(), {}
    for i, name in ipairs(names) do shown[i] = name .. " " .. tostring(row[i]) end
    lines[#lines + 1] = "  " .. table.concat(shown, ", ")
  end
  assay.log(table.concat(lines, "\n"))
  return false
end

--- Verifies all table sets; a line for each condition. False when any is broken.
function check.check()
  local settings = tpcc.settings()
  local connection, dialect = tpcc.connect(settings)
  local right, states = true, {}
  for set = 1, settings.sets do
    states[set] = tpcc.read_state(connection, set)
    if states[set].complete ~= 1 then
      if sysbench.tid == 0 then
        assay.log(format("set %d: its load was interrupted; `prepare` goes on with it", set))
      end
      right = false
    end
  end
  -- The conditions that read the order lines last the longest: they are taken first.
  local order = { 10, 12, 7, 6, 13, 4, 5, 2, 3, 8, 9, 11, 1, 14 }
  while true do
    local n = assay.claim("conditions")
    local set, condition = math.floor(n / #order) + 1, CONDITIONS[order[n % #order + 1]]
    if set > settings.sets then break end
    if not holds(connection, dialect, set, states[set], condition) then right = false end
  end
  connection:disconnect()
  return right
end

--- Looks for the new orders that were acknowledged before and after a crash; false when any is missing. The keys come in
--- order: one query reads the orders of a district.
function check.verify()
  local connection = tpcc.connect(tpcc.settings())
  local seen, orders, shown, missing = nil, nil, {}, 0
  for set, w, d, o, c in assay.acknowledged() do
    local district = set .. " " .. w .. " " .. d
    if district ~= seen then
      seen, orders = district, {}
      local result = connection:query(tpcc.sql(
        format("SELECT o_id, o_c_id FROM {orders} WHERE o_w_id = %d AND o_d_id = %d AND o_id >= %d", w, d, o), set))
      for _ = 1, result.nrows do
        local row = result:fetch_row()
        orders[tonumber(row[1])] = tonumber(row[2])
      end
    end
    if orders[o] ~= c then
      missing = missing + 1
      if #shown < SHOWN then
        shown[#shown + 1] = format("  set %d, warehouse %d, district %d: order %d of customer %d", set, w, d, o, c)
      end
    end
  end
  connection:disconnect()
  if missing == 0 then return true end
  assay.log(format("%d acknowledged orders are missing, such as\n%s", missing, table.concat(shown, "\n")))
  return false
end

return check
