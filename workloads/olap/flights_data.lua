--- Carriers, airports and states of the flights workload: real codes, and weights that are roughly like real ones.

local data = {}

-- Code, number at the Department of Transportation, share of the flights, how late it is, hubs.
data.carriers = {
  { "WN", 19393, 20, 1.05, { "DEN", "LAS", "MDW", "BWI", "PHX", "DAL", "HOU", "MCO" } },
  { "DL", 19790, 14, 0.80, { "ATL", "MSP", "DTW", "SLC", "SEA", "JFK", "LGA", "BOS" } },
  { "AA", 19805, 13.5, 1.05, { "DFW", "CLT", "ORD", "PHL", "MIA", "PHX", "DCA" } },
  { "OO", 20304, 11, 0.90, { "ORD", "DEN", "SLC", "SFO", "LAX", "MSP" } },
  { "UA", 19977, 9.5, 1.00, { "ORD", "DEN", "IAH", "EWR", "SFO", "IAD", "LAX" } },
  { "YX", 20452, 5, 0.90, { "LGA", "EWR", "DCA", "ORD", "PHL" } },
  { "MQ", 20398, 4.5, 1.05, { "ORD", "DFW", "MIA" } },
  { "B6", 20409, 4, 1.40, { "JFK", "BOS", "FLL", "MCO" } },
  { "OH", 20397, 4, 1.05, { "CLT", "PHL", "DCA" } },
  { "AS", 19930, 3.5, 0.75, { "SEA", "PDX", "ANC", "SFO", "LAX" } },
  { "9E", 20363, 3.5, 0.85, { "ATL", "DTW", "MSP", "JFK", "LGA" } },
  { "NK", 20416, 3, 1.15, { "FLL", "MCO", "LAS", "DTW", "DFW" } },
  { "F9", 20436, 2, 1.35, { "DEN", "MCO", "LAS" } },
  { "YV", 20378, 1.7, 1.00, { "PHX", "IAH", "DFW" } },
  { "HA", 19690, 0.5, 0.70, { "HNL", "OGG" } },
  { "G4", 20368, 0.3, 1.20, { "LAS", "TPA" } },
}

