--- Plain programs: transactions of integers and statements that run without Lua (`plain.rs`).
--
-- A compiled script registers its program as `assay.plain`; the default loop, or the script's own, runs the program
-- until Lua is needed.
local core = ...
local ask, shared, connections = core.ask, core.shared, core.connections
local yield = coroutine.yield

local new = core.bind("plain_new", "int (*)(void *, const char *, size_t)")
local begin = core.bind("plain_begin", "void (*)(void *, int)")
local set = core.bind("plain_set", "void (*)(void *, uint32_t, double)")
local bind = core.bind("plain_bind", "void (*)(void *, uint32_t, uint32_t)")
local value = core.bind("plain_value", "int64_t (*)(void *, uint32_t)")
local left = core.bind("plain_left", "double (*)(void *)")
local keep_before = core.bind("plain_keep", "void (*)(void *)")
local random_keep = core.bind("random_keep", "void (*)(void *)")
local random_again = core.bind("random_again", "void (*)(void *)")

local plain = {
  -- Why a program ends: `Leave` in plain.rs.
  OVER = 1, DO = 2, REFUSED = 3, OPEN = 4,
}
core.plain = plain

local known = {} -- text → number

--- The number of the program with this text; nil if it is not one.
function plain.program(text)
  if not known[text] then known[text] = new(shared, text, #text) end
  return known[text] >= 0 and known[text] or nil
end

--- Whether these statements, by command from 0, can run without Lua.
local function can_run(statements)
  for _, statement in next, statements do
    if getmetatable(statement).name ~= "values" then return false end
  end
  return true
end

--- Runs up to `most` (at least one) transactions of `program`, until Lua is needed. Returns the reason, the command,
--- its text if it has one, and the answer to it; nil if the program cannot run. `statements`: those of its commands;
--- `values`: of its variables, in order.
function plain.run(program, connection, statements, values, most)
  if connection[connections.BUSY] or not can_run(statements) then return nil end
  begin(shared, program)
  for i, one in ipairs(values) do set(shared, i - 1, one) end
  for command, statement in next, statements do bind(shared, command, getmetatable(statement).id) end
  return yield(ask.PLAIN, connection[connections.NUMBER], most)
end

--- A variable's value, from 1, after that; and how many transactions were not begun.
function plain.value(i) return value(shared, i - 1) end
function plain.left() return left(shared) end

--- Random numbers from here on, or from the beginning of the transaction that a program has left, can be drawn again.
function plain.keep_random() random_keep(shared) end
function plain.keep_random_before() keep_before(shared) end
function plain.again_random() random_again(shared) end

--- Raises what the server had against a statement, as its execution would have.
function plain.refused(connection, statement, ...) connections.finish_unread(connection, statement, ...) end
