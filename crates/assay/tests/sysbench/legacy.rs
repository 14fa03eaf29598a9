//! The interface of sysbench 0.5: global functions and options, and its scripts.

use testkit::Kind;

use crate::bench::Bench;

const SCRIPT: &str = r#"
    function prepare()
      set_vars()
      db_connect()
      db_query("CREATE TABLE old(id INTEGER PRIMARY KEY, c VARCHAR(20))")
      db_bulk_insert_init("INSERT INTO old VALUES")
      for i = 1, size do db_bulk_insert_next("(" .. i .. ", 'x')") end
      db_bulk_insert_done()
      print("loaded", size, db_driver)
    end
    function set_vars() size = tonumber(old_size) or 10 end
    function thread_init(thread_id)
      set_vars()
      statement = db_prepare("SELECT c FROM old WHERE id = ? AND c = ?")
      values = {1, "x"}
      db_bind_param(statement, values)
    end
    function event(thread_id)
      values[1] = sb_rand(1, size)
      local rs = db_execute(statement)
      db_store_results(rs)
      db_free_results(rs)
      db_query("BEGIN")
      db_query("UPDATE old SET c = 'y' WHERE id = " .. sb_rand_uniform(1, size) .. " AND c = 'nosuch'")
      db_query("COMMIT")
      assert(thread_id == _G.thread_id)
    end
    function thread_done() db_close(statement) db_disconnect() end
    function cleanup() db_query("DROP TABLE old") end
"#;

#[test]
fn an_old_script_runs_from_its_preparation_to_its_cleanup() {
    let bench = Bench::new(&[("old.lua", SCRIPT)]);
    bench.same_on_servers(&[
        "--test=old.lua --old-size=20 prepare",
        "old.lua run --old-size=20 --events=5 --threads=1",
        "--test=old.lua --num-threads=2 --max-requests=6 run --old-size=20 --verbosity=2",
        "old.lua cleanup",
    ]);
}

#[test]
fn options_are_globals_of_scripts_that_declare_none() {
    let text = r#"
        print(test, thread_id, db_driver, mysql_table_engine, myisam_max_rows, DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED)
        function prepare()
          print(any, type(any), flag, type(flag), num_threads, threads, rate, time, percentile, rand_type, db_driver, type(debug), type(print))
          print(mysql_table_engine, oltp_table_size, type(oltp_table_size), sysbench.opt.any)
        end"#;
    let bench = Bench::new(&[("old.lua", text)]);
    for line in [
        "old.lua prepare --any=5 --flag --oltp-table-size=100",
        "old.lua prepare --mysql-table-engine=myisam --print=no --threads=3",
        "old.lua prepare --any= --rand-type=pareto",
        "--test=old.lua prepare",
    ] {
        bench.same(line);
    }
    let declared = Bench::new(&[("new.lua", &format!("sysbench.cmdline.options = {{any = {{'A', 1}}}}\n{text}"))]);
    declared.same("new.lua prepare --any=5");
    declared.same("new.lua prepare --flag");
}

#[test]
fn errors_of_the_old_functions_have_their_own_words() {
    let text = r#"
        function prepare()
          print(pcall(db_query, "SELECT nosuch"))
          print(pcall(db_bulk_insert_next, "(1)"))
          db_disconnect()
          print(db_query("SELECT 1"))
        end"#;
    Bench::new(&[("old.lua", text)]).same_on_servers(&["old.lua prepare"]);
    // Rows that are refused at the end of a bulk insert are reported and counted, but end nothing.
    let text = r#"
        function event()
          for _, old in ipairs {db_query, db_bulk_insert_init, db_bulk_insert_next, db_close, db_execute, db_bind_param} do
            print(pcall(old)) print(pcall(old, nil)) print(pcall(old, {1} and nil))
          end
          db_query("CREATE TABLE t(id INT PRIMARY KEY)")
          print(db_bulk_insert_init("INSERT INTO t VALUES"))
          print(db_bulk_insert_next("(1)"), db_bulk_insert_next("(1)"))
          print(db_bulk_insert_done())
          print(pcall(db_query, 5))
        end"#;
    Bench::new(&[("old.lua", text)]).same_on_servers(&["old.lua run --events=1"]);
    let text = "function event() db_prepare('SELECT nosuch') end";
    Bench::new(&[("old.lua", text)]).same_on(Kind::MariaDb, &["old.lua run --events=1"]);
}

