//! What the OLTP workloads do to a database: on SQLite always, on every server that can be started here.

mod run;

use assay_seam::Database;
use run::{Outcome, Run, open, sql};
use testkit::Kind;

/// A database file, and its folder.
struct File {
    database: Box<dyn Database>,
    _folder: tempfile::TempDir,
}

fn sqlite() -> File {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}?synchronous=off", folder.path().join("test.db").display());
    File { database: open(&assay_sqlite::DRIVER, &url), _folder: folder }
}

/// Runs the body on SQLite and on a fresh database of each server that can be started here.
fn on_each_database(body: impl Fn(&dyn Database)) {
    body(&*sqlite().database);
    for (kind, driver) in [
        (Kind::Postgres, assay_postgres::DRIVER),
        (Kind::MariaDb, assay_mysql::DRIVER),
        (Kind::MySql, assay_mysql::DRIVER),
    ] {
        if kind.present() {
            let server = kind.shared();
            body(&*open(&driver, &server.url(&server.fresh_database().unwrap())));
        }
    }
}

#[track_caller]
fn succeeds(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.failures, [""; 0], "{:?}", outcome.log);
    outcome
}

const TWO_TABLES: &[&str] = &["tables=2", "table_size=2000"];

/// read/write/other of 100 transactions.
#[track_caller]
fn counts(database: &dyn Database, workload: &str, options: &[&str], sessions: u32) -> (u64, u64, u64) {
    let run = Run { database, workload, options, sessions };
    succeeds(run.command("prepare"));
    let outcome = succeeds(run.transactions(100));
    assert_eq!((outcome.transactions, outcome.restarts), (100, 0));
    succeeds(run.command("check"));
    succeeds(run.command("cleanup"));
    (outcome.read, outcome.write, outcome.other)
}

#[test]
fn transactions_count_as_many_statements_as_sysbench_s() {
    on_each_database(|database| {
        for (workload, expected) in [
            ("oltp_read_only", (1400, 0, 200)),
            ("oltp_read_write", (1400, 400, 200)),
            ("oltp_write_only", (0, 400, 200)),
            ("oltp_point_select", (100, 0, 0)),
            ("oltp_insert", (0, 100, 0)),
            ("oltp_update_index", (0, 100, 0)),
            ("oltp_update_non_index", (0, 100, 0)),
        ] {
            assert_eq!(counts(database, workload, TWO_TABLES, 1), expected, "{workload} on {}", database.driver());
        }
        for workload in ["select_random_points", "select_random_ranges"] {
            assert_eq!(counts(database, workload, &["table_size=2000"], 1), (100, 0, 0), "{workload}");
        }
        assert_eq!(counts(database, "bulk_insert", &[], 1), (0, 1, 0));
    });
}

#[test]
fn deletes_count_as_writes_while_there_are_rows() {
    on_each_database(|database| {
        let (read, write, other) = counts(database, "oltp_delete", &["table_size=80"], 1);
        assert_eq!((read, write + other), (0, 100));
        assert!((40..=80).contains(&write), "{write} of 80 rows were deleted");
    });
}

#[test]
fn options_take_statements_away_and_add_them() {
    let file = sqlite();
    for (options, expected) in [
        (&["skip_trx=on"][..], (140, 40, 0)),
        (&["range_selects=off"], (100, 40, 20)),
        (&["point_selects=1", "sum_ranges=3", "delete_inserts=0"], (70, 20, 20)),
        (&["reconnect=3"], (140, 40, 20)),
    ] {
        let run = Run { database: &*file.database, workload: "oltp_read_write", options, sessions: 1 };
        succeeds(run.command("prepare"));
        let Outcome { read, write, other, .. } = succeeds(run.transactions(10));
        assert_eq!((read, write, other), expected, "{options:?}");
        succeeds(run.command("cleanup"));
    }
}

#[test]
fn prepare_loads_every_row_once_however_many_sessions_share_the_work() {
    on_each_database(|database| {
        for (tables, sessions) in [(1, 3), (3, 2), (2, 5)] {
            // More than one chunk of rows per table, and not a whole number of chunks.
            let options = &[&format!("tables={tables}") as &str, "table_size=60000"];
            let run = Run { database, workload: "oltp_read_write", options, sessions };
            let outcome = succeeds(run.command("prepare"));
            assert_eq!((outcome.expected, outcome.loaded), (tables * 60_000, tables * 60_000), "{tables} × {sessions}");
            let checked = succeeds(run.command("check"));
            assert_eq!(checked.log.len() as u64, tables, "{:?}", checked.log);
            succeeds(run.command("cleanup"));
        }
    });
}

