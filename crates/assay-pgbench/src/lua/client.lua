--- A client of pgbench: its connection, its transactions one after the other, and its error handling.
--
--
-- Serialization failures and deadlocks are retried as often as requested, with the same random numbers; any other error
-- ends the client, and the others continue. Events are reported to the program as numbers (`commands/pgbench` reads
-- them); the engine measures how long transactions take. Runs once per Lua state.
local R = assay.share("pgbench_runtime")
local front = pgbench_front
local C = {}

-- Kinds of reports: `Figure` in commands/pgbench.
local SKIPPED, RETRIED, FAILED, ABORTED, COMMAND, CONNECTED = 1, 2, 3, 4, 5, 6
-- How a transaction ends: in the journal, and for `front.ending`.
local SERIALIZATION, DEADLOCK, SKIPPED_ENDING, OTHER = 1, 2, 3, 4
local FAILS, IS_NOT_DONE = 2, 3

local clients = {} -- by number
local options -- sysbench.opt, the same for all
-- Whether each transaction reports it.
local rate, latency_limit, tries_max, reconnects, writes_journal
local journal
local total_weight = 0
local has_plain -- whether every transaction can run without Lua

--- libpq's message for a connection that could not be made.
local function connection_error(failure)
  local words = failure.refused
  if failure.class == "connection" then
    -- The system's message, after the address.
    words = words:match(": ([^:]+)$") or words
    words = words:sub(1, 1):upper() .. words:sub(2)
    if sysbench.opt.place:find(" on socket ", 1, true) then
      words = words .. "\n\tIs the server running locally and accepting connections on that socket?"
    else
      words = words .. "\n\tIs the server running on that host and accepting TCP/IP connections?"
    end
  end
  local prefix = failure.class == "host" and "" or sysbench.opt.place .. " failed: "
  if failure.class ~= "connection" and failure.class ~= "host" then prefix = prefix .. "FATAL:  " end
  return prefix .. words .. (failure.details or "")
end

--- A connection, or nil and the reason.
local function connect()
  local ok, result = pcall(function() return sysbench.sql.driver():connect() end)
  if ok then return result end
  if type(result) == "table" and result.refused then return nil, connection_error(result) end
  error(result, 0)
end
C.connect = connect

--- Before the run. `scripts`: bodies, weights, and texts of the commands.
function C.init(tid, scripts, given)
  if not options then
    options = sysbench.opt
    for _, script in ipairs(scripts) do total_weight = total_weight + script.weight end
    rate, latency_limit, tries_max = options.rate, options.latency_limit, options.tries
    reconnects, writes_journal = options.reconnects, options.journal
    journal = assay.journal { "client", "script", "ending", "number", "retries" }
    has_plain = #scripts == 1 and scripts[1].plain and tries_max == 1 and not reconnects and not writes_journal
  end
  local self = {
    tid = tid, v = R.variables(tid, given), scripts = scripts, statements = {}, at = 0, from = 0, number = 0, types = {},
    counts = {}, sums = {}, failures = {}, retries = {},
  }
  for i, script in ipairs(scripts) do
    self.statements[i] = {}
    self.counts[i], self.sums[i], self.failures[i], self.retries[i] = {}, {}, {}, {}
    -- A type of transaction for each script, if there are several.
    if #scripts > 1 then self.types[i] = front.type_named("script " .. i) end
  end
  clients[tid] = self
  if not reconnects then
    local connection, why = connect()
    if not connection then
      front.say(why)
      front.say("could not create connection for client " .. tid)
      error("told", 0)
    end
    self.c = connection
  end
  if has_plain then
    local form = scripts[1].plain
    self.plain = R.plain(form.text, form.variables, self, self.v, self.c, self.statements[1])
  end
end

--- A command took this long.
local function took(self, seconds)
  local counts, sums, at = self.counts[self.script], self.sums[self.script], self.at
  counts[at] = (counts[at] or 0) + 1
  sums[at] = (sums[at] or 0) + seconds
end

--- With -d: what the client does.
function C.tell(self, what) front.tell(("client %d %s"):format(self.tid, what)) end

--- With -r: the previous command is over, and this one starts.
function C.step(self, number)
  local instant = front.now()
  if self.since then took(self, instant - self.since) end
  self.at, self.since = number, instant
end

local NAMES = { [SERIALIZATION] = "40001", [DEADLOCK] = "40P01" }

--- Where in a statement its error is: as a number, or shown in the text that was sent.
local function place_of(self, failure)
  local position, text = failure.position or 0, failure.query
  if options.mode == "prepared" then return position > 0 and " at character " .. position or "" end
  if text:sub(1, 1) == "<" then text = (self.scripts[self.script].texts or {})[self.at] end
  return text and front.marked(text, position) or ""
end

--- The server's message as libpq shows it, from its severity on.
local function shown(self, failure, words)
  -- These end the connection.
  local severity = failure.sql_state:find("^57P0") and "FATAL" or "ERROR"
  return severity .. ":  " .. words .. place_of(self, failure) .. (failure.details or "")
