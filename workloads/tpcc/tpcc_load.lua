--- Creates, fills and drops the TPC-C tables (population: clause 4.3).
--
-- The work is cut into pieces of about 50,000 rows: a tenth of the items, a tenth of a warehouse's stock, a district
-- with its customers and orders. Sessions take pieces as they get free. A piece is one transaction, and its last row
-- says in the table tpcc_load that the piece is there: a load that was killed leaves whole pieces, and the next prepare
-- makes the others. Engines without transactions (MyISAM) cannot promise that.
--
-- Each piece has random numbers of its own, from the load's seed, which tpcc_load keeps: what is in the tables depends
-- on seed and size (and, for dates, on the clock), not on how many sessions there are, nor on an interruption.

local tpcc = require("tpcc_common")

local load = {}

local uniform = sysbench.rand.uniform
local format, floor = string.format, math.floor
local DISTRICTS = tpcc.DISTRICTS
local PARTS = 10 -- pieces of a warehouse's stock, and of the items
load.PARTS = PARTS

local function fail(...) error(format(...), 0) end

-- Values (4.3.2) -----------------------------------------------------------------------------------------------------

--- 0 to `most` ten-thousandths, of which there are no 10,000.
local function fraction(most) return format("0.%04d", uniform(0, most)) end

local function tax() return fraction(2000) end

local function money(cents) return format("%d.%02d", floor(cents / 100), cents % 100) end

-- a-strings (4.3.2.2), zip codes (4.3.2.7) and telephone numbers, made by the loaders.
local cell = assay.random_cell
local ZIP, PHONE = cell("####11111"), cell("################")
local A2, A6_10, A8_16, A10_20, A12_24, A14_24 = cell(2, 2), cell(6, 10), cell(8, 16), cell(10, 20), cell(12, 24), cell(14, 24)
local A24, A26_50, A300_500 = cell(24, 24), cell(26, 50), cell(300, 500)

