--- What transactions drew at random (TPC-C 5.11, clauses 2.4.1 to 2.8.1, 5.2.4.2, 5.2.5.4), remembered during a run and
--- tested after it.
--
-- All sessions of a Lua state note their draws in the same lists: a few numbers per transaction, so that a run does not
-- notice. When the last of these sessions ends, each drawn value is tested as `tpcc_statistics` says: against the
-- distribution of its clause, against everything it could depend on (other values of the transaction, the terminal and
-- its warehouse, the turn, the previous transaction), and against its own previous values.

local statistics = require("tpcc_statistics")

local draws = {}

local floor, log, exp, min, max = math.floor, math.log, math.exp, math.min, math.max
local format = string.format

--- Transactions of a state that are remembered; later ones are not tested.
draws.MOST = 20000

--- Chance of a false alarm in all tests of a run.
draws.FALSE_ALARM = 1e-4

--- What is tested: kind → clause, and how a report calls it. Kinds of transactions are numbers.
draws.KINDS = {
  { "2.4.1", "random orders" }, { "2.5.1", "random payments" }, { "2.6.1", "random order-status" }, { "2.7.1", "random deliveries" },
  { "2.8.1", "random stock-level" }, { "5.2.4.2", "random cards" }, { "5.2.5.4", "random think times" },
}
local NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL, CARDS, THINKING = 1, 2, 3, 4, 5, 6, 7

-- Remembered ---------------------------------------------------------------------------------------------------------

-- Lists of one kind, each with a value per observation.
local function lists(...)
  local of = { n = 0 }
  for _, name in ipairs { "session", "user", "home", "district", "turn", "user_turn", "kind_before", "d_before", "c_before", "set", ... } do of[name] = {} end
  return of
end

local noted, lines, sessions, transactions

local function begin()
  noted = {
    lists("d", "c", "lines", "unused", "remote"), lists("d", "c_w", "c_d", "c", "name", "amount"), lists("d", "c", "name"),
    lists("carrier"), lists("d", "threshold"), lists("kind", "place", "before"), lists("time", "kind", "next"),
  }
  lines = { n = 0, order = {}, number = {}, item = {}, supply = {}, quantity = {} }
  transactions = 0
end

--- A session starts.
function draws.open()
  if not sessions then
    sessions = 0
    begin()
  end
  sessions = sessions + 1
end

--- A session ends; whether it was the last one.
function draws.close()
  sessions = (sessions or 1) - 1
  if sessions > 0 then return false end
  sessions = nil
  return noted ~= nil
end

-- What all kinds have; returns the lists and the number of the observation.
local function enter(kind, session, user, set)
  local of = noted[kind]
  local n = of.n + 1
  of.n = n
  local turns, own = session.turns, user.turns
  if not turns then turns = {} session.turns = turns end
  if not own then own = {} user.turns = own end
  turns[kind], own[kind] = (turns[kind] or 0) + 1, (own[kind] or 0) + 1
  of.session[n], of.user[n], of.home[n], of.district[n] = session.number, user.number, user.home, user.district
  of.turn[n], of.user_turn[n], of.set[n] = turns[kind], own[kind], set
  of.kind_before[n], of.d_before[n], of.c_before[n] = user.kind_before or 0, user.d_before or 0, user.c_before or 0
  return of, n
end

local function note_order(of, n, input)
  local item, supply, quantity, number, first = input.item, input.supply, input.quantity, input.number, lines.n
  of.d[n], of.c[n], of.lines[n], of.unused[n], of.remote[n] = input.d, input.c, input.lines, input.unused and 1 or 0, input.remote > 0 and 1 or 0
  for place = 1, input.lines do
    local entered = number[place]
    local at = first + entered
    lines.order[at], lines.number[at], lines.supply[at], lines.quantity[at] = n, entered, supply[place], quantity[place]
    -- The unused item is entered last.
    lines.item[at] = input.unused and entered == input.lines and 0 or item[place]
  end
  lines.n = first + input.lines
end

