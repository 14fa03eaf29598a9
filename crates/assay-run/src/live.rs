//! A run in progress: its interval lines, its partial record and its journal.
//!
//! The record is on disk from the start and grows every few seconds: a run that is killed leaves what it had measured.
//! This also detects an unwritable path before ten minutes are wasted.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assay_engine::{End, Interval, Outcome, Plan, RunError, Stage, Target};
use assay_io::Clock;
use assay_process::bar::Bar;
use assay_process::diagnostics::Trouble;
use assay_process::interrupt;
use assay_process::underway::Announced;
use assay_process::{events, files, terminal};
use assay_record::{
    Connected, DEFAULT_FOLDER, Event, Existing, Isolation, Load, Moment, Place, Record, RecordFile, Scope, Search,
    StageInterval, Started, Status, Totals, WriteError, history_path,
};
use assay_report::{LineOf, LiveMetrics, Progress, Promise};
use assay_seam::Nanos;
use assay_spec::{OutputSpec, TelemetryLevel, TelemetrySpec, values};

use crate::client::{Client, words_of};
use crate::isolation::KeptHistory;
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::served::Served;
use crate::telemetry::{Beside, HostUrl, Samplers};
use crate::top::OwnView;
use crate::{identity, plan, record_of, server_settings};

/// The record so far, and its file.
pub struct Live {
    record: Record,
    /// `None`: no record is wanted.
    file: Option<RecordFile>,
    appended: Instant,
    /// Events of a run that several processes share, not yet in its file; `None`: this process measures alone.
    shared: Option<Vec<Event>>,
    /// Intervals since then, in total: a starved process reports many at once.
    unwritten: Nanos,
    /// The same since anything was appended.
    unseen: (Instant, Nanos),
    lines: Option<usize>,
    bar: Option<Bar>,
    /// The databases have been named, or nobody wants to see them.
    is_named: bool,
    /// Duration of the trials before this one.
    elapsed_trials: u64,
    metrics: Option<(Metrics, LiveMetrics)>,
    journal: Option<Journal>,
    history: KeptHistory,
    /// The clock of the run, and its start.
    clock: Option<(Clock, Nanos)>,
    /// `None`: nothing is sampled.
    beside: Option<Beside>,
    samplers: Option<Samplers>,
    /// The first samples are in the file alone.
    lets_go: bool,
    /// The view on the terminal, if wanted.
    view: Option<OwnView>,
    /// The page, if wanted.
    served: Option<Served>,
    /// How other programs find this run; `None`: there is no folder for announcements.
    announced: Option<Announced>,
    /// Names of the transaction types, as last told.
    types: Vec<String>,
}

/// The results of a finished run.
pub struct Left {
    /// The record of everything measured.
    pub record: Record,
    /// Its path; `None` if it is not written.
    pub path: Result<Option<PathBuf>, Trouble>,
    /// Whether the requested journal is complete.
    pub journal: Result<(), Trouble>,
}

/// With intervals of a second, the record grows every five seconds.
const APPEND_EVERY: Duration = Duration::from_millis(4500);
/// Samples of telemetry in memory: the file has them all, and a day of them would take a gigabyte.
const SAMPLES_KEPT: usize = 300;
/// Those who read a record that grows are a second late, not five.
const SEEN_EVERY: Duration = Duration::from_millis(900);
/// The table header is repeated after this many lines, so that it stays on the screen.
const LINES_PER_HEAD: usize = 20;

