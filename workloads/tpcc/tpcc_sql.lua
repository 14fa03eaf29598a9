--- What TPC-C says to a SQL database, where all dialects agree.
--
-- A dialect is a module that is called `tpcc_` and the name of the driver: it has the texts of all statements, and says
-- what the product can do. The workload decides what is executed and when. Clauses are those of the TPC-C standard
-- specification, revision 5.11.
--
-- In texts, {name} is a table of the set; in those of transactions, <name> is a field of the dialect.

local sql = {
  begin = "BEGIN", begin_reading = "BEGIN", commit = "COMMIT", rollback = "ROLLBACK", instant = "SELECT NOW()",
  cents = "ROUND(%s * 100)", -- a sum of money in cents
}

local format = string.format
local DISTRICTS = 10

--- A text for table set `set`: `{name}` becomes the name of that table.
function sql.of_set(text, set) return (text:gsub("{([%w_]+)}", "%1" .. set)) end

local of_set = sql.of_set

-- Transactions -------------------------------------------------------------------------------------------------------

-- Part of the workload → name → text, the kinds of its parameters, and what the transactions read of the row, as in
-- `lean`.
--
-- Reads before a write, and rows found through a locked row, are read with a lock. At REPEATABLE READ InnoDB answers
-- other reads from a snapshot that may be older than the locked row: for example, the order of a new order may be
-- missing in it.
local statements = {}
sql.statements = statements

statements.customers = {
  customers_of_name = {
    "SELECT c_id FROM {customer} WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first", "iit",
  },
}

statements.new_order = {
  order_customer = {
    "SELECT c_discount, c_last, c_credit, w_tax FROM {customer}, {warehouse}"
      .. " WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?", "iii", "n--n",
  },
  order_district = { "SELECT d_next_o_id, d_tax FROM {district} WHERE d_w_id = ? AND d_id = ?<lock>", "ii", "nn" },
  next_order = { "UPDATE {district} SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?", "iii" },
  insert_order = {
    "INSERT INTO {orders} (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)"
      .. " VALUES (?, ?, ?, ?, <now>, ?, ?)", "iiiiii",
  },
  insert_new_order = { "INSERT INTO {new_orders} (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)", "iii" },
  item = { "SELECT i_price, i_name, i_data FROM {item} WHERE i_id = ?", "i", "n-t" },
  update_stock = {
    "UPDATE {stock} SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ?"
      .. " WHERE s_w_id = ? AND s_i_id = ?", "iiiii",
  },
  insert_line = {
    "INSERT INTO {order_line} (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,"
      .. " ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", "iiiiiiidt",
  },
}
-- The text for a new order line is that of the customer's district: a statement for each.
for d = 1, DISTRICTS do
  statements.new_order["stock_" .. d] = {
    ("SELECT s_quantity, s_data, s_dist_%02d FROM {stock} WHERE s_w_id = ? AND s_i_id = ?<lock>"):format(d), "ii", "ntt",
  }
end

statements.payment = {
  pay_warehouse = { "UPDATE {warehouse} SET w_ytd = w_ytd + ? WHERE w_id = ?", "di" },
  warehouse = { "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM {warehouse} WHERE w_id = ?", "i", "t" },
  pay_district = { "UPDATE {district} SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", "dii" },
  district = {
    "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM {district} WHERE d_w_id = ? AND d_id = ?", "ii", "t",
  },
  paying_customer = {
    "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since,"
      .. " c_credit_lim, c_discount, c_balance FROM {customer} WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?<lock>", "iii", "t",
  },
  pay_customer = {
    "UPDATE {customer} SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1"
      .. " WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "ddiii",
  },
  customer_data = { "SELECT c_data FROM {customer} WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?<lock>", "iii", "t" },
  pay_bad_customer = {
    "UPDATE {customer} SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1,"
      .. " c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "ddtiii",
  },
  insert_history = {
    "INSERT INTO {history} (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)"
      .. " VALUES (?, ?, ?, ?, ?, <now>, ?, ?)", "iiiiidt",
  },
}

statements.order_status = {
  customer_status = {
    "SELECT c_balance, c_first, c_middle, c_last FROM {customer} WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "iii", "n",
  },
  last_order = {
    "SELECT o_id, o_entry_d, o_carrier_id FROM {orders} WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?"
      .. " ORDER BY o_id DESC LIMIT 1", "iii", "n",
  },
  lines_of_order = {
    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM {order_line}"
      .. " WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", "iii",
  },
}

