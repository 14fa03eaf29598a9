--- The statements, transactions and options of the OLTP workloads.
--
--
-- A part of `oltp_common` that all sessions share: what differs between them (`con`, `stmt`, `param`) are their own
-- globals.
--
-- Deliberately missing: preparing statements again after a lost connection, which the driver does.

local _, program = ... -- the built-in workload that runs; nil: a script of the user's, which may change what it finds

local options = {
  tables = { "Number of tables", 1, low = 1, whole = true },
  table_size = { "Number of rows per table", 10000, low = 0, whole = true },
  range_size = { "Rows per range SELECT", 100, low = 0, whole = true },
  point_selects = { "Point SELECTs per transaction", 10, low = 0, whole = true },
  range_selects = { "Execute range SELECTs", true },
  simple_ranges = { "Range SELECTs per transaction", 1, low = 0, whole = true },
  sum_ranges = { "Range SELECTs with SUM() per transaction", 1, low = 0, whole = true },
  order_ranges = { "Range SELECTs with ORDER BY per transaction", 1, low = 0, whole = true },
  distinct_ranges = { "Range SELECTs with DISTINCT per transaction", 1, low = 0, whole = true },
  index_updates = { "UPDATEs of an indexed column per transaction", 1, low = 0, whole = true },
  non_index_updates = { "UPDATEs of a non-indexed column per transaction", 1, low = 0, whole = true },
  delete_inserts = { "DELETE and INSERT pairs of the same id per transaction", 1, low = 0, whole = true },
  skip_trx = { "Skip BEGIN and COMMIT: each statement is its own transaction", false },
  auto_inc = { "Let the database generate ids; otherwise the workload does", true },
  secondary = { "Use a secondary index on id instead of the primary key", false },
  create_secondary = { "Create an index on column k", true },
  create_table_options = { "Text to append to CREATE TABLE", "" },
  mysql_storage_engine = { "Storage engine on MySQL and MariaDB", "innodb" },
  pgsql_variant = { "PostgreSQL variant; `redshift`: no index on k, no delete_inserts" },
  reconnect = { "Reconnect after this many transactions; 0: never", 0, low = 0, whole = true },
  replace = { "Drop existing tables in prepare", false },
}

local rand, defaults = sysbench.rand, {}
for name, option in pairs(options) do defaults[name] = option[2] end

--- A number or text option. A script that replaced the table of options may not have declared it.
local function opt(name)
  local value = sysbench.opt[name]
  if value == nil then return defaults[name] end
  return value
end

-- c is 10 groups of 11 digits, pad 5 groups, joined by dashes.
local formats = { c = ("###########-"):rep(9) .. "###########", pad = ("###########-"):rep(4) .. "###########" }

local oltp = {
  options = options, opt = opt, formats = formats,
  is_redshift = function() return sysbench.opt.pgsql_variant == "redshift" end,
  -- All sessions load each table; and on PostgreSQL its primary key is added after the rows.
  tables_are_shared = true, key_is_late = true,
}

local OF_TRANSACTIONS = {
  "range_size", "point_selects", "range_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges",
  "index_updates", "non_index_updates", "delete_inserts", "skip_trx",
}

--- For a workload that reads only some of the options of transactions: the others are not listed in its help.
function oltp.uses(...)
  local used = {}
  for _, name in ipairs { ... } do used[name] = true end
  for _, name in ipairs(OF_TRANSACTIONS) do options[name].unused = not used[name] end
end

local dialects = {} -- by the name of the driver

--- What the workloads say to this product.
function oltp.dialect_of(driver)
  local name = driver:name()
  local dialect = dialects[name]
  if not dialect then
    local found, module = pcall(assay.share, "oltp_" .. name)
    if not found then
      local missing = tostring(module):match("module '[^']+' not found")
      error(("the OLTP workloads have no dialect for %s: %s"):format(name, missing or module), 0)
    end
    dialect, dialects[name] = module, module
  end
  return dialect
end

local function dialect() return oltp.dialect_of(sysbench.sql.driver()) end

-- Statements ---------------------------------------------------------------------------------------------------------

local kinds_of = {} -- by the definition of a statement: a letter for each of its parameters, as `con:prepare` reads them

local function kinds(definition)
  local known = kinds_of[definition]
  if not known then
    local letters = {}
    for i = 2, #definition do letters[i - 1] = definition[i][1] == sysbench.sql.type.CHAR and "t" or "w" end
    known = table.concat(letters)
    kinds_of[definition] = known
  end
  return known
end

--- Prepares the statements of kind `key`, one per table, as `stmt[n][key]`. They are executed with values. A script of
--- the user's may also set their parameters, which are `param[n][key][i]`.
function prepare_for_each_table(key)
  local definition = dialect().statements[key]
  for n = 1, opt("tables") do
    local text = definition[1]:format(n)
    if program then
      stmt[n][key] = con:prepare(text, kinds(definition))
    else
      local statement, parameters = con:prepare(text), {}
      for i = 2, #definition do
        parameters[i - 1] = statement:bind_create(definition[i][1], definition[i][2])
      end
      statement:bind_param(unpack(parameters))
      -- A statement is also the list of its parameters.
      stmt[n][key], param[n][key] = statement, statement
    end
  end
