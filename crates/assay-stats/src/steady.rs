//! The steady part of a series, for which a mean is meaningful.
//!
//! A run warms up, then settles, or never does. `changes.rs` finds shifts of its level. Shifts in the first quarter are
//! a start-up phase, which is left out; so is a slow rise there, which has no shift (MSER-5). With a later shift, even
//! a possible one, there is no steady part. The rest is steady unless it has a trend, a dip or burst of a few values,
//! or waves too long to average over. If there are enough waves, they are averaged over before looking for shifts.
//!
//! That no change was found is not enough: a change that matters must also be ruled out (an equivalence test). For each
//! place the means before and after it are compared, and the interval of their difference must lie within the
//! tolerance. A few values at either end never suffice for that: they are named as not judged.
//!
//! Sources: those of `changes.rs` and `waves.rs`; White 1997 and White, Cobb & Spratt 2000 (MSER-5); Schuirmann 1987
//! (equivalence); the test of the slope is least squares with the spread of `spread.rs`.

use std::ops::Range;

use crate::changes::{SEGMENT_MIN, Shift, Shifts, shifts};
use crate::cosines::Cosines;
use crate::mean::{mean, median};
use crate::spread::Spread;
use crate::waves::{FittedLine, Waves, waves};

/// Shifts of a series, and whether it is steady after the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct Steadiness {
    /// Every significant shift of the level, in order.
    pub shifts: Vec<Shift>,
    /// Whether there is a steady part.
    pub steady: Steady,
    /// The waves of the whole series.
    pub waves: Option<Waves>,
}

/// Whether a series has a steady part.
#[derive(Clone, Debug, PartialEq)]
pub enum Steady {
    /// It is steady from an index to its end, as far as that can be judged.
    From {
        /// The first value after the start-up phase.
        start: usize,
        /// Where a change that matters is ruled out. The few values between `start` and it, and those after it, show no
        /// change, but are too few to rule one out.
        judged: Range<usize>,
    },
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
    /// A few values were far below or above the level.
    Excursion(Excursion),
    /// It has waves, but too few of them.
    Waves(Waves),
    /// No change was found, but one that matters would not have been either.
    Unclear {
        /// The smallest step that would have been noticed, as a share of the level.
        change: f64,
    },
    /// Neighbors are so similar that the series says hardly anything about its level.
    Dependent,
}

/// A few values far from the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Excursion {
    /// The first of them.
    pub at: usize,
    /// Their number.
    pub length: usize,
    /// Their mean.
    pub level: f64,
    /// The median of the steady part.
    pub usual: f64,
}

/// The changes that matter. Everything is judged relative to the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Steps of this size must be ruled out. Smaller ones are reported if they are found, trends from half of it.
    pub change: f64,
    /// Excursions: two or more successive values below this share of the level, or above the inverse of it.
    pub excursion: f64,
    /// A single value below this share of the level is an excursion, too.
    pub single: f64,
}

impl Tolerance {
    /// For rates per second.
    pub const THROUGHPUT: Tolerance = Tolerance { change: 0.1, excursion: 0.75, single: 0.1 };
    /// For mean response times, which vary more.
    pub const RESPONSE: Tolerance = Tolerance { change: 0.2, excursion: 2.0 / 3.0, single: 0.0 };
}

/// Shorter series show neither a start-up phase nor a trend.
pub const STEADY_LENGTH_MIN: usize = 30;
/// MSER-5's five.
const BATCH: usize = 5;
/// Batches that MSER never cuts into: with so few left, the error of their mean is small by chance.
const BATCHES_LEFT: usize = 5;
/// Confidence needed to leave out a start-up phase or report an excursion, which were chosen because they look
/// different.
const DIFFERENT_LEVEL: f64 = 0.9999;
/// A shift after this share of the series is not part of a start-up phase.
const BEGINNING_MAX: f64 = 0.25;
/// A trend needs this confidence …
const TREND_LEVEL: f64 = 0.99;
/// … and must change the mean from start to end by this share of the tolerated change.
const TREND_SHARE: f64 = 0.5;
/// Fewer waves than this cannot be averaged over.
const WAVES_MIN: f64 = 5.0;
/// A step is ruled out if the interval of this level, two-sided, excludes it: wrong for at most 1 % of such steps.
const RULED_OUT_LEVEL: f64 = 0.98;
/// At most this share of the series is not judged at either end.
const UNJUDGED_MAX: f64 = 0.25;
/// The correlation of fewer means of waves cannot be estimated: they count as independent.
const WAVES_DEPENDENT_MIN: usize = 30;

