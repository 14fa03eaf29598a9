--- One select that counts the rows whose k lies in one of 10 random ranges.
require("oltp_common")

sysbench.cmdline.options.number_of_ranges = { "Number of BETWEEN conditions", 10 }
sysbench.cmdline.options.delta = { "Distance of a range's two ends", 5 }

local statement, ends, low, high

function thread_init()
  drv = sysbench.sql.driver() --@ select_random_ranges.lua:35
  con = drv:connect() --@ select_random_ranges.lua:36
  if sysbench.opt.tables > 1 and not assay.as_sysbench then
    error("select_random_ranges reads one table: leave out --tables", 0)
  end

  -- Each session has its own share of the values.
  local size, threads = sysbench.opt.table_size, sysbench.opt.threads
  low = math.floor(size * sysbench.tid / threads) + 1
  high = math.max(low, math.floor(size * (sysbench.tid + 1) / threads))

  local ranges = ("k BETWEEN ? AND ? OR "):rep(sysbench.opt.number_of_ranges):sub(1, -5)
  statement, ends = con:prepare("SELECT count(k) FROM sbtest1 WHERE " .. ranges), {} --@ select_random_ranges.lua:42
  for i = 1, 2 * sysbench.opt.number_of_ranges do ends[i] = statement:bind_create(sysbench.sql.type.INT) end
  statement:bind_param(unpack(ends))
end

function event()
  for i = 1, #ends, 2 do
    local first = sysbench.rand.default(low, high)
    ends[i]:set(first)
    ends[i + 1]:set(first + sysbench.opt.delta)
  end
  statement:execute() --@ select_random_ranges.lua:76
  check_reconnect()
end

function thread_done()
  statement:close()
  con:disconnect()
end
