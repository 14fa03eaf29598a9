//! Whether throughput was steady, how it varied, and how precisely quantiles are known.

use crate::digits::{change, clock, count, figure, length, ms, percent, seconds};
use crate::findings::stage::StageFindings;
use crate::findings::throughput::{ShiftFindings, SteadyFindings};
use crate::words::outage::outage_words;

/// Whether throughput was steady, where it shifted, and how even it was: a name for each, and its facts.
pub(crate) fn over_time(stage: &StageFindings) -> Vec<(&'static str, Vec<String>)> {
    let found = &stage.throughput;
    if stage.measured_ns == 0 {
        return Vec::new();
    }
    let shifts: Vec<String> = found.shifts.iter().map(shift_words).collect();
    let mut facts = Vec::new();
    facts.extend(found.variation.map(|share| format!("coefficient of variation {}", percent(share))));
    // With fewer than a hundred the lowest hundredth is the lowest one.
    let step = if found.step_ns == 1_000_000_000 { "second" } else { "interval" };
    let lowest = if found.steps > 100 { format!("lowest 1% of {step}s") } else { format!("lowest {step}") };
    facts.extend(found.tps_lowest_1pct.map(|tps| format!("{lowest} {} tx/s", figure(tps))));
    match (found.outages.is_empty(), stage.outages.len()) {
        (true, 0) if found.variation.is_some() => facts.push("no outages".into()),
        (true, 1) => facts.push("1 outage of a single server".into()),
        (true, number @ 2..) => facts.push(format!("{number} outages of single servers")),
        _ => {}
    }
    let waves = found.waves.map(|waves| (seconds(waves.period_ns), percent(waves.strength)));
    facts.extend(waves.map(|(period, strength)| format!("waves of {period} ({strength} of the variance)")));
    let told = [("steady", steady(stage)), ("shifts", shifts), ("variation", facts)];
    told.into_iter().filter(|(_, facts)| !facts.is_empty()).collect()
}

