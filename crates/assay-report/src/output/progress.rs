//! The line that a running trial shows for every interval.

use crate::digits::{count, short, short_count, short_ms};
use crate::findings::interval::IntervalFindings;

/// The heads of `interval_line`'s columns, without a line end; the backlog's only in an open loop.
pub fn interval_header(open: bool) -> String {
    let latencies = ["p50 ms", "p95 ms", "p99 ms"];
    line(["time s", "sessions", "tx/s", "stmt/s", "read/s", "write/s", "other/s"], latencies, ["errors", "retries"])
        + if open { " backlog" } else { "" }
}

/// One line for an interval, without a line end.
pub fn interval_line(interval: &IntervalFindings, open: bool) -> String {
    let classes = &interval.qps_by_class;
    let figures = [
        format!("{:.1}", interval.end_ns as f64 / 1e9),
        count(interval.sessions.into()),
        short(interval.tps),
        short(interval.qps),
        short(classes.read),
        short(classes.write),
        short(classes.other),
    ];
    let response = &interval.response;
    let latencies = [response.p50_ns, response.p95_ns, response.p99_ns].map(short_ms);
    let troubles = [short_count(interval.errors), short_count(interval.retries)];
    let line = line(figures.each_ref(), latencies.each_ref(), troubles.each_ref());
    if open { format!("{line} {:>7}", short_count(interval.backlog)) } else { line }
}

/// Fixed widths, since later lines are not known: 99 columns with the backlog.
fn line<S: AsRef<str>>(figures: [S; 7], latencies: [S; 3], troubles: [S; 2]) -> String {
    let widths = [6, 8, 7, 7, 7, 7, 7, 6, 6, 6, 6, 7];
    let cells = figures.iter().chain(&latencies).chain(&troubles);
    let cells: Vec<String> = cells.zip(widths).map(|(cell, width)| format!("{:>width$}", cell.as_ref())).collect();
    cells.join(" ")
}
