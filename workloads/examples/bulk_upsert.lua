--- Bulk upsert: each statement inserts new rows of a batch, and adds to those that exist.
--
--
-- INSERT … ON CONFLICT on PostgreSQL and SQLite, ON DUPLICATE KEY UPDATE on MySQL and MariaDB. `--sorted off` sends the
-- keys of a batch in random order, so that concurrent batches can deadlock.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  keys = { "Different keys; half of them exist when the run starts", 10000 },
  batch = { "Rows per statement", 100 },
  sorted = { "Send the keys of a batch in ascending order: on or off", "on" },
}

local uniform = sysbench.rand.uniform

local ON_CONFLICT = " ON CONFLICT (id) DO UPDATE SET quantity = bulk_upsert.quantity + excluded.quantity, "
  .. "updates = bulk_upsert.updates + 1"
local ON_DUPLICATE = " ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity), updates = updates + 1"

local function connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), driver:name()
end

function prepare()
  local con = connect()
  con:query("CREATE TABLE bulk_upsert (id INT PRIMARY KEY, quantity BIGINT NOT NULL, updates BIGINT NOT NULL)")
  local loader = con:loader("bulk_upsert", "id, quantity, updates")
  for id = 1, sysbench.opt.keys, 2 do loader:row(id, 0, 0) end
  loader:done()
end

function cleanup() connect():query("DROP TABLE IF EXISTS bulk_upsert") end

local function read_totals()
  local con = connect()
  local updates, quantity = con:query_row("SELECT SUM(updates), SUM(quantity) FROM bulk_upsert")
  assay.total("updates", tonumber(updates) or 0)
  assay.total("quantity", tonumber(quantity) or 0)
  con:close()
end

init, done = read_totals, read_totals

local con, upsert

function thread_init()
  local opt, product, cells = sysbench.opt, nil, {}
  if opt.batch > opt.keys then error("--batch is at most --keys: the keys of a batch differ", 0) end
  con, product = connect()
  if sysbench.tid == 0 then -- not what an option says, if that is wrong; every second key was loaded
    local loaded = tonumber((con:query_row("SELECT COUNT(*) FROM bulk_upsert WHERE id % 2 = 1")))
    assay.found("keys", loaded == math.floor((opt.keys + 1) / 2) and opt.keys or 2 * loaded)
  end
  for i = 1, opt.batch do cells[i] = "(?, ?, 1)" end
  upsert = con:prepare("INSERT INTO bulk_upsert (id, quantity, updates) VALUES " .. table.concat(cells, ", ")
    .. (product == "mysql" and ON_DUPLICATE or ON_CONFLICT), ("ii"):rep(opt.batch))
  assay.audit { name = "rows upserted in the table", total = "updates", of = "rows", most = opt.batch }
  assay.audit { name = "quantity in the table", total = "quantity", of = "quantity", most = 10 * opt.batch }
end

-- Different keys: one statement must not have the same key twice.
local function draw_keys(count)
  local keys, is_drawn = {}, {}
  while #keys < count do
    local key = uniform(1, sysbench.opt.keys)
    if not is_drawn[key] then
      keys[#keys + 1], is_drawn[key] = key, true
    end
  end
  if sysbench.opt.sorted == "on" then table.sort(keys) end
  return keys
end

local send = assay.transaction("upsert", function()
  local values, sum = {}, 0
  for i, key in ipairs(draw_keys(sysbench.opt.batch)) do
    local quantity = uniform(1, 10)
    values[2 * i - 1], values[2 * i] = key, quantity
    sum = sum + quantity
  end
  upsert:perform(unpack(values))
  assay.count("rows", sysbench.opt.batch)
  assay.count("quantity", sum)
end)

function event() send() end

--- Keys are in range, and the rows that existed at the start still do.
function check()
  local con, keys = connect(), sysbench.opt.keys
  local outside = tonumber((con:query_row("SELECT COUNT(*) FROM bulk_upsert WHERE id < 1 OR id > " .. keys)))
  local odd = tonumber((con:query_row("SELECT COUNT(*) FROM bulk_upsert WHERE id % 2 = 1")))
  local is_right = outside == 0 and odd == math.floor((keys + 1) / 2)
  if not is_right then assay.log(("%d keys outside 1 to %d, %d odd keys"):format(outside, keys, odd)) end
  return is_right
end
