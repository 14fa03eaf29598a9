--- One small statement by itself: rows by a list of keys, a range, a scan, or an update of the same rows.
--
--
-- The recipe `microbenchmarks` combines these steps with those that other workloads already are: point selects, reads
-- and writes in transactions, inserts, updates by key. Each transaction is one statement, without BEGIN and COMMIT.
require("oltp_common")
local oltp = assay.share("oltp_transactions")
local opt, format = oltp.opt, string.format

oltp.uses("range_size")

--- Fewer rows than there are in the table, so that every list and range has its full length.
local function pick(count) return sysbench.rand.default(1, math.max(1, opt("table_size") - count + 1)) end

-- What the placeholders of a statement are: functions that fill `values` and return how many there are.
local values = {}

local function some_keys(count)
  for i = 1, count do values[i] = sysbench.rand.default(1, opt("table_size")) end
  return count
end

local function same_keys(count)
  for i = 1, count do values[i] = math.min(i, opt("table_size")) end
  return count
end

local function both_ends(count)
  values[1] = pick(count)
  values[2] = values[1] + count - 1
  return 2
end

local function start_of_range(count)
  values[1] = pick(count)
  return 1
end

local function nothing() return 0 end

local function one_key()
  values[1] = 1
  return 1
end

--- In the order of `--help`. Text: %d is the number of the table, LIST as many placeholders as there are rows, ROWS
--- their number. In a range of k, which may have gaps, the number of rows is what counts.
local STEPS = {
  { "points-covered-pk", some_keys, "SELECT id FROM sbtest%d WHERE id IN (LIST)" },
  { "points-covered-si", some_keys, "SELECT k FROM sbtest%d WHERE k IN (LIST)" },
  { "points-notcovered-pk", some_keys, "SELECT c FROM sbtest%d WHERE id IN (LIST)" },
  { "points-notcovered-si", some_keys, "SELECT c FROM sbtest%d WHERE k IN (LIST)" },
  { "hot-points", same_keys, "SELECT c FROM sbtest%d WHERE id IN (LIST)" },
  { "range-covered-pk", both_ends, "SELECT id FROM sbtest%d WHERE id BETWEEN ? AND ?" },
  { "range-covered-si", start_of_range, "SELECT k FROM sbtest%d WHERE k >= ? ORDER BY k LIMIT ROWS" },
  { "range-notcovered-pk", both_ends, "SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ?" },
  { "range-notcovered-si", start_of_range, "SELECT c FROM sbtest%d WHERE k >= ? ORDER BY k LIMIT ROWS" },
  { "scan", nothing, "SELECT COUNT(*) FROM sbtest%d WHERE LENGTH(c) < 0" },
  { "count", both_ends, "SELECT COUNT(*) FROM sbtest%d WHERE id BETWEEN ? AND ?" },
  { "update-list", some_keys, "UPDATE sbtest%d SET k=k+1 WHERE id IN (LIST)" },
  { "update-one", one_key, "UPDATE sbtest%d SET k=k+1 WHERE id=?" },
}

local names = {}
for i, step in ipairs(STEPS) do names[i] = step[1] end
sysbench.cmdline.options.step = { "Statement of each transaction", names[1], choices = names }

local statements, fill

function prepare_statements()
  if not oltp.dialect_of(drv).is_sql then error("oltp_microbenchmark is for SQL: its statements have no other text", 0) end
  local rows, chosen = opt("range_size"), nil
  if rows < 1 then error("--range-size is at least 1", 0) end
  for _, step in ipairs(STEPS) do
    if step[1] == sysbench.opt.step then chosen = step end
  end
  fill = chosen[2]
  local text = chosen[3]:gsub("LIST", ("?, "):rep(rows):sub(1, -3)):gsub("ROWS", rows)
  local _, places = text:gsub("%?", "")
  statements = {}
  for n = 1, opt("tables") do statements[n] = con:prepare(format(text, n), ("i"):rep(places)) end
end

function close_statements()
  for _, statement in ipairs(statements) do statement:close() end
end

function event()
  local count = fill(opt("range_size"))
  statements[sysbench.rand.uniform(1, opt("tables"))]:perform(unpack(values, 1, count))
  check_reconnect()
end
