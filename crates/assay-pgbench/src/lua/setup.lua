--- What pgbench does before a run, and its initialization: one session, on a connection of its own.
local C = assay.share("pgbench_client")
local front = pgbench_front
local S = {}

-- Kinds of reports: `Figure` in commands/pgbench.
local SCALE, PARTITIONS = 7, 8

--- `purpose`: in the words of the error.
local function connect(purpose)
  local connection, why = C.connect()
  if connection then return connection end
  front.say(why)
  front.say("could not create connection for " .. purpose)
  error("told", 0)
end

--- A statement; an error of the server is reported and ends the work.
local function execute(connection, text)
  local ok, result = pcall(connection.query, connection, text)
  if ok then return result end
  if not connection.sql_errmsg then error(result, 0) end
  local place = front.marked(text, connection.sql_position)
  front.say("query failed: ERROR:  " .. connection.sql_errmsg .. place .. (connection.sql_details or ""))
  front.tell("detail: Query was: " .. text)
  error("told", 0)
end

--- Whose statements and messages these are: those of the pgbench that belongs to the server, from 15 on, or of the one
--- that was asked for. A new server may refuse what an old pgbench sends.
local function version(connection, opt)
  if opt.pgbench_version > 0 then return opt.pgbench_version end
  return math.max(15, math.floor(tonumber((connection:query_row("show server_version_num"))) / 10000))
end

local function suggest_initialization(opt)
  front.tell(('hint: Perhaps you need to do initialization ("pgbench -i") in database "%s".'):format(opt.database))
  error("told", 0)
end

