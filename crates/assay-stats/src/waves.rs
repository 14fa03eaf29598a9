//! Waves: periodic throughput, as caused by checkpoints.
//!
//! A wave of any shape makes a series similar to itself one period later, and two. So the period is the lag of the
//! first high peak of the autocorrelation after it has fallen to zero, if the peak repeats at twice the lag: wandering
//! noise has peaks, too, but they do not repeat. A periodogram would detect sinusoids better and short dips worse.
//!
//! Source: Box, Jenkins, Reinsel & Ljung 2015, 2.1 and 12.1 (autocorrelation of periodic series); the experiments in
//! `tests/coverage.rs` determine the thresholds.

use crate::mean::mean;

/// A wave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waves {
    /// Its length, in steps of the series.
    pub period: f64,
    /// Share of the variance that repeats, 0 … 1.
    pub strength: f64,
    /// How many periods the series contains.
    pub count: f64,
}

/// Shorter series cannot contain three waves that differ from noise.
const LENGTH_MIN: usize = 30;
/// Longer ones are thinned to this: the exact second within a wave of an hour does not matter.
const LENGTH_MAX: usize = 8192;
/// The shortest possible period.
const PERIOD_MIN: usize = 2;
/// Weaker waves are not reported.
const STRENGTH_MIN: f64 = 0.3;
/// Standard errors of an autocorrelation that chance does not reach at any of the examined lags and again at twice that
/// lag.
const ERRORS: f64 = 2.8;

/// The dominant wave of an evenly spaced series, after removing a linear trend. At least three periods are needed.
/// Cost: O(n²/2), n at most 8192.
pub fn waves(series: &[f64]) -> Option<Waves> {
    if series.len() < LENGTH_MIN {
        return None;
    }
    let thinning = series.len().div_ceil(LENGTH_MAX);
    let thinned: Vec<f64> = series.chunks_exact(thinning).map(mean).collect();
    let rest = FittedLine::through(&thinned).rest(&thinned);
    let n = rest.len();
    let spread: f64 = rest.iter().map(|x| x * x).sum();
    let scale = mean(&thinned).abs().max(f64::MIN_POSITIVE);
    // Rounding errors of a line.
    if spread <= n as f64 * (scale * 1e-9).powi(2) {
        return None;
    }
    let most = n * 2 / 3;
    let at = |(lag, common): (usize, f64)| common / spread * n as f64 / (n - lag) as f64;
    let correlation: Vec<f64> = products(&rest, most).into_iter().enumerate().map(at).collect();
    let fallen = correlation.iter().position(|r| *r <= 0.0)?;
    let first = PERIOD_MIN.max(fallen + 1);
    let is_peak = |lag: &usize| {
        let (low, high) = (lag - lag / 8 - 1, (lag + lag / 8 + 1).min(most));
        correlation[low..=high].iter().all(|r| *r <= correlation[*lag])
    };
    let peaks: Vec<usize> = (first..=n / 3).filter(is_peak).collect();
    let highest = peaks.iter().map(|lag| correlation[*lag]).fold(0.0, f64::max);
    let period = *peaks.iter().find(|lag| correlation[**lag] >= 0.8 * highest)?;
    let strength = correlation[period];
    let error = standard_error(&correlation[..fallen], n - period);
    let around = |lag: usize| (lag - period / 8 - 1)..=(lag + period / 8 + 1).min(most);
    let again = around(2 * period).max_by(|a, b| correlation[*a].total_cmp(&correlation[*b]))?;
    let trough = correlation[fallen..period].iter().copied().fold(0.0, f64::min);
    let both = (strength + correlation[again]) / 2.0;
    let repeats = correlation[again] >= 0.6 * strength;
    let stands_out = strength >= STRENGTH_MIN && strength - trough >= 0.35 && both >= ERRORS * error;
    (repeats && stands_out).then(|| {
        let period = (again as f64 / 2.0) * thinning as f64;
        Waves { period, strength: strength.min(1.0), count: series.len() as f64 / period }
    })
}

