//! `assay sql` and `assay io`: from the command line to records that other commands can read.

use insta::assert_snapshot;
use testkit::Mounted;

use crate::common::Folder;

/// Two ways to the same rows, a third that changes them, and one that the server refuses.
const CASES: &str = r#"
prepare = ["CREATE TABLE t (id int, v int)", "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)"]
cleanup = "DROP TABLE t"

[[case]]
name = "filter"
sql = "SELECT id, v FROM t WHERE v > 10"
result = "rows"

[[case]]
name = "union"
sql = "SELECT id, v FROM t WHERE v = 30 UNION ALL SELECT id, v FROM t WHERE v = 20"
result = "rows"

[[case]]
name = "update"
setup = "BEGIN"
sql = "UPDATE t SET v = v + 1"
teardown = "ROLLBACK"
"#;

#[test]
fn statements_are_timed_in_rounds_and_their_record_is_read_by_show_and_compare() {
    let folder = Folder::new();
    folder.write("cases.toml", CASES);
    let line = "sql cases.toml --db sqlite:t.db --runs 6 --seed 1 --explain --record r.json";
    let ran = folder.expect(line, 0);
    for part in
        ["3 cases · 6 runs each, in random order · warm-up 1 run", "ratio to filter", "plan of filter:", "SCAN t"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.shown());
    }
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("r.json")).unwrap()).unwrap();
    let cases = record["cases"]["cases"].as_array().unwrap();
    for (case, rows) in cases.iter().zip([2, 2, 0]) {
        assert_eq!((case["executions"].as_array().unwrap().len(), &case["rows"]), (6, &rows.into()), "{case}");
    }
    assert_eq!(cases[0]["digest"], cases[1]["digest"]);
    assert_eq!(folder.expect("show r.json", 0).stdout, ran.stdout);
    let compared = folder.expect("compare r.json --format json", 0).stdout;
    assert!(compared.contains("\"update.p50\""), "{compared}");
    let page = folder.expect("report r.json --html -", 0).stdout;
    assert!(page.contains(">Statements</a></h2>"));
    // What `cleanup` names is removed.
    let gone = folder.expect("sql 'SELECT * FROM t' --db sqlite:t.db --no-record", 4);
    assert!(gone.stderr.contains("error: the server refused case sql"), "{}", gone.shown());
}

#[test]
fn different_rows_refused_statements_and_mistakes_have_exit_codes_of_their_own() {
    let folder = Folder::new();
    let differs = folder.expect("sql 'SELECT 1' 'SELECT 2' --same-result --no-record --runs 2", 1);
    assert!(differs.stdout.contains("Cases that should return the same rows do not"), "{}", differs.shown());
    let refused = folder.expect("sql 'SELECT 1' 'SELEC 2' --no-record --runs 2", 4);
    assert!(refused.stdout.contains("sql2 failed: "), "{}", refused.shown());
    let base = folder.expect("sql 'SELECT 1' 'SELECT 2' --base sql3 --no-record", 2);
    assert!(base.stderr.contains("hint: did you mean sql"), "{}", base.shown());
    let cold = folder.expect("sql 'SELECT 1' --cold --no-record", 2);
    assert!(cold.stderr.contains("was not started by `assay server`"), "{}", cold.shown());
    let counters = folder.expect("sql 'SELECT 1' --counters --no-record", 2);
    assert!(counters.stderr.contains("SQLite has no counters"), "{}", counters.shown());
}

#[test]
fn files_are_measured_by_kind_of_work_and_removed() {
    let folder = Folder::new();
    let line = "io --folder . --size 1M --files 2 --readers 1,2 --time 200ms --seed 1 --record io.json";
    let ran = folder.expect(line, 0);
    assert_eq!(folder.names(), ["io.json"], "{}", ran.shown());
    let record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("io.json")).unwrap()).unwrap();
    let stages = record["stages"].as_array().unwrap();
    assert_eq!((stages.len(), &record["types"]), (2, &serde_json::json!(["read", "write", "log"])));
    for one in stages.iter().flat_map(|stage| stage["total"]["transactions"].as_array().unwrap()) {
        assert!(one["count"].as_u64() > Some(0), "{one}");
    }
    assert_eq!(folder.expect("show io.json", 0).stdout, ran.stdout);
    assert!(folder.expect("io --size 1K --no-record", 2).stderr.contains("every file must hold at least one block"));
}

#[test]
fn files_are_not_made_where_they_do_not_belong_or_fit_and_do_not_stay() {
    let folder = Folder::new();
    let ran = folder.expect("io --folder unmounted --size 1M --no-record", 5);
    assert_snapshot!(ran.shown(), @r"
    exit 5
    --- stderr
    error: --folder unmounted does not exist

    hint: mount the drive to be measured, or create the folder on it
    ");
    let Some(disk) = Mounted::new(&["-t", "tmpfs", "-o", "size=2M", "tmpfs"]) else { return };
    let disk = disk.path();
    let there = || std::fs::read_dir(&disk).unwrap().count();
    let io = format!("io --folder {} --log-size 64K --time 100ms --no-record", disk.display());
    let ran = folder.expect(&format!("{io} --size 4M"), 5);
    assert!(ran.stderr.contains("no space in") && !ran.stderr.contains("creating"), "{}", ran.shown());
    let ran = folder.expect(&format!("{io} --size 1920K --files 1"), 5);
    assert!(ran.stderr.contains(" are left to others"), "{}", ran.shown());
    assert_eq!(there(), 0);
    // A file that is kept counts as there.
    folder.expect(&format!("{io} --size 1536K --files 1 --keep"), 0);
    folder.expect(&format!("{io} --size 1536K --files 1"), 0);
    assert_eq!(there(), 0);
    // Fewer files than were kept: none of the others stays.
    folder.expect(&format!("{io} --size 512K --files 2 --keep"), 0);
    assert_eq!(there(), 3);
    folder.expect(&format!("{io} --size 256K --files 1"), 0);
    assert_eq!(there(), 0);
}
