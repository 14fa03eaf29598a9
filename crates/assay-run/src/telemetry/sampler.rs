//! When to sample, and where readings are stored.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_io::Clock;
use assay_io::process::Usage;
use assay_record::{
    Absent, Cost, Intervention, KnownScope, LogLine, Reading, Scope, ScopeKind, ScopeReadings, Series, StatementPlans,
    StatementUse, Unit, WaitEvent, Waits,
};
use assay_seam::Nanos;

/// Between two samples.
pub(super) const EVERY: Nanos = Nanos::from_secs(1);

/// More lines of a server's log than these are counted, but not kept.
const LOG_LINES_MAX: usize = 500;

/// From the run to a sampler.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// A stage comes next: get ready for it, then drop the sender.
    Open(Sender<()>),
    /// A stage will be measured from this instant on, since the start of the run.
    Begin(Nanos),
    /// The stage is over.
    End,
    /// The run is over.
    Stop,
}

/// Where in a stage a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    First,
    Within,
    Last,
}

/// How much of a value is our own work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    Nothing,
    /// This much since the start of the run.
    Part(u64),
    /// Some.
    Unknown,
}

/// A source of samples.
pub(super) trait SampleSource {
    /// Gets ready for a stage; also after an error, once per sample.
    fn open(&mut self, readings: &mut Readings);
    /// Reads everything.
    fn sample(&mut self, moment: Moment, readings: &mut Readings);
    /// How long until the next observation of waits; `None`: never.
    fn look_every(&self) -> Option<Nanos> {
        None
    }
    /// Observes what sessions wait for.
    fn look(&mut self, _: &mut Readings) {}
    /// Releases what a stage needed.
    fn close(&mut self, _: &mut Readings) {}
}

/// The readings of one sample.
#[derive(Debug, Default)]
pub(super) struct Readings {
    values: Vec<(&'static str, String, u64, Own)>,
    absent: BTreeMap<String, String>,
    looks: u32,
    waits: BTreeMap<String, u32>,
    samples_waits: bool,
    log: Vec<String>,
    uses: Vec<StatementUse>,
    interventions: Vec<(String, Option<String>)>,
    plans: Vec<StatementPlans>,
    pub(super) statements: u64,
    pub(super) statements_ns: u64,
    /// What the server spent on our connection, where that is known.
    server_cpu: Option<Nanos>,
}

impl Readings {
    /// The server spent this much CPU time on our connection.
    pub(super) fn server_spent(&mut self, cpu: Nanos) {
        self.server_cpu = Some(self.server_cpu.unwrap_or_default() + cpu);
    }

    /// A value, and its source.
    pub(super) fn put(&mut self, metric: &'static str, source: &str, value: u64) {
        self.put_with(metric, source, value, Own::Nothing);
    }

    /// A value that may include our own work.
    pub(super) fn put_with(&mut self, metric: &'static str, source: &str, value: u64, own: Own) {
        self.values.push((metric, source.to_owned(), value, own));
    }

    /// A metric that cannot be read. The first reason stays.
    pub(super) fn lack(&mut self, metric: &str, reason: &str) {
        self.absent.entry(metric.to_owned()).or_insert_with(|| reason.to_owned());
    }

    /// Something was changed on the server; the second statement changes it back.
    pub(super) fn intervened(&mut self, statement: String, undone: Option<String>) {
        self.interventions.push((statement, undone));
    }

    /// A line of the server's log.
    pub(super) fn logged(&mut self, line: String) {
        self.log.push(line);
    }

    #[cfg(test)]
    pub(super) fn lines(self) -> Vec<String> {
        self.log
    }

    /// What the server has counted for its statements.
    pub(super) fn counted(&mut self, uses: Vec<StatementUse>) {
        self.uses = uses;
    }

    /// How the server executes a statement of the load.
    pub(super) fn planned(&mut self, plans: StatementPlans) {
        self.plans.push(plans);
    }

    /// One observation: sessions by what they wait for.
    pub(super) fn saw(&mut self, sessions: impl IntoIterator<Item = (String, u32)>) {
        self.looks += 1;
        for (name, number) in sessions {
            *self.waits.entry(name).or_default() += number;
        }
    }