/// For each lag up to `most`: the sum of the products of all values with those that follow at this lag.
///
/// Several lags at a time: the additions of a single sum would wait for each other.
fn products(series: &[f64], most: usize) -> Vec<f64> {
    const LAGS: usize = 16;
    let of = |first: usize| {
        let mut sums = [0.0; LAGS];
        for (x, later) in series.iter().zip(series[first..].array_windows::<LAGS>()) {
            // Not `zip`, which calls a function for each value.
            for lag in 0..LAGS {
                sums[lag] += x * later[lag];
            }
        }
        // The last values have fewer followers.
        let done = (series.len() - first + 1).saturating_sub(LAGS);
        for (lag, sum) in (first..).zip(&mut sums) {
            let later = series.get(done + lag..).unwrap_or_default();
            series[done..].iter().zip(later).for_each(|(x, y)| *sum += x * y);
        }
        sums
    };
    let mut all: Vec<f64> = (0..=most).step_by(LAGS).flat_map(of).collect();
    all.truncate(most + 1);
    all
}

/// Standard error of an autocorrelation beyond those of `near`, of `pairs` pairs. Source: Bartlett 1946.
fn standard_error(near: &[f64], pairs: usize) -> f64 {
    let dependence: f64 = near.iter().skip(1).map(|r| 2.0 * r * r).sum();
    ((1.0 + dependence) / pairs as f64).sqrt()
}

/// The straight line of least squares.
pub(crate) struct FittedLine {
    /// In the middle of the series.
    pub(crate) level: f64,
    /// Per step.
    pub(crate) slope: f64,
}

impl FittedLine {
    pub(crate) fn through(series: &[f64]) -> FittedLine {
        let middle = (series.len() as f64 - 1.0) / 2.0;
        let level = mean(series);
        let products: f64 = series.iter().enumerate().map(|(t, x)| (t as f64 - middle) * (x - level)).sum();
        let squares: f64 = (0..series.len()).map(|t| (t as f64 - middle).powi(2)).sum();
        FittedLine { level, slope: if squares > 0.0 { products / squares } else { 0.0 } }
    }

