--- The 22 questions of tpch_like, and its check, in the SQL of ClickHouse.
--
--
-- Older versions join two tables per SELECT, and have neither EXISTS nor subqueries that refer to the outer query.
-- Tables are joined one by one, the smaller one on the right, because it is kept in memory; a condition on other
-- rows becomes IN. Columns are never NULL: a sum of no rows would be 0, and is NULL here, as elsewhere. Decimals are
-- neither compared with floating-point numbers nor multiplied by them.

local common = assay.share("olap_common")

local VOLUME = "l_extendedprice * (1 - l_discount)"
local NATION_OF_SUPPLIER = "(SELECT n_nationkey FROM nation WHERE n_name = '$nation')"

--- What an aggregate is without rows.
local function or_null(aggregate) return "if(COUNT(*) = 0, NULL, " .. aggregate .. ")" end

local TEXTS = {}

TEXTS.Q1 = [[
SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS quantity, SUM(l_extendedprice) AS price,
  SUM($volume) AS discounted, SUM($volume * (1 + l_tax)) AS charged, AVG(toFloat64(l_quantity)) AS mean_quantity,
  AVG(toFloat64(l_extendedprice)) AS mean_price, AVG(toFloat64(l_discount)) AS mean_discount, COUNT(*) AS positions
FROM lineitem WHERE l_shipdate <= '$day1'
GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus]]

TEXTS.Q2 = [[
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment FROM (
  SELECT ps_partkey AS p_partkey, ps_suppkey AS s_suppkey, p_mfgr FROM partsupp INNER JOIN (
    SELECT p_partkey AS ps_partkey, p_mfgr FROM part WHERE p_size = $size2 AND p_type LIKE '%$metal2') USING (ps_partkey)
  WHERE (ps_partkey, ps_supplycost) IN (
    SELECT ps_partkey, MIN(ps_supplycost) FROM partsupp
    WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_size = $size2 AND p_type LIKE '%$metal2')
      AND ps_suppkey IN (SELECT s_suppkey FROM supplier WHERE s_nationkey IN (
        SELECT n_nationkey FROM nation WHERE n_regionkey IN (SELECT r_regionkey FROM region WHERE r_name = '$region2')))
    GROUP BY ps_partkey)
) INNER JOIN (
  SELECT s_suppkey, s_acctbal, s_name, s_address, s_phone, s_comment, n_name FROM supplier INNER JOIN (
    SELECT n_nationkey AS s_nationkey, n_name FROM nation
    WHERE n_regionkey IN (SELECT r_regionkey FROM region WHERE r_name = '$region2')) USING (s_nationkey)
) USING (s_suppkey)
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100]]

TEXTS.Q3 = [[
SELECT o_orderkey, SUM($volume) AS revenue, o_orderdate, o_shippriority FROM (
  SELECT l_orderkey AS o_orderkey, l_extendedprice, l_discount FROM lineitem WHERE l_shipdate > '$day3'
) INNER JOIN (
  SELECT o_orderkey, o_orderdate, o_shippriority FROM orders
  WHERE o_orderdate < '$day3' AND o_custkey IN (SELECT c_custkey FROM customer WHERE c_mktsegment = '$segment3')
) USING (o_orderkey)
GROUP BY o_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate, o_orderkey LIMIT 10]]

TEXTS.Q4 = [[
SELECT o_orderpriority, COUNT(*) AS orders FROM orders
WHERE o_orderdate >= '$from4' AND o_orderdate < '$to4'
  AND o_orderkey IN (SELECT l_orderkey FROM lineitem WHERE l_commitdate < l_receiptdate)
GROUP BY o_orderpriority ORDER BY o_orderpriority]]

TEXTS.Q5 = [[
SELECT n_name, SUM($volume) AS revenue FROM (
  SELECT c_nationkey, l_extendedprice, l_discount FROM (
    SELECT l_suppkey, c_nationkey, l_extendedprice, l_discount FROM lineitem INNER JOIN (
      SELECT o_orderkey AS l_orderkey, c_nationkey FROM orders INNER JOIN (
        SELECT c_custkey AS o_custkey, c_nationkey FROM customer) USING (o_custkey)
      WHERE o_orderdate >= '$year5-01-01' AND o_orderdate < '$end5-01-01') USING (l_orderkey)
  ) INNER JOIN (
    SELECT s_suppkey AS l_suppkey, s_nationkey AS c_nationkey FROM supplier) USING (l_suppkey, c_nationkey)
) INNER JOIN (
  SELECT n_nationkey AS c_nationkey, n_name FROM nation
  WHERE n_regionkey IN (SELECT r_regionkey FROM region WHERE r_name = '$region5')
) USING (c_nationkey)
GROUP BY n_name ORDER BY revenue DESC]]

