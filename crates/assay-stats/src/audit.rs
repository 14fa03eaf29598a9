//! Whether a count is within its limits, or too small to tell.
//!
//! A run shows a sample: the true value is, with some confidence, in an interval around the observed one. *Passed* is
//! claimed only if the 95 % interval is within the limits (an equivalence test: Schuirmann 1987, two one-sided tests of
//! 2.5 % each), *failed* only if not even a much wider interval touches them. Everything in between is *too short*:
//! more of the same run will decide it.
//!
//! An audit has many rules, and a false alarm in one of them spoils it. So all statistical rules of a run share one
//! chance of a false alarm, 1 in 1,000 (`Caution`): with 40 rules, each fails only outside its 99.9975 % interval
//! (Bonferroni). While a run is in progress its rules are looked at again and again: look k spends 1/(k(k+1)) of the
//! chance, which adds up to all of it.
//!
//! Limits that allow none at all, or only all, are about the run itself and not about a generator behind it: one trial
//! is enough to fail, any to pass.
//!
//! Shares have exact intervals (Clopper & Pearson 1934), which also hold for rare events and few trials, as long as
//! trials are independent; if they are drawn without replacement (a deck of cards) the interval is wider than
//! necessary. Means have the normal interval of the central limit theorem, from 30 values on, and Student's to fail.

use crate::student::student;

/// Allowed values: `low <= value <= high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Smallest; minus infinity if there is no limit.
    pub low: f64,
    /// Largest; infinity if there is no limit.
    pub high: f64,
}

/// The verdict on a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditVerdict {
    /// The true value is within the limits.
    Passed,
    /// The true value is outside.
    Failed,
    /// Too little was observed for a verdict.
    TooShort,
}

/// An observed value, its interval, and the verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RuleEstimate {
    /// The observed value; `None`: nothing was observed.
    pub observed: Option<f64>,
    /// 95 % interval of the true value; `None` if too little was observed.
    pub interval: Option<(f64, f64)>,
    /// The verdict.
    pub verdict: AuditVerdict,
    /// If it is `TooShort`: about how many trials or values would be enough to pass. Assumes that the true value is in
    /// the middle of the limits; with one limit, or if there are that many already, that it is the observed one. `None`
    /// if that cannot pass.
    pub enough: Option<u64>,
    /// A run like this one fails nine times in ten if the true value is at most the first or at least the second;
    /// `None` if no such value would be noticed.
    pub notices: (Option<f64>, Option<f64>),
}

/// Confidence level of the interval that must be within the limits to pass.
const PASS: f64 = 0.95;
/// Quantile of the standard normal distribution at (1 + `PASS`) / 2, and at 0.9.
const Z_PASS: f64 = 1.959_963_984_540_054;
const Z_POWER: f64 = 1.281_551_565_544_6;
/// Fewer values do not have a normal mean.
const VALUES_MIN: u64 = 30;
/// Chance of a false alarm in all rules of a run together, each exactly at its limit.
const FALSE_ALARM: f64 = 0.001;
/// Student's distribution with so many degrees of freedom stands for all with more; it is a little wider.
const FREEDOM_MAX: u64 = 600;

/// How sure a failure must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caution {
    /// Confidence level of the interval that must be outside the limits.
    level: f64,
}

impl Caution {
    /// For each of so many statistical rules of a run. `looks`: how often their verdicts have been shown, if the run is
    /// in progress.
    pub fn of(rules: usize, looks: Option<u64>) -> Caution {
        let share = looks.map_or(1.0, |looks| {
            let look = looks.max(1) as f64;
            1.0 / (look * (look + 1.0))
        });
        Caution { level: 1.0 - FALSE_ALARM * share / rules.max(1) as f64 }
    }

    fn quantile(self, values: u64) -> f64 {
        student(self.level, values.saturating_sub(1).clamp(1, FREEDOM_MAX) as usize)
    }
}