statements.delivery = {
  oldest_new_order = {
    "SELECT no_o_id FROM {new_orders} WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1<lock>", "ii", "n",
  },
  any_new_order = { "SELECT MIN(no_o_id) FROM {new_orders} WHERE no_w_id = ? AND no_d_id = ?", "ii", "n" },
  delete_new_order = { "DELETE FROM {new_orders} WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", "iii" },
  customer_of_order = { "SELECT o_c_id FROM {orders} WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?<lock>", "iii", "n" },
  set_carrier = { "UPDATE {orders} SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", "iiii" },
  deliver_lines = {
    "UPDATE {order_line} SET ol_delivery_d = <now> WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", "iii",
  },
  amount_of_order = { "SELECT SUM(ol_amount) FROM {order_line} WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", "iii", "n" },
  deliver_to_customer = {
    "UPDATE {customer} SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1"
      .. " WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "diii",
  },
}

statements.stock_level = {
  district_level = { "SELECT d_next_o_id FROM {district} WHERE d_w_id = ? AND d_id = ?", "ii", "n" },
  low_stock = {
    "SELECT COUNT(DISTINCT s_i_id) FROM {order_line}, {stock} WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ?"
      .. " AND ol_o_id < ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?", "iiiiii", "n",
  },
}

--- What transactions change: the numbers of orders made and delivered, and cents paid, over all districts; the same
--- with a weight for each district, which shows work done in the wrong one; and cents paid over all warehouses. Reads
--- an index entry for each district, and no table that grows.
function sql:totals(set)
  local paid = self.cents:format("d_ytd")
  return of_set(format("SELECT SUM(d_next_o_id), SUM(d_next_o_id * weight), SUM(oldest), SUM(oldest * weight), SUM(%s), SUM(%s * weight),"
    .. " (SELECT SUM(%s) FROM {warehouse}) FROM (SELECT d_next_o_id, d_ytd, (d_w_id * 10 + d_id) %% 97 + 1 AS weight,"
    .. " COALESCE((SELECT MIN(no_o_id) FROM {new_orders} WHERE no_w_id = d_w_id AND no_d_id = d_id), d_next_o_id) AS oldest"
    .. " FROM {district}) d", paid, paid, self.cents:format("w_ytd")), set)
end

--- The next order of a district, and the next to deliver.
function sql:progress(set, w, d)
  return of_set(format("SELECT d_next_o_id, COALESCE((SELECT MIN(no_o_id) FROM {new_orders} WHERE no_w_id = d_w_id AND no_d_id = d_id),"
    .. " d_next_o_id) FROM {district} WHERE d_w_id = %d AND d_id = %d", w, d), set)
end

--- How many of a run's last orders of a district there are, and how many have a date from the run. `from`: the first
--- one's number; `start`, `finish`: `instant` before and after the run.
function sql:dated_orders(set, w, d, from, start, finish)
  return of_set(format("SELECT COUNT(*), SUM(CASE WHEN o_entry_d >= '%s' AND o_entry_d <= '%s' THEN 1 ELSE 0 END) FROM"
    .. " (SELECT o_entry_d FROM {orders} WHERE o_w_id = %d AND o_d_id = %d AND o_id >= %d ORDER BY o_id DESC LIMIT 20) o",
    start, finish, w, d, from), set)
end

--- The same for the lines of orders that were delivered, before number `to`.
function sql:dated_lines(set, w, d, from, to, start, finish)
  return of_set(format("SELECT COUNT(*), SUM(CASE WHEN ol_delivery_d >= '%s' AND ol_delivery_d <= '%s' THEN 1 ELSE 0 END) FROM"
    .. " (SELECT ol_delivery_d FROM {order_line} WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id >= %d AND ol_o_id < %d"
    .. " ORDER BY ol_o_id DESC LIMIT 100) l", start, finish, w, d, from, to), set)
end

--- A run's last orders of a district, the last one first, with their customers. `from`: the first one's number.
function sql:last_orders(set, w, d, from, most)
  return of_set(format("SELECT o_id, o_c_id FROM {orders} WHERE o_w_id = %d AND o_d_id = %d AND o_id >= %d ORDER BY o_id DESC LIMIT %d",
    w, d, from, most), set)
