//! Charts over time: throughput, latency, errors and the heat map of one record; several records stacked.

use assay_record::{Note, RecordedTrial, ScopeKind, StepTime, coarse_bounds_ns};

use crate::charts::chart::{
    AxisScale, Chart, ChartAxis, ChartBody, ChartLine, LINES_MAX, Mark, MarkKind, NAME_WIDTH, POINTS_MAX, STAGES_MAX,
    axis, rounded,
};
use crate::digits::{change, count, figure, seconds};
use crate::findings::arithmetic::{median, rolling_median};
use crate::findings::interval::IntervalFindings;
use crate::findings::latency::LatencyFindings;
use crate::findings::report::{ReportEntry, Setting};
use crate::findings::run::Findings;
use crate::findings::stage::StageFindings;
use crate::findings::telemetry::LogSeverity;
use crate::findings::throughput::SteadyFindings;
use crate::plain::clean;
use crate::words::outage::outage_words;
use crate::words::run::sessions;

const COLUMNS_MAX: usize = 300;
const MARKS_MAX: usize = 200;
/// With fewer points than this, a line through them shows as much as a median would.
const DOTS_MIN: usize = 20;
/// About as many medians as can be distinguished side by side.
const MEDIANS: usize = 40;
/// More transaction types cannot be distinguished by color.
const TYPES_MAX: usize = 8;

/// The charts of one record: throughput, latency and troubles over time, and the heat map.
pub(super) fn of_entry(time: &TimeLine, entry: &ReportEntry, number: usize) -> Vec<Chart> {
    let id = |name: &str| format!("{name}-{}", number + 1);
    let per_second = || axis("transactions per second", AxisScale::Linear);
    let response = || axis("response time, ms", AxisScale::Log);
    let marks = time.marks();
    let chart = |name: &str, title: &str, caption: &str, y: ChartAxis, body: ChartBody| {
        Chart::new(id(name), title, time.caption(caption), [time_axis([&entry.findings]), y], body)
            .with_marks(marks.clone())
    };
    let [due, p50, p95, p99, slowest, read, write, other, errors, retries, failed, reconnects, backlog] = time.lines([
        ("due/s", |part| part.most(|interval| interval.due_per_s)),
        ("p50", |part| part.slowest(|response| response.p50_ns)),
        ("p95", |part| part.slowest(|response| response.p95_ns)),
        ("p99", |part| part.slowest(|response| response.p99_ns)),
        ("slowest", |part| part.slowest(|response| response.max_ns)),
        ("read", |part| Some(part.mean(|interval| interval.qps_by_class.read))),
        ("write", |part| Some(part.mean(|interval| interval.qps_by_class.write))),
        ("other", |part| Some(part.mean(|interval| interval.qps_by_class.other))),
        ("errors/s", |part| Some(part.per_second(|interval| interval.errors))),
        ("retries/s", |part| Some(part.per_second(|interval| interval.retries))),
        ("failed/s", |part| Some(part.per_second(|interval| interval.failed))),
        ("reconnects/s", |part| Some(part.per_second(|interval| interval.reconnects))),
        ("backlog", |part| part.most(|interval| Some(interval.backlog as f64))),
    ]);
    let mut latencies = vec![p50, p95, p99, slowest];
    latencies.retain(|line| line.y.iter().any(Option::is_some));
    let mut throughput = time.throughput();
    if entry.findings.stages.iter().any(|stage| stage.open.is_some()) {
        throughput.push(ChartLine { group: 1, ..due });
        throughput.retain(|line| line.y.iter().any(Option::is_some));
    }
    let mut charts = vec![
        chart("throughput", "Throughput over time", "", per_second(), ChartBody::Lines { lines: throughput }),
        chart("latency", "Response time over time", "log scale", response(), ChartBody::Lines { lines: latencies }),
        chart(
            "heat",
            "Response time distribution over time",
            "color: transactions per second",
            response(),
            time.heat(),
        ),
    ];
    let types = time.by_type();
    if types.len() > 1 {
        charts.push(chart(
            "types",
            "Throughput by transaction type",
            "",
            per_second(),
            ChartBody::Lines { lines: types },
        ));
    }
    let mut classes = vec![read, write, other];
    let is_used = |line: &ChartLine| line.y.iter().flatten().any(|y| *y > 0.0);
    classes.retain(is_used);
    if classes.len() > 1 {
        let y = axis("statements per second", AxisScale::Linear);
        charts.push(chart("statements", "Statements over time", "", y, ChartBody::Lines { lines: classes }));
    }
    let mut troubles = vec![errors, retries, failed, reconnects, backlog];
    troubles.retain(is_used);
    if !troubles.is_empty() {
        let y = axis("per second, or waiting", AxisScale::Linear);
        charts.push(chart("trouble", "Errors and retries over time", "", y, ChartBody::Lines { lines: troubles }));
    }
    charts.retain(|chart| !chart.is_empty());
    charts.into_iter().map(Chart::with_groups).collect()
}

