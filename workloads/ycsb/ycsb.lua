--- YCSB's core workloads A to F on tables or documents: key-value reads, updates, inserts and scans.
--
--
-- Options have the names of YCSB's properties; one that is not given has the value of the file `--properties`, else
-- that of `--core-workload`, else YCSB's default. docs/ycsb.md says what is as in YCSB and what is not.

local distributions = assay.share("ycsb_distributions")

-- Below everything that may be given.
local UNSET = -1
local function number(text, default, low, high, whole)
  return { text .. " [default: " .. default .. "]", UNSET, low = low, high = high, whole = whole }
end
local function whole(text, default, low) return number(text, default, low, nil, true) end
local function share(text, default) return number(text, default, 0, 1) end

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  core_workload = { "Proportions and distributions of YCSB's workload a, b, c, d, e or f", "a", choices = { "a", "b", "c", "d", "e", "f" } },
  properties = { "A file of YCSB's properties, such as workloada", "" },
  layout = { "Fields are columns, or members of one JSON document", "columns", choices = { "columns", "json" } },
  audit_updates = { "Keep the number of updates in each record, for the audit", false },
  table = { "Name of the table [default: usertable]", "" },
  recordcount = whole("Records to load; for a run, as loaded", 1000, 1),
  fieldcount = whole("Fields of a record", 10, 1),
  fieldlength = whole("Characters of a field, or their maximum", 100, 1),
  minfieldlength = whole("Their minimum if lengths are uniform", 1, 0),
  fieldlengthdistribution = { "Lengths of fields: constant, uniform or zipfian [default: constant]", "", choices = { "constant", "uniform", "zipfian" } },
  readproportion = share("Share of reads", "core workload"),
  updateproportion = share("Share of updates", "core workload"),
  insertproportion = share("Share of inserts", "core workload"),
  scanproportion = share("Share of scans", "core workload"),
  readmodifywriteproportion = share("Share of reads followed by an update of the same record", "core workload"),
  readallfields = { "Reads return all fields, or one: true or false [default: true]", "", choices = { "true", "false" } },
  writeallfields = { "Updates write all fields, or one: true or false [default: false]", "", choices = { "true", "false" } },
  requestdistribution = {
    "Which records are requested: uniform, zipfian, latest, hotspot, exponential, sequential [default: core workload]", "",
    choices = { "uniform", "zipfian", "latest", "hotspot", "exponential", "sequential" },
  },
  zipfian = { "as-ycsb, or exact: a Zipf distribution over the records, with --theta", "as-ycsb", choices = { "as-ycsb", "exact" } },
  theta = { "Skew of an exact Zipf distribution: above 0, below 1", 0.99, low = 0, high = 1 },
  hotspotdatafraction = share("Share of records that are hot", 0.2),
  hotspotopnfraction = share("Share of requests for hot records", 0.8),
  exponential_percentile = number("Percent of requests for the newest records", 95, 0, 100),
  exponential_frac = share("The share of records that these are", 0.8571428571),
  minscanlength = whole("Fewest records of a scan", 1, 1),
  maxscanlength = whole("Most records of a scan", "100 for e, else 1000", 1),
  scanlengthdistribution = { "Lengths of scans: uniform or zipfian [default: uniform]", "", choices = { "uniform", "zipfian" } },
  insertorder = { "Keys are hashed, or ordered [default: hashed]", "", choices = { "hashed", "ordered" } },
  zeropadding = whole("Digits that a key has at least", 1, 0),
}

local format, concat = string.format, table.concat
local uniform = distributions.uniform

local SHARES = { "readproportion", "updateproportion", "insertproportion", "scanproportion", "readmodifywriteproportion" }

-- As YCSB's own files: a share that a mix does not name is 0.
local MIXES = {
  a = { readproportion = 0.5, updateproportion = 0.5 },
  b = { readproportion = 0.95, updateproportion = 0.05 },
  c = { readproportion = 1 },
  d = { readproportion = 0.95, insertproportion = 0.05, requestdistribution = "latest" },
  e = { scanproportion = 0.95, insertproportion = 0.05, maxscanlength = 100 },
  f = { readproportion = 0.5, readmodifywriteproportion = 0.5 },
}
for _, mix in pairs(MIXES) do
  for _, name in ipairs(SHARES) do mix[name] = mix[name] or 0 end
  mix.requestdistribution = mix.requestdistribution or "zipfian"