--- Notes what a transaction drew. `session`: a table of the session, with its `number`; `user`: the terminal; `input`:
--- what it drew.
function draws.note(kind, input, session, user)
  if transactions >= draws.MOST then return end
  transactions = transactions + 1
  local of, n = enter(kind, session, user, input.set)
  if kind == NEW_ORDER then
    note_order(of, n, input)
    user.d_before, user.c_before = input.d, input.c
  elseif kind == PAYMENT then
    of.d[n], of.c_w[n], of.c_d[n], of.amount[n] = input.d, input.c_w, input.c_d, floor(input.amount * 100 + 0.5)
    of.c[n], of.name[n] = input.c or 0, input.name or -1
    user.d_before, user.c_before = input.d, input.c or 0
  elseif kind == ORDER_STATUS then
    of.d[n], of.c[n], of.name[n] = input.c_d, input.c or 0, input.name or -1
    user.d_before, user.c_before = input.c_d, input.c or 0
  elseif kind == DELIVERY then
    of.carrier[n] = input.carrier
  else
    of.d[n], of.threshold[n] = user.district, input.threshold
  end
  user.kind_before = kind
end

--- Notes a card: its kind, its place in the deck, and the kind before it. When it is drawn, not when it is played: a
--- terminal with slow transactions plays fewer, and what it plays in a given time is not random.
function draws.note_card(kind, place, session, user)
  if transactions >= draws.MOST then return end
  local of, n = enter(CARDS, session, user, 1)
  of.kind[n], of.place[n], of.before[n] = kind, place, user.card_before or 0
  user.card_before = kind
end

--- Notes how many seconds a user thinks after a transaction, before the next one.
function draws.note_thinking(seconds, kind, next_kind, session, user)
  if transactions >= draws.MOST then return end
  local of, n = enter(THINKING, session, user, 1)
  of.time[n], of.kind[n], of.next[n] = seconds, kind, next_kind
end

-- Columns ------------------------------------------------------------------------------------------------------------

local mapped, equal = statistics.mapped, statistics.equal
local YES = { label = function(value) return value == 1 and "yes" or "no" end }

local function from(low) return { label = function(value) return tostring(value + low) end } end

--- What every draw may depend on.
local function add_given(sample, of, context)
  local n = of.n
  local users = 0
  for i = 1, n do users = max(users, of.user[i]) end
  local function given(variable, how, k, value, low)
    sample:column(variable, how, k, mapped(n, value), nil, { given = true, label = function(shown) return tostring(shown + (low or 0)) end })
  end
  if users > 0 then given("the terminal", "its number, in eights", 8, function(i) return of.user[i] % 8 end) end
  if context.warehouses > 1 then given("the terminal", "its warehouse, in tens", 10, function(i) return of.home[i] % 10 end) end
  given("the terminal", "its district", 10, function(i) return of.district[i] - 1 end, 1)
  given("the turn", "in tens", 10, function(i) return of.turn[i] % 10 end)
  given("the turn", "in dozens", 12, function(i) return of.turn[i] % 12 end)
  given("the turn", "1, 2 to 3, 4 to 7 …", 16, function(i) return min(15, floor(log(of.turn[i]) / log(2) + 1e-9)) end)
  given("the previous transaction", "its kind", 6, function(i) return of.kind_before[i] end)
  given("the previous transaction", "its district", 10, function(i) return of.d_before[i] - 1 end, 1)
  given("the previous transaction", "its customer, in tenths", 10, function(i)
    return of.c_before[i] > 0 and floor((of.c_before[i] - 1) * 10 / context.customers) or -1
  end)
  if context.sets > 1 then
    sample:column("the table set", "", min(context.sets, 16), mapped(n, function(i) return (of.set[i] - 1) % 16 end),
      context.sets <= 16 and equal(context.sets) or nil, from(1))
  end
  sample:key("the session", of.session, true)
  sample:key("another terminal at this turn", of.user_turn)
end

-- A customer drawn by number.
local function add_customer(sample, of, context)
  local c = context.c_for_customers
  local values = mapped(of.n, function(i) return of.c[i] > 0 and of.c[i] or nil end)
  sample:skewed("customer", of.n, values, 1, context.customer_weights, context.customer_all, function() return c end, c)
  sample:column("customer", "rest of a division by 11", 11, mapped(of.n, function(i) return values[i] and values[i] % 11 or -1 end))
