//! Cells of a grid on the scale of what was measured.
//!
//! Rates and times are fitted together with their rounds, as logarithms (`blocks.rs`). On any other scale the errors of
//! a small and of a large cell have nothing in common: so each cell is the mean of its own trials, with the interval of
//! Student's distribution, and two cells are compared by their difference: round by round if they share their rounds,
//! otherwise with a deviation of each. Counts without zeros whose trials lie close together are treated as rates: their
//! errors are in proportion, and a ratio says more.
//!
//! One or two trials have no interval, only a lowest and a highest value: a deviation from two is off by a factor of
//! eight in one of ten cases.
//!
//! Sources: Student 1908; Welch 1947 and Satterthwaite 1946 (unequal deviations); Šidák 1967 (joint intervals).

use crate::blocks::{Blocks, Contrast, Known, Observation, ROUNDS_MIN, quantile};
use crate::comparison::Verdict;
use crate::mean::mean;
use crate::scale::{Measure, Scale};

/// The trials of all cells.
#[derive(Clone, Debug)]
pub struct Cells {
    scale: Scale,
    /// The fit of the cells whose values have logarithms; of none if the scale has no ratios.
    fit: Option<Blocks>,
    /// By cell, whether it is part of the fit.
    is_fitted: Vec<bool>,
    /// By cell: round and value of each trial.
    trials: Vec<Vec<(usize, f64)>>,
    rounds: usize,
}

/// What a cell measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellValue {
    /// Of rates and times the geometric mean in the middle of the rounds, of everything else the mean.
    pub value: f64,
    /// Its interval at `LEVEL`, in the range of possible values; `None` for fewer than three trials.
    pub interval: Option<(f64, f64)>,
    /// The lowest and the highest trial.
    pub range: (f64, f64),
    /// Number of trials.
    pub trials: usize,
}

/// Fewer trials have no interval.
const TRIALS_FOR_INTERVAL: usize = 3;
/// Counts of a cell are close together if the largest is at most so many times the smallest.
const CLOSE: f64 = 2.0;

/// A difference of means: its variance, and the degrees of freedom of that.
struct Part {
    apart: f64,
    variance: f64,
    freedom: f64,
    trials: usize,
}

impl Cells {
    /// Trials on this scale, or on the next wider one if a value is outside. Values that are not finite do not count.
    /// `None`: there is no value. Cost: O((cells + rounds)³).
    pub fn fit(observations: &[Observation], cells: usize, rounds: usize, scale: Scale) -> Option<Cells> {
        let is_known = |one: &&Observation| one.value.is_finite() && one.cell < cells && one.round < rounds;
        let known: Vec<Observation> = observations.iter().filter(is_known).copied().collect();
        if known.is_empty() {
            return None;
        }
        let mut trials = vec![Vec::new(); cells];
        known.iter().for_each(|one| trials[one.cell].push((one.round, one.value)));
        let values = |trials: &[(usize, f64)]| trials.iter().map(|trial| trial.1).collect::<Vec<f64>>();
        let is_positive = |trials: &Vec<(usize, f64)>| trials.iter().all(|trial| trial.1 > 0.0);
        let is_close = |trials: &Vec<(usize, f64)>| {
            let (low, high) = range(&values(trials));
            low > 0.0 && high <= CLOSE * low
        };
        let fitting = scale.fitting(known.iter().map(|one| one.value));
        let is_fitted: Vec<bool> = match (scale, fitting) {
            (Scale::Ratio, _) => trials.iter().map(is_positive).collect(),
            (Scale::Count, Scale::Count) => {
                let all = trials.iter().filter(|trials| !trials.is_empty()).all(is_close);
                vec![all; cells]
            }
            _ => vec![false; cells],
        };
        let fitted: Vec<Observation> = known.iter().filter(|one| is_fitted[one.cell]).copied().collect();
        // Counts have an interval of their own where the fit has none.
        let is_enough = |fit: &Blocks| scale == Scale::Ratio || fit.deviation().is_some();
        let fit = Blocks::fit(&fitted, cells, rounds).filter(is_enough);
        Some(Cells { scale: fitting, fit, is_fitted, trials, rounds })
    }

    /// What the cells of this table are compared by, as a rule.
    pub fn measure(&self) -> Measure {
        if self.fit.is_some() { Measure::Ratio } else { Measure::Difference }
    }

