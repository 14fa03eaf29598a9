//! How many transactions are due per second, as a function of time.
//!
//! Pure: a rate knows how many transactions are due before an instant, and when each one is due. It is linear between
//! points; two points at one instant are a step.

use std::sync::Arc;

use assay_seam::Nanos;

/// The most transactions per second that can be due. A worker passes every arrival on its way to the next, including
/// those that will never start: some 20 ns each, a fifth of its time at this rate.
pub const RATE_MAX: f64 = 1e7;

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    points: Arc<[RatePoint]>,
    /// In order, the first at 0; the last piece has no end.
    pieces: Arc<[RatePiece]>,
}

/// The rate at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatePoint {
    /// Since the start.
    pub at: Nanos,
    /// Transactions per second over all sessions. 0 <= per_s <= RATE_MAX
    pub per_s: f64,
}

/// A linear piece.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RatePiece {
    /// In seconds since the start.
    from: f64,
    /// Per second, at its start.
    rate: f64,
    /// Change of the rate, per second and second.
    slope: f64,
    /// How many are due before it starts.
    before: f64,
}

/// Invalid points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRate {
    /// There are no points.
    #[error("a rate needs at least one point")]
    Empty,
    /// A point lies before its predecessor.
    #[error("the instants of a rate must not go back")]
    NotInOrder,
    /// A rate is out of range, or all rates are zero.
    #[error("rates must be from 0 to {RATE_MAX}, and not all of them 0")]
    OutOfRange,
}

impl From<f64> for Rate {
    /// A constant rate. 0 < per_s
    fn from(per_s: f64) -> Rate {
        let piece = RatePiece { from: 0.0, rate: per_s, slope: 0.0, before: 0.0 };
        Rate { points: [RatePoint { at: Nanos::ZERO, per_s }].into(), pieces: [piece].into() }
    }
}

impl Rate {
    /// Linear between points; constant before the first and after the last.
    pub fn new(points: &[RatePoint]) -> Result<Rate, BadRate> {
        let first = points.first().ok_or(BadRate::Empty)?;
        if !points.is_sorted_by_key(|point| point.at) {
            return Err(BadRate::NotInOrder);
        }
        let possible = |point: &RatePoint| (0.0..=RATE_MAX).contains(&point.per_s);
        if !points.iter().all(possible) || points.iter().all(|point| point.per_s == 0.0) {
            return Err(BadRate::OutOfRange);
        }
        let mut pieces: Vec<RatePiece> = Vec::new();
        let mut before = 0.0;
        if first.at > Nanos::ZERO {
            pieces.push(RatePiece { from: 0.0, rate: first.per_s, slope: 0.0, before });
            before += first.per_s * first.at.as_secs_f64();
        }
        for pair in points.windows(2) {
            let (from, to) = (pair[0].at.as_secs_f64(), pair[1].at.as_secs_f64());
            if to > from {
                let slope = (pair[1].per_s - pair[0].per_s) / (to - from);
                pieces.push(RatePiece { from, rate: pair[0].per_s, slope, before });
                before += (pair[0].per_s + pair[1].per_s) / 2.0 * (to - from);
            }
        }
        let last = points[points.len() - 1];
        pieces.push(RatePiece { from: last.at.as_secs_f64(), rate: last.per_s, slope: 0.0, before });
        Ok(Rate { points: points.into(), pieces: pieces.into() })
    }

    /// The points it was made from.
    pub fn points(&self) -> &[RatePoint] {
        &self.points
    }

    /// This rate, delayed by `lead`; until then it keeps its first value.
    pub fn after(&self, lead: Nanos) -> Rate {
        if lead == Nanos::ZERO {
            return self.clone();
        }
        let later: Vec<RatePoint> =
            self.points.iter().map(|point| RatePoint { at: point.at + lead, per_s: point.per_s }).collect();
        Rate::new(&later).unwrap_or_else(|_| self.clone())
    }

    /// Average transactions per second over the first `time`; without a time, over its points. Above 0.
    pub fn mean(&self, time: Option<Nanos>) -> f64 {
        let last = self.points[self.points.len() - 1];
        let seconds = time.unwrap_or(last.at).as_secs_f64();
        let mean =
            if seconds > 0.0 && self.points.len() > 1 { self.count_until(seconds) / seconds } else { last.per_s };
        if mean > 0.0 { mean } else { self.points.iter().map(|point| point.per_s).fold(0.0, f64::max) }
    }

    /// How many are due in the first `seconds`.
    pub(crate) fn count_until(&self, seconds: f64) -> f64 {
        let at = self.pieces.partition_point(|piece| piece.from <= seconds).max(1) - 1;
        let piece = &self.pieces[at];
        let within = seconds - piece.from;
        piece.before + within * (piece.rate + piece.slope * within / 2.0)
    }

