--- Evaluates expressions of pgbench scripts, and converts their values for SQL.
--
--
-- A value is a 64-bit integer (a number if that is exact, else an int64_t), a double (a table), a boolean, NULL, or the
-- text of a variable that was given or came from the database: its meaning is determined when an expression uses it.
-- Runs once per Lua state; the variables of a session are its own.
local ffi = require("ffi")
local front = pgbench_front -- nil where `assay run` runs a script
local floor, fmod, huge = math.floor, math.fmod, math.huge
local format = string.format
local band, bor, bxor, bnot, lshift, arshift = bit.band, bit.bor, bit.bxor, bit.bnot, bit.lshift, bit.arshift
local int64, uint64 = ffi.typeof("int64_t"), ffi.typeof("uint64_t")
local uniform_double, uniform_uint64 = sysbench.rand.uniform_double, sysbench.rand.uniform_uint64

local R = {}
local NULL = {}
local Double = {}
local EXACT = 2 ^ 53
local LEAST = int64(-0x7fffffffffffffffLL - 1)
R.NULL, R.LEAST = NULL, LEAST
R.stored = {} -- values of an expression that is being evaluated: nothing yields meanwhile
R.unpack = unpack

-- Errors -------------------------------------------------------------------------------------------------------------

local Failure = { __tostring = function(self) return self.text end }

--- Ends the transaction with an error of the script. `while_at`: pgbench's description of what it was doing; `command`:
--- the command's name if it is not that of the line.
local function fail(text, while_at, command)
  if front then
    while_at = while_at or "evaluation of meta-command failed"
    error(setmetatable({ pgbench = text, while_at = while_at, command = command, text = text }, Failure), 0)
  end
  if text == "" then text = while_at end
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then error(text, 0) end
    if info.what ~= "C" and not info.source:find("pgbench_", 1, true) and info.source:sub(1, 7) ~= "=assay/" then
      error(info.short_src .. ":" .. info.currentline .. ": " .. text, 0)
    end
    level = level + 1
  end
end
R.fail = fail

-- Values -------------------------------------------------------------------------------------------------------------

local function double_of(number) return setmetatable({ number }, Double) end
R.double_of = double_of

local function is_double(value) return type(value) == "table" and value ~= NULL end

--- An integer as a number if that is exact.
local function small(integer)
  local number = tonumber(integer)
  if number < EXACT and number > -EXACT then return number end
  return integer
end

R.small = small

local function text_of_double(number)
  if number ~= number then return "NaN" end
  if number == huge then return "Infinity" end
  if number == -huge then return "-Infinity" end
  return format("%.15g", number)
end

local function digits(integer)
  if type(integer) == "number" then return format("%.0f", integer + 0) end -- and not -0
  return (tostring(integer):gsub("U?LL$", ""))
end

local function text_of(value)
  local kind = type(value)
  if kind == "number" or kind == "cdata" then return digits(value) end
  if kind == "string" then return value end
  if kind == "boolean" then return value and "true" or "false" end
  if value == NULL then return "NULL" end
  return text_of_double(value[1])
end
R.text_of = text_of

local WORDS = { null = NULL, ["true"] = true, yes = true, on = true, ["false"] = false, no = false, off = false }

