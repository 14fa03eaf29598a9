--- After a kill check: looks for what the server acknowledged before and after the crash, of every transaction that
--- writes.
--
-- Keys start with a number that says what they are. The number of a table set: an order (set, warehouse, district,
-- order, customer). 10,000 more: an order that was delivered (set, warehouse, district, order, carrier). A negative
-- set: a payment (set, district, district of the customer, cents), which may occur several times; its districts are
-- numbered over all warehouses.

local tpcc = require("tpcc_common")

local verify = {}

local format, floor = string.format, math.floor
local DELIVERED = 10000
local SHOWN = 5 -- missing ones that are shown

local function district(w, d) return w * tpcc.DISTRICTS + d - 1 end

--- Notes an order that was committed.
function verify.order(set, w, d, o, c) assay.acknowledge(set, w, d, o, c) end

--- Notes an order whose delivery was committed.
function verify.delivery(set, w, d, o, carrier) assay.acknowledge(DELIVERED + set, w, d, o, carrier) end

--- Notes a payment that was committed.
function verify.payment(set, w, d, c_w, c_d, cents) assay.acknowledge(-set, district(w, d), district(c_w, c_d), cents) end

--- The rows of a question of the dialect, each a list.
local function rows(connection, name, set, ...)
  local result = tpcc.rows(connection, require(tpcc.dialect().check_module).question(name, set, ...))
  local left = result.nrows
  return function()
    left = left - 1
    if left >= 0 then return result:fetch_row() end
  end
end

--- How often each of these payments of a table set is in its history: key → number.
local function find_payments(connection, set, wanted)
  local found = {}
  for row in rows(connection, "payments", set) do
    local key = format("%d %d %d", district(tonumber(row[1]), tonumber(row[2])), district(tonumber(row[3]), tonumber(row[4])),
      floor(tonumber(row[5]) * 100 + 0.5))
    if wanted[key] then found[key] = (found[key] or 0) + 1 end
  end
  return found
end

--- Verifies everything that was acknowledged; false if something is missing.
function verify.all()
  local connection = tpcc.connect(tpcc.settings())
  local missing, shown, payments = { 0, 0, 0 }, {}, {}
  local function miss(kind, ...)
    missing[kind] = missing[kind] + 1
    if #shown < SHOWN then shown[#shown + 1] = format(...) end
  end
  -- Keys are sorted: one query reads the orders of a district.
  local seen, orders = nil, nil
  for a, b, c, d, e in assay.acknowledged() do
    if a < 0 then
      local of_set = payments[-a] or {}
      local key = format("%d %d %d", b, c, d)
      payments[-a], of_set[key] = of_set, (of_set[key] or 0) + 1
    else
      local set = a % DELIVERED
      local place = set .. " " .. b .. " " .. c .. " " .. tostring(a > DELIVERED)
      if place ~= seen then
        seen, orders = place, {}
        for row in rows(connection, "orders_from", set, b, c, d) do
          orders[tonumber(row[1])] = { tonumber(row[2]), tonumber(row[3]) }
        end
      end
      local order = orders[d] or {}
      if a < DELIVERED and order[1] ~= e then
        miss(1, "  set %d, warehouse %d, district %d: order %d of customer %d", set, b, c, d, e)
      elseif a > DELIVERED and order[2] ~= e then
        miss(2, "  set %d, warehouse %d, district %d: the delivery of order %d by carrier %d", set, b, c, d, e)
      end
    end
  end
  for set, wanted in pairs(payments) do
    local found = find_payments(connection, set, wanted)
    for key, times in pairs(wanted) do
      local place, _, cents = key:match("(%d+) (%d+) (%d+)")
      for _ = (found[key] or 0) + 1, times do
        miss(3, "  set %d, warehouse %d, district %d: a payment of %.2f", set, floor(place / tpcc.DISTRICTS),
          place % tpcc.DISTRICTS + 1, cents / 100)
      end
    end
  end
  connection:disconnect()
  if missing[1] + missing[2] + missing[3] == 0 then return true end
  assay.log(format("acknowledged, but missing: orders %d, deliveries %d, payments %d; for example\n%s", missing[1], missing[2], missing[3],
    table.concat(shown, "\n")))
  return false
end

return verify
