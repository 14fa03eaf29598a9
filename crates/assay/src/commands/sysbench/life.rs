//! A run as sysbench tells it: from "Initializing worker threads" to the last report.

use std::process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_engine::{End, Interval, Notice, Observer, Outcome, Outside, RunError, SessionTally, StageOutcome};
use assay_script::{Answer, Entry, Report, Request, Slot, State};
use assay_sysbench::report::{self, Style};
use assay_sysbench::{Level, Settings, Share, Shutdown, Stat};
use assay_wire::{Nanos, RowsPool};

use super::plan::Parts;
use super::span::{Span, shares};
use super::voice::Voice;

/// Exit code of a run that was given up: sessions not ready in time, or a forced shutdown.
const GIVEN_UP: i32 = 2;
const CUMULATIVE: &str = "report_cumulative";

/// Watches a run and tells it.
pub struct Life<'a> {
    settings: &'a Settings,
    voice: &'a Arc<Voice>,
    parts: &'a Parts<'a>,
    begun: Instant,
    phase: Phase,
    /// Since the last line, and since the last checkpoint.
    recent: Span,
    checked: Span,
    sessions_checked: Vec<SessionTally>,
    checkpoints: Vec<Nanos>,
    lines: Option<Hooked>,
    blocks: Option<Hooked>,
    /// The last one, for a hook in the environment of `init()`.
    last: Option<Report>,
    failed: bool,
}

/// How far the run has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// `init()`.
    Init,
    /// `thread_init()`.
    Preparing,
    /// `thread_run()`.
    Running,
    /// `thread_done()`.
    Finishing,
    /// `done()`.
    Done,
}

