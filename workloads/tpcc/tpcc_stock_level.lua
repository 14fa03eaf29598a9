--- Stock-Level (TPC-C 5.11, clause 2.8): how many items of a district's last 20 orders are running low.

local tpcc = require("tpcc_common")

local session, count = tpcc.session, assay.count

--- Seconds to key it in, and to think afterwards on average (5.2.5.7).
local stock_level = { name = "stock_level", keying = 2, thinking = 5 }

--- 2.8.1
function stock_level.draw(input) input.threshold = sysbench.rand.uniform(10, 20) end

--- 2.8.2. How many items are low.
function stock_level.by_statements(set, w, d, input)
  session.defer(session.begin_reading)
  local next_order = tonumber((set.district_level:row(w, d)))
  if session.history then session.history.counter(session.counter(input.set, w, d), next_order) end
  local low = set.low_stock:row(w, d, next_order - 20, next_order, w, input.threshold)
  session.commit:execute()
  return low
end

--- 2.8.2: the least number of statements, from BEGIN to COMMIT.
function stock_level.least_statements() return 4 end

--- Executes it as drawn, for the terminal's own district, and counts what it did.
function stock_level.run(input, home, district, number)
  local d = district
  input.low = tonumber((session.by.stock_level(session.sets[input.set], home, d, input)))
  if not input.low then count("levels_without_answer") end
  if input.threshold >= 16 then count("high_thresholds") end
  if input.threshold == 10 then count("least_thresholds") end
  if input.threshold == 20 then count("greatest_thresholds") end
  if d ~= math.floor(number / session.warehouses) % tpcc.DISTRICTS + 1 then count("levels_of_other_districts") end
end

function stock_level.declare_rules(rule)
  rule("2.8.1.1", "stock-level outside home district",
    { part = "levels_of_other_districts", whole = "stock_level", high = 0 })
  rule("2.8.1.2", "stock-level thresholds above 15", { part = "high_thresholds", whole = "stock_level", low = 0.4, high = 0.51 })
  rule("2.8.1.2", "stock-level thresholds of 10", { part = "least_thresholds", whole = "stock_level", low = 0.06, high = 0.125 })
  rule("2.8.1.2", "stock-level thresholds of 20", { part = "greatest_thresholds", whole = "stock_level", low = 0.06, high = 0.125 })
  rule("2.8.2.2", "stock-level without a result", { part = "levels_without_answer", whole = "stock_level", high = 0 })
end

return stock_level
