//! Charts of servers and their machine over the same time axis as throughput.

use assay_record::ScopeKind;

use crate::charts::chart::{AxisScale, Chart, ChartBody, ChartLine, NAME_WIDTH, axis, rounded};
use crate::charts::palette::SERIES_MANY;
use crate::charts::time::{TimeLine, instant, time_axis};
use crate::findings::report::ReportEntry;
use crate::findings::shares::{Points, TelemetryPoint};
use crate::findings::telemetry::{ScopeFindings, WaitFindings};
use crate::plain::clean;

const MIB: f64 = 1_048_576.0;

/// Drawing instructions for one metric.
struct Drawn {
    metric: &'static str,
    name: &'static str,
    /// Values are divided by this.
    scale: f64,
}

const fn drawn(metric: &'static str, name: &'static str, scale: f64) -> Drawn {
    Drawn { metric, name, scale }
}

/// A chart of several metrics.
struct ChartPlan {
    id: &'static str,
    title: &'static str,
    caption: &'static str,
    unit: &'static str,
    lines: &'static [Drawn],
}

const OF_SERVER: [ChartPlan; 9] = [
    ChartPlan {
        id: "checkpoint",
        title: "Checkpoint age and its limit",
        caption: "log since the checkpoint",
        unit: "MiB",
        lines: &[
            drawn("checkpoint_age_bytes", "checkpoint age", MIB),
            drawn("checkpoint_age_limit_bytes", "limit", MIB),
        ],
    },
    ChartPlan {
        id: "log",
        title: "Log written",
        caption: "",
        unit: "MiB per second",
        lines: &[drawn("log_bytes", "log", MIB)],
    },
    ChartPlan {
        id: "pages",
        title: "Pages written and buffer misses",
        caption: "",
        unit: "pages per second",
        lines: &[
            drawn("pages_written", "pages written", 1.0),
            drawn("doublewrite_pages", "doublewrite", 1.0),
            drawn("buffer_misses", "buffer misses", 1.0),
        ],
    },
    ChartPlan {
        id: "dirty",
        title: "Dirty pages",
        caption: "to be written",
        unit: "pages",
        lines: &[drawn("dirty_pages", "dirty pages", 1.0)],
    },
    ChartPlan {
        id: "purge",
        title: "Old row versions",
        caption: "to be purged",
        unit: "row versions",
        lines: &[drawn("purge_lag", "old row versions", 1.0)],
    },
    ChartPlan {
        id: "replicas",
        title: "Lag of the replica that is furthest behind",
        caption: "age of its state",
        unit: "milliseconds",
        lines: &[drawn("replica_lag_us", "lag", 1e3)],
    },
    ChartPlan {
        id: "servercpu",
        title: "CPU of the server's processes",
        caption: "used, and waited for",
        unit: "CPUs",
        lines: &[drawn("cpu_us", "used", 1e6), drawn("cpu_wait_us", "waited for", 1e6)],
    },
    ChartPlan {
        id: "active",
        title: "Active sessions",
        caption: "each second",
        unit: "sessions",
        lines: &[drawn("active_sessions", "active", 1.0)],
    },
    ChartPlan { id: "data", title: "Data size", caption: "", unit: "MiB", lines: &[drawn("data_bytes", "data", MIB)] },
];

const OF_MACHINE: [ChartPlan; 3] = [
    ChartPlan {
        id: "device",
        title: "Device under the data directory",
        caption: "of all processes",
        unit: "MiB per second",
        lines: &[drawn("device_read_bytes", "read", MIB), drawn("device_written_bytes", "written", MIB)],
    },
    ChartPlan {
        id: "memory",
        title: "Memory of the machine",
        caption: "",
        unit: "MiB",
        lines: &[
            drawn("memory_cached_bytes", "cached files", MIB),
            drawn("memory_dirty_bytes", "dirty", MIB),
            drawn("memory_writeback_bytes", "being written", MIB),
            drawn("huge_page_bytes", "huge pages", MIB),
        ],
    },
    ChartPlan {
        id: "pressure",
        title: "Pressure: some task waited",
        caption: "share of the time",
        unit: "percent of the time",
        lines: &[
            drawn("pressure_cpu_us", "CPU", 1e4),
            drawn("pressure_io_us", "I/O", 1e4),
            drawn("pressure_memory_us", "memory", 1e4),
        ],
    },
];

/// Whether a chart shows this metric over time.
pub(super) fn is_drawn(scope: ScopeKind, metric: &str) -> bool {
    let plans = if scope == ScopeKind::Server { &OF_SERVER[..] } else { &OF_MACHINE[..] };
    plans.iter().flat_map(|plan| plan.lines).any(|line| line.metric == metric)
}

