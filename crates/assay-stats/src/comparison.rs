//! Baseline against candidate: size of the change, its confidence interval, and the verdict.
//!
//! The change is the median of all ratios candidate/baseline over pairs of trials, and its interval comes from the
//! exact distribution of Mann and Whitney's count of pairs: it assumes only that both sides have the same distribution
//! up to the factor, and holds for few trials, where bootstrap intervals are too narrow. Any single trial of one side
//! may be an outlier without changing the verdict. Where there is no ratio (`scale.rs`), all of this is said of the
//! differences candidate − baseline instead.
//!
//! Readers see the medians of both sides beside the change, so it must not have the opposite sign. Without an interval,
//! the change is therefore that of the medians. With one, if pairs and medians disagree about the sign, the change is
//! none and the interval includes it.
//!
//! The number of trials is that for a change as large as the margin, whatever was observed: the observed one is what
//! chance made of it. The spread is known from few trials only, so that the number is larger than with a known spread:
//! as large that the margin is found four times out of five on the average over what few trials say about the spread.
//!
//! Sources: Hodges & Lehmann 1963 (estimate); Mann & Whitney 1947 (exact distribution); Bauer 1972 (interval); Vargha &
//! Delaney 2000 (effect size); Noether 1987 (number of trials, here by the rank test's efficiency of 3/π); Abramowitz &
//! Stegun 1964, 26.7.10 (noncentral t, for the spread that is estimated). `tests/coverage.rs` measures the power.

use std::f64::consts::PI;

use crate::mean::{mean, median};
use crate::scale::{Measure, Scale};
use crate::{Estimate, LEVEL};

/// The estimated change between two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// What `size` and `interval` are.
    pub by: Measure,
    /// Ratio of candidate to baseline, where 1.03 is 3 % more, or the difference. Never on the other side of no change
    /// than the medians. Finite.
    pub size: f64,
    /// Its interval, which contains the size; `None` if a side has fewer trials than any interval needs.
    pub interval: Option<(f64, f64)>,
    /// Share of the pairs of trials in which the candidate's value is larger, ties counted half: 0.5 is no effect,
    /// 0 and 1 are complete separation.
    pub superiority: f64,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The candidate's values are larger.
    More,
    /// The candidate's values are smaller.
    Less,
    /// Any difference is smaller than the margin.
    NoDifference,
    /// There may be a difference larger than the margin, in either direction.
    CannotTell {
        /// Trials per side that would detect a change as large as the margin four times out of five, given the
        /// observed spread; at least `TRIALS_MIN`, more than there were, and at most `TRIALS_MAX`.
        trials_needed: usize,
    },
}

/// With fewer trials per side, even complete separation may be chance: with four and four it has a probability of 1/35.
pub const TRIALS_MIN: usize = 4;
/// Nobody runs more; a spread that needs them is a different problem.
pub const TRIALS_MAX: usize = 10_000;
/// The default for the smallest difference that matters.
pub const MARGIN_DEFAULT: f64 = 0.03;
/// More pairs are judged by the normal approximation of their count.
const EXACT_PAIRS_MAX: usize = 2_500;
/// Normal quantile of `LEVEL`, two-sided.
const SURE: f64 = 1.959_964;
/// Normal quantile of 0.8: a difference is detected four times out of five.
pub(crate) const FOUND: f64 = 0.841_621;

