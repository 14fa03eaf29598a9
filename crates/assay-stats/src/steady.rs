//! The steady part of a series: where a mean means something.
//!
//! A run warms up, then settles, or never does. The part to leave out at the start is chosen so that the error of the
//! mean of the rest is least (MSER-5), and left out only when it differs from the rest by more than chance. What remains is
//! steady unless it has a trend, or waves too long to average over.
//!
//! Sources: White 1997 and White, Cobb & Spratt 2000 (MSER-5); Franklin & White 2008 (a cut in the second half means no
//! steady part); the test of the slope is least squares with the spread of `spread.rs`.

use crate::mean::mean;
use crate::spread::Spread;
use crate::waves::{Line, Waves, waves};

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steady {
    /// The series is steady from this index to its end.
    From(usize),
    /// It is not, and why.
    Not(Unsteady),
}

/// Why a series has no steady part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unsteady {
    /// Fewer than `STEADY_LENGTH_MIN` values.
    TooShort,
    /// It settled, if at all, in its second half: from this index.
    Late(usize),
    /// It goes up or down all the time.
    Trend {
        /// From start to end, as a share of the mean; negative when falling.
        change: f64,
    },
    /// It is in waves, of which too few were seen.
    Waves(Waves),
}

/// Shorter series show neither a beginning nor a trend.
pub const STEADY_LENGTH_MIN: usize = 30;
/// MSER-5's five.
const BATCH: usize = 5;
/// Batches that MSER does not cut into: with so few left the error of their mean is small by chance.
const BATCHES_LEFT: usize = 5;
/// A beginning must differ this surely to be left out, since it was chosen for looking different.
const DIFFERENT_LEVEL: f64 = 0.9999;
/// A trend must be this sure …
const TREND_LEVEL: f64 = 0.99;
/// … and change this much of the mean from start to end to matter.
const TREND_CHANGE: f64 = 0.05;
/// Fewer waves than this cannot be averaged over.
const WAVES_MIN: f64 = 5.0;

/// The steady part of an evenly spaced series, meant to be one of 1-second rates.
pub fn steady_part(series: &[f64]) -> Steady {
    if series.len() < STEADY_LENGTH_MIN {
        return Steady::Not(Unsteady::TooShort);
    }
    let start = beginning(series);
    if start > series.len() / 2 {
        // What changed once is told from what changed all the time by which of them fits better.
        let line = sum_of_squares(&Line::through(series).rest(series));
        let step = [&series[..start], &series[start..]].map(|part| part.len() as f64 * variance(part)).iter().sum();
        let change = trend(series).filter(|_| line < step);
        return Steady::Not(change.map_or(Unsteady::Late(start), |change| Unsteady::Trend { change }));
    }
    let rest = &series[start..];
    if let Some(change) = trend(rest) {
        return Steady::Not(Unsteady::Trend { change });
    }
    match waves(rest) {
        Some(waves) if waves.count < WAVES_MIN => Steady::Not(Unsteady::Waves(waves)),
        _ => Steady::From(start),
    }
}

/// How many values to leave out.
fn beginning(series: &[f64]) -> usize {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    let error = |cut: usize| {
        let (rest, left) = (&batches[cut..], (batches.len() - cut) as f64);
        let centre = mean(rest);
        rest.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / (left * left)
    };
    let cuts = 0..=batches.len().saturating_sub(BATCHES_LEFT);
    let cut = cuts.min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(0);
    let (before, rest) = series.split_at(cut * BATCH);
    if before.is_empty() {
        return 0;
    }
    // Where the rest is too short or too dependent to know its own mean, nothing can be said to differ from it.
    let centre = mean(rest);
    let Ok(spread) = Spread::of(rest, centre, 1) else { return 0 };
    let reach = spread.reach(DIFFERENT_LEVEL, |process| process.error_of_mean(before.len()));
    let differs = (mean(before) - centre).abs() > reach;
    if differs { before.len() } else { 0 }
}

