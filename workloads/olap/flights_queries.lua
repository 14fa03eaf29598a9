--- The fifteen questions of the flights workload, Q0 to Q14: the kind that is published about on-time data.

-- Averages and percentages are floating-point numbers on every database, so that results can be compared. Names of
-- cities are not sorted: databases have different opinions about their order.
local LATE = "SUM(CASE WHEN DepDelay > 10 THEN 1 ELSE 0 END)"

--- The list for years from `first` on, `count` of them.
return function(first, count)
  local margin = math.floor(count / 4)
  local low, high = first + margin, first + count - 1 - margin
  local range, one = ("Year BETWEEN %d AND %d"):format(low, high), ("Year = %d"):format(low)
  local function with(text) return (text:gsub("$(%w+)", { range = range, one = one, late = LATE })) end
  local list = {}
  local function add(question, text)
    list[#list + 1] = { name = "Q" .. #list, question = question, text = with(text) }
  end
  add("How many flights does a month have on average?",
    [[SELECT AVG(1e0 * n) AS flights FROM (SELECT Year, Month, COUNT(*) AS n FROM ontime GROUP BY Year, Month) AS months]])
  add("How many flights leave on each day of the week?",
    [[SELECT DayOfWeek, COUNT(*) AS n FROM ontime WHERE $range GROUP BY DayOfWeek ORDER BY n DESC, DayOfWeek]])
  add("How many of them leave more than ten minutes late?",
    [[SELECT DayOfWeek, COUNT(*) AS n FROM ontime WHERE DepDelay > 10 AND $range GROUP BY DayOfWeek
ORDER BY n DESC, DayOfWeek]])
  add("From which ten airports do most flights leave late?",
    [[SELECT Origin, COUNT(*) AS n FROM ontime WHERE DepDelay > 10 AND $range GROUP BY Origin ORDER BY n DESC, Origin
LIMIT 10]])
  add("How many late departures has each carrier in one year?",
    [[SELECT Reporting_Airline, COUNT(*) AS n FROM ontime WHERE DepDelay > 10 AND $one GROUP BY Reporting_Airline
ORDER BY n DESC, Reporting_Airline]])
  add("Which percentage of each carrier's departures is late in one year, by a join?",
    [[SELECT everything.Reporting_Airline, late.n AS late, everything.n AS departures, 1e2 * late.n / everything.n AS percent
FROM (SELECT Reporting_Airline, COUNT(*) AS n FROM ontime WHERE DepDelay > 10 AND $one GROUP BY Reporting_Airline) AS late
JOIN (SELECT Reporting_Airline, COUNT(*) AS n FROM ontime WHERE $one GROUP BY Reporting_Airline) AS everything
ON late.Reporting_Airline = everything.Reporting_Airline
ORDER BY percent DESC, everything.Reporting_Airline]])
  add("Which percentage of each carrier's departures is late over several years?",
    [[SELECT Reporting_Airline, COUNT(*) AS departures, $late AS late, 1e2 * $late / COUNT(*) AS percent
FROM ontime WHERE $range GROUP BY Reporting_Airline ORDER BY percent DESC, Reporting_Airline]])
  add("Which percentage of departures is late in each year?",
    [[SELECT Year, 1e2 * $late / COUNT(*) AS percent FROM ontime GROUP BY Year ORDER BY Year]])
  add("Which ten airports are reached from the most others?",
    [[SELECT Dest, COUNT(DISTINCT Origin) AS origins FROM ontime WHERE $range GROUP BY Dest ORDER BY origins DESC, Dest
LIMIT 10]])
  add("How many flights has each year?", [[SELECT Year, COUNT(*) AS n FROM ontime GROUP BY Year ORDER BY Year]])
  add("How often do carriers arrive more than half an hour late on working days, within the mainland?",
    [[SELECT MIN(Year) AS first_year, MAX(Year) AS last_year, Reporting_Airline, COUNT(*) AS n,
SUM(CASE WHEN ArrDelayMinutes > 30 THEN 1 ELSE 0 END) AS late,
1e2 * SUM(CASE WHEN ArrDelayMinutes > 30 THEN 1 ELSE 0 END) / COUNT(*) AS percent
FROM ontime WHERE DayOfWeek NOT IN (6, 7) AND OriginState NOT IN ('AK', 'HI', 'PR', 'VI')
AND DestState NOT IN ('AK', 'HI', 'PR', 'VI') AND $range
GROUP BY Reporting_Airline HAVING COUNT(*) > 10 ORDER BY percent DESC, Reporting_Airline]])
  add("How many flights leave late in a month, on average?",
    [[SELECT AVG(1e0 * n) AS flights FROM (SELECT Year, Month, COUNT(*) AS n FROM ontime WHERE DepDel15 = 1
GROUP BY Year, Month) AS months]])
  add("Which ten connections have the most flights?",
    [[SELECT Origin, Dest, COUNT(*) AS n FROM ontime GROUP BY Origin, Dest ORDER BY n DESC, Origin, Dest LIMIT 10]])
  add("Which ten airports have the most departures?",
    [[SELECT Origin, COUNT(*) AS n FROM ontime GROUP BY Origin ORDER BY n DESC, Origin LIMIT 10]])
  add("How many of a thousand departures are late in each year, by a join?",
    [[SELECT late.Year, 1e3 * late.n / everything.n AS per_thousand
FROM (SELECT Year, COUNT(*) AS n FROM ontime WHERE DepDelay > 10 GROUP BY Year) AS late
JOIN (SELECT Year, COUNT(*) AS n FROM ontime GROUP BY Year) AS everything ON late.Year = everything.Year
ORDER BY late.Year]])
  return list
end
