--- Derived from TPC-H: its tables and 22 questions in our own statements; `assay olap tpch_like` times them.
--
--
-- Not TPC-H: the rows follow the specification's rules for the population, but are not those of its own generator, and
-- there are no refresh functions, so results are not comparable with published ones. docs/olap.md has the details.
-- `assay run` executes the queries in random order, in as many sessions as wanted.

local common = assay.share("olap_common")
local words = assay.share("tpch_like_words")
local make_queries = assay.share("tpch_like_queries")
local clickhouse = assay.share("tpch_like_clickhouse")

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  scale = {
    "Scale factor: 1 has 6 million positions of orders, 0.01 sixty thousand; 0: as loaded, or 0.01 for prepare", 0, low = 0,
    high = 1000,
  },
  parameters = { "Parameters of the queries: 0 for the standard ones, or a number from which they are drawn", 0 },
  foreign_key_indexes = { "Create indexes on foreign keys, besides the primary keys", true },
}

local LOADED = "tpch_like_load"
local floor, format, uniform = math.floor, string.format, sysbench.rand.uniform

local TABLES = { "region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem" }

local DEFINITIONS = {
  region = "r_regionkey INTEGER NOT NULL PRIMARY KEY, r_name VARCHAR(25) NOT NULL, r_comment VARCHAR(152)",
  nation = "n_nationkey INTEGER NOT NULL PRIMARY KEY, n_name VARCHAR(25) NOT NULL, n_regionkey INTEGER NOT NULL, "
    .. "n_comment VARCHAR(152)",
  supplier = "s_suppkey INTEGER NOT NULL PRIMARY KEY, s_name VARCHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL, "
    .. "s_nationkey INTEGER NOT NULL, s_phone VARCHAR(15) NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL, "
    .. "s_comment VARCHAR(101) NOT NULL",
  part = "p_partkey INTEGER NOT NULL PRIMARY KEY, p_name VARCHAR(55) NOT NULL, p_mfgr VARCHAR(25) NOT NULL, "
    .. "p_brand VARCHAR(10) NOT NULL, p_type VARCHAR(25) NOT NULL, p_size INTEGER NOT NULL, "
    .. "p_container VARCHAR(10) NOT NULL, p_retailprice DECIMAL(15,2) NOT NULL, p_comment VARCHAR(23) NOT NULL",
  partsupp = "ps_partkey INTEGER NOT NULL, ps_suppkey INTEGER NOT NULL, ps_availqty INTEGER NOT NULL, "
    .. "ps_supplycost DECIMAL(15,2) NOT NULL, ps_comment VARCHAR(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey)",
  customer = "c_custkey INTEGER NOT NULL PRIMARY KEY, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(40) NOT NULL, "
    .. "c_nationkey INTEGER NOT NULL, c_phone VARCHAR(15) NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL, "
    .. "c_mktsegment VARCHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL",
  orders = "o_orderkey BIGINT NOT NULL PRIMARY KEY, o_custkey INTEGER NOT NULL, o_orderstatus VARCHAR(1) NOT NULL, "
    .. "o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL, o_orderpriority VARCHAR(15) NOT NULL, "
    .. "o_clerk VARCHAR(15) NOT NULL, o_shippriority INTEGER NOT NULL, o_comment VARCHAR(79) NOT NULL",
  lineitem = "l_orderkey BIGINT NOT NULL, l_partkey INTEGER NOT NULL, l_suppkey INTEGER NOT NULL, "
    .. "l_linenumber INTEGER NOT NULL, l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL, "
    .. "l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL, l_returnflag VARCHAR(1) NOT NULL, "
    .. "l_linestatus VARCHAR(1) NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL, "
    .. "l_receiptdate DATE NOT NULL, l_shipinstruct VARCHAR(25) NOT NULL, l_shipmode VARCHAR(10) NOT NULL, "
    .. "l_comment VARCHAR(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber)",
}

