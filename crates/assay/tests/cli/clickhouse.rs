//! ClickHouse: a real server, of the version that the distribution has.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::ClickHouse;

use crate::common::Folder;

/// One server for all tests here, each of which has tables of its own.
fn shared() -> &'static ClickHouse {
    static SERVER: OnceLock<ClickHouse> = OnceLock::new();
    SERVER.get_or_init(|| ClickHouse::start().expect("the server starts"))
}

fn record(folder: &Folder, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.path().join(name)).unwrap()).unwrap()
}

/// Loads a workload into ClickHouse and SQLite, and compares what its queries return. The record is `a.json`.
pub(crate) fn same_rows_as_on_sqlite(
    folder: &Folder,
    url: &str,
    workload: &str,
    size: &str,
    (queries, empty): (usize, &[&str]),
) {
    let file = format!("sqlite:{}?synchronous=off", folder.path().join("olap.db").display());
    for (url, sessions) in [(url, 3), (&*file, 1)] {
        let line = format!("prepare {workload} {size} --seed 7 --sessions {sessions} --no-record --db {url}");
        folder.expect(&line, 0);
        folder.expect(&format!("check {workload} {size} --no-record --db {url}"), 0);
    }
    let line = format!("olap {workload} {size} --db {url} --db {file} --seed 1 --runs 2 --record a.json");
    let ran = folder.expect(&line, 0);
    assert!(ran.stdout.contains("All databases returned the same rows."), "{}", ran.shown());
    assert!(ran.stdout.contains("ClickHouse "), "{}", ran.shown());
    let found = record(folder, "a.json");
    let cases = found["cases"]["cases"].as_array().unwrap();
    let without = cases.iter().filter(|case| case["rows"] == 0).map(|case| case["name"].as_str().unwrap());
    assert_eq!((cases.len(), &without.collect::<Vec<_>>()[..]), (queries, empty), "{cases:?}");
}

#[test]
fn flights_return_the_same_rows_as_on_sqlite() {
    if !ClickHouse::present() {
        return;
    }
    let folder = Folder::new();
    let url = shared().url("app");
    same_rows_as_on_sqlite(&folder, &url, "flights", "--flights 5000", (15, &[]));
    let server = &record(&folder, "a.json")["environment"]["servers"][0];
    assert_eq!(server["product"], "ClickHouse");
    // Every query reads the one table, and some read it twice.
    let cases = &record(&folder, "a.json")["cases"]["cases"];
    let reads = |case: &Value| case["executions"][0]["read_rows"].as_u64().unwrap();
    assert!(cases.as_array().unwrap().iter().any(|case| reads(case) == 5000), "{cases}");
    assert!(server["settings"]["max_threads"].is_string(), "{server}");
    // Each session has an order of its own: of 30 queries one of them executes 15 or more, and so all.
    let ran = folder.expect(&format!("run flights --db {url} --transactions 30 --sessions 2 --no-record"), 0);
    assert!(ran.stdout.contains("Q14"), "{}", ran.shown());
    folder.expect(&format!("cleanup flights --db {url}"), 0);
    folder.expect(&format!("olap flights --db {url} --no-record"), 4);
}

#[test]
fn tpch_like_returns_the_same_rows_as_on_sqlite() {
    if !ClickHouse::present() {
        return;
    }
    let folder = Folder::new();
    let size = "--scale 0.005";
    // The conditions of these are so rare that so few rows do not meet them.
    same_rows_as_on_sqlite(&folder, &shared().url("app"), "tpch_like", size, (22, &["Q11", "Q18"]));
    // Other parameters, among them some for which nothing is found.
    let file = format!("sqlite:{}", folder.path().join("olap.db").display());
    let url = shared().url("app");
    for parameters in [1, 2] {
        let line =
            format!("olap tpch_like {size} --parameters {parameters} --db {url} --db {file} --runs 1 --no-record");
        let ran = folder.expect(&line, 0);
        assert!(ran.stdout.contains("All databases returned the same rows."), "{}", ran.shown());
    }
    folder.expect(&format!("cleanup tpch_like --db {url}"), 0);
}

