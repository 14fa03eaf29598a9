//! Processes, identified so that no other is ever signaled: by process id, start time and boot.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::wait;

/// Identifies one process for certain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its process id.
    pub pid: u32,
    /// When it started, in clock ticks since the boot: field 22 of /proc/PID/stat.
    pub(crate) started: u64,
    pub(crate) boot: String,
}

impl Identity {
    /// Identifies a running process; `None` if there is none with this id.
    pub fn of(pid: u32) -> Option<Identity> {
        let (state, started) = stat(pid)?;
        (!matches!(state, 'Z' | 'X')).then(|| Identity { pid, started, boot: boot() })
    }

    /// Identifies this process.
    pub fn own() -> Identity {
        Identity::of(std::process::id()).expect("/proc shows the process that reads it")
    }

    /// Whether it is still running. A zombie is not.
    pub fn runs(&self) -> bool {
        stat(self.pid).is_some_and(|(state, started)| !matches!(state, 'Z' | 'X') && started == self.started)
            && self.boot == boot()
    }

    /// Sends a signal, if it is still running.
    pub fn signal(&self, signal: Signal) {
        if self.runs() {
            // It may have ended since.
            let _ = kill(self.raw(), signal);
        }
    }

    /// The running processes that it started: PostgreSQL's backends. MySQL has none.
    pub fn children(&self) -> Vec<Identity> {
        if !self.runs() {
            return Vec::new();
        }
        let text = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.pid)).unwrap_or_default();
        text.split_whitespace().filter_map(|pid| pid.parse().ok()).filter_map(Identity::of).collect()
    }

    /// Stops it and its children (SIGSTOP): connections stay open, nothing answers.
    pub fn suspend(&self) {
        // The parent first, so that it starts no more children.
        self.signal(Signal::SIGSTOP);
        self.children().iter().for_each(|child| child.signal(Signal::SIGSTOP));
    }

    /// Continues it and its children.
    pub fn resume(&self) {
        self.children().iter().chain([self]).for_each(|process| process.signal(Signal::SIGCONT));
    }

    /// Kills it and its children without notice and waits until they are gone. `false`: something is still there after
    /// `patience` (a process in an uninterruptible system call).
    pub fn kill(&self, patience: Duration) -> bool {
        self.signal(Signal::SIGSTOP);
        let all: Vec<Identity> = self.children().into_iter().chain([self.clone()]).collect();
        all.iter().for_each(|process| process.signal(Signal::SIGKILL));
        gone(&all, patience)
    }

    fn raw(&self) -> Pid {
        Pid::from_raw(self.pid as i32)
    }
}

/// Whether all of these have ended, after waiting for at most `patience`.
pub(crate) fn gone(processes: &[Identity], patience: Duration) -> bool {
    let all_gone = || Ok::<_, ()>(processes.iter().all(|process| !process.runs()).then_some(()));
    wait::until(patience, all_gone) == Ok(Some(()))
}

/// State and start time of a process.
fn stat(pid: u32) -> Option<(char, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain anything; the state follows it, and is field 3.
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    Some((fields.first()?.chars().next()?, fields.get(22 - 3)?.parse().ok()?))
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