    /// Standard deviation of a trial around what its cell and round say, as a share of the value; `None`: errors are
    /// not in proportion, or there are too few trials.
    pub fn deviation(&self) -> Option<f64> {
        self.fit.as_ref()?.deviation()
    }

    /// The last round by the first, as far as errors are in proportion.
    pub fn drift(&self) -> Option<Contrast> {
        self.fit.as_ref()?.drift()
    }

    /// The value of a cell; `None`: it was not measured.
    pub fn value(&self, cell: usize) -> Option<CellValue> {
        let values = self.values(cell);
        if values.is_empty() {
            return None;
        }
        let (range, trials) = (range(&values), values.len());
        let fitted = self.fit.as_ref().filter(|_| self.is_fitted[cell]).and_then(|fit| fit.value(cell));
        let (value, interval) = match fitted {
            Some((value, interval)) => (value, interval.map(|one| (one.low, one.high))),
            None => {
                let value = mean(&values);
                let half = || quantile(trials - 1, 1) * (variance(&values) / trials as f64).sqrt();
                (value, (trials > 1).then(half).map(|half| self.scale.within((value - half, value + half))))
            }
        };
        let interval = interval.filter(|_| trials >= TRIALS_FOR_INTERVAL);
        Some(CellValue { value, interval, range, trials })
    }

    /// A cell compared with `base`, one of `family` such contrasts that are looked at together. `margin`: the smallest
    /// change that matters, a share of the base, above 0. `None`: one of them was not measured, or no rounds connect
    /// them.
    pub fn contrast(&self, base: usize, cell: usize, family: usize, margin: f64) -> Option<Contrast> {
        self.mean_contrast(&[(base, cell)], family, margin)
    }

    /// The mean of several contrasts, each of a base and a cell: what a factor does at all levels of the others.
    /// Otherwise as `contrast`; pairs that were not measured are left out. `None`: all of them.
    pub fn mean_contrast(&self, pairs: &[(usize, usize)], family: usize, margin: f64) -> Option<Contrast> {
        let is_measured = |cell: usize| self.trials.get(cell).is_some_and(|trials| !trials.is_empty());
        let pairs: Vec<(usize, usize)> =
            pairs.iter().copied().filter(|(base, cell)| is_measured(*base) && is_measured(*cell)).collect();
        let trials = |of: fn(&(usize, usize)) -> usize| pairs.iter().map(|pair| self.trials[of(pair)].len()).sum();
        let fewest: usize = usize::min(trials(|pair| pair.0), trials(|pair| pair.1));
        let is_fitted = |(base, cell): &(usize, usize)| self.is_fitted[*base] && self.is_fitted[*cell];
        if let Some(fit) = self.fit.as_ref().filter(|_| pairs.iter().all(is_fitted)) {
            let found = fit.mean_ratio(&pairs, family, margin)?;
            return Some(if fewest < TRIALS_FOR_INTERVAL { without_interval(found) } else { found });
        }
        if pairs.is_empty() {
            return None;
        }
        let number = pairs.len() as f64;
        let parts: Vec<Part> = pairs.iter().map(|(base, cell)| self.difference(*base, *cell)).collect();
        let size = parts.iter().map(|part| part.apart).sum::<f64>() / number;
        let variance = parts.iter().map(|part| part.variance).sum::<f64>() / (number * number);
        let squares: f64 = parts.iter().map(|part| (part.variance / (number * number)).powi(2) / part.freedom).sum();
        let freedom = if squares > 0.0 { variance * variance / squares } else { f64::MAX };
        let trials = parts.iter().map(|part| part.trials).min().unwrap_or(0);
        let base = pairs.iter().map(|(base, _)| mean(&self.values(*base))).sum::<f64>() / number;
        let matters = margin * base.abs();
        let half = quantile(freedom as usize, family) * variance.sqrt();
        let interval = (trials >= TRIALS_FOR_INTERVAL).then(|| self.apart_within((size - half, size + half)));
        let verdict = match interval {
            Some((low, _)) if low > 0.0 => Verdict::More,
            Some((_, high)) if high < 0.0 => Verdict::Less,
            Some((low, high)) if low >= -matters && high <= matters => Verdict::NoDifference,
            _ => {
                let each = (freedom / (trials.max(2) - 1) as f64).max(1.0) as usize;
                let freedom = freedom as usize;
                let known = Known { variance: variance * trials as f64, freedom, freedom_each: each };
                let least = ROUNDS_MIN.max(trials + 1);
                let trials_needed =
                    if interval.is_none() { least } else { known.rounds_needed(matters, family, least) };
                Verdict::CannotTell { trials_needed }
            }
        };
        Some(Contrast { by: Measure::Difference, size, interval, verdict })
    }

