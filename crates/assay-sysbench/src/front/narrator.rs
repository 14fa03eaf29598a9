//! The messages of a run, from "Initializing worker threads" to the last report.

use assay_engine::{
    End, Interval, Notice, Observer, Outcome, Outside, Reporter, RunError, SessionTally, StageOutcome, Warning,
};
use assay_io::clock::Clock;
use assay_script::{Entry, Report};
use assay_seam::Nanos;

use super::console::Console;
use super::invocation::{GIVEN_UP, Invocation};
use super::plan::{self, ScriptPlans};
use super::process::Process;
use super::totals::{PeriodTotals, shares};
use crate::report::{self, Style};
use crate::{CoreSettings, LogLevel, PeriodStat, SessionStat, Shutdown};

const INTERMEDIATE: &str = "report_intermediate";
const CUMULATIVE: &str = "report_cumulative";

/// Watches a run and prints its course.
pub(super) struct Narrator<'a> {
    settings: &'a CoreSettings,
    console: &'a Console,
    process: &'static dyn Process,
    plans: &'a ScriptPlans<'a>,
    /// Since the run started.
    clock: Clock,
    phase: RunPhase,
    /// Since the last line, and since the last checkpoint.
    recent: PeriodTotals,
    checked: PeriodTotals,
    sessions_checked: Vec<SessionTally>,
    checkpoints: Vec<Nanos>,
    /// The sessions that call the hooks of either kind of report.
    lines: Option<Reporter>,
    blocks: Option<Reporter>,
    /// The last one, for a hook in the environment of `init()`.
    last: Option<Report>,
    /// Number of events that a forced shutdown gave up.
    given_up: Option<u64>,
    failed: bool,
}

/// How far the run has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunPhase {
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

