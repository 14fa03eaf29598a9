//! Every number of a report is made here.
//!
//! Figures that cannot be had from what was measured are `None`, never zero: a mean of nothing, a p99.9 of few values.
//! Sums saturate, so that no file can make a report panic.

use std::collections::BTreeMap;

use assay_record as record;
use assay_record::{ByClass, EventLoop, Limit, Load, OptionValue, Place, Policy, Record, Status, Terminals, Time};
use assay_stats::Distribution;
use serde::Serialize;

use crate::audit::{self, CounterFindings, RateFindings, RuleFindings};
use crate::interval::{IntervalFindings, interval_with_counts};
use crate::throughput::{Steps, ThroughputFindings, throughput_findings};
use crate::warning::{self, Warning};

/// What a record says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// Name and version of the assay that made the record.
    pub tool: String,
    /// How the run ended.
    pub status: Status,
    /// Why it failed.
    pub failure: Option<String>,
    /// The command line that made it, without passwords.
    pub command: Vec<String>,
    /// The workload.
    pub workload: String,
    /// Its options, with the values in effect.
    pub options: BTreeMap<String, OptionValue>,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Distribution of the row numbers.
    pub distribution: Option<String>,
    /// When transactions were due.
    pub load: Load,
    /// Users who shared the sessions.
    pub terminals: Option<Terminals>,
    /// When a stage was to end.
    pub limit: Limit,
    /// Warm-up of every stage.
    pub warmup_ns: u64,
    /// Start of the run.
    pub started: Time,
    /// Its length, connects included.
    pub elapsed_ns: u64,
    /// Statements run on every new connection.
    pub session_sql: Vec<String>,
    /// Protocol-level prepared statements were used.
    pub prepared: bool,
    /// What was to be done about errors.
    pub policy: Policy,
    /// Worker threads.
    pub workers: u32,
    /// How they talked to the kernel; `None` where there were no sockets, or not known.
    pub event_loop: Option<EventLoop>,
    /// The generator's machine.
    pub host: Host,
    /// CPUs of the generator's machine.
    pub cpus: u32,
    /// The servers.
    pub targets: Vec<Target>,
    /// One per stage, in order.
    pub stages: Vec<StageFindings>,
    /// Errors over all stages, the most frequent first.
    pub errors: Vec<ErrorFindings>,
    /// What the reader should know before believing a number.
    pub warnings: Vec<Warning>,
}

/// The machine that made the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its kernel's name and release.
    pub kernel: String,
    /// Its CPU's name.
    pub cpu_model: String,
    /// Its memory.
    pub memory_bytes: u64,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Its URL, without a password.
    pub url: String,
    /// Product name; empty when it never answered.
    pub product: String,
    /// Version.
    pub version: String,
    /// TLS version and cipher.
    pub tls: Option<String>,
    /// Where it ran.
    pub place: Place,
    /// Settings that matter for performance, as it spells them.
    pub settings: BTreeMap<String, String>,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageFindings {
    /// Sessions taking transactions.
    pub sessions: u32,
    /// Start of the measured part.
    pub started: Time,
    /// Length of the measured part.
    pub measured_ns: u64,
    /// Most transactions per second of all stages; only when there are several.
    pub best: bool,
    /// The step of a ladder after which throughput stops growing: no later one has `KNEE_GROWTH` more. Not marked on the
    /// last step, after which nobody knows, nor when the numbers of sessions do not rise.
    pub knee: bool,
    /// All targets together.
    pub total: TallyFindings,
    /// Each target apart, in the order of `Findings::targets`; empty when there is only one.
    pub targets: Vec<TallyFindings>,
    /// Fewest transactions finished by one session.
    pub session_transactions_min: u64,
    /// Transactions finished per session.
    pub session_transactions_mean: f64,
    /// Most transactions finished by one session.
    pub session_transactions_max: u64,
    /// The workload's own throughputs, in the order declared.
    pub rates: Vec<RateFindings>,
    /// The rules of the audit, in the order declared.
    pub audit: Vec<RuleFindings>,
    /// What the workload counted itself.
    pub counters: Vec<CounterFindings>,
    /// Open loop only.
    pub open: Option<OpenFindings>,
    /// Terminals only.
    pub queue: Option<QueueFindings>,
    /// What the generator did to itself; `None` in a partial record, which cannot know it of its last stage.
    pub generator: Option<GeneratorFindings>,
    /// Throughput over time.
    pub throughput: ThroughputFindings,
    /// How well the quantiles of `total.response` are known.
    pub response_intervals: LatencyIntervals,
    /// One per interval.
    pub intervals: Vec<IntervalFindings>,
}