/// The share of `whole` independent trials that were `part`. More parts than trials count as all of them. Cost: some
/// hundred evaluations of the incomplete beta function.
pub fn share(part: u64, whole: u64, bounds: Bounds, caution: Caution) -> RuleEstimate {
    if whole == 0 {
        return NOTHING;
    }
    let part = part.min(whole);
    let observed = part as f64 / whole as f64;
    if bounds.is_absolute() {
        let is_kept = if bounds.high <= 0.0 { part == 0 } else { part == whole };
        let verdict = if is_kept { AuditVerdict::Passed } else { AuditVerdict::Failed };
        // A violation with this share is in the run with probability 0.9.
        let rare = 1.0 - 0.1f64.powf(1.0 / whole as f64);
        let notices = if bounds.high <= 0.0 { (None, Some(rare)) } else { (Some(1.0 - rare), None) };
        return RuleEstimate { observed: Some(observed), verdict, notices, ..NOTHING };
    }
    let interval = share_interval(part, whole, PASS);
    let verdict = bounds.verdict(interval, share_interval(part, whole, caution.level));
    // The exact interval is wider than the normal one by about 2.5 / trials: (z² + 2) / 3 + 1/2.
    let enough = |at: f64, room: f64| Z_PASS * Z_PASS * at * (1.0 - at) / (room * room) + 5.0 / room;
    let farther = caution.quantile(FREEDOM_MAX + 1) + Z_POWER;
    let reach = |at: f64| farther * (at * (1.0 - at) / whole as f64).sqrt() + farther / whole as f64;
    RuleEstimate {
        observed: Some(observed),
        interval: Some(interval),
        verdict,
        enough: bounds.enough(verdict, observed, whole, enough),
        notices: bounds.beyond(reach, (0.0, 1.0)),
    }
}

/// The mean of `count` independent values with this sum and this sum of squares.
pub fn mean(count: u64, sum: f64, squares: f64, bounds: Bounds, caution: Caution) -> RuleEstimate {
    if count == 0 {
        return NOTHING;
    }
    let n = count as f64;
    let mean = sum / n;
    if count < VALUES_MIN {
        return RuleEstimate { observed: Some(mean), enough: Some(VALUES_MIN), ..NOTHING };
    }
    // Rounding may produce a negative value.
    let variance = ((squares - sum * mean) / (n - 1.0)).max(0.0);
    let within = |z: f64| {
        let half = z * (variance / n).sqrt();
        (mean - half, mean + half)
    };
    let (interval, farther) = (within(Z_PASS), caution.quantile(count));
    let verdict = bounds.verdict(interval, within(farther));
    RuleEstimate {
        observed: Some(mean),
        interval: Some(interval),
        verdict,
        enough: bounds.enough(verdict, mean, count, |_, room| Z_PASS * Z_PASS * variance / (room * room)),
        notices: bounds.beyond(|_| (farther + Z_POWER) * (variance / n).sqrt(), (f64::NEG_INFINITY, f64::INFINITY)),
    }
}

/// A number of events in a time, against the number that is allowed in it. Up to that it passes; it fails if even the
/// expected number of such events is above (square roots of Poisson counts are nearly normal, with a deviation of a
/// half: Anscombe 1948).
pub fn number(count: u64, allowed: f64, caution: Caution) -> RuleEstimate {
    let (count, farther) = (count as f64, caution.quantile(FREEDOM_MAX + 1));
    let least = (count.sqrt() - farther / 2.0).max(0.0).powi(2);
    let verdict = if count <= allowed {
        AuditVerdict::Passed
    } else if least > allowed {
        AuditVerdict::Failed
    } else {
        AuditVerdict::TooShort
    };
    let notices = (None, Some((allowed.max(0.0).sqrt() + (farther + Z_POWER) / 2.0).powi(2)));
    RuleEstimate { observed: Some(count), verdict, notices, ..NOTHING }
}

/// How much something grew, against what was reported: nothing about it is random.
pub fn exact(grown: f64, low: f64, high: f64) -> RuleEstimate {
    // Half of the smallest unit: sums of money may be binary fractions.
    let is_kept = grown > low - 0.5 && grown < high + 0.5;
    let verdict = if is_kept { AuditVerdict::Passed } else { AuditVerdict::Failed };
    RuleEstimate { observed: Some(grown), verdict, notices: (Some(low - 1.0), Some(high + 1.0)), ..NOTHING }
}

