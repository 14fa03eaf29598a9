//! Records, from the outside.

use std::path::PathBuf;

use crate::common::{Folder, ONE_TABLE};
use insta::assert_snapshot;

fn recorded() -> (Folder, PathBuf, String) {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let ran = folder.run("run ./one_table.lua --time 300ms --record r.json.zst");
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    let path = folder.path().join("r.json.zst");
    (folder, path, ran.stdout)
}

#[test]
fn show_prints_the_report_of_the_run_again() {
    let (folder, _, report) = recorded();
    let shown = folder.run("show r.json.zst");
    assert_eq!((shown.code, shown.stdout, shown.stderr.as_str()), (Some(0), report, ""));
}

#[test]
fn a_record_says_what_ran_where() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let ran = folder.run("run ./one_table.lua --transactions 5 --seed 7 --table-size 20 --record r.json");
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    let record = std::fs::read_to_string(folder.path().join("r.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let manifest = &record["manifest"];
    assert_eq!(record["status"], "complete");
    assert_eq!((&manifest["workload"], &manifest["seed"]), (&"one_table".into(), &7.into()));
    assert_eq!((&manifest["options"]["table_size"], &manifest["command"][1]), (&20.into(), &"run".into()));
    let server = &record["environment"]["servers"][0];
    let settings = &server["settings"];
    assert_eq!((&server["product"], &settings["journal_mode"]), (&"SQLite".into(), &"wal".into()));
}

#[test]
fn a_truncated_record_is_refused() {
    let (folder, path, _) = recorded();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert_snapshot!(folder.run("show r.json.zst").shown(), @r"
    exit 5
    --- stderr
    error: record r.json.zst is truncated

    hint: it was not copied completely: copy it again
    ");
}

#[test]
fn a_file_that_is_no_record_is_refused() {
    let (folder, ..) = recorded();
    assert_snapshot!(folder.run("show one_table.lua").shown(), @r"
    exit 5
    --- stderr
    error: one_table.lua is not a record: it is neither zstd nor JSON
    ");
    assert_snapshot!(folder.run("show absent").shown(), @r"
    exit 5
    --- stderr
    error: cannot read record absent
      No such file or directory (os error 2)
    ");
}

#[test]
fn no_password_reaches_a_record_or_the_terminal() {
    let folder = Folder::new();
    folder.write(
        "secretive.lua",
        &ONE_TABLE.replace(
            "sysbench.cmdline.options = {",
            "sysbench.cmdline.options = { my_password = {\"Password\", \"\"},",
        ),
    );
    let ran = folder.run("run ./secretive.lua --time 100ms --my-password hunter2 --record r.json");
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    let record = std::fs::read_to_string(folder.path().join("r.json")).unwrap();
    assert!(!format!("{record}{}", ran.shown()).contains("hunter2"));
    let ran = folder
        .run("run ./secretive.lua --db postgres://me:hunter2@127.0.0.1:1/db?sslmode=disable --my_password=hunter2");
    assert_eq!(ran.code, Some(4), "{}", ran.shown());
    assert!(!ran.shown().contains("hunter2"), "{}", ran.shown());
}
