--- Lean statements, `stmt:lean(…)`: those executed with values, in a form that costs less.
--
-- A lean statement is a connection, at 0, and what all its executions have in common. No function that takes any number
-- of values stands between the script and `yield`: LuaJIT compiles nothing that returns from such a function to its
-- caller, so with one, everything from the answer to the end of the caller's work would run in the interpreter. All are
-- of one class: what is compiled for one statement is right for the others.
local core = ...
local ask, raise, connections, statements = core.ask, core.raise, core.connections, core.statements
local yield = coroutine.yield
local ROW, EXECUTE, PERFORM, DEFER = ask.ROW, ask.EXECUTE, ask.PERFORM, ask.DEFER
local NUMBER, BUSY, FAILED, SETS = connections.NUMBER, connections.BUSY, connections.FAILED, connections.SETS
local LENGTH, WIDTH = connections.LENGTH, connections.WIDTH
local finish, finish_unread = connections.finish, connections.finish_unread
local forgive, value_at = connections.forgive, connections.value_at
local usable_with, deferred = statements.usable_with, statements.deferred
local COLUMNS = 4 -- the answer to ROW: columns come after it

--- The value in a row and a column, both from 1, as a string; nil for NULL, and outside of the result.
function connections.result:value(row, column) return value_at(self, row - 1, column - 1) end

local Lean = { opaque = true, __tostring = function() return "<sql_statement>" end }
Lean.__index = Lean
local ID, KINDS, ORIGIN, WANTED = 1, 2, 3, 4
local LEAN_MAX = 9

--- The statement in a form that costs less to execute: its methods take up to nine values, and those left out are NULL;
--- `row` returns at most four columns. `columns`: what becomes of them, a letter each: `t`, a text, as by default; `n`,
--- a number; `-`, false. Those without a letter are not returned.
function statements.values:lean(columns)
  local class = getmetatable(self)
  if #class.kinds > LEAN_MAX then raise("a lean statement has at most " .. LEAN_MAX .. " placeholders") end
  columns = columns or "tttt"
  if type(columns) ~= "string" or not columns:find("^[tn-]+$") or #columns > 4 then
    raise("the columns of a lean statement are up to four letters: t, n or -")
  end
  return setmetatable({ [0] = self[0], class.id, class.kinds, self, columns }, Lean)
end

--- Values are inserted into its text: nothing is to be saved.
function statements.substituted:lean() return self end

local function make_lean_ready(statement)
  usable_with(statement[ORIGIN], getmetatable(statement[ORIGIN]), #statement[KINDS])
end

local function unusual_row(connection, statement, answer, a, b, c, d, ...)
  if answer == COLUMNS then
    forgive(connection)
    connection[SETS] = 1
    return a, b, c, d
  end
  local result = finish(connection, statement, answer, a, b, c, d, ...)
  if result == nil or result[LENGTH] == 0 then return end
  return unpack(result:fetch_row(), 1, math.min(result[WIDTH], 4))
end

function Lean:row(a, b, c, d, e, f, g, h, i)
  local connection = self[0]
  if connection[BUSY] then make_lean_ready(self) end
  local answer, p, q, r, s, t, u, v = yield(ROW, connection[NUMBER], self[ID], self[KINDS], a, b, c, d, e, f, g, h, i,
    self[WANTED])
  if answer == COLUMNS and not connection[FAILED] then
    connection[SETS] = 1
    return p, q, r, s
  end
  return unusual_row(connection, self[ORIGIN], answer, p, q, r, s, t, u, v)
end

function Lean:execute(a, b, c, d, e, f, g, h, i)
  local connection = self[0]
  if connection[BUSY] then make_lean_ready(self) end
  local answer, p, q, r, s, t, u, v = yield(EXECUTE, connection[NUMBER], self[ID], self[KINDS], a, b, c, d, e, f, g,
    h, i)
  return finish(connection, self[ORIGIN], answer, p, q, r, s, t, u, v)
end

function Lean:perform(a, b, c, d, e, f, g, h, i)
  local connection = self[0]
  if connection[BUSY] then make_lean_ready(self) end
  local answer, p, q, r, s, t, u, v = yield(PERFORM, connection[NUMBER], self[ID], self[KINDS], a, b, c, d, e, f, g,
    h, i)
  return finish_unread(connection, self[ORIGIN], answer, p, q, r, s, t, u, v)
end

function Lean:defer(a, b, c, d, e, f, g, h, i)
  local connection = self[0]
  if connection[BUSY] then make_lean_ready(self) end
  local answer, p, q, r, s, t, u, v = yield(DEFER, connection[NUMBER], self[ID], self[KINDS], a, b, c, d, e, f, g,
    h, i)
  return deferred(connection, self[ORIGIN], answer, p, q, r, s, t, u, v)
end
