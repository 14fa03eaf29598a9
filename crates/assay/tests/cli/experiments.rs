//! `assay lab`: an experiment from its recipe to its bundle, with a kill in between.

use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use testkit::{Kind, Mounted, NatsProgram, free_port};

use crate::common::{Folder, ONE_TABLE, Ran};

/// Two cells that work and one that only the server can refuse.
const RECIPE: &str = r#"title = "How much memory for sorts?"

[server.db]
product = "postgres"

[data]
prepare = "./one_table.lua"

[run]
workload = "./one_table.lua"
time = "300ms"
sessions = [1, 2]

[grid]
work_mem = { levels = { "4MB" = { "server.db.settings.work_mem" = "4MB" }, banana = { "server.db.settings.shared_preload_libraries" = "banana" }, "8MB" = { "server.db.settings.work_mem" = "8MB" } } }

[trials]
count = 2
repeats = 0

[[step]]
name = "probe"
when = "before-measure"
sql = "SELECT pg_sleep(0.01)"

[[step]]
name = "note"
when = "after-measure"
command = 'echo "$ASSAY_ROUND $ASSAY_LEVEL_WORK_MEM" >> steps.txt && test -n "$ASSAY_URL"'

[[show]]
table = { rows = "sessions", columns = "work_mem", value = "tps", ratio_to = "4MB" }
[[show]]
table = { rows = "work_mem", value = "probe" }
[[show]]
table = { rows = "work_mem", value = "server.log_bytes_per_s", last = "1s" }
"#;

fn lab() -> String {
    testkit::lab_folder().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn an_experiment_that_is_killed_goes_on_and_a_refused_setting_is_a_result() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    folder.write("sorts.toml", RECIPE);
    let lab = lab();
    let variables = [("ASSAY_LAB", lab.as_str()), ("PATH", "/usr/bin:/bin")];
    let plan = folder.expect_with(&variables, "lab plan sorts.toml", 0);
    assert!(plan.stdout.contains("3 cells in 2 rounds, seed 1, 6 trials"), "{}", plan.shown());

    let line = "lab run sorts.toml --folder sorts";
    let mut started = folder.start_with(&variables, line);
    started.wait_for("round 1 of 2");
    started.wait_for("round 1 of 2");
    started.signal(Signal::SIGKILL);
    started.finish();
    let journal = || std::fs::read_to_string(folder.path().join("sorts/journal.jsonl")).unwrap();
    let count = |event: &str| journal().matches(&format!(r#"{{"event":"{event}""#)).count();
    let before = count("done") + count("failed");
    assert!((1..=2).contains(&before), "{}", journal());
    let interrupted = count("begun") - before;

    let status = folder.expect_with(&variables, "lab status sorts", 0);
    assert!(
        status.stdout.contains(" of 6 trials measured, ") && status.stdout.contains("; it is not running\n"),
        "{}",
        status.shown()
    );
    let ran = folder.expect_with(&variables, line, 0);
    assert!(ran.stderr.contains(&format!("resuming in sorts: {before} trial")), "{}", ran.shown());
    assert_eq!((count("done"), count("failed")), (4, 2), "{}", journal());
    for part in [
        "4 of 6 trials · seed 1 · experiment ",
        "8MB / 4MB",
        "failed: work_mem=banana, rounds 1, 2\n",
        "\nserver.log_bytes_per_s",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.shown());
    }
    assert!(ran.stdout.contains("could not access file \"banana\""), "{}", ran.shown());
    let mut notes: Vec<String> =
        std::fs::read_to_string(folder.path().join("steps.txt")).unwrap().lines().map(str::to_owned).collect();
    notes.sort();
    notes.dedup();
    assert_eq!(notes, ["1 4MB", "1 8MB", "2 4MB", "2 8MB"]);

    // Complete: nothing is run again, and the results are shown again.
    let again = folder.expect_with(&variables, line, 0);
    assert_eq!(again.stdout, ran.stdout);
    assert_eq!(count("begun"), 6 + interrupted, "{}", journal());
    let shown =
        folder.expect_with(&variables, "lab show sorts --csv trials.csv --html page.html --markdown tables.md", 0);
    assert_eq!(shown.stdout, ran.stdout);
    let csv = std::fs::read_to_string(folder.path().join("trials.csv")).unwrap();
    assert!(csv.starts_with("work_mem,round,sessions,tps,") && csv.lines().count() == 9, "{csv}");
    let markdown = std::fs::read_to_string(folder.path().join("tables.md")).unwrap();
    for part in ["| sessions |", "4 of 6 trials", "\nFailed: work_mem=banana, rounds 1, 2: "] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    for part in ["How much memory for sorts?", "4 of 6 trials", "Failed: work_mem=banana, rounds 1, 2: "] {
        assert!(page.contains(part), "{part}");
    }
    let record = assay_record::Record::read(&folder.path().join("sorts/records/round2-cell3-1.json.zst")).unwrap();
    let server = record.environment.started.unwrap();
    assert!(server.identity.iter().any(|one| one.name == "work_mem" && one.asked.as_deref() == Some("8MB")));
    folder.expect_with(&variables, "lab bundle sorts --output sorts.tar.gz", 0);
    let unpacked = folder.expect_with(&variables, "lab show sorts.tar.gz", 0);
    assert_eq!(unpacked.stdout, ran.stdout);
    // The same from two machines, which a tag tells apart.
    let copied = std::process::Command::new("cp").args(["-r", "sorts", "other"]).current_dir(folder.path()).status();
    assert!(copied.unwrap().success());
    for (name, kernel) in [("sorts", "6.1"), ("other", "6.18")] {
        let record = format!("{name}/records/round1-cell1-1.json.zst");
        folder.expect_with(&variables, &format!("tag {record} kernel={kernel}"), 0);
    }
    let merged = folder.expect_with(&variables, "lab show sorts other --html merged.html --csv merged.csv", 0);
    for part in ["8 of 12 trials", "kernel 6.1  ", "6.18 / 6.1", "Nothing else that is recorded differs"] {
        assert!(merged.stdout.contains(part), "{part}: {}", merged.shown());
    }
    let csv = std::fs::read_to_string(folder.path().join("merged.csv")).unwrap();
    assert!(csv.starts_with("work_mem,kernel,round,sessions,tps,") && csv.lines().count() == 17, "{csv}");
    // Another duration is another experiment, and the folder is in use.
    let other = folder.expect_with(&variables, &format!("{line} --set run.time=1s"), 2);
    assert!(other.stderr.contains("  run.time: 300ms -> 1s\n"), "{}", other.shown());
}

/// The server is killed in the trial after somebody has created the file `kill`.
const KILLED: &str = r#"title = "Does a killed server cost more than its trial?"

[server.db]
product = "postgres"

[run]
workload = "./events.lua"
sessions = 1
time = "300ms"

[grid]
work_mem = { "server.db.settings.work_mem" = ["4MB", "8MB"] }

[trials]
count = 3
repeats = 0

[[step]]
name = "kill"
when = "during-measure"
after = "0s"
command = 'test ! -e kill || { rm kill && kill -9 "$ASSAY_PID"; }'

[[show]]
table = { rows = "work_mem", value = "tps" }
"#;

#[test]
fn a_server_that_is_killed_costs_its_trial_and_no_other_one() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    folder.write("events.lua", EVENTS);
    folder.write("killed.toml", KILLED);
    let lab = lab();
    let variables = [("ASSAY_LAB", lab.as_str()), ("PATH", "/usr/bin:/bin")];
    for again in ["", " --again-failed"] {
        folder.write("kill", "");
        let ran = folder.expect_with(&variables, &format!("lab run killed.toml --folder killed{again}"), 0);
        // The other rounds of its cell are measured, and shown.
        for part in ["5 of 6 trials", "  (1 failed)\n", ", round 1\n", "\n  the server died: "] {
            assert!(ran.stdout.contains(part), "{part}: {}", ran.shown());
        }
    }
    folder.expect_with(&variables, "lab show killed --csv trials.csv", 0);
    assert_eq!(std::fs::read_to_string(folder.path().join("trials.csv")).unwrap().lines().count(), 6);
    let ran = folder.expect_with(&variables, "lab run killed.toml --folder killed --again-failed", 0);
    assert!(ran.stdout.contains("6 of 6 trials") && !ran.stdout.contains("failed"), "{}", ran.shown());
}

