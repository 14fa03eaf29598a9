--- Shared by the workloads that correspond to pgbench's built-in scripts: their option, tables, and checks.
--
--
-- Their transactions are those scripts, which assay translates: `assay pgbench --show-script=tpcb-like` shows one. The
-- tables have the names, columns and rows of pgbench's, so that either tool can use what the other created;
-- PostgreSQL's own options of `pgbench -i` are in `assay pgbench -i`. Parts of 10,000 accounts are loaded by whichever
-- session is free.

local tpcb = {}

local TELLERS, ACCOUNTS, PART = 10, 100000, 10000

-- The branch, teller and account of a transaction are uniform, as in TPC-B.
sysbench.cmdline.own_rows = true
sysbench.cmdline.options = sysbench.cmdline.options or {}
sysbench.cmdline.options.scale = {
  "Number of branches, each with 10 tellers and 100,000 accounts; 0: as prepared, or 1 for prepare", 0, low = 0, whole = true,
}

--- For prepare.
local function scale() return math.max(1, sysbench.opt.scale) end

local function connect() return sysbench.sql.driver():connect() end

local TABLES = {
  { "pgbench_history", "tid int, bid int, aid int, delta int, mtime timestamp, filler char(22)" },
  { "pgbench_tellers", "tid int not null, bid int, tbalance int, filler char(84)", "tid" },
  { "pgbench_accounts", "aid int not null, bid int, abalance int, filler char(84)", "aid" },
  { "pgbench_branches", "bid int not null, bbalance int, filler char(88)", "bid" },
}

local function create(con)
  local late_keys = con.driver:name() == "pgsql"
  for _, definition in ipairs(TABLES) do
    local name, columns, key = unpack(definition)
    con:query("DROP TABLE IF EXISTS " .. name)
    -- If a key can be added later, the load is faster without it.
    if key and not late_keys then columns = columns .. ", primary key (" .. key .. ")" end
    con:query(("CREATE TABLE %s(%s)"):format(name, columns))
  end
  local branches = con:loader("pgbench_branches", "bid, bbalance")
  for bid = 1, scale() do branches:row(bid, 0) end
  branches:done()
  local tellers = con:loader("pgbench_tellers", "tid, bid, tbalance")
  for tid = 1, TELLERS * scale() do tellers:row(tid, math.floor((tid - 1) / TELLERS) + 1, 0) end
  tellers:done()
end

--- The number of branches, which the transactions draw from; an option may only repeat it.
function scale_of_tables(con)
  local branches, asked = tonumber((con:query_row("SELECT COUNT(*) FROM pgbench_branches"))), sysbench.opt.scale
  if asked ~= 0 and asked ~= branches then
    error(("--scale %d: the tables have %d branches: leave out --scale, or prepare them again"):format(asked, branches), 0)
  elseif branches == 0 then
    error("pgbench_branches is empty: the tables are not prepared", 0)
  end
  if sysbench.tid == 0 then assay.found("scale", branches) end
  return branches
end

--- All sessions together create and fill the tables.
local function prepare()
  local con = connect()
  if sysbench.tid == 0 then
    create(con)
    assay.expect(ACCOUNTS * scale())
  end
  assay.barrier()
  local loader = con:loader("pgbench_accounts", "aid, bid, abalance, filler")
  while true do
    local first = assay.claim("tpcb accounts") * PART
    if first >= ACCOUNTS * scale() then break end
    local bid = math.floor(first / ACCOUNTS) + 1
    for aid = first + 1, first + PART do loader:row(aid, bid, 0, "") end
  end
  loader:done()
  assay.barrier()
  if sysbench.tid == 0 and con.driver:name() == "pgsql" then
    for _, definition in ipairs(TABLES) do
      if definition[3] then con:query(("ALTER TABLE %s ADD PRIMARY KEY (%s)"):format(definition[1], definition[3])) end
    end
    for _, definition in ipairs(TABLES) do con:query("VACUUM ANALYZE " .. definition[1]) end
  end
end

--- Every teller and branch exists, and all balances agree: those of accounts, tellers and branches with the sum of the
--- history. `tellers`: whether tellers and branches take part (the workload `tpcb`); `tpcb_simple_update` does not
--- change them.
function check()
  local con = connect()
  local function number(text) return tonumber((con:query_row(text))) end
  local function complain(...)
    assay.log(string.format(...))
    return false
  end
  local branches = sysbench.opt.scale > 0 and sysbench.opt.scale or number("SELECT COUNT(*) FROM pgbench_branches")
  if branches == 0 then return complain("pgbench_branches is empty") end
  local rows = { pgbench_branches = branches, pgbench_tellers = TELLERS * branches, pgbench_accounts = ACCOUNTS * branches }
  for _, name in ipairs { "pgbench_branches", "pgbench_tellers", "pgbench_accounts" } do
    local found = number("SELECT COUNT(*) FROM " .. name)
    if found ~= rows[name] then return complain("%s has %d rows instead of %d", name, found, rows[name]) end
  end
  local accounts = number("SELECT COALESCE(SUM(abalance), 0) FROM pgbench_accounts")
  local tellers = number("SELECT COALESCE(SUM(tbalance), 0) FROM pgbench_tellers")
  local branches = number("SELECT COALESCE(SUM(bbalance), 0) FROM pgbench_branches")
  local history = number("SELECT COALESCE(SUM(delta), 0) FROM pgbench_history")
  if tellers ~= branches then return complain("balances: tellers have %d, branches %d", tellers, branches) end
  if accounts ~= history then return complain("balances: accounts have %d, the history %d", accounts, history) end
  if tpcb.moves_tellers and tellers ~= accounts then
    return complain("balances: tellers have %d, accounts %d", tellers, accounts)
  end
  return true
end

function cleanup()
  local con = connect()
  for _, definition in ipairs(TABLES) do con:query("DROP TABLE IF EXISTS " .. definition[1]) end
end

sysbench.cmdline.commands = { prepare = { prepare, sysbench.cmdline.PARALLEL_COMMAND } }

return tpcb