-- Code, number, city, state, weight, latitude, longitude.
data.airports = {
  { "ATL", 10397, "Atlanta, GA", "GA", 57, 33.64, -84.43 },
  { "ORD", 13930, "Chicago, IL", "IL", 43, 41.98, -87.90 },
  { "DFW", 11298, "Dallas/Fort Worth, TX", "TX", 42, 32.90, -97.04 },
  { "DEN", 11292, "Denver, CO", "CO", 38, 39.86, -104.67 },
  { "CLT", 11057, "Charlotte, NC", "NC", 31, 35.21, -80.94 },
  { "LAX", 12892, "Los Angeles, CA", "CA", 30, 33.94, -118.41 },
  { "LAS", 12889, "Las Vegas, NV", "NV", 24, 36.08, -115.15 },
  { "PHX", 14107, "Phoenix, AZ", "AZ", 24, 33.43, -112.01 },
  { "SEA", 14747, "Seattle, WA", "WA", 21, 47.45, -122.31 },
  { "SFO", 14771, "San Francisco, CA", "CA", 20, 37.62, -122.38 },
  { "MCO", 13204, "Orlando, FL", "FL", 20, 28.43, -81.31 },
  { "DTW", 11433, "Detroit, MI", "MI", 19, 42.21, -83.35 },
  { "MSP", 13487, "Minneapolis, MN", "MN", 19, 44.88, -93.22 },
  { "LGA", 12953, "New York, NY", "NY", 19, 40.78, -73.87 },
  { "BOS", 10721, "Boston, MA", "MA", 18, 42.36, -71.01 },
  { "EWR", 11618, "Newark, NJ", "NJ", 17, 40.69, -74.17 },
  { "IAH", 12266, "Houston, TX", "TX", 17, 29.98, -95.34 },
  { "SLC", 14869, "Salt Lake City, UT", "UT", 15, 40.79, -111.98 },
  { "DCA", 11278, "Washington, DC", "VA", 15, 38.85, -77.04 },
  { "JFK", 12478, "New York, NY", "NY", 15, 40.64, -73.78 },
  { "PHL", 14100, "Philadelphia, PA", "PA", 13, 39.87, -75.24 },
  { "BWI", 10821, "Baltimore, MD", "MD", 13, 39.18, -76.67 },
  { "MIA", 13303, "Miami, FL", "FL", 12, 25.79, -80.29 },
  { "FLL", 11697, "Fort Lauderdale, FL", "FL", 11, 26.07, -80.15 },
  { "SAN", 14679, "San Diego, CA", "CA", 11, 32.73, -117.19 },
  { "MDW", 13232, "Chicago, IL", "IL", 10, 41.79, -87.75 },
  { "TPA", 15304, "Tampa, FL", "FL", 10, 27.98, -82.53 },
  { "BNA", 10693, "Nashville, TN", "TN", 10, 36.12, -86.68 },
  { "DAL", 11259, "Dallas, TX", "TX", 9, 32.85, -96.85 },
  { "IAD", 12264, "Washington, DC", "VA", 8, 38.94, -77.46 },
  { "AUS", 10423, "Austin, TX", "TX", 8, 30.19, -97.67 },
  { "PDX", 14057, "Portland, OR", "OR", 8, 45.59, -122.60 },
  { "STL", 15016, "St. Louis, MO", "MO", 8, 38.75, -90.37 },
  { "HNL", 12173, "Honolulu, HI", "HI", 7, 21.32, -157.92 },
  { "HOU", 12191, "Houston, TX", "TX", 7, 29.65, -95.28 },
  { "RDU", 14492, "Raleigh/Durham, NC", "NC", 6, 35.88, -78.79 },
  { "MSY", 13495, "New Orleans, LA", "LA", 6, 29.99, -90.26 },
  { "SMF", 14893, "Sacramento, CA", "CA", 6, 38.70, -121.59 },
  { "MCI", 13198, "Kansas City, MO", "MO", 6, 39.30, -94.71 },
  { "SJC", 14831, "San Jose, CA", "CA", 5, 37.36, -121.93 },
  { "SNA", 14908, "Santa Ana, CA", "CA", 5, 33.68, -117.87 },
  { "OAK", 13796, "Oakland, CA", "CA", 5, 37.72, -122.22 },
  { "CLE", 11042, "Cleveland, OH", "OH", 5, 41.41, -81.85 },
  { "SAT", 14683, "San Antonio, TX", "TX", 5, 29.53, -98.47 },
  { "IND", 12339, "Indianapolis, IN", "IN", 5, 39.72, -86.29 },
  { "PIT", 14122, "Pittsburgh, PA", "PA", 5, 40.49, -80.23 },
  { "CMH", 11066, "Columbus, OH", "OH", 4, 39.99, -82.89 },
  { "CVG", 11193, "Cincinnati, OH", "KY", 4, 39.05, -84.66 },
  { "OGG", 13830, "Kahului, HI", "HI", 3, 20.90, -156.43 },
  { "JAX", 12451, "Jacksonville, FL", "FL", 3, 30.49, -81.69 },
  { "ABQ", 10140, "Albuquerque, NM", "NM", 3, 35.04, -106.61 },
  { "BUR", 10800, "Burbank, CA", "CA", 3, 34.20, -118.36 },
  { "ANC", 10299, "Anchorage, AK", "AK", 3, 61.17, -149.99 },
  { "OMA", 13871, "Omaha, NE", "NE", 2.5, 41.30, -95.89 },
  { "BOI", 10713, "Boise, ID", "ID", 2.5, 43.56, -116.22 },
  { "MEM", 13244, "Memphis, TN", "TN", 2.5, 35.04, -89.98 },
  { "ONT", 13891, "Ontario, CA", "CA", 2.5, 34.06, -117.60 },
  { "RSW", 14635, "Fort Myers, FL", "FL", 2.5, 26.54, -81.76 },
  { "BUF", 10792, "Buffalo, NY", "NY", 2, 42.94, -78.73 },
  { "TUS", 15376, "Tucson, AZ", "AZ", 2, 32.12, -110.94 },
}

-- State: FIPS code, name, world area code, hours from UTC.
data.states = {
  AK = { 2, "Alaska", 1, -9 }, AZ = { 4, "Arizona", 81, -7 }, CA = { 6, "California", 91, -8 },
  CO = { 8, "Colorado", 82, -7 }, FL = { 12, "Florida", 33, -5 }, GA = { 13, "Georgia", 34, -5 },
  HI = { 15, "Hawaii", 2, -10 }, ID = { 16, "Idaho", 83, -7 }, IL = { 17, "Illinois", 41, -6 },
  IN = { 18, "Indiana", 42, -5 }, KY = { 21, "Kentucky", 52, -5 }, LA = { 22, "Louisiana", 72, -6 },
  MA = { 25, "Massachusetts", 13, -5 }, MD = { 24, "Maryland", 35, -5 }, MI = { 26, "Michigan", 43, -5 },
  MN = { 27, "Minnesota", 63, -6 }, MO = { 29, "Missouri", 64, -6 }, NC = { 37, "North Carolina", 36, -5 },
  NE = { 31, "Nebraska", 65, -6 }, NJ = { 34, "New Jersey", 21, -5 }, NM = { 35, "New Mexico", 86, -7 },
  NV = { 32, "Nevada", 85, -8 }, NY = { 36, "New York", 22, -5 }, OH = { 39, "Ohio", 44, -5 },
  OR = { 41, "Oregon", 92, -8 }, PA = { 42, "Pennsylvania", 23, -5 }, TN = { 47, "Tennessee", 54, -6 },
  TX = { 48, "Texas", 74, -6 }, UT = { 49, "Utah", 87, -7 }, VA = { 51, "Virginia", 38, -5 },
  WA = { 53, "Washington", 93, -8 },
}

