//! Latency histograms in memory.
//!
//! Every statement and transaction is recorded here several times, so recording must take only a few instructions: the
//! buckets are those of an HDR histogram with three digits, and the arithmetic to find one is in this file, where it
//! can be inlined. Records have types of their own (assay-record).

use assay_seam::Nanos;

/// A latency distribution: buckets of nanoseconds, 1 ns … 1 h, 3 significant digits; with exact minimum, maximum and
/// sum. An empty one needs no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Values in each bucket; empty until the first value. Values above one hour are in `over`, not in here.
    counts: Box<[u64]>,
    /// Number of all values, including those in `over`.
    count: u64,
    /// Values above the range.
    pub over: u64,
    /// Smallest value; zero when empty.
    pub min: Nanos,
    /// Largest value, also above the range; zero when empty.
    pub max: Nanos,
    /// Sum of all values, in nanoseconds.
    pub sum: u128,
}

/// A latency distribution in compact form: only the buckets in use, a few bytes each. One interval needs a few
/// kilobytes, where all buckets would need a quarter of a megabyte, and a run has one interval per second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseLatencies {
    /// For each bucket in use, in ascending order: its distance from the one before, and its number of values. Both
    /// are written with seven bits per byte, lowest first; the eighth bit is set in all but the last byte.
    buckets: Box<[u8]>,
    count: u64,
    over: u64,
    min: Nanos,
    max: Nanos,
    sum: u128,
}

/// Values that are treated as equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The smallest of them.
    pub lowest: Nanos,
    /// The largest. lowest <= highest
    pub highest: Nanos,
    /// How many there are; at least one.
    pub count: u64,
}

/// Highest value held in a bucket.
const HIGHEST: Nanos = Nanos(3_600_000_000_000);
/// Values below this have a bucket each; above, the width of a bucket is less than a thousandth of its values.
const EXACT: u64 = 1 << (HALF_BITS + 1);
/// Two to this power is the number of buckets between two powers of two.
const HALF_BITS: u32 = 10;
/// Total number of buckets.
const BUCKETS: usize = bucket_of(HIGHEST) + 1;

/// The bucket of a value.
const fn bucket_of(value: Nanos) -> usize {
    let shift = (value.0 | (EXACT - 1)).ilog2() - HALF_BITS;
    ((shift as usize) << HALF_BITS) + (value.0 >> shift) as usize
}

/// The lowest and the highest value of a bucket.
fn bounds_of(bucket: usize) -> (Nanos, Nanos) {
    let shift = (bucket >> HALF_BITS).saturating_sub(1);
    let lead = (bucket - (shift << HALF_BITS)) as u64;
    (Nanos(lead << shift), Nanos(((lead + 1) << shift) - 1))
}

impl Latencies {
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds one value. Only the first call allocates.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        if self.count == 0 {
            self.begin(value);
        }
        match self.counts.get_mut(bucket_of(value)) {
            Some(count) if value <= HIGHEST => *count += 1,
            _ => self.over += 1,
        }
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value.0);
    }

    /// Makes room for the first value.
    #[cold]
    fn begin(&mut self, first: Nanos) {
        self.min = first;
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS].into_boxed_slice();
        }
    }

    /// Adds all values of `other`.
    pub fn add(&mut self, other: &Latencies) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.begin(other.min);
        }
        let used = other.used();
        for (ours, theirs) in self.counts[used.clone()].iter_mut().zip(&other.counts[used]) {
            *ours += theirs;
        }
        self.count += other.count;
        self.over += other.over;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// Forgets the values, keeps the memory.
    pub fn clear(&mut self) {
        let used = self.used();
        self.counts[used].fill(0);
        *self = Latencies { counts: std::mem::take(&mut self.counts), ..Latencies::default() };
    }

    /// The smallest value that at least a share `q` (0 … 1) of all values do not exceed; zero when empty. Values above
    /// the range count as the maximum; the result is always within `min ..= max`.
    pub fn quantile(&self, q: f64) -> Nanos {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let mut buckets = self.buckets();
        let reached = buckets.find(|bucket| {
            seen += bucket.count;
            seen >= rank
        });
        reached.map_or(self.max, |bucket| bucket.highest.clamp(self.min, self.max))
    }

    /// The buckets in use, ascending, without `over`.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.filled().map(|(bucket, count)| {
            let (lowest, highest) = bounds_of(bucket);
            Bucket { lowest, highest, count }
        })
    }

    fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.used().map(|bucket| (bucket, self.counts[bucket])).filter(|(_, count)| *count > 0)
    }

    /// Buckets outside this range are empty.
    fn used(&self) -> std::ops::Range<usize> {
        let end = (bucket_of(self.max) + 1).min(self.counts.len());
        bucket_of(self.min).min(end)..end
    }
}

impl SparseLatencies {
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Largest value.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// The same distribution with all its buckets.
    pub fn expand(&self) -> Latencies {
        let &SparseLatencies { count, over, min, max, sum, .. } = self;
        let mut all = Latencies { counts: Box::default(), count, over, min, max, sum };
        if count > 0 {
            all.begin(min);
        }
        let mut numbers = numbers(&self.buckets);
        let mut bucket = 0;
        while let (Some(distance), Some(count)) = (numbers.next(), numbers.next()) {
            bucket += distance as usize;
            all.counts[bucket] = count;
        }
        all
    }
}

