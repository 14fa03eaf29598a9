//! `assay server`, and runs that start their own: from the first command until the last file is removed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use testkit::Kind;

use crate::common::{Folder, ONE_TABLE, Ran};

/// A lab whose servers end with this process.
fn lab() -> PathBuf {
    testkit::lab_folder().unwrap()
}

#[track_caller]
fn expect(folder: &Folder, line: &str, code: i32) -> Ran {
    folder.expect_with(&[("ASSAY_LAB", lab().to_str().unwrap()), ("PATH", "/usr/bin:/bin")], line, code)
}

/// The line of a server in the list; empty if it is not listed.
fn listed(folder: &Folder, name: &str) -> String {
    let list = expect(folder, "server list", 0).stdout;
    let line = list.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn own(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

#[test]
fn a_server_is_started_loaded_stopped_and_removed() {
    if !Kind::Postgres.present() {
        return;
    }
    let (folder, name) = (Folder::new(), own("pg"));
    folder.write("one_table.lua", ONE_TABLE);
    let ran = expect(&folder, &format!("server start postgres --name {name} --set work_mem=5MB"), 0);
    let url = ran.stdout.trim().to_owned();
    assert!(url.starts_with("postgres://app@127.0.0.1:") && url.lines().count() == 1, "{}", ran.shown());
    assert!(ran.stderr.contains(&format!("stop it: assay server stop {name} --remove")), "{}", ran.shown());
    expect(&folder, &format!("run ./one_table.lua --prepare --db {url} --transactions 10 --no-record"), 0);
    assert!(listed(&folder, &name).contains(&format!("running {url}")));
    let again = expect(&folder, &format!("server start postgres --name {name}"), 2);
    assert!(again.stderr.contains(&format!("error: there is already a server {name}")), "{}", again.shown());
    assert!(
        expect(&folder, &format!("server log {name} --lines 100"), 0).stdout.contains("ready to accept connections")
    );
    expect(&folder, &format!("server restart {name}"), 0);
    let killed = expect(&folder, &format!("server kill {name}"), 0);
    assert!(killed.stderr.contains(&format!("killed {name}")), "{}", killed.shown());
    expect(&folder, &format!("server restart {name}"), 0);
    let stopped = expect(&folder, &format!("server stop {name}"), 0);
    assert!(stopped.stderr.starts_with(&format!("stopped {name} (SIGINT, ")), "{}", stopped.shown());
    assert!(listed(&folder, &name).contains("stopped"));
    assert!(expect(&folder, &format!("server shell {name}"), 2).stderr.contains("is not running"));
    expect(&folder, &format!("server stop {name} --remove"), 0);
    assert_eq!(listed(&folder, &name), "");
    let gone = expect(&folder, &format!("server stop {name}"), 2);
    assert!(gone.stderr.contains(&format!("there is no server {name}")), "{}", gone.shown());
}

#[test]
fn what_cannot_be_started_says_why_and_leaves_nothing() {
    if !Kind::Postgres.present() {
        return;
    }
    let (folder, name) = (Folder::new(), own("wrong"));
    let start = |words: &str, code: i32| {
        let ran = expect(&folder, &format!("server start --name {name} {words}"), code);
        assert_eq!((&*ran.stdout, listed(&folder, &name)), ("", String::new()));
        ran.stderr
    };
    assert!(start("postgres --set shared_bufers=1GB", 2).contains("hint: did you mean shared_buffers?"));
    assert!(start("postgers", 2).contains("hint: did you mean postgres?"));
    let value = start("postgres --set shared_buffers=many", 4);
    assert!(value.contains("did not start") && value.contains("invalid value for parameter"), "{value}");
    assert!(start("postgres --cpus 5000", 2).contains("this machine has no cpu 5000"));
    assert!(start("postgres --run-as no-such-user", 5).contains("no-such-user"));
    assert!(start("postgres --prepare tpcd", 2).contains("error: --prepare tpcd: "));
}

#[test]
fn a_program_that_fails_at_start_is_named_with_what_it_said() {
    let folder = Folder::new();
    let home = testkit::lab_folder().unwrap().join(format!("failing-{}", std::process::id()));
    let script = |path: &std::path::Path, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let text = "#!/bin/sh\necho on stdout\necho 'boom: no such thing' >&2\nexit 2\n";
    for (product, program) in [
        ("postgres", "postgres"),
        ("mysql", "mysqld"),
        ("mariadb", "mariadbd"),
        ("mongodb", "mongod"),
        ("ferretdb", "ferretdb"),
        ("clickhouse", "clickhouse-server"),
    ] {
        let (place, path) = (home.join(product), home.join(product).join("bin").join(program));
        script(&path, text);
        let ran = expect(&folder, &format!("server start {product} --binaries {}", place.display()), 5);
        let said = format!("error: {} cannot run: boom: no such thing\n  exit status: 2\n", path.display());
        assert!(ran.stderr.starts_with(&said), "{product}: {}", ran.shown());
    }
    let program = home.join("ferretdb/bin/ferretdb");
    let start = format!("server start ferretdb --binaries {}", home.join("ferretdb").display());
    script(&program, "#!/bin/sh\nkill -9 $$\n");
    assert!(expect(&folder, &start, 5).stderr.contains("cannot run: signal: 9 (SIGKILL)"));
    script(&program, "#!/no/such/interpreter\n");
    assert!(expect(&folder, &start, 5).stderr.contains("/ferretdb cannot run: No such file or directory"));
    script(&program, "#!/bin/sh\necho hello\n");
    assert!(expect(&folder, &start, 2).stderr.contains("/ferretdb is not FerretDB"));
    // The same for programs that are found by themselves, also those in front of servers.
    let found = home.join("found");
    script(&found.join("ferretdb"), text);
    script(&found.join("haproxy"), text);
    let path = format!("{}:/usr/bin:/bin", found.display());
    let variables = [("ASSAY_LAB", lab().to_str().unwrap().to_owned()), ("PATH", path)];
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let ran = folder.expect_with(&variables, "server start ferretdb", 5);
    assert!(ran.stderr.contains("/found/ferretdb cannot run: boom: no such thing\n"), "{}", ran.shown());
    std::fs::remove_dir_all(&home).unwrap();
}

#[test]
fn settings_have_values_where_the_product_wants_them() {
    let folder = Folder::new();
    for (line, said) in [
        ("server start postgres --set nosuch", "error: --set nosuch: expected NAME=VALUE"),
        ("server start clickhouse --set nosuch", "error: --set nosuch: expected NAME=VALUE"),
        ("server start mysql --set =5", "error: --set =5: expected NAME=VALUE"),
        ("run oltp_read_only --server postgres --set nosuch", "error: --set nosuch: expected NAME=VALUE"),
    ] {
        let ran = folder.expect(line, 2);
        assert!(ran.stderr.starts_with(said), "{line}: {}", ran.shown());
    }
}

#[test]
fn a_run_starts_its_own_server_records_its_settings_and_keeps_its_loaded_data_as_an_image() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    // A script that only this test has, so that the image is its own too.
    folder.write("own_table.lua", &format!("{ONE_TABLE}\n-- {} {:?}\n", own("test"), std::time::SystemTime::now()));
    let line = "run ./own_table.lua --prepare --server postgres --set work_mem=5MB --set my.limit=7 --transactions 10";
    let first = expect(&folder, &format!("{line} --record first.json"), 0);
    assert!(first.stderr.contains("prepared ./own_table.lua"), "{}", first.shown());
    let second = expect(&folder, &format!("{line} --record second.json"), 0);
    assert!(!second.stderr.contains("prepared"), "{}", second.shown());
    let record = std::fs::read_to_string(folder.path().join("second.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let started = &record["environment"]["started"];
    let setting = serde_json::json!({ "scope": "server", "name": "work_mem", "asked": "5MB", "in_effect": "5MB" });
    assert_eq!((&started["product"], &started["identity"][0]), (&"postgres".into(), &setting));
    assert!(started["configuration"]["postgresql.conf"].as_str().unwrap().contains("work_mem = '5MB'"));
    let scopes: Vec<&str> =
        started["identity"].as_array().unwrap().iter().map(|one| one["scope"].as_str().unwrap()).collect();
    assert!(scopes.contains(&"image") && started["timings_ns"]["start"].as_u64() > Some(0));
    let images = expect(&folder, "server images", 0).stdout;
    let key =
        images.lines().find(|line| line.contains("./own_table.lua")).unwrap().split(' ').next().unwrap().to_owned();
    expect(&folder, &format!("server images --verify {key}"), 0);
    expect(&folder, &format!("server images --remove {key}"), 0);
    assert!(!expect(&folder, "server images", 0).stdout.contains(&key));
}

#[test]
fn a_server_of_a_killed_run_is_stale_and_ended_by_the_next_command_that_is_told_to() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let line = "run ./one_table.lua --prepare --server postgres --time 0 --no-record";
    let mut command = folder.command(line);
    let mut run = command.env("ASSAY_LAB", lab()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(run.stderr.take().unwrap()));
    let mut lines = lines.map(Result::unwrap);
    let line = lines.find(|line| line.contains(" started for this run as ")).unwrap();
    let name = line.rsplit(' ').next().unwrap().to_owned();
    run.kill().unwrap();
    run.wait().unwrap();
    let list = expect(&folder, "server list", 0);
    assert!(list.stderr.contains("stop them: assay server stop --all-stale"), "{}", list.shown());
    let pid = std::fs::read_to_string(lab().join("servers").join(&name).join("assay.pid")).unwrap();
    let stat = Path::new("/proc").join(pid.split(' ').next().unwrap()).join("stat");
    // Orphans may be reaped late here, so a zombie counts as gone.
    let runs = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(runs());
    let stopped = expect(&folder, "server stop --all-stale", 0);
    assert!(stopped.stderr.contains(&format!("stopped {name} (SIGINT")), "{}", stopped.shown());
    assert!(!runs() && listed(&folder, &name).is_empty());
}

#[test]
fn a_run_goes_through_a_front_and_stays_on_the_cpus_of_the_generator() {
    if !Kind::Postgres.present() || !Kind::PgBouncer.present() {
        return;
    }
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let line = "run ./one_table.lua --server postgres --front pgbouncer --front-set default_pool_size=3 --cpus 0 --transactions 10";
    let prepared = expect(&folder, &format!("{line} --no-record"), 2);
    assert!(prepared.stderr.contains("or add `--prepared off`"), "{}", prepared.shown());
    expect(&folder, &format!("{line} --prepared off --prepare --record front.json"), 0);
    let record = std::fs::read_to_string(folder.path().join("front.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let environment = &record["environment"];
    assert_eq!(environment["cpus"], 1);
    let identity = environment["started"]["identity"].as_array().unwrap();
    let of = |scope: &str| -> Vec<(&str, &str)> {
        let own = identity.iter().filter(|one| one["scope"] == scope);
        own.map(|one| (one["name"].as_str().unwrap(), one["in_effect"].as_str().unwrap())).collect()
    };
    let [front, rest @ ..] = &of("front")[..] else { panic!("{identity:?}") };
    assert!(front.0 == "front" && front.1.starts_with("pgbouncer 1."), "{front:?}");
    assert_eq!(rest, [("servers", "primary"), ("default_pool_size", "3")]);
    let configuration = environment["started"]["configuration"].as_object().unwrap();
    let pooler = configuration.iter().find(|(name, _)| name.ends_with("/pgbouncer.ini")).unwrap().1;
    assert!(pooler.as_str().unwrap().ends_with("default_pool_size = 3\n"), "{pooler}");
}

#[test]
fn sources_list_what_can_be_started_and_the_command_that_fetches_the_rest() {
    let folder = Folder::new();
    let listed = expect(&folder, "server sources mysql", 0).stdout;
    assert!(listed.starts_with("product  version") && listed.contains("5.7.22"), "{listed}");
    let unknown = expect(&folder, "server sources oracle", 2);
    assert!(unknown.stderr.contains("unknown server oracle"), "{}", unknown.shown());
}

/// The oldest and the newest version of each product; with `ASSAY_TEST_MATRIX` all of the catalog.
#[test]
fn every_version_runs_the_workloads_directly_and_through_each_front() {
    let folder = Folder::new();
    let mut wrong = Vec::new();
    for wanted in testkit::versions() {
        let mut run = |line: &str| {
            let lab = lab();
            let variables = [("ASSAY_LAB", lab.as_os_str()), ("PATH", "/usr/bin:/bin".as_ref())];
            let output = folder.command(line).envs(variables).output().unwrap();
            if !output.status.success() {
                wrong.push(format!("assay {line}\n{}", String::from_utf8_lossy(&output.stderr)));
            }
        };
        // The server is started once: the fronts are chained, and all three answer.
        let name = own(&wanted.replace([':', '.'], "-"));
        let fronts =
            if wanted.starts_with("postgres") { "--front pgbouncer --front haproxy" } else { "--front haproxy" };
        run(&format!("server start {wanted} --name {name} {fronts}"));
        let listed = expect(&folder, "server list", 0).stdout;
        let urls =
            listed.lines().filter(|line| line.starts_with(&name)).filter_map(|line| line.split_whitespace().nth(4));
        for (place, url) in urls.enumerate() {
            // The server itself comes first in the list: its name is the shortest.
            let first = if place == 0 { "--prepare" } else { "--prepared off" };
            for workload in ["oltp_read_write --table-size 1000", "tpcc --customers 40 --items 1000"] {
                run(&format!("run {workload} --db {url} {first} --sessions 4 --transactions 100 --no-record"));
            }
        }
        run(&format!("server stop {name} --remove"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Metrics that grow under a load that reads and writes.
const GROWING: [&str; 4] = ["commits", "buffer_reads", "log_bytes", "cpu_us"];
/// Metrics of every server.
const OF_ALL: [&str; 10] = [
    "buffer_misses",
    "pages_written",
    "checkpoint_age_bytes",
    "checkpoint_age_limit_bytes",
    "purge_lag",
    "deadlocks",
    "active_sessions",
    "data_bytes",
    "data_folder_bytes",
    "rollbacks",
];
/// Metrics of one product, and the version that introduced them.
const OF_SOME: [(&str, &str, (u32, u32)); 22] = [
    ("checkpoints_timed", "postgres", (9, 6)),
    ("checkpoints_requested", "postgres", (9, 6)),
    ("oldest_snapshot_age", "postgres", (9, 6)),
    ("temporary_bytes", "postgres", (9, 6)),
    ("log_fsyncs", "postgres", (14, 0)),
    ("log_full_pages", "postgres", (14, 0)),
    ("log_buffer_full", "postgres", (14, 0)),
    ("log_fsyncs", "mysql", (5, 7)),
    ("log_fsyncs", "mariadb", (10, 2)),
    ("log_buffer_full", "mysql", (5, 7)),
    ("log_buffer_full", "mariadb", (10, 2)),
    ("dirty_pages", "mysql", (5, 7)),
    ("dirty_pages", "mariadb", (10, 2)),
    ("doublewrite_pages", "mysql", (5, 7)),
    ("doublewrite_pages", "mariadb", (10, 2)),
    ("lock_waits", "mysql", (5, 7)),
    ("lock_waits", "mariadb", (10, 2)),
    ("flush_adaptive_pages", "mysql", (5, 7)),
    ("flush_adaptive_pages", "mariadb", (10, 2)),
    ("statements", "mysql", (5, 7)),
    ("log_written_bytes", "mysql", (8, 0)),
    ("log_written_bytes", "mariadb", (10, 5)),
];

/// Of the products with SQL and transactions, with `ASSAY_TEST_MATRIX`; otherwise none: they would have to be fetched.
#[test]
fn every_version_has_the_metrics_that_are_promised_for_it() {
    if !testkit::matrix() {
        return;
    }
    let (folder, mut wrong) = (Folder::new(), Vec::new());
    let sources = expect(&folder, "server sources", 0).stdout;
    for line in sources.lines().skip(1) {
        let [product, version] = line.split_whitespace().take(2).collect::<Vec<_>>()[..] else { panic!("{line}") };
        if !["postgres", "mysql", "mariadb"].contains(&product) {
            continue;
        }
        let run = format!("run oltp_read_write --table-size 20000 --prepare --server {product}:{version} --sessions 2");
        let lab = lab();
        let variables = [("ASSAY_LAB", lab.as_os_str()), ("PATH", "/usr/bin:/bin".as_ref())];
        let line = format!("{run} --transactions 1000 --telemetry full --record r.json --force");
        let output = folder.command(&line).envs(variables).output().unwrap();
        if !output.status.success() {
            wrong.push(format!("assay {line}\n{}", String::from_utf8_lossy(&output.stderr)));
            continue;
        }
        let record = assay_record::Record::read(&folder.path().join("r.json")).unwrap();
        let server = &record.telemetry.as_ref().unwrap().scopes[0];
        let values = |metric: &str| -> Vec<u64> {
            let series = server.series.iter().filter(|series| series.metric == metric);
            series.flat_map(|series| series.values.iter().copied().flatten()).collect()
        };
        let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let number = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        let some = OF_SOME.iter().filter(|(_, of, from)| *of == product && number >= *from).map(|(metric, ..)| metric);
        for metric in OF_ALL.iter().chain(some) {
            if values(metric).is_empty() {
                wrong.push(format!("{product}:{version} has no {metric}: {:?}", server.absent));
            }
        }
        for metric in GROWING {
            let values = values(metric);
            if values.len() < 2 || values.last() <= values.first() {
                wrong.push(format!("{product}:{version}: {metric} does not grow: {values:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_shell_is_the_products_own_client() {
    if !Kind::Postgres.present() {
        return;
    }
    let (folder, name) = (Folder::new(), own("shell"));
    let url = expect(&folder, &format!("server start postgres --name {name}"), 0).stdout;
    let mut command = folder.command(&format!("server shell {name}"));
    let command = command.env("ASSAY_LAB", lab()).env("PATH", "/usr/bin:/bin");
    let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    client.stdin.take().unwrap().write_all(b"SELECT 40 + 2 AS answer;\n").unwrap();
    let output = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("answer") && said.contains("42"), "{said}");
    expect(&folder, &format!("server stop {name} --remove"), 0);
    if !Kind::Postgres18.present() {
        return;
    }
    // A product that has no client, on a machine without one.
    let url_18 = expect(&folder, &format!("server start postgres:18.6 --name {name}"), 0).stdout;
    let without =
        folder.expect_with(&[("ASSAY_LAB", lab().to_str().unwrap()), ("PATH", "")], &format!("server shell {name}"), 0);
    assert_eq!(without.stdout, url_18);
    assert!(url != url_18 && without.stderr.contains("no client program"), "{}", without.shown());
    expect(&folder, &format!("server stop {name} --remove"), 0);
}

/// If these tests run as root, this one needs a plain user; otherwise all of them run as one.
#[test]
fn a_plain_user_starts_servers_too() {
    if !Kind::Postgres.present() || !testkit::root("becoming a plain user") {
        return;
    }
    let folder = Folder::new();
    let place = folder.path().display().to_string();
    folder.write("one_table.lua", ONE_TABLE);
    // The program may be in a folder that only root can read.
    std::fs::copy(env!("CARGO_BIN_EXE_assay"), folder.path().join("assay")).unwrap();
    assert!(Command::new("chown").args(["-R", "nobody", &place]).status().unwrap().success());
    let lab = folder.path().join("lab");
    let run = |line: &str, code: i32| {
        let output = Command::new("setpriv")
            .args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "./assay"])
            .args(line.split(' '))
            .current_dir(folder.path())
            .env_clear()
            .envs([("HOME", &*place), ("ASSAY_LAB", lab.to_str().unwrap()), ("PATH", "/usr/bin:/bin")])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said).into_owned());
        assert_eq!(output.status.code(), Some(code), "assay {line}\n{stdout}{stderr}");
        (stdout, stderr)
    };
    let (url, said) = run("server start postgres --name plain", 0);
    assert!(said.contains("(user nobody, "), "{said}");
    run(&format!("run ./one_table.lua --prepare --db {} --transactions 10 --no-record", url.trim()), 0);
    let (list, _) = run("server list", 0);
    assert!(list.contains("running"), "{list}");
    run("server stop plain --remove", 0);
    let (_, memory) = run("server start postgres --name plain --memory 1G", 5);
    assert!(memory.contains("memory cannot be limited") && memory.contains("needs root"), "{memory}");
    let (_, user) = run("server start postgres --name plain --run-as daemon", 5);
    assert!(user.contains("only root can run a server as daemon"), "{user}");
    let (_, pages) = run("server start postgres --name plain --huge-pages 64M", 5);
    assert!(pages.contains("needs root"), "{pages}");
    assert_eq!(run("server list", 0).0, "");
}

/// However far its start has come: its folder, its process and its data are gone when the program has ended.
#[test]
fn a_second_interrupt_removes_a_server_that_is_being_started() {
    if !Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    let lab = folder.path().join("lab");
    let variables = [("ASSAY_LAB", lab.to_str().unwrap()), ("PATH", "/usr/bin:/bin")];
    // The data directory that both starts copy.
    folder.expect_with(&variables, "run oltp_point_select --server postgres --prepare --transactions 1 --no-record", 0);
    let servers = lab.join("servers");
    let entries =
        || -> Vec<PathBuf> { std::fs::read_dir(&servers).unwrap().map(|entry| entry.unwrap().path()).collect() };
    assert_eq!(entries(), [""; 0].map(PathBuf::from));
    let is_made = || !entries().is_empty();
    let is_started = || entries().iter().any(|server| server.join("assay.pid").is_file());
    for reached in [&is_made as &dyn Fn() -> bool, &is_started] {
        let started = folder.start_with(&variables, "run oltp_point_select --server postgres --time 1m --no-record");
        let waited = Instant::now();
        while !reached() {
            assert!(waited.elapsed() < Duration::from_secs(60), "it was never started");
            std::thread::yield_now();
        }
        started.signal(Signal::SIGINT);
        started.signal(Signal::SIGTERM);
        let ran = started.finish();
        assert!([Some(130), Some(143)].contains(&ran.code), "{}", ran.shown());
        assert_eq!(entries(), [""; 0].map(PathBuf::from), "{}", ran.shown());
        let listed = folder.expect_with(&variables, "server list", 0);
        assert!(!listed.stdout.contains("postgres-"), "{}", listed.shown());
    }
}

/// The programs of a container image; a script takes the place of podman, which itself is not tested.
#[test]
fn a_server_runs_out_of_a_container_image() {
    if !Kind::Postgres.present() || !testkit::root("the user of a server in a container image") {
        return;
    }
    let (folder, name) = (Folder::new(), own("contained"));
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = bin.join("podman");
    std::fs::write(&script, PODMAN).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let expect = |line: &str, code: i32| {
        folder.expect_with(&[("ASSAY_LAB", lab().to_str().unwrap()), ("PATH", &path)], line, code)
    };
    let sources = expect("server sources postgres", 0).stdout;
    let line = sources.lines().last().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(line, "postgres 15.999 image of podman --binaries container:localhost/postgres:15.999");
    let absent = expect("server start postgres --binaries container:localhost/absent:1", 5);
    assert!(absent.stderr.contains("get it first: podman pull localhost/absent:1"), "{}", absent.shown());
    let image = "--binaries container:localhost/postgres:15.999";
    let started = expect(&format!("server start postgres --name {name} {image} --set work_mem=5MB"), 0);
    assert!(started.stderr.contains("(user nobody, container image)"), "{}", started.shown());
    let pid = std::fs::read_to_string(lab().join("servers").join(&name).join("assay.pid")).unwrap();
    let root = std::fs::read_link(format!("/proc/{}/root", pid.split(' ').next().unwrap())).unwrap();
    assert!(root.to_str().unwrap().contains("/binaries/container-"), "{root:?}");
    folder.write("one_table.lua", ONE_TABLE);
    expect(&format!("run ./one_table.lua --prepare --db {} --transactions 10 --no-record", started.stdout.trim()), 0);
    expect(&format!("server restart {name}"), 0);
    let stopped = expect(&format!("server stop {name} --remove"), 0);
    assert!(stopped.stderr.contains("(SIGINT, "), "{}", stopped.shown());
    // Nothing remains mounted, and the tree is removed.
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains("/binaries/container-"), "{mounts}");
    std::fs::remove_dir_all(lab().join("binaries").join(root.file_name().unwrap())).unwrap();
}

/// A bare system installed in a folder: its root is not a mount point, so that the kernel refuses to change how its
/// mounts spread.
#[test]
fn a_container_image_is_used_in_a_chroot_too() {
    if !Kind::Postgres.present() || !testkit::root("a chroot") {
        return;
    }
    let (folder, name) = (Folder::new(), own("chroot"));
    let (bin, root) = (folder.path().join("bin"), folder.path().join("root"));
    std::fs::create_dir(&bin).unwrap();
    std::fs::create_dir(&root).unwrap();
    let script = bin.join("podman");
    std::fs::write(&script, PODMAN).unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let inside = |line: &str| {
        let output = Command::new("unshare")
            .args(["--mount", "--propagation", "unchanged", "sh", "-ec", CHROOT, "sh"])
            .arg(&root)
            .arg(folder.path())
            .arg(env!("CARGO_BIN_EXE_assay"))
            .args(line.split(' '))
            .env("ASSAY_LAB", lab())
            .env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", bin.display()))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}: {said}");
        said
    };
    let image = "--binaries container:localhost/postgres:15.999";
    let said = inside(&format!("server start postgres --name {name} {image}"));
    assert!(said.contains("(user nobody, container image)"), "{said}");
    expect(&folder, &format!("server stop {name} --remove"), 0);
}

/// The whole system, in a folder that is not a mount point itself.
const CHROOT: &str = r#"
root=$1 folder=$2
shift 2
# The tests may be in a chroot themselves, whose root is not a mount point and cannot be made private.
mount --make-rprivate / 2>/dev/null || {
  mount --bind "$folder" "$folder"
  mount --make-private "$folder"
}
for place in /*; do
  if [ -L "$place" ]; then cp -a "$place" "$root$place" 2>/dev/null || true
  elif [ -d "$place" ]; then mkdir -p "$root$place" && mount --rbind "$place" "$root$place"
  fi
done
exec chroot "$root" sh -ec 'cd "$1"; shift; exec "$@"' sh "$folder" "$@"
"#;

/// It has one image: this machine's PostgreSQL with the libraries that it needs.
const PODMAN: &str = r#"#!/bin/sh
case "$1 $2" in
"image ls") echo localhost/postgres:15.999 ;;
"image inspect") [ "$5" = localhost/postgres:15.999 ] && echo "sha256:$(basename "$(dirname "$(dirname "$0")")" | cksum | tr -d ' ')0000" ;;
"create "*) echo made ;;
"export "*)
  bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
  libraries=$(ldd "$bin/postgres" "$bin/initdb" /bin/sh | grep -o '/[^ ]*' | grep -v ':$' | sort -u)
  exec tar -chf - --ignore-failed-read "${bin%/bin}" /usr/share/postgresql /usr/share/zoneinfo /bin/sh $libraries
  ;;
"rm "*) ;;
*) exit 1 ;;
esac
"#;

/// A closed connection is closed at the server, too, and a replica that lags by seconds is stale.
#[test]
fn connects_and_stale_reads_are_measured_against_real_servers() {
    if !Kind::Postgres.present() {
        return;
    }
    let (folder, name) = (Folder::new(), own("lagging"));
    let lagging = "--replicas 1 --set recovery_min_apply_delay=3s";
    let started = expect(&folder, &format!("server start postgres --name {name} {lagging}"), 0);
    let primary = started.stdout.trim();
    let replica = started.stderr.lines().find_map(|line| line.trim().strip_prefix("replica: ")).unwrap().to_owned();
    let of_type = |ran: &Ran, name: &str| {
        let findings: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let types = findings["stages"][0]["total"]["types"].as_array().unwrap().clone();
        types.into_iter().find(|one| one["name"] == name).map_or(0, |one| one["transactions"].as_u64().unwrap())
    };
    let common = "--sessions 2 --format json --no-record";
    let ran = expect(&folder, &format!("run connects --db {primary} --transactions 60 {common}"), 0);
    let [connects, queries, closes] = ["connect", "first_query", "close"].map(|name| of_type(&ran, name));
    assert!(connects + queries + closes == 60 && connects >= closes && closes >= 18, "{}", ran.stdout);

    folder.write("closed.lua", CLOSED);
    expect(&folder, &format!("run ./closed.lua --db {primary} --transactions 20 --sessions 2 --no-record"), 0);
    let wrong =
        folder.write("far.lua", "function thread_init() sysbench.sql.driver():connect(2) end function event() end");
    let ran = expect(&folder, &format!("run {} --db {primary} --no-record", wrong.display()), 4);
    assert!(ran.stderr.contains("the script connects to server 2, but there are 1"), "{}", ran.shown());

    expect(&folder, &format!("prepare read_after_write --db {primary}"), 0);
    // The table reaches the replica three seconds later.
    let at_replica = "run ./there.lua --transactions 1 --no-record";
    folder.write("there.lua", THERE);
    expect(&folder, &format!("{at_replica} --db {replica}"), 0);
    let line = format!(
        "run read_after_write --db {primary} --db {replica} --transactions 2 --sessions 1 --format json --no-record"
    );
    let ran = expect(&folder, &line, 0);
    assert_eq!(["write", "visible"].map(|name| of_type(&ran, name)), [1, 1], "{}", ran.stdout);
    let findings: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let counters = findings["stages"][0]["counters"].as_array().unwrap();
    let sum = |name: &str| counters.iter().find(|one| one["name"] == name).and_then(|one| one["sum"].as_u64());
    assert_eq!((sum("reads"), sum("stale_reads")), (Some(1), Some(1)), "{}", ran.stdout);
    expect(&folder, &format!("server stop {name} --remove"), 0);
}

/// PostgreSQL's primary knows it, elsewhere only the replica does; without replicas nobody speaks of it.
#[test]
fn the_lag_of_a_replica_is_read_where_it_is_known() {
    for (kind, product) in [(Kind::Postgres, "postgres"), (Kind::MariaDb, "mariadb")] {
        if !kind.present() {
            continue;
        }
        let (folder, name) = (Folder::new(), own(&format!("behind-{product}")));
        let is_known_to_primary = kind == Kind::Postgres;
        let delay = if is_known_to_primary { "--set recovery_min_apply_delay=4s" } else { "" };
        let started = expect(&folder, &format!("server start {product} --name {name} --replicas 1 {delay}"), 0);
        let primary = started.stdout.trim();
        let replica = started.stderr.lines().find_map(|line| line.trim().strip_prefix("replica: ")).unwrap().to_owned();
        if !is_known_to_primary {
            folder.write("delay.lua", DELAY);
            expect(&folder, &format!("run ./delay.lua --db {replica} --transactions 1 --no-record"), 0);
        }
        folder.write("one_table.lua", ONE_TABLE);
        expect(&folder, &format!("prepare ./one_table.lua --db {primary}"), 0);
        folder.write("there.lua", &THERE.replace("read_after_write", "counter"));
        expect(&folder, &format!("run ./there.lua --transactions 1 --no-record --db {replica}"), 0);
        folder.write("look.lua", LOOK);
        let writes =
            folder.start(&format!("run ./one_table.lua --rate 50 --time 10s --db {primary} --record w.json.zst"));
        expect(&folder, &format!("run ./look.lua --rate 5 --time 8s --db {replica} --record r.json.zst"), 0);
        let wrote = writes.finish();
        assert_eq!(wrote.code, Some(0), "{}", wrote.shown());
        let known = lag_of(&folder, if is_known_to_primary { "w.json.zst" } else { "r.json.zst" });
        assert!(known.is_some_and(|us| (1_500_000..60_000_000).contains(&us)), "{product}: {known:?}");
        expect(&folder, &format!("server stop {name} --remove"), 0);
        let alone = expect(&folder, &format!("server start {product} --name {name}"), 0).stdout.trim().to_owned();
        expect(&folder, &format!("prepare ./one_table.lua --db {alone}"), 0);
        expect(&folder, &format!("run ./one_table.lua --transactions 50 --db {alone} --record a.json.zst"), 0);
        assert_eq!(lag_of(&folder, "a.json.zst"), None, "{product}");
        expect(&folder, &format!("server stop {name} --remove"), 0);
    }
}

/// The largest lag in a record of one server, in microseconds.
fn lag_of(folder: &Folder, record: &str) -> Option<u64> {
    let record = assay_record::Record::read(&folder.path().join(record)).unwrap();
    let scopes = record.telemetry.unwrap().scopes;
    let server = scopes.iter().find(|scope| scope.kind == assay_record::ScopeKind::Server).unwrap();
    assert!(!server.absent.iter().any(|one| one.metric.starts_with("replica_lag")), "{:?}", server.absent);
    let lag = server.series.iter().find(|series| series.metric == "replica_lag_us");
    lag.and_then(|lag| lag.values.iter().copied().flatten().max())
}

const LOOK: &str = r#"
function event()
  local con = sysbench.sql.driver():connect()
  con:query("SELECT n FROM counter WHERE id = 1")
  con:disconnect()
end
"#;

const DELAY: &str = r#"
function event()
  local con = sysbench.sql.driver():connect()
  con:query("STOP SLAVE")
  con:query("CHANGE MASTER TO MASTER_DELAY = 4")
  con:query("START SLAVE")
  con:disconnect()
end
"#;

/// Fails if a session of the server outlives `close`.
const CLOSED: &str = r#"
function thread_init()
  driver = sysbench.sql.driver()
  watch = driver:connect()
end
function event()
  local con = driver:connect()
  local pid = con:query_row("SELECT pg_backend_pid()")
  con:close()
  local left = watch:query_row("SELECT count(*) FROM pg_stat_activity WHERE pid = " .. pid)
  if left ~= "0" then error("session " .. pid .. " is still there") end
end
"#;

/// Waits until the table has arrived.
const THERE: &str = r#"
function event()
  local con = sysbench.sql.driver():connect()
  while con:query_row("SELECT count(*) FROM information_schema.tables WHERE table_name = 'read_after_write'") == "0" do assay.sleep(0.05) end
  con:disconnect()
end
"#;
