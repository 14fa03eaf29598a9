--- An update of the indexed column by id.

require("tests/include/oltp_legacy/common")

function event(thread_id)
  db_query("UPDATE " .. random_table() .. " SET k=k+1 WHERE id=" .. random_id())
end