impl From<&Latencies> for SparseLatencies {
    fn from(latencies: &Latencies) -> SparseLatencies {
        let &Latencies { count, over, min, max, sum, .. } = latencies;
        let (mut buckets, mut before) = (Vec::new(), 0);
        for (bucket, count) in latencies.filled() {
            put(&mut buckets, (bucket - before) as u64);
            put(&mut buckets, count);
            before = bucket;
        }
        SparseLatencies { buckets: buckets.into(), count, over, min, max, sum }
    }
}

/// Appends a number, seven bits in a byte.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The numbers that were put there.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes
        .split_inclusive(|byte| byte & 0x80 == 0)
        .map(|number| number.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        values.iter().for_each(|value| latencies.record(Nanos(*value)));
        latencies
    }

    const AN_HOUR: u64 = HIGHEST.0;

    #[test]
    fn latencies_keep_three_digits_from_a_microsecond_to_an_hour() {
        for value in [1_000, 5_300, 10_250, 99_999, 1_234_567, 59_000_000_000, AN_HOUR] {
            let median = of(&[value / 2, value, value * 2]).quantile(0.5).0;
            assert!(median >= value && median - value <= value / 1000, "{median} for {value}");
        }
    }

    #[test]
    fn buckets_are_those_of_an_hdr_histogram_of_three_digits() {
        let mut theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(1, AN_HOUR, 3).unwrap();
        let powers = (0..42).map(|power| 1 << power);
        let values: Vec<u64> = powers.flat_map(|power: u64| [power - 1, power, power + power / 3, power + 1]).collect();
        for value in values.iter().chain(&[0, 2047, 2048, 4097, AN_HOUR - 1, AN_HOUR]) {
            let value = (*value).min(AN_HOUR);
            let (lowest, highest) = bounds_of(bucket_of(Nanos(value)));
            assert_eq!(lowest.0, theirs.lowest_equivalent(value), "{value}");
            assert_eq!(highest.0, theirs.highest_equivalent(value), "{value}");
            theirs.record(value).unwrap();
        }
        assert!(BUCKETS <= theirs.distinct_values());
    }

    #[test]
    fn edges_sum_and_count_are_exact() {
        let latencies = of(&[5_000_001, 1_999, 7_654_321]);
        assert_eq!((latencies.min, latencies.max), (Nanos(1_999), Nanos(7_654_321)));
        assert_eq!((latencies.sum, latencies.count(), latencies.over), (12_656_321, 3, 0));
        assert_eq!((latencies.quantile(0.0), latencies.quantile(1.0)), (Nanos(1_999), Nanos(7_654_321)));
        assert_eq!((Latencies::default().quantile(0.5), Latencies::default().min), (Nanos::ZERO, Nanos::ZERO));
    }

    #[test]
    fn what_took_longer_than_an_hour_is_counted_beside_the_buckets() {
        let latencies = of(&[10, AN_HOUR, AN_HOUR + 1, 2 * AN_HOUR, u64::MAX]);
        assert_eq!((latencies.count(), latencies.over), (5, 3));
        assert_eq!(latencies.buckets().map(|bucket| bucket.count).sum::<u64>(), 2);
        assert_eq!((latencies.quantile(0.2), latencies.quantile(0.9)), (Nanos(10), Nanos(u64::MAX)));
    }

    #[test]
    fn what_is_added_is_as_if_it_had_been_recorded() {
        let (some, others) = ([3, 70_000, AN_HOUR + 1], [2, 70_000, 8_000_000_000]);
        let mut sum = of(&some);
        sum.add(&of(&others));
        assert_eq!(sum, of(&[3, 70_000, AN_HOUR + 1, 2, 70_000, 8_000_000_000]));
        let mut later = Latencies::default();
        later.add(&sum);
        later.add(&Latencies::default());
        assert_eq!(later, sum);
    }

    #[test]
    fn a_cleared_distribution_is_empty_and_may_be_used_again() {
        let mut latencies = of(&[1, 900, 70_000, AN_HOUR + 1]);
        latencies.clear();
        assert_eq!((latencies.count(), latencies.over, latencies.sum, latencies.max), (0, 0, 0, Nanos::ZERO));
        latencies.record(Nanos(5_000));
        assert_eq!(latencies, of(&[5_000]));
        Latencies::default().clear();
    }

    #[test]
    fn a_distribution_at_rest_is_the_same_distribution() {
        let latencies = of(&[0, 1, 1_000, 1_001, 2_500_000, 2_500_001, 60_000_000_000, AN_HOUR, AN_HOUR + 1]);
        let sparse = SparseLatencies::from(&latencies);
        assert_eq!(sparse.count(), latencies.count());
        assert_eq!(sparse.max(), latencies.max);
        assert_eq!(sparse.expand(), latencies);
        assert_eq!(SparseLatencies::from(&Latencies::default()).expand(), Latencies::default());
        let mut many = Latencies::default();
        (0..40_000).for_each(|value| many.record(Nanos(value)));
        let mut all = Latencies::default();
        (0..10).for_each(|_| {
            let twice = all.clone();
            all.add(&twice);
            all.add(&many);
        });
        assert_eq!(SparseLatencies::from(&all).expand(), all);
    }

    #[test]
    fn numbers_are_read_as_they_were_put() {
        let some = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), u64::MAX];
        let mut bytes = Vec::new();
        some.iter().for_each(|number| put(&mut bytes, *number));
        assert_eq!(bytes.len(), 1 + 1 + 1 + 2 + 2 + 3 + 5 + 10);
        assert!(numbers(&bytes).eq(some));
    }
}
