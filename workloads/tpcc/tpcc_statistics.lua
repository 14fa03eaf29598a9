--- Tests of random values: whether each value occurs as often as it should, and whether values depend on others.
--
-- A sample is a list of observations. Its columns are numbers from 0 to k − 1, or −1 where an observation has none, and
-- several columns may show the same variable in different ways: fifths of its range, its last digit. What is expected
-- of a column is declared; everything else follows:
--
-- * margins: each value as often as its probability says, and not much more evenly than chance;
-- * pairs: any two columns of different variables are independent of each other;
-- * sequences: a column is independent of its previous value with the same key, such as the session or the customer;
-- * repetitions: as many equal values as chance makes.
--
-- Each test has a probability with which values as specified would look at least as odd. Its bound holds for single
-- cells of a table (binomial tail, Feller 1968, vol. 1, VI.3, times the cells); for whole tables Pearson's statistic is
-- compared with the gamma distribution of the same mean and variance: of a multinomial distribution for margins
-- (Haldane 1937), of all tables with these margins for pairs (Dawson 1954). A caller that makes n tests and wants one
-- false alarm in a thousand rejects below 0.001 / n.

local statistics = {}

local floor, abs, log, exp, sqrt, min, max = math.floor, math.abs, math.log, math.exp, math.sqrt, math.min, math.max
local format = string.format

-- Distributions ------------------------------------------------------------------------------------------------------

--- ln Γ(x), 0 < x, by Stirling's series.
local function log_gamma(x)
  local shift = 0
  while x < 10 do shift, x = shift + log(x), x + 1 end
  local y = 1 / (x * x)
  return (x - 0.5) * log(x) - x + 0.91893853320467274 + (1 / 12 - y * (1 / 360 - y / 1260)) / x - shift
end

local function log_factorial(n) return log_gamma(n + 1) end

--- An upper bound for the probability of a number at least as far from the expected one, to either side, as `k` of `n`
--- when each is counted with probability `p`.
function statistics.improbability(k, n, p)
  if k > n or n == 0 then return n == 0 and 1 or 0 end
  if k < n * p then k, p = n - k, 1 - p end
  if k <= n * p + 1 then return 1 end
  local log_of_k = log_factorial(n) - log_factorial(k) - log_factorial(n - k) + k * log(p) + (n - k) * log(1 - p)
  return min(1, 2 * exp(log_of_k) * (k + 1) * (1 - p) / (k + 1 - (n + 1) * p))
end

local improbability = statistics.improbability

--- The lower and the upper part of the chi-square distribution with `df` degrees of freedom at `x`. The incomplete
--- gamma function by its series or its continued fraction (Abramowitz & Stegun 1964, 6.5.29 and 6.5.31).
function statistics.chi_square(x, df)
  local a, z = df / 2, x / 2
  if z <= 0 then return 0, 1 end
  local front = exp(a * log(z) - z - log_gamma(a))
  if z < a + 1 then
    local term, sum, n = 1 / a, 1 / a, a
    repeat
      n = n + 1
      term = term * z / n
      sum = sum + term
    until term < sum * 1e-14
    local lower = min(1, sum * front)
    return lower, 1 - lower
  end
  local b = z + 1 - a
  local c, d = 1e300, 1 / b
  local h = d
  for i = 1, 10000 do
    local an = -i * (i - a)
    b = b + 2
    d = an * d + b
    if abs(d) < 1e-300 then d = 1e-300 end
    c = b + an / c
    if abs(c) < 1e-300 then c = 1e-300 end
    d = 1 / d
    local step = d * c
    h = h * step
    if abs(step - 1) < 1e-14 then break end
  end
  local upper = min(1, front * h)
  return 1 - upper, upper
end

-- The upper part of the gamma distribution with this mean and variance.
local function above(x, mean, variance)
  local _, upper = statistics.chi_square(2 * x * mean / variance, 2 * mean * mean / variance)
  return upper
end

local function below(x, mean, variance)
  return (statistics.chi_square(2 * x * mean / variance, 2 * mean * mean / variance))
end

-- Fewer expected observations per cell are joined with those of the next cell.
local EXPECTED_MIN = 4

-- A cell that is this near to what is expected need not be computed.
local function is_usual(found, expected) return abs(found - expected) < 3.5 * sqrt(expected) + 3 end

