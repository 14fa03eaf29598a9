--- One select by primary key, without a transaction around it.
require("oltp_common")
assay.share("oltp_transactions").uses()

function prepare_statements() prepare_point_selects() end

function event()
  execute_point_selects(1) -- the option is for the workloads that read more
  check_reconnect()
end
