//! Passwords, in every place that may hold one: none reaches a file or a stream.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use assay_record::Record;
use nix::sys::signal::Signal;
use testkit::{Kind, ServerSetup};

use crate::common::{Folder, ONE_TABLE, Ran};

/// No other text contains it.
const SECRET: &str = "hunter2";

/// The user's own files, which hold it.
const OWN: [&str; 7] = [".pgpass", ".my.cnf", "services", "recipe.toml", "hosts.toml", "cases.toml", "nats.creds"];

/// Everything that a command has written below the folder.
#[track_caller]
fn check_files(folder: &Folder, after: &str) {
    check_files_but(folder, after, &[]);
}

/// The same, without files of these names anywhere.
#[track_caller]
fn check_files_but(folder: &Folder, after: &str, own: &[&str]) {
    let mut folders = vec![folder.path().to_owned()];
    while let Some(below) = folders.pop() {
        for path in std::fs::read_dir(below).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if own.contains(&&*name) {
                continue;
            }
            // A server's socket, for example.
            let is_readable = path.is_file() || path.is_dir() && !path.is_symlink();
            if !is_readable {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.parent() != Some(folder.path()) || !OWN.contains(&name.as_str()) {
                let text = text_of(&path);
                assert!(!text.contains(SECRET), "assay {after}\n{}: {text}", path.display());
            }
        }
    }
}

