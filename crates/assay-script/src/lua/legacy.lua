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
  session.legacy = session.legacy or sql.driver():connect()
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

function db.query(text)
  if not core.hosted then return connection():query(text) and nil end
  local it = connection()
  local ok, failure = pcall(it.query, it, text)
  if ok then return end
  if type(failure) == "table" then error(failure, 0) end -- a restart
  raise("db_query() failed")
end
function db.bulk_insert_init(prefix) return connection():bulk_insert_init(prefix) end
function db.bulk_insert_next(values) return connection():bulk_insert_next(values) end
function db.bulk_insert_done() return connection():bulk_insert_done() end
function db.prepare(text) return connection():prepare(text) end

local LENGTH_MAX = 2 ^ 31 - 1 -- old parameters have no length of their own

--- Binds the elements of a table, whose types are those of the values in it now; it is read again at each execute.
function db.bind_param(statement, values)
  local parameters = {}
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

function db.execute(statement)
  local values = statement.source
  if values then
    for i = 1, statement.wanted do statement[i]:set(values[i]) end
  end
  return statement:execute()
end

function db.store_results() end
function db.free_results(result) if result ~= nil then result:free() end end
function db.close(statement) return statement:close() end

for name, body in pairs(db) do base["db_" .. name] = body end
db.DB_ERROR_NONE, db.DB_ERROR_RESTART_TRANSACTION, db.DB_ERROR_FAILED = 0, 1, 2

--- Scripts without an option table find every option in a global of its name, unless a function has that name.
function core.export_options(session)
  for key, value in next, core.options do
    local known = rawget(session.env, key) or rawget(base, key)
    if type(known) ~= "function" then rawset(session.env, key, value) end
  end
end
