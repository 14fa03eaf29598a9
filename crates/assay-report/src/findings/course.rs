//! One figure over the time of a stage, by name: the data of charts over time.
//!
//! Names are those of `metric`, if they exist per second, and those of telemetry readings: `tps`, `p99`,
//! `new_order.tps`, `server.log_bytes`, `machine.device_written_bytes`.

use assay_record::{Reading, ScopeKind, Unit};

use crate::findings::arithmetic::per_second;
use crate::findings::interval::IntervalFindings;
use crate::findings::latency::LatencyFindings;
use crate::findings::shares::{ShareFindings, Shares, TelemetryPoint};
use crate::findings::stage::StageFindings;
use crate::findings::telemetry::{ScopeFindings, TelemetryFindings};

/// A figure over time.
#[derive(Clone)]
pub(crate) struct FigureOverTime {
    /// The unit of its values.
    pub(crate) unit: &'static str,
    /// Seconds since the start of the stage (or of its window), and the value.
    pub(crate) points: Vec<(f64, Option<f64>)>,
}

const MIB: f64 = 1_048_576.0;

/// `None`: the stage has no such figure.
pub(crate) fn course(stage: &StageFindings, name: &str) -> Option<FigureOverTime> {
    let of = |unit, value: &dyn Fn(&IntervalFindings) -> Option<f64>| {
        let point = |one: &IntervalFindings| (one.end_ns as f64 / 1e9, value(one));
        Some(FigureOverTime { unit, points: stage.intervals.iter().map(point).collect() })
    };
    let ms = |value: fn(&LatencyFindings) -> Option<f64>| {
        of("ms", &move |one| value(&one.response).filter(|ns| *ns > 0.0).map(|ns| ns / 1e6))
    };
    let rate = |value: fn(&IntervalFindings) -> u64| {
        of("per second", &move |one| Some(per_second(value(one), one.end_ns.saturating_sub(one.start_ns))))
    };
    match name {
        "tps" => of("transactions per second", &|one| Some(one.tps)),
        "qps" => of("statements per second", &|one| Some(one.qps)),
        "p50" => ms(|response| response.p50_ns.map(|ns| ns as f64)),
        "p90" => ms(|response| response.p90_ns.map(|ns| ns as f64)),
        "p95" => ms(|response| response.p95_ns.map(|ns| ns as f64)),
        "p99" => ms(|response| response.p99_ns.map(|ns| ns as f64)),
        "p999" => ms(|response| response.p999_ns.map(|ns| ns as f64)),
        "mean" => ms(|response| response.mean_ns),
        "max" => ms(|response| response.max_ns.map(|ns| ns as f64)),
        "errors" => rate(|one| one.errors),
        "retries" => rate(|one| one.retries),
        "failed" => rate(|one| one.failed),
        "backlog" => of("transactions waiting", &|one| Some(one.backlog as f64)),
        "cpus_used" => of("CPUs of the generator", &|one| Some(one.cpus_used)),
        _ => of_type(stage, name).or_else(|| telemetry(stage, name)),
    }
}

/// Names that `course` knows of this stage.
pub(crate) fn course_names(stage: &StageFindings) -> Vec<String> {
    let plain = [
        "tps",
        "qps",
        "p50",
        "p90",
        "p95",
        "p99",
        "p999",
        "mean",
        "max",
        "errors",
        "retries",
        "failed",
        "backlog",
        "cpus_used",
    ];
    let types = stage.total.types.iter().filter(|one| one.has_ended()).map(|one| format!("{}.tps", one.name));
    let telemetry = stage
        .telemetry
        .iter()
        .flat_map(|scope| scope.metrics.iter().map(|metric| format!("{}.{}", scope_name(scope), metric.metric)));
    plain.map(str::to_owned).into_iter().chain(types).chain(telemetry).collect()
}

fn of_type(stage: &StageFindings, name: &str) -> Option<FigureOverTime> {
    let name = name.strip_suffix(".tps")?;
    let number = stage.total.types.iter().position(|one| one.name == name)?;
    let point = |one: &IntervalFindings| {
        let count = one.transactions_by_type.get(number).copied().unwrap_or(0);
        (one.end_ns as f64 / 1e9, Some(per_second(count, one.end_ns.saturating_sub(one.start_ns))))
    };
    Some(FigureOverTime { unit: "transactions per second", points: stage.intervals.iter().map(point).collect() })
}

fn telemetry(stage: &StageFindings, name: &str) -> Option<FigureOverTime> {
    let (of, metric) = name.split_once('.')?;
    let scope = stage.telemetry.iter().find(|scope| scope_name(scope) == of)?;
    if let Some(share) = metric.strip_suffix("_percent").and_then(|name| share_of(&scope.shares, name)) {
        let point = |one: TelemetryPoint| (one.at_ns as f64 / 1e9, one.value.map(|share| share * 100.0));
        return Some(FigureOverTime { unit: "percent", points: share.points.iter().map(point).collect() });
    }
    let found = scope.metric(metric)?;
    let (unit, scale) = unit(found);
    let point = |one: TelemetryPoint| (one.at_ns as f64 / 1e9, one.value.map(|value| value / scale));
    Some(FigureOverTime { unit, points: found.points.iter().map(point).collect() })
}

/// A share over time: of CPU time by kind, or of pages found in the server's own memory.
fn share_of<'a>(shares: &'a Shares, name: &str) -> Option<&'a ShareFindings> {
    if name == "buffer_hit" {
        return shares.hits.as_ref();
    }
    let kind = name.strip_prefix("cpu_")?;
    shares.cpu.iter().find(|(known, _)| *known == kind).map(|(_, share)| share)
}

/// A metric's unit for display, and the divisor of its values.
fn unit(found: &TelemetryFindings) -> (&'static str, f64) {
    match (found.reading, found.unit) {
        (Reading::Counter, Unit::Count) => ("per second", 1.0),
        (Reading::Counter, Unit::Bytes) => ("MiB per second", MIB),
        (Reading::Counter, Unit::Us) => ("seconds per second", 1e6),
        (Reading::Gauge, Unit::Count) => ("number", 1.0),
        (Reading::Gauge, Unit::Bytes) => ("MiB", MIB),
        (Reading::Gauge, Unit::Us) => ("ms", 1e3),
    }
}

/// `server`, `server2`, `machine`: as in the names of metrics.
pub(crate) fn scope_name(scope: &ScopeFindings) -> String {
    match (scope.scope, scope.target) {
        (ScopeKind::Machine, _) => "machine".to_owned(),
        (ScopeKind::Server, 0) => "server".to_owned(),
        (ScopeKind::Server, target) => format!("server{}", target.saturating_add(1)),
    }
}
