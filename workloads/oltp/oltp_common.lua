--- The tables, statements and transactions that the OLTP workloads share.
--
-- A workload requires this module, says in `prepare_statements()` what it will execute and in `event()` what one
-- transaction is. Tables, options, defaults and statements are those of sysbench 1.0 and of its development branch, so
-- that results can be compared and scripts written for either run here: each function below that is not `local` is a
-- global that a script may replace, and it is looked up when it is called.
--
-- Left out on purpose: preparing statements anew after a lost connection, which the driver does by itself.

if assay.as_sysbench and sysbench.cmdline.command == nil then
  error("Command is required. Supported commands: prepare, prewarm, run, cleanup, help")
end

-- Tables that are the same in all sessions and that nobody changes are made once: there may be thousands of sessions.
local options = assay.constant("options of oltp_common", function()
  return {
    tables = { "Number of tables", 1 },
    table_size = { "Number of rows per table", 10000 },
    range_size = { "Number of rows of a range SELECT", 100 },
    point_selects = { "Point SELECTs per transaction", 10 },
    range_selects = { "Execute range SELECTs at all", true },
    simple_ranges = { "Range SELECTs per transaction", 1 },
    sum_ranges = { "Range SELECTs with SUM() per transaction", 1 },
    order_ranges = { "Range SELECTs with ORDER BY per transaction", 1 },
    distinct_ranges = { "Range SELECTs with DISTINCT per transaction", 1 },
    index_updates = { "UPDATEs of the indexed column per transaction", 1 },
    non_index_updates = { "UPDATEs of a column without index per transaction", 1 },
    delete_inserts = { "Pairs of DELETE and INSERT of the same id per transaction", 1 },
    skip_trx = { "Leave out BEGIN and COMMIT: each statement is a transaction", false },
    auto_inc = { "Let the database number new rows; otherwise the workload does", true },
    secondary = { "Index id with a secondary index instead of the primary key", false },
    create_secondary = { "Create an index on column k", true },
    create_table_options = { "Text to append to CREATE TABLE", "" },
    mysql_storage_engine = { "Storage engine on MySQL and MariaDB", "innodb" },
    pgsql_variant = { "Kind of PostgreSQL; `redshift`: without index on k and delete_inserts" },
    reconnect = { "Connect anew after so many transactions; 0: never", 0 },
    replace = { "Let prepare drop tables that exist already", false },
  }
end)
sysbench.cmdline.options = options

local defaults = assay.constant("defaults of oltp_common", function()
  local values = {}
  for name, option in pairs(options) do values[name] = option[2] end
  return values
end)

--- A number or text option. A script that replaced the table of options need not have declared it.
local function opt(name)
  local value = sysbench.opt[name]
  if value == nil then return defaults[name] end
  return value
end

-- Functions and not values: a script may replace the global after this file was loaded.
local PARALLEL = sysbench.cmdline.PARALLEL_COMMAND
sysbench.cmdline.commands = {
  prepare = { function() return cmd_prepare() end, PARALLEL },
  warmup = { function() return cmd_warmup() end, PARALLEL },
  prewarm = { function() return cmd_prewarm() end, PARALLEL },
  check = { function() return cmd_check() end, PARALLEL },
  -- In sysbench it is a plain function, which runs once.
  cleanup = not assay.as_sysbench and { function() return cmd_cleanup() end, PARALLEL } or nil,
}

-- Dialects -----------------------------------------------------------------------------------------------------------

-- c is 10 groups of 11 digits, pad 5 groups, joined by dashes.
local C_FORMAT = ("###########-"):rep(9) .. "###########"
local PAD_FORMAT = ("###########-"):rep(4) .. "###########"

local function groups_regex(groups) return "'^([0-9]{11}-){" .. groups - 1 .. "}[0-9]{11}$'" end
local function groups_glob(groups) return "'" .. (("[0-9]"):rep(11) .. "-"):rep(groups):sub(1, -2) .. "'" end