impl Live {
    /// Starts with what is known before the run, and writes it; starts the metrics server if wanted. `trial`: which
    /// one, and of how many.
    pub fn begin(
        record: Record,
        output: &OutputSpec,
        telemetry: &TelemetrySpec,
        trial: Option<(u64, u64)>,
    ) -> Result<Live, Trouble> {
        let metrics = match output.metrics_listen {
            Some(address) => Some((Metrics::listen(address)?, LiveMetrics::default())),
            None => None,
        };
        let served = output.serve.map(Served::own).transpose()?;
        let beside = beside(telemetry)?;
        let journal = output.journal.clone().map(Journal::create).transpose()?;
        let file = match &output.record {
            _ if output.no_record => None,
            Some(path) => {
                let file = RecordFile::begin(path, &record, existing(output.force)).map_err(unwritable)?;
                // That of a record that was replaced.
                let _ = std::fs::remove_file(history_path(path));
                Some(file)
            }
            None => Some(RecordFile::begin_new(Path::new(DEFAULT_FOLDER), &record).map_err(unwritable)?),
        };
        let path = file.as_ref().map(RecordFile::path);
        path.into_iter().for_each(interrupt::record_is_in);
        let manifest = &record.manifest;
        let announced = Announced::begin(&manifest.workload, &manifest.targets, path, record.started);
        let source = path.map_or_else(|| "no record".to_owned(), |path| path.display().to_string());
        if let Some(served) = &served {
            served.begins(source.clone());
            if !output.quiet && trial.is_none_or(|(number, _)| number == 1) {
                terminal::say(&format!("page: {}\n", served.url));
            }
        }
        let view = if output.top { OwnView::begin(source) } else { None };
        let bar = if output.quiet || view.is_some() { None } else { Bar::begin(course(&record, trial)) };
        let lines = (!output.quiet && bar.is_none() && view.is_none()).then_some(0);
        let elapsed_trials = bar.as_ref().map_or(0, Bar::elapsed_ns);
        let mut live = Live {
            record,
            file,
            appended: Instant::now(),
            shared: None,
            unwritten: Nanos::ZERO,
            unseen: (Instant::now(), Nanos::ZERO),
            lines,
            bar,
            is_named: output.quiet,
            elapsed_trials,
            metrics,
            journal,
            history: KeptHistory::default(),
            clock: None,
            beside,
            samplers: None,
            lets_go: false,
            view,
            served,
            announced,
            types: Vec::new(),
        };
        live.tell(Event::Started(Box::new(Started::of(&live.record))));
        Ok(live)
    }

    /// Other processes measure: the file follows their intervals, and their records take its place at the end.
    pub fn of_several(mut self) -> Live {
        self.shared = self.file.is_some().then(Vec::new);
        self
    }

    /// Passes an event on to everybody who watches: the terminal, Prometheus, and the process that started this one.
    fn tell(&mut self, event: Event) {
        if let Some(shared) = &mut self.shared {
            shared.push(event.clone());
        }
        if let Some((served, metrics)) = &mut self.metrics {
            metrics.take(&event);
            if matches!(event, Event::Started(_) | Event::Interval(_)) {
                served.set(metrics.text());
            }
        }
        if let Event::Interval(interval) = &event {
            self.show(&interval.interval);
        }
        events::tell(|| event);
    }

    /// Whether a view has the terminal. If the user has left it, lines go on.
    pub fn has_view(&mut self) -> bool {
        if self.view.as_ref().is_some_and(|view| !view.is_shown()) {
            self.view = None;
            self.lines = Some(0);
        }
        self.view.is_some()
    }

    /// The progress line on a terminal, if there is one.
    pub fn bar(&self) -> Option<&Bar> {
        self.bar.as_ref()
    }

    /// The journal, if wanted.
    pub fn journal(&mut self) -> Option<&mut Journal> {
        self.journal.as_mut()
    }

    /// Names the databases once, above everything else that is printed about the load. One that was started for the
    /// run, or is only there because none was given, has been named before.
    fn name_databases(&mut self) {
        if self.view.is_some() || std::mem::replace(&mut self.is_named, true) {
            return;
        }
        let urls = self.record.manifest.spec.as_ref().and_then(|spec| spec["target"]["urls"].as_array());
        let urls: Vec<&str> = urls.into_iter().flatten().filter_map(|url| url.as_str()).collect();
        if urls.is_empty() {
            return;
        }
        let heading = if urls.len() == 1 { "database" } else { "databases" };
        let say = || terminal::say(&format!("{heading}: {}\n", urls.join(", ")));
        match &self.bar {
            Some(bar) => bar.above(say),
            None => say(),
        }
    }

    /// The run starts: servers are sampled, if there are any. Instants count from `started` on `clock`.
    pub fn begins(&mut self, plan: &Plan, clock: Clock, started: Nanos) {
        self.clock = Some((clock, started));
        if let (Some(view), Some(target)) = (&self.view, plan.targets.first()) {
            view.ask(target.clone());
        }
        if let Some(beside) = &self.beside {
            let places: Vec<Place> = self.record.environment.servers.iter().map(|server| server.place).collect();
            self.samplers = Samplers::start(&plan.targets, &places, beside, clock, started);
        }
    }

