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
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use crate::cosines::Cosines;
use crate::recent::Recent;
use crate::student::within;

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
        let (above, below) = self.power_at((PI * j as f64 / length as f64).cos());
        above / below
    }

    /// The power at an angle, given by its cosine, as a fraction.
    fn power_at(self, cos: f64) -> (f64, f64) {
        let phi = self.correlation;
        let below = 1.0 - 2.0 * phi * cos + phi * phi;
        ((1.0 - self.noise) * (1.0 - phi * phi) + self.noise * below, below)
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

/// The bound of an error is known to about this share of it.
const REACH_ERROR: f64 = 1e-7;
/// More steps than a search for it ever takes.
const STEPS_MAX: usize = 60;

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

/// The mean squares of cosines that the processes predict.
struct Powers {
    /// Their inverses, those of one cosine after those of another.
    inverses: Vec<f64>,
    /// For each process, the sum of their logarithms.
    logarithms: Vec<f64>,
}

thread_local! {
    /// By the length of a series and its first cosine.
    static EXPECTED: Recent<(usize, usize), Powers> = Recent::default();
}

impl Powers {
    /// Of these cosines of a series of `length`.
    fn of(length: usize, cosines: RangeInclusive<usize>) -> Powers {
        /// Logarithms are slow, and a product has room for this many factors, which are between 2e-4 and 4.
        const FACTORS: usize = 64;
        let mut inverses = Vec::with_capacity(cosines.clone().count() * PROCESSES.len());
        let mut logarithms = vec![0.0; PROCESSES.len()];
        let angles: Vec<f64> = cosines.map(|j| (PI * j as f64 / length as f64).cos()).collect();
        for angles in angles.chunks(FACTORS) {
            let mut products = vec![(1.0f64, 1.0f64); PROCESSES.len()];
            for angle in angles {
                for ((_, process), product) in PROCESSES.iter().zip(&mut products) {
                    let (above, below) = process.power_at(*angle);
                    inverses.push(below / above);
                    *product = (product.0 * above, product.1 * below);
                }
            }
            for ((above, below), logarithm) in products.into_iter().zip(&mut logarithms) {
                *logarithm += above.ln() - below.ln();
            }
        }
        Powers { inverses, logarithms }
    }

    /// For each process, the sum of the squares of a series divided by what it predicts.
    fn sums_of(&self, squares: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; PROCESSES.len()];
        for (square, inverses) in squares.iter().zip(self.inverses.chunks_exact(PROCESSES.len())) {
            for (sum, inverse) in sums.iter_mut().zip(inverses) {
                *sum += square * inverse;
            }
        }
        sums
    }
}

impl Spread {
    /// Spread of `series` around `center`, from its cosines from `first` >= 1 on.
    /// Cost: that of its cosines, O(240 n) at most.
    pub(crate) fn of(series: &[f64], center: f64, first: usize) -> Result<Spread, Missing> {
        Spread::of_similar(series, center, first, &mut None)
    }

    /// As `of`. `known`: the cosines of a series that may have many values in the same places, then those of this one.
    pub(crate) fn of_similar(
        series: &[f64],
        center: f64,
        first: usize,
        known: &mut Option<Cosines>,
    ) -> Result<Spread, Missing> {
        let length = series.len();
        if length < LENGTH_MIN {
            return Err(Missing::TooShort);
        }
        let last = (length - 1).min(COSINES_MAX);
        let freedom = last - first + 1;
        let constant = || Spread { known: vec![(1.0, PROCESSES[0].1, 0.0)], freedom };
        // Such as the many counters of a server that stood still.
        if series.iter().all(|value| *value == center) {
            return Ok(constant());
        }
        let cosines = match known {
            Some(known) if known.length() == length => {
                known.change_to(series, center);
                known
            }
            _ => known.insert(Cosines::of(series, center, last)),
        };
        let squares = cosines.squares(first);
        if squares.iter().sum::<f64>() <= 0.0 {
            return Ok(constant());
        }
        let powers = EXPECTED.with(|known| known.get((length, first), || Powers::of(length, first..=last)));
        let mut known: Vec<(f64, Autoregression, f64)> = PROCESSES
            .iter()
            .zip(powers.sums_of(&squares).into_iter().zip(&powers.logarithms))
            .map(|(&(prior, process), (sum, logs))| {
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
        let excess = |reach: f64| self.beyond(reach, &errors) - (1.0 - level);
        let (mut low, mut high) = ((0.0, excess(0.0)), (2.0 * largest, excess(2.0 * largest)));
        while high.1 > 0.0 {
            (low, high) = (high, (2.0 * high.0, excess(2.0 * high.0)));
        }
        // False position, in which an end that stays counts half (the Illinois algorithm): a dozen steps.
        let mut stays = 0;
        for _ in 0..STEPS_MAX {
            let at = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
            let middle = (at, excess(at));
            if middle.1.abs() <= REACH_ERROR * (1.0 - level) || high.0 - low.0 <= REACH_ERROR * largest {
                return at;
            }
            if middle.1 > 0.0 {
                low = middle;
                high.1 *= if stays > 0 { 0.5 } else { 1.0 };
                stays = 1;
            } else {
                high = middle;
                low.1 *= if stays < 0 { 0.5 } else { 1.0 };
                stays = -1;
            }
        }
        high.0
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
        const TOGETHER: usize = 8;
        let mut sum = 0.0;
        for errors in errors.chunks(TOGETHER) {
            // What is missing in the last chunk, or never errs, is not asked.
            let of = |at: usize| errors.get(at).map(|(_, error)| *error).filter(|error| *error > 0.0);
            let within =
                within(from_fn::<f64, TOGETHER, _>(|at| of(at).map_or(0.0, |error| reach / error)), self.freedom);
            for ((weight, error), within) in errors.iter().zip(within) {
                if *error > 0.0 {
                    sum += weight * (1.0 - within);
                }
            }
        }
        sum
    }
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
    fn a_series_without_any_spread_is_known_well() {
        let spread = Spread::of(&[7.0; 40], 7.0, 1).unwrap();
        assert_eq!(spread.reach(0.95, |process| process.error_of_mean(40)), 0.0);
    }
}
