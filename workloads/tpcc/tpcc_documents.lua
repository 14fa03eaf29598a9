--- The transactions of TPC-C on documents (MongoDB): the lines of an order are a list within it.
--
-- Items and stock of an order are read in one command each, its stock is changed in one, and counters are raised with
-- findAndModify. Each transaction is one of the database's, or with --skip-trx none. Then each command is atomic by
-- itself, and the transactions are made so that sessions beside each other do not spoil the documents; but they see
-- each other's unfinished work, and one that fails leaves what it had done.
--
-- The answers of findAndModify are texts, because FerretDB cannot return a part of a document.

local tpcc = require("tpcc_common")
local customers = require("tpcc_customers")
local watch = require("tpcc_watch")
local cents = assay.share("tpcc_mongodb").cents

local documents = {}

local session = tpcc.session
local format, tonumber, unpack = string.format, tonumber, unpack

-- Statements ---------------------------------------------------------------------------------------------------------

local KEYS = {
  warehouse = '{"w_id": ?}', district = '{"d_w_id": ?, "d_id": ?}', customer = '{"c_w_id": ?, "c_d_id": ?, "c_id": ?}',
  order = '{"o_w_id": ?, "o_d_id": ?, "o_id": ?}', stock = '{"s_w_id": ?, "s_i_id": ?}',
}

local function find(collection, filter, columns, more)
  local fields = columns:gsub("[%w_]+", '"%0": 1')
  return format('{"find": "{%s}", "filter": %s, "projection": {"_id": 0, %s}%s}', collection, filter, fields, more or "")
end

local function find_one(collection, key, columns) return find(collection, key, columns, ', "limit": 1, "singleBatch": true') end

-- Name → text and the kinds of its parameters. What is changed stands before what is found.
local STATEMENTS = {
  customers_of_name = {
    find("customer", '{"c_w_id": ?, "c_d_id": ?, "c_last": ?}', "c_id", ', "sort": {"c_first": 1}'), "iit",
  },
  order_customer = { find_one("customer", KEYS.customer, "c_discount, c_last, c_credit"), "iii" },
  order_warehouse = { find_one("warehouse", KEYS.warehouse, "w_tax"), "i" },
  order_district = { '{"findAndModify": "{district}", "update": {"$inc": {"d_next_o_id": 1}}, "query": ' .. KEYS.district .. "}", "ii" },
  insert_new_order = { '{"insert": "{new_orders}", "documents": [{"no_o_id": ?, "no_d_id": ?, "no_w_id": ?}]}', "iii" },
  pay_warehouse = { '{"findAndModify": "{warehouse}", "update": {"$inc": {"w_ytd": ?}}, "query": ' .. KEYS.warehouse .. "}", "di" },
  pay_district = { '{"findAndModify": "{district}", "update": {"$inc": {"d_ytd": ?}}, "query": ' .. KEYS.district .. "}", "dii" },
  paying_customer = {
    find_one("customer", KEYS.customer, "c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone,"
      .. " c_since, c_credit_lim, c_discount, c_balance"), "iii",
  },
  pay_customer = {
    '{"update": "{customer}", "updates": [{"u": {"$inc": {"c_balance": ?, "c_ytd_payment": ?, "c_payment_cnt": 1}}, "q": '
      .. KEYS.customer .. "}]}", "ddiii",
  },
  customer_data = { find_one("customer", KEYS.customer, "c_data, c_payment_cnt"), "iii" },
  -- Nothing if another payment came first.
  pay_bad_customer = {
    '{"findAndModify": "{customer}", "update": {"$inc": {"c_balance": ?, "c_ytd_payment": ?, "c_payment_cnt": 1}, "$set": {"c_data": ?}},'
      .. ' "query": {"c_w_id": ?, "c_d_id": ?, "c_id": ?, "c_payment_cnt": ?}}', "ddtiiii",
  },
  insert_history = {
    '{"insert": "{history}", "documents": [{"h_c_id": ?, "h_c_d_id": ?, "h_c_w_id": ?, "h_d_id": ?, "h_w_id": ?, "h_amount": ?,'
      .. ' "h_data": ?, "h_date": {"$date": ?}}]}', "iiiiidti",
  },
  customer_status = { find_one("customer", KEYS.customer, "c_balance, c_first, c_middle, c_last"), "iii" },
  last_order = {
    find("orders", '{"o_w_id": ?, "o_d_id": ?, "o_c_id": ?}', "o_id, o_entry_d, o_carrier_id, order_line",
      ', "sort": {"o_id": -1}, "limit": 1, "singleBatch": true'), "iii",
  },
  oldest_new_order = {
    '{"findAndModify": "{new_orders}", "query": {"no_w_id": ?, "no_d_id": ?}, "sort": {"no_o_id": 1}, "remove": true}', "ii",
  },
  order_to_deliver = { find_one("orders", KEYS.order, "o_c_id, o_ol_cnt, order_line"), "iii" },
  deliver_to_customer = {
    '{"update": "{customer}", "updates": [{"u": {"$inc": {"c_balance": ?, "c_delivery_cnt": 1}}, "q": ' .. KEYS.customer .. "}]}", "diii",
  },
  district_level = { find_one("district", KEYS.district, "d_next_o_id"), "ii" },
  last_orders = {
    find("orders", '{"o_w_id": ?, "o_d_id": ?, "o_id": {"$gte": ?, "$lt": ?}}', "order_line"), "iiii",
  },
}

