--- Executes the transactions of TPC-C that only read, and compares their answers with what other statements find.
--
-- What transactions write is found in the tables. Of Order-Status and Stock-Level nothing is left there: `check`
-- executes some of them, as a run would, while nobody else changes the tables.

local tpcc = require("tpcc_common")

local inspection = {}

local format = string.format
local DISTRICTS_TRIED = 200 -- to find such as tell a wrong Stock-Level from a right one
local EACH = 20 -- of how many customers, last names and districts of a table set

--- The rows that answer a question of the dialect, each a list.
local function rows(set, name, ...)
  local text = require(tpcc.dialect().check_module).question(name, set, ...)
  local result, list = tpcc.rows(tpcc.session.con, text), {}
  for i = 1, result.nrows do list[i] = result:fetch_row() end
  return list
end

local function number(set, name, ...) return tonumber(rows(set, name, ...)[1][1]) end

--- What Order-Status should answer for a customer: the balance, the number of the last order, its lines.
local function last_order(set, w, d, c)
  local o = number(set, "last_order", w, d, c)
  return number(set, "balance", w, d, c), o,
    number(set, "lines", w, d, o)
end

--- Compares an Order-Status; a text when it is wrong.
local function status_of(set, w, d, c, name)
  local session = tpcc.session
  local balance, o, lines = session.by.order_status(session.sets[set], { set = set, c_w = w, c_d = d, c = not name and c or nil, name = name })
  local wanted_balance, wanted_o, wanted_lines = last_order(set, w, d, c)
  if o == wanted_o and lines == wanted_lines and balance and math.abs(tonumber(balance) - wanted_balance) < 0.005 then return end
  return format("  warehouse %d, district %d, customer %d%s: balance %s, order %s of %s lines; it should be %.2f, %d, %d", w, d, c,
    name and " by last name" or "", tostring(balance), tostring(o), tostring(lines), wanted_balance, wanted_o, wanted_lines)
end

--- Order-Statuses by number, of the customers who ordered last, and by last name, of such as several have.
local function statuses(set)
  local wrong, session = {}, tpcc.session
  for i = 0, EACH - 1 do
    local w, d = i % session.warehouses + 1, i % tpcc.DISTRICTS + 1
    local c = number(set, "last_customer", w, d)
    wrong[#wrong + 1] = status_of(set, w, d, c)
    local name = i * 7 % session.names
    local found = rows(set, "customers_of_name", w, d, tpcc.last_name(name))
    wrong[#wrong + 1] = status_of(set, w, d, tonumber(found[math.ceil(#found / 2)][1]), name)
  end
  return wrong
end

--- How many items of the district's last 20 orders are low.
local function wanted_level(set, w, d, threshold)
  local last, wanted = number(set, "last_order_of_district", w, d), 0
  for _, row in ipairs(rows(set, "items_sold", w, d, last - 20, last)) do
    if tonumber(row[2]) < threshold then wanted = wanted + 1 end
  end
  return wanted
end

-- Districts and thresholds for which the stock of the supplying warehouses would give another answer: few lines are
-- remote, and few of these items are low.
local function told_apart(set)
  local session, list = tpcc.session, {}
  local districts = session.warehouses * tpcc.DISTRICTS
  local number_of = math.min(districts, DISTRICTS_TRIED)
  for i = 0, number_of - 1 do
    local district = math.floor(i * districts / number_of)
    local w, d = math.floor(district / tpcc.DISTRICTS) + 1, district % tpcc.DISTRICTS + 1
    local last = number(set, "last_order_of_district", w, d)
    local sold = rows(set, "remote_lines", w, d, last - 20, last)
    for threshold = 20, 10, -1 do
      local is_told = false
      for _, row in ipairs(sold) do
        is_told = is_told or (tonumber(row[1]) < threshold) ~= (tonumber(row[2]) < threshold)
      end
      if is_told then
        list[#list + 1] = { w, d, threshold }
        break
      end
    end
    if #list == EACH / 2 then break end
  end
  return list
end

--- Stock-Levels with each threshold, counted in the lines of the district's last 20 orders.
local function levels(set)
  local wrong, session, tried = {}, tpcc.session, {}
  for i = 0, EACH - 1 do tried[i + 1] = { i % session.warehouses + 1, i % tpcc.DISTRICTS + 1, 20 - i % 11 } end
  if not tpcc.dialect().documents then
    for _, one in ipairs(told_apart(set)) do tried[#tried + 1] = one end
  end
  for _, one in ipairs(tried) do
    local w, d, threshold = unpack(one)
    local wanted = wanted_level(set, w, d, threshold)
    local low = tonumber((session.by.stock_level(session.sets[set], w, d, { set = set, threshold = threshold })))
    if low ~= wanted then
      wrong[#wrong + 1] = format("  warehouse %d, district %d, threshold %d: %s; it should be %d", w, d, threshold, tostring(low), wanted)
    end
  end
  return wrong
end

local INSPECTIONS = {
  { "2.6.2.2", "Order-Status answers with the balance, the last order and its lines", statuses },
  { "2.8.2.2", "Stock-Level counts the low items of the last 20 orders", levels },
}

--- Inspects all table sets; a line for each inspection. False when any finds something wrong.
function inspection.inspect(open_session)
  open_session()
  local right = true
  for set = 1, tpcc.session.settings.sets do
    for _, one in ipairs(INSPECTIONS) do
      local wrong = one[3](set)
      if not tpcc.tell_condition(set, one, wrong, 5) then right = false end
    end
  end
  tpcc.session.con:disconnect()
  return right
end

return inspection
