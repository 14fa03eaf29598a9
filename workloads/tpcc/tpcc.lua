--- TPC-C 5.11: orders, payments and deliveries of a wholesaler, audited clause by clause while they run.
--
-- The five transactions of clause 2, and how often what happens in them. `tpcc_load` makes the tables, `tpcc_check`
-- verifies them, `tpcc_isolation` tries what transactions see of each other, `tpcc_procedures` has the transactions as stored
-- procedures. docs/tpcc.md says clause by clause what is followed and what is not.
--
-- The functions below that are not `local` may be replaced by a script that requires this one, and so may the statements
-- (procedures are made of them by the `prepare` of that script).
local tpcc = require("tpcc_common")

sysbench.cmdline.options = tpcc.options

-- The parts that only commands need are loaded by them.
local parts -- what the isolation tests need of the transactions
local PARALLEL = sysbench.cmdline.PARALLEL_COMMAND
sysbench.cmdline.commands = {
  prepare = { function() return require("tpcc_load").prepare() end, PARALLEL },
  check = { function() return require("tpcc_check").check() end, PARALLEL },
  isolation = {
    function()
      if sysbench.tid > 1 then return end
      if sysbench.opt.threads < 2 then error("the isolation tests need two sessions: give --sessions 2", 0) end
      return require("tpcc_isolation").run(parts())
    end, PARALLEL,
  },
  cleanup = { function() return require("tpcc_load").cleanup() end, PARALLEL },
}

local uniform = sysbench.rand.uniform
local floor, ceil, tonumber = math.floor, math.ceil, tonumber
local count, rolled_back = assay.count, assay.rolled_back
local DISTRICTS = tpcc.DISTRICTS

-- Statements ---------------------------------------------------------------------------------------------------------

