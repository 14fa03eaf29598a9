//! Sums of intervals: totals since the last line, or since the last checkpoint.

use assay_engine::{Interval, Latencies, Outside, SessionTally};
use assay_seam::Nanos;

use crate::{Histogram, Share, Stat};

/// What happened in a period.
pub(super) struct Totals {
    events: u64,
    statements: [u64; 3],
    errors: u64,
    reconnects: u64,
    histogram: Histogram,
    min: Nanos,
    max: Nanos,
    sum: u128,
    /// Since the start of the measured part.
    from: Nanos,
}

impl Totals {
    /// An empty one that starts at `from`.
    pub(super) fn new(from: Nanos) -> Totals {
        Totals {
            events: 0,
            statements: [0; 3],
            errors: 0,
            reconnects: 0,
            histogram: Histogram::of_latencies(),
            min: Nanos::ZERO,
            max: Nanos::ZERO,
            sum: 0,
            from,
        }
    }

    /// Adds an interval.
    pub(super) fn add(&mut self, interval: &Interval) {
        let latencies = interval.response.expand();
        if latencies.count() > 0 {
            self.min = if self.histogram.count() == 0 { latencies.min } else { self.min.min(latencies.min) };
            self.max = self.max.max(latencies.max);
            self.sum += latencies.sum;
            self.histogram.merge(&histogram_of(&latencies));
        }
        self.events += interval.transactions.iter().sum::<u64>();
        self.add_statements(interval.statements);
        self.add_outside(&interval.outside);
        // A lost connection counts as a reconnect.
        self.errors += interval.errors - interval.lost;
        self.reconnects += interval.reconnects;
    }

    /// Adds what is not in the tallies.
    pub(super) fn add_outside(&mut self, outside: &Outside) {
        self.add_statements(outside.statements);
        self.events += outside.transactions;
        self.errors += outside.errors;
        self.reconnects += outside.reconnects;
    }

    /// Adds statements: read, write, other.
    fn add_statements(&mut self, statements: [u64; 3]) {
        for (ours, theirs) in self.statements.iter_mut().zip(statements) {
            *ours += theirs;
        }
    }

    /// The distribution of latencies, in milliseconds.
    pub(super) fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// Its numbers, at `now` since the start of the measured part.
    pub(super) fn stat(&self, now: Nanos, percentile: u32) -> Stat {
        let [reads, writes, other] = self.statements;
        let sum = self.sum as f64 / 1e9;
        Stat {
            time_interval: (now - self.from).as_secs_f64(),
            time_total: now.as_secs_f64(),
            latency_pct: self.histogram.percentile(f64::from(percentile)) / 1000.0,
            events: self.events,
            reads,
            writes,
            other,
            errors: self.errors,
            reconnects: self.reconnects,
            latency_min: self.min.as_secs_f64(),
            latency_max: self.max.as_secs_f64(),
            latency_avg: if self.events > 0 { sum / self.events as f64 } else { 0.0 },
            latency_sum: sum,
            ..Stat::default()
        }
    }
}

fn histogram_of(latencies: &Latencies) -> Histogram {
    let mut histogram = Histogram::of_latencies();
    for bucket in latencies.buckets() {
        let middle = bucket.lowest.0 + (bucket.highest.0 - bucket.lowest.0).div_ceil(2);
        histogram.add(milliseconds(Nanos(middle)), bucket.count);
    }
    histogram.bound(milliseconds(latencies.min), milliseconds(latencies.max));
    histogram
}

fn milliseconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

/// What each session did since `before`.
pub(super) fn shares(sessions: &[SessionTally], before: &[SessionTally]) -> Vec<Share> {
    let zero = SessionTally::default();
    let share = |(number, now): (usize, &SessionTally)| {
        let before = before.get(number).unwrap_or(&zero);
        Share {
            events: now.transactions - before.transactions,
            busy: (now.response - before.response).as_secs_f64(),
            min: now.response_min.as_secs_f64(),
            max: now.response_max.as_secs_f64(),
        }
    };
    sessions.iter().enumerate().map(share).collect()
}