#[test]
fn an_old_connection_that_is_refused_or_missing_has_its_own_words() {
    let text = r#"
        function prepare() db_connect() end
        function cleanup() db_bulk_insert_init("INSERT INTO t VALUES") end
        function help()
          print(pcall(db_bulk_insert_next, "(1)"))
          print(pcall(db_bulk_insert_done))
        end
        function event() db_query("SELECT 1") end"#;
    let bench = Bench::new(&[("old.lua", text)]);
    for command in ["prepare", "cleanup", "run --events=1"] {
        bench.same(&format!("old.lua {command} --mysql-host=127.0.0.1 --mysql-port=1"));
    }
    bench.same("old.lua help");
}

#[test]
fn old_bulk_inserts_that_fail_at_their_end_are_told_and_counted() {
    let text = r###"
        local function insert(text)
          print(select("#", db_bulk_insert_init("INSERT INTO " .. text .. " VALUES")))
          db_bulk_insert_next("(1)")
          print(select("#", db_bulk_insert_done()))
        end
        function prepare() insert("nosuch") db_query("CREATE TABLE rows_once(a INT PRIMARY KEY)") insert("rows_once") end
        function thread_init() 
          insert("rows_once")
          if db_driver == "mysql" then print(pcall(db_prepare, "SELECT nosuch FROM rows_once")) end
        end
        function event() insert("rows_once") insert("nosuch_either") end
        function thread_done() insert("rows_once") end"###;
    let bench = Bench::new(&[("old.lua", text)]);
    bench.same_on_servers(&["old.lua prepare", "old.lua run --events=3"]);
    bench.same_on(Kind::MariaDb, &["old.lua prepare", "old.lua run --events=3 --mysql-ignore-errors=all"]);
}

#[test]
fn the_scripts_of_05_have_their_counters() {
    // Debian's package does not contain these scripts; the counters are those of sysbench 1.0.20 with them.
    let folder = "/usr/share/sysbench/tests/include/oltp_legacy";
    // Each of two sessions gets one of two events, since neither ends its own before the other has started one.
    let both = r#"
        require("tests/include/oltp_legacy/parallel_prepare")
        ffi.cdef "int usleep(unsigned int);"
        local prepare = event
        function event(thread_id)
          prepare(thread_id)
          io.open("begun" .. thread_id, "w"):close()
          while not io.open("begun" .. 1 - thread_id) do ffi.C.usleep(1000) end
        end"#;
    let options = "--oltp-tables-count=2 --oltp-table-size=200";
    for kind in [Kind::MariaDb, Kind::Postgres] {
        if !kind.present() {
            continue;
        }
        let bench = Bench::new(&[("both.lua", both)]);
        let server = kind.shared();
        let database = server.fresh_database().unwrap();
        let run = |line: &str| bench.ours(&format!("{line} {options} {}", crate::bench::options(server, &database)));
        let prepared = run("--test=both.lua run --num-threads=2 --max-requests=2");
        assert_eq!(counters(&prepared.stdout), [0, 2, 4, 2], "{}", prepared.shown());
        for (script, wanted) in [
            ("oltp.lua", [1400, 400, 200, 100]),
            ("oltp.lua --oltp-read-only=on", [1400, 0, 200, 100]),
            ("oltp.lua --oltp-read-only --oltp-skip-trx=on --oltp-range-selects=off", [1000, 0, 0, 100]),
            ("oltp_simple.lua", [100, 0, 0, 100]),
            ("select.lua", [100, 0, 0, 100]),
            ("select_random_points.lua", [100, 0, 0, 100]),
            ("select_random_ranges.lua", [100, 0, 0, 100]),
            ("update_index.lua", [0, 100, 0, 100]),
            ("update_non_index.lua", [0, 100, 0, 100]),
            ("insert.lua", [0, 100, 0, 100]),
        ] {
            let did = run(&format!("{folder}/{script} run --events=100"));
            assert_eq!((did.code, counters(&did.stdout)), (Some(0), wanted), "{kind:?} {script} {}", did.shown());
        }
        let cleaned = run(&format!("--test={folder}/oltp.lua cleanup"));
        assert!(cleaned.stdout.contains("Dropping table 'sbtest2'..."), "{}", cleaned.shown());
    }
}

/// Read, write, other, transactions.
fn counters(report: &str) -> [u64; 4] {
    ["read:", "write:", "other:", "transactions:"].map(|label| {
        let line = report.lines().find_map(|line| line.trim().strip_prefix(label));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(u64::MAX)
    })
}