-- `tables`, `index`: which of the named ones exist. `has_groups`: whether a column has the form above.
local dialects = assay.constant("dialects of oltp_common", function()
  return {
    mysql = {
      begin = "BEGIN",
      analyze = "ANALYZE TABLE %s",
      tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN (%s)",
      index = "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE()"
        .. " AND table_name = '%s' AND index_name = '%s'",
      has_groups = function(column, groups) return column .. " REGEXP " .. groups_regex(groups) end,
    },
    pgsql = {
      begin = "BEGIN",
      analyze = "ANALYZE %s",
      tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        .. " AND table_name IN (%s)",
      index = "SELECT COUNT(*) FROM pg_indexes WHERE schemaname = current_schema()"
        .. " AND tablename = '%s' AND indexname = '%s'",
      has_groups = function(column, groups) return column .. "::text ~ " .. groups_regex(groups) end,
    },
    sqlite = {
      -- A plain BEGIN takes the write lock at the first write. When that comes after a read, and another session has
      -- written in between, SQLite can only refuse: the transaction would start over, again and again under load.
      begin = "BEGIN IMMEDIATE",
      analyze = "ANALYZE %s",
      tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN (%s)",
      index = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND tbl_name = '%s' AND name = '%s'",
      has_groups = function(column, groups) return column .. " GLOB " .. groups_glob(groups) end,
      -- One session at a time can write, so one session does what changes the schema or loads it.
      one_writer = true,
    },
  }
end)

local function dialect_of(driver)
  return dialects[driver:name()] or error("the OLTP workloads do not know the SQL of " .. driver:name(), 0)
end

local function is_redshift() return sysbench.opt.pgsql_variant == "redshift" end

-- Tables -------------------------------------------------------------------------------------------------------------

local function table_name(n) return "sbtest" .. n end

--- What sysbench's users see of prepare and cleanup; others watch the rows.
local function tell(text, ...)
  if assay.as_sysbench then print(text:format(...)) end
end

function get_c_value() return sysbench.rand.string(C_FORMAT) end

function get_pad_value() return sysbench.rand.string(PAD_FORMAT) end

-- The same texts for a loader, unless a script has its own.
local C_CELL, PAD_CELL = assay.random_cell(C_FORMAT), assay.random_cell(PAD_FORMAT)
local own_c_value, own_pad_value = get_c_value, get_pad_value

local function create_empty_table(driver, connection, n)
  local kind, id, key, ending = driver:name(), "INTEGER NOT NULL", ",\n  PRIMARY KEY (id)", ""
  if kind == "mysql" then
    if sysbench.opt.auto_inc then id = "INTEGER NOT NULL AUTO_INCREMENT" end
    ending = "/*! ENGINE = " .. opt("mysql_storage_engine") .. " */"
  elseif kind == "pgsql" and sysbench.opt.auto_inc then
    id = is_redshift() and "INTEGER IDENTITY(1, 1)" or "SERIAL"
  end
  if sysbench.opt.secondary then key = kind == "mysql" and ",\n  KEY xid (id)" or "" end
  connection:query(([[
CREATE TABLE %s(
  id %s,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL%s
) %s %s]]):format(table_name(n), id, key, ending, opt("create_table_options")))
end

local function append_row(loader, id, size)
  local c = get_c_value == own_c_value and C_CELL or get_c_value()
  local pad = get_pad_value == own_pad_value and PAD_CELL or get_pad_value()
  loader:row(id, sysbench.rand.default(1, size), c, pad)
end

local function row_loader(connection, n) return connection:loader(table_name(n), "id,k,c,pad") end

--- Everything a table gets once its rows are there.
local function finish_table(driver, connection, n)
  local name, kind = table_name(n), driver:name()
  if is_redshift() then return end
  if kind == "pgsql" and sysbench.opt.auto_inc and opt("table_size") > 0 then
    connection:query(("SELECT setval(pg_get_serial_sequence('%s', 'id'), %d)"):format(name, opt("table_size")))
  end
  if sysbench.opt.secondary and kind ~= "mysql" then
    connection:query(("CREATE INDEX xid_%d ON %s(id)"):format(n, name))
  end
  if sysbench.opt.create_secondary then
    tell("Creating a secondary index on '%s'...", name)
    connection:query(("CREATE INDEX k_%d ON %s(k)"):format(n, name))
  end
  connection:query(dialect_of(driver).analyze:format(name))
end

--- Creates, fills and indexes table `n`, all of it in this session.
function create_table(driver, connection, n)
  tell("Creating table '%s'...", table_name(n))
  create_empty_table(driver, connection, n)
  local size = opt("table_size")
  if size > 0 then tell("Inserting %d records into '%s'", size, table_name(n)) end
  if is_redshift() then -- numbers its rows itself, and knows no COPY from a client
    connection:bulk_insert_init("INSERT INTO " .. table_name(n) .. "(k, c, pad) VALUES")
    for _ = 1, size do
      connection:bulk_insert_next(("(%d, '%s', '%s')"):format(sysbench.rand.default(1, size), get_c_value(),
        get_pad_value()))
    end
    connection:bulk_insert_done()
  else
    local loader = row_loader(connection, n)
    for id = 1, size do append_row(loader, id, size) end
    loader:done()
  end
  finish_table(driver, connection, n)
