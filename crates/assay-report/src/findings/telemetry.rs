//! Telemetry of a stage: rates and levels of servers and their machine, and their cost per transaction.
//!
//! A rate divides by the actual time between two readings, and a value per transaction by the transactions that ended
//! between them. Counters that decreased were reset: that step has no value, and is marked. What sampling itself adds
//! to a counter is subtracted. A counter that did not move under a load that must move it is not a zero: it is absent.

use std::sync::Arc;

use assay_record as record;
use assay_record::{Reading, ScopeKind, Unit};
use serde::Serialize;

use crate::digits::length;
use crate::findings::arithmetic::ratio;
use crate::findings::shares::{MetricPoints, Points, Shares, shares};

/// One server or machine in a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScopeFindings {
    /// Server or machine.
    pub scope: ScopeKind,
    /// Index into the targets: the server; for a machine, the first server on it.
    pub target: u32,
    /// Every metric with a value in the stage, in the order of the record.
    pub metrics: Vec<TelemetryFindings>,
    /// Counters that did not move although the load must have moved them, or that the server publishes too late.
    pub absent: Vec<UnmovedFindings>,
    /// Of counters that are published too late: what they grew by for each commit that was published with them.
    #[serde(skip)]
    late: Vec<(String, f64)>,
    /// Mean active sessions by wait event, the most frequent first; `None`: not sampled.
    pub waits: Option<Vec<WaitFindings>>,
    /// End of each sampled step, since the start of the stage, with its sessions by event: for charts.
    #[serde(skip)]
    pub wait_points: Vec<(u64, Vec<f64>)>,
    /// Shares computed from several metrics.
    #[serde(skip)]
    pub shares: Shares,
    /// Lines that the server wrote to its log during the stage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogFindings>,
    /// Lines of the whole run that were not kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub log_left_out: u64,
    /// The server's own count of its statements in the whole run, those with the most time first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementUseFindings>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A line of a server's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogFindings {
    /// When it was seen, since the start of the stage.
    pub at_ns: u64,
    /// How bad it is, by the server's own words.
    pub severity: LogSeverity,
    /// The line.
    pub text: String,
}

/// What a line of a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogSeverity {
    /// Anything else.
    Note,
    /// Something that may become an error.
    Warning,
    /// Something failed.
    Error,
}

impl LogSeverity {
    /// PostgreSQL writes `ERROR:  `, MySQL and MariaDB `[ERROR]`.
    fn of(line: &str) -> LogSeverity {
        let is = |words: &[&str]| words.iter().any(|word| line.contains(word));
        if is(&[" ERROR:  ", " FATAL:  ", " PANIC:  ", "[ERROR]"]) {
            LogSeverity::Error
        } else if is(&[" WARNING:  ", "[Warning]"]) {
            LogSeverity::Warning
        } else {
            LogSeverity::Note
        }
    }
}

/// What a server counted for one statement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatementUseFindings {
    /// Its text, with placeholders.
    pub text: String,
    /// Executions.
    pub calls: u64,
    /// Their time, of that of all statements that are shown.
    pub share: f64,
    /// Mean time of an execution.
    pub mean_us: f64,
    /// Rows per execution.
    pub rows_per_call: f64,
    /// Pages read per execution, that were not in the cache; `None`: not counted.
    pub page_reads_per_call: Option<f64>,
    /// Rows read per execution; `None`: not counted.
    pub read_rows_per_call: Option<f64>,
    /// Their bytes before compression; `None`: not counted.
    pub read_bytes_per_call: Option<f64>,
    /// The most memory of one execution, in bytes; `None`: not counted.
    pub memory_bytes_max: Option<u64>,
    /// Failed executions, which are not among the others; `None`: not counted.
    pub failures: Option<u64>,
}

