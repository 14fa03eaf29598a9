--- `sysbench.sql`: drivers, connections, results.
--
--
-- A statement is a yield: the engine runs it and answers with nothing (no result set), with ROWS, or with a failure.
-- The rows themselves stay in Rust until the next statement on their connection; a result object refers to them.
local core = ...
local ffi = require("ffi")
local buffer = require("string.buffer")
local ask, shared, current, raise = core.ask, core.shared, core.current, core.raise
local front = core.front -- what the front end says or does in its own way; empty where it has nothing to add
local yield = coroutine.yield
local CONNECT, DISCONNECT, RECONNECT, LEAVE = ask.CONNECT, ask.DISCONNECT, ask.RECONNECT, ask.LEAVE
local QUERY, FLUSH, SYNCHRONIZE, IN_TRANSACTION = ask.QUERY, ask.FLUSH, ask.SYNCHRONIZE, ask.IN_TRANSACTION
local NOTIFICATION = ask.NOTIFICATION

-- The answer's first value; anything else that is not nil is an error of the statement.
local ROWS = 1
local UNSUITABLE = 3 -- a value cannot be passed on, and nothing was executed; why

local NONE, IGNORABLE, FATAL = 0, 1, 2

local sql = {
  type = {
    NONE = 0, TINYINT = 1, SMALLINT = 2, INT = 3, BIGINT = 4, FLOAT = 5, DOUBLE = 6, TIME = 7, DATE = 8,
    DATETIME = 9, TIMESTAMP = 10, CHAR = 11, VARCHAR = 12,
  },
  error = { NONE = NONE, IGNORABLE = IGNORABLE, FATAL = FATAL },
}
core.sql = sql

--- Warns about a call of this method that does nothing. A front has its own message.
local function warn(method, words)
  core.message("ALERT", front.alerts and front.alerts[method] or words)
end

--- Raises an error of a call of this method. A front raises it in its own words.
local function refuse(method, words)
  if front.refuse_call then front.refuse_call(method) end
  raise(words)
end

-- Results -----------------------------------------------------------------------------------------------------------

local cell = core.bind("result_cell", "int (*)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t)")
local free_result = core.bind("result_free", "int (*)(void *, uint32_t, uint32_t)")
local set_rows = core.bind("result_rows", "uint32_t (*)(void *, uint32_t, uint32_t, uint32_t)")
local set_columns = core.bind("result_columns", "uint32_t (*)(void *, uint32_t, uint32_t, uint32_t)")

-- A result is created for every statement that returns rows, and most are never used: its parts are in the array of its
-- table, which needs one allocation where fields need two and a lookup for each. Scripts see fields all the same. Most
-- results are about the first set and the first row, which need no entry.
local CONNECTION, SERIAL, LENGTH, WIDTH, SET, NEXT = 1, 2, 3, 4, 5, 6
local Result = { opaque = true } -- a front may hide what is inside
local places = { connection = CONNECTION, serial = SERIAL, nrows = LENGTH, nfields = WIDTH }
Result.__index = function(self, key)
  local place = places[key]
  if place then return rawget(self, place) end
  return Result[key]
end
Result.__tostring = function() return "<sql_result>" end

local STALE = "this result set is gone: the next statement on its connection, the end of its transaction or free() "
  .. "has freed it"

-- The result of a statement without rows.
local NO_RESULT = front.adapt_results and front.adapt_results(Result)

local function value_at(result, row, column)
  local kind = cell(shared, result[CONNECTION], result[SERIAL], rawget(result, SET) or 0, row, column)
  if kind == 1 then return ffi.string(shared.text, shared.length) end
  if kind < 0 then raise(STALE) end
  return nil
end

local function is_stale(result)
  return cell(shared, result[CONNECTION], result[SERIAL], rawget(result, SET) or 0, 0, 0) < 0
end

