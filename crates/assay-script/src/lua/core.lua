--- The basis of every session: requests, positions of errors in the script, its environment.
--
--
-- Runs once per state. `core` is the one table that all parts of the prelude share; Rust fills in `addresses`, `shared`
-- and the set-up. Scripts never see it.
local core = ...
local ffi = require("ffi")
local getinfo, yield = debug.getinfo, coroutine.yield

ffi.cdef [[
struct assay_shared { uint32_t session; uint32_t length; const char *text; };
]]

-- What a session can request: the codes of `src/request.rs`, decoded in `src/state.rs`.
core.ask = {
  CONNECT = 1, DISCONNECT = 2, RECONNECT = 3, QUERY = 4, PREPARE = 5, EXECUTE = 6, CLOSE = 7, LOAD = 8,
  READY = 9, NEXT = 10, TYPE = 11, FAILED = 12, STOP = 13, SLEEP = 14, CLAIM = 15, BARRIER = 16, EXPECT = 17,
  LOG = 18, FINISHED = 19, DIED = 20, DECLARED = 21, DECLARE = 22, ROLLBACK = 23, DEFER = 24,
  FLUSH = 25, LEAVE = 26, PIPE = 27, SYNCHRONIZE = 28, IN_TRANSACTION = 29, PLAIN = 30, EXECUTED = 31,
  PERFORM = 32, NOTIFICATION = 33, ROW = 34,
}
local ask = core.ask

core.RESTART = 1 -- sysbench.error.RESTART_EVENT

local shared = ffi.cast("struct assay_shared *", core.shared)
core.shared = shared

--- A Rust function: called by its address, which LuaJIT compiles to a plain call.
function core.bind(name, signature)
  return ffi.cast(signature, core.addresses[name])
end

local sessions = {}
core.sessions = sessions
core.environments = {} -- those of the sessions, by the same number
core.running_types = {} -- the names of the types of their transactions; false while they have none

--- The session that is running.
function core.current()
  return sessions[shared.session]
end
local current = core.current

--- Whether the code is the prelude's, or what compiled scripts call, and not the script's.
local function is_ours(source)
  return source:sub(1, 7) == "=assay/" or source:find("^[=@]pgbench_%a+%.lua$") ~= nil
end
core.is_ours = is_ours

--- The current line of the script, as `file:line: `; empty if there is none on this stack.
function core.place()
  local level = 2
  while true do
    local info = getinfo(level, "Sl")
    if not info then return "" end
    if info.what ~= "C" and not is_ours(info.source) then
      return info.short_src .. ":" .. info.currentline .. ": "
    end
    level = level + 1
  end
end

--- What a front may change: functions and values, set by its overlay, and used if they are set. Otherwise scripts get
--- our own messages, through the engine.
---
--- Output: `write(text)`, `message(severity, text)`; `exit(code)`: `os.exit`, which need not return. Positions in
--- messages: `place()`: of the script; `place_of_call(name)`: of a call of the C function with this name. Scripts:
--- `compiled(display, text)`: a built-in one was; `loaded[module](value)`: a built-in module was; `module_found(name,
--- file)`: `require` found one of ours, or a file instead; `failed(name, failure)`: a function of the script failed, or
--- with nil the script itself. The others are documented where they are used: sql.lua, statement.lua, legacy.lua,
--- report.lua, session.lua.
local front = {}
core.front = front

--- Raises `message` as if the script's own line had raised it.
function core.raise(message)
  error((front.place or core.place)() .. message, 0)
end
local raise = core.raise

--- Raises that C function `name` does not accept `value` as argument `number`, in the words of LuaJIT's FFI.
function core.refuse_argument(number, name, value, ctype)
  local kind = type(value)
  local message = ("bad argument #%d to '%s' (cannot convert '%s' to '%s')"):format(
    number, name, kind == "boolean" and "bool" or kind, ctype)
  local place = front.place_of_call and front.place_of_call(name)
  if place then error(place .. message, 0) end
  raise(message)