/// Values of all types, by rows in a statement's text, a prepared statement, and a loader.
const TYPES: &str = r#"
local COLUMNS = {
  { "i", "Int64", "-9223372036854775807" }, { "u", "UInt8", "255" }, { "f", "Float64", "0.5" }, { "t", "String", "it's \\ \n" },
  { "x", "FixedString(4)", "ab" }, { "d", "Date", "2024-02-29" }, { "s", "DateTime", "2024-02-29 23:59:58" },
  { "p", "Decimal(18, 2)", "-12.50" }, { "e", "Enum8('a' = 1, 'b' = -2)", "b" }, { "n", "Nullable(Int16)" },
}
function event()
  local con = sysbench.sql.driver():connect()
  con:query("DROP TABLE IF EXISTS all_types")
  local names, kinds, values, marks = {}, {}, {}, {}
  for i, column in ipairs(COLUMNS) do
    names[i], kinds[i], values[i], marks[i] = column[1], column[1] .. " " .. column[2], column[3], "?"
  end
  con:query("CREATE TABLE all_types (" .. table.concat(kinds, ", ") .. ") ENGINE = MergeTree ORDER BY i;")
  local list = table.concat(names, ", ")
  con:query("INSERT INTO all_types VALUES (-9223372036854775807, 255, 5e-1, 'it\\'s \\\\ \\n', 'ab', '2024-02-29', "
    .. "'2024-02-29 23:59:58', -12.5, 'b', NULL)")
  con:prepare("INSERT INTO all_types (" .. list .. ") VALUES (" .. table.concat(marks, ", ") .. ")", ("t"):rep(#COLUMNS))
    :perform(unpack(values, 1, #COLUMNS))
  local loader = con:loader("all_types", list)
  loader:row(unpack(values, 1, #COLUMNS))
  loader:done()
  local found = con:query("SELECT " .. list .. " FROM all_types")
  if found.nrows ~= 3 then error("there are " .. found.nrows .. " rows", 0) end
  for _ = 1, 3 do
    local row = found:fetch_row()
    for i, column in ipairs(COLUMNS) do
      if row[i] ~= column[3] then error(("%s: %s"):format(column[1], tostring(row[i])), 0) end
    end
  end
  -- More than one block, and rows that are only counted.
  local many = con:query_row("SELECT sum(number), count() FROM (SELECT number FROM system.numbers LIMIT 200000)")
  if tonumber(many) ~= 19999900000 then error("the sum is " .. tostring(many), 0) end
  if con:query("SELECT number, toString(number) FROM system.numbers LIMIT 200000").nrows ~= 200000 then error("rows are missing", 0) end
  con:query("DROP TABLE all_types")
end
"#;

#[test]
fn values_of_all_types_arrive_as_they_are() {
    if !ClickHouse::present() {
        return;
    }
    let folder = Folder::new();
    folder.write("types.lua", TYPES);
    for url in [shared().url("app"), shared().http_url("app")] {
        folder.expect(&format!("run ./types.lua --db {url} --transactions 1 --no-record"), 0);
    }
}

#[test]
fn what_the_server_refuses_has_a_cause_and_advice() {
    if !ClickHouse::present() {
        return;
    }
    let folder = Folder::new();
    let server = shared();
    let url = server.url("app");
    folder.expect(&format!("sql 'SELECT 1' --db {} --runs 1 --no-record", server.url("jane:secret")), 0);
    let slow = "function queries() assay.query { name = 'slow', text = 'SELECT max(number) FROM system.numbers' } end";
    folder.write("slow.lua", slow);
    let jane = server.url("jane:wrong");
    for (line, code, words) in [
        (format!("sql 'SELECT 1' --db {jane} --runs 1 --no-record"), 4, &["(193)"][..]),
        (
            format!("sql 'SELECT a FROM none' --db {url} --runs 1 --no-record"),
            4,
            &["sql failed: Table default.none doesn't exist."],
        ),
        (
            format!(
                "sql 'SELECT uniqExact(number) FROM system.numbers' --session-sql 'SET max_memory_usage = 1000000' --db {url} --runs 1 --no-record"
            ),
            4,
            &["Memory limit", "; raise it with"],
        ),
        (
            format!("sql 'INSERT INTO t VALUES (now())' --db {url} --runs 1 --no-record"),
            4,
            &["a number, a text or NULL expected"],
        ),
        (
            format!("sql 'SELECT [1]' --db {url} --runs 1 --no-record"),
            4,
            &["a type that is not supported: Array(UInt8)"],
        ),
        (format!("prepare flights --indexes on --db {url} --no-record"), 2, &["--indexes: ClickHouse has none"]),
        (
            format!("run oltp_read_only --db {url} --no-record"),
            3,
            &["the OLTP workloads have no dialect for clickhouse"],
        ),
        (
            format!("run ycsb --db {url} --prepare --no-record"),
            4,
            &["(62, syntax)", "only flights and tpch_like are written for it"],
        ),
        (
            format!("run oltp_read_only --db {url}?max_threads=1 --no-record"),
            2,
            &["unknown option `max_threads`", "--session-sql"],
        ),
    ] {
        let ran = folder.run(&line);
        assert!(
            ran.code == Some(code) && words.iter().all(|words| ran.shown().contains(words)),
            "{line}: {}",
            ran.shown()
        );
        assert!(!ran.shown().contains("secret") && !ran.shown().contains("jane:wrong"), "{}", ran.shown());
    }
    let ran = folder.expect(&format!("olap ./slow.lua --db {url} --timeout 1s --no-record"), 0);
    assert!(ran.stdout.contains("slow took too long: "), "{}", ran.shown());
}

pub(crate) const ENDLESS: &str =
    "function event() sysbench.sql.driver():connect():query('SELECT max(number) FROM system.numbers') end";

/// Waits until the server executes so many queries of others.
pub(crate) fn wait_for_queries(folder: &Folder, url: &str, number: u32) {
    // The query that counts is one of them; it is refused until the number is right.
    let sql = format!("SELECT throwIf(count() <> {}) FROM system.processes", number + 1);
    let line = format!("sql '{sql}' --runs 1 --no-record --db {url}");
    let begun = Instant::now();
    while folder.run(&line).code != Some(0) {
        assert!(begun.elapsed() < Duration::from_secs(90), "there never were {number} queries");
    }
}

#[test]
fn a_query_ends_with_its_run_and_a_run_with_its_server() {
    if !ClickHouse::present() {
        return;
    }
    let folder = Folder::new();
    folder.write("endless.lua", ENDLESS);
    // Another one runs on this machine.
    shared();
    let mut server = ClickHouse::start().unwrap();
    let url = server.url("app");
    // So many that those in progress at a sample do not show, however slow the machine is.
    // Nobody else is there: the server's own counter agrees with ours, without what telemetry asks.
    folder.write("one.lua", "function event() con = con or sysbench.sql.driver():connect() con:query('SELECT 1') end");
    let line = format!("run ./one.lua --db {url} --transactions 3000 --no-record --telemetry full --format json");
    let found = folder.expect(&line.replace("--no-record", "--record one.json"), 0).findings();
    let facts = &record(&folder, "one.json")["environment"]["servers"][0]["facts"];
    assert!(facts.to_string().contains(server.folder().to_str().unwrap()), "{facts}");
    let scopes = found["stages"][0]["telemetry"].as_array().unwrap();
    let metrics = || scopes.iter().flat_map(|scope| scope["metrics"].as_array().unwrap());
    let statements = metrics().find(|one| one["metric"] == "statements").unwrap();
    let per_transaction = statements["per_transaction"].as_f64().unwrap();
    assert!((0.97..1.03).contains(&per_transaction), "{statements}");
    // That is the time of this server's process.
    assert!(metrics().any(|one| one["metric"] == "cpu_us"), "{scopes:?}");
    // Telemetry's own queries would be taken for those of the run.
    let run = format!("run ./endless.lua --db {url} --time 10m --no-record --telemetry off");
    let started = folder.start(&format!("{run} --grace 100ms"));
    wait_for_queries(&folder, &url, 1);
    started.signal(Signal::SIGINT);
    assert_eq!(started.finish().code, Some(130));
    wait_for_queries(&folder, &url, 0);
    let started = folder.start(&format!("{run} --reconnect-time 1s"));
    wait_for_queries(&folder, &url, 1);
    server.kill().unwrap();
    let ran = started.finish();
    assert!(ran.code == Some(4) && ran.stderr.contains("connection"), "{}", ran.shown());
}

/// Per transaction: a query of a table with 1,000 rows, another text of the same query each time, rows that are
/// inserted, and a query that fails.
const COUNTED: &str = r#"
sysbench.cmdline.options = { mark = { "Name of a column", "none" } }
function event()
  con = con or sysbench.sql.driver():connect()
  local mark = sysbench.opt.mark
  con:query(("SELECT sum(a) AS %s, '%d' FROM counted WHERE a >= %d"):format(mark, sysbench.rand.uniform(1, 1000), sysbench.rand.uniform(0, 9)))
  con:query("INSERT INTO counted_rows SELECT a FROM counted WHERE a < 3")
  pcall(con.query, con, ("SELECT throwIf(a = 7) AS %s FROM counted"):format(mark))
end
"#;

#[test]
fn the_servers_own_log_counts_the_statements_of_a_run() {
    if !ClickHouse::present() {
        return;
    }
    const TRANSACTIONS: u64 = 300;
    let folder = Folder::new();
    folder.write("counted.lua", COUNTED);
    let server = shared();
    let rows = "SELECT toUInt32(number) AS a FROM system.numbers LIMIT 1000";
    for sql in [
        &format!("CREATE TABLE counted ENGINE = MergeTree ORDER BY a AS {rows}"),
        "CREATE TABLE counted_rows (a UInt32) ENGINE = MergeTree ORDER BY a",
    ] {
        folder.expect(&format!("sql '{sql}' --runs 1 --warmup 0 --no-record --db {}", server.url("app")), 0);
    }
    let run = |url: &str, more: &str| {
        let line =
            format!("run ./counted.lua --db {url} --transactions {TRANSACTIONS} --sessions 3 --no-record {more}");
        folder.expect(&format!("{line} --format json"), 0).findings()
    };
    let silent = run(&server.url("app"), "");
    let absent = silent["sampling"]["absent"].to_string();
    assert!(absent.contains("statements by text") && absent.contains("SET log_queries = 1"), "{absent}");
    // The second run begins in the second in which the first one ends.
    for (url, mark) in [(server.url("app"), "one"), (server.url("app"), "one"), (server.http_url("app"), "two")] {
        let found = run(&url, &format!("--mark {mark} --session-sql 'SET log_queries = 1'"));
        let statements = found["stages"][0]["telemetry"][0]["statements"].as_array().unwrap();
        let of = |start: &str| {
            let all: Vec<&Value> =
                statements.iter().filter(|one| one["text"].as_str().unwrap().starts_with(start)).collect();
            assert_eq!(all.len(), 1, "{start}: {statements:?}");
            ["calls", "failures", "read_rows_per_call", "read_bytes_per_call", "rows_per_call", "memory_bytes_max"]
                .map(|name| all[0][name].as_f64().unwrap())
        };
        let transactions = TRANSACTIONS as f64;
        let [calls, failures, read_rows, read_bytes, rows, memory] = of(&format!("SELECT sum(a) AS {mark}, ? FROM"));
        assert_eq!([calls, failures, read_rows, read_bytes, rows], [transactions, 0.0, 1000.0, 4000.0, 1.0], "{url}");
        assert!(memory > 0.0);
        let [calls, failures, _, _, rows, _] = of("INSERT INTO counted_rows SELECT");
        assert_eq!([calls, failures, rows], [transactions, 0.0, 3.0], "{url}");
        let [calls, failures, ..] = of(&format!("SELECT throwIf(a = ?) AS {mark} FROM"));
        assert_eq!([calls, failures], [0.0, transactions], "{url}");
        // Nothing of telemetry's own is there.
        assert!(!statements.iter().any(|one| one["text"].as_str().unwrap().contains("system.")), "{statements:?}");
    }
    // The native protocol says the same; a query over HTTP says nothing on this version.
    let sum = "SELECT sum(a) FROM counted";
    let found = folder.expect(&format!("sql '{sum}' --runs 2 --record read.json --db {}", server.url("app")), 0);
    assert!(found.stdout.contains("rows read") && found.stdout.contains("MB read"), "{}", found.shown());
    for execution in record(&folder, "read.json")["cases"]["cases"][0]["executions"].as_array().unwrap() {
        assert_eq!((&execution["read_rows"], &execution["read_bytes"]), (&1000.into(), &4000.into()), "{execution}");
    }
    let url = server.http_url("app") + "?wait_end_of_query=1";
    let found = folder.expect(&format!("sql '{sum}' --runs 2 --no-record --db {url}"), 0);
    assert!(!found.stdout.contains("rows read"), "{}", found.shown());
    // Calculated once per minute, for the first time within two minutes of the start.
    // The server does the waiting: asking without a pause kept a CPU busy.
    let sql = "SELECT sleep(2), throwIf(present = 0) FROM (SELECT count() AS present FROM system.asynchronous_metrics)";
    let begun = Instant::now();
    while folder.run(&format!("sql '{sql}' --runs 1 --no-record --db {}", server.url("app"))).code != Some(0) {
        assert!(begun.elapsed() < Duration::from_secs(120), "there are no asynchronous metrics");
    }
    let found = run(&server.http_url("app"), "");
    let metrics = found["stages"][0]["telemetry"][0]["metrics"].as_array().unwrap();
    let last = |name: &str| {
        metrics.iter().find(|one| one["metric"] == name).unwrap_or_else(|| panic!("{name}"))["last"].as_f64().unwrap()
    };
    assert!(last("partition_parts_max") >= 1.0, "{metrics:?}");
    // It is at most a minute old, and the machine may be busy.
    let up = (last("uptime_us") / 1e6) as u64;
    let sql = format!("SELECT throwIf(uptime() < {up} OR uptime() > {})", up + 120);
    folder.expect(&format!("sql '{sql}' --runs 1 --no-record --db {}", server.url("app")), 0);
    assert!(last("tracked_memory_bytes") > 0.0, "{metrics:?}");
    // Those of the allocator are not true on this version, and there are no replicas.
    let absent = found["sampling"]["absent"].to_string();
    let is_absent = |name: &str| absent.contains(&format!("asynchronous_metrics.{name}"));
    assert!(is_absent("MemoryResident") && is_absent("jemalloc.allocated") && !absent.contains("replica"), "{absent}");
    for table in ["counted", "counted_rows"] {
        let line = format!("sql 'DROP TABLE {table}' --runs 1 --warmup 0 --no-record --db {}", server.url("app"));
        folder.expect(&line, 0);
    }
}

#[test]
fn a_run_starts_a_server_of_its_own() {
    if !ClickHouse::present() {
        return;
    }
    let (folder, lab) = (Folder::new(), testkit::lab_folder().unwrap());
    let run = |settings: &str, code| {
        let line = format!(
            "run flights --server clickhouse --flights 300 --prepare --transactions 15 --no-record --format json {settings}"
        );
        folder.expect_with(&[("ASSAY_LAB", lab.to_str().unwrap()), ("PATH", "/usr/bin:/bin")], &line, code)
    };
    assert!(run("--set max_threads=1", 0).stdout.contains("max_threads"));
    let ran = run("--set max_thread=1", 4);
    assert!(ran.stderr.contains("Unknown setting max_thread"), "{}", ran.shown());
    let ran = run("--set max_threads", 2);
    assert!(ran.stderr.contains("error: --set max_threads: expected NAME=VALUE"), "{}", ran.shown());
}

#[test]
fn a_started_server_listens_for_http_too() {
    if !ClickHouse::present() {
        return;
    }
    let (folder, lab) = (Folder::new(), testkit::lab_folder().unwrap());
    let run =
        |line: &str| folder.expect_with(&[("ASSAY_LAB", lab.to_str().unwrap()), ("PATH", "/usr/bin:/bin")], line, 0);
    let started = run("server start clickhouse --name both --set log_queries=1");
    let http = started.stderr.lines().find_map(|line| line.strip_prefix("  also: ")).expect("it has a second URL");
    assert!(http.starts_with("clickhouse+http://app@127.0.0.1:"), "{}", started.shown());
    let native = started.stdout.trim();
    for _ in 0..2 {
        for url in [http, native] {
            run(&format!("sql 'SELECT 1' --db {url} --runs 1 --no-record"));
        }
        // Both ports stay.
        run("server restart both");
    }
    // Every session logs, by the server's own settings.
    let line = format!("run flights --db {http} --flights 300 --prepare --transactions 15 --no-record --format json");
    let statements = &run(&line).findings()["stages"][0]["telemetry"][0]["statements"];
    let calls = statements.as_array().unwrap().iter().map(|one| one["calls"].as_u64().unwrap()).sum::<u64>();
    assert!(calls >= 15 && !statements.to_string().contains("system."), "{statements}");
    run("server stop both --remove");
}
