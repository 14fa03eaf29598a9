--- `sysbench.rand`: the session's own generator, in Rust (`src/random.rs`).
local core = ...
local ffi = require("ffi")
local shared = core.shared

local RANGE = "uint32_t (*)(void *, uint32_t, uint32_t)"
local fill = core.bind("random_fill", "void (*)(void *, const char *, size_t, char *)")
local fill_varied = core.bind("random_varied", "uint32_t (*)(void *, uint32_t, uint32_t, char *)")
local fill_alphanumeric = core.bind("random_alphanumeric", "uint32_t (*)(void *, uint32_t, uint32_t, char *)")
local unique = core.bind("random_unique", "uint32_t (*)(void *)")
local uint64 = core.bind("random_uint64", "uint64_t (*)(void *)")
local double = core.bind("random_double", "double (*)(void *)")

--- Raises the error that a bound is not a number, in the words of LuaJIT's FFI.
local function check_bounds(...)
  for i = 1, 2 do
    local kind = type((select(i, ...)))
    if kind ~= "number" and kind ~= "boolean" and kind ~= "cdata" then
      local outer = debug.getinfo(3, "S")
      local name = outer and outer.what ~= "C" and debug.getinfo(2, "n").name or "?"
      core.raise(("bad argument #%d to '%s' (cannot convert '%s' to 'unsigned int')"):format(i, name, kind))
    end
  end
end

local rand = {}
for _, name in ipairs { "default", "uniform", "gaussian", "special", "pareto", "zipfian" } do
  local draw = core.bind("random_" .. name, RANGE)
  rand[name] = function(low, high)
    if type(low) ~= "number" or type(high) ~= "number" then check_bounds(low, high) end
    return draw(shared, low, high)
  end
end

function rand.unique() return unique(shared) end
function rand.uniform_uint64() return uint64(shared) end
function rand.uniform_double() return double(shared) end

local room = 1024
local buffer = ffi.new("char[?]", room)

local function reserve(length)
  if length > room then
    room = length * 2
    buffer = ffi.new("char[?]", room)
  end
end

--- A copy of `format` with a random digit for every `#` and a random letter for every `@`.
function rand.string(format)
  if type(format) == "table" then
    core.refuse_argument(1, "sb_rand_str", format, "const char *")
  elseif type(format) ~= "string" then
    if core.front.not_a_text then core.front.not_a_text("format", type(format)) end
    core.raise("the format is not a string but a " .. type(format) .. " value")
  end
  local length = #format
  if length > room then reserve(length) end
  fill(shared, format, length, buffer)
  return ffi.string(buffer, length)
end

--- Random characters from `0` to `z`, `low` to `high` of them.
function rand.varstring(low, high)
  low, high = tonumber(low), tonumber(high)
  if not (low and high and low <= high and high > 0) then core.raise("varstring needs 0 <= min <= max and max > 0") end
  reserve(high)
  return ffi.string(buffer, fill_varied(shared, low, high, buffer))
end

core.rand = rand

--- Random letters and digits, `low` to `high` of them: `assay.random_text`.
function core.random_text(low, high)
  if not (low <= high and low >= 0 and high > 0) then core.raise("random_text needs 0 <= low <= high and high > 0") end
  if high > room then reserve(high) end
  return ffi.string(buffer, fill_alphanumeric(shared, low, high, buffer))
end

local exported = core.exported
for _, name in ipairs { "default", "uniform", "gaussian", "special", "pareto", "zipfian", "unique" } do
  exported["sb_rand_" .. name] = rand[name]
end
exported.sb_rand_uniform_uint64 = rand.uniform_uint64
exported.sb_rand_uniform_double = rand.uniform_double
exported.sb_rand_str = function(format, target)
  format = type(format) == "string" and format or ffi.string(format)
  fill(shared, format, #format, target)
end
exported.sb_rand_varstr = function(target, low, high) return fill_varied(shared, low, high, target) end
