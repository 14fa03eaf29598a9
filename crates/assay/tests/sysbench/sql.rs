//! `sysbench.sql`: drivers, connections, statements, parameters, results, on MariaDB and PostgreSQL.

use testkit::Kind;

use crate::bench::{Bench, options};

/// Runs `script` as `prepare` on both servers, with both programs, with a table `t` of two rows.
#[track_caller]
fn same(script: &str) {
    same_with(script, "");
}

#[track_caller]
fn same_with(script: &str, options: &str) {
    bench(script).same_on_servers(&[&format!("it.lua prepare {options}")]);
}

fn bench(script: &str) -> Bench {
    let text = format!(
        r###"
        local function try(...) print(pcall(...)) end
        function prepare()
          drv = sysbench.sql.driver()
          con = drv:connect()
          con:query("CREATE TABLE t(id INTEGER PRIMARY KEY, c VARCHAR(40), n BIGINT)")
          con:query("INSERT INTO t VALUES (1, 'a', NULL), (2, NULL, 20)")
          {script}
        end"###
    );
    Bench::new(&[("it.lua", &text)])
}

/// Scripts look into what they hold: the original's objects are C structs.
#[test]
fn objects_are_opaque() {
    let bench = Bench::new(&[(
        "it.lua",
        "function event()
           local driver = sysbench.sql.driver()
           local con = driver:connect()
           local objects = { driver, con, con:query('SELECT 1'), con:prepare('SELECT 1'), con:query('BEGIN') }
           for _, object in ipairs(objects) do
             print(type(object), tostring(object), type(getmetatable(object)))
             print(pcall(pairs, object) == false, pcall(setmetatable, object, {}) == false)
           end
           print(type({}), type(sysbench.rand), type(nil), type(getmetatable({})), type('x'))
         end",
    )]);
    bench.same_on_servers(&["it.lua run --events=1"]);
}

#[test]
fn a_closed_connection_blames_the_caller_of_the_caller() {
    let bench = Bench::new(&[(
        "it.lua",
        "function event()
           local con = sysbench.sql.driver():connect()
           con:disconnect()
           local function direct() con:query('SELECT 1') return 1 end
           local function two()
             direct()
             return 1
           end
           local function tail() return con:query('SELECT 1') end
           print(pcall(direct))
           print(pcall(two))
           print(pcall(tail))
           print(pcall(con.query, con, 'SELECT 1'))
           print(pcall(con.query_row, con, 'SELECT 1'))
         end",
    )]);
    bench.same_on_servers(&["it.lua run --events=1"]);
}