/// The course of an evenly spaced series.
pub fn course(series: &[f64], tolerance: &Tolerance) -> Steadiness {
    let whole = course_of_all(series, tolerance);
    // A series that rises to its level step by step has no shift, but a start-up phase.
    let start = if whole.shifts.is_empty() { beginning(series) } else { 0 };
    if start == 0 || start as f64 > series.len() as f64 * BEGINNING_MAX {
        return whole;
    }
    let Steadiness { shifts, steady, .. } = course_of_all(&series[start..], tolerance);
    let moved = |shift: Shift| Shift { at: shift.at + start, ..shift };
    Steadiness {
        shifts: shifts.into_iter().map(moved).collect(),
        steady: match steady {
            Steady::From { start: from, judged } => {
                Steady::From { start: from + start, judged: judged.start + start..judged.end + start }
            }
            Steady::Not(Unsteady::Doubtful(shift)) => Steady::Not(Unsteady::Doubtful(moved(shift))),
            Steady::Not(Unsteady::Excursion(found)) => {
                Steady::Not(Unsteady::Excursion(Excursion { at: found.at + start, ..found }))
            }
            not => not,
        },
        waves: whole.waves,
    }
}

fn course_of_all(series: &[f64], tolerance: &Tolerance) -> Steadiness {
    if series.len() < STEADY_LENGTH_MIN {
        return Steadiness { shifts: Vec::new(), steady: Steady::Not(Unsteady::TooShort), waves: None };
    }
    let waves = waves(series);
    if let Some(few) = waves.filter(|waves| waves.count < WAVES_MIN) {
        return Steadiness { shifts: Vec::new(), steady: Steady::Not(Unsteady::Waves(few)), waves };
    }
    let period = waves.map_or(1, |waves| waves.period.round() as usize);
    let Shifts { sure, possible } = match waves {
        // Outliers are searched among seven neighbors, which shorter waves would pass.
        Some(_) => shifts_between_waves(series, period),
        None => shifts(series, SEGMENT_MIN),
    };
    let steady = match steady(series, (&sure, &possible), period, tolerance) {
        Ok((start, judged)) => Steady::From { start, judged },
        Err(not) => Steady::Not(not),
    };
    Steadiness { shifts: sure, steady, waves }
}

/// Where the steady part starts, and what of it is judged. `period`: of waves to average over; 1: there are none.
fn steady(
    series: &[f64],
    (sure, possible): (&[Shift], &[Shift]),
    period: usize,
    tolerance: &Tolerance,
) -> Result<(usize, Range<usize>), Unsteady> {
    let is_beginning = |shift: &Shift| shift.at as f64 <= series.len() as f64 * BEGINNING_MAX;
    if !sure.iter().all(is_beginning) {
        return Err(Unsteady::Shifted);
    }
    let matters = |shift: &&Shift| shift.size().abs() >= tolerance.change && !is_beginning(shift);
    if let Some(shift) = possible.iter().find(matters) {
        return Err(Unsteady::Doubtful(*shift));
    }
    let start = sure.last().map_or(0, |shift| shift.at);
    let rest = &series[start..];
    if rest.len() < STEADY_LENGTH_MIN {
        return Err(Unsteady::TooShort);
    }
    if let Some(change) = trend(rest, TREND_SHARE * tolerance.change) {
        return Err(Unsteady::Trend { change });
    }
    if let Some(found) = excursion(rest, period > 1, tolerance) {
        return Err(Unsteady::Excursion(Excursion { at: found.at + start, ..found }));
    }
    let judged = match period {
        1 => judged(rest, Spread::of(rest, mean(rest), 1).map_err(|_| Unsteady::Dependent)?, tolerance.change)?,
        _ => {
            let means: Vec<f64> = rest.chunks_exact(period).map(mean).collect();
            let center = mean(&means);
            let spread = match means.len() {
                WAVES_DEPENDENT_MIN.. => Spread::of(&means, center, 1).map_err(|_| Unsteady::Dependent)?,
                _ => Spread::independent(&means, center),
            };
            let Range { start, end } = judged(&means, spread, tolerance.change)?;
            // The rest of a wave at the end is judged with it.
            start * period..if end == means.len() { rest.len() } else { end * period }
        }
    };
    Ok((start, start + judged.start..start + judged.end))
}

