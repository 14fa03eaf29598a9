//! What workers count, and the input of reports.
//!
//! Each worker writes its own numbers, which the reporting thread reads concurrently: no lock, no shared cache line. A
//! report is the difference from the previous one. Smallest and largest latency cannot be subtracted: they belong to an
//! epoch, and the reporting thread starts a new one with each report that needs them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets of latencies: logarithmic, from 0.001 ms to 100,000 ms.
pub const BUCKETS: usize = 1024;
const LOW_MS: f64 = 0.001;
const HIGH_MS: f64 = 100_000.0;

/// The latency that a bucket stands for, in ms.
pub fn bucket_value(bucket: usize) -> f64 {
    LOW_MS * (bucket as f64 * (HIGH_MS / LOW_MS).ln() / (BUCKETS - 1) as f64).exp()
}

/// Where latencies go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatencyScale {
    low: f64,
    per_unit: f64,
}

impl LatencyScale {
    pub(crate) fn new() -> LatencyScale {
        LatencyScale { low: LOW_MS.ln(), per_unit: (BUCKETS - 1) as f64 / (HIGH_MS / LOW_MS).ln() }
    }

    fn bucket(self, nanos: u64) -> usize {
        let position = ((nanos as f64 / 1e6).ln() - self.low) * self.per_unit + 0.5;
        // From minus infinity for 0 ns; the conversion saturates.
        (position as usize).min(BUCKETS - 1)
    }
}

/// What a test counts beside events.
#[derive(Debug, Default)]
pub struct Counts {
    reads: AtomicU64,
    writes: AtomicU64,
    syncs: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

/// Adds to a number that only this thread writes.
fn add(to: &AtomicU64, value: u64) {
    to.store(to.load(Relaxed).wrapping_add(value), Relaxed);
}

impl Counts {
    /// A read of this many bytes.
    pub fn read(&self, bytes: u64) {
        add(&self.reads, 1);
        add(&self.bytes_read, bytes);
    }

    /// A write of this many bytes.
    pub fn written(&self, bytes: u64) {
        add(&self.writes, 1);
        add(&self.bytes_written, bytes);
    }

    /// A file was made safe.
    pub fn synced(&self) {
        add(&self.syncs, 1);
    }

    fn all(&self) -> [&AtomicU64; 5] {
        [&self.reads, &self.writes, &self.syncs, &self.bytes_read, &self.bytes_written]
    }

    /// Starts again at zero; what was counted is added to `to` if there is one.
    pub(crate) fn take(&self, to: Option<&Counts>) {
        for (from, to) in self.all().into_iter().zip(to.unwrap_or(&Counts::default()).all()) {
            add(to, from.swap(0, Relaxed));
        }
    }
}

/// One worker's numbers.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct WorkerSlot {
    pub(crate) counts: Counts,
    /// Counts of an event that began in the warm-up, until it ends.
    pub(crate) uncounted: Counts,
    buckets: Vec<AtomicU64>,
    events: AtomicU64,
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    epoch: AtomicU32,
}

impl WorkerSlot {
    pub(crate) fn new() -> WorkerSlot {
        WorkerSlot {
            counts: Counts::default(),
            uncounted: Counts::default(),
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            events: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
        }
    }

    /// An event has finished; its duration in ns.
    #[inline]
    pub(crate) fn record(&self, scale: LatencyScale, epoch: u32, nanos: u64) {
        add(&self.buckets[scale.bucket(nanos)], 1);
        add(&self.events, 1);
        add(&self.sum, nanos);
        let fresh = self.epoch.load(Relaxed) != epoch;
        if fresh || nanos < self.min.load(Relaxed) {
            self.min.store(nanos, Relaxed);
        }
        if fresh || nanos > self.max.load(Relaxed) {
            self.max.store(nanos, Relaxed);
        }
        if fresh {
            self.epoch.store(epoch, Relaxed);
        }
    }

    fn read(&self, epoch: u32) -> WorkerReading {
        let (events, current) = (self.events.load(Relaxed), self.epoch.load(Relaxed) == epoch);
        WorkerReading {
            events,
            sum: self.sum.load(Relaxed),
            min: if current { self.min.load(Relaxed) } else { u64::MAX },
            max: if current { self.max.load(Relaxed) } else { 0 },
            reads: self.counts.reads.load(Relaxed),
            writes: self.counts.writes.load(Relaxed),
            syncs: self.counts.syncs.load(Relaxed),
            bytes_read: self.counts.bytes_read.load(Relaxed),
            bytes_written: self.counts.bytes_written.load(Relaxed),
        }
    }
}

/// A worker's numbers at an instant.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerReading {
    events: u64,
    sum: u64,
    min: u64,
    max: u64,
    reads: u64,
    writes: u64,
    syncs: u64,
    bytes_read: u64,
    bytes_written: u64,
}

/// All workers' numbers when the report before was made.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    readings: Vec<WorkerReading>,
    buckets: Vec<u64>,
    at: Duration,
}

