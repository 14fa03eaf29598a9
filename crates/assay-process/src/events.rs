//! The events of this process as lines on stdout, for the process that started it with `--events` or `--child`.
//!
//! `assay lab` and `assay duel` show them, start steps by them, and learn from the last one why a run failed. stdout
//! itself leads nowhere then: nothing else can get in between, and no program that a script starts can keep the stream
//! open. The other end is in `child`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use assay_record::{Event, StageStarted, Time};

/// The word after the program's name that asks for events.
const OPTION: &str = "--events";
/// The only argument of a process that reads what to do from its stdin (`assay_spec::ChildSpec`).
pub const CHILD: &str = "--child";

static STREAM: OnceLock<Mutex<File>> = OnceLock::new();

/// The arguments of this process, starting with its name, without `OPTION`.
pub fn arguments() -> Vec<OsString> {
    let mut words = all_arguments().to_vec();
    if is_asked(&words) {
        words.remove(1);
    }
    words
}

/// All arguments of this process, as they were before `title` has overwritten passwords in them.
pub(crate) fn all_arguments() -> &'static [OsString] {
    static ARGUMENTS: OnceLock<Vec<OsString>> = OnceLock::new();
    ARGUMENTS.get_or_init(|| std::env::args_os().collect())
}

/// The arguments as text, as far as they are UTF-8.
pub fn words() -> Vec<String> {
    arguments().into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

fn is_asked(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == OPTION)
}

/// Whether another process of this program has started this one.
pub fn is_child() -> bool {
    all_arguments().get(1).is_some_and(|word| word == CHILD)
}

/// If events are wanted, they are written to stdout from now on, and nothing else is.
pub fn begin() -> io::Result<()> {
    if !is_asked(all_arguments()) && !is_child() {
        return Ok(());
    }
    let stream = io::stdout().as_fd().try_clone_to_owned()?;
    nix::unistd::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    STREAM.get_or_init(|| Mutex::new(stream.into()));
    Ok(())
}

/// Passes an event on, if somebody wants it: to the process that started this one, and to views in this one. An error
/// is ignored: the run is worth more.
pub fn tell(event: impl FnOnce() -> Event) {
    let stream = STREAM.get();
    let mut views = views();
    if stream.is_none() && views.is_empty() {
        return;
    }
    let event = Arc::new(event());
    if let Some(stream) = stream {
        let line = event.line() + "\n";
        let _ = stream.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
    views.retain(|view| view.send(Arc::clone(&event)).is_ok());
}

/// Passes an event on to views in this process alone.
pub fn tell_views(event: impl FnOnce() -> Event) {
    let mut views = views();
    if !views.is_empty() {
        let event = Arc::new(event());
        views.retain(|view| view.send(Arc::clone(&event)).is_ok());
    }
}

/// Every event from now on, until the receiver is dropped. Whoever sends them never waits.
pub fn subscribe() -> Receiver<Arc<Event>> {
    let (view, events) = mpsc::channel();
    views().push(view);
    events
}

fn views() -> MutexGuard<'static, Vec<Sender<Arc<Event>>>> {
    static VIEWS: Mutex<Vec<Sender<Arc<Event>>>> = Mutex::new(Vec::new());
    VIEWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The measured part of a stage starts after this time.
pub fn stage(stage: usize, sessions: u32, rate_per_s: Option<f64>, ahead: Duration) -> Event {
    let (stage, started) = (stage as u32, Time::from(SystemTime::now() + ahead));
    Event::StageStarted(StageStarted { stage, sessions, rate_per_s, started, start_ns: None })
}
