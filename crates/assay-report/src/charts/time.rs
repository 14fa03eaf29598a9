//! Charts over time: throughput, latency, troubles and the heat map of one record, and several records above each other.

use crate::charts::chart::{
    Axis, Body, Chart, LINES_MAX, Line, Mark, MarkKind, NAME_WIDTH, STAGES_MAX, Scale, axis, rounded,
};
use crate::digits::{count, figure};
use crate::findings::capacity::{Capacity, CapacityFindings};
use crate::findings::interval::{IntervalFindings, bucket_bounds_ns};
use crate::findings::latency::LatencyFindings;
use crate::findings::report::Entry;
use crate::findings::run::Findings;
use crate::findings::stage::StageFindings;
use crate::plain::clean;
use crate::words::outage::outage_words;
use crate::words::run::sessions;

/// A day of seconds is 86,400; no screen has that many columns.
const POINTS_MAX: usize = 7_200;

const COLUMNS_MAX: usize = 300;
const MARKS_MAX: usize = 200;

/// The charts of one record: throughput, latency and troubles over time, and the heat map.
pub(crate) fn of_entry(entry: &Entry, number: usize) -> Vec<Chart> {
    let time = TimeLine::new(&entry.findings);
    let id = |name: &str| format!("{name}-{}", number + 1);
    let rate = |name: &str, of: fn(&IntervalFindings) -> u64| time.line(name, |part| Some(part.per_second(of)));
    let mut throughput = vec![rate("transactions/s", |interval| interval.transactions)];
    if entry.findings.stages.iter().any(|stage| stage.open.is_some()) {
        throughput.push(time.line("due/s", |part| part.most(|interval| interval.due_per_s)));
        throughput.retain(|line| line.y.iter().any(Option::is_some));
    }
    let mut charts = vec![
        Chart {
            id: id("throughput"),
            title: "Throughput over time".into(),
            caption: time.caption(
                "Transactions finished per second. Shaded red: less than a tenth of the median. Ticks at the foot: errors.",
            ),
            x: seconds_axis(),
            y: axis("transactions per second", Scale::Linear),
            marks: time.marks(),
            body: Body::Lines { lines: throughput },
        },
        Chart {
            id: id("latency"),
            title: "Response time over time".into(),
            caption: time.caption("Each point is of its own second alone. Logarithmic."),
            x: seconds_axis(),
            y: axis("response time, ms", Scale::Log),
            marks: time.marks(),
            body: Body::Lines { lines: time.latencies() },
        },
        Chart {
            id: id("heat"),
            title: "Where response times lay".into(),
            caption: "The stronger the colour, the more transactions took that long. Bands and second humps show what percentiles hide.".into(),
            x: seconds_axis(),
            y: axis("response time, ms", Scale::Log),
            marks: time.marks(),
            body: time.heat(),
        },
    ];
    let mut troubles = vec![
        rate("errors/s", |interval| interval.errors),
        rate("retries/s", |interval| interval.retries),
        rate("failed/s", |interval| interval.failed),
        rate("reconnects/s", |interval| interval.reconnects),
        time.line("backlog", |part| part.most(|interval| Some(interval.backlog as f64))),
    ];
    troubles.retain(|line| line.y.iter().flatten().any(|y| *y > 0.0));
    if !troubles.is_empty() {
        charts.push(Chart {
            id: id("trouble"),
            title: "Troubles over time".into(),
            caption: time
                .caption("Errors, retries, failures and reconnects per second; transactions waiting for a session."),
            x: seconds_axis(),
            y: axis("per second, or waiting", Scale::Linear),
            marks: time.marks(),
            body: Body::Lines { lines: troubles },
        });
    }
    charts.retain(|chart| !chart.is_empty());
    charts.into_iter().map(Chart::with_groups).collect()
}