TEXTS.Q6 = "SELECT " .. or_null("SUM(l_extendedprice * l_discount)") .. [[ AS revenue FROM lineitem
WHERE l_shipdate >= '$year6-01-01' AND l_shipdate < '$end6-01-01' AND l_quantity < $quantity6
  AND l_discount BETWEEN toDecimal64('$low6', 2) AND toDecimal64('$high6', 2)]]

TEXTS.Q7 = [[
SELECT seller, buyer, ship_year, SUM(volume) AS revenue FROM (
  SELECT seller, buyer, toYear(l_shipdate) AS ship_year, $volume AS volume FROM (
    SELECT l_orderkey, l_shipdate, l_extendedprice, l_discount, seller FROM lineitem INNER JOIN (
      SELECT s_suppkey AS l_suppkey, seller FROM supplier INNER JOIN (
        SELECT n_nationkey AS s_nationkey, n_name AS seller FROM nation WHERE n_name IN ('$nation7', '$other7')
      ) USING (s_nationkey)) USING (l_suppkey)
    WHERE l_shipdate BETWEEN '1995-01-01' AND '1996-12-31'
  ) INNER JOIN (
    SELECT o_orderkey AS l_orderkey, buyer FROM orders INNER JOIN (
      SELECT c_custkey AS o_custkey, buyer FROM customer INNER JOIN (
        SELECT n_nationkey AS c_nationkey, n_name AS buyer FROM nation WHERE n_name IN ('$nation7', '$other7')
      ) USING (c_nationkey)) USING (o_custkey)
  ) USING (l_orderkey))
WHERE seller <> buyer GROUP BY seller, buyer, ship_year ORDER BY seller, buyer, ship_year]]

TEXTS.Q8 = [[
SELECT order_year, toFloat64(sumIf(volume, nation_name = '$nation8')) / toFloat64(SUM(volume)) AS share FROM (
  SELECT toYear(o_orderdate) AS order_year, $volume AS volume, nation_name FROM (
    SELECT l_suppkey, l_extendedprice, l_discount, o_orderdate FROM (
      SELECT l_orderkey, l_suppkey, l_extendedprice, l_discount FROM lineitem
      WHERE l_partkey IN (SELECT p_partkey FROM part WHERE p_type = '$type8')
    ) INNER JOIN (
      SELECT o_orderkey AS l_orderkey, o_orderdate FROM orders
      WHERE o_orderdate BETWEEN '1995-01-01' AND '1996-12-31' AND o_custkey IN (
        SELECT c_custkey FROM customer WHERE c_nationkey IN (
          SELECT n_nationkey FROM nation WHERE n_regionkey IN (SELECT r_regionkey FROM region WHERE r_name = '$region8')))
    ) USING (l_orderkey)
  ) INNER JOIN (
    SELECT s_suppkey AS l_suppkey, nation_name FROM supplier INNER JOIN (
      SELECT n_nationkey AS s_nationkey, n_name AS nation_name FROM nation) USING (s_nationkey)
  ) USING (l_suppkey))
GROUP BY order_year ORDER BY order_year]]

TEXTS.Q9 = [[
SELECT nation_name, order_year, SUM(amount) AS profit FROM (
  SELECT nation_name, toYear(o_orderdate) AS order_year, amount FROM (
    SELECT l_orderkey, nation_name, amount FROM (
      SELECT l_orderkey, l_suppkey, $volume - ps_supplycost * l_quantity AS amount FROM lineitem INNER JOIN (
        SELECT ps_partkey AS l_partkey, ps_suppkey AS l_suppkey, ps_supplycost FROM partsupp
        WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '%$color9%')) USING (l_partkey, l_suppkey)
    ) INNER JOIN (
      SELECT s_suppkey AS l_suppkey, nation_name FROM supplier INNER JOIN (
        SELECT n_nationkey AS s_nationkey, n_name AS nation_name FROM nation) USING (s_nationkey)
    ) USING (l_suppkey)
  ) INNER JOIN (SELECT o_orderkey AS l_orderkey, o_orderdate FROM orders) USING (l_orderkey))
GROUP BY nation_name, order_year ORDER BY nation_name, order_year DESC]]

