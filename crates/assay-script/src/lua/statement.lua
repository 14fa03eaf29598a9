--- Prepared statements and their parameters: `con:prepare(…)`.
--
--
-- A statement is executed with the parameters bound to it, or with values if it was prepared with their kinds. If
-- nothing must be prepared, the values are inserted into its text.
local core = ...
local ffi = require("ffi")
local new_table = require("table.new")
local ask, shared, raise, front, connections = core.ask, core.shared, core.raise, core.front, core.connections
local yield = coroutine.yield
local QUERY, PREPARE, EXECUTE, CLOSE, DEFER, PIPE = ask.QUERY, ask.PREPARE, ask.EXECUTE, ask.CLOSE, ask.DEFER, ask.PIPE
local PERFORM = ask.PERFORM
local Connection, NUMBER, BUSY, PREPARED = connections.class, connections.NUMBER, connections.BUSY, connections.PREPARED
local ROWS, LENGTH, WIDTH = connections.ROWS, connections.LENGTH, connections.WIDTH
local finish, finish_unread, statement_failed = connections.finish, connections.finish_unread, connections.failed
local closed, text_of, value_at = connections.closed, connections.text_of, connections.value_at
local make_ready, settle, flush = connections.make_ready, connections.settle, connections.flush

-- A statement of a session is its connection, at 0, and its parameters, if any are bound, from 1. What it shares with
-- those of other sessions is its class: the number it was prepared under, its text, the kinds of its parameters, and
-- its methods. One that is executed with values has nothing of its own but the connection: all sessions whose first
-- connection prepared it under the same number have the same one, which finds that connection.
local Statement = {}
local ValueStatement = {} -- executed with values
local Substituted = {} -- sent as text, with the values in it: nothing is to be prepared
local ClosedStatement = {}

local statement_classes = setmetatable({}, { __mode = "v" })
local first_connections = connections.first -- by session

local function class_of(name, methods, id, text, wanted, kinds)
  local key = table.concat({ name, id, kinds, text }, "\0")
  local class = statement_classes[key]
  if not class then
    class = {
      __tostring = function() return "<sql_statement>" end, opaque = true,
      name = name, methods = methods, id = id, text = text, wanted = wanted, kinds = kinds,
    }
    for method, body in next, Statement do class[method] = body end
    for method, body in next, methods do class[method] = body end
    class.__index = function(self, field)
      if field == "connection" then return self[0] end
      if field == 0 then return first_connections[shared.session] end
      return class[field]
    end
    if methods == ValueStatement then
      class.__newindex = function(_, field)
        raise(("a statement that is executed with values cannot keep a field `%s`"):format(tostring(field)))
      end
    end
    statement_classes[key] = class
  end
  return class
end

local function classify(statement, ...) return setmetatable(statement, class_of(...)) end

--- A statement of this connection that is executed with values.
local function value_statement(connection, id, text, wanted, kinds)
  local class = class_of("values", ValueStatement, id, text, wanted, kinds)
  if connection ~= first_connections[shared.session] then return setmetatable({ [0] = connection }, class) end
  if not class.of_all then class.of_all = setmetatable({}, class) end
  return class.of_all
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

