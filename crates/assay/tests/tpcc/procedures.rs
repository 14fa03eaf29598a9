//! Stored procedures have the same effect as the statements that they replace.

use serde_json::Value;
use testkit::Kind;

use super::{Place, SMALL};

/// The servers that can be started here.
fn servers() -> impl Iterator<Item = Place> {
    let kinds = [Kind::Postgres, Kind::Postgres18, Kind::MariaDb, Kind::MySql];
    kinds.into_iter().filter(|kind| kind.present()).map(Place::on)
}

/// A checksum of each table over all rows, except the values of dates: only whether a date is set counts.
fn contents(place: &Place) -> Vec<String> {
    place.folder.write(
        "contents.lua",
        r#"
local tpcc = require("tpcc_common")
sysbench.cmdline.commands = { go = { function()
  local con = sysbench.sql.driver():connect()
  for _, definition in ipairs(tpcc.dialect().tables) do
    local columns, places = {}, {}
    for column, kind in (definition.columns .. ","):gmatch("([%w_]+) (%w+)") do
      if column == column:lower() and kind == kind:upper() and kind ~= "NULL" then
        columns[#columns + 1] = kind == "TIMESTAMP" and ("CASE WHEN %s IS NULL THEN 0 ELSE 1 END"):format(column) or column
        places[#places + 1] = #columns
      end
    end
    local rows = con:query(("SELECT %s FROM %s1 ORDER BY %s"):format(table.concat(columns, ", "), definition.name,
      table.concat(places, ", ")))
    local sum = 0
    for _ = 1, rows.nrows do
      local row = rows:fetch_row()
      for i = 1, #columns do
        for at = 1, #(row[i] or "-") do sum = (sum * 31 + (row[i] or "-"):byte(at)) % 2147483647 end
        sum = (sum * 31 + 7) % 2147483647
      end
    end
    print("contents", definition.name, #columns, rows.nrows, sum)
  end
end } }
"#,
    );
    let said = place.folder.expect(&format!("exec ./contents.lua go --db {}", place.url), 0).stderr;
    let lines: Vec<String> = said.lines().filter(|line| line.starts_with("contents\t")).map(str::to_owned).collect();
    assert_eq!(lines.len(), 9, "{said}");
    assert!(lines[2].starts_with("contents\tcustomer\t21\t1200\t"), "all columns are looked at: {lines:?}");
    lines
}

/// The lines of a journal without their times.
fn deliveries(place: &Place, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(place.folder.path().join(name)).unwrap();
    text.lines().map(|line| line.splitn(4, ',').last().unwrap().to_owned()).collect()
}

/// The number of each type, and what the audit and others count.
fn counts(findings: &Value) -> Vec<Value> {
    let stage = &findings["stages"][0];
    let types = stage["total"]["types"].as_array().unwrap().iter();
    let types =
        types.map(|of| Value::from(vec![of["name"].clone(), of["transactions"].clone(), of["rolled_back"].clone()]));
    let audit = stage["audit"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| rule["clause"] != "5.2.5.3" && rule["clause"] != "2.7.2.2")
        .filter(|rule| rule["name"] != "transactions with wrong values")
        // How many seconds a run has depends on its speed.
        .filter(|rule| !rule["name"].as_str().unwrap().starts_with("seconds with"));
    types.chain(audit.map(|rule| Value::from(vec![rule["name"].clone(), rule["observed"].clone()]))).collect()
}

#[test]
fn procedures_leave_the_same_tables_as_the_statements_they_stand_for() {
    for place in servers() {
        let mut wanted = None;
        for option in ["", "--procedures", "--procedures --prepared off"] {
            place.expect(
                "prepare",
                &format!("{SMALL} --sessions 2 --seed 3 {}", option.trim_end_matches(" --prepared off")),
                0,
            );
            let line = "--sessions 1 --transactions 700 --seed 3 --deferred-delivery --journal d.csv --format json";
            let findings = place.run_checked(&format!("{line} {option}")).findings();
            let total = &findings["stages"][0]["total"];
            assert!(total["rolled_back"].as_u64() > Some(0) && total["retries"] == 0, "{total}");
            assert_eq!(findings["options"]["procedures"], !option.is_empty(), "{findings}");
            // One statement each.
            assert_eq!(total["statements"] == 700, !option.is_empty(), "{total}");
            let found = (contents(&place), deliveries(&place, "d.csv"), counts(&findings));
            assert!(found.1.len() > 20, "{found:?}");
            place.expect("cleanup", "", 0);
            assert_eq!(wanted.get_or_insert_with(|| found.clone()), &found, "{option} on {}", place.url);
        }
    }
}

#[test]
fn procedures_that_compete_and_start_over_leave_the_tables_consistent() {
    for place in servers() {
        place.expect("prepare", "--customers 60 --items 200 --procedures", 0);
        for isolation in ["", "--isolation repeatable-read"] {
            // Enough unused items and last names that some are rolled back and found.
            let run = "--mix 4,2,1,3,1 --sessions 16 --transactions 500 --seed 1 --retries 1000 --format json";
            let findings = place.run_checked(&format!("{run} --procedures {isolation}")).findings();
            let stage = &findings["stages"][0];
            let of = |what: &str| stage["total"][what].as_u64().unwrap();
            assert_eq!((of("transactions") + of("rolled_back"), of("failed")), (500, 0), "{stage}");
            let is_postgres = matches!(place.kind, Some(Kind::Postgres | Kind::Postgres18));
            if is_postgres && !isolation.is_empty() {
                assert!(of("retries") > 0, "{isolation}: {stage}");
            }
            // Order-Status uses one snapshot, whatever the isolation of the others.
            let levels = stage["audit"].as_array().unwrap().iter().filter(|rule| rule["clause"] == "3.4.1");
            let levels: Vec<_> = levels.map(|rule| rule["name"].as_str().unwrap()).collect();
            assert_eq!(levels, ["order-status at repeatable read"], "{isolation}");
        }
        let ran = place.run_checked("--procedures --isolation read-committed --sessions 4 --transactions 300");
        assert!(ran.stderr.contains("order-status at read committed"), "{}", ran.shown());
    }
}

#[test]
fn procedures_are_made_by_prepare_and_removed_by_cleanup() {
    for place in servers().filter(|place| place.kind != Some(Kind::Postgres18)) {
        let own = if place.kind == Some(Kind::Postgres) { "current_schema()" } else { "DATABASE()" };
        let query = format!("SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = {own}");
        let there = || place.server().unwrap().sql(&place.database, &query).unwrap().trim().parse::<u32>().unwrap();
        // A different collation: values compared with a column must have it.
        let options = match place.kind {
            Some(Kind::Postgres) => String::new(),
            _ => "--mysql-table-options 'CHARACTER SET utf8mb4 COLLATE utf8mb4_bin'".to_owned(),
        };
        place.expect("prepare", &format!("{SMALL} --tables 2 {options}"), 0);
        let run = "--tables 2 --sessions 3 --transactions 300 --procedures";
        let ran = place.expect("run", run, 2);
        let told = "--procedures: the procedures of set 1 do not exist; create them with \
                    `assay prepare tpcc --procedures --warehouses 2 \
                    --tables 2 --customers 60 --items 200 --db …`";
        assert!(ran.stderr.contains(told), "{}", ran.shown());
        assert_eq!(there(), 0);
        // Twice: existing procedures are replaced.
        for _ in 0..2 {
            place.expect("prepare", &format!("{SMALL} --tables 2 --procedures --sessions 3"), 0);
            assert_eq!(there(), 10);
        }
        place.run_checked(run);
        // Without the option nothing changes.
        place.expect("prepare", &format!("{SMALL} --tables 2"), 2);

        place.folder.write(
            "other.lua",
            r#"
require("tpcc")
local warehouse = require("tpcc_common").statements.warehouse
warehouse[1] = warehouse[1]:gsub("w_name", "UPPER(w_name)")
"#,
        );
        let other = |command: &str, code| {
            place.folder.expect(&format!("{command} --db {} {SMALL} --tables 2", place.url), code)
        };
        let ran = other("run ./other.lua --procedures --no-record", 2);
        let told = "the procedures of set 1 belong to another version or to other statements; create them with \
                    `assay prepare ./other.lua";
        assert!(ran.stderr.contains(told), "{}", ran.shown());
        other("prepare ./other.lua --procedures", 0);
        other("run ./other.lua --procedures --no-record --transactions 100", 0);
        place.expect("run", run, 2);
        place.expect("cleanup", "--tables 2", 0);
        assert_eq!(there(), 0);
    }
}

#[test]
fn what_does_not_go_with_procedures_is_refused() {
    let place = Place::sqlite();
    place.expect("prepare", SMALL, 0);
    for command in ["prepare", "run"] {
        let ran = place.expect(command, "--procedures", 2);
        assert!(ran.stderr.contains("--procedures: SQLite has no stored procedures"), "{}", ran.shown());
    }
    let ran = place.expect("run", "--procedures --batch-statements", 2);
    assert!(ran.stderr.contains("cannot be used together: a call is already a single statement"), "{}", ran.shown());
    for place in servers().take(1) {
        place.expect("prepare", &format!("{SMALL} --procedures"), 0);
        let line = format!("exec tpcc isolation --sessions 2 --procedures --db {}", place.url);
        let ran = place.folder.expect(&line, 2);
        assert!(
            ran.stderr.contains("pause inside transactions, which is not possible in a procedure"),
            "{}",
            ran.shown()
        );
    }
}
