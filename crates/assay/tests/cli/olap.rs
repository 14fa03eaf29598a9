//! Analytical workloads: the same rows on every database, loads that are not complete, and results that are wrong.

use serde_json::Value;
use testkit::Kind;

use crate::common::{Folder, Ran};

const FLIGHTS: &str = "--flights 3000";
const TPCH_LIKE: &str = "--scale 0.005";

/// URLs of an empty database of each server that can be started here, and of a file.
fn databases(folder: &Folder) -> Vec<String> {
    let servers = [Kind::Postgres, Kind::MariaDb, Kind::MySql].into_iter().filter(|kind| kind.present());
    let url = |kind: Kind| kind.shared().url(&kind.shared().fresh_database().unwrap());
    servers.map(url).chain([file(folder, "olap.db")]).collect()
}

fn file(folder: &Folder, name: &str) -> String {
    format!("sqlite:{}?synchronous=off", folder.path().join(name).display())
}

fn record(folder: &Folder, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.path().join(name)).unwrap()).unwrap()
}

fn rows_of(record: &Value) -> Vec<(String, u64)> {
    let cases = record["cases"]["cases"].as_array().unwrap().iter();
    cases.map(|case| (case["name"].as_str().unwrap().to_owned(), case["rows"].as_u64().unwrap())).collect()
}

