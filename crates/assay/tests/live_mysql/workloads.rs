//! Every built-in workload, from prepare to cleanup, with the statements counted by sysbench's classes.

use std::process::Command;

use testkit::{Kind, Server};

use crate::common::Folder;
use crate::on_each;

/// The number of sessions, and read/write/other of 100 transactions. One session where two could conflict (deadlocks, a
/// row deleted twice) and the counts would depend on luck.
const WORKLOADS: [(&str, u32, [u64; 3]); 10] = [
    ("oltp_read_only", 3, [1400, 0, 200]),
    ("oltp_read_write", 1, [1400, 400, 200]),
    ("oltp_write_only", 1, [0, 400, 200]),
    ("oltp_point_select", 3, [100, 0, 0]),
    ("oltp_insert", 3, [0, 100, 0]),
    ("oltp_update_index", 3, [0, 100, 0]),
    ("oltp_update_non_index", 3, [0, 100, 0]),
    ("oltp_delete", 3, [0, 100, 0]),
    ("select_random_points", 3, [100, 0, 0]),
    ("select_random_ranges", 3, [100, 0, 0]),
];

/// Transactions, and statements read/write/other, of a run of 100 transactions.
fn run(folder: &Folder, words: &str) -> (u64, [u64; 3]) {
    let findings = folder.expect(&format!("run {words} --transactions 100 --format json --no-record"), 0).findings();
    let total = &findings["stages"][0]["total"];
    let of = |class: &str| total["statements_by_class"][class].as_u64().unwrap();
    (total["transactions"].as_u64().unwrap(), ["read", "write", "other"].map(of))
}

/// The number of tables in a database.
fn tables(server: &Server, database: &str) -> String {
    let count = format!("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{database}'");
    server.sql("", &count).unwrap().trim().to_owned()
}

fn live_on(kind: Kind, options: &str) {
    if !kind.present() {
        return;
    }
    let (folder, server) = (Folder::new(), kind.shared());
    let database = server.fresh_database().unwrap();
    let url = server.url(&database);
    for (name, sessions, expected) in WORKLOADS {
        // These read one table only.
        let several = if name.starts_with("select_") { "" } else { "--tables 3" };
        let common = format!("{name} --db {url} {several} --table-size 2000");
        let prepared = folder.expect(&format!("prepare {common} --sessions 4"), 0);
        let rows = if several.is_empty() { "2,000 rows" } else { "6,000 rows" };
        assert!(prepared.stderr.contains(rows), "{name}: {}", prepared.stderr);
        folder.expect(&format!("check {common}"), 0);
        let (transactions, [read, write, other]) = run(&folder, &format!("{common} --sessions {sessions} {options}"));
        assert_eq!(transactions, 100, "{name}");
        if name == "oltp_delete" {
            // A statement on a row that is gone counts as other.
            assert_eq!((read, write + other), (0, 100), "{name}: {write} + {other}");
            assert!(write > other, "{name}: {write}, {other}");
        } else {
            assert_eq!([read, write, other], expected, "{name}");
        }
        folder.expect(&format!("check {common}"), 0);
        folder.expect(&format!("cleanup {common}"), 0);
        assert_eq!(tables(server, &database), "0", "{name}");
    }
}

#[test]
fn every_workload_lives_on_mariadb() {
    live_on(Kind::MariaDb, "");
}

#[test]
fn every_workload_lives_on_mysql() {
    live_on(Kind::MySql, "");
}

#[test]
fn every_workload_lives_without_prepared_statements() {
    live_on(Kind::MariaDb, "--prepared off");
}