--- The next row as an array of strings (NULL is a hole), nil after the last.
function Result:fetch_row()
  if front.refuse_fetch and is_stale(self) then
    front.refuse_fetch()
    return nil
  end
  local row = rawget(self, NEXT) or 0
  if row >= self[LENGTH] then
    if self[LENGTH] == 0 then warn("fetch_row", "fetch_row() finds no rows: the result is empty") end
    return nil
  end
  self[NEXT] = row + 1
  local values = {}
  for column = 0, self[WIDTH] - 1 do
    values[column + 1] = value_at(self, row, column)
  end
  return values
end

--- The result of a method that asserts something; it gets the method's name.
local asserted = front.asserted or function() return true end

local result_label = core.bind("result_label", "int (*)(void *, uint32_t, uint32_t, uint32_t, uint32_t)")

--- The names of the columns, for a statement sent as text, if the driver reports them.
function Result:names()
  local names = {}
  for column = 0, self[WIDTH] - 1 do
    if result_label(shared, self[CONNECTION], self[SERIAL], rawget(self, SET) or 0, column) ~= 0 then
      names[column + 1] = ffi.string(shared.text, shared.length)
    end
  end
  return names
end

function Result:free()
  if free_result(shared, self[CONNECTION], self[SERIAL]) == 0 then
    refuse("free", STALE)
  end
  return asserted("free")
end

-- Errors ------------------------------------------------------------------------------------------------------------

-- What a connection needs for every statement is in the array of its table, close together: there may be thousands of
-- sessions, and statements of others run between two of one. BUSY: it is closed, as may be some of its statements that
-- are executed with values, or a loader's rows are in flight;
-- FAILED: the last statement failed, and left `error` and its details; SETS: result sets of the last one; PREPARED:
-- number of statements so far. Everything else is a field, created when needed.
local NUMBER, BUSY, FAILED, SETS, PREPARED = 1, 2, 3, 4, 5

local Connection = { opaque = true, error = NONE, sql_errno = 0, closed = false, loading = false, deferring = false, set = 0 }

--- Raises a statement error: a table that restarts the transaction, or a string. `ignorable` is the engine's verdict,
--- unless the front judges; the script's hook may turn a fatal error into an ignorable one, and may use the connection
--- to do so.
local function statement_failed(connection, statement, errno, state, message, ignorable, position, _, details)
  local session = current()
  local query = type(statement) == "string" and statement or "<prepared statement>"
  if front.judge then errno, state, message, ignorable = front.judge(connection, statement, errno, state, message) end
  connection[FAILED] = true
  connection.error = ignorable and IGNORABLE or FATAL
  connection.sql_errno, connection.sql_state, connection.sql_errmsg = errno, state, message
  connection.sql_position, connection.sql_details = position, details
  local description = {
    connection = connection, query = query, sql_errno = errno, sql_state = state, sql_errmsg = message,
    position = position, details = details,
  }
  if front.describe then front.describe(session, description) end
  if not ignorable then
    local hook = session.sysbench.hooks.sql_error_ignorable
    if type(hook) == "function" then
      if hook(description) then
        ignorable = true
        connection.error = IGNORABLE
      elseif front.number_after_hook then
        errno = front.number_after_hook(connection, errno)
      end
    end
  end
  if ignorable then
    description.errcode = core.RESTART
    session.last_error = description
    error(description, 0)
  end
  local text = core.error_text(errno, state, message)
  session.last_error = text
  local raise_failure = front.raise_failure or raise
  raise_failure(text)
end

--- A result with these rows. If the front wants it, there is one per connection, which every statement reuses: a script
--- that still holds it sees, and frees, what the last statement returned.
local function result_of(connection, serial, rows, columns, set)
  if not NO_RESULT then return setmetatable({ connection[NUMBER], serial, rows, columns, set }, Result) end
  local result = connection.result
  if not result then
    result = setmetatable({ connection[NUMBER] }, Result)
    connection.result = result
  end
  result[SERIAL], result[LENGTH], result[WIDTH], result[SET], result[NEXT] = serial, rows, columns, set, nil
  return result
end

--- The result of a statement without rows.
local function no_result(connection)
  local result = connection.result
  if result then result[LENGTH], result[WIDTH] = 0, 0 end
  return NO_RESULT
