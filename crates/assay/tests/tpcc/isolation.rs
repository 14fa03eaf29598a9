//! The isolation tests of clause 3.4.2 distinguish a server with isolation from one without.

use testkit::Kind;

use super::{Place, SMALL};

/// The clauses that fail.
fn failing(place: &Place, options: &str, code: i32) -> Vec<String> {
    let line = format!("exec tpcc isolation --sessions 2 --db {} {options}", place.url);
    let said = place.folder.expect(&line, code).stderr;
    assert_eq!(said.matches("\nclause 3.4.2.").count(), 9, "{said}");
    assert_eq!(said.matches("\nclause 2.5.2.2: ").count(), 1, "{said}");
    let failed = said.lines().filter(|line| line.contains(": FAILED: "));
    failed.map(|line| line[..line.find(':').unwrap()].trim_start_matches("clause ").to_owned()).collect()
}

#[test]
fn isolation_tests_pass_where_a_server_isolates_and_fail_where_it_does_not() {
    let sqlite = Place::sqlite();
    sqlite.expect("prepare", SMALL, 0);
    assert_eq!(failing(&sqlite, "", 0), [""; 0]);
    sqlite.expect("check", "", 0);
    let ran = sqlite.folder.expect(&format!("exec tpcc isolation --db {} --sessions 1", sqlite.url), 3);
    assert!(ran.stderr.contains("the isolation tests need two sessions: give --sessions 2"), "{}", ran.shown());

    if Kind::Postgres.present() {
        let place = Place::on(Kind::Postgres);
        place.expect("prepare", SMALL, 0);
        // READ COMMITTED: what others commit appears between two statements.
        assert_eq!(failing(&place, "", 1), ["3.4.2.7", "3.4.2.9"]);
        assert_eq!(failing(&place, "--isolation repeatable-read", 0), [""; 0]);
        place.expect("check", "", 0);
    }
    if Kind::MariaDb.present() {
        let place = Place::on(Kind::MariaDb);
        place.expect("prepare", SMALL, 0);
        assert_eq!(failing(&place, "", 0), [""; 0]);
        let uncommitted = "--session-sql 'SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED'";
        let failed = failing(&place, uncommitted, 1);
        for clause in ["3.4.2.1", "3.4.2.2", "3.4.2.7", "3.4.2.8"] {
            assert!(failed.iter().any(|failed| failed == clause), "{failed:?}");
        }
        place.expect("check", "", 0);
        // What an interrupted test removed is restored by the next.
        place.sql("DELETE FROM new_orders1 WHERE no_w_id = 1 AND no_d_id = 10");
        place.expect("check", "", 1);
        assert_eq!(failing(&place, "", 0), [""; 0]);
        place.expect("check", "", 0);
    }
}

#[test]
fn payments_that_read_c_data_without_a_lock_lose_each_other() {
    let builtin = assay_workloads::builtin().iter().find(|workload| workload.name == "tpcc_sql").unwrap();
    let of_data = "SELECT c_data FROM {customer} WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?<lock>";
    let of_customer =
        "c_credit_lim, c_discount, c_balance FROM {customer} WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?<lock>";
    let without = |text: &str, found: &str| {
        assert_eq!(text.matches(found).count(), 1, "{found}");
        text.replace(found, found.trim_end_matches("<lock>"))
    };
    let no_lock_of_data = without(builtin.text, of_data);
    let no_lock = without(&no_lock_of_data, of_customer);
    // InnoDB reads from a snapshot that is older than the locked row; PostgreSQL reads the row as it is, unless nothing
    // is locked.
    for (kind, defective) in
        [(Kind::Postgres, no_lock), (Kind::MariaDb, no_lock_of_data.clone()), (Kind::MySql, no_lock_of_data)]
    {
        if !kind.present() {
            continue;
        }
        let place = Place::on(kind);
        place.expect("prepare", SMALL, 0);
        place.folder.write("tpcc_sql.lua", &defective);
        assert_eq!(failing(&place, "", 1).last().map(String::as_str), Some("2.5.2.2"), "{kind:?}");
    }
}