end

local function add_name(sample, of, context)
  local values = mapped(of.n, function(i) return of.name[i] >= 0 and of.name[i] or nil end)
  sample:skewed("last name", of.n, values, 0, context.name_weights, context.name_all, function(i) return context.c_last[of.set[i]] end,
    context.sets == 1 and context.c_last[1] or nil)
  local by_name = mapped(of.n, function(i) return of.name[i] >= 0 and 1 or 0 end)
  sample:column("by last name", "", 2, by_name, { [0] = 0.4, 0.6 }, YES)
  sample:blocks("by last name", 10, by_name, of.session, 0.6, 11)
  sample:depends("by last name", "customer")
  sample:depends("by last name", "last name")
  -- Whom the transaction is for, by number or name: nothing else is always the same for the same customer.
  sample:key("the same customer", mapped(of.n, function(i) return of.name[i] >= 0 and -1 - of.name[i] or of.c[i] end), false,
    { customer = true, ["last name"] = true, ["by last name"] = true })
end

--- Which of the other warehouses, from the next one on.
local function add_other(sample, what, n, home, other, warehouses)
  if warehouses < 3 then return end
  local others = warehouses - 1
  local k = min(others, 8)
  local function class(away) return floor((away - 1) * k / others) end
  sample:column(what, "in order from the next", k,
    mapped(n, function(i) return other[i] ~= home[i] and class((other[i] - home[i]) % warehouses) or -1 end),
    statistics.even(1, others, k, class))
end

local function add_rare(sample, what, n, values, keys, p, size)
  sample:column(what, "", 2, values, { [0] = 1 - p, p }, YES)
  sample:blocks(what, size, values, keys, p, 6)
  sample:blocks(what .. " of all sessions", size, values, mapped(n, function() return 1 end), p, 6)
end

local function orders(context)
  local of = noted[NEW_ORDER]
  local n = of.n
  local sample = statistics.sample("new_order", n)
  add_given(sample, of, context)
  sample:column("district", "", 10, mapped(n, function(i) return of.d[i] - 1 end), equal(10), from(1))
  add_customer(sample, of, context)
  sample:column("lines", "", 11, mapped(n, function(i) return of.lines[i] - 5 end), equal(11), from(5))
  add_rare(sample, "an unused item", n, of.unused, of.session, 0.01, 100)
  if context.warehouses > 1 then
    local none = 0
    for count = 5, 15 do none = none + 0.99 ^ count / 11 end
    sample:column("a remote line", "", 2, of.remote, { [0] = none, 1 - none }, YES)
    sample:depends("a remote line", "lines")
  end
  sample:key("the same number of a customer", of.c, false, { customer = true })
  sample:key("the same customer", mapped(n, function(i) return of.d[i] * 4096 + of.c[i] end), false, { customer = true, district = true })
  return sample
end

