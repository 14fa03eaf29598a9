//! DuckDB, in this process: the newest version and the oldest that can be used.

use std::path::Path;

use insta::assert_snapshot;
use testkit::duckdb_libraries;

use crate::common::{Folder, Ran};

fn go(folder: &Folder, script: &str, url: &str) -> Ran {
    let head = "local con = sysbench.sql.driver():connect()";
    folder.write("it.lua", &format!("sysbench.cmdline.commands = {{go = {{function()\n{head}\n{script}\nend}}}}\n"));
    folder.run(&format!("exec ./it.lua go --db '{url}'"))
}

#[test]
fn duckdb_returns_the_rows_that_sqlite_returns() {
    for (version, library) in duckdb_libraries() {
        let folder = Folder::new();
        let duck = format!("duckdb:d.duckdb?threads=2&library={}", library.display());
        for (workload, size) in [("flights", "--flights 3000"), ("tpch_like", "--scale 0.005")] {
            for (url, sessions) in [(&*duck, 3), ("sqlite:s.db?synchronous=off", 1)] {
                let line = format!("prepare {workload} {size} --seed 7 --sessions {sessions} --no-record --db {url}");
                folder.expect(&line, 0);
            }
            let both = format!("--db {duck} --db sqlite:s.db");
            folder.expect(&format!("check {workload} {size} --no-record {both}"), 0);
            let ran = folder.expect(&format!("olap {workload} {size} --seed 1 --runs 2 --no-record {both}"), 0);
            assert!(ran.stdout.contains("All databases returned the same rows."), "{version}: {}", ran.shown());
            folder.expect(&format!("cleanup {workload} {size} --db {duck}"), 0);
        }
    }
}

