//! What is read beside a run, compared with what the server says.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use assay_record::{Record, Scope, ScopeKind, Series, Stage};
use nix::sys::signal::Signal;

use super::{Folder, Started};

/// A record's only server, or its machine.
pub(crate) fn scope(record: &Record, kind: ScopeKind) -> &Scope {
    let telemetry = record.telemetry.as_ref().expect("the run was watched");
    telemetry.scopes.iter().find(|scope| scope.kind == kind).unwrap_or_else(|| panic!("no {kind:?}: {telemetry:?}"))
}

/// Readings of a metric.
#[track_caller]
pub(crate) fn series<'a>(scope: &'a Scope, metric: &str) -> &'a Series {
    let found = scope.series.iter().find(|series| series.metric == metric);
    found.unwrap_or_else(|| panic!("{metric} was not read: {:?}", scope.absent))
}

/// That these were read, and grew while the load was on.
#[track_caller]
pub(crate) fn assert_moved(scope: &Scope, metrics: &[&str]) {
    for metric in metrics {
        let values: Vec<u64> = series(scope, metric).values.iter().copied().flatten().collect();
        assert!(values.len() > 1 && values.last() > values.first(), "{metric}: {values:?}");
    }
}

/// That the log bytes read per transaction are those between two positions, to `share`: whenever in a sample the
/// position was read, and whenever in an interval its transactions ended.
#[track_caller]
pub(crate) fn assert_log_agrees(record: &Record, bytes: u64, share: f64) {
    let [stage] = &record.stages[..] else { panic!("one stage") };
    let server = scope(record, ScopeKind::Server);
    let values = &series(server, "log_bytes").values;
    let known: Vec<usize> = (0..values.len()).filter(|at| values[*at].is_some()).collect();
    let (first, last) = (known[0], *known.last().unwrap());
    let read = (values[last].unwrap() - values[first].unwrap()) as f64;
    let start = stage.start_ns.unwrap();
    let done_by = |ns: u64, whole: bool| done_by(stage, ns.saturating_sub(start), whole) as f64;
    let least = done_by(server.began_ns[last], true) - done_by(server.ended_ns[first], false);
    let most = done_by(server.ended_ns[last], false) - done_by(server.began_ns[first], true);
    let all: u64 = stage.total.transactions.iter().map(|one| one.count).sum();
    let each = bytes as f64 / all as f64;
    assert!(least > 0.0, "the samples lie too close together to say anything: {:?}", server.began_ns);
    assert!(
        read >= each * least * (1.0 - share) && read <= each * most * (1.0 + share),
        "{read} bytes were read in {least} to {most} transactions of {each} bytes"
    );
}

/// Transactions that had ended by then; those of the interval that `ns` lies in only where `whole` is false.
fn done_by(stage: &Stage, ns: u64, whole: bool) -> u64 {
    let intervals = stage.intervals.iter().filter(|interval| match whole {
        true => interval.start_ns + interval.length_ns <= ns,
        false => interval.start_ns < ns,
    });
    intervals.flat_map(|interval| &interval.transactions).sum()
}

/// The last reading of a metric as the run serves it now; `None`: it could not be read.
pub(crate) fn reading(port: u16, metric: &str) -> Option<u64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let line = answer.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix("{target=\"0\"} "))?;
    line.parse().ok()
}

/// Waits until the reading is as wanted, looking after every line of the run.
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

/// The log's position, as the run serves it.
pub(crate) const LOG: &str = "assay_server_log_bytes_total";

/// A run of a command that goes on until the log was read three times, and its record.
pub(crate) fn watched(folder: &Folder, command: &str) -> Record {
    let port = testkit::free_port().unwrap();
    let options = format!("--time 0 --interval 100ms --metrics-listen 127.0.0.1:{port} --record r.json.zst");
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