end

core.mains = setmetatable({}, { __mode = "k" }) -- bodies of files, to be called so in tracebacks

--- A function's name: that of the global that holds it, or its caller's name for it, unless that is our own code.
local function name_of(info, caller, env)
  if core.mains[info.func] then return "in main chunk" end
  for _, globals in ipairs { env, core.common } do
    for name, value in next, globals do
      if value == info.func and type(name) == "string" then return "in function '" .. name .. "'" end
    end
  end
  if info.name and caller and not is_ours(caller.source) then return "in function '" .. info.name .. "'" end
  return "in function <" .. info.short_src .. ":" .. info.linedefined .. ">"
end

local function traceback(level)
  local session = current()
  local lines = {}
  while true do
    local info = getinfo(level, "Slnf")
    if not info or #lines == 30 then break end
    if info.what ~= "C" and not is_ours(info.source) then
      local env = session and session.env or {}
      lines[#lines + 1] = info.short_src .. ":" .. info.currentline .. ": " .. name_of(info, getinfo(level + 1, "S"), env)
    end
    level = level + 1
  end
  return table.concat(lines, "\n")
end

local BOUNDARY = "attempt to yield across C-call boundary"
local BOUNDARY_EXPLAINED = "a statement, sleep or wait is not possible inside a function that C code calls back "
  .. "(the comparison of table.sort, the replacement function of string.gsub, an FFI callback): "
  .. "collect what you need first, and call the database outside of it"

--- Message handler of every protected call: describes an error for the engine, while the stack still exists.
function core.handler(value)
  if type(value) == "table" and rawget(value, "is_failure") then return value end
  local session = current()
  local failure = { is_failure = true, value = value, restart = false, statement = false, traceback = "" }
  if type(value) == "table" and rawget(value, "errcode") == core.RESTART then
    failure.restart = true
    failure.statement = session ~= nil and session.last_error == value
    if value.sql_errmsg then
      failure.message = core.error_text(value.sql_errno, value.sql_state, value.sql_errmsg)
      -- Only its line: a busy run may have many of these, and few of them end it.
      failure.traceback = core.place():sub(1, -3)
    else
      failure.message = "the script asked for a restart of the transaction"
    end
    return failure
  end
  local message
  if type(value) == "string" or type(value) == "number" then
    message = tostring(value)
    local last = session and session.last_error
    failure.statement = type(last) == "string" and message:find(last, 1, true) ~= nil
  else
    local meta = debug.getmetatable(value)
    local ok, text = pcall(tostring, value)
    if ok and type(meta) == "table" and meta.__tostring then
      message = text
    else
      message = "error raised with a " .. type(value) .. " value instead of a message"
    end
  end
  message = message:gsub("^assay/[%w_]+:%d+: ", function() return core.place() end)
  if message:find(BOUNDARY, 1, true) then
    message = message:gsub("attempt to yield across C%-call boundary", BOUNDARY_EXPLAINED, 1)
  end
  failure.message = message
  failure.traceback = traceback(3)
  return failure
end

--- The text of a statement error that is raised as a string.
function core.error_text(errno, state, message)
  return string.format("SQL error, errno = %d, state = '%s': %s", tonumber(errno) or 0, state or "", message)
end

--- A message for the user. If a request is impossible (inside a C call), the line waits for the session's next
--- transaction.
function core.log(text)
  local session = current()
  if coroutine.isyieldable() then
    core.flush(session)
    yield(ask.LOG, text)
  else
    session.waiting = session.waiting or {}
    core.some_wait = true
    table.insert(session.waiting, text)
  end
end

function core.flush(session)
  local waiting = session.waiting
  if waiting then
    session.waiting = nil
    for _, text in ipairs(waiting) do yield(ask.LOG, text) end
  end
end

--- Writes text that need not end with its line: immediately if the front does; otherwise whole lines are sent, the rest
-- waits.
function core.write(text)
  if front.write then return front.write(text) end
  local session = current()
  local all = (session.partial or "") .. text
  local line_end = all:find("\n[^\n]*$")
  if line_end then
    session.partial = line_end < #all and all:sub(line_end + 1) or nil
    core.log(all:sub(1, line_end - 1))
  else
    session.partial = all
  end
end

--- A message of the API about the script. `severity`: `FATAL`, `ALERT`, `WARNING`, `NOTICE`, `INFO` or `DEBUG`.
function core.message(severity, text)
  if front.message then return front.message(severity, text) end
  core.log(severity .. ": " .. text)
end

-- Files -------------------------------------------------------------------------------------------------------------

local compiled = {} -- display name → { text, factory }

--- Compiles a file once per state, however many sessions run it: the text becomes the body of a function, and calling
--- `factory` creates a fresh closure of it for a session's own environment. nil and a message if it has a syntax error.
--- `built_in`: the text is one of ours.
function core.compile(text, display, built_in)
  local known = compiled[display]
  if known and known.text == text then return known.factory end
  local factory
  if text:sub(1, 1) == "\27" then -- bytecode
    local body, message = loadstring(text, "@" .. display)
    if not body then return nil, message end
    factory = function() return loadstring(text, "@" .. display) end
  else
    local source = text:gsub("^\239\187\191", ""):gsub("^#[^\n]*", "")
    local message
    if not built_in then -- First by itself, so that messages are about the text as it is. Ours have no errors.
      factory, message = loadstring(source, "@" .. display)
      if not factory then return nil, message end
    end
    factory, message = loadstring("return function(...) " .. source .. "\nend", "@" .. display)
    if not factory then return nil, message end
  end
  compiled[display] = { text = text, factory = factory }
  if built_in and front.compiled then front.compiled(display, text) end
  return factory
end

--- Compiles the script itself, and reports syntax errors to the front.
function core.compile_script(text, display, built_in)
  local factory, message = core.compile(text, display, built_in)
  if not factory and front.failed then front.failed(nil, { value = message, message = message }) end
  return factory, message
end

--- One of our own modules was run in this environment and returned `value`: the front may modify it.
function core.adapt(name, value, env)
  local adaptation = front.loaded and front.loaded[name]
  if adaptation then setfenv(adaptation, env)(value) end
end

--- Runs a compiled file in an environment.
function core.run(factory, env, ...)
  local body = setfenv(factory(), env)
  core.mains[body] = true
  return body(...)
end

local function read_file(path)
  local file, message = io.open(path, "rb")
  if not file then return nil, message end
  local text = file:read("*a")
  file:close()
  if not text then return nil, path .. ": not a file" end
  return text
end

local installed_text = core.bind("installed_text", "int (*)(void *, const char *, size_t)")

local function loadfile_here(path)
  if path == nil then return loadfile() end
  local text, message = read_file(path)
  if not text and installed_text(shared, path, #path) ~= 0 then text = ffi.string(shared.text, shared.length) end
  if not text then return nil, "cannot open " .. tostring(message) end
  local factory
  factory, message = core.compile(text, path)
  if not factory then return nil, message end
  local body = setfenv(factory(), current().env)
  core.mains[body] = true
  return body
end

local function dofile_here(path)
  local body, message = loadfile_here(path)
  if not body then error(message, 0) end
  return body()
end

-- The environment ---------------------------------------------------------------------------------------------------

--- What all sessions of the state see through their environment. A global that a session sets is its own.
local base = {}
core.base = base
for _, name in ipairs {
  "assert", "collectgarbage", "error", "gcinfo", "getfenv", "ipairs", "load", "loadstring", "newproxy", "next",
  "pairs", "pcall", "rawequal", "rawget", "rawlen", "rawset", "select", "setfenv", "tonumber", "tostring", "type",
  "unpack", "_VERSION", "bit", "jit", "string", "table",
} do
  base[name] = _G[name]
end
base.loadfile = loadfile_here
base.dofile = dofile_here

--- `pairs` on a session's globals, and on our own tables, also lists what is underneath them: some scripts list
-- everything.
function base.pairs(object)
  local meta = debug.getmetatable(object)
  local under = type(meta) == "table" and rawget(meta, "under")
  if not under then return pairs(object) end
  local all = {}
  for key, value in next, under do all[key] = value end
  if under == base then
    for key in next, core.on_demand do all[key] = base[key] end
    if current().shares then
      for key in next, core.later do all[key] = object[key] end
      for key, value in next, core.common do all[key] = value end
    end
  end
  for key, value in next, object do all[key] = value end
  return next, all, nil
end

function base.print(...)
  local parts = { ... }
  for i = 1, select("#", ...) do parts[i] = tostring(parts[i]) end
  core.write(table.concat(parts, "\t") .. "\n")
end

--- Globals that the sessions of the state share, between a session's own and the base.
local common = setmetatable({}, { __index = base })
core.common = common

-- A script may set a metatable on its globals (strict.lua does); ours must remain underneath.
local function metatable_over_base(theirs)
  return {
    theirs = theirs,
    under = base,
    __index = function(env, key)
      local value = (current().shares and common or base)[key]
      if value ~= nil then return value end
      local index = theirs.__index
      if type(index) == "function" then return index(env, key) end
      if index then return index[key] end
    end,
    __newindex = function(env, key, value)
      local newindex = theirs.__newindex
      if type(newindex) == "function" then return newindex(env, key, value) end
      if newindex then newindex[key] = value else rawset(env, key, value) end
    end,
  }
end

local env_meta = { __index = base, under = base }
local sharing_env_meta = { __index = common, under = base }

local shared_modules = {} -- name → what the module returned
local later = {} -- global's name → the shared module that defines it
core.later = later

--- A global that a shared module defines, or would define.
local function shared_global(name)
  local module = later[name]
  if module and shared_modules[module] == nil then core.share(module) end
  return rawget(common, name)
end

--- A global that the script or one of its modules defines, not one in the base.
function core.global(session, name)
  local value = rawget(session.env, name)
  if value == nil and session.shares then return shared_global(name) end
  return value
end

function base.setmetatable(object, meta)
  local session = current()
  if session and rawequal(object, session.env) then
    local plain = session.shares and sharing_env_meta or env_meta
    setmetatable(object, type(meta) == "table" and metatable_over_base(meta) or plain)
    return object
  end
  local ours = type(object) == "table" and getmetatable(object)
  if type(ours) == "table" and rawget(ours, "make_own") then ours.make_own(object) end
  return setmetatable(object, meta)
end

function base.getmetatable(object)
  local meta = getmetatable(object)
  if type(meta) == "table" and rawget(meta, "under") then return meta.theirs end
  return meta
end

-- Modules -----------------------------------------------------------------------------------------------------------

local module_text = core.bind("module_text", "int (*)(void *, const char *, size_t)")
local stand_in = core.bind("stand_in", "int (*)(void *, const char *, size_t)")
local real_package = package
local base_loaded = {}
core.base_loaded = base_loaded

local in_every_package = {
  path = core.path, cpath = core.cpath, config = real_package.config, loadlib = real_package.loadlib,
  seeall = real_package.seeall,
}
local package_meta = {
  under = in_every_package,
  __index = function(package, key)
    if key ~= "preload" and key ~= "loaders" then return in_every_package[key] end
    local list = {} -- the session's own, once somebody looks
    rawset(package, key, list)
    return list
  end,
}
-- The modules that each session of a built-in workload has loaded at its top level, once one has.
local loaded_by_all
local loaded_meta = {
  under = base_loaded,
  __index = function(_, name)
    local value = base_loaded[name]
    if value == nil and loaded_by_all and not current().at_top_level then return loaded_by_all[name] end
    return value
  end,
}

local function package_of(session)
  local package = session.package
  if not package then
    package = setmetatable({ loaded = setmetatable({ _G = session.env }, loaded_meta) }, package_meta)
    package.loaded.package = package
    session.package = package
  end
  return package
end

--- A session of a built-in workload needs no list of its modules after its top level if they returned nothing: it is
--- the same in all. There may be thousands of sessions.
function core.forget_loaded(session)
  local loaded = session.package and session.package.loaded
  for name, value in next, loaded or {} do
    if value ~= true and name ~= "_G" and name ~= "package" then return end
  end
  loaded_by_all = loaded_by_all or loaded
  session.package = nil
end

--- Globals created when a script first uses them: name → function of the session.
core.on_demand = { package = package_of }

setmetatable(base, {
  __index = function(_, key)
    local session = current()
    if not session then return nil end
    local make = core.on_demand[key]
    if make then return make(session) end
    if session.shares then return shared_global(key) end
  end,
})

local function search(name, path, tried)
  local file = name:gsub("%.", "/"):gsub("%%", "%%%%")
  for template in path:gmatch("[^;]+") do
    local candidate = template:gsub("%?", file)
    local text = read_file(candidate)
    if text then return candidate, text end
    tried[#tried + 1] = "no file '" .. candidate .. "'"
  end
end

--- The body of a module that is a file or built in, and whether it is built in; nil if there is none.
local function body_of_file(name, path, tried, required)
  local file, text = search(name, path, tried)
  local display = file
  if file and stand_in(shared, file, #file) ~= 0 or not file and module_text(shared, name, #name) ~= 0 then
    display, text = name .. ".lua", ffi.string(shared.text, shared.length)
  end
  if not display then
    tried[#tried + 1] = "no built-in module '" .. name .. "'"
    return nil
  end
  -- A file beside the script is expected, unless it replaces one of ours.
  local known = module_text(shared, name, #name) ~= 0 or file and file:sub(1, #core.installed) == core.installed
  if required and known and front.module_found then front.module_found(name, display == file and file or nil) end
  local built_in = display ~= file
  local factory, message = core.compile(text, display, built_in)
  if not factory then error(message, 0) end
  local body = setfenv(factory(), current().env)
  core.mains[body] = true
  return body, built_in
end

--- The function that creates module `name` and whether it is built in, or nil and where we searched.
local function find_module(name, package)
  local tried = { "" }
  local preload = rawget(package, "preload")
  if preload and preload[name] then return preload[name] end
  tried[2] = "no field package.preload['" .. name .. "']"
  local body, built_in = body_of_file(name, package.path, tried, true)
  if body then return body, built_in end
  if real_package.preload[name] then return real_package.preload[name] end
  real_package.cpath = package.cpath
  for i = 3, 4 do -- C modules; their state is shared by all sessions here
    local loader = real_package.loaders[i](name)
    if type(loader) == "function" then return loader end
    if type(loader) == "string" then tried[#tried + 1] = (loader:gsub("^%s+", ""):gsub("\n%s+", "\n\t")) end
  end
  for _, searcher in ipairs(rawget(package, "loaders") or {}) do
    local loader = searcher(name)
    if type(loader) == "function" then return loader end
    if type(loader) == "string" then tried[#tried + 1] = loader end
  end
  return nil, table.concat(tried, "\n\t")
end

local LOADING = newproxy()

--- Like Lua's, but written in Lua, with a cache per session: a module's body may run statements.
function base.require(name)
  if type(name) ~= "string" and type(name) ~= "number" then raise("require needs the name of a module") end
  name = tostring(name)
  local package = package_of(current())
  local loaded = package.loaded
  local value = loaded[name]
  if value == LOADING then raise("loop or previous error loading module '" .. name .. "'") end
  if value then return value end
  local body, built_in = find_module(name, package)
  if not body then raise("module '" .. name .. "' not found:" .. built_in) end
  loaded[name] = LOADING
  value = body(name)
  if built_in then core.adapt(name, value, current().env) end
  if value ~= nil then loaded[name] = value end
  if loaded[name] == LOADING then loaded[name] = true end
  return loaded[name]
end

-- Modules shared by all sessions: each runs once in a state, in the first session that needs it. Its functions see the
-- globals of whichever session calls them, and set these.
local environments = core.environments
local loading -- the session that runs such a module: what that defines is everybody's, and seen by it before the session's own

local shared_meta = {
  __index = function(_, key) return environments[shared.session][key] end,
  __newindex = function(_, key, value) environments[shared.session][key] = value end,
}
local shared_env = setmetatable({}, shared_meta)

local function defined(_, key)
  local value = current() == loading and rawget(common, key)
  return value or current().env[key]
end

local function define(_, key, value)
  local globals = current() == loading and common or current().env
  globals[key] = value
end

--- From now on the session sees what shared modules define.
function core.see_shared(session)
  if session.shares then return end
  session.shares = true
  if getmetatable(session.env) == env_meta then setmetatable(session.env, sharing_env_meta) end
end

--- What shared module `name` returned, true if nothing.
function core.share(name)
  local session = current()
  core.see_shared(session)
  local value = shared_modules[name]
  if value == LOADING then raise("loop or previous error loading module '" .. name .. "'") end
  if value ~= nil then return value end
  local tried = { "" }
  local body, built_in = body_of_file(name, package_of(session).path, tried)
  if not body then raise("module '" .. name .. "' not found:" .. table.concat(tried, "\n\t")) end
  shared_modules[name] = LOADING
  local outer, see, set = loading, shared_meta.__index, shared_meta.__newindex
  loading, shared_meta.__index, shared_meta.__newindex = session, defined, define
  value = setfenv(body, shared_env)(name, core.built_in)
  if built_in then core.adapt(name, value, shared_env) end
  loading, shared_meta.__index, shared_meta.__newindex = outer, see, set
  if value == nil then value = true end
  shared_modules[name] = value
  return value
end

function base.module(name, ...)
  local session = current()
  local loaded = package_of(session).loaded
  local result = loaded[name]
  if type(result) ~= "table" then
    result = session.env
    for part in name:gmatch("[^.]+") do
      local inner = rawget(result, part)
      if inner == nil then
        inner = {}
        rawset(result, part, inner)
      elseif type(inner) ~= "table" then
        raise("name conflict for module '" .. name .. "'")
      end
      result = inner
    end
    loaded[name] = result
  end
  result._M, result._NAME, result._PACKAGE = result, name, name:match("^(.*%.)[^.]*$") or ""
  setfenv(2, result)
  for _, option in ipairs { ... } do
    if option == real_package.seeall then
      setmetatable(result, { __index = session.env })
    else
      option(result)
    end
  end
end

-- Coroutines of the script -------------------------------------------------------------------------------------------

-- Requests pass through a script's own coroutines to the engine. They start with a number; what a script yields to
-- itself starts with this.
local TO_SCRIPT = newproxy()
local resume, status = coroutine.resume, coroutine.status

local function pass(co, ok, first, ...)
  if not ok or status(co) == "dead" then return ok, first, ... end
  if first == TO_SCRIPT then return true, ... end
  return pass(co, resume(co, yield(first, ...)))
end

local function resume_here(co, ...)
  return pass(co, resume(co, ...))
end

local function unwrap(ok, ...)
  if ok then return ... end
  error((...), 0)
end

-- LuaJIT calls the handler of an `xpcall` where nothing can yield. Here it starts in a coroutine of its own while the
-- stack of the error still exists, and continues, if it makes a request, when that is unwound.
local failing = setmetatable({}, { __mode = "k" }) -- coroutine of a handler → the one that failed
local create, running = coroutine.create, coroutine.running

local function packed(...) return { n = select("#", ...), ... } end

local function handled(co, ok, ...)
  if status(co) ~= "dead" then return handled(co, resume(co, yield(...))) end
  if ok then return false, (...) end -- one value, as by LuaJIT
  return false, "error in error handling"
end

function base.xpcall(body, handler, ...)
  local co, begun
  local function handle(failure)
    co = create(handler)
    failing[co] = running()
    begun = packed(resume(co, failure))
  end
  local results = packed(xpcall(body, handle, ...))
  if results[1] or not begun then return unpack(results, 1, results.n) end
  return handled(co, unpack(begun, 1, begun.n))
end

-- The handler's stack ends in the failed one: there, levels 0 and 1 are `resume` and `handle` above.
base.debug = setmetatable({
  traceback = function(...)
    local message, level = ...
    local failed = failing[running()]
    if not failed or (message ~= nil and type(message) ~= "string") then return debug.traceback(...) end
    local own = debug.traceback(message or "", (level or 1) + 1)
    local both = own .. debug.traceback(failed, "", 2):gsub("^\nstack traceback:", "")
    return message and both or both:sub(2)
  end,
  getinfo = function(...)
    local level, what = ...
    local failed = failing[running()]
    if not failed or type(level) ~= "number" then return getinfo(...) end
    local depth = 0
    while getinfo(depth + 2, "f") do depth = depth + 1 end
    if level <= depth then return getinfo(...) end
    return getinfo(failed, level - depth + 1, what or "nSluf")
  end,
}, { __index = debug })

base.coroutine = setmetatable({
  resume = resume_here,
  yield = function(...) return yield(TO_SCRIPT, ...) end,
  wrap = function(body)
    local co = coroutine.create(body)
    return function(...) return unwrap(resume_here(co, ...)) end
  end,
  --- nil outside the script's own coroutines: the script does not know that it runs in one of ours.
  running = function()
    local co = running()
    while failing[co] do co = failing[co] end
    return co ~= current().thread and co or nil
  end,
}, { __index = coroutine })

-- Libraries with something to keep apart -----------------------------------------------------------------------------

--- Pauses the session, not its worker.
function core.sleep(seconds)
  seconds = tonumber(seconds)
  if not seconds then raise("the time to sleep is not a number of seconds") end
  yield(ask.SLEEP, seconds)
end

local UNITS = { [""] = 1, s = 1, m = 60, h = 3600, d = 86400 }

base.os = setmetatable({
  execute = function(command)
    local amount, unit = tostring(command):match("^%s*sleep%s+([%d.]+)([smhd]?)%s*$")
    if amount then
      core.sleep(tonumber(amount) * UNITS[unit])
      return 0
    end
    return os.execute(command)
  end,
  -- Only the program itself ends the process.
  exit = function(code)
    if front.exit then front.exit(code) end
    core.flush(current())
    if code == nil or code == true or code == 0 then yield(ask.FINISHED, true) end
    raise("os.exit(" .. tostring(code) .. ")")
  end,
}, { __index = os })

local stdout = {
  write = function(self, ...)
    core.write(table.concat { ... })
    return self
  end,
  flush = function() return true end,
  setvbuf = function() return true end,
  seek = function() return nil, "not seekable" end,
  close = function() return true end,
}

base.io = setmetatable({
  stdout = stdout,
  write = function(...) return stdout:write(...) end,
}, { __index = io })

local randomseed = core.bind("math_seed", "void (*)(void *, double)")
local floor = math.floor

--- `math.random` that draws with the Rust function of this name.
function core.random_by(name)
  local random = core.bind(name, "double (*)(void *)")
  return function(low, high)
    if low == nil then return random(shared) end
    if high == nil then low, high = 1, low end
    if low > high then raise("bad argument to 'random' (interval is empty)") end
    return floor(low + random(shared) * (floor(high) - low + 1))
  end
end

base.math = setmetatable({
  random = core.random_by("math_random"),
  randomseed = function(seed) randomseed(shared, seed) end,
}, { __index = math })

for _, name in ipairs { "bit", "coroutine", "debug", "io", "jit", "math", "os", "string", "table" } do
  base_loaded[name] = base[name]
end

--- A new environment: empty, with the base underneath.
function core.environment(session)
  local env = setmetatable({}, env_meta)
  env._G = env
  session.env = env
  return env
end