/// Compares one value per trial (not per transaction) of both sides, all in the same unit.
///
/// `margin`: the smallest change that matters, a share of the baseline's median, above 0. `None` when a side is empty
/// or has a value that is not finite. By their ratio, as far as `scale` and the values have one; a few zeros among
/// rates and times do no harm. Where both sides differ by one true factor or difference, `More` or `Less` is wrong in
/// less than 5 of 100 comparisons. Cost: O(n m log n m).
pub fn change(baseline: &[f64], candidate: &[f64], margin: f64, scale: Scale) -> Option<Change> {
    let is_known = |side: &[f64]| !side.is_empty() && side.iter().all(|value| value.is_finite());
    if !is_known(baseline) || !is_known(candidate) {
        return None;
    }
    let both = || baseline.iter().chain(candidate).copied();
    let has_ratio = match scale {
        Scale::Ratio => both().all(|value| value >= 0.0),
        Scale::Count => both().all(|value| value > 0.0),
        Scale::Share { .. } | Scale::Difference => false,
    };
    let ratio = has_ratio.then(|| compared(baseline, candidate, margin, Measure::Ratio)).flatten();
    ratio.or_else(|| compared(baseline, candidate, margin, Measure::Difference))
}

/// `None`: there is none of these values by this measure.
fn compared(baseline: &[f64], candidate: &[f64], margin: f64, by: Measure) -> Option<Change> {
    let mut apart: Vec<f64> = candidate.iter().flat_map(|c| baseline.iter().map(move |b| by.apart(*b, *c))).collect();
    apart.sort_by(f64::total_cmp);
    let pairs = apart.len();
    let of_pairs = (apart[(pairs - 1) / 2] + apart[pairs / 2]) / 2.0;
    let of_medians = by.apart(median(baseline), median(candidate));
    let interval = tail(baseline.len(), candidate.len()).map(|tail| (apart[tail], apart[pairs - 1 - tail]));
    let (middle, interval) = match interval {
        None => (of_medians, None),
        Some((low, high)) if of_pairs * of_medians < 0.0 => (0.0, Some((low.min(0.0), high.max(0.0)))),
        Some(interval) => (of_pairs, Some(interval)),
    };
    let is_known = |value: f64| by.size(value).is_finite();
    if !is_known(middle) || interval.is_some_and(|(low, high)| !is_known(low) || !is_known(high)) {
        return None;
    }
    let larger = apart.iter().filter(|apart| **apart > 0.0).count() as f64;
    let equal = apart.iter().filter(|apart| **apart == 0.0).count() as f64;
    let matters = match by {
        Measure::Ratio => margin.ln_1p(),
        Measure::Difference => margin * median(baseline).abs(),
    };
    let verdict = match interval {
        Some((low, _)) if low > 0.0 => Verdict::More,
        Some((_, high)) if high < 0.0 => Verdict::Less,
        Some((low, high)) if low >= -matters && high <= matters => Verdict::NoDifference,
        _ => Verdict::CannotTell { trials_needed: trials_needed(baseline, candidate, matters, by) },
    };
    Some(Change {
        by,
        size: by.size(middle),
        interval: interval.map(|(low, high)| (by.size(low), by.size(high))),
        superiority: (larger + equal / 2.0) / pairs as f64,
        verdict,
    })
}

impl Measure {
    /// How far two values are apart on the scale on which this is a sum: 0 for equal ones.
    fn apart(self, baseline: f64, candidate: f64) -> f64 {
        match self {
            _ if baseline == candidate => 0.0,
            Measure::Ratio => (candidate / baseline).ln(),
            Measure::Difference => candidate - baseline,
        }
    }

    /// What is so far apart, as reports show it.
    fn size(self, apart: f64) -> f64 {
        match self {
            Measure::Ratio => apart.exp(),
            Measure::Difference => apart,
        }
    }
}

impl Change {
    /// The size with its interval, where there is one.
    pub fn estimate(&self) -> Option<Estimate> {
        self.interval.map(|(low, high)| Estimate { value: self.size, low, high })
    }
}

