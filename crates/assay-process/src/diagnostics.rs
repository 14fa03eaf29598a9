//! Error messages and exit codes.
//!
//! Nothing below a subcommand's `run` prints an error or exits. It returns a `Trouble` with the cause, the place and
//! what to do about it.

use std::fmt::Write as _;
use std::process::ExitCode;

use assay_fleet::BusError;
use assay_record::{Event, Exited, ReadError, text_without_secrets};
use assay_report::visible;
use assay_seam::TargetError;

use crate::events;
use crate::terminal::{self, Unwritable};

/// The exit codes. They are part of the interface: numbers never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything was done.
    Success = 0,
    /// `check` found a difference, a workload's command returned failure, or a condition of `--fail-if` holds.
    Difference = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The workload is wrong.
    Workload = 3,
    /// The server refused, failed or cannot be reached.
    Server = 4,
    /// An error of this machine: a file, a limit, memory.
    Environment = 5,
    /// Agents of a fleet, or the bus between them, are missing, or were lost: the result is partial.
    Fleet = 6,
    /// A bug in assay.
    Bug = 70,
    /// Ctrl-C before the work was done (128 + SIGINT).
    Interrupted = 130,
    /// SIGTERM before the work was done (128 + SIGTERM).
    Terminated = 143,
}

impl Exit {
    /// All of them, with their meaning as stated in the help.
    pub const ALL: [(Exit, &str); 10] = [
        (Exit::Success, "success"),
        (Exit::Difference, "a check, an audit or a --fail-if condition failed"),
        (Exit::Usage, "wrong usage"),
        (Exit::Workload, "error in the workload"),
        (Exit::Server, "server error"),
        (Exit::Environment, "error on this machine"),
        (Exit::Fleet, "a fleet's agents missing or lost"),
        (Exit::Bug, "bug in assay"),
        (Exit::Interrupted, "interrupted (Ctrl-C)"),
        (Exit::Terminated, "terminated (SIGTERM)"),
    ];

    /// The one with this number.
    pub fn of_code(code: i32) -> Option<Exit> {
        Exit::ALL.into_iter().map(|(exit, _)| exit).find(|exit| *exit as i32 == code)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error: cause, place, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The exit code.
    pub exit: Exit,
    /// One line, without `error:` and without a full stop.
    pub cause: String,
    /// Places, and original messages; one entry per line.
    pub details: Vec<String>,
    /// What to do; one entry per suggestion.
    pub hints: Vec<String>,
}

impl Trouble {
    /// A trouble with only a cause.
    pub fn new(exit: Exit, cause: impl Into<String>) -> Trouble {
        Trouble { exit, cause: short(&cause.into()), details: Vec::new(), hints: Vec::new() }
    }

    /// The command line is wrong.
    pub fn usage(cause: impl Into<String>) -> Trouble {
        Trouble::new(Exit::Usage, cause)
    }

    /// This machine is at fault.
    pub fn environment(cause: impl Into<String>) -> Trouble {
        Trouble::new(Exit::Environment, cause)
    }

