//! `assay history`: a figure of many records over time, and when it changed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use assay_process::diagnostics::{Exit, Trouble, nearest};
use assay_process::terminal;
use assay_record::Time;
use assay_report::{HistoryAsked, HistoryNote};

use crate::command_line::{HistoryOptions, Question};
use crate::commands::library;

/// Notes of a folder.
const NOTES: &str = "assay-history.txt";

/// Prints the history.
pub fn run(options: &HistoryOptions) -> Result<Exit, Trouble> {
    let question = Question::of(&options.words)?;
    let notes = notes(options.notes.as_deref(), &question.folder)?;
    let library = library::open(&question.folder, &options.index)?;
    let now = Time::from(SystemTime::now());
    let past = library.past(&question.filters, &options.metric, now).map_err(|error| library::trouble(&error))?;
    let Some(past) = past.map_err(library::wrong)? else {
        let trouble = Trouble::usage(format!("no record has the figure {}", options.metric));
        let known = library.metrics().map_err(|error| library::trouble(&error))?;
        return Err(match nearest(&options.metric, known.iter().map(String::as_str)) {
            Some(near) => trouble.hint(format!("did you mean {near}?")),
            None => trouble.hint("`assay list metrics` lists the figures"),
        });
    };
    let mut records = past.records;
    for record in &mut records {
        record.path = library::from_here(&question.folder, &record.path);
    }
    let asked = HistoryAsked { metric: past.metric, by: options.by.clone(), margin: options.margin, notes };
    let history = assay_report::history(records, &asked);
    terminal::result(&match options.format.as_str() {
        "markdown" => assay_report::history_markdown(&history),
        "json" => assay_report::history_json(&history),
        _ => assay_report::history_text(&history),
    })?;
    match options.fail_if_worse && history.is_alarming() {
        true => Err(Trouble::new(Exit::Difference, format!("{} got worse (--fail-if-worse)", options.metric))),
        false => Ok(Exit::Success),
    }
}

fn notes(asked: Option<&Path>, folder: &Path) -> Result<Vec<HistoryNote>, Trouble> {
    let path = asked.map_or_else(|| folder.join(NOTES), PathBuf::from);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound && asked.is_none() => return Ok(Vec::new()),
        Err(error) => {
            return Err(
                Trouble::environment(format!("cannot read the notes {}", path.display())).detail(error.to_string())
            );
        }
    };
    HistoryNote::parse(&text).map_err(|bad| Trouble::usage(format!("{}: {bad}", path.display())))
}
