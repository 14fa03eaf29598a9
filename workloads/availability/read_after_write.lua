--- Staleness of a replica: writes on the first --db, reads on the second until the write is visible there.
--
--
-- A write and the wait for it are two transactions: the response time of `visible` is how long after its commit a write
-- could not be read. A session writes a row of its own, so that sessions do not wait for each other. Prepare it on the
-- first server only: the other one gets the table by replication.

sysbench.cmdline.options = {
  rows = { "Rows: the most sessions", 1000 },
  stale_max = { "Percent of stale reads that --check allows", 100 },
  poll = { "Milliseconds between two reads of a stale row", 1 },
}

local TABLE = "read_after_write"
local WRITER, READER = 1, 2
local POLLS_MAX = 100000

local writer, reader, update, select, row, version

function prepare()
  local con = sysbench.sql.driver():connect(WRITER)
  con:query("CREATE TABLE " .. TABLE .. " (id INTEGER NOT NULL PRIMARY KEY, version INTEGER NOT NULL)")
  local loader = con:loader(TABLE, "id, version")
  for id = 1, sysbench.opt.rows do loader:row(id, 0) end
  loader:done()
end

function cleanup() sysbench.sql.driver():connect(WRITER):query("DROP TABLE IF EXISTS " .. TABLE) end

function thread_init()
  row = sysbench.tid % sysbench.opt.rows + 1
  local driver = sysbench.sql.driver()
  writer, reader = driver:connect(WRITER), driver:connect(READER)
  update = writer:prepare("UPDATE " .. TABLE .. " SET version = ? WHERE id = ?", "ii")
  select = reader:prepare("SELECT version FROM " .. TABLE .. " WHERE id = ?", "i")
  local latest = writer:query_row("SELECT version FROM " .. TABLE .. " WHERE id = " .. row)
  if sysbench.tid == 0 then -- not what an option says, if that is wrong
    assay.found("rows", tonumber((writer:query_row("SELECT COUNT(*) FROM " .. TABLE))))
  end
  version = { written = tonumber(latest), seen = true }
  assay.audit { name = "stale reads", part = "stale_reads", whole = "reads", high = sysbench.opt.stale_max / 100 }
end

local write = assay.transaction("write", function()
  update:perform(version.written + 1, row)
  version.written, version.seen = version.written + 1, false
end)

local function is_seen()
  local found = select:row(row)
  return found ~= nil and tonumber(found) >= version.written
end

local visible = assay.transaction("visible", function()
  local is_stale = not is_seen()
  assay.count("reads")
  assay.count("stale_reads", is_stale and 1 or 0)
  if is_stale then
    local polls = 0
    repeat
      polls = polls + 1
      if polls > POLLS_MAX then error("a write is not seen at the second server after " .. POLLS_MAX .. " reads") end
      assay.sleep(sysbench.opt.poll / 1000)
    until is_seen()
  end
  version.seen = true
end)

function event()
  if version.seen then write() else visible() end
end
