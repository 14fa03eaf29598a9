--- The conditions of `check` on documents (MongoDB), and the questions of the commands that verify.
--
-- A document database that has no joins cannot find out what is wrong with one statement per condition: the documents
-- are read, district by district, and compared here. What is kept for the whole set is a few numbers for each customer
-- and for what was sold since the load. The conditions are those of `tpcc_sql_check`, but for orders with their lines.

local tpcc = require("tpcc_common")
local mongodb = assay.share("tpcc_mongodb")

local check = {}

local format, floor, tonumber = string.format, math.floor, tonumber
local in_district = mongodb.in_district
local DISTRICTS, SHOWN, MOST = tpcc.DISTRICTS, 5, 6

-- Conditions in the order in which they are shown: a short name, clause, sentence.
local CONDITIONS = {
  { "w_ytd", "3.3.2.1", "w_ytd is the sum of its districts' d_ytd" },
  { "next", "3.3.2.2", "d_next_o_id - 1 is the greatest o_id, and the greatest no_o_id" },
  { "new_gaps", "3.3.2.3", "the no_o_id of a district have no gaps" },
  { "line_sum", "3.3.2.4", "the o_ol_cnt of a district add up to its order lines" },
  { "is_new", "3.3.2.5", "an order has no carrier if, and only if, it is a new order" },
  { "line_count", "3.3.2.6", "an order has o_ol_cnt lines, numbered from 1" },
  { "line_dates", "3.3.2.7", "an order line has no delivery date if, and only if, its order has no carrier" },
  { "w_paid", "3.3.2.8", "w_ytd is the sum of its history's h_amount" },
  { "d_paid", "3.3.2.9", "d_ytd is the sum of its history's h_amount" },
  { "balance", "3.3.2.10", "c_balance is what was delivered to the customer less what was paid" },
  { "not_new", "3.3.2.11", "orders that are not new: 70 % of the customers, and one for each delivery" },
  { "balance_paid", "3.3.2.12", "c_balance and c_ytd_payment add up to what was delivered to the customer" },
  { "sold", "2.4.2.2", "s_ytd, s_order_cnt and s_remote_cnt count the order lines since the load" },
  { "items", "1.2.1", "item has each i_id from 1 to the number of items" },
  { "warehouses", "1.2.1", "warehouse has each w_id from 1 to the number of warehouses" },
  { "stocks", "1.2.1", "a warehouse has a document of stock for each item" },
  { "customers", "1.2.1", "a district has all its customers" },
  { "others", "1.2.1", "there are no documents of other warehouses, districts, items or customers" },
  { "order_gaps", "2.4.2.2", "the o_id of a district have no gaps" },
  { "warehouse", "1.3", "fields of warehouse are in their ranges" },
  { "district", "1.3", "fields of district are in their ranges" },
  { "customer", "1.3", "fields of customer are in their ranges" },
  { "last_name", "4.3.2.3", "c_last is the name of c_id - 1 for the first customers, and a valid name for the others" },
  { "history", "1.3", "fields of history are in their ranges, and a customer of the warehouse pays in the customer's district" },
  { "orders", "1.3", "fields of orders are in their ranges" },
  { "order_line", "1.3", "fields of order lines are in their ranges" },
  { "item", "1.3", "fields of item are in their ranges" },
  { "stock", "2.4.2.2", "fields of stock are in their ranges: s_quantity from 10 to 100, since 91 are added if fewer would be left" },
  { "loaded_orders", "4.3.3.1", "each customer has one of the loaded orders" },
  { "loaded_cents", "4.3.3.1", "the ol_amount of the loaded orders add up to the sum recorded by the load" },
  { "original_items", "4.3.3.1", "one item in ten of each piece has ORIGINAL" },
  { "original_stock", "4.3.3.1", "one document of stock in ten of each piece has ORIGINAL" },
  { "credit", "4.3.3.1", "one customer in ten of each district has bad credit" },
  { "texts", "4.3.2.2", "random texts are different in each warehouse, district and piece of the load" },
  { "loaded_dates", "4.3.3.1", "the documents of a district that were loaded have one date" },
  { "dates", "2.4.2.2", "orders, payments and deliveries have dates from their load until today" },
  { "delivered_once", "2.7.4.2", "the lines of an order are delivered at one time" },
  { "quantity", "2.4.2.2", "s_quantity decreased by s_ytd since the load, plus a multiple of 91" },
  { "price", "2.4.2.2", "an order line has its ol_quantity times i_price, and the text of its stock for the district" },
  { "local", "2.4.2.2", "o_all_local is 0 if, and only if, a line comes from another warehouse" },
  { "payments", "2.5.2.2", "c_payment_cnt counts the customer's history" },
  { "h_data", "2.5.2.2", "h_data is the names of warehouse and district, except in loaded documents" },
  { "c_data", "2.5.2.2", "c_data of a customer with bad credit who paid begins with a payment, and of no other" },
  { "all_c_data", "2.5.2.2", "c_data of a customer with bad credit has all payments, unless it is full" },
  { "deliveries", "2.7.4.2", "c_delivery_cnt counts the customer's orders delivered since the load" },
}

-- Reading ------------------------------------------------------------------------------------------------------------

