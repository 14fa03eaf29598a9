--- Time series: sensors add readings to the newest day; queries average one sensor's finished day.
--
--
-- `--partitions on` keeps each day in a partition of its own. SQLite has no partitions: there it is a table per day.
-- Days that are over do not change, so each query has a known answer.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  days = { "Days with readings; the last one grows", 10 },
  sensors = { "Number of sensors", 20 },
  per_day = { "Readings of each sensor on a day that is over", 100 },
  batch = { "Readings per insert", 10 },
  inserts = { "Percent of transactions that insert", 80 },
  partitions = { "Keep each day in a partition of its own: on or off", "on" },
}

local uniform = sysbench.rand.uniform
local COLUMNS = "day, sensor, second, value"
local DEFINITION = "(day INT NOT NULL, sensor INT NOT NULL, second INT NOT NULL, value BIGINT NOT NULL)"

local function connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), driver:name()
end

local function is_partitioned()
  local partitions = sysbench.opt.partitions
  if partitions ~= "on" and partitions ~= "off" then error("--partitions is on or off, and not " .. partitions, 0) end
  return partitions == "on"
end

-- The table to use for a day.
local function table_of(product, day)
  return product == "sqlite" and is_partitioned() and "time_series_" .. day or "time_series"
end

local function create(con, product)
  local days, parts = sysbench.opt.days, {}
  if not is_partitioned() then
    con:query("CREATE TABLE time_series " .. DEFINITION)
  elseif product == "pgsql" then
    con:query("CREATE TABLE time_series " .. DEFINITION .. " PARTITION BY RANGE (day)")
    for day = 1, days do
      con:query(("CREATE TABLE time_series_%d PARTITION OF time_series FOR VALUES FROM (%d) TO (%d)"):format(day, day, day + 1))
    end
  elseif product == "mysql" then
    for day = 1, days do parts[day] = ("PARTITION p%d VALUES LESS THAN (%d)"):format(day, day + 1) end
    con:query(("CREATE TABLE time_series %s PARTITION BY RANGE (day) (%s)"):format(DEFINITION, table.concat(parts, ", ")))
  else
    for day = 1, days do con:query(("CREATE TABLE time_series_%d %s"):format(day, DEFINITION)) end
  end
end

-- The value of a reading, so that the sum of a day is known.
local function value_of(sensor, second) return sensor * 1000 + second % 10 end

function prepare()
  local con, product = connect()
  create(con, product)
  local opt = sysbench.opt
  for day = 1, opt.days - 1 do
    local loader = con:loader(table_of(product, day), COLUMNS)
    for second = 1, opt.per_day do
      for sensor = 1, opt.sensors do loader:row(day, sensor, second, value_of(sensor, second)) end
    end
    loader:done()
  end
  local seen = {}
  for day = 1, opt.days do
    local name = table_of(product, day)
    if not seen[name] then con:query(("CREATE INDEX %s_sensor ON %s (sensor, day, second)"):format(name, name)) end
    seen[name] = true
  end
end

function cleanup()
  local con, product = connect()
  con:query("DROP TABLE IF EXISTS time_series")
  if product == "sqlite" then
    for day = 1, sysbench.opt.days do con:query("DROP TABLE IF EXISTS time_series_" .. day) end
  end
end

local function read_totals()
  local con, product = connect()
  local newest = table_of(product, sysbench.opt.days)
  local rows, sum = con:query_row(
    ("SELECT COUNT(*), COALESCE(SUM(value), 0) FROM %s WHERE day = %d"):format(newest, sysbench.opt.days))
  assay.total("readings", tonumber(rows))
  assay.total("sum_of_values", tonumber(sum))
  con:close()
end

init, done = read_totals, read_totals

local con, product, insert, averages, first

function thread_init()
  con, product = connect()
  local opt, cells = sysbench.opt, {}
  -- Time goes on where an earlier run has ended.
  first = tonumber((con:query_row(
    ("SELECT COALESCE(MAX(second) + 1, 0) FROM %s WHERE day = %d"):format(table_of(product, opt.days), opt.days))))
  for i = 1, opt.batch do cells[i] = "(?, ?, ?, ?)" end
  insert = con:prepare(
    ("INSERT INTO %s (%s) VALUES %s"):format(table_of(product, opt.days), COLUMNS, table.concat(cells, ", ")),
    ("iiii"):rep(opt.batch))
  averages = {}
  assay.audit { name = "readings in the table", total = "readings", of = "readings", most = opt.batch }
  assay.audit { name = "sum of the values in the table", total = "sum_of_values", of = "value", most = opt.batch * opt.sensors * 1010 }
  assay.audit { name = "wrong averages", part = "wrong_averages", whole = "average", high = 0 }
end

local add = assay.transaction("insert", function()
  local opt, values, sum, now = sysbench.opt, {}, 0, first + assay.claim("time_series")
  for i = 0, opt.batch - 1 do
    local sensor = uniform(1, opt.sensors)
    local value = value_of(sensor, now)
    values[4 * i + 1], values[4 * i + 2], values[4 * i + 3], values[4 * i + 4] = opt.days, sensor, now, value
    sum = sum + value
  end
  insert:perform(unpack(values))
  assay.count("readings", opt.batch)
  assay.count("value", sum)
end)

local average = assay.transaction("average", function()
  local opt = sysbench.opt
  local day, sensor = uniform(1, opt.days - 1), uniform(1, opt.sensors)
  local name = table_of(product, day)
  if not averages[name] then
    averages[name] = con:prepare(
      ("SELECT COUNT(*), COALESCE(SUM(value), 0) FROM %s WHERE sensor = ? AND day = ?"):format(name), "ii")
  end
  local count, sum = averages[name]:row(sensor, day)
  local expected = 0
  for second = 1, opt.per_day do expected = expected + value_of(sensor, second) end
  local is_right = tonumber(count) == opt.per_day and tonumber(sum) == expected
  assay.count("wrong_averages", is_right and 0 or 1)
end)

function event()
  if sysbench.opt.days < 2 then error("--days is at least 2: the last day grows, the others are queried", 0) end
  if uniform(1, 100) <= sysbench.opt.inserts then add() else average() end
end

--- The days that are over have all their readings.
function check()
  local con, product = connect()
  local opt = sysbench.opt
  for day = 1, opt.days - 1 do
    local rows = con:query_row(("SELECT COUNT(*) FROM %s WHERE day = %d"):format(table_of(product, day), day))
    if tonumber(rows) ~= opt.sensors * opt.per_day then
      assay.log(("day %d has %s readings instead of %d"):format(day, rows, opt.sensors * opt.per_day))
      return false
    end
  end
  return true
end