    /// The residuals of the line.
    pub(crate) fn rest(&self, series: &[f64]) -> Vec<f64> {
        let middle = (series.len() as f64 - 1.0) / 2.0;
        series.iter().enumerate().map(|(t, x)| x - self.level - self.slope * (t as f64 - middle)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(length: usize, level: impl Fn(usize) -> f64) -> Option<Waves> {
        // Patternless noise of ±5, as in steady.rs.
        let noise = |t: usize| ((t * t) as f64 * 0.618_033_988_75 + t as f64 * 0.414_213_562_37).fract() * 10.0 - 5.0;
        waves(&(0..length).map(|t| level(t) + noise(t)).collect::<Vec<_>>())
    }

    #[track_caller]
    fn check(found: Option<Waves>, period: f64) {
        let waves = found.expect("a wave");
        assert!((waves.period - period).abs() <= period * 0.04, "{waves:?}");
    }

    #[test]
    fn waves_of_any_shape_have_their_period() {
        check(found(300, |t| 100.0 + 10.0 * (t as f64 * 0.2).sin()), 10.0 * std::f64::consts::PI);
        // A saw, and a dip of three seconds as a checkpoint makes it.
        check(found(240, |t| 100.0 + (t % 40) as f64), 40.0);
        check(found(600, |t| if t % 60 < 3 { 20.0 } else { 100.0 }), 60.0);
        check(found(90, |t| if t % 20 < 8 { 60.0 } else { 100.0 }), 20.0);
        // Every second value: not every fourth.
        check(found(120, |t| if t % 2 == 0 { 60.0 } else { 100.0 }), 2.0);
        check(found(120, |t| if t % 3 == 0 { 60.0 } else { 100.0 }), 3.0);
        // Above a trend, and longer than the thinning.
        check(found(300, |t| 100.0 + t as f64 + 15.0 * (t as f64 * 0.25).cos()), 8.0 * std::f64::consts::PI);
        check(found(20_000, |t| if t % 300 < 60 { 60.0 } else { 100.0 }), 300.0);
    }

    #[test]
    fn what_does_not_repeat_three_times_is_no_wave() {
        assert_eq!(found(300, |_| 100.0), None);
        assert_eq!(found(300, |t| 100.0 + t as f64), None);
        assert_eq!(found(300, |t| if (100..140).contains(&t) { 20.0 } else { 100.0 }), None);
        assert_eq!(found(100, |t| 100.0 + 20.0 * (t as f64 * std::f64::consts::TAU / 50.0).sin()), None);
        assert_eq!((waves(&[5.0; 100]), waves(&[0.0; 100]), waves(&[1.0, 2.0])), (None, None, None));
    }

    /// Without noise.
    fn dips(length: usize, period: usize, width: usize) -> Option<Waves> {
        waves(&(0..length).map(|t| if t % period < width { 60.0 } else { 100.0 }).collect::<Vec<_>>())
    }

    #[test]
    fn a_wave_is_counted_and_repeats_as_far_as_it_does() {
        let found = dips(200, 20, 5).unwrap();
        assert_eq!((found.period, found.count), (20.0, 10.0));
        assert!((0.95..=1.0).contains(&found.strength), "{found:?}");
        // Noise of a variance of 8.3 over a square wave of one of 96 is eight percent of both.
        let noisy = super::tests::found(1000, |t| if t % 50 < 20 { 80.0 } else { 100.0 }).unwrap();
        assert!((noisy.strength - 96.0 / 104.3).abs() < 0.03, "{noisy:?}");
        assert_eq!(noisy.count, 20.0);
        // Thinned by three: the length of the wave is that of the series.
        let long = dips(20_000, 300, 60).unwrap();
        assert!((long.period - 300.0).abs() < 5.0 && (long.count - 20_000.0 / long.period).abs() < 1e-9, "{long:?}");
    }

    #[test]
    fn three_waves_are_needed_and_thirty_values() {
        assert!(dips(60, 20, 5).is_some());
        assert_eq!(dips(59, 20, 5), None);
        assert!(dips(30, 3, 1).is_some());
        assert_eq!(dips(29, 3, 1), None);
    }

    #[test]
    fn weak_waves_are_not_worth_a_word() {
        // Noise has a variance of 8.3: a sine of amplitude a has a²/2 of all.
        let sine = |amplitude: f64| found(600, |t| 100.0 + amplitude * (t as f64 * std::f64::consts::TAU / 30.0).sin());
        assert!(sine(3.5).is_some_and(|found| (0.35..0.55).contains(&found.strength)), "{:?}", sine(3.5));
        assert_eq!(sine(2.0), None);
    }

    #[test]
    fn products_are_added_in_the_order_of_the_series() {
        let series: Vec<f64> = (0..61).map(|t| (t as f64).sin() * 1e3).collect();
        for length in [1, 2, 7, 8, 9, 61] {
            let series = &series[..length];
            let one = |lag: usize| series.iter().zip(&series[lag..]).fold(0.0, |sum, (a, b)| sum + a * b);
            assert_eq!(products(series, length - 1), (0..length).map(one).collect::<Vec<f64>>(), "{length}");
        }
    }

    #[test]
    fn the_line_of_least_squares_and_the_error_of_an_autocorrelation_are_those_of_the_books() {
        let line = FittedLine::through(&[1.0, 3.0, 5.0, 7.0]);
        assert_eq!((line.level, line.slope), (4.0, 2.0));
        assert_eq!(line.rest(&[1.0, 3.0, 5.0, 8.0]), [0.0, 0.0, 0.0, 1.0]);
        // By hand: products −1.5·−1.25 − 0.5·−0.25 + 0.5·−0.25 + 1.5·1.75, over 5.
        let bent = FittedLine::through(&[1.0, 2.0, 2.0, 4.0]);
        assert_eq!((bent.level, bent.slope), (2.25, 0.9));
        assert_eq!(FittedLine::through(&[7.0]).slope, 0.0);
        // Bartlett: (1 + 2 (0.5² + 0.25²)) / 100.
        assert!((standard_error(&[1.0, 0.5, 0.25], 100) - 0.016_25f64.sqrt()).abs() < 1e-12);
        assert_eq!(standard_error(&[1.0], 25), 0.2);
    }
}
