//! The record of a test of the machine itself: `cpu`, `memory`, `threads`, `mutex`, `fileio`.
//!
//! It has the form of a run's with one stage, in which a transaction is an event.

use assay_machine::{MachinePlan, Snapshot, bucket_value};
use assay_record as record;
use assay_record::{CounterTally, Histogram, Interval, Latencies, Record, Stage, Status, Tally, TransactionTally};
use assay_run::record_of;
use assay_sysbench::front::MachineReport;

const EVENT: &str = "event";
/// The largest bucket of assay-machine is at 100 s.
const NS_MAX: u64 = 200_000_000_000;

/// The record of one test. `words`: the command line.
pub fn of(report: &MachineReport<'_>, words: &[String]) -> Record {
    let (plan, all) = (report.plan, report.all);
    let mut record = record_of::begun_machine(report.test, &report.options, words);
    let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    record.status = Status::Complete;
    record.elapsed_ns = nanos(all.total) + nanos(plan.warmup);
    record.types = vec![EVENT.to_owned()];
    record.manifest.seed = plan.seed;
    record.manifest.sessions = vec![plan.threads];
    record.manifest.workers = plan.threads;
    record.manifest.warmup_ns = nanos(plan.warmup);
    record.manifest.limit = record::Limit { time_ns: plan.time.map(nanos), transactions: plan.events };
    if let Some(rate) = plan.rate {
        let arrival = record::Arrival::Poisson;
        record.manifest.load = record::Load::Open { rate_per_s: rate as f64, arrival, backlog_max: None };
    }
    let response = latencies(all);
    // At a rate, a latency starts at the instant at which the event was due.
    let service = if plan.rate.is_some() { Latencies::default() } else { response.clone() };
    let events = TransactionTally {
        name: EVENT.to_owned(),
        count: all.events,
        response,
        service,
        ..TransactionTally::default()
    };
    record.stages = vec![Stage {
        sessions: plan.threads,
        started: record.started,
        start_ns: Some(nanos(plan.warmup)),
        measured_ns: nanos(all.interval),
        total: Tally { transactions: vec![events], counters: counters(all), due: all.events, ..Tally::default() },
        session_transactions_min: all.shares.iter().map(|share| share.events).min().unwrap_or(0),
        session_transactions_max: all.shares.iter().map(|share| share.events).max().unwrap_or(0),
        generator: record::Generator { workers: plan.threads, ..record::Generator::default() },
        intervals: intervals(report.intervals, plan, all),
        ..Stage::default()
    }];
    record.identify();
    record
}

fn intervals(all: &[Snapshot], plan: &MachinePlan, whole: &Snapshot) -> Vec<Interval> {
    let one = |snapshot: &Snapshot| Interval {
        start_ns: snapshot.total.saturating_sub(snapshot.interval).as_nanos() as u64,
        length_ns: snapshot.interval.as_nanos() as u64,
        transactions: vec![snapshot.events],
        due: Some(snapshot.events),
        backlog: snapshot.waiting,
        sessions: plan.threads,
        response: latencies(snapshot),
        ..Interval::default()
    };
    let mut intervals: Vec<Interval> = all.iter().map(one).collect();
    let done: u64 = all.iter().map(|snapshot| snapshot.events).sum();
    let end = all.last().map_or(std::time::Duration::ZERO, |last| last.total);
    // What came after the last of them.
    if whole.total > end && done < whole.events {
        intervals.push(Interval {
            start_ns: end.as_nanos() as u64,
            length_ns: (whole.total - end).as_nanos() as u64,
            transactions: vec![whole.events - done],
            due: Some(whole.events - done),
            sessions: plan.threads,
            ..Interval::default()
        });
    }
    intervals
}

/// Counters of file tests: operations and bytes.
fn counters(all: &Snapshot) -> Vec<CounterTally> {
    let known = [
        ("reads", all.reads),
        ("writes", all.writes),
        ("fsyncs", all.syncs),
        ("bytes_read", all.bytes_read),
        ("bytes_written", all.bytes_written),
    ];
    let counted = known.into_iter().filter(|(_, sum)| *sum > 0);
    let tally = |(name, sum): (&str, u64)| CounterTally {
        name: name.to_owned(),
        transactions: all.events,
        sum,
        ..CounterTally::default()
    };
    counted.map(tally).collect()
}

/// A bucket's values become the one that represents it, within 1 %; minimum and maximum are exact.
fn latencies(snapshot: &Snapshot) -> Latencies {
    let of = &snapshot.latencies;
    let count: u64 = of.buckets.iter().sum();
    if count == 0 {
        return Latencies::default();
    }
    let mut histogram = Histogram::<u64>::new_with_bounds(1, NS_MAX, 3).expect("the bounds are constants");
    let (min, max) = (of.min.as_nanos() as u64, of.max.as_nanos() as u64);
    for (bucket, number) in of.buckets.iter().enumerate().filter(|(_, number)| **number > 0) {
        let ns = ((bucket_value(bucket) * 1e6) as u64).clamp(min, max.max(min)).clamp(1, NS_MAX);
        histogram.record_n(ns, *number).expect("it is within the bounds");
    }
    Latencies::of(count, (min, max), of.sum.as_nanos(), Some(&histogram))
}