/// A record is read as such, whatever its file looks like.
fn text_of(path: &Path) -> String {
    if let Ok(record) = Record::read(path) {
        return format!("{record:?}");
    }
    if path.extension().is_some_and(|extension| extension == "gz") {
        let output = std::process::Command::new("tar").arg("-xzOf").arg(path).output().unwrap();
        assert!(output.status.success());
        return String::from_utf8_lossy(&output.stdout).into_owned();
    }
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

/// Runs it with the secret in all variables that may hold one, and looks everywhere. It succeeds, or is refused.
#[track_caller]
fn check(folder: &Folder, line: &str, succeeds: bool) -> Ran {
    let services = folder.path().join("services");
    let variables = [
        ("PGPASSWORD", SECRET),
        ("MYSQL_PWD", SECRET),
        ("PGSERVICEFILE", services.to_str().unwrap()),
        ("PATH", "/usr/bin:/bin"),
    ];
    // It would be used in place of the embedded database.
    let database = (!succeeds).then_some(("ASSAY_DB", "postgres://app:hunter2@127.0.0.1:1/bench"));
    let ran = Ran::new(folder, folder.command(line).envs(variables).envs(database).output().unwrap());
    let as_expected = if succeeds { ran.code == Some(0) } else { ran.code.is_some_and(|code| (1..70).contains(&code)) };
    assert!(as_expected, "assay {line}\n{}", ran.shown());
    assert!(!ran.shown().contains(SECRET), "assay {line}\n{}", ran.shown());
    check_files(folder, line);
    ran
}

fn folder() -> Folder {
    let folder = Folder::new();
    let options = "sysbench.cmdline.options = { my_password = {\"Password\", \"\"},";
    folder.write("secretive.lua", &ONE_TABLE.replace("sysbench.cmdline.options = {", options));
    let pass = folder.write(".pgpass", "*:*:*:*:hunter2\n");
    std::fs::set_permissions(pass, std::fs::Permissions::from_mode(0o600)).unwrap();
    folder.write(".my.cnf", "[client]\npassword=hunter2\n");
    folder.write("services", "[bench]\nhost=127.0.0.1\nport=1\npassword=hunter2\n");
    folder.write("nats.creds", "-----BEGIN USER NKEY SEED-----\nhunter2\n------END USER NKEY SEED------\n");
    folder
}

#[test]
fn no_password_reaches_a_file_or_a_stream() {
    let folder = folder();
    let embedded = "run ./secretive.lua --time 100ms --my-password hunter2 --session-sql 'SELECT 1'";
    check(&folder, &format!("{embedded} --record r.json"), true);
    let every = "--html r.html --markdown r.md --csv r.csv --json r2.json --prometheus r.prom --otava r.otava --svg s \
                 --telemetry-csv t.csv";
    for line in [
        format!("{embedded} --trials 2 --record t.json.zst --format json"),
        format!("report r.json {every}"),
        "show r.json --verbose".to_owned(),
        "tag r.json a=b".to_owned(),
        "compare r.json t-1.json.zst --agents".to_owned(),
        "duel './secretive.lua --my-password hunter2' './secretive.lua --my_password=hunter2' '--common=--transactions 5' --trials 1 --records d".to_owned(),
        format!("{embedded} --print-spec"),
        "run --again r.json --my-password hunter2 --transactions 5 --record again.json".to_owned(),
        "completions bash".to_owned(),
        "manual pages".to_owned(),
        "list".to_owned(),
    ] {
        check(&folder, &line, true);
    }
    let pooler = "--pooler postgres://me:hunter2@127.0.0.1:1/pgbouncer";
    check(&folder, &format!("run ./secretive.lua {pooler} --time 100ms --no-record"), true);
    // A server that is not there, and what was written wrongly.
    for line in [
        "--db postgres://me:hunter2@127.0.0.1:1/db?sslmode=disable --my_password=hunter2",
        "--db=mysql://me:hunter2@127.0.0.1:1/db",
        "--db 'postgres://127.0.0.1:1/db?user=a&password=hunter2'",
        "--db postgres://?service=bench",
        "--db=me:hunter2@127.0.0.1/db",
        "--db me:hunter2@127.0.0.1:5432/db",
        "--db postgre://me:hunter2@127.0.0.1/db",
        "--db postgres://me:hunter2/@127.0.0.1/db",
        "--db sqlite:a.db --pooler me:hunter2@127.0.0.1/pgbouncer",
        "--db sqlite:a.db --host-metrics http://me:hunter2@127.0.0.1",
        "--db sqlite:a.db --metrics-listen me:hunter2@127.0.0.1",
        "--db sqlite:a.db --my-passwrd=hunter2",
        "--db sqlite:a.db me:hunter2@127.0.0.1/db",
        "--db postgres://me:hunter2@127.0.0.1:1/db --agents 1 --fleet nats://me:hunter2@127.0.0.1:1",
        "--db postgres://127.0.0.1:1/db --agents 1 --fleet nats://127.0.0.1:1 --fleet-creds nats.creds",
    ] {
        check(&folder, &format!("run ./secretive.lua {line}"), false);
    }
    let dead = "--db postgres://me:hunter2@127.0.0.1:1/db";
    for line in [
        format!("prepare ./secretive.lua {dead}"),
        format!("check oltp_read_only {dead}"),
        format!("cleanup ./secretive.lua {dead}"),
        format!("sql 'SELECT 1' {dead}"),
        "agent --nats nats://me:hunter2@127.0.0.1:1".to_owned(),
        "fleet list --nats nats://me:hunter2@127.0.0.1:1".to_owned(),
        "run me:hunter2@127.0.0.1/db".to_owned(),
        format!("duel '{dead} ./secretive.lua' './secretive.lua {dead}' --trials 1 --records e"),
        "sysbench oltp_read_only --db-driver=pgsql --pgsql-port=1 --pgsql-password=hunter2 run".to_owned(),
        "sysbench oltp_read_only --db-driver=mysql --mysql-port=1 --mysql-host=127.0.0.1 --mysql-password=hunter2 run"
            .to_owned(),
        "pgbench postgres://me:hunter2@127.0.0.1:1/db".to_owned(),
        "pgbench 'host=127.0.0.1 port=1 password=hunter2'".to_owned(),
    ] {
        check(&folder, &line, false);
    }
}

/// An experiment on a server that is already there, with its password in the recipe.
const RECIPE: &str = r#"title = "Sessions"

[server.db]
url = "URL" # as in OTHER

[run]
workload = "./secretive.lua --my-password hunter2"
time = "100ms"

[grid]
sessions = { "run.sessions" = [1, 2] }

[trials]
count = 1

[[step]]
name = "look"
when = "before-measure"
command = "test -n \"$ASSAY_URL\" || psql OTHER"
"#;

#[test]
fn no_password_reaches_what_a_server_an_experiment_and_its_bundle_leave() {
    if !Kind::Postgres.present() {
        return;
    }
    let (folder, server) = (folder(), Kind::Postgres.start(&ServerSetup::default()).unwrap());
    // The server trusts everybody.
    let url = server.url_as("app:hunter2", "app");
    let recipe = RECIPE.replace("URL\"", &format!("{url}\"")).replace("OTHER", "postgres://b:hunter2@127.0.0.1:1/d");
    folder.write("recipe.toml", &recipe);
    let grid = format!("sessions = {{ \"run.sessions\" = [1, 2] }}\nhost = {{ \"server.db.url\" = [\"{url}\"] }}");
    let cases = recipe.split("[run]").next().unwrap().to_owned() + "[[run.case]]\nname = 'a'\nsql = 'SELECT 1'\n";
    folder.write("cases.toml", &cases);
    folder.write("hosts.toml", &recipe.replace("sessions = { \"run.sessions\" = [1, 2] }", &grid));
    check(&folder, &format!("prepare ./secretive.lua --db {url} --my-password hunter2"), true);
    // While it runs, and in its live metrics.
    let port = testkit::free_port().unwrap();
    let line = format!(
        "run ./secretive.lua --my-password hunter2 --db {url} --time 0 --interval 100ms --metrics-listen 127.0.0.1:{port} \
         --record live.json.zst"
    );
    let mut run = folder.start(&line);
    run.wait_for("   0.3   ");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut metrics = String::new();
    stream.read_to_string(&mut metrics).unwrap();
    assert!(metrics.contains("assay_") && !metrics.contains(SECRET), "{metrics}");
    run.signal(Signal::SIGINT);
    assert!(!run.finish().shown().contains(SECRET));
    check_files(&folder, &line);
    for line in [
        "lab plan recipe.toml",
        "lab run recipe.toml --folder first",
        "lab run hosts.toml --folder second",
        "lab show first --html page.html --markdown page.md --csv page.csv",
        "lab show second --html page.html --markdown page.md --csv page.csv",
        "lab status first",
        "lab run cases.toml --folder timed",
        "lab bundle first --output first.tar.gz",
        "lab bundle second --output second.tar.gz",
        "lab show first.tar.gz",
    ] {
        check(&folder, line, true);
    }
    let timed = folder.path().join("timed/records");
    let timed = std::fs::read_dir(&timed).unwrap().map(|entry| Record::read(&entry.unwrap().path()).unwrap());
    let commands: Vec<Vec<String>> = timed.map(|record| record.manifest.command).collect();
    let is_masked = |words: &Vec<String>| words.iter().any(|word| word.starts_with("--db=postgres://app:***@"));
    assert!(!commands.is_empty() && commands.iter().all(is_masked), "{commands:?}");
    let stored = std::fs::read_to_string(folder.path().join("first/recipe.toml")).unwrap();
    assert!(stored.contains(":***@") && stored.contains("# as in postgres://b:***@"), "{stored}");
    // It goes on with the recipe, with another password, and with the stored copy and a password from elsewhere.
    let resumed = check(&folder, "lab run recipe.toml --folder first --set trials.count=2", true);
    assert!(resumed.stderr.contains("resuming in first: 2 trials done"), "{}", resumed.shown());
    folder.write("recipe.toml", &recipe.replace("app:hunter2@", "app:new-hunter2@"));
    let resumed = check(&folder, "lab run recipe.toml --folder first --set trials.count=3", true);
    assert!(resumed.stderr.contains("resuming in first: 4 trials done"), "{}", resumed.shown());
    std::fs::copy(folder.path().join("first/recipe.toml"), folder.path().join("stored.toml")).unwrap();
    let resumed = check(&folder, "lab run stored.toml --folder first --set trials.count=4", true);
    assert!(resumed.stderr.contains("resuming in first: 6 trials done"), "{}", resumed.shown());
    // In a value from the command line, too.
    let set = format!("lab run recipe.toml --folder third --set server.db.url={url} --set trials.count=1");
    check(&folder, &set, true);
    check(&folder, &format!("lab run recipe.toml --folder third --set run.tiem={url}"), false);
}

/// Leaves the arguments of every process that loads it.
const WITNESS: &str = r#"
sysbench.cmdline.options = { my_password = {"Password", ""} }
local file = io.open("/proc/self/cmdline")
local words = file:read("*a"):gsub("%z", " ")
file:close()
local seen = io.open("seen.txt", "a")
seen:write(words, "\n")
seen:close()
function event()
  if sysbench.opt.my_password ~= "hunter2" then error("it has not arrived") end
end
"#;

/// A load, and one in a step before it.
const WITNESSED: &str = r#"title = "Arguments"

[server.db]
url = "sqlite:t.db"

[run]
workload = "./witness.lua --my-password hunter2"
options = { transactions = 5 }
session_sql = ["SELECT 'postgres://me:hunter2@h/d'"]

[trials]
count = 1
repeats = 0

[[step]]
name = "load"
when = "before-measure"
run = "./witness.lua --my-password hunter2 --transactions 5"
"#;

/// Statements, or files, during which the arguments of the experiment's children are read.
const LOOKED_AT: &str = r#"title = "Arguments"

[server.db]
url = "sqlite:t.db"

[run]
MEASURED

[trials]
count = 1
repeats = 0

[[step]]
name = "look"
when = "during-measure"
after = "1ms"
command = "for child in $(cat /proc/$PPID/task/*/children); do tr '\\0' ' ' < /proc/$child/cmdline; echo; done >> seen.txt"
"#;

const STATEMENTS: &str = r#"session_sql = ["SELECT 'postgres://me:hunter2@h/d'"]
options = { runs = 5, setup = "SELECT 'postgres://me:hunter2@h/d'" }

[[run.case]]
name = "count"
sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT max(i) FROM n"
"#;

#[test]
fn no_password_is_an_argument_of_a_process_that_an_experiment_or_a_duel_starts() {
    let folder = Folder::new();
    folder.write("witness.lua", WITNESS);
    folder.write("run.toml", WITNESSED);
    folder.write("statements.toml", &LOOKED_AT.replace("MEASURED", STATEMENTS));
    let files = "io = '--size 1M --files 1 --log-size 64K'\ntime = '500ms'\n";
    folder.write("files.toml", &LOOKED_AT.replace("MEASURED", files).replace("[server.db]\nurl = \"sqlite:t.db\"", ""));
    let side = "./witness.lua --my-password hunter2 --transactions 5";
    let fleet = "--db postgres://me:hunter2@127.0.0.1:1/db --agents 1 --fleet nats://me:hunter2@127.0.0.1:1";
    let seen = folder.path().join("seen.txt");
    for (line, succeeds) in [
        ("lab run run.toml --folder a".to_owned(), true),
        ("lab run statements.toml --folder b".to_owned(), true),
        ("lab run files.toml --folder c".to_owned(), true),
        (format!("duel '{side}' '{side}' --trials 1 --records d"), true),
        (format!("duel '{side} {fleet}' '{side}' --trials 1 --records e"), false),
    ] {
        let ran = folder.run(&line);
        assert_eq!(ran.code == Some(0), succeeds, "{line}: {}", ran.shown());
        let all = std::fs::read_to_string(&seen).unwrap();
        std::fs::remove_file(&seen).unwrap();
        // The user may write one into arguments of the command itself.
        let children: Vec<&str> = all.lines().filter(|line| !line.contains(" duel ")).collect();
        assert!(children.iter().any(|line| line.ends_with(" --child ")), "{line}: {all}");
        assert!(!children.concat().contains(SECRET), "{line}: {all}");
    }
}

/// A command line for each command, with the secret wherever a user may write one; whether it succeeds.
///
/// A new command must be added here: what it writes, prints and starts is then searched.
const EVERY_COMMAND: &[(&str, &str, bool)] = &[
    ("prepare", "prepare tpcb --db DB --session-sql SQL", true),
    (
        "run",
        "run tpcb --db DB --transactions 20 --session-sql SQL --tag note=postgres://me:hunter2@h/d --record r.json.zst",
        true,
    ),
    ("run", "run tpcb --db DB --transactions 20 --record s.json --html=x", false),
    ("run", "run tpcb --db postgres://me:hunter2@127.0.0.1:1/db", false),
    (
        "run",
        "run tpcb --server nosuch:15 --set 'primary_conninfo=host=h password=hunter2' --set nosuch=me:hunter2@h",
        false,
    ),
    ("run", "run --again r.json.zst --kill-check 'x --password hunter2' --db DB --record r2.json", false),
    ("check", "check tpcb --db DB --session-sql SQL", true),
    ("exec", "exec tpcb nosuch --db mysql://me:hunter2@127.0.0.1:1/db", false),
    ("cleanup", "cleanup tpcb --db mysql://me:hunter2@127.0.0.1:1/db", false),
    ("list", "list metrics", true),
    ("show", "show r.json.zst --verbose", true),
    ("tag", "tag r.json.zst other=postgres://me:hunter2@h/d", true),
    ("note", "note postgres://me:hunter2@h/d", false),
    ("compare", "compare r.json.zst r.json.zst", true),
    ("explain", "explain r.json.zst r.json.zst", false),
    (
        "duel",
        "duel 'tpcb --db DB --tag a=me:hunter2@h' 'tpcb --db DB' '--common=--transactions 5' --trials 1 --records duel",
        true,
    ),
    (
        "bisect",
        "bisect 'tpcb --db DB --transactions 5 --tag url=postgres://me:hunter2@h/{}' --values a,b --trials 3 \
         --records bisect",
        false,
    ),
    (
        "report",
        "report r.json.zst --html r.html --markdown r.md --csv r.csv --prometheus r.prom --svg svg --json r3.json",
        true,
    ),
    ("new workload", "new workload nosuch/postgres://me:hunter2@h/d.lua", false),
    ("new recipe", "new recipe nosuch/postgres://me:hunter2@h/d.toml", false),
    ("lua stubs", "lua stubs stubs.lua", true),
    ("schema", "schema recipe", true),
    ("library", "library . 'url=postgres://me:hunter2@h/d'", true),
    ("history", "history . --metric tps url=postgres://me:hunter2@h/d", false),
    ("serve", "serve postgres://me:hunter2@h/d", false),
    ("completions", "completions zsh", true),
    ("manual", "manual pages", true),
    ("top", "top postgres://me:hunter2@127.0.0.1:1/db", false),
    ("db add", "db add prod postgres://me:hunter2@h/d", false),
    ("db add", "db add other postgres://me@127.0.0.1:1/d --password-command 'echo # --password hunter2'", true),
    ("db list", "db list", true),
    ("db test", "db test other", false),
    ("db remove", "db remove other", true),
    (
        "sql",
        "sql 'SELECT \"postgres://me:hunter2@h/d\"' 'SELECT 1 -- password=hunter2' --db DB --runs 2 --record sql.json.zst",
        true,
    ),
    ("olap", "olap ./suite.lua --db DB --session-sql SQL --record olap.json", true),
    (
        "io",
        "io --size 1M --files 1 --log-size 64K --time 200ms --tag url=postgres://me:hunter2@h/d --record io.json.zst",
        true,
    ),
    ("lab list", "lab list", true),
    ("lab plan", "lab plan secret.toml", true),
    ("lab run", "lab run secret.toml --folder lab1", true),
    ("lab run", "lab run secret.toml --folder lab2 --set 'step.look.command=false --password hunter2'", false),
    ("lab status", "lab status lab1", true),
    ("lab show", "lab show lab1 --html lab.html --markdown lab.md --csv lab.csv", true),
    ("lab bundle", "lab bundle lab1 --output lab.tar.gz", true),
    ("lab schema", "lab schema", true),
    ("agent", "agent --nats nats://me:hunter2@127.0.0.1:1", false),
    ("fleet status", "fleet status --nats nats://me:hunter2@127.0.0.1:1", false),
    ("fleet doctor", "fleet doctor --nats nats://me:hunter2@127.0.0.1:1", false),
    ("fleet collect", "fleet collect --nats nats://me:hunter2@127.0.0.1:1", false),
    ("server start", "server start nosuch:15 --set 'primary_conninfo=password=hunter2'", false),
    ("server list", "server list", true),
    ("server stop", "server stop postgres://me:hunter2@h", false),
    ("server kill", "server kill postgres://me:hunter2@h", false),
    ("server restart", "server restart postgres://me:hunter2@h", false),
    ("server log", "server log postgres://me:hunter2@h", false),
    ("server sources", "server sources postgres", true),
    ("server images", "server images", true),
    ("server shell", "server shell postgres://me:hunter2@h", false),
    (
        "sysbench",
        "sysbench oltp_read_only --db-driver=mysql --mysql-port=1 --mysql-host=127.0.0.1 --mysql-password=hunter2 run",
        false,
    ),
    ("pgbench", "pgbench 'host=127.0.0.1 port=1 password=hunter2'", false),
];

/// An experiment whose values hold the secret in every way in which a recipe can.
const SECRETIVE: &str = r#"title = "Of postgres://me:hunter2@h/d"

[server.db]
url = "sqlite:lab.db"

[run]
workload = "tpcb --prepare"
options = { transactions = 5 }
session_sql = ["SELECT 'host=h password=hunter2'"]

[trials]
count = 1
repeats = 0

[[step]]
name = "look"
when = "before-measure"
command = "test -n postgres://me:hunter2@h/d; : mysql -uroot -phunter2"
"#;

const SUITE: &str = r#"--- One query.
function queries()
  assay.query{ name = "Q1", text = "SELECT 'host=h password=hunter2' AS x, 1" }
end
"#;

/// Every command that can be given, with those below it: `lab run`.
fn leaves(command: &clap::Command, above: &str) -> Vec<String> {
    let below = |one: &clap::Command| {
        let name = format!("{above} {}", one.get_name()).trim().to_owned();
        match one.has_subcommands() {
            true => leaves(one, &name),
            false => vec![name],
        }
    };
    command.get_subcommands().flat_map(below).collect()
}

/// Arguments of the processes below this one, and the variables of those that run as another user.
fn seen_below(pid: u32, seen: &mut String) {
    let owner = |place: &str| std::fs::metadata(place).ok().map(|found| found.uid());
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return };
    for thread in threads.flatten() {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            let place = format!("/proc/{child}");
            let read = |name: &str| std::fs::read(format!("{place}/{name}")).unwrap_or_default();
            *seen += &String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            if owner(&place) != owner("/proc/self") {
                *seen += &String::from_utf8_lossy(&read("environ"));
            }
            seen_below(child, seen);
        }
    }
}