--- Whether `counts` (from 0 to k − 1) have the probabilities `p` (likewise). `is_sequence`: not drawn independently,
--- such as the cards of a deck. Returns the improbability, and the cell that is farthest off.
function statistics.fit(counts, p, k, is_sequence)
  local n, worst, worst_p, cells = 0, 0, 1, 0
  for i = 0, k - 1 do n = n + counts[i] end
  if n == 0 then return 1, 0, 0 end
  local square, inverse, parts, found, expected, even = 0, 0, 0, 0, 0, 0
  local last_o, last_e
  for i = 0, k - 1 do
    local e = n * p[i]
    if p[i] > 0 then cells = cells + 1 end
    if p[i] <= 0 then
      if counts[i] > 0 then return 0, i, n end
    elseif not is_usual(counts[i], e) then
      local odd = improbability(counts[i], n, p[i])
      if odd < worst_p then worst, worst_p = i, odd end
    end
    found, expected = found + counts[i], expected + e
    if expected >= EXPECTED_MIN then
      if last_e then square, inverse, even = square + (last_o - last_e) ^ 2 / last_e, inverse + n / last_e, even + 0.25 / last_e end
      last_o, last_e, parts, found, expected = found, expected, parts + 1, 0, 0
    end
  end
  if not last_e then return min(1, worst_p * max(cells, 1)), worst, n end
  last_o, last_e = last_o + found, last_e + expected
  square, inverse, even = square + (last_o - last_e) ^ 2 / last_e, inverse + n / last_e, even + 0.25 / last_e
  local improbable = min(1, worst_p * cells)
  if parts > 1 then
    local mean = parts - 1
    local variance = 2 * mean + (inverse - parts * parts - 2 * parts + 2) / n
    improbable = min(improbable, above(square, mean, variance))
    -- More even than chance: cards of a deck instead of dice. Numbers are whole, so that a little is added.
    if parts >= 6 and not is_sequence and n >= 10 * parts then improbable = min(improbable, below(square + even, mean, variance)) end
    if worst_p == 1 then
      local farthest = -1
      for i = 0, k - 1 do
        local e = n * p[i]
        local off = e > 0 and (counts[i] - e) ^ 2 / e or 0
        if off > farthest then farthest, worst = off, i end
      end
    end
  end
  return min(1, 3 * improbable), worst, n
end

-- Joins neighbors until each has at least this sum. Returns the number of the group of each, and how many there are.
local function groups_of(sums, k, least)
  local of, number, sum, last = {}, 0, 0, -1
  for i = 0, k - 1 do
    of[i], sum = number, sum + sums[i]
    if sum >= least then number, sum, last = number + 1, 0, number end
  end
  for i = 0, k - 1 do
    if of[i] > last then of[i] = max(last, 0) end
  end
  return of, max(last + 1, 1)
end

