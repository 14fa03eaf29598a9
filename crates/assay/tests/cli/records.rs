//! Records, as users see them.

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
fn a_truncated_record_has_no_end_and_one_without_a_beginning_is_refused() {
    let (folder, path, _) = recorded();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let shown = folder.expect("show r.json.zst", 0).stdout;
    assert!(shown.contains("the record has no end: the run was killed, or is still going on"), "{shown}");
    std::fs::write(&path, &bytes[..100]).unwrap();
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
fn loading_and_checking_leave_records_that_are_compared_like_any_other() {
    let folder = Folder::new();
    let of = |record: &str| {
        format!("oltp_read_only --db sqlite:a.db --table-size 1000 --record {record}.json --tag disk=nvme")
    };
    for number in 1..=2 {
        folder.expect(&format!("prepare {}", of(&format!("load{number}"))), 0);
        folder.expect(&format!("check {}", of(&format!("check{number}"))), 0);
        folder.expect("cleanup oltp_read_only --db sqlite:a.db", 0);
    }
    let found = folder.expect("show load1.json --format json", 0).findings();
    assert_eq!((&found["task"], &found["tags"]["disk"]), (&"prepare".into(), &"nvme".into()));
    assert_eq!(found["stages"][0]["total"]["transactions"], 1000);
    let text = folder.expect("show load1.json", 0).stdout;
    assert!(text.starts_with("oltp_read_only prepare · "), "{text}");
    assert!(text.lines().any(|line| line.ends_with(" rows/s")), "{text}");
    let check = folder.expect("show check1.json --format json", 0).findings();
    assert_eq!((&check["task"], &check["stages"][0]["total"]["transactions"]), (&"check".into(), &1.into()));
    let trials = folder.expect("compare load1.json load2.json --format json", 0).stdout;
    assert!(trials.contains("\"rows_per_second\"") || trials.contains("\"tps\""), "{trials}");
    // A load is not a trial of a check.
    let both = folder.run("compare load1.json check1.json").stdout;
    assert!(both.contains("task"), "{both}");
    // Without a name they go where records of runs go.
    folder.expect("prepare oltp_read_only --db sqlite:a.db --table-size 100", 0);
    let names: Vec<String> = std::fs::read_dir(folder.path().join("assay-records"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.len() == 1 && names[0].starts_with("oltp_read_only-prepare-"), "{names:?}");
}

#[test]
fn a_test_of_the_machine_leaves_a_record_where_one_is_wanted() {
    let folder = Folder::new();
    let run = "sysbench cpu --events=30 --time=0 --cpu-max-prime=100 --threads=2 --assay-record=cpu.json run";
    let reported = folder.expect(run, 0).stdout;
    assert!(reported.contains("total number of events:              30"), "{reported}");
    let found = folder.expect("show cpu.json --format json", 0).findings();
    assert_eq!((&found["task"], &found["workload"]), (&"machine".into(), &"cpu".into()));
    assert_eq!((&found["options"]["cpu_max_prime"], &found["stages"][0]["sessions"]), (&100.into(), &2.into()));
    assert_eq!(found["stages"][0]["total"]["transactions"], 30);
    assert!(folder.expect("show cpu.json", 0).stdout.contains(" operations/s "));
    let refused = folder.expect("sysbench oltp_read_only --assay-record=x.json run", 2);
    assert!(refused.stderr.contains("--assay-record is for tests of the machine"), "{}", refused.shown());
    assert!(!folder.path().join("x.json").exists());
}

/// Paths of records that a command line would write, each with the line.
#[test]
fn an_existing_record_is_not_replaced_unless_that_is_wanted() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    folder.write("cases.toml", "[[case]]\nname = \"one\"\nsql = \"SELECT 1\"\n");
    let prepare = "--db sqlite:a.db --table-size 10";
    let lines = [
        (format!("run ./one_table.lua {prepare} --prepare --transactions 5 --record r.json"), "r.json"),
        (format!("run ./one_table.lua {prepare} --transactions 5 --trials 2 --record r.json"), "r-2.json"),
        (format!("prepare ./one_table.lua {prepare} --record r.json.zst"), "r.json.zst"),
        (format!("check ./one_table.lua {prepare} --db sqlite:a.db --record r.json.zst"), "r-2.json.zst"),
        ("sql cases.toml --db sqlite:a.db --runs 1 --record r.json".to_owned(), "r.json"),
        ("io --folder . --size 1M --files 1 --time 10ms --record r.json".to_owned(), "r.json"),
        ("fleet collect --nats nats://127.0.0.1:1 --record r.json".to_owned(), "r.json"),
        ("sysbench cpu run --time=1 --assay-record=r.json".to_owned(), "r.json"),
        (
            "duel --common './one_table.lua --transactions 5' '--seed 1' '--seed 2' --trials 2 --records .".to_owned(),
            "b-2.json.zst",
        ),
    ];
    for (line, record) in lines {
        folder.write(record, "precious");
        let before = folder.names();
        let ran = folder.expect(&line, 2);
        assert!(ran.stderr.contains("already"), "{line}: {}", ran.shown());
        assert_eq!(std::fs::read_to_string(folder.path().join(record)).unwrap(), "precious", "{line}");
        assert_eq!(folder.names(), before, "{line}: nothing was started");
        std::fs::remove_file(folder.path().join(record)).unwrap();
    }
    folder.write("r.json", "precious");
    let line = "run ./one_table.lua --transactions 5 --record r.json";
    assert_snapshot!(folder.run(line).shown(), @r"
    exit 2
    --- stderr
    error: record r.json already exists

    hint: choose another path, or replace it with `--force`
    ");
    folder.expect(&format!("{line} --force"), 0);
    assert_eq!(folder.expect("show r.json --format json", 0).findings()["status"], "complete");
    // A device is written to, not replaced.
    folder.expect("run ./one_table.lua --transactions 5 --record /dev/null", 0);
}

#[test]
fn a_run_that_fails_before_its_first_success_leaves_its_record() {
    let folder = Folder::new();
    folder.write(
        "fails.lua",
        "function thread_init() con = sysbench.sql.driver():connect() end\n\
         function event() con:query('SELECT 1'); con:query('SELECT nonsense') end\n",
    );
    let ran = folder.expect("run ./fails.lua --db sqlite:a.db --record r.json.zst --format json", 4);
    let shown = folder.expect("show r.json.zst --format json", 0);
    for found in [ran.findings(), shown.findings()] {
        let total = &found["stages"][0]["total"];
        assert_eq!(
            (&found["status"], &total["failed"], &total["statements"]),
            (&"failed".into(), &1.into(), &1.into())
        );
        assert_eq!(total["errors_by_kind"][0]["message"], "no such column: nonsense");
        assert_eq!(found["failure"], "workload ./fails.lua failed in `fails`");
    }
    // Nothing was due before the sessions were connected.
    folder.expect("run ./fails.lua --db postgres://nobody@127.0.0.1:1/none --record n.json.zst", 4);
    assert!(!folder.names().contains(&"n.json.zst".to_owned()));
}

#[test]
fn a_pipe_without_a_writer_is_refused_and_not_waited_for() {
    let folder = Folder::new();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    for name in ["pipe.sql", "pipe.lua"] {
        std::os::unix::fs::symlink("pipe", folder.path().join(name)).unwrap();
    }
    for line in [
        "show pipe",
        "compare pipe pipe",
        "report pipe --html x",
        "run --again pipe",
        "run --spec pipe",
        "run ./pipe.lua --db sqlite:a.db",
        "run ycsb --properties pipe --prepare --db sqlite:a.db",
        "run oltp_read_only --prepare --rate-file pipe",
        "lab plan pipe",
        "lab show pipe",
        "sql ./pipe.sql --db sqlite:a.db",
        "serve pipe --listen 127.0.0.1:0",
        "history . --notes pipe",
    ] {
        let ran = folder.run(line);
        assert!(ran.code.is_some_and(|code| (1..70).contains(&code)), "assay {line}\n{}", ran.shown());
    }
    let ran = folder.run("show pipe");
    assert!(ran.stderr.contains("it is a named pipe, which may have no writer"), "{}", ran.shown());
}