/// Nothing was observed.
pub const NOTHING: RuleEstimate = RuleEstimate {
    observed: None,
    interval: None,
    verdict: AuditVerdict::TooShort,
    enough: None,
    notices: (None, None),
};

impl Bounds {
    /// Whether they allow none at all, or only all: one violation is enough to fail, and chance plays no part.
    pub fn is_absolute(self) -> bool {
        self.high <= 0.0 || self.low >= 1.0
    }

    /// `trials(at, room)`: how many are needed if the true value is `at`, this far within the limits.
    fn enough(self, verdict: AuditVerdict, observed: f64, count: u64, trials: impl Fn(f64, f64) -> f64) -> Option<u64> {
        if verdict != AuditVerdict::TooShort {
            return None;
        }
        let at = |at: f64| {
            let room = (at - self.low).min(self.high - at);
            let number = trials(at, room).ceil();
            (room > 0.0 && number < 1e15).then_some(number as u64)
        };
        let is_two_sided = self.low.is_finite() && self.high.is_finite();
        let in_the_middle = if is_two_sided { at((self.low + self.high) / 2.0) } else { None };
        in_the_middle.filter(|number| *number > count).or_else(|| at(observed)).filter(|number| *number > count)
    }

    /// True values that are noticed: `reach(limit)` beyond a limit, and possible.
    fn beyond(self, reach: impl Fn(f64) -> f64, (least, most): (f64, f64)) -> (Option<f64>, Option<f64>) {
        let low = Some(self.low).filter(|low| low.is_finite()).map(|low| low - reach(low));
        let high = Some(self.high).filter(|high| high.is_finite()).map(|high| high + reach(high));
        (low.filter(|low| *low >= least), high.filter(|high| *high <= most))
    }

    fn verdict(self, narrow: (f64, f64), wide: (f64, f64)) -> AuditVerdict {
        if narrow.0 >= self.low && narrow.1 <= self.high {
            AuditVerdict::Passed
        } else if wide.1 < self.low || wide.0 > self.high {
            AuditVerdict::Failed
        } else {
            AuditVerdict::TooShort
        }
    }
}

/// Clopper–Pearson interval of a share. `part <= whole`, `0 < whole`.
fn share_interval(part: u64, whole: u64, level: f64) -> (f64, f64) {
    let tail = (1.0 - level) / 2.0;
    let (x, rest) = (part as f64, (whole - part) as f64);
    // P(at least `part` of `whole`) is I_p(part, whole − part + 1); it grows with p.
    let low = if part == 0 { 0.0 } else { root(|p| incomplete_beta(x, rest + 1.0, p) - tail) };
    let high = if part == whole { 1.0 } else { root(|p| incomplete_beta(x + 1.0, rest, p) - (1.0 - tail)) };
    (low, high)
}

/// The zero of a function that grows on 0 … 1.
fn root(f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Regularised incomplete beta function I_x(a, b) by its continued fraction, with Lentz's method.
/// Source: Abramowitz & Stegun 1964, 26.5.8; Thompson & Barnett 1986. `0 < a, b`.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // It converges quickly below the mean; above it, the other tail does.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = (a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)).exp() / a;
    let away = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    // It takes about the square root of max(a, b) steps.
    for step in 1..100_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        fraction *= c * d;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-12 {
            break;
        }
    }
    (front * fraction).clamp(0.0, 1.0)
}

/// ln Γ(x) for `0 < x`: Stirling's series, moved up to where it is exact. Source: Abramowitz & Stegun 1964, 6.1.41.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut product) = (x, 1.0);
    while x < 10.0 {
        product *= x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - f64::ln(product)
}

#[cfg(test)]
mod tests {
    use assay_random::Random;

    use super::*;

    /// For a rule that is alone.
    const ALONE: Caution = Caution { level: 0.999 };
    const ONE_PERCENT: Bounds = Bounds { low: 0.0095, high: 0.0105 };

