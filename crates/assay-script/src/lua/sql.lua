--- `sysbench.sql`: drivers, connections, statements, parameters, results.
--
-- A statement is a yield: the engine runs it and answers with nothing (no result set), with ROWS, or with FAILED. The
-- rows themselves stay in Rust until the next statement on their connection; a result object points at them.
local core = ...
local ffi = require("ffi")
local new_table = require("table.new")
local buffer = require("string.buffer")
local ask, shared, current, raise = core.ask, core.shared, core.current, core.raise
local yield = coroutine.yield
local CONNECT, DISCONNECT, RECONNECT = ask.CONNECT, ask.DISCONNECT, ask.RECONNECT
local QUERY, PREPARE, EXECUTE, CLOSE, LOAD = ask.QUERY, ask.PREPARE, ask.EXECUTE, ask.CLOSE, ask.LOAD
local DEFER, FLUSH = ask.DEFER, ask.FLUSH

local ROWS = 1 -- the answer's first value; anything else that is not nil is FAILED

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

-- To scripts of sysbench a statement without rows gives a result that equals nil and still is true, as a null pointer does:
-- `assert(con:query("BEGIN"))` holds.
local NO_RESULT
if core.hosted then
  ffi.cdef "struct assay_no_result;"
  ffi.metatype("struct assay_no_result", {
    __tostring = Result.__tostring,
    __index = function() raise("the statement returned no rows, so there is no result set") end,
  })
  NO_RESULT = ffi.cast("struct assay_no_result *", nil)
end

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
  if core.hosted and is_stale(self) then
    core.message("ALERT", "attempt to fetch row from an invalid result set")
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

--- sysbench's methods that assert something also return the text of the assertion that did not fail.
local function asserted(text)
  if core.hosted then return true, text end
  return true
end

function Result:free()
  if free_result(shared, self[CONNECTION], self[SERIAL]) == 0 then
    core.message("ALERT", "attempt to free an invalid result set")
    raise("db_free_results() failed")
  end
  return asserted("db_free_results() failed")
end

-- Errors ------------------------------------------------------------------------------------------------------------

-- With a host, errors are judged here and at once, in the way of sysbench's drivers, transaction or not; without one the
-- engine judges them.
local LOST = { [2006] = true, [2011] = true, [2013] = true, [2055] = true } -- mysql
local RECONNECT_PAUSE = 0.001 -- seconds

local function is_ignorable(errno, state)
  for _, code in ipairs(core.options and core.options[core.driver .. "_ignore_errors"] or {}) do
    if code == "all" or code == state or (errno ~= 0 and tonumber(code) == errno) then return true end
  end
  return false
end

-- What a connection needs for every statement lies in the array of its table, close together: there may be thousands of
-- sessions, and between two statements of one come those of the others. BUSY: it is closed, or a loader's rows are on their
-- way; FAILED: the last statement did, and left `error` and what belongs to it; SETS: result sets of the last one; PREPARED:
-- statements so far. All else is a field, and there when it is needed.
local NUMBER, BUSY, FAILED, SETS, PREPARED = 1, 2, 3, 4, 5

--- What sysbench's driver does about an error before the script hears of it.
local function drivers_part(connection, statement, errno, state, message, ignorable)
  if ignorable then
    if core.driver == "pgsql" then
      yield(ask.ROLLBACK, connection[NUMBER])
    elseif LOST[errno] then
      while yield(RECONNECT, connection[NUMBER]) ~= nil do yield(ask.SLEEP, RECONNECT_PAUSE) end
    end
  elseif core.driver == "pgsql" then
    if type(statement) == "string" then
      core.message("FATAL", "PQexec() failed: 7 " .. message)
      core.message("FATAL", "failed query was: " .. statement)
    else
      core.message("FATAL", "PQexecPrepared() failed: 7 " .. message)
    end
  else
    local text = type(statement) == "string" and statement or statement.text
    core.message("FATAL", ("%s() returned error %d (%s) for query '%s'"):format(
      type(statement) == "string" and "mysql_drv_query" or "mysql_stmt_execute", errno, message, text))
  end
end

local Connection = { error = NONE, sql_errno = 0, closed = false, loading = false, deferring = false, set = 0 }

--- sysbench's `query_row` calls `query`, so the place of its errors is a line of its own.
local function called_by_query_row()
  for level = 3, 6 do
    local info = debug.getinfo(level, "f")
    if info and info.func == Connection.query_row then return true end
  end
end