--- The meaning of a variable's text.
local function meaning(name, text)
  local lower = text:lower()
  if lower == "" and front then fail("") end
  if lower ~= "" then
    if lower == "on" or lower == "off" or lower == "null" then return WORDS[lower] end
    if lower == "of" then return false end
    for word, value in next, WORDS do
      if word ~= "null" and word ~= "on" and word ~= "off" and word:sub(1, #lower) == lower then return value end
    end
  end
  local sign, whole = text:match("^%s*([+-]?)(%d+)$")
  if whole then
    if #whole <= 15 then return tonumber(sign .. whole) end
    local value = uint64(0)
    local limit = sign == "-" and 0x8000000000000000ULL or 0x7fffffffffffffffULL
    local fits = #whole <= 19
    if fits then
      for digit in whole:gmatch("%d") do value = value * 10 + (digit:byte() - 48) end
      fits = value <= limit
    end
    if fits then
      local integer = ffi.cast(int64, value)
      return small(sign == "-" and -integer or integer)
    end
    fail(('value "%s" is out of range for type bigint'):format(text))
  end
  local number = not text:find("%s$") and tonumber(text)
  local is_finite = number and number - number == 0
  if is_finite or (number and lower:find("^%s*[+-]?[in]")) then return double_of(number) end
  fail(('malformed variable "%s" value: "%s"'):format(name, text))
end

--- The value of a variable, for an expression. A text that is a number in canonical form is kept as one.
function R.value(v, name)
  local value = v[name]
  if type(value) == "string" then
    local meant = meaning(name, value)
    if type(meant) == "number" and digits(meant) == value then v[name] = meant end
    return meant
  end
  if value == nil then fail(('undefined variable "%s"'):format(name)) end
  return value
end

-- As a text in SQL. Undefined variables are left unchanged.
function R.text(v, name)
  local value = v[name]
  if type(value) == "number" then return format("%.0f", value + 0) end
  if value == nil then return ":" .. name end
  return text_of(value)
end

--- As a parameter. To pgbench, an undefined variable is NULL.
function R.parameter(v, name)
  local value = v[name]
  local kind = type(value)
  if kind == "number" or kind == "string" then return value end
  if kind == "nil" then
    if front then return nil end
    fail(('undefined variable "%s"'):format(name))
  end
  if value == NULL then return nil end
  return text_of(value)
end

-- Coercions ----------------------------------------------------------------------------------------------------------

local function rounded(number) -- to even
  local down = floor(number)
  local rest = number - down
  if rest > 0.5 or (rest == 0.5 and down % 2 == 1) then return down + 1 end
  return down
end

local function integer_of(value)
  local kind = type(value)
  if kind == "number" or kind == "cdata" then return value end
  if kind == "boolean" then fail("cannot coerce boolean to int") end
  if value == NULL then fail("cannot coerce null to int") end
  local whole = rounded(value[1])
  if not (whole >= -2 ^ 63 and whole < 2 ^ 63) then fail(("double to int overflow for %f"):format(value[1])) end
  return small(ffi.cast(int64, whole))
end

local function number_of(value)
  local kind = type(value)
  if kind == "number" then return value end
  if kind == "cdata" then return tonumber(value) end
  if kind == "boolean" then fail("cannot coerce boolean to double") end
  if value == NULL then fail("cannot coerce null to double") end
  return value[1]
end

local function boolean_of(value)
  if type(value) == "boolean" then return value end
  local kind = is_double(value) and "double" or value == NULL and "null" or "int"
  fail("cannot coerce " .. kind .. " to boolean")
end

--- Whether a condition holds.
function R.holds(value)
  if type(value) == "boolean" then return value end
  if value == NULL then return false end
  if is_double(value) then return value[1] ~= 0 end
  return value ~= 0
end

local function is_null(value) return value == NULL end
R.is_null = is_null

-- Operators ----------------------------------------------------------------------------------------------------------

function R.add(a, b)
  if type(a) == "number" and type(b) == "number" then
    local sum = a + b
    if sum < EXACT and sum > -EXACT then return sum end
  end
  if a == NULL or b == NULL then return NULL end
  if is_double(a) or is_double(b) then return double_of(number_of(a) + number_of(b)) end
  local x, y = int64(integer_of(a)), int64(integer_of(b))
  local sum = x + y
  if band(bxor(x, sum), bxor(y, sum)) < 0 then fail("bigint add out of range") end
  return small(sum)
end

function R.subtract(a, b)
  if type(a) == "number" and type(b) == "number" then
    local difference = a - b
    if difference < EXACT and difference > -EXACT then return difference end
  end
  if a == NULL or b == NULL then return NULL end
  if is_double(a) or is_double(b) then return double_of(number_of(a) - number_of(b)) end
  local x, y = int64(integer_of(a)), int64(integer_of(b))
  local difference = x - y
  if band(bxor(x, y), bxor(x, difference)) < 0 then fail("bigint sub out of range") end
  return small(difference)
end

function R.multiply(a, b)
  if type(a) == "number" and type(b) == "number" then
    local product = a * b
    if product < EXACT and product > -EXACT then return product end
  end
  if a == NULL or b == NULL then return NULL end
  if is_double(a) or is_double(b) then return double_of(number_of(a) * number_of(b)) end
  local x, y = int64(integer_of(a)), int64(integer_of(b))
  local product = x * y
  if x ~= 0 and ((x == -1 and y == LEAST) or (y == -1 and x == LEAST) or product / x ~= y) then
    fail("bigint mul out of range")
  end
  return small(product)
end

function R.divide(a, b)
  if a == NULL or b == NULL then return NULL end
  if is_double(a) or is_double(b) then return double_of(number_of(a) / number_of(b)) end
  local x, y = integer_of(a), integer_of(b)
  if y == 0 then fail("division by zero") end
  if type(x) == "number" and type(y) == "number" then
    local quotient = x / y
    return (quotient < 0 and math.ceil(quotient) or floor(quotient)) + 0
  end
  x, y = int64(x), int64(y)
  if y == -1 then
    if x == LEAST then fail("bigint div out of range") end
    return small(-x)
  end
  return small(x / y)
end

function R.remainder(a, b)
  if a == NULL or b == NULL then return NULL end
  local x, y = integer_of(a), integer_of(b)
  if y == 0 then fail("division by zero") end
  if type(x) == "number" and type(y) == "number" then return fmod(x, y) + 0 end
  if y == -1 then return 0 end
  return small(int64(x) % int64(y))
end

local function of_bits(operate)
  return function(a, b)
    if a == NULL or b == NULL then return NULL end
    return small(operate(int64(integer_of(a)), int64(integer_of(b))))
  end
end

R.bit_and, R.bit_or, R.bit_xor = of_bits(band), of_bits(bor), of_bits(bxor)
R.shift_left = of_bits(function(a, b) return lshift(a, tonumber(band(b, 63))) end)
R.shift_right = of_bits(function(a, b) return arshift(a, tonumber(band(b, 63))) end)

function R.bit_not(a)
  if a == NULL then return NULL end
  return small(bnot(int64(integer_of(a))))
end

--- Both as numbers that Lua compares, or NULL.
local function comparison(compare)
  return function(a, b)
    if type(a) == "number" and type(b) == "number" then return compare(a, b) end
    if a == NULL or b == NULL then return NULL end
    if is_double(a) or is_double(b) then return compare(number_of(a), number_of(b)) end
    return compare(int64(integer_of(a)), int64(integer_of(b)))
  end
end

R.less = comparison(function(a, b) return a < b end)
R.more = comparison(function(a, b) return a > b end)
R.at_most = comparison(function(a, b) return a <= b end)
R.at_least = comparison(function(a, b) return a >= b end)
R.equal = comparison(function(a, b) return a == b end)
R.unequal = comparison(function(a, b) return a ~= b end)

--- An operand of AND and OR: a boolean or NULL.
function R.truth(a)
  return a == NULL and NULL or boolean_of(a)
end

function R.is_true(a) return a == true end
function R.is_false(a) return a == false end

function R.negate(a)
  if a == NULL then return NULL end
  return not boolean_of(a)
end

-- Functions ----------------------------------------------------------------------------------------------------------

function R.too_many_arguments() fail("too many function arguments, maximum is 16") end

local function any_null(...)
  for i = 1, select("#", ...) do
    if select(i, ...) == NULL then return true end
  end
  return false
end

local function of_number(compute)
  return function(a)
    if a == NULL then return NULL end
    return double_of(compute(number_of(a)))
  end
end

R.exp, R.ln, R.sqrt = of_number(math.exp), of_number(math.log), of_number(math.sqrt)
R.double = of_number(function(a) return a end)
function R.pi() return double_of(math.pi) end

function R.int(a)
  if a == NULL then return NULL end
  return integer_of(a)
end

function R.abs(a)
  if a == NULL then return NULL end
  if is_double(a) then return double_of(math.abs(a[1])) end
  local x = integer_of(a)
  if type(x) == "number" then return math.abs(x) end
  return small(x < 0 and -x or x)
end

function R.power(a, b)
  if a == NULL or b == NULL then return NULL end
  return double_of(number_of(a) ^ number_of(b))
end

local function extreme(better)
  return function(...)
    if any_null(...) then return NULL end
    local has_double = false
    for i = 1, select("#", ...) do has_double = has_double or is_double((select(i, ...))) end
    local best
    for i = 1, select("#", ...) do
      local value = select(i, ...)
      if has_double then value = number_of(value) else value = int64(integer_of(value)) end
      if best == nil or better(value, best) then best = value end
    end
    return has_double and double_of(best) or small(best)
  end
end

R.greatest = extreme(function(a, b) return a > b end)
R.least = extreme(function(a, b) return a < b end)

--- `self`: the client, which knows its script and command.
function R.debug(a, self)
  local kind = is_double(a) and "double" or type(a) == "boolean" and "boolean" or a == NULL and "null" or "int"
  if front then
    local shown = a == NULL and kind or kind .. " " .. text_of(a)
    front.print(("debug(script=%d,command=%d): %s\n"):format(self.script - 1, self.at + 1, shown))
  end
  return a
end

-- Random numbers: those of the session.

--- A whole number from `low` to `high`, uniform.
local function uniform(low, high)
  if type(low) == "number" and type(high) == "number" then
    local count = high - low + 1
    if count < 2 ^ 50 then return low + floor(uniform_double() * count) end
  end
  local span = ffi.cast(uint64, int64(high) - int64(low)) + 1
  local drawn = uniform_uint64()
  if span ~= 0 then
    -- The rest at the top would favor the low ones.
    local rest = (0xffffffffffffffffULL % span + 1) % span
    while drawn > 0xffffffffffffffffULL - rest do drawn = uniform_uint64() end
    drawn = drawn % span
  end
  return small(int64(low) + ffi.cast(int64, drawn))
end

local function range(low, high)
  low, high = integer_of(low), integer_of(high)
  if high < low then fail("empty range given to random") end
  if int64(high) - int64(low) < 0 or int64(high) - int64(low) == 0x7fffffffffffffffLL then fail("random range is too large") end
  return low, high
end

function R.random(low, high)
  if type(low) == "number" and type(high) == "number" and low <= high then
    local count = high - low + 1
    if count < 2 ^ 50 then return low + floor(uniform_double() * count) end
  end
  if low == NULL or high == NULL then return NULL end
  return uniform(range(low, high))
end

--- `low` plus this share, 0 <= share < 1, of the range.
local function at_share(low, high, share)
  local count = tonumber(high) - tonumber(low) + 1
  return small(int64(low) + ffi.cast(int64, floor(count * share)))
end

--- Exponential, cut off at the range's end: P(X > x) falls by e^-parameter over the range.
function R.random_exponential(low, high, parameter)
  if any_null(low, high, parameter) then return NULL end
  low, high = range(low, high)
  local p = number_of(parameter)
  if not (p > 0) then fail(("exponential parameter must be greater than zero (not %f)"):format(p)) end
  local cut = math.exp(-p)
  local u = 1 - uniform_double()
  return at_share(low, high, math.min(-math.log(cut + (1 - cut) * u) / p, 1 - 2 ^ -53))
end

--- Normal around the middle, cut off `parameter` standard deviations from it. Box & Muller 1958.
function R.random_gaussian(low, high, parameter)
  if any_null(low, high, parameter) then return NULL end
  low, high = range(low, high)
  local p = number_of(parameter)
  if p < 2 then fail(("gaussian parameter must be at least %f (not %f)"):format(2, p)) end
  local deviation
  repeat
    local radius, angle = 1 - uniform_double(), uniform_double()
    deviation = math.sqrt(-2 * math.log(radius)) * math.sin(2 * math.pi * angle)
  until deviation >= -p and deviation < p
  return at_share(low, high, (deviation + p) / (p * 2))
end

--- Zipf by rejection. Devroye 1986, Non-Uniform Random Variate Generation, p. 550.
function R.random_zipfian(low, high, parameter)
  if any_null(low, high, parameter) then return NULL end
  low, high = range(low, high)
  local s = number_of(parameter)
  if s < 1.001 or s > 1000 then
    fail(("zipfian parameter must be in range [%.3f, %.0f] (not %f)"):format(1.001, 1000, s))
  end
  local count = tonumber(high) - tonumber(low) + 1
  local b = 2 ^ (s - 1)
  while true do
    local u, w = 1 - uniform_double(), uniform_double()
    local x = floor(u ^ (-1 / (s - 1)))
    local t = (1 + 1 / x) ^ (s - 1)
    if x <= count and w * x * (t - 1) / (b - 1) <= t / b then return small(int64(low) + ffi.cast(int64, x - 1)) end
  end
end

-- Hashes: FNV-1a (draft-eastlake-fnv) and MurmurHash2 64A (Appleby, public domain), of the eight bytes of an integer.

function R.hash_fnv1a(value, seed)
  if value == NULL or seed == NULL then return NULL end
  local bits = ffi.cast(uint64, int64(integer_of(value)))
  local hash = bxor(0xcbf29ce484222325ULL, ffi.cast(uint64, int64(integer_of(seed))))
  for _ = 1, 8 do
    hash = bxor(hash, band(bits, 0xffULL)) * 0x100000001b3ULL
    bits = bit.rshift(bits, 8)
  end
  return small(ffi.cast(int64, hash))
end

function R.hash_murmur2(value, seed)
  if value == NULL or seed == NULL then return NULL end
  local m = 0xc6a4a7935bd1e995ULL
  local hash = bxor(ffi.cast(uint64, int64(integer_of(seed))), 8 * m)
  local k = ffi.cast(uint64, int64(integer_of(value))) * m
  k = bxor(k, bit.rshift(k, 47)) * m
  hash = bxor(hash, k) * m
  hash = bxor(hash, bit.rshift(hash, 47)) * m
  hash = bxor(hash, bit.rshift(hash, 47))
  return small(ffi.cast(int64, hash))
end

--- The word with its bits spread (SplitMix64).
local function mixed(word)
  word = bxor(word, bit.rshift(word, 30)) * 0xbf58476d1ce4e5b9ULL
  word = bxor(word, bit.rshift(word, 27)) * 0x94d049bb133111ebULL
  return bxor(word, bit.rshift(word, 31))
end

--- A permutation of 0 … size − 1 chosen by the seed: a Feistel network over the smallest even number of bits that holds
--- them, walked until it is back in range.
function R.permute(value, size, seed)
  if any_null(value, size, seed) then return NULL end
  local n = int64(integer_of(size))
  if n <= 0 then fail("permute size parameter must be greater than zero") end
  local key = ffi.cast(uint64, int64(integer_of(seed)))
  local x = int64(integer_of(value)) % n
  if x < 0 then x = x + n end
  local word, count = ffi.cast(uint64, x), ffi.cast(uint64, n)
  local half = 1
  while half < 32 and lshift(1ULL, 2 * half) < count do half = half + 1 end
  local mask = lshift(1ULL, half) - 1
  repeat
    local left, right = bit.rshift(word, half), band(word, mask)
    for round = 1, 6 do
      left, right = right, bxor(left, band(mixed(right + key + round * 0x9e3779b97f4a7c15ULL), mask))
    end
    word = bor(lshift(left, half), right)
  until word < count
  return small(ffi.cast(int64, word))
end

-- Commands -----------------------------------------------------------------------------------------------------------

--- Runs the `count` commands of a script from number `at` on. `step`, if any, is called before each.
function R.run(commands, count, at, self, v, c, S, step)
  while at < count do
    local number = at < 0 and -at or at
    if step then step(self, number) else self.at = number end
    at = commands[at](self, v, c, S) or at + 1
  end
end

local function is_name(text) return text:find("^[%a_\128-\255][%w_\128-\255]*$") end

--- Sets a variable. `command`: its name, `set` if it is missing.
function R.set(v, name, value, command)
  if not is_name(name) then
    fail(('%s: invalid variable name: "%s"'):format(command or "set", name),
      (command and "execution" or "assignment") .. " of meta-command failed")
  end
  v[name] = value
end

--- A statement that is executed for the first time: it is prepared. The session's are in `S`.
function R.statement(c, S, number, text, kinds)
  local statement = c:prepare(text, kinds)
  S[number] = statement
  return statement
end

--- Waits.
function R.sleep(v, amount, seconds)
  local variable = amount:match("^:(.*)$")
  if variable then
    amount = v[variable]
    if amount == nil then
      fail(('sleep: undefined variable "%s"'):format(variable), "execution of meta-command failed")
    end
    amount = text_of(amount)
  end
  local number = tonumber(amount:match("^%s*[+-]?%d+")) or 0
  if number > 0 then assay.sleep(number * seconds) end
end

--- The words of a shell command with its variables replaced; a double colon stands for one.
function R.shell_words(v, words)
  local parts = {}
  for i, word in ipairs(words) do
    local name = word:match("^:([^:].*)$")
    if name then
      if v[name] == nil then fail(('%s: undefined variable "%s"'):format(words[1], word), "execution of meta-command failed") end
      parts[i] = text_of(v[name])
    else
      parts[i] = word:find("^::") and word:sub(2) or word
    end
  end
  return table.concat(parts, " ")
end

--- Runs a shell command. It blocks the worker until it is done, and the worker's other sessions.
function R.shell(v, words, variable)
  local failed = "execution of meta-command failed"
  local line = R.shell_words(v, words)
  if not variable then
    if os.execute(line) ~= 0 then fail(words[1] .. ": could not launch shell command", failed) end
    return
  end
  local pipe = io.popen(line)
  local answer = pipe and pipe:read("*a") or ""
  if pipe then pipe:close() end
  if answer == "" then fail(words[1] .. ": could not read result of shell command", failed) end
  local number = answer:match("^%s*([+-]?%d+)%s*$")
  if not number then fail(('%s: shell command must return an integer (not "%s")'):format(words[1], answer), failed) end
  R.set(v, variable, meaning(variable, number), "setshell")
end

--- Makes variables of a result's last row. `result`: of one statement or several; `only`: it must be one row, of the
--- last.
function R.keep(v, c, result, prefix, only)
  local query = 0
  local function refuse(text, first)
    text = ("query %d: %s"):format(query, text)
    if front then error(setmetatable({ pgbench_rows = text, first = first, text = text }, Failure), 0) end
    fail(first or text)
  end
  while true do
    local rows = result ~= nil and result.nrows or 0
    local next_result = result ~= nil and c:more_results() and c:next_result() or nil
    if next_result == nil and only and rows ~= 1 then refuse("expected one row, got " .. rows) end
    if rows > 0 and (not only or next_result == nil) then
      local row
      local names = {}
      if result.nfields > 0 then
        for _ = 1, rows do row = result:fetch_row() end
        names = result:names()
      end
      if #names == 0 and result.nfields > 0 then
        fail("\\gset and \\aset need the names of columns, which the driver does not tell")
      end
      for column, name in ipairs(names) do
        local value = row[column]
        name = prefix .. name
        if not is_name(name) then
          refuse("error storing into variable " .. name,
            ('%s: invalid variable name: "%s"'):format(only and "gset" or "aset", name))
        end
        -- pgbench keeps NULL as an empty text.
        if value == nil then v[name] = front and "" or NULL else v[name] = value end
      end
    end
    if next_result == nil then return end
    result, query = next_result, query + 1
  end
end

--- The command with which an attempt of a transaction begins: a retry draws the same random numbers, and finds the same
--- values where that is to be seen (`carries`).
function R.attempt(self, v, attempt, carries)
  local from = self.from
  self.from = 0
  if attempt > 0 then
    assay.plain.again_random()
    if carries then
      for name in next, v do v[name] = self.kept[name] end
      for name, value in next, self.kept do v[name] = value end
    end
  elseif from > 0 then
    assay.plain.keep_random_before()
  else
    assay.plain.keep_random()
    if carries then
      self.kept = {}
      for name, value in next, v do self.kept[name] = value end
    end
  end
  return from
end

-- A script without Lua: a form of `assay.run_plain`. `self.from` is the command at which the script goes on.
local Plain = {}
Plain.__index = Plain

--- The plain form of a script with this text and these variables; nil if it has none. `self`, `v`: of the session.
function R.plain(text, names, self, v, connection, statements)
  local program = assay.plain.program(text)
  if not program then return nil end
  return setmetatable(
    { program = program, names = names, self = self, v = v, connection = connection, statements = statements }, Plain)
end

function Plain:values()
  local values, v = {}, self.v
  for i, name in ipairs(self.names) do
    local value = v[name]
    if type(value) == "string" and value:find("^-?%d+$") then value = R.value(v, name) end
    if type(v[name]) ~= "number" then return nil end
    values[i] = value
  end
  return values
end

function Plain:restore(at)
  for i, name in ipairs(self.names) do self.v[name] = small(assay.plain.value(i)) end
  self.self.from = at
end

--- The variables that every session has.
function R.variables(tid, given)
  local v = { client_id = tid, scale = 1, random_seed = 0, default_seed = 0 }
  for name, value in next, given do v[name] = value end
  return v
end

return R
