//! Tables with types, for files of columns: the trials, intervals and telemetry of records.
//!
//! Columns are those of the CSV files, with one type each whatever their rows have. docs/record.md lists them.

use assay_record::Time;

use crate::findings::report::Report;
use crate::output::series::{intervals, telemetry, trials};
use crate::tables::table::{Table, TableCell};

/// A table of which there are files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataTable {
    /// A row per record, stage, server and transaction type.
    Trials,
    /// A row per interval, transaction type and statement class.
    Intervals,
    /// A row per reading of a server or machine.
    Telemetry,
}

/// A column of a part of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DataColumn {
    /// Its name.
    pub(crate) name: String,
    /// A value per row; `None`: it is unknown or does not apply.
    pub(crate) values: DataValues,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DataValues {
    /// Text.
    Text(Vec<Option<String>>),
    /// Numbers of things, indices, and whole nanoseconds.
    Count(Vec<Option<u64>>),
    /// Other figures; latencies in nanoseconds.
    Number(Vec<Option<f64>>),
    /// Milliseconds since 1970.
    Time(Vec<Option<i64>>),
}

impl DataTable {
    /// All of them.
    pub const ALL: [DataTable; 3] = [DataTable::Trials, DataTable::Intervals, DataTable::Telemetry];

    /// For files.
    pub fn name(self) -> &'static str {
        match self {
            DataTable::Trials => "trials",
            DataTable::Intervals => "intervals",
            DataTable::Telemetry => "telemetry",
        }
    }

    /// Passes the table on in parts: its columns without rows, then rows of the same columns.
    pub(crate) fn each_part(self, report: &Report, take: &mut dyn FnMut(Vec<DataColumn>)) {
        let mut typed = |table: &Table| take(self.columns(table));
        match self {
            DataTable::Trials => trials(report, &mut typed),
            DataTable::Intervals => intervals(report, &mut typed),
            DataTable::Telemetry => telemetry(report, &mut typed),
        }
    }

    fn columns(self, table: &Table) -> Vec<DataColumn> {
        let column = |(at, name): (usize, &str)| {
            let cells = table.rows.iter().map(|row| row.cells.get(at).unwrap_or(&TableCell::Blank));
            DataColumn { name: name.to_owned(), values: self.values(name, cells) }
        };
        table.columns.iter().map(|column| column.head.as_str()).enumerate().map(column).collect()
    }

    fn values<'a>(self, name: &str, cells: impl Iterator<Item = &'a TableCell>) -> DataValues {
        match name {
            "time" => DataValues::Time(cells.map(time).collect()),
            // In telemetry, a server's number.
            "target" if self == DataTable::Telemetry => DataValues::Count(cells.map(number_of).collect()),
            "record" | "file" | "workload" | "outcome" | "machine" | "product" | "version" | "server" | "load"
            | "type" | "class" | "target" | "scope" | "metric" | "unit" => DataValues::Text(cells.map(text).collect()),
            name if name.starts_with("option_") || name.starts_with("tag_") => {
                DataValues::Text(cells.map(text).collect())
            }
            "setting" | "seed" | "stage" | "sessions" | "start_ns" | "end_ns" | "time_ns" | "measured_ns"
            | "transactions" | "statements" | "errors" | "retries" | "failed" | "reconnects" | "backlog" => {
                DataValues::Count(cells.map(number_of).collect())
            }
            _ => DataValues::Number(cells.map(number).collect()),
        }
    }
}

impl DataValues {
    pub(crate) fn len(&self) -> usize {
        match self {
            DataValues::Text(values) => values.len(),
            DataValues::Count(values) => values.len(),
            DataValues::Number(values) => values.len(),
            DataValues::Time(values) => values.len(),
        }
    }
}

/// Texts that are empty say nothing.
fn text(cell: &TableCell) -> Option<String> {
    match cell {
        TableCell::Words(words) => Some(words.clone()).filter(|words| !words.is_empty()),
        TableCell::Unknown | TableCell::Blank => None,
        figure => Some(figure.shown()),
    }
}

fn number_of(cell: &TableCell) -> Option<u64> {
    match cell {
        TableCell::Count(value) => Some(*value),
        // Seeds.
        TableCell::Words(words) => words.parse().ok(),
        _ => None,
    }
}

fn number(cell: &TableCell) -> Option<f64> {
    match cell {
        TableCell::Count(value) => Some(*value as f64),
        TableCell::Number(value) | TableCell::Ms(value) | TableCell::Micros(value) | TableCell::Share(value) => {
            Some(*value).filter(|value| value.is_finite())
        }
        TableCell::Words(_) | TableCell::Unknown | TableCell::Blank => None,
    }
}

fn time(cell: &TableCell) -> Option<i64> {
    let TableCell::Words(words) = cell else { return None };
    Time::try_from(words.clone()).ok().and_then(|time| i64::try_from(time.unix_ms()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A column whose type does not fit would lose its values.
    #[test]
    fn types_keep_every_cell() {
        let cells = [
            TableCell::words("2026-03-14T15:09:26.000Z"),
            TableCell::Count(u64::MAX),
            TableCell::Ms(2.5),
            TableCell::words("17"),
            TableCell::Blank,
        ];
        assert_eq!(cells.iter().map(number_of).collect::<Vec<_>>(), [None, Some(u64::MAX), None, Some(17), None]);
        assert_eq!(number(&cells[2]), Some(2.5));
        assert_eq!(time(&cells[0]), Some(1_773_500_966_000));
        assert_eq!(text(&cells[3]).as_deref(), Some("17"));
        assert!(cells[4..].iter().all(|cell| text(cell).is_none() && number(cell).is_none() && time(cell).is_none()));
    }
}