    fn values(&self, cell: usize) -> Vec<f64> {
        self.trials.get(cell).into_iter().flatten().map(|trial| trial.1).collect()
    }

    /// Two parts of a whole cannot be farther apart than the whole.
    fn apart_within(&self, (low, high): (f64, f64)) -> (f64, f64) {
        match self.scale {
            Scale::Share { whole } => (low.max(-whole), high.min(whole)),
            _ => (low, high),
        }
    }

    /// The cell minus the base.
    fn difference(&self, base: usize, cell: usize) -> Part {
        let (before, after) = (self.values(base), self.values(cell));
        let (few, many) = (before.len().min(after.len()), before.len().max(after.len()));
        let apart = mean(&after) - mean(&before);
        let round = |cell: usize, number: usize| self.trials[cell][number].0;
        let is_paired = self.rounds > 1 && few == many && (0..few).all(|one| round(base, one) == round(cell, one));
        if is_paired {
            let differences: Vec<f64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
            let variance = variance(&differences) / few as f64;
            return Part { apart, variance, freedom: few.max(2) as f64 - 1.0, trials: few };
        }
        let of = |values: &[f64]| (variance(values) / values.len() as f64, values.len().max(2) as f64 - 1.0);
        let ((first, of_first), (second, of_second)) = (of(&before), of(&after));
        let squares = first * first / of_first + second * second / of_second;
        let variance = first + second;
        let freedom = if squares > 0.0 { variance * variance / squares } else { of_first + of_second };
        Part { apart, variance, freedom, trials: few }
    }
}

/// Where a side has too few trials for an interval of its own.
fn without_interval(found: Contrast) -> Contrast {
    let verdict = match found.verdict {
        Verdict::CannotTell { trials_needed } => Verdict::CannotTell { trials_needed },
        _ => Verdict::CannotTell { trials_needed: ROUNDS_MIN },
    };
    Contrast { interval: None, verdict, ..found }
}

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)))
}

