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
    tpcc.tell_held(label .. "holds")
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

--- Judges one share, given how often each number was found; returns false if it is violated.
function check.judge_share(set, state, share, found)
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
    tpcc.tell_held(label .. "holds" .. (sure and "" or format(" so far, but %d rows are too few to be sure", whole)))
    return true
  end
  assay.log(label .. "VIOLATED:\n" .. table.concat(broken, "\n", 1, math.min(#broken, SHOWN)))
  return false
end

--- Checks one share; returns false if it is violated.
local function is_as_drawn(connection, dialect, set, state, share)
  local result, found = connection:query(require(dialect.check_module).statement(share, set, dialect, state)), {}
  for _ = 1, result.nrows do
    local row = result:fetch_row()
    found[tonumber(row[1]) or "NULL"] = tonumber(row[2])
  end
  return check.judge_share(set, state, share, found)
end

--- Whether the keys and indexes of the load are there, by their columns: a key may have another name, or an index more
--- columns.
local function has_its_indexes(connection, dialect, set, state, one)
  local wanted, names, found, missing = dialect:wanted_indexes(set), {}, {}, {}
  for i, index in ipairs(wanted) do names[i] = "'" .. index[1] .. "'" end
  local result = connection:query((dialect.all_indexes:gsub("%%s", table.concat(names, ", "))))
  for i = 1, result.nrows do
    local row = result:fetch_row()
    found[i] = { row[1], (row[2] or "") .. ",", tonumber(row[3]) == 1 }
  end
  for _, index in ipairs(wanted) do
    local is_there = false
    for _, other in ipairs(found) do
      local columns = index[2] .. ","
      local fits = index[3] and other[3] and other[2] == columns or not index[3] and other[2]:sub(1, #columns) == columns
      is_there = is_there or other[1] == index[1] and fits
    end
    if not is_there then
      missing[#missing + 1] = format("  %s has no %s (%s)", index[1], index[3] and "unique key" or "index", index[2]:gsub(",", ", "))
    end
  end
  for _, key in ipairs(state.foreign_keys == 1 and dialect:foreign_keys(set) or {}) do
    if tonumber((connection:query_row(key.exists))) == 0 then missing[#missing + 1] = "  missing: " .. key.text:match("CONSTRAINT.*") end
  end
  return tpcc.tell_condition(set, one, missing, SHOWN)
end

--- Executes one of the tests of `tpcc_population`.
local function is_populated(connection, dialect, set, state, one)
  local test = require("tpcc_population").tests(state, tpcc.settings().sets)[one.number]
  return test.test(connection, dialect, set, state, test)
end

--- The same for the tests of `tpcc_rows`.
local function are_random(connection, dialect, set, state, one)
  return require("tpcc_rows").are_random(connection, dialect, set, state, one.number, tpcc.settings().sets)
end

--- Between which dates transactions can have been executed, into `state`: two days are for clocks and time zones, as
--- the load's dates are the client's, in UTC. Any date if the clocks of client and server differ by more than that.
local function read_dates(connection, dialect, set, state)
  local text = require(dialect.check_module).dates:gsub("<now>", dialect.now)
  local now, loaded = connection:query_row(dialect.of_set(text, set))
  local function seconds(text)
    local year, month, day, hour, minute = tostring(text):match("^(%d%d%d%d)-(%d%d)-(%d%d)[ T](%d%d):(%d%d)")
    return year and os.time { year = year, month = month, day = day, hour = hour, min = minute }
  end
  state.earliest, state.latest = "0001-01-01 00:00:00", "9999-12-31 00:00:00"
  local server, load, client = seconds(now), seconds(loaded), os.time()
  local most = 2 * 86400
  if server and load and math.abs(server - client) < most then
    state.earliest = os.date("%Y-%m-%d %H:%M:%S", load - most)
    state.latest = os.date("%Y-%m-%d %H:%M:%S", math.max(server, client, load) + most)
  end
end

local KEYS = { "1.3", "tables have their keys and indexes" }
check.KEYS = KEYS

local ON_BROKEN = "Order-Status and Stock-Level are not tested on broken tables"

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
    elseif not dialect.documents then
      read_dates(connection, dialect, set, states[set])
    end
  end
  local conditions = require(dialect.check_module)
  if dialect.documents then -- one session reads them all
    if sysbench.tid > 0 then return true end
    for set = 1, settings.sets do
      if states[set].complete == 1 and not conditions.check(connection, dialect, set, states[set], settings.sets) then right = false end
    end
    connection:disconnect()
    sysbench.opt.skip_trx = true -- the server may have no transactions, and nobody else is there
    if right then return require("tpcc_inspection").inspect(open_session) end
    assay.log(ON_BROKEN)
    return false
  end
  local work = {}
  local function add(kind, list)
    for i, one in ipairs(list) do
      work[#work + 1] = { kind = kind, one = one, cost = one.cost or conditions.cost(one), place = #work }
    end
  end
  add(holds, conditions.conditions)
  add(is_as_drawn, conditions.shares)
  add(has_its_indexes, { KEYS })
  local tests = {}
  for number = 1, require("tpcc_population").NUMBER do tests[number] = { number = number, cost = 2 } end
  add(is_populated, tests)
  tests = {}
  for number = 1, require("tpcc_rows").NUMBER do tests[number] = { number = number, cost = 2 } end
  add(are_random, tests)
  table.sort(work, function(a, b) return a.cost > b.cost or a.cost == b.cost and a.place < b.place end)
  while true do
    local n = assay.claim("conditions")
    local set, next = math.floor(n / #work) + 1, work[n % #work + 1]
    if set > settings.sets then break end
    if states[set].complete == 1 and not next.kind(connection, dialect, set, states[set], next.one) then right = false end
  end
  if sysbench.opt.thorough and not require("tpcc_thorough").compare(connection, states) then right = false end
  connection:disconnect()
  -- Last, in one session: transactions need whole tables.
  if not right then assay.claim("broken") end
  assay.barrier()
  if sysbench.tid > 0 then return right end
  if assay.claim("broken") > 0 then
    assay.log(ON_BROKEN)
    return false
  end
  return require("tpcc_inspection").inspect(open_session)
end

return check