    /// Adds lines with a place or an original message.
    #[must_use]
    pub fn detail(mut self, lines: impl AsRef<str>) -> Trouble {
        let room = LINES_MAX.saturating_sub(self.details.len());
        self.details.extend(lines.as_ref().lines().take(room).map(short));
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Trouble {
        self.hints.push(short(&hint.into()));
        self
    }

    /// Whether there is any advice.
    pub fn has_hints(&self) -> bool {
        !self.hints.is_empty()
    }

    /// The end of the process, for the one that started it.
    pub fn exited(&self) -> Exited {
        let plain = |texts: &[String]| texts.iter().map(|text| text_without_secrets(text)).collect();
        Exited {
            code: self.exit as u8,
            cause: Some(text_without_secrets(&self.cause)),
            details: plain(&self.details),
            hints: plain(&self.hints),
        }
    }

    /// The text for stderr: `error:`, indented details, a blank line, hints.
    pub fn text(&self, color: bool) -> String {
        // Whatever is quoted gets no colors of its own.
        let label = terminal::paint("error:", terminal::RED, color);
        let mut text = format!("{label} {}\n", visible(&self.cause, false));
        for line in &self.details {
            let _ = writeln!(text, "{}", format!("  {}", visible(line, false)).trim_end());
        }
        if !self.hints.is_empty() {
            text.push('\n');
        }
        for hint in &self.hints {
            let label = terminal::paint("hint:", terminal::CYAN, color);
            let _ = writeln!(text, "{label} {}", visible(hint, false));
        }
        text
    }
}

/// Lines of details.
const LINES_MAX: usize = 1000;
/// Bytes of a line: a server may answer with megabytes, and people read the first words.
const LINE_BYTES_MAX: usize = 4000;

/// The beginning of a text, and how much more there is.
fn short(text: &str) -> String {
    if text.len() <= LINE_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(LINE_BYTES_MAX);
    format!("{}… ({} more bytes)", &text[..end], text.len() - end)
}

impl From<TargetError> for Trouble {
    fn from(error: TargetError) -> Trouble {
        let exit = if error.is_missing { Exit::Server } else { Exit::Usage };
        let trouble = Trouble::new(exit, error.message);
        match error.hint {
            Some(hint) => trouble.hint(hint),
            None => trouble,
        }
    }
}

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Trouble {
        let trouble = Trouble::environment(error.to_string());
        let trouble = match std::error::Error::source(&error) {
            Some(source) => trouble.detail(source.to_string()),
            None => trouble,
        };
        match error {
            ReadError::CutOff { .. } => trouble.hint("it was not copied completely: copy it again"),
            ReadError::Io { source, .. } if source.kind() == std::io::ErrorKind::IsADirectory => {
                trouble.hint("`assay lab show FOLDER` shows an experiment, `assay library FOLDER` finds records")
            }
            _ => trouble,
        }
    }
}

impl From<assay_spec::Wrong> for Trouble {
    fn from(wrong: assay_spec::Wrong) -> Trouble {
        let (cause, hint) = wrong.as_options();
        Trouble { hints: hint.into_iter().collect(), ..Trouble::usage(cause) }
    }
}

impl From<BusError> for Trouble {
    fn from(error: BusError) -> Trouble {
        let trouble = Trouble::new(Exit::Fleet, error.to_string());
        match error {
            BusError::Url(_) => Trouble { exit: Exit::Usage, ..trouble },
            BusError::File { .. } => Trouble { exit: Exit::Environment, ..trouble },
            BusError::Connect { .. } => trouble.hint("start it (`nats-server -js`), or check address, login and TLS"),
            BusError::JetStream { .. } => {
                trouble.hint("start it with JetStream (`nats-server -js`), with room to store")
            }
            BusError::NoAnswer { .. } => trouble.hint("see `assay fleet status` for the agents that are there"),
        }
    }
}

impl From<Unwritable> for Trouble {
    fn from(Unwritable(error): Unwritable) -> Trouble {
        Trouble::environment(format!("cannot write the result: {error}"))
    }
}

/// Prints the error, if there is one, and returns the exit code.
pub fn report(result: Result<impl Into<ExitCode>, Trouble>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(trouble) => {
            events::tell(|| Event::Exited(trouble.exited()));
            terminal::say(&trouble.text(terminal::stderr_color()));
            trouble.exit.into()
        }
    }
}

/// The candidate most similar to `word`, if one is similar enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        // In short names, a single typo is a large part.
        .filter(|(alike, candidate)| *alike > 0.8 || strsim::damerau_levenshtein(word, candidate) == 1)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The names that resemble a word most, however little, best first.
pub fn nearest_few<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let mut alike: Vec<(f64, &str)> =
        candidates.into_iter().map(|candidate| (strsim::jaro_winkler(word, candidate), candidate)).collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0));
    alike.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_shows_cause_place_and_what_to_do() {
        let trouble = Trouble::new(Exit::Workload, "workload tpcc failed in `new_order`")
            .detail("tpcc/main.lua:118: deadlock detected (40P01)\nafter 10 retries")
            .hint("lower `--sessions`");
        assert_eq!(
            trouble.text(false),
            "error: workload tpcc failed in `new_order`\n  tpcc/main.lua:118: deadlock detected (40P01)\n  after 10 retries\n\n\
             hint: lower `--sessions`\n"
        );
        assert!(trouble.text(true).starts_with("\u{1b}["));
        let long = "ü".repeat(8 << 20);
        let text = Trouble::new(Exit::Server, &*long).detail(&long).hint(long).text(false);
        assert!(text.len() < 13_000 && text.contains("… (16773216 more bytes)\n"), "{}", text.len());
    }

    #[test]
    fn the_nearest_name_is_only_given_when_it_is_near() {
        let names = ["oltp_read_only", "oltp_read_write", "bulk_insert"];
        assert_eq!(nearest("oltp_raed_write", names), Some("oltp_read_write"));
        assert_eq!(nearest("tpcc", names), None);
        assert_eq!(nearest("tsp", ["qps", "tps", "p99"]), Some("tps"));
    }
}
