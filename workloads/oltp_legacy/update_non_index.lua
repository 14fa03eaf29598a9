--- An update of a column without index by id.

require("tests/include/oltp_legacy/common")

function event(thread_id)
  db_query(("UPDATE %s SET c='%s' WHERE id=%d"):format(random_table(), random_c(), random_id()))
end