/// Loads a workload into every database, and compares what its queries return.
fn same_rows_everywhere(workload: &str, size: &str, queries: usize, empty: &[&str]) {
    let folder = Folder::new();
    let urls = databases(&folder);
    let all: String = urls.iter().map(|url| format!(" --db {url}")).collect();
    // Each database by another number of sessions.
    for (url, sessions) in urls.iter().zip([2, 3, 1, 2]) {
        let line = format!("prepare {workload} {size} --seed 7 --sessions {sessions} --no-record --db {url}");
        folder.expect(&line, 0);
    }
    folder.expect(&format!("check {workload} {size} --no-record {all}"), 0);
    let line = format!("olap {workload} {size} --seed 1 --runs 2 --record a.json {all}");
    let ran = folder.expect(&line, 0);
    assert!(urls.len() == 1 || ran.stdout.contains("All databases returned the same rows."), "{}", ran.shown());
    let rows = rows_of(&record(&folder, "a.json"));
    assert_eq!(rows.len(), queries, "{rows:?}");
    // A result without rows would prove nothing.
    let none = rows.iter().filter(|(_, rows)| *rows == 0).map(|(name, _)| name.as_str());
    assert_eq!(none.collect::<Vec<_>>(), empty, "{rows:?}");
    for url in &urls {
        let has_counters = !url.starts_with("sqlite:");
        let asked = if has_counters { "--explain --counters" } else { "--explain" };
        let line = format!("olap {workload} {size} --db {url} --runs 1 --query Q1 {asked} --record e.json --force");
        assert!(folder.expect(&line, 0).stdout.contains("plan of Q1:"), "{url}");
        let asked = record(&folder, "e.json")["cases"].clone();
        let counters = asked["cases"][0]["counters"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!(asked["cases"][0]["plans"].as_array().unwrap().len(), 1, "{asked}");
        assert_eq!((counters > 0, asked["counters_of"].is_string()), (has_counters, has_counters), "{asked}");
        let ran =
            folder.expect(&format!("run {workload} {size} --db {url} --transactions 5 --sessions 2 --no-record"), 0);
        assert!(ran.stdout.contains("Q"), "{}", ran.shown());
        folder.expect(&format!("cleanup {workload} --db {url}"), 0);
        folder.expect(&format!("olap {workload} {size} --db {url} --no-record"), 4);
    }
}

#[test]
fn the_queries_of_flights_return_the_same_rows_on_every_database() {
    same_rows_everywhere("flights", FLIGHTS, 15, &[]);
}

#[test]
fn the_queries_of_tpch_like_return_the_same_rows_on_every_database() {
    same_rows_everywhere("tpch_like", TPCH_LIKE, 22, EMPTY_AT_THIS_SCALE);
}

/// Conditions so rare that so few rows do not meet them: suppliers of one nation, very large orders.
const EMPTY_AT_THIS_SCALE: &[&str] = &["Q11", "Q18"];

/// Two copies of the flights, in SQLite.
fn two_copies(folder: &Folder) -> [String; 2] {
    let urls = ["one.db", "two.db"].map(|name| file(folder, name));
    folder.expect(&format!("prepare flights {FLIGHTS} --seed 7 --no-record --db {}", urls[0]), 0);
    std::fs::copy(folder.path().join("one.db"), folder.path().join("two.db")).unwrap();
    urls
}

fn change(folder: &Folder, url: &str, sql: &str) {
    folder.write("change.sql", sql);
    folder.expect(&format!("sql change.sql --db {url} --runs 1 --warmup 0 --no-record"), 0);
}

#[test]
fn a_load_that_is_not_complete_is_refused_before_the_first_query() {
    let folder = Folder::new();
    let [one, two] = two_copies(&folder);
    let refused = |words: &str| {
        let ran = folder.expect(&format!("olap flights {FLIGHTS} --db {one} --db {two} --no-record"), 1);
        assert!(ran.stdout.is_empty() && ran.stderr.contains(words), "{words}: {}", ran.shown());
        assert!(ran.stderr.contains("hint: load it again: assay cleanup flights --db "), "{}", ran.shown());
    };
    change(&folder, &two, "DELETE FROM ontime WHERE FlightDate > '2020-01-01'");
    refused("rows, and 3000 were loaded");
    change(&folder, &two, "DELETE FROM flights_load");
    refused("its load did not finish");
}

#[test]
fn a_wrong_result_is_found_and_named() {
    let folder = Folder::new();
    let [one, two] = two_copies(&folder);
    change(&folder, &two, "UPDATE ontime SET Year = Year + 1 WHERE Year = 2015 AND DayOfWeek = 1");
    let line = format!("olap flights {FLIGHTS} --db {one} --db {two} --query Q9,Q13 --runs 1");
    let ran = folder.expect(&format!("{line} --record a.json"), 1);
    assert!(ran.stdout.contains("Different results of Q9: in row "), "{}", ran.shown());
    assert!(!ran.stdout.contains("Different results of Q13"), "{}", ran.shown());
    assert!(ran.stderr.contains("error: databases that should return the same rows do not"), "{}", ran.shown());
    // The records say the same later.
    let shown = folder.expect("report a.json a-2.json", 0);
    assert!(shown.stdout.contains("Different results of Q9: in row "), "{}", shown.shown());
    let page = folder.expect("report a.json a-2.json --html -", 0);
    assert!(page.stdout.contains("Different results of Q9: in row "));
    // Other data has other results: the queries say nothing about that.
    change(&folder, &two, "DELETE FROM ontime WHERE DayOfWeek = 2");
    change(&folder, &two, "UPDATE flights_load SET row_count = (SELECT COUNT(*) FROM ontime)");
    let ran = folder.expect(&format!("{line} --no-record"), 1);
    assert!(ran.stdout.contains("The databases hold different data"), "{}", ran.shown());
    assert!(!ran.stdout.contains("Different results of"), "{}", ran.shown());
}

#[test]
fn executions_their_order_and_the_first_are_in_the_record() {
    let folder = Folder::new();
    let [one, _] = two_copies(&folder);
    let ran = folder.expect(&format!("olap flights {FLIGHTS} --db {one} --runs 3 --record a.json"), 0);
    for part in
        ["15 queries in the workload's order, each 3 times in a row", "rows: 3,000 ontime", "first ms", "hot ms"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.shown());
    }
    assert_eq!(folder.expect("show a.json", 0).stdout, ran.stdout);
    let record = record(&folder, "a.json");
    assert_eq!(record["cases"]["suite"]["tables"]["ontime"], 3000);
    for case in record["cases"]["cases"].as_array().unwrap() {
        let rounds: Vec<u64> =
            case["executions"].as_array().unwrap().iter().map(|one| one["round"].as_u64().unwrap()).collect();
        assert_eq!(rounds, [1, 2, 3], "{case}");
        assert!(case["result_changed"] == false && !case["answer"].as_array().unwrap().is_empty(), "{case}");
    }
    let json = folder.expect(&format!("olap flights {FLIGHTS} --db {one} --order random --format json --no-record"), 0);
    let case = &json.findings()["cases"]["cases"][3];
    assert!(case["first_ns"].as_u64() > Some(0) && case["hot_ns"].as_u64() > Some(0), "{case}");
    let order = |seed: u64| -> Vec<String> {
        let line = format!("olap flights {FLIGHTS} --db {one} --order random --runs 1 --seed {seed} --no-record");
        let ran: Ran = folder.expect(&line, 0);
        ran.stderr.lines().filter_map(|line| Some(line.split_once(": ")?.0.to_owned())).collect()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

#[test]
fn foreign_tables_return_the_same_rows_and_say_what_is_pushed_down() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    let fresh = |kind: Kind| kind.shared().url(&kind.shared().fresh_database().unwrap());
    let [source, own, apart] = [(); 3].map(|()| fresh(Kind::Postgres));
    let bare = |url: &str| url.split('?').next().unwrap().to_owned();
    let prepare = |url: &str, more: &str| {
        folder.expect(&format!("prepare flights {FLIGHTS} --seed 7 --no-record --db {url} {more}"), 0);
        folder.expect(&format!("check flights {FLIGHTS} --no-record --db {url}"), 0);
    };
    prepare(&source, "");
    prepare(&own, "--foreign self --indexes on");
    let with_password = bare(&source).replacen('@', ":hushhush@", 1);
    folder.expect(&format!("prepare flights --foreign {with_password} --db {apart} --record p.json"), 0);
    assert!(!std::fs::read_to_string(folder.path().join("p.json")).unwrap().contains("hushhush"));
    let mut all = vec![source.clone(), own.clone(), apart.clone()];
    if Kind::MariaDb.present() && testkit::installed("/usr/lib/postgresql/15/lib/mysql_fdw.so") {
        let [rows, wrapped] = [Kind::MariaDb, Kind::Postgres].map(fresh);
        prepare(&rows, "");
        prepare(&wrapped, &format!("--foreign {}", bare(&rows)));
        all.push(wrapped);
    }
    let urls: String = all.iter().map(|url| format!(" --db {url}")).collect();
    let ran = folder.expect(&format!("olap flights {FLIGHTS} --runs 1 --record a.json{urls}"), 0);
    assert!(ran.stdout.contains("All databases returned the same rows."), "{}", ran.shown());
    assert!(ran.stdout.contains("fully pushed down"), "{}", ran.shown());
    let pushed_down = |record: &Value, name: &str| {
        let cases = record["cases"]["cases"].as_array().unwrap();
        cases.iter().find(|case| case["name"] == name).unwrap()["pushed_down"].clone()
    };
    let [of_source, of_own, of_apart] = ["a.json", "a-2.json", "a-3.json"].map(|name| record(&folder, name));
    assert_eq!(pushed_down(&of_source, "Q4"), Value::Null);
    for found in [of_own, of_apart] {
        // Counted there; and averages of a subquery, which postgres_fdw calculates here.
        assert_eq!((pushed_down(&found, "Q4"), pushed_down(&found, "Q0")), (true.into(), false.into()));
    }
    let ran = folder.expect(&format!("sql 'SELECT COUNT(*) FROM ontime' --runs 1 --no-record --db {own}"), 0);
    assert!(ran.stdout.contains("fully pushed down"), "{}", ran.shown());
    for (url, foreign, code, words) in [
        (&file(&folder, "one.db"), "self", 2, "only PostgreSQL has foreign tables"),
        (&source, "sqlite:flights.db", 2, "--foreign is self, or a URL"),
        (&source, "postgres://app:secret@host/bench --files files", 2, "--foreign postgres://app:***@host/bench: "),
    ] {
        let ran = folder.expect(&format!("prepare flights --foreign {foreign} --no-record --db {url}"), code);
        assert!(ran.stderr.contains(words) && !ran.shown().contains("secret"), "{foreign}: {}", ran.shown());
    }
    let unreachable = "postgres://app:hushhush@127.0.0.1:1/bench";
    for (foreign, url, words, hint) in [
        (
            &*with_password,
            &apart,
            "already exists",
            "hint: prepared before? remove it first: assay cleanup flights --db ",
        ),
        (unreachable, &fresh(Kind::Postgres), "\"127.0.0.1\", port 1 failed", "hint: this server cannot reach that of"),
    ] {
        let ran = folder.expect(&format!("prepare flights --foreign {foreign} --no-record --db {url}"), 4);
        assert!(ran.stderr.contains(words) && ran.stderr.contains(hint), "{}", ran.shown());
        assert!(!ran.shown().contains("hushhush"), "{}", ran.shown());
    }
    for url in &all {
        folder.expect(&format!("cleanup flights --db {url}"), 0);
        folder.expect(&format!("olap flights {FLIGHTS} --db {url} --no-record"), 4);
    }
}

#[test]
fn parallel_streams_execute_every_query_and_have_figures() {
    let folder = Folder::new();
    let urls = [file(&folder, "one.db")].into_iter();
    let urls = urls.chain(Kind::Postgres.present().then(|| databases(&folder).remove(0)));
    let urls: Vec<String> = urls.collect();
    for url in &urls {
        folder.expect(&format!("prepare tpch_like --scale 0.002 --seed 7 --no-record --db {url}"), 0);
    }
    let all: String = urls.iter().map(|url| format!(" --db {url}")).collect();
    let line = format!("olap tpch_like --scale 0.002 --runs 1 --streams 2{all}");
    let ran = folder.expect(&format!("{line} --parameters 1 --record a.json"), 0);
    for part in
        ["then 2 streams in parallel", "2 streams in parallel: 44 queries in ", " per hour.", "power ", "throughput "]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.shown());
    }
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("but not those, and not comparable with published results: power "), "{}", ran.shown());
    let found = record(&folder, "a.json");
    let suite = &found["cases"]["suite"];
    assert_eq!(suite["scale"], 0.002);
    let streams = suite["streams"].as_array().unwrap();
    let names = |stream: &Value| -> Vec<String> {
        stream["queries"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let [mut one, mut other] = [names(&streams[0]), names(&streams[1])];
    assert_ne!(one, other);
    one.sort();
    other.sort();
    assert!(one == other && one.len() == 22, "{one:?}");
    // The standard parameters: the same statements, whose rows are compared.
    let figures = |line: &str| {
        let ran = folder.expect(&format!("{line} --format json --no-record"), 0);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let of_one = |found: &Value| found["cases"]["figures"].clone();
        match report["entries"].as_array() {
            Some(entries) => of_one(&entries[0]["findings"]),
            None => of_one(&report),
        }
    };
    let found = figures(&line);
    let number = |name: &str| found[name].as_f64().unwrap();
    let composite = (number("power") * number("throughput")).sqrt();
    assert!((number("composite") / composite - 1.0).abs() < 1e-9, "{found}");
    assert!((number("throughput") / (0.002 * number("queries_per_hour")) - 1.0).abs() < 1e-9, "{found}");
    // A part of the queries has no such figures, and neither has a workload without a scale factor.
    let found = figures(&format!("{line} --query Q1,Q6"));
    assert!(found["power"].is_null() && found["queries_per_hour"].as_f64() > Some(0.0), "{found}");
    // What takes too long in a stream is named there.
    let ran = folder.expect(&format!("{line} --timeout 1ms --no-record"), 0);
    assert!(ran.stdout.contains(" has no result in stream 1: "), "{}", ran.shown());
    assert!(!ran.stdout.contains("throughput 0") && ran.stdout.contains("has no throughput"), "{}", ran.shown());
}

/// Rows with a fraction that databases calculate with different precision: more than are kept in memory, and more than
/// stand in a record, of which one differs.
const LARGE: &str = r#"
local TEXTS = {
  sqlite = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
    .. "SELECT i, (i + %s) / 7e0 AS part, printf('%%0150d', i) AS t FROM n",
  pgsql = "SELECT i, i / 7e0 AS part, lpad(i::text, 150, '0') AS t FROM generate_series(1, %d) AS i",
}
function queries()
  local text = TEXTS[sysbench.sql.driver():name()]
  assay.query { name = "large", text = text:format(400000, "0") }
  assay.query { name = "wrong", text = text:format(1000, "(i = 77)") }
end
"#;

#[test]
fn a_result_that_does_not_fit_into_memory_is_compared_while_it_arrives() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    folder.write("large.lua", LARGE);
    let urls = [databases(&folder).remove(0), file(&folder, "large.db")];
    let all: String = urls.iter().map(|url| format!(" --db {url}")).collect();
    let ran = folder.expect(&format!("olap ./large.lua --runs 1 --record a.json{all}"), 1);
    assert!(ran.stdout.contains("Different results of wrong: the hashes of the rows of "), "{}", ran.shown());
    assert!(!ran.stdout.contains("Different results of large"), "{}", ran.shown());
    assert!(ran.stdout.contains("The result of large is so large that its rows were hashed "), "{}", ran.shown());
    for name in ["a.json", "a-2.json"] {
        let found = record(&folder, name);
        let cases = found["cases"]["cases"].as_array().unwrap();
        assert_eq!((&cases[0]["rows"], &cases[0]["large_result"]), (&400_000.into(), &true.into()), "{}", cases[0]);
        assert!(cases[0]["answer"].is_null() && cases[1]["large_result"].is_null(), "{found}");
    }
}