#[test]
fn values_transactions_loads_and_errors_of_duckdb() {
    for (version, library) in duckdb_libraries() {
        let (folder, url) = (Folder::new(), format!("duckdb:d.duckdb?library={}", library.display()));
        let ran = go(
            &folder,
            r##"
            local function show(label, ...)
              local out = {}
              for i = 1, select("#", ...) do out[i] = tostring((select(i, ...))) end
              print(label, table.concat(out, "|"))
            end
            show("integers", con:query_row("SELECT 1::TINYINT, -2::SMALLINT, 3, 4::BIGINT, 255::UTINYINT, 18446744073709551615::UBIGINT, SUM(5), 170141183460469231731687303715884105727::HUGEINT, -5::HUGEINT"))
            show("numbers", con:query_row("SELECT 2.50::DECIMAL(10,2), -0.05::DECIMAL(30,2), 7::DECIMAL(4,0), 0.1::FLOAT, 0.1::DOUBLE, 'inf'::DOUBLE"))
            show("texts", con:query_row("SELECT '', 'twelve bytes', 'thirteen byte', 'ä', 'x'::BLOB, true, NULL, '0fffffff-0000-0000-0000-00000000000a'::UUID"))
            show("times", con:query_row("SELECT DATE '2024-02-29', DATE '1900-03-01', TIMESTAMP '2024-02-29 01:02:03.45', TIMESTAMPTZ '1969-12-31 23:59:59+00', TIME '01:02:03', TIMESTAMP_S '2000-01-01 00:00:00', 'infinity'::DATE"))
            con:query("CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR, d DATE, n DECIMAL(10,2)); INSERT INTO t VALUES (1, 'x', NULL, 1.5)")
            local find = con:prepare("SELECT b, d, n FROM t WHERE a = ? AND (b = ? OR ? IS NULL)", "iad")
            show("found", find:row(1, "x", 0.5))
            show("not found", find:row(1, "y", 0.5))
            show("NULL", find:row(1, "y", nil))
            local loader = con:loader("t", "a, b, d, n")
            for i = 2, 5000 do loader:row(i, i % 2 == 0 and "n" .. i or nil, ("2020-01-%02d"):format(i % 28 + 1), i / 2) end
            loader:done()
            show("loaded", con:query_row("SELECT COUNT(*), COUNT(b), MAX(d), SUM(n) FROM t"))
            con:query("BEGIN")
            con:query("DELETE FROM t")
            con:query("ROLLBACK")
            show("still there", con:query_row("SELECT COUNT(*) FROM t"))
            show("sets", con:query("SELECT 1; SELECT 2, 3").nrows)
            show("many", con:query("SELECT * FROM range(300000)").nrows)
            local other = sysbench.sql.driver():connect()
            con:query("BEGIN; UPDATE t SET n = 1 WHERE a = 1")
            other:query("BEGIN")
            local function fails(label, connection, text)
              local ok, why = pcall(connection.query, connection, text)
              print(label, ok, (tostring(why):gsub("^.-errno", "errno"):gsub(" at or near.*", ""):gsub("[!\"].*", "")))
            end
            fails("conflict", other, "UPDATE t SET n = 2 WHERE a = 1")
            other:query("ROLLBACK")
            con:query("COMMIT")
            show("kept", con:query_row("SELECT n FROM t WHERE a = 1"))
            fails("missing", con, "SELECT * FROM nothing")
            fails("syntax", con, "SELEC 1")
            fails("constraint", con, "INSERT INTO t VALUES (1, 'x', NULL, NULL)")
            fails("unread", con, "SELECT [1, 2] AS list")
            local wrong = con:loader("t", "a, d")
            local ok = pcall(function() wrong:row(9001, "2020-01-01") wrong:row(9002, "no day") wrong:done() end)
            show("a load that fails", ok, con:query_row("SELECT COUNT(*) FROM t WHERE a > 9000"))
            local lost = con:loader("nothing", "a")
            show("a load into nothing", (pcall(function() lost:row(1) lost:done() end)))
            "##,
            &url,
        );
        insta::allow_duplicates! {
            assert_snapshot!(ran.shown().replace('\t', " "), @r#"
            exit 0
            --- stderr
            integers 1|-2|3|4|255|18446744073709551615|5|170141183460469231731687303715884105727|-5
            numbers 2.50|-0.05|7|0.1|0.1|inf
            texts |twelve bytes|thirteen byte|ä|x|true|nil|0fffffff-0000-0000-0000-00000000000a
            times 2024-02-29|1900-03-01|2024-02-29 01:02:03.45|1969-12-31 23:59:59+00|01:02:03|2000-01-01 00:00:00|infinity
            found x|nil|1.50
            not found 
            NULL x|nil|1.50
            loaded 5000|2501|2020-01-28|6251251.00
            still there 5000
            sets 1
            many 300000
            conflict false errno = 0, state = '': TransactionContext Error: Conflict on update
            kept 1.00
            missing false errno = 0, state = '': Catalog Error: Table with name nothing does not exist
            syntax false errno = 0, state = '': Parser Error: syntax error
            constraint false errno = 0, state = '': Constraint Error: Duplicate key 
            unread false errno = 0, state = '': column list has a type that is not read here (number 24 of duckdb_type)
            a load that fails false|0
            a load into nothing false
            "#);
        }
        let counted = format!("sql 'SELECT * FROM range(3000000)' --db {url} --runs 1 --format json --no-record");
        let counted = folder.expect(&counted, 0).findings();
        assert_eq!(counted["cases"]["cases"][0]["rows"], 3_000_000, "{version}");
        assert!(folder.expect(&format!("db test {url}"), 0).stdout.contains("DuckDB"), "{version}");
    }
}

#[test]
fn what_duckdb_needs_is_said() {
    let folder = Folder::new();
    let shown = folder.run("sql 'SELECT 1' --db duckdb:x.duckdb?library=/nowhere/libduckdb.so --no-record").shown();
    assert!(shown.contains("DuckDB's library /nowhere/libduckdb.so cannot be loaded"), "{shown}");
    assert!(shown.contains("ASSAY_DUCKDB_LIBRARY"), "{shown}");
    for (_, library) in duckdb_libraries().into_iter().take(1) {
        refuses_what_is_wrong(&library);
    }
}

fn refuses_what_is_wrong(library: &Path) {
    let folder = Folder::new();
    let variables = [("ASSAY_DUCKDB_LIBRARY", library.to_str().unwrap())];
    let ran = |line: &str, code: i32| folder.expect_with(&variables, line, code).shown();
    ran("prepare flights --flights 1000 --no-record --db duckdb:f.duckdb", 0);
    for (parameters, told) in [
        ("threads=many", "threads"),
        ("memory_limit=lots", "memory"),
        ("cache=1", "the parameters are threads, memory_limit, temp_directory, access_mode, "),
    ] {
        let line = format!("sql 'SELECT 1' --no-record --db duckdb:f.duckdb?{parameters}");
        let shown = folder.command(&line).env(variables[0].0, variables[0].1).output().unwrap();
        let shown = String::from_utf8_lossy(&shown.stderr).into_owned();
        assert!(shown.contains(told), "{parameters}: {shown}");
    }
    folder.write("text.duckdb", &"Text, not a database. ".repeat(1000));
    let shown = ran("sql 'SELECT 1' --no-record --db duckdb:text.duckdb", 4);
    assert!(shown.contains("not a valid DuckDB database file"), "{shown}");
    let shown = ran("run oltp_point_select --prepare --no-record --db duckdb:f.duckdb", 3);
    assert!(shown.contains("duckdb"), "{shown}");
    // A file that another process writes.
    let mut busy = folder
        .start_with(&variables, "run flights --flights 1000 --time 600 --no-record --db duckdb:f.duckdb --interval 1");
    busy.wait_for_any_interval();
    let shown = ran("sql 'SELECT 1' --no-record --db duckdb:f.duckdb", 4);
    assert!(shown.contains("is open in another process"), "{shown}");
}
