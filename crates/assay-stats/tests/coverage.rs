//! Does every confidence interval have its coverage, and how often is a verdict wrong? Experiments with simulated
//! series whose truth is known, and fixed seeds.
//!
//! With 2,000 repetitions a coverage is known to ±1 %.

use assay_random::Random;
use assay_stats::*;

/// Series of random numbers.
struct Noise(Random);

impl Noise {
    /// A first order autoregression around zero with variance 1, in its stationary state.
    fn autoregression(&mut self, correlation: f64, length: usize) -> Vec<f64> {
        let mut value = self.0.normal();
        let innovation = (1.0 - correlation * correlation).sqrt();
        let mut next = || {
            value = correlation * value + innovation * self.0.normal();
            value
        };
        (0..length).map(|_| next()).collect()
    }
}

/// In nine of ten repetitions there must be an interval, and 95 ± 2 % of the intervals must contain `truth`.
#[track_caller]
fn check(what: &str, repetitions: usize, truth: f64, experiment: impl FnMut(&mut Noise) -> Option<(f64, f64)>) {
    let coverage = coverage(what, repetitions, 0.9, truth, experiment);
    assert!((0.93..=0.97).contains(&coverage), "{what}: coverage {coverage}");
}

/// The share of intervals that contain `truth`; at least `least` of the repetitions must give an interval.
#[track_caller]
fn coverage(
    what: &str,
    repetitions: usize,
    least: f64,
    truth: f64,
    mut experiment: impl FnMut(&mut Noise) -> Option<(f64, f64)>,
) -> f64 {
    let mut noise = Noise(Random::new(20_261_121));
    let intervals: Vec<_> = (0..repetitions).filter_map(|_| experiment(&mut noise)).collect();
    let held = intervals.iter().filter(|(low, high)| *low <= truth && truth <= *high).count();
    assert!(intervals.len() as f64 >= repetitions as f64 * least, "{what}: only {} intervals", intervals.len());
    let coverage = held as f64 / intervals.len() as f64;
    println!("{what}: {:.1}% of {} intervals, {repetitions} series", 100.0 * coverage, intervals.len());
    coverage
}

/// The interval of the mean of `series` around 100.
fn interval(series: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    mean_interval(&series.map(|x| 100.0 + 10.0 * x).collect::<Vec<_>>()).ok().map(|mean| (mean.low, mean.high))
}

#[test]
fn intervals_of_the_mean_hold_95_percent_however_seconds_depend_on_each_other() {
    let mut wrong = Vec::new();
    for length in [60, 120, 300, 600] {
        for correlation in [0.0, 0.3, 0.5, 0.8, 0.9] {
            // A minute with an autocorrelation of 0.9 is worth four seconds: in a third of the cases there must be no
            // interval.
            let least = if (length, correlation) == (60, 0.9) { 0.6 } else { 0.9 };
            let coverage = coverage(
                &format!("correlation {correlation}, {length} s"),
                (180_000 / length).max(1000),
                least,
                100.0,
                |noise| interval(noise.autoregression(correlation, length).into_iter()),
            );
            if !(0.93..=0.97).contains(&coverage) {
                wrong.push((length, correlation, coverage));
            }
        }
    }
    assert_eq!(wrong, []);
    check("correlation 0.95, 600 s", 1000, 100.0, |noise| interval(noise.autoregression(0.95, 600).into_iter()));
}

