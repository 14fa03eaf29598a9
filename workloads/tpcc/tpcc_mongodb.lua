--- What TPC-C says to MongoDB: commands, and how rows become documents.
--
-- A document has TPC-C's columns as fields. The lines of an order are a list in its document, `order_line`, as MongoDB
-- published for TPC-C; the other tables are collections. The transactions are in `tpcc_documents`, the
-- conditions of `check` in `tpcc_documents_check`. Where a SQL dialect has a text, this one may have a function, which
-- gets the connection.
--
-- The load uses no transactions, which would be too large: a piece that was interrupted is deleted and made again.

local format, concat, floor = string.format, table.concat, math.floor

local mongodb = {
  begin = '{"startTransaction": 1}',
  begin_reading = '{"startTransaction": 1, "readConcern": {"level": "snapshot"}}',
  commit = '{"commitTransaction": 1}', rollback = '{"abortTransaction": 1}',
  documents = "tpcc_documents", check_module = "tpcc_documents_check", schema = "order lines in their orders",
  keys_last = true,
}

--- A name with the number of the set.
function mongodb.of_set(text, set) return (text:gsub("{([%w_]+)}", "%1" .. set)) end

-- Reading ------------------------------------------------------------------------------------------------------------

--- Finds documents: their fields `columns`, in this order, become the columns of the rows. `more`: of the command.
function mongodb.find(collection, filter, columns, more)
  local fields = columns:gsub("[%w_]+", '"%0": 1')
  if not (", " .. columns):find(", _id,", 1, true) then fields = '"_id": 0, ' .. fields end
  return format('{"find": "%s", "filter": {%s}, "projection": {%s}%s}', collection, filter, fields, more and ", " .. more or "")
end

local find = mongodb.find

--- Rows that were not read from one statement, in the form of a result.
function mongodb.listed(rows)
  local n = 0
  return { nrows = #rows, fetch_row = function()
    n = n + 1
    return rows[n]
  end }
end

--- The documents of a district, as a filter.
function mongodb.in_district(prefix, w, d) return format('"%s_w_id": %d, "%s_d_id": %d', prefix, w, prefix, d) end

local in_district = mongodb.in_district

--- The next order to deliver of a district, given the next one to be entered.
local function oldest(con, set, w, d, next_order)
  local text = find("new_orders" .. set, in_district("no", w, d), "no_o_id", '"sort": {"no_o_id": 1}, "limit": 1')
  return tonumber((con:query_row(text))) or next_order
end

--- An amount in cents, without what a double adds to it.
function mongodb.cents(amount) return floor(amount * 100 + 0.5) end

local cents = mongodb.cents

--- See `tpcc_sql`; reads one document of each district, and of each warehouse.
function mongodb:totals(set)
  return function(con)
    local sums = { 0, 0, 0, 0, 0, 0, 0 }
    local function add(at, number) sums[at] = sums[at] + number end
    local districts, list = con:query(find("district" .. set, "", "d_w_id, d_id, d_next_o_id, d_ytd")), {}
    for n = 1, districts.nrows do list[n] = districts:fetch_row() end
    for _, district in ipairs(list) do
      local w, d, next_order, ytd = unpack(district)
      local weight, first = (w * 10 + d) % 97 + 1, oldest(con, set, w, d, tonumber(next_order))
      add(1, next_order)
      add(2, next_order * weight)
      add(3, first)
      add(4, first * weight)
      add(5, cents(ytd))
      add(6, cents(ytd) * weight)
    end
    local warehouses = con:query(find("warehouse" .. set, "", "w_ytd"))
    for _ = 1, warehouses.nrows do add(7, cents(warehouses:fetch_row()[1])) end
    return unpack(sums)
  end
end

function mongodb:progress(set, w, d)
  return function(con)
    local next_order = tonumber((con:query_row(find("district" .. set, format('"d_w_id": %d, "d_id": %d', w, d), "d_next_o_id"))))
    return next_order, oldest(con, set, w, d, next_order)
  end
end

--- The time now, as dates are shown: texts that can be compared.
function mongodb.instant() return os.date("!%Y-%m-%dT%H:%M:%S.000Z") end

local function last_orders(set, w, d, from, most, columns)
  local filter = format('%s, "o_id": {"$gte": %d}', in_district("o", w, d), from)
  return find("orders" .. set, filter, columns, format('"sort": {"o_id": -1}, "limit": %d', most))
end

local function count_dated(dates, start, finish)
  local dated = 0
  for _, date in ipairs(dates) do
    if date >= start and date <= finish then dated = dated + 1 end
  end
  return #dates, dated
end

function mongodb:dated_orders(set, w, d, from, start, finish)
  return function(con)
    local orders, dates = con:query(last_orders(set, w, d, from, 20, "o_entry_d")), {}
    for n = 1, orders.nrows do dates[n] = orders:fetch_row()[1] or "" end
    return count_dated(dates, start, finish)
  end
end