--- Raises a statement error: a table that restarts the transaction, or a string. `ignorable` is the engine's verdict;
--- the script's hook may turn a fatal error into an ignorable one, and may use the connection to do so.
local function statement_failed(connection, statement, errno, state, message, ignorable)
  local session = current()
  local query = type(statement) == "string" and statement or "<prepared statement>"
  if core.hosted then
    if core.driver == "mysql" and errno == 0 then -- the network's errors have no number of the server's
      errno, state, message = 2013, "HY000", "Lost connection to server during query"
    end
    ignorable = is_ignorable(errno, state)
    drivers_part(connection, statement, errno, state, message, ignorable)
    if core.driver == "pgsql" then errno = 0 end
  end
  connection[FAILED] = true
  connection.error = ignorable and IGNORABLE or FATAL
  connection.sql_errno, connection.sql_state, connection.sql_errmsg = errno, state, message
  local description = {
    connection = connection, query = query, sql_errno = errno, sql_state = state, sql_errmsg = message,
  }
  if core.hosted then rawset(session.env, "errdesc", description) end
  if not ignorable then
    local hook = session.sysbench.hooks.sql_error_ignorable
    if type(hook) == "function" then
      if hook(description) then
        ignorable = true
        connection.error = IGNORABLE
      elseif core.hosted and connection.error == NONE then
        errno = 0 -- the number is the connection's, and the hook has used it
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
  if core.hosted and called_by_query_row() then error('[string "sysbench.sql.lua"]:300: ' .. text, 0) end
  raise(text)
end

--- A result with these rows. sysbench has one per connection, which every statement makes anew: a script that still holds
--- it sees, and frees, what the last statement returned.
local function result_of(connection, serial, rows, columns, set)
  if not core.hosted then return setmetatable({ connection[NUMBER], serial, rows, columns, set }, Result) end
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

--- PostgreSQL's C library gives the last of several result sets.
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
local function finish(connection, statement, answer, a, b, c, d)
  if connection[FAILED] then forgive(connection) end
  if answer == nil then
    connection[SETS] = 0
    return no_result(connection)
  elseif answer == ROWS then -- serial, rows, columns, number of result sets
    connection[SETS] = d
    if d > 1 then
      connection.serial, connection.set = a, 0
      if core.hosted and core.driver == "pgsql" then return last_set(connection) end
    end
    return result_of(connection, a, b, c)
  end
  no_result(connection)
  return statement_failed(connection, statement, a, b, c, d)
end

--- The same for a statement whose result nobody wants.
local function finish_unread(connection, statement, answer, a, b, c, d)
  if connection[FAILED] then forgive(connection) end
  if answer ~= nil and answer ~= ROWS then return statement_failed(connection, statement, a, b, c, d) end
  connection[SETS] = 0
end

local function closed()
  core.message("ALERT", "attempt to use an already closed connection")
  -- sysbench blames the caller of whoever called `query`.
  if core.hosted and not called_by_query_row() then error(core.outer_place() .. "SQL API error", 0) end
  raise("SQL API error")
end

-- Connections -------------------------------------------------------------------------------------------------------

Connection.__index = Connection
Connection.__tostring = function() return "<sql_connection>" end

local function text_of(value, what, line, name)
  local kind = type(value)
  if kind == "string" then return value end
  if core.hosted and line and kind ~= "table" then
    error(('[string "sysbench.sql.lua"]:%d: attempt to get length of local \'%s\' (a %s value)'):format(line, name, kind), 0)
  end
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
  if type(text) ~= "string" then text = text_of(text, "statement", 269, "query") end
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
local bulk_gap = core.hosted and "" or " " -- between prefix and first row

local function bulk_flush(self, caller)
  local bulk = self.bulk
  if bulk.rows == 0 then return end
  if self.loading then settle(self) end
  if self.deferring then flush(self) end
  local text = bulk.text:get()
  bulk.rows = 0
  local answer, errno, state, message = yield(QUERY, self[NUMBER], text)
  if answer ~= nil and answer ~= ROWS then
    if core.hosted then
      local ignorable = is_ignorable(errno, state)
      drivers_part(self, text, errno, state, message, ignorable)
      self[FAILED], self.error = true, ignorable and IGNORABLE or FATAL
      bulk.text:put(text)
      bulk.rows = 1 -- what failed is sent again, until the next `bulk_insert_init`
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
  prefix = text_of(prefix, "text of the bulk insert", 274, "query")
  self.bulk = { prefix = prefix, text = buffer.new(), rows = 0 }
  return asserted("db_bulk_insert_init() failed")
