//! Programs that run for a moment, such as the one that creates a data directory: an interrupt ends them, and none
//! outlives this process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::identity::Identity;

/// Those that run, each the leader of its process group.
static RUNNING: Mutex<Vec<Identity>> = Mutex::new(Vec::new());

/// The signal that has ended this process's work.
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// How long they may take to clean up.
const PATIENCE: Duration = Duration::from_secs(1);

/// The user wants the work to end: those that run are asked to end, and no start of a server is waited for.
pub fn interrupt() {
    IS_INTERRUPTED.store(true, Ordering::SeqCst);
    let asked = running().clone();
    if asked.is_empty() {
        return;
    }
    signal(&asked, Signal::SIGTERM);
    std::thread::spawn(move || {
        std::thread::sleep(PATIENCE);
        signal(&asked, Signal::SIGKILL);
    });
}

/// Kills all of them: this process is about to end.
pub(crate) fn kill() {
    IS_INTERRUPTED.store(true, Ordering::SeqCst);
    signal(&running(), Signal::SIGKILL);
}

/// Whether the user wants the work to end.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

fn signal(all: &[Identity], signal: Signal) {
    for one in all.iter().filter(|one| one.runs()) {
        // It may have ended since.
        let _ = killpg(Pid::from_raw(one.pid as i32), signal);
    }
}

fn running() -> MutexGuard<'static, Vec<Identity>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program that is among those that run, until this is dropped.
pub(crate) struct Registered(Option<Identity>);

impl Registered {
    /// The process of this id, which leads a group.
    pub(crate) fn new(pid: u32) -> Registered {
        let identity = Identity::of(pid);
        running().extend(identity.clone());
        // A signal from just before has not reached it.
        if is_interrupted() {
            signal(identity.as_slice(), Signal::SIGKILL);
        }
        Registered(identity)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        running().retain(|one| Some(one) != self.0.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_group_of_processes_ends_as_a_whole() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "tail -f /dev/null & tail -f /dev/null & wait"]).process_group(0);
        let mut shell = shell.spawn().unwrap();
        let identity = Identity::of(shell.id()).unwrap();
        let children = || identity.children();
        while children().len() < 2 {
            std::thread::yield_now();
        }
        let cats = children();
        signal(std::slice::from_ref(&identity), Signal::SIGKILL);
        shell.wait().unwrap();
        assert!(crate::identity::gone(&cats, Duration::from_secs(10)));
    }
}
