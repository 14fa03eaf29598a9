--- The OLTP transaction of sysbench 0.5: reads, then writes, in text.

require("tests/include/oltp_legacy/common")

local function ranges(name, queries, query)
  for _ = 1, queries do
    local from = random_id()
    db_query(query:format(name, from, from + oltp_range_size - 1))
  end
end

local function read(name)
  for _ = 1, oltp_point_selects do db_query("SELECT c FROM " .. name .. " WHERE id=" .. random_id()) end
  if oltp_range_selects then
    ranges(name, oltp_simple_ranges, "SELECT c FROM %s WHERE id BETWEEN %d AND %d")
    ranges(name, oltp_sum_ranges, "SELECT SUM(k) FROM %s WHERE id BETWEEN %d AND %d")
    ranges(name, oltp_order_ranges, "SELECT c FROM %s WHERE id BETWEEN %d AND %d ORDER BY c")
    ranges(name, oltp_distinct_ranges, "SELECT DISTINCT c FROM %s WHERE id BETWEEN %d AND %d ORDER BY c")
  end
end

local function write(name)
  for _ = 1, oltp_index_updates do db_query("UPDATE " .. name .. " SET k=k+1 WHERE id=" .. random_id()) end
  for _ = 1, oltp_non_index_updates do
    db_query(("UPDATE %s SET c='%s' WHERE id=%d"):format(name, random_c(), random_id()))
  end
  for _ = 1, oltp_delete_inserts do
    local id = random_id()
    db_query("DELETE FROM " .. name .. " WHERE id=" .. id)
    db_query(("INSERT INTO %s (id, k, c, pad) VALUES (%d, %d, '%s', '%s')"):format(name, id, random_id(), random_c(),
      random_pad()))
  end
end

function event(thread_id)
  local name = random_table()
  if not oltp_skip_trx then db_query(begin_query) end
  if not oltp_write_only then read(name) end
  if not oltp_read_only then write(name) end
  if not oltp_skip_trx then db_query(commit_query) end
end
