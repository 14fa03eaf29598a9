//! The steady part of a series, for which a mean is meaningful.
//!
//! A run warms up, then settles, or never does. `changes.rs` finds shifts of its level. Shifts in the first quarter are
//! a start-up phase, which is left out; so is a slow rise there, which has no shift (MSER-5). With a later shift, even
//! a possible one, there is no steady part. The rest is steady unless it has a trend, or waves too long to average
//! over. If there are enough waves, they are averaged over before looking for shifts.
//!
//! Sources: those of `changes.rs` and `waves.rs`; White 1997 and White, Cobb & Spratt 2000 (MSER-5); the test of the
//! slope is least squares with the spread of `spread.rs`.

use crate::changes::{SEGMENT_MIN, Shift, Shifts, shifts};
use crate::mean::mean;
use crate::spread::Spread;
use crate::waves::{Line, Waves, waves};

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Every significant shift of the level, in order.
    pub shifts: Vec<Shift>,
    /// Whether there is a steady part.
    pub steady: Steady,
}

/// Whether a series has a steady part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steady {
    /// It is steady from this index to its end.
    From(usize),
    /// It has none, or that is unknown.
    Not(Unsteady),
}

/// Why a series has no steady part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unsteady {
    /// Fewer than `STEADY_LENGTH_MIN` values, or fewer are left after the start-up phase.
    TooShort,
    /// The level shifted after the first quarter.
    Shifted,
    /// The level may have shifted here, by enough to matter, or that was chance.
    Doubtful(Shift),
    /// It rises or falls all the time.
    Trend {
        /// From start to end, as a share of the mean; negative when falling.
        change: f64,
    },
    /// It has waves, but too few of them.
    Waves(Waves),
}

/// Shorter series show neither a start-up phase nor a trend.
pub const STEADY_LENGTH_MIN: usize = 30;
/// MSER-5's five.
const BATCH: usize = 5;
/// Batches that MSER never cuts into: with so few left, the error of their mean is small by chance.
const BATCHES_LEFT: usize = 5;
/// Confidence needed to leave out a start-up phase, which was chosen because it looks different.
const DIFFERENT_LEVEL: f64 = 0.9999;
/// A shift after this share of the series is not part of a start-up phase.
const BEGINNING_MAX: f64 = 0.25;
/// A shift by this share of the larger level matters even if it may be chance.
const DOUBT_MIN: f64 = 0.06;
/// A trend needs this confidence …
const TREND_LEVEL: f64 = 0.99;
/// … and must change the mean by this share from start to end.
const TREND_CHANGE: f64 = 0.05;
/// Fewer waves than this cannot be averaged over.
const WAVES_MIN: f64 = 5.0;

/// The course of an evenly spaced series, usually of rates per second.
pub fn course(series: &[f64]) -> Course {
    let whole = course_of_all(series);
    // A series that rises to its level step by step has no shift, but a start-up phase.
    let start = if whole.shifts.is_empty() { beginning(series) } else { 0 };
    if start == 0 || start as f64 > series.len() as f64 * BEGINNING_MAX {
        return whole;
    }
    let Course { shifts, steady } = course_of_all(&series[start..]);
    let moved = |shift: Shift| Shift { at: shift.at + start, ..shift };
    Course {
        shifts: shifts.into_iter().map(moved).collect(),
        steady: match steady {
            Steady::From(from) => Steady::From(from + start),
            Steady::Not(Unsteady::Doubtful(shift)) => Steady::Not(Unsteady::Doubtful(moved(shift))),
            not => not,
        },
    }
}

fn course_of_all(series: &[f64]) -> Course {
    if series.len() < STEADY_LENGTH_MIN {
        return Course { shifts: Vec::new(), steady: Steady::Not(Unsteady::TooShort) };
    }
    let waves = waves(series);
    if let Some(waves) = waves.filter(|waves| waves.count < WAVES_MIN) {
        return Course { shifts: Vec::new(), steady: Steady::Not(Unsteady::Waves(waves)) };
    }
    let Shifts { sure, possible } = match waves {
        // Outliers are searched among seven neighbors, which shorter waves would pass.
        Some(waves) => shifts_between_waves(series, waves.period.round() as usize),
        None => shifts(series, SEGMENT_MIN),
    };
    let steady = steady(series, &sure, &possible);
    Course { shifts: sure, steady }
}