/// Intervals, at 95 %, of the quantiles of response times over time: lower and upper end. `None` when the stage is too short
/// to know, or its seconds depend on each other too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LatencyIntervals {
    /// Of the median.
    pub p50_ns: Option<(u64, u64)>,
    /// Of p95.
    pub p95_ns: Option<(u64, u64)>,
    /// Of p99.
    pub p99_ns: Option<(u64, u64)>,
}

/// Counts, rates and latencies of a stage, or of one target in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TallyFindings {
    /// Transactions finished well.
    pub transactions: u64,
    /// The same per second.
    pub tps: f64,
    /// Statements answered without error.
    pub statements: u64,
    /// The same per second.
    pub qps: f64,
    /// Statements by class.
    pub statements_by_class: ByClass<u64>,
    /// The same per second.
    pub qps_by_class: ByClass<f64>,
    /// Ended rolled back by design: not in `transactions`.
    pub rolled_back: u64,
    /// Transactions given up.
    pub failed: u64,
    /// Runs of transactions that were started over.
    pub retries: u64,
    /// Errors met, whatever became of them.
    pub errors: u64,
    /// Connections made again.
    pub reconnects: u64,
    /// Begun, but not finished when the grace period was over.
    pub unfinished: u64,
    /// Response times of all types together.
    pub response: LatencyFindings,
    /// Service times of all types together.
    pub service: LatencyFindings,
    /// Open loop and terminals: how long due transactions waited for a session to be free.
    pub wait: LatencyFindings,
    /// How late we were ourselves.
    pub lag: LatencyFindings,
    /// Service times of statements.
    pub statement_service: ByClass<LatencyFindings>,
    /// By transaction type.
    pub types: Vec<TypeFindings>,
    /// By kind, the most frequent first.
    pub errors_by_kind: Vec<ErrorFindings>,
    /// Response times for a chart of percentiles: how many nines (1 is 90 %, 2 is 99 %), and nanoseconds; both ascend.
    #[serde(skip)]
    pub response_curve: Vec<(f64, u64)>,
}

/// One transaction type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeFindings {
    /// Its name.
    pub name: String,
    /// Finished well.
    pub transactions: u64,
    /// The same per second.
    pub tps: f64,
    /// Share of all transactions that ended, rolled back by design or not: the mix. 0 … 1
    pub share: f64,
    /// Ended rolled back by design: not in `transactions`, but in the latencies.
    pub rolled_back: u64,
    /// Given up.
    pub failed: u64,
    /// Runs that were started over.
    pub retries: u64,
    /// done − due.
    pub response: LatencyFindings,
    /// done − sent.
    pub service: LatencyFindings,
}

/// Figures of a latency distribution. A quantile is `None` when not even one value can be expected above it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyFindings {
    /// Number of values.
    pub count: u64,
    /// Smallest, exact.
    pub min_ns: Option<u64>,
    /// Mean, exact.
    pub mean_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90 % were at most this.
    pub p90_ns: Option<u64>,
    /// 95 % were at most this.
    pub p95_ns: Option<u64>,
    /// 99 % were at most this.
    pub p99_ns: Option<u64>,
    /// 99.9 % were at most this.
    pub p999_ns: Option<u64>,
    /// Largest, exact.
    pub max_ns: Option<u64>,
    /// Values above one hour, known only by count, sum and maximum.
    pub over: u64,
}

/// One kind of error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorFindings {
    /// Who refused.
    pub origin: String,
    /// What kind of trouble.
    pub class: String,
    /// Errno where there is one, else SQLSTATE, else empty.
    pub code: String,
    /// Times met.
    pub count: u64,
    /// The first one's words.
    pub message: String,
}

/// An open loop's promise and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OpenFindings {
    /// Transactions that were to be due per second.
    pub rate_per_s: f64,
    /// Transactions that became due.
    pub due: u64,
    /// The same per second.
    pub due_per_s: f64,
    /// Dropped because of the bound on the backlog.
    pub dropped: u64,
    /// Due, but not begun when the stage ended.
    pub unstarted: u64,
    /// Largest backlog at the end of an interval.
    pub backlog_max: u64,
}

