//! `assay report RECORD…`: pages, tables, pictures and series of what one or several runs left behind.
//!
//! Everything is made in assay-report; here records are read and files are written. Nothing is written before every record
//! was read.

use std::fs;
use std::path::Path;

use crate::command_line::ReportOptions;
use crate::commands::show;
use crate::diagnostics::{Exit, Trouble};
use crate::terminal;

/// More records than this are no report but an archive.
const RECORDS_MAX: usize = 200;

/// Writes what was asked for; with nothing asked for, the report of every record to stdout.
pub fn run(options: &ReportOptions) -> Result<Exit, Trouble> {
    if options.records.len() > RECORDS_MAX {
        return Err(Trouble::usage(format!("{} records are too many for one report", options.records.len()))
            .hint(format!("name at most {RECORDS_MAX}")));
    }
    let mut records = Vec::new();
    for path in &options.records {
        records.push((path.display().to_string(), assay_report::findings(&show::read(path)?)));
    }
    let report = assay_report::report(records);
    let Some(html) = &options.html else {
        for entry in &report.entries {
            terminal::result(&format!("{}\n", assay_report::text(&entry.findings)))?;
        }
        return Ok(Exit::Success);
    };
    write(html, assay_report::html(&report).as_bytes())?;
    Ok(Exit::Success)
}

/// Writes `content` to a file and says so, or to stdout.
fn write(path: &Path, content: &[u8]) -> Result<(), Trouble> {
    if path == Path::new("-") {
        return terminal::result_bytes(content);
    }
    fs::write(path, content)
        .map_err(|error| Trouble::environment(format!("cannot write {}", path.display())).detail(error.to_string()))?;
    terminal::say(&format!("wrote {}\n", path.display()));
    Ok(())
}
