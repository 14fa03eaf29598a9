--- Flights: a table of on-time data with 109 columns, and 15 analytical queries; `assay olap flights` times them.
--
--
-- `prepare` generates flights with the skew of real ones: carriers, airports, seasons, days of the week, hours, delays
-- and their causes; or it loads the published monthly files, with --files. docs/olap.md has the details. `assay run`
-- executes the queries in random order, in as many sessions as wanted.

local common = assay.share("olap_common")
local data = assay.share("flights_data")
local make_queries = assay.share("flights_queries")
local foreign = assay.share("flights_foreign")

sysbench.cmdline.own_rows = true
sysbench.cmdline.options = {
  flights = { "Flights to generate; 0: as loaded, or 100,000 for prepare", 0, low = 0, whole = true },
  first_year = { "First year of the data", 2014, low = 1900, high = 2200, whole = true },
  years = { "Years of data", 10, low = 1, high = 100, whole = true },
  indexes = { "Create indexes on what the queries select and group by", false },
  foreign = { "PostgreSQL: foreign tables instead of rows, of the flights at this URL; self: of flights in the same "
    .. "database, loaded as usual", "" },
  files = { "Folder with the published monthly files, as CSV, to load instead of generating flights", "" },
}

local LOADED = "flights_load"
local floor, min, max, log, random = math.floor, math.min, math.max, math.log, sysbench.rand.uniform_double
local columns = data.columns
local WIDTH = #columns
local NAMES = {}
for i, column in ipairs(columns) do NAMES[i] = column.name end

-- Indexes of the columns.
local INDEXES = {
  { "ontime_month", "Year, Month" }, { "ontime_weekday", "DayOfWeek" }, { "ontime_delay", "DepDelay" },
  { "ontime_carrier", "Reporting_Airline" }, { "ontime_origin", "Origin" }, { "ontime_dest", "Dest" },
}

-- What ClickHouse sorts the table by, which cannot be NULL.
local SORTED_BY = { Year = true, Reporting_Airline = true, FlightDate = true }
local CLICKHOUSE = { SMALLINT = "Int16", INTEGER = "Int32", DATE = "Date" }

local function definition(product, name)
  local list = {}
  for i, column in ipairs(columns) do
    local kind = column.type
    if product == "clickhouse" then
      kind = CLICKHOUSE[kind] or "String"
      if not SORTED_BY[column.name] then kind = "Nullable(" .. kind .. ")" end
    end
    list[i] = column.name .. " " .. kind
  end
  local engine = " ENGINE = MergeTree PARTITION BY Year ORDER BY (Reporting_Airline, FlightDate)"
  return "CREATE TABLE " .. name .. " (" .. table.concat(list, ", ") .. ")" .. (product == "clickhouse" and engine or "")
end

local function options()
  local opt = sysbench.opt
  if sysbench.sql.driver():name() == "clickhouse" then
    if opt.indexes then error("--indexes: ClickHouse has none; it sorts the table by carrier and day", 0) end
    if opt.first_year < 1970 then error("--first-year: ClickHouse's dates begin in 1970", 0) end
  end
  if opt.foreign ~= "" then
    if sysbench.sql.driver():name() ~= "pgsql" then error("--foreign: only PostgreSQL has foreign tables", 0) end
    foreign.source(opt.foreign)
    if opt.foreign ~= "self" and (opt.indexes or opt.files ~= "") then
      error("--foreign " .. foreign.shown(opt.foreign) .. ": --indexes and --files are for the database that has the rows", 0)
    end
  end
  return opt
end

local function all_queries()
  local opt = options()
  return make_queries(opt.first_year, opt.years)
end

local QUESTIONS = { first_year = "SELECT MIN(Year) FROM ontime", last_year = "SELECT MAX(Year) FROM ontime" }

--- Compares what options say about the table with what it holds. The queries need the years.
local function compare(held)
  local opt = sysbench.opt
  if not held.ontime or not held.first_year then return end
  local first, last = opt.first_year, opt.first_year + opt.years - 1
  -- In a few flights, a year may be missing.
  local is_full = held.ontime >= 100 * (held.last_year - held.first_year + 1)
  if first > held.last_year or last < held.first_year
    or is_full and (first < held.first_year or last > held.last_year) then
    error(("--first-year %d: the table has flights of the years %d to %d, and not to %d: give --first-year %d --years %d")
      :format(first, held.first_year, held.last_year, last, held.first_year, held.last_year - held.first_year + 1), 0)
  end
  assay.found("flights", held.ontime)
  if not is_full and first <= held.first_year and last >= held.last_year then return end
  assay.found("first_year", held.first_year)
  assay.found("years", held.last_year - held.first_year + 1)
