//! Shows a run, a record or a server on the terminal: the loop around `assay_top`, which draws.
//!
//! Events come from this process's own run, from a record that grows, or from samplers of a server without a load.
//! Their sender never waits for this thread. At most four pictures are drawn per second.

mod probe;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use assay_engine::Target;
use assay_io::Clock;
use assay_io::process::Usage;
use assay_process::diagnostics::Trouble;
use assay_process::screen::Screen;
use assay_process::underway::Underway;
use assay_process::{events, files, interrupt, terminal};
use assay_record::{
    Event, Fold, Follow, Manifest, Place, Record, RecordedServer, Scope, ScopeKind, Series, Stage, Status, Telemetry,
    Time,
};
use assay_seam::{Nanos, StatementError};
use assay_telemetry::pgbouncer;
use assay_top::{Action, Scene, Screen as View_, Seen, ServerNow, View};

use crate::client::Client;
use crate::telemetry::{Beside, Samplers};
use crate::{failure, record_of};

use probe::{Probe, Wanted};

/// Between two pictures, at least.
const PICTURE: Duration = Duration::from_millis(250);
/// In the process of a run, pictures without a key take at most one part in this many of a CPU.
const SHARE: u32 = 250;
/// Between two looks at what is new.
const LOOK: Duration = Duration::from_millis(250);
/// A run that has left no event for this long is shown as silent.
const SILENT: Duration = Duration::from_secs(15);
/// Samples that are kept of a server without a load, one per second: six hours.
const SAMPLES_KEPT: usize = 6 * 3600;
/// Lines for the user that are kept.
const NOTICES_MAX: usize = 50;

/// Where events come from.
enum Stream {
    /// A whole record: nothing more comes.
    Record,
    /// A record that grows.
    Growing(Follow),
    /// The run of this process.
    Own(Receiver<Arc<Event>>),
    /// Samplers of a server without a load.
    Server(Box<Sampled>),
}

struct Sampled {
    samplers: Samplers,
    record: Record,
}

/// What is watched, and by whom.
pub struct Watched {
    stream: Stream,
    fold: Fold,
    /// A record to which nothing is added.
    whole: Option<Record>,
    /// Where it comes from, for the user.
    source: String,
    run: Option<Underway>,
    probe: Option<Probe>,
    /// Why no server is asked.
    silence: &'static str,
    notices: Vec<String>,
    trouble: Option<String>,
    last_event: Instant,
    /// A server to ask, as soon as it is known.
    asked: Option<Arc<Mutex<Option<Target>>>>,
    is_over: bool,
}

impl Watched {
    fn new(stream: Stream, source: String) -> Watched {
        Watched {
            stream,
            fold: Fold::default(),
            whole: None,
            source,
            run: None,
            probe: None,
            silence: "not in records; `--db URL` asks the server",
            notices: Vec::new(),
            trouble: None,
            last_event: Instant::now(),
            asked: None,
            is_over: false,
        }
    }

    /// A record, which may be that of a run in progress.
    pub fn record(path: &Path, run: Option<Underway>) -> Result<Watched, Trouble> {
        let source = path.display().to_string();
        if run.is_none() {
            let record = Record::read(path)?;
            if record.status != Status::Running {
                return Ok(Watched { whole: Some(record), ..Watched::new(Stream::Record, source) });
            }
        }
        let mut follow = Follow::open(path)?;
        let mut watched = Watched::new(Stream::Record, source);
        for event in follow.news()? {
            watched.take(event);
        }
        watched.stream = Stream::Growing(follow);
        watched.run = run;
        Ok(watched)
    }

