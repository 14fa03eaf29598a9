//! Why a test cannot continue.

use std::fmt;
use std::io;

/// What went wrong, line by line in the words that sysbench's users know, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineFault {
    /// At least one.
    pub lines: Vec<String>,
    /// What the user can do, or has forgotten.
    pub advice: Option<String>,
}

impl std::error::Error for MachineFault {}

impl fmt::Display for MachineFault {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str(&self.lines.join("\n"))
    }
}

impl MachineFault {
    /// With one line.
    pub fn new(line: impl Into<String>) -> MachineFault {
        MachineFault { lines: vec![line.into()], advice: None }
    }

    /// What the system refused: `what`, then its number and words.
    pub fn system(what: impl fmt::Display, error: &io::Error) -> MachineFault {
        let number = error.raw_os_error().unwrap_or(0);
        let words = error.to_string();
        let words = words.split(" (os error").next().unwrap_or_default();
        MachineFault::new(format!("{what} errno = {number} ({words})"))
    }

    /// Adds advice.
    pub fn advise(mut self, advice: &str) -> MachineFault {
        self.advice = Some(advice.to_owned());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_system_names_its_number_and_words() {
        let fault = MachineFault::system("Cannot open file 'x'", &io::Error::from_raw_os_error(2)).advise("look");
        assert_eq!(fault.to_string(), "Cannot open file 'x' errno = 2 (No such file or directory)");
        assert_eq!(fault.advice.as_deref(), Some("look"));
    }
}
