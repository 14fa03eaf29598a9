//! The events of a record: a line of its file each, in the order in which they happened.
//!
//! `Fold` turns them into a `Record`, and `WrittenSoFar` finds out which events a growing `Record` adds to those
//! already written. Events are tagged from outside (`{"interval": {…}}`), because serde's inner tags lose 128-bit sums.

use std::collections::{BTreeMap, BTreeSet};

use assay_measure::{Generator, Interval, Tally, TransactionTally, Work};
use serde::{Deserialize, Serialize};

use crate::agents::AgentPart;
use crate::attribute::Attribute;
use crate::cases::Cases;
use crate::isolation::Isolation;
use crate::note::Note;
use crate::stage::Stage;
use crate::status::Status;
use crate::telemetry::{
    Absent, Cost, Intervention, LogLine, Scope, ScopeKind, Series, StatementPlans, StatementUse, Telemetry, WaitEvent,
    Waits, is_zero,
};
use crate::time::Time;
use crate::trial::{Environment, FORMAT, Manifest, OptionValue, Rate, Record, Rule, Tool};

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Always the first: everything known at the start.
    Started(Box<Started>),
    /// Facts from servers and the workload; repeated whenever there are more.
    Connected(Box<Connected>),
    /// A stage's measured part starts.
    StageStarted(StageStarted),
    /// An interval of a stage is over.
    Interval(Box<StageInterval>),
    /// Samples since the last ones.
    Readings(Box<Readings>),
    /// Totals of a stage in progress, which replace earlier ones.
    SoFar(Box<Totals>),
    /// A stage is over, with its final totals.
    StageEnded(Box<Totals>),
    /// The run is over.
    Ended(Box<Ended>),
    /// Tags were added later.
    Tagged(BTreeMap<String, String>),
    /// The user wrote a note.
    Noted(Note),
    /// Sessions are connecting. Not in records.
    Connecting(Connecting),
    /// A line for the user, such as a warning. Not in records.
    Notice(Notice),
    /// The process of the run has ended. Not in records; always the last.
    Exited(Exited),
}

/// The start of a run. Fields are those of `Record`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "documented at `Record`")]
pub struct Started {
    pub format: u32,
    pub tool: Tool,
    pub started: Time,
    #[serde(default)]
    pub elapsed_ns: u64,
    pub manifest: Manifest,
    pub environment: Environment,
    #[serde(default)]
    pub types: Vec<String>,
    #[serde(default)]
    pub rules: Vec<Rule>,
    #[serde(default)]
    pub rates: Vec<Rate>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identity: Vec<Attribute>,
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Cases>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPart>,
}

/// Sessions on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connecting {
    /// Sessions that are ready.
    pub ready: u32,
    /// Sessions of the stage.
    pub wanted: u32,
}

/// A line for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The line, without a label.
    pub text: String,
    /// Whether it is a warning; otherwise the script printed it.
    pub warning: bool,
}

/// How a process ended, as it was shown to the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exited {
    /// Its exit code.
    pub code: u8,
    /// The error; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Places, and original messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// Advice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// Facts that became known after the start. Fields are those of `Record` and of its manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "documented at `Record`")]
pub struct Connected {
    pub types: Vec<String>,
    #[serde(default)]
    pub rules: Vec<Rule>,
    #[serde(default)]
    pub rates: Vec<Rate>,
    #[serde(default)]
    pub options: BTreeMap<String, OptionValue>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asked: BTreeMap<String, OptionValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<BTreeSet<String>>,
    #[serde(default)]
    pub sessions: Vec<u32>,
    #[serde(default)]
    pub servers: Vec<ServerName>,
}

/// A server's description of itself at login.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "documented at `Server`")]
pub struct ServerName {
    pub product: String,
    pub version: String,
    #[serde(default)]
    pub tls: Option<String>,
}

/// The start of a stage. Fields are those of `Stage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "documented at `Stage`")]
pub struct StageStarted {
    /// Number of the stage, from 0.
    pub stage: u32,
    pub sessions: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    pub started: Time,
    #[serde(default)]
    pub start_ns: Option<u64>,
}

