--- One update of the indexed column k, by primary key, without a transaction around it.
require("oltp_common")
assay.share("oltp_transactions").uses("index_updates")

function prepare_statements() prepare_index_updates() end

function event()
  execute_index_updates()
  check_reconnect()
end
