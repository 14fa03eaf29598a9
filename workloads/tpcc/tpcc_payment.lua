--- Payment (TPC-C 5.11, clause 2.5): a customer pays, 15 of 100 at a warehouse that is not theirs.

local tpcc = require("tpcc_common")
local customers = require("tpcc_customers")

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

--- Executes it as drawn, and counts what it did.
function payment.run(input, home)
  session.by.payment(session.sets[input.set], home, input)
  if input.c_w ~= home then
    count("remote_payments")
    if tpcc.is_far(home, input.c_w) then count("far_payments") end
  end
  if input.name then count("payments_by_name") end
  customers.count(input)
end

function payment.declare_rules(rule)
  if session.warehouses > 1 then
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