/// Every setting as one line: the median of its trials, with a band from the lowest to the highest.
pub(crate) fn over_time(settings: &[Setting]) -> Vec<Chart> {
    let settings = &settings[..settings.len().min(LINES_MAX)];
    let times: Vec<Vec<TimeLine>> = settings
        .iter()
        .map(|setting| setting.trials.iter().map(|trial| TimeLine::new(&trial.findings, POINTS_MAX)).collect())
        .collect();
    // The highest percentile that most intervals have.
    type Quantile = (&'static str, fn(&LatencyFindings) -> Option<u64>);
    let quantiles: [Quantile; 3] =
        [("p99", |response| response.p99_ns), ("p95", |response| response.p95_ns), ("p50", |response| response.p50_ns)];
    let parts = || times.iter().flatten().flat_map(|time| &time.parts).map(|part| part.intervals);
    let all: usize = parts().map(<[_]>::len).sum();
    let common = |(_, of): &&Quantile| {
        let known = |part: &[IntervalFindings]| part.iter().filter(|one| of(&one.response).is_some()).count();
        2 * parts().map(known).sum::<usize>() >= all
    };
    let (quantile, of) = *quantiles.iter().find(common).unwrap_or(&quantiles[2]);
    let tps = |part: &Stretch| Some(part.per_second(|interval| interval.transactions));
    let latency = |part: &Stretch| part.slowest(of);
    let lines = |of: &dyn Fn(&Stretch) -> Option<f64>| {
        settings.iter().zip(&times).map(|(setting, trials)| pooled(setting, trials, of)).collect()
    };
    let caption = if settings.iter().any(|setting| setting.trials.len() > 1) { "band: min to max" } else { "" };
    let time_axis = || time_axis(settings.iter().flat_map(|setting| &setting.trials).map(|trial| &trial.findings));
    let marks = marks_of_all(settings, &times);
    vec![
        Chart::new(
            "throughput-all",
            "Throughput over time",
            caption,
            [time_axis(), axis("transactions per second", AxisScale::Linear)],
            ChartBody::Lines { lines: lines(&tps) },
        )
        .with_marks(marks.clone()),
        Chart::new(
            "latency-all",
            &format!("Response time over time, {quantile}"),
            caption,
            [time_axis(), axis("response time, ms", AxisScale::Log)],
            ChartBody::Lines { lines: lines(&latency) },
        )
        .with_marks(marks),
    ]
}

/// The trials of a setting as one line. Parts with the same number in the same stage belong together.
fn pooled(setting: &Setting, trials: &[TimeLine], of: &dyn Fn(&Stretch) -> Option<f64>) -> ChartLine {
    let name = clean(setting.name, NAME_WIDTH);
    let Some(longest) = trials.iter().max_by_key(|trial| trial.parts.len()) else {
        return ChartLine::new("", setting.number);
    };
    // One trial after another: their intervals do not fit a processor's caches.
    let found: Vec<Vec<Option<f64>>> = trials.iter().map(|trial| trial.parts.iter().map(of).collect()).collect();
    let by_stage: Vec<Vec<_>> = trials.iter().zip(&found).map(|(trial, all)| trial.of_stages(all).collect()).collect();
    let mut values = longest.parts.chunk_by(|one, other| one.stage == other.stage).flat_map(|parts| {
        (0..parts.len()).map(|number| {
            let same = |stages: &Vec<(usize, &[Option<f64>])>| {
                let (_, of_stage) = stages.iter().find(|(stage, _)| *stage == parts[0].stage)?;
                *of_stage.get(number)?
            };
            by_stage.iter().filter_map(same).collect::<Vec<f64>>()
        })
    });
    let mut band = Vec::new();
    let line = longest.line(&name, |_| {
        let values = values.next().unwrap_or_default();
        let ends = values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max));
        band.push(ends.map(|(low, high)| (rounded(low), rounded(high))));
        median(values)
    });
    // `line` has gaps where no part is.
    let mut band = band.into_iter();
    let band = match trials {
        [_] => Vec::new(),
        _ => longest.is_gap().map(|is_gap| if is_gap { None } else { band.next().flatten() }).collect(),
    };
    ChartLine { group: setting.number, band, ..line }
}

