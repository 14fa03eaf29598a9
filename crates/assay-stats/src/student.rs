//! Student's t distribution.

use std::array::from_fn;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

/// The `t` that |T| with `freedom` degrees of freedom does not exceed with probability `level`, to nine digits.
/// 1 <= freedom, 0 < level < 1. Cost: O(freedom), so callers keep it in the hundreds.
pub(crate) fn student(level: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    // In the angle whose tangent is t/√freedom, which is bounded.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let [within] = within_angles([middle], freedom);
        if within < level { low = middle } else { high = middle }
    }
    low.tan() * (freedom as f64).sqrt()
}

/// The probabilities that |T| with `freedom` degrees of freedom does not exceed each `t`. Several at a time take half
/// as long.
pub(crate) fn within<const N: usize>(t: [f64; N], freedom: usize) -> [f64; N] {
    within_angles(t.map(|t| (t / (freedom as f64).sqrt()).atan()), freedom)
}

/// For each `angle` = atan(t/√freedom). Source: Abramowitz & Stegun 1964, 26.7.3 and 26.7.4.
fn within_angles<const N: usize>(angles: [f64; N], freedom: usize) -> [f64; N] {
    if angles == [0.0; N] {
        return angles;
    }
    let (sin_cos, odd) = (angles.map(f64::sin_cos), !freedom.is_multiple_of(2));
    let cos = sin_cos.map(|(_, cos)| cos);
    let mut terms = if odd { cos } else { [1.0; N] };
    let mut sums = [0.0; N];
    let mut i = if odd { 3 } else { 2 };
    while i <= freedom {
        // One division for all of them.
        let factor = (i - 1) as f64 / i as f64;
        for at in 0..N {
            sums[at] += terms[at];
            terms[at] *= cos[at] * cos[at] * factor;
        }
        i += 2;
    }
    from_fn(|at| {
        let product = sin_cos[at].0 * sums[at];
        if odd { FRAC_2_PI * (angles[at] + product) } else { product }
    })
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, StudentsT};

    use super::*;

    #[test]
    fn probabilities_and_quantiles_are_those_of_another_implementation() {
        for freedom in [1, 2, 3, 4, 7, 10, 29, 30, 99, 250, 601] {
            let other = StudentsT::new(0.0, 1.0, freedom as f64).unwrap();
            for t in [0.0, 0.01, 0.5, 1.0, 1.96, 3.0, 12.0, 200.0] {
                let wanted = 2.0 * other.cdf(t) - 1.0;
                let [found] = within([t], freedom);
                assert!((found - wanted).abs() < 1e-9, "{t} {freedom}: {found}");
                assert_eq!(within([0.3, t, 7.0, t], freedom), [0.3, t, 7.0, t].map(|t| within([t], freedom)[0]));
            }
            for level in [0.01, 0.5, 0.9, 0.95, 0.99, 0.999] {
                let found = student(level, freedom);
                let reached = 2.0 * other.cdf(found) - 1.0;
                assert!((reached - level).abs() < 1e-9, "{level} {freedom}: {found} reaches {reached}");
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Abramowitz & Stegun 1964, table 26.10.
        for (level, freedom, t) in [
            (0.95, 1, 12.706),
            (0.95, 2, 4.303),
            (0.95, 4, 2.776),
            (0.95, 5, 2.571),
            (0.99, 10, 3.169),
            (0.90, 30, 1.697),
            (0.95, 120, 1.980),
        ] {
            assert!((student(level, freedom) - t).abs() < 6e-4, "{level} {freedom}: {}", student(level, freedom));
        }
    }
}
