--- Publish and subscribe in a table: publishers append to topics, subscribers poll for what is new, or LISTEN for it.
--
--
-- Messages of a topic are numbered under a lock of its row. (An identity column would not do: numbers become visible in
-- the order of commits, and a subscriber that has read 8 never sees a 7 that was committed later.) A notification only
-- wakes a subscriber, which then reads the table: notifications are lost while a connection is, messages are not.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  topics = { "Number of topics", 4 },
  publishes = { "Percent of transactions that publish", 50 },
  limit = { "Messages that a poll reads at most", 100 },
  bytes = { "Length of a message", 100 },
  notify = { "Send a notification with each message (PostgreSQL only): on or off", "off", choices = { "off", "on" } },
  receive = { "poll, in between publishing; or listen: every second session waits for notifications (PostgreSQL only)",
    "poll", choices = { "poll", "listen" } },
  patience = { "Seconds that a session waits for a notification, before it looks in any case", 1 },
}

local uniform = sysbench.rand.uniform

local function connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), driver:name()
end

function prepare()
  local con = connect()
  con:query("CREATE TABLE pubsub_topics (id INT PRIMARY KEY, latest BIGINT NOT NULL)")
  con:query("CREATE TABLE pubsub_messages (topic INT NOT NULL, number BIGINT NOT NULL, body TEXT NOT NULL, "
    .. "PRIMARY KEY (topic, number))")
  local loader = con:loader("pubsub_topics", "id, latest")
  for id = 1, sysbench.opt.topics do loader:row(id, 0) end
  loader:done()
end

function cleanup()
  local con = connect()
  con:query("DROP TABLE IF EXISTS pubsub_messages")
  con:query("DROP TABLE IF EXISTS pubsub_topics")
end

local function read_totals()
  local con = connect()
  assay.total("messages", tonumber((con:query_row("SELECT COUNT(*) FROM pubsub_messages"))))
  assay.total("numbers", tonumber((con:query_row("SELECT COALESCE(SUM(latest), 0) FROM pubsub_topics"))))
  con:close()
end

init, done = read_totals, read_totals

assay.audit { name = "messages in the table", total = "messages", of = "publish", most = 1 }
assay.audit { name = "numbers given to messages", total = "numbers", of = "publish", most = 1 }
assay.audit { name = "messages missed by subscribers", part = "missed", whole = "received", high = 0 }

local con, begin, commit, advance, latest, insert, poll, notify, topic, cursor, listens

local function listen() con:query("LISTEN pubsub_" .. topic) end

function thread_init()
  local opt, product = sysbench.opt, nil
  con, product = connect()
  if sysbench.tid == 0 then -- not what an option says, if that is wrong
    assay.found("topics", tonumber((con:query_row("SELECT COUNT(*) FROM pubsub_topics"))))
  end
  begin = con:prepare(product == "sqlite" and "BEGIN IMMEDIATE" or "BEGIN", "")
  commit = con:prepare("COMMIT", "")
  advance = con:prepare("UPDATE pubsub_topics SET latest = latest + 1 WHERE id = ?", "i")
  latest = con:prepare("SELECT latest FROM pubsub_topics WHERE id = ?", "i")
  insert = con:prepare("INSERT INTO pubsub_messages (topic, number, body) VALUES (?, ?, ?)", "iit")
  poll = con:prepare("SELECT number FROM pubsub_messages WHERE topic = ? AND number > ? ORDER BY number LIMIT " .. opt.limit, "ii")
  local is_listening = opt.receive == "listen"
  if opt.notify == "on" or is_listening then
    if product ~= "pgsql" then error("notifications are for PostgreSQL", 0) end
    notify = con:prepare("SELECT pg_notify(?, ?)", "tt")
  end
  if is_listening and opt.threads < 2 then error("--receive listen needs at least 2 sessions", 0) end
  listens = is_listening and sysbench.tid % 2 == 1
  -- A session subscribes to one topic, from now on: listening comes first, so that nothing is missed in between.
  topic = (listens and (sysbench.tid - 1) / 2 or sysbench.tid) % opt.topics + 1
  if listens then listen() end
  cursor = tonumber((latest:row(topic)))
end

-- The transaction is started again, perhaps on a new connection, which does not listen yet.
function sysbench.hooks.before_restart_event()
  if listens then listen() end
end

local publish = assay.transaction("publish", function()
  local to = uniform(1, sysbench.opt.topics)
  begin:perform()
  advance:perform(to)
  local number = tonumber((latest:row(to)))
  insert:perform(to, number, assay.random_text(sysbench.opt.bytes, sysbench.opt.bytes))
  if notify then notify:perform("pubsub_" .. to, number) end
  commit:perform()
end)

local function read()
  local found, missed = poll:execute(topic, cursor), 0
  local last = cursor
  for _ = 1, found.nrows do
    local number = tonumber((unpack(found:fetch_row(), 1, 1)))
    missed = missed + number - last - 1
    last = number
  end
  assay.count("received", last - cursor)
  assay.count("missed", missed)
  if found.nrows == 0 then assay.count("found_nothing") end
  cursor = last
end

local receive = assay.transaction("poll", read)

local wait = assay.transaction("listen", function()
  if con:notification(sysbench.opt.patience) then
    -- One look at the table is enough for all that came by now.
    while con:notification(0) do assay.count("notified") end
    assay.count("notified")
  else
    assay.count("nobody_called")
  end
  read()
end)

function event()
  if listens then return wait() end
  if sysbench.opt.receive == "listen" then return publish() end
  if uniform(1, 100) <= sysbench.opt.publishes then publish() else receive() end
end

--- The messages of each topic are numbered from 1 without gaps.
function check()
  local con = connect()
  local wrong = tonumber((con:query_row([[
SELECT COUNT(*) FROM pubsub_topics t WHERE latest <> (SELECT COUNT(*) FROM pubsub_messages m WHERE m.topic = t.id)
  OR latest <> (SELECT COALESCE(MAX(number), 0) FROM pubsub_messages m WHERE m.topic = t.id)]])))
  if wrong > 0 then assay.log(wrong .. " topics have missing messages") end
  return wrong == 0
end