    /// A server without a load, and the poolers in front of it.
    pub fn server(target: Target, beside: Beside, full: bool) -> Result<Watched, Trouble> {
        let refused = |error: Box<StatementError>| failure::cannot_connect(&target, &error);
        let facts = Client::open(&target, Clock::start(), Nanos::from_secs(10)).map_err(refused)?.server();
        let is_console = pgbouncer::is_console(&facts.version);
        let place = record_of::place(&target);
        let (product, version) = match is_console {
            true => ("PgBouncer".to_owned(), facts.version.trim_end_matches("/bouncer").to_owned()),
            false => (facts.product, facts.version),
        };
        if place == Place::Embedded {
            return Err(Trouble::usage("an embedded database has no server to watch"));
        }
        let clock = Clock::start();
        let started = clock.now();
        let poolers = if is_console { vec![target.clone()] } else { beside.poolers };
        let beside = Beside { full, poolers, hosts: beside.hosts, is_console };
        let samplers = Samplers::start(std::slice::from_ref(&target), &[place], &beside, clock, started);
        let samplers = samplers.ok_or_else(|| Trouble::usage("there is nothing to sample"))?;
        samplers.stage_begins(Nanos::ZERO);
        let shown = target.database.display();
        let now = Time::from(SystemTime::now());
        let mut record = record_of::begun_now();
        record.manifest = Manifest { targets: vec![shown.clone()], interval_ns: 1_000_000_000, ..Manifest::default() };
        record.environment.servers = vec![RecordedServer { product, version, place, ..RecordedServer::default() }];
        record.environment.host.cpus =
            u32::try_from(std::thread::available_parallelism().map_or(1, usize::from)).unwrap_or(1);
        record.started = now;
        record.telemetry = Some(Telemetry::default());
        record.stages = vec![Stage { started: now, start_ns: Some(0), ..Stage::default() }];
        let mut watched = Watched::new(Stream::Server(Box::new(Sampled { samplers, record })), shown);
        watched.probe = Some(Probe::start(target));
        Ok(watched)
    }

    /// Asks this server for sessions and statements.
    pub fn ask(&mut self, target: Target) {
        self.probe = Some(Probe::start(target));
    }

    /// How far it reaches, since the start of the run.
    pub fn length(&self) -> u64 {
        self.so_far().map_or(0, assay_top::length)
    }

    /// Whether something new may come.
    pub fn is_live(&self) -> bool {
        !matches!(self.stream, Stream::Record) && !self.is_over
    }

    fn take(&mut self, event: Event) {
        self.last_event = Instant::now();
        match event {
            Event::Notice(notice) => {
                // The first line is enough for one line.
                let line = notice.text.lines().next().unwrap_or_default();
                self.notices.push(if notice.warning { format!("warning: {line}") } else { line.to_owned() });
                let surplus = self.notices.len().saturating_sub(NOTICES_MAX);
                self.notices.drain(..surplus);
            }
            Event::Connecting(connecting) if connecting.ready < connecting.wanted => {
                self.notices = vec![format!("connecting: {} of {} sessions", connecting.ready, connecting.wanted)];
            }
            Event::Connecting(_) => self.notices.retain(|line| !line.starts_with("connecting: ")),
            event => self.fold.take(event),
        }
    }

    /// Takes what is new; whether anything is.
    fn news(&mut self) -> bool {
        let mut all = Vec::new();
        match &mut self.stream {
            Stream::Record => {}
            Stream::Growing(follow) => match follow.news() {
                Ok(events) => all = events,
                Err(error) => self.trouble = Some(error.to_string()),
            },
            Stream::Own(events) => loop {
                match events.try_recv() {
                    Ok(event) => all.push(Arc::unwrap_or_clone(event)),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        self.is_over = true;
                        break;
                    }
                }
            },
            Stream::Server(sampled) => {
                let Some(readings) = sampled.samplers.news() else { return false };
                let telemetry = sampled.record.telemetry.get_or_insert_default();
                readings.put_into(telemetry);
                for (number, scope) in telemetry.scopes.iter_mut().enumerate() {
                    // A tenth more, so that it is rarely done.
                    if scope.began_ns.len() > SAMPLES_KEPT + SAMPLES_KEPT / 10 {
                        let surplus = scope.began_ns.len() - SAMPLES_KEPT;
                        scope.forget(surplus);
                        sampled.samplers.forget(number, surplus);
                    }
                }
                // What the kernel says about processes and files comes without the server.
                let is_asked =
                    |series: &&Series| !series.source.starts_with("/proc") && !series.source.starts_with("blocks of ");
                let is_away = |scope: &Scope| {
                    let mut last = scope.series.iter().filter(is_asked).map(|series| series.values.last());
                    !scope.began_ns.is_empty() && last.all(|value| value.is_none_or(Option::is_none))
                };
                let away = telemetry.scopes.iter().any(|scope| scope.kind == ScopeKind::Server && is_away(scope));
                self.trouble = away.then(|| "the server does not answer; it is asked again every second".to_owned());
                self.last_event = Instant::now();
                return true;
            }
        }
        if let Some(asked) = &self.asked
            && let Some(target) = asked.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            self.probe = Some(Probe::start(target));
        }
        let is_new = !all.is_empty();
        all.into_iter().for_each(|event| self.take(event));
        let has_ended = self.fold.record().is_some_and(|record| record.status != Status::Running);
        if let Stream::Growing(_) = self.stream {
            let is_gone = self.run.as_ref().is_some_and(|run| !run.goes_on());
            let silent = self.last_event.elapsed() >= SILENT;
            let was = (self.is_over, self.trouble.clone());
            self.is_over = has_ended || is_gone;
            self.trouble = match (has_ended, is_gone, silent) {
                (true, _, _) => None,
                (false, true, _) => Some("the run's process has ended without completing its record".to_owned()),
                (false, false, true) => {
                    Some(format!("no news for {} s; the run may have been killed", self.last_event.elapsed().as_secs()))
                }
                _ => None,
            };
            return is_new || was != (self.is_over, self.trouble.clone());
        }
        is_new
    }

    fn so_far(&self) -> Option<&Record> {
        match &self.stream {
            Stream::Server(sampled) => Some(&sampled.record),
            _ => self.whole.as_ref().or(self.fold.record()),
        }
    }

    fn server_now(&self) -> ServerNow {
        self.probe.as_ref().map_or_else(|| ServerNow::silent(self.silence), Probe::now)
    }
}

