--- sysbench's API from before 1.0: global functions, one implicit connection per session.
--
--
-- Kept because scripts that sysbench 1.0 itself ships still use parts of it. Everything maps to the current API.
local core = ...
local base, rand, sql, current, raise = core.base, core.rand, core.sql, core.current, core.raise

core.on_demand.thread_id = function(session) return session.tid end
base.test = core.script_path
base.db_driver = core.driver
for name, value in next, core.driver_globals do base[name] = value end
base.DB_ERROR_NONE, base.DB_ERROR_RESTART_TRANSACTION, base.DB_ERROR_FAILED = 0, 1, 2

base.sb_rand, base.sb_rand_uniform, base.sb_rand_gaussian = rand.default, rand.uniform, rand.gaussian
base.sb_rand_special, base.sb_rand_str = rand.special, rand.string

--- Unique in the run; with bounds, the next one within them.
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
  if session.legacy == nil then session.legacy = sql.driver():connect() end
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

local function statement_of(...)
  local statement = ...
  if type(statement) ~= "table" then
    local kind = select("#", ...) == 0 and "no value" or type(statement)
    raise("bad argument #1 to '?' (sysbench.stmt expected, got " .. kind .. ")")
  end
  return statement
end

function db.query(text) return connection():query(text) and nil end

function db.bulk_insert_init(text) connection():bulk_insert_init(text) end
function db.bulk_insert_next(text) connection():bulk_insert_next(text) end
function db.bulk_insert_done() connection():bulk_insert_done() end

function db.prepare(text) return connection():prepare(text) end

local LENGTH_MAX = 2 ^ 31 - 1 -- old parameters have no length of their own

--- Binds the elements of a table, whose current values determine the types; it is read again at each execute.
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

if core.front.adapt_old_functions then core.front.adapt_old_functions(db, connection) end
for name, body in pairs(db) do base["db_" .. name] = body end
db.DB_ERROR_NONE, db.DB_ERROR_RESTART_TRANSACTION, db.DB_ERROR_FAILED = 0, 1, 2

--- Scripts without an option table find every option in a global of its name, unless a function has that name.
function core.export_options(session)
  for key, value in next, core.options do
    local known = core.global(session, key) or rawget(base, key)
    if type(known) ~= "function" then rawset(session.env, key, value) end
  end
end
