//! Quantiles of a latency distribution: the buckets of an HDR histogram with exact minimum and maximum.
//!
//! A histogram knows its values to three digits; the smallest, the largest and the sum are exact. Values above the
//! histogram's range are counted separately and included in every rank.

/// Many values with the same unit.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// As in `new`: walking through a histogram would visit tens of thousands of empty ones.
    buckets: Vec<(u64, u64)>,
    in_range: u64,
    over: u64,
    /// min <= max
    min: u64,
    max: u64,
    sum: u128,
}

impl Distribution {
    /// `buckets`: the largest value of every nonempty one, ascending, and its count. `over` values are above the range
    /// of the histogram and in none of them; `min`, `max` and `sum` are those of all values. An impossible order of
    /// `min` and `max` is corrected.
    pub fn new(buckets: Vec<(u64, u64)>, over: u64, (min, max): (u64, u64), sum: u128) -> Distribution {
        let in_range = buckets.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        Distribution { buckets, in_range, over, min: min.min(max), max: min.max(max), sum }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.in_range.saturating_add(self.over)
    }

    /// Values above the histogram's range.
    pub fn over(&self) -> u64 {
        self.over
    }

    /// The smallest value, exact; `None` when empty.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min)
    }

    /// The largest value, exact; `None` when empty.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max)
    }

    /// The mean, exact but for rounding; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum as f64 / self.count() as f64)
    }

    /// For every entry of `ppm` (shares in millionths, ascending): the smallest value that at least this share of all
    /// values do not exceed. At most 0.1 % above the true value, always within `min ..= max`; values above the range
    /// count as the maximum. `None` if fewer than one value can be expected above it: such a quantile is just the
    /// maximum. Cost: one pass over the buckets.
    pub fn quantiles<const N: usize>(&self, ppm: [u32; N]) -> [Option<u64>; N] {
        assert!(ppm.is_sorted() && ppm.iter().all(|&share| share < MILLION), "shares ascend and are below one");
        let count = self.count();
        let mut values = [None; N];
        let supported = ppm.into_iter().zip(&mut values).filter(|&(share, _)| is_supported(count, share));
        let mut wanted = supported.map(|(share, value)| (rank(count, share), value));
        // A `Peekable` would be asked by a call for every bucket.
        let mut next = wanted.next();
        let mut seen = 0u64;
        for (bucket, number) in &self.buckets {
            seen = seen.saturating_add(*number);
            while let Some((rank, value)) = &mut next
                && *rank <= seen
            {
                **value = Some((*bucket).clamp(self.min, self.max));
                next = wanted.next();
            }
        }
        next.into_iter().chain(wanted).for_each(|(_, value)| *value = Some(self.max));
        values
    }

    /// How many values are at or below each of `bounds`. Cost: one pass over the buckets.
    pub fn at_most<const N: usize>(&self, bounds: [u64; N]) -> [u64; N] {
        let mut counts = [0u64; N];
        for (value, number) in self.values() {
            for (count, bound) in counts.iter_mut().zip(bounds) {
                *count = count.saturating_add(if value <= bound { number } else { 0 });
            }
        }
        counts
    }

    /// Passes on how many values are above one of `bounds` (ascending) and at or below the next, unless there are none,
    /// with the number of bounds below them, ascending. The sum is `count`. Cost: one pass over the buckets.
    pub fn for_each_between(&self, bounds: &[u64], mut take: impl FnMut(usize, u64)) {
        debug_assert!(bounds.is_sorted(), "bounds ascend");
        let mut at = bounds.partition_point(|bound| *bound < self.min);
        let mut count = 0u64;
        for (value, number) in self.values() {
            if bounds.get(at).is_some_and(|bound| *bound < value) {
                if count > 0 {
                    take(at, count);
                }
                count = 0;
                while bounds.get(at).is_some_and(|bound| *bound < value) {
                    at += 1;
                }
            }
            count = count.saturating_add(number);
        }
        if count > 0 {
            take(at, count);
        }
    }

    /// The buckets with their counts, ascending, and last what is above the histogram's range.
    fn values(&self) -> impl Iterator<Item = (u64, u64)> {
        let clamped = |(bucket, number): &(u64, u64)| ((*bucket).clamp(self.min, self.max), *number);
        self.buckets.iter().map(clamped).chain((self.over > 0).then_some((self.max, self.over)))
    }

    /// The buckets, as `new` took them.
    pub fn into_buckets(self) -> Vec<(u64, u64)> {
        self.buckets
    }

    /// Adds all values of `other`.
    pub fn add(&mut self, other: &Distribution) {
        if other.count() == 0 {
            return;
        }
        if self.count() == 0 {
            *self = other.clone();
            return;
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.over = self.over.saturating_add(other.over);
        self.in_range = self.in_range.saturating_add(other.in_range);
        let mut merged = Vec::with_capacity(self.buckets.len().max(other.buckets.len()));
        let mut theirs = other.buckets.iter().copied().peekable();
        for (bucket, number) in self.buckets.drain(..) {
            while let Some(one) = theirs.next_if(|one| one.0 < bucket) {
                merged.push(one);
            }
            let same = theirs.next_if(|one| one.0 == bucket).map_or(0, |one| one.1);
            merged.push((bucket, number.saturating_add(same)));
        }
        merged.extend(theirs);
        self.buckets = merged;
    }
}