/// How a view ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The user has seen enough.
    Quit,
    /// Nobody wants it any more.
    Stopped,
}

/// What is shown of a record: until when, how much, and whether all of it since the view began.
type Shown = (Option<u64>, u64, bool);

/// Shows it until the user quits. `stop`: or until that is set.
pub fn watch(mut watched: Watched, mut view: View, color: bool, stop: &AtomicBool) -> Result<Left, Trouble> {
    let lost = |error: std::io::Error| {
        Trouble::environment(format!("cannot draw on the terminal: {error}"))
            .hint("`assay show RECORD` prints the report of a record anywhere")
    };
    let mut screen = Screen::open().map_err(lost)?;
    let empty = Record::default();
    let mut seen: Option<(Seen, Shown)> = None;
    let (mut looked, mut drawn, mut ticked): (Option<Instant>, Option<Instant>, Instant) = (None, None, Instant::now());
    let (mut is_new, mut must_draw) = (true, true);
    let (mut picture, mut cost) = (None, Duration::ZERO);
    loop {
        if stop.load(Ordering::SeqCst) || interrupt::control().is_stopped() && !view.is_own {
            return Ok(Left::Stopped);
        }
        if looked.is_none_or(|at| at.elapsed() >= LOOK) {
            looked = Some(Instant::now());
            is_new |= watched.news();
            let wants = |screen| view.screen == screen && !view.paused;
            if let Some(probe) = &mut watched.probe {
                probe.look_at(Wanted { sessions: wants(View_::Sessions), statements: wants(View_::Statements) });
                if let Some(outcome) = probe.ended() {
                    (view.message, must_draw) = (outcome, true);
                }
            }
        }
        let tick = Instant::now();
        view.passed(u64::try_from((tick - ticked).as_nanos()).unwrap_or(u64::MAX));
        ticked = tick;
        let since = drawn.map_or(Duration::MAX, |at| at.elapsed());
        let every = Duration::from_secs_f64(view.interval_s()).max(PICTURE);
        let every = if view.is_own { every.max(cost * SHARE) } else { every };
        let is_due = match view.is_replay {
            true => !view.paused,
            false => !view.paused && since >= every && (is_new || watched.probe.is_some()),
        };
        if since >= PICTURE && (must_draw || is_due) {
            let before = Usage::of_thread().cpu();
            let record = watched.so_far().unwrap_or(&empty);
            view.length_ns = assay_top::length(record);
            let key = (view.at_ns, view.width_ns(), view.whole);
            if is_new || seen.as_ref().is_none_or(|(_, known)| *known != key) {
                seen = Some((Seen::of(record, view.at_ns, view.width_ns(), view.whole), key));
                is_new = false;
            }
            let (server, is_live) = (watched.server_now(), watched.is_live());
            let scene = Scene {
                seen: &seen.as_ref().expect("it was just made").0,
                server: &server,
                source: &watched.source,
                is_live,
                notices: &watched.notices,
                trouble: watched.trouble.as_deref(),
                color,
            };
            let made = screen.draw(|area, buffer| assay_top::draw(&scene, &mut view, area, buffer)).map_err(lost)?;
            picture = Some(made);
            (drawn, must_draw) = (Some(Instant::now()), false);
            cost = Duration::from_nanos((Usage::of_thread().cpu() - before).0);
        }
        let within =
            PICTURE.saturating_sub(drawn.map_or(Duration::ZERO, |at| at.elapsed())).max(Duration::from_millis(20));
        let Some(key) = screen.key(within.min(LOOK)).map_err(lost)? else { continue };
        must_draw = true;
        let Some(key) = key else { continue };
        match view.key(key) {
            Action::Draw => {}
            Action::Quit => return Ok(Left::Quit),
            Action::Interrupt => {
                view.message = "interrupted: transactions in flight are finished".to_owned();
                interrupt::arrived(nix::sys::signal::Signal::SIGINT as i32);
            }
            Action::Suspend if view.is_own => {
                view.message = "Ctrl-Z would stop the load, too; q leaves this view".to_owned();
            }
            Action::Suspend => screen.suspend().map_err(lost)?,
            Action::Save => view.message = save(picture.as_ref().map(assay_top::plain), view.screen),
            Action::Note(text) => view.message = note(watched.run.as_ref(), &text),
            Action::EndSession(id) => match &watched.probe {
                Some(probe) => probe.end(id),
                None => view.message = "no server is asked".to_owned(),
            },
        }
    }
}

