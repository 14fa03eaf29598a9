//! What charts show, whoever draws them: every point, box and cell is made here.
//!
//! A `Chart` knows no colour, no size and no program. The page and the drawings show the same charts, and a table
//! of the same figures stands behind each. What is drawn has bounds, so that no record can make a chart nobody
//! can open; where they are reached, the caption says what was merged or left out.

use assay_stats::box_figures;
use serde::Serialize;

use crate::cells::{clean, count};
use crate::findings::{Findings, LatencyFindings, StageFindings};
use crate::interval::{IntervalFindings, bucket_bounds_ns};
use crate::report::Entry;

/// One chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// Unique in a report: letters, digits, hyphens.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Spans of `x` worth a remark; ascending within a kind.
    pub marks: Vec<Mark>,
    /// What is drawn.
    #[serde(flatten)]
    pub body: Body,
}

/// One axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// What it measures, with the unit.
    pub label: String,
    /// How values become places.
    pub scale: Scale,
}

/// How values become places on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By their logarithm; all are above zero.
    Log,
    /// The values are nines: 0 is the smallest value, 1 is 90 %, 2 is 99 %.
    Nines,
    /// There are no values: names side by side.
    Names,
}

/// A span worth a remark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// Where it begins, in units of the axis.
    pub from: f64,
    /// from <= to
    pub to: f64,
    /// What it is.
    pub kind: MarkKind,
    /// The remark.
    pub text: String,
}

/// What a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkKind {
    /// A stage of a ladder.
    Stage,
    /// The step of a ladder after which throughput stops growing: a place, no span.
    Knee,
    /// Throughput below a tenth of the stage's median.
    Stall,
    /// Errors were met.
    Errors,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Body {
    /// Lines through points.
    Lines {
        /// In the order of the legend.
        lines: Vec<Line>,
    },
    /// How many values lie where.
    Heat {
        /// Left and right edge of every column; they ascend and do not overlap.
        columns: Vec<(f64, f64)>,
        /// Edges of the rows: one more than there are rows, ascending.
        edges: Vec<f64>,
        /// Values per second of every column, and in it of every row, the lowest first.
        cells: Vec<Vec<f64>>,
    },
    /// A box for each of several sets of values.
    Boxes {
        /// From left to right.
        boxes: Vec<Boxed>,
    },
}

/// A line: `x` ascends, and both lists are as long; `None` is a gap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// Lines of the same number belong together: trials of one setting.
    pub group: usize,
    /// Across.
    pub x: Vec<f64>,
    /// Upwards.
    pub y: Vec<Option<f64>>,
}

/// A box of a box plot: `BoxFigures` with a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Boxed {
    /// What its values are of.
    pub name: String,
    /// Number of values.
    pub count: usize,
    /// Lower whisker.
    pub low: f64,
    /// Lower edge.
    pub lower_quartile: f64,
    /// Line inside.
    pub median: f64,
    /// Upper edge.
    pub upper_quartile: f64,
    /// Upper whisker.
    pub high: f64,
    /// Points outside the whiskers: some of them, evenly chosen when they are many.
    pub outside: Vec<f64>,
}

/// A day of seconds is 86,400; no screen has that many columns.
const POINTS_MAX: usize = 7_200;
const COLUMNS_MAX: usize = 300;
const MARKS_MAX: usize = 200;
const LINES_MAX: usize = 16;
const BOXES_MAX: usize = 48;
const OUTSIDE_MAX: usize = 60;
const STAGES_MAX: usize = 200;
/// Seconds are a stall below this share of the median.
const STALL: f64 = 0.1;
const NAME_WIDTH: usize = 76;

/// The charts of one record: throughput, latency and troubles over time, and the heat map.
pub(crate) fn of_entry(entry: &Entry, number: usize) -> Vec<Chart> {
    let time = TimeLine::new(&entry.findings);
    let id = |name: &str| format!("{name}-{}", number + 1);
    let rate = |name: &str, of: fn(&IntervalFindings) -> u64| time.line(name, |part| Some(part.per_second(of)));
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
            body: Body::Lines { lines: vec![rate("transactions/s", |interval| interval.transactions)] },
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

/// The charts of all records together.
pub(crate) fn of_all(entries: &[Entry]) -> Vec<Chart> {
    let mut charts = ladders(entries);
    charts.extend(boxes(entries));
    charts.extend(percentiles(entries));
    if entries.len() > 1 {
        charts.extend(over_time(entries));
    }
    charts.retain(|chart| !chart.is_empty());
    charts.into_iter().map(Chart::with_groups).collect()
}

impl Chart {
    /// Lines that all belong together are told apart instead.
    fn with_groups(mut self) -> Chart {
        if let Body::Lines { lines } = &mut self.body
            && lines.windows(2).all(|two| two[0].group == two[1].group)
        {
            lines.iter_mut().enumerate().for_each(|(number, line)| line.group = number);
        }
        self
    }

    fn is_empty(&self) -> bool {
        match &self.body {
            Body::Lines { lines } => !lines.iter().any(|line| line.y.iter().any(Option::is_some)),
            Body::Heat { columns, .. } => columns.is_empty(),
            Body::Boxes { boxes } => boxes.is_empty(),
        }
    }
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.into(), scale }
}

