//! How far means of autocorrelated series are from the true mean.
//!
//! A series is modeled as a first order autoregression, alone or with independent noise. Correlation and noise are not
//! estimated: a grid of both is weighted by how well each explains the series, so that an interval also covers what is
//! unknown about them. This is what makes intervals of short series hold: any single estimate of a strong correlation
//! from a minute of seconds is too low, and an interval based on it too narrow. The weights come from the cosines of
//! the series, whose mean size each process predicts; the mean has no part in them. Long series are judged by their
//! lowest frequencies, on which means depend.
//!
//! Sources: Berger & Yang 1994, "Noninformative priors and Bayesian testing for the AR(1) model" (the reference prior
//! 1/√(1−φ²), here without its negative end); Whittle 1953 (likelihood from frequencies); Ahmed, Natarajan & Rao 1974
//! (cosines of an autoregression are nearly independent); Müller & Watson 2016, "Measuring uncertainty about long-run
//! predictions" (weighing shapes of the lowest frequencies). The experiments in `tests/coverage.rs` determine the
//! weights.

use std::array::from_fn;
use std::f64::consts::PI;
use std::sync::LazyLock;

use crate::student::{student, within};

/// Why the spread is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Too few values: they do not show their correlation.
    TooShort,
    /// Neighbors are so similar that the series has hardly any independent values.
    TooDependent,
}

/// A process with variance 1: an autoregression with this correlation, and independent noise.
#[derive(Clone, Copy)]
pub(crate) struct Autoregression {
    /// Correlation of neighbors in the autoregression. -1 < correlation < 1
    correlation: f64,
    /// Share of the variance that is noise. 0 <= noise < 1
    noise: f64,
}

impl Autoregression {
    /// The mean square of the cosine `j` >= 1 of a series of `length`.
    pub(crate) fn power(self, j: usize, length: usize) -> f64 {
        self.power_at((PI * j as f64 / length as f64).cos())
    }

    /// `cos`: of the angle of a cosine.
    fn power_at(self, cos: f64) -> f64 {
        let phi = self.correlation;
        (1.0 - self.noise) * (1.0 - phi * phi) / (1.0 - 2.0 * phi * cos + phi * phi) + self.noise
    }

    /// The mean square error of the mean of `length` values.
    pub(crate) fn error_of_mean(self, length: usize) -> f64 {
        let (phi, n) = (self.correlation, length as f64);
        let smooth = (1.0 + phi) / (1.0 - phi) - 2.0 * phi * (1.0 - phi.powf(n)) / (n * (1.0 - phi).powi(2));
        ((1.0 - self.noise) * smooth + self.noise) / n
    }

    /// The mean square error of the difference between the mean of the first `before` values and that of the `after`
    /// values that follow.
    pub(crate) fn error_of_step(self, before: usize, after: usize) -> f64 {
        let of_sum = |length: usize| (length as f64).powi(2) * self.error_of_mean(length);
        let (first, second) = (before as f64, after as f64);
        let common = (of_sum(before + after) - of_sum(before) - of_sum(after)) / 2.0;
        self.error_of_mean(before) + self.error_of_mean(after) - 2.0 * common / (first * second)
    }
}

/// Estimates of the process behind a series.
pub(crate) struct Spread {
    /// Probability, process, and the variance of the series under it.
    known: Vec<(f64, Autoregression, f64)>,
    /// Degrees of freedom of every such variance: the number of cosines.
    freedom: usize,
}

/// Shorter parts of a series are not compared with the rest at all.
const LENGTH_MIN: usize = 10;
/// More cosines hardly change an interval, and cost time.
const COSINES_MAX: usize = 240;
/// Processes less probable than this do not matter even for the strictest statements.
const PROBABILITY_MIN: f64 = 1e-6;
/// A series worth fewer independent values than this, more probably than not, says nothing about its mean.
const WORTH_MIN: f64 = 3.0;

/// Correlations are weighed in steps of equal prior weight between these.
const CORRELATIONS: (f64, f64) = (-0.8, 0.985);
const STEPS: usize = 32;
/// With weaker correlations, shares of noise cannot be distinguished from none.
const NOISY_FROM: f64 = 0.3;
const NOISES: [f64; 2] = [0.5, 0.8];
/// Prior weight of a process without noise.
const PURE: f64 = 0.88;

