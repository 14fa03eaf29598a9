--- New-Order (TPC-C 5.11, clause 2.4): an order of 5 to 15 lines, one of a hundred from another warehouse.

local tpcc = require("tpcc_common")
local customers = require("tpcc_customers")
local acknowledged = require("tpcc_verify")
local totals = require("tpcc_totals")

local session, uniform, chance, count = tpcc.session, sysbench.rand.uniform, tpcc.chance, assay.count
local floor, tonumber = math.floor, tonumber

--- Seconds to key it in, and to think afterwards on average (5.2.5.7).
local new_order = { name = "new_order", keying = 18, thinking = 12 }

--- 2.4.1.5.2: the warehouse an order line is supplied from.
function supply_warehouse(w)
  if chance(1) then return tpcc.another_warehouse(w) end
  return w
end

local function random_item() return nurand(8191, session.c_for_items, 1, session.items) end

--- 2.4.1
function new_order.draw(input, home)
  input.d, input.c = uniform(1, tpcc.DISTRICTS), customers.random()
  local lines = uniform(5, 15)
  local item, supply, quantity, number = input.item, input.supply, input.quantity, input.number
  input.lines, input.remote = lines, 0
  input.unused = chance(1)
  -- Sorted by warehouse and item, so that two orders lock their stock in the same order; `number` is the line as
  -- entered. The unused item, which is entered last, stays last.
  local sorted = input.unused and lines - 1 or lines
  for n = 1, lines do
    local w, i = supply_warehouse(home), random_item()
    if w ~= home then input.remote = input.remote + 1 end
    if n > sorted then i = session.items + 1 end
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

local function cents(amount) return floor(amount * 100 + 0.5) end

--- 2.4.2. The number of the order, and its total; nil when it was rolled back.
function new_order.by_statements(set, w, input)
  local defer, d, c, lines = session.defer, input.d, input.c, input.lines
  local item, supply, quantity, number = input.item, input.supply, input.quantity, input.number
  defer(session.begin)
  local discount, _, _, w_tax = set.order_customer:row(w, d, c)
  local o, d_tax = set.order_district:row(w, d)
  o = tonumber(o)
  if session.history then session.history.count(session.counter(input.set, w, d), o) end
  defer(set.next_order, o + 1, w, d)
  defer(set.insert_order, o, d, w, c, lines, input.remote == 0 and 1 or 0)
  defer(set.insert_new_order, o, d, w)
  local select_item, select_stock, update_stock, insert_line = set.item, set.stock[d], set.update_stock, set.insert_line
  local sum = 0
  for n = 1, lines do
    local i, from, amount = item[n], supply[n], quantity[n]
    local price, _, i_data = select_item:row(i)
    if not price then -- 2.4.1.4: an unused item number; what was done is undone
      session.rollback:execute()
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
  session.commit:execute()
  return o, sum / 100 * (1 - discount) * (1 + w_tax + d_tax)
end

local FAVORED = ("1"):byte()
local favored_items -- see `tpcc.favored`

local function count_order(input, home, district)
  local lines, item, supply = input.lines, input.item, input.supply
  count("order_districts", input.d)
  if input.d == district then count("orders_of_own_district") end
  count("order_lines", lines)
  if lines <= 7 then count("short_orders") end
  if lines >= 13 then count("long_orders") end
  if input.remote > 0 then
    count("remote_lines", input.remote)
    local far = 0
    for n = 1, lines do
      if tpcc.is_far(home, supply[n]) then far = far + 1 end
    end
    count("far_lines", far)
  end
  local drawn, favored, with_top_bit = input.unused and lines - 1 or lines, 0, 0
  local number, first, second = input.number, nil, nil
  for n = 1, drawn do
    if favored_items:byte((item[n] - 1 - session.c_for_items) % session.items + 1) == FAVORED then favored = favored + 1 end
  end
  for n = 1, drawn do
    if tpcc.has_top_bit(item[n], 8191, session.c_for_items, 1, session.items) then with_top_bit = with_top_bit + 1 end
    if number[n] == 1 then first = item[n] elseif number[n] == 2 then second = item[n] end
  end
  if first == second then count("orders_of_the_same_item") end
  count("items_with_top_bit", with_top_bit)
  count("items", drawn)
  count("favored_items", favored)
  customers.count_number(input.c)
end

--- 2.4.2: the least number of statements, from BEGIN to COMMIT or ROLLBACK; an order that is rolled back has read its
--- last item, and has done everything for the others.
function new_order.least_statements(input)
  return input.unused and 4 + 4 * input.lines or 7 + 4 * input.lines
end

--- Executes it as drawn, and counts what it did.
function new_order.run(input, home, district)
  local o, total = session.by.new_order(session.sets[input.set], home, input)
  count_order(input, home, district)
  if not o then return assay.rolled_back() end
  input.total = total
  count("orders_weighted", tpcc.weight(home, input.d))
  acknowledged.order(input.set, home, input.d, o, input.c)
  totals.note("order", input.set, home, input.d)
end

function new_order.declare_rules(rule)
  rule("2.4.1.4", "new-orders rolled back", { rolled_back = "new_order", low = 0.009, high = 0.011 })
  rule("2.4.1.2", "district of orders", { mean = "order_districts", low = 5.2, high = 5.8 })
  rule("2.4.1.2", "orders of the terminal's district", { part = "orders_of_own_district", whole = "new_order", low = 0.08, high = 0.12 })
  rule("2.4.1.3", "lines per order", { mean = "order_lines", low = 9.5, high = 10.5 })
  rule("2.4.1.3", "orders with 5 to 7 lines", { part = "short_orders", whole = "new_order", low = 0.25, high = 0.295 })
  rule("2.4.1.3", "orders with 13 to 15 lines", { part = "long_orders", whole = "new_order", low = 0.25, high = 0.295 })
  if session.warehouses > 1 then
    rule("2.4.1.5", "remote order lines", { part = "remote_lines", whole = "order_lines", low = 0.0095, high = 0.0105 })
  end
  if session.warehouses > 2 then
    local far = tpcc.far_share()
    rule("2.4.1.5", "remote lines from far warehouses",
      { part = "far_lines", whole = "remote_lines", low = 0.85 * far, high = 1.15 * far })
  end
  local items, items_with, alike
  favored_items, items, items_with, alike = unpack(assay.constant("tpcc items favored of " .. session.items, function()
    return { tpcc.favored(8191, 1, session.items) }
  end))
  rule("2.1.6", "items favored by NURand", { part = "favored_items", whole = "items", low = 0.97 * items, high = 1.03 * items })
  rule("2.1.6", "items with the top bit of NURand",
    { part = "items_with_top_bit", whole = "items", low = 0.9 * items_with, high = 1 - 0.9 * (1 - items_with) })
  rule("2.4.1.5", "first two lines with the same item",
    { part = "orders_of_the_same_item", whole = "new_order", high = math.max(0.02, 2 * alike) })
end

return new_order
