//! Connections, statements, parameters, results.

use assay_script::*;
use assay_seam::Reply;

use crate::driver::*;

/// Runs `body` with a connection `con`; returns the requests after the connect.
#[track_caller]
fn check_sql(body: &str, driver: Driver, wanted: &str) {
    let script = format!("function top() con = sysbench.sql.driver():connect()\n{body}\nend");
    let setup = Setup { entry: Entry::Function("top".into()), ..setup() };
    check_as(&script, &setup, driver, &format!("connect 0\n{}\nfinished true", wanted.trim()));
}

#[test]
fn parameters_are_coerced_as_their_types_say() {
    check_sql(
        r#"
        local t = sysbench.sql.type
        local s = con:prepare("INSERT INTO t VALUES (?, ?, ?, ?, 'what?', ?)")
        local p = {s:bind_create(t.INT), s:bind_create(t.BIGINT), s:bind_create(t.DOUBLE), s:bind_create(t.VARCHAR, 3),
                   s:bind_create(t.CHAR, 10)}
        print(s:bind_param(unpack(p)), tostring(p[1]), tostring(s), tostring(con))
        p[1]:set(-3.7) p[2]:set(9007199254740993LL) p[3]:set(2) p[4]:set("abcdef") p[5]:set_rand_str('###')
        s:execute()
        p[1]:set("12") p[2]:set(nil) p[3]:set(nil) p[4]:set(7) p[5]:set(nil)
        s:execute()
        print(s:close(), s:close())
        print(pcall(s.execute, s))
        print(pcall(s.bind_create, s, t.TIME))
        "#,
        Driver::default(),
        r#"prepare 0.0: INSERT INTO t VALUES (?, ?, ?, ?, 'what?', ?)
        log 0	<sql_param>	<sql_statement>	<sql_connection>
        execute 0.0: [Int(-3), Int(9007199254740993), Double(2.0), Text([97, 98, 99]), Text([51, 54, 48])]
        execute 0.0: [Int(12), Null, Null, Text([55]), Null]
        close 0.0
        log 0	0
        log false	test.lua:13: attempt to use an already closed statement
        log false	test.lua:14: 7 is not a type that parameters have"#,
    );
}

#[test]
fn statements_take_values_as_their_kinds_say() {
    check_sql(
        r#"
        local s = con:prepare("SELECT ?, ?, ?", "idt")
        s:execute(3, 0.25, "x")
        s:execute(true, nil, 7)
        print(s:row(1, 2, nil))
        print(s:row(1, 2, nil))
        print(select('#', s:row(1, 2, nil)))
        print(pcall(s.execute, s, 1))
        print(pcall(s.bind_param, s, 1, 2, 3))
        print(pcall(function() s.mine = 1 end))
        print(pcall(con.prepare, con, "SELECT ?", "x"))
        print(pcall(con.prepare, con, "SELECT ?", "ii"))"#,
        Driver::default()
            .rows("execute 0", 1, &[])
            .rows("execute 0", 1, &[])
            .rows("execute 0", 2, &[Some("a"), None, Some("later")])
            .rows("execute 0", 5, &[Some("1"), Some("2"), Some("3"), Some("4"), None])
            .rows("execute 0", 1, &[]),
        r#"prepare 0.0: SELECT ?, ?, ?
        execute 0.0: [Int(3), Double(0.25), Text([120])]
        execute 0.0: [Int(1), Null, Text([55])]
        execute 0.0: [Int(1), Double(2.0), Null]
        log a	nil
        execute 0.0: [Int(1), Double(2.0), Null]
        log 1	2	3	4	nil
        execute 0.0: [Int(1), Double(2.0), Null]
        log 0
        log false	test.lua:9: the statement takes 3 values, but 1 are given
        log false	test.lua:10: this statement was prepared to be executed with values, not parameters
        log false	test.lua:11: a statement that is executed with values cannot keep a field `mine`
        log false	test.lua:12: the kinds of parameters are letters: i, d, t, b or a
        log false	test.lua:13: the statement has 1 placeholders, but 2 kinds are given"#,
    );
}

