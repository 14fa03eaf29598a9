--- One select that counts the rows with k in one of 10 random ranges.
require("oltp_common")
assay.share("oltp_transactions").uses()
local dialect_of = assay.share("oltp_transactions").dialect_of

sysbench.cmdline.options.number_of_ranges = { "Number of BETWEEN conditions", 10 }
sysbench.cmdline.options.delta = { "Difference between the two ends of a range", 5 }

local statement, ends, low, high

function need_one_table()
  if sysbench.opt.tables > 1 then error("select_random_ranges reads one table: leave out --tables", 0) end
end

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  need_one_table()
  if sysbench.tid == 0 then compare_tables(con, true) end

  -- Each session has its own share of the values.
  local size, threads = sysbench.opt.table_size, sysbench.opt.threads
  low = math.floor(size * sysbench.tid / threads) + 1
  high = math.max(low, math.floor(size * (sysbench.tid + 1) / threads))

  local text = dialect_of(drv):ranges(sysbench.opt.number_of_ranges)
  statement, ends = con:prepare(text), {}
  for i = 1, 2 * sysbench.opt.number_of_ranges do ends[i] = statement:bind_create(sysbench.sql.type.INT) end
  statement:bind_param(unpack(ends))
end

function event()
  for i = 1, #ends, 2 do
    local first = sysbench.rand.default(low, high)
    ends[i]:set(first)
    ends[i + 1]:set(first + sysbench.opt.delta)
  end
  statement:execute()
  check_reconnect()
end

function thread_done()
  statement:close()
  con:disconnect()
end
