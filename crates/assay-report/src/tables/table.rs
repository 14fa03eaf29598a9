//! A table without a format: columns with headers, and rows of values and words.
//!
//! A cell keeps its value as measured. Digits, units, escapes and widths belong to the formats: `as_text`,
//! `as_markdown`, `as_html` and `as_csv`.

use crate::digits::{NONE, count, figure, micros, percent};
use crate::plain::clean;

/// Longest name on a terminal.
pub(crate) const NAME_WIDTH: usize = 24;
/// Rows that pages and Markdown show: a forged record could have millions.
pub const ROWS_MAX: usize = 200;
/// Longest text from outside kept in a cell.
const FOREIGN_WIDTH: usize = 400;

/// Rows under columns.
pub(crate) struct Table {
    /// Caption, for a table that stands alone; may be empty.
    pub(crate) caption: String,
    pub(crate) columns: Vec<TableColumn>,
    pub(crate) rows: Vec<TableRow>,
}

/// A column.
pub(crate) struct TableColumn {
    /// With the unit; also the column's name in CSV.
    pub(crate) head: String,
    pub(crate) content: ColumnContent,
    /// Omitted on a terminal, where lines are short.
    pub(crate) roomy: bool,
    /// Omitted on a terminal with fewer columns than this. This depends on no figure, so that two reports have the same
    /// columns.
    pub(crate) from: usize,
}

/// Content of a column.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ColumnContent {
    /// Right-aligned.
    Figures,
    /// Left-aligned, and on a terminal no wider than this. Texts after the figures are self-explanatory: a terminal
    /// shows them without a header.
    Words(usize),
}

/// A row: a cell per column, or fewer.
pub(crate) struct TableRow {
    pub(crate) cells: Vec<TableCell>,
    /// Highlighted, if the format can.
    pub(crate) best: bool,
}

/// A cell.
#[derive(Clone)]
pub(crate) enum TableCell {
    /// Harmless words (`clean`); or a figure with its interval.
    Words(String),
    Count(u64),
    /// Shown with three digits.
    Number(f64),
    /// Nanoseconds, shown as milliseconds.
    Ms(f64),
    /// Nanoseconds, shown as microseconds.
    Micros(f64),
    /// A share, shown in percent.
    Share(f64),
    /// A missing figure.
    Unknown,
    /// Not applicable.
    Blank,
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = TableColumn>) -> Table {
        Table { caption: String::new(), columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    pub(crate) fn with_caption(self, caption: impl Into<String>) -> Table {
        Table { caption: caption.into(), ..self }
    }

    pub(crate) fn with_rows<C: Into<Vec<TableCell>>>(mut self, rows: impl IntoIterator<Item = C>) -> Table {
        rows.into_iter().for_each(|cells| self.row(cells));
        self
    }

    pub(crate) fn row(&mut self, cells: impl Into<Vec<TableCell>>) {
        self.rows.push(TableRow { cells: cells.into(), best: false });
    }

    pub(crate) fn has_heads(&self) -> bool {
        self.columns.iter().any(|column| !column.head.is_empty())
    }
}

impl TableColumn {
    pub(crate) fn figures(head: impl Into<String>) -> TableColumn {
        TableColumn { head: head.into(), content: ColumnContent::Figures, roomy: false, from: 0 }
    }

    pub(crate) fn words(head: impl Into<String>, width: usize) -> TableColumn {
        TableColumn { head: head.into(), content: ColumnContent::Words(width), roomy: false, from: 0 }
    }

    pub(crate) fn roomy(self) -> TableColumn {
        TableColumn { roomy: true, ..self }
    }

    pub(crate) fn from(self, from: usize) -> TableColumn {
        TableColumn { from, ..self }
    }
}

impl TableCell {
    /// Our own words.
    pub(crate) fn words(text: impl Into<String>) -> TableCell {
        TableCell::Words(text.into())
    }

    /// Text from a server, a script or a file.
    pub(crate) fn foreign(text: &str) -> TableCell {
        TableCell::Words(clean(text, FOREIGN_WIDTH))
    }

    /// `as_what` of a value, if there is one.
    pub(crate) fn of<T>(value: Option<T>, as_what: impl FnOnce(T) -> TableCell) -> TableCell {
        value.map_or(TableCell::Unknown, as_what)
    }

    pub(crate) fn ns(value: Option<u64>) -> TableCell {
        TableCell::of(value, |ns| TableCell::Ms(ns as f64))
    }

    /// For people.
    pub(crate) fn shown(&self) -> String {
        match self {
            TableCell::Words(words) => words.clone(),
            TableCell::Count(value) => count(*value),
            TableCell::Number(value) => figure(*value),
            TableCell::Ms(ns) => figure(ns / 1e6),
            TableCell::Micros(ns) => micros(*ns),
            TableCell::Share(share) => percent(*share),
            TableCell::Unknown => NONE.to_owned(),
            TableCell::Blank => String::new(),
        }
    }
}