end

--- The items of all order lines of a district from that order on.
function sql:lines_from(set, w, d, from)
  return of_set(format("SELECT ol_i_id FROM {order_line} WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id >= %d", w, d, from), set)
end

--- The different dates of all of a run's orders of a district, of its deliveries, and of its payments.
function sql:order_dates(set, w, d, from)
  return of_set(format("SELECT DISTINCT o_entry_d FROM {orders} WHERE o_w_id = %d AND o_d_id = %d AND o_id >= %d", w, d, from), set)
end

function sql:delivery_dates(set, w, d, from, to)
  return of_set(format("SELECT DISTINCT ol_delivery_d FROM {order_line} WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id >= %d AND ol_o_id < %d"
    .. " AND ol_number = 1 AND ol_delivery_d IS NOT NULL", w, d, from, to), set)
end

function sql:payment_dates(set, start)
  return of_set(format("SELECT DISTINCT h_date FROM {history} WHERE h_date >= '%s'", start), set)
end

--- How many payments there are, and how many since then. Reads the whole table.
function sql:dated_payments(set, start)
  return of_set(format("SELECT COUNT(*), SUM(CASE WHEN h_date >= '%s' THEN 1 ELSE 0 END) FROM {history}", start), set)
end

--- The statement of a definition above, for a table set.
function sql:statement(definition, set) return (of_set(definition[1], set):gsub("<(%w+)>", self)) end

-- Tables -------------------------------------------------------------------------------------------------------------

-- Name → columns, key, the column of the warehouse (clause 1.3). Identifiers are INTEGER where 16 bits could be too
-- few: also w_id, and counters that long runs on few warehouses carry beyond four digits.
sql.tables = {
  {
    name = "warehouse", key = "w_id", warehouse = "w_id",
    columns = [[
  w_id INTEGER NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_street_2 VARCHAR(20), w_city VARCHAR(20),
  w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2)]],
  },
  {
    name = "district", key = "d_w_id, d_id", warehouse = "d_w_id",
    columns = [[
  d_id SMALLINT NOT NULL, d_w_id INTEGER NOT NULL, d_name VARCHAR(10), d_street_1 VARCHAR(20), d_street_2 VARCHAR(20),
  d_city VARCHAR(20), d_state CHAR(2), d_zip CHAR(9), d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next_o_id INTEGER]],
  },
  {
    name = "customer", key = "c_w_id, c_d_id, c_id", warehouse = "c_w_id",
    columns = [[
  c_id INTEGER NOT NULL, c_d_id SMALLINT NOT NULL, c_w_id INTEGER NOT NULL, c_first VARCHAR(16), c_middle CHAR(2),
  c_last VARCHAR(16), c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), c_city VARCHAR(20), c_state CHAR(2),
  c_zip CHAR(9), c_phone CHAR(16), c_since TIMESTAMP, c_credit CHAR(2), c_credit_lim DECIMAL(12,2),
  c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), c_ytd_payment DECIMAL(12,2), c_payment_cnt INTEGER,
  c_delivery_cnt INTEGER, c_data VARCHAR(500)]],
  },
  {
    name = "history", warehouse = "h_w_id",
    columns = [[
  h_c_id INTEGER, h_c_d_id SMALLINT, h_c_w_id INTEGER, h_d_id SMALLINT, h_w_id INTEGER NOT NULL, h_date TIMESTAMP,
  h_amount DECIMAL(6,2), h_data VARCHAR(24)]],
  },
  {
    name = "new_orders", key = "no_w_id, no_d_id, no_o_id", warehouse = "no_w_id",
    columns = [[
  no_o_id INTEGER NOT NULL, no_d_id SMALLINT NOT NULL, no_w_id INTEGER NOT NULL]],
  },
  {
    name = "orders", key = "o_w_id, o_d_id, o_id", warehouse = "o_w_id",
    columns = [[
  o_id INTEGER NOT NULL, o_d_id SMALLINT NOT NULL, o_w_id INTEGER NOT NULL, o_c_id INTEGER, o_entry_d TIMESTAMP,
  o_carrier_id SMALLINT, o_ol_cnt SMALLINT, o_all_local SMALLINT]],
  },
  {
    name = "order_line", key = "ol_w_id, ol_d_id, ol_o_id, ol_number", warehouse = "ol_w_id",
    columns = [[
  ol_o_id INTEGER NOT NULL, ol_d_id SMALLINT NOT NULL, ol_w_id INTEGER NOT NULL, ol_number SMALLINT NOT NULL,
  ol_i_id INTEGER, ol_supply_w_id INTEGER, ol_delivery_d TIMESTAMP, ol_quantity SMALLINT, ol_amount DECIMAL(6,2),
  ol_dist_info CHAR(24)]],
  },
  {
    name = "item", key = "i_id",
    columns = [[
  i_id INTEGER NOT NULL, i_im_id INTEGER, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50)]],
  },
  {
    name = "stock", key = "s_w_id, s_i_id", warehouse = "s_w_id",
    columns = [[
  s_i_id INTEGER NOT NULL, s_w_id INTEGER NOT NULL, s_quantity SMALLINT, s_dist_01 CHAR(24), s_dist_02 CHAR(24),
  s_dist_03 CHAR(24), s_dist_04 CHAR(24), s_dist_05 CHAR(24), s_dist_06 CHAR(24), s_dist_07 CHAR(24),
  s_dist_08 CHAR(24), s_dist_09 CHAR(24), s_dist_10 CHAR(24), s_ytd INTEGER, s_order_cnt INTEGER,
  s_remote_cnt INTEGER, s_data VARCHAR(50)]],
  },
}

