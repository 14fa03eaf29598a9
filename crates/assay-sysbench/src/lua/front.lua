--- sysbench's own behavior for its scripts: error positions in messages, what its drivers print, its quirks.
--
--
-- Runs once per state, before the API is created, and fills `core.front`, which the API uses where sysbench's users
-- would notice a difference: without this file the same scripts run with our own messages. Nothing here knows the stock
-- scripts; `stock.lua` does.
local core = ...
local ffi = require("ffi")
local front, message, is_ours = core.front, core.message, core.is_ours
local shared, current = core.shared, core.current
local getinfo = debug.getinfo

-- Output -------------------------------------------------------------------------------------------------------------

local print_text = core.bind("front_print", "void (*)(void *, const char *, size_t)")
local print_message = core.bind("front_message", "void (*)(void *, uint32_t, const char *, size_t)")
local end_process = core.bind("front_exit", "void (*)(void *, int)")

-- The top level of what runs in one session of its own is silent: loading the program has printed its output.
local printed_before = core.entry == "main" or core.entry == "function" and core.sessions_in_all <= 1

function front.write(text)
  local session = current()
  if printed_before and session and session.at_top_level then return end
  print_text(shared, text, #text)
end

-- In the order of `Severity` of assay-script.
local SEVERITIES = { FATAL = 0, ALERT = 1, WARNING = 2, NOTICE = 3, INFO = 4, DEBUG = 5 }

function front.message(severity, text) print_message(shared, SEVERITIES[severity], text, #text) end

io.stdout:setvbuf("no") -- what C code prints comes in order with what scripts do

-- Each session loads the same modules: the first to do so reports which.
if core.entry == "declare" or core.entry == "top_level" then
  function front.module_found(name, file) message("INFO", "Module " .. name .. ": " .. (file or "built in")) end
end

-- Ends ---------------------------------------------------------------------------------------------------------------

--- `os.exit` ends the process, as scripts that are alone in theirs expect.
function front.exit(code)
  if code == nil or code == true then code = 0 elseif code == false then code = 1 end
  local number = tonumber(code)
  if not number then core.raise("bad argument #1 to 'exit' (number expected, got " .. type(code) .. ")") end
  end_process(shared, number)
end

--- Reports which function of the script failed, for each session.
function front.failed(name, failure)
  local value = failure.value
  local text = type(value) == "string" and failure.message or type(value) == "number" and tostring(value)
  message("FATAL", (name and "`" .. name .. "' function failed: " or "") .. (text or "(not a string)"))
end

-- An error of `before_restart_event` is not caught, so that it ends the run, even if it asks for a restart.
front.hook_errors_are_final = true

-- Failures after the measured part are reported, and the run ends with success.
front.ends_well_after_all = true

-- Return values matter only for custom commands.
front.functions_succeed = true

--- Raises that a global that should be called is something else.
function front.not_a_function(kind) error("attempt to call a " .. kind .. " value", 0) end

-- The environment ----------------------------------------------------------------------------------------------------

-- `math.random` gives the numbers of LuaJIT's own.
core.base.math.random = core.random_by("tausworthe_random")

front.before_cdef_errors = ""

-- Places -------------------------------------------------------------------------------------------------------------

--- The position of a frame of the script, as `file:line: `.
function front.place_of(info) return info.short_src .. ":" .. info.currentline .. ": " end

--- The line that called our API; empty when C code did, such as `pcall`.
function front.place()
  local level = 2
  while true do
    local info = getinfo(level, "Sl")
    if not info or info.what == "C" then return "" end
    if not is_ours(info.source) then return front.place_of(info) end
    level = level + 1
  end
end

--- The line that called the function that called our API, in the same form.
local function outer_place()
  local level = 2
  while true do
    local info = getinfo(level, "S")
    if not info then return "" end
    if not is_ours(info.source) then break end -- C code, too: `pcall(con.query, con, text)`
    level = level + 1
  end
  local info = getinfo(level + 1, "Sl")
  if not info or info.what == "C" or is_ours(info.source) then return "" end
  return front.place_of(info)
end

-- Lines of sysbench's own Lua files that appear in messages, by the C function or the field that fails there.
local function line(file, number) return ('[string "%s"]:%d: '):format(file, number) end
local LINES = {
  db_create = line("sysbench.sql.lua", 182), new = line("sysbench.sql.lua", 399),
  sb_rand_str = line("sysbench.rand.lua", 68),
  sb_histogram_new = line("sysbench.histogram.lua", 65), sb_histogram_update = line("sysbench.histogram.lua", 51),
}

--- Where sysbench calls its C function of this name; nil if a script does.
function front.place_of_call(name) return LINES[name] end

-- By what should be a text: the line that takes its length, and its name there.
local TEXTS = {
  ["statement"] = { "sysbench.sql.lua", 269, "query" }, ["text of the bulk insert"] = { "sysbench.sql.lua", 274, "query" },
  ["row of the bulk insert"] = { "sysbench.sql.lua", 279, "val" },
  ["statement to prepare"] = { "sysbench.sql.lua", 289, "query" }, ["format"] = { "sysbench.rand.lua", 66, "fmt" },
}

--- Raises that a value of this kind is not a text. Returns if sysbench's message is ours.
function front.not_a_text(what, kind)
  local known = TEXTS[what]
  if known and kind ~= "table" then
    local file, number, name = unpack(known)
    error(line(file, number) .. ("attempt to get length of local '%s' (a %s value)"):format(name, kind), 0)
  end
end

--- Raises that `value` is not a parameter, or `kind` not a type of one.
function front.not_a_parameter(value)
  if type(value) == "table" then return end
  error(line("sysbench.sql.lua", 420) .. ("attempt to index local 'param' (a %s value)"):format(type(value)), 0)
end

function front.not_a_length(value) core.refuse_argument(2, "new", value, "int") end

function front.not_a_type(kind)
  if type(kind) == "string" or type(kind) == "number" then core.raise("Unsupported argument type: " .. kind) end
  error(line("sysbench.sql.lua", 402) .. ("attempt to concatenate local 'btype' (a %s value)"):format(type(kind)), 0)
end

--- Raises that a table passed to a report formatter is not a report. `format`: `default`, `csv` or `json`.
local REPORTS = { default = { 144, 150 }, csv = { 73, 80 }, json = { 118, 124 } }

function front.check_report(stat, format)
  local index, events = unpack(REPORTS[format])
  if type(stat) ~= "table" then
    error(line("sysbench.lua", index) .. "attempt to index local 'stat' (a " .. type(stat) .. " value)", 0)
  elseif stat.events == nil then
    error(line("sysbench.lua", events) .. "attempt to perform arithmetic on field 'events' (a nil value)", 0)
  end
end

--- Raises what is wrong with the table of options: `what` is one of these.
local OPTIONS = {
  table = { 120, "wrong type for sysbench.cmdline.options: %s" },
  entry = { 132, "wrong table structure in sysbench.cmdline.options" },
  no_description = { 137, "nil description for option %s" },
  description = { 138, "cannot convert '%s' to 'const char *'" },
  kind = { 151, "cannot convert '%s' to 'const char *'" },
}

function front.wrong_option(what, detail)
  local number, text = unpack(OPTIONS[what])
  error(line("sysbench.cmdline.lua", number) .. text:format(detail), 0)
end

-- Objects ------------------------------------------------------------------------------------------------------------

-- In sysbench, drivers, connections, statements and results are C structs: `inspect` and its like do not list them.
local function is_struct(value)
  local meta = getmetatable(value)
  return type(value) == "table" and type(meta) == "table" and rawget(meta, "opaque") == true
end

function core.base.type(...)
  if select("#", ...) == 0 then core.raise("bad argument #1 to 'type' (value expected)") end
  local kind = type(...)
  if kind == "table" and is_struct((...)) then return "cdata" end
  return kind
end

local get_metatable, set_metatable, pairs_of = core.base.getmetatable, core.base.setmetatable, core.base.pairs

function core.base.getmetatable(object)
  if is_struct(object) then return "ffi" end
  return get_metatable(object)
end

local function refuse_struct(name)
  core.raise("bad argument #1 to '" .. name .. "' (table expected, got cdata)")
end

function core.base.setmetatable(object, meta)
  if is_struct(object) then refuse_struct("setmetatable") end
  return set_metatable(object, meta)
end

function core.base.pairs(object)
  if is_struct(object) then refuse_struct("pairs") end
  return pairs_of(object)
end

-- Results ------------------------------------------------------------------------------------------------------------

-- What a result has there. Only the first two mean anything here.
local FIELDS = { nrows = true, nfields = true, statement = true, counter = true, row = true, ptr = true }

local function no_member(key) core.raise("'struct sql_result' has no member named '" .. tostring(key) .. "'") end

--- Lets results answer for fields that they do not have like C structs do. Returns the result of a statement without
--- rows: it equals nil and is still true, like a null pointer: `assert(con:query("BEGIN"))` holds. Its methods exist;
--- their results, and its fields, do not.
function front.adapt_results(Result)
  local function is_missing() core.raise("the statement returned no rows, so there is no result set") end
  ffi.cdef "struct assay_no_result;"
  ffi.metatype("struct assay_no_result", {
    __tostring = Result.__tostring,
    __index = function(_, key)
      if Result[key] then return is_missing end
      return (FIELDS[key] and is_missing or no_member)(key)
    end,
    __newindex = function(_, key) no_member(key) end,
  })
  local get = Result.__index
  Result.__index = function(self, key)
    local value = get(self, key)
    if type(key) == "string" and not FIELDS[key] and (value == nil or key == "connection") then no_member(key) end
    return value
  end
  Result.__newindex = function(self, key, value)
    if type(key) == "string" then no_member(key) end
    rawset(self, key, value)
  end
  return ffi.cast("struct assay_no_result *", nil)
end

--- A row of a result that is gone was requested.
function front.refuse_fetch() message("ALERT", "attempt to fetch row from an invalid result set") end

-- Errors of calls, by method.
front.alerts = {
  fetch_row = "attempt to fetch row from an empty result set",
  free = "attempt to free an invalid result set",
  use = "attempt to use an already closed connection",
  disconnect = "attempt to close an already closed connection",
  bulk_insert_next = "attempt to call bulk_insert_next() before bulk_insert_init()",
}
local FAILURES = {
  free = "db_free_results() failed",
  bulk_insert_init = "db_bulk_insert_init() failed",
  bulk_insert_next = "db_bulk_insert_next() failed",
  bulk_insert_done = "db_bulk_insert_done() failed",
}

--- Raises that a call failed.
function front.refuse_call(method)
  message("ALERT", front.alerts[method])
  core.raise(FAILURES[method])
end

--- What methods return that assert something: the text of the assertion that did not fail, too.
function front.asserted(method) return true, FAILURES[method] end

--- PostgreSQL's C library returns the last of several result sets.
function front.wants_last_set(connection) return connection.driver.kind == "pgsql" end

-- Errors -------------------------------------------------------------------------------------------------------------

local LOST = { [2006] = true, [2011] = true, [2013] = true, [2055] = true } -- mysql
local RECONNECT_PAUSE = 0.001 -- seconds

local function is_ignorable(connection, errno, state)
  for _, code in ipairs(core.options and core.options[connection.driver.kind .. "_ignore_errors"] or {}) do
    if code == "all" or code == state or (errno ~= 0 and tonumber(code) == errno) then return true end
  end
  return false
end

local function show_failure(kind, statement, errno, text)
  local is_text = type(statement) == "string"
  if kind ~= "pgsql" then
    local name = is_text and "mysql_drv_query" or "mysql_stmt_execute"
    message("FATAL", ("%s() returned error %d (%s) for query '%s'"):format(
      name, errno, text, is_text and statement or statement.text))
  elseif is_text then
    message("FATAL", "PQexec() failed: 7 " .. text)
    message("FATAL", "failed query was: " .. statement)
  else
    message("FATAL", "PQexecPrepared() failed: 7 " .. text)
  end
end

--- What sysbench's driver does about an error before the script learns of it: number, state and text as reported by the
--- driver, and whether it is ignored, inside and outside transactions.
function front.judge(connection, statement, errno, state, text)
  local kind = connection.driver.kind
  if kind == "mysql" and errno == 0 then -- the network's errors have no number of the server's
    errno, state, text = 2013, "HY000", "Lost connection to server during query"
  end
  local ignorable = is_ignorable(connection, errno, state)
  if not ignorable then
    show_failure(kind, statement, errno, text)
  elseif kind ~= "mysql" then
    core.roll_back(connection)
  elseif LOST[errno] then
    while not core.try_reconnect(connection) do core.sleep(RECONNECT_PAUSE) end
  end
  return kind == "pgsql" and 0 or errno, state, text, ignorable
end

--- sysbench's `query_row` calls `query`, so its errors have a line of their own.
local function called_by_query_row()
  for level = 3, 7 do
    local info = getinfo(level, "f")
    if info and info.func == core.query_row then return true end
  end
end

function front.raise_failure(text)
  if called_by_query_row() then error(line("sysbench.sql.lua", 300) .. text, 0) end
  core.raise(text)
end

--- sysbench blames the caller of whoever called `query`.
function front.raise_closed()
  message("ALERT", front.alerts.use)
  if called_by_query_row() then core.raise("SQL API error") end
  error(outer_place() .. "SQL API error", 0)
end

--- The description of the last error is a global of the session.
function front.describe(session, description) rawset(session.env, "errdesc", description) end

--- The number is the connection's, and the hook may have used that.
function front.number_after_hook(connection, errno) return connection.error == core.sql.error.NONE and 0 or errno end

front.bulk_gap = "" -- rows follow their prefix at once

--- What failed as a bulk insert is sent again, until the next `bulk_insert_init`. Raises that `method` failed.
function front.bulk_failed(connection, method, text, errno, state, words)
  local _, _, _, ignorable = front.judge(connection, text, errno, state, words)
  connection.bulk.text:put(text)
  connection.bulk.rows = 1
  connection.error = ignorable and core.sql.error.IGNORABLE or core.sql.error.FATAL
  core.raise(FAILURES[method])
end

function front.refuse_row(size_max)
  message("FATAL", "Query length exceeds the maximum value (" .. size_max .. "), aborting")
  core.raise(FAILURES.bulk_insert_next)
end

-- Preparing ----------------------------------------------------------------------------------------------------------

--- The text for PostgreSQL: `$1`, `$2`, … for the placeholders.
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

--- A statement was not prepared. `position`: of the character in question, from 1; `hint`: the server's, or empty.
function front.refuse_prepare(connection, text, errno, state, words, position, hint)
  local kind = connection.driver.kind
  if kind == "pgsql" then
    if hint ~= "" then hint = "HINT:  " .. hint .. "\n" end
    local place = core.marked(numbered(text), position)
    message("FATAL", "PQprepare() failed: ERROR:  " .. words .. "\n" .. (place and place .. "\n" or "") .. hint)
  else
    message("FATAL", "mysql_stmt_prepare() failed")
    message("FATAL", ("MySQL error: %d \"%s\""):format(errno, words))
  end
  if connection.error ~= core.sql.error.NONE then -- the error before is told
    local before, why = connection.sql_state, connection.sql_errmsg
    if kind == "mysql" then before, why = "00000", "" end
    error(line("sysbench.sql.lua", 291) .. core.error_text(connection.sql_errno, before, why), 0)
  end
  core.raise("SQL API error")
end

--- The number of bound parameters differs from the number of placeholders.
function front.refuse_parameters(connection)
  if connection.driver.kind == "pgsql" then
    message("ALERT", "wrong number of parameters in prepared statement")
  else
    message("FATAL", "Wrong number of parameters to mysql_stmt_bind_param")
  end
end

-- Connecting ---------------------------------------------------------------------------------------------------------

--- The target with this number: its turn among sockets, or among the ports of all hosts.
local function place_of_target(target, opt)
  local function turn(list) return list[target % #list + 1] end
  if #(opt.mysql_socket or {}) > 0 then return nil, nil, turn(opt.mysql_socket) end
  local places = {}
  for _, host in ipairs(opt.mysql_host or {}) do
    for _, port in ipairs(opt.mysql_port or {}) do
      -- As C parses numbers, and prints them without their sign.
      local digits = tonumber(port:match("^%s*([-+]?%d+)")) or 0
      places[#places + 1] = { host, ("%.0f"):format(digits % 2 ^ 32) }
    end
  end
  if #places == 0 then return "localhost", "3306" end
  return unpack(turn(places))
end

--- The message of MySQL's driver for a connection that could not be made. Network errors have no number of the
--- server's; those of the C client are used.
local function mysql_refused(target, opt, errno, words, class)
  local host, port, socket = place_of_target(target, opt)
  if socket then
    message("FATAL", ("unable to connect to MySQL server on socket '%s', aborting..."):format(socket))
  else
    message("FATAL", ("unable to connect to MySQL server on host '%s', port %s, aborting..."):format(host, port))
  end
  if errno == 0 and class == "encryption" then
    errno, words = 2026, "TLS/SSL error: " .. words
  elseif errno == 0 and (class == "authentication" or class == "protocol") then -- this program would not go on
    errno = 2000
  elseif errno == 0 and (socket or host == "localhost") then
    local cause = words:find("refused") and socket and 111 or 2
    errno, words = 2002, ("Can't connect to local server through socket '%s' (%d)"):format(
      socket or "/run/mysqld/mysqld.sock", cause)
  elseif errno == 0 then
    errno, words = 2002, ("Can't connect to server on '%s' (115)"):format(host)
  end
  message("FATAL", ("error %d: %s"):format(errno, words))
end

--- The same for libpq.
local function pgsql_refused(opt, state, words, class)
  local host, port = opt.pgsql_host or "", opt.pgsql_port or 5432
  local reason = ("FATAL:  %s"):format(words)
  local where = ('connection to server at "%s"%s, port %d failed: '):format(host,
    host == "localhost" and " (127.0.0.1)" or "", port)
  local advice = "\n\tIs the server running on that host and accepting TCP/IP connections?"
  if host:sub(1, 1) == "/" then
    where = ('connection to server on socket "%s/.s.PGSQL.%d" failed: '):format(host, port)
    advice = "\n\tIs the server running locally and accepting connections on that socket?"
  end
  if state == nil or state == "" then
    if class == "host" then
      where = ('could not translate host name "%s" to address: '):format(host)
      reason = "Name or service not known"
    elseif class == "other" then -- the options cannot be used
      where, reason = "", words
    elseif class == "encryption" and words == "the server does not offer TLS" then
      reason = "server does not support SSL, but SSL was required"
    elseif class == "encryption" then
      reason = "SSL error: " .. (words:match("^TLS handshake with %S+: (.*)$") or words)
    elseif class == "authentication" or class == "protocol" then -- this program would not go on
      reason = words:find("asks for a password", 1, true) and "fe_sendauth: no password supplied" or words
    else
      reason = (words:match(": ([^:]+)$") or words):gsub("^%l", string.upper) .. advice
    end
  end
  message("FATAL", "Connection to database failed: " .. where .. reason .. "\n")
end

--- A connection could not be made: its driver's message. `class`: of the error. Returns what is raised.
function front.refuse_connection(kind, opt, errno, state, words, target, class)
  if kind == "mysql" then
    mysql_refused(target, opt, errno, words, class)
  elseif kind == "pgsql" then
    pgsql_refused(opt, state, words, class)
  else
    message("FATAL", words)
  end
  return "connection creation failed"
end

local KNOWN = { mysql = true, pgsql = true, sqlite = true }

local function no_driver(reason)
  message("FATAL", reason)
  core.raise("failed to initialize the DB driver")
end

--- Whether a backslash escapes in literals for a driver other than that of the options.
function front.backslash_escapes(name) return name == "mysql" end

local use_database = core.bind("front_database", "void (*)(void *)")

--- Raises an error of a driver's name, or of the driver's options.
function front.check_driver(name, opt)
  if type(name) ~= "string" then core.refuse_argument(1, "db_create", name, "const char *") end
  if name == "" then
    no_driver("Multiple DB drivers are available. Use --db-driver=name to specify which one to use")
  elseif not KNOWN[name] then
    no_driver("invalid database driver name: '" .. name .. "'")
  end
  if name == "mysql" and #(opt.mysql_socket or {}) == 0 then
    if opt.mysql_host and #opt.mysql_host == 0 then no_driver("No MySQL hosts specified, aborting") end
    if opt.mysql_port and #opt.mysql_port == 0 then no_driver("No MySQL ports specified, aborting") end
  end
  local mode = opt.db_ps_mode
  if mode ~= nil and mode ~= "auto" and mode ~= "disable" then
    no_driver("Invalid value for db-ps-mode: " .. tostring(mode))
  end
  use_database(shared)
end

--- Reports what a command does.
function front.tell(text) core.write(text .. "\n") end

-- The API from before 1.0 --------------------------------------------------------------------------------------------

--- Makes the old functions `db` fail like C code. `connection` returns their connection, and opens it.
function front.adapt_old_functions(db, connection)
  local base = core.base
  base.db_driver = nil -- there from `db_connect` on
  base.mysql_table_engine, base.myisam_max_rows = "innodb", 1000000

  local function connected()
    local session = current()
    if session.legacy == nil and not pcall(connection) then core.raise("Failed to connect to the database") end
    if rawget(session.env, "db_driver") == nil then rawset(session.env, "db_driver", core.driver) end
    return session.legacy
  end

  local function text_of(...)
    local text = ...
    if type(text) == "string" then return text end
    if type(text) == "number" then return tostring(text) end
    local kind = select("#", ...) == 0 and "no value" or type(text)
    core.raise("bad argument #1 to '?' (string expected, got " .. kind .. ")")
  end

  function db.connect() connected() end

  function db.query(...)
    local text, it = text_of(...), connected()
    local ok, failure = pcall(it.query, it, text)
    if ok then return end
    if type(failure) == "table" then error(failure, 0) end -- a restart
    core.raise("db_query() failed")
  end

  function db.bulk_insert_init(...) connected():bulk_insert_init(text_of(...)) end

  --- Rows need an existing connection: none is opened for them.
  local function with_connection()
    if current().legacy == nil then error("Uninitialized database connection", 0) end
    return connected()
  end

  function db.bulk_insert_next(...) with_connection():bulk_insert_next(text_of(...)) end

  --- Rows that the server refuses are reported, but not an error.
  function db.bulk_insert_done()
    local it = with_connection()
    pcall(it.bulk_insert_done, it)
  end

  function db.prepare(...)
    local text, it = text_of(...), connected()
    if it.driver:name() ~= "mysql" then return it:prepare(text) end
    local ok, statement = pcall(it.prepare, it, text)
    return ok and statement or core.raise("db_prepare() failed")
  end
end
