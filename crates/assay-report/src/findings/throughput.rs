//! Throughput over time: the steady part with its confidence interval, shifts, variation, waves.
//!
//! Figures are per second. Shorter intervals are combined into whole seconds; longer ones are used as they are. A rest
//! at the end that is shorter than half a step is ignored: its rate is mostly chance.

use assay_record::Interval;
use assay_stats::{Course, LENGTH_MIN, STEADY_LENGTH_MIN, Second, Steady, Unsteady, Variability};
use serde::Serialize;

use crate::findings::arithmetic::{per_second, sum};
use crate::findings::outage::OutageFindings;

/// The course of throughput in a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThroughputFindings {
    /// Length of a step: a second, or the interval if that is longer.
    pub step_ns: u64,
    /// Number of steps.
    pub steps: usize,
    /// Where it was steady, or why it was not.
    pub steady: SteadyFindings,
    /// Where it changed from one level to another, in order; outages apart.
    pub shifts: Vec<ShiftFindings>,
    /// Standard deviation divided by the mean; `None` if there are fewer than two steps, or nothing was done.
    pub variation: Option<f64>,
    /// Median of the steps, per second.
    pub tps_p50: Option<f64>,
    /// Mean of the lowest hundredth of the steps (at least one), per second.
    pub tps_lowest_1pct: Option<f64>,
    /// Every period in which no transaction finished, in order.
    pub outages: Vec<OutageFindings>,
    /// Waves, in any part.
    pub waves: Option<WavesFindings>,
}

/// A change from one level to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShiftFindings {
    /// When, since the start of the measured part.
    pub start_ns: u64,
    /// Transactions per second since the previous shift, or the start.
    pub tps_before: f64,
    /// Until the next shift, or to the end.
    pub tps_after: f64,
}

/// Where throughput was steady, or why it was not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum SteadyFindings {
    /// From here to the end: without an outage, and with a mean known to a tenth.
    Steady {
        /// Since the start of the measured part.
        start_ns: u64,
        /// Transactions per second in it.
        tps: f64,
        /// The 95 % interval of the true rate: its lower end. >= 0.9 tps
        tps_low: f64,
        /// Its upper end. <= 1.1 tps
        tps_high: f64,
    },
    /// Too short for a verdict.
    TooShort {
        /// The time needed.
        needed_ns: u64,
    },
    /// No transaction finished for some time: see `outages`.
    Outage,
    /// It shifted after the first quarter: see `shifts`.
    Shifted,
    /// It may have shifted, or that was chance.
    Doubtful {
        /// Where.
        #[serde(flatten)]
        shift: ShiftFindings,
    },
    /// It rose or fell all the time.
    Trend {
        /// From start to end, as a share of the mean; negative when falling.
        change: f64,
    },
    /// Too few waves to average over.
    Waves {
        /// Their number.
        count: f64,
    },
    /// A second had less than a tenth of the median.
    Dip {
        /// When it began.
        start_ns: u64,
        /// Its throughput.
        tps: f64,
    },
    /// No evidence against it, but seconds are so strongly correlated that the mean is unknown.
    Dependent {
        /// Transactions per second.
        tps: f64,
    },
    /// No evidence against it, but the mean is not known to a tenth.
    Uncertain {
        /// Transactions per second.
        tps: f64,
        /// The interval at 95 %: its lower end.
        tps_low: f64,
        /// Its upper end.
        tps_high: f64,
    },
    /// Open loop: throughput matched the rate, but mean response times shifted.
    ResponseShifted {
        /// When.
        start_ns: u64,
        /// Mean response time before.
        before_ns: f64,
        /// And after.
        after_ns: f64,
    },
    /// Open loop: throughput matched the rate, but response times rose or fell all the time.
    ResponseTrend {
        /// From start to end, as a share of the mean; negative when falling.
        change: f64,
    },
    /// Open loop: the backlog grew.
    Backlog {
        /// Median backlog of the steps in the first third of the stage.
        first: u64,
        /// In the last tenth.
        last: u64,
    },
}

/// Waves of throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WavesFindings {
    /// Period.
    pub period_ns: u64,
    /// Share of the variance that repeats, 0 … 1.
    pub strength: f64,
}