fn steady(series: &[f64], sure: &[Shift], possible: &[Shift]) -> Steady {
    let is_beginning = |shift: &Shift| shift.at as f64 <= series.len() as f64 * BEGINNING_MAX;
    if !sure.iter().all(is_beginning) {
        return Steady::Not(Unsteady::Shifted);
    }
    let matters = |shift: &&Shift| shift.size().abs() >= DOUBT_MIN && !is_beginning(shift);
    if let Some(shift) = possible.iter().find(matters) {
        return Steady::Not(Unsteady::Doubtful(*shift));
    }
    let start = sure.last().map_or(0, |shift| shift.at);
    let rest = &series[start..];
    if rest.len() < STEADY_LENGTH_MIN {
        return Steady::Not(Unsteady::TooShort);
    }
    match trend(rest) {
        Some(change) => Steady::Not(Unsteady::Trend { change }),
        None => Steady::From(start),
    }
}

/// How many values to leave out at the start so that the error of the mean of the rest is smallest; none if they do not
/// differ significantly from the rest.
fn beginning(series: &[f64]) -> usize {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    let error = |cut: usize| {
        let (rest, left) = (&batches[cut..], (batches.len() - cut) as f64);
        let center = mean(rest);
        rest.iter().map(|x| (x - center).powi(2)).sum::<f64>() / (left * left)
    };
    let cuts = 0..=batches.len().saturating_sub(BATCHES_LEFT);
    let cut = cuts.min_by(|a, b| error(*a).total_cmp(&error(*b))).unwrap_or(0);
    let (before, rest) = series.split_at(cut * BATCH);
    if before.is_empty() {
        return 0;
    }
    // If the rest is too short or too correlated to know its own mean, nothing can differ from it.
    let center = mean(rest);
    let Ok(spread) = Spread::of(rest, center, 1) else { return 0 };
    let reach = spread.reach(DIFFERENT_LEVEL, |process| process.error_of_mean(before.len()));
    let differs = (mean(before) - center).abs() > reach;
    if differs { before.len() } else { 0 }
}

/// Of the means of whole waves.
fn shifts_between_waves(series: &[f64], period: usize) -> Shifts {
    /// Of waves.
    const LEVEL_MIN: usize = 2;
    let means: Vec<f64> = series.chunks_exact(period).map(mean).collect();
    let of_series = |shift: Shift| Shift { at: shift.at * period, ..shift };
    let found = shifts(&means, LEVEL_MIN);
    Shifts {
        sure: found.sure.into_iter().map(of_series).collect(),
        possible: found.possible.into_iter().map(of_series).collect(),
    }
}

