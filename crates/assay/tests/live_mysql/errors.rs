//! Errors in the middle of a run: retried, ignored, counted, or fatal with the server's message and a hint.

use std::os::unix::fs::MetadataExt;
use std::process::Command;

use testkit::{Kind, Server, ServerSetup};

use crate::common::{Folder, Ran};
use crate::{on_each, said};

/// Two rows, updated in opposite order by the two sessions of a run, which meet in the middle of their first
/// transactions.
const CROSSWISE: &str = r#"
function thread_init()
  con = sysbench.sql.driver():connect()
  met = false
end
function event()
  con:query("BEGIN")
  con:query("UPDATE pair SET n = n + 1 WHERE id = " .. 1 + sysbench.tid)
  if not met then met = true assay.barrier() end
  con:query("UPDATE pair SET n = n + 1 WHERE id = " .. 2 - sysbench.tid)
  con:query("COMMIT")
end
"#;

/// A database of a server with the table `pair`.
fn pair(server: &Server) -> String {
    let database = server.fresh_database().unwrap();
    let table = "CREATE TABLE pair(id INT PRIMARY KEY, n INT); INSERT INTO pair VALUES (1, 0), (2, 0);";
    server.sql(&database, table).unwrap();
    database
}

/// Runs a script on a database.
fn run(server: &Server, database: &str, script: &str, options: &str) -> Ran {
    let folder = Folder::new();
    folder.write("it.lua", script);
    folder.run(&format!("run ./it.lua --no-record --format json --db {} {options}", server.url(database)))
}

/// Transactions, failed ones, retries and errors of a run, and `code × count` of the most frequent error.
fn counts(ran: &Ran) -> ([u64; 4], String) {
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    let findings = ran.findings();
    let total = &findings["stages"][0]["total"];
    let kind = &total["errors_by_kind"][0];
    let error =
        format!("{} {} × {}", kind["class"].as_str().unwrap_or(""), kind["code"].as_str().unwrap_or(""), kind["count"]);
    (["transactions", "failed", "retries", "errors"].map(|name| total[name].as_u64().unwrap()), error)
}

#[test]
fn the_victim_of_a_deadlock_tries_again() {
    on_each(|kind| {
        let server = kind.shared();
        let database = pair(server);
        let ran = run(server, &database, CROSSWISE, "--sessions 2 --transactions 2");
        assert_eq!(counts(&ran), ([2, 0, 1, 1], "deadlock 1213 × 1".to_owned()), "{}", ran.shown());
        assert_eq!(server.sql(&database, "SELECT n FROM pair").unwrap(), "2\n2\n");

        let database = pair(server);
        let ran = run(server, &database, CROSSWISE, "--sessions 2 --transactions 2 --ignore-errors 1213");
        assert_eq!(counts(&ran), ([2, 0, 1, 1], "deadlock 1213 × 1".to_owned()), "retried first: {}", ran.shown());

        let database = pair(server);
        let ran = run(server, &database, CROSSWISE, "--sessions 2 --transactions 2 --ignore-errors 1213 --retries 0");
        assert_eq!(counts(&ran), ([1, 1, 0, 1], "deadlock 1213 × 1".to_owned()), "{}", ran.shown());
        assert_eq!(server.sql(&database, "SELECT n FROM pair").unwrap(), "1\n1\n");

        let ran = run(server, &pair(server), CROSSWISE, "--sessions 2 --transactions 2 --retries 0");
        assert_eq!(ran.code, Some(4), "{}", ran.shown());
        assert!(ran.stderr.contains("(1213, deadlock)") && ran.stderr.contains("./it.lua:10"), "{}", ran.shown());
        assert!(ran.stderr.contains("hint: lower `--sessions`, or raise `--retries`"), "{}", ran.shown());
    });
}