/// An interval of a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageInterval {
    /// Number of the stage, from 0.
    pub stage: u32,
    /// The interval.
    pub interval: Interval,
}

/// Everything of a stage but its intervals. Fields are those of `Stage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "documented at `Stage`")]
pub struct Totals {
    /// Number of the stage, from 0.
    pub stage: u32,
    /// Length of the run so far.
    pub elapsed_ns: u64,
    pub measured_ns: u64,
    pub total: Tally,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Tally>,
    pub session_transactions_min: u64,
    pub session_transactions_max: u64,
    pub generator: Generator,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halts_ns: Option<Vec<[u64; 2]>>,
}

/// New readings of telemetry. Fields are those of `Telemetry`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "documented at `Telemetry`")]
pub struct Readings {
    #[serde(default)]
    pub full: bool,
    pub every_ns: u64,
    pub cost: Cost,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interventions: Vec<Intervention>,
    /// All of them; empty: none are new.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<StatementPlans>,
    /// All scopes, in order.
    pub scopes: Vec<ScopeReadings>,
}

/// New readings of a scope. Fields are those of `Scope`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "documented at `Scope`")]
pub struct ScopeReadings {
    pub kind: ScopeKind,
    pub target: u32,
    pub began_ns: Vec<u64>,
    pub ended_ns: Vec<u64>,
    /// New values of each known series, in their order.
    pub values: Vec<Vec<Option<u64>>>,
    /// How much of these was the work of sampling, for each known series, as in `Series`; empty if no series has that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<Vec<Option<u64>>>,
    /// Indices of known series whose values include the work of sampling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub includes_own: Vec<usize>,
    /// Series that are new, with all their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Series>,
    pub absent: Vec<Absent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitReadings>,
    /// New lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<LogLine>,
    /// As in `Scope`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub log_left_out: u64,
    /// All of them; empty: none are new.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementUse>,
}

/// New observations of waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitReadings {
    /// As in `Waits`; all of them if waits are new.
    pub looks: Vec<u32>,
    /// New numbers of each known event, in their order.
    pub sessions: Vec<Vec<u32>>,
    /// Events that are new, with all their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<WaitEvent>,
}

/// The end of a run, and everything that is known only then. Fields are those of `Record`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "documented at `Record`")]
pub struct Ended {
    pub status: Status,
    #[serde(default)]
    pub failure: Option<String>,
    pub elapsed_ns: u64,
    /// If it is not that of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
    /// If it is not that of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// If it is not that of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Vec<Attribute>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<Cases>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<AgentPart>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
}

impl Ended {
    /// An end, and nothing else that is new.
    pub(crate) fn of(status: Status, failure: Option<String>, record: &Record) -> Ended {
        Ended {
            status,
            failure,
            elapsed_ns: record.elapsed_ns,
            manifest: None,
            environment: None,
            identity: None,
            cases: None,
            agents: None,
            work: None,
            isolation: None,
        }
    }
}

/// Turns events into a record. Events of an impossible order change nothing.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    record: Option<Record>,
}

