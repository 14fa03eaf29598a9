//! The mean of an autocorrelated series, and its confidence interval.
//!
//! Seconds of a run are not independent: a slow second is followed by slow ones. Treating them as independent makes
//! intervals too narrow, by a factor of four if neighbors correlate at 0.9. `spread.rs` determines how far a mean
//! strays.

use crate::LEVEL;
use crate::spread::{Missing, Spread};

/// A value and the interval that contains the true one at `LEVEL`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best estimate.
    pub value: f64,
    /// low <= value <= high
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Shorter series have no interval.
pub const LENGTH_MIN: usize = 30;

/// The mean of an evenly spaced series and its interval. Values in any unit, finite.
///
/// Holds `LEVEL` ± 2 % for first order autoregressions with any correlation from 0 to 0.9 from a minute on, and from
/// five minutes on also with as much additional noise. Stronger correlation hidden under more noise holds less. Cost:
/// O(240 n).
pub fn mean_interval(series: &[f64]) -> Result<Estimate, Missing> {
    if series.len() < LENGTH_MIN {
        return Err(Missing::TooShort);
    }
    let value = mean(series);
    let half = Spread::of(series, value, 1)?.reach(LEVEL, |process| process.error_of_mean(series.len()));
    Ok(Estimate { value, low: value - half, high: value + half })
}

/// The sum of the first of each pair divided by the sum of the second, and its interval: for example the resources used
/// per transaction, by second. Pairs are evenly spaced, finite, and the second sum is above zero.
///
/// Linearized: how far the first strays from its share of the second is a series for `mean_interval`. Source: Cochran,
/// Sampling Techniques, 1977, section 6.3.
pub fn ratio_interval(pairs: &[(f64, f64)]) -> Result<Estimate, Missing> {
    let [first, second] = [pairs.iter().map(|pair| pair.0).sum::<f64>(), pairs.iter().map(|pair| pair.1).sum()];
    let ratio = first / second;
    let per_pair = second / pairs.len() as f64;
    let strays: Vec<f64> = pairs.iter().map(|(first, second)| (first - ratio * second) / per_pair).collect();
    let around_zero = mean_interval(&strays)?;
    Ok(Estimate { value: ratio, low: ratio + around_zero.low, high: ratio + around_zero.high })
}

/// Zero if empty.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The middle value, or the mean of the two in the middle; zero if empty.
pub(crate) fn median(values: &[f64]) -> f64 {
    median_of(&mut values.to_vec())
}

/// As `median`; puts the values into another order.
pub(crate) fn median_of(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    let is_odd = !values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().max_by(|one, other| one.total_cmp(other)).filter(|_| !is_odd);
    lower.map_or(*upper, |lower| (lower + *upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_transactions_exactly_has_no_width_and_noise_has_some() {
        let exact: Vec<(f64, f64)> =
            (0..60).map(|second| f64::from(1000 + second % 7 * 10)).map(|n| (n * 3.0, n)).collect();
        let found = ratio_interval(&exact).unwrap();
        assert!((found.value - 3.0).abs() < 1e-9 && (found.high - found.low).abs() < 1e-6, "{found:?}");
        // Every other second 10 % more, then 10 % less, of the same transactions.
        let noisy: Vec<(f64, f64)> =
            (0..60).map(|second| (1000.0 + f64::from(second * 7 % 11 - 5) * 20.0, 1000.0)).collect();
        let found = ratio_interval(&noisy).unwrap();
        assert!(found.low < 1.0 && 1.0 < found.high && found.high - found.low < 0.1, "{found:?}");
        assert!(ratio_interval(&exact[..10]).is_err());
    }
}