-- Table, name of the constraint, its columns, what they refer to (clause 1.3.1).
local FOREIGN_KEYS = {
  { "district", "district_warehouse", "d_w_id", "{warehouse}(w_id)" },
  { "customer", "customer_district", "c_w_id, c_d_id", "{district}(d_w_id, d_id)" },
  { "history", "history_customer", "h_c_w_id, h_c_d_id, h_c_id", "{customer}(c_w_id, c_d_id, c_id)" },
  { "history", "history_district", "h_w_id, h_d_id", "{district}(d_w_id, d_id)" },
  { "new_orders", "new_orders_orders", "no_w_id, no_d_id, no_o_id", "{orders}(o_w_id, o_d_id, o_id)" },
  { "orders", "orders_customer", "o_w_id, o_d_id, o_c_id", "{customer}(c_w_id, c_d_id, c_id)" },
  { "order_line", "order_line_orders", "ol_w_id, ol_d_id, ol_o_id", "{orders}(o_w_id, o_d_id, o_id)" },
  { "order_line", "order_line_stock", "ol_supply_w_id, ol_i_id", "{stock}(s_w_id, s_i_id)" },
  { "stock", "stock_warehouse", "s_w_id", "{warehouse}(w_id)" },
  { "stock", "stock_item", "s_i_id", "{item}(i_id)" },
}

local function foreign_key_text(key, set)
  return format("CONSTRAINT %s%d FOREIGN KEY (%s) REFERENCES %s", key[2], set, key[3], of_set(key[4], set))
end

--- The primary key of a table, or nil.
function sql:key_of(definition, settings)
  if definition.name == "history" and settings.history_key then return self.history_key.key end
  return definition.key
end

