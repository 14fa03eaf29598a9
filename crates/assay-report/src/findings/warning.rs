//! What a reader should know before trusting a number.
//!
//! Warnings are values: what was seen, and advice that takes into account what was tried. Their words are made in
//! `words/warning.rs`. A false alarm costs trust, so each says here when it stays silent.

use assay_record::{Place, Status};
use serde::Serialize;

use crate::findings::arithmetic::sum;
use crate::findings::outage::OutageFindings;
use crate::findings::stage::StageFindings;

/// Something the reader should know. `stage` counts from 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Warning {
    /// The run did not do all it was to do: interrupted, failed, or killed (`running`).
    EndedEarly {
        /// How it ended.
        status: Status,
    },
    /// No transaction finished in this stage.
    NoTransactions {
        /// Which.
        stage: usize,
    },
    /// Too few transactions for the highest quantiles.
    TooShort {
        /// Which.
        stage: usize,
        /// Those that finished.
        transactions: u64,
        /// As many as p99.9 needs.
        transactions_needed: u64,
    },
    /// Transactions were given up: what they would have taken is in no latency.
    Failures {
        /// Over all stages.
        failed: u64,
        /// Share of those that finished or were given up, 0 … 1.
        share: f64,
    },
    /// No transaction finished for some time, although there was work: see `throughput.outages`.
    Outage {
        /// Which.
        stage: usize,
        /// How often.
        times: u64,
        /// The longest.
        longest: OutageFindings,
        /// All of them together.
        length_ns: u64,
        /// Of the measured time, 0 … 1.
        share: f64,
    },
    /// The latencies are too low: what had none, or was not even begun because of an outage, would have had high ones.
    LowerBounds {
        /// Which.
        stage: usize,
        /// Transactions that had not finished when the grace period was over; 0: a closed loop began none in an outage.
        unfinished: u64,
    },
    /// Transactions were retried after the answer to a commit was lost.
    InDoubt {
        /// Over all stages.
        retries: u64,
    },
    /// The server did not keep up with an open loop's rate.
    Overload {
        /// Which.
        stage: usize,
        /// Transactions due.
        due: u64,
        /// Those dropped, or not even begun when the stage ended.
        undone: u64,
        /// How long half of the others waited for a session; `None` in records that do not know.
        wait_p50_ns: Option<u64>,
        /// How long they took then.
        service_p50_ns: Option<u64>,
    },
    /// A worker of the generator had hardly any time left: the server could perhaps have done more.
    GeneratorBusy {
        /// Which.
        stage: usize,
        /// Share of the time the busiest worker was not asleep, 0 … 1.
        busiest_worker: f64,
        /// What to do.
        advice: Advice,
    },
    /// A worker of the generator waited for a CPU for much of the time: what it waited is in the response times.
    GeneratorStarved {
        /// Which.
        stage: usize,
        /// Share of the time that the worker waited which waited longest, 0 … 1.
        waited_for_cpu: f64,
        /// What to do.
        advice: Advice,
    },
    /// The generator was late by an amount that shows in the response times.
    GeneratorLate {
        /// Which.
        stage: usize,
        /// p99 of lag; the largest where there are too few values to tell it.
        lag_ns: u64,
        /// p50 of response, for comparison.
        response_p50_ns: u64,
        /// What to do.
        advice: Advice,
    },
    /// Latencies above one hour, known only by count, sum and maximum.
    OverRange {
        /// Which.
        stage: usize,
        /// How many.
        count: u64,
    },
}

impl Warning {
    /// It comes before every figure: without it they would be misread.
    pub(crate) fn is_headline(&self) -> bool {
        matches!(self, Warning::Outage { .. } | Warning::Overload { .. })
    }

    /// The stage that it is about; `None`: the whole run.
    pub(crate) fn stage(&self) -> Option<usize> {
        match self {
            Warning::NoTransactions { stage }
            | Warning::TooShort { stage, .. }
            | Warning::Outage { stage, .. }
            | Warning::LowerBounds { stage, .. }
            | Warning::Overload { stage, .. }
            | Warning::GeneratorBusy { stage, .. }
            | Warning::GeneratorStarved { stage, .. }
            | Warning::GeneratorLate { stage, .. }
            | Warning::OverRange { stage, .. } => Some(*stage),
            Warning::EndedEarly { .. } | Warning::Failures { .. } | Warning::InDoubt { .. } => None,
        }
    }