--- `one` this many times, between commas.
local function times(n, one) return one .. (", " .. one):rep(n - 1) end

-- The same for statements that depend on a number of lines or items.
local LISTS = {}

function LISTS.items(n)
  return find("item", '{"i_id": {"$in": [' .. times(n, "?") .. "]}}", "i_id, i_price, i_name, i_data"), ("i"):rep(n)
end

local STOCK = "s_i_id, s_w_id, s_quantity, s_data, s_dist_%02d"

--- The stock of the home warehouse, for the texts of a district.
function LISTS.stock(n, d)
  local filter = '{"s_w_id": ?, "s_i_id": {"$in": [' .. times(n, "?") .. "]}}"
  return find("stock", filter, STOCK:format(d)), "i" .. ("i"):rep(n)
end

--- The stock of any warehouses.
function LISTS.stock_anywhere(n, d) return find("stock", '{"$or": [' .. times(n, KEYS.stock) .. "]}", STOCK:format(d)), ("ii"):rep(n) end

local SELL = '{"q": ' .. KEYS.stock .. ', "u": {"$inc": {"s_quantity": ?, "s_ytd": ?, "s_order_cnt": 1, "s_remote_cnt": ?}}}'
local REFILL = '{"q": {"s_w_id": ?, "s_i_id": ?, "s_quantity": {"$lt": 10}}, "u": {"$inc": {"s_quantity": 91}}}'

function LISTS.update_stock(n) return '{"update": "{stock}", "updates": [' .. times(n, SELL) .. "]}", ("iiiii"):rep(n) end

--- For sessions that may have sold the same in between: whether it must be refilled is decided by the server.
function LISTS.update_stock_at_once(n)
  return '{"update": "{stock}", "updates": [' .. times(n, SELL .. ", " .. REFILL) .. "]}", ("iiiiiii"):rep(n)
end

local LINE = '{"ol_number": ?, "ol_i_id": ?, "ol_supply_w_id": ?, "ol_delivery_d": null, "ol_quantity": ?, "ol_amount": ?, "ol_dist_info": ?}'

function LISTS.insert_order(n)
  return '{"insert": "{orders}", "documents": [{"o_id": ?, "o_d_id": ?, "o_w_id": ?, "o_c_id": ?, "o_entry_d": {"$date": ?},'
    .. ' "o_carrier_id": null, "o_ol_cnt": ?, "o_all_local": ?, "order_line": [' .. times(n, LINE) .. "]}]}", "iiiiiii" .. ("iiiidt"):rep(n)
end

function LISTS.set_carrier(n)
  local dates = {}
  for line = 0, n - 1 do dates[line + 1] = format('"order_line.%d.ol_delivery_d": {"$date": ?}', line) end
  return '{"update": "{orders}", "updates": [{"u": {"$set": {"o_carrier_id": ?, ' .. table.concat(dates, ", ") .. '}}, "q": ' .. KEYS.order
    .. "}]}", "i" .. ("i"):rep(n) .. "iii"
end

function LISTS.low_stock(n)
  return find("stock", '{"s_w_id": ?, "s_quantity": {"$lt": ?}, "s_i_id": {"$in": [' .. times(n, "?") .. "]}}", "s_i_id"), "ii" .. ("i"):rep(n)
end

local NOTED = { insert_order = true, update_stock = true, update_stock_at_once = true, set_carrier = true, low_stock = true }

