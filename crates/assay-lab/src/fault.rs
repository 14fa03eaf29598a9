//! Errors around servers: cause, place, and what to do.
//!
//! One type for the whole crate, because every fault is read by a person in the end. The binary maps `Blame` to an exit
//! code.

use std::fmt;
use std::io;
use std::path::Path;

/// Who can fix a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The request is wrong: an unknown setting, a version that does not exist.
    Usage,
    /// The server: it refused its settings, died, or does not answer.
    Server,
    /// The machine: a missing program, a permission, a full disk.
    Environment,
    /// Nobody: the user has interrupted it.
    Interrupt,
}

/// A fault: one line with the cause, lines of detail (a place, or somebody's own message), and what to do.
#[derive(Clone, Debug, thiserror::Error)]
pub struct Fault {
    /// Who can fix it.
    pub blame: Blame,
    /// One line, lowercase, without a full stop.
    pub cause: String,
    /// Places, and original messages; one entry per line.
    pub details: Vec<String>,
    /// What to do; one entry per suggestion.
    pub hints: Vec<String>,
}

/// Whether this output of a program says that a disk is full.
pub fn is_full(words: &str) -> bool {
    // The messages of the kernel, PostgreSQL and InnoDB.
    [
        "No space left on device",
        "Check free disk space",
        "Disk is full",
        "disk full",
        "errno: 28",
        "Got error 28",
        "error number 28",
        "OS errno 28",
    ]
    .iter()
    .any(|said| words.contains(said))
}

/// What to do about a full disk.
pub(crate) const FULL: &str = "free some space, or choose another folder with ASSAY_LAB";

/// What most functions of this crate return.
pub type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// A fault with only a cause.
    pub fn new(blame: Blame, cause: impl Into<String>) -> Fault {
        Fault { blame, cause: cause.into(), details: Vec::new(), hints: Vec::new() }
    }

    /// The request is wrong.
    pub fn usage(cause: impl Into<String>) -> Fault {
        Fault::new(Blame::Usage, cause)
    }

    /// The server is at fault.
    pub fn server(cause: impl Into<String>) -> Fault {
        Fault::new(Blame::Server, cause)
    }

    /// The user has interrupted it.
    pub fn interrupted() -> Fault {
        Fault::new(Blame::Interrupt, "interrupted")
    }

    /// The machine is at fault.
    pub fn environment(cause: impl Into<String>) -> Fault {
        Fault::new(Blame::Environment, cause)
    }

    /// An operation on a file failed. For a full disk and a missing permission, with what to do.
    pub fn file(doing: &str, path: &Path, error: &io::Error) -> Fault {
        let fault = Fault::environment(format!("cannot {doing} {}: {error}", path.display()));
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => fault.hint(FULL),
            io::ErrorKind::PermissionDenied => fault.hint("set ASSAY_LAB to a folder that you can write to"),
            _ => fault,
        }
    }

    /// Adds lines with a place or an original message.
    #[must_use]
    pub fn detail(mut self, lines: impl AsRef<str>) -> Fault {
        self.details.extend(lines.as_ref().lines().map(str::to_owned));
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        self.details.iter().try_for_each(|line| write!(f, "\n  {line}"))?;
        self.hints.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

/// Adds the path to an I/O error.
pub trait At<T> {
    /// `doing`: a verb, such as `read`.
    fn at(self, doing: &str, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, doing: &str, path: &Path) -> Result<T> {
        self.map_err(|error| Fault::file(doing, path, &error))
    }
}

/// The candidate most similar to `word`, if one is similar enough.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let alike = candidates.into_iter().map(|candidate| (strsim::jaro_winkler(word, candidate), candidate));
    alike.filter(|(alike, _)| *alike > 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, candidate)| candidate)
}
