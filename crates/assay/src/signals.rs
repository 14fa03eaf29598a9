//! Ctrl-C and SIGTERM: the first ends the run gracefully, the second quits at once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use assay_engine::Control;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::diagnostics::{Exit, Trouble};
use crate::scratch;

/// The control that signals stop. One per process, as signals are.
pub fn control() -> &'static Control {
    static CONTROL: OnceLock<Control> = OnceLock::new();
    CONTROL.get_or_init(Control::default)
}

/// Starts listening. A thread of its own takes the signals, so what is done about them may lock and allocate.
pub fn listen() -> Result<(), Trouble> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Trouble::environment(format!("cannot listen to signals: {error}")))?;
    let control = control();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if FIRST.swap(signal, Ordering::Relaxed) == 0 {
                control.stop();
            } else {
                scratch::remove();
                std::process::exit(exit_of(signal) as i32);
            }
        }
    });
    Ok(())
}

/// The exit code that says which signal ended the work early.
pub fn exit() -> Exit {
    exit_of(FIRST.load(Ordering::Relaxed))
}

/// The first signal; 0 before it.
static FIRST: AtomicI32 = AtomicI32::new(0);

fn exit_of(signal: i32) -> Exit {
    if signal == SIGTERM { Exit::Terminated } else { Exit::Interrupted }
}
