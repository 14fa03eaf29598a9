--- A row by its id.

require("tests/include/oltp_legacy/common")

function event(thread_id)
  db_query("SELECT pad FROM " .. random_table() .. " WHERE id=" .. random_id())
end
