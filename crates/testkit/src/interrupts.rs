//! Programs under test must be interruptible, however the tests were started.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use signal_hook::consts::{SIGHUP, SIGINT};
use signal_hook::flag::register_conditional_default;

/// From now on, programs that this process starts react to SIGINT and SIGHUP. In tests that a shell runs in the
/// background or under `nohup`, they would inherit that these are ignored, and assay respects that.
pub fn accept_interrupts() {
    static ONCE: Once = Once::new();
    // A signal with a handler has its default action again in a program that is started.
    ONCE.call_once(|| {
        for signal in [SIGINT, SIGHUP] {
            register_conditional_default(signal, Arc::new(AtomicBool::new(true))).expect("it can be handled");
        }
    });
}
