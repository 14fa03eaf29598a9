--- YCSB's statements as commands of MongoDB. Called with the properties in effect.
--
-- A record is a document with its key in `_id`, as in YCSB's own binding. An update names what it sets before the
-- record that it changes, so that its parameters have the order of SQL's.

local format, concat = string.format, table.concat

return function(set)
  local all, fields = { values = set.fieldcount }, {}
  local name, counts = set.table, set.table .. "_counts"
  local counted = sysbench.opt.audit_updates
  if sysbench.opt.layout == "json" then error("--layout json is for SQL: MongoDB's records are documents", 0) end
  for i = 0, set.fieldcount - 1 do fields[i + 1] = "field" .. i end

  all.create = {
    format('{"create": "%s"}', name),
    format('{"insert": "%s", "documents": [{"_id": 0, "at_start": -1, "now": %.0f, "loaded": %.0f}]}', counts,
      set.recordcount, set.recordcount),
  }
  all.columns = "_id, " .. concat(fields, ", ")
  -- Older servers refuse to drop what does not exist.
  function all.drop(con)
    for _, collection in ipairs({ name, counts }) do
      if con:query_row(format('{"listCollections": 1, "filter": {"name": "%s"}, "nameOnly": true}', collection)) then
        con:query(format('{"drop": "%s"}', collection))
      end
    end
  end

  -- A collection that does not exist is an empty one for most commands, and an error for this one.
  all.exists = format('{"listIndexes": "%s"}', counts)
  local function of_counts(field)
    return format('{"find": "%s", "filter": {"_id": 0}, "projection": {"_id": 0, "%s": 1}}', counts, field)
  end
  all.now, all.at_start = of_counts("now"), of_counts("at_start")
  function all.loaded(con) return (con:query_row(of_counts("loaded"))) end
  local function change(operator, field, value)
    local update = '{"update": "%s", "updates": [{"q": {"_id": 0}, "u": {"%s": {"%s": %.0f}}}]}'
    return format(update, counts, operator, field, value)
  end
  function all.raise_now(records) return change("$max", "now", records) end
  function all.set_at_start(records) return change("$set", "at_start", records) end
  -- Two commands, because FerretDB 1.24 computes only the first sum of a group.
  function all.totals(con)
    local aggregate = '{"aggregate": "%s", "pipeline": [%s]}'
    local records = con:query_row(format(aggregate, name, '{"$count": "records"}'))
    if not counted then return records, 0 end
    local sum = '{"$group": {"_id": null, "updates": {"$sum": "$updates"}}}, {"$project": {"_id": 0, "updates": 1}}'
    return records, (con:query_row(format(aggregate, name, sum)))
  end
  all.look = format('{"find": "%s", "filter": {"_id": ?}, "projection": {"_id": 1}}', name)

  --- All fields, or one of them.
  local function projection(field)
    return field and format(', "projection": {"_id": 0, "field%d": 1}', field) or ""
  end
  function all.read(field)
    return format('{"find": "%s", "filter": {"_id": ?}, "limit": 1, "singleBatch": true%s}', name, projection(field))
  end
  function all.scan(field)
    local scan = '{"find": "%s", "filter": {"_id": {"$gte": ?}}, "sort": {"_id": 1}, "limit": ?%s}'
    return format(scan, name, projection(field))
  end
  local also = counted and ', "$inc": {"updates": 1}' or ""
  --- What an update sets: one field, or all without one.
  function all.update(field)
    local to = field and format('"field%d": ?', field) or '"' .. concat(fields, '": ?, "') .. '": ?'
    return format('{"update": "%s", "updates": [{"u": {"$set": {%s}%s}, "q": {"_id": ?}}]}', name, to, also)
  end
  all.insert = format('{"insert": "%s", "documents": [{"_id": ?, "%s": ?}]}', name, concat(fields, '": ?, "'))
  return all
end