/// With the logarithms of their prior weights.
static PROCESSES: LazyLock<Vec<(f64, Autoregression)>> = LazyLock::new(|| {
    let (low, high) = (CORRELATIONS.0.asin(), CORRELATIONS.1.asin());
    let correlation = |step: usize| (low + (high - low) * step as f64 / STEPS as f64).sin();
    let of = |correlation: f64| {
        let noises = if correlation < NOISY_FROM { &NOISES[..0] } else { &NOISES[..] };
        let pure: f64 = if noises.is_empty() { 1.0 } else { PURE };
        let noisy = ((1.0 - PURE) / NOISES.len() as f64).ln();
        let with = move |noise: &f64| (noisy, Autoregression { correlation, noise: *noise });
        [(pure.ln(), Autoregression { correlation, noise: 0.0 })].into_iter().chain(noises.iter().map(with))
    };
    (0..=STEPS).map(correlation).flat_map(of).collect()
});

impl Spread {
    /// Spread of `series` around `center`, from its cosines from `first` >= 1 on. Cost: O(240 n).
    pub(crate) fn of(series: &[f64], center: f64, first: usize) -> Result<Spread, Missing> {
        let length = series.len();
        if length < LENGTH_MIN {
            return Err(Missing::TooShort);
        }
        let last = (length - 1).min(COSINES_MAX);
        let squares = squares_of_cosines(series, center, first, last);
        let freedom = squares.len();
        if squares.iter().sum::<f64>() <= 0.0 {
            return Ok(Spread { known: vec![(1.0, PROCESSES[0].1, 0.0)], freedom });
        }
        let angles: Vec<f64> = (first..=last).map(|j| (PI * j as f64 / length as f64).cos()).collect();
        let mut known: Vec<(f64, Autoregression, f64)> = PROCESSES
            .iter()
            .map(|&(prior, process)| {
                let powers = angles.iter().map(|cos| process.power_at(*cos));
                let (mut sum, mut logs, mut product) = (0.0, 0.0, 1.0f64);
                for (number, (square, power)) in squares.iter().zip(powers).enumerate() {
                    sum += square / power;
                    product *= power;
                    // Logarithms are slow, and a product has room for eight powers.
                    if number % 8 == 7 {
                        logs += product.ln();
                        product = 1.0;
                    }
                }
                logs += product.ln();
                (prior - logs / 2.0 - freedom as f64 / 2.0 * sum.ln(), process, sum / freedom as f64)
            })
            .collect();
        let best = known.iter().map(|one| one.0).fold(f64::NEG_INFINITY, f64::max);
        known.iter_mut().for_each(|one| one.0 = (one.0 - best).exp());
        let all: f64 = known.iter().map(|one| one.0).sum();
        known.iter_mut().for_each(|one| one.0 /= all);
        let worthless = known.iter().filter(|(_, process, _)| process.error_of_mean(length) * WORTH_MIN > 1.0);
        if worthless.map(|one| one.0).sum::<f64>() > 0.5 {
            return Err(Missing::TooDependent);
        }
        known.retain(|one| one.0 > PROBABILITY_MIN);
        Ok(Spread { known, freedom })
    }

    /// Spread of values that are known to be independent.
    pub(crate) fn independent(values: &[f64], center: f64) -> Spread {
        let freedom = values.len().saturating_sub(1).max(1);
        let squares: f64 = values.iter().map(|x| (x - center).powi(2)).sum();
        let process = Autoregression { correlation: 0.0, noise: 0.0 };
        Spread { known: vec![(1.0, process, squares / freedom as f64)], freedom }
    }

    /// The bound of an error at `level`, in either direction. `mean_square`: of the error, under a process of
    /// variance 1.
    pub(crate) fn reach(&self, level: f64, mean_square: impl Fn(Autoregression) -> f64) -> f64 {
        let errors = self.errors(mean_square);
        let largest = errors.iter().map(|error| error.1).fold(0.0, f64::max);
        if largest <= 0.0 {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, largest * student(level, self.freedom));
        for _ in 0..24 {
            let middle = (low + high) / 2.0;
            if self.beyond(middle, &errors) > 1.0 - level { low = middle } else { high = middle }
        }
        high
    }

