//! Outages: periods in which no transaction finished although there was work.
//!
//! One definition for every output: from the last transaction that finished before to the first that finished after, at
//! least a second. If intervals are longer than a second, outages within one of them are not visible.

use std::collections::BTreeMap;

use assay_record::{self as record, Interval, Record, ScopeKind};
use serde::Serialize;

use crate::findings::arithmetic::{per_second, sum};

/// No transaction finished from `start_ns` on for `length_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OutageFindings {
    /// When the last transaction before it finished, since the start of the measured part.
    pub start_ns: u64,
    /// Up to the end of the first transaction after it.
    pub length_ns: u64,
    /// Whether it lasted to the end of the stage.
    pub to_end: bool,
    /// Errors in the intervals that overlap it.
    pub errors: u64,
    /// From its end to the start of a second with nine tenths of the median throughput before it; `None`: not within
    /// the stage, or the throughput before it is unknown.
    pub recovery_ns: Option<u64>,
    /// The longest part of it in which assay itself was not running, if that is most of it; 0: it was running; `None`:
    /// unknown.
    pub halted_ns: Option<u64>,
}

/// What is known of when assay ran.
pub(crate) struct Ran<'a> {
    by: Witness<'a>,
    /// The start of the measured part, on its clock.
    start_ns: u64,
}

/// How it is known.
enum Witness<'a> {
    /// It noticed when it had not run: from and to, ascending.
    Halts(&'a [[u64; 2]]),
    /// It sampled its own machine: the samples of the whole run, ascending, and the planned time between two.
    Samples { began_ns: &'a [u64], every_ns: u64 },
}

impl<'a> Ran<'a> {
    /// During a stage of a run; `None`: not known, as of the agents of a fleet.
    pub(crate) fn during(stage: &'a record::Stage, record: &'a Record) -> Option<Ran<'a>> {
        if !record.agents.is_empty() {
            return None;
        }
        let by = match (&stage.halts_ns, &record.telemetry) {
            (Some(halts), _) => Witness::Halts(halts),
            (None, telemetry) => {
                let telemetry = telemetry.as_ref()?;
                let machine = telemetry.scopes.iter().find(|scope| scope.kind == ScopeKind::Machine)?;
                Witness::Samples { began_ns: &machine.began_ns, every_ns: telemetry.every_ns }
            }
        };
        Some(Ran { by, start_ns: stage.start_ns? })
    }

    /// The longest time within an outage in which it did not run, 0 unless that is most of the outage; `None`: unknown.
    fn halted_ns(&self, outage: &Silence) -> Option<u64> {
        let [from, to] = [outage.start_ns, outage.end_ns].map(|at| self.start_ns.saturating_add(at));
        let longest = match &self.by {
            Witness::Halts(halts) => {
                let within = |[begin, end]: &[u64; 2]| (*end).min(to).saturating_sub((*begin).max(from));
                halts.iter().map(within).max().unwrap_or(0)
            }
            Witness::Samples { began_ns, every_ns } => {
                let (before, rest) = began_ns.split_at(began_ns.partition_point(|at| *at <= from));
                if before.is_empty() {
                    return None;
                }
                let (mut longest, mut last) = (0, from);
                for at in rest.iter().copied().take_while(|at| *at < to).chain([to]) {
                    longest = longest.max(at.saturating_sub(last));
                    last = at;
                }
                if longest >= every_ns.saturating_mul(HALT_SAMPLES) { longest } else { 0 }
            }
        };
        Some(if longest >= outage.length_ns() / 2 { longest } else { 0 })
    }
}

/// An outage of all servers together, or of one of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedOutage {
    /// Index into the targets; `None`: no server answered.
    pub target: Option<u32>,
    /// When, and for how long.
    #[serde(flatten)]
    pub outage: OutageFindings,
    /// Errors by class; empty if the record does not have them.
    pub errors_by_class: BTreeMap<String, u64>,
}

impl OutageFindings {
    pub(crate) fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.length_ns)
    }
}

/// Shorter ones cannot be distinguished within an interval of a second.
const OUTAGE_MIN_NS: u64 = 1_000_000_000;
/// An outage counts only if this many transactions could be expected in it.
const EXPECTED_MIN: f64 = 10.0;
/// Without as many samples in a row, assay did not run.
const HALT_SAMPLES: u64 = 2;
/// Throughput has recovered at this share of its previous value.
const RECOVERED: f64 = 0.9;

/// The outages of a stage, in order. `usual_ns`: how long a transaction takes. If transactions are long, several may
/// finish at once and none for the duration of one: anything shorter than two of them is not an outage.
pub(crate) fn outages(
    intervals: &[Interval],
    measured_ns: u64,
    usual_ns: Option<u64>,
    ran: Option<&Ran>,
) -> Vec<OutageFindings> {
    let number = |interval: &Interval| sum(interval.transactions.iter().copied());
    let tps = per_second(sum(intervals.iter().map(number)), measured_ns);
    let is_outage = |one: &Silence| {
        tps * one.length_ns() as f64 / 1e9 >= EXPECTED_MIN && one.length_ns() >= usual_ns.unwrap_or(0).saturating_mul(2)
    };
    let of = |one: Silence| {
        let (from, to) = (one.start_ns, one.end_ns);
        let touched = intervals.iter().filter(|interval| end_of(interval) > from && interval.start_ns < to);
        let to_end = to >= measured_ns;
        OutageFindings {
            start_ns: from,
            length_ns: one.length_ns(),
            to_end,
            errors: sum(touched.map(|interval| interval.errors)),
            recovery_ns: if to_end { None } else { recovery(intervals, one) },
            halted_ns: ran.and_then(|ran| ran.halted_ns(&one)),
        }
    };
    silences(intervals).into_iter().filter(is_outage).map(of).collect()
}

