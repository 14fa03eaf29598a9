--- Delivery (TPC-C 5.11, clause 2.7): the oldest new order of each district, all in one transaction (2.7.4.2 allows
-- that).

local tpcc = require("tpcc_common")
local acknowledged = require("tpcc_verify")
local totals = require("tpcc_totals")

local session, count = tpcc.session, assay.count
local DISTRICTS = tpcc.DISTRICTS

--- Seconds of keying, and mean think time afterwards (5.2.5.7).
local delivery = { name = "delivery", keying = 2, thinking = 5 }

--- 2.7.1
function delivery.draw(input) input.carrier = sysbench.rand.uniform(1, 10) end

--- 2.7.4.2: one order of a district. Its number, or nil if there is none to deliver.
local function deliver(set, w, d, carrier)
  local defer, o = session.defer, set.oldest_new_order:row(w, d)
  while not o do
    -- If another delivery may have taken the order that this one waited for: is there still another?
    if not session.has_vanishing_rows or not set.any_new_order:row(w, d) then return nil end
    o = set.oldest_new_order:row(w, d)
  end
  o = tonumber(o)
  defer(set.delete_new_order, w, d, o)
  local c = tonumber((set.customer_of_order:row(w, d, o)))
    or tpcc.fail("new order %d of warehouse %d, district %d has no matching order", o, w, d)
  defer(set.set_carrier, carrier, w, d, o)
  defer(set.deliver_lines, w, d, o)
  local amount = tonumber((set.amount_of_order:row(w, d, o)))
  defer(set.deliver_to_customer, amount, w, d, c)
  return o
end

--- 2.7.4. Adds the orders to `delivered`; returns how many districts were skipped.
function delivery.by_statements(set, w, carrier, delivered)
  local skipped = 0
  session.defer(session.begin)
  for d = 1, DISTRICTS do
    delivered[d] = deliver(set, w, d, carrier)
    if not delivered[d] then skipped = skipped + 1 end
  end
  session.commit:execute()
  return skipped
end

local delivered = {} -- district → its order
delivery.delivered = delivered
local before = {} -- the same of the session's last delivery, with its `set` and warehouse, `w`
local entry = {} -- of the result file: set, warehouse, carrier, the orders

--- 2.7.4: the least number of statements, from BEGIN to COMMIT: one for a district without an order, seven for others.
function delivery.least_statements()
  local statements = 2
  for d = 1, DISTRICTS do statements = statements + (delivered[d] and 7 or 1) end
  return statements
end

--- Executes it as drawn, and counts what it did. A deferred one (2.7.2) is the same transaction, counted once: queued
--- when it is due, and executed when the session is free.
function delivery.run(input, home)
  for d = 1, DISTRICTS do delivered[d] = nil end
  input.delivered = delivered
  local skipped = session.by.delivery(session.sets[input.set], home, input.carrier, delivered) or 0
  if skipped > 0 then
    count("skipping_deliveries")
    count("skipped_districts", skipped)
  end
  local found, weighted, again = 0, 0, false
  local is_comparable = before.set == input.set and before.w == home
  for d = 1, DISTRICTS do
    local o = delivered[d]
    if o then
      found = found + 1
      weighted = weighted + tpcc.weight(home, d)
      acknowledged.delivery(input.set, home, d, o, input.carrier)
      totals.note("delivery", input.set, home, d)
      -- An order is delivered once, and never before an older one.
      if is_comparable and before[d] and o <= before[d] then again = true end
    end
    if o or not is_comparable then before[d] = o end
  end
  before.set, before.w = input.set, home
  count("orders_delivered", found)
  count("orders_delivered_weighted", weighted)
  if found + skipped ~= DISTRICTS then count("deliveries_of_fewer_districts") end
  if again then count("deliveries_again") end
  if not session.enter_delivery then return end
  entry[1], entry[2], entry[3] = input.set, home, input.carrier
  for d = 1, DISTRICTS do entry[3 + d] = delivered[d] end
  session.enter_delivery(entry)
end

--- The columns of the result file (2.7.2.2).
function delivery.columns()
  local columns = { "set", "warehouse", "carrier" }
  for d = 1, DISTRICTS do columns[#columns + 1] = "order_" .. d end
  return columns
end

function delivery.declare_rules(rule)
  rule("2.7.4", "deliveries not trying all districts", { part = "deliveries_of_fewer_districts", whole = "delivery", high = 0 })
  rule("2.7.4.2", "deliveries out of order or repeated", { part = "deliveries_again", whole = "delivery", high = 0 })
  rule("2.7.4.2", "deliveries that skip a district", { part = "skipping_deliveries", whole = "delivery", high = 0.01 })
end

return delivery
