//! Latency distributions.
//!
//! Every statement and transaction is recorded here several times, so recording must take only a few instructions: the
//! arithmetic to find a bucket is in this crate, where it can be inlined. A distribution that only waits to be read is
//! at rest: encoded, in a few kilobytes instead of a quarter of a megabyte.

use std::borrow::Cow;
use std::ops::Range;

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::add_to;
use crate::bucket::{BUCKETS, HIGHEST_NS, bounds_of, bucket_of};
use crate::encoded::EncodedHistogram;

/// A latency distribution: buckets of nanoseconds, 1 ns … 1 h, 3 significant digits; with exact minimum, maximum and
/// sum. An empty one needs no memory.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Values in each bucket, while values are added; empty before the first value, and at rest.
    counts: Box<[u64]>,
    /// The distribution at rest, encoded.
    histogram: Option<EncodedHistogram>,
    /// Number of values, including those above the histogram's range.
    pub count: u64,
    /// Smallest value, exact; 0 when empty.
    pub min_ns: u64,
    /// Largest value, exact, even above the histogram's range; 0 when empty.
    pub max_ns: u64,
    /// Sum of all values, exact.
    pub sum_ns: u128,
    /// Values above the histogram's range, which are not in it.
    pub over: u64,
}

/// Values that are treated as equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The smallest of them.
    pub lowest_ns: u64,
    /// The largest. lowest_ns <= highest_ns
    pub highest_ns: u64,
    /// How many there are; at least one.
    pub count: u64,
}

/// The form of a distribution in records.
#[derive(Serialize, Deserialize)]
struct DistributionForm<'a> {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
    over: u64,
    histogram: Option<Cow<'a, EncodedHistogram>>,
}

impl Latencies {
    /// Values that were collected elsewhere, with their exact extremes and sum. Without a histogram, nothing is known
    /// of the values in between.
    pub fn of(count: u64, (min_ns, max_ns): (u64, u64), sum_ns: u128, histogram: Option<&Histogram<u64>>) -> Latencies {
        let histogram = histogram.map(EncodedHistogram::new);
        Latencies { counts: Box::default(), histogram, count, min_ns, max_ns, sum_ns, over: 0 }
    }

