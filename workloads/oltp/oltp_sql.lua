--- What the OLTP workloads say to a SQL database, where all dialects agree.
--
--
-- A dialect is a module that is called `oltp_` and the name of the driver. It has what a workload knows about a
-- product: the texts for `con:prepare` and `con:query`. Workloads decide what is executed and when; docs/lua-api.md
-- lists what a dialect must have. One for a product without SQL needs nothing from this file.

local INT = { sysbench.sql.type.INT }
local C, PAD = { sysbench.sql.type.CHAR, 120 }, { sysbench.sql.type.CHAR, 60 }

local sql = { is_sql = true, begin = "BEGIN", begin_read_only = "BEGIN", commit = "COMMIT" }

--- Kind of statement → its text, with %d for the number of the table, and the types of its parameters.
sql.statements = {
  point_selects = { "SELECT c FROM sbtest%d WHERE id=?", INT },
  simple_ranges = { "SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ?", INT, INT },
  sum_ranges = { "SELECT SUM(k) FROM sbtest%d WHERE id BETWEEN ? AND ?", INT, INT },
  order_ranges = { "SELECT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT },
  distinct_ranges = { "SELECT DISTINCT c FROM sbtest%d WHERE id BETWEEN ? AND ? ORDER BY c", INT, INT },
  index_updates = { "UPDATE sbtest%d SET k=k+1 WHERE id=?", INT },
  non_index_updates = { "UPDATE sbtest%d SET c=? WHERE id=?", C, INT },
  deletes = { "DELETE FROM sbtest%d WHERE id=?", INT },
  inserts = { "INSERT INTO sbtest%d (id, k, c, pad) VALUES (?, ?, ?, ?)", INT, INT, C, PAD },
}

--- All rows of the first table with one of `count` values in k.
function sql:points(count)
  return "SELECT id, k, c, pad FROM sbtest1 WHERE k IN (" .. ("?, "):rep(count):sub(1, -3) .. ")"
end

--- How many rows of the first table have k in one of `count` ranges.
function sql:ranges(count) return "SELECT count(k) FROM sbtest1 WHERE " .. ("k BETWEEN ? AND ? OR "):rep(count):sub(1, -5) end

--- One row as text, with its id, or without it: then the database generates one.
function sql:insert_without_id(n, k, c, pad)
  return ("INSERT INTO sbtest%d (k, c, pad) VALUES (%d, '%s', '%s')"):format(n, k, c, pad)
end

function sql:insert(n, id, k, c, pad)
  return ("INSERT INTO sbtest%d (id, k, c, pad) VALUES (%d, %d, '%s', '%s')"):format(n, id, k, c, pad)
end

-- Tables -------------------------------------------------------------------------------------------------------------

--- A new table `n`. `wanted`: the options `auto_inc`, `secondary`, `redshift`, `mysql_storage_engine` and
--- `create_table_options`; `key_is_late`: the primary key may be added after the rows.
function sql:create_table(n, wanted)
  local id, key, ending = self:id(wanted), self:key(wanted), self:ending(wanted)
  return ([[
CREATE TABLE sbtest%d(
  id %s,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL%s
) %s %s]]):format(n, id, key, ending, wanted.create_table_options)
end

-- Its parts: the type of id, the key that is declared with the columns, what comes after them.
function sql:id() return "INTEGER NOT NULL" end

function sql:key(wanted) return wanted.secondary and "" or ",\n  PRIMARY KEY (id)" end

function sql:ending() return "" end

--- For table `n` after its rows, of which there are `size`: what to execute before the index on k.
function sql:after_rows(n, wanted)
  return wanted.secondary and { ("CREATE INDEX xid_%d ON sbtest%d(id)"):format(n, n) } or {}
end

--- The index on k.
function sql:create_index(n) return ("CREATE INDEX k_%d ON sbtest%d(k)"):format(n, n) end

function sql:drop_table(n) return "DROP TABLE IF EXISTS sbtest" .. n end

function sql:analyze_table(n) return self.analyze .. " sbtest" .. n end

--- Which of the tables 1 to `count` exist: rows of one name.
function sql:existing_tables(count)
  local names = {}
  for n = 1, count do names[n] = "'sbtest" .. n .. "'" end
  return self.tables:format(table.concat(names, ", "))
end

--- The greatest id.
function sql:last_id(n) return "SELECT MAX(id) FROM sbtest" .. n end

-- Check --------------------------------------------------------------------------------------------------------------

local function wrong_unless(condition) return ("SUM(CASE WHEN %s THEN 0 ELSE 1 END)"):format(condition) end

--- The number of rows, the smallest and the greatest id, and in how many rows c is not 10 groups of 11 digits, pad is
--- not 5 such groups, and k is below 1.
function sql:check_rows(n)
  return ("SELECT COUNT(*), MIN(id), MAX(id), %s, %s, %s FROM sbtest%d"):format(wrong_unless(self:has_groups("c", 10)),
    wrong_unless(self:has_groups("pad", 5)), wrong_unless("k >= 1"), n)
end

--- How many rows have an id that another row has.
function sql:check_ids(n) return "SELECT COUNT(*) - COUNT(DISTINCT id) FROM sbtest" .. n end

--- Whether the index on k exists: 0 if not.
function sql:check_index(n) return self.index:format("sbtest" .. n, "k_" .. n) end

--- Where c and pad are compared with a regular expression.
function sql.groups_regex(groups) return "'^([0-9]{11}-){" .. groups - 1 .. "}[0-9]{11}$'" end

-- Rows appended in bulk --------------------------------------------------------------------------------------------

--- A table of `bulk_insert`.
function sql:create_bulk_table(n)
  return ([[
CREATE TABLE IF NOT EXISTS sbtest%d(
  id INTEGER NOT NULL,
  k INTEGER DEFAULT '0' NOT NULL,
  PRIMARY KEY (id)
)]]):format(n)
end

--- For `con:bulk_insert_init`.
function sql:bulk_insert(n) return "INSERT INTO sbtest" .. n .. " (id, k) VALUES" end

--- The same for the tables of the other workloads, where the database generates ids.
function sql:bulk_insert_without_id(n) return "INSERT INTO sbtest" .. n .. "(k, c, pad) VALUES" end

--- The number of rows and the greatest id.
function sql:check_bulk_rows(n) return "SELECT COUNT(*), MAX(id) FROM sbtest" .. n end

return sql