fn uses(all: &[record::StatementUse]) -> Vec<StatementUseFindings> {
    let total: u64 = all.iter().map(|one| one.time_us).sum();
    let of = |one: &record::StatementUse| {
        let per_call = |value: u64| ratio(value as f64, one.calls as f64).unwrap_or(0.0);
        StatementUseFindings {
            text: one.text.clone(),
            calls: one.calls,
            share: ratio(one.time_us as f64, total as f64).unwrap_or(0.0),
            mean_us: per_call(one.time_us),
            rows_per_call: per_call(one.rows),
            page_reads_per_call: one.page_reads.map(per_call),
            read_rows_per_call: one.read_rows.map(per_call),
            read_bytes_per_call: one.read_bytes.map(per_call),
            memory_bytes_max: one.memory_bytes_max,
            failures: one.failures,
        }
    };
    all.iter().map(of).collect()
}

/// One metric in a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TelemetryFindings {
    /// Its name.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Counters have rates, gauges have levels.
    pub reading: Reading,
    /// Its source.
    pub source: String,
    /// Counter: increase per second.
    pub per_s: Option<f64>,
    /// The part per second that sampling itself added, which `per_s` excludes. `None`: nothing, or unknown.
    pub own_per_s: Option<f64>,
    /// The values include what sampling itself added, to an unknown extent.
    pub includes_own: bool,
    /// Counter: increase per successful transaction.
    pub per_transaction: Option<f64>,
    /// Its 95 % interval: the lower end. `None`: the stage is too short, or its seconds are too strongly correlated.
    pub per_transaction_low: Option<f64>,
    /// The upper end.
    pub per_transaction_high: Option<f64>,
    /// Gauge: mean.
    pub mean: Option<f64>,
    /// Gauge: maximum.
    pub max: Option<f64>,
    /// Gauge: value at the end of the stage.
    pub last: Option<f64>,
    /// When the counter was reset, since the start of the stage: a restart, or a reset.
    pub resets_ns: Vec<u64>,
    /// Rates of a counter, levels of a gauge: for charts.
    #[serde(skip)]
    pub points: Points,
}

/// A counter that did not move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnmovedFindings {
    /// Its name.
    pub metric: String,
    /// Why it is not a zero.
    pub reason: String,
}

/// A wait event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitFindings {
    /// The server's name for it; `CPU` for sessions that wait for nothing.
    pub event: String,
    /// Sessions in it, averaged over the observations.
    pub sessions: f64,
    /// Share of all active sessions seen, 0 … 1.
    pub share: f64,
}

/// The cost of sampling a run, and what could not be read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SamplingFindings {
    /// Whether reports show all metrics.
    pub full: bool,
    /// CPU time used for sampling, divided by the time of the stages: 0.01 is 1 % of a CPU.
    pub cpu_share: f64,
    /// Share of the CPU time of local servers that was spent on sampling; `None`: unknown.
    pub server_cpu_share: Option<f64>,
    /// Statements per second sent to servers.
    pub statements_per_s: f64,
    /// Mean time until one was answered.
    pub statement_ns: Option<f64>,
    /// Changes made to servers for sampling.
    pub interventions: Vec<record::Intervention>,
    /// How the servers executed the load's statements.
    pub plans: Vec<record::StatementPlans>,
    /// Unavailable metrics, by scope, and why.
    pub absent: Vec<AbsentFindings>,
}

/// A metric that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AbsentFindings {
    /// Its scope.
    pub scope: ScopeKind,
    /// Which server.
    pub target: u32,
    /// Its name.
    pub metric: String,
    /// Why.
    pub reason: String,
}

impl ScopeFindings {
    /// A counter that is published late, per commit that was published with it.
    pub(crate) fn per_commit(&self, metric: &str) -> Option<f64> {
        self.late.iter().find(|(name, _)| name == metric).map(|(_, value)| *value)
    }

    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<&TelemetryFindings> {
        self.metrics.iter().find(|one| one.metric == name)
    }
}

impl TelemetryFindings {
    fn for_shares(&self) -> MetricPoints<'_> {
        MetricPoints { per_s: self.per_s, mean: self.mean, max: self.max, points: &self.points }
    }

    /// The value and the name for comparisons: a counter per transaction, a gauge by its mean.
    pub(crate) fn compared(&self) -> (String, Option<f64>) {
        match self.reading {
            Reading::Counter => (format!("{}_per_transaction", self.metric), self.per_transaction),
            Reading::Gauge => (self.metric.clone(), self.mean),
        }
    }
}

