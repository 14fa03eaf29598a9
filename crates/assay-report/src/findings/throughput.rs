//! Throughput over time, in words a user would use: its steady part with an interval, how even it was, its waves.
//!
//! Figures are of seconds. Shorter intervals are put together to whole seconds; longer ones are taken as they are. A rest
//! at the end that is shorter than half a step is left out: its rate is mostly chance.

use assay_record::Interval;
use assay_stats::{LENGTH_MIN, STEADY_LENGTH_MIN, Second, Steady, Unsteady, Variability};
use serde::Serialize;

use crate::findings::arithmetic::{per_second, sum};
use crate::findings::silence::{Silence, silences};

/// How throughput went over the time of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThroughputFindings {
    /// What the figures are of: a second, or the interval when that is longer.
    pub step_ns: u64,
    /// Number of steps.
    pub steps: usize,
    /// Where it was steady, or why it was not.
    pub steady: SteadyFindings,
    /// Standard deviation by mean; `None` when there are fewer than two steps, or nothing was done.
    pub variation: Option<f64>,
    /// Median of the steps, per second.
    pub tps_p50: Option<f64>,
    /// Mean of the lowest hundredth of the steps (at least one), per second.
    pub tps_lowest_1pct: Option<f64>,
    /// Longest time in a row below a tenth of the median.
    pub stall_ns_max: u64,
    /// When that began, since the start of the measured part; `None` when there was none.
    pub stall_start_ns: Option<u64>,
    /// All time below a tenth of the median.
    pub below_tenth_ns: u64,
    /// Waves, wherever they are.
    pub waves: Option<WavesFindings>,
    /// Every time in a row below a tenth of the median, in order.
    #[serde(skip)]
    pub(crate) stalls: Vec<Silence>,
}

/// Where throughput was steady, or why it was not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum SteadyFindings {
    /// From here to the end.
    Steady {
        /// Since the start of the measured part.
        start_ns: u64,
        /// Transactions per second in it.
        tps: f64,
        /// The interval that holds the true rate at 95 %: its lower end. `None` when the part is too short for one, or its
        /// seconds depend on each other too much.
        tps_low: Option<f64>,
        /// Its upper end.
        tps_high: Option<f64>,
    },
    /// Too short to tell.
    TooShort {
        /// Time it takes.
        needed_ns: u64,
    },
    /// It changed in the second half.
    Late {
        /// When.
        start_ns: u64,
    },
    /// It rose or fell all the time.
    Trend {
        /// From start to end, as a share of the mean; negative when falling.
        change: f64,
    },
    /// Too few waves to average over.
    Waves {
        /// How many there were.
        count: f64,
    },
}

/// Waves of throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WavesFindings {
    /// From one to the next.
    pub period_ns: u64,
    /// Share of the variance that repeats, 0 … 1.
    pub strength: f64,
}