impl<'a> Life<'a> {
    /// Of a run that has not begun.
    /// `before`: what the top level did where sysbench has its main state.
    pub fn new(parts: &'a Parts<'a>, before: &Outside) -> Life<'a> {
        let mut life = Life {
            settings: parts.settings,
            voice: parts.voice,
            parts,
            begun: Instant::now(),
            phase: Phase::Init,
            recent: Span::new(Nanos::ZERO),
            checked: Span::new(Nanos::ZERO),
            sessions_checked: Vec::new(),
            checkpoints: parts.settings.checkpoints.iter().rev().map(|secs| Nanos::from_secs(*secs)).collect(),
            lines: None,
            blocks: None,
            last: None,
            failed: false,
        };
        life.recent.add_outside(before);
        life.checked.add_outside(before);
        life
    }

    /// What is left to say, and the exit code.
    pub fn conclude(mut self, outcome: &Outcome) -> u8 {
        if let End::Failed(error) = &outcome.end
            && matches!(self.phase, Phase::Init | Phase::Done)
        {
            let name = if self.phase == Phase::Init { "init" } else { "done" };
            self.failed |= self.phase == Phase::Init;
            // A failure of the run itself was told when it was over.
            if self.phase == Phase::Init || !self.failed {
                say_untold(self.voice, name, error);
            }
        }
        self.lines.into_iter().chain(self.blocks).for_each(Hooked::end);
        match outcome.end {
            End::Interrupted => crate::signals::exit() as u8,
            _ => u8::from(self.failed),
        }
    }

    fn style(&self) -> Style {
        Style {
            sql: self.voice.uses_database(),
            layout: self.settings.layout,
            percentile: self.settings.percentile,
            rate: self.settings.rate > 0,
        }
    }

    fn say_of_each(&self, what: &str) {
        for number in 0..self.settings.threads {
            self.voice.say(Level::Debug, &format!("Worker thread (#{number}) {what}"));
        }
    }

    fn announce(&mut self) {
        self.phase = Phase::Preparing;
        self.voice.with(|log| report::announcement(log, self.settings));
        self.voice.say(Level::Notice, "Initializing worker threads...\n");
        self.say_of_each("started");
        // sysbench makes a state of its own for each kind of report, whether there are hooks or not.
        if self.settings.report_interval > 0 {
            self.lines = Hooked::new(self.parts, "report_intermediate", self.settings.threads);
        }
        if !self.settings.checkpoints.is_empty() {
            self.blocks = Hooked::new(self.parts, CUMULATIVE, self.settings.threads);
        }
    }

    fn on_interval(&mut self, interval: &Interval, stage: &StageOutcome) {
        self.recent.add(interval);
        self.checked.add(interval);
        let now = interval.start + interval.length;
        // The last interval of a stage may be longer than the others; one that is cut short ends at no whole second.
        let seconds = (interval.start + Nanos::from_secs(1)).0 / 1_000_000_000;
        if now < Nanos::from_secs(seconds) {
            return;
        }
        let every = self.settings.report_interval.max(0) as u64;
        if every > 0 && seconds.is_multiple_of(every) {
            let mut stat = self.recent.stat(now, self.settings.percentile);
            stat.threads_running = interval.sessions;
            if self.settings.rate > 0 {
                (stat.queue_length, stat.concurrency) = (interval.backlog, interval.in_flight);
            }
            match self.lines.as_mut().filter(|_| self.parts.program.hooks("report_intermediate")) {
                Some(hooked) => hooked.call(intermediate_fields(&stat)),
                None => self.voice.with(|log| report::intermediate(log, &stat, self.style())),
            }
            self.recent = Span::new(now);
        }
        if self.checkpoints.last().is_some_and(|checkpoint| *checkpoint <= now) {
            self.checkpoints.pop();
            self.voice.with(|log| log.timestamp(now.as_secs_f64(), "Checkpoint report:"));
            self.cumulate(now, &stage.by_session, None);
            self.checked = Span::new(now);
            self.sessions_checked.clone_from(&stage.by_session);
        }
    }

    /// The cumulative report of what happened since the last checkpoint.
    fn cumulate(&mut self, now: Nanos, sessions: &[SessionTally], unfinished: Option<u64>) {
        let stat = self.checked.stat(now, self.settings.percentile);
        if let Some(hooked) = self.blocks.as_mut().filter(|_| self.parts.program.hooks(CUMULATIVE)) {
            return hooked.call(cumulative_fields(&stat));
        }
        let shares: Vec<Share> = shares(sessions, &self.sessions_checked);
        let style = self.style();
        if self.settings.histogram {
            self.voice.with(|log| report::distribution(log, self.checked.histogram()));
        }
        self.voice.with(|log| report::cumulative(log, &stat, &shares, unfinished, style));
    }

    fn on_stage_end(&mut self, outcome: &Outcome) {
        let Some(stage) = outcome.stages.last() else { return };
        if matches!(outcome.end, End::Failed(_)) {
            return;
        }
        self.phase = Phase::Finishing;
        if matches!(self.settings.shutdown, Shutdown::After(_)) && stage.total.unfinished > 0 {
            self.voice.say(Level::Fatal, "The --max-time limit has expired, forcing shutdown...");
            self.cumulate(self.given_up_at(), &stage.by_session, Some(stage.total.unfinished));
            process::exit(GIVEN_UP);
        }
        let events: u64 = stage.total.transactions.iter().map(|of_type| of_type.count).sum();
        let limit = if self.settings.events.is_some_and(|limit| events >= limit) { "Event" } else { "Time" };
        for _ in 0..self.settings.threads {
            self.voice.say(Level::Info, &format!("{limit} limit exceeded, exiting..."));
        }
    }

    /// When a forced shutdown comes, since the start of the measured part.
    fn given_up_at(&self) -> Nanos {
        let Shutdown::After(seconds) = self.settings.shutdown else { return Nanos::ZERO };
        Nanos::from_secs(self.settings.time.unwrap_or(0) + seconds)
    }

    fn on_end(&mut self, outcome: &Outcome) {
        let phase = std::mem::replace(&mut self.phase, Phase::Done);
        match (&outcome.end, phase) {
            (End::Failed(error), Phase::Init | Phase::Preparing) => {
                say_untold(self.voice, "thread_init", error);
                self.say_of_each("failed to initialize!");
                self.voice.say(Level::Fatal, "Thread initialization failed!");
                self.failed = true;
            }
            (End::Failed(error), Phase::Running) => {
                say_untold(self.voice, "thread_run", error);
                self.failed = true;
            }
            _ => {
                let Some(stage) = outcome.stages.last() else { return };
                self.voice.say(Level::Info, "Done.\n");
                // Their sessions end before the last report begins: a JSON array of lines is closed.
                self.lines.take().into_iter().chain(self.blocks.take()).for_each(Hooked::end);
                self.checked.add_outside(&outcome.before);
                self.checked.add_outside(&outcome.outside);
                if self.parts.program.hooks(CUMULATIVE) {
                    let stat = self.checked.stat(stage.measured, self.settings.percentile);
                    self.last = Some(Report { hook: CUMULATIVE, stat: cumulative_fields(&stat) });
                } else {
                    self.cumulate(stage.measured, &stage.by_session, None);
                }
            }
        }
    }
}