-- Fields that are texts; others are numbers.
local TEXTS = {}
for name in ([[w_name w_street_1 w_street_2 w_city w_state w_zip d_name d_street_1 d_street_2 d_city d_state d_zip c_first c_middle c_last
  c_street_1 c_street_2 c_city c_state c_zip c_phone c_since c_credit c_data h_date h_data o_entry_d order_line i_name i_data s_data
  _id]]):gmatch("%S+") do TEXTS[name] = true end
for d = 1, DISTRICTS do TEXTS[format("s_dist_%02d", d)] = true end

local SMALL = 300 -- customers of a district, up to which a warehouse is read at once

local documents

--- The documents of a warehouse by district: a function of the district that returns an iterator. FerretDB reads the
--- whole collection for each query.
local function by_district(con, state, collection, prefix, w, fields)
  local filter = format('"%s_w_id": %d', prefix, w)
  if state.customers > SMALL then
    return function(d, more)
      return documents(con, collection, format('%s, "%s_d_id": %d%s', filter, prefix, d, more and ", " .. more or ""), fields)
    end
  end
  local of = {}
  for row in documents(con, collection, filter, fields .. ", " .. prefix .. "_d_id") do
    local d = row[prefix .. "_d_id"] or 0
    of[d] = of[d] or {}
    table.insert(of[d], row)
  end
  return function(d)
    local n, list = 0, of[d] or {}
    return function()
      n = n + 1
      return list[n]
    end
  end
end

