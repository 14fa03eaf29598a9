//! One stage: the work done with a number of sessions, its course over time, and the cost of the load generator.

use assay_record as record;
use assay_record::{Record, Time};
use serde::Serialize;

use crate::findings::arithmetic::{per_second, ratio, sum};
use crate::findings::audit::{self, CounterFindings, RateFindings, RuleFindings};
use crate::findings::interval::{IntervalFindings, Room, interval_with_counts};
use crate::findings::latency::all;
use crate::findings::outage::{ListedOutage, Ran, listed, outages};
use crate::findings::tally::{TallyFindings, tally_findings};
use crate::findings::telemetry::{ScopeFindings, scopes};
use crate::findings::throughput::{StageFacts, Steps, ThroughputFindings, throughput_findings, without_course};

/// The part of a stage that its figures cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WindowFindings {
    /// Since the start of the measured part. The stage's instants count from here.
    pub from_ns: u64,
    /// Its end, on the same scale. from_ns < to_ns
    pub to_ns: u64,
    /// Length of the whole stage.
    pub of_ns: u64,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageFindings {
    /// Active sessions.
    pub sessions: u32,
    /// Start of the measured part.
    pub started: Time,
    /// Length of the measured part.
    pub measured_ns: u64,
    /// The part of the stage that all figures cover; `None`: the whole stage.
    pub window: Option<WindowFindings>,
    /// Whether it has the most transactions per second of several stages.
    pub best: bool,
    /// Whether it is the step of a ladder after which throughput stops growing: no later one has `KNEE_GROWTH` more.
    /// Never the last step, after which nothing is known, and never set if the numbers of sessions do not increase.
    pub knee: bool,
    /// All targets together.
    pub total: TallyFindings,
    /// Each target, in the order of `Findings::targets`; empty if there is only one.
    pub targets: Vec<TallyFindings>,
    /// Fewest successful transactions of one session.
    pub session_transactions_min: u64,
    /// Transactions finished per session.
    pub session_transactions_mean: f64,
    /// Most successful transactions of one session.
    pub session_transactions_max: u64,
    /// The workload's named rates, in the order declared.
    pub rates: Vec<RateFindings>,
    /// The rules of the audit, in the order declared.
    pub audit: Vec<RuleFindings>,
    /// Workload counters itself.
    pub counters: Vec<CounterFindings>,
    /// Open loop only.
    pub open: Option<OpenFindings>,
    /// Terminals only.
    pub queue: Option<QueueFindings>,
    /// The load generator's own use of resources; `None` in a partial record, where it is unknown for the last stage.
    pub generator: Option<GeneratorFindings>,
    /// Throughput over time.
    pub throughput: ThroughputFindings,
    /// Every outage: of all servers, as in `throughput`, then of each of several.
    pub outages: Vec<ListedOutage>,
    /// Precision of the quantiles of `total.response`.
    pub response_intervals: LatencyIntervals,
    /// Servers and their machine.
    pub telemetry: Vec<ScopeFindings>,
    /// One per interval.
    pub intervals: Vec<IntervalFindings>,
}

/// 95 % intervals of the quantiles of response times over time: lower and upper end. `None` if the stage is too short,
/// or its seconds are too strongly correlated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LatencyIntervals {
    /// Confidence interval of the median.
    pub p50_ns: Option<(u64, u64)>,
    /// Confidence interval of p95.
    pub p95_ns: Option<(u64, u64)>,
    /// Confidence interval of p99.
    pub p99_ns: Option<(u64, u64)>,
}

/// The rate of an open loop, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OpenFindings {
    /// Transactions that should have become due per second.
    pub rate_per_s: f64,
    /// Transactions that became due.
    pub due: u64,
    /// Due transactions per second.
    pub due_per_s: f64,
    /// Dropped because of the backlog's limit.
    pub dropped: u64,
    /// Due, but not started when the stage ended.
    pub unstarted: u64,
    /// Largest backlog at any instant; in records of 0.1.0, at the end of an interval.
    pub backlog_max: u64,
}

/// Requests of the terminals of a stage, and how long they waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueFindings {
    /// Transactions that became due.
    pub due: u64,
    /// Due, but not started when the stage ended.
    pub unstarted: u64,
    /// Most that waited for a connection at any instant; in records of 0.1.0, at the end of an interval.
    pub waiting_max: u64,
}

/// The load generator's own use of resources.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GeneratorFindings {
    /// CPU time, user and system.
    pub cpu_ns: u64,
    /// CPU time per answered statement; `None` without statements.
    pub cpu_ns_per_statement: Option<f64>,
    /// CPU time per successful transaction; `None` without transactions.
    pub cpu_ns_per_transaction: Option<f64>,
    /// Share of all CPUs of the machine used by the generator, 0 … 1.
    pub cpu_share_of_machine: f64,
    /// Share of the workers' own CPUs (one per worker) used by the generator, 0 … 1.
    pub cpu_share_of_workers: f64,
    /// Share of the measured time, 0 … 1, that the busiest worker was neither asleep nor polling in vain: on a CPU, or
    /// waiting for one.
    pub busiest_worker: f64,
    /// Share of the measured time, 0 … 1, that the worker with the longest wait waited for a CPU; `None`: not known.
    pub waited_for_cpu: Option<f64>,
    /// Worker threads.
    pub workers: u32,
    /// Context switches, of both kinds, per statement.
    pub switches_per_statement: Option<f64>,
    /// Events per turn of an event loop: the size of batches.
    pub events_per_turn: Option<f64>,
    /// Largest resident set so far.
    pub memory_max_bytes: u64,
}

