--- What a run changed in the tables, to be compared with what its transactions reported: read by the main session
--- before the first transaction and after the last one.
--
-- Sums over all districts and warehouses are exact. Dates, and what was drawn at random, are those of the last orders
-- of some districts, and of all payments in small tables.

local tpcc = require("tpcc_common")

local totals = {}

local floor = math.floor
local DISTRICTS = 30 -- districts of a table set whose orders are looked at, at most
local ORDERS = 100 -- their last orders that are looked at, at most

local start, progress -- when the run started, and for each of these districts how far it was

--- The districts of a table set whose orders are looked at.
function totals.districts_to_look_at(warehouses)
  local all, list = warehouses * tpcc.DISTRICTS, {}
  local number = math.min(all, DISTRICTS)
  for i = 0, number - 1 do
    local district = floor(i * all / number)
    list[i + 1] = { floor(district / tpcc.DISTRICTS) + 1, district % tpcc.DISTRICTS + 1 }
  end
  return list
end

--- Which items and customers of orders NURand favors, with the constants of this run: a function for each that says it
--- of a number; and the shares that they should have.
local function favored(customers, items)
  local function of(name, a, last)
    local flags, share = unpack(assay.constant(("tpcc %s favored of %d"):format(name, last), function()
      return { tpcc.favored(a, 1, last) }
    end))
    local constant = tpcc.constant_of_run(a, a + 1)
    return function(number) return flags:byte((number - 1 - constant) % last + 1) == 49 end, share
  end
  local customer, share_of_customers = of("customers", 1023, customers)
  local item, share_of_items = of("items", 8191, items)
  return { customer = customer, item = item }, share_of_customers, share_of_items
end

--- Counts the last orders of a district since order `from`, and their lines.
local function count_orders(con, dialect, set, w, d, from, is_favored, add)
  local orders = tpcc.rows(con, dialect:last_orders(set, w, d, from, ORDERS))
  local first
  for _ = 1, orders.nrows do
    local o, c = unpack(orders:fetch_row(), 1, 2)
    first = tonumber(o)
    add("orders_drawn", 1)
    if is_favored.customer(tonumber(c)) then add("orders_of_favored_customers", 1) end
  end
  if not first then return end
  local lines = tpcc.rows(con, dialect:lines_from(set, w, d, first))
  for _ = 1, lines.nrows do
    add("lines_drawn", 1)
    if is_favored.item(tonumber((unpack(lines:fetch_row(), 1, 1)))) then add("lines_of_favored_items", 1) end
  end
end

-- What is counted after a run only.
local COUNTED = {
  "orders_looked_at", "orders_dated", "lines_looked_at", "lines_dated", "orders_drawn", "orders_of_favored_customers", "lines_drawn",
  "lines_of_favored_items", "order_seconds", "delivery_seconds", "payment_seconds",
}

-- Seconds of a run in which something was committed are compared with the dates in the tables, as far as this.
local SECONDS = 600

--- Notes that the session committed a `what` just now, and where. The first of all sessions in a second counts it.
local seen, wanted = {}, {}
function totals.note(what, set, w, d)
  local now = os.time()
  local of = seen[what]
  if not of then
    of = { first = now }
    seen[what] = of
  end
  if of[now] or now - of.first > SECONDS then return end
  if d then
    if not wanted.is_known then
      for _, one in ipairs(totals.districts_to_look_at(tpcc.session.warehouses_of_tables)) do wanted[one[1] * 10 + one[2]] = true end
      wanted.is_known = true
    end
    if not wanted[w * 10 + d] then return end
  end
  of[now] = true
end

--- Adds the seconds of this session to those of the others: each once.
function totals.tell()
  for _, what in ipairs { "order", "delivery", "payment" } do
    local number = 0
    for second in pairs(seen[what] or {}) do
      if second ~= "first" and assay.claim(("tpcc %s in %d"):format(what, second)) == 0 then number = number + 1 end
    end
    assay.total(what .. "_seconds_noted", number)
  end
end

--- Adds the dates that a statement finds to a set of them.
local function add_dates(con, dates, question)
  local result = tpcc.rows(con, question)
  for _ = 1, result.nrows do dates[result:fetch_row()[1]] = true end
end

local function number_of(set)
  local number = 0
  for _ in pairs(set) do number = number + 1 end
  return number
end