#[test]
fn lean_statements_return_what_is_wanted_of_a_row() {
    let two_sets = || {
        let mut sets = rows(1, &[Some("1"), Some("2")]);
        sets.begin_set(1);
        sets.push_text(b"3").unwrap();
        Reply { rows: Some(sets), ..Reply::default() }
    };
    let one = [Some("1.50"), Some("left out"), Some("text"), None, Some("fifth")];
    check_sql(
        r#"
        local plain = con:prepare("SELECT ?, ?", "it")
        local s = plain:lean("n-t")
        local function show(...) print(select('#', ...), ...) end
        local price, skipped, text, fourth = s:row(1, "x")
        print(price + 1, skipped, text, fourth)
        show(plain:lean():row(2, "y"))
        show(s:row(3))
        show(s:row(4))
        print(s:row(5), con:more_results())
        show(s:execute(6, "z"))
        s:perform(7, nil)
        print(s:defer(8, "w"))
        print(pcall(s.row, s, 7.5))
        print(pcall(s.row, s, 9))
        show(s:row(10))
        print(pcall(plain.lean, plain, "x"))
        print(pcall(plain.lean, plain, "ttttt"))
        plain:close()
        print(pcall(s.row, s, 1, "x"))"#,
        Driver::default()
            .rows("execute 0", 5, &one)
            .rows("execute 0", 5, &one)
            .rows("execute 0", 1, &[])
            .rows("execute 0", 1, &[Some("no number")])
            .reply("execute 0", two_sets(), Verdict::Fatal)
            .rows("execute 0", 1, &[Some("6")])
            .rows("execute 0", 1, &[Some("7")])
            .error("execute 0", 1064, "42000", Verdict::Fatal)
            .rows("execute 0", 1, &[Some("10")]),
        r#"prepare 0.0: SELECT ?, ?
        execute 0.0: [Int(1), Text([120])]
        log 2.5	false	text	nil
        execute 0.0: [Int(2), Text([121])]
        log 4	1.50	left out	text	nil
        execute 0.0: [Int(3), Null]
        log 0
        execute 0.0: [Int(4), Null]
        log 4	no number	nil	nil	nil
        execute 0.0: [Int(5), Null]
        log 1	true
        execute 0.0: [Int(6), Text([122])]
        log 1	<sql_result>
        execute 0.0: [Int(7), Null]
        defer 0.0: [Int(8), Text([119])]
        log true
        log false	test.lua:15: parameter 1: 7.5 is not a whole number
        execute 0.0: [Int(9), Null]
        log false	test.lua:16: SQL error, errno = 1064, state = '42000': no luck
        execute 0.0: [Int(10), Null]
        log 4	10	nil	nil	nil
        log false	test.lua:18: the columns of a lean statement are up to four letters: t, n or -
        log false	test.lua:19: the columns of a lean statement are up to four letters: t, n or -
        flush 0
        close 0.0
        log false	test.lua:21: attempt to use an already closed statement"#,
    );
}

/// All sessions have the same object for it, but each closes its own, and a second connection has statements of its
/// own.
#[test]
fn a_statement_with_values_belongs_to_its_session_and_connection() {
    let script = r#"
        function thread_init()
          con = sysbench.sql.driver():connect()
          s = con:prepare("SELECT ?", "i")
          if sysbench.tid == 0 then
            other = sysbench.sql.driver():connect()
            apart = other:prepare("SELECT ?", "i")
            apart:execute(3)
            print(s:close(), s:close(), pcall(s.execute, s, 4))
          end
        end
        function event()
          if sysbench.tid == 0 then return apart:execute(5) end
          s:perform(6)
          print(tostring(s), s.connection == con)
        end
    "#;
    let program = program(script);
    let mut state = LuaState::new(&program, &setup()).unwrap();
    let mut driver = Driver::default();
    for number in 0..3 {
        let slot = state.add_session(number).unwrap();
        driver.run(&mut state, slot);
    }
    let of_one = [
        "connect 0",
        "prepare 0.0: SELECT ?",
        "ready",
        "next",
        "execute 0.0: [Int(6)]",
        "log <sql_statement>\ttrue",
        "next",
        "finished true",
    ];
    let wanted = [
        "connect 0",
        "prepare 0.0: SELECT ?",
        "connect 1",
        "prepare 1.0: SELECT ?",
        "execute 1.0: [Int(3)]",
        "close 0.0",
        "log 0\t0\tfalse\ttest.lua:9: attempt to use an already closed statement",
        "ready",
        "next",
        "execute 1.0: [Int(5)]",
        "next",
        "finished true",
    ];
    assert_eq!(driver.asked, [&wanted[..], &of_one, &of_one].concat());
}