/// The part of a series without shifts in which a step of `change` is ruled out at every place, leaving out as little
/// as possible at both ends.
fn judged(series: &[f64], spread: Spread, change: f64) -> Result<Range<usize>, Unsteady> {
    let length = series.len();
    let mut sums = vec![0.0; length + 1];
    series.iter().enumerate().for_each(|(t, x)| sums[t + 1] = sums[t] + x);
    // The difference of the means before and after a place, and the mean before.
    let step = |at: usize| {
        let before = sums[at] / at as f64;
        (((sums[length] - sums[at]) / (length - at) as f64 - before).abs(), before.abs())
    };
    let is_ruled_out = |at: &usize| {
        let (difference, before) = step(*at);
        let room = change * before - difference;
        spread.stays_within(room, RULED_OUT_LEVEL, |process| process.error_of_step(*at, length - at))
    };
    let most = (length as f64 * UNJUDGED_MAX) as usize;
    let places = places(length);
    let unclear: Vec<usize> = places.into_iter().filter(|at| !is_ruled_out(at)).collect();
    if unclear.iter().all(|at| *at <= most || *at >= length - most) {
        let start = unclear.iter().copied().filter(|at| *at <= most).max().unwrap_or(0);
        let end = unclear.iter().copied().find(|at| *at >= length - most).unwrap_or(length);
        return Ok(start..end);
    }
    let bound = |at: &usize| {
        let (difference, before) = step(*at);
        let reach = spread.reach(RULED_OUT_LEVEL, |process| process.error_of_step(*at, length - at));
        (difference + reach) / before
    };
    let inside = unclear.iter().filter(|at| **at > most && **at < length - most);
    Err(Unsteady::Unclear { change: inside.map(bound).fold(0.0, f64::max) })
}

/// The places at which a step of a series is looked for: all near both ends, then at distances that grow by a
/// twentieth, which changes the mean of a part by less than that share of the step.
fn places(length: usize) -> Vec<usize> {
    let mut places = Vec::new();
    let mut distance = 1;
    while 2 * distance <= length {
        places.extend([distance, length - distance]);
        distance += distance.div_ceil(20);
    }
    places.sort_unstable();
    places.dedup();
    places
}

/// The first excursion; single values and, unless there are waves, which have their own, longer ones that chance does
/// not explain.
fn excursion(series: &[f64], has_waves: bool, tolerance: &Tolerance) -> Option<Excursion> {
    let usual = median(series);
    let (low, high) = (usual * tolerance.excursion, usual / tolerance.excursion);
    let side = |x: &f64| if *x < low { -1 } else { i32::from(*x > high) };
    let (mut at, mut known) = (0, None);
    for run in series.chunk_by(|a, b| side(a) == side(b)) {
        let found = Excursion { at, length: run.len(), level: mean(run), usual };
        at += run.len();
        let is_single = run.iter().any(|x| *x < usual * tolerance.single);
        if is_single || !has_waves && side(&run[0]) != 0 && stands_out(series, &found, &mut known) {
            return Some(found);
        }
    }
    None
}

/// Whether an excursion of several values is more than chance, judged by the others. `known`: the cosines of the others
/// of the last one.
fn stands_out(series: &[f64], found: &Excursion, known: &mut Option<Cosines>) -> bool {
    if found.length < 2 {
        return false;
    }
    let others = [&series[..found.at], &series[found.at + found.length..]].concat();
    let center = mean(&others);
    let Ok(spread) = Spread::of_similar(&others, center, 1, known) else { return false };
    let chance =
        |reach: f64| spread.stays_within(reach, DIFFERENT_LEVEL, |process| process.error_of_mean(found.length));
    chance((found.level - center).abs())
}

