//! What a script sees of the protocol: rows, NULLs, several results, notices, loads, errors; prepared and simple.

use insta::assert_snapshot;
use testkit::{Kind, redact};

use crate::common::Folder;
use crate::{on_every_version, versions};

/// Runs `body` as a command, with a connection `con`; returns its output.
fn said_by(body: &str, database: &str, code: i32) -> String {
    let folder = Folder::new();
    folder.write(
        "it.lua",
        &format!(
            "sysbench.cmdline.commands = {{it = {{function()\nlocal con = sysbench.sql.driver():connect()\n\
             local t = sysbench.sql.type\n{body}\nend}}}}"
        ),
    );
    let ran = folder.expect(&format!("exec ./it.lua it {database}"), code);
    assert_eq!(ran.stdout, "");
    ran.stderr.replace('\t', " ")
}

/// Runs a script where every server and both protocols must agree.
#[track_caller]
fn said_everywhere(body: &str, code: i32) -> String {
    let mut all: Vec<(String, String)> = Vec::new();
    on_every_version(|kind| {
        let server = kind.shared();
        for protocol in ["--prepared on", "--prepared off"] {
            let name = server.fresh_database().unwrap();
            let url = server.url(&name);
            let said = said_by(body, &format!("--db {url} {protocol}"), code);
            let said = redact::replace(&said, &[(&*url.replace("app@", ""), "[URL]"), (&url, "[URL]")]);
            all.push((format!("{} {protocol}", server.version()), said));
        }
    });
    for (place, said) in &all {
        assert_eq!(*said, all[0].1, "{place} beside {}", all[0].0);
    }
    all.pop().map(|(_, said)| said).unwrap_or_default()
}

/// Returns early where no server can be started: then there is nothing to compare.
macro_rules! assert_said {
    ($body:expr, $code:expr, @$expected:literal) => {
        if versions().count() > 0 {
            assert_snapshot!(said_everywhere($body, $code), @$expected);
        }
    };
}

#[test]
fn rows_of_many_batches_are_loaded_once_each_up_to_the_batch_that_fails() {
    assert_said!(
        r#"
        local padding = ("x"):rep(60)
        con:query("CREATE TABLE many (a int PRIMARY KEY, b text)")
        con:query("BEGIN")
        con:query("TRUNCATE many")
        local loader = con:loader("many", "a, b", true)
        for a = 1, 200000 do loader:row(a, padding) end
        loader:done()
        con:query("COMMIT")
        print(con:query_row("SELECT count(*), sum(a) FROM many"))
        local ok, failure = pcall(function()
          local loader = con:loader("many", "a, b")
          for a = 200001, 400000 do loader:row(a == 300000 and 1 or a, padding) end
          loader:done()
        end)
        print(ok, (tostring(failure):match("state = '23505'")))
        print(con:query_row("SELECT count(*) > 200000, count(*) = max(a), max(a) < 300000 FROM many"))
        "#, 0, @r"
    200000 20000100000
    false state = '23505'
    t t t
    ");
}

#[test]
fn rows_are_text_and_nulls_are_holes() {
    assert_said!(
        r#"
        local all = [[SELECT 1, NULL, 'it''s', true, 1.50::numeric, '\x00ff'::bytea, '', 2.5::float8, 9007199254740993,
          DATE '2024-02-29', ARRAY[1,NULL], 'snow ☃'::char(7) || '|', 7::oid, '-Infinity'::float8]]
        local rs = con:query(all)
        print(rs.nrows, rs.nfields, unpack(rs:fetch_row(), 1, rs.nfields))
        print(rs:fetch_row())
        local prepared = con:prepare(all)
        rs = prepared:execute()
        print(rs.nrows, rs.nfields, unpack(rs:fetch_row(), 1, rs.nfields))
        rs = con:query("SELECT n, NULLIF(n, 2) FROM generate_series(1, 3) AS n")
        for _ = 1, rs.nrows do print(unpack(rs:fetch_row(), 1, rs.nfields)) end
        print(con:query_row("SELECT n, n * n FROM generate_series(4, 6) AS n"))
        print(con:query_row("SELECT 1 WHERE false"), con:query("SELECT 1 WHERE false").nrows)
        print(con:query_row("SELECT"), con:query("SELECT").nrows)
        print(con:query("") == nil, con:query("CREATE TABLE t()") == nil, con:query("UPDATE pg_class SET relname = relname WHERE false") == nil)
        "#,
        0,
        @r"
    1 14 1 nil it's t 1.50 \x00ff  2.5 9007199254740993 2024-02-29 {1,NULL} snow ☃| 7 -Infinity
    nil
    1 14 1 nil it's t 1.50 \x00ff  2.5 9007199254740993 2024-02-29 {1,NULL} snow ☃| 7 -Infinity
    1 1
    2 nil
    3 3
    4 16
    nil 0
    nil 1
    true true true
    "
    );
}

#[test]
fn parameters_keep_what_they_hold() {
    assert_said!(
        r#"
        con:query("CREATE TABLE t (id int PRIMARY KEY, big bigint, x float8, s varchar(40), c char(3))")
        local insert = con:prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?)")
        local p = {insert:bind_create(t.INT), insert:bind_create(t.BIGINT), insert:bind_create(t.DOUBLE),
          insert:bind_create(t.VARCHAR, 40), insert:bind_create(t.CHAR, 3)}
        insert:bind_param(unpack(p))
        local function put(...) for i = 1, 5 do p[i]:set((select(i, ...))) end insert:execute() end
        put(1, -9223372036854775807LL, 0.1, "quote ' back \\ question ? $1", "ab")
        put(2, nil, nil, nil, nil)
        put(3, 0, -1e300, "", "☃")
        put(4, 1, 1, "line\nfeed\ttab", "x")
        local read = con:prepare("SELECT *, '?' FROM t WHERE id = ? AND '?' = '?'")
        local id = read:bind_create(t.INT)
        read:bind_param(id)
        for i = 1, 5 do
          id:set(i)
          local rs = read:execute()
          local row = rs:fetch_row()
          print(rs.nrows, row and (table.concat({tostring(row[1]), tostring(row[2]), tostring(row[3]), ("%q"):format(row[4] or "none"), tostring(row[5]), row[6]}, " ")))
        end
        print(insert:close(), read:close())
        "#,
        0,
        @r#"
    1 1 -9223372036854775807 0.1 "quote ' back \\ question ? $1" ab  ?
    1 2 nil nil "none" nil ?
    1 3 0 -1e+300 "" ☃   ?
    1 4 1 1 "line\
    feed\9tab" x   ?
    ALERT: fetch_row() finds no rows: the result is empty
    0 nil
    0 0
    "#
    );
}

