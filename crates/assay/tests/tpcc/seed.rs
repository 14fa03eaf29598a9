//! What is loaded depends on seed and size alone.

use super::{Place, SMALL, places};

/// A checksum of each table of set 1, of all its columns but the dates.
pub(crate) fn checksums(place: &Place) -> Vec<String> {
    place.folder.write(
        "checksums.lua",
        r#"
local tpcc = require("tpcc_common")

local function checksum(con, definition)
  local columns = {}
  for column, kind in (definition.columns .. ","):gmatch("([%w_]+) (%w+)") do
    if kind ~= "TIMESTAMP" and kind ~= "NULL" then columns[#columns + 1] = column end
  end
  local list = table.concat(columns, ", ")
  local order = table.concat(columns, ", ", 1, math.min(4, #columns))
  local result = con:query(("SELECT %s FROM %s1 ORDER BY %s"):format(list, definition.name, order))
  local hash = 0
  for _ = 1, result.nrows do
    local row = result:fetch_row()
    for i = 1, #columns do
      -- Databases write numbers in their own ways: 0.5, 0.5000.
      local text = tonumber(row[i]) and ("%.6f"):format(row[i]) or tostring(row[i])
      for at = 1, #text do hash = bit.bxor(bit.rol(hash, 5), text:byte(at)) * 16777619 % 4294967296 end
    end
  end
  return result.nrows, hash
end

sysbench.cmdline.commands = { go = { function()
  local con = sysbench.sql.driver():connect()
  for _, definition in ipairs(tpcc.tables) do
    print("checksum", definition.name, checksum(con, definition))
  end
end } }
"#,
    );
    let said = place.folder.expect(&format!("exec ./checksums.lua go --db {}", place.url), 0).stderr;
    let sums: Vec<String> = said.lines().filter(|line| line.contains("checksum")).map(str::to_owned).collect();
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
