//! Throughput over time: the steady part with its confidence interval, shifts, variation, waves.
//!
//! Figures are per second. Shorter intervals are combined into whole seconds; longer ones are used as they are. A rest
//! at the end that is shorter than half a step is ignored: its rate is mostly chance.

use std::ops::Range;

use assay_record::Interval;
use assay_stats::{
    Excursion, LENGTH_MIN, STEADY_LENGTH_MIN, Second, Steadiness, Steady, Tolerance, Unsteady, Variability,
};
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
    /// The steady part, or why there is none; `None`: not judged, because only `figures` were asked for.
    pub steady: Option<SteadyFindings>,
    /// Shifts from one level to another, in order; outages are separate.
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

/// The steady part of a stage, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum SteadyFindings {
    /// From here to the end: without an outage, and with a mean known to a tenth.
    Steady {
        /// Since the start of the measured part.
        start_ns: u64,
        /// From here on a step of a tenth (in an open loop also a step of a fifth of the mean response times) is ruled
        /// out. The few seconds between `start_ns` and it are too short to judge.
        judged_from_ns: u64,
        /// End of the judged part. The rest is too short to judge.
        judged_to_ns: u64,
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
    /// A second had less than a tenth of the median, or several had less than three quarters of it.
    Dip {
        /// When it began.
        start_ns: u64,
        /// Its length.
        length_ns: u64,
        /// Its throughput.
        tps: f64,
    },
    /// Several seconds had more than four thirds of the median.
    Burst {
        /// When it began.
        start_ns: u64,
        /// Its length.
        length_ns: u64,
        /// Its throughput.
        tps: f64,
    },
    /// No evidence against it, but a step of a tenth would not have shown.
    Unclear {
        /// The smallest step that would have, as a share of the level.
        change: f64,
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
    /// Open loop: throughput matched the rate, but mean response times may have shifted.
    ResponseDoubtful {
        /// When.
        start_ns: u64,
        /// Mean response time before.
        before_ns: f64,
        /// And after.
        after_ns: f64,
    },
    /// Open loop: throughput matched the rate, but mean response times were far from their median for several seconds.
    ResponseExcursion {
        /// When that began.
        start_ns: u64,
        /// Its duration.
        length_ns: u64,
        /// Mean response time in it.
        response_ns: f64,
        /// The median of the steps.
        usual_ns: f64,
    },
    /// Open loop: no evidence against it, but a step of a fifth of the mean response times would not have shown.
    ResponseUnclear {
        /// The smallest step that would have, as a share of the level; `None`: there are too few seconds to tell, or
        /// they are too strongly correlated.
        change: Option<f64>,
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
        /// Throughput in the last tenth.
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
    ranges: Vec<Range<usize>>,
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
        let is_whole = |range: &Range<usize>| length(&intervals[range.clone()]) >= length_ns / 2;
        Steps { length_ns, ranges: ranges.filter(is_whole).collect() }
    }

    /// For each step: how many of all response times are at or below the quantile. `at_most`: the same for each
    /// interval.
    pub(crate) fn seconds(&self, intervals: &[Interval], at_most: &[u64]) -> Vec<Second> {
        let second = |range: &Range<usize>| Second {
            at_most: sum(at_most[range.clone()].iter().copied()),
            count: sum(intervals[range.clone()].iter().map(|interval| interval.response.count)),
        };
        self.ranges.iter().map(second).collect()
    }

    fn start_ns(&self, step: usize, intervals: &[Interval]) -> u64 {
        self.ranges.get(step).map_or(0, |range| intervals[range.start].start_ns)
    }

    /// The end of the step before `step`.
    fn end_ns(&self, step: usize, intervals: &[Interval]) -> u64 {
        self.ranges.get(step.saturating_sub(1)).map_or(0, |range| {
            let last = &intervals[range.end - 1];
            last.start_ns.saturating_add(last.length_ns)
        })
    }

    fn has_outage(&self, step: usize, intervals: &[Interval], outages: &[OutageFindings]) -> bool {
        let of_step = &intervals[self.ranges[step].clone()];
        let (from, to) = (of_step[0].start_ns, of_step[0].start_ns.saturating_add(length(of_step)));
        outages.iter().any(|outage| outage.start_ns < to && outage.end_ns() > from)
    }

    /// The steady part of an open loop, whose throughput is given, by its response times and backlog: the step at which
    /// it starts, and the steps that are judged.
    fn open_loop(
        &self,
        intervals: &[Interval],
        kept: &[usize],
        due: u64,
    ) -> Result<(usize, Range<usize>), SteadyFindings> {
        /// A backlog that grew by less than this share of all due transactions does not count.
        const BACKLOG_MIN: f64 = 0.005;
        let waiting = |steps: Range<usize>| {
            let mut waiting: Vec<u64> =
                steps.map(|step| intervals[self.ranges[step].clone()].last().map_or(0, |last| last.backlog)).collect();
            waiting.sort_unstable();
            waiting.get(waiting.len() / 2).copied().unwrap_or(0)
        };
        let number = self.ranges.len();
        let (first, last) = (waiting(0..number / 3), waiting(number - number.div_ceil(10)..number));
        if last >= first.saturating_mul(2) && (last - first) as f64 >= BACKLOG_MIN * due as f64 && last > 1 {
            return Err(SteadyFindings::Backlog { first, last });
        }
        let mean = |step: &usize| {
            let responses = intervals[self.ranges[*step].clone()].iter().map(|interval| &interval.response);
            let (sum, count) =
                responses.fold((0.0, 0.0), |(sum, count), of| (sum + of.sum_ns as f64, count + of.count as f64));
            (count > 0.0).then_some((*step, sum / count))
        };
        let (at, means): (Vec<usize>, Vec<f64>) = kept.iter().filter_map(mean).unzip();
        let Steadiness { shifts, steady, .. } = assay_stats::course(&means, &Tolerance::RESPONSE);
        let start_ns = |place: usize| self.start_ns(at[place], intervals);
        let of = |shift: &assay_stats::Shift| (start_ns(shift.at), shift.before, shift.after);
        let largest = || shifts.iter().max_by(|a, b| a.size().abs().total_cmp(&b.size().abs()));
        Err(match (steady, largest()) {
            (Steady::From { start, judged }, _) => {
                // Steps that are left out belong to the part that follows them.
                let step = |place: usize| at.get(place).copied().unwrap_or(number);
                return Ok((step(start), step(judged.start)..step(judged.end)));
            }
            (Steady::Not(Unsteady::Shifted), Some(shift)) => {
                let (start_ns, before_ns, after_ns) = of(shift);
                SteadyFindings::ResponseShifted { start_ns, before_ns, after_ns }
            }
            (Steady::Not(Unsteady::Doubtful(shift)), _) => {
                let (start_ns, before_ns, after_ns) = of(&shift);
                SteadyFindings::ResponseDoubtful { start_ns, before_ns, after_ns }
            }
            (Steady::Not(Unsteady::Trend { change }), _) => SteadyFindings::ResponseTrend { change },
            (Steady::Not(Unsteady::Excursion(found)), _) => SteadyFindings::ResponseExcursion {
                start_ns: start_ns(found.at),
                length_ns: self.end_ns(at[found.at + found.length - 1] + 1, intervals) - start_ns(found.at),
                response_ns: found.level,
                usual_ns: found.usual,
            },
            (Steady::Not(Unsteady::Unclear { change }), _) => SteadyFindings::ResponseUnclear { change: Some(change) },
            (Steady::Not(_), _) => SteadyFindings::ResponseUnclear { change: None },
        })
    }

    /// `kept`: the steps in which it was searched.
    fn excursion(&self, found: &Excursion, kept: &[usize], intervals: &[Interval]) -> SteadyFindings {
        let start_ns = self.start_ns(kept[found.at], intervals);
        let length_ns = self.end_ns(kept[found.at + found.length - 1] + 1, intervals) - start_ns;
        let tps = found.level;
        match found.level < found.usual {
            true => SteadyFindings::Dip { start_ns, length_ns, tps },
            false => SteadyFindings::Burst { start_ns, length_ns, tps },
        }
    }

    fn rates(&self, intervals: &[Interval]) -> Vec<f64> {
        let rate = |range: &Range<usize>| {
            let of_step = &intervals[range.clone()];
            per_second(sum(of_step.iter().flat_map(|interval| interval.transactions.iter().copied())), length(of_step))
        };
        self.ranges.iter().map(rate).collect()
    }
}

fn length(intervals: &[Interval]) -> u64 {
    sum(intervals.iter().map(|interval| interval.length_ns))
}

/// Facts about a stage besides its intervals.
pub(crate) struct StageFacts<'a> {
    pub(crate) outages: &'a [OutageFindings],
    /// Transactions that became due in an open loop; `None`: a closed loop.
    pub(crate) due: Option<u64>,
}

