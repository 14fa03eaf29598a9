--- One insert, sent as text, without a transaction around it. The tables grow.
require("oltp_common")
assay.share("oltp_transactions").uses()
local dialect_of = assay.share("oltp_transactions").dialect_of

--- Our own ids are drawn from all 32-bit numbers, so existing rows could collide with them.
sysbench.cmdline.commands.prepare = {
  function()
    if not sysbench.opt.auto_inc then sysbench.opt.table_size = 0 end
    return cmd_prepare()
  end,
  sysbench.cmdline.PARALLEL_COMMAND,
}

function prepare_statements() end

function event()
  local n = sysbench.rand.uniform(1, sysbench.opt.tables)
  local k = sysbench.rand.default(1, sysbench.opt.table_size)
  local c, pad = get_c_value(), get_pad_value()
  local dialect = dialect_of(drv)
  -- Without auto_inc, a signed 32-bit number that no other session has.
  local id
  if sysbench.opt.auto_inc then id = dialect.next_id else id = sysbench.rand.unique() - 2147483648 end
  if id then
    con:query(dialect:insert(n, id, k, c, pad))
  else
    con:query(dialect:insert_without_id(n, k, c, pad))
  end
  check_reconnect()
end

function expected_rows()
  if sysbench.opt.auto_inc then return sysbench.opt.table_size, math.huge, 1, math.huge end
  return 0, math.huge, -2147483648, 2147483647
end