#[test]
fn intervals_of_the_mean_hold_for_series_that_are_no_autoregression() {
    // A slow drift under the noise of single seconds, as strong as it and four times as strong.
    for (correlation, deviation, length) in [(0.8, 1.0, 300), (0.8, 1.0, 600), (0.95, 2.0, 600)] {
        check(&format!("{correlation} under {deviation}, {length} s"), 1000, 100.0, |noise| {
            let slow = noise.autoregression(correlation, length);
            interval(slow.iter().map(|x| x + deviation * noise.0.normal()))
        });
    }
    // Work carried over into the next second makes neighbors differ: the interval does not get narrower by it.
    let carried_over = coverage("carried over", 1000, 0.9, 100.0, |noise| {
        let carried: Vec<f64> = (0..=120).map(|_| noise.0.normal()).collect();
        interval(carried.windows(2).map(|pair| pair[0] - 0.5 * pair[1]))
    });
    assert!(carried_over >= 0.95, "{carried_over}");
    // A few slow seconds among many fast ones.
    check("skewed", 1000, 100.0, |noise| interval((0..300).map(|_| 1.0 + noise.0.unit().ln())));
}

#[test]
fn short_series_have_no_interval() {
    assert_eq!(mean_interval(&[100.0; 29]), Err(Missing::TooShort));
    assert_eq!(mean_interval(&[100.0; 30]), Ok(Estimate { value: 100.0, low: 100.0, high: 100.0 }));
    // Five minutes of one long swing do not predict the next five.
    let swing: Vec<f64> = (0..300).map(|t| 100.0 + (f64::from(t) / 60.0).sin()).collect();
    assert_eq!(mean_interval(&swing), Err(Missing::TooDependent));
}

#[test]
fn intervals_of_quantiles_hold_95_percent_when_seconds_share_their_fate() {
    // Latencies of a second are exponential around a mean that wanders.
    for (quantile, share) in [(500_000, 0.5), (950_000, 0.95)] {
        // The true quantiles of the mixture, from a long run.
        let mut noise = Noise(Random::new(1));
        let mut long: Vec<f64> = noise.autoregression(0.6, 20_000).iter().map(|x| latency(*x, &mut noise)).collect();
        for _ in 0..9 {
            let more = noise.autoregression(0.6, 20_000);
            long.extend(more.iter().map(|x| latency(*x, &mut noise)));
        }
        long.sort_by(f64::total_cmp);
        let truth = long[(long.len() as f64 * share) as usize];
        check(&format!("quantile {share}"), 600, truth, |noise| {
            let second = |x: &f64, noise: &mut Noise| {
                let count = 30 + (noise.0.unit() * 20.0) as usize;
                distribution((0..count).map(|_| latency(*x, noise) as u64))
            };
            let fates = noise.autoregression(0.6, 300);
            let seconds: Vec<Distribution> = fates.iter().map(|x| second(x, noise)).collect();
            let mut all = Distribution::default();
            seconds.iter().for_each(|second| all.add(second));
            let [found] = all.quantiles([quantile]).map(|value| value.expect("there are thousands"));
            let of = |second: &Distribution| Second { at_most: second.at_most([found])[0], count: second.count() };
            let interval = quantile_interval(&all, quantile, &seconds.iter().map(of).collect::<Vec<_>>());
            interval.map(|(low, high)| (low as f64, high as f64))
        });
    }
}

fn latency(fate: f64, noise: &mut Noise) -> f64 {
    -1000.0 * (0.3 * fate).exp() * noise.0.unit().ln()
}

fn distribution(values: impl Iterator<Item = u64>) -> Distribution {
    let mut histogram = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 100_000, 3).unwrap();
    let (mut min, mut max, mut sum) = (u64::MAX, 0, 0);
    for value in values {
        histogram.record(value).unwrap();
        (min, max, sum) = (min.min(value), max.max(value), sum + u128::from(value));
    }
    let buckets = histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
    Distribution::new(buckets.collect(), 0, (min, max), sum)
}

#[test]
fn intervals_of_medians_over_trials_hold_what_they_can() {
    for trials_of_one in [5, 7, 10] {
        check(&format!("{trials_of_one} trials"), 400, 100.0, |noise| {
            let values: Vec<f64> = (0..trials_of_one).map(|_| 100.0 + 3.0 * noise.0.normal()).collect();
            trials(&values, Scale::Ratio).unwrap().interval.map(|interval| (interval.low, interval.high))
        });
    }
}

