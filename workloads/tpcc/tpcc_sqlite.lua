--- What TPC-C says to SQLite.
local sql = assay.share("tpcc_sql")

local sqlite = setmetatable({
  -- A plain BEGIN takes the write lock at the first write. If that comes after a read, and another session has
  -- written in between, SQLite can only refuse: the transaction would restart again and again under load.
  begin = "BEGIN IMMEDIATE",
  now = "CURRENT_TIMESTAMP",
  timestamp = "TEXT",
  lock = "", -- whoever writes has the database to itself
  analyze = "ANALYZE %s",
  note_text = "INSERT INTO {tpcc_load} (what, n, v) VALUES %s ON CONFLICT DO NOTHING",
  amount = "PRINTF('%%.2f',h_amount)", -- as text, with two decimals
  money = "ROUND(%s, 2)", -- DECIMAL is a binary fraction there
  cents = "CAST(ROUND(%s * 100) AS INTEGER)",
  instant = "SELECT CURRENT_TIMESTAMP",
  existing = "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN (%s)",
  index = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND tbl_name = '%s' AND name = '%s'",
  history_key = { column = "INTEGER PRIMARY KEY" },
  foreign_keys_first = true,
  one_writer = true, -- one session at a time can write, so one session does what changes much
}, { __index = sql })

sqlite.text_functions = {
  BYTES = "%s", LETTERS = "%s NOT GLOB '*[^0-9A-Za-z]*'", DIGITS = "%s NOT GLOB '*[^0-9]*'", CODE = "UNICODE(%s)",
  ORIGINAL_AT = "INSTR(%s, 'ORIGINAL')",
}

-- A key that is one integer has no index of its own.
sqlite.all_indexes = "SELECT m.name, (SELECT GROUP_CONCAT(name) FROM (SELECT name FROM PRAGMA_INDEX_INFO(l.name) ORDER BY seqno)), l.\"unique\""
  .. " FROM sqlite_master m, PRAGMA_INDEX_LIST(m.name) l WHERE m.type = 'table' AND m.name IN (%s)"
  .. " UNION ALL SELECT m.name, (SELECT GROUP_CONCAT(name) FROM (SELECT name FROM PRAGMA_TABLE_INFO(m.name) WHERE pk > 0 ORDER BY pk)), 1"
  .. " FROM sqlite_master m WHERE m.type = 'table' AND m.name IN (%s)"

function sqlite:refusal(settings)
  if settings.isolation and settings.isolation ~= "SERIALIZABLE" then
    return "--isolation: SQLite supports serializable only"
  end
  if settings.partitions > 0 then return "--partitions: SQLite has no partitions" end
  if settings.procedures then return "--procedures: SQLite has no stored procedures" end
end

function sqlite:at_connect(settings) return settings.foreign_keys and { "PRAGMA foreign_keys = ON" } or {} end

function sqlite:before_load(settings) return settings.foreign_keys and { "PRAGMA foreign_keys = OFF" } or {} end

function sqlite:joined(parts) return (parts:gsub(", ", " || ")) end

return sqlite
