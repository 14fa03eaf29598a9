--- How the tables of the OLTP workloads are created, filled, checked and dropped.
--
--
-- A part of `oltp_common` that all sessions share, loaded when one of its functions is needed: sessions that run
-- transactions do not need it. Each function below that is not `local` is a global that a script may replace, and it is
-- looked up when it is called.

local oltp = assay.share("oltp_transactions")
local opt, formats, is_redshift, tell = oltp.opt, oltp.formats, oltp.is_redshift, assay.tell
local dialect_of = oltp.dialect_of

-- Tables -------------------------------------------------------------------------------------------------------------

local function table_name(n) return "sbtest" .. n end

function get_c_value() return sysbench.rand.string(formats.c) end

function get_pad_value() return sysbench.rand.string(formats.pad) end

-- The same texts for a loader, unless a script has its own.
local C_CELL, PAD_CELL = assay.random_cell(formats.c), assay.random_cell(formats.pad)
local own_c_value, own_pad_value = get_c_value, get_pad_value

--- The options that a dialect needs to create a table.
local function wanted()
  return {
    auto_inc = sysbench.opt.auto_inc, secondary = sysbench.opt.secondary, redshift = is_redshift(),
    mysql_storage_engine = opt("mysql_storage_engine"), create_table_options = opt("create_table_options"),
    key_is_late = oltp.key_is_late,
  }
end

local function create_empty_table(driver, connection, n)
  local text = dialect_of(driver):create_table(n, wanted())
  connection:query(text)
end

local function append_row(loader, id, size)
  local c = get_c_value == own_c_value and C_CELL or get_c_value()
  local pad = get_pad_value == own_pad_value and PAD_CELL or get_pad_value()
  loader:row(id, sysbench.rand.default(1, size), c, pad)
end

local function row_loader(connection, n)
  return connection:loader(table_name(n), dialect_of(sysbench.sql.driver()).columns or "id,k,c,pad")
end

--- Executes what a dialect has to say: a text, or a function for what takes several.
local function execute(connection, work)
  if type(work) == "function" then return work(connection) end
  return connection:query(work)
end

--- The same for the first row of the answer.
local function ask(connection, question)
  if type(question) == "function" then return question(connection) end
  return connection:query_row(question)
end

--- Everything a table gets after its rows.
local function finish_table(driver, connection, n)
  if is_redshift() then return end
  local dialect = dialect_of(driver)
  for _, text in ipairs(dialect:after_rows(n, wanted(), opt("table_size"))) do connection:query(text) end
  if sysbench.opt.create_secondary then
    tell("Creating a secondary index on '%s'...", table_name(n))
    connection:query(dialect:create_index(n))
  end
  if dialect.analyze_table then connection:query(dialect:analyze_table(n)) end
end

--- Creates, fills and indexes table `n`, all of it in this session.
function create_table(driver, connection, n)
  tell("Creating table '%s'...", table_name(n))
  create_empty_table(driver, connection, n)
  local size = opt("table_size")
  if size > 0 then tell("Inserting %d records into '%s'", size, table_name(n)) end
  if is_redshift() then -- numbers its rows itself, and knows no COPY from a client
    connection:bulk_insert_init(dialect_of(driver):bulk_insert_without_id(n))
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

--- Which of the first `count` tables exist: name → true.
local function existing_tables(driver, connection, count)
  local found = {}
  local result = connection:query(dialect_of(driver):existing_tables(count))
  for _ = 1, result.nrows do found[result:fetch_row()[1]] = true end
  return found
end

-- Rows that a session claims at a time: few enough that sessions finish together, many enough to be appended in order.
local CHUNK = 50000

--- Loads chunks of table `n` until none are left to claim. Rows depend on the seed only, not on the session that
-- generates them.
local function load_chunks(connection, n)
  local size, counter, loader = opt("table_size"), "rows of " .. table_name(n), nil
  while true do
    local done = assay.claim(counter) * CHUNK
    if done >= size then break end
    assay.seed(sysbench.opt.rand_seed, counter, done)
    loader = loader or row_loader(connection, n)
    for id = done + 1, math.min(done + CHUNK, size) do append_row(loader, id, size) end
  end
  if loader then loader:done() end
end

