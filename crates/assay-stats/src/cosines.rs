//! The lowest cosines of a series: its discrete cosine transform of the second kind.
//!
//! A series is folded: its even cosines are those of the sums of values that are as far from either end, and its odd
//! ones follow from those of their differences. If its length is even, these are two series with half the values and
//! half the cosines, for a quarter of the cost each, and are folded again: four times for an hour of seconds. The rest
//! is summed up.
//!
//! Source: Lee 1984, "A new algorithm to compute the discrete cosine transform".

use std::array::from_fn;
use std::f64::consts::PI;
use std::iter::successors;

use crate::recent::Recent;

thread_local! {
    static FIRST_COSINES: Recent<usize, Vec<Vec<f64>>> = Recent::default();
}

/// The first cosine at each place in the first half of a series of this length, then of the series that it is folded
/// to, and so on.
fn first_cosines(length: usize) -> Vec<Vec<f64>> {
    let lengths = successors(Some(length), |length| length.is_multiple_of(2).then_some(length / 2));
    let cosines = |length: usize| {
        let cos = |at: usize| (PI * (at as f64 + 0.5) / length as f64).cos();
        (0..length.div_ceil(2)).map(cos).collect()
    };
    lengths.map(cosines).collect()
}

/// The lowest cosines of a series.
pub(crate) struct Cosines {
    series: Vec<f64>,
    /// From the one that is one everywhere, which alone depends on the level of the series.
    sums: Vec<f64>,
}

impl Cosines {
    /// Up to the cosine `last` < length. `center`: about the mean, which only makes rounding errors smaller. Cost: half
    /// a multiplication per value and cosine and a quarter of one for the cosines, and half of that for each time that
    /// the length can be halved.
    pub(crate) fn of(series: &[f64], center: f64, last: usize) -> Cosines {
        let values: Vec<f64> = series.iter().map(|value| value - center).collect();
        let cosines = FIRST_COSINES.with(|known| known.get(series.len(), || first_cosines(series.len())));
        Cosines { series: series.to_vec(), sums: sums_of_cosines(&values, &cosines, last + 1) }
    }

    /// Length of the series.
    pub(crate) fn length(&self) -> usize {
        self.series.len()
    }

    /// As of another series of the same length. Cost: two multiplications per cosine and value that differs, unless
    /// these are many.
    pub(crate) fn change_to(&mut self, series: &[f64], center: f64) {
        /// Values at a time, as below.
        const VALUES: usize = 8;
        /// If more than one of so many values differs, cosines are summed up anew.
        const MANY: usize = 8;
        let differs = |at: &usize| series[*at] != self.series[*at];
        let places: Vec<usize> = (0..series.len()).filter(differs).collect();
        if places.len() > series.len() / MANY {
            *self = Cosines::of(series, center, self.sums.len() - 1);
            return;
        }
        let known = FIRST_COSINES.with(|known| known.get(series.len(), || first_cosines(series.len())));
        let first = |at: usize| match known[0].get(at) {
            Some(cos) => *cos,
            None => -known[0][series.len() - 1 - at],
        };
        let mut sums = vec![[0.0; VALUES]; self.sums.len()];
        for places in places.chunks(VALUES) {
            let change = |at: usize| places.get(at).map_or(0.0, |place| series[*place] - self.series[*place]);
            let changes: [f64; VALUES] = from_fn(change);
            let mut cos: [f64; VALUES] = from_fn(|at| places.get(at).map_or(0.0, |place| first(*place)));
            let (twice, mut before) = (cos.map(|cos| 2.0 * cos), [1.0; VALUES]);
            for sum in &mut sums[1..] {
                let mut next = [0.0; VALUES];
                for at in 0..VALUES {
                    sum[at] += changes[at] * cos[at];
                    next[at] = twice[at] * cos[at] - before[at];
                }
                (before, cos) = (cos, next);
            }
        }
        self.sums.iter_mut().zip(sums).for_each(|(sum, more)| *sum += more.iter().sum::<f64>());
        self.series.copy_from_slice(series);
    }

    /// The squares of the cosines from `first` >= 1 on, scaled so that those of independent values have their variance
    /// as mean.
    pub(crate) fn squares(&self, first: usize) -> Vec<f64> {
        self.sums[first..].iter().map(|sum| sum.powi(2) * 2.0 / self.length() as f64).collect()
    }
}