end

local function last_set(connection)
  local serial, set = connection.serial, connection[SETS] - 1
  connection.set = set
  local rows, columns = set_rows(shared, connection[NUMBER], serial, set), set_columns(shared, connection[NUMBER], serial, set)
  return result_of(connection, serial, rows, columns, set)
end

--- A statement has succeeded: the result of the previous one is gone.
local function forgive(connection)
  connection[FAILED] = false
  connection.error, connection.sql_errno = NONE, 0
end

--- Turns the engine's answer to a statement (text or prepared) into the script's result.
local function finish(connection, statement, answer, a, b, c, d, position, hint, details)
  if connection[FAILED] then forgive(connection) end
  if answer == nil then
    connection[SETS] = 0
    return no_result(connection)
  elseif answer == ROWS then -- serial, rows, columns, number of result sets
    connection[SETS] = d
    if d > 1 then
      connection.serial, connection.set = a, 0
      if front.wants_last_set and front.wants_last_set(connection) then return last_set(connection) end
    end
    return result_of(connection, a, b, c)
  elseif answer == UNSUITABLE then
    raise(a)
  end
  no_result(connection)
  return statement_failed(connection, statement, a, b, c, d, position, hint, details)
end

--- The same for a statement whose result nobody wants.
local function finish_unread(connection, statement, answer, a, b, c, d, position, hint, details)
  if connection[FAILED] then forgive(connection) end
  if answer ~= nil and answer ~= ROWS then
    if answer == UNSUITABLE then raise(a) end
    return statement_failed(connection, statement, a, b, c, d, position, hint, details)
  end
  connection[SETS] = 0
end

local function closed()
  if front.raise_closed then front.raise_closed() end
  raise("the connection is closed")
end

-- Connections -------------------------------------------------------------------------------------------------------

Connection.__index = Connection
Connection.__tostring = function() return "<sql_connection>" end

local function text_of(value, what)
  local kind = type(value)
  if kind == "string" then return value end
  if front.not_a_text then front.not_a_text(what, kind) end
  if kind == "number" then return tostring(value) end
  raise("the " .. what .. " is not a string but a " .. kind .. " value")
end

--- Deferred statements are sent with an execution; everything else comes after them.
local function flush(connection)
  connection.deferring = false
  finish(connection, "<deferred statements>", yield(FLUSH, connection[NUMBER]))
end

--- The answer to the rows that a loader sent last: it generates the next ones meanwhile, and everything else comes
-- after that.
local function settle(connection)
  local name = connection.loading
  connection.loading, connection[BUSY] = false, connection.closed or connection.closed_statements ~= nil
  finish_unread(connection, "<load into " .. name .. ">", yield(FLUSH, connection[NUMBER]))
end

--- A closed connection is an error; one that loads must read the answer first.
local function make_ready(connection)
  if connection.closed then closed() end
  if connection.loading then settle(connection) end
end

--- Runs a statement's text. Returns a result object if it returned rows, else nil.
function Connection:query(text)
  if self[BUSY] then make_ready(self) end
  if self.deferring then flush(self) end
  if type(text) ~= "string" then text = text_of(text, "statement") end
  return finish(self, text, yield(QUERY, self[NUMBER], text))
end

--- Sends deferred or piped statements and waits for the answer.
function Connection:flush()
  if self.deferring then flush(self) end
end

--- Whether a transaction is open on the server, failed or not.
function Connection:in_transaction()
  self:flush()
  return yield(IN_TRANSACTION, self[NUMBER])
end

--- Waits for the next notification (PostgreSQL, after LISTEN), at most this long. Returns its channel and its text, or
--- nothing if none came.
function Connection:notification(seconds)
  if self[BUSY] then make_ready(self) end
  if self.deferring then flush(self) end
  local limit = tonumber(seconds)
  if not limit or not (limit >= 0 and limit < math.huge) then
    raise("the time to wait for a notification is not a number of seconds")
  end
  local result = finish(self, "<notification>", yield(NOTIFICATION, self[NUMBER], limit))
  if result == nil or result[LENGTH] == 0 then return nil end
  return value_at(result, 0, 0), value_at(result, 0, 1)
