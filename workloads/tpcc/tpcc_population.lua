--- What the load drew at random (TPC-C 5.11, clauses 4.3.2 and 4.3.3.1), as seen in the tables.
--
-- For each table one statement counts its rows, and those with a property whose probability the specification says: a
-- price in the lowest fifth of the range, a text that begins with a digit. Only what transactions leave as it was
-- loaded is counted, or can be corrected for them, as the quantities of the stock for what was sold. A number of rows
-- is wrong if it is less probable than one in a thousand, divided by the number of all these tests (Bonferroni): a
-- correct load fails any of them at most once in a thousand checks.

local tpcc = require("tpcc_common")

local population = {}

local format, floor = string.format, math.floor
local SHOWN = 5 -- properties that are shown for each condition

-- Properties ---------------------------------------------------------------------------------------------------------

-- What is tested: a list of { name, condition, probability, of = condition of the rows that count, or nil for all }.

--- A number drawn evenly from `low` to `high`, stored divided by `scale`: it is in each of `parts` equal parts.
local function even(list, column, low, high, scale, parts, of)
  local decimals, n = ({ [1] = 0, [100] = 2, [10000] = 4 })[scale], high - low + 1
  local function bound(part) return low + floor(part * n / parts) end
  local function shown(value) return format("%." .. decimals .. "f", value / scale) end
  for part = 0, parts - 1 do
    local first, last = bound(part), bound(part + 1) - 1
    list[#list + 1] = {
      first == last and format("%s is %s", column, shown(first)) or format("%s from %s to %s", column, shown(first), shown(last)),
      format("(%s) BETWEEN %s AND %s", column, shown(first), shown(last)), (last - first + 1) / n, of = of,
    }
  end
end

--- Two decimals or more: the last one is 0 as often as any other digit.
local function last_digit(list, column, low, high, of)
  list[#list + 1] = {
    column .. " in tenths", format("ROUND(%s * 100) %% 10 = 0", column), (floor(high / 10) - floor((low - 1) / 10)) / (high - low + 1), of = of,
  }
end

-- Of the 65,536 numbers from which a letter or digit is made, those that make a digit, or a lower-case letter.
local DIGIT, LOWER = math.ceil(10 * 65536 / 62) / 65536, 1 - math.ceil(36 * 65536 / 62) / 65536