/// Intervals put together to steps: where each begins and ends among them.
pub(crate) struct Steps {
    length_ns: u64,
    ranges: Vec<std::ops::Range<usize>>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Steps {
    pub(crate) fn of(intervals: &[Interval]) -> Steps {
        let mut lengths: Vec<u64> = intervals.iter().map(|interval| interval.length_ns).collect();
        lengths.sort_unstable();
        let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        let together = (SECOND_NS + usual / 2).checked_div(usual).unwrap_or(1).max(1) as usize;
        let length_ns = usual.saturating_mul(together as u64);
        let starts = (0..intervals.len()).step_by(together);
        let ranges = starts.map(|start| start..intervals.len().min(start + together));
        let is_whole = |range: &std::ops::Range<usize>| length(&intervals[range.clone()]) >= length_ns / 2;
        Steps { length_ns, ranges: ranges.filter(is_whole).collect() }
    }

    /// For each step: how many of all response times lie at or below the quantile. `at_most`: the same of each interval.
    pub(crate) fn seconds(&self, intervals: &[Interval], at_most: &[u64]) -> Vec<Second> {
        let second = |range: &std::ops::Range<usize>| Second {
            at_most: sum(at_most[range.clone()].iter().copied()),
            count: sum(intervals[range.clone()].iter().map(|interval| interval.response.count)),
        };
        self.ranges.iter().map(second).collect()
    }

    /// Runs of steps below a tenth of the median, each with the silence at its ends. Where transactions take long, several
    /// may end in one second and none in the next: what is shorter than two of them is no stall.
    fn stalls(&self, runs: &[std::ops::Range<usize>], intervals: &[Interval], usual_ns: Option<u64>) -> Vec<Silence> {
        let silences = silences(intervals);
        let stall = |run: &std::ops::Range<usize>| {
            let (first, last) = (&self.ranges[run.start], &self.ranges[run.end - 1]);
            let start_ns = intervals[first.start].start_ns;
            let end_ns = start_ns.saturating_add(length(&intervals[first.start..last.end]));
            let at = |instant: u64| silences.iter().find(move |one| one.start_ns < instant && instant < one.end_ns);
            Silence {
                start_ns: at(start_ns).map_or(start_ns, |silence| silence.start_ns),
                end_ns: at(end_ns).map_or(end_ns, |silence| silence.end_ns),
            }
        };
        let least_ns = usual_ns.unwrap_or(0).saturating_mul(2);
        runs.iter().map(stall).filter(|stall| stall.length_ns() >= least_ns).collect()
    }

    fn rates(&self, intervals: &[Interval]) -> Vec<f64> {
        let rate = |range: &std::ops::Range<usize>| {
            let of_step = &intervals[range.clone()];
            per_second(sum(of_step.iter().flat_map(|interval| interval.transactions.iter().copied())), length(of_step))
        };
        self.ranges.iter().map(rate).collect()
    }
}

fn length(intervals: &[Interval]) -> u64 {
    sum(intervals.iter().map(|interval| interval.length_ns))
}

/// What `intervals` of one stage say. `usual_ns`: how long a transaction takes.
pub(crate) fn throughput_findings(steps: &Steps, intervals: &[Interval], usual_ns: Option<u64>) -> ThroughputFindings {
    let rates = steps.rates(intervals);
    let start_ns = |step: usize| steps.ranges.get(step).map_or(0, |range| intervals[range.start].start_ns);
    let ns = |steps_many: f64| (steps_many * steps.length_ns as f64) as u64;
    let waves = assay_stats::waves(&rates);
    let variability = assay_stats::variability(&rates);
    let figure = |of: fn(&Variability) -> f64| variability.as_ref().map(of);
    let stalls = variability.as_ref().map_or_else(Vec::new, |found| steps.stalls(&found.stalls, intervals, usual_ns));
    let longest = stalls.iter().copied().rev().max_by_key(Silence::length_ns);
    ThroughputFindings {
        step_ns: steps.length_ns,
        steps: rates.len(),
        steady: match assay_stats::steady_part(&rates) {
            Steady::From(start) => {
                let part = &rates[start..];
                let estimate = assay_stats::mean_interval(part).ok();
                SteadyFindings::Steady {
                    start_ns: start_ns(start),
                    tps: part.iter().sum::<f64>() / part.len() as f64,
                    tps_low: estimate.map(|estimate| estimate.low.max(0.0)),
                    tps_high: estimate.map(|estimate| estimate.high),
                }
            }
            Steady::Not(Unsteady::TooShort) => {
                SteadyFindings::TooShort { needed_ns: ns(STEADY_LENGTH_MIN.max(LENGTH_MIN) as f64).max(SECOND_NS) }
            }
            Steady::Not(Unsteady::Late(step)) => SteadyFindings::Late { start_ns: start_ns(step) },
            Steady::Not(Unsteady::Trend { change }) => SteadyFindings::Trend { change },
            Steady::Not(Unsteady::Waves(waves)) => SteadyFindings::Waves { count: waves.count },
        },
        variation: figure(|found| found.coefficient_of_variation),
        tps_p50: figure(|found| found.median),
        tps_lowest_1pct: figure(|found| found.lowest_hundredth),
        stall_ns_max: longest.map_or(0, |stall| stall.length_ns()),
        stall_start_ns: longest.map(|stall| stall.start_ns),
        below_tenth_ns: sum(stalls.iter().map(Silence::length_ns)),
        waves: waves.map(|found| WavesFindings { period_ns: ns(found.period), strength: found.strength }),
        stalls,
    }
}