fn steady(stage: &StageFindings) -> Vec<String> {
    let Some(steady) = stage.throughput.steady else { return Vec::new() };
    let known = |low: f64, high: f64| format!("[{}, {}] at 95%", figure(low), figure(high));
    let size = |change: f64| percent(change.abs());
    let goes = |change: f64| if change < 0.0 { "falls" } else { "rises" };
    vec![match steady {
        SteadyFindings::Steady { start_ns, judged_from_ns, judged_to_ns, tps, tps_low, tps_high } => {
            let before = judged_from_ns.saturating_sub(start_ns);
            // A run ends a little after its last step.
            let after = Some(stage.measured_ns.saturating_sub(judged_to_ns));
            let after = after.filter(|after| *after >= stage.throughput.step_ns / 2).unwrap_or(0);
            let from = match judged_from_ns {
                0 => "yes, from the start".to_owned(),
                ns => format!("yes, from {}", clock(ns)),
            };
            let range = match (judged_from_ns, after) {
                (0, 0) => from,
                (_, 0) => format!("{from} on"),
                _ => format!("{from} to {}", clock(judged_to_ns)),
            };
            let first = if start_ns == 0 { "first" } else { "next" };
            let unjudged = [(first, before), ("last", after)].into_iter().filter(|(_, ns)| *ns > 0);
            let unjudged: Vec<String> = unjudged.map(|(which, ns)| format!("the {which} {}", seconds(ns))).collect();
            let unjudged = (!unjudged.is_empty()).then(|| format!("{} are too short to judge", unjudged.join(" and ")));
            let throughput = format!("{} tx/s {}", figure(tps), known(tps_low, tps_high));
            return [Some(range), unjudged, Some(throughput)].into_iter().flatten().collect();
        }
        SteadyFindings::TooShort { needed_ns } => {
            let (measured, needed) = (seconds(stage.measured_ns), seconds(needed_ns));
            format!("unknown: needs at least {needed} (this run: {measured})")
        }
        SteadyFindings::Outage => match &stage.throughput.outages[..] {
            [] => "no: there was an outage".into(),
            [outage] => format!("no: {}", outage_words(outage)),
            outages => format!("no: {} outages", outages.len()),
        },
        SteadyFindings::Shifted => match stage.throughput.shifts.last() {
            Some(last) => format!("no: throughput changed at {}", clock(last.start_ns)),
            None => "no: throughput changed".into(),
        },
        SteadyFindings::Doubtful { shift } => {
            format!("unknown: throughput may have changed ({}); a longer run can tell", shift_words(&shift))
        }
        SteadyFindings::Trend { change } => {
            format!("no: throughput {} by {} of its mean from start to end", goes(change), size(change))
        }
        SteadyFindings::Waves { count } => format!("unknown: {count:.0} waves are too few to average over"),
        SteadyFindings::Dip { start_ns, length_ns, tps } => {
            format!("no: throughput dropped to {} tx/s at {} for {}", figure(tps), clock(start_ns), seconds(length_ns))
        }
        SteadyFindings::Burst { start_ns, length_ns, tps } => {
            format!("no: throughput rose to {} tx/s at {} for {}", figure(tps), clock(start_ns), seconds(length_ns))
        }
        SteadyFindings::Unclear { change } => {
            format!(
                "unknown: throughput varies too much to show a change below {}; a longer run can tell",
                size(change)
            )
        }
        SteadyFindings::Dependent { tps } => {
            format!("unknown: {} tx/s, but without a confidence interval (autocorrelation too high)", figure(tps))
        }
        SteadyFindings::Uncertain { tps, tps_low, tps_high } => {
            format!("unknown: {} tx/s {} is not within ±10%", figure(tps), known(tps_low, tps_high))
        }
        SteadyFindings::ResponseShifted { start_ns, before_ns, after_ns } => format!(
            "no: mean response time changed at {} from {} to {}",
            clock(start_ns),
            length(before_ns as u64),
            length(after_ns as u64)
        ),
        SteadyFindings::ResponseDoubtful { start_ns, before_ns, after_ns } => format!(
            "unknown: mean response time may have changed at {} from {} to {}; a longer run can tell",
            clock(start_ns),
            length(before_ns as u64),
            length(after_ns as u64)
        ),
        SteadyFindings::ResponseExcursion { start_ns, length_ns, response_ns, usual_ns } => format!(
            "no: mean response time was {} at {} for {}, usually {}",
            length(response_ns as u64),
            clock(start_ns),
            seconds(length_ns),
            length(usual_ns as u64)
        ),
        SteadyFindings::ResponseUnclear { change: Some(change) } => format!(
            "unknown: response times vary too much to show a change of their mean below {}; a longer run can tell",
            size(change)
        ),
        SteadyFindings::ResponseUnclear { change: None } => {
            "unknown: a change of the mean response time would not show; a longer run can tell".into()
        }
        SteadyFindings::ResponseTrend { change } => {
            format!("no: mean response time {} by {} of its mean from start to end", goes(change), size(change))
        }
        SteadyFindings::Backlog { first, last } => {
            format!("no: the backlog grows, from {} waiting transactions to {}", count(first), count(last))
        }
    }]
}

/// `1,000 → 600 tx/s (−40.0%) at 1:12`.
fn shift_words(shift: &ShiftFindings) -> String {
    let ShiftFindings { start_ns, tps_before, tps_after } = *shift;
    let by = if tps_before > 0.0 { format!(" ({})", change(tps_after / tps_before - 1.0)) } else { String::new() };
    format!("{} → {} tx/s{by} at {}", figure(tps_before), figure(tps_after), clock(start_ns))
}

/// The precision of response time quantiles, at 95 %.
pub(crate) fn latency_intervals(stage: &StageFindings) -> Vec<String> {
    let found = &stage.response_intervals;
    let known = [("p50", found.p50_ns), ("p95", found.p95_ns), ("p99", found.p99_ns)];
    let shown = |(name, interval): (&str, Option<(u64, u64)>)| {
        interval.map(|(low, high)| format!("{name} [{}, {}] ms", ms(Some(low)), ms(Some(high))))
    };
    known.into_iter().filter_map(shown).collect()
}
