--- Rows by a list of random values of k.

require("tests/include/oltp_legacy/common")

function thread_init(thread_id)
  set_vars()
  random_points = tonumber(random_points) or 10
end

function event(thread_id)
  local points = {}
  for i = 1, random_points do points[i] = random_id() end
  db_query(("SELECT id, k, c, pad FROM %s WHERE k IN (%s)"):format(random_table(), table.concat(points, ", ")))
end
