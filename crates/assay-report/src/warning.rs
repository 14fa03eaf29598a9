//! What a reader should know before believing a number.
//!
//! Warnings are values: what was seen, and advice that takes into account what was tried. Their words are made in
//! `text`. A false alarm costs trust, so each says here when it stays silent.

use assay_record::{Place, Status};
use serde::Serialize;

use crate::findings::{Findings, StageFindings};

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
    /// Nothing finished during whole intervals, although there was work.
    Standstill {
        /// Which.
        stage: usize,
        /// How many intervals.
        intervals: u64,
        /// Start of the first.
        start_ns: u64,
        /// All of them together.
        length_ns: u64,
    },
    /// The server did not keep up with an open loop's rate.
    Overload {
        /// Which.
        stage: usize,
        /// Transactions due.
        due: u64,
        /// Those dropped, or not even begun when the stage ended.
        undone: u64,
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
/// Answers wait as long as their worker does: a worker that waited this share of the time makes response times longer by up to
/// a quarter.
const STARVED: f64 = 0.2;
/// Lag matters from this share of the median response time.
const LATE: f64 = 0.2;
/// Lag below this is what waking up costs on any machine.
const LATE_NS: u64 = 100_000;
/// CPU time below this share of a busy worker's time means it waited for a CPU rather than used it.
const COMPUTING: f64 = 0.7;
/// A standstill is told only where so many transactions could be expected in an interval.
const EXPECTED_PER_INTERVAL: f64 = 10.0;

pub(crate) fn warnings(findings: &Findings) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if findings.status != Status::Complete {
        warnings.push(Warning::EndedEarly { status: findings.status });
    }
    for (number, stage) in findings.stages.iter().enumerate() {
        let of_stage =
            [amount(number, stage), standstill(number, stage), overload(number, stage), over_range(number, stage)];
        warnings.extend(of_stage.into_iter().flatten());
        warnings.extend(generator(number, stage, findings));
    }
    let failed = crate::findings::sum(findings.stages.iter().map(|stage| stage.total.failed));
    if failed > 0 {
        let done: f64 = findings.stages.iter().map(|stage| stage.total.transactions as f64).sum();
        warnings.push(Warning::Failures { failed, share: failed as f64 / (done + failed as f64) });
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

/// The last interval may be short, and is not looked at.
fn standstill(stage: usize, findings: &StageFindings) -> Option<Warning> {
    let (_, intervals) = findings.intervals.split_last()?;
    let length = |interval: &crate::IntervalFindings| interval.end_ns - interval.start_ns;
    let still: Vec<_> = intervals
        .iter()
        .filter(|interval| interval.transactions == 0)
        .filter(|interval| findings.total.tps * length(interval) as f64 / 1e9 >= EXPECTED_PER_INTERVAL)
        .collect();
    let length_ns = crate::findings::sum(still.iter().map(|interval| length(interval)));
    let first = still.first()?;
    Some(Warning::Standstill { stage, intervals: still.len() as u64, start_ns: first.start_ns, length_ns })
}

/// A few that became due just before the end are unstarted in every open loop.
fn overload(stage: usize, findings: &StageFindings) -> Option<Warning> {
    let open = findings.open?;
    let undone = open.dropped.saturating_add(open.unstarted);
    (undone > open.due / 100).then_some(Warning::Overload { stage, due: open.due, undone })
}

fn over_range(stage: usize, findings: &StageFindings) -> Option<Warning> {
    let total = &findings.total;
    let count = total.response.over.max(total.service.over).max(total.lag.over);
    (count > 0).then_some(Warning::OverRange { stage, count })
}

/// Silent when the database runs inside this process: then the generator's time is the database's.
fn generator(stage: usize, findings: &StageFindings, all: &Findings) -> Option<Warning> {
    let is = |place| all.targets.iter().any(|target| target.place == place);
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
    let useful = all.cpus.min(findings.sessions);
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
    // One of a few that was late is chance, unless the rate could not be kept: then the generator may have hardly got a CPU.
    let lag = &findings.total.lag;
    let largest = || lag.max_ns.filter(|_| overload(stage, findings).is_some());
    let (lag_ns, response_p50_ns) = (lag.p99_ns.or_else(largest)?, findings.total.response.p50_ns?);
    (lag_ns >= LATE_NS && lag_ns as f64 >= LATE * response_p50_ns as f64).then_some(Warning::GeneratorLate {
        stage,
        lag_ns,
        response_p50_ns,
        advice,
    })
}
