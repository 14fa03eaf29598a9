--- Shared by the parts of the TPC-C workload: options, connections, and the random values of the specification.
--
--
-- Clauses are those of the TPC-C standard specification, revision 5.11. The parts are `tpcc` (sessions, mix and audit),
-- a file for each transaction, `tpcc_customers` (how they choose customers), `tpcc_load` (prepare and cleanup),
-- `tpcc_check` (the consistency conditions), `tpcc_isolation` (the isolation tests) and `tpcc_procedures`
-- (--procedures); the latter four are loaded only when needed, so that other sessions do not carry them. What is said
-- to a product stands in its dialect: `tpcc_pgsql`, `tpcc_mysql`, `tpcc_sqlite`, with `tpcc_sql` for what they share,
-- and `tpcc_mongodb`, with `tpcc_documents`.

local tpcc = {}

--- What the transactions of this session share, initialized by `thread_init`. `settings`: the options; `con`: the
--- connection; `begin`, `begin_reading`, `commit`, `rollback`: statements; `defer`: executes a statement whose answer
--- nothing waits for, immediately or, with --batch-statements, with the next one; `sets`: per table set, its
--- statements, or calls, and the constant for last names; `by`: how transactions are executed, by statements or calls;
--- `warehouses`, `customers`, `items`, `names`: their numbers; `c_for_customers`, `c_for_items`: constants of NURand;
--- `has_vanishing_rows`: see the dialects; `level_of_writing`: the level of the other transactions, except Stock-Level;
--- `reports_state`: whether the server says that a transaction is open;
--- `level_of_reading`, `is_isolated`: the level of Order-Status, and whether 3.4.1 allows it; `enter_delivery`: writes
--- a line of the result file (2.7.2.2).
tpcc.session = {}

-- Options ------------------------------------------------------------------------------------------------------------

tpcc.options = {
  warehouses = { "Number of warehouses; 0: as prepared, or 1 for prepare", 0 },
  tables = { "Number of table sets, each with all warehouses", 1 },
  foreign_keys = { "Declare the foreign keys of clause 1.3 (after loading; on SQLite with the tables)", false },
  history_key = { "Add a primary key to the history table, which TPC-C does not have (needed by group replication)", false },
  mysql_engine = { "Storage engine on MySQL and MariaDB", "innodb" },
  mysql_table_options = { "Text to append to CREATE TABLE on MySQL and MariaDB", "" },
  pg_fillfactor = { "Fill factor of tables on PostgreSQL, 10 to 100; 0: server default", 0 },
  partitions = { "Number of hash partitions by warehouse, for every table except item; 0: none", 0 },
  customers = { "Customers per district, 20 to 3000; fewer than 3000 is not TPC-C", 3000 },
  items = { "Items, 100 to 100000; fewer than 100000 is not TPC-C", 100000 },
  mix = { "Number of New-Order, Payment, Order-Status, Delivery and Stock-Level cards in a deck (5.2.4.2)", "10,10,1,1,1" },
  isolation = { "Isolation level: read-committed, repeatable-read or serializable; without it, the server's default", "" },
  expect = {
    "Check the numbers that orders get in their districts (d_next_o_id) against this isolation level, such as "
      .. "serializable or strict-serializable", "", choices = assay.share("isolation_levels"),
  },
  batch_statements = {
    "Send statements whose answers are not needed together with the next one, on PostgreSQL, MySQL and MariaDB", false,
  },
  procedures = {
    "Execute each transaction as one stored procedure call, on PostgreSQL, MySQL and MariaDB; `prepare` creates them", false,
  },
  skip_trx = { "Execute commands without transactions, on MongoDB; the audit then fails (3.1, 3.4.1)", false },
  deferred_delivery = { "Deferred deliveries (2.7): up to 80 s from queue to commit, and a result file (--journal)", false },
  thorough = { "Make the loaded rows again from their seed, and compare them with those in the tables (check, run --check)", false },
  scale = { "Old name of warehouses", 0 },
  use_fk = { "Old name of foreign-keys: 0 or 1", "" },
  force_pk = { "Old name of history-key: 0 or 1", "" },
  trx_level = { "Old name of isolation: RC, RR or SER", "" },
  mysql_storage_engine = { "Old name of mysql-engine", "" },
  enable_purge = { "Deletes old orders in other scripts; only `no` is accepted here, because deleting violates 3.3.2", "no" },
}

local LEVELS = {
  rc = "READ COMMITTED", rr = "REPEATABLE READ", ser = "SERIALIZABLE", ["read-committed"] = "READ COMMITTED",
  ["repeatable-read"] = "REPEATABLE READ", serializable = "SERIALIZABLE",
}

local SWITCH = { ["0"] = false, off = false, no = false, ["false"] = false, ["1"] = true, on = true, yes = true, ["true"] = true }

