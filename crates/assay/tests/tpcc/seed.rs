//! The loaded rows depend only on seed and size.

use super::{Place, SMALL, places};

/// Sums over each table of set 1, of all columns except dates, and the texts of the last row.
pub(crate) fn checksums(place: &Place) -> Vec<String> {
    place.folder.write(
        "checksums.lua",
        r#"
local tpcc = require("tpcc_common")

local function checksum(con, definition)
  local sums, texts, order, key = { "COUNT(*)" }, {}, {}, nil
  for column, kind in (definition.columns .. ","):gmatch("([%w_]+) (%w+)") do
    local is_text = kind == "VARCHAR" or kind == "CHAR"
    key = key or column
    if is_text then texts[#texts + 1] = column end
    if is_text or kind == "INTEGER" or kind == "SMALLINT" or kind == "DECIMAL" then
      sums[#sums + 1] = ("SUM(%s * %s)"):format(key, is_text and "LENGTH(" .. column .. ")" or column)
      if not is_text then order[#order + 1] = column .. " DESC" end
    end
  end
  local parts = { con:query_row(("SELECT %s FROM %s1"):format(table.concat(sums, ", "), definition.name)) }
  -- Databases write numbers in their own ways: 0.5, 0.5000.
  for i = 1, #parts do parts[i] = ("%.3f"):format(parts[i]) end
  if #texts > 0 then
    local last = { con:query_row(("SELECT %s FROM %s1 ORDER BY %s LIMIT 1"):format(table.concat(texts, ", "), definition.name,
      table.concat(order, ", "))) }
    for _, text in ipairs(last) do parts[#parts + 1] = text end
  end
  return table.concat(parts, " ")
end

sysbench.cmdline.commands = { go = { function()
  local con = sysbench.sql.driver():connect()
  for _, definition in ipairs(tpcc.dialect().tables) do
    print("checksum", definition.name, checksum(con, definition))
  end
end } }
"#,
    );
    let said = place.folder.expect(&format!("exec ./checksums.lua go --db {}", place.url), 0).stderr;
    let sums: Vec<String> = said.lines().filter(|line| line.starts_with("checksum\t")).map(str::to_owned).collect();
    assert_eq!(sums.len(), 9, "{said}");
    sums
}

#[test]
fn the_same_seed_loads_the_same_rows_however_many_sessions_share_the_work() {
    let sqlite = Place::sqlite();
    sqlite.expect("prepare", &format!("{SMALL} --seed 8"), 0);
    let other = checksums(&sqlite);
    sqlite.expect("cleanup", "", 0);
    sqlite.expect("prepare", &format!("{SMALL} --seed 7"), 0);
    let wanted = checksums(&sqlite);
    for (one, another) in wanted.iter().zip(&other) {
        // new_orders has no random column.
        assert_eq!(one == another, one.contains("new_orders"), "{one}, {another}");
    }
    for place in places() {
        for sessions in [1, 3] {
            place.expect("prepare", &format!("{SMALL} --seed 7 --sessions {sessions}"), 0);
            assert_eq!(checksums(&place), wanted, "{sessions} sessions, {}", place.url);
            place.expect("cleanup", "", 0);
        }
    }
}
