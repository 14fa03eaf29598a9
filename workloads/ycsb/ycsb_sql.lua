--- YCSB's statements in SQL. Called with the properties in effect and the name of the driver.

local format, concat = string.format, table.concat

-- A member of the document, and the document with another value of a member.
local JSON = {
  pgsql = { type = "JSONB", get = "body->>'field%d'", set = "jsonb_set(body, '{field%d}', to_jsonb(CAST(? AS TEXT)))", whole = "CAST(? AS JSONB)" },
  mysql = { type = "JSON", get = "JSON_UNQUOTE(JSON_EXTRACT(body, '$.field%d'))", set = "JSON_SET(body, '$.field%d', ?)", whole = "?" },
  sqlite = { type = "TEXT", get = "json_extract(body, '$.field%d')", set = "json_set(body, '$.field%d', ?)", whole = "?" },
}

return function(set, product)
  local all, opt, fields = { one_writer = product == "sqlite" }, sysbench.opt, {}
  local name, counts = set.table, set.table .. "_counts"
  local json = opt.layout == "json" and JSON[product]
  for i = 0, set.fieldcount - 1 do fields[i + 1] = "field" .. i end

  local more = opt.audit_updates and ", updates BIGINT NOT NULL DEFAULT 0" or ""
  local body = json and "body " .. json.type .. " NOT NULL" or concat(fields, " TEXT NOT NULL, ") .. " TEXT NOT NULL"
  all.create = {
    format("CREATE TABLE %s (ycsb_key VARCHAR(64) NOT NULL PRIMARY KEY, %s%s)", name, body, more),
    format("CREATE TABLE %s (at_start BIGINT NOT NULL, now BIGINT NOT NULL, loaded BIGINT NOT NULL)", counts),
    format("INSERT INTO %s VALUES (-1, %.0f, %.0f)", counts, set.recordcount, set.recordcount),
  }
  all.columns = "ycsb_key, " .. (json and "body" or concat(fields, ", "))
  all.values = json and 1 or set.fieldcount
  function all.drop(con)
    con:query("DROP TABLE IF EXISTS " .. name)
    con:query("DROP TABLE IF EXISTS " .. counts)
  end

  all.now = "SELECT now FROM " .. counts
  --- The number of records that were loaded; nil if an earlier version did that.
  function all.loaded(con) return (select(3, con:query_row("SELECT * FROM " .. counts))) end
  all.at_start = "SELECT at_start FROM " .. counts
  function all.raise_now(records) return format("UPDATE %s SET now = %.0f WHERE now < %.0f", counts, records, records) end
  function all.set_at_start(records) return format("UPDATE %s SET at_start = %.0f", counts, records) end
  local updates = opt.audit_updates and "COALESCE(SUM(updates), 0)" or "0"
  --- The number of records, and of updates in them.
  function all.totals(con) return con:query_row(format("SELECT COUNT(*), %s FROM %s", updates, name)) end
  all.look = format("SELECT ycsb_key FROM %s WHERE ycsb_key = ?", name)

  --- What is selected: one field, or all without one.
  local function selected(field)
    if field == nil then return json and "body" or concat(fields, ", ") end
    return json and format(json.get, field) or "field" .. field
  end
  function all.read(field) return format("SELECT %s FROM %s WHERE ycsb_key = ?", selected(field), name) end
  function all.scan(field)
    return format("SELECT %s FROM %s WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?", selected(field), name)
  end
  local also = opt.audit_updates and ", updates = updates + 1" or ""
  --- What an update sets: one field, or all without one.
  function all.update(field)
    local to
    if field == nil then
      to = json and "body = " .. json.whole or concat(fields, " = ?, ") .. " = ?"
    else
      to = json and "body = " .. format(json.set, field) or format("field%d = ?", field)
    end
    return format("UPDATE %s SET %s%s WHERE ycsb_key = ?", name, to, also)
  end
  local marks = json and json.whole or ("?"):rep(set.fieldcount, ", ")
  all.insert = format("INSERT INTO %s (%s) VALUES (?, %s)", name, all.columns, marks)
  return all
end
