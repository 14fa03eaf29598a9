--- Report formatters, and `sysbench.histogram`.
--
-- A hook gets a table of numbers and prints what it likes; the formatters are what most hooks call.
local core = ...
local ffi = require("ffi")
local base, current = core.base, core.current

local function option(name, default)
  local opt = current().sysbench.opt
  return opt and opt[name] or default
end

--- Rates of one report: events, statements by class, errors, reconnects, each per second. `format`: its name.
local function rates(stat, format)
  if core.front.check_report then core.front.check_report(stat, format) end
  local seconds = stat.time_interval
  return stat.events / seconds, (stat.reads + stat.writes + stat.other) / seconds, stat.reads / seconds,
    stat.writes / seconds, stat.other / seconds, stat.errors / seconds, stat.reconnects / seconds
end

function core.report_default(stat)
  local tps, qps, reads, writes, other, errors, reconnects = rates(stat, "default")
  core.write(("[ %.0fs ] thds: %u tps: %4.2f qps: %4.2f (r/w/o: %4.2f/%4.2f/%4.2f) lat (ms,%u%%): %4.2f "
    .. "err/s %4.2f reconn/s: %4.2f\n"):format(stat.time_total, stat.threads_running, tps, qps, reads, writes, other,
    option("percentile", 95), stat.latency_pct * 1000, errors, reconnects))
end

function core.report_csv(stat)
  local tps, qps, reads, writes, other, errors, reconnects = rates(stat, "csv")
  core.write(("%.0f,%u,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f,%4.2f\n"):format(stat.time_total,
    stat.threads_running, tps, qps, reads, writes, other, stat.latency_pct * 1000, errors, reconnects))
end

local OBJECT = [[

  {
    "time": %4.0f,
    "threads": %u,
    "tps": %4.2f,
    "qps": {
      "total": %4.2f,
      "reads": %4.2f,
      "writes": %4.2f,
      "other": %4.2f
    },
    "latency": %4.2f,
    "errors": %4.2f,
    "reconnects": %4.2f
  }]]

--- An array of objects: started by the first report, closed when the session ends.
function core.report_json(stat)
  local session = current()
  if session.at_end then
    core.write(",")
  else
    core.write("[")
    session.at_end = function() core.write("\n]\n") end
  end
  local tps, qps, reads, writes, other, errors, reconnects = rates(stat, "json")
  core.write(OBJECT:format(stat.time_total, stat.threads_running, tps, qps, reads, writes, other,
    stat.latency_pct * 1000, errors, reconnects))
end

-- Histograms ---------------------------------------------------------------------------------------------------------

ffi.cdef [[
typedef struct histogram sb_histogram_t;
struct histogram { double low, step; uint32_t size, unused; uint64_t *count; };
]]

local histogram_type = ffi.typeof("struct histogram")
local counts_type = ffi.typeof("uint64_t[?]")
local kept = setmetatable({}, { __mode = "k" }) -- histogram → its counts, which it only points at

local function is_number(value)
  local kind = type(value)
  return kind == "number" or kind == "cdata" or kind == "boolean"
end

local function new_histogram(size, low, high)
  if not is_number(size) then core.refuse_argument(1, "sb_histogram_new", size, "uint64_t") end
  if not is_number(low) then core.refuse_argument(2, "sb_histogram_new", low, "double") end
  if not is_number(high) then core.refuse_argument(3, "sb_histogram_new", high, "double") end
  size, low, high = ffi.cast("uint64_t", size), ffi.cast("double", low), ffi.cast("double", high)
  size, low, high = tonumber(size), tonumber(low), tonumber(high)
  local counts = counts_type(size)
  local histogram = histogram_type(math.log(low), (size - 1) / (math.log(high) - math.log(low)), size, 0, counts)
  kept[histogram] = counts
  return histogram
end

local function update(histogram, value)
  if not is_number(value) then core.refuse_argument(2, "sb_histogram_update", value, "double") end
  value = tonumber(ffi.cast("double", value))
  local bucket = math.floor((math.log(value) - histogram.low) * histogram.step + 0.5)
  if not (bucket > 0) then bucket = 0 end -- below the range, or no number
  if bucket >= histogram.size then bucket = histogram.size - 1 end
  histogram.count[bucket] = histogram.count[bucket] + 1
end

local BAR = 40 -- stars of the longest bar

local function show(histogram)
  local most = 0
  for i = 0, histogram.size - 1 do most = math.max(most, tonumber(histogram.count[i])) end
  if most == 0 then return end
  core.write("       value  ------------- distribution ------------- count\n")
  for i = 0, histogram.size - 1 do
    local count = tonumber(histogram.count[i])
    if count > 0 then
      local bar = ("*"):rep(math.floor(count / most * BAR + 0.5))
      core.write(("%12.3f |%-" .. BAR .. "s %d\n"):format(math.exp(histogram.low + i / histogram.step), bar, count))
    end
  end
end

ffi.metatype(histogram_type, {
  __index = { update = update, print = show },
  __tostring = function() return "<sb_histogram>" end,
})

--- `new(size, min, max)`: logarithmic buckets; values outside the range count for the first or last one.
core.histogram = { new = new_histogram }

local exported = core.exported
exported.sb_histogram_new = new_histogram
exported.sb_histogram_delete = function() end -- the collector does
exported.sb_histogram_update = update
exported.sb_histogram_print = show
