--- The 22 questions of the tpch_like workload, with their parameters.
--
--
-- The questions and the rules for their parameters are those of the TPC-H specification; the statements are our own,
-- written so that every database understands them, except for ClickHouse: tpch_like_clickhouse has its statements. Days
-- are calculated here, not by the database, and averages are floating-point numbers, so that results can be compared.

local common = assay.share("olap_common")
local words = assay.share("tpch_like_words")
local clickhouse = assay.share("tpch_like_clickhouse")

-- The parameters for which the specification states results, at its own scale 1.
local STANDARD = {
  days1 = 90, size2 = 15, metal2 = "BRASS", region2 = "EUROPE", segment3 = "BUILDING", day3 = 15, month4 = { 1993, 7 },
  region5 = "ASIA", year5 = 1994, year6 = 1994, percent6 = 6, quantity6 = 24, nation7 = "FRANCE", other7 = "GERMANY",
  nation8 = "BRAZIL", region8 = "AMERICA", type8 = "ECONOMY ANODIZED STEEL", color9 = "green", month10 = { 1993, 10 },
  nation11 = "GERMANY", mode12 = "MAIL", other12 = "SHIP", year12 = 1994, before13 = "special", after13 = "requests",
  month14 = { 1995, 9 }, month15 = { 1996, 1 }, brand16 = 45, type16 = "MEDIUM POLISHED",
  sizes16 = { 49, 14, 23, 45, 19, 3, 36, 9 }, brand17 = 23, container17 = "MED BOX", quantity18 = 300,
  quantities19 = { 1, 10, 20 }, brands19 = { 12, 23, 34 }, color20 = "forest", year20 = 1994, nation20 = "CANADA",
  nation21 = "SAUDI ARABIA", codes22 = { 13, 31, 23, 29, 30, 18, 17 },
}

local uniform = sysbench.rand.uniform

