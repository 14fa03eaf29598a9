//! Several trials of one setting.
//!
//! Unlike seconds, trials are independent: each starts from scratch. Their center is the median, which one disturbed
//! trial does not move, with a bootstrap interval. Resamples are smoothed: for few trials the plain bootstrap has few
//! possible medians, and its interval holds 89 % instead of 95 %.
//!
//! Sources: Efron & Tibshirani 1993, ch. 13 (percentile interval); Hall, DiCiccio & Romano 1989 (smoothing).

use std::cell::RefCell;

use assay_random::Random;

use crate::mean::{Estimate, mean, median};
use crate::scale::Scale;

/// The center of several trials.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialCenter {
    /// One value per trial, as given.
    pub values: Vec<f64>,
    /// Their median.
    pub median: f64,
    /// Its interval; `None` for fewer than `TRIALS_FOR_INTERVAL` trials, for which no interval holds 95 %.
    pub interval: Option<Estimate>,
    /// Largest minus smallest value, divided by the median; zero for a single trial, and for a median that is not
    /// above zero.
    pub spread: f64,
}

/// Even the range of four values misses the true median one time in eight.
const TRIALS_FOR_INTERVAL: usize = 5;
const RESAMPLES: usize = 4_000;
/// Fixed: the same trials always give the same interval.
const SEED: u64 = 0x61_7373_6179;

/// The center of `values`, one per trial (not per transaction); `None` if empty. The interval ends where values of
/// `scale` end. Cost: O(4,000 n log n).
pub fn trials(values: &[f64], scale: Scale) -> Option<TrialCenter> {
    if values.is_empty() {
        return None;
    }
    let middle = median(values);
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let interval = (values.len() >= TRIALS_FOR_INTERVAL).then(|| {
        let width = width(values);
        let resampled = |draws: &[(usize, f64)]| {
            median(&draws.iter().map(|(trial, off)| values[*trial] + width * off).collect::<Vec<f64>>())
        };
        let mut medians: Vec<f64> =
            with_draws(values.len(), |draws| draws.chunks_exact(values.len()).map(resampled).collect());
        medians.sort_by(f64::total_cmp);
        let tail = (RESAMPLES as f64 * (1.0 - crate::LEVEL) / 2.0) as usize;
        let ends = (medians[tail], medians[RESAMPLES - 1 - tail]);
        let (low, high) = scale.fitting(values.iter().copied()).within(ends);
        Estimate { value: middle, low, high }
    });
    let spread = if middle > 0.0 { (high - low) / middle } else { 0.0 };
    Some(TrialCenter { values: values.to_vec(), median: middle, interval, spread })
}

thread_local! {
    static DRAWS: RefCell<Vec<(usize, f64)>> = const { RefCell::new(Vec::new()) };
}

/// What chance draws for all resamples of this many trials: for each of their values a trial, and how far it is from
/// that, in widths of the kernel. Kept, because a comparison has hundreds of metrics of the same trials.
fn with_draws<T>(trials: usize, of: impl FnOnce(&[(usize, f64)]) -> T) -> T {
    DRAWS.with_borrow_mut(|draws| {
        if draws.len() != RESAMPLES * trials {
            let mut random = Random::new(SEED);
            let draw = |_| (random.below(trials as u64) as usize, random.normal());
            *draws = (0..RESAMPLES * trials).map(draw).collect();
        }
        of(draws)
    })
}

/// The change from the first of `values` to the last as a share of their median, if they rise or fall significantly
/// (chance does so in one of twenty series), and by at least 2 %; otherwise `None`, also for fewer than five.
///
/// Sources: Mann 1945 and Kendall 1975 (the test, with the normal approximation); Theil 1950 and Sen 1968 (the slope).
pub fn drift(values: &[f64]) -> Option<f64> {
    /// Smaller changes are not reported.
    const CHANGE_MIN: f64 = 0.02;
    /// Two-sided 95 % quantile of the normal distribution.
    const BEYOND: f64 = 1.96;
    let n = values.len();
    let middle = median(values);
    if n < TRIALS_FOR_INTERVAL || middle <= 0.0 {
        return None;
    }
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let slopes: Vec<f64> = pairs.map(|(i, j)| (values[j] - values[i]) / (j - i) as f64).collect();
    let score: f64 = slopes.iter().map(|slope| if *slope == 0.0 { 0.0 } else { slope.signum() }).sum();
    let variance = (n * (n - 1) * (2 * n + 5)) as f64 / 18.0;
    let is_sure = (score.abs() - 1.0) / variance.sqrt() > BEYOND;
    let change = median(&slopes) * (n - 1) as f64 / middle;
    (is_sure && change.abs() >= CHANGE_MIN).then_some(change)
}

