--- Job queue in a table: workers take the oldest ready job, with SKIP LOCKED or without.
--
--
-- A transaction adds a job, or takes one and marks it as done. `--claim skip` passes over jobs that other workers have
-- locked, `--claim wait` queues up behind them. SQLite has one writer at a time, so its workers need neither.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  jobs = { "Jobs that are ready when the run starts", 1000 },
  adds = { "Percent of transactions that add a job", 50 },
  claim = { "How a worker takes a job: skip (FOR UPDATE SKIP LOCKED) or wait (FOR UPDATE)", "skip" },
}

local uniform = sysbench.rand.uniform
local READY, DONE = 0, 1

local CREATE = {
  pgsql = "CREATE TABLE queue_jobs (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state INT NOT NULL, "
    .. "taken INT NOT NULL, payload VARCHAR(100) NOT NULL)",
  mysql = "CREATE TABLE queue_jobs (id BIGINT AUTO_INCREMENT PRIMARY KEY, state INT NOT NULL, taken INT NOT NULL, "
    .. "payload VARCHAR(100) NOT NULL)",
  sqlite = "CREATE TABLE queue_jobs (id INTEGER PRIMARY KEY, state INT NOT NULL, taken INT NOT NULL, "
    .. "payload VARCHAR(100) NOT NULL)",
}
-- PostgreSQL and SQLite index the ready jobs only, so that the index stays small however many are done.
local INDEX = {
  pgsql = "CREATE INDEX queue_ready ON queue_jobs (id) WHERE state = 0",
  mysql = "CREATE INDEX queue_ready ON queue_jobs (state, id)",
  sqlite = "CREATE INDEX queue_ready ON queue_jobs (id) WHERE state = 0",
}
local LOCK = { skip = " FOR UPDATE SKIP LOCKED", wait = " FOR UPDATE" }

local function connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), driver:name()
end

function prepare()
  local con, product = connect()
  con:query(CREATE[product])
  local loader = con:loader("queue_jobs", "state, taken, payload")
  for _ = 1, sysbench.opt.jobs do loader:row(READY, 0, assay.random_cell(100, 100)) end
  loader:done()
  con:query(INDEX[product])
end

function cleanup() connect():query("DROP TABLE IF EXISTS queue_jobs") end

-- What the tables say, for the audit: each number must grow by what the transactions reported.
local function read_totals()
  local con = connect()
  local jobs, done, taken = con:query_row(
    "SELECT COUNT(*), COALESCE(SUM(CASE WHEN state = 1 THEN 1 ELSE 0 END), 0), COALESCE(SUM(taken), 0) FROM queue_jobs")
  assay.total("jobs", tonumber(jobs))
  assay.total("jobs_done", tonumber(done))
  assay.total("times_taken", tonumber(taken))
  con:close()
end

init, done = read_totals, read_totals

assay.audit { name = "jobs in the table", total = "jobs", of = "add", most = 1 }
assay.audit { name = "jobs done in the table", total = "jobs_done", of = "jobs_done", most = 1 }
assay.audit { name = "times that jobs were taken", total = "times_taken", of = "jobs_done", most = 1 }

local con, begin, commit, rollback, insert, claim, finish

function thread_init()
  local product
  con, product = connect()
  local lock = LOCK[sysbench.opt.claim] or error("--claim is skip or wait, and not " .. sysbench.opt.claim, 0)
  if product == "sqlite" then lock = "" end
  -- With MySQL's default level, the search for a job also locks the gaps before it, and nobody could add a job there.
  if product == "mysql" then con:query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED") end
  begin = con:prepare(product == "sqlite" and "BEGIN IMMEDIATE" or "BEGIN", "")
  commit, rollback = con:prepare("COMMIT", ""), con:prepare("ROLLBACK", "")
  insert = con:prepare("INSERT INTO queue_jobs (state, taken, payload) VALUES (0, 0, ?)", "t")
  claim = con:prepare("SELECT id FROM queue_jobs WHERE state = 0 ORDER BY id LIMIT 1" .. lock, "")
  finish = con:prepare("UPDATE queue_jobs SET state = 1, taken = taken + 1 WHERE id = ?", "i")
end

local add = assay.transaction("add", function() insert:perform(assay.random_text(100, 100)) end)

local take = assay.transaction("take", function()
  begin:perform()
  local id = claim:row()
  if not id then
    assay.count("found_nothing")
    return rollback:perform()
  end
  finish:perform(tonumber(id))
  commit:perform()
  assay.count("jobs_done")
end)

function event()
  if uniform(1, 100) <= sysbench.opt.adds then add() else take() end
end

--- No job was taken twice, and none is done without having been taken.
function check()
  local con = connect()
  local wrong = tonumber((con:query_row("SELECT COUNT(*) FROM queue_jobs WHERE taken <> state")))
  if wrong > 0 then assay.log(wrong .. " jobs were taken twice, or are done without having been taken") end
  return wrong == 0
end
