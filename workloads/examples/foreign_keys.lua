--- Foreign keys: orders with lines are added and removed; lines without an order are refused.
--
--
-- `--keys on` lets the database guard the rule, and remove the lines of a removed order (ON DELETE CASCADE). With
-- `--keys off`, the transactions remove the lines themselves and nobody tries to break the rule: the price of the guard
-- is the difference.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  orders = { "Orders to begin with", 2000 },
  lines = { "Lines per order", 3 },
  removes = { "Percent of transactions that remove an order", 30 },
  orphans = { "Percent of transactions that try to add a line without an order (with --keys on)", 5 },
  keys = { "Declare the foreign key: on or off", "on" },
}

local uniform = sysbench.rand.uniform

local ID = {
  pgsql = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
  mysql = "BIGINT AUTO_INCREMENT PRIMARY KEY",
  sqlite = "INTEGER PRIMARY KEY",
}
local LAST_ID = { mysql = "SELECT LAST_INSERT_ID()", sqlite = "SELECT last_insert_rowid()" }
local REFERENCE = ", FOREIGN KEY (order_id) REFERENCES fk_orders (id) ON DELETE CASCADE"

local function connect()
  local driver = sysbench.sql.driver()
  local con = driver:connect()
  if driver:name() == "sqlite" then con:query("PRAGMA foreign_keys = ON") end
  return con, driver:name()
end

local function has_keys()
  local keys = sysbench.opt.keys
  if keys ~= "on" and keys ~= "off" then error("--keys is on or off, and not " .. keys, 0) end
  return keys == "on"
end

function prepare()
  local con, product = connect()
  local opt, id = sysbench.opt, ID[product]
  con:query("CREATE TABLE fk_orders (id " .. id .. ", customer INT NOT NULL)")
  con:query("CREATE TABLE fk_lines (id " .. id .. ", order_id BIGINT NOT NULL, item INT NOT NULL"
    .. (has_keys() and REFERENCE or "") .. ")")
  -- Which orders were removed, for the audit.
  con:query("CREATE TABLE fk_removed (id " .. id .. ", order_id BIGINT NOT NULL)")
  local orders = con:loader("fk_orders", "customer")
  for _ = 1, opt.orders do orders:row(uniform(1, 1000)) end
  orders:done()
  con:query("CREATE INDEX fk_lines_order ON fk_lines (order_id)")
  for _ = 1, opt.lines do con:query("INSERT INTO fk_lines (order_id, item) SELECT id, 1 FROM fk_orders") end
end

function cleanup()
  local con = connect()
  for _, name in ipairs { "fk_removed", "fk_lines", "fk_orders" } do con:query("DROP TABLE IF EXISTS " .. name) end
end

local function read_totals()
  local con = connect()
  local function rows(name) return tonumber((con:query_row("SELECT COUNT(*) FROM " .. name))) end
  assay.total("orders_ever", rows("fk_orders") + rows("fk_removed"))
  assay.total("orders_removed", rows("fk_removed"))
  con:close()
end

init, done = read_totals, read_totals

assay.audit { name = "orders in the tables", total = "orders_ever", of = "add", most = 1 }
assay.audit { name = "removed orders in the tables", total = "orders_removed", of = "orders_removed", most = 1 }

local con, product, begin, commit, rollback, insert, last_id, insert_lines, insert_line, lock, delete
local delete_lines, note, range

function thread_init()
  con, product = connect()
  local cells = {}
  for i = 1, sysbench.opt.lines do cells[i] = "(?, ?)" end
  begin = con:prepare(product == "sqlite" and "BEGIN IMMEDIATE" or "BEGIN", "")
  commit, rollback = con:prepare("COMMIT", ""), con:prepare("ROLLBACK", "")
  local order = "INSERT INTO fk_orders (customer) VALUES (?)"
  insert = con:prepare(product == "pgsql" and order .. " RETURNING id" or order, "i")
  last_id = LAST_ID[product] and con:prepare(LAST_ID[product], "")
  insert_lines = con:prepare("INSERT INTO fk_lines (order_id, item) VALUES " .. table.concat(cells, ", "),
    ("ii"):rep(sysbench.opt.lines))
  insert_line = con:prepare("INSERT INTO fk_lines (order_id, item) VALUES (?, ?)", "ii")
  delete = con:prepare("DELETE FROM fk_orders WHERE id = ?", "i")
  delete_lines = con:prepare("DELETE FROM fk_lines WHERE order_id = ?", "i")
  lock = con:prepare("SELECT id FROM fk_orders WHERE id = ?" .. (product == "sqlite" and "" or " FOR UPDATE"), "i")
  note = con:prepare("INSERT INTO fk_removed (order_id) VALUES (?)", "i")
  range = { con:query_row("SELECT COALESCE(MIN(id), 1), COALESCE(MAX(id), 1) FROM fk_orders") }
  if has_keys() then assay.audit { name = "lines without an order refused", part = "refused", whole = "orphan", low = 1 } end
end

local add = assay.transaction("add", function()
  begin:perform()
  local order
  if last_id then
    insert:perform(uniform(1, 1000))
    order = last_id:row()
  else
    order = insert:row(uniform(1, 1000))
  end
  local values = {}
  for i = 1, sysbench.opt.lines do
    values[2 * i - 1], values[2 * i] = tonumber(order), uniform(1, 100000)
  end
  insert_lines:perform(unpack(values))
  commit:perform()
  range[2] = math.max(range[2], tonumber(order))
end)

-- An order that another session has removed meanwhile is left alone; it is not counted.
local remove = assay.transaction("remove", function()
  local order = uniform(tonumber(range[1]), tonumber(range[2]))
  begin:perform()
  if not lock:row(order) then return rollback:perform() end
  if not has_keys() then delete_lines:perform(order) end
  delete:perform(order)
  note:perform(order)
  commit:perform()
  assay.count("orders_removed")
end)

local orphan = assay.transaction("orphan", function()
  local is_accepted = pcall(insert_line.perform, insert_line, -1, 1)
  assay.count("refused", is_accepted and 0 or 1)
end)

function event()
  local opt, draw = sysbench.opt, uniform(1, 100)
  if draw <= opt.removes then return remove() end
  if draw <= opt.removes + opt.orphans and has_keys() then return orphan() end
  add()
end

--- Each order has its lines, and each line its order.
function check()
  local con = connect()
  local function number(text) return tonumber((con:query_row(text))) end
  local orphans = number("SELECT COUNT(*) FROM fk_lines l WHERE NOT EXISTS (SELECT 1 FROM fk_orders o WHERE o.id = l.order_id)")
  local lines, expected = number("SELECT COUNT(*) FROM fk_lines"), sysbench.opt.lines * number("SELECT COUNT(*) FROM fk_orders")
  if orphans > 0 then assay.log(orphans .. " lines have no order") end
  if lines ~= expected then assay.log(("%d lines instead of %d"):format(lines, expected)) end
  return orphans == 0 and lines == expected
end
