//! How often changes of level are found, and how often there are none: `cargo run -p assay-stats --example levels` does
//! the same more often, and prints the figures of docs/history.md.

use assay_random::Random;
use assay_stats::{CONFIRMED_BY, levels};

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
        if let Some(change) = levels(&values[begin..end]).changes.last() {
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
        if let [change] = levels(&values).changes[..] {
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
        let size = levels(&series(seed, 40, |_| 1000.0)).detectable.unwrap();
        let values = series(seed, 50, |i| if i < 40 { 1000.0 } else { 1000.0 * (1.0 - size) });
        found += usize::from(!levels(&values).changes.is_empty());
    }
    assert!(found >= 48, "{found} of 60");
}

#[test]
fn a_spike_is_not_a_change() {
    for seed in 0..20 {
        let mut values = series(seed, 60, |_| 1000.0);
        values[40] = 500.0;
        let found = levels(&values);
        assert!(found.changes.is_empty() && found.pending.is_none() && found.spikes.contains(&40), "{found:?}");
    }
}

#[test]
fn a_change_is_pending_until_enough_values_confirm_it() {
    let values = series(3, 46, |i| if i < 40 { 1000.0 } else { 900.0 });
    let state = |end: usize| {
        let found = levels(&values[..end]);
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
            let found = levels(&series(seed, end, |i| if i < 4 { 1000.0 } else { 500.0 }));
            assert!(found.changes.is_empty(), "{end}: {found:?}");
        }
    }
}

#[test]
fn a_slow_drift_is_a_drift_and_not_a_staircase() {
    for seed in 0..4 {
        let values = series(seed, 1200, |i| 1000.0 * (1.0 - 0.04 * i as f64 / 1200.0));
        let found = levels(&values);
        let drift = found.drift.unwrap_or_else(|| panic!("{:?}", found.changes));
        assert!(found.changes.is_empty() && (-0.05..-0.03).contains(&drift.total), "{drift:?}");
    }
    let stairs = series(1, 400, |i| if i < 200 { 1000.0 } else { 960.0 });
    let found = levels(&stairs);
    assert!(found.changes.len() == 1 && found.drift.is_none(), "{found:?}");
}

#[test]
fn a_change_of_the_noise_alone_is_not_a_change_of_level() {
    for seed in 0..10 {
        let mut random = Random::of_stream(9, seed);
        let values: Vec<f64> =
            (0..80).map(|i| 1000.0 * (1.0 + if i < 40 { 0.005 } else { 0.08 } * random.normal())).collect();
        let changes = levels(&values).changes;
        assert!(changes.iter().all(|change| change.size.interval.unwrap() != (1.0, 1.0)), "{changes:?}");
        assert!(changes.len() <= 1, "{changes:?}");
    }
}

#[test]
fn series_without_a_ratio_have_no_changes() {
    for values in [vec![], vec![0.0; 30], vec![f64::NAN; 30], vec![1000.0; 30], vec![1.0]] {
        let found = levels(&values);
        assert!(found.changes.is_empty() && found.drift.is_none() && found.pending.is_none());
    }
}