#[test]
fn a_long_statement_and_a_long_value_arrive_whole() {
    assert_said!(
        r#"
        local text = ("0123456789abcdef"):rep(128 * 1024)
        print(con:query_row("SELECT length('" .. text .. "'), md5('" .. text .. "')"))
        print(#con:query_row("SELECT repeat('x', 20000000)"))
        local s = con:prepare("SELECT md5(?)")
        local p = s:bind_create(t.VARCHAR, 4000000)
        s:bind_param(p)
        p:set(text)
        print(s:execute():fetch_row()[1])
        local rs = con:query("SELECT n FROM generate_series(1, 50000) AS n")
        local sum = 0
        for _ = 1, rs.nrows do sum = sum + rs:fetch_row()[1] end
        print(rs.nrows, sum)
        "#,
        0,
        @r"
    2097152 3d1fac9a0e90cdd71f19e717128c8bc6
    20000000
    3d1fac9a0e90cdd71f19e717128c8bc6
    50000 1250025000
    "
    );
}

#[test]
fn a_text_of_several_statements_has_several_results() {
    assert_said!(
        r#"
        local rs = con:query("SELECT 1 AS a; CREATE TABLE t (n int); INSERT INTO t VALUES (7), (8); SELECT n, -n FROM t")
        print(rs and rs.nrows, rs and unpack(rs:fetch_row(), 1, rs.nfields))
        while con:more_results() do
          rs = con:next_result()
          if rs then for _ = 1, rs.nrows do print(unpack(rs:fetch_row(), 1, rs.nfields)) end else print("no rows") end
        end
        print(con:next_result())
        print(pcall(con.query, con, "INSERT INTO t VALUES (9); SELECT 1/0; INSERT INTO t VALUES (10)"))
        print(con:query_row("SELECT COUNT(*) FROM t"))
        "#,
        0,
        @r"
    1 1
    7 -7
    8 -8
    nil
    false ./it.lua:12: SQL error, errno = 0, state = '22012': division by zero
    2
    "
    );
}

#[test]
fn notices_and_notifications_are_no_results() {
    assert_said!(
        r#"
        con:query("LISTEN here")
        con:query("DO $$ BEGIN RAISE NOTICE 'look'; RAISE WARNING 'out'; END $$")
        con:query("NOTIFY here, 'you'")
        con:query("DROP TABLE IF EXISTS not_there")
        con:query("SET application_name = 'changed'; SET TimeZone = 'UTC'")
        print(con:query_row("SHOW application_name"))
        "#,
        0,
        @"changed"
    );
}

#[test]
fn errors_carry_the_servers_code_and_words() {
    assert_said!(
        r#"
        con:query("CREATE TABLE t (id int PRIMARY KEY CHECK (id < 100))")
        con:query("INSERT INTO t VALUES (1)")
        local function try(sql)
          local ok, e = pcall(con.query, con, sql)
          print(ok, type(e), (tostring(e):gsub("^.-: ", "", 1)))
          print(con.error == sysbench.sql.error.FATAL, con.sql_errno, con.sql_state, con.sql_errmsg)
        end
        try("SELECT 1/0")
        try("INSERT INTO t VALUES (1)")
        try("INSERT INTO t VALUES (100)")
        try("SELECT * FROM absent")
        try("SELEC 1")
        try("SELECT 'a'::int")
        con:query("BEGIN")
        try("SELECT 1/0")
        try("SELECT 1")
        con:query("ROLLBACK")
        print(con:query_row("SELECT COUNT(*) FROM t"), con.error)
        -- Where it fails depends on the protocol: when it is prepared, or when it is executed.
        print((select(2, pcall(function()
          local bad = con:prepare("SELECT * FROM absent WHERE id = ?")
          local p = bad:bind_create(t.INT)
          bad:bind_param(p)
          p:set(1)
          bad:execute()
        end)):gsub("^.-: ", "", 1)))
        local add = con:prepare("INSERT INTO t VALUES (?)")
        local p = add:bind_create(t.INT)
        add:bind_param(p)
        for _, n in ipairs {1, 2, 2, 3} do
          p:set(n)
          print(n, pcall(add.execute, add))
        end
        "#,
        0,
        @r#"
    false string SQL error, errno = 0, state = '22012': division by zero
    true 0 22012 division by zero
    false string SQL error, errno = 0, state = '23505': duplicate key value violates unique constraint "t_pkey"
    true 0 23505 duplicate key value violates unique constraint "t_pkey"
    false string SQL error, errno = 0, state = '23514': new row for relation "t" violates check constraint "t_id_check"
    true 0 23514 new row for relation "t" violates check constraint "t_id_check"
    false string SQL error, errno = 0, state = '42P01': relation "absent" does not exist
    true 0 42P01 relation "absent" does not exist
    false string SQL error, errno = 0, state = '42601': syntax error at or near "SELEC"
    true 0 42601 syntax error at or near "SELEC"
    false string SQL error, errno = 0, state = '22P02': invalid input syntax for type integer: "a"
    true 0 22P02 invalid input syntax for type integer: "a"
    false string SQL error, errno = 0, state = '22012': division by zero
    true 0 22012 division by zero
    false string SQL error, errno = 0, state = '25P02': current transaction is aborted, commands ignored until end of transaction block
    true 0 25P02 current transaction is aborted, commands ignored until end of transaction block
    1 0
    SQL error, errno = 0, state = '42P01': relation "absent" does not exist
    1 false ./it.lua:36: SQL error, errno = 0, state = '23505': duplicate key value violates unique constraint "t_pkey"
    2 true nil
    2 false ./it.lua:36: SQL error, errno = 0, state = '23505': duplicate key value violates unique constraint "t_pkey"
    3 true nil
    "#
    );
}

#[test]
fn a_hook_may_pass_over_errors_and_sees_their_table() {
    assert_said!(
        r#"
        function sysbench.hooks.sql_error_ignorable(e)
          print("hook", e.connection == con, e.query, e.sql_errno, e.sql_state, e.sql_errmsg)
          return e.sql_state == "22012"
        end
        local ok, e = pcall(con.query, con, "SELECT 1/0")
        print(ok, type(e), e.errcode == sysbench.error.RESTART_EVENT, e.sql_state, e.query, con.error == sysbench.sql.error.IGNORABLE)
        ok, e = pcall(con.query, con, "SELECT 1 FROM absent")
        print(ok, e)
        "#,
        0,
        @r#"
    hook true SELECT 1/0 0 22012 division by zero
    false table true 22012 SELECT 1/0 true
    hook true SELECT 1 FROM absent 0 42P01 relation "absent" does not exist
    false ./it.lua:11: SQL error, errno = 0, state = '42P01': relation "absent" does not exist
    "#
    );
}

#[test]
fn loading_copies_every_value_as_it_is() {
    assert_said!(
        r#"
        con:query('CREATE TABLE t (id int PRIMARY KEY, "a, b" text, x float8, n bigint, yes boolean)')
        local load = con:loader("t", 'id, "a, b", x, n, yes')
        load:row(1, "tab\tline\nreturn\rback\\slash \\. \\N", 0.1, 9007199254740993LL, true)
        load:row(2, nil, nil, nil, nil)
        load:row(3, "", -1e-300, 0, false)
        load:row(4, "snow ☃ 'quoted' \"twice\"", 1e15, 5, true)
        for i = 5, 30000 do load:row(i, ("x"):rep(60), i, i, true) end
        load:done()
        print(con:query_row("SELECT COUNT(*), SUM(id), COUNT(*) FILTER (WHERE \"a, b\" IS NULL) FROM t"))
        for i = 1, 4 do
          local row = con:query("SELECT * FROM t WHERE id = " .. i):fetch_row()
          print(row[1], row[2] and ("%q"):format(row[2]):gsub("\r", "\\r"), row[3], row[4], row[5])
        end
        local again = con:loader("t", "id")
        again:row(30001)
        again:row(1)
        print(pcall(again.done, again))
        local wrong = con:loader("t", "id, n")
        wrong:row(40000, "many")
        print(pcall(wrong.done, wrong))
        print(pcall(function() local l = con:loader("absent", "id") l:row(1) l:done() end))
        print(con:query_row("SELECT COUNT(*), MAX(id) FROM t"))
        con:bulk_insert_init("INSERT INTO t (id, n) VALUES")
        for i = 50001, 52000 do con:bulk_insert_next(("(%d, %d)"):format(i, i)) end
        con:bulk_insert_done()
        print(con:query_row("SELECT COUNT(*), MAX(id) FROM t"))
        "#,
        0,
        @r#"
    30000 450015000 1
    1 "tab\9line\
    return\13back\\slash \\. \\N" 0.1 9007199254740993 t
    2 nil nil nil nil
    3 "" -1e-300 0 f
    4 "snow ☃ 'quoted' \"twice\"" 1e+15 5 t
    false ./it.lua:21: SQL error, errno = 0, state = '23505': duplicate key value violates unique constraint "t_pkey"
    false ./it.lua:24: SQL error, errno = 0, state = '22P02': invalid input syntax for type bigint: "many"
    false ./it.lua:25: SQL error, errno = 0, state = '42P01': relation "absent" does not exist
    30000 30000
    32000 52000
    "#
    );
}

#[test]
fn statements_survive_what_a_script_does_to_its_connection() {
    assert_said!(
        r#"
        local s = con:prepare("SELECT ? + 1")
        local p = s:bind_create(t.INT)
        s:bind_param(p)
        p:set(41)
        print(s:execute():fetch_row()[1])
        local before = con:query_row("SELECT pg_backend_pid()")
        con:reconnect()
        print(con:query_row("SELECT pg_backend_pid()") ~= before)
        print(s:execute():fetch_row()[1])
        con:query("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
        local other = sysbench.sql.driver():connect()
        other:query("BEGIN; INSERT INTO t VALUES (2)")
        print(con:query_row("SELECT COUNT(*) FROM t"), (other:query_row("SELECT COUNT(*) FROM t")))
        other:query("COMMIT")
        print(other:disconnect(), con:query_row("SELECT COUNT(*) FROM t"))
        print(pcall(other.query, other, "SELECT 1"))
        "#,
        0,
        @r"
    42
    true
    42
    1 2
    true 2
    false ./it.lua:20: the connection is closed
    "
    );
}

/// The first batch of 4 MiB goes as text, later ones in binary if all columns allow it: `n` and `at` do not.
#[test]
fn large_loads_store_what_an_insert_stores() {
    assert_said!(
        r#"
        local columns = "id int, small smallint, large bigint, x double precision, s text, v varchar(9), c char(99)"
        for table, more in pairs { "", ", n numeric(6,2), at timestamp" } do
            table = "t" .. table
            local extra = more == "" and "" or ", i::numeric / 8, timestamp '2026-01-01' + i * interval '1 s'"
            con:query("CREATE TABLE " .. table .. " (" .. columns .. more .. ")")
            con:query("CREATE TABLE expected_" .. table .. " AS SELECT * FROM " .. table)
            con:query("INSERT INTO expected_" .. table .. " SELECT i, i - 15000, i * 4294967296, i / 4.0::float8,"
                .. "CASE WHEN i % 7 > 0 THEN 'ä' || chr(9) || i || repeat('s', 40) END, 'v' || i, repeat('c', i % 99)" .. extra
                .. " FROM generate_series(1, 45000) i")
            local names = "id, small, large, x, s, v, c" .. (more == "" and "" or ", n, at")
            local load = con:loader(table, names)
            for i = 1, 45000 do
                local s = i % 7 > 0 and "ä\t" .. i .. ("s"):rep(40) or nil
                if more == "" then
                    load:row(i, i - 15000, i * 4294967296LL, i / 4, s, "v" .. i, ("c"):rep(i % 99))
                else
                    load:row(i, i - 15000, i * 4294967296LL, i / 4, s, "v" .. i, ("c"):rep(i % 99), i / 8,
                        os.date("!%Y-%m-%d %H:%M:%S", 1767225600 + i))
                end
            end
            load:done()
            print((con:query_row("SELECT COUNT(*) FROM " .. table)),
                (con:query_row(("SELECT COUNT(*) FROM (SELECT * FROM %s EXCEPT SELECT * FROM expected_%s) t"):format(
                    table, table))))
        end
        con:query("CREATE TABLE narrow (id smallint, s text)")
        local load, filler = con:loader("narrow", "id, s"), ("x"):rep(1000)
        print(pcall(function()
            for i = 26000, 36000 do load:row(i, filler) end
            load:done()
        end))
        print((con:query_row("SELECT COUNT(*) FROM narrow")))
        "#,
        0,
        @r#"
    45000 0
    45000 0
    false ./it.lua:34: SQL error, errno = 0, state = '22003': value "32768" is out of range for type smallint
    4162
    "#
    );
}

#[test]
fn copy_in_a_query_is_refused_and_harmless() {
    assert_said!(
        r#"
        con:query("CREATE TABLE t (a int)")
        print(pcall(con.query, con, "COPY t FROM STDIN"))
        print(pcall(con.query, con, "COPY t TO STDOUT"))
        print(con:query_row("SELECT COUNT(*) FROM t"))
        "#,
        0,
        @r"
    false ./it.lua:6: SQL error, errno = 0, state = '': COPY … FROM STDIN cannot be run from a script
    false ./it.lua:7: SQL error, errno = 0, state = '': COPY … TO STDOUT cannot be run from a script
    0
    "
    );
}

#[test]
fn session_sql_runs_on_every_new_connection() {
    on_every_version(|kind| {
        let server = kind.shared();
        let body = r#"
            print(con:query_row("SHOW statement_timeout"), (con:query_row("SHOW search_path")))
            con:reconnect()
            print(con:query_row("SHOW statement_timeout"))
            print(pcall(con.query, con, "SELECT pg_sleep(60)"))"#;
        let options = "--session-sql 'SET statement_timeout = 50' --session-sql 'SET search_path TO pg_catalog'";
        let said = said_by(body, &format!("--db {} {options}", server.url("app")), 0);
        assert_snapshot!(said, @r"
        50ms pg_catalog
        50ms
        false ./it.lua:8: SQL error, errno = 0, state = '57014': canceling statement due to statement timeout
        ");
        let refused = said_by("", &format!("--db {} --session-sql 'SELEC 1'", server.url("app")), 4);
        assert_snapshot!(redact::replace(&refused, &[(&server.port().to_string(), "[PORT]")]), @r#"
        error: postgres://app@127.0.0.1:[PORT]/app refused the connection
          syntax error at or near "SELEC" (in the session statement `SELEC 1`) (42601)

        hint: check the statement in `--session-sql`
        "#);
    });
}

#[test]
fn sqlite_answers_the_same_script_the_same_way() {
    let body = r#"
        con:query("CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT)")
        local load = con:loader("t", "id, s")
        load:row(1, "one") load:row(2, nil) load:row(3, "tab\t☃")
        load:done()
        local s = con:prepare("SELECT id, s FROM t WHERE id >= ? ORDER BY id")
        local p = s:bind_create(t.INT)
        s:bind_param(p)
        p:set(2)
        local rs = s:execute()
        for _ = 1, rs.nrows do print(unpack(rs:fetch_row(), 1, rs.nfields)) end
        rs = con:query("INSERT INTO t VALUES (4, 'four'); SELECT COUNT(*) FROM t")
        while con:more_results() do rs = con:next_result() or rs end
        print(rs and unpack(rs:fetch_row(), 1, 1))
        print((select(2, pcall(con.query, con, "INSERT INTO t VALUES (1, 'again')"))):find("SQL error", 1, true) ~= nil)
        print(con:query_row("SELECT MAX(id) FROM t"))"#;
    let Some(server) = versions().map(Kind::shared).next() else { return };
    let postgres = said_by(body, &format!("--db {}", server.url(&server.fresh_database().unwrap())), 0);
    assert_eq!(said_by(body, "--db sqlite:a.db", 0), postgres);
    assert_snapshot!(postgres, @r"
    2 nil
    3 tab ☃
    4
    true
    4
    ");
}

#[test]
fn a_retried_transaction_of_a_pgbench_script_has_the_same_random_values_and_variables() {
    if !Kind::Postgres.present() {
        return;
    }
    let server = Kind::Postgres.shared();
    let name = server.fresh_database().unwrap();
    // Every second attempt is refused, for a reason to retry; the next one has to come with the same number.
    let attempt = "CREATE SEQUENCE attempts; CREATE SEQUENCE last; \
         CREATE FUNCTION attempt(tag bigint) RETURNS bigint LANGUAGE plpgsql AS $$ \
         DECLARE before bigint := (SELECT last_value FROM last); BEGIN PERFORM setval('last', tag); \
         IF nextval('attempts') % 2 = 1 THEN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END IF; \
         IF before <> tag THEN RAISE EXCEPTION 'another number: % and %', before, tag; END IF; RETURN 1; END $$";
    server.sql(&name, attempt).unwrap();
    let folder = Folder::new();
    let draw = "\\set a random(1, 1000000000)\n\\set b random(1, 1000000000)\n";
    for (script, options) in [
        // Without Lua, and with it.
        (format!("{draw}BEGIN;\nSELECT attempt(:a::bigint + :b::bigint);\nCOMMIT;\n"), ""),
        (format!("{draw}BEGIN;\n\\if 1\nSELECT attempt(:a::bigint + :b::bigint);\n\\endif\nCOMMIT;\n"), ""),
        (format!("{draw}\\set c random_gaussian(1, 1000000, 2)\nSELECT attempt(:a::bigint + :c::bigint);\n"), ""),
        // What a transaction finds of the one before.
        ("\\set n :n + 1\nSELECT attempt(:n);\n".to_owned(), "--n 7"),
        ("\\set n :n + :d\nSELECT attempt(:n);\nSELECT 2 AS d \\gset\n".to_owned(), "--n 7 --d 1"),
    ] {
        folder.write("it.sql", &script);
        let line = format!("run it.sql --db {} --transactions 20 --retries 1 {options}", server.url(&name));
        let ran = folder.expect(&format!("{line} --no-record --format json"), 0);
        let total = &ran.findings()["stages"][0]["total"];
        assert_eq!((total["transactions"].as_u64(), total["retries"].as_u64()), (Some(20), Some(20)), "{script}");
    }
}

#[test]
fn a_failed_transaction_that_is_left_open_is_lost_like_any_other() {
    on_every_version(|kind| {
        let server = kind.shared();
        let name = server.fresh_database().unwrap();
        let folder = Folder::new();
        for event in ["con:query('BEGIN')", "con:query('BEGIN') pcall(con.query, con, 'SELECT 1 / 0')"] {
            let connect = "function thread_init() con = sysbench.sql.driver():connect() end";
            folder.write("it.lua", &format!("{connect}\nfunction event()\n{event}\nend\n"));
            let line = format!("run ./it.lua --db {} --transactions 5 --no-record --format json", server.url(&name));
            let ran = folder.expect(&line, 3);
            assert!(ran.stderr.contains("./it.lua:4: event() ended inside a database transaction"), "{}", ran.shown());
            assert_eq!(ran.findings()["stages"][0]["total"]["transactions"], 0);
        }
    });
}
