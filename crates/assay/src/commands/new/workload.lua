--- Moves money between accounts, and looks at balances. (The first comment line is what `assay list` shows.)
--
--
-- docs/lua-api.md explains all calls; `assay lua stubs` describes them to an editor.

-- Options of this workload: `assay run ./{NAME}.lua --accounts 5000`.
sysbench.cmdline.options = {
  accounts = { "Number of accounts", 1000 },
  looks = { "Percent of transactions that only look at a balance", 50 },
}

local BALANCE = 100
local uniform = sysbench.rand.uniform

-- `--db` may name several databases; sessions get one in turn.
local function connect() return sysbench.sql.driver():connect() end

--- Creates and fills the tables: `assay prepare`, and `assay run --prepare` if they are missing.
function prepare()
  local con = connect()
  con:query("CREATE TABLE {NAME}_accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL)")
  con:query("CREATE TABLE {NAME}_transfers (session INT NOT NULL, amount BIGINT NOT NULL)")
  -- A loader is the fastest way to insert many rows: COPY on PostgreSQL, for example.
  local loader = con:loader("{NAME}_accounts", "id, balance")
  for id = 1, sysbench.opt.accounts do loader:row(id, BALANCE) end
  loader:done()
end

--- Drops them again: `assay cleanup`.
function cleanup()
  local con = connect()
  con:query("DROP TABLE IF EXISTS {NAME}_transfers")
  con:query("DROP TABLE IF EXISTS {NAME}_accounts")
end

-- What the tables say before and after the run. The audit compares how much it grew with what was reported.
local function read_totals()
  local con = connect()
  local rows, amount = con:query_row("SELECT COUNT(*), COALESCE(SUM(amount), 0) FROM {NAME}_transfers")
  assay.total("transfers_in_table", tonumber(rows))
  assay.total("amount_in_table", tonumber(amount))
  con:close()
end

init, done = read_totals, read_totals

assay.audit { name = "transfers in the table", total = "transfers_in_table", of = "transfer", most = 1 }
assay.audit { name = "amount in the table", total = "amount_in_table", of = "amount", most = 10 }

local con, begin, take, give, note, commit, look

--- Called by each session before its first transaction. Prepare statements here: `i` is an integer, `t` a text.
function thread_init(session)
  con = connect()
  local is_sqlite = con.driver:name() == "sqlite"
  begin = con:prepare(is_sqlite and "BEGIN IMMEDIATE" or "BEGIN", "")
  take = con:prepare("UPDATE {NAME}_accounts SET balance = balance - ? WHERE id = ?", "ii")
  give = con:prepare("UPDATE {NAME}_accounts SET balance = balance + ? WHERE id = ?", "ii")
  note = con:prepare("INSERT INTO {NAME}_transfers (session, amount) VALUES (" .. session .. ", ?)", "i")
  commit = con:prepare("COMMIT", "")
  look = con:prepare("SELECT balance FROM {NAME}_accounts WHERE id = ?", "i")
end

-- Transactions are counted and timed by their names. After a deadlock, `event` is called again.
local transfer = assay.transaction("transfer", function()
  -- Rows are locked in ascending order, so that transfers do not deadlock.
  local low = uniform(1, sysbench.opt.accounts - 1)
  local high, amount = uniform(low + 1, sysbench.opt.accounts), uniform(1, 10)
  begin:perform()
  take:perform(amount, low)
  give:perform(amount, high)
  note:perform(amount)
  commit:perform()
  -- Counts only if the transaction succeeds.
  assay.count("amount", amount)
end)

local look_at_one = assay.transaction("look", function()
  local balance = look:row(uniform(1, sysbench.opt.accounts))
  if not balance then error("an account is missing") end
end)

--- One transaction. Do not return a value: in sysbench scripts, that ends the session.
function event()
  if uniform(1, 100) <= sysbench.opt.looks then look_at_one() else transfer() end
end

--- Whether the tables are right: `assay check`, and `assay run --check` before and after the run.
function check()
  local sum = tonumber((connect():query_row("SELECT SUM(balance) FROM {NAME}_accounts")))
  local expected = BALANCE * sysbench.opt.accounts
  if sum ~= expected then assay.log(("the sum of all balances is %d instead of %d"):format(sum, expected)) end
  return sum == expected
end
