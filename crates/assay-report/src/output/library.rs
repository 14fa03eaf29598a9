//! Lists of records as text.

use crate::digits::{count, figure, short_ms};
use crate::findings::library::LibraryEntry;
use crate::plain::clean;
use crate::tables::table::{Table, TableCell, TableColumn};

/// Records, oldest first; `records`: all that the library has, `matched`: those that match.
pub fn library_text(entries: &[LibraryEntry], matched: usize, records: usize, width: usize) -> String {
    let [matched_words, records_words] = [matched, records].map(|number| count(number as u64));
    let plural = if records == 1 { "record" } else { "records" };
    let mut text = match (matched, records) {
        (_, 0) => "no records\n".to_owned(),
        (0, _) => format!("none of {records_words} {plural} matches\n"),
        _ if matched == records => format!("{records_words} {plural}\n"),
        _ => format!("{matched_words} of {records_words} {plural}\n"),
    };
    if entries.is_empty() {
        return text;
    }
    if entries.len() < matched {
        text = format!("{}; the latest {}:\n", text.trim_end(), count(entries.len() as u64));
    }
    let columns = [
        TableColumn::words("started", 16),
        TableColumn::words("workload", 20),
        TableColumn::words("server", 22),
        TableColumn::figures("sessions"),
        TableColumn::figures("tps"),
        TableColumn::figures("p95 ms"),
        TableColumn::words("outcome", 12),
        TableColumn::words("record", 200),
        TableColumn::words("tags", 60).from(120),
    ];
    let mut table = Table::new(columns);
    for entry in entries {
        let task = if entry.task == "run" { String::new() } else { format!(" {}", entry.task) };
        let p95 = entry.p95_ns.map(|ns| ns as u64);
        let tags: Vec<String> = entry.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        table.row([
            TableCell::words(entry.started.to_string()[..16].replace('T', " ")),
            TableCell::foreign(&format!("{}{task}", entry.workload)),
            TableCell::foreign(&server(entry)),
            TableCell::foreign(&entry.sessions),
            TableCell::of(entry.tps, |tps| TableCell::words(figure(tps))),
            TableCell::words(short_ms(p95)),
            TableCell::foreign(&entry.outcome),
            TableCell::foreign(&entry.path),
            TableCell::foreign(&tags.join(" ")),
        ]);
    }
    text + "\n" + &table.text(width)
}

/// `PostgreSQL 17.2`: the first words of a version, which may go on for a line.
pub(crate) fn server(entry: &LibraryEntry) -> String {
    let version = entry.version.split([' ', '-']).next().unwrap_or_default();
    clean(format!("{} {version}", entry.product).trim(), 40)
}

/// Files that are not readable records, with the reasons.
pub fn library_problems_text(problems: &[(String, String)]) -> String {
    problems.iter().map(|(path, reason)| format!("{}: {}\n", clean(path, 400), clean(reason, 400))).collect()
}
