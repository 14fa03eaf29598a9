--- What sessions need as pgbench clients: their own loop, the clock, and output.
--
-- Runs once per state, before the API is created. Compiled scripts find it as the global `pgbench_front`; if `assay
-- run` runs a script, there is none.
local core = ...
local ffi = require("ffi")
local ask, shared = core.ask, core.shared
local yield = coroutine.yield

local now = core.bind("front_now", "double (*)(void *)")
local figures = core.bind("front_figures", "void (*)(void *, uint32_t, const double *, size_t)")
local mark_ending = core.bind("mark_ending", "void (*)(void *, int)")
local intern = core.bind("type_index", "uint32_t (*)(void *, const char *, size_t)")
local random_keep = core.bind("random_keep", "void (*)(void *)")
local random_again = core.bind("random_again", "void (*)(void *)")
local print_text = core.bind("front_print", "void (*)(void *, const char *, size_t)")
local print_message = core.bind("front_message", "void (*)(void *, uint32_t, const char *, size_t)")
local room = ffi.new("double[16]")

local front = {}
core.base.pgbench_front = front

local NEXT, TYPE = ask.NEXT, ask.TYPE

--- Asks for the next transaction. Returns true and for how many seconds it has been due.
function front.next() return yield(NEXT) end

--- The number of a transaction type, which the running transaction gets.
function front.type_named(name) return intern(shared, name, #name) end
function front.is_of(number) yield(TYPE, number) end

--- The running transaction is not counted, and the client ends.
function front.stop() yield(ask.STOP) end

--- Seconds since some instant.
function front.now() return now(shared) end

--- Reports to the program: `kind` says what.
function front.figures(kind, ...)
  local count = select("#", ...)
  for i = 1, count do room[i - 1] = select(i, ...) end
  figures(shared, kind, room, count)
end

--- The running transaction fails (2), or is skipped (3).
function front.ending(ending) mark_ending(shared, ending) end

--- Random numbers from here on can be drawn again.
function front.keep_random() random_keep(shared) end
function front.again_random() random_again(shared) end

--- Errors, and other messages.
function front.say(text) core.message("FATAL", text) end
function front.tell(text) core.message("NOTICE", text) end
function front.print(text) core.write(text) end

-- In the order of `Severity` of assay-script.
local SEVERITIES = { FATAL = 0, ALERT = 1, WARNING = 2, NOTICE = 3, INFO = 4, DEBUG = 5 }

function core.front.write(text) print_text(shared, text, #text) end
function core.front.message(severity, text) print_message(shared, SEVERITIES[severity], text, #text) end

--- The first line of the result.
function front.banner(text) core.message("INFO", text) end

function front.roll_back(connection) core.roll_back(connection) end

--- The line of a text that contains character `position` (from 1), and a mark below it; empty without a position.
function front.marked(text, position)
  local place = core.marked(text, position)
  return place and "\n" .. place or ""
end

--- A connection that could not be made is an error with just the message.
function core.front.refuse_connection(_, _, _, _, message, _, class, details)
  error({ refused = message, class = class, details = details }, 0)
end

--- A statement that the server refuses to prepare is reported at once; its execution then finds none.
function core.front.refuse_prepare(_, text, _, state, message, position, _, details)
  if state == "" then return end -- the connection is lost
  local value = 0
  text = text:gsub("%?", function()
    value = value + 1
    return "$" .. value
  end)
  front.say("ERROR:  " .. message .. front.marked(text, position) .. details)
  error({ is_unprepared = true, query = "<prepared statement>", sql_state = "26000", sql_errmsg = "" }, 0)
end