local FOREIGN_KEYS = {
  { "nation_region", "nation (n_regionkey)" }, { "supplier_nation", "supplier (s_nationkey)" },
  { "partsupp_supplier", "partsupp (ps_suppkey)" }, { "customer_nation", "customer (c_nationkey)" },
  { "orders_customer", "orders (o_custkey)" }, { "lineitem_part", "lineitem (l_partkey, l_suppkey)" },
  { "lineitem_supplier", "lineitem (l_suppkey)" },
}

local function options()
  local opt = sysbench.opt
  if opt.scale ~= 0 and opt.scale < 0.001 then error("--scale is a number from 0.001 to 1000", 0) end
  if opt.parameters < 0 or opt.parameters % 1 ~= 0 then error("--parameters is a whole number from 0 on", 0) end
  return opt
end

--- The names of a table's columns, for a loader.
local function columns_of(name)
  local list = {}
  for column in DEFINITIONS[name]:gmatch("(%l+_%l+) %u") do list[#list + 1] = column end
  return table.concat(list, ", ")
end

-- Rows of the tables at scale 1, but for partsupp, which has four per part, and lineitem: one to seven per order.
local BASE = { supplier = 10000, part = 200000, customer = 150000, orders = 1500000 }

local function rows_of(name, scale) return math.max(1, floor(BASE[name] * scale + 0.5)) end

--- The scale for prepare.
local function scale_to_load() return sysbench.opt.scale ~= 0 and sysbench.opt.scale or 0.01 end

--- The scale of the tables, which an option may only repeat. `held`: their rows; without, it is not known yet.
local function scale_of(held)
  if not held.orders then return scale_to_load() end
  local asked, found = options().scale, held.orders / BASE.orders
  if asked == 0 then return found end
  for name in pairs(BASE) do
    if held[name] ~= rows_of(name, asked) then
      error(format("--scale %g: the tables were loaded at scale %.6g: %s has %.0f rows, not %.0f", asked, found, name,
        held[name] or 0, rows_of(name, asked)), 0)
    end
  end
  return asked
end

--- The queries of a stream, whose parameters are its own unless they are the standard ones.
local function all_queries(product, scale)
  local opt = options()
  return make_queries(scale, opt.parameters == 0 and 0 or opt.parameters + (opt.stream or 0), product)
end

function queries()
  local held = common.held()
  local scale = scale_of(held)
  common.declare(all_queries(sysbench.sql.driver():name(), scale), LOADED)
  assay.scale(scale)
  if held.orders then assay.found("scale", scale) end
end

-- Rows ----------------------------------------------------------------------------------------------------------------

local function any(list) return list[uniform(1, #list)] end

local function text_source()
  local pool = assay.constant("tpch_like pool", words.pool)
  --- A part of a long text.
  return function(low, high)
    local length = uniform(low, high)
    local at = uniform(1, #pool - length)
    return pool:sub(at, at + length - 1)
  end
end

local function phone(nation)
  return format("%d-%03d-%03d-%04d", nation + 10, uniform(100, 999), uniform(100, 999), uniform(1000, 9999))
end

local function cents(low, high) return uniform(low, high) / 100 end

--- The price of a part, in cents.
local function price(part) return 90000 + floor(part / 10) % 20001 + 100 * (part % 1000) end

--- The n-th supplier of a part, from 0 to 3: different ones, spread over all of them.
local function supplier_of(part, n, suppliers)
  local step = floor(suppliers / 4) + floor((part - 1) / suppliers)
  -- With few suppliers, the specification's step would lead to one of them twice.
  if suppliers < 1000 then step = floor((part - 1) / suppliers) % floor(suppliers / 4) + 1 end
  return (part + n * step) % suppliers + 1
end

--- A key whose first 8 of each 32 are used.
local function order_key(number) return floor(number / 8) * 32 + number % 8 + 1 end

local FIRST_DAY, LAST_DAY = common.day_number(1992, 1, 1), common.day_number(1998, 12, 31) - 151
local TODAY = common.day_number(1995, 6, 17)

--- Days as text: many rows share few of them.
local function day_source()
  local known = {}
  return function(number)
    local text = known[number]
    if not text then
      text = common.date_text(number)
      known[number] = text
    end
    return text
  end
end

-- Functions that load the rows of a table from `first` to `last`; each returns how many rows of which tables that was.
local LOAD = {}

function LOAD.supplier(loaders, first, last, all)
  local text = all.text
  -- As many as the specification wants, and at least one of each.
  local special = math.max(1, floor(all.suppliers / 2000))
  local step = floor(all.suppliers / special)
  for key = first, last do
    local nation, comment = uniform(0, 24), text(60, 100)
    local at = key % step
    if at == 1 % step then
      comment = comment:sub(1, 20) .. "Customer " .. comment:sub(1, 10) .. "Complaints"
    elseif at == 2 % step then
      comment = comment:sub(1, 20) .. "Customer " .. comment:sub(1, 10) .. "Recommends"
    end
    loaders.supplier:row(key, format("Supplier#%09d", key), assay.random_text(10, 40), nation, phone(nation),
      cents(-99999, 999999), comment)
  end
  return { supplier = last - first + 1 }
end

function LOAD.part(loaders, first, last, all)
  local text, colors, types, containers = all.text, words.colors, words.types, words.containers
  for key = first, last do
    local names, known = {}, {}
    while #names < 5 do
      local color = any(colors)
      if not known[color] then
        known[color] = true
        names[#names + 1] = color
      end
    end
    local maker = uniform(1, 5)
    loaders.part:row(key, table.concat(names, " "), "Manufacturer#" .. maker, format("Brand#%d%d", maker, uniform(1, 5)),
      any(types[1]) .. " " .. any(types[2]) .. " " .. any(types[3]), uniform(1, 50),
      any(containers[1]) .. " " .. any(containers[2]), price(key) / 100, text(5, 22))
    for n = 0, 3 do
      loaders.partsupp:row(key, supplier_of(key, n, all.suppliers), uniform(1, 9999), cents(100, 100000), text(49, 198))
    end
  end
  return { part = last - first + 1, partsupp = 4 * (last - first + 1) }
end

function LOAD.customer(loaders, first, last, all)
  local text = all.text
  for key = first, last do
    local nation = uniform(0, 24)
    loaders.customer:row(key, format("Customer#%09d", key), assay.random_text(10, 40), nation, phone(nation),
      cents(-99999, 999999), any(words.segments), text(29, 116))
  end
  return { customer = last - first + 1 }
end

function LOAD.orders(loaders, first, last, all)
  local text, day, lines_in_all = all.text, all.day, 0
  local lines = loaders.lineitem
  for number = first, last do
    local key, lines_of, total, finished = order_key(number - 1), uniform(1, 7), 0, 0
    local ordered = uniform(FIRST_DAY, LAST_DAY)
    for line = 1, lines_of do
      local part, quantity = uniform(1, all.parts), uniform(1, 50)
      local discount, tax = uniform(0, 10), uniform(0, 8)
      local whole = quantity * price(part)
      local shipped = ordered + uniform(1, 121)
      local received = shipped + uniform(1, 30)
      local flag = received <= TODAY and (uniform(0, 1) == 0 and "R" or "A") or "N"
      local status = shipped > TODAY and "O" or "F"
      if status == "F" then finished = finished + 1 end
      total = total + whole * (100 + tax) * (100 - discount) / 10000
      lines:row(key, part, supplier_of(part, uniform(0, 3), all.suppliers), line, quantity, whole / 100, discount / 100,
        tax / 100, flag, status, day(shipped), day(ordered + uniform(30, 90)), day(received), any(words.instructions),
        any(words.modes), text(10, 43))
    end
    lines_in_all = lines_in_all + lines_of
    -- A third of the customers have no orders.
    local customer
    repeat customer = uniform(1, all.customers) until customer % 3 ~= 0 or all.customers < 3
    local status = finished == lines_of and "F" or finished == 0 and "O" or "P"
    loaders.orders:row(key, customer, status, floor(total + 0.5) / 100, day(ordered), any(words.priorities),
      format("Clerk#%09d", uniform(1, all.clerks)), 0, text(19, 78))
  end
  return { orders = last - first + 1, lineitem = lines_in_all }
end

local CHUNK = 5000

--- The parts of the work, in an order that does not depend on the sessions: { table, first, last }.
local function chunks(scale)
  local list = {}
  for _, name in ipairs { "supplier", "part", "customer", "orders" } do
    local rows = rows_of(name, scale)
    for first = 1, rows, CHUNK do list[#list + 1] = { name, first, math.min(first + CHUNK - 1, rows) } end
  end
  return list
end

local function load_small(con, text)
  local loader = con:loader("region", columns_of("region"))
  for i, name in ipairs(words.regions) do loader:row(i - 1, name, text(31, 115)) end
  loader:done()
  loader = con:loader("nation", columns_of("nation"))
  for i, nation in ipairs(words.nations) do loader:row(i - 1, nation[1], nation[2] - 1, text(31, 114)) end
  loader:done()
end

local function load()
  local opt = options()
  local scale = scale_to_load()
  local con, product = common.connect()
  if sysbench.tid == 0 then
    for _, name in ipairs(TABLES) do
      con:query(product == "clickhouse" and clickhouse.create(name, DEFINITIONS[name])
        or format("CREATE TABLE %s (%s)", name, DEFINITIONS[name]))
    end
    common.create_loaded(con, product, LOADED)
    con:query("CREATE TABLE tpch_like_parts " .. (product == "clickhouse"
      and "(table_name String, row_count Int64) ENGINE = MergeTree ORDER BY table_name"
      or "(table_name VARCHAR(40) NOT NULL, row_count BIGINT NOT NULL)"))
  end
  assay.barrier()
  -- One session at a time may write to an embedded database.
  if product ~= "sqlite" or sysbench.tid == 0 then
    local all = {
      text = text_source(), day = day_source(), suppliers = rows_of("supplier", scale),
      parts = rows_of("part", scale), customers = rows_of("customer", scale),
      clerks = math.max(1, floor(scale * 1000 + 0.5)),
    }
    if sysbench.tid == 0 then
      assay.seed(opt.rand_seed, "tpch_like", "small")
      load_small(con, all.text)
    end
    local work, counts = chunks(scale), {}
    local loaders = setmetatable({}, { __index = function(known, name)
      known[name] = con:loader(name, columns_of(name))
      return known[name]
    end })
    while true do
      local part = work[assay.claim("chunk of tpch_like") + 1]
      if not part then break end
      local name, first, last = part[1], part[2], part[3]
      assay.expect((last - first + 1) * (name == "orders" and 5 or name == "part" and 5 or 1))
      assay.seed(opt.rand_seed, "tpch_like", name, first)
      for of, rows in pairs(LOAD[name](loaders, first, last, all)) do counts[of] = (counts[of] or 0) + rows end
    end
    for _, name in ipairs(TABLES) do
      if rawget(loaders, name) then loaders[name]:done() end
      if counts[name] then con:query(format("INSERT INTO tpch_like_parts VALUES ('%s', %.0f)", name, counts[name])) end
    end
  end
  assay.barrier()
  if sysbench.tid ~= 0 then return end
  local rows = { { "region", #words.regions }, { "nation", #words.nations } }
  for i = 3, #TABLES do
    local name = TABLES[i]
    local all = con:query_row(format("SELECT SUM(row_count) FROM tpch_like_parts WHERE table_name = '%s'", name))
    rows[i] = { name, tonumber(all) }
  end
  con:query("DROP TABLE tpch_like_parts")
  -- ClickHouse has no such indexes.
  if opt.foreign_key_indexes and product ~= "clickhouse" then
    for _, index in ipairs(FOREIGN_KEYS) do con:query(format("CREATE INDEX %s ON %s", index[1], index[2])) end
  end
  common.finish(con, product, LOADED, rows)
end

sysbench.cmdline.commands = { prepare = { load, sysbench.cmdline.PARALLEL_COMMAND } }

function cleanup()
  local con = common.connect()
  for i = #TABLES, 1, -1 do con:query("DROP TABLE IF EXISTS " .. TABLES[i]) end
  con:query("DROP TABLE IF EXISTS " .. LOADED)
  con:query("DROP TABLE IF EXISTS tpch_like_parts")
end

--- The rows are complete, and keep the rules of the population.
function check()
  local con, product = common.connect()
  local opt = options()
  local ok, held = common.complete(con, LOADED), common.ask(con, LOADED)
  local scale = opt.scale ~= 0 and opt.scale or held.orders and held.orders / BASE.orders or scale_to_load()
  for _, name in ipairs { "supplier", "part", "customer", "orders" } do
    local rows, expected = tonumber((con:query_row("SELECT COUNT(*) FROM " .. name))), rows_of(name, scale)
    if rows ~= expected then
      assay.log(format("%s has %.0f rows, and %.0f at scale %g", name, rows, expected, scale))
      ok = false
    end
  end
  local suppliers = rows_of("supplier", scale)
  local rules = {
    { "positions without an order", "SELECT COUNT(*) FROM lineitem LEFT JOIN orders ON o_orderkey = l_orderkey WHERE o_orderkey IS NULL" },
    { "orders without a position", "SELECT COUNT(*) FROM orders WHERE NOT EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey)" },
    { "positions whose supplier does not have the part", "SELECT COUNT(*) FROM lineitem LEFT JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey WHERE ps_partkey IS NULL" },
    { "orders without a customer", "SELECT COUNT(*) FROM orders LEFT JOIN customer ON c_custkey = o_custkey WHERE c_custkey IS NULL" },
    { "customers who should have no orders", "SELECT COUNT(*) FROM orders WHERE o_custkey % 3 = 0" },
    { "suppliers that do not exist", format("SELECT COUNT(*) FROM partsupp WHERE NOT (ps_suppkey BETWEEN 1 AND %d)", suppliers) },
    { "orders whose price is not that of their positions", "SELECT COUNT(*) FROM orders JOIN (SELECT l_orderkey, SUM(l_extendedprice * (1 + l_tax) * (1 - l_discount)) AS price FROM lineitem GROUP BY l_orderkey) AS positions ON l_orderkey = o_orderkey WHERE ABS(o_totalprice - price) > 0.006" },
    { "positions with a wrong price", "SELECT COUNT(*) FROM lineitem JOIN part ON p_partkey = l_partkey WHERE ABS(l_extendedprice - l_quantity * p_retailprice) > 0.001" },
    { "positions with days in the wrong order", "SELECT COUNT(*) FROM lineitem JOIN orders ON o_orderkey = l_orderkey WHERE l_shipdate <= o_orderdate OR l_receiptdate <= l_shipdate" },
    { "positions with a wrong state", "SELECT COUNT(*) FROM lineitem WHERE (l_shipdate > '1995-06-17') <> (l_linestatus = 'O') OR (l_receiptdate > '1995-06-17') <> (l_returnflag = 'N')" },
    { "orders with a wrong state", "SELECT COUNT(*) FROM orders JOIN (SELECT l_orderkey, COUNT(*) AS positions, SUM(CASE WHEN l_linestatus = 'F' THEN 1 ELSE 0 END) AS finished FROM lineitem GROUP BY l_orderkey) AS states ON l_orderkey = o_orderkey WHERE o_orderstatus <> CASE WHEN finished = positions THEN 'F' WHEN finished = 0 THEN 'O' ELSE 'P' END" },
  }
  if product == "clickhouse" then
    for _, rule in ipairs(rules) do rule[2] = clickhouse.checks[rule[1]] or rule[2] end
  end
  return common.none(con, rules) and ok
end

-- The run -------------------------------------------------------------------------------------------------------------

local next_query

function thread_init()
  local con, product = common.connect()
  local scale = scale_of(common.ask(con, LOADED))
  if sysbench.tid == 0 then assay.found("scale", scale) end
  next_query = common.stream(con, all_queries(product, scale))
end

function event(_, attempt) next_query(attempt) end
