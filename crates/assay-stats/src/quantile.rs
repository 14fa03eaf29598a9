//! Confidence interval of a latency quantile, with autocorrelated seconds.
//!
//! Latencies within one second are similar, so the intervals for independent values are far too narrow. The share of
//! values above the quantile is a rate like any other: its spread over the seconds, with their correlation, gives an
//! interval for the share, which the distribution converts to one for the quantile.
//!
//! Source: Woodruff 1952, "Confidence intervals for medians and other position measures", with the spread of
//! `spread.rs` and the linearized ratio of Cochran 1977, 6.4 for seconds with unequal counts.

use crate::Distribution;
use crate::mean::{mean, mean_interval};

/// One second's contribution to a quantile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Values that are at most the overall quantile. at_most <= count
    pub at_most: u64,
    /// All values.
    pub count: u64,
}

/// The interval of the quantile at `ppm` (millionths, below a million) of `all` values, which came in `seconds`. `None`
/// if the quantile itself is unknown, if the interval's upper end is beyond the observed values, or if the seconds are
/// too few or too similar.
pub fn quantile_interval(all: &Distribution, ppm: u32, seconds: &[Second]) -> Option<(u64, u64)> {
    let counts: Vec<f64> = seconds.iter().map(|second| second.count as f64).collect();
    let found = seconds.iter().map(|second| second.at_most as f64).sum::<f64>() / counts.iter().sum::<f64>();
    // For each second: how many values too many, or too few, it has below the quantile.
    let surplus: Vec<f64> = seconds.iter().map(|one| one.at_most as f64 - found * one.count as f64).collect();
    let estimate = mean_interval(&surplus).ok().filter(|_| found.is_finite())?;
    let half = (estimate.high - estimate.low) / 2.0 / mean(&counts);
    let share = f64::from(ppm) / 1e6;
    let [low, high] = [share - half, share + half].map(|share| (share.max(0.0) * 1e6).round() as u32);
    if high >= 1_000_000 {
        return None;
    }
    let [low, _, high] = all.quantiles([low, ppm, high]);
    Some((low?, high?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every value from 1 to 1000 as often.
    fn even() -> Distribution {
        Distribution::new((1..=1000).map(|value| (value, 4)).collect(), 0, (1, 1000), 500_500 * 4)
    }

    /// Patternless, from −1 to 1, and of sum 0: each value and its opposite.
    fn noise(length: usize) -> Vec<f64> {
        let one = |t: usize| ((t * t) as f64 * 0.618_033_988_75 + t as f64 * 0.414_213_562_37).fract() * 2.0 - 1.0;
        (0..length).map(|t| if t % 2 == 0 { one(t / 2 + 7) } else { -one(t / 2 + 7) }).collect()
    }

    #[test]
    fn the_interval_is_where_the_shares_of_the_seconds_put_it() {
        for (ppm, count) in [(500_000, 100), (900_000, 400)] {
            let share = f64::from(ppm) / 1e6;
            let below = |x: f64| (share * f64::from(count) + 20.0 * x).round() as u64;
            let seconds = noise(60).into_iter().map(|x| Second { at_most: below(x), count: count as u64 });
            let seconds: Vec<Second> = seconds.collect();
            let all: u64 = seconds.iter().map(|second| second.at_most).sum();
            let found = all as f64 / (60.0 * f64::from(count));
            let strays: Vec<f64> = seconds.iter().map(|one| one.at_most as f64 / f64::from(count) - found).collect();
            let mean = mean_interval(&strays).unwrap();
            let half = (mean.high - mean.low) / 2.0;
            let (low, high) = quantile_interval(&even(), ppm, &seconds).unwrap();
            assert!(half > 0.0005, "{half}");
            assert!((low as f64 - 1000.0 * (share - half)).abs() <= 2.0, "{low} {share} {half}");
            assert!((high as f64 - 1000.0 * (share + half)).abs() <= 2.0, "{high} {share} {half}");
        }
    }

    #[test]
    fn a_busy_second_counts_by_its_values_and_not_as_one_of_many() {
        // Every second has exactly half below, however many it has: the quantile is known as well as it can be.
        let seconds: Vec<Second> =
            (0..60).map(|t| Second { at_most: 10 * (1 + t % 7), count: 20 * (1 + t % 7) }).collect();
        let (low, high) = quantile_interval(&even(), 500_000, &seconds).unwrap();
        assert!(high - low <= 1, "{low} {high}");
    }

    #[test]
    fn an_interval_that_reaches_beyond_what_was_seen_is_none() {
        let seconds = |share: f64, spread: f64| -> Vec<Second> {
            let below = |x: f64| (1000.0 * share + spread * x).round() as u64;
            noise(60).into_iter().map(|x| Second { at_most: below(x), count: 1000 }).collect()
        };
        assert!(quantile_interval(&even(), 990_000, &seconds(0.99, 5.0)).is_some());
        assert_eq!(quantile_interval(&even(), 999_999, &seconds(0.999, 1.0)), None);
        // Below the lowest there is nothing; the lowest stands for it.
        assert_eq!(quantile_interval(&even(), 1, &seconds(0.001, 1.0)).map(|(low, _)| low), Some(1));
        assert_eq!(quantile_interval(&even(), 500_000, &[Second::default(); 60]), None);
        assert_eq!(quantile_interval(&even(), 500_000, &seconds(0.5, 5.0)[..29]), None);
    }
}
