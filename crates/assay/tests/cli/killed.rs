//! Checks of tables after a run that did not end: what was in flight may be there or not, and is no fault of the data.

use std::time::Instant;

use nix::sys::signal::Signal;
use testkit::Kind;

use crate::common::Folder;

/// Workloads whose runs write, and which can be checked, with options for small tables.
const WRITING: [(&str, &str); 20] = [
    ("ycsb", "--core-workload d --recordcount 500"),
    ("oltp_write_only", "--table-size 500"),
    ("bulk_insert", ""),
    ("tpcb", ""),
    ("queue", ""),
    ("tpcc", "--warehouses 1 --customers 40 --items 100"),
    ("oltp_insert", "--table-size 500"),
    ("oltp_delete", "--table-size 500"),
    ("oltp_read_write", "--table-size 500 --skip-trx"),
    ("tpcb_simple_update", ""),
    ("insert_benchmark", ""),
    ("bulk_upsert", ""),
    ("documents", ""),
    ("foreign_keys", ""),
    ("hot_counters", ""),
    ("large_values", ""),
    ("procedures", ""),
    ("pubsub", ""),
    ("soft_deletes", ""),
    ("time_series", ""),
];
/// So many of them, without `ASSAY_TEST_MATRIX`.
const SAMPLE: usize = 6;

fn wanted() -> &'static [(&'static str, &'static str)] {
    if std::env::var_os("ASSAY_TEST_MATRIX").is_some() { &WRITING } else { &WRITING[..SAMPLE] }
}

/// Prepares, runs until something has happened, ends the run by `signal`, and checks.
#[track_caller]
fn check_after(url: &str, workload: &str, options: &str, signal: Signal) {
    let folder = Folder::new();
    let line = |command: &str| format!("{command} {workload} {options} --db {url} --sessions 4");
    folder.expect(&format!("{} --no-record", line("prepare")), 0);
    let mut run = folder.start(&format!("{} --time 300s --interval 100ms --no-record", line("run")));
    run.wait_for_any_interval();
    run.wait_for_any_interval();
    run.signal(signal);
    run.finish();
    let begun = Instant::now();
    loop {
        let ran = folder.run(&format!("{} --no-record", line("check")));
        // Journals of the killed process are rolled back by whoever comes first.
        let is_locked = ran.stderr.contains("locked") && begun.elapsed().as_secs() < 60;
        if !is_locked {
            assert_eq!(ran.code, Some(0), "{workload}: {}", ran.shown());
            return;
        }
    }
}

#[test]
fn a_check_after_a_killed_run_accuses_nobody() {
    for (workload, options) in wanted() {
        let folder = Folder::new();
        let url = format!("sqlite:{}?synchronous=off", folder.path().join("killed.db").display());
        check_after(&url, workload, options, Signal::SIGKILL);
    }
}

/// A server goes on with what it was asked for after its client is gone.
#[test]
fn a_check_after_a_killed_or_interrupted_run_on_a_server_accuses_nobody() {
    if !Kind::Postgres.present() {
        return;
    }
    for (workload, options) in wanted() {
        for signal in [Signal::SIGKILL, Signal::SIGINT] {
            let database = Kind::Postgres.shared().fresh_database().unwrap();
            check_after(&Kind::Postgres.shared().url(&database), workload, options, signal);
        }
    }
}

/// A check that fails is of a run that ended, whose session says how far it came.
#[test]
fn records_that_nobody_inserted_are_still_found() {
    let folder = Folder::new();
    let options = "--db sqlite:a.db --recordcount 100 --no-record";
    folder.expect(&format!("prepare ycsb {options}"), 0);
    folder.expect(&format!("run ycsb {options} --core-workload d --transactions 200"), 0);
    folder.expect(&format!("check ycsb {options}"), 0);
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) \
                INSERT INTO usertable SELECT 'stranger' || i, '', '', '', '', '', '', '', '', '', '' FROM n";
    folder.write("strangers.sql", many);
    folder.expect("sql --db sqlite:a.db --no-record --runs 1 --warmup 0 strangers.sql", 0);
    let ran = folder.expect(&format!("check ycsb {options}"), 1);
    assert!(ran.shown().contains("were loaded and inserted"), "{}", ran.shown());
}