impl Fold {
    /// The next event.
    pub fn take(&mut self, event: Event) {
        if let Event::Started(started) = event {
            let Started {
                format,
                tool,
                started,
                elapsed_ns,
                manifest,
                environment,
                types,
                rules,
                rates,
                identity,
                tags,
                cases,
                agents,
            } = *started;
            let (status, failure, stages, telemetry, work, isolation, notes, damaged_lines) = Default::default();
            self.record = Some(Record {
                format,
                tool,
                status,
                failure,
                started,
                elapsed_ns,
                manifest,
                environment,
                types,
                rules,
                rates,
                stages,
                telemetry,
                identity,
                tags,
                cases,
                work,
                isolation,
                agents,
                notes,
                damaged_lines,
            });
            return;
        }
        let Some(record) = &mut self.record else { return };
        match event {
            Event::Started(_) => {}
            Event::Connected(connected) => connected.put_into(record),
            Event::StageStarted(stage) if stage.stage as usize == record.stages.len() => {
                let StageStarted { stage: _, sessions, rate_per_s, started, start_ns } = stage;
                record.stages.push(Stage { sessions, rate_per_s, started, start_ns, ..Stage::default() });
            }
            Event::StageStarted(_) => {}
            Event::Interval(interval) => {
                if let Some(stage) = record.stages.get_mut(interval.stage as usize) {
                    stage.intervals.push(interval.interval);
                }
            }
            Event::SoFar(totals) | Event::StageEnded(totals) => {
                let Totals { elapsed_ns, measured_ns, total, targets, generator, halts_ns, .. } = *totals;
                if let Some(stage) = record.stages.get_mut(totals.stage as usize) {
                    (stage.measured_ns, stage.total, stage.targets) = (measured_ns, total, targets);
                    stage.session_transactions_min = totals.session_transactions_min;
                    stage.session_transactions_max = totals.session_transactions_max;
                    (stage.generator, stage.halts_ns) = (generator, halts_ns);
                }
                record.elapsed_ns = elapsed_ns;
            }
            Event::Readings(readings) => readings.put_into(record.telemetry.get_or_insert_default()),
            Event::Ended(ended) => {
                let Ended {
                    status,
                    failure,
                    elapsed_ns,
                    manifest,
                    environment,
                    identity,
                    cases,
                    agents,
                    work,
                    isolation,
                } = *ended;
                (record.status, record.failure, record.elapsed_ns) = (status, failure, elapsed_ns);
                record.manifest = manifest.unwrap_or(std::mem::take(&mut record.manifest));
                record.environment = environment.unwrap_or(std::mem::take(&mut record.environment));
                record.identity = identity.unwrap_or(std::mem::take(&mut record.identity));
                record.cases = cases.or(record.cases.take());
                record.work = work.or(record.work.take());
                record.isolation = isolation.or(record.isolation.take());
                record.agents = agents.unwrap_or(std::mem::take(&mut record.agents));
            }
            Event::Tagged(tags) => record.tags.extend(tags),
            Event::Noted(note) => record.notes.push(note),
            Event::Connecting(_) | Event::Notice(_) | Event::Exited(_) => {}
        }
    }

    /// The record so far; `None` before it has started.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// The record of all events. If the run was killed, tallies get the types that were named after their stage, and
    /// intervals after the last totals are left out: a report needs both.
    pub fn finish(self) -> Option<Record> {
        let mut record = self.record?;
        if record.status == Status::Running {
            if let Some(stage) = record.stages.last_mut() {
                let end = stage.measured_ns;
                stage.intervals.retain(|interval| interval.start_ns.saturating_add(interval.length_ns / 2) <= end);
            }
            for stage in &mut record.stages {
                for tally in std::iter::once(&mut stage.total).chain(&mut stage.targets) {
                    let missing = record.types.iter().skip(tally.transactions.len());
                    let none = |name: &String| TransactionTally { name: name.clone(), ..TransactionTally::default() };
                    let missing: Vec<TransactionTally> = missing.map(none).collect();
                    tally.transactions.extend(missing);
                }
            }
        }
        Some(record)
    }
}

impl Started {
    /// The start of this record's run.
    pub fn of(record: &Record) -> Started {
        let Record { tool, started, elapsed_ns, manifest, environment, types, rules, rates, tags, .. } = record.clone();
        let (identity, cases, agents) = (record.identity.clone(), record.cases.clone(), record.agents.clone());
        Started {
            format: FORMAT,
            tool,
            started,
            elapsed_ns,
            manifest,
            environment,
            types,
            rules,
            rates,
            identity,
            tags,
            cases,
            agents,
        }
    }
}

impl StageStarted {
    /// The start of a stage of this record; `None`: it has not started.
    pub fn of(record: &Record, number: usize) -> Option<StageStarted> {
        let stage = record.stages.get(number)?;
        Some(StageStarted {
            stage: number as u32,
            sessions: stage.sessions,
            rate_per_s: stage.rate_per_s,
            started: stage.started,
            start_ns: stage.start_ns,
        })
    }
}

