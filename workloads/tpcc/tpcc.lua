--- TPC-C 5.11: orders, payments and deliveries of a wholesaler, audited clause by clause while they run.
--
--
-- A session, its deck of cards, and the audit. Each transaction has a file of its own, with its statements, inputs and
-- counts: `tpcc_new_order`, `tpcc_payment`, `tpcc_order_status`, `tpcc_delivery`, `tpcc_stock_level`. `tpcc_load`
-- creates the tables, `tpcc_check` verifies them, `tpcc_isolation` tests the isolation of transactions,
-- `tpcc_procedures` has the transactions as stored procedures, `tpcc_documents` on documents. What is said to a product
-- stands in its dialect, such as `tpcc_pgsql`. docs/tpcc.md lists clause by clause what is followed and what is not.
--
-- Functions that are not `local`, here and in those files, may be replaced by a script that requires this one, and so
-- may the statements (that script's `prepare` creates the procedures from them).
local tpcc = require("tpcc_common")
local watch = require("tpcc_watch")
local draws = assay.share("tpcc_draws")

sysbench.cmdline.options = tpcc.options
-- Clause 2.1.6 determines which rows are accessed.
sysbench.cmdline.own_rows = true

-- Parts that only commands need are loaded by those commands.
local open_session, parts -- what the inspection and the isolation tests need of the transactions
local PARALLEL = sysbench.cmdline.PARALLEL_COMMAND
sysbench.cmdline.commands = {
  prepare = { function() return require("tpcc_load").prepare() end, PARALLEL },
  check = { function() return require("tpcc_check").check(open_session) end, PARALLEL },
  isolation = {
    function()
      if sysbench.tid > 1 then return end
      if sysbench.opt.threads < 2 then error("the isolation tests need two sessions: give --sessions 2", 0) end
      return require("tpcc_isolation").run(parts())
    end, PARALLEL,
  },
  cleanup = { function() return require("tpcc_load").cleanup() end, PARALLEL },
}

local uniform, count = sysbench.rand.uniform, assay.count
local session, fail = tpcc.session, tpcc.fail

-- The transactions, in the order of the cards of a mix.
local TRANSACTIONS = {
  require("tpcc_new_order"), require("tpcc_payment"), require("tpcc_order_status"), require("tpcc_delivery"),
  require("tpcc_stock_level"),
}

-- Statements ---------------------------------------------------------------------------------------------------------

--- Prepares all statements for a table set: name → statement.
local function prepare_set(connection, dialect, set)
  local prepared = { stock = {} }
  for name, definition in pairs(tpcc.all_statements()) do
    prepared[name] = connection:prepare(dialect:statement(definition, set), definition[2]):lean(definition[3])
  end
  for d = 1, tpcc.DISTRICTS do prepared.stock[d] = prepared["stock_" .. d] end
  return watch.set(prepared)
end

-- The session
-- ----------------------------------------------------------------------------------------------------------

local by_statements = {}
for _, transaction in ipairs(TRANSACTIONS) do by_statements[transaction.name] = transaction.by_statements end

--- Whether the procedures exist and were created from the statements that would be executed without them.
local function check_procedures(dialect, set, state)
  local settings = session.settings
  local wanted = assay.constant("tpcc_procedures of " .. sysbench.sql.driver():name(), function()
    return require("tpcc_procedures").fingerprint(dialect)
  end)
  if state.procedures == wanted then return end
  local command = ("assay prepare %s --procedures --warehouses %d"):format(sysbench.cmdline.script_path, state.warehouses)
  if settings.sets > 1 then command = ("%s --tables %d"):format(command, settings.sets) end
  if state.customers ~= 3000 or state.items ~= 100000 then
    command = ("%s --customers %d --items %d"):format(command, state.customers, state.items)
  end
  fail("--procedures: the procedures of set %d %s; create them with `%s --db …`", set,
    state.procedures and "belong to another version or to other statements" or "do not exist", command)
end

--- What there is to run on, according to the tables themselves.
local function read_states(dialect)
  local settings, warehouses, customers, items = session.settings, nil, nil, nil
  for set = 1, settings.sets do
    local state = tpcc.read_state(session.con, set)
    if state.complete ~= 1 then
      fail("the tables of set %d are incomplete because their load was interrupted; `prepare` resumes it", set)
    end
    if set > 1 and state.warehouses ~= warehouses then
      fail("set %d has %d warehouses but set 1 has %d: they were prepared separately", set, state.warehouses, warehouses)
    end
    warehouses, customers, items = state.warehouses, state.customers, state.items
    if settings.procedures then check_procedures(dialect, set, state) end
    session.sets[set] = { c_last = tpcc.constant_for_last_names(state.c_last), c_last_of_load = state.c_last, runs = state.runs, seeds = state.seeds }
  end
  if settings.warehouses > warehouses then
    fail("--warehouses %d: the tables have %d", settings.warehouses, warehouses)
  end
  session.warehouses = settings.warehouses > 0 and settings.warehouses or warehouses
  session.warehouses_of_tables = warehouses
  session.customers, session.items, session.names = customers, items, tpcc.last_names(customers)
  session.is_scaled_down = customers < 3000 or items < 100000
  session.is_small = tpcc.is_small(warehouses, settings.sets)
end

--- The actual isolation. The transactions that write lock what they depend on; Order-Status reads without locks, and
--- sees one state of the database (level 3 of clause 3.4.1) only if a transaction has one snapshot.
local function read_levels(dialect, begin_text, begin_reading_text)
  local settings, con = session.settings, session.con
  local level, reports_state = tpcc.level(con, dialect, begin_text)
  local reading
  if settings.isolation and level ~= settings.isolation then
    fail("--isolation: requested %s, but the server uses %s", settings.isolation, level)
  end
  if begin_reading_text == begin_text then
    reading = level
  elseif settings.procedures then
    local _, _, _, there = session.by.order_status(session.sets[1], { c_w = 1, c_d = 1, c = 1 })
    reading = there:upper()
  else
    reading = (tpcc.level(con, dialect, begin_reading_text))
  end
  session.level_of_writing, session.level_of_reading, session.reports_state = level, reading, reports_state
  session.is_isolated = level ~= "READ UNCOMMITTED" and (reading == "REPEATABLE READ" or reading == "SERIALIZABLE")
end

local this_session -- for the draws: its number, and what they keep of it
local mix -- the kinds of all cards of a deck
local has_terminals

--- 5.2.4.2: the number of cards of each kind.
local function read_mix()
  local text, kind = sysbench.opt.mix, 0
  mix = {}
  for number in (text .. ","):gmatch("%s*(%d*)%s*,") do
    kind = kind + 1
    number = tonumber(number)
    if not number or kind > #TRANSACTIONS then kind = 0 break end
    for _ = 1, number do mix[#mix + 1] = kind end
  end
  if kind ~= #TRANSACTIONS or #mix == 0 or #mix > 10000 then
    fail("--mix %s: expected five card counts, such as 10,10,1,1,1", text)
  end
end

-- 5.2.5.7: keying and mean think times in seconds. The transactions have their own.
local TIMES = {
  new_order = { 18, 12 }, payment = { 3, 12 }, order_status = { 2, 10 }, delivery = { 2, 5 }, stock_level = { 2, 5 },
}

--- Rules about what transactions executed, and about what users key in and think.
local function declare_rules_of_work(rule)
  if session.reports_state then
    rule("3.1", "not in one database transaction", { part = "transactions_in_parts", whole = "cards", high = 0 })
  end
  if not session.settings.procedures then
    rule("2.3", "transactions with wrong values", { part = "transactions_with_other_values", whole = "cards", high = 0 })
  end
  rule("5.4.1", "rates that count something else", { part = "rates_of_others", whole = "cards", high = 0 })
  rule("2.3", "retries with other values", { part = "retries_of_others", whole = "cards", high = 0 })
  rule("2.3", "transactions with too few statements", { part = "transactions_cut_short", whole = "cards", high = 0 })
  if (sysbench.opt.terminals or 0) > 0 then
    rule("5.2.5.2", "pauses shorter than the keying time", { part = "pauses_too_short", whole = "pauses", high = 0 })
    rule("5.2.5.4", "think times over ten means", { part = "pauses_too_long", whole = "pauses", high = 0 })
    for _, share in ipairs { { "half", 0.45, 0.55 }, { "quarter", 0.22, 0.28 }, { "tenth", 0.08, 0.12 } } do
      rule("5.2.5.4", "think times in the longest " .. share[1],
        { part = "pauses_in_longest_" .. share[1], whole = "pauses", low = share[2], high = share[3] })
    end
  end
end

-- The rules of clause 9.2.2.5, and others about how often something happens, or that it never does.
local function declare_audit()
  local function rule(clause, name, what)
    what.clause, what.name = clause, name
    assay.audit(what)
  end
  for _, share in ipairs { { "payment", 0.43 }, { "order_status", 0.04 }, { "delivery", 0.04 }, { "stock_level", 0.04 } } do
    rule("5.2.3", share[1] .. " in the mix", { mix = share[1], low = share[2] })
  end
  -- Two separately shuffled decks have the same kind of card at a position as often as two cards drawn at random.
  local alike, cards = 0, {}
  for _, kind in ipairs(mix) do cards[kind] = (cards[kind] or 0) + 1 end
  for _, number in pairs(cards) do alike = alike + (number / #mix) ^ 2 end
  rule("5.2.4.2", "same card as in the previous deck", { part = "cards_as_before", whole = "cards_after_a_deck", low = 0.9 * alike, high = 1.1 * alike })
  rule("2.4.1.1", "transactions outside home warehouse", { part = "cards_away", whole = "cards", high = 0 })
  for _, transaction in ipairs(TRANSACTIONS) do transaction.declare_rules(rule) end
  require("tpcc_customers").declare_rules(rule)
  declare_rules_of_work(rule)
  require("tpcc_totals").declare_rules(rule)
  for kind, of in ipairs(draws.KINDS) do
    if kind < 7 or (sysbench.opt.terminals or 0) > 0 then
      rule(of[1], ("failed tests of %s"):format(of[2]),
        { part_total = "draws_unlike_" .. kind, whole_total = "draws_judged_" .. kind, high = 0 })
    end
  end
  if session.is_scaled_down then
    rule("4.3.3", "new-orders on full-size tables", { part = "full_size", whole = "new_order", low = 1 })
  end
  -- A deferred delivery is due when it is queued.
  local is_deferred = session.settings.deferred_delivery
  for _, limit in ipairs {
    { "new_order", 5 }, { "payment", 5 }, { "order_status", 5 }, { "delivery", is_deferred and 80 or 5 }, { "stock_level", 20 },
  } do
    local name, seconds = limit[1], limit[2]
    rule(seconds == 80 and "2.7.2.2" or "5.2.5.3", "p90 of " .. name, { percentile = 90, of = name, high = seconds })
  end
  -- 4.2.1: ten terminals per warehouse, whose keying and think times allow 12.86 New-Orders per minute and warehouse.
  -- Without these times there is no tpmC.
  if (sysbench.opt.terminals or 0) > 0 and (sysbench.opt.think_scale or 1) == 1 then
    watch.rate {
      name = "tpmC", of = "new_order", per = "minute", rolled_back = true,
      nominal = 12.86 * session.warehouses * session.settings.sets,
    }
    rule("4.1.3", "tpmC up to 12.86 per warehouse", { rate = "tpmC", high = 12.86 * session.warehouses * session.settings.sets })
  end
  watch.rate { name = "NOPM", of = "new_order", per = "minute" } -- as others count them: committed only
  watch.rate { name = "TPM", per = "minute" }
end

--- A report must not name what was not done.
local function check_batching(dialect)
  if dialect.one_writer then
    if assay.claim("told of batching") == 0 then
      assay.log("--batch-statements has no effect on SQLite, which runs in this process and answers immediately")
    end
    return
  end
  local waits = session.begin:defer()
  session.commit:execute()
  if not waits then fail("--batch-statements needs prepared statements: leave out --prepared off") end
end

local documents -- the module with the transactions, where tables are documents

local function open_documents(con, dialect)
  documents = require(dialect.documents)
  documents.open(con, dialect)
  session.by = documents.by
  for set = 1, session.settings.sets do
    for name, statement in pairs(documents.prepare_set(con, dialect, set)) do session.sets[set][name] = statement end
  end
  return dialect
end

local function send_now(statement, a, b, c, d, e, f, g, h, i) return statement:execute(a, b, c, d, e, f, g, h, i) end
local function send_later(statement, a, b, c, d, e, f, g, h, i) return statement:defer(a, b, c, d, e, f, g, h, i) end

--- Makes the session ready to execute transactions. Returns the dialect.
function open_session()
  local settings = tpcc.settings()
  local con, dialect = tpcc.connect(settings)
  session.settings, session.con, session.sets, session.by = settings, con, {}, by_statements
  session.has_vanishing_rows = dialect.vanishing_rows
  session.c_for_customers, session.c_for_items = tpcc.constant_of_run(1023, 1024), tpcc.constant_of_run(8191, 8192)
  read_states(dialect)
  if dialect.documents then return open_documents(con, dialect) end
  local begin_reading_text = settings.isolation and dialect.begin or dialect.begin_reading
  local prepare = prepare_set
  if settings.procedures then
    local procedures = require("tpcc_procedures")
    prepare, session.by = procedures.prepare_set, procedures.transactions(begin_reading_text ~= dialect.begin)
  end
  for set = 1, settings.sets do
    for name, statement in pairs(prepare(con, dialect, set)) do session.sets[set][name] = statement end
  end
  session.begin, session.begin_reading = con:prepare(dialect.begin, ""):lean(), con:prepare(begin_reading_text, ""):lean()
  read_levels(dialect, dialect.begin, begin_reading_text)
  session.commit, session.rollback = con:prepare(dialect.commit, ""):lean(), con:prepare(dialect.rollback, ""):lean()
  session.defer = settings.batch_statements and send_later or send_now
  if settings.batch_statements then check_batching(dialect) end
  return dialect
end

--- Records in tpcc_load the number of warehouses of a run, which `check` needs. Several sessions do it, so that each
--- server has it if there are several; an existing row is not an error.
local function note_run(dialect)
  for set = 1, sysbench.tid < 16 and session.settings.sets or 0 do
    if not session.sets[set].runs[session.warehouses] then
      pcall(session.con.query, session.con, dialect:note(set, "run", session.warehouses, 1))
    end
  end
  -- A seed draws the same again: what two runs of one seed leave is not random.
  if assay.claim("tpcc seed is noted") > 0 then return end
  local seed = sysbench.opt.rand_seed % 2147483647
  for set = 1, session.settings.sets do
    local what = session.sets[set].seeds[seed] and "run again" or "run seed"
    pcall(session.con.query, session.con, dialect:note(set, what, seed, 1))
  end
end

--- Warns about numbers of terminals and times that do not conform to TPC-C, before a run that may take long.
local function point_out()
  local terminals = sysbench.opt.terminals or 0
  if terminals == 0 or assay.claim("pointed out") > 0 then return end
  local warehouses = session.warehouses * session.settings.sets
  if terminals > 10 * warehouses then
    assay.log(("warning: %d terminals on %d warehouses: TPC-C has ten per warehouse (4.2.1), so an efficiency above 100 %% is meaningless")
      :format(terminals, warehouses))
  end
  local new_order = TRANSACTIONS[1]
  local cycle, time = (new_order.keying + new_order.thinking) * sysbench.opt.think_scale, sysbench.opt.time
  if time > 0 and time + sysbench.opt.warmup < cycle then
    assay.log(("warning: %g s, including warm-up, is shorter than the %g s of keying and think time for one New-Order (5.2.5.7):"
      .. " few transactions will be due; use a longer --time, or a smaller --think-scale for experiments")
      :format(time + sysbench.opt.warmup, cycle))
  end
end

--- The numbers that orders get are checked: each district has a counter of them.
local function keep_history()
  local level = sysbench.opt.expect
  if level == "" then return end
  session.history = assay.history { level = level }
  function session.counter(set, w, d) return ((set - 1) * session.warehouses + w - 1) * tpcc.DISTRICTS + d end
end

function thread_init()
  local dialect = open_session()
  read_mix()
  has_terminals = (sysbench.opt.terminals or 0) > 0
  if session.settings.deferred_delivery then
    session.enter_delivery = assay.journal(require("tpcc_delivery").columns())
  elseif sysbench.opt.journal then
    fail("--journal: only deferred deliveries have a result file (2.7.2); add --deferred-delivery")
  end
  declare_audit()
  keep_history()
  for _, what in ipairs { "warehouses", "customers", "items" } do assay.found(what, session[what]) end
  if dialect.schema then assay.found("schema", dialect.schema) end
  note_run(dialect)
  point_out()
  this_session = { number = sysbench.tid }
  draws.open()
end

--- What the tests of the draws must know: sizes, constants, and how often NURand draws each value.
local function context_of_draws()
  local function weights(name, of, a, low, high)
    local known = assay.constant(("tpcc %s favored of %d"):format(name, of), function() return { tpcc.favored(a, low, high) } end)
    return known[5], known[6]
  end
  local context = {
    warehouses = session.warehouses, customers = session.customers, sets = session.settings.sets, mix = {},
    c_for_customers = session.c_for_customers, c_for_items = session.c_for_items, c_last = {},
  }
  for set = 1, context.sets do context.c_last[set] = session.sets[set].c_last end
  -- As it was asked for, not as it was dealt.
  local card = 0
  for number in sysbench.opt.mix:gmatch("%d+") do
    card = card + 1
    for _ = 1, tonumber(number) do table.insert(context.mix, card) end
  end
  context.customer_weights, context.customer_all = weights("customers", session.customers, 1023, 1, session.customers)
  context.name_weights, context.name_all = weights("names", session.names, 255, 0, session.names - 1)
  context.item_weights, context.item_all = weights("items", session.items, 8191, 1, session.items)
  return context
end

function thread_done()
  if this_session then
    require("tpcc_totals").tell()
    if draws.close() then draws.judge(context_of_draws()) end
  end
  session.con:disconnect()
end

-- Terminals and the mix
-- --------------------------------------------------------------------------------------------------

--- The kind of a user's next transaction: each user has a deck, shuffled again when its last card was drawn.
local function draw_card(of)
  local deck, left = of.deck, of.left
  if left == 0 then left = #deck end
  -- Fisher and Yates, a card at a time.
  local at = uniform(1, left)
  local kind = deck[at]
  deck[at], deck[left] = deck[left], kind
  of.left = left - 1
  if this_session then
    of.card = of.card + 1
    draws.note_card(kind, (of.card - 1) % #mix, this_session, of)
  end
  return kind
end

--- The user whose transaction runs. Terminal after terminal gets a warehouse (2.4.1.1), and a district of it (2.8.1.1).
local function this_user()
  local one = assay.terminal()
  if not one.deck then
    one.home, one.district = tpcc.home_of(one.number)
    one.deck, one.left, one.dealt, one.turn, one.card = {}, 0, {}, 0, 0
    for i = 1, #mix do one.deck[i] = mix[i] end
    one.next = draw_card(one)
  end
  return one
end

--- 5.2.5.4: exponentially distributed, at most ten times the mean.
local function time_to_think(kind)
  local mean = TRANSACTIONS[kind].thinking
  return math.min(-math.log(1 - sysbench.rand.uniform_double()) * mean, 10 * mean)
end

function terminal_init()
  local one = this_user()
  assay.think(time_to_think(1) + TRANSACTIONS[one.next].keying) -- as if each had just ended a New-Order
  if this_session then draws.note_thinking(assay.think() - TIMES[TRANSACTIONS[one.next].name][1], 1, one.next, this_session, one) end
end

-- The running transaction: what was drawn before it starts, so that a retry does the same; its user; how it is
-- executed.
local input = { item = {}, supply = {}, quantity = {}, number = {} }
local user, kind, execute

--- Remembers the card of the running transaction, at its position in the deck, and the previous one there.
local function enter_card(of)
  local place = of.turn % #mix + 1
  of.turn = of.turn + 1
  of.before, of.dealt[place] = of.dealt[place], kind
end

--- Counts what every transaction must observe.
local function count_card(home, of)
  count("cards")
  if home ~= of.number % session.warehouses + 1 then count("cards_away") end
  if of.before then
    count("cards_after_a_deck")
    if of.before == kind then count("cards_as_before") end
  end
end

for _, transaction in ipairs(TRANSACTIONS) do transaction.counted = assay.transaction(transaction.name, transaction.run) end

--- What the user does next; the time until the next transaction is requested.
local function choose()
  user = this_user()
  kind = user.next
  enter_card(user)
  user.next = draw_card(user)
  if (sysbench.opt.terminals or 0) > 0 then assay.think(time_to_think(kind) + TRANSACTIONS[user.next].keying) end
  input.set = session.settings.sets == 1 and 1 or uniform(1, session.settings.sets)
  local transaction = TRANSACTIONS[kind]
  transaction.draw(input, user.home)
  execute = transaction.counted
end

-- 5.2.5.4: an exponentially distributed number of mean 1 is above these in a half, a quarter and a tenth of all cases.
local HALF, QUARTER, TENTH = math.log(2), math.log(4), math.log(10)

--- Counts what was requested of the pause that follows: what the user keys in next, after thinking about this one.
local function count_pause(of)
  local keying, mean = TIMES[TRANSACTIONS[of.next].name][1], TIMES[TRANSACTIONS[kind].name][2]
  local seconds = assay.think() - keying
  local thinking = seconds / mean
  draws.note_thinking(seconds, kind, of.next, this_session, of)
  count("pauses")
  if thinking < -1e-9 then count("pauses_too_short") end
  if thinking > 10 + 1e-9 then count("pauses_too_long") end
  if thinking > HALF then count("pauses_in_longest_half") end
  if thinking > QUARTER then count("pauses_in_longest_quarter") end
  if thinking > TENTH then count("pauses_in_longest_tenth") end
end

local function least_statements(transaction, of)
  if not documents then return transaction.least_statements(of) end
  return documents.least_statements(transaction.name, of, require("tpcc_delivery").delivered)
end

--- Counts what the transaction executed, as the engine saw it.
local function count_statements()
  local statements, outside, begun = assay.executed()
  local is_call = session.settings.procedures
  if is_call and not (outside == 1 and begun == 0) or not is_call and not (outside == 0 and begun == 1) then
    count("transactions_in_parts")
  end
  if statements < (is_call and 1 or least_statements(TRANSACTIONS[kind], input)) then count("transactions_cut_short") end
end

local turn -- of the user when the input was drawn

function event(_, attempt)
  if attempt == 0 then choose() end
  turn = attempt == 0 and user.turn or turn
  local home = user.home
  watch.begin()
  execute(input, home, user.district, user.number)
  count_card(home, user)
  draws.note(kind, input, this_session, user)
  if user.turn ~= turn then count("retries_of_others") end
  if not watch.rates_are_right() then count("rates_of_others") end
  count_statements()
  if not session.settings.procedures and not watch.is_as_entered(TRANSACTIONS[kind].name, input, home, user.district) then
    count("transactions_with_other_values")
  end
  if has_terminals then count_pause(user) end
end

--- What the tables contain before the first session connects. Errors are reported by the sessions; rules about the
--- tables then have no data.
function init() pcall(require("tpcc_totals").read, false) end

--- The same after the last one has ended: its connection may still be closing.
function done()
  for _ = 1, 20 do
    if pcall(require("tpcc_totals").read, true) then return end
    assay.sleep(0.1)
  end
end

--- For `tpcc_isolation`: a session with its transactions, their input, and the means to stop inside one.
function parts()
  if tpcc.dialect().documents then fail("the isolation tests are for SQL: they pause between its statements") end
  if sysbench.opt.deferred_delivery then fail("--deferred-delivery: the isolation tests do not write a result file") end
  if sysbench.opt.procedures then
    fail("--procedures: the isolation tests pause inside transactions, which is not possible in a procedure")
  end
  sysbench.opt.batch_statements = false -- who stops has sent what came before
  open_session()
  read_mix()
  declare_audit()
  local real, transactions = session.commit, {}
  for _, transaction in ipairs(TRANSACTIONS) do
    transactions[transaction.name] = function(home) transaction.run(input, home, 1, 0) end
  end
  return {
    con = session.con, input = input, statements = session.sets[1], customers = session.customers, warehouses = session.warehouses,
    level = session.level_of_writing, level_of_reading = session.level_of_reading, transactions = transactions,
    --- Calls `body(commit, rollback)` instead of a COMMIT; nil: no longer.
    end_with = function(body)
      session.commit = body and { execute = function() return body(real, session.rollback) end } or real
    end,
  }
end

--- After a kill check: whether everything that was acknowledged is in the tables.
function verify() return require("tpcc_verify").all() end