--- Whether rows and columns of a table (`cells[r * columns + c]`) are independent. Returns the improbability, the cell
--- that is farthest off, the number of observations, and what was expected in that cell.
function statistics.independence(cells, rows, columns)
  local n, of_row, of_column = 0, {}, {}
  for c = 0, columns - 1 do of_column[c] = 0 end
  for r = 0, rows - 1 do
    local sum = 0
    for c = 0, columns - 1 do
      local number = cells[r * columns + c]
      sum, of_column[c] = sum + number, of_column[c] + number
    end
    of_row[r], n = sum, n + sum
  end
  if n < 20 then return 1, 0, n, 0 end
  local used_rows, used_columns, least_row, least_column = 0, 0, n, n
  for r = 0, rows - 1 do
    if of_row[r] > 0 then used_rows, least_row = used_rows + 1, min(least_row, of_row[r]) end
  end
  for c = 0, columns - 1 do
    if of_column[c] > 0 then used_columns, least_column = used_columns + 1, min(least_column, of_column[c]) end
  end
  if used_rows < 2 or used_columns < 2 then return 1, 0, n, 0 end
  local worst, worst_p, worst_e = 0, 1, 0
  local farthest, far = -1, 0
  for r = 0, rows - 1 do
    for c = 0, columns - 1 do
      local e, o = of_row[r] * of_column[c] / n, cells[r * columns + c]
      if e > 0 then
        local off = (o - e) ^ 2 / e
        if off > farthest then farthest, far = off, r * columns + c end
        if not is_usual(o, e) then
          -- Of the observations of the smaller side, which are fewer and tell more.
          local whole, share = of_row[r], of_column[c] / n
          if of_column[c] < whole then whole, share = of_column[c], of_row[r] / n end
          local odd = improbability(o, whole, share)
          if odd < worst_p then worst, worst_p, worst_e = r * columns + c, odd, e end
        end
      end
    end
  end
  local improbable = min(1, worst_p * used_rows * used_columns)
  -- Pearson's statistic, with neighbors joined where they are rare: first on the side with the rarest.
  local row_of, row_number, column_of, column_number
  local function rarest(sums, k, of, number)
    local joined, least = {}, n
    for g = 0, number - 1 do joined[g] = 0 end
    for i = 0, k - 1 do joined[of[i]] = joined[of[i]] + sums[i] end
    for g = 0, number - 1 do least = min(least, joined[g]) end
    return joined, least
  end
  local row_sums, column_sums, least
  if least_row <= least_column then
    row_of, row_number = groups_of(of_row, rows, 2 * EXPECTED_MIN)
    row_sums, least = rarest(of_row, rows, row_of, row_number)
    column_of, column_number = groups_of(of_column, columns, EXPECTED_MIN * n / max(least, 1))
    column_sums = rarest(of_column, columns, column_of, column_number)
  else
    column_of, column_number = groups_of(of_column, columns, 2 * EXPECTED_MIN)
    column_sums, least = rarest(of_column, columns, column_of, column_number)
    row_of, row_number = groups_of(of_row, rows, EXPECTED_MIN * n / max(least, 1))
    row_sums = rarest(of_row, rows, row_of, row_number)
  end
  if row_number > 1 and column_number > 1 then
    local joined = {}
    for i = 0, row_number * column_number - 1 do joined[i] = 0 end
    for r = 0, rows - 1 do
      for c = 0, columns - 1 do
        local i = row_of[r] * column_number + column_of[c]
        joined[i] = joined[i] + cells[r * columns + c]
      end
    end
    local square, inverse_rows, inverse_columns = 0, 0, 0
    for r = 0, row_number - 1 do inverse_rows = inverse_rows + n / row_sums[r] end
    for c = 0, column_number - 1 do inverse_columns = inverse_columns + n / column_sums[c] end
    for r = 0, row_number - 1 do
      for c = 0, column_number - 1 do
        local e = row_sums[r] * column_sums[c] / n
        square = square + (joined[r * column_number + c] - e) ^ 2 / e
      end
    end
    local mean = n / (n - 1) * (row_number - 1) * (column_number - 1)
    local v1, v2 = (row_number - 1) * (n - row_number) / (n - 1), (column_number - 1) * (n - column_number) / (n - 1)
    local w1, w2 = (inverse_rows - row_number * row_number) / (n - 2), (inverse_columns - column_number * column_number) / (n - 2)
    local variance = 2 * n / (n - 3) * (v1 - w1) * (v2 - w2) + n * n / (n - 1) * w1 * w2
    if variance > 0 then improbable = min(improbable, above(square, mean, variance)) end
  end
  -- The same value on both sides more or less often: few observations show it.
  if rows == columns then
    local same, likely, at = 0, 0, 0
    for i = 0, rows - 1 do
      local number = cells[i * columns + i]
      same, likely = same + number, likely + of_row[i] / n * of_column[i] / n
      if number > cells[at * columns + at] then at = i end
    end
    local odd = is_usual(same, n * likely) and 1 or improbability(same, n, likely)
    if odd < improbable then
      improbable = odd
      if worst_p == 1 then far = at * columns + at end
    end
  end
  if worst_p == 1 then worst, worst_e = far, of_row[floor(far / columns)] * of_column[far % columns] / n end
  return min(1, 3 * improbable), worst, n, worst_e
end

--- −2 ln of probabilities of several independent tests adds up to a chi-square of twice as many degrees of freedom
--- (Fisher 1932). `sum`: of −ln.
function statistics.combined(sum, tests)
  local _, upper = statistics.chi_square(2 * sum, 2 * tests)
  return upper
end

-- Samples ------------------------------------------------------------------------------------------------------------

