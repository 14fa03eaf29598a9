//! A run as a value: printed, executed from a file, and repeated from a record.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use assay_record::Record;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::common::{Folder, ONE_TABLE, Ran};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    folder
}

fn record(folder: &Folder, name: &str) -> Record {
    Record::read(&folder.path().join(name)).unwrap()
}

#[test]
fn a_printed_spec_is_what_would_be_run() {
    let folder = folder();
    let line =
        "run ./one_table.lua --db sqlite:a.db --table-size 5 --sessions 1,2 --time 90s --rate 0:10,1m:20 --tag a=b";
    let printed = folder.expect(&format!("{line} --print-spec"), 0).stdout;
    let spec: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(spec["version"], 1);
    assert_eq!(spec["workload"], json!({ "name": "./one_table.lua", "options": { "table_size": 5 } }));
    assert_eq!(spec["load"]["sessions"], json!([1, 2]));
    assert_eq!(spec["load"]["time"], "1m30s");
    assert_eq!(spec["load"]["rate"], "0s:10,1m:20");
    assert_eq!(spec["tags"], json!({ "a": "b" }));
    // Nothing was run.
    assert_eq!(folder.names(), ["one_table.lua"]);
    folder.write("spec.json", &printed);
    let again = folder.expect("run --spec spec.json --print-spec", 0).stdout;
    assert_eq!(again, printed);
    let changed = folder.expect("run --spec spec.json --terminals 7 --table_size=6 --print-spec", 0).stdout;
    let changed: Value = serde_json::from_str(&changed).unwrap();
    assert_eq!(changed["workload"]["options"]["table_size"], 6);
    assert_eq!(changed["load"]["terminals"], "7");
    assert!(changed["load"]["rate"].is_null() && changed["load"]["sessions"].is_null());
}

#[test]
fn a_run_is_repeated_from_its_record_with_its_seed() {
    let folder = folder();
    let line = "run ./one_table.lua --db sqlite:a.db --prepare --table-size 5 --transactions 20 --time 0 --quiet";
    folder.expect(&format!("{line} --seed 7 --record a.json.zst"), 0);
    folder.expect("run --again a.json.zst --record b.json.zst --quiet", 0);
    folder.expect("run --again a.json.zst --record c.json.zst --quiet --seed 8 --transactions 30 --sessions 2", 0);
    let [a, b, c] = ["a", "b", "c"].map(|name| record(&folder, &format!("{name}.json.zst")).manifest);
    assert_eq!((a.seed, &a.options, &a.sessions, a.limit), (b.seed, &b.options, &b.sessions, b.limit));
    assert_eq!(a.spec, b.spec);
    assert_eq!((c.seed, c.limit.transactions, &c.sessions), (8, Some(30), &vec![2]));
    // The command line of a repetition says what it did.
    assert_eq!(b.command[..4], ["assay", "run", "./one_table.lua", "--db=sqlite:a.db"]);
    // Each trial's record repeats that trial.
    folder.expect(&format!("{line} --seed 7 --trials 2 --record t.json.zst"), 0);
    let second = record(&folder, "t-2.json.zst").manifest;
    let spec = second.spec.unwrap();
    assert_eq!((second.seed, &spec["generator"]["seed"], &spec["trials"]), (8, &json!(8), &json!(1)));
}

#[test]
fn commands_of_a_workload_are_repeated_too() {
    let folder = folder();
    folder.expect("prepare ./one_table.lua --db sqlite:a.db --table-size 5 --record p.json.zst", 0);
    folder.expect("check ./one_table.lua --db sqlite:a.db --table-size 5 --record c.json.zst", 0);
    folder.expect("run --again p.json.zst --db sqlite:b.db --no-record", 0);
    let checked = folder.expect("run --again c.json.zst --db sqlite:b.db --no-record", 0);
    assert_eq!(checked.stdout, "the tables of ./one_table.lua are correct\n");
}

