//! Live output of a trial: a line per interval, or one updating line on a terminal.

use crate::digits::{clock, count, short, short_count, short_ms, sparkline};
use crate::findings::interval::IntervalFindings;
use crate::plain::View;

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The current part: `trial 2 of 5`; may be empty.
    pub label: String,
    /// Time since the start of the first part.
    pub elapsed_ns: u64,
    /// Planned duration of all parts; `None`: unknown.
    pub total_ns: Option<u64>,
    /// Throughput so far, one value per interval or trial.
    pub tps: Vec<f64>,
    /// Response time of the last interval.
    pub p99_ns: Option<u64>,
    /// Errors so far.
    pub errors: u64,
}

impl Progress {
    /// One more interval: transactions per second, the response time and the errors in it.
    pub fn add(&mut self, tps: f64, p99_ns: Option<u64>, errors: u64) {
        self.tps.push(tps);
        self.p99_ns = p99_ns;
        self.errors = self.errors.saturating_add(errors);
    }
}

/// A bar with elapsed and remaining time, current and earlier throughput; as much of it as fits.
pub fn progress_line(progress: &Progress, view: View) -> String {
    /// A wider bar is not more useful.
    const HISTORY_MAX: usize = 30;
    const HISTORY_MIN: usize = 8;
    let elapsed = progress.total_ns.map_or(progress.elapsed_ns, |total| progress.elapsed_ns.min(total));
    let bar_width = view.width / 6;
    let bar = progress.total_ns.filter(|total| *total > 0).map(|total| {
        let done = (elapsed as f64 / total as f64 * bar_width as f64) as usize;
        format!("[{}{}] ", "#".repeat(done), "-".repeat(bar_width - done.min(bar_width)))
    });
    let total = progress.total_ns.map(|total| format!(" / {}", clock(total))).unwrap_or_default();
    let left = progress.total_ns.map(|total| format!("{} left", clock(total - elapsed)));
    let of_interval = |text: String| (!progress.tps.is_empty()).then_some(text);
    let errors =
        if progress.errors == 1 { "1 error".into() } else { format!("{} errors", short_count(progress.errors)) };
    // The part with the highest number is omitted first if the line does not fit.
    let parts = [
        (0, Some(format!("{}{}{total}", bar.unwrap_or_default(), clock(elapsed)))),
        (4, left),
        (0, progress.tps.last().map(|tps| format!("{} tx/s", short(*tps)))),
        (1, progress.p99_ns.map(|p99| format!("p99 {} ms", short_ms(Some(p99))))),
        (2, of_interval(errors)),
        (3, Some(progress.label.clone()).filter(|label| !label.is_empty())),
    ];
    let line = |most: u8| {
        let shown = parts.iter().filter(|(rank, _)| *rank <= most).filter_map(|(_, part)| part.as_deref());
        shown.collect::<Vec<_>>().join("  ")
    };
    let fits = |line: &String| line.chars().count() < view.width;
    let line = (0..=4).rev().map(line).find(fits).unwrap_or_else(|| line(0));
    let room = view.width.saturating_sub(line.chars().count() + 3).min(HISTORY_MAX);
    if room < HISTORY_MIN || progress.tps.len() < 2 {
        return line;
    }
    format!("{line}  {}", sparkline(&progress.tps[progress.tps.len().saturating_sub(room)..]))
}

/// Columns of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOf {
    /// For a closed loop.
    Closed,
    /// With the backlog.
    Open,
    /// If the rate changes: transactions due per second, instead of statements that neither read nor write.
    Varying,
}

/// The headers of `interval_line`'s columns, without a line end.
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

/// Fixed widths, because later lines are unknown: 99 columns with the backlog.
fn line<S: AsRef<str>>(figures: [S; 7], latencies: [S; 3], troubles: [S; 2]) -> String {
    let widths = [6, 8, 7, 7, 7, 7, 7, 6, 6, 6, 6, 7];
    let cells = figures.iter().chain(&latencies).chain(&troubles);
    let cells: Vec<String> = cells.zip(widths).map(|(cell, width)| format!("{:>width$}", cell.as_ref())).collect();
    cells.join(" ")
}
