//! Telemetry of a run, compared with the server's own figures.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use assay_record::{Record, Scope, ScopeKind, Series};
use nix::sys::signal::Signal;

use super::{Folder, Started};

/// A record's only server, or its machine.
pub(crate) fn scope(record: &Record, kind: ScopeKind) -> &Scope {
    let telemetry = record.telemetry.as_ref().expect("the run was watched");
    telemetry.scopes.iter().find(|scope| scope.kind == kind).unwrap_or_else(|| panic!("no {kind:?}: {telemetry:?}"))
}

/// CPU time that the server spent on being read.
pub(crate) fn server_cpu_ns(record: &Record) -> Option<u64> {
    record.telemetry.as_ref().expect("the run was watched").cost.server_cpu_ns
}

/// Readings of a metric.
#[track_caller]
pub(crate) fn series<'a>(scope: &'a Scope, metric: &str) -> &'a Series {
    let found = scope.series.iter().find(|series| series.metric == metric);
    found.unwrap_or_else(|| panic!("{metric} was not read: {:?}", scope.absent))
}

/// Asserts that these were read, and grew during the load.
#[track_caller]
pub(crate) fn assert_moved(scope: &Scope, metrics: &[&str]) {
    for metric in metrics {
        let values: Vec<u64> = series(scope, metric).values.iter().copied().flatten().collect();
        assert!(values.len() > 1 && values.last() > values.first(), "{metric}: {values:?}");
    }
}

/// Every transaction logs about 50 KB: what the server logs on its own is little in comparison.
const HEAVY: &str = r#"--- Inserts rows that are large and all alike.

function prepare()
  local con = sysbench.sql.driver():connect()
  if sysbench.opt.db_driver == "pgsql" then
    con:query("CREATE TABLE heavy(id SERIAL PRIMARY KEY, body TEXT)")
    con:query("ALTER TABLE heavy ALTER body SET STORAGE EXTERNAL")
  else
    con:query("CREATE TABLE heavy(id INT AUTO_INCREMENT PRIMARY KEY, body LONGTEXT)")
  end
end

function thread_init()
  con = sysbench.sql.driver():connect()
end

function event()
  con:query("INSERT INTO heavy(body) VALUES (repeat('x', 50000))")
end
"#;

/// Asserts that the log bytes per transaction that a run reports match the server's own positions before and after it,
/// to 1 %. Transactions are due evenly, so the exact time of a reading matters little; but a busy machine may read
/// late, or make transactions wait. So one of several runs must agree: a wrong figure never does.
#[track_caller]
pub(crate) fn assert_log_agrees(folder: &Folder, url: &str, position: impl Fn() -> u64) {
    const RUNS: usize = 5;
    folder.write("heavy.lua", HEAVY);
    folder.expect(&format!("prepare ./heavy.lua --db {url} --no-record"), 0);
    let run = format!(
        "run ./heavy.lua --db {url} --sessions 4 --rate 200 --transactions 400 --interval 100ms --format json --no-record"
    );
    let mut apart = Vec::new();
    for _ in 0..RUNS {
        let before = position();
        let found = folder.expect(&run, 0).findings();
        let server = (position() - before) as f64 / 400.0;
        let stage = &found["stages"][0];
        assert_eq!(stage["total"]["transactions"], 400, "{stage}");
        let metrics = stage["telemetry"][0]["metrics"].as_array().unwrap();
        let log = metrics.iter().find(|metric| metric["metric"] == "log_bytes").expect("it is read");
        apart.push(log["per_transaction"].as_f64().unwrap() / server - 1.0);
        if apart.last().is_some_and(|share| share.abs() < 0.01) {
            return;
        }
    }
    panic!("log bytes per transaction differ from the server's position by these shares: {apart:?}");
}

/// What the run exports now.
pub(crate) fn exported(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// The last reading of a metric as the run exports it now; `None` if it could not be read.
pub(crate) fn reading(port: u16, metric: &str) -> Option<u64> {
    let answer = exported(port)?;
    let line = answer.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix("{target=\"0\"} "))?;
    line.parse().ok()
}

/// Waits for a reading with this property, checking after every line of the run.
#[track_caller]
pub(crate) fn wait_for_reading(
    run: &mut Started<'_>,
    port: u16,
    metric: &str,
    wanted: impl Fn(Option<u64>) -> bool,
) -> Option<u64> {
    loop {
        let found = reading(port, metric);
        if wanted(found) {
            return found;
        }
        run.wait_for("");
    }
}

/// The log's position, as the run exports it.
pub(crate) const LOG: &str = "assay_server_log_bytes_total";

/// A run of a command that goes on until the log was read three times; returns its record.
pub(crate) fn watched(folder: &Folder, command: &str) -> Record {
    let port = testkit::free_port().unwrap();
    let options = format!("--time 0 --interval 100ms --metrics-listen 127.0.0.1:{port} --record r.json.zst --force");
    let mut run = folder.start(&format!("run {command} {options}"));
    let mut last = None;
    for _ in 0..3 {
        last = wait_for_reading(&mut run, port, LOG, |bytes| bytes > last);
    }
    run.signal(Signal::SIGINT);
    let ran = run.finish();
    assert_eq!(ran.code, Some(0), "{}", ran.shown());
    record(folder.path())
}

/// The record of a run in this folder.
pub(crate) fn record(folder: &Path) -> Record {
    Record::read(&folder.join("r.json.zst")).unwrap()
}
