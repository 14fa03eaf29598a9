--- One row appended per transaction, each session to a table of its own, sent as inserts of many rows at once.
--
-- A row costs nothing until its insert is full, so the throughput of this workload is one of rows, and its latency says
-- little: one transaction in some ten thousand waits for the server on behalf of all.

local function table_name(n) return "sbtest" .. n end

--- What sysbench's users see.
local function tell(text, ...)
  if assay.as_sysbench then print(text:format(...)) end
end

function prepare()
  local con = sysbench.sql.driver():connect() --@ bulk_insert.lua:19
  for n = 1, sysbench.opt.threads do
    tell("Creating table '%s'...", table_name(n))
    con:query(([[
CREATE TABLE IF NOT EXISTS %s(
  id INTEGER NOT NULL,
  k INTEGER DEFAULT '0' NOT NULL,
  PRIMARY KEY (id)
)]]):format(table_name(n)))
  end
  con:disconnect()
end

function cleanup()
  local con = sysbench.sql.driver():connect() --@ bulk_insert.lua:50
  for n = 1, sysbench.opt.threads do
    tell("Dropping table '%s'...", table_name(n))
    con:query("DROP TABLE IF EXISTS " .. table_name(n))
  end
  con:disconnect()
end

--- Ids of a table run from 1 without a gap.
local function check()
  local con, right = sysbench.sql.driver():connect(), true
  for n = 1, sysbench.opt.threads do
    local rows, last = con:query_row("SELECT COUNT(*), MAX(id) FROM " .. table_name(n))
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

function thread_init()
  con = sysbench.sql.driver():connect() --@ bulk_insert.lua:12
  local name = table_name(sysbench.tid + 1)
  -- A second run goes on after the first. sysbench's does not, and counts no such query.
  id = not assay.as_sysbench and tonumber(con:query_row("SELECT MAX(id) FROM " .. name)) or 0
  con:bulk_insert_init("INSERT INTO " .. name .. " (id, k) VALUES")
end

function event()
  id = id + 1
  con:bulk_insert_next(("(%d,%d)"):format(id, id)) --@ bulk_insert.lua:38
end

function thread_done()
  con:bulk_insert_done()
  con:disconnect()
end