impl Totals {
    /// Those of a stage of this record; `None`: it has not started.
    pub fn of(record: &Record, number: usize) -> Option<Totals> {
        record.stages.get(number).map(|stage| totals(record, number as u32, stage))
    }
}

impl Connected {
    fn put_into(self, record: &mut Record) {
        let Connected { types, rules, rates, options, asked, found, sessions, servers } = self;
        (record.types, record.rules, record.rates) = (types, rules, rates);
        let manifest = &mut record.manifest;
        (manifest.options, manifest.asked, manifest.found) = (options, asked, found);
        manifest.sessions = sessions;
        for (server, name) in record.environment.servers.iter_mut().zip(servers) {
            (server.product, server.version, server.tls) = (name.product, name.version, name.tls);
        }
    }
}

impl Readings {
    /// Adds them to those before.
    pub fn put_into(self, telemetry: &mut Telemetry) {
        let Readings { full, every_ns, cost, interventions, plans, scopes } = self;
        if !plans.is_empty() {
            telemetry.plans = plans;
        }
        (telemetry.full, telemetry.every_ns, telemetry.cost, telemetry.interventions) =
            (full, every_ns, cost, interventions);
        for (number, new) in scopes.into_iter().enumerate() {
            if number == telemetry.scopes.len() {
                telemetry.scopes.push(Scope {
                    kind: new.kind,
                    target: new.target,
                    began_ns: Vec::new(),
                    ended_ns: Vec::new(),
                    series: Vec::new(),
                    absent: Vec::new(),
                    waits: None,
                    log: Vec::new(),
                    log_left_out: 0,
                    statements: Vec::new(),
                });
            }
            let scope = &mut telemetry.scopes[number];
            scope.began_ns.extend(new.began_ns);
            scope.ended_ns.extend(new.ended_ns);
            for (series, own) in scope.series.iter_mut().zip(new.own).filter(|(_, own)| !own.is_empty()) {
                // The first values may be known earlier.
                series.own.resize(series.values.len(), None);
                series.own.extend(own);
            }
            for number in new.includes_own {
                scope.series.get_mut(number).into_iter().for_each(|series| series.includes_own = true);
            }
            for (series, values) in scope.series.iter_mut().zip(new.values) {
                series.values.extend(values);
            }
            scope.series.extend(new.series);
            scope.absent = new.absent;
            scope.log.extend(new.log);
            scope.log_left_out = new.log_left_out;
            if !new.statements.is_empty() {
                scope.statements = new.statements;
            }
            if let Some(new) = new.waits {
                let waits = scope.waits.get_or_insert_default();
                waits.looks.extend(new.looks);
                for (event, sessions) in waits.events.iter_mut().zip(new.sessions) {
                    event.sessions.extend(sessions);
                }
                waits.events.extend(new.events);
            }
        }
    }
}

/// The part of a record that has been written.
#[derive(Clone, Debug)]
pub(crate) struct WrittenSoFar {
    /// Without stages and telemetry.
    head: Record,
    stages: Vec<KnownStage>,
    pub(crate) telemetry: Option<KnownTelemetry>,
}

#[derive(Clone, Debug, Default)]
struct KnownStage {
    intervals: usize,
    measured_ns: u64,
    has_ended: bool,
    /// Numbers of types and counters in its tally.
    names: (usize, usize),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct KnownTelemetry {
    cost: Cost,
    interventions: Vec<Intervention>,
    /// Number of statements with plans.
    plans: usize,
    pub(crate) scopes: Vec<KnownScope>,
}

/// How much of a scope that grows has been passed on.
#[derive(Clone, Debug, Default)]
pub struct KnownScope {
    samples: usize,
    series: usize,
    /// Number of known wait events; `None`: no waits yet.
    events: Option<usize>,
    absent: usize,
    log: usize,
    log_left_out: u64,
    statements: usize,
    /// Samples that the scope no longer has, although everybody who follows it does.
    let_go: usize,
}

/// When a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Its last stage is in progress, and its totals are not needed yet: they are most of the bytes.
    Interval,
    /// Its last stage is in progress.
    Underway,
    /// Its last stage is over, and maybe the run.
    StageEnd,
}

