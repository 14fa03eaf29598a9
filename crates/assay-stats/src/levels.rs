//! Changes of level in a long series of results: one value per commit, day or version.
//!
//! Two searches find where the level changes. Values are assumed to be exchangeable while nothing changes: results of
//! runs of their own are, the seconds of one run are not (`changes` is for those). So chance is ruled out by permuting
//! the series.
//!
//! * E-divisive: the series is divided where the energy distance between both parts is largest, if a permutation test
//!   rules out chance, and then each part likewise. It finds a new level as soon as it can be found, and does not see a
//!   valley: a level that came and went leaves both parts of the best division nearly alike.
//! * Windows: each window of each length is compared with the values just before and after it, as in circular binary
//!   segmentation and wild binary segmentation. The window that differs most, in standard errors from the differences
//!   of neighbors, is a level of its own if the normal distribution and the permutations both rule out chance.
//!
//! Each change must then hold between its neighbors, by the test of E-divisive.
//!
//! A division counts as a change when at least `CONFIRMED_BY` values lie on each side and the confidence interval of
//! the ratio or difference of the levels leaves out none. The tests are strict (1 of 1,000 each), because
//! the same series is tested again with each new value. Fewer values that are all on one side of those before are
//! *pending*. A single far value is a spike, never a change.
//!
//! A slow drift would be cut into a staircase whose steps nobody made. So a straight line (Sen's slope, the
//! Mann-Kendall test with its variance corrected for correlation) competes with the steps, and the better description
//! wins. The values since the last change are tested for a drift as well.
//!
//! Sources: Matteson & James 2014, "A nonparametric approach for multiple change point analysis of multivariate data"
//! (E-divisive, here with exponent 1 and each division at the end of a part); Olshen et al. 2004, "Circular binary
//! segmentation for the analysis of array-based DNA copy number data" (a segment against the rest, with permutations);
//! Fryzlewicz 2014, "Wild binary segmentation for multiple change-point detection" (windows, because changes hide each
//! other in the whole); Kovács et al. 2023, "Seeded binary segmentation" (lengths that grow by a factor); Daly et al.
//! 2020, "The use of change point detection to identify software performance regressions in a continuous integration
//! system" (its use for results of benchmarks); Fleming et al. 2023, "Hunter: using change point detection to hunt for
//! performance regressions" (testing each division again between its neighbors, and why weak ones come and go); Besag
//! & Clifford 1991 (a permutation test may stop as soon as it cannot reject any more); Mann 1945, Kendall 1975, Sen
//! 1968 (drift); Bayley & Hammersley 1946 (the variance of correlated values). `tests/levels.rs` measures false alarms,
//! delays and valleys.

use assay_random::Random;

use crate::changes::without_outliers;
use crate::comparison::{Change, MARGIN_DEFAULT, change};
use crate::mean::{mean, median};
use crate::scale::{Measure, Scale};

/// Values on each side of a change, at least.
pub const CONFIRMED_BY: usize = 5;
/// Values nearest to a change that its size is computed from, on each side: later values do not move it any more.
const SIZE_FROM: usize = 30;
/// Permutations of a test. It rejects if at most one of them divides as well: with a probability of 2 in 2,000.
const PERMUTATIONS: usize = 1_999;
/// Permutations that may divide as well.
const AS_GOOD_MAX: usize = 1;
/// Permutations of the test of a window, none of which may have one that differs as much.
const WINDOW_PERMUTATIONS: usize = 999;
/// Chance that some window of a series of normal values differs as much.
const WINDOW_CHANCE: f64 = 1e-3;
/// Lengths of windows grow by this factor.
const WINDOW_GROWTH: f64 = 1.15;
/// Values on each side that a window is compared with, at least: as many as it has, if that is more.
const FLANK_MIN: usize = 20;
/// Of fewer points, a change can hardly be confirmed: of 13, chance divides more than one order of 1,000 as clearly.
pub const JUDGED_MIN: usize = 14;
/// Chance of a pending change.
const PENDING_CHANCE: f64 = 0.01;
/// Standard deviations between a spike and its level.
const SPIKE: f64 = 5.0;
/// Anything shorter has no drift.
const DRIFT_LENGTH_MIN: usize = 20;
/// Two-sided normal quantile of 0.001.
const DRIFT_SURE: f64 = 3.290_527;
/// Two-sided normal quantile of `LEVEL`.
const INTERVAL_SURE: f64 = 1.959_964;
/// A drift is searched in means of this many blocks.
const BLOCKS_MAX: usize = 400;
/// Longer series are searched in parts of this length, each beginning at the last change before.
pub const LENGTH_MAX: usize = 5_000;

