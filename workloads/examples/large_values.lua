--- Large values: stores and fetches texts of 100 KB, each checked against what was stored.
--
--
-- A value begins with its row and version, so that a fetch notices one that is cut off, old or another row's. The text
-- is random: a database that compresses values saves little.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  values = { "Number of values", 100 },
  bytes = { "Length of a value", 100000 },
  stores = { "Percent of transactions that store a value", 30 },
}

local uniform = sysbench.rand.uniform
local HEAD = 24 -- bytes at the beginning: row and version

local function connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), driver:name()
end

local function value(id, version)
  return ("%011d %011d "):format(id, version) .. assay.random_text(sysbench.opt.bytes - HEAD, sysbench.opt.bytes - HEAD)
end

function prepare()
  local con, product = connect()
  if sysbench.opt.bytes <= HEAD then error("--bytes is more than " .. HEAD, 0) end
  con:query("CREATE TABLE large_values (id INT PRIMARY KEY, version INT NOT NULL, body "
    .. (product == "mysql" and "LONGTEXT" or "TEXT") .. " NOT NULL)")
  local loader = con:loader("large_values", "id, version, body")
  for id = 1, sysbench.opt.values do loader:row(id, 0, value(id, 0)) end
  loader:done()
end

function cleanup() connect():query("DROP TABLE IF EXISTS large_values") end

local function read_totals()
  local con = connect()
  assay.total("versions", tonumber((con:query_row("SELECT COALESCE(SUM(version), 0) FROM large_values"))))
  con:close()
end

init, done = read_totals, read_totals

assay.audit { name = "values stored in the table", total = "versions", of = "store", most = 1 }
assay.audit { name = "wrong values fetched", part = "wrong_values", whole = "fetch", high = 0 }

local con, begin, commit, lock, store, fetch

function thread_init()
  local product
  con, product = connect()
  if sysbench.tid == 0 then -- not what options say, if that is wrong
    assay.found("values", tonumber((con:query_row("SELECT COUNT(*) FROM large_values"))))
    assay.found("bytes", tonumber((con:query_row("SELECT LENGTH(body) FROM large_values WHERE id = 1"))) or 0)
  end
  begin = con:prepare(product == "sqlite" and "BEGIN IMMEDIATE" or "BEGIN", "")
  commit = con:prepare("COMMIT", "")
  lock = con:prepare("SELECT version FROM large_values WHERE id = ?" .. (product == "sqlite" and "" or " FOR UPDATE"), "i")
  store = con:prepare("UPDATE large_values SET version = ?, body = ? WHERE id = ?", "iti")
  fetch = con:prepare("SELECT version, body FROM large_values WHERE id = ?", "i")
end

local store_one = assay.transaction("store", function()
  local id = uniform(1, sysbench.opt.values)
  begin:perform()
  local version = tonumber((lock:row(id))) + 1
  store:perform(version, value(id, version), id)
  commit:perform()
  assay.count("bytes_stored", sysbench.opt.bytes)
end)

local fetch_one = assay.transaction("fetch", function()
  local id = uniform(1, sysbench.opt.values)
  local version, body = fetch:row(id)
  local is_right = body and #body == sysbench.opt.bytes
    and body:sub(1, HEAD) == ("%011d %011d "):format(id, tonumber(version))
  assay.count("wrong_values", is_right and 0 or 1)
  assay.count("bytes_fetched", body and #body or 0)
end)

function event()
  if uniform(1, 100) <= sysbench.opt.stores then store_one() else fetch_one() end
end

--- Every value is there, in full, and belongs to its row and version.
function check()
  local con, wrong, rows = connect(), 0, 0
  for id = 1, sysbench.opt.values do
    local version, length, head = con:query_row(
      ("SELECT version, LENGTH(body), SUBSTR(body, 1, %d) FROM large_values WHERE id = %d"):format(HEAD - 1, id))
    rows = rows + (version and 1 or 0)
    local is_right = version and tonumber(length) == sysbench.opt.bytes and head == ("%011d %011d"):format(id, tonumber(version))
    wrong = wrong + (is_right and 0 or 1)
  end
  if wrong > 0 then assay.log(("%d of %d values are missing or wrong"):format(wrong, sysbench.opt.values)) end
  return wrong == 0
end
