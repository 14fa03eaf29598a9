--- The stock scripts as sysbench's users know them: where they fail, and what they do not do.
--
--
-- Ours are written to be read and copied, and do more (a check, a load by all sessions). Users of `sysbench` compare
-- messages with those of 1.0.20, and expect only its statements.
local core = ...
local front = core.front

local INSTALLED = "/usr/share/sysbench/"

-- Places -------------------------------------------------------------------------------------------------------------

-- File → function → a line of it → where sysbench 1.0.20 does the same.
local PLACES = {
  ["oltp_transactions.lua"] = {
    prepare_for_each_table = {
      ["stmt[n][key] = con:prepare(text, kinds(definition))"] = "oltp_common.lua:284",
      ["local statement, parameters = con:prepare(text), {}"] = "oltp_common.lua:284",
    },
    thread_init = {
      ["drv = sysbench.sql.driver()"] = "oltp_common.lua:348", ["con = drv:connect()"] = "oltp_common.lua:349",
    },
    execute_point_selects = {
      ['for _ = 1, count or opt("point_selects") do statement:perform(pick_id()) end'] = "oltp_common.lua:419",
    },
    execute_ranges = { ["statement:perform(id, id + length - 1)"] = "oltp_common.lua:432" },
    execute_index_updates = {
      ['for _ = 1, opt("index_updates") do statement:perform(pick_id()) end'] = "oltp_common.lua:458",
    },
    execute_non_index_updates = { ["statement:perform(c, pick_id())"] = "oltp_common.lua:469" },
    execute_delete_inserts = {
      ["delete:perform(id)"] = "oltp_common.lua:487",
      ["insert:perform(id, pick_id(), rand.string(formats.c), rand.string(formats.pad))"] = "oltp_common.lua:488",
    },
  },
  ["oltp_tables.lua"] = {
    create_empty_table = { ["connection:query(text)"] = "oltp_common.lua:197" },
    cmd_prepare = {
      ["local driver = sysbench.sql.driver()"] = "oltp_common.lua:82",
      ["local connection = driver:connect()"] = "oltp_common.lua:83",
    },
    cleanup = {
      ["local driver = sysbench.sql.driver()"] = "oltp_common.lua:387",
      ["local connection = driver:connect()"] = "oltp_common.lua:388",
    },
    cmd_warmup = {
      ["local driver = sysbench.sql.driver()"] = "oltp_common.lua:97",
      ["local connection = driver:connect()"] = "oltp_common.lua:98",
      ["connection:query(warm_up.rows:format(name, size))"] = "oltp_common.lua:111",
    },
  },
  ["bulk_insert.lua"] = {
    prepare = { ["local con = sysbench.sql.driver():connect()"] = "bulk_insert.lua:19" },
    cleanup = { ["local con = sysbench.sql.driver():connect()"] = "bulk_insert.lua:50" },
    thread_init = { ["con = sysbench.sql.driver():connect()"] = "bulk_insert.lua:12" },
    event = { ['con:bulk_insert_next(("(%d,%d)"):format(id, id))'] = "bulk_insert.lua:38" },
  },
  ["oltp_delete.lua"] = { event = { ["stmt[n].deletes:perform(sysbench.rand.default(1, sysbench.opt.table_size))"] = "oltp_delete.lua:33" } },
  ["oltp_insert.lua"] = {
    event = {
      ["con:query(dialect:insert_without_id(n, k, c, pad))"] = "oltp_insert.lua:50",
      ["con:query(dialect:insert(n, id, k, c, pad))"] = "oltp_insert.lua:61",
    },
  },
  ["select_random_points.lua"] = {
    thread_init = {
      ["drv = sysbench.sql.driver()"] = "select_random_points.lua:33",
      ["con = drv:connect()"] = "select_random_points.lua:34",
      ["statement, points = con:prepare(text), {}"] = "select_random_points.lua:38",
    },
    event = { ["statement:execute()"] = "select_random_points.lua:71" },
  },
  ["select_random_ranges.lua"] = {
    thread_init = {
      ["drv = sysbench.sql.driver()"] = "select_random_ranges.lua:35",
      ["con = drv:connect()"] = "select_random_ranges.lua:36",
      ["statement, ends = con:prepare(text), {}"] = "select_random_ranges.lua:42",
    },
    event = { ["statement:execute()"] = "select_random_ranges.lua:76" },
  },
}

local places = {} -- source → line → place

--- A built-in script was compiled under this name.
function front.compiled(display, text)
  local of_function = PLACES[display]
  if not of_function then return end
  local of_line, number, of_text = {}, 0, {}
  for line in text:gmatch("([^\n]*)\n") do
    number = number + 1
    local name = line:match("^function ([%w_]+)") or line:match("^local function ([%w_]+)")
    if name then of_text = of_function[name] or {} end
    of_line[number] = of_text[line:match("^%s*(.*)")]
  end
  places["@" .. display] = of_line
end

local plain_place = front.place_of

function front.place_of(info)
  local place = places[info.source] and places[info.source][info.currentline]
  return place and INSTALLED .. place .. ": " or plain_place(info)
end

-- Differences --------------------------------------------------------------------------------------------------------

-- By module: called when one of ours was loaded, with its return value, and with its globals.
local loaded = {}
front.loaded = loaded

function loaded.oltp_common()
  if sysbench.cmdline.command == nil then
    error(INSTALLED .. "oltp_common.lua:28: Command is required. "
      .. "Supported commands: prepare, prewarm, run, cleanup, help", 0)
  end
  sysbench.cmdline.commands.cleanup = nil -- a plain function there, which runs once
  function compare_tables() end -- it takes the tables as they are
end

function loaded.oltp_transactions(oltp)
  oltp.is_redshift = function() return false end -- the option is there, and nothing is done about it
  oltp.tables_are_shared, oltp.key_is_late = false, false
  oltp.check_sizes = function() end
end

function loaded.oltp_tables()
  function compare_tables() end
  local warm_up = cmd_warmup
  function cmd_warmup()
    if core.driver == "pgsql" or core.driver == "sqlite" then
      error(INSTALLED .. "oltp_common.lua:100: prewarm is currently MySQL only", 0)
    end
    return warm_up()
  end
end

function loaded.bulk_insert()
  function last_id() return 0 end -- a second run begins anew, and fails
  function tell_removed() end
end

--- These read the first table, however many there are.
local function any_number_of_tables()
  function need_one_table() end
end

loaded.select_random_points, loaded.select_random_ranges = any_number_of_tables, any_number_of_tables