/// `over_time`: also what is over time, and confidence intervals.
pub(crate) fn stage_findings(
    stage: &record::Stage,
    record: &Record,
    open: Option<f64>,
    cpus: u32,
    over_time: bool,
) -> StageFindings {
    let total = tally_findings(&stage.total, stage.measured_ns);
    let ended = sum(stage.total.transactions.iter().map(audit::ended));
    let steps = Steps::of(&stage.intervals);
    // Each histogram is decoded once, and not kept: those of an hour would fill the memory.
    let response = all(stage.total.transactions.iter().map(|transaction| &transaction.response));
    let quantiles = response.quantiles(record::STAGE_QUANTILES_PPM).map(|value| value.filter(|_| over_time));
    let bounds = quantiles.map(|value| value.unwrap_or(u64::MAX));
    let shown = if over_time { &stage.intervals[..] } else { &[] };
    let (mut intervals, mut counts) = (Vec::with_capacity(shown.len()), Vec::with_capacity(shown.len()));
    let mut room = Room::default();
    for interval in shown {
        let (findings, at_most) = interval_with_counts(interval, bounds, &mut room);
        intervals.push(findings);
        counts.push(at_most);
    }
    let [p50_ns, p95_ns, p99_ns] = std::array::from_fn(|i| {
        quantiles[i]?;
        let at_most: Vec<u64> = counts.iter().map(|at_most| at_most[i]).collect();
        let seconds = steps.seconds(&stage.intervals, &at_most);
        assay_stats::quantile_interval(&response, record::STAGE_QUANTILES_PPM[i], &seconds)
    });
    let ran = Ran::during(stage, record);
    let of_all = outages(&stage.intervals, stage.measured_ns, total.service.p50_ns, ran.as_ref());
    let beside = StageFacts { outages: &of_all, due: open.map(|_| stage.total.due) };
    StageFindings {
        telemetry: record
            .telemetry
            .as_ref()
            .map_or_else(Vec::new, |telemetry| scopes(telemetry, stage, &record.stages, over_time)),
        sessions: stage.sessions,
        started: stage.started,
        measured_ns: stage.measured_ns,
        window: None,
        best: false,
        knee: false,
        targets: stage.targets.iter().map(|tally| tally_findings(tally, stage.measured_ns)).collect(),
        session_transactions_min: stage.session_transactions_min,
        session_transactions_mean: ratio(ended as f64, f64::from(stage.sessions)).unwrap_or(0.0),
        session_transactions_max: stage.session_transactions_max,
        rates: audit::rates(record, &stage.total, stage.measured_ns),
        audit: audit::rules(record, stage),
        counters: audit::counters(&record.rules, &stage.total, stage.measured_ns),
        open: open.map(|rate_per_s| OpenFindings {
            rate_per_s: stage.rate_per_s.unwrap_or(rate_per_s),
            due: stage.total.due,
            due_per_s: per_second(stage.total.due, stage.measured_ns),
            dropped: stage.total.dropped,
            unstarted: stage.total.unstarted,
            backlog_max: backlog_max(stage),
        }),
        queue: record.manifest.terminals.map(|_| QueueFindings {
            due: stage.total.due,
            unstarted: stage.total.unstarted,
            waiting_max: backlog_max(stage),
        }),
        generator: (stage.generator.workers > 0).then(|| generator_findings(stage, &total, cpus)),
        throughput: match over_time {
            true => throughput_findings(&steps, &stage.intervals, &beside),
            false => without_course(&steps, &of_all),
        },
        outages: listed(&stage.intervals, stage.measured_ns, &of_all, ran.as_ref()),
        response_intervals: LatencyIntervals { p50_ns, p95_ns, p99_ns },
        intervals,
        total,
    }
}

fn backlog_max(stage: &record::Stage) -> u64 {
    stage.intervals.iter().map(|interval| interval.backlog_max.unwrap_or(interval.backlog)).max().unwrap_or(0)
}

fn generator_findings(stage: &record::Stage, total: &TallyFindings, cpus: u32) -> GeneratorFindings {
    let (generator, measured_ns) = (&stage.generator, stage.measured_ns);
    let (statements, transactions) = (total.statements, total.transactions);
    let cpu_ns = generator.cpu_user_ns.saturating_add(generator.cpu_system_ns);
    let switches = generator.switches_involuntary.saturating_add(generator.switches_voluntary);
    let share_of = |cpus: u32| ratio(cpu_ns as f64, f64::from(cpus) * measured_ns as f64).unwrap_or(0.0);
    GeneratorFindings {
        cpu_ns,
        cpu_ns_per_statement: ratio(cpu_ns as f64, statements as f64),
        cpu_ns_per_transaction: ratio(cpu_ns as f64, transactions as f64),
        cpu_share_of_machine: share_of(cpus),
        cpu_share_of_workers: share_of(generator.workers),
        busiest_worker: f64::from(generator.busiest_worker_ppm) / 1e6,
        waited_for_cpu: generator.longest_wait_ppm.map(|ppm| f64::from(ppm) / 1e6),
        workers: generator.workers,
        switches_per_statement: ratio(switches as f64, statements as f64),
        events_per_turn: ratio(generator.events as f64, generator.turns as f64),
        memory_max_bytes: generator.memory_max_bytes,
    }
}
