--- Straight transactions: those that always do the same but for their random numbers and texts.
--
-- `event` of an OLTP workload draws numbers and executes prepared statements with them; what it does next depends
-- neither on a number nor on an answer. Such an `event` is traced: it runs once with placeholders for what is drawn,
-- and what it executes becomes a plain program (`plain.lua`). When a statement fails, `event` runs again with the same
-- random numbers: the statements that were answered return immediately, and the one that failed raises its error in
-- its place.
local core = ...
local plain, shared, connections, rand = core.plain, core.shared, core.connections, core.rand
local statements, first_connections = core.statements, connections.first
local take_back = core.bind("plain_take_back", "void (*)(void *)")

local COMMANDS_MAX = 10000
local SEPARATOR = "\31"

-- Tracing ------------------------------------------------------------------------------------------------------------

local trace -- what was found so far

--- Ends a trace: this cannot run without Lua.
local function leave(reason) error(reason, 0) end

-- A drawn number, or one computed from drawn ones: `words` of a plain program. Operators it lacks are errors.
local Number = { __index = function() leave("a drawn number has no fields") end }
-- A drawn text: `word` names it, and it is for the next statement after `executed` others.
local Text = { __index = function() leave("a drawn text has no methods") end }

local function words_of(value)
  if getmetatable(value) == Number then return rawget(value, "words") end
  if type(value) == "number" and value % 1 == 0 and math.abs(value) < 2 ^ 53 then return ("%.0f"):format(value) end
  leave("not a whole number")
end

local function operation(operator)
  return function(a, b)
    return setmetatable({ words = table.concat({ words_of(a), words_of(b), operator }, SEPARATOR) }, Number)
  end
end

Number.__add, Number.__sub, Number.__mul = operation("+"), operation("-"), operation("*")

