//! Finding the first bad one of an ordered list by noisy measurements.
//!
//! Plain bisection decides each step by one comparison, and a single wrong one ends at the wrong place: with an effect
//! as large as the noise and 1,000 candidates it almost always does. Here every measurement changes the probability of
//! each place instead, by Bayes' rule, and the next one is made where those before and after are equally probable: no
//! measurement is final, and a doubtful candidate is simply measured again.
//!
//! A place's likelihood is that of all measurements, if candidates before it are like the good end, and those from it
//! on like the bad end. How the ends measure is estimated from their own trials; what is unknown about it widens the
//! predicted distributions (Student's t). Values are compared as logarithms, because noise grows with the level.
//!
//! Sources: Horstein 1963, "Sequential transmission using noiseless feedback"; Waeber, Frazier & Henderson 2013,
//! "Bisection search with noisy responses" (measuring at the median of the posterior); Gelman et al. 2013, Bayesian
//! Data Analysis, section 3.2 (predictions from unknown mean and variance).

use crate::comparison::{Verdict, change};
use crate::mean::mean;
use crate::scale::Scale;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextTrial {
    /// Measure both ends, in random order.
    Ends,
    /// Measure this candidate and both ends, in random order.
    Candidate(usize),
    /// It was found.
    Found,
    /// The ends do not differ: there is nothing to find.
    SameEnds,
    /// So many measurements were not enough.
    GaveUp,
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BisectionLimits {
    /// Probability of a place that is found. Below 1.
    pub sure: f64,
    /// The smallest difference between the ends that is worth a search, a share.
    pub margin: f64,
    /// Rounds of both ends before they count as equal.
    pub rounds_of_ends: usize,
    /// Measurements of candidates.
    pub trials: usize,
}

impl Default for BisectionLimits {
    fn default() -> BisectionLimits {
        BisectionLimits { sure: 0.95, margin: 0.03, rounds_of_ends: 30, trials: 1_000 }
    }
}

/// A search among `n` candidates: 0 is good, the last one is bad.
#[derive(Clone, Debug)]
pub struct Bisection {
    limits: BisectionLimits,
    /// Logarithms of the values of the ends.
    good: Vec<f64>,
    bad: Vec<f64>,
    /// Logarithms of the values of each candidate between them.
    values: Vec<Vec<f64>>,
    /// Candidates that cannot be measured.
    skipped: Vec<bool>,
    are_different: bool,
}

impl Bisection {
    /// 2 <= candidates
    pub fn new(candidates: usize, limits: BisectionLimits) -> Bisection {
        assert!(candidates >= 2, "a search needs two ends");
        Bisection {
            limits,
            good: Vec::new(),
            bad: Vec::new(),
            values: vec![Vec::new(); candidates],
            skipped: vec![false; candidates],
            are_different: false,
        }
    }

    /// Trials of candidates so far, without those of the ends.
    pub fn trials(&self) -> usize {
        self.values.iter().map(Vec::len).sum()
    }

    /// Probability that each candidate is the first bad one; they add up to 1, and the good end has none.
    pub fn posterior(&self) -> Vec<f64> {
        let n = self.values.len();
        let (good, bad) = (Prediction::of(&self.good, &self.bad), Prediction::of(&self.bad, &self.good));
        let of = |at: usize, by: &Option<Prediction>| -> f64 {
            by.as_ref().map_or(0.0, |by| self.values[at].iter().map(|value| by.log_density(*value)).sum())
        };
        // If the first bad one is `at`: good before it, bad from it on.
        let all_bad: f64 = (0..n).map(|at| of(at, &bad)).sum();
        let mut log = all_bad;
        let later = (1..n).map(|at| {
            log += of(at - 1, &good) - of(at - 1, &bad);
            log
        });
        let logs: Vec<f64> = [f64::NEG_INFINITY].into_iter().chain(later).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / sum).collect()
    }

    /// The most probable candidates that together have the wanted probability: the first and the last. More than one if
    /// those between them cannot be measured, or not yet known.
    pub fn range(&self) -> (usize, usize) {
        let posterior = self.posterior();
        let outside = (1.0 - self.limits.sure) / 2.0;
        let mut below = 0.0;
        let first = posterior.iter().position(|one| {
            below += one;
            below > outside
        });
        let mut above = 0.0;
        let last = posterior.iter().rposition(|one| {
            above += one;
            above > outside
        });
        (first.unwrap_or(1), last.unwrap_or(posterior.len() - 1))
    }

    /// What to measure next.
    pub fn next(&self) -> NextTrial {
        if !self.are_different {
            return if self.good.len() >= self.limits.rounds_of_ends { NextTrial::SameEnds } else { NextTrial::Ends };
        }
        let posterior = self.posterior();
        if self.groups(&posterior).iter().any(|(_, probability)| *probability >= self.limits.sure) {
            return NextTrial::Found;
        }
        if self.trials() >= self.limits.trials {
            return NextTrial::GaveUp;
        }
        // Measuring `at` tells places up to it from those after it.
        let mut before = 0.0;
        let mut best: Option<(f64, usize)> = None;
        let last = self.values.len() - 1;
        for (at, probability) in posterior.iter().enumerate().take(last).skip(1) {
            before += probability;
            let off = (before - 0.5).abs();
            if !self.skipped[at] && best.is_none_or(|(least, _)| off < least) {
                best = Some((off, at));
            }
        }
        best.map_or(NextTrial::Found, |(_, at)| NextTrial::Candidate(at))
    }

    /// Places that no measurement can tell apart, because all but the last of each group were skipped, with the
    /// probability of the group: first, last.
    fn groups(&self, posterior: &[f64]) -> Vec<((usize, usize), f64)> {
        let mut groups: Vec<((usize, usize), f64)> = Vec::new();
        let mut from = 1;
        let mut sum = 0.0;
        for (at, probability) in posterior.iter().enumerate().skip(1) {
            sum += probability;
            if !self.skipped[at] {
                groups.push(((from, at), sum));
                (from, sum) = (at + 1, 0.0);
            }
        }
        groups
    }

    /// The place that was found, and its probability: the first and last of candidates that cannot be told apart.
    pub fn found(&self) -> ((usize, usize), f64) {
        let groups = self.groups(&self.posterior());
        groups.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("the bad end is in a group")
    }

    /// A round of both ends. Values above 0.
    pub fn on_ends(&mut self, good: f64, bad: f64) {
        self.good.push(good.ln());
        self.bad.push(bad.ln());
        if !self.are_different {
            let values = |side: &[f64]| side.iter().map(|log| log.exp()).collect::<Vec<f64>>();
            let found = change(&values(&self.good), &values(&self.bad), self.limits.margin, Scale::Ratio);
            // Looking again after each round would find a difference in the end: so the interval must be clear of 1 by
            // a third of its distance.
            self.are_different = found.is_some_and(|found| {
                let clear = |low: f64, high: f64| low.ln().max(-high.ln()) > found.size.ln().abs() / 3.0;
                matches!(found.verdict, Verdict::More | Verdict::Less)
                    && found.size.ln().abs() >= self.limits.margin.ln_1p()
                    && found.interval.is_some_and(|(low, high)| clear(low, high))
            });
        }
    }

    /// A measurement of a candidate, above 0.
    pub fn on_trial(&mut self, candidate: usize, value: f64) {
        self.values[candidate].push(value.ln());
    }

    /// A candidate that cannot be measured, because it does not build, for example. The ends stay.
    pub fn skip(&mut self, candidate: usize) {
        let is_end = candidate == 0 || candidate == self.values.len() - 1;
        self.skipped[candidate] = !is_end;
    }

    /// The ratio of the bad end to the good one.
    pub fn effect(&self) -> f64 {
        (mean(&self.bad) - mean(&self.good)).exp()
    }
}

/// The distribution of the next value of one end.
struct Prediction {
    center: f64,
    /// Scale and degrees of freedom of Student's t.
    scale: f64,
    freedom: f64,
}

impl Prediction {
    /// From its own values; both ends have the same spread.
    fn of(own: &[f64], other: &[f64]) -> Option<Prediction> {
        let freedom = (own.len() + other.len()).checked_sub(2).filter(|freedom| *freedom >= 2)? as f64;
        let squares = |values: &[f64]| {
            let center = mean(values);
            values.iter().map(|value| (value - center).powi(2)).sum::<f64>()
        };
        // Values that are all alike have a spread nevertheless: that of their last digits.
        let variance = ((squares(own) + squares(other)) / freedom).max(1e-12);
        let scale = (variance * (1.0 + 1.0 / own.len() as f64)).sqrt();
        Some(Prediction { center: mean(own), scale, freedom })
    }

    /// Without what is the same for both ends. A far value says little: it may be an accident.
    fn log_density(&self, value: f64) -> f64 {
        let distance = (value - self.center) / self.scale;
        let freedom = self.freedom.min(10.0);
        -(freedom + 1.0) / 2.0 * (distance * distance / freedom).ln_1p() - self.scale.ln()
    }
}
