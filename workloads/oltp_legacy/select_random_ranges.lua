--- Rows counted in several short ranges of k.

require("tests/include/oltp_legacy/common")

function thread_init(thread_id)
  set_vars()
  number_of_ranges = tonumber(number_of_ranges) or 10
  delta = tonumber(delta) or 5
end

function event(thread_id)
  local ranges = {}
  for i = 1, number_of_ranges do
    local from = random_id()
    ranges[i] = ("k BETWEEN %d AND %d"):format(from, from + delta)
  end
  db_query(("SELECT COUNT(k) FROM %s WHERE %s"):format(random_table(), table.concat(ranges, " OR ")))
end
