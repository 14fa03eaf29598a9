--- `ffi` for scripts: LuaJIT's, made safe for many sessions in one state, with sysbench's exported functions.
--
-- Declaring a struct twice is an error in LuaJIT and declaring functions again and again exhausts its type table, so a
-- declaration seen before is skipped. `ffi.C` answers sysbench's functions itself and turns sleeping into a request.
local core = ...
local ffi = require("ffi")
local ask, shared, current = core.ask, core.shared, core.current
local yield = coroutine.yield

ffi.cdef [[
typedef enum {
  SB_CNT_OTHER, SB_CNT_READ, SB_CNT_WRITE, SB_CNT_TRX, SB_CNT_ERROR, SB_CNT_RECONNECT,
  SB_CNT_BYTES_READ, SB_CNT_BYTES_WRITTEN, SB_CNT_MAX
} sb_counter_type;
/* Names that scripts may know; nothing is in them. */
typedef struct sql_driver sql_driver; typedef struct sql_connection sql_connection;
typedef struct sql_statement sql_statement; typedef struct sql_result sql_result; typedef struct sql_row sql_row;
typedef struct sql_value sql_value; typedef struct sql_bind sql_bind;
typedef int sql_error_t; typedef int sql_bind_type_t; typedef int sb_arg_t;
]]

local seen = {}

--- Calls `each` with every top-level declaration of a C text, without comments and with single blanks.
local function declarations(text, each)
  text = text:gsub("/%*.-%*/", " "):gsub("//[^\n]*", " ")
  local depth, start = 0, 1
  for position, mark in text:gmatch("()([{};])") do
    if mark == "{" then
      depth = depth + 1
    elseif mark == "}" then
      depth = depth - 1
    elseif depth == 0 then
      each((text:sub(start, position):gsub("%s+", " "):gsub("^ ", "")))
      start = position + 1
    end
  end
  local rest = text:sub(start):gsub("%s+", " "):gsub("^ ", "")
  if rest ~= "" then each(rest) end
end

local function cdef(text, ...)
  if select("#", ...) > 0 or type(text) ~= "string" then return ffi.cdef(text, ...) end
  declarations(text, function(declaration)
    if not seen[declaration] then
      local ok, message = pcall(ffi.cdef, declaration)
      if not ok then core.raise((core.front.before_cdef_errors or "ffi.cdef: ") .. message) end
      seen[declaration] = true
    end
  end)
end

local with_metatype = {}

--- A type gets its metatable once per state; what later sessions set is the same text and is ignored.
local function metatype(ctype, metatable)
  local id = tonumber(ffi.typeof(ctype))
  with_metatype[id] = with_metatype[id] or ffi.metatype(ctype, metatable)
  return with_metatype[id]
end

local counter_add = core.bind("counter_add", "void (*)(void *, int, uint64_t)")
local counter_value = core.bind("counter_value", "uint64_t (*)(void *, int)")

local counter_type = ffi.typeof("sb_counter_type")

--- A counter's number; LuaJIT accepts the names of an enum for its values.
local function counter_of(kind)
  return type(kind) == "string" and tonumber(ffi.new(counter_type, kind)) or kind
end

--- A function of libc that sleeps, for a number of units of a second.
local function sleeper(name, unit)
  return function(...)
    if select("#", ...) ~= 1 then core.raise("wrong number of arguments for function call") end
    local amount = ...
    local number = type(amount) ~= "string" and tonumber(amount)
    if not number then core.refuse_argument(1, name, amount, "unsigned int") end
    core.sleep(number * unit)
    return 0
  end
end

--- sysbench's exported C functions, and libc's that would block the worker.
local ours = {
  usleep = sleeper("usleep", 1e-6),
  sleep = sleeper("sleep", 1),
  sb_counter_inc = function(_, kind) counter_add(shared, counter_of(kind), 1) end,
  sb_counter_add = function(_, kind, amount) counter_add(shared, counter_of(kind), amount) end,
  sb_counter_val = function(_, kind) return counter_value(shared, counter_of(kind)) end,
  sb_more_events = function()
    core.flush(current())
    core.running_types[shared.session] = false
    return yield(ask.NEXT)
  end,
  sb_event_start = function() end, -- `sb_more_events` began it
  sb_event_stop = function() end, -- the next `sb_more_events` ends it
}
core.exported = ours

local function known(name) return ffi.C[name] end

local C = setmetatable({}, {
  __index = function(_, name)
    local own = ours[name]
    if own then return own end
    local ok, value = pcall(known, name)
    if not ok then core.raise((value:gsub("^assay/%w+:%d+: ", ""))) end
    return value
  end,
  __newindex = function(_, name, value)
    ffi.C[name] = value
  end,
})

core.base.ffi = setmetatable({ cdef = cdef, metatype = metatype, C = C }, { __index = ffi })
core.base_loaded.ffi = core.base.ffi
