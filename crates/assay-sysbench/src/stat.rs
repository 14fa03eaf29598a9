//! The numbers of one report, as report hooks see them.

/// What happened since the previous report of the same kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeriodStat {
    /// Sessions that take events.
    pub threads_running: u32,
    /// Seconds since the previous report of this kind.
    pub time_interval: f64,
    /// Seconds since the start.
    pub time_total: f64,
    /// The configured percentile, in seconds.
    pub latency_pct: f64,
    /// Events done.
    pub events: u64,
    /// Statements that returned a result set.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// All other statements.
    pub other: u64,
    /// Errors ignored.
    pub errors: u64,
    /// Reconnects.
    pub reconnects: u64,
    /// Rate mode, intermediate reports: due events that wait for a session.
    pub queue_length: u64,
    /// Rate mode, intermediate reports: sessions executing an event.
    pub concurrency: u64,
    /// Cumulative reports: the fastest event, in seconds.
    pub latency_min: f64,
    /// The slowest, in seconds.
    pub latency_max: f64,
    /// The mean, in seconds.
    pub latency_avg: f64,
    /// The sum over all events, in seconds.
    pub latency_sum: f64,
}

/// One session's part of a cumulative report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionStat {
    /// Its events.
    pub events: u64,
    /// Its time in events, in seconds.
    pub busy: f64,
    /// Its fastest event, in seconds.
    pub min: f64,
    /// Its slowest event, in seconds.
    pub max: f64,
}

/// Mean and standard deviation of the population; zero if it is empty.
pub fn mean_and_deviation(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    (mean, (values.map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt())
}
