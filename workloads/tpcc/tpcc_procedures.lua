--- The five transactions of TPC-C as stored procedures, for --procedures.
--
-- A procedure executes the statements of `tpcc.statements`, in the order of the function `by_statements` that it stands
-- for: one round trip instead of 6 to 50. `prepare` makes them, on PostgreSQL in PL/pgSQL, on MySQL and MariaDB in
-- SQL/PSM, and notes in tpcc_load what they were made of, so that a run can tell that it calls what it would have
-- executed. A run never makes them.
--
-- They begin and end their transaction, and answer once it is committed, with what a terminal shows. What they undo
-- themselves (an unused item, above all) has no answer, which here reads as nil.

local tpcc = require("tpcc_common")

local procedures = {}

local format, concat = string.format, table.concat

-- Statements
-- -----------------------------------------------------------------------------------------------------------

--- Those of the workload, and what becomes of some of them where they are not executed one by one.
local function statements()
  local texts = {}
  for name, definition in pairs(tpcc.all_statements()) do texts[name] = definition[1] end
  local district_info = { "CASE d" }
  for d = 1, tpcc.DISTRICTS do district_info[d + 1] = format("WHEN %d THEN s_dist_%02d", d, d) end
  texts.stock = texts.stock_1:gsub("s_dist_01", concat(district_info, " ") .. " END")
  texts.count_of_name = texts.customers_of_name:gsub("c_id", "COUNT(*)", 1):gsub(" ORDER BY .*", "")
  texts.customer_of_name = texts.customers_of_name .. " LIMIT 1 OFFSET ?"
  -- All lines as one text.
  texts.lines_of_order = texts.lines_of_order:gsub("SELECT (.-) FROM", "SELECT LIST(CONCAT_WS(' ', %1)) FROM")
  return texts
end

--- The list with what stands behind its first `count` − 1 entries as one text: a terminal would show it.
local function joined(columns, count)
  local kept, rest = {}, columns
  for i = 1, count - 1 do kept[i], rest = rest:match("^(.-), (.*)$") end
  if rest:find(", ", 1, true) and not rest:find("(", 1, true) then rest = "CONCAT_WS(' ', " .. rest .. ")" end
  kept[count] = rest
  return concat(kept, ", ")
end

