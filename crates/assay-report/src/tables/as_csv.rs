//! A table as CSV: values as measured, not grouped or rounded, and empty if missing.

use crate::plain::clean;
use crate::tables::table::{Table, TableCell};

const TEXT_WIDTH: usize = 200;

impl Table {
    /// Headers first.
    pub(crate) fn csv(&self) -> String {
        self.csv_head() + &self.csv_rows()
    }

    pub(crate) fn csv_head(&self) -> String {
        let heads: Vec<&str> = self.columns.iter().map(|column| column.head.as_str()).collect();
        heads.join(",") + "\n"
    }

    /// Missing cells of a row are empty.
    pub(crate) fn csv_rows(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let cell = |at: usize| row.cells.get(at).map_or(String::new(), plain);
            let cells: Vec<String> = (0..self.columns.len()).map(cell).collect();
            text += &(cells.join(",") + "\n");
        }
        text
    }
}

fn plain(cell: &TableCell) -> String {
    match cell {
        TableCell::Words(words) => quoted(words),
        TableCell::Count(value) => value.to_string(),
        TableCell::Number(value) | TableCell::Ms(value) | TableCell::Micros(value) | TableCell::Share(value) => {
            value.to_string()
        }
        TableCell::Unknown | TableCell::Blank => String::new(),
    }
}

/// RFC 4180, and no formulas: a spreadsheet would execute a name that starts with one of `=+-@`.
fn quoted(name: &str) -> String {
    let name = clean(name, TEXT_WIDTH);
    let name = if name.starts_with(['=', '+', '-', '@']) { format!("'{name}") } else { name };
    if name.contains([',', '"']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name }
}