/// What became of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// What `noise` and `detectable` are: shares of the level, or differences in the unit of the values.
    pub by: Measure,
    /// Whether there are enough values for a statement about changes.
    pub is_judged: bool,
    /// Confirmed changes, in order.
    pub changes: Vec<LevelChange>,
    /// The latest values are all on one side of those before, and too few to confirm it.
    pub pending: Option<LevelChange>,
    /// Single values far from their level.
    pub spikes: Vec<usize>,
    /// A steady drift: of the whole series, or since the last change.
    pub drift: Option<Drift>,
    /// Standard deviation of a value around its level; `None` for fewer than five values.
    pub noise: Option<f64>,
    /// The smallest change that ten more values would confirm in nine of ten cases.
    pub detectable: Option<f64>,
    /// Correlation of neighbors around their levels; `None` for fewer than 20 values. Above `CORRELATION_MAX`, chance
    /// produces more changes than it should.
    pub correlation: Option<f64>,
}

/// At 0.3, there are ten times as many false alarms as without correlation.
pub const CORRELATION_MAX: f64 = 0.25;

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelChange {
    /// The first value of the new level.
    pub at: usize,
    /// Median of the values before, as far as they count.
    pub before: f64,
    /// Median of the values from it on.
    pub after: f64,
    /// How far the levels are apart, with its interval.
    pub size: Change,
}

/// A drift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Where it starts.
    pub from: usize,
    /// Its last value.
    pub to: usize,
    /// The change from the start to the end, as a share of the start's size: Sen's slope.
    pub total: f64,
    /// Its 95 % interval.
    pub interval: (f64, f64),
}

/// The levels of a series in the order of time, all values in the same unit; those that are not finite do not count.
/// Changes are ratios if `scale` and the values have one, otherwise differences: a few zeros do no harm to a ratio.
///
/// Cost: O(n log n) for each of 2,000 permutations of every change; tests that do not reject stop after a few.
pub fn levels(values: &[f64], scale: Scale) -> Levels {
    let known: Vec<usize> = (0..values.len()).filter(|at| values[*at].is_finite()).collect();
    if known.len() == values.len() {
        return levels_of(values, scale);
    }
    let mut found = levels_of(&known.iter().map(|at| values[*at]).collect::<Vec<f64>>(), scale);
    let changes = found.changes.iter_mut().chain(&mut found.pending).map(|change| &mut change.at);
    let drift = found.drift.iter_mut().flat_map(|drift| [&mut drift.from, &mut drift.to]);
    changes.chain(drift).chain(&mut found.spikes).for_each(|at| *at = known[*at]);
    found
}