end

--- With --verbose-errors: an error that does not end the client.
local function tell_error(self, failure)
  if options.verbose_errors then
    front.tell(("client %d got an error in command %d (SQL) of script %d; %s"):format(self.tid, self.at, self.script - 1,
      shown(self, failure, failure.sql_errmsg)))
  end
end

--- What to do about an error: SERIALIZATION, DEADLOCK or OTHER, or nil if the client ends, which is reported then.
local function judge(self, failure)
  local script, command = self.script - 1, self.at
  if type(failure) ~= "table" then
    front.say(tostring(failure))
    return nil
  elseif failure.pgbench_end then
    self.is_complete = failure.is_complete
    front.say(("client %d aborted: %s"):format(self.tid, failure.pgbench_end))
    return nil
  elseif failure.pgbench then
    local name = failure.command or self.scripts[self.script].names[command + 1]
    if failure.pgbench ~= "" then front.say(failure.pgbench) end
    front.say(("client %d aborted in command %d (%s) of script %d; %s"):format(self.tid, command, name, script,
      failure.while_at))
    return nil
  elseif failure.pgbench_rows then
    if failure.first then front.say(failure.first) end
    front.say(("client %d script %d command %d %s"):format(self.tid, script, command, failure.pgbench_rows))
    return nil
  end
  for kind, state in ipairs(NAMES) do
    if failure.sql_state == state then
      tell_error(self, failure)
      return kind
    end
  end
  local words = tostring(failure.sql_errmsg)
  if failure.is_unprepared then words = ('prepared statement "P_%d" does not exist'):format(command) end
  if words:find("cannot be run from a script", 1, true) then
    front.say("COPY is not supported in pgbench, aborting")
    return nil
  end
  if options.continues and failure.sql_state ~= "" and not failure.sql_state:find("^57P0") then
    tell_error(self, failure)
    return OTHER
  end
  if failure.sql_state == "" then
    front.say(("client %d aborted in command %d (SQL) of script %d; perhaps the backend died while processing"):format(
      self.tid, command, script))
  else
    front.say(("client %d script %d aborted in command %d query 0: %s"):format(self.tid, script, command,
      shown(self, failure, words)))
  end
  return nil
end

--- A new connection for the next transaction. False: it failed, which is reported.
local function reconnect(self)
  local begun = front.now()
  if not self.c then
    local why
    self.c, why = connect()
    if not self.c then
      front.say(why)
      front.say(("client %d aborted while establishing connection"):format(self.tid))
      return false
    end
  else
    local ok, failure = pcall(self.c.reconnect, self.c)
    if not ok then
      if type(failure) == "table" and failure.sql_errmsg then
        local class = failure.sql_state == "" and "connection" or "server"
        front.say(connection_error { refused = failure.sql_errmsg, class = class, details = failure.details })
      end
      front.say(("client %d aborted while establishing connection"):format(self.tid))
      return false
    end
  end
  front.figures(CONNECTED, front.now() - begun)
  return true
end

--- A random script, by weight.
local function chosen(self)
  local scripts = self.scripts
  local drawn = math.floor(sysbench.rand.uniform_double() * total_weight)
  for i, script in ipairs(scripts) do
    drawn = drawn - script.weight
    if drawn < 0 then return i end
  end
end

local line = {}

local function write_line(self, ending, retries)
  line[1], line[2], line[3], line[4], line[5] = self.tid, self.script - 1, ending, self.number, retries
  journal(line)
end

--- Whether another try is worth it.
local function may_try_again(tries, begun)
  if tries_max ~= 0 and tries >= tries_max then return false end
  return latency_limit == 0 or front.now() - begun <= latency_limit
end

--- The transaction that runs fails, at its present command, and is not tried again.
local function give_up(self, which, kind, tries)
  front.ending(FAILS)
  front.figures(FAILED, which - 1, kind)
  if options.verbose_errors then
    front.tell(("client %d ends the failed transaction (try %s)"):format(self.tid,
      tries_max == 0 and tries or tries .. "/" .. tries_max))
  end
  local failed = self.failures[which]
  failed[self.at] = (failed[self.at] or 0) + 1
end

--- What still waited is forgotten by the rollback.
local function roll_back(self)
  self.pipeline, self.c.deferring = nil, false
  if self.c:in_transaction() then front.roll_back(self.c) end
end

--- The commands of a script, from where a plain program left it.
local function perform(self, script, statements)
  local from = self.from
  self.from = 0
  R.run(script.commands, script.count, from, self, self.v, self.c, statements, script.timed and C.step)
  C.finish(self, script.begins)
end