    /// Waits are sampled, even if none was seen yet.
    pub(super) fn samples_waits(&mut self) {
        self.samples_waits = true;
    }
}

/// The readings of a run, as they accumulate.
pub(super) struct Shared {
    scope: Scope,
    series: HashMap<String, usize>,
    absent: BTreeMap<String, String>,
    pub(super) cost: Cost,
    pub(super) interventions: Vec<Intervention>,
    pub(super) plans: Vec<StatementPlans>,
}

impl Shared {
    pub(super) fn new(kind: ScopeKind, target: usize) -> Shared {
        let scope = Scope {
            kind,
            target: u32::try_from(target).unwrap_or(u32::MAX),
            began_ns: Vec::new(),
            ended_ns: Vec::new(),
            series: Vec::new(),
            absent: Vec::new(),
            waits: None,
            log: Vec::new(),
            log_left_out: 0,
            statements: Vec::new(),
        };
        Shared {
            scope,
            series: HashMap::new(),
            absent: BTreeMap::new(),
            cost: Cost::default(),
            interventions: Vec::new(),
            plans: Vec::new(),
        }
    }

    /// Leaves out the first samples, which must be known already.
    pub(super) fn forget(&mut self, samples: usize, known: &mut KnownScope) {
        self.scope.forget(samples);
        known.forget(samples);
    }

    /// Leaves out the samples that are known, and are kept elsewhere.
    pub(super) fn let_go(&mut self, known: &mut KnownScope) {
        let samples = known.samples();
        self.scope.forget(samples);
        known.let_go(samples);
    }

    /// What is new, and whether anything is. A metric that was finally read is not absent.
    pub(super) fn news(&self, known: &mut KnownScope) -> (ScopeReadings, bool) {
        let (readings, has_grown) = known.news(&self.scope);
        let absent = self.absent.iter().filter(|(metric, _)| !self.series.contains_key(*metric));
        let absent = absent.map(|(metric, reason)| Absent { metric: metric.clone(), reason: reason.clone() });
        (ScopeReadings { absent: absent.collect(), ..readings }, has_grown)
    }

    fn keep(&mut self, (began, ended): (Nanos, Nanos), readings: &mut Readings, cpu: Nanos) {
        let before = self.scope.began_ns.len();
        self.scope.began_ns.push(began.0);
        self.scope.ended_ns.push(ended.0);
        for (name, source, value, own) in readings.values.drain(..) {
            let at = *self.series.entry(name.to_owned()).or_insert_with(|| {
                self.scope.series.push(new_series(name, source, before));
                self.scope.series.len() - 1
            });
            let series = &mut self.scope.series[at];
            series.values.resize(before, None);
            series.values.push(Some(value));
            match own {
                Own::Nothing => {}
                Own::Part(part) => {
                    series.own.resize(before, None);
                    series.own.push(Some(part));
                }
                Own::Unknown => series.includes_own = true,
            }
        }
        for series in &mut self.scope.series {
            series.values.resize(before + 1, None);
            if !series.own.is_empty() {
                series.own.resize(before + 1, None);
            }
        }
        if readings.samples_waits && self.scope.waits.is_none() {
            self.scope.waits = Some(Waits { looks: vec![0; before], events: Vec::new() });
        }
        if let Some(waits) = &mut self.scope.waits {
            waits.looks.push(std::mem::take(&mut readings.looks));
            for (name, sessions) in std::mem::take(&mut readings.waits) {
                let at = waits.events.iter().position(|event| event.name == name).unwrap_or_else(|| {
                    waits.events.push(WaitEvent { name, sessions: vec![0; before] });
                    waits.events.len() - 1
                });
                waits.events[at].sessions.push(sessions);
            }
            for event in &mut waits.events {
                event.sessions.resize(before + 1, 0);
            }
        }
        let room = LOG_LINES_MAX.saturating_sub(self.scope.log.len());
        self.scope.log_left_out += readings.log.len().saturating_sub(room) as u64;
        let lines = readings.log.drain(..).take(room).map(|text| LogLine { at_ns: ended.0, text });
        self.scope.log.extend(lines);
        self.keep_rest(readings, cpu);
    }