#[test]
fn rows_that_a_transaction_inserts_later_get_the_next_id() {
    on_each_database(|database| {
        let run = Run { database, workload: "oltp_insert", options: &["table_size=50"], sessions: 1 };
        succeeds(run.command("prepare"));
        succeeds(run.transactions(7));
        assert_eq!(sql(database, "SELECT MAX(id) FROM sbtest1"), "57");
        succeeds(run.command("check"));
    });
}

#[test]
fn with_ids_of_its_own_an_insert_begins_with_empty_tables() {
    on_each_database(|database| {
        let run = Run { database, workload: "oltp_insert", options: &["auto_inc=off", "tables=2"], sessions: 2 };
        assert_eq!(succeeds(run.command("prepare")).loaded, 0);
        let outcome = succeeds(run.transactions(50));
        assert_eq!((outcome.read, outcome.write, outcome.other), (0, 50, 0));
        succeeds(run.command("check"));
    });
}

#[test]
fn a_secondary_index_may_stand_in_for_the_primary_key() {
    on_each_database(|database| {
        let options = &["secondary=on", "create_secondary=off", "table_size=100"];
        assert_eq!(counts(database, "oltp_read_write", options, 1), (1400, 400, 200));
    });
}

#[test]
fn prepare_refuses_existing_tables_before_it_changes_anything() {
    on_each_database(|database| {
        let run = |options| Run { database, workload: "oltp_read_only", options, sessions: 2 };
        sql(database, "CREATE TABLE sbtest3(precious INTEGER)");
        let refused = run(&["tables=4", "table_size=10"]).command("prepare");
        assert!(refused.failures[0].starts_with("table sbtest3 already exists and nothing was changed; "));
        assert_eq!(refused.loaded, 0);
        assert_eq!(sql(database, "SELECT COUNT(precious) FROM sbtest3"), "0");
        let absent = run(&["tables=2", "table_size=10"]).command("check");
        assert!(absent.failures.iter().all(|failure| failure.contains("sbtest1")), "{:?}", absent.failures);

        succeeds(run(&["tables=4", "table_size=10", "replace=on"]).command("prepare"));
        succeeds(run(&["tables=4", "table_size=10"]).command("check"));
        succeeds(run(&["tables=4", "table_size=20", "replace=on"]).command("prepare"));
        succeeds(run(&["tables=4", "table_size=20"]).command("check"));
    });
}

/// A failed check is reported once, whichever session found it.
const ADVICE: &str =
    "use the options that the tables were prepared with, or remove them with `cleanup` and prepare them again";

#[test]
fn check_names_table_expectation_and_finding_of_each_fault() {
    on_each_database(|database| {
        let run = Run { database, workload: "oltp_read_write", options: TWO_TABLES, sessions: 2 };
        succeeds(run.command("prepare"));
        let checked = succeeds(run.command("check"));
        assert_eq!(checked.log, ["table sbtest1: 2000 rows, as expected", "table sbtest2: 2000 rows, as expected"]);

        let broken = |faults: &str| {
            faults.split(';').for_each(|fault| drop(sql(database, fault)));
            let outcome = run.command("check");
            assert_eq!(outcome.failures, ["failed"], "after {faults}");
            assert_eq!(outcome.log.iter().filter(|line| *line == ADVICE).count(), 1, "after {faults}");
            let told = outcome.log.iter().filter(|line| !line.ends_with("as expected") && *line != ADVICE);
            told.cloned().collect::<Vec<_>>().join("\n")
        };
        assert_eq!(broken("DELETE FROM sbtest2 WHERE id = 1000"), "table sbtest2: rows: expected 2000, found 1999");
        assert_eq!(
            broken(
                "UPDATE sbtest2 SET id = 9999 WHERE id = 2000; INSERT INTO sbtest2 SELECT 1000, k, c, pad FROM sbtest1 WHERE id = 5"
            ),
            "table sbtest2: greatest id: expected 1 to 2000, found 9999"
        );
        assert_eq!(
            broken(
                "UPDATE sbtest2 SET id = 2000 WHERE id = 9999; UPDATE sbtest1 SET c = 'short' WHERE id < 4; \
                    UPDATE sbtest1 SET pad = c, k = 0 WHERE id = 1"
            ),
            "table sbtest1: rows whose c is not 10 groups of 11 digits: expected 0, found 3\n\
             table sbtest1: rows whose pad is not 5 groups of 11 digits: expected 0, found 1\n\
             table sbtest1: rows whose k is below 1: expected 0, found 1"
        );
        succeeds(run.command("cleanup"));
        // Without any table, the server's error says so: nothing was prepared.
        let absent = run.command("check");
        assert!(absent.failures.iter().all(|failure| failure.contains("sbtest1")), "{:?}", absent.failures);
        assert_eq!(absent.log, [""; 0]);
    });
}