--- One transaction, with its retries. False: the client ends.
local function transaction(self, late)
  local which, types = 1, self.types
  if types[1] then
    which = chosen(self)
    front.is_of(types[which])
  end
  self.script, self.number = which, self.number + 1
  if rate > 0 and latency_limit > 0 and late > latency_limit then
    front.ending(IS_NOT_DONE)
    front.figures(SKIPPED, which - 1)
    if writes_journal then write_line(self, SKIPPED_ENDING, 0) end
    return true
  end
  local script, statements = self.scripts[which], self.statements[which]
  if script.debug then C.tell(self, ('executing script "%s"'):format(script.name)) end
  if reconnects and not reconnect(self) then return false end
  local kept, begun
  if tries_max ~= 1 then
    kept, begun = {}, front.now()
    for name, value in next, self.v do kept[name] = value end
    front.keep_random()
  end
  local tries, ending = 1, 0
  while true do
    self.since = nil
    local ok, failure = pcall(perform, self, script, statements)
    if ok then
      if self.since then took(self, front.now() - self.since) end
      break
    end
    local kind = judge(self, failure)
    if not kind then
      if self.is_complete then break end
      return false
    end
    roll_back(self)
    if kind == OTHER or not (kept and may_try_again(tries, begun)) then
      ending = kind
      give_up(self, which, kind, tries)
      break
    end
    local retries, at = self.retries[which], self.at
    retries[at] = (retries[at] or 0) + 1
    if options.verbose_errors then
      front.tell(("client %d repeats the transaction after the error (try %s)"):format(self.tid,
        tries_max == 0 and tries or tries .. "/" .. tries_max))
    end
    tries = tries + 1
    local v = self.v
    for name in next, v do v[name] = kept[name] end
    front.again_random()
  end
  if tries > 1 then front.figures(RETRIED, which - 1, tries - 1) end
  if writes_journal then write_line(self, ending, tries - 1) end
  return not self.is_complete
end

--- Does what a plain program leaves to be decided. False: the client ends.
local function decide(self, form, what, at, text, ...)
  form:restore(at)
  self.script, self.at, self.since = 1, at, nil
  local ok, failure
  if what == assay.plain.REFUSED then
    ok, failure = pcall(assay.plain.refused, self.c, text or form.statements[at], ...)
  elseif what == assay.plain.OPEN then
    ok, failure = pcall(C.finish, self, true)
  else
    ok, failure = pcall(perform, self, self.scripts[1], form.statements)
  end
  self.from = 0
  if ok then return true end
  local kind = judge(self, failure)
  if not kind then return false end
  roll_back(self)
  give_up(self, 1, kind, 1)
  return true
end

--- Transactions without Lua, as long as that goes, once the first has prepared the statements. How many of `left` are
--- left, whether the client goes on, and whether the run is over.
local function run_plain(self, form, left)
  local values = form:values()
  if not values then return left, true, false end
  local function after(what, ...)
    if not what then return left, true, false end
    local is_over = what == assay.plain.OVER
    return assay.plain.left(), is_over or decide(self, form, what, ...), is_over
  end
  return after(assay.plain.run(form.program, form.connection, form.statements, values, left))
end

--- A client's whole run.
function C.run(tid)
  local self = clients[tid]
  local left = options.transactions == 0 and math.huge or options.transactions
  local goes_on, is_over = true, false
  while left > 0 do
    local go, late = front.next()
    if not go then break end
    left, goes_on = left - 1, transaction(self, late or 0)
    if self.plain and goes_on and left > 0 then
      left, goes_on, is_over = run_plain(self, self.plain, left)
    end
    if not goes_on then
      front.figures(ABORTED, tid)
      if not self.is_complete then front.stop() end
    end
    if is_over or not goes_on then break end
  end
  for i, script in ipairs(self.scripts) do
    for command = 0, #script.names - 1 do
      local counts, failures, retries = self.counts[i][command], self.failures[i][command], self.retries[i][command]
      if counts or failures or retries then
        front.figures(COMMAND, i - 1, command, counts or 0, self.sums[i][command] or 0, failures or 0, retries or 0)
      end
    end
  end
  clients[tid] = nil
end

--- At the end of a script. `begins`: it may have begun a transaction.
function C.finish(self, begins)
  if self.pipeline then
    self.pipeline = nil
    error({ pgbench_end = "end of script reached with pipeline open" }, 0)
  elseif begins and self.c:in_transaction() then
    -- pgbench counts this transaction.
    error({ pgbench_end = "end of script reached without completing the last transaction", is_complete = true }, 0)
  end
end

--- A pipeline starts.
function C.begin_pipeline(self)
  if options.mode == "simple" then R.fail("", "cannot use pipeline mode with the simple query protocol") end
  if self.pipeline then R.fail("", "already in pipeline mode") end
  self.pipeline = true
end

function C.synchronize(self)
  if not self.pipeline then R.fail("", "not in pipeline mode") end
  self.c:synchronize()
end

--- It ends: what waited is sent and answered.
function C.end_pipeline(self)
  if not self.pipeline then R.fail("", "not in pipeline mode") end
  self.c:flush()
  self.pipeline = nil
end

return C
