//! Subject of a chart: the line below its title, and its file name.

use crate::digits::count;
use crate::findings::report::ReportEntry;
use crate::findings::run::Findings;
use crate::plain::{DOT, clean};
use crate::words::run::{load, servers};

const WORKLOAD_WIDTH: usize = 40;
/// More values of one kind than this are counted, not listed.
const LISTED_MAX: usize = 2;
/// Length of a file name without its ending.
const SLUG_WIDTH: usize = 80;

/// `oltp_read_write · PostgreSQL 15.14 · 16 sessions · closed loop · 2026-03-14`; what records do not share is listed
/// or counted.
pub(crate) fn subject<'a>(records: impl IntoIterator<Item = &'a Findings>) -> String {
    let all: Vec<&Findings> = records.into_iter().collect();
    let each = |of: &dyn Fn(&Findings) -> String, what: &str| {
        let mut values: Vec<String> = Vec::new();
        for value in all.iter().map(|findings| of(findings)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if values.len() > LISTED_MAX { format!("{} {what}", values.len()) } else { values.join(", ") }
    };
    let mut facts = vec![
        each(&|findings| clean(&findings.workload, WORKLOAD_WIDTH), "workloads"),
        each(&servers, "servers"),
        each(&sessions_of, "numbers of sessions"),
        each(&load, "loads"),
    ];
    if all.len() > 1 {
        facts.push(format!("{} records", all.len()));
    }
    facts.push(each(&|findings| findings.started.to_string().chars().take(10).collect(), "days"));
    facts.retain(|fact| !fact.is_empty());
    facts.join(DOT)
}

/// `1, 2, 4 sessions`; of a long ladder, the first and the last.
fn sessions_of(findings: &Findings) -> String {
    let mut numbers: Vec<String> = findings.stages.iter().map(|stage| count(stage.sessions.into())).collect();
    // The stages of a search for a rate differ in that alone.
    numbers.dedup();
    match &numbers[..] {
        [] => String::new(),
        [one] if one == "1" => "1 session".into(),
        [first, _, _, _, _, .., last] => format!("{first} to {last} sessions"),
        few => format!("{} sessions", few.join(", ")),
    }
}

/// Letters, digits, `_` and hyphens: the workload and, if there are several records, what distinguishes this one.
pub(crate) fn slug(entry: &ReportEntry, several: bool) -> String {
    let mut text = entry.findings.workload.trim_end_matches(".lua").to_owned();
    if several && entry.name != entry.findings.workload {
        text = format!("{text} {}", entry.name);
    }
    let mut slug = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => (),
            _ => slug.push('-'),
        }
        if slug.len() == SLUG_WIDTH {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "record".into() } else { slug.to_owned() }
}
