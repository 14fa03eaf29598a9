--- What TPC-C says to MySQL and MariaDB.
local sql = assay.share("tpcc_sql")

local mysql = setmetatable({
  now = "NOW()",
  timestamp = "DATETIME",
  lock = " FOR UPDATE", -- makes a SELECT lock its rows
  analyze = "ANALYZE TABLE %s",
  isolation = "SET SESSION TRANSACTION ISOLATION LEVEL %s",
  level = "SHOW VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')", -- the older name on MariaDB
  note_text = "INSERT IGNORE INTO {tpcc_load} (what, n, v) VALUES %s",
  amount = "CAST(h_amount AS CHAR)", -- as text, with two decimals
  money = "%s", -- a sum to be compared, without the noise of binary fractions
  existing = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN (%s)",
  procedures = "SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE() AND routine_name IN (%s)",
  to_make_procedures = "privileges: GRANT CREATE ROUTINE, ALTER ROUTINE, EXECUTE ON database.* TO user",
  collation = "SELECT character_set_name, collation_name FROM information_schema.columns WHERE table_schema = DATABASE()"
    .. " AND table_name = '{customer}' AND column_name = 'c_last'",
  index = "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE()"
    .. " AND table_name = '%s' AND index_name = '%s'",
  foreign_key = "SELECT COUNT(*) FROM information_schema.table_constraints WHERE table_schema = DATABASE()"
    .. " AND table_name = '%s' AND constraint_name = '%s'",
  history_key = { column = "BIGINT NOT NULL AUTO_INCREMENT", key = "h_id, h_w_id" },
}, { __index = sql })

function mysql:refusal(settings)
  if settings.partitions > 0 and settings.foreign_keys then
    return "--partitions and --foreign-keys: MySQL and MariaDB do not allow both"
  end
end

function mysql:create_table(definition, set, settings)
  local ending = (" ENGINE = %s %s"):format(settings.engine, settings.table_options)
  if definition.warehouse and settings.partitions > 0 then
    ending = ending .. (" PARTITION BY HASH (%s) PARTITIONS %d"):format(definition.warehouse, settings.partitions)
  end
  return sql.create_table(self, definition, set, settings, ending)
end

function mysql:account_ending(settings) return " ENGINE = " .. settings.engine end

function mysql:before_load() return { "SET foreign_key_checks = 0" } end

mysql.before_drop = mysql.before_load

--- Texts joined: as bytes, because numbers have the connection's collation, which may differ from a column's.
function mysql:joined(parts) return "CAST(CONCAT" .. parts .. " AS BINARY)" end

-- Texts as bytes: in most collations 'bc' is 'BC', and blanks at the end do not count.
mysql.text_functions = {
  BYTES = "CAST(%s AS BINARY)", LETTERS = "%s REGEXP '^[0-9A-Za-z]*$'", DIGITS = "%s REGEXP '^[0-9]*$'", CODE = "ASCII(%s)",
  ORIGINAL_AT = "INSTR(CAST(%s AS BINARY), 'ORIGINAL')",
}

mysql.all_indexes = "SELECT table_name, GROUP_CONCAT(column_name ORDER BY seq_in_index), CASE WHEN MAX(non_unique) = 0 THEN 1 ELSE 0 END"
  .. " FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name IN (%s) GROUP BY table_name, index_name"

-- See tpcc_procedures.
mysql.language = {
  -- ROLLBACK: no handler sees that a statement is killed, and START TRANSACTION would commit what it left open.
  definition = [[
CREATE PROCEDURE <name>(<takes>) SQL SECURITY INVOKER
whole: BEGIN
  DECLARE <gives>;
  DECLARE <has>;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  ROLLBACK;
  START TRANSACTION;
<body>  COMMIT;
  SELECT <answer>;
END]],
  words = { level = "NULL", again = "" },
  list = "GROUP_CONCAT(%s)",
  before = { gives = ";\n  DECLARE ", has = ";\n  DECLARE " },
  answer = "",
  translated = function(body) return body end,
}

return mysql