    /// Waits, not long, until telemetry is ready for a stage. Returns how long after the call it can start.
    pub fn get_ready(&self) -> Nanos {
        match (&self.samplers, self.clock) {
            (Some(samplers), Some((clock, _))) => samplers.get_ready(clock),
            _ => Nanos::ZERO,
        }
    }

    /// A stage starts: on a ladder, in a search, or with a warm-up, that gets a line.
    pub fn stage_begins(
        &mut self,
        stage: usize,
        (sessions, rate): (u32, Option<f64>),
        warmup: Nanos,
        measured_from: Nanos,
    ) {
        if let Some(samplers) = &self.samplers {
            samplers.stage_begins(measured_from);
        }
        if let Some((clock, started)) = self.clock {
            let ahead = started + measured_from - clock.now();
            let mut event = events::stage(stage, sessions, rate, Duration::from_nanos(ahead.0));
            if let Event::StageStarted(stage) = &mut event {
                stage.start_ns = Some(measured_from.0);
            }
            self.tell(event);
        }
        let manifest = &self.record.manifest;
        let stages = manifest.sessions.len();
        let sessions = if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") };
        if let Some(bar) = &self.bar {
            let before = elapsed_before(&self.record, stage);
            bar.set_elapsed(self.elapsed_trials.saturating_add(before));
            let label = match rate {
                _ if manifest.search.is_none() && stages == 1 => None,
                _ if manifest.search.is_none() => Some(format!("step {} of {stages}: {sessions}", stage + 1)),
                Some(rate) => Some(format!("search, stage {}: {rate} tx/s due", stage + 1)),
                None => Some(format!("search, stage {}: {sessions}", stage + 1)),
            };
            bar.change(|progress| progress.label = label.unwrap_or(std::mem::take(&mut progress.label)));
        }
        if manifest.search.is_some() || stages > 1 || warmup > Nanos::ZERO {
            self.name_databases();
        }
        let manifest = &self.record.manifest;
        let Some(lines) = &mut self.lines else { return };
        *lines = 0;
        if manifest.search.is_some() {
            let what = rate.map_or(sessions, |rate| format!("{rate} tx/s"));
            terminal::say(&format!("stage {} of the search: {what}\n", stage + 1));
        } else if stages > 1 {
            terminal::say(&format!("step {} of {stages}: {sessions}\n", stage + 1));
        }
        if warmup > Nanos::ZERO {
            terminal::say(&format!("warming up for {}\n", values::display_duration(warmup)));
        }
    }

    /// An interval is over: its line, its metrics, and the record if it is time. A failed write is tried again later;
    /// only the last one must succeed.
    pub fn interval(&mut self, stage: usize, interval: &Interval, so_far: &Outcome) {
        self.tell_interval(stage, &interval.measured, &so_far.types);
        self.unwritten += Nanos(interval.measured.length_ns);
        self.unseen.1 += Nanos(interval.measured.length_ns);
        if self.appended.elapsed().max(Duration::from_nanos(self.unwritten.0)) >= APPEND_EVERY {
            self.append(so_far, Moment::Underway);
        } else if self.unseen.0.elapsed().max(Duration::from_nanos(self.unseen.1.0)) >= SEEN_EVERY {
            self.append(so_far, Moment::Interval);
        }
    }

    /// The same of a run that several processes share.
    pub fn interval_of_several(&mut self, stage: usize, interval: &assay_record::Interval, types: &[String]) {
        self.tell_interval(stage, interval, types);
        if self.unseen.0.elapsed() >= SEEN_EVERY
            && let (Some(shared), Some(file)) = (&mut self.shared, &mut self.file)
            && file.follow_up(shared).is_ok()
        {
            shared.clear();
            self.unseen.0 = Instant::now();
        }
    }