-- Name → text and the kinds of its parameters. {name} is a table of the set, <lock> and <now> are the dialect's.
--
-- What is read to be written, or found by a row that is locked, is read with a lock. At REPEATABLE READ InnoDB answers other
-- reads from a snapshot that may be older than the locked row: the order of a new order, say, may not be in it.
tpcc.statements = {
  -- New-Order (2.4.2.2)
  order_customer = {
    "SELECT c_discount, c_last, c_credit, w_tax FROM {customer}, {warehouse}"
      .. " WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?", "iii",
  },
  order_district = { "SELECT d_next_o_id, d_tax FROM {district} WHERE d_w_id = ? AND d_id = ?<lock>", "ii" },
  next_order = { "UPDATE {district} SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?", "iii" },
  insert_order = {
    "INSERT INTO {orders} (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)"
      .. " VALUES (?, ?, ?, ?, <now>, ?, ?)", "iiiiii",
  },
  insert_new_order = { "INSERT INTO {new_orders} (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)", "iii" },
  item = { "SELECT i_price, i_name, i_data FROM {item} WHERE i_id = ?", "i" },
  update_stock = {
    "UPDATE {stock} SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ?"
      .. " WHERE s_w_id = ? AND s_i_id = ?", "iiiii",
  },
  insert_line = {
    "INSERT INTO {order_line} (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,"
      .. " ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", "iiiiiiidt",
  },
  -- Payment (2.5.2.2)
  pay_warehouse = { "UPDATE {warehouse} SET w_ytd = w_ytd + ? WHERE w_id = ?", "di" },
  warehouse = { "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM {warehouse} WHERE w_id = ?", "i" },
  pay_district = { "UPDATE {district} SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", "dii" },
  district = {
    "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM {district} WHERE d_w_id = ? AND d_id = ?", "ii",
  },
  customers_of_name = {
    "SELECT c_id FROM {customer} WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first", "iit",
  },
  paying_customer = {
    "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since,"
      .. " c_credit_lim, c_discount, c_balance FROM {customer} WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?<lock>", "iii",
  },
  pay_customer = {
    "UPDATE {customer} SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1"
      .. " WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "ddiii",
  },
  customer_data = { "SELECT c_data FROM {customer} WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?<lock>", "iii" },
  pay_bad_customer = {
    "UPDATE {customer} SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1,"
      .. " c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "ddtiii",
  },
  insert_history = {
    "INSERT INTO {history} (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)"
      .. " VALUES (?, ?, ?, ?, ?, <now>, ?, ?)", "iiiiidt",
  },
  -- Order-Status (2.6.2.2)
  customer_status = {
    "SELECT c_balance, c_first, c_middle, c_last FROM {customer} WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "iii",
  },
  last_order = {
    "SELECT o_id, o_entry_d, o_carrier_id FROM {orders} WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?"
      .. " ORDER BY o_id DESC LIMIT 1", "iii",
  },
  lines_of_order = {
    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM {order_line}"
      .. " WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", "iii",
  },
  -- Delivery (2.7.4.2)
  oldest_new_order = {
    "SELECT no_o_id FROM {new_orders} WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1<lock>", "ii",
  },
  any_new_order = { "SELECT MIN(no_o_id) FROM {new_orders} WHERE no_w_id = ? AND no_d_id = ?", "ii" },
  delete_new_order = { "DELETE FROM {new_orders} WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", "iii" },
  customer_of_order = { "SELECT o_c_id FROM {orders} WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?<lock>", "iii" },
  set_carrier = { "UPDATE {orders} SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", "iiii" },
  deliver_lines = {
    "UPDATE {order_line} SET ol_delivery_d = <now> WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", "iii",
  },
  amount_of_order = { "SELECT SUM(ol_amount) FROM {order_line} WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?", "iii" },
  deliver_to_customer = {
    "UPDATE {customer} SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1"
      .. " WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?", "diii",
  },
  -- Stock-Level (2.8.2.2)
  district_level = { "SELECT d_next_o_id FROM {district} WHERE d_w_id = ? AND d_id = ?", "ii" },
  low_stock = {
    "SELECT COUNT(DISTINCT s_i_id) FROM {order_line}, {stock} WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ?"
      .. " AND ol_o_id < ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?", "iiiiii",
  },
}
-- The text for a new order line is that of the customer's district: a statement for each.
for d = 1, DISTRICTS do
  tpcc.statements["stock_" .. d] = {
    ("SELECT s_quantity, s_data, s_dist_%02d FROM {stock} WHERE s_w_id = ? AND s_i_id = ?<lock>"):format(d), "ii",
  }
end

--- Prepares all statements for a table set: name → statement.
local function prepare_set(connection, dialect, set)
  local prepared = { stock = {} }
  for name, definition in pairs(tpcc.statements) do
    local text = tpcc.sql(definition[1], set):gsub("<(%w+)>", dialect)
    prepared[name] = connection:prepare(text, definition[2])
  end
  for d = 1, DISTRICTS do prepared.stock[d] = prepared["stock_" .. d] end
  return prepared
end

-- The session ----------------------------------------------------------------------------------------------------------

local settings, con
local read_mix, deferred_delivery, execute_queued
local enter_delivery -- writes a line of the result file (2.7.2.2)
local begin, begin_reading, commit, rollback
local defer -- executes a statement whose answer nothing waits for: at once or, with --batch-statements, with the next one
local sets -- per table set: its statements, or calls, and the constant for last names
local by_statements = {} -- the transactions
local by -- how they are executed: `by_statements`, or as calls by `tpcc_procedures`
local warehouses, customers, items, names
local user, home -- whose transaction runs, and the warehouse of its terminal
local c_for_customers, c_for_items
local is_scaled_down
local has_vanishing_rows -- see the dialects
local level_of_writing -- what the other transactions run at, Stock-Level apart
local level_of_reading, is_isolated -- what Order-Status reads at, and whether that is what 3.4.1 asks for

local function fail(...) error(string.format(...), 0) end

