//! What the program reports about itself.

use crate::common::{Folder, ONE_TABLE, words};
use insta::assert_snapshot;

#[test]
fn without_a_command_the_help_is_shown() {
    assert_snapshot!(Folder::new().run("").shown(), @"
    exit 2
    --- stderr
    Database performance lab: runs workloads, measures them and compares the results

    Usage: assay <COMMAND>

    Measure:
      run          Run a workload and report what was measured
      top          Watch a run, a server or a record on the terminal
      note         Note what happens now in the record of a run in progress
      prepare      Create and fill a workload's tables
      check        Verify a workload's tables and their contents
      cleanup      Drop a workload's tables
      exec         Run another command of a workload
      list         List the built-in workloads, or the metrics of reports and recipes
      sql          Time statements against each other, and compare their rows and plans
      olap         Time the queries of an analytical workload on one or more databases
      io           Measure file I/O with the access pattern of a database engine
    Compare:
      show         Print the report of a record
      compare      Compare the records of two or more settings
      explain      Explain why two results differ
      duel         Run two settings alternately and compare them
      bisect       Find the version, commit or value from which a figure is worse
      report       Write an HTML page, tables, charts or time series from records
      tag          Add tags such as disk=nvme to records
    Many records:
      library      Find records: an index over all records below a folder
      history      Show a figure over time, versions or commits, and when it changed
      serve        Serve pages over all records below a folder, while it grows
    Servers and machines:
      db           Give databases names, and test whether they are ready for a run
      server       Start and manage database servers to test
      agent        Generate load for runs that are started on other machines with --fleet
      fleet        Inspect, check and set up the agents of a fleet
    Experiments:
      lab          Run experiments: vary settings, repeat the trials in random order, compare the results
    Write your own:
      new          Write a workload or a recipe to start from
      lua          Describe the Lua API to an editor
      schema       Print the JSON Schema of recipes, records or results
    Compatibility:
      sysbench     Run sysbench's command lines and scripts, with its reports
      pgbench      Run pgbench's command lines and scripts, with its reports and log files
    Shell:
      completions  Print shell completions; for bash: source <(assay completions bash)
      manual       Write the manual pages into a folder

    Options:
      -h, --help     Print help
      -V, --version  Print version

    A workload's own options: assay run WORKLOAD --help. Exit codes: 0 success, 1 a check, an audit or a
    --fail-if condition failed, 2 wrong usage, 3 error in the workload, 4 server error, 5 error on this
    machine, 6 a fleet's agents missing or lost, 70 bug in assay, 130 interrupted (Ctrl-C), 143
    terminated (SIGTERM).
    error: no command given

    hint: try `assay run oltp_read_write`
    ");
}

#[test]
fn the_built_in_workloads_are_listed() {
    let listed = Folder::new().run("list").stdout;
    let names: Vec<&str> = listed.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_snapshot!(names.join("\n"), @r"
    bulk_insert
    connects
    flights
    insert_benchmark
    isolation
    oltp_delete
    oltp_insert
    oltp_microbenchmark
    oltp_point_select
    oltp_read_only
    oltp_read_write
    oltp_update_index
    oltp_update_non_index
    oltp_write_only
    read_after_write
    select_random_points
    select_random_ranges
    tpcb
    tpcb_select_only
    tpcb_simple_update
    tpcc
    tpch_like
    ycsb

    Examples, made to be copied and changed (commands: check, cleanup, prepare, run):

    bulk_upsert
    documents
    foreign_keys
    full_text
    hot_counters
    large_values
    pagination
    procedures
    pubsub
    queue
    soft_deletes
    time_series

    Commands, unless listed: check, cleanup, prepare, prewarm, run, warmup.
    A workload's options: assay run NAME --help.
    ");
    let (_, entry) = listed.split_once("oltp_point_select\n").unwrap();
    assert_eq!(entry.lines().next().unwrap().trim(), "One select by primary key, without a transaction around it.");
    let (_, entry) = listed.split_once("connects\n").unwrap();
    assert_eq!(entry.lines().nth(1).unwrap().trim(), "commands: run");
}

/// On SQLite and for a moment; what needs other programs, or a server, is only parsed.
#[test]
fn the_examples_of_every_help_work() {
    const SMALLER: [(&str, &str); 7] = [
        ("postgres://app@localhost/bench", "sqlite:bench.db"),
        ("--warehouses 10", "--warehouses 1 --customers 20 --items 100"),
        ("--time 5m", "--time 200ms"),
        ("--time 10s", "--transactions 20"),
        ("--sessions 1,2,4,8,16", "--sessions 1,2 --transactions 20"),
        ("'new_order.p95 < 50ms'", "'new_order.p95 < 50ms' --time 200ms"),
        ("--size 8G --direct", "--size 1M --time 100ms"),
    ];
    const PARSED: [&str; 14] = [
        "bisect",
        "serve --listen",
        "exec",
        // Its name is gone by then, and the server is not there.
        "db test",
        "server start",
        "server stop",
        "lab run",
        "lab show",
        "top",
        "note",
        "agent",
        "fleet",
        // A search takes as many stages as it needs.
        "run tpcc --db postgres://app@localhost/bench --find-rate",
        "run --again",
    ];
    let folder = Folder::new();
    for (record, seed) in [("a", 1), ("b", 2)] {
        let run = "run oltp_read_write --tables 1 --table-size 100 --transactions 50 --quiet";
        folder.expect(&format!("{run} --seed {seed} --record {record}.json.zst"), 0);
    }
    let tables = "--db sqlite:bench.db --table-size 100 --quiet --no-record";
    folder.expect(&format!("prepare oltp_read_only {tables} --tables 1"), 0);
    folder.expect("prepare flights --db sqlite:bench.db --flights 500 --quiet --no-record", 0);
    for (_, examples) in assay::command_line::help::EXAMPLES {
        for (example, _) in *examples {
            let line = example.strip_prefix("assay ").unwrap();
            if PARSED.iter().any(|head| line.starts_with(head)) {
                let line = line.replace("a.json.zst", folder.path().join("a.json.zst").to_str().unwrap());
                let words = ["assay".to_owned()].into_iter().chain(words(&line)).map(Into::into);
                assert!(assay::command_line::read(words).is_ok_and(|read| read.is_some()), "{example}");
                continue;
            }
            if line.starts_with("prepare ") {
                folder.expect("cleanup tpcc --db sqlite:bench.db --quiet", 0);
            }
            let line = SMALLER.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from, to));
            folder.expect(&line, 0);
        }
    }
}