/// The charts of all readings of a record. `number`: of the record.
pub(super) fn of_entry(time: &TimeLine, entry: &ReportEntry, number: usize) -> Vec<Chart> {
    let mut keys: Vec<(ScopeKind, u32)> = Vec::new();
    for scope in time.stages.iter().flat_map(|(_, _, stage)| &stage.telemetry) {
        if !keys.contains(&(scope.scope, scope.target)) {
            keys.push((scope.scope, scope.target));
        }
    }
    let several = entry.findings.targets.len() > 1;
    let marks = time.marks();
    let mut all = Vec::new();
    for (kind, target) in keys {
        let scope = ScopeOverTime { time, kind, target };
        let id = |name: &str| match (kind, target) {
            (ScopeKind::Server, 1..) => format!("{name}{}-{}", target.saturating_add(1), number + 1),
            _ => format!("{name}-{}", number + 1),
        };
        let title = |title: &str| match kind {
            ScopeKind::Server if several => format!("{title}, server {}", target.saturating_add(1)),
            _ => title.to_owned(),
        };
        let chart = |name: &str, of: &str, caption: &str, unit: &str, lines: Vec<ChartLine>| {
            // A hit ratio is interesting in its last percent.
            let scale = if name == "hits" { AxisScale::Around } else { AxisScale::Linear };
            let axes = [time_axis([&entry.findings]), axis(unit, scale)];
            Chart::new(id(name), &title(of), caption, axes, ChartBody::Lines { lines }).with_marks(marks.clone())
        };
        let plans = if kind == ScopeKind::Server { &OF_SERVER[..] } else { &OF_MACHINE[..] };
        if kind == ScopeKind::Machine {
            all.push(chart("cpu", "CPU of the whole machine", "generator included", "percent", scope.cpu()));
        }
        for plan in plans {
            all.push(chart(plan.id, plan.title, plan.caption, plan.unit, scope.lines(plan.lines)));
        }
        if kind == ScopeKind::Server {
            all.push(chart("hits", "Buffer hit ratio", "", "percent", scope.hit_ratio()));
            all.push(chart("waits", "Active sessions by wait event", "CPU: not waiting", "sessions", scope.waits()));
        }
    }
    all.retain(|chart| !chart.is_empty());
    all.into_iter().map(Chart::with_groups).collect()
}

/// One server or machine over all stages.
struct ScopeOverTime<'a> {
    time: &'a TimeLine<'a>,
    kind: ScopeKind,
    target: u32,
}

impl<'a> ScopeOverTime<'a> {
    /// Start of each stage, and its readings.
    fn stages(&self) -> impl Iterator<Item = (f64, &'a ScopeFindings)> {
        self.time.stages.iter().filter_map(|(begin, _, stage)| {
            let is = |scope: &&ScopeFindings| scope.scope == self.kind && scope.target == self.target;
            Some((*begin, stage.telemetry.iter().find(is)?))
        })
    }