/// Without stages and telemetry.
pub(crate) fn head_of(record: &Record) -> Record {
    let Record { format, tool, status, failure, started, elapsed_ns, manifest, environment, .. } = record;
    Record {
        format: *format,
        tool: tool.clone(),
        status: *status,
        failure: failure.clone(),
        started: *started,
        elapsed_ns: *elapsed_ns,
        manifest: manifest.clone(),
        environment: environment.clone(),
        types: record.types.clone(),
        rules: record.rules.clone(),
        rates: record.rates.clone(),
        stages: Vec::new(),
        telemetry: None,
        identity: record.identity.clone(),
        tags: record.tags.clone(),
        cases: record.cases.clone(),
        work: record.work.clone(),
        isolation: record.isolation.clone(),
        agents: record.agents.clone(),
        notes: record.notes.clone(),
        damaged_lines: Vec::new(),
    }
}

impl Connected {
    /// The facts that this record has now.
    pub fn of(record: &Record) -> Connected {
        let name = |server: &crate::trial::RecordedServer| ServerName {
            product: server.product.clone(),
            version: server.version.clone(),
            tls: server.tls.clone(),
        };
        Connected {
            types: record.types.clone(),
            rules: record.rules.clone(),
            rates: record.rates.clone(),
            options: record.manifest.options.clone(),
            asked: record.manifest.asked.clone(),
            found: record.manifest.found.clone(),
            sessions: record.manifest.sessions.clone(),
            servers: record.environment.servers.iter().map(name).collect(),
        }
    }
}

impl WrittenSoFar {
    /// The events of a record that starts a file: `Started`, and whatever it has measured already.
    pub(crate) fn begin(record: &Record, moment: Moment) -> (Vec<Event>, WrittenSoFar) {
        let head = Record {
            format: FORMAT,
            status: Status::Running,
            failure: None,
            work: None,
            isolation: None,
            notes: Vec::new(),
            ..head_of(record)
        };
        let mut events = vec![Event::Started(Box::new(Started::of(&head)))];
        let known = WrittenSoFar { head, stages: Vec::new(), telemetry: None };
        let (more, known) = known.since(record, moment);
        events.extend(more);
        (events, known)
    }

    /// The state of a file that holds this record.
    pub(crate) fn of(record: &Record) -> WrittenSoFar {
        let (_, mut known) = WrittenSoFar::begin(record, Moment::StageEnd);
        known.head = head_of(record);
        known
    }

    /// The events that `record` adds, and the state once they are written. Measurements only grow, and what else
    /// changes while it is running is written at its end.
    pub(crate) fn since(&self, record: &Record, moment: Moment) -> (Vec<Event>, WrittenSoFar) {
        let mut known = self.clone();
        let mut events = Vec::new();
        let now = Connected::of(record);
        if now != Connected::of(&self.head) {
            now.clone().put_into(&mut known.head);
            events.push(Event::Connected(Box::new(now)));
        }
        for (number, stage) in record.stages.iter().enumerate() {
            let over = number + 1 < record.stages.len() || record.status != Status::Running;
            if known.stages.len() == number {
                known.stages.push(KnownStage::default());
                events.extend(StageStarted::of(record, number).map(Event::StageStarted));
            }
            let before = known.stages[number].clone();
            for interval in stage.intervals.iter().skip(before.intervals) {
                let interval = StageInterval { stage: number as u32, interval: interval.clone() };
                events.push(Event::Interval(Box::new(interval)));
            }
            let now = KnownStage {
                intervals: stage.intervals.len(),
                measured_ns: stage.measured_ns,
                has_ended: before.has_ended || over || moment == Moment::StageEnd,
                names: (stage.total.transactions.len(), stage.total.counters.len()),
            };
            let same = (now.intervals, now.measured_ns, now.has_ended, now.names)
                == (before.intervals, before.measured_ns, before.has_ended, before.names);
            if moment == Moment::Interval && !now.has_ended {
                known.stages[number] = KnownStage { intervals: now.intervals, ..before };
                continue;
            }
            if !same {
                let totals = Box::new(totals(record, number as u32, stage));
                events.push(if now.has_ended { Event::StageEnded(totals) } else { Event::SoFar(totals) });
            }
            known.stages[number] = now;
        }
        if let Some(telemetry) = &record.telemetry {
            let (readings, now) = readings_since(telemetry, self.telemetry.as_ref());
            events.extend(readings.map(|readings| Event::Readings(Box::new(readings))));
            known.telemetry = Some(now);
        }
        for note in record.notes.iter().skip(known.head.notes.len()) {
            events.push(Event::Noted(note.clone()));
            known.head.notes.push(note.clone());
        }
        if let Some(ended) = known.ended(record) {
            events.push(ended);
            known.head = Record { tags: known.head.tags, ..head_of(record) };
        }
        if record.tags != known.head.tags {
            known.head.tags.clone_from(&record.tags);
            events.push(Event::Tagged(record.tags.clone()));
        }
        (events, known)
    }

