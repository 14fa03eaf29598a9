//! Warnings: what to know before trusting a number.
//!
//! Warnings are values: an observation, and advice that takes into account what was tried. Their texts are in
//! `words/warning.rs`. A false alarm costs trust, so each one documents here when it is not raised.

use std::collections::BTreeMap;

use assay_record::{OptionValue, Place, Record, Status};
use serde::Serialize;

use crate::findings::arithmetic::sum;
use crate::findings::outage::OutageFindings;
use crate::findings::stage::StageFindings;

/// Something the reader should know. `stage` counts from 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Warning {
    /// The run is incomplete: interrupted, failed, or killed (`running`).
    EndedEarly {
        /// Outcome of the run.
        status: Status,
    },
    /// Lines of the record could not be read, or intervals are missing in it.
    DamagedRecord {
        /// Lines of the file that are not events, counted from 1.
        lines: Vec<u64>,
        /// Parts of stages without an interval.
        missing: Vec<MissingPart>,
    },
    /// The trial is also in other files, which were given, too: it counts once.
    Copies {
        /// Their paths.
        files: Vec<String>,
    },
    /// The tables do not have the requested size: transactions left out a part of them, or looked for rows that
    /// do not exist.
    OtherSize {
        /// The option.
        option: String,
        /// Requested value.
        asked: OptionValue,
        /// Value found in the tables.
        actual: OptionValue,
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
        /// Transactions that finished.
        transactions: u64,
        /// The number needed for p99.9.
        transactions_needed: u64,
    },
    /// Transactions were given up: their durations are in no latency.
    Failures {
        /// Over all stages.
        failed: u64,
        /// Share of those that succeeded or were given up, 0 … 1.
        share: f64,
    },
    /// No transaction finished for some time, although there was work: see `outages`.
    Outage {
        /// Which.
        stage: usize,
        /// Index into the targets: on this one of several servers, while others answered. `None`: no server answered.
        target: Option<u32>,
        /// How often.
        times: u64,
        /// The longest.
        longest: OutageFindings,
        /// All of them together.
        length_ns: u64,
        /// Share of the measured time, 0 … 1.
        share: f64,
    },
    /// The latencies are too low: transactions that have none, or were not even started because of an outage, would
    /// have had high ones.
    LowerBounds {
        /// Which.
        stage: usize,
        /// Transactions that had not finished when the grace period was over; 0: a closed loop that started none in an
        /// outage.
        unfinished: u64,
    },
    /// Transactions were retried, or failed, after the answer to a commit was lost.
    InDoubt {
        /// Retries over all stages.
        retries: u64,
        /// Failed transactions over all stages.
        failed: u64,
    },
    /// The server did not know statements that had been prepared: a pooler gave sessions other connections.
    StatementsLost {
        /// Errors that said so, over all stages.
        errors: u64,
    },
    /// The server did not keep up with an open loop's rate.
    Overload {
        /// Which.
        stage: usize,
        /// Transactions due.
        due: u64,
        /// Transactions dropped, or not started by the end of the stage.
        undone: u64,
        /// Median wait of the others for a session; `None` in records that do not have it.
        wait_p50_ns: Option<u64>,
        /// Their median duration after that.
        service_p50_ns: Option<u64>,
    },
    /// A worker of the generator was almost always busy: the server might have done more.
    GeneratorBusy {
        /// Which.
        stage: usize,
        /// Share of the time the busiest worker was not asleep, 0 … 1.
        busiest_worker: f64,
        /// Advice.
        advice: Advice,
    },
    /// A worker of the generator waited for a CPU for much of the time: that wait is part of the response times.
    GeneratorStarved {
        /// Which.
        stage: usize,
        /// Share of the time that the worker with the longest wait waited for a CPU.
        waited_for_cpu: f64,
        /// Advice.
        advice: Advice,
    },
    /// The generator was late enough to affect the response times.
    GeneratorLate {
        /// Which.
        stage: usize,
        /// p99 of lag; the maximum if there are too few values.
        lag_ns: u64,
        /// p50 of response, for comparison.
        response_p50_ns: u64,
        /// Advice.
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
    /// The advice if the generator was starved of CPU or late; `None`: the warning is about something else.
    pub fn delay_advice(&self) -> Option<&Advice> {
        match self {
            Warning::GeneratorStarved { advice, .. } | Warning::GeneratorLate { advice, .. } => Some(advice),
            _ => None,
        }
    }

    /// Whether it comes directly after the answer, which would be misleading without it.
    pub(crate) fn is_headline(&self) -> bool {
        matches!(
            self,
            Warning::Outage { .. }
                | Warning::Overload { .. }
                | Warning::EndedEarly { .. }
                | Warning::DamagedRecord { .. }
                | Warning::OtherSize { .. }
                | Warning::NoTransactions { .. }
        )
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
            Warning::EndedEarly { .. }
            | Warning::DamagedRecord { .. }
            | Warning::Copies { .. }
            | Warning::OtherSize { .. }
            | Warning::Failures { .. }
            | Warning::InDoubt { .. }
            | Warning::StatementsLost { .. } => None,
        }
    }

    /// Whether the generator itself may have been the limit.
    pub fn is_of_generator(&self) -> bool {
        self.advice_on_generator().is_some()
    }

    /// Advice about the generator, which may have been the limit; `None`: the warning is about something else.
    pub fn advice_on_generator(&self) -> Option<Advice> {
        use Warning::{GeneratorBusy, GeneratorLate, GeneratorStarved};
        match self {
            GeneratorBusy { advice, .. } | GeneratorStarved { advice, .. } | GeneratorLate { advice, .. } => {
                Some(*advice)
            }
            _ => None,
        }
    }
}