/// Intervals combined into steps: where each step starts and ends.
pub(crate) struct Steps {
    length_ns: u64,
    ranges: Vec<std::ops::Range<usize>>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Steps {
    pub(crate) fn of(intervals: &[Interval]) -> Steps {
        let mut lengths: Vec<u64> = intervals.iter().map(|interval| interval.length_ns).collect();
        lengths.sort_unstable();
        let usual = lengths.get(lengths.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        let together = (SECOND_NS + usual / 2).checked_div(usual).unwrap_or(1).max(1) as usize;
        let length_ns = usual.saturating_mul(together as u64);
        let starts = (0..intervals.len()).step_by(together);
        let ranges = starts.map(|start| start..intervals.len().min(start + together));
        let is_whole = |range: &std::ops::Range<usize>| length(&intervals[range.clone()]) >= length_ns / 2;
        Steps { length_ns, ranges: ranges.filter(is_whole).collect() }
    }

    /// For each step: how many of all response times are at or below the quantile. `at_most`: the same for each
    /// interval.
    pub(crate) fn seconds(&self, intervals: &[Interval], at_most: &[u64]) -> Vec<Second> {
        let second = |range: &std::ops::Range<usize>| Second {
            at_most: sum(at_most[range.clone()].iter().copied()),
            count: sum(intervals[range.clone()].iter().map(|interval| interval.response.count)),
        };
        self.ranges.iter().map(second).collect()
    }

    fn start_ns(&self, step: usize, intervals: &[Interval]) -> u64 {
        self.ranges.get(step).map_or(0, |range| intervals[range.start].start_ns)
    }

    fn has_outage(&self, step: usize, intervals: &[Interval], outages: &[OutageFindings]) -> bool {
        let of_step = &intervals[self.ranges[step].clone()];
        let (from, to) = (of_step[0].start_ns, of_step[0].start_ns.saturating_add(length(of_step)));
        outages.iter().any(|outage| outage.start_ns < to && outage.end_ns() > from)
    }

    /// Evidence against a steady open loop, whose throughput is given: response times and the backlog.
    fn open_loop(&self, intervals: &[Interval], kept: &[usize], due: u64) -> Option<SteadyFindings> {
        /// Response times vary more than throughput: smaller changes are not reported.
        const CHANGE_MIN: f64 = 0.2;
        /// A backlog that grew by less than this share of all due transactions does not count.
        const BACKLOG_MIN: f64 = 0.005;
        let waiting = |steps: std::ops::Range<usize>| {
            let mut waiting: Vec<u64> =
                steps.map(|step| intervals[self.ranges[step].clone()].last().map_or(0, |last| last.backlog)).collect();
            waiting.sort_unstable();
            waiting.get(waiting.len() / 2).copied().unwrap_or(0)
        };
        let number = self.ranges.len();
        let (first, last) = (waiting(0..number / 3), waiting(number - number.div_ceil(10)..number));
        if last >= first.saturating_mul(2) && (last - first) as f64 >= BACKLOG_MIN * due as f64 && last > 1 {
            return Some(SteadyFindings::Backlog { first, last });
        }
        let mean = |step: &usize| {
            let responses = intervals[self.ranges[*step].clone()].iter().map(|interval| &interval.response);
            let (sum, count) =
                responses.fold((0.0, 0.0), |(sum, count), of| (sum + of.sum_ns as f64, count + of.count as f64));
            (count > 0.0).then_some((*step, sum / count))
        };
        let (at, means): (Vec<usize>, Vec<f64>) = kept.iter().filter_map(mean).unzip();
        let Course { shifts, steady } = assay_stats::course(&means);
        if let Some(shift) = shifts.iter().find(|shift| shift.size().abs() >= CHANGE_MIN && shift.at > means.len() / 4)
        {
            let start_ns = self.start_ns(at[shift.at], intervals);
            return Some(SteadyFindings::ResponseShifted { start_ns, before_ns: shift.before, after_ns: shift.after });
        }
        match steady {
            Steady::Not(Unsteady::Trend { change }) if change.abs() >= CHANGE_MIN => {
                Some(SteadyFindings::ResponseTrend { change })
            }
            _ => None,
        }
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

/// What is known about a stage besides its intervals.
pub(crate) struct Beside<'a> {
    pub(crate) outages: &'a [OutageFindings],
    /// Transactions that became due in an open loop; `None`: a closed loop.
    pub(crate) due: Option<u64>,
}

/// A mean is known well enough within this share of it.
const KNOWN: f64 = 0.1;

/// The course of the `intervals` of one stage.
pub(crate) fn throughput_findings(steps: &Steps, intervals: &[Interval], beside: &Beside) -> ThroughputFindings {
    let rates = steps.rates(intervals);
    let ns = |steps_many: f64| (steps_many * steps.length_ns as f64) as u64;
    let waves = assay_stats::waves(&rates);
    let variability = assay_stats::variability(&rates);
    let figure = |of: fn(&Variability) -> f64| variability.as_ref().map(of);
    // Outages are reported separately; the rest is judged without them.
    let kept: Vec<usize> =
        (0..rates.len()).filter(|step| !steps.has_outage(*step, intervals, beside.outages)).collect();
    let kept_rates: Vec<f64> = kept.iter().map(|step| rates[*step]).collect();
    let course = assay_stats::course(&kept_rates);
    let shift = |shift: &assay_stats::Shift| ShiftFindings {
        start_ns: steps.start_ns(kept[shift.at], intervals),
        tps_before: shift.before,
        tps_after: shift.after,
    };
    let steady = match (rates.len() < STEADY_LENGTH_MIN, course.steady) {
        (true, _) => {
            SteadyFindings::TooShort { needed_ns: ns(STEADY_LENGTH_MIN.max(LENGTH_MIN) as f64).max(SECOND_NS) }
        }
        (_, Steady::Not(Unsteady::Shifted)) => SteadyFindings::Shifted,
        (_, Steady::Not(Unsteady::Trend { change })) => SteadyFindings::Trend { change },
        (_, Steady::Not(Unsteady::Waves(waves))) if beside.outages.is_empty() => {
            SteadyFindings::Waves { count: waves.count }
        }
        (_, Steady::Not(_)) if !beside.outages.is_empty() => SteadyFindings::Outage,
        (_, Steady::Not(Unsteady::Waves(waves))) => SteadyFindings::Waves { count: waves.count },
        (_, Steady::Not(Unsteady::Doubtful(found))) => SteadyFindings::Doubtful { shift: shift(&found) },
        // What is left after the beginning is too short.
        (_, Steady::Not(Unsteady::TooShort)) => {
            SteadyFindings::TooShort { needed_ns: ns(4.0 * STEADY_LENGTH_MIN as f64 / 3.0).max(SECOND_NS) }
        }
        (_, Steady::From(start)) => {
            let start_ns = if start == 0 { 0 } else { steps.start_ns(kept[start], intervals) };
            steadiness(&kept_rates[start..], start_ns, figure(|found| found.median).unwrap_or(0.0), beside.outages)
                .unwrap_or_else(|dip| SteadyFindings::Dip {
                    start_ns: steps.start_ns(kept[start + dip], intervals),
                    tps: kept_rates[start + dip],
                })
        }
    };
    ThroughputFindings {
        step_ns: steps.length_ns,
        steps: rates.len(),
        steady: match (steady, beside.due) {
            (SteadyFindings::Steady { .. }, Some(due)) => steps.open_loop(intervals, &kept, due).unwrap_or(steady),
            _ => steady,
        },
        shifts: course.shifts.iter().map(shift).collect(),
        variation: figure(|found| found.coefficient_of_variation),
        tps_p50: figure(|found| found.median),
        tps_lowest_1pct: figure(|found| found.lowest_hundredth),
        outages: beside.outages.to_vec(),
        waves: waves.map(|found| WavesFindings { period_ns: ns(found.period), strength: found.strength }),
    }
}

/// Of a part without shifts, trends and long waves; the step with a dip.
fn steadiness(rates: &[f64], start_ns: u64, median: f64, outages: &[OutageFindings]) -> Result<SteadyFindings, usize> {
    if outages.iter().any(|outage| outage.end_ns() > start_ns) {
        return Ok(SteadyFindings::Outage);
    }
    if let Some(dip) = rates.iter().position(|rate| *rate < median / 10.0) {
        return Err(dip);
    }
    let tps = rates.iter().sum::<f64>() / rates.len() as f64;
    let Ok(known) = assay_stats::mean_interval(rates) else { return Ok(SteadyFindings::Dependent { tps }) };
    let (tps_low, tps_high) = (known.low.max(0.0), known.high);
    let is_known = tps_low >= (1.0 - KNOWN) * tps && tps_high <= (1.0 + KNOWN) * tps;
    Ok(match is_known {
        true => SteadyFindings::Steady { start_ns, tps, tps_low, tps_high },
        false => SteadyFindings::Uncertain { tps, tps_low, tps_high },
    })
}
