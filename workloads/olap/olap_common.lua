--- What analytical workloads share: their queries as transactions, and the table that says how many rows were loaded.

local common = {}

function common.connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), driver:name()
end

--- Declares for `assay olap` the queries, where the numbers of rows are, and what else to ask about the tables.
function common.declare(queries, loaded, questions)
  for _, query in ipairs(queries) do assay.query(query) end
  assay.loaded(loaded, questions)
end

--- In `queries()`: the rows of each table, and answers, by name; empty before `assay olap` has looked.
function common.held()
  local held = {}
  for _, one in ipairs(sysbench.opt.loaded or {}) do
    local name, value = one:match("^(.-)=(.*)$")
    held[name] = tonumber(value)
  end
  return held
end

--- The same, asked by a session.
function common.ask(con, loaded, questions)
  local held, found = {}, con:query("SELECT table_name, row_count FROM " .. loaded)
  for _ = 1, found.nrows do
    local row = found:fetch_row()
    held[row[1]] = tonumber(row[2])
  end
  for name, text in pairs(questions or {}) do held[name] = tonumber((con:query_row(text))) end
  return held
end

--- A function that executes one query per call: all of them once, in random order, then all of them again.
function common.stream(con, queries)
  local runs, order, at, run = {}, {}, #queries, nil
  for i, query in ipairs(queries) do
    runs[i] = assay.transaction(query.name, function() con:query(query.text) end)
    order[i] = i
  end
  return function(attempt)
    if not run or not attempt or attempt == 0 then
      if at == #queries then
        for i = #order, 2, -1 do
          local j = sysbench.rand.uniform(1, i)
          order[i], order[j] = order[j], order[i]
        end
        at = 0
      end
      at = at + 1
      run = runs[order[at]]
    end
    run()
  end
end

--- Creates the empty table of the numbers of rows: a load that is killed leaves it empty.
function common.create_loaded(con, product, loaded)
  con:query("CREATE TABLE " .. loaded .. (product == "clickhouse"
    and " (table_name String, row_count Int64) ENGINE = MergeTree ORDER BY table_name"
    or " (table_name VARCHAR(40) NOT NULL PRIMARY KEY, row_count BIGINT NOT NULL)"))
end

--- Deletes all rows of a table.
function common.empty(con, product, name)
  con:query((product == "clickhouse" and "TRUNCATE TABLE " or "DELETE FROM ") .. name)
end

-- ClickHouse has no statistics. Its parts are merged: otherwise they would be merged during the queries.
local ANALYZE = {
  pgsql = "ANALYZE %s", mysql = "ANALYZE TABLE %s", sqlite = "ANALYZE %s", duckdb = "ANALYZE %s",
  clickhouse = "OPTIMIZE TABLE %s FINAL",
}
-- MySQL and MariaDB have no statement for this.
local CHECKPOINT = { pgsql = "CHECKPOINT", sqlite = "PRAGMA wal_checkpoint(TRUNCATE)", duckdb = "CHECKPOINT" }

--- Ends a load: statistics, and what is in memory is written to the files, where the product has a statement for that.
--- Then the numbers of rows: a list of { table, rows }.
function common.finish(con, product, loaded, rows)
  for _, one in ipairs(rows) do con:query(ANALYZE[product]:format(one[1])) end
  local checkpoint = CHECKPOINT[product]
  if checkpoint then
    local ok = pcall(con.query, con, checkpoint)
    if not ok then assay.log("the user may not execute " .. checkpoint .. ": the time of the load does not include it") end
  end
  for _, one in ipairs(rows) do
    con:query(("INSERT INTO %s VALUES ('%s', %.0f)"):format(loaded, one[1], one[2]))
  end
end

--- Whether every table has the rows that were loaded; what differs is logged.
function common.complete(con, loaded)
  local ok, found, tables = true, con:query("SELECT table_name, row_count FROM " .. loaded), {}
  for _ = 1, found.nrows do
    local row = found:fetch_row()
    tables[#tables + 1] = { row[1], row[2] }
  end
  if #tables == 0 then
    assay.log("the load did not finish")
    return false
  end
  for _, one in ipairs(tables) do
    local rows = con:query_row("SELECT COUNT(*) FROM " .. one[1])
    if tonumber(rows) ~= tonumber(one[2]) then
      assay.log(("%s has %s rows, and %s were loaded"):format(one[1], rows, one[2]))
      ok = false
    end
  end
  return ok
end

--- Whether none of these queries counts anything: a list of { what is wrong, query }.
function common.none(con, rules)
  local ok = true
  for _, rule in ipairs(rules) do
    local count = con:query_row(rule[2])
    if tonumber(count) ~= 0 then
      assay.log(("%s: %s"):format(rule[1], count))
      ok = false
    end
  end
  return ok
end

-- Days --------------------------------------------------------------------------------------------------------------

local MONTHS = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

local function is_leap(year) return year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0) end

--- Days of a month.
function common.month_length(year, month) return month == 2 and is_leap(year) and 29 or MONTHS[month] end

--- The number of a day, counted from 1 January of the year 1, which was a Monday.
function common.day_number(year, month, day)
  local before = year - 1
  local number = before * 365 + math.floor(before / 4) - math.floor(before / 100) + math.floor(before / 400)
  for earlier = 1, month - 1 do number = number + common.month_length(year, earlier) end
  return number + day - 1
end

--- Year, month and day of such a number.
function common.date_of(number)
  local year = math.floor(number / 365.2425) + 1
  while common.day_number(year + 1, 1, 1) <= number do year = year + 1 end
  while common.day_number(year, 1, 1) > number do year = year - 1 end
  local rest, month = number - common.day_number(year, 1, 1), 1
  while rest >= common.month_length(year, month) do
    rest = rest - common.month_length(year, month)
    month = month + 1
  end
  return year, month, rest + 1
end

--- `1998-09-02`.
function common.date_text(number) return ("%04d-%02d-%02d"):format(common.date_of(number)) end

--- The first of a month, so many months later: `1994-01-01`.
function common.month_text(year, month, later)
  local all = year * 12 + month - 1 + (later or 0)
  return ("%04d-%02d-01"):format(math.floor(all / 12), all % 12 + 1)
end

return common