/// How many values to leave out at the start so that the error of the mean of the rest is smallest; none if they do not
/// differ significantly from the rest.
fn beginning(series: &[f64]) -> usize {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    // The squares of what is left around its mean, from the end on (Welford 1962).
    let (mut center, mut squares) = (0.0, 0.0);
    let mut errors: Vec<f64> = (1..)
        .zip(batches.iter().rev())
        .map(|(left, batch)| {
            let distance = batch - center;
            center += distance / f64::from(left);
            squares += distance * (batch - center);
            squares / f64::from(left).powi(2)
        })
        .collect();
    errors.reverse();
    let cuts = 0..=batches.len().saturating_sub(BATCHES_LEFT);
    let errors = errors.into_iter().zip(cuts);
    let cut = errors.min_by(|(one, _), (other, _)| one.total_cmp(other)).map_or(0, |(_, cut)| cut);
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

/// Shifts between the means of whole waves.
fn shifts_between_waves(series: &[f64], period: usize) -> Shifts {
    /// Shortest level, in waves.
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
fn trend(series: &[f64], change_min: f64) -> Option<f64> {
    let line = FittedLine::through(series);
    let length = series.len() as f64;
    let change = line.slope * length / line.level;
    if change.is_nan() || change.abs() < change_min {
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

    fn of(series: &[f64]) -> Steadiness {
        course(series, &Tolerance::THROUGHPUT)
    }

    fn found(series: &[f64]) -> Steady {
        of(series).steady
    }

    /// Where the steady part starts, if there is one.
    fn start(series: &[f64]) -> Option<usize> {
        match found(series) {
            Steady::From { start, .. } => Some(start),
            Steady::Not(_) => None,
        }
    }

    #[test]
    fn a_flat_series_is_steady_from_the_start() {
        assert_eq!(start(&series(120, |_| 100.0)), Some(0));
        assert_eq!(found(&[100.0; 60]), Steady::From { start: 0, judged: 0..60 });
        assert_eq!(found(&[0.0; 60]), Steady::From { start: 0, judged: 0..60 });
    }

    #[test]
    fn a_beginning_that_differs_is_left_out() {
        let settling = series(120, |t| if t < 20.0 { 40.0 + 3.0 * t } else { 100.0 });
        let Some(from) = start(&settling) else { panic!("{:?}", found(&settling)) };
        assert!((15..=25).contains(&from), "{from}");
        let burst = series(120, |t| if t < 10.0 { 200.0 } else { 100.0 });
        let Some(from) = start(&burst) else { panic!("{:?}", found(&burst)) };
        assert!((10..=20).contains(&from), "{from}");
    }

    #[test]
    fn a_trend_is_not_steady_and_its_size_is_told() {
        let Steady::Not(Unsteady::Trend { change }) = found(&series(120, |t| 100.0 - t / 6.0)) else { panic!() };
        assert!((change + 20.0 / 90.0).abs() < 0.03, "{change}");
        // One percent is not worth reporting.
        assert_eq!(start(&series(600, |t| 100.0 + t / 600.0)), Some(0));
    }

    #[test]
    fn a_series_whose_level_shifts_has_no_steady_part_and_every_shift_is_named() {
        for at in [36, 60, 72, 84, 96, 108] {
            let found = of(&series(120, |t| if t < at as f64 { 1000.0 } else { 600.0 }));
            assert_eq!(found.steady, Steady::Not(Unsteady::Shifted), "{at}");
            assert_eq!(found.shifts.iter().map(|shift| shift.at).collect::<Vec<_>>(), [at]);
            assert!((found.shifts[0].size() + 0.4).abs() < 0.01, "{found:?}");
        }
        let twice = of(&series(900, |t| if (300.0..600.0).contains(&t) { 700.0 } else { 1000.0 }));
        assert_eq!(twice.shifts.iter().map(|shift| shift.at).collect::<Vec<_>>(), [300, 600]);
    }

    #[test]
    fn waves_do_not_hide_a_shift() {
        let found = of(&series(300, |t| {
            let dip = if t % 20.0 < 3.0 { 0.3 } else { 1.0 };
            dip * if t < 200.0 { 1000.0 } else { 700.0 }
        }));
        assert_eq!(found.steady, Steady::Not(Unsteady::Shifted));
        assert!(matches!(found.shifts[..], [Shift { at: 180..=220, .. }]), "{found:?}");
    }

    #[test]
    fn what_the_last_seconds_cannot_show_is_not_judged() {
        let end = |at: f64, size: f64| series(120, move |t| 1000.0 * if t < at { 1.0 } else { 1.0 - size });
        let judged = |series: &[f64]| match found(series) {
            Steady::From { start: 0, judged } => judged.end,
            other => panic!("{other:?}"),
        };
        assert_eq!(judged(&end(120.0, 0.0)), 120);
        // A tenth less in the last seconds, which are too few for a level.
        for seconds in [1, 2, 3] {
            let at = 120 - seconds;
            assert!(judged(&end(at as f64, 0.1)) <= at, "{seconds}");
            // Half of it is seen, but a single second may be chance.
            match (seconds, found(&end(at as f64, 0.5))) {
                (1, Steady::From { judged, .. }) => assert!(judged.end <= at),
                (2.., Steady::Not(Unsteady::Excursion(_) | Unsteady::Shifted)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_short_dip_or_burst_is_seen_wherever_it_is_and_chance_is_not_one() {
        for (size, length) in [(0.5, 2), (0.5, 3), (0.6, 4), (1.5, 2), (2.0, 3)] {
            for at in [2, 60, 100] {
                let inside = |t: f64| (at as f64..(at + length) as f64).contains(&t);
                let found = found(&series(120, |t| if inside(t) { 1000.0 * size } else { 1000.0 }));
                let is_seen = match &found {
                    Steady::Not(Unsteady::Excursion(found)) => (found.at, found.length) == (at, length),
                    // One that is almost long enough for a level.
                    Steady::Not(Unsteady::Shifted) => true,
                    // A start-up phase is left out.
                    Steady::From { start, .. } => at == 2 && *start >= at + length,
                    Steady::Not(_) => false,
                };
                assert!(is_seen, "{size} {length} {at}: {found:?}");
            }
        }
        // One second alone, unless hardly anything was done in it.
        let one = |size: f64| found(&series(120, |t| if t == 60.0 { 1000.0 * size } else { 1000.0 }));
        assert!(matches!(one(0.4), Steady::From { .. }));
        assert!(matches!(one(0.05), Steady::Not(Unsteady::Excursion(Excursion { at: 60, length: 1, .. }))));
    }

    #[test]
    fn a_series_too_noisy_to_show_a_tenth_is_unclear() {
        let noisy = |factor: f64| (0..40).map(|t| 100.0 + factor * noise(t)).collect::<Vec<f64>>();
        assert!(matches!(found(&noisy(1.0)), Steady::From { .. }), "{:?}", found(&noisy(1.0)));
        let Steady::Not(Unsteady::Unclear { change }) = found(&noisy(4.0)) else { panic!("{:?}", found(&noisy(4.0))) };
        assert!((0.1..0.4).contains(&change), "{change}");
    }

    #[test]
    fn few_long_waves_are_not_steady_and_many_short_ones_are() {
        let wave = |period: f64| move |t: f64| 100.0 + 20.0 * (std::f64::consts::TAU * t / period).sin();
        let Steady::Not(Unsteady::Waves(waves)) = found(&series(120, wave(30.0))) else {
            panic!("{:?}", found(&series(120, wave(30.0))))
        };
        assert!((waves.period - 30.0).abs() < 1.5, "{waves:?}");
        assert_eq!(start(&series(300, wave(30.0))), Some(0));
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
        let at = |at: f64| series(200, |t| if t < at { 600.0 } else { 1000.0 });
        assert_eq!((start(&at(50.0)), found(&at(52.0))), (Some(50), Steady::Not(Unsteady::Shifted)));
        // The rest must be long enough to be called steady.
        let rest = |length: usize| series(length, |t| if t < 9.0 { 600.0 } else { 1000.0 });
        assert_eq!((start(&rest(39)), found(&rest(38))), (Some(9), Steady::Not(Unsteady::TooShort)));
    }

    #[test]
    fn shifts_after_a_slow_beginning_count_from_the_start_of_the_series() {
        let level = |t: f64| match t {
            t if t < 30.0 => 700.0 + 10.0 * t,
            t if t < 200.0 => 1000.0,
            _ => 600.0,
        };
        let found = of(&series(300, level));
        assert_eq!(found.steady, Steady::Not(Unsteady::Shifted));
        assert_eq!(found.shifts.last().map(|shift| shift.at), Some(200), "{found:?}");
        let settled = of(&series(300, |t| level(t.min(199.0))));
        assert!(matches!(settled.steady, Steady::From { start: 20..=35, .. }), "{settled:?}");
    }

    #[test]
    fn a_trend_is_told_in_both_directions_by_its_share_of_the_mean() {
        let of = |per_step: f64| trend(&series(200, |t| 1000.0 + per_step * (t - 99.5)), 0.05);
        for (per_step, change) in [(1.0, 0.2), (-1.0, -0.2), (0.3, 0.06), (-0.3, -0.06)] {
            assert!(of(per_step).is_some_and(|found| (found - change).abs() < 0.005), "{per_step}: {:?}", of(per_step));
        }
        // Sure, but too small to matter.
        assert_eq!((of(0.2), of(-0.2)), (None, None));
        assert_eq!(trend(&series(200, |_| 0.0), 0.05), None);
    }

    #[test]
    fn shifts_between_waves_lie_at_whole_waves() {
        let series = series(400, |t| (if t % 20.0 < 5.0 { 500.0 } else { 1000.0 }) * if t < 240.0 { 1.0 } else { 0.6 });
        let found = shifts_between_waves(&series, 20);
        assert_eq!(found.sure.iter().map(|shift| shift.at).collect::<Vec<_>>(), [240]);
        assert!((found.sure[0].size() + 0.4).abs() < 0.01, "{:?}", found.sure);
    }
}