    /// What does not belong to a sample.
    fn keep_rest(&mut self, readings: &mut Readings, cpu: Nanos) {
        self.absent.append(&mut readings.absent);
        if !readings.uses.is_empty() {
            self.scope.statements = std::mem::take(&mut readings.uses);
        }
        for (statement, undone) in readings.interventions.drain(..) {
            match self.interventions.iter_mut().find(|known| known.statement == statement) {
                Some(known) => known.undone = undone,
                None => {
                    self.interventions.push(Intervention { target: self.scope.target, statement, undone });
                }
            }
        }
        self.plans.append(&mut readings.plans);
        self.cost.statements += std::mem::take(&mut readings.statements);
        self.cost.statements_ns += std::mem::take(&mut readings.statements_ns);
        self.cost.cpu_ns = cpu.0;
        if let Some(spent) = readings.server_cpu.take() {
            self.cost.server_cpu_ns = Some(self.cost.server_cpu_ns.unwrap_or(0) + spent.0);
        }
    }
}

fn new_series(name: &str, source: String, before: usize) -> Series {
    let metric = assay_telemetry::metric(name).expect("every metric that is read has a name");
    Series {
        metric: name.to_owned(),
        unit: match metric.unit {
            assay_telemetry::Unit::Count => Unit::Count,
            assay_telemetry::Unit::Bytes => Unit::Bytes,
            assay_telemetry::Unit::Us => Unit::Us,
        },
        reading: match metric.reading {
            assay_telemetry::Reading::Counter => Reading::Counter,
            assay_telemetry::Reading::Gauge => Reading::Gauge,
        },
        source,
        values: vec![None; before],
        own: Vec::new(),
        includes_own: false,
    }
}

/// Samples one source until it is told to stop.
pub(super) struct Sampler {
    shared: Arc<Mutex<Shared>>,
    clock: Clock,
    started: Nanos,
}

/// The end of a stage is not sampled again if the last sample is this recent.
const YOUNG: Nanos = Nanos::from_millis(200);

impl Sampler {
    pub(super) fn new(shared: Arc<Mutex<Shared>>, clock: Clock, started: Nanos) -> Sampler {
        Sampler { shared, clock, started }
    }

    /// Since the start of the run.
    fn now(&self) -> Nanos {
        self.clock.now() - self.started
    }

    pub(super) fn run(self, mut source: impl SampleSource, inbox: &Receiver<Command>) {
        let mut readings = Readings::default();
        // When the next sample and the next observation are due; `None` between stages.
        let mut due: Option<(Nanos, Nanos)> = None;
        let (mut last, mut moment) = (Nanos::ZERO, Moment::First);
        loop {
            let command = match due {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((sample, look)) => {
                    let pause = sample.min(look) - self.now();
                    inbox.recv_timeout(Duration::from_nanos(pause.0))
                }
            };
            match command {
                Ok(Command::Open(opening)) => {
                    source.open(&mut readings);
                    drop(opening);
                }
                Ok(Command::Begin(from)) => {
                    source.open(&mut readings);
                    moment = Moment::First;
                    due = Some((from, source.look_every().map_or(Nanos::MAX, |every| from + every)));
                }
                Ok(Command::End) => {
                    if due.take().is_some() {
                        if self.now() - last >= YOUNG {
                            self.sample(&mut source, Moment::Last, &mut readings);
                        }
                        self.close(&mut source, &mut readings);
                    }
                }
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    return self.close(&mut source, &mut readings);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let Some((sample, look)) = due else { continue };
                    let now = self.now();
                    if now >= sample {
                        last = self.sample(&mut source, moment, &mut readings);
                        moment = Moment::Within;
                        // Samples missed while the source did not answer are skipped.
                        let missed = (self.now() - sample).0 / EVERY.0;
                        let next = sample + Nanos((missed + 1) * EVERY.0);
                        due = Some((next, look));
                    } else if now >= look {
                        source.look(&mut readings);
                        let every = source.look_every().unwrap_or(EVERY);
                        due = Some((sample, self.now().max(look) + every));
                    }
                }
            }
        }
    }

    fn close(&self, source: &mut impl SampleSource, readings: &mut Readings) {
        source.close(readings);
        self.shared.lock().expect("samplers do not panic").keep_rest(readings, Usage::of_thread().cpu());
    }

    fn sample(&self, source: &mut impl SampleSource, moment: Moment, readings: &mut Readings) -> Nanos {
        let began = self.now();
        source.sample(moment, readings);
        let ended = self.now();
        let cpu = Usage::of_thread().cpu();
        self.shared.lock().expect("samplers do not panic").keep((began, ended), readings, cpu);
        ended
    }
}

#[cfg(test)]
mod tests {
    use assay_record::Telemetry;

    use super::*;

