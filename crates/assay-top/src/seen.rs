//! The part of a record that is visible at one instant.

use assay_record::{Interval, Record, ScopeKind, Stage, StatementTally, Tally, Time, TransactionTally, Waits};
use assay_report::{Chart, Findings, ScopeFindings, StageFindings};

/// Lengths of time that charts can show, in nanoseconds.
pub const WIDTHS: [u64; 6] = [30 * SECOND, 60 * SECOND, 120 * SECOND, 300 * SECOND, 900 * SECOND, 3600 * SECOND];
const SECOND: u64 = 1_000_000_000;
/// A counter's first rate needs a reading before it.
const BEFORE_NS: u64 = 1_500_000_000;

/// What is visible of a run at one instant.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The stage in progress, cut to the visible time; no stage: nothing has begun.
    pub part: Findings,
    /// The sums of that stage; `None`: not known at this instant.
    pub sums: Option<Findings>,
    /// The charts of the part; their times count from `from_ns`.
    pub charts: Vec<Chart>,
    /// Number of the stage from 0, and of all planned stages.
    pub stage: (usize, usize),
    /// Start of the visible part, since the start of the stage.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// The same instant since the start of the run.
    pub at_ns: u64,
    /// Planned length of the stage; `None`: unlimited, or limited by a number of transactions.
    pub planned_ns: Option<u64>,
}

/// When a stage began, since the start of the run.
pub fn stage_begin(record: &Record, number: usize) -> u64 {
    let Some(stage) = record.stages.get(number) else { return 0 };
    let by_time = || stage.started.unix_ms().saturating_sub(record.started.unix_ms()).saturating_mul(1_000_000);
    stage.start_ns.unwrap_or_else(by_time)
}

/// How far a record reaches, since the start of its run.
pub fn length(record: &Record) -> u64 {
    let last = record.stages.len().saturating_sub(1);
    match record.stages.last() {
        None => 0,
        Some(stage) => stage_begin(record, last).saturating_add(stage_end(record, stage)),
    }
}

fn end_of(interval: &Interval) -> u64 {
    interval.start_ns.saturating_add(interval.length_ns)
}

/// The end of a stage's measurements so far. Without a load, its readings say how far it is.
fn stage_end(record: &Record, stage: &Stage) -> u64 {
    match stage.intervals.last() {
        Some(last) => end_of(last),
        None => {
            let scopes = record.telemetry.iter().flat_map(|telemetry| &telemetry.scopes);
            let last = scopes.filter_map(|scope| scope.ended_ns.last()).max().copied().unwrap_or(0);
            last.saturating_sub(stage.start_ns.unwrap_or(0))
        }
    }
}

impl Seen {
    /// The last `width_ns` before `at_ns`, which counts from the start of the run; `None`: its end. `whole`: the stage
    /// from its start instead.
    pub fn of(record: &Record, at_ns: Option<u64>, width_ns: u64, whole: bool) -> Seen {
        let end = length(record);
        let at = at_ns.unwrap_or(end).min(end);
        let began = |number: &usize| stage_begin(record, *number) <= at;
        let number = (0..record.stages.len()).rev().find(began).unwrap_or(0);
        let planned = record.manifest.sessions.len().max(record.stages.len());
        let Some(stage) = record.stages.get(number) else {
            let part = assay_report::findings(&head_of(record));
            return Seen {
                part,
                sums: None,
                charts: Vec::new(),
                stage: (0, planned),
                from_ns: 0,
                to_ns: 0,
                at_ns: 0,
                planned_ns: record.manifest.limit.time_ns,
            };
        };
        let begin = stage_begin(record, number);
        let to = at.saturating_sub(begin).min(stage_end(record, stage));
        let from = if whole { 0 } else { to.saturating_sub(width_ns) };
        let mut part = head_of(record);
        part.stages = vec![cut(stage, begin, from, to)];
        // From an interval's own start on.
        let from = part.stages[0].start_ns.unwrap_or(begin).saturating_sub(begin);
        part.telemetry = readings(record, begin + from, begin + to);
        let part = assay_report::findings(&part);
        let report = assay_report::report(vec![(String::new(), part.clone())]);
        let charts = assay_report::charts(&report).of_entries.pop().unwrap_or_default();
        // A stage in progress has the sums of its last seconds, an earlier instant has none.
        let is_end = to.saturating_add(record.manifest.interval_ns) >= stage_end(record, stage);
        let is_known = stage.total.transactions.iter().any(|one| one.count > 0 || one.failed > 0);
        let sums = (is_end && is_known).then(|| {
            let mut all = head_of(record);
            all.stages = vec![Stage { intervals: Vec::new(), ..without_intervals(stage) }];
            assay_report::findings(&all)
        });
        Seen {
            part,
            sums,
            charts,
            stage: (number, planned),
            from_ns: from,
            to_ns: to,
            at_ns: at,
            planned_ns: record.manifest.limit.time_ns,
        }
    }

    /// The visible stage.
    pub fn of_stage(&self) -> Option<&StageFindings> {
        self.part.stages.first()
    }

    /// Servers or machines.
    pub fn scopes(&self, kind: ScopeKind) -> impl Iterator<Item = &ScopeFindings> {
        self.of_stage().into_iter().flat_map(|stage| &stage.telemetry).filter(move |scope| scope.scope == kind)
    }

    /// The chart whose name begins like this: `throughput`.
    pub fn chart(&self, name: &str) -> Option<&Chart> {
        self.charts.iter().find(|chart| chart.id.trim_end_matches(|c: char| c.is_ascii_digit()) == format!("{name}-"))
    }
}

