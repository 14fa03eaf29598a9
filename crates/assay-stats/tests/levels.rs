//! How often changes of level are found, and how often there are none: `cargo run -p assay-stats --example levels` does
//! the same more often, and prints the figures of docs/library.md.

use assay_random::Random;
use assay_stats::{CONFIRMED_BY, JUDGED_MIN, Scale, levels};

const NOISE: f64 = 0.02;

fn series(seed: u64, length: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut random = Random::of_stream(7, seed);
    (0..length).map(|i| level(i) * (1.0 + NOISE * random.normal())).collect()
}

/// As a team sees it: after each new value, everything since the last confirmed change is judged again. Returns after
/// how many values each claim was made.
fn claims(values: &[f64]) -> Vec<usize> {
    let (mut found, mut from) = (Vec::new(), 0);
    for end in 2 * CONFIRMED_BY..=values.len() {
        let begin = from.max(end.saturating_sub(100));
        if let Some(change) = levels(&values[begin..end], Scale::Ratio).changes.last() {
            from = begin + change.at;
            found.push(end);
        }
    }
    found
}

#[test]
fn calm_series_have_few_false_alarms() {
    let alarms: usize = (0..10).map(|seed| claims(&series(seed, 300, |_| 1000.0)).len()).sum();
    assert!(alarms <= 6, "{alarms} in 3,000 points");
}

#[test]
fn changes_are_found_soon() {
    for (size, delay_max) in [(0.03, 20), (0.05, 9), (0.10, 6)] {
        let is_soon = |seed: &u64| {
            let values = series(*seed, 90, |i| if i < 40 { 1000.0 } else { 1000.0 * (1.0 - size) });
            claims(&values).into_iter().find(|end| *end > 40).is_some_and(|end| end <= 40 + delay_max)
        };
        let soon = (0..12).filter(is_soon).count();
        assert!(soon >= 10, "{size}: {soon} of 12 within {delay_max} points");
    }
}

#[test]
fn the_size_has_an_interval_that_holds() {
    let (mut found, mut held) = (0, 0);
    for seed in 0..60 {
        let values = series(seed, 60, |i| if i < 30 { 1000.0 } else { 950.0 });
        if let [change] = levels(&values, Scale::Ratio).changes[..] {
            let (low, high) = change.size.interval.unwrap();
            found += 1;
            held += usize::from(low <= 0.95 && 0.95 <= high);
        }
    }
    // A place that is off by one or two costs a little.
    assert!(found >= 55 && held * 100 >= found * 88, "{held} of {found}");
}

#[test]
fn a_change_of_the_detectable_size_is_mostly_found() {
    let mut found = 0;
    for seed in 0..60 {
        let size = levels(&series(seed, 40, |_| 1000.0), Scale::Ratio).detectable.unwrap();
        let values = series(seed, 50, |i| if i < 40 { 1000.0 } else { 1000.0 * (1.0 - size) });
        found += usize::from(!levels(&values, Scale::Ratio).changes.is_empty());
    }
    assert!(found >= 48, "{found} of 60");
}

#[test]
fn a_spike_is_not_a_change() {
    for seed in 0..20 {
        let mut values = series(seed, 60, |_| 1000.0);
        values[40] = 500.0;
        let found = levels(&values, Scale::Ratio);
        assert!(found.changes.is_empty() && found.pending.is_none() && found.spikes.contains(&40), "{found:?}");
    }
}

#[test]
fn a_change_is_pending_until_enough_values_confirm_it() {
    let values = series(3, 46, |i| if i < 40 { 1000.0 } else { 900.0 });
    let state = |end: usize| {
        let found = levels(&values[..end], Scale::Ratio);
        (found.changes.iter().map(|change| change.at).collect::<Vec<_>>(), found.pending.map(|change| change.at))
    };
    assert_eq!(state(40), (vec![], None));
    assert_eq!(state(41), (vec![], None));
    assert_eq!(state(43), (vec![], Some(40)));
    assert_eq!(state(46), (vec![40], None));
}