end
local own_create_table = create_table

--- Calls `work(n)` for the tables 1 to `tables`, each in one session, whichever comes first.
local function share_tables(counter, work)
  while true do
    local n = assay.claim(counter) + 1
    if n > opt("tables") then return end
    work(n)
  end
end

--- Which of the tables exist: name → true.
local function existing_tables(driver, connection)
  local names, found = {}, {}
  for n = 1, opt("tables") do names[n] = "'" .. table_name(n) .. "'" end
  local result = connection:query(dialect_of(driver).tables:format(table.concat(names, ", ")))
  for _ = 1, result.nrows do found[result:fetch_row()[1]] = true end
  return found
end

-- Rows a session claims at a time. Small enough that sessions end together, large enough to be appended in order.
local CHUNK = 50000

--- Loads chunks of table `n` until no session has any left to claim.
local function load_chunks(connection, n)
  local size, counter, loader = opt("table_size"), "rows of " .. table_name(n), nil
  while true do
    local done = assay.claim(counter) * CHUNK
    if done >= size then break end
    loader = loader or row_loader(connection, n)
    for id = done + 1, math.min(done + CHUNK, size) do append_row(loader, id, size) end
  end
  if loader then loader:done() end
end

--- Creates and fills all tables; all sessions work on all of them.
function cmd_prepare()
  local driver = sysbench.sql.driver()
  local connection = driver:connect()
  local tables, threads = opt("tables"), sysbench.opt.threads
  if dialect_of(driver).one_writer then
    if sysbench.tid ~= 0 then return end
    threads = 1
  end
  if create_table ~= own_create_table or is_redshift() or assay.as_sysbench then
    for n = sysbench.tid + 1, tables, threads do create_table(driver, connection, n) end
    return
  end

  -- Every session looks before any of them creates, so that all refuse or none.
  local existing = sysbench.opt.replace and {} or existing_tables(driver, connection)
  for n = 1, tables do
    if existing[table_name(n)] then
      error(("table %s exists already and nothing was changed; remove the tables with `cleanup`, "
        .. "or let prepare do it with --replace"):format(table_name(n)), 0)
    end
  end
  assay.barrier()

  if assay.claim("announce") == 0 then assay.expect(tables * opt("table_size")) end
  share_tables("create", function(n)
    if sysbench.opt.replace then connection:query("DROP TABLE IF EXISTS " .. table_name(n)) end
    create_empty_table(driver, connection, n)
  end)
  assay.barrier()

  -- Sessions start at tables far apart and help each other at the end: appending to one table from two sessions is
  -- slower than to two (on InnoDB the second waits for the first one's AUTO-INC lock).
  local start = dialect_of(driver).one_writer and 0 or math.floor(sysbench.tid * tables / threads)
  for i = 0, tables - 1 do load_chunks(connection, (start + i) % tables + 1) end
  assay.barrier()

  share_tables("finish", function(n) finish_table(driver, connection, n) end)
  connection:disconnect()
end

--- Drops the tables that exist.
function cleanup()
  local driver = sysbench.sql.driver()
  if dialect_of(driver).one_writer and sysbench.tid ~= 0 then return end
  local connection = driver:connect()
  share_tables("drop", function(n)
    tell("Dropping table '%s'...", table_name(n))
    connection:query("DROP TABLE IF EXISTS " .. table_name(n))
  end)
  connection:disconnect()
end
local own_cleanup = cleanup

--- Runs `cleanup` in all sessions; one that a script put in its place expects to be called once.
function cmd_cleanup()
  if cleanup == own_cleanup or sysbench.tid == 0 then return cleanup() end
end

--- Reads tables and indexes into the buffer pool.
function cmd_warmup()
  local driver = sysbench.sql.driver()
  if driver:name() ~= "mysql" then
    if assay.as_sysbench then error("prewarm is currently MySQL only") end
    error("warmup exists for MySQL and MariaDB only; let a run warm the caches with --warmup", 0)
  end
  local connection = driver:connect()
  connection:query("SET tmp_table_size = 2 * 1024 * 1024 * 1024")
  connection:query("SET max_heap_table_size = 2 * 1024 * 1024 * 1024")
  share_tables("warm up", function(n)
    local name, size = table_name(n), opt("table_size")
    tell("Prewarming table %s", name)
    connection:query("ANALYZE TABLE " .. name)
    connection:query(("SELECT AVG(id) FROM (SELECT * FROM %s FORCE KEY (PRIMARY) LIMIT %d) t"):format(name, size))
    connection:query(("SELECT COUNT(*) FROM (SELECT * FROM %s WHERE k LIKE '%%0%%' LIMIT %d) t"):format(name, size))
  end)
  connection:disconnect()
end

function cmd_prewarm() return cmd_warmup() end

-- Check --------------------------------------------------------------------------------------------------------------

--- What a table may hold after any number of transactions: least and most rows, least and greatest id.
function expected_rows()
  local size = opt("table_size")
  return size, size, 1, size
end

--- Compares table `n` with what it should be; tells each difference to `found(what, expected, actual)`.
local function check_table(driver, connection, n, found)
  local dialect, name = dialect_of(driver), table_name(n)
  local function wrong_unless(condition) return ("SUM(CASE WHEN %s THEN 0 ELSE 1 END)"):format(condition) end
  local rows, id_low, id_high, c, pad, k = connection:query_row(("SELECT COUNT(*), MIN(id), MAX(id), %s, %s, %s FROM %s"):format(
    wrong_unless(dialect.has_groups("c", 10)), wrong_unless(dialect.has_groups("pad", 5)), wrong_unless("k >= 1"), name))
  local rows_min, rows_max, id_min, id_max = expected_rows()
  local function check(what, value, low, high)
    value = tonumber(value)
    if not value or (value >= low and value <= high) then return end -- nil: there are no rows
    local expected = low == high and ("%d"):format(low)
      or high == math.huge and ("at least %d"):format(low)
      or ("%d to %d"):format(low, high)
    found(what, expected, ("%d"):format(value))
  end
  check("rows", rows, rows_min, rows_max)
  check("smallest id", id_low, id_min, id_max)
  check("greatest id", id_high, id_min, id_max)
  check("rows whose c is not 10 groups of 11 digits", c, 0, 0)
  check("rows whose pad is not 5 groups of 11 digits", pad, 0, 0)
  check("rows whose k is below 1", k, 0, 0)
  if sysbench.opt.secondary then
    check("ids that occur twice", connection:query_row("SELECT COUNT(*) - COUNT(DISTINCT id) FROM " .. name), 0, 0)
  end
  if sysbench.opt.create_secondary and not is_redshift() then
    local index = "k_" .. n
    local exists = connection:query_row(dialect.index:format(name, index))
    if tonumber(exists) == 0 then found("index", index, "none") end
  end
  return rows
end

--- Verifies all tables; says what it found, a line for each difference. False when there is any.
function cmd_check()
  local driver = sysbench.sql.driver()
  local connection = driver:connect()
  local existing, right = existing_tables(driver, connection), true
  share_tables("check", function(n)
    local name, right_here = table_name(n), true
    local function found(what, expected, actual)
      right_here = false
      assay.log(("table %s: %s: expected %s, found %s"):format(name, what, expected, actual))
    end
    if existing[name] then
      local rows = check_table(driver, connection, n, found)
      if right_here then assay.log(("table %s: %d rows, as expected"):format(name, rows)) end
    else
      found("table", name, "none")
    end
    right = right and right_here
  end)
  connection:disconnect()
  return right
end

-- Statements ---------------------------------------------------------------------------------------------------------

-- Kind of statement → its text, with %d for the number of the table, and the types of its parameters.
local statements = assay.constant("statements of oltp_common", function()
  local INT = { sysbench.sql.type.INT }
  local C, PAD = { sysbench.sql.type.CHAR, 120 }, { sysbench.sql.type.CHAR, 60 }
  return {
    point_selects = { "SELECT c FROM sbtest%d WHERE id=?", INT },
    simple_ranges = { "SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ?", INT, INT },
    sum_ranges = { "SELECT SUM(k) FROM sbtest%d WHERE id BETWEEN ? AND ?", INT, INT },
    order_ranges = { "SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT },
    distinct_ranges = { "SELECT DISTINCT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT },
    index_updates = { "UPDATE sbtest%d SET k=k+1 WHERE id=?", INT },
    non_index_updates = { "UPDATE sbtest%d SET c=? WHERE id=?", C, INT },
    deletes = { "DELETE FROM sbtest%d WHERE id=?", INT },
    inserts = { "INSERT INTO sbtest%d (id, k, c, pad) VALUES (?, ?, ?, ?)", INT, INT, C, PAD },
  }
end)

--- Prepares the statements of kind `key`, one per table, as `stmt[n][key]`; their parameters are `param[n][key][i]`.
function prepare_for_each_table(key)
  local definition = statements[key]
  for n = 1, opt("tables") do
    local statement, parameters = con:prepare(definition[1]:format(n)), {}
    for i = 2, #definition do
      parameters[i - 1] = statement:bind_create(definition[i][1], definition[i][2])
    end
    statement:bind_param(unpack(parameters))
    -- A statement is a list of its parameters too.
    stmt[n][key], param[n][key] = statement, statement
  end
end

function prepare_begin() stmt.begin = con:prepare(dialect_of(drv).begin) end

--- For transactions that never write: on SQLite they need not queue up for the write lock.
function prepare_begin_read_only() stmt.begin = con:prepare("BEGIN") end

function prepare_commit() stmt.commit = con:prepare("COMMIT") end

function prepare_point_selects() prepare_for_each_table("point_selects") end

function prepare_simple_ranges() prepare_for_each_table("simple_ranges") end

function prepare_sum_ranges() prepare_for_each_table("sum_ranges") end

function prepare_order_ranges() prepare_for_each_table("order_ranges") end

function prepare_distinct_ranges() prepare_for_each_table("distinct_ranges") end

function prepare_index_updates() prepare_for_each_table("index_updates") end

function prepare_non_index_updates() prepare_for_each_table("non_index_updates") end

--- On PostgreSQL a DELETE that waited for another transaction's delete and insert of the same id does not see the new
--- row, and the INSERT after it finds the id taken. Nobody's mistake: the transaction is started over, as after a deadlock.
local function is_lost_race(failure) return failure.sql_state == "23505" end

function prepare_delete_inserts()
  prepare_for_each_table("deletes")
  prepare_for_each_table("inserts")
  if drv:name() == "pgsql" and sysbench.hooks.sql_error_ignorable == nil then
    sysbench.hooks.sql_error_ignorable = is_lost_race
  end
end

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  stmt, param = {}, {}
  for n = 1, opt("tables") do stmt[n], param[n] = {}, {} end
  if is_redshift() then sysbench.opt.delete_inserts = 0 end
  prepare_statements()
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

local transactions = 0

--- Called at the end of each transaction.
function check_reconnect()
  local every = opt("reconnect")
  if every > 0 then
    transactions = transactions + 1
    if transactions % every == 0 then con:reconnect() end
  end
end

-- Transactions -------------------------------------------------------------------------------------------------------

local function pick_table() return sysbench.rand.uniform(1, opt("tables")) end

local function pick_id() return sysbench.rand.default(1, opt("table_size")) end

function begin() stmt.begin:perform() end

function commit() stmt.commit:perform() end

function execute_point_selects()
  local n = pick_table()
  local statement, id = stmt[n].point_selects, param[n].point_selects[1]
  for _ = 1, opt("point_selects") do
    id:set(pick_id())
    statement:perform()
  end
end

local function execute_ranges(key)
  local n = pick_table()
  local statement, first, last = stmt[n][key], param[n][key][1], param[n][key][2]
  local length = opt("range_size")
  for _ = 1, opt(key) do
    local id = pick_id()
    first:set(id)
    last:set(id + length - 1)
    statement:perform()
  end
end

function execute_simple_ranges() execute_ranges("simple_ranges") end

function execute_sum_ranges() execute_ranges("sum_ranges") end

function execute_order_ranges() execute_ranges("order_ranges") end

function execute_distinct_ranges() execute_ranges("distinct_ranges") end

function execute_index_updates()
  local n = pick_table()
  local statement, id = stmt[n].index_updates, param[n].index_updates[1]
  for _ = 1, opt("index_updates") do
    id:set(pick_id())
    statement:perform()
  end
end

function execute_non_index_updates()
  local n = pick_table()
  local statement, c, id = stmt[n].non_index_updates, param[n].non_index_updates[1], param[n].non_index_updates[2]
  for _ = 1, opt("non_index_updates") do
    c:set_rand_str(C_FORMAT)
    id:set(pick_id())
    statement:perform()
  end
end

function execute_delete_inserts()
  local n = pick_table()
  local delete, insert = stmt[n].deletes, stmt[n].inserts
  local gone, new = param[n].deletes, param[n].inserts
  for _ = 1, opt("delete_inserts") do
    local id = pick_id()
    gone[1]:set(id)
    delete:perform()
    new[1]:set(id)
    new[2]:set(pick_id())
    new[3]:set_rand_str(C_FORMAT)
    new[4]:set_rand_str(PAD_FORMAT)
    insert:perform()
  end
end