TEXTS.Q10 = [[
SELECT c_custkey, c_name, revenue, c_acctbal, n_name, c_address, c_phone, c_comment FROM (
  SELECT o_custkey AS c_custkey, SUM($volume) AS revenue FROM (
    SELECT l_orderkey, l_extendedprice, l_discount FROM lineitem WHERE l_returnflag = 'R'
  ) INNER JOIN (
    SELECT o_orderkey AS l_orderkey, o_custkey FROM orders
    WHERE o_orderdate >= '$from10' AND o_orderdate < '$to10'
  ) USING (l_orderkey) GROUP BY o_custkey
) INNER JOIN (
  SELECT c_custkey, c_name, c_acctbal, c_address, c_phone, c_comment, n_name FROM customer INNER JOIN (
    SELECT n_nationkey AS c_nationkey, n_name FROM nation) USING (c_nationkey)
) USING (c_custkey)
ORDER BY revenue DESC, c_custkey LIMIT 20]]

TEXTS.Q11 = [[
SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS stock FROM partsupp
WHERE ps_suppkey IN (SELECT s_suppkey FROM supplier WHERE s_nationkey IN $nation11)
GROUP BY ps_partkey
HAVING toFloat64(SUM(ps_supplycost * ps_availqty)) > (
  SELECT toFloat64(SUM(ps_supplycost * ps_availqty)) * $part11 FROM partsupp
  WHERE ps_suppkey IN (SELECT s_suppkey FROM supplier WHERE s_nationkey IN $nation11))
ORDER BY stock DESC, ps_partkey]]

TEXTS.Q12 = [[
SELECT l_shipmode, SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS urgent,
  SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 0 ELSE 1 END) AS others
FROM (SELECT o_orderkey AS l_orderkey, o_orderpriority FROM orders) INNER JOIN (
  SELECT l_orderkey, l_shipmode FROM lineitem
  WHERE l_shipmode IN ('$mode12', '$other12') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
    AND l_receiptdate >= '$year12-01-01' AND l_receiptdate < '$end12-01-01'
) USING (l_orderkey)
GROUP BY l_shipmode ORDER BY l_shipmode]]

TEXTS.Q13 = [[
SELECT orders, COUNT(*) AS customers FROM (
  SELECT c_custkey, orders FROM customer LEFT JOIN (
    SELECT o_custkey AS c_custkey, COUNT(*) AS orders FROM orders WHERE o_comment NOT LIKE '%$before13%$after13%'
    GROUP BY o_custkey) USING (c_custkey))
GROUP BY orders ORDER BY customers DESC, orders DESC]]

TEXTS.Q14 = "SELECT " .. or_null("1e2 * toFloat64(sumIf($volume, p_type LIKE 'PROMO%')) / toFloat64(SUM($volume))")
  .. [[ AS percent FROM (
  SELECT l_partkey, l_extendedprice, l_discount FROM lineitem WHERE l_shipdate >= '$from14' AND l_shipdate < '$to14'
) INNER JOIN (SELECT p_partkey AS l_partkey, p_type FROM part) USING (l_partkey)]]

TEXTS.Q15 = [[
SELECT s_suppkey, s_name, s_address, s_phone, total FROM (
  SELECT l_suppkey AS s_suppkey, SUM($volume) AS total FROM lineitem
  WHERE l_shipdate >= '$from15' AND l_shipdate < '$to15' GROUP BY l_suppkey
  HAVING toFloat64(SUM($volume)) = (SELECT MAX(toFloat64(earned)) FROM (
    SELECT SUM($volume) AS earned FROM lineitem
    WHERE l_shipdate >= '$from15' AND l_shipdate < '$to15' GROUP BY l_suppkey))
) INNER JOIN (SELECT s_suppkey, s_name, s_address, s_phone FROM supplier) USING (s_suppkey)
ORDER BY s_suppkey]]

TEXTS.Q16 = [[
SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS suppliers FROM partsupp INNER JOIN (
  SELECT p_partkey AS ps_partkey, p_brand, p_type, p_size FROM part
  WHERE p_brand <> '$brand16' AND p_type NOT LIKE '$type16%' AND p_size IN ($sizes16)
) USING (ps_partkey)
WHERE ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size ORDER BY suppliers DESC, p_brand, p_type, p_size]]

