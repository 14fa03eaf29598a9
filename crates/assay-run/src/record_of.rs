//! Converts the engine's `Plan` and `Outcome` to a `Record`.
//!
//! What was measured is in the record as the engine measured it (assay-measure); this adds what is known of the run.

use std::collections::BTreeMap;

use assay_engine::{Arrival, End, Ignore, Load, OnError, Outcome, Plan, StageOutcome, Target};
use assay_io::Address;
use assay_io::process::HostFacts;
use assay_options::OptionValue;
use assay_record as record;
use assay_record::{Attribute, AttributeScope, Place, Record, StartedServer, Status, Tally, Time, Tool};
use assay_script::{Declaration, Measure};
use assay_seam::{Nanos, ServerFacts};
use assay_spec::{Concealed, RunSpec};

use crate::assignment::Assignment;
use crate::telemetry;

/// What is known when the run starts: everything but the measurements.
pub fn begun(plan: &Plan, assignment: &Assignment, started: Option<&StartedServer>) -> Record {
    let spec = &assignment.spec;
    let mut record = planned(plan, assignment);
    let manifest = &mut record.manifest;
    manifest.profile = match &plan.load {
        Load::Open { rate, .. } if rate.points().len() > 1 => {
            rate.points().iter().map(|point| record::RatePoint { at_ns: point.at.0, per_s: point.per_s }).collect()
        }
        _ => Vec::new(),
    };
    manifest.trace = match (&plan.load, &spec.load.rate_file) {
        (Load::Trace { arrivals, .. }, Some(path)) => {
            Some(record::Trace { file: path.display().to_string(), arrivals: arrivals.len() as u64 })
        }
        _ => None,
    };
    manifest.search = search(spec);
    record.environment.started = started.cloned();
    record
}

/// A new record for a command of a workload: `task`.
pub fn begun_command(plan: &Plan, assignment: &Assignment) -> Record {
    let mut record = planned(plan, assignment);
    record.manifest.task.clone_from(&assignment.spec.task);
    record
}

/// A new record for a test of the machine itself.
pub fn begun_machine(test: &str, options: &[(String, OptionValue)], words: &[String]) -> Record {
    Record {
        manifest: record::Manifest {
            command: words.to_vec(),
            workload: test.to_owned(),
            task: "machine".to_owned(),
            options: options.iter().cloned().filter_map(option).collect(),
            interval_ns: 1_000_000_000,
            ..record::Manifest::default()
        },
        environment: this_machine(),
        ..begun_now()
    }
}

/// The part that comes from a plan.
fn planned(plan: &Plan, assignment: &Assignment) -> Record {
    let Assignment { spec, workload, words } = assignment;
    let setup = &plan.setup;
    Record {
        manifest: record::Manifest {
            command: words.clone(),
            spec: Some(spec.to_value()),
            workload: plan.program.name().to_owned(),
            options: workload.options_in_effect().into_iter().filter_map(option).collect(),
            seed: setup.seed,
            distribution: (!plan.program.draws_own_rows()).then(|| setup.distribution.kind.name().to_owned()),
            sessions: plan.stages.iter().map(|stage| stage.sessions).collect(),
            load: load(&plan.load, plan.limit.time),
            terminals: match plan.load {
                Load::Terminals { terminals, think_scale } => {
                    Some(record::Terminals { number: terminals, think_scale })
                }
                Load::Closed | Load::Open { .. } | Load::Trace { .. } => None,
            },
            limit: record::Limit { time_ns: plan.limit.time.map(|time| time.0), transactions: plan.limit.transactions },
            warmup_ns: plan.warmup.0,
            interval_ns: plan.interval.0,
            policy: record::Policy {
                ignore: match &plan.policy.ignore {
                    Ignore::All => vec!["all".to_owned()],
                    Ignore::Codes(codes) => codes.clone(),
                },
                retries: plan.policy.retries,
                restart_ignored: plan.policy.restart_ignored,
                on_error: match plan.policy.on_error {
                    OnError::Stop => record::OnError::Stop,
                    OnError::Continue => record::OnError::Continue,
                },
                reconnect_ns: plan.policy.reconnect.0,
            },
            workers: u32::try_from(plan.workers).unwrap_or(u32::MAX),
            event_loop: plan.targets.iter().any(|target| !target.addresses.is_empty()).then(|| record::EventLoop {
                backend: plan.event_loop.backend.to_string(),
                fallback: plan.event_loop.fallback.clone(),
                batch_max: plan.event_loop.batch_max as u64,
                polls_ns: plan.event_loop.polls.0,
            }),
            prepared: spec.target.prepared,
            session_sql: spec.target.session_sql.iter().map(Concealed::shown).collect(),
            targets: plan.targets.iter().map(|target| target.database.display()).collect(),
            ..record::Manifest::default()
        },
        environment: record::Environment {
            servers: plan
                .targets
                .iter()
                .map(|target| record::RecordedServer { place: place(target), ..record::RecordedServer::default() })
                .collect(),
            ..this_machine()
        },
        identity: workload.option_defaults().into_iter().filter_map(default).collect(),
        tags: spec.tags.clone(),
        ..begun_now()
    }
}

