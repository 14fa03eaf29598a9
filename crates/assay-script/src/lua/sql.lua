--- `sysbench.sql`: drivers, connections, statements, parameters, results.
--
-- A statement is a yield: the engine runs it and answers with nothing (no result set), with ROWS, or with a failure. The
-- rows themselves stay in Rust until the next statement on their connection; a result object points at them.
local core = ...
local ffi = require("ffi")
local new_table = require("table.new")
local buffer = require("string.buffer")
local ask, shared, current, raise = core.ask, core.shared, core.current, core.raise
local front = core.front -- what the front end says or does in its own way; empty where it has nothing to add
local yield = coroutine.yield
local CONNECT, DISCONNECT, RECONNECT = ask.CONNECT, ask.DISCONNECT, ask.RECONNECT
local QUERY, PREPARE, EXECUTE, CLOSE = ask.QUERY, ask.PREPARE, ask.EXECUTE, ask.CLOSE
local DEFER, FLUSH = ask.DEFER, ask.FLUSH

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

-- Results -----------------------------------------------------------------------------------------------------------

local cell = core.bind("result_cell", "int (*)(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t)")
local free_result = core.bind("result_free", "int (*)(void *, uint32_t, uint32_t)")
local set_rows = core.bind("result_rows", "uint32_t (*)(void *, uint32_t, uint32_t, uint32_t)")
local set_columns = core.bind("result_columns", "uint32_t (*)(void *, uint32_t, uint32_t, uint32_t)")

-- A result is made for every statement that returns rows, and most are never looked at: its parts lie in the array of its
-- table, which takes one allocation where fields take two and a search for each. Scripts see fields all the same. The
-- first set and the first row are what most results are about: they need no place.
local CONNECTION, SERIAL, LENGTH, WIDTH, SET, NEXT = 1, 2, 3, 4, 5, 6
local Result = {}
local places = { connection = CONNECTION, serial = SERIAL, nrows = LENGTH, nfields = WIDTH }
Result.__index = function(self, key)
  local place = places[key]
  if place then return rawget(self, place) end
  return Result[key]
end
Result.__tostring = function() return "<sql_result>" end

local STALE = "this result set is gone: the next statement on its connection, the end of its transaction or free() "
  .. "has freed it"

-- What a statement without rows gives.
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
    if self[LENGTH] == 0 then core.message("ALERT", "attempt to fetch row from an empty result set") end
    return nil
  end
  self[NEXT] = row + 1
  local values = {}
  for column = 0, self[WIDTH] - 1 do
    values[column + 1] = value_at(self, row, column)
  end
  return values
end

--- What a method that asserts something returns.
local asserted = front.asserted or function() return true end

local result_label = core.bind("result_label", "int (*)(void *, uint32_t, uint32_t, uint32_t, uint32_t)")

--- The names of the columns, of a statement sent as text, where the driver tells them.
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
    core.message("ALERT", "attempt to free an invalid result set")
    raise("db_free_results() failed")
  end
  return asserted("db_free_results() failed")
end

-- Errors ------------------------------------------------------------------------------------------------------------

-- What a connection needs for every statement lies in the array of its table, close together: there may be thousands of
-- sessions, and between two statements of one come those of the others. BUSY: it is closed, or a loader's rows are on their
-- way; FAILED: the last statement did, and left `error` and what belongs to it; SETS: result sets of the last one; PREPARED:
-- statements so far. All else is a field, and there when it is needed.
local NUMBER, BUSY, FAILED, SETS, PREPARED = 1, 2, 3, 4, 5

local Connection = { error = NONE, sql_errno = 0, closed = false, loading = false, deferring = false, set = 0 }

