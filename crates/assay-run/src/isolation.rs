//! The check of a run's history, its file beside the record, and the one for Elle.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use assay_engine::Outcome;
use assay_isolation::{History, IsolationLevel, check, log};
use assay_process::diagnostics::Trouble;
use assay_process::{files, terminal};
use assay_record::{HistoryFile, Isolation, ReadHistory, Share, history_path};
use assay_script::Declaration;

/// The total by which a workload says whose its tables are: if it differs after the run, another one has begun on them.
const RUN: &str = "run of the history";

/// A check of so many transactions takes long enough to be announced.
const MANY: usize = 100_000;

/// The level that a workload with a history promises.
pub fn promised(outcome: &Outcome) -> Option<IsolationLevel> {
    outcome.declarations.iter().find_map(|declaration| match declaration {
        Declaration::History(level, _) => IsolationLevel::of_name(level),
        _ => None,
    })
}

/// Checks the history; `None` if the workload has none.
pub fn verdict(outcome: &Outcome, quiet: bool) -> Option<Isolation> {
    // All sessions are of this process and read one clock.
    let mut found = judge(promised(outcome)?, &outcome.history, 0, quiet);
    let of_run = outcome.work.totals.iter().find(|total| total.name == RUN);
    if of_run.is_some_and(|total| total.after.is_some_and(|after| total.before != Some(after))) {
        found.verdict.foreign = found.verdict.foreign.max(1);
    }
    Some(found)
}

fn judge(level: IsolationLevel, history: &History, clock_error_ns: u64, quiet: bool) -> Isolation {
    if !quiet && history.len() >= MANY {
        terminal::say(&format!("checking the history of {} transactions\n", history.len()));
    }
    Isolation { level, verdict: check(history, clock_error_ns) }
}

/// The check of the history beside a record whose run did not come to it; `None` if there is none, or it cannot be
/// read.
pub fn verdict_beside(record: &Path) -> Option<Isolation> {
    let read = ReadHistory::read(&history_path(record)).ok()?;
    Some(judge(IsolationLevel::of_name(&read.level)?, &read.history, 0, true))
}

/// Checks the histories of a fleet's agents together. `starts_ns`: when the measured part of each stage began, by the
/// coordinator's clock since the start of the run. `None` if the workload has no history.
pub fn verdict_of_fleet(
    shares: &[Share],
    histories: Vec<Option<ReadHistory>>,
    starts_ns: &[u64],
    quiet: bool,
) -> Option<Isolation> {
    let level = histories.iter().flatten().find_map(|read| IsolationLevel::of_name(&read.level))?;
    let (mut all, mut error_ns) = (History::new(), 0);
    for (share, read) in shares.iter().zip(histories) {
        let begun = share.record.as_ref().and_then(|record| record.stages.first()?.start_ns);
        let (Some(read), Some(begun), Some(start)) = (read, begun, starts_ns.first()) else {
            all.set_partial();
            continue;
        };
        let late = share.late_ns.first().copied().unwrap_or(0);
        let mut words = read.history.words().to_vec();
        log::advance(&mut words, i128::from(*start) + i128::from(late) - i128::from(begun));
        all.extend(&words);
        if read.history.is_partial() {
            all.set_partial();
        }
        error_ns = share.agent.clock_error_ns().max(error_ns);
    }
    // Two agents may be off in opposite directions.
    Some(judge(level, &all, 2 * error_ns, quiet))
}

/// The file of a history while its run goes on. If it can no longer be written, it is given up: the run and its record
/// are more important.
#[derive(Default)]
pub enum KeptHistory {
    /// Nothing has come yet.
    #[default]
    Empty,
    /// It is being written.
    Open(HistoryFile),
    /// It was given up.
    Lost,
}

impl KeptHistory {
    /// Appends transactions to the file beside the record. Returns an error, once.
    pub fn add(&mut self, record: &Path, level: &str, words: &[u64]) -> Option<Trouble> {
        let added = match self {
            KeptHistory::Lost => return None,
            KeptHistory::Open(file) => file.add(words),
            KeptHistory::Empty => HistoryFile::begin(history_path(record), level).and_then(|mut file| {
                let added = file.add(words);
                *self = KeptHistory::Open(file);
                added
            }),
        };
        let error = added.err()?;
        if let KeptHistory::Open(file) = std::mem::replace(self, KeptHistory::Lost) {
            file.discard();
        }
        let path = history_path(record);
        Some(Trouble::environment(format!("cannot write the history {}: {error}", path.display())))
    }

    /// The run is over. `is_partial`: some transactions are missing.
    pub fn finish(self, is_partial: bool) {
        if let KeptHistory::Open(file) = self {
            // What is missing without it is said by whoever reads the file.
            let _ = file.finish(is_partial);
        }
    }

    /// Nothing was measured.
    pub fn discard(self) {
        if let KeptHistory::Open(file) = self {
            file.discard();
        }
    }
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
