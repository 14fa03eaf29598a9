--- JSON documents: find by a field, read by key, change a field; or the same rows in plain columns.
--
--
-- `--store json` keeps each order as a document (jsonb on PostgreSQL, JSON on MySQL and MariaDB, text on SQLite) with
-- an index on the field `customer`; `--store columns` keeps the same data in columns, for comparison.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  documents = { "Number of documents", 10000 },
  per_customer = { "Documents of each customer", 10 },
  finds = { "Percent of transactions that find a customer's documents", 40 },
  changes = { "Percent of transactions that change a document", 30 },
  lines = { "Order lines in a document: about 40 bytes each", 10 },
  store = { "How documents are stored: json or columns", "json" },
}

local uniform = sysbench.rand.uniform

-- How each product creates the table, adds 1 to the version, and finds a customer's documents and their versions.
local JSON = {
  pgsql = {
    create = { "CREATE TABLE documents (id INT PRIMARY KEY, body JSONB NOT NULL)" },
    index = "CREATE INDEX documents_customer ON documents (((body->>'customer')::int))",
    change = "UPDATE documents SET body = jsonb_set(body, '{version}', to_jsonb((body->>'version')::int + 1)) WHERE id = ?",
    find = "SELECT id, body->>'status' FROM documents WHERE (body->>'customer')::int = ?",
    versions = "SELECT COALESCE(SUM((body->>'version')::int), 0) FROM documents",
  },
  -- A generated column that is not stored: an index on it is how MySQL and MariaDB index a field.
  mysql = {
    create = {
      "CREATE TABLE documents (id INT PRIMARY KEY, body JSON NOT NULL, "
        .. "customer INT GENERATED ALWAYS AS (JSON_EXTRACT(body, '$.customer')) VIRTUAL)",
    },
    index = "CREATE INDEX documents_customer ON documents (customer)",
    change = "UPDATE documents SET body = JSON_SET(body, '$.version', JSON_EXTRACT(body, '$.version') + 1) WHERE id = ?",
    find = "SELECT id, JSON_UNQUOTE(JSON_EXTRACT(body, '$.status')) FROM documents WHERE customer = ?",
    versions = "SELECT COALESCE(SUM(JSON_EXTRACT(body, '$.version')), 0) FROM documents",
  },
  sqlite = {
    create = { "CREATE TABLE documents (id INTEGER PRIMARY KEY, body TEXT NOT NULL)" },
    index = "CREATE INDEX documents_customer ON documents (json_extract(body, '$.customer'))",
    change = "UPDATE documents SET body = json_set(body, '$.version', json_extract(body, '$.version') + 1) WHERE id = ?",
    find = "SELECT id, json_extract(body, '$.status') FROM documents WHERE json_extract(body, '$.customer') = ?",
    versions = "SELECT COALESCE(SUM(json_extract(body, '$.version')), 0) FROM documents",
  },
}
local COLUMNS = {
  create = {
    "CREATE TABLE documents (id INT PRIMARY KEY, customer INT NOT NULL, status VARCHAR(10) NOT NULL, version INT NOT NULL, "
      .. "body TEXT NOT NULL)",
  },
  index = "CREATE INDEX documents_customer ON documents (customer)",
  change = "UPDATE documents SET version = version + 1 WHERE id = ?",
  find = "SELECT id, status FROM documents WHERE customer = ?",
  versions = "SELECT COALESCE(SUM(version), 0) FROM documents",
}

local function connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), driver:name()
end

local function texts_of(product)
  local store = sysbench.opt.store
  if store == "columns" then return COLUMNS end
  return store == "json" and JSON[product] or error("--store is json or columns, and not " .. store, 0)
end

local function customer_of(id) return math.floor((id - 1) / sysbench.opt.per_customer) + 1 end

-- The order lines, which nobody changes: the part of the document that makes it large.
local function lines()
  local all = {}
  for i = 1, sysbench.opt.lines do
    all[i] = ('{"item": %d, "name": "%s"}'):format(uniform(1, 100000), assay.random_text(16, 16))
  end
  return "[" .. table.concat(all, ", ") .. "]"
end

function prepare()
  local con, product = connect()
  local opt, texts = sysbench.opt, texts_of(product)
  if opt.documents % opt.per_customer ~= 0 then error("--documents is a multiple of --per-customer", 0) end
  for _, text in ipairs(texts.create) do con:query(text) end
  local is_json = texts ~= COLUMNS
  local loader = con:loader("documents", is_json and "id, body" or "id, customer, status, version, body")
  for id = 1, opt.documents do
    if is_json then
      loader:row(id, ('{"customer": %d, "status": "open", "version": 0, "lines": %s}'):format(customer_of(id), lines()))
    else
      loader:row(id, customer_of(id), "open", 0, lines())
    end
  end
  loader:done()
  con:query(texts.index)
  con:query(product == "mysql" and "ANALYZE TABLE documents" or "ANALYZE documents")
end

function cleanup() connect():query("DROP TABLE IF EXISTS documents") end

local function read_totals()
  local con, product = connect()
  assay.total("versions", tonumber((con:query_row(texts_of(product).versions))))
  con:close()
end

init, done = read_totals, read_totals

assay.audit { name = "changes in the documents", total = "versions", of = "change", most = 1 }
assay.audit { name = "wrong finds", part = "wrong_finds", whole = "find", high = 0 }
assay.audit { name = "documents not found by key", part = "not_found", whole = "read", high = 0 }

local con, change, find, read

function thread_init()
  local product
  con, product = connect()
  -- Not what an option says, if that is wrong.
  if sysbench.tid == 0 then assay.found("documents", tonumber((con:query_row("SELECT COUNT(*) FROM documents")))) end
  local texts = texts_of(product)
  change = con:prepare(texts.change, "i")
  find = con:prepare(texts.find, "i")
  read = con:prepare("SELECT body FROM documents WHERE id = ?", "i")
end

local change_one = assay.transaction("change", function() change:perform(uniform(1, sysbench.opt.documents)) end)

local find_some = assay.transaction("find", function()
  local opt = sysbench.opt
  local customer = uniform(1, opt.documents / opt.per_customer)
  local found, is_right = find:execute(customer), true
  for _ = 1, found.nrows do
    local id, status = unpack(found:fetch_row(), 1, 2)
    is_right = is_right and customer_of(tonumber(id)) == customer and status == "open"
  end
  assay.count("wrong_finds", is_right and found.nrows == opt.per_customer and 0 or 1)
end)

local read_one = assay.transaction("read", function()
  local body = read:row(uniform(1, sysbench.opt.documents))
  assay.count("not_found", body and 0 or 1)
end)

function event()
  local opt, draw = sysbench.opt, uniform(1, 100)
  if draw <= opt.finds then return find_some() end
  if draw <= opt.finds + opt.changes then return change_one() end
  read_one()
end

--- Every document is there.
function check()
  local rows = tonumber((connect():query_row("SELECT COUNT(*) FROM documents")))
  if rows ~= sysbench.opt.documents then assay.log(("%d documents instead of %d"):format(rows, sysbench.opt.documents)) end
  return rows == sysbench.opt.documents
end
