//! Live output of a run: progress of connecting and loading, a line per interval, warnings.
//!
//! All of it goes to stderr. Progress is drawn only on a terminal; lines are always written, unless `--quiet`.

use std::time::{Duration, Instant};

use assay_engine::{Notice, Observer, Outcome, Outside, Plan, Stage, Warning};
use assay_io::Clock;
use assay_process::{events, terminal};
use assay_record::{Connecting, Event, Interval};
use assay_seam::Nanos;
use assay_spec::values;
use indicatif::{ProgressBar, ProgressStyle};

use crate::fleet::crew::Screen;
use crate::live::Live;
use crate::measured::Measured;
use crate::stranger;

/// Prints the notices of a run.
pub struct Watch<'a> {
    plan: &'a Plan,
    quiet: bool,
    bar: Option<ProgressBar>,
    live: Option<Live>,
    measured: Option<Measured>,
    /// Since when no session could log in.
    refused: Option<Instant>,
    /// Whether silent servers were asked what they are.
    suspected: bool,
}

/// By then, a server of the expected product has greeted its first client, unless it is overloaded.
const SUSPECT_AFTER: Duration = Duration::from_secs(2);

impl<'a> Watch<'a> {
    /// Watches a command: progress and warnings, and its record if it leaves one.
    pub fn of_command(plan: &'a Plan, quiet: bool, measured: Option<Measured>) -> Watch<'a> {
        Watch { plan, quiet, bar: None, live: None, measured, refused: None, suspected: false }
    }

    /// Watches a run: interval lines and the partial record too.
    pub fn of_run(plan: &'a Plan, quiet: bool, live: Live) -> Watch<'a> {
        Watch { plan, quiet, bar: None, live: Some(live), measured: None, refused: None, suspected: false }
    }

    /// Removes the progress line from the screen.
    pub fn finish(&mut self) -> Option<Live> {
        self.clear();
        self.live.take()
    }

    /// Ends watching a command.
    pub fn finish_command(&mut self) -> Option<Measured> {
        self.clear();
        self.measured.take()
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        events::tell(|| notice(text, false));
        self.say(text);
    }

    fn say(&self, text: &str) {
        let say = || terminal::say(&format!("{text}\n"));
        match (&self.bar, self.live.as_ref().and_then(Live::bar)) {
            (Some(bar), _) => bar.suspend(say),
            (None, Some(bar)) => bar.above(say),
            (None, None) => say(),
        }
    }

    /// The current bar, created with `style` if there is none; `None` if nobody would see it.
    fn bar(&mut self, template: &str) -> Option<&ProgressBar> {
        let has_view = self.live.as_mut().is_some_and(Live::has_view);
        if self.quiet || has_view || !terminal::stderr_is_terminal() {
            return None;
        }
        Some(self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template(template).expect("the templates are constants");
            let bar = ProgressBar::new(0).with_style(style.progress_chars("█▌ "));
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        }))
    }

    fn connecting(&mut self, ready: u32, wanted: u32) {
        events::tell(|| Event::Connecting(Connecting { ready, wanted }));
        if ready == 0 && self.refused.get_or_insert_with(Instant::now).elapsed() > SUSPECT_AFTER {
            self.suspect();
        }
        if ready >= wanted {
            self.clear();
        } else if let Some(bar) = self.bar("connecting {wide_bar} {pos}/{len} sessions") {
            bar.set_length(wanted.into());
            bar.set_position(ready.into());
        }
    }

    fn loading(&mut self, rows: u64, expected: u64, elapsed: Nanos) {
        if rows == 0 {
            return;
        }
        let template = match expected {
            0 => "loading {spinner} {human_pos} rows {msg}",
            _ => "loading {wide_bar} {human_pos}/{human_len} rows {msg}",
        };
        // A bar from the connects has another template.
        if self.bar.as_ref().is_some_and(|bar| bar.message().is_empty()) {
            self.clear();
        }
        let per_second = rows as f64 / elapsed.as_secs_f64().max(1e-3);
        if let Some(bar) = self.bar(template) {
            bar.set_length(expected.max(rows));
            bar.set_position(rows);
            let left = expected.saturating_sub(rows) as f64 / per_second;
            let left = if expected == 0 { String::new() } else { format!(", {left:.0} s left") };
            bar.set_message(format!("{} rows/s{left}", indicatif::HumanCount(per_second as u64)));
        }
    }

    /// Says once which server seems to be of another product, before the login times out.
    fn suspect(&mut self) {
        if std::mem::replace(&mut self.suspected, true) {
            return;
        }
        for target in &self.plan.targets {
            if let Some(example) = stranger::family_of_silent(target) {
                self.say_warning(&format!(
                    "{} waits for its client to speak first: is its URL {example}?\n  press Ctrl-C to end",
                    target.database.display()
                ));
            }
        }
    }

    fn warning(&mut self, warning: &Warning) {
        if matches!(warning, Warning::Waiting { what: "a login", .. }) {
            self.suspect();
        }
        self.say_warning(&warning_text(warning, self.plan));
    }

    fn say_warning(&self, text: &str) {
        events::tell(|| notice(text, true));
        let label = terminal::paint("warning:", terminal::YELLOW, terminal::stderr_color());
        self.say(&format!("{label} {}", assay_report::visible(text, false)));
    }
}

/// A line for the user as an event.
pub fn notice(text: &str, warning: bool) -> Event {
    Event::Notice(assay_record::Notice { text: assay_record::text_without_secrets(text), warning })
}

