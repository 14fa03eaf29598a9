--- The isolation tests of TPC-C (clause 3.4.2), and another one: what two transactions see of each other.
--
-- Two sessions, each with a connection, run the workload's own transactions. The first stops inside of one, T1, before
-- its COMMIT or between two reads; the second runs another, T2, meanwhile. Whether T2 waits for T1 is the server's
-- choice; what is read and left behind is not. All of it is done in warehouse 1 of table set 1, which the tests leave
-- consistent: they are transactions like others, and prices and new orders that a test takes away are put back, after
-- an interruption by the next `isolation`.

local tpcc = require("tpcc_common")

local isolation = {}

local format = string.format
local W, D, EMPTY = 1, 1, 10 -- warehouse, district; the district that test 9 empties
local LOOKS, PAUSE = 20, 0.05 -- T1 looks so often whether T2 has ended, with so many seconds before each look

local parts -- the transactions and their session: `parts` in tpcc.lua
local is_first, customer

--- A text of the dialect for table set 1.
local function question(name, ...) return require(tpcc.dialect().check_module).question(name, 1, ...) end

local function number(name, ...) return tonumber((parts.con:query_row(question(name, ...)))) end

local function last_order() return number("last_order", W, D, customer) end

local function next_order() return number("next_order", W, D) end

local function balance(c) return number("balance", W, D, c) end

--- Puts back what an interrupted test 9 had taken away.
local function restore_new_orders() parts.con:query(question("restore_new_orders", W, EMPTY)) end

local function order_of(d, items)
  return {
    set = 1, d = d, c = customer, lines = #items, remote = 0, unused = false, item = items,
    supply = { W, W, W, W, W }, quantity = { 1, 2, 3, 4, 5 }, number = { 1, 2, 3, 4, 5 },
  }
end

local TO_START_OVER = { ["40001"] = true, ["40P01"] = true }

--- Runs a transaction, again when the server ends it for the other's sake; how often.
local function run(name, input, home)
  for attempt = 1, 10 do
    for key, value in pairs(input) do parts.input[key] = value end
    if not input.c then parts.input.c = nil end
    local ok, message = pcall(parts.transactions[name], home or W)
    if ok then return attempt end
    if not TO_START_OVER[tostring(message):match("state = '(%w+)'") or ""] then error(message, 0) end
    parts.con:query(tpcc.dialect().rollback)
  end
  error("the transaction was retried ten times", 0)
end

--- T1 is where it was to stop: T2 begins, and T1 goes on when T2 has ended, or did not for some time. Two sessions
--- share nothing but counters: each look claims a number of `turn`, and so does T2 at its end.
local function stop(turn)
  assay.barrier()
  for look = 1, LOOKS do
    assay.sleep(PAUSE)
    if assay.claim(turn) >= look then return end
  end
end

--- T2 has ended; whether T1 had to go on for that.
local function end_second(turn) return assay.claim(turn) >= LOOKS end

--- Runs T1, stopped once before its end; then it is committed, or undone with `roll_back`.
local function run_stopped(turn, name, input, roll_back)
  local stopped = false
  parts.end_with(function(commit, rollback)
    if not stopped then
      stopped = true
      stop(turn)
    end
    if roll_back then rollback:execute() else commit:execute() end
  end)
  run(name, input)
  parts.end_with(nil)
end

--- Runs T2 once T1 has stopped; whether it had to wait for the end of T1.
local function run_beside(turn, name, input, home)
  assay.barrier()
  run(name, input, home)
  return end_second(turn)
end

--- Calls `replaced(real, ...)` for each execution of a statement while `body` runs.
local function with_statement(name, replaced, body)
  local real = parts.statements[name]
  parts.statements[name] = { row = function(_, ...) return replaced(real, ...) end }
  local result = body()
  parts.statements[name] = real
  return result
end

local function waited_text(waited) return waited and "waited for T1" or "did not wait" end

