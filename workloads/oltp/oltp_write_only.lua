--- Writes in one transaction: an update of the indexed column, an update of another one, and a delete followed by an
--- insert of the same id.
require("oltp_common")
assay.share("oltp_transactions").uses("index_updates", "non_index_updates", "delete_inserts", "skip_trx")

function prepare_statements()
  if not sysbench.opt.skip_trx then
    prepare_begin()
    prepare_commit()
  end
  prepare_index_updates()
  prepare_non_index_updates()
  prepare_delete_inserts()
end

function event()
  if not sysbench.opt.skip_trx then begin() end
  execute_index_updates()
  execute_non_index_updates()
  execute_delete_inserts()
  if not sysbench.opt.skip_trx then commit() end
  check_reconnect()
end