end

-- What a file of properties leaves out. YCSB itself has no number of records.
local DEFAULTS = {
  table = "usertable", recordcount = 1000, fieldcount = 10, fieldlength = 100, minfieldlength = 1,
  fieldlengthdistribution = "constant", readproportion = 0.95, updateproportion = 0.05, insertproportion = 0,
  scanproportion = 0, readmodifywriteproportion = 0, readallfields = "true", writeallfields = "false",
  requestdistribution = "uniform", hotspotdatafraction = 0.2, hotspotopnfraction = 0.8, exponential_percentile = 95,
  exponential_frac = 0.8571428571, minscanlength = 1, maxscanlength = 1000, scanlengthdistribution = "uniform",
  insertorder = "hashed", zeropadding = 1,
}

-- Properties of which only this value, YCSB's default, is supported.
local FIXED = {
  readallfieldsbyname = "false", dataintegrity = "false", insertstart = "0", fieldnameprefix = "field",
  fieldlengthhistogram = "hist.txt", core_workload_insertion_retry_limit = "0",
}

-- Properties of YCSB's own files that say nothing here: --transactions, --sessions, --rate and --time do.
local ELSEWHERE = {
  operationcount = true, threadcount = true, target = true, maxexecutiontime = true, workload = true,
  measurementtype = true, core_workload_insertion_retry_interval = true, exporter = true, exportfile = true, label = true,
  dotransactions = true,
}
local ELSEWHERE_PREFIXES = { "^hdrhistogram_", "^measurement_", "^histogram_", "^timeseries_", "^status_" }

local function is_elsewhere(key)
  if ELSEWHERE[key] then return true end
  for _, prefix in ipairs(ELSEWHERE_PREFIXES) do
    if key:find(prefix) then return true end
  end
  return false
end