end

--- Adds a row: `values` is like `(1, 'x')`.
function Connection:bulk_insert_next(values)
  local bulk = self.bulk
  if core.hosted then values = text_of(values, "row of the bulk insert", 279, "val") end
  if not bulk then
    core.message("ALERT", "attempt to call bulk_insert_next() before bulk_insert_init()")
    raise("db_bulk_insert_next() failed")
  end
  values = text_of(values, "row of the bulk insert", 279, "val")
  if #bulk.prefix + #values + 1 > BULK_MAX then
    if core.hosted then
      core.message("FATAL", "Query length exceeds the maximum value (" .. BULK_MAX .. "), aborting")
      raise("db_bulk_insert_next() failed")
    end
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
local Substituted = {} -- sent as text, with the values in it: what the server does not prepare, or never should
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

local NOT_PREPARABLE = 1295 -- mysql

--- The text as PostgreSQL is given it: `$1`, `$2`, … for the placeholders.
local function numbered(text)
  local count, quote = 0, nil
  return (text:gsub("['\"`?]", function(mark)
    if mark == "?" then
      if quote then return end
      count = count + 1
      return "$" .. count
    elseif quote == nil then
      quote = mark
    elseif quote == mark then
      quote = nil
    end
  end))
end

-- Columns of a line that libpq shows, and how many of them it leaves to the right of the mark at least.
local SHOWN, RIGHT = 60, 10

