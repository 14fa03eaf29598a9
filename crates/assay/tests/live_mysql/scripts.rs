//! What scripts receive: every type as the same strings in both protocols, several results, large packets, files,
//! errors.

use testkit::{Kind, ServerSetup};

use crate::common::Folder;
use crate::{go, on_each, said};

/// Runs a script's command on a fresh database of both servers, with and without prepared statements; the output must
/// be the same.
#[track_caller]
fn check(script: &str, expected: &str) {
    on_each(|kind| {
        let server = kind.shared();
        for options in ["", "--prepared off"] {
            let url = server.url(&server.fresh_database().unwrap());
            let script = format!("local con = sysbench.sql.driver():connect()\n{script}");
            let found = said(server, &go(&Folder::new(), &script, &url, options));
            assert_eq!(found.trim_end(), expected, "{kind:?} {options}");
        }
    });
}

#[test]
fn values_are_the_same_strings_in_text_and_in_prepared_form() {
    check(
        r#"
        con:query([[CREATE TABLE t(
          a TINYINT, b BIGINT UNSIGNED, c DECIMAL(30,10), d FLOAT, e DOUBLE, f DATE, g DATETIME, h DATETIME(6), i TIME, j TIME(3),
          k TIMESTAMP(2) NULL, l YEAR, m BIT(10), n CHAR(5), o TEXT, p VARBINARY(4), q ENUM('x','y'), r SET('x','y'), s BIGINT)]])
        con:query("SET time_zone = '+00:00'")
        con:query([[INSERT INTO t VALUES (-128, 18446744073709551615, -12345678901234567890.0123456789, 0.1, 1e100,
          '2024-02-29', '2024-02-29 01:02:03', '1999-12-31 23:59:59.000001', '-838:59:59', '12:00:00.5',
          '2024-02-29 01:02:03.25', 2024, b'1', 'é', 'long', x'6162', 'y', 'x,y', -9223372036854775808),
          (0, 0, 0, -1.5, 0.1, '1000-01-01', '1000-01-01 00:00:00', '1000-01-01 00:00:00', '00:00:00', '-00:00:00.001',
          NULL, 1901, b'0', '', '', '', 'x', '', 9223372036854775807),
          (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)]])
        local text = "SELECT a, b, c, d, e, f, g, h, i, j, k, l, m + 0, n, o, p, q, r, s FROM t ORDER BY a IS NULL, a"
        local function rows(result)
          local lines = {}
          for _ = 1, result.nrows do
            local row = result:fetch_row()
            for i = 1, result.nfields do row[i] = row[i] or "NULL" end
            lines[#lines + 1] = table.concat(row, "|")
          end
          return table.concat(lines, "\n")
        end
        local one, other = rows(con:query(text)), rows(con:prepare(text):execute())
        print(one)
        print(one == other and "the same" or other)
        "#,
        "-128|18446744073709551615|-12345678901234567890.0123456789|0.1|1e100|2024-02-29|2024-02-29 01:02:03|\
         1999-12-31 23:59:59.000001|-838:59:59|12:00:00.500|2024-02-29 01:02:03.25|2024|1|é|long|ab|y|x,y|-9223372036854775808\n\
         0|0|0.0000000000|-1.5|0.1|1000-01-01|1000-01-01 00:00:00|1000-01-01 00:00:00.000000|00:00:00|-00:00:00.001|\
         NULL|1901|0||||x||9223372036854775807\n\
         NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL\nthe same",
    );
}

#[test]
fn parameters_arrive_as_what_they_are() {
    check(
        r#"
        local types = sysbench.sql.type
        con:query("CREATE TABLE t(a BIGINT, b DOUBLE, c VARCHAR(20))")
        local insert = con:prepare("INSERT INTO t VALUES (?, ?, ?)")
        local a, b, c = insert:bind_create(types.BIGINT), insert:bind_create(types.DOUBLE), insert:bind_create(types.VARCHAR, 20)
        insert:bind_param(a, b, c)
        for _, values in ipairs {{1, 0.5, "it's"}, {-2^53, 1e-300, "a\\b\0c"}, {9223372036854775807LL, -0.1, "?"}, {7}} do
          a:set(values[1]) b:set(values[2]) c:set(values[3])
          insert:execute()
        end
        local result = con:query("SELECT a, b, HEX(c) FROM t ORDER BY a")
        for _ = 1, result.nrows do
          local row = result:fetch_row()
          print(row[1], row[2] or "NULL", row[3] or "NULL")
        end
        "#,
        "-9007199254740992 1e-300 615C620063\n1 0.5 69742773\n7 NULL NULL\n9223372036854775807 -0.1 3F",
    );
}

/// MariaDB describes the columns of a statement once, and again when they change.
#[test]
fn columns_may_change_under_a_prepared_statement() {
    check(
        r#"
        con:query("CREATE TABLE t(a INT, b DOUBLE)")
        con:query("INSERT INTO t VALUES (7, 0.5)")
        local all, sum = con:prepare("SELECT * FROM t"), con:prepare("SELECT a, a * 2, 'it' FROM t WHERE a = ?", "i")
        local given = con:prepare("SELECT ?", "a")
        local function line(result) return (table.concat(result:fetch_row(), "|")) end
        local function show()
          for _ = 1, 3 do print(line(all:execute()), line(sum:execute(7)), line(given:execute(7))) end
          all:perform()
          print(line(all:execute()), line(con:query("SELECT 'text'")), line(all:execute()))
        end
        show()
        con:query("ALTER TABLE t MODIFY a VARCHAR(20), ADD c DATE")
        con:query("UPDATE t SET c = '2024-02-29'")
        show()
        local other = sysbench.sql.driver():connect()
        other:query("ALTER TABLE t DROP b, MODIFY a BIGINT")
        show()
        other:query("DROP TABLE t")
        print((tostring(select(2, pcall(all.execute, all))):match("errno = %d+")))
        other:query("CREATE TABLE t(a TIME)")
        other:query("INSERT INTO t VALUES ('01:02:03')")
        print(line(all:execute()), line(all:execute()))
        "#,
        "7|0.5 7|14|it 7\n7|0.5 7|14|it 7\n7|0.5 7|14|it 7\n7|0.5 text 7|0.5\n\
         7|0.5|2024-02-29 7|14|it 7\n7|0.5|2024-02-29 7|14|it 7\n7|0.5|2024-02-29 7|14|it 7\n\
         7|0.5|2024-02-29 text 7|0.5|2024-02-29\n\
         7|2024-02-29 7|14|it 7\n7|2024-02-29 7|14|it 7\n7|2024-02-29 7|14|it 7\n\
         7|2024-02-29 text 7|2024-02-29\nerrno = 1146\n01:02:03 01:02:03",
    );
}

#[test]
fn a_statement_may_have_several_results() {
    check(
        r#"
        local function show(result)
          print(result and result.nrows .. " rows, first " .. tostring(result:fetch_row()[1]) or "no rows", con:more_results())
        end
        show(con:query("SELECT 1; SELECT 2 UNION SELECT 3; SET @a = 1; SELECT 'end'"))
        while con:more_results() do show(con:next_result()) end
        print(con:next_result())
        con:query("CREATE PROCEDURE pair(n INT) BEGIN SELECT n; SELECT n + 1 UNION SELECT n + 2; END")
        local call = con:prepare("CALL pair(?)")
        local n = call:bind_create(sysbench.sql.type.INT)
        call:bind_param(n)
        for _, value in ipairs {10, 20} do
          n:set(value)
          show(call:execute())
          while con:more_results() do show(con:next_result()) end
        end
        print((table.concat({tostring(select(2, pcall(con.query, con, "SELECT 1; SELECT nothing")))}):gsub(" in '.*", "")))
        print(con:query_row("SELECT 'still here'"))
        "#,
        "1 rows, first 1 true\n2 rows, first 2 true\n1 rows, first end false\nnil\n\
         1 rows, first 10 true\n2 rows, first 11 false\n\
         1 rows, first 20 true\n2 rows, first 21 false\n\
         ./it.lua:19: SQL error, errno = 1054, state = '42S22': Unknown column 'nothing'\nstill here",
    );
}

#[test]
fn packets_may_be_larger_than_sixteen_mebibytes_both_ways() {
    on_each(|kind| {
        let config = vec!["max_allowed_packet = 64M".to_owned(), "innodb_log_file_size = 256M".to_owned()];
        let server = kind.start(&ServerSetup { config, ..ServerSetup::default() }).unwrap();
        let script = r#"
        local con = sysbench.sql.driver():connect()
        con:query("CREATE TABLE t(id INT PRIMARY KEY, a LONGTEXT)")
        local insert = con:prepare("INSERT INTO t VALUES (?, ?)")
        local id, a = insert:bind_create(sysbench.sql.type.INT), insert:bind_create(sysbench.sql.type.VARCHAR, 2^26)
        insert:bind_param(id, a)
        local select = con:prepare("SELECT a FROM t WHERE id = 2")
        for _, size in ipairs {2^24 - 1, 2^24 + 5} do
          local long = ("x"):rep(size)
          con:query("INSERT INTO t VALUES (1, '" .. long .. "')")
          id:set(2) a:set(long)
          insert:execute()
          print(#long, con:query_row("SELECT a FROM t WHERE id = 1") == long, select:execute():fetch_row()[1] == long)
          con:query("TRUNCATE t")
        end
        print(pcall(con.query, con, "SELECT '" .. ("x"):rep(2^26) .. "'"))
        "#;
        let ran = go(&Folder::new(), script, &server.url("app"), "");
        // The script's output; without the warning that it blocks its worker, where copying takes more than a second.
        let lines: Vec<_> = ran.stderr.lines().filter(|line| line.contains('\t')).collect();
        let passed = ["16777215", "16777221"].map(|size| format!("{size}\ttrue\ttrue"));
        assert_eq!(lines[..2], passed, "{}", ran.shown());
        // MySQL sometimes closes the connection before its message arrives.
        assert!(lines[2].starts_with("false"), "{}", ran.shown());
    });
}

/// Loads 3,000 rows and prints what arrived.
const LOAD: &str = r#"
    local con = sysbench.sql.driver():connect()
    con:query("CREATE TABLE t(id INT PRIMARY KEY, a TEXT, b DOUBLE) CHARACTER SET utf8mb4")
    local function load(from)
      local loader = con:loader("t", "id,a,b")
      for i = from, from + 2999 do loader:row(i, i % 100 > 0 and "it's\ta\\b\n" .. ("é"):rep(20) or nil, i / 8) end
      loader:done()
    end
    load(1)
    print(con:query_row("SELECT COUNT(*), COUNT(a), SUM(b), MIN(HEX(a)), MAX(HEX(a)), MAX(CHAR_LENGTH(a)) FROM t"))
    local before = {con:query_row("SHOW SESSION STATUS LIKE 'Com_insert'")}
    print("by file:", tonumber(before[2]) == 0)
    local ok, why = pcall(load, 2000)
    print(ok, why)
    print(con:query_row("SELECT COUNT(*) FROM t"))
"#;

#[test]
fn rows_are_loaded_by_file_where_the_server_allows_it_and_by_inserts_elsewhere() {
    on_each(|kind| {
        for local_infile in ["ON", "OFF"] {
            let config = vec![format!("local_infile = {local_infile}")];
            let server = kind.start(&ServerSetup { config, ..ServerSetup::default() }).unwrap();
            let found = said(&server, &go(&Folder::new(), LOAD, &server.url("app"), "--prepared off"));
            let bytes = format!("6974277309615C620A{}", "C3A9".repeat(20));
            let by_file = local_infile == "ON";
            let expected = format!(
                "3000 2970 562687.5 {bytes} {bytes} 29\nby file: {by_file}\n\
                 false ./it.lua:[LINE]: SQL error, errno = 1062, state = '23000': Duplicate entry '2000' for key '[KEY]'\n3000\n"
            );
            let found = found
                .replace("it.lua:8", "it.lua:[LINE]")
                .replace("'PRIMARY'", "'[KEY]'")
                .replace("'t.PRIMARY'", "'[KEY]'");
            assert_eq!(found, expected, "{kind:?} {local_infile}");
        }
    });
}

#[test]
fn rows_are_loaded_as_parameters_where_the_server_takes_many_at_once() {
    // All numbers have fractions: a column's parameters have one type.
    let script = LOAD
        .replace("i / 8)", "i / 8 + 0.0625)")
        .replace("Com_insert", "Com_stmt_prepare")
        .replace(r#""by file:", tonumber(before[2]) == 0"#, r#""prepared:", before[2]"#);
    let server = Kind::MariaDb.start(&ServerSetup::default()).unwrap();
    let found = said(&server, &go(&Folder::new(), &script, &server.url("app"), ""));
    let bytes = format!("6974277309615C620A{}", "C3A9".repeat(20));
    let expected = format!(
        "3000 2970 562875 {bytes} {bytes} 29\nprepared: 1\n\
         false ./it.lua:8: SQL error, errno = 1062, state = '23000': Duplicate entry '2000' for key 'PRIMARY'\n3000\n"
    );
    assert_eq!(found, expected);
}

#[test]
fn the_next_rows_are_made_while_the_server_stores_these_and_no_refusal_is_lost() {
    let script = r#"
        local con = sysbench.sql.driver():connect()
        con:query("CREATE TABLE t(id INT PRIMARY KEY, a CHAR(100))")
        local function load(from, to)
          local loader = con:loader("t", "id,a")
          for i = from, to do loader:row(i, ("x"):rep(100)) end
          return loader
        end
        load(1, 100000):done()
        print(con:query_row("SELECT COUNT(*), SUM(id) FROM t"))
        print(pcall(load, 50001, 250000))
        print(con:query_row("SELECT COUNT(*) FROM t"))
        local loader = load(300001, 301000)
        loader:flush()
        if DONE then loader:done() end
    "#;
    let server = Kind::MariaDb.shared();
    let run = |done: &str| {
        let database = server.fresh_database().unwrap();
        go(&Folder::new(), &script.replace("DONE", done), &server.url(&database), "")
    };
    let found = "100000 5000050000\n\
         false ./it.lua:7: SQL error, errno = 1062, state = '23000': Duplicate entry '50001' for key 'PRIMARY'\n\
         100000\n";
    assert_eq!(said(server, &run("true")), found);
    let ran = run("false");
    assert!(ran.stderr.contains("call `done` after the last row"), "{}", ran.shown());
}

#[test]
fn a_load_may_be_small_and_the_last_that_a_command_does() {
    let server = Kind::MariaDb.shared();
    for rows in [1, 10, 1000] {
        let script = format!(
            r#"local con = sysbench.sql.driver():connect()
            con:query("CREATE TABLE t(id INT PRIMARY KEY, a CHAR(100))")
            local loader = con:loader("t", "id,a")
            for i = 1, {rows} do loader:row(i, ("x"):rep(100)) end
            loader:done()"#
        );
        let database = server.fresh_database().unwrap();
        assert_eq!(said(server, &go(&Folder::new(), &script, &server.url(&database), "")), "", "{rows} rows");
    }
}

/// A batch is larger than the largest packet of this server.
#[test]
fn a_batch_travels_in_packets_that_servers_take() {
    let script = r#"
        local con = sysbench.sql.driver():connect()
        con:query("CREATE TABLE t(id INT PRIMARY KEY, a CHAR(100))")
        local loader = con:loader("t", "id,a")
        for i = 1, 60000 do loader:row(i, ("x"):rep(100)) end
        loader:done()
        print(con:query_row("SELECT COUNT(*), SUM(id) FROM t"))
    "#;
    on_each(|kind| {
        let settings = ServerSetup { config: vec!["max_allowed_packet = 200K".to_owned()], ..ServerSetup::default() };
        let server = kind.start(&settings).unwrap();
        // In bulk or by file, and as INSERTs.
        for (number, prepared) in ["on", "off"].into_iter().enumerate() {
            let script = script
                .replace(" t(", &format!(" t{number}("))
                .replace("\"t\"", &format!("\"t{number}\""))
                .replace("FROM t", &format!("FROM t{number}"));
            let loaded = go(&Folder::new(), &script, &server.url("app"), &format!("--prepared {prepared}"));
            assert_eq!(said(&server, &loaded), "60000 1800030000\n", "{kind:?} {prepared}");
        }
    });
}

#[test]
fn ascii_arrives_in_every_character_set_and_the_session_keeps_its_own() {
    let script = r#"
        local con = sysbench.sql.driver():connect()
        con:query("CREATE TABLE t(id INT PRIMARY KEY, a VARCHAR(60) CHARACTER SET latin1, b VARCHAR(60) CHARACTER SET utf16, " ..
          "c VARCHAR(60) CHARACTER SET utf8mb4, d VARBINARY(60))")
        local text = "it's\ta\\b" .. ("x"):rep(40)
        local function load(from)
          local loader = con:loader("t", "id,a,b,c,d")
          for i = from, from + 2999 do
            local mine = text .. i % 2
            loader:row(i, mine, mine, mine, mine)
          end
          loader:done()
        end
        local function speaks() return con:query_row("SELECT @@character_set_client, @@collation_connection, HEX('é')") end
        con:query("SET NAMES utf8mb4 COLLATE utf8mb4_polish_ci")
        print(speaks())
        load(1)
        print(speaks())
        print(pcall(load, 2000))
        print(speaks())
        print(con:query_row("SELECT COUNT(DISTINCT a, b, c, d), MIN(a = CONVERT(b USING latin1) AND a = c AND a = d), MAX(LENGTH(b)), MAX(HEX(d)) FROM t"))
    "#;
    let server = Kind::MariaDb.shared();
    let database = server.fresh_database().unwrap();
    let found = said(server, &go(&Folder::new(), script, &server.url(&database), ""));
    let (speaks, hex) = ("utf8mb4 utf8mb4_polish_ci C3A9", format!("6974277309615C62{}", "78".repeat(40)));
    let expected = format!(
        "{speaks}\n{speaks}\nfalse ./it.lua:13: SQL error, errno = 1062, state = '23000': Duplicate entry '2000' for key \
         'PRIMARY'\n{speaks}\n2 1 98 {hex}31\n"
    );
    assert_eq!(found, expected);
}

#[test]
fn what_is_the_same_in_all_rows_is_stored_as_in_one() {
    let script = r#"
        local con = sysbench.sql.driver():connect()
        con:query("CREATE TABLE t(id INT PRIMARY KEY, v VARCHAR(60), n SMALLINT UNSIGNED NOT NULL, m DECIMAL(6,2), f DOUBLE, " ..
          "d DATETIME, e ENUM('2', 'x', 'y'), a CHAR(20) CHARACTER SET latin1, u VARCHAR(20) CHARACTER SET utf8mb4, z INT)")
        local function load(first, last, n)
          local loader = con:loader("t", "id,v,n,m,f,d,e,a,u,z")
          for i = first, last do
            loader:row(i, ("x"):rep(40) .. i, n, "-10.25", 0.5, "2026-11-22 09:46:06", 2, [[it's a\]], [[ü\]], nil)
          end
          loader:done()
        end
        for _, mode in ipairs { "STRICT_TRANS_TABLES", "STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES" } do
          con:query("SET sql_mode = '" .. mode .. "'")
          con:query("TRUNCATE t")
          load(1, 1, 7)
          load(2, 3000, 7)
          print(con:query_row("SELECT COUNT(*), COUNT(DISTINCT n, m, f, d, e, a, u), COUNT(z), MAX(m), MAX(d), MIN(e), MAX(a), MAX(u) FROM t"))
        end
        for _, wrong in ipairs { -1, "seven", false } do
          if wrong == false then wrong = nil end
          print(select(2, pcall(load, 3001, 6000, wrong)):match("errno = %d+"))
        end
        print(con:query_row("SELECT COUNT(*) FROM t"))
    "#;
    let server = Kind::MariaDb.shared();
    let database = server.fresh_database().unwrap();
    let found = said(server, &go(&Folder::new(), script, &server.url(&database), ""));
    let stored = r"3000 1 0 -10.25 2026-11-22 09:46:06 x it's a\ ü\";
    assert_eq!(found, format!("{stored}\n{stored}\nerrno = 1264\nerrno = 1366\nerrno = 1048\n3000\n"));
}

#[test]
fn bulk_inserts_are_flushed_when_full_and_at_the_end() {
    check(
        r#"
        con:query("CREATE TABLE t(id INT PRIMARY KEY, a TEXT)")
        con:bulk_insert_init("INSERT INTO t VALUES")
        local pad, flushed = ("x"):rep(1000), 0
        for i = 1, 1500 do con:bulk_insert_next("(" .. i .. ",'" .. pad .. "')") end
        local other = sysbench.sql.driver():connect()
        print("before the end", other:query_row("SELECT COUNT(*) FROM t"))
        con:bulk_insert_done()
        print("after", other:query_row("SELECT COUNT(*), SUM(LENGTH(a)) FROM t"))
        con:bulk_insert_init("INSERT INTO t(id) VALUES")
        con:bulk_insert_next("(1)")
        print((select(2, pcall(con.bulk_insert_done, con)):gsub("for key.*", "")))
        print(pcall(con.bulk_insert_next, con, "(2)"))
        con:bulk_insert_done()
        print(pcall(function() con:bulk_insert_init("INSERT INTO t(id) VALUES") con:bulk_insert_next(("x"):rep(600000)) end))
        "#,
        "before the end 1038\nafter 1500 1500000\n\
         ./it.lua:14: bulk_insert_done() failed: SQL error, errno = 1062, state = '23000': Duplicate entry '1' \n\
         false ./it.lua:15: bulk_insert_next() needs a bulk_insert_init() before it\n\
         false ./it.lua:17: bulk_insert_next() failed: a row of 600000 bytes does not fit into one statement of 512 KiB",
    );
}

#[test]
fn errors_carry_number_state_and_words() {
    check(
        r#"
        con:query("CREATE TABLE t(id INT PRIMARY KEY)")
        con:query("INSERT INTO t VALUES (1)")
        local insert = con:prepare("INSERT INTO t VALUES (?)")
        local id = insert:bind_create(sysbench.sql.type.INT)
        insert:bind_param(id)
        id:set(1)
        sysbench.hooks.sql_error_ignorable = function(e)
          print(e.sql_errno, e.sql_state, (e.sql_errmsg:gsub(" for key.*", ""):gsub("You have an error.*", "…")), e.query, e.connection == con)
          return e.sql_errno == 1062
        end
        for _, body in ipairs {
          function() con:query("INSERT INTO t VALUES (1)") end,
          function() insert:execute() end,
          function() con:query("SELEKT 1") end,
        } do
          local ok, why = pcall(body)
          if type(why) == "table" then
            print(ok, why.errcode == sysbench.error.RESTART_EVENT, why.sql_errno, con.error)
          else
            print(ok, (why:gsub("You have an error.*", "…")), con.sql_errno, con.sql_state, con.error)
          end
        end
        print(con:query_row("SELECT 1"), con.error)
        "#,
        "1062 23000 Duplicate entry '1' INSERT INTO t VALUES (1) true\nfalse true 1062 1\n\
         1062 23000 Duplicate entry '1' <prepared statement> true\nfalse true 1062 1\n\
         1064 42000 … SELEKT 1 true\nfalse ./it.lua:17: SQL error, errno = 1064, state = '42000': … 1064 42000 2\n1 0",
    );
}

#[test]
fn hooks_may_reconnect_and_prepare_again() {
    on_each(|kind| {
        let server = kind.shared();
        let database = server.fresh_database().unwrap();
        let folder = Folder::new();
        folder.write(
            "it.lua",
            r#"
            function thread_init()
              con = sysbench.sql.driver():connect()
              me = con:query_row("SELECT CONNECTION_ID()")
              again()
              n = 0
            end
            function again() one = con:prepare("SELECT CONNECTION_ID()") end
            sysbench.hooks.sql_error_ignorable = function(e)
              print("ignorable?", e.sql_errno)
              con:reconnect()
              again()
              return true
            end
            sysbench.hooks.before_restart_event = function(e)
              print("restart", e.sql_errno, one:execute():fetch_row()[1] ~= me)
              con:query("SELECT 1")
            end
            function event()
              n = n + 1
              if n == 3 then con:query("SELECT nothing") end
              one:execute()
            end
            "#,
        );
        let url = server.url(&database);
        let ran = folder.expect(&format!("run ./it.lua --db {url} --transactions 5 --no-record --format json"), 0);
        let said: Vec<_> = ran.stderr.lines().filter(|line| line.contains('?') || line.contains("restart\t")).collect();
        assert_eq!(said, ["ignorable?\t1054", "restart\t1054\ttrue"], "{}", ran.shown());
        let findings = ran.findings();
        let total = &findings["stages"][0]["total"];
        let counts = ["transactions", "retries", "reconnects", "failed", "errors"].map(|name| total[name].as_u64());
        assert_eq!(counts, [5, 1, 1, 0, 1].map(Some), "{}", ran.shown());
    });
}
