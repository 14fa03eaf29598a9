--- Order-Status (TPC-C 5.11, clause 2.6): a customer asks for the last order.

local tpcc = require("tpcc_common")
local customers = require("tpcc_customers")

local session, count = tpcc.session, assay.count

--- Seconds to key it in, and to think afterwards on average (5.2.5.7).
local order_status = { name = "order_status", keying = 2, thinking = 10 }

--- 2.6.1
function order_status.draw(input, home)
  input.c_w, input.c_d = home, sysbench.rand.uniform(1, tpcc.DISTRICTS)
  customers.draw(input)
end

--- 2.6.2. The customer's balance, the number of the last order, and how many lines it has.
function order_status.by_statements(set, input)
  local w, d, c = input.c_w, input.c_d, input.c
  session.defer(session.begin_reading)
  if not c then c = customers.of_name(set, w, d, input.name) end
  local balance = set.customer_status:row(w, d, c)
  local o = set.last_order:row(w, d, c)
  local lines = set.lines_of_order:execute(w, d, tonumber(o))
  local found = lines.nrows
  for _ = 1, found do lines:fetch_row() end
  session.commit:execute()
  return balance, tonumber(o), found
end

--- 2.6.2: the least number of statements, from BEGIN to COMMIT.
function order_status.least_statements(input) return input.name and 6 or 5 end

--- Executes it as drawn, and counts what it did.
function order_status.run(input)
  local balance, o, lines = session.by.order_status(session.sets[input.set], input)
  input.balance = balance
  if not (balance and o and lines and lines >= 5 and lines <= 15) then count("statuses_without_order") end
  count("status_districts", input.c_d)
  if input.name then count("status_by_name") end
  if session.is_isolated then count("isolated") end
  customers.count(input)
end

function order_status.declare_rules(rule)
  rule("2.6.1.1", "district of order-status", { mean = "status_districts", low = 5.2, high = 5.8 })
  rule("2.6.1.2", "order-status by last name", { part = "status_by_name", whole = "order_status", low = 0.57, high = 0.63 })
  rule("2.6.2.2", "order-status that found no order", { part = "statuses_without_order", whole = "order_status", high = 0 })
  rule("3.4.1", "order-status at " .. session.level_of_reading:lower(), { part = "isolated", whole = "order_status", low = 0.99 })
end

return order_status