/// The intervals of a record as one line of time; many intervals are merged into parts.
pub(super) struct TimeLine<'a> {
    parts: Vec<Stretch<'a>>,
    /// Most points of a line.
    pub(super) points_max: usize,
    /// Intervals in a part.
    merged: usize,
    /// Position of each stage, and its sessions.
    pub(super) stages: Vec<(f64, f64, &'a StageFindings)>,
    /// Stages are distinguished by their rates.
    by_rate: bool,
    /// The trial of an experiment that the run was.
    trial: Option<&'a RecordedTrial>,
    notes: &'a [Note],
}

/// One or more consecutive intervals of a stage.
struct Stretch<'a> {
    from: f64,
    to: f64,
    stage: usize,
    intervals: &'a [IntervalFindings],
    errors: u64,
}

/// A value of a part.
type Figure = fn(&Stretch) -> Option<f64>;

impl<'a> TimeLine<'a> {
    /// With at most this many points, which are parts.
    pub(super) fn new(findings: &'a Findings, points_max: usize) -> TimeLine<'a> {
        let all: usize = findings.stages.iter().map(|stage| stage.intervals.len()).sum();
        let merged = all.div_ceil(points_max).max(1);
        let by_rate = findings.searches_rate();
        let (trial, notes) = (findings.trial.as_ref(), &findings.notes[..]);
        let mut line = TimeLine { parts: Vec::new(), points_max, merged, stages: Vec::new(), by_rate, trial, notes };
        let start = findings.stages.first().map_or(0, |stage| stage.started.unix_ms());
        let mut end = 0.0;
        for (number, stage) in findings.stages.iter().enumerate().take(STAGES_MAX) {
            let offset = (stage.started.unix_ms().saturating_sub(start) as f64 / 1e3).max(end);
            let begin = offset;
            for intervals in stage.intervals.chunks(merged) {
                let at = |ns: u64| instant(offset, ns);
                let (first, last) = (&intervals[0], &intervals[intervals.len() - 1]);
                let (from, to) = (at(first.start_ns).max(end), at(last.end_ns));
                // A forged file may have times that do not ascend.
                if to > from {
                    let errors = intervals.iter().fold(0, |sum: u64, interval| sum.saturating_add(interval.errors));
                    line.parts.push(Stretch { from, to, stage: number, intervals, errors });
                    end = to;
                }
            }
            line.stages.push((begin, end.max(begin), stage));
        }
        line
    }

    /// When points are merged, rates are averaged, and the largest times remain.
    fn caption(&self, text: &str) -> String {
        let merged = (self.merged > 1).then(|| format!("{} in a point", count(self.merged as u64)));
        [text.to_owned()].into_iter().filter(|text| !text.is_empty()).chain(merged).collect::<Vec<_>>().join(", ")
    }

    fn by_stage(&self) -> impl Iterator<Item = &[Stretch<'a>]> {
        self.parts.chunk_by(|one, other| one.stage == other.stage)
    }

    /// Each stage that has parts, with those of `values`, one per part, that are its own.
    fn of_stages<'v, T>(&self, values: &'v [T]) -> impl Iterator<Item = (usize, &'v [T])> {
        let mut begin = 0;
        self.by_stage().map(move |parts| {
            let own = &values[begin..begin + parts.len()];
            begin += parts.len();
            (parts[0].stage, own)
        })
    }