    /// All of `parts` together.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a Latencies>) -> Latencies {
        let mut sum = Latencies::default();
        parts.into_iter().for_each(|part| sum.add(part));
        sum.rest();
        sum
    }

    /// Adds one value. Allocates only for the first one.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        if self.count == 0 {
            self.begin(value_ns);
        }
        match self.counts.get_mut(bucket_of(value_ns)) {
            Some(count) if value_ns <= HIGHEST_NS => *count += 1,
            _ => self.record_beside(value_ns),
        }
        self.count += 1;
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
        self.sum_ns += u128::from(value_ns);
    }

    /// A value above the range, or the first one after a rest.
    #[cold]
    fn record_beside(&mut self, value_ns: u64) {
        if value_ns > HIGHEST_NS {
            self.over += 1;
        } else {
            self.wake();
            self.counts[bucket_of(value_ns)] += 1;
        }
    }

    /// Makes room for the first value.
    #[cold]
    fn begin(&mut self, first_ns: u64) {
        self.min_ns = first_ns;
        self.wake();
    }

    /// Makes room for more values.
    fn wake(&mut self) {
        if !self.counts.is_empty() {
            return;
        }
        self.counts = vec![0; BUCKETS].into_boxed_slice();
        if let Some(histogram) = self.histogram.take() {
            self.add_encoded(&histogram);
        }
    }

    fn add_encoded(&mut self, histogram: &EncodedHistogram) {
        for (value, count) in histogram.values() {
            add_to(&mut self.counts[bucket_of(value.min(HIGHEST_NS))], count);
        }
    }

    /// Adds all values of `other`.
    pub fn add(&mut self, other: &Latencies) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 && self.counts.is_empty() && other.counts.is_empty() {
            self.clone_from(other);
            return;
        }
        if self.count == 0 {
            self.begin(other.min_ns);
        }
        if !other.counts.is_empty() {
            self.wake();
            let used = other.used();
            for (ours, theirs) in self.counts[used.clone()].iter_mut().zip(&other.counts[used]) {
                add_to(ours, *theirs);
            }
        } else if let Some(histogram) = &other.histogram {
            self.wake();
            self.add_encoded(histogram);
        }
        add_to(&mut self.count, other.count);
        add_to(&mut self.over, other.over);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// Forgets the values, keeps the memory.
    pub fn clear(&mut self) {
        let used = self.used();
        self.counts[used].fill(0);
        *self = Latencies { counts: std::mem::take(&mut self.counts), ..Latencies::default() };
    }

    /// Encodes the values, and frees the memory.
    pub fn rest(&mut self) {
        if !self.counts.is_empty() {
            self.histogram = self.encoded().map(Cow::into_owned);
            self.counts = Box::default();
        }
    }

    /// The distribution, encoded.
    pub fn at_rest(&self) -> Latencies {
        self.with_histogram(self.encoded().map(Cow::into_owned))
    }

    /// The largest value of every bucket in use, ascending, and its count, without `over`; empty if that is not known.
    pub fn values(&self) -> Vec<(u64, u64)> {
        let mut values = Vec::new();
        self.put_values(&mut values);
        values
    }

    /// As `values`, in this memory instead of what is there.
    pub fn put_values(&self, to: &mut Vec<(u64, u64)>) {
        to.clear();
        match &self.histogram {
            Some(histogram) if self.counts.is_empty() => histogram.put_values(to),
            _ => to.extend(self.filled().map(|(bucket, count)| (bounds_of(bucket).1, count))),
        }
    }

    /// All values but those in `over`; `None` when empty, or not known.
    pub fn histogram(&self) -> Option<Histogram<u64>> {
        self.encoded().map(|histogram| histogram.decode())
    }

    /// The distribution with this histogram instead; `None`: nothing is known of the values between its extremes.
    #[must_use]
    pub fn with_histogram(&self, histogram: Option<EncodedHistogram>) -> Latencies {
        let &Latencies { count, min_ns, max_ns, sum_ns, over, .. } = self;
        Latencies { counts: Box::default(), histogram, count, min_ns, max_ns, sum_ns, over }
    }

    /// The histogram, encoded; `None` when empty, or not known.
    pub fn encoded(&self) -> Option<Cow<'_, EncodedHistogram>> {
        if self.counts.is_empty() {
            return self.histogram.as_ref().map(Cow::Borrowed);
        }
        (self.count > 0).then(|| Cow::Owned(EncodedHistogram::of_buckets(self.filled())))
    }

    /// The smallest value that at least a share `q` (0 … 1) of all values do not exceed; zero when empty. Values above
    /// the range count as the maximum; the result is always within `min_ns ..= max_ns`.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let reached = self.buckets().into_iter().find(|bucket| {
            seen += bucket.count;
            seen >= rank
        });
        reached.map_or(self.max_ns, |bucket| bucket.highest_ns.clamp(self.min_ns, self.max_ns))
    }

    /// The buckets in use, ascending, without `over`.
    pub fn buckets(&self) -> Vec<Bucket> {
        if self.counts.is_empty() && self.histogram.is_some() {
            let mut awake = self.clone();
            awake.wake();
            return awake.buckets();
        }
        let bucket = |(bucket, count)| {
            let (lowest_ns, highest_ns) = bounds_of(bucket);
            Bucket { lowest_ns, highest_ns, count }
        };
        self.filled().map(bucket).collect()
    }

    fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.used().map(|bucket| (bucket, self.counts[bucket])).filter(|(_, count)| *count > 0)
    }

    /// Buckets outside this range are empty.
    fn used(&self) -> Range<usize> {
        let end = (bucket_of(self.max_ns.min(HIGHEST_NS)) + 1).min(self.counts.len());
        bucket_of(self.min_ns.min(HIGHEST_NS)).min(end)..end
    }
}

/// Two distributions are the same whether they rest or not.
impl PartialEq for Latencies {
    fn eq(&self, other: &Latencies) -> bool {
        let exact = |one: &Latencies| (one.count, one.min_ns, one.max_ns, one.sum_ns, one.over);
        exact(self) == exact(other) && self.encoded() == other.encoded()
    }
}