/// A record of this program that starts now, still empty.
pub fn begun_now() -> Record {
    Record {
        format: record::FORMAT,
        tool: Tool { name: "assay".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        started: now(),
        ..Record::default()
    }
}

/// Room for so many intervals is made at a time.
const INTERVALS_MORE: usize = 256;

/// Stores everything measured so far in `record`. Intervals and stages that it has already are not encoded again, which
/// would cost more the longer the run.
pub fn fill(record: &mut Record, outcome: &Outcome, end: (Status, Option<String>)) {
    (record.status, record.failure) = end;
    record.elapsed_ns = outcome.elapsed.0;
    record.types.clone_from(&outcome.types);
    record.rules = outcome.declarations.iter().filter_map(rule).collect();
    record.rates = outcome.declarations.iter().filter_map(rate).collect();
    if record.manifest.task.is_empty() || record.manifest.task == "run" {
        record.manifest.found.get_or_insert_default();
    }
    put_found(record, found(&outcome.declarations));
    record.work = work(record, outcome);
    servers(record, outcome);
    if record.manifest.search.is_some() {
        record.manifest.sessions = outcome.stages.iter().map(|stage| stage.sessions).collect();
    }
    let names = (outcome.types.len(), outcome.counters.len());
    for (i, stage) in outcome.stages.iter().enumerate() {
        let is_over = i + 1 < outcome.stages.len();
        let is_stored = |known: &record::Stage| (known.total.transactions.len(), known.total.counters.len()) == names;
        if is_over && i + 1 < record.stages.len() && is_stored(&record.stages[i]) {
            continue;
        }
        let mut intervals =
            record.stages.get_mut(i).map_or_else(Vec::new, |known| std::mem::take(&mut known.intervals));
        let number = stage.intervals.len().saturating_sub(intervals.len());
        if intervals.capacity() - intervals.len() < number {
            // Doubling would hold twice of what a long run needs.
            intervals.reserve_exact(number.max(INTERVALS_MORE));
        }
        let new = stage.intervals.iter().skip(intervals.len());
        intervals.extend(new.map(|interval| interval.measured.clone()));
        let stage = stage_of(stage, outcome, record.started, intervals);
        match record.stages.get_mut(i) {
            Some(known) => *known = stage,
            None => record.stages.push(stage),
        }
    }
}

/// What all transactions did, if the run is over and a rule compares it with the tables.
fn work(record: &Record, outcome: &Outcome) -> Option<record::Work> {
    let is_compared = |rule: &record::Rule| {
        matches!(rule.measure, record::Measure::Growth { .. } | record::Measure::TableShare { .. })
    };
    if record.status == Status::Running || !record.rules.iter().any(is_compared) {
        return None;
    }
    let mut work = outcome.work.clone();
    work.name(&outcome.types, &outcome.counters);
    Some(work)
}

/// What servers reported about themselves at login.
pub fn servers(record: &mut Record, outcome: &Outcome) {
    for (server, facts) in record.environment.servers.iter_mut().zip(&outcome.servers) {
        let ServerFacts { product, version, tls, process: _ } = facts.clone();
        (server.product, server.version, server.tls) = (product, version, tls);
    }
}

/// How a run ended, for its record.
pub fn status(end: &End, failure: Option<String>) -> (Status, Option<String>) {
    match end {
        End::Complete => (Status::Complete, None),
        End::Interrupted => (Status::Interrupted, None),
        End::Failed(_) => (Status::Failed, failure),
    }
}

fn now() -> Time {
    Time::from(std::time::SystemTime::now())
}

fn after(start: Time, later: Nanos) -> Time {
    Time::from_unix_ms(start.unix_ms() + later.0 / 1_000_000)
}

fn search(spec: &RunSpec) -> Option<record::Search> {
    let load = &spec.load;
    if load.searches_sessions() {
        return load.steps().first().map(|max| record::Search::Sessions { max: *max });
    }
    (!load.find_rate.is_empty()).then(|| record::Search::Rate { promises: load.find_rate.clone() })
}

/// `time`: length of a stage, for the mean of a rate that changes.
fn load(load: &Load, time: Option<Nanos>) -> record::Load {
    match load {
        // Terminals are a closed loop with think times, and have a field of their own.
        Load::Closed | Load::Terminals { .. } => record::Load::Closed,
        Load::Trace { arrivals, backlog_max } => {
            let length = time.or(arrivals.last().copied()).unwrap_or(Nanos::ZERO).as_secs_f64();
            let due = arrivals.iter().filter(|at| time.is_none_or(|time| **at < time)).count();
            record::Load::Open {
                rate_per_s: (due.max(1) as f64 / length.max(1e-3)).min(assay_engine::RATE_MAX),
                arrival: record::Arrival::Constant,
                backlog_max: *backlog_max,
            }
        }
        Load::Open { rate, arrival, backlog_max } => record::Load::Open {
            rate_per_s: rate.mean(time),
            arrival: match arrival {
                Arrival::Constant => record::Arrival::Constant,
                Arrival::Poisson => record::Arrival::Poisson,
            },
            backlog_max: *backlog_max,
        },
    }
}

/// Options with their values.
pub fn options(all: Vec<(String, OptionValue)>) -> BTreeMap<String, record::OptionValue> {
    all.into_iter().filter_map(option).collect()
}

/// `None` for an option without a value.
fn option((key, value): (String, OptionValue)) -> Option<(String, record::OptionValue)> {
    let value = match value {
        OptionValue::None => return None,
        OptionValue::Bool(on) => record::OptionValue::Bool(on),
        OptionValue::Number(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
            record::OptionValue::Int(value as i64)
        }
        OptionValue::Number(value) => record::OptionValue::Number(value),
        OptionValue::Text(text) if key.ends_with("password") && !text.is_empty() => {
            record::OptionValue::Text("***".to_owned())
        }
        // A URL may contain a password.
        OptionValue::Text(text) => record::OptionValue::Text(record::text_without_secrets(&text)),
        OptionValue::List(items) => record::OptionValue::List(items),
    };
    Some((key, value))
}

/// The default of an option, for the record's identity.
fn default(of: (String, OptionValue)) -> Option<Attribute> {
    let (name, value) = option(of)?;
    Some(Attribute { default: Some(value.to_string()), ..Attribute::unknown(AttributeScope::Option, &name) })
}

/// The machine of the load generator.
pub fn this_machine() -> record::Environment {
    let host = HostFacts::get();
    record::Environment {
        host: record::Host {
            name: host.name,
            kernel: host.kernel,
            cpu_model: host.cpu,
            cpus: u32::try_from(host.cpus).unwrap_or(u32::MAX),
            cpu_list: host.cpu_list,
            memory_bytes: host.memory_bytes,
        },
        started: None,
        trial: None,
        facts: telemetry::machine_facts(),
        servers: Vec::new(),
    }
}

/// Where a database is, as seen from here.
pub fn place(target: &Target) -> Place {
    let local = |address: &Address| match address {
        Address::Tcp(address) => address.ip().is_loopback(),
        Address::Unix(_) => true,
    };
    match target.addresses.as_slice() {
        [] => Place::Embedded,
        addresses if addresses.iter().all(local) => Place::Local,
        _ => Place::Remote,
    }
}

fn stage_of(stage: &StageOutcome, names: &Outcome, start: Time, intervals: Vec<record::Interval>) -> record::Stage {
    let named = |tally: &Tally| {
        let mut tally = tally.at_rest();
        tally.name(&names.types, &names.counters);
        tally
    };
    let mut total = named(&stage.total);
    // The generator is known when the stage is over.
    if let (0, Some(last)) = (stage.generator.workers, stage.intervals.last()) {
        add_under_way(&mut total, last);
    }
    record::Stage {
        sessions: stage.sessions,
        rate_per_s: stage.rate,
        started: after(start, stage.started),
        start_ns: Some(stage.started.0),
        measured_ns: stage.measured.0,
        total,
        targets: stage.targets.iter().map(named).collect(),
        session_transactions_min: stage.session_transactions.0,
        session_transactions_max: stage.session_transactions.1,
        generator: stage.generator,
        halts_ns: stage.halts.as_ref().map(|all| all.iter().map(|(from, to)| [from.0, to.0]).collect()),
        intervals,
    }
}

/// What was waiting and in flight at the end of the last interval of a stage in progress.
fn add_under_way(total: &mut Tally, last: &assay_engine::Interval) {
    total.due += last.carried;
    let under_way = total.due.saturating_sub(total.accounted());
    let waiting = under_way.min(last.measured.backlog);
    total.unstarted += waiting;
    total.unfinished += under_way - waiting;
}

/// `None` for another kind of declaration.
fn rule(declaration: &Declaration) -> Option<record::Rule> {
    let Declaration::Rule(rule) = declaration else { return None };
    let measure = match rule.measure.clone() {
        Measure::Share { part, whole } => record::Measure::Share { part, whole },
        Measure::Mean { of } => record::Measure::Mean { of },
        Measure::Mix { of } => record::Measure::Mix { of },
        Measure::RolledBack { of } => record::Measure::RolledBack { of },
        Measure::Percentile { of, ppm } => record::Measure::Percentile { of, ppm },
        Measure::TableShare { part, whole } => record::Measure::TableShare { part, whole },
        Measure::Growth { total, of, most } => record::Measure::Growth { total, of, most },
        Measure::Rate { of } => record::Measure::Rate { of },
    };
    let finite = |bound: Option<f64>| bound.filter(|bound| bound.is_finite());
    let (name, clause) = (rule.name.clone(), rule.clause.clone());
    Some(record::Rule { name, clause, measure, low: finite(rule.low), high: finite(rule.high) })
}

/// The actual values of tables, by option, are those of the run; what was asked for otherwise is kept beside them.
pub fn put_found(record: &mut Record, found: BTreeMap<String, record::OptionValue>) {
    // 0 asks for what there is, a negative number or an empty text for what the workload decides.
    let asks = |asked: &record::OptionValue| match asked {
        record::OptionValue::Int(number) => *number > 0,
        record::OptionValue::Text(text) => !text.is_empty(),
        _ => true,
    };
    for (name, actual) in found {
        let asked = record.manifest.options.insert(name.clone(), actual.clone());
        if let Some(asked) = asked.filter(|asked| *asked != actual && asks(asked)) {
            record.manifest.asked.entry(name.clone()).or_insert(asked);
        }
        record.manifest.found.get_or_insert_default().insert(name);
    }
}

/// The actual values of tables, by option: one, or a list if servers differ.
fn found(declarations: &[Declaration]) -> BTreeMap<String, record::OptionValue> {
    let mut all: BTreeMap<&str, Vec<&OptionValue>> = BTreeMap::new();
    for declaration in declarations {
        if let Declaration::Found(name, value) = declaration {
            all.entry(name).or_default().push(value);
        }
    }
    let value = |mut values: Vec<&OptionValue>| {
        if let [value] = values[..] {
            return value.clone();
        }
        let number = |value: &OptionValue| if let OptionValue::Number(value) = value { *value } else { f64::INFINITY };
        values.sort_by(|one, other| number(one).total_cmp(&number(other)));
        let text = |value: &&OptionValue| match value {
            OptionValue::Text(text) => text.clone(),
            value => number(value).to_string(),
        };
        OptionValue::List(values.iter().map(text).collect())
    };
    all.into_iter().filter_map(|(name, values)| option((name.to_owned(), value(values)))).collect()
}

/// `None` for another kind of declaration.
fn rate(declaration: &Declaration) -> Option<record::Rate> {
    let Declaration::Rate(rate) = declaration else { return None };
    Some(record::Rate {
        name: rate.name.clone(),
        of: rate.of.clone(),
        rolled_back: rate.rolled_back,
        per_ns: rate.per.0,
        nominal: rate.nominal.filter(|nominal| nominal.is_finite()),
    })
}
