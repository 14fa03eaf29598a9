--- How Payment and Order-Status choose customers (TPC-C 5.11, clauses 2.5.1.2 and 2.6.1.2): by last name in 60 of 100
--- cases, else by number.

local tpcc = require("tpcc_common")

local customers = {}

local session, chance, count = tpcc.session, tpcc.chance, assay.count

--- The number of a customer, by NURand.
function customers.random() return nurand(1023, session.c_for_customers, 1, session.customers) end

local function random_name(set) return nurand(255, session.sets[set].c_last, 0, session.names - 1) end

--- Draws a customer: the number of a last name into `input.name`, or a number into `input.c`.
function customers.draw(input)
  if chance(60) then
    input.name, input.c = random_name(input.set), nil
  else
    input.name, input.c = nil, customers.random()
  end
end

--- 2.5.2.2: of the customers with a last name, ordered by first name, the one in the middle, rounded up.
function customers.of_name(set, w, d, name)
  local found = set.customers_of_name:execute(w, d, tpcc.last_name(name))
  if found.nrows == 0 then tpcc.fail("no customer %s in warehouse %d, district %d", tpcc.last_name(name), w, d) end
  return tonumber(found:value(math.ceil(found.nrows / 2), 1))
end

local FAVORED = ("1"):byte()
local favored_numbers, favored_names -- see `tpcc.favored`

local function count_top_bit(what, value, a, c, low, high)
  if tpcc.has_top_bit(value, a, c, low, high) then count(what) end
end

--- Counts the draw of a number.
function customers.count_number(c)
  count("customers")
  if favored_numbers:byte((c - 1 - session.c_for_customers) % session.customers + 1) == FAVORED then count("favored_customers") end
  count_top_bit("customers_with_top_bit", c, 1023, session.c_for_customers, 1, session.customers)
  if c == session.customers then count("last_customers") end
end

--- 2.1.6.1: the allowed differences between the constants of a run and its load.
local function is_allowed(run, load)
  local delta = math.abs(run - load)
  return run >= 0 and run <= 255 and delta >= 65 and delta <= 119 and delta ~= 96 and delta ~= 112
end

--- Counts the draw of a customer.
function customers.count(input)
  if not input.name then return customers.count_number(input.c) end
  local set = session.sets[input.set]
  count("names")
  if favored_names:byte((input.name - set.c_last) % session.names + 1) == FAVORED then count("favored_names") end
  count_top_bit("names_with_top_bit", input.name, 255, set.c_last, 0, session.names - 1)
  if not is_allowed(set.c_last, set.c_last_of_load) then count("names_by_a_wrong_constant") end
end

--- Rules about what was drawn.
function customers.declare_rules(rule)
  local names, numbers, names_with, numbers_with, draws, all, _
  favored_numbers, numbers, numbers_with, _, draws, all = unpack(assay.constant("tpcc customers favored of " .. session.customers, function()
    return { tpcc.favored(1023, 1, session.customers) }
  end))
  favored_names, names, names_with = unpack(assay.constant("tpcc names favored of " .. session.names, function()
    return { tpcc.favored(255, 0, session.names - 1) }
  end))
  rule("2.1.6", "customers favored by NURand",
    { part = "favored_customers", whole = "customers", low = 0.95 * numbers, high = 1.05 * numbers })
  rule("2.1.6", "last names favored by NURand", { part = "favored_names", whole = "names", low = 0.95 * names, high = 1.05 * names })
  local last = draws[(session.customers - 1 - session.c_for_customers) % session.customers] / all
  rule("2.1.6", "last customer of a district", { part = "last_customers", whole = "customers", low = 0.3 * last, high = 3 * last })
  -- A constant A of half the size has the bit in one of two.
  rule("2.1.6", "customers with the top bit of NURand",
    { part = "customers_with_top_bit", whole = "customers", low = 0.9 * numbers_with, high = 1 - 0.9 * (1 - numbers_with) })
  rule("2.1.6", "names with the top bit of NURand",
    { part = "names_with_top_bit", whole = "names", low = 0.9 * names_with, high = 1 - 0.9 * (1 - names_with) })
  rule("2.1.6.1", "names with a wrong NURand constant", { part = "names_by_a_wrong_constant", whole = "names", high = 0 })
end

return customers