-- Order-Status reads an order of a New-Order, or none, that has not ended (3.4.2.1, 3.4.2.2).
local function reading(turn, roll_back)
  local before, seen, waited = last_order(), nil, nil
  assay.barrier()
  if is_first then
    run_stopped(turn, "new_order", order_of(D, { 1, 2, 3, 4, 5 }), roll_back)
  else
    waited = with_statement("last_order", function(real, ...)
      local o, entered, carrier = real:row(...)
      seen = tonumber(o)
      return o, entered, carrier
    end, function() return run_beside(turn, "order_status", { set = 1, c_w = W, c_d = D, c = customer }) end)
  end
  assay.barrier()
  if is_first then return end
  local after = last_order()
  local is_committed = seen == before or waited and seen == after
  local is_kept = roll_back and after == before or not roll_back and after > before
  return is_committed and is_kept, format("last order before %d, after %d; T2 %s, and read %d", before, after, waited_text(waited), seen)
end

-- Two New-Orders of a district get numbers one behind the other (3.4.2.3, 3.4.2.4).
local function numbering(turn, roll_back)
  local before, waited = next_order(), nil
  assay.barrier()
  local input = order_of(D, { 1, 2, 3, 4, 5 })
  if is_first then
    run_stopped(turn, "new_order", input, roll_back)
  else
    waited = run_beside(turn, "new_order", input)
  end
  assay.barrier()
  if is_first then return end
  local orders, after, last = roll_back and 1 or 2, next_order(), last_order()
  local found = number("orders_of_customer_from", W, D, customer, before)
  return after == before + orders and last == after - 1 and found == orders,
    format("d_next_o_id before %d, after %d; T2 %s, and made order %d", before, after, waited_text(waited), last)
end

-- A Delivery and a Payment change the balance of one customer (3.4.2.5, 3.4.2.6).
local function paying(turn, roll_back)
  local o = number("oldest_new_order", W, D)
  local c = number("customer_of_order", W, D, o)
  local amount = number("amount_of_order", W, D, o)
  local before, waited = balance(c), nil
  assay.barrier()
  if is_first then
    run_stopped(turn, "delivery", { set = 1, carrier = 7 }, roll_back)
  else
    waited = run_beside(turn, "payment", { set = 1, d = D, c_w = W, c_d = D, c = c, amount = 100 })
  end
  assay.barrier()
  if is_first then return end
  local wanted, after = before - 100 + (roll_back and 0 or amount), balance(c)
  return math.abs(after - wanted) < 0.005, format("c_balance before %.2f, delivered %.2f, paid 100.00, after %.2f; T2 %s", before, amount,
    after, waited_text(waited))
end

-- Two Payments add to c_data of one customer, who pays at another warehouse, if there is one: then T2 has read
-- something, and may have a snapshot, before it waits for T1.
local function adding_data(turn)
  local c = number("bad_customer", W, D)
  if not c then return nil end
  local home = parts.warehouses > 1 and W + 1 or W
  local waited
  assay.barrier()
  if is_first then
    run_stopped(turn, "payment", { set = 1, d = D, c_w = W, c_d = D, c = c, amount = 101.01 })
  else
    waited = run_beside(turn, "payment", { set = 1, d = D, c_w = W, c_d = D, c = c, amount = 202.02 }, home)
  end
  assay.barrier()
  if is_first then return end
  local data = parts.con:query_row(question("data", W, D, c))
  local payments = data:match("^([^|]*|[^|]*)|") or data
  local first, second = payments:find("101.01", 1, true), payments:find("202.02", 1, true)
  return first ~= nil and second ~= nil, format("c_data begins with %s; T2 %s", payments:sub(1, 60), waited_text(waited))
end

-- T1 reads, stops, and reads again what T2 changes meanwhile. `run_first(seen)` and `run_second()` run them; `seen` has
-- what was read.
local function reading_twice(turn, run_first, run_second)
  assay.barrier()
  local seen, attempts = {}, 1
  if is_first then
    attempts = run_first(seen)
  else
    assay.barrier()
    run_second()
    end_second(turn)
  end
  assay.barrier()
  if not is_first then return end
  local held = attempts > 1 or seen[1] == seen[2]
  return held, attempts > 1 and "T1 was aborted by the server and retried"
    or format("T1 read %s, and again %s", tostring(seen[1] or "nothing"), tostring(seen[2] or "nothing"))
end