/// A part of a stage of which the record has nothing, though the stage has intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MissingPart {
    /// Which stage, from 0.
    pub stage: usize,
    /// Its beginning, since the start of the measured part.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
}

/// Intervals follow each other to the nanosecond; a reader should not depend on that.
const MISSING_MIN_NS: u64 = 1_000_000;

/// What is missing in a record, if anything is.
pub(crate) fn damage(record: &Record) -> Option<Warning> {
    let mut missing = Vec::new();
    for (stage, intervals) in record.stages.iter().map(|stage| &stage.intervals).enumerate() {
        let mut end_ns = 0u64;
        for interval in intervals {
            if interval.start_ns > end_ns.saturating_add(MISSING_MIN_NS) {
                missing.push(MissingPart { stage, start_ns: end_ns, end_ns: interval.start_ns });
            }
            end_ns = end_ns.max(interval.start_ns.saturating_add(interval.length_ns));
        }
    }
    let lines = record.damaged_lines.clone();
    (!lines.is_empty() || !missing.is_empty()).then_some(Warning::DamagedRecord { lines, missing })
}

/// Advice about a generator that limits itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Advice {
    /// Not all CPUs have a worker.
    AddWorkers {
        /// Number of workers.
        workers: u32,
        /// Possible number of workers.
        useful: u32,
    },
    /// Server and generator compete for the same CPUs.
    SeparateFromServer,
    /// The generator uses the whole machine.
    LargerMachine,
    /// Every CPU has a worker, and there is CPU time left: something else delayed the workers.
    QuietMachine,
}

/// SQLSTATE invalid_sql_statement_name, and ER_UNKNOWN_STMT_HANDLER.
const UNKNOWN_STATEMENT: [&str; 2] = ["26000", "1243"];
/// Values needed for p99.9.
const TRANSACTIONS_NEEDED: u64 = 1000;
/// A worker this busy has queues: at 90 % a random arrival waits nine times its own service time (M/M/1).
const BUSY: f64 = 0.9;
/// Answers wait as long as their worker does: with this share of waiting, response times are longer by up to a quarter.
const STARVED: f64 = 0.2;
/// Lag matters from this share of the median response time on.
const LATE: f64 = 0.2;
/// Lag below this is the cost of waking up on any machine.
const LATE_NS: u64 = 100_000;
/// Shorter waits for a session say nothing about the server.
const WAIT_MIN_NS: u64 = 1_000_000;
/// CPU time below this share of a busy worker's time means that it waited for a CPU instead of using it.
const COMPUTING: f64 = 0.7;
/// A server that was out no longer than that before and after all of them were has no outage of its own.
const ALONE_NS: u64 = 1_000_000_000;
/// Outages of this share of the measured time would show in p99, if a closed loop did not hide them.
const HIDDEN: f64 = 0.01;

