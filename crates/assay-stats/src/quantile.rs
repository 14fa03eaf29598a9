//! How well a quantile of latencies is known, when seconds resemble each other.
//!
//! Latencies of one second share its fate, so the intervals for independent values are far too narrow. The share of
//! values above the quantile is a rate like any other: its spread over the seconds, with their dependence, gives an
//! interval for the share, which the distribution turns into one for the quantile.
//!
//! Source: Woodruff 1952, "Confidence intervals for medians and other position measures", with the spread of `mean.rs`
//! and the linearised ratio of Cochran 1977, 6.4 for seconds of unequal counts.

use crate::mean::{mean, power_at_zero};
use crate::student::student;
use crate::{Distribution, LEVEL};

/// For every entry of `ppm` (shares in millionths, ascending, below a million): the interval of that quantile of all
/// `seconds` together. `None` where the quantile itself has none, where the interval's upper end reaches beyond what was seen,
/// or where the seconds are too few or too alike to tell.
pub fn quantile_intervals<const N: usize>(seconds: &[Distribution], ppm: [u32; N]) -> [Option<(u64, u64)>; N] {
    let mut all = Distribution::default();
    seconds.iter().for_each(|second| all.add(second));
    let quantiles = all.quantiles(ppm);
    std::array::from_fn(|i| interval(seconds, &all, quantiles[i]?, f64::from(ppm[i]) / 1e6))
}

fn interval(seconds: &[Distribution], all: &Distribution, quantile: u64, share: f64) -> Option<(u64, u64)> {
    let counts: Vec<f64> = seconds.iter().map(|second| second.count() as f64).collect();
    let at_most: Vec<f64> = seconds.iter().map(|second| second.counts(&[quantile])[0] as f64).collect();
    let found = at_most.iter().sum::<f64>() / counts.iter().sum::<f64>();
    // Of each second: how many values too many, or too few, it has below the quantile.
    let surplus: Vec<f64> = at_most.iter().zip(&counts).map(|(below, count)| below - found * count).collect();
    let power = power_at_zero(&surplus, 0.0).ok()?;
    let error = (power.power / seconds.len() as f64).sqrt() / mean(&counts);
    let half = student(LEVEL, power.freedom) * error;
    let ppm = |share: f64| (share.max(0.0) * 1e6).round() as u32;
    let high = ppm(share + half);
    if high >= 1_000_000 {
        return None;
    }
    let [low, high] = all.quantiles([ppm(share - half), high]);
    Some((low?, high?))
}
