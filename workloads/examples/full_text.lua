--- Full-text search: searches for a word while articles are added.
--
--
-- tsvector and a GIN index on PostgreSQL, FULLTEXT on MySQL and MariaDB, FTS5 on SQLite. Each prepared article has one
-- known word that a fixed number of articles share; added articles have the word `fresh`, and must be found by it.

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  articles = { "Articles to begin with", 2000 },
  sharing = { "Articles that share a word", 10 },
  words = { "Words of an article", 50 },
  searches = { "Percent of transactions that search", 80 },
}

local uniform = sysbench.rand.uniform
local VOCABULARY = 2000 -- words that say nothing

local PRODUCTS = {
  pgsql = {
    create = "CREATE TABLE articles (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT NOT NULL, "
      .. "words tsvector GENERATED ALWAYS AS (to_tsvector('simple', body)) STORED)",
    index = "CREATE INDEX articles_words ON articles USING gin (words)",
    count = "SELECT COUNT(*) FROM articles WHERE words @@ to_tsquery('simple', %s)",
  },
  mysql = {
    create = "CREATE TABLE articles (id BIGINT AUTO_INCREMENT PRIMARY KEY, body TEXT NOT NULL)",
    index = "CREATE FULLTEXT INDEX articles_words ON articles (body)",
    count = "SELECT COUNT(*) FROM articles WHERE MATCH (body) AGAINST (%s IN BOOLEAN MODE)",
  },
  sqlite = {
    create = "CREATE VIRTUAL TABLE articles USING fts5(body)",
    count = "SELECT COUNT(*) FROM articles WHERE articles MATCH %s",
  },
}

local function connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), PRODUCTS[driver:name()]
end

-- An article that contains `word`, among words that nobody searches for.
local function article(word)
  local all = {}
  for i = 1, sysbench.opt.words - 1 do all[i] = "filler" .. uniform(1, VOCABULARY) end
  table.insert(all, uniform(1, #all + 1), word)
  return table.concat(all, " ")
end

local function groups() return math.floor(sysbench.opt.articles / sysbench.opt.sharing) end

function prepare()
  local con, product = connect()
  con:query(product.create)
  local loader = con:loader("articles", "body")
  for group = 1, groups() do
    for _ = 1, sysbench.opt.sharing do loader:row(article("topic" .. group)) end
  end
  loader:done()
  if product.index then con:query(product.index) end
end

function cleanup() connect():query("DROP TABLE IF EXISTS articles") end

local function read_totals()
  local con, product = connect()
  assay.total("articles", tonumber((con:query_row("SELECT COUNT(*) FROM articles"))))
  assay.total("fresh_found", tonumber((con:query_row(product.count:format("'fresh'")))))
  con:close()
end

init, done = read_totals, read_totals

assay.audit { name = "articles in the table", total = "articles", of = "add", most = 1 }
assay.audit { name = "added articles that a search finds", total = "fresh_found", of = "add", most = 1 }
assay.audit { name = "searches with a wrong number of hits", part = "wrong_hits", whole = "search", high = 0 }

local con, insert, count

function thread_init()
  local product
  con, product = connect()
  insert = con:prepare("INSERT INTO articles (body) VALUES (?)", "t")
  count = con:prepare(product.count:format("?"), "t")
end

local add = assay.transaction("add", function() insert:perform(article("fresh")) end)

local search = assay.transaction("search", function()
  local hits = tonumber((count:row("topic" .. uniform(1, groups()))))
  assay.count("wrong_hits", hits == sysbench.opt.sharing and 0 or 1)
end)

function event()
  if uniform(1, 100) <= sysbench.opt.searches then search() else add() end
end

--- Every prepared article is found by its word.
function check()
  local con, product = connect()
  for group = 1, groups() do
    local hits = tonumber((con:query_row(product.count:format(("'topic%d'"):format(group)))))
    if hits ~= sysbench.opt.sharing then
      assay.log(("topic%d is found in %d articles instead of %d"):format(group, hits, sysbench.opt.sharing))
      return false
    end
  end
  return true
end
