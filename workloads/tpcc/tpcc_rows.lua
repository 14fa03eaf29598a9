--- What is random in the rows of the tables (TPC-C 5.11, clauses 4.3.2, 4.3.3.1 and 2.4 to 2.7): of the load, and of
--- the transactions since.
--
-- `check` reads up to 20,000 rows of each table, in whole pieces of the load, and tests all their columns as
-- `tpcc_statistics` says: each against its distribution, against the key, against every other column, against the row
-- before and against the row with the same number in another piece. `tpcc_population` counts all rows, but only some
-- properties of one column each.

local tpcc = require("tpcc_common")
local statistics = require("tpcc_statistics")

local rows = {}

local floor, min, max = math.floor, math.min, math.max
local format = string.format
local mapped, equal = statistics.mapped, statistics.equal

--- Rows of a table that are read, at least while there are more pieces.
rows.MOST = 20000

--- Chance of a false alarm in all tests of a check.
local FALSE_ALARM = 1e-4

-- Columns ------------------------------------------------------------------------------------------------------------

local function given(sample, of, how, k, value)
  sample:column(of, how, k, mapped(sample.n, value), nil, { given = true })
end

-- A whole number from `low` to `high`, each equally likely: tenths of the range, its last digit, hundredths.
local function even(sample, of, values, low, high)
  local range = high - low + 1
  local function add(how, k, class, alone)
    sample:column(of, how, k, mapped(sample.n, function(i)
      local value = values[i]
      if not value then return -1 end
      return value >= low and value <= high and class(value) or -1
    end), statistics.even(low, high, k, class), { alone = alone })
  end
  if range <= 20 then
    add("", range, function(value) return value - low end)
    return
  end
  add("in tenths", 10, function(value) return floor((value - low) * 10 / range) end)
  add("last digit", 10, function(value) return value % 10 end)
  if range > 200 then
    if range <= 20000 then sample:key("the same " .. of, values, false, { [of] = true }) end
    add("last two digits", 100, function(value) return value % 100 end, true)
    add("in hundredths", 100, function(value) return floor((value - low) * 100 / range) end, true)
  elseif range > 20 then
    add("each value", range, function(value) return value - low end, true)
  end
end

-- How often transactions have chosen the row: 0, 1, 2 to 3, 4 to 7 …
local function often(sample, of, values)
  given(sample, of, "", 12, function(i) return values[i] > 0 and min(11, 1 + floor(math.log(values[i]) / math.log(2) + 1e-9)) or 0 end)
end

-- Of the 65,536 numbers from which a letter or digit is made, those that make one of the first `i`.
local function until_letter(i) return math.ceil(i * 65536 / 62) end

local LETTER_CLASS, CLASSES, LETTERS = {}, {}, {}
do
  for class = 0, 7 do CLASSES[class] = 0 end
  local place = 0
  for _, range in ipairs { { 48, 57 }, { 65, 90 }, { 97, 122 } } do
    for code = range[1], range[2] do
      local share = (until_letter(place + 1) - until_letter(place)) / 65536
      LETTER_CLASS[code], LETTERS[place] = place, share
      CLASSES[floor(place * 8 / 62)] = CLASSES[floor(place * 8 / 62)] + share
      place = place + 1
    end
  end
end

local TEXTS = 4000 -- texts whose neighboring characters are compared, at most

