//! Latencies in logarithmic buckets: sysbench's definition of a percentile, and its histogram output.
//!
//! There are 1024 buckets from 0.001 ms to 100,000 ms, each 1.8 % wider than the one before; a percentile is the value
//! of the bucket in which the requested share of all values is reached. Two things are better than in sysbench: a
//! percentile is never outside the measured range, and values beyond the last bucket do not count as 100 s.

/// Values by bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    buckets: Vec<u64>,
    low: f64,
    high: f64,
    /// Smallest and largest value; min > max when empty.
    min: f64,
    max: f64,
}

/// Stars of the longest bar.
const BAR: usize = 40;

impl Histogram {
    /// A histogram of latencies, in milliseconds.
    pub fn of_latencies() -> Histogram {
        Histogram::new(1024, 0.001, 100_000.0)
    }

    /// `size` buckets between `low` and `high`; 2 <= size, 0 < low < high.
    pub fn new(size: usize, low: f64, high: f64) -> Histogram {
        Histogram { buckets: vec![0; size], low, high, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }

    /// The exponent by which buckets grow.
    fn step(&self) -> f64 {
        (self.high / self.low).ln() / (self.buckets.len() - 1) as f64
    }

    /// Adds `count` values of this size. Values outside of the range belong to the buckets at its ends.
    pub fn add(&mut self, value: f64, count: u64) {
        let position = ((value.max(f64::MIN_POSITIVE) / self.low).ln() / self.step() + 0.5).floor();
        let last = self.buckets.len() - 1;
        self.buckets[(position.max(0.0) as usize).min(last)] += count;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The exact smallest and largest value, where those added were rounded.
    pub fn bound(&mut self, min: f64, max: f64) {
        (self.min, self.max) = (min, max);
    }

    /// Adds all values of another histogram of the same buckets.
    pub fn merge(&mut self, other: &Histogram) {
        for (ours, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *ours += theirs;
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// What a bucket stands for.
    fn value(&self, bucket: usize) -> f64 {
        self.low * (self.step() * bucket as f64).exp()
    }

    /// The value that `percent` of all values do not exceed; 0 when there are none. 0 <= percent <= 100.
    pub fn percentile(&self, percent: f64) -> f64 {
        let count = self.count();
        if count == 0 {
            return 0.0;
        }
        let wanted = ((count as f64 * percent / 100.0) + 0.5).floor() as u64;
        let mut seen = 0;
        for (bucket, here) in self.buckets.iter().enumerate() {
            seen += here;
            if seen >= wanted && seen > 0 {
                let beyond = bucket == self.buckets.len() - 1 && self.max > self.high;
                return if beyond { self.max } else { self.value(bucket).clamp(self.min, self.max) };
            }
        }
        self.max
    }

    /// The picture: a header, and a line for each bucket that holds something; nothing when none does.
    pub fn picture(&self) -> String {
        if self.count() == 0 {
            return String::new();
        }
        let mut text = "       value  ------------- distribution ------------- count\n".to_owned();
        let most = self.buckets.iter().copied().max().unwrap_or(0).max(1) as f64;
        for (bucket, count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            let stars = (*count as f64 * BAR as f64 / most + 0.5) as usize;
            text += &format!("{:12.3} |{:<BAR$} {count}\n", self.value(bucket), "*".repeat(stars));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_buckets_but_never_outside_of_what_was_measured() {
        let mut histogram = Histogram::of_latencies();
        assert_eq!(histogram.percentile(95.0), 0.0);
        for value in 1..=100 {
            histogram.add(f64::from(value), 1);
        }
        let p95 = histogram.percentile(95.0);
        assert!((p95 / 95.0 - 1.0).abs() < 0.0095, "{p95}");
        let mut one = Histogram::of_latencies();
        one.add(20.2, 5);
        assert_eq!(one.percentile(95.0), 20.2);
        let mut slow = Histogram::of_latencies();
        slow.add(250_000.0, 1);
        assert_eq!(slow.percentile(99.0), 250_000.0);
    }

    #[test]
    fn the_picture_has_a_bar_for_every_bucket_that_holds_something() {
        let mut histogram = Histogram::of_latencies();
        histogram.add(20.1, 49);
        histogram.add(20.4, 1);
        histogram.add(23.8, 1);
        assert_eq!(
            histogram.picture(),
            "       value  ------------- distribution ------------- count
      20.002 |**************************************** 49
      20.366 |*                                        1
      23.948 |*                                        1
"
        );
    }
}