/// The cost of a run's samples.
pub(crate) fn sampling(telemetry: &record::Telemetry, stages: &[record::Stage]) -> SamplingFindings {
    let seconds = stages.iter().map(|stage| stage.measured_ns as f64).sum::<f64>() / 1e9;
    let record::Cost { cpu_ns, server_cpu_ns, statements, statements_ns } = telemetry.cost;
    let absent = telemetry.scopes.iter().flat_map(|scope| {
        scope.absent.iter().map(|one| AbsentFindings {
            scope: scope.kind,
            target: scope.target,
            metric: one.metric.clone(),
            reason: one.reason.clone(),
        })
    });
    SamplingFindings {
        full: telemetry.full,
        cpu_share: ratio(cpu_ns as f64 / 1e9, seconds).unwrap_or(0.0),
        server_cpu_share: server_cpu_ns.and_then(|ns| ratio(ns as f64 / 1e9, seconds)),
        statements_per_s: ratio(statements as f64, seconds).unwrap_or(0.0),
        statement_ns: ratio(statements_ns as f64, statements as f64),
        interventions: telemetry.interventions.clone(),
        plans: telemetry.plans.clone(),
        absent: absent.collect(),
    }
}

/// Samples up to this long after the end of a stage still belong to it: a sampler may be late.
const SLACK_NS: u64 = 300_000_000;

/// The readings of a stage; empty if its position on the clock of the samples is unknown. `over_time`: also points, and
/// confidence intervals.
pub(crate) fn scopes(
    telemetry: &record::Telemetry,
    stage: &record::Stage,
    stages: &[record::Stage],
    over_time: bool,
) -> Vec<ScopeFindings> {
    let Some(start_ns) = stage.start_ns else { return Vec::new() };
    let next_ns = stages.iter().filter_map(|other| other.start_ns).filter(|other| *other > start_ns).min();
    let end_ns = start_ns.saturating_add(stage.measured_ns).saturating_add(SLACK_NS);
    // The first sample of the next stage does not belong to this one.
    let end_ns = next_ns.map_or(end_ns, |next| end_ns.min(next - 1));
    let done = Done::of(stage);
    let found = telemetry.scopes.iter().map(|scope| {
        // A server's work is for its own transactions, if it is known which these are.
        let own = (scope.kind == ScopeKind::Server).then(|| Done::of_target(stage, scope.target as usize)).flatten();
        let samples = Samples::of(scope, (start_ns, end_ns), own.as_ref().unwrap_or(&done));
        let mut found = scope_findings(scope, (start_ns, end_ns), &samples, over_time);
        let last_ns = samples.within.last().map_or(0, |(_, at)| since_start(*at));
        // With one target, the total is its own.
        let tally = stage.targets.get(scope.target as usize).unwrap_or(&stage.total);
        if scope.kind == ScopeKind::Server {
            found.absent = remove_unmoved(&mut found.metrics, tally, last_ns);
            remove_late(&mut found, tally, stage.measured_ns);
        }
        found.shares = shares(|name| found.metric(name).map(TelemetryFindings::for_shares));
        found
    });
    found.collect()
}

/// Work that must move a counter.
#[derive(Clone, Copy)]
enum CounterMover {
    Transactions,
    Statements,
    Writes,
}

/// Counters that a load must move, and those that say nothing if the first one does not move.
const MOVED: [(CounterMover, &[&str]); 5] = [
    (CounterMover::Transactions, &["commits"]),
    (CounterMover::Statements, &["statements"]),
    (CounterMover::Statements, &["statement_us"]),
    (CounterMover::Writes, &["log_bytes", "log_written_bytes", "log_fsyncs", "log_full_pages", "log_buffer_full"]),
    (CounterMover::Writes, &["buffer_reads", "buffer_misses", "bytes_read", "pages_written", "doublewrite_pages"]),
];

/// PostgreSQL publishes its counters up to a second late.
const LATE_NS: u64 = 3_000_000_000;