--- Are the procedures there, and made of the statements that would be executed without them?
local function check_procedures(dialect, set, state)
  local wanted = assay.constant("tpcc_procedures of " .. dialect.kind, function()
    return require("tpcc_procedures").fingerprint(dialect)
  end)
  if state.procedures == wanted then return end
  local command = ("assay prepare %s --procedures --warehouses %d"):format(sysbench.cmdline.script_path, state.warehouses)
  if settings.sets > 1 then command = ("%s --tables %d"):format(command, settings.sets) end
  if state.customers ~= 3000 or state.items ~= 100000 then
    command = ("%s --customers %d --items %d"):format(command, state.customers, state.items)
  end
  fail("--procedures: those of set %d %s; make them with `%s --db …`", set,
    state.procedures and "are of another version, or of other statements" or "are not there", command)
end

--- What is there to run on, by the tables' own account.
local function read_states(dialect)
  for set = 1, settings.sets do
    local state = tpcc.read_state(con, set)
    if state.complete ~= 1 then
      fail("the tables of set %d are not complete: their load was interrupted; `prepare` goes on with it", set)
    end
    if set > 1 and state.warehouses ~= warehouses then
      fail("set %d has %d warehouses, set 1 has %d: they were prepared apart", set, state.warehouses, warehouses)
    end
    warehouses, customers, items = state.warehouses, state.customers, state.items
    if settings.procedures then check_procedures(dialect, set, state) end
    sets[set] = { c_last = tpcc.constant_for_last_names(state.c_last) }
  end
  if settings.warehouses > warehouses then
    fail("--warehouses %d: %d were prepared", settings.warehouses, warehouses)
  end
  if settings.warehouses > 0 then warehouses = settings.warehouses end
  names = tpcc.last_names(customers)
  is_scaled_down = customers < 3000 or items < 100000
end

--- What isolation there really is. The transactions that write lock what they depend on; Order-Status reads without locks,
--- and sees one state of the database (level 3 of clause 3.4.1) only where a transaction has one snapshot.
local function read_levels(dialect, begin_text, begin_reading_text)
  local level = tpcc.level(con, dialect, begin_text)
  if settings.isolation and level ~= settings.isolation then
    fail("--isolation: the server was told %s, and gives %s", settings.isolation, level)
  end
  level_of_writing = level
  if begin_reading_text == begin_text then
    level_of_reading = level
  elseif settings.procedures then
    local _, there = by.order_status(sets[1], { c_w = 1, c_d = 1, c = 1 })
    level_of_reading = there:upper()
  else
    level_of_reading = tpcc.level(con, dialect, begin_reading_text)
  end
  is_isolated = level ~= "READ UNCOMMITTED"
    and (level_of_reading == "REPEATABLE READ" or level_of_reading == "SERIALIZABLE")
end

