//! Telemetry of servers and their machine, in short facts.

use assay_record::{ScopeKind, Unit};

use crate::digits::{count, figure, micros, percent};
use crate::findings::run::Findings;
use crate::findings::stage::StageFindings;
use crate::findings::telemetry::{SamplingFindings, ScopeFindings, TelemetryFindings};
use crate::plain::clean;
use crate::words::facts::Facts;

const EVENT_WIDTH: usize = 32;
/// Number of events shown together.
const EVENTS_SHOWN: usize = 4;

/// The most important figures, by server and machine, and the cost of sampling.
pub(crate) fn telemetry(stage: &StageFindings, findings: &Findings) -> Vec<Facts> {
    let mut all: Vec<Facts> = Vec::new();
    for scope in &stage.telemetry {
        match scope.scope {
            ScopeKind::Server => {
                all.push(("server", server(scope, findings)));
                all.push(("waits", waits(scope)));
            }
            ScopeKind::Machine => all.push(("machine", machine(scope))),
        }
    }
    if !stage.telemetry.is_empty() {
        all.push(("telemetry", findings.sampling.as_ref().map(sampling).unwrap_or_default()));
    }
    all.retain(|(_, facts)| !facts.is_empty());
    all
}

fn server(scope: &ScopeFindings, findings: &Findings) -> Vec<String> {
    let mut facts = Vec::new();
    if findings.targets.len() > 1 {
        facts.push(format!("number {}", scope.target.saturating_add(1)));
    }
    let each = |name: &str, words: &dyn Fn(f64) -> String| scope.metric(name)?.per_transaction.map(words);
    let per_transaction = [
        each("log_bytes", &|value| format!("{} log", bytes(value))),
        each("log_fsyncs", &|value| format!("{} log fsyncs", small(value))),
        each("buffer_misses", &|value| format!("{} buffer misses", small(value))),
        each("cpu_us", &|value| format!("{} µs CPU", micros(value * 1e3))),
    ];
    facts.extend(all_per_transaction(per_transaction.into_iter().flatten()));
    if scope.metric("cpu_us").is_some_and(|cpu| cpu.includes_own)
        && let Some(sampling) = &findings.sampling
    {
        facts.push(format!("CPU includes telemetry's own {} statements/s", figure(sampling.statements_per_s)));
    }
    let hits = scope.shares.hits.as_ref().and_then(|hits| hits.share);
    facts.extend(hits.map(|share| format!("buffer hit ratio {}", share_with_digits(share))));
    let checkpoint = scope.shares.checkpoint;
    facts.extend(
        checkpoint
            .map(|(mean, most)| format!("checkpoint age {} of its limit, at most {}", percent(mean), percent(most))),
    );
    if !scope.absent.is_empty() {
        let names: Vec<String> = scope.absent.iter().map(|one| clean(&one.metric, EVENT_WIDTH)).collect();
        facts.push(format!("not counted by the server: {}", names.join(", ")));
    }
    facts
}

/// Figures that belong together; `None` without any.
fn all_per_transaction(figures: impl IntoIterator<Item = String>) -> Option<String> {
    let all: Vec<String> = figures.into_iter().collect();
    (!all.is_empty()).then(|| format!("per transaction: {}", all.join(", ")))
}

fn machine(scope: &ScopeFindings) -> Vec<String> {
    let mut facts = Vec::new();
    let each = |name: &str| scope.metric(name).and_then(|one| one.per_transaction);
    if let (Some(read), Some(written)) = (each("device_read_bytes"), each("device_written_bytes")) {
        let each = [format!("{} read", bytes(read)), format!("{} written", bytes(written))];
        facts.extend(all_per_transaction(each));
    }
    facts.extend(scope.shares.device_busy.map(|share| format!("device {} busy", percent(share))));
    let shares = scope.shares.cpu.iter().filter_map(|(name, found)| Some((name, found.share?)));
    let shares = shares.filter(|(_, share)| *share > 0.0);
    let shares: Vec<String> = shares.map(|(name, share)| format!("{name} {}", percent(share))).collect();
    if !shares.is_empty() {
        facts.push(format!("CPU {}", shares.join(", ")));
    }
    facts
}