TEXTS.Q17 = "SELECT " .. or_null("toFloat64(SUM(l_extendedprice)) / 7") .. [[ AS yearly FROM (
  SELECT l_partkey, l_quantity, l_extendedprice FROM lineitem
  WHERE l_partkey IN (SELECT p_partkey FROM part WHERE p_brand = '$brand17' AND p_container = '$container17')
) INNER JOIN (
  SELECT l_partkey, AVG(toFloat64(l_quantity)) AS mean FROM lineitem
  WHERE l_partkey IN (SELECT p_partkey FROM part WHERE p_brand = '$brand17' AND p_container = '$container17')
  GROUP BY l_partkey
) USING (l_partkey)
WHERE 5 * toFloat64(l_quantity) < mean]]

TEXTS.Q18 = [[
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, quantity FROM (
  SELECT o_orderkey, o_custkey AS c_custkey, o_orderdate, o_totalprice, quantity FROM orders INNER JOIN (
    SELECT l_orderkey AS o_orderkey, SUM(l_quantity) AS quantity FROM lineitem GROUP BY l_orderkey
    HAVING SUM(l_quantity) > $quantity18) USING (o_orderkey)
) INNER JOIN (SELECT c_custkey, c_name FROM customer) USING (c_custkey)
ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100]]

TEXTS.Q19 = "SELECT " .. or_null("SUM($volume)") .. [[ AS revenue FROM (
  SELECT l_partkey, l_quantity, l_extendedprice, l_discount FROM lineitem
  WHERE l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON'
) INNER JOIN (
  SELECT p_partkey AS l_partkey, p_brand, p_container, p_size FROM part WHERE p_size BETWEEN 1 AND 15
) USING (l_partkey)
WHERE $alternatives19]]

TEXTS.Q20 = [[
SELECT s_name, s_address FROM supplier WHERE s_nationkey IN $nation20 AND s_suppkey IN (
  SELECT ps_suppkey FROM partsupp INNER JOIN (
    SELECT l_partkey AS ps_partkey, l_suppkey AS ps_suppkey, SUM(l_quantity) AS shipped FROM lineitem
    WHERE l_shipdate >= '$year20-01-01' AND l_shipdate < '$end20-01-01'
      AND l_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '$color20%')
    GROUP BY l_partkey, l_suppkey) USING (ps_partkey, ps_suppkey)
  WHERE toFloat64(2 * ps_availqty) > toFloat64(shipped))
ORDER BY s_name]]

-- Among an order's suppliers there are others, and only one is late, if the least number is not, or is, the largest.
TEXTS.Q21 = [[
SELECT s_name, COUNT(*) AS waits FROM (
  SELECT l_suppkey AS s_suppkey FROM lineitem
  WHERE l_receiptdate > l_commitdate AND l_orderkey IN (SELECT o_orderkey FROM orders WHERE o_orderstatus = 'F')
    AND l_orderkey IN (
      SELECT l_orderkey FROM lineitem GROUP BY l_orderkey
      HAVING MIN(l_suppkey) <> MAX(l_suppkey) AND minIf(l_suppkey, l_receiptdate > l_commitdate)
        = maxIf(l_suppkey, l_receiptdate > l_commitdate))
) INNER JOIN (SELECT s_suppkey, s_name FROM supplier WHERE s_nationkey IN $nation21) USING (s_suppkey)
GROUP BY s_name ORDER BY waits DESC, s_name LIMIT 100]]

TEXTS.Q22 = [[
SELECT code, COUNT(*) AS customers, SUM(c_acctbal) AS money FROM (
  SELECT substring(c_phone, 1, 2) AS code, c_acctbal FROM customer
  WHERE substring(c_phone, 1, 2) IN ($codes22) AND c_custkey NOT IN (SELECT o_custkey FROM orders)
    AND toFloat64(c_acctbal) > (
      SELECT AVG(toFloat64(c_acctbal)) FROM customer WHERE c_acctbal > 0 AND substring(c_phone, 1, 2) IN ($codes22)))
GROUP BY code ORDER BY code]]

local clickhouse = {}