    /// The end of the run, or a later change of what is known only then.
    fn ended(&self, record: &Record) -> Option<Event> {
        let head = &self.head;
        let changed = |what: bool| what.then_some(());
        let ended = Ended {
            status: record.status,
            failure: record.failure.clone(),
            elapsed_ns: record.elapsed_ns,
            manifest: changed(record.manifest != head.manifest).map(|()| record.manifest.clone()),
            environment: changed(record.environment != head.environment).map(|()| record.environment.clone()),
            identity: changed(record.identity != head.identity).map(|()| record.identity.clone()),
            cases: record.cases.clone().filter(|_| record.cases != head.cases),
            agents: changed(record.agents != head.agents).map(|()| record.agents.clone()),
            work: record.work.clone().filter(|_| record.work != head.work),
            isolation: record.isolation.clone().filter(|_| record.isolation != head.isolation),
        };
        let is_new = ended.manifest.is_some()
            || ended.environment.is_some()
            || ended.identity.is_some()
            || ended.cases.is_some()
            || ended.agents.is_some()
            || ended.work.is_some()
            || ended.isolation.is_some();
        let end = |record: &Record| (record.status, record.failure.clone(), record.elapsed_ns);
        let is_over = record.status != Status::Running && end(record) != end(head);
        (is_new || is_over).then(|| Event::Ended(Box::new(ended)))
    }
}

fn totals(record: &Record, number: u32, stage: &Stage) -> Totals {
    Totals {
        stage: number,
        elapsed_ns: record.elapsed_ns,
        measured_ns: stage.measured_ns,
        total: stage.total.clone(),
        targets: stage.targets.clone(),
        session_transactions_min: stage.session_transactions_min,
        session_transactions_max: stage.session_transactions_max,
        generator: stage.generator,
        halts_ns: stage.halts_ns.clone(),
    }
}

fn readings_since(telemetry: &Telemetry, known: Option<&KnownTelemetry>) -> (Option<Readings>, KnownTelemetry) {
    let before = known.cloned().unwrap_or_default();
    let interventions = telemetry.interventions.clone();
    let plans = telemetry.plans.len();
    let mut now = KnownTelemetry { cost: telemetry.cost, interventions, plans, scopes: Vec::new() };
    let has_plans = now.plans != before.plans;
    let mut is_new =
        known.is_none() || has_plans || (now.cost, &now.interventions) != (before.cost, &before.interventions);
    let mut scopes = Vec::new();
    for (number, scope) in telemetry.scopes.iter().enumerate() {
        let mut known = before.scopes.get(number).cloned().unwrap_or_default();
        let (readings, has_grown) = known.news(scope);
        is_new |= has_grown || number >= before.scopes.len();
        scopes.push(readings);
        now.scopes.push(known);
    }
    let readings = Readings {
        full: telemetry.full,
        every_ns: telemetry.every_ns,
        cost: telemetry.cost,
        interventions: telemetry.interventions.clone(),
        plans: if has_plans { telemetry.plans.clone() } else { Vec::new() },
        scopes,
    };
    (is_new.then_some(readings), now)
}