#[test]
fn of_comparisons_of_a_setting_with_itself_at_most_one_in_twenty_finds_a_difference() {
    // Normal trials, and trials of which every fifth was disturbed.
    for disturbed in [0.0, 0.2] {
        for (n, m) in [(4, 4), (5, 5), (5, 8), (10, 10)] {
            let mut noise = Noise(Random::new(42));
            let side = |length: usize, noise: &mut Noise| {
                let slow = |noise: &mut Noise| if noise.0.unit() < disturbed { 0.7 } else { 1.0 };
                (0..length).map(|_| 1000.0 * slow(noise) * (0.03 * noise.0.normal()).exp()).collect::<Vec<f64>>()
            };
            let mut wrong = 0;
            for _ in 0..10_000 {
                let (baseline, candidate) = (side(n, &mut noise), side(m, &mut noise));
                let found = change(&baseline, &candidate, MARGIN_DEFAULT, Scale::Ratio).unwrap();
                wrong += u32::from(matches!(found.verdict, Verdict::More | Verdict::Less));
            }
            assert!(wrong <= 500, "{n} and {m} trials, {disturbed} disturbed: {wrong} of 10,000 wrong");
        }
    }
}

/// Duels without a difference that could not tell, and their repetition with as many trials as they asked for and a
/// difference of the margin: how often it is found, and how many trials that took on the average.
fn power(duels: usize, deviation: f64, pilot: usize) -> (f64, f64) {
    let mut noise = Noise(Random::of_stream(3, pilot as u64));
    let mut side = |length: usize, factor: f64| {
        (0..length).map(|_| factor * (deviation * noise.0.normal()).exp()).collect::<Vec<f64>>()
    };
    let (mut found, mut sum, mut asked) = (0, 0, 0);
    while asked < duels {
        let first = change(&side(pilot, 1000.0), &side(pilot, 1000.0), 0.03, Scale::Ratio).unwrap();
        let Verdict::CannotTell { trials_needed } = first.verdict else { continue };
        let again = change(&side(trials_needed, 1000.0), &side(trials_needed, 1030.0), 0.03, Scale::Ratio).unwrap();
        (asked, sum) = (asked + 1, sum + trials_needed);
        found += usize::from(again.verdict == Verdict::More);
    }
    (found as f64 / duels as f64, sum as f64 / duels as f64)
}

#[test]
fn as_many_trials_as_were_asked_for_find_a_difference_of_the_margin_four_times_of_five() {
    // Where fewer trials than there were would do, the number is one more than there were, which finds it more often.
    for pilot in [5, 10] {
        let (found, trials) = power(1_000, 0.04, pilot);
        println!("{pilot} trials per side: {:.1}% found, with {trials:.0} trials per side", 100.0 * found);
        assert!((0.75..=0.85).contains(&found), "{pilot}: {found}");
    }
}

/// The same of grids, whose numbers are rounds.
#[test]
fn as_many_rounds_as_were_asked_for_find_a_difference_of_the_margin_four_times_of_five() {
    for cells in [2, 6] {
        let mut noise = Noise(Random::of_stream(4, cells as u64));
        let mut ratio = |rounds: usize, factor: f64| {
            let mut trials = Vec::new();
            for round in 0..rounds {
                let common = 0.1 * noise.0.normal();
                for cell in 0..cells {
                    let level = if cell == 1 { factor } else { 1.0 };
                    trials.push(Observation { cell, round, value: level * (common + 0.035 * noise.0.normal()).exp() });
                }
            }
            Blocks::fit(&trials, cells, rounds).unwrap().ratio(0, 1, cells - 1, 0.03).unwrap()
        };
        let (mut found, mut asked) = (0, 0);
        while asked < 300 {
            let Verdict::CannotTell { trials_needed } = ratio(6, 1.0).verdict else { continue };
            asked += 1;
            found += u32::from(ratio(trials_needed, 1.03).verdict == Verdict::More);
        }
        println!("{cells} cells: found in {found} of 300");
        assert!((218..=262).contains(&found), "{cells} cells: {found} of 300");
    }
}