local Sample = {}
Sample.__index = Sample

--- A sample of `n` observations. `what`: what one of them is, such as "payment".
function statistics.sample(what, n)
  return setmetatable({ what = what, n = n, columns = {}, keys = {}, repeated = {}, apart = {} }, Sample)
end

--- Declares a column. `of`: the variable, as people call it; `how`: what the column shows of it, or ""; `values[1 …
--- n]`: from 0 to k − 1, or −1; `p[0 … k − 1]`: their probabilities, nil if they are not known. `options`: `label`, a
--- function that names a value; `alone`: no pairs and no sequences; `given`: not drawn, but what draws may depend on:
--- it has no sequences, and no pairs with others that are given; `is_sequence`: see `fit`.
function Sample:column(of, how, k, values, p, options)
  options = options or {}
  -- Values outside are the business of others, who say which they are; here they would be counted nowhere.
  local inside, outside = {}, 0
  for i = 1, self.n do
    local value = values[i]
    if value and value >= 0 and value < k and value % 1 == 0 then
      inside[i] = value
    else
      inside[i] = -1
      if value ~= -1 then outside = outside + 1 end
    end
  end
  self.columns[#self.columns + 1] = {
    of = of, how = how, k = k, values = inside, outside = outside, p = p, label = options.label, alone = options.alone,
    given = options.given, is_sequence = options.is_sequence,
  }
end

--- Columns of the first variable may depend on those of the second.
function Sample:depends(a, b)
  self.apart[a .. "\0" .. b], self.apart[b .. "\0" .. a] = true, true
end