#[test]
fn a_file_with_the_name_of_a_built_in_workload_runs_by_its_path_only() {
    let folder = Folder::new();
    folder.write("tpcc.lua", "sysbench.cmdline.commands = { go = { function() print('mine') end } }");
    let ran = folder.expect("exec tpcc go --db sqlite:my.db", 2);
    let note = "tpcc is the built-in workload here; to run the file of this folder, write ./tpcc.lua\n";
    assert!(ran.stderr.starts_with(note) && !ran.stderr.contains("mine"), "{}", ran.shown());
    let ran = folder.expect("exec ./tpcc.lua go --db sqlite:my.db", 0);
    assert_eq!(ran.stderr, "mine\n");
}

#[test]
fn help_lists_the_fixed_options_and_those_of_the_workload() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    assert_snapshot!(folder.run("run ./one_table.lua --help").shown(), @"
    exit 0
    --- stdout
    Run a workload and report what was measured

    Usage: assay run [OPTIONS] [WORKLOAD]

    Arguments:
      [WORKLOAD]  Built-in workload (see `assay list`) or Lua file

    Options:
          --again <RECORD>   Repeat the run of a record, with its seed; options given here override
                             those of the record
          --workload <PATH>  Where the script of the record is now, if it has moved
          --spec <FILE|->    Run what a file says, as printed by --print-spec; - is stdin; options given
                             here override it
          --trust            Execute what the file of --again or --spec asks for, such as shell
                             commands; without this, it is shown and refused
          --print-spec       Print what would be run, as JSON without passwords, and exit
      -h, --help             Print help

    Load:
          --sessions <N,…|auto>         Number of concurrent sessions; a list such as 1,2,4 runs one
                                        step after another (a ladder); auto[:MAX] finds the number
                                        beyond which throughput stops growing, up to MAX or 64 [default:
                                        1; 64 with --find-rate]
          --terminals <N[/OPTION]>      Users at terminals that share connections: N, or N per unit of a
                                        workload option, such as 10/warehouse
          --connections <N>             Connections shared by the terminals [default: 64]
          --think-scale <X>             Multiplier for the terminals' keying and think times [default:
                                        1]
          --time <DURATION>             Duration of the measured part of each step, such as 30s or 10m;
                                        0: no limit [default: 10s; no limit with --transactions]
          --transactions <N>            End each step after this many transactions
          --warmup <DURATION>           Warm-up before the measured part of each step [default: 0s]
          --rate <N|TIME:N,…>           Open loop: transactions due per second, however slow the server
                                        is; a number, or rates at points in time with linear ramps
                                        between them, such as 0:100,60s:2000,120s:500 [default: closed
                                        loop]
          --rate-file <FILE>            Open loop: file with the due time of each transaction, in
                                        seconds since the start, one per line, ascending
          --find-rate <PROMISE>         Find the highest rate that keeps a promise such as 'p99 < 10ms',
                                        'errors < 0.1%' or 'new_order.p95 < 50ms'; each stage of the
                                        search lasts --time; may be repeated
          --arrival <constant|poisson>  Spacing of due times [default: constant]
          --backlog-max <N>             Drop transactions that become due while this many are waiting;
                                        dropped transactions are counted [default: no limit]
          --grace <DURATION>            Time for transactions in flight to finish at the end of a step
                                        [default: 10s]
          --trials <N>                  Number of trials, each with its own record and seed [default: 1]
          --prepare                     Prepare the workload's tables first if they are missing
          --check                       Check the workload's tables before and after the run; exit with
                                        status 1 if a check or the audit fails
          --kill-check <CMD>            Shell command that crashes and restarts the server in the middle
                                        of the run; afterwards assay looks for every acknowledged commit
                                        and exits with status 1 if any is lost

    Database:
          --db <URL>                    Database to use: postgres://…, mysql://…, mariadb://…,
                                        mongodb://…, duckdb:FILE, sqlite:FILE, or a name (see `assay
                                        db`); may be repeated: sessions are spread evenly [default:
                                        ASSAY_DB]
          --prepared <on|off>           Use protocol-level prepared statements; off for connection
                                        poolers that do not support them [default: on]
          --session-sql <SQL>           Statement to run on every new connection; may be repeated
          --connect-rate <N>            Connections opened per second [default: unlimited]
          --connect-pending <N>         Maximum number of connections being opened at the same time
                                        [default: 64]
          --network-timeout <DURATION>  Treat a connection as lost if the server's host acknowledges
                                        nothing for this long (2s to 9h; 0: no limit); slow statements
                                        do not trigger it [default: 30s]

    Server:
          --server <PRODUCT:VERSION>  Start a server for this run and remove it afterwards, such as
                                      postgres:17 or mysql:8.0; with --prepare, the loaded data is kept
                                      as an image for the next run
          --binaries <PATH>           Folder or archive with the server's binaries, such as those of a
                                      build, or container:IMAGE [default: found as `assay server
                                      sources` shows]
          --set <NAME=VALUE>          Server setting, named as in its configuration file; may be
                                      repeated
          --server-config <FILE>      Configuration file for the server; --set overrides it
          --server-cpus <CPUS>        CPUs for the server, such as 0-3,8, socket:0 or core:0-3; add
                                      ,no-smt to use one thread per core
          --server-memory <BYTES>     Memory limit of the server, including its page cache
          --front <NAME>              Put a pooler or proxy in front of the server: pgbouncer or
                                      haproxy; may be repeated
          --front-set <NAME=VALUE>    Setting of the last --front, named as in its configuration file;
                                      may be repeated

    Errors:
          --retries <N>                 Number of retries of a transaction after a deadlock,
                                        serialization failure or lost connection [default: 10]
          --ignore-errors <CODE,…|all>  Error codes that fail the transaction but not the run, such as
                                        1213 or 40001, or all; errors that can be retried are retried
                                        first
          --on-error <stop|continue>    What to do on any other error [default: stop]
          --reconnect-time <DURATION>   How long to try to reconnect after losing a connection [default:
                                        60s]

    Output:
          --format <text|json|csv>         Output format of the result on stdout [default: text]
          --interval <DURATION>            Length of a reporting interval, at least 100ms [default: 1s]
          --record <PATH>                  Path of the record [default:
                                           assay-records/WORKLOAD-TIME.json.zst]
          --force                          Replace an existing record
          --no-record                      Write no record
          --telemetry <off|on|full>        Sample server statistics, and the machine of a local server,
                                           once per second; `full` shows all of them, switches on
                                           INNODB_METRICS that are off, and counts processor events
                                           [default: on]
          --host-metrics <URL[#DEVICE]>    Node exporter on the server's machine, such as
                                           http://db1:9100#nvme0n1 (the drive under its data directory);
                                           repeat for each server
          --pooler <URL>                   Admin console of the PgBouncer in front of the server, such
                                           as postgres://stats@HOST:6432/pgbouncer; repeat for each
                                           server
          --tag <KEY=VALUE>                Label for this run, such as disk=nvme; kept in the record,
                                           shown, and used for grouping; may be repeated
          --serve[=<ADDRESS:PORT>]         Serve the page of the report while it grows, for this machine
                                           or at an address, where its URL has a random token
          --top                            Show the run on the whole terminal, like `assay top`, instead
                                           of lines
          --journal <FILE>                 CSV file with one line per transaction that the workload logs
                                           (tpcc: queued deliveries)
          --history <FILE>                 File with the history of a workload that checks isolation, in
                                           the form that Elle reads (EDN)
          --metrics-listen <ADDRESS:PORT>  Serve live metrics for Prometheus at http://ADDRESS/metrics
                                           during the run
      -v, --verbose                        Show all options in effect, zero values, and details of the
                                           load generator
          --quiet                          Print only errors and warnings on stderr

    Generator:
          --seed <N>               Random seed; with the same seed, each session sends the same
                                   statements [default: random, shown in the report]
          --workers <N>            Threads that drive the sessions [default: one per CPU]
          --cpus <CPUS>            CPUs for the load generator, such as 0-3,8, socket:0 or core:0-3; add
                                   ,no-smt to use one thread per core [default: all]
          --io <auto|epoll|uring>  Event loop; auto: io_uring if the kernel allows it and each worker
                                   has at least 8 sessions, otherwise epoll [default: auto, or ASSAY_IO]
          --batch <N>              Replies handled between two system calls: a larger batch saves CPU
                                   but raises the median latency [default: 32 with io_uring, 64 with
                                   epoll]
          --poll <DURATION>        How long a worker looks for replies before it sleeps, such as 50us:
                                   latencies without the time that a CPU takes to wake up, for a load
                                   generator with CPUs of its own [default: 0s]

    Distribution of rows:
          --rand-type <NAME>      Distribution of the rows that statements access [default: uniform]
                                  [possible values: uniform, gaussian, special, pareto, zipfian]
          --rand-spec-iter <N>    gaussian, special: number of uniform values averaged [default: 12]
          --rand-spec-pct <N>     special: size of the hot center, in percent of the rows [default: 1]
          --rand-spec-res <N>     special: percentage of accesses that go to the hot center [default:
                                  75]
          --rand-pareto-h <X>     pareto: parameter h [default: 0.2]
          --rand-zipfian-exp <X>  zipfian: exponent [default: 0.8]

    Fleet:
          --fleet <URL>         Divide the work between agents on other machines, which are connected to
                                this NATS server (see `assay agent`)
          --agents <N>          Number of agents [default: all that are free]
          --fleet-creds <FILE>  NATS credentials file
          --fleet-ca <FILE>     Certificate authorities of the NATS server, as a PEM file [default:
                                those of the system]
          --db-from-agent-env   Let each agent connect to the database that its environment variable
                                ASSAY_DB names; --db is used only here
          --lease <DURATION>    How long agents run on without the coordinator, and how long it waits
                                for a silent agent [default: 15s]

    Options of ./one_table.lua:
          --greeting <TEXT>  What to say [default: hello]
          --loud[=<on|off>]  Say it loud [default: off]
          --table-size <N>   Rows in the table [default: 10]

    Examples:
      assay run oltp_read_write
          on SQLite: nothing to install
      assay run tpcc --db postgres://app@localhost/bench --prepare --warehouses 10 --time 5m
          load if needed
      assay run oltp_read_only --db postgres://app@localhost/bench --sessions 1,2,4,8,16
          a ladder
      assay run tpcc --db postgres://app@localhost/bench --find-rate 'new_order.p95 < 50ms'
          the capacity
      assay run --again a.json.zst --sessions 32
          repeat a run with one difference
    ");
}

#[test]
fn a_command_has_the_options_of_the_workload_too() {
    let help = Folder::new().run("prepare oltp_read_write --help").stdout;
    let (_, own) = help.split_once("Options of oltp_read_write:\n").unwrap();
    let names: Vec<&str> = own.split_whitespace().filter(|word| word.starts_with("--")).collect();
    assert_snapshot!(names.join(" "), @"--auto-inc[=<on|off>] --create-secondary[=<on|off>] --create-table-options --delete-inserts --distinct-ranges --index-updates --mysql-storage-engine --non-index-updates --order-ranges --pgsql-variant --point-selects --range-selects[=<on|off>] --range-size --reconnect --replace[=<on|off>] --secondary[=<on|off>] --simple-ranges --skip-trx[=<on|off>] --sum-ranges --table-size --tables --db --warehouses");
    assert!(own.contains("Number of rows per table [default: 10000]"), "{own}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = folder.command("list").stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

/// Scripts for shells, with the file of the completions as `$1`: each prints what completes a command, an option and a
/// value. For zsh, which completes only at a prompt, it must be registered, and a stand-in shows what it gets.
const SHELLS: [(&str, &[&str], &str, &str); 3] = [
    (
        "bash",
        &["--norc"],
        r#"
source "$1"
# As bash calls it: the line up to the cursor, and its end that is replaced.
complete_at() { COMP_LINE=$1; COMP_POINT=${#1}; _assay assay "$2" x; echo ${COMPREPLY[@]}; }
complete_at 'assay compl' compl
complete_at 'assay run --sess' --sess
complete_at 'assay run --format ' ''
complete_at 'assay run oltp_read_' oltp_read_
complete_at 'assay run oltp_read_only --point' --point
complete_at 'assay lab run best' best
complete_at 'assay run tpcc --db pr' pr
complete_at 'assay run tpcc --db=pr' pr
complete_at 'assay server start postgres:17' 17
complete_at 'assay show ru' ru
complete_at 'assay run "tp' tp
"#,
        "completions\n--sessions --session-sql\ntext json csv\noltp_read_only oltp_read_write\n--point-selects\n\
         best-settings\nprod\nprod\n17.11\nrun.json.zst runs/\n\n",
    ),
    (
        "fish",
        &["--no-config"],
        r#"
source $argv[1]
for words in 'assay compl' 'assay run --sess' 'assay run --format ' 'assay lab run best' 'assay run tpcc --db pr'
    echo (complete -C $words | string replace -r '\t.*' '')
end
"#,
        "completions\n--sessions --session-sql\ntext json csv\nbest-settings\nprod\n",
    ),
    (
        "zsh",
        &["-f"],
        r#"
autoload -Uz compinit && compinit -u -D && source "$1" && echo $_comps[assay]
_describe() { print -r -- ${(P)3} }
complete_at() { words=("$@"); CURRENT=$#; _assay }
complete_at assay run tpcc --db pr
complete_at assay server start postgres:17
complete_at assay show ru
"#,
        "_assay\nprod:postgres://app@host/bench\npostgres\\:17.11:\nrun.json.zst:\nruns/:\n",
    ),
];

#[test]
fn completions_load_in_their_shells_and_complete_commands_options_and_values() {
    for (shell, options, script, expected) in SHELLS {
        if !testkit::installed(std::path::Path::new("/usr/bin").join(shell)) {
            continue;
        }
        let folder = Folder::new();
        let completions = folder.write("completions", &folder.expect(&format!("completions {shell}"), 0).stdout);
        let script = folder.write("script", script);
        folder.expect("db add prod postgres://app@host/bench", 0);
        folder.write("run.json.zst", "");
        folder.write("run.lua", "");
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        let mut command = std::process::Command::new(shell);
        // An `assay` in PATH, as where completions are used.
        let path = std::path::Path::new(env!("CARGO_BIN_EXE_assay")).parent().unwrap().display().to_string();
        command.args(options).args([&script, &completions]).env("HOME", folder.path()).current_dir(folder.path());
        command.env_remove("XDG_CONFIG_HOME");
        let output = command.env("PATH", format!("{path}:/usr/bin:/bin")).output().unwrap();
        let [said, errors] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert_eq!((said.as_str(), errors.as_str()), (expected, ""), "{shell}");
    }
}

#[test]
fn manual_pages_know_every_command() {
    let folder = Folder::new();
    folder.expect("manual pages", 0);
    let page = |name: &str| std::fs::read_to_string(folder.path().join("pages").join(name)).unwrap();
    assert!(page("assay.1").contains("assay\\-duel(1)"), "{}", page("assay.1"));
    assert!(page("assay-run.1").contains("\\-\\-warmup"), "{}", page("assay-run.1"));
}