#[test]
fn a_lock_that_is_not_granted_in_time_is_waited_for_again() {
    on_each(|kind| {
        let server = kind.shared();
        let database = pair(server);
        // Session 1 takes the row while session 0 holds it; session 0 gives it up when session 1 has failed once.
        let script = r#"
        sysbench.hooks.before_restart_event = function(e)
          if sysbench.tid == 1 and not told then told = true assay.barrier() end
        end
        function thread_init()
          con = sysbench.sql.driver():connect()
          con:query("SET SESSION innodb_lock_wait_timeout = 1")
        end
        function event()
          con:query("BEGIN")
          if sysbench.tid == 1 and not met then met = true assay.barrier() end
          con:query("UPDATE pair SET n = n + 1 WHERE id = 1")
          if sysbench.tid == 0 and not met then met = true assay.barrier() assay.barrier() end
          con:query("COMMIT")
        end
        "#;
        let ran = run(server, &database, script, "--sessions 2 --transactions 2");
        assert_eq!(counts(&ran), ([2, 0, 1, 1], "timeout 1205 × 1".to_owned()), "{}", ran.shown());
        assert_eq!(server.sql(&database, "SELECT n FROM pair WHERE id = 1").unwrap(), "2\n");
    });
}

#[test]
fn a_statement_that_ran_out_of_time_is_not_one_that_somebody_cancelled() {
    on_each(|kind| {
        let server = kind.shared();
        let product = server.sql("", "SELECT VERSION()").unwrap();
        let (is_mariadb, is_5_7) = (product.contains("MariaDB"), product.starts_with("5.7"));
        let many = "FROM information_schema.columns a, information_schema.columns b, information_schema.columns c";
        let mut cases = vec![
            ("SELECT 1".to_owned(), "KILL QUERY CONNECTION_ID()".to_owned(), "cancelled 1317"),
            (
                "SET SESSION innodb_lock_wait_timeout = 1".to_owned(),
                "UPDATE pair SET n = 0 WHERE id = 1".to_owned(),
                "timeout 1205",
            ),
            match is_mariadb {
                true => ("SET max_statement_time = 0.01".to_owned(), "SELECT SLEEP(60)".to_owned(), "timeout 1969"),
                false => ("SET max_execution_time = 10".to_owned(), format!("SELECT COUNT(*) {many}"), "timeout 3024"),
            },
        ];
        // MariaDB knows NOWAIT as a lock wait that is over at once.
        if !is_5_7 {
            let code = if is_mariadb { "timeout 1205" } else { "timeout 3572" };
            let statement = "SELECT n FROM pair WHERE id = 1 FOR UPDATE NOWAIT".to_owned();
            cases.push(("SELECT 1".to_owned(), statement, code));
        }
        for (before, statement, expected) in cases {
            let script = format!(
                r#"
                function thread_init()
                  other = sysbench.sql.driver():connect()
                  con = sysbench.sql.driver():connect()
                end
                function event()
                  other:query("BEGIN")
                  other:query("SELECT n FROM pair WHERE id = 1 FOR UPDATE")
                  con:query("{before}")
                  con:query("{statement}")
                end"#
            );
            let ran = run(server, &pair(server), &script, "--transactions 1 --retries 0 --on-error continue");
            let kind = &ran.findings()["stages"][0]["total"]["errors_by_kind"][0];
            let found = ["class", "code"].map(|key| kind[key].as_str().unwrap_or("-").to_owned()).join(" ");
            assert_eq!(found, expected, "{statement}: {}", ran.shown());
        }
    });
}

/// Every second transaction inserts an existing row.
const DUPLICATES: &str = r#"
function thread_init()
  con = sysbench.sql.driver():connect()
  insert = con:prepare("INSERT INTO pair VALUES (?, 0)")
  id = insert:bind_create(sysbench.sql.type.INT)
  insert:bind_param(id)
  n = 2
end
function event()
  n = n + 1
  id:set(n % 2 == 0 and 1 or n)
  insert:execute()
end
"#;