fn waits(scope: &ScopeFindings) -> Vec<String> {
    let events = scope.waits.iter().flatten().take(EVENTS_SHOWN);
    events.map(|one| format!("{} {}", clean(&one.event, EVENT_WIDTH), percent(one.share))).collect()
}

fn sampling(found: &SamplingFindings) -> Vec<String> {
    let cost = match found.server_cpu_share {
        Some(server) => {
            let [ours, theirs] = [found.cpu_share, server].map(share_with_digits);
            format!("cost {ours} of a CPU in assay, {theirs} in the server")
        }
        None => format!("cost {} of a CPU in assay", share_with_digits(found.cpu_share)),
    };
    let mut facts = vec![cost, format!("{} statements/s on servers", figure(found.statements_per_s))];
    facts.extend(found.statement_ns.map(|ns| format!("{} ms each", figure(ns / 1e6))));
    facts.extend(interventions(found));
    facts
}

/// Changes made to servers for sampling.
fn interventions(found: &SamplingFindings) -> Option<String> {
    let all = &found.interventions;
    let left = all.iter().filter(|one| one.undone.is_none()).count();
    match all.as_slice() {
        [] => None,
        _ if left > 0 => Some(format!("counters switched on and not off again: {left}")),
        _ => Some(format!("counters switched on for this run: {}", all.len())),
    }
}

/// `99.87%`: shares near one or zero need their digits.
fn share_with_digits(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// A number per transaction; digits of what hardly ever happens say nothing.
fn small(value: f64) -> String {
    if 0.0 < value && value < 0.0001 { "<0.0001".to_owned() } else { figure(value) }
}

/// `412 B`, `1.5 KiB`; parts of a byte are not worth digits.
pub(crate) fn bytes(value: f64) -> String {
    if 0.0 < value && value < 1.0 {
        return "<1 B".to_owned();
    }
    const UNITS: [(f64, &str); 3] = [(1024.0, "KiB"), (1_048_576.0, "MiB"), (1_073_741_824.0, "GiB")];
    match UNITS.iter().rev().find(|(scale, _)| value >= *scale) {
        Some((scale, unit)) => format!("{} {unit}", figure(value / scale)),
        None => format!("{} B", figure(value)),
    }
}

/// What a counter adds per second, in the unit of its metric: time of CPUs as a number of CPUs.
pub fn in_unit_per_second(of: &TelemetryFindings, value: f64) -> String {
    match of.unit {
        Unit::Us if of.metric.starts_with("pressure_") => percent(value / 1e6),
        Unit::Us if of.metric.contains("cpu_") => format!("{} CPUs", figure(value / 1e6)),
        Unit::Us => format!("{} s/s", figure(value / 1e6)),
        Unit::Bytes | Unit::Count => in_unit(of, value),
    }
}

/// A figure in the unit of its metric.
pub fn in_unit(of: &TelemetryFindings, value: f64) -> String {
    match of.unit {
        Unit::Bytes => bytes(value),
        Unit::Us => format!("{} µs", figure(value)),
        Unit::Count => figure(value),
    }
}

/// Whether the server's table of statements lacks many of those of the load; `None`: it does not.
pub(crate) fn not_all_statements(scope: &ScopeFindings, findings: &Findings) -> Option<String> {
    /// Statements beyond the ones kept, and those of a server that forgets rare ones.
    const SHARE_MIN: f64 = 0.8;
    let counted: u64 = scope.statements.iter().map(|one| one.calls).sum();
    let executed: u64 = findings.stages.iter().map(|stage| stage.total.statements).sum();
    let is_all = counted as f64 >= executed as f64 * SHARE_MIN || findings.targets.len() > 1;
    (!is_all).then(|| {
        format!(
            "Only {} of {} statements are in this table: MySQL and MariaDB do not count prepared statements there, and no \
             server keeps all of very many. What a share says holds for these only.",
            count(counted),
            count(executed)
        )
    })
}