#[test]
fn none_is_claimed_among_the_first_few() {
    for seed in 0..50 {
        for end in 0..10 {
            let found = levels(&series(seed, end, |i| if i < 4 { 1000.0 } else { 500.0 }), Scale::Ratio);
            assert!(found.changes.is_empty(), "{end}: {found:?}");
        }
    }
}

#[test]
fn a_slow_drift_is_a_drift_and_not_a_staircase() {
    for seed in 0..4 {
        let values = series(seed, 1200, |i| 1000.0 * (1.0 - 0.04 * i as f64 / 1200.0));
        let found = levels(&values, Scale::Ratio);
        let drift = found.drift.unwrap_or_else(|| panic!("{:?}", found.changes));
        assert!(found.changes.is_empty() && (-0.05..-0.03).contains(&drift.total), "{drift:?}");
    }
    let stairs = series(1, 400, |i| if i < 200 { 1000.0 } else { 960.0 });
    let found = levels(&stairs, Scale::Ratio);
    assert!(found.changes.len() == 1 && found.drift.is_none(), "{found:?}");
}

#[test]
fn a_change_of_the_noise_alone_is_not_a_change_of_level() {
    for seed in 0..10 {
        let mut random = Random::of_stream(9, seed);
        let values: Vec<f64> =
            (0..80).map(|i| 1000.0 * (1.0 + if i < 40 { 0.005 } else { 0.08 } * random.normal())).collect();
        let changes = levels(&values, Scale::Ratio).changes;
        assert!(changes.iter().all(|change| change.size.interval.unwrap() != (1.0, 1.0)), "{changes:?}");
        assert!(changes.len() <= 1, "{changes:?}");
    }
}

/// Whether a level that came and went is found: both its ends, and which way it went.
fn is_found(values: &[f64], begin: usize, end: usize) -> bool {
    let near = |at: usize, place: usize| at.abs_diff(place) <= ((end - begin) / 3).max(2);
    let changes = levels(values, Scale::Ratio).changes;
    let is_down = values[begin + 2] < values[begin - 3];
    let is = |place: usize, down: bool| {
        changes.iter().any(|change| near(change.at, place) && (change.size.size < 1.0) == down)
    };
    is(begin, is_down) && is(end, !is_down)
}

#[test]
fn a_level_that_came_and_went_is_found() {
    const KINDS: [(usize, usize, usize, f64); 8] = [
        (100, 14, 100, -0.5),
        (20, 20, 20, -0.1),
        (100, 20, 100, 0.2),
        (100, 7, 100, -0.1),
        (30, 10, 30, -0.1),
        (100, 5, 100, -0.2),
        (50, 100, 50, -0.05),
        (10, 10, 10, -0.2),
    ];
    let (mut found, mut all) = (0, 0);
    for (number, (before, length, after, depth)) in KINDS.into_iter().enumerate() {
        let level = |i: usize| if (before..before + length).contains(&i) { 1000.0 * (1.0 + depth) } else { 1000.0 };
        let of_kind = (0..5)
            .filter(|seed| {
                let values = series(1000 + 10 * number as u64 + seed, before + length + after, level);
                is_found(&values, before, before + length)
            })
            .count();
        assert!(of_kind >= 4, "{before}/{length}/{after} at {depth}: {of_kind} of 5");
        (found, all) = (found + of_kind, all + 5);
    }
    assert!(found * 100 >= all * 95, "{found} of {all}");
}

#[test]
fn an_old_valley_hides_neither_another_one_nor_a_new_step() {
    for seed in 0..5 {
        let values = series(seed, 260, |i| match i {
            60..75 | 120..132 => 600.0,
            240.. => 900.0,
            _ => 1000.0,
        });
        let found = levels(&values, Scale::Ratio).changes;
        let places: Vec<usize> = found.iter().map(|change| change.at).collect();
        for place in [60, 75, 120, 132, 240] {
            assert!(places.iter().any(|at| at.abs_diff(place) <= 1), "{place}: {places:?}");
        }
        let last = found.last().unwrap().size.size;
        assert!((0.87..0.93).contains(&last), "{last}");
        // After the new level's first values it is pending, or already confirmed with one or two of before.
        let early = levels(&values[..243], Scale::Ratio);
        let at = early.pending.or(early.changes.last().copied()).unwrap().at;
        assert!((237..=240).contains(&at), "{early:?}");
    }
}

