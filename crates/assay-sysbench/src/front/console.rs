//! All output of the front: reports and messages of all threads, in order, unbuffered, on stdout.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_script::{ScriptFront, Severity};

use super::process::Process;
use crate::{Log, LogLevel};

/// One per process: repeated messages are counted over all threads.
#[derive(Debug)]
pub(super) struct Console {
    process: &'static dyn Process,
    /// `--luajit-cmd`
    luajit_cmd: String,
    log: Mutex<Log>,
    database: AtomicBool,
    /// Script output so far, and how many of the next messages were already printed.
    said: AtomicUsize,
    again: AtomicUsize,
}

impl Console {
    /// Prints what `verbosity` allows.
    pub(super) fn new(process: &'static dyn Process, verbosity: i64, luajit_cmd: &str) -> Console {
        Console {
            process,
            luajit_cmd: luajit_cmd.to_owned(),
            log: Mutex::new(Log::new(verbosity)),
            database: AtomicBool::new(false),
            said: AtomicUsize::new(0),
            again: AtomicUsize::new(0),
        }
    }

    /// A message.
    pub(super) fn say(&self, level: LogLevel, message: &str) {
        self.with(|log| log.text(level, message));
    }

    /// Prints what `text` makes, with the log to make it with.
    pub(super) fn with(&self, text: impl FnOnce(&mut Log) -> String) {
        let mut log = self.log();
        self.write(text(&mut log).as_bytes());
    }

    /// Whether the script has asked for a database: reports then include statements.
    pub(super) fn uses_database(&self) -> bool {
        self.database.load(Ordering::Relaxed)
    }

    /// The script's output up to now will be repeated, and must not be printed twice.
    pub(super) fn expect_again(&self) {
        self.again.store(self.said.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether a script's message is new. Called by one thread at a time as long as messages are repeated.
    fn is_new(&self) -> bool {
        self.said.fetch_add(1, Ordering::Relaxed);
        self.again.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }

    /// Reports are read line by line, so nothing is buffered. Write errors are ignored.
    fn write(&self, text: &[u8]) {
        if !text.is_empty() {
            self.process.print(text);
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        // What a panicked thread printed is complete.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScriptFront for Console {
    fn print(&self, text: &[u8]) {
        let _order = self.log();
        if self.is_new() {
            self.write(text);
        }
    }

    fn message(&self, severity: Severity, text: &str) {
        let level = match severity {
            Severity::Fatal => LogLevel::Fatal,
            Severity::Alert => LogLevel::Alert,
            Severity::Warning => LogLevel::Warning,
            Severity::Notice => LogLevel::Notice,
            Severity::Info => LogLevel::Info,
            Severity::Debug => LogLevel::Debug,
        };
        if self.is_new() {
            self.say(level, text);
        }
    }

    fn database(&self) {
        self.database.store(true, Ordering::Relaxed);
    }

    fn exit(&self, code: i32) {
        self.process.exit(code);
    }

    fn overlay(&self) -> &'static [(&'static CStr, &'static str)] {
        crate::overlay(&self.luajit_cmd)
    }
}
