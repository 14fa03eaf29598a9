//! What is read of a server beside a run.

use assay_record::{Reading, ScopeKind};
use nix::sys::signal::Signal;
use testkit::Settings;

use crate::common::telemetry::{
    LOG, assert_log_agrees, assert_moved, record, scope, series, wait_for_reading, watched,
};
use crate::common::{Folder, ONE_TABLE};
use crate::on_every_version;

/// The log's position.
const POSITION: &str = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')";

#[test]
fn readings_agree_with_the_server_and_its_checkpoints() {
    on_every_version(|kind| {
        // Images of whole pages after a checkpoint would make the first transactions dearer than others.
        let config = ["full_page_writes = off", "autovacuum = off"].map(String::from).to_vec();
        let (folder, server) = (Folder::new(), kind.start(&Settings { config, ..Settings::default() }).unwrap());
        let position = || server.sql("app", POSITION).unwrap().trim().parse::<u64>().unwrap();
        // Every insert logs as much as the one before: an update of a full page does not.
        let common = format!("oltp_insert --db {} --table-size 5000", server.url("app"));
        folder.expect(&format!("prepare {common}"), 0);
        let before = position();
        let found = watched(&folder, &format!("{common} --sessions 2"));
        let after = position();
        let (of_server, machine) = (scope(&found, ScopeKind::Server), scope(&found, ScopeKind::Machine));
        assert_log_agrees(&found, after - before, 0.05);
        assert_moved(of_server, &["commits", "buffer_reads", "log_bytes", "cpu_us"]);
        assert_moved(machine, &["cpu_user_us", "context_switches"]);
        for gauge in ["checkpoint_age_bytes", "checkpoint_age_limit_bytes", "data_bytes", "active_sessions"] {
            assert_eq!(series(of_server, gauge).reading, Reading::Gauge);
        }
        assert!(of_server.waits.as_ref().is_some_and(|waits| waits.looks.iter().sum::<u32>() > 0), "{of_server:?}");
        let at = &found.environment.servers[0];
        assert_eq!(at.origins["full_page_writes"], "configuration file");
        assert_eq!(at.settings["full_page_writes"], "off");
        assert!(at.facts.contains_key("filesystem") && at.facts["command line"].contains("postgres"), "{:?}", at.facts);

        // A checkpoint makes the log since the last one short.
        let port = testkit::free_port().unwrap();
        let options = format!("--rate 20 --time 0 --interval 100ms --metrics-listen 127.0.0.1:{port} --no-record");
        let mut run = folder.start(&format!("run {common} {options}"));
        let age = "assay_server_checkpoint_age_bytes";
        let old = wait_for_reading(&mut run, port, age, |age| age.is_some());
        server.sql("app", "CHECKPOINT").unwrap();
        wait_for_reading(&mut run, port, age, |age| age.is_some() && age < old);
        run.signal(Signal::SIGINT);
        assert_eq!(run.finish().code, Some(0));
    });
}

#[test]
fn a_restart_is_a_gap_in_the_readings_and_no_negative_rate() {
    on_every_version(|kind| {
        let (folder, server) = (Folder::new(), kind.start(&Settings::default()).unwrap());
        folder.write("one_table.lua", ONE_TABLE);
        let common = format!("./one_table.lua --db {}", server.url("app"));
        folder.expect(&format!("prepare {common}"), 0);
        let port = testkit::free_port().unwrap();
        let options = format!("--time 0 --interval 100ms --metrics-listen 127.0.0.1:{port} --record r.json.zst");
        let mut run = folder.start(&format!("run {common} {options} --format json"));
        wait_for_reading(&mut run, port, LOG, |bytes| bytes.is_some());
        server.kill9().unwrap();
        wait_for_reading(&mut run, port, LOG, |bytes| bytes.is_none());
        server.restart().unwrap();
        wait_for_reading(&mut run, port, LOG, |bytes| bytes.is_some());
        run.signal(Signal::SIGINT);
        let ran = run.finish();
        assert_eq!(ran.code, Some(0), "{}", ran.shown());
        let found = record(folder.path());
        let values = &series(scope(&found, ScopeKind::Server), "log_bytes").values;
        let gap = values.iter().position(Option::is_none).unwrap();
        assert!(values[gap..].iter().any(Option::is_some), "{values:?}");
        let metrics = ran.findings()["stages"][0]["telemetry"][0]["metrics"].clone();
        for metric in metrics.as_array().unwrap() {
            let name = &metric["metric"];
            assert!(metric["per_s"].as_f64().is_none_or(|rate| rate >= 0.0), "{name}: {metric}");
        }
    });
}
