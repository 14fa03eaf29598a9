--- Soft deletes: removed rows stay, marked as deleted; lists show what is left.
--
--
-- Each session has an owner of its own, so that it knows what a list must show. `--index partial` indexes only the rows
-- that are not deleted (PostgreSQL and SQLite); `--index plain` indexes all, with the mark as a column.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  owners = { "Owners of notes; at least as many as sessions", 100 },
  notes = { "Notes of each owner", 20 },
  deleted = { "Deleted notes of each owner", 200 },
  lists = { "Percent of transactions that list an owner's notes", 60 },
  index = { "Index on the notes of an owner: partial or plain", "plain" },
}

local uniform = sysbench.rand.uniform

local ID = {
  pgsql = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
  mysql = "BIGINT AUTO_INCREMENT PRIMARY KEY",
  sqlite = "INTEGER PRIMARY KEY",
}
local INDEX = {
  plain = "CREATE INDEX soft_notes_owner ON soft_notes (owner, is_deleted)",
  partial = "CREATE INDEX soft_notes_owner ON soft_notes (owner) WHERE is_deleted = 0",
}

local function connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), driver:name()
end

function prepare()
  local con, product = connect()
  local opt = sysbench.opt
  local index = INDEX[opt.index] or error("--index is partial or plain, and not " .. opt.index, 0)
  if opt.index == "partial" and product == "mysql" then error("--index partial: MySQL and MariaDB have none", 0) end
  con:query("CREATE TABLE soft_notes (id " .. ID[product]
    .. ", owner INT NOT NULL, is_deleted INT NOT NULL, body VARCHAR(100) NOT NULL)")
  local loader = con:loader("soft_notes", "owner, is_deleted, body")
  for note = 1, opt.notes + opt.deleted do
    for owner = 1, opt.owners do loader:row(owner, note > opt.deleted and 0 or 1, assay.random_cell(100, 100)) end
  end
  loader:done()
  con:query(index)
  con:query(product == "mysql" and "ANALYZE TABLE soft_notes" or "ANALYZE soft_notes")
end

function cleanup() connect():query("DROP TABLE IF EXISTS soft_notes") end

local function read_totals()
  local con = connect()
  local rows, deleted = con:query_row("SELECT COUNT(*), COALESCE(SUM(is_deleted), 0) FROM soft_notes")
  assay.total("notes", tonumber(rows))
  assay.total("deleted", tonumber(deleted))
  con:close()
end

init, done = read_totals, read_totals

assay.audit { name = "notes in the table", total = "notes", of = "add", most = 1 }
assay.audit { name = "deleted notes in the table", total = "deleted", of = "notes_deleted", most = 1 }
assay.audit { name = "wrong lists", part = "wrong_lists", whole = "list", high = 0 }

local con, insert, delete, list, owner, visible

function thread_init()
  if sysbench.tid >= sysbench.opt.owners then error("more sessions than owners: prepare with more --owners", 0) end
  con, owner = connect(), sysbench.tid + 1
  if sysbench.tid == 0 then -- not what an option says, if that is wrong
    assay.found("owners", tonumber((con:query_row("SELECT MAX(owner) FROM soft_notes"))) or 0)
  end
  insert = con:prepare("INSERT INTO soft_notes (owner, is_deleted, body) VALUES (?, 0, ?)", "it")
  delete = con:prepare("UPDATE soft_notes SET is_deleted = 1 WHERE id = ? AND is_deleted = 0", "i")
  list = con:prepare("SELECT id, body FROM soft_notes WHERE owner = ? AND is_deleted = 0", "i")
  visible = tonumber((con:query_row("SELECT COUNT(*) FROM soft_notes WHERE is_deleted = 0 AND owner = " .. owner)))
end

local add = assay.transaction("add", function()
  insert:perform(owner, assay.random_text(100, 100))
  visible = visible + 1
end)

-- Lists the notes, and returns the number of one of them.
local function read_list()
  local found, pick = list:execute(owner), nil
  local wanted = found.nrows > 0 and uniform(1, found.nrows)
  for i = 1, found.nrows do
    local id = unpack(found:fetch_row(), 1, 1)
    if i == wanted then pick = tonumber(id) end
  end
  assay.count("wrong_lists", found.nrows == visible and 0 or 1)
  return pick
end

local show = assay.transaction("list", function() read_list() end)

local remove = assay.transaction("remove", function()
  local id = read_list()
  if not id then return end
  delete:perform(id)
  visible = visible - 1
  assay.count("notes_deleted")
end)

function event()
  local opt, draw = sysbench.opt, uniform(1, 100)
  if draw <= opt.lists then return show() end
  if draw <= opt.lists + (100 - opt.lists) / 2 then add() else remove() end
end

--- Marks are 0 or 1, and the notes that were deleted before the run are still marked.
function check()
  local con = connect()
  local function number(text) return tonumber((con:query_row(text))) end
  local strange = number("SELECT COUNT(*) FROM soft_notes WHERE is_deleted NOT IN (0, 1)")
  local deleted = number("SELECT COUNT(*) FROM soft_notes WHERE is_deleted = 1")
  local at_least = sysbench.opt.owners * sysbench.opt.deleted
  local is_right = strange == 0 and deleted >= at_least
  if not is_right then assay.log(("%d deleted notes, at least %d expected; %d strange marks"):format(deleted, at_least, strange)) end
  return is_right
end