/// Removes counters that stood still although the load moved them on any server that counts. `last_ns`: of the last
/// sample, since the start of the stage.
fn remove_unmoved(metrics: &mut Vec<TelemetryFindings>, tally: &record::Tally, last_ns: u64) -> Vec<UnmovedFindings> {
    let transactions: u64 = tally.transactions.iter().map(|one| one.count).sum();
    let classes = &tally.statements;
    let writes = classes.write.count;
    let mut absent = Vec::new();
    for (mover, names) in MOVED {
        let (number, load) = match mover {
            CounterMover::Transactions => (transactions, "transactions"),
            CounterMover::Statements => (classes.read.count + writes + classes.other.count, "statements"),
            CounterMover::Writes => (writes, "writing statements"),
        };
        let stands = |one: &TelemetryFindings| one.reading == Reading::Counter && one.per_s == Some(0.0);
        if number == 0 || !metrics.iter().any(|one| one.metric == names[0] && stands(one)) {
            continue;
        }
        metrics.retain(|one| {
            let goes = names.contains(&one.metric.as_str()) && stands(one);
            if goes {
                let reason = reason(one, number, load, last_ns);
                absent.push(UnmovedFindings { metric: one.metric.clone(), reason });
            }
            !goes
        });
    }
    absent
}

fn reason(one: &TelemetryFindings, number: u64, load: &str, last_ns: u64) -> String {
    let stood = format!("{} stood still during {number} {load}", one.source);
    match one.source.as_str() {
        "Com_commit" => format!("{stood}: it counts COMMIT statements, and autocommit needs none"),
        source if is_late(source) && last_ns >= LATE_NS => {
            format!("{stood}: sessions that use no table publish it when they end")
        }
        _ if last_ns < LATE_NS => format!("{stood}: the server counts it late, or not at all"),
        _ => format!("{stood}: the server does not count this"),
    }
}

/// Views of PostgreSQL to which its sessions add what they have counted once per second, and only between transactions.
const LATE_SOURCES: [&str; 3] = ["pg_stat_database.", "pg_stat_io.", "pg_stat_wal."];
/// By how much those are late.
const LATE_BY_NS: u64 = 1_000_000_000;
/// What is missing at the end of a stage may be this share of it.
const LATE_SHARE: f64 = 0.1;
/// A session that is late with its last part may be late by the time of a transaction more; and counting has its noise.
const LATE_NOISE: f64 = 0.02;

/// Shorter stages are too short for such counters in any case.
const SKIPPED_OF: usize = 4;

/// What late counters may lack of a stage, or have too much.
fn late_share(measured_ns: u64) -> f64 {
    LATE_BY_NS as f64 / measured_ns as f64 * 1.1 + LATE_NOISE
}

fn is_late(source: &str) -> bool {
    LATE_SOURCES.iter().any(|late| source.contains(late))
}

/// Removes counters that are published too late for so short a stage, or that lack a part of what the load did:
/// sessions that use no table publish their transactions when they end.
fn remove_late(found: &mut ScopeFindings, tally: &record::Tally, measured_ns: u64) {
    if !found.metrics.iter().any(|one| is_late(&one.source)) {
        return;
    }
    let per_s = |name: &str| found.metric(name).and_then(|one| one.per_s);
    let statements = &tally.statements;
    let all = statements.read.count + statements.write.count + statements.other.count;
    let transactions: u64 = tally.transactions.iter().map(|one| one.count + one.rolled_back).sum();
    let each = |name: &str| found.metric(name).and_then(|one| one.per_transaction);
    let ended = each("commits").map(|commits| commits + each("rollbacks").unwrap_or(0.0));
    let is_short = (measured_ns as f64) * LATE_SHARE < LATE_BY_NS as f64;
    // A transaction that executes a statement is committed or rolled back at least once.
    let is_partial = all >= transactions && ended.is_some_and(|ended| ended < 1.0 - late_share(measured_ns));
    if !is_short && !is_partial {
        return ended.into_iter().for_each(|ended| complete_late(&mut found.metrics, ended, measured_ns));
    }
    if let Some(commits) = per_s("commits").filter(|commits| *commits > 0.0) {
        let of_late = |one: &TelemetryFindings| Some((one.metric.clone(), one.per_s? / commits));
        found.late = found.metrics.iter().filter(|one| is_late(&one.source)).filter_map(of_late).collect();
    }
    let why = match is_short {
        true => format!(
            "its sessions publish it up to {} late: a stage needs at least {} for it (this one: {})",
            length(LATE_BY_NS),
            length((LATE_BY_NS as f64 / LATE_SHARE) as u64),
            length(measured_ns)
        ),
        false => format!(
            "the server has published only {:.2} commits and rollbacks per transaction: sessions that use no table \
             publish them when they end",
            ended.unwrap_or(0.0)
        ),
    };
    let late: Vec<TelemetryFindings> = found.metrics.extract_if(.., |one| is_late(&one.source)).collect();
    let reason =
        |one: TelemetryFindings| UnmovedFindings { reason: format!("{}: {why}", one.source), metric: one.metric };
    found.absent.extend(late.into_iter().map(reason));
}