#[test]
fn a_query_that_takes_too_long_is_a_result() {
    let folder = Folder::new();
    for url in databases(&folder) {
        folder.expect(&format!("prepare flights --flights 20000 --no-record --db {url}"), 0);
        let line = format!("olap flights --flights 20000 --db {url} --query Q8 --timeout 1ms --no-record");
        let ran = folder.expect(&line, 0);
        assert!(
            ran.stdout.contains("timed out") && ran.stdout.contains("Q8 took too long: "),
            "{url}: {}",
            ran.shown()
        );
        folder.expect(&format!("cleanup flights --db {url}"), 0);
    }
}

#[test]
fn mistakes_are_refused_with_a_hint() {
    let folder = Folder::new();
    let [one, _] = two_copies(&folder);
    for (line, code, words) in [
        ("olap flights --no-record", 2, "olap needs a database"),
        ("olap ycsb --db sqlite:one.db --no-record", 2, "workload ycsb has no queries"),
        ("olap flights --db sqlite:one.db --query Q99 --no-record", 2, "there is no such query"),
        ("olap flights --db sqlite:one.db --timeout 0s --no-record", 2, "--timeout 0s: nothing would have the time"),
        ("olap flights --db sqlite:one.db --cold --no-record", 2, "was not started by `assay server`"),
        ("olap flights --db sqlite:one.db --db sqlite:two.db --format csv --no-record", 2, "is for one database"),
        ("olap flights --db sqlite:none.db --no-record", 4, "hint: load them: assay prepare flights --db sqlite:"),
        ("olap tpch_like --scale 0.0001 --db sqlite:one.db --no-record", 2, "--scale is a number"),
    ] {
        let ran = folder.expect(line, code);
        assert!(ran.stderr.contains(words), "{line}: {}", ran.shown());
    }
    // The server's refusal of a query is a result, too.
    change(&folder, &one, "ALTER TABLE ontime RENAME COLUMN Dest TO Destination");
    let ran = folder.expect(&format!("olap flights {FLIGHTS} --db {one} --query Q8,Q9 --no-record"), 4);
    assert!(
        ran.stdout.contains("Q8 failed: ") && ran.stderr.contains("the server refused query Q8"),
        "{}",
        ran.shown()
    );
}

