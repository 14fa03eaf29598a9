--- Flights of another database, as a foreign table of PostgreSQL.
--
--
-- postgres_fdw comes with PostgreSQL, mysql_fdw is a package of its own. The table of the other database is `ontime`,
-- as `prepare` has loaded it there; in the same database, it is `ontime_stored`, and the wrapper logs in at its own
-- server.

local foreign = { stored = "ontime_stored" }

local SERVER = "flights_source"
local WRAPPERS = { postgres = "postgres_fdw", postgresql = "postgres_fdw", mysql = "mysql_fdw", mariadb = "mysql_fdw" }
local PORTS = { postgres_fdw = 5432, mysql_fdw = 3306 }

local function decoded(text)
  return (text:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

--- The URL without its password.
function foreign.shown(url) return (url:gsub("^(%a+://[^:@/]*):[^@/]*@", "%1:***@")) end

--- The parts of a URL; nil: the same database.
function foreign.source(url)
  if url == "self" then return nil end
  local scheme, rest = url:match("^(%a+)://(.+)$")
  local wrapper = scheme and WRAPPERS[scheme]
  local login, place, database = (rest or ""):match("^([^@/]+)@([^/]+)/([^/?]+)$")
  if not wrapper or not login then
    error("--foreign is self, or a URL without parameters: postgres://user:password@host:port/database, mysql://…, "
      .. "mariadb://…", 0)
  end
  local user, password = login:match("^([^:]*):?(.*)$")
  local host, port = place:match("^(.-):(%d+)$")
  return {
    wrapper = wrapper, host = host or place, port = tonumber(port or PORTS[wrapper]), database = decoded(database),
    user = decoded(user), password = decoded(password),
  }
end

local function quoted(text) return "'" .. tostring(text):gsub("'", "''") .. "'" end

--- `OPTIONS (name 'value', …)`
local function options(list)
  local words = {}
  for _, option in ipairs(list) do words[#words + 1] = option[1] .. " " .. quoted(option[2]) end
  return " OPTIONS (" .. table.concat(words, ", ") .. ")"
end

--- Where this server can be reached from itself.
local function own_place(con)
  local folder, port, database, user = unpack({ con:query_row("SELECT split_part(current_setting('unix_socket_directories'), "
    .. "',', 1), current_setting('port'), current_database(), current_user") }, 1, 4)
  return {
    wrapper = "postgres_fdw", host = folder ~= "" and folder or "127.0.0.1", port = port, database = database, user = user,
    password = "", stored = foreign.stored,
  }
end

--- Creates the foreign table `ontime`.
function foreign.create(con, columns, url)
  local from = foreign.source(url) or own_place(con)
  local is_mysql = from.wrapper == "mysql_fdw"
  con:query("CREATE EXTENSION IF NOT EXISTS " .. from.wrapper)
  local place = { { "host", from.host }, { "port", from.port } }
  if not is_mysql then
    place[#place + 1] = { "dbname", from.database }
    -- Rows in one go instead of a hundred at a time.
    place[#place + 1] = { "fetch_size", 10000 }
  end
  con:query("CREATE SERVER " .. SERVER .. " FOREIGN DATA WRAPPER " .. from.wrapper .. options(place))
  local login = { { is_mysql and "username" or "user", from.user } }
  if from.password ~= "" then login[#login + 1] = { "password", from.password } end
  con:query("CREATE USER MAPPING FOR CURRENT_USER SERVER " .. SERVER .. options(login))
  local list = {}
  for i, column in ipairs(columns) do
    -- In lower case, then: MySQL knows columns in any case.
    list[i] = column.name .. " " .. column.type
  end
  local table_of = is_mysql and { { "dbname", from.database }, { "table_name", "ontime" } }
    or { { "table_name", from.stored or "ontime" } }
  con:query("CREATE FOREIGN TABLE ontime (" .. table.concat(list, ", ") .. ") SERVER " .. SERVER .. options(table_of))
end

--- Forgets the foreign table and its server, and drops what was loaded for it.
function foreign.drop(con)
  -- Not every server with PostgreSQL's protocol knows this.
  pcall(con.query, con, "DROP SERVER IF EXISTS " .. SERVER .. " CASCADE")
  con:query("DROP TABLE IF EXISTS " .. foreign.stored)
end

return foreign