-- A random a-string (4.3.2.2) of `low` to `high` characters. nil: not to be looked at.
local function text(sample, of, values, low, high)
  local n, range = sample.n, high - low + 1
  local function letter(how, place)
    local function code(i) return values[i] and LETTER_CLASS[values[i]:byte(place(values[i])) or 0] end
    sample:column(of, how, 8, mapped(n, function(i) return code(i) and floor(code(i) * 8 / 62) or -1 end), CLASSES)
    sample:column(of, how .. ", each character", 62, mapped(n, function(i) return code(i) or -1 end), LETTERS, { alone = true })
  end
  letter("first character", function() return 1 end)
  letter("last character", function(value) return #value end)
  if range > 1 then
    local k = min(range, 11)
    local function class(length) return floor((length - low) * k / range) end
    local function length(i) return values[i] and #values[i] >= low and #values[i] <= high and #values[i] end
    sample:column(of, "length", k, mapped(n, function(i) return length(i) and class(length(i)) or -1 end), statistics.even(low, high, k, class))
    if k < range then
      sample:column(of, "each length", range, mapped(n, function(i) return length(i) and length(i) - low or -1 end), equal(range), { alone = true })
    end
  end
  if high < 10 then return end
  local pairs_of, found = 0, { 0, 0, 0 }
  for i = 1, min(n, TEXTS) do
    local value = values[i]
    if value then
      local last = min(#value, 30)
      local a, b, c = 0, 0, 0
      for at = 1, last do
        local code = value:byte(at)
        if code == a then found[1] = found[1] + 1 end
        if code == b then found[2] = found[2] + 1 end
        if code == c then found[3] = found[3] + 1 end
        a, b, c = code, a, b
      end
      pairs_of = pairs_of + last
    end
  end
  local alike = 0
  for place = 0, 61 do alike = alike + LETTERS[place] ^ 2 end
  for distance = 1, 3 do
    local starts = 0
    for i = 1, min(n, TEXTS) do
      if values[i] then starts = starts + max(min(#values[i], 30) - distance, 0) end
    end
    sample:alike(format("characters of %s, %d apart", of, distance), found[distance], starts, alike)
  end
  -- Two texts of eight characters and more are not the same by chance.
  sample:repeats(of, mapped(n, function(i) return values[i] end), 62 ^ -8)
end

-- The first `last` characters are random digits; those of `others` are compared with other columns.
local function digits(sample, of, values, last, others)
  for place = 1, last do
    sample:column(of, format("digit %d", place), 10, mapped(sample.n, function(i)
      local digit = (values[i]:byte(place) or 0) - 48
      return digit >= 0 and digit <= 9 and digit or -1
    end), equal(10), { alone = not others[place] })
  end
end

-- Exactly one tenth of the rows of each piece, of `size` rows, chosen at random.
local function a_tenth(sample, of, values, pieces, size)
  sample:column(of, "", 2, values, nil)
  for _, block in ipairs { 10, 25 } do
    if size >= 2 * block then
      sample:counted_blocks(of, block, values, pieces, 7, statistics.hypergeometric(size, size / 10, block, 7), { alone = true, is_sequence = true })
    end
  end
end

local function numbers(list, column, scale)
  scale = scale or 1
  return mapped(#list, function(i)
    local value = tonumber(list[i][column])
    return value and floor(value * scale + 0.5)
  end)
end

local function strings(list, column) return mapped(#list, function(i) return list[i][column] end) end

local function column_of(list, name) return mapped(#list, function(i) return list[i][name] end) end

-- What every loaded row may depend on: its number in the table, from 1 to `last`, and the piece, of `size` rows.
-- `chosen`: a variable that is drawn from what the rows before have left, which shows in small pieces.
local function place(sample, list, key, last, state, size, chosen)
  given(sample, "its number", "in tenths", 10, function(i) return min(9, max(0, floor((key[i] - 1) * 10 / last))) end)
  given(sample, "its number", "last digit", 10, function(i) return key[i] % 10 end)
  local w, d = column_of(list, "w"), column_of(list, "d")
  if w[1] and state.warehouses > 1 then given(sample, "the warehouse", "in tens", 10, function(i) return w[i] % 10 end) end
  if d[1] then given(sample, "the district", "", 10, function(i) return d[i] - 1 end) end
  sample:key("the row before", column_of(list, "piece"), true, size < 1000 and { [chosen or ""] = true } or nil)
  sample:key("the same number of another piece", key)
end

-- Rows without ORIGINAL, of a text that one tenth of the rows have it in.
local function data(sample, of, list, column, size)
  local values, original = strings(list, column), {}
  for i = 1, #list do
    original[i] = values[i]:find("ORIGINAL", 1, true) and 1 or 0
    if original[i] == 1 then values[i] = false end
  end
  a_tenth(sample, of .. " with ORIGINAL", original, column_of(list, "piece"), size)
  text(sample, of, values, 26, 50)
end

-- Tables -------------------------------------------------------------------------------------------------------------

-- Clause, sentence; `pieces(state)`: lists of what to put into `from`, and `w` and `d`; `make(list, state)`: the sample
-- of rows, each a list of the columns of `from`.
local TABLES = {}

local function table_of(clause, sentence, from, pieces, make)
  TABLES[#TABLES + 1] = { clause, sentence, from = from, pieces = pieces, make = make }
end

local function districts(state)
  local list = {}
  for w = 1, state.warehouses do
    for d = 1, tpcc.DISTRICTS do list[#list + 1] = { w = w, d = d, w, d } end
  end
  return list, state.customers
end

local PARTS = 10

local function parts_of_items(state)
  local list = {}
  for part = 1, PARTS do list[part] = { (part - 1) * state.items / PARTS + 1, part * state.items / PARTS } end
  return list, state.items / PARTS
end

-- The same part of all warehouses, part after part.
local function parts_of_stock(state)
  local list = {}
  for part = 1, PARTS do
    for w = 1, state.warehouses do
      list[#list + 1] = { w = w, w, (part - 1) * state.items / PARTS + 1, part * state.items / PARTS }
    end
  end
  return list, state.items / PARTS, true
end

table_of("4.3.3.1", "values of item do not depend on each other",
  "SELECT i_id, i_im_id, i_name, i_price, i_data, s_order_cnt FROM {item} JOIN {stock} ON s_w_id = 1 AND s_i_id = i_id"
    .. " WHERE i_id BETWEEN %d AND %d ORDER BY i_id", parts_of_items,
  function(list, state)
    local sample = statistics.sample("item", #list)
    place(sample, list, numbers(list, 1), state.items, state, state.items / PARTS, "i_data with ORIGINAL")
    even(sample, "i_im_id", numbers(list, 2), 1, 10000)
    text(sample, "i_name", strings(list, 3), 14, 24)
    even(sample, "i_price", numbers(list, 4, 100), 100, 10000)
    data(sample, "i_data", list, 5, state.items / PARTS)
    often(sample, "s_order_cnt", numbers(list, 6))
    return sample
  end)

local DIST = {}
for d = 1, tpcc.DISTRICTS do DIST[d] = format("s_dist_%02d", d) end

table_of("4.3.3.1", "values of stock do not depend on each other",
  "SELECT s_i_id, s_quantity + s_ytd, s_data, " .. table.concat(DIST, ", ") .. ", s_order_cnt, s_remote_cnt, i_price, i_data"
    .. " FROM {stock} JOIN {item} ON i_id = s_i_id WHERE s_w_id = %d AND s_i_id BETWEEN %d AND %d ORDER BY s_i_id", parts_of_stock,
  function(list, state)
    local sample = statistics.sample("stock", #list)
    place(sample, list, numbers(list, 1), state.items, state, state.items / PARTS, "s_data with ORIGINAL")
    -- 91 are added when the stock is low: what was loaded, 10 to 100, is known.
    even(sample, "s_quantity", mapped(#list, function(i) return ((tonumber(list[i][2]) or 0) - 10) % 91 + 10 end), 10, 100)
    data(sample, "s_data", list, 3, state.items / PARTS)
    for d = 1, tpcc.DISTRICTS do text(sample, DIST[d], strings(list, 3 + d), 24, 24) end
    -- Orders do not know what is in the stock.
    local at = 3 + tpcc.DISTRICTS
    often(sample, "s_order_cnt", numbers(list, at + 1))
    often(sample, "s_remote_cnt", numbers(list, at + 2))
    local price, name = numbers(list, at + 3, 100), strings(list, at + 4)
    given(sample, "i_price", "in tenths", 10, function(i) return min(9, max(0, floor((price[i] - 100) / 990.1))) end)
    given(sample, "i_data with ORIGINAL", "", 2, function(i) return name[i]:find("ORIGINAL", 1, true) and 1 or 0 end)
    return sample
  end)

table_of("4.3.3.1", "values of customer do not depend on each other",
  "SELECT c_id, c_first, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_discount, c_credit, c_data, c_last,"
    .. " c_payment_cnt - 1, c_delivery_cnt FROM {customer}"
    .. " WHERE c_w_id = %d AND c_d_id = %d ORDER BY c_id", districts,
  function(list, state)
    local sample = statistics.sample("customer", #list)
    local number = numbers(list, 1)
    place(sample, list, number, state.customers, state, state.customers, "c_credit")
    text(sample, "c_first", strings(list, 2), 8, 16)
    for i, name in ipairs { "c_street_1", "c_street_2", "c_city" } do text(sample, name, strings(list, 2 + i), 10, 20) end
    text(sample, "c_state", strings(list, 6), 2, 2)
    digits(sample, "c_zip", strings(list, 7), 4, { true, false, false, true })
    digits(sample, "c_phone", strings(list, 8), 16, { [1] = true, [2] = true, [9] = true, [16] = true })
    even(sample, "c_discount", numbers(list, 9, 10000), 0, 5000)
    local bad = mapped(#list, function(i) return list[i][10] == "BC" and 1 or 0 end)
    a_tenth(sample, "c_credit", bad, column_of(list, "piece"), state.customers)
    text(sample, "c_data", mapped(#list, function(i) return bad[i] == 0 and list[i][11] end), 300, 500)
    local names, indexes = tpcc.last_names(state.customers), {}
    for i = 0, names - 1 do indexes[tpcc.last_name(i)] = i end
    local _, _, _, _, weights, all = tpcc.favored(255, 0, names - 1)
    sample:skewed("c_last", #list, mapped(#list, function(i) return number[i] > names and indexes[list[i][12]] or false end), 0, weights, all,
      function() return state.c_last end, state.c_last)
    -- The first customers have each name once.
    sample:depends("c_last", "its number")
    -- Who pays by name is the middle one of those with the name, by first name.
    often(sample, "c_payment_cnt", numbers(list, 13))
    often(sample, "c_delivery_cnt", numbers(list, 14))
    sample:depends("c_payment_cnt", "c_last")
    sample:depends("c_payment_cnt", "c_first")
    return sample
  end)

table_of("4.3.3.1", "values of district do not depend on each other",
  "SELECT d_id, d_tax, d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM {district} WHERE d_w_id = %d AND d_id = %d", districts,
  function(list, state)
    local sample = statistics.sample("district", #list)
    local w = column_of(list, "w")
    given(sample, "the district", "", 10, function(i) return list[i].d - 1 end)
    if state.warehouses > 1 then given(sample, "the warehouse", "in tens", 10, function(i) return w[i] % 10 end) end
    sample:key("the district before", mapped(#list, function() return 1 end), true)
    sample:key("the same number of another warehouse", column_of(list, "d"))
    even(sample, "d_tax", numbers(list, 2, 10000), 0, 2000)
    text(sample, "d_name", strings(list, 3), 6, 10)
    for i, name in ipairs { "d_street_1", "d_street_2", "d_city" } do text(sample, name, strings(list, 3 + i), 10, 20) end
    text(sample, "d_state", strings(list, 7), 2, 2)
    digits(sample, "d_zip", strings(list, 8), 4, { true, false, false, true })
    return sample
  end)

table_of("4.3.3.1", "values of the loaded history do not depend on each other",
  "SELECT h_c_id, h_data FROM {history} WHERE h_w_id = %d AND h_d_id = %d AND h_data NOT LIKE '%%    %%' ORDER BY h_c_id", districts,
  function(list, state)
    local sample = statistics.sample("history", #list)
    place(sample, list, numbers(list, 1), state.customers, state, state.customers)
    text(sample, "h_data", strings(list, 2), 12, 24)
    return sample
  end)

table_of("4.3.3.1", "values of the loaded orders do not depend on each other",
  "SELECT o_id, o_c_id, o_carrier_id, o_ol_cnt, c_discount, c_credit FROM {orders} JOIN {customer} ON c_w_id = o_w_id AND c_d_id = o_d_id"
    .. " AND c_id = o_c_id WHERE o_w_id = %d AND o_d_id = %d AND o_id <= #customers ORDER BY o_id", districts,
  function(list, state)
    local sample, n = statistics.sample("order", #list), #list
    local number, c, carrier, customers = numbers(list, 1), numbers(list, 2), numbers(list, 3), state.customers
    local piece, delivered = column_of(list, "piece"), tpcc.delivered(customers)
    place(sample, list, number, customers, state, customers, "o_c_id")
    sample:column("o_c_id", "in tenths", 10, mapped(n, function(i) return floor((c[i] - 1) * 10 / customers) end))
    sample:column("o_c_id", "last digit", 10, mapped(n, function(i) return c[i] % 10 end))
    -- A permutation, and none that goes by rule.
    local k = 10
    local function class(step) return floor((step - 1) * k / (customers - 1)) end
    sample:column("o_c_id", "step from the order before", k, mapped(n, function(i)
      return i > 1 and piece[i] == piece[i - 1] and c[i] ~= c[i - 1] and class((c[i] - c[i - 1]) % customers) or -1
    end), statistics.even(1, customers - 1, k, class), { alone = true, is_sequence = true })
    sample:column("o_carrier_id", "", 10, mapped(n, function(i) return number[i] <= delivered and (carrier[i] or 0) - 1 or -1 end), equal(10))
    even(sample, "o_ol_cnt", numbers(list, 4), 5, 15)
    sample:key("the same customer in another district", c, false, { o_c_id = true })
    local discount = numbers(list, 5, 10000)
    given(sample, "c_discount", "in tenths", 10, function(i) return min(9, floor(discount[i] / 500.1)) end)
    given(sample, "c_credit", "", 2, function(i) return list[i][6] == "BC" and 1 or 0 end)
    return sample
  end)

table_of("4.3.3.1", "values of the loaded order lines do not depend on each other",
  "SELECT ol_o_id, ol_number, ol_i_id, ol_amount, ol_dist_info FROM {order_line} WHERE ol_w_id = %d AND ol_d_id = %d"
    .. " AND ol_o_id <= #customers ORDER BY ol_o_id, ol_number",
  function(state)
    local list = districts(state)
    return list, state.customers * 10
  end,
  function(list, state)
    local sample, n = statistics.sample("order line", #list), #list
    local order, number, delivered = numbers(list, 1), numbers(list, 2), tpcc.delivered(state.customers)
    local w, d = column_of(list, "w"), column_of(list, "d")
    given(sample, "its order", "in tenths", 10, function(i) return floor((order[i] - 1) * 10 / state.customers) end)
    given(sample, "its order", "last digit", 10, function(i) return order[i] % 10 end)
    given(sample, "ol_number", "", 15, function(i) return min(15, number[i]) - 1 end)
    given(sample, "the district", "", 10, function(i) return d[i] - 1 end)
    if state.warehouses > 1 then given(sample, "the warehouse", "in tens", 10, function(i) return w[i] % 10 end) end
    sample:key("the line before", column_of(list, "piece"), true)
    sample:key("the same line of another district", mapped(n, function(i) return order[i] * 16 + number[i] end))
    local items, cents = numbers(list, 3), numbers(list, 4, 100)
    even(sample, "ol_i_id", items, 1, state.items)
    even(sample, "ol_amount", mapped(n, function(i) return order[i] > delivered and cents[i] end), 1, 999999)
    text(sample, "ol_dist_info", strings(list, 5), 24, 24)
    -- An item may be in an order twice.
    local found, pairs_of, first = 0, 0, 1
    for i = 1, n do
      if i > 1 and (order[i] ~= order[i - 1] or d[i] ~= d[i - 1] or w[i] ~= w[i - 1]) then first = i end
      for j = first, i - 1 do
        pairs_of = pairs_of + 1
        if items[j] == items[i] then found = found + 1 end
      end
    end
    sample:alike("items of an order", found, pairs_of, 1 / state.items)
    sample:repeats("ol_amount", mapped(n, function(i) return order[i] > delivered and cents[i] or nil end), 1 / 999999)
    return sample
  end)

-- Since the load. Customers and items follow constants that differ between runs: they are what others may depend on.

local function since_load(clause, sentence, from, make)
  table_of(clause, sentence, from, function(state)
    local list = districts(state)
    return list, max(20, rows.MOST / #list)
  end, make)
  TABLES[#TABLES].is_of_runs = true
end

since_load("2.4.1", "values of the orders since the load do not depend on each other",
  "SELECT o_id, o_c_id, o_ol_cnt, o_all_local, o_carrier_id FROM {orders} WHERE o_w_id = %d AND o_d_id = %d AND o_id > #customers ORDER BY o_id LIMIT #most",
  function(list, state)
    local sample, n = statistics.sample("order", #list), #list
    local number, c, local_, carrier = numbers(list, 1), numbers(list, 2), numbers(list, 4), numbers(list, 5)
    local w, d = column_of(list, "w"), column_of(list, "d")
    given(sample, "o_id", "last digit", 10, function(i) return number[i] % 10 end)
    given(sample, "o_c_id", "in tenths", 10, function(i) return floor((c[i] - 1) * 10 / state.customers) end)
    given(sample, "o_c_id", "last digit", 10, function(i) return c[i] % 10 end)
    given(sample, "o_c_id", "rest of a division by 11", 11, function(i) return c[i] % 11 end)
    given(sample, "the district", "", 10, function(i) return d[i] - 1 end)
    if state.warehouses > 1 then given(sample, "the warehouse", "in tens", 10, function(i) return w[i] % 10 end) end
    local piece = column_of(list, "piece")
    even(sample, "o_ol_cnt", numbers(list, 3), 5, 15)
    sample:column("o_all_local", "", 2, local_)
    sample:depends("o_all_local", "o_ol_cnt")
    -- Of one district: a delivery takes one carrier for all its orders.
    sample:column("o_carrier_id", "", 10, mapped(n, function(i) return d[i] == 1 and (carrier[i] or 0) - 1 or -1 end), equal(10))
    sample:key("the order before", piece, false, { o_all_local = true })
    sample:key("the same customer", mapped(n, function(i) return (w[i] * 16 + d[i]) * 4096 + c[i] end), false, { o_all_local = true })
    return sample
  end)

since_load("2.4.1.5", "values of the order lines since the load do not depend on each other",
  "SELECT ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity FROM {order_line} WHERE ol_w_id = %d AND ol_d_id = %d"
    .. " AND ol_o_id > #customers ORDER BY ol_o_id, ol_number LIMIT #most",
  function(list, state)
    local sample, n = statistics.sample("order line", #list), #list
    local order, number, item, supply = numbers(list, 1), numbers(list, 2), numbers(list, 3), numbers(list, 4)
    local w, d, piece = column_of(list, "w"), column_of(list, "d"), column_of(list, "piece")
    given(sample, "ol_number", "", 15, function(i) return min(15, number[i]) - 1 end)
    given(sample, "ol_i_id", "in tenths", 10, function(i) return floor((item[i] - 1) * 10 / state.items) end)
    given(sample, "ol_i_id", "last digit", 10, function(i) return item[i] % 10 end)
    given(sample, "the district", "", 10, function(i) return d[i] - 1 end)
    if state.warehouses > 1 then
      sample:column("a remote line", "", 2, mapped(n, function(i) return supply[i] ~= w[i] and 1 or 0 end))
    end
    even(sample, "ol_quantity", numbers(list, 5), 1, 10)
    -- The number of warehouses of a run is the same for all of its lines.
    sample:key("the line before", mapped(n, function(i) return piece[i] * 10000000 + order[i] end), true)
    sample:key("the same item", item)
    return sample
  end)

TABLES[#TABLES + 1] = {
  "2.5.1", "values of the payments since the load do not depend on each other",
  from = "SELECT h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount FROM {history} WHERE h_data LIKE '%%    %%' LIMIT #most",
  pieces = function() return { {} }, rows.MOST end, is_of_runs = true,
  make = function(list, state)
    local sample, n = statistics.sample("payment", #list), #list
    local w, d, c_w, c_d, c = numbers(list, 1), numbers(list, 2), numbers(list, 3), numbers(list, 4), numbers(list, 5)
    given(sample, "h_c_id", "in tenths", 10, function(i) return floor((c[i] - 1) * 10 / state.customers) end)
    given(sample, "h_c_id", "last digit", 10, function(i) return c[i] % 10 end)
    if state.warehouses > 1 then
      given(sample, "h_w_id", "in tens", 10, function(i) return w[i] % 10 end)
      given(sample, "a remote customer", "", 2, function(i) return c_w[i] ~= w[i] and 1 or 0 end)
      sample:column("district of a remote customer", "", 10, mapped(n, function(i) return c_w[i] ~= w[i] and c_d[i] - 1 or -1 end), equal(10))
    end
    -- In each district a name has another customer in the middle.
    sample:depends("h_d_id", "h_c_id")
    sample:depends("district of a remote customer", "h_c_id")
    sample:column("h_d_id", "", 10, mapped(n, function(i) return d[i] - 1 end), equal(10))
    even(sample, "h_amount", numbers(list, 6, 100), 100, 500000)
    sample:key("the same customer", mapped(n, function(i) return (c_w[i] * 16 + c_d[i]) * 4096 + c[i] end), false,
      { h_d_id = true, ["district of a remote customer"] = true })
    return sample
  end,
}

-- The check ----------------------------------------------------------------------------------------------------------

-- Some of the pieces, spread over all, with about `MOST` rows. `neighbors`: the first ones are neighbors.
local function chosen(pieces, size, neighbors)
  local number, list = min(#pieces, max(2, math.ceil(rows.MOST / size))), {}
  for i = 0, number - 1 do
    local at = floor(i * #pieces / number) + 1
    if neighbors and i < 2 then at = i + 1 end
    list[i + 1] = pieces[at]
  end
  return list
end

local ENOUGH = 100 -- fewer rows are not judged: the isolation tests make some that are not drawn at random

for _, one in ipairs(TABLES) do
  -- Of all these statements, only a new order's carrier may be missing.
  local number = 0
  for column in one.from:match("^SELECT (.-) FROM"):gmatch("[^,]+") do
    number = number + 1
    if column:find("o_carrier_id", 1, true) then one.nullable = number end
  end
  one.columns = number
end

local function read(connection, dialect, set, state, one)
  local pieces, size, neighbors = one.pieces(state)
  local list, most = {}, floor(max(size, 20))
  for number, piece in ipairs(chosen(pieces, size, neighbors)) do
    local text = format(one.from, unpack(piece)):gsub("#customers", state.customers):gsub("#most", most)
    local result = connection:query(dialect.of_set(text, set))
    for _ = 1, result.nrows do
      local row = result:fetch_row()
      -- Rows with a NULL where there should be none are reported by others.
      local is_whole = true
      for column = 1, one.columns do is_whole = is_whole and (row[column] ~= nil or column == one.nullable) end
      if is_whole then
        row.piece, row.w, row.d = number, piece.w, piece.d
        list[#list + 1] = row
      end
    end
    if #list >= rows.MOST * 3 then break end
  end
  return list
end

local SHOWN = 5

--- Tests a table; false if it is wrong.
function rows.are_random(connection, dialect, set, state, number, sets)
  local one = TABLES[number]
  if one.is_of_runs then
    -- Runs of the same seed draw the same, and those of an older version noted none.
    if state["run again"] then
      tpcc.tell_held(tpcc.label(set, one) .. "holds so far, but is not tested: there were several runs with the same seed")
      return true
    end
  end
  local list, wrong = read(connection, dialect, set, state, one), {}
  if #list >= ENOUGH and (not one.is_of_runs or next(state.seeds)) then
    local odd, tests = one.make(list, state):tests(1e-3, function() assay.sleep(0) end)
    table.sort(odd, function(a, b) return a.p < b.p end)
    for _, test in ipairs(odd) do
      if test.p < FALSE_ALARM / (tests * #TABLES * sets) then wrong[#wrong + 1] = format("  %s (p < %.0e)", test.text, max(test.p, 1e-99)) end
    end
  end
  return tpcc.tell_condition(set, one, wrong, SHOWN)
end

--- How many tables there are, one line of `check` each.
rows.NUMBER = #TABLES

return rows