--- i_data and s_data: text of 26 to 50 characters, with ORIGINAL at a random place when `original`.
local function data(original)
  if not original then return A26_50 end
  local value = assay.random_text(26, 50)
  local at = uniform(0, #value - 8)
  return value:sub(1, at) .. "ORIGINAL" .. value:sub(at + 9)
end

--- One tenth of the numbers 1 to n, at random: number → true.
local function a_tenth(n)
  local chosen, list = {}, tpcc.permutation(n)
  for i = 1, n / 10 do chosen[list[i]] = true end
  return chosen
end

-- Pieces (4.3.3.1) ---------------------------------------------------------------------------------------------------

-- The tables; each refers to none that comes before it.
local DROP_ORDER = {
  "order_line", "new_orders", "history", "orders", "stock", "item", "customer", "district", "warehouse",
}

--- The columns of each table, in the order of its loaded rows.
load.columns = {
  warehouse = "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd",
  district = "d_id, d_w_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd, d_next_o_id",
  customer = "c_id, c_d_id, c_w_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone,"
    .. " c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data",
  history = "h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data",
  new_orders = "no_o_id, no_d_id, no_w_id",
  orders = "o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local",
  order_line = "ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount,"
    .. " ol_dist_info",
  item = "i_id, i_im_id, i_name, i_price, i_data",
  stock = "s_i_id, s_w_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07,"
    .. " s_dist_08, s_dist_09, s_dist_10, s_ytd, s_order_cnt, s_remote_cnt, s_data",
}

--- Loaders of a table set, made when they are first needed.
local function loaders(connection, set)
  return setmetatable({}, {
    __index = function(made, table_name)
      local loader = connection:loader(table_name .. set, load.columns[table_name])
      made[table_name] = loader
      return loader
    end,
  })
end

--- The first and last of the items of a piece.
local function part_of_items(part, items)
  return (part - 1) * items / PARTS + 1, part * items / PARTS
end

local function load_items(to, part, context)
  local first, last = part_of_items(part, context.items)
  local original = a_tenth(last - first + 1)
  for i = first, last do
    to.item:row(i, uniform(1, 10000), A14_24, money(uniform(100, 10000)), data(original[i - first + 1]))
  end
  to.item:flush()
end

-- Rows are sent, and their storing not waited for: the next use of the connection does that.

local function load_warehouse(to, w, context)
  to.warehouse:row(w, A6_10, A10_20, A10_20, A10_20, A2, ZIP, tax(),
    money(DISTRICTS * context.customers * 1000))
  to.warehouse:flush()
end

local function load_stock(to, w, part, context)
  if part == 1 then load_warehouse(to, w, context) end
  local first, last = part_of_items(part, context.items)
  local original, stock, quantities = a_tenth(last - first + 1), to.stock, 0
  for i = first, last do
    local quantity = uniform(10, 100)
    quantities = quantities + quantity % 91
    stock:row(i, w, quantity, A24, A24, A24, A24, A24, A24,
      A24, A24, A24, A24, 0, 0, 0, data(original[i - first + 1]))
  end
  stock:flush()
  return 2 + quantities -- noted for `check`: selling changes no s_quantity + s_ytd, modulo 91
end

local function load_customers(to, w, d, context)
  local customer, history, now, customers = to.customer, to.history, context.now, context.customers
  local bad_credit, names = a_tenth(customers), tpcc.last_names(customers)
  for c = 1, customers do
    local name = c <= names and c - 1 or nurand(255, context.c_last, 0, names - 1)
    customer:row(c, d, w, A8_16, "OE", tpcc.last_name(name), A10_20, A10_20, A10_20, A2,
      ZIP, PHONE, now, bad_credit[c] and "BC" or "GC", 50000, fraction(5000), -10, 10, 1, 0, A300_500)
    history:row(c, d, w, d, w, now, 10, A12_24)
  end
  customer:flush()
  history:flush()
end

local function load_orders(to, w, d, context)
  local orders, lines, new_orders, now = to.orders, to.order_line, to.new_orders, context.now
  local items = context.items
  local delivered_until, cents = tpcc.delivered(context.customers), 0
  for o, c in ipairs(tpcc.permutation(context.customers)) do
    local delivered, count = o <= delivered_until, uniform(5, 15)
    orders:row(o, d, w, c, now, delivered and uniform(1, 10) or nil, count, 1)
    for number = 1, count do
      if delivered then
        lines:row(o, d, w, number, uniform(1, items), w, now, 5, 0, A24)
      else
        local item, amount = uniform(1, items), uniform(1, 999999)
        cents = cents + amount
        lines:row(o, d, w, number, item, w, nil, 5, money(amount), A24)
      end
    end
    if not delivered then new_orders:row(o, d, w) end
    -- In a batch of one kind more columns have the same value in all rows, which some databases take more quickly.
    if o == delivered_until then lines:flush() end
  end
  orders:flush()
  lines:flush()
  new_orders:flush()
  return cents
end

local function load_district(to, w, d, context)
  to.district:row(d, w, A6_10, A10_20, A10_20, A10_20, A2, ZIP, tax(),
    money(context.customers * 1000), context.customers + 1)
  to.district:flush()
  load_customers(to, w, d, context)
  return 2 + load_orders(to, w, d, context) % 1000000000
end

local function pieces(warehouses) return PARTS + warehouses * (PARTS + DISTRICTS) end

--- How many pieces of a table set come last, when the tables that have indexes besides their keys are full and get
--- these: a third of the stock, which takes as long.
local function pieces_beside_indexes(warehouses) return floor(warehouses * PARTS / 3) end

-- Kind and number of piece `n` of a table set, counted from 0. Districts are spread evenly between the other pieces,
-- items and then stock, so that few sessions append to the same table at the same time; but for the last pieces, which
-- are of stock alone.
local function piece_of(n, warehouses)
  local districts = warehouses * DISTRICTS
  local spread = pieces(warehouses) - pieces_beside_indexes(warehouses)
  local before = floor(math.min(n, spread) * districts / spread) -- districts before this piece
  if n < spread and floor((n + 1) * districts / spread) > before then
    return "piece district", before + 1
  end
  local other = n - before
  if other < PARTS then return "piece item", other + 1 end
  return "piece stock", other - PARTS + 1
end

local MAKERS = {
  ["piece item"] = load_items,
  ["piece stock"] = function(to, number, context)
    return load_stock(to, floor((number - 1) / PARTS) + 1, (number - 1) % PARTS + 1, context)
  end,
  ["piece district"] = function(to, number, context)
    return load_district(to, floor((number - 1) / DISTRICTS) + 1, (number - 1) % DISTRICTS + 1, context)
  end,
}

--- Makes the rows of a piece, always the same ones for a seed. `to`: table → what gets its rows. `context`: the seed,
--- the constant of the load, and the numbers of customers and items.
function load.make(kind, number, context, to)
  assay.seed(context.seed, kind, number)
  return MAKERS[kind](to, number, context)
end

--- The value of a cell that a loader would make.
local function value(one)
  if type(one) ~= "table" then return one end
  return one.format and sysbench.rand.string(one.format) or assay.random_text(one.low, one.high)
end

--- A function that appends a row of this many values to a list, without a loop over its arguments.
local function keeping(width, rows)
  local names, values = {}, {}
  for i = 1, width do names[i], values[i] = "v" .. i, "value(v" .. i .. ")" end
  local text = "local value, rows = ...; local n = 0; return function(_, %s) n = n + 1; rows[n] = { %s } end"
  return loadstring(text:format(table.concat(names, ", "), table.concat(values, ", ")))(value, rows)
end

--- Keeps rows instead of loading them, with the same values: table → list of rows.
function load.keeper()
  local kept = {}
  local to = setmetatable({}, {
    __index = function(made, name)
      local rows = {}
      kept[name] = rows
      local width = select(2, load.columns[name]:gsub(",", "")) + 1
      made[name] = { row = keeping(width, rows), flush = function() end }
      return made[name]
    end,
  })
  return to, kept
end

--- A number that tells whether this program makes the same rows from a seed as another: of a few rows of each table.
function load.fingerprint(state)
  local sum = 0
  local function add(text)
    for i = 1, #text do sum = (sum * 257 + text:byte(i)) % 2147483629 end
  end
  local context = { seed = state.seed, c_last = state.c_last, customers = 20, items = 100, now = "" }
  for _, kind in ipairs { "piece item", "piece stock", "piece district" } do
    local to, kept = load.keeper()
    load.make(kind, 1, context, to)
    for i = #DROP_ORDER, 1, -1 do
      for _, row in ipairs(kept[DROP_ORDER[i]] or {}) do
        for at = 1, table.maxn(row) do add(tostring(row[at]) .. "|") end
      end
    end
  end
  return sum
end

--- Rows of a kind of piece; of order lines, of which there are 5 to 15 per order, the average.
local function rows_of(kind, context)
  if kind == "piece district" then return 1 + context.customers * (1 + 1 + 1 + 0.3 + 10) end
  return context.items / PARTS
end

-- What is drawn, weighted with the row's place, is summed up and kept for `check`: to exchange two of these numbers
-- changes the sum. A row's part is below 2³¹, which is what databases calculate with. By the places of the columns.
local WEIGHTED = {
  item = "(v1 % 1000 + 1) * (3 * v2 + cents(v4))", stock = "(v1 % 1000 + 1) * (v3 % 91)",
  customer = "v1 * (floor(v16 * 10000 + 0.5) + (v14 == 'BC' and 7000 or 0))", orders = "v1 * (40 * v4 + 3 * (v6 or 0) + v7)",
  order_line = "(v1 % 100 * 16 + v4) * (v5 + cents(v9))",
}
local MODULUS = 1000000000

local function cents(amount) return floor(amount * 100 + 0.5) end

--- The loaders, which also add to `sums[1]`.
local function summing(to, sums)
  return setmetatable({}, {
    __index = function(made, name)
      local loader, weighted = to[name], WEIGHTED[name]
      if weighted then
        local names = {}
        for i = 1, select(2, load.columns[name]:gsub(",", "")) + 1 do names[i] = "v" .. i end
        local list = table.concat(names, ", ")
        local text = "local loader, sums, floor, cents = ...; return function(_, %s) sums[1] = sums[1] + %s; return loader:row(%s) end"
        local real = loader
        loader = {
          row = loadstring(text:format(list, weighted, list))(real, sums, floor, cents), flush = function() return real:flush() end,
        }
      end
      made[name] = loader
      return loader
    end,
  })
end

local function load_piece(connection, dialect, set, n, context)
  local kind, number = piece_of(n, context.warehouses)
  if context.pieces[kind .. " " .. number] then return end
  local is_transaction = not dialect.delete_piece
  if is_transaction then
    connection:query(dialect.begin)
  elseif context.created then -- by a prepare before this one, which may have loaded a part
    dialect:delete_piece(connection, set, kind, number, context.items)
  end
  -- What nothing changes from now on, and `check` compares: 2 or more; and the sum of what was drawn.
  local sums = { 0 }
  local note = load.make(kind, number, context, is_transaction and summing(context.to, sums) or context.to) or 1
  local sum = is_transaction and { (kind:gsub("piece", "sum")), number, sums[1] % MODULUS } or nil
  connection:query(dialect:enter(set, { { kind, number, note }, sum }))
  if is_transaction then connection:query(dialect.commit) end
end

-- Tables -------------------------------------------------------------------------------------------------------------

local function names_of(dialect, set)
  local names = {}
  for i, definition in ipairs(dialect.tables) do names[i] = definition.name .. set end
  return names
end

--- Which of the named tables exist: name → true.
local function existing(connection, dialect, names)
  local found, result = {}, connection:query(dialect:existing_tables(names))
  for _ = 1, result.nrows do found[result:fetch_row()[1]] = true end
  return found
end

local function drop_tables(connection, dialect, set)
  if not dialect.documents then require("tpcc_procedures").drop(connection, dialect, set) end
  for _, name in ipairs(DROP_ORDER) do tpcc.rows(connection, dialect:drop_table(name .. set)) end
  tpcc.rows(connection, dialect:drop_table("tpcc_load" .. set))
end

--- Begins a set, unless a prepare before this one did: creates the table that says what becomes of it. A set that was
--- begun has the options and the seed to go on with.
local function begin_set(connection, dialect, set, settings, wanted, c_last, seed)
  local names = names_of(dialect, set)
  local account = "tpcc_load" .. set
  local found = existing(connection, dialect, { account, unpack(names) })
  if found[account] and tpcc.read_state(connection, set).created == 1 then
    local state = tpcc.read_state(connection, set)
    for _, what in ipairs { "warehouses", "customers", "items" } do
      if state[what] ~= wanted[what] then
        fail("the tables of set %d were prepared for %d %s, not %d; use the same options, or remove them with `cleanup`", set,
          state[what], what, wanted[what])
      end
    end
    return
  end
  if found[account] then -- killed while it created them
    drop_tables(connection, dialect, set)
  else
    for _, name in ipairs(names) do
      if found[name] then
        fail("table %s already exists and was not created by this workload; remove it, or use another database", name)
      end
    end
  end
  tpcc.rows(connection, dialect:create_account(set, settings))
  -- The constant of the load is kept for the runs: clause 2.1.6.1.
  connection:query(dialect:enter(set, {
    { "warehouses", 0, wanted.warehouses }, { "customers", 0, wanted.customers }, { "items", 0, wanted.items },
    { "c_last", 0, c_last }, { "seed", 0, seed },
    { "generator", 0, load.fingerprint { seed = seed, c_last = c_last } },
    { "foreign_keys", 0, settings.foreign_keys and 1 or 0 },
  }))
end

--- Executes a text of the dialect, unless its other one finds that this was done.
local function execute_missing(connection, one)
  if not one.exists or tonumber((connection:query_row(one.exists))) == 0 then connection:query(one.text) end
end

--- What is left to do when the rows are there: three lists of functions, each to be finished before the next is begun.
local function finishing(connection, dialect, settings)
  local keys, foreign_keys, statistics = {}, {}, {}
  for set = 1, settings.sets do
    for _, one in ipairs(dialect:indexes(set, settings)) do
      keys[#keys + 1] = function() execute_missing(connection, one) end
    end
    local list = settings.foreign_keys and dialect:foreign_keys(set) or {}
    if #list > 0 then
      -- All of a set in one session: each locks two tables, and two sessions could wait for each other.
      foreign_keys[#foreign_keys + 1] = function()
        for _, one in ipairs(list) do execute_missing(connection, one) end
      end
    end
    for _, name in ipairs(dialect.analyze_table and names_of(dialect, set) or {}) do
      statistics[#statistics + 1] = function() connection:query(dialect:analyze_table(name)) end
    end
  end
  return { keys, foreign_keys, statistics }
end

--- Calls the functions of a list, each in one session, whichever comes first.
local function share(name, list)
  while true do
    local work = list[assay.claim(name) + 1]
    if not work then return end
    work()
  end
end

--- Creates, fills and indexes all table sets; all sessions work on all of them. Goes on with a load that was
--- interrupted. With --procedures these are made, last, also for tables that are complete.
function load.prepare()
  local settings = tpcc.settings()
  local connection, dialect = tpcc.connect(settings)
  if dialect.one_writer and sysbench.tid ~= 0 then return end
  local wanted = {
    warehouses = settings.warehouses == 0 and 1 or settings.warehouses, customers = settings.customers,
    items = settings.items,
  }
  local lock = sysbench.tid == 0 and require("prepare_lock")(sysbench.sql.driver())
  if lock then
    local drawn = {}
    for set = 1, settings.sets do drawn[set] = { uniform(0, 255), uniform(0, 2147483647) } end -- also for those that are there
    for set = 1, settings.sets do begin_set(connection, dialect, set, settings, wanted, unpack(drawn[set])) end
  end
  assay.barrier()

  local contexts, missing, total, complete = {}, 0, 0, 0
  local rows_missing, creating = 0, {}
  for set = 1, settings.sets do
    local context = tpcc.read_state(connection, set)
    context.to = dialect.loaders and dialect:loaders(connection, set, load.columns, value) or loaders(connection, set)
    context.now = os.date("!%Y-%m-%d %H:%M:%S")
    contexts[set] = context
    for _, definition in ipairs(context.created and {} or dialect.tables) do
      creating[#creating + 1] = function()
        for _, text in ipairs(dialect:create_table(definition, set, settings)) do connection:query(text) end
      end
    end
    complete = complete + (context.complete or 0)
    for n = 0, pieces(wanted.warehouses) - 1 do
      local kind, number = piece_of(n, wanted.warehouses)
      total = total + 1
      if not context.pieces[kind .. " " .. number] then
        missing, rows_missing = missing + 1, rows_missing + rows_of(kind, context)
      end
    end
  end
  if complete == settings.sets and not settings.procedures then
    fail("the TPC-C tables already exist and are complete; nothing was changed; remove them with `cleanup`")
  end
  assay.barrier() -- all have looked before any goes on
  if sysbench.tid == 0 then
    if missing < total and complete < settings.sets then
      assay.log(format("resuming an interrupted prepare: %d of %d pieces are complete", total - missing, total))
    end
    assay.expect(floor(rows_missing))
  end

  share("create", creating)
  assay.barrier()
  for set = 1, sysbench.tid == 0 and settings.sets or 0 do
    if not contexts[set].created then
      connection:query(dialect:enter(set, { { "created", 0, 1 } }))
    end
  end

  for _, text in ipairs(dialect:before_load(settings)) do connection:query(text) end
  local beside = dialect.keys_last and 0 or pieces_beside_indexes(wanted.warehouses)
  local first = pieces(wanted.warehouses) - beside
  for set = 1, settings.sets do
    while true do
      local n = assay.claim("pieces of " .. set)
      if n >= first then break end
      load_piece(connection, dialect, set, n, contexts[set])
    end
  end
  assay.barrier()
  if complete < settings.sets then
    local finish = finishing(connection, dialect, settings)
    for set = 1, settings.sets do
      for n = first, pieces(wanted.warehouses) - 1 do
        table.insert(finish[1], function() load_piece(connection, dialect, set, n, contexts[set]) end)
      end
    end
    for i, list in ipairs(finish) do
      share("finish " .. i, list)
      assay.barrier()
    end
  end
  if sysbench.tid == 0 then
    for set = 1, settings.sets do
      if contexts[set].complete ~= 1 then
        -- Begun by a program that makes other rows: then nobody can make all of them again.
        if contexts[set].generator ~= load.fingerprint(contexts[set]) then connection:query(dialect:forget(set, "generator")) end
        connection:query(dialect:enter(set, { { "complete", 0, 1 } }))
      end
      if settings.procedures then require("tpcc_procedures").make(connection, dialect, set) end
    end
    lock:disconnect()
  end
  connection:disconnect()
end

--- Drops the tables of all sets, and their procedures.
function load.cleanup()
  local settings = tpcc.settings()
  local connection, dialect = tpcc.connect(settings)
  if dialect.one_writer and sysbench.tid ~= 0 then return end
  for _, text in ipairs(dialect:before_drop()) do connection:query(text) end
  local sets, count, total = {}, 0, 0
  for set = 1, settings.sets do
    local names = names_of(dialect, set)
    local found = existing(connection, dialect, names)
    for _, name in ipairs(names) do count, total = count + (found[name] and 1 or 0), total + 1 end
    sets[set] = function() drop_tables(connection, dialect, set) end
  end
  assay.barrier() -- all have looked before any drops
  share("drop", sets)
  connection:disconnect()
  assay.barrier()
  if sysbench.tid ~= 0 then return end
  assay.log(count == 0 and "nothing to remove: there are no TPC-C tables" or format("removed %d of %d tables", count, total))
end

return load