--- Prepares the statements of a table set. Those of `LISTS` are functions of a list of parameters, the number of those
--- that it has, and what makes the text.
function documents.prepare_set(con, dialect, set)
  local prepared = {}
  for name, definition in pairs(STATEMENTS) do
    prepared[name] = watch.watched(name, con:prepare(dialect.of_set(definition[1], set), definition[2]):lean())
  end
  for name, make in pairs(LISTS) do
    local made, is_noted = {}, NOTED[name]
    prepared[name] = function(list, length, n, d)
      local key = d and d * 1000 + n or n
      local statement = made[key]
      if not statement then
        local text, types = make(n, d)
        statement = con:prepare(dialect.of_set(text, set), types)
        made[key] = statement
      end
      if is_noted then watch.note(name, list, length) end
      return statement:execute(unpack(list, 1, length))
    end
  end
  return prepared
end

-- Without transactions, their beginning and end are nothing.
local NOTHING = { execute = function() end }

--- Begins a session: how its transactions start and end.
function documents.open(con, dialect)
  if session.settings.skip_trx then
    session.begin, session.begin_reading, session.commit, session.rollback = NOTHING, NOTHING, NOTHING, NOTHING
    -- A transaction may read what another has done in part.
    session.level_of_writing, session.level_of_reading = "READ UNCOMMITTED", "READ UNCOMMITTED"
  else
    for _, name in ipairs { "begin", "begin_reading", "commit", "rollback" } do session[name] = con:prepare(dialect[name], "") end
    session.level_of_writing, session.level_of_reading = "SNAPSHOT", "SNAPSHOT"
    session.is_isolated = true
    session.begin:execute() -- the server may have none
    session.rollback:execute()
  end
  session.reports_state = true
end

-- Transactions -------------------------------------------------------------------------------------------------------

local by = {}
documents.by = by

local function now() return os.time() * 1000 end

--- A number or text of a document that is shown as text.
local function number_in(text, name) return tonumber(text:match('"' .. name .. '":(%-?[%d.eE+-]+)')) end
local function text_in(text, name) return text:match('"' .. name .. '":"([^"]*)"') end

local list = {} -- parameters of the next statement
-- The same of those that are noted, until the transaction is verified.
local stock_list, order_list, carrier_list, low_list = {}, {}, {}, {}

--- 2.4.2. Items are looked up before anything is written (2.4.1.4).
function by.new_order(set, w, input)
  local d, c, lines, skips = input.d, input.c, input.lines, session.settings.skip_trx
  local item, supply, quantity, number = input.item, input.supply, input.quantity, input.number
  session.begin:execute()
  local discount = set.order_customer:row(w, d, c)
  local w_tax = set.order_warehouse:row(w)
  for n = 1, lines do list[n] = item[n] end
  local found, prices, brands = set.items(list, lines, lines), {}, {}
  for _ = 1, found.nrows do
    local row = found:fetch_row()
    prices[tonumber(row[1])], brands[tonumber(row[1])] = cents(row[2]), row[4]:find("ORIGINAL", 1, true)
  end
  for n = 1, lines do
    if not prices[item[n]] then -- 2.4.1.4: an unused item number
      session.rollback:execute()
      return nil
    end
  end
  local district = set.order_district:row(w, d) or tpcc.fail("no district %d in warehouse %d", d, w)
  local o, d_tax = number_in(district, "d_next_o_id"), number_in(district, "d_tax")
  -- Item and warehouse → quantity, text of the district, brand.
  local stock
  if input.remote == 0 then
    list[1] = w
    for n = 1, lines do list[n + 1] = item[n] end
    stock = set.stock(list, lines + 1, lines, d)
  else
    for n = 1, lines do list[2 * n - 1], list[2 * n] = supply[n], item[n] end
    stock = set.stock_anywhere(list, 2 * lines, lines, d)
  end
  local left, infos = {}, {}
  for _ = 1, stock.nrows do
    local row = stock:fetch_row()
    local key = row[2] * 1000000 + row[1]
    left[key], infos[key] = tonumber(row[3]), row[5]
    if row[4]:find("ORIGINAL", 1, true) and brands[tonumber(row[1])] then input.brand = "B" end -- what the terminal shows
  end
  local at = 0
  for n = 1, lines do
    local i, from, amount = item[n], supply[n], quantity[n]
    local key = from * 1000000 + i
    if not left[key] then tpcc.fail("no stock of item %d in warehouse %d", i, from) end
    local sold = -amount
    if not skips then
      if left[key] - amount < 10 then sold = 91 - amount end
      left[key] = left[key] + sold
    end
    stock_list[at + 1], stock_list[at + 2], stock_list[at + 3], stock_list[at + 4], stock_list[at + 5] = from, i, sold, amount, from == w and 0 or 1
    at = at + 5
    if skips then
      stock_list[at + 1], stock_list[at + 2] = from, i
      at = at + 2
    end
  end
  local update_stock = skips and set.update_stock_at_once or set.update_stock
  update_stock(stock_list, at, lines)
  local order = order_list
  order[1], order[2], order[3], order[4], order[5], order[6] = o, d, w, c, now(), lines
  order[7] = input.remote == 0 and 1 or 0
  local sum = 0
  at = 7
  for n = 1, lines do
    local i, from, amount = item[n], supply[n], quantity[n]
    local cost = amount * prices[i]
    sum = sum + cost
    order[at + 1], order[at + 2], order[at + 3], order[at + 4] = number[n], i, from, amount
    order[at + 5], order[at + 6] = cost / 100, infos[from * 1000000 + i]
    at = at + 6
  end
  set.insert_order(order, at, lines)
  set.insert_new_order:perform(o, d, w)
  session.commit:execute()
  return o, sum / 100 * (1 - discount) * (1 + w_tax + d_tax)
