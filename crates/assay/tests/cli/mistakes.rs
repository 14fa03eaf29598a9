//! Mistakes of users, and the messages they get.

use crate::common::{Folder, ONE_TABLE};
use insta::assert_snapshot;

fn told(line: &str) -> String {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    folder.run(line).shown()
}

#[test]
fn a_misspelled_fixed_option_is_refused_with_the_nearest_name() {
    assert_snapshot!(told("run oltp_read_write --sesions 4"), @r"
    exit 2
    --- stderr
    error: there is no option --sesions

    hint: did you mean --sessions?
    ");
}

#[test]
fn a_misspelled_workload_option_is_refused_with_the_nearest_name() {
    assert_snapshot!(told("run oltp_read_write --tabel-size=4"), @r"
    exit 2
    --- stderr
    error: there is no option --tabel-size

    hint: did you mean --table-size?
    ");
}

#[test]
fn a_name_that_resembles_nothing_is_answered_with_where_to_look() {
    for (line, hint) in [
        ("run ./one_table.lua --xyz 4", "`assay run ./one_table.lua --help` lists the options"),
        ("server start postgres:15 --xyz", "`assay server start --help` lists the options"),
        ("server xyz", "`assay server --help` lists the commands"),
        ("xyz", "`assay --help` lists the commands"),
        ("fileio", "it is a test of sysbench: `assay sysbench fileio run`"),
    ] {
        let told = told(line);
        assert!(told.ends_with(&format!("\n\nhint: {hint}\n")), "{told}");
    }
}

#[test]
fn a_workload_option_is_typed() {
    assert_snapshot!(told("run ./one_table.lua --table-size=ten"), @r"
    exit 2
    --- stderr
    error: --table-size ten: expected a number, such as 0.5, 250 or 10k
    ");
    assert_snapshot!(told("run oltp_read_write --table-size 2.5"), @r"
    exit 2
    --- stderr
    error: --table-size 2.5: expected a whole number, such as 250, 10k or 1M
    ");
    assert_snapshot!(told("run ./one_table.lua --loud=maybe"), @r"
    exit 2
    --- stderr
    error: --loud maybe: expected on or off
    ");
}

#[test]
fn an_unknown_workload_is_refused_with_the_nearest_name() {
    assert_snapshot!(told("run oltp_raed_write"), @r"
    exit 2
    --- stderr
    error: cannot find a workload `oltp_raed_write`: no such built-in, file or module

    hint: did you mean `oltp_read_write`?
    ");
    assert_snapshot!(told("run ./absent.lua"), @r"
    exit 5
    --- stderr
    error: cannot find the script `./absent.lua`

    hint: check its path; `assay list` shows the built-in workloads
    ");
}

#[test]
fn what_does_not_fit_is_named_with_its_cause_and_its_remedy() {
    for (line, exit, parts) in [
        (
            "run oltp_read_write --db sqlite:x.db --set shared_buffers=1GB",
            2,
            ["--set needs a server", "--server postgres:17"],
        ),
        ("run oltp_read_write --db sqlite:x.db --memory 1G", 2, ["no option --memory", "`--server-memory`"]),
        ("run ./one_table.lua --no-such-option 1", 2, ["no option --no-such-option", "lists the options"]),
        ("run ./", 5, ["cannot find the script", "it is a folder"]),
        ("run ./empty.lua --db sqlite:x.db", 3, ["it defines no event()", "define `function event()`"]),
        ("sql --db sqlite:x.db absent.sql", 5, ["cannot read absent.sql", "No such file"]),
        ("tag one_table.lua disk", 2, ["disk is neither a record nor a tag", "KEY=VALUE"]),
        ("report r.json --mark noon=x", 2, ["--mark noon=x", "12:30=checkpoint"]),
        ("report r.json --mark 1:75=x", 2, ["--mark 1:75=x", "12:30=checkpoint"]),
    ] {
        let folder = Folder::new();
        folder.write("one_table.lua", ONE_TABLE);
        folder.write("empty.lua", "x = 1");
        let ran = folder.expect(line, exit);
        assert!(parts.iter().all(|part| ran.stderr.contains(part)), "{line}: {}", ran.shown());
    }
}

/// A row of mistakes.txt: what is typed, and the whole answer.
struct Row<'a> {
    line: &'a str,
    exit: i32,
    said: &'a str,
}

impl<'a> Row<'a> {
    /// `$ assay LINE`, `exit CODE`, and what is printed on stderr without empty lines.
    fn all(text: &'a str) -> Vec<Row<'a>> {
        let row = |block: &'a str| {
            let (line, rest) = block.split_once("\nexit ").expect("each row has an exit code");
            let (exit, said) = rest.split_once('\n').expect("each row has a message");
            Row { line, exit: exit.parse().unwrap(), said: said.trim_end() }
        };
        let (_, rows) = text.split_once("$ assay ").expect("there are rows");
        rows.split("\n\n$ assay ").map(row).collect()
    }
}

/// Every row is refused with exactly these words; none needs a server, and none prepares anything.
#[test]
fn wrong_inputs_are_answered_as_the_table_says() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    folder.write("gone.lua", ONE_TABLE);
    folder.expect("run ./one_table.lua --transactions 5 --tag disk=nvme --record r.json.zst", 0);
    folder.expect("run ./gone.lua --transactions 5 --record gone.json.zst", 0);
    std::fs::remove_file(folder.path().join("gone.lua")).unwrap();
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    for (name, text) in [
        ("file", "text"),
        ("empty.json", ""),
        ("other.json", r#"{"a":1}"#),
        ("spec.json", r#"{"version":1}"#),
        ("no_queries.lua", "--- No queries.\nfunction queries() end\n"),
        ("password", ""),
    ] {
        folder.write(name, text);
    }
    let rows = Row::all(include_str!("mistakes.txt"));
    let said = |text: &str| text.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    let mut wrong = Vec::new();
    for row in &rows {
        let ran = folder.run(row.line);
        let found = said(&ran.stderr.replace(folder.path().to_str().unwrap(), "[FOLDER]"));
        if (ran.code, found.as_str()) != (Some(row.exit), row.said) {
            wrong.push(format!("$ assay {}\nexit {}\n{found}\n", row.line, ran.code.unwrap_or(-1)));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn parts_of_workloads_are_not_suggested() {
    for (name, expected) in
        [("tpcc_chek", "`assay list` shows"), ("oltp_comon", "`assay list` shows"), ("oltp_table", "`assay list`")]
    {
        let told = told(&format!("run {name}"));
        assert!(told.contains(expected), "{told}");
        for part in ["_check", "_common", "_tables", "_load", "_transactions"] {
            assert!(!told.contains(part), "{told}");
        }
    }
}

#[test]
fn names_that_other_tools_have_are_answered_with_ours() {
    for (theirs, ours) in [
        ("--threads 4", "--sessions"),
        ("--threads=4", "--sessions"),
        ("--duration 10", "--time"),
        ("--events 100", "--transactions"),
        ("--report-interval 1", "--interval"),
        ("--report_interval=1", "--interval"),
        ("--mysql-host=db", "--db"),
        ("--rand-seed 7", "--seed"),
        ("--warmup-time 7", "--warmup"),
    ] {
        let told = told(&format!("run oltp_read_only {theirs}"));
        let option = theirs.split([' ', '=']).next().unwrap().replace('_', "-");
        let expected =
            format!("exit 2\n--- stderr\nerror: there is no option {option}\n\nhint: it is called `{ours}` here\n");
        assert_eq!(told, expected);
    }
    assert_snapshot!(told("run oltp_read_only --histogram"), @r"
    exit 2
    --- stderr
    error: there is no option --histogram

    hint: every record contains its histograms: `assay report RECORD --html FILE` draws them
    ");
}

#[test]
fn help_is_a_command_too() {
    let folder = Folder::new();
    for (asked, same) in [
        ("help", "--help"),
        ("help run", "run --help"),
        ("help run oltp_read_only", "run oltp_read_only --help"),
        ("help compare", "compare --help"),
    ] {
        let shown = folder.expect(asked, 0).stdout;
        assert_eq!(shown, folder.expect(same, 0).stdout);
        assert!(shown.contains("Usage: assay"), "{shown}");
    }
}

#[test]
fn an_unknown_command_of_a_workload_is_refused_with_those_it_has() {
    assert_snapshot!(told("exec ./one_table.lua greed --db sqlite:a.db"), @r"
    exit 2
    --- stderr
    error: workload ./one_table.lua has no command greed

    hint: its commands are: check, cleanup, greet, prepare, refuse, run
    ");
}

#[test]
fn an_unknown_scheme_is_refused_with_those_there_are() {
    assert_snapshot!(told("run oltp_read_write --db postgre://app:secret@host/db"), @r"
    exit 2
    --- stderr
    error: unknown database product postgre in --db postgre://app:***@host/db
      known: postgres:, postgresql:, mysql:, mariadb:, clickhouse:, clickhouse+http:, clickhouse+https:, sqlite:, duckdb:, mongodb:, mongodb+srv:

    hint: did you mean postgres:?
    ");
    assert_snapshot!(told("run oltp_read_write --db oracle://host"), @r"
    exit 2
    --- stderr
    error: unknown database product oracle in --db oracle://host
      known: postgres:, postgresql:, mysql:, mariadb:, clickhouse:, clickhouse+http:, clickhouse+https:, sqlite:, duckdb:, mongodb:, mongodb+srv:
    ");
    assert_snapshot!(told("run oltp_read_write --db bench.db"), @r"
    exit 2
    --- stderr
    error: bench.db is neither a URL of a database nor the name of one
      known: postgres:, postgresql:, mysql:, mariadb:, clickhouse:, clickhouse+http:, clickhouse+https:, sqlite:, duckdb:, mongodb:, mongodb+srv:

    hint: use sqlite:FILE, postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE, clickhouse://USER@HOST/DATABASE, duckdb:FILE, mongodb://USER@HOST/DATABASE
    hint: `assay db list` shows the names
    ");
}

#[test]
fn bad_durations_and_counts_are_refused_with_an_example() {
    assert_snapshot!(told("run oltp_read_write --time soon"), @r"
    exit 2
    --- stderr
    error: --time soon: expected a duration, such as 500ms, 30s, 10m or 1h30m
    ");
    assert_snapshot!(told("run oltp_read_write --sessions 1,two"), @r"
    exit 2
    --- stderr
    error: --sessions 1,two: expected a whole number, such as 250, 10k or 1M
    ");
    assert_snapshot!(told("run oltp_read_write --sessions 0"), @r"
    exit 2
    --- stderr
    error: --sessions 0: must be at least 1
    ");
    assert_snapshot!(told("run oltp_read_write --interval 10ms"), @r"
    exit 2
    --- stderr
    error: --interval 10ms: must be at least 100ms
    ");
    assert_snapshot!(told("run oltp_read_write --rate -5"), @r"
    exit 2
    --- stderr
    error: --rate -5: must be above 0
    ");
    assert_snapshot!(told("run oltp_read_write --rand-type zipf"), @r"
    exit 2
    --- stderr
    error: --rand-type zipf: expected one of uniform, gaussian, special, pareto, zipfian

    hint: did you mean zipfian?
    ");
}

#[test]
fn options_that_exclude_or_need_each_other_say_so() {
    assert_snapshot!(told("run oltp_read_write --record a.json --no-record"), @r"
    exit 2
    --- stderr
    error: --record and --no-record cannot be used together
    ");
    assert_snapshot!(told("run oltp_read_write --backlog-max 10"), @r"
    exit 2
    --- stderr
    error: --rate is missing

    hint: --arrival and --backlog-max need an open loop, such as --rate 1000
    ");
    assert_snapshot!(told("run oltp_read_write --sessions auto --rate 5"), @r"
    exit 2
    --- stderr
    error: --sessions auto needs a closed loop

    hint: to find the highest rate with a fixed number of sessions: `--find-rate 'p99 < 10ms' --sessions 64`
    ");
    assert_snapshot!(told("run oltp_read_write --find-rate 'p99 < 10ms' --sessions 1,2"), @r"
    exit 2
    --- stderr
    error: --find-rate needs one number of sessions
    ");
    assert_snapshot!(told("run oltp_read_write --find-rate 'p99 < 10'"), @r"
    exit 2
    --- stderr
    error: --find-rate p99 < 10: expected 'p99 < 10ms', 'max < 1s', 'errors < 0.1%', or the same of a transaction type: 'new_order.p95 < 50ms'
    ");
}

#[test]
fn databases_of_different_kinds_are_refused() {
    assert_snapshot!(told("run oltp_read_write --db sqlite:a.db --db postgres://app@127.0.0.1:1/db"), @r"
    exit 2
    --- stderr
    error: the databases are of different kinds: sqlite, pgsql

    hint: SQL differs between database products: do one run per product
    ");
}

#[test]
fn a_command_without_a_database_says_what_it_needs() {
    let unknown = told("exec oltp_read_write nope");
    assert!(unknown.contains("error: workload oltp_read_write has no command nope\n"), "{unknown}");
    assert_snapshot!(told("prepare oltp_read_write"), @r"
    exit 2
    --- stderr
    error: prepare needs a database: --db URL

    hint: use --db sqlite:FILE, --db postgres://USER@HOST/DATABASE, --db mysql://USER@HOST/DATABASE, --db clickhouse://USER@HOST/DATABASE, --db duckdb:FILE, --db mongodb://USER@HOST/DATABASE
    ");
}

#[test]
fn a_syntax_error_shows_file_and_line() {
    let folder = Folder::new();
    folder.write("broken.lua", "--- Broken.\nfunction event()\n  local x = = 1\nend\n");
    assert_snapshot!(folder.run("run ./broken.lua").shown(), @r"
    exit 3
    --- stderr
    error: workload ./broken.lua cannot be loaded
      ./broken.lua:3: unexpected symbol near '='
    ");
}

#[test]
fn a_runtime_error_shows_place_function_and_traceback() {
    let folder = Folder::new();
    folder.write(
        "fails.lua",
        "--- Fails.\nlocal function inner()\n  return nothing.field\nend\nfunction event()\n  inner()\nend\n",
    );
    assert_snapshot!(folder.run("run ./fails.lua --no-record").complaint(), @r"
    exit 3
    --- stderr
    no --db: using an embedded SQLite database in [FOLDER]/assay-[NAME], removed at the end
    error: workload ./fails.lua failed
      ./fails.lua:3: attempt to index global 'nothing' (a nil value)
      ./fails.lua:3: in function 'inner'
      ./fails.lua:6: in function 'event'
    ");
}

#[test]
fn limits_of_this_machine_are_told_before_the_first_connect() {
    // No range of ports is this wide.
    let said = told("run ./one_table.lua --db mysql://127.0.0.1:1/app --sessions 70000 --no-record");
    let said = |what: &str| said.contains(what);
    assert!(said("exit 5") && said("error: 70000 connections to 127.0.0.1:1 need as many local ports"));
    assert!(said("net.ipv4.ip_local_port_range=\"1024 65535\""));

    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let plain =
        folder.command("run ./one_table.lua --db mysql://127.0.0.1:1/app --sessions 200 --workers 2 --no-record");
    let mut limited = std::process::Command::new("prlimit");
    limited.arg("--nofile=100:150").arg(plain.get_program()).args(plain.get_args()).current_dir(folder.path());
    let output = limited.output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r"
    error: 200 sessions need 264 open files, and this process may have 150 (ulimit -n)

    hint: raise the hard limit (`ulimit -Hn`, LimitNOFILE= of a service, limits.conf), or lower `--sessions`
    ");
}

#[test]
fn a_sqlite_file_in_a_missing_folder_says_so() {
    assert_snapshot!(told("run ./one_table.lua --db sqlite:absent/a.db --no-record"), @r"
    exit 4
    --- stderr
    error: cannot open sqlite:absent/a.db?journal_mode=wal&synchronous=normal
      unable to open database file: ./absent/a.db (14)

    hint: check that the folder of absent/a.db exists and is writable, and that the limit of open files (ulimit -n) allows three for each session
    ");
}

#[test]
fn missing_tables_come_with_the_exact_command_that_makes_them() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let line = "run ./one_table.lua --db 'sqlite:a b.db' --table_size=1k --loud --no-record";
    assert_snapshot!(folder.run(line).complaint(), @r"
    exit 4
    --- stderr
    error: workload ./one_table.lua failed in `one_table`
      sqlite:a%20b.db?journal_mode=wal&synchronous=normal: no such table: counter (1, missing)
      ./one_table.lua:36: SQL error, errno = 1, state = '': no such table: counter
      ./one_table.lua:36: in function 'event'

    hint: are the tables prepared? assay prepare ./one_table.lua --db 'sqlite:a b.db' --loud=on --table-size=1000
    hint: or add `--prepare` to prepare the tables before the run
    ");
    // Where in a built-in workload that was first noticed is of no use.
    assert_snapshot!(folder.run("run oltp_read_only --db sqlite:c.db --no-record").complaint(), @r"
    exit 4
    --- stderr
    error: workload oltp_read_only failed in `run`
      sqlite:c.db?journal_mode=wal&synchronous=normal: no such table: sbtest1 (1, missing)

    hint: are the tables prepared? assay prepare oltp_read_only --db sqlite:c.db
    hint: or add `--prepare` to prepare the tables before the run
    ");
}

#[test]
fn a_record_that_cannot_be_written_is_found_before_the_run() {
    assert_snapshot!(told("run ./one_table.lua --db sqlite:a.db --record absent/r.json.zst"), @r"
    exit 5
    --- stderr
    error: cannot write record absent/r.json.zst: there is no folder absent

    hint: choose a writable path with `--record PATH`, or use `--no-record`
    ");
}

#[test]
fn slips_are_refused_with_their_cause_and_what_to_do() {
    let cases = [
        "run tpcc --time -5s",
        "run oltp_read_write --ignore-errors foo",
        "run oltp_read_write --connections 5",
        "run",
        "compare",
        "run tpcc --table-size 5",
        "run oltp_read_write --warehouses=5",
        "run oltp_read_write --tables 0 --no-record --quiet",
        "prepare oltp_read_write --table-size -5 --db sqlite:a.db",
        "run tpcc --rand-type zipfian --no-record --quiet",
        "duel oltp_read_write --tables 2",
        "show .",
    ];
    let told: Vec<String> = cases.iter().map(|line| format!("$ assay {line}\n{}\n", told(line))).collect();
    assert_snapshot!(told.join("\n"), @r"
    $ assay run tpcc --time -5s
    exit 2
    --- stderr
    error: --time -5s: must not be negative


    $ assay run oltp_read_write --ignore-errors foo
    exit 2
    --- stderr
    error: --ignore-errors foo: expected an error number such as 1213, an SQLSTATE such as 40001, or all


    $ assay run oltp_read_write --connections 5
    exit 2
    --- stderr
    error: --connections and --think-scale need --terminals

    hint: terminals share connections; without them, `--sessions N` opens N connections


    $ assay run
    exit 2
    --- stderr
    error: no workload given

    hint: `assay list` shows the built-in workloads; try `assay run oltp_read_write`


    $ assay compare
    exit 2
    --- stderr
    error: no record given

    hint: runs write their records to assay-records/, or to the path given with `--record`


    $ assay run tpcc --table-size 5
    exit 2
    --- stderr
    error: workload tpcc has no option --table-size
      it is an option of oltp_delete, oltp_insert, oltp_microbenchmark and others

    hint: `assay run tpcc --help` lists the options of tpcc


    $ assay run oltp_read_write --warehouses=5
    exit 2
    --- stderr
    error: workload oltp_read_write has no option --warehouses
      it is an option of tpcc

    hint: `assay run oltp_read_write --help` lists the options of oltp_read_write


    $ assay run oltp_read_write --tables 0 --no-record --quiet
    exit 2
    --- stderr
    error: --tables 0: must be at least 1


    $ assay prepare oltp_read_write --table-size -5 --db sqlite:a.db
    exit 2
    --- stderr
    error: --table-size -5: must be at least 0


    $ assay run tpcc --rand-type zipfian --no-record --quiet
    exit 2
    --- stderr
    error: --rand-type zipfian has no effect on tpcc

    hint: leave it out: the workload itself determines which rows it accesses


    $ assay duel oltp_read_write --tables 2
    exit 2
    --- stderr
    error: unexpected argument `2`

    hint: each side is one argument, in quotes; `--common` has what both share


    $ assay show .
    exit 5
    --- stderr
    error: cannot read record .
      Is a directory (os error 21)

    hint: `assay lab show FOLDER` shows an experiment, `assay library FOLDER` finds records
    ");
}

#[test]
fn the_help_of_io_names_the_number_of_sessions_that_the_code_knows() {
    let help = told("run oltp_read_write --help").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains(&format!("at least {} sessions", assay_io::SESSIONS_FOR_URING)), "{help}");
}
