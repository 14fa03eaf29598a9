//! The result of a capacity search in words.

use crate::digits::{count, figure, length, percent};
use crate::findings::capacity::{Capacity, CapacityFindings, KNEE_SHARE, LookFindings, SearchState};
use crate::findings::promise::{Promise, PromisedFigure};
use crate::plain::clean;
use crate::words::run::{promised, sessions};

const PROMISE_WIDTH: usize = 60;
const NAME_WIDTH: usize = 40;

/// The result, without a full stop.
pub fn capacity_words(found: &CapacityFindings) -> String {
    match &found.of {
        Capacity::Rate { promises } => rate_words(found, &promised(promises)),
        Capacity::Sessions { max } => sessions_words(found, *max),
    }
}

fn rate_words(found: &CapacityFindings, promised: &str) -> String {
    let rate = |value: Option<f64>| format!("{} tx/s", figure(value.unwrap_or(0.0)));
    let (low, high) = (rate(found.low), rate(found.high));
    let delayed = delay_words(found);
    match found.state {
        SearchState::Found => format!("capacity {low}: {promised} holds there, and not at {high}{delayed}"),
        SearchState::AtLeast => format!("capacity at least {low}: {promised} never broke"),
        SearchState::GeneratorLimit if found.low.is_none() => {
            format!(
                "capacity unknown: {promised} did not hold even at {high}, where the load generator was the bottleneck"
            )
        }
        SearchState::GeneratorLimit => {
            format!("capacity at least {low}: {promised} broke at {high} because the load generator was the bottleneck")
        }
        SearchState::SharedCpus => format!(
            "capacity at least {low}: {promised} holds there, and not at {high}, where server and load generator \
             compete for the same CPUs"
        ),
        SearchState::NotEven => format!("capacity below {high}: {promised} did not hold at any rate{delayed}"),
        SearchState::TooFew => too_few_words(found),
        SearchState::UnknownType => {
            let names =
                |names: &[String]| names.iter().map(|name| clean(name, NAME_WIDTH)).collect::<Vec<_>>().join(", ");
            format!(
                "capacity unknown: there are no transactions of type {}, only {}",
                names(&found.unknown_types),
                names(&found.known_types)
            )
        }
        SearchState::Unsteady => "capacity unknown: the throughput was not repeatable".into(),
        SearchState::Unfinished => match (found.low, found.high) {
            (Some(_), Some(_)) => format!("capacity unknown: between {low} and {high} when the run ended"),
            (Some(_), None) => format!("capacity unknown: {promised} still held at {low} when the run ended"),
            (None, Some(_)) => format!("capacity unknown: {promised} did not hold at {high} when the run ended"),
            (None, None) => "capacity unknown: the run ended before the first measurement".into(),
        },
    }
}

/// Other causes that may have broken the promise.
fn delay_words(found: &CapacityFindings) -> String {
    let Some(delayed) = found.delayed else { return String::new() };
    let what = match delayed.waited_for_cpu >= 0.01 {
        true => format!("assay itself waited for a CPU for {} of the time", percent(delayed.waited_for_cpu)),
        false => format!("assay itself was {} late", length(delayed.lag_ns)),
    };
    format!("; but there {what}: the capacity may be higher")
}

fn too_few_words(found: &CapacityFindings) -> String {
    let last = found.looks.last().and_then(|look| Some((look, look.too_few?)));
    let Capacity::Rate { promises } = &found.of else { return "capacity unknown".into() };
    let Some((look, few)) = last else { return "capacity unknown: too few transactions".into() };
    let known = match (found.low, found.high) {
        (Some(low), Some(high)) => format!("; between {} and {} tx/s", figure(low), figure(high)),
        (Some(low), None) => format!("; at least {} tx/s", figure(low)),
        (None, Some(high)) => format!("; below {} tx/s", figure(high)),
        (None, None) => String::new(),
    };
    format!(
        "capacity unknown{known}: {} needs {} transactions, and {} at {} tx/s had {}: give each more `--time`",
        promises.get(few.promise).map_or_else(String::new, |text| name_of(text)),
        count(few.needed),
        if look.stages == 1 { "a stage".into() } else { format!("{} stages", look.stages) },
        figure(look.at),
        count(few.transactions)
    )
}