local function any(list) return list[uniform(1, #list)] end

--- So many different numbers.
local function several(count, low, high)
  local list, known = {}, {}
  while #list < count do
    local number = uniform(low, high)
    if not known[number] then
      known[number] = true
      list[#list + 1] = number
    end
  end
  return list
end

--- A month from the first of `year` on, less than so many later.
local function any_month(year, first, count)
  local later = first - 1 + uniform(0, count - 1)
  return { year + math.floor(later / 12), later % 12 + 1 }
end

local function any_brand() return uniform(1, 5) * 10 + uniform(1, 5) end

--- Parameters drawn by the rules.
local function drawn(number)
  assay.seed("tpch_like parameters", number)
  local nations, modes = several(2, 1, 25), several(2, 1, #words.modes)
  local nation = any(words.nations)
  local types = words.types
  return {
    days1 = uniform(60, 120), size2 = uniform(1, 50), metal2 = any(types[3]), region2 = any(words.regions),
    segment3 = any(words.segments), day3 = uniform(1, 31), month4 = any_month(1993, 1, 58), region5 = any(words.regions),
    year5 = uniform(1993, 1997), year6 = uniform(1993, 1997), percent6 = uniform(2, 9), quantity6 = uniform(24, 25),
    nation7 = words.nations[nations[1]][1], other7 = words.nations[nations[2]][1], nation8 = nation[1],
    region8 = words.regions[nation[2]], type8 = ("%s %s %s"):format(any(types[1]), any(types[2]), any(types[3])),
    color9 = any(words.colors), month10 = any_month(1993, 2, 24), nation11 = any(words.nations)[1],
    mode12 = words.modes[modes[1]], other12 = words.modes[modes[2]], year12 = uniform(1993, 1997),
    before13 = any(words.before), after13 = any(words.after), month14 = any_month(1993, 1, 60),
    month15 = any_month(1993, 1, 58), brand16 = any_brand(), type16 = any(types[1]) .. " " .. any(types[2]),
    sizes16 = several(8, 1, 50), brand17 = any_brand(),
    container17 = any(words.containers[1]) .. " " .. any(words.containers[2]), quantity18 = uniform(312, 315),
    quantities19 = { uniform(1, 10), uniform(10, 20), uniform(20, 30) },
    brands19 = { any_brand(), any_brand(), any_brand() }, color20 = any(words.colors), year20 = uniform(1993, 1997),
    nation20 = any(words.nations)[1], nation21 = any(words.nations)[1], codes22 = several(7, 10, 34),
  }
end

--- The list for a scale and a kind of database. `parameters`: 0 for the standard ones, else they are drawn.
return function(scale, parameters, product)
  local p = parameters == 0 and STANDARD or drawn(parameters)
  local function year(column)
    return product == "sqlite" and ("CAST(strftime('%%Y', %s) AS INTEGER)"):format(column) or ("EXTRACT(YEAR FROM %s)"):format(column)
  end
  local function months(month, count) return common.month_text(month[1], month[2]), common.month_text(month[1], month[2], count) end
  local function brand(number) return "Brand#" .. number end
  local list = {}
  local function add(question, text, ...)
    list[#list + 1] = { name = "Q" .. #list + 1, question = question, text = text:format(...) }
  end
  add("What was delivered, billed and returned up to a day?", [[
SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS quantity, SUM(l_extendedprice) AS price,
  SUM(l_extendedprice * (1 - l_discount)) AS discounted, SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charged,
  AVG(1e0 * l_quantity) AS mean_quantity, AVG(1e0 * l_extendedprice) AS mean_price, AVG(1e0 * l_discount) AS mean_discount,
  COUNT(*) AS positions
FROM lineitem WHERE l_shipdate <= '%s'
GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus]],
    common.date_text(common.day_number(1998, 12, 1) - p.days1))
  add("Which supplier of a region has the lowest price of each part of a kind?", [[
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM part JOIN partsupp ON ps_partkey = p_partkey JOIN supplier ON s_suppkey = ps_suppkey
  JOIN nation ON n_nationkey = s_nationkey JOIN region ON r_regionkey = n_regionkey
WHERE p_size = %d AND p_type LIKE '%%%s' AND r_name = '%s' AND ps_supplycost = (
  SELECT MIN(cheap.ps_supplycost) FROM partsupp AS cheap JOIN supplier AS seller ON seller.s_suppkey = cheap.ps_suppkey
    JOIN nation AS home ON home.n_nationkey = seller.s_nationkey JOIN region AS part_of ON part_of.r_regionkey = home.n_regionkey
  WHERE cheap.ps_partkey = p_partkey AND part_of.r_name = '%s')
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100]], p.size2, p.metal2, p.region2, p.region2)
  local day3 = ("1995-03-%02d"):format(p.day3)
  add("Which open orders of a segment are worth the most?", [[
SELECT o_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey
WHERE c_mktsegment = '%s' AND o_orderdate < '%s' AND l_shipdate > '%s'
GROUP BY o_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, o_orderkey LIMIT 10]],
    p.segment3, day3, day3)
  local from, to = months(p.month4, 3)
  add("How many orders of a quarter arrived late, by priority?", [[
SELECT o_orderpriority, COUNT(*) AS orders FROM orders
WHERE o_orderdate >= '%s' AND o_orderdate < '%s'
  AND EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority ORDER BY o_orderpriority]], from, to)
  add("What do suppliers sell within their own nation, by nation of a region?", [[
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM region JOIN nation ON n_regionkey = r_regionkey JOIN customer ON c_nationkey = n_nationkey
  JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey
  JOIN supplier ON s_suppkey = l_suppkey AND s_nationkey = n_nationkey
WHERE r_name = '%s' AND o_orderdate >= '%d-01-01' AND o_orderdate < '%d-01-01'
GROUP BY n_name ORDER BY revenue DESC]], p.region5, p.year5, p.year5 + 1)
  add("How much more would be earned without small discounts?", [[
SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem
WHERE l_shipdate >= '%d-01-01' AND l_shipdate < '%d-01-01' AND l_discount BETWEEN %.2f AND %.2f AND l_quantity < %d]],
    p.year6, p.year6 + 1, (p.percent6 - 1) / 100, (p.percent6 + 1) / 100, p.quantity6)
  add("What is shipped between two nations, by year?", [[
SELECT seller, buyer, ship_year, SUM(volume) AS revenue FROM (
  SELECT home.n_name AS seller, abroad.n_name AS buyer, %s AS ship_year, l_extendedprice * (1 - l_discount) AS volume
  FROM supplier JOIN lineitem ON l_suppkey = s_suppkey JOIN orders ON o_orderkey = l_orderkey
    JOIN customer ON c_custkey = o_custkey JOIN nation AS home ON home.n_nationkey = s_nationkey
    JOIN nation AS abroad ON abroad.n_nationkey = c_nationkey
  WHERE (home.n_name = '%s' AND abroad.n_name = '%s' OR home.n_name = '%s' AND abroad.n_name = '%s')
    AND l_shipdate BETWEEN '1995-01-01' AND '1996-12-31') AS shipped
GROUP BY seller, buyer, ship_year ORDER BY seller, buyer, ship_year]],
    year("l_shipdate"), p.nation7, p.other7, p.other7, p.nation7)
  add("Which share of a market does a nation have, by year?", [[
SELECT order_year, 1e0 * SUM(CASE WHEN nation_name = '%s' THEN volume ELSE 0 END) / SUM(volume) AS share FROM (
  SELECT %s AS order_year, l_extendedprice * (1 - l_discount) AS volume, home.n_name AS nation_name
  FROM part JOIN lineitem ON l_partkey = p_partkey JOIN supplier ON s_suppkey = l_suppkey
    JOIN orders ON o_orderkey = l_orderkey JOIN customer ON c_custkey = o_custkey
    JOIN nation AS market ON market.n_nationkey = c_nationkey JOIN region ON r_regionkey = market.n_regionkey
    JOIN nation AS home ON home.n_nationkey = s_nationkey
  WHERE r_name = '%s' AND o_orderdate BETWEEN '1995-01-01' AND '1996-12-31' AND p_type = '%s') AS sold
GROUP BY order_year ORDER BY order_year]], p.nation8, year("o_orderdate"), p.region8, p.type8)
  add("What is earned with parts of a color, by nation and year?", [[
SELECT nation_name, order_year, SUM(amount) AS profit FROM (
  SELECT n_name AS nation_name, %s AS order_year,
    l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
  FROM part JOIN lineitem ON l_partkey = p_partkey JOIN supplier ON s_suppkey = l_suppkey
    JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey JOIN orders ON o_orderkey = l_orderkey
    JOIN nation ON n_nationkey = s_nationkey
  WHERE p_name LIKE '%%%s%%') AS earned
GROUP BY nation_name, order_year ORDER BY nation_name, order_year DESC]], year("o_orderdate"), p.color9)
  from, to = months(p.month10, 3)
  add("Which customers sent back the most in a quarter?", [[
SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address, c_phone,
  c_comment
FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey
  JOIN nation ON n_nationkey = c_nationkey
WHERE o_orderdate >= '%s' AND o_orderdate < '%s' AND l_returnflag = 'R'
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
ORDER BY revenue DESC, c_custkey LIMIT 20]], from, to)
  add("Which parts make up most of a nation's stock?", [[
SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS stock
FROM partsupp JOIN supplier ON s_suppkey = ps_suppkey JOIN nation ON n_nationkey = s_nationkey
WHERE n_name = '%s' GROUP BY ps_partkey
HAVING SUM(ps_supplycost * ps_availqty) > (
  SELECT SUM(ps_supplycost * ps_availqty) * %.10f
  FROM partsupp JOIN supplier ON s_suppkey = ps_suppkey JOIN nation ON n_nationkey = s_nationkey WHERE n_name = '%s')
ORDER BY stock DESC, ps_partkey]], p.nation11, 0.0001 / scale, p.nation11)
  add("Do cheap ways of shipping delay urgent orders?", [[
SELECT l_shipmode, SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS urgent,
  SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 0 ELSE 1 END) AS others
FROM orders JOIN lineitem ON l_orderkey = o_orderkey
WHERE l_shipmode IN ('%s', '%s') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
  AND l_receiptdate >= '%d-01-01' AND l_receiptdate < '%d-01-01'
GROUP BY l_shipmode ORDER BY l_shipmode]], p.mode12, p.other12, p.year12, p.year12 + 1)
  add("How many customers have how many orders?", [[
SELECT orders, COUNT(*) AS customers FROM (
  SELECT c_custkey, COUNT(o_orderkey) AS orders
  FROM customer LEFT JOIN orders ON o_custkey = c_custkey AND o_comment NOT LIKE '%%%s%%%s%%'
  GROUP BY c_custkey) AS counted
GROUP BY orders ORDER BY customers DESC, orders DESC]], p.before13, p.after13)
  from, to = months(p.month14, 1)
  add("Which percentage of a month's revenue comes from promotions?", [[
SELECT 1e2 * SUM(CASE WHEN p_type LIKE 'PROMO%%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
  / SUM(l_extendedprice * (1 - l_discount)) AS percent
FROM lineitem JOIN part ON p_partkey = l_partkey WHERE l_shipdate >= '%s' AND l_shipdate < '%s']], from, to)
  from, to = months(p.month15, 3)
  add("Which supplier earned the most in a quarter?", [[
WITH earned AS (
  SELECT l_suppkey AS supplier_no, SUM(l_extendedprice * (1 - l_discount)) AS total FROM lineitem
  WHERE l_shipdate >= '%s' AND l_shipdate < '%s' GROUP BY l_suppkey)
SELECT s_suppkey, s_name, s_address, s_phone, total FROM supplier JOIN earned ON supplier_no = s_suppkey
WHERE total = (SELECT MAX(total) FROM earned) ORDER BY s_suppkey]], from, to)
  add("How many suppliers have parts of some sizes, without complaints?", [[
SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS suppliers
FROM partsupp JOIN part ON p_partkey = ps_partkey
WHERE p_brand <> '%s' AND p_type NOT LIKE '%s%%' AND p_size IN (%s)
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%%Customer%%Complaints%%')
GROUP BY p_brand, p_type, p_size ORDER BY suppliers DESC, p_brand, p_type, p_size]],
    brand(p.brand16), p.type16, table.concat(p.sizes16, ", "))
  add("What would be lost without small orders of a part?", [[
SELECT SUM(l_extendedprice) / 7e0 AS yearly FROM lineitem JOIN part ON p_partkey = l_partkey
WHERE p_brand = '%s' AND p_container = '%s'
  AND l_quantity < (SELECT 0.2 * AVG(same.l_quantity) FROM lineitem AS same WHERE same.l_partkey = p_partkey)]],
    brand(p.brand17), p.container17)
  add("Who placed the largest orders?", [[
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) AS quantity
FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey
WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > %d)
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100]], p.quantity18)
  local alternatives = {}
  local containers = { "'SM CASE', 'SM BOX', 'SM PACK', 'SM PKG'", "'MED BAG', 'MED BOX', 'MED PKG', 'MED PACK'", "'LG CASE', 'LG BOX', 'LG PACK', 'LG PKG'" }
  for i, size in ipairs { 5, 10, 15 } do
    local quantity = p.quantities19[i]
    alternatives[i] = ("p_brand = '%s' AND p_container IN (%s) AND l_quantity BETWEEN %d AND %d AND p_size BETWEEN 1 AND %d"):format(
      brand(p.brands19[i]), containers[i], quantity, quantity + 10, size)
  end
  alternatives = table.concat(alternatives, "\n    OR ")
  add("What is earned with three kinds of parts that are handed over in person?", [[
SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem JOIN part ON p_partkey = l_partkey
WHERE l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON'
  AND (%s)]], alternatives)
  add("Which suppliers of a nation have too many parts of a color?", [[
SELECT s_name, s_address FROM supplier JOIN nation ON n_nationkey = s_nationkey
WHERE n_name = '%s' AND s_suppkey IN (
  SELECT ps_suppkey FROM partsupp WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '%s%%')
    AND ps_availqty > (SELECT 0.5 * SUM(l_quantity) FROM lineitem WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
      AND l_shipdate >= '%d-01-01' AND l_shipdate < '%d-01-01'))
ORDER BY s_name]], p.nation20, p.color20, p.year20, p.year20 + 1)
  add("Which suppliers of a nation alone kept orders waiting?", [[
SELECT s_name, COUNT(*) AS waits
FROM supplier JOIN lineitem AS late ON late.l_suppkey = s_suppkey JOIN orders ON o_orderkey = late.l_orderkey
  JOIN nation ON n_nationkey = s_nationkey
WHERE o_orderstatus = 'F' AND late.l_receiptdate > late.l_commitdate AND n_name = '%s'
  AND EXISTS (SELECT 1 FROM lineitem AS other WHERE other.l_orderkey = late.l_orderkey AND other.l_suppkey <> late.l_suppkey)
  AND NOT EXISTS (SELECT 1 FROM lineitem AS also WHERE also.l_orderkey = late.l_orderkey
    AND also.l_suppkey <> late.l_suppkey AND also.l_receiptdate > also.l_commitdate)
GROUP BY s_name ORDER BY waits DESC, s_name LIMIT 100]], p.nation21)
  local codes = "'" .. table.concat(p.codes22, "', '") .. "'"
  add("Which customers of some countries have money, and have not ordered?", [[
SELECT code, COUNT(*) AS customers, SUM(c_acctbal) AS money FROM (
  SELECT SUBSTR(c_phone, 1, 2) AS code, c_acctbal, c_custkey FROM customer
  WHERE SUBSTR(c_phone, 1, 2) IN (%s) AND c_acctbal > (
    SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0 AND SUBSTR(c_phone, 1, 2) IN (%s))) AS rich
WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = rich.c_custkey)
GROUP BY code ORDER BY code]], codes, codes)
  if product == "clickhouse" then
    for _, query in ipairs(list) do query.text = clickhouse.text(query.name, p, scale, alternatives) end
  end
  return list
end