impl<'a> Narrator<'a> {
    /// For a run that has not started. `before`: what the top level did where sysbench has its main state.
    pub(super) fn new(plans: &'a ScriptPlans<'a>, before: &Outside) -> Narrator<'a> {
        let Invocation { settings, console, process, .. } = plans.invocation;
        let mut narrator = Narrator {
            settings,
            console,
            process: *process,
            plans,
            clock: Clock::start(),
            phase: RunPhase::Init,
            recent: PeriodTotals::new(Nanos::ZERO),
            checked: PeriodTotals::new(Nanos::ZERO),
            sessions_checked: Vec::new(),
            checkpoints: settings.checkpoints.iter().rev().map(|secs| Nanos::from_secs(*secs)).collect(),
            lines: None,
            blocks: None,
            last: None,
            given_up: None,
            failed: false,
        };
        narrator.add_before(before);
        narrator
    }

    /// What was done before sessions start counts, unless there is a warm-up in between.
    fn add_before(&mut self, before: &Outside) {
        if self.settings.warmup == 0 {
            self.recent.add_outside(before);
            self.checked.add_outside(before);
        }
    }

    /// The final messages, and the exit code.
    pub(super) fn conclude(mut self, outcome: &Outcome) -> u8 {
        if let End::Failed(error) = &outcome.end
            && matches!(self.phase, RunPhase::Init | RunPhase::Done)
        {
            let name = if self.phase == RunPhase::Init { "init" } else { "done" };
            self.failed |= self.phase == RunPhase::Init;
            // A failure of the run itself was printed when it was over.
            if self.phase == RunPhase::Init || !self.failed {
                say_untold(self.console, name, error);
            }
        }
        self.lines.into_iter().chain(self.blocks).for_each(Reporter::close);
        match outcome.end {
            _ if self.given_up.is_some() => GIVEN_UP,
            End::Interrupted => self.process.exit_code_interrupted(),
            _ => u8::from(self.failed),
        }
    }

    fn style(&self) -> Style {
        Style {
            sql: self.console.uses_database(),
            layout: self.settings.layout,
            percentile: self.settings.percentile,
            rate: self.settings.rate > 0,
            by_session: self.settings.debug,
            counted: false,
        }
    }

    fn say_of_each(&self, what: &str) {
        for number in 0..self.settings.threads {
            self.console.say(LogLevel::Debug, &format!("Worker thread (#{number}) {what}"));
        }
    }

    fn announce(&mut self, before: &Outside) {
        self.add_before(before);
        self.phase = RunPhase::Preparing;
        self.console.with(|log| report::announcement(log, self.settings));
        self.console.say(LogLevel::Notice, "Initializing worker threads...\n");
        if self.settings.rate > 0 {
            self.console.say(LogLevel::Debug, "Event generating thread started");
        }
        self.say_of_each("started");
        // sysbench creates a state for each kind of report, whether there are hooks or not.
        if self.settings.report_interval > 0 {
            self.lines = self.reporter();
        }
        if !self.settings.checkpoints.is_empty() {
            self.blocks = self.reporter();
        }
    }

    fn reporter(&self) -> Option<Reporter> {
        let plan = self.plans.command("run", Entry::Reports, self.settings.threads);
        Reporter::open(&plan, self.process.control())
    }

    fn on_interval(&mut self, interval: &Interval, stage: &StageOutcome) {
        self.recent.add(interval);
        self.checked.add(interval);
        let measured = &interval.measured;
        let now = Nanos(measured.start_ns + measured.length_ns);
        // The last interval of a stage may be longer than the others; one that is cut short does not end at a whole
        // second.
        let seconds = (measured.start_ns + 1_000_000_000) / 1_000_000_000;
        if now < Nanos::from_secs(seconds) {
            return;
        }
        let every = self.settings.report_interval.max(0) as u64;
        if every > 0 && seconds.is_multiple_of(every) {
            let mut stat = self.recent.stat(now, self.settings.percentile);
            stat.threads_running = measured.sessions;
            if self.settings.rate > 0 {
                (stat.queue_length, stat.concurrency) = (measured.backlog, interval.in_flight);
            }
            match self.lines.as_mut().filter(|_| self.plans.program.hooks(INTERMEDIATE)) {
                Some(reporter) => {
                    let report = Report { hook: INTERMEDIATE, stat: intermediate_fields(&stat) };
                    reporter.call(report, self.process.control());
                }
                None => self.console.with(|log| report::intermediate(log, &stat, self.style())),
            }
            self.recent = PeriodTotals::new(now);
        }
        if self.checkpoints.last().is_some_and(|checkpoint| *checkpoint <= now) {
            self.checkpoints.pop();
            self.console.with(|log| log.timestamp(now.as_secs_f64(), "Checkpoint report:"));
            self.cumulate(now, &stage.by_session, None);
            self.checked = PeriodTotals::new(now);
            self.sessions_checked.clone_from(&stage.by_session);
        }
    }

    /// The cumulative report of what happened since the last checkpoint.
    fn cumulate(&mut self, now: Nanos, sessions: &[SessionTally], unfinished: Option<u64>) {
        let stat = self.checked.stat(now, self.settings.percentile);
        if let Some(reporter) = self.blocks.as_mut().filter(|_| self.plans.program.hooks(CUMULATIVE)) {
            let report = Report { hook: CUMULATIVE, stat: cumulative_fields(&stat) };
            return reporter.call(report, self.process.control());
        }
        let shares: Vec<SessionStat> = shares(sessions, &self.sessions_checked);
        let style = self.style();
        self.console.with(|log| report::cumulative(log, &stat, &shares, unfinished, style));
    }

    fn on_stage_end(&mut self, outcome: &Outcome) {
        let Some(stage) = outcome.stages.last() else { return };
        if matches!(outcome.end, End::Failed(_)) {
            return;
        }
        self.phase = RunPhase::Finishing;
        if matches!(self.settings.shutdown, Shutdown::After(_)) && stage.total.unfinished > 0 {
            // Printed when sessions that have finished have done what they do at their end.
            self.given_up = Some(stage.total.unfinished);
        }
        let events: u64 = stage.total.transactions.iter().map(|of_type| of_type.count).sum();
        let limit = if self.settings.events.is_some_and(|limit| events >= limit) { "Event" } else { "Time" };
        for _ in self.given_up.unwrap_or(0)..self.settings.threads.into() {
            self.console.say(LogLevel::Info, &format!("{limit} limit exceeded, exiting..."));
        }
    }

    fn say_given_up(&self) {
        self.console.say(LogLevel::Fatal, "The --max-time limit has expired, forcing shutdown...");
    }

    /// Sessions do not notice a forced shutdown, or an interrupt: what holds them continues until the process ends.
    fn on_overdue(&mut self, sessions: u32, so_far: &Outcome) {
        let Some(stage) = so_far.stages.last() else { return };
        if self.process.control().is_stopped() {
            self.cumulate(stage.measured, &stage.by_session, None);
            self.process.exit(self.process.exit_code_interrupted().into());
        }
        self.say_given_up();
        self.cumulate(self.given_up_at(), &stage.by_session, Some(sessions.into()));
        self.process.exit(GIVEN_UP.into());
    }

    /// When a forced shutdown comes, since the start of the measured part.
    fn given_up_at(&self) -> Nanos {
        let Shutdown::After(seconds) = self.settings.shutdown else { return Nanos::ZERO };
        Nanos::from_secs(self.settings.time.unwrap_or(0) + seconds)
    }

    fn on_end(&mut self, outcome: &Outcome) {
        let phase = std::mem::replace(&mut self.phase, RunPhase::Done);
        match (&outcome.end, phase) {
            (End::Failed(error), RunPhase::Init | RunPhase::Preparing) => {
                say_untold(self.console, "thread_init", error);
                self.say_of_each("failed to initialize!");
                self.console.say(LogLevel::Fatal, "Thread initialization failed!");
                self.failed = true;
            }
            (End::Failed(error), RunPhase::Running) => {
                say_untold(self.console, "thread_run", error);
                self.failed = true;
            }
            _ => {
                let Some(stage) = outcome.stages.last() else { return };
                let (now, running) = match self.given_up {
                    Some(_) => (self.given_up_at(), self.settings.threads),
                    None => (stage.measured, 0),
                };
                match self.given_up {
                    Some(_) => self.say_given_up(),
                    None => self.console.say(LogLevel::Info, "Done.\n"),
                }
                // Their sessions end before the last report: a JSON array of lines is closed.
                self.lines.take().into_iter().chain(self.blocks.take()).for_each(Reporter::close);
                self.checked.add_outside(&outcome.outside);
                if self.plans.program.hooks(CUMULATIVE) {
                    let mut stat = self.checked.stat(now, self.settings.percentile);
                    stat.threads_running = running;
                    self.last = Some(Report { hook: CUMULATIVE, stat: cumulative_fields(&stat) });
                } else {
                    if self.settings.histogram && self.given_up.is_none() {
                        self.console.with(|log| report::distribution(log, self.checked.histogram()));
                    }
                    self.cumulate(now, &stage.by_session, self.given_up);
                }
            }
        }
    }
}