    /// For every point of a line whether it is a gap between stages.
    fn is_gap(&self) -> impl Iterator<Item = bool> {
        (0..self.parts.len()).flat_map(|at| if self.begins_after_a_gap(at) { vec![true, false] } else { vec![false] })
    }

    fn begins_after_a_gap(&self, at: usize) -> bool {
        let [before, part] = [at.wrapping_sub(1), at].map(|at| self.parts.get(at));
        before.zip(part).is_some_and(|(before, part)| before.stage != part.stage && part.from > before.to)
    }

    /// A point per part, at its end, and a gap between stages.
    fn line(&self, name: &str, mut of: impl FnMut(&Stretch) -> Option<f64>) -> ChartLine {
        let mut line = self.without_points(name);
        for (at, part) in self.parts.iter().enumerate() {
            self.put(&mut line, at, of(part));
        }
        line
    }

    /// Several lines, in one pass: the intervals of an hour do not fit a processor's caches.
    fn lines<const N: usize>(&self, figures: [(&str, Figure); N]) -> [ChartLine; N] {
        let mut lines = figures.map(|(name, _)| self.without_points(name));
        for (at, part) in self.parts.iter().enumerate() {
            for (line, (_, of)) in lines.iter_mut().zip(figures) {
                self.put(line, at, of(part));
            }
        }
        lines
    }

    fn without_points(&self, name: &str) -> ChartLine {
        // With a gap before each stage.
        let points = self.parts.len() + self.stages.len();
        ChartLine { x: Vec::with_capacity(points), y: Vec::with_capacity(points), ..ChartLine::new(name, 0) }
    }

    /// The point of the part `at`.
    fn put(&self, line: &mut ChartLine, at: usize, value: Option<f64>) {
        let part = &self.parts[at];
        if self.begins_after_a_gap(at) {
            line.x.push(part.from);
            line.y.push(None);
        }
        line.x.push(part.to);
        line.y.push(value.map(rounded));
    }

    /// Every interval as a dot, and their rolling median; a line if there are few intervals.
    fn throughput(&self) -> Vec<ChartLine> {
        let rates: Vec<f64> = self.parts.iter().map(|part| part.per_second(|interval| interval.transactions)).collect();
        let mut each = rates.iter().copied();
        let all = self.line("transactions/s", |_| each.next());
        if self.parts.len() < DOTS_MIN {
            return vec![all];
        }
        let width = ((self.parts.len() / MEDIANS) | 1).max(5);
        let mut medians = self.of_stages(&rates).flat_map(|(_, of_stage)| rolling_median(of_stage, width));
        let length_ns = (self.parts[0].to - self.parts[0].from) * 1e9;
        let name = format!("median of {}", seconds((width as f64 * length_ns) as u64));
        let median = self.line(&name, |_| medians.next());
        let each = seconds(length_ns as u64);
        let name = if each == "1 s" { "each second".into() } else { format!("each {each}") };
        vec![ChartLine { name, dots: true, ..all }, median]
    }

    /// A line per type that has ended any, the most frequent first; none if there is only one type.
    fn by_type(&self) -> Vec<ChartLine> {
        let stage = self.stages.first().map(|(_, _, stage)| stage);
        let Some(stage) = stage.filter(|stage| stage.total.types.len() > 1) else { return Vec::new() };
        let sum = |number: usize| {
            let all = self.parts.iter().flat_map(|part| part.intervals);
            all.map(|one| one.transactions_by_type.get(number).copied().unwrap_or(0)).fold(0, u64::saturating_add)
        };
        let mut types: Vec<(u64, usize)> = (0..stage.total.types.len()).map(|number| (sum(number), number)).collect();
        types.retain(|(sum, _)| *sum > 0);
        types.sort_by_key(|(sum, number)| (std::cmp::Reverse(*sum), *number));
        let line = |(_, number): (u64, usize)| {
            let of_type = |interval: &IntervalFindings| interval.transactions_by_type.get(number).copied().unwrap_or(0);
            self.line(&clean(&stage.total.types[number].name, NAME_WIDTH), |part| Some(part.per_second(of_type)))
        };
        types.into_iter().take(TYPES_MAX).map(line).collect()
    }

