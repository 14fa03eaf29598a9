//! `assay library`: finds records among many.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use assay_library::{BadFilter, Library, LibraryError, Update};
use assay_process::diagnostics::{Exit, Trouble, nearest};
use assay_process::{files, interrupt, terminal};
use assay_record::Time;
use assay_report::{Better, HistoryAsked, HistoryBy, LibraryEntry, Metric, MetricUnit};
use assay_run::identity;
use serde::Serialize;

use crate::command_line::{IndexOptions, LibraryOptions, Question};

/// Records shown in a table.
pub const SHOWN: usize = 50;

/// Brings the index up to date and answers from it.
pub fn run(options: &LibraryOptions) -> Result<Exit, Trouble> {
    let question = Question::of(&options.words)?;
    if let Some(path) = &options.html {
        files::may_write(path).map_err(|why| Trouble::environment(format!("--html {}: {why}", path.display())))?;
    }
    let library = open(&question.folder, &options.index)?;
    if options.problems {
        let problems = library.problems().map_err(|error| trouble(&error))?;
        terminal::result(&assay_report::library_problems_text(&problems))?;
        return Ok(Exit::Success);
    }
    let limit = match options.limit {
        Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        None if options.paths || options.json || options.html.is_some() => usize::MAX,
        None => SHOWN,
    };
    let now = Time::from(SystemTime::now());
    let found = library.find(&question.filters, limit, now).map_err(|error| trouble(&error))?;
    let mut found = found.map_err(wrong)?;
    if let Some(path) = &options.html {
        return page(options, &library, &question, found.entries, path);
    }
    if options.paths || options.json {
        found.entries.iter_mut().for_each(|entry| entry.path = from_here(&question.folder, &entry.path));
    }
    terminal::result(&if options.paths {
        found.entries.iter().map(|entry| format!("{}\n", entry.path)).collect::<String>()
    } else if options.json {
        #[derive(Serialize)]
        struct Answer<'a> {
            records: usize,
            matched: usize,
            problems: usize,
            entries: &'a [assay_report::LibraryEntry],
        }
        let answer = Answer {
            records: found.records,
            matched: found.matched,
            problems: found.problems,
            entries: &found.entries,
        };
        serde_json::to_string_pretty(&answer).expect("answers become JSON") + "\n"
    } else {
        let width = terminal::view(false).width;
        assay_report::library_text(&found.entries, found.matched, found.records, width)
    })?;
    if found.problems > 0 && !options.paths && !options.json {
        let what = if found.problems == 1 { "file is not a readable record" } else { "files are not readable records" };
        terminal::say(&format!("{} {what}: see --problems\n", found.problems));
    }
    Ok(Exit::Success)
}

/// Writes the page over the records, whose links lead from where it is.
fn page(
    options: &LibraryOptions,
    library: &Library,
    question: &Question,
    mut entries: Vec<LibraryEntry>,
    path: &Path,
) -> Result<Exit, Trouble> {
    let beside = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let to_records = way(beside, &question.folder);
    let folder = question.folder.clone();
    let page_of = |entry: &LibraryEntry| {
        let own = entry.path.trim_end_matches(".zst").trim_end_matches(".json").to_owned() + ".html";
        folder.join(&own).is_file().then(|| to_records.join(own).display().to_string())
    };
    let pages: Vec<Option<String>> = entries.iter().map(page_of).collect();
    for entry in &mut entries {
        entry.path = to_records.join(&entry.path).display().to_string();
    }
    let mut pages = entries.iter().map(|entry| entry.path.clone()).zip(pages).collect::<BTreeMap<_, _>>();
    let html = html(library, question, &entries, |entry| pages.get_mut(&entry.path).and_then(Option::take))?;
    files::write(path, html)
        .map_err(|error| Trouble::environment(format!("cannot write {}", path.display())).detail(error.to_string()))?;
    if !options.index.quiet {
        terminal::say(&format!("wrote {}\n", path.display()));
    }
    Ok(Exit::Success)
}

