--- What the workload `isolation` says to each product.
local isolation = {
  names = { "isolation_list", "isolation_head", "isolation_element", "isolation_register", "isolation_bank", "isolation_run" },
  tables = {
    "isolation_list (id INTEGER NOT NULL PRIMARY KEY, list TEXT NOT NULL)",
    "isolation_head (id INTEGER NOT NULL PRIMARY KEY, elements BIGINT NOT NULL)",
    "isolation_element (list INTEGER NOT NULL, position BIGINT NOT NULL, element BIGINT NOT NULL, "
      .. "PRIMARY KEY (list, position))",
    "isolation_register (id INTEGER NOT NULL PRIMARY KEY, version BIGINT NOT NULL, writer BIGINT NOT NULL, "
      .. "previous BIGINT NOT NULL)",
    "isolation_bank (id INTEGER NOT NULL PRIMARY KEY, balance BIGINT NOT NULL)",
    "isolation_run (id INTEGER NOT NULL PRIMARY KEY, token BIGINT NOT NULL)",
  },
  rows = { isolation_register = "id, version, writer, previous", isolation_bank = "id, balance" },
  values = { isolation_register = { 0, 0, 0 }, isolation_bank = { 100 } },
  reset = {
    "DELETE FROM isolation_list",
    "DELETE FROM isolation_head",
    "DELETE FROM isolation_element",
    "UPDATE isolation_register SET version = 0, writer = 0, previous = 0",
    "UPDATE isolation_bank SET balance = 100",
  },
}

--- In SQL, snapshot isolation is no level of its own, and the strict form of serializable is not one either.
local SPELLED = {
  ["read-uncommitted"] = "READ UNCOMMITTED",
  ["read-committed"] = "READ COMMITTED",
  ["repeatable-read"] = "REPEATABLE READ",
  ["snapshot-isolation"] = "REPEATABLE READ",
  ["serializable"] = "SERIALIZABLE",
  ["strong-session-serializable"] = "SERIALIZABLE",
  ["strict-serializable"] = "SERIALIZABLE",
}

-- An assignment of MySQL sees those to its left, and one of the others sees the old row: here, both do the same.
local UPDATE = "UPDATE isolation_register SET version = version + 1, previous = writer, writer = ? WHERE id = ?"

local BANK = {
  read = "SELECT balance FROM isolation_bank WHERE id = ?",
  write = "UPDATE isolation_bank SET balance = ? WHERE id = ?",
  kinds = "ii",
}

local READ_LIST = "SELECT list FROM isolation_list WHERE id = ?"
local READ_REGISTER = "SELECT version, writer FROM isolation_register WHERE id = ?"

local READ_ELEMENTS = "SELECT element FROM isolation_element WHERE list = ? ORDER BY position"
local ADD_ELEMENT = "INSERT INTO isolation_element (list, position, element) VALUES (?, ?, ?)"

--- PostgreSQL and SQLite return the new row of an update.
local returning = {
  append = {
    read = READ_LIST,
    write = "INSERT INTO isolation_list (id, list) VALUES (?, ?) ON CONFLICT (id) "
      .. "DO UPDATE SET list = isolation_list.list || ',' || excluded.list",
    kinds = "it",
  },
  rows = {
    read = READ_ELEMENTS, write = ADD_ELEMENT, kinds = "iii",
    grow = "INSERT INTO isolation_head (id, elements) VALUES (?, 1) ON CONFLICT (id) "
      .. "DO UPDATE SET elements = isolation_head.elements + 1 RETURNING elements",
  },
  register = { read = READ_REGISTER, write = UPDATE .. " RETURNING version, previous", kinds = "ii" },
  bank = BANK,
}

--- The row that a transaction of MySQL has just updated is the one that it reads, at every level.
local mysql = {
  append = {
    read = READ_LIST,
    write = "INSERT INTO isolation_list (id, list) VALUES (?, ?) "
      .. "ON DUPLICATE KEY UPDATE list = CONCAT(list, ',', VALUES(list))",
    kinds = "it",
  },
  rows = {
    read = READ_ELEMENTS, write = ADD_ELEMENT, kinds = "iii",
    grow = "INSERT INTO isolation_head (id, elements) VALUES (?, 1) "
      .. "ON DUPLICATE KEY UPDATE elements = elements + 1",
    grown = "SELECT elements FROM isolation_head WHERE id = ?",
  },
  register = {
    read = READ_REGISTER, write = UPDATE, kinds = "ii",
    replaced = "SELECT version, previous FROM isolation_register WHERE id = ?",
  },
  bank = BANK,
}

--- Before each transaction: the level of a session would be lost with a connection.
function mysql.begin(level) return { "SET TRANSACTION ISOLATION LEVEL " .. SPELLED[level], "BEGIN" } end

local pgsql = setmetatable({}, { __index = returning })

function pgsql.begin(level) return { "BEGIN ISOLATION LEVEL " .. SPELLED[level] } end

local sqlite = setmetatable({}, { __index = returning })

--- SQLite knows one level, serializable. A writer that begins as a reader could only fail when another one was faster.
function sqlite.begin(_, is_reader)
  return { is_reader and "BEGIN" or "BEGIN IMMEDIATE" }
end

isolation.dialects = { pgsql = pgsql, mysql = mysql, sqlite = sqlite }

return isolation