fn levels_of(values: &[f64], scale: Scale) -> Levels {
    let by = measure(values, scale);
    let mut places = divisions(values);
    let mut drift = None;
    if let Some(found) = drift_of(values, 0).filter(|_| !places.is_empty())
        && line_is_better(values, &places)
    {
        (drift, places) = (Some(found), Vec::new());
    }
    let changes = changes_at(values, &mut places, scale);
    let last = places.last().copied().unwrap_or(0);
    let drift = drift.or_else(|| drift_of(&values[last..], last));
    let noise = noise(values, &places, drift.as_ref(), by);
    let pending = if drift.is_some_and(|drift| drift.from == 0) { None } else { pending(values, last, scale) };
    let detectable = noise.map(|noise| detectable(noise, values.len() - last));
    let spikes = spikes(values, &places, noise, by);
    let rest = || around(values, &places, drift.as_ref(), by);
    let correlation = (values.len() >= DRIFT_LENGTH_MIN).then(|| correlation(&rest()));
    let is_judged = values.len() >= JUDGED_MIN;
    Levels { by, is_judged, changes, pending, spikes, drift, noise, detectable, correlation }
}

/// What most of the values can be compared by.
fn measure(values: &[f64], scale: Scale) -> Measure {
    let number = |is: fn(&f64) -> bool| values.iter().filter(|value| is(value)).count();
    let (zeros, negative) = (number(|value| *value == 0.0), number(|value| *value < 0.0));
    // A few runs failed; a level of 0 is another matter.
    let zeros_max = if scale == Scale::Ratio { values.len() / 10 } else { 0 };
    match scale {
        Scale::Ratio | Scale::Count if negative == 0 && zeros <= zeros_max => Measure::Ratio,
        _ => Measure::Difference,
    }
}

/// The changes at `places`, which lose those whose size may be none.
fn changes_at(values: &[f64], places: &mut Vec<usize>, scale: Scale) -> Vec<LevelChange> {
    loop {
        let found: Vec<Option<LevelChange>> =
            (0..places.len()).map(|i| level_change(values, places, i, scale)).collect();
        let is_none = |found: &Option<LevelChange>| {
            let includes_none =
                |size: Change| size.interval.is_none_or(|(low, high)| low <= size.by.none() && high >= size.by.none());
            found.is_none_or(|found| includes_none(found.size))
        };
        match found.iter().position(is_none) {
            // Only the spread has changed, for example.
            Some(i) => drop(places.remove(i)),
            None => return found.into_iter().flatten().collect(),
        }
    }
}

fn level_change(values: &[f64], places: &[usize], i: usize, scale: Scale) -> Option<LevelChange> {
    let from = if i == 0 { 0 } else { places[i - 1] };
    let to = places.get(i + 1).copied().unwrap_or(values.len());
    let at = places[i];
    sized(&values[from.max(at.saturating_sub(SIZE_FROM))..at], &values[at..to.min(at + SIZE_FROM)], at, scale)
}

fn sized(before: &[f64], after: &[f64], at: usize, scale: Scale) -> Option<LevelChange> {
    let size = change(before, after, MARGIN_DEFAULT, scale)?;
    Some(LevelChange { at, before: median(before), after: median(after), size })
}

/// Where the series is divided, in order.
fn divisions(values: &[f64]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut begin = 0;
    // The last changes of a part may lack values after them: the next part starts there.
    while begin < values.len() {
        let end = values.len().min(begin + LENGTH_MAX);
        let mut part = Vec::new();
        divide(values, begin, end, &mut part);
        part.sort_unstable();
        if end == values.len() {
            found.extend(part);
            break;
        }
        found.extend(part.iter().copied());
        begin = part.last().copied().unwrap_or(begin).max(begin + LENGTH_MAX / 2);
    }
    found.sort_unstable();
    found.dedup();
    // Each must hold between its neighbors; the weakest goes first, because the others may then hold.
    loop {
        let edges: Vec<usize> = [0].into_iter().chain(found.iter().copied()).chain([values.len()]).collect();
        let kept: Vec<Option<usize>> = edges.windows(3).map(|edge| division(values, edge[0], edge[2])).collect();
        match kept.iter().position(Option::is_none) {
            Some(at) => drop(found.remove(at)),
            None => {
                let moved: Vec<usize> = kept.into_iter().flatten().collect();
                if moved == found || !moved.is_sorted_by(|a, b| a < b) {
                    return found;
                }
                return moved;
            }
        }
    }
}

