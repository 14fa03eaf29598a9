--- `con:loader()`: many rows, in the database's fastest way.
--
--
-- Rows are collected in Rust, column by column, and sent when there are enough. If the server stores them while the
-- script continues, the answer is read before anything else happens on the connection (`settle`).
local core = ...
local ffi = require("ffi")
local ask, shared, raise, connections = core.ask, core.shared, core.raise, core.connections
local yield = coroutine.yield
local LOAD, NUMBER, BUSY, ROWS = ask.LOAD, connections.NUMBER, connections.BUSY, connections.ROWS
local closed, text_of, settle, flush = connections.closed, connections.text_of, connections.settle, connections.flush

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

-- Bytes after which a loader sends what it has. The larger the batches, the less often a server commits and waits for
-- its disk; all sessions together must hold no more than 32 MiB, unless even 1 MiB for each is more. A database may
-- have a limit of its own.
local LOAD_SIZE = math.min(math.max(2 ^ 20, math.min(2 ^ 22, 2 ^ 25 / core.sessions_in_all)),
  core.load_bytes_max or math.huge)

local Loader = {}
Loader.__index = Loader
Loader.__tostring = function() return "<assay_loader>" end

-- A random text that a loader generates in place: a load needs millions of them, and Lua would spend more time on
-- strings than on everything else. Letters and digits, `low` to `high` of them, or the result of `rand.string` for
-- `format`.
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

local function load(loader)
  return yield(LOAD, loader.connection[NUMBER], loader.table, loader.columns, loader.id, loader.frozen)
end

function Loader:flush()
  if self.broken then raise("an earlier error has left this loader with half a row") end
  if rows_size(self.rows) == 0 then return end
  local connection = self.connection
  if connection.deferring then flush(connection) end
  local answer, errno, state, message, ignorable = load(self)
  if answer == false then -- these rows have to wait until those sent before are stored
    settle(connection)
    answer, errno, state, message, ignorable = load(self)
  end
  rows_clear(self.rows, self.width)
  local earlier = connection.loading
  if answer == true then -- sent, and those before are stored; the answer is still to come
    connection.loading, connection[BUSY] = self.table, true
  elseif answer ~= nil and answer ~= ROWS then
    connection.loading, connection[BUSY] = false, connection.closed or connection.closed_statements ~= nil
    connections.failed(connection, "<load into " .. (earlier or self.table) .. ">", errno, state, message, ignorable)
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

--- Appends many rows to `table`: `loader:row(v1, v2, …)` for each, then `loader:done()`. `frozen`: the table was
--- created or emptied in the open transaction, and the rows may be stored as visible to every transaction.
function connections.class:loader(name, columns, frozen)
  if self.closed then closed() end
  name, columns = text_of(name, "table's name"), text_of(columns, "list of columns")
  local bare = columns:gsub('"[^"]*"', ""):gsub("`[^`]*`", "")
  local width = select(2, bare:gsub(",", "")) + 1
  local id = rows_new(shared, width)
  return setmetatable({
    connection = self, table = name, columns = columns, width = width, id = id, rows = rows_address(shared, id),
    row = row_function(width), frozen = frozen == true,
  }, Loader)
end
