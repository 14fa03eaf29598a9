//! Change points: where the level of a series shifts, and by how much.
//!
//! A series is modeled as a level that shifts at unknown instants, plus a first order autoregression with the same
//! correlation throughout. For every correlation of a grid, dynamic programming finds the exact best division into 1,
//! 2, … segments; the correlation and the number of segments are those of the best penalized likelihood. Fitting the
//! correlation together with the levels keeps a wandering series from being cut into pieces: PELT with the usual
//! penalty, which assumes independent values, finds shifts in most series that correlate at 0.5.
//!
//! Rejected: E-divisive, whose permutations assume exchangeable neighbors, which seconds are not; MSER, which finds no
//! shift in the second half.
//!
//! Sources: Lu, Lund & Lee 2010, "An MDL approach to the climate segmentation problem" (levels over a common
//! autoregression); Davis, Lee & Rodriguez-Yam 2006, "Structural break estimation for nonstationary time series models"
//! (segments that start independently); Auger & Lawrence 1989 (exact search over segments); Zhang & Siegmund 2007, "A
//! modified Bayes information criterion" (the penalty); Davies & Gather 1993 (single values far from their neighbors
//! are replaced first). `tests/coverage.rs` measures how often the answer is wrong.

use std::ops::Range;

use crate::mean::{mean, median, median_of};
use crate::waves::FittedLine;

/// A shift of the level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The first value of the new level.
    pub at: usize,
    /// Mean since the previous shift, or from the start.
    pub before: f64,
    /// Mean until the next shift, or to the end.
    pub after: f64,
}

impl Shift {
    /// As a share of the earlier level, as reports show it; negative when falling. -1 <= size for levels >= 0.
    pub fn size(&self) -> f64 {
        (self.after - self.before) / self.before.abs().max(f64::MIN_POSITIVE)
    }
}

/// Longer series are searched in means of several values; the positions are then refined in the series.
const LENGTH_MAX: usize = 300;
/// Anything shorter is an outlier, not a level: in values of the series.
pub(crate) const SEGMENT_MIN: usize = 5;
/// At most this many shifts.
const SHIFTS_MAX: usize = 8;
/// Gain of a certain shift: three times the logarithm of the length, as for `LENGTH_MAX` values. In shorter series
/// chance gains as much, because their correlation is poorly known.
const PENALTY: f64 = 17.1;
/// A smaller gain is more probably chance than not.
const PENALTY_POSSIBLE: f64 = 9.0;
/// A shift must be at least this share of the earlier level to be reported.
const SIZE_MIN: f64 = 0.03;
const CORRELATIONS: [f64; 8] = [0.0, 0.2, 0.4, 0.6, 0.75, 0.87, 0.93, 0.97];

/// The shifts of a series, each list in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shifts {
    /// Chance produces such shifts in fewer than one of twenty series.
    pub(crate) sure: Vec<Shift>,
    /// Some of these may be chance.
    pub(crate) possible: Vec<Shift>,
}

/// The shifts of an evenly spaced series; none if a straight line explains it better. `segment_min`: anything shorter
/// is not a level. Cost: O(min(n, 300)²) for each of 8 correlations.
pub(crate) fn shifts(series: &[f64], segment_min: usize) -> Shifts {
    let calm = if segment_min < SEGMENT_MIN { series.to_vec() } else { without_outliers(series) };
    let batch = calm.len().div_ceil(LENGTH_MAX).max(1);
    let means: Vec<f64> = calm.chunks_exact(batch).map(mean).collect();
    if means.len() < 2 * segment_min {
        return Shifts::default();
    }
    let Some([sure, possible]) = best_divisions(&means, segment_min) else { return Shifts::default() };
    let line = line_score(&means);
    let of = |best: Division, penalty: f64| {
        if best.shifts.is_empty() || line + penalty <= best.score {
            return Vec::new();
        }
        let mut places: Vec<usize> = best.shifts.iter().map(|at| at * batch).collect();
        for i in 0..places.len() {
            let from = if i == 0 { 0 } else { places[i - 1] };
            let to = places.get(i + 1).copied().unwrap_or(calm.len());
            places[i] = sharpened(&calm, from, places[i], to, batch);
        }
        levels(&calm, places)
    };
    Shifts { sure: of(sure, PENALTY), possible: of(possible, PENALTY_POSSIBLE) }
}