--- Raises an error without a position.
function tpcc.fail(...) error(string.format(...), 0) end

local refuse = tpcc.fail

--- The value of a text option that may have been given by an older name.
local function either(name, older)
  local given = sysbench.opt[older]
  if given == "" then return sysbench.opt[name] end
  return given
end

local function switch(name, older)
  local given = sysbench.opt[older]
  if given == "" then return sysbench.opt[name] end
  local value = SWITCH[tostring(given):lower()]
  if value == nil then refuse("--%s %s: expected 0 or 1", older, given) end
  return value
end

local function within(name, low, high)
  local value = sysbench.opt[name]
  if value < low or value > high or value % 1 ~= 0 then
    refuse("--%s %s: expected a whole number from %d to %d", name, value, low, high)
  end
  return value
end

--- The options, checked; older names converted to the current ones. `warehouses` is 0 if it was not given.
function tpcc.settings()
  local opt = sysbench.opt
  local settings = {
    warehouses = within(opt.scale ~= 0 and "scale" or "warehouses", 0, 2000000),
    sets = within("tables", 1, 1000),
    foreign_keys = switch("foreign_keys", "use_fk"),
    history_key = switch("history_key", "force_pk"),
    engine = either("mysql_engine", "mysql_storage_engine"),
    table_options = opt.mysql_table_options,
    fillfactor = within("pg_fillfactor", 0, 100),
    partitions = within("partitions", 0, 1024),
    customers = within("customers", 20, 3000),
    items = within("items", 100, 100000),
    deferred_delivery = opt.deferred_delivery,
    batch_statements = opt.batch_statements,
    procedures = opt.procedures,
    skip_trx = opt.skip_trx,
  }
  if settings.procedures and settings.batch_statements then
    refuse("--procedures and --batch-statements cannot be used together: a call is already a single statement")
  end
  if settings.customers % 20 ~= 0 then refuse("--customers %d: expected a multiple of 20", settings.customers) end
  if settings.items % 100 ~= 0 then refuse("--items %d: expected a multiple of 100", settings.items) end
  if settings.fillfactor > 0 and settings.fillfactor < 10 then
    refuse("--pg_fillfactor %d: expected 0, or 10 to 100", settings.fillfactor)
  end
  if SWITCH[tostring(opt.enable_purge):lower()] ~= false then
    refuse("--enable_purge is not supported: deleting orders violates the consistency conditions of clause 3.3.2")
  end
  if opt.expect ~= "" and settings.procedures then
    refuse("--expect: the numbers of orders are read inside the procedures; leave out --procedures")
  end
  local level = either("isolation", "trx_level")
  if level ~= "" then
    settings.isolation = LEVELS[level:lower()]
      or refuse("--isolation %s: expected read-committed, repeatable-read or serializable", level)
  end
  return settings
end

-- Dialects -----------------------------------------------------------------------------------------------------------

--- What the workload says to this product: the module `tpcc_` and the name of the driver. Texts, and what the product
--- can do.
function tpcc.dialect()
  local kind = sysbench.sql.driver():name()
  local found, dialect = pcall(assay.share, "tpcc_" .. kind)
  if not found then
    local missing = tostring(dialect):match("module '[^']+' not found")
    refuse("the TPC-C workload has no dialect for %s: %s", kind, missing or dialect)
  end
  return dialect
end

local PARTS = { "customers", "new_order", "payment", "order_status", "delivery", "stock_level" }

--- Name → text and the kinds of its parameters: the statements of the transactions. Those that a script has not
--- replaced are the dialect's, copied when they are first needed.
tpcc.statements = setmetatable({}, { __index = function(_, name) return tpcc.all_statements()[name] end })

function tpcc.all_statements()
  local statements = tpcc.statements
  if getmetatable(statements) then
    setmetatable(statements, nil)
    local dialect = tpcc.dialect()
    for _, part in ipairs(PARTS) do
      for name, definition in pairs(dialect.statements[part]) do
        statements[name] = statements[name] or { definition[1], definition[2], definition[3] }
      end
    end
  end
  return statements
end

--- Connects as configured. Returns the connection and the dialect.
function tpcc.connect(settings)
  local dialect = tpcc.dialect()
  local refusal = dialect:refusal(settings)
  if settings.skip_trx and not dialect.documents then
    refusal = "--skip-trx is for MongoDB: without transactions, statements of SQL do not keep the tables consistent"
  end
  if refusal then refuse("%s", refusal) end
  local connection = sysbench.sql.driver():connect()
  for _, text in ipairs(dialect:at_connect(settings)) do connection:query(text) end
  return connection, dialect
end

--- The rows of a statement, or of a function of the connection that a dialect has where one statement cannot do it.
function tpcc.rows(connection, question)
  if type(question) == "function" then return question(connection) end
  return connection:query(question)