#[test]
fn every_command_keeps_a_marked_password_from_files_streams_and_titles() {
    let all = leaves(&assay::command_line::definition_of(&[]), "");
    for (name, _, _) in EVERY_COMMAND {
        assert!(all.iter().any(|one| one == name), "there is no command {name}");
    }
    for name in &all {
        assert!(EVERY_COMMAND.iter().any(|(one, _, _)| one == name), "no line with a password for `assay {name}`");
    }
    let folder = Folder::new();
    folder.write("secret.toml", SECRETIVE);
    folder.write("suite.lua", SUITE);
    let mut seen = String::new();
    for (_, line, succeeds) in EVERY_COMMAND {
        let line = line.replace(" DB", " sqlite:a.db").replace(" SQL", " 'SELECT \"x\" /* password=hunter2 */'");
        let (stdout, stderr) = (folder.path().join("stdout"), folder.path().join("stderr"));
        let file = |path: &Path| std::fs::File::create(path).unwrap();
        let mut command = folder.command(&line);
        command.env("PATH", "/usr/bin:/bin").env("PGPASSWORD", SECRET).env("ASSAY_LAB", folder.path().join("lab"));
        let mut child = command.stdout(file(&stdout)).stderr(file(&stderr)).spawn().unwrap();
        let status = loop {
            seen_below(child.id(), &mut seen);
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None => std::thread::yield_now(),
            }
        };
        let said = std::fs::read_to_string(&stderr).unwrap();
        assert_eq!(status.success(), *succeeds, "assay {line}: {status}\n{said}");
        assert_ne!(status.code(), Some(70), "assay {line}\n{said}");
        // The user keeps passwords in a recipe and in the command of a database's name.
        check_files_but(&folder, &line, &["secret.toml", "suite.lua", "databases.toml"]);
        assert!(!seen.contains(SECRET), "assay {line} started: {seen}");
        seen.clear();
    }
}