    /// When number `count` is due, counted from 0, in seconds; `None`: never. count >= 0
    pub(crate) fn due(&self, count: f64) -> Option<f64> {
        // While the rate is 0, the next one waits for the end of that.
        let at = self.pieces.partition_point(|piece| piece.before <= count).max(1) - 1;
        let RatePiece { from, rate, slope, before } = self.pieces[at];
        let within = count - before;
        if slope == 0.0 {
            return if rate > 0.0 { Some(from + within / rate) } else { None };
        }
        if within == 0.0 {
            return Some(from);
        }
        // Solves rate · t + slope · t² / 2 = within, in the form that loses no digits.
        let root = (rate * rate + 2.0 * slope * within).max(0.0).sqrt();
        Some(from + 2.0 * within / (rate + root))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(points: &[(u64, f64)]) -> Rate {
        let points: Vec<RatePoint> =
            points.iter().map(|(seconds, per_s)| RatePoint { at: Nanos::from_secs(*seconds), per_s: *per_s }).collect();
        Rate::new(&points).unwrap()
    }

    #[test]
    fn a_ramp_has_its_area_and_each_arrival_its_place_in_it() {
        let ramp = rate(&[(0, 100.0), (60, 2000.0), (120, 500.0)]);
        assert_eq!(ramp.count_until(60.0), 63_000.0);
        assert_eq!(ramp.count_until(120.0), 138_000.0);
        assert_eq!(ramp.count_until(130.0), 143_000.0);
        for count in [0.0, 1.0, 63_000.0, 100_000.0, 138_000.0, 1e6] {
            let due = ramp.due(count).unwrap();
            assert!((ramp.count_until(due) - count).abs() < 1e-6, "{count}: {due}");
        }
        assert_eq!(ramp.due(143_000.0), Some(130.0));
    }

    #[test]
    fn two_points_at_one_instant_are_a_step() {
        let steps = rate(&[(0, 100.0), (10, 100.0), (10, 300.0), (20, 300.0), (20, 0.0)]);
        assert_eq!(
            [5.0, 10.0, 15.0, 20.0, 99.0].map(|at| steps.count_until(at)),
            [500.0, 1000.0, 2500.0, 4000.0, 4000.0]
        );
        assert_eq!([999.0, 1300.0].map(|count| steps.due(count)), [Some(9.99), Some(11.0)]);
        assert_eq!(steps.due(4001.0), None);
    }

    #[test]
    fn while_the_rate_is_zero_nothing_is_due() {
        let late = rate(&[(5, 0.0), (5, 10.0)]);
        assert_eq!([0.0, 10.0].map(|count| late.due(count)), [Some(5.0), Some(6.0)]);
        let ramp = rate(&[(0, 0.0), (10, 10.0)]);
        assert_eq!([0.0, 50.0].map(|count| ramp.due(count)), [Some(0.0), Some(10.0)]);
    }

    #[test]
    fn a_rate_that_begins_later_is_as_at_its_start_until_then() {
        let ramp = rate(&[(0, 100.0), (10, 200.0)]).after(Nanos::from_secs(5));
        assert_eq!([5.0, 15.0].map(|at| ramp.count_until(at)), [500.0, 2000.0]);
        assert_eq!(Rate::from(7.0).after(Nanos::from_secs(5)).due(70.0), Some(10.0));
    }

    #[test]
    fn the_mean_is_that_of_the_time_that_runs() {
        let ramp = rate(&[(0, 100.0), (10, 300.0)]);
        assert_eq!([None, Some(5), Some(20)].map(|time| ramp.mean(time.map(Nanos::from_secs))), [200.0, 150.0, 250.0]);
        assert_eq!([None, Some(5)].map(|time| Rate::from(7.0).mean(time.map(Nanos::from_secs))), [7.0, 7.0]);
        assert_eq!(rate(&[(0, 0.0), (5, 0.0), (5, 8.0)]).mean(Some(Nanos::from_secs(5))), 8.0);
    }

    #[test]
    fn points_that_are_no_rate_are_refused() {
        let point = |seconds, per_s| RatePoint { at: Nanos::from_secs(seconds), per_s };
        assert_eq!(Rate::new(&[]), Err(BadRate::Empty));
        assert_eq!(Rate::new(&[point(2, 1.0), point(1, 1.0)]), Err(BadRate::NotInOrder));
        for per_s in [-1.0, f64::NAN, 2e7, 0.0] {
            assert_eq!(Rate::new(&[point(0, per_s)]), Err(BadRate::OutOfRange), "{per_s}");
        }
    }
}
