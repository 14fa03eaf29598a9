//! The mean of a series whose neighbours resemble each other, and how well it is known.
//!
//! Seconds of a run are not independent: a slow second is followed by slow ones. Treating them as independent makes
//! intervals too narrow, by a factor of four where neighbours correlate at 0.9. How far a mean strays is told by
//! `spread.rs`.

use crate::LEVEL;
use crate::spread::{Missing, Spread};

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

/// Shorter series have no interval.
pub const LENGTH_MIN: usize = 30;

/// The mean of an evenly spaced series and its interval. Values in any unit, finite.
///
/// Holds `LEVEL` ± 2 % for first order autoregressions of any correlation from 0 to 0.9 from a minute on, and from five
/// minutes on also where as much noise lies over them. What hides longer under more noise holds less. Cost: O(240 n).
pub fn mean_interval(series: &[f64]) -> Result<Estimate, Missing> {
    if series.len() < LENGTH_MIN {
        return Err(Missing::TooShort);
    }
    let value = mean(series);
    let half = Spread::of(series, value, 1)?.reach(LEVEL, |process| process.error_of_mean(series.len()));
    Ok(Estimate { value, low: value - half, high: value + half })
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