/// The shifts at `places` that are large enough to report.
fn levels(series: &[f64], mut places: Vec<usize>) -> Vec<Shift> {
    loop {
        let edges: Vec<usize> = [0].into_iter().chain(places.iter().copied()).chain([series.len()]).collect();
        let means: Vec<f64> = edges.windows(2).map(|edge| mean(&series[edge[0]..edge[1]])).collect();
        let shift = |i: usize| Shift { at: places[i], before: means[i], after: means[i + 1] };
        let size = |i: usize| shift(i).size().abs();
        let smallest = (0..places.len()).min_by(|a, b| size(*a).total_cmp(&size(*b)));
        match smallest.filter(|i| size(*i) < SIZE_MIN) {
            Some(i) => drop(places.remove(i)),
            None => return (0..places.len()).map(shift).collect(),
        }
    }
}

/// The position between `from` and `to`, within `batch` of `at`, where two levels fit best.
fn sharpened(series: &[f64], from: usize, at: usize, to: usize, batch: usize) -> usize {
    let (first, last) = (at.saturating_sub(batch).max(from + 1), (at + batch).min(to - 1));
    let split = |at: usize| {
        let of = |part: &[f64]| {
            let center = mean(part);
            part.iter().map(|x| (x - center).powi(2)).sum::<f64>()
        };
        of(&series[from..at]) + of(&series[at..to])
    };
    if batch == 1 { at } else { (first..=last).min_by(|a, b| split(*a).total_cmp(&split(*b))).unwrap_or(at) }
}

/// Values far from the median of their neighbors, replaced by it.
pub(crate) fn without_outliers(series: &[f64]) -> Vec<f64> {
    const REACH: usize = 3;
    /// Median absolute deviations, each 1/1.4826 of a standard deviation.
    const FAR: f64 = 4.0 * 1.4826;
    let middle = |at: usize| {
        let near = &series[at.saturating_sub(REACH)..(at + REACH + 1).min(series.len())];
        let mut values = [0.0; 2 * REACH + 1];
        let values = &mut values[..near.len()];
        values.copy_from_slice(near);
        median_of(values)
    };
    let middles: Vec<f64> = (0..series.len()).map(middle).collect();
    let distances: Vec<f64> = series.iter().zip(&middles).map(|(x, middle)| (x - middle).abs()).collect();
    let far = FAR * median(&distances);
    let calm = |((x, middle), distance): ((&f64, &f64), &f64)| if *distance > far { *middle } else { *x };
    series.iter().zip(&middles).zip(&distances).map(calm).collect()
}

/// Where the level shifts, and how well that explains the series: lower is better.
struct Division {
    shifts: Vec<usize>,
    score: f64,
}

/// The best divisions if a shift must gain `PENALTY` and `PENALTY_POSSIBLE`; `None` for a constant.
fn best_divisions(series: &[f64], segment_min: usize) -> Option<[Division; 2]> {
    let n = series.len() as f64;
    let center = mean(series);
    let series: Vec<f64> = series.iter().map(|x| x - center).collect();
    let all: f64 = series.iter().map(|x| x * x).sum();
    // Rounding errors of a constant.
    if all <= n * (center.abs() * 1e-9).powi(2) {
        return None;
    }
    let least = all * 1e-9;
    let mut best = [PENALTY, PENALTY_POSSIBLE].map(|penalty| (penalty, Division { shifts: vec![], score: f64::MAX }));
    for correlation in CORRELATIONS {
        let divisions = SegmentSums::of(&series, correlation).divisions(segment_min);
        for (shifts, squares) in divisions.squares().into_iter().enumerate().filter(|(_, squares)| squares.is_finite())
        {
            let segments = shifts as f64 + 1.0;
            // Twice the negative logarithm of the likelihood.
            let fit = n * (squares.max(least) / n).ln() - segments * (1.0 - correlation * correlation).ln();
            for (penalty, best) in &mut best {
                let score = fit + *penalty * shifts as f64;
                if score < best.score {
                    *best = Division { shifts: divisions.places(shifts), score };
                }
            }
        }
    }
    Some(best.map(|(_, division)| division))
}

/// Score of a straight line, without the penalty for its slope: comparable with that of a shift.
fn line_score(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    let rest = FittedLine::through(series).rest(series);
    let least = rest.iter().map(|x| x * x).sum::<f64>() * 1e-9;
    let score = |correlation: &f64| {
        let sums = SegmentSums::of(&rest, *correlation);
        let squares = sums.cost(0, rest.len()).max(least).max(f64::MIN_POSITIVE);
        n * (squares / n).ln() - (1.0 - correlation * correlation).ln()
    };
    CORRELATIONS.iter().map(score).fold(f64::INFINITY, f64::min)
}