--- A random a-string (4.3.2.2).
local function text(list, column, low, high, of)
  list[#list + 1] = { column .. " begins with a digit", format("CODE(SUBSTR(%s, 1, 1)) BETWEEN 48 AND 57", column), DIGIT, of = of }
  list[#list + 1] = {
    column .. " ends with a lower-case letter",
    format("CODE(SUBSTR(%s, %s, 1)) BETWEEN 97 AND 122", column, low == high and low or "LENGTH(" .. column .. ")"), LOWER, of = of,
  }
  if low == high then return end
  local middle = floor((low + high) / 2)
  list[#list + 1] = {
    format("%s has %d to %d characters", column, low, middle), format("LENGTH(%s) <= %d", column, middle), (middle - low + 1) / (high - low + 1),
    of = of,
  }
end

--- A random digit at a place of a text.
local function digit(list, column, place)
  list[#list + 1] = {
    format("%s with 0 to 4 at place %d", column, place), format("CODE(SUBSTR(%s, %d, 1)) BETWEEN 48 AND 52", column, place), 0.5,
  }
end

--- i_data and s_data. ORIGINAL is at a random place of one row in ten, which are not random at that place.
local function data(list, column)
  local original = format("ORIGINAL_AT(%s) > 0", column)
  text(list, column, 26, 50, format("NOT (%s)", original))
  local front, half = 0, 0
  for places = 26 - 7, 50 - 7 do
    front, half = front + 1 / places / 25, half + floor(places / 2) / places / 25
  end
  list[#list + 1] = { "ORIGINAL at the front of " .. column, format("ORIGINAL_AT(%s) = 1", column), front, of = original }
  list[#list + 1] = {
    "ORIGINAL in the front half of " .. column, format("2 * (ORIGINAL_AT(%s) - 1) < LENGTH(%s) - 8", column, column), half, of = original,
  }
end

-- Tables: { clause and sentence, rows of a FROM clause, properties }, for the numbers of a load.
local function tables(state)
  local customers, delivered, list = state.customers, tpcc.delivered(state.customers), {}
  local function add(what, from, fill)
    local properties = {}
    fill(properties)
    list[#list + 1] = { "4.3.3.1", what .. " distributed as specified", from = from, properties = properties }
  end

  add("values of item are", "{item}", function(to)
    even(to, "i_im_id", 1, 10000, 1, 5)
    text(to, "i_name", 14, 24)
    even(to, "i_price", 100, 10000, 100, 5)
    last_digit(to, "i_price", 100, 10000)
    data(to, "i_data")
  end)
  add("w_tax and d_tax are", "(SELECT w_tax AS tax, 1 AS w FROM {warehouse} UNION ALL SELECT d_tax, 0 FROM {district}) t", function(to)
    for _, of in ipairs { "w = 1", "w = 0" } do
      even(to, "tax", 0, 2000, 10000, 5, of)
      to[#to + 1] = { "tax is 0", "tax = 0", 1 / 2001, of = of }
    end
  end)
  add("values of stock are", "{stock}", function(to)
    -- 91 are added when the stock is low.
    even(to, "(s_quantity + s_ytd) % 91", 0, 90, 1, 5)
    for d = 1, tpcc.DISTRICTS do text(to, format("s_dist_%02d", d), 24, 24) end
    data(to, "s_data")
  end)
  add("values of customer are", "{customer}", function(to)
    text(to, "c_first", 8, 16)
    for _, column in ipairs { "c_street_1", "c_street_2", "c_city" } do text(to, column, 10, 20) end
    text(to, "c_state", 2, 2)
    digit(to, "c_zip", 1)
    digit(to, "c_zip", 4)
    digit(to, "c_phone", 1)
    digit(to, "c_phone", 16)
    even(to, "c_discount", 0, 5000, 10000, 5)
    to[#to + 1] = {
      "bad credit in the first half of a district", format("c_id <= %d", customers / 2), 0.5, of = "BYTES(c_credit) = 'BC'",
    }
    text(to, "c_data", 300, 500, "BYTES(c_credit) = 'GC'")
  end)
  add("values of the loaded history are", "{history} WHERE h_data NOT LIKE '%    %'", function(to) text(to, "h_data", 12, 24) end)
  add("values of the loaded orders are", format("{orders} WHERE o_id <= %d", customers), function(to)
    even(to, "o_ol_cnt", 5, 15, 1, 11)
    even(to, "o_carrier_id", 1, 10, 1, 10, format("o_id <= %d", delivered))
    -- A permutation of the customers: neither o_id nor o_id the other way round, moved or not.
    even(to, format("(o_c_id - o_id + %d) %% %d", customers, customers), 0, customers - 1, 1, 4)
    even(to, format("(o_c_id + o_id) %% %d", customers), 0, customers - 1, 1, 4)
  end)
  add("values of the loaded order lines are", format("{order_line} WHERE ol_o_id <= %d", customers), function(to)
    even(to, "ol_i_id", 1, state.items, 1, 5)
    local open = format("ol_o_id > %d", delivered)
    even(to, "ol_amount", 1, 999999, 100, 5, open)
    last_digit(to, "ol_amount", 1, 999999, open)
    text(to, "ol_dist_info", 24, 24)
  end)
  return list
end

-- Statistics ---------------------------------------------------------------------------------------------------------

--- ln n!, by Stirling's series.
local function log_factorial(n)
  if n < 16 then
    local product = 1
    for i = 2, n do product = product * i end
    return math.log(product)
  end
  return (n + 0.5) * math.log(n) - n + 0.91893853320467274 + 1 / (12 * n) - 1 / (360 * n ^ 3)
end

--- An upper bound for the probability of a number at least as far from the expected one, to either side, as `k` of `n`
--- when each is counted with probability `p`. Source of the bound of a binomial tail: Feller 1968, vol. 1, VI.3.
function population.improbability(k, n, p)
  if k > n or n == 0 then return n == 0 and 1 or 0 end
  if k < n * p then k, p = n - k, 1 - p end
  if k <= n * p + 1 then return 1 end
  local log_of_k = log_factorial(n) - log_factorial(k) - log_factorial(n - k) + k * math.log(p) + (n - k) * math.log(1 - p)
  return math.min(1, 2 * math.exp(log_of_k) * (k + 1) * (1 - p) / (k + 1 - (n + 1) * p))
end

--- Tests of last names: for the index of a name (from 0), whether NURand favors it given the constant of the load.
local function last_names(state)
  local names = tpcc.last_names(state.customers)
  local flags, share = tpcc.favored(255, 0, names - 1)
  return names, function(index) return flags:byte((index - state.c_last) % names + 1) == 49 end, share
end

-- The check ----------------------------------------------------------------------------------------------------------

--- Probability below which a count is wrong: `sets` table sets are checked.
local function limit(state, sets)
  local tests = 1 -- last names
  for _, one in ipairs(tables(state)) do tests = tests + #one.properties end
  return 0.001 / (tests * sets)
end

local function judge(wrong, name, k, n, p, least)
  if population.improbability(k, n, p) >= least then return end
  wrong[#wrong + 1] = format("  %s: %.4g %% of %d rows, expected %.4g %%", name, 100 * k / n, n, 100 * p)
end

--- Tests one table; false if it is wrong.
local function is_random(connection, dialect, set, state, one)
  local sums = { "COUNT(*)" }
  local function count(condition) sums[#sums + 1] = format("SUM(CASE WHEN %s THEN 1 ELSE 0 END)", condition) end
  local places = {} -- of a condition of rows, in the answer
  for _, property in ipairs(one.properties) do
    local of = property.of
    if of and not places[of] then
      count(of)
      places[of] = #sums
    end
    count(of and format("%s AND (%s)", property[2], of) or property[2])
    places[property] = #sums
  end
  local statement = format("SELECT %s FROM %s", table.concat(sums, ", "), one.from)
  local row, wrong = connection:query(require(dialect.check_module).translated(statement, set, dialect)):fetch_row(), {}
  for _, property in ipairs(one.properties) do
    local n = tonumber(row[places[property.of] or 1]) or 0
    judge(wrong, property[1], tonumber(row[places[property]]) or 0, n, property[3], one.limit)
  end
  return tpcc.tell_condition(set, one, wrong, SHOWN)
end

--- Judges the last names of customers whose names are random: name → how often. False if they are wrong.
local function judge_names(set, state, one, found)
  local names, is_favored, share = last_names(state)
  local indexes, k, n, wrong = {}, 0, 0, {}
  for i = 0, names - 1 do indexes[require("tpcc_sql_check").last_name(i)] = i end
  for name, times in pairs(found) do
    n = n + times
    if indexes[name] and is_favored(indexes[name]) then k = k + times end
  end
  judge(wrong, format("names that NURand favors with the constant %d of the load", state.c_last), k, n, share, one.limit)
  return tpcc.tell_condition(set, one, wrong, SHOWN)
end

local function has_random_names(connection, dialect, set, state, one)
  local text = format("SELECT BYTES(c_last), COUNT(*) FROM {customer} WHERE c_id > %d GROUP BY BYTES(c_last)", (last_names(state)))
  local result, found = connection:query(require(dialect.check_module).translated(text, set, dialect)), {}
  for _ = 1, result.nrows do
    local row = result:fetch_row()
    found[row[1]] = tonumber(row[2])
  end
  return judge_names(set, state, one, found)
end

--- How many tests there are, one line of `check` each.
population.NUMBER = 8

--- What is to be tested: a list of { clause, sentence, test }, where `test` is called with the connection, the dialect,
--- the set and its state, and the element.
function population.tests(state, sets)
  local list = tables(state)
  for _, one in ipairs(list) do one.test, one.limit = is_random, limit(state, sets) end
  list[#list + 1] = {
    "4.3.2.3", "last names of the other customers are drawn by NURand with the constant of the load", test = has_random_names,
    limit = limit(state, sets),
  }
  return list
end

-- Documents ----------------------------------------------------------------------------------------------------------

-- What conditions use, where a condition of SQL is one of Lua.
local FUNCTIONS = {
  CODE = function(text) return text:byte() or -1 end,
  SUBSTR = function(text, from, length) return tostring(text or ""):sub(from, from + length - 1) end,
  LENGTH = function(text) return #tostring(text or "") end,
  BYTES = function(text) return text end,
  ORIGINAL_AT = function(text) return tostring(text or ""):find("ORIGINAL", 1, true) or 0 end,
  ROUND = function(number) return floor(number + 0.5) end,
  between = function(number, low, high) return number ~= nil and number >= low and number <= high end,
}

--- A function that says whether the condition holds for the row in `of.row`.
local function in_lua(condition, of)
  local text = condition:gsub("^(.-) BETWEEN (%S+) AND (%S+)$", "between(%1, %2, %3)"):gsub("NOT %(", "not ("):gsub(" = ", " == ")
  local holds = setfenv(assert(loadstring("return " .. text)), of)
  return function()
    local known, result = pcall(holds) -- NULL is an error here, and no
    return known and result
  end
end

--- The same tests, for a product that cannot count with one statement. Returns `count(name, row)`, which counts a row
--- (column → value) of a table, "tax" with `tax` and `w`; and `judge(names)`, which prints a line for each test and
--- returns false if one is wrong. `names`: last name → how many of the customers whose names are random.
function population.counters(set, state, sets)
  local tests, by_name, row = population.tests(state, sets), {}, nil
  local env = setmetatable({}, { __index = function(_, name)
    local own = FUNCTIONS[name]
    if own then return own end
    return row[name]
  end })
  for _, one in ipairs(tests) do
    if one.from then
      by_name[one.from:find("AS tax", 1, true) and "tax" or one.from:match("{([%w_]+)}")] = one
      for _, property in ipairs(one.properties) do
        property.holds, property.is_of = in_lua(property[2], env), property.of and in_lua(property.of, env)
        property.k, property.n = 0, 0
      end
    end
  end
  local function count(name, of)
    row = of
    for _, property in ipairs(by_name[name].properties) do
      if not property.is_of or property.is_of() then
        property.n = property.n + 1
        if property.holds() then property.k = property.k + 1 end
      end
    end
  end
  local function judge_all(names)
    local right = true
    for _, one in ipairs(tests) do
      local wrong = {}
      for _, property in ipairs(one.properties or {}) do judge(wrong, property[1], property.k, property.n, property[3], one.limit) end
      local is_right
      if one.from then is_right = tpcc.tell_condition(set, one, wrong, SHOWN) else is_right = judge_names(set, state, one, names) end
      right = right and is_right
    end
    return right
  end
  return count, judge_all
end

return population
