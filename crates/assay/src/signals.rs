//! Ctrl-C, SIGTERM, and SIGHUP of a terminal that was closed: the first ends the run gracefully, the second quits
//! immediately.
//!
//! An interrupt is obeyed within ten seconds whatever a script or a server does: then the process quits as if
//! interrupted twice. A signal that was ignored when the program started stays ignored: `nohup`, and programs that a
//! script starts in the background, rely on that.
//!
//! Called as `sysbench`, the program is killed by them like one without handlers, and by a reader that went away
//! (SIGPIPE), because wrappers rely on that. Only Ctrl-C during a measurement is handled: the measurement so far is
//! reported.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, mpsc};
use std::time::Duration;

use assay_process::diagnostics::Trouble;
use assay_process::{interrupt, scratch, screen, terminal, underway};
use assay_run::lab;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// Starts handling signals. A thread of its own receives them, so handling may lock and allocate.
pub fn listen() -> Result<(), Trouble> {
    // Rust's runtime ignores SIGPIPE, and child processes, such as those of a script's `os.execute`, would inherit
    // that. A handler that does nothing is not inherited.
    flag::register(SIGPIPE, Arc::default()).map_err(deaf)?;
    let mut signals = Signals::new(heard([SIGINT, SIGTERM, SIGHUP])).map_err(deaf)?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if interrupt::arrived(signal) {
                assay_lab::helpers::interrupt();
                std::thread::spawn(move || quit_late(signal));
            } else {
                quit(signal);
            }
        }
    });
    Ok(())
}

/// How long the program may take to end after an interrupt.
const END_WITHIN: Duration = Duration::from_secs(9);
/// How long removing what this process has made may take when it quits.
const REMOVE_WITHIN: Duration = Duration::from_secs(10);

/// Whether the process removes what it has made, to end then.
static QUITS: AtomicBool = AtomicBool::new(false);

/// While the process quits, the end of its work must not end it: what it has made is being removed.
pub fn wait_for_quit() {
    while QUITS.load(Ordering::Relaxed) {
        std::thread::park();
    }
}

/// Quits when an interrupt has not ended the program in time.
fn quit_late(signal: i32) {
    std::thread::sleep(END_WITHIN);
    let kept = interrupt::record().map(|path| format!("; what was recorded so far is in {}", path.display()));
    let kept = kept.unwrap_or_default();
    terminal::say(&format!("error: the program did not end within 9 s of the interrupt: quitting{kept}\n"));
    quit(signal);
}

/// Removes what only this process needs, and ends it.
fn quit(signal: i32) -> ! {
    QUITS.store(true, Ordering::Relaxed);
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        scratch::remove();
        underway::remove();
        lab::remove();
        done.send(())
    });
    let is_removed = is_done.recv_timeout(REMOVE_WITHIN).is_ok();
    screen::restore();
    if !is_removed {
        terminal::say(
            "error: what this process had made could not be removed within 10 s; `assay server list` shows servers\n",
        );
    }
    std::process::exit(interrupt::exit_of(signal) as i32);
}

/// Those of these signals that were not ignored when the program started.
fn heard(signals: impl IntoIterator<Item = i32>) -> Vec<i32> {
    static IGNORED: LazyLock<u64> = LazyLock::new(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    });
    signals.into_iter().filter(|signal| *IGNORED >> (signal - 1) & 1 == 0).collect()
}

fn deaf(error: std::io::Error) -> Trouble {
    Trouble::environment(format!("cannot handle signals: {error}"))
}

/// Whether Ctrl-C ends the process immediately.
static DIES_OF_INTERRUPT: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// Whether a reader that went away ends the process.
static DIES_OF_CLOSED_PIPE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// From now on signals have their default effect on the process.
pub fn stop_listening() -> Result<(), Trouble> {
    let always = Arc::new(AtomicBool::new(true));
    let conditions =
        [(SIGTERM, &always), (SIGHUP, &always), (SIGPIPE, &*DIES_OF_CLOSED_PIPE), (SIGINT, &*DIES_OF_INTERRUPT)];
    // Rust's runtime ignores SIGPIPE, whatever the parent did about it.
    let heard = heard([SIGTERM, SIGHUP, SIGINT]);
    for (signal, condition) in conditions.into_iter().filter(|(signal, _)| *signal == SIGPIPE || heard.contains(signal))
    {
        flag::register_conditional_default(signal, condition.clone()).map_err(deaf)?;
    }
    Ok(())
}

/// After `stop_listening`: a reader that goes away ends the process no more.
pub fn ignore_closed_pipes() {
    DIES_OF_CLOSED_PIPE.store(false, Ordering::SeqCst);
}

/// After `stop_listening`: while there is something to report at the first Ctrl-C, it stops the control instead.
pub fn hear_interrupts(yes: bool) {
    DIES_OF_INTERRUPT.store(!yes, Ordering::SeqCst);
}
