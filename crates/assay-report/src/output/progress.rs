//! The line that a running trial shows for every interval.

use crate::digits::{count, short, short_count, short_ms};
use crate::findings::interval::IntervalFindings;

/// Which columns a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOf {
    /// Of a closed loop.
    Closed,
    /// The backlog too.
    Open,
    /// Where the rate changes: what is due per second too, in place of statements that neither read nor write.
    Varying,
}

/// The heads of `interval_line`'s columns, without a line end.
pub fn interval_header(of: LineOf) -> String {
    let latencies = ["p50 ms", "p95 ms", "p99 ms"];
    let last = if of == LineOf::Varying { "due/s" } else { "other/s" };
    line(["time s", "sessions", "tx/s", "stmt/s", "read/s", "write/s", last], latencies, ["errors", "retries"])
        + if of == LineOf::Closed { "" } else { " backlog" }
}

/// One line for an interval, without a line end.
pub fn interval_line(interval: &IntervalFindings, of: LineOf) -> String {
    let classes = &interval.qps_by_class;
    let figures = [
        format!("{:.1}", interval.end_ns as f64 / 1e9),
        count(interval.sessions.into()),
        short(interval.tps),
        short(interval.qps),
        short(classes.read),
        short(classes.write),
        short(if of == LineOf::Varying { interval.due_per_s.unwrap_or(0.0) } else { classes.other }),
    ];
    let response = &interval.response;
    let latencies = [response.p50_ns, response.p95_ns, response.p99_ns].map(short_ms);
    let troubles = [short_count(interval.errors), short_count(interval.retries)];
    let line = line(figures.each_ref(), latencies.each_ref(), troubles.each_ref());
    if of == LineOf::Closed { line } else { format!("{line} {:>7}", short_count(interval.backlog)) }
}

/// Fixed widths, since later lines are not known: 99 columns with the backlog.
fn line<S: AsRef<str>>(figures: [S; 7], latencies: [S; 3], troubles: [S; 2]) -> String {
    let widths = [6, 8, 7, 7, 7, 7, 7, 6, 6, 6, 6, 7];
    let cells = figures.iter().chain(&latencies).chain(&troubles);
    let cells: Vec<String> = cells.zip(widths).map(|(cell, width)| format!("{:>width$}", cell.as_ref())).collect();
    cells.join(" ")
}
