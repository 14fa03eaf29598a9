//! What is read of a server beside a run.

use std::collections::BTreeSet;
use std::path::Path;

use assay_record::{Reading, ScopeKind};
use nix::sys::signal::Signal;
use testkit::ServerSetup;

use crate::common::counts::{check_counts, check_versions};
use crate::common::telemetry::{
    LOG, assert_log_agrees, assert_moved, reading, record, scope, series, server_cpu_ns, wait_for_reading, watched,
};
use crate::common::{Folder, ONE_TABLE};
use crate::on_every_version;

#[test]
fn counts_are_those_of_the_load_alone_on_every_version() {
    check_versions(&["postgres"], |_| vec!["autovacuum = off"]);
    // The only one with its extensions.
    if testkit::Kind::Postgres.present() {
        let config = ["autovacuum = off", "shared_preload_libraries = pg_stat_statements"].map(String::from).to_vec();
        let server = testkit::Kind::Postgres.start(&ServerSetup { config, ..ServerSetup::default() }).unwrap();
        server.sql("app", "CREATE EXTENSION pg_stat_statements").unwrap();
        let table = check_counts("Debian's postgres", &server);
        assert!(!table.contains("statements | 1.00 ± 0.10, or absent | absent"), "{table}");
        println!("{table}");
        statements_and_log_are_those_of_the_run(&server);
    }
}

/// Warns in one of ten transactions.
const WARNS: &str = r#"
function thread_init()
  con = sysbench.sql.driver():connect()
  update = con:prepare("UPDATE counted SET n = n + 1 WHERE id = ?", "i")
end
local n = 0
function event()
  n = n + 1
  update:perform(1)
  if n % 10 == 0 then con:query("DO $$ BEGIN RAISE WARNING 'one of ten'; END $$") end
end
"#;

/// The record has what the server counted for each statement, and what it wrote to its log meanwhile.
fn statements_and_log_are_those_of_the_run(server: &testkit::Server) {
    let folder = Folder::new();
    folder.write("warns.lua", WARNS);
    server.sql("app", "CREATE TABLE counted (id int, n int); INSERT INTO counted VALUES (1, 0)").unwrap();
    let url = server.url("app");
    folder.expect(&format!("run ./warns.lua --db {url} --transactions 200 --rate 100 --record r.json.zst"), 0);
    let found = record(folder.path());
    let of_server = scope(&found, ScopeKind::Server);
    let updates = of_server.statements.iter().find(|one| one.text.starts_with("UPDATE counted SET n = n +")).unwrap();
    assert_eq!((updates.calls, updates.rows), (200, 200), "{updates:?}");
    let warnings = of_server.log.iter().filter(|line| line.text.ends_with("WARNING:  one of ten")).count();
    assert!((15..=20).contains(&warnings), "{warnings} of 20: the last ones may be missing");
}

/// The log's position.
const POSITION: &str = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')";