end

--- The same for the columns of the only row.
function tpcc.row(connection, question)
  if type(question) == "function" then return question(connection) end
  return connection:query_row(question)
end

--- The isolation level of a transaction started by this statement, as reported by the server, and whether it reports
--- that a transaction is open.
function tpcc.level(connection, dialect, begin)
  if not dialect.level then return "SERIALIZABLE", true end -- without `level`, the product has only this one
  connection:query(begin)
  local is_open = connection:in_transaction()
  local row = connection:query(dialect.level):fetch_row()
  connection:query(dialect.commit)
  return row[#row]:upper():gsub("-", " "), is_open
end

-- Tables -------------------------------------------------------------------------------------------------------------

tpcc.DISTRICTS = 10

--- The beginning of a result of `check`. `rule`: a list that starts with its clause and its sentence.
function tpcc.label(set, rule)
  local label = ("clause %s: %s: "):format(rule[1], rule[2])
  return tpcc.settings().sets > 1 and ("set %d, "):format(set) .. label or label
end

--- Prints a condition that holds, unless `--quiet`.
function tpcc.tell_held(text)
  if not sysbench.opt.quiet then assay.log(text) end
end

--- Prints whether a condition holds: `wrong` lists what is not as it should be, of which `most` are shown. Returns it.
function tpcc.tell_condition(set, rule, wrong, most)
  local label = tpcc.label(set, rule)
  if #wrong == 0 then
    tpcc.tell_held(label .. "holds")
  else
    assay.log(label .. "VIOLATED:\n" .. table.concat(wrong, "\n", 1, math.min(#wrong, most)))
  end
  return #wrong == 0
end

--- What was prepared, according to the tables: name → number; `pieces`, a set of "kind number"; `runs`, the numbers of
--- warehouses of past runs: number → true; `seeds`, those of past runs, likewise. Raises the server's error if the
--- table does not exist.
function tpcc.read_state(connection, set)
  local state, pieces, runs, seeds = {}, {}, {}, {}
  local result = tpcc.rows(connection, tpcc.dialect():account(set))
  for _ = 1, result.nrows do
    local what, n, v = unpack(result:fetch_row())
    if what:sub(1, 6) == "piece " then
      pieces[what .. " " .. n] = true
    elseif what == "run" then
      runs[tonumber(n)] = true
    elseif what == "run seed" then
      seeds[tonumber(n)] = true
    else
      state[what] = tonumber(v)
    end
  end
  state.pieces, state.runs, state.seeds = pieces, runs, seeds
  return state
end

-- Random values ------------------------------------------------------------------------------------------------------

local uniform = sysbench.rand.uniform
local bor, floor = bit.bor, math.floor

--- Clause 2.1.6: non-uniform random within [low .. high]. `c` is a constant of the run, or of the load for last names.
function nurand(a, c, low, high)
  return (bor(uniform(0, a), uniform(low, high)) + c) % (high - low + 1) + low
end

-- How often `bor` of 0 to a and low to high, modulo how many values there are, has each value: (a + 1) × (high − low +
-- 1) pairs in all; a + 1 is a power of two. Below a, a number is a set of bits: those of one are joined with any
-- others.
local function pairs_of(a, low, high)
  local range, size, of = high - low + 1, a + 1, {}
  for r = 0, range - 1 do of[r] = 0 end
  -- A set of n bits has 2ⁿ subsets, and is joined of two sets in 3ⁿ ways.
  local subsets, joins = { [0] = 1 }, { [0] = 1 }
  for x = 1, a do
    local half, has_bit = floor(x / 2), x % 2 == 1
    subsets[x], joins[x] = subsets[half] * (has_bit and 2 or 1), joins[half] * (has_bit and 3 or 1)
  end
  for block = floor(low / size), floor(high / size) do
    local sets = joins -- pairs that make x of any y of the block
    if block * size < low or block * size + a > high then
      sets = {}
      for x = 0, a do
        local y = block * size + x
        sets[x] = y >= low and y <= high and subsets[x] or 0 -- pairs that make x of y
      end
      local bit = 1
      while bit < size do -- sums over all subsets
        for x = 0, a do
          if floor(x / bit) % 2 == 1 then sets[x] = sets[x] + sets[x - bit] end
        end
        bit = bit * 2
      end
    end
    for x = 0, a do
      local r = (block * size + x) % range
      of[r] = of[r] + sets[x]
    end
  end
  return of, range
end

--- Which values NURand favors: those more likely than with a uniform generator, in the upper half, and in every second
--- run of a + 1, so that a larger `a` and a smaller range show as well. For values minus low and the constant, modulo
--- their number: a text with a 1 for each favored one. And the share of all draws that these should have; the share of
--- values with the highest bit (`has_top_bit`); how often two draws are the same; and how often each value is drawn, by
--- value minus low and the constant, of how many.
function tpcc.favored(a, low, high)
  local of, range = pairs_of(a, low, high)
  local flags, favored, is_short = {}, 0, range < 2 * (a + 1)
  local half, with_top_bit, alike, all = (a + 1) / 2, 0, 0, (a + 1) * range
  for r = 0, range - 1 do
    local is_favored = of[r] > a + 1 and (is_short or floor(r / (a + 1)) % 2 == 1 and r >= range / 2)
    flags[r + 1] = is_favored and "1" or "0"
    if is_favored then favored = favored + of[r] end
    if floor(r / half) % 2 == 1 then with_top_bit = with_top_bit + of[r] end
    alike = alike + (of[r] / all) ^ 2
  end
  return table.concat(flags), favored / all, with_top_bit / all, alike, of, all
end

--- Whether a value of NURand, less the constant and `low`, has the highest of the bits that are joined: three of four
--- do, or one of two if A is smaller.
function tpcc.has_top_bit(value, a, c, low, high)
  return floor((value - low - c) % (high - low + 1) / ((a + 1) / 2)) % 2 == 1
end

--- The home warehouse of a user, and the district (2.4.1.1, 2.8.1.1): user after user gets a warehouse.
function tpcc.home_of(number)
  local warehouses = tpcc.session.warehouses
  return number % warehouses + 1, floor(number / warehouses) % tpcc.DISTRICTS + 1
end

-- A name, and the most that one transaction may add: what `totals` of the dialect reads, in its order.
tpcc.TOTALS = {
  { "orders", 1 }, { "orders_weighted", 97 }, { "orders_delivered", 10 }, { "orders_delivered_weighted", 970 },
  { "cents_paid", 500000 }, { "cents_paid_weighted", 97 * 500000 }, { "cents_paid_to_warehouses", 500000 },
}

--- Whether tables of this size are small enough to read all of history before and after a run.
function tpcc.is_small(warehouses, sets) return warehouses * sets <= 10 end

--- The weight of a district in them.
function tpcc.weight(w, d) return (w * 10 + d) % 97 + 1 end

--- Of the other warehouses, starting with the next one, is `w` in the second half? And the share of that half.
function tpcc.is_far(home, w)
  local warehouses = tpcc.session.warehouses
  return (w - home) % warehouses > floor((warehouses - 1) / 2)
end

function tpcc.far_share()
  local others = tpcc.session.warehouses - 1
  return (others - floor(others / 2)) / others
end

tpcc.SYLLABLES = { [0] = "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING" }

--- Clause 4.3.2.3: the last name of number 0 to 999.
function tpcc.last_name(n)
  local syllables = tpcc.SYLLABLES
  return syllables[floor(n / 100)] .. syllables[floor(n / 10) % 10] .. syllables[n % 10]
end

--- How many last names there are: a third of the customers, so that every name has customers, and some have several.
function tpcc.last_names(customers) return floor(customers / 3) end

--- How many orders of a district are loaded as delivered: 2,100 of 3,000 (4.3.3.1). Always whole: customers come in
--- twenties.
function tpcc.delivered(customers) return customers * 7 / 10 end

--- A number from 0 to n − 1 that all sessions of a run agree on, whatever they draw themselves.
function tpcc.constant_of_run(salt, n)
  local x = (sysbench.opt.rand_seed % 2147483629 + salt * 7919) % 2147483647 + 1
  for _ = 1, 8 do x = x * 16807 % 2147483647 end
  return floor((x - 1) / 2147483646 * n)
end

--- Clause 2.1.6.1: the constant for last names, given that of the load: their difference is 65 to 119, not 96, not 112.
function tpcc.constant_for_last_names(load)
  local allowed = {}
  for c = 0, 255 do
    local delta = math.abs(c - load)
    if delta >= 65 and delta <= 119 and delta ~= 96 and delta ~= 112 then allowed[#allowed + 1] = c end
  end
  return allowed[tpcc.constant_of_run(255, #allowed) + 1]
end

--- True in this many of 100 cases.
function tpcc.chance(percent) return uniform(1, 100) <= percent end

--- Any warehouse but this one; this one if there is no other.
function tpcc.another_warehouse(w)
  local warehouses = tpcc.session.warehouses
  if warehouses == 1 then return w end
  local other = uniform(1, warehouses - 1)
  if other >= w then other = other + 1 end
  return other
end

--- The numbers 1 to n in random order.
function tpcc.permutation(n)
  local list = {}
  for i = 1, n do list[i] = i end
  for i = n, 2, -1 do
    local j = uniform(1, i)
    list[i], list[j] = list[j], list[i]
  end
  return list
end

return tpcc
