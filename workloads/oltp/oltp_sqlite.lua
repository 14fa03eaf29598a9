--- What the OLTP workloads say to SQLite.
local sql = assay.share("oltp_sql")

local sqlite = setmetatable({
  -- A plain BEGIN takes the write lock at the first write. If that comes after a read, and another session has written
  -- in between, SQLite can only refuse: the transaction would restart again and again under load. Transactions that
  -- never write need not queue up for the lock.
  begin = "BEGIN IMMEDIATE",
  analyze = "ANALYZE",
  tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN (%s)",
  index = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND tbl_name = '%s' AND name = '%s'",
  -- Only one session at a time can write, so one session does everything that changes the schema or loads it.
  one_writer = true,
}, { __index = sql })

function sqlite:has_groups(column, groups)
  return column .. " GLOB '" .. (("[0-9]"):rep(11) .. "-"):rep(groups):sub(1, -2) .. "'"
end

return sqlite