--- How many characters have to be added, removed or replaced to make one text of another.
local function distance(one, other)
  local row = {}
  for j = 0, #other do row[j] = j end
  for i = 1, #one do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #other do
      local replaced = diagonal + (one:byte(i) == other:byte(j) and 0 or 1)
      diagonal = row[j]
      row[j] = math.min(replaced, row[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#other]
end

--- `; did you mean NAME?` if there is a property of nearly this name.
local function meant(key)
  local best, least
  for _, names in ipairs { DEFAULTS, FIXED, ELSEWHERE } do
    for name in pairs(names) do
      local away = distance(key:lower(), name)
      if not least or away < least or (away == least and name < best) then best, least = name, away end
    end
  end
  return least <= 1 + #key / 6 and "; did you mean " .. best .. "?" or ""
end

--- What a number has to be, in words; nil: it is that.
local function wrong_number(value, rule)
  if not value or value ~= value or math.abs(value) == math.huge or (rule.whole and value % 1 ~= 0) then
    return rule.whole and "expected a whole number" or "expected a number"
  elseif rule.high and (value < rule.low or value > rule.high) then
    return format("must be from %g to %g", rule.low, rule.high)
  elseif value < rule.low then
    return format("must be at least %g", rule.low)
  end
end

--- The value of a property, checked as that of its option. Java reads any spelling of `true`.
local function property(key, text)
  local rule, default = sysbench.cmdline.options[key], DEFAULTS[key]
  if type(default) == "number" then
    local value = not text:find("[xX]") and tonumber(text) or nil
    return value, wrong_number(value, rule)
  elseif default == "true" or default == "false" then
    local value = text:lower()
    return value, value ~= "true" and value ~= "false" and "expected true or false" or nil
  elseif rule.choices then
    for _, choice in ipairs(rule.choices) do
      if text == choice then return text end
    end
    return text, "expected one of " .. concat(rule.choices, ", ")
  end
  return text
end

--- Properties of a file: names and values, as Java reads them. Names have an underscore where YCSB has a dot.
local function properties_of(path)
  local file, trouble = io.open(path)
  local text
  if file then
    text, trouble = file:read("*a")
    file:close()
  end
  if not text then error("--properties: " .. (trouble:find(path, 1, true) and trouble or path .. ": " .. trouble), 0) end
  local found, place, begun = {}, 0, nil
  for line in (text .. "\n\n"):gmatch("(.-)\r?\n") do
    place = place + 1
    local whole = (begun or "") .. (begun and line:gsub("^%s+", "") or line)
    local is_comment = whole:find("^%s*[#!]")
    begun = not is_comment and whole:match("^(.*[^\\])\\$") or nil
    local name, value = whole:match("^%s*([%w_.]+)%s*[=:]%s*(.-)%s*$")
    if not name then name, value = whole:match("^%s*([%w_.]+)%s+(.-)%s*$") end
    if begun or is_comment or not whole:find("%S") then
      name = nil
    elseif not name then
      error(format("--properties: line %d of %s: not a property: %s", place, path, whole), 0)
    end
    local function refuse(...) error(format("--properties: line %d of %s: ", place, path) .. format(...), 0) end
    local key = name and name:gsub("%.", "_"):gsub("^hotspot_", "hotspot")
    if name and DEFAULTS[key] ~= nil then
      local wrong
      found[key], wrong = property(key, value)
      if wrong then refuse("%s=%s: %s", name, value, wrong) end
    elseif name and FIXED[key] ~= nil then
      if value:lower() ~= FIXED[key] then refuse("%s=%s: only %s, the default, is supported", name, value, FIXED[key]) end
    elseif name and not is_elsewhere(key) then
      refuse("the property %s is not known here%s", name, meant(key))
    end
  end
  return found
end

local function is_given(name) return sysbench.opt[name] ~= "" and sysbench.opt[name] ~= UNSET end

--- The operations of which a share is above 0 add up to 1. YCSB takes shares for weights; that is for its files only: a
--- share that is given as an option is what the run has to have.
local function check_shares(all)
  local sum, given, others = 0, nil, {}
  for _, name in ipairs(SHARES) do
    sum = sum + all[name]
    if not given and is_given(name) then
      given = name
    elseif all[name] > 0 then
      others[#others + 1] = format("--%s %g", name, all[name])
    end
  end
  if sum <= 0 then error("--readproportion and the other proportions are 0: nothing would be done", 0) end
  if given and math.abs(sum - 1) > 1e-6 then
    error(format("--%s %g: %sthe sum of the shares is %g, not 1", given, all[given],
      #others > 0 and "with " .. concat(others, " and ") .. " " or "", sum), 0)
  end
end

--- Every property as it is in effect. The options of the run are the same in all sessions.
local function settings()
  return assay.constant("ycsb settings", function()
    local opt, all = sysbench.opt, {}
    local file = opt.properties ~= "" and properties_of(opt.properties) or {}
    -- A file of properties is a whole workload: what it leaves out is YCSB's default.
    local mix = opt.properties ~= "" and {} or MIXES[opt.core_workload]
    for name, default in pairs(DEFAULTS) do
      local given = opt[name]
      if not is_given(name) then given = file[name] or mix[name] or default end
      all[name] = given
    end
    all.readallfields, all.writeallfields = all.readallfields == "true", all.writeallfields == "true"
    if not all.table:find("^[%a_][%w_.$]*$") then
      error(format("--table %s: expected a name of letters, digits and _", all.table), 0)
    end
    check_shares(all)
    if all.maxscanlength < all.minscanlength then
      error(format("--maxscanlength %d: expected at least --minscanlength, %d", all.maxscanlength, all.minscanlength), 0)
    end
    if all.fieldlengthdistribution == "uniform" and all.fieldlength < all.minfieldlength then
      error(format("--fieldlength %d: expected at least --minfieldlength, %d", all.fieldlength, all.minfieldlength), 0)
    end
    if all.exponential_percentile <= 0 or all.exponential_percentile >= 100 then
      error("--exponential-percentile is above 0 and below 100", 0)
    end
    if all.exponential_frac <= 0 then error("--exponential-frac is above 0", 0) end
    if opt.theta <= 0 or opt.theta >= 1 then error("--theta is above 0 and below 1", 0) end
    -- Of a run that is not told otherwise, the tables say it (`take_size`).
    all.has_recordcount = is_given("recordcount") or file.recordcount ~= nil
    return all
  end)
end

local function connect()
  local driver = sysbench.sql.driver()
  return driver:connect(), driver:name()
end

local function key_of(record, set)
  local digits = set.insertorder == "ordered" and format("%.0f", record) or tostring(distributions.hash(record)):sub(1, -3)
  return "user" .. ("0"):rep(set.zeropadding - #digits) .. digits
end

-- Statements ----------------------------------------------------------------------------------------------------------

--- The texts of a product.
local function texts(set, product)
  return assay.share(product == "mongodb" and "ycsb_mongodb" or "ycsb_sql")(set, product)
end

--- A function that returns a new value of a field; `cell`: as a placeholder for a loader.
local function value_source(set, cell)
  local length, text = set.fieldlength, cell and assay.random_cell or assay.random_text
  if set.fieldlengthdistribution == "uniform" then
    return function() return text(set.minfieldlength, length) end
  elseif set.fieldlengthdistribution == "zipfian" then
    local draw = distributions.zipfian(length, distributions.THETA)
    return function()
      local drawn = 1 + draw()
      return text(drawn, drawn)
    end
  end
  return function() return text(length, length) end
end

--- The values of a record: its fields, or one document. Letters and digits need no quotes within JSON.
local function record_source(set, cell)
  if sysbench.opt.layout == "columns" then
    local value, count, list = value_source(set, cell), set.fieldcount, {}
    return function()
      for i = 1, count do list[i] = value() end
      return unpack(list, 1, count)
    end
  end
  local value, parts = value_source(set, false), {}
  return function()
    for i = 1, set.fieldcount do parts[i] = format('"field%d": "%s"', i - 1, value()) end
    return "{" .. concat(parts, ", ", 1, set.fieldcount) .. "}"
  end
end

-- Loading -------------------------------------------------------------------------------------------------------------

-- How many records there are is in a table of its own, for hashed keys do not tell: `loaded` by prepare; `at_start`,
-- before the run, stays the same for all its sessions, and is negative when the run is over; `now` is what sessions
-- leave behind.
local CHUNK = 10000

local function load()
  local set = settings()
  local con, product = connect()
  local all = texts(set, product)
  if sysbench.tid == 0 then
    for _, text in ipairs(all.create) do con:query(text) end
  end
  assay.barrier()
  local values = record_source(set, true)
  local loader = con:loader(set.table, all.columns)
  -- One session at a time may write to an embedded database.
  while not all.one_writer or sysbench.tid == 0 do
    local first = assay.claim("chunk") * CHUNK
    if first >= set.recordcount then break end
    local last = math.min(first + CHUNK, set.recordcount) - 1
    assay.expect(last - first + 1)
    assay.seed(sysbench.opt.rand_seed, "ycsb", first)
    for record = first, last do loader:row(key_of(record, set), values()) end
  end
  loader:done()
end

function cleanup()
  local set, con, product = settings(), connect()
  texts(set, product).drop(con)
end

sysbench.cmdline.commands = { prepare = { load, sysbench.cmdline.PARALLEL_COMMAND } }

--- The number of records that were loaded, which a run uses, and an option may only repeat. It may also be the number
--- of those that there are now, as YCSB wants it after inserts.
local function take_size(set, all, con)
  local loaded = tonumber(all.loaded(con))
  if not loaded then return end
  if not set.has_recordcount then set.recordcount = loaded end
  local now = tonumber((con:query_row(all.now)))
  if set.recordcount ~= loaded and set.recordcount ~= now then
    error(format("%s %.0f: %s was loaded with %.0f records%s",
      is_given("recordcount") and "--recordcount" or "--properties: recordcount", set.recordcount, set.table, loaded,
      now > loaded and format(", and has %.0f now", now) or ""), 0)
  end
end

--- Records from 0 on are there under their keys, and there are no more than were inserted. How many a run inserted
--- that was killed or lost its connections is known to nobody.
function check()
  local set, con, product = settings(), connect()
  local all = texts(set, product)
  if all.exists then con:query(all.exists) end
  take_size(set, all, con)
  -- No row at all if there is no document.
  local rows = tonumber((all.totals(con))) or 0
  local most, is_over = tonumber((con:query_row(all.now))), tonumber((con:query_row(all.at_start))) < 0
  local find = con:prepare(all.look, "t")
  local step, missing = math.max(1, math.floor(set.recordcount / 1000)), 0
  for record = 0, set.recordcount - 1, step do
    if not find:row(key_of(record, set)) then missing = missing + 1 end
  end
  if rows < set.recordcount then assay.log(format("%d records, and %d were loaded", rows, set.recordcount)) end
  if rows > most and is_over then
    assay.log(format("%d records, although only %d were loaded and inserted", rows, most))
  elseif rows > most then
    assay.log(format("%d records, %d more than before a run that did not end: not checked", rows, rows - most))
    most = rows
  end
  if missing > 0 then assay.log(missing .. " of the records that were looked for are missing") end
  return rows >= set.recordcount and rows <= most and missing == 0
end

-- The run -------------------------------------------------------------------------------------------------------------

local function read_totals(all, con)
  local records, updates = all.totals(con)
  records, updates = tonumber(records) or 0, tonumber(updates) or 0
  assay.total("records", records)
  assay.total("updates", updates)
  return records
end

function init()
  local set, con, product = settings(), connect()
  local all = texts(set, product)
  if all.exists then con:query(all.exists) end
  take_size(set, all, con)
  -- A run that was killed has not stored how many it inserted.
  con:query(all.raise_now(read_totals(all, con)))
  con:query(all.set_at_start(tonumber((con:query_row(all.now)))))
end

function done()
  local set, con, product = settings(), connect()
  local all = texts(set, product)
  local records, known = read_totals(all, con), tonumber((con:query_row(all.now)))
  -- What was in flight at the end may have been inserted, although no session has heard of it. More than that is left
  -- by sessions that could not say how far they came.
  if records > known + sysbench.opt.threads then return end
  con:query(all.raise_now(records))
  con:query(all.set_at_start(-1))
end

local KINDS = { "read", "update", "insert", "scan", "readmodifywrite" }

local set, con, all, values, value, choose, next_insert
local read, read_one, scan, scan_one, write, write_one, insert = nil, {}, nil, {}, nil, {}, nil
local bounds, last_kind = {}, nil
-- What the sessions of a Lua state know together: the newest record whose insert was acknowledged.
local newest

--- The newest record that is certainly there: sessions of other workers may not have stored theirs yet, but each has
--- only one under way.
local function last_record() return math.max(next_insert - 1, newest.record - sysbench.opt.threads) end

local function chooser()
  local kind, last = set.requestdistribution, next_insert - 1
  if kind == "latest" then
    local draw = distributions.zipfian(last, distributions.THETA)
    return function()
      local now = last_record()
      return now - draw(now)
    end
  elseif kind == "exponential" then
    local draw = distributions.exponential(set.exponential_percentile, set.recordcount * set.exponential_frac)
    return function() return last_record() - draw() end
  elseif kind == "uniform" then
    return function() return uniform(0, set.recordcount - 1) end
  elseif kind == "hotspot" then
    return distributions.hotspot(0, set.recordcount - 1, set.hotspotdatafraction, set.hotspotopnfraction)
  elseif kind == "sequential" then
    return function() return assay.claim("sequential") % set.recordcount end
  elseif sysbench.opt.zipfian == "exact" then
    return distributions.exact_zipfian(0, set.recordcount - 1, sysbench.opt.theta)
  end
  -- YCSB draws from more records than there are, by twice the number of inserts that it expects, and draws again.
  local expected = math.floor((sysbench.opt.events or 0) * set.insertproportion * 2)
  return distributions.scrambled_zipfian(0, set.recordcount + expected)
end

--- A record that exists.
local function existing()
  while true do
    local record = choose()
    if record >= 0 and record <= last_record() then return record end
  end
end

local function declare_rules()
  assay.audit { name = "records inserted", total = "records", of = "inserted", most = 1 }
  if sysbench.opt.audit_updates then
    assay.audit { name = "updates in the records", total = "updates", of = "updated", most = 1 }
  end
  if set.readproportion + set.readmodifywriteproportion == 0 then return end
  -- A session may be so slow that all others pass it.
  local high = set.insertproportion > 0 and 0.01 or 0
  assay.audit { name = "reads that found nothing", part = "missing", whole = "looked_up", high = high }
end

function thread_init()
  local product
  set = settings()
  con, product = connect()
  all = texts(set, product)
  take_size(set, all, con)
  values, value = record_source(set, false), value_source(set, false)
  next_insert = tonumber((con:query_row(all.at_start)))
  newest = assay.constant("ycsb newest", function() return { record = next_insert - 1 } end)
  choose = chooser()
  read = con:prepare(all.read(), "t")
  scan = con:prepare(all.scan(), "ti")
  write = con:prepare(all.update(), ("t"):rep(all.values + 1))
  insert = con:prepare(all.insert, ("t"):rep(all.values + 1))
  local sum = 0
  for i, kind in ipairs(KINDS) do
    local share = set[kind .. "proportion"]
    sum = sum + share
    bounds[i] = sum
    if share > 0 then last_kind = i end
  end
  for i = 1, #KINDS do bounds[i] = bounds[i] / sum end
  declare_rules()
  -- Reports and comparisons show what is in effect.
  for name, value in pairs(set) do
    if sysbench.opt[name] == UNSET or sysbench.opt[name] == "" then
      assay.found(name, type(value) == "boolean" and tostring(value) or value)
    end
  end
end

--- The statement of one field, prepared when it is first used.
local function of_field(statements, make, types)
  local field = uniform(0, set.fieldcount - 1)
  local statement = statements[field]
  if not statement then
    statement = con:prepare(make(field), types)
    statements[field] = statement
  end
  return statement
end

local function look_up(key)
  local statement = set.readallfields and read or of_field(read_one, all.read, "t")
  local found = statement:execute(key).nrows
  assay.count("looked_up")
  if found == 0 then assay.count("missing") end
end

local function rewrite(key)
  if set.writeallfields then
    if all.values == 1 then
      write:perform(values(), key)
    else
      local list = { values() }
      list[#list + 1] = key
      write:perform(unpack(list))
    end
  else
    of_field(write_one, all.update, "tt"):perform(value(), key)
  end
  assay.count("updated")
end

local scan_length

-- A transaction that is retried is the same one.
local kind, own_record

local WORK = {
  read = function() look_up(key_of(existing(), set)) end,
  update = function() rewrite(key_of(existing(), set)) end,
  readmodifywrite = function()
    local key = key_of(existing(), set)
    look_up(key)
    rewrite(key)
  end,
  scan = function()
    if not scan_length then
      local low, high = set.minscanlength, set.maxscanlength
      local draw = set.scanlengthdistribution == "zipfian" and distributions.zipfian(high - low + 1, distributions.THETA)
      scan_length = draw and function() return low + draw() end or function() return uniform(low, high) end
    end
    local statement = set.readallfields and scan or of_field(scan_one, all.scan, "ti")
    statement:perform(key_of(existing(), set), scan_length())
  end,
  insert = function()
    own_record = own_record or next_insert + assay.claim("insert")
    insert:perform(key_of(own_record, set), values())
    if own_record > newest.record then newest.record = own_record end
    assay.count("inserted")
  end,
}

local transactions = {}
for i, kind in ipairs(KINDS) do transactions[i] = assay.transaction(kind, WORK[kind]) end

function event(_, attempt)
  if not kind or not attempt or attempt == 0 then
    local drawn = sysbench.rand.uniform_double()
    kind, own_record = last_kind, nil
    for i = 1, #KINDS do
      if drawn < bounds[i] then
        kind = i
        break
      end
    end
  end
  transactions[kind]()
end

function thread_done()
  if not set or set.insertproportion == 0 then return end
  local records = newest.record + 1
  con:query(all.raise_now(records))
end
