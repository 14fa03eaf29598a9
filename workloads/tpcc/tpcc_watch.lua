--- Watches what the statements of a session are executed with, so that the audit can compare it with what was entered.
--
-- The transactions do not know of it: they execute statements as before. A transaction is verified after its end, with
-- the values that its last statements had, and the first columns of the rows they returned; nothing is asked of the
-- server. The bodies of stored procedures cannot be watched.

local tpcc = require("tpcc_common")

local watch = {}

local WATCHED = {
  "customers_of_name", "order_customer", "order_district", "insert_order", "insert_line", "pay_warehouse", "pay_district",
  "paying_customer", "customer_data", "pay_bad_customer", "insert_history", "customer_status", "last_order", "lines_of_order",
  "oldest_new_order", "set_carrier", "deliver_to_customer", "district_level", "low_stock",
}

-- Name → the values of the last execution, in order, and the first columns that it returned in `row`, or `result`.
local seen = {}
-- Of the order or the delivery in progress: the amounts of its lines; its carriers, and whether they differ.
local sum, lines, carrier, carriers_differ = 0, 0, nil, false

local also = {} -- name → what else to do with the values

function also.insert_order() sum, lines = 0, 0 end

function also.insert_line(_, _, _, _, _, _, _, amount) sum, lines = sum + amount, lines + 1 end

function also.set_carrier(number)
  if carrier and carrier ~= number then carriers_differ = true end
  carrier = number
end

local afterwards = {} -- name → what to do with the values and the result, which lives until the next one

--- 2.5.2.2: the one in the middle, rounded up.
function afterwards.customers_of_name(of, result)
  local is_list = result.nrows and result.nrows > 0 -- not if only the first one was asked for
  of.middle = is_list and tonumber(result:value(math.floor((result.nrows + 1) / 2), 1)) or nil
end

-- How often there was no order to deliver.
local nothing_to_deliver = 0

function afterwards.oldest_new_order(_, row)
  if not row[1] then nothing_to_deliver = nothing_to_deliver + 1 end
end

-- A statement that is watched: it, the values of its last execution, the columns that returned, and what else to do
-- with the values, and with the result, if anything. Its methods take a fixed number of values, as those of lean
-- statements do.
local Watched = {}
Watched.__index = Watched
local REAL, VALUES, ROW, MORE, LOOK = 1, 2, 3, 4, 5

local function note(self, a, b, c, d, e, f, g, h)
  local of, more = self[VALUES], self[MORE]
  of[1], of[2], of[3], of[4], of[5], of[6] = a, b, c, d, e, f
  if more then more(a, b, c, d, e, f, g, h) end
end

function Watched:row(a, b, c, d, e, f, g, h, i)
  note(self, a, b, c, d, e, f, g, h)
  local row = self[ROW]
  row[1], row[2], row[3], row[4] = self[REAL]:row(a, b, c, d, e, f, g, h, i)
  local look = self[LOOK]
  if look then look(self[VALUES], row) end
  return row[1], row[2], row[3], row[4]
end

function Watched:execute(a, b, c, d, e, f, g, h, i)
  note(self, a, b, c, d, e, f, g, h)
  local result = self[REAL]:execute(a, b, c, d, e, f, g, h, i)
  local of, look = self[VALUES], self[LOOK]
  of.result = result
  if look then look(of, result) end
  return result
end

function Watched:perform(a, b, c, d, e, f, g, h, i)
  note(self, a, b, c, d, e, f, g, h)
  self[REAL]:perform(a, b, c, d, e, f, g, h, i)
end

function Watched:defer(a, b, c, d, e, f, g, h, i)
  note(self, a, b, c, d, e, f, g, h)
  return self[REAL]:defer(a, b, c, d, e, f, g, h, i)
end

--- A statement that is watched.
function watch.watched(name, statement)
  local of = seen[name] or { row = {} }
  seen[name] = of
  return setmetatable({ statement, of, of.row, also[name] or false, afterwards[name] or false }, Watched)
end

-- Lists that were noted.
local lists = {}

--- Notes a list of this many values, which is not changed until the transaction is verified.
function watch.note(name, list, length)
  local of, more = lists[name] or {}, also[name]
  lists[name], seen[name] = of, of
  of.list, of.length = list, length
  if more then more(list[1]) end
end

--- Replaces the statements of a table set by such as are watched.
function watch.set(prepared)
  for _, name in ipairs(WATCHED) do prepared[name] = watch.watched(name, prepared[name]) end
  return prepared
end

--- A transaction starts.
function watch.begin()
  carrier, carriers_differ, nothing_to_deliver = nil, false, 0
  for _, of in pairs(lists) do of.length = nil end
