//! A stage in short facts, each line with a name.

use crate::digits::{count, figure, micros, ms, percent};
use crate::findings::run::{Findings, Task};
use crate::findings::stage::{GeneratorFindings, OpenFindings, QueueFindings, StageFindings};
use crate::findings::tally::TallyFindings;
use crate::plain::clean;
use crate::words::run::{client, number_of};

/// A name, and its facts.
pub(crate) type Facts = (&'static str, Vec<String>);

/// Work that was not done, and what went wrong.
pub(crate) fn undone(stage: &StageFindings) -> Vec<Facts> {
    let (open, queue) = (stage.open.as_ref().map(open), stage.queue.as_ref().map(queue));
    let (open, queue) = (open.map(|facts| ("open loop", facts)), queue.map(|facts| ("terminals", facts)));
    open.into_iter().chain(queue).chain([("errors", trouble(&stage.total))]).collect()
}

fn open(open: &OpenFindings) -> Vec<String> {
    vec![
        format!("{} due ({}/s)", count(open.due), figure(open.due_per_s)),
        format!("{} dropped", count(open.dropped)),
        format!("{} not started", count(open.unstarted)),
        format!("backlog max {}", count(open.backlog_max)),
    ]
}

fn queue(queue: &QueueFindings) -> Vec<String> {
    vec![
        format!("{} due", count(queue.due)),
        format!("{} not started", count(queue.unstarted)),
        format!("max {} waiting for a connection", count(queue.waiting_max)),
    ]
}

fn trouble(total: &TallyFindings) -> Vec<String> {
    let retries = match (total.retries, total.retries_in_doubt.unwrap_or(0)) {
        (1, 0) => "1 retry".to_owned(),
        (retries, 0) => format!("{} retries", count(retries)),
        (retries, in_doubt) => format!("{} retries ({} in doubt)", count(retries), count(in_doubt)),
    };
    let failed = match total.failed_in_doubt.unwrap_or(0) {
        0 => number_of(total.failed, "failed transaction"),
        in_doubt => format!("{} ({} in doubt)", number_of(total.failed, "failed transaction"), count(in_doubt)),
    };
    let facts = [
        (total.failed, failed),
        (total.errors, number_of(total.errors, "error")),
        (total.retries, retries),
        (total.reconnects, number_of(total.reconnects, "reconnect")),
        (total.unfinished, format!("{} unfinished", count(total.unfinished))),
    ];
    let facts: Vec<String> = facts.into_iter().filter(|(number, _)| *number > 0).map(|(_, words)| words).collect();
    if facts.is_empty() { vec!["none".into()] } else { facts }
}

/// Fairness between sessions, and the generator's use of resources; empty in a partial record.
pub(crate) fn generator(stage: &StageFindings, findings: &Findings) -> Vec<Facts> {
    let Some(generator) = &stage.generator else { return Vec::new() };
    let (least, most) = (count(stage.session_transactions_min), count(stage.session_transactions_max));
    let mean = figure(stage.session_transactions_mean);
    let what = if findings.task == Task::Machine { "operations" } else { "transactions" };
    let fairness = format!("{least} to {most} {what} per {}, {mean} on average", client(findings));
    let fairness = Some(("fairness", vec![fairness])).filter(|_| stage.session_transactions_max > 0);
    let effort = ("generator", effort(generator, stage.total.lag.p99_ns, findings));
    fairness.into_iter().chain([effort]).collect()
}

fn effort(generator: &GeneratorFindings, lag_ns_p99: Option<u64>, findings: &Findings) -> Vec<String> {
    let embedded = findings.is_embedded();
    let workers = match generator.workers {
        1 => "its worker".to_owned(),
        workers => format!("busiest of {} workers", count(workers.into())),
    };
    let cpus = if findings.cpus == 1 { "1 CPU".into() } else { format!("{} CPUs", count(findings.cpus.into())) };
    let mut facts = Vec::new();
    if let Some(cpu) = generator.cpu_ns_per_statement {
        let database = if embedded { ", database included" } else { "" };
        facts.push(format!("{} µs CPU per statement{database}", micros(cpu)));
    }
    facts.push(format!("{} of {cpus}", percent(generator.cpu_share_of_machine)));
    facts.push(format!("{workers} {} busy", percent(generator.busiest_worker)));
    facts.extend(generator.waited_for_cpu.map(|waited| format!("waited {} for a CPU", percent(waited))));
    let lag = if embedded { "wait for a worker" } else { "lag" };
    facts.push(format!("{lag} p99 {} ms", ms(lag_ns_p99)));
    facts.push(format!("{} MiB", count(generator.memory_max_bytes >> 20)));
    facts.extend(generator.switches_per_statement.map(|n| format!("{} context switches per statement", figure(n))));
    // An embedded database answers without an event.
    let events = generator.events_per_turn.filter(|_| !embedded);
    facts.extend(events.map(|n| format!("{} events per turn", figure(n))));
    facts.extend(event_loop(findings).map(|event_loop| format!("over {event_loop}")));
    facts
}

/// The event loop, and whether it polled.
pub(crate) fn event_loop(findings: &Findings) -> Option<String> {
    let event_loop = findings.event_loop.as_ref()?;
    Some(match event_loop.polls_ns {
        0 => event_loop.backend.clone(),
        polls => format!("{}, polling for {} µs", event_loop.backend, figure(polls as f64 / 1e3)),
    })
}

/// Why io_uring was not used, if it would have been better.
pub(crate) fn fallback(findings: &Findings) -> Option<String> {
    let why = findings.event_loop.as_ref()?.fallback.as_ref()?;
    Some(format!("not used: {}", clean(why, 104)))
}
