//! `assay sql` and an experiment on MariaDB and MySQL: logins, changing plans, counters of the session.

use crate::common::Folder;
use crate::kinds;

/// The second case gets an index before its third run, and uses it from then on.
const CASES: &str = r#"
prepare = [
    "CREATE TABLE t (id INT PRIMARY KEY, v INT, pad CHAR(100))",
    "INSERT INTO t SELECT a.n * 100 + b.n * 10 + c.n, a.n * 10 + b.n, 'x' FROM digits a, digits b, digits c",
    "ANALYZE TABLE t",
    "SET @runs = 0",
]
cleanup = "DROP TABLE t"

[[case]]
name = "by key"
sql = "SELECT pad FROM t WHERE id = 7"

[[case]]
name = "by value"
setup = [
    "SET @runs = @runs + 1",
    "SET @sql = IF(@runs = 3, 'CREATE INDEX by_v ON t (v)', 'DO 0')",
    "PREPARE statement FROM @sql",
    "EXECUTE statement",
]
sql = "SELECT COUNT(*) FROM t WHERE v = 7"
"#;

#[test]
fn plans_that_change_are_pointed_out_and_counters_are_those_of_the_statement() {
    for kind in kinds() {
        let server = kind.shared();
        let database = server.fresh_database().unwrap();
        let digits = "CREATE TABLE digits (n INT); INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);";
        server.sql(&database, digits).unwrap();
        let folder = Folder::new();
        folder.write("cases.toml", CASES);
        let url = server.url(&database);
        let line =
            format!("sql cases.toml --db {url} --warmup 0 --runs 5 --seed 1 --explain --counters --record r.json");
        let ran = folder.expect(&line, 0);
        assert!(ran.stdout.contains("plan changed"), "{}", ran.shown());
        let text = std::fs::read_to_string(folder.path().join("r.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let [by_key, by_value] = [0, 1].map(|number| record["cases"]["cases"][number].clone());
        let plans = |case: &serde_json::Value| -> Vec<u64> {
            case["executions"].as_array().unwrap().iter().map(|one| one["plan"].as_u64().unwrap()).collect()
        };
        assert_eq!((plans(&by_key), plans(&by_value)), (vec![0; 5], vec![0, 0, 1, 1, 1]), "{kind:?}: {text}");
        assert!(by_value["plans"][1]["text"].as_str().unwrap().contains("by_v"), "{by_value}");
        assert!(by_value["plans"][1]["json"].as_str().unwrap().contains("by_v"), "{by_value}");
        assert_eq!(record["cases"]["counters_of"], "session");
        // One row by primary key, without the cost of reading the counters.
        let counters = by_key["counters"].as_object().unwrap();
        assert_eq!(counters["Handler_read_key"], 1, "{kind:?}: {by_key}");
        assert!(!counters.contains_key("Handler_read_rnd_next"), "{kind:?}: {by_key}");
    }
}

/// The lab's own connections log in as the server demands: over TLS, with its default method.
const RECIPE: &str = r#"title = "Do the lab's own statements arrive?"

[server.db]
product = "mysql:8.0"
sql = ["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)"]

[run]
options = { runs = 2 }
[[run.case]]
name = "count"
sql = "SELECT COUNT(*) FROM t"

[trials]
count = 1
repeats = 0

[[step]]
name = "rows"
when = "before-measure"
value = true
sql = "SELECT COUNT(*) FROM t"

[[show]]
table = { rows = "case", value = "rows" }
"#;

#[test]
fn an_experiment_runs_its_own_statements_on_mysql_8() {
    if !testkit::Kind::MySql.present() {
        return;
    }
    let folder = Folder::new();
    folder.write("own.toml", RECIPE);
    let lab = testkit::lab_folder().unwrap().to_str().unwrap().to_owned();
    let variables = [("ASSAY_LAB", lab.as_str()), ("PATH", "/usr/bin:/bin")];
    let ran = folder.expect_with(&variables, "lab run own.toml --folder own", 0);
    assert!(ran.stdout.contains("1 of 1 trials"), "{}", ran.shown());
    let journal = std::fs::read_to_string(folder.path().join("own/journal.jsonl")).unwrap();
    assert!(journal.contains(r#""values":[["rows",2.0]]"#), "{journal}");
}
