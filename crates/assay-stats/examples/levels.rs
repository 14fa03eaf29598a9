//! Prints how often `levels` errs and how soon it finds changes, as a table; `levels FOLDER` also writes the series as
//! CSV, for other tools.

use std::path::Path;

use assay_random::Random;
use assay_stats::{CONFIRMED_BY, Scale, levels};

const SERIES: u64 = 40;

fn series(
    stream: u64,
    seed: u64,
    noise: f64,
    correlation: f64,
    length: usize,
    level: impl Fn(usize) -> f64,
) -> Vec<f64> {
    let mut random = Random::of_stream(stream, seed);
    let mut rest = random.normal();
    let mut value = |i: usize| {
        rest = correlation * rest + (1.0 - correlation * correlation).sqrt() * random.normal();
        level(i) * (1.0 + noise * rest)
    };
    (0..length).map(&mut value).collect()
}

/// Each claim: after how many values it was made, and where it was said to be.
fn claims(values: &[f64]) -> Vec<(usize, usize)> {
    let (mut found, mut from) = (Vec::new(), 0);
    for end in 2 * CONFIRMED_BY..=values.len() {
        let begin = from.max(end.saturating_sub(150));
        if let Some(change) = levels(&values[begin..end], Scale::Ratio).changes.last() {
            from = begin + change.at;
            found.push((end, from));
        }
    }
    found
}

fn main() {
    let folder = std::env::args().nth(1);
    let save = |name: &str, seed: u64, values: &[f64]| {
        let Some(folder) = &folder else { return };
        let rows: String =
            values.iter().enumerate().map(|(i, value)| format!("{},{value}\n", 1_700_000_000 + i * 86_400)).collect();
        std::fs::write(Path::new(folder).join(format!("{name}-{seed}.csv")), format!("time,tps\n{rows}"))
            .expect("a folder");
    };
    for correlation in [0.0, 0.3] {
        let mut alarms = 0;
        for seed in 0..SERIES {
            let values = series(1, seed, 0.02, correlation, 250, |_| 1000.0);
            save(&format!("calm-{correlation}"), seed, &values);
            alarms += claims(&values).len();
        }
        let per_thousand = alarms as f64 / (SERIES * 250) as f64 * 1000.0;
        println!("noise 2%, correlation {correlation}: {per_thousand:.1} false alarms per 1,000 points");
    }
    for size in [0.03, 0.05, 0.10] {
        let mut delays = Vec::new();
        for seed in 0..SERIES {
            let values = series(2, seed, 0.02, 0.0, 100, |i| if i < 50 { 1000.0 } else { 1000.0 * (1.0 - size) });
            save(&format!("step-{size}"), seed, &values);
            delays.extend(claims(&values).into_iter().map(|(end, _)| end).find(|end| *end > 50).map(|end| end - 50));
        }
        delays.sort_unstable();
        let at = |share: f64| delays.get((delays.len() as f64 * share) as usize);
        println!(
            "change of {:.0}%: found in {} of {SERIES}, after {:?} points (median), {:?} (90%)",
            size * 100.0,
            delays.len(),
            at(0.5),
            at(0.9)
        );
    }
    for before in [20, 40, 100] {
        let (mut found, mut sizes) = (0, 0.0);
        for seed in 0..100 {
            let size = levels(&series(3, seed, 0.02, 0.0, before, |_| 1000.0), Scale::Ratio)
                .detectable
                .expect("enough values");
            let level = |i: usize| if i < before { 1000.0 } else { 1000.0 * (1.0 - size) };
            found +=
                usize::from(!levels(&series(3, seed, 0.02, 0.0, before + 10, level), Scale::Ratio).changes.is_empty());
            sizes += size;
        }
        println!("after {before} points, {sizes:.1}% is called detectable, and found {found} times of 100");
    }
    valleys();
    for total in [0.0, 0.01, 0.02, 0.04] {
        let (mut drifts, mut steps) = (0, 0);
        for seed in 0..20 {
            let values = series(4, seed, 0.02, 0.0, 2000, |i| 1000.0 * (1.0 - total * i as f64 / 2000.0));
            let found = levels(&values, Scale::Ratio);
            (drifts, steps) =
                (drifts + usize::from(found.drift.is_some()), steps + usize::from(!found.changes.is_empty()));
        }
        println!(
            "drift of {:.0}% over 2,000 points: found in {drifts} of 20, taken for steps in {steps}",
            total * 100.0
        );
    }
}

/// How often a level that came and went is found: both ends within a third of its length, and in the right direction.
fn valleys() {
    const DEPTHS: [f64; 6] = [-0.05, -0.1, -0.2, -0.5, 0.1, 0.2];
    const LENGTHS: [(usize, usize, usize); 8] = [
        (100, 5, 100),
        (100, 7, 100),
        (10, 10, 10),
        (30, 10, 30),
        (100, 14, 100),
        (20, 20, 20),
        (100, 20, 100),
        (50, 100, 50),
    ];
    println!("percent found of 40, noise 2%: before, length and after, then the change: {DEPTHS:?}");
    for (before, length, after) in LENGTHS {
        let (end, all) = (before + length, before + length + after);
        let found = DEPTHS.map(|depth| {
            let is_found = |seed: &u64| {
                let level = |i: usize| if (before..end).contains(&i) { 1000.0 * (1.0 + depth) } else { 1000.0 };
                let changes = levels(&series(5, *seed, 0.02, 0.0, all, level), Scale::Ratio).changes;
                let is = |place: usize, more: bool| {
                    let near = |at: usize| at.abs_diff(place) <= (length / 3).max(2);
                    changes.iter().any(|change| near(change.at) && (change.size.size > 1.0) == more)
                };
                is(before, depth > 0.0) && is(end, depth < 0.0)
            };
            (0..SERIES).filter(is_found).count() * 100 / SERIES as usize
        });
        println!("{before} / {length} / {after}: {found:?}");
    }
}