    #[track_caller]
    fn near(value: f64, wanted: f64, within: f64) {
        assert!((value - wanted).abs() <= within, "{value}, not {wanted}");
    }

    #[test]
    fn the_gamma_function_agrees_with_factorials_and_a_half() {
        near(ln_gamma(1.0), 0.0, 1e-11);
        near(ln_gamma(6.0), 120f64.ln(), 1e-11);
        near(ln_gamma(0.5), 0.5 * std::f64::consts::PI.ln(), 1e-11);
        near(ln_gamma(171.0), (1..171).map(|i| f64::from(i).ln()).sum(), 1e-9);
    }

    #[test]
    fn both_functions_are_those_of_another_implementation() {
        for x in [0.1, 0.5, 1.0, 1.5, 2.0, 9.99, 10.0, 10.01, 55.5, 1e4, 1e9] {
            let wanted = statrs::function::gamma::ln_gamma(x);
            near(ln_gamma(x), wanted, 1e-10 * wanted.abs().max(1.0));
        }
        for a in [0.5, 1.0, 2.5, 30.0, 400.0] {
            for b in [0.5, 1.0, 7.0, 90.0, 3000.0] {
                for x in [0.0, 1e-6, 0.01, 0.3, 0.5, 0.7, 0.99, 1.0] {
                    near(incomplete_beta(a, b, x), statrs::function::beta::beta_reg(a, b, x), 1e-9);
                }
            }
        }
    }

    #[test]
    fn exact_intervals_are_those_of_the_tables() {
        // Known values: 0 of 10 leaves 1 − 0.025^(1/10); 1 of 2 at 99.9 % begins at 1 − √(1 − 0.0005).
        near(share_interval(0, 10, 0.95).1, 1.0 - 0.025f64.powf(0.1), 1e-9);
        near(share_interval(10, 10, 0.95).0, 0.025f64.powf(0.1), 1e-9);
        near(share_interval(1, 2, 0.999).0, 1.0 - (1.0f64 - 0.0005).sqrt(), 1e-9);
        let (low, high) = share_interval(10, 100, 0.95);
        near(low, 0.0490, 5e-5);
        near(high, 0.1762, 5e-5);
        // With many trials the normal approximation is as good: 1 % of a million.
        let (low, high) = share_interval(10_000, 1_000_000, 0.95);
        let half = Z_PASS * (0.01f64 * 0.99 / 1e6).sqrt();
        near(low, 0.01 - half, 2e-6);
        near(high, 0.01 + half, 2e-6);
        // And with as many as a long run has.
        let (low, high) = share_interval(1_000_000_000, 10_000_000_000, 0.95);
        near(low, 0.1 - Z_PASS * 3e-6, 1e-8);
        near(high, 0.1 + Z_PASS * 3e-6, 1e-8);
    }

    #[test]
    fn the_distribution_behind_the_interval_is_the_binomial() {
        // P(at least 3 of 8 at 0.3), summed by hand.
        let direct: f64 = (3..=8u32)
            .map(|k| {
                let ways = (1..=k).fold(1.0, |ways, i| ways * f64::from(8 - k + i) / f64::from(i));
                ways * 0.3f64.powi(k as i32) * 0.7f64.powi(8 - k as i32)
            })
            .sum();
        near(incomplete_beta(3.0, 6.0, 0.3), direct, 1e-12);
    }

    #[test]
    fn a_share_needs_enough_trials_for_a_verdict() {
        let verdict = |part, whole| share(part, whole, ONE_PERCENT, ALONE).verdict;
        assert_eq!(verdict(0, 0), AuditVerdict::TooShort);
        assert_eq!(verdict(10, 1000), AuditVerdict::TooShort);
        assert_eq!(verdict(1, 2), AuditVerdict::TooShort, "one of two happens by chance in a run that is just begun");
        assert_eq!(verdict(0, 100), AuditVerdict::TooShort);
        assert_eq!(verdict(0, 1000), AuditVerdict::Failed);
        assert_eq!(verdict(10_000, 1_000_000), AuditVerdict::Passed);
        assert_eq!(verdict(10_500, 1_000_000), AuditVerdict::TooShort, "on the edge only more will tell");
        assert_eq!(verdict(11_000, 1_000_000), AuditVerdict::Failed);
        let above = Bounds { low: 0.43, high: f64::INFINITY };
        assert_eq!(share(4348, 10_000, above, ALONE).verdict, AuditVerdict::TooShort);
        assert_eq!(share(43_480, 100_000, above, ALONE).verdict, AuditVerdict::Passed);
    }