impl Observer for Life<'_> {
    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::Begins => self.announce(),
            Notice::Connecting { .. } if self.phase == Phase::Preparing => {
                let timeout = self.settings.init_timeout;
                if self.begun.elapsed() > Duration::from_secs(timeout) {
                    let text = format!("Worker threads failed to initialize within {timeout} seconds!");
                    self.voice.say(Level::Fatal, &text);
                    process::exit(GIVEN_UP);
                }
            }
            Notice::StageBegins { .. } => {
                self.phase = Phase::Running;
                self.say_of_each("initialized");
                self.voice.say(Level::Notice, "Threads started!\n");
            }
            Notice::Interval { interval, so_far, .. } => {
                if let Some(stage) = so_far.stages.last() {
                    self.on_interval(interval, stage);
                }
            }
            Notice::StageEnds { so_far, .. } => self.on_stage_end(so_far),
            Notice::Ends { outcome } => self.on_end(outcome),
            // Outages and slow scripts are not told by sysbench either; scripts print through the voice.
            Notice::Connecting { .. } | Notice::Loading { .. } | Notice::Log { .. } | Notice::Warning(_) => {}
        }
    }

    fn last_report(&mut self) -> Option<Report> {
        self.last.take()
    }
}

/// Says what ended `function`, unless the session did: errors of the script, and statements' in it.
pub fn say_untold(voice: &Voice, function: &str, error: &RunError) {
    let told = match error {
        RunError::Connect { failure, .. } => !failure.message.is_empty(),
        RunError::Statement { .. } | RunError::Script(_) => true,
        RunError::Environment(_) => false,
    };
    if !told {
        voice.say(Level::Fatal, &failure_of(function, error));
    }
}

/// What sysbench says of an error that ended `function`.
fn failure_of(function: &str, error: &RunError) -> String {
    let text = match error {
        RunError::Connect { failure, error, .. } if failure.message.is_empty() => error.message.clone(),
        RunError::Connect { failure, .. } | RunError::Statement { failure, .. } => failure.message.clone(),
        RunError::Script(error) => place_and_message(error),
        RunError::Environment(message) => return message.clone(),
    };
    format!("`{function}' function failed: {text}")
}

/// `file:line: message`.
fn place_and_message(error: &assay_script::ScriptError) -> String {
    match (&error.file, error.line) {
        (Some(file), Some(line)) => format!("{file}:{line}: {}", error.message),
        (Some(file), None) => format!("{file}: {}", error.message),
        _ => error.message.clone(),
    }
}

/// A session that calls a report hook.
struct Hooked {
    hook: &'static str,
    state: State,
    slot: Slot,
    pool: RowsPool,
}

impl Hooked {
    /// `number`: as the script sees it. `None` when the script cannot be loaded any more.
    fn new(parts: &Parts<'_>, hook: &'static str, number: u32) -> Option<Hooked> {
        let setup = parts.setup("run", Entry::Reports, parts.settings.threads);
        let mut state = State::new(parts.program, &setup).ok()?;
        let slot = state.add_session(number).ok()?;
        let mut hooked = Hooked { hook, state, slot, pool: RowsPool::default() };
        hooked.resume(Answer::Done).then_some(hooked)
    }

    fn call(&mut self, stat: Vec<(&'static str, f64)>) {
        let report = Report { hook: self.hook, stat };
        self.resume(Answer::Report(report));
    }

    /// False when the session has ended.
    fn resume(&mut self, answer: Answer) -> bool {
        matches!(self.state.resume(self.slot, answer, &mut self.pool), Request::Ready)
    }

    fn end(mut self) {
        self.resume(Answer::Done);
    }
}

fn intermediate_fields(stat: &Stat) -> Vec<(&'static str, f64)> {
    let mut fields = common_fields(stat);
    fields.extend([("queue_length", stat.queue_length as f64), ("concurrency", stat.concurrency as f64)]);
    fields
}

fn cumulative_fields(stat: &Stat) -> Vec<(&'static str, f64)> {
    let mut fields = common_fields(stat);
    fields.extend([
        ("latency_min", stat.latency_min),
        ("latency_max", stat.latency_max),
        ("latency_avg", stat.latency_avg),
        ("latency_sum", stat.latency_sum),
    ]);
    fields
}

fn common_fields(stat: &Stat) -> Vec<(&'static str, f64)> {
    vec![
        ("threads_running", f64::from(stat.threads_running)),
        ("time_interval", stat.time_interval),
        ("time_total", stat.time_total),
        ("latency_pct", stat.latency_pct),
        ("events", stat.events as f64),
        ("reads", stat.reads as f64),
        ("writes", stat.writes as f64),
        ("other", stat.other as f64),
        ("errors", stat.errors as f64),
        ("reconnects", stat.reconnects as f64),
    ]
}