pub(crate) fn over_time(entries: &[Entry]) -> Vec<Chart> {
    let lines: Vec<(&Entry, TimeLine)> =
        entries.iter().take(LINES_MAX).map(|entry| (entry, TimeLine::new(&entry.findings))).collect();
    let named = |entry: &Entry, line: Line| Line { name: clean(&entry.name, NAME_WIDTH), group: entry.setting, ..line };
    // The highest percentile that most intervals have.
    type Quantile = (&'static str, fn(&LatencyFindings) -> Option<u64>);
    let quantiles: [Quantile; 3] =
        [("p99", |response| response.p99_ns), ("p95", |response| response.p95_ns), ("p50", |response| response.p50_ns)];
    let intervals = || lines.iter().flat_map(|(_, time)| &time.parts).flat_map(|part| part.intervals);
    let common = |(_, of): &&Quantile| {
        2 * intervals().filter(|interval| of(&interval.response).is_some()).count() >= intervals().count()
    };
    let (quantile, of) = *quantiles.iter().find(common).unwrap_or(&quantiles[2]);
    let throughput = |(entry, time): &(&Entry, TimeLine)| {
        named(entry, time.line("", |part| Some(part.per_second(|interval| interval.transactions))))
    };
    let latency = |(entry, time): &(&Entry, TimeLine)| {
        named(
            entry,
            time.line("", |part| {
                part.most(|interval| of(&interval.response).filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e6))
            }),
        )
    };
    let chart = |id: &str, title: String, y: Axis, of: &dyn Fn(&(&Entry, TimeLine)) -> Line| {
        Chart {
        id: id.into(),
        title,
        caption: "All records from their first measured second on; stages, outages and errors are marked in each record's own charts.".into(),
        x: seconds_axis(),
        y,
        marks: Vec::new(),
        body: Body::Lines { lines: lines.iter().map(of).collect() },
    }
    };
    vec![
        chart(
            "throughput-all",
            "Throughput over time".into(),
            axis("transactions per second", Scale::Linear),
            &throughput,
        ),
        chart(
            "latency-all",
            format!("Response time over time, {quantile}"),
            axis("response time, ms", Scale::Log),
            &latency,
        ),
    ]
}

/// The intervals of a record as one line of time; many intervals are merged into parts.
pub(super) struct TimeLine<'a> {
    parts: Vec<Part<'a>>,
    /// Intervals in a part.
    merged: usize,
    /// Where each stage lies, and its sessions.
    pub(super) stages: Vec<(f64, f64, &'a StageFindings)>,
    /// Stages are told apart by their rates.
    by_rate: bool,
}

/// One or more intervals of a stage, in a row.
struct Part<'a> {
    from: f64,
    to: f64,
    stage: usize,
    intervals: &'a [IntervalFindings],
}

impl<'a> TimeLine<'a> {
    pub(super) fn new(findings: &'a Findings) -> TimeLine<'a> {
        let all: usize = findings.stages.iter().map(|stage| stage.intervals.len()).sum();
        let merged = all.div_ceil(POINTS_MAX).max(1);
        let by_rate = matches!(&findings.capacity, Some(CapacityFindings { of: Capacity::Rate { .. }, .. }));
        let mut line = TimeLine { parts: Vec::new(), merged, stages: Vec::new(), by_rate };
        let start = findings.stages.first().map_or(0, |stage| stage.started.unix_ms());
        let mut end = 0.0;
        for (number, stage) in findings.stages.iter().enumerate().take(STAGES_MAX) {
            let offset = (stage.started.unix_ms().saturating_sub(start) as f64 / 1e3).max(end);
            let begin = offset;
            for intervals in stage.intervals.chunks(merged) {
                let at = |ns: u64| instant(offset, ns);
                let (first, last) = (&intervals[0], &intervals[intervals.len() - 1]);
                let (from, to) = (at(first.start_ns).max(end), at(last.end_ns));
                // A file that somebody made up may have times that do not ascend.
                if to > from {
                    line.parts.push(Part { from, to, stage: number, intervals });
                    end = to;
                }
            }
            line.stages.push((begin, end.max(begin), stage));
        }
        line
    }

    fn caption(&self, text: &str) -> String {
        match self.merged {
            1 => text.to_owned(),
            merged => format!(
                "{text} Each point stands for {} intervals: rates are means, times the largest.",
                count(merged as u64)
            ),
        }
    }

    /// A point for every part, at its end, and a gap between stages.
    fn line(&self, name: &str, of: impl Fn(&Part) -> Option<f64>) -> Line {
        let mut line = Line { name: name.to_owned(), group: 0, x: Vec::new(), y: Vec::new() };
        let mut before: Option<&Part> = None;
        for part in &self.parts {
            if before.is_some_and(|before| before.stage != part.stage && part.from > before.to) {
                line.x.push(part.from);
                line.y.push(None);
            }
            line.x.push(part.to);
            line.y.push(of(part).map(rounded));
            before = Some(part);
        }
        line
    }

    fn latencies(&self) -> Vec<Line> {
        let line = |name: &str, of: fn(&LatencyFindings) -> Option<u64>| {
            self.line(name, |part| {
                part.most(|interval| of(&interval.response).filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e6))
            })
        };
        let mut lines = vec![
            line("p50", |response| response.p50_ns),
            line("p95", |response| response.p95_ns),
            line("p99", |response| response.p99_ns),
            line("slowest", |response| response.max_ns),
        ];
        lines.retain(|line| line.y.iter().any(Option::is_some));
        lines
    }