/// Width of the normal kernel that smooths the resamples, from the smaller of two measures of spread, so that an
/// outlier does not widen it. Source: Silverman 1986, 3.4.2, with the median deviation instead of the quartiles.
fn width(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let center = mean(values);
    let deviation = (values.iter().map(|x| (x - center).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let middle = median(values);
    let off: Vec<f64> = values.iter().map(|x| (x - middle).abs()).collect();
    0.9 * deviation.min(median(&off) * 1.4826) * n.powf(-0.2)
}

/// Half the width of the 95 % confidence interval of the mean, as a share of the mean. `None` for fewer than two
/// values, and for a mean that is not above 0. Source: Student's distribution.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 || mean <= 0.0 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let deviation = (squares / (n - 1.0)).sqrt();
    Some(crate::student::student(0.95, (values.len() - 1).min(400)) * deviation / n.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_fall_together_drift_and_others_do_not() {
        let found = drift(&[1000.0, 980.0, 960.0, 940.0, 920.0]).unwrap();
        assert!((found + 80.0 / 960.0).abs() < 1e-9, "{found}");
        assert_eq!(drift(&[1000.0, 980.0, 990.0, 940.0, 960.0]), None);
        assert_eq!(drift(&[1000.0, 1001.0, 1002.0, 1003.0, 1004.0]), None);
        assert_eq!((drift(&[4.0, 3.0, 2.0, 1.0]), drift(&[])), (None, None));
    }

    #[test]
    fn the_interval_of_five_trials_is_about_their_range_and_always_the_same() {
        let of = || trials(&[12.0, 10.0, 11.0, 14.0, 13.0], Scale::Ratio).unwrap();
        let interval = of().interval.unwrap();
        assert_eq!((of().median, of().spread, of()), (12.0, 4.0 / 12.0, of()));
        assert!((9.0..=10.5).contains(&interval.low) && (13.5..=15.0).contains(&interval.high), "{interval:?}");
        let same = trials(&[7.0; 5], Scale::Ratio).unwrap().interval.unwrap();
        assert_eq!((same.low, same.high), (7.0, 7.0));
    }

    #[test]
    fn fewer_than_five_trials_have_no_interval() {
        let of = trials(&[12.0, 10.0, 11.0, 14.0], Scale::Ratio).unwrap();
        assert_eq!((of.median, of.interval), (11.5, None));
        assert_eq!(trials(&[], Scale::Ratio), None);
    }

    #[test]
    fn one_disturbed_trial_of_nine_does_not_widen_the_interval_to_itself() {
        let of = trials(&[100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1, 20.0], Scale::Ratio).unwrap();
        let interval = of.interval.unwrap();
        assert_eq!(of.median, 100.0);
        assert!(interval.low > 90.0 && interval.high < 102.0, "{interval:?}");
    }

    #[test]
    fn intervals_stay_within_what_is_possible() {
        let interval = |values: &[f64], scale| trials(values, scale).unwrap().interval.unwrap();
        let few = [0.0, 1.0, 0.0, 2.0, 9.0, 0.5];
        assert_eq!(interval(&few, Scale::Count).low, 0.0);
        let most = interval(&few.map(|value| 100.0 - value), Scale::Share { whole: 100.0 });
        assert!(most.high == 100.0 && most.low < 100.0, "{most:?}");
        assert!(interval(&few.map(|value| -value), Scale::Difference).high >= 0.0);
    }
}