fn divide(values: &[f64], from: usize, to: usize, found: &mut Vec<usize>) {
    if let Some(at) = division(values, from, to) {
        found.push(at);
        divide(values, from, at, found);
        divide(values, at, to, found);
    } else if let Some((begin, end)) = window(values, from, to) {
        found.extend([begin, end]);
        divide(values, from, begin, found);
        divide(values, begin, end, found);
        divide(values, end, to, found);
    }
}

/// The window between `from` and `to` that differs most from the values around it, unless chance produces such ones.
fn window(values: &[f64], from: usize, to: usize) -> Option<(usize, usize)> {
    if to - from < 3 * CONFIRMED_BY {
        return None;
    }
    let mut calm = without_outliers(&values[from..to]);
    let mut sums = Vec::new();
    let (begin, end, best, tested) = farthest_window(&calm, &mut sums);
    // Of so many windows; the tail of the normal distribution is below its density by the deviation.
    let tail = (-best * best / 2.0).exp() / (best * (2.0 * std::f64::consts::PI).sqrt());
    if best <= 1.0 || 2.0 * tail * tested as f64 > WINDOW_CHANCE {
        return None;
    }
    let mut random = Random::of_stream(0x7769_6e64, (to - from) as u64);
    for _ in 0..WINDOW_PERMUTATIONS {
        for i in (1..calm.len()).rev() {
            calm.swap(i, random.below(i as u64 + 1) as usize);
        }
        if farthest_window(&calm, &mut sums).2 >= best {
            return None;
        }
    }
    Some((from + begin, from + end))
}

/// The window farthest from the values around it, its distance in standard errors, and how many were tested.
/// `sums`: reused.
fn farthest_window(series: &[f64], sums: &mut Vec<f64>) -> (usize, usize, f64, usize) {
    let n = series.len();
    let mut sum = 0.0;
    sums.clear();
    sums.push(0.0);
    sums.extend(series.iter().map(|value| {
        sum += value;
        sum
    }));
    let error = error_of_neighbors(series);
    let (mut best, mut tested) = ((0, 0, 0.0), 0);
    let mut length = CONFIRMED_BY;
    while length + 2 * CONFIRMED_BY <= n {
        let flank = length.max(FLANK_MIN);
        for begin in CONFIRMED_BY..=n - length - CONFIRMED_BY {
            let end = begin + length;
            let (low, high) = (begin.saturating_sub(flank), (end + flank).min(n));
            let (inside, others) = (length as f64, (high - low - length) as f64);
            let own = sums[end] - sums[begin];
            let apart = own / inside - (sums[high] - sums[low] - own) / others;
            let distance = apart.abs() / (error * (1.0 / inside + 1.0 / others).sqrt());
            tested += 1;
            if distance > best.2 {
                best = (begin, end, distance);
            }
        }
        length = ((length as f64 * WINDOW_GROWTH) as usize).max(length + 1);
    }
    (best.0, best.1, best.2, tested)
}

/// Standard deviation of a value while the level stays: from the differences of neighbors, of which changes are few.
/// Source: von Neumann 1941.
fn error_of_neighbors(series: &[f64]) -> f64 {
    let squares: f64 = series.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    (squares / (2 * (series.len() - 1)) as f64).sqrt().max(f64::MIN_POSITIVE)
}

/// Where the values from `from` to before `to` are best divided, unless chance divides as well.
fn division(values: &[f64], from: usize, to: usize) -> Option<usize> {
    if to - from < 2 * CONFIRMED_BY {
        return None;
    }
    let mut ranked = Ranked::of(&values[from..to]);
    let (at, best) = ranked.best();
    if best <= 0.0 {
        return None;
    }
    let mut random = Random::of_stream(0x6c65_7665, (to - from) as u64);
    let mut as_good = 0;
    for _ in 0..PERMUTATIONS {
        ranked.shuffle(&mut random);
        if ranked.best().1 >= best {
            as_good += 1;
            if as_good > AS_GOOD_MAX {
                return None;
            }
        }
    }
    Some(from + at)
}

