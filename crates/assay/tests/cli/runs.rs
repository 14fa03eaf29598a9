//! Runs that succeed.

use assay_record::Record;

use crate::common::{Folder, ONE_TABLE, assert_nothing_is_lost};
use insta::assert_snapshot;

#[test]
fn the_default_run_prepares_an_embedded_database_and_reports() {
    let folder = Folder::new();
    let ran = folder.run("run oltp_read_write --time 2s --seed 42 --table-size 1000 --workers 1");
    assert_snapshot!(ran.redacted(), @"
    exit 0
    --- stdout
    oltp_read_write · SQLite # · # table of # rows · # session
    closed loop · # s
    # tx/s …

    steady unknown: needs at least # s (this run: # s)
    errors …

    throughput total per s
    transactions # #
    statements # #
    read # #
    write # #
    other (like COMMIT) # #

    response ms count p50 p90 p95 p99 p99.9 max
    oltp_read_write # # # # # # #
    service time # # # # # # #
    wait for a worker # # # # # # #

    complete in # s · started ####-##-##T##:##:##.###Z · assay #
    seed # · table_size=#
    --- stderr
    no --db: using an embedded SQLite database in [FOLDER]/assay-[NAME], removed at the end
    prepared oltp_read_write in # s: # rows, # rows/s
    time s sessions tx/s stmt/s read/s write/s other/s p50 ms p95 ms p99 ms errors retries
    # # # # # # # # # # # #
    record: assay-records/oltp_read_write-########T######Z.json.zst
    next: assay run --again assay-records/oltp_read_write-########T######Z.json.zst --prepare --db postgres://USER@HOST/DATABASE
    ");
    // The temporary database is removed, the record remains.
    assert_eq!(folder.names(), ["assay-records"]);
}

#[test]
fn results_go_to_stdout_in_the_form_asked_for_and_nothing_else_does() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let json = folder.run("run ./one_table.lua --time 200ms --format json --no-record --quiet");
    let findings: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(findings["stages"][0]["total"]["transactions"].as_u64().unwrap() > 0);
    assert_eq!(json.stderr, "");
    let csv = folder.run("run ./one_table.lua --time 1s --interval 500ms --format csv --no-record --quiet --workers 1");
    let lines: Vec<Vec<&str>> = csv.stdout.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][..7], ["stage", "sessions", "measured_ns", "target", "type", "transactions", "tps"]);
    assert!(lines.len() >= 2 && lines.iter().all(|line| line.len() == lines[0].len()), "{}", csv.stdout);
}

#[test]
fn a_ladder_reports_each_stage() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let ran =
        folder.run("run ./one_table.lua --sessions 1,2 --time 500ms --interval 250ms --seed 1 --no-record --workers 1");
    // Which stage is the best, and whether it is the knee, depends on the machine.
    assert_eq!(ran.stdout.matches("most tx/s\n").count(), 1);
    let same = ran.redacted().replace(" knee, most tx/s", "").replace(" most tx/s", "").replace(" knee", "");
    assert_snapshot!(same.replace("with # session,", "with # sessions,"), @"
    exit 0
    --- stdout
    one_table · SQLite # · #, # sessions · closed loop · # s each
    # tx/s …

    sessions tx/s p50 ms p99 ms
    # # # #
    # # # #

    steady unknown: needs at least # s (this run: # s)
    errors …

    with # sessions, for # s:

    throughput total per s
    transactions # #
    statements # #
    write # #

    response ms count p50 p90 p95 p99 p99.9 max
    one_table # # # # # # #
    service time # # # # # # #
    wait for a worker # # # # # # #

    complete in # s · started ####-##-##T##:##:##.###Z · assay #
    seed #
    --- stderr
    no --db: using an embedded SQLite database in [FOLDER]/assay-[NAME], removed at the end
    prepared ./one_table.lua in # s
    step # of #: # session
    time s sessions tx/s stmt/s read/s write/s other/s p50 ms p95 ms p99 ms errors retries
    # # # # # # # # # # # #
    step # of #: # sessions
    time s sessions tx/s stmt/s read/s write/s other/s p50 ms p95 ms p99 ms errors retries
    # # # # # # # # # # # #
    ");
}

#[test]
fn a_number_of_transactions_is_kept_exactly() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let ran = folder.run("run ./one_table.lua --transactions 25 --sessions 3 --format json --no-record --quiet");
    let findings: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(findings["stages"][0]["total"]["transactions"], 25);
}