end

--- 2.5.2
function by.payment(set, w, input)
  local d, amount, c_w, c_d, c = input.d, input.amount, input.c_w, input.c_d, input.c
  session.begin:execute()
  local w_name = text_in(set.pay_warehouse:row(amount, w), "w_name")
  local d_name = text_in(set.pay_district:row(amount, w, d), "d_name")
  if not c then c = customers.of_name(set, c_w, c_d, input.name) end
  local credit = set.paying_customer:row(c_w, c_d, c)
  if credit == "BC" then
    repeat
      local data, payments = set.customer_data:row(c_w, c_d, c)
      if not data then tpcc.fail("no customer %d in warehouse %d, district %d", c, c_w, c_d) end
      data = ("%d %d %d %d %d %.2f|%s"):format(c, c_d, c_w, d, w, amount, data):sub(1, 500)
      local paid = set.pay_bad_customer:row(-amount, amount, data, c_w, c_d, c, tonumber(payments))
    until paid
  else
    set.pay_customer:perform(-amount, amount, c_w, c_d, c)
  end
  set.insert_history:perform(c, c_d, c_w, d, w, amount, w_name .. "    " .. d_name, now())
  session.commit:execute()
end

--- 2.6.2. The customer's balance, the number of the last order, and how many lines it has.
function by.order_status(set, input)
  local w, d, c = input.c_w, input.c_d, input.c
  session.begin_reading:execute()
  if not c then c = customers.of_name(set, w, d, input.name) end
  local balance = set.customer_status:row(w, d, c)
  local o, _, _, lines = set.last_order:row(w, d, c)
  session.commit:execute()
  local found = select(2, (lines or ""):gsub('"ol_number"', ""))
  return balance, tonumber(o), found
end

--- 2.7.4.2: one order of a district. Its number, or nil if there is none to deliver.
local function deliver(set, w, d, carrier)
  local taken = set.oldest_new_order:row(w, d)
  if not taken then return nil end
  local o = number_in(taken, "no_o_id")
  local c, count, lines = set.order_to_deliver:row(w, d, o)
  if not c then tpcc.fail("new order %d of warehouse %d, district %d has no matching order", o, w, d) end
  local sum, date = 0, now()
  for amount in lines:gmatch('"ol_amount":(%-?[%d.eE+-]+)') do sum = sum + cents(amount) end
  count = tonumber(count)
  carrier_list[1] = carrier
  for n = 1, count do carrier_list[n + 1] = date end
  carrier_list[count + 2], carrier_list[count + 3], carrier_list[count + 4] = w, d, o
  set.set_carrier(carrier_list, count + 4, count)
  set.deliver_to_customer:perform(sum / 100, w, d, tonumber(c))
  return o
end

--- 2.7.4. Adds the orders to `delivered`; returns how many districts were skipped.
function by.delivery(set, w, carrier, delivered)
  local skipped = 0
  session.begin:execute()
  for d = 1, tpcc.DISTRICTS do
    delivered[d] = deliver(set, w, d, carrier)
    if not delivered[d] then skipped = skipped + 1 end
  end
  session.commit:execute()
  return skipped
end

local STEP = 25 -- items are listed in steps of this many, so that few statements have to be prepared