end

function queries()
  common.declare(all_queries(), LOADED, QUESTIONS)
  compare(common.held())
end

-- Generating ----------------------------------------------------------------------------------------------------------

--- A function that draws from a list by weight.
local function chooser(list, weight)
  local sums, sum = {}, 0
  for i, one in ipairs(list) do
    sum = sum + weight(one)
    sums[i] = sum
  end
  return function()
    local drawn, low, high = random() * sum, 1, #list
    while low < high do
      local middle = floor((low + high) / 2)
      if sums[middle] > drawn then high = middle else low = middle + 1 end
    end
    return list[low], low
  end
end

local function exponential(mean) return -mean * log(1 - random()) end

local function normal(mean, deviation)
  return mean + deviation * math.sqrt(-2 * log(1 - random())) * math.cos(2 * math.pi * random())
end

local function round(number) return floor(number + 0.5) end

--- Statute miles between two airports.
local function distance(a, b)
  local radians = math.pi / 180
  local latitudes, longitudes = (b[6] - a[6]) * radians, (b[7] - a[7]) * radians
  local h = math.sin(latitudes / 2) ^ 2
    + math.cos(a[6] * radians) * math.cos(b[6] * radians) * math.sin(longitudes / 2) ^ 2
  return max(30, round(2 * 3958.8 * math.asin(math.sqrt(h))))
end

--- Minutes as HHMM: 0905 is 905, and midnight is 2400, as in the published files.
local function clock(minutes)
  minutes = minutes % 1440
  if minutes == 0 then return 2400 end
  return floor(minutes / 60) * 100 + minutes % 60
end

--- `0900-0959`; the night is one block.
local function block(minutes)
  local hour = floor(minutes % 1440 / 60)
  return hour < 6 and "0001-0559" or ("%02d00-%02d59"):format(hour, hour)
end

local function group(delay) return max(-2, min(12, floor(delay / 15))) end

