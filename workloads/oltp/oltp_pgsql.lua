--- What the OLTP workloads say to PostgreSQL.
local sql = assay.share("oltp_sql")

local pgsql = setmetatable({
  analyze = "ANALYZE",
  tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    .. " AND table_name IN (%s)",
  index = "SELECT COUNT(*) FROM pg_indexes WHERE schemaname = current_schema()"
    .. " AND tablename = '%s' AND indexname = '%s'",
  -- For sessions that each add the keys of a table: the server's parallel workers would only get in each other's way.
  -- Servers before 11 have none.
  before_keys = "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'max_parallel_maintenance_workers'",
}, { __index = sql })

--- A DELETE that waited for another transaction's delete and insert of the same id does not see the new row, and the
--- INSERT after it finds the id taken. That is nobody's error: the transaction is restarted, as after a deadlock.
function pgsql.is_lost_race(failure) return failure.sql_state == "23505" end

--- Sorting the ids once is faster than inserting each row's into its place. In the others rows are in the key.
local function has_late_key(wanted) return wanted.key_is_late and not (wanted.secondary or wanted.redshift) end

function pgsql:id(wanted)
  if not wanted.auto_inc then return "INTEGER NOT NULL" end
  return wanted.redshift and "INTEGER IDENTITY(1, 1)" or "SERIAL"
end

function pgsql:key(wanted) return has_late_key(wanted) and "" or sql.key(self, wanted) end

function pgsql:after_rows(n, wanted, size)
  local texts = {}
  if wanted.auto_inc and size > 0 then
    texts[1] = ("SELECT setval(pg_get_serial_sequence('sbtest%d', 'id'), %d)"):format(n, size)
  end
  if has_late_key(wanted) then texts[#texts + 1] = "ALTER TABLE sbtest" .. n .. " ADD PRIMARY KEY (id)" end
  for _, text in ipairs(sql.after_rows(self, n, wanted)) do texts[#texts + 1] = text end
  return texts
end

function pgsql:has_groups(column, groups) return column .. "::text ~ " .. sql.groups_regex(groups) end

return pgsql
