//! Every built-in workload, from prepare to cleanup, with the statements counted.

use testkit::Kind;

use crate::common::{Folder, Ran};
use crate::{on_every_version, versions};

/// The statement counts of 100 transactions of a workload.
struct Counts {
    read: u64,
    write: u64,
    other: u64,
}

const fn counts(read: u64, write: u64, other: u64) -> Counts {
    Counts { read, write, other }
}

/// The number of sessions: one where two could conflict (deadlocks, a row deleted twice) and the counts would depend on
/// luck.
const WORKLOADS: [(&str, u32, Counts); 10] = [
    ("oltp_read_only", 3, counts(1400, 0, 200)),
    ("oltp_read_write", 1, counts(1400, 400, 200)),
    ("oltp_write_only", 1, counts(0, 400, 200)),
    ("oltp_point_select", 3, counts(100, 0, 0)),
    ("oltp_insert", 3, counts(0, 100, 0)),
    ("oltp_update_index", 3, counts(0, 100, 0)),
    ("oltp_update_non_index", 3, counts(0, 100, 0)),
    ("oltp_delete", 3, counts(0, 100, 0)),
    ("select_random_points", 3, counts(100, 0, 0)),
    ("select_random_ranges", 3, counts(100, 0, 0)),
];

/// 100 transactions of a workload; when it fails, the last line shows the command.
fn run(folder: &Folder, words: &str) -> (u64, [u64; 3]) {
    let ran = folder.expect(&format!("{words} --transactions 100 --format json --no-record"), 0);
    let findings = ran.findings();
    let total = &findings["stages"][0]["total"];
    let of = |class: &str| total["statements_by_class"][class].as_u64().unwrap();
    (total["transactions"].as_u64().unwrap(), ["read", "write", "other"].map(of))
}

/// The whole life of all workloads on one database. `tables`: a statement that counts tables.
fn live(folder: &Folder, options: &str, tables: impl Fn() -> String) {
    let url = options.split_whitespace().next().unwrap();
    for (name, sessions, expected) in &WORKLOADS {
        // These read one table only.
        let several = if name.starts_with("select_") { "" } else { "--tables 3" };
        let size = format!("{several} --table-size 2000");
        let rows = if several.is_empty() { "2,000 rows" } else { "6,000 rows" };
        let prepared = folder.expect(&format!("prepare {name} --db {url} {size} --sessions 4"), 0);
        assert!(prepared.stderr.contains(rows), "{name}: {}", prepared.stderr);
        folder.expect(&format!("check {name} --db {url} {size}"), 0);

        let (transactions, [read, write, other]) =
            run(folder, &format!("run {name} --db {options} {size} --sessions {sessions}"));
        assert_eq!(transactions, 100, "{name}");
        if *name == "oltp_delete" {
            // A statement on a row that is gone counts as other.
            assert_eq!((read, write + other), (0, 100), "{name}: {write} + {other}");
            assert!(write > other, "{name}: {write}, {other}");
        } else {
            assert_eq!([read, write, other], [expected.read, expected.write, expected.other], "{name}");
        }
        folder.expect(&format!("check {name} --db {url} {size}"), 0);
        folder.expect(&format!("cleanup {name} --db {url} {size}"), 0);
        assert_eq!(tables(), "0", "{name}");
    }
}

/// How many tables a database has.
const TABLES: &str =
    "SELECT COUNT(*) FROM pg_class WHERE relkind IN ('r', 'S', 'i') AND relnamespace = 'public'::regnamespace";

fn live_on(kind: Kind) {
    if kind.present() {
        let server = kind.shared();
        let database = server.fresh_database().unwrap();
        let tables = || server.sql(&database, TABLES).unwrap().trim().to_owned();
        live(&Folder::new(), &server.url(&database), tables);
    }
}

#[test]
fn every_workload_lives_on_postgres_15() {
    live_on(Kind::Postgres);
}

#[test]
fn every_workload_lives_on_postgres_18() {
    live_on(Kind::Postgres18);
}

