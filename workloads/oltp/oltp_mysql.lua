--- What the OLTP workloads say to MySQL and MariaDB.
local sql = assay.share("oltp_sql")

local mysql = setmetatable({
  analyze = "ANALYZE TABLE",
  tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN (%s)",
  index = "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE()"
    .. " AND table_name = '%s' AND index_name = '%s'",
  next_id = 0, -- as an id: asks for the next number
}, { __index = sql })

--- Reads tables and indexes into the buffer pool: first, and for each table its name and number of rows.
mysql.warm_up = {
  first = { "SET tmp_table_size = 2 * 1024 * 1024 * 1024", "SET max_heap_table_size = 2 * 1024 * 1024 * 1024" },
  rows = "SELECT AVG(id) FROM (SELECT * FROM %s FORCE KEY (PRIMARY) LIMIT %d) t",
  index = "SELECT COUNT(*) FROM (SELECT * FROM %s WHERE k LIKE '%%0%%' LIMIT %d) t",
}

function mysql:id(wanted) return wanted.auto_inc and "INTEGER NOT NULL AUTO_INCREMENT" or "INTEGER NOT NULL" end

function mysql:key(wanted) return wanted.secondary and ",\n  KEY xid (id)" or ",\n  PRIMARY KEY (id)" end

function mysql:ending(wanted) return "/*! ENGINE = " .. wanted.mysql_storage_engine .. " */" end

function mysql:after_rows() return {} end

function mysql:has_groups(column, groups) return column .. " REGEXP " .. sql.groups_regex(groups) end

return mysql
