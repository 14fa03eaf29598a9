--- A session's life: its environment, its `sysbench` and `assay` tables, and what it runs.
local core = ...
local ask, shared, current, raise, base = core.ask, core.shared, core.current, core.raise, core.base
local yield = coroutine.yield
local environments, running_types = core.environments, core.running_types
local NEXT, FAILED, STOP, TYPE = ask.NEXT, ask.FAILED, ask.STOP, ask.TYPE

-- sysbench ----------------------------------------------------------------------------------------------------------

local cmdline = {
  ARG_NULL = 0, ARG_BOOL = 1, ARG_INT = 2, ARG_SIZE = 3, ARG_DOUBLE = 4, ARG_STRING = 5, ARG_LIST = 6, ARG_FILE = 7,
  ARG_MAX = 8, PARALLEL_COMMAND = true,
  argv = core.argv, command = core.command, script_path = core.script_path,
}

local KIND_OF_DEFAULT = { boolean = 1, number = 4, string = 5, table = 6, ["nil"] = 5 }

local FORM_OF_OPTION = "{ \"description\", default }, such as { \"Number of rows\", 1000 }"

--- The declared options in the order of their names, checked: { name, description, kind, default } each.
local function declared_options()
  local options = current().sysbench.cmdline.options
  local list = {}
  if options == nil then return list end
  local function wrong(text, what, detail)
    if core.front.wrong_option then core.front.wrong_option(what, detail) end
    error(text, 0)
  end
  if type(options) ~= "table" then
    wrong("sysbench.cmdline.options: expected a table, such as { rows = { \"Number of rows\", 1000 } }, not a "
      .. type(options), "table", type(options))
  end
  for name, entry in next, options do
    if type(name) ~= "string" then
      wrong("sysbench.cmdline.options: expected a name for each option, not " .. tostring(name), "entry")
    end
    local function wrong_here(text, ...) wrong("option " .. name .. ": " .. text, ...) end
    if type(entry) ~= "table" then
      wrong_here("expected " .. FORM_OF_OPTION .. ", not a " .. type(entry), "entry")
    end
    local description, default, kind = entry[1], entry[2], entry[3]
    if description == nil then
      wrong_here("it has no description: expected " .. FORM_OF_OPTION, "no_description", name)
    elseif type(description) ~= "string" then
      wrong_here("its description is a " .. type(description) .. ": expected " .. FORM_OF_OPTION, "description",
        type(description))
    end
    if kind == nil then kind = KIND_OF_DEFAULT[type(default)] end
    if kind == nil then
      wrong_here("its default is a " .. type(default) .. ": expected a number, a text, true, false or a list", "kind",
        type(default))
    elseif type(kind) ~= "number" or kind % 1 ~= 0 or kind < 1 or kind > 7 then
      wrong_here("its type is not one of sysbench.cmdline.ARG_BOOL, ARG_INT, ARG_DOUBLE, ARG_SIZE, ARG_STRING, "
        .. "ARG_LIST and ARG_FILE", "kind", type(default))
    end
    if kind == cmdline.ARG_BOOL and default == nil then default = true end
    local choices = entry.choices or {}
    if type(choices) ~= "table" or (#choices > 0 and kind ~= cmdline.ARG_STRING) then
      wrong_here("its choices are not a list of texts", "entry")
    end
    list[#list + 1] = {
      name = name, description = description, kind = kind, default = default, declared = entry[2], choices = choices,
      unused = entry.unused == true, whole = entry.whole == true, low = entry.low, high = entry.high, needed = type(entry.needed) == "string" and entry.needed or "",
    }
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local MARKS = {
  [1] = "[=on|off]", [2] = "=N", [3] = "=SIZE", [4] = "=N", [5] = "=STRING", [6] = "=[LIST,...]", [7] = "=FILENAME",
}

local function shown(value)
  if type(value) == "boolean" then return value and "on" or "off" end
  if type(value) == "table" then return table.concat(value, ",") end
  return tostring(value)
end

function cmdline.print_test_options()
  local options, width = declared_options(), 0
  for _, option in ipairs(options) do width = math.max(width, #option.name + #MARKS[option.kind]) end
  for _, option in ipairs(options) do
    core.write(("  --%-" .. width .. "s %s%s\n"):format(option.name .. MARKS[option.kind], option.description,
      option.declared ~= nil and " [" .. shown(option.declared) .. "]" or ""))
  end
  core.write("\n")
end

local HOOKS = { before_restart_event = true, report_cumulative = true, report_intermediate = true, sql_error_ignorable = true }
local NAMES_OF_HOOKS = "before_restart_event, report_cumulative, report_intermediate or sql_error_ignorable"

local function command_entry(name)
  local commands = current().sysbench.cmdline.commands
  local entry = type(commands) == "table" and commands[name]
  if type(entry) == "table" and type(entry[1]) == "function" then return entry end
end

--- Raises what is wrong with the commands and hooks that a script declares.
local function check_commands_and_hooks(session)
  local commands, hooks = session.sysbench.cmdline.commands, session.sysbench.hooks
  if commands ~= nil and type(commands) ~= "table" then
    error("sysbench.cmdline.commands: expected a table, such as { load = { load_rows } }, not a " .. type(commands), 0)
  end
  for name, entry in next, commands or {} do
    if type(name) ~= "string" then
      error("sysbench.cmdline.commands: expected a name for each command, not " .. tostring(name), 0)
    end
    if not command_entry(name) then
      local found = type(entry)
      if found == "table" then found = "table that begins with a " .. type(entry[1]) end
      error(("command %s: expected { function }, such as { load_rows }, not a %s"):format(name, found), 0)
    end
  end
  for name, hook in next, hooks do
    if not HOOKS[name] then
      error(("sysbench.hooks.%s: there is no such hook: expected %s"):format(tostring(name), NAMES_OF_HOOKS), 0)
    elseif type(hook) ~= "function" then
      error(("sysbench.hooks.%s: expected a function, not a %s"):format(name, type(hook)), 0)
    end
  end
end

function cmdline.read_cmdline_options() return declared_options() end
function cmdline.command_defined(name) return command_entry(name) ~= nil end
function cmdline.command_parallel(name)
  local entry = command_entry(name)
  return entry ~= nil and entry[2] == cmdline.PARALLEL_COMMAND
end
function cmdline.call_command(name)
  local entry = command_entry(name)
  if not entry then return false end
  return entry[1]() ~= false
end

local sysbench = {
  version = "1.0.20", version_string = "sysbench 1.0.20", rand = core.rand, sql = core.sql,
  error = { NONE = 0, RESTART_EVENT = core.RESTART }, db = core.legacy_db, histogram = core.histogram,
  report_default = core.report_default, report_csv = core.report_csv, report_json = core.report_json,
}

local sysbench_meta, cmdline_meta = { __index = sysbench, under = sysbench }, { __index = cmdline, under = cmdline }

-- assay -------------------------------------------------------------------------------------------------------------

local assay = {}
base.assay = assay
core.base_loaded.assay = assay

local intern = core.bind("type_index", "uint32_t (*)(void *, const char *, size_t)")

--- Whether `event` of the session is being executed.
local function is_in_event(session)
  local event, level = core.global(session, "event"), 3
  while event do
    local info = debug.getinfo(level, "f")
    if not info then return false end
    if info.func == event then return true end
    level = level + 1
  end
  return false
end

--- Wraps `body` as a transaction type: when an event calls it, that transaction is counted as `name`.
function assay.transaction(name, body)
  if type(name) ~= "string" or name == "" then raise("assay.transaction needs a name first") end
  if type(body) ~= "function" then raise("assay.transaction(\"" .. name .. "\", …) needs a function") end
  if is_in_event(current()) then
    raise("assay.transaction(\"" .. name .. "\", …) only declares a type: declare it outside of event(), and call what it "
      .. "returns in event()")
  end
  local index = intern(shared, name, #name)
  local function run(...)
    local running = running_types[shared.session]
    if not running then
      running_types[shared.session] = name
      yield(TYPE, index)
    elseif running ~= name then
      raise("this transaction is already a \"" .. running .. "\" and cannot become a \"" .. name
        .. "\": one event is one transaction of one type")
    end
    return body(...)
  end
  local session = current()
  if session.at_top_level then
    session.types = session.types or {}
    table.insert(session.types, { name = name, run = run })
  end
  return run
end

--- A message for the user; values are joined by tabs as in `print`.
assay.log = base.print

--- Reports what a command does, formatted as by `string.format`, if the front end shows that; others show rows.
function assay.tell(text, ...)
  if core.front.tell then core.front.tell(text:format(...)) end
end

local constants = {} -- by name

--- What `make` returned when a session of this state first asked for this name: for values that nobody changes.
function assay.constant(name, make)
  local value = constants[name]
  if value == nil then
    value = make()
    constants[name] = value
  end
  return value
end

--- Runs a module once for the sessions of a state, which share its globals; returns what it returned.
function assay.share(name)
  if type(name) ~= "string" then raise("assay.share needs the name of a module") end
  return core.share(name)
end

--- These globals are defined by a module that is shared when a session first uses one of them that the script has not
--- defined itself.
function assay.later(module, names)
  core.see_shared(current())
  for _, name in ipairs(names) do core.later[name] = module end
end

--- Pauses the session.
assay.sleep = core.sleep

--- Random letters and digits.
assay.random_text = core.random_text

--- For a loader's rows: such a text, generated anew for each row.
assay.random_cell = core.random_cell

local random_seed = core.bind("random_seed", "void (*)(void *, const char *, size_t)")

--- From now on this session's random numbers are determined by these values, whichever session draws them.
function assay.seed(...)
  local parts = { ... }
  if #parts == 0 then raise("assay.seed needs something to seed the random numbers from") end
  for i = 1, select("#", ...) do
    local kind = type(parts[i])
    if kind == "number" then
      parts[i] = ("%.17g"):format(parts[i])
    elseif kind ~= "string" then
      raise("assay.seed takes numbers and strings, not a " .. kind)
    end
  end
  local text = table.concat(parts, "\0")
  random_seed(shared, text, #text)
end

--- The next number, from 0, of the counter `name` that all sessions of the run share.
function assay.claim(name)
  if type(name) ~= "string" then raise("assay.claim needs a counter's name") end
  return yield(ask.CLAIM, name)
end

--- Waits until all sessions of the run have arrived here.
function assay.barrier() yield(ask.BARRIER) end

--- Announces work: this session will load this many rows.
function assay.expect(rows)
  rows = tonumber(rows)
  if not rows or rows < 0 then raise("assay.expect needs a number of rows") end
  yield(ask.EXPECT, rows)
end

local count_index = core.bind("count_index", "uint32_t (*)(void *, const char *, size_t)")
local count_add = core.bind("count_add", "void (*)(void *, uint32_t, double)")
local mark_rolled_back = core.bind("mark_rolled_back", "void (*)(void *)")
local counters = {} -- name → number

--- Adds `n` (default 1) to counter `name` for the running transaction; it counts only if that succeeds.
function assay.count(name, n)
  local index = counters[name]
  if not index then
    if type(name) ~= "string" or name == "" then raise("assay.count needs a counter's name") end
    index = count_index(shared, name, #name)
    counters[name] = index
  end
  n = n or 1
  if type(n) ~= "number" or n < 0 or n % 1 ~= 0 then raise("assay.count counts in whole numbers from 0 on") end
  count_add(shared, index, n)
end

--- What the running transaction has executed so far, as the server answered: the number of statements; of those that
--- ran outside of a database transaction; and of database transactions.
function assay.executed() return yield(ask.EXECUTED) end

--- The running transaction ends rolled back, as intended: it is counted separately.
function assay.rolled_back() mark_rolled_back(shared) end

local acknowledge = core.bind("acknowledge", "void (*)(void *, double, double, double, double, double)")
local keeps_acknowledged = core.options and core.options.kill_check
local NOTHING = 0 / 0

--- The server has acknowledged a transaction that a crash must not undo: a key of up to five numbers that finds it.
--- Kept only if somebody will look for it.
function assay.acknowledge(a, b, c, d, e)
  if keeps_acknowledged then acknowledge(shared, a, b or NOTHING, c or NOTHING, d or NOTHING, e or NOTHING) end
end

--- In `verify()`: the keys, in order, each as its numbers.
function assay.acknowledged()
  local next_line = (core.options and core.options.acknowledged or ""):gmatch("[^\n]+")
  return function()
    local line, key = next_line(), {}
    for number in (line or ""):gmatch("%S+") do key[#key + 1] = tonumber(number) end
    return unpack(key)
  end
end

local terminal_number = core.bind("terminal_number", "int (*)(void *)")
local terminal_serve = core.bind("terminal_serve", "void (*)(void *, int)")
local terminal_think = core.bind("terminal_think", "double (*)(void *, double)")
local terminals = {} -- number → table

--- The user whose transaction runs: a table that is kept for the user, with its number from 0. Without terminals each
--- session is its own user.
function assay.terminal()
  local number = terminal_number(shared)
  local session = number < 0 and current()
  local terminal
  if session then terminal = session.terminal else terminal = terminals[number] end
  if not terminal then
    terminal = { number = session and session.tid or number }
    if session then session.terminal = terminal else terminals[number] = terminal end
  end
  return terminal
end

--- The user's next transaction is due this much later than the end of this one; several calls add up. Returns the sum;
--- without seconds, it only does that.
function assay.think(seconds)
  if seconds == nil then return terminal_think(shared, NOTHING) end
  if type(seconds) ~= "number" or not (seconds >= 0 and seconds < 1e6) then
    raise("assay.think needs a number of seconds")
  end
  return terminal_think(shared, seconds)
end

--- Lets the script initialize the users that this session sees first.
local function make_terminals(session)
  local body = core.global(session, "terminal_init")
  if not core.terminals or type(body) ~= "function" then return end
  for number = session.tid, core.terminals - 1, core.sessions_in_all do
    terminal_serve(shared, number)
    body()
  end
  terminal_serve(shared, -1)
end

local declared = {} -- by kind and name: one session of a state speaks for all

local function known_fields(call, rule, fields)
  for key in next, rule do
    if not fields[key] then raise(call .. ": there is no field `" .. tostring(key) .. "`") end
  end
end

local function text_field(call, rule, key, needed)
  local value = rule[key]
  if value == nil and not needed then return "" end
  if type(value) ~= "string" or value == "" then raise(call .. ": `" .. key .. "` has to be a text") end
  return value
end

local function number_field(call, rule, key)
  local value = rule[key]
  if value ~= nil and (type(value) ~= "number" or value ~= value) then
    raise(call .. ": `" .. key .. "` has to be a number")
  end
  return value
end

local function declare(kind, name, ...)
  local is_rule = kind ~= "rate" and kind ~= "journal" and kind ~= "history"
  local key = (is_rule and "rule" or kind) .. " " .. name
  if declared[key] then return end
  declared[key] = true
  yield(ask.DECLARE, kind, name, ...)
end

local RULE_FIELDS = {
  name = true, clause = true, low = true, high = true, part = true, whole = true, mean = true, mix = true,
  rolled_back = true, percentile = true, of = true, total = true, most = true, rate = true, part_total = true, whole_total = true,
}

--- Declares a rule of the audit: what it measures, and the allowed values.
function assay.audit(rule)
  if type(rule) ~= "table" then raise("assay.audit needs a table") end
  local call = "assay.audit"
  local name = text_field(call, rule, "name", true)
  call = "assay.audit \"" .. name .. "\""
  known_fields(call, rule, RULE_FIELDS)
  local clause = text_field(call, rule, "clause")
  local low, high = number_field(call, rule, "low"), number_field(call, rule, "high")
  if rule.total ~= nil then
    local total, of, most = text_field(call, rule, "total", true), text_field(call, rule, "of", true), number_field(call, rule, "most")
    if low or high then raise(call .. ": a `total` has to grow by what was counted: `low` and `high` do not apply") end
    if not most or most < 0 then raise(call .. ": `most` is the most that one transaction may add to the total") end
    return declare("growth", name, clause, total, of, nil, nil, most)
  end
  if not low and not high then raise(call .. ": give `low`, `high` or both") end
  if low and high and low > high then raise(call .. ": `low` is above `high`") end
  local kind
  for _, one in ipairs { "part", "mean", "mix", "rolled_back", "percentile", "rate", "part_total" } do
    if rule[one] ~= nil then
      if kind then raise(call .. ": it looks at `" .. kind .. "` and `" .. one .. "`: one rule looks at one thing") end
      kind = one
    end
  end
  if kind == "part" then
    local part, whole = text_field(call, rule, "part", true), text_field(call, rule, "whole", true)
    return declare("share", name, clause, part, whole, low, high)
  elseif kind == "part_total" then
    local part, whole = text_field(call, rule, "part_total", true), text_field(call, rule, "whole_total", true)
    return declare("table_share", name, clause, part, whole, low, high)
  elseif kind == "percentile" then
    local percentile = number_field(call, rule, "percentile")
    if percentile <= 0 or percentile >= 100 then raise(call .. ": `percentile` has to be between 0 and 100") end
    if low or not high then raise(call .. ": a percentile has a bound `high`, in seconds") end
    return declare("percentile", name, clause, text_field(call, rule, "of", true), "", nil, high, percentile)
  elseif kind == "rate" then
    return declare("rate_rule", name, clause, text_field(call, rule, "rate", true), "", low, high)
  elseif kind then
    return declare(kind, name, clause, text_field(call, rule, kind, true), "", low, high)
  end
  raise(call .. ": say what it looks at: `part` and `whole`, `mean`, `mix`, `rolled_back`, `percentile`, `total`, `part_total` and"
    .. " `whole_total`, or `rate`")
end

local SECONDS = { second = 1, minute = 60, hour = 3600 }
local RATE_FIELDS = { name = true, of = true, per = true, nominal = true, rolled_back = true }

--- Declares a named throughput.
function assay.rate(rate)
  if type(rate) ~= "table" then raise("assay.rate needs a table") end
  local name = text_field("assay.rate", rate, "name", true)
  local call = "assay.rate \"" .. name .. "\""
  known_fields(call, rate, RATE_FIELDS)
  local seconds = SECONDS[rate.per or "second"] or raise(call .. ": `per` is \"second\", \"minute\" or \"hour\"")
  local nominal = number_field(call, rate, "nominal")
  if nominal and nominal <= 0 then raise(call .. ": `nominal` has to be above 0") end
  declare("rate", name, "", text_field(call, rate, "of"), rate.rolled_back and "rolled_back" or "", nil, nominal,
    seconds)
end

--- The tables have this size or form, whatever the option with this name says: reports and records show it instead.
function assay.found(option, value)
  if type(option) ~= "string" or option == "" then raise("assay.found needs the name of an option") end
  local is_text = type(value) == "string"
  if not is_text and (type(value) ~= "number" or value ~= value) then
    raise("assay.found(\"" .. option .. "\", …) needs a number or a text")
  end
  local key = "found " .. option .. " " .. value -- on several servers it may differ
  if declared[key] then return end
  declared[key] = true
  yield(ask.DECLARE, "found", option, "", is_text and value or "", "", nil, not is_text and value or nil)
end

--- What the tables contain, in `init()` or `done()`, for rules about how much that grew in between. In `thread_done()`,
--- a number that is added to those of the other sessions.
function assay.total(name, number)
  if type(name) ~= "string" or name == "" then raise("assay.total needs a name") end
  if type(number) ~= "number" or number ~= number or math.abs(number) == math.huge then
    raise("assay.total(\"" .. name .. "\", …) needs a number")
  end
  yield(ask.DECLARE, "total", name, "", "", "", nil, number)
end

local QUERY_FIELDS = { name = true, question = true, text = true }

--- In `queries()`: a query of an analytical workload.
function assay.query(query)
  if type(query) ~= "table" then raise("assay.query needs a table") end
  local name = text_field("assay.query", query, "name", true)
  local call = "assay.query \"" .. name .. "\""
  known_fields(call, query, QUERY_FIELDS)
  if declared["query " .. name] then raise(call .. ": there are two queries of this name") end
  declared["query " .. name] = true
  yield(ask.DECLARE, "query", name, text_field(call, query, "question"), text_field(call, query, "text", true))
end

--- In `queries()`: the table that `prepare` has left behind, with the name of each table and its number of rows, and
--- more questions about the data, by name. `queries` is called again with the answers: `sysbench.opt.loaded` is a list
--- of `NAME=VALUE` then.
function assay.loaded(name, questions)
  if type(name) ~= "string" or name == "" then raise("assay.loaded needs the name of a table") end
  local lines = {}
  for key, text in next, questions or {} do
    if type(text) ~= "string" or text:find("[\n\t]") then raise("assay.loaded: each question is a text of one line") end
    lines[#lines + 1] = key .. "\t" .. text
  end
  yield(ask.DECLARE, "loaded", name, table.concat(lines, "\n"))
end

--- In `queries()`: the scale factor of the data, for figures that are scaled by it.
function assay.scale(factor)
  if type(factor) ~= "number" or not (factor > 0 and factor < math.huge) then
    raise("assay.scale needs a number above 0")
  end
  yield(ask.DECLARE, "scale", "", "", "", "", nil, factor)
end

local ffi = require("ffi")
local mark_line = core.bind("mark_line", "void (*)(void *, const double *, size_t)")
local keeps_journal = core.options and core.options.journal

--- Names the columns of the journal, the file of `--journal`. Returns a function for a list of as many numbers, nil for
--- a missing one: the line of the running transaction, which is written if that succeeds.
function assay.journal(columns)
  if type(columns) ~= "table" or #columns == 0 then raise("assay.journal needs a list of the columns' names") end
  for _, column in ipairs(columns) do
    if type(column) ~= "string" or not column:find("^[%w_]+$") then
      raise("assay.journal: a column's name is made of letters, digits and _, and not " .. tostring(column))
    end
  end
  declare("journal", table.concat(columns, ","))
  if not keeps_journal then return function() end end
  local count = #columns
  local values = ffi.new("double[?]", count)
  return function(list)
    for i = 1, count do
      local value = list[i]
      if value ~= nil and type(value) ~= "number" then
        raise("assay.journal: " .. columns[i] .. " has to be a number, and is a " .. type(value))
      end
      values[i - 1] = value or NOTHING
    end
    mark_line(shared, values, count)
  end
end

local history_append = core.bind("history_append", "double (*)(void *, uint32_t)")
local history_list = core.bind("history_list", "int (*)(void *, uint32_t, const char *, size_t)")
local history_write = core.bind("history_write", "double (*)(void *, uint32_t)")
local history_replaced = core.bind("history_replaced", "void (*)(void *, double, double)")
local history_read = core.bind("history_read", "void (*)(void *, uint32_t, double, double)")
local history_counter = core.bind("history_counter", "void (*)(void *, uint32_t, double)")
local history_count = core.bind("history_count", "void (*)(void *, uint32_t, double)")
local history_total = core.bind("history_total", "void (*)(void *, double, double)")

--- Notes what the running transaction does to lists and registers; the engine adds when and how it ended.
local history = {}

--- The value that is about to be appended to a list.
function history.append(key) return history_append(shared, key) end

--- A list was read: its elements, separated by commas; nil or "" if it is empty. Their number.
function history.list(key, text)
  text = text or ""
  local length = history_list(shared, key, text, #text)
  if length < 0 then raise("history.list needs numbers separated by commas, and got " .. text) end
  return length
end

--- The value that is about to be written to a register.
function history.write(key) return history_write(shared, key) end

--- The version before the one that was just written: its number, 0 before the first, and its value.
function history.replaced(number, value) history_replaced(shared, tonumber(number), tonumber(value)) end

--- The version of a register that was read.
function history.read(key, number, value) history_read(shared, key, tonumber(number), tonumber(value)) end

--- The value of a counter that was read. A counter is a column to which every change adds one.
function history.counter(key, value) history_counter(shared, key, tonumber(value)) end

--- One is about to be added to a counter that had this value when the transaction read it.
function history.count(key, value) history_count(shared, key, tonumber(value)) end

--- A sum was read that must not change.
function history.total(found, expected) history_total(shared, tonumber(found), tonumber(expected)) end

local HISTORY_FIELDS = { level = true, megabytes = true }

--- The run's history is checked for an isolation level. Returns functions that note operations.
function assay.history(what)
  if type(what) ~= "table" then raise("assay.history needs a table") end
  known_fields("assay.history", what, HISTORY_FIELDS)
  local level = text_field("assay.history", what, "level", true)
  local megabytes = number_field("assay.history", what, "megabytes") or 1024
  declare("history", level, "", "", "", nil, megabytes)
  return history
end

-- Life --------------------------------------------------------------------------------------------------------------

local function failed(failure)
  return yield(FAILED, failure.restart, failure.statement, failure.message, failure.traceback)
end

--- What an `xpcall` with our handler returned for an error. If even the handler had no memory, Lua returns a text.
local function failure_of(result)
  if type(result) == "table" then return result end
  return {
    value = result, restart = false, statement = false, traceback = "",
    message = "stack overflow: a function calls itself without end, or memory ran out",
  }
end

local front, plain = core.front, core.plain
assay.plain = plain

--- Reports to the front which function of the script failed; without a front, only the engine learns of it.
local function tell(name, failure)
  if front.failed then front.failed(name, failure) end
end

--- Calls a function of the script; an error is reported, and propagates.
local function guarded(name, body, ...)
  if not front.failed then return body(...) end
  local ok, result = xpcall(body, core.handler, ...)
  if ok then return result end
  result = failure_of(result)
  tell(name, result)
  error(result, 0)
end

--- Runs `event` until it succeeds or the engine gives it up. Returns its result, nil when given up.
local function transaction(session, tid)
  local attempt = 0
  while true do
    running_types[shared.session] = false
    local event = rawget(environments[shared.session], "event") or core.global(session, "event")
    local ok, result = xpcall(event, core.handler, tid, attempt)
    if ok then return result end
    local retry
    repeat -- an error of the hook is another failure of the same transaction
      result = failure_of(result)
      if not result.restart then tell("thread_run", result) end
      retry = failed(result)
      local hook = result.restart and session.sysbench.hooks.before_restart_event
      if type(hook) == "function" then
        ok, result = xpcall(hook, core.handler, result.value)
        if not ok and front.hook_errors_are_final then
          result = failure_of(result)
          result.restart, result.statement = false, false
        end
      else
        ok = true
      end
    until ok
    if not retry then return nil end
    attempt = attempt + 1
  end
end

--- A compiled script has a plain form as well: `values()` of its variables, or nil where one is not an integer;
--- `restore(at)`, after which the variables are what they became and `event` goes on at that command; `program`,
--- `connection` and `statements`.
function assay.run_plain(form)
  if not core.terminals then current().plain = form end
end

--- For a script whose `event` always executes the same statements, those in `list`, but for its random numbers: it runs
--- without Lua then (`straight.lua`).
function assay.run_straight(list)
  local session = current()
  if not core.terminals then session.plain = core.straight(core.global(session, "event"), list) end
end

--- Lets the command of a plain form that the server refused raise that, where it stands in the script.
local function refuse_at(form, at, text, ...)
  local answer, count = { ... }, select("#", ...)
  local connection, statements = form.connection, form.statements
  local statement = statements[at]
  local function refuse()
    connection.query, statements[at] = nil, statement
    plain.refused(connection, text or statement, unpack(answer, 1, count))
  end
  if text then connection.query = refuse else statements[at] = { perform = refuse } end
end

--- Transactions in plain form, as long as that goes; what it leaves to be decided is done here. False: no more are due.
local function run_plain(session, tid, form)
  local values = form:values()
  if not values then return true end
  local function after(what, at, text, ...)
    if not what then
      session.plain = nil
      return true
    end
    form:restore(what == plain.OVER and 0 or at)
    if what == plain.OVER then return false end
    if form.replay then
      form:replay(at, what == plain.REFUSED, ...)
    elseif what == plain.REFUSED then
      refuse_at(form, at, text, ...)
    end
    transaction(session, tid)
    if form.end_replay then form:end_replay() end
    return true
  end
  return after(plain.run(form.program, form.connection, form.statements, values, math.huge))
end

--- The default loop; a script may define its own.
function base.thread_run(tid)
  local session = current()
  if type(core.global(session, "event")) ~= "function" then error("the script defines no function event()", 0) end
  while true do
    if core.some_wait and session.waiting then core.flush(session) end
    if not yield(NEXT) then return end
    if transaction(session, tid) then
      yield(STOP)
      return
    end
    if session.plain and not run_plain(session, tid, session.plain) then return end
  end
end

local function call_if_defined(session, name, ...)
  local body = core.global(session, name)
  if body == nil then return end
  local kind = type(body)
  if kind ~= "function" then
    body = function()
      if front.not_a_function then front.not_a_function(kind) end
      error("global '" .. name .. "' is not a function but a " .. kind, 0)
    end
  end
  return guarded(name, body, ...)
end

--- The same for what comes after the measured part.
local function call_at_end(session, name, ...)
  if not front.ends_well_after_all then return call_if_defined(session, name, ...) end
  pcall(call_if_defined, session, name, ...)
end

local function copy_of(value)
  if type(value) ~= "table" then return value end
  local copy = {}
  for i, item in ipairs(value) do copy[i] = item end
  return copy
end

--- `sysbench.opt` of a session: shared by all until the session writes to it. Then it gets a copy: many sessions share
--- a state, and few write.
local options_meta = {
  __index = core.options, under = core.options,
  make_own = function(opt)
    setmetatable(opt, nil)
    for key, value in next, core.options do opt[key] = copy_of(value) end
  end,
}

function options_meta.__newindex(opt, key, value)
  options_meta.make_own(opt)
  opt[key] = value
end

-- Writing into a list would go unnoticed: if there is one, nothing is shared.
local has_lists = false
for _, value in next, core.options or {} do has_lists = has_lists or type(value) == "table" end

-- The option of a script that names several transactions at its top level, unless it declares one with this name.
local MIX = {
  name = "mix", kind = 5, default = "",
  description = "Transactions to run in the place of event(), by weight: NAME=WEIGHT,…",
}

--- The weights of `--mix`: a list of { weight, run }, and their sum.
local function read_mix(text, types)
  local runs, names, list, total = {}, {}, {}, 0
  for _, kind in ipairs(types) do
    if not runs[kind.name] then names[#names + 1] = kind.name end
    runs[kind.name] = runs[kind.name] or kind.run
  end
  for part in text:gmatch("[^,]+") do
    local name, weight = part:match("^%s*(.-)%s*=%s*(%d+%.?%d*)%s*$")
    if not name then
      error(("--mix %s: expected names and weights, such as %s=3,%s=1"):format(text, names[1], names[2] or names[1]), 0)
    end
    if not runs[name] then
      local known = table.concat(names, ", ")
      error(("--mix %s: there is no transaction %s; the workload has %s"):format(text, name, known), 0)
    end
    total = total + tonumber(weight)
    if tonumber(weight) > 0 then list[#list + 1] = { weight = tonumber(weight), run = runs[name] } end
  end
  if total == 0 then error(("--mix %s: all weights are 0"):format(text), 0) end
  return list, total
end

--- With `--mix`, a session's transactions are drawn by weight. A retried one stays the same.
local function mix_transactions(session)
  local types, text, own = session.types, core.options and core.options.mix, session.sysbench.cmdline.options
  session.types = nil
  if not types or #types < 2 or type(text) ~= "string" or text == "" then return end
  if type(own) == "table" and own.mix ~= nil then return end
  if rawget(session.env, "thread_run") then error("--mix: the workload has its own loop, thread_run()", 0) end
  local list, total = read_mix(text, types)
  local run
  rawset(session.env, "event", function(tid, attempt)
    if attempt == 0 then
      local drawn = core.rand.uniform_double() * total
      for _, one in ipairs(list) do
        run, drawn = one.run, drawn - one.weight
        if drawn < 0 then break end
      end
    end
    run(tid)
  end)
end

local entries = {}

function entries.thread(session)
  local tid = session.tid
  mix_transactions(session)
  call_if_defined(session, "thread_init", tid)
  make_terminals(session)
  core.flush(session)
  yield(ask.READY)
  local run = core.global(session, "thread_run") or base.thread_run
  guarded("thread_run", run, tid)
  call_at_end(session, "thread_done", tid)
  return true
end

entries["function"] = function(session)
  local name = core.entry_name
  local entry = command_entry(name)
  if entry then return guarded("sysbench.cmdline.call_command", entry[1]) ~= false end
  local body = core.global(session, name)
  if body == nil and name == "help" then body = cmdline.print_test_options end
  if type(body) ~= "function" then error("the script defines no function " .. name .. "()", 0) end
  local result = guarded(name, body)
  return front.functions_succeed or result ~= false
end

--- Calls a report hook. If it fails, that is reported, and the run continues.
local function report(session, name, stat)
  local hook = session.sysbench.hooks[name]
  if type(hook) ~= "function" then return end
  local ok, failure = xpcall(hook, core.handler, stat)
  if not ok then tell(name, failure_of(failure)) end
end

function entries.main(session)
  call_if_defined(session, "init")
  core.flush(session)
  entries.reports(session)
  call_at_end(session, "done")
  return true
end

function entries.top_level() return true end

--- Calls report hooks as reports come due.
function entries.reports(session)
  while true do
    local name, stat = yield(ask.READY)
    if not name then break end
    report(session, name, stat)
  end
  return true
end

--- What the top level declared, for `Program`.
function entries.declare(session)
  local commands, globals = {}, {}
  local declared = session.sysbench.cmdline.commands
  if type(declared) == "table" then
    for name in next, declared do
      if type(name) == "string" and command_entry(name) then
        commands[#commands + 1] = { name = name, parallel = cmdline.command_parallel(name) }
      end
    end
  end
  table.sort(commands, function(a, b) return a.name < b.name end)
  local function add(name, value)
    -- An `init` that is not a function is an error of the run, which must call it to find out.
    if type(name) == "string" and (type(value) == "function" or name == "init") then globals[#globals + 1] = name end
  end
  for name, value in next, session.env do add(name, value) end
  for name, value in next, core.common do add(name, value) end
  for name in next, core.later do globals[#globals + 1] = name end
  local hooks = {}
  for name, value in next, session.sysbench.hooks do
    if type(name) == "string" and type(value) == "function" then hooks[#hooks + 1] = name end
  end
  local options = guarded("sysbench.cmdline.read_cmdline_options", declared_options)
  -- sysbench ignores what it does not know.
  if not front.wrong_option then check_commands_and_hooks(session) end
  local has_mix = false
  for _, option in ipairs(options) do has_mix = has_mix or option.name == MIX.name end
  if session.types and #session.types > 1 and not has_mix then options[#options + 1] = MIX end
  local own, event, file, line = session.sysbench.cmdline, core.global(session, "event"), nil, nil
  if type(event) == "function" then
    local info = debug.getinfo(event, "S")
    if info.lastlinedefined > 0 then file, line = info.source:gsub("^[@=]", ""), info.lastlinedefined end
  end
  local types = {}
  for i, type_ in ipairs(session.types or {}) do types[i] = type_.name end
  yield(ask.DECLARED, options, commands, globals, own.options ~= nil, hooks, own.own_rows == true, file, line,
    tonumber(own.sessions) or 0, types)
  return true
end

local function live(session)
  session.at_top_level = true
  guarded(nil, core.run, core.script, session.env, unpack { core.module })
  if core.built_in then guarded(nil, core.adapt, core.built_in, nil, session.env) end
  session.at_top_level = nil
  if core.entry == "thread" then
    -- These tables are the same in every session and no longer needed: keep one of each.
    local own, first = session.sysbench.cmdline, core.first_cmdline
    if first then own.options, own.commands = first.options, first.commands end
    core.first_cmdline = first or own
    if core.built_in then
      session.sysbench.cmdline = core.first_cmdline
      core.forget_loaded(session)
    end
  end
  if core.options and core.entry ~= "declare" then
    session.sysbench.opt = setmetatable({}, options_meta)
    if has_lists then options_meta.make_own(session.sysbench.opt) end
    if session.sysbench.cmdline.options == nil then core.export_options(session) end
  end
  return entries[core.entry](session)
end

local function main()
  local session = current()
  local ok, result = xpcall(live, core.handler, session)
  if session.at_end then session.at_end() end
  if session.partial then core.log(session.partial) end
  core.flush(session)
  if ok then return ask.FINISHED, result end
  result = failure_of(result)
  return ask.DIED, result.restart, result.statement, result.message, result.traceback
end

--- Creates a session and its coroutine. `index` is its place in `sessions`, `tid` its number in the run.
function core.add_session(index, tid)
  local session = { tid = tid }
  local env = core.environment(session)
  session.sysbench = setmetatable({
    tid = tid, hooks = {}, cmdline = setmetatable({}, cmdline_meta),
  }, sysbench_meta)
  env.sysbench = session.sysbench
  core.sessions[index], core.environments[index], core.running_types[index] = session, env, false
  core.connections.first[index] = false
  session.thread = coroutine.create(main)
  debug.setfenv(session.thread, env)
  return session.thread
end

function core.remove_session(index)
  core.sessions[index], core.environments[index], core.connections.first[index] = false, false, false
end