/// The change from start to end as a share of the mean, if it is significant and large enough to matter.
fn trend(series: &[f64]) -> Option<f64> {
    let line = Line::through(series);
    let length = series.len() as f64;
    let change = line.slope * length / line.level;
    if change.is_nan() || change.abs() < TREND_CHANGE {
        return None;
    }
    let rest = line.rest(series);
    // Removing the line removed most of the lowest cosine, whose power is that of the slope's error.
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

    fn found(series: &[f64]) -> Steady {
        course(series).steady
    }

    #[test]
    fn a_flat_series_is_steady_from_the_start() {
        assert_eq!(found(&series(120, |_| 100.0)), Steady::From(0));
        assert_eq!(found(&[100.0; 60]), Steady::From(0));
        assert_eq!(found(&[0.0; 60]), Steady::From(0));
    }

    #[test]
    fn a_beginning_that_differs_is_left_out() {
        let settling = series(120, |t| if t < 20.0 { 40.0 + 3.0 * t } else { 100.0 });
        let Steady::From(start) = found(&settling) else { panic!("{:?}", found(&settling)) };
        assert!((15..=25).contains(&start), "{start}");
        let burst = series(120, |t| if t < 10.0 { 200.0 } else { 100.0 });
        let Steady::From(start) = found(&burst) else { panic!("{:?}", found(&burst)) };
        assert!((10..=20).contains(&start), "{start}");
    }

    #[test]
    fn a_trend_is_not_steady_and_its_size_is_told() {
        let Steady::Not(Unsteady::Trend { change }) = found(&series(120, |t| 100.0 - t / 6.0)) else { panic!() };
        assert!((change + 20.0 / 90.0).abs() < 0.03, "{change}");
        // One percent is not worth reporting.
        assert_eq!(found(&series(600, |t| 100.0 + t / 600.0)), Steady::From(0));
    }

    #[test]
    fn a_series_whose_level_shifts_has_no_steady_part_and_every_shift_is_named() {
        for at in [36, 60, 72, 84, 96, 108] {
            let found = course(&series(120, |t| if t < at as f64 { 1000.0 } else { 600.0 }));
            assert_eq!(found.steady, Steady::Not(Unsteady::Shifted), "{at}");
            assert_eq!(found.shifts.iter().map(|shift| shift.at).collect::<Vec<_>>(), [at]);
            assert!((found.shifts[0].size() + 0.4).abs() < 0.01, "{found:?}");
        }
        let twice = course(&series(900, |t| if (300.0..600.0).contains(&t) { 700.0 } else { 1000.0 }));
        assert_eq!(twice.shifts.iter().map(|shift| shift.at).collect::<Vec<_>>(), [300, 600]);
    }

    #[test]
    fn waves_do_not_hide_a_shift() {
        let found = course(&series(300, |t| {
            let dip = if t % 20.0 < 3.0 { 0.3 } else { 1.0 };
            dip * if t < 200.0 { 1000.0 } else { 700.0 }
        }));
        assert_eq!(found.steady, Steady::Not(Unsteady::Shifted));
        assert!(matches!(found.shifts[..], [Shift { at: 180..=220, .. }]), "{found:?}");
    }

    #[test]
    fn few_long_waves_are_not_steady_and_many_short_ones_are() {
        let wave = |period: f64| move |t: f64| 100.0 + 20.0 * (std::f64::consts::TAU * t / period).sin();
        let Steady::Not(Unsteady::Waves(waves)) = found(&series(120, wave(30.0))) else {
            panic!("{:?}", found(&series(120, wave(30.0))))
        };
        assert!((waves.period - 30.0).abs() < 1.5, "{waves:?}");
        assert_eq!(found(&series(300, wave(30.0))), Steady::From(0));
    }

    #[test]
    fn a_short_series_is_told_to_be_short() {
        assert_eq!(found(&[100.0; 29]), Steady::Not(Unsteady::TooShort));
        assert_eq!(found(&[]), Steady::Not(Unsteady::TooShort));
    }

    #[test]
    fn a_beginning_is_where_the_error_of_the_rest_is_least_in_whole_batches() {
        let settling = |at: usize| -> Vec<f64> { (0..120).map(|t| if t < at { 40.0 } else { 100.0 }).collect() };
        // Half a batch is left out whole.
        for (at, cut) in [(10, 10), (20, 20), (25, 25), (12, 15)] {
            assert_eq!(beginning(&settling(at)), cut, "{at}");
        }
        assert_eq!(beginning(&series(120, |_| 100.0)), 0);
        assert_eq!(beginning(&[]), 0);
    }

    #[test]
    fn a_shift_in_the_first_quarter_is_a_beginning_and_later_it_is_a_shift() {
        let at = |at: f64| found(&series(200, |t| if t < at { 600.0 } else { 1000.0 }));
        assert_eq!((at(50.0), at(52.0)), (Steady::From(50), Steady::Not(Unsteady::Shifted)));
        // What is left must be long enough to be called steady.
        let rest = |length: usize| found(&series(length, |t| if t < 9.0 { 600.0 } else { 1000.0 }));
        assert_eq!((rest(39), rest(38)), (Steady::From(9), Steady::Not(Unsteady::TooShort)));
    }

    #[test]
    fn shifts_after_a_slow_beginning_count_from_the_start_of_the_series() {
        let level = |t: f64| match t {
            t if t < 30.0 => 700.0 + 10.0 * t,
            t if t < 200.0 => 1000.0,
            _ => 600.0,
        };
        let found = course(&series(300, level));
        assert_eq!(found.steady, Steady::Not(Unsteady::Shifted));
        assert_eq!(found.shifts.last().map(|shift| shift.at), Some(200), "{found:?}");
        let settled = course(&series(300, |t| level(t.min(199.0))));
        assert!(matches!(settled.steady, Steady::From(20..=35)), "{settled:?}");
    }

    #[test]
    fn a_trend_is_told_in_both_directions_by_its_share_of_the_mean() {
        let of = |per_step: f64| trend(&series(200, |t| 1000.0 + per_step * (t - 99.5)));
        for (per_step, change) in [(1.0, 0.2), (-1.0, -0.2), (0.3, 0.06), (-0.3, -0.06)] {
            assert!(of(per_step).is_some_and(|found| (found - change).abs() < 0.005), "{per_step}: {:?}", of(per_step));
        }
        // Sure, but too small to matter.
        assert_eq!((of(0.2), of(-0.2)), (None, None));
        assert_eq!(trend(&series(200, |_| 0.0)), None);
    }

    #[test]
    fn shifts_between_waves_lie_at_whole_waves() {
        let series = series(400, |t| (if t % 20.0 < 5.0 { 500.0 } else { 1000.0 }) * if t < 240.0 { 1.0 } else { 0.6 });
        let found = shifts_between_waves(&series, 20);
        assert_eq!(found.sure.iter().map(|shift| shift.at).collect::<Vec<_>>(), [240]);
        assert!((found.sure[0].size() + 0.4).abs() < 0.01, "{:?}", found.sure);
    }
}
