--- Hot counters: every session adds to a few counters, each kept in one row or spread over slots.
--
--
-- With `--slots 1`, sessions that add to the same counter wait for its row. With more slots, an update adds to a random
-- one of them, and reading the counter means adding up its slots.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  counters = { "Number of counters", 1 },
  slots = { "Rows that share a counter", 1 },
  reads = { "Percent of transactions that read a counter", 10 },
}

local uniform = sysbench.rand.uniform

local function connect() return sysbench.sql.driver():connect() end

function prepare()
  local con = connect()
  con:query("CREATE TABLE hot_counters (id INT NOT NULL, slot INT NOT NULL, n BIGINT NOT NULL, PRIMARY KEY (id, slot))")
  local loader = con:loader("hot_counters", "id, slot, n")
  for id = 1, sysbench.opt.counters do
    for slot = 1, sysbench.opt.slots do loader:row(id, slot, 0) end
  end
  loader:done()
end

function cleanup() connect():query("DROP TABLE IF EXISTS hot_counters") end

local function read_totals()
  local con = connect()
  assay.total("count", tonumber((con:query_row("SELECT COALESCE(SUM(n), 0) FROM hot_counters"))))
  con:close()
end

init, done = read_totals, read_totals

assay.audit { name = "additions in the table", total = "count", of = "add", most = 1 }
assay.audit { name = "counters that went backwards", part = "backwards", whole = "read", high = 0 }

local con, update, sum, seen

function thread_init()
  con, seen = connect(), {}
  if sysbench.tid == 0 then -- not what options say, if that is wrong
    local counters, slots = con:query_row("SELECT MAX(id), MAX(slot) FROM hot_counters")
    assay.found("counters", tonumber(counters) or 0)
    assay.found("slots", tonumber(slots) or 0)
  end
  update = con:prepare("UPDATE hot_counters SET n = n + 1 WHERE id = ? AND slot = ?", "ii")
  sum = con:prepare("SELECT SUM(n) FROM hot_counters WHERE id = ?", "i")
end

local add = assay.transaction("add", function()
  update:perform(uniform(1, sysbench.opt.counters), uniform(1, sysbench.opt.slots))
end)

local read = assay.transaction("read", function()
  local id = uniform(1, sysbench.opt.counters)
  local now = tonumber((sum:row(id)))
  assay.count("backwards", (not now or now < (seen[id] or 0)) and 1 or 0)
  seen[id] = now
end)

function event()
  if uniform(1, 100) <= sysbench.opt.reads then read() else add() end
end

--- Every counter has its slots.
function check()
  local expected = sysbench.opt.counters * sysbench.opt.slots
  local rows = tonumber((connect():query_row("SELECT COUNT(*) FROM hot_counters")))
  if rows ~= expected then assay.log(("%d rows instead of %d"):format(rows, expected)) end
  return rows == expected
end
