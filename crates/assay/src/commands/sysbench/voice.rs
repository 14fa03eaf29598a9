//! Everything the front says: reports and messages of whatever thread, in order, at once, on stdout.

use std::ffi::CStr;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_script::{Host, Severity};
use assay_sysbench::{Level, Log};

/// One per process: messages that are repeated are counted over all threads.
#[derive(Debug)]
pub struct Voice {
    log: Mutex<Log>,
    database: AtomicBool,
    /// Words of scripts up to now, and how many of those to come have been said already.
    said: AtomicUsize,
    again: AtomicUsize,
}

impl Voice {
    /// Says what `verbosity` allows.
    pub fn new(verbosity: i64) -> Voice {
        Voice {
            log: Mutex::new(Log::new(verbosity)),
            database: AtomicBool::new(false),
            said: AtomicUsize::new(0),
            again: AtomicUsize::new(0),
        }
    }

    /// A message.
    pub fn say(&self, level: Level, message: &str) {
        self.with(|log| log.text(level, message));
    }

    /// Prints what `text` makes, with the log to make it with.
    pub fn with(&self, text: impl FnOnce(&mut Log) -> String) {
        let mut log = self.log();
        write(text(&mut log).as_bytes());
    }

    /// Whether the script has asked for a database: reports then tell of statements.
    pub fn uses_database(&self) -> bool {
        self.database.load(Ordering::Relaxed)
    }

    /// What a script said up to now will be said again, and is not to be heard twice.
    pub fn expect_again(&self) {
        self.again.store(self.said.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Whether what a script says is new. Called by one thread at a time as long as anything is to be said again.
    fn is_new(&self) -> bool {
        self.said.fetch_add(1, Ordering::Relaxed);
        self.again.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        // A thread that panicked has said what it said.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host for Voice {
    fn print(&self, text: &[u8]) {
        let _order = self.log();
        if self.is_new() {
            write(text);
        }
    }

    fn message(&self, severity: Severity, text: &str) {
        let level = match severity {
            Severity::Fatal => Level::Fatal,
            Severity::Alert => Level::Alert,
            Severity::Warning => Level::Warning,
            Severity::Notice => Level::Notice,
            Severity::Info => Level::Info,
            Severity::Debug => Level::Debug,
        };
        if self.is_new() {
            self.say(level, text);
        }
    }

    fn database(&self) {
        self.database.store(true, Ordering::Relaxed);
    }

    fn exit(&self, code: i32) {
        std::process::exit(code);
    }

    fn overlay(&self) -> &'static [(&'static CStr, &'static str)] {
        assay_sysbench::OVERLAY
    }
}

/// Whoever reads a report does so line by line: nothing is held back. A reader that has gone away is no error.
fn write(text: &[u8]) {
    if !text.is_empty() {
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(text).and_then(|()| stdout.flush());
    }
}
