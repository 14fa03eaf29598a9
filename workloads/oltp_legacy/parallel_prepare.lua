--- The tables of the OLTP test, made by all sessions at once: its `run` is their `prepare`.

require("tests/include/oltp_legacy/common")

function thread_init(thread_id)
  set_vars()
  db_connect()
end

function event(thread_id)
  for table_id = thread_id + 1, oltp_tables_count, num_threads do create_insert(table_id) end
end