/// The sums of `values` times each of their first `number` cosines, from that which is one everywhere.
fn sums_of_cosines(values: &[f64], cosines: &[Vec<f64>], number: usize) -> Vec<f64> {
    /// To fold a series again costs as much as so many of its cosines.
    const FEW: usize = 6;
    let (cosines, halved) = cosines.split_first().expect("a length has cosines");
    let (begin, end) = values.split_at(values.len().div_ceil(2));
    let is_odd = begin.len() > end.len();
    let both = || begin.iter().zip(end.iter().rev());
    let mut even: Vec<f64> = both().map(|(one, other)| one + other).collect();
    let mut odd: Vec<f64> = both().zip(cosines).map(|((one, other), cos)| 2.0 * cos * (one - other)).collect();
    if is_odd {
        even.push(begin[begin.len() - 1]);
        odd.push(0.0);
    }
    let (even, odd) = match halved.is_empty() || number <= FEW {
        true => sums_of_even_cosines(&even, &odd, cosines, number.div_ceil(2)),
        false => {
            (sums_of_cosines(&even, halved, number.div_ceil(2)), sums_of_cosines(&odd, halved, number.div_ceil(2)))
        }
    };
    // 2 cos θ cos 2kθ = cos (2k+1)θ + cos (2k−1)θ, of which the first two are the same.
    let mut before = odd[0] / 2.0;
    let mut sums = Vec::with_capacity(number + 1);
    for (even, both) in even.into_iter().zip(odd) {
        before = both - before;
        sums.extend([even, before]);
    }
    sums.truncate(number);
    sums
}

/// The sums of some values, and of others at the same angles, times every second cosine of them, from that which is
/// one. `cosines`: the first ones.
fn sums_of_even_cosines(some: &[f64], others: &[f64], cosines: &[f64], number: usize) -> (Vec<f64>, Vec<f64>) {
    /// Values at a time: each step of a recurrence waits for the one before it.
    const VALUES: usize = 8;
    // What is missing in the last chunk adds nothing.
    let eight = |values: &[f64]| from_fn::<f64, VALUES, _>(|at| values.get(at).copied().unwrap_or(0.0));
    let mut sums = vec![[[0.0; VALUES]; 2]; number];
    for ((some, others), cosines) in some.chunks(VALUES).zip(others.chunks(VALUES)).zip(cosines.chunks(VALUES)) {
        let (some, others, first) = (eight(some), eight(others), eight(cosines));
        // Chebyshev's recurrence.
        let twice = first.map(|cos| 4.0 * cos * cos - 2.0);
        let (mut before, mut cos) = (first.map(|cos| 2.0 * cos * cos - 1.0), [1.0; VALUES]);
        for [of_some, of_others] in &mut sums {
            // Not `from_fn`, which calls a function for each value.
            let mut next = [0.0; VALUES];
            for at in 0..VALUES {
                of_some[at] += some[at] * cos[at];
                of_others[at] += others[at] * cos[at];
                next[at] = twice[at] * cos[at] - before[at];
            }
            (before, cos) = (cos, next);
        }
    }
    let sum = |[some, others]: [[f64; VALUES]; 2]| (some.iter().sum::<f64>(), others.iter().sum::<f64>());
    sums.into_iter().map(sum).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_keep_the_sum_of_squares() {
        let series: Vec<f64> = (0..50).map(|t| f64::from(t * t % 7)).collect();
        let center = series.iter().sum::<f64>() / 50.0;
        let squares: f64 = series.iter().map(|x| (x - center).powi(2)).sum();
        let cosines: f64 = Cosines::of(&series, center, 49).squares(1).iter().sum();
        assert!((squares - cosines).abs() < 1e-9, "{squares} {cosines}");
    }

    #[test]
    fn cosines_are_those_of_the_definition_however_often_a_length_can_be_halved() {
        let series: Vec<f64> = (0..720).map(|t| f64::from(t * t % 17)).collect();
        for length in [2, 3, 11, 12, 13, 16, 40, 49, 50, 256, 720] {
            let series = &series[..length];
            let direct = |j: usize| {
                let cos = |t: usize| (PI * j as f64 * (t as f64 + 0.5) / length as f64).cos();
                series.iter().enumerate().map(|(t, x)| (x - 8.0) * cos(t)).sum::<f64>()
            };
            for (j, square) in (1..length).zip(Cosines::of(series, 8.0, length - 1).squares(1)) {
                let wanted = direct(j).powi(2) * 2.0 / length as f64;
                assert!((wanted - square).abs() < 1e-9 * (1.0 + wanted), "{j} of {length}: {square} {wanted}");
            }
        }
    }

    #[test]
    fn cosines_follow_the_values_that_change() {
        let series: Vec<f64> = (0..300).map(|t| f64::from(t * t % 17)).collect();
        let mut cosines = Cosines::of(&series, 8.0, 99);
        for changed in [0..0, 0..1, 140..160, 270..300, 10..290] {
            let mut series = cosines.series.clone();
            changed.for_each(|at| series[at] += (at % 5) as f64 - 1.0);
            cosines.change_to(&series, 8.0);
            for (one, other) in cosines.squares(1).into_iter().zip(Cosines::of(&series, 8.0, 99).squares(1)) {
                assert!((one - other).abs() < 1e-9 * (1.0 + other), "{one} {other}");
            }
        }
    }

    #[test]
    fn a_cosine_is_found() {
        let wave: Vec<f64> = (0..50).map(|t| (PI * 3.0 * (f64::from(t) + 0.5) / 50.0).cos()).collect();
        let found = Cosines::of(&wave, 0.0, 5).squares(2);
        assert!((found[1] - 25.0).abs() < 1e-9 && found[0].abs() + found[2].abs() + found[3].abs() < 1e-9, "{found:?}");
    }
}
