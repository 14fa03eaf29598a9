//! Outages and interrupts, which look the same on every server.

use assay_record::ScopeKind;
use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::{Kind, ServerSetup, redact};

use crate::common::telemetry::{LOG, record, scope, series, wait_for_reading};
use crate::common::{Folder, ONE_TABLE};

/// A number in a report.
pub(crate) fn count(of: &Value) -> u64 {
    of.as_u64().unwrap_or_else(|| panic!("{of} is not a count"))
}

/// A server is killed and restarted during a run.
pub(crate) fn comes_back(kind: Kind) {
    let (folder, server) = (Folder::new(), kind.start(&ServerSetup::default()).unwrap());
    folder.write("one_table.lua", ONE_TABLE);
    let common = format!("./one_table.lua --db {}", server.url("app"));
    folder.expect(&format!("prepare {common}"), 0);
    let port = testkit::free_port().unwrap();
    let options = format!("--time 0 --interval 100ms --metrics-listen 127.0.0.1:{port} --record r.json.zst");
    let mut started = folder.start(&format!("run {common} --sessions 3 {options} --format json"));
    started.wait_for("   0.3   ");
    wait_for_reading(&mut started, port, LOG, |bytes| bytes.is_some());
    server.kill9().unwrap();
    started.wait_for("is unavailable");
    wait_for_reading(&mut started, port, LOG, |bytes| bytes.is_none());
    // Two whole intervals without a server.
    for _ in 0..3 {
        started.wait_for_interval(0);
    }
    server.restart().unwrap();
    started.wait_for("is back");
    for _ in 0..3 {
        while started.wait_for_interval(3) == 0.0 {}
    }
    wait_for_reading(&mut started, port, LOG, |bytes| bytes.is_some());
    started.signal(Signal::SIGINT);
    let ran = started.finish();
    assert_eq!(ran.code, Some(0), "{}", ran.shown());

    let findings = ran.findings();
    let stage = &findings["stages"][0];
    let (total, intervals) = (&stage["total"], stage["intervals"].as_array().unwrap());
    let done = |interval: &Value| count(&interval["transactions"]);
    let first_dark = intervals.iter().position(|interval| done(interval) == 0).unwrap();
    let before: u64 = intervals[..first_dark].iter().map(done).sum();
    let after: u64 = intervals[first_dark..].iter().map(done).sum();
    assert!(before > 0 && after > 0, "{intervals:?}");
    assert!(intervals.iter().filter(|interval| done(interval) == 0).count() >= 2, "{intervals:?}");
    let transactions = count(&total["transactions"]);
    assert_eq!(intervals.iter().map(done).sum::<u64>(), transactions);
    for key in ["errors", "retries", "reconnects"] {
        let sum: u64 = intervals.iter().map(|interval| count(&interval[key])).sum();
        assert_eq!(sum, count(&total[key]), "{key}: {stage}");
    }
    assert_eq!((count(&total["reconnects"]), count(&total["failed"])), (3, 0), "{stage}");
    let by_kind = total["errors_by_kind"].as_array().unwrap().iter();
    assert_eq!(by_kind.map(|kind| count(&kind["count"])).sum::<u64>(), count(&total["errors"]));
    // The outage shows in the response times of the transactions that waited for its end; these are the retried ones.
    assert!(count(&total["response"]["max_ns"]) > 200_000_000, "{stage}");
    assert_eq!(count(&total["response"]["count"]), transactions);
    // If the kill cut off the answer to a commit, the server may have kept it, and the retry did the work again.
    let seen: u64 = server.sql("app", "SELECT SUM(n) FROM counter").unwrap().trim().parse().unwrap();
    assert!((transactions..=transactions + 3 + count(&total["unfinished"])).contains(&seen), "{seen}: {stage}");

    let shown = folder.expect("show r.json.zst --format json", 0);
    assert_eq!(shown.stdout, ran.stdout);

    // A restart is a gap in the readings; counters that restart at zero cause no negative rate.
    let found = record(folder.path());
    let values = &series(scope(&found, ScopeKind::Server), "log_bytes").values;
    let gap = values.iter().position(Option::is_none).unwrap();
    assert!(values[gap..].iter().any(Option::is_some), "{values:?}");
    for metric in stage["telemetry"][0]["metrics"].as_array().unwrap() {
        assert!(metric["per_s"].as_f64().is_none_or(|rate| rate >= 0.0), "{metric}");
    }
}

/// A server is killed permanently during a run; returns the error that ends the run.
pub(crate) fn stays_away(kind: Kind) -> String {
    let (folder, server) = (Folder::new(), kind.start(&ServerSetup::default()).unwrap());
    folder.write("one_table.lua", ONE_TABLE);
    let common = format!("./one_table.lua --db {}", server.url("app"));
    folder.expect(&format!("prepare {common}"), 0);
    let limits = "--time 10m --reconnect-time 300ms --interval 100ms";
    let mut started = folder.start(&format!("run {common} --sessions 2 {limits} --format json --record r.json.zst"));
    started.wait_for("   0.2   ");
    server.kill9().unwrap();
    let ran = started.finish();
    assert_eq!(ran.code, Some(4), "{}", ran.shown());
    let error = &ran.stderr[ran.stderr.find("error:").unwrap()..];
    let error = redact::replace(error, &[(&server.port().to_string(), "[PORT]")]);
    assert_eq!(ran.findings()["status"], "failed");
    assert!(count(&ran.findings()["stages"][0]["total"]["transactions"]) > 0);
    assert_eq!(folder.expect("show r.json.zst --format json", 0).stdout, ran.stdout);
    error
}

/// Ctrl-C during a run. `options`: additional ones.
pub(crate) fn is_interrupted(kind: Kind, options: &str) {
    let server = kind.shared();
    let folder = Folder::new();
    let common = format!("oltp_read_write --db {} --table-size 1000", server.url(&server.fresh_database().unwrap()));
    folder.expect(&format!("prepare {common}"), 0);
    let line = format!("run {common} --sessions 4 --time 10m --interval 100ms {options} --record r.json.zst");
    let mut started = folder.start(&line);
    started.wait_for("   0.2   ");
    started.signal(Signal::SIGINT);
    let ran = started.finish();
    assert_eq!(ran.code, Some(130), "{}", ran.shown());
    assert!(ran.stdout.contains("interrupted"), "{}", ran.shown());
    let findings = folder.expect("show r.json.zst --format json", 0).findings();
    assert_eq!(findings["status"], "interrupted");
    let total = &findings["stages"][0]["total"];
    assert!(count(&total["transactions"]) > 0);
    // Statements in flight were finished, not cut off.
    assert_eq!(count(&total["unfinished"]), 0, "{total}");
    folder.expect(&format!("check {common}"), 0);
}