--- Finds the scale, and vacuums.
function S.before()
  local opt = sysbench.opt
  local connection = connect("setup")
  local server = connection:query_row("show server_version")
  if server == opt.version or server:sub(1, #opt.version + 1) == opt.version .. " " then
    front.banner(("pgbench (%s)"):format(server))
  else
    front.banner(("pgbench (%s, server %s)"):format(opt.version, server))
  end
  if opt.finds_scale then
    local text = "select count(*) from pgbench_branches"
    local ok, result = pcall(connection.query, connection, text)
    if not ok then
      if not connection.sql_errmsg then error(result, 0) end
      local place = front.marked(text, connection.sql_position)
      front.say("could not count number of branches: ERROR:  " .. connection.sql_errmsg .. place .. (connection.sql_details or ""))
      suggest_initialization(opt)
    end
    local scale = tonumber(result:fetch_row()[1])
    front.figures(SCALE, scale)
    if opt.scale_given then
      front.tell(("warning: scale option ignored, using count from pgbench_branches table (%d)"):format(scale))
    end
    local ok, partitions = pcall(connection.query_row, connection, [[
      select case p.partstrat when 'r' then 1 when 'h' then 2 else 0 end || ' ' || count(i.inhparent)
      from pg_catalog.pg_class as c
      left join pg_catalog.pg_partitioned_table as p on p.partrelid = c.oid
      left join pg_catalog.pg_inherits as i on c.oid = i.inhparent
      where c.oid = pg_catalog.to_regclass('pgbench_accounts') group by p.partstrat]])
    if ok and not partitions then
      front.say("no pgbench_accounts table found in search_path")
      suggest_initialization(opt)
    elseif ok then
      local method, count = partitions:match("^(%d) (%d+)$")
      front.figures(PARTITIONS, tonumber(method), tonumber(count))
    elseif not connection.sql_errmsg then
      error(partitions, 0)
    end
    -- Servers before version 10 have no such catalog, and no partitions.
  end
  if opt.vacuums then
    front.print("starting vacuum...")
    for _, text in ipairs { "vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history" } do
      local ok, failure = pcall(connection.query, connection, text)
      if not ok then
        if not connection.sql_errmsg then error(failure, 0) end
        front.tell("error: ERROR:  " .. connection.sql_errmsg .. (connection.sql_details or ""))
        front.tell("detail: (ignoring this error and continuing anyway)")
      end
    end
    front.print("end.\n")
  end
  if opt.vacuums_all then
    front.print("starting vacuum pgbench_accounts...")
    execute(connection, "vacuum analyze pgbench_accounts")
    front.print("end.\n")
  end
  connection:disconnect()
end

-- Initialization -----------------------------------------------------------------------------------------------------

local BRANCHES, TELLERS, ACCOUNTS = 1, 10, 100000 -- per scale
local FIRST_ROWS = 10000
local TABLES = { "pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers" }

local steps = {}

function steps.d(connection)
  front.print("dropping old tables...\n")
  execute(connection, "drop table if exists " .. table.concat(TABLES, ", "))
  return "drop tables"
end

local function create_partitions(connection, opt, create, fill)
  front.print(("creating %d partitions...\n"):format(opt.partitions))
  local size = math.floor((ACCOUNTS * opt.scale + opt.partitions - 1) / opt.partitions)
  for p = 1, opt.partitions do
    local bounds
    if opt.partition_method == "hash" then
      bounds = ("with (modulus %d, remainder %d)"):format(opt.partitions, p - 1)
    else
      bounds = ("from (%s) to (%s)"):format(p == 1 and "minvalue" or ("%.0f"):format((p - 1) * size + 1),
        p == opt.partitions and "maxvalue" or ("%.0f"):format(p * size + 1))
    end
    execute(connection, ("%s pgbench_accounts_%d partition of pgbench_accounts for values %s%s"):format(create, p, bounds, fill))
  end
end

function steps.t(connection, opt)
  front.print("creating tables...\n")
  local create_partition = opt.unlogged and "create unlogged table" or "create table"
  -- From version 18 on, a partitioned table cannot be unlogged, and its partitions alone are.
  local only_partitions = opt.partitions > 0 and opt.version >= 18
  local create = only_partitions and "create table" or create_partition
  local fill = (" with (fillfactor=%d)"):format(opt.fillfactor)
  local space = opt.tablespace ~= "" and (' tablespace "%s"'):format(opt.tablespace:gsub('"', '""')) or ""
  -- Beyond this many rows a key needs 64 bits.
  local key = opt.scale >= 20000 and "bigint" or "int"
  local partitioned = opt.partitions > 0 and (" partition by %s (aid)"):format(opt.partition_method)
  for _, definition in ipairs {
    { "pgbench_history", ("tid int,bid int,aid %6s,delta int,mtime timestamp,filler char(22)"):format(key), "" },
    { "pgbench_tellers", "tid int not null,bid int,tbalance int,filler char(84)", fill },
    { "pgbench_accounts", ("aid %6s not null,bid int,abalance int,filler char(84)"):format(key), partitioned or fill },
    { "pgbench_branches", "bid int not null,bbalance int,filler char(88)", fill },
  } do
    local name, columns, rest = unpack(definition)
    execute(connection, ("%s %s(%s)%s%s"):format(create, name, columns, rest, space))
  end
  if opt.partitions > 0 then create_partitions(connection, opt, create_partition, fill) end
  return "create tables"
end

local function empty(connection)
  execute(connection, "begin")
  execute(connection, "truncate table " .. table.concat(TABLES, ", "))
end

local function progress(opt, done, all, begun, told)
  local elapsed = front.now() - begun
  local is_last = done == all
  if opt.quiet and not is_last and elapsed < told + 5 then return told end
  front.print(("%.0f of %.0f tuples (%d%%)%s done (elapsed %.2f s, remaining %.2f s)\n"):format(
    done, all, math.floor(done * 100 / all), opt.version >= 17 and " of pgbench_accounts" or "", elapsed,
    (all - done) * elapsed / done))
  return elapsed
end

--- Rows of a partitioned table cannot be frozen.
local function is_partitioned(connection)
  local kind = connection:query_row("select relkind from pg_catalog.pg_class where oid = 'pgbench_accounts'::regclass")
  return kind == "p"
end

function steps.g(connection, opt)
  front.print("generating data (client-side)...\n")
  empty(connection)
  local scale = opt.scale
  local branches = connection:loader("pgbench_branches", "bid,bbalance", true)
  local tellers = connection:loader("pgbench_tellers", "tid,bid,tbalance", true)
  for bid = 1, BRANCHES * scale do branches:row(bid, 0) end
  branches:done()
  for tid = 1, TELLERS * scale do tellers:row(tid, math.floor((tid - 1) / TELLERS) + 1, 0) end
  tellers:done()
  local accounts = connection:loader("pgbench_accounts", "aid,bid,abalance,filler", not is_partitioned(connection))
  local all, begun, told = ACCOUNTS * scale, front.now(), 0
  local aid = 0
  for bid = 1, scale do
    for _ = 1, ACCOUNTS do
      aid = aid + 1
      accounts:row(aid, bid, 0, "")
      -- The server begins early, and says what types the columns have: from then on they go in binary form.
      if aid == FIRST_ROWS then accounts:flush() end
    end
    if bid == scale then accounts:done() end
    told = progress(opt, aid, all, begun, told)
  end
  execute(connection, "commit")
  return "client-side generate"
end

function steps.G(connection, opt)
  front.print("generating data (server-side)...\n")
  empty(connection)
  local scale = opt.scale
  execute(connection, ("insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, %d) as bid"):format(scale))
  execute(connection, ("insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / %d + 1, 0 from generate_series(1, %d) as tid")
    :format(TELLERS, TELLERS * scale))
  execute(connection, ("insert into pgbench_accounts(aid,bid,abalance,filler) select aid, (aid - 1) / %d + 1, 0, '' from generate_series(1, %.0f) as aid")
    :format(ACCOUNTS, ACCOUNTS * scale))
  execute(connection, "commit")
  return "server-side generate"
end

function steps.v(connection)
  front.print("vacuuming...\n")
  for _, name in ipairs { "branches", "tellers", "accounts", "history" } do
    execute(connection, "vacuum analyze pgbench_" .. name)
  end
  return "vacuum"
end

function steps.p(connection, opt)
  front.print("creating primary keys...\n")
  local space = opt.index_tablespace ~= ""
    and (' using index tablespace "%s"'):format(opt.index_tablespace:gsub('"', '""')) or ""
  for _, key in ipairs { "branches add primary key (bid)", "tellers add primary key (tid)", "accounts add primary key (aid)" } do
    execute(connection, "alter table pgbench_" .. key .. space)
  end
  return "primary keys"
end

function steps.f(connection)
  front.print("creating foreign keys...\n")
  for _, key in ipairs {
    { "tellers", "bid", "branches" }, { "accounts", "bid", "branches" }, { "history", "bid", "branches" },
    { "history", "tid", "tellers" }, { "history", "aid", "accounts" },
  } do
    local from, column, to = unpack(key)
    execute(connection, ("alter table pgbench_%s add constraint pgbench_%s_%s_fkey foreign key (%s) references pgbench_%s"):format(
      from, from, column, column, to))
  end
  return "foreign keys"
end

--- Runs the steps in turn.
function S.initialize()
  local opt = sysbench.opt
  local connection = connect("initialization")
  opt.version = version(connection, opt)
  local begun, parts = front.now(), {}
  for step in opt.steps:gmatch("[dtgGvpf]") do
    local from = front.now()
    local name = steps[step](connection, opt)
    parts[#parts + 1] = ("%s %.2f s"):format(name, front.now() - from)
  end
  front.print(("done in %.2f s (%s).\n"):format(front.now() - begun, table.concat(parts, ", ")))
  connection:disconnect()
end

return S