--- Declares a key: a column must not depend on its own previous value with the same key. `values[1 … n]`: anything, nil
--- for none. `crossed`: nor on any other column's previous one. `but`: variables that are part of the key: name → true.
function Sample:key(name, values, crossed, but)
  self.keys[#self.keys + 1] = { name = name, values = values, crossed = crossed, but = but or {} }
end

--- Declares raw values of which two are the same with probability `alike`: `values[1 … n]`, false or nil for none.
function Sample:repeats(of, values, alike) self.repeated[#self.repeated + 1] = { of = of, values = values, alike = alike } end

--- Declares that `found` of so many pairs of values were the same, each with probability `alike`.
function Sample:alike(of, found, pairs, alike) self.repeated[#self.repeated + 1] = { of = of, found = found, pairs = pairs, alike = alike } end

local function named(column, value)
  if column.label then return column.label(value) end
  return tostring(value)
end

local function title(column) return column.how == "" and column.of or column.of .. " (" .. column.how .. ")" end

local function counted(values, n, k)
  local counts = {}
  for i = 0, k - 1 do counts[i] = 0 end
  for i = 1, n do
    local value = values[i]
    if value >= 0 then counts[value] = counts[value] + 1 end
  end
  return counts
end

local function crossed(a, b, n, k_a, k_b)
  local cells = {}
  for i = 0, k_a * k_b - 1 do cells[i] = 0 end
  for i = 1, n do
    local x, y = a[i], b[i]
    if x >= 0 and y >= 0 then
      local at = x * k_b + y
      cells[at] = cells[at] + 1
    end
  end
  return cells
end

-- `a` of the previous observation, `b` of this one.
local function followed(a, b, previous, n, k_a, k_b)
  local cells = {}
  for i = 0, k_a * k_b - 1 do cells[i] = 0 end
  for i = 1, n do
    local before = previous[i]
    if before > 0 then
      local x, y = a[before], b[i]
      if x >= 0 and y >= 0 then
        local at = x * k_b + y
        cells[at] = cells[at] + 1
      end
    end
  end
  return cells
end

-- For each observation the previous one with the same key, or 0.
local function previous_of(values, n)
  local last, previous = {}, {}
  for i = 1, n do
    local key = values[i]
    previous[i] = 0
    if key ~= nil then
      previous[i] = last[key] or 0
      last[key] = i
    end
  end
  return previous
end

-- How many pairs of values are the same, and how many pairs there are.
local function equal_pairs(values, n)
  local times, found, whole = {}, 0, 0
  for i = 1, n do
    local value = values[i]
    if value then
      local before = times[value] or 0
      found, whole, times[value] = found + before, whole + 1, before + 1
    end
  end
  return found, whole * (whole - 1) / 2
end

--- Makes all tests. Returns a list of { name, improbability, what was found as a sentence }, and how many tests there
--- were. Only those with an improbability below `least` are in the list. `pause` is called between the tests.
function Sample:tests(least, pause)
  local list, number, n = {}, 0, self.n
  local function add(name, improbable, sentence)
    number = number + 1
    if number % 8 == 0 then pause() end
    if improbable < least then list[#list + 1] = { name = self.what .. ": " .. name, p = improbable, text = self.what .. ": " .. sentence() } end
  end
  local columns = self.columns
  for _, column in ipairs(columns) do
    if column.outside > 0 and self.is_strict then
      add(title(column) .. " outside", 0, function() return format("%s: %d values outside of the range", title(column), column.outside) end)
    end
    if column.p then
      local counts = counted(column.values, n, column.k)
      local odd, worst, whole = statistics.fit(counts, column.p, column.k, column.is_sequence)
      add(title(column), odd, function()
        return format("%s: %s in %d of %d, expected %.1f", title(column), named(column, worst), counts[worst], whole, whole * column.p[worst])
      end)
    end
  end
  for i, a in ipairs(columns) do
    for j = i + 1, #columns do
      local b = columns[j]
      if a.of ~= b.of and not a.alone and not b.alone and not (a.given and b.given) and not self.apart[a.of .. "\0" .. b.of] then
        local cells = crossed(a.values, b.values, n, a.k, b.k)
        local odd, worst, whole, expected = statistics.independence(cells, a.k, b.k)
        add(title(a) .. ", " .. title(b), odd, function()
          return format("%s depends on %s: %s with %s in %d of %d, expected %.1f", title(a), title(b), named(a, floor(worst / b.k)),
            named(b, worst % b.k), cells[worst], whole, expected)
        end)
      end
    end
  end
  for _, key in ipairs(self.keys) do
    local previous = previous_of(key.values, n)
    for i, a in ipairs(columns) do
      for j = key.crossed and 1 or i, key.crossed and #columns or i do
        local b = columns[j]
        local is_drawn = not a.alone and not b.alone and not a.given and not b.given
        if is_drawn and (i == j or a.of ~= b.of) and not key.but[a.of] and not key.but[b.of] then
          local cells = followed(a.values, b.values, previous, n, a.k, b.k)
          local odd, worst, whole, expected = statistics.independence(cells, a.k, b.k)
          add(title(b) .. " after " .. title(a) .. " of " .. key.name, odd, function()
            return format("%s depends on the previous %s of %s: %s after %s in %d of %d, expected %.1f", title(b), title(a), key.name,
              named(b, worst % b.k), named(a, floor(worst / b.k)), cells[worst], whole, expected)
          end)
        end
      end
    end
  end
  for _, one in ipairs(self.repeated) do
    local found, pairs = one.found, one.pairs
    if not pairs then found, pairs = equal_pairs(one.values, n) end
    if pairs > 0 then
      add("repeated " .. one.of, statistics.improbability(found, pairs, one.alike), function()
        return format("%s: the same in %d of %d pairs, expected %.1f", one.of, found, pairs, pairs * one.alike)
      end)
    end
  end
  return list, number
end

-- Columns ------------------------------------------------------------------------------------------------------------

--- A list with one value for each of `n`, that a function makes of the number.
function statistics.mapped(n, of)
  local values = {}
  for i = 1, n do values[i] = of(i) end
  return values
end

--- Probabilities of whole numbers from `low` to `high`, each equally likely, in `k` classes of `class(value)`.
function statistics.even(low, high, k, class)
  local p, share = {}, 1 / (high - low + 1)
  for i = 0, k - 1 do p[i] = 0 end
  for value = low, high do
    local i = class(value)
    p[i] = p[i] + share
  end
  return p
end

--- `k` equal probabilities.
function statistics.equal(k)
  local p = {}
  for i = 0, k - 1 do p[i] = 1 / k end
  return p
end

--- How many of `size` are chosen when `of` of `n` are: 0, 1 … k − 2, and more.
function statistics.hypergeometric(n, of, size, k)
  local function choose(a, b) return log_factorial(a) - log_factorial(b) - log_factorial(a - b) end
  local p, rest = {}, 1
  for i = 0, k - 2 do
    p[i] = i <= of and i <= size and size - i <= n - of and exp(choose(of, i) + choose(n - of, size - i) - choose(n, size)) or 0
    rest = rest - p[i]
  end
  p[k - 1] = max(rest, 0)
  return p
end

--- How many of `n` are counted when each is with probability p: 0, 1 … k − 2, and more.
function statistics.binomial(n, p, k)
  local of, rest = {}, 1
  for i = 0, k - 2 do
    of[i] = i <= n and exp(log_factorial(n) - log_factorial(i) - log_factorial(n - i) + i * log(p) + (n - i) * log(1 - p)) or 0
    rest = rest - of[i]
  end
  of[k - 1] = max(rest, 0)
  return of
end

--- Columns of a value of NURand: from `low` on, `weights[0 … range − 1]` of `all` for the value less `low` and the
--- constant, `range` values. `values`: nil for none; `constant(i)`: of observation i.
function Sample:skewed(what, n, values, low, weights, all, constant, constants)
  local range = #weights + 1
  -- Classes of values that are about as likely, from the most likely on.
  local mass, levels, class_of, favored = {}, {}, {}, {}
  for r = 0, range - 1 do
    local weight = weights[r]
    if not mass[weight] then levels[#levels + 1] = weight end
    mass[weight] = (mass[weight] or 0) + weight
  end
  table.sort(levels, function(a, b) return a > b end)
  local sum, classes = 0, min(8, #levels)
  for c = 0, classes - 1 do favored[c] = 0 end
  for _, weight in ipairs(levels) do
    local c = min(classes - 1, floor(sum / all * classes + 1e-9))
    class_of[weight], favored[c], sum = c, favored[c] + mass[weight] / all, sum + mass[weight]
  end
  local function residue(i) return (values[i] - low - constant(i)) % range end
  local function value_of(of) return statistics.mapped(n, function(i) return values[i] and of(i) or -1 end) end
  self:column(what, "from often to seldom drawn", classes, value_of(function(i) return class_of[weights[residue(i)]] end), favored)
  -- The probability of the value itself depends on the constant: known if there is only one.
  local tenths, digits, bits = {}, {}, {}
  for c = 0, 9 do tenths[c], digits[c] = 0, 0 end
  for c = 0, 7 do bits[c] = 0 end
  for r = 0, range - 1 do
    local x, p = (r + (constants or 0)) % range, weights[r] / all
    local tenth, digit = floor(x * 10 / range), (x + low) % 10
    tenths[tenth], digits[digit], bits[r % 8] = tenths[tenth] + p, digits[digit] + p, bits[r % 8] + p
  end
  self:column(what, "in tenths", 10, value_of(function(i) return floor((values[i] - low) * 10 / range) end), constants and tenths)
  self:column(what, "last digit", 10, value_of(function(i) return values[i] % 10 end), constants and digits)
  if range <= 3000 then
    local each = {}
    for r = 0, range - 1 do each[r] = weights[r] / all end
    self:column(what, "each value", range, value_of(residue), each, { alone = true, label = function(r) return format("%d from the constant", r) end })
  end
  self:column(what, "lowest bits", 8, value_of(function(i) return residue(i) % 8 end), bits)
end

--- Declares how often something occurs in blocks of so many consecutive observations with the same key: as often as
--- dice say, not more evenly. `values[1 … n]`: 0 or 1, or −1.
function Sample:blocks(of, size, values, keys, p, k)
  self:counted_blocks(of, size, values, keys, k, statistics.binomial(size, p, k), { alone = true })
end

--- The same, where `p` has the probabilities of 0, 1 … k − 2, and more.
function Sample:counted_blocks(of, size, values, keys, k, p, options)
  local seen, hits, numbers, blocks = {}, {}, {}, 0
  for i = 1, self.n do
    local key, value = keys[i], values[i]
    if value >= 0 and key ~= nil then
      local count = (seen[key] or 0) + 1
      seen[key], hits[key] = count, (hits[key] or 0) + value
      if count == size then
        blocks = blocks + 1
        numbers[blocks] = min(hits[key], k - 1)
        seen[key], hits[key] = 0, 0
      end
    end
  end
  for i = blocks + 1, self.n do numbers[i] = -1 end
  self:column(of, format("in each %d", size), k, numbers, p, options)
end

return statistics