    #[test]
    fn what_must_never_happen_or_always_is_decided_by_each_trial() {
        let never = Bounds { low: f64::NEG_INFINITY, high: 0.0 };
        let always = Bounds { low: 1.0, high: f64::INFINITY };
        let verdict = |part, whole, bounds| share(part, whole, bounds, ALONE).verdict;
        assert_eq!(verdict(0, 0, never), AuditVerdict::TooShort);
        assert_eq!((verdict(0, 1, never), verdict(1, 1000, never)), (AuditVerdict::Passed, AuditVerdict::Failed));
        assert_eq!((verdict(1, 1, always), verdict(999, 1000, always)), (AuditVerdict::Passed, AuditVerdict::Failed));
        assert_eq!(share(0, 7, never, ALONE).interval, None);
        // One in ten such runs has no violation.
        near(share(0, 100, never, ALONE).notices.1.unwrap(), 0.0228, 1e-4);
    }

    #[test]
    fn a_mean_needs_thirty_values_and_their_spread() {
        let bounds = Bounds { low: 9.5, high: 10.5 };
        // Uniform from 5 to 15: mean 10, mean square 110.
        let verdict = |n: u64| mean(n, 10.0 * n as f64, 110.0 * n as f64, bounds, ALONE).verdict;
        assert_eq!((verdict(0), verdict(29), verdict(100), verdict(200)), {
            use AuditVerdict::*;
            (TooShort, TooShort, TooShort, Passed)
        });
        assert_eq!(mean(1000, 12_000.0, 154_000.0, bounds, ALONE).verdict, AuditVerdict::Failed);
        let all_the_same = mean(50, 500.0, 5000.0, bounds, ALONE);
        assert_eq!((all_the_same.interval, all_the_same.verdict), (Some((10.0, 10.0)), AuditVerdict::Passed));
    }

    #[test]
    fn intervals_hold_the_true_share_as_often_as_they_claim_and_false_alarms_are_rare() {
        let mut random = Random::new(7);
        for (p, trials) in [(0.01, 200), (0.01, 3000), (0.3, 50)] {
            let (mut held, mut alarms) = (0, 0);
            let runs = 4000;
            for _ in 0..runs {
                let part = (0..trials).filter(|_| random.unit() < p).count() as u64;
                let estimate = share(part, trials, Bounds { low: p, high: p }, ALONE);
                let (low, high) = estimate.interval.unwrap();
                held += u32::from(low <= p && p <= high);
                alarms += u32::from(estimate.verdict == AuditVerdict::Failed);
            }
            // The interval is exact or wider: at least 95 %, less five standard deviations of the count.
            assert!(held >= 3800 - 69, "{p}, {trials}: {held} of {runs}");
            // At most 4 are to be expected even of bounds without any room; ten is beyond 99 %.
            assert!(alarms <= 10, "{p}, {trials}: {alarms} of {runs}");
        }
    }

    #[test]
    fn forty_rules_at_their_limits_have_one_false_alarm_in_a_thousand_runs() {
        let mut random = Random::new(11);
        let caution = Caution::of(40, None);
        let alarm = |random: &mut Random| {
            (0..40).any(|_| {
                let part = (0..400).filter(|_| random.unit() < 0.3).count() as u64;
                share(part, 400, Bounds { low: 0.3, high: 0.3 }, caution).verdict == AuditVerdict::Failed
            })
        };
        let alarms = (0..1500).filter(|_| alarm(&mut random)).count();
        assert!(alarms <= 7, "{alarms} of 1,500 runs, where 1.5 are to be expected at most");
        // The same share of part fails alone.
        assert_eq!(share(88, 400, Bounds { low: 0.3, high: 0.3 }, ALONE).verdict, AuditVerdict::Failed);
        assert_eq!(share(88, 400, Bounds { low: 0.3, high: 0.3 }, caution).verdict, AuditVerdict::TooShort);
    }