#[test]
fn the_published_files_are_loaded_and_others_refused() {
    let folder = Folder::new();
    let [one, _] = two_copies(&folder);
    // What the files look like, from generated flights: quoted texts, a comma at the end of every line.
    folder.write("columns.lua", WRITE_FILES);
    std::fs::create_dir(folder.path().join("files")).unwrap();
    folder.expect(&format!("exec ./columns.lua print --db {one}"), 0);
    let other = file(&folder, "other.db");
    folder.expect(&format!("prepare flights --files files --no-record --db {other}"), 0);
    folder.expect(&format!("check flights --files files --no-record --db {other}"), 0);
    let ran = folder.expect(&format!("olap flights --db {one} --db {other} --runs 1 --no-record"), 0);
    assert!(ran.stdout.contains("All databases returned the same rows."), "{}", ran.shown());

    let empty = file(&folder, "empty.db");
    let refused = |words: &str, code: i32| {
        let ran = folder.expect(&format!("prepare flights --files files --no-record --db {empty}"), code);
        assert!(ran.stderr.contains(words), "{words}: {}", ran.shown());
        folder.expect(&format!("cleanup flights --db {empty}"), 0);
    };
    let text = std::fs::read_to_string(folder.path().join("files/1.csv")).unwrap();
    folder.write("files/2.csv", &text.replacen("FlightDate", "Date", 1));
    refused("column 6 of files/2.csv is Date, and not FlightDate", 2);
    folder.write("files/2.csv", "a,b\n1,2\n");
    refused("files/2.csv has 2 columns, and not 109", 2);
    let (head, rest) = text.split_once('\n').unwrap();
    folder.write("files/2.csv", &format!("{head}\nx{rest}"));
    refused("line 2 of files/2.csv: Year is not a number: x20", 2);
    for name in ["1.csv", "2.csv"] {
        std::fs::remove_file(folder.path().join("files").join(name)).unwrap();
    }
    refused("there is no file that ends in .csv", 2);
}

