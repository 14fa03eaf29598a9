//! The result of a capacity search in words.

use crate::digits::{figure, percent};
use crate::findings::capacity::{Capacity, CapacityFindings, KNEE_SHARE, LookFindings, SearchState};
use crate::findings::promise::{Promise, PromisedFigure};
use crate::plain::clean;
use crate::words::run::{promised, sessions};

const PROMISE_WIDTH: usize = 60;

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
    match found.state {
        SearchState::Found => format!("capacity {low}: {promised} holds there, and not at {high}"),
        SearchState::AtLeast => format!("capacity at least {low}: {promised} never broke"),
        SearchState::GeneratorLimit => {
            format!("capacity at least {low}: {promised} broke at {high} because the load generator was the bottleneck")
        }
        SearchState::SharedCpus => format!(
            "capacity at least {low}: {promised} holds there, and not at {high}, where server and load generator \
             compete for the same CPUs"
        ),
        SearchState::NotEven => format!("capacity below {high}: {promised} did not hold at any rate"),
        SearchState::Unfinished => match (found.low, found.high) {
            (Some(_), Some(_)) => format!("capacity unknown: between {low} and {high} when the run ended"),
            (Some(_), None) => format!("capacity unknown: {promised} still held at {low} when the run ended"),
            (None, Some(_)) => format!("capacity unknown: {promised} did not hold at {high} when the run ended"),
            (None, None) => "capacity unknown: the run ended before the first measurement".into(),
        },
    }
}

fn sessions_words(found: &CapacityFindings, max: u32) -> String {
    let number = |value: Option<f64>| sessions(value.unwrap_or(0.0) as u32);
    let enough = format!("{} of the highest throughput", percent(KNEE_SHARE));
    let (low, high) = (number(found.low), number(found.high));
    match (found.state, found.low) {
        (SearchState::Unfinished, _) => "knee unknown: the run ended before the search was complete".into(),
        (SearchState::AtLeast, _) => format!("no knee up to {}: throughput still grew", sessions(max)),
        (_, None) => format!("knee at {high}, which reach {enough}"),
        _ => format!("knee at {high}, which reach {enough}; {low} do not"),
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
    let broken = |number: &usize| {
        let promise: Promise = promises.get(*number)?.parse().ok()?;
        Some(broken_words(&promise, look.values.get(*number).copied().flatten()))
    };
    // If work was left undone, percentiles are meaningless.
    if look.fell_short {
        return "fell short".into();
    }
    let why: Vec<String> = look.broken.iter().filter_map(broken).collect();
    if why.is_empty() { "backlog grew".into() } else { why.join(", ") }
}

fn broken_words(promise: &Promise, value: Option<f64>) -> String {
    let name = promise.text.split('<').next().map(|name| clean(name.trim(), PROMISE_WIDTH)).unwrap_or_default();
    match (promise.figure, value) {
        (_, None) => format!("{name} unbounded"),
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