impl Observer for Narrator<'_> {
    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::Begins { before, .. } => self.announce(&before),
            Notice::Connecting { .. } if self.phase == RunPhase::Preparing => {
                let timeout = self.settings.init_timeout;
                if self.clock.now() > Nanos::from_secs(timeout) {
                    let text = format!("Worker threads failed to initialize within {timeout} seconds!");
                    self.console.say(LogLevel::Fatal, &text);
                    self.process.exit(GIVEN_UP.into());
                }
            }
            // Before any output of an event.
            Notice::StageReady => {
                self.phase = RunPhase::Running;
                self.process.hear_interrupts(true);
                self.say_of_each("initialized");
                self.console.with(|log| report::started(log, self.settings));
                self.plans.invocation.refuse_rate();
            }
            Notice::Interval { interval, so_far, .. } => {
                if let Some(stage) = so_far.stages.last() {
                    self.on_interval(interval, stage);
                }
            }
            Notice::StageEnds { so_far, .. } => self.on_stage_end(so_far),
            Notice::Overdue { sessions, so_far } => self.on_overdue(sessions, so_far),
            Notice::Ends { outcome } => {
                self.on_end(outcome);
                self.process.hear_interrupts(false);
            }
            Notice::Warning(Warning::Held { place, held, .. })
                if plan::workers(self.process, self.settings.threads) < self.settings.threads as usize =>
            {
                self.process.complain(&plan::advice_on_holding(
                    self.process,
                    place.as_deref(),
                    held,
                    self.settings.threads,
                ));
            }
            // sysbench does not report outages either; scripts print to the console.
            Notice::Connecting { .. }
            | Notice::StageBegins { .. }
            | Notice::Loading { .. }
            | Notice::Journal { .. }
            | Notice::History { .. }
            | Notice::Log { .. }
            | Notice::Warning(_) => {}
        }
    }

    fn logged_in(&mut self, _: usize) {
        self.plans.invocation.note_login();
    }

    fn last_report(&mut self) -> Option<Report> {
        self.last.take()
    }

    fn has_given_up(&self) -> bool {
        self.given_up.is_some() || self.process.control().is_stopped()
    }

    fn gives_up(&self) -> bool {
        self.settings.shutdown != Shutdown::Off || self.process.control().is_stopped()
    }
}

/// Prints what ended `function`, unless the session did: errors of the script, and of its statements.
pub(super) fn say_untold(console: &Console, function: &str, error: &RunError) {
    let told = match error {
        RunError::Connect { failure, .. } => !failure.message.is_empty(),
        RunError::Statement { .. } | RunError::Script(_) => true,
        RunError::Held { .. } | RunError::Environment(_) => false,
    };
    if !told {
        console.say(LogLevel::Fatal, &failure_of(function, error));
    }
}

/// sysbench's message for an error that ended `function`.
fn failure_of(function: &str, error: &RunError) -> String {
    let text = match error {
        RunError::Connect { failure, error, .. } if failure.message.is_empty() => error.message.clone(),
        RunError::Connect { failure, .. } | RunError::Statement { failure, .. } => failure.message.clone(),
        RunError::Script(error) => place_and_message(error),
        RunError::Held { workers, sessions, waited, is_measured } => {
            return RunError::held(*workers, *sessions, *waited, *is_measured);
        }
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

fn intermediate_fields(stat: &PeriodStat) -> Vec<(&'static str, f64)> {
    let mut fields = common_fields(stat);
    fields.extend([("queue_length", stat.queue_length as f64), ("concurrency", stat.concurrency as f64)]);
    fields
}

fn cumulative_fields(stat: &PeriodStat) -> Vec<(&'static str, f64)> {
    let mut fields = common_fields(stat);
    fields.extend([
        ("latency_min", stat.latency_min),
        ("latency_max", stat.latency_max),
        ("latency_avg", stat.latency_avg),
        ("latency_sum", stat.latency_sum),
    ]);
    fields
}

fn common_fields(stat: &PeriodStat) -> Vec<(&'static str, f64)> {
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