/// Zero for a single value.
fn variance(values: &[f64]) -> f64 {
    let center = mean(values);
    let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    squares / (values.len().max(2) - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERCENT: Scale = Scale::Share { whole: 100.0 };

    fn fitted(values: &[&[f64]], scale: Scale) -> Cells {
        let rounds = values.iter().map(|cell| cell.len()).max().unwrap();
        let of = |(cell, values): (usize, &&[f64])| {
            let one = move |(round, value): (usize, &f64)| Observation { cell, round, value: *value };
            values.iter().enumerate().map(one).collect::<Vec<_>>()
        };
        let all: Vec<Observation> = values.iter().enumerate().flat_map(of).collect();
        Cells::fit(&all, values.len(), rounds, scale).unwrap()
    }

    #[test]
    fn few_percent_have_an_interval_of_a_few_percent() {
        let found = fitted(&[&[0.2, 1.0, 1.8], &[95.0, 99.0, 97.0]], PERCENT);
        let small = found.value(0).unwrap();
        // 4.303 · 0.8 / √3 = 1.99, and nothing is below 0.
        assert!((small.value - 1.0).abs() < 1e-12 && small.interval.unwrap().0 == 0.0, "{small:?}");
        assert!((small.interval.unwrap().1 - 2.987).abs() < 1e-3, "{small:?}");
        let large = found.value(1).unwrap();
        assert_eq!(large.interval.unwrap().1, 100.0, "{large:?}");
        let apart = found.contrast(0, 1, 1, 0.03).unwrap();
        assert_eq!((apart.by, apart.verdict), (Measure::Difference, Verdict::More));
        assert!((apart.size - 96.0).abs() < 1e-12 && apart.interval.unwrap().1 <= 100.0, "{apart:?}");
    }

    #[test]
    fn a_cell_of_zeros_beside_one_of_thousands_keeps_its_own_interval() {
        let found = fitted(&[&[1.0, 0.0, 2.0], &[50_000.0, 51_000.0, 49_500.0], &[0.0, 0.0, 0.0]], Scale::Count);
        let (few, none) = (found.value(0).unwrap(), found.value(2).unwrap());
        assert!(few.value == 1.0 && few.interval.unwrap().0 == 0.0 && few.interval.unwrap().1 < 4.0, "{few:?}");
        assert_eq!((none.value, none.interval), (0.0, Some((0.0, 0.0))));
        assert_eq!(found.contrast(2, 2, 1, 0.03).unwrap().verdict, Verdict::NoDifference);
        assert_eq!(found.contrast(2, 1, 2, 0.03).unwrap().verdict, Verdict::More);
        // More than 0 by any share: no number of trials finds 3 % of nothing.
        let most = Verdict::CannotTell { trials_needed: crate::TRIALS_MAX };
        assert_eq!(found.contrast(2, 0, 2, 0.03).unwrap().verdict, most);
    }

    #[test]
    fn a_rate_of_zero_in_one_trial_costs_its_own_ratio_only() {
        let found = fitted(&[&[100.0, 102.0, 98.0], &[110.0, 112.0, 108.0], &[0.0, 90.0, 105.0]], Scale::Ratio);
        let ratio = found.contrast(0, 1, 2, 0.03).unwrap();
        assert!(ratio.by == Measure::Ratio && (ratio.size - 1.1).abs() < 1e-3, "{ratio:?}");
        let other = found.contrast(0, 2, 2, 0.03).unwrap();
        assert!(other.by == Measure::Difference && (other.size + 35.0).abs() < 1e-9, "{other:?}");
        let (low, high) = found.value(2).unwrap().interval.unwrap();
        assert!(low == 0.0 && (150.0..250.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn differences_may_be_negative_and_so_may_their_intervals() {
        let found = fitted(&[&[-5.0, 3.0, -4.0], &[-50.0, -53.0, -47.0]], Scale::Difference);
        let (low, high) = found.value(0).unwrap().interval.unwrap();
        assert!(low < -5.0 && high > 3.0, "{low} {high}");
        assert_eq!(found.contrast(0, 1, 1, 0.03).unwrap().verdict, Verdict::Less);
    }

    #[test]
    fn fewer_than_three_trials_have_a_range_and_no_interval() {
        for scale in [Scale::Ratio, Scale::Count, PERCENT, Scale::Difference] {
            let found = fitted(&[&[1.0, 2.0], &[10.0, 11.0]], scale);
            let value = found.value(0).unwrap();
            assert_eq!((value.interval, value.range, value.trials), (None, (1.0, 2.0), 2), "{scale:?}");
            let apart = found.contrast(0, 1, 1, 0.03).unwrap();
            assert!(apart.interval.is_none(), "{apart:?}");
            assert!(matches!(apart.verdict, Verdict::CannotTell { trials_needed } if trials_needed >= 3), "{apart:?}");
        }
    }

    #[test]
    fn counts_that_are_close_together_have_a_ratio() {
        let found = fitted(&[&[100.0, 103.0, 98.0], &[50.0, 52.0, 51.0]], Scale::Count);
        let ratio = found.contrast(0, 1, 1, 0.03).unwrap();
        assert!(ratio.by == Measure::Ratio && (0.49..0.53).contains(&ratio.size), "{ratio:?}");
        assert_eq!(found.measure(), Measure::Ratio);
        let scattered = fitted(&[&[0.001, 3.0, 0.5], &[50.0, 52.0, 51.0]], Scale::Count);
        assert_eq!(scattered.measure(), Measure::Difference);
        assert!(scattered.value(0).unwrap().interval.unwrap().1 < 6.0, "{scattered:?}");
    }

    #[test]
    fn what_rounds_share_is_no_error_of_a_difference() {
        // The second cell has two more in every round.
        let found = fitted(&[&[10.0, 60.0, 35.0, 0.0], &[12.0, 62.0, 37.0, 2.0]], PERCENT);
        let apart = found.contrast(0, 1, 1, 0.03).unwrap();
        assert_eq!((apart.verdict, apart.size), (Verdict::More, 2.0));
    }
}