/// A step of several lines that fails and says why.
const FAILING: &str = r#"title = "What does a failed step say?"

[server.db]
url = "sqlite:t.db"

[run]
workload = "./events.lua"
sessions = 1
time = "100ms"

[grid]
sessions = { "run.sessions" = [1] }

[trials]
count = 1

[[step]]
name = "copy"
when = "before-measure"
command = """
folder=of-the-copy
echo "no-such-program: not found" >&2
exit 3
"""
"#;

#[test]
fn a_failed_step_says_on_the_terminal_and_in_the_results_why() {
    let folder = Folder::new();
    folder.write("events.lua", EVENTS);
    folder.write("failing.toml", FAILING);
    let ran = folder.expect("lab run failing.toml --folder failing", 4);
    let said =
        "  failed: step copy: `folder=of-the-copy …` ended with exit status: 3\n    no-such-program: not found\n";
    assert!(ran.stderr.contains(said), "{}", ran.shown());
    let shown = folder.expect("lab show failing", 0).stdout;
    assert!(shown.contains("exit status: 3") && shown.contains("no-such-program: not found"), "{shown}");
}

/// Calls the program that runs the experiment, and removes it, as an upgrade does.
const UPGRADED: &str = r#"title = "What does an upgrade under an experiment change?"

[server.db]
url = "sqlite:t.db"

[run]
workload = "./events.lua"
sessions = 1
time = "100ms"

[grid]
transactions = { "run.options.transactions" = [10, 20] }

[trials]
count = 1
repeats = 0

[[step]]
name = "upgrade"
when = "before-measure"
command = '"$ASSAY" --version && rm -f assay'
"#;

#[test]
fn an_experiment_ends_with_the_program_that_began_it() {
    let folder = Folder::new();
    folder.write("events.lua", EVENTS);
    folder.write("upgraded.toml", UPGRADED);
    std::fs::copy(env!("CARGO_BIN_EXE_assay"), folder.path().join("assay")).unwrap();
    let mut command = Command::new("./assay");
    command.args(["lab", "run", "upgraded.toml", "--folder", "upgraded"]).current_dir(folder.path());
    command.env_clear().env("HOME", folder.path()).env("PATH", "/usr/bin:/bin");
    let ran = Ran::new(&folder, command.output().unwrap());
    assert!(!folder.path().join("assay").exists());
    assert!(ran.code == Some(0) && ran.stdout.contains("2 of 2 trials"), "{}", ran.shown());
}

#[test]
fn the_experiment_that_was_worked_on_last_is_shown() {
    let folder = Folder::new();
    folder.write("events.lua", EVENTS);
    folder.write("failing.toml", FAILING);
    for (seed, again) in [(7, ""), (8, ""), (7, " --again-failed")] {
        folder.expect(&format!("lab run failing.toml --set trials.seed={seed}{again}"), 4);
        let shown = folder.expect("lab show", 0).stdout;
        assert!(shown.contains(&format!("0 of 1 trials · seed {seed} · ")), "{shown}");
    }
}

/// The first trial fills the disk under the experiment, once.
const FULL: &str = r#"title = "Does a full disk cost more than its trial?"

[server.db]
url = "sqlite:t.db"

[run]
workload = "./events.lua"
sessions = 1

[grid]
amount = { "run.options.transactions" = [10, 20] }
retries = { "run.options.retries" = [0, 1] }

[trials]
count = 2
repeats = 0

[[step]]
name = "fill"
when = "before-measure"
command = 'test ! -e fill || { rm fill && dd if=/dev/zero of=DISK/filler bs=64k || true; }'

[[show]]
table = { rows = "amount", value = "tps", ratio_to = "10" }
"#;