local function add(command)
  if #trace.commands == COMMANDS_MAX then leave("too many commands") end
  trace.commands[#trace.commands + 1] = command
end

--- A new variable with this value.
local function variable(words)
  local name = "$" .. trace.variables
  trace.variables = trace.variables + 1
  add { "set", name, words }
  return name
end

local function draw(distribution)
  return function(low, high)
    for _, bound in ipairs { low, high } do
      if type(bound) ~= "number" or bound % 1 ~= 0 or bound < 0 or bound >= 2 ^ 32 then leave("not a bound") end
    end
    local words = ("%d%s%d%s%s"):format(low, SEPARATOR, high, SEPARATOR, distribution)
    return setmetatable({ words = variable(words), low = low, high = high }, Number)
  end
end

local function draw_text(format)
  if type(format) ~= "string" or format:find(SEPARATOR, 1, true) then leave("not a format") end
  local word = "@" .. trace.texts
  add { "text", word, "'" .. format }
  trace.texts = trace.texts + 1
  return setmetatable({ word = word, format = format, executed = trace.executed }, Text)
end

--- A parameter of a kind, in words. `driver`: if it is written into a text; what is in quotes there is drawn alike, and
--- so must not change.
local function parameter(kind, value, driver)
  if getmetatable(value) == Text then
    if kind ~= "t" or rawget(value, "executed") ~= trace.executed then leave("not a text of this statement") end
    local word, format = rawget(value, "word"), rawget(value, "format")
    if not driver then return word end
    if statements.quoted(driver, format) ~= "'" .. format .. "'" then leave("a text to be escaped") end
    return table.concat({ "''", word, "''" }, SEPARATOR)
  end
  local words = words_of(value)
  if kind ~= "w" and kind ~= "i" then leave("not a parameter for a number") end
  return words:find("^%$%d+$") and words or variable(words)
end

--- Whether it is a statement that is executed with values, prepared or not.
local function is_statement(class) return type(class) == "table" and (class.name == "values" or class.name == "text") end

--- Executes one of the statements of a list: `chooser` is the number that says which one, if there are several.
local function execute(list, chooser, ...)
  local first = getmetatable(list[1])
  for _, statement in ipairs(list) do
    local class = getmetatable(statement)
    if not is_statement(class) or class.name ~= first.name or class.kinds ~= first.kinds
      or statement[0] ~= first_connections[shared.session] then leave("not statements of one kind") end
  end
  local kinds, is_prepared = first.kinds, first.name == "values"
  if select("#", ...) ~= #kinds then leave("not as many values as it takes") end
  local parameters = {}
  for i = 1, #kinds do
    parameters[i] = parameter(kinds:sub(i, i), (select(i, ...)), not is_prepared and list[1][0].driver)
  end
  local command = { is_prepared and "execute" or "query", #list > 1 and "?" .. words_of(chooser) or nil }
  for n, statement in ipairs(list) do
    local class = getmetatable(statement)
    if is_prepared then
      command[#command + 1] = "#" .. class.id
    else
      if n > 1 then command[#command + 1] = "|" end
      for i, part in ipairs(statements.parts_of(class.text, #kinds)) do
        if part:find(SEPARATOR, 1, true) then leave("a text with a separator") end
        command[#command + 1] = "'" .. part
        command[#command + 1] = parameters[i]
      end
    end
  end
  if is_prepared then
    for _, word in ipairs(parameters) do command[#command + 1] = word end
  end
  add(command)
  trace.executed, trace.texts = trace.executed + 1, 0
end

-- The member of a list that a drawn number chooses, or a field of it: `items`, those of all members.
local Chosen = {}

local function choose(items, chooser) return setmetatable({ items = items, chooser = chooser }, Chosen) end

function Chosen:__index(name)
  local items = rawget(self, "items")
  if name == "perform" then
    return function(_, ...) return execute(items, rawget(self, "chooser"), ...) end
  end
  local fields = {}
  for i, item in ipairs(items) do
    fields[i] = item[name]
    if fields[i] == nil then leave("not a field of all members") end
  end
  return choose(fields, rawget(self, "chooser"))
end

--- The metatable of a list while `event` is traced.
local by_drawn_number = {
  __index = function(list, number)
    if getmetatable(number) ~= Number then return nil end
    if rawget(number, "low") ~= 1 or rawget(number, "high") ~= #list then leave("not a member of the list") end
    return choose(list, number)
  end,
}

local function not_traced() leave("another random number") end

--- Adds the classes of all statements in the list, and in lists in it.
local function add_classes(classes, list)
  for _, item in next, list do
    local class = getmetatable(item)
    if is_statement(class) then
      classes[class] = true
    elseif type(item) == "table" then
      add_classes(classes, item)
    end
  end
  return classes
end

--- Replaces the method of these classes; without `body`, puts it back.
local function set_perform(classes, body)
  for class in next, classes do class.perform = body or class.methods.perform end
end

--- Runs `event` with placeholders, and returns what it executed. `classes`: those of the statements in the list.
local function traced(event, list, classes)
  trace = { commands = {}, variables = 0, texts = 0, executed = 0 }
  local kept = {}
  for name, body in next, rand do kept[name] = body end
  for name in next, kept do rand[name] = not_traced end
  rand.uniform, rand.default, rand.string = draw("uniform"), draw("default"), draw_text
  set_perform(classes, function(statement, ...) return execute({ statement }, nil, ...) end)
  setmetatable(list, by_drawn_number)
  -- In a coroutine: a request would be sent otherwise.
  local body = coroutine.create(event)
  local ok, result = coroutine.resume(body, 0, 0)
  setmetatable(list, nil)
  set_perform(classes)
  for name, original in next, kept do rand[name] = original end
  local found
  found, trace = trace, nil
  return ok and result == nil and coroutine.status(body) == "dead" and found.executed > 0 and found or nil
end

--- The variables in a word; there are none in a text.
local function variables_in(word) return word:sub(1, 1) == "'" and function() end or word:gmatch("%$%d+") end

--- Renumbers the variables: the number of a variable that is no longer needed is used again.
local function renumber(commands)
  local last = {} -- by variable: the last command that it occurs in
  for i, command in ipairs(commands) do
    for _, word in ipairs(command) do
      for name in variables_in(word) do last[name] = i end
    end
  end
  local numbers, free, count = {}, {}, 0
  local function number(name)
    if not numbers[name] then
      numbers[name] = table.remove(free) or "$" .. count
      if numbers[name] == "$" .. count then count = count + 1 end
    end
    return numbers[name]
  end
  for i, command in ipairs(commands) do
    local names = {}
    for j, word in ipairs(command) do
      for name in variables_in(word) do names[name] = true end
      if word:sub(1, 1) ~= "'" then command[j] = word:gsub("%$%d+", number) end
    end
    for name in next, names do
      if last[name] == i then free[#free + 1] = numbers[name] end
    end
  end
end

-- Running ------------------------------------------------------------------------------------------------------------

-- A form of `assay.run_plain` that all sessions share which prepared the same statements: its `program`; `executed`,
-- how many statements come before each command; and the `classes` of its statements.
local Straight = { statements = {} }

function Straight:__index(field)
  if field == "connection" then return first_connections[shared.session] end
  return Straight[field]
end

function Straight.values() return {} end
function Straight.restore() end

--- The next `event` of the running session draws what it drew before, and executes nothing until it comes to this
--- command. That has the answer that follows, if it `failed`.
function Straight:replay(at, failed, ...)
  local session, skipped = shared.session, self.executed[at + 1]
  local answer, count = { ... }, select("#", ...)
  take_back(shared)
  local classes = self.classes
  set_perform(classes, function(statement, ...)
    local class = getmetatable(statement)
    if shared.session ~= session then return class.methods.perform(statement, ...) end
    if skipped > 0 then
      skipped = skipped - 1
      return
    end
    set_perform(classes)
    if not failed then return statement:perform(...) end
    local executed = class.name == "values" and statement or statements.text_with(statement, ...)
    return connections.finish_unread(statement[0], executed, unpack(answer, 1, count))
  end)
end

--- After that `event`.
function Straight:end_replay() set_perform(self.classes) end

--- What was found in a trace, as a form.
local function form_of(found, classes)
  renumber(found.commands)
  local texts, executed, count = {}, {}, 0
  for i, command in ipairs(found.commands) do
    texts[i], executed[i] = table.concat(command, SEPARATOR) .. SEPARATOR, count
    if command[1] == "execute" or command[1] == "query" then count = count + 1 end
  end
  executed[#executed + 1] = count
  local program = plain.program(table.concat(texts))
  return program and setmetatable({ program = program, executed = executed, classes = classes }, Straight)
end

local forms = setmetatable({}, { __mode = "k" }) -- by the list of statements; false: not straight
local traces = {} -- what was traced: the `classes` of its statements, and its `form` or false

local function are_equal(classes, others)
  for class in next, classes do
    if not others[class] then return false end
  end
  for class in next, others do
    if not classes[class] then return false end
  end
  return true
end

--- The form of `event` that executes the statements in `list`; nil if it is not straight. All sessions of a state have
--- the same `event`, so it is traced once for the same statements.
function core.straight(event, list)
  if forms[list] ~= nil then return forms[list] or nil end
  local classes = add_classes({}, list)
  local form
  for _, earlier in ipairs(traces) do
    if are_equal(earlier.classes, classes) then form = earlier.form end
  end
  if form == nil then
    local found = traced(event, list, classes)
    form = found and form_of(found, classes) or false
    traces[#traces + 1] = { classes = classes, form = form }
  end
  forms[list] = form
  return form or nil
end
