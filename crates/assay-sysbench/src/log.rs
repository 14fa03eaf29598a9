//! Messages: their levels, and the suppression of repeated ones.
//!
//! A `Log` prints nothing; it returns what to print.

/// Severity of a message. Lower is more severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// The run cannot continue.
    Fatal = 0,
    /// An error of the script.
    Alert = 1,
    /// A warning.
    Warning = 2,
    /// The result, and its headers.
    Notice = 3,
    /// Progress.
    Info = 4,
    /// Internals.
    Debug = 5,
}

impl LogLevel {
    fn prefix(self) -> &'static str {
        match self {
            LogLevel::Fatal => "FATAL: ",
            LogLevel::Alert => "ALERT: ",
            LogLevel::Warning => "WARNING: ",
            LogLevel::Debug => "DEBUG: ",
            LogLevel::Notice | LogLevel::Info => "",
        }
    }
}

/// Longest message, in bytes: a statement of a bulk insert has half a million.
const LENGTH_MAX: usize = 4095;

/// What was printed so far.
#[derive(Clone, Debug)]
pub struct Log {
    /// Messages of a higher level are not printed. 0 … 5.
    pub verbosity: i64,
    last: String,
    repeated: u64,
}

impl Log {
    /// Nothing was printed yet.
    pub fn new(verbosity: i64) -> Log {
        Log { verbosity, last: String::new(), repeated: 0 }
    }

    /// Whether messages of this level are printed.
    pub fn says(&self, level: LogLevel) -> bool {
        level as i64 <= self.verbosity
    }

    /// What to print for a message: itself with prefix and line end; nothing if it is the same as the previous one;
    /// before a different one, how often the previous one was repeated.
    pub fn text(&mut self, level: LogLevel, message: &str) -> String {
        if !self.says(level) {
            return String::new();
        }
        let message = &message[..message.floor_char_boundary(LENGTH_MAX)];
        if message == self.last {
            self.repeated += 1;
            return String::new();
        }
        let mut text = String::new();
        if self.repeated > 0 {
            text = format!("(last message repeated {} times)\n", self.repeated);
        }
        self.repeated = 0;
        self.last = message.to_owned();
        text + level.prefix() + message + "\n"
    }

    /// A line with the seconds since the start. Never collapsed.
    pub fn timestamp(&self, seconds: f64, message: &str) -> String {
        if self.says(LogLevel::Notice) { format!("[ {seconds:.0}s ] {message}\n") } else { String::new() }
    }

    /// A message that is printed unchanged.
    pub fn plain(&self, level: LogLevel, message: &str) -> String {
        if self.says(level) { format!("{message}\n") } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_message_is_counted_and_told_before_the_next() {
        let mut log = Log::new(3);
        let mut all = String::new();
        for message in ["one", "one", "one", "two"] {
            all += &log.text(LogLevel::Fatal, message);
        }
        assert_eq!(all, "FATAL: one\n(last message repeated 2 times)\nFATAL: two\n");
    }

    #[test]
    fn a_long_message_is_cut() {
        let text = Log::new(3).text(LogLevel::Fatal, &format!("{}äx", "x".repeat(4094)));
        assert_eq!(text, format!("FATAL: {}\n", "x".repeat(4094)));
    }

    #[test]
    fn verbosity_is_the_highest_level_that_is_said() {
        let said = |verbosity| {
            let mut log = Log::new(verbosity);
            let levels = [
                LogLevel::Fatal,
                LogLevel::Alert,
                LogLevel::Warning,
                LogLevel::Notice,
                LogLevel::Info,
                LogLevel::Debug,
            ];
            levels.map(|level| log.text(level, &format!("{level:?}"))).concat()
        };
        assert_eq!(said(0), "FATAL: Fatal\n");
        assert_eq!(said(2), "FATAL: Fatal\nALERT: Alert\nWARNING: Warning\n");
        assert!(said(5).ends_with("Notice\nInfo\nDEBUG: Debug\n"));
        assert_eq!(Log::new(2).timestamp(1.0, "x"), "");
        assert_eq!(Log::new(3).timestamp(1.4, "x"), "[ 1s ] x\n");
    }
}