/// Runs `assay run --spec -` with this text on stdin.
fn run_spec(folder: &Folder, options: &str, spec: &Value) -> Ran {
    let mut command = folder.command(&format!("run --spec - {options}"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(spec.to_string().as_bytes()).unwrap();
    Ran::new(folder, child.wait_with_output().unwrap())
}

#[test]
fn a_wrong_value_in_a_spec_is_refused_by_the_name_of_its_option() {
    let folder = folder();
    let check = |spec: Value| run_spec(&folder, "--no-record", &spec).shown();
    let workload = json!({ "name": "./one_table.lua" });
    assert_snapshot!(check(json!({ "workload": workload, "load": { "time": "soon" } })), @r"
    exit 2
    --- stderr
    error: -: --time soon: expected a duration, such as 500ms, 30s, 10m or 1h30m
    ");
    assert_snapshot!(check(json!({ "workload": workload, "load": { "sessions": "auto", "rate": 5 } })), @r"
    exit 2
    --- stderr
    error: --sessions auto needs a closed loop

    hint: to find the highest rate with a fixed number of sessions: `--find-rate 'p99 < 10ms' --sessions 64`
    ");
    assert_snapshot!(check(json!({ "workload": workload, "load": { "rate": 1e9 } })), @r"
    exit 2
    --- stderr
    error: --rate 1000000000: must be at most 10000000
    ");
    assert_snapshot!(check(json!({ "workload": { "name": "./one_table.lua", "options": { "loud": "maybe" } } })), @r"
    exit 2
    --- stderr
    error: --loud maybe: expected on or off
    ");
    let unknown = check(json!({ "workload": workload, "lod": {} }));
    assert!(unknown.contains("error: -: lod: unknown field `lod`, expected one of `version`, `task`, "), "{unknown}");
    let ran = run_spec(&folder, "--time 100ms --no-record --quiet", &json!({ "workload": workload }));
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
}

#[test]
fn a_record_without_a_spec_says_what_its_command_line_was() {
    let folder = folder();
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assay-record/tests/records/0.1.0.json.zst");
    std::fs::copy(old, folder.path().join("old.json.zst")).unwrap();
    let ran = folder.expect("run --again old.json.zst", 2);
    assert!(ran.stderr.contains("error: old.json.zst does not say what to repeat\n"), "{}", ran.shown());
    assert!(ran.stderr.contains("hint: its command line was: assay run "), "{}", ran.shown());
    let both = folder.expect("run ./one_table.lua --again old.json.zst", 2);
    assert!(!both.stderr.contains("panicked"), "{}", both.shown());
}

/// Refuses to run where an argument of the process holds the password.
const CURIOUS: &str = r#"
sysbench.cmdline.options = { my_password = {"Password", ""} }
local file = io.open("/proc/self/cmdline")
local words = file:read("*a")
file:close()
function event()
  if words:find("hunter2", 1, true) then error("seen: " .. words) end
  if sysbench.opt.my_password ~= "hunter2" then error("it has not arrived") end
end
"#;

#[test]
fn a_password_reaches_the_trials_of_a_duel_without_being_an_argument_or_in_a_record() {
    let folder = Folder::new();
    folder.write("curious.lua", CURIOUS);
    let side = "./curious.lua --my-password hunter2 --transactions 5";
    folder.expect(&format!("duel '{side}' '{side}' --trials 1 --records d"), 0);
    let manifest = record(&folder, "d/a-1.json.zst").manifest;
    assert_eq!(manifest.spec.as_ref().unwrap()["workload"]["options"]["my_password"], "***");
    assert!(!format!("{manifest:?}").contains("hunter2"));
    let ran = folder.expect("run --again d/a-1.json.zst", 2);
    let message = "error: the password in `--my-password` was not kept: give `--my-password` again\n";
    assert!(ran.stderr.contains(message), "{}", ran.shown());
    let ran = folder.expect("run --again d/a-1.json.zst --my-password hunter2 --print-spec", 0);
    assert!(!ran.shown().contains("hunter2"), "{}", ran.shown());
}

#[test]
fn what_a_record_or_a_spec_asks_to_execute_is_shown_and_needs_trust() {
    let folder = folder();
    let own = "run ./one_table.lua --db sqlite:a.db --prepare --table-size 5 --transactions 5 --quiet";
    folder.expect(&format!("{own} --record plain.json"), 0);
    let elsewhere = Folder::new();
    let script =
        elsewhere.write("evil.lua", &ONE_TABLE.replace("function event", "io.open('executed', 'w')\nfunction event"));
    let text = std::fs::read_to_string(folder.path().join("plain.json")).unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&text).unwrap();
        change(&mut value["manifest"]["spec"]);
        folder.write("foreign.json", &value.to_string());
        folder.write("foreign-spec.json", &value["manifest"]["spec"].to_string());
    };
    let kill = |spec: &mut Value| {
        spec["kill_check"] = json!("touch executed");
        (spec["load"]["time"], spec["load"]["transactions"]) = (json!("300ms"), Value::Null);
    };
    let script_there = |spec: &mut Value| spec["workload"]["name"] = json!(script.to_str().unwrap());
    let sql = |spec: &mut Value| spec["target"]["session_sql"] = json!(["COPY t TO PROGRAM 'touch executed'"]);
    let server = |spec: &mut Value| {
        spec["target"]["urls"] = json!([]);
        spec["server"] =
            json!({ "product": "postgres", "binaries": "/x", "settings": ["archive_command=touch executed"] });
    };
    type Change<'a> = &'a dyn Fn(&mut Value);
    let changes: [(Change<'_>, &str); 4] = [
        (&kill, "the shell command of --kill-check: touch executed"),
        (&script_there, "the script /"),
        (&sql, "the statement of --session-sql: COPY t TO PROGRAM"),
        (&server, "the server's setting archive_command = touch executed"),
    ];
    for (change, shown) in changes {
        changed(change);
        for file in ["--again foreign.json", "--spec foreign-spec.json"] {
            let ran = folder.expect(&format!("run {file} --no-record"), 2);
            assert!(ran.stderr.contains(shown) && ran.stderr.contains("--trust"), "{}", ran.shown());
            assert!(!folder.path().join("executed").exists(), "{shown}");
        }
    }
    // What is given on the command line is the user's own; so is what is trusted, and a look executes nothing.
    changed(&sql);
    folder.expect("run --again foreign.json --no-record --session-sql 'SELECT 1'", 0);
    changed(&kill);
    let shown = folder.expect("run --again foreign.json --print-spec", 0).stdout;
    assert!(shown.contains("touch executed") && !folder.path().join("executed").exists());
    changed(&script_there);
    let ran = folder.expect("run --again foreign.json --no-record --trust", 0);
    assert!(ran.stderr.starts_with("executing what foreign.json asks for:\n  the script /"), "{}", ran.shown());
    assert!(folder.path().join("executed").exists(), "{}", ran.shown());
    // One's own records are repeated as before.
    folder.expect("run --again plain.json --no-record", 0);
}
