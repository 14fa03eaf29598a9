//! The values of one interval.

use assay_record::{ByClass, Interval, coarse_bounds_ns};
use serde::Serialize;

use crate::findings::arithmetic::{class_sum, map, per_second, sum};
use crate::findings::latency::{LatencyFindings, distribution_in, latency_findings};
use crate::leb128;

/// One interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntervalFindings {
    /// Since the start of the measured part.
    pub start_ns: u64,
    /// Since the start of the measured part.
    pub end_ns: u64,
    /// Sessions connected and taking transactions at its end.
    pub sessions: u32,
    /// Successful transactions.
    pub transactions: u64,
    /// Successful transactions by type, in the order of `TallyFindings::types`. For charts and series; the JSON has the
    /// sums.
    #[serde(skip)]
    pub transactions_by_type: Vec<u64>,
    /// Transactions per second.
    pub tps: f64,
    /// Statements per second.
    pub qps: f64,
    /// Statements per second by class.
    pub qps_by_class: ByClass<f64>,
    /// Response times of all types together.
    pub response: LatencyFindings,
    /// Errors.
    pub errors: u64,
    /// Retries of transactions.
    pub retries: u64,
    /// Failed transactions.
    pub failed: u64,
    /// Reconnects.
    pub reconnects: u64,
    /// Transactions that became due per second; in a closed loop, those started. `None`: not known.
    pub due_per_s: Option<f64>,
    /// Open loop: due and waiting for a session at its end.
    pub backlog: u64,
    /// CPUs used by the generator: CPU time divided by time.
    pub cpus_used: f64,
    /// Number of response times by bucket. For charts; the JSON has the quantiles.
    #[serde(skip)]
    pub buckets: Buckets,
}

/// Numbers of values by bucket (see `coarse_bounds_ns`), without empty buckets. Days of intervals have millions of
/// these, and they are most of what a report of many long records holds: a bucket is a byte, and its count one or two
/// (LEB128).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets(Box<[u8]>);

impl Buckets {
    /// Appends a bucket to the bytes, which have those below it.
    #[inline]
    fn put(bytes: &mut Vec<u8>, bucket: usize, count: u64) {
        bytes.push(u8::try_from(bucket).expect("there are 193 buckets"));
        leb128::write(count, bytes);
    }

    /// The indices of buckets, ascending, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut bytes = self.0.iter();
        std::iter::from_fn(move || Some((usize::from(*bytes.next()?), leb128::read(&mut bytes)?)))
    }
}

/// The findings of `interval`.
pub fn interval_findings(interval: &Interval) -> IntervalFindings {
    interval_with_counts(interval, [], &mut Room::default()).0
}

/// Memory for the response times of an interval, kept for those of the next one.
#[derive(Default)]
pub(crate) struct Room {
    values: Vec<(u64, u64)>,
    buckets: Vec<u8>,
}

/// An interval's findings, with the number of response times at or below each of `bounds`.
pub(crate) fn interval_with_counts<const N: usize>(
    interval: &Interval,
    bounds: [u64; N],
    room: &mut Room,
) -> (IntervalFindings, [u64; N]) {
    let rate = |count| per_second(count, interval.length_ns);
    let transactions = sum(interval.transactions.iter().copied());
    let response = distribution_in(&interval.response, std::mem::take(&mut room.values));
    room.buckets.clear();
    response.for_each_between(coarse_bounds_ns(), |bucket, count| Buckets::put(&mut room.buckets, bucket, count));
    let findings = IntervalFindings {
        start_ns: interval.start_ns,
        end_ns: interval.start_ns.saturating_add(interval.length_ns),
        sessions: interval.sessions,
        transactions,
        transactions_by_type: interval.transactions.clone(),
        tps: rate(transactions),
        qps: rate(class_sum(interval.statements)),
        qps_by_class: map(&interval.statements, |&count| rate(count)),
        response: latency_findings(&response),
        errors: interval.errors,
        retries: interval.retries,
        failed: interval.failed,
        reconnects: interval.reconnects,
        due_per_s: interval.due.map(rate),
        backlog: interval.backlog,
        cpus_used: rate(interval.cpu_ns) / 1e9,
        buckets: Buckets(room.buckets.as_slice().into()),
    };
    let at_most = response.at_most(bounds);
    room.values = response.into_buckets();
    (findings, at_most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_what_they_were_made_of() {
        for counts in [&[][..], &[(0, 1), (5, 127), (6, 128), (7, 16_384), (192, u64::MAX)]] {
            let mut bytes = Vec::new();
            counts.iter().for_each(|(bucket, count)| Buckets::put(&mut bytes, *bucket, *count));
            assert_eq!(Buckets(bytes.into()).iter().collect::<Vec<_>>(), counts);
        }
    }
}