const MILLION: u32 = 1_000_000;

/// Position, counted from 1, of the value at `share`: in integers, because 0.07 × 100 is not 7 in floating point.
fn rank(count: u64, share: u32) -> u64 {
    let rank = (u128::from(count) * u128::from(share)).div_ceil(u128::from(MILLION));
    u64::try_from(rank).expect("at most count").max(1)
}

fn is_supported(count: u64, share: u32) -> bool {
    u128::from(count) * u128::from(MILLION - share) >= u128::from(MILLION) || (share <= MILLION / 2 && count > 0)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;

    fn buckets(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
        histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
    }

    const PPM: [u32; 6] = [500_000, 900_000, 950_000, 990_000, 999_000, 999_900];

    fn of(values: impl IntoIterator<Item = u64>) -> Distribution {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        let (mut over, mut min, mut max, mut sum) = (0, u64::MAX, 0, 0);
        for value in values {
            if value <= 1_000_000 {
                histogram.record(value).unwrap()
            } else {
                over += 1
            }
            (min, max, sum) = (min.min(value), max.max(value), sum + u128::from(value));
        }
        Distribution::new(buckets(&histogram), over, (min, max), sum)
    }

    #[test]
    fn quantiles_of_few_values_are_the_values_of_their_rank() {
        // 1 … 1000 lie below 2048, where the histogram is exact.
        let all = of(1..=1000);
        assert_eq!(all.quantiles(PPM), [Some(500), Some(900), Some(950), Some(990), Some(999), None]);
        assert_eq!((all.min(), all.max(), all.mean()), (Some(1), Some(1000), Some(500.5)));
        assert_eq!(of([7, 7, 7, 9]).quantiles([1, 500_000, 750_000]), [Some(7), Some(7), Some(7)]);
        assert_eq!(of(1..=100).quantiles([70_000])[0], Some(7));
    }

    #[test]
    fn a_quantile_needs_a_value_above_it() {
        let supported = |count| of(1..=count).quantiles(PPM).map(|value| value.is_some());
        assert_eq!(supported(1), [true, false, false, false, false, false]);
        assert_eq!(supported(9), [true, false, false, false, false, false]);
        assert_eq!(supported(10), [true, true, false, false, false, false]);
        assert_eq!(supported(99), [true, true, true, false, false, false]);
        assert_eq!(supported(999), [true, true, true, true, false, false]);
        assert_eq!(supported(1000), [true, true, true, true, true, false]);
    }

    #[test]
    fn every_value_is_counted_once_between_its_bounds() {
        let all = of((1..=1000).chain([5_000_000]));
        assert_eq!(all.at_most([1, 10, 100, 2_000_000, 5_000_000]), [1, 10, 100, 1000, 1001]);
        assert_eq!(of([]).at_most([5]), [0]);
        let between = |all: &Distribution, bounds: &[u64]| {
            let mut found = Vec::new();
            all.for_each_between(bounds, |at, count| found.push((at, count)));
            found
        };
        assert_eq!(between(&all, &[1, 10, 100, 2_000_000]), [(0, 1), (1, 9), (2, 90), (3, 900), (4, 1)]);
        assert_eq!(between(&of([7, 9]), &[1, 2, 6, 7, 8]), [(3, 1), (5, 1)]);
        assert_eq!(between(&all, &[]), [(0, 1001)]);
        assert_eq!(between(&of([]), &[5]), []);
    }

    #[test]
    fn an_empty_distribution_has_no_figures() {
        for empty in [Distribution::default(), Distribution::new(Vec::new(), 0, (5, 6), 7)] {
            assert_eq!((empty.count(), empty.min(), empty.max(), empty.mean()), (0, None, None, None));
            assert_eq!(empty.quantiles(PPM), [None; 6]);
        }
    }

    #[test]
    fn values_above_the_range_count_as_the_maximum() {
        let all = of((1..=900).chain((1..=100).map(|i| i * 5_000_000)));
        assert_eq!(all.quantiles([900_000, 901_000, 990_000]), [Some(900), Some(500_000_000), Some(500_000_000)]);
        assert_eq!((all.count(), all.over()), (1000, 100));
        assert_eq!(of([2_000_000]).quantiles([500_000]), [Some(2_000_000)]);
    }

    #[test]
    fn quantiles_err_upwards_by_less_than_a_thousandth_and_stay_within_the_edges() {
        let all = of((1..=10_000).map(|i| i * 97));
        for (ppm, value) in PPM.into_iter().zip(all.quantiles(PPM)) {
            let (value, exact) = (value.unwrap() as f64, f64::from(ppm.div_ceil(100)) * 97.0);
            assert!(value >= exact && value < exact * 1.001, "{ppm}: {value} for {exact}");
        }
        assert_eq!(of([999_999; 5]).quantiles([500_000])[0], Some(999_999));
    }

    #[test]
    fn adding_gives_the_distribution_of_all_values() {
        let (mut sum, all) = (of(1..=300), of(1..=1000));
        sum.add(&of(301..=999));
        sum.add(&Distribution::default());
        sum.add(&of([1000]));
        assert_eq!((sum.count(), sum.min(), sum.max(), sum.mean()), (all.count(), all.min(), all.max(), all.mean()));
        assert_eq!(sum.quantiles(PPM), all.quantiles(PPM));
        let mut from_nothing = Distribution::default();
        from_nothing.add(&all);
        assert_eq!(from_nothing.quantiles(PPM), all.quantiles(PPM));
    }

    #[test]
    fn impossible_figures_of_a_hostile_file_do_no_harm() {
        let mut huge = Histogram::new_with_bounds(1, 1_000, 3).unwrap();
        huge.record_n(5, i64::MAX as u64).unwrap();
        let mut all = Distribution::new(buckets(&huge), u64::MAX, (9, 3), u128::MAX);
        all.add(&Distribution::new(buckets(&huge), u64::MAX, (2, 1), u128::MAX));
        let mut wide = Histogram::new_with_bounds(1, u64::MAX, 3).unwrap();
        wide.record(u64::MAX).unwrap();
        all.add(&Distribution::new(buckets(&wide), 0, (0, u64::MAX), 1));
        assert_eq!(all.count(), u64::MAX);
        assert_eq!(all.quantiles(PPM)[0], Some(5));
        assert!(all.mean().unwrap().is_finite());
    }
}
