//! `assay serve`: pages over a folder of records, while it grows.
//!
//! The page over all records is made again when a record is new or has changed, and the page of a record when somebody
//! opens it. Nothing but records of the library can be read, and nothing can be changed.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use assay_library::Library;
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_process::terminal;
use assay_process::web::{self, Answer};
use assay_record::{Record, Time};
use assay_run::identity;
use assay_run::served::Served;

use crate::command_line::{IndexOptions, Question, ServeOptions};
use crate::commands::library;

/// The folder is not listed more often than this.
const UPDATE_EVERY: Duration = Duration::from_secs(2);
const HTML: &str = "text/html; charset=utf-8";

/// Serves until it is interrupted.
pub fn run(options: &ServeOptions) -> Result<Exit, Trouble> {
    if let [path] = &options.words[..]
        && std::path::Path::new(path).is_file()
    {
        let served = Served::record(options.listen, path.as_ref())?;
        if !options.index.quiet {
            terminal::say(&format!("serving {path} at {} (Ctrl-C ends it)\n", served.url));
        }
        wait();
        return Ok(Exit::Success);
    }
    let question = Question::of(&options.words)?;
    let library = library::open(&question.folder, &options.index)?;
    // Conditions that cannot be answered are refused before anybody opens the page.
    let now = Time::from(SystemTime::now());
    let found = library.find(&question.filters, 0, now).map_err(|error| library::trouble(&error))?;
    let matched = found.map_err(library::wrong)?.matched;
    // From now on, nobody watches a progress.
    let index = IndexOptions { rebuild: false, quiet: true, ..options.index.clone() };
    let pages =
        Pages { question, index, state: Mutex::new(State { library, overview: None, updated: Instant::now() }) };
    let listening = web::serve(options.listen, "pages", move |path| pages.answer(path)).map_err(|error| {
        let trouble = Trouble::environment(format!("cannot serve pages at {}", options.listen));
        trouble.detail(error.to_string()).hint("choose another address or port with --listen")
    })?;
    if !options.index.quiet {
        let what = if matched == 1 { "record" } else { "records" };
        terminal::say(&format!("serving {matched} {what} at {} (Ctrl-C ends it)\n", listening.url));
    }
    wait();
    Ok(Exit::Success)
}

fn wait() {
    while !interrupt::control().is_stopped() {
        std::thread::sleep(Duration::from_millis(50));
    }
}

struct Pages {
    question: Question,
    index: IndexOptions,
    state: Mutex<State>,
}

struct State {
    library: Library,
    /// The page over all records, if no record has changed since it was made.
    overview: Option<String>,
    updated: Instant,
}

impl Pages {
    fn answer(&self, path: &str) -> Answer {
        let page = match path.strip_prefix("/page/") {
            Some(record) => self.record(record),
            None if path == "/" => self.overview().map(Some),
            None => Ok(None),
        };
        match page {
            Ok(Some(page)) => Answer::of(HTML, page),
            Ok(None) => Answer::missing(format!("nothing is at {path}; the records are at /")),
            Err(trouble) => Answer::failure(trouble.cause),
        }
    }

    fn overview(&self) -> Result<String, Trouble> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        if !self.index.no_update && (state.overview.is_none() || state.updated.elapsed() >= UPDATE_EVERY) {
            if library::update(&mut state.library, &self.index)? {
                state.overview = None;
            }
            state.updated = Instant::now();
        }
        if let Some(page) = &state.overview {
            return Ok(page.clone());
        }
        let now = Time::from(SystemTime::now());
        let found = state.library.find(&self.question.filters, usize::MAX, now);
        let found = found.map_err(|error| library::trouble(&error))?.map_err(library::wrong)?;
        let page = library::html(&state.library, &self.question, &found.entries, |entry| {
            Some(format!("page/{}", percent(&entry.path)))
        })?;
        state.overview = Some(page.clone());
        Ok(page)
    }

    /// The page of a record; `None`: the library has no such record.
    fn record(&self, path: &str) -> Result<Option<String>, Trouble> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = state.library.has(path).map_err(|error| library::trouble(&error))?;
        let file = state.library.folder().join(path);
        drop(state);
        if !is_known {
            return Ok(None);
        }
        let mut record = Record::read_thinned(&file)?;
        identity::complete(&mut record);
        let report = assay_report::report(vec![(path.to_owned(), assay_report::findings(&record))]);
        Ok(Some(assay_report::html(&report, &[])))
    }
}

/// A path in a URL.
fn percent(path: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');
    utf8_percent_encode(path, KEPT).to_string()
}
