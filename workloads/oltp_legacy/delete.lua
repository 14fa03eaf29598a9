--- A delete by id.

require("tests/include/oltp_legacy/common")

function event(thread_id)
  db_query("DELETE FROM " .. random_table() .. " WHERE id=" .. random_id())
end