/// Writes the flights of a database as the published files have them.
const WRITE_FILES: &str = r#"
local data = assay.share("flights_data")
sysbench.cmdline.commands = { print = { function()
  local con = sysbench.sql.driver():connect()
  local names = {}
  for i, column in ipairs(data.columns) do names[i] = column.name end
  local file = io.open("files/1.csv", "w")
  local heads = {}
  for i, name in ipairs(names) do heads[i] = '"' .. (i == 7 and "UniqueCarrier" or name) .. '"' end
  file:write(table.concat(heads, ",") .. ",\n")
  local found = con:query("SELECT " .. table.concat(names, ", ") .. " FROM ontime")
  for _ = 1, found.nrows do
    local row, cells = found:fetch_row(), {}
    for i, column in ipairs(data.columns) do
      local value = row[i]
      if value == nil then cells[i] = ""
      elseif column.is_number then cells[i] = i > 30 and ("%.2f"):format(value) or tostring(value)
      else cells[i] = '"' .. value .. '"' end
    end
    file:write(table.concat(cells, ",") .. ",\r\n")
  end
  file:close()
end } }
function event() end
"#;

/// The recipe has the queries as text: it times statements, and has no workload.
#[test]
fn the_recipe_has_the_queries_of_the_workload() {
    let folder = Folder::new();
    let [one, _] = two_copies(&folder);
    folder.expect(&format!("olap flights --db {one} --runs 1 --record a.json"), 0);
    let words = |sql: &Value| sql.as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let record = record(&folder, "a.json");
    let cases = record["cases"]["cases"].as_array().unwrap().iter();
    let of_workload: Vec<String> = cases.map(|case| words(&case["sql"])).collect();
    let recipe: toml::Table = include_str!("../../../../recipes/analytics.toml").parse().unwrap();
    let cases = recipe["run"]["case"].as_array().unwrap().iter();
    assert_eq!(cases.map(|case| case["sql"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), of_workload);
}

/// The example of docs/olap.md.
#[test]
fn a_lua_file_declares_queries_of_its_own() {
    let folder = Folder::new();
    let page = include_str!("../../../../docs/olap.md");
    let (_, example) = page.split_once("```lua\n").unwrap();
    folder.write("numbers.lua", example.split_once("```").unwrap().0);
    let url = file(&folder, "numbers.db");
    for sql in [
        "CREATE TABLE numbers AS SELECT 7 AS n UNION SELECT 11 UNION SELECT 12",
        "CREATE TABLE numbers_load AS SELECT 'numbers' AS table_name, 3 AS row_count",
    ] {
        change(&folder, &url, sql);
    }
    folder.expect(&format!("olap ./numbers.lua --db {url} --low 11 --record a.json"), 0);
    let case = &record(&folder, "a.json")["cases"]["cases"][0];
    assert_eq!((&case["name"], &case["answer"]), (&"large".into(), &serde_json::json!([["1"]])), "{case}");
    for (queries, code, words) in [
        ("sysbench.sql.driver():connect()", 3, "queries() uses the database, or waits"),
        ("assay.query { name = 'a' }", 3, "`text` has to be a text"),
        ("for _ = 1, 2 do assay.query { name = 'a', text = 'SELECT 1' } end", 3, "there are two queries of this name"),
        ("", 3, "declared no query"),
    ] {
        folder.write("wrong.lua", &format!("function queries() {queries} end"));
        let ran = folder.expect(&format!("olap ./wrong.lua --db {url} --no-record"), code);
        assert!(ran.stderr.contains(words), "{queries}: {}", ran.shown());
    }
}

#[test]
fn the_size_of_the_tables_is_looked_up_and_an_option_may_only_repeat_it() {
    let folder = Folder::new();
    folder.expect("prepare tpch_like --scale 0.002 --no-record --quiet --db sqlite:t.db", 0);
    let olap = |options: &str, code| {
        folder.expect(
            &format!("olap tpch_like --db sqlite:t.db --query Q1 --runs 1 --format json --no-record {options}"),
            code,
        )
    };
    assert_eq!(olap("", 0).findings()["options"]["scale"], 0.002);
    olap("--scale 0.002", 0);
    let wrong = "--scale 1: the tables were loaded at scale 0.002: ";
    assert!(olap("--scale 1", 2).stderr.contains(wrong));
    let ran = folder.expect("run tpch_like --scale 1 --db sqlite:t.db --transactions 1 --no-record", 2);
    assert!(ran.stderr.contains(wrong), "{}", ran.shown());
    folder.expect("check tpch_like --db sqlite:t.db --no-record", 0);

    let flights = "--db sqlite:f.db --no-record";
    folder.expect(&format!("prepare flights --flights 900 --first-year 2001 --years 3 {flights}"), 0);
    for command in ["olap flights --query Q1 --runs 1", "run flights --transactions 1"] {
        let ran = folder.expect(&format!("{command} {flights} --first-year 1990"), 2);
        let wrong = "--first-year 1990: the table has flights of the years 2001 to 2003, and not to 1999: \
                     give --first-year 2001 --years 3";
        assert!(ran.stderr.contains(wrong), "{}", ran.shown());
        let ran = folder.expect(&format!("{command} {flights} --first-year 2001 --years 3 --format json"), 0);
        assert_eq!(ran.findings()["options"]["flights"], 900);
        // A part of the years is said to be one.
        let ran = folder.expect(&format!("{command} {flights} --first-year 2001 --years 2 --format json"), 0);
        assert_eq!(ran.findings()["asked"]["years"], 2);
    }
}

/// Counts for minutes.
const ENDLESS: &str = r#"--- One query that takes minutes, and one that takes no time.
local count = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < %d) SELECT count(*) FROM c"
function queries()
  assay.query{ name = "long", text = count:format(10000000000) }
  assay.query{ name = "short", text = count:format(1) }