    fn heat(&self) -> ChartBody {
        let in_column = self.parts.len().div_ceil(COLUMNS_MAX).max(1);
        let (mut columns, mut counts) = (Vec::new(), Vec::new());
        for column in self.by_stage().flat_map(|of_stage| of_stage.chunks(in_column)) {
            let mut rows = vec![0u64; coarse_bounds_ns().len() + 1];
            for (bucket, count) in column.iter().flat_map(|part| part.intervals).flat_map(|one| one.buckets.iter()) {
                rows[bucket] = rows[bucket].saturating_add(count);
            }
            columns.push((column[0].from, column[column.len() - 1].to));
            counts.push(rows);
        }
        let is_used = |bucket: &usize| counts.iter().any(|rows| rows[*bucket] > 0);
        let buckets = 0..=coarse_bounds_ns().len();
        let Some((lowest, highest)) = buckets.clone().find(is_used).zip(buckets.rev().find(is_used)) else {
            return ChartBody::Heat { columns: Vec::new(), edges: Vec::new(), cells: Vec::new() };
        };
        // The lowest bucket starts as far below its bound as the others do; the highest ends as far above.
        let edge = |bucket: usize| rounded(1e-3 * 10f64.powf((bucket as f64 - 1.0) / 20.0));
        let edges = (lowest..=highest + 1).map(edge).collect();
        let cells = columns.iter().zip(&counts).map(|((from, to), rows)| {
            rows[lowest..=highest].iter().map(|count| rounded(*count as f64 / (to - from))).collect()
        });
        let cells = cells.collect();
        ChartBody::Heat { columns, edges, cells }
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
        marks.extend(self.stages.iter().filter_map(|(begin, _, stage)| steady_mark(stage, *begin)));
        let outages = self.stages.iter().flat_map(|(begin, _, stage)| {
            stage.throughput.outages.iter().map(|outage| Mark {
                from: instant(*begin, outage.start_ns),
                to: instant(*begin, outage.end_ns()),
                kind: MarkKind::Outage,
                text: outage_words(outage),
            })
        });
        marks.extend(outages.take(MARKS_MAX));
        marks.extend(self.steps());
        marks.extend(self.stages.iter().flat_map(|(begin, _, stage)| change_marks(stage, *begin)).take(MARKS_MAX));
        marks.extend(self.runs(
            MarkKind::Errors,
            |part| part.errors > 0,
            |run| match run.iter().map(|part| part.errors).fold(0, u64::saturating_add) {
                1 => "1 error".into(),
                errors => format!("{} errors", count(errors)),
            },
        ));
        marks
    }

    /// Steps of the experiment that the run belongs to, notes of the user, and checkpoints.
    fn steps(&self) -> Vec<Mark> {
        let end = self.stages.last().map_or(0.0, |(_, end, _)| *end);
        let start = self.stages.first().map_or(0, |(_, _, stage)| stage.started.unix_ms());
        let steps = self.trial.iter().flat_map(|trial| &trial.steps);
        let steps = steps.filter_map(|step| step_mark(step, start, end));
        let checkpoints = self.stages.iter().flat_map(|(begin, _, stage)| checkpoint_marks(stage, *begin));
        let notes = self.notes.iter().filter_map(|note| note_mark(note, start, end));
        let lines = self.stages.iter().flat_map(|(begin, _, stage)| log_marks(stage, *begin));
        steps.chain(notes).chain(checkpoints).chain(lines.take(LOG_MARKS_MAX)).take(MARKS_MAX).collect()
    }

    /// Consecutive parts that have something in common.
    fn runs(&self, kind: MarkKind, is: impl Fn(&Stretch) -> bool, text: impl Fn(&[Stretch]) -> String) -> Vec<Mark> {
        let runs = self.parts.chunk_by(|one, other| one.stage == other.stage && is(one) == is(other));
        let mark = |run: &[Stretch]| Mark { from: run[0].from, to: run[run.len() - 1].to, kind, text: text(run) };
        runs.filter(|run| is(&run[0])).map(mark).take(MARKS_MAX).collect()
    }
}