-- The rules of clause 9.2.2.5 and others that say how often something happens. Half of the draws of an even generator
-- are odd; of NURand's, less its constant, three quarters are, since each of their low bits is that of one number or another.
local function declare_audit()
  local function rule(clause, name, what)
    what.clause, what.name = clause, name
    assay.audit(what)
  end
  -- The execution of a delivery that was queued is no transaction of the mix.
  local whole = settings.deferred_delivery and "of_the_mix" or nil
  for _, share in ipairs { { "payment", 0.43 }, { "order_status", 0.04 }, { "delivery", 0.04 }, { "stock_level", 0.04 } } do
    local name, low = share[1], share[2]
    rule("5.2.3", name .. " in the mix", whole and { part = name, whole = whole, low = low } or { mix = name, low = low })
  end
  rule("2.4.1.4", "new-orders rolled back", { rolled_back = "new_order", low = 0.009, high = 0.011 })
  rule("2.4.1.3", "lines per order", { mean = "order_lines", low = 9.5, high = 10.5 })
  rule("2.4.1.3", "orders of 5 to 7 lines", { part = "short_orders", whole = "new_order", low = 0.25, high = 0.295 })
  if warehouses > 1 then
    rule("2.4.1.5", "remote order lines", { part = "remote_lines", whole = "order_lines", low = 0.0095, high = 0.0105 })
    rule("2.5.1.2", "remote payments", { part = "remote_payments", whole = "payment", low = 0.14, high = 0.16 })
  end
  rule("2.5.1.2", "payments by last name", { part = "payments_by_name", whole = "payment", low = 0.57, high = 0.63 })
  rule("2.6.1.2", "order-status by last name", { part = "status_by_name", whole = "order_status", low = 0.57, high = 0.63 })
  rule("2.1.6", "odd customers by NURand", { part = "odd_customers", whole = "customers", low = 0.73, high = 0.77 })
  rule("2.1.6", "odd last names by NURand", { part = "odd_names", whole = "names", low = 0.73, high = 0.77 })
  rule("2.1.6", "odd items by NURand", { part = "odd_items", whole = "items", low = 0.74, high = 0.76 })
  rule("3.4.1", "order-status at " .. level_of_reading:lower(), { part = "isolated", whole = "order_status", low = 0.99 })
  local done = settings.deferred_delivery and "delivery_executed" or "delivery"
  rule("2.7.4.2", "deliveries that skip a district", { part = "skipping_deliveries", whole = done, high = 0.01 })
  if is_scaled_down then
    rule("4.3.3", "new-orders on full-size tables", { part = "full_size", whole = "new_order", low = 1 })
  end
  -- 5.2.5.3
  for _, name in ipairs { "new_order", "payment", "order_status", "delivery", "stock_level" } do
    rule("5.2.5.3", "p90 of " .. name, { percentile = 90, of = name, high = name == "stock_level" and 20 or 5 })
  end
  if settings.deferred_delivery then -- due when it was queued
    rule("2.7.2.2", "p90 of delivery_executed", { percentile = 90, of = "delivery_executed", high = 80 })
  end
  -- 4.2.1: ten terminals to a warehouse, whose times to key in and think allow 12.86 New-Orders per minute and warehouse.
  assay.rate {
    name = "tpmC", of = "new_order", per = "minute", rolled_back = true,
    nominal = (sysbench.opt.terminals or 0) > 0 and 12.86 * warehouses * settings.sets or nil,
  }
  assay.rate { name = "NOPM", of = "new_order", per = "minute" } -- as others count them: committed only
  assay.rate { name = "TPM", per = "minute" }
end

--- A report must not name what was not done.
local function check_batching(dialect)
  if dialect.one_writer then
    if assay.claim("told of batching") == 0 then
      assay.log("--batch-statements changes nothing on SQLite: it runs in this process, and answers at once")
    end
    return
  end
  local waits = begin:defer()
  commit:execute()
  if not waits then fail("--batch-statements needs statements that the server prepares: leave out --prepared off") end
end