--- 2.8.2. How many items are low.
function by.stock_level(set, w, d, input)
  session.begin_reading:execute()
  local next_order = tonumber((set.district_level:row(w, d)))
  local orders, known, n = set.last_orders:execute(w, d, next_order - 20, next_order), {}, 2
  low_list[1], low_list[2] = w, input.threshold
  for _ = 1, orders.nrows do
    for i in orders:fetch_row()[1]:gmatch('"ol_i_id":(%d+)') do
      if not known[i] then
        known[i], n = true, n + 1
        low_list[n] = tonumber(i)
      end
    end
  end
  local low = 0
  if n > 2 then
    local length = math.ceil((n - 2) / STEP) * STEP
    for more = n + 1, length + 2 do low_list[more] = low_list[n] end
    low = set.low_stock(low_list, length + 2, length).nrows
  end
  session.commit:execute()
  return low
end

--- The least number of statements of a transaction, with those that start and end it.
function documents.least_statements(name, input, delivered)
  local least
  if name == "new_order" then
    least = input.unused and 5 or 10
  elseif name == "payment" then
    least = input.name and 8 or 7
  elseif name == "order_status" then
    least = input.name and 5 or 4
  elseif name == "delivery" then
    least = 2
    for d = 1, tpcc.DISTRICTS do least = least + (delivered[d] and 4 or 1) end
  else
    least = 4
  end
  return session.settings.skip_trx and least - 2 or least
end

-- What was executed --------------------------------------------------------------------------------------------------

local verify, has, has_customer, seen = watch.verify, watch.has, watch.has_customer, watch.seen

local function noted(name)
  local of = seen[name]
  return of and of.length and of or nil
end

--- 2.4.2: what was read and written, and the total that the terminal would show.
local function new_order(input, home)
  local order = noted("insert_order")
  if not (has("order_customer", home, input.d, input.c) and tonumber(seen.order_warehouse[1]) == home) then return false end
  if input.unused then return not order end
  local district, list = seen.order_district.row[1], order.list
  if not has("order_district", home, input.d) or list[1] ~= number_in(district, "d_next_o_id") then return false end
  if not (list[2] == input.d and list[3] == home and list[4] == input.c and list[6] == input.lines) then return false end
  if list[7] ~= (input.remote == 0 and 1 or 0) or not has("insert_new_order", list[1], input.d, home) then return false end
  local sum = 0
  for n = 1, input.lines do
    local at = 7 + 6 * (n - 1)
    local is_right = list[at + 1] == input.number[n] and list[at + 2] == input.item[n] and list[at + 3] == input.supply[n]
      and list[at + 4] == input.quantity[n]
    if not is_right then return false end
    sum = sum + list[at + 5]
  end
  if order.length ~= 7 + 6 * input.lines then return false end
  local customer, warehouse = seen.order_customer.row, seen.order_warehouse.row
  local total = sum * (1 - tonumber(customer[1])) * (1 + tonumber(warehouse[1]) + number_in(district, "d_tax"))
  return input.total ~= nil and math.abs(total - input.total) < 0.005
end

--- 2.4.2.2: the stock that was sold.
local function sold(input, home)
  local skips = session.settings.skip_trx
  local of, width = noted(skips and "update_stock_at_once" or "update_stock"), skips and 7 or 5
  if input.unused then return not of end
  if of.length ~= width * input.lines then return false end
  for n = 1, input.lines do
    local at, amount, from = width * (n - 1), input.quantity[n], input.supply[n]
    local list = of.list
    local is_right = list[at + 1] == from and list[at + 2] == input.item[n] and list[at + 4] == amount
      and list[at + 5] == (from == home and 0 or 1) and (list[at + 3] == -amount or not skips and list[at + 3] == 91 - amount)
    if not is_right then return false end
  end
  return true
end

function verify.new_order(input, home) return new_order(input, home) and sold(input, home) end

--- 2.6.2: the documents that were read.
function verify.order_status(input, home)
  local c = seen.customer_status[3]
  return has_customer("customer_status", home, input.c_d, input) and has("last_order", home, input.c_d, tonumber(c))
end

--- 2.8.2: the documents that were read.
function verify.stock_level(input, home, district)
  local orders, low = seen.last_orders, noted("low_stock")
  return has("district_level", home, district) and has("last_orders", home, district) and low.list[1] == home
    and low.list[2] == input.threshold and orders[4] - orders[3] == 20 and orders[4] == tonumber(seen.district_level.row[1])
end

return documents
