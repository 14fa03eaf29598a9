//! Whether throughput was steady, how even it was, and how well quantiles are known.

use crate::digits::{figure, ms, percent, seconds};
use crate::findings::stage::StageFindings;
use crate::findings::throughput::SteadyFindings;

/// Whether throughput was steady, and how even: what is told, and its facts.
pub(crate) fn over_time(stage: &StageFindings) -> Vec<(&'static str, Vec<String>)> {
    let found = &stage.throughput;
    if stage.measured_ns == 0 {
        return Vec::new();
    }
    let steady = match found.steady {
        SteadyFindings::Steady { start_ns, tps, tps_low, tps_high } => {
            let from = if start_ns == 0 { "from the start".into() } else { format!("from {} on", seconds(start_ns)) };
            let known = match (tps_low, tps_high) {
                (Some(low), Some(high)) => format!(" [{}, {}] at 95%", figure(low), figure(high)),
                _ => "; too short for an interval, its seconds depend on each other too much".into(),
            };
            vec![from, format!("{} tx/s{known}", figure(tps))]
        }
        SteadyFindings::TooShort { needed_ns } => {
            let (measured, needed) = (seconds(stage.measured_ns), seconds(needed_ns));
            vec![format!("not known, nor how sure the throughput is: {measured} are too short, {needed} are enough")]
        }
        SteadyFindings::Late { start_ns } => {
            vec![format!("no: throughput changed about {} after the start, in the second half", seconds(start_ns))]
        }
        SteadyFindings::Trend { change } => {
            let goes = if change < 0.0 { "falls" } else { "rises" };
            vec![format!("no: throughput {goes} by {} of its mean from start to end", percent(change.abs()))]
        }
        SteadyFindings::Waves { count } => {
            vec![format!("no: {count:.0} waves are too few to average over")]
        }
    };
    let mut facts = Vec::new();
    facts.extend(found.variation.map(|share| format!("by {} (coefficient of variation)", percent(share))));
    // With fewer than a hundred the lowest hundredth is the lowest one.
    let step = if found.step_ns == 1_000_000_000 { "second" } else { "interval" };
    let lowest = if found.steps > 100 { format!("lowest 1% of {step}s") } else { format!("lowest {step}") };
    facts.extend(found.tps_lowest_1pct.map(|tps| format!("{lowest} {} tx/s", figure(tps))));
    if let Some(start_ns) = found.stall_start_ns {
        let (most, all) = (seconds(found.stall_ns_max), seconds(found.below_tenth_ns));
        facts.push(format!("longest stall {most}, {} after the start", seconds(start_ns)));
        // Where most seconds stood still there is nothing below the median.
        let below = if found.tps_p50 == Some(0.0) { "without a transaction" } else { "below 10% of the median" };
        facts.push(format!("{all} {below}"));
    } else if found.variation.is_some() {
        facts.push("no stalls".into());
    }
    let waves = found.waves.map(|waves| (seconds(waves.period_ns), percent(waves.strength)));
    facts.extend(waves.map(|(period, strength)| format!("waves of {period} ({strength} of the variance)")));
    let told = [("steady", steady), ("varies", facts)];
    told.into_iter().filter(|(_, facts)| !facts.is_empty()).collect()
}

/// What a stall was, where it is seen.
pub(crate) fn stall_words(length_ns: u64) -> String {
    format!("stall: {} below 10% of the median", seconds(length_ns))
}

/// How well the quantiles of response times are known, at 95 %.
pub(crate) fn latency_intervals(stage: &StageFindings) -> Vec<String> {
    let found = &stage.response_intervals;
    let known = [("p50", found.p50_ns), ("p95", found.p95_ns), ("p99", found.p99_ns)];
    let shown = |(name, interval): (&str, Option<(u64, u64)>)| {
        interval.map(|(low, high)| format!("{name} [{}, {}] ms", ms(Some(low)), ms(Some(high))))
    };
    known.into_iter().filter_map(shown).collect()
}
