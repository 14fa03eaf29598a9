--- Keeps two prepares of one database apart: `require("prepare_lock")(driver)` is a lock until it is disconnected.
--
--
-- The server keeps the lock for a separate connection, so that it is released when the prepare ends, however it ends.
-- On PostgreSQL it lasts as long as a transaction, which connection poolers keep on one connection. SQLite has no such
-- locks, and neither may servers that only imitate another's language: there nothing is kept apart.

local statements = {
  pgsql = {
    begin = "BEGIN",
    lock = "SELECT CASE WHEN pg_try_advisory_xact_lock(hashtext('assay prepare')) THEN 1 ELSE 0 END",
  },
  mysql = { lock = "SELECT GET_LOCK(CONCAT('assay prepare ', MD5(DATABASE())), 0)" },
}

return function(driver)
  local own = statements[driver:name()]
  if not own then return { disconnect = function() end } end
  local connection = driver:connect()
  if own.begin then connection:query(own.begin) end
  local known, taken = pcall(connection.query_row, connection, own.lock)
  if known and tonumber(taken) ~= 1 then
    connection:disconnect()
    error("another `prepare` is running on this database; nothing was changed: wait for it to finish", 0)
  end
  return connection
end