-- Flights by month, how late they are, and how many are cancelled.
data.months = {
  { 0.94, 1.00, 1.6 }, { 0.88, 1.05, 2.0 }, { 1.02, 1.00, 1.1 }, { 0.99, 0.95, 0.7 }, { 1.02, 1.00, 0.6 },
  { 1.03, 1.30, 0.8 }, { 1.07, 1.35, 0.8 }, { 1.06, 1.20, 0.9 }, { 0.97, 0.75, 0.9 }, { 1.02, 0.75, 0.5 },
  { 0.98, 0.75, 0.5 }, { 1.00, 1.15, 1.1 },
}

-- Flights by day of the week from Monday, and how late they are.
data.weekdays = {
  { 1.04, 1.05 }, { 1.00, 0.90 }, { 1.01, 0.92 }, { 1.05, 1.08 }, { 1.05, 1.12 }, { 0.84, 0.90 }, { 1.00, 1.00 },
}

-- Flights by scheduled hour of departure, from 0.
data.hours = { 2, 1, 0, 0, 0, 25, 68, 66, 66, 60, 62, 60, 60, 58, 56, 60, 58, 64, 60, 54, 42, 28, 18, 6 }

-- The columns of the published files, in their order. s: SMALLINT, i: INTEGER, d: DATE, a number: VARCHAR of this
-- length. The second name is that of older files.
data.columns = {}
local COLUMNS = [[
Year s, Quarter s, Month s, DayofMonth s, DayOfWeek s, FlightDate d, Reporting_Airline=UniqueCarrier 7,
DOT_ID_Reporting_Airline=AirlineID i, IATA_CODE_Reporting_Airline=Carrier 2, Tail_Number=TailNum 10,
Flight_Number_Reporting_Airline=FlightNum s, OriginAirportID i, OriginAirportSeqID i, OriginCityMarketID i, Origin 3,
OriginCityName 60, OriginState 2, OriginStateFips s, OriginStateName 40, OriginWac s, DestAirportID i,
DestAirportSeqID i, DestCityMarketID i, Dest 3, DestCityName 60, DestState 2, DestStateFips s, DestStateName 40,
DestWac s, CRSDepTime s, DepTime s, DepDelay s, DepDelayMinutes s, DepDel15 s, DepartureDelayGroups s, DepTimeBlk 9,
TaxiOut s, WheelsOff s, WheelsOn s, TaxiIn s, CRSArrTime s, ArrTime s, ArrDelay s, ArrDelayMinutes s, ArrDel15 s,
ArrivalDelayGroups s, ArrTimeBlk 9, Cancelled s, CancellationCode 1, Diverted s, CRSElapsedTime s, ActualElapsedTime s,
AirTime s, Flights s, Distance s, DistanceGroup s, CarrierDelay s, WeatherDelay s, NASDelay s, SecurityDelay s,
LateAircraftDelay s, FirstDepTime s, TotalAddGTime s, LongestAddGTime s, DivAirportLandings s, DivReachedDest s,
DivActualElapsedTime s, DivArrDelay s, DivDistance s,
Div1Airport 3, Div1AirportID i, Div1AirportSeqID i, Div1WheelsOn s, Div1TotalGTime s, Div1LongestGTime s,
Div1WheelsOff s, Div1TailNum 10,
Div2Airport 3, Div2AirportID i, Div2AirportSeqID i, Div2WheelsOn s, Div2TotalGTime s, Div2LongestGTime s,
Div2WheelsOff s, Div2TailNum 10,
Div3Airport 3, Div3AirportID i, Div3AirportSeqID i, Div3WheelsOn s, Div3TotalGTime s, Div3LongestGTime s,
Div3WheelsOff s, Div3TailNum 10,
Div4Airport 3, Div4AirportID i, Div4AirportSeqID i, Div4WheelsOn s, Div4TotalGTime s, Div4LongestGTime s,
Div4WheelsOff s, Div4TailNum 10,
Div5Airport 3, Div5AirportID i, Div5AirportSeqID i, Div5WheelsOn s, Div5TotalGTime s, Div5LongestGTime s,
Div5WheelsOff s, Div5TailNum 10]]

local TYPES = { s = "SMALLINT", i = "INTEGER", d = "DATE" }
for name, kind in COLUMNS:gmatch("([%w_=]+) (%w+)") do
  local own, older = name:match("^([%w_]+)=?([%w_]*)$")
  data.columns[#data.columns + 1] = {
    name = own, older = older ~= "" and older or own, type = TYPES[kind] or "VARCHAR(" .. kind .. ")",
    is_number = kind == "s" or kind == "i",
  }
end

return data
