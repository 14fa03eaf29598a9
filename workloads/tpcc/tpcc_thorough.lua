--- `check --thorough`: compares the loaded rows with those that the load makes again from its seed.
--
-- Every value that no transaction may change is compared, as bytes: items; the texts of the stock, and its quantities
-- with what was sold; customers, warehouses and districts except for their balances and counters; the loaded orders,
-- their lines and the loaded history except for what a delivery changes. Dates are not made from the seed. Rows are
-- read in the pieces in which they were loaded, so that memory does not grow with the tables.

local tpcc = require("tpcc_common")
local load = require("tpcc_load")

local thorough = {}

local format = string.format
local SHOWN = 5 -- pieces of a table of which differences are shown

-- What identifies a row within its piece, and is its order; which rows are a piece's; columns that transactions change.
-- `piece`: its numbers, with `#customers`.
local TABLES = {
  item = { key = { "i_id" }, rows = "i_id BETWEEN #first AND #last" },
  warehouse = { key = { "w_id" }, rows = "w_id = #w", free = { "w_ytd" } },
  stock = {
    key = { "s_i_id" }, rows = "s_w_id = #w AND s_i_id BETWEEN #first AND #last",
    free = { "s_ytd", "s_order_cnt", "s_remote_cnt" },
  },
  district = { key = { "d_id" }, rows = "d_w_id = #w AND d_id = #d", free = { "d_ytd", "d_next_o_id" } },
  customer = {
    key = { "c_id" }, rows = "c_w_id = #w AND c_d_id = #d",
    free = { "c_balance", "c_ytd_payment", "c_payment_cnt", "c_delivery_cnt" },
  },
  orders = { key = { "o_id" }, rows = "o_w_id = #w AND o_d_id = #d AND o_id <= #customers" },
  order_line = { key = { "ol_o_id", "ol_number" }, rows = "ol_w_id = #w AND ol_d_id = #d AND ol_o_id <= #customers" },
}

-- Columns whose value may change, but not freely: is `found` what can have become of `made`? Arguments: both, and both
-- rows by name.
local RULES = {
  -- 91 are added when the stock is low.
  s_quantity = function(found, made, row) return (found + row("s_ytd")) % 91 == made % 91 end,
  -- Delivery sets it.
  o_carrier_id = function(found, made) return made == nil or found == made end,
  -- 2.5.2.2: each payment of a customer with bad credit is put in front, and the text cut after 500 characters.
  c_data = function(found, made, row)
    if row("c_payment_cnt") == 1 or row("c_credit") ~= "BC" then return found == made end
    local rest, own = found:match("([^|]*)$"), format("%d %d %d ", row("c_id"), row("c_d_id"), row("c_w_id"))
    if #rest == #found or found:sub(1, #own) ~= own then return false end
    if #found < 500 then return rest == made end
    return #found == 500 and (rest == made:sub(1, #rest) or rest:sub(1, #own) == own:sub(1, #rest))
  end,
}

--- A table's columns: names by place, places by name, and the places to be compared: of texts, of numbers, and of those
--- with a rule.
local function columns_of(name)
  local kinds, own = {}, TABLES[name]
  for _, definition in ipairs(tpcc.dialect().tables) do
    if definition.name == name then
      for column, kind in (definition.columns .. ","):gmatch("([%w_]+) (%u+)") do
        kinds[column] = kind:find("CHAR") and "texts" or kind ~= "TIMESTAMP" and "numbers" or nil
      end
    end
  end
  for _, column in ipairs(own.free or {}) do kinds[column] = nil end
  local columns = { names = {}, places = {}, texts = {}, numbers = {}, ruled = {}, keys = {} }
  for column in load.columns[name]:gmatch("[%w_]+") do
    local place = #columns.names + 1
    columns.names[place], columns.places[column] = column, place
    local list = RULES[column] and "ruled" or kinds[column]
    if list then table.insert(columns[list], place) end
  end
  for i, column in ipairs(own.key) do columns.keys[i] = columns.places[column] end
  return columns
end

local function shown(value) return value == nil and "NULL" or tostring(value) end

