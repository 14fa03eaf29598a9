//! Several cells over several rounds: a randomized block design.
//!
//! A round measures every cell once, in an order drawn by chance, so that whatever drifts from round to round hits all
//! cells alike and is taken out: log value = cell + round + error. Cells and rounds are fitted together by least
//! squares, which also holds when trials are missing. Ratios of one family have intervals that all hold together with
//! the level.
//!
//! Sources: Montgomery 2013, Design and Analysis of Experiments, ch. 4 (randomized blocks, missing values); Šidák 1967
//! (joint intervals).

use crate::comparison::{FOUND, TRIALS_MAX, Verdict, deviations_found};
use crate::scale::Measure;
use crate::student::student;
use crate::{Estimate, LEVEL};

/// One trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// From 0.
    pub cell: usize,
    /// From 0.
    pub round: usize,
    /// Above 0.
    pub value: f64,
}

/// The fit of all trials.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// The unknowns: one per cell that was measured, then one per round.
    cells: Vec<Option<usize>>,
    rounds: Vec<Option<usize>>,
    /// Cells and rounds that trials connect have the same number.
    group: Vec<usize>,
    effects: Vec<f64>,
    /// Inverse of the normal equations.
    inverse: Vec<Vec<f64>>,
    /// Standard deviation of the logarithms' errors; `None` without degrees of freedom.
    deviation: Option<f64>,
    freedom: usize,
    rounds_measured: usize,
}

/// What a cell is compared with a base, within a family of such contrasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// What `size` and `interval` are.
    pub by: Measure,
    /// The cell's value by the base's, or the difference of both.
    pub size: f64,
    /// Its ends, with those of the whole family at `LEVEL`; `None` without degrees of freedom.
    pub interval: Option<(f64, f64)>,
    /// The verdict. In `CannotTell` the trials needed are rounds.
    pub verdict: Verdict,
}

/// Two rounds of two cells leave one degree of freedom, of which intervals are as wide as the sky.
pub(crate) const ROUNDS_MIN: usize = 3;
/// Beyond these Student's distribution is the normal one to three digits.
const FREEDOM_MAX: usize = 400;

impl Blocks {
    /// Fits `cells` and `rounds` effects to trials. `None` when there is no trial, or one is not above 0.
    /// Cost: O((cells + rounds)³).
    pub fn fit(observations: &[Observation], cells: usize, rounds: usize) -> Option<Blocks> {
        let usable =
            |one: &Observation| one.value > 0.0 && one.value.is_finite() && one.cell < cells && one.round < rounds;
        if observations.is_empty() || !observations.iter().all(usable) {
            return None;
        }
        let numbered = |used: &dyn Fn(usize) -> bool, count: usize, next: &mut usize| -> Vec<Option<usize>> {
            let number = |one| used(one).then(|| std::mem::replace(next, *next + 1));
            (0..count).map(number).collect()
        };
        let mut next = 0;
        let cell_of = numbered(&|cell| observations.iter().any(|one| one.cell == cell), cells, &mut next);
        let cells_measured = next;
        let round_of = numbered(&|round| observations.iter().any(|one| one.round == round), rounds, &mut next);
        let rounds_measured = next - cells_measured;
        let unknowns = |one: &Observation| (cell_of[one.cell].expect("used"), round_of[one.round].expect("used"));
        let group = groups(next, observations.iter().map(unknowns));
        let mut distinct = group.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let mut normal = vec![vec![0.0; next]; next];
        let mut right = vec![0.0; next];
        for one in observations {
            let (cell, round) = unknowns(one);
            for (a, b) in [(cell, cell), (round, round), (cell, round), (round, cell)] {
                normal[a][b] += 1.0;
            }
            right[cell] += one.value.ln();
            right[round] += one.value.ln();
        }
        // The effects of each group are known but for a constant: its rounds sum to nothing.
        for number in &distinct {
            let members: Vec<usize> = (cells_measured..next).filter(|unknown| group[*unknown] == *number).collect();
            for a in &members {
                for b in &members {
                    normal[*a][*b] += 1.0;
                }
            }
        }
        let inverse = inverse(normal);
        let effects: Vec<f64> = inverse.iter().map(|row| row.iter().zip(&right).map(|(a, b)| a * b).sum()).collect();
        let squares: f64 = observations
            .iter()
            .map(|one| {
                let (cell, round) = unknowns(one);
                (one.value.ln() - effects[cell] - effects[round]).powi(2)
            })
            .sum();
        let freedom = (observations.len() + distinct.len()).saturating_sub(next);
        let deviation = (freedom > 0).then(|| (squares / freedom as f64).sqrt());
        Some(Blocks { cells: cell_of, rounds: round_of, group, effects, inverse, deviation, freedom, rounds_measured })
    }