    #[test]
    fn looking_again_and_again_while_a_run_is_in_progress_causes_no_false_alarm() {
        let mut random = Random::new(12);
        let mut alarms = 0;
        for _ in 0..300 {
            let mut part = 0;
            let failed = |look: u64, part: u64| {
                let bounds = Bounds { low: 0.3, high: 0.3 };
                share(part, look * 20, bounds, Caution::of(1, Some(look))).verdict == AuditVerdict::Failed
            };
            alarms += u32::from((1..=60).any(|look| {
                part += (0..20).filter(|_| random.unit() < 0.3).count() as u64;
                failed(look, part)
            }));
        }
        assert!(alarms <= 3, "{alarms} of 300");
    }

    #[test]
    fn a_run_that_is_too_short_says_how_many_would_be_enough_and_what_it_would_have_noticed() {
        let estimate = share(10, 1000, ONE_PERCENT, ALONE);
        let enough = estimate.enough.unwrap();
        assert!((150_000..170_000).contains(&enough), "{enough}");
        assert_eq!(share(enough / 100, enough, ONE_PERCENT, ALONE).verdict, AuditVerdict::Passed);
        // In 1,000 order lines, none at all would not be noticed, but two and a half percent would.
        let (low, high) = estimate.notices;
        assert_eq!(low, None);
        assert!((0.02..0.035).contains(&high.unwrap()), "{high:?}");
        let mut random = Random::new(13);
        let noticed = (0..1000)
            .filter(|_| {
                let part = (0..1000).filter(|_| random.unit() < high.unwrap()).count() as u64;
                share(part, 1000, ONE_PERCENT, ALONE).verdict == AuditVerdict::Failed
            })
            .count();
        assert!(noticed >= 870, "{noticed}");
        let bounds = Bounds { low: 9.5, high: 10.5 };
        let estimate = mean(100, 1000.0, 11_000.0, bounds, ALONE);
        assert_eq!(estimate.enough, Some(156));
        assert_eq!(mean(7, 70.0, 770.0, bounds, ALONE).enough, Some(30));
        // One limit: at what was observed; nothing is enough outside.
        let above = Bounds { low: 0.43, high: f64::INFINITY };
        assert!(share(4348, 10_000, above, ALONE).enough.is_some_and(|enough| (35_000..50_000).contains(&enough)));
        assert_eq!(share(4290, 10_000, above, ALONE).enough, None);
    }

    #[test]
    fn a_number_above_the_allowed_one_fails_when_chance_cannot_explain_it() {
        let verdict = |count, allowed| number(count, allowed, ALONE).verdict;
        assert_eq!((verdict(1260, 1286.0), verdict(1290, 1286.0)), (AuditVerdict::Passed, AuditVerdict::TooShort));
        assert_eq!((verdict(1420, 1286.0), verdict(2572, 1286.0)), (AuditVerdict::Failed, AuditVerdict::Failed));
        assert_eq!(verdict(3, 1.0), AuditVerdict::TooShort);
    }

    #[test]
    fn what_grew_must_be_what_was_reported_up_to_what_is_unknown() {
        let verdict = |grown, low, high| exact(grown, low, high).verdict;
        assert_eq!(
            (verdict(10.0, 10.0, 10.0), verdict(10.000_1, 10.0, 10.0)),
            (AuditVerdict::Passed, AuditVerdict::Passed)
        );
        assert_eq!((verdict(9.0, 10.0, 12.0), verdict(13.0, 10.0, 12.0)), (AuditVerdict::Failed, AuditVerdict::Failed));
        assert_eq!(verdict(12.0, 10.0, 12.0), AuditVerdict::Passed);
    }
}
