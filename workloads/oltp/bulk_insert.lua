--- Appends one row per transaction, each session to its own table, sent as multi-row INSERT statements.
--
--
-- A row costs nothing until its insert is full, so the throughput of this workload is in rows, and its latency is
-- meaningless: one transaction in some ten thousand waits for the server on behalf of all.

local function table_name(n) return "sbtest" .. n end

local function dialect() return assay.share("oltp_" .. sysbench.sql.driver():name()) end

function prepare()
  local con = sysbench.sql.driver():connect()
  for n = 1, sysbench.opt.threads do
    assay.tell("Creating table '%s'...", table_name(n))
    con:query(dialect():create_bulk_table(n))
  end
  con:disconnect()
end

function tell_removed()
  assay.log(("removed sbtest1 to sbtest%d where they existed"):format(sysbench.opt.threads))
end

function cleanup()
  local con = sysbench.sql.driver():connect()
  for n = 1, sysbench.opt.threads do
    assay.tell("Dropping table '%s'...", table_name(n))
    local drop = dialect():drop_table(n)
    if type(drop) == "function" then drop(con) else con:query(drop) end
  end
  con:disconnect()
  tell_removed()
end

--- Ids of a table run from 1 without a gap.
local function check()
  local con, right = sysbench.sql.driver():connect(), true
  for n = 1, sysbench.opt.threads do
    local rows, last = con:query_row(dialect():check_bulk_rows(n))
    if tonumber(rows) ~= (tonumber(last) or 0) then
      right = false
      assay.log(("table %s: rows: expected %d, found %d"):format(table_name(n), last, rows))
    end
  end
  con:disconnect()
  return right
end

sysbench.cmdline.commands = { check = { check } }

local con, id

--- A second run continues after the first.
function last_id(n) return tonumber(con:query_row(dialect():last_id(n))) or 0 end

function thread_init()
  con = sysbench.sql.driver():connect()
  local n = sysbench.tid + 1
  id = last_id(n)
  con:bulk_insert_init(dialect():bulk_insert(n))
end

function event()
  id = id + 1
  con:bulk_insert_next(("(%d,%d)"):format(id, id))
end

function thread_done()
  con:bulk_insert_done()
  con:disconnect()
end