    /// An interval is over. `types`: names of the transaction types so far.
    fn tell_interval(&mut self, stage: usize, interval: &assay_record::Interval, types: &[String]) {
        if self.types != types {
            self.types = types.to_vec();
            self.tell(Event::Connected(Box::new(Connected { types: types.to_vec(), ..Connected::of(&self.record) })));
        }
        self.read();
        self.take_notes();
        let (stage, interval) = (stage as u32, interval.clone());
        self.tell(Event::Interval(Box::new(StageInterval { stage, interval })));
    }

    /// Takes what the samplers have read.
    fn read(&mut self) {
        if let Some(readings) = self.samplers.as_mut().and_then(Samplers::news) {
            if let Some(samplers) = &mut self.samplers {
                samplers.let_go();
            }
            let telemetry = self.record.telemetry.get_or_insert_default();
            readings.clone().put_into(telemetry);
            telemetry.scopes.iter_mut().for_each(Scope::align);
            self.tell(Event::Readings(Box::new(readings)));
        }
    }

    /// Takes the notes that the user left for this run.
    fn take_notes(&mut self) {
        for note in self.announced.as_ref().map(Announced::notes).unwrap_or_default() {
            self.record.notes.push(note.clone());
            self.tell(Event::Noted(note));
        }
    }

    /// Its line, or its part of the bar.
    fn show(&mut self, interval: &assay_record::Interval) {
        // A run that fails immediately leaves a fraction of an interval with nothing in it.
        let sliver =
            interval.length_ns < self.record.manifest.interval_ns / 2 && interval.transactions.iter().all(|n| *n == 0);
        if sliver {
            return;
        }
        if self.has_view() {
            return;
        }
        self.name_databases();
        if let Some(lines) = self.lines.as_mut() {
            let manifest = &self.record.manifest;
            let open = matches!(manifest.load, Load::Open { .. }) || manifest.terminals.is_some();
            let of = match open {
                _ if !manifest.profile.is_empty() || manifest.trace.is_some() => LineOf::Varying,
                true => LineOf::Open,
                false => LineOf::Closed,
            };
            let head = lines.is_multiple_of(LINES_PER_HEAD).then(|| assay_report::interval_header(of) + "\n");
            let findings = assay_report::interval_findings(interval);
            let line = assay_report::interval_line(&findings, of);
            terminal::say(&format!("{}{line}\n", head.unwrap_or_default()));
            *lines += 1;
        }
        if let Some(bar) = &self.bar {
            bar.add(interval);
        }
    }

    /// A stage is over: write the record now; in a search, report the result.
    pub fn stage_ends(&mut self, so_far: &Outcome) {
        if let Some(samplers) = &self.samplers {
            samplers.stage_ends();
        }
        self.append(so_far, Moment::StageEnd);
        if self.record.manifest.search.is_some() {
            record_of::fill(&mut self.record, so_far, (Status::Running, None));
            let line = assay_report::search_so_far(&self.record).and_then(|found| assay_report::look_line(&found));
            let Some(line) = line else { return };
            match &self.bar {
                Some(bar) => bar.above(|| terminal::say(&format!("{line}\n"))),
                None if self.lines.is_some() => terminal::say(&format!("{line}\n")),
                None => {}
            }
        }
    }

    /// The next stage of a search; `None` if there is no search, or it is over.
    pub fn next_stage(&mut self, so_far: &Outcome) -> Option<Stage> {
        let search = self.record.manifest.search.clone()?;
        record_of::fill(&mut self.record, so_far, (Status::Running, None));
        let stages = &self.record.stages;
        match search {
            Search::Sessions { max } => assay_report::next_sessions(stages, max).map(Stage::of),
            Search::Rate { promises } => {
                let promises: Vec<Promise> = promises.iter().filter_map(|text| text.parse().ok()).collect();
                let sessions = stages.last()?.sessions;
                assay_report::next_rate(stages, &promises).map(|rate| Stage { sessions, rate: Some(rate) })
            }
        }
    }

    /// The run is over: writes the final record, ends the journal.
    pub fn finish(
        mut self,
        plan: &Plan,
        outcome: &Outcome,
        failure: Option<String>,
        isolation: Option<Isolation>,
    ) -> Left {
        self.record.isolation = isolation;
        std::mem::take(&mut self.history).finish(outcome.history.is_partial());
        record_of::fill(&mut self.record, outcome, record_of::status(&outcome.end, failure));
        self.close(plan, |target| is_away(target, outcome))
    }