fn sessions_words(found: &CapacityFindings, max: u32) -> String {
    let number = |value: Option<f64>| sessions(value.unwrap_or(0.0) as u32);
    let enough = format!("{} of the highest throughput", percent(KNEE_SHARE));
    let (low, high) = (number(found.low), number(found.high));
    match (found.state, found.low) {
        (SearchState::Unfinished, _) => "knee unknown: the run ended before the search was complete".into(),
        (SearchState::Unsteady, _) => unsteady_words(found),
        (SearchState::AtLeast, _) => format!("no knee up to {}: throughput still grew", sessions(max)),
        (_, None) => format!("knee at {high}, which reach {enough}"),
        _ => format!("knee at {high}, which reach {enough}; {low} do not"),
    }
}

/// What was reached, and what was reached later with as many sessions as the search ended with.
fn unsteady_words(found: &CapacityFindings) -> String {
    let by_throughput = |one: &&LookFindings, other: &&LookFindings| one.reached_per_s.total_cmp(&other.reached_per_s);
    let one = |look: &LookFindings| format!("{} tx/s with {}", figure(look.reached_per_s), sessions(look.at as u32));
    let at_end = found.looks.iter().filter(|look| Some(look.at) == found.high.or(found.low));
    match (found.looks.iter().max_by(by_throughput), at_end.min_by(by_throughput)) {
        (Some(highest), Some(lowest)) => format!(
            "knee unknown: {}, but later only {}: look for what slowed the server down, and search again",
            one(highest),
            one(lowest)
        ),
        _ => "knee unknown".into(),
    }
}

/// Why a look was within capacity, or not.
pub(crate) fn look_words(found: &CapacityFindings, look: &LookFindings) -> String {
    let Capacity::Rate { promises } = &found.of else {
        return if look.kept { "too few".into() } else { "enough".into() };
    };
    if look.kept {
        return "kept".into();
    }
    if let Some(few) = look.too_few {
        return format!("{} of {} needed", count(few.transactions), count(few.needed));
    }
    let broken = |number: &usize| {
        let promise: Promise = promises.get(*number)?.parse().ok()?;
        Some(broken_words(&promise, look.values.get(*number).copied().flatten()))
    };
    // If work was left undone, percentiles are meaningless.
    if look.fell_short {
        return "not all started or finished".into();
    }
    let why: Vec<String> = look.broken.iter().filter_map(broken).collect();
    if why.is_empty() { "backlog grew".into() } else { why.join(", ") }
}

/// The figure that a promise limits: `new_order.p99`.
fn name_of(promise: &str) -> String {
    promise.split('<').next().map(|name| clean(name.trim(), PROMISE_WIDTH)).unwrap_or_default()
}

fn broken_words(promise: &Promise, value: Option<f64>) -> String {
    let name = name_of(&promise.text);
    match (promise.figure, value) {
        (_, None) => format!("{name} too high"),
        (PromisedFigure::Errors, Some(share)) => format!("{name} {}", percent(share)),
        (_, Some(ns)) => format!("{name} {} ms", figure(ns / 1e6)),
    }
}

/// One stage of a search, for progress output.
pub fn look_line(findings: &CapacityFindings) -> Option<String> {
    let look = findings.looks.last()?;
    let words = look_words(findings, look);
    Some(match findings.of {
        Capacity::Rate { .. } => format!("{} tx/s: {words}", figure(look.at)),
        Capacity::Sessions { .. } => {
            format!("{}: {} tx/s", sessions(look.at as u32), figure(look.reached_per_s))
        }
    })
}