/// The page over the records that match. `page_of`: where the page of a record is.
pub(super) fn html(
    library: &Library,
    question: &Question,
    entries: &[LibraryEntry],
    page_of: impl FnMut(&LibraryEntry) -> Option<String>,
) -> Result<String, Trouble> {
    let now = Time::from(SystemTime::now());
    let past = library.past(&question.filters, "tps", now).map_err(|error| trouble(&error))?.map_err(wrong)?;
    let records = past.map(|past| past.records).unwrap_or_default();
    let history = |by: HistoryBy| {
        let metric = Metric { name: "tps".to_owned(), unit: MetricUnit::PerSecond, better: Better::Higher };
        let asked = HistoryAsked { metric, by, margin: assay_stats::MARGIN_DEFAULT, notes: Vec::new() };
        assay_report::history(records.clone(), &asked)
    };
    Ok(assay_report::library_html(entries, &history(HistoryBy::Time), &history(HistoryBy::Version), page_of))
}

/// The way from one folder to another: relative if the second is the first, or below it.
fn way(from: &Path, to: &Path) -> PathBuf {
    let [from, to] = [from, to].map(|path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    to.strip_prefix(&from).map_or(to.clone(), Path::to_owned)
}

/// The library of this folder, up to date unless that is not wanted.
pub(super) fn open(folder: &Path, options: &IndexOptions) -> Result<Library, Trouble> {
    let mut library = Library::open(folder, options.index.as_deref()).map_err(|error| trouble(&error))?;
    if !options.no_update {
        update(&mut library, options)?;
    }
    Ok(library)
}

/// Reads what is new or has changed; returns whether anything was.
pub(super) fn update(library: &mut Library, options: &IndexOptions) -> Result<bool, Trouble> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let began = Instant::now();
    let shows = terminal::stderr_is_terminal() && !options.quiet;
    let is_shown = std::cell::Cell::new(false);
    let progress = |done: usize, all: usize| {
        if shows && began.elapsed().as_secs() >= 1 {
            terminal::say(&format!("\rreading records: {done} of {all}"));
            is_shown.set(true);
        }
        !interrupt::control().is_stopped()
    };
    let update = Update {
        rebuild: options.rebuild,
        now_ns: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        complete: &identity::complete,
        progress: &progress,
    };
    let updated = library.update(&update);
    if is_shown.get() {
        terminal::say("\n");
    }
    let updated = updated.map_err(|error| trouble(&error))?;
    for (path, reason) in &updated.unlisted {
        terminal::warn(&format!("cannot list {path}: {reason}"));
    }
    if updated.stopped {
        return Err(Trouble::new(interrupt::exit(), "interrupted while reading records")
            .hint("what was read is kept: the next time continues from there"));
    }
    Ok(updated.read > 0 || updated.removed > 0)
}

/// The path of a record as other commands need it.
pub(super) fn from_here(folder: &Path, path: &str) -> String {
    if folder == Path::new(".") { path.to_owned() } else { folder.join(path).display().to_string() }
}

/// A condition that cannot be answered.
pub(super) fn wrong(bad: BadFilter) -> Trouble {
    let trouble = Trouble::usage(bad.to_string());
    let near = bad.unknown.as_deref().and_then(|name| nearest(name, bad.known.iter().map(String::as_str)));
    match near {
        Some(near) => trouble.hint(format!("did you mean {near}?")),
        None => trouble,
    }
}

/// The index cannot be used.
pub(super) fn trouble(error: &LibraryError) -> Trouble {
    let source = std::error::Error::source(error).map(ToString::to_string);
    let trouble = source.into_iter().fold(Trouble::environment(error.to_string()), Trouble::detail);
    match error {
        LibraryError::ReadOnly { .. } | LibraryError::Full { .. } => trouble.hint("put it elsewhere: --index FILE"),
        LibraryError::Foreign { .. } => trouble.hint("choose another file: --index FILE"),
        LibraryError::Index { .. } => trouble.hint("it can be deleted at any time: it is made again from the records"),
        LibraryError::Folder { .. } => trouble,
    }
}