/// Percentages near both ends, counts that are often zero, and differences around zero.
#[test]
fn intervals_on_other_scales_hold_too() {
    let poisson = |mean: f64, noise: &mut Noise| {
        let (mut product, mut count) = (noise.0.unit(), 0.0);
        while product > f64::exp(-mean) {
            (product, count) = (product * noise.0.unit(), count + 1.0);
        }
        count
    };
    let value = |values: Vec<f64>, scale: Scale| {
        let trials = values.iter().enumerate().map(|(round, value)| Observation { cell: 0, round, value: *value });
        let all: Vec<Observation> = trials.collect();
        Cells::fit(&all, 1, all.len(), scale).unwrap().value(0).unwrap().interval
    };
    let percent = Scale::Share { whole: 100.0 };
    for trials in [3, 5, 10] {
        check(&format!("{trials} percentages around 97"), 4_000, 97.0, |noise| {
            value((0..trials).map(|_| 97.0 + noise.0.normal()).collect(), percent)
        });
        check(&format!("{trials} differences around 0.5"), 4_000, 0.5, |noise| {
            value((0..trials).map(|_| 0.5 + 3.0 * noise.0.normal()).collect(), Scale::Difference)
        });
        // Skewed, and of few values.
        let held = coverage(&format!("{trials} counts around 3"), 4_000, 0.9, 3.0, |noise| {
            value((0..trials).map(|_| poisson(3.0, noise)).collect(), Scale::Count)
        });
        assert!(held > 0.90, "{trials} counts: {held}");
    }
}

#[test]
fn intervals_of_a_change_hold_95_percent() {
    for trials_of_one in [5, 10] {
        let mut held = 0;
        let mut noise = Noise(Random::new(11));
        for _ in 0..1500 {
            let mut side = |factor: f64| {
                (0..trials_of_one).map(|_| factor * (0.05 * noise.0.normal()).exp()).collect::<Vec<f64>>()
            };
            let found = change(&side(1.0), &side(1.1), 0.03, Scale::Ratio).unwrap();
            let (low, high) = found.interval.unwrap();
            held += u32::from(low <= 1.1 && 1.1 <= high);
        }
        // With few trials there are few levels: the next one above 95 % is taken.
        assert!((1410..=1470).contains(&held), "{held} of 1500");
    }
}

#[test]
fn noise_is_rarely_taken_for_a_wave_a_trend_or_a_beginning() {
    for (correlation, length) in [(0.0, 60), (0.0, 300), (0.5, 120), (0.8, 300), (0.9, 600)] {
        let mut noise = Noise(Random::new(5));
        let mut wrong = (0, 0, 0);
        for _ in 0..200 {
            let series = noise.autoregression(correlation, length).into_iter().map(|x| 100.0 + 10.0 * x);
            let series: Vec<f64> = series.collect();
            wrong.0 += u32::from(waves(&series).is_some());
            let found = course(&series, &Tolerance::THROUGHPUT);
            wrong.1 += u32::from(!found.shifts.is_empty());
            // With this much noise a tenth may not show: the verdict may be "unknown".
            wrong.2 += u32::from(match found.steady {
                Steady::From { start, .. } => start > 0,
                Steady::Not(not) => {
                    !matches!(not, Unsteady::Doubtful(_) | Unsteady::Unclear { .. } | Unsteady::Dependent)
                }
            });
        }
        assert!(
            wrong.0 <= 4 && wrong.1 <= 10 && wrong.2 <= 14,
            "correlation {correlation}, {length} s: {wrong:?} of 200"
        );
    }
}