#[test]
fn every_workload_lives_behind_pgbouncer_without_prepared_statements() {
    if !Kind::PgBouncer.present() {
        return;
    }
    let Some(server) = versions().last().map(Kind::shared) else { return };
    let bouncer = server.pgbouncer(&[], 50).unwrap();
    let database = server.fresh_database().unwrap();
    let tables = || server.sql(&database, TABLES).unwrap().trim().to_owned();
    live(&Folder::new(), &format!("{} --prepared off", bouncer.url(&database)), tables);
}

#[test]
fn every_workload_lives_on_sqlite() {
    let folder = Folder::new();
    // `check` shows what remains, since no other program here reads the file.
    let tables = || {
        let ran = folder.run("check oltp_read_only --db sqlite:a.db --tables 3");
        match ran.code {
            Some(4) if ran.stderr.contains("no such table: sbtest1") => "0".to_owned(),
            _ => (3 - ran.stderr.matches(" does not exist").count()).to_string(),
        }
    };
    live(&folder, "sqlite:a.db", tables);
}

#[test]
fn bulk_insert_appends_without_gaps() {
    let everywhere = |url: &str| {
        let folder = Folder::new();
        folder.expect(&format!("prepare bulk_insert --db {url} --sessions 3"), 0);
        for _ in 0..2 {
            let line =
                format!("run bulk_insert --db {url} --sessions 3 --transactions 90000 --format json --no-record");
            let findings = folder.expect(&line, 0).findings();
            let total = &findings["stages"][0]["total"];
            assert_eq!(total["transactions"], 90_000);
            folder.expect(&format!("check bulk_insert --db {url} --sessions 3"), 0);
        }
        folder
    };
    on_every_version(|kind| {
        let server = kind.shared();
        let database = server.fresh_database().unwrap();
        let folder = everywhere(&server.url(&database));
        let all =
            "SELECT (SELECT COUNT(*) FROM sbtest1) + (SELECT COUNT(*) FROM sbtest2) + (SELECT COUNT(*) FROM sbtest3)";
        assert_eq!(server.sql(&database, all).unwrap().trim(), "180000");
        folder.expect(&format!("cleanup bulk_insert --db {} --sessions 3", server.url(&database)), 0);
        assert_eq!(server.sql(&database, TABLES).unwrap().trim(), "0");
    });
    everywhere("sqlite:a.db");
}

#[test]
fn prepare_overwrites_only_what_it_is_told_to() {
    on_every_version(|kind| {
        let server = kind.shared();
        let (folder, database) = (Folder::new(), server.fresh_database().unwrap());
        let common = format!("oltp_read_write --db {} --tables 2", server.url(&database));
        folder.expect(&format!("prepare {common} --table-size 500"), 0);
        let count =
            || server.sql(&database, "SELECT COUNT(*) FROM sbtest1 UNION ALL SELECT COUNT(*) FROM sbtest2").unwrap();
        let refused = folder.expect(&format!("prepare {common} --table-size 700"), 2);
        assert!(refused.stderr.contains("already exists and nothing was changed"), "{}", refused.stderr);
        assert!(refused.stderr.contains("--replace"), "{}", refused.stderr);
        assert_eq!(count(), "500\n500\n");
        folder.expect(&format!("prepare {common} --table-size 700 --replace"), 0);
        assert_eq!(count(), "700\n700\n");
        // One of two tables exists: nothing is created, and the existing one is not touched.
        server.sql(&database, "DROP TABLE sbtest1").unwrap();
        folder.expect(&format!("prepare {common} --table-size 500"), 2);
        assert_eq!(
            server.sql(&database, "SELECT COUNT(*) FROM sbtest2; SELECT to_regclass('sbtest1') IS NULL").unwrap(),
            "700\nt\n"
        );
    });
}