/// A record without measurements.
fn head_of(record: &Record) -> Record {
    let mut manifest = record.manifest.clone();
    // A part of a search is not a search.
    manifest.search = None;
    Record {
        format: record.format,
        tool: record.tool.clone(),
        status: record.status,
        failure: record.failure.clone(),
        started: record.started,
        elapsed_ns: record.elapsed_ns,
        manifest,
        environment: record.environment.clone(),
        types: record.types.clone(),
        notes: record.notes.clone(),
        tags: record.tags.clone(),
        ..Record::default()
    }
}

fn without_intervals(stage: &Stage) -> Stage {
    Stage {
        sessions: stage.sessions,
        rate_per_s: stage.rate_per_s,
        started: stage.started,
        start_ns: stage.start_ns,
        measured_ns: stage.measured_ns,
        total: stage.total.clone(),
        targets: stage.targets.clone(),
        session_transactions_min: stage.session_transactions_min,
        session_transactions_max: stage.session_transactions_max,
        generator: stage.generator,
        halts_ns: stage.halts_ns.clone(),
        intervals: Vec::new(),
    }
}

/// The intervals of a stage between two instants since its start, as if it had begun with the first of them.
fn cut(stage: &Stage, begin: u64, from: u64, to: u64) -> Stage {
    let first = stage.intervals.partition_point(|interval| interval.start_ns < from);
    let last = stage.intervals.partition_point(|interval| end_of(interval) <= to).max(first);
    let mut intervals = stage.intervals[first..last].to_vec();
    let from = intervals.first().map_or(from, |interval| interval.start_ns);
    for interval in &mut intervals {
        let since = |ns: &mut u64| *ns = ns.saturating_sub(from);
        since(&mut interval.start_ns);
        interval.first_done_ns.iter_mut().for_each(since);
        interval.last_done_ns.iter_mut().for_each(since);
        let targets = interval.targets.iter_mut();
        targets.flat_map(|of| of.first_done_ns.iter_mut().chain(&mut of.last_done_ns)).for_each(since);
    }
    Stage {
        sessions: stage.sessions,
        rate_per_s: stage.rate_per_s,
        started: Time::from_unix_ms(stage.started.unix_ms().saturating_add(from / 1_000_000)),
        start_ns: Some(begin.saturating_add(from)),
        measured_ns: to.saturating_sub(from),
        total: counts(stage, &intervals),
        intervals,
        ..Stage::default()
    }
}

/// What some intervals say about counts.
fn counts(stage: &Stage, intervals: &[Interval]) -> Tally {
    let of_type = |number: usize| {
        let counts = intervals.iter().map(|interval| interval.transactions.get(number).copied().unwrap_or(0));
        counts.fold(0, u64::saturating_add)
    };
    let types = intervals.iter().map(|interval| interval.transactions.len()).max().unwrap_or(0);
    let name = |number: usize| stage.total.transactions.get(number).map_or_else(String::new, |one| one.name.clone());
    let of = |number: usize| TransactionTally { name: name(number), count: of_type(number), ..Default::default() };
    let mut tally = Tally { transactions: (0..types).map(of).collect(), ..Tally::default() };
    for interval in intervals {
        let add = |sum: &mut StatementTally, count: u64| sum.count = sum.count.saturating_add(count);
        add(&mut tally.statements.read, interval.statements.read);
        add(&mut tally.statements.write, interval.statements.write);
        add(&mut tally.statements.other, interval.statements.other);
        tally.due = tally.due.saturating_add(interval.due.unwrap_or(0));
    }
    tally
}

/// The readings between two instants since the start of the run, and the one before.
fn readings(record: &Record, from: u64, to: u64) -> Option<assay_record::Telemetry> {
    let telemetry = record.telemetry.as_ref()?;
    let scopes = telemetry.scopes.iter().map(|scope| {
        let first = scope.began_ns.partition_point(|at| *at + BEFORE_NS < from);
        let last = scope.began_ns.partition_point(|at| *at <= to.saturating_add(BEFORE_NS)).max(first);
        let last = last.min(scope.ended_ns.len()).max(first.min(scope.ended_ns.len()));
        let of = |values: &[Option<u64>]| values.get(first..last.min(values.len())).unwrap_or_default().to_vec();
        let of_counts = |values: &[u32]| values.get(first..last.min(values.len())).unwrap_or_default().to_vec();
        let series = scope.series.iter().map(|series| assay_record::Series {
            metric: series.metric.clone(),
            unit: series.unit,
            reading: series.reading,
            source: series.source.clone(),
            values: of(&series.values),
            own: of(&series.own),
            includes_own: series.includes_own,
        });
        let waits = scope.waits.as_ref().map(|waits| Waits {
            looks: of_counts(&waits.looks),
            events: (waits.events.iter())
                .map(|event| assay_record::WaitEvent { name: event.name.clone(), sessions: of_counts(&event.sessions) })
                .collect(),
        });
        assay_record::Scope {
            kind: scope.kind,
            target: scope.target,
            began_ns: scope.began_ns.get(first..last).unwrap_or_default().to_vec(),
            ended_ns: scope.ended_ns.get(first..last).unwrap_or_default().to_vec(),
            series: series.collect(),
            absent: scope.absent.clone(),
            waits,
            log: Vec::new(),
            log_left_out: 0,
            statements: Vec::new(),
        }
    });
    let (full, every_ns, cost) = (telemetry.full, telemetry.every_ns, telemetry.cost);
    let interventions = telemetry.interventions.clone();
    Some(assay_record::Telemetry { full, every_ns, cost, interventions, plans: Vec::new(), scopes: scopes.collect() })
}