--- Prepares a statement. With `kinds`, a letter per placeholder (`i` integer, `d` double, `t` text, `b` bytes, `a` as
--- the value is; the OLTP workloads also `w`, an integer whose fraction is cut off), it is executed with values;
--- without, with the parameters bound to it.
function Connection:prepare(text, kinds)
  if self[BUSY] then make_ready(self) end
  if self.deferring then flush(self) end
  text = text_of(text, "statement to prepare")
  local wanted = placeholders(text)
  if kinds ~= nil then
    if type(kinds) ~= "string" or kinds:find("[^idtbaw]") then
      raise("the kinds of parameters are letters: i, d, t, b or a")
    end
    if #kinds ~= wanted then
      raise(("the statement has %d placeholders, but %d kinds are given"):format(wanted, #kinds))
    end
  end
  local id = self[PREPARED]
  local function statement()
    local own = new_table(math.max(wanted, 1), 0)
    own[0] = self
    return own
  end
  if core.options and core.options.db_ps_mode == "disable" then
    return classify(statement(), "text", Substituted, id, text, wanted, kinds or "")
  end
  self[PREPARED] = id + 1
  local answer, errno, state, message, ignorable, position, hint, details = yield(PREPARE, self[NUMBER], id, text)
  if answer == nil or answer == ROWS then
    if kinds then return value_statement(self, id, text, wanted, kinds) end
    return classify(statement(), "parameters", Statement, id, text, wanted, "")
  end
  if front.refuse_prepare then front.refuse_prepare(self, text, errno, state, message, position, hint, details) end
  return statement_failed(self, text, errno, state, message, ignorable)
end

-- Values that are not a number or text already.

-- All digits of a number, and no more.
local function digits_of(number)
  if number % 1 == 0 and math.abs(number) < 2 ^ 63 then return ("%.0f"):format(number) end
  local short = ("%.15g"):format(number)
  return tonumber(short) == number and short or ("%.17g"):format(number)
end

--- A number or text with the same value as one that a parameter of this kind does not accept unchanged; nil and a
--- reason if there is none.
function core.exact(kind, value)
  if ffi.istype("int64_t", value) or ffi.istype("uint64_t", value) then
    local digits = tostring(value):gsub("U?LL$", "")
    if kind ~= "d" then return digits end
    local number = tonumber(value)
    if ("%.0f"):format(number) == digits then return number end
    return nil, "no double is equal to " .. digits
  end
  if kind == "b" then return nil, "a " .. type(value) .. " is not a string of bytes" end
  if type(value) == "string" then return nil, "'" .. value .. (kind == "d" and "' is not a number" or "' is not a whole number") end
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

-- Parameters: there are as many as there are placeholders in all statements of all sessions, so a parameter contains
-- only its value. What parameters of one type and length share is their metatable.

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

-- How a parameter is passed: a letter, read in `src/state.rs`, and its conversion of a value. Fractions of a number are
-- cut off, as in sysbench.
local TRAVEL = {
  [1] = { "w", integer }, [2] = { "w", integer }, [3] = { "w", integer }, [4] = { "w", integer },
  [5] = { "d", double }, [6] = { "d", double }, [11] = { "t" }, [12] = { "t" },
}

local parameter_classes = {}

local function parameter_class(kind, max_len)
  local travel = TRAVEL[kind]
  if not travel and front.not_a_type then front.not_a_type(kind) end
  if not travel then raise(tostring(kind) .. " is not a type that parameters have") end
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

--- Binds parameters, one per placeholder, in order. Returns 0 on success.
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

--- `how`: EXECUTE, PERFORM, DEFER or PIPE.
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

--- The connection of a statement before its execution.
local function usable(statement)
  local connection = statement[0]
  if connection[BUSY] then make_ready(connection) end
  return connection
end

--- Runs the statement. Returns a result object if it returned rows, else nil.
function Statement:execute()
  local connection = usable(self)
  return finish(connection, self, execute(self, EXECUTE))
end

--- The engine's answer to DEFER and PIPE is true, or that to a statement that was run immediately.
local function deferred(connection, statement, answer, ...)
  if answer == true then
    connection.deferring = true
    return true
  end
  finish(connection, statement, answer, ...)
  return false
end

--- Runs the statement together with the next one of the connection, which then raises its error. True if it waits for
--- that one, false if it was run immediately.
function Statement:defer()
  local connection = usable(self)
  return deferred(connection, self, execute(self, DEFER))
end

--- The same in a pipeline, whatever the statement does: its rows are not read.
function Statement:pipe()
  local connection = usable(self)
  return deferred(connection, self, execute(self, PIPE))
end

--- Runs the statement and returns nothing: its rows are not read and need no result object. Values are set first.
function Statement:perform(...)
  for i = 1, select("#", ...) do self[i]:set((select(i, ...))) end
  local connection = usable(self)
  return finish_unread(connection, self, execute(self, PERFORM))
end

--- A text as written in the text of a statement.
local function quoted(driver, text)
  text = text:gsub("'", "''")
  if driver.backslash_escapes then text = text:gsub("\\", "\\\\") end
  return "'" .. text .. "'"
end

--- A value as written in the text of a statement.
local function literal(driver, kind, value, i)
  if value == nil then return "NULL" end
  if type(value) == "boolean" and kind ~= "b" then return value and "1" or "0" end
  if type(value) ~= "string" then
    local exact, reason = core.exact(kind, value)
    if exact == nil then raise("parameter " .. i .. ": " .. reason) end
    value = type(exact) == "number" and digits_of(exact) or exact
  end
  if kind == "b" then raise("parameter " .. i .. ": binary values need prepared statements") end
  if kind ~= "t" and tonumber(value) then return value end
  return quoted(driver, value)
end

--- The text of a statement with `count` placeholders: what comes before each of them, and what comes after the last.
local function parts_of(text, count)
  local parts, start, quote = {}, 1, nil
  for position, mark in text:gmatch("()(['\"`?])") do
    if mark ~= "?" then
      if not quote then quote = mark elseif quote == mark then quote = nil end
    elseif not quote and #parts < count then
      parts[#parts + 1] = text:sub(start, position - 1)
      start = position + 1
    end
  end
  parts[#parts + 1] = text:sub(start)
  return parts
end

--- The text with the placeholders replaced by values: those given, or those of the parameters.
local function substituted(statement, ...)
  local kinds, given = statement.kinds, select("#", ...) > 0
  if #kinds == 0 then return statement.text end
  local parts = parts_of(statement.text, #kinds)
  for i = 1, #kinds do
    local value
    if given then value = select(i, ...) else value = statement[i][1] end
    parts[i] = parts[i] .. literal(statement[0].driver, kinds:sub(i, i), value, i)
  end
  return table.concat(parts)
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

Substituted.pipe = Substituted.defer

function Substituted:close()
  classify(self, "closed", ClosedStatement, self.id, self.text, self.wanted, self.kinds)
  return 0
end

function ClosedStatement:execute()
  if self[0].closed then closed() end
  raise("attempt to use an already closed statement")
end

ClosedStatement.perform, ClosedStatement.defer = ClosedStatement.execute, ClosedStatement.execute
ClosedStatement.pipe = ClosedStatement.execute

function ClosedStatement.close() return 0 end

--- The same for a statement of this class that is given this many values.
local function usable_with(statement, class, count)
  local connection, wanted = statement[0], #class.kinds
  if connection[BUSY] then
    make_ready(connection)
    local gone = connection.closed_statements
    if gone and gone[class.id] then ClosedStatement.execute(statement) end
  end
  if count ~= wanted then raise(("the statement takes %d values, but %d are given"):format(wanted, count)) end
  return connection
end

function ValueStatement:execute(...)
  local class = getmetatable(self)
  local connection = usable_with(self, class, select("#", ...))
  return finish(connection, self, yield(EXECUTE, connection[NUMBER], class.id, class.kinds, ...))
end

function ValueStatement:defer(...)
  local class = getmetatable(self)
  local connection = usable_with(self, class, select("#", ...))
  return deferred(connection, self, yield(DEFER, connection[NUMBER], class.id, class.kinds, ...))
end

function ValueStatement:pipe(...)
  local class = getmetatable(self)
  local connection = usable_with(self, class, select("#", ...))
  return deferred(connection, self, yield(PIPE, connection[NUMBER], class.id, class.kinds, ...))
end

function ValueStatement:perform(...)
  local class = getmetatable(self)
  local connection = usable_with(self, class, select("#", ...))
  return finish_unread(connection, self, yield(PERFORM, connection[NUMBER], class.id, class.kinds, ...))
end

function ValueStatement:bind_param()
  raise("this statement was prepared to be executed with values, not parameters")
end

--- The same for a statement of one row: its columns as several values; nothing if there is no row.
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

local function close(connection, id)
  if connection.loading then settle(connection) end
  if connection.deferring then flush(connection) end
  yield(CLOSE, connection[NUMBER], id)
end

function Statement:close()
  local connection = self[0]
  classify(self, "closed", ClosedStatement, self.id, self.text, self.wanted, self.kinds)
  if not connection.closed then close(connection, self.id) end
  return 0
end

--- Other sessions may use it still.
function ValueStatement:close()
  local connection = self[0]
  local gone = connection.closed_statements or {}
  if connection.closed or gone[self.id] then return 0 end
  close(connection, self.id)
  gone[self.id] = true
  connection.closed_statements, connection[BUSY] = gone, true
  return 0
end

-- Used by lean.lua and straight.lua.
core.statements = {
  values = ValueStatement, substituted = Substituted, usable_with = usable_with, deferred = deferred,
  quoted = quoted, parts_of = parts_of, text_with = substituted,
}