--- Runs T1, whose statement `name`, when it is executed with `wanted` as its value number `place`, is followed by a
--- stop. With `again` it is executed once more then, else T1 does that by itself.
local function read_twice(turn, seen, name, place, wanted, again, transaction, input)
  return with_statement(name, function(real, ...)
    local result = { real:row(...) }
    if select(place, ...) ~= wanted or seen.twice then return unpack(result) end
    if not seen.once then
      seen.once, seen[1] = true, result[1]
      stop(turn)
      if not again then return unpack(result) end
    end
    seen.twice = true
    if again then result = { real:row(...) } end
    seen[2] = result[1]
    return unpack(result)
  end, function() return run(transaction, input) end)
end

-- An item's price does not change within a New-Order (3.4.2.7).
local function pricing(turn)
  local prices = {}
  for i = 1, 2 do prices[i] = parts.con:query_row(question("price", i)) end
  local passed, text = reading_twice(turn, function(seen)
    -- Lines of two prices must not stay.
    parts.end_with(function(_, rollback) rollback:execute() end)
    local attempts = read_twice(turn, seen, "item", 1, 1, false, "new_order", order_of(D, { 1, 2, 1, 3, 4 }))
    parts.end_with(nil)
    return attempts
  end, function() parts.con:query(question("raise_prices")) end)
  assay.barrier()
  if not is_first then
    for i = 1, 2 do parts.con:query(question("set_price", prices[i], i)) end
  end
  return passed, text
end

-- The last order of a customer does not change within an Order-Status (3.4.2.8).
local function ordering(turn)
  return reading_twice(turn, function(seen)
    return read_twice(turn, seen, "last_order", 3, customer, true, "order_status", { set = 1, c_w = W, c_d = D, c = customer })
  end, function() run("new_order", order_of(D, { 1, 2, 3, 4, 5 })) end)
end

-- No new order appears in a district within a Delivery that has found none (3.4.2.9).
local function delivering(turn)
  if is_first then
    -- A Delivery that does find the order of T2 must not deliver it: older ones, now out of sight, come before it.
    parts.end_with(function(_, rollback) rollback:execute() end)
    parts.con:query(question("take_new_orders", W, EMPTY))
  end
  local passed, text = reading_twice(turn, function(seen)
    return read_twice(turn, seen, "oldest_new_order", 2, EMPTY, true, "delivery", { set = 1, carrier = 7 })
  end, function() run("new_order", order_of(EMPTY, { 1, 2, 3, 4, 5 })) end)
  if is_first then
    parts.end_with(nil)
    restore_new_orders()
  end
  return passed, text
end

-- By number: what must hold; the test, and whether T1 is rolled back; the clause, if it is none of 3.4.2.
local TESTS = {
  { "Order-Status reads no order of a New-Order that is still to commit", reading, false },
  { "Order-Status reads no order of a New-Order that is rolled back", reading, true },
  { "a New-Order beside one that commits gets the number after it", numbering, false },
  { "a New-Order beside one that is rolled back gets its number", numbering, true },
  { "a Payment beside a Delivery that commits: the balance has both", paying, false },
  { "a Payment beside a Delivery that is rolled back: the balance has the Payment", paying, true },
  { "prices stay within a New-Order", pricing },
  { "the last order stays within an Order-Status", ordering },
  { "a district without new orders stays so within a Delivery", delivering },
  { "a Payment beside another Payment of a customer with bad credit: c_data has both", adding_data, nil, "2.5.2.2" },
}

--- Runs all tests; a line for each. False when any failed. `given`: see `parts` in tpcc.lua.
function isolation.run(given)
  parts, is_first = given, sysbench.tid == 0
  local con = parts.con
  customer = tpcc.constant_of_run(342, parts.customers) + 1
  if is_first then
    restore_new_orders()
    assay.log(format("isolation: %s, Order-Status at %s", parts.level, parts.level_of_reading))
  end
  local right = true
  for n, test in ipairs(TESTS) do
    local passed, text = test[2]("isolation test " .. n, test[3])
    if passed ~= nil then
      right = right and passed
      assay.log(format("clause %s: %s: %s: %s", test[4] or "3.4.2." .. n, test[1], passed and "passed" or "FAILED", text))
    end
    assay.barrier()
  end
  con:disconnect()
  return right
end

return isolation
