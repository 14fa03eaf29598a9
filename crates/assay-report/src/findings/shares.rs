//! Shares that follow from several readings of one server or machine: hits of its memory, its checkpoint, its device,
//! its CPUs.

/// A value over a step between two samples; for a gauge, at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TelemetryPoint {
    /// End of the step, since the start of the stage.
    pub at_ns: u64,
    /// Per second, or a level. `None`: it could not be read, or the counter was reset.
    pub value: Option<f64>,
}

/// A metric, as far as shares need it.
#[derive(Clone, Copy)]
pub(crate) struct MetricPoints<'a> {
    pub(crate) per_s: Option<f64>,
    pub(crate) mean: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) points: &'a [TelemetryPoint],
}

/// The shares of one server or machine in a stage. `None`, or empty: it has no such readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares {
    /// Share of the requested pages that were in the server's own memory.
    pub hits: Option<ShareFindings>,
    /// Log since the last checkpoint as a share of the size that makes the server start or hasten one: mean and
    /// maximum.
    pub checkpoint: Option<(f64, f64)>,
    /// Share of the time in which the device had some operation in progress.
    pub device_busy: Option<f64>,
    /// Shares of the time of all CPUs, in the order in which charts stack them.
    pub cpu: Vec<(&'static str, ShareFindings)>,
}

/// A share, 0 … 1.
#[derive(Clone, Debug, PartialEq)]
pub struct ShareFindings {
    /// Over the stage; `None`: nothing happened that it could be a share of.
    pub share: Option<f64>,
    /// Over time.
    pub points: Vec<TelemetryPoint>,
}

const CPU_KINDS: [(&str, &str); 5] = [
    ("user", "cpu_user_us"),
    ("system", "cpu_system_us"),
    ("iowait", "cpu_iowait_us"),
    ("steal", "cpu_steal_us"),
    ("idle", "cpu_idle_us"),
];

/// The shares that follow from the metrics of one scope, whose points have the same instants.
pub(crate) fn shares<'a>(metric: impl Fn(&str) -> Option<MetricPoints<'a>>) -> Shares {
    let checkpoint = metric("checkpoint_age_bytes").zip(metric("checkpoint_age_limit_bytes"));
    let cpu = CPU_KINDS.map(|(name, metric_name)| (name, metric(metric_name)));
    Shares {
        hits: metric("buffer_reads").zip(metric("buffer_misses")).map(|(reads, misses)| hits(reads, misses)),
        checkpoint: checkpoint.and_then(|(age, limit)| {
            let limit = limit.mean.filter(|limit| *limit > 0.0)?;
            Some((age.mean? / limit, age.max? / limit))
        }),
        device_busy: metric("device_busy_us").and_then(|one| one.per_s).map(|us| (us / 1e6).min(1.0)),
        cpu: of_sum(&cpu),
    }
}

fn hits(reads: MetricPoints, misses: MetricPoints) -> ShareFindings {
    let hits = |reads: Option<f64>, misses: Option<f64>| {
        let reads = reads.filter(|reads| *reads > 0.0)?;
        Some((1.0 - misses? / reads).clamp(0.0, 1.0))
    };
    let points = reads.points.iter().zip(misses.points);
    ShareFindings {
        share: hits(reads.per_s, misses.per_s),
        points: points.map(|(one, other)| TelemetryPoint { value: hits(one.value, other.value), ..*one }).collect(),
    }
}

/// Each rate as a share of the sum of all.
fn of_sum(all: &[(&'static str, Option<MetricPoints>)]) -> Vec<(&'static str, ShareFindings)> {
    let known = || all.iter().filter_map(|(name, found)| Some((*name, (*found)?)));
    let at = |found: MetricPoints, number: usize| found.points.get(number).and_then(|point| point.value);
    let share = |value: Option<f64>, sum: f64| value.filter(|_| sum > 0.0).map(|value| value / sum);
    let sum: f64 = known().filter_map(|(_, found)| found.per_s).sum();
    let length = known().map(|(_, found)| found.points.len()).max().unwrap_or(0);
    let sums: Vec<f64> = (0..length).map(|number| known().filter_map(|(_, found)| at(found, number)).sum()).collect();
    let shares = known().map(|(name, found)| {
        let points = found.points.iter().zip(&sums);
        let points = points.map(|(point, sum)| TelemetryPoint { value: share(point.value, *sum), ..*point }).collect();
        (name, ShareFindings { share: share(found.per_s, sum), points })
    });
    shares.collect()
}