/// A warning in words.
pub fn warning_text(warning: &Warning, plan: &Plan) -> String {
    let url = |target: usize| plan.targets[target].database.display();
    match warning {
        Warning::Held { worker: _, place, held } => {
            let in_c = format!("a C function that {} calls", plan.program.name());
            let place = place.as_deref().unwrap_or(&in_c);
            format!(
                "the script has blocked a worker for {:.1} s at {place}: the worker's other sessions are waiting, so the results are wrong\n  let long work yield: call the database in between, or use assay's sleep functions",
                held.as_secs_f64()
            )
        }
        Warning::SlowConnects { target, took } => format!(
            "connecting to {} took {:.1} s: its connection queue overflows, or packets are lost\n  \
                 raise its listen backlog (back_log; listen_backlog of PgBouncer) and net.core.somaxconn on its machine, \
                 or open connections more slowly with `--connect-pending` (now {}) or `--connect-rate`",
            url(*target),
            took.as_secs_f64(),
            plan.connects.pending_max
        ),
        Warning::Advice { target, error, hint } => {
            format!("{}: {} ({}): the run continues\n  {hint}", url(*target), error.message, error.code)
        }
        Warning::Outage { target, message } => format!(
            "{} is unavailable: {message}\n  retrying for up to {}; see `--reconnect-time`",
            url(*target),
            values::display_duration(plan.policy.reconnect)
        ),
        Warning::Recovered { target } => format!("{} is back", url(*target)),
        Warning::Waiting { target: Some(target), what, waited } => {
            format!("no answer from {} to {what} for {:.0} s; press Ctrl-C to end", url(*target), waited.as_secs_f64())
        }
        Warning::Waiting { target: None, what, waited } => format!(
            "{what} has not finished for {:.0} s and waits for no server; press Ctrl-C to end",
            waited.as_secs_f64()
        ),
        Warning::Finishing { in_flight } => format!(
            "interrupted: finishing up to {in_flight} transaction{} within {}; press Ctrl-C again to quit immediately",
            if *in_flight == 1 { "" } else { "s" },
            values::display_duration(plan.grace_interrupted)
        ),
    }
}

/// Screen of a fleet's coordinator.
impl Screen for Watch<'_> {
    fn begins(&mut self, clock: Clock, started: Nanos) {
        self.notice(Notice::Begins { before: Outside::default(), clock, started });
    }

    fn stage_begins(&mut self, stage: usize, measured_from: Nanos) {
        let Stage { sessions, rate } = self.plan.stages[stage];
        self.notice(Notice::StageBegins { stage, sessions, rate, warmup: self.plan.warmup, measured_from });
    }

    fn interval(&mut self, stage: usize, interval: &Interval, types: &[String]) {
        if let Some(live) = &mut self.live {
            live.interval_of_several(stage, interval, types);
        }
    }

    fn progress(&mut self, ready: u32, wanted: u32, loaded: u64, expected: u64, elapsed: Nanos) {
        match loaded {
            0 => self.notice(Notice::Connecting { ready, wanted }),
            rows => self.notice(Notice::Loading { rows, expected, elapsed }),
        }
    }

    fn line(&mut self, text: &str) {
        Watch::line(self, text);
    }

    fn warning(&mut self, text: &str) {
        self.say_warning(text);
    }

    fn get_ready(&self) -> Nanos {
        Observer::get_ready(self)
    }
}

impl Observer for Watch<'_> {
    fn get_ready(&self) -> Nanos {
        self.live.as_ref().map_or(Nanos::ZERO, Live::get_ready)
    }

    fn next_stage(&mut self, so_far: &Outcome) -> Option<Stage> {
        self.live.as_mut()?.next_stage(so_far)
    }

    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::Connecting { ready, wanted } => self.connecting(ready, wanted),
            Notice::Loading { rows, expected, elapsed } => {
                if let Some(measured) = &mut self.measured {
                    let sessions = self.plan.stages.first().map_or(1, |stage| stage.sessions);
                    measured.loading(rows, elapsed, sessions);
                }
                self.loading(rows, expected, elapsed);
            }
            Notice::Begins { before: _, clock, started } => {
                if let Some(live) = &mut self.live {
                    live.begins(self.plan, clock, started);
                }
                if let Some(measured) = &mut self.measured {
                    measured.begins(self.plan, clock, started);
                }
            }
            Notice::StageReady | Notice::Ends { .. } | Notice::Overdue { .. } => {}
            Notice::Log { session: _, text } => self.line(text),
            Notice::Journal { columns, lines, now } => {
                let journal = self.live.as_mut().and_then(Live::journal);
                if let Some(trouble) = journal.and_then(|journal| journal.add(columns, lines, now)) {
                    self.say_warning(&format!("{}; the run continues without it", trouble.cause));
                }
            }
            Notice::History { level, words } => {
                if let Some(trouble) = self.live.as_mut().and_then(|live| live.history(level, words)) {
                    self.say_warning(&format!("{}; the run continues without it", trouble.cause));
                }
            }
            Notice::Warning(warning) => self.warning(&warning),
            Notice::StageBegins { stage, sessions, rate, warmup, measured_from } => {
                self.clear();
                if let Some(live) = &mut self.live {
                    live.stage_begins(stage, (sessions, rate), warmup, measured_from);
                }
            }
            Notice::Interval { stage, interval, so_far } => {
                if let Some(live) = &mut self.live {
                    live.interval(stage, interval, so_far);
                }
            }
            Notice::StageEnds { stage: _, so_far } => {
                if let Some(live) = &mut self.live {
                    live.stage_ends(so_far);
                }
            }
        }
    }
}
