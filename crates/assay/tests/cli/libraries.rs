//! Finding records among many, and their history.

use std::path::Path;

use assay_record::{Existing, Record, Status, Time};
use insta::assert_snapshot;

use crate::common::Folder;

const DAY: u64 = 86_400_000;

/// Records of the same run, a day apart: `throughput` is a factor for each.
fn fill(folder: &Path, throughput: &[f64], change: impl Fn(usize, &mut Record)) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assay-record/tests/records/0.1.0.json.zst");
    let mut record = Record::read(&shipped).unwrap();
    record.status = Status::Complete;
    record.environment.host.name = "lab1".into();
    record.stages.truncate(1);
    let length = record.stages[0].measured_ns;
    for (number, factor) in throughput.iter().enumerate() {
        let mut record = record.clone();
        record.started = Time::from_unix_ms(1_767_225_600_000 + number as u64 * DAY);
        record.manifest.seed = number as u64;
        record.tags.insert("commit".into(), format!("c{number:03}"));
        for stage in &mut record.stages {
            stage.measured_ns = (length as f64 / factor) as u64;
        }
        change(number, &mut record);
        record.create(&folder.join(format!("{number:03}.json.zst")), Existing::Keep).unwrap();
    }
}

/// Noise of about 2 % that is always the same.
fn noise(number: usize) -> f64 {
    1.0 + ((number * 7919 % 101) as f64 - 50.0) / 2_500.0
}