#[test]
fn a_full_disk_under_an_experiment_stops_it_and_loses_the_trial_under_way_only() {
    let Some(disk) = Mounted::new(&["-t", "tmpfs", "-o", "size=4M", "tmpfs"]) else { return };
    let folder = Folder::new();
    folder.write("events.lua", EVENTS);
    let disk = disk.path();
    folder.write("full.toml", &FULL.replace("DISK", disk.to_str().unwrap()));
    let line = format!("lab run full.toml --folder {}/full", disk.display());
    folder.write("fill", "");
    let ran = folder.expect(&line, 5);
    assert!(ran.stderr.contains("No space left on device"), "{}", ran.shown());
    assert!(ran.stderr.contains("hint: free some space"), "{}", ran.shown());
    // Still full: nothing is written over what there is.
    let again = folder.expect(&line, 5);
    assert!(again.stderr.contains("hint: free some space"), "{}", again.shown());
    std::fs::remove_file(disk.join("filler")).unwrap();
    let ran = folder.expect(&line, 0);
    assert!(ran.stdout.contains("8 of 8 trials") && !ran.stdout.contains("failed"), "{}", ran.shown());
    assert!(ran.stdout.contains("\nOver all levels of retries: 20 / 10: "), "{}", ran.shown());
}

/// Two sessions have at most 200 transactions per second, whatever the machine.
const NAP: &str = r#"
function prepare() end
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT pg_sleep(0.01)") end
"#;

#[test]
fn the_recipe_for_capacity_ends_with_a_capacity() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    folder.write("nap.lua", NAP);
    let lab = lab();
    let variables = [("ASSAY_LAB", lab.as_str()), ("PATH", "/usr/bin:/bin")];
    let settings = "--set trials.count=1 --set data.prepare=./nap.lua --set run.workload=./nap.lua \
                    --set run.sessions=2 --set run.warmup=0s --set run.time=500ms --set 'run.options.find_rate=max < 1m'";
    let ran = folder.expect_with(&variables, &format!("lab run capacity --scale tiny --folder c {settings}"), 0);
    for commit in ["on", "off"] {
        let row = ran.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let found = row.filter(|row| row.first() == Some(&commit)).find_map(|row| row.get(1)?.parse::<f64>().ok());
        assert!(found.is_some_and(|rate| (1.0..210.0).contains(&rate)), "{commit}: {}", ran.shown());
    }
}