/// A mean is known well enough within this share of it.
const KNOWN: f64 = 0.1;

/// The course of one stage for those who ask for figures: its outages. To judge the rest takes several times longer
/// than all other figures of a stage.
pub(crate) fn without_course(steps: &Steps, outages: &[OutageFindings]) -> ThroughputFindings {
    ThroughputFindings {
        step_ns: steps.length_ns,
        steps: steps.ranges.len(),
        steady: None,
        shifts: Vec::new(),
        variation: None,
        tps_p50: None,
        tps_lowest_1pct: None,
        outages: outages.to_vec(),
        waves: None,
    }
}

/// The course of the `intervals` of one stage.
pub(crate) fn throughput_findings(steps: &Steps, intervals: &[Interval], beside: &StageFacts) -> ThroughputFindings {
    let rates = steps.rates(intervals);
    let ns = |steps_many: f64| (steps_many * steps.length_ns as f64) as u64;
    let variability = assay_stats::variability(&rates);
    let figure = |of: fn(&Variability) -> f64| variability.as_ref().map(of);
    // Outages are reported separately; the rest is judged without them.
    let kept: Vec<usize> =
        (0..rates.len()).filter(|step| !steps.has_outage(*step, intervals, beside.outages)).collect();
    let kept_rates: Vec<f64> = kept.iter().map(|step| rates[*step]).collect();
    let course = assay_stats::course(&kept_rates, &Tolerance::THROUGHPUT);
    let waves = if kept.len() == rates.len() { course.waves } else { assay_stats::waves(&rates) };
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
        // The rest after the beginning is too short.
        (_, Steady::Not(Unsteady::TooShort)) => {
            SteadyFindings::TooShort { needed_ns: ns(4.0 * STEADY_LENGTH_MIN as f64 / 3.0).max(SECOND_NS) }
        }
        (_, Steady::Not(Unsteady::Excursion(found))) => steps.excursion(&found, &kept, intervals),
        (_, Steady::Not(Unsteady::Unclear { change })) => SteadyFindings::Unclear { change },
        (_, Steady::Not(Unsteady::Dependent)) => SteadyFindings::Dependent { tps: mean(&kept_rates) },
        (_, Steady::From { start, judged }) => {
            let step = |place: usize| kept.get(place).copied().unwrap_or(rates.len());
            let of_rates = (step(start), step(judged.start)..step(judged.end));
            let of_response = beside.due.map_or(Ok(of_rates.clone()), |due| steps.open_loop(intervals, &kept, due));
            let both = of_response.map(|of_response| {
                let judged = of_rates.1.start.max(of_response.1.start)..of_rates.1.end.min(of_response.1.end);
                (of_rates.0.max(of_response.0), judged)
            });
            both.map_or_else(
                |not| not,
                |(start, judged)| {
                    let start_ns = |step: usize| if step == 0 { 0 } else { steps.start_ns(step, intervals) };
                    let to_ns = match judged.end == rates.len() {
                        true => length(intervals),
                        false => steps.end_ns(judged.end, intervals),
                    };
                    let of_part: Vec<f64> =
                        kept.iter().filter(|step| **step >= start).map(|step| rates[*step]).collect();
                    steadiness(&of_part, start_ns(start), (start_ns(judged.start), to_ns), beside.outages)
                },
            )
        }
    };
    ThroughputFindings {
        step_ns: steps.length_ns,
        steps: rates.len(),
        steady: Some(steady),
        shifts: course.shifts.iter().map(shift).collect(),
        variation: figure(|found| found.coefficient_of_variation),
        tps_p50: figure(|found| found.median),
        tps_lowest_1pct: figure(|found| found.lowest_hundredth),
        outages: beside.outages.to_vec(),
        waves: waves.map(|found| WavesFindings { period_ns: ns(found.period), strength: found.strength }),
    }
}

/// Steadiness of a part without shifts, trends, dips and long waves.
fn steadiness(
    rates: &[f64],
    start_ns: u64,
    (judged_from_ns, judged_to_ns): (u64, u64),
    outages: &[OutageFindings],
) -> SteadyFindings {
    if outages.iter().any(|outage| outage.end_ns() > start_ns) {
        return SteadyFindings::Outage;
    }
    let tps = mean(rates);
    let Ok(known) = assay_stats::mean_interval(rates) else { return SteadyFindings::Dependent { tps } };
    let (tps_low, tps_high) = (known.low.max(0.0), known.high);
    let is_known = tps_low >= (1.0 - KNOWN) * tps && tps_high <= (1.0 + KNOWN) * tps;
    match is_known {
        true => SteadyFindings::Steady { start_ns, judged_from_ns, judged_to_ns, tps, tps_low, tps_high },
        false => SteadyFindings::Uncertain { tps, tps_low, tps_high },
    }
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}
