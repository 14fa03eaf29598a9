--- One update of column c, which is not indexed, by primary key, without a transaction around it.
require("oltp_common")
assay.share("oltp_transactions").uses("non_index_updates")

function prepare_statements() prepare_non_index_updates() end

function event()
  execute_non_index_updates()
  check_reconnect()
end