fn variance(series: &[f64]) -> f64 {
    let centre = mean(series);
    series.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / series.len() as f64
}

fn sum_of_squares(values: &[f64]) -> f64 {
    values.iter().map(|x| x * x).sum()
}

/// The change from start to end as a share of the mean, when it is sure and large enough to matter.
fn trend(series: &[f64]) -> Option<f64> {
    let line = Line::through(series);
    let length = series.len() as f64;
    let change = line.slope * length / line.level;
    if change.is_nan() || change.abs() < TREND_CHANGE {
        return None;
    }
    let rest = line.rest(series);
    // Taking out the line took most of the lowest cosine with it, whose power is that of the slope's error.
    let spread = Spread::of(&rest, 0.0, 2).ok()?;
    let reach = spread.reach(TREND_LEVEL, |process| 12.0 * process.power(1, series.len()) / length.powi(3));
    (line.slope.abs() > reach).then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise of ±5 without any pattern that matters: the decimals of a quadratic sequence (Weyl 1916).
    fn noise(t: usize) -> f64 {
        let x = (t * t) as f64 * 0.618_033_988_75 + t as f64 * 0.414_213_562_37;
        10.0 * (x - x.floor()) - 5.0
    }

    fn series(length: usize, level: impl Fn(f64) -> f64) -> Vec<f64> {
        (0..length).map(|t| level(t as f64) + noise(t)).collect()
    }

    #[test]
    fn a_flat_series_is_steady_from_the_start() {
        assert_eq!(steady_part(&series(120, |_| 100.0)), Steady::From(0));
        assert_eq!(steady_part(&[100.0; 60]), Steady::From(0));
        assert_eq!(steady_part(&[0.0; 60]), Steady::From(0));
    }

    #[test]
    fn a_beginning_that_differs_is_left_out() {
        let settling = series(120, |t| if t < 20.0 { 40.0 + 3.0 * t } else { 100.0 });
        let Steady::From(start) = steady_part(&settling) else { panic!("{:?}", steady_part(&settling)) };
        assert!((15..=25).contains(&start), "{start}");
        let burst = series(120, |t| if t < 10.0 { 200.0 } else { 100.0 });
        let Steady::From(start) = steady_part(&burst) else { panic!("{:?}", steady_part(&burst)) };
        assert!((10..=20).contains(&start), "{start}");
    }

    #[test]
    fn a_trend_is_not_steady_and_its_size_is_told() {
        let Steady::Not(Unsteady::Trend { change }) = steady_part(&series(120, |t| 100.0 - t / 6.0)) else { panic!() };
        assert!((change + 20.0 / 90.0).abs() < 0.03, "{change}");
        // One percent is nothing to speak of.
        assert_eq!(steady_part(&series(600, |t| 100.0 + t / 600.0)), Steady::From(0));
    }

    #[test]
    fn a_series_that_changes_late_has_no_steady_part() {
        let late = steady_part(&series(100, |t| if t < 70.0 { 50.0 } else { 100.0 }));
        assert_eq!(late, Steady::Not(Unsteady::Late(70)));
    }

    #[test]
    fn few_long_waves_are_not_steady_and_many_short_ones_are() {
        let wave = |period: f64| move |t: f64| 100.0 + 20.0 * (std::f64::consts::TAU * t / period).sin();
        let Steady::Not(Unsteady::Waves(waves)) = steady_part(&series(120, wave(30.0))) else {
            panic!("{:?}", steady_part(&series(120, wave(30.0))))
        };
        assert!((waves.period - 30.0).abs() < 1.5, "{waves:?}");
        assert_eq!(steady_part(&series(300, wave(30.0))), Steady::From(0));
    }

    #[test]
    fn a_short_series_is_told_to_be_short() {
        assert_eq!(steady_part(&[100.0; 29]), Steady::Not(Unsteady::TooShort));
        assert_eq!(steady_part(&[]), Steady::Not(Unsteady::TooShort));
    }
}