#[test]
fn values_are_passed_on_exactly_or_refused_with_their_line() {
    check_sql(
        r#"
        local s = con:prepare("SELECT ?, ?, ?", "idt")
        local big = 2^53 + 0LL
        s:execute(7LL, 7LL, 7LL)
        s:execute(big + 1, 2^53 + 0LL, big + 1)
        s:execute(-2^63, 18446744073709551615ULL - 18446744073709551608ULL, 2^60)
        s:execute(require("ffi").new("int", 5), 0.1, 0.1 + 0.2)
        s:execute(18446744073709551615ULL, nil, 1e14)
        local function refused(value, ...)
          for _, i in ipairs{...} do
            local values = {1, 2, "3"}
            values[i] = value
            print(select(2, pcall(s.execute, s, unpack(values))))
          end
        end
        for _, value in ipairs{7.5, 0/0, 1e19, -1e19, 2^63} do refused(value, 1) end
        for _, value in ipairs{{}, print, require("ffi").new("struct { int a; }")} do refused(value, 1, 2, 3) end
        print(pcall(s.execute, s, 1, big + 1, 3))
        print(pcall(s.row, s, 7.5, 2, 3))
        print(pcall(s.perform, s, 7.5, 2, 3))
        print(pcall(s.defer, s, 7.5, 2, 3))
        s:execute(1, 2, 3)"#,
        Driver::default(),
        r#"prepare 0.0: SELECT ?, ?, ?
        execute 0.0: [Int(7), Double(7.0), Text([55])]
        execute 0.0: [Int(9007199254740993), Double(9007199254740992.0), Text([57, 48, 48, 55, 49, 57, 57, 50, 53, 52, 55, 52, 48, 57, 57, 51])]
        execute 0.0: [Int(-9223372036854775808), Double(7.0), Text([49, 49, 53, 50, 57, 50, 49, 53, 48, 52, 54, 48, 54, 56, 52, 54, 57, 55, 54])]
        execute 0.0: [Int(5), Double(0.1), Text([48, 46, 51, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 52])]
        execute 0.0: [Text([49, 56, 52, 52, 54, 55, 52, 52, 48, 55, 51, 55, 48, 57, 53, 53, 49, 54, 49, 53]), Null, Text([49, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48, 48])]
        log test.lua:14: parameter 1: 7.5 is not a whole number
        log test.lua:14: parameter 1: nan is not a whole number
        log test.lua:14: parameter 1: 1e+19 does not fit into 64 bits
        log test.lua:14: parameter 1: -1e+19 does not fit into 64 bits
        log test.lua:14: parameter 1: 9.2233720368548e+18 does not fit into 64 bits
        log test.lua:14: parameter 1: a table is not a value of a statement
        log test.lua:14: parameter 2: a table is not a value of a statement
        log test.lua:14: parameter 3: a table is not a value of a statement
        log test.lua:14: parameter 1: a function is not a value of a statement
        log test.lua:14: parameter 2: a function is not a value of a statement
        log test.lua:14: parameter 3: a function is not a value of a statement
        log test.lua:14: parameter 1: a cdata is not a value of a statement
        log test.lua:14: parameter 2: a cdata is not a value of a statement
        log test.lua:14: parameter 3: a cdata is not a value of a statement
        log false	test.lua:19: parameter 2: no double is equal to 9007199254740993
        log false	test.lua:20: parameter 1: 7.5 is not a whole number
        log false	test.lua:21: parameter 1: 7.5 is not a whole number
        log false	test.lua:22: parameter 1: 7.5 is not a whole number
        execute 0.0: [Int(1), Double(2.0), Text([51])]"#,
    );
}

#[test]
fn parameters_take_64_bit_integers_of_every_type() {
    check_sql(
        r#"
        local t = sysbench.sql.type
        local s = con:prepare("SELECT ?, ?, ?")
        local a, b, c = s:bind_create(t.BIGINT), s:bind_create(t.DOUBLE), s:bind_create(t.CHAR, 20)
        s:bind_param(a, b, c)
        a:set(7LL) b:set(7LL) c:set(7LL)
        s:execute()
        print(pcall(b.set, b, 9007199254740993LL))
        a:set(0/0)
        print(pcall(s.execute, s))
        a:set(1e19)
        print(pcall(s.execute, s))"#,
        Driver::default(),
        r#"prepare 0.0: SELECT ?, ?, ?
        execute 0.0: [Int(7), Double(7.0), Text([55])]
        log false	test.lua:9: no double is equal to 9007199254740993
        log false	test.lua:11: parameter 1: nan is not a whole number
        log false	test.lua:13: parameter 1: 1e+19 does not fit into 64 bits"#,
    );
}

