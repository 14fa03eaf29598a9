//! A stage in short facts, each line of them under a name.

use assay_record::Place;

use crate::digits::{count, figure, micros, ms, percent};
use crate::findings::run::Findings;
use crate::findings::stage::{GeneratorFindings, OpenFindings, QueueFindings, StageFindings};
use crate::findings::tally::TallyFindings;
use crate::plain::clean;

/// A name, and what is to be said under it.
pub(crate) type Facts = (&'static str, Vec<String>);

/// Work that was not done, and what went wrong.
pub(crate) fn undone(stage: &StageFindings) -> Vec<Facts> {
    let (open, queue) = (stage.open.as_ref().map(open), stage.queue.as_ref().map(queue));
    let (open, queue) = (open.map(|facts| ("open loop", facts)), queue.map(|facts| ("terminals", facts)));
    open.into_iter().chain(queue).chain([("trouble", trouble(&stage.total))]).collect()
}

fn open(open: &OpenFindings) -> Vec<String> {
    vec![
        format!("{} due ({} per s)", count(open.due), figure(open.due_per_s)),
        format!("{} dropped", count(open.dropped)),
        format!("{} not begun at the end", count(open.unstarted)),
        format!("backlog at most {}", count(open.backlog_max)),
    ]
}

fn queue(queue: &QueueFindings) -> Vec<String> {
    vec![
        format!("{} due", count(queue.due)),
        format!("{} not begun at the end", count(queue.unstarted)),
        format!("at most {} waiting for a connection", count(queue.waiting_max)),
    ]
}

fn trouble(total: &TallyFindings) -> Vec<String> {
    vec![
        format!("{} failed", count(total.failed)),
        format!("{} errors", count(total.errors)),
        match total.retries_in_doubt {
            0 => format!("{} retries", count(total.retries)),
            in_doubt => format!("{} retries ({} in doubt)", count(total.retries), count(in_doubt)),
        },
        format!("{} reconnects", count(total.reconnects)),
        format!("{} unfinished", count(total.unfinished)),
    ]
}

/// How evenly sessions were served, and what the generator took; nothing in a partial record.
pub(crate) fn generator(stage: &StageFindings, findings: &Findings) -> Vec<Facts> {
    let Some(generator) = &stage.generator else { return Vec::new() };
    let (least, most) = (count(stage.session_transactions_min), count(stage.session_transactions_max));
    let mean = figure(stage.session_transactions_mean);
    let fairness = vec![format!("{least} to {most} transactions per session, {mean} on average")];
    vec![("fairness", fairness), ("generator", effort(generator, stage.total.lag.p99_ns, findings))]
}

fn effort(generator: &GeneratorFindings, lag_ns_p99: Option<u64>, findings: &Findings) -> Vec<String> {
    let embedded = findings.targets.iter().any(|target| target.place == Place::Embedded);
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
    facts.push(format!("lag p99 {} ms", ms(lag_ns_p99)));
    facts.push(format!("{} MiB", count(generator.memory_max_bytes >> 20)));
    facts.extend(generator.switches_per_statement.map(|n| format!("{} context switches per statement", figure(n))));
    // An embedded database answers without an event.
    let events = generator.events_per_turn.filter(|_| !embedded);
    facts.extend(events.map(|n| format!("{} events per turn", figure(n))));
    facts.extend(findings.event_loop.as_ref().map(|event_loop| format!("over {}", event_loop.backend)));
    facts
}

/// Why io_uring was not used, where it would have been.
pub(crate) fn fallback(findings: &Findings) -> Option<String> {
    let why = findings.event_loop.as_ref()?.fallback.as_ref()?;
    Some(format!("not used: {}", clean(why, 104)))
}