#[test]
fn readings_agree_with_the_server_and_its_checkpoints() {
    on_every_version(|kind| {
        // Images of whole pages after a checkpoint would make the first transactions dearer than others.
        let config = ["full_page_writes = off", "autovacuum = off"].map(String::from).to_vec();
        let (folder, drive) = (Folder::new(), testkit::folder_on_a_drive().unwrap());
        let data = Some(drive.path().join("data"));
        let server = kind.start(&ServerSetup { config, data, ..ServerSetup::default() }).unwrap();
        let position = || server.sql("app", POSITION).unwrap().trim().parse::<u64>().unwrap();
        // Every insert logs as much as the one before: an update of a full page does not.
        let common = format!("oltp_insert --db {} --table-size 5000", server.url("app"));
        folder.expect(&format!("prepare {common} --no-record"), 0);
        assert_log_agrees(&folder, &server.url("app"), position);
        let found = watched(&folder, &format!("{common} --sessions 2"));
        let (of_server, machine) = (scope(&found, ScopeKind::Server), scope(&found, ScopeKind::Machine));
        assert_moved(of_server, &["commits", "buffer_reads", "log_bytes", "cpu_us"]);
        assert_moved(machine, &["cpu_user_us", "context_switches"]);
        assert!(server_cpu_ns(&found) > Some(0));
        for gauge in ["checkpoint_age_bytes", "checkpoint_age_limit_bytes", "data_bytes", "active_sessions"] {
            assert_eq!(series(of_server, gauge).reading, Reading::Gauge);
        }
        assert!(of_server.waits.as_ref().is_some_and(|waits| waits.looks.iter().sum::<u32>() > 0), "{of_server:?}");
        let at = &found.environment.servers[0];
        assert_eq!(at.origins["full_page_writes"], "configuration file");
        assert_eq!(at.settings["full_page_writes"], "off");
        assert!(at.facts.contains_key("filesystem") && at.facts["command line"].contains("postgres"), "{:?}", at.facts);

        // A checkpoint makes the log since the last one short, and a reset makes counters begin anew.
        let port = testkit::free_port().unwrap();
        let options = format!("--rate 20 --time 0 --interval 100ms --metrics-listen 127.0.0.1:{port} --no-record");
        let mut run = folder.start(&format!("run {common} {options} --format json"));
        let age = "assay_server_checkpoint_age_bytes";
        let old = wait_for_reading(&mut run, port, age, |age| age.is_some());
        server.sql("app", "CHECKPOINT").unwrap();
        wait_for_reading(&mut run, port, age, |age| age.is_some() && age < old);
        // So does a file of a known size on the drive.
        let written = "assay_machine_device_written_bytes_total";
        let device_before = reading(port, written);
        match device_before {
            Some(before) => {
                let file = std::fs::File::create(drive.path().join("known-size")).unwrap();
                std::io::Write::write_all(&mut &file, &vec![7; FILE_BYTES as usize]).unwrap();
                file.sync_all().unwrap();
                wait_for_reading(&mut run, port, written, |bytes| bytes >= Some(before + FILE_BYTES));
            }
            None => {
                testkit::refused("the data directory is on no drive of its own");
            }
        }
        let commits = "assay_server_commits_total";
        let many = wait_for_reading(&mut run, port, commits, |commits| commits.is_some());
        server.sql("app", "SELECT pg_stat_reset()").unwrap();
        wait_for_reading(&mut run, port, commits, |commits| commits.is_some() && commits < many);
        run.signal(Signal::SIGINT);
        let ran = run.finish();
        assert_eq!(ran.code, Some(0));
        // Too short a run for what sessions publish late.
        let of_server = ran.findings()["stages"][0]["telemetry"][0].clone();
        assert!(of_server["absent"].to_string().contains("its sessions publish it up to"), "{of_server}");

        // A user who may do nothing but the work sees less, and the record says why.
        server.sql("app", "CREATE ROLE plain LOGIN").unwrap();
        server.sql("app", "GRANT ALL ON ALL TABLES IN SCHEMA public TO plain").unwrap();
        server.sql("app", "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO plain").unwrap();
        let found = watched(&folder, &format!("oltp_insert --db {} --table-size 5000", server.url_as("plain", "app")));
        let of_server = scope(&found, ScopeKind::Server);
        assert_moved(of_server, &["commits", "log_bytes"]);
        series(of_server, "checkpoint_age_bytes");
        let absent: Vec<&str> = of_server.absent.iter().map(|one| one.metric.as_str()).collect();
        assert!(of_server.absent.iter().all(|one| !one.reason.is_empty()), "{:?}", of_server.absent);
        assert!(absent.contains(&"statements"), "{absent:?}");
        // Its own sessions are all that it sees, and there are no others.
        series(of_server, "active_sessions");
        let line = format!("run oltp_point_select --db {} --table-size 5000 --rate 1 --time 0", server.url("app"));
        let mut other = folder.start(&line);
        other.wait_for_interval(1);
        let found = watched(&folder, &format!("oltp_insert --db {} --table-size 5000", server.url_as("plain", "app")));
        let absent = &scope(&found, ScopeKind::Server).absent;
        for metric in ["active_sessions", "oldest_snapshot_age", "waits"] {
            let reason = absent.iter().find(|one| one.metric == metric).map(|one| one.reason.as_str());
            assert_eq!(reason, Some("sessions of other users are hidden: needs pg_monitor"), "{metric}");
        }
        other.signal(Signal::SIGINT);
        assert_eq!(other.finish().code, Some(0));
    });
}

const FILE_BYTES: u64 = 16 << 20;