/// A step on an axis that starts at `start` (milliseconds) and ends after `end` seconds; `None`: it is not in that
/// time.
pub(super) fn step_mark(step: &StepTime, start_unix_ms: u64, end: f64) -> Option<Mark> {
    let at = |unix_ms: u64| (unix_ms as f64 - start_unix_ms as f64) / 1e3;
    let from = at(step.started.unix_ms());
    let to = from + step.length_ns as f64 / 1e9;
    let is_in = to > 0.0 && from < end;
    is_in.then(|| Mark {
        from: from.max(0.0),
        to: to.min(end),
        kind: MarkKind::Step,
        text: clean(&step.name, NAME_WIDTH),
    })
}

/// A note on the same axis; `None`: it is not in that time.
pub(super) fn note_mark(note: &Note, start_unix_ms: u64, end: f64) -> Option<Mark> {
    let at = (note.at.unix_ms() as f64 - start_unix_ms as f64) / 1e3;
    let text = clean(&note.text, NAME_WIDTH);
    (at >= 0.0 && at <= end).then_some(Mark { from: at, to: at, kind: MarkKind::Step, text })
}

/// Whether a chart marks instants at which this metric changed.
pub(super) fn is_marked(metric: &str) -> bool {
    CHECKPOINTS.contains(&metric)
}

/// Seconds in which a server counted a checkpoint.
pub(super) fn checkpoint_marks(stage: &StageFindings, begin: f64) -> Vec<Mark> {
    let servers = stage.telemetry.iter().filter(|scope| scope.scope == ScopeKind::Server);
    let counters = servers.flat_map(|scope| &scope.metrics).filter(|metric| CHECKPOINTS.contains(&&*metric.metric));
    let mut marks: Vec<Mark> = counters
        .flat_map(|metric| metric.points.iter())
        .filter(|point| point.value.is_some_and(|value| value > 0.0))
        .map(|point| {
            let at = instant(begin, point.at_ns);
            Mark { from: at, to: at, kind: MarkKind::Step, text: "checkpoint".to_owned() }
        })
        .collect();
    marks.sort_by(|a, b| a.from.total_cmp(&b.from));
    marks.dedup_by(|a, b| a.from <= b.from);
    marks
}

/// More warnings and errors of a server's log than these would hide the lines.
const LOG_MARKS_MAX: usize = 8;

/// Warnings and errors in the log of a server.
fn log_marks(stage: &StageFindings, begin: f64) -> impl Iterator<Item = Mark> {
    let lines = stage.telemetry.iter().flat_map(|scope| &scope.log);
    lines.filter(|line| line.severity > LogSeverity::Note).map(move |line| {
        let at = instant(begin, line.at_ns);
        // Without its time stamp and process.
        let from =
            ["ERROR", "FATAL", "PANIC", "WARNING", "[Warning]"].iter().filter_map(|word| line.text.find(word)).min();
        let text = clean(&line.text[from.unwrap_or(0)..], LOG_WIDTH);
        Mark { from: at, to: at, kind: MarkKind::Step, text }
    })
}

/// The part of a stage in which throughput was steady.
pub(super) fn steady_mark(stage: &StageFindings, begin: f64) -> Option<Mark> {
    let Some(SteadyFindings::Steady { judged_from_ns, judged_to_ns, .. }) = stage.throughput.steady else {
        return None;
    };
    let (from, to) = (instant(begin, judged_from_ns), instant(begin, judged_to_ns));
    (from < to).then(|| Mark { from, to, kind: MarkKind::Steady, text: "steady".to_owned() })
}

/// Instants at which throughput changed.
pub(super) fn change_marks(stage: &StageFindings, begin: f64) -> impl Iterator<Item = Mark> {
    stage.throughput.shifts.iter().map(move |shift| {
        let at = instant(begin, shift.start_ns);
        let text = match shift.tps_before > 0.0 {
            true => format!("throughput {}", change(shift.tps_after / shift.tps_before - 1.0)),
            false => "throughput rose from 0".to_owned(),
        };
        Mark { from: at, to: at, kind: MarkKind::Change, text }
    })
}

