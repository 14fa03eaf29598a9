//! Whether the user wants the work to end, and the programs that end with it.
//!
//! The binary receives the signals, and reports them here.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use assay_engine::Control;
use assay_lab::{Blame, Fault};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::diagnostics::{Exit, Trouble};

/// The control that signals stop. One per process, like signals.
pub fn control() -> &'static Control {
    static CONTROL: OnceLock<Control> = OnceLock::new();
    CONTROL.get_or_init(Control::default)
}

/// A signal has arrived: passes it on to the running program. The first one stops the control; returns whether this is
/// the first.
pub fn arrived(signal: i32) -> bool {
    tell(&child(), signal);
    let is_first = SIGNAL.swap(signal, Ordering::Relaxed) == 0;
    if is_first {
        control().stop();
    }
    is_first
}

/// The exit code for the signal that ended the work early.
pub fn exit() -> Exit {
    exit_of(SIGNAL.load(Ordering::Relaxed))
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        let exit = match fault.blame {
            Blame::Usage => Exit::Usage,
            Blame::Server => Exit::Server,
            Blame::Environment => Exit::Environment,
            Blame::Interrupt => exit(),
        };
        let mut trouble = Trouble::new(exit, fault.cause);
        trouble.details = fault.details;
        trouble.hints = fault.hints;
        trouble
    }
}

/// The exit code for a signal.
pub fn exit_of(signal: i32) -> Exit {
    let is_terminated = [Signal::SIGTERM as i32, Signal::SIGHUP as i32].contains(&signal);
    if is_terminated { Exit::Terminated } else { Exit::Interrupted }
}

/// The record of the run in progress has been begun in this file.
pub fn record_is_in(path: &Path) {
    *RECORD.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.to_owned());
}

/// The file with what was recorded of the run in progress; `None`: there is none.
pub fn record() -> Option<PathBuf> {
    let path = RECORD.lock().unwrap_or_else(PoisonError::into_inner).clone();
    path.filter(|path| path.exists())
}

static RECORD: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The last signal; 0 before the first.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Runs a program to its end. It gets every signal that this process gets, but no Ctrl-C of its own: a terminal sends
/// that to the whole process group, and twice would mean "quit immediately".
pub fn run(mut command: Command) -> std::io::Result<ExitStatus> {
    *child() = Some(command.process_group(0).spawn()?);
    // A signal from just before did not reach it.
    if control().is_stopped() {
        tell(&child(), SIGNAL.load(Ordering::Relaxed));
    }
    // Polled instead of waited for: a process that was waited for has lost the id that signals need.
    loop {
        let mut running = child();
        let ended = running.as_mut().map(Child::try_wait).transpose();
        if !matches!(ended, Ok(Some(None))) {
            *running = None;
            return ended.map(|status| status.flatten().expect("it was started here, and has ended"));
        }
        drop(running);
        std::thread::sleep(PAUSE);
    }
}

/// Runs a short program to its end while another one is under way. An interrupt kills it.
pub fn run_beside(mut command: Command) -> std::io::Result<ExitStatus> {
    let mut beside = command.process_group(0).spawn()?;
    loop {
        if let Some(status) = beside.try_wait()? {
            return Ok(status);
        }
        if control().is_stopped() {
            let _ = kill(Pid::from_raw(-i32::try_from(beside.id()).unwrap_or(i32::MAX)), Signal::SIGKILL);
        }
        std::thread::sleep(PAUSE);
    }
}

/// The same, and interrupts the program once `ended` is set: it ends as with Ctrl-C, and what it has measured is kept.
pub fn run_until(mut command: Command, ended: &AtomicBool) -> std::io::Result<ExitStatus> {
    let mut beside = command.process_group(0).spawn()?;
    let number = i32::try_from(beside.id()).unwrap_or(i32::MAX);
    let mut is_told = false;
    loop {
        if let Some(status) = beside.try_wait()? {
            return Ok(status);
        }
        if control().is_stopped() {
            let _ = kill(Pid::from_raw(-number), Signal::SIGKILL);
        } else if ended.load(Ordering::Relaxed) && !is_told {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(number), Signal::SIGINT);
            is_told = true;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Short compared with any trial, and long enough to cost nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// The running program.
fn child() -> MutexGuard<'static, Option<Child>> {
    static CHILD: Mutex<Option<Child>> = Mutex::new(None);
    CHILD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(child: &Option<Child>, signal: i32) {
    let number = child.as_ref().and_then(|child| i32::try_from(child.id()).ok());
    if let (Some(number), Ok(signal)) = (number, Signal::try_from(signal)) {
        // It may have ended meanwhile.
        let _ = kill(Pid::from_raw(number), signal);
    }
}
