//! The file of `--journal`: one line per transaction that a workload logs (`assay.journal`).
//!
//! It is written during the run, so that a killed run leaves what it had. If the file can no longer be written, it is
//! given up: the run, its report and its record are more important, and the error is reported immediately and at the
//! end.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use assay_engine::Line;
use assay_process::diagnostics::{Exit, Trouble};
use assay_record::{journal_head, journal_line};
use assay_seam::Nanos;

/// A journal that is being written.
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Wall-clock time of the run's start; `None` until the workload has named its columns.
    start: Option<SystemTime>,
    lines: u64,
    failure: Option<io::Error>,
}

impl Journal {
    /// Creates the file, or empties it.
    pub fn create(path: PathBuf) -> Result<Journal, Trouble> {
        match File::create(&path) {
            Ok(file) => Ok(Journal { path, file, start: None, lines: 0, failure: None }),
            Err(error) => Err(Trouble::environment(format!("cannot write the journal {}: {error}", path.display()))
                .hint("choose a writable file with `--journal FILE`")),
        }
    }

    /// Appends lines, preceded by the column names. `now`: time since the start of the run. Returns an error, once, if
    /// they cannot be written.
    pub fn add(&mut self, columns: &[String], lines: &[Line], now: Nanos) -> Option<Trouble> {
        if self.failure.is_some() {
            return None;
        }
        let mut text = String::new();
        let start = *self.start.get_or_insert_with(|| {
            text = journal_head(columns);
            SystemTime::now() - Duration::from_nanos(now.0)
        });
        for line in lines {
            let instants = [line.due, line.sent, line.done].map(|instant| start + Duration::from_nanos(instant.0));
            text.push_str(&journal_line(instants, &line.values));
        }
        match self.file.write_all(text.as_bytes()) {
            Ok(()) => self.lines += lines.len() as u64,
            Err(error) => self.failure = Some(error),
        }
        self.trouble()
    }

    /// The run is over. Returns an error if the file is incomplete.
    pub fn finish(mut self, workload: &str) -> Result<(), Trouble> {
        if self.start.is_none() {
            self.remove();
            return Err(Trouble::new(Exit::Workload, format!("workload {workload} does not write a journal"))
                .hint("leave out `--journal`, or call `assay.journal{…}` in the script: see docs/lua-api.md"));
        }
        if self.failure.is_none() {
            self.failure = self.file.sync_all().err().filter(|_| self.path.is_file());
        }
        self.trouble().map_or(Ok(()), Err)
    }

    /// Nothing was measured: removes a file without lines.
    pub fn discard(self) {
        if self.lines == 0 {
            self.remove();
        }
    }

    fn remove(&self) {
        if self.path.is_file() {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    fn trouble(&self) -> Option<Trouble> {
        let error = self.failure.as_ref()?;
        let (path, lines) = (self.path.display(), self.lines);
        Some(
            Trouble::environment(format!("cannot write the journal {path}: {error}"))
                .detail(format!("it stops after {lines} lines; the run continued without it"))
                .hint("free some space, or choose another file with `--journal FILE`"),
        )
    }
}