/// Values by rank: sums of distances to those on the left in O(log n).
struct Ranked {
    /// Ascending.
    sorted: Vec<f64>,
    /// Sum of the distances of each of these to all others.
    distances: Vec<f64>,
    /// Sum over all pairs.
    all: f64,
    /// Ranks in the order of the series.
    ranks: Vec<u32>,
    /// Fenwick trees over ranks: number and sum of the values on the left.
    counts: Vec<u32>,
    sums: Vec<f64>,
}

impl Ranked {
    fn of(values: &[f64]) -> Ranked {
        let n = values.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut ranks = vec![0; n];
        for (rank, place) in order.iter().enumerate() {
            ranks[*place] = rank as u32;
        }
        let sorted: Vec<f64> = order.iter().map(|place| values[*place]).collect();
        let total: f64 = sorted.iter().sum();
        let mut below = 0.0;
        let mut distances = Vec::with_capacity(n);
        for (rank, value) in sorted.iter().enumerate() {
            let above = total - below - value;
            distances.push(value * rank as f64 - below + above - value * (n - 1 - rank) as f64);
            below += value;
        }
        let all = distances.iter().sum::<f64>() / 2.0;
        Ranked { sorted, distances, all, ranks, counts: vec![0; n + 1], sums: vec![0.0; n + 1] }
    }

    fn shuffle(&mut self, random: &mut Random) {
        for i in (1..self.ranks.len()).rev() {
            let j = random.below(i as u64 + 1) as usize;
            self.ranks.swap(i, j);
        }
    }

    /// The division with the largest energy distance, and that distance: Q of Matteson & James, equation 6.
    fn best(&mut self) -> (usize, f64) {
        let n = self.ranks.len();
        self.counts.fill(0);
        self.sums.fill(0.0);
        // Sums of distances within the left part, and between both.
        let (mut left, mut between, mut sum) = (0.0, 0.0, 0.0);
        let mut best = (0, f64::NEG_INFINITY);
        for at in 0..n {
            let rank = self.ranks[at] as usize;
            let value = self.sorted[rank];
            let (count, below) = self.below(rank);
            let above = sum - below;
            let to_left = value * f64::from(count) - below + above - value * (at as f64 - f64::from(count));
            left += to_left;
            between += self.distances[rank] - 2.0 * to_left;
            sum += value;
            self.add(rank, value);
            let (m, k) = ((at + 1) as f64, (n - at - 1) as f64);
            if at + 1 >= CONFIRMED_BY && n - at > CONFIRMED_BY {
                let right = self.all - left - between;
                let distance = 2.0 / (m * k) * between - 2.0 / (m * (m - 1.0)) * left - 2.0 / (k * (k - 1.0)) * right;
                let q = m * k / (m + k) * distance;
                if q > best.1 {
                    best = (at + 1, q);
                }
            }
        }
        best
    }

    /// Number and sum of the values on the left with a lower rank.
    fn below(&self, rank: usize) -> (u32, f64) {
        let (mut at, mut count, mut sum) = (rank, 0, 0.0);
        while at > 0 {
            count += self.counts[at];
            sum += self.sums[at];
            at &= at - 1;
        }
        (count, sum)
    }

    fn add(&mut self, rank: usize, value: f64) {
        let mut at = rank + 1;
        while at < self.counts.len() {
            self.counts[at] += 1;
            self.sums[at] += value;
            at += at & at.wrapping_neg();
        }
    }
}

