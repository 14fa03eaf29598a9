--- Insert benchmark: rows with up to three secondary indexes, and queries through them.
--
--
-- Without `--query`, transactions insert `--per-commit` rows and, with `--delete`, remove as many of the oldest. With
-- `--query range` or `point` they read. A second run with `--rate` beside one of queries is the load in the background,
-- which must keep up: docs/insert-benchmark.md lists the steps.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  rows = {
    "Rows that prepare loads, in the order of their keys; 0: as there are, or 100,000 for prepare", 0, low = 0, whole = true,
  },
  indexes = {
    "Secondary indexes that prepare, and the command index, create: 0 to 3", 3, low = 0, high = 3, whole = true,
  },
  key_order = {
    "Keys of new rows: ordered, one after the other, or random", "ordered", choices = { "ordered", "random" },
  },
  per_commit = { "Rows per transaction that inserts", 50, low = 1, whole = true },
  delete = { "Remove as many of the oldest rows as are inserted", false },
  query = { "Read instead of inserting: range or point", "", choices = { "range", "point" } },
  range_rows = { "Rows of a range query", 10, low = 1, whole = true },
  totals = { "Count the rows before and after the run, for the audit; large tables take long", true },
}

local uniform, format = sysbench.rand.uniform, string.format
local COLUMNS = "id, sold_at, register, customer, product, price, data"
local REGISTERS, CUSTOMERS, PRODUCTS, PRICES = 1000, 100000, 10000, 500
local RANDOM_END = 2 ^ 52 -- whole numbers up to here are exact in Lua
local LARGEST = 2 ^ 53

local INDEXES = {
  { name = "insert_benchmark_price", columns = "price, customer" },
  { name = "insert_benchmark_register", columns = "register, price, customer" },
  { name = "insert_benchmark_sold", columns = "price, sold_at, customer" },
}

-- Queries through each index, which has all columns that they need.
local RANGES = {
  "SELECT price, customer FROM insert_benchmark WHERE price >= ? ORDER BY price, customer LIMIT %d",
  "SELECT register, price, customer FROM insert_benchmark WHERE register = ? ORDER BY price, customer LIMIT %d",
  "SELECT price, sold_at, customer FROM insert_benchmark WHERE price = ? ORDER BY sold_at, customer LIMIT %d",
}

local function connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), driver:name()
end

local function options()
  local opt = sysbench.opt
  if opt.delete and opt.key_order == "random" then
    error("--delete removes rows in the order of their keys: it needs --key-order ordered", 0)
  end
  return opt
end

local function create_indexes(con)
  for i = 1, options().indexes do
    con:query(format("CREATE INDEX %s ON insert_benchmark (%s)", INDEXES[i].name, INDEXES[i].columns))
  end
end

--- A row's values: random but for its key and its time.
local function values(id)
  return id, os.time(), uniform(1, REGISTERS), uniform(1, CUSTOMERS), uniform(1, PRODUCTS), uniform(1, PRICES)
end

function prepare()
  local con = connect()
  con:query("CREATE TABLE insert_benchmark (id BIGINT NOT NULL PRIMARY KEY, sold_at BIGINT NOT NULL, register INT NOT NULL, "
    .. "customer INT NOT NULL, product INT NOT NULL, price INT NOT NULL, data VARCHAR(100) NOT NULL)")
  local loader = con:loader("insert_benchmark", COLUMNS)
  local opt = options()
  for id = 1, opt.rows > 0 and opt.rows or 100000 do
    local key, sold_at, register, customer, product, price = values(id)
    loader:row(key, sold_at, register, customer, product, price, assay.random_cell(10, 10))
  end
  loader:done()
  create_indexes(con)
end

function cleanup() connect():query("DROP TABLE IF EXISTS insert_benchmark") end

sysbench.cmdline.commands = { index = { function() create_indexes(connect()) end } }

-- The audit: the table has the rows and keys that transactions reported. A sum of keys that Lua cannot hold is left
-- out.
local function read_totals()
  if not sysbench.opt.totals or sysbench.opt.query ~= "" then return end
  local rows, sum = connect():query_row("SELECT COUNT(*), COALESCE(SUM(id + 0.0), 0) FROM insert_benchmark")
  assay.total("rows", tonumber(rows))
  assay.total("keys", tonumber(sum) < LARGEST and tonumber(sum) or 0)
end

init, done = read_totals, read_totals

