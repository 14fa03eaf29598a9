//! Which trial is next, and how long all of them will take.

use assay_random::Random;

use crate::journal::{TrialKey, TrialProgress};

/// The order of a round's cells: a permutation drawn from the seed, independent of the other rounds. Source: Fisher and
/// Yates, as in Knuth, The Art of Computer Programming 2, algorithm 3.4.2P.
pub fn order(cells: usize, round: u32, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cells).collect();
    let mut random = Random::of_stream(seed, u64::from(round));
    for last in (1..cells).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

/// The order of a round's cells in a duel: from first to last in odd rounds, back in even ones, so that a drift affects
/// all cells alike.
pub fn alternating(cells: usize, round: u64) -> Vec<usize> {
    if round.is_multiple_of(2) { (0..cells).rev().collect() } else { (0..cells).collect() }
}

/// The remaining trials, in order. A cell that failed twice in a row is not tried again.
pub fn remaining(cells: usize, rounds: u32, seed: u64, progress: &TrialProgress) -> Vec<TrialKey> {
    let given_up = progress.given_up(cells);
    let all =
        (1..=rounds).flat_map(|round| order(cells, round, seed).into_iter().map(move |cell| TrialKey { round, cell }));
    all.filter(|key| !given_up[key.cell] && !progress.is_over(*key)).collect()
}

/// Estimated seconds for these trials: the mean of the cell's own so far, else of all, else `planned`.
pub fn seconds_left(trials: &[TrialKey], progress: &TrialProgress, planned: impl Fn(usize) -> f64) -> f64 {
    let all = progress.seconds_of(None);
    trials.iter().map(|key| progress.seconds_of(Some(key.cell)).or(all).unwrap_or_else(|| planned(key.cell))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{JournalEvent, line};

    #[test]
    fn rounds_are_different_permutations_of_all_cells_that_the_seed_repeats() {
        let rounds: Vec<Vec<usize>> = (1..=20).map(|round| order(7, round, 42)).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6]);
        }
        let mut different = rounds.clone();
        different.sort();
        different.dedup();
        assert!(different.len() > 15, "{rounds:?}");
        assert_eq!(order(7, 3, 42), rounds[2]);
        assert_ne!(order(7, 3, 43), rounds[2]);
        // Every cell comes first equally often, or nearly so.
        let mut firsts = [0; 4];
        (0..4000).for_each(|round| firsts[order(4, round, 1)[0]] += 1);
        assert!(firsts.iter().all(|count| (900..1100).contains(count)), "{firsts:?}");
    }

    #[test]
    fn what_is_left_follows_the_order_and_what_was_measured() {
        let done = |round, cell, seconds| {
            line(&JournalEvent::Done {
                round,
                cell,
                name: String::new(),
                attempt: 1,
                record: "r".into(),
                at: String::new(),
                seconds,
                parts: Vec::new(),
                values: Vec::new(),
                phases: Vec::new(),
                spoiled: Vec::new(),
                kept: true,
            })
        };
        let progress = TrialProgress::of_text(&[done(1, 0, 10.0), done(1, 2, 40.0)].concat());
        let left = remaining(3, 2, 5, &progress);
        assert_eq!(left.len(), 4);
        assert_eq!(left[0], TrialKey { round: 1, cell: 1 });
        let cells: Vec<usize> = left[1..].iter().map(|key| key.cell).collect();
        assert_eq!(cells, order(3, 2, 5));
        // 25 for cell 1 twice, as the mean of the others; 10 and 40.
        assert!((seconds_left(&left, &progress, |_| 1e9) - 100.0).abs() < 1e-9);
        assert!((seconds_left(&left, &TrialProgress::default(), |_| 3.0) - 12.0).abs() < 1e-9);
        let failed = |round| {
            line(&JournalEvent::Failed {
                round,
                cell: 1,
                name: String::new(),
                attempt: 1,
                at: String::new(),
                cause: "it died".into(),
                details: Vec::new(),
            })
        };
        // A cell that failed has another chance, and after that one in a row with it none.
        let left_of_cell = |journal: &[String]| {
            let left = remaining(3, 5, 5, &TrialProgress::of_text(&journal.concat()));
            left.iter().filter(|key| key.cell == 1).map(|key| key.round).collect::<Vec<_>>()
        };
        assert_eq!(left_of_cell(&[failed(1)]), [2, 3, 4, 5]);
        assert_eq!(left_of_cell(&[failed(1), failed(2)]), [0; 0]);
        assert_eq!(left_of_cell(&[failed(1), done(2, 1, 1.0), failed(3)]), [4, 5]);
        assert_eq!(left_of_cell(&[failed(1), done(2, 1, 1.0), failed(3), failed(4)]), [0; 0]);
    }
}