#[test]
fn records_are_found_and_handed_to_other_commands() {
    let folder = Folder::new();
    fill(folder.path(), &[1.0, 1.1, 0.9], |number, record| {
        record.manifest.workload = if number == 1 { "tpcc" } else { "oltp_read_only" }.into();
    });
    folder.write("foreign.json", "{}");
    assert_snapshot!(folder.run("library workload=oltp_* --quiet").shown(), @"
    exit 0
    --- stdout
    2 of 3 records

    started                                             sessions    tps  p95 ms
    2026-01-01 00:00  oltp_read_only  PostgreSQL 15.14        16  1,200    6.59  complete  000.json.zst
    2026-01-03 00:00  oltp_read_only  PostgreSQL 15.14        16  1,080    6.59  complete  002.json.zst
    --- stderr
    1 file is not a readable record: see --problems
    ");
    assert_snapshot!(folder.run("library commit=c001 --paths").shown(), @"
    exit 0
    --- stdout
    001.json.zst
    ");
    assert_snapshot!(folder.run("library --problems").shown(), @"
    exit 0
    --- stdout
    foreign.json: not a record of assay, or damaged: missing field `format` at line 1 column 2
    ");
    assert_snapshot!(folder.run("library comit=c001").shown(), @"
    exit 2
    --- stderr
    error: comit=c001: no record has a tag or setting comit

    hint: did you mean commit?
    ");
    assert_snapshot!(folder.run("library here there").shown(), @"
    exit 2
    --- stderr
    error: two folders: here and there

    hint: a condition is KEY=VALUE, such as workload=tpcc
    ");
    let paths = folder.expect("library commit!=c001 --paths", 0).stdout.replace('\n', " ");
    folder.expect(&format!("tag {paths} disk=nvme"), 0);
    let found = folder.expect("library disk=nvme --json --limit 1", 0).findings();
    assert_eq!((&found["matched"], &found["entries"][0]["path"]), (&2.into(), &"002.json.zst".into()));
}

#[test]
fn a_history_shows_when_it_got_worse_and_what_changed_with_it() {
    let folder = Folder::new();
    let throughput: Vec<f64> = (0..60).map(|number| noise(number) * if number < 40 { 1.0 } else { 0.9 }).collect();
    fill(folder.path(), &throughput, |number, record| {
        if number >= 40 {
            record.tool.version = "0.1.1".into();
        }
    });
    assert_snapshot!(folder.run("history --by commit --quiet").shown(), @"
    exit 0
    --- stdout
    tps got worse: −10.0% [−10.7, −9.5] at c040

    shop.lua, PostgreSQL, 16 sessions
      60 values of commit, 2026-01-01 … 2026-03-01; on lab1, AMD EPYC 7B13, 4 CPUs, 16 GiB
      ▆▇█▇▇▆▇█▇▇▆▇█▇▇▆▇█▇▇▆▇█▇█▆▇█▇█▇▇█▇█▇▇▆▇█▂▃▂▃▃▂▃▂▃▃▂▃▂▃▃▂▃▂▃▃
      worse    −10.0% [−10.7, −9.5] at c040, the first after c039: 1,201 → 1,080
               changed with it: tool assay 0.1.0 → assay 0.1.1
      noise 1.5%; ten more points would show a change of 4.5%
      to acknowledge it: acknowledged 985d1217 tps c040 REASON
    ");
    let failed = folder.expect("history --by commit --fail-if-worse --format markdown", 1);
    assert_snapshot!(failed.shown(), @"
    exit 1
    --- stdout
    <!-- assay history -->
    **tps** got worse in 1 series

    | what | where | change | changed with it |
    | --- | --- | ---: | --- |
    | shop.lua, PostgreSQL, 16 sessions (985d1217) | c040 | −10% | changed with it: tool assay 0.1.0 → assay 0.1.1 |
    --- stderr
    error: tps got worse (--fail-if-worse)
    ");
    let id = folder.expect("history --by commit --format json", 0).findings()["series"][0]["id"].clone();
    folder
        .write("assay-history.txt", &format!("# known\nacknowledged {} tps c040 the new tool\n", id.as_str().unwrap()));
    let known = folder.expect("history --by commit --fail-if-worse", 0).stdout;
    let words: Vec<&str> = known.split_whitespace().collect();
    assert!(words.join(" ").contains("acknowledged: the new tool"), "{known}");
    folder.write("assay-history.txt", "acknowledge everything");
    assert_snapshot!(folder.run("history").shown(), @"
    exit 2
    --- stderr
    error: ./assay-history.txt: line 1: expected `acknowledged|baseline SERIES METRIC POINT REASON…`
    ");
    folder.write("assay-history.txt", "");
    assert_snapshot!(folder.run("history --metric tsp").shown(), @"
    exit 2
    --- stderr
    error: no record has the figure tsp

    hint: did you mean tps?
    ");
}

#[test]
fn another_machine_starts_a_series_of_its_own() {
    let folder = Folder::new();
    let throughput: Vec<f64> = (0..40).map(|number| noise(number) * if number < 20 { 1.0 } else { 0.5 }).collect();
    fill(folder.path(), &throughput, |number, record| {
        if number >= 20 {
            record.environment.host.name = "lab2".into();
        }
    });
    assert_snapshot!(folder.expect("history --fail-if-worse", 0).shown(), @"
    exit 0
    --- stdout
    tps: no new change for the worse in 2 series of results

    shop.lua, PostgreSQL, 16 sessions
      20 records, 2026-01-01 … 2026-01-20; on lab1, AMD EPYC 7B13, 4 CPUs, 16 GiB
      ▂▅▇▃▆▂▅█▄▆▂▅█▄▇▃▅█▄▇
      noise 1.4%; ten more points would show a change of 4.2%

    shop.lua, PostgreSQL, 16 sessions
      20 records, 2026-01-21 … 2026-02-09; on lab2, AMD EPYC 7B13, 4 CPUs, 16 GiB
      ▃▅█▄▆▃▅█▄▇▃▅█▄▇▃▆▂▄▇
      another machine before, whose results are a series of their own: lab1, AMD EPYC 7B13, 4 CPUs, 16
        GiB
      noise 1.5%; ten more points would show a change of 4.4%
    ");
}

#[test]
fn two_results_without_a_difference_have_nothing_to_explain() {
    let folder = Folder::new();
    fill(folder.path(), &[1.0, 1.01, 0.99, 1.0, 1.005, 0.995, 1.01, 0.99], |_, _| ());
    let sides = "--baseline 000.json.zst 001.json.zst 002.json.zst 003.json.zst \
                 --candidate 004.json.zst 005.json.zst 006.json.zst 007.json.zst";
    assert_snapshot!(folder.expect(&format!("explain {sides}"), 0).shown(), @"
    exit 0
    --- stdout
    No difference in throughput that chance does not explain: 1,200 → 1,200 tps, ±0.0% [−2.0, +2.0].
    ! the trials of baseline differ in their settings: tag commit is c000 or c001 or c002 or c003
    ! 16 transactions of baseline failed; no figure includes them
    ! the trials of candidate differ in their settings: tag commit is c004 or c005 or c006 or c007
    ! 16 transactions of candidate failed; no figure includes them

    baseline:  4 trials: 000.json.zst, …
    candidate: 4 trials: 004.json.zst, …
    ");
}

#[test]
fn a_page_over_all_records_is_one_file() {
    let folder = Folder::new();
    fill(folder.path(), &[1.0, 1.1, 0.9], |_, record| drop(record.tags.insert("note".into(), "</script><b>".into())));
    folder.write("001.html", "the page of a record");
    folder.expect("library --html index.html", 0);
    let page = std::fs::read_to_string(folder.path().join("index.html")).unwrap();
    assert!(page.contains("\"001.html\"") && page.contains("\"002.json.zst\",null"), "{page}");
    assert_eq!(page.matches("</script>").count(), 2, "text from a record must not end the script");
    assert!(!page.contains("http://") && !page.contains("https://"));
}

#[test]
fn a_bisection_finds_the_first_bad_value_and_continues_from_its_records() {
    let folder = Folder::new();
    // Each transaction inserts as many rows as the option says: from 40 on, far more.
    folder.write("slower.lua", SLOWER);
    let line = "bisect './slower.lua --rows {} --transactions 60' --values 1,2,3,4,40,41,42 --records found --quiet";
    let found = folder.expect(line, 0).stdout;
    assert!(found.starts_with("40 is the first bad one ("), "{found}");
    let files = std::fs::read_dir(folder.path().join("found")).unwrap().count();
    assert_eq!(folder.expect(line, 0).stdout, found);
    assert_eq!(std::fs::read_dir(folder.path().join("found")).unwrap().count(), files);
}

#[test]
fn a_bisection_without_a_difference_says_so() {
    let folder = Folder::new();
    folder.write("slower.lua", SLOWER);
    let line =
        "bisect './slower.lua --rows 5 --tag at={} --transactions 60' --values a,b,c --ends 4 --margin 900% --quiet";
    assert_snapshot!(folder.expect(line, 1).stderr, @"error: the ends do not differ");
    assert_snapshot!(folder.run("bisect 'x --rows {}' --values 1").stderr, @"error: a search needs at least two candidates: a good one and a bad one");
}

const SLOWER: &str = r#"
sysbench.cmdline.options = { rows = { "statements per transaction", 1 } }
function event()
    for i = 1, sysbench.opt.rows do con:query("SELECT " .. i) end
end
function thread_init() drv = sysbench.sql.driver(); con = drv:connect() end
"#;
