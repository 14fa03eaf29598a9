--- Shared by the scripts of sysbench 0.5: options, tables and rows. Everything is global, as their users expect.

-- Of the driver in use: nothing when a script asks at its top level.
local function driver_is(name) return db_driver == name end

local function count(value, default) return tonumber(value) or default end

local function is_on(value, default)
  if value == nil then return default end
  return value == true or value == "on" or value == "true" or value == "1" or value == ""
end

--- Makes numbers and booleans of the options, which come as globals.
function set_vars()
  oltp_table_size = count(oltp_table_size, 10000)
  oltp_range_size = count(oltp_range_size, 100)
  oltp_tables_count = count(oltp_tables_count, 1)
  oltp_point_selects = count(oltp_point_selects, 10)
  oltp_simple_ranges = count(oltp_simple_ranges, 1)
  oltp_sum_ranges = count(oltp_sum_ranges, 1)
  oltp_order_ranges = count(oltp_order_ranges, 1)
  oltp_distinct_ranges = count(oltp_distinct_ranges, 1)
  oltp_index_updates = count(oltp_index_updates, 1)
  oltp_non_index_updates = count(oltp_non_index_updates, 1)
  oltp_delete_inserts = count(oltp_delete_inserts, 1)
  oltp_range_selects = is_on(oltp_range_selects, true)
  oltp_auto_inc = is_on(oltp_auto_inc, true)
  oltp_read_only = is_on(oltp_read_only, false)
  oltp_write_only = is_on(oltp_write_only, false)
  oltp_skip_trx = is_on(oltp_skip_trx, false)
  oltp_create_secondary = is_on(oltp_create_secondary, true)
  oltp_secondary = is_on(oltp_secondary, false)
  mysql_table_options = mysql_table_options or ""

  -- Tables without transactions are locked instead.
  if driver_is("mysql") and mysql_table_engine == "myisam" then
    begin_query, commit_query = "LOCK TABLES sbtest WRITE", "UNLOCK TABLES"
  else
    begin_query, commit_query = "BEGIN", "COMMIT"
  end
end

--- Random texts for the columns c and pad.
function random_c() return sb_rand_str(("###########-"):rep(9) .. "###########") end
function random_pad() return sb_rand_str(("###########-"):rep(4) .. "###########") end

--- Creates and fills table number `table_id`.
function create_insert(table_id)
  local name = "sbtest" .. table_id
  local id, key, ending = "INTEGER NOT NULL", "PRIMARY KEY (id)", ""
  if driver_is("mysql") then
    id = "INTEGER UNSIGNED NOT NULL" .. (oltp_auto_inc and " AUTO_INCREMENT" or "")
    key = oltp_secondary and "KEY xid (id)" or key
    ending = "ENGINE = " .. mysql_table_engine .. " MAX_ROWS = " .. myisam_max_rows .. " " .. mysql_table_options
  elseif oltp_auto_inc and driver_is("pgsql") then
    id = "SERIAL NOT NULL"
  end

  print("Creating table '" .. name .. "'...")
  db_query(("CREATE TABLE %s (id %s, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, "
    .. "pad CHAR(60) DEFAULT '' NOT NULL, %s) %s"):format(name, id, key, ending))

  print("Inserting " .. oltp_table_size .. " records into '" .. name .. "'")
  db_bulk_insert_init(("INSERT INTO %s(%sk, c, pad) VALUES"):format(name, oltp_auto_inc and "" or "id, "))
  for row = 1, oltp_table_size do
    db_bulk_insert_next(("(%s%d, '%s', '%s')"):format(oltp_auto_inc and "" or row .. ", ", sb_rand(1, oltp_table_size),
      random_c(), random_pad()))
  end
  db_bulk_insert_done()

  if oltp_create_secondary then
    print("Creating secondary indexes on '" .. name .. "'...")
    db_query(("CREATE INDEX k_%d ON %s(k)"):format(table_id, name))
  end
end

function prepare()
  set_vars()
  db_connect()
  for table_id = 1, oltp_tables_count do create_insert(table_id) end
  return 0
end

function cleanup()
  set_vars()
  for table_id = 1, oltp_tables_count do
    print("Dropping table 'sbtest" .. table_id .. "'...")
    db_query("DROP TABLE IF EXISTS sbtest" .. table_id)
  end
end

--- The name of a random table.
function random_table() return "sbtest" .. sb_rand_uniform(1, oltp_tables_count) end

--- A random id.
function random_id() return sb_rand(1, oltp_table_size) end

function thread_init(thread_id) set_vars() end