    /// Whether an error stays within `reach` at `level`: that `reach` is not less than the one above, for a fraction of
    /// its cost.
    pub(crate) fn stays_within(&self, reach: f64, level: f64, mean_square: impl Fn(Autoregression) -> f64) -> bool {
        reach >= 0.0 && self.beyond(reach, &self.errors(mean_square)) <= 1.0 - level
    }

    /// For each process its probability and the size of the error.
    fn errors(&self, mean_square: impl Fn(Autoregression) -> f64) -> Vec<(f64, f64)> {
        let error = |(weight, process, variance): &(f64, Autoregression, f64)| {
            (*weight, (mean_square(*process) * variance).max(0.0).sqrt())
        };
        self.known.iter().map(error).collect()
    }

    /// The probability of an error beyond `reach`.
    fn beyond(&self, reach: f64, errors: &[(f64, f64)]) -> f64 {
        let beyond = |(weight, error): &(f64, f64)| match *error > 0.0 {
            true => weight * (1.0 - within(reach / error, self.freedom)),
            false => 0.0,
        };
        errors.iter().map(beyond).sum()
    }
}

/// The squares of the cosines `first` to `last` of a series, scaled so that those of independent values have their
/// variance as mean: the discrete cosine transform of the second kind.
fn squares_of_cosines(series: &[f64], center: f64, first: usize, last: usize) -> Vec<f64> {
    /// Values at a time: each step of a recurrence waits for the one before it.
    const VALUES: usize = 8;
    let length = series.len() as f64;
    let mut sums = vec![0.0; last + 1 - first];
    for (number, some) in series.chunks(VALUES).enumerate() {
        // What is missing in the last chunk adds nothing.
        let values: [f64; VALUES] = from_fn(|at| some.get(at).map_or(0.0, |value| value - center));
        // Chebyshev's recurrence, from the angle of each value.
        let angles: [f64; VALUES] = from_fn(|at| PI * ((number * VALUES + at) as f64 + 0.5) / length);
        let twice = angles.map(|angle| 2.0 * angle.cos());
        let mut before = angles.map(|angle| (angle * (first as f64 - 1.0)).cos());
        let mut cos = angles.map(|angle| (angle * first as f64).cos());
        for sum in &mut sums {
            // Not `from_fn`, which calls a function for each value.
            let (mut products, mut next) = ([0.0; VALUES], [0.0; VALUES]);
            for at in 0..VALUES {
                products[at] = values[at] * cos[at];
                next[at] = twice[at] * cos[at] - before[at];
            }
            for product in products {
                *sum += product;
            }
            (before, cos) = (cos, next);
        }
    }
    sums.into_iter().map(|sum| sum * sum * 2.0 / length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_mean_is_the_one_worked_out_by_hand() {
        // Three values that correlate at 0.5: (3 + 2 (0.5 + 0.5 + 0.25)) / 9.
        let process = Autoregression { correlation: 0.5, noise: 0.0 };
        assert!((process.error_of_mean(3) - 5.5 / 9.0).abs() < 1e-12, "{}", process.error_of_mean(3));
        let noisy = Autoregression { noise: 0.5, ..process };
        assert!((noisy.error_of_mean(3) - (5.5 / 9.0 + 3.0 / 9.0) / 2.0).abs() < 1e-12);
        assert_eq!(Autoregression { correlation: 0.0, noise: 0.0 }.error_of_mean(25), 0.04);
    }

    #[test]
    fn cosines_keep_the_sum_of_squares_and_find_a_cosine() {
        let series: Vec<f64> = (0..50).map(|t| f64::from(t * t % 7)).collect();
        let center = series.iter().sum::<f64>() / 50.0;
        let squares: f64 = series.iter().map(|x| (x - center).powi(2)).sum();
        let cosines: f64 = squares_of_cosines(&series, center, 1, 49).iter().sum();
        assert!((squares - cosines).abs() < 1e-9, "{squares} {cosines}");
        let wave: Vec<f64> = (0..50).map(|t| (PI * 3.0 * (f64::from(t) + 0.5) / 50.0).cos()).collect();
        let found = squares_of_cosines(&wave, 0.0, 2, 5);
        assert!((found[1] - 25.0).abs() < 1e-9 && found[0].abs() + found[2].abs() + found[3].abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_series_without_any_spread_is_known_well() {
        let spread = Spread::of(&[7.0; 40], 7.0, 1).unwrap();
        assert_eq!(spread.reach(0.95, |process| process.error_of_mean(40)), 0.0);
    }
}
