--- Cases of Hermitage with two sessions that take turns: whoever waits at a barrier holds no lock that the other needs.
sysbench.cmdline.options = {
  case = { "Name of the case", "" },
  level = { "Isolation level to ask for", "serializable" },
  expect = { "Isolation level to check", "serializable" },
}

local sql = assay.share("isolation_sql")
local X, Y = 1, 2

local con, statements, history, replaced

function prepare()
  local own = sysbench.sql.driver():connect()
  for _, definition in ipairs(sql.tables) do
    if definition:find("isolation_register ", 1, true) == 1 then own:query("CREATE TABLE " .. definition) end
  end
  for id = X, Y do own:query("INSERT INTO isolation_register VALUES (" .. id .. ", 0, 0, 0)") end
end

function init()
  sysbench.sql.driver():connect():query("UPDATE isolation_register SET version = 0, writer = 0, previous = 0")
end

function thread_init()
  con = sysbench.sql.driver():connect()
  local dialect = sql.dialects[sysbench.sql.driver():name()]
  statements = { begin = {}, commit = con:prepare("COMMIT", ""), rollback = con:prepare("ROLLBACK", "") }
  -- In SQLite, a transaction that begins as a reader.
  for i, text in ipairs(dialect.begin(sysbench.opt.level, true)) do statements.begin[i] = con:prepare(text, "") end
  local texts = dialect.register
  statements.read, statements.write = con:prepare(texts.read, "i"), con:prepare(texts.write, "ii")
  replaced = texts.replaced and con:prepare(texts.replaced, "i")
  history = assay.history { level = sysbench.opt.expect, megabytes = 1 }
end

local function begin()
  for _, statement in ipairs(statements.begin) do statement:perform() end
end

local function read(key)
  local number, value = statements.read:row(key)
  history.read(key, number, value)
end

local function write(key)
  local value = history.write(key)
  local number, before
  if replaced then
    statements.write:perform(value, key)
    number, before = replaced:row(key)
  else
    number, before = statements.write:row(value, key)
  end
  history.replaced(number - 1, before)
end

local function commit() statements.commit:perform() end

local function roll_back()
  statements.rollback:perform()
  assay.rolled_back()
end

local both = assay.barrier

-- What the first session does, and the second; `both` is where they wait for each other.
local cases = {
  lost_update = {
    { begin, function() read(X) end, both, function() write(X) end, commit, both },
    { begin, function() read(X) end, both, both, function() write(X) end, commit },
  },
  write_skew = {
    { begin, function() read(X) read(Y) end, both, function() write(X) end, commit, both },
    { begin, function() read(X) read(Y) end, both, both, function() write(Y) end, commit },
  },
  read_skew = {
    { begin, function() read(X) end, both, both, function() read(Y) end, commit },
    { both, begin, function() write(X) write(Y) end, commit, both },
  },
  aborted_read = {
    { begin, function() write(X) end, both, both, roll_back },
    { both, begin, function() read(X) end, commit, both },
  },
  intermediate_read = {
    { begin, function() write(X) end, both, both, function() write(X) end, commit },
    { both, begin, function() read(X) end, commit, both },
  },
  dirty_write = {
    { begin, function() write(X) end, both, function() write(Y) end, commit },
    { begin, both, function() write(X) write(Y) end, commit },
  },
  circular = {
    { begin, function() write(X) end, both, function() read(Y) end, both, commit },
    { begin, function() write(Y) end, both, function() read(X) end, both, commit },
  },
}

--- What the server ended is not tried again: the other session has gone on.
function event(tid, attempt)
  if attempt > 0 then return end
  for _, step in ipairs(cases[sysbench.opt.case][tid + 1]) do step() end
end