--- Creates and fills all tables; all sessions work on all of them.
function cmd_prepare()
  oltp.check_sizes(0)
  local driver = sysbench.sql.driver()
  local connection = driver:connect()
  local tables, threads = opt("tables"), sysbench.opt.threads
  if dialect_of(driver).one_writer then
    if sysbench.tid ~= 0 then return end
    threads = 1
  end
  if create_table ~= own_create_table or is_redshift() or not oltp.tables_are_shared then
    for n = sysbench.tid + 1, tables, threads do create_table(driver, connection, n) end
    return
  end

  local lock = sysbench.tid == 0 and require("prepare_lock")(driver)
  assay.barrier()
  -- Every session checks before any of them creates, so that all refuse or none.
  local existing = sysbench.opt.replace and {} or existing_tables(driver, connection, tables)
  for n = 1, tables do
    if existing[table_name(n)] then
      error(("table %s already exists and nothing was changed; remove the tables with `cleanup`, "
        .. "or let prepare do it with --replace"):format(table_name(n)), 0)
    end
  end
  assay.barrier()

  if assay.claim("announce") == 0 then assay.expect(tables * opt("table_size")) end
  share_tables("create", function(n)
    if sysbench.opt.replace then execute(connection, dialect_of(driver):drop_table(n)) end
    create_empty_table(driver, connection, n)
  end)
  assay.barrier()

  -- Sessions start at tables far apart and help each other at the end: two sessions appending to one table are slower
  -- than to two (on InnoDB the second waits for the first one's AUTO-INC lock).
  local start = dialect_of(driver).one_writer and 0 or math.floor(sysbench.tid * tables / threads)
  for i = 0, tables - 1 do load_chunks(connection, (start + i) % tables + 1) end
  assay.barrier()

  local before_keys = dialect_of(driver).before_keys
  if before_keys and threads > 1 and tables >= threads then connection:query(before_keys) end
  share_tables("finish", function(n) finish_table(driver, connection, n) end)
  connection:disconnect()
  assay.barrier()
  if lock then lock:disconnect() end
end

--- Drops the tables that exist.
function cleanup()
  local driver = sysbench.sql.driver()
  if dialect_of(driver).one_writer and sysbench.tid ~= 0 then return end
  local connection = driver:connect()
  share_tables("drop", function(n)
    tell("Dropping table '%s'...", table_name(n))
    execute(connection, dialect_of(driver):drop_table(n))
  end)
  connection:disconnect()
end
local own_cleanup = cleanup

--- Runs `cleanup` in all sessions, and reports what there was to remove; a script's own version expects to be called
--- once.
function cmd_cleanup()
  if cleanup ~= own_cleanup then
    if sysbench.tid == 0 then return cleanup() end
    return
  end
  local driver, tables = sysbench.sql.driver(), opt("tables")
  if dialect_of(driver).one_writer and sysbench.tid ~= 0 then return end
  local connection, count = driver:connect(), 0
  local existing = existing_tables(driver, connection, tables + 1)
  connection:disconnect()
  assay.barrier() -- all have looked before any drops
  cleanup()
  assay.barrier()
  if sysbench.tid ~= 0 then return end
  for n = 1, tables do count = count + (existing[table_name(n)] and 1 or 0) end
  if count > 0 then
    assay.log(("removed %d of %d tables"):format(count, tables))
  elseif tables == 1 then
    assay.log(("nothing to remove: %s does not exist"):format(table_name(1)))
  else
    assay.log(("nothing to remove: %s to %s do not exist"):format(table_name(1), table_name(tables)))
  end
  if existing[table_name(tables + 1)] then
    assay.log(("table %s was not removed: --tables is %d"):format(table_name(tables + 1), tables))
  end
end

--- Warns if the tables differ from the options, and records their size: transactions would omit a part of them, or look
--- for rows that do not exist. Checks only the ends of the index. `one`: the workload reads one table, however many
--- there are.
function compare_tables(connection, one)
  if create_table ~= own_create_table then return end
  local tables, size = opt("tables"), opt("table_size")
  local _, rows_max = expected_rows()
  local driver = sysbench.sql.driver()
  local existing, dialect = existing_tables(driver, connection, tables + 1), dialect_of(driver)
  local smaller, larger -- name and greatest id of the first such table
  local sizes = {}
  for n = 1, tables do
    if not existing[table_name(n)] then
      if not dialect.must_exist then return end -- the first statement says so
      connection:query(dialect:must_exist(n))
      error(table_name(n) .. " does not exist; `assay prepare` makes it", 0) -- not all servers say so
    end
    local last = tonumber((connection:query_row(dialect:last_id(n)))) or 0
    -- Runs that delete may have removed the last few.
    local is_smaller, is_larger = last < size * 0.9 and expected_rows() == size, last > size and rows_max == size
    if is_smaller then smaller = smaller or { table_name(n), last } end
    if is_larger then larger = larger or { table_name(n), last } end
    sizes[(is_smaller or is_larger) and last or size] = true
  end
  for found in pairs(sizes) do assay.found("table_size", found) end
  assay.found("tables", tables)
  local function warn(text, ...)
    assay.log(("warning: " .. text .. "\n  were the tables prepared with other options?"):format(...))
  end
  if larger then
    warn("--table-size is %d, but %s has rows up to id %d: the run does not use them", size, larger[1], larger[2])
  elseif smaller then
    warn("--table-size is %d, but %s ends at id %d: statements will look for rows that do not exist", size, smaller[1], smaller[2])
  end
  if existing[table_name(tables + 1)] and not one then
    warn("--tables is %d, but there is a table %s: the run does not use it", tables, table_name(tables + 1))
  end
end

--- Reads tables and indexes into the buffer pool.
function cmd_warmup()
  local driver = sysbench.sql.driver()
  local dialect = dialect_of(driver)
  local warm_up = dialect.warm_up
  if not warm_up then
    error("warmup works with MySQL and MariaDB only; to warm the caches before a run, use --warmup", 0)
  end
  local connection = driver:connect()
  for _, text in ipairs(warm_up.first) do connection:query(text) end
  share_tables("warm up", function(n)
    local name, size = table_name(n), opt("table_size")
    tell("Prewarming table %s", name)
    connection:query(dialect:analyze_table(n))
    connection:query(warm_up.rows:format(name, size))
    connection:query(warm_up.index:format(name, size))
  end)
  connection:disconnect()
end

function cmd_prewarm() return cmd_warmup() end

-- Check --------------------------------------------------------------------------------------------------------------

--- What a table may contain after any number of transactions: fewest and most rows, smallest and largest id.
function expected_rows()
  local size = opt("table_size")
  return size, size, 1, size
end

-- More of a table than this is not missing because of interrupted transactions.
local INTERRUPTED_MAX = 0.1

--- Compares table `n` with what it should be; reports each difference to `found(what, expected, actual)`.
local function check_table(driver, connection, n, found)
  local dialect = dialect_of(driver)
  local rows, id_low, id_high, c, pad, k = ask(connection, dialect:check_rows(n))
  local rows_min, rows_max, id_min, id_max = expected_rows()
  if sysbench.opt.skip_trx and rows_min == rows_max and tonumber(rows) < rows_max then
    -- Each was deleted by a statement of its own, and its session was killed or lost its connection before the INSERT.
    assay.log(("table %s: %d rows are missing, as interrupted transactions of --skip-trx leave them"):format(
      table_name(n), rows_max - tonumber(rows)))
    rows_min = math.floor(rows_max * (1 - INTERRUPTED_MAX))
  end
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
    check("ids that occur twice", ask(connection, dialect:check_ids(n)), 0, 0)
  end
  if sysbench.opt.create_secondary and not is_redshift() then
    local exists = ask(connection, dialect:check_index(n))
    if tonumber(exists) == 0 then found("index", "k_" .. n, "none") end
  end
  return rows
end

--- Verifies all tables and prints a line for each difference. Returns false if there is any.
function cmd_check()
  local driver = sysbench.sql.driver()
  local connection = driver:connect()
  local existing, right = existing_tables(driver, connection, opt("tables")), true
  -- Nothing was prepared: the server's own error says so, and `run --prepare` knows it.
  if not next(existing) then ask(connection, dialect_of(driver):check_rows(1)) end
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
      right_here = false
      assay.log(("table %s does not exist"):format(name))
    end
    right = right and right_here
  end)
  connection:disconnect()
  if not right and assay.claim("advice") == 0 then
    assay.log("use the options that the tables were prepared with, or remove them with `cleanup` and prepare them again")
  end
  return right
end