/// How many ratios to leave out at each end of the sorted ones; `None` if the range of all holds less than `LEVEL`.
fn tail(n: usize, m: usize) -> Option<usize> {
    let allowed = (1.0 - LEVEL) / 2.0;
    if n * m > EXACT_PAIRS_MAX {
        let (n, m) = (n as f64, m as f64);
        let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
        return Some((n * m / 2.0 - SURE * deviation).floor() as usize);
    }
    // P(U <= k) for k from 0: the interval from the (k+1)th ratio on errs below with this probability.
    let mut below = 0.0;
    let counts = pair_counts(n, m);
    let all: f64 = counts.iter().sum();
    let fits = counts.iter().take_while(|count| {
        below += **count / all;
        below <= allowed
    });
    fits.count().checked_sub(1)
}

/// In how many orders of n and m values the pairs with the larger value on the first side are 0, 1, …, n·m. The largest
/// of all values belongs to the first side, and makes m such pairs, or to the second, and makes none.
fn pair_counts(n: usize, m: usize) -> Vec<f64> {
    // By how many values the second side has.
    let mut counts = vec![vec![1.0]; m + 1];
    for i in 1..=n {
        for j in 1..=m {
            let mut of = vec![0.0; i * j + 1];
            counts[j].iter().enumerate().for_each(|(pairs, count)| of[pairs + j] += count);
            counts[j - 1].iter().enumerate().for_each(|(pairs, count)| of[pairs] += count);
            counts[j] = of;
        }
    }
    counts.swap_remove(m)
}

/// Trials per side that would detect sides that are so far apart, given the spread within the sides.
fn trials_needed(baseline: &[f64], candidate: &[f64], apart: f64, by: Measure) -> usize {
    let squares = |side: &[f64]| {
        let each: Vec<f64> = side.iter().map(|value| if by == Measure::Ratio { value.ln() } else { *value }).collect();
        let center = mean(&each);
        each.iter().map(|one| (one - center).powi(2)).sum::<f64>()
    };
    let least = TRIALS_MIN.max(baseline.len().min(candidate.len()) + 1);
    let freedom = baseline.len() + candidate.len() - 2;
    let sum = squares(baseline) + squares(candidate);
    if freedom == 0 || sum == 0.0 {
        return least;
    }
    let variance = sum / freedom as f64;
    let wanted = 2.0 * deviations_found(freedom, SURE, FOUND).powi(2) * variance / apart.powi(2) * PI / 3.0 + 1.0;
    // A zero has no logarithm, and a share of zero is none.
    if wanted.is_finite() { (wanted.ceil() as usize).clamp(least, TRIALS_MAX) } else { TRIALS_MAX }
}