impl Base {
    pub(crate) fn new(slots: usize) -> Base {
        Base { readings: vec![WorkerReading::default(); slots], buckets: vec![0; BUCKETS], at: Duration::ZERO }
    }

    /// The difference to what is counted now, which becomes the base of the next. `now`: since the start.
    pub(crate) fn advance(&mut self, slots: &[std::sync::Arc<WorkerSlot>], epoch: u32, now: Duration) -> Snapshot {
        let mut snapshot = Snapshot { total: now, interval: now.saturating_sub(self.at), ..Snapshot::default() };
        let mut buckets = vec![0; BUCKETS];
        let mut min = u64::MAX;
        for (slot, before) in slots.iter().zip(&mut self.readings) {
            let reading = slot.read(epoch);
            for (sum, bucket) in buckets.iter_mut().zip(&slot.buckets) {
                *sum += bucket.load(Relaxed);
            }
            let share = WorkerShare {
                events: reading.events - before.events,
                busy: Duration::from_nanos(reading.sum - before.sum),
                min: Duration::from_nanos(if reading.min == u64::MAX { 0 } else { reading.min }),
                max: Duration::from_nanos(reading.max),
            };
            snapshot.events += share.events;
            snapshot.reads += reading.reads - before.reads;
            snapshot.writes += reading.writes - before.writes;
            snapshot.syncs += reading.syncs - before.syncs;
            snapshot.bytes_read += reading.bytes_read - before.bytes_read;
            snapshot.bytes_written += reading.bytes_written - before.bytes_written;
            snapshot.latencies.sum += share.busy;
            snapshot.latencies.max = snapshot.latencies.max.max(share.max);
            min = min.min(reading.min);
            snapshot.shares.push(share);
            *before = reading;
        }
        snapshot.latencies.min = Duration::from_nanos(if min == u64::MAX { 0 } else { min });
        snapshot.latencies.buckets = buckets.iter().zip(&self.buckets).map(|(now, before)| now - before).collect();
        self.buckets = buckets;
        self.at = now;
        snapshot
    }
}

/// What happened since the report before.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Since the start.
    pub total: Duration,
    /// Since the report before.
    pub interval: Duration,
    /// Workers that go on.
    pub running: u32,
    /// Events done.
    pub events: u64,
    /// Reads done.
    pub reads: u64,
    /// Writes done.
    pub writes: u64,
    /// Files made safe.
    pub syncs: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// How long events took.
    pub latencies: EventLatencies,
    /// Each worker's share.
    pub shares: Vec<WorkerShare>,
    /// At a rate: events due that nobody has begun.
    pub waiting: u64,
    /// At a rate: events being executed.
    pub busy: u32,
}

/// How long events took.
#[derive(Clone, Debug, Default)]
pub struct EventLatencies {
    /// How many lie in each bucket, `BUCKETS` of them.
    pub buckets: Vec<u64>,
    /// The shortest; 0 when there is none.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// All together.
    pub sum: Duration,
}

/// One worker's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerShare {
    /// Its events.
    pub events: u64,
    /// Its time in events.
    pub busy: Duration,
    /// Its shortest event.
    pub min: Duration,
    /// Its longest event.
    pub max: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_the_difference_to_the_one_before() {
        let slots = [std::sync::Arc::new(WorkerSlot::new()), std::sync::Arc::new(WorkerSlot::new())];
        let (scale, mut base) = (LatencyScale::new(), Base::new(2));
        slots[0].record(scale, 0, 1_000_000);
        slots[0].record(scale, 0, 3_000_000);
        slots[1].counts.read(4096);
        let first = base.advance(&slots, 0, Duration::from_secs(1));
        assert_eq!((first.events, first.reads, first.bytes_read), (2, 1, 4096));
        assert_eq!((first.latencies.min.as_millis(), first.latencies.max.as_millis()), (1, 3));
        assert_eq!(first.shares.iter().map(|share| share.events).collect::<Vec<_>>(), [2, 0]);

        slots[1].record(scale, 1, 2_000_000);
        let second = base.advance(&slots, 1, Duration::from_secs(3));
        assert_eq!((second.events, second.reads, second.interval), (1, 0, Duration::from_secs(2)));
        assert_eq!((second.latencies.min.as_millis(), second.latencies.max.as_millis()), (2, 2));
        assert_eq!(second.latencies.buckets.iter().sum::<u64>(), 1);
        assert_eq!(base.advance(&slots, 2, Duration::from_secs(4)).latencies.min, Duration::ZERO);
    }

    #[test]
    fn a_latency_lies_in_the_bucket_that_stands_for_it() {
        let scale = LatencyScale::new();
        for nanos in [1_000, 20_020, 1_000_000, 12_345_678, 99_000_000_000] {
            let value = bucket_value(scale.bucket(nanos));
            assert!((value / (nanos as f64 / 1e6) - 1.0).abs() < 0.0095, "{nanos} {value}");
        }
        assert_eq!((scale.bucket(0), scale.bucket(u64::MAX)), (0, BUCKETS - 1));
    }
}