/// What the terminals of a stage wanted, and what they waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueFindings {
    /// Transactions that became due.
    pub due: u64,
    /// Due, but not begun when the stage ended.
    pub unstarted: u64,
    /// Most that waited for a connection at the end of an interval.
    pub waiting_max: u64,
}

/// What the generator did to itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GeneratorFindings {
    /// CPU time, user and system.
    pub cpu_ns: u64,
    /// The same per statement answered; `None` when there was none.
    pub cpu_ns_per_statement: Option<f64>,
    /// The same per transaction finished well; `None` when there was none.
    pub cpu_ns_per_transaction: Option<f64>,
    /// Share of all CPUs of the machine that we used, 0 … 1.
    pub cpu_share_of_machine: f64,
    /// Share of the workers' own CPUs (one per worker) that we used, 0 … 1.
    pub cpu_share_of_workers: f64,
    /// Share of the measured time the busiest worker was not asleep, 0 … 1: on a CPU, or waiting for one.
    pub busiest_worker: f64,
    /// Share of the measured time that the worker waited for a CPU which waited longest, 0 … 1; `None`: not known.
    pub waited_for_cpu: Option<f64>,
    /// Worker threads.
    pub workers: u32,
    /// Context switches, of both kinds, per statement.
    pub switches_per_statement: Option<f64>,
    /// Events taken per turn of an event loop: how much was batched.
    pub events_per_turn: Option<f64>,
    /// Largest resident set so far.
    pub memory_max_bytes: u64,
}

/// What `record` says.
pub fn findings(record: &Record) -> Findings {
    let open = match record.manifest.load {
        Load::Closed => None,
        Load::Open { rate_per_s, .. } => Some(rate_per_s),
    };
    let cpus = record.environment.cpus;
    let mut stages: Vec<_> = record.stages.iter().map(|stage| stage_findings(stage, record, open, cpus)).collect();
    let best = stages.iter().map(|stage| stage.total.tps).fold(0.0, f64::max);
    if let [_, _, ..] = stages[..]
        && let Some(stage) = stages.iter_mut().find(|stage| stage.total.tps > 0.0 && stage.total.tps >= best)
    {
        stage.best = true;
    }
    if let Some(knee) = knee(&stages) {
        stages[knee].knee = true;
    }
    let mut findings = Findings {
        tool: format!("{} {}", record.tool.name, record.tool.version),
        status: record.status,
        failure: record.failure.clone(),
        command: record.manifest.command.clone(),
        workload: record.manifest.workload.clone(),
        options: record.manifest.options.clone(),
        seed: record.manifest.seed,
        distribution: record.manifest.distribution.clone(),
        load: record.manifest.load,
        terminals: record.manifest.terminals,
        limit: record.manifest.limit,
        warmup_ns: record.manifest.warmup_ns,
        started: record.started,
        elapsed_ns: record.elapsed_ns,
        session_sql: record.manifest.session_sql.clone(),
        prepared: record.manifest.prepared,
        policy: record.manifest.policy.clone(),
        workers: record.manifest.workers,
        event_loop: record.manifest.event_loop.clone(),
        host: Host {
            name: record.environment.host.clone(),
            kernel: record.environment.kernel.clone(),
            cpu_model: record.environment.cpu_model.clone(),
            memory_bytes: record.environment.memory_bytes,
        },
        cpus,
        targets: targets(record),
        errors: errors_by_kind(record.stages.iter().flat_map(|stage| &stage.total.errors)),
        stages,
        warnings: Vec::new(),
    };
    findings.warnings = warning::warnings(&findings);
    findings
}

/// Throughput that grows less from a step to the best of all later ones does not grow.
const KNEE_GROWTH: f64 = 0.05;

fn knee(stages: &[StageFindings]) -> Option<usize> {
    let (_, earlier) = stages.split_last()?;
    let rising = stages.windows(2).all(|pair| pair[0].sessions < pair[1].sessions);
    let grows_after =
        |at: usize| stages[at + 1..].iter().any(|later| later.total.tps > stages[at].total.tps * (1.0 + KNEE_GROWTH));
    (0..earlier.len()).find(|at| rising && stages[*at].total.tps > 0.0 && !grows_after(*at))
}