#[test]
fn check_names_what_differs() {
    on_every_version(|kind| {
        let server = kind.shared();
        let (folder, database) = (Folder::new(), server.fresh_database().unwrap());
        let common = format!("oltp_read_write --db {} --tables 2 --table-size 500", server.url(&database));
        folder.expect(&format!("prepare {common}"), 0);
        let found = |statement: &str| {
            server.sql(&database, statement).unwrap();
            let Ran { stderr, .. } = folder.expect(&format!("check {common}"), 1);
            stderr
                .lines()
                .filter(|line| line.contains(": expected ") || line.ends_with(" does not exist"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(found("DELETE FROM sbtest2 WHERE id = 500"), "table sbtest2: rows: expected 500, found 499");
        let back = "INSERT INTO sbtest2 SELECT 500, k, c, pad FROM sbtest2 WHERE id = 1;";
        assert_eq!(
            found(&format!("{back} UPDATE sbtest1 SET c = 'short' WHERE id IN (3, 4)")),
            "table sbtest1: rows whose c is not 10 groups of 11 digits: expected 0, found 2"
        );
        assert_eq!(
            found(
                "UPDATE sbtest1 SET c = (SELECT c FROM sbtest2 WHERE id = 1); UPDATE sbtest1 SET id = 501 WHERE id = 500; DROP INDEX k_1"
            ),
            "table sbtest1: greatest id: expected 1 to 500, found 501\ntable sbtest1: index: expected k_1, found none"
        );
        assert_eq!(
            found(
                "DROP TABLE sbtest1; UPDATE sbtest2 SET k = 0 WHERE id = 7; UPDATE sbtest2 SET pad = '' WHERE id < 4"
            ),
            "table sbtest1 does not exist\n\
             table sbtest2: rows whose pad is not 5 groups of 11 digits: expected 0, found 3\n\
             table sbtest2: rows whose k is below 1: expected 0, found 1"
        );
    });
}

#[test]
fn a_run_without_tables_names_the_command_that_makes_them() {
    on_every_version(|kind| {
        let server = kind.shared();
        let (folder, database) = (Folder::new(), server.fresh_database().unwrap());
        let common = format!("oltp_read_only --db {} --tables 2 --table-size 600", server.url(&database));
        let refused = folder.expect(&format!("run {common} --transactions 10 --no-record"), 4);
        let marker = "hint: are the tables prepared? assay ";
        let command = refused.stderr.lines().find_map(|line| line.strip_prefix(marker)).unwrap();
        folder.expect(command, 0);
        folder.expect(&format!("check {common}"), 0);
        folder.expect(&format!("run {common} --transactions 10 --no-record"), 0);

        folder.expect(&format!("cleanup {common}"), 0);
        let ran = folder.expect(&format!("run {common} --transactions 10 --no-record --prepare"), 0);
        assert!(ran.stderr.contains("1,200 rows"), "{}", ran.stderr);
        folder.expect(&format!("cleanup {common}"), 0);
        let ran = folder.expect(&format!("run {common} --transactions 10 --no-record --prepare --check"), 0);
        assert!(ran.stderr.contains("1,200 rows"), "{}", ran.stderr);
        folder.expect(&format!("check {common}"), 0);
    });
}

#[test]
fn many_sessions_write_the_same_rows_and_the_tables_stay_right() {
    on_every_version(|kind| {
        let server = kind.shared();
        let (folder, database) = (Folder::new(), server.fresh_database().unwrap());
        // Few rows: transactions wait for each other, deadlock, insert a row that another has just inserted, and are
        // retried.
        let common =
            format!("oltp_read_write --db {} --tables 2 --table-size 100 --range-size 5", server.url(&database));
        folder.expect(&format!("prepare {common}"), 0);
        let line = "--sessions 8 --transactions 400 --retries 1000 --format json --no-record";
        let findings = folder.expect(&format!("run {common} {line}"), 0).findings();
        let total = &findings["stages"][0]["total"];
        let of = |key: &str| total[key].as_u64().unwrap();
        assert_eq!((of("transactions"), of("failed")), (400, 0), "{total}");
        let codes: Vec<&str> =
            total["errors_by_kind"].as_array().unwrap().iter().map(|kind| kind["code"].as_str().unwrap()).collect();
        assert!(codes.iter().all(|code| ["40P01", "23505"].contains(code)), "{codes:?}");
        assert_eq!(of("errors"), of("retries"), "{total}");
        let checked = folder.expect(&format!("check {common}"), 0);
        assert!(checked.stderr.contains("table sbtest1: 100 rows, as expected"), "{}", checked.stderr);
    });
}

#[test]
fn prepared_statements_that_a_pooler_mixes_up_are_advised_about_whether_the_run_survives_or_not() {
    if !Kind::PgBouncer.present() {
        return;
    }
    let Some(server) = versions().last().map(Kind::shared) else { return };
    let (folder, bouncer) = (Folder::new(), server.pgbouncer(&[], 50).unwrap());
    let database = server.fresh_database().unwrap();
    folder.expect(&format!("prepare oltp_read_only --db {}", server.url(&database)), 0);
    let common = format!("run oltp_read_only --db {} --sessions 12 --no-record --quiet", bouncer.url(&database));
    let failed = folder.expect(&format!("{common} --time 10m --retries 0"), 4);
    let survived = folder.expect(&format!("{common} --transactions 500 --retries 1000000"), 0);
    for ran in [&failed, &survived] {
        assert!(ran.stderr.contains("(--prepared off)") && ran.stderr.contains("(26000"), "{}", ran.shown());
        assert!(!ran.stderr.contains("are the tables prepared?"), "{}", ran.shown());
    }
    assert_eq!(survived.stderr.matches("the run continues").count(), 1, "{}", survived.shown());
}

#[test]
fn two_prepares_of_one_database_do_not_get_into_each_others_way() {
    for kind in [Kind::Postgres, Kind::MariaDb, Kind::MySql].into_iter().filter(|kind| kind.present()) {
        let (folder, server) = (Folder::new(), kind.shared());
        let db = format!("--db {}", server.url(&server.fresh_database().unwrap()));
        for workload in ["oltp_read_only --tables 4", "tpcc --warehouses 1 --customers 300 --items 1000"] {
            let common = format!("prepare {workload} {db} --sessions 2 --quiet");
            let both = [folder.start(&common), folder.start(&common)].map(crate::common::Started::finish);
            // The second one was refused: while the first was at work, or because the tables existed.
            let mut codes = both.each_ref().map(|ran| ran.code);
            codes.sort_unstable();
            let said = format!("{} {workload}: {}{}", kind.name(), both[0].shown(), both[1].shown());
            assert_eq!(codes, [Some(0), Some(3)], "{said}");
            assert!(said.contains("nothing was changed"), "{said}");
            folder.expect(&format!("check {workload} {db} --quiet"), 0);
        }
    }
}

/// Takes the lock of `prepare` and holds it.
const AT_WORK: &str = r#"
function check()
  local lock = require("prepare_lock")(sysbench.sql.driver())
  print("at work")
  lock:query("SELECT pg_sleep(100000)")
end
"#;

#[test]
fn a_prepare_is_refused_while_another_is_at_work_and_not_after_that_was_killed() {
    on_every_version(|kind| {
        let (folder, server) = (Folder::new(), kind.shared());
        folder.write("at_work.lua", AT_WORK);
        let database = server.fresh_database().unwrap();
        let db = format!("--db {}", server.url(&database));
        let mut other = folder.start(&format!("check ./at_work.lua {db}"));
        other.wait_for("at work");
        for workload in ["oltp_read_only", "tpcc"] {
            let refused = folder.expect(&format!("prepare {workload} {db}"), 3);
            let words = "another `prepare` is running on this database; nothing was changed: wait for it to finish";
            assert!(refused.stderr.contains(words), "{}", refused.shown());
        }
        drop(other);
        // While it sleeps the server does not notice that its client is gone.
        let of_it = format!("datname = '{database}' AND query LIKE '%pg_sleep%'");
        server
            .sql("", &format!("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE {of_it};"))
            .unwrap();
        folder.expect(&format!("prepare oltp_read_only {db} --quiet"), 0);
    });
}