/// Runs one round of a recipe in few cells; returns what it printed and its journal's line about the last trial.
fn trial_of(recipe: &str, variables: &[(&str, &str)], settings: &str) -> (String, serde_json::Value) {
    let folder = Folder::new();
    let line =
        format!("lab run {recipe} --scale tiny --folder f --set trials.count=1 --set trials.repeats=0 {settings}");
    let ran = folder.expect_with(variables, &line, 0);
    let journal = std::fs::read_to_string(folder.path().join("f/journal.jsonl")).unwrap();
    let done = journal.lines().rfind(|line| line.starts_with(r#"{"event":"done""#)).unwrap();
    (ran.shown(), serde_json::from_str(done).unwrap())
}

/// The values that steps of a trial returned.
#[track_caller]
fn value(done: &serde_json::Value, step: &str) -> f64 {
    let values = done["values"].as_array().unwrap();
    let found = values.iter().find(|value| value[0] == step).unwrap_or_else(|| panic!("{step}: {done}"));
    found[1].as_f64().unwrap()
}

#[test]
fn the_recipe_for_many_connections_starts_a_fleet_and_counts_what_limits_meet() {
    if !Kind::MariaDb.present() || !NatsProgram::present() {
        return;
    }
    let (lab, nats) = (lab(), format!("nats://127.0.0.1:{}", free_port().unwrap()));
    let variables = [("ASSAY_LAB", lab.as_str()), ("PATH", "/usr/sbin:/usr/bin:/bin"), ("NATS", nats.as_str())];
    let settings = format!(
        "--set run.options.fleet={nats} --set run.time=4s --set 'grid.connections={{\"run.sessions\"=[60]}}' \
         --set 'grid.threads.levels={{\"one each\"={{\"server.db.settings.thread_handling\"=\"one-thread-per-connection\"}}}}' \
         --set 'show=[{{table={{rows=\"connections\",value=\"p95\"}}}}]'"
    );
    let (shown, done) = trial_of("many-connections", &variables, &settings);
    assert!(value(&done, "threads") >= 60.0 && value(&done, "open files") >= 60.0, "{shown}");
}

#[test]
fn the_recipe_for_galera_has_both_nodes_write_and_sees_the_writes_of_the_other() {
    let library = "/usr/lib/galera/libgalera_smm.so";
    if !Kind::MariaDb.present() || !(Path::new(library).is_file() || testkit::absent("no Galera library (galera-4)")) {
        return;
    }
    let lab = lab();
    let variables = [("ASSAY_LAB", lab.as_str()), ("PATH", "/usr/sbin:/usr/bin:/bin")];
    let ports: Vec<u16> = (0..4).map(|_| free_port().unwrap()).collect();
    let options = |node: &str, own: u16, state: u16| {
        let options = format!("gmcast.listen_addr=tcp://127.0.0.1:{own};ist.recv_addr=127.0.0.1:{state}");
        format!("--set 'server.{node}.settings.wsrep_provider_options=\"{options}\"'")
    };
    let settings = format!(
        "{} {} --set 'server.b.settings.wsrep_cluster_address=\"gcomm://127.0.0.1:{}\"' \
         --set 'except=[{{writers=[\"one\",\"both, own schema\"]}},{{reads=\"causal\"}}]' \
         --set 'show=[{{table={{rows=\"writers\",value=\"seen at b\"}}}}]'",
        options("a", ports[0], ports[1]),
        options("b", ports[2], ports[3]),
        ports[0]
    );
    let (shown, done) = trial_of("galera", &variables, &settings);
    for step in ["write sets of a", "write sets of b", "selects at a", "selects at b"] {
        assert!(value(&done, step) > 0.0, "{step}: {shown}");
    }
}

#[test]
fn a_recipe_that_is_wrong_is_refused_with_its_place() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    folder.write("sorts.toml", &RECIPE.replace("db.settings.work_mem", "db.setings.work_mem"));
    let ran = folder.expect("lab run sorts.toml", 2);
    assert!(
        ran.stderr.contains("error: cannot use sorts.toml\n  sorts.toml:15:1: factor work_mem, level 4MB"),
        "{}",
        ran.shown()
    );
    assert!(ran.stderr.contains("hint: did you mean `settings`?"), "{}", ran.shown());
    folder.write(
        "sorts.toml",
        &RECIPE.replace("workload = \"./one_table.lua\"", "workload = \"./one_table.lua --table-siez 3\""),
    );
    let ran = folder.expect("lab plan sorts.toml", 2);
    assert!(ran.stderr.contains("error: run: there is no option --table-siez"), "{}", ran.shown());
    folder.write(
        "sorts.toml",
        &RECIPE.replace("workload = \"./one_table.lua\"", "workload = \"oltp_write_only --table 4\""),
    );
    let ran = folder.expect("lab plan sorts.toml", 2);
    assert!(ran.stderr.contains("there is no option --table\n"), "{}", ran.shown());
    assert!(ran.stderr.contains("hint: did you mean --tables?"), "{}", ran.shown());
    for (from, to, error, place) in [
        (
            "time = \"300ms\"",
            "time = \"300ms\"\noptions = { find_rate = \"p99 < 10\" }",
            "run.options.find_rate p99 < 10: expected 'p99 < 10ms'",
            "12:13: run.options.find_rate",
        ),
        (
            "time = \"300ms\"",
            "time = \"300ms\"\noptions = { retriez = 3 }",
            "run.options.retriez: there is no option retriez",
            "12:13: run.options.retriez",
        ),
        (
            "time = \"300ms\"",
            "time = \"300ms\"\noptions = { table_size = \"ten\" }",
            "run.options.table_size ten: expected a number",
            "12:13: run.options.table_size",
        ),
        ("sessions = [1, 2]", "sessions = [1, 0]", "run.sessions 1,0: must be at least 1", "12:1: run.sessions"),
        (
            "sessions = [1, 2]",
            "sessions = [1, 2]\noptions = { find_rate = \"p99 < 10ms\" }",
            "run.options.find_rate needs one number of sessions",
            "13:13: run.options.find_rate",
        ),
        (
            "[grid]",
            "[generator]\nworkers = 0\n\n[grid]",
            "generator.workers 0: must be at least 1",
            "15:1: generator.workers",
        ),
        (
            "prepare = \"./one_table.lua\"",
            "prepare = \"./one_table.lua\"\noptions = { table_size = \"ten\" }",
            "data.options.table_size ten: expected a number",
            "8:13: data.options.table_size",
        ),
        (
            "workload = \"./one_table.lua\"",
            "workload = \"./one_table.lua --seed 5\"",
            "run: --seed is set by the experiment",
            "10:1: run.workload",
        ),
    ] {
        folder.write("sorts.toml", &RECIPE.replace(from, to));
        let ran = folder.expect("lab plan sorts.toml", 2);
        assert!(ran.stderr.contains(&format!("error: {error}")), "{error}: {}", ran.shown());
        assert!(ran.stderr.contains(&format!("  sorts.toml:{place}\n")), "{place}: {}", ran.shown());
    }
    folder.write("sorts.toml", &format!("{RECIPE}[[show]]\ndots = {{ color = 'work_mem', last = '5 parsecs' }}\n"));
    let ran = folder.expect("lab run sorts.toml", 2);
    assert!(ran.stderr.contains("error: last = 5 parsecs: expected a duration"), "{}", ran.shown());
    assert!(ran.stderr.contains("  sorts.toml:37:1: show.4\n"), "{}", ran.shown());
    let priced = PRICED.replace("[run]", "[data]\nprepare = './one_table.lua'\n\n[run]");
    folder.write("priced.toml", &priced);
    let ran = folder.expect("lab plan priced.toml", 2);
    assert!(ran.stderr.contains("error: data.prepare: the server db is already running (url)"), "{}", ran.shown());
    assert!(ran.stderr.contains("  priced.toml:8:1: data.prepare\n"), "{}", ran.shown());
    let ran = folder.expect("lab plan sorts.toml --server postgres", 2);
    assert!(ran.stderr.contains("error: RECIPE and --server cannot be used together"), "{}", ran.shown());
    let ran = folder.expect("lab plan sorts.toml --vary work_mem=1MB,2MB", 2);
    assert!(ran.stderr.contains(" and --vary cannot be used together"), "{}", ran.shown());
    let ran = folder.expect("lab run tunnig", 2);
    assert!(ran.stderr.contains("hint: did you mean tuning?"), "{}", ran.shown());
    let list = folder.expect("lab list", 0);
    assert!(list.stdout.contains("\ntuning\n  How much does tuning improve TPC-C"), "{}", list.shown());
}

/// A server with two settings that vary.
const PLANNED: &str = r#"title = "t"
[server.db]
product = "postgres"
[data]
prepare = "oltp_read_only --tables 1 --table-size 1000"
[run]
workload = "oltp_read_only --tables 1 --table-size 1000"
time = "1s"
[grid]
a = { "server.db.settings.work_mem" = ["1MB", "2MB"] }
[[show]]
table = { rows = "a", value = "p99" }
"#;

#[test]
fn a_plan_that_cannot_run_here_says_why_in_its_first_line() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    let (lab, bad) = (lab(), testkit::lab_folder().unwrap().join(format!("bad-{}", std::process::id())));
    std::fs::create_dir_all(bad.join("bin")).unwrap();
    script(&bad.join("bin/postgres"), "#!/bin/sh\necho 'no memory today' >&2\nexit 2\n");
    let variables = [("ASSAY_LAB", lab.as_str()), ("PATH", "/usr/bin:/bin")];
    let server = |line: &str| PLANNED.replacen("product = \"postgres\"", &format!("product = \"postgres\"\n{line}"), 1);
    let setting = |line: &str| server(&format!("settings = {{ {line} }}"));
    let binaries = format!("binaries = \"{}\"", bad.display());
    for (recipe, first, detail) in [
        (server("memory = '4 gigs'"), "server.db.memory \"4 gigs\": expected a size", "4:1: server.db.memory"),
        (server("front.pgbuncer = {}"), "server.db.front: unknown front pgbuncer", "did you mean pgbouncer?"),
        (server("cpus = '5000'"), "server.db.cpus \"5000\": ", "4:1: server.db.cpus"),
        (server("transparent_huge_pages = 'maybe'"), "server.db.transparent_huge_pages \"maybe\": expected ", "4:1"),
        (server("front.haproxy.behind = 'replicas'"), "server.db.front: there are no replicas behind haproxy", "4:1"),
        (server("filesystem = 'nosuchfs'"), "server.db.filesystem: ", "4:1: server.db.filesystem"),
        (server(&binaries), "server.db.binaries: ", "/bin/postgres cannot run: no memory today"),
        (setting("shared_buffers = '256MX'"), "server.db.settings.shared_buffers \"256MX\": invalid value", "4:14"),
        (setting("synchronous_commit = 'of'"), "\"of\": invalid value", "Available values: "),
        (
            setting("max_connections = 0"),
            "server.db.settings.max_connections \"0\": 0 is outside the valid range",
            "4:14",
        ),
        (setting("shared_bufers = '1GB'"), "has no setting shared_bufers", "did you mean shared_buffers?"),
        (PLANNED.replace("[\"1MB\", \"2MB\"]", "[\"1MB\", \"2MX\"]"), "work_mem \"2MX\"", "1 of 2 cells: a=2MX"),
        (PLANNED.replace("postgres", "postgres:99"), "server.db.product: postgres:99 is neither installed", "3:1"),
        (
            PLANNED.replace("[run]", "settings = { wal_level = 'most' }\n[run]"),
            "data.settings.wal_level \"most\"",
            "6:",
        ),
        (
            PLANNED.replace("[run]", "[generator]\ncpus = '5000'\n[run]"),
            "generator.cpus \"5000\": ",
            "7:1: generator.cpus",
        ),
    ] {
        folder.write("q.toml", &recipe);
        let ran = folder.expect_with(&variables, "lab plan q.toml", 2);
        let said = ran.stderr.lines().next().unwrap();
        assert!(said.starts_with("error: cannot run here: ") && said.contains(first), "{first}: {}", ran.shown());
        assert!(ran.stderr.contains(detail) && ran.stdout.is_empty(), "{detail}: {}", ran.shown());
    }
    std::fs::remove_dir_all(&bad).unwrap();
    // Wrong values stop a run before its first trial, too.
    folder.write("q.toml", &server("memory = '4 gigs'"));
    folder.expect_with(&variables, "lab run q.toml --folder f", 2);
    assert!(!folder.path().join("f").exists());
}

fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn ten_thousand_cells_are_planned_without_waiting() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    let lab = lab();
    let levels =
        |from: u32, unit: &str| (from..from + 100).map(|n| format!("\"{n}{unit}\"")).collect::<Vec<_>>().join(",");
    let grid = format!(
        "a = {{ \"server.db.settings.work_mem\" = [{}] }}\nb = {{ \"server.db.settings.shared_buffers\" = [{}] }}",
        levels(1000, "kB"),
        levels(100, "MB")
    );
    let one = "a = { \"server.db.settings.work_mem\" = [\"1MB\", \"2MB\"] }";
    folder.write("big.toml", &PLANNED.replace(one, &grid));
    let watch = std::time::Instant::now();
    let ran = folder.expect_with(&[("ASSAY_LAB", &lab), ("PATH", "/usr/bin:/bin")], "lab plan big.toml", 0);
    assert!(ran.stdout.contains("10000 cells in 3 rounds, seed 1, 30000 trials"), "{}", ran.shown());
    // A quiet machine needs about a second for this, not optimized; it was half an hour.
    assert!(watch.elapsed().as_secs() < 60, "{:?}", watch.elapsed());
}

#[test]
fn metrics_that_do_not_exist_are_found_before_the_trials() {
    let folder = Folder::new();
    folder.write("events.lua", EVENTS);
    let recipe = |shown: &str| {
        format!(
            "title = 't'\n[server.db]\nurl = 'sqlite:t.db'\n[run]\nworkload = './events.lua'\n[grid]\na = {{ \"run.sessions\" = \
             [1] }}\n[[step]]\nname = 'rows'\nwhen = 'after-measure'\nvalue = true\nsql = 'SELECT 1'\n[[show]]\n{shown}\n"
        )
    };
    for (shown, near) in [
        ("table = { rows = 'a', value = 'p999x' }", "did you mean p999?"),
        ("table = { rows = 'a', value = 'row' }", "did you mean rows?"),
        ("table = { rows = 'a', value = 'take.p9' }", "did you mean take.p"),
        ("table = { rows = 'a', value = 'server.log_byts_per_s' }", "did you mean server.log_bytes?"),
        ("lines = { value = ['tps', 'qsp'] }", "did you mean qps?"),
    ] {
        folder.write("q.toml", &recipe(shown));
        for command in ["lab plan q.toml", "lab run q.toml --folder f"] {
            let ran = folder.expect(command, 2);
            assert!(ran.stderr.starts_with("error: show 1: no metric "), "{shown}: {}", ran.shown());
            assert!(ran.stderr.contains(near) && ran.stderr.contains("  q.toml:1"), "{shown}: {}", ran.shown());
        }
    }
    for known in ["rows", "rows stop", "run", "tps_variation", "errors.deadlock", "machine.cpu_user_percent"] {
        folder.write("q.toml", &recipe(&format!("table = {{ rows = 'a', value = '{known}' }}")));
        let ran = folder.expect("lab plan q.toml", 0);
        assert_eq!(ran.stderr, "", "{known}");
    }
    // A script may put a name together.
    folder.write("q.toml", &recipe("table = { rows = 'a', value = 'zebra_per_transaction' }"));
    let ran = folder.expect("lab plan q.toml", 0);
    assert!(ran.stderr.contains("warning: show 1: zebra_per_transaction is neither a step nor"), "{}", ran.shown());
}

#[test]
fn an_experiment_takes_no_folder_of_other_files_and_none_of_experiments() {
    let folder = Folder::new();
    folder.write("events.lua", EVENTS);
    folder.write("failing.toml", FAILING);
    std::fs::create_dir(folder.path().join("photos")).unwrap();
    folder.write("photos/a.jpg", "");
    let ran = folder.expect("lab run failing.toml --folder photos", 2);
    assert!(ran.stderr.contains("error: photos is not empty and not an experiment"), "{}", ran.shown());
    assert_eq!(std::fs::read_dir(folder.path().join("photos")).unwrap().count(), 1);
    folder.expect("lab run failing.toml --folder photos/a.jpg", 2);
    folder.expect("lab run failing.toml", 4);
    let ran = folder.expect("lab show assay-lab", 2);
    assert!(ran.stderr.contains("error: assay-lab contains experiments"), "{}", ran.shown());
    assert!(ran.stderr.contains("`assay lab status` lists"), "{}", ran.shown());
}

