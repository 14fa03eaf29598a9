//! Figures that only experiments show, by name: how even the seconds were, outages and errors by class, shares of CPU
//! time, and other readings of telemetry than its own. Comparisons do not list them, because they follow from others.

use crate::findings::arithmetic::{median, sum};
use crate::findings::course::scope_name;
use crate::findings::interval::IntervalFindings;
use crate::findings::metric::Better;
use crate::findings::shares::Shares;
use crate::findings::stage::StageFindings;
use crate::findings::telemetry::TelemetryFindings;

/// A figure of a stage that follows from its course.
pub struct DerivedFigure {
    /// As written in recipes.
    pub name: &'static str,
    /// Shown after its name; may be empty.
    pub unit: &'static str,
    /// What it is, for the list of metrics.
    pub meaning: &'static str,
    /// Which direction is good.
    pub better: Better,
    of: fn(&StageFindings) -> Option<f64>,
}

/// A second is near zero below this share of the median second.
const NEAR_ZERO: f64 = 0.1;

/// All of them.
pub const DERIVED: [DerivedFigure; 9] = [
    DerivedFigure {
        name: "tps_median",
        unit: "",
        meaning: "median of the seconds' throughput",
        better: Better::Higher,
        of: |stage| median(seconds(stage)),
    },
    DerivedFigure {
        name: "tps_min",
        unit: "",
        meaning: "throughput of the slowest second",
        better: Better::Higher,
        of: |stage| seconds(stage).reduce(f64::min),
    },
    DerivedFigure {
        name: "tps_max",
        unit: "",
        meaning: "throughput of the fastest second",
        better: Better::Higher,
        of: |stage| seconds(stage).reduce(f64::max),
    },
    DerivedFigure {
        name: "tps_deviation",
        unit: "",
        meaning: "standard deviation of the seconds' throughput",
        better: Better::Lower,
        of: deviation,
    },
    DerivedFigure {
        name: "tps_variance",
        unit: "",
        meaning: "variance of the seconds' throughput",
        better: Better::Lower,
        of: |stage| deviation(stage).map(|deviation| deviation * deviation),
    },
    DerivedFigure {
        name: "tps_variation",
        unit: "%",
        meaning: "standard deviation of the seconds' throughput, in percent of their mean",
        better: Better::Lower,
        of: |stage| stage.throughput.variation.map(|variation| variation * 100.0),
    },
    DerivedFigure {
        name: "near_zero",
        unit: "s",
        meaning: "seconds with less than a tenth of the median second's throughput",
        better: Better::Lower,
        of: near_zero,
    },
    DerivedFigure {
        name: "outages",
        unit: "",
        meaning: "number of outages: a second or more without a finished transaction",
        better: Better::Lower,
        of: |stage| Some(stage.throughput.outages.len() as f64),
    },
    DerivedFigure {
        name: "recovery",
        unit: "s",
        meaning: "after outages, until a second had 90% of the median throughput before it; the longest",
        better: Better::Lower,
        of: |stage| {
            let recoveries = stage.throughput.outages.iter().filter_map(|outage| outage.recovery_ns);
            recoveries.max().map(|ns| ns as f64 / 1e9)
        },
    },
];

/// A figure with its unit.
pub(crate) struct Derived {
    pub(crate) value: Option<f64>,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
}

/// The figure of this name; `None`: there is none.
pub(crate) fn derived(stage: &StageFindings, name: &str) -> Option<Derived> {
    if let Some(one) = DERIVED.iter().find(|one| one.name == name) {
        return Some(Derived { value: (one.of)(stage), unit: one.unit, better: one.better });
    }
    if let Some(class) = name.strip_prefix("errors.") {
        let own = stage.total.errors_by_kind.iter().filter(|error| error.class == class);
        // A sum of no floating-point numbers would be -0.
        let value = sum(own.map(|error| error.count)) as f64;
        return Some(Derived { value: Some(value), unit: "", better: Better::Lower });
    }
    let (of, rest) = name.split_once('.')?;
    let scope = stage.telemetry.iter().find(|scope| scope_name(scope) == of)?;
    if let Some(share) = share_of(&scope.shares, rest) {
        return Some(Derived { value: share.map(|share| share * 100.0), unit: "%", better: Better::Neither });
    }
    let (metric, scale, reading) = SCALES.iter().find_map(|(short, scale)| {
        FORMS.iter().find_map(|form| {
            let base = rest.strip_suffix(form.suffix)?;
            let metric = match short.is_empty() {
                true => base.to_owned(),
                false => format!("{}_bytes", base.strip_suffix(short)?),
            };
            Some((scope.metric(&metric)?, *scale, form))
        })
    })?;
    let value = (reading.of)(metric, stage).map(|value| value * scale);
    Some(Derived { value, unit: "", better: reading.better })
}