/// Each session, or user at a terminal, reports what it draws; the second session sleeps in its second transaction.
const DRAWN: &str = r#"
sysbench.cmdline.options = { held = { "Seconds that the second session sleeps", 0 } }
function thread_init() own = { number = sysbench.tid } end
function event()
  local user = sysbench.opt.terminals > 0 and assay.terminal() or own
  user.count = (user.count or 0) + 1
  own.events = (own.events or 0) + 1
  assay.log(("drawn %d %d %d"):format(user.number, user.count, sysbench.rand.uniform(1, 1000000)))
  if sysbench.tid == 1 and own.events == 2 then assay.sleep(sysbench.opt.held) end
end
"#;

/// Session and worker stand still for longer than the others need for all of the transactions.
#[test]
fn a_worker_that_stands_still_keeps_its_part_of_a_number_of_transactions() {
    let folder = Folder::new();
    folder.write("drawn.lua", DRAWN);
    let arrivals: String = (0..100).map(|i| format!("{}\n", f64::from(i) / 400.0)).collect();
    folder.write("arrivals", &arrivals);
    for load in [
        "--sessions 3 --rate 400",
        "--sessions 3 --rate 400 --arrival poisson",
        "--sessions 3 --rate-file arrivals",
        "--terminals 6 --connections 3",
    ] {
        let drawn = |held: &str| {
            let line = format!("run ./drawn.lua {load} --held {held} --transactions 60 --time 1h --workers 3 --seed 5");
            let said = folder.expect(&format!("{line} --no-record"), 0).stderr;
            let mut lines: Vec<String> =
                said.lines().filter_map(|line| line.split_once("drawn ")).map(|(_, drawn)| drawn.to_owned()).collect();
            lines.sort();
            lines
        };
        let undisturbed = drawn("0");
        assert_eq!(undisturbed.len(), 60, "{load}");
        assert_eq!(drawn("0.7"), undisturbed, "{load}");
    }
}

#[test]
fn a_check_of_a_workload_without_check_is_its_audit() {
    let folder = Folder::new();
    let event = "assay.count('done') assay.count('all')";
    let script = |audit: &str| format!("function thread_init() {audit} end function event() {event} end");
    let rule = "assay.audit{ name = 'one each', part = 'done', whole = 'all', BOUND }";
    folder.write("right.lua", &script(&rule.replace("BOUND", "low = 1")));
    folder.write("wrong.lua", &script(&rule.replace("BOUND", "high = 0.1")));
    folder.write("nothing.lua", &script(""));
    let line = |name: &str| format!("run ./{name} --check --transactions 20 --no-record");
    folder.expect(&line("right.lua"), 0);
    let failed = folder.expect(&line("wrong.lua"), 1);
    assert!(failed.stderr.contains("the audit of ./wrong.lua failed: one each"), "{}", failed.stderr);
    let refused = folder.expect(&line("nothing.lua"), 2);
    assert!(
        refused.stderr.contains("workload ./nothing.lua has no check() and declared no audit"),
        "{}",
        refused.stderr
    );
}

#[test]
fn missing_tables_are_prepared_when_asked() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let ran = folder.run("run ./one_table.lua --db sqlite:a.db --prepare --time 200ms --no-record");
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    assert!(ran.stderr.starts_with("prepared ./one_table.lua in "), "{}", ran.stderr);
    // The tables remain: the next run needs no preparation.
    let again = folder.run("run ./one_table.lua --db sqlite:a.db --time 200ms --no-record --quiet");
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), ""));
}