#[test]
fn a_plan_downloads_nothing_and_says_what_will_be() {
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let version =
        RECIPE.replace("product = \"postgres\"", "product = \"mysql:5.7\"").replace("work_mem", "sort_buffer_size");
    folder.write("sorts.toml", &version);
    let empty = folder.path().join("empty");
    let variables = [("ASSAY_LAB", empty.to_str().unwrap()), ("PATH", "/usr/bin:/bin")];
    let plan = folder.expect_with(&variables, "lab plan sorts.toml", 0);
    assert!(plan.stdout.contains("  mysql:5.7: 5.7.22, 18 MB, will be downloaded\n"), "{}", plan.shown());
    assert!(!empty.join("binaries").exists(), "{}", plan.shown());
}

#[test]
fn a_switch_in_a_recipe_is_on_or_off() {
    let folder = Folder::new();
    let recipe = |keep: &str| {
        format!(
            "title = 'Disk'\n[run]\nio = '--size 1M --files 1 --log-size 64K'\ntime = '200ms'\noptions = {{ keep = '{keep}' }}\n[trials]\ncount = 1\nrepeats = 0\n"
        )
    };
    folder.write("disk.toml", &recipe("off"));
    folder.expect("lab run disk.toml --folder off", 0);
    let before = folder.names();
    folder.write("disk.toml", &recipe("on"));
    folder.expect("lab run disk.toml --folder on", 0);
    assert!(folder.names().len() > before.len() + 1, "{:?}", folder.names());
    folder.write("disk.toml", &recipe("maybe"));
    let ran = folder.expect("lab plan disk.toml", 2);
    assert!(ran.stderr.contains("error: run.options.keep maybe: expected on or off"), "{}", ran.shown());
    assert!(ran.stderr.contains("  disk.toml:5:13: run.options.keep\n"), "{}", ran.shown());
    // Found before anything is started, in options of files and of statements.
    let cases = "title = 'Statements'\n[server.db]\nurl = 'sqlite:t.db'\n[run]\noptions = { OPTION }\n\
                 [[run.case]]\nname = 'a'\nsql = 'SELECT 1'\n";
    for (text, error, place) in [
        (
            recipe("on").replace("keep = 'on'", "size = '1'"),
            "every file must hold at least one block",
            "run.options.size",
        ),
        (recipe("on").replace("keep", "kep"), "run.options.kep: there is no option kep", "run.options.kep"),
        (cases.replace("OPTION", "runs = 0"), "run.options.runs 0: must be at least 1", "run.options.runs"),
        (cases.replace("OPTION", "explian = true"), "run.options.explian: there is no option", "run.options.explian"),
        (cases.replace("OPTION", "db = 'sqlite:a'"), "run.options.db: --db is set by the experiment", "run.options.db"),
    ] {
        folder.write("disk.toml", &text);
        let ran = folder.expect("lab plan disk.toml", 2);
        assert!(ran.stderr.contains(&format!("error: {error}")), "{error}: {}", ran.shown());
        assert!(ran.stderr.contains(&format!("  disk.toml:5:13: {place}\n")), "{place}: {}", ran.shown());
    }
}

const EVENTS: &str = "
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query('SELECT 1') end
";

/// A server that is already running, with prices; the first trial waits for a signal to continue.
const PRICED: &str = r#"title = "What does a query cost?"

[server.db]
url = "sqlite:t.db"
sql = ["CREATE TABLE IF NOT EXISTS t (id int)"]

[run]
workload = "./events.lua"
sessions = 1

[grid.machine.levels]
small = { "run.options.transactions" = 40, price = { per_hour = 0.001 } }
large = { "run.options.transactions" = 60, price = { per_hour = 100 } }

[trials]
count = 2
repeats = 0
drop = 1

[[step]]
name = "wait"
when = "before-trial"
command = "while ! test -e go; do sleep 0.02; done"

[[step]]
name = "rows"
when = "after-measure"
value = true
sql = ["INSERT INTO t VALUES (1)", "SELECT count(*) FROM t"]

[[show]]
table = { rows = "machine", value = "per_price", ratio_to = "best" }
[[show]]
table = { rows = "machine", value = "rows", of = "best" }
"#;

#[test]
fn an_interrupted_experiment_on_a_server_that_is_already_there_goes_on_and_shows_prices_and_values() {
    let folder = Folder::new();
    folder.write("events.lua", EVENTS);
    folder.write("priced.toml", PRICED);
    for _ in 0..2 {
        let mut started = folder.start("lab run priced.toml --folder priced");
        started.wait_for("round 1 of 2");
        started.signal(Signal::SIGINT);
        let ran = started.finish();
        assert_eq!(ran.code, Some(130), "{}", ran.shown());
        assert!(ran.stderr.contains("interrupted: 4 trials are left"), "{}", ran.shown());
    }
    folder.write("go", "");
    let ran = folder.expect("lab run priced.toml --folder priced", 0);
    // The table has a row for each trial: the second round ends with three and four.
    let ends = |with: &str| ran.stdout.lines().any(|line| line.ends_with(with));
    assert!(ends(" 3.00") && ends(" 4.00"), "{}", ran.shown());
    // At a hundred thousandth of the price.
    let small = ran.stdout.lines().find(|line| line.starts_with("small")).unwrap();
    assert!(small.ends_with(" 100%"), "{}", ran.shown());
    let status = folder.expect("lab status priced", 0);
    assert!(status.stdout.contains("interrupted and repeated: 2"), "{}", status.shown());
}

/// Phases of each kind: a load, an action, values of a step, one that depends on an earlier result and has a load in
/// its background, and one that is repeated.
const AGES: &str = r#"title = "What becomes of a database that ages?"

[server.db]
url = "sqlite:t.db"

[run]
sessions = 1
time = "0s"

[grid]
retries = { "run.options.retries" = [0, 1] }

[trials]
count = 1
repeats = 0

[[step]]
name = "load"
when = "measure"
run = "./events.lua --transactions 50"

[[step]]
name = "index"
when = "measure"
command = "echo 7"
value = true
only = { retries = "1" }

[[step]]
name = "read {n}"
when = "measure"
each = { n = [20, 40] }
run = "./events.lua --transactions {n}"

[[step]]
name = "depends"
when = "measure"
run = './events.lua --time 1s --rate {round("read 40".tps/"read 40".tps*4)+6}'
beside = "./events.lua --rate 50"

