--- Isolation under load: checks what transactions read and wrote against the isolation level that was asked for.
--
--
-- Lists (`--model append`, and `rows` with a row for each element): transactions append unique numbers and read whole
-- lists, so that reads show the order of all appends. Registers (`register`): a write says which version it replaced.
-- Bank (`bank`): the sum of all balances never changes. docs/isolation.md says what is proved. With `--read-from 2`,
-- transactions that only read run on the second --db, such as a replica of the first. One session alone could not show
-- anything: there are 8 unless --sessions says otherwise.

local LEVELS = assay.share("isolation_levels")

sysbench.cmdline.sessions = 8
sysbench.cmdline.options = {
  model = {
    "What transactions work on: append (lists in one row), rows (lists with a row for each element), register "
      .. "(versioned rows) or bank (transfers)", "append",
    choices = { "append", "rows", "register", "bank" },
  },
  level = {
    "Isolation level to ask for, and to check: " .. table.concat(LEVELS, ", "), "serializable", choices = LEVELS,
  },
  expect = {
    "Isolation level to check, if not the one asked for, such as snapshot-isolation or strict-serializable", "",
    choices = LEVELS,
  },
  keys = { "Lists, registers or accounts in use at a time", 50 },
  length = { "Elements after which a list is replaced by a new one", 50 },
  operations = { "Most operations of a transaction", 4 },
  reads = { "Percent of operations that are reads", 50 },
  read_from = { "Number of the --db for transactions that only read; 0: the same as for others", 0 },
  megabytes = { "Most megabytes of history to keep and check", 1024 },
}

local sql = assay.share("isolation_sql")

local WRITER = 1
local BALANCE = 100
local KEYS_MAX = 100000
local LOOKS_MAX, PAUSE = 600, 0.1 -- how often init() looks whether a replica has its changes, and how long it waits

local model, dialect, history, writer, reader
local uniform, draw = sysbench.rand.uniform, sysbench.rand.default

local function connect(number) return sysbench.sql.driver():connect(number) end

local function options()
  local opt = sysbench.opt
  if opt.keys < 2 or opt.keys > KEYS_MAX then error("--keys is a number from 2 to " .. KEYS_MAX, 0) end
  if opt.operations < 1 or opt.length < 1 then error("--operations and --length are at least 1", 0) end
  if opt.read_from < 0 or opt.read_from > opt.databases then
    local there = opt.databases == 1 and "there is one --db" or "there are " .. opt.databases .. " --db"
    error(("--read-from %d: %s"):format(opt.read_from, there), 0)
  end
  return opt
end

function prepare()
  local opt, con = options(), connect(WRITER)
  for _, definition in ipairs(sql.tables) do con:query("CREATE TABLE " .. definition) end
  con:query("INSERT INTO isolation_run (id, token) VALUES (1, 0)")
  for name, columns in pairs(sql.rows) do
    local loader = con:loader(name, columns)
    for id = 1, opt.keys do loader:row(id, unpack(sql.values[name])) end
    loader:done()
  end
end

function cleanup()
  local con = connect(WRITER)
  for _, name in ipairs(sql.names) do con:query("DROP TABLE IF EXISTS " .. name) end
end

-- The run that uses the tables is in one of them. Agents of a fleet have the seed in common, and are one run.
local SEEDS, STARTS = 2 ^ 20, 2 ^ 32
-- A total that differs at the end: the tables were not this run's alone (`assay.history`).
local RUN = "run of the history"
local function seed_of(token) return math.floor(token / STARTS) end
local function own_seed() return sysbench.opt.rand_seed % SEEDS end

--- Values of earlier runs would be those of nobody: everything starts empty, on replicas, too.
function init()
  local opt, con = options(), connect(WRITER)
  local token = own_seed() * STARTS + (os.time() * 1000 + uniform(0, 999)) % STARTS
  local rows = tonumber((con:query_row("SELECT COUNT(*) FROM isolation_register")))
  if rows < opt.keys then
    error(("--keys %d: the tables were prepared with %d"):format(opt.keys, rows), 0)
  end
  for _, statement in ipairs(sql.reset) do con:query(statement) end
  con:query(("UPDATE isolation_run SET token = %.0f WHERE id = 1"):format(token))
  assay.total(RUN, own_seed())
  if opt.read_from == 0 then return end
  local replica = connect(opt.read_from)
  local function token_of(there) return (there:query_row("SELECT token FROM isolation_run WHERE id = 1")) end
  for _ = 1, LOOKS_MAX do
    -- Another agent of a fleet may have written its own meanwhile; even the table may not be there yet.
    local is_there, there = pcall(token_of, replica)
    if is_there and there == token_of(con) then return end
    assay.sleep(PAUSE)
  end
  error(("--read-from %d: this --db does not get the changes of the first"):format(opt.read_from), 0)
end

--- Whose tables they are in the end: a run that has begun meanwhile has emptied them, and sums do not say whose changes
--- they are of.
function done()
  assay.total(RUN, seed_of(tonumber((connect(WRITER):query_row("SELECT token FROM isolation_run WHERE id = 1")))))
end

-- What operations do ------------------------------------------------------------------------------------------------

local models = {}