--- The line of `text` that holds character `position` (from 1), and a mark below it, as libpq shows them.
local function marked(text, position)
  if position < 1 then return "" end
  local characters, line, first, last = {}, 1, 1, nil
  for character in text:gmatch("[%z\1-\127\194-\244][\128-\191]*") do
    local n = #characters + 1
    characters[n] = character == "\t" and " " or character
    if character == "\n" then
      if n < position then
        line, first = line + 1, n + 1
      else
        last = last or n - 1
      end
    end
  end
  last = last or #characters
  local before, after = "", ""
  if last - first + 1 > SHOWN then
    if first + SHOWN >= position + RIGHT then
      last, after = first + SHOWN - 1, "..."
    else
      if position + RIGHT <= last then last, after = position + RIGHT - 1, "..." end
      if last - first + 1 > SHOWN then first, before = last - SHOWN + 1, "..." end
    end
  end
  local head = "LINE " .. line .. ": " .. before
  return head .. table.concat(characters, "", first, last) .. after .. "\n"
    .. (" "):rep(#head + position - first) .. "^\n"
end

--- Prepares a statement. With `kinds`, a letter per placeholder (`i` integer, `d` double, `t` text), it is executed with
--- values; without, with the parameters bound to it.
function Connection:prepare(text, kinds)
  if self[BUSY] then make_ready(self) end
  if self.deferring then flush(self) end
  text = text_of(text, "statement", 289, "query")
  local wanted = placeholders(text)
  if kinds ~= nil then
    if type(kinds) ~= "string" or kinds:find("[^idt]") then raise("the kinds of parameters are letters: i, d or t") end
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
  if errno == NOT_PREPARABLE then return classify(statement, "text", Substituted, id, text, wanted, kinds or "") end
  if not core.hosted then return statement_failed(self, text, errno, state, message, ignorable) end
  local stale = self.error ~= NONE
  self.error = NONE
  if core.driver == "pgsql" then
    if hint ~= "" then hint = "HINT:  " .. hint .. "\n" end
    core.message("FATAL", "PQprepare() failed: ERROR:  " .. message .. "\n" .. marked(numbered(text), position) .. hint)
    local reason = core.error_text(0, state, message)
    error('[string "sysbench.sql.lua"]:291: ' .. reason, 0)
  end
  core.message("FATAL", "mysql_stmt_prepare() failed")
  core.message("FATAL", ("MySQL error: %d \"%s\""):format(errno, message))
  if stale then -- sysbench tells of the error before, without its words
    error('[string "sysbench.sql.lua"]:291: ' .. core.error_text(self.sql_errno, "00000", ""), 0)
  end
  raise("SQL API error")
end

-- Parameters: there are as many as there are placeholders in all statements of all sessions, so a parameter holds its
-- value only. What parameters of one type and length have in common is their metatable.

local function integer(value)
  local kind = type(value)
  if kind == "number" or kind == "nil" then return value end
  if kind == "cdata" then return (tostring(value):gsub("U?LL$", "")) end -- 64 bits travel as digits
  if kind == "boolean" then return value and 1 or 0 end
  return tonumber(value) or raise("'" .. tostring(value) .. "' is not a number")
end

local function double(value)
  if type(value) == "number" or value == nil then return value end
  return tonumber(value) or raise("'" .. tostring(value) .. "' is not a number")
end

-- How a parameter travels: a letter, read in `src/state.rs`, and what makes a value of it.
local TRAVEL = {
  [1] = { "i", integer }, [2] = { "i", integer }, [3] = { "i", integer }, [4] = { "i", integer },
  [5] = { "d", double }, [6] = { "d", double }, [11] = { "t" }, [12] = { "t" },
}

local parameter_classes = {}

local function parameter_class(kind, max_len)
  local travel = TRAVEL[kind]
  if core.hosted and not travel and type(kind) ~= "string" and type(kind) ~= "number" then
    error('[string "sysbench.sql.lua"]:402: attempt to concatenate local \'btype\' (a ' .. type(kind) .. " value)", 0)
  end
  if not travel then raise("Unsupported argument type: " .. tostring(kind)) end
  if core.hosted and travel[1] == "t" and type(max_len) ~= "number" then
    core.refuse_argument('[string "sysbench.sql.lua"]:399: ', 2, "new", max_len, "int")
  elseif travel[1] == "t" and not tonumber(max_len) then
    raise("a CHAR or VARCHAR parameter needs its greatest length")
  end
  local key = kind .. ":" .. (max_len or "")
  local class = parameter_classes[key]
  if class then return class end
  local convert = travel[2] or function(value)
    if value == nil then return nil end
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
    if not core.hosted then
      core.log(("ALERT: wrong number of parameters to a prepared statement: %d bound, %d expected"):format(
        count, self.wanted))
    elseif core.driver == "pgsql" then
      core.message("ALERT", "wrong number of parameters in prepared statement")
    else
      core.message("FATAL", "Wrong number of parameters to mysql_stmt_bind_param")
    end
    return 1
  end
  local letters = {}
  for i = 1, count do
    local parameter = select(i, ...)
    if core.hosted and type(parameter) ~= "table" then
      error(('[string "sysbench.sql.lua"]:420: attempt to index local \'param\' (a %s value)'):format(type(parameter)), 0)
    end
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
local function literal(value)
  if value == nil then return "NULL" end
  if type(value) == "number" then
    return value % 1 == 0 and ("%.0f"):format(value) or ("%.17g"):format(value)
  end
  value = value:gsub("'", "''")
  if core.driver == "mysql" then value = value:gsub("\\", "\\\\") end
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
      local value = values[i]
      -- Integers of 64 bits are digits already.
      local kind = statement.kinds:sub(i, i)
      local digits = kind ~= "t" and type(value) == "string"
      if kind == "i" and type(value) == "number" then value = value < 0 and math.ceil(value) or math.floor(value) end
      parts[#parts + 1] = statement.text:sub(start, position - 1) .. (digits and value or literal(value))
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

function ValueStatement:perform(...) self:execute(...) end

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

-- Loading ------------------------------------------------------------------------------------------------------------

local rows_new = core.bind("rows_new", "uint32_t (*)(void *, uint32_t)")
local rows_address = core.bind("rows_address", "void *(*)(void *, uint32_t)")
local rows_null = core.bind("rows_null", "void (*)(void *)")
local rows_number = core.bind("rows_number", "void (*)(void *, double)")
local rows_int64 = core.bind("rows_int64", "void (*)(void *, int64_t)")
local rows_text = core.bind("rows_text", "int (*)(void *, const char *, size_t)")
local rows_random_text = core.bind("rows_random_text", "int (*)(void *, void *, uint32_t, uint32_t)")
local rows_filled_text = core.bind("rows_filled_text", "int (*)(void *, void *, const char *, size_t)")
local rows_size = core.bind("rows_size", "uint32_t (*)(void *)")
local rows_clear = core.bind("rows_clear", "void (*)(void *, uint32_t)")

-- Bytes after which a loader sends what it has. The larger the batches, the less often a server commits and waits for its
-- disk; all sessions together shall hold no more than 32 MiB, unless even 1 MiB for each is more. MySQL's servers refuse
-- packets above their max_allowed_packet, which may be little: what goes to them stays at 1 MiB.
local LOAD_SIZE = core.driver == "mysql" and 2 ^ 20 or math.max(2 ^ 20, math.min(2 ^ 22, 2 ^ 25 / core.sessions_in_all))

local Loader = {}
Loader.__index = Loader
Loader.__tostring = function() return "<assay_loader>" end

-- A random text that a loader makes where it is needed: a load makes millions of them, and Lua would spend more time on
-- strings than on everything else. Letters and digits, `low` to `high` of them, or what `rand.string` makes of `format`.
local RandomCell = {}
RandomCell.__index = RandomCell
RandomCell.__tostring = function() return "<assay_random_cell>" end

function core.random_cell(low, high)
  if type(low) == "string" then return setmetatable({ format = low }, RandomCell) end
  if not (low <= high and low >= 0 and high <= 65535) then raise("random_cell needs 0 <= low <= high <= 65535") end
  return setmetatable({ low = low, high = high }, RandomCell)
end

local function put(loader, value)
  local kind = type(value)
  if kind == "string" then
    if rows_text(loader.rows, value, #value) ~= 0 then return end
  elseif kind == "number" then
    return rows_number(loader.rows, value)
  elseif kind == "nil" then
    return rows_null(loader.rows)
  elseif kind == "boolean" then
    return rows_number(loader.rows, value and 1 or 0)
  elseif kind == "table" and getmetatable(value) == RandomCell then
    local format = value.format
    if format then
      if rows_filled_text(shared, loader.rows, format, #format) ~= 0 then return end
    elseif rows_random_text(shared, loader.rows, value.low, value.high) ~= 0 then
      return
    end
  elseif kind == "cdata" and (ffi.istype("int64_t", value) or ffi.istype("uint64_t", value)) then
    return rows_int64(loader.rows, value)
  end
  loader.broken = true
  raise("a " .. kind .. " value cannot be loaded into a column")
end

function Loader:flush()
  if self.broken then raise("an earlier error has left this loader with half a row") end
  if rows_size(self.rows) == 0 then return end
  local connection = self.connection
  if connection.loading then settle(connection) end
  if connection.deferring then flush(connection) end
  local answer, errno, state, message, ignorable = yield(LOAD, connection[NUMBER], self.table, self.columns, self.id)
  rows_clear(self.rows, self.width)
  if answer == true then -- sent; the answer is still to come
    connection.loading, connection[BUSY] = self.table, true
  elseif answer ~= nil and answer ~= ROWS then
    statement_failed(connection, "<load into " .. self.table .. ">", errno, state, message, ignorable)
  end
end

--- Sends what is left, and waits until all is stored. Call it after the last row.
function Loader:done()
  local connection = self.connection
  if connection.closed then closed() end
  self:flush()
  if connection.loading then settle(connection) end
  return true
end

-- One `row` per number of columns, without a loop over its arguments.
local row_of_width = {}

local function row_function(width)
  local known = row_of_width[width]
  if not known then
    local names, puts = {}, {}
    for i = 1, width do
      names[i] = "v" .. i
      puts[i] = "put(self, v" .. i .. ")"
    end
    local text = ("local put, size, limit = ...; return function(self, %s) %s; " ..
      "if size(self.rows) >= limit or self.broken then self:flush() end end"):format(
      table.concat(names, ", "), table.concat(puts, "; "))
    known = loadstring(text, "=assay/loader")(put, rows_size, LOAD_SIZE)
    row_of_width[width] = known
  end
  return known
end

--- A way to append many rows to `table`: `loader:row(v1, v2, …)` for each, then `loader:done()`.
function Connection:loader(name, columns)
  if self.closed then closed() end
  name, columns = text_of(name, "table's name"), text_of(columns, "list of columns")
  local bare = columns:gsub('"[^"]*"', ""):gsub("`[^`]*`", "")
  local width = select(2, bare:gsub(",", "")) + 1
  local id = rows_new(shared, width)
  return setmetatable({
    connection = self, table = name, columns = columns, width = width, id = id, rows = rows_address(shared, id),
    row = row_function(width),
  }, Loader)
end

-- Drivers -----------------------------------------------------------------------------------------------------------

local Driver = {}
Driver.__index = Driver
Driver.__tostring = function() return "<sql_driver>" end

function Driver:name() return core.driver end

--- Where the target of this number is: its turn among sockets, or among the ports of all hosts.
local function place_of(target, opt)
  local function turn(list) return list[target % #list + 1] end
  if #(opt.mysql_socket or {}) > 0 then return nil, nil, turn(opt.mysql_socket) end
  local places = {}
  for _, host in ipairs(opt.mysql_host or {}) do
    for _, port in ipairs(opt.mysql_port or {}) do places[#places + 1] = { host, port } end
  end
  if #places == 0 then return "localhost", "3306" end
  return unpack(turn(places))
end

--- What the driver of MySQL says of a connection that could not be made. The network's errors have no number of the
--- server's; those of the C client stand for them.
local function mysql_refused(target, opt, errno, message)
  local host, port, socket = place_of(target, opt)
  if socket then
    core.message("FATAL", ("unable to connect to MySQL server on socket '%s', aborting..."):format(socket))
  else
    core.message("FATAL", ("unable to connect to MySQL server on host '%s', port %s, aborting..."):format(host, port))
  end
  if errno == 0 and (socket or host == "localhost") then
    local cause = message:find("refused") and socket and 111 or 2
    errno, message = 2002, ("Can't connect to local server through socket '%s' (%d)"):format(
      socket or "/run/mysqld/mysqld.sock", cause)
  elseif errno == 0 and message:find("/nonexistent/", 1, true) then
    errno, message = 2005, ("Unknown server host '%s' (-2)"):format(host)
  elseif errno == 0 then
    errno, message = 2002, ("Can't connect to server on '%s' (115)"):format(host)
  end
  core.message("FATAL", ("error %d: %s"):format(errno, message))
end

--- The same in libpq's words.
local function pgsql_refused(opt, state, message)
  local host, port = opt.pgsql_host or "", opt.pgsql_port or 5432
  local reason = ("FATAL:  %s"):format(message)
  local at = ('connection to server at "%s"%s, port %d failed: '):format(host,
    host == "localhost" and " (127.0.0.1)" or "", port)
  local advice = "\n\tIs the server running on that host and accepting TCP/IP connections?"
  if host:sub(1, 1) == "/" then
    at = ('connection to server on socket "%s/.s.PGSQL.%d" failed: '):format(host, port)
    advice = "\n\tIs the server running locally and accepting connections on that socket?"
  end
  if state == nil or state == "" then
    if message:find("/nonexistent/", 1, true) then
      at = ('could not translate host name "%s" to address: '):format(host)
      reason = "Name or service not known"
    else
      reason = (message:match(": ([^:]+)$") or message):gsub("^%l", string.upper) .. advice
    end
  end
  core.message("FATAL", "Connection to database failed: " .. at .. reason .. "\n")
end

--- Where there is a host, a refused connection is told by the driver, and the script learns that there is none.
local function connection_refused(session, errno, state, message, target)
  local text = "connection creation failed"
  -- A top level that connects has no options yet.
  local opt = session.sysbench.opt or core.options or {}
  if not core.hosted then
    text = text .. ": " .. message
  elseif core.driver == "mysql" then
    mysql_refused(target, opt, errno, message)
  elseif core.driver == "pgsql" then
    pgsql_refused(opt, state, message)
  else
    core.message("FATAL", message)
  end
  session.last_error = text
  raise(text)
end

function Driver:connect()
  local session = current()
  local number = session.connections or 0
  session.connections = number + 1
  local connection = setmetatable({ number, false, false, 0, 0 }, Connection)
  local answer, errno, state, message, _, target = yield(CONNECT, number)
  if answer ~= nil then
    connection.closed, connection[BUSY] = true, true
    connection_refused(session, errno, state, message, target)
  end
  return connection
end

local KNOWN = { mysql = true, pgsql = true, sqlite = true }
local driver = setmetatable({}, Driver)
Connection.driver = driver

local host_database = core.bind("host_database", "void (*)(void *)")

local function no_driver(reason)
  core.message("FATAL", reason)
  raise("failed to initialize the DB driver")
end

function sql.driver(name)
  if name == nil then name = core.driver end
  if core.hosted and type(name) ~= "string" then
    core.refuse_argument('[string "sysbench.sql.lua"]:182: ', 1, "db_create", name, "const char *")
  elseif name == "" then
    no_driver("Multiple DB drivers are available. Use --db-driver=name to specify which one to use")
  elseif not KNOWN[name] then
    no_driver("invalid database driver name: '" .. tostring(name) .. "'")
  elseif name ~= core.driver then
    raise("failed to initialize the DB driver: the script asks for '" .. name .. "', but the database is '"
      .. core.driver .. "'")
  end
  if core.hosted then
    local mode = (current().sysbench.opt or {}).db_ps_mode
    if mode ~= nil and mode ~= "auto" and mode ~= "disable" then
      no_driver("Invalid value for db-ps-mode: " .. tostring(mode))
    end
    host_database(shared)
  end
  return driver
end