/// Series of 1,000 per second with 2 % noise whose level falls by `size` somewhere between a tenth and nine tenths of
/// the length: for each, where it fell and what was found.
fn falling(correlation: f64, length: usize, size: f64) -> Vec<(usize, Steadiness)> {
    let mut noise = Noise(Random::new(2026));
    let one = |_| {
        let at = length / 10 + noise.0.below(length as u64 * 8 / 10) as usize;
        let level = |t: usize| if t < at { 1000.0 } else { 1000.0 * (1.0 - size) };
        let values = noise.autoregression(correlation, length).into_iter().enumerate();
        let series: Vec<f64> = values.map(|(t, x)| level(t) * (1.0 + 0.02 * x)).collect();
        (at, course(&series, &Tolerance::THROUGHPUT))
    };
    (0..24_000 / length).map(one).collect()
}

#[test]
fn a_level_that_falls_by_a_tenth_is_called_steady_in_at_most_one_of_a_hundred_series() {
    for (correlation, length) in [(0.0, 60), (0.5, 60), (0.8, 60), (0.0, 120), (0.5, 120), (0.8, 120), (0.5, 300)] {
        for size in [0.1, 0.4] {
            let found = falling(correlation, length, size);
            let wrong = |(at, found): &&(usize, Steadiness)| claims(&found.steady, *at);
            let (wrong, all) = (found.iter().filter(wrong).count(), found.len());
            assert!(wrong * 100 <= all, "correlation {correlation}, {length} s, {size}: {wrong} of {all}");
        }
    }
}

/// Whether a series is called steady around `at`, where its level changed.
fn claims(steady: &Steady, at: usize) -> bool {
    matches!(steady, Steady::From { judged, .. } if judged.start < at && at < judged.end)
}

/// What happens to the level of a series of `length`: for each second, its share of the level.
#[derive(Clone, Copy, Debug)]
enum Event {
    Nothing,
    /// To this share of the level, after this share of the series.
    Step(f64, f64),
    /// To this share, for so many seconds from the middle on.
    Dip(f64, usize),
    /// To this share at the end, on a straight line.
    Drift(f64),
}

impl Event {
    fn at(self, t: usize, length: usize) -> f64 {
        match self {
            Event::Step(to, after) if t >= Event::place(length, after) => to,
            Event::Dip(to, seconds) if (length / 2..length / 2 + seconds).contains(&t) => to,
            Event::Drift(to) => 1.0 + (to - 1.0) * t as f64 / length as f64,
            _ => 1.0,
        }
    }

    fn place(length: usize, after: f64) -> usize {
        (after * length as f64).ceil() as usize
    }

    /// Whether this is called steady.
    fn is_missed(self, steady: &Steady, length: usize) -> bool {
        match self {
            Event::Nothing => false,
            Event::Step(_, after) => claims(steady, Event::place(length, after)),
            Event::Dip(..) | Event::Drift(_) => matches!(steady, Steady::From { .. }),
        }
    }
}

/// Shares of series, in percent.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    /// Called steady where they are not.
    missed: f64,
    /// Called steady in a part.
    steady: f64,
    /// Called not steady.
    not_steady: f64,
}