    /// Ends a run of a fleet: `fill` adds the measurements of the agents to the record.
    pub fn finish_fleet(mut self, plan: &Plan, fill: impl FnOnce(&mut Record)) -> Left {
        fill(&mut self.record);
        let is_over = self.record.status == Status::Complete;
        self.close(plan, |_| !is_over)
    }

    /// What is known of servers, and everything to its file. `is_away`: a server that need not be asked.
    fn close(mut self, plan: &Plan, is_away: impl Fn(usize) -> bool) -> Left {
        if let Some(samplers) = &self.samplers {
            samplers.finish();
        }
        self.read();
        self.take_notes();
        self.view = None;
        for (number, (server, target)) in self.record.environment.servers.iter_mut().zip(&plan.targets).enumerate() {
            if !is_away(number) {
                server_settings::read(target, server.place).into_record(server);
            }
            let host = self.beside.as_ref().and_then(|beside| beside.hosts.get(number));
            server.facts.extend(host.map(HostUrl::facts).unwrap_or_default());
        }
        identity::write_down(&mut self.record);
        if let Some(served) = &self.served {
            served.over(self.record.clone());
        }
        if let (true, Some(file)) = (self.lets_go, &mut self.file) {
            // What is not in the file yet, then everything from there.
            let _ = file.append(&self.record, Moment::Interval);
            match Record::read(file.path()) {
                Ok(whole) => {
                    self.record.telemetry = whole.telemetry;
                    file.take_back();
                }
                Err(error) => terminal::warn(&format!(
                    "only the last minutes of telemetry are in the report: {error}; the record has all of it"
                )),
            }
        }
        let written = self.file.map(|file| match &self.shared {
            Some(_) => file.replace(&self.record),
            None => file.finish(&self.record),
        });
        let written = written.transpose().map_err(unwritable);
        let journal = self.journal.map_or(Ok(()), |journal| journal.finish(&self.record.manifest.workload));
        Left { record: self.record, path: written, journal }
    }

    /// The run never counted anything: leaves no record.
    pub fn discard(self) {
        if let Some(journal) = self.journal {
            journal.discard();
        }
        self.history.discard();
        if let Some(file) = self.file {
            file.discard();
        }
    }

    /// Appends transactions of the workload's history to the file beside the record. Returns an error, once, if that
    /// is not possible.
    pub fn history(&mut self, level: &str, words: &[u64]) -> Option<Trouble> {
        self.history.add(self.file.as_ref()?.path(), level, words)
    }

    fn append(&mut self, so_far: &Outcome, moment: Moment) {
        self.read();
        let Some(file) = &mut self.file else { return };
        record_of::fill(&mut self.record, so_far, (Status::Running, None));
        if file.append(&self.record, moment).is_ok() && self.shared.is_none() {
            for (number, scope) in self.record.telemetry.iter_mut().flat_map(|all| &mut all.scopes).enumerate() {
                let surplus = scope.began_ns.len().saturating_sub(SAMPLES_KEPT);
                // A tenth more, so that it is rarely done.
                if surplus > SAMPLES_KEPT / 10 && file.let_go(number, surplus) {
                    scope.forget(surplus);
                    self.lets_go = true;
                }
            }
        }
        self.unseen = (Instant::now(), Nanos::ZERO);
        if moment != Moment::Interval {
            (self.appended, self.unwritten) = (Instant::now(), Nanos::ZERO);
            let last = self.record.stages.len().saturating_sub(1);
            if let Some(totals) = Totals::of(&self.record, last) {
                events::tell_views(|| Event::Connected(Box::new(Connected::of(&self.record))));
                events::tell_views(|| Event::SoFar(Box::new(totals)));
            }
        }
    }
}

/// How long a pooler has to answer before the run.
const POOLER_MAX: Nanos = Nanos::from_secs(3);