    /// The points of all stages; values are divided by `scale`.
    fn line(&self, name: &str, scale: f64, of: impl Fn(&'a ScopeFindings) -> Option<&'a Points>) -> ChartLine {
        let all = || self.stages().filter_map(|(begin, scope)| Some((begin, of(scope)?)));
        let mut points: Vec<(f64, Option<f64>)> = Vec::with_capacity(all().map(|(_, points)| points.len()).sum());
        for (begin, of_stage) in all() {
            for TelemetryPoint { at_ns, value } in of_stage.iter() {
                let at = instant(begin, at_ns);
                // A forged file may have times that do not ascend.
                if points.last().is_none_or(|(last, _)| at > *last) {
                    points.push((at, value.map(|value| value / scale)));
                }
            }
        }
        line(name, points, self.time.points_max)
    }

    fn lines(&self, plan: &[Drawn]) -> Vec<ChartLine> {
        let points = |metric: &str, scope: &'a ScopeFindings| Some(&scope.metric(metric)?.points);
        let line = |one: &Drawn| self.line(one.name, one.scale, |scope| points(one.metric, scope));
        plan.iter().map(line).filter(has_values).collect()
    }

    /// CPU usage, in percent of all CPUs.
    fn cpu(&self) -> Vec<ChartLine> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.stages().flat_map(|(_, scope)| &scope.shares.cpu) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let points = |name: &str, scope: &'a ScopeFindings| {
            scope.shares.cpu.iter().find(|(one, _)| *one == name).map(|(_, found)| &found.points)
        };
        let lines = names.iter().map(|name| self.line(name, 0.01, |scope| points(name, scope)));
        stacked(lines.filter(has_values).collect())
    }

    fn hit_ratio(&self) -> Vec<ChartLine> {
        let points = |scope: &'a ScopeFindings| Some(&scope.shares.hits.as_ref()?.points);
        [self.line("hit ratio", 0.01, points)].into_iter().filter(has_values).collect()
    }

    /// The most frequent events, and the sum of all others: areas are told apart by color alone.
    fn waits(&self) -> Vec<ChartLine> {
        let mut names: Vec<(&str, f64)> = Vec::new();
        for event in self.stages().flat_map(|(_, scope)| scope.waits.iter().flatten()) {
            match names.iter_mut().find(|(name, _)| *name == event.event) {
                Some((_, sum)) => *sum += event.sessions,
                None => names.push((&event.event, event.sessions)),
            }
        }
        names.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let own = if names.len() > SERIES_MANY { SERIES_MANY - 1 } else { names.len() };
        let (own, others) = names.split_at(own);
        let of = |name: &str, events: &[(&str, f64)]| {
            let mut points: Vec<(f64, Option<f64>)> = Vec::new();
            for (begin, scope) in self.stages() {
                let is_in = |event: &&WaitFindings| events.iter().any(|(name, _)| *name == event.event);
                let all = scope.waits.iter().flatten();
                let numbers: Vec<usize> =
                    all.enumerate().filter(|(_, event)| is_in(event)).map(|(number, _)| number).collect();
                for (at_ns, sessions) in &scope.wait_points {
                    let at = instant(begin, *at_ns);
                    if points.last().is_none_or(|(last, _)| at > *last) {
                        let sum = numbers.iter().filter_map(|number| sessions.get(*number)).sum();
                        points.push((at, Some(sum)));
                    }
                }
            }
            line(&clean(name, NAME_WIDTH), points, self.time.points_max)
        };
        let mut lines: Vec<ChartLine> = own.iter().map(|event| of(event.0, &[*event])).collect();
        if !others.is_empty() {
            lines.push(of(&format!("{} other events", others.len()), others));
        }
        stacked(lines.into_iter().filter(has_values).collect())
    }
}

/// Each line on top of the previous one. They have the same instants; others are left unchanged.
fn stacked(mut lines: Vec<ChartLine>) -> Vec<ChartLine> {
    if lines.windows(2).any(|two| two[0].x != two[1].x) {
        return lines;
    }
    let instants = lines.first().map_or(0, |line| line.x.len());
    for at in 0..instants {
        let is_known = lines.iter().any(|line| line.y[at].is_some());
        let mut sum = 0.0;
        for line in &mut lines {
            let from = sum;
            sum += line.y[at].unwrap_or(0.0);
            line.y[at] = is_known.then(|| rounded(sum));
            line.band.push(is_known.then(|| (rounded(from), rounded(sum))));
        }
    }
    lines.iter_mut().for_each(|line| line.stacked = true);
    lines
}

fn has_values(line: &ChartLine) -> bool {
    line.y.iter().any(Option::is_some)
}

/// A line of at most `points_max` points: when several are merged, the last one remains.
fn line(name: &str, points: Vec<(f64, Option<f64>)>, points_max: usize) -> ChartLine {
    let every = points.len().div_ceil(points_max).max(1);
    let kept = points.chunks(every).filter_map(|chunk| chunk.last().copied());
    let (x, y) = kept.map(|(at, value)| (at, value.map(rounded))).unzip();
    ChartLine { x, y, ..ChartLine::new(name, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacked_lines_stand_on_each_other_and_gaps_stay_gaps() {
        let of = |name: &str, y: [Option<f64>; 3]| ChartLine {
            x: vec![1.0, 2.0, 3.0],
            y: y.to_vec(),
            ..ChartLine::new(name, 0)
        };
        let found = stacked(vec![of("user", [Some(30.0), None, None]), of("idle", [Some(70.0), Some(5.0), None])]);
        assert_eq!(found[1].y, [Some(100.0), Some(5.0), None]);
        assert_eq!(found[1].band, [Some((30.0, 100.0)), Some((0.0, 5.0)), None]);
        let other = ChartLine { x: vec![9.0, 10.0, 11.0], ..of("other", [None; 3]) };
        assert!(stacked(vec![of("user", [Some(1.0); 3]), other]).iter().all(|line| !line.stacked));
    }
}