#[test]
fn a_bulk_insert_is_one_statement_per_packet() {
    on_each(|kind| {
        let (folder, server) = (Folder::new(), kind.shared());
        let database = server.fresh_database().unwrap();
        let common = format!("bulk_insert --db {} --sessions 1", server.url(&database));
        folder.expect(&format!("prepare {common}"), 0);
        let mut rows = 0;
        // What remains after the last transaction is sent too, but belongs to no transaction.
        for (transactions, statements) in [(100, 0), (90_000, 2)] {
            let line = format!("run {common} --transactions {transactions} --format json --no-record");
            let findings = folder.expect(&line, 0).findings();
            let total = &findings["stages"][0]["total"];
            assert_eq!(total["transactions"], transactions, "{kind:?}");
            assert_eq!(
                (&total["statements_by_class"]["write"], &total["statements"]),
                (&statements.into(), &statements.into())
            );
            rows += transactions;
            assert_eq!(server.sql(&database, "SELECT COUNT(*) FROM sbtest1").unwrap().trim(), rows.to_string());
            folder.expect(&format!("check {common}"), 0);
        }
        folder.expect(&format!("cleanup {common}"), 0);
        assert_eq!(tables(server, &database), "0");
    });
}

#[test]
fn sysbench_counts_the_same_statements() {
    if !Kind::MariaDb.present() || !testkit::installed("/usr/bin/sysbench") {
        return;
    }
    let (folder, server) = (Folder::new(), Kind::MariaDb.shared());
    for name in ["oltp_read_write", "oltp_point_select"] {
        let database = server.fresh_database().unwrap();
        let ours = format!("{name} --db {} --tables 2 --table-size 1000", server.url(&database));
        folder.expect(&format!("prepare {ours}"), 0);
        let theirs = Command::new("sysbench")
            .args([name, "--tables=2", "--table-size=1000", "--events=100", "--time=0", "--mysql-user=app"])
            .args([format!("--mysql-db={database}"), format!("--mysql-socket={}", server.socket().display())])
            .arg("run")
            .output();
        let theirs = theirs.unwrap();
        let text = String::from_utf8(theirs.stdout).unwrap();
        let figure = |label: &str| -> u64 {
            let line =
                text.lines().find_map(|line| line.trim().strip_prefix(label)).unwrap_or_else(|| panic!("{text}"));
            line.split_whitespace().next().unwrap().parse().unwrap()
        };
        let (transactions, statements) = run(&folder, &ours);
        assert_eq!(transactions, figure("transactions:"), "{text}");
        assert_eq!(statements, ["read:", "write:", "other:"].map(figure), "{text}");
        // Their statements leave the tables in the same state as ours.
        folder.expect(&format!("check {ours}"), 0);
    }
}

#[test]
fn tables_that_are_missing_present_or_damaged_are_told() {
    on_each(|kind| {
        let (folder, server) = (Folder::new(), kind.shared());
        let database = server.fresh_database().unwrap();
        let url = server.url(&database);
        let common = format!("oltp_read_write --db {url} --tables 2 --table-size 300");
        let ran = folder.expect(&format!("run {common} --transactions 5 --no-record"), 4);
        let hint = format!(
            "hint: are the tables prepared? assay prepare oltp_read_write --db {url} --table-size=300 --tables=2\n"
        );
        assert!(ran.stderr.contains(&hint), "{}", ran.stderr);
        // The exact command that the message names.
        let command = hint.trim_end().split("assay ").nth(1).unwrap();
        folder.expect(command, 0);
        folder.expect(&format!("run {common} --transactions 5 --no-record"), 0);
        let refused = folder.expect(&format!("prepare {common}"), 2);
        assert!(refused.stderr.contains("table sbtest1 already exists and nothing was changed"), "{}", refused.stderr);
        folder.expect(&format!("prepare {common} --replace"), 0);

        server.sql(&database, "DELETE FROM sbtest2 WHERE id <= 7; UPDATE sbtest1 SET pad = '' WHERE id < 3;").unwrap();
        let found = folder.expect(&format!("check {common}"), 1).stderr;
        assert!(found.contains("table sbtest2: rows: expected 300, found 293"), "{found}");
        assert!(
            found.contains("table sbtest1: rows whose pad is not 5 groups of 11 digits: expected 0, found 2"),
            "{found}"
        );

        folder.expect(&format!("cleanup {common}"), 0);
        let ran = folder.expect(&format!("run {common} --transactions 5 --prepare --no-record"), 0);
        assert!(ran.stderr.contains("prepared oltp_read_write in "), "{}", ran.stderr);
        folder.expect(&format!("check {common}"), 0);
    });
}