/// Names that `derived` knows of any stage.
pub(crate) fn derived_names() -> impl Iterator<Item = &'static str> {
    DERIVED.iter().map(|one| one.name)
}

/// Other words for metrics, as users of some product know them.
const MEANT: [(&str, &str); 18] = [
    ("dead_rows", "server.purge_lag"),
    ("dead_tuples", "server.purge_lag"),
    ("history_list_length", "server.purge_lag"),
    ("undo", "server.purge_lag"),
    ("wal_bytes", "server.log_bytes"),
    ("redo_bytes", "server.log_bytes"),
    ("fsyncs", "server.log_fsyncs"),
    ("hit_ratio", "server.buffer_hit_percent"),
    ("cache_hit", "server.buffer_hit_percent"),
    ("connections", "server.active_sessions"),
    ("threads_running", "server.active_sessions"),
    ("disk_usage", "server.data_folder_bytes"),
    ("iops", "machine.device_reads_per_s"),
    ("iowait", "machine.cpu_iowait_percent"),
    ("throughput", "tps"),
    ("latency", "p99"),
    ("variance", "tps_variance"),
    ("stalls", "near_zero"),
];

/// The metric that a word means which is not its name.
pub fn meant_metric(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    MEANT.iter().find(|(other, _)| word.contains(other)).map(|(_, metric)| *metric)
}

/// A share over a stage by its name: `cpu_user_percent`. The inner `None`: nothing happened that it could be a share
/// of.
fn share_of(shares: &Shares, name: &str) -> Option<Option<f64>> {
    let name = name.strip_suffix("_percent")?;
    match name {
        "buffer_hit" => shares.hits.as_ref().map(|hits| hits.share),
        "device_busy" => shares.device_busy.map(Some),
        name => {
            let kind = name.strip_prefix("cpu_")?;
            shares.cpu.iter().find(|(known, _)| *known == kind).map(|(_, share)| share.share)
        }
    }
}

/// Readings of a metric other than the usual one.
struct Form {
    suffix: &'static str,
    better: Better,
    of: fn(&TelemetryFindings, &StageFindings) -> Option<f64>,
}

const FORMS: [Form; 6] = [
    Form { suffix: "_per_s", better: Better::Higher, of: |metric, _| metric.per_s },
    Form { suffix: "_per_transaction", better: Better::Lower, of: |metric, _| metric.per_transaction },
    Form {
        suffix: "_total",
        better: Better::Lower,
        of: |metric, stage| metric.per_s.map(|rate| rate * stage.measured_ns as f64 / 1e9),
    },
    Form { suffix: "_last", better: Better::Lower, of: |metric, _| metric.last },
    Form { suffix: "_max", better: Better::Lower, of: |metric, _| metric.max },
    Form { suffix: "_growth", better: Better::Lower, of: |metric, _| growth(metric) },
];

/// Shorter names of metrics in bytes, and the factor to them.
const SCALES: [(&str, f64); 3] = [("", 1.0), ("_mb", 1e-6), ("_kb", 1e-3)];

/// From the first to the last reading of a gauge.
fn growth(metric: &TelemetryFindings) -> Option<f64> {
    metric.last?;
    let mut known = metric.points.iter().filter_map(|point| point.value);
    let first = known.next()?;
    Some(known.next_back().unwrap_or(first) - first)
}

fn seconds(stage: &StageFindings) -> impl Iterator<Item = f64> {
    // The rest at the end, if it is shorter than half an interval, is mostly chance.
    let length = |one: &IntervalFindings| one.end_ns.saturating_sub(one.start_ns);
    let usual = stage.intervals.first().map_or(0, length);
    stage.intervals.iter().filter(move |one| length(one) >= usual / 2).map(|one| one.tps)
}

/// `None` for fewer than two seconds.
fn deviation(stage: &StageFindings) -> Option<f64> {
    let all: Vec<f64> = seconds(stage).collect();
    if all.len() < 2 {
        return None;
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let squares: f64 = all.iter().map(|one| (one - mean) * (one - mean)).sum();
    Some((squares / (all.len() - 1) as f64).sqrt())
}

fn near_zero(stage: &StageFindings) -> Option<f64> {
    let usual = median(seconds(stage))?;
    let slow = stage.intervals.iter().filter(|one| one.tps < NEAR_ZERO * usual);
    Some(sum(slow.map(|one| one.end_ns.saturating_sub(one.start_ns))) as f64 / 1e9)
}
