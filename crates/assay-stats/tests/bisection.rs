//! Whether the first bad one is found, and in how many trials; beside plain bisection.

use assay_random::Random;
use assay_stats::{Bisection, BisectionLimits, NextTrial};

const NOISE: f64 = 0.05;

/// Searches among `n`; those from `first` on are slower by `effect`. Returns the outcome, what was found with its
/// probability, and the trials of candidates and ends.
fn search(seed: u64, n: usize, first: usize, effect: f64, skips: &[usize]) -> (NextTrial, (usize, usize), f64, usize) {
    let mut random = Random::of_stream(5, seed);
    let mut measure = |at: usize| {
        let level = if at < first { 1000.0 } else { 1000.0 * (1.0 - effect) };
        level * (NOISE * random.normal()).exp()
    };
    let mut search = Bisection::new(n, BisectionLimits { rounds_of_ends: 60, ..BisectionLimits::default() });
    let mut ends = 0;
    loop {
        match search.next() {
            NextTrial::Ends => {
                ends += 2;
                search.on_ends(measure(0), measure(n - 1));
            }
            NextTrial::Candidate(at) if skips.contains(&at) => search.skip(at),
            NextTrial::Candidate(at) => {
                ends += 2;
                search.on_trial(at, measure(at));
                search.on_ends(measure(0), measure(n - 1));
            }
            outcome => {
                let (range, probability) = search.found();
                return (outcome, range, probability, search.trials() + ends);
            }
        }
    }
}

/// As `git bisect run` does it: one trial per step, bad if it is nearer to the bad end.
fn plain(seed: u64, n: usize, first: usize, effect: f64) -> usize {
    let mut random = Random::of_stream(6, seed);
    let (mut good, mut bad) = (0, n - 1);
    while bad - good > 1 {
        let at = good + (bad - good) / 2;
        let level = if at < first { 1.0 } else { 1.0 - effect };
        let is_bad = level * (NOISE * random.normal()).exp() < 1.0 - effect / 2.0;
        if is_bad { bad = at } else { good = at }
    }
    bad
}

#[test]
fn the_first_bad_one_of_a_thousand_is_found_at_five_percent_of_effect_and_noise() {
    let mut random = Random::of_stream(8, 1);
    let (mut right, mut of_plain, mut trials) = (0, 0, Vec::new());
    for seed in 0..60 {
        let first = 1 + random.below(998) as usize;
        let (outcome, range, _, number) = search(seed, 1000, first, 0.05, &[]);
        assert_eq!(outcome, NextTrial::Found, "seed {seed}");
        right += usize::from(range == (first, first));
        of_plain += usize::from(plain(seed, 1000, first, 0.05) == first);
        trials.push(number);
    }
    trials.sort_unstable();
    println!(
        "found {right} of 60, in {} trials (median; all ends included); plain bisection finds {of_plain}",
        trials[30]
    );
    assert!(right >= 53, "{right} of 60");
    assert!(of_plain <= 8, "{of_plain} of 60");
    assert!(trials[30] < 500, "{trials:?}");
}

#[test]
fn a_large_effect_needs_few_trials() {
    let (outcome, range, probability, trials) = search(3, 100, 42, 0.5, &[]);
    assert_eq!((outcome, range), (NextTrial::Found, (42, 42)));
    assert!(probability >= 0.95 && trials < 40, "{probability} {trials}");
}

#[test]
fn ends_that_do_not_differ_stop_the_search() {
    let wrong = (0..40).filter(|seed| search(*seed, 100, 1000, 0.05, &[]).0 != NextTrial::SameEnds).count();
    assert!(wrong <= 2, "{wrong} of 40");
}

#[test]
fn candidates_that_cannot_be_measured_leave_a_range() {
    let (outcome, range, _, _) = search(1, 100, 50, 0.2, &[48, 49, 50, 51]);
    assert_eq!((outcome, range), (NextTrial::Found, (48, 52)));
    let (outcome, range, _, _) = search(1, 6, 3, 0.2, &[1, 2, 3, 4]);
    assert_eq!((outcome, range), (NextTrial::Found, (1, 5)));
    assert_eq!(search(1, 2, 1, 0.2, &[]).1, (1, 1));
}