end
"#;

#[test]
fn a_database_in_this_process_keeps_the_time_limit_and_is_interrupted() {
    let folder = Folder::new();
    folder.write("endless.lua", ENDLESS);
    let ran = folder.expect("olap ./endless.lua --db sqlite:a.db --runs 1 --timeout 200ms --record r.json", 0);
    assert!(ran.stderr.contains("long: timed out\n"), "{}", ran.shown());
    assert_eq!(rows_of_finished(&record(&folder, "r.json")), ["short"]);
    let begun = std::time::Instant::now();
    let started = folder.start("olap ./endless.lua --db sqlite:b.db --query long --record s.json");
    // It has opened its database.
    while !folder.path().join("b.db").exists() {
        std::thread::yield_now();
    }
    started.signal(nix::sys::signal::Signal::SIGINT);
    let ran = started.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.shown());
    assert!(!ran.stderr.contains("did not end within") && !ran.stderr.contains("recorded"), "{}", ran.shown());
    assert!(begun.elapsed() < std::time::Duration::from_secs(60));
}

fn rows_of_finished(record: &Value) -> Vec<String> {
    let cases = record["cases"]["cases"].as_array().unwrap().iter().filter(|case| case["rows"].is_u64());
    cases.map(|case| case["name"].as_str().unwrap().to_owned()).collect()
}