end

--- In a pipeline: ends a unit of what was piped so far.
function Connection:synchronize()
  if self.deferring then yield(SYNCHRONIZE, self[NUMBER]) end
end

--- The columns of the first row, as several values.
function Connection:query_row(text)
  local result = self:query(text)
  if result == nil or result[LENGTH] == 0 then return nil end
  return unpack(result:fetch_row(), 1, result[WIDTH])
end

function Connection:disconnect()
  if self.closed then
    warn("disconnect", "disconnect() does nothing: the connection is closed already")
    return true
  end
  if self.loading then settle(self) end
  self.closed, self[BUSY] = true, true
  yield(DISCONNECT, self[NUMBER])
  return true
end

--- Closes, and waits until the server has closed its side: its session has ended then.
function Connection:close()
  if self.closed then return true end
  if self.loading then settle(self) end
  if self.deferring then flush(self) end
  self.closed, self[BUSY] = true, true
  yield(LEAVE, self[NUMBER])
  local session = current()
  session.left = session.left or {}
  session.left[#session.left + 1] = self[NUMBER]
  return true
end

--- Closes and opens again. Prepared statements are kept.
function Connection:reconnect()
  if self[BUSY] then make_ready(self) end
  local answer, errno, state, message = yield(RECONNECT, self[NUMBER])
  if answer ~= nil then return statement_failed(self, "<reconnect>", errno, state, message, false) end
  return true
end

--- Upstream's helper, kept because scripts can see it: raises what `connection.error` says.
function Connection:check_error(result, query)
  if self.error == NONE or self.error == nil then return result end
  return statement_failed(self, query, self.sql_errno, self.sql_state, self.sql_errmsg, self.error == IGNORABLE)
end

function Connection:more_results()
  return self.set + 1 < self[SETS]
end

function Connection:next_result()
  if self.closed then closed() end
  if not self:more_results() then return no_result(self) end
  self.set = self.set + 1
  local columns = set_columns(shared, self[NUMBER], self.serial, self.set)
  if columns == 0 then return no_result(self) end
  local rows = set_rows(shared, self[NUMBER], self.serial, self.set)
  return result_of(self, self.serial, rows, columns, self.set)
end

-- Bulk inserts: rows of text, joined into statements of at most this many bytes.
local BULK_MAX = 512 * 1024
local bulk_gap = front.bulk_gap or " " -- between prefix and first row

--- `method`: the one that sends the rows.
local function bulk_flush(self, method)
  local bulk = self.bulk
  if bulk.rows == 0 then return end
  if self.loading then settle(self) end
  if self.deferring then flush(self) end
  local text = bulk.text:get()
  bulk.rows = 0
  local answer, errno, state, message = yield(QUERY, self[NUMBER], text)
  if answer ~= nil and answer ~= ROWS then
    self[FAILED] = true
    if front.bulk_failed then front.bulk_failed(self, method, text, errno, state, message) end
    self.bulk = nil
    self.error, self.sql_errno, self.sql_state, self.sql_errmsg = FATAL, errno, state, message
    local reason = core.error_text(errno, state, message)
    current().last_error = reason
    raise(method .. "() failed: " .. reason)
  end
end

--- Begins an insert: `prefix` is like `INSERT INTO t(a, b) VALUES`.
function Connection:bulk_insert_init(prefix)
  if self.closed then closed() end
  prefix = text_of(prefix, "text of the bulk insert")
  self.bulk = { prefix = prefix, text = buffer.new(), rows = 0 }
  return asserted("bulk_insert_init")
end

--- Adds a row: `values` is like `(1, 'x')`.
function Connection:bulk_insert_next(values)
  local bulk = self.bulk
  if front.not_a_text then values = text_of(values, "row of the bulk insert") end
  if not bulk then refuse("bulk_insert_next", "bulk_insert_next() needs a bulk_insert_init() before it") end
  values = text_of(values, "row of the bulk insert")
  if #bulk.prefix + #values + 1 > BULK_MAX then
    if front.refuse_row then front.refuse_row(BULK_MAX) end
    raise("bulk_insert_next() failed: a row of " .. #values .. " bytes does not fit into one statement of 512 KiB")
  end
  if bulk.rows > 0 and #bulk.text + #values + 1 > BULK_MAX then bulk_flush(self, "bulk_insert_next") end
  if bulk.rows == 0 then bulk.text:put(bulk.prefix, bulk_gap) else bulk.text:put(",") end
  bulk.text:put(values)
  bulk.rows = bulk.rows + 1
  return asserted("bulk_insert_next")
end

function Connection:bulk_insert_done()
  if self.bulk then
    bulk_flush(self, "bulk_insert_done")
    self.bulk = nil
  end
  return asserted("bulk_insert_done")
end

-- Drivers -----------------------------------------------------------------------------------------------------------

local Driver = { opaque = true }
Driver.__index = Driver
Driver.__tostring = function() return "<sql_driver>" end

function Driver:name() return self.kind end

local drivers = {} -- by name
local first_connections = {} -- by session: the first that it opened, closed or not

local function driver_of(name)
  local driver = drivers[name]
  if not driver then
    local escapes = core.backslash_escapes
    if name ~= core.driver then escapes = front.backslash_escapes and front.backslash_escapes(name) end
    driver = setmetatable({ kind = name, backslash_escapes = escapes }, Driver)
    drivers[name] = driver
  end
  return driver
end

Connection.driver = driver_of(core.driver)

--- A refused connection is an error at the script's line; the front describes it, and raises, in its own words.
local function connection_refused(session, kind, errno, state, message, target, class, details)
  local text = "cannot connect: " .. message
  if front.refuse_connection then
    -- A top level that connects has no options yet.
    local opt = session.sysbench.opt or core.options or {}
    text = front.refuse_connection(kind, opt, errno, state, message, target, class, details)
  end
  session.last_error = text
  raise(text)
end

--- `place`: index of the server among those of the run, from 1; nil for this session's next one.
function Driver:connect(place)
  local session = current()
  local number = session.left and table.remove(session.left)
  if not number then
    number = session.connections or 0
    session.connections = number + 1
  end
  local connection = setmetatable({ number, false, false, 0, 0 }, Connection)
  if not first_connections[shared.session] then first_connections[shared.session] = connection end
  if self ~= Connection.driver then connection.driver = self end
  local answer, errno, state, message, _, target, class, details = yield(CONNECT, number, self.kind, tonumber(place) or 0)
  if answer ~= nil then
    connection.closed, connection[BUSY] = true, true
    connection_refused(session, self.kind, errno, state, message, target, class, details)
  end
  return connection
end

function sql.driver(name)
  if name == nil then name = core.driver end
  if front.check_driver then
    front.check_driver(name, current().sysbench.opt or {})
  elseif name ~= core.driver then
    raise("the script asks for the driver '" .. tostring(name) .. "', but that of the database is '"
      .. core.driver .. "'")
  end
  return driver_of(name)
end

-- For the front ------------------------------------------------------------------------------------------------------

--- Rolls back on the driver's own initiative.
function core.roll_back(connection) yield(ask.ROLLBACK, connection[NUMBER]) end

--- Closes a connection and opens it again; returns whether that worked.
function core.try_reconnect(connection) return yield(RECONNECT, connection[NUMBER]) == nil end

core.query_row = Connection.query_row

-- Used by statement.lua, lean.lua, load.lua and plain.lua.
core.connections = {
  class = Connection, first = first_connections, NUMBER = NUMBER, BUSY = BUSY, PREPARED = PREPARED, ROWS = ROWS,
  LENGTH = LENGTH, WIDTH = WIDTH, FAILED = FAILED, SETS = SETS, result = Result,
  forgive = forgive, finish = finish, finish_unread = finish_unread, failed = statement_failed, closed = closed, text_of = text_of,
  value_at = value_at, make_ready = make_ready, settle = settle, flush = flush,
}