fn targets(record: &Record) -> Vec<Target> {
    let servers = record.environment.servers.iter().cloned().chain(std::iter::repeat(record::Server::default()));
    let target = |(url, server): (&String, record::Server)| Target {
        url: url.clone(),
        product: server.product,
        version: server.version,
        tls: server.tls,
        place: server.place,
        settings: server.settings,
    };
    record.manifest.targets.iter().zip(servers).map(target).collect()
}

/// In the order of `LatencyIntervals`.
const QUANTILES_WITH_INTERVAL: [u32; 3] = [500_000, 950_000, 990_000];

fn stage_findings(stage: &record::Stage, record: &Record, open: Option<f64>, cpus: u32) -> StageFindings {
    let total = tally_findings(&stage.total, stage.measured_ns);
    let ended = sum(stage.total.transactions.iter().map(audit::ended));
    let steps = Steps::of(&stage.intervals);
    // Each histogram is decoded once, and not kept: those of an hour would fill the memory.
    let response = all(stage.total.transactions.iter().map(|transaction| &transaction.response));
    let quantiles = response.quantiles(QUANTILES_WITH_INTERVAL);
    let bounds: Vec<u64> = quantiles.into_iter().flatten().collect();
    let (intervals, counts): (Vec<_>, Vec<_>) =
        stage.intervals.iter().map(|interval| interval_with_counts(interval, &bounds)).unzip();
    let [p50_ns, p95_ns, p99_ns] = std::array::from_fn(|i| {
        quantiles[i]?;
        let at_most: Vec<u64> = counts.iter().map(|counts| sum(counts[..=i].iter().copied())).collect();
        let seconds = steps.seconds(&stage.intervals, &at_most);
        assay_stats::quantile_interval(&response, QUANTILES_WITH_INTERVAL[i], &seconds)
    });
    StageFindings {
        sessions: stage.sessions,
        started: stage.started,
        measured_ns: stage.measured_ns,
        best: false,
        knee: false,
        targets: stage.targets.iter().map(|tally| tally_findings(tally, stage.measured_ns)).collect(),
        session_transactions_min: stage.session_transactions_min,
        session_transactions_mean: ratio(ended as f64, f64::from(stage.sessions)).unwrap_or(0.0),
        session_transactions_max: stage.session_transactions_max,
        rates: audit::rates(record, &stage.total, stage.measured_ns),
        audit: audit::rules(&record.rules, &stage.total),
        counters: audit::counters(&record.rules, &stage.total, stage.measured_ns),
        open: open.map(|rate_per_s| OpenFindings {
            rate_per_s,
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
        throughput: throughput_findings(&steps, &stage.intervals),
        response_intervals: LatencyIntervals { p50_ns, p95_ns, p99_ns },
        intervals,
        total,
    }
}

fn backlog_max(stage: &record::Stage) -> u64 {
    stage.intervals.iter().map(|interval| interval.backlog).max().unwrap_or(0)
}

fn tally_findings(tally: &record::Tally, measured_ns: u64) -> TallyFindings {
    let rate = |count| per_second(count, measured_ns);
    let transactions = sum(tally.transactions.iter().map(|transaction| transaction.count));
    let ended = sum(tally.transactions.iter().map(audit::ended));
    let statements = map(&tally.statements, |class| class.count);
    let statements_all = class_sum(statements);
    let response = all(tally.transactions.iter().map(|transaction| &transaction.response));
    TallyFindings {
        transactions,
        tps: rate(transactions),
        statements: statements_all,
        qps: rate(statements_all),
        statements_by_class: statements,
        qps_by_class: map(&statements, |&count| rate(count)),
        rolled_back: sum(tally.transactions.iter().map(|transaction| transaction.rolled_back)),
        failed: sum(tally.transactions.iter().map(|transaction| transaction.failed)),
        retries: sum(tally.transactions.iter().map(|transaction| transaction.retries)),
        errors: sum(tally.errors.iter().map(|error| error.count)),
        reconnects: tally.reconnects,
        unfinished: tally.unfinished,
        response: latency_findings(&response),
        service: latency_findings(&all(tally.transactions.iter().map(|transaction| &transaction.service))),
        wait: latency_findings(&distribution(&tally.wait)),
        lag: latency_findings(&distribution(&tally.lag)),
        statement_service: map(&tally.statements, |class| latency_findings(&distribution(&class.service))),
        types: tally.transactions.iter().map(|transaction| type_findings(transaction, ended, measured_ns)).collect(),
        errors_by_kind: errors_by_kind(&tally.errors),
        response_curve: curve(&response),
    }
}

/// Twenty points to every nine, up to 99.9999 %, as far as there are enough values for them.
fn curve(response: &Distribution) -> Vec<(f64, u64)> {
    const POINTS: usize = 120;
    let nines: [f64; POINTS] = std::array::from_fn(|point| (point + 1) as f64 / 20.0);
    let values = response.quantiles(nines.map(|nines| (1e6 - 1e6 * 10f64.powf(-nines)).round() as u32));
    let points = nines.into_iter().zip(values).filter_map(|(nines, value)| Some((nines, value?)));
    response.min().map(|min| (0.0, min)).into_iter().chain(points).collect()
}

/// `ended`: transactions of all types.
fn type_findings(transaction: &record::TransactionTally, ended: u64, measured_ns: u64) -> TypeFindings {
    TypeFindings {
        name: transaction.name.clone(),
        transactions: transaction.count,
        tps: per_second(transaction.count, measured_ns),
        share: ratio(audit::ended(transaction) as f64, ended as f64).unwrap_or(0.0),
        rolled_back: transaction.rolled_back,
        failed: transaction.failed,
        retries: transaction.retries,
        response: latency_findings(&distribution(&transaction.response)),
        service: latency_findings(&distribution(&transaction.service)),
    }
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

/// The same kind of error may come from several stages; the first one's words stand for all.
fn errors_by_kind<'a>(errors: impl IntoIterator<Item = &'a record::ErrorTally>) -> Vec<ErrorFindings> {
    let mut kinds: BTreeMap<_, ErrorFindings> = BTreeMap::new();
    for error in errors {
        let code = if error.number == 0 { error.state.clone() } else { error.number.to_string() };
        let kind = kinds.entry((&error.origin, &error.class, code.clone())).or_insert_with(|| ErrorFindings {
            origin: error.origin.clone(),
            class: error.class.clone(),
            code,
            count: 0,
            message: error.message.clone(),
        });
        kind.count = kind.count.saturating_add(error.count);
    }
    let mut kinds: Vec<_> = kinds.into_values().collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
    kinds
}

pub(crate) fn distribution(latencies: &record::Latencies) -> Distribution {
    let histogram = latencies.histogram.as_ref().map(record::EncodedHistogram::decode);
    Distribution::new(histogram, latencies.over, (latencies.min_ns, latencies.max_ns), latencies.sum_ns)
}

fn all<'a>(latencies: impl Iterator<Item = &'a record::Latencies>) -> Distribution {
    latencies.fold(Distribution::default(), |mut all, one| {
        all.add(&distribution(one));
        all
    })
}

pub(crate) fn latency_findings(distribution: &Distribution) -> LatencyFindings {
    let [p50_ns, p90_ns, p95_ns, p99_ns, p999_ns] =
        distribution.quantiles([500_000, 900_000, 950_000, 990_000, 999_000]);
    LatencyFindings {
        count: distribution.count(),
        min_ns: distribution.min(),
        mean_ns: distribution.mean(),
        p50_ns,
        p90_ns,
        p95_ns,
        p99_ns,
        p999_ns,
        max_ns: distribution.max(),
        over: distribution.over(),
    }
}

/// Zero when no time passed: nothing can have been done in it.
pub(crate) fn per_second(count: u64, ns: u64) -> f64 {
    ratio(count as f64 * 1e9, ns as f64).unwrap_or(0.0)
}

fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator > 0.0).then(|| numerator / denominator)
}

pub(crate) fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

pub(crate) fn class_sum(values: ByClass<u64>) -> u64 {
    sum([values.read, values.write, values.other].into_iter())
}

pub(crate) fn map<T, U>(classes: &ByClass<T>, of: impl Fn(&T) -> U) -> ByClass<U> {
    ByClass { read: of(&classes.read), write: of(&classes.write), other: of(&classes.other) }
}