#[test]
fn check_misses_an_index_that_is_gone() {
    let file = sqlite();
    let run = Run { database: &*file.database, workload: "oltp_read_write", options: TWO_TABLES, sessions: 1 };
    succeeds(run.command("prepare"));
    sql(&*file.database, "DROP INDEX k_2");
    assert_eq!(run.command("check").log[1], "table sbtest2: index: expected k_2, found none");
}

#[test]
fn sqlite_sessions_that_write_never_start_over() {
    let file = sqlite();
    for workload in ["oltp_read_write", "oltp_write_only", "oltp_read_only"] {
        let run = Run { database: &*file.database, workload, options: TWO_TABLES, sessions: 8 };
        succeeds(run.command("prepare"));
        let outcome = succeeds(run.transactions(200));
        assert_eq!((outcome.transactions, outcome.restarts), (200, 0));
        succeeds(run.command("check"));
        succeeds(run.command("cleanup"));
    }
}

#[test]
fn the_same_seed_prepares_the_same_rows_however_many_sessions_share_the_work() {
    let content = |database: &dyn Database, sessions| {
        let run = Run { database, workload: "oltp_read_write", options: TWO_TABLES, sessions };
        succeeds(run.command("prepare"));
        let of = |what: &str| sql(database, &format!("SELECT {what}"));
        // All rows draw from one sequence: a difference in one row changes all later ones.
        let content = [1, 2].map(|n| {
            let sum = of(&format!("SUM(id * k) FROM sbtest{n}"));
            let c = of(&format!("RTRIM(c) FROM sbtest{n} WHERE id = 1999"));
            [sum, c, of(&format!("RTRIM(pad) FROM sbtest{n} WHERE id = 2000"))]
        });
        succeeds(run.command("cleanup"));
        content
    };
    let here = content(&*sqlite().database, 1);
    assert_ne!(here[0], here[1], "each table has rows of its own");
    on_each_database(|database| {
        assert_eq!([content(database, 1), content(database, 3)], [here.clone(), here.clone()]);
    });
}

#[test]
fn warmup_says_where_it_exists() {
    for command in ["warmup", "prewarm"] {
        on_each_database(|database| {
            let run = Run { database, workload: "oltp_read_write", options: TWO_TABLES, sessions: 3 };
            succeeds(run.command("prepare"));
            let outcome = run.command(command);
            if database.driver() == "mysql" {
                succeeds(outcome);
            } else {
                assert!(outcome.failures[0].starts_with("warmup works with MySQL and MariaDB only"));
            }
        });
    }
}

/// The built-in workloads run without Lua, the same text as a script of the user's does not.
#[test]
fn a_workload_executes_the_same_statements_with_and_without_lua() {
    let file = sqlite();
    for (workload, options) in [
        ("oltp_point_select", &[][..]),
        ("oltp_point_select", &["tables=3"]),
        ("oltp_read_only", &["tables=3", "sum_ranges=2"]),
        ("oltp_read_write", &["tables=2", "delete_inserts=2"]),
        ("oltp_read_write", &["tables=2", "skip_trx=on", "range_selects=off"]),
        ("oltp_write_only", &[]),
        ("oltp_update_index", &["tables=2"]),
        ("oltp_update_non_index", &["tables=2"]),
        ("oltp_delete", &["tables=2"]),
        ("oltp_read_write", &["tables=2", "db_ps_mode=disable"]),
        ("oltp_write_only", &["db_ps_mode=disable"]),
    ] {
        let builtin = assay_workloads::builtin().iter().find(|builtin| builtin.name == workload).unwrap();
        let run = |workload, every| {
            let run = Run { database: &*file.database, workload, options, sessions: 3 };
            succeeds(run.command("prepare"));
            let outcome = succeeds(run.transactions_with_deadlocks(130, every));
            succeeds(run.command("cleanup"));
            (outcome.executed, outcome.transactions, outcome.restarts)
        };
        // More statements than in a transaction, which would never be complete otherwise.
        for every in [0, 41, 64] {
            let (here, theirs) = (run(workload, every), run(builtin.text, every));
            assert_eq!(here, theirs, "{workload} {options:?}, a deadlock every {every}");
            assert_eq!((here.1, here.2 > 0), (130, every > 0), "{workload}");
        }
    }
}