#[test]
fn other_errors_end_the_run_unless_they_are_to_be_ignored() {
    on_each(|kind| {
        let server = kind.shared();
        for options in ["--ignore-errors 1062", "--on-error continue", "--ignore-errors all", "--ignore-errors 23000"] {
            let ran = run(server, &pair(server), DUPLICATES, &format!("--transactions 10 {options}"));
            let expected = ([5, 5, 0, 5], "constraint 1062 × 5".to_owned());
            assert_eq!(counts(&ran), expected, "{options}: {}", ran.shown());
        }
        for options in ["", "--ignore-errors 1213", "--prepared off"] {
            let ran = run(server, &pair(server), DUPLICATES, &format!("--transactions 10 --quiet {options}"));
            assert_eq!(ran.code, Some(4), "{options}: {}", ran.shown());
            let said = ran.stderr.replace(&server.port().to_string(), "[PORT]").replace("'pair.PRIMARY'", "'PRIMARY'");
            let database = said.split("[PORT]/").nth(1).and_then(|rest| rest.split(':').next()).unwrap().to_owned();
            insta::assert_snapshot!(said.replace(&database, "[DATABASE]"), @r"
            error: workload ./it.lua failed in `it`
              mysql://app@127.0.0.1:[PORT]/[DATABASE]: Duplicate entry '1' for key 'PRIMARY' (1062, constraint)
              ./it.lua:12: SQL error, errno = 1062, state = '23000': Duplicate entry '1' for key 'PRIMARY'
              ./it.lua:12: in function 'event'

            hint: to count such errors and continue: `--ignore-errors 1062` or `--on-error continue`
            ");
        }
    });
}

/// Limits the open files of a process. Must be called as the user of the process.
fn limit_files(pid: &str, files: usize) {
    let owner = |pid: &str| std::fs::metadata(format!("/proc/{pid}")).map(|of| (of.uid(), of.gid())).unwrap();
    let (uid, gid) = owner(pid);
    let limit = ["prlimit".to_owned(), format!("--pid={pid}"), format!("--nofile={files}:{files}")];
    let mut command = Command::new("setpriv");
    if owner("self") != (uid, gid) {
        command.args([format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".to_owned()]);
    }
    assert!(command.args(limit).status().unwrap().success());
}

/// A server without free descriptors does not answer new connections, or closes them.
#[test]
fn a_server_that_takes_connections_and_serves_them_no_more_is_told_with_its_limits() {
    on_each(|kind| {
        let server = kind.start(&ServerSetup::default()).unwrap();
        let pid = server.pid().unwrap().to_string();
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() + 12;
        limit_files(&pid, open);
        let folder = Folder::new();
        folder
            .write("it.lua", "function event() end\nfunction thread_init() con = sysbench.sql.driver():connect() end");
        let url = format!("{}?connect_timeout=5", server.url("app"));
        let ran = folder.run(&format!("run ./it.lua --no-record --transactions 1 --sessions 40 --db {url}"));
        assert_eq!(ran.code, Some(4), "{}", ran.shown());
        let said = ran.shown();
        for part in [
            "of 40 sessions",
            "may have reached a limit (see its log): open files",
            "open_files_limit",
            "lower `--connect-pending`, now 64",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    });
}

#[test]
fn a_full_table_of_connections_or_statements_is_named_with_what_raises_it() {
    on_each(|kind| {
        // By default MySQL's listen backlog depends on max_connections: thirty connects at once would overflow it.
        let config = vec!["max_prepared_stmt_count = 20".to_owned(), "back_log = 100".to_owned()];
        let server = kind.start(&ServerSetup { max_connections: 10, config, ..ServerSetup::default() }).unwrap();
        let database = pair(&server);
        let folder = Folder::new();
        let told = |script: &str, sessions: u32| {
            folder.write("it.lua", script);
            let url = server.url(&database);
            let ran =
                folder.run(&format!("run ./it.lua --no-record --transactions 1 --sessions {sessions} --db {url}"));
            assert_eq!(ran.code, Some(4), "{}", ran.shown());
            let said = said(&server, &ran).replace(&database, "[DATABASE]");
            match (said.find(" for more than "), said.find(" of 30 sessions")) {
                (Some(from), Some(to)) => said[..from].to_owned() + &said[to + " of 30 sessions".len()..],
                _ => said,
            }
        };
        let connect = "function event() end\nfunction thread_init() con = sysbench.sql.driver():connect() end";
        insta::assert_snapshot!(told(connect, 30), @r"
        error: mysql://app@127.0.0.1:[PORT]/[DATABASE] refused the connection
          Too many connections (1040)

        hint: the server's max_connections (default 151) is too small for 30 sessions: `SET GLOBAL max_connections = 41` (and under [mysqld] in my.cnf, where a start lowers it to what open_files_limit has room for), or lower `--sessions`
        ");
        let prepare = "function event() end\nfunction thread_init() con = sysbench.sql.driver():connect()\n\
            for i = 1, 21 do con:prepare('SELECT ' .. i) end end";
        insta::assert_snapshot!(told(prepare, 1), @r"
        error: workload ./it.lua failed in `run`
          mysql://app@127.0.0.1:[PORT]/[DATABASE]: Can't create more than max_prepared_stmt_count statements (current value: 20) (1461, limit)
          ./it.lua:3: SQL error, errno = 1461, state = '42000': Can't create more than max_prepared_stmt_count statements (current value: 20)
          ./it.lua:3: in function 'thread_init'

        hint: the server's max_prepared_stmt_count (default 16382) is reached: raise it with `SET GLOBAL max_prepared_stmt_count = N`, lower `--sessions`, or pass `--prepared off`
        hint: to count such errors and continue: `--ignore-errors 1461` or `--on-error continue`
        ");
    });
}

#[test]
fn a_connection_that_an_administrator_kills_is_made_again() {
    on_each(|kind| {
        let server = kind.shared();
        let database = pair(server);
        // Session 0 kills session 1, the only other connection, first between two of its statements, then in the middle
        // of one.
        let script = r#"
        function thread_init()
          con = sysbench.sql.driver():connect()
          own = con:prepare("SELECT CONNECTION_ID()")
          n = 0
        end
        local function kill(state)
          local wanted = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
            .. " AND command = '" .. state .. "'"
          local id
          repeat id = con:query_row(wanted) until id
          con:query("KILL " .. id)
        end
        function event()
          n = n + 1
          if n == 1 and sysbench.tid == 0 then assay.barrier() kill("Sleep") assay.barrier() kill("Query") end
          if n == 1 and sysbench.tid == 1 then assay.barrier() assay.barrier() end
          if n == 2 and sysbench.tid == 1 then con:query("SELECT SLEEP(60) FROM pair") end
          own:execute()
        end
        "#;
        let ran = run(server, &database, script, "--sessions 2 --transactions 4 --telemetry off");
        assert_eq!(ran.code, Some(0), "{}", ran.shown());
        let total = &ran.findings()["stages"][0]["total"];
        let counts = ["transactions", "failed", "retries", "reconnects"].map(|name| total[name].as_u64().unwrap());
        assert_eq!(counts[..2], [4, 0], "{}", ran.shown());
        assert_eq!((counts[2], counts[3]), (2, 2), "{}", ran.shown());
    });
}

#[test]
fn many_sessions_share_a_small_pool_of_threads_fairly() {
    if !Kind::MariaDb.present() {
        return;
    }
    let config = ["thread_handling = pool-of-threads", "thread_pool_size = 2"].map(str::to_owned).to_vec();
    let server = Kind::MariaDb.start(&ServerSetup { max_connections: 600, config, ..ServerSetup::default() }).unwrap();
    let script = r#"
    function thread_init() con = sysbench.sql.driver():connect() end
    function event() con:query("SELECT 1") end
    "#;
    let ran = run(&server, &pair(&server), script, "--sessions 500 --transactions 10000");
    assert_eq!(counts(&ran).0, [10_000, 0, 0, 0], "{}", ran.shown());
    let stage = &ran.findings()["stages"][0];
    let [least, most] =
        ["session_transactions_min", "session_transactions_max"].map(|name| stage[name].as_u64().unwrap());
    assert!((1..=20).contains(&least) && (20..=100).contains(&most), "{least} to {most}: {}", ran.shown());
}

#[test]
fn without_autocommit_a_script_that_does_not_commit_is_told_so() {
    on_each(|kind| {
        let server = kind.shared();
        let database = pair(server);
        let script = |end: &str| {
            format!(
                "function thread_init()\n  con = sysbench.sql.driver():connect()\n  con:query('SET autocommit = 0')\nend\n\
                 function event()\n  con:query('UPDATE pair SET n = n + 1 WHERE id = 1')\n  {end}\nend\n"
            )
        };
        let ran = run(server, &database, &script(""), "--transactions 5");
        assert_eq!(ran.code, Some(3), "{}", ran.shown());
        assert!(ran.stderr.contains("it.lua:8: event() ended inside a database transaction"), "{}", ran.shown());
        assert_eq!(ran.findings()["stages"][0]["total"]["transactions"], 0);
        let ran = run(server, &database, &script("con:query('COMMIT')"), "--transactions 5");
        assert_eq!(counts(&ran).0, [5, 0, 0, 0], "{}", ran.shown());
        assert_eq!(server.sql(&database, "SELECT n FROM pair WHERE id = 1").unwrap(), "5\n");
    });
}