    /// The generator itself may be what was measured.
    pub fn is_of_generator(&self) -> bool {
        use Warning::{GeneratorBusy, GeneratorLate, GeneratorStarved};
        matches!(self, GeneratorBusy { .. } | GeneratorStarved { .. } | GeneratorLate { .. })
    }
}

/// What to do about a generator in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Advice {
    /// Not all CPUs have a worker.
    AddWorkers {
        /// There were.
        workers: u32,
        /// There could be.
        useful: u32,
    },
    /// Server and generator compete for the same CPUs.
    SeparateFromServer,
    /// The generator uses the whole machine.
    LargerMachine,
    /// Every CPU has a worker, and there is CPU left: something else held the workers up.
    QuietMachine,
}

/// What p99.9 needs.
const TRANSACTIONS_NEEDED: u64 = 1000;
/// A worker this busy has queues: at 90 % a random arrival waits nine times its own service time (M/M/1).
const BUSY: f64 = 0.9;
/// Answers wait as long as their worker does: a worker that waited this share of the time makes response times longer
/// by up to a quarter.
const STARVED: f64 = 0.2;
/// Lag matters from this share of the median response time.
const LATE: f64 = 0.2;
/// Lag below this is what waking up costs on any machine.
const LATE_NS: u64 = 100_000;
/// Shorter waits for a session say nothing of the server.
const WAIT_MIN_NS: u64 = 1_000_000;
/// CPU time below this share of a busy worker's time means it waited for a CPU rather than used it.
const COMPUTING: f64 = 0.7;
/// Outages of this share of the measured time would show in p99, if a closed loop did not hide them.
const HIDDEN: f64 = 0.01;

/// What warnings are found in: a run, as far as its findings are made by then.
pub(crate) struct Observed<'a> {
    pub(crate) status: Status,
    pub(crate) stages: &'a [StageFindings],
    /// Where each server ran.
    pub(crate) places: &'a [Place],
    /// Of the generator's machine.
    pub(crate) cpus: u32,
}

pub(crate) fn warnings(run: &Observed) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if run.status != Status::Complete {
        warnings.push(Warning::EndedEarly { status: run.status });
    }
    for (number, stage) in run.stages.iter().enumerate() {
        let of_stage = [
            amount(number, stage),
            outage(number, stage),
            overload(number, stage),
            lower_bounds(number, stage),
            over_range(number, stage),
        ];
        warnings.extend(of_stage.into_iter().flatten());
        warnings.extend(generator(number, stage, run));
    }
    let failed = sum(run.stages.iter().map(|stage| stage.total.failed));
    if failed > 0 {
        let done: f64 = run.stages.iter().map(|stage| stage.total.transactions as f64).sum();
        warnings.push(Warning::Failures { failed, share: failed as f64 / (done + failed as f64) });
    }
    let retries = sum(run.stages.iter().map(|stage| stage.total.retries_in_doubt));
    if retries > 0 {
        warnings.push(Warning::InDoubt { retries });
    }
    warnings
}

fn amount(stage: usize, findings: &StageFindings) -> Option<Warning> {
    match findings.total.transactions {
        0 => Some(Warning::NoTransactions { stage }),
        transactions if transactions < TRANSACTIONS_NEEDED => {
            Some(Warning::TooShort { stage, transactions, transactions_needed: TRANSACTIONS_NEEDED })
        }
        _ => None,
    }
}

fn outage(stage: usize, findings: &StageFindings) -> Option<Warning> {
    let outages = &findings.throughput.outages;
    // The first of the longest.
    let longest = *outages.iter().rev().max_by_key(|outage| outage.length_ns)?;
    let length_ns = sum(outages.iter().map(|outage| outage.length_ns));
    let share = (length_ns as f64 / findings.measured_ns as f64).min(1.0);
    Some(Warning::Outage { stage, times: outages.len() as u64, longest, length_ns, share })
}