--- Raises a statement error: a table that restarts the transaction, or a string. `ignorable` is the engine's verdict,
--- unless the front judges; the script's hook may turn a fatal error into an ignorable one, and may use the connection to do so.
local function statement_failed(connection, statement, errno, state, message, ignorable, position)
  local session = current()
  local query = type(statement) == "string" and statement or "<prepared statement>"
  if front.judge then errno, state, message, ignorable = front.judge(connection, statement, errno, state, message) end
  connection[FAILED] = true
  connection.error = ignorable and IGNORABLE or FATAL
  connection.sql_errno, connection.sql_state, connection.sql_errmsg = errno, state, message
  connection.sql_position = position
  local description = {
    connection = connection, query = query, sql_errno = errno, sql_state = state, sql_errmsg = message,
    position = position,
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

--- A result with these rows. Where the front says so there is one per connection, which every statement makes anew: a
--- script that still holds it sees, and frees, what the last statement returned.
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

--- What a statement without rows gives.
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

--- A statement has ended well: what the one before left is no more.
local function forgive(connection)
  connection[FAILED] = false
  connection.error, connection.sql_errno = NONE, 0
end

--- Turns the engine's answer to a statement (its text, or a prepared one) into what the script gets for it.
local function finish(connection, statement, answer, a, b, c, d, position)
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
  return statement_failed(connection, statement, a, b, c, d, position)
end

--- The same for a statement whose result nobody wants.
local function finish_unread(connection, statement, answer, a, b, c, d, position)
  if connection[FAILED] then forgive(connection) end
  if answer ~= nil and answer ~= ROWS then
    if answer == UNSUITABLE then raise(a) end
    return statement_failed(connection, statement, a, b, c, d, position)
  end
  connection[SETS] = 0
end

local function closed()
  core.message("ALERT", "attempt to use an already closed connection")
  if front.raise_closed then front.raise_closed() end
  raise("SQL API error")
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

--- Statements that were deferred travel with an execution; what is not one comes after them.
local function flush(connection)
  connection.deferring = false
  finish(connection, "<deferred statements>", yield(FLUSH, connection[NUMBER]))
end

--- The answer to the rows that a loader sent last: it makes the next ones meanwhile, and everything else comes after that.
local function settle(connection)
  local name = connection.loading
  connection.loading, connection[BUSY] = false, connection.closed
  finish_unread(connection, "<load into " .. name .. ">", yield(FLUSH, connection[NUMBER]))
end

--- A connection that is closed is an error; one that loads has to hear the answer first.
local function make_ready(connection)
  if connection.closed then closed() end
  if connection.loading then settle(connection) end
end

--- Runs a statement's text. A result object when it returned rows, else nil.
function Connection:query(text)
  if self[BUSY] then make_ready(self) end
  if self.deferring then flush(self) end
  if type(text) ~= "string" then text = text_of(text, "statement") end
  return finish(self, text, yield(QUERY, self[NUMBER], text))
end

--- The columns of the first row, as several values.
function Connection:query_row(text)
  local result = self:query(text)
  if result == nil or result[LENGTH] == 0 then return nil end
  return unpack(result:fetch_row(), 1, result[WIDTH])
end

function Connection:disconnect()
  if self.closed then
    core.message("ALERT", "attempt to close an already closed connection")
    return true
  end
  if self.loading then settle(self) end
  self.closed, self[BUSY] = true, true
  yield(DISCONNECT, self[NUMBER])
  return true
end

--- Closes and opens again. Prepared statements are kept.
function Connection:reconnect()
  if self[BUSY] then make_ready(self) end
  local answer, errno, state, message = yield(RECONNECT, self[NUMBER])
  if answer ~= nil then return statement_failed(self, "<reconnect>", errno, state, message, false) end
  return true
end

--- Upstream's helper, kept since scripts can see it: raises what `connection.error` says.
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

local function bulk_flush(self, caller)
  local bulk = self.bulk
  if bulk.rows == 0 then return end
  if self.loading then settle(self) end
  if self.deferring then flush(self) end
  local text = bulk.text:get()
  bulk.rows = 0
  local answer, errno, state, message = yield(QUERY, self[NUMBER], text)
  if answer ~= nil and answer ~= ROWS then
    if front.bulk_failed then
      self[FAILED] = true
      self.error = front.bulk_failed(self, text, errno, state, message) and IGNORABLE or FATAL
      raise(caller .. "() failed")
    end
    self.bulk = nil
    self[FAILED] = true
    self.error, self.sql_errno, self.sql_state, self.sql_errmsg = FATAL, errno, state, message
    local reason = core.error_text(errno, state, message)
    current().last_error = reason
    raise(caller .. "() failed: " .. reason)
  end
end

--- Begins an insert: `prefix` is like `INSERT INTO t(a, b) VALUES`.
function Connection:bulk_insert_init(prefix)
  if self.closed then closed() end
  prefix = text_of(prefix, "text of the bulk insert")
  self.bulk = { prefix = prefix, text = buffer.new(), rows = 0 }
  return asserted("db_bulk_insert_init() failed")
end

--- Adds a row: `values` is like `(1, 'x')`.
function Connection:bulk_insert_next(values)
  local bulk = self.bulk
  if front.not_a_text then values = text_of(values, "row of the bulk insert") end
  if not bulk then
    core.message("ALERT", "attempt to call bulk_insert_next() before bulk_insert_init()")
    raise("db_bulk_insert_next() failed")
  end
  values = text_of(values, "row of the bulk insert")
  if #bulk.prefix + #values + 1 > BULK_MAX then
    if front.refuse_row then front.refuse_row(BULK_MAX) end
    raise("db_bulk_insert_next() failed: a row of " .. #values .. " bytes does not fit into one statement of 512 KiB")
  end
  if bulk.rows > 0 and #bulk.text + #values + 1 > BULK_MAX then bulk_flush(self, "db_bulk_insert_next") end
  if bulk.rows == 0 then bulk.text:put(bulk.prefix, bulk_gap) else bulk.text:put(",") end
  bulk.text:put(values)
  bulk.rows = bulk.rows + 1
  return asserted("db_bulk_insert_next() failed")
end

function Connection:bulk_insert_done()
  if self.bulk then
    bulk_flush(self, "db_bulk_insert_done")
    self.bulk = nil
  end
  return asserted("db_bulk_insert_done() failed")
end

-- Prepared statements -----------------------------------------------------------------------------------------------

-- A statement of a session is its connection, at 0, and its parameters, from 1. What it has in common with those of other
-- sessions is its class: the number it was prepared under, its text, the kinds of its parameters, and its methods.
local Statement = {}
local ValueStatement = {} -- executed with values
local Substituted = {} -- sent as text, with the values in it: nothing is to be prepared
local ClosedStatement = {}

local statement_classes = setmetatable({}, { __mode = "v" })

local function classify(statement, name, methods, id, text, wanted, kinds)
  local key = table.concat({ name, id, kinds, text }, "\0")
  local class = statement_classes[key]
  if not class then
    class = {
      __tostring = function() return "<sql_statement>" end,
      name = name, methods = methods, id = id, text = text, wanted = wanted, kinds = kinds,
    }
    for method, body in next, Statement do class[method] = body end
    for method, body in next, methods do class[method] = body end
    class.__index = function(self, field)
      if field == "connection" then return self[0] end
      return class[field]
    end
    statement_classes[key] = class
  end
  return setmetatable(statement, class)
end

local counted = {} -- text → number of placeholders

local function placeholders(text)
  local count = counted[text]
  if not count then
    local bare = text:gsub("'[^']*'", ""):gsub('"[^"]*"', ""):gsub("`[^`]*`", "")
    count = select(2, bare:gsub("%?", ""))
    counted[text] = count
  end
  return count
end

--- Prepares a statement. With `kinds`, a letter per placeholder (`i` integer, `d` double, `t` text, `a` what the value is),
--- it is executed with
--- values; without, with the parameters bound to it.
function Connection:prepare(text, kinds)
  if self[BUSY] then make_ready(self) end
  if self.deferring then flush(self) end
  text = text_of(text, "statement to prepare")
  local wanted = placeholders(text)
  if kinds ~= nil then
    if type(kinds) ~= "string" or kinds:find("[^idta]") then raise("the kinds of parameters are letters: i, d, t or a") end
    if #kinds ~= wanted then
      raise(("the statement has %d placeholders, but %d kinds are given"):format(wanted, #kinds))
    end
  end
  local id = self[PREPARED]
  local statement = new_table(math.max(wanted, 1), 0)
  statement[0] = self
  if core.options and core.options.db_ps_mode == "disable" then
    return classify(statement, "text", Substituted, id, text, wanted, kinds or "")
  end
  self[PREPARED] = id + 1
  local answer, errno, state, message, ignorable, position, hint = yield(PREPARE, self[NUMBER], id, text)
  if answer == nil or answer == ROWS then
    if kinds then return classify(statement, "values", ValueStatement, id, text, wanted, kinds) end
    return classify(statement, "parameters", Statement, id, text, wanted, "")
  end
  if front.refuse_prepare then front.refuse_prepare(self, text, errno, state, message, position, hint) end
  return statement_failed(self, text, errno, state, message, ignorable)
end

-- Values that are not a number or text already.

-- All digits of a number, and none too many.
local function digits_of(number)
  if number % 1 == 0 and math.abs(number) < 2 ^ 63 then return ("%.0f"):format(number) end
  local short = ("%.15g"):format(number)
  return tonumber(short) == number and short or ("%.17g"):format(number)
end

--- A number or text of the same value as one that a parameter of this kind does not take as it is; nil and a reason where
--- there is none.
function core.exact(kind, value)
  if ffi.istype("int64_t", value) or ffi.istype("uint64_t", value) then
    local digits = tostring(value):gsub("U?LL$", "")
    if kind ~= "d" then return digits end
    local number = tonumber(value)
    if ("%.0f"):format(number) == digits then return number end
    return nil, "no double is equal to " .. digits
  end
  local number = type(value) == "cdata" and tonumber(value) or value
  if type(number) ~= "number" then return nil, "a " .. type(value) .. " is not a value of a statement" end
  if kind == "d" then return number end
  if kind == "t" then return digits_of(number) end
  if kind == "w" then number = number < 0 and math.ceil(number) or math.floor(number) end
  if number % 1 ~= 0 then return nil, tostring(number) .. " is not a whole number" end -- nor is what is not a number at all
  if number < -2 ^ 63 or number >= 2 ^ 63 then return nil, tostring(number) .. " does not fit into 64 bits" end
  return number
end

local function passed_on(kind, value)
  local exact, reason = core.exact(kind, value)
  if exact == nil then raise(reason) end
  return exact
end

-- Parameters: there are as many as there are placeholders in all statements of all sessions, so a parameter holds its
-- value only. What parameters of one type and length have in common is their metatable.

local function integer(value)
  local kind = type(value)
  if kind == "number" or kind == "nil" then return value end
  if kind == "boolean" then return value and 1 or 0 end
  if kind == "cdata" then return passed_on("w", value) end
  return tonumber(value) or raise("'" .. tostring(value) .. "' is not a number")
end

local function double(value)
  if type(value) == "number" or value == nil then return value end
  if type(value) == "cdata" then return passed_on("d", value) end
  return tonumber(value) or raise("'" .. tostring(value) .. "' is not a number")
end

-- How a parameter travels: a letter, read in `src/state.rs`, and what makes a value of it. Fractions of a number are cut
-- off, as by sysbench.
local TRAVEL = {
  [1] = { "w", integer }, [2] = { "w", integer }, [3] = { "w", integer }, [4] = { "w", integer },
  [5] = { "d", double }, [6] = { "d", double }, [11] = { "t" }, [12] = { "t" },
}

local parameter_classes = {}

local function parameter_class(kind, max_len)
  local travel = TRAVEL[kind]
  if not travel and front.not_a_type then front.not_a_type(kind) end
  if not travel then raise("Unsupported argument type: " .. tostring(kind)) end
  if travel[1] == "t" and type(max_len) ~= "number" then
    if front.not_a_length then front.not_a_length(max_len) end
    if not tonumber(max_len) then raise("a CHAR or VARCHAR parameter needs its greatest length") end
  end
  local key = kind .. ":" .. (max_len or "")
  local class = parameter_classes[key]
  if class then return class end
  local convert = travel[2] or function(value)
    if value == nil then return nil end
    if type(value) == "cdata" then value = passed_on("t", value) end
    if type(value) ~= "string" then value = tostring(value) end
    return #value > max_len and value:sub(1, max_len) or value
  end
  class = {
    letter = travel[1], type = kind, max_len = max_len,
    __tostring = function() return "<sql_param>" end,
    --- Sets the value of the next executions; nil is NULL.
    set = function(self, value) self[1] = convert(value) end,
    --- Sets a random string made as by `sysbench.rand.string`.
    set_rand_str = function(self, format) self[1] = convert(core.rand.string(format)) end,
  }
  class.__index = class
  parameter_classes[key] = class
  return class
end

function Statement:bind_create(kind, max_len)
  return setmetatable({ nil }, parameter_class(kind, max_len)) -- its value, in an array of one
end

--- Binds parameters, one per placeholder, in order. 0 when that worked.
function Statement:bind_param(...)
  local count = select("#", ...)
  if count == 0 then return nil end
  if count ~= self.wanted then
    if front.refuse_parameters then
      front.refuse_parameters(self[0])
    else
      core.log(("ALERT: wrong number of parameters to a prepared statement: %d bound, %d expected"):format(
        count, self.wanted))
    end
    return 1
  end
  local letters = {}
  for i = 1, count do
    local parameter = select(i, ...)
    if front.not_a_parameter then front.not_a_parameter(parameter) end
    letters[i] = type(parameter) == "table" and parameter.letter
      or raise("argument " .. i .. " of bind_param is not a parameter")
    self[i] = parameter
  end
  classify(self, self.name, self.methods, self.id, self.text, self.wanted, table.concat(letters))
  return 0
end

local scratch = {}

--- `how`: EXECUTE or DEFER.
local function execute(self, how)
  local connection, class = self[0][NUMBER], getmetatable(self)
  local id, kinds = class.id, class.kinds
  local count = #kinds
  if count == 1 then
    return yield(how, connection, id, kinds, self[1][1])
  elseif count == 2 then
    return yield(how, connection, id, kinds, self[1][1], self[2][1])
  elseif count == 0 then
    return yield(how, connection, id, kinds)
  elseif count == 4 then
    return yield(how, connection, id, kinds, self[1][1], self[2][1], self[3][1], self[4][1])
  end
  for i = 1, count do scratch[i] = self[i][1] end
  return yield(how, connection, id, kinds, unpack(scratch, 1, count))
end

--- The connection of a statement that is about to be executed.
local function usable(statement)
  local connection = statement[0]
  if connection[BUSY] then make_ready(connection) end
  return connection
end

--- Runs the statement. A result object when it returned rows, else nil.
function Statement:execute()
  local connection = usable(self)
  return finish(connection, self, execute(self, EXECUTE))
end

--- The engine's answer to DEFER is true, or that to a statement run at once.
local function deferred(connection, statement, answer, ...)
  if answer == true then
    connection.deferring = true
    return true
  end
  finish(connection, statement, answer, ...)
  return false
end

--- Runs the statement together with the next one of the connection, which then raises its error. True when it waits for that
--- one, false when it was run at once.
function Statement:defer()
  local connection = usable(self)
  return deferred(connection, self, execute(self, DEFER))
end

--- Runs the statement and returns nothing: what it returns stays unread, and takes no result object.
function Statement:perform()
  local connection = usable(self)
  return finish_unread(connection, self, execute(self, EXECUTE))
end

--- A value as it stands in the text of a statement.
local function literal(driver, kind, value, i)
  if value == nil then return "NULL" end
  if type(value) == "boolean" then return value and "1" or "0" end
  if type(value) ~= "string" then
    local exact, reason = core.exact(kind, value)
    if exact == nil then raise("parameter " .. i .. ": " .. reason) end
    value = type(exact) == "number" and digits_of(exact) or exact
  end
  if kind ~= "t" and tonumber(value) then return value end
  value = value:gsub("'", "''")
  if driver.backslash_escapes then value = value:gsub("\\", "\\\\") end
  return "'" .. value .. "'"
end

--- The text with the values in the place of the placeholders: those given, or those of the parameters.
local function substituted(statement, ...)
  local values = { ... }
  if select("#", ...) == 0 then
    for i = 1, #statement.kinds do values[i] = statement[i][1] end
  end
  if #statement.kinds == 0 then return statement.text end
  local parts, start, i, quote = {}, 1, 0, nil
  for position, mark in statement.text:gmatch("()(['\"`?])") do
    if mark ~= "?" then
      if not quote then quote = mark elseif quote == mark then quote = nil end
    elseif not quote and i < #statement.kinds then
      i = i + 1
      parts[#parts + 1] = statement.text:sub(start, position - 1)
        .. literal(statement[0].driver, statement.kinds:sub(i, i), values[i], i)
      start = position + 1
    end
  end
  return table.concat(parts) .. statement.text:sub(start)
end

function Substituted:execute(...)
  local connection = usable(self)
  if connection.deferring then flush(connection) end
  local text = substituted(self, ...)
  return finish(connection, text, yield(QUERY, connection[NUMBER], text))
end

function Substituted:defer(...)
  self:execute(...)
  return false
end

function Substituted:perform(...) self:execute(...) end

function Substituted:close()
  classify(self, "closed", ClosedStatement, self.id, self.text, self.wanted, self.kinds)
  return 0
end

function ClosedStatement:execute()
  if self[0].closed then closed() end
  raise("attempt to use an already closed statement")
end

ClosedStatement.perform, ClosedStatement.defer = ClosedStatement.execute, ClosedStatement.execute

function ClosedStatement.close() return 0 end

--- The same for a statement that is given so many values.
local function usable_with(statement, count)
  local connection, wanted = usable(statement), #statement.kinds
  if count ~= wanted then raise(("the statement takes %d values, but %d are given"):format(wanted, count)) end
  return connection
end

function ValueStatement:execute(...)
  local connection = usable_with(self, select("#", ...))
  return finish(connection, self, yield(EXECUTE, connection[NUMBER], self.id, self.kinds, ...))
end

function ValueStatement:defer(...)
  local connection = usable_with(self, select("#", ...))
  return deferred(connection, self, yield(DEFER, connection[NUMBER], self.id, self.kinds, ...))
end

function ValueStatement:perform(...)
  local connection = usable_with(self, select("#", ...))
  return finish_unread(connection, self, yield(EXECUTE, connection[NUMBER], self.id, self.kinds, ...))
end

function ValueStatement:bind_param()
  raise("this statement was prepared to be executed with values, not parameters")
end

--- The same for a statement of one row: its columns as several values; nothing when there is no row.
function Statement:row(...)
  local result = self:execute(...)
  if result == nil or result[LENGTH] == 0 then return end
  local columns = result[WIDTH]
  if columns == 1 then return value_at(result, 0, 0) end
  if columns == 2 then return value_at(result, 0, 0), value_at(result, 0, 1) end
  if columns == 3 then return value_at(result, 0, 0), value_at(result, 0, 1), value_at(result, 0, 2) end
  return unpack(result:fetch_row(), 1, columns)
end

function Statement:next_result() return self[0]:next_result() end

function Statement:close()
  local connection = self[0]
  classify(self, "closed", ClosedStatement, self.id, self.text, self.wanted, self.kinds)
  if not connection.closed then
    if connection.loading then settle(connection) end
    if connection.deferring then flush(connection) end
    yield(CLOSE, connection[NUMBER], self.id)
  end
  return 0
end

-- Drivers -----------------------------------------------------------------------------------------------------------

local Driver = {}
Driver.__index = Driver
Driver.__tostring = function() return "<sql_driver>" end

function Driver:name() return self.kind end

local drivers = {} -- by name

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

--- A refused connection is an error of the script's line; the front says why in its own words.
local function connection_refused(session, kind, errno, state, message, target, class)
  local text = "connection creation failed"
  if front.refuse_connection then
    -- A top level that connects has no options yet.
    local opt = session.sysbench.opt or core.options or {}
    front.refuse_connection(kind, opt, errno, state, message, target, class)
  else
    text = text .. ": " .. message
  end
  session.last_error = text
  raise(text)
end

function Driver:connect()
  local session = current()
  local number = session.connections or 0
  session.connections = number + 1
  local connection = setmetatable({ number, false, false, 0, 0 }, Connection)
  if self ~= Connection.driver then connection.driver = self end
  local answer, errno, state, message, _, target, class = yield(CONNECT, number, self.kind)
  if answer ~= nil then
    connection.closed, connection[BUSY] = true, true
    connection_refused(session, self.kind, errno, state, message, target, class)
  end
  return connection
end

function sql.driver(name)
  if name == nil then name = core.driver end
  if front.check_driver then
    front.check_driver(name, current().sysbench.opt or {})
  elseif name ~= core.driver then
    raise("failed to initialize the DB driver: the script asks for '" .. tostring(name) .. "', but the database is '"
      .. core.driver .. "'")
  end
  return driver_of(name)
end

-- For the front ------------------------------------------------------------------------------------------------------

--- Rolls back, as the driver's own doing.
function core.roll_back(connection) yield(ask.ROLLBACK, connection[NUMBER]) end

--- Closes a connection and opens it again; whether that worked.
function core.try_reconnect(connection) return yield(RECONNECT, connection[NUMBER]) == nil end

core.query_row = Connection.query_row

-- What load.lua goes on with.
core.connections = {
  class = Connection, NUMBER = NUMBER, BUSY = BUSY, ROWS = ROWS,
  closed = closed, text_of = text_of, settle = settle, flush = flush, failed = statement_failed,
}