/// Adds what was not published yet at the end, or takes away what was published of the time before. It is known where
/// the transactions of a load are committed a whole number of times: all late counters are published together. `ended`:
/// commits and rollbacks per transaction.
fn complete_late(metrics: &mut [TelemetryFindings], ended: f64, measured_ns: u64) {
    let whole = ended.round().max(1.0);
    if (ended - whole).abs() > whole * late_share(measured_ns) {
        return;
    }
    for one in metrics.iter_mut().filter(|one| is_late(&one.source)) {
        let values = [&mut one.per_s, &mut one.per_transaction, &mut one.per_transaction_low];
        values.into_iter().chain([&mut one.per_transaction_high]).flatten().for_each(|value| *value *= whole / ended);
    }
}

/// The samples of a scope in a stage.
struct Samples {
    /// Number in the scope, and the instant since the start of the stage.
    within: Vec<(usize, i128)>,
    /// Since the previous one of these; of the first, zero.
    lengths: Vec<f64>,
    /// Transactions until then.
    ended: Vec<f64>,
}

impl Samples {
    fn of(scope: &record::Scope, (start_ns, end_ns): (u64, u64), done: &Done) -> Samples {
        let times = scope.began_ns.iter().zip(&scope.ended_ns).map(|(began, ended)| began / 2 + ended / 2);
        let within: Vec<(usize, i128)> = times
            .enumerate()
            .filter(|(_, at)| *at >= start_ns && *at <= end_ns)
            .map(|(number, at)| (number, i128::from(at) - i128::from(start_ns)))
            .collect();
        let steps = within.windows(2).map(|two| (two[1].1 - two[0].1) as f64);
        Samples {
            lengths: std::iter::once(0.0).chain(steps).collect(),
            ended: within.iter().map(|(_, at)| done.at(*at)).collect(),
            within,
        }
    }

    /// The time from one of them to a later one.
    fn between(&self, from: usize, to: usize) -> f64 {
        if from + 1 == to { self.lengths[to] } else { (self.within[to].1 - self.within[from].1) as f64 }
    }

    /// What a series has for each of them.
    fn values_of<'a>(&'a self, values: &'a [Option<u64>]) -> impl Iterator<Item = Option<u64>> + 'a {
        self.within.iter().map(|(number, _)| values.get(*number).copied().flatten())
    }
}

fn scope_findings(
    scope: &record::Scope,
    (start_ns, end_ns): (u64, u64),
    samples: &Samples,
    over_time: bool,
) -> ScopeFindings {
    let mut instants = Vec::new();
    let metrics = scope.series.iter().map(|series| series_findings(series, samples, over_time, &mut instants));
    let metrics = metrics.filter(|found| found.per_s.is_some() || found.last.is_some()).collect();
    let (waits, wait_points) = match &scope.waits {
        Some(waits) => waits_findings(waits, &samples.within, over_time),
        None => (None, Vec::new()),
    };
    let lines = scope.log.iter().filter(|line| line.at_ns >= start_ns && line.at_ns <= end_ns);
    let log = lines.map(|line| LogFindings {
        at_ns: line.at_ns - start_ns,
        severity: LogSeverity::of(&line.text),
        text: line.text.clone(),
    });
    ScopeFindings {
        scope: scope.kind,
        target: scope.target,
        metrics,
        absent: Vec::new(),
        late: Vec::new(),
        waits,
        wait_points,
        shares: Shares::default(),
        log: log.collect(),
        log_left_out: scope.log_left_out,
        statements: uses(&scope.statements),
    }
}

