//! A parsed command line: its options and settings, and the console for output.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use assay_engine::RATE_MAX;

use super::console::Console;
use super::process::Process;
use crate::options::key_of;
use crate::{CoreSettings, LogLevel, Options};

/// Exit code of any error.
pub(super) const FAILED: u8 = 1;
/// Exit code of a run that was given up: sessions not ready in time, or a forced shutdown.
pub(super) const GIVEN_UP: u8 = 2;

/// What the program should do.
pub(super) struct Invocation {
    pub(super) process: &'static dyn Process,
    /// All options in effect, including the test's once it is known.
    pub(super) options: Options,
    /// The core's.
    pub(super) settings: CoreSettings,
    pub(super) console: Arc<Console>,
    /// The command line as given, the program's name first.
    pub(super) words: Vec<String>,
    /// The built-in test to run, and the names of its own options.
    pub(super) test: (&'static str, Vec<String>),
}

impl Invocation {
    /// A session has logged in. MySQL's C client ignores SIGPIPE from its start on, so a script that has connected
    /// goes on when the reader of its output goes away, as in sysbench.
    pub(super) fn note_login(&self) {
        if self.options.text("db_driver") == "mysql" {
            self.process.ignore_closed_pipes();
        }
    }

    /// The seed in effect; a different one each time unless given.
    pub(super) fn seed(&self) -> u64 {
        match self.settings.seed {
            // The keys of a hash map come from the system's random numbers.
            0 => RandomState::new().build_hasher().finish() >> 1,
            seed => seed as u64,
        }
    }

    /// The text after an option on the command line, not parsed.
    pub(super) fn as_written(&self, key: &str) -> Option<String> {
        let options = self.words.iter().rev().filter_map(|word| word.strip_prefix("--")?.split_once('='));
        options.into_iter().find(|(name, _)| key_of(name) == key).map(|(_, value)| value.to_owned())
    }

    /// An impossible command: the exit code.
    pub(super) fn refuse(&self, message: &str) -> u8 {
        refuse(self.process, message)
    }

    /// At such a rate the queue of events is full before the first is done. sysbench says so, and gives up.
    pub(super) fn refuse_rate(&self) {
        if self.settings.rate as f64 > RATE_MAX {
            let text = "The event queue is full. This means the worker threads are unable to keep up with the specified \
                        event generation rate";
            self.console.say(LogLevel::Fatal, text);
            self.process.exit(FAILED.into());
        }
    }
}

/// A usage error goes to stderr.
pub(super) fn refuse(process: &dyn Process, message: &str) -> u8 {
    process.complain(&format!("{message}\n"));
    FAILED
}