end

function prepare_begin() stmt.begin = con:prepare(dialect().begin, "") end

--- For transactions that never write.
function prepare_begin_read_only() stmt.begin = con:prepare(dialect().begin_read_only, "") end

function prepare_commit() stmt.commit = con:prepare(dialect().commit, "") end

function prepare_point_selects() prepare_for_each_table("point_selects") end

function prepare_simple_ranges() prepare_for_each_table("simple_ranges") end

function prepare_sum_ranges() prepare_for_each_table("sum_ranges") end

function prepare_order_ranges() prepare_for_each_table("order_ranges") end

function prepare_distinct_ranges() prepare_for_each_table("distinct_ranges") end

function prepare_index_updates() prepare_for_each_table("index_updates") end

function prepare_non_index_updates() prepare_for_each_table("non_index_updates") end

function prepare_delete_inserts()
  prepare_for_each_table("deletes")
  prepare_for_each_table("inserts")
  local is_lost_race = dialect().is_lost_race
  if is_lost_race and sysbench.hooks.sql_error_ignorable == nil then sysbench.hooks.sql_error_ignorable = is_lost_race end
end

local function is_equal(one, other)
  for key, value in pairs(one) do
    local theirs = other[key]
    if theirs ~= value and not (type(value) == "table" and type(theirs) == "table" and type(key) == "number"
      and is_equal(value, theirs)) then return false end
  end
  for key in pairs(other) do
    if one[key] == nil then return false end
  end
  return true
end

local first_statements

--- A list that sessions share which prepared the same statements in the same order: a statement is the same object in
--- all of them.
function oltp.one_of_each(statements)
  first_statements = first_statements or statements
  return is_equal(statements, first_statements) and first_statements or statements
end

--- Without a table or a row to read there is nothing to do: such an option is a mistake.
function oltp.check_sizes(rows_min)
  for _, bound in ipairs { { "tables", 1 }, { "table_size", rows_min } } do
    local name, least = bound[1], bound[2]
    if (tonumber(opt(name)) or least) < least then
      error(("--%s %d: must be at least %d"):format(name:gsub("_", "-"), opt(name), least), 0)
    end
  end
end

function thread_init()
  oltp.check_sizes(1)
  drv = sysbench.sql.driver()
  con = drv:connect()
  if sysbench.tid == 0 then compare_tables(con) end
  stmt, param = {}, not program and {} or nil
  for n = 1, opt("tables") do
    stmt[n] = {}
    if param then param[n] = {} end
  end
  if oltp.is_redshift() then sysbench.opt.delete_inserts = 0 end
  prepare_statements()
  if program then
    stmt = oltp.one_of_each(stmt)
    if opt("reconnect") == 0 then assay.run_straight(stmt) end
  end
end

function close_statements()
  for n = 1, opt("tables") do
    for _, statement in pairs(stmt[n]) do statement:close() end
  end
  if stmt.begin then stmt.begin:close() end
  if stmt.commit then stmt.commit:close() end
end

function thread_done()
  close_statements()
  con:disconnect()
end

--- Called at the end of each transaction.
function check_reconnect()
  local every = opt("reconnect")
  if every > 0 then
    con.transactions = (con.transactions or 0) + 1
    if con.transactions % every == 0 then con:reconnect() end
  end
end

-- Transactions -------------------------------------------------------------------------------------------------------

local function pick_table() return rand.uniform(1, opt("tables")) end

local function pick_id() return rand.default(1, opt("table_size")) end

function begin() stmt.begin:perform() end

function commit() stmt.commit:perform() end

--- `count`: how many, if not the option's value.
function execute_point_selects(count)
  local statement = stmt[pick_table()].point_selects
  for _ = 1, count or opt("point_selects") do statement:perform(pick_id()) end
end

local function execute_ranges(key)
  local statement = stmt[pick_table()][key]
  local length = opt("range_size")
  for _ = 1, opt(key) do
    local id = pick_id()
    statement:perform(id, id + length - 1)
  end
end

function execute_simple_ranges() execute_ranges("simple_ranges") end

function execute_sum_ranges() execute_ranges("sum_ranges") end

function execute_order_ranges() execute_ranges("order_ranges") end

function execute_distinct_ranges() execute_ranges("distinct_ranges") end

function execute_index_updates()
  local statement = stmt[pick_table()].index_updates
  for _ = 1, opt("index_updates") do statement:perform(pick_id()) end
end

function execute_non_index_updates()
  local statement = stmt[pick_table()].non_index_updates
  for _ = 1, opt("non_index_updates") do
    local c = rand.string(formats.c)
    statement:perform(c, pick_id())
  end
end

function execute_delete_inserts()
  local n = pick_table()
  local delete, insert = stmt[n].deletes, stmt[n].inserts
  for _ = 1, opt("delete_inserts") do
    local id = pick_id()
    delete:perform(id)
    insert:perform(id, pick_id(), rand.string(formats.c), rand.string(formats.pad))
  end
end

return oltp
