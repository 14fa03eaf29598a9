//! Shares that follow from several readings of one server or machine: hits of its memory, its checkpoint, its device,
//! its CPUs.

use std::sync::Arc;

/// A value over a step between two samples; for a gauge, at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TelemetryPoint {
    /// End of the step, since the start of the stage.
    pub at_ns: u64,
    /// Per second, or a level. `None`: it could not be read, or the counter was reset.
    pub value: Option<f64>,
}

/// Values over time. Days of them are most of what a report holds, so the metrics of a scope share their instants.
#[derive(Clone, Debug, Default)]
pub struct Points {
    at_ns: Arc<[u64]>,
    /// NaN: unknown. As many as there are instants.
    values: Box<[f64]>,
}

impl Points {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// In their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = TelemetryPoint> + ExactSizeIterator + Clone {
        let point = |(at_ns, value): (&u64, &f64)| TelemetryPoint {
            at_ns: *at_ns,
            value: Some(*value).filter(|value| !value.is_nan()),
        };
        self.at_ns.iter().zip(&self.values).map(point)
    }

    pub(crate) fn value(&self, number: usize) -> Option<f64> {
        self.values.get(number).copied().filter(|value| !value.is_nan())
    }

    /// Values at these instants, as many, NaN if unknown. Those of `known` are used where they are the same.
    pub(crate) fn at(at_ns: &[u64], values: Vec<f64>, known: &mut Vec<Arc<[u64]>>) -> Points {
        let at_ns = match known.iter().find(|known| ***known == *at_ns) {
            Some(known) => Arc::clone(known),
            None => {
                known.push(at_ns.into());
                Arc::clone(&known[known.len() - 1])
            }
        };
        Points { at_ns, values: values.into() }
    }

    /// These values instead, at the same instants.
    fn with(&self, values: impl Iterator<Item = Option<f64>>) -> Points {
        let values: Box<[f64]> = values.map(|value| value.unwrap_or(f64::NAN)).collect();
        match values.len() == self.at_ns.len() {
            true => Points { at_ns: Arc::clone(&self.at_ns), values },
            false => Points { at_ns: self.at_ns[..values.len()].into(), values },
        }
    }
}

impl PartialEq for Points {
    fn eq(&self, other: &Points) -> bool {
        self.iter().eq(other.iter())
    }
}

impl FromIterator<TelemetryPoint> for Points {
    fn from_iter<I: IntoIterator<Item = TelemetryPoint>>(points: I) -> Points {
        let (at_ns, values): (Vec<u64>, Vec<f64>) =
            points.into_iter().map(|point| (point.at_ns, point.value.unwrap_or(f64::NAN))).unzip();
        Points { at_ns: at_ns.into(), values: values.into() }
    }
}

/// A metric, as far as shares need it.
#[derive(Clone, Copy)]
pub(crate) struct MetricPoints<'a> {
    pub(crate) per_s: Option<f64>,
    pub(crate) mean: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) points: &'a Points,
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
    pub points: Points,
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
    let points = reads.points.iter().zip(misses.points.iter());
    ShareFindings {
        share: hits(reads.per_s, misses.per_s),
        points: reads.points.with(points.map(|(one, other)| hits(one.value, other.value))),
    }
}

/// Each rate as a share of the sum of all.
fn of_sum(all: &[(&'static str, Option<MetricPoints>)]) -> Vec<(&'static str, ShareFindings)> {
    let known = || all.iter().filter_map(|(name, found)| Some((*name, (*found)?)));
    let share = |value: Option<f64>, sum: f64| value.filter(|_| sum > 0.0).map(|value| value / sum);
    let sum: f64 = known().filter_map(|(_, found)| found.per_s).sum();
    let length = known().map(|(_, found)| found.points.len()).max().unwrap_or(0);
    let sums: Vec<f64> =
        (0..length).map(|number| known().filter_map(|(_, found)| found.points.value(number)).sum()).collect();
    let shares = known().map(|(name, found)| {
        let points = found.points.iter().zip(&sums);
        let points = found.points.with(points.map(|(point, sum)| share(point.value, *sum)));
        (name, ShareFindings { share: share(found.per_s, sum), points })
    });
    shares.collect()
}