impl Eq for Latencies {}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let &Latencies { count, min_ns, max_ns, sum_ns, over, .. } = self;
        DistributionForm { count, min_ns, max_ns, sum_ns, over, histogram: self.encoded() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Latencies, D::Error> {
        let DistributionForm { count, min_ns, max_ns, sum_ns, over, histogram } =
            DistributionForm::deserialize(deserializer)?;
        let histogram = histogram.map(Cow::into_owned);
        Ok(Latencies { counts: Box::default(), histogram, count, min_ns, max_ns, sum_ns, over })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        values.iter().for_each(|value| latencies.record(*value));
        latencies
    }

    const AN_HOUR: u64 = HIGHEST_NS;

    #[test]
    fn latencies_keep_three_digits_from_a_microsecond_to_an_hour() {
        for value in [1_000, 5_300, 10_250, 99_999, 1_234_567, 59_000_000_000, AN_HOUR] {
            let median = of(&[value / 2, value, value * 2]).quantile_ns(0.5);
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
            let (lowest, highest) = bounds_of(bucket_of(value));
            assert_eq!(lowest, theirs.lowest_equivalent(value), "{value}");
            assert_eq!(highest, theirs.highest_equivalent(value), "{value}");
            theirs.record(value).unwrap();
        }
        assert!(BUCKETS <= theirs.distinct_values());
    }

    #[test]
    fn edges_sum_and_count_are_exact() {
        let latencies = of(&[5_000_001, 1_999, 7_654_321]);
        assert_eq!((latencies.min_ns, latencies.max_ns), (1_999, 7_654_321));
        assert_eq!((latencies.sum_ns, latencies.count, latencies.over), (12_656_321, 3, 0));
        assert_eq!((latencies.quantile_ns(0.0), latencies.quantile_ns(1.0)), (1_999, 7_654_321));
        assert_eq!((Latencies::default().quantile_ns(0.5), Latencies::default().min_ns), (0, 0));
    }

    #[test]
    fn what_took_longer_than_an_hour_is_counted_beside_the_buckets() {
        let latencies = of(&[10, AN_HOUR, AN_HOUR + 1, 2 * AN_HOUR, u64::MAX]);
        assert_eq!((latencies.count, latencies.over), (5, 3));
        assert_eq!(latencies.buckets().iter().map(|bucket| bucket.count).sum::<u64>(), 2);
        assert_eq!((latencies.quantile_ns(0.2), latencies.quantile_ns(0.9)), (10, u64::MAX));
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
        assert_eq!((latencies.count, latencies.over, latencies.sum_ns, latencies.max_ns), (0, 0, 0, 0));
        latencies.record(5_000);
        assert_eq!(latencies, of(&[5_000]));
        Latencies::default().clear();
    }

    #[test]
    fn a_distribution_at_rest_is_the_same_distribution() {
        let latencies = of(&[0, 1, 1_000, 1_001, 2_500_000, 2_500_001, 60_000_000_000, AN_HOUR, AN_HOUR + 1]);
        let resting = latencies.at_rest();
        assert_eq!(resting, latencies);
        assert_eq!(resting.buckets(), latencies.buckets());
        assert_eq!(resting.quantile_ns(0.5), latencies.quantile_ns(0.5));
        assert_eq!(Latencies::default().at_rest(), Latencies::default());
        assert!(resting.counts.is_empty());
        let mut awake = resting.clone();
        awake.record(2_000);
        awake.record(AN_HOUR + 1);
        let mut all = latencies.clone();
        all.add(&of(&[2_000, AN_HOUR + 1]));
        assert_eq!(awake, all);
        assert_eq!((awake.buckets(), awake.over), (all.buckets(), 2));
        awake.rest();
        assert!(awake.counts.is_empty());
        assert_eq!(awake, all);
        let mut sum = resting.clone();
        sum.add(&resting);
        assert_eq!(sum, Latencies::sum([&latencies, &resting]));
    }

    #[test]
    fn a_distribution_is_written_as_records_have_it_and_read_back() {
        let latencies = of(&[1_000, 2_500_000, AN_HOUR + 1]);
        let text = serde_json::to_string(&latencies).unwrap();
        let written =
            r#"{"count":3,"min_ns":1000,"max_ns":3600000000001,"sum_ns":3600002501001,"over":1,"histogram":""#;
        assert!(text.starts_with(written), "{text}");
        let read: Latencies = serde_json::from_str(&text).unwrap();
        assert_eq!(read, latencies);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        let none = r#"{"count":0,"min_ns":0,"max_ns":0,"sum_ns":0,"over":0,"histogram":null}"#;
        assert_eq!(serde_json::to_string(&Latencies::default()).unwrap(), none);
    }
}