#[test]
fn objects_say_what_they_are() {
    same(
        r###"
        local stmt = con:prepare("SELECT ?")
        local rs = con:query("SELECT 1")
        print(tostring(drv), tostring(con), tostring(rs), tostring(stmt), tostring(stmt:bind_create(sysbench.sql.type.INT)))
        print(drv:name(), tostring(con.driver), con.error == 0, tostring(stmt.connection))
        local names = {}
        for name, number in pairs(sysbench.sql.type) do names[#names + 1] = name .. "=" .. number end
        for name, number in pairs(sysbench.sql.error) do names[#names + 1] = name .. "=" .. number end
        table.sort(names)
        print(table.concat(names, " "))"###,
    );
}

#[test]
fn rows_are_strings_and_null_is_a_hole() {
    same(
        r###"
        local rs = con:query("SELECT id, c, n, 1.50, 'x' FROM t ORDER BY id")
        print(rs.nrows, rs.nfields)
        for _ = 1, rs.nrows do print(unpack(rs:fetch_row(), 1, rs.nfields)) end
        print(rs:fetch_row(), rs:fetch_row())
        print(type(con:query_row("SELECT id FROM t WHERE id = 1")), con:query_row("SELECT id FROM t WHERE id = 2") + 1)
        print(con:query_row("SELECT id, c, n FROM t WHERE id = 2"))
        print(con:query_row("SELECT id FROM t WHERE id = 9"), select("#", con:query_row("SELECT id FROM t WHERE id = 9")))
        print(string.format("%d", (con:query_row("SELECT 7"))))"###,
    );
}

#[test]
fn a_statement_without_rows_compares_equal_to_nil() {
    same(
        r###"
        print(con:query("UPDATE t SET c = 'z' WHERE id = 1") == nil, con:query("UPDATE t SET c = 'z' WHERE id = 9") == nil)
        print(con:query("BEGIN") == nil, con:query("ROLLBACK") == nil, con:query_row("DELETE FROM t WHERE id = 9"))
        local rs = con:query("SELECT 1 FROM t WHERE id = 9")
        print(rs == nil, rs.nrows, rs.nfields, rs:fetch_row())"###,
    );
    // It is a null pointer, which is true.
    same(
        r###"
        print(assert(con:query("BEGIN")), con:query("ROLLBACK") and "true", not con:query("COMMIT"), #{con:query("BEGIN")})
        local stmt = con:prepare("ROLLBACK")
        print(stmt:execute(), stmt:execute() == nil)"###,
    );
    let script = "function event() con = sysbench.sql.driver():connect() print(con:query('BEGIN').nrows) end";
    let did = Bench::new(&[("it.lua", script)]).ours_on(Kind::Postgres, "it.lua run --events=1");
    assert_eq!(did.code, Some(1));
    assert!(
        did.stdout.contains("it.lua:1: the statement returned no rows, so there is no result set"),
        "{}",
        did.shown()
    );
}

#[test]
fn results_are_freed_once_and_by_the_next_statement() {
    same(
        r###"
        local rs = con:query("SELECT id FROM t")
        print(rs:free())
        try(rs.free, rs)
        try(function() rs:free() end)
        try(rs.fetch_row, rs)"###,
    );
    // There is one result per connection, and the next statement replaces it for whoever holds it.
    same(
        r###"
        local rs = con:query("SELECT id FROM t ORDER BY id")
        print(rs == con:query("SELECT 5 UNION ALL SELECT 6 ORDER BY 1"), rs.nrows, rs:fetch_row()[1], rs:fetch_row()[1])
        print(con:query_row("SELECT 8"))
        print(rs:free())
        rs = con:query("SELECT id FROM t")
        con:query("BEGIN")
        print(rs.nrows, rs.nfields, rs:fetch_row())
        try(rs.free, rs)"###,
    );
    same(
        "local one = con:query('SELECT id FROM t') local two = con:query('SELECT 5') print(two:fetch_row()[1]) print(two:free())",
    );
}

#[test]
fn a_closed_connection_is_no_longer_used() {
    same(
        r###"
        print(con:disconnect())
        print(con:disconnect())
        try(function() con:query("SELECT 1") end)
        try(function() local x = con:query_row("SELECT 1") end)
        local other = drv:connect()
        print(other:query_row("SELECT 5"), tostring(con))"###,
    );
}

#[test]
fn connections_are_independent() {
    same(
        r###"
        local a, b = drv:connect(), drv:connect()
        local rs = a:query("SELECT id FROM t ORDER BY id")
        print(b:query_row("SELECT 'b'"), rs:fetch_row()[1], con:query_row("SELECT 'con'"), rs:fetch_row()[1])
        a:query("BEGIN") a:query("INSERT INTO t VALUES (3, 'c', 3)")
        print(b:query_row("SELECT COUNT(*) FROM t")) a:query("COMMIT") print(b:query_row("SELECT COUNT(*) FROM t"))"###,
    );
}

#[test]
fn bulk_inserts_are_joined_and_told_apart_when_wrong() {
    same(
        r###"
        print(con:bulk_insert_init("INSERT INTO t VALUES"))
        for i = 10, 20 do con:bulk_insert_next("(" .. i .. ", 'x', " .. i .. ")") end
        print(con:query_row("SELECT COUNT(*) FROM t"))
        print(con:bulk_insert_done())
        print(con:query_row("SELECT COUNT(*), SUM(n) FROM t"))
        print(con:bulk_insert_done())
        try(function() con:bulk_insert_next("(1)") end)
        print(con:bulk_insert_init("INSERT INTO t VALUES"), con:bulk_insert_done())
        con:bulk_insert_init("INSERT INTO t VALUES")
        try(function() con:bulk_insert_next(("x"):rep(600000)) end)
        con:bulk_insert_init("INSERT INTO t VALUES") con:bulk_insert_next("(1, 'again', 0)")
        try(function() con:bulk_insert_done() end)
        con:bulk_insert_init("INSERT INTO t(id, c) VALUES")
        for i = 1000, 9999 do con:bulk_insert_next("(" .. i .. ", '" .. ("y"):rep(40) .. "')") end
        con:bulk_insert_done()
        print(con:query_row("SELECT COUNT(*) FROM t"))"###,
    );
}

#[test]
fn parameters_are_bound_by_type_and_sent_at_each_execution() {
    for options in ["", "--db-ps-mode=auto"] {
        same_with(
            r###"
            local t = sysbench.sql.type
            local stmt = con:prepare("INSERT INTO t(id, c, n) VALUES (?, ?, ?)")
            local id, c, n = stmt:bind_create(t.INT), stmt:bind_create(t.VARCHAR, 10), stmt:bind_create(t.BIGINT)
            print(stmt:bind_param(id, c, n))
            id:set(3.7) c:set("abcdefghijklmnop") n:set(2^40)
            print(stmt:execute() == nil)
            id:set(4) c:set("") n:set(-5)
            print(stmt:execute() == nil)
            id:set(5) c:set_rand_str("##") n:set(5ULL)
            stmt:execute()
            for i = 3, 5 do print(con:query_row("SELECT id, LENGTH(c), n FROM t WHERE id = " .. i)) end
            print(con:query_row("SELECT c FROM t WHERE id = 3"))
            local count = con:prepare("SELECT id, c FROM t WHERE id < ?")
            local limit = count:bind_create(t.SMALLINT)
            count:bind_param(limit) limit:set(3)
            local rs = count:execute()
            print(rs.nrows, rs:free())
            print(con:prepare("SELECT 1"):execute().nrows)
            print(stmt:bind_param())
            print(count:close())"###,
            options,
        );
    }
}

#[test]
fn the_number_of_parameters_has_to_be_right() {
    same(
        r###"
        local stmt = con:prepare("SELECT ? , ?")
        local p = stmt:bind_create(sysbench.sql.type.INT)
        print(stmt:bind_param(p))
        print(stmt:bind_param(p, p, p))
        try(function() stmt:bind_create(sysbench.sql.type.TIME) end)"###,
    );
}

#[test]
fn null_quotes_and_doubles_arrive_as_they_are() {
    // sysbench 1.0 sends doubles as 0, NULL on PostgreSQL as the previous text, and quotes unescaped without prepared
    // statements.
    let bench = bench(
        r###"
        local t = sysbench.sql.type
        local stmt = con:prepare("INSERT INTO t(id, c, n) VALUES (?, ?, ?)")
        local id, c, n = stmt:bind_create(t.INT), stmt:bind_create(t.VARCHAR, 40), stmt:bind_create(t.BIGINT)
        stmt:bind_param(id, c, n)
        id:set(3) c:set([[it's a "\" ?]]) n:set(nil)
        stmt:execute()
        id:set(4) c:set(nil)
        stmt:execute()
        local double = con:prepare("SELECT ? * 2.0")
        local d = double:bind_create(t.DOUBLE)
        double:bind_param(d) d:set(1.25)
        print(tonumber(double:execute():fetch_row()[1]))
        for i = 3, 4 do print(con:query_row("SELECT id, c, n FROM t WHERE id = " .. i)) end"###,
    );
    for kind in [Kind::MariaDb, Kind::Postgres] {
        for options in ["", "--db-ps-mode=disable"] {
            let did = bench.ours_on(kind, &format!("it.lua prepare {options}"));
            let wanted = "2.5\n3\tit's a \"\\\" ?\tnil\n4\tnil\tnil\n";
            assert!(did.stdout.ends_with(wanted), "{kind:?} {options} {}", did.shown());
        }
    }
}

#[test]
fn statements_that_the_server_does_not_prepare_are_sent_as_text() {
    let script = "local s = con:prepare('LOCK TABLES t WRITE') print(s:execute() == nil)";
    if Kind::MariaDb.present() {
        bench(script).same_on(Kind::MariaDb, &["it.lua prepare"]);
    }
}

#[test]
fn wrong_statements_and_drivers_are_told() {
    same("try(function() con:query('SELEC') end) try(function() con:query(nil) end) try(function() con:query(5) end)");
    same("try(function() sysbench.sql.driver('nosuch') end) print(sysbench.sql.driver(drv:name()))");
    same("con:prepare('SELECT ?') con:query('SELECT nosuch')");
    let prepare = "local stmt = con:prepare('SELECT nosuch')";
    if Kind::MariaDb.present() {
        bench(prepare).same_on(Kind::MariaDb, &["it.lua prepare"]);
    }
}

#[test]
fn each_statement_counts_once_by_what_it_did() {
    let text = r###"
        function thread_init() con = sysbench.sql.driver():connect() con:query("SELECT 1") end
        function prepare() sysbench.sql.driver():connect():query("CREATE TABLE t(id INTEGER PRIMARY KEY, c INTEGER)") end
        n = 0
        function event()
          n = n + 1
          con:query("BEGIN")
          con:query("INSERT INTO t VALUES (" .. n .. ", 1)")
          con:query("UPDATE t SET c = c + 1 WHERE id = 0")
          con:query("UPDATE t SET c = c + 1 WHERE id = " .. n)
          con:query_row("SELECT * FROM t")
          local stmt = con:prepare("SELECT c FROM t WHERE id = ?")
          local p = stmt:bind_create(sysbench.sql.type.INT)
          stmt:bind_param(p) p:set(n)
          stmt:execute() stmt:execute()
          stmt:close()
          con:bulk_insert_init("INSERT INTO t VALUES")
          con:bulk_insert_next("(" .. n + 1000 .. ", 1)") con:bulk_insert_next("(" .. n + 2000 .. ", 1)")
          con:bulk_insert_done()
          con:query("DELETE FROM t WHERE id = -1")
          con:query("COMMIT")
        end
        function thread_done() con:query("DELETE FROM t") end"###;
    Bench::new(&[("it.lua", text)]).same_on_servers(&["it.lua prepare", "it.lua run --events=7"]);
}

#[test]
fn what_is_no_field_of_a_result_is_an_error() {
    same(
        r###"
        local function try(...)
          local ok, why = pcall(...)
          print(ok, (tostring(why):gsub("struct [%w_]+", "struct")))
        end
        for _, text in ipairs{"SELECT 1 FROM t WHERE id = 9", "SELECT 1", "UPDATE t SET c = 'z' WHERE id = 9"} do
          local rs = con:query(text)
          try(function() return rs.rows end)
          try(function() return rs.connection end)
          try(function() rs.nothing = 1 end)
          try(function() return type(rs.free), type(rs.fetch_row) end)
        end"###,
    );
}

#[test]
fn a_statement_that_cannot_be_prepared_is_an_error_with_the_scripts_place() {
    same(
        r###"
        try(con.prepare, con, "SELECT nosuch FROM nowhere")
        try(function() con:prepare("SELECT nosuch FROM nowhere") end)
        try(con.query, con, "SELECT bad")
        try(function() con:prepare("SELECT nosuch FROM nowhere") end)
        try(function() con:prepare("SELECT nosuch FROM nowhere") end)
        con:query("SELECT 1")
        con:prepare("SELECT nosuch FROM nowhere")"###,
    );
}

#[test]
fn the_handler_of_an_xpcall_may_roll_back() {
    same(
        r###"
        con:query("BEGIN")
        con:query("UPDATE t SET c = 'z' WHERE id = 1")
        print(xpcall(function() con:query("SELECT nosuch") end, function(failure)
          con:query("ROLLBACK")
          return failure:gsub("'[^']*': .*", "")
        end))
        print(con:query_row("SELECT c FROM t WHERE id = 1"))"###,
    );
}

/// Options that name one server of each kind, and no driver.
fn both_servers() -> String {
    let of = |kind: Kind| {
        let server = kind.shared();
        let all = options(server, &server.fresh_database().unwrap());
        all.split_once(' ').expect("the driver comes first").1.to_owned()
    };
    format!("{} {}", of(Kind::MariaDb), of(Kind::Postgres))
}

#[test]
fn a_script_may_name_its_driver_and_use_two_of_them() {
    let script = |statement: &str| {
        format!(
            r#"
            function thread_init()
              p, m = sysbench.sql.driver("pgsql"):connect(), sysbench.sql.driver("mysql"):connect()
              print(p.driver:name(), m.driver:name(), sysbench.sql.driver():name())
              n = 0
            end
            function event()
              n = n + 1
              p:query("BEGIN")
              m:query("BEGIN")
              if n == 2 then {statement} end
              local one, two = p:prepare("SELECT ?"), m:prepare("SELECT ?")
              local a, b = one:bind_create(sysbench.sql.type.INT), two:bind_create(sysbench.sql.type.INT)
              one:bind_param(a)
              two:bind_param(b)
              a:set(n)
              b:set(n)
              one:execute()
              two:execute()
              p:query("COMMIT")
              m:query("COMMIT")
            end
            sysbench.hooks.before_restart_event = function(e) print("restart", e.sql_errno, e.sql_state) end"#
        )
    };
    for statement in ["m:query('SELECT nosuch')", "p:query('SELECT nosuch')", "error({errcode = 1})"] {
        let bench = Bench::new(&[("it.lua", &script(statement))]);
        for driver in ["", "--db-driver=mysql", "--db-driver=pgsql"] {
            bench.same(&format!("it.lua run --events=3 --mysql-ignore-errors=1054 {driver} {}", both_servers()));
            bench.same(&format!("it.lua run --events=3 {driver} {}", both_servers()));
        }
    }
}

#[test]
fn a_driver_that_a_script_names_and_cannot_reach_says_so() {
    let script = r#"function prepare() sysbench.sql.driver("pgsql"):connect() end"#;
    let bench = Bench::new(&[("it.lua", script)]);
    bench.same("it.lua prepare --pgsql-host=127.0.0.1 --pgsql-port=1");
    bench.same("it.lua prepare --db-driver=mysql --pgsql-host=127.0.0.1 --pgsql-port=1");
}
