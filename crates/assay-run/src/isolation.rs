//! The check of a run's history, and its file for Elle.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use assay_engine::Outcome;
use assay_isolation::{History, IsolationLevel, check};
use assay_process::diagnostics::Trouble;
use assay_process::{files, terminal};
use assay_record::Isolation;
use assay_script::Declaration;

/// A check of so many transactions takes long enough to be announced.
const MANY: usize = 100_000;

/// Checks the history; `None` if the workload has none.
pub fn verdict(outcome: &Outcome, quiet: bool) -> Option<Isolation> {
    let level = outcome.declarations.iter().find_map(|declaration| match declaration {
        Declaration::History(level, _) => IsolationLevel::of_name(level),
        _ => None,
    })?;
    let history = &outcome.history;
    if !quiet && history.len() >= MANY {
        terminal::say(&format!("checking the history of {} transactions\n", history.len()));
    }
    // All sessions are of this process and read one clock.
    Some(Isolation { level, verdict: check(history, 0) })
}

/// Writes the file of `--history`.
pub fn write(path: &Path, history: &History) -> Result<(), Trouble> {
    files::write_by(path, |file| {
        let mut text = Text { file: BufWriter::new(file), failure: None };
        let written = history.write_edn(&mut text);
        match text.failure {
            Some(error) => Err(error),
            None => written.map_err(std::io::Error::other).and_then(|()| text.file.flush()),
        }
    })
    .map_err(|error| {
        Trouble::environment(format!("cannot write the history {}: {error}", path.display()))
            .hint("choose a writable file with `--history FILE`")
    })
}

/// A file as a target for text; keeps the reason of a failure, which `fmt::Error` cannot.
struct Text<'a> {
    file: BufWriter<&'a mut File>,
    failure: Option<std::io::Error>,
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.file.write_all(text.as_bytes()).map_err(|error| {
            self.failure = Some(error);
            fmt::Error
        })
    }
}
