//! The final report, for people: readable without colour, at most 100 columns, units in the heads.
//!
//! Puts together what `words` and `tables` made, and computes nothing. A run of several stages is a table of them, then the
//! details of the last one; every stage's details are in the JSON.

use assay_record::{OptionValue, Status};

use crate::digits::{count, figure, seconds};
use crate::findings::capacity::CapacityFindings;
use crate::findings::run::Findings;
use crate::findings::stage::StageFindings;
use crate::plain::{DOT, clean, wrap};
use crate::tables::latency::responses;
use crate::tables::stages::{looks, stages};
use crate::tables::table::{NAME_WIDTH, Table};
use crate::tables::telemetry::metrics;
use crate::tables::work;
use crate::words::capacity::capacity_words;
use crate::words::facts::{Facts, fallback, generator, undone};
use crate::words::run::{growth, load, option_value, servers};
use crate::words::steadiness::{latency_intervals, over_time};
use crate::words::telemetry::telemetry;
use crate::words::warning::{warning_words, warnings_by_hint};

const FACT_WIDTH: usize = 80;
const FAILURE_LINES_MAX: usize = 40;

/// The final report.
pub fn text(findings: &Findings) -> String {
    let mut text = head(findings);
    match &findings.capacity {
        Some(found) => text += &format!("\n{}", search(found, findings)),
        None if findings.stages.len() > 1 => text += &format!("\n{}", ladder(&findings.stages)),
        None => {}
    }
    let last = findings.stages.last();
    if let Some(stage) = if findings.capacity.is_some() { findings.main_stage() } else { last } {
        text += &details(stage, findings);
    }
    text += &below(work::errors(&findings.errors));
    for (causes, hint) in warnings_by_hint([("", findings)]) {
        text.push('\n');
        for cause in causes {
            text += &wrap("warning: ", cause.split(' '), " ");
        }
        if !hint.is_empty() {
            text += &wrap("  hint: ", hint.split(' '), " ");
        }
    }
    text
}

fn head(findings: &Findings) -> String {
    let mut sessions: Vec<String> = findings.stages.iter().map(|stage| count(stage.sessions.into())).collect();
    if findings.capacity.is_some() {
        // The table has each.
        sessions.sort_by_key(|number| (number.len(), number.clone()));
        sessions.dedup();
    }
    let sessions = match sessions[..] {
        [] => "no sessions".into(),
        [ref one] if one == "1" => "1 session".into(),
        _ => format!("{} sessions", sessions.join(", ")),
    };
    let mut facts = vec![clean(&findings.workload, FACT_WIDTH), encrypted_servers(findings), sessions, load(findings)];
    facts.extend(findings.limit.time_ns.map(seconds));
    facts.extend(findings.limit.transactions.map(|most| format!("{} transactions", count(most))));
    if findings.warmup_ns > 0 {
        facts.push(format!("after {} of warm-up", seconds(findings.warmup_ns)));
    }
    facts.push(format!("seed {}", findings.seed));
    facts.extend(findings.distribution.as_ref().map(|name| format!("{} rows", clean(name, NAME_WIDTH))));
    let mut text = wrap("", facts, DOT);
    let took = seconds(findings.elapsed_ns);
    let ended = match findings.status {
        Status::Running => format!("not finished, {took} recorded"),
        Status::Complete => format!("complete in {took}"),
        Status::Interrupted => format!("interrupted after {took}"),
        Status::Failed => format!("failed after {took}"),
    };
    text += &wrap("", [ended, format!("started {}", findings.started), clean(&findings.tool, NAME_WIDTH)], DOT);
    for warning in findings.warnings.iter().filter(|warning| warning.is_headline()) {
        let (cause, hint) = warning_words(warning, findings);
        text += &wrap("! ", cause.split(' '), " ");
        text += &wrap("  hint: ", hint.split(' '), " ");
    }
    if !findings.options.is_empty() {
        let option =
            |(name, value): (&String, &OptionValue)| format!("{}={}", clean(name, NAME_WIDTH), option_value(value));
        text += &wrap("options: ", findings.options.iter().map(option), ", ");
    }
    if !findings.tags.is_empty() {
        let tag =
            |(name, value): (&String, &String)| format!("{}={}", clean(name, NAME_WIDTH), clean(value, FACT_WIDTH));
        text += &wrap("tags: ", findings.tags.iter().map(tag), ", ");
    }
    if let Some(failure) = &findings.failure {
        text.push('\n');
        for (number, line) in failure.lines().take(FAILURE_LINES_MAX).enumerate() {
            text += &wrap(if number == 0 { "error: " } else { "  " }, clean(line, 2000).split(' '), " ");
        }
    }
    text
}

fn encrypted_servers(findings: &Findings) -> String {
    let tls = match &findings.targets[..] {
        [target] if !target.product.is_empty() => target.tls.as_ref(),
        _ => None,
    };
    servers(findings) + &tls.map(|tls| format!(" ({})", clean(tls, 40))).unwrap_or_default()
}

fn ladder(all: &[StageFindings]) -> String {
    let rows = all.iter().map(|stage| (count(stage.sessions.into()), stage));
    let growth = growth(all).map(|words| format!("{words}\n"));
    stages("sessions", rows).text() + &growth.unwrap_or_default()
}

fn search(found: &CapacityFindings, findings: &Findings) -> String {
    looks(found, findings).text() + "\n" + &wrap("", capacity_words(found).split(' '), " ")
}

fn details(stage: &StageFindings, findings: &Findings) -> String {
    let mut text = String::from("\n");
    if let [.., _, _] = findings.stages[..] {
        let rate = stage.open.filter(|_| findings.capacity.is_some());
        let rate = rate.map(|open| format!("at {} tx/s due, ", figure(open.rate_per_s))).unwrap_or_default();
        let sessions = count(stage.sessions.into());
        text += &format!("{rate}with {sessions} sessions, for {}:\n\n", seconds(stage.measured_ns));
    }
    text += &work::throughput(&stage.total).text();
    let over_time = over_time(stage);
    if !over_time.is_empty() {
        text += &format!("\n{}", listed(over_time));
    }
    text += &below(work::rates(&stage.rates));
    text += &below(work::counters(&stage.counters));
    text += &below(work::types(&stage.total));
    text += &below(work::targets(&findings.targets, &stage.targets));
    text += &below(Some(responses(stage)));
    let known = latency_intervals(stage);
    text += &if known.is_empty() { "\n".into() } else { listed([("at 95%", known)]) + "\n" };
    text += &listed(undone(stage));
    let generator = generator(stage, findings);
    let known = !generator.is_empty();
    text += &listed(generator);
    if let Some(why) = fallback(findings).filter(|_| known) {
        text += &wrap("io_uring   ", why.split(' '), " ");
    }
    let read = telemetry(stage, findings);
    if !read.is_empty() {
        text += &format!("\n{}", listed(read));
    }
    if findings.sampling.as_ref().is_some_and(|sampling| sampling.full) {
        text += &stage.telemetry.iter().map(|scope| below(Some(metrics(scope)))).collect::<String>();
    }
    text + &below(work::audit(&stage.audit))
}

fn listed(facts: impl IntoIterator<Item = Facts>) -> String {
    facts.into_iter().map(|(name, facts)| wrap(&format!("{name:11}"), facts, DOT)).collect()
}

/// A table after an empty line.
fn below(table: Option<Table>) -> String {
    table.map(|table| format!("\n{}", table.text())).unwrap_or_default()
}
