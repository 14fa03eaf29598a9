//! A table in Markdown, and text with markup escaped.

use crate::digits::count;
use crate::plain::clean;
use crate::tables::table::{ColumnContent, ROWS_MAX, Table};

const TEXT_WIDTH: usize = 200;

impl Table {
    /// A pipe table, between blank lines, after its caption.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.columns.iter().map(|column| escaped(&column.head, TEXT_WIDTH)).collect());
        let rule = |content: ColumnContent| if content == ColumnContent::Figures { "---:" } else { "---" };
        text += &line(self.columns.iter().map(|column| rule(column.content).to_owned()).collect());
        for row in self.rows.iter().take(ROWS_MAX) {
            let cell = |at: usize| row.cells.get(at).map_or(String::new(), |cell| escaped(&cell.shown(), TEXT_WIDTH));
            text += &line((0..self.columns.len()).map(cell).collect());
        }
        match self.rows.len().saturating_sub(ROWS_MAX) {
            0 => text,
            left => format!("{text}\nand {} more rows\n", count(left as u64)),
        }
    }
}

/// Text in which no character has a meaning in CommonMark or on the sites that show it.
pub(crate) fn escaped(text: &str, width: usize) -> String {
    let mut escaped = String::new();
    let text = clean(text, width);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            // A mention would notify somebody, an address would become a link.
            '@' => escaped.push_str("&#64;"),
            ':' if rest.peek() == Some(&'/') => escaped.push_str("&#58;"),
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '$' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}
