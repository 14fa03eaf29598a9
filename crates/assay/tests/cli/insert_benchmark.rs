//! The insert benchmark: each step passes its audit on every database, and work that was not done is noticed.

use assay_workloads::builtin;
use testkit::Kind;

use crate::common::Folder;

const LOAD: &str = "--sessions 2 --transactions 40 --retries 1000 --no-record --telemetry off --quiet";

/// Runs a step with its check; every rule of its audit passes.
#[track_caller]
fn step(folder: &Folder, url: &str, options: &str, rules: usize) {
    let ran = folder.expect(&format!("run insert_benchmark --db {url} {options} {LOAD} --check --format json"), 0);
    let findings = ran.findings();
    let audit = findings["stages"][0]["audit"].as_array().cloned().unwrap_or_default();
    assert_eq!(audit.len(), rules, "{options} at {url}: {audit:?}");
    assert!(audit.iter().all(|rule| rule["verdict"] == "passed"), "{options} at {url}: {audit:?}");
}

#[test]
fn the_insert_benchmark_runs_step_by_step_on_every_database() {
    let folder = Folder::new();
    let servers = [Kind::Postgres, Kind::MariaDb, Kind::MySql].into_iter().filter(|kind| kind.present());
    let mut urls: Vec<String> =
        servers.map(|kind| kind.shared().url(&kind.shared().fresh_database().unwrap())).collect();
    urls.push(format!("sqlite:{}?synchronous=off", folder.path().join("inserts.db").display()));
    for url in urls {
        folder.expect(&format!("prepare insert_benchmark --db {url} --rows 500 --indexes 0 --no-record"), 0);
        step(&folder, &url, "", 2);
        folder.expect(&format!("exec insert_benchmark index --db {url} --indexes 3"), 0);
        step(&folder, &url, "--delete --per-commit 7", 2);
        step(&folder, &url, "--query range", 0);
        step(&folder, &url, "--query point", 0);
        step(&folder, &url, "--key-order random", 1);
        folder.expect(&format!("cleanup insert_benchmark --db {url}"), 0);
    }
}

#[test]
fn inserts_and_removals_that_were_not_done_are_noticed() {
    let folder = Folder::new();
    let text = builtin().iter().find(|workload| workload.name == "insert_benchmark").unwrap().text;
    let remove = "remove:perform(first + chunk, first + chunk + number)";
    let defects = [
        ("  insert:perform(unpack(list, 1, number * 7))\n", "", "rows in the table"),
        (remove, "local _ = nil", "rows in the table"),
        (remove, "remove:perform(first + chunk, first + chunk + number - 1)", "rows in the table"),
        ("is_ordered and start + i or", "is_ordered and start + i + 100000 or", "sum of the keys in the table"),
    ];
    for (number, (right, wrong, noticed)) in defects.into_iter().enumerate() {
        assert_eq!(text.matches(right).count(), 1, "{right}");
        folder.write("defect.lua", &text.replace(right, wrong));
        let line = format!("run ./defect.lua --db sqlite:{number}.db?synchronous=off --delete --rows 5000 --prepare");
        let ran = folder.expect(&format!("{line} {LOAD} --check --verbose"), 1);
        let is_noticed = ran.shown().lines().any(|line| line.contains(noticed) && !line.ends_with("passed"));
        assert!(is_noticed, "{wrong}: {}", ran.shown());
    }
}
