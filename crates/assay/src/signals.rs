//! Ctrl-C and SIGTERM: the first ends the run gracefully, the second quits immediately.
//!
//! Called as `sysbench`, the program is killed by them like one without handlers, and by a reader that went away
//! (SIGPIPE), because wrappers rely on that. Only Ctrl-C during a measurement is handled: the measurement so far is
//! reported.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use assay_engine::Control;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGINT, SIGPIPE, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::diagnostics::{Exit, Trouble};
use crate::{lab, scratch};

/// The control that signals stop. One per process, like signals.
pub fn control() -> &'static Control {
    static CONTROL: OnceLock<Control> = OnceLock::new();
    CONTROL.get_or_init(Control::default)
}

/// Starts handling signals. A thread of its own receives them, so handling may lock and allocate.
pub fn listen() -> Result<(), Trouble> {
    // Rust's runtime ignores SIGPIPE, and child processes, such as those of a script's `os.execute`, would inherit
    // that. A handler that does nothing is not inherited.
    flag::register(SIGPIPE, Arc::default()).map_err(deaf)?;
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(deaf)?;
    let control = control();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            tell(&child(), signal);
            if FIRST.swap(signal, Ordering::Relaxed) == 0 {
                control.stop();
            } else {
                scratch::remove();
                lab::remove();
                std::process::exit(exit_of(signal) as i32);
            }
        }
    });
    Ok(())
}

fn deaf(error: std::io::Error) -> Trouble {
    Trouble::environment(format!("cannot handle signals: {error}"))
}

/// Whether Ctrl-C ends the process immediately.
static DIES_OF_INTERRUPT: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// From now on signals have their default effect on the process.
pub fn stop_listening() -> Result<(), Trouble> {
    let always = || Arc::new(AtomicBool::new(true));
    for (signal, condition) in [(SIGTERM, always()), (SIGPIPE, always()), (SIGINT, DIES_OF_INTERRUPT.clone())] {
        flag::register_conditional_default(signal, condition).map_err(deaf)?;
    }
    Ok(())
}

/// After `stop_listening`: while there is something to report at the first Ctrl-C, it stops the control instead.
pub fn hear_interrupts(yes: bool) {
    DIES_OF_INTERRUPT.store(!yes, Ordering::SeqCst);
}

/// The exit code for the signal that ended the work early.
pub fn exit() -> Exit {
    exit_of(FIRST.load(Ordering::Relaxed))
}

/// Runs a program to its end. It gets every signal that this process gets, but no Ctrl-C of its own: a terminal sends
/// that to the whole process group, and twice would mean "quit immediately".
pub fn run(mut command: Command) -> std::io::Result<ExitStatus> {
    *child() = Some(command.process_group(0).spawn()?);
    // A signal from just before did not reach it.
    if control().is_stopped() {
        tell(&child(), FIRST.load(Ordering::Relaxed));
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

/// The first signal; 0 before it.
static FIRST: AtomicI32 = AtomicI32::new(0);

fn exit_of(signal: i32) -> Exit {
    if signal == SIGTERM { Exit::Terminated } else { Exit::Interrupted }
}