local function order_lines(context)
  local of, n = noted[NEW_ORDER], lines.n
  local sample = statistics.sample("new_order", n)
  local order, warehouses = lines.order, context.warehouses
  local function given(what, how, k, value, low)
    sample:column(what, how, k, mapped(n, value), nil, { given = true, label = from(low or 0).label })
  end
  given("the number of the line", "", 15, function(i) return lines.number[i] - 1 end, 1)
  given("the number of lines", "", 11, function(i) return of.lines[order[i]] - 5 end, 5)
  given("whether it is the last", "", 2, function(i) return lines.number[i] == of.lines[order[i]] and 1 or 0 end)
  given("the district", "", 10, function(i) return of.d[order[i]] - 1 end, 1)
  given("the customer", "in tenths", 10, function(i) return floor((of.c[order[i]] - 1) * 10 / context.customers) end)
  given("whether the last item is unused", "", 2, function(i) return of.unused[order[i]] end)
  given("the turn", "in tens", 10, function(i) return of.turn[order[i]] % 10 end)
  given("the turn", "1, 2 to 3, 4 to 7 …", 16, function(i) return min(15, floor(log(of.turn[order[i]]) / log(2) + 1e-9)) end)
  given("the terminal", "its number, in eights", 8, function(i) return of.user[order[i]] % 8 end)
  given("the terminal", "its district", 10, function(i) return of.district[order[i]] - 1 end, 1)
  if warehouses > 1 then given("the terminal", "its warehouse, in tens", 10, function(i) return of.home[order[i]] % 10 end) end
  local items = mapped(n, function(i) return lines.item[i] > 0 and lines.item[i] or nil end)
  local c = context.c_for_items
  sample:skewed("item", n, items, 1, context.item_weights, context.item_all, function() return c end, c)
  sample:column("quantity", "", 10, mapped(n, function(i) return lines.quantity[i] - 1 end), equal(10), from(1))
  local home = mapped(n, function(i) return of.home[order[i]] end)
  if warehouses > 1 then
    local remote = mapped(n, function(i) return lines.supply[i] ~= home[i] and 1 or 0 end)
    add_rare(sample, "remote line", n, remote, mapped(n, function(i) return of.session[order[i]] end), 0.01, 100)
    add_other(sample, "its warehouse", n, home, lines.supply, warehouses)
  end
  sample:key("the same order", order, true)
  sample:key("the same item", items, false, { item = true })
  sample:key("the same line of the session", mapped(n, function(i) return of.session[order[i]] * 16 + lines.number[i] end))
  sample:key("another terminal at this turn", mapped(n, function(i) return of.user_turn[order[i]] * 16 + lines.number[i] end))
  -- An item may be ordered twice.
  local found, pairs, first = 0, 0, 1
  for i = 1, n do
    if i > 1 and order[i] ~= order[i - 1] then first = i end
    if items[i] then
      for j = first, i - 1 do
        if items[j] then
          pairs = pairs + 1
          if items[j] == items[i] then found = found + 1 end
        end
      end
    end
  end
  local alike = 0
  for r = 0, #context.item_weights do alike = alike + (context.item_weights[r] / context.item_all) ^ 2 end
  sample:alike("items of an order", found, pairs, alike)
  return sample
end

local AMOUNT_LOW, AMOUNT_HIGH = 100, 500000

local function payments(context)
  local of = noted[PAYMENT]
  local n, warehouses = of.n, context.warehouses
  local sample = statistics.sample("payment", n)
  add_given(sample, of, context)
  sample:column("district", "", 10, mapped(n, function(i) return of.d[i] - 1 end), equal(10), from(1))
  if warehouses > 1 then
    add_rare(sample, "remote customer", n, mapped(n, function(i) return of.c_w[i] ~= of.home[i] and 1 or 0 end), of.session, 0.15, 20)
    add_other(sample, "the customer's warehouse", n, of.home, of.c_w, warehouses)
    sample:column("district of a remote customer", "", 10,
      mapped(n, function(i) return of.c_w[i] ~= of.home[i] and of.c_d[i] - 1 or -1 end), equal(10), from(1))
  end
  add_customer(sample, of, context)
  add_name(sample, of, context)
  local function amount(how, k, class, options)
    sample:column("amount", how, k, mapped(n, function(i)
      local cents = of.amount[i]
      return cents >= AMOUNT_LOW and cents <= AMOUNT_HIGH and class(cents) or k
    end), statistics.even(AMOUNT_LOW, AMOUNT_HIGH, k, class), options)
  end
  local values = AMOUNT_HIGH - AMOUNT_LOW + 1
  amount("in tenths", 10, function(cents) return floor((cents - AMOUNT_LOW) * 10 / values) end)
  amount("in hundredths", 100, function(cents) return floor((cents - AMOUNT_LOW) * 100 / values) end, { alone = true })
  amount("cents", 100, function(cents) return cents % 100 end, { alone = true })
  amount("last digit of cents", 10, function(cents) return cents % 10 end)
  amount("last digit of dollars", 10, function(cents) return floor(cents / 100) % 10 end)
  sample:repeats("amount", of.amount, 1 / values)
  return sample