--- The first column in which a row is not as it was made: a text, or nil.
local function difference(columns, found, made)
  local function differs(place) return format("%s %s, loaded as %s", columns.names[place], shown(found[place]), shown(made[place])) end
  local texts, numbers = columns.texts, columns.numbers
  for i = 1, #texts do
    local place = texts[i]
    if found[place] ~= made[place] then return differs(place) end
  end
  for i = 1, #numbers do
    local place = numbers[i]
    if tonumber(found[place]) ~= tonumber(made[place]) then return differs(place) end
  end
  for _, place in ipairs(columns.ruled) do
    local function of_row(name)
      local value = found[columns.places[name]]
      return tonumber(value) or value
    end
    local is_text = columns.names[place] == "c_data"
    local a, b = found[place], made[place]
    if not is_text then a, b = tonumber(a), tonumber(b) end
    if a == nil and b ~= nil or not RULES[columns.names[place]](a, b, of_row) then return differs(place) end
  end
end

--- Compares rows that a statement finds with those that were made, both in the order of their keys. Returns the number
--- of rows that differ, and what is wrong with the first.
local function compare(connection, set, name, numbers, made)
  local own = TABLES[name]
  local columns = columns_of(name)
  local keys = columns.keys
  local condition = own.rows:gsub("#(%l+)", function(which) return format("%d", numbers[which]) end)
  local result = connection:query(format("SELECT %s FROM %s%d WHERE %s ORDER BY %s", load.columns[name], name, set, condition,
    table.concat(own.key, ", ")))
  local different, first, at = 0, nil, 1
  local function differs(row, what)
    different = different + 1
    if first then return end
    local key = {}
    for i, column in ipairs(own.key) do key[i] = column .. " " .. shown(row[keys[i]]) end
    first = table.concat(key, ", ") .. ": " .. what
  end
  -- Below zero if the first row comes before the second.
  local function order(a, b)
    for i = 1, #keys do
      local by = (tonumber(a[keys[i]]) or 0) - (tonumber(b[keys[i]]) or 0)
      if by ~= 0 then return by end
    end
    return 0
  end
  for _ = 1, result.nrows do
    local found = result:fetch_row()
    local by = made[at] and order(made[at], found)
    while by and by < 0 do
      differs(made[at], "missing")
      at = at + 1
      by = made[at] and order(made[at], found)
    end
    if by == 0 then
      local what = difference(columns, found, made[at])
      if what then differs(found, what) end
      at = at + 1
    else
      differs(found, "not loaded")
    end
  end
  for i = at, #made do differs(made[i], "missing") end
  return different, first
end

--- The loaded history of a warehouse: its rows have no key, and no index. District → customer → a list of texts. What
--- payments write contains four blanks, and loaded texts none.
local function read_history(connection, set, w)
  local result = connection:query(format("SELECT h_c_d_id, h_c_id, h_d_id, h_amount, h_data FROM history%d WHERE h_w_id = %d"
    .. " AND h_c_w_id = %d AND h_data NOT LIKE '%%    %%'", set, w, w))
  local found = {}
  for _ = 1, result.nrows do
    local row = result:fetch_row()
    local d, c = tonumber(row[1]) or 0, tonumber(row[2]) or 0
    found[d] = found[d] or {}
    found[d][c] = found[d][c] or {}
    table.insert(found[d][c], format("h_d_id %s, h_amount %.2f, h_data %s", shown(row[3]), tonumber(row[4]) or 0, shown(row[5])))
  end
  return found
end