/// Over autoregressions of each correlation, length and noise.
fn verdicts(event: Event, tolerance: &Tolerance, noises: &[f64], repetitions: usize) -> Shares {
    let (mut missed, mut steady, mut not, mut all) = (0, 0, 0, 0);
    for length in [30, 60, 120, 300] {
        for correlation in [0.0, 0.5, 0.8] {
            for deviation in noises {
                let mut noise = Noise(Random::new(8));
                for _ in 0..repetitions {
                    let values = noise.autoregression(correlation, length).into_iter().enumerate();
                    let series: Vec<f64> =
                        values.map(|(t, x)| 1000.0 * event.at(t, length) * (1.0 + deviation * x)).collect();
                    let found = course(&series, tolerance).steady;
                    missed += u32::from(event.is_missed(&found, length));
                    steady += u32::from(matches!(found, Steady::From { .. }));
                    not += u32::from(matches!(
                        found,
                        Steady::Not(Unsteady::Shifted | Unsteady::Trend { .. } | Unsteady::Excursion(_))
                    ));
                    all += 1;
                }
            }
        }
    }
    let share = |of: u32| 100.0 * f64::from(of) / f64::from(all);
    let shares = Shares { missed: share(missed), steady: share(steady), not_steady: share(not) };
    println!(
        "{event:?}: {:.1} % missed, {:.0} % steady, {:.0} % not steady, {:.0} % unknown",
        shares.missed,
        shares.steady,
        shares.not_steady,
        100.0 - shares.steady - shares.not_steady
    );
    shares
}

/// The table in docs/methodology.md; noise of 2 and 5 %, and for response times of 5 and 15 %.
#[test]
fn changes_that_matter_are_called_steady_in_at_most_one_of_a_hundred_series() {
    let of = |tolerance: &Tolerance, noises: &[f64], events: &[Event]| {
        for event in events {
            let shares = verdicts(*event, tolerance, noises, REPETITIONS);
            assert!(shares.missed <= 1.0, "{event:?}: {shares:?}");
        }
    };
    const REPETITIONS: usize = 25;
    let mut steps: Vec<Event> = Vec::new();
    for share in [0.5, 0.8, 0.9, 0.95, 0.97] {
        steps.extend([0.9, 0.75, 0.5].map(|to| Event::Step(to, share)));
    }
    let others = [Event::Dip(0.5, 2), Event::Dip(0.5, 3), Event::Dip(0.5, 5), Event::Drift(0.8)];
    of(&Tolerance::THROUGHPUT, &[0.02, 0.05], &[&steps[..], &others].concat());
    let mut rises: Vec<Event> = Vec::new();
    for share in [0.5, 0.8, 0.9, 0.95, 0.97] {
        rises.extend([1.25, 1.5].map(|to| Event::Step(to, share)));
    }
    let others = [Event::Dip(2.0, 2), Event::Dip(2.0, 3), Event::Dip(2.0, 5), Event::Drift(1.5)];
    of(&Tolerance::RESPONSE, &[0.05, 0.15], &[&rises[..], &others].concat());
    // A series without a change is almost never called unsteady, and with little noise it is called steady.
    let calm = verdicts(Event::Nothing, &Tolerance::THROUGHPUT, &[0.02], REPETITIONS);
    assert!(calm.steady >= 90.0 && calm.not_steady <= 2.0, "{calm:?}");
    let noisy = verdicts(Event::Nothing, &Tolerance::THROUGHPUT, &[0.05], REPETITIONS);
    assert!(noisy.steady >= 45.0 && noisy.not_steady <= 4.0, "{noisy:?}");
    let response = verdicts(Event::Nothing, &Tolerance::RESPONSE, &[0.05, 0.15], REPETITIONS);
    assert!(response.steady >= 45.0 && response.not_steady <= 4.0, "{response:?}");
    // Smaller steps and shallower dips than those that must be ruled out are often missed.
    for event in [Event::Step(0.95, 0.5), Event::Step(0.95, 0.9), Event::Dip(0.75, 3), Event::Drift(0.9)] {
        verdicts(event, &Tolerance::THROUGHPUT, &[0.02, 0.05], REPETITIONS);
    }
}

#[test]
fn a_level_that_falls_by_a_fifth_is_found_within_three_seconds() {
    for (correlation, length) in [(0.0, 60), (0.5, 60), (0.0, 120), (0.5, 120), (0.8, 120), (0.5, 300)] {
        let found = falling(correlation, length, 0.2);
        let near = |at: usize, found: &Steadiness| found.shifts.iter().any(|shift| shift.at.abs_diff(at) <= 3);
        let (missed, all) = (found.iter().filter(|(at, found)| !near(*at, found)).count(), found.len());
        assert!(missed * 50 <= all, "correlation {correlation}, {length} s: {missed} of {all}");
    }
}