/// It has a rate, or a last level, if there is any value in the stage.
/// `instants`: those of other series of the scope.
fn series_findings(
    series: &record::Series,
    samples: &Samples,
    over_time: bool,
    instants: &mut Vec<Arc<[u64]>>,
) -> TelemetryFindings {
    let mut found = TelemetryFindings {
        metric: series.metric.clone(),
        unit: series.unit,
        reading: series.reading,
        source: series.source.clone(),
        per_s: None,
        own_per_s: None,
        includes_own: series.includes_own,
        per_transaction: None,
        per_transaction_low: None,
        per_transaction_high: None,
        mean: None,
        max: None,
        last: None,
        resets_ns: Vec::new(),
        points: Points::default(),
    };
    match series.reading {
        Reading::Counter => {
            counter(&mut found, series, samples, over_time, instants);
            found.own_per_s = found.own_per_s.filter(|_| !series.own.is_empty());
        }
        Reading::Gauge => gauge(&mut found, series, samples, over_time, instants),
    }
    found
}

fn since_start(at: i128) -> u64 {
    u64::try_from(at.max(0)).unwrap_or(u64::MAX)
}

fn counter(
    found: &mut TelemetryFindings,
    series: &record::Series,
    samples: &Samples,
    over_time: bool,
    instants: &mut Vec<Arc<[u64]>>,
) {
    let (mut sum, mut of_own, mut ns, mut transactions) = (0.0, 0.0, 0.0, 0.0);
    let room = if over_time { samples.within.len() } else { 0 };
    let mut pairs = Vec::with_capacity(room);
    let (mut at, mut rates) = (Vec::with_capacity(room), Vec::with_capacity(room));
    let mut before: Option<(usize, u64, u64)> = None;
    let values = samples.values_of(&series.values).zip(samples.values_of(&series.own));
    // Sessions begin with everything published: without its first step, a late counter lacks as much at the beginning
    // as at the end.
    let is_skipped = is_late(&series.source) && samples.within.len() > SKIPPED_OF;
    let from_ns = if is_skipped { i128::from(LATE_BY_NS / 2) } else { i128::MIN };
    let values = values.enumerate().filter(|(place, _)| samples.within[*place].1 >= from_ns);
    for (place, (value, own)) in values {
        let at_ns = || since_start(samples.within[place].1);
        let Some(value) = value else {
            if over_time {
                at.push(at_ns());
                rates.push(f64::NAN);
            }
            continue;
        };
        let own = own.unwrap_or(0);
        if let Some((earlier, known, known_own)) = before.replace((place, value, own)) {
            let length = samples.between(earlier, place);
            let ours = own.saturating_sub(known_own) as f64;
            // A server that publishes late may not have counted all of our part yet: only the sum is right.
            let step = value.checked_sub(known).filter(|_| length > 0.0).map(|step| step as f64 - ours);
            if value < known {
                found.resets_ns.push(at_ns());
            }
            if let Some(step) = step {
                let ended = samples.ended[place] - samples.ended[earlier];
                (sum, of_own) = (sum + step, of_own + ours);
                (ns, transactions) = (ns + length, transactions + ended);
                if over_time {
                    pairs.push((step, ended));
                }
            }
            if over_time {
                at.push(at_ns());
                rates.push(step.map_or(f64::NAN, |step| step.max(0.0) * 1e9 / length));
            }
        }
    }
    found.points = Points::at(&at, rates, instants);
    let sum: f64 = sum.max(0.0);
    found.per_s = ratio(sum * 1e9, ns);
    found.own_per_s = ratio(of_own * 1e9, ns);
    found.per_transaction = ratio(sum, transactions);
    if over_time
        && transactions > 0.0
        && let Ok(interval) = assay_stats::ratio_interval(&pairs)
    {
        (found.per_transaction_low, found.per_transaction_high) = (Some(interval.low.max(0.0)), Some(interval.high));
    }
}