--- Documents, one after another, as field → value.
function documents(con, collection, filter, fields, more)
  local names = {}
  for name in fields:gmatch("[%w_]+") do names[#names + 1] = name end
  local result, left = con:query(mongodb.find(collection, filter, fields, more)), nil
  left = result.nrows
  return function()
    left = left - 1
    if left < 0 then return nil end
    local row, document = result:fetch_row(), {}
    for i, name in ipairs(names) do
      if TEXTS[name] then document[name] = row[i] else document[name] = tonumber(row[i]) end
    end
    return document
  end
end

local PAGE = 20000

--- Reads the history page by page, in the order of its ids: it has no other index.
local function history(con, set)
  local next_one, last, n = nil, nil, 0
  return function()
    local row = next_one and next_one()
    if not row and (not next_one or n == PAGE) then
      local filter = last and format('"_id": {"$gt": {"$oid": "%s"}}', last) or ""
      next_one, n = documents(con, "history" .. set, filter, "_id, h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data",
        format('"sort": {"_id": 1}, "limit": %d', PAGE)), 0
      row = next_one()
    end
    if row then last, n = row._id, n + 1 end
    return row
  end
end

local LINE = '{"ol_number":(%d+),"ol_i_id":(%d+),"ol_supply_w_id":(%d+),"ol_delivery_d":(.-),"ol_quantity":(%d+),"ol_amount":([^,]+),"ol_dist_info":"(.-)"}'

-- Ranges -------------------------------------------------------------------------------------------------------------

local function within(number, low, high) return number ~= nil and number >= low and number <= high end
local function has_length(text, low, high) return text ~= nil and #text >= low and #text <= high end
local function letters(text, low, high) return has_length(text, low, high) and not text:find("[^%w]") end

local function has_address(row, prefix)
  local zip = row[prefix .. "_zip"]
  return letters(row[prefix .. "_street_1"], 10, 20) and letters(row[prefix .. "_street_2"], 10, 20) and letters(row[prefix .. "_city"], 10, 20)
    and letters(row[prefix .. "_state"], 2, 2) and zip ~= nil and zip:find("^%d%d%d%d11111$") ~= nil
end

local function cents(amount) return mongodb.cents(amount or 0) end

local ADDRESS = "%s_street_1, %s_street_2, %s_city, %s_state, %s_zip"
local function address(prefix) return (ADDRESS:gsub("%%s", prefix)) end

-- The check ----------------------------------------------------------------------------------------------------------

--- Everything that is found of a table set.
local function new_findings(state)
  local found = {
    wrong = {}, shares = {}, names = {}, prices = {}, warehouses = {}, districts = {}, balance = {}, paid_in = {}, payments = {}, credit = {},
    delivered = {}, deliveries = {}, loaded_orders = {}, first_payment = {}, sold = {}, lines = {}, remote = {},
  }
  for i = 1, 8 do found.shares[i] = {} end
  function found.violate(name, ...)
    local list = found.wrong[name] or {}
    found.wrong[name] = list
    if #list < MOST then list[#list + 1] = "  " .. format(...) end
  end
  local texts = {}
  --- A random text of so many characters that no other is the same by chance.
  function found.is_unique(kind, text, ...)
    local key = kind .. (text or "")
    if texts[key] then found.violate("texts", ...) end
    texts[key] = true
  end
  function found.share(i, number) found.shares[i][number] = (found.shares[i][number] or 0) + 1 end
  --- The number of a customer in the set.
  function found.customer(w, d, c) return ((w - 1) * DISTRICTS + d - 1) * state.customers + c end
  return found
end

local function look_at_items(con, set, state, found, count)
  local original, rows, part = {}, 0, state.items / 10
  for row in documents(con, "item" .. set, "", "i_id, i_im_id, i_name, i_price, i_data") do
    rows = rows + 1
    local i = row.i_id or 0
    if not (within(row.i_im_id, 1, 10000) and letters(row.i_name, 14, 24) and within(row.i_price, 1, 100) and letters(row.i_data, 26, 50)) then
      found.violate("item", "i_id %s", i)
    end
    if (i - 1) % part < 10 then found.is_unique("item", row.i_data, "i_id %s, i_data %s", i, row.i_data or "none") end
    if within(i, 1, state.items) and not found.prices[i] then
      found.prices[i] = cents(row.i_price)
      local piece = floor((i - 1) / part)
      if (row.i_data or ""):find("ORIGINAL", 1, true) then original[piece] = (original[piece] or 0) + 1 end
    else
      found.violate("items", "i_id %s", i)
    end
    count("item", row)
  end
  if rows ~= state.items then found.violate("items", "%d documents, and %d were loaded", rows, state.items) end
  for piece = 0, 9 do
    if (original[piece] or 0) * 100 ~= state.items then found.violate("original_items", "part %d: %d", piece + 1, original[piece] or 0) end
  end
end

local function look_at_warehouses(con, set, state, found, count)
  local rows = 0
  for row in documents(con, "warehouse" .. set, "", "w_id, w_name, w_tax, w_ytd, " .. address("w")) do
    rows = rows + 1
    if not within(row.w_id, 1, state.warehouses) then found.violate("warehouses", "w_id %s", row.w_id or "none") end
    if not (letters(row.w_name, 6, 10) and has_address(row, "w") and within(row.w_tax, 0, 0.2) and (row.w_ytd or -1) >= 0) then
      found.violate("warehouse", "w_id %s", row.w_id or "none")
    end
    found.is_unique("warehouse", row.w_street_1, "w_id %s, w_street_1 %s", row.w_id or "none", row.w_street_1 or "none")
    found.warehouses[row.w_id or 0] = { ytd = cents(row.w_ytd), name = row.w_name, of_districts = 0, paid = 0 }
    count("tax", { tax = row.w_tax, w = 1 })
  end
  if rows ~= state.warehouses then found.violate("warehouses", "%d documents, and %d were loaded", rows, state.warehouses) end
  rows = 0
  for row in documents(con, "district" .. set, "", "d_id, d_w_id, d_name, d_tax, d_ytd, d_next_o_id, " .. address("d")) do
    rows = rows + 1
    local w, d = row.d_w_id or 0, row.d_id or 0
    if not (within(w, 1, state.warehouses) and within(d, 1, DISTRICTS) and letters(row.d_name, 6, 10) and has_address(row, "d")
      and within(row.d_tax, 0, 0.2) and (row.d_ytd or -1) >= 0 and (row.d_next_o_id or 0) > state.customers) then
      found.violate("district", "d_w_id %s, d_id %s", w, d)
    end
    found.is_unique("district", row.d_street_1, "d_w_id %s, d_id %s, d_street_1 %s", w, d, row.d_street_1 or "none")
    found.districts[w * DISTRICTS + d] = { ytd = cents(row.d_ytd), name = row.d_name, next_order = row.d_next_o_id or 0, paid = 0, texts = 0 }
    local of = found.warehouses[w]
    if of then of.of_districts = of.of_districts + cents(row.d_ytd) end
    found.shares[1][d] = (found.shares[1][d] or 0) + (row.d_next_o_id or 0) - 1 - state.customers
    count("tax", { tax = row.d_tax, w = 0 })
  end
  if rows ~= state.warehouses * DISTRICTS then found.violate("others", "%d districts, and there should be %d", rows, state.warehouses * DISTRICTS) end
  for w, of in pairs(found.warehouses) do
    if of.ytd ~= of.of_districts then found.violate("w_ytd", "w_id %s, w_ytd %.2f, sum_d_ytd %.2f", w, of.ytd / 100, of.of_districts / 100) end
  end
end

local CUSTOMER = "c_id, c_first, c_middle, c_last, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment,"
  .. " c_payment_cnt, c_delivery_cnt, c_data, " .. address("c")

local function look_at_customers(read, state, found, count, w, d)
  local sql, names = require("tpcc_sql_check"), tpcc.last_names(state.customers)
  local valid = assay.constant("tpcc last names of " .. names, function()
    local list = {}
    for n = 0, names - 1 do list[sql.last_name(n)] = true end
    return list
  end)
  local rows, bad, of_name, seen = 0, 0, {}, {}
  for row in read(d) do
    rows = rows + 1
    local c = row.c_id or 0
    if not within(c, 1, state.customers) or seen[c] then
      found.violate("customers", "c_w_id %d, c_d_id %d, c_id %s", w, d, c)
      c = state.customers
    end
    seen[c] = true
    if not (letters(row.c_first, 8, 16) and row.c_middle == "OE" and has_address(row, "c") and has_length(row.c_phone, 16, 16)
      and not row.c_phone:find("%D") and row.c_since and (row.c_credit == "GC" or row.c_credit == "BC") and row.c_credit_lim == 50000
      and within(row.c_discount, 0, 0.5) and row.c_balance and (row.c_ytd_payment or 0) >= 10 and (row.c_payment_cnt or 0) >= 1
      and (row.c_delivery_cnt or -1) >= 0 and has_length(row.c_data, 300, 500)) then
      found.violate("customer", "c_w_id %d, c_d_id %d, c_id %s", w, d, c)
    end
    if not (c <= names and row.c_last == sql.last_name(c - 1) or c > names and valid[row.c_last]) then
      found.violate("last_name", "c_w_id %d, c_d_id %d, c_id %s, c_last %s", w, d, c, row.c_last or "none")
    end
    if c <= 10 then found.is_unique("customer", row.c_street_1, "c_w_id %d, c_d_id %d, c_id %s, c_street_1 %s", w, d, c, row.c_street_1 or "none") end
    if c > names and row.c_last then found.names[row.c_last] = (found.names[row.c_last] or 0) + 1 end
    local key, payments = found.customer(w, d, c), row.c_payment_cnt or 0
    found.balance[key], found.paid_in[key], found.payments[key] = cents(row.c_balance), cents(row.c_ytd_payment), payments
    found.deliveries[key] = row.c_delivery_cnt or 0
    found.counted = (found.counted or 0) + (row.c_delivery_cnt or 0)
    local data = row.c_data or ""
    if row.c_credit == "BC" then
      bad = bad + 1
      found.credit[key] = true
      local entries = select(2, data:gsub("|", ""))
      if entries > payments - 1 or #data < 500 and entries ~= payments - 1 then
        found.violate("all_c_data", "c_w_id %d, c_d_id %d, c_id %d, c_payment_cnt %d, payments in c_data %d", w, d, c, payments, entries)
      end
      if payments > 1 then found.first_payment[key] = data:match("^[^|]*|") or "" end
    end
    if not found.first_payment[key] and data:find("|", 1, true) then found.violate("c_data", "c_w_id %d, c_d_id %d, c_id %d: %.30s…", w, d, c, data) end
    found.since = found.since or row.c_since
    found.loaded_on(row.c_since)
    local list = of_name[row.c_last or ""] or {}
    of_name[row.c_last or ""] = list
    list[#list + 1] = { row.c_first or "", payments - 1 }
    count("customer", row)
  end
  if rows ~= state.customers then found.violate("customers", "c_w_id %d, c_d_id %d: %d documents", w, d, rows) end
  if bad * 10 ~= state.customers then found.violate("credit", "c_w_id %d, c_d_id %d: %d of %d", w, d, bad, rows) end
  for _, list in pairs(of_name) do
    table.sort(list, function(a, b) return a[1] < b[1] end)
    for place, one in ipairs(list) do
      local is_middle = (2 * place == #list or 2 * place == #list + 1) and 1 or 0
      found.shares[7][is_middle] = (found.shares[7][is_middle] or 0) + one[2]
    end
  end
end

local ORDER = "o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local, order_line"

local function look_at_orders(read, read_new, state, found, count, w, d)
  local new, new_rows, least, greatest = {}, 0, math.huge, 0
  for row in read_new(d) do
    local o = row.no_o_id or 0
    new_rows, least, greatest = new_rows + 1, math.min(least, o), math.max(greatest, o)
    new[o] = true
  end
  if new_rows > 0 and greatest - least + 1 ~= new_rows then
    found.violate("new_gaps", "no_w_id %d, no_d_id %d, min_no_o_id %d, max_no_o_id %d, new_order_rows %d", w, d, least, greatest, new_rows)
  end
  local customers, delivered_until = state.customers, tpcc.delivered(state.customers)
  local rows, last, first, expected, line_rows, loaded_cents, deliveries = 0, 0, math.huge, 0, 0, 0, 0
  local place = format("w %d, d %d, o ", w, d)
  local step = state.customers > SMALL and 3000 or math.huge
  local next_order = found.districts[w * DISTRICTS + d] and found.districts[w * DISTRICTS + d].next_order or 0
  local from = 0
  while true do
    -- What is beyond `d_next_o_id` is wrong, and looked at as well.
    local is_last = step == math.huge or from > math.max(next_order, customers)
    local upper = is_last and "" or format(', "$lt": %d', from + step)
    for row in read(d, format('"o_id": {"$gte": %d%s}', from == 0 and -1000000 or from, upper)) do
      local o, c, carrier = row.o_id or 0, row.o_c_id or 0, row.o_carrier_id
      local is_loaded = o <= customers
      rows, last, first, expected = rows + 1, math.max(last, o), math.min(first, o), expected + (row.o_ol_cnt or 0)
      if not (within(c, 1, customers) and row.o_entry_d and (carrier == nil or within(carrier, 1, 10)) and within(row.o_ol_cnt, 5, 15)
        and within(row.o_all_local, 0, 1)) then
        found.violate("orders", "%s%s", place, o)
      end
      if (carrier == nil) ~= (new[o] == true) then found.violate("is_new", "%s%s", place, o) end
      new[o] = nil
      local numbers, seen, is_remote, dated, of_order, date_of = 0, {}, false, 0, 0, nil
      for number, item, supply, date, quantity, amount, info in (row.order_line or ""):gmatch(LINE) do
        number, item, supply, quantity, amount = tonumber(number), tonumber(item), tonumber(supply), tonumber(quantity), cents(tonumber(amount))
        numbers = numbers + 1
        seen[number] = true
        of_order = of_order + amount
        if supply ~= w then is_remote = true end
        if date == "null" then date = nil else date = date:match('"(%d%d%d%d%-.-)"') or date end
        if date then
          dated = dated + 1
          if date_of and date_of ~= date and o > delivered_until then found.violate("delivered_once", "%s%s", place, o) end
          date_of = date
        end
        local amount_is_right
        if o <= delivered_until then amount_is_right = amount == 0 else amount_is_right = amount > 0 end
        if not (within(item, 1, state.items) and within(supply, 1, state.warehouses) and within(quantity, 1, 10) and amount <= 999999
          and (not is_loaded or quantity == 5 and supply == w) and #info == 24 and amount_is_right) then
          found.violate("order_line", "%s%s, ol_number %s", place, o, number)
        end
        if is_loaded then
          loaded_cents = loaded_cents + amount
          count("order_line", { ol_o_id = o, ol_i_id = item, ol_amount = amount / 100, ol_dist_info = info })
        else
          local key = supply * 1000000 + item
          found.sold[key], found.lines[key] = (found.sold[key] or 0) + quantity, (found.lines[key] or 0) + 1
          if supply ~= w then found.remote[key] = (found.remote[key] or 0) + 1 end
          found.share(3, quantity)
          found.share(4, (supply - w + state.warehouses) % state.warehouses)
          if amount ~= quantity * (found.prices[item] or -1) then
            found.violate("price", "%s%s, ol_number %d, ol_quantity %d, i_price %s, ol_amount %.2f", place, o, number, quantity,
              tostring((found.prices[item] or 0) / 100), amount / 100)
          end
          local infos = found.infos[key] or {}
          found.infos[key] = infos
          if infos[d] and infos[d] ~= info then found.violate("price", "%s%s, ol_number %d, ol_dist_info %s", place, o, number, info) end
          infos[d] = info
        end
      end
      line_rows = line_rows + numbers
      if numbers ~= row.o_ol_cnt then found.violate("line_count", "%s%s, o_ol_cnt %s, lines %d", place, o, row.o_ol_cnt or "none", numbers) end
      for n = 1, numbers do
        if not seen[n] then found.violate("line_count", "%s%s has no line %d", place, o, n) end
      end
      if carrier == nil and dated > 0 or carrier ~= nil and dated < numbers then found.violate("line_dates", "%s%s", place, o) end
      if row.o_all_local ~= (is_remote and 0 or 1) then found.violate("local", "%s%s, o_all_local %s", place, o, row.o_all_local or "none") end
      if within(c, 1, customers) then
        local key = found.customer(w, d, c)
        if is_loaded then
          if found.loaded_orders[key] then found.violate("loaded_orders", "w %d, d %d, c %d has two", w, d, c) end
          found.loaded_orders[key] = true
        end
        if carrier ~= nil then
          found.delivered[key] = (found.delivered[key] or 0) + of_order
          if o > delivered_until then
            deliveries = deliveries + 1
            found.deliveries[key] = (found.deliveries[key] or 0) - 1
            if d == 1 then found.share(8, carrier) end
          end
        end
      end
      if is_loaded then
        found.loaded_on(row.o_entry_d)
        if o <= delivered_until then found.loaded_on(date_of) end
        count("orders", row)
      else
        found.share(2, row.o_ol_cnt or 0)
      end
      found.dated(row.o_entry_d, "%s%s, o_entry_d %s", place, o, row.o_entry_d or "none")
      if date_of then found.dated(date_of, "%s%s, ol_delivery_d %s", place, o, date_of) end
    end
    if is_last then break end
    from = from + step
  end
  for o in pairs(new) do found.violate("is_new", "%s%s has no order", place, o) end
  if rows == 0 or next_order - 1 ~= last or new_rows > 0 and next_order - 1 ~= greatest then
    found.violate("next", "d_w_id %d, d_id %d, d_next_o_id %s, last_order %d, last_new_order %d", w, d, next_order, last, greatest)
  end
  if rows > 0 and (first ~= 1 or last ~= rows) then found.violate("order_gaps", "o_w_id %d, o_d_id %d, %d orders up to %d", w, d, rows, last) end
  if expected ~= line_rows then found.violate("line_sum", "w %d, d %d, sum_o_ol_cnt %d, lines %d", w, d, expected, line_rows) end
  local number = (w - 1) * DISTRICTS + d
  if found.pieces["piece district " .. number] and found.pieces["piece district " .. number] - 2 ~= loaded_cents % 1000000000 then
    found.violate("loaded_cents", "w %d, d %d: %d cents, loaded as %d", w, d, loaded_cents % 1000000000, found.pieces["piece district " .. number] - 2)
  end
  if rows - new_rows - found.counted ~= delivered_until then
    found.violate("not_new", "w %d, d %d, order_rows %d, new_order_rows %d, sum_c_delivery_cnt %d", w, d, rows, new_rows, found.counted)
  end
end

--- The stock of a warehouse by piece, in the same way.
local function by_piece(con, set, state, w, fields)
  local part = state.items / 10
  local function read(more) return documents(con, "stock" .. set, format('"s_w_id": %d%s', w, more), fields) end
  if state.items > 10 * SMALL then
    return function(piece)
      local upper = piece == 9 and "" or format(', "$lte": %d', (piece + 1) * part)
      return read(format(', "s_i_id": {"$gt": %d%s}', piece == 0 and -1000000 or piece * part, upper))
    end
  end
  local of = {}
  for row in read("") do
    local piece = math.max(0, math.min(9, floor(((row.s_i_id or 0) - 1) / part)))
    of[piece] = of[piece] or {}
    table.insert(of[piece], row)
  end
  return function(piece)
    local n, list = 0, of[piece] or {}
    return function()
      n = n + 1
      return list[n]
    end
  end
end

local function look_at_stock(con, set, state, found, count, w)
  local part, rows, texts = state.items / 10, 0, {}
  for d = 1, DISTRICTS do texts[d] = format("s_dist_%02d", d) end
  local fields = "s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt, s_data, " .. table.concat(texts, ", ")
  local read = by_piece(con, set, state, w, fields)
  for piece = 0, 9 do
    local original, quantities = 0, 0
    for row in read(piece) do
      rows = rows + 1
      local i, differ = row.s_i_id or 0, true
      for d = 1, DISTRICTS do
        local text = row[texts[d]]
        differ = differ and has_length(text, 24, 24) and (d == 1 or text ~= row[texts[d - 1]])
      end
      if not (within(i, 1, state.items) and within(row.s_quantity, 10, 100) and differ and (row.s_ytd or -1) >= 0 and (row.s_order_cnt or -1) >= 0
        and (row.s_remote_cnt or -1) >= 0 and letters(row.s_data, 26, 50)) then
        found.violate("stock", "s_w_id %d, s_i_id %s, s_quantity %s, s_ytd %s, s_order_cnt %s, s_remote_cnt %s", w, i, row.s_quantity or "none",
          row.s_ytd or "none", row.s_order_cnt or "none", row.s_remote_cnt or "none")
      end
      if (i - 1) % part < 10 then found.is_unique("stock", row.s_data, "s_w_id %d, s_i_id %s, s_data %s", w, i, row.s_data or "none") end
      if (row.s_data or ""):find("ORIGINAL", 1, true) then original = original + 1 end
      quantities = quantities + ((row.s_quantity or 0) + (row.s_ytd or 0)) % 91
      local key = w * 1000000 + i
      local sold, lines, remote = found.sold[key] or 0, found.lines[key] or 0, found.remote[key] or 0
      if row.s_ytd ~= sold or row.s_order_cnt ~= lines or row.s_remote_cnt ~= remote then
        found.violate("sold", "w %d, i %s, s_ytd %s, sum_ol_quantity %d, s_order_cnt %s, order_lines %d, s_remote_cnt %s, remote_lines %d", w, i,
          row.s_ytd or "none", sold, row.s_order_cnt or "none", lines, row.s_remote_cnt or "none", remote)
      end
      for d, info in pairs(found.infos[key] or {}) do
        if info ~= row[texts[d]] then found.violate("price", "s_w_id %d, s_i_id %s, district %d: ol_dist_info %s", w, i, d, info) end
      end
      found.sold[key], found.lines[key], found.infos[key] = nil, nil, nil
      count("stock", row)
    end
    if original * 100 ~= state.items then found.violate("original_stock", "w %d, part %d: %d", w, piece + 1, original) end
    local loaded = found.pieces[format("piece stock %d", (w - 1) * 10 + piece + 1)]
    if loaded and loaded - 2 ~= quantities then found.violate("quantity", "w %d, part %d, loaded %d, found %d", w, piece + 1, loaded - 2, quantities) end
  end
  if rows ~= state.items then found.violate("stocks", "w_id %d: %d documents", w, rows) end
end

local function look_at_history(con, set, state, found, count)
  for row in history(con, set) do
    local w, d, c_w, c_d, c = row.h_w_id or 0, row.h_d_id or 0, row.h_c_w_id or 0, row.h_c_d_id or 0, row.h_c_id or 0
    local amount, data = cents(row.h_amount), row.h_data or ""
    if not (within(w, 1, state.warehouses) and within(d, 1, DISTRICTS) and within(c_w, 1, state.warehouses) and within(c_d, 1, DISTRICTS)
      and within(c, 1, state.customers) and row.h_date and within(row.h_amount, 1, 5000) and has_length(data, 12, 24) and (c_w ~= w or c_d == d)) then
      found.violate("history", "h_w_id %s, h_d_id %s, h_c_w_id %s, h_c_d_id %s, h_c_id %s, h_amount %s", w, d, c_w, c_d, c, row.h_amount or "none")
    end
    local of, warehouse = found.districts[w * DISTRICTS + d], found.warehouses[w]
    if of and warehouse then
      of.paid, warehouse.paid = of.paid + amount, warehouse.paid + amount
      if data ~= (warehouse.name or "") .. "    " .. (of.name or "") then of.texts = of.texts + 1 end
    end
    local key = found.customer(c_w, c_d, c)
    if found.balance[key] then
      found.balance[key], found.payments[key] = found.balance[key] + amount, found.payments[key] - 1
      local entry = found.first_payment[key]
      if entry and entry == format("%d %d %d %d %d %.2f|", c, c_d, c_w, d, w, amount / 100) then found.first_payment[key] = true end
    end
    found.share(5, (c_w - w + state.warehouses) % state.warehouses)
    found.share(6, amount < 100080 and 0 or amount < 200060 and 1 or amount < 300040 and 2 or amount < 400020 and 3 or 4)
    if not data:find("    ", 1, true) then
      found.loaded_of(w, d, row.h_date)
      count("history", row)
    end
    found.dated(row.h_date, "w %s, d %s, h_date of customer %s: %s", w, d, c, row.h_date or "none")
  end
end

--- What is known when everything was read.
local function compare(state, found)
  for w, of in pairs(found.warehouses) do
    if of.paid ~= of.ytd then found.violate("w_paid", "w %s, w_ytd %.2f, sum_h_amount %.2f", w, of.ytd / 100, of.paid / 100) end
  end
  for key, of in pairs(found.districts) do
    local w, d = floor((key - 1) / DISTRICTS), (key - 1) % DISTRICTS + 1
    if of.paid ~= of.ytd then found.violate("d_paid", "w %d, d %d, d_ytd %.2f, sum_h_amount %.2f", w, d, of.ytd / 100, of.paid / 100) end
    if of.texts ~= state.customers then found.violate("h_data", "w %d, d %d: other_texts %d", w, d, of.texts) end
  end
  for w = 1, state.warehouses do
    for d = 1, DISTRICTS do
      for c = 1, state.customers do
        local key = found.customer(w, d, c)
        local balance, delivered = found.balance[key], found.delivered[key] or 0
        if balance then
          -- The history was added to the balance.
          if balance ~= delivered then found.violate("balance", "w %d, d %d, c %d, delivered %.2f, balance and paid %.2f", w, d, c, delivered / 100, balance / 100) end
          if found.raw_balance[key] + found.paid_in[key] ~= delivered then
            found.violate("balance_paid", "w %d, d %d, c %d, delivered %.2f", w, d, c, delivered / 100)
          end
          if found.payments[key] ~= 0 then found.violate("payments", "w %d, d %d, c %d: c_payment_cnt less history_rows %d", w, d, c, found.payments[key]) end
          if found.deliveries[key] ~= 0 then
            found.violate("deliveries", "w %d, d %d, c %d: c_delivery_cnt less delivered_orders %d", w, d, c, found.deliveries[key])
          end
          local first = found.first_payment[key]
          if first and first ~= true then found.violate("c_data", "c_w_id %d, c_d_id %d, c_id %d: %.40s", w, d, c, first) end
          if not found.loaded_orders[key] then found.violate("loaded_orders", "w %d, d %d, c %d has none", w, d, c) end
        end
      end
    end
  end
  for key in pairs(found.lines) do found.violate("others", "order lines have item %d of warehouse %d", key % 1000000, floor(key / 1000000)) end
end

--- Documents that no district or warehouse has.
local function look_for_others(con, set, state, found)
  for _, one in ipairs { { "customer", "c", state.warehouses * DISTRICTS * state.customers }, { "stock", "s", state.warehouses * state.items } } do
    local n = tonumber((con:query_row(format('{"count": "%s%d", "query": {}}', one[1], set))))
    if n ~= one[3] then found.violate("others", "%s: %d documents, and there should be %d", one[1], n, one[3]) end
  end
  for _, one in ipairs { { "orders", "o" }, { "new_orders", "no" } } do
    local filter = format('{"$or": [{"%s_w_id": {"$lt": 1}}, {"%s_w_id": {"$gt": %d}}, {"%s_d_id": {"$lt": 1}}, {"%s_d_id": {"$gt": 10}}]}', one[2],
      one[2], state.warehouses, one[2], one[2])
    local n = tonumber((con:query_row(format('{"count": "%s%d", "query": %s}', one[1], set, filter))))
    if n > 0 then found.violate("others", "%s: %d of other districts", one[1], n) end
  end
end

--- The dates that there can be: two days are for clocks.
local function judge_dates(state, found)
  local load, first = found.since or "0001", nil
  local year, month, day = load:match("^(%d%d%d%d)-(%d%d)-(%d%d)")
  local earliest = year and os.date("!%Y-%m-%dT%H:%M:%S", os.time { year = year, month = month, day = day, hour = 0 } - 3 * 86400) or "0001"
  local latest = os.date("!%Y-%m-%dT%H:%M:%S", os.time() + 2 * 86400)
  for _, one in ipairs(found.all_dates) do
    first = one[1]
    if first < earliest or first > latest then found.violate("dates", "%s", one[2]) end
  end
end

--- Whether the indexes of the load are there, by their fields.
local function has_its_indexes(con, dialect, set)
  local missing = {}
  for _, index in ipairs(dialect:wanted_indexes(set)) do
    local result, is_there = con:query(format('{"listIndexes": "%s"}', index[1])), false
    for _ = 1, result.nrows do
      local fields = {}
      for name in (result:fetch_row()[2] or ""):gmatch('"([%w_]+)":') do fields[#fields + 1] = name end
      local text = table.concat(fields, ",") .. ","
      is_there = is_there or text:sub(1, #index[2] + 1) == index[2] .. ","
    end
    if not is_there then missing[#missing + 1] = format("  %s has no index (%s)", index[1], index[2]:gsub(",", ", ")) end
  end
  return tpcc.tell_condition(set, require("tpcc_check").KEYS, missing, SHOWN)
end

--- Verifies a table set; prints a line for each condition. False if any is violated.
function check.check(con, dialect, set, state, sets)
  local found = new_findings(state)
  local count, judge = require("tpcc_population").counters(set, state, sets)
  found.infos, found.pieces, found.raw_balance, found.all_dates = {}, {}, {}, {}
  local load = con:query(mongodb.find("tpcc_load" .. set, '"v": {"$gt": 1}', "what, n, v"))
  for _ = 1, load.nrows do
    local what, n, v = unpack(load:fetch_row())
    found.pieces[what .. " " .. n] = tonumber(v)
  end
  -- The first and the last date, with what has it, say enough.
  local low, high
  function found.dated(date, ...)
    date = date or "0000"
    if not low or date < low then low, found.all_dates[1] = date, { date, format(...) } end
    if not high or date > high then high, found.all_dates[2] = date, { date, format(...) } end
  end
  local date_of = {} -- district → its date
  function found.loaded_of(w, d, date)
    local key = w * DISTRICTS + d
    if date_of[key] and date_of[key] ~= date then found.violate("loaded_dates", "w %s, d %s: %s and %s", w, d, date_of[key], date or "none") end
    date_of[key] = date_of[key] or date
  end
  look_at_items(con, set, state, found, count)
  look_at_warehouses(con, set, state, found, count)
  for w = 1, state.warehouses do
    local read_customers = by_district(con, state, "customer" .. set, "c", w, CUSTOMER)
    local read_orders = by_district(con, state, "orders" .. set, "o", w, ORDER)
    local read_new_orders = by_district(con, state, "new_orders" .. set, "no", w, "no_o_id")
    for d = 1, DISTRICTS do
      function found.loaded_on(date) found.loaded_of(w, d, date) end
      found.counted = 0
      look_at_customers(read_customers, state, found, count, w, d)
      look_at_orders(read_orders, read_new_orders, state, found, count, w, d)
    end
  end
  for key, balance in pairs(found.balance) do found.raw_balance[key] = balance end
  for w = 1, state.warehouses do look_at_stock(con, set, state, found, count, w) end
  look_at_history(con, set, state, found, count)
  compare(state, found)
  look_for_others(con, set, state, found)
  judge_dates(state, found)
  local right = true
  local function told(is_right) right = is_right and right end
  for _, condition in ipairs(CONDITIONS) do
    told(tpcc.tell_condition(set, { condition[2], condition[3] }, found.wrong[condition[1]] or {}, SHOWN))
  end
  for i, share in ipairs(require("tpcc_sql_check").shares) do told(require("tpcc_check").judge_share(set, state, share, found.shares[i])) end
  told(has_its_indexes(con, dialect, set))
  told(judge(found.names))
  return right
end

-- Questions of the inspection and of `verify`, for a table set: see `tpcc_sql_check` ---------------------------------

local find = mongodb.find

check.questions = {
  last_order = function(set, w, d, c)
    return find("orders" .. set, format('%s, "o_c_id": %d', in_district("o", w, d), c), "o_id", '"sort": {"o_id": -1}, "limit": 1')
  end,
  balance = function(set, w, d, c) return find("customer" .. set, format('%s, "c_id": %d', in_district("c", w, d), c), "c_balance") end,
  lines = function(set, w, d, o)
    return find("orders" .. set, format('%s, "o_id": %d', in_district("o", w, d), o), "o_ol_cnt")
  end,
  last_customer = function(set, w, d)
    return find("orders" .. set, in_district("o", w, d), "o_c_id", '"sort": {"o_id": -1}, "limit": 1')
  end,
  customers_of_name = function(set, w, d, name)
    return find("customer" .. set, format('%s, "c_last": "%s"', in_district("c", w, d), name), "c_id", '"sort": {"c_first": 1}')
  end,
  last_order_of_district = function(set, w, d)
    return find("orders" .. set, in_district("o", w, d), "o_id", '"sort": {"o_id": -1}, "limit": 1')
  end,
  orders_from = function(set, w, d, o)
    return find("orders" .. set, format('%s, "o_id": {"$gte": %d}', in_district("o", w, d), o), "o_id, o_c_id, o_carrier_id")
  end,
  payments = function(set) return find("history" .. set, '"h_amount": {"$ne": 10}', "h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_amount") end,
  --- Items of these orders, once each, and how many there are.
  items_sold = function(set, w, d, after, to)
    return function(con)
      local filter = format('%s, "o_id": {"$gt": %d, "$lte": %d}', in_district("o", w, d), after, to)
      local orders, known, list = con:query(find("orders" .. set, filter, "order_line")), {}, {}
      for _ = 1, orders.nrows do
        for i in orders:fetch_row()[1]:gmatch('"ol_i_id":(%d+)') do
          if not known[i] then
            known[i] = true
            list[#list + 1] = i
          end
        end
      end
      return con:query(find("stock" .. set, format('"s_w_id": %d, "s_i_id": {"$in": [%s]}', w, table.concat(list, ", ")), "s_i_id, s_quantity"))
    end
  end,
}

--- One of them.
function check.question(name, set, ...) return check.questions[name](set, ...) end

return check
