--- One row after the other, many in a statement; each session has a table of its own.

cursize = 0

local function name_of(thread_id) return "sbtest" .. thread_id end

function prepare()
  db_connect()
  for thread_id = 0, num_threads - 1 do
    db_query("CREATE TABLE " .. name_of(thread_id) .. " (id INTEGER PRIMARY KEY, k INTEGER DEFAULT '0' NOT NULL)")
  end
end

function thread_init(thread_id)
  db_bulk_insert_init("INSERT INTO " .. name_of(thread_id) .. " VALUES")
end

function event(thread_id)
  cursize = cursize + 1
  db_bulk_insert_next("(" .. cursize .. "," .. cursize .. ")")
end

function thread_done(thread_id)
  db_bulk_insert_done()
end

function cleanup()
  for thread_id = 0, num_threads - 1 do db_query("DROP TABLE IF EXISTS " .. name_of(thread_id)) end
end
