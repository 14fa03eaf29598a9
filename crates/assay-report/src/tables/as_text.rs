//! A table for terminals: columns as wide as their widest cell, no lines, no colors.

use crate::plain::cut;
use crate::tables::table::{ColumnContent, NAME_WIDTH, Table, TableCell, TableColumn};

/// Between columns.
const GAP: &str = "  ";
/// Below this width names are truncated.
const NARROW: usize = 80;
/// From this width on nothing is truncated unless necessary.
const ROOMY: usize = 100;

impl Table {
    /// The first column and texts are left-aligned, figures right-aligned. No blanks at line ends. A narrow terminal
    /// gets fewer columns, and shorter texts.
    pub(crate) fn text(&self, width: usize) -> String {
        let last = self.columns.len().saturating_sub(1);
        let words_max = |number: usize, words: usize| match (number, words) {
            (0, words) if width < NARROW => words.min(NAME_WIDTH),
            (number, words) if number == last && words > NAME_WIDTH * 2 => {
                words.saturating_sub(ROOMY.saturating_sub(width))
            }
            _ => words,
        };
        let shown = |number: usize, column: &TableColumn, cell: &TableCell| match column.content {
            ColumnContent::Figures => cell.shown(),
            ColumnContent::Words(words) => cut(cell.shown(), words_max(number, words)),
        };
        let columns: Vec<(usize, &TableColumn)> =
            self.columns.iter().enumerate().filter(|(_, column)| !column.roomy && column.from <= width).collect();
        let head = |(number, column): &(usize, &TableColumn)| match column.content {
            ColumnContent::Words(_) if *number > 0 => String::new(),
            _ => column.head.clone(),
        };
        let mut lines: Vec<Vec<String>> = Vec::new();
        lines.extend(self.has_heads().then(|| columns.iter().map(head).collect()));
        lines.extend(self.rows.iter().map(|row| {
            columns
                .iter()
                .map(|(number, column)| row.cells.get(*number).map_or(String::new(), |it| shown(*number, column, it)))
                .collect()
        }));
        aligned(&lines, |at| at > 0 && columns[at].1.content == ColumnContent::Figures)
    }
}

/// A list under `heads` for a terminal; empty without rows. `figures`: the columns that are aligned to the right.
pub fn listing<const N: usize>(heads: [&str; N], figures: &[usize], rows: Vec<[String; N]>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let lines: Vec<Vec<String>> = [heads.map(str::to_owned)].into_iter().chain(rows).map(Vec::from).collect();
    aligned(&lines, |at| figures.contains(&at))
}

/// Columns as wide as their widest cell.
fn aligned(lines: &[Vec<String>], is_right: impl Fn(usize) -> bool) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let pad = |(at, cell): (usize, &String)| match widths[at] {
        width if is_right(at) => format!("{cell:>width$}"),
        width => format!("{cell:<width$}"),
    };
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> = line.iter().enumerate().map(pad).collect();
        text.push_str(cells.join(GAP).trim_end());
        text.push('\n');
    }
    text
}
