//! Whether a count is within its limits, or too small to tell.
//!
//! A run shows a sample: the true value is, with some confidence, in an interval around the observed one. *Passed* is
//! claimed only if the 95 % interval is within the limits (an equivalence test: Schuirmann 1987, two one-sided tests of
//! 2.5 % each), *failed* only if not even the 99.9 % interval touches them, because an audit has many rules and a false
//! alarm in one of them spoils it. Everything in between is *too short*: more of the same run will decide it.
//!
//! Limits that allow none at all, or only all, are about the run itself and not about a generator behind it: one trial
//! is enough to fail, any to pass.
//!
//! Shares have exact intervals (Clopper & Pearson 1934), which also hold for rare events and few trials, as long as
//! trials are independent; if they are drawn without replacement (a deck of cards) the interval is wider than
//! necessary. Means have the normal interval of the central limit theorem, from 30 values on.

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
}

/// Confidence levels of the two intervals: to pass, to fail.
const PASS: f64 = 0.95;
const FAIL: f64 = 0.999;
/// Quantiles of the standard normal distribution at (1 + level) / 2.
const Z_PASS: f64 = 1.959_963_984_540_054;
const Z_FAIL: f64 = 3.290_526_731_491_894_6;
/// Fewer values do not have a normal mean.
const VALUES_MIN: u64 = 30;

/// The share of `whole` independent trials that were `part`. More parts than trials count as all of them. Cost: some
/// hundred evaluations of the incomplete beta function.
pub fn share(part: u64, whole: u64, bounds: Bounds) -> RuleEstimate {
    if whole == 0 {
        return NOTHING;
    }
    let part = part.min(whole);
    if bounds.high <= 0.0 || bounds.low >= 1.0 {
        let is_kept = if bounds.high <= 0.0 { part == 0 } else { part == whole };
        let verdict = if is_kept { AuditVerdict::Passed } else { AuditVerdict::Failed };
        return RuleEstimate { observed: Some(part as f64 / whole as f64), interval: None, verdict };
    }
    let interval = share_interval(part, whole, PASS);
    RuleEstimate {
        observed: Some(part as f64 / whole as f64),
        interval: Some(interval),
        verdict: bounds.verdict(interval, share_interval(part, whole, FAIL)),
    }
}

/// The mean of `count` independent values with this sum and this sum of squares.
pub fn mean(count: u64, sum: f64, squares: f64, bounds: Bounds) -> RuleEstimate {
    if count == 0 {
        return NOTHING;
    }
    let n = count as f64;
    let mean = sum / n;
    if count < VALUES_MIN {
        return RuleEstimate { observed: Some(mean), interval: None, verdict: AuditVerdict::TooShort };
    }
    // Rounding may produce a negative value.
    let variance = ((squares - sum * mean) / (n - 1.0)).max(0.0);
    let within = |z: f64| {
        let half = z * (variance / n).sqrt();
        (mean - half, mean + half)
    };
    let interval = within(Z_PASS);
    RuleEstimate { observed: Some(mean), interval: Some(interval), verdict: bounds.verdict(interval, within(Z_FAIL)) }
}

const NOTHING: RuleEstimate = RuleEstimate { observed: None, interval: None, verdict: AuditVerdict::TooShort };

impl Bounds {
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
        let verdict = |part, whole| share(part, whole, ONE_PERCENT).verdict;
        assert_eq!(verdict(0, 0), AuditVerdict::TooShort);
        assert_eq!(verdict(10, 1000), AuditVerdict::TooShort);
        assert_eq!(verdict(1, 2), AuditVerdict::TooShort, "one of two happens by chance in a run that is just begun");
        assert_eq!(verdict(0, 100), AuditVerdict::TooShort);
        assert_eq!(verdict(0, 1000), AuditVerdict::Failed);
        assert_eq!(verdict(10_000, 1_000_000), AuditVerdict::Passed);
        assert_eq!(verdict(10_500, 1_000_000), AuditVerdict::TooShort, "on the edge only more will tell");
        assert_eq!(verdict(11_000, 1_000_000), AuditVerdict::Failed);
        let above = Bounds { low: 0.43, high: f64::INFINITY };
        assert_eq!(share(4348, 10_000, above).verdict, AuditVerdict::TooShort);
        assert_eq!(share(43_480, 100_000, above).verdict, AuditVerdict::Passed);
    }

    #[test]
    fn what_must_never_happen_or_always_is_decided_by_each_trial() {
        let never = Bounds { low: f64::NEG_INFINITY, high: 0.0 };
        let always = Bounds { low: 1.0, high: f64::INFINITY };
        let verdict = |part, whole, bounds| share(part, whole, bounds).verdict;
        assert_eq!(verdict(0, 0, never), AuditVerdict::TooShort);
        assert_eq!((verdict(0, 1, never), verdict(1, 1000, never)), (AuditVerdict::Passed, AuditVerdict::Failed));
        assert_eq!((verdict(1, 1, always), verdict(999, 1000, always)), (AuditVerdict::Passed, AuditVerdict::Failed));
        assert_eq!(share(0, 7, never).interval, None);
    }

    #[test]
    fn a_mean_needs_thirty_values_and_their_spread() {
        let bounds = Bounds { low: 9.5, high: 10.5 };
        // Uniform from 5 to 15: mean 10, mean square 110.
        let verdict = |n: u64| mean(n, 10.0 * n as f64, 110.0 * n as f64, bounds).verdict;
        assert_eq!((verdict(0), verdict(29), verdict(100), verdict(200)), {
            use AuditVerdict::*;
            (TooShort, TooShort, TooShort, Passed)
        });
        assert_eq!(mean(1000, 12_000.0, 154_000.0, bounds).verdict, AuditVerdict::Failed);
        let all_the_same = mean(50, 500.0, 5000.0, bounds);
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
                let estimate = share(part, trials, Bounds { low: p, high: p });
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
}