--- Reads them: before the first transaction, or after the last one.
function totals.read(is_after)
  local settings = tpcc.settings()
  local con, dialect = tpcc.connect(settings)
  local sums, now = {}, tpcc.row(con, dialect.instant)
  local function add(name, number) sums[name] = (sums[name] or 0) + (tonumber(number) or 0) end
  if not is_after then start, progress = now, {} end
  -- A clock that was set back says nothing about dates.
  local has_dates = start and start <= now
  for _, name in ipairs(COUNTED) do add(name, 0) end
  local dates = { order = {}, delivery = {}, payment = {} }
  for set = 1, settings.sets do
    local state = tpcc.read_state(con, set)
    local row = { tpcc.row(con, dialect:totals(set)) }
    for i, total in ipairs(tpcc.TOTALS) do add(total[1], row[i]) end
    if tpcc.is_small(state.warehouses, settings.sets) then
      local found, dated = tpcc.row(con, dialect:dated_payments(set, start or now))
      add("payments_found", found)
      add("payments_dated", is_after and has_dates and dated or 0)
      if is_after and has_dates and dialect.payment_dates then add_dates(con, dates.payment, dialect:payment_dates(set, start)) end
    end
    local is_favored = is_after and favored(state.customers, state.items)
    for i, of in ipairs(totals.districts_to_look_at(state.warehouses)) do
      local w, d = of[1], of[2]
      local order, delivery = tpcc.row(con, dialect:progress(set, w, d))
      local key = set .. " " .. i
      if not is_after then
        progress[key] = { tonumber(order), tonumber(delivery) }
      elseif progress and progress[key] then
        local first_order, first_delivery = unpack(progress[key])
        count_orders(con, dialect, set, w, d, first_order, is_favored, add)
        if has_dates then
          local found, dated = tpcc.row(con, dialect:dated_orders(set, w, d, first_order, start, now))
          add("orders_looked_at", found)
          add("orders_dated", dated)
          found, dated = tpcc.row(con, dialect:dated_lines(set, w, d, first_delivery, tonumber(delivery), start, now))
          add("lines_looked_at", found)
          add("lines_dated", dated)
          if dialect.payment_dates then
            add_dates(con, dates.order, dialect:order_dates(set, w, d, first_order))
            add_dates(con, dates.delivery, dialect:delivery_dates(set, w, d, first_delivery, tonumber(delivery)))
          end
        end
      end
    end
  end
  con:close()
  for what, of in pairs(dates) do add(what .. "_seconds", number_of(of)) end
  for name, sum in pairs(sums) do assay.total(name, sum) end
end

-- Clause, name, total and counter.
local COMPARED = {
  { "2.4.2.2", "orders in the tables", "orders", "new_order" },
  { "2.4.2.2", "orders in the tables by district", "orders_weighted", "orders_weighted" },
  { "2.7.4.2", "deliveries in the tables", "orders_delivered", "orders_delivered" },
  { "2.7.4.2", "deliveries in the tables by district", "orders_delivered_weighted", "orders_delivered_weighted" },
  { "2.5.2.2", "cents paid in the tables", "cents_paid", "cents_paid" },
  { "2.5.2.2", "cents paid in the tables by district", "cents_paid_weighted", "cents_paid_weighted" },
  { "2.5.2.2", "cents paid to warehouses", "cents_paid_to_warehouses", "cents_paid" },
}

function totals.declare_rules(rule)
  local session, most = tpcc.session, {}
  for _, total in ipairs(tpcc.TOTALS) do most[total[1]] = total[2] end
  for _, one in ipairs(COMPARED) do rule(one[1], one[2], { total = one[3], of = one[4], most = most[one[3]] }) end
  rule("2.4.2.2", "dates of orders", { part_total = "orders_dated", whole_total = "orders_looked_at", low = 0.9 })
  rule("2.7.4.2", "dates of deliveries", { part_total = "lines_dated", whole_total = "lines_looked_at", low = 0.9 })
  if session.is_small then
    rule("2.5.2.2", "payments in the tables", { total = "payments_found", of = "payment", most = 1 })
    rule("2.5.2.2", "dates of payments", { part_total = "payments_dated", whole_total = "payments_found", low = 0.9 })
  end
  -- A transaction may start in another second than it ends, so that a part is allowed to be missing.
  for _, one in ipairs { { "2.4.2.2", "order" }, { "2.7.4.2", "delivery" }, { "2.5.2.2", "payment" } } do
    if tpcc.dialect().payment_dates and (one[2] ~= "payment" or session.is_small) then
      rule(one[1], ("seconds with the date of %s %s"):format(one[2] == "order" and "an" or "a", one[2]),
        { part_total = one[2] .. "_seconds", whole_total = one[2] .. "_seconds_noted", low = 0.6 })
    end
  end
  local _, customers, items = favored(session.customers, session.items)
  rule("2.1.6", "favored customers in the tables",
    { part_total = "orders_of_favored_customers", whole_total = "orders_drawn", low = 0.9 * customers, high = 1.1 * customers })
  rule("2.1.6", "favored items in the tables",
    { part_total = "lines_of_favored_items", whole_total = "lines_drawn", low = 0.95 * items, high = 1.05 * items })
end

return totals