--- `text` with the arguments for its placeholders, and its columns read into variables.
local function executed(text, arguments, variables)
  local values = {}
  for value in arguments:gmatch("[^,]+") do values[#values + 1] = value:match("^%s*(.-)%s*$") end
  local used = 0
  text = text:gsub("?", function()
    used = used + 1
    return values[used]:find("^[%w_]+$") and values[used] or "(" .. values[used] .. ")"
  end)
  assert(used == #values, text)
  if not variables then return text end
  local columns, rest = text:match("^SELECT (.-) (FROM .*)$")
  local _, count = variables:gsub("[%w_]+", "")
  return format("SELECT %s INTO %s %s", joined(columns, count), variables, rest)
end

-- Procedures
-- -----------------------------------------------------------------------------------------------------------

-- In SQL/PSM, where `name(a, b) INTO x, y;` is the statement of that name with these arguments. A variable of the list
-- that is the last, but not for the last column, gets those that are left as one text. A SELECT that finds no row
-- leaves its variables as they are (PL/pgSQL: NULL). No variable is called like a column, whose place it would take.
--
-- `takes`: its arguments; `has`: its variables; `gives`: those that it answers with, the first NULL when there is no
-- answer.

-- 2.5.2.2: by last name, the one in the middle, rounded up, of those ordered by first name.
local CHOOSE_CUSTOMER = [[
  SET chosen = c;
  IF c IS NULL THEN
    count_of_name(c_w, c_d, last_name) INTO found;
    IF found = 0 THEN
      ROLLBACK;
      LEAVE whole;
    END IF;
    SET skipped = FLOOR((found - 1) / 2);
    customer_of_name(c_w, c_d, last_name, skipped) INTO chosen;
  END IF;
]]

-- A line of an order among the arguments: warehouse, item, quantity and number, each with its digits. A text of them is
-- the cheapest to take apart of what all databases have: neither array nor JSON, and not 60 arguments.
local LINE = "%07d%06d%02d%02d"

local PROCEDURES = {
  { -- 2.4.2
    name = "new_order",
    takes = "w INTEGER, d INTEGER, c INTEGER, line_count INTEGER, all_local INTEGER, entered VARCHAR(255)",
    gives = "o INTEGER, total DECIMAL(12,2), district_tax DECIMAL(4,4), discount DECIMAL(4,4), shown VARCHAR(50),"
      .. " shown_lines VARCHAR(1500)",
    has = "n INTEGER, warehouse_tax DECIMAL(4,4), last_name VARCHAR(16), credit CHAR(2), supply INTEGER, i INTEGER,"
      .. " quantity INTEGER, line_number INTEGER, price DECIMAL(5,2), item_name VARCHAR(24), item_data VARCHAR(50),"
      .. " remaining INTEGER, stock_data VARCHAR(50), district_info CHAR(24), brand CHAR(1), cost DECIMAL(6,2)",
    body = [[
  order_customer(w, d, c) INTO discount, last_name, credit, warehouse_tax;
  order_district(w, d) INTO o, district_tax;
  next_order(o + 1, w, d);
  insert_order(o, d, w, c, line_count, all_local);
  insert_new_order(o, d, w);
  SET total = 0;
  SET shown_lines = '';
  SET n = 0;
  WHILE n < line_count DO
    SET supply = SUBSTRING(entered, 17 * n + 1, 7);
    SET i = SUBSTRING(entered, 17 * n + 8, 6);
    SET quantity = SUBSTRING(entered, 17 * n + 14, 2);
    SET line_number = SUBSTRING(entered, 17 * n + 16, 2);
    SET price = NULL;
    item(i) INTO price, item_name, item_data;
    IF price IS NULL THEN
      SET o = NULL;
      ROLLBACK;
      LEAVE whole;
    END IF;
    stock(supply, i) INTO remaining, stock_data, district_info;
    SET remaining = remaining - quantity;
    IF remaining < 10 THEN
      SET remaining = remaining + 91;
    END IF;
    update_stock(remaining, quantity, CASE WHEN supply = w THEN 0 ELSE 1 END, supply, i);
    SET brand = 'G';
    IF POSITION('ORIGINAL' IN item_data) > 0 AND POSITION('ORIGINAL' IN stock_data) > 0 THEN
      SET brand = 'B';
    END IF;
    SET cost = quantity * price;
    SET total = total + cost;
    SET shown_lines = CONCAT(shown_lines, item_name, ' ', remaining, ' ', brand, ' ', price, ' ', cost, ',');
    insert_line(o, d, w, line_number, i, supply, quantity, cost, district_info);
    SET n = n + 1;
  END WHILE;
  SET total = total * (1 - discount) * (1 + warehouse_tax + district_tax);
  SET shown = CONCAT(last_name, ' ', credit, ' ', warehouse_tax);
]],
  },
  { -- 2.5.2
    name = "payment",
    takes = "w INTEGER, d INTEGER, c_w INTEGER, c_d INTEGER, c INTEGER, last_name VARCHAR(16)<names>, amount DECIMAL(6,2)",
    gives = "chosen INTEGER, shown_warehouse VARCHAR(120), shown_district VARCHAR(120), credit CHAR(2), shown VARCHAR(300),"
      .. " customer_data VARCHAR(500)",
    has = "warehouse_name VARCHAR(10), district_name VARCHAR(10), found INTEGER, skipped INTEGER, history_text VARCHAR(24)",
    body = [[
  pay_warehouse(amount, w);
  warehouse(w) INTO warehouse_name, shown_warehouse;
  pay_district(amount, w, d);
  district(w, d) INTO district_name, shown_district;
]] .. CHOOSE_CUSTOMER .. [[
  paying_customer(c_w, c_d, chosen) INTO credit, shown;
  IF credit = 'BC' THEN
    customer_data(c_w, c_d, chosen) INTO customer_data;
    SET customer_data = LEFT(CONCAT(chosen, ' ', c_d, ' ', c_w, ' ', d, ' ', w, ' ', CAST(amount AS DECIMAL(6,2)), '|',
      customer_data), 500);
    pay_bad_customer(amount, amount, customer_data, c_w, c_d, chosen);
  ELSE
    pay_customer(amount, amount, c_w, c_d, chosen);
  END IF;
  SET history_text = CONCAT(warehouse_name, '    ', district_name);
  insert_history(chosen, c_d, c_w, d, w, amount, history_text);
]],
  },
  { -- 2.6.2
    name = "order_status", reads = true,
    takes = "c_w INTEGER, c_d INTEGER, c INTEGER, last_name VARCHAR(16)<names>, own_level INTEGER",
    gives = "chosen INTEGER, level_there VARCHAR(20), balance DECIMAL(12,2), shown VARCHAR(50), o INTEGER,"
      .. " shown_order VARCHAR(50), shown_lines VARCHAR(1500)",
    has = "found INTEGER, skipped INTEGER",
    body = CHOOSE_CUSTOMER .. [[
  SET level_there = <level>;
  customer_status(c_w, c_d, chosen) INTO balance, shown;
  last_order(c_w, c_d, chosen) INTO o, shown_order;
  lines_of_order(c_w, c_d, o) INTO shown_lines;
]],
  },
  { -- 2.7.4
    name = "delivery",
    takes = "w INTEGER, carrier INTEGER",
    gives = "delivered VARCHAR(150)", -- the order of each district, 0 where there was none
    has = "d INTEGER, o INTEGER, waiting INTEGER, c INTEGER, amount DECIMAL(8,2)",
    body = [[
  SET delivered = '';
  SET d = 1;
  WHILE d <= 10 DO
    SET o = NULL;
    SET waiting = 0;
    WHILE o IS NULL AND waiting IS NOT NULL DO
      oldest_new_order(w, d) INTO o;
      SET waiting = NULL;
      <again>
    END WHILE;
    IF o IS NOT NULL THEN
      delete_new_order(w, d, o);
      SET c = NULL;
      customer_of_order(w, d, o) INTO c;
      IF c IS NULL THEN
        SET delivered = NULL;
        ROLLBACK;
        LEAVE whole;
      END IF;
      set_carrier(carrier, w, d, o);
      deliver_lines(w, d, o);
      amount_of_order(w, d, o) INTO amount;
      deliver_to_customer(amount, w, d, c);
    END IF;
    SET delivered = CONCAT(delivered, COALESCE(o, 0), ' ');
    SET d = d + 1;
  END WHILE;
]],
  },
  { -- 2.8.2
    name = "stock_level", reads = true,
    takes = "w INTEGER, d INTEGER, threshold INTEGER, own_level INTEGER",
    gives = "low INTEGER",
    has = "following INTEGER",
    body = [[
  district_level(w, d) INTO following;
  low_stock(w, d, following - 20, following, w, threshold) INTO low;
]],
  },
}

local function name_of(procedure, set) return format("tpcc_%s%d", procedure.name, set) end

--- Name and type of each variable of a list.
local function declared(declarations)
  local variables = {}
  for name, kind in (declarations:gsub("%b()", "") .. ","):gmatch("([%w_]+) ([%w<> ]+),") do
    variables[#variables + 1] = { name = name, kind = kind }
  end
  return variables
end

--- The list with something else than a comma between its declarations.
local function separated(declarations, separator) return (declarations:gsub(", ([%w_]+ %u)", separator .. "%1")) end

--- CREATE PROCEDURE for a table set, but for the collation of <names>.
local function definition_of(procedure, set, dialect, texts)
  local language = dialect.language
  local body = language.translated((procedure.body:gsub("<(%l+)>", language.words)))
  body = body:gsub("([%w_]+)(%b())([^;\n]*);", function(name, arguments, rest)
    return texts[name] and executed(texts[name], arguments:sub(2, -2), rest:match("^ INTO (.*)$")) .. ";"
  end)
  body = body:gsub("LIST(%b())", function(list) return format(language.list, list:sub(2, -2)) end):gsub("<(%l+)>", dialect)
  local answer = {}
  for i, variable in ipairs(declared(procedure.gives)) do answer[i] = variable.name end
  return dialect.of_set(language.definition:gsub("<(%l+)>", {
    name = name_of(procedure, set), takes = procedure.takes, body = body, answer = concat(answer, ", "),
    gives = separated(procedure.gives, language.before.gives), has = separated(procedure.has, language.before.has),
    reading = procedure.reads and language.reading or "",
  }), set)
end

local function definitions(set, dialect)
  local texts, list = statements(), {}
  for i, procedure in ipairs(PROCEDURES) do list[i] = definition_of(procedure, set, dialect, texts) end
  return list
end

--- A number that tells these procedures from others, of another version or of a script that changes the statements.
function procedures.fingerprint(dialect)
  local sum = 0
  for byte in concat(definitions(1, dialect)):gmatch(".") do sum = (sum * 31 + byte:byte()) % 2147483647 end
  return sum
end

--- Drops those of a table set that are there.
function procedures.drop(connection, dialect, set)
  if not dialect.procedures then return end
  local names = {}
  for i, procedure in ipairs(PROCEDURES) do names[i] = "'" .. name_of(procedure, set) .. "'" end
  local found, there = connection:query(dialect.procedures:format(concat(names, ", "))), {}
  for i = 1, found.nrows do there[i] = found:fetch_row()[1] end
  for _, name in ipairs(there) do connection:query("DROP PROCEDURE " .. name) end
end

--- Makes those of a table set, in the place of others.
function procedures.make(connection, dialect, set)
  connection:query(dialect:forget(set, "procedures"))
  -- A variable of another collation than its column's could not be compared with it, or not by an index.
  local collation = dialect.collation
    and format(" CHARACTER SET %s COLLATE %s", connection:query_row(dialect.of_set(dialect.collation, set)))
  local made, problem = pcall(function()
    procedures.drop(connection, dialect, set)
    for _, definition in ipairs(definitions(set, dialect)) do
      connection:query((definition:gsub("<names>", collation or "")))
    end
  end)
  if not made then
    if tostring(problem):find("denied") then assay.log("--procedures: creating them needs " .. dialect.to_make_procedures) end
    error(problem, 0)
  end
  connection:query(dialect:enter(set, { { "procedures", 0, procedures.fingerprint(dialect) } }))
end

-- Calls
-- ----------------------------------------------------------------------------------------------------------------

local LETTERS = { INTEGER = "i", DECIMAL = "d", VARCHAR = "t" }

--- Prepares the calls for a table set: name of the transaction → statement.
function procedures.prepare_set(connection, dialect, set)
  local prepared = {}
  for _, procedure in ipairs(PROCEDURES) do
    local places, kinds = {}, {}
    for i, variable in ipairs(declared(procedure.takes)) do
      places[i], kinds[i] = "?", LETTERS[variable.kind:match("^%u+")]
    end
    local text = format("CALL %s(%s%s)", name_of(procedure, set), concat(places, ", "),
      dialect.language.answer:rep(#declared(procedure.gives)))
    prepared[procedure.name] = connection:prepare(text, concat(kinds))
  end
  return prepared
end

--- The transactions as in `tpcc`. `own_level`: Order-Status and Stock-Level have that of the dialect, not the
-- session's.
function procedures.transactions(own_level)
  own_level = own_level and 1 or 0
  local calls, lines = {}, {}

  local function name(input) return input.name and tpcc.last_name(input.name) end

  --- A customer was found, or there is none of the name.
  local function found(customer, w, d, input)
    if customer then return end
    error(format("no customer %s in warehouse %d, district %d", name(input), w, d), 0)
  end

  function calls.new_order(set, w, input)
    for n = 1, input.lines do
      lines[n] = format(LINE, input.supply[n], input.item[n], input.quantity[n], input.number[n])
    end
    local all_local, entered = input.remote == 0 and 1 or 0, concat(lines, "", 1, input.lines)
    local o, total = set.new_order:row(w, input.d, input.c, input.lines, all_local, entered)
    return tonumber(o), tonumber(total)
  end

  function calls.payment(set, w, input)
    found(set.payment:row(w, input.d, input.c_w, input.c_d, input.c, name(input), input.amount), input.c_w, input.c_d, input)
  end

  function calls.order_status(set, input)
    local customer, level, balance, _, o, _, shown = set.order_status:row(input.c_w, input.c_d, input.c, name(input), own_level)
    found(customer, input.c_w, input.c_d, input)
    local _, commas = (shown or ""):gsub(",", "")
    return balance, tonumber(o), shown and commas + 1 or 0, level
  end

  function calls.delivery(set, w, carrier, delivered)
    local orders = set.delivery:row(w, carrier) or error(format("a new order of warehouse %d has no matching order", w), 0)
    local d, skipped = 0, 0
    for o in orders:gmatch("%d+") do
      d = d + 1
      delivered[d] = o ~= "0" and tonumber(o) or nil
      if not delivered[d] then skipped = skipped + 1 end
    end
    return skipped
  end

  function calls.stock_level(set, w, d, input) return (set.stock_level:row(w, d, input.threshold, own_level)) end

  return calls
end

return procedures