    /// Standard deviation of a trial around what its cell and round say, as a share of the value.
    pub fn deviation(&self) -> Option<f64> {
        self.deviation
    }

    /// The value of a cell in the middle of its rounds, with the interval of this cell alone. `None`: it was not
    /// measured.
    pub fn value(&self, cell: usize) -> Option<(f64, Option<Estimate>)> {
        let unknown = self.cells.get(cell).copied().flatten()?;
        let value = self.effects[unknown].exp();
        let half = self.half(&[(unknown, 1.0)], 1);
        Some((value, half.map(|half| Estimate { value, low: value * (-half).exp(), high: value * half.exp() })))
    }

    /// A cell's value by that of `base`, one of `family` such ratios that are looked at together. `margin`: the
    /// smallest difference that matters, a share above 0. `None`: one of them was not measured, or no rounds connect
    /// them.
    pub fn ratio(&self, base: usize, cell: usize, family: usize, margin: f64) -> Option<Contrast> {
        self.mean_ratio(&[(base, cell)], family, margin)
    }

    /// The geometric mean of several ratios, each of a base and a cell: what a factor does at all levels of the others.
    /// Otherwise as `ratio`; pairs that were not measured, or that no rounds connect, are left out. `None`: all of
    /// them.
    pub fn mean_ratio(&self, pairs: &[(usize, usize)], family: usize, margin: f64) -> Option<Contrast> {
        let unknown = |cell: usize| self.cells.get(cell).copied().flatten();
        let known = pairs.iter().filter_map(|(base, cell)| Some((unknown(*base)?, unknown(*cell)?)));
        let known: Vec<(usize, usize)> = known.filter(|(base, cell)| self.group[*base] == self.group[*cell]).collect();
        let weight = 1.0 / known.len() as f64;
        let weights: Vec<(usize, f64)> =
            known.iter().flat_map(|(base, cell)| [(*cell, weight), (*base, -weight)]).collect();
        (!weights.is_empty()).then(|| self.weighted(&weights, family, margin))
    }

    /// The last round by the first: what drifted. `None` with one round.
    pub fn drift(&self) -> Option<Contrast> {
        let measured: Vec<usize> = self.rounds.iter().copied().flatten().collect();
        let (first, last) = (measured.first()?, measured.last()?);
        let are_connected = first != last && self.group[*first] == self.group[*last];
        are_connected.then(|| self.weighted(&[(*last, 1.0), (*first, -1.0)], 1, crate::MARGIN_DEFAULT))
    }

    /// A ratio as a weighted sum of effects; in each group the weights sum to 0.
    fn weighted(&self, weights: &[(usize, f64)], family: usize, margin: f64) -> Contrast {
        let log: f64 = weights.iter().map(|(unknown, weight)| weight * self.effects[*unknown]).sum();
        let half = self.half(weights, family);
        let interval = half.map(|half| ((log - half).exp(), (log + half).exp()));
        let verdict = match interval {
            Some((low, _)) if low > 1.0 => Verdict::More,
            Some((_, high)) if high < 1.0 => Verdict::Less,
            Some((low, high)) if low >= 1.0 / (1.0 + margin) && high <= 1.0 + margin => Verdict::NoDifference,
            _ => {
                let squares = weights.iter().map(|(_, weight)| weight * weight).sum();
                Verdict::CannotTell { trials_needed: self.rounds_needed(margin.ln_1p(), family, squares) }
            }
        };
        Contrast { by: Measure::Ratio, size: log.exp(), interval, verdict }
    }

    /// Half the width of the interval of a sum of effects, all of cells or all of rounds, as a logarithm.
    ///
    /// With X the design, c the condition that the rounds of a group sum to 0, and G the inverse of X'X + cc', the
    /// effects are G X'y, whose covariance is G X'X G = G − Gc(Gc)' in units of the error's variance. X maps n, which
    /// is 1 for the cells of the group and −1 for its R rounds, to 0; so (X'X + cc')n = −R c, and Gc = −n / R.
    fn half(&self, weights: &[(usize, f64)], family: usize) -> Option<f64> {
        let deviation = self.deviation?;
        let pairs = weights.iter().flat_map(|a| weights.iter().map(move |b| (a, b)));
        let of_inverse: f64 = pairs.map(|((a, x), (b, y))| x * y * self.inverse[*a][*b]).sum();
        // Contrasts lie in one group, and their weights sum to 0: the condition is nothing to them.
        let group = self.group[weights.first()?.0];
        let rounds = self.rounds.iter().flatten().filter(|round| self.group[**round] == group).count();
        let of_condition = weights.iter().map(|(_, weight)| weight).sum::<f64>() / rounds as f64;
        let variance = of_inverse - of_condition * of_condition;
        Some(quantile(self.freedom, family) * deviation * variance.max(0.0).sqrt())
    }