/// What to sample beside the load.
pub fn beside(telemetry: &TelemetrySpec) -> Result<Option<Beside>, Trouble> {
    if telemetry.level == TelemetryLevel::Off {
        return Ok(None);
    }
    let poolers: Result<Vec<Target>, Trouble> =
        telemetry.poolers.iter().map(|url| plan::beside(url.reveal())).collect();
    let poolers = poolers?;
    for pooler in &poolers {
        if let Err(error) = Client::open(pooler, Clock::start(), POOLER_MAX) {
            terminal::warn(&format!(
                "--pooler {}: {}; without an answer, the record has no metrics of the pooler",
                pooler.database.display(),
                words_of(&error)
            ));
        }
    }
    let hosts: Result<Vec<HostUrl>, String> = telemetry.host_metrics.iter().map(|url| url.reveal().parse()).collect();
    let hosts = hosts.map_err(|reason| Trouble::usage(format!("--host-metrics: {reason}")))?;
    for reason in hosts.iter().filter_map(|host| host.check().err()) {
        terminal::warn(&format!(
            "--host-metrics: {reason}; without an answer, the record has no metrics of the server's machine"
        ));
    }
    Ok(Some(Beside { full: telemetry.level == TelemetryLevel::Full, poolers, hosts, is_console: false }))
}

/// The label of a run's progress bar. `trial`: which one, and of how many.
fn course(record: &Record, trial: Option<(u64, u64)>) -> Progress {
    let (number, trials) = trial.unwrap_or((1, 1));
    let manifest = &record.manifest;
    // A search does not know its number of stages.
    let time_ns = manifest.limit.time_ns.filter(|_| manifest.search.is_none());
    let whole = time_ns.map(|_| elapsed_before(record, manifest.sessions.len()));
    Progress {
        label: if trials > 1 { format!("trial {number} of {trials}") } else { String::new() },
        elapsed_ns: whole.unwrap_or(0).saturating_mul(number - 1),
        total_ns: whole.map(|whole| whole.saturating_mul(trials)),
        ..Progress::default()
    }
}

/// Planned duration of the previous stages.
fn elapsed_before(record: &Record, stage: usize) -> u64 {
    let manifest = &record.manifest;
    let each = manifest.warmup_ns.saturating_add(manifest.limit.time_ns.unwrap_or(0));
    each.saturating_mul(stage as u64)
}

/// Whether waiting for the server has just failed: it would not answer this either, and the user wants the run to end.
fn is_away(number: usize, outcome: &Outcome) -> bool {
    match &outcome.end {
        End::Complete => false,
        End::Failed(error) => matches!(error, RunError::Connect { target, .. } if *target == number),
        End::Interrupted => outcome.stages.last().is_some_and(|stage| {
            let tally = stage.targets.get(number).unwrap_or(&stage.total);
            tally.unfinished > 0
        }),
    }
}

/// Writes the record of a command that measures without a workload; `None`: none is wanted.
pub fn kept(record: &Record, output: &OutputSpec) -> Result<Option<PathBuf>, Trouble> {
    match &output.record {
        _ if output.no_record => Ok(None),
        Some(path) => record.create(path, existing(output.force)).map(|()| Some(path.clone())).map_err(unwritable),
        None => record.write_new(Path::new(DEFAULT_FOLDER)).map(Some).map_err(unwritable),
    }
}

/// Refuses to start anything whose record would replace another one.
pub fn may_write(path: Option<&Path>, force: bool) -> Result<(), Trouble> {
    let Some(path) = path else { return Ok(()) };
    assay_record::may_create(path, existing(force)).map_err(unwritable)?;
    files::may_write(path).map_err(|why| {
        Trouble::environment(format!("cannot write record {}: {why}", path.display()))
            .hint("choose a writable path with `--record PATH`, or use `--no-record`")
    })
}

/// `force`: the option.
pub fn existing(force: bool) -> Existing {
    if force { Existing::Replace } else { Existing::Keep }
}

/// The message about a record that cannot be written.
pub fn unwritable(error: WriteError) -> Trouble {
    if let WriteError::Exists { .. } = error {
        return Trouble::usage(error.to_string()).hint("choose another path, or replace it with `--force`");
    }
    let trouble = Trouble::environment(error.to_string());
    let trouble = match std::error::Error::source(&error) {
        Some(source) => trouble.detail(source.to_string()),
        None => trouble,
    };
    trouble.hint("choose a writable path with `--record PATH`, or use `--no-record`")
}