end

local function has(name, a, b, c)
  local of = seen[name]
  return tonumber(of[1]) == a and tonumber(of[2]) == b and (c == nil or tonumber(of[3]) == c)
end

--- Whether the customer was the drawn one: by number, or the one in the middle of those with the last name.
local function has_customer(name, w, d, input)
  if not has(name, w, d, input.c) then return false end
  if input.c then return true end
  local found = seen.customers_of_name
  return has("customers_of_name", w, d) and found[3] == tpcc.last_name(input.name) and found.middle == tonumber(seen[name][3])
end

local verify = {}

-- For `tpcc_documents`, which has transactions of its own.
watch.seen, watch.has, watch.has_customer, watch.verify = seen, has, has_customer, verify

--- 2.4.2: the rows that were read, the order, and the total that the terminal would show.
function verify.new_order(input, home)
  local order, customer, district = seen.insert_order, seen.order_customer.row, seen.order_district.row
  if not (has("order_customer", home, input.d, input.c) and has("order_district", home, input.d)) then return false end
  if not (order[1] == tonumber(district[1]) and order[2] == input.d and order[3] == home and order[4] == input.c) then return false end
  if order[5] ~= input.lines then return false end
  if input.unused then return lines == input.lines - 1 end
  local total = sum * (1 - tonumber(customer[1])) * (1 + tonumber(customer[4]) + tonumber(district[2]))
  return lines == input.lines and input.total ~= nil and math.abs(total - input.total) < 0.005
end

--- 2.5.2: the rows that were changed, the amount, and for bad credit the customer's data.
function verify.payment(input, home)
  local d, amount, history, customer = input.d, input.amount, seen.insert_history, seen.paying_customer
  if not (has("pay_warehouse", amount, home) and has("pay_district", amount, home, d)) then return false end
  if not has_customer("paying_customer", input.c_w, input.c_d, input) then return false end
  local c = customer[3]
  if not (history[1] == c and history[2] == input.c_d and history[3] == input.c_w and history[4] == d and history[5] == home) then
    return false
  end
  if history[6] ~= amount then return false end
  if customer.row[1] ~= "BC" then return true end
  local entry = ("%d %d %d %d %d %.2f|"):format(c, input.c_d, input.c_w, d, home, amount)
  return seen.pay_bad_customer[3] == (entry .. seen.customer_data.row[1]):sub(1, 500)
end

--- 2.6.2: the rows that were read.
function verify.order_status(input, home)
  local c = seen.customer_status[3]
  return has_customer("customer_status", home, input.c_d, input) and has("last_order", home, input.c_d, tonumber(c))
    and has("lines_of_order", home, input.c_d, tonumber(seen.last_order.row[1]))
    and not seen.lines_of_order.result:fetch_row() -- all of them have been read
end

--- 2.7.4: the warehouse, one carrier for all districts, and none skipped that had an order.
function verify.delivery(input, home)
  local skipped = 0
  for d = 1, tpcc.DISTRICTS do
    if not input.delivered[d] then skipped = skipped + 1 end
  end
  -- Documents answer with a text in any case.
  if skipped > nothing_to_deliver and not tpcc.dialect().documents then return false end
  return seen.oldest_new_order[1] == home and not carriers_differ and (carrier == nil or carrier == input.carrier)
end

--- 2.8.2: the rows that were read.
function verify.stock_level(input, home, district)
  local level = seen.low_stock
  return has("district_level", home, district) and has("low_stock", home, district) and level[5] == home
    and level[6] == input.threshold and level[4] - level[3] == 20 and level[4] == tonumber(seen.district_level.row[1])
end

--- Whether the last transaction, of this name, did what was entered. Values that are missing are an error here, and no.
function watch.is_as_entered(name, input, home, district)
  local known, is_right = pcall(verify[name], input, home, district)
  return known and is_right
end

-- Rates: what each must count (5.4.1; NOPM as others count it).
local RATES = {
  NOPM = { of = "new_order", per = "minute" }, TPM = { per = "minute" }, tpmC = { of = "new_order", per = "minute", rolled_back = true },
}
local rates_are_right, rates_declared = true, 0

--- Declares a rate, and looks whether it counts what its name says.
function watch.rate(what)
  local wanted = RATES[what.name] or {}
  local is_right = what.of == wanted.of and what.per == wanted.per and (what.rolled_back or false) == (wanted.rolled_back or false)
  rates_are_right, rates_declared = rates_are_right and is_right, rates_declared + (RATES[what.name] and 1 or 0)
  assay.rate(what)
end

--- Whether all rates count what they should.
function watch.rates_are_right() return rates_are_right and rates_declared >= 2 end

return watch
