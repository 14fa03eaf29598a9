--- sysbench's API from before 1.0: global functions, one implicit connection per session.
--
-- Kept since scripts that sysbench 1.0 itself ships still use parts of it. Everything maps onto the present API.
local core = ...
local base, rand, sql, current, raise = core.base, core.rand, core.sql, core.current, core.raise

core.on_demand.thread_id = function(session) return session.tid end
base.test = core.script_path
if not core.hosted then base.db_driver = core.driver end -- with a host, from `db_connect` on
base.mysql_table_engine = "innodb"
base.myisam_max_rows = 1000000
base.DB_ERROR_NONE, base.DB_ERROR_RESTART_TRANSACTION, base.DB_ERROR_FAILED = 0, 1, 2

base.sb_rand, base.sb_rand_uniform, base.sb_rand_gaussian = rand.default, rand.uniform, rand.gaussian
base.sb_rand_special, base.sb_rand_str = rand.special, rand.string

--- Unique in the run; with bounds, the next that lies within.
function base.sb_rand_uniq(low, high)
  if low == nil then return rand.unique() end
  low, high = tonumber(low), tonumber(high)
  if not high or high < low then raise("sb_rand_uniq needs two bounds in order") end
  while true do
    local value = rand.unique()
    if value >= low and value <= high then return value end
  end
end

function base.sb_rnd() return rand.uniform(0, 4294967295) end

local db = {}
core.legacy_db = db

local function connection()
  local session = current()
  if session.legacy == nil then
    local connect = function() return sql.driver():connect() end
    if not core.hosted then
      session.legacy = connect()
    else
      local ok, made = pcall(connect)
      if not ok then raise("Failed to connect to the database") end
      session.legacy = made
    end
  end
  if core.hosted and rawget(session.env, "db_driver") == nil then rawset(session.env, "db_driver", core.driver) end
  return session.legacy
end

function db.connect() connection() end

function db.disconnect()
  local session = current()
  if session.legacy then
    session.legacy:disconnect()
    session.legacy = nil
  end
end

--- Where there is a host, the old functions refuse what is no text as C code does.
local function text_of(...)
  local text = ...
  if not core.hosted or type(text) == "string" then return text end
  if type(text) == "number" then return tostring(text) end
  raise("bad argument #1 to '?' (string expected, got " .. (select("#", ...) == 0 and "no value" or type(text)) .. ")")
end

local function statement_of(...)
  local statement = ...
  if type(statement) ~= "table" then
    local kind = select("#", ...) == 0 and "no value" or type(statement)
    raise("bad argument #1 to '?' (sysbench.stmt expected, got " .. kind .. ")")
  end
  return statement
end

function db.query(...)
  local text = text_of(...)
  if not core.hosted then return connection():query(text) and nil end
  local it = connection()
  local ok, failure = pcall(it.query, it, text)
  if ok then return end
  if type(failure) == "table" then error(failure, 0) end -- a restart
  raise("db_query() failed")
end

function db.bulk_insert_init(...) connection():bulk_insert_init(text_of(...)) end

--- Rows need a connection that is there: sysbench's old functions do not make one for them.
local function connected()
  if core.hosted and current().legacy == nil then error("Uninitialized database connection", 0) end
  return connection()
end

function db.bulk_insert_next(...) connected():bulk_insert_next(text_of(...)) end

--- With a host, rows that the server refuses are told, and no error.
function db.bulk_insert_done()
  local it = connected()
  if core.hosted then pcall(it.bulk_insert_done, it) else it:bulk_insert_done() end
end

function db.prepare(...)
  local text, it = text_of(...), connection()
  if not core.hosted or it.driver:name() ~= "mysql" then return it:prepare(text) end
  local ok, statement = pcall(it.prepare, it, text)
  return ok and statement or raise("db_prepare() failed")
end

local LENGTH_MAX = 2 ^ 31 - 1 -- old parameters have no length of their own

--- Binds the elements of a table, whose types are those of the values in it now; it is read again at each execute.
function db.bind_param(...)
  local statement, values, parameters = statement_of(...), select(2, ...), {}
  for i = 1, statement.wanted do
    if type(values[i]) == "string" then
      parameters[i] = statement:bind_create(sql.type.CHAR, LENGTH_MAX)
    else
      parameters[i] = statement:bind_create(sql.type.INT)
    end
  end
  statement:bind_param(unpack(parameters))
  statement.source = values
end

function db.bind_result() end

function db.execute(...)
  local statement = statement_of(...)
  local values = statement.source
  if values then
    for i = 1, statement.wanted do statement[i]:set(values[i]) end
  end
  return statement:execute()
end

function db.store_results() end
function db.free_results(result) if result ~= nil then result:free() end end
function db.close(...) return statement_of(...):close() end

for name, body in pairs(db) do base["db_" .. name] = body end
db.DB_ERROR_NONE, db.DB_ERROR_RESTART_TRANSACTION, db.DB_ERROR_FAILED = 0, 1, 2

--- Scripts without an option table find every option in a global of its name, unless a function has that name.
function core.export_options(session)
  for key, value in next, core.options do
    local known = core.global(session, key) or rawget(base, key)
    if type(known) ~= "function" then rawset(session.env, key, value) end
  end
end