/// All outages of a stage: those of all servers together (`of_all`), then those of each of several.
pub(crate) fn listed(
    intervals: &[Interval],
    measured_ns: u64,
    of_all: &[OutageFindings],
    ran: Option<&Ran>,
) -> Vec<ListedOutage> {
    let targets = intervals.iter().map(|interval| interval.targets.len()).max().unwrap_or(0);
    let entry = |of: &[Interval], target: Option<u32>, outage: &OutageFindings| {
        let mut errors_by_class = BTreeMap::new();
        for interval in of.iter().filter(|one| end_of(one) > outage.start_ns && one.start_ns < outage.end_ns()) {
            for (class, count) in &interval.errors_by_class {
                let sum: &mut u64 = errors_by_class.entry(class.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        ListedOutage { target, outage: *outage, errors_by_class }
    };
    let mut all: Vec<ListedOutage> = of_all.iter().map(|outage| entry(intervals, None, outage)).collect();
    for target in 0..targets {
        let own: Vec<Interval> = intervals.iter().map(|interval| of_target(interval, target)).collect();
        let number = u32::try_from(target).unwrap_or(u32::MAX);
        all.extend(outages(&own, measured_ns, None, ran).iter().map(|outage| entry(&own, Some(number), outage)));
    }
    all
}

/// The interval as if there were only this server.
fn of_target(interval: &Interval, target: usize) -> Interval {
    let of = interval.targets.get(target).cloned().unwrap_or_default();
    Interval {
        start_ns: interval.start_ns,
        length_ns: interval.length_ns,
        transactions: vec![of.transactions],
        first_done_ns: of.first_done_ns,
        last_done_ns: of.last_done_ns,
        errors: sum(of.errors_by_class.values().copied()),
        errors_by_class: of.errors_by_class,
        ..Interval::default()
    }
}

/// From the end of `outage` to the first interval with the previous throughput.
fn recovery(intervals: &[Interval], outage: Silence) -> Option<u64> {
    let rate = |interval: &Interval| per_second(sum(interval.transactions.iter().copied()), interval.length_ns);
    let before = intervals.iter().filter(|interval| end_of(interval) <= outage.start_ns);
    let mut before: Vec<f64> = before.map(rate).collect();
    before.sort_by(f64::total_cmp);
    let usual = *before.get(before.len() / 2)?;
    let mut after = intervals.iter().filter(|interval| interval.start_ns >= outage.end_ns && interval.length_ns > 0);
    let back = after.find(|interval| rate(interval) >= RECOVERED * usual)?;
    Some(back.start_ns.saturating_sub(outage.end_ns))
}

/// No transaction ended between these instants, since the start of the measured part. start_ns <= end_ns
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Silence {
    start_ns: u64,
    end_ns: u64,
}

impl Silence {
    fn length_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// Silences of at least a second, in order.
///
/// Records of 0.1.0 have whole intervals only. The last of those may be short, and is ignored.
fn silences(intervals: &[Interval]) -> Vec<Silence> {
    let Some((first, last)) = intervals.first().zip(intervals.last()) else { return Vec::new() };
    let is_exact = intervals.iter().any(|interval| interval.last_done_ns.is_some());
    let end_ns = if is_exact { end_of(last) } else { last.start_ns };
    let mut silences = Vec::new();
    let mut start_ns = first.start_ns;
    let mut known_ns = first.start_ns;
    for interval in intervals {
        // Nothing is known of a time without an interval: a line of the record is missing.
        if interval.start_ns > known_ns.saturating_add(OUTAGE_MIN_NS / 1000) {
            silences.push(Silence { start_ns, end_ns: known_ns.max(start_ns) });
            start_ns = interval.start_ns;
        }
        known_ns = end_of(interval);
        if !has_ended(interval) {
            continue;
        }
        let (first_ns, last_ns) = edges(interval);
        silences.push(Silence { start_ns, end_ns: first_ns.max(start_ns) });
        start_ns = last_ns;
    }
    silences.push(Silence { start_ns, end_ns: end_ns.max(start_ns) });
    silences.retain(|silence| silence.length_ns() >= OUTAGE_MIN_NS);
    silences
}

fn has_ended(interval: &Interval) -> bool {
    interval.response.count > 0 || interval.transactions.iter().any(|count| *count > 0)
}

/// When its first transaction ended, and its last. A worker that could not run sends an interval late: what ended after
/// it is counted in it all the same, and says nothing about its end. (Workers leave that end out themselves now, but
/// earlier records have it.)
fn edges(interval: &Interval) -> (u64, u64) {
    let (start_ns, end_ns) = (interval.start_ns, end_of(interval));
    match (interval.first_done_ns, interval.last_done_ns) {
        (Some(first), Some(last)) if start_ns <= first && first <= last.min(end_ns) => (first, last.min(end_ns)),
        _ => (start_ns, end_ns),
    }
}

fn end_of(interval: &Interval) -> u64 {
    interval.start_ns.saturating_add(interval.length_ns)
}
