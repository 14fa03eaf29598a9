--- YCSB's generators of numbers. With the same random numbers they return what YCSB's Java returns.
--
-- YCSB's scrambled zipfian is not a Zipf distribution over the records: it draws from 10,000,000,001 items with
-- θ = 0.99, hashes the item and takes the hash modulo the number of records. The most popular record gets about 4 % of
-- the requests, however many records there are. `exact_zipfian` is one over the records themselves, with any θ.

local ffi = require("ffi")
local uniform_real = sysbench.rand.uniform_double
local floor, log = math.floor, math.log

local M = {}

M.THETA = 0.99

local OFFSET, PRIME = 0xCBF29CE484222325ULL, 1099511628211ULL
local TWO_32 = 4294967296

--- Absolute value of the 64-bit FNV hash of a number of at least 0, low octet first, as an int64_t.
function M.hash(number)
  local value, hash = ffi.cast("uint64_t", number), OFFSET
  for _ = 1, 8 do
    hash = bit.bxor(hash, bit.band(value, 0xffULL)) * PRIME
    value = bit.rshift(value, 8)
  end
  hash = ffi.cast("int64_t", hash)
  if hash < 0 then hash = -hash end
  return hash
end

--- A whole number from low to high, each as often as the others.
function M.uniform(low, high)
  local number = low + floor(uniform_real() * (high - low + 1))
  return number > high and high or number
end

--- The sum of 1 / i^θ for i from `from` + 1 to `to`.
local function zeta(from, to, theta)
  local sum = 0
  for i = from + 1, to do sum = sum + 1 / i ^ theta end
  return sum
end

--- Whole numbers from 0 on, the smaller the more popular. `sum`: zeta(0, items, theta) if it is known.
function M.zipfian(items, theta, sum)
  local first_two = zeta(0, 2, theta)
  local alpha, half = 1 / (1 - theta), 1 + 0.5 ^ theta
  local eta
  local function resize(to)
    if sum == nil then
      sum = zeta(0, to, theta)
    elseif to > items then
      sum = sum + zeta(items, to, theta)
    elseif to < items then
      sum = zeta(0, to, theta)
    end
    items = to
    eta = (1 - (2 / items) ^ (1 - theta)) / (1 - first_two / sum)
  end
  resize(items)
  --- `of`: the number of items, if it has changed.
  return function(of)
    if of and of ~= items then resize(of) end
    local u = uniform_real()
    local uz = u * sum
    if uz < 1 then return 0 end
    if uz < half then return 1 end
    return floor(items * (eta * u - eta + 1) ^ alpha)
  end
end

local SCRAMBLED_ITEMS, SCRAMBLED_SUM = 10000000001, 26.46902820178302

--- Whole numbers from low to high: popular ones lie anywhere.
function M.scrambled_zipfian(low, high)
  local draw = M.zipfian(SCRAMBLED_ITEMS, M.THETA, SCRAMBLED_SUM)
  local items = ffi.cast("int64_t", high - low + 1)
  return function() return low + tonumber(M.hash(draw()) % items) end
end

--- Whole numbers from low to high by a Zipf distribution, which hashing spreads over them without any collision:
--- each rank has a record of its own.
function M.exact_zipfian(low, high, theta)
  local items = high - low + 1
  local draw = M.zipfian(items, theta)
  -- A step that has no divisor in common with the number of records visits all of them.
  local step = floor(items * 0.6180339887) + 1
  local function divisor(a, b) return b == 0 and a or divisor(b, a % b) end
  while divisor(step, items) ~= 1 do step = step + 1 end
  local step64, items64 = ffi.cast("uint64_t", step), ffi.cast("uint64_t", items)
  return function()
    local rank = draw()
    if rank >= items then rank = items - 1 end
    return low + tonumber(ffi.cast("uint64_t", rank) * step64 % items64)
  end
end

--- A share `of_requests` goes to the first `of_records` of the numbers from low to high.
function M.hotspot(low, high, of_records, of_requests)
  local hot = floor((high - low + 1) * of_records)
  return function()
    if uniform_real() < of_requests and hot > 0 then return M.uniform(low, low + hot - 1) end
    return M.uniform(low + hot, high)
  end
end

--- How far behind the newest record: `percent` of the requests go to the newest `records`.
function M.exponential(percent, records)
  local gamma = -log(1 - percent / 100) / records
  return function()
    local u = uniform_real()
    return u > 0 and floor(-log(u) / gamma) or TWO_32
  end
end

return M
