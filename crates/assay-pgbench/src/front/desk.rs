//! Receives events and output from the clients' Lua.

use std::ffi::CStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assay_script::{ScriptFront, Severity};

use super::Process;
use crate::Script;
use crate::arguments::Partitioning;
use crate::report::{CommandTally, ReportTally};

/// One per process.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) process: &'static dyn Process,
    begun: Duration,
    notes: Mutex<Notes>,
}

/// What was reported so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// By script; `done` stays empty, because the engine counts that.
    pub(super) scripts: Vec<ReportTally>,
    /// By script and command.
    pub(super) commands: Vec<Vec<CommandTally>>,
    /// Total seconds of connects, and their number.
    pub(super) connecting: (f64, u64),
    aborted: u64,
    exits_on_abort: bool,
    found: SetUpFound,
    /// Whether an error was printed.
    told: bool,
    /// A client's connection was refused, which is printed once.
    refused: bool,
}

/// What the set-up found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SetUpFound {
    /// Rows of pgbench_branches.
    pub(super) scale: Option<u32>,
    /// Partitions of pgbench_accounts.
    pub(super) partitions: Option<(Partitioning, u32)>,
}

/// The kind of a report; the numbers are those of `client.lua` and `setup.lua`.
const SKIPPED: u32 = 1;
const RETRIED: u32 = 2;
const FAILED: u32 = 3;
const ABORTED: u32 = 4;
const COMMAND: u32 = 5;
const CONNECTED: u32 = 6;
const SCALE: u32 = 7;
const PARTITIONS: u32 = 8;

/// Kinds of failures; any other number is a serialization failure.
pub(super) const DEADLOCK: u32 = 2;
pub(super) const OTHER: u32 = 4;

impl Desk {
    pub(super) fn new(process: &'static dyn Process, scripts: &[Script]) -> Desk {
        let notes = Notes {
            scripts: vec![ReportTally::default(); scripts.len()],
            commands: scripts.iter().map(|script| vec![CommandTally::default(); script.commands.len()]).collect(),
            ..Notes::default()
        };
        Desk { process, begun: process.elapsed(), notes: Mutex::new(notes) }
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        // What a panicked thread reported is complete.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of it.
    pub(super) fn notes(&self) -> Notes {
        self.lock().clone()
    }

    /// Clients that were aborted.
    pub(super) fn aborted(&self) -> u64 {
        self.lock().aborted
    }

    pub(super) fn found(&self) -> SetUpFound {
        self.lock().found
    }

    pub(super) fn has_told(&self) -> bool {
        self.lock().told
    }

    /// From now on the first aborted client ends the run.
    pub(super) fn exit_on_abort(&self) {
        self.lock().exits_on_abort = true;
    }
}

impl ScriptFront for Desk {
    fn print(&self, text: &[u8]) {
        self.process.complain(&String::from_utf8_lossy(text));
    }

    fn message(&self, severity: Severity, text: &str) {
        let mut notes = self.lock();
        match severity {
            Severity::Fatal => {
                notes.told = true;
                if notes.refused {
                    return;
                }
                notes.refused = text.starts_with("could not create connection for client");
                self.process.complain(&format!("pgbench: error: {text}\n"));
            }
            Severity::Info => {
                self.process.print(&format!("{text}\n"));
            }
            _ => self.process.complain(&format!("pgbench: {text}\n")),
        }
    }

    fn database(&self) {}

    fn exit(&self, code: i32) {
        self.process.exit(code)
    }

    fn now(&self) -> f64 {
        (self.process.elapsed() - self.begun).as_secs_f64()
    }

    fn figures(&self, what: u32, numbers: &[f64]) {
        let mut notes = self.lock();
        let script = numbers.first().map(|number| *number as usize).filter(|at| *at < notes.scripts.len());
        match (what, numbers) {
            (SKIPPED, _) => {
                if let Some(at) = script {
                    notes.scripts[at].skipped += 1;
                }
            }
            (RETRIED, [_, retries]) => {
                if let Some(at) = script {
                    notes.scripts[at].retried += 1;
                    notes.scripts[at].retries += *retries as u64;
                }
            }
            (FAILED, [_, kind]) => {
                if let Some(at) = script {
                    let tally = &mut notes.scripts[at];
                    match *kind as u32 {
                        DEADLOCK => tally.deadlock += 1,
                        OTHER => tally.other += 1,
                        _ => tally.serialization += 1,
                    }
                }
            }
            (ABORTED, _) => {
                notes.aborted += 1;
                if notes.exits_on_abort {
                    self.process.control().stop();
                }
            }
            (COMMAND, [script, command, count, seconds, failures, retries]) => {
                let commands = notes.commands.get_mut(*script as usize);
                if let Some(tally) = commands.and_then(|commands| commands.get_mut(*command as usize)) {
                    tally.count += *count as u64;
                    tally.seconds += seconds;
                    tally.failures += *failures as u64;
                    tally.retries += *retries as u64;
                }
            }
            (CONNECTED, [seconds]) => {
                notes.connecting.0 += seconds;
                notes.connecting.1 += 1;
            }
            (SCALE, [scale]) => notes.found.scale = Some(*scale as u32),
            (PARTITIONS, [method, count]) => {
                let method = if *method == 2.0 { Partitioning::Hash } else { Partitioning::Range };
                notes.found.partitions = Some((method, *count as u32));
            }
            _ => {}
        }
    }

    fn overlay(&self) -> &'static [(&'static CStr, &'static str)] {
        crate::OVERLAY
    }
}

/// As C's library says it.
pub(super) fn words_of(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