fn gauge(
    found: &mut TelemetryFindings,
    series: &record::Series,
    samples: &Samples,
    over_time: bool,
    instants: &mut Vec<Arc<[u64]>>,
) {
    let values = || samples.values_of(&series.values).map(|value| value.map(|value| value as f64));
    if over_time {
        let at: Vec<u64> = samples.within.iter().map(|(_, at)| since_start(*at)).collect();
        found.points = Points::at(&at, values().map(|value| value.unwrap_or(f64::NAN)).collect(), instants);
    }
    let known: Vec<f64> = values().flatten().collect();
    found.mean = ratio(known.iter().sum(), known.len() as f64);
    found.max = known.iter().copied().reduce(f64::max);
    found.last = known.last().copied();
}

/// Nanoseconds since the start of the stage, and the sessions seen in each event.
type WaitsOverTime = Vec<(u64, Vec<f64>)>;

fn waits_findings(
    waits: &record::Waits,
    within: &[(usize, i128)],
    over_time: bool,
) -> (Option<Vec<WaitFindings>>, WaitsOverTime) {
    let looks_at = |number: usize| waits.looks.get(number).copied().unwrap_or(0);
    // The observations of a sample are between the previous one and itself: those of the first are before this stage.
    let steps: Vec<(usize, i128)> =
        within.iter().skip(1).copied().filter(|(number, _)| looks_at(*number) > 0).collect();
    let looks: f64 = steps.iter().map(|(number, _)| f64::from(looks_at(*number))).sum();
    let seen = |event: &record::WaitEvent, number: usize| f64::from(event.sessions.get(number).copied().unwrap_or(0));
    let mut events: Vec<(&record::WaitEvent, f64)> = waits
        .events
        .iter()
        .map(|event| (event, steps.iter().map(|(number, _)| seen(event, *number)).sum::<f64>()))
        .filter(|(_, sessions)| *sessions > 0.0)
        .collect();
    events.sort_by(|(one, seen), (other, of_other)| of_other.total_cmp(seen).then_with(|| one.name.cmp(&other.name)));
    let all: f64 = events.iter().map(|(_, sessions)| sessions).sum();
    let points = steps.iter().filter(|_| over_time).map(|(number, at)| {
        let sessions = events.iter().map(|(event, _)| seen(event, *number) / f64::from(looks_at(*number)));
        (since_start(*at), sessions.collect())
    });
    let points = points.collect();
    let found = events.iter().map(|(event, sessions)| WaitFindings {
        event: event.name.clone(),
        sessions: sessions / looks,
        share: sessions / all,
    });
    ((looks > 0.0).then(|| found.collect()), points)
}

/// Successful transactions up to any instant of a stage, as if they ended evenly within each interval.
struct Done {
    /// Ends of intervals since the start, and transactions until then; ascending.
    ends: Vec<(f64, f64)>,
}

impl Done {
    fn of(stage: &record::Stage) -> Done {
        Done::by(stage, |interval| interval.transactions.iter().sum())
    }

    /// Those on one of several servers; `None`: there is only one, or sessions use several of them at once and count
    /// for another one.
    fn of_target(stage: &record::Stage, target: usize) -> Option<Done> {
        let own = |interval: &record::Interval| interval.targets.get(target).map_or(0, |own| own.transactions);
        let is_known = stage.targets.len() > 1 && stage.intervals.iter().any(|interval| own(interval) > 0);
        is_known.then(|| Done::by(stage, own))
    }

    fn by(stage: &record::Stage, transactions: impl Fn(&record::Interval) -> u64) -> Done {
        let mut sum = 0.0;
        let mut ends = vec![(0.0, 0.0)];
        for interval in &stage.intervals {
            sum += transactions(interval) as f64;
            let end = interval.start_ns.saturating_add(interval.length_ns) as f64;
            if ends.last().is_some_and(|(last, _)| end > *last) {
                ends.push((end, sum));
            }
        }
        Done { ends }
    }

    fn at(&self, ns: i128) -> f64 {
        let ns = ns as f64;
        let after = self.ends.partition_point(|(end, _)| *end < ns);
        match (after.checked_sub(1).and_then(|before| self.ends.get(before)), self.ends.get(after)) {
            (Some((from, before)), Some((to, until))) => before + (until - before) * (ns - from) / (to - from),
            (Some((_, all)), None) => *all,
            (None, _) => 0.0,
        }
    }
}