/// What a team would have been told of 200 series in which nothing happened.
#[test]
fn of_200_calm_series_none_has_a_change_for_the_worse() {
    let mut alarms = 0;
    for seed in 0..200 {
        let values = series(5_000 + seed, [30, 60, 120, 240][seed as usize % 4], |_| 1000.0);
        alarms += usize::from(levels(&values, Scale::Ratio).changes.iter().any(|change| change.size.size < 0.97));
    }
    assert_eq!(alarms, 0);
}

#[test]
fn a_single_zero_or_a_missing_value_silences_nothing() {
    for odd in [0.0, f64::NAN, f64::INFINITY] {
        let mut values = series(11, 80, |i| if i < 60 { 1000.0 } else { 900.0 });
        values[20] = odd;
        let found = levels(&values, Scale::Ratio);
        let [change] = found.changes[..] else { panic!("{odd}: {found:?}") };
        assert!(change.at == 60 && (0.88..0.92).contains(&change.size.size), "{odd}: {change:?}");
        assert_eq!(found.spikes, if odd == 0.0 { vec![20] } else { vec![] }, "{odd}");
        assert!(found.noise.is_some_and(|noise| noise < 0.03) && found.is_judged, "{found:?}");
    }
}

#[test]
fn levels_of_zero_and_below_are_compared_by_their_difference() {
    let shifted = |by: f64| series(12, 60, |i| if i < 40 { 100.0 } else { 150.0 }).iter().map(|x| x + by).collect();
    let below: Vec<f64> = shifted(-1000.0);
    let found = levels(&below, Scale::Difference);
    let [change] = found.changes[..] else { panic!("{found:?}") };
    assert!(change.at == 40 && (45.0..55.0).contains(&change.size.size), "{change:?}");
    assert!(found.noise.is_some_and(|noise| (1.0..4.0).contains(&noise)), "{found:?}");
    // Ten runs that got nothing done, and then those that did again.
    let outage = series(13, 80, |i| if (40..50).contains(&i) { 0.0 } else { 1000.0 });
    let found = levels(&outage, Scale::Ratio).changes;
    let places: Vec<usize> = found.iter().map(|change| change.at).collect();
    assert_eq!(places, [40, 50]);
    assert!(found[0].size.size == 0.0 && found[1].size.size > 900.0, "{found:?}");
}

#[test]
fn series_without_a_change_have_none() {
    for values in [vec![], vec![0.0; 30], vec![f64::NAN; 30], vec![1000.0; 30], vec![1.0], vec![-3.0; 30]] {
        let found = levels(&values, Scale::Ratio);
        assert!(found.changes.is_empty() && found.drift.is_none() && found.pending.is_none(), "{values:?} {found:?}");
    }
    // A series may have no noise at all and still a change.
    let valley: Vec<f64> = (0..60).map(|i| if (30..40).contains(&i) { 50.0 } else { 100.0 }).collect();
    assert!(is_found(&valley, 30, 40));
}

#[test]
fn a_series_is_judged_as_soon_as_a_clear_step_in_its_middle_is_confirmed() {
    let confirmed = |length: usize| {
        let middle = |seed: &u64| {
            let values = series(20 + seed, length, |i| if i < length / 2 { 1000.0 } else { 500.0 });
            !levels(&values, Scale::Ratio).changes.is_empty()
        };
        (0..20).filter(middle).count()
    };
    // Chance divides twelve values as clearly in 2 of 924 orders.
    assert!(confirmed(JUDGED_MIN) >= 12 && confirmed(12) <= 6, "{} {}", confirmed(JUDGED_MIN), confirmed(12));
    assert!(!levels(&[1000.0; JUDGED_MIN - 1], Scale::Ratio).is_judged);
    assert!(levels(&[1000.0; JUDGED_MIN], Scale::Ratio).is_judged);
}