end

local function statuses(context)
  local of = noted[ORDER_STATUS]
  local sample = statistics.sample("order_status", of.n)
  add_given(sample, of, context)
  sample:column("district", "", 10, mapped(of.n, function(i) return of.d[i] - 1 end), equal(10), from(1))
  add_customer(sample, of, context)
  add_name(sample, of, context)
  return sample
end

local function deliveries(context)
  local of = noted[DELIVERY]
  local sample = statistics.sample("delivery", of.n)
  add_given(sample, of, context)
  sample:column("carrier", "", 10, mapped(of.n, function(i) return of.carrier[i] - 1 end), equal(10), from(1))
  return sample
end

local function levels(context)
  local of = noted[STOCK_LEVEL]
  local sample = statistics.sample("stock_level", of.n)
  add_given(sample, of, context)
  sample:column("threshold", "", 11, mapped(of.n, function(i) return of.threshold[i] - 10 end), equal(11), from(10))
  return sample
end

local NAMES = { [0] = "new_order", "payment", "order_status", "delivery", "stock_level" }

local function named_kind(value) return NAMES[value] end

local function cards(context)
  local of, mix = noted[CARDS], context.mix
  local n, size, p = of.n, #mix, {}
  local sample = statistics.sample("deck", n)
  for kind = 0, 4 do p[kind] = 0 end
  for _, kind in ipairs(mix) do p[kind - 1] = p[kind - 1] + 1 / size end
  sample:column("card", "", 5, mapped(n, function(i) return of.kind[i] - 1 end), p, { label = named_kind, is_sequence = true })
  if size <= 200 then
    local k = min(size, 25)
    sample:column("the place in the deck", "", k, mapped(n, function(i) return floor(of.place[i] * k / size) end), nil, { given = true })
  end
  sample:column("the terminal", "in eights", 8, mapped(n, function(i) return of.user[i] % 8 end), nil, { given = true })
  -- Within a deck a card is drawn from those that are left.
  local both = {}
  for a = 0, 4 do
    for b = 0, 4 do both[a * 5 + b] = size > 1 and p[a] * (p[b] * size - (a == b and 1 or 0)) / (size - 1) or 0 end
  end
  sample:column("two cards of a deck", "", 25, mapped(n, function(i)
    return of.place[i] > 0 and of.before[i] > 0 and (of.before[i] - 1) * 5 + of.kind[i] - 1 or -1
  end), both, {
    alone = true, is_sequence = true,
    label = function(value) return named_kind(floor(value / 5)) .. " and " .. named_kind(value % 5) end,
  })
  sample:key("another terminal at this turn", of.user_turn)
  sample:key("the previous deck", mapped(n, function(i) return of.user[i] * size + of.place[i] end))
  return sample
end

--- Means of think times: kind → seconds (5.2.5.7), not shared with the transactions.
local MEANS = { 12, 12, 10, 5, 5 }