/// The marks of several records in one chart: outages, steps and changes of each, and what was steady in all of them.
fn marks_of_all(settings: &[Setting], times: &[Vec<TimeLine>]) -> Vec<Mark> {
    /// More events than this hide the lines.
    const EVENTS_MAX: usize = 24;
    let mut events = Vec::new();
    let mut steady: Option<(f64, f64)> = Some((0.0, f64::INFINITY));
    for (setting, time) in
        settings.iter().zip(times).flat_map(|(setting, trials)| trials.iter().map(move |one| (setting, one)))
    {
        let marks = time.marks();
        let part = marks.iter().find(|mark| mark.kind == MarkKind::Steady).filter(|_| time.stages.len() == 1);
        steady = steady.zip(part).map(|((from, to), part)| (from.max(part.from), to.min(part.to)));
        let is_event = |mark: &Mark| matches!(mark.kind, MarkKind::Outage | MarkKind::Step | MarkKind::Change);
        let text = |mark: &Mark| match settings.len() {
            1 => mark.text.clone(),
            _ => format!("{}: {}", clean(setting.name, NAME_WIDTH), mark.text),
        };
        events.extend(marks.iter().filter(|mark| is_event(mark)).map(|mark| Mark { text: text(mark), ..mark.clone() }));
    }
    if events.len() > EVENTS_MAX {
        events.retain(|mark| mark.kind == MarkKind::Outage);
    }
    events.truncate(MARKS_MAX);
    events.sort_by(|a, b| a.from.total_cmp(&b.from));
    let steady = steady.filter(|(from, to)| from < to && to.is_finite());
    let steady = steady.map(|(from, to)| Mark { from, to, kind: MarkKind::Steady, text: "steady".to_owned() });
    steady.into_iter().chain(events).collect()
}

const LOG_WIDTH: usize = 40;

/// Counters of checkpoints.
const CHECKPOINTS: [&str; 2] = ["checkpoints_timed", "checkpoints_requested"];

/// Seconds, to the millisecond; `ns` since `begin`.
pub(super) fn instant(begin: f64, ns: u64) -> f64 {
    ((begin + ns as f64 / 1e9) * 1e3).round() / 1e3
}

impl Stretch<'_> {
    fn per_second(&self, of: impl Fn(&IntervalFindings) -> u64) -> f64 {
        let sum: f64 = self.intervals.iter().map(|interval| of(interval) as f64).sum();
        let ns: f64 =
            self.intervals.iter().map(|interval| interval.end_ns.saturating_sub(interval.start_ns) as f64).sum();
        if ns > 0.0 { sum * 1e9 / ns } else { 0.0 }
    }

    /// Mean of rates.
    fn mean(&self, of: impl Fn(&IntervalFindings) -> f64) -> f64 {
        let length = |interval: &IntervalFindings| interval.end_ns.saturating_sub(interval.start_ns) as f64;
        let all: f64 = self.intervals.iter().map(length).sum();
        let sum: f64 = self.intervals.iter().map(|interval| of(interval) * length(interval)).sum();
        if all > 0.0 { sum / all } else { 0.0 }
    }

    /// The highest of these response times, in milliseconds.
    fn slowest(&self, of: impl Fn(&LatencyFindings) -> Option<u64>) -> Option<f64> {
        self.most(|interval| of(&interval.response).filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e6))
    }

    fn most(&self, of: impl Fn(&IntervalFindings) -> Option<f64>) -> Option<f64> {
        self.intervals.iter().filter_map(of).max_by(f64::total_cmp)
    }
}

/// If only a part of runs is shown, instants count from its start.
pub(crate) fn time_axis<'a>(findings: impl IntoIterator<Item = &'a Findings>) -> ChartAxis {
    let cut = findings.into_iter().flat_map(|of| &of.stages).any(|stage| stage.window.is_some());
    let start = if cut { "the start of the window" } else { "the first measured second" };
    axis(&format!("time since {start}"), AxisScale::Time)
}
