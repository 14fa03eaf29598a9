--- One select of the rows with one of 10 random values in k.
require("oltp_common")
assay.share("oltp_transactions").uses()
local dialect_of = assay.share("oltp_transactions").dialect_of

sysbench.cmdline.options.random_points = { "Number of values in the IN list", 10 }

local statement, points, low, high

function need_one_table()
  if sysbench.opt.tables > 1 then error("select_random_points reads one table: leave out --tables", 0) end
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

  local text = dialect_of(drv):points(sysbench.opt.random_points)
  statement, points = con:prepare(text), {}
  for i = 1, sysbench.opt.random_points do points[i] = statement:bind_create(sysbench.sql.type.INT) end
  statement:bind_param(unpack(points))
end

function event()
  for i = 1, #points do points[i]:set(sysbench.rand.default(low, high)) end
  statement:execute()
  check_reconnect()
end

function thread_done()
  statement:close()
  con:disconnect()
end
