--- What the OLTP workloads say to MongoDB: commands in extended JSON. A row is a document with its id in `_id`.
--
--
-- An update names what it sets before the document that it changes, so that its parameters have the order of SQL's.

local INT = { sysbench.sql.type.INT }
local C, PAD = { sysbench.sql.type.CHAR, 120 }, { sysbench.sql.type.CHAR, 60 }
local format, concat = string.format, table.concat

local mongodb = {
  begin = '{"startTransaction": 1}', begin_read_only = '{"startTransaction": 1}', commit = '{"commitTransaction": 1}',
  columns = "_id,k,c,pad",
}

local RANGE = '{"_id": {"$gte": ?, "$lte": ?}}'

mongodb.statements = {
  point_selects = {
    '{"find": "sbtest%d", "filter": {"_id": ?}, "projection": {"_id": 0, "c": 1}, "limit": 1, "singleBatch": true}', INT,
  },
  simple_ranges = { '{"find": "sbtest%d", "filter": ' .. RANGE .. ', "projection": {"_id": 0, "c": 1}}', INT, INT },
  sum_ranges = {
    '{"aggregate": "sbtest%d", "pipeline": [{"$match": ' .. RANGE
      .. '}, {"$group": {"_id": null, "sum": {"$sum": "$k"}}}]}', INT, INT,
  },
  order_ranges = {
    '{"find": "sbtest%d", "filter": ' .. RANGE .. ', "projection": {"_id": 0, "c": 1}, "sort": {"c": 1}}', INT, INT,
  },
  distinct_ranges = {
    '{"aggregate": "sbtest%d", "pipeline": [{"$match": ' .. RANGE
      .. '}, {"$group": {"_id": "$c"}}, {"$sort": {"_id": 1}}]}', INT, INT,
  },
  index_updates = { '{"update": "sbtest%d", "updates": [{"q": {"_id": ?}, "u": {"$inc": {"k": 1}}}]}', INT },
  non_index_updates = { '{"update": "sbtest%d", "updates": [{"u": {"$set": {"c": ?}}, "q": {"_id": ?}}]}', C, INT },
  deletes = { '{"delete": "sbtest%d", "deletes": [{"q": {"_id": ?}, "limit": 1}]}', INT },
  inserts = { '{"insert": "sbtest%d", "documents": [{"_id": ?, "k": ?, "c": ?, "pad": ?}]}', INT, INT, C, PAD },
}

--- Two sessions may both delete an id, and both insert it again: the second insert restarts its transaction.
function mongodb.is_lost_race(failure) return failure.sql_errno == 11000 end

function mongodb:points(count)
  return format('{"find": "sbtest1", "filter": {"k": {"$in": [%s]}}}', ("?, "):rep(count):sub(1, -3))
end

function mongodb:ranges(count)
  local ranges = ('{"k": {"$gte": ?, "$lte": ?}}, '):rep(count):sub(1, -3)
  return format('{"count": "sbtest1", "query": {"$or": [%s]}}', ranges)
end

--- The server's own ids are ObjectIds, which ascend.
function mongodb:insert_without_id(n, k, c, pad)
  return format('{"insert": "sbtest%d", "documents": [{"k": %d, "c": "%s", "pad": "%s"}]}', n, k, c, pad)
end

function mongodb:insert(n, id, k, c, pad)
  return format('{"insert": "sbtest%d", "documents": [{"_id": %d, "k": %d, "c": "%s", "pad": "%s"}]}', n, id, k, c, pad)
end

-- Collections ---------------------------------------------------------------------------------------------------------

function mongodb:create_table(n, wanted)
  if wanted.secondary then error("--secondary is for SQL: every document of MongoDB has its id in _id", 0) end
  if wanted.create_table_options ~= "" then error("--create-table-options is for SQL", 0) end
  return format('{"create": "sbtest%d"}', n)
end

function mongodb:after_rows() return {} end

function mongodb:create_index(n)
  return format('{"createIndexes": "sbtest%d", "indexes": [{"key": {"k": 1}, "name": "k_%d"}]}', n, n)
end

function mongodb:existing_tables(count)
  local names = {}
  for n = 1, count do names[n] = format('"sbtest%d"', n) end
  return format('{"listCollections": 1, "filter": {"name": {"$in": [%s]}}, "nameOnly": true}', concat(names, ", "))
end

--- A collection that does not exist is an empty one for most commands, and an error for this one.
function mongodb:must_exist(n) return format('{"listIndexes": "sbtest%d"}', n) end

--- Older servers refuse to drop what does not exist.
function mongodb:drop_table(n)
  return function(connection)
    local list = format('{"listCollections": 1, "filter": {"name": "sbtest%d"}, "nameOnly": true}', n)
    if connection:query_row(list) then connection:query(format('{"drop": "sbtest%d"}', n)) end
  end
end

--- One end of the ids that are numbers.
local function end_of_ids(n, direction)
  local find = '{"find": "sbtest%d", "filter": {"_id": {"$type": "number"}}, "projection": {"_id": 1}, '
  return format(find .. '"sort": {"_id": %d}, "limit": 1}', n, direction)
end

function mongodb:last_id(n) return end_of_ids(n, -1) end

-- Check ---------------------------------------------------------------------------------------------------------------

--- How many documents a filter finds: no row if there are none.
local function counted(connection, n, filter)
  local count = '{"aggregate": "sbtest%d", "pipeline": [{"$match": %s}, {"$count": "n"}]}'
  return tonumber((connection:query_row(format(count, n, filter)))) or 0
end

--- Documents whose field is not that many groups of 11 digits.
local function not_groups(field, groups)
  return format('{"%s": {"$not": {"$regex": "^([0-9]{11}-){%d}[0-9]{11}$"}}}', field, groups - 1)
end

function mongodb:check_rows(n)
  return function(connection)
    connection:query(self:must_exist(n))
    local function count(filter) return counted(connection, n, filter) end
    return count("{}"), (connection:query_row(end_of_ids(n, 1))), (connection:query_row(end_of_ids(n, -1))),
      count(not_groups("c", 10)), count(not_groups("pad", 5)), count('{"k": {"$not": {"$gte": 1}}}')
  end
end

function mongodb:check_index(n)
  return function(connection)
    local indexes, name = connection:query(self:must_exist(n)), "k_" .. n
    for _ = 1, indexes.nrows do
      if indexes:fetch_row()[1] == name then return 1 end
    end
    return 0
  end
end

-- Rows appended in bulk -----------------------------------------------------------------------------------------------

function mongodb:create_bulk_table()
  error("bulk_insert joins rows into statements of SQL; on MongoDB, `prepare` of another OLTP workload loads in bulk", 0)
end

mongodb.bulk_insert, mongodb.check_bulk_rows = mongodb.create_bulk_table, mongodb.create_bulk_table

return mongodb