fn seconds_axis() -> Axis {
    axis("seconds since the first measured one", Scale::Linear)
}

/// Five digits: more than a screen shows, and shorter to pass on.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powf(4.0 - value.abs().log10().floor());
    if scale.is_finite() { (value * scale).round() / scale } else { value }
}

fn ms(ns: u64) -> f64 {
    rounded(ns as f64 / 1e6)
}

/// The intervals of a record as one line of time; many intervals are merged into parts.
struct TimeLine<'a> {
    parts: Vec<Part<'a>>,
    /// Intervals in a part.
    merged: usize,
    /// Where each stage lies, and its sessions.
    stages: Vec<(f64, f64, &'a StageFindings)>,
}

/// One or more intervals of a stage, in a row.
struct Part<'a> {
    from: f64,
    to: f64,
    stage: usize,
    intervals: &'a [IntervalFindings],
}

impl<'a> TimeLine<'a> {
    fn new(findings: &'a Findings) -> TimeLine<'a> {
        let all: usize = findings.stages.iter().map(|stage| stage.intervals.len()).sum();
        let merged = all.div_ceil(POINTS_MAX).max(1);
        let mut line = TimeLine { parts: Vec::new(), merged, stages: Vec::new() };
        let start = findings.stages.first().map_or(0, |stage| stage.started.unix_ms());
        let mut end = 0.0;
        for (number, stage) in findings.stages.iter().enumerate().take(STAGES_MAX) {
            let offset = (stage.started.unix_ms().saturating_sub(start) as f64 / 1e3).max(end);
            let begin = offset;
            for intervals in stage.intervals.chunks(merged) {
                let at = |ns: u64| ((offset + ns as f64 / 1e9) * 1e3).round() / 1e3;
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

    fn marks(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        if let [_, _, ..] = self.stages[..] {
            marks.extend(self.stages.iter().map(|(from, to, stage)| Mark {
                from: *from,
                to: *to,
                kind: MarkKind::Stage,
                text: sessions(stage.sessions),
            }));
        }
        let medians: Vec<f64> = self
            .stages
            .iter()
            .map(|(_, _, stage)| {
                box_figures(stage.intervals.iter().map(|interval| interval.tps)).map_or(0.0, |box_| box_.median)
            })
            .collect();
        let stalled = |part: &Part| part.per_second(|interval| interval.transactions) < STALL * medians[part.stage];
        marks.extend(self.runs(MarkKind::Stall, stalled, |run| {
            format!("stall: {} s below a tenth of the median", rounded(run[run.len() - 1].to - run[0].from))
        }));
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

pub(crate) fn sessions(sessions: u32) -> String {
    match sessions {
        1 => "1 session".into(),
        sessions => format!("{} sessions", count(sessions.into())),
    }
}

/// Throughput and latency by the number of sessions, of records that have several.
fn ladders(entries: &[Entry]) -> Vec<Chart> {
    let ladders: Vec<&Entry> = entries.iter().filter(|entry| entry.findings.stages.len() > 1).collect();
    if ladders.is_empty() {
        return Vec::new();
    }
    let line = |name: &str, entry: &Entry, of: &dyn Fn(&StageFindings) -> Option<f64>| {
        let mut stages: Vec<&StageFindings> =
            entry.findings.stages.iter().take(STAGES_MAX).filter(|stage| stage.sessions > 0).collect();
        stages.sort_by_key(|stage| stage.sessions);
        stages.dedup_by_key(|stage| stage.sessions);
        Line {
            name: clean(name, NAME_WIDTH),
            group: entry.setting,
            x: stages.iter().map(|stage| f64::from(stage.sessions)).collect(),
            y: stages.iter().map(|stage| of(stage).map(rounded)).collect(),
        }
    };
    let latency = |of: fn(&LatencyFindings) -> Option<u64>| {
        move |stage: &StageFindings| of(&stage.total.response).filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e6)
    };
    let latencies = match ladders[..] {
        [entry] => vec![
            line("p50", entry, &latency(|response| response.p50_ns)),
            line("p95", entry, &latency(|response| response.p95_ns)),
            line("p99", entry, &latency(|response| response.p99_ns)),
        ],
        _ => ladders
            .iter()
            .take(LINES_MAX)
            .map(|entry| line(&format!("p99, {}", entry.name), entry, &latency(|response| response.p99_ns)))
            .collect(),
    };
    let throughput =
        ladders.iter().take(LINES_MAX).map(|entry| line(&entry.name, entry, &|stage| Some(stage.total.tps))).collect();
    let knee = |entry: &&Entry| {
        let sessions = f64::from(entry.findings.stages.iter().find(|stage| stage.knee)?.sessions);
        let text = if ladders.len() > 1 { format!("knee, {}", entry.name) } else { "knee".into() };
        Some(Mark { from: sessions, to: sessions, kind: MarkKind::Knee, text: clean(&text, NAME_WIDTH) })
    };
    let mut knees: Vec<Mark> = ladders.iter().take(LINES_MAX).filter_map(knee).collect();
    knees.sort_by(|a, b| a.from.total_cmp(&b.from));
    let chart = |id: &str, title: &str, caption: &str, y: Axis, lines: Vec<Line>| {
        let all = lines.iter().flat_map(|line| &line.x);
        let wide = all.clone().fold(0.0, |a: f64, b| a.max(*b)) >= 8.0 * all.fold(f64::INFINITY, |a, b| a.min(*b));
        let x = axis("sessions", if wide { Scale::Log } else { Scale::Linear });
        Chart {
            id: id.into(),
            title: title.into(),
            caption: caption.into(),
            x,
            y,
            marks: knees.clone(),
            body: Body::Lines { lines },
        }
    };
    vec![
        chart(
            "ladder-throughput",
            "Throughput by sessions",
            "Where it flattens, more sessions only wait longer: after the knee no step has 5% more.",
            axis("transactions per second", Scale::Linear),
            throughput,
        ),
        chart(
            "ladder-latency",
            "Response time by sessions",
            "What each step costs those who wait. Logarithmic.",
            axis("response time, ms", Scale::Log),
            latencies,
        ),
    ]
}

/// A name for each stage of each record, as short as can be told apart.
fn stages(entries: &[Entry]) -> impl Iterator<Item = (String, usize, &StageFindings)> {
    let several = entries.len() > 1;
    entries.iter().flat_map(move |entry| {
        let ladder = entry.findings.stages.len() > 1;
        entry.findings.stages.iter().take(STAGES_MAX).map(move |stage| {
            let name = match (several, ladder) {
                (false, _) => sessions(stage.sessions),
                (true, false) => entry.name.clone(),
                (true, true) => format!("{}, {}", entry.name, sessions(stage.sessions)),
            };
            (clean(&name, NAME_WIDTH), entry.setting, stage)
        })
    })
}

fn boxes(entries: &[Entry]) -> Option<Chart> {
    let all = stages(entries).count();
    let boxed = |(name, _, stage): (String, usize, &StageFindings)| {
        let found = box_figures(stage.intervals.iter().map(|interval| interval.tps)).filter(|found| found.count > 1)?;
        let step = found.outside.len().div_ceil(OUTSIDE_MAX).max(1);
        Some(Boxed {
            name,
            count: found.count,
            low: rounded(found.low),
            lower_quartile: rounded(found.lower_quartile),
            median: rounded(found.median),
            upper_quartile: rounded(found.upper_quartile),
            high: rounded(found.high),
            outside: found.outside.into_iter().step_by(step).map(rounded).collect(),
        })
    };
    let caption = "Every interval is a value: the box holds the middle half of them, its line is the median, whiskers reach to \
        the last value within 1.5 box heights, points lie beyond.";
    let caption = if all > BOXES_MAX {
        format!("{caption} Only the first {BOXES_MAX} of {}.", count(all as u64))
    } else {
        caption.into()
    };
    Some(Chart {
        id: "boxes".into(),
        title: "How even throughput was".into(),
        caption,
        x: axis("", Scale::Names),
        y: axis("transactions per second", Scale::Linear),
        marks: Vec::new(),
        body: Body::Boxes { boxes: stages(entries).take(BOXES_MAX).filter_map(boxed).collect() },
    })
}

/// A line for every stage; where they are too many, for the best stage of every record.
fn percentiles(entries: &[Entry]) -> Option<Chart> {
    let all: Vec<_> = stages(entries).collect();
    let few = all.len() <= LINES_MAX;
    let shown = all
        .into_iter()
        .filter(|(_, _, stage)| few || stage.best || entries.iter().all(|entry| entry.findings.stages.len() == 1));
    let line = |(name, group, stage): (String, usize, &StageFindings)| {
        let points = stage.total.response_curve.iter().filter(|(_, ns)| *ns > 0);
        let (x, y) = points.map(|(nines, ns)| (rounded(*nines), Some(ms(*ns)))).unzip();
        Line { name, group, x, y }
    };
    Some(Chart {
        id: "percentiles".into(),
        title: "Response time by percentile".into(),
        caption: "Each step to the right is ten times rarer: read how slow the slowest of 10, 100, 1,000 transactions are. Logarithmic. \
            Lines end where too few transactions were measured to go on."
            .into(),
        x: axis("percentile", Scale::Nines),
        y: axis("response time, ms", Scale::Log),
        marks: Vec::new(),
        body: Body::Lines { lines: shown.take(LINES_MAX).map(line).collect() },
    })
}

fn over_time(entries: &[Entry]) -> Vec<Chart> {
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
        caption: "All records from their first measured second on; stages, stalls and errors are marked in each record's own charts.".into(),
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