--- Lists: keys of which new ones replace those that are long enough. Each session does that on its own. `contents` and
--- `add` do it in the database.
local function lists_of(contents, add)
  local opt = sysbench.opt
  local keys, length = opt.keys, opt.length
  local generation, appended = {}, {}
  for slot = 1, keys do generation[slot], appended[slot] = 0, 0 end

  local function key_of(slot) return slot + generation[slot] * keys end

  local function renew(slot, elements)
    if elements < length then return end
    generation[slot], appended[slot] = generation[slot] + 1, 0
  end

  local lists = {}
  function lists.read(session, slot)
    local key = key_of(slot)
    renew(slot, history.list(key, contents(session, key)))
  end
  function lists.write(session, slot)
    local key = key_of(slot)
    add(session, key, history.append(key))
    appended[slot] = appended[slot] + opt.threads
    renew(slot, appended[slot])
  end
  return lists
end

function models.append()
  local function contents(session, key) return (session.read:row(key)) end
  local function add(session, key, value) session.write:perform(key, value) end
  return lists_of(contents, add)
end

--- Elements are counted in a row of their list, so that two transactions that append to it wait for each other.
function models.rows()
  local function contents(session, key)
    local result = session.read:execute(key)
    if result.nrows == 0 then return end
    local elements = {}
    for i = 1, result.nrows do elements[i] = result:fetch_row()[1] end
    return table.concat(elements, ",")
  end
  local function add(session, key, value)
    session.write:perform(key, session:grow(key), value)
  end
  return lists_of(contents, add)
end

--- Registers: rows that count their versions, and keep the writer of the one before.
function models.register()
  local registers = {}
  function registers.read(session, key)
    local number, value = session.read:row(key)
    history.read(key, number, value)
  end
  function registers.write(session, key)
    local number, before = session:replace(key, history.write(key))
    history.replaced(number - 1, before)
  end
  return registers
end

--- Runs `body` in a transaction of the database.
local function in_transaction(session, body, ...)
  for _, statement in ipairs(session.begin) do statement:perform() end
  body(session, ...)
  session.commit:perform()
end

local function operate(session, count, is_read)
  for i = 1, count do
    local key = draw(1, sysbench.opt.keys)
    if is_read[i] then model.read(session, key) else model.write(session, key) end
  end
end

local is_read = {}

local read_only = assay.transaction("read", function(count) in_transaction(reader, operate, count, is_read) end)
local read_write = assay.transaction("write", function(count) in_transaction(writer, operate, count, is_read) end)

local function mixed()
  local opt = sysbench.opt
  local count, only_reads = uniform(1, opt.operations), true
  for i = 1, count do
    is_read[i] = uniform(1, 100) <= opt.reads
    only_reads = only_reads and is_read[i]
  end
  if only_reads then read_only(count) else read_write(count) end
end

local function sum(session)
  local total, keys = 0, sysbench.opt.keys
  for key = 1, keys do total = total + session.read:row(key) end
  history.total(total, BALANCE * keys)
end

--- The new balances are computed here, as applications do.
local function move(session, from, to, amount)
  local first, second = session.read:row(from), session.read:row(to)
  session.write:perform(first - amount, from)
  session.write:perform(second + amount, to)
end

local audit = assay.transaction("audit", function() in_transaction(reader, sum) end)
local transfer = assay.transaction("transfer", function(...) in_transaction(writer, move, ...) end)

local function bank()
  if uniform(1, 100) <= sysbench.opt.reads then return audit() end
  local keys = sysbench.opt.keys
  local from, to = draw(1, keys), draw(1, keys - 1)
  if to >= from then to = to + 1 end
  transfer(from, to, uniform(1, 5))
end

-- Sessions ----------------------------------------------------------------------------------------------------------

--- A connection with its statements.
local function open(number, is_reader)
  local opt, con = sysbench.opt, connect(number)
  local statements = dialect[opt.model]
  local session = { con = con, begin = {}, commit = con:prepare("COMMIT", "") }
  for i, text in ipairs(dialect.begin(opt.level, is_reader)) do session.begin[i] = con:prepare(text, "") end
  session.read = con:prepare(statements.read, "i")
  if is_reader then return session end
  session.write = con:prepare(statements.write, statements.kinds)
  if statements.grow then
    local grow, grown = con:prepare(statements.grow, "i"), statements.grown and con:prepare(statements.grown, "i")
    function session:grow(key)
      if not grown then return tonumber((grow:row(key))) end
      grow:perform(key)
      return tonumber((grown:row(key)))
    end
  end
  if statements.replaced then
    local replaced = con:prepare(statements.replaced, "i")
    function session:replace(key, value)
      self.write:perform(value, key)
      return replaced:row(key)
    end
  else
    function session:replace(key, value) return self.write:row(value, key) end
  end
  return session
end

function thread_init()
  local opt = options()
  local driver = sysbench.sql.driver():name()
  dialect = sql.dialects[driver] or error("isolation does not know how to speak to " .. driver, 0)
  local expect = opt.expect ~= "" and opt.expect or opt.level
  history = assay.history { level = expect, megabytes = opt.megabytes }
  writer = open(WRITER, false)
  reader = open(opt.read_from > 0 and opt.read_from or WRITER, true)
  model = models[opt.model] and models[opt.model]()
end

function event()
  if sysbench.opt.model == "bank" then bank() else mixed() end
end
