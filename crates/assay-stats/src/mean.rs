//! The mean of a series whose neighbours resemble each other, and how well it is known.
//!
//! Seconds of a run are not independent: a slow second is followed by slow ones. Treating them as independent makes
//! intervals too narrow, by a factor of four where neighbours correlate at 0.9. The spread of the mean is the series'
//! power at frequency zero, estimated from its lowest frequencies: the equal-weighted cosine estimator, whose
//! statistic follows Student's t. How many frequencies may be used is decided by how fast the power falls in a first
//! order autoregression fitted to the series.
//!
//! Sources: Müller 2004, "A theory of robust long-run variance estimation"; Lazarus, Lewis, Stock & Watson 2018, "HAR
//! inference: recommendations for practice" (estimator, t reference); Andrews 1991 (first order plug-in);
//! Marriott & Pope 1954 (bias of the correlation).

use std::f64::consts::PI;

use crate::LEVEL;
use crate::student::student;

/// A value and the interval that holds the true one at `LEVEL`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best single value.
    pub value: f64,
    /// low <= value <= high
    pub low: f64,
    /// The other end.
    pub high: f64,
}

/// Why there is no interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Fewer than `LENGTH_MIN` values: they do not show how they depend on each other.
    TooShort,
    /// Neighbours resemble each other so much that the series holds too few independent values.
    TooDependent,
}

/// Shorter series have no interval.
pub const LENGTH_MIN: usize = 30;
/// Shorter parts of a series are not even compared with the rest.
const PART_MIN: usize = 10;
/// Fewer frequencies make intervals of any length, and of any coverage.
const FREQUENCIES_MIN: usize = 4;
/// Student's t hardly changes beyond.
const FREQUENCIES_MAX: usize = 64;
/// More than the fewest frequencies are used as long as they hold on average this share of the power at zero, in the
/// autoregression fitted. What they lack is added.
const POWER_KEPT: f64 = 0.9;
/// Where the fewest hold less than this, what would have to be added rests on the autoregression alone.
const POWER_KEPT_MIN: f64 = 0.4;

/// The mean of an evenly spaced series and its interval. Values in any unit, finite.
///
/// Holds `LEVEL` where the series is worth some 13 independent values or more: n (1 − φ)/(1 + φ) of a series of n whose
/// neighbours correlate at φ; shorter ones that depend more hold less. Cost: O(64 n).
pub fn mean_interval(series: &[f64]) -> Result<Estimate, Missing> {
    if series.len() < LENGTH_MIN {
        return Err(Missing::TooShort);
    }
    let value = mean(series);
    let power = power_at_zero(series, value)?;
    let half = student(LEVEL, power.freedom) * (power.power / series.len() as f64).sqrt();
    Ok(Estimate { value, low: value - half, high: value + half })
}

/// Spread of a series at the lowest frequencies: the variance of its mean, times its length.
pub(crate) struct Power {
    pub(crate) power: f64,
    /// Degrees of freedom of the estimate: the number of frequencies.
    pub(crate) freedom: usize,
}

/// The power of `series` around `centre`. A series without any spread has none, and knows that well.
pub(crate) fn power_at_zero(series: &[f64], centre: f64) -> Result<Power, Missing> {
    if series.len() < PART_MIN {
        return Err(Missing::TooShort);
    }
    let length = series.len() as f64;
    let most = (length.powf(2.0 / 3.0) as usize).min(FREQUENCIES_MAX);
    let (freedom, kept) = frequencies(correlation(series, centre), length, most);
    if kept < POWER_KEPT_MIN {
        return Err(Missing::TooDependent);
    }
    let weight = |j: usize| {
        let step = PI * j as f64 / length;
        let sum: f64 = series.iter().enumerate().map(|(t, x)| (x - centre) * (step * (t as f64 + 0.5)).cos()).sum();
        sum * sum * 2.0 / length
    };
    let found = (1..=freedom).map(weight).sum::<f64>() / freedom as f64;
    Ok(Power { power: found / kept, freedom })
}

/// How many of the lowest frequencies to use, and the share of the power at zero that they hold on average, in an
/// autoregression of this correlation.
fn frequencies(correlation: f64, length: f64, most: usize) -> (usize, f64) {
    let share = |j: usize| {
        let cos = (PI * j as f64 / length).cos();
        (1.0 - correlation).powi(2) / (1.0 - 2.0 * correlation * cos + correlation.powi(2))
    };
    let mut sum = 0.0;
    for j in 1..=most {
        let more = sum + share(j);
        if j > FREQUENCIES_MIN && more < POWER_KEPT * j as f64 {
            return (j - 1, sum / (j - 1) as f64);
        }
        sum = more;
    }
    (most, sum / most as f64)
}

/// Correlation of neighbours, corrected for its bias, 0 … 0.99; the largest that the series or its means of five show,
/// since noise in single seconds hides a slow wandering beneath.
fn correlation(series: &[f64], centre: f64) -> f64 {
    let fives: Vec<f64> = series.chunks_exact(5).map(mean).collect();
    let single = neighbours(series, centre);
    let slow = neighbours(&fives, centre);
    let significant = 2.0 / (fives.len() as f64).sqrt();
    let slow = if slow > significant { slow.powf(0.2) } else { 0.0 };
    single.max(slow).clamp(0.0, 0.99)
}

fn neighbours(series: &[f64], centre: f64) -> f64 {
    let length = series.len() as f64;
    let spread: f64 = series.iter().map(|x| (x - centre).powi(2)).sum();
    if spread <= 0.0 || length < 4.0 {
        return 0.0;
    }
    let common: f64 = series.windows(2).map(|pair| (pair[0] - centre) * (pair[1] - centre)).sum();
    (length * common / spread + 1.0) / (length - 3.0)
}

/// Zero of nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The middle value, or the mean of the two in the middle; zero of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n.is_multiple_of(2) => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        n => sorted[n / 2],
    }
}