    /// Rounds that would find this logarithm of a ratio, from the spread seen; more than there were. `squares`: of the
    /// weights of its cells, 2 for a ratio of two.
    fn rounds_needed(&self, apart: f64, family: usize, squares: f64) -> usize {
        let least = ROUNDS_MIN.max(self.rounds_measured + 1);
        let Some(deviation) = self.deviation else { return least };
        let cells = self.cells.iter().flatten().count();
        let freedom_each = if self.rounds_measured > 1 { cells - 1 } else { cells };
        let known = Known { variance: squares * deviation * deviation, freedom: self.freedom, freedom_each };
        known.rounds_needed(apart, family, least)
    }
}

/// What is known about the error of a contrast from the trials so far.
pub(crate) struct Known {
    /// Variance of the contrast with one round.
    pub(crate) variance: f64,
    /// Degrees of freedom of the variance.
    pub(crate) freedom: usize,
    /// Degrees of freedom that each round beyond the first adds.
    pub(crate) freedom_each: usize,
}

impl Known {
    /// Rounds after which a contrast of this size is found four times out of five, at least `least`.
    ///
    /// The test to come estimates its own error: Student's distribution around a difference is nearly normal with a
    /// larger deviation (Abramowitz & Stegun 26.7.10).
    pub(crate) fn rounds_needed(&self, apart: f64, family: usize, least: usize) -> usize {
        if self.variance == 0.0 {
            return least;
        }
        let wanted = |rounds: usize| {
            let freedom = (self.freedom_each * (rounds - 1)).clamp(1, FREEDOM_MAX);
            let sure = quantile(freedom, family);
            let freedom = freedom as f64;
            let spread = (1.0 + sure * sure / (2.0 * freedom)).sqrt();
            let deviations = deviations_found(self.freedom, sure * (1.0 - 0.25 / freedom), FOUND * spread);
            (deviations * deviations * self.variance / (apart * apart)).ceil()
        };
        // The more rounds, the fewer are needed: the least number that is enough is not below that for very many.
        let most = wanted(TRIALS_MAX);
        if !most.is_finite() || most >= TRIALS_MAX as f64 {
            return TRIALS_MAX;
        }
        let from = least.max(most as usize).max(2);
        (from..TRIALS_MAX).find(|rounds| wanted(*rounds) <= *rounds as f64).unwrap_or(TRIALS_MAX)
    }
}

/// Two-sided quantile of Student's distribution, for `family` simultaneous intervals (Šidák).
pub(crate) fn quantile(freedom: usize, family: usize) -> f64 {
    student(LEVEL.powf(1.0 / family.max(1) as f64), freedom.clamp(1, FREEDOM_MAX))
}

/// Which unknowns are connected by trials: those of one number.
fn groups(count: usize, trials: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    let mut group: Vec<usize> = (0..count).collect();
    for (a, b) in trials {
        let (keep, drop) = (group[a].min(group[b]), group[a].max(group[b]));
        group.iter_mut().filter(|one| **one == drop).for_each(|one| *one = keep);
    }
    group
}