/// A closed loop begins nothing during an outage.
fn lower_bounds(stage: usize, findings: &StageFindings) -> Option<Warning> {
    let is_closed = findings.open.is_none() && findings.queue.is_none();
    let hides =
        outage(stage, findings).is_some_and(|found| matches!(found, Warning::Outage { share, .. } if share >= HIDDEN));
    let unfinished = findings.total.unfinished;
    (unfinished > 0 || is_closed && hides).then_some(Warning::LowerBounds { stage, unfinished })
}

/// Whether the stage's latencies are too low.
pub(crate) fn has_lower_bounds(findings: &StageFindings) -> bool {
    lower_bounds(0, findings).is_some() || is_undone(findings)
}

/// A few that became due just before the end are unstarted in every open loop.
fn is_undone(findings: &StageFindings) -> bool {
    findings.open.is_some_and(|open| open.dropped.saturating_add(open.unstarted) > open.due / 100)
}

/// The whole run is judged, not only its end: half of all transactions waited longer for a session than the server then
/// took, or many were not done at all. What an outage at the end left undone is no fault of the rate.
fn overload(stage: usize, findings: &StageFindings) -> Option<Warning> {
    let open = findings.open?;
    let (wait, service) = (findings.total.wait.p50_ns, findings.total.service.p50_ns);
    let is_queueing = wait.zip(service).is_some_and(|(wait, service)| wait >= service.max(WAIT_MIN_NS));
    let is_cut_short = findings.throughput.outages.last().is_some_and(|outage| outage.to_end) && wait.is_some();
    (is_queueing || is_undone(findings) && !is_cut_short).then_some(Warning::Overload {
        stage,
        due: open.due,
        undone: open.dropped.saturating_add(open.unstarted),
        wait_p50_ns: wait,
        service_p50_ns: service,
    })
}

fn over_range(stage: usize, findings: &StageFindings) -> Option<Warning> {
    let total = &findings.total;
    let count = total.response.over.max(total.service.over).max(total.lag.over);
    (count > 0).then_some(Warning::OverRange { stage, count })
}

/// Silent when the database runs inside this process: then the generator's time is the database's.
fn generator(stage: usize, findings: &StageFindings, run: &Observed) -> Option<Warning> {
    let is = |place| run.places.contains(&place);
    if is(Place::Embedded) || findings.total.transactions == 0 {
        return None;
    }
    let generator = findings.generator?;
    if let Some(waited_for_cpu) = generator.waited_for_cpu.filter(|waited| *waited >= STARVED) {
        // More workers would wait for the same CPUs.
        let advice = if is(Place::Local) {
            Advice::SeparateFromServer
        } else if generator.cpu_share_of_machine >= COMPUTING {
            Advice::LargerMachine
        } else {
            Advice::QuietMachine
        };
        return Some(Warning::GeneratorStarved { stage, waited_for_cpu, advice });
    }
    let computing = generator.cpu_share_of_workers >= COMPUTING;
    // A worker without a session does nothing.
    let useful = run.cpus.min(findings.sessions);
    let advice = if generator.workers < useful && (computing || !is(Place::Local)) {
        Advice::AddWorkers { workers: generator.workers, useful }
    } else if is(Place::Local) {
        Advice::SeparateFromServer
    } else if computing {
        Advice::LargerMachine
    } else {
        Advice::QuietMachine
    };
    if generator.busiest_worker >= BUSY {
        return Some(Warning::GeneratorBusy { stage, busiest_worker: generator.busiest_worker, advice });
    }
    // One of a few that was late is chance, unless the rate could not be kept: then the generator may have hardly got a
    // CPU.
    let lag = &findings.total.lag;
    let largest = || lag.max_ns.filter(|_| is_undone(findings));
    let (lag_ns, response_p50_ns) = (lag.p99_ns.or_else(largest)?, findings.total.response.p50_ns?);
    (lag_ns >= LATE_NS && lag_ns as f64 >= LATE * response_p50_ns as f64).then_some(Warning::GeneratorLate {
        stage,
        lag_ns,
        response_p50_ns,
        advice,
    })
}