local function thinking(context)
  local of = noted[THINKING]
  local n = of.n
  local sample = statistics.sample("think time", n)
  local function mean(i) return MEANS[of.kind[i]] end
  local parts, shares = {}, {}
  for b = 0, 9 do parts[b] = 0 end
  for kind = 1, 5 do shares[kind] = 0 end
  for i = 1, n do shares[of.kind[i]] = shares[of.kind[i]] + 1 / n end
  local alike = 0
  for kind, share in ipairs(shares) do
    local m = MEANS[kind]
    for b = 0, 9 do parts[b] = parts[b] + share * exp(-b / (10 * m)) * (1 - exp(-0.1 / m)) / (1 - exp(-1 / m)) end
    for other, other_share in ipairs(shares) do alike = alike + share * other_share * 1e-6 / (m + MEANS[other]) end
  end
  sample:column("time", "in twentieths of the exponential distribution", 20, mapped(n, function(i)
    return max(0, min(19, floor(20 * (1 - exp(-of.time[i] / mean(i))))))
  end), equal(20))
  sample:column("time", "in quarters", 4, mapped(n, function(i) return max(0, min(3, floor(4 * (1 - exp(-of.time[i] / mean(i)))))) end), equal(4))
  sample:column("time", "tenths of a second", 10, mapped(n, function(i) return floor(of.time[i] * 10) % 10 end), parts)
  sample:column("the transaction", "", 5, mapped(n, function(i) return of.kind[i] - 1 end), nil, { given = true, label = named_kind })
  sample:column("the next transaction", "", 5, mapped(n, function(i) return of.next[i] - 1 end), nil, { given = true, label = named_kind })
  sample:column("the terminal", "in eights", 8, mapped(n, function(i) return of.user[i] % 8 end), nil, { given = true })
  sample:column("the terminal", "its district", 10, mapped(n, function(i) return of.district[i] - 1 end), nil, { given = true })
  sample:column("the turn", "in tens", 10, mapped(n, function(i) return of.user_turn[i] % 10 end), nil, { given = true })
  sample:key("the terminal", of.user)
  sample:key("another terminal at this turn", of.user_turn)
  -- Times up to ten means, which are cut there.
  sample:repeats("microseconds", mapped(n, function(i) return of.time[i] < 9.99 * mean(i) and floor(of.time[i] * 1e6) or nil end), max(alike, 1e-9))
  return sample
end

local SAMPLES = {
  { NEW_ORDER, orders }, { NEW_ORDER, order_lines }, { PAYMENT, payments }, { ORDER_STATUS, statuses }, { DELIVERY, deliveries },
  { STOCK_LEVEL, levels }, { CARDS, cards }, { THINKING, thinking },
}

-- The verdict --------------------------------------------------------------------------------------------------------

--- Makes all tests. `context`: numbers of `warehouses`, `customers`, `sets`; the cards of `mix`; constants of NURand
--- (`c_for_customers`, `c_for_items`, `c_last` by set) and their weights. Returns a list of { kind, name, p, text } of
--- those with an improbability below `least`; how many tests there were; kind → how many of them.
function draws.tests(context, least, pause)
  local list, all, by_kind = {}, 0, {}
  for _, one in ipairs(SAMPLES) do
    local kind, made = one[1], one[2]
    if noted[kind].n > 0 then
      local sample = made(context)
      sample.is_strict = true
      local odd, number = sample:tests(least, pause)
      all, by_kind[kind] = all + number, (by_kind[kind] or 0) + number
      for _, test in ipairs(odd) do
        test.kind = kind
        list[#list + 1] = test
      end
    end
  end
  table.sort(list, function(a, b) return a.p < b.p end)
  return list, all, by_kind
end

-- Improbabilities that are worth to be combined with those of other states.
local SUSPICIOUS = 1e-3
local SHOWN = 5

--- Judges what the sessions of this state drew, together with those of the states before it: other states cannot be
--- asked, but counters are shared. Says what is wrong.
function draws.judge(context)
  local list, tests, by_kind = draws.tests(context, SUSPICIOUS, function() assay.sleep(0) end)
  local states, shown = assay.claim("tpcc draws: states") + 1, 0
  local limit = draws.FALSE_ALARM / math.max(tests, 1) / (states * (states + 1))
  local judged = {}
  for n = 1, math.min(#list, 200) do
    local test = list[n]
    local own = math.min(60, floor(-log(math.max(test.p, 1e-300))))
    local odd = test.p
    if states > 1 or n <= 40 then
      local sum = own
      local name = "tpcc draws: " .. test.name
      local before = assay.claim(name)
      for _ = 2, own do assay.claim(name) end
      if before > 0 then odd = math.min(odd, statistics.combined(before + sum, states)) end
    end
    if odd < limit then
      judged[test.kind] = (judged[test.kind] or 0) + 1
      if judged[test.kind] <= SHOWN then assay.log(format("clause %s: %s (p < %.0e)", draws.KINDS[test.kind][1], test.text, math.max(odd, 1e-99))) end
    end
  end
  for kind in ipairs(draws.KINDS) do
    assay.total("draws_judged_" .. kind, by_kind[kind] or 0)
    assay.total("draws_unlike_" .. kind, judged[kind] or 0)
  end
end

return draws
