--- Payment (TPC-C 5.11, clause 2.5): a customer pays, 15 of 100 at a warehouse that is not theirs.

local tpcc = require("tpcc_common")
local customers = require("tpcc_customers")
local acknowledged = require("tpcc_verify")
local totals = require("tpcc_totals")

local session, uniform, count = tpcc.session, sysbench.rand.uniform, assay.count

--- Seconds to key it in, and to think afterwards on average (5.2.5.7).
local payment = { name = "payment", keying = 3, thinking = 12 }

--- 2.5.1.2: the warehouse a paying customer belongs to.
function customer_warehouse(w)
  if tpcc.chance(15) then return tpcc.another_warehouse(w) end
  return w
end

--- 2.5.1
function payment.draw(input, home)
  input.d = uniform(1, tpcc.DISTRICTS)
  input.c_w, input.c_d = customer_warehouse(home), input.d
  if input.c_w ~= home then input.c_d = uniform(1, tpcc.DISTRICTS) end
  customers.draw(input)
  input.amount = uniform(100, 500000) / 100
end

--- 2.5.2
function payment.by_statements(set, w, input)
  local defer, d, amount, c_w, c_d, c = session.defer, input.d, input.amount, input.c_w, input.c_d, input.c
  defer(session.begin)
  defer(set.pay_warehouse, amount, w)
  local w_name = set.warehouse:row(w)
  defer(set.pay_district, amount, w, d)
  local d_name = set.district:row(w, d)
  if not c then c = customers.of_name(set, c_w, c_d, input.name) end
  local credit = set.paying_customer:row(c_w, c_d, c)
  if credit == "BC" then
    local data = set.customer_data:row(c_w, c_d, c)
    data = ("%d %d %d %d %d %.2f|%s"):format(c, c_d, c_w, d, w, amount, data):sub(1, 500)
    defer(set.pay_bad_customer, amount, amount, data, c_w, c_d, c)
  else
    defer(set.pay_customer, amount, amount, c_w, c_d, c)
  end
  defer(set.insert_history, c, c_d, c_w, d, w, amount, w_name .. "    " .. d_name)
  session.commit:execute()
end

--- 2.5.2: the least number of statements, from BEGIN to COMMIT.
function payment.least_statements(input) return input.name and 10 or 9 end

--- Executes it as drawn, and counts what it did.
function payment.run(input, home)
  session.by.payment(session.sets[input.set], home, input)
  local cents = math.floor(input.amount * 100 + 0.5)
  -- One of 10.00 cannot be told from those of the load.
  if cents ~= 1000 then acknowledged.payment(input.set, home, input.d, input.c_w, input.c_d, cents) end
  totals.note("payment", input.set, home)
  count("cents_paid", cents)
  count("cents_paid_weighted", cents * tpcc.weight(home, input.d))
  if cents % 100 == 0 then count("whole_dollars") end
  count("payment_districts", input.d)
  if input.c_w ~= home then
    count("remote_payments")
    if input.c_d == input.d then count("remote_payments_of_same_district") end
    if tpcc.is_far(home, input.c_w) then count("far_payments") end
  end
  if input.name then count("payments_by_name") end
  customers.count(input)
end

function payment.declare_rules(rule)
  rule("2.5.1.1", "district of payments", { mean = "payment_districts", low = 5.2, high = 5.8 })
  rule("2.5.1.3", "payments of whole dollars", { part = "whole_dollars", whole = "payment", low = 0.005, high = 0.02 })
  if session.warehouses > 1 then
    rule("2.5.1.2", "remote payments in the same district",
      { part = "remote_payments_of_same_district", whole = "remote_payments", low = 0.07, high = 0.13 })
    rule("2.5.1.2", "remote payments", { part = "remote_payments", whole = "payment", low = 0.14, high = 0.16 })
  end
  if session.warehouses > 2 then
    local far = tpcc.far_share()
    rule("2.5.1.2", "remote payments for far warehouses",
      { part = "far_payments", whole = "remote_payments", low = 0.85 * far, high = 1.15 * far })
  end
  rule("2.5.1.2", "payments by last name", { part = "payments_by_name", whole = "payment", low = 0.57, high = 0.63 })
end

return payment