local function declare_rules(opt, largest)
  if not opt.totals then return end
  assay.audit { name = "rows in the table", total = "rows", of = "rows_more", most = opt.per_commit }
  -- Random keys, and those of very large tables, have sums that are not exact.
  local is_exact = opt.key_order == "ordered" and (largest + 1e8) ^ 2 / 2 < LARGEST
  if is_exact then
    local most = opt.per_commit * (largest + 1e8)
    assay.audit { name = "sum of the keys in the table", total = "keys", of = "keys_more", most = most }
  end
end

local con, begin, commit, insert, remove, queries, first, last

function thread_init()
  local opt, product = options(), nil
  con, product = connect()
  begin = con:prepare(product == "sqlite" and "BEGIN IMMEDIATE" or "BEGIN", "")
  commit = con:prepare("COMMIT", "")
  local smallest, largest = con:query_row("SELECT COALESCE(MIN(id), 1), COALESCE(MAX(id), 0) FROM insert_benchmark")
  first, last = tonumber(smallest), tonumber(largest)
  -- A table grows by what transactions insert: an option that says less than there is may be right.
  if sysbench.tid == 0 and (opt.rows == 0 or last - first + 1 < opt.rows) then assay.found("rows", last - first + 1) end
  if opt.query ~= "" then
    queries = {}
    if opt.query == "point" then
      queries[1] = con:prepare("SELECT price, customer FROM insert_benchmark WHERE id = ?", "i")
    else
      for i, text in ipairs(RANGES) do queries[i] = con:prepare(format(text, opt.range_rows), "i") end
    end
    return
  end
  insert = con:prepare(format("INSERT INTO insert_benchmark (%s) VALUES %s", COLUMNS,
    string.rep("(?, ?, ?, ?, ?, ?, ?)", opt.per_commit, ", ")), string.rep("iiiiiit", opt.per_commit))
  if opt.delete then remove = con:prepare("DELETE FROM insert_benchmark WHERE id >= ? AND id < ?", "ii") end
  declare_rules(opt, last)
end

--- The values of all rows of a statement, one after the other.
local list = {}
local function row(at, id)
  list[at + 1], list[at + 2], list[at + 3], list[at + 4], list[at + 5], list[at + 6] = values(id)
  list[at + 7] = assay.random_text(10, 10)
end

local write = assay.transaction("write", function()
  local opt = sysbench.opt
  local number, is_ordered = opt.per_commit, opt.key_order == "ordered"
  -- A part of the keys that no other session has.
  local chunk = assay.claim("insert") * number
  local start = last + 1 + chunk
  for i = 0, number - 1 do
    row(i * 7, is_ordered and start + i or uniform(0, 2 ^ 31 - 1) * 2 ^ 21 + uniform(0, 2 ^ 21 - 1))
  end
  begin:perform()
  insert:perform(unpack(list, 1, number * 7))
  if remove then remove:perform(first + chunk, first + chunk + number) end
  commit:perform()
  assay.count("rows_inserted", number)
  if remove then
    assay.count("rows_removed", number)
    assay.count("rows_more", 0)
    assay.count("keys_more", number * (start - first - chunk))
  else
    assay.count("rows_more", number)
    assay.count("keys_more", number * start + number * (number - 1) / 2)
  end
end)

local range = assay.transaction("range", function()
  local at = uniform(1, #queries)
  queries[at]:perform(uniform(1, at == 2 and REGISTERS or PRICES))
end)

local point = assay.transaction("point", function()
  if queries[1]:row(uniform(first, last)) == nil then assay.count("missing_rows") end
end)

function event()
  local query = sysbench.opt.query
  if query == "range" then range() elseif query == "point" then point() else write() end
end

--- Every row has the values that a row may have, and every index leads to all of them.
function check()
  local own = connect()
  local rows = tonumber((own:query_row("SELECT COUNT(*) FROM insert_benchmark")))
  local strange = tonumber((own:query_row(format("SELECT COUNT(*) FROM insert_benchmark WHERE price < 1 OR price > %d "
    .. "OR register < 1 OR register > %d OR customer < 1 OR customer > %d", PRICES, REGISTERS, CUSTOMERS))))
  if strange > 0 then assay.log(strange .. " rows have values that are never written") end
  local by_price = tonumber((own:query_row(format("SELECT COUNT(price) FROM insert_benchmark WHERE price >= 1 AND price <= %d", PRICES))))
  if by_price ~= rows then assay.log(format("%d rows, but %d by price", rows, by_price)) end
  return strange == 0 and by_price == rows
end