--- Columns, then keys that are there from the start.
function sql:columns_of(definition, set, settings)
  local parts = { (definition.columns:gsub("TIMESTAMP", self.timestamp)) }
  if definition.name == "history" and settings.history_key then parts[#parts + 1] = "h_id " .. self.history_key.column end
  local key = self:key_of(definition, settings)
  if key and not self.keys_last then parts[#parts + 1] = "PRIMARY KEY (" .. key .. ")" end
  if settings.foreign_keys and self.foreign_keys_first then
    for _, foreign in ipairs(FOREIGN_KEYS) do
      if foreign[1] == definition.name then parts[#parts + 1] = foreign_key_text(foreign, set) end
    end
  end
  return table.concat(parts, ",\n  ")
end

--- What to execute to create a table of `sql.tables`. `ending`: what comes after the columns.
function sql:create_table(definition, set, settings, ending)
  return { format("CREATE TABLE %s (\n  %s\n)%s", definition.name .. set, self:columns_of(definition, set, settings), ending or "") }
end

function sql:drop_table(name) return "DROP TABLE IF EXISTS " .. name end

function sql:analyze_table(name) return self.analyze:format(name) end

--- Which of the named tables exist: rows of a name.
function sql:existing_tables(names)
  local quoted = {}
  for i, name in ipairs(names) do quoted[i] = "'" .. name .. "'" end
  return self.existing:format(table.concat(quoted, ", "))
end

-- The largest first.
local BY_SIZE = { "order_line", "stock", "customer", "orders", "history", "new_orders", "item", "district", "warehouse" }

--- Keys and indexes that are made when the tables are full: what to execute, and what finds out whether that was done
--- (a number, 0 if not).
function sql:indexes(set, settings)
  local list = {}
  local function index(name, table_name, text)
    list[#list + 1] = { text = of_set(text, set), exists = self.index:format(table_name .. set, name .. set) }
  end
  for _, name in ipairs(self.keys_last and BY_SIZE or {}) do
    for _, definition in ipairs(self.tables) do
      local key = self:key_of(definition, settings)
      if definition.name == name and key then
        index(name .. "_key", name, format("ALTER TABLE {%s} ADD CONSTRAINT {%s_key} PRIMARY KEY (%s)", name, name, key))
      end
    end
  end
  index("customer_name", "customer", "CREATE INDEX {customer_name} ON {customer}(c_w_id, c_d_id, c_last, c_first)")
  index("orders_customer_order", "orders",
    "CREATE INDEX {orders_customer_order} ON {orders}(o_w_id, o_d_id, o_c_id, o_id)")
  return list
end

--- Keys and indexes that a table set has: lists of table, columns, and whether the index is unique.
function sql:wanted_indexes(set, settings)
  local list = {
    { "customer" .. set, "c_w_id,c_d_id,c_last,c_first", false }, { "orders" .. set, "o_w_id,o_d_id,o_c_id,o_id", false },
  }
  for _, definition in ipairs(self.tables) do
    if definition.key then list[#list + 1] = { definition.name .. set, (definition.key:gsub(" ", "")), true } end
  end
  return list
end

--- The same for foreign keys.
function sql:foreign_keys(set)
  local list = {}
  for i, key in ipairs(self.foreign_key and FOREIGN_KEYS or {}) do
    list[i] = {
      text = format("ALTER TABLE %s ADD %s", key[1] .. set, foreign_key_text(key, set)),
      exists = self.foreign_key:format(key[1] .. set, key[2] .. set),
    }
  end
  return list
end

-- The table of a set that says what was prepared: rows of a name, a number and a value --------------------------------

function sql:create_account(set, settings)
  return format("CREATE TABLE %s (what VARCHAR(20) NOT NULL, n INTEGER NOT NULL, v INTEGER,"
    .. " PRIMARY KEY (what, n))%s", "tpcc_load" .. set, self:account_ending(settings))
end

function sql:account_ending() return "" end

--- `rows`: lists of name, number and value.
function sql:enter(set, rows)
  local texts = {}
  for i, row in ipairs(rows) do texts[i] = format("('%s', %d, %d)", row[1], row[2], row[3]) end
  return format("INSERT INTO tpcc_load%d (what, n, v) VALUES %s", set, table.concat(texts, ", "))
end

--- Adds a row, unless it is there.
function sql:note(set, what, n, v) return of_set(self.note_text:format(format("('%s', %d, %d)", what, n, v)), set) end

function sql:forget(set, what) return format("DELETE FROM tpcc_load%d WHERE what = '%s'", set, what) end

--- All rows.
function sql:account(set) return of_set("SELECT what, n, v FROM {tpcc_load}", set) end

-- Sessions -----------------------------------------------------------------------------------------------------------

--- Why these settings cannot be had here, or nil.
function sql:refusal() end

--- What to execute on a new connection.
function sql:at_connect(settings) return settings.isolation and { self.isolation:format(settings.isolation) } or {} end

--- What to execute before tables are loaded, or dropped.
function sql:before_load() return {} end

function sql:before_drop() return {} end

-- Check --------------------------------------------------------------------------------------------------------------

--- A function of a text that a condition uses (see there), of `text_functions`.
function sql:of_text(name, argument) return (self.text_functions[name]:gsub("%%s", function() return argument end)) end

--- The module with the conditions and questions of `check`, `isolation` and `verify`.
sql.check_module = "tpcc_sql_check"

return sql
