--- A row by its id, from the c column.

require("tests/include/oltp_legacy/common")

function event(thread_id)
  db_query("SELECT c FROM " .. random_table() .. " WHERE id=" .. random_id())
end