impl KnownScope {
    /// New readings since the last call, and whether there are any.
    pub fn news(&mut self, scope: &Scope) -> (ScopeReadings, bool) {
        let KnownScope { samples, series, events, absent, log, log_left_out, statements, let_go } = *self;
        let waits = scope.waits.as_ref().map(|waits| waits_since(waits, events.map(|events| (events, samples))));
        let known_series = &scope.series[..series.min(scope.series.len())];
        let new_of = |values: &[Option<u64>]| -> Vec<Option<u64>> { values.iter().skip(samples).copied().collect() };
        let own: Vec<_> = known_series.iter().map(|series| new_of(&series.own)).collect();
        let mut readings = ScopeReadings {
            kind: scope.kind,
            target: scope.target,
            began_ns: scope.began_ns.iter().skip(samples).copied().collect(),
            ended_ns: scope.ended_ns.iter().skip(samples).copied().collect(),
            values: known_series.iter().map(|series| new_of(&series.values)).collect(),
            own: if own.iter().all(Vec::is_empty) { Vec::new() } else { own },
            includes_own: (0..known_series.len()).filter(|number| known_series[*number].includes_own).collect(),
            series: scope.series.iter().skip(series).cloned().collect(),
            absent: scope.absent.clone(),
            waits,
            log: scope.log.iter().skip(log).cloned().collect(),
            log_left_out: scope.log_left_out,
            statements: if scope.statements.len() == statements { Vec::new() } else { scope.statements.clone() },
        };
        *self = KnownScope {
            samples: scope.began_ns.len(),
            series: scope.series.len(),
            events: scope.waits.as_ref().map(|waits| waits.events.len()),
            absent: scope.absent.len(),
            log: scope.log.len(),
            log_left_out: scope.log_left_out,
            statements: scope.statements.len(),
            let_go,
        };
        readings.begin_late(let_go, events.is_some());
        let counts = |of: &KnownScope| (of.samples, of.series, of.absent, of.log, of.log_left_out, of.statements);
        let has_grown = counts(self) != (samples, series, absent, log, log_left_out, statements);
        (readings, has_grown)
    }

    /// The scope has left out its first samples, and so has everybody else.
    pub fn forget(&mut self, samples: usize) {
        self.samples = self.samples.saturating_sub(samples);
    }

    /// The scope has left out its first samples, which others keep: what begins later has gaps for them there.
    pub fn let_go(&mut self, samples: usize) {
        self.forget(samples);
        self.let_go += samples;
    }

    /// The scope has all its samples again.
    pub fn take_back(&mut self) {
        self.samples += std::mem::take(&mut self.let_go);
    }

    /// Number of samples that are known and that the scope still has.
    pub fn samples(&self) -> usize {
        self.samples
    }
}

impl ScopeReadings {
    /// There were so many samples before those that the new series have values for.
    fn begin_late(&mut self, samples: usize, knows_waits: bool) {
        fn gap<T: Clone>(values: &mut Vec<T>, samples: usize, none: T) {
            values.splice(0..0, std::iter::repeat_n(none, samples));
        }
        for series in &mut self.series {
            gap(&mut series.values, samples, None);
            if !series.own.is_empty() {
                gap(&mut series.own, samples, None);
            }
        }
        if let Some(waits) = &mut self.waits {
            waits.events.iter_mut().for_each(|event| gap(&mut event.sessions, samples, 0));
            if !knows_waits {
                gap(&mut waits.looks, samples, 0);
            }
        }
    }
}

/// `known`: numbers of events and samples.
fn waits_since(waits: &Waits, known: Option<(usize, usize)>) -> WaitReadings {
    let (events, samples) = known.unwrap_or_default();
    WaitReadings {
        looks: waits.looks.iter().skip(samples).copied().collect(),
        sessions: waits
            .events
            .iter()
            .take(events)
            .map(|event| event.sessions.iter().skip(samples).copied().collect())
            .collect(),
        events: waits.events.iter().skip(events).cloned().collect(),
    }
}
