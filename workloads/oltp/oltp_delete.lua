--- One delete by primary key, without a transaction around it. Rows that are already gone count as `other`.
require("oltp_common")
assay.share("oltp_transactions").uses()

function prepare_statements() prepare_for_each_table("deletes") end

function event()
  local n = sysbench.rand.uniform(1, sysbench.opt.tables)
  stmt[n].deletes:perform(sysbench.rand.default(1, sysbench.opt.table_size))
  check_reconnect()
end

function expected_rows()
  local size = sysbench.opt.table_size
  return 0, size, 1, size
end