/// How many standard errors a difference must have to be found four times out of five, if the error was estimated with
/// so many degrees of freedom. It is found when it is `sure` errors away from none, and `sure` + `found` would do if
/// the error were known: the quantile of the noncentral t distribution around `sure` (26.7.10 solved for t).
pub(crate) fn deviations_found(freedom: usize, sure: f64, found: f64) -> f64 {
    let freedom = freedom.max(1) as f64;
    let (shrunk, wide) = (1.0 - 0.25 / freedom, FOUND * FOUND / (2.0 * freedom));
    let square = shrunk * shrunk - wide;
    let root = (shrunk * sure).powi(2) - square * (sure * sure - found * found);
    (shrunk * sure + root.max(0.0).sqrt()) / square
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_leave_out_as_many_pairs_as_the_tables_say() {
        // Mann & Whitney's critical values at 5 %, two-sided: U of 0, 2, 5, 8, 23.
        let critical = [(4, 4), (5, 5), (6, 6), (7, 7), (10, 10)].map(|(n, m)| tail(n, m));
        assert_eq!(critical, [Some(0), Some(2), Some(5), Some(8), Some(23)]);
        assert_eq!([(3, 3), (1, 9), (2, 5), (3, 4)].map(|(n, m)| tail(n, m)), [None; 4]);
        assert_eq!((tail(3, 5), tail(2, 8)), (Some(0), Some(0)));
        assert_eq!(pair_counts(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn large_sides_are_judged_alike_exactly_and_by_approximation() {
        let exact = tail(50, 50).unwrap() as f64;
        let (n, m) = (50.0f64, 50.0f64);
        let normal = n * m / 2.0 - SURE * (n * m * (n + m + 1.0) / 12.0).sqrt();
        assert!((exact - normal).abs() < 2.0, "{exact} {normal}");
        assert_eq!(pair_counts(50, 50).iter().sum::<f64>().log10().round(), 29.0);
        assert!(tail(51, 50).unwrap() > tail(50, 50).unwrap());
    }

    #[test]
    fn a_clear_difference_is_found_with_four_trials() {
        let found = change(&[100.0, 101.0, 99.0, 100.0], &[110.0, 111.0, 109.0, 110.0], 0.03, Scale::Ratio).unwrap();
        assert_eq!((found.verdict, found.superiority), (Verdict::More, 1.0));
        assert!((found.size - 1.1).abs() < 1e-3, "{found:?}");
        assert!((found.interval.unwrap().0 - 109.0 / 101.0).abs() < 1e-12);
        let found = change(&[110.0, 111.0, 109.0, 110.0], &[100.0, 101.0, 99.0, 100.0], 0.03, Scale::Ratio).unwrap();
        assert_eq!((found.verdict, found.superiority), (Verdict::Less, 0.0));
    }

    #[test]
    fn sides_that_agree_within_the_margin_have_no_difference() {
        let side = [100.0, 100.4, 99.6, 100.2, 99.8];
        let found = change(&side, &side, 0.03, Scale::Ratio).unwrap();
        assert_eq!((found.verdict, found.size, found.superiority), (Verdict::NoDifference, 1.0, 0.5));
    }

    #[test]
    fn few_trials_cannot_tell_and_say_how_many_could() {
        let one = change(&[100.0], &[80.0], 0.03, Scale::Ratio).unwrap();
        assert_eq!((one.interval, one.verdict), (None, Verdict::CannotTell { trials_needed: 4 }));
        // Deviation 0.1, from four degrees of freedom: 2 (3.55)² 0.01 / 0.0296² × 1.047 + 1, instead of 2.80² if it
        // were known.
        let noisy = [100.0 * 0.1f64.exp(), 100.0, 100.0 * (-0.1f64).exp()];
        let found = change(&noisy, &noisy, 0.03, Scale::Ratio).unwrap();
        let Verdict::CannotTell { trials_needed } = found.verdict else { panic!("{found:?}") };
        assert!((290..=320).contains(&trials_needed), "{trials_needed}");
        // That is what a change as large as the margin takes, however large the one is that was seen.
        let found = change(&noisy, &noisy.map(|value| 4.0 * value), 0.03, Scale::Ratio).unwrap();
        assert_eq!((found.interval, found.verdict), (None, Verdict::CannotTell { trials_needed }));
    }

    #[test]
    fn a_change_never_points_the_other_way_than_the_medians() {
        // Medians 371 and 425; of the nine pairs most say less.
        let found = change(&[370.0, 371.0, 500.0], &[321.0, 425.0, 433.0], 0.03, Scale::Ratio).unwrap();
        assert!((found.size - 425.0 / 371.0).abs() < 1e-12, "{found:?}");
        assert!(found.interval.is_none() && matches!(found.verdict, Verdict::CannotTell { .. }), "{found:?}");
        // Five a side have an interval. The median rises by 5 %, the median of the pairs falls by 8 %.
        let (before, after) = ([91.0, 94.0, 98.0, 122.0, 127.0], [85.0, 90.0, 103.0, 105.0, 109.0]);
        let found = change(&before, &after, 0.03, Scale::Ratio).unwrap();
        let (low, high) = found.interval.unwrap();
        assert!(low < 1.0 && found.size == 1.0 && 1.0 < high, "{found:?}");
        assert_eq!(change(&after, &before, 0.03, Scale::Ratio).unwrap().size, 1.0);
    }

    #[test]
    fn what_has_no_ratio_is_not_compared() {
        assert_eq!(change(&[], &[1.0], 0.03, Scale::Ratio), None);
        assert_eq!(change(&[1.0, f64::NAN], &[1.0], 0.03, Scale::Difference), None);
        assert_eq!(change(&[1.0], &[f64::INFINITY], 0.03, Scale::Ratio), None);
    }

    #[test]
    fn ties_count_half_and_the_change_is_the_median_of_the_pairs() {
        // Ratios 1, 1.5, 2 and 3.
        let found = change(&[1.0, 2.0], &[2.0, 3.0], 0.03, Scale::Ratio).unwrap();
        assert_eq!(found.superiority, 0.875);
        // Without an interval it is the ratio of the medians.
        assert!((found.size - 2.5 / 1.5).abs() < 1e-12 && found.estimate().is_none(), "{found:?}");
        // Five and five: the 3rd and the 23rd of the pairs, and the 13th between.
        let found =
            change(&[100.0, 101.0, 103.0, 106.0, 110.0], &[121.0, 123.0, 127.0, 133.0, 141.0], 0.03, Scale::Ratio)
                .unwrap();
        let mut pairs: Vec<f64> = [121.0, 123.0, 127.0, 133.0, 141.0]
            .iter()
            .flat_map(|c| [100.0, 101.0, 103.0, 106.0, 110.0].map(|b| c / b))
            .collect();
        pairs.sort_by(f64::total_cmp);
        let estimate = found.estimate().unwrap();
        for (found, at) in [(estimate.low, 2), (estimate.value, 12), (estimate.high, 22)] {
            assert!((found - pairs[at]).abs() < 1e-9, "{at}: {found} {pairs:?}");
        }
    }

    #[test]
    fn no_difference_is_said_when_the_interval_lies_within_the_margin_at_both_ends() {
        // Half the interval is 0.3 %.
        let base = [99.8, 99.9, 100.0, 100.1, 100.2];
        let verdict = |factor: f64, margin: f64| {
            let found = change(&base, &base.map(|value| factor * value), margin, Scale::Ratio).unwrap();
            let (low, high) = found.interval.unwrap();
            assert!(low <= 1.0 && 1.0 <= high, "{found:?}");
            found.verdict
        };
        assert_eq!((verdict(1.001, 0.01), verdict(0.999, 0.01)), (Verdict::NoDifference, Verdict::NoDifference));
        assert!(matches!(verdict(1.001, 0.003), Verdict::CannotTell { .. }), "its upper end is outside");
        assert!(matches!(verdict(0.999, 0.003), Verdict::CannotTell { .. }), "its lower end is outside");
    }

    #[test]
    fn trials_needed_follow_from_the_spread_of_both_sides_and_the_margin() {
        // Variance (2 · 0.1² + 2 · 0.3²) / 4 = 0.05, and four degrees of freedom.
        let side = |spread: f64| [f64::exp(-spread), 1.0, f64::exp(spread)];
        let needed = 2.0 * deviations_found(4, SURE, FOUND).powi(2) * 0.05 / 1.1f64.ln().powi(2) * PI / 3.0 + 1.0;
        let needed = needed.ceil() as usize;
        let found = |apart: f64| trials_needed(&side(0.1), &side(0.3), apart, Measure::Ratio);
        assert_eq!(found(1.1f64.ln()), needed);
        let of = |factor: f64| {
            let found = change(&side(0.1), &side(0.3).map(|x| factor * x), 0.1, Scale::Ratio);
            match found.unwrap().verdict {
                Verdict::CannotTell { trials_needed } => trials_needed,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([of(1.0), of(1.05), of(1.5)], [needed; 3]);
        assert_eq!(found(1e-6), TRIALS_MAX);
        // Always more than there were.
        assert_eq!(trials_needed(&[1.0; 7], &[1.0; 9], 0.5, Measure::Ratio), 8);
    }

    #[test]
    fn a_spread_from_few_trials_asks_for_more_of_them() {
        // The 0.8 quantiles of the noncentral t distribution around 1.96, by numerical integration.
        for (freedom, quantile) in [(8, 3.15), (18, 2.94), (38, 2.87)] {
            let found = deviations_found(freedom, SURE, FOUND);
            assert!((found - quantile).abs() < 0.05, "{freedom}: {found}");
        }
        assert!((deviations_found(1_000_000, SURE, FOUND) - SURE - FOUND).abs() < 1e-4);
    }

    #[test]
    fn without_a_ratio_the_difference_is_compared() {
        let counts = [[0.0, 2.0, 1.0, 0.0, 1.0], [9.0, 7.0, 8.0, 11.0, 6.0]];
        let found = change(&counts[0], &counts[1], 0.03, Scale::Count).unwrap();
        assert_eq!((found.by, found.verdict), (Measure::Difference, Verdict::More));
        assert!(found.size == 7.0 && found.interval.is_some_and(|(low, high)| low == 5.0 && high == 10.0), "{found:?}");
        // Percentages are compared in points, even where they have a ratio.
        let percent = Scale::Share { whole: 100.0 };
        let found = change(&[98.0, 97.5, 98.2, 97.9], &[99.0, 99.5, 99.2, 98.9], 0.03, percent).unwrap();
        assert!(found.by == Measure::Difference && (1.0..1.5).contains(&found.size), "{found:?}");
        // Nothing on both sides is no difference; and 3 % of nothing is found by nobody.
        let nothing = [0.0; 4];
        let found = change(&nothing, &nothing, 0.03, Scale::Count).unwrap();
        assert_eq!((found.by, found.verdict), (Measure::Difference, Verdict::NoDifference));
        let found = change(&nothing, &[0.0, 1.0, 0.0, 0.0], 0.03, Scale::Count).unwrap();
        assert_eq!(found.verdict, Verdict::CannotTell { trials_needed: TRIALS_MAX });
        let found = change(&[-5.0, -4.0, -6.0, -5.5], &[3.0, 2.0, 4.0, 3.5], 0.03, Scale::Ratio).unwrap();
        assert_eq!((found.by, found.verdict), (Measure::Difference, Verdict::More));
    }

    #[test]
    fn one_rate_of_zero_among_many_leaves_the_ratio() {
        let before: Vec<f64> = (0..30).map(|at| if at == 7 { 0.0 } else { 1000.0 + f64::from(at) }).collect();
        let after: Vec<f64> = before.iter().map(|value| value * 0.9).collect();
        let found = change(&before, &after, 0.03, Scale::Ratio).unwrap();
        assert_eq!((found.by, found.verdict), (Measure::Ratio, Verdict::Less));
        assert!((found.size - 0.9).abs() < 0.01, "{found:?}");
        // What stopped altogether has fallen by 100 %, and what began has no ratio.
        let (some, none) = ([100.0, 101.0, 99.0, 100.0, 102.0], [0.0; 5]);
        let found = change(&some, &none, 0.03, Scale::Ratio).unwrap();
        assert_eq!((found.by, found.size, found.verdict), (Measure::Ratio, 0.0, Verdict::Less));
        let found = change(&none, &some, 0.03, Scale::Ratio).unwrap();
        assert_eq!((found.by, found.size, found.verdict), (Measure::Difference, 100.0, Verdict::More));
    }

    #[test]
    fn very_many_pairs_are_judged_by_the_normal_approximation() {
        // 51 · 50 / 2 − 1.96 √(51 · 50 · 102 / 12) = 1275 − 288.6.
        assert_eq!(tail(51, 50), Some(986));
        // Exactly as many as are counted out: within one of what the approximation says, 1250 − 284.3.
        assert!(tail(50, 50).is_some_and(|tail| tail.abs_diff(965) <= 1), "{:?}", tail(50, 50));
    }
}