#[test]
fn binding_another_number_of_parameters_than_placeholders_fails() {
    check_sql(
        r#"local s = con:prepare("SELECT ?, '?'") local p = s:bind_create(3) print(s:bind_param(p, p), s:bind_param())"#,
        Driver::default(),
        "prepare 0.0: SELECT ?, '?'
         log ALERT: wrong number of parameters to a prepared statement: 2 bound, 1 expected
         log 1\tnil",
    );
}

#[test]
fn rows_are_arrays_of_strings_and_a_row_less_statement_is_nil() {
    check_sql(
        r#"
        local rs = con:query("rows")
        print(rs.nrows, rs.nfields, tostring(rs), rs == nil)
        for i = 1, rs.nrows + 1 do
          local row = rs:fetch_row()
          if row then print(unpack(row, 1, rs.nfields)) else print(row) end
        end
        print(rs:free())
        print(con:query("update") == nil)
        print(con:query_row("rows"))
        print(con:query_row("none"), con:query_row("update"))
        print(con:query("none"):fetch_row())
        print(# con:query("many"):fetch_row())
        "#,
        Driver::default()
            .rows("rows", 2, &[Some("1"), Some("a"), None, Some("b")])
            .rows("rows", 2, &[Some("1"), None])
            .rows("none", 1, &[])
            .rows("none", 1, &[])
            .rows("many", 200, &vec![Some("x"); 200]),
        "query 0: rows
         log 2\t2\t<sql_result>\tfalse
         log 1\ta
         log nil\tb
         log nil
         log true
         query 0: update
         log true
         query 0: rows
         log 1\tnil
         query 0: none
         query 0: update
         log nil\tnil
         query 0: none
         log ALERT: fetch_row() finds no rows: the result is empty
         log nil
         query 0: many
         log 200",
    );
}

#[test]
fn numbers_from_the_binary_protocol_become_text() {
    let mut all = rows(3, &[]);
    all.push_int(-5);
    all.push_double(0.1);
    all.push_double(1e300);
    check_sql(
        r#"local s = con:prepare("q") print(unpack(s:execute():fetch_row()))"#,
        Driver::default().reply("execute 0", Reply { rows: Some(all), ..Reply::default() }, Verdict::Fatal),
        "prepare 0.0: q
         execute 0.0: []
         log -5\t0.1\t1e300",
    );
}

#[test]
fn a_result_is_gone_after_the_next_statement_or_free() {
    check_sql(
        r#"
        local rs = con:query("rows")
        con:query("update")
        print(pcall(rs.fetch_row, rs))
        print(pcall(rs.free, rs))
        rs = con:query("rows")
        rs:free()
        print(pcall(rs.free, rs))
        "#,
        Driver::default().rows("rows", 1, &[Some("1")]).rows("rows", 1, &[Some("1")]),
        "query 0: rows
         query 0: update
         log false\ttest.lua:5: this result set is gone: the next statement on its connection, the end of its transaction or free() has freed it
         log false\ttest.lua:6: this result set is gone: the next statement on its connection, the end of its transaction or free() has freed it
         query 0: rows
         log false\ttest.lua:9: this result set is gone: the next statement on its connection, the end of its transaction or free() has freed it",
    );
}

#[test]
fn results_of_two_connections_live_side_by_side() {
    check_sql(
        r#"
        local other = sysbench.sql.driver():connect()
        local rs = con:query("one")
        other:query("two")
        print(rs:fetch_row()[1])
        "#,
        Driver::default().rows("one", 1, &[Some("first")]).rows("two", 1, &[Some("second")]),
        "connect 1
         query 0: one
         query 1: two
         log first",
    );
}

#[test]
fn further_result_sets_follow_the_first() {
    let mut sets = rows(1, &[Some("a")]);
    sets.begin_set(2);
    for text in ["b", "c", "d", "e"] {
        sets.push_text(text.as_bytes()).unwrap();
    }
    check_sql(
        r#"
        print(con:query("call"):fetch_row()[1], con:more_results())
        local rs = con:next_result()
        print(rs.nrows, rs.nfields, unpack(rs:fetch_row()))
        print(con:more_results(), con:next_result())
        "#,
        Driver::default().reply("call", Reply { rows: Some(sets), ..Reply::default() }, Verdict::Fatal),
        "query 0: call
         log a\ttrue
         log 2\t2\tb\tc
         log false\tnil",
    );
}

#[test]
fn a_closed_connection_says_so() {
    check_sql(
        r#"
        print(con:disconnect())
        print(con:disconnect())
        print(pcall(con.query, con, "x"))
        "#,
        Driver::default(),
        "disconnect 0
         log true
         log ALERT: disconnect() does nothing: the connection is closed already
         log true
         log false\ttest.lua:5: the connection is closed",
    );
}

#[test]
fn bulk_inserts_are_joined_up_to_512_kib() {
    let setup = Setup { entry: Entry::Function("top".into()), ..setup() };
    let script = r#"
        function top()
          con = sysbench.sql.driver():connect()
          print(pcall(con.bulk_insert_next, con, "(1)"))
          con:bulk_insert_init("INSERT INTO t VALUES")
          local row = "(" .. ("x"):rep(1000) .. ")"
          for i = 1, 600 do con:bulk_insert_next(row) end
          print(con:bulk_insert_done(), con:bulk_insert_done())
        end"#;
    let said = conversation(script, &setup, Driver::default());
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[1], "log false\ttest.lua:4: bulk_insert_next() needs a bulk_insert_init() before it");
    let (first, second) = (lines[2].strip_prefix("query 0: ").unwrap(), lines[3].strip_prefix("query 0: ").unwrap());
    assert!(first.len() <= 512 * 1024 && first.len() > 511 * 1024, "{}", first.len());
    assert_eq!(first.matches("(xx").count() + second.matches("(xx").count(), 600);
    assert!(second.starts_with("INSERT INTO t VALUES (xx") && second.ends_with("x)"));
    assert_eq!(lines[4], "log true\ttrue");
}