function thread_init()
  settings = tpcc.settings()
  local dialect
  con, dialect = tpcc.connect(settings)
  has_vanishing_rows = dialect.vanishing_rows
  sets = {}
  read_states(dialect)
  local begin_reading_text = settings.isolation and dialect.begin or dialect.begin_reading
  local prepare = prepare_set
  by = by_statements
  if settings.procedures then
    local procedures = require("tpcc_procedures")
    prepare, by = procedures.prepare_set, procedures.transactions(begin_reading_text ~= dialect.begin)
  end
  for set = 1, settings.sets do
    for name, statement in pairs(prepare(con, dialect, set)) do sets[set][name] = statement end
  end
  begin, begin_reading = con:prepare(dialect.begin, ""), con:prepare(begin_reading_text, "")
  read_levels(dialect, dialect.begin, begin_reading_text)
  commit, rollback = con:prepare("COMMIT", ""), con:prepare("ROLLBACK", "")
  defer = settings.batch_statements and commit.defer or commit.execute
  if settings.batch_statements then check_batching(dialect) end
  c_for_customers, c_for_items = tpcc.constant_of_run(1023, 1024), tpcc.constant_of_run(8191, 8192)
  read_mix()
  if settings.deferred_delivery then -- only then, or the report would have a line for it
    execute_queued = assay.transaction("delivery_executed", deferred_delivery)
    local columns = { "set", "warehouse", "carrier" }
    for d = 1, DISTRICTS do columns[#columns + 1] = "order_" .. d end
    enter_delivery = assay.journal(columns)
  elseif sysbench.opt.journal then
    fail("--journal: only deliveries that are queued have a result file (2.7.2); give --deferred-delivery too")
  end
  declare_audit()
end

function thread_done() con:disconnect() end

-- Inputs ---------------------------------------------------------------------------------------------------------------

-- Those of the running transaction, drawn before it begins: one that is started over does the same again.
local input = { item = {}, supply = {}, quantity = {}, number = {} }

local function chance(percent) return uniform(1, 100) <= percent end

local function random_customer() return nurand(1023, c_for_customers, 1, customers) end

local function random_name() return nurand(255, sets[input.set].c_last, 0, names - 1) end

local function random_item() return nurand(8191, c_for_items, 1, items) end

--- Any warehouse but this one; this one when there is no other.
local function another_warehouse(w)
  if warehouses == 1 then return w end
  local other = uniform(1, warehouses - 1)
  if other >= w then other = other + 1 end
  return other
end

--- 2.4.1.5.2: the warehouse an order line is supplied from.
function supply_warehouse(w)
  if chance(1) then return another_warehouse(w) end
  return w
end

--- 2.5.1.2: the warehouse a paying customer belongs to.
function customer_warehouse(w)
  if chance(15) then return another_warehouse(w) end
  return w
end

--- 2.4.1
local function draw_order()
  input.d, input.c = uniform(1, DISTRICTS), random_customer()
  local lines = uniform(5, 15)
  local item, supply, quantity, number = input.item, input.supply, input.quantity, input.number
  input.lines, input.remote = lines, 0
  input.unused = chance(1)
  -- Sorted by warehouse and item, so that two orders lock their stock in the same order; `number` is the line as entered.
  -- The unused item, which is entered last, stays last.
  local sorted = input.unused and lines - 1 or lines
  for n = 1, lines do
    local w, i = supply_warehouse(home), random_item()
    if w ~= home then input.remote = input.remote + 1 end
    if n > sorted then i = items + 1 end
    local at = n
    if n <= sorted then
      while at > 1 and (supply[at - 1] > w or (supply[at - 1] == w and item[at - 1] > i)) do
        supply[at], item[at], quantity[at], number[at] = supply[at - 1], item[at - 1], quantity[at - 1], number[at - 1]
        at = at - 1
      end
    end
    supply[at], item[at], quantity[at], number[at] = w, i, uniform(1, 10), n
  end
end

--- A customer by last name in 60 of 100 cases, else by number.
local function draw_customer()
  if chance(60) then
    input.name, input.c = random_name(), nil
  else
    input.name, input.c = nil, random_customer()
  end
end

--- 2.5.1
local function draw_payment()
  input.d = uniform(1, DISTRICTS)
  input.c_w, input.c_d = customer_warehouse(home), input.d
  if input.c_w ~= home then input.c_d = uniform(1, DISTRICTS) end
  draw_customer()
  input.amount = uniform(100, 500000) / 100
end

--- 2.6.1
local function draw_status()
  input.c_w, input.c_d = home, uniform(1, DISTRICTS)
  draw_customer()
end

--- 2.7.1
local function draw_delivery() input.carrier = uniform(1, 10) end

--- 2.8.1
local function draw_level() input.threshold = uniform(10, 20) end

-- Counts for the audit -------------------------------------------------------------------------------------------------

local function count_customer()
  if input.name then
    count("names")
    if (input.name - sets[input.set].c_last) % 2 ~= 0 then count("odd_names") end
  else
    count("customers")
    if (input.c - 1 - c_for_customers) % 2 ~= 0 then count("odd_customers") end
  end
end

local function count_order()
  local lines, odd = input.lines, 0
  count("order_lines", lines)
  if lines <= 7 then count("short_orders") end
  if input.remote > 0 then count("remote_lines", input.remote) end
  local drawn, item = input.unused and lines - 1 or lines, input.item
  for n = 1, drawn do odd = odd + (item[n] - 1 - c_for_items) % 2 end
  count("items", drawn)
  count("odd_items", odd)
  count("customers")
  if (input.c - 1 - c_for_customers) % 2 ~= 0 then count("odd_customers") end
  if not is_scaled_down then count("full_size") end
end

-- Transactions ---------------------------------------------------------------------------------------------------------

local function cents(amount) return floor(amount * 100 + 0.5) end

--- 2.4.2. The number of the order, and its total; nil when it was rolled back.
function by_statements.new_order(set, w)
  local d, c, lines = input.d, input.c, input.lines
  local item, supply, quantity, number = input.item, input.supply, input.quantity, input.number
  defer(begin)
  local discount, _, _, w_tax = set.order_customer:row(w, d, c)
  local o, d_tax = set.order_district:row(w, d)
  o = tonumber(o)
  defer(set.next_order, o + 1, w, d)
  defer(set.insert_order, o, d, w, c, lines, input.remote == 0 and 1 or 0)
  defer(set.insert_new_order, o, d, w)
  local select_item, select_stock, update_stock, insert_line = set.item, set.stock[d], set.update_stock, set.insert_line
  local sum = 0
  for n = 1, lines do
    local i, from, amount = item[n], supply[n], quantity[n]
    local price, _, i_data = select_item:row(i)
    if not price then -- 2.4.1.4: an unused item number; what was done is undone
      rollback:execute()
      return nil
    end
    local left, s_data, dist_info = select_stock:row(from, i)
    left = left - amount
    if left < 10 then left = left + 91 end
    defer(update_stock, left, amount, from == w and 0 or 1, from, i)
    -- 2.4.2.2: what the terminal shows of the line, brand or generic
    local brand = i_data:find("ORIGINAL", 1, true) and s_data:find("ORIGINAL", 1, true) and "B" or "G"
    input.brand = brand
    local cost = amount * cents(price)
    sum = sum + cost
    defer(insert_line, o, d, w, number[n], i, from, amount, cost / 100, dist_info)
  end
  commit:execute()
  return o, sum / 100 * (1 - discount) * (1 + w_tax + d_tax)
end

local function new_order()
  local o, total = by.new_order(sets[input.set], home, input)
  count_order()
  if not o then return rolled_back() end
  input.total = total
  assay.acknowledge(input.set, home, input.d, o, input.c)
end

--- 2.5.2.2: of the customers with a last name, ordered by first name, the one in the middle, rounded up.
local function customer_of_name(set, w, d, name)
  local found = set.customers_of_name:execute(w, d, tpcc.last_name(name))
  if found.nrows == 0 then fail("no customer %s in warehouse %d, district %d", tpcc.last_name(name), w, d) end
  local row
  for _ = 1, ceil(found.nrows / 2) do row = found:fetch_row() end
  return tonumber(row[1])
end

--- 2.5.2
function by_statements.payment(set, w)
  local d, amount, c_w, c_d, c = input.d, input.amount, input.c_w, input.c_d, input.c
  defer(begin)
  defer(set.pay_warehouse, amount, w)
  local w_name = set.warehouse:row(w)
  defer(set.pay_district, amount, w, d)
  local d_name = set.district:row(w, d)
  if not c then c = customer_of_name(set, c_w, c_d, input.name) end
  local credit = set.paying_customer:row(c_w, c_d, c)
  if credit == "BC" then
    local data = set.customer_data:row(c_w, c_d, c)
    data = ("%d %d %d %d %d %.2f|%s"):format(c, c_d, c_w, d, w, amount, data):sub(1, 500)
    defer(set.pay_bad_customer, amount, amount, data, c_w, c_d, c)
  else
    defer(set.pay_customer, amount, amount, c_w, c_d, c)
  end
  defer(set.insert_history, c, c_d, c_w, d, w, amount, w_name .. "    " .. d_name)
  commit:execute()
end

local function payment()
  by.payment(sets[input.set], home, input)
  if input.c_w ~= home then count("remote_payments") end
  if input.name then count("payments_by_name") end
  count_customer()
end

--- 2.6.2. The customer's balance.
function by_statements.order_status(set)
  local w, d, c = input.c_w, input.c_d, input.c
  defer(begin_reading)
  if not c then c = customer_of_name(set, w, d, input.name) end
  local balance = set.customer_status:row(w, d, c)
  local o = set.last_order:row(w, d, c)
  local lines = set.lines_of_order:execute(w, d, tonumber(o))
  for _ = 1, lines.nrows do lines:fetch_row() end
  commit:execute()
  return balance
end

local function order_status()
  input.balance = by.order_status(sets[input.set], input)
  if input.name then count("status_by_name") end
  if is_isolated then count("isolated") end
  count_customer()
end

--- 2.7.4.2: one order of a district. Its number, or nil when there is none to deliver.
local function deliver(set, w, d, carrier)
  local o = set.oldest_new_order:row(w, d)
  while not o do
    -- Where another delivery may have taken the order that this one waited for: is there still another?
    if not has_vanishing_rows or not set.any_new_order:row(w, d) then return nil end
    o = set.oldest_new_order:row(w, d)
  end
  o = tonumber(o)
  defer(set.delete_new_order, w, d, o)
  local c = tonumber((set.customer_of_order:row(w, d, o))) or fail("new order %d of warehouse %d, district %d is no order", o, w, d)
  defer(set.set_carrier, carrier, w, d, o)
  defer(set.deliver_lines, w, d, o)
  local amount = tonumber((set.amount_of_order:row(w, d, o)))
  defer(set.deliver_to_customer, amount, w, d, c)
  return o
end

--- 2.7.4: the oldest order of each district, all in one transaction (2.7.4.2 allows that). Enters them into `delivered`; how
--- many districts were skipped.
function by_statements.delivery(set, w, carrier, delivered)
  local skipped = 0
  defer(begin)
  for d = 1, DISTRICTS do
    delivered[d] = deliver(set, w, d, carrier)
    if not delivered[d] then skipped = skipped + 1 end
  end
  commit:execute()
  return skipped
end

local delivered = {} -- district → its order, by the last delivery

local function deliver_all(set, w, carrier)
  local skipped = by.delivery(set, w, carrier, delivered)
  if skipped > 0 then
    count("skipping_deliveries")
    count("skipped_districts", skipped)
  end
end

local function delivery()
  if settings.deferred_delivery then
    user.queued = { input.set, home, input.carrier } -- 2.7.2
  else
    deliver_all(sets[input.set], home, input.carrier)
  end
end

local queued -- the delivery that is executed: what the result file says of it before its orders

function deferred_delivery()
  local set, w, carrier = unpack(queued, 1, 3)
  deliver_all(sets[set], w, carrier)
  for d = 1, DISTRICTS do queued[3 + d] = delivered[d] end
  enter_delivery(queued)
end

--- 2.8.2. How many items are low.
function by_statements.stock_level(set, w, d)
  defer(begin_reading)
  local next_order = tonumber((set.district_level:row(w, d)))
  local low = set.low_stock:row(w, d, next_order - 20, next_order, w, input.threshold)
  commit:execute()
  return low
end

local function stock_level() input.low = by.stock_level(sets[input.set], home, user.district, input) end

-- Terminals and the mix --------------------------------------------------------------------------------------------------

-- What to draw, what to execute; seconds to key it in, and to think afterwards on average (5.2.5.7).
local CARDS = {
  { draw_order, assay.transaction("new_order", new_order), 18, 12 },
  { draw_payment, assay.transaction("payment", payment), 3, 12 },
  { draw_status, assay.transaction("order_status", order_status), 2, 10 },
  { draw_delivery, assay.transaction("delivery", delivery), 2, 5 },
  { draw_level, assay.transaction("stock_level", stock_level), 2, 5 },
}

local DELIVERY = 4 -- its card

local mix -- the kinds of all cards of a deck

--- 5.2.4.2: so many cards of each kind.
function read_mix()
  local text, kind = sysbench.opt.mix, 0
  mix = {}
  for number in (text .. ","):gmatch("%s*(%d*)%s*,") do
    kind = kind + 1
    number = tonumber(number)
    if not number or kind > #CARDS then kind = 0 break end
    for _ = 1, number do mix[#mix + 1] = kind end
  end
  if kind ~= #CARDS or #mix == 0 or #mix > 10000 then
    fail("--mix %s: expected five numbers of cards, such as 10,10,1,1,1", text)
  end
end

--- The kind of a user's next transaction: each has a deck, shuffled anew when its last card was drawn.
local function draw_card(of)
  local deck, left = of.deck, of.left
  if left == 0 then left = #deck end
  -- Fisher and Yates, a card at a time.
  local at = uniform(1, left)
  local kind = deck[at]
  deck[at], deck[left] = deck[left], kind
  of.left = left - 1
  return kind
end

--- The user whose transaction runs. Terminal after terminal gets a warehouse (2.4.1.1), and a district of it (2.8.1.1).
local function this_user()
  local one = assay.terminal()
  if not one.deck then
    one.home, one.district = one.number % warehouses + 1, floor(one.number / warehouses) % DISTRICTS + 1
    one.deck, one.left = {}, 0
    for i = 1, #mix do one.deck[i] = mix[i] end
    one.next = draw_card(one)
  end
  return one
end

--- 5.2.5.4: exponentially distributed, at most ten times the mean.
local function time_to_think(kind)
  local mean = CARDS[kind][4]
  return math.min(-math.log(1 - sysbench.rand.uniform_double()) * mean, 10 * mean)
end

function terminal_init()
  local one = this_user()
  assay.think(time_to_think(1) + CARDS[one.next][3]) -- as if each had just ended a New-Order
end

local execute

--- What the user does next; the time until the transaction after it is asked for. A delivery that was queued is due at
--- once, so that its response time is that since it was queued; the user thinks after it.
local function choose()
  user = this_user()
  home = user.home
  if user.queued then
    queued, user.queued = user.queued, nil
    execute = execute_queued
    if user.thinking then assay.think(user.thinking) end
    user.thinking = nil
    return
  end
  local kind = user.next
  user.next = draw_card(user)
  if (sysbench.opt.terminals or 0) > 0 then
    local thinking = time_to_think(kind) + CARDS[user.next][3]
    if settings.deferred_delivery and kind == DELIVERY then
      user.thinking = thinking
    else
      assay.think(thinking)
    end
  end
  input.set = settings.sets == 1 and 1 or uniform(1, settings.sets)
  CARDS[kind][1]()
  execute = CARDS[kind][2]
end

function event(_, attempt)
  if attempt == 0 then choose() end
  execute()
  if settings.deferred_delivery and execute ~= execute_queued then count("of_the_mix") end
end

--- For `tpcc_isolation`: a session with its transactions, their input, and what it takes to stop in one.
function parts()
  if sysbench.opt.deferred_delivery then fail("--deferred-delivery: the isolation tests stop in deliveries that are not queued") end
  if sysbench.opt.procedures then
    fail("--procedures: the isolation tests stop inside of transactions, and a procedure runs to its end")
  end
  sysbench.opt.batch_statements = false -- who stops has sent what came before
  thread_init()
  home = 1
  local real = commit
  return {
    con = con, input = input, statements = sets[1], customers = customers, level = level_of_writing,
    level_of_reading = level_of_reading,
    transactions = { new_order = new_order, payment = payment, order_status = order_status, delivery = delivery },
    --- Calls `body(commit, rollback)` instead of a COMMIT; nil: no longer.
    end_with = function(body)
      commit = body and { execute = function() return body(real, rollback) end } or real
    end,
  }
end

--- After a kill check: are all acknowledged orders there?
function verify() return require("tpcc_check").verify() end