#[test]
fn a_stationary_series_is_said_to_have_changed_in_at_most_one_of_twenty() {
    for deviation in [20.0, 100.0] {
        for (correlation, length) in [(0.0, 60), (0.5, 60), (0.9, 60), (0.0, 120), (0.5, 120), (0.9, 120), (0.8, 300)] {
            let mut noise = Noise(Random::new(77));
            let mut wrong = 0;
            let all = 24_000 / length;
            for _ in 0..all {
                let values = noise.autoregression(correlation, length);
                let series: Vec<f64> = values.into_iter().map(|x| 1000.0 + deviation * x).collect();
                wrong += u32::from(!course(&series, &Tolerance::THROUGHPUT).shifts.is_empty());
            }
            let of = format!("correlation {correlation}, {length} s, deviation {deviation}");
            assert!(wrong as usize * 20 <= all, "{of}: {wrong} of {all}");
        }
    }
}

/// Experiments without any difference, on a machine that gets 10 % slower from the first trial to the last.
#[test]
fn of_grids_of_equal_cells_on_a_drifting_machine_at_most_one_in_twenty_finds_a_difference() {
    const CELLS: usize = 12;
    for rounds in [2, 3, 5] {
        let mut noise = Noise(Random::new(12));
        let mut wrong = 0;
        for _ in 0..1_000 {
            let mut trials = Vec::new();
            for round in 0..rounds {
                let mut order: Vec<usize> = (0..CELLS).collect();
                for last in (1..CELLS).rev() {
                    order.swap(last, noise.0.below(last as u64 + 1) as usize);
                }
                for cell in order {
                    let drift = 1.0 - 0.1 * trials.len() as f64 / (CELLS * rounds) as f64;
                    let value = 1000.0 * drift * (0.02 * noise.0.normal()).exp();
                    trials.push(Observation { cell, round, value });
                }
            }
            let fit = Blocks::fit(&trials, CELLS, rounds).unwrap();
            let differs =
                |cell| matches!(fit.ratio(0, cell, CELLS - 1, 0.03).unwrap().verdict, Verdict::More | Verdict::Less);
            wrong += u32::from((1..CELLS).any(differs));
        }
        println!("{rounds} rounds: {wrong} of 1,000 experiments with a false difference");
        assert!(wrong <= 50, "{rounds} rounds: {wrong} of 1,000 experiments find a difference");
    }
}

/// Rounds differ, and some trials are missing: the truth is the cell's value in the middle of the rounds.
#[test]
fn intervals_of_a_cell_alone_hold_95_percent() {
    const CELLS: usize = 4;
    for (rounds, missing) in [(2, 0), (3, 0), (5, 0), (5, 3)] {
        let by_round: Vec<f64> = (0..rounds).map(|round| 0.1 * round as f64).collect();
        let middle = by_round.iter().sum::<f64>() / rounds as f64;
        let truth = 1000.0 * f64::exp(middle);
        check(&format!("a cell over {rounds} rounds, {missing} trials missing"), 10_000, truth, |noise| {
            let mut trials = Vec::new();
            for (round, effect) in by_round.iter().enumerate() {
                for cell in 0..CELLS {
                    let value = 1000.0 * (0.2 * cell as f64 + effect + 0.03 * noise.0.normal()).exp();
                    // Cell 0 misses the first round, cell 1 the second, and so on.
                    if cell != round || cell >= missing {
                        trials.push(Observation { cell, round, value });
                    }
                }
            }
            let (_, interval) = Blocks::fit(&trials, CELLS, rounds).unwrap().value(0).unwrap();
            interval.map(|interval| (interval.low, interval.high))
        });
    }
}