--- The days with their numbers of flights, which depend on nothing but the options.
local function calendar(opt)
  local first = common.day_number(opt.first_year, 1, 1)
  local last = common.day_number(opt.first_year + opt.years, 1, 1) - 1
  local days, sum = {}, 0
  for number = first, last do
    local year, month, day = common.date_of(number)
    local weekday = number % 7 + 1
    sum = sum + data.months[month][1] * data.weekdays[weekday][1]
    days[#days + 1] = { number = number, year = year, month = month, day = day, weekday = weekday, sum = sum }
  end
  local before = 0
  for _, day in ipairs(days) do
    local upto = round((opt.flights > 0 and opt.flights or 100000) * day.sum / sum)
    day.flights, before = upto - before, upto
  end
  return days
end

--- A function that fills a list with the columns of a new flight of a day.
local function flight_source()
  local by_code = {}
  for _, airport in ipairs(data.airports) do by_code[airport[1]] = airport end
  local choose_airport = chooser(data.airports, function(airport) return airport[5] end)
  local choose_carrier = chooser(data.carriers, function(carrier) return carrier[3] end)
  local choose_hour = chooser(data.hours, function(weight) return weight end)
  local place = {}
  for i, column in ipairs(columns) do place[column.name] = i end

  local function fill_airport(row, side, airport)
    local state = data.states[airport[4]]
    local at = place[side .. "AirportID"]
    row[at], row[at + 1], row[at + 2] = airport[2], airport[2] * 100 + 4, 30000 + airport[2] % 6000
    row[at + 3], row[at + 4], row[at + 5], row[at + 6] = airport[1], airport[3], airport[4], state[1]
    row[at + 7], row[at + 8] = state[2], state[3]
  end

  local function fill_causes(row, delay)
    local at, drawn = place.CarrierDelay, random()
    local main = drawn < 0.37 and 4 or drawn < 0.66 and 0 or drawn < 0.94 and 2 or drawn < 0.998 and 1 or 3
    for i = 0, 4 do row[at + i] = 0 end
    local part = random() < 0.4 and floor(delay * random() / 2) or 0
    local other = floor(random() * 5)
    if other == main or other == 3 then part = 0 end
    row[at + main] = delay - part
    row[at + other] = row[at + other] + part
  end

  return function(row, day)
    for i = 1, WIDTH do row[i] = nil end
    local carrier = choose_carrier()
    local origin, dest = choose_airport(), choose_airport()
    local hubs = carrier[5]
    local drawn = random()
    if drawn < 0.4 then
      origin = by_code[hubs[floor(random() * #hubs) + 1]]
    elseif drawn < 0.8 then
      dest = by_code[hubs[floor(random() * #hubs) + 1]]
    end
    while dest == origin do dest = choose_airport() end
    local _, hour_at = choose_hour()
    local hour, minute = hour_at - 1, floor(random() * 12) * 5
    local leaves = hour * 60 + minute
    row[1], row[2], row[3], row[4], row[5] = day.year, floor((day.month + 2) / 3), day.month, day.day, day.weekday
    row[6] = ("%04d-%02d-%02d"):format(day.year, day.month, day.day)
    row[7], row[8], row[9] = carrier[1], carrier[2], carrier[1]
    local tail = ("N%03d%s"):format(100 + floor(random() * 800), carrier[1])
    row[11] = 1 + floor(random() * 6500)
    fill_airport(row, "Origin", origin)
    fill_airport(row, "Dest", dest)

    local miles = distance(origin, dest)
    local planned = round(38 + miles / 7.9 + 5 * random())
    local zones = (data.states[dest[4]][4] - data.states[origin[4]][4]) * 60
    row[place.CRSDepTime], row[place.DepTimeBlk] = clock(leaves), block(leaves)
    local arrives = leaves + planned + zones
    row[place.CRSArrTime], row[place.ArrTimeBlk] = clock(arrives), block(arrives)
    row[place.CRSElapsedTime], row[place.Flights] = planned, 1
    row[place.Distance], row[place.DistanceGroup] = miles, min(11, floor(miles / 250) + 1)
    row[place.Cancelled], row[place.Diverted], row[place.DivAirportLandings] = 0, 0, 0

    local month, weekday = data.months[day.month], data.weekdays[day.weekday]
    if random() * 100 < month[3] * carrier[4] then
      row[place.Cancelled] = 1
      local reason = random()
      row[place.CancellationCode] = reason < 0.32 and "A" or reason < 0.83 and "B" or reason < 0.998 and "C" or "D"
      return
    end
    row[10] = tail
    local late = carrier[4] * month[2] * weekday[2] * (0.55 + max(0, hour - 5) * 0.055)
    local delay
    if random() < min(0.7, 0.29 * late) then
      delay = min(1900, 1 + floor(exponential(25 + 12 * late)))
    else
      delay = max(-25, min(0, round(normal(-4, 3.5))))
    end
    row[place.DepTime], row[place.DepDelay], row[place.DepDelayMinutes] = clock(leaves + delay), delay, max(0, delay)
    row[place.DepDel15], row[place.DepartureDelayGroups] = delay >= 15 and 1 or 0, group(delay)
    local out, into = 8 + floor(exponential(8)), 3 + floor(exponential(4))
    row[place.TaxiOut], row[place.WheelsOff] = out, clock(leaves + delay + out)
    if random() < 0.005 then
      row[place.FirstDepTime], row[place.TotalAddGTime] = clock(leaves + delay - 20), 15
      row[place.LongestAddGTime] = 15
    end
    local air = max(15, round(planned - 27 + normal(0, 6 + planned / 40)))
    if random() < 0.0024 then
      local stop = choose_airport()
      row[place.Diverted], row[place.DivAirportLandings] = 1, 1
      row[place.DivReachedDest] = random() < 0.75 and 1 or 0
      local at = place.Div1Airport
      row[at], row[at + 1], row[at + 2] = stop[1], stop[2], stop[2] * 100 + 4
      row[at + 3], row[at + 4], row[at + 5] = clock(leaves + delay + out + air), 45, 45
      if row[place.DivReachedDest] == 1 then
        local whole = out + air + 45 + 60 + into
        row[at + 6], row[at + 7] = clock(leaves + delay + out + air + 45), tail
        row[place.DivActualElapsedTime], row[place.DivArrDelay] = whole, delay + whole - planned
        row[place.DivDistance] = 0
      else
        row[place.DivDistance] = distance(stop, dest)
      end
      return
    end
    local actual = out + air + into
    local arrival = delay + actual - planned
    local landed = leaves + delay + actual + zones
    row[place.WheelsOn], row[place.TaxiIn], row[place.ArrTime] = clock(landed - into), into, clock(landed)
    row[place.ArrDelay], row[place.ArrDelayMinutes] = arrival, max(0, arrival)
    row[place.ArrDel15], row[place.ArrivalDelayGroups] = arrival >= 15 and 1 or 0, group(arrival)
    row[place.ActualElapsedTime], row[place.AirTime] = actual, air
    if arrival >= 15 then fill_causes(row, arrival) end
  end
end

--- Days are shared by the sessions; each has random numbers of its own, so that rows do not depend on who loads them.
local function generate(con, opt, name)
  local days, make, row, rows = calendar(opt), flight_source(), {}, 0
  local loader = con:loader(name, table.concat(NAMES, ", "))
  while true do
    local day = days[assay.claim("day of flights") + 1]
    if not day then break end
    assay.expect(day.flights)
    assay.seed(opt.rand_seed, "flights", day.number)
    for _ = 1, day.flights do
      make(row, day)
      loader:row(unpack(row, 1, WIDTH))
    end
    rows = rows + day.flights
  end
  loader:done()
  return rows
end

-- Loading files -------------------------------------------------------------------------------------------------------

--- The CSV files of a folder, sorted.
local function files_of(folder)
  local quoted = "'" .. folder:gsub("'", "'\\''") .. "'"
  local listing, found = io.popen("ls -1 -- " .. quoted .. " 2>&1"), {}
  for line in listing:lines() do
    if line:lower():find("%.csv$") then found[#found + 1] = folder .. "/" .. line end
  end
  listing:close()
  table.sort(found)
  if #found == 0 then
    error("--files " .. folder .. ": there is no file that ends in .csv (the published ones are in archives: unzip them)", 0)
  end
  return found
end

--- Splits a line of CSV into `fields`; returns their number.
local function split(line, fields)
  local count, at, length = 0, 1, #line
  while at <= length + 1 do
    local value
    if line:byte(at) == 34 then -- a quote
      local from = at + 1
      local stop = line:find('"', from, true)
      while stop and line:byte(stop + 1) == 34 do stop = line:find('"', stop + 2, true) end
      if not stop then return nil end
      value, at = line:sub(from, stop - 1):gsub('""', '"'), stop + 2
    else
      local comma = line:find(",", at, true) or length + 1
      value, at = line:sub(at, comma - 1), comma + 1
    end
    count = count + 1
    fields[count] = value
  end
  return count
end

--- Whether the first line of a file names the columns, in any spelling.
local function check_head(path, line)
  local fields = {}
  local count = split(line or "", fields)
  -- The files end every line with a comma.
  if count == WIDTH + 1 and fields[count] == "" then count = WIDTH end
  if count ~= WIDTH then
    error(("--files: %s has %s columns, and not %d: it is not a monthly file of on-time performance"):format(path,
      tostring(count), WIDTH), 0)
  end
  for i, column in ipairs(columns) do
    local name = fields[i]:lower():gsub("_", "")
    if name ~= column.name:lower():gsub("_", "") and name ~= column.older:lower():gsub("_", "") then
      error(("--files: column %d of %s is %s, and not %s"):format(i, path, fields[i], column.name), 0)
    end
  end
end

local function load_file(loader, path)
  local file, trouble = io.open(path)
  if not file then error("--files: " .. trouble, 0) end
  local fields, values, place, rows = {}, {}, 1, 0
  check_head(path, (file:read("*l") or ""):gsub("\r$", ""))
  for line in file:lines() do
    place = place + 1
    line = line:gsub("\r$", "")
    if line ~= "" then
      local count = split(line, fields)
      if not count or count < WIDTH or count > WIDTH + 1 then
        error(("--files: line %d of %s has %s values, and not %d"):format(place, path, tostring(count), WIDTH), 0)
      end
      for i, column in ipairs(columns) do
        local text = fields[i]
        if text == "" then
          values[i] = nil
        elseif column.is_number then
          values[i] = tonumber(text)
            or error(("--files: line %d of %s: %s is not a number: %s"):format(place, path, column.name, text), 0)
        else
          values[i] = text
        end
      end
      loader:row(unpack(values, 1, WIDTH))
      rows = rows + 1
    end
  end
  file:close()
  return rows
end

--- Files are shared by the sessions.
local function load_files(con, folder, name)
  local files, rows = files_of(folder), 0
  local loader = con:loader(name, table.concat(NAMES, ", "))
  while true do
    local path = files[assay.claim("file of flights") + 1]
    if not path then break end
    rows = rows + load_file(loader, path)
  end
  loader:done()
  return rows
end

-- Commands ------------------------------------------------------------------------------------------------------------

local function load()
  local opt = options()
  local con, product = common.connect()
  local has_rows = opt.foreign == "" or opt.foreign == "self"
  local name = opt.foreign == "self" and foreign.stored or "ontime"
  if sysbench.tid == 0 then
    if has_rows then con:query(definition(product, name)) end
    common.create_loaded(con, product, LOADED)
  end
  assay.barrier()
  if not has_rows then
    if sysbench.tid == 0 then
      foreign.create(con, columns, opt.foreign)
      common.finish(con, product, LOADED, { { "ontime", tonumber((con:query_row("SELECT COUNT(*) FROM ontime"))) } })
    end
    return
  end
  local rows = 0
  -- One session at a time may write to an embedded database.
  if product ~= "sqlite" or sysbench.tid == 0 then
    rows = opt.files ~= "" and load_files(con, opt.files, name) or generate(con, opt, name)
    con:query(("INSERT INTO %s VALUES ('part %d', %.0f)"):format(LOADED, sysbench.tid, rows))
  end
  assay.barrier()
  if sysbench.tid ~= 0 then return end
  local all = con:query_row(("SELECT SUM(row_count) FROM %s"):format(LOADED))
  common.empty(con, product, LOADED)
  if opt.indexes then
    for _, index in ipairs(INDEXES) do con:query(("CREATE INDEX %s ON %s (%s)"):format(index[1], name, index[2])) end
  end
  if opt.foreign == "self" then
    con:query("ANALYZE " .. name)
    foreign.create(con, columns, opt.foreign)
  end
  common.finish(con, product, LOADED, { { "ontime", tonumber(all) } })
end

sysbench.cmdline.commands = { prepare = { load, sysbench.cmdline.PARALLEL_COMMAND } }

function cleanup()
  local con, product = common.connect()
  if product == "pgsql" then foreign.drop(con) end
  con:query("DROP TABLE IF EXISTS ontime")
  con:query("DROP TABLE IF EXISTS " .. LOADED)
end

--- The rows are complete and contradict neither themselves nor what is known about flights.
function check()
  local con, opt = common.connect(), options()
  local ok = common.complete(con, LOADED)
  local function count(where) return "SELECT COUNT(*) FROM ontime WHERE " .. where end
  ok = common.none(con, {
    { "flights on a day that is not in their month", count("NOT (DayofMonth BETWEEN 1 AND 31 AND Month BETWEEN 1 AND 12) OR Quarter <> (Month + 2 - (Month + 2) % 3) / 3") },
    { "cancelled flights that have arrived", count("Cancelled = 1 AND ArrTime IS NOT NULL") },
  }) and ok
  if opt.files ~= "" then return ok end
  local last = opt.first_year + opt.years - 1
  ok = common.none(con, {
    { "flights outside of the years", count(("NOT (Year BETWEEN %d AND %d)"):format(opt.first_year, last)) },
    { "flights that arrive where they left", count("Origin = Dest") },
    { "flights without a time of departure or arrival", count("Cancelled = 0 AND Diverted = 0 AND (DepDelay IS NULL OR ArrDelay IS NULL)") },
    { "arrivals that do not follow from departures", count("ArrDelay <> DepDelay + ActualElapsedTime - CRSElapsedTime OR ActualElapsedTime <> TaxiOut + AirTime + TaxiIn") },
    { "late arrivals whose causes do not add up", count("ArrDelay >= 15 AND ArrDelay <> CarrierDelay + WeatherDelay + NASDelay + SecurityDelay + LateAircraftDelay") },
    { "flights whose delay is in the wrong group", count("DepDelay >= 15 AND DepDel15 <> 1 OR DepDelay < 15 AND DepDel15 <> 0 OR DepDelay > 0 AND DepDelayMinutes <> DepDelay") },
  }) and ok
  local rows = tonumber((con:query_row(count("1 = 1"))))
  if rows < 20000 then return ok end
  -- The skew, within ten standard deviations of a share of this size.
  local function share(what, where, expected)
    local found = tonumber((con:query_row(count(where)))) / rows
    local allowed = 10 * math.sqrt(expected * (1 - expected) / rows)
    if math.abs(found - expected) > allowed then
      assay.log(("%s: %.4f of the flights, and not %.4f"):format(what, found, expected))
      ok = false
    end
  end
  local carriers, weekdays = 0, 0
  for _, carrier in ipairs(data.carriers) do carriers = carriers + carrier[3] end
  for _, weekday in ipairs(data.weekdays) do weekdays = weekdays + weekday[1] end
  share("the largest carrier", "Reporting_Airline = 'WN'", data.carriers[1][3] / carriers)
  share("Saturdays", "DayOfWeek = 6", data.weekdays[6][1] / weekdays)
  return ok
end

-- The run -------------------------------------------------------------------------------------------------------------

local next_query

function thread_init()
  local con = common.connect()
  -- In one session: this may read the whole table.
  if sysbench.tid == 0 then compare(common.ask(con, LOADED, QUESTIONS)) end
  next_query = common.stream(con, all_queries())
end

function event(_, attempt) next_query(attempt) end
