//! Confidence interval of a latency quantile, with autocorrelated seconds.
//!
//! Latencies of one second share its fate, so the intervals for independent values are far too narrow. The share of
//! values above the quantile is a rate like any other: its spread over the seconds, with their dependence, gives an
//! interval for the share, which the distribution turns into one for the quantile.
//!
//! Source: Woodruff 1952, "Confidence intervals for medians and other position measures", with the spread of
//! `spread.rs` and the linearised ratio of Cochran 1977, 6.4 for seconds of unequal counts.

use crate::Distribution;
use crate::mean::{mean, mean_interval};

/// What one second says of a quantile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Values that are at most the quantile of all. at_most <= count
    pub at_most: u64,
    /// All values.
    pub count: u64,
}

/// The interval of the quantile at `ppm` (millionths, below a million) of `all` values, which came in `seconds`. `None`
/// where the quantile itself has none, where the interval's upper end reaches beyond what was seen, or where the
/// seconds are too few or too alike to tell.
pub fn quantile_interval(all: &Distribution, ppm: u32, seconds: &[Second]) -> Option<(u64, u64)> {
    let counts: Vec<f64> = seconds.iter().map(|second| second.count as f64).collect();
    let found = seconds.iter().map(|second| second.at_most as f64).sum::<f64>() / counts.iter().sum::<f64>();
    // Of each second: how many values too many, or too few, it has below the quantile.
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