#[test]
fn an_error_of_a_bulk_insert_is_never_a_restart() {
    check_sql(
        r#"con:bulk_insert_init("I") con:bulk_insert_next("(1)") print(pcall(con.bulk_insert_done, con))"#,
        Driver::default().error("I (1)", 1213, "40001", Verdict::Restart),
        "query 0: I (1)
         log false\ttest.lua:2: bulk_insert_done() failed: SQL error, errno = 1213, state = '40001': no luck",
    );
}

#[test]
fn the_driver_answers_to_its_own_name_only() {
    check_sql(
        r#"
        print(sysbench.sql.driver("mysql"):name(), tostring(sysbench.sql.driver()))
        print(pcall(sysbench.sql.driver, "pgsql"))
        print(pcall(sysbench.sql.driver, "oracle"))
        "#,
        Driver::default(),
        "log mysql\t<sql_driver>
         log false\ttest.lua:4: the script asks for the driver 'pgsql', but that of the database is 'mysql'
         log false\ttest.lua:5: the script asks for the driver 'oracle', but that of the database is 'mysql'",
    );
}

#[test]
fn a_text_that_is_not_of_its_parameters_kind_is_refused() {
    let run = |kind: &str, value: &str| {
        let script = format!(
            "function event()\n  local con = sysbench.sql.driver():connect()\n  \
             con:prepare('SELECT ?', '{kind}'):perform('{value}')\nend"
        );
        conversation(&script, &setup(), Driver { decision: Decision::Skip, ..Driver::default() })
    };
    for (kind, value, words) in [
        ("i", "abc", "parameter 1: 'abc' is not a whole number"),
        ("i", "2.5", "parameter 1: '2.5' is not a whole number"),
        ("i", "", "parameter 1: '' is not a whole number"),
        ("d", "x1", "parameter 1: 'x1' is not a number"),
        ("i", "-12", "[Int(-12)]"),
        ("d", "2.50", "[Text"),
        ("t", "abc", "[Text"),
    ] {
        assert!(run(kind, value).contains(words), "{kind} {value}: {}", run(kind, value));
    }
}