#[test]
fn other_users_do_not_see_passwords_in_the_arguments_of_a_command() {
    let folder = Folder::new();
    let line = "run oltp_read_only --time 0 --interval 100ms --no-record --tables 1 --table-size 10 --prepare \
                --db sqlite:a.db --tag url=postgres://me:hunter2@h/d";
    let mut run = folder.start(line);
    run.wait_for("   0.2   ");
    let title = std::fs::read(format!("/proc/{}/cmdline", run.pid())).unwrap();
    let title = String::from_utf8_lossy(&title).replace('\0', " ");
    run.signal(Signal::SIGINT);
    run.finish();
    assert!(title.contains("--time 0 ") && title.contains("postgres://me:***@") && !title.contains(SECRET), "{title}");
}

#[test]
fn no_password_of_a_setting_reaches_what_a_server_and_its_record_leave() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    let lab = folder.path().join("lab");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let variables = [("ASSAY_LAB", lab.to_str().unwrap()), ("PATH", "/usr/bin:/bin")];
    let set = "--set 'primary_conninfo=host=127.0.0.1 port=1 user=u password=hunter2'";
    let run = format!("run tpcb --server postgres {set} --prepare --time 500ms --record r.json.zst");
    folder.expect_with(&variables, &run, 0);
    folder.expect_with(&variables, &format!("server start postgres --name p {set}"), 0);
    // What PostgreSQL itself reads, and what starts it again.
    let own = ["postgresql.conf", "passwords.json"];
    for line in ["server list", "server log p", "server images", "show r.json.zst --verbose", "server restart p"] {
        let ran = folder.expect_with(&variables, line, 0);
        assert!(!ran.shown().contains(SECRET), "assay {line}\n{}", ran.shown());
        check_files_but(&folder, line, &own);
    }
    for name in ["passwords.json", "postgresql.conf"] {
        let mode = std::fs::metadata(lab.join("servers/p").join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    folder.expect_with(&variables, "server stop p", 0);
    let record = Record::read(&folder.path().join("r.json.zst")).unwrap();
    let started = record.environment.started.unwrap();
    assert!(started.configuration.values().any(|text| text.contains("password=***")), "{started:?}");
}