[[step]]
name = "again"
when = "measure"
run = "./events.lua --transactions 10"
until = "tps within 0.0001%"
at_most = 3

[[show]]
table = { rows = "phase", columns = "retries", value = "tps", ratio_to = "0" }
[[show]]
table = { rows = "phase", value = "seconds" }
[[show]]
table = { rows = "phase", value = "beside.tps" }
[[show]]
table = { rows = "phase", value = "index" }
[[show]]
bars = { x = "phase", color = "retries" }
"#;

#[test]
fn phases_are_measured_one_after_the_other_and_shown_in_one_table() {
    let folder = Folder::new();
    folder.write("events.lua", EVENTS);
    folder.write("ages.toml", AGES);
    let plan = folder.expect("lab plan ages.toml", 0);
    assert!(plan.stdout.contains("  step read 20, measure\n") && plan.stderr.is_empty(), "{}", plan.shown());
    let ran = folder.expect("lab run ages.toml --folder ages", 0);
    let names = ["load", "index", "read 20", "read 40", "depends", "again"];
    let rows = |table: &str| {
        let from = ran.stdout.find(&format!("\n{table}")).unwrap_or_else(|| panic!("{table}: {}", ran.shown()));
        let lines = ran.stdout[from + 1..].lines().skip(2).take(names.len());
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    for (row, name) in rows("tps\n").iter().zip(names) {
        assert!(row.starts_with(name), "{row}: {}", ran.shown());
    }
    let seconds = rows("seconds s");
    let is_number = |row: &&String| !row.trim_end().ends_with('–');
    assert_eq!(seconds.iter().filter(is_number).count(), 5, "{}", ran.shown());
    assert!(ran.stdout.lines().any(|row| row.starts_with("index ") && row.contains(" 7.00")), "{}", ran.shown());
    // The load in the background has results of its own, and ends with its phase.
    let beside = rows("beside.tps");
    assert_eq!(beside.iter().filter(is_number).count(), 1, "{}", ran.shown());
    assert!(ran.stderr.contains("again: tps is known within "), "{}", ran.shown());
    let record = |name: &str| assay_record::Record::read(&folder.path().join("ages/records").join(name)).unwrap();
    let words = record("round1-cell1-1.004-depends.json.zst").manifest.command;
    assert!(words.iter().any(|word| word == "--rate=10"), "{words:?}");
    // Seven loads of each of two cells.
    folder.expect("lab show ages --csv trials.csv --html page.html --png charts", 0);
    let csv = std::fs::read_to_string(folder.path().join("trials.csv")).unwrap();
    assert!(csv.starts_with("retries,phase,round,sessions,tps,") && csv.lines().count() == 15, "{csv}");
    assert!(std::fs::read_to_string(folder.path().join("page.html")).unwrap().contains("retries=1 read 40"));
    let charts: Vec<_> = std::fs::read_dir(folder.path().join("charts")).unwrap().collect();
    assert_eq!(charts.len(), 1, "{charts:?}");
    // Complete: nothing is run again. A bundle has all records.
    let again = folder.expect("lab run ages.toml --folder ages", 0);
    assert_eq!(again.stdout, ran.stdout);
    folder.expect("lab bundle ages --output ages.tar.gz", 0);
    assert_eq!(folder.expect("lab show ages.tar.gz", 0).stdout, ran.stdout);
}

#[test]
fn phases_that_cannot_be_are_refused_with_their_place() {
    let folder = Folder::new();
    folder.write("events.lua", EVENTS);
    for (from, to, said) in [
        ("read 40\".tps*4", "again\".tps*4", "again.tps is no value of each, and no metric of an earlier phase"),
        ("--transactions {n}", "--transactions {m}", "m is no value of each"),
        ("--transactions {n}", "--transactions {n + }", "expected a number or a name"),
        ("--transactions {n}", "--transactoins {n}", "there is no option --transactoins"),
        ("beside = \"./events.lua --rate 50\"", "beside = \"./events.lua --rte 50\"", "there is no option --rte"),
        ("name = \"again\"", "name = \"load\"", "two steps that are measured are named load"),
        ("tps within 0.0001%", "tps", "expected a metric and a share, such as \"tps within 2%\""),
        ("at_most = 3", "at_most = 2", "an interval needs at least 3 runs"),
        (
            "sessions = 1\n",
            "sessions = 1\nworkload = './events.lua'\n",
            "run.workload and steps with when = \"measure\"",
        ),
        ("sessions = 1\n", "sessions = 1\nwarmup = '1s'\n", "run.warmup has no meaning for steps that are measured"),
        ("rows = \"phase\", value = \"seconds\"", "rows = \"phases\", value = \"tps\"", "did you mean `phase`?"),
        ("value = true\n", "value = true\nuntil = 'tps within 1%'\n", "beside and until are for a run"),
    ] {
        assert!(AGES.contains(from), "{from}");
        folder.write("ages.toml", &AGES.replacen(from, to, 1));
        let ran = folder.expect("lab plan ages.toml", 2);
        assert!(ran.stderr.contains(said), "{said}: {}", ran.shown());
    }
}

/// Transactions wait for both steps, so the run cannot end before them; the warm-up still ends by the clock.
const BESIDE: &str = r#"title = "When does a step beside the run begin?"

[server.db]
product = "postgres"
sql = ["CREATE TABLE gate (id int)"]

[run]
workload = "./gate.lua"
sessions = 1
time = "1s"
options = { warmup = "500ms" }

[trials]
count = 1
repeats = 0

[[step]]
name = "opened"
when = "during-measure"
after = "0s"
value = true
sql = ["INSERT INTO gate VALUES (1)", "SELECT extract(epoch FROM clock_timestamp())"]

[[step]]
name = "beside"
when = "during-measure"
after = "0s"
value = true
command = """"$ASSAY" sql "INSERT INTO gate VALUES (2)" --db "$ASSAY_URL" --runs 1 --warmup 0 --no-record --quiet > out && echo 7"""
"#;

const GATE: &str = r#"
function thread_init() con = sysbench.sql.driver():connect() end
function event()
  while con:query_row("SELECT count(*) FROM gate") ~= "2" do assay.sleep(0.01) end
end
"#;

#[test]
fn a_step_beside_the_run_counts_from_the_start_of_the_measurement() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    folder.write("gate.lua", GATE);
    folder.write("beside.toml", BESIDE);
    let lab = lab();
    let variables = [("ASSAY_LAB", lab.as_str()), ("PATH", "/usr/bin:/bin")];
    folder.expect_with(&variables, "lab run beside.toml --folder beside", 0);
    let journal = std::fs::read_to_string(folder.path().join("beside/journal.jsonl")).unwrap();
    let done = journal.lines().find(|line| line.starts_with(r#"{"event":"done""#)).unwrap();
    let done: serde_json::Value = serde_json::from_str(done).unwrap();
    let [opened, beside] = [0, 1].map(|number| done["values"][number][1].as_f64().unwrap());
    let record = assay_record::Record::read(&folder.path().join("beside/records/round1-cell1-1.json.zst")).unwrap();
    let begun = record.stages[0].started.unix_ms() as f64 / 1e3;
    // Times in the record have milliseconds.
    assert!(opened >= begun - 0.001, "opened at {opened}, measured from {begun}");
    assert_eq!(beside, 7.0);
}

/// A load on the primary, a second one beside it that reads from the replica, and a question to the replica.
const LAG: &str = r#"title = "How far is a replica behind?"

[server.db]
product = "postgres"
replicas = 1

[data]
prepare = "./one_table.lua"

[run]
workload = "./one_table.lua"
on = "db.primary"
time = "1s"

[[step]]
when = "before-trial"
command = '"$ASSAY" prepare read_after_write --db "$ASSAY_PRIMARY_URL" --quiet'

[[step]]
name = "lag"
when = "during-measure"
after = "1m"
run = "read_after_write --transactions 4"
on = ["db.primary", "db.replica1"]
value = "visible.max"

[[step]]
name = "reads"
when = "after-measure"
run = "read_after_write --transactions 4"
on = ["db.primary", "db.replica1"]
value = "reads_per_transaction"

[[step]]
name = "in recovery"
when = "after-measure"
on = "db.replica1"
sql = "SELECT CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END"
value = true

[trials]
count = 1

[[show]]
table = { rows = "sessions", value = "lag" }
[[show]]
table = { rows = "sessions", value = "reads" }

[scale.tiny]
"step.lag.after" = "0s"
"#;

#[test]
fn a_step_may_be_a_second_load_beside_the_first_and_ask_a_replica() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    folder.write("lag.toml", LAG);
    let lab = lab();
    let variables = [("ASSAY_LAB", lab.as_str()), ("PATH", "/usr/bin:/bin")];
    let ran = folder.expect_with(&variables, "lab run lag.toml --scale tiny --folder lag", 0);
    for part in ["lag s", "reads"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.shown());
    }
    let journal = std::fs::read_to_string(folder.path().join("lag/journal.jsonl")).unwrap();
    let done = journal.lines().find(|line| line.starts_with(r#"{"event":"done""#)).unwrap();
    let done: serde_json::Value = serde_json::from_str(done).unwrap();
    assert_eq!(done["values"], serde_json::json!([["reads", 0.5], ["in recovery", 1.0]]));
    let own = folder.path().join("lag/logs/round1-cell1-1.lag.json.zst");
    assert_eq!(assay_record::Record::read(&own).unwrap().manifest.targets.len(), 2);

    folder.write("wrong.toml", &LAG.replace("read_after_write --transactions", "read_after_write --transactoins"));
    let ran = folder.expect_with(&variables, "lab plan wrong.toml", 2);
    assert!(ran.stderr.contains("error: step lag: run: "), "{}", ran.shown());
    assert!(ran.stderr.contains("--transactions"), "{}", ran.shown());
    folder.write("wrong.toml", &LAG.replace("visible.max", "visibel.max"));
    let ran = folder.expect_with(&variables, "lab run wrong.toml --scale tiny --folder wrong", 4);
    assert!(ran.stdout.contains("step lag: value = visibel.max: the run has no such metric"), "{}", ran.shown());
}

/// Two servers, statements on one of them, and a crash of the other.
const TWO: &str = r#"title = "Does a neighbor that crashes matter?"

[server.db]
product = "postgres"
socket = true
sql = ["CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 1000) g"]

[server.other]
product = "postgres"
data = "ELSEWHERE"

[run]
on = "db"
options = { runs = 3, same_result = true }

[[run.case]]
name = "count"
sql = "SELECT count(*) FROM t"
[[run.case]]
name = "sum"
sql = "SELECT sum(1) FROM t"

[trials]
count = 2

[[step]]
name = "crash"
when = "after-measure"
on = "other"
crash = true

[[show]]
table = { rows = "case", value = "p50", ratio_to = "count" }
[[show]]
bars = { x = "case", value = "p50" }
[[show]]
table = { rows = "case", value = "crash" }
"#;

#[test]
fn a_recipe_may_have_several_servers_time_statements_and_crash_a_server() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    let lab = lab();
    let elsewhere = std::path::PathBuf::from(format!("{lab}/elsewhere-{}", std::process::id()));
    folder.write("two.toml", &TWO.replace("ELSEWHERE", elsewhere.to_str().unwrap()));
    let variables = [("ASSAY_LAB", lab.as_str()), ("PATH", "/usr/bin:/bin")];
    let ran = folder.expect_with(&variables, "lab run two.toml --folder two", 0);
    for part in ["2 of 2 trials", "ratio to count", "crash s"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.shown());
    }
    folder.expect_with(&variables, "lab show two --html page.html", 0);
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("Does a neighbor that crashes matter?") && page.contains("2 of 2 trials"), "{page}");
    // The data directory existed, and is removed with the servers.
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    std::fs::remove_dir(&elsewhere).unwrap();
    let record = assay_record::Record::read(&folder.path().join("two/records/round1-cell1-1.json.zst")).unwrap();
    assert!(record.manifest.targets[0].contains("host=/"), "{:?}", record.manifest.targets);
    let cases = record.cases.unwrap().cases;
    assert_eq!((cases.len(), cases[0].executions.len(), &cases[0].digest), (2, 3, &cases[1].digest));
    let settings = TWO.replace("socket = true", "settings = { shared_bufers = '1GB' }");
    folder.write("wrong.toml", &settings);
    let ran = folder.expect_with(&variables, "lab plan wrong.toml", 2);
    assert!(ran.stderr.contains("hint: did you mean shared_buffers?"), "{}", ran.shown());
}
