//! Distributions with fewer buckets, for those who always ask the same of them.
//!
//! Reports show a few quantiles and a coarse histogram of each interval. Adjacent buckets give the same answers as one,
//! unless a quantile or a bound lies between them: thousands of buckets become about fifty.

use std::sync::LazyLock;

use crate::bucket::{BUCKETS, bounds_of, bucket_of};
use crate::encoded::EncodedHistogram;
use crate::latencies::Latencies;

/// The quantiles of response times that reports show, in millionths.
pub const QUANTILES_PPM: [u32; 5] = [500_000, 900_000, 950_000, 990_000, 999_000];

/// Quantiles of a stage's response times for which reports count the values of each interval at or below them.
pub const STAGE_QUANTILES_PPM: [u32; 3] = [500_000, 950_000, 990_000];

/// Upper bounds of the buckets of coarse histograms, ascending: 1 µs to one hour, twenty per decade, so that each is
/// 12 % above the previous one. The last bucket has no upper bound.
pub fn coarse_bounds_ns() -> &'static [u64] {
    static BOUNDS: LazyLock<Vec<u64>> =
        LazyLock::new(|| (0..192).map(|step| (1e3 * 10f64.powf(f64::from(step) / 20.0)).round() as u64).collect());
    &BOUNDS
}

/// Thins the distributions of a stage's intervals.
#[derive(Clone, Debug)]
pub struct Thinner {
    /// Ascending.
    bounds_ns: Vec<u64>,
}

impl Thinner {
    /// For the intervals of a stage whose response times are those of `types` together.
    pub fn new<'a>(types: impl IntoIterator<Item = &'a Latencies>) -> Thinner {
        let total = Latencies::sum(types);
        let values = total.values();
        let ends = ends_of_ranks(&values, total.over, STAGE_QUANTILES_PPM);
        let of_stage = values.iter().zip(ends).filter(|(_, ends)| *ends).map(|((value, _), _)| clamped(*value, &total));
        let mut bounds_ns: Vec<u64> =
            of_stage.chain([total.max_ns]).chain(coarse_bounds_ns().iter().copied()).collect();
        bounds_ns.sort_unstable();
        Thinner { bounds_ns }
    }

    /// The same distribution with fewer buckets. It has the same quantiles `QUANTILES_PPM`, and as many values at or
    /// below each of `coarse_bounds_ns` and of the stage's quantiles `STAGE_QUANTILES_PPM`. `None`: it has no buckets
    /// of this format.
    pub fn thinned(&self, of: &Latencies) -> Option<Latencies> {
        let values = of.values();
        if values.is_empty() {
            return Some(of.clone());
        }
        let mut thinned: Vec<(usize, u64)> = Vec::new();
        let (mut bound, mut begins) = (0, true);
        for ((value, count), ends) in values.iter().zip(ends_of_ranks(&values, of.over, QUANTILES_PPM)) {
            let bucket = bucket_of(*value);
            if bucket >= BUCKETS || bounds_of(bucket).1 != *value {
                return None;
            }
            let passed = self.bounds_ns[bound..].iter().take_while(|bound| **bound < clamped(*value, of)).count();
            bound += passed;
            match thinned.last_mut() {
                Some(last) if !begins && passed == 0 => *last = (bucket, last.1.checked_add(*count)?),
                _ => thinned.push((bucket, *count)),
            }
            begins = ends;
        }
        Some(of.with_histogram(Some(EncodedHistogram::of_buckets(thinned.into_iter()))))
    }
}

/// Within the extremes, which are exact.
fn clamped(value: u64, of: &Latencies) -> u64 {
    value.clamp(of.min_ns.min(of.max_ns), of.max_ns.max(of.min_ns))
}

/// For each of `values`, with their counts, whether one of the quantiles is there. `over`: more values, above them.
fn ends_of_ranks<const N: usize>(values: &[(u64, u64)], over: u64, ppm: [u32; N]) -> impl Iterator<Item = bool> {
    let count = values.iter().fold(over, |sum, (_, count)| sum.saturating_add(*count));
    // A quantile is the smallest value that at least its share of all values do not exceed.
    let rank = |ppm: u32| (u128::from(count) * u128::from(ppm)).div_ceil(1_000_000).max(1) as u64;
    let (ranks, mut next, mut seen) = (ppm.map(rank), 0, 0_u64);
    values.iter().map(move |(_, count)| {
        seen = seen.saturating_add(*count);
        let reached = ranks[next..].iter().take_while(|rank| **rank <= seen).count();
        next += reached;
        reached > 0
    })
}