#[test]
fn commands_of_a_workload_run_and_say_how_they_went() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let shown = |line: &str| folder.run(line).redacted();
    assert_snapshot!(shown("prepare ./one_table.lua --db sqlite:a.db"), @r"
    exit 0
    --- stderr
    prepared ./one_table.lua in # s
    record: assay-records/one_table-prepare-########T######Z.json.zst
    ");
    assert_snapshot!(shown("check ./one_table.lua --db sqlite:a.db"), @r"
    exit 0
    --- stdout
    the tables of ./one_table.lua are correct
    --- stderr
    record: assay-records/one_table-check-########T######Z.json.zst
    ");
    assert_snapshot!(shown("check ./one_table.lua --db sqlite:a.db --table-size 11 --no-record"), @r"
    exit 1
    --- stderr
    error: the tables of ./one_table.lua are not correct
    ");
    assert_snapshot!(shown("exec ./one_table.lua greet --db sqlite:a.db --greeting good --loud"), @r"
    exit 0
    --- stderr
    good!
    ");
    assert_snapshot!(shown("exec ./one_table.lua refuse --db sqlite:a.db"), @r"
    exit 1
    --- stderr
    error: command refuse of workload ./one_table.lua failed
    ");
    assert_snapshot!(shown("cleanup ./one_table.lua --db sqlite:a.db"), @r"
    exit 0
    --- stderr
    cleaned up ./one_table.lua
    ");
}

#[test]
fn the_last_thing_a_command_does_may_be_a_load() {
    let folder = Folder::new();
    let script = r#"
        local function fill(rows)
          local con = sysbench.sql.driver():connect()
          con:query("CREATE TABLE t" .. rows .. "(id INTEGER)")
          local loader = con:loader("t" .. rows, "id")
          for i = 1, rows do loader:row(i) end
          loader:done()
        end
        sysbench.cmdline.options = { rows = {"How many", 1} }
        sysbench.cmdline.commands = { fill = { function() fill(sysbench.opt.rows) end } }"#;
    folder.write("it.lua", script);
    for rows in [1, 10, 1000, 100_000] {
        folder.expect(&format!("exec ./it.lua fill --db sqlite:a.db --rows {rows}"), 0);
    }
}

#[test]
fn options_take_a_value_in_either_form_and_either_spelling() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let greeting = |options: &str| folder.run(&format!("exec {options} --db sqlite:a.db")).stderr;
    assert_eq!(greeting("--greeting=a ./one_table.lua greet"), "a\n");
    assert_eq!(greeting("--greeting a --loud on ./one_table.lua greet"), "a!\n");
    assert_eq!(greeting("--loud ./one_table.lua greet"), "hello!\n");
    assert_eq!(greeting("./one_table.lua greet --loud --loud=off"), "hello\n");
    assert_eq!(greeting("./one_table.lua greet --table_size=1,000"), "hello\n");
}

#[test]
fn cleanup_says_what_there_was_to_remove() {
    let folder = Folder::new();
    let said = |command: &str| folder.expect(&format!("{command} oltp_read_only --db sqlite:a.db"), 0).stderr;
    let expected = "nothing to remove: sbtest1 does not exist\ncleaned up oltp_read_only\n";
    assert_eq!(said("cleanup"), expected);
    folder.expect("prepare oltp_read_only --db sqlite:a.db --tables 3 --table-size 10", 0);
    let two = folder.expect("cleanup oltp_read_only --db sqlite:a.db --tables 2", 0).stderr;
    let expected = "removed 2 of 2 tables\ntable sbtest3 was not removed: --tables is 2\n";
    assert_eq!(two, format!("{expected}cleaned up oltp_read_only\n"));
    folder.expect("prepare tpcc --db sqlite:b.db --warehouses 1 --customers 40 --items 100", 0);
    let said = |code| folder.expect("cleanup tpcc --db sqlite:b.db", code).stderr;
    assert_eq!(said(0), "removed 9 of 9 tables\ncleaned up tpcc\n");
    assert_eq!(said(0), "nothing to remove: there are no TPC-C tables\ncleaned up tpcc\n");
}

#[test]
fn a_run_says_when_its_tables_are_of_another_size_than_asked_for() {
    let folder = Folder::new();
    folder.expect("prepare oltp_read_only --db sqlite:a.db --tables 2 --table-size 1000 --quiet", 0);
    let said = |options: &str| {
        let workload = if options.contains("oltp") { "" } else { "oltp_read_only" };
        let line = format!("run {workload} --db sqlite:a.db --transactions 5 --no-record --quiet {options}");
        folder.expect(&line, 0).stderr
    };
    assert_eq!(said("--tables 2 --table-size 1000"), "");
    assert_eq!(
        said("--table-size 500"),
        "warning: --table-size is 500, but sbtest1 has rows up to id 1000: the run does not use them\n  \
         were the tables prepared with other options?\n\
         warning: --tables is 1, but there is a table sbtest2: the run does not use it\n  \
         were the tables prepared with other options?\n"
    );
    assert_eq!(
        said("--tables 2 --sessions 1,2"),
        "warning: --table-size is 10000, but sbtest1 ends at id 1000: statements will look for rows that do not exist\n  \
         were the tables prepared with other options?\n"
    );
    // Tables that grew or shrank are not reported as damaged, whatever runs next.
    let delete = "function event() con:query('DELETE FROM sbtest1 WHERE id > 995') end\n\
                  function thread_init() con = sysbench.sql.driver():connect() end\n";
    folder.write("last_rows.lua", delete);
    folder.expect("run ./last_rows.lua --db sqlite:a.db --transactions 1 --no-record --quiet", 0);
    assert_eq!(said("--tables 2 --table-size 1000"), "");
    assert_eq!(said("oltp_delete --tables 2 --table-size 1000"), "");
    assert_eq!(said("oltp_insert --tables 2 --table-size 1000"), "");
}

#[test]
fn a_record_states_the_size_that_tables_have_and_what_was_asked_for() {
    let folder = Folder::new();
    folder.expect("prepare oltp_read_only --db sqlite:a.db --table-size 1000 --quiet --no-record", 0);
    let run = |record: &str, size: &str| {
        let line = format!("run oltp_read_only --db sqlite:a.db --transactions 5 --quiet --record {record}");
        folder.expect(&format!("{line} --table-size {size}"), 0)
    };
    let ran = run("more.json", "10M");
    assert!(ran.stdout.contains("table_size=1000\n"), "{}", ran.shown());
    let words = "! --table-size was 10,000,000, but the tables have 1,000";
    assert!(ran.stdout.contains(words), "{}", ran.shown());
    assert_eq!(folder.expect("show more.json", 0).stdout, ran.stdout);
    run("same.json", "1000");
    run("less.json", "500");
    let manifest = |name: &str| {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        let manifest: serde_json::Value = serde_json::from_str::<serde_json::Value>(&text).unwrap()["manifest"].clone();
        (manifest["options"]["table_size"].clone(), manifest["asked"]["table_size"].clone())
    };
    assert_eq!(manifest("more.json"), (1000.into(), 10_000_000.into()));
    assert_eq!(manifest("same.json"), (1000.into(), serde_json::Value::Null));
    assert_eq!(manifest("less.json"), (1000.into(), 500.into()));
    // They are three settings: the statements look for other rows.
    let compared = folder.expect("compare same.json more.json less.json", 0).stdout;
    assert!(compared.contains("option table_size (asked): none → 10000000"), "{compared}");
    assert!(compared.contains("option table_size (asked): none → 500"), "{compared}");
    let page = folder.expect("report more.json --html -", 0).stdout;
    assert!(page.contains("--table-size was 10,000,000, but the tables have 1,000"));
}

#[test]
fn a_machine_that_is_not_measured_is_reported_and_the_record_says_why() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let port = testkit::free_port().unwrap();
    let line =
        format!("run ./one_table.lua --time 200ms --host-metrics http://127.0.0.1:{port} --record r.json --quiet");
    let ran = folder.expect(&line, 0);
    let why = format!("http://127.0.0.1:{port}/metrics: Connection refused");
    assert!(ran.stderr.starts_with(&format!("warning: --host-metrics: {why}")), "{}", ran.shown());
    let record = assay_record::Record::read(&folder.path().join("r.json")).unwrap();
    let machine = &record.telemetry.unwrap().scopes[0];
    assert!(machine.series.is_empty() && !machine.absent.is_empty());
    assert!(machine.absent.iter().all(|absent| absent.reason.starts_with(&why)), "{:?}", machine.absent);
}

/// Two sessions, each of which needs 20 ms per transaction: the limit is 100 per second on any machine.
const TWENTY_MS: &str = r#"
ffi.cdef("int usleep(unsigned int)")
function event() ffi.C.usleep(20000) end
"#;

#[test]
fn a_search_finds_the_highest_rate_that_keeps_a_promise_and_its_record_says_it_again() {
    let folder = Folder::new();
    folder.write("sleep.lua", TWENTY_MS);
    let line =
        "run ./sleep.lua --sessions 2 --find-rate 'max < 10s' --find-rate 'errors < 1%' --time 250ms --workers 1";
    let ran = folder.expect(&format!("{line} --seed 1 --record a.json"), 0);
    assert!(ran.stdout.contains("\ncapacity "), "{}", ran.stdout);
    assert!(ran.stderr.contains("stage 1 of the search: 100 tx/s\n"), "{}", ran.stderr);
    assert_eq!(folder.expect("show a.json", 0).stdout, ran.stdout);
    let json: serde_json::Value = serde_json::from_str(&folder.expect("show a.json --format json", 0).stdout).unwrap();
    let capacity = &json["capacity"];
    assert_eq!(capacity["looks"].as_array().unwrap().len(), json["stages"].as_array().unwrap().len());
    assert_eq!(capacity["of"]["promises"], serde_json::json!(["max < 10s", "errors < 1%"]));
    // 25 can end in time, and two more are in flight: of more than 30 due, not all can be started.
    let low = capacity["low"].as_f64();
    assert!(low.is_none_or(|low| low < 125.0), "{low:?}");
    assert!(capacity["high"].as_f64().is_some());
    folder.expect("report a.json --html a.html", 0);
    let page = std::fs::read_to_string(folder.path().join("a.html")).unwrap();
    assert!(page.contains("Search for capacity") && page.contains("data-chart=\"capacity-2\""));
}

#[test]
fn a_promise_about_a_type_that_does_not_occur_is_refused_after_the_first_stage_at_the_latest() {
    let folder = Folder::new();
    let types =
        "alpha = assay.transaction('alpha', function() end)\nbeta = assay.transaction('beta', function() end)\n";
    let event = "function event() turn = (turn or 0) + 1; if turn % 2 == 0 then alpha() else beta() end end\n";
    folder.write("early.lua", &format!("{types}{event}"));
    folder.write("late.lua", &format!("function thread_init()\n{types}end\n{event}"));
    let options = "--sessions 2 --time 250ms --workers 1 --no-record";
    for (wrong, hint) in [("alfa", "hint: did you mean alpha?"), ("new_order", "hint: there are: alpha, beta")] {
        let early = folder.expect(&format!("run ./early.lua {options} --find-rate '{wrong}.p99 < 10ms'"), 2);
        assert!(early.stderr.contains(&format!("has no transactions of type {wrong}\n")), "{}", early.shown());
        assert!(early.stderr.contains(hint) && early.stdout.is_empty(), "{}", early.shown());
        // Until it runs, nobody knows the types of this one.
        let late = folder.expect(&format!("run ./late.lua {options} --find-rate '{wrong}.p99 < 10ms'"), 2);
        let error = format!("error: --find-rate: there are no transactions of type {wrong}");
        assert!(late.stderr.contains(&error) && late.stderr.contains(hint), "{}", late.shown());
        let said = format!("capacity unknown: there are no transactions of type {wrong}");
        assert!(late.stdout.contains(&said), "{}", late.shown());
        assert!(!late.stderr.contains("stage 2"), "{}", late.shown());
    }
}

#[test]
fn the_number_of_sessions_after_which_throughput_stops_growing_is_found() {
    let folder = Folder::new();
    folder.write("sleep.lua", TWENTY_MS);
    // Sleeping sessions do not slow each other down: there is no knee.
    let ran = folder.expect("run ./sleep.lua --sessions auto:4 --time 300ms --workers 1 --record a.json", 0);
    assert!(ran.stdout.contains("knee"), "{}", ran.stdout);
    assert_eq!(folder.expect("show a.json", 0).stdout, ran.stdout);
    let record = assay_record::Record::read(&folder.path().join("a.json")).unwrap();
    let sessions: Vec<u32> = record.stages.iter().map(|stage| stage.sessions).collect();
    assert_eq!((&sessions[..3], &record.manifest.sessions), (&[1, 2, 4][..], &sessions));
}

#[test]
fn a_rate_that_changes_and_arrivals_of_a_file_are_what_is_due() {
    let folder = Folder::new();
    folder.write("sleep.lua", "function event() end");
    folder.write("arrivals.csv", "seconds\n0\n0.05\n0.05\n0.3\n0.7\n");
    let due = |options: &str| {
        let ran = folder.expect(&format!("run ./sleep.lua {options} --workers 1 --format json --no-record"), 0);
        assert!(ran.stderr.contains(" due/s"), "{}", ran.stderr);
        let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        (json["stages"][0]["open"]["due"].as_u64(), json["stages"][0]["measured_ns"].as_u64())
    };
    // From 0 to 200 per second in one second, then half a second at 20: the last point ends the run.
    assert_eq!(
        due("--sessions 4 --rate 0:0,1s:200,1s:20,1500ms:20 --interval 500ms"),
        (Some(110), Some(1_500_000_000))
    );
    assert_eq!(due("--sessions 4 --rate-file arrivals.csv --interval 500ms"), (Some(5), Some(1_700_000_000)));
    assert_eq!(due("--sessions 4 --rate-file arrivals.csv --time 200ms --interval 100ms").0, Some(3));
    let said = folder.expect("run ./sleep.lua --rate-file arrivals.csv --workers 1 --time 800ms --no-record", 0).stdout;
    assert!(said.contains("5 arrivals of arrivals.csv · 0.8 s"), "{said}");
}

#[test]
fn a_mix_shares_what_is_due_among_the_transactions_that_a_workload_names() {
    let folder = Folder::new();
    folder.write(
        "two.lua",
        "local read = assay.transaction('read', function() assay.sleep(0.0001) end)\n\
         assay.transaction('write', function(tid) assert(tid == 0) end)\n\
         function event() read() end\n",
    );
    let counts = |options: &str| -> Vec<(String, u64)> {
        let line = format!("run ./two.lua {options} --transactions 400 --seed 3 --format json --no-record");
        let json: serde_json::Value = serde_json::from_str(&folder.expect(&line, 0).stdout).unwrap();
        let types = json["stages"][0]["total"]["types"].as_array().unwrap();
        let count = |kind: &serde_json::Value| kind["transactions"].as_u64().unwrap();
        let named = types.iter().map(|kind| (kind["name"].as_str().unwrap().to_owned(), count(kind)));
        named.filter(|(_, count)| *count > 0).collect()
    };
    assert_eq!(counts(""), [("read".to_owned(), 400)]);
    let shared = counts("--rate 4000 --mix read=3,write=1");
    let of = |name: &str| shared.iter().find(|(kind, _)| kind == name).map_or(0, |(_, count)| *count);
    assert_eq!(of("read") + of("write"), 400, "{shared:?}");
    assert!((70..=130).contains(&of("write")), "{shared:?}");
    assert_eq!(counts("--mix write=1,read=0"), [("write".to_owned(), 400)]);
    assert!(folder.expect("run ./two.lua --help", 0).stdout.contains("--mix"));
    let wrong = folder.expect("run ./two.lua --mix wite=1 --no-record", 2).stderr;
    assert!(wrong.contains("--mix wite=1: there is no transaction wite; the workload has read, write"), "{wrong}");
}

/// The lines of `assay --events`, as events.
fn events_of(ran: &crate::common::Ran) -> Vec<assay_record::Event> {
    ran.stdout.lines().map(|line| assay_record::Event::of_line(line).expect(line)).collect()
}

#[test]
fn the_process_that_starts_a_run_gets_its_events_and_how_it_ended() {
    use assay_record::{Event, Exited};

    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let ran = folder.run("--events run ./one_table.lua --time 400ms --interval 200ms --record r.json.zst --quiet");
    let events = events_of(&ran);
    let Event::Started(started) = &events[0] else { panic!("{}", ran.shown()) };
    assert_eq!(started.manifest.command[1], "run");
    let at = |is: fn(&Event) -> bool| events.iter().position(is).unwrap_or_else(|| panic!("{}", ran.shown()));
    assert!(at(|event| matches!(event, Event::StageStarted(_))) < at(|event| matches!(event, Event::Interval(_))));
    assert_eq!(events.last(), Some(&Event::Exited(Exited::default())));
    // The record has the same intervals.
    let intervals = events.iter().filter(|event| matches!(event, Event::Interval(_))).count();
    let record = assay_record::Record::read(&folder.path().join("r.json.zst")).unwrap();
    assert_eq!(record.stages[0].intervals.len(), intervals);

    // A wrong command line, and a script that complains.
    let ran = folder.expect("--events run ./one_table.lua --tabel-size 5", 2);
    let [Event::Exited(exited)] = &events_of(&ran)[..] else { panic!("{}", ran.shown()) };
    assert_eq!(exited.code, 2);
    assert_eq!(exited.cause.as_deref(), Some("there is no option --tabel-size"));
    assert!(exited.hints[0].contains("--table-size"), "{exited:?}");
}

const CONNECT: &str = "function thread_init() con = sysbench.sql.driver():connect() end\n";

#[test]
fn a_script_that_leaves_its_transaction_open_ends_the_run_and_none_of_its_transactions_counts() {
    let folder = Folder::new();
    folder.write("ids.lua", &format!("{CONNECT}function event() con:query('CREATE TABLE ids (id INT)') end\n"));
    folder.expect("run ./ids.lua --db sqlite:a.db --transactions 1 --no-record --quiet", 0);
    folder.write("open.sql", "BEGIN;\n\nINSERT INTO ids VALUES (1);\n");
    folder.write("savepoint.sql", "SAVEPOINT here;\nINSERT INTO ids VALUES (1);\n");
    folder.write("kept.sql", "BEGIN;\nSAVEPOINT here;\nINSERT INTO ids VALUES (1);\nROLLBACK TO here;\nCOMMIT;\n");
    folder.write("open.lua", &format!("{CONNECT}function event()\n  con:query('BEGIN')\nend\n"));
    let caught = "  con:query('BEGIN')\n  pcall(con.query, con, 'INSERT INTO nowhere VALUES (1)')\n";
    folder.write("caught.lua", &format!("{CONNECT}function event()\n{caught}end\n"));
    let loop_of_its_own = "function thread_run()\n  con:query('BEGIN')\nend\nfunction event() end\n";
    folder.write(
        "prepare.lua",
        &format!("{CONNECT}function prepare() thread_init() con:query('BEGIN') end\n{loop_of_its_own}"),
    );
    for (script, place) in [
        ("open.sql", "./open.sql:3: the script"),
        ("savepoint.sql", "./savepoint.sql:2: the script"),
        ("open.lua", "./open.lua:4: event()"),
        ("caught.lua", "./caught.lua:5: event()"),
    ] {
        let line = format!("run ./{script} --db sqlite:a.db --sessions 2 --transactions 20 --no-record --format json");
        let ran = folder.expect(&line, 3);
        let words = format!("{place} ended inside a database transaction, whose changes are lost\n");
        assert!(ran.stderr.contains(&words), "{}", ran.shown());
        let total = &ran.findings()["stages"][0]["total"];
        assert_eq!(total["transactions"], 0, "{script}: {total}");
        let kinds = total["errors_by_kind"].as_array().unwrap();
        let lost =
            kinds.iter().find(|kind| kind["class"] == "incomplete").unwrap_or_else(|| panic!("{script}: {total}"));
        assert_eq!(lost["count"], total["failed"], "{script}: {total}");
    }
    let ran = folder.expect("prepare ./prepare.lua --db sqlite:a.db --no-record", 3);
    assert!(ran.stderr.contains("./prepare.lua: prepare() ended inside a database transaction"), "{}", ran.shown());
    folder.expect("run ./kept.sql --db sqlite:a.db --transactions 20 --no-record", 0);
    // A run whose first transaction ends it has nothing to show but that.
    let ran = folder.expect("run ./open.lua --db sqlite:a.db --transactions 5 --no-record --quiet", 3);
    assert!(ran.stdout.contains("! no transaction finished\n") && !ran.stdout.contains("response"), "{}", ran.shown());
}

#[test]
fn a_variable_of_a_script_has_a_value_and_one_that_is_meant_for_it() {
    let folder = Folder::new();
    folder.write("typo.sql", "\\set aid random(1, 9)\nSELECT 'at 12:aid',\n  :adi;\n");
    folder.write("names.sql", "\\set x :rate + 1\nSELECT :x;\n");
    folder.write("format.sql", "SELECT :format;\n");
    folder.write("later.sql", "\\if 0\n\\set x 1\n\\endif\nSELECT :x;\n");
    folder.write("own.sql", "\\set rate 5\n\\set time :rate\nSELECT :time;\n");
    let run = |script: &str, options: &str, code: i32| {
        folder.expect(&format!("run {script} --transactions 2 --no-record --quiet {options}"), code).stderr
    };
    assert_eq!(run("typo.sql", "", 2), "error: typo.sql:3: nothing sets :adi: give --adi VALUE\n");
    run("typo.sql", "--adi 7", 0);
    for (script, name) in [("names.sql", "rate"), ("format.sql", "format")] {
        let told = run(script, "", 2);
        assert!(
            told.starts_with(&format!("error: {script}:1: nothing sets :{name}, and --{name} is an option")),
            "{told}"
        );
    }
    assert!(run("later.sql", "", 3).contains("later.sql:4: undefined variable \"x\""));
    run("own.sql", "", 0);
}

#[test]
fn only_a_size_that_somebody_looked_up_is_in_the_first_line() {
    let folder = Folder::new();
    let options = "sysbench.cmdline.options = { table_size = { 'Rows', 300 } }\n";
    folder.write("own.lua", &format!("{options}{CONNECT}function event() con:query('SELECT 1') end\n"));
    let ran = folder.expect("run ./own.lua --transactions 2 --no-record", 0);
    let first = ran.stdout.lines().next().unwrap();
    assert!(first.starts_with("own · ") && !first.contains("rows"), "{}", ran.shown());
    let line = "run oltp_point_select --prepare --tables 2 --table-size 300 --transactions 2 --no-record";
    let ran = folder.expect(line, 0);
    assert!(ran.stdout.lines().next().unwrap().contains("2 tables of 300 rows"), "{}", ran.shown());
}

#[test]
fn the_scale_of_tpcb_is_that_of_its_tables() {
    let folder = Folder::new();
    let tables = "function prepare()\n  local con = sysbench.sql.driver():connect()\n\
                  con:query('CREATE TABLE pgbench_branches (bid INT PRIMARY KEY, bbalance INT)')\n\
                  con:query('CREATE TABLE pgbench_tellers (tid INT PRIMARY KEY, bid INT, tbalance INT)')\n\
                  con:query('CREATE TABLE pgbench_accounts (aid INT PRIMARY KEY, bid INT, abalance INT)')\n\
                  con:query('CREATE TABLE pgbench_history (tid INT, bid INT, aid INT, delta INT, mtime TIMESTAMP)')\n\
                  con:query('INSERT INTO pgbench_branches VALUES (1, 0), (2, 0), (3, 0)')\nend\n\
                  function event()\n  local con = sysbench.sql.driver():connect()\n\
                  assert(tonumber((con:query_row('SELECT COUNT(DISTINCT bid) FROM pgbench_history'))) == 3)\nend\n";
    folder.write("tables.lua", tables);
    folder.expect("prepare ./tables.lua --db sqlite:a.db --no-record", 0);
    let run = |options: &str, code| {
        folder.expect(&format!("run tpcb --db sqlite:a.db --transactions 60 --format json --no-record {options}"), code)
    };
    assert_eq!(run("", 0).findings()["options"]["scale"], 3);
    folder.expect("run ./tables.lua --db sqlite:a.db --transactions 1 --no-record --quiet", 0);
    run("--scale 3", 0);
    let refused = run("--scale 2", 2).stderr;
    assert!(refused.contains("--scale 2: the tables have 3 branches"), "{refused}");
    run("--scale 0.5", 2);
}

/// A script that computes holds its worker: what ends after an interval is not counted in it.
#[test]
fn an_event_that_spans_intervals_is_counted_in_that_of_its_end() {
    const BUSY: &str = "
        function event()
            local from = os.clock()
            while os.clock() - from < 0.25 do end
        end
    ";
    let folder = Folder::new();
    folder.write("busy.lua", BUSY);
    for load in ["", " --rate 40"] {
        let options = format!("--db sqlite:a.db --time 600ms --interval 100ms --sessions 1{load}");
        folder.expect(&format!("run ./busy.lua {options} --record busy{}.json.zst --quiet", load.len()), 0);
        let record = Record::read(&folder.path().join(format!("busy{}.json.zst", load.len()))).unwrap();
        assert_nothing_is_lost(&record);
        let intervals = &record.stages[0].intervals;
        // The first one takes a quarter of a second at least.
        assert!(intervals[..2].iter().all(|one| one.transactions.iter().sum::<u64>() == 0), "{intervals:#?}");
        for one in intervals.iter().filter(|one| one.response.count > 0) {
            let (first, last) = (one.first_done_ns.unwrap(), one.last_done_ns.unwrap());
            let end = one.start_ns + one.length_ns;
            assert!(one.start_ns <= first && first <= last && last <= end, "{one:#?}");
            assert_eq!(one.response.count, 1, "{one:#?}");
        }
        // Due when they were due: four per interval, while the script held the worker.
        if !load.is_empty() {
            let due: Vec<u64> = intervals[..5].iter().map(|one| one.due.unwrap()).collect();
            assert!(due.iter().all(|due| (3..=5).contains(due)), "{due:?}");
            let waiting: Vec<u64> = intervals[..5].iter().map(|one| one.backlog).collect();
            assert!(waiting.is_sorted() && waiting[0] < waiting[4], "{waiting:?}");
            assert!(record.stages[0].total.unstarted > 0);
        }
    }
}
