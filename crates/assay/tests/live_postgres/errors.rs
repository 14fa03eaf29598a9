//! Statement errors during a run: retried, counted, ignored, or fatal, with the place in the script.

use insta::assert_snapshot;
use serde_json::Value;
use testkit::{Kind, Server, ServerSetup, redact};

use crate::common::Folder;
use crate::on_every_version;

/// Each of two sessions waits in its first transaction until both hold `pg_advisory_lock(session)`: so both are in a
/// transaction at the same time, however busy the machine is.
const MEET: &str = r#"
function thread_init()
  con = sysbench.sql.driver():connect()
end
local met = false
local function meet()
  if met then return end
  met = true
  con:query("SELECT pg_advisory_lock(" .. sysbench.tid .. ")")
  repeat
    local here = con:query_row("SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
      .. " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
  until here == "2"
end
"#;

/// Locks two rows; the sessions do so in opposite order.
const CROSSWISE: &str = r#"
function event()
  con:query("BEGIN")
  con:query("UPDATE counter SET n = n + 1 WHERE id = " .. sysbench.tid + 1)
  meet()
  con:query("UPDATE counter SET n = n + 1 WHERE id = " .. 2 - sysbench.tid)
  con:query("COMMIT")
end
"#;

/// Both read before either writes.
const SNAPSHOTS: &str = r#"
function event()
  con:query("BEGIN ISOLATION LEVEL REPEATABLE READ")
  con:query_row("SELECT n FROM counter WHERE id = 1")
  meet()
  con:query("UPDATE counter SET n = n + 1 WHERE id = 1")
  con:query("COMMIT")
end
"#;

/// The URL of a database with two counters.
fn database(server: &Server) -> (String, String) {
    let name = server.fresh_database().unwrap();
    server
        .sql(&name, "CREATE TABLE counter (id int PRIMARY KEY, n int); INSERT INTO counter VALUES (1, 0), (2, 0)")
        .unwrap();
    (format!("{}?options=-c%20deadlock_timeout%3D10ms", server.url(&name)), name)
}

/// The outcome of ten transactions of two sessions: exit code, the sum of the counters, figures, stderr.
fn conflict(server: &Server, event: &str, options: &str) -> (Option<i32>, u64, Value, String) {
    let folder = Folder::new();
    folder.write("conflict.lua", &format!("{MEET}{event}"));
    let (url, name) = database(server);
    let ran = folder.run(&format!(
        "run ./conflict.lua --db {url} --sessions 2 --transactions 10 --format json --no-record --quiet {options}"
    ));
    let sum = server.sql(&name, "SELECT SUM(n) FROM counter").unwrap().trim().parse().unwrap();
    let total = if ran.stdout.is_empty() { Value::Null } else { ran.findings()["stages"][0]["total"].clone() };
    (
        ran.code,
        sum,
        total,
        redact::replace(&ran.stderr, &[(&server.port().to_string(), "[PORT]"), (&name, "[DATABASE]")]),
    )
}

#[test]
fn a_deadlock_is_retried_and_counted() {
    on_every_version(|kind| {
        let server = kind.shared();
        let (code, sum, total, said) = conflict(server, CROSSWISE, "");
        assert_eq!((code, sum, said.as_str()), (Some(0), 20, ""), "{total}");
        assert_eq!(total["transactions"], 10);
        let kind = &total["errors_by_kind"][0];
        assert_eq!([&kind["origin"], &kind["class"], &kind["code"]], ["server", "deadlock", "40P01"]);
        assert_eq!(kind["message"], "deadlock detected");
        // The first one is certain; others may follow while both sessions run.
        assert!(total["errors"].as_u64() >= Some(1) && total["retries"] == total["errors"], "{total}");
        assert_eq!(total["failed"], 0);
    });
}

#[test]
fn a_serialization_failure_is_retried_and_counted() {
    on_every_version(|kind| {
        let server = kind.shared();
        let (code, sum, total, said) = conflict(server, SNAPSHOTS, "");
        assert_eq!((code, sum, said.as_str()), (Some(0), 10, ""), "{total}");
        let kind = &total["errors_by_kind"][0];
        assert_eq!([&kind["origin"], &kind["class"], &kind["code"]], ["server", "serialization", "40001"]);
        assert!(total["errors"].as_u64() >= Some(1) && total["retries"] == total["errors"], "{total}");
        assert_eq!((&total["failed"], &total["transactions"]), (&0.into(), &10.into()));
    });
}

#[test]
fn errors_that_are_ignored_or_passed_over_fail_their_transaction_only() {
    on_every_version(|kind| {
        let server = kind.shared();
        for ignored in ["--ignore-errors 40P01", "--ignore-errors all", "--on-error continue"] {
            let options = &format!("{ignored} --retries 0");
            let (code, sum, total, said) = conflict(server, CROSSWISE, options);
            assert_eq!((code, said.as_str()), (Some(0), ""), "{options}: {total}");
            let of = |key: &str| total[key].as_u64().unwrap();
            assert!(of("failed") >= 1 && of("failed") == of("errors"), "{options}: {total}");
            assert_eq!((of("transactions") + of("failed"), of("retries")), (10, 0), "{options}: {total}");
            // Failed transactions leave nothing behind.
            assert_eq!(sum, 2 * of("transactions"), "{options}: {total}");
        }
        // What may be retried is retried before it is ignored.
        let (code, sum, total, said) = conflict(server, CROSSWISE, "--ignore-errors 40P01");
        assert_eq!((code, said.as_str()), (Some(0), ""), "{total}");
        let of = |key: &str| total[key].as_u64().unwrap();
        assert!(of("retries") >= 1 && of("retries") == of("errors"), "{total}");
        assert_eq!((of("transactions"), of("failed"), sum), (10, 0, 20), "{total}");
    });
}

#[test]
fn without_retries_a_conflict_ends_the_run_with_its_place() {
    on_every_version(|kind| {
        let server = kind.shared();
        let (code, _, _, said) = conflict(server, CROSSWISE, "--retries 0");
        assert_eq!(code, Some(4));
        assert_snapshot!(said, @r"
        error: workload ./conflict.lua failed in `conflict`
          postgres://app@127.0.0.1:[PORT]/[DATABASE]?options=-c%20deadlock_timeout%3D10ms: deadlock detected (40P01, deadlock)
          ./conflict.lua:20: SQL error, errno = 0, state = '40P01': deadlock detected
          ./conflict.lua:20: in function 'event'

        hint: See server log for query details.
        hint: lower `--sessions`, or raise `--retries`
        ");
        let (code, _, _, said) = conflict(server, SNAPSHOTS, "--retries 0");
        assert_eq!(code, Some(4));
        assert_snapshot!(said, @r"
        error: workload ./conflict.lua failed in `conflict`
          postgres://app@127.0.0.1:[PORT]/[DATABASE]?options=-c%20deadlock_timeout%3D10ms: could not serialize access due to concurrent update (40001, serialization)
          ./conflict.lua:20: SQL error, errno = 0, state = '40001': could not serialize access due to concurrent update
          ./conflict.lua:20: in function 'event'

        hint: lower `--sessions`, or raise `--retries`
        ");
    });
}

/// A run of a script whose third transaction fails.
const THIRD_FAILS: &str = r#"
function thread_init() con = sysbench.sql.driver():connect() end
local n = 0
local function divide(by)
  return con:query("SELECT 1 / " .. by)
end
function event()
  n = n + 1
  divide(n == 3 and 0 or 1)
end
"#;

#[test]
fn a_statement_error_ends_the_run_with_report_record_and_place() {
    on_every_version(|kind| {
        let server = kind.shared();
        let folder = Folder::new();
        folder.write("third.lua", THIRD_FAILS);
        let url = server.url("app");
        let known = [(&*server.port().to_string(), "[PORT]")];
        let line = format!("run ./third.lua --db {url} --transactions 5");
        let ran = folder.expect(&format!("{line} --quiet --record r.json.zst"), 4);
        assert_snapshot!(redact::replace(&ran.stderr, &known), @r"
        error: workload ./third.lua failed in `third`
          postgres://app@127.0.0.1:[PORT]/app: division by zero (22012, other)
          ./third.lua:9: SQL error, errno = 0, state = '22012': division by zero
          ./third.lua:9: in function 'event'

        hint: to count such errors and continue: `--ignore-errors 22012` or `--on-error continue`
        ");
        assert!(ran.stdout.contains("failed"), "{}", ran.stdout);
        let findings = folder.expect("show r.json.zst --format json", 0).findings();
        assert_eq!(
            (&findings["status"], &findings["stages"][0]["total"]["transactions"]),
            (&"failed".into(), &2.into())
        );
        assert_eq!(findings["errors"][0]["code"], "22012");

        for options in ["--ignore-errors 22012", "--on-error continue"] {
            let findings = folder.expect(&format!("{line} {options} --format json --no-record"), 0).findings();
            let total = &findings["stages"][0]["total"];
            assert_eq!((&total["transactions"], &total["failed"]), (&4.into(), &1.into()), "{options}: {total}");
        }
    });
}

#[test]
fn hooks_decide_about_errors_and_are_called_before_a_restart() {
    on_every_version(|kind| {
        let server = kind.shared();
        let folder = Folder::new();
        let hooks = r#"
        function sysbench.hooks.sql_error_ignorable(e) return e.sql_state == "22012" end
        function sysbench.hooks.before_restart_event(e) print("again after", e.sql_state, con:query_row("SELECT 1")) end"#;
        folder.write("third.lua", &format!("{THIRD_FAILS}{hooks}"));
        let line = format!("run ./third.lua --db {} --transactions 5 --format json --no-record", server.url("app"));
        let ran = folder.expect(&line, 0);
        assert!(ran.stderr.contains("again after\t22012\t1\n"), "{}", ran.stderr);
        let findings = ran.findings();
        let total = &findings["stages"][0]["total"];
        assert_eq!([&total["transactions"], &total["retries"], &total["failed"]], [5, 1, 0], "{total}");
    });
}

#[test]
fn a_lost_connection_is_made_again_and_the_transaction_run_again() {
    on_every_version(|kind| {
        let server = kind.shared();
        let folder = Folder::new();
        folder.write(
            "suicide.lua",
            r#"
            function thread_init()
              con = sysbench.sql.driver():connect()
              add = con:prepare("UPDATE counter SET n = n + ? WHERE id = 1")
              one = add:bind_create(sysbench.sql.type.INT)
              add:bind_param(one)
            end
            local n = 0
            function event()
              n = n + 1
              con:query("BEGIN")
              one:set(1)
              add:execute()
              if n == 3 then con:query("SELECT pg_terminate_backend(pg_backend_pid())") end
              con:query("COMMIT")
            end"#,
        );
        let (url, name) = database(server);
        for prepared in ["on", "off"] {
            let line = format!(
                "run ./suicide.lua --db {url} --prepared {prepared} --transactions 5 --format json --no-record"
            );
            let findings = folder.expect(&line, 0).findings();
            let total = &findings["stages"][0]["total"];
            assert_eq!(
                ["transactions", "retries", "reconnects", "failed"].map(|key| total[key].as_u64().unwrap()),
                [5, 1, 1, 0],
                "{total}"
            );
            let kind = &total["errors_by_kind"][0];
            assert_eq!([&kind["class"], &kind["code"]], ["connection", "57P01"], "{total}");
        }
        assert_eq!(server.sql(&name, "SELECT n FROM counter WHERE id = 1").unwrap().trim(), "10");
    });
}

#[test]
fn a_statement_that_ran_out_of_time_is_not_one_that_somebody_cancelled() {
    on_every_version(|kind| {
        let server = kind.shared();
        let folder = Folder::new();
        let (url, _) = database(server);
        let cases = [
            ("SET statement_timeout = 10", "SELECT pg_sleep(60)", "timeout 57014"),
            (
                "SET statement_timeout = 0",
                "SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(60)",
                "cancelled 57014",
            ),
            ("SET lock_timeout = 10", "UPDATE counter SET n = 0 WHERE id = 1", "timeout 55P03"),
            ("SET lock_timeout = 0", "SELECT n FROM counter WHERE id = 1 FOR UPDATE NOWAIT", "timeout 55P03"),
            ("SELECT 1", "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(60)", "connection 57P01"),
        ];
        for (before, statement, expected) in cases {
            let script = format!(
                r#"
                function thread_init()
                  other = sysbench.sql.driver():connect()
                  con = sysbench.sql.driver():connect()
                end
                function event()
                  other:query("BEGIN")
                  other:query("SELECT n FROM counter WHERE id = 1 FOR UPDATE")
                  con:query("{before}")
                  con:query("{statement}")
                end"#
            );
            folder.write("it.lua", &script);
            let line = format!(
                "run ./it.lua --db {url} --transactions 1 --retries 0 --on-error continue --format json --no-record"
            );
            let findings = folder.run(&line).findings();
            let kind = &findings["stages"][0]["total"]["errors_by_kind"][0];
            let found = ["class", "code"].map(|key| kind[key].as_str().unwrap_or("-").to_owned()).join(" ");
            assert_eq!(found, expected, "{statement}: {findings}");
        }
    });
}

/// Without the number of sessions that were faster than the refusal.
fn without_progress(said: &str) -> String {
    match (said.find(" for more than "), said.find(" sessions\n")) {
        (Some(from), Some(to)) => said[..from].to_owned() + &said[to + " sessions".len()..],
        _ => said.to_owned(),
    }
}

#[test]
fn a_full_connection_table_is_named_with_the_setting_that_raises_it() {
    on_every_version(|kind| {
        let server = kind.start(&ServerSetup { max_connections: 8, ..ServerSetup::default() }).unwrap();
        server.sql("", "CREATE ROLE guest LOGIN; CREATE ROLE few LOGIN CONNECTION LIMIT 2; CREATE DATABASE small CONNECTION LIMIT 2").unwrap();
        let folder = Folder::new();
        folder.write("one.lua", "function thread_init() con = sysbench.sql.driver():connect() end\nfunction event() con:query('SELECT 1') end");
        let told = |user: &str, name: &str| {
            let url = server.url_as(user, name);
            let ran =
                folder.expect(&format!("run ./one.lua --no-record --db {url} --sessions 30 --connect-pending 1"), 4);
            // The server notices the end later than we do.
            let backends = "SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
            while server.sql("", backends).ok().as_deref() != Some("1\n") {}
            without_progress(&redact::replace(&ran.shown(), &[(&server.port().to_string(), "[PORT]")]))
        };
        assert_snapshot!(told("app", "app"), @r"
        exit 4
        --- stderr
        error: postgres://app@127.0.0.1:[PORT]/app refused the connection
          sorry, too many clients already (53300)

        hint: 30 sessions were asked for; the server allows max_connections clients, of which superuser_reserved_connections are reserved: use fewer sessions, or raise it (ALTER SYSTEM SET max_connections = n, then restart the server)
        ");
        // PostgreSQL 16 has another kind of reserved connections, and mentions it.
        assert!(told("guest", "app").contains("raise it (ALTER SYSTEM SET max_connections = n"));
        assert_snapshot!(told("few", "app"), @r#"
        exit 4
        --- stderr
        error: postgres://few@127.0.0.1:[PORT]/app refused the connection
          too many connections for role "few" (53300)

        hint: 30 sessions were asked for; the role has its own limit: raise it with ALTER ROLE … CONNECTION LIMIT n, or use fewer sessions
        "#);
        assert_snapshot!(told("guest", "small"), @r#"
        exit 4
        --- stderr
        error: postgres://guest@127.0.0.1:[PORT]/small refused the connection
          too many connections for database "small" (53300)

        hint: 30 sessions were asked for; the database has its own limit: raise it with ALTER DATABASE … CONNECTION LIMIT n, or use fewer sessions
        "#);
        if Kind::PgBouncer.present() {
            let bouncer = server.pgbouncer(&[], 3).unwrap();
            let ran = folder.expect(
                &format!(
                    "run ./one.lua --no-record --db {} --sessions 9 --connect-pending 1 --prepared off",
                    bouncer.url("app")
                ),
                4,
            );
            assert_snapshot!(without_progress(&redact::replace(&ran.shown(), &[(&bouncer.port().to_string(), "[PORT]")])), @r"
            exit 4
            --- stderr
            error: postgres://app@127.0.0.1:[PORT]/app refused the connection
              no more connections allowed (max_client_conn) (08P01)

            hint: use fewer sessions, or raise PgBouncer's max_client_conn
            ");
        }
    });
}

#[test]
fn pgbouncer_asks_for_the_password_that_postgres_knows() {
    if !Kind::PgBouncer.present() {
        return;
    }
    on_every_version(|kind| {
        let server = kind.shared();
        let name = server.fresh_database().unwrap();
        server.sql("", &format!("CREATE ROLE {name} LOGIN PASSWORD 'right'")).unwrap();
        let bouncer = server.pgbouncer(&[(&name, "right")], 20).unwrap();
        let folder = Folder::new();
        folder.write("one.lua", "function thread_init() con = sysbench.sql.driver():connect() end\nfunction event() con:query('SELECT 1') end");
        let run = |password: &str, code: i32| {
            let url = bouncer.url_as(&format!("{name}:{password}"), &name);
            folder.expect(
                &format!("run ./one.lua --no-record --db {url} --sessions 4 --transactions 40 --prepared off"),
                code,
            )
        };
        run("right", 0);
        assert!(run("wrong", 4).stderr.contains("check user and password"));
    });
}