    /// As a run does: the samplers keep nothing that is known, and the record gets everything.
    #[test]
    fn what_is_let_go_of_is_whole_where_it_is_kept() {
        let collect = |lets_go: bool| {
            let (mut shared, mut known) = (Shared::new(ScopeKind::Server, 0), KnownScope::default());
            let (mut telemetry, mut readings) = (Telemetry::default(), Readings::default());
            for at in 1..=6 {
                readings.put("commits", "a", at);
                if at > 3 {
                    readings.put_with("deadlocks", "b", 9, Own::Part(at));
                    readings.saw([("Lock".to_owned(), 2)]);
                    readings.samples_waits();
                }
                if at > 4 {
                    readings.saw([("IO".to_owned(), 1)]);
                }
                shared.keep((Nanos(at), Nanos(at)), &mut readings, Nanos(1));
                let scopes = vec![shared.news(&mut known).0];
                let (cost, interventions, plans) = (shared.cost, Vec::new(), Vec::new());
                assay_record::Readings { full: false, every_ns: 1, cost, interventions, plans, scopes }
                    .put_into(&mut telemetry);
                if lets_go {
                    shared.let_go(&mut known);
                    assert_eq!(shared.scope.began_ns.len(), 0);
                }
            }
            telemetry
        };
        assert_eq!(collect(true), collect(false));
    }

    #[test]
    fn what_is_forgotten_here_and_there_leaves_the_rest_together() {
        let (mut shared, mut known) = (Shared::new(ScopeKind::Server, 0), KnownScope::default());
        let (mut telemetry, mut readings) = (Telemetry::default(), Readings::default());
        for at in 1..=4 {
            readings.put("commits", "a", at);
            if at == 4 {
                readings.put("deadlocks", "b", 9);
            }
            shared.keep((Nanos(at), Nanos(at)), &mut readings, Nanos(1));
            let scopes = vec![shared.news(&mut known).0];
            let (cost, interventions, plans) = (shared.cost, Vec::new(), Vec::new());
            assay_record::Readings { full: false, every_ns: 1, cost, interventions, plans, scopes }
                .put_into(&mut telemetry);
            if at == 3 {
                shared.forget(2, &mut known);
                telemetry.scopes[0].forget(2);
            }
        }
        let scope = telemetry.scopes.remove(0);
        let values: Vec<&[Option<u64>]> = scope.series.iter().map(|series| series.values.as_slice()).collect();
        assert_eq!((&scope.began_ns[..], &values[..]), (&[3, 4][..], &[&[Some(3), Some(4)][..], &[None, Some(9)]][..]));
    }

    #[test]
    fn a_series_that_begins_late_or_pauses_has_gaps() {
        let mut shared = Shared::new(ScopeKind::Server, 0);
        let mut readings = Readings::default();
        readings.put("commits", "a", 5);
        readings.lack("deadlocks", "not yet");
        readings.lack("purge_lag", "no privilege");
        shared.keep((Nanos(1), Nanos(2)), &mut readings, Nanos(7));
        readings.put("deadlocks", "b", 1);
        readings.samples_waits();
        readings.saw([("CPU".to_owned(), 3), ("IO:WALSync".to_owned(), 1)]);
        readings.saw([("CPU".to_owned(), 2)]);
        shared.keep((Nanos(11), Nanos(12)), &mut readings, Nanos(9));
        readings.put_with("commits", "a", 6, Own::Part(2));
        shared.keep((Nanos(21), Nanos(22)), &mut readings, Nanos(9));
        let mut telemetry = Telemetry::default();
        let scopes = vec![shared.news(&mut KnownScope::default()).0];
        let (cost, interventions, plans) = (shared.cost, Vec::new(), Vec::new());
        assay_record::Readings { full: false, every_ns: 1, cost, interventions, plans, scopes }
            .put_into(&mut telemetry);
        let scope = telemetry.scopes.remove(0);
        let values = |at: usize| (scope.series[at].metric.as_str(), scope.series[at].values.as_slice());
        assert_eq!(values(0), ("commits", &[Some(5), None, Some(6)][..]));
        assert_eq!(values(1), ("deadlocks", &[None, Some(1), None][..]));
        assert_eq!((&scope.series[0].own[..], &scope.series[1].own[..]), (&[None, None, Some(2)][..], &[][..]));
        assert_eq!(scope.absent, [Absent { metric: "purge_lag".into(), reason: "no privilege".into() }]);
        let waits = scope.waits.unwrap();
        assert_eq!(waits.looks, [0, 2, 0]);
        let events: Vec<_> = waits.events.iter().map(|event| (event.name.as_str(), &event.sessions[..])).collect();
        assert_eq!(events, [("CPU", &[0, 5, 0][..]), ("IO:WALSync", &[0, 1, 0][..])]);
    }
}