/// The latest values, if all of them are beyond those before and chance rarely does that.
fn pending(values: &[f64], last: usize, scale: Scale) -> Option<LevelChange> {
    (2..CONFIRMED_BY).rev().find_map(|late| {
        let at = values.len().checked_sub(late).filter(|at| *at > last)?;
        let (before, after) = (&values[at.saturating_sub(SIZE_FROM).max(last)..at], &values[at..]);
        let low = |side: &[f64]| side.iter().copied().fold(f64::INFINITY, f64::min);
        let high = |side: &[f64]| side.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_apart = low(after) > high(before) || high(after) < low(before);
        // In 2 of so many orders.
        let orders: f64 = (1..=late).map(|i| (before.len() + i) as f64 / i as f64).product();
        (is_apart && 2.0 / orders <= PENDING_CHANCE).then(|| sized(before, after, at, scale)).flatten()
    })
}

/// Standard deviation around the levels, or around the drift: robust against spikes.
fn noise(values: &[f64], places: &[usize], drift: Option<&Drift>, by: Measure) -> Option<f64> {
    if values.len() < CONFIRMED_BY {
        return None;
    }
    let distances: Vec<f64> = around(values, places, drift, by).into_iter().map(f64::abs).collect();
    Some(1.4826 * median(&distances))
}

/// Distance of each value from its level, or from the drift. A level of 0 has no shares, and is left out of them.
fn around(values: &[f64], places: &[usize], drift: Option<&Drift>, by: Measure) -> Vec<f64> {
    let mut distances = Vec::new();
    for (from, to) in parts(values, places) {
        let part = &values[from..to];
        let (start, slope) = match drift.filter(|drift| drift.from == from) {
            Some(_) => {
                let (start, slope, _) = sen(part);
                (start, slope)
            }
            None => (median(part), 0.0),
        };
        let distance = |(i, x): (usize, &f64)| off(*x, start + slope * i as f64, by);
        distances.extend(part.iter().enumerate().filter_map(distance));
    }
    distances
}

/// How far a value is from its level; `None`: there are no shares of such a level.
fn off(value: f64, level: f64, by: Measure) -> Option<f64> {
    match by {
        Measure::Ratio => (level > 0.0).then(|| (value - level) / level),
        Measure::Difference => Some(value - level),
    }
}

fn parts(values: &[f64], places: &[usize]) -> Vec<(usize, usize)> {
    let edges: Vec<usize> = [0].into_iter().chain(places.iter().copied()).chain([values.len()]).collect();
    edges.windows(2).map(|edge| (edge[0], edge[1])).collect()
}

fn spikes(values: &[f64], places: &[usize], noise: Option<f64>, by: Measure) -> Vec<usize> {
    let Some(noise) = noise.filter(|noise| *noise > 0.0) else { return Vec::new() };
    let mut found = Vec::new();
    for (from, to) in parts(values, places) {
        // Around its neighbors, so that a drift has no spikes.
        for at in from..to {
            let near = &values[at.saturating_sub(10).max(from)..(at + 11).min(to)];
            let is_far = off(values[at], median(near), by).is_some_and(|off| off.abs() > SPIKE * noise);
            if near.len() >= CONFIRMED_BY && is_far {
                found.push(at);
            }
        }
    }
    found
}

/// By simulation (`tests/levels.rs`): in standard deviations, by the number of values before. More than 30 hardly help.
fn detectable(noise: f64, before: usize) -> f64 {
    const AFTER: f64 = 10.0;
    let before = (before as f64).clamp(CONFIRMED_BY as f64, 100.0);
    // More than the 3.3 + 1.3 of a normal test at this level, because the place is searched, too.
    const SURE: f64 = 6.2;
    // The noise of few values is poorly known.
    let unknown = 1.0 + 5.0 / before;
    noise * SURE * unknown * (1.0 / before + 1.0 / AFTER).sqrt()
}