--- Compares a district's history.
local function compare_history(found, made, d)
  local different, first, customers = 0, nil, found[d] or {}
  for _, row in ipairs(made) do
    local c = row[1]
    local wanted = format("h_d_id %d, h_amount %.2f, h_data %s", row[4], row[7], row[8])
    local texts = customers[c] or {}
    if #texts ~= 1 or texts[1] ~= wanted then
      different = different + 1
      first = first or format("h_c_id %d: %s, loaded as %s", c, #texts == 0 and "missing" or table.concat(texts, "; "), wanted)
    end
  end
  return different, first
end

-- In the order of what is printed.
local NAMES = { "item", "warehouse", "stock", "district", "customer", "history", "orders", "order_line" }

--- Claims and compares the pieces of a table set. False if any differs.
local function compare_pieces(connection, set, state)
  local w_count, right = state.warehouses, true
  local parts = load.PARTS

  local function tell(name, where, different, first)
    if different == 0 then return end
    right = false
    local label = tpcc.label(set, { "4.3.3.1", name .. " is as it was loaded" })
    if assay.claim("different pieces of " .. name .. set) < SHOWN then
      assay.log(format("%sVIOLATED in %s: %d %s, the first:\n  %s", label, where, different, different == 1 and "row" or "rows", first))
    end
  end

  local function piece(kind, number, numbers, where, more)
    local to, kept = load.keeper()
    load.make(kind, number, state, to)
    numbers.customers = state.customers
    for _, name in ipairs(NAMES) do
      if kept[name] and TABLES[name] then tell(name, where, compare(connection, set, name, numbers, kept[name])) end
    end
    if more then more(kept) end
  end

  while true do
    local n = assay.claim("warehouses of " .. set) + 1
    if n > w_count then break end
    local history = read_history(connection, set, n)
    for d = 1, tpcc.DISTRICTS do
      local where = format("warehouse %d, district %d", n, d)
      piece("piece district", (n - 1) * tpcc.DISTRICTS + d, { w = n, d = d }, where, function(kept)
        tell("history", where, compare_history(history, kept.history, d))
      end)
    end
  end
  while true do
    local n = assay.claim("parts of " .. set)
    if n >= parts * (w_count + 1) then break end
    local part, w = n % parts + 1, math.floor(n / parts)
    local first, last = (part - 1) * state.items / parts + 1, part * state.items / parts
    if w == 0 then
      piece("piece item", part, { first = first, last = last }, format("items %d to %d", first, last))
    else
      piece("piece stock", (w - 1) * parts + part, { w = w, first = first, last = last },
        format("warehouse %d, items %d to %d", w, first, last))
    end
  end
  return right
end

--- Why a table set cannot be compared, or nil.
local function reason_not_to(connection, set, state)
  if not state.generator then return "an older version loaded them, or several versions did" end
  if state.generator ~= load.fingerprint(state) then
    return format("seed %d makes other rows in this version, or the seed was changed", state.seed)
  end
  -- Not one item is as the seed makes it.
  local to, kept = load.keeper()
  load.make("piece item", 1, state, to)
  local result = connection:query(format("SELECT i_id, i_name, i_data FROM item%d WHERE i_id <= %d", set, state.items / load.PARTS))
  for _ = 1, result.nrows do
    local id, name, data = unpack(result:fetch_row(), 1, 3)
    local made = kept.item[tonumber(id)]
    if made and (made[3] == name or made[5] == data) then return nil end
  end
  return format("they were not loaded from seed %d, which is recorded with them", state.seed)
end

--- Compares all complete table sets; all sessions share the work. Prints a line for each table. False if any differs.
function thorough.compare(connection, states)
  local right, comparable = true, {}
  for set, state in ipairs(states) do
    if state.complete == 1 then
      local reason = reason_not_to(connection, set, state)
      comparable[set] = not reason
      if reason and sysbench.tid == 0 then
        assay.log(tpcc.label(set, { "4.3.3.1", "rows as they were loaded" }) .. "not compared: " .. reason)
      end
      if not reason and not compare_pieces(connection, set, state) then right = false end
    end
  end
  assay.barrier()
  for set in ipairs(sysbench.tid == 0 and states or {}) do
    for _, name in ipairs(comparable[set] and NAMES or {}) do
      local label, pieces = tpcc.label(set, { "4.3.3.1", name .. " is as it was loaded" }), assay.claim("different pieces of " .. name .. set)
      if pieces == 0 then
        tpcc.tell_held(label .. "holds")
      elseif pieces > SHOWN then
        assay.log(format("%sVIOLATED in %d further pieces", label, pieces - SHOWN))
      end
    end
  end
  return right
end

return thorough
