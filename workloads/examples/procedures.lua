--- Stored procedures: a transfer between accounts as one call, or as five statements.
--
--
-- `--call procedure` sends one CALL (a function on PostgreSQL) per transfer; `--call statements` sends the same
-- statements one by one. SQLite has no stored procedures and always uses statements.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  accounts = { "Number of accounts", 10000 },
  call = { "How a transfer is sent: procedure or statements", "procedure" },
}

local uniform = sysbench.rand.uniform
local BALANCE = 1000

-- Parameters: the lower account, the higher one, and the amount that moves from the first to the second. Rows are
-- locked in ascending order, so that transfers do not deadlock.
local PROCEDURE = {
  pgsql = [[CREATE FUNCTION procedures_transfer(low INT, high INT, amount INT) RETURNS INT LANGUAGE plpgsql AS $$
BEGIN
  UPDATE procedures_accounts SET balance = balance - amount WHERE id = low;
  UPDATE procedures_accounts SET balance = balance + amount WHERE id = high;
  INSERT INTO procedures_ledger (account_from, account_to, amount) VALUES (low, high, amount);
  RETURN 1;
END $$]],
  mysql = [[CREATE PROCEDURE procedures_transfer(low INT, high INT, amount INT)
BEGIN
  START TRANSACTION;
  UPDATE procedures_accounts SET balance = balance - amount WHERE id = low;
  UPDATE procedures_accounts SET balance = balance + amount WHERE id = high;
  INSERT INTO procedures_ledger (account_from, account_to, amount) VALUES (low, high, amount);
  COMMIT;
END]],
}
local CALL = { pgsql = "SELECT procedures_transfer(?, ?, ?)", mysql = "CALL procedures_transfer(?, ?, ?)" }
local DROP = {
  pgsql = "DROP FUNCTION IF EXISTS procedures_transfer(INT, INT, INT)",
  mysql = "DROP PROCEDURE IF EXISTS procedures_transfer",
}
local LEDGER_ID = {
  pgsql = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
  mysql = "BIGINT AUTO_INCREMENT PRIMARY KEY",
  sqlite = "INTEGER PRIMARY KEY",
}

local function connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), driver:name()
end

function prepare()
  local con, product = connect()
  con:query("CREATE TABLE procedures_accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL)")
  con:query("CREATE TABLE procedures_ledger (id " .. LEDGER_ID[product]
    .. ", account_from INT NOT NULL, account_to INT NOT NULL, amount INT NOT NULL)")
  local loader = con:loader("procedures_accounts", "id, balance")
  for id = 1, sysbench.opt.accounts do loader:row(id, BALANCE) end
  loader:done()
  if PROCEDURE[product] then con:query(PROCEDURE[product]) end
end

function cleanup()
  local con, product = connect()
  if DROP[product] then con:query(DROP[product]) end
  con:query("DROP TABLE IF EXISTS procedures_ledger")
  con:query("DROP TABLE IF EXISTS procedures_accounts")
end

local function read_totals()
  local con = connect()
  local rows, amount = con:query_row("SELECT COUNT(*), COALESCE(SUM(amount), 0) FROM procedures_ledger")
  assay.total("transfers", tonumber(rows))
  assay.total("amount", tonumber(amount))
  con:close()
end

init, done = read_totals, read_totals

assay.audit { name = "transfers in the ledger", total = "transfers", of = "transfer", most = 1 }
assay.audit { name = "amount in the ledger", total = "amount", of = "amount", most = 100 }

local con, call, begin, take, give, note, commit

function thread_init()
  local product
  con, product = connect()
  if sysbench.tid == 0 then -- not what an option says, if that is wrong
    assay.found("accounts", tonumber((con:query_row("SELECT COUNT(*) FROM procedures_accounts"))))
  end
  local how = sysbench.opt.call
  if how ~= "procedure" and how ~= "statements" then error("--call is procedure or statements, and not " .. how, 0) end
  if how == "procedure" and CALL[product] then
    call = con:prepare(CALL[product], "iii")
    return
  end
  begin = con:prepare(product == "sqlite" and "BEGIN IMMEDIATE" or "BEGIN", "")
  take = con:prepare("UPDATE procedures_accounts SET balance = balance - ? WHERE id = ?", "ii")
  give = con:prepare("UPDATE procedures_accounts SET balance = balance + ? WHERE id = ?", "ii")
  note = con:prepare("INSERT INTO procedures_ledger (account_from, account_to, amount) VALUES (?, ?, ?)", "iii")
  commit = con:prepare("COMMIT", "")
end

local transfer = assay.transaction("transfer", function(low, high, amount)
  if call then
    call:perform(low, high, amount)
  else
    begin:perform()
    take:perform(amount, low)
    give:perform(amount, high)
    note:perform(low, high, amount)
    commit:perform()
  end
  assay.count("amount", amount)
end)

function event()
  local low = uniform(1, sysbench.opt.accounts - 1)
  transfer(low, uniform(low + 1, sysbench.opt.accounts), uniform(1, 100))
end

--- Every balance is what the ledger says.
function check()
  local con = connect()
  local wrong = tonumber((con:query_row(([[
SELECT COUNT(*) FROM procedures_accounts a WHERE balance <> %d
  + COALESCE((SELECT SUM(amount) FROM (SELECT account_to AS account, amount FROM procedures_ledger
    UNION ALL SELECT account_from, -amount FROM procedures_ledger) moved WHERE moved.account = a.id), 0)]]):format(BALANCE))))
  if wrong > 0 then assay.log(wrong .. " balances differ from the ledger") end
  return wrong == 0
end