/// Published scripts take `oltp_common` and replace parts of it.
#[test]
fn a_script_may_replace_any_part() {
    let script = r#"
        require("oltp_common")
        sysbench.cmdline.options = { tables = {"Tables", 3}, extra = {"Ours", "x"} } -- the rest is nil from here on
        function create_table(drv, con, n)
          con:query("CREATE TABLE sbtest" .. n .. "(id INTEGER PRIMARY KEY, c CHAR(120))")
          con:query("INSERT INTO sbtest" .. n .. " VALUES(1, '" .. get_c_value() .. "')")
        end
        function get_c_value() return "mine" end
        function prepare_statements() prepare_point_selects() prepare_begin() prepare_commit() end
        function event()
          begin()
          execute_point_selects()
          local n = stmt[1].point_selects
          param[1].point_selects[1]:set(1)
          assert(n:execute():fetch_row()[1] == "mine")
          commit()
        end
        function cleanup() assay.log("cleaned by " .. sysbench.tid) end
    "#;
    let file = sqlite();
    let run = Run { database: &*file.database, workload: script, options: &[], sessions: 2 };
    succeeds(run.command("prepare"));
    assert_eq!(sql(&*file.database, "SELECT COUNT(*) FROM sqlite_master WHERE name LIKE 'sbtest_'"), "3");
    let outcome = succeeds(run.transactions(5));
    assert_eq!((outcome.read, outcome.write, outcome.other), (55, 0, 10));
    assert_eq!(succeeds(run.command("cleanup")).log, ["cleaned by 0"]);
}

#[test]
fn create_table_alone_creates_fills_and_indexes() {
    let script = r#"
        require("oltp_common")
        function prepare()
          local drv = sysbench.sql.driver()
          local con = drv:connect()
          create_table(drv, con, 2)
        end
    "#;
    on_each_database(|database| {
        // The entry of `cmdline.commands` takes precedence over the function of this name, as in sysbench.
        let shadowed =
            script.replace("function prepare()", "sysbench.cmdline.commands.prepare = nil\nfunction prepare()");
        let run = Run { database, workload: &shadowed, options: TWO_TABLES, sessions: 1 };
        assert_eq!(succeeds(run.command("prepare")).loaded, 2000);
        let checked = run.command("check");
        assert_eq!(checked.log, ["table sbtest1 does not exist", "table sbtest2: 2000 rows, as expected", ADVICE]);
    });
}

#[test]
fn a_second_bulk_insert_goes_on_after_the_first() {
    on_each_database(|database| {
        let run = Run { database, workload: "bulk_insert", options: &[], sessions: 2 };
        succeeds(run.command("prepare"));
        for _ in 0..2 {
            let outcome = succeeds(run.transactions(30));
            assert_eq!((outcome.read, outcome.write, outcome.other), (0, 2, 0));
        }
        assert_eq!(sql(database, "SELECT (SELECT COUNT(*) FROM sbtest1) + (SELECT COUNT(*) FROM sbtest2)"), "60");
        sql(database, "DELETE FROM sbtest1 WHERE id = 1");
        assert_eq!(run.command("check").log, ["table sbtest1: rows: expected 30, found 29"]);
    });
}

#[test]
fn each_session_reads_its_own_share_of_the_keys() {
    let file = sqlite();
    let run =
        |sessions, options| Run { database: &*file.database, workload: "select_random_points", options, sessions };
    succeeds(run(4, &["table_size=3"]).command("prepare"));
    succeeds(run(4, &["table_size=3"]).transactions(20)); // fewer keys than sessions
    let refused = run(1, &["tables=2"]).transactions(1);
    assert!(refused.failures[0].ends_with("select_random_points reads one table: leave out --tables"), "{refused:?}");
}