/// Sums that give the squared innovations of any segment around its best level in constant time.
struct SegmentSums<'a> {
    series: &'a [f64],
    correlation: f64,
    /// Prefix sums of x[t] − correlation x[t−1] for t < the index.
    first: Vec<f64>,
    /// Prefix sums of the squares.
    second: Vec<f64>,
    /// Of a level in the squares of a segment, the longest first.
    weights: Vec<f64>,
}

impl<'a> SegmentSums<'a> {
    fn of(series: &'a [f64], correlation: f64) -> SegmentSums<'a> {
        let (mut first, mut second) = (vec![0.0; series.len() + 1], vec![0.0; series.len() + 1]);
        for t in 0..series.len() {
            let y = if t == 0 { 0.0 } else { series[t] - correlation * series[t - 1] };
            (first[t + 1], second[t + 1]) = (first[t] + y, second[t] + y * y);
        }
        let (start, step) = (1.0 - correlation * correlation, 1.0 - correlation);
        let weights = (0..series.len()).rev().map(|rest| start + step * step * rest as f64).collect();
        SegmentSums { series, correlation, first, second, weights }
    }

    /// Costs of the segments from each of `starts` to `to`, which start in their stationary state: the smallest sum of
    /// squared innovations over all levels.
    fn costs(&self, starts: Range<usize>, to: usize) -> impl ExactSizeIterator<Item = f64> {
        let (start, step) = (1.0 - self.correlation * self.correlation, 1.0 - self.correlation);
        let (first_to, second_to) = (self.first[to], self.second[to]);
        let after = starts.start + 1..starts.end + 1;
        let unused = self.series.len() - to;
        let weights = &self.weights[unused + starts.start..unused + starts.end];
        let sums = self.first[after.clone()].iter().zip(&self.second[after]);
        self.series[starts].iter().zip(sums).zip(weights).map(move |((x, (first, second)), weight)| {
            let first = start * x + step * (first_to - first);
            let second = start * x * x + second_to - second;
            (second - first * first / weight).max(0.0)
        })
    }

    /// Cost of the segment `from .. to`.
    fn cost(&self, from: usize, to: usize) -> f64 {
        self.costs(from..from + 1, to).sum()
    }

    /// The best division for each number of shifts.
    fn divisions(self, segment_min: usize) -> Divisions<'a> {
        let n = self.series.len();
        let mut best = vec![[f64::INFINITY; SHIFTS_MAX + 1]; n + 1];
        let mut costs = Vec::with_capacity(n);
        for to in segment_min..=n {
            let starts = segment_min..(to + 1).saturating_sub(segment_min).max(segment_min);
            costs.clear();
            costs.extend(self.costs(starts.clone(), to));
            let mut least = [f64::INFINITY; SHIFTS_MAX];
            for (before, cost) in best[starts].iter().zip(&costs) {
                // Not `zip`, which calls a function for each value.
                for shifts in 0..SHIFTS_MAX {
                    let squares = before[shifts] + cost;
                    least[shifts] = if squares < least[shifts] { squares } else { least[shifts] };
                }
            }
            best[to][0] = self.cost(0, to);
            best[to][1..].copy_from_slice(&least);
        }
        Divisions { sums: self, segment_min, best }
    }
}

/// The best divisions of a series, and of every beginning of it.
struct Divisions<'a> {
    sums: SegmentSums<'a>,
    segment_min: usize,
    /// Sums of squares, by the end of a division and its number of shifts.
    best: Vec<[f64; SHIFTS_MAX + 1]>,
}

impl Divisions<'_> {
    /// The least sum of squares for each number of shifts; infinite if the series is too short for that many.
    fn squares(&self) -> [f64; SHIFTS_MAX + 1] {
        self.best[self.sums.series.len()]
    }

    /// Where the best division into that many shifts has them. Few divisions are asked for this, so the start of each
    /// last segment is looked for again instead of being kept.
    fn places(&self, shifts: usize) -> Vec<usize> {
        let mut to = self.sums.series.len();
        let start_of_last = |to: usize, shifts: usize| {
            let is_best =
                |from: &usize| self.best[*from][shifts - 1] + self.sums.cost(*from, to) == self.best[to][shifts];
            (self.segment_min..=to - self.segment_min).find(is_best).expect("the best division has a last segment")
        };
        let mut places = Vec::with_capacity(shifts);
        for shifts in (1..=shifts).rev() {
            to = start_of_last(to, shifts);
            places.push(to);
        }
        places.reverse();
        places
    }
}