/// Input of warnings: a run, as far as its findings exist by then.
pub(crate) struct Observed<'a> {
    pub(crate) status: Status,
    pub(crate) stages: &'a [StageFindings],
    /// Where each server ran.
    pub(crate) places: &'a [Place],
    /// CPUs of the generator's machine.
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
            outage_of_all(number, stage),
            overload(number, stage),
            lower_bounds(number, stage),
            over_range(number, stage),
        ];
        warnings.extend(of_stage.into_iter().flatten());
        warnings.extend(outages_of_single(number, stage));
        warnings.extend(generator(number, stage, run));
    }
    let failed = sum(run.stages.iter().map(|stage| stage.total.failed));
    if failed > 0 {
        let done: f64 = run.stages.iter().map(|stage| stage.total.transactions as f64).sum();
        warnings.push(Warning::Failures { failed, share: failed as f64 / (done + failed as f64) });
    }
    let retries = sum(run.stages.iter().map(|stage| stage.total.retries_in_doubt.unwrap_or(0)));
    let failed = sum(run.stages.iter().map(|stage| stage.total.failed_in_doubt.unwrap_or(0)));
    if retries + failed > 0 {
        warnings.push(Warning::InDoubt { retries, failed });
    }
    let unknown = run.stages.iter().flat_map(|stage| &stage.total.errors_by_kind);
    let errors = sum(unknown.filter(|error| UNKNOWN_STATEMENT.contains(&&*error.code)).map(|error| error.count));
    if errors > 0 {
        warnings.push(Warning::StatementsLost { errors });
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

fn outage_of_all(stage: usize, findings: &StageFindings) -> Option<Warning> {
    outage(stage, None, &findings.throughput.outages, findings.measured_ns)
}

/// Outages of single servers: those that were out alone, or longer than all of them together.
fn outages_of_single(stage: usize, findings: &StageFindings) -> Vec<Warning> {
    let together = &findings.throughput.outages;
    let is_alone = |one: &OutageFindings| {
        let meets = |all: &&OutageFindings| all.start_ns < one.end_ns() && one.start_ns < all.end_ns();
        let with_all = sum(together.iter().filter(meets).map(|all| all.length_ns));
        one.length_ns >= with_all.saturating_add(ALONE_NS)
    };
    let mut by_target: BTreeMap<Option<u32>, Vec<OutageFindings>> = BTreeMap::new();
    for one in findings.outages.iter().filter(|one| one.target.is_some() && is_alone(&one.outage)) {
        by_target.entry(one.target).or_default().push(one.outage);
    }
    let of =
        |(target, outages): (&Option<u32>, &Vec<OutageFindings>)| outage(stage, *target, outages, findings.measured_ns);
    by_target.iter().filter_map(of).collect()
}

fn outage(stage: usize, target: Option<u32>, outages: &[OutageFindings], measured_ns: u64) -> Option<Warning> {
    // The first of the longest.
    let longest = *outages.iter().rev().max_by_key(|outage| outage.length_ns)?;
    let length_ns = sum(outages.iter().map(|outage| outage.length_ns));
    let share = (length_ns as f64 / measured_ns as f64).min(1.0);
    Some(Warning::Outage { stage, target, times: outages.len() as u64, longest, length_ns, share })
}

/// A closed loop starts nothing during an outage.
fn lower_bounds(stage: usize, findings: &StageFindings) -> Option<Warning> {
    let is_closed = findings.open.is_none() && findings.queue.is_none();
    let hides = |found| matches!(found, Warning::Outage { share, .. } if share >= HIDDEN);
    let hides = outage_of_all(stage, findings).is_some_and(hides);
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

/// The whole run is judged, not only its end: half of all transactions waited for a session longer than the server then
/// took, or many were not done at all. What an outage at the end left undone is not the rate's fault.
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

/// Not raised if the database runs inside this process: then the generator's time is the database's.
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
    // A single late one of a few is chance, unless the rate could not be kept: then the generator may have had hardly
    // any CPU time.
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
