//! Sums of intervals: totals since the last line, or since the last checkpoint.

use assay_engine::{Interval, Outside, SessionTally};
use assay_measure::{ByClass, Latencies};
use assay_seam::Nanos;

use crate::{Histogram, PeriodStat, SessionStat};

/// What happened in a period.
pub(super) struct PeriodTotals {
    events: u64,
    statements: ByClass<u64>,
    errors: u64,
    reconnects: u64,
    histogram: Histogram,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
    /// Since the start of the measured part.
    from: Nanos,
}

impl PeriodTotals {
    /// An empty one that starts at `from`.
    pub(super) fn new(from: Nanos) -> PeriodTotals {
        PeriodTotals {
            events: 0,
            statements: ByClass::default(),
            errors: 0,
            reconnects: 0,
            histogram: Histogram::of_latencies(),
            min_ns: 0,
            max_ns: 0,
            sum_ns: 0,
            from,
        }
    }

    /// Adds an interval.
    pub(super) fn add(&mut self, interval: &Interval) {
        let measured = &interval.measured;
        let latencies = &measured.response;
        if latencies.count > 0 {
            self.min_ns =
                if self.histogram.count() == 0 { latencies.min_ns } else { self.min_ns.min(latencies.min_ns) };
            self.max_ns = self.max_ns.max(latencies.max_ns);
            self.sum_ns += latencies.sum_ns;
            self.histogram.merge(&histogram_of(latencies));
        }
        self.events += measured.transactions.iter().sum::<u64>();
        self.statements.add(&measured.statements);
        self.add_outside(&interval.outside);
        // A lost connection counts as a reconnect.
        self.errors += measured.errors - interval.lost;
        self.reconnects += measured.reconnects;
    }

    /// Adds what is not in the tallies.
    pub(super) fn add_outside(&mut self, outside: &Outside) {
        self.statements.add(&outside.statements);
        self.events += outside.transactions;
        self.errors += outside.errors;
        self.reconnects += outside.reconnects;
    }

    /// The distribution of latencies, in milliseconds.
    pub(super) fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Its numbers, at `now` since the start of the measured part.
    pub(super) fn stat(&self, now: Nanos, percentile: u32) -> PeriodStat {
        let ByClass { read: reads, write: writes, other } = self.statements;
        let sum = self.sum_ns as f64 / 1e9;
        PeriodStat {
            time_interval: (now - self.from).as_secs_f64(),
            time_total: now.as_secs_f64(),
            latency_pct: self.histogram.percentile(f64::from(percentile)) / 1000.0,
            events: self.events,
            reads,
            writes,
            other,
            errors: self.errors,
            reconnects: self.reconnects,
            latency_min: Nanos(self.min_ns).as_secs_f64(),
            latency_max: Nanos(self.max_ns).as_secs_f64(),
            latency_avg: if self.events > 0 { sum / self.events as f64 } else { 0.0 },
            latency_sum: sum,
            ..PeriodStat::default()
        }
    }
}

fn histogram_of(latencies: &Latencies) -> Histogram {
    let mut histogram = Histogram::of_latencies();
    for bucket in latencies.buckets() {
        let middle_ns = bucket.lowest_ns + (bucket.highest_ns - bucket.lowest_ns).div_ceil(2);
        histogram.add(milliseconds(middle_ns), bucket.count);
    }
    histogram.bound(milliseconds(latencies.min_ns), milliseconds(latencies.max_ns));
    histogram
}

fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// What each session did since `before`.
pub(super) fn shares(sessions: &[SessionTally], before: &[SessionTally]) -> Vec<SessionStat> {
    let zero = SessionTally::default();
    let share = |(number, now): (usize, &SessionTally)| {
        let before = before.get(number).unwrap_or(&zero);
        SessionStat {
            events: now.transactions - before.transactions,
            busy: (now.response - before.response).as_secs_f64(),
            min: now.response_min.as_secs_f64(),
            max: now.response_max.as_secs_f64(),
        }
    };
    sessions.iter().enumerate().map(share).collect()
}