--- The statement of a query, such as Q1. `p`: the parameters, as the list of all queries draws them.
function clickhouse.text(name, p, scale, alternatives19)
  local values = { volume = VOLUME, alternatives19 = alternatives19, part11 = ("%.10f"):format(0.0001 / scale) }
  for key, value in pairs(p) do
    if type(value) ~= "table" then values[key] = value end
  end
  for _, number in ipairs { 11, 20, 21 } do
    values["nation" .. number] = NATION_OF_SUPPLIER:gsub("$nation", p["nation" .. number])
  end
  for _, number in ipairs { 5, 6, 12, 20 } do values["end" .. number] = p["year" .. number] + 1 end
  for number, count in pairs { [4] = 3, [10] = 3, [14] = 1, [15] = 3 } do
    local month = p["month" .. number]
    values["from" .. number] = common.month_text(month[1], month[2])
    values["to" .. number] = common.month_text(month[1], month[2], count)
  end
  values.day1 = common.date_text(common.day_number(1998, 12, 1) - p.days1)
  values.day3 = ("1995-03-%02d"):format(p.day3)
  values.low6, values.high6 = ("%.2f"):format((p.percent6 - 1) / 100), ("%.2f"):format((p.percent6 + 1) / 100)
  values.brand16, values.brand17 = "Brand#" .. p.brand16, "Brand#" .. p.brand17
  values.sizes16 = table.concat(p.sizes16, ", ")
  values.codes22 = "'" .. table.concat(p.codes22, "', '") .. "'"
  return (TEXTS[name]:gsub("$(%l+%d*)", values))
end

local TYPES = { INTEGER = "Int32", BIGINT = "Int64", DATE = "Date", VARCHAR = "String", DECIMAL = "Decimal(15, 2)" }

--- A table from its definition elsewhere: the primary key becomes the order of the rows.
function clickhouse.create(name, definition)
  local columns, key = {}, nil
  for column, kind in definition:gmatch("(%l+_%l+) (%u+)") do
    columns[#columns + 1] = column .. " " .. TYPES[kind]
    key = key or column
  end
  key = definition:match("PRIMARY KEY %((.-)%)") or key
  return ("CREATE TABLE %s (%s) ENGINE = MergeTree ORDER BY (%s)"):format(name, table.concat(columns, ", "), key)
end

--- What the check counts, by what is wrong: nothing of it may exist.
clickhouse.checks = {
  ["positions without an order"] = "SELECT COUNT(*) FROM lineitem WHERE l_orderkey NOT IN (SELECT o_orderkey FROM orders)",
  ["orders without a position"] = "SELECT COUNT(*) FROM orders WHERE o_orderkey NOT IN (SELECT l_orderkey FROM lineitem)",
  ["positions whose supplier does not have the part"] = "SELECT COUNT(*) FROM lineitem WHERE (l_partkey, l_suppkey) NOT IN (SELECT ps_partkey, ps_suppkey FROM partsupp)",
  ["orders without a customer"] = "SELECT COUNT(*) FROM orders WHERE o_custkey NOT IN (SELECT c_custkey FROM customer)",
  ["orders whose price is not that of their positions"] = "SELECT COUNT(*) FROM (SELECT o_orderkey AS l_orderkey, toFloat64(o_totalprice) AS total FROM orders) INNER JOIN (SELECT l_orderkey, toFloat64(SUM(l_extendedprice * (1 + l_tax) * (1 - l_discount))) AS price FROM lineitem GROUP BY l_orderkey) USING (l_orderkey) WHERE abs(total - price) > 0.006",
  ["positions with a wrong price"] = "SELECT COUNT(*) FROM lineitem INNER JOIN (SELECT p_partkey AS l_partkey, p_retailprice FROM part) USING (l_partkey) WHERE l_extendedprice <> l_quantity * p_retailprice",
  ["positions with days in the wrong order"] = "SELECT COUNT(*) FROM lineitem INNER JOIN (SELECT o_orderkey AS l_orderkey, o_orderdate FROM orders) USING (l_orderkey) WHERE l_shipdate <= o_orderdate OR l_receiptdate <= l_shipdate",
  ["orders with a wrong state"] = "SELECT COUNT(*) FROM (SELECT o_orderkey AS l_orderkey, o_orderstatus FROM orders) INNER JOIN (SELECT l_orderkey, COUNT(*) AS positions, SUM(CASE WHEN l_linestatus = 'F' THEN 1 ELSE 0 END) AS finished FROM lineitem GROUP BY l_orderkey) USING (l_orderkey) WHERE o_orderstatus <> CASE WHEN finished = positions THEN 'F' WHEN finished = 0 THEN 'O' ELSE 'P' END",
}

return clickhouse
