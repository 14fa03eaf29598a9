//! `assay history`: a figure of many records over time, and when it changed.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use assay_library::{Filter, Library};
use assay_process::diagnostics::{Exit, Trouble, nearest};
use assay_process::terminal;
use assay_record::Time;
use assay_report::{HistoryAsked, HistoryBy, HistoryNote, LibraryEntry};

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
    refuse_what_nothing_has(&library, &question.filters, options, now)?;
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

/// A condition that no record meets, or a tag that none has: the answer would be about nothing.
fn refuse_what_nothing_has(
    library: &Library,
    filters: &[Filter],
    options: &HistoryOptions,
    now: Time,
) -> Result<(), Trouble> {
    let matching = |filters: &[Filter]| -> Result<Vec<LibraryEntry>, Trouble> {
        let found = library.find(filters, usize::MAX, now).map_err(|error| library::trouble(&error))?;
        Ok(found.map_err(library::wrong)?.entries)
    };
    let all = matching(&[])?;
    if all.is_empty() {
        return Ok(());
    }
    for filter in filters {
        if matching(std::slice::from_ref(filter))?.is_empty() {
            let trouble = Trouble::usage(format!("no record matches {}", filter.text()));
            let mut known: Vec<&str> = match filter.key() {
                "workload" => all.iter().map(|entry| entry.workload.as_str()).collect(),
                "product" => all.iter().map(|entry| entry.product.as_str()).collect(),
                "version" => all.iter().map(|entry| entry.version.as_str()).collect(),
                key => all.iter().filter_map(|entry| entry.tags.get(key)).map(String::as_str).collect(),
            };
            known.sort_unstable();
            known.dedup();
            known.retain(|value| !value.is_empty());
            return Err(match nearest(filter.value(), known.iter().copied()) {
                Some(near) => trouble.hint(format!("did you mean {}={near}?", filter.key())),
                None if known.is_empty() => trouble.hint("`assay library` lists the records"),
                None => trouble.hint(format!("there are: {}", known.join(", "))),
            });
        }
    }
    let HistoryBy::Tag(tag) = &options.by else { return Ok(()) };
    let tags: BTreeSet<&str> =
        all.iter().flat_map(|entry| entry.tags.keys()).map(String::as_str).chain(["time", "day", "version"]).collect();
    if tags.contains(tag.as_str()) {
        return Ok(());
    }
    let trouble = Trouble::usage(format!("--by {tag}: no record has a tag {tag}"));
    Err(match nearest(tag, tags.iter().copied()) {
        Some(near) => trouble.hint(format!("did you mean {near}?")),
        None => trouble.hint(format!(
            "there are: {}; a run gets a tag with --tag {tag}=VALUE, a record with `assay tag`",
            tags.into_iter().collect::<Vec<_>>().join(", ")
        )),
    })
}

fn notes(asked: Option<&Path>, folder: &Path) -> Result<Vec<HistoryNote>, Trouble> {
    let path = asked.map_or_else(|| folder.join(NOTES), PathBuf::from);
    let text = match assay_record::read_text(&path, assay_record::WRITTEN_BYTES_MAX) {
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