/// The drift of a part that begins at `from`, if there is one.
fn drift_of(values: &[f64], from: usize) -> Option<Drift> {
    if values.len() < DRIFT_LENGTH_MIN {
        return None;
    }
    let batch = values.len().div_ceil(BLOCKS_MAX);
    let blocks: Vec<f64> = values.chunks_exact(batch).map(median).collect();
    let n = blocks.len() as f64;
    let (start, slope, slopes) = sen(&blocks);
    let score: f64 = slopes.iter().map(|slope| if *slope == 0.0 { 0.0 } else { slope.signum() }).sum();
    let mut sorted = blocks.clone();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 =
        sorted.chunk_by(|a, b| a == b).map(|tie| tie.len() as f64).map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    let rest: Vec<f64> = blocks.iter().enumerate().map(|(i, x)| x - start - slope * i as f64).collect();
    let correlation = correlation(&rest).clamp(0.0, 0.95);
    let deviation = (variance * (1.0 + correlation) / (1.0 - correlation)).sqrt();
    if deviation <= 0.0 || (score.abs() - 1.0) / deviation < DRIFT_SURE || start == 0.0 {
        return None;
    }
    let mut slopes = slopes;
    slopes.sort_by(f64::total_cmp);
    let pairs = slopes.len() as f64;
    let reach = INTERVAL_SURE * deviation;
    let at = |place: f64| slopes[place.clamp(0.0, pairs - 1.0) as usize];
    let steps = n - 1.0;
    let share = |slope: f64| slope * steps / start.abs();
    let interval = (share(at(((pairs - reach) / 2.0).floor())), share(at(((pairs + reach) / 2.0).ceil())));
    Some(Drift { from, to: from + values.len() - 1, total: share(slope), interval })
}

/// Start and slope of a line by Sen, and the slopes of all pairs.
fn sen(values: &[f64]) -> (f64, f64, Vec<f64>) {
    // Longer series come here in blocks, or only for their noise.
    let step = values.len().div_ceil(BLOCKS_MAX).max(1);
    let places: Vec<usize> = (0..values.len()).step_by(step).collect();
    let slope_of = |i: usize, j: usize| (values[j] - values[i]) / (j - i) as f64;
    let slopes: Vec<f64> = places
        .iter()
        .enumerate()
        .flat_map(|(number, i)| places[number + 1..].iter().map(move |j| slope_of(*i, *j)))
        .collect();
    let slope = if slopes.is_empty() { 0.0 } else { median(&slopes) };
    let starts: Vec<f64> = values.iter().enumerate().map(|(i, x)| x - slope * i as f64).collect();
    (median(&starts), slope, slopes)
}

/// Correlation of neighbors.
fn correlation(rest: &[f64]) -> f64 {
    let center = mean(rest);
    let squares: f64 = rest.iter().map(|x| (x - center).powi(2)).sum();
    let products: f64 = rest.windows(2).map(|pair| (pair[0] - center) * (pair[1] - center)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// Whether a straight line describes the series clearly better than steps at `places`: Schwarz's criterion with
/// absolute deviations, which spikes do not decide. A step costs three parameters (Zhang & Siegmund 2007). Steps are
/// far more common than lines, so the evidence must be very strong (Kass & Raftery 1995).
fn line_is_better(values: &[f64], places: &[usize]) -> bool {
    let n = values.len() as f64;
    let score =
        |deviations: f64, parameters: f64| 2.0 * n * deviations.max(f64::MIN_POSITIVE).ln() + parameters * n.ln();
    let (start, slope, _) = sen(values);
    let of_line: f64 = values.iter().enumerate().map(|(i, x)| (x - start - slope * i as f64).abs()).sum();
    let of_part = |(from, to): (usize, usize)| {
        let center = median(&values[from..to]);
        values[from..to].iter().map(|x| (x - center).abs()).sum::<f64>()
    };
    let of_steps: f64 = parts(values, places).into_iter().map(of_part).sum();
    const VERY_STRONG: f64 = 10.0;
    score(of_line, 2.0) + VERY_STRONG < score(of_steps, 1.0 + 3.0 * places.len() as f64)
}