function mongodb:dated_lines(set, w, d, from, to, start, finish)
  return function(con)
    local filter = format('%s, "o_id": {"$gte": %d, "$lt": %d}', in_district("o", w, d), from, to)
    local orders = con:query(find("orders" .. set, filter, "order_line", '"sort": {"o_id": -1}, "limit": 10'))
    local dates = {}
    for _ = 1, orders.nrows do
      for date in (orders:fetch_row()[1] or ""):gmatch('"ol_delivery_d":(.-),"ol_quantity"') do
        dates[#dates + 1] = date:match('"(%d%d%d%d%-.-)"') or ""
      end
    end
    return count_dated(dates, start, finish)
  end
end

function mongodb:last_orders(set, w, d, from, most) return last_orders(set, w, d, from, most, "o_id, o_c_id") end

function mongodb:lines_from(set, w, d, from)
  return function(con)
    local orders, items = con:query(last_orders(set, w, d, from, 1000000, "order_line")), {}
    for _ = 1, orders.nrows do
      for item in (orders:fetch_row()[1] or ""):gmatch('"ol_i_id":(%d+)') do items[#items + 1] = { item } end
    end
    return mongodb.listed(items)
  end
end

function mongodb:dated_payments(set, start)
  return function(con)
    local all = con:query_row(format('{"count": "history%d", "query": {}}', set))
    local dated = format('{"count": "history%d", "query": {"h_date": {"$gte": {"$date": "%s"}}}}', set, start)
    return all, (con:query_row(dated))
  end
end

-- Collections --------------------------------------------------------------------------------------------------------

mongodb.tables = {
  { name = "warehouse" }, { name = "district" }, { name = "customer" }, { name = "history" }, { name = "new_orders" },
  { name = "orders" }, { name = "item" }, { name = "stock" },
}

-- Collection, fields, whether they are unique: the largest first.
local INDEXES = {
  { "stock", "s_w_id, s_i_id", true }, { "customer", "c_w_id, c_d_id, c_id", true },
  { "customer", "c_w_id, c_d_id, c_last, c_first", false }, { "orders", "o_w_id, o_d_id, o_id", true },
  { "orders", "o_w_id, o_d_id, o_c_id, o_id", false }, { "new_orders", "no_w_id, no_d_id, no_o_id", true }, { "item", "i_id", true },
  { "district", "d_w_id, d_id", true }, { "warehouse", "w_id", true },
}

function mongodb:create_table(definition, set) return { format('{"create": "%s%d"}', definition.name, set) } end

local function collections(filter)
  return format('{"listCollections": 1, "filter": {"name": %s}, "nameOnly": true}', filter)
end

--- Older servers refuse to drop what does not exist, and some list collections that were not asked for.
function mongodb:drop_table(name)
  return function(con)
    local found, exists = con:query(collections('"' .. name .. '"')), false
    for _ = 1, found.nrows do exists = exists or found:fetch_row()[1] == name end
    if exists then con:query(format('{"drop": "%s"}', name)) end
  end
end

function mongodb:existing_tables(names) return collections('{"$in": ["' .. concat(names, '", "') .. '"]}') end

--- An index that exists already is not made again.
function mongodb:indexes(set)
  local list = {}
  for i, index in ipairs(INDEXES) do
    local text = '{"createIndexes": "%s%d", "indexes": [{"key": {%s}, "name": "%s"%s}]}'
    list[i] = { text = format(text, index[1], set, (index[2]:gsub("[%w_]+", '"%0": 1')), (index[2]:gsub(", ", "_")), index[3] and ', "unique": true' or "") }
  end
  return list
end

function mongodb:wanted_indexes(set)
  local list = {}
  for i, index in ipairs(INDEXES) do list[i] = { index[1] .. set, (index[2]:gsub(" ", "")) } end
  return list
end

-- The collection of a set that says what was prepared ----------------------------------------------------------------

--- It comes into being with its first documents.
function mongodb:create_account() return function() end end

function mongodb:enter(set, rows)
  local documents = {}
  for i, row in ipairs(rows) do documents[i] = format('{"what": "%s", "n": %.0f, "v": %.0f}', row[1], row[2], row[3]) end
  return format('{"insert": "tpcc_load%d", "documents": [%s]}', set, concat(documents, ", "))
end

function mongodb:note(set, what, n, v)
  return format('{"update": "tpcc_load%d", "updates": [{"q": {"what": "%s", "n": %d}, "u": {"$set": {"v": %d}}, "upsert": true}]}', set, what, n, v)
end

function mongodb:forget(set, what)
  return format('{"delete": "tpcc_load%d", "deletes": [{"q": {"what": "%s"}, "limit": 0}]}', set, what)
end

--- A collection that does not exist is an empty one for most commands, and for some servers an error of `listIndexes`.
function mongodb:account(set)
  return function(con)
    con:query(format('{"listIndexes": "tpcc_load%d"}', set))
    local found = con:query(find("tpcc_load" .. set, "", "what, n, v"))
    if found.nrows == 0 then error(format("tpcc_load%d does not exist; `assay prepare tpcc` makes it", set), 0) end
    return found
  end
end

-- Loading ------------------------------------------------------------------------------------------------------------

-- Money and fractions are doubles.
local TYPES = {}
for name in ("w_tax w_ytd d_tax d_ytd c_credit_lim c_discount c_balance c_ytd_payment h_amount i_price"):gmatch("%S+") do
  TYPES[name] = name .. ":double"
end
for name in ("c_since h_date"):gmatch("%S+") do TYPES[name] = name .. ":date" end

local ORDERS = 200 -- orders of one command

--- What gets orders, each followed by its lines. `value` makes the value of a cell.
local function order_loader(con, set, value)
  local documents, head, lines = {}, nil, {}
  local function send()
    if #documents == 0 then return end
    con:query(format('{"insert": "orders%d", "documents": [%s]}', set, concat(documents, ", ")))
    documents = {}
  end
  local function finish()
    if not head then return end
    documents[#documents + 1] = head .. concat(lines, ", ") .. "]}"
    head, lines = nil, {}
  end
  local function date(text) return text and format('{"$date": "%s"}', (text:gsub(" ", "T")) .. "Z") or "null" end
  local orders, order_line = {}, {}
  function orders:row(o, d, w, c, entered, carrier, count, all_local)
    finish()
    if #documents == ORDERS then send() end
    local text = '{"o_id": %d, "o_d_id": %d, "o_w_id": %d, "o_c_id": %d, "o_entry_d": %s, "o_carrier_id": %s, "o_ol_cnt": %d,'
      .. ' "o_all_local": %d, "order_line": ['
    head = format(text, o, d, w, c, date(entered), carrier or "null", count, all_local)
  end
  function order_line:row(_, _, _, number, item, supply, delivered, quantity, amount, info)
    local text = '{"ol_number": %d, "ol_i_id": %d, "ol_supply_w_id": %d, "ol_delivery_d": %s, "ol_quantity": %d, "ol_amount": %.2f,'
      .. ' "ol_dist_info": "%s"}'
    lines[#lines + 1] = format(text, number, item, supply, date(delivered), quantity, amount, value(info))
  end
  function orders:flush()
    finish()
    send()
  end
  function order_line:flush() end
  return orders, order_line
end

--- Table → what gets its rows.
function mongodb:loaders(con, set, columns, value)
  local orders, order_line = order_loader(con, set, value)
  return setmetatable({ orders = orders, order_line = order_line }, {
    __index = function(made, name)
      made[name] = con:loader(name .. set, (columns[name]:gsub("[%w_]+", TYPES)))
      return made[name]
    end,
  })
end

--- Deletes what an interrupted load left of a piece.
function mongodb:delete_piece(con, set, kind, number, items)
  local function delete(name, filter)
    con:query(format('{"delete": "%s%d", "deletes": [{"q": {%s}, "limit": 0}]}', name, set, filter))
  end
  local part = (number - 1) % 10
  local range = format('{"$gt": %d, "$lte": %d}', part * items / 10, (part + 1) * items / 10)
  local w, d = floor((number - 1) / 10) + 1, part + 1
  if kind == "piece item" then
    delete("item", format('"i_id": %s', range))
  elseif kind == "piece stock" then
    if part == 0 then delete("warehouse", format('"w_id": %d', w)) end
    delete("stock", format('"s_w_id": %d, "s_i_id": %s', w, range))
  else
    delete("district", format('"d_w_id": %d, "d_id": %d', w, d))
    for _, of in ipairs { { "customer", "c" }, { "history", "h" }, { "orders", "o" }, { "new_orders", "no" } } do
      delete(of[1], in_district(of[2], w, d))
    end
  end
end

function mongodb:before_load() return {} end

function mongodb:before_drop() return {} end

-- Sessions -----------------------------------------------------------------------------------------------------------

function mongodb:at_connect() return {} end

function mongodb:refusal(settings)
  local opt = sysbench.opt
  local function is_for_sql(option, why) return format("--%s is for SQL: %s", option, why) end
  if settings.isolation then return is_for_sql("isolation", "a transaction of MongoDB has a snapshot; --skip-trx does without") end
  if settings.procedures then return is_for_sql("procedures", "MongoDB has no stored procedures") end
  if settings.batch_statements then return is_for_sql("batch-statements", "MongoDB executes one command at a time") end
  if settings.foreign_keys then return is_for_sql("foreign-keys", "MongoDB has none") end
  if settings.history_key then return is_for_sql("history-key", "every document of MongoDB has one, `_id`") end
  if settings.partitions > 0 then return is_for_sql("partitions", "shard the collections yourself") end
  if opt.expect ~= "" then return is_for_sql("expect", "numbers of orders are read and raised in one command") end
  if opt.thorough then return is_for_sql("thorough", "the check without it compares what the load recorded") end
end

return mongodb
