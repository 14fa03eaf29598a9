//! Latency statistics, from the histograms of a record.

use assay_record as record;
use assay_stats::Distribution;
use serde::Serialize;

/// Figures of a latency distribution. A quantile is `None` if not even one value can be expected above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyFindings {
    /// Number of values.
    pub count: u64,
    /// Smallest, exact.
    pub min_ns: Option<u64>,
    /// Mean, exact.
    pub mean_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90 % were at most this.
    pub p90_ns: Option<u64>,
    /// 95 % were at most this.
    pub p95_ns: Option<u64>,
    /// 99 % were at most this.
    pub p99_ns: Option<u64>,
    /// 99.9 % were at most this.
    pub p999_ns: Option<u64>,
    /// Largest, exact.
    pub max_ns: Option<u64>,
    /// Values above one hour, known only by count, sum and maximum.
    pub over: u64,
}

pub(crate) fn latency_findings(distribution: &Distribution) -> LatencyFindings {
    let [p50_ns, p90_ns, p95_ns, p99_ns, p999_ns] = distribution.quantiles(record::QUANTILES_PPM);
    LatencyFindings {
        count: distribution.count(),
        min_ns: distribution.min(),
        mean_ns: distribution.mean(),
        p50_ns,
        p90_ns,
        p95_ns,
        p99_ns,
        p999_ns,
        max_ns: distribution.max(),
        over: distribution.over(),
    }
}

/// Twenty points per nine, up to 99.9999 %, if there are enough values.
pub(crate) fn curve(response: &Distribution) -> Vec<(f64, u64)> {
    const POINTS: usize = 120;
    let nines: [f64; POINTS] = std::array::from_fn(|point| (point + 1) as f64 / 20.0);
    let values = response.quantiles(nines.map(|nines| (1e6 - 1e6 * 10f64.powf(-nines)).round() as u32));
    let points = nines.into_iter().zip(values).filter_map(|(nines, value)| Some((nines, value?)));
    response.min().map(|min| (0.0, min)).into_iter().chain(points).collect()
}

pub(crate) fn distribution(latencies: &record::Latencies) -> Distribution {
    distribution_in(latencies, Vec::new())
}

/// As `distribution`, with the memory of another one's buckets.
pub(crate) fn distribution_in(latencies: &record::Latencies, mut buckets: Vec<(u64, u64)>) -> Distribution {
    latencies.put_values(&mut buckets);
    Distribution::new(buckets, latencies.over, (latencies.min_ns, latencies.max_ns), latencies.sum_ns)
}

pub(crate) fn all<'a>(latencies: impl Iterator<Item = &'a record::Latencies>) -> Distribution {
    latencies.fold(Distribution::default(), |mut all, one| {
        all.add(&distribution(one));
        all
    })
}
