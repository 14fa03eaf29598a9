//! The OLTP scripts that come with the program: their output and their counts.

use testkit::Kind;

use crate::bench::Bench;

const TABLES: &str = "--tables=2 --table-size=500";

/// Each run has its own seed: runs with the same seed write the same values to the same rows, and an update that
/// changes nothing is not counted as a write. By default sysbench uses the current second as seed.
fn lines(script: &str, runs: &[&str]) -> Vec<String> {
    let mut lines = vec![format!("{script} prepare {TABLES}")];
    lines.extend(runs.iter().enumerate().map(|(n, run)| format!("{run} {TABLES} --rand-seed={}", n + 1)));
    lines.push(format!("{script} cleanup {TABLES}"));
    lines
}

#[track_caller]
fn same_on(kind: Kind, script: &str, runs: &[&str]) {
    let lines = lines(script, runs);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    Bench::new(&[]).same_on(kind, &lines);
}

#[test]
fn scripts_print_and_count_the_same_on_mariadb() {
    same_on(
        Kind::MariaDb,
        "oltp_read_write",
        &[
            "oltp_read_write run --events=50",
            "oltp_read_only run --events=50",
            "oltp_write_only run --events=50",
            "oltp_point_select run --events=50",
            "oltp_update_index run --events=50",
            "oltp_update_non_index run --events=50",
            "oltp_insert run --events=50",
            "select_random_points run --events=50",
            "select_random_ranges run --events=50",
            "oltp_read_write run --events=20 --skip-trx --range-selects=off --point-selects=3 --db-ps-mode=disable",
        ],
    );
}

#[test]
fn scripts_print_and_count_the_same_on_postgres() {
    same_on(
        Kind::Postgres,
        "oltp_read_write",
        &[
            "oltp_read_write run --events=50",
            "oltp_read_only run --events=50",
            "oltp_write_only run --events=50",
            "oltp_point_select run --events=50",
            "oltp_update_index run --events=50",
            "oltp_insert run --events=50",
            "select_random_points run --events=50",
        ],
    );
}

#[test]
fn what_fails_in_a_script_is_told_with_the_place_of_the_original() {
    let bench = Bench::new(&[]);
    let nowhere = "--mysql-host=127.0.0.1 --mysql-port=1";
    for script in ["oltp_read_write", "bulk_insert", "select_random_points", "select_random_ranges"] {
        for command in ["prepare", "run", "cleanup", "prewarm", ""] {
            bench.same(&format!("{script} {nowhere} {command}"));
        }
    }
    bench.same(&format!("oltp_read_write {nowhere} --tables=3 run --db-driver=x"));
    let scripts = ["oltp_read_only", "oltp_update_index", "select_random_points", "select_random_ranges"];
    for script in scripts {
        bench.same_on(Kind::MariaDb, &[&format!("{script} run"), &format!("{script} prewarm")]);
    }
    let prepare = "oltp_read_write prepare --table-size=10";
    bench.same_on_servers(&[prepare, prepare]);
    bench.same_on(Kind::Postgres, &["oltp_read_write prewarm"]);
    let refuse = "function prepare() local con = sysbench.sql.driver():connect()
        con:query([[CREATE TRIGGER refuse BEFORE INSERT ON sbtest1 FOR EACH ROW SIGNAL SQLSTATE '45000'
          SET MESSAGE_TEXT = 'no']]) end";
    Bench::new(&[("refuse.lua", refuse)])
        .same_on(Kind::MariaDb, &[prepare, "refuse.lua prepare", "oltp_read_write run --events=1 --table-size=10"]);
    let variant = "--pgsql-variant=redshift --table-size=10";
    bench.same_on(
        Kind::Postgres,
        &[&format!("oltp_read_write prepare {variant}"), &format!("oltp_read_write run --events=3 {variant}")],
    );
    // The values in a statement sent as text are random.
    let place = |line: &str| {
        let server = Kind::MariaDb.shared();
        let line = format!("{line} {}", crate::bench::options(server, &server.fresh_database().unwrap()));
        let of = |did: crate::bench::Did| {
            let (_, place) = did.stdout.split_once("function failed: ").expect("it has failed");
            place.split_inclusive(": ").next().map(str::to_owned)
        };
        assert_eq!(of(bench.ours(&line)), of(bench.oracle(&line)), "{line}");
    };
    let text = "--db-ps-mode=disable --skip-trx";
    for ranges in ["--point_selects=0", ""] {
        place(&format!("oltp_read_only {text} {ranges} run"));
    }
    for script in ["oltp_insert", "oltp_delete", "oltp_update_index", "oltp_update_non_index", "select_random_points"] {
        place(&format!("{script} {text} run"));
    }
}

#[test]
fn rows_appended_in_bulk_count_as_the_statements_that_carry_them() {
    for kind in [Kind::MariaDb, Kind::Postgres] {
        let lines = ["bulk_insert prepare", "bulk_insert run --events=100", "bulk_insert cleanup"];
        let ran = Bench::new(&[]).same_on(kind, &lines[..2]);
        assert!(ran.stdout.contains("        write:                           1\n"), "{}", ran.stdout);
        Bench::new(&[]).same_on(kind, &lines);
    }
}

#[test]
fn tables_that_grow_from_ids_of_our_own_begin_empty() {
    same_on(Kind::MariaDb, "oltp_insert --auto-inc=off", &["oltp_insert run --events=30 --auto-inc=off"]);
}

#[test]
fn a_script_of_somebody_else_builds_on_oltp_common() {
    let bench = Bench::new(&[(
        "mine.lua",
        "require('oltp_common')
         sysbench.cmdline.options.extra = { 'Extra', 3 }
         sysbench.cmdline.commands.count = { function()
           local con = sysbench.sql.driver():connect()
           for n = 1, sysbench.opt.tables do print(n, (con:query_row('SELECT COUNT(*) FROM sbtest' .. n))) end
         end }
         function prepare_statements() prepare_point_selects() prepare_index_updates() end
         function event() for i = 1, sysbench.opt.extra do execute_point_selects() end execute_index_updates() end",
    )]);
    let lines = [
        "mine.lua prepare --table-size=50",
        "mine.lua count --table-size=50",
        "mine.lua run --events=5 --table-size=50",
    ];
    for kind in [Kind::MariaDb, Kind::Postgres] {
        bench.same_on(kind, &lines);
    }
}