/// Writes a picture to a file of this folder.
fn save(picture: Option<String>, screen: View_) -> String {
    let Some(picture) = picture else { return "nothing was drawn yet".to_owned() };
    let time: String = Time::from(SystemTime::now()).to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    let path = PathBuf::from(format!("assay-top-{}-{time}.txt", screen.name()));
    match files::write(&path, picture) {
        Ok(()) => format!("written to {}", path.display()),
        Err(error) => format!("cannot write {}: {error}", path.display()),
    }
}

fn note(run: Option<&Underway>, text: &str) -> String {
    match run.map(|run| run.leave(text)) {
        Some(Ok(_)) => "the note is in the record with the next interval".to_owned(),
        Some(Err(error)) => format!("cannot leave the note: {error}"),
        None => "there is no run in progress to take the note".to_owned(),
    }
}

/// The view of this process's own run (`assay run --top`), on a thread of its own. The terminal is given back when this
/// is dropped.
pub struct OwnView {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    asked: Arc<Mutex<Option<Target>>>,
    watching: Arc<AtomicBool>,
}

impl OwnView {
    /// Shows events from now on; `None`: stderr is not a terminal.
    pub fn begin(source: String) -> Option<OwnView> {
        if !terminal::stderr_is_terminal() {
            return None;
        }
        let events = events::subscribe();
        let (stop, asked, watching): (Arc<AtomicBool>, Arc<Mutex<Option<Target>>>, _) =
            (Arc::default(), Arc::default(), Arc::new(AtomicBool::new(true)));
        let mut watched = Watched::new(Stream::Own(events), source);
        watched.silence = "the server has not been asked yet";
        watched.asked = Some(Arc::clone(&asked));
        let (stopped, seen) = (Arc::clone(&stop), Arc::clone(&watching));
        let view = View { is_own: true, can_note: true, ..View::default() };
        let show = move || {
            watched.run = assay_process::underway::own();
            if let Err(trouble) = watch(watched, view, terminal::stderr_color(), &stopped) {
                terminal::warn(&format!("{}; the run goes on", trouble.cause));
            }
            seen.store(false, Ordering::SeqCst);
        };
        let thread = std::thread::Builder::new().name("top".to_owned()).spawn(show).ok()?;
        Some(OwnView { stop, thread: Some(thread), asked, watching })
    }

    /// The server whose sessions and statements can be looked at.
    pub fn ask(&self, target: Target) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(target);
    }

    /// Whether it is still shown: the user may have left it.
    pub fn is_shown(&self) -> bool {
        self.watching.load(Ordering::SeqCst)
    }
}

impl Drop for OwnView {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A note for a run, and whether it has taken it before it ended. `said`: called once if that takes long.
pub fn leave_note(run: &Underway, text: &str, said: impl FnOnce()) -> Result<(), Trouble> {
    const SOON: Duration = Duration::from_secs(2);
    let failed = |error: std::io::Error| Trouble::environment(format!("cannot leave a note for the run: {error}"));
    let file = run.leave(text).map_err(failed)?;
    let (begun, mut said) = (Instant::now(), Some(said));
    while file.exists() {
        if !run.goes_on() || interrupt::control().is_stopped() {
            let _ = std::fs::remove_file(&file);
            return Err(Trouble::environment("the run ended before it took the note"));
        }
        if begun.elapsed() >= SOON
            && let Some(say) = said.take()
        {
            say();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