#[test]
fn a_pooler_that_is_named_is_read_too() {
    if !testkit::Kind::PgBouncer.present() {
        return;
    }
    on_every_version(|kind| {
        let (folder, server) = (Folder::new(), kind.start(&ServerSetup::default()).unwrap());
        let pooler = server.pgbouncer(&[], 50).unwrap();
        folder.write("one_table.lua", ONE_TABLE);
        folder.expect(&format!("prepare ./one_table.lua --db {} --no-record", server.url("app")), 0);
        let administration = pooler.url_as("postgres", "pgbouncer");
        let url = pooler.url("app");
        let found = watched(
            &folder,
            &format!("./one_table.lua --db {url} --prepared off --sessions 3 --pooler {administration}"),
        );
        let of_server = scope(&found, ScopeKind::Server);
        assert_moved(of_server, &["pooler_transactions", "pooler_statements"]);
        // The process that answers may serve the load, too.
        assert_eq!(server_cpu_ns(&found), None);
        // Three sessions, and the one that reads the server.
        let clients = series(of_server, "pooler_clients_active").values.iter().flatten().max();
        assert!(clients.is_some_and(|clients| *clients >= 3), "{clients:?}");
        for gauge in ["pooler_clients_waiting", "pooler_servers_active", "pooler_servers_idle", "pooler_wait_max_us"] {
            series(of_server, gauge);
        }
    });
}

#[test]
fn a_machine_elsewhere_is_read_from_its_node_exporter() {
    let program = "/usr/bin/prometheus-node-exporter";
    if !testkit::installed(program) {
        return;
    }
    let (folder, server) = (Folder::new(), testkit::Kind::Postgres.start(&ServerSetup::default()).unwrap());
    let exporter_port = testkit::free_port().unwrap();
    let address = format!("--web.listen-address=127.0.0.1:{exporter_port}");
    let exporter =
        Running(std::process::Command::new(program).arg(address).stderr(std::process::Stdio::null()).spawn().unwrap());
    folder.write("one_table.lua", ONE_TABLE);
    let common = format!("./one_table.lua --db {}", server.url("app"));
    folder.expect(&format!("prepare {common} --no-record"), 0);
    let port = testkit::free_port().unwrap();
    let options = format!("--time 0 --interval 100ms --metrics-listen 127.0.0.1:{port} --record r.json.zst");
    let mut run = folder.start(&format!("run {common} {options} --host-metrics http://127.0.0.1:{exporter_port}"));
    // The exporter may begin to listen later than the run begins.
    let metric = "assay_machine_context_switches_total";
    let first = wait_for_reading(&mut run, port, metric, |switches| switches.is_some());
    wait_for_reading(&mut run, port, metric, |switches| switches > first);
    run.signal(Signal::SIGINT);
    assert_eq!(run.finish().code, Some(0));
    drop(exporter);
    let found = record(folder.path());
    let machine = scope(&found, ScopeKind::Machine);
    assert_moved(machine, &["cpu_user_us", "context_switches"]);
    assert_eq!(series(machine, "context_switches").source, "node_context_switches_total");
    for metric in
        ["cpu_idle_us", "memory_free_bytes", "memory_dirty_bytes", "network_received_bytes", "device_written_bytes"]
    {
        series(machine, metric);
    }
    let facts = &found.environment.servers[0].facts;
    assert!(facts.contains_key("host kernel") && facts.contains_key("host CPUs"), "{facts:?}");
}

/// A program that ends with the test.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    if !testkit::Kind::Postgres.present() {
        return;
    }
    let folder = Folder::new();
    folder.write("one_table.lua", ONE_TABLE);
    let url = testkit::Kind::Postgres.shared().url(&testkit::Kind::Postgres.shared().fresh_database().unwrap());
    let port = testkit::free_port().unwrap();
    let options = format!("--time 0 --interval 100ms --metrics-listen 127.0.0.1:{port} --no-record");
    let mut run = folder.start(&format!("run ./one_table.lua --prepare --db {url} {options}"));
    wait_for_reading(&mut run, port, LOG, |bytes| bytes.is_some());
    run.wait_for_interval(1);
    let text = crate::common::telemetry::exported(port).unwrap();
    run.signal(Signal::SIGINT);
    assert_eq!(run.finish().code, Some(0));
    let exported: BTreeSet<&str> = text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana/assay.json");
    let dashboard = std::fs::read_to_string(path).unwrap();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let asked: BTreeSet<&str> =
        dashboard.split(|c: char| !is_part(c)).filter(|word| word.starts_with("assay_")).collect();
    assert!(asked.len() > 20, "{asked:?}");
    // Some machines have no drive of their own to read, but the metric has this name and kind.
    let is_telemetry = |name: &str| {
        let metric = name.strip_prefix("assay_server_").or(name.strip_prefix("assay_machine_")).unwrap_or_default();
        let counter = metric.strip_suffix("_total");
        assay_telemetry::METRICS.iter().any(|known| {
            let is_counter = known.reading == assay_telemetry::Reading::Counter;
            known.name == counter.unwrap_or(metric) && is_counter == counter.is_some()
        })
    };
    let unknown: Vec<&&str> = asked.iter().filter(|name| !exported.contains(**name) && !is_telemetry(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not among {exported:?}");
}