/// Gauss–Jordan with partial pivoting. The matrix is positive definite: every cell and round was measured.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = matrix.len();
    let mut inverse: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for column in 0..n {
        let pivot = (column..n).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()));
        let pivot = pivot.expect("there are rows left");
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let by = matrix[column][column];
        matrix[column].iter_mut().chain(&mut inverse[column]).for_each(|x| *x /= by);
        let (row, inverse_row) = (matrix[column].clone(), inverse[column].clone());
        for other in (0..n).filter(|other| *other != column) {
            let factor = matrix[other][column];
            if factor != 0.0 {
                matrix[other].iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
                inverse[other].iter_mut().zip(&inverse_row).for_each(|(x, y)| *x -= factor * y);
            }
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(values: &[&[f64]]) -> Vec<Observation> {
        let of = |(cell, rounds): (usize, &&[f64])| {
            rounds
                .iter()
                .enumerate()
                .map(move |(round, value)| Observation { cell, round, value: *value })
                .collect::<Vec<_>>()
        };
        values.iter().enumerate().flat_map(of).collect()
    }

    #[test]
    fn a_drift_that_hits_all_cells_alike_changes_no_ratio_and_widens_no_interval() {
        let fit = Blocks::fit(&full(&[&[100.0, 200.0, 50.0], &[110.0, 220.0, 55.0]]), 2, 3).unwrap();
        let found = fit.ratio(0, 1, 1, 0.03).unwrap();
        assert!((found.size - 1.1).abs() < 1e-9 && fit.deviation().unwrap() < 1e-9, "{found:?}");
        assert_eq!(found.verdict, Verdict::More);
        assert!((fit.drift().unwrap().size - 0.5).abs() < 1e-9);
        assert!((fit.value(1).unwrap().0 - 110.0).abs() < 1e-9);
    }

    #[test]
    fn with_all_trials_it_is_the_two_way_analysis_of_variance_of_the_textbook() {
        // Logarithms 1 2 4 / 2 5 5: residuals ±1/3 ±1/3 … by hand: row means 7/3 and 4, column means 1.5, 3.5, 4.5.
        let e = |x: f64| x.exp();
        let fit = Blocks::fit(&full(&[&[e(1.0), e(2.0), e(4.0)], &[e(2.0), e(5.0), e(5.0)]]), 2, 3).unwrap();
        let residuals = [1.0f64 / 3.0, -2.0 / 3.0, 1.0 / 3.0];
        let variance = 2.0 * residuals.iter().map(|r| r * r).sum::<f64>() / 2.0;
        assert!((fit.deviation().unwrap().powi(2) - variance).abs() < 1e-9, "{:?}", fit.deviation());
        let found = fit.ratio(0, 1, 1, 0.03).unwrap();
        assert!((found.size.ln() - 5.0 / 3.0).abs() < 1e-9);
        // t of 2 degrees of freedom at 95 %, and a difference of two means of three.
        let half = 4.302_653 * (variance * 2.0 / 3.0).sqrt();
        let (low, high) = found.interval.unwrap();
        assert!((low.ln() - (5.0 / 3.0 - half)).abs() < 1e-5 && (high.ln() - (5.0 / 3.0 + half)).abs() < 1e-5);
        // A cell alone is a mean of three.
        let half = 4.302_653 * (variance / 3.0).sqrt();
        let own = fit.value(1).unwrap().1.unwrap();
        assert!((own.value.ln() - 4.0).abs() < 1e-9);
        assert!((own.low.ln() - (4.0 - half)).abs() < 1e-5 && (own.high.ln() - (4.0 + half)).abs() < 1e-5, "{own:?}");
        assert!(matches!(found.verdict, Verdict::CannotTell { trials_needed } if trials_needed > 3), "{found:?}");
    }

    #[test]
    fn a_mean_of_ratios_has_the_interval_of_as_many_trials() {
        let rows: [&[f64]; 4] =
            [&[100.0, 103.0, 98.0], &[50.0, 52.0, 51.0], &[120.0, 119.0, 121.0], &[66.0, 63.0, 64.0]];
        let fit = Blocks::fit(&full(&rows), 4, 3).unwrap();
        let single = [(0, 2), (1, 3)].map(|(base, cell)| fit.ratio(base, cell, 1, 0.03).unwrap());
        let both = fit.mean_ratio(&[(0, 2), (1, 3)], 1, 0.03).unwrap();
        assert!((both.size.powi(2) - single[0].size * single[1].size).abs() < 1e-9, "{both:?}");
        let half = |ratio: &Contrast| ratio.interval.map(|(low, high)| (high / low).ln() / 2.0).unwrap();
        assert!((half(&both) * 2f64.sqrt() - half(&single[0])).abs() < 1e-9, "{both:?} {single:?}");
        // One that was not measured is left out.
        assert_eq!(fit.mean_ratio(&[(0, 2), (1, 9)], 1, 0.03), Some(single[0]));
        assert_eq!(fit.mean_ratio(&[(1, 9)], 1, 0.03), None);
    }

    #[test]
    fn missing_trials_are_no_reason_to_mistake_the_round_for_the_cell() {
        // Round 2 is twice as fast, and cell 1 has no trial in it.
        let mut trials = full(&[&[100.0, 200.0, 101.0], &[100.0, 200.0, 101.0], &[120.0, 240.0, 121.2]]);
        trials.retain(|one| (one.cell, one.round) != (1, 1));
        let fit = Blocks::fit(&trials, 3, 3).unwrap();
        assert!((fit.ratio(0, 1, 2, 0.03).unwrap().size - 1.0).abs() < 1e-9);
        assert!((fit.ratio(0, 2, 2, 0.03).unwrap().size - 1.2).abs() < 1e-9);
        assert!((fit.value(1).unwrap().0 / fit.value(0).unwrap().0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn one_round_has_values_and_ratios_but_no_intervals() {
        let fit = Blocks::fit(&full(&[&[100.0], &[120.0]]), 3, 1).unwrap();
        let found = fit.ratio(0, 1, 1, 0.03).unwrap();
        assert!((found.size - 1.2).abs() < 1e-9 && found.interval.is_none());
        assert_eq!(found.verdict, Verdict::CannotTell { trials_needed: 3 });
        assert_eq!((fit.value(2), fit.drift(), fit.ratio(0, 2, 1, 0.03)), (None, None, None));
        // Nothing connects cells that never met in a round.
        let apart = [Observation { cell: 0, round: 0, value: 1.0 }, Observation { cell: 1, round: 1, value: 2.0 }];
        assert_eq!(Blocks::fit(&apart, 2, 2).unwrap().ratio(0, 1, 1, 0.03), None);
        assert!(Blocks::fit(&[], 1, 1).is_none());
        assert!(Blocks::fit(&full(&[&[0.0]]), 1, 1).is_none());
    }

    /// Two cells in three rounds: logarithms 1, 2, 4, and so much more in each round.
    fn apart(by: [f64; 3]) -> Blocks {
        let base = [1.0f64, 2.0, 4.0];
        let other = [0, 1, 2].map(|round| (base[round] + by[round]).exp());
        Blocks::fit(&full(&[&base.map(f64::exp), &other]), 2, 3).unwrap()
    }

    #[test]
    fn a_verdict_is_what_the_interval_says_of_the_margin() {
        let verdict = |by, margin| apart(by).ratio(0, 1, 1, margin).unwrap().verdict;
        let tells = |by, margin| !matches!(verdict(by, margin), Verdict::CannotTell { .. });
        assert_eq!(verdict([0.049, 0.050, 0.051], 0.03), Verdict::More);
        assert_eq!(verdict([-0.049, -0.050, -0.051], 0.03), Verdict::Less);
        // Half the interval is 4.303 · 0.001 / √3 = 0.0025.
        let (equal, above, below) = ([0.001, 0.0, -0.001], [0.003, 0.002, 0.001], [-0.003, -0.002, -0.001]);
        for by in [equal, above, below] {
            assert_eq!(verdict(by, 0.005), Verdict::NoDifference, "{by:?}");
        }
        assert!(!tells(equal, 0.002));
        assert!(!tells(above, 0.004), "its upper end is outside");
        assert!(!tells(below, 0.004), "its lower end is outside");
    }

    #[test]
    fn intervals_of_a_family_are_wider_and_those_of_values_lie_around_them() {
        let fit = apart([0.4, 0.1, -0.2]);
        // Student's distribution of two degrees of freedom has a closed form.
        let student = |level: f64| level * (2.0 / (1.0 - level * level)).sqrt();
        let deviation = 0.045f64.sqrt();
        for (family, level) in [(1, 0.95), (2, 0.95f64.sqrt())] {
            let (low, high) = fit.ratio(0, 1, family, 0.03).unwrap().interval.unwrap();
            let half = student(level) * deviation * (2.0f64 / 3.0).sqrt();
            assert!((low.ln() - (0.1 - half)).abs() < 1e-4, "{family}: {low}");
            assert!((high.ln() - (0.1 + half)).abs() < 1e-4, "{family}: {high}");
        }
        let (value, interval) = fit.value(1).unwrap();
        let interval = interval.unwrap();
        assert!(interval.low < value && value < interval.high, "{interval:?}");
        assert!((interval.low * interval.high / (value * value) - 1.0).abs() < 1e-9, "{interval:?}");
    }

    #[test]
    fn rounds_that_are_needed_grow_with_the_square_of_spread_by_margin() {
        let needed = |by: [f64; 3], margin: f64| match apart(by).ratio(0, 1, 1, margin).unwrap().verdict {
            Verdict::CannotTell { trials_needed } => trials_needed as f64,
            other => panic!("{other:?}"),
        };
        // Whatever was seen, it is the margin that is to be found.
        let of = needed([0.4, 0.1, -0.2], 0.1);
        assert_eq!((of, of), (needed([0.35, 0.05, -0.25], 0.1), needed([0.3, 0.0, -0.3], 0.1)));
        assert!((needed([0.4, 0.1, -0.2], 0.05) / of - 4.0).abs() < 0.4, "{of}");
        assert!((needed([0.2, 0.05, -0.1], 0.1) * 4.0 / of - 1.0).abs() < 0.1, "{of}");
        // One more than there were, at least.
        let known = Known { variance: 1e-9, freedom: 2, freedom_each: 1 };
        assert_eq!(known.rounds_needed(1.0, 1, 4), 4);
    }
}