    fn heat(&self) -> Body {
        let bounds = bucket_bounds_ns();
        let used = || self.parts.iter().flat_map(|part| part.intervals).flat_map(|interval| &interval.buckets);
        let buckets = used().map(|(bucket, _)| *bucket);
        let (Some(lowest), Some(highest)) = (buckets.clone().min(), buckets.max()) else {
            return Body::Heat { columns: Vec::new(), edges: Vec::new(), cells: Vec::new() };
        };
        // The lowest bucket begins as far below its bound as the others do; the highest ends as far above.
        let edge = |bucket: usize| rounded(1e-3 * 10f64.powf((bucket as f64 - 1.0) / 20.0));
        debug_assert!(highest <= bounds.len());
        let edges = (lowest..=highest + 1).map(edge).collect();
        let in_column = self.parts.len().div_ceil(COLUMNS_MAX).max(1);
        let (mut columns, mut cells) = (Vec::new(), Vec::new());
        for of_stage in self.parts.chunk_by(|one, other| one.stage == other.stage) {
            for column in of_stage.chunks(in_column) {
                let (from, to) = (column[0].from, column[column.len() - 1].to);
                let mut rows = vec![0u64; highest - lowest + 1];
                for (bucket, count) in
                    column.iter().flat_map(|part| part.intervals).flat_map(|interval| &interval.buckets)
                {
                    rows[bucket - lowest] = rows[bucket - lowest].saturating_add(*count);
                }
                columns.push((from, to));
                cells.push(rows.into_iter().map(|count| rounded(count as f64 / (to - from))).collect());
            }
        }
        Body::Heat { columns, edges, cells }
    }

    pub(super) fn marks(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        if let [_, _, ..] = self.stages[..] {
            marks.extend(self.stages.iter().map(|(from, to, stage)| Mark {
                from: *from,
                to: *to,
                kind: MarkKind::Stage,
                text: match stage.open.filter(|_| self.by_rate) {
                    Some(open) => format!("{} tx/s due", figure(open.rate_per_s)),
                    None => sessions(stage.sessions),
                },
            }));
        }
        let outages = self.stages.iter().flat_map(|(begin, _, stage)| {
            stage.throughput.outages.iter().map(|outage| Mark {
                from: instant(*begin, outage.start_ns),
                to: instant(*begin, outage.end_ns()),
                kind: MarkKind::Outage,
                text: outage_words(outage),
            })
        });
        marks.extend(outages.take(MARKS_MAX));
        let errors =
            |part: &Part| part.intervals.iter().fold(0, |sum: u64, interval| sum.saturating_add(interval.errors));
        marks.extend(self.runs(
            MarkKind::Errors,
            |part| errors(part) > 0,
            |run| match run.iter().map(errors).fold(0, u64::saturating_add) {
                1 => "1 error".into(),
                errors => format!("{} errors", count(errors)),
            },
        ));
        marks
    }

    /// Parts in a row that have something in common.
    fn runs(&self, kind: MarkKind, is: impl Fn(&Part) -> bool, text: impl Fn(&[Part]) -> String) -> Vec<Mark> {
        let runs = self.parts.chunk_by(|one, other| one.stage == other.stage && is(one) == is(other));
        let mark = |run: &[Part]| Mark { from: run[0].from, to: run[run.len() - 1].to, kind, text: text(run) };
        runs.filter(|run| is(&run[0])).map(mark).take(MARKS_MAX).collect()
    }
}

/// Seconds, to the millisecond; `ns` since `begin`.
pub(super) fn instant(begin: f64, ns: u64) -> f64 {
    ((begin + ns as f64 / 1e9) * 1e3).round() / 1e3
}

impl Part<'_> {
    fn per_second(&self, of: impl Fn(&IntervalFindings) -> u64) -> f64 {
        let sum: f64 = self.intervals.iter().map(|interval| of(interval) as f64).sum();
        let ns: f64 =
            self.intervals.iter().map(|interval| interval.end_ns.saturating_sub(interval.start_ns) as f64).sum();
        if ns > 0.0 { sum * 1e9 / ns } else { 0.0 }
    }

    fn most(&self, of: impl Fn(&IntervalFindings) -> Option<f64>) -> Option<f64> {
        self.intervals.iter().filter_map(of).max_by(f64::total_cmp)
    }
}

pub(super) fn seconds_axis() -> Axis {
    axis("seconds since the first measured one", Scale::Linear)
}
