--- Verifies the data of TPC-C: the twelve consistency conditions of clause 3.3.2, contents and row counts of the
--- tables, the effects of transactions since the load, and the answers of those that only read.
--
-- The conditions are in the module that the dialect names (`check_module`), each a statement that returns the rows that
-- violate it; so are the shares: what was drawn at random, as seen in the data. `tpcc_inspection` executes the
-- transactions that read.

local tpcc = require("tpcc_common")

local check = {}

local format = string.format

-- A share is violated if its interval of five standard deviations (Wilson 1927) is outside the allowed range. Even
-- without any tolerance, that happens by chance in one of 1.7 million cases.
local SIGMAS = 5
local ENOUGH = 100 -- fewer rows are not judged: the isolation tests make some that are not drawn at random
local ROOM = 0.2 -- of a share: transactions that fail for good are not in the data, and long orders fail more often

local function interval(part, whole)
  local p, z2 = part / whole, SIGMAS * SIGMAS
  local center, half = p + z2 / (2 * whole), SIGMAS * math.sqrt(p * (1 - p) / whole + z2 / (4 * whole * whole))
  return (center - half) / (1 + z2 / whole), (center + half) / (1 + z2 / whole)
end

--- The shares that a rule allows: a list of { name, part, whole, low, high }, and the number of rows in `found`
--- (number → how often).
local function allowed_shares(share, found, state)
  local whole, list = 0, {}
  for _, times in pairs(found) do whole = whole + times end
  local function allow(name, part, of, low, high)
    list[#list + 1] = { name = name, part = part, whole = of, low = low, high = high }
  end
  local function even(first, last, of)
    local p = 1 / (last - first + 1)
    for number = first, last do allow(number, found[number] or 0, of, (1 - ROOM) * p, (1 + ROOM) * p) end
  end
  if share.even then
    even(share.even[1], share.even[2], whole)
  elseif share.shares then
    for number, bounds in pairs(share.shares) do allow(number, found[number] or 0, whole, bounds[1], bounds[2]) end
  else
    -- The number of warehouses of the runs: data from several such numbers allows no further conclusions.
    local warehouses, others = nil, 0
    for number in pairs(state.runs) do warehouses, others = number, others + 1 end
    local away = whole - (found[0] or 0)
    allow("elsewhere", away, whole, others == 1 and warehouses > 1 and (1 - ROOM) * share.remote or 0, (1 + ROOM) * share.remote)
    if others == 1 and warehouses == state.warehouses and warehouses > 2 and warehouses <= 100 then even(1, warehouses - 1, away) end
  end
  return list, whole
end

local SHOWN = 5 -- offending rows that are shown for each condition

--- Checks one condition; returns false if rows violate it.
local function holds(connection, dialect, set, state, condition)
  local conditions = require(dialect.check_module)
  local result = connection:query(conditions.violations(condition, set, dialect, state, SHOWN + 1))
  local label = tpcc.label(set, condition)
  if result.nrows == 0 then
    assay.log(label .. "holds")
    return true
  end
  local lines, names = { label .. "VIOLATED" .. (result.nrows > SHOWN and ", for example:" or ":") }, conditions.columns(condition)
  for _ = 1, math.min(result.nrows, SHOWN) do
    local row, shown = result:fetch_row(), {}
    for i, name in ipairs(names) do shown[i] = name .. " " .. tostring(row[i]) end
    lines[#lines + 1] = "  " .. table.concat(shown, ", ")
  end
  assay.log(table.concat(lines, "\n"))
  return false
end

--- Checks one share; returns false if it is violated.
local function is_as_drawn(connection, dialect, set, state, share)
  local result, found = connection:query(require(dialect.check_module).statement(share, set, dialect, state)), {}
  for _ = 1, result.nrows do
    local row = result:fetch_row()
    found[tonumber(row[1]) or "NULL"] = tonumber(row[2])
  end
  if share.load then -- all rows of the load have the same
    local loaded = state.warehouses * tpcc.DISTRICTS * state.customers
    found[0] = (found[0] or 0) - loaded
  end
  local label, broken, sure = tpcc.label(set, share), {}, true
  local list, whole = allowed_shares(share, found, state)
  for _, one in ipairs(list) do
    if one.whole >= ENOUGH then
      local low, high = interval(one.part, one.whole)
      if high < one.low or low > one.high then
        broken[#broken + 1] = format("  %s: %.3g %% of %d, allowed %.3g to %.3g %%", one.name, 100 * one.part / one.whole, one.whole,
          100 * one.low, 100 * one.high)
      end
      sure = sure and low >= one.low and high <= one.high
    else
      sure = false
    end
  end
  if #broken == 0 then
    assay.log(label .. "holds" .. (sure and "" or format(" so far, but %d rows are too few to be sure", whole)))
    return true
  end
  assay.log(label .. "VIOLATED:\n" .. table.concat(broken, "\n", 1, math.min(#broken, SHOWN)))
  return false
end

--- Verifies all table sets; prints a line for each condition. False if any is violated. `open_session` prepares the
--- session to execute transactions.
function check.check(open_session)
  local settings = tpcc.settings()
  local connection, dialect = tpcc.connect(settings)
  local right, states = true, {}
  for set = 1, settings.sets do
    states[set] = tpcc.read_state(connection, set)
    if states[set].complete ~= 1 then
      if sysbench.tid == 0 then
        assay.log(format("set %d: its load was interrupted; `prepare` resumes it", set))
      end
      right = false
    end
  end
  local work, conditions = {}, require(dialect.check_module)
  local function add(kind, list)
    for i, one in ipairs(list) do
      work[#work + 1] = { kind = kind, one = one, cost = conditions.cost(one), place = #work }
    end
  end
  add(holds, conditions.conditions)
  add(is_as_drawn, conditions.shares)
  table.sort(work, function(a, b) return a.cost > b.cost or a.cost == b.cost and a.place < b.place end)
  while true do
    local n = assay.claim("conditions")
    local set, next = math.floor(n / #work) + 1, work[n % #work + 1]
    if set > settings.sets then break end
    if states[set].complete == 1 and not next.kind(connection, dialect, set, states[set], next.one) then right = false end
  end
  connection:disconnect()
  -- Last, in one session: transactions need whole tables.
  if not right then assay.claim("broken") end
  assay.barrier()
  if sysbench.tid > 0 then return right end
  if assay.claim("broken") > 0 then
    assay.log("Order-Status and Stock-Level are not tested on broken tables")
    return false
  end
  return require("tpcc_inspection").inspect(open_session)
end

--- Looks for the new orders that were acknowledged before and after a crash; false if any is missing. The keys are
--- sorted: one query reads the orders of a district.
function check.verify()
  local connection, dialect = tpcc.connect(tpcc.settings())
  local question = require(dialect.check_module).question
  local seen, orders, shown, missing = nil, nil, {}, 0
  for set, w, d, o, c in assay.acknowledged() do
    local district = set .. " " .. w .. " " .. d
    if district ~= seen then
      seen, orders = district, {}
      local result = connection:query(question("orders_from", set, w, d, o))
      for _ = 1, result.nrows do
        local row = result:fetch_row()
        orders[tonumber(row[1])] = tonumber(row[2])
      end
    end
    if orders[o] ~= c then
      missing = missing + 1
      if #shown < SHOWN then
        shown[#shown + 1] = format("  set %d, warehouse %d, district %d: order %d of customer %d", set, w, d, o, c)
      end
    end
  end
  connection:disconnect()
  if missing == 0 then return true end
  assay.log(format("%d acknowledged orders are missing, such as\n%s", missing, table.concat(shown, "\n")))
  return false
end

return check
